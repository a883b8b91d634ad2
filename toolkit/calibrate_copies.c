#include "toolkit/calibrate_copies.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ir/graph/graph.h"
#include "toolkit/step_times.h"

enum { warm_up_runs = 5, fewest_runs = 11, most_runs = 200 };

static const int64_t most_ns = 200000000;  // of the runs of one size, about
// A run with a limit is the device's own thread's, where the caller might be on one of the device's cores.
static const int64_t limit_ns = 60000000000;
static const struct timespec rest = {
    .tv_nsec = 1000000};  // then threads of devices sleep, as in long waits

// ---- the module ---------------------------------------------------------------------------------

typedef struct module_job {
    berth_arena *arena;
    int64_t count;
    berth_module *module;
} module_job;

static berth_status build(void *user) {
    module_job *j = user;
    j->module = berth_module_create(j->arena, "copies");
    berth_func_id main = berth_graph_create(j->module, "main", 0);
    berth_value_id value = berth_graph_add_param(
        j->module, main, "x", berth_type_tensor(j->module, BERTH_DTYPE_F32, 1, &j->count));
    value = berth_graph_op1(j->module, main, BERTH_OP_SIGMOID, &value, 1,
                            berth_loc_node(j->module, "calibration", "copy", "sigmoid"));
    berth_graph_get(j->module, main)->values.data[value].name = berth_module_intern(j->module, "y");
    berth_graph_set_results(j->module, main, &value, 1);
    return BERTH_OK;
}

berth_status berth_toolkit__calibrate_copy_module(void *user, berth_arena *arena,
                                                  berth_module **out_module) {
    module_job job = {.arena = arena, .count = *(const int64_t *)user};
    BERTH_TRY(berth_arena_try(arena, build, &job));
    *out_module = job.module;
    return BERTH_OK;
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct measurement {
    const berth_program *program;
    const berth_target *host, *device;
    berth_cost_table *table;
    uint64_t size_bytes;
    uint32_t runs;
    double to_device_ns[most_runs];
    double to_host_ns[most_runs];
} measurement;

// 0: the device works in the host's memory.
static uint64_t copied_bytes(const berth_program *program) {
    for (uint32_t i = 0; i < program->step_count; ++i)
        if (program->steps[i].kind == BERTH_STEP_COPY)
            return program->tensors[program->steps[i].bindings[0]].size_bytes;
    return 0;
}

static void note_run(measurement *m, berth_session *session) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    int64_t first_ns = INT64_MAX, last_ns = 0;
    for (uint32_t i = 0; i < report.step_count; ++i) {
        if (m->program->steps[i].kind != BERTH_STEP_DISPATCH) continue;
        if (report.steps[i].start_ns < first_ns) first_ns = report.steps[i].start_ns;
        if (report.steps[i].end_ns > last_ns) last_ns = report.steps[i].end_ns;
    }
    if (first_ns <= report.run_start_ns || last_ns >= report.run_end_ns) return;
    m->to_device_ns[m->runs] = (double)(first_ns - report.run_start_ns);
    m->to_host_ns[m->runs++] = (double)(report.run_end_ns - last_ns);
}

static void add_record(measurement *m, const berth_target *from, const berth_target *to,
                       double *ns) {
    berth_arena *arena = berth_cost_table_arena(m->table);
    berth_cost_record record = {.target = berth_target_culled(arena, to),
                                .from = berth_target_culled(arena, from),
                                .kind = "",
                                .work = "",
                                .bytes = (double)m->size_bytes,
                                .ns = berth_median(ns, m->runs),
                                .runs = m->runs};
    berth_cost_table_add(m->table, &record);
}

static berth_status add_records(void *user) {
    measurement *m = user;
    add_record(m, m->host, m->device, m->to_device_ns);
    add_record(m, m->device, m->host, m->to_host_ns);
    return BERTH_OK;
}

berth_status berth_toolkit__calibrate_copy(const berth_program *program, berth_session *session,
                                           const berth_target *host, const berth_target *device,
                                           berth_cost_table *table) {
    measurement m = {.program = program,
                     .host = host,
                     .device = device,
                     .table = table,
                     .size_bytes = copied_bytes(program)};
    for (int i = 0; i < warm_up_runs; ++i) BERTH_TRY(berth_session_run(session, -1));
    int64_t start_ns = berth_clock_ns();
    for (uint32_t i = 0; i < most_runs; ++i) {
        if (i >= fewest_runs && berth_clock_ns() - start_ns >= most_ns) break;
        if (m.size_bytes == 0) nanosleep(&rest, NULL);
        BERTH_TRY(berth_session_run(session, m.size_bytes == 0 ? limit_ns : -1));
        note_run(&m, session);
    }
    return m.runs ? berth_arena_try(berth_cost_table_arena(table), add_records, &m) : BERTH_OK;
}

bool berth_toolkit__has_copies(berth_arena *arena, const berth_cost_table *table,
                               const berth_target *host, const berth_target *device) {
    const char *from = berth_target_culled(arena, host);
    const char *to = berth_target_culled(arena, device);
    for (uint32_t i = 0; i < berth_cost_table_count(table); ++i) {
        const berth_cost_record *record = berth_cost_table_at(table, i);
        if (record->from && strcmp(record->from, from) == 0 && strcmp(record->target, to) == 0)
            return true;
    }
    return false;
}
