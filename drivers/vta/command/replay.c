// berth vta replay: recorded programs on the model, compared with what they left behind elsewhere.
#include <stdio.h>
#include <string.h>

#include "drivers/vta/command/command.h"

enum { random_orders = 3 };

typedef struct outcome {
    bool reproduced;
    bool counted;
    uint32_t orders;      // that were tried
    const char *problem;  // of the first that failed
    const char *note;     // NULL = none
} outcome;

static const char *order_text(berth_arena *arena, const berth_vta_run_options *options) {
    const char *name = berth_vta_order_name(options->order);
    if (options->order != BERTH_VTA_ORDER_RANDOM) return name;
    return berth_arena_printf(arena, "%s, seed %llu", name, (unsigned long long)options->seed);
}

static const char *note_of(berth_arena *arena, const berth_vta_replay *r) {
    if (r->report.race)
        return berth_arena_printf(arena, "the result depends on timing: %s", r->report.first_race);
    if (r->report.unordered_finish)
        return "FINISH does not wait for all loads and stores: a board could report too early";
    if (r->counters.undefined_shifts)
        return berth_arena_printf(
            arena, "%llu lanes were shifted by more than 31 bits, which boards do differently",
            (unsigned long long)r->counters.undefined_shifts);
    return NULL;
}

static void try_order(vta_command *command, const berth_vta_trace *trace,
                      const berth_vta_run_options *options, outcome *out) {
    berth_arena *arena = command->cli.arena;
    berth_vta_replay replay;
    berth_status status = berth_vta_trace_replay(trace, berth_allocator_system(), options, &replay);
    out->orders++;
    const char *order = order_text(arena, options);
    if (!status && !out->note) out->note = note_of(arena, &replay);
    if (!status && !replay.counted) out->counted = false;
    if (status && !out->problem)
        out->problem = berth_arena_printf(arena, "refused (order %s): %s", order,
                                          berth_status_message(status));
    if (!status && !replay.reproduced && !out->problem)
        out->problem = berth_arena_printf(
            arena, "%llu bytes differ, the first at 0x%llx (order %s)",
            (unsigned long long)replay.wrong_bytes, (unsigned long long)replay.first_wrong, order);
    berth_status_free(status);
}

static berth_status replay_file(vta_command *command, const char *path, berth_vta_trace *trace,
                                outcome *out) {
    *out = (outcome){.counted = true};
    vta_file file;
    BERTH_TRY(vta_read_file(command, path, &file));
    if (file.is_image)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s is an executable: there is nothing recorded to compare with",
                                 path);
    *trace = file.trace;
    berth_vta_shape shape;
    BERTH_TRY(berth_vta_shape_make(&trace->config, &shape));
    berth_vta_run_options options = {.most_micro_ops = command->most_micro_ops,
                                     .timing = command->timing};
    BERTH_TRY(berth_vta_hazards_create(berth_allocator_system(), &shape, &options.hazards));
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order) {
        if (command->order >= 0 && command->order != order) continue;
        options.order = (berth_vta_order)order;
        int seeds = order == BERTH_VTA_ORDER_RANDOM ? random_orders : 1;
        for (int seed = 0; seed < seeds; ++seed) {
            options.seed = (uint64_t)(order + seed + 1);
            try_order(command, trace, &options, out);
        }
    }
    berth_vta_hazards_destroy(options.hazards);
    out->reproduced = !out->problem;
    return BERTH_OK;
}

static uint32_t instruction_count(const berth_vta_trace *trace) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->runs.count; ++i) count += trace->runs.data[i].count;
    return count;
}

static void print_outcome(const char *path, const berth_vta_trace *trace, const outcome *o) {
    berth_cli_print("%s: %s\n", path, o->reproduced ? "reproduced" : "NOT reproduced");
    if (o->orders)
        berth_cli_print("  %s: %u instructions, %u orders, counters %s\n", trace->name,
                        instruction_count(trace), o->orders, o->counted ? "agree" : "differ");
    if (o->problem) berth_cli_print("  %s\n", o->problem);
    if (o->note) berth_cli_print("  note: %s\n", o->note);
}

static json_t *outcome_json(const char *path, const berth_vta_trace *trace, const outcome *o) {
    return json_pack("{s:o, s:o, s:b, s:b, s:I, s:I, s:o, s:o}", "file", berth_cli_json_text(path),
                     "name", berth_cli_json_text(trace->name), "reproduced", (int)o->reproduced,
                     "counters_agree", (int)o->counted, "instructions",
                     (json_int_t)instruction_count(trace), "orders", (json_int_t)o->orders,
                     "problem", berth_cli_json_text(o->problem), "note",
                     berth_cli_json_text(o->note));
}

berth_status vta_replay(vta_command *command) {
    json_t *all = command->json ? json_array() : NULL;
    uint32_t reproduced = 0;
    for (uint32_t i = 0; i < command->files.count; ++i) {
        const char *path = command->files.data[i];
        berth_vta_trace trace;
        memset(&trace, 0, sizeof(trace));
        trace.name = "";
        outcome o;
        berth_status status = replay_file(command, path, &trace, &o);
        if (status)
            o.problem = berth_arena_strdup(command->cli.arena, berth_status_message(status));
        berth_status_free(status);
        reproduced += o.reproduced;
        if (all)
            json_array_append_new(all, outcome_json(path, &trace, &o));
        else
            print_outcome(path, &trace, &o);
    }
    bool fine = reproduced == command->files.count;
    if (all)
        berth_cli_print_json(json_pack("{s:o, s:b}", "traces", all, "reproduced", (int)fine));
    else
        berth_cli_print("%u of %u reproduced\n", reproduced, command->files.count);
    if (!fine) command->cli.exit_status = 1;
    return BERTH_OK;
}
