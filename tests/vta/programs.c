#include "tests/vta/programs.h"

#include <stdlib.h>

berth_vta_config configuration(int index) {
    static const berth_vta_config all[CONFIGURATIONS] = {
        {3, 3, 5, 0, 4, 15, 15, 18, 17},  // upstream's boards
        {3, 3, 5, 0, 5, 13, 14, 18, 15},  // blocks of 32, shallower buffers
        {3, 3, 5, 2, 3, 12, 13, 14, 14},  // four rows, blocks of 8
        {3, 3, 4, 1, 2, 10, 10, 10, 11},  // small; accumulators of 16 bits
        {4, 3, 5, 0, 4, 12, 14, 16, 15},  // inputs of 16 bits
        {4, 4, 5, 1, 4, 10, 13, 15, 14},  // weights too; fields that end at bit 64
    };
    return all[index];
}

uint64_t random_below(program *p, uint64_t limit) {
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (p->random >> 33) % limit;
}

void begin_program(program *p, berth_vta_config config, uint32_t capacity, uint64_t seed) {
    memset(p, 0, sizeof(*p));
    p->config = config;
    assert_ok(berth_vta_shape_make(&config, &p->shape));
    assert_ok(berth_vta_isa_make(&p->shape, &p->isa));
    p->dram = (berth_vta_dram){malloc(PROGRAM_BYTES), PROGRAM_BASE, PROGRAM_BYTES};
    p->random = seed * 77 + 5;
    for (int i = 0; i < PROGRAM_BYTES; ++i) p->dram.data[i] = (uint8_t)random_below(p, 256);
    p->capacity = capacity;
    p->address = PROGRAM_BASE + PROGRAM_BYTES - 16 * (uint64_t)capacity;
}

void add_instruction(program *p, berth_vta_instruction instruction) {
    cr_assert_lt(p->count, p->capacity);
    uint8_t *at = p->dram.data + (p->address - PROGRAM_BASE) + 16 * (size_t)p->count++;
    assert_ok(berth_vta_encode(&p->isa, &instruction, at));
}

void end_program(program *p) {
    free(p->dram.data);
}

void put_micro_op(program *p, uint64_t address, uint32_t dst, uint32_t src, uint32_t wgt) {
    uint32_t word = 0;
    assert_ok(berth_vta_encode_micro_op(&p->isa, (berth_vta_micro_op){dst, src, wgt}, &word));
    for (int b = 0; b < 4; ++b)
        p->dram.data[address - PROGRAM_BASE + (uint64_t)b] = (uint8_t)(word >> (8 * b));
}

// ---- random programs ----

enum { table_size = 32, data_bytes = 1 << 17 };  // micro-ops lie behind the data
#define TABLE ((uint64_t)PROGRAM_BASE + data_bytes)

static uint32_t below(program *p, uint64_t limit) {
    return (uint32_t)random_below(p, limit);
}

// A transfer that fits, of the memory's data or table.
static berth_vta_instruction transfer(program *p, uint32_t opcode, uint32_t memory) {
    uint32_t depth = p->shape.memory[memory].depth;
    uint64_t bytes = p->shape.memory[memory].element_bytes;
    uint64_t from = memory == BERTH_VTA_UOP ? TABLE : PROGRAM_BASE;
    uint64_t size = memory == BERTH_VTA_UOP ? table_size * 4 : data_bytes;
    for (;;) {
        berth_vta_instruction i = {.opcode = opcode,
                                   .memory_type = memory,
                                   .y_size = below(p, 4),
                                   .x_size = 1 + below(p, 5),
                                   .x_stride = below(p, 8)};
        if (opcode == BERTH_VTA_LOAD && below(p, 2)) {
            i.y_pad_before = below(p, 3);
            i.y_pad_after = below(p, 3);
            i.x_pad_before = below(p, 3);
            i.x_pad_after = below(p, 3);
        }
        uint32_t elements = (i.x_pad_before + i.x_size + i.x_pad_after) *
                            (i.y_pad_before + i.y_size + i.y_pad_after);
        uint64_t extent = ((uint64_t)i.y_size * i.x_stride + i.x_size) * bytes;
        if (elements > depth || extent + bytes > size) continue;
        i.sram_base = below(p, depth - elements + 1);
        i.dram_base = (uint32_t)((from + below(p, size - extent - bytes + 1) + bytes - 1) / bytes);
        return i;
    }
}

// Factors that take an index of less than depth / 4 to less than depth.
static void set_factors(program *p, berth_vta_memory memory, uint32_t *out, uint32_t *in) {
    uint32_t step = p->shape.memory[memory].depth / 4 / 3;
    *out = below(p, step + 1);
    *in = below(p, step + 1);
}

static berth_vta_instruction loop(program *p, uint32_t opcode) {
    berth_vta_instruction i = {
        .opcode = opcode, .iter_out = below(p, 4), .iter_in = 1 + below(p, 3)};
    i.uop_begin = below(p, table_size);
    i.uop_end = i.uop_begin + below(p, table_size - i.uop_begin > 4 ? 4 : 1) + below(p, 2);
    set_factors(p, BERTH_VTA_ACC, &i.dst_factor_out, &i.dst_factor_in);
    if (opcode == BERTH_VTA_GEMM) {
        i.reset = below(p, 5) == 0;
        set_factors(p, BERTH_VTA_INP, &i.src_factor_out, &i.src_factor_in);
        set_factors(p, BERTH_VTA_WGT, &i.wgt_factor_out, &i.wgt_factor_in);
        return i;
    }
    set_factors(p, BERTH_VTA_ACC, &i.src_factor_out, &i.src_factor_in);
    i.alu_opcode = below(p, 5);
    i.use_imm = i.alu_opcode == BERTH_VTA_SHR || below(p, 2);
    i.imm = i.alu_opcode == BERTH_VTA_SHR ? (31 - below(p, 63)) & 0xffff : below(p, 65536);
    return i;
}

static berth_vta_instruction any_instruction(program *p) {
    static const uint32_t loaded[] = {BERTH_VTA_UOP, BERTH_VTA_WGT, BERTH_VTA_INP, BERTH_VTA_ACC,
                                      BERTH_VTA_ACC8};
    switch (below(p, 5)) {
    case 0:
    case 1: return transfer(p, BERTH_VTA_LOAD, loaded[below(p, 5)]);
    case 2: return transfer(p, BERTH_VTA_STORE, BERTH_VTA_OUT);
    case 3: return loop(p, BERTH_VTA_GEMM);
    default: return loop(p, BERTH_VTA_ALU);
    }
}

// Adds instructions so that each waits for the one before it.
static void add_chain(program *p, const berth_vta_instruction *list, uint32_t count) {
    static const berth_vta_instruction pause = {0};  // LOAD uop of nothing
    berth_vta_instruction last = list[0];
    for (uint32_t i = 1; i < count; ++i) {
        berth_vta_instruction next = list[i];
        berth_vta_unit from = berth_vta_unit_of(&last), to = berth_vta_unit_of(&next);
        if (from != to && from != BERTH_VTA_UNIT_COMPUTE && to != BERTH_VTA_UNIT_COMPUTE) {
            next = pause;
            to = BERTH_VTA_UNIT_COMPUTE;
            --i;
        }
        if (from < to) last.push_next = next.pop_prev = 1;
        if (from > to) last.push_prev = next.pop_next = 1;
        add_instruction(p, last);
        last = next;
    }
    add_instruction(p, last);
}

void random_program(program *p, berth_vta_config config, uint32_t steps, uint64_t seed) {
    begin_program(p, config, 2 * steps + 8, seed);
    uint32_t most = p->shape.memory[BERTH_VTA_INP].depth;
    if (p->shape.memory[BERTH_VTA_ACC].depth < most) most = p->shape.memory[BERTH_VTA_ACC].depth;
    for (uint32_t i = 0; i < table_size; ++i)
        put_micro_op(p, TABLE + 4 * i, below(p, p->shape.memory[BERTH_VTA_ACC].depth / 4),
                     below(p, most / 4), below(p, p->shape.memory[BERTH_VTA_WGT].depth / 4));
    berth_vta_instruction *list = calloc(steps + 3, sizeof(*list));
    list[0] = (berth_vta_instruction){.dram_base = (uint32_t)(TABLE / 4),
                                      .y_size = 1,
                                      .x_size = table_size,
                                      .x_stride = table_size};
    for (uint32_t i = 1; i <= steps; ++i) {
        do list[i] = any_instruction(p);
        while (list[i].opcode == BERTH_VTA_LOAD && list[i].memory_type == BERTH_VTA_UOP &&
               list[i].sram_base >= table_size);
    }
    // FINISH waits for the last: a pause of compute takes its token.
    list[steps + 2].opcode = BERTH_VTA_FINISH;
    add_chain(p, list, steps + 3);
    free(list);
}
