#include "drivers/vta/emit/emitter.h"

void berth_vta__add(berth_vta_emitter *e, berth_vta_instruction instruction) {
    berth_vec_push(e->arena, &e->list, instruction);
}

void berth_vta__add_transfer(berth_vta_emitter *e, berth_vta_instruction i, uint32_t buffer,
                             uint64_t element) {
    uint64_t bytes = element * e->shape.memory[i.memory_type].element_bytes;
    berth_vec_push(e->arena, &e->relocations,
                   (berth_vta_relocation){e->list.count, buffer, (uint32_t)bytes});
    berth_vta__add(e, i);
}

// ---- micro-ops ----

void berth_vta__add_micro_op(berth_vta_emitter *e, uint64_t dst, uint64_t src, uint64_t wgt) {
    uint32_t word = 0;
    berth_status status = berth_vta_encode_micro_op(
        &e->isa, (berth_vta_micro_op){(uint32_t)dst, (uint32_t)src, (uint32_t)wgt}, &word);
    if (status && e->failed)
        berth_status_free(status);
    else if (status)
        e->failed = status;
    berth_vec_push(e->arena, &e->micro_ops, word);
}

uint32_t berth_vta__run(berth_vta_emitter *e, uint32_t count, uint32_t dst, uint32_t src,
                        uint32_t src_step, uint32_t wgt) {
    for (uint32_t i = 0; i < e->runs.count; ++i) {
        const berth_vta_run_of_micro_ops *r = &e->runs.data[i];
        if (r->count == count && r->dst == dst && r->src == src && r->src_step == src_step &&
            r->wgt == wgt)
            return r->first;
    }
    uint32_t first = e->micro_ops.count, pixels = e->tiles->rows * e->tiles->columns;
    berth_vec_push(e->arena, &e->runs,
                   (berth_vta_run_of_micro_ops){dst, src, src_step, wgt, count, first});
    for (uint32_t o = 0; o < count; ++o)
        berth_vta__add_micro_op(e, dst + (uint64_t)o * pixels, src + (uint64_t)o * src_step, wgt);
    return first;
}

// ---- constants of the kernel ----

// Room for elements of a memory, from a multiple of their size on: the first of them.
static uint64_t add_room(berth_vta_emitter *e, berth_vta_memory memory, uint32_t count) {
    uint32_t bytes = e->shape.memory[memory].element_bytes;
    while (e->data.count % bytes) berth_vec_push(e->arena, &e->data, 0);
    uint64_t first = e->data.count / bytes;
    for (uint32_t i = 0; i < count * bytes; ++i) berth_vec_push(e->arena, &e->data, 0);
    return first;
}

static void put(berth_vta_emitter *e, uint64_t at, uint32_t bytes, uint32_t value) {
    for (uint32_t b = 0; b < bytes; ++b) e->data.data[at + b] = (uint8_t)(value >> (8 * b));
}

void berth_vta__load_diagonals(berth_vta_emitter *e, const uint32_t *factors, uint32_t count) {
    uint32_t block = e->shape.block, bytes = e->shape.wgt_bytes;
    uint64_t first = add_room(e, BERTH_VTA_WGT, count);
    for (uint32_t f = 0; f < count; ++f)
        for (uint32_t lane = 0; lane < block; ++lane)
            put(e, (((first + f) * block + lane) * block + lane) * bytes, bytes, factors[f]);
    berth_vta_instruction i = {
        .memory_type = BERTH_VTA_WGT, .y_size = 1, .x_size = count, .x_stride = count};
    berth_vta__add_transfer(e, i, BERTH_VTA_CONSTANTS, first);
}

void berth_vta__load_constant(berth_vta_emitter *e, uint32_t at, int32_t value) {
    uint32_t bytes = e->shape.acc_bytes, lanes = e->shape.batch * e->shape.block;
    uint64_t element = add_room(e, BERTH_VTA_ACC, 1);
    for (uint32_t lane = 0; lane < lanes; ++lane)
        put(e, (element * lanes + lane) * bytes, bytes, (uint32_t)value);
    berth_vta_instruction i = {
        .memory_type = BERTH_VTA_ACC, .sram_base = at, .y_size = 1, .x_size = 1, .x_stride = 1};
    berth_vta__add_transfer(e, i, BERTH_VTA_CONSTANTS, element);
}

// ---- transfers ----

berth_vta_span berth_vta__clip(int64_t begin, int64_t size, int64_t extent) {
    int64_t end = begin + size;
    int64_t first = begin < 0 ? 0 : begin, last = end > extent ? extent : end;
    return (berth_vta_span){(uint32_t)first, (uint32_t)(last - first), (uint32_t)(first - begin),
                            (uint32_t)(end - last)};
}

void berth_vta__store_tile(berth_vta_emitter *e, const berth_vta_place *p, uint32_t buffer) {
    uint32_t pixels = e->tiles->rows * e->tiles->columns;
    uint32_t blocks = e->fit.groups * e->fit.out_blocks;
    for (uint32_t o = 0; o < e->tiles->out_blocks; ++o) {
        berth_vta_instruction i = {.opcode = BERTH_VTA_STORE,
                                   .memory_type = BERTH_VTA_OUT,
                                   .pop_prev = o == 0,
                                   .push_prev = o + 1 == e->tiles->out_blocks,
                                   .sram_base =
                                       (uint32_t)(e->tile % 2) * e->fit.acc_half + o * pixels,
                                   .y_size = e->tiles->rows,
                                   .x_size = e->tiles->columns,
                                   .x_stride = e->out_width};
        uint64_t map = (uint64_t)p->image * blocks + p->out_block + o;
        berth_vta__add_transfer(e, i, buffer, (map * e->out_height + p->y) * e->out_width + p->x);
    }
}
