// Tokens, order and every named fault.
#include <stdlib.h>

#include "tests/vta/programs.h"

// Runs a program on a new model in an order; with hazards looked for and refused.
static berth_status run_as(program *p, berth_vta_order order, uint64_t seed,
                           berth_vta_report *report) {
    berth_vta_model *model = NULL;
    berth_vta_hazards *hazards = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &p->config, &model));
    assert_ok(berth_vta_hazards_create(berth_allocator_system(), &p->shape, &hazards));
    berth_vta_run_options options = {.order = order,
                                     .seed = seed,
                                     .hazards = hazards,
                                     .refuse_unordered = true,
                                     .most_micro_ops = 100000};
    berth_status status = berth_vta_run(model, &p->dram, p->address, p->count, &options, report);
    berth_vta_hazards_destroy(hazards);
    berth_vta_model_destroy(model);
    return status;
}

// The program of these instructions fails with the same fault in every order.
static void fails(const berth_vta_instruction *list, uint32_t count, berth_vta_fault fault,
                  const char *part) {
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order) {
        program p;
        begin_program(&p, configuration(0), 64, 1);
        for (uint64_t at = 0; at < 64; ++at)  // micro-ops 0 to 63: results 0 to 63, operand 8
            put_micro_op(&p, PROGRAM_BASE + 4 * at, (uint32_t)at, 8, 2);
        for (uint32_t i = 0; i < count; ++i) add_instruction(&p, list[i]);
        berth_vta_report report;
        berth_status status = run_as(&p, (berth_vta_order)order, 1, &report);
        cr_assert_eq(report.fault, fault, "order %s: %s instead of %s: %s",
                     berth_vta_order_name((berth_vta_order)order),
                     berth_vta_fault_name(report.fault), berth_vta_fault_name(fault),
                     berth_status_message(status));
        cr_assert_not_null(strstr(berth_status_message(status), berth_vta_fault_name(fault)));
        cr_assert_not_null(strstr(berth_status_message(status), part), "%s",
                           berth_status_message(status));
        berth_status_free(status);
        end_program(&p);
    }
}
#define FAILS(fault, part, ...)                                                                    \
    do {                                                                                           \
        const berth_vta_instruction list[] = {__VA_ARGS__};                                        \
        fails(list, sizeof(list) / sizeof(list[0]), BERTH_VTA_FAULT_##fault, part);                \
    } while (0)

#define FINISH                                                                                     \
    { .opcode = BERTH_VTA_FINISH }
#define UOPS                                                                                       \
    {                                                                                              \
        .memory_type = BERTH_VTA_UOP, .dram_base = PROGRAM_BASE / 4, .y_size = 1, .x_size = 64,    \
        .x_stride = 64                                                                             \
    }
#define TRANSFER(op, memory, base, x)                                                              \
    .opcode = BERTH_VTA_##op, .memory_type = BERTH_VTA_##memory, .dram_base = (base), .y_size = 1, \
    .x_size = (x), .x_stride = (x)
#define LOOP(op, begin, end)                                                                       \
    .opcode = BERTH_VTA_##op, .uop_begin = (begin), .uop_end = (end), .iter_out = 1, .iter_in = 1

Test(vta_run, bad_instructions) {
    FAILS(BAD_TOKEN, "instruction 0 (LOAD): bad-token: load has no unit before it",
          {TRANSFER(LOAD, INP, 0x1000, 1), .pop_prev = 1}, FINISH);
    FAILS(BAD_TOKEN, "give a token to", {TRANSFER(LOAD, WGT, 0x100, 1), .push_prev = 1}, FINISH);
    FAILS(BAD_TOKEN, "store has no unit after it", {TRANSFER(STORE, OUT, 0x1000, 1), .pop_next = 1},
          FINISH);
    FAILS(BAD_TOKEN, "store has no unit after it", {.opcode = BERTH_VTA_STORE, .push_next = 1},
          FINISH);
    FAILS(BAD_ALU, "instruction 1 (ALU): bad-alu: 5", UOPS, {LOOP(ALU, 0, 1), .alu_opcode = 5},
          FINISH);
    FAILS(BAD_MEMORY, "LOAD cannot fill memory 4", {TRANSFER(LOAD, OUT, 0x1000, 1)}, FINISH);
    FAILS(BAD_MEMORY, "not 3", {TRANSFER(STORE, ACC, 0x400, 1)}, FINISH);
    FAILS(BAD_PADDING, "padding", {TRANSFER(STORE, OUT, 0x1000, 1), .x_pad_after = 1}, FINISH);
    FAILS(NO_FINISH, "none of the 1", UOPS);
    // No opcode can be encoded for 5 to 7: the bits are set by hand.
    for (uint8_t opcode = 5; opcode < 8; ++opcode) {
        program p;
        begin_program(&p, configuration(0), 4, 1);
        add_instruction(&p, (berth_vta_instruction)FINISH);
        p.dram.data[p.address - PROGRAM_BASE] = opcode;
        berth_vta_report report;
        assert_fails(run_as(&p, BERTH_VTA_ORDER_PROGRAM, 1, &report), BERTH_INVALID_ARGUMENT,
                     "bad-opcode");
        cr_assert_eq(report.instruction, 0);
        end_program(&p);
    }
}

Test(vta_run, addresses) {
    FAILS(SRAM_RANGE, "elements 2047 to 2049 of inp, which has 2048",
          {TRANSFER(LOAD, INP, 0x1000, 2), .sram_base = 2047}, FINISH);
    FAILS(SRAM_RANGE, "wgt, which has 1024",
          {TRANSFER(LOAD, WGT, 0x100, 1), .sram_base = 1020, .y_pad_after = 4}, FINISH);
    FAILS(SRAM_RANGE, "acc8, which has 2048",
          {TRANSFER(LOAD, ACC8, 0x1000, 1), .sram_base = 2045, .x_pad_before = 3}, FINISH);
    FAILS(SRAM_RANGE, "out, which has 2048", {TRANSFER(STORE, OUT, 0x1000, 2), .sram_base = 2047},
          FINISH);
    // One micro-op too many for the cache, at its very end.
    FAILS(SRAM_RANGE, "uop, which has 8192", {TRANSFER(LOAD, UOP, 0x4000, 64), .sram_base = 8129},
          FINISH);
    FAILS(UOP_RANGE, "micro-ops 8191 to 8193 of a buffer of 8192", {LOOP(GEMM, 8191, 8193)},
          FINISH);
    FAILS(INDEX_RANGE, "result index up to 2048 of acc", UOPS,
          {.opcode = BERTH_VTA_GEMM,
           .uop_end = 1,
           .iter_out = 1025,
           .iter_in = 1,
           .dst_factor_out = 2},
          FINISH);
    FAILS(INDEX_RANGE, "operand index up to 2048 of inp", UOPS,
          {.opcode = BERTH_VTA_GEMM,
           .uop_end = 1,
           .iter_out = 1,
           .iter_in = 2041,
           .src_factor_in = 1},
          FINISH);
    FAILS(INDEX_RANGE, "weight index up to 1025 of wgt", UOPS,
          {.opcode = BERTH_VTA_GEMM,
           .uop_end = 1,
           .iter_out = 2,
           .iter_in = 1,
           .wgt_factor_out = 1023},
          FINISH);
    // Also the operand that an immediate replaces; but not those of a reset.
    FAILS(INDEX_RANGE, "operand index up to 2055 of acc", UOPS,
          {.opcode = BERTH_VTA_ALU,
           .uop_end = 1,
           .iter_out = 2,
           .iter_in = 1,
           .use_imm = 1,
           .src_factor_out = 2047},
          FINISH);
    FAILS(NO_FINISH, "none", UOPS,
          {.opcode = BERTH_VTA_GEMM,
           .reset = 1,
           .uop_end = 1,
           .iter_out = 2,
           .iter_in = 1,
           .src_factor_out = 2047,
           .wgt_factor_out = 1023});
    uint32_t end = PROGRAM_BASE + PROGRAM_BYTES;
    FAILS(DRAM_RANGE, "for inp; the device has 0x10000 to 0x50000",
          {TRANSFER(LOAD, INP, (PROGRAM_BASE - 16) / 16, 1)}, FINISH);
    FAILS(DRAM_RANGE, "for out", {TRANSFER(STORE, OUT, end / 16 - 1, 2)}, FINISH);
    FAILS(DRAM_RANGE, "for wgt",
          {.memory_type = BERTH_VTA_WGT,
           .dram_base = end / 256 - 4,
           .y_size = 2,
           .x_size = 1,
           .x_stride = 4},
          FINISH);
    FAILS(DRAM_RANGE, "bytes 0x0 to 0x40", {TRANSFER(LOAD, ACC, 0, 1)}, FINISH);
    FAILS(DRAM_RANGE, "acc", {TRANSFER(LOAD, ACC, UINT32_MAX, 1)}, FINISH);
    FAILS(WORK_LIMIT, "100000 are allowed", UOPS,
          {.opcode = BERTH_VTA_GEMM, .uop_end = 64, .iter_out = 16383, .iter_in = 16383}, FINISH);
}

// Addresses are counted in elements and taken modulo 2^32, as by the hardware's 32 bits.
Test(vta_run, addresses_wrap) {
    program p;
    begin_program(&p, configuration(0), 8, 1);
    uint32_t wrapped = 0x04000000 + PROGRAM_BASE / 64;  // times 64: 2^32 too much
    add_instruction(&p, (berth_vta_instruction){TRANSFER(LOAD, ACC, wrapped, 1)});
    add_instruction(&p, (berth_vta_instruction)FINISH);
    berth_vta_report report;
    assert_ok(run_as(&p, BERTH_VTA_ORDER_PROGRAM, 1, &report));
    end_program(&p);
}

static void run_at(uint64_t address, uint64_t count, const char *part) {
    program p;
    begin_program(&p, configuration(0), 8, 1);
    add_instruction(&p, (berth_vta_instruction)FINISH);
    p.address = address;
    berth_vta_model *model = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &p.config, &model));
    berth_vta_run_options options = {0};
    berth_vta_report report;
    assert_fails(berth_vta_run(model, &p.dram, address, count, &options, &report),
                 BERTH_OUT_OF_RANGE, part);
    cr_assert_eq(report.fault, BERTH_VTA_FAULT_BAD_ADDRESS);
    berth_vta_model_destroy(model);
    end_program(&p);
}

Test(vta_run, streams_outside_of_memory) {
    run_at(PROGRAM_BASE + 8, 1, "not aligned");
    run_at(PROGRAM_BASE - 16, 1, "the device has");
    run_at(PROGRAM_BASE + PROGRAM_BYTES, 1, "the device has");
    run_at(PROGRAM_BASE, PROGRAM_BYTES / 16 + 1, "the device has");
    run_at(UINT64_MAX - 15, 1, "the device has");
    run_at(PROGRAM_BASE, (uint64_t)1 << 60, "a run has at most");
}

Test(vta_run, deadlocks) {
    FAILS(DEADLOCK,
          "load is done with its 0; compute waits at instruction 0 (GEMM) for a token from load; "
          "store waits at instruction 1 (STORE) for a token from compute",
          {.opcode = BERTH_VTA_GEMM, .pop_prev = 1}, {.opcode = BERTH_VTA_STORE, .pop_prev = 1},
          FINISH);
    // Each waits for the other, and both have something to give afterwards.
    FAILS(DEADLOCK, "load waits at instruction 0 (LOAD) for a token from compute",
          {TRANSFER(LOAD, INP, 0x1000, 1), .pop_next = 1, .push_next = 1},
          {.opcode = BERTH_VTA_GEMM, .pop_prev = 1, .push_prev = 1}, FINISH);
    // One token for two.
    FAILS(DEADLOCK, "store waits at instruction 3 (STORE)",
          {.opcode = BERTH_VTA_GEMM, .push_next = 1}, {.opcode = BERTH_VTA_STORE, .pop_prev = 1},
          FINISH, {.opcode = BERTH_VTA_STORE, .pop_prev = 1});
}

Test(vta_run, tokens_and_finish) {
    FAILS(TOKENS_LEFT, "1 from load to compute", {TRANSFER(LOAD, INP, 0x1000, 1), .push_next = 1},
          FINISH);
    FAILS(AFTER_FINISH, "load or store", {TRANSFER(LOAD, INP, 0x1000, 1)}, FINISH);
    FAILS(AFTER_FINISH, "load or store", {.opcode = BERTH_VTA_GEMM, .push_next = 1},
          {.opcode = BERTH_VTA_STORE, .pop_prev = 1}, FINISH);
    FAILS(AFTER_FINISH, "not the last instruction of compute", FINISH, UOPS);
}

// A load of what compute reads, and no token between the two; and its three cousins.
Test(vta_run, races) {
    FAILS(RACE, "inp element 8", UOPS, {TRANSFER(LOAD, INP, 0x1000, 9), .push_next = 1},
          {LOOP(GEMM, 0, 1)}, {.opcode = BERTH_VTA_GEMM, .pop_prev = 1}, FINISH);
    FAILS(RACE, "wgt element 2", UOPS, {TRANSFER(LOAD, WGT, 0x100, 3), .push_next = 1},
          {LOOP(GEMM, 3, 4)}, {.opcode = BERTH_VTA_GEMM, .pop_prev = 1}, FINISH);
    FAILS(RACE, "acc element 5", UOPS, {LOOP(ALU, 5, 6)},
          {TRANSFER(STORE, OUT, 0x1200, 2), .sram_base = 4, .push_prev = 1},
          {.opcode = BERTH_VTA_GEMM, .pop_next = 1}, FINISH);
    // Stored, and overwritten meanwhile.
    FAILS(RACE, "acc element 0", UOPS, {LOOP(ALU, 0, 1), .push_next = 1},
          {TRANSFER(STORE, OUT, 0x1200, 1), .pop_prev = 1, .push_prev = 1},
          {TRANSFER(LOAD, ACC, 0x400, 1)}, {.opcode = BERTH_VTA_GEMM, .pop_next = 1}, FINISH);
}

// In memory: what is stored while another unit loads it, rows between rows included.
Test(vta_run, races_in_memory) {
    FAILS(RACE, "bytes of DRAM", {TRANSFER(STORE, OUT, 0x1200, 2), .push_prev = 1},
          {TRANSFER(LOAD, INP, 0x1201, 1), .push_next = 1}, {.pop_prev = 1, .pop_next = 1}, FINISH);
    FAILS(RACE, "bytes of DRAM", {TRANSFER(LOAD, ACC, 0x480, 1)},
          {TRANSFER(STORE, OUT, 0x1203, 1), .sram_base = 9, .push_prev = 1}, {.pop_next = 1},
          FINISH);
    FAILS(RACE, "bytes of DRAM",
          {.opcode = BERTH_VTA_STORE,
           .memory_type = BERTH_VTA_OUT,
           .dram_base = 0x1200,
           .y_size = 5,
           .x_size = 2,
           .x_stride = 7,
           .push_prev = 1},
          {.memory_type = BERTH_VTA_INP,
           .dram_base = 0x1200 + 3 * 7 + 1,
           .y_size = 2,
           .x_size = 1,
           .x_stride = 100,
           .push_next = 1},
          {.pop_prev = 1, .pop_next = 1}, FINISH);
    // Rows that lie between each other's share nothing; nor do two units that only read.
    program p;
    begin_program(&p, configuration(0), 16, 1);
    const berth_vta_instruction list[] = {{.opcode = BERTH_VTA_STORE,
                                           .memory_type = BERTH_VTA_OUT,
                                           .dram_base = 0x1200,
                                           .y_size = 5,
                                           .x_size = 2,
                                           .x_stride = 7,
                                           .push_prev = 1},
                                          {.memory_type = BERTH_VTA_INP,
                                           .dram_base = 0x1202,
                                           .y_size = 5,
                                           .x_size = 5,
                                           .x_stride = 7,
                                           .push_next = 1},
                                          {TRANSFER(LOAD, ACC8, 0x1202, 5), .sram_base = 100},
                                          {.pop_prev = 1, .pop_next = 1},
                                          FINISH};
    for (int i = 0; i < 5; ++i) add_instruction(&p, list[i]);
    berth_vta_report report;
    assert_ok(run_as(&p, BERTH_VTA_ORDER_LOAD_FIRST, 1, &report));
    end_program(&p);
}

// The same with tokens, in all orders: nothing to say.
Test(vta_run, tokens_order_what_they_should) {
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order)
        for (uint64_t seed = 1; seed < 20; ++seed) {
            program p;
            random_program(&p, configuration(2), 30, seed);
            berth_vta_report report;
            berth_status status = run_as(&p, (berth_vta_order)order, seed, &report);
            cr_assert_null(status, "%s", berth_status_message(status));
            cr_assert_eq(report.units[0].done + report.units[1].done + report.units[2].done,
                         p.count);
            cr_assert_eq(report.units[1].current, UINT32_MAX);
            end_program(&p);
        }
}

// Bits of a stream flip: it runs, or a fault is named; never a crash, never without an end.
Test(vta_run, damaged_streams, .timeout = 120) {
    uint32_t faults[BERTH_VTA_FAULT_WORK_LIMIT + 1] = {0};
    for (uint64_t seed = 1; seed <= 600; ++seed) {
        program p;
        random_program(&p, configuration((int)(seed % CONFIGURATIONS)), 20, seed);
        for (uint64_t flips = 1 + random_below(&p, 6); flips > 0; --flips) {
            uint64_t bit = random_below(&p, p.count * 128);
            p.dram.data[p.address - PROGRAM_BASE + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        berth_vta_report report;
        berth_status status =
            run_as(&p, (berth_vta_order)(seed % BERTH_VTA_ORDER_COUNT), seed, &report);
        cr_assert_eq(status == NULL, report.fault == BERTH_VTA_FAULT_NONE);
        cr_assert(!status ||
                  strstr(berth_status_message(status), berth_vta_fault_name(report.fault)) != NULL);
        faults[report.fault]++;
        berth_status_free(status);
        end_program(&p);
    }
    // The damage is seen: deadlocks, ranges and the rest all come up.
    cr_assert_gt(faults[BERTH_VTA_FAULT_DEADLOCK], 20);
    cr_assert_gt(faults[BERTH_VTA_FAULT_DRAM_RANGE], 20);
    cr_assert_gt(faults[BERTH_VTA_FAULT_SRAM_RANGE], 2);
    cr_assert_gt(faults[BERTH_VTA_FAULT_INDEX_RANGE], 2);
    cr_assert_gt(faults[BERTH_VTA_FAULT_BAD_OPCODE], 2);
}
