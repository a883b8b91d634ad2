// The timing model: single costs by hand, and what must hold of any run.
#include <stdlib.h>

#include "tests/vta/programs.h"

typedef struct log_of_events {
    berth_vta_event events[512];
    uint32_t count;
} log_of_events;

static void note(void *user, const berth_vta_event *event) {
    log_of_events *log = user;
    cr_assert_lt(log->count, 512);
    log->events[log->count++] = *event;
}

static berth_vta_report time_program(program *p, berth_vta_timing timing, log_of_events *log) {
    berth_vta_model *model = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &p->config, &model));
    berth_vta_run_options options = {
        .order = BERTH_VTA_ORDER_TIME, .timing = timing, .observe = note, .user = log};
    berth_vta_report report;
    log->count = 0;
    assert_ok(berth_vta_run(model, &p->dram, p->address, p->count, &options, &report));
    berth_vta_model_destroy(model);
    return report;
}

static const berth_vta_timing round_figures = {.dram_bytes_per_cycle = 8,
                                               .dram_latency = 100,
                                               .row_cycles = 10,
                                               .pad_elements_per_cycle = 2,
                                               .gemm_interval = 1,
                                               .alu_interval = 2,
                                               .pipeline_latency = 30,
                                               .issue_cycles = 5,
                                               .token_cycles = 1,
                                               .shared_port = 1};

Test(vta_timing, costs_by_hand) {
    program p;
    begin_program(&p, configuration(0), 8, 1);
    for (int i = 0; i < 4; ++i) put_micro_op(&p, PROGRAM_BASE + 4 * (uint64_t)i, 0, 0, 0);
    // 3 rows of 2 elements of 16 bytes: 100 + 2 * 10 + 96 / 8; 4 elements of padding; issue.
    add_instruction(&p, (berth_vta_instruction){.memory_type = BERTH_VTA_INP,
                                                .dram_base = PROGRAM_BASE / 16,
                                                .y_size = 3,
                                                .x_size = 2,
                                                .x_stride = 5,
                                                .y_pad_before = 2,
                                                .push_next = 1});
    // 16 bytes in one row: 100 + 2, and issue.
    add_instruction(&p,
                    (berth_vta_instruction){
                        .dram_base = PROGRAM_BASE / 4, .y_size = 1, .x_size = 4, .x_stride = 4});
    // 4 * 5 * 7 micro-ops, once a cycle.
    add_instruction(
        &p,
        (berth_vta_instruction){
            .opcode = BERTH_VTA_GEMM, .pop_prev = 1, .uop_end = 4, .iter_out = 5, .iter_in = 7});
    // The same every other cycle, and a pause.
    add_instruction(
        &p, (berth_vta_instruction){
                .opcode = BERTH_VTA_ALU, .uop_end = 4, .iter_out = 5, .iter_in = 7, .use_imm = 1});
    add_instruction(&p, (berth_vta_instruction){.opcode = BERTH_VTA_FINISH});
    static log_of_events log;
    berth_vta_report report = time_program(&p, round_figures, &log);
    const struct {
        uint64_t ready, start, port, end;
    } expected[] = {
        {0, 0, 0, 132 + 2 + 5},
        {0, 0, 132, 132 + 102 + 5},  // the port is busy with the first
        {239, 239, 239, 239 + 140 + 30 + 5},
        {414, 414, 414, 414 + 280 + 30 + 5},
        {729, 729, 729, 734},
    };
    cr_assert_eq(log.count, 5);
    for (uint32_t i = 0; i < 5; ++i) {
        cr_assert_eq(log.events[i].ready, expected[i].ready, "%u", i);
        cr_assert_eq(log.events[i].start, expected[i].start, "%u", i);
        cr_assert_eq(log.events[i].port, expected[i].port, "%u", i);
        cr_assert_eq(log.events[i].end, expected[i].end, "%u: %llu", i,
                     (unsigned long long)log.events[i].end);
    }
    cr_assert_eq(report.cycles, 734);
    cr_assert_eq(report.units[BERTH_VTA_UNIT_COMPUTE].port_stall, 132);
    cr_assert_eq(report.units[BERTH_VTA_UNIT_COMPUTE].token_stall, 0);
    // With a port for each unit, compute need not wait, but for the token: it comes at 140.
    berth_vta_timing own_ports = round_figures;
    own_ports.shared_port = 0;
    report = time_program(&p, own_ports, &log);
    cr_assert_eq(report.cycles, 140 + 175 + 315 + 5);
    cr_assert_eq(report.units[BERTH_VTA_UNIT_COMPUTE].token_stall, 140 - 107);
    end_program(&p);
}

static bool pops(const berth_vta_instruction *i) {
    return i->pop_prev || i->pop_next;
}

// One after the other in each unit, one at a time at the port, and no token before it is given.
static void check_run(const log_of_events *log, const berth_vta_report *report,
                      const berth_vta_timing *timing) {
    uint64_t busy_until[3] = {0, 0, 0}, port_until = 0, stalls[3] = {0, 0, 0};
    for (uint32_t n = 0; n < log->count; ++n) {
        const berth_vta_event *e = &log->events[n];
        cr_assert_eq(e->ready, busy_until[e->unit]);
        cr_assert(e->ready <= e->start && e->start <= e->port && e->port <= e->end);
        cr_assert(e->start == e->ready || pops(&e->decoded));
        busy_until[e->unit] = e->end;
        stalls[e->unit] += e->port - e->ready;
        if (e->work.dram_bytes) {
            cr_assert_geq(e->port, port_until);
            port_until = e->port + timing->dram_latency +
                         (e->work.dram_rows - 1) * timing->row_cycles +
                         (e->work.dram_bytes + timing->dram_bytes_per_cycle - 1) /
                             timing->dram_bytes_per_cycle;
            cr_assert_leq(port_until, e->end);
        }
        // Random programs are chains: whatever comes later in the stream starts later.
        for (uint32_t k = 0; k < n; ++k)
            if (log->events[k].unit != e->unit && log->events[k].instruction < e->instruction)
                cr_assert_geq(e->start, log->events[k].end + timing->token_cycles);
    }
    for (int u = 0; u < 3; ++u) {
        cr_assert_eq(report->units[u].busy + stalls[u], busy_until[u]);
        cr_assert_leq(busy_until[u], report->cycles);
    }
}

Test(vta_timing, holds_in_any_run) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
        program p;
        random_program(&p, configuration((int)(seed % CONFIGURATIONS)), 40, seed);
        static log_of_events log;
        berth_vta_report report = time_program(&p, round_figures, &log);
        check_run(&log, &report, &round_figures);
        cr_assert_eq(log.count, p.count);
        end_program(&p);
    }
}

Test(vta_timing, figures_by_name) {
    berth_vta_timing timing = berth_vta_timing_default();
    assert_ok(berth_vta_timing_set(&timing, "dram_latency", 7));
    cr_assert_eq(timing.dram_latency, 7);
    assert_fails(berth_vta_timing_set(&timing, "dram_latenzy", 7), BERTH_NOT_FOUND,
                 "did you mean dram_latency?");
    assert_fails(berth_vta_timing_set(&timing, "pad_elements_per_cycle", 0), BERTH_OUT_OF_RANGE,
                 "from 1");
    assert_fails(berth_vta_timing_set(&timing, "row_cycles", 1000001), BERTH_OUT_OF_RANGE,
                 "to 1000000");
}
