// berth vta disasm: instructions as text, a line each.
#include "drivers/vta/command/command.h"

static void add_instruction(vta_command *command, const berth_vta_instruction *instruction,
                            uint32_t index, json_t *list) {
    berth_strbuf text = berth_strbuf_make(command->cli.arena);
    berth_vta_print(instruction, &text);
    const char *unit = berth_vta_unit_name(berth_vta_unit_of(instruction));
    if (list)
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:o}", "index", (int)index, "unit", unit,
                                        "text", berth_cli_json_text(berth_strbuf_text(&text))));
    else
        berth_cli_print("%6u  %-7s  %s\n", index, unit, berth_strbuf_text(&text));
}

static berth_status disassemble(vta_command *command, const char *path, json_t *all) {
    berth_vta_trace trace;
    berth_vta_shape shape;
    berth_vta_isa isa;
    char config[96];
    BERTH_TRY(vta_read_trace(command, path, &trace));
    BERTH_TRY(berth_vta_shape_make(&trace.config, &shape));
    BERTH_TRY(berth_vta_isa_make(&shape, &isa));
    berth_vta_config_text(&trace.config, config);
    for (uint32_t r = 0; r < trace.runs.count; ++r) {
        const berth_vta_trace_run *run = &trace.runs.data[r];
        json_t *list = all ? json_array() : NULL;
        if (!all)
            berth_cli_print("%s: run %u of %u on %s, %u instructions at 0x%llx\n", path, r + 1,
                            trace.runs.count, config, run->count, (unsigned long long)run->address);
        const uint8_t *bytes = trace.before + (run->address - trace.base);
        for (uint32_t i = 0; i < run->count; ++i) {
            berth_vta_instruction instruction =
                berth_vta_decode(&isa, bytes + (size_t)i * BERTH_VTA_INSTRUCTION_BYTES);
            add_instruction(command, &instruction, i, list);
        }
        if (all)
            json_array_append_new(all, json_pack("{s:o, s:i, s:s, s:I, s:o}", "file",
                                                 berth_cli_json_text(path), "run", (int)r, "config",
                                                 config, "address", (json_int_t)run->address,
                                                 "instructions", list));
    }
    return BERTH_OK;
}

berth_status vta_disasm(vta_command *command) {
    json_t *all = command->json ? json_array() : NULL;
    for (uint32_t i = 0; i < command->files.count; ++i) {
        berth_status status = disassemble(command, command->files.data[i], all);
        if (status) json_decref(all);
        BERTH_TRY(status);
    }
    if (all) berth_cli_print_json(json_pack("{s:o}", "runs", all));
    return BERTH_OK;
}
