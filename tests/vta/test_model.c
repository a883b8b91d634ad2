// What instructions compute: against the plain interpreter of reference.c, on random programs.
#include <stdlib.h>

#include "tests/vta/programs.h"
#include "tests/vta/reference.h"

// Both begin with the same garbage in SRAM.
static reference *reference_like(const berth_vta_model *model) {
    reference *r = reference_make(&model->config);
    const berth_vta_shape *s = &model->shape;
    size_t vector = (size_t)s->batch * s->block;
    for (size_t i = 0; i < s->memory[BERTH_VTA_UOP].depth; ++i)
        for (int b = 0; b < 4; ++b) r->uop[i] |= (uint32_t)model->uop[4 * i + (size_t)b] << (8 * b);
    for (size_t i = 0; i < s->memory[BERTH_VTA_INP].depth * vector; ++i)
        r->inp[i] = s->inp_bytes == 1 ? (int8_t)model->inp[i]
                                      : (int16_t)(model->inp[2 * i] | model->inp[2 * i + 1] << 8);
    for (size_t i = 0; i < (size_t)s->memory[BERTH_VTA_WGT].depth * s->block * s->block; ++i)
        r->wgt[i] = s->wgt_bytes == 1 ? (int8_t)model->wgt[i]
                                      : (int16_t)(model->wgt[2 * i] | model->wgt[2 * i + 1] << 8);
    for (size_t i = 0; i < s->memory[BERTH_VTA_ACC].depth * vector; ++i) r->acc[i] = model->acc[i];
    return r;
}

static void compare_accumulators(const berth_vta_model *model, const reference *r) {
    const berth_vta_shape *s = &model->shape;
    for (size_t i = 0; i < (size_t)s->memory[BERTH_VTA_ACC].depth * s->batch * s->block; ++i)
        cr_assert_eq(model->acc[i], r->acc[i], "accumulator lane %zu", i);
}

static void compare_once(int config, uint64_t seed) {
    program p;
    random_program(&p, configuration(config), 60, seed);
    berth_vta_model *model = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &p.config, &model));
    berth_vta_model_scramble(model, seed);
    reference *r = reference_like(model);
    uint8_t *expected = malloc(PROGRAM_BYTES);
    memcpy(expected, p.dram.data, PROGRAM_BYTES);
    cr_assert(
        reference_run(r, expected, PROGRAM_BASE, PROGRAM_BYTES, (int64_t)p.address, (int)p.count));
    berth_vta_hazards *hazards = NULL;
    assert_ok(berth_vta_hazards_create(berth_allocator_system(), &p.shape, &hazards));
    berth_vta_run_options options = {.order = (berth_vta_order)(seed % BERTH_VTA_ORDER_COUNT),
                                     .seed = seed,
                                     .hazards = hazards,
                                     .refuse_unordered = true};
    model->refuse_shifts = true;
    berth_vta_report report;
    berth_status status = berth_vta_run(model, &p.dram, p.address, p.count, &options, &report);
    cr_assert_null(status, "configuration %d, seed %llu: %s", config, (unsigned long long)seed,
                   berth_status_message(status));
    for (int i = 0; i < PROGRAM_BYTES; ++i)
        cr_assert_eq(p.dram.data[i], expected[i], "configuration %d, seed %llu, DRAM byte %d",
                     config, (unsigned long long)seed, i);
    compare_accumulators(model, r);
    berth_vta_hazards_destroy(hazards);
    reference_free(r);
    free(expected);
    berth_vta_model_destroy(model);
    end_program(&p);
}

Test(vta_model, agrees_with_the_plain_interpreter) {
    for (int config = 0; config < CONFIGURATIONS; ++config)
        for (uint64_t seed = 1; seed <= 60; ++seed) compare_once(config, seed);
}

// By register, lane by lane, with counts on both sides of 0 and every edge of 32 bits.
Test(vta_model, shifts_by_register) {
    program p;
    begin_program(&p, configuration(0), 16, 1);
    static const int32_t values[16] = {0,  1,  -1, INT32_MAX, INT32_MIN, 5,  -5, 1000,
                                       -1, -1, 77, INT32_MIN, INT32_MAX, -9, 9,  3};
    static const int32_t counts[16] = {0,   31, 31,  31, 31, 1,  1,  -3,
                                       -31, -1, -31, -1, -1, 15, 16, -16};
    for (int i = 0; i < 16; ++i)
        for (int b = 0; b < 4; ++b) {
            p.dram.data[4 * i + b] = (uint8_t)((uint32_t)values[i] >> (8 * b));
            p.dram.data[64 + 4 * i + b] = (uint8_t)((uint32_t)counts[i] >> (8 * b));
        }
    put_micro_op(&p, PROGRAM_BASE + 4096, 0, 1, 0);
    add_instruction(&p, (berth_vta_instruction){.memory_type = BERTH_VTA_ACC,
                                                .dram_base = PROGRAM_BASE / 64,
                                                .y_size = 1,
                                                .x_size = 2,
                                                .x_stride = 2});
    add_instruction(
        &p, (berth_vta_instruction){
                .dram_base = (PROGRAM_BASE + 4096) / 4, .y_size = 1, .x_size = 1, .x_stride = 1});
    add_instruction(&p, (berth_vta_instruction){.opcode = BERTH_VTA_ALU,
                                                .alu_opcode = BERTH_VTA_SHR,
                                                .uop_end = 1,
                                                .iter_out = 1,
                                                .iter_in = 1});
    add_instruction(&p, (berth_vta_instruction){.opcode = BERTH_VTA_FINISH});
    berth_vta_model *model = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &p.config, &model));
    berth_vta_run_options options = {0};
    berth_vta_report report;
    assert_ok(berth_vta_run(model, &p.dram, p.address, p.count, &options, &report));
    for (int i = 0; i < 16; ++i) {
        // In exact arithmetic: floor(value / 2^count), or the low 32 bits of value * 2^-count.
        int64_t power = (int64_t)1 << (counts[i] < 0 ? -counts[i] : counts[i]);
        int64_t exact = values[i] * power;
        if (counts[i] >= 0) {
            exact = values[i] / power;
            if (values[i] % power < 0) exact--;
        }
        cr_assert_eq(model->acc[i], (int32_t)(uint32_t)(uint64_t)exact, "lane %d", i);
    }
    cr_assert_eq(model->counters.undefined_shifts, 0);
    // A count of 32 is nothing's: refused where asked for, counted otherwise.
    model->acc[16] = 32;
    assert_ok(berth_vta_run(model, &p.dram, p.address, p.count, &options, &report));
    p.dram.data[64] = 32;
    assert_ok(berth_vta_run(model, &p.dram, p.address, p.count, &options, &report));
    cr_assert_eq(model->counters.undefined_shifts, 1);
    model->refuse_shifts = true;
    assert_fails(berth_vta_run(model, &p.dram, p.address, p.count, &options, &report),
                 BERTH_OUT_OF_RANGE, "instruction 2 (ALU): shift-range");
    cr_assert_eq(report.fault, BERTH_VTA_FAULT_SHIFT_RANGE);
    berth_vta_model_destroy(model);
    end_program(&p);
}

// Every allocation of a model and a run fails once: a clear status, and nothing left behind.
Test(vta_model, memory_runs_out) {
    program p;
    random_program(&p, configuration(3), 10, 3);
    int64_t fail_at = 1;
    for (bool done = false; !done; ++fail_at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = fail_at;
        berth_vta_model *model = NULL;
        berth_allocator allocator = berth_counting_allocator_get(&counting);
        berth_status status = berth_vta_model_create(allocator, &p.config, &model);
        berth_vta_run_options options = {0};
        berth_vta_report report;
        if (!status) status = berth_vta_run(model, &p.dram, p.address, p.count, &options, &report);
        done = !status;
        cr_assert(done || berth_status_code(status) == BERTH_OUT_OF_MEMORY);
        berth_status_free(status);
        berth_vta_model_destroy(model);
        cr_assert_eq(counting.live_count, 0);
        cr_assert_lt(fail_at, 100);
    }
    cr_assert_gt(fail_at, 12);
    end_program(&p);
}
