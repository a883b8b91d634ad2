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

// A stream of a file: a run of a recorded program, or a kernel.
typedef struct listing {
    const char *path, *what;
    char config[96];
    const uint8_t *bytes;
    uint32_t count;
    uint64_t address;
} listing;

static void list_stream(vta_command *command, const berth_vta_isa *isa, const listing *l,
                        json_t *all) {
    json_t *list = all ? json_array() : NULL;
    if (!all)
        berth_cli_print("%s: %s on %s, %u instructions at 0x%llx\n", l->path, l->what, l->config,
                        l->count, (unsigned long long)l->address);
    for (uint32_t i = 0; i < l->count; ++i) {
        berth_vta_instruction instruction =
            berth_vta_decode(isa, l->bytes + (size_t)i * BERTH_VTA_INSTRUCTION_BYTES);
        add_instruction(command, &instruction, i, list);
    }
    if (all)
        json_array_append_new(
            all, json_pack("{s:o, s:o, s:s, s:I, s:o}", "file", berth_cli_json_text(l->path),
                           "stream", berth_cli_json_text(l->what), "config", l->config, "address",
                           (json_int_t)l->address, "instructions", list));
}

static berth_status disassemble(vta_command *command, const char *path, json_t *all) {
    berth_arena *arena = command->cli.arena;
    vta_file file;
    berth_vta_shape shape;
    berth_vta_isa isa;
    listing l = {.path = path};
    BERTH_TRY(vta_read_file(command, path, &file));
    BERTH_TRY(berth_vta_shape_make(&file.config, &shape));
    BERTH_TRY(berth_vta_isa_make(&shape, &isa));
    berth_vta_config_text(&file.config, l.config);
    for (uint32_t k = 0; k < file.image.kernel_count; ++k) {
        const berth_vta_kernel *kernel = &file.image.kernels[k];
        l.what = berth_arena_printf(arena, "kernel %s", kernel->name);
        l.bytes = kernel->stream;
        l.count = kernel->instruction_count;
        list_stream(command, &isa, &l, all);
    }
    for (uint32_t r = 0; r < file.trace.runs.count; ++r) {
        const berth_vta_trace_run *run = &file.trace.runs.data[r];
        l.what = berth_arena_printf(arena, "run %u of %u", r + 1, file.trace.runs.count);
        l.bytes = file.trace.before + (run->address - file.trace.base);
        l.count = run->count;
        l.address = run->address;
        list_stream(command, &isa, &l, all);
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
    if (all) berth_cli_print_json(json_pack("{s:o}", "streams", all));
    return BERTH_OK;
}
