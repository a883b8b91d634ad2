#include "drivers/vta/hazards.h"

#include <string.h>

// Places in the queues of the units, from 1; 0 = never.
typedef struct element {
    uint32_t written, read;
} element;

struct berth_vta_hazards {
    berth_allocator allocator;
    uint32_t depth[BERTH_VTA_MEMORY_COUNT];
    element *elements[BERTH_VTA_MEMORY_COUNT];  // of wgt, inp and acc
};

static const berth_vta_memory watched[] = {BERTH_VTA_WGT, BERTH_VTA_INP, BERTH_VTA_ACC};
enum { watched_count = sizeof(watched) / sizeof(watched[0]) };

berth_status berth_vta_hazards_create(berth_allocator allocator, const berth_vta_shape *shape,
                                      berth_vta_hazards **out_hazards) {
    *out_hazards = NULL;
    berth_vta_hazards *hazards = berth_calloc(allocator, 1, sizeof(*hazards));
    if (!hazards) return berth_status_oom();
    hazards->allocator = allocator;
    for (int i = 0; i < watched_count; ++i) {
        berth_vta_memory m = watched[i];
        hazards->depth[m] = shape->memory[m].depth;
        hazards->elements[m] = berth_calloc(allocator, hazards->depth[m], sizeof(element));
        if (hazards->elements[m]) continue;
        berth_vta_hazards_destroy(hazards);
        return berth_status_oom();
    }
    *out_hazards = hazards;
    return BERTH_OK;
}

void berth_vta_hazards_destroy(berth_vta_hazards *hazards) {
    if (!hazards) return;
    for (int i = 0; i < watched_count; ++i)
        if (hazards->elements[watched[i]])
            berth_free(hazards->allocator, hazards->elements[watched[i]],
                       hazards->depth[watched[i]] * sizeof(element));
    berth_free(hazards->allocator, hazards, sizeof(*hazards));
}

void berth_vta_hazards_begin_run(berth_vta_hazards *hazards) {
    for (int i = 0; i < watched_count; ++i)
        memset(hazards->elements[watched[i]], 0, hazards->depth[watched[i]] * sizeof(element));
}

// One use of elements by the instruction being noted.
typedef struct use {
    berth_vta_hazards *hazards;
    const berth_vta_clock *clock;
    berth_vta_unit unit;
    bool failed;
    berth_vta_memory memory;  // of the race
    uint32_t index;
    berth_vta_unit other;
    uint32_t place;
} use;

static void fail(use *u, berth_vta_memory memory, uint32_t index, berth_vta_unit other,
                 uint32_t place) {
    if (u->failed) return;
    u->failed = true;
    u->memory = memory;
    u->index = index;
    u->other = other;
    u->place = place;
}

static void write(use *u, berth_vta_memory memory, uint32_t index, berth_vta_unit reader) {
    element *e = &u->hazards->elements[memory][index];
    if (e->read > u->clock->done[reader]) fail(u, memory, index, reader, e->read);
    e->written = u->clock->done[u->unit] + 1;
}

static void read(use *u, berth_vta_memory memory, uint32_t index, berth_vta_unit writer) {
    element *e = &u->hazards->elements[memory][index];
    if (e->written > u->clock->done[writer]) fail(u, memory, index, writer, e->written);
    e->read = u->clock->done[u->unit] + 1;
}

static void note_transfer(use *u, const berth_vta_instruction *i) {
    if (i->x_size == 0 || i->memory_type == BERTH_VTA_UOP) return;
    uint32_t width = i->x_pad_before + i->x_size + i->x_pad_after;
    uint32_t rows = i->y_pad_before + i->y_size + i->y_pad_after;
    for (uint32_t k = 0; k < width * rows; ++k) {
        uint32_t index = i->sram_base + k;
        if (i->opcode == BERTH_VTA_STORE)
            read(u, BERTH_VTA_ACC, index, BERTH_VTA_UNIT_COMPUTE);
        else if (i->memory_type == BERTH_VTA_ACC || i->memory_type == BERTH_VTA_ACC8)
            write(u, BERTH_VTA_ACC, index, BERTH_VTA_UNIT_STORE);
        else
            write(u, (berth_vta_memory)i->memory_type, index, BERTH_VTA_UNIT_COMPUTE);
    }
}

static void note_loop(use *u, const berth_vta_model *model, const berth_vta_instruction *i) {
    bool reads = i->opcode == BERTH_VTA_GEMM && !i->reset;
    for (uint32_t o = 0; o < i->iter_out; ++o)
        for (uint32_t n = 0; n < i->iter_in; ++n)
            for (uint32_t k = i->uop_begin; k < i->uop_end; ++k) {
                berth_vta_micro_op m = berth_vta_model_micro_op(model, k);
                write(u, BERTH_VTA_ACC, m.dst + o * i->dst_factor_out + n * i->dst_factor_in,
                      BERTH_VTA_UNIT_STORE);
                if (!reads) continue;
                read(u, BERTH_VTA_INP, m.src + o * i->src_factor_out + n * i->src_factor_in,
                     BERTH_VTA_UNIT_LOAD);
                read(u, BERTH_VTA_WGT, m.wgt + o * i->wgt_factor_out + n * i->wgt_factor_in,
                     BERTH_VTA_UNIT_LOAD);
            }
}

berth_status berth_vta_hazards_note(berth_vta_hazards *hazards, const berth_vta_model *model,
                                    const berth_vta_instruction *i, const berth_vta_clock *clock,
                                    berth_vta_fault *out_fault) {
    use u = {.hazards = hazards, .clock = clock, .unit = berth_vta_unit_of(i)};
    if (i->opcode == BERTH_VTA_GEMM || i->opcode == BERTH_VTA_ALU)
        note_loop(&u, model, i);
    else if (i->opcode != BERTH_VTA_FINISH)
        note_transfer(&u, i);
    if (!u.failed) return BERTH_OK;
    return berth_vta_fail(out_fault, BERTH_VTA_FAULT_RACE,
                          "%s element %u is used here and by instruction %u of the %s unit, and "
                          "no token orders the two",
                          berth_vta_memory_name(u.memory), u.index, u.place - 1,
                          berth_vta_unit_name(u.other));
}
