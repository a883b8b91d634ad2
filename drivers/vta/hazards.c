#include "drivers/vta/hazards.h"

#include <string.h>

// Places in the queues of the units, from 1; 0 = never.
typedef struct element {
    uint32_t written, read;
} element;

// Rows of DRAM that an instruction reads or writes.
typedef struct span {
    uint64_t from, end;  // the hull
    uint64_t row_bytes, stride_bytes;
    uint32_t rows;
    uint32_t place;
    bool writes;
} span;

typedef struct span_list {
    span *data;  // in the order of places
    uint32_t count, capacity;
} span_list;

// Rows that may be compared in a run: some seconds.
static const uint64_t most_comparisons = (uint64_t)1 << 30;

struct berth_vta_hazards {
    berth_allocator allocator;
    span_list spans[BERTH_VTA_UNIT_COUNT];
    uint64_t comparisons;
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
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u)
        berth_free(hazards->allocator, hazards->spans[u].data,
                   hazards->spans[u].capacity * sizeof(span));
    berth_free(hazards->allocator, hazards, sizeof(*hazards));
}

void berth_vta_hazards_begin_run(berth_vta_hazards *hazards) {
    for (int i = 0; i < watched_count; ++i)
        memset(hazards->elements[watched[i]], 0, hazards->depth[watched[i]] * sizeof(element));
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) hazards->spans[u].count = 0;
    hazards->comparisons = 0;
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

// ---- DRAM ----

// Whether a row of `many` shares bytes with a row of `few`.
static bool row_shares(const span *many, uint64_t from, uint64_t end) {
    if (many->stride_bytes == 0) return from < many->from + many->row_bytes && many->from < end;
    // The last row that begins before `end`; those before it end earlier.
    if (end <= many->from) return false;
    uint64_t row = (end - 1 - many->from) / many->stride_bytes;
    if (row >= many->rows) row = many->rows - 1;
    return many->from + row * many->stride_bytes + many->row_bytes > from;
}

static bool spans_share(const span *a, const span *b) {
    if (a->end <= b->from || b->end <= a->from) return false;
    const span *few = a->rows < b->rows ? a : b, *many = few == a ? b : a;
    for (uint32_t i = 0; i < few->rows; ++i) {
        uint64_t from = few->from + i * few->stride_bytes;
        if (row_shares(many, from, from + few->row_bytes)) return true;
    }
    return false;
}

static berth_status add_span(berth_vta_hazards *hazards, span_list *list, const span *s) {
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
        span *data = berth_resize(hazards->allocator, list->data, list->capacity * sizeof(span),
                                  capacity * sizeof(span));
        if (!data) return berth_status_oom();
        list->data = data;
        list->capacity = capacity;
    }
    list->data[list->count++] = *s;
    return BERTH_OK;
}

// Compares with transfers of the other units that are not ordered before this one; those that are
// not ordered after it either, and run later, find this one.
static berth_status compare_span(use *u, const span *s, berth_vta_fault *out_fault) {
    for (int unit = 0; unit < BERTH_VTA_UNIT_COUNT; ++unit) {
        const span_list *list = &u->hazards->spans[unit];
        if (unit == (int)u->unit) continue;
        for (uint32_t k = list->count; k > 0; --k) {
            const span *other = &list->data[k - 1];
            if (other->place <= u->clock->done[unit]) break;
            uint32_t rows = other->rows < s->rows ? other->rows : s->rows;
            u->hazards->comparisons += 1 + rows;
            if (u->hazards->comparisons > most_comparisons)
                return berth_vta_fail(out_fault, BERTH_VTA_FAULT_WORK_LIMIT,
                                      "too many transfers that no token orders to look for races "
                                      "between them");
            if ((s->writes || other->writes) && spans_share(s, other))
                return berth_vta_fail(out_fault, BERTH_VTA_FAULT_RACE,
                                      "bytes of DRAM are used here and by instruction %u of the "
                                      "%s unit, and no token orders the two",
                                      other->place - 1, berth_vta_unit_name((berth_vta_unit)unit));
        }
    }
    return BERTH_OK;
}

static berth_status note_dram(use *u, const berth_vta_model *model, const berth_vta_instruction *i,
                              berth_vta_fault *out_fault) {
    if (i->x_size == 0 || i->y_size == 0) return BERTH_OK;
    uint64_t bytes = model->isa.element_bytes[i->memory_type];
    span s = {.from = i->dram_base * bytes & 0xffffffffu,
              .row_bytes = i->x_size * bytes,
              .stride_bytes = i->x_stride * bytes,
              .rows = i->y_size,
              .place = u->clock->done[u->unit] + 1,
              .writes = i->opcode == BERTH_VTA_STORE};
    s.end = s.from + (s.rows - 1) * s.stride_bytes + s.row_bytes;
    BERTH_TRY(compare_span(u, &s, out_fault));
    return add_span(u->hazards, &u->hazards->spans[u->unit], &s);
}

berth_status berth_vta_hazards_note(berth_vta_hazards *hazards, const berth_vta_model *model,
                                    const berth_vta_instruction *i, const berth_vta_clock *clock,
                                    berth_vta_fault *out_fault) {
    use u = {.hazards = hazards, .clock = clock, .unit = berth_vta_unit_of(i)};
    bool transfers = i->opcode == BERTH_VTA_LOAD || i->opcode == BERTH_VTA_STORE;
    if (transfers)
        note_transfer(&u, i);
    else if (i->opcode != BERTH_VTA_FINISH)
        note_loop(&u, model, i);
    if (!u.failed) return transfers ? note_dram(&u, model, i, out_fault) : BERTH_OK;
    return berth_vta_fail(out_fault, BERTH_VTA_FAULT_RACE,
                          "%s element %u is used here and by instruction %u of the %s unit, and "
                          "no token orders the two",
                          berth_vta_memory_name(u.memory), u.index, u.place - 1,
                          berth_vta_unit_name(u.other));
}
