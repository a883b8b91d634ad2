// berth vta profile: what the three units do over time, by the timing model.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/timeline.h"
#include "drivers/vta/command/command.h"

typedef struct profiled_step {
    const vta_step *step;
    uint64_t cycles, macs;
} profiled_step;

typedef struct profile {
    vta_command *command;
    vta_file file;
    const char *name;
    berth_vta_report report;  // summed over the runs
    uint64_t macs;            // of GEMMs without reset
    uint64_t begin;           // of the run at hand, in cycles since the first
    BERTH_VEC(berth_timeline_span) spans;
    BERTH_VEC(profiled_step) steps;  // of executables
} profile;

static const char *const colours[] = {"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#d9d9d9"};
enum { colour_load, colour_gemm, colour_store, colour_alu, colour_stall };

static const char *colour_of(const berth_vta_event *e) {
    if (e->decoded.opcode == BERTH_VTA_GEMM) return colours[colour_gemm];
    if (e->decoded.opcode == BERTH_VTA_ALU) return colours[colour_alu];
    return colours[e->decoded.opcode == BERTH_VTA_STORE ? colour_store : colour_load];
}

static void observe(void *user, const berth_vta_event *e) {
    profile *p = user;
    berth_arena *arena = p->command->cli.arena;
    if (e->decoded.opcode == BERTH_VTA_GEMM && !e->decoded.reset)
        p->macs += e->work.micro_ops;  // multiplied below
    if (!p->command->output) return;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text, "%u: ", e->instruction);
    berth_vta_print(&e->decoded, &text);
    if (e->start > e->ready)
        berth_vec_push(arena, &p->spans,
                       (berth_timeline_span){.start = (double)(p->begin + e->ready),
                                             .end = (double)(p->begin + e->start),
                                             .row = e->unit,
                                             .group = 1,
                                             .colour = colours[colour_stall],
                                             .name = berth_strbuf_text(&text),
                                             .note = "waits for a token"});
    if (e->port > e->start)
        berth_vec_push(arena, &p->spans,
                       (berth_timeline_span){.start = (double)(p->begin + e->start),
                                             .end = (double)(p->begin + e->port),
                                             .row = e->unit,
                                             .group = 1,
                                             .colour = colours[colour_stall],
                                             .name = berth_strbuf_text(&text),
                                             .note = "waits for the memory port"});
    berth_vec_push(arena, &p->spans,
                   (berth_timeline_span){.start = (double)(p->begin + e->port),
                                         .end = (double)(p->begin + e->end),
                                         .row = e->unit,
                                         .group = 2 + e->decoded.opcode,
                                         .colour = colour_of(e),
                                         .name = berth_strbuf_text(&text),
                                         .label = berth_vta_opcode_name(e->decoded.opcode)});
}

static void add_report(profile *p, const berth_vta_report *r) {
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        p->report.units[u].count += r->units[u].count;
        p->report.units[u].busy += r->units[u].busy;
        p->report.units[u].token_stall += r->units[u].token_stall;
        p->report.units[u].port_stall += r->units[u].port_stall;
    }
    p->report.cycles += r->cycles;
    p->report.micro_ops += r->micro_ops;
    p->begin += r->cycles;
}

static berth_status run_trace(profile *p, berth_vta_run_options *options) {
    const berth_vta_trace *t = &p->file.trace;
    berth_vta_model *model = NULL;
    BERTH_TRY(berth_vta_model_create(berth_allocator_system(), &t->config, &model));
    berth_vta_dram dram = {t->before, t->base, t->size_bytes};
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; !status && i < t->runs.count; ++i) {
        berth_vta_report report;
        status = berth_vta_run(model, &dram, t->runs.data[i].address, t->runs.data[i].count,
                               options, &report);
        if (!status) add_report(p, &report);
    }
    berth_vta_model_destroy(model);
    return status;
}

// Kernels one after the other, without data.
static berth_status run_image(profile *p, const berth_vta_run_options *options) {
    for (uint32_t i = 0; i < p->file.steps.count; ++i) {
        const vta_step *step = &p->file.steps.data[i];
        uint64_t before = p->macs;
        berth_vta_report report;
        BERTH_TRY(berth_vta_kernel_time(berth_allocator_system(), &p->file.image.config,
                                        step->kernel, options, &report));
        add_report(p, &report);
        uint64_t macs = (p->macs - before)
                        << (p->file.config.log_batch + 2 * p->file.config.log_block);
        berth_vec_push(p->command->cli.arena, &p->steps,
                       (profiled_step){step, report.cycles, macs});
    }
    return BERTH_OK;
}

static berth_status run_all(profile *p) {
    berth_vta_run_options options = {.order = BERTH_VTA_ORDER_TIME,
                                     .most_micro_ops = p->command->most_micro_ops,
                                     .timing = p->command->timing,
                                     .observe = observe,
                                     .user = p};
    BERTH_TRY(p->file.is_image ? run_image(p, &options) : run_trace(p, &options));
    p->macs <<= p->file.config.log_batch + 2 * p->file.config.log_block;
    return BERTH_OK;
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

// Multiplications per cycle, as a share of what the matrix unit could do.
static double utilisation(const profile *p, uint64_t macs, uint64_t cycles) {
    uint64_t lanes = (uint64_t)1 << (p->file.config.log_batch + 2 * p->file.config.log_block);
    return share(macs, cycles * lanes);
}

// What operations a step is for, or its kernel's name.
static const char *what_of(const profiled_step *s) {
    return s->step->op[0] ? s->step->op : s->step->name;
}

static void print_steps(const profile *p) {
    berth_cli_print("  %12s %7s %11s  %s\n", "cycles", "", "utilisation", "step");
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const profiled_step *s = &p->steps.data[i];
        berth_cli_print("  %12llu %6.1f%% %10.1f%%  %s\n", (unsigned long long)s->cycles,
                        share(s->cycles, p->report.cycles), utilisation(p, s->macs, s->cycles),
                        what_of(s));
    }
}

static void print_text(const profile *p, const char *path) {
    char config[96];
    berth_vta_config_text(&p->file.config, config);
    berth_cli_print("%s: %llu cycles on %s, GEMM utilisation %.1f %%\n", path,
                    (unsigned long long)p->report.cycles, config,
                    utilisation(p, p->macs, p->report.cycles));
    berth_cli_print("  %-8s %12s %12s %7s %14s %14s\n", "unit", "instructions", "busy", "",
                    "for tokens", "for the port");
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        const berth_vta_unit_report *unit = &p->report.units[u];
        berth_cli_print(
            "  %-8s %12u %12llu %6.1f%% %14llu %14llu\n", berth_vta_unit_name((berth_vta_unit)u),
            unit->count, (unsigned long long)unit->busy, share(unit->busy, p->report.cycles),
            (unsigned long long)unit->token_stall, (unsigned long long)unit->port_stall);
    }
    if (p->steps.count > 1) print_steps(p);
}

static json_t *profile_json(const profile *p, const char *path) {
    char config[96];
    berth_vta_config_text(&p->file.config, config);
    json_t *units = json_array();
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        const berth_vta_unit_report *unit = &p->report.units[u];
        json_array_append_new(units, json_pack("{s:s, s:I, s:I, s:I, s:I}", "unit",
                                               berth_vta_unit_name((berth_vta_unit)u),
                                               "instructions", (json_int_t)unit->count,
                                               "busy_cycles", (json_int_t)unit->busy,
                                               "token_stall_cycles", (json_int_t)unit->token_stall,
                                               "port_stall_cycles", (json_int_t)unit->port_stall));
    }
    json_t *timing = json_object();
#define TIMING(name, value, meaning)                                                               \
    json_object_set_new(timing, #name, json_integer(p->command->timing.name));
#include "drivers/vta/timing.def"
    json_t *steps = json_array();
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const profiled_step *s = &p->steps.data[i];
        json_array_append_new(
            steps,
            json_pack("{s:o, s:o, s:s, s:I, s:I}", "name", berth_cli_json_text(s->step->name), "op",
                      berth_cli_json_text(s->step->op), "kernel", s->step->kernel->name, "cycles",
                      (json_int_t)s->cycles, "multiplications", (json_int_t)s->macs));
    }
    return json_pack("{s:o, s:o, s:s, s:I, s:I, s:f, s:o, s:o, s:o}", "file",
                     berth_cli_json_text(path), "name", berth_cli_json_text(p->name), "config",
                     config, "cycles", (json_int_t)p->report.cycles, "multiplications",
                     (json_int_t)p->macs, "gemm_utilisation_percent",
                     utilisation(p, p->macs, p->report.cycles), "units", units, "steps", steps,
                     "timing", timing);
}

static berth_status draw(profile *p) {
    berth_arena *arena = p->command->cli.arena;
    berth_timeline_row rows[BERTH_VTA_UNIT_COUNT];
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u)
        rows[u] = (berth_timeline_row){
            .name = berth_vta_unit_name((berth_vta_unit)u),
            .note = berth_arena_printf(arena, "busy %.1f %%",
                                       share(p->report.units[u].busy, p->report.cycles)),
            .unused = p->report.units[u].count == 0};
    const berth_timeline_key keys[] = {{colours[colour_load], "LOAD"},
                                       {colours[colour_gemm], "GEMM"},
                                       {colours[colour_alu], "ALU"},
                                       {colours[colour_store], "STORE"},
                                       {colours[colour_stall], "waits"}};
    const char *notes[] = {berth_arena_printf(arena, "%llu cycles, GEMM utilisation %.1f %%",
                                              (unsigned long long)p->report.cycles,
                                              utilisation(p, p->macs, p->report.cycles))};
    berth_timeline picture = {.title = p->name,
                              .unit = "cycles",
                              .moments = true,
                              .rows = rows,
                              .row_count = BERTH_VTA_UNIT_COUNT,
                              .spans = p->spans.data,
                              .span_count = p->spans.count,
                              .keys = keys,
                              .key_count = sizeof(keys) / sizeof(keys[0]),
                              .notes = notes,
                              .note_count = 1};
    berth_strbuf out = berth_strbuf_make(arena);
    berth_timeline_draw(&picture, &out);
    return berth_file_write(p->command->output, berth_strbuf_text(&out), out.length);
}

berth_status vta_profile(vta_command *command) {
    json_t *all = command->json ? json_array() : NULL;
    berth_status status = BERTH_OK;
    bool picture_alone = command->output && strcmp(command->output, "-") == 0;
    for (uint32_t i = 0; !status && i < command->files.count; ++i) {
        const char *path = command->files.data[i];
        profile p = {.command = command};
        status = vta_read_file(command, path, &p.file);
        p.name = p.file.is_image ? path : p.file.trace.name;
        if (!status) status = run_all(&p);
        if (status) {
            status = berth_status_prefix(status, "%s", path);
            break;
        }
        if (command->output) status = draw(&p);
        if (all)
            json_array_append_new(all, profile_json(&p, path));
        else if (!picture_alone)
            print_text(&p, path);
    }
    if (status) {
        json_decref(all);
        return status;
    }
    if (all) berth_cli_print_json(json_pack("{s:o}", "profiles", all));
    return BERTH_OK;
}
