// The largest of each window. The tile's inputs go to accumulators of their own, times 1 through the
// matrix unit; then the ALU takes the maximum position by position of the window, each for the results
// that have an input there, so that there is no padding to compare with.
//
//   load:    LOAD inp
//   compute: GEMM reset of inputs and results; GEMM of the inputs; of the first position GEMM into the
//            results, or, where none is inside for all of them, ADD of the lowest number; ALU MAX for
//            every other position; bounds
//   store:   STORE
#include "drivers/vta/emit/emitter.h"

// One dimension of a tile: results from `first` on, and what there is of their input.
typedef struct lines {
    uint32_t first, count, stride, pad;
    uint32_t begin, size;  // of the input
} lines;

typedef struct maxima {
    berth_vta_emitter *e;
    const berth_vta_place *p;
    lines y, x;
    uint32_t results;  // the first accumulator
} maxima;

// The results [begin, begin + count) whose window has an input at position k, and where the first of
// them finds it among the rows or columns of the tile's input.
typedef struct reached {
    uint32_t begin, count, at;
} reached;

static reached reach(const lines *s, uint32_t k) {
    reached r = {0};
    for (uint32_t i = 0; i < s->count; ++i) {
        int64_t at = (int64_t)(s->first + i) * s->stride + k - s->pad - s->begin;
        if (at < 0 || at >= s->size) continue;
        if (r.count++ > 0) continue;
        r.begin = i;
        r.at = (uint32_t)at;
    }
    return r;
}

// A loop over rows and columns around one micro-op.
static berth_vta_instruction loop(uint32_t opcode, uint32_t rows, uint32_t columns,
                                  uint32_t micro_op) {
    return (berth_vta_instruction){.opcode = opcode,
                                   .uop_begin = micro_op,
                                   .uop_end = micro_op + 1,
                                   .iter_out = rows,
                                   .iter_in = columns};
}

static void steps(berth_vta_instruction *i, uint32_t dst_row, uint32_t dst_step, uint32_t src_row,
                  uint32_t src_step) {
    bool out = i->iter_out > 1, in = i->iter_in > 1;
    i->dst_factor_out = out ? dst_row : 0;
    i->dst_factor_in = in ? dst_step : 0;
    i->src_factor_out = out ? src_row : 0;
    i->src_factor_in = in ? src_step : 0;
}

static void reset(berth_vta_emitter *e, uint32_t first, uint32_t rows, uint32_t columns) {
    berth_vta_instruction i =
        loop(BERTH_VTA_GEMM, rows, columns, berth_vta__run(e, 1, first, 0, 0, 0));
    i.reset = 1;
    steps(&i, columns, 1, 0, 0);
    berth_vta__add(e, i);
}

static void bound(const maxima *m, uint32_t code, int32_t imm) {
    berth_vta_emitter *e = m->e;
    berth_vta_instruction i = loop(BERTH_VTA_ALU, e->tiles->rows, e->tiles->columns,
                                   berth_vta__run(e, 1, m->results, 0, 0, 0));
    i.alu_opcode = code;
    i.use_imm = 1;
    i.imm = (uint32_t)imm & 0xffffu;
    steps(&i, e->tiles->columns, 1, 0, 0);
    berth_vta__add(e, i);
}

static void load(const maxima *m) {
    berth_vta_emitter *e = m->e;
    uint32_t blocks = e->fit.groups * e->fit.out_blocks;
    uint64_t map = (uint64_t)m->p->image * blocks + m->p->out_block;
    berth_vta_instruction i = {.memory_type = BERTH_VTA_INP,
                               .pop_next = e->step >= 2,
                               .push_next = 1,
                               .sram_base = (uint32_t)(e->step % 2) * e->fit.inp_half,
                               .y_size = m->y.size,
                               .x_size = m->x.size,
                               .x_stride = e->conv->width};
    berth_vta__add_transfer(e, i, 0,
                            (map * e->conv->height + m->y.begin) * e->conv->width + m->x.begin);
}

// Inputs at one position of the window, or, of all positions, NULL: into accumulators from `dst` on.
static void take_inputs(const maxima *m, uint32_t dst, const reached *row, const reached *column) {
    berth_vta_emitter *e = m->e;
    uint32_t inp = (uint32_t)(e->step % 2) * e->fit.inp_half;
    if (row) inp += row->at * m->x.size + column->at;
    berth_vta_instruction i =
        loop(BERTH_VTA_GEMM, row ? row->count : m->y.size, row ? column->count : m->x.size,
             berth_vta__run(e, 1, dst, inp, 0, 0));
    steps(&i, i.iter_in, 1, (row ? m->y.stride : 1) * m->x.size, row ? m->x.stride : 1);
    berth_vta__add(e, i);
}

// Whether a position has inputs for all results, which then begin with it.
static bool find_first(const maxima *m, uint32_t *out_ky, uint32_t *out_kx) {
    const berth_vta_emitter *e = m->e;
    for (uint32_t ky = 0; ky < e->conv->kernel_h; ++ky)
        for (uint32_t kx = 0; kx < e->conv->kernel_w; ++kx)
            if (reach(&m->y, ky * berth_vta__conv_dilation_h(e->conv)).count == e->tiles->rows &&
                reach(&m->x, kx * berth_vta__conv_dilation_w(e->conv)).count == e->tiles->columns) {
                *out_ky = ky;
                *out_kx = kx;
                return true;
            }
    return false;
}

static void compare(const maxima *m, uint32_t ky, uint32_t kx) {
    berth_vta_emitter *e = m->e;
    reached row = reach(&m->y, ky * berth_vta__conv_dilation_h(e->conv));
    reached column = reach(&m->x, kx * berth_vta__conv_dilation_w(e->conv));
    if (row.count == 0 || column.count == 0) return;
    uint32_t micro_op =
        berth_vta__run(e, 1, m->results + row.begin * e->tiles->columns + column.begin,
                       e->fit.copy + row.at * m->x.size + column.at, 0, 0);
    berth_vta_instruction i = loop(BERTH_VTA_ALU, row.count, column.count, micro_op);
    i.alu_opcode = BERTH_VTA_MAX;
    steps(&i, e->tiles->columns, 1, m->y.stride * m->x.size, m->x.stride);
    berth_vta__add(e, i);
}

void berth_vta__emit_maxima(berth_vta_emitter *e, const berth_vta_place *p) {
    const berth_vta_conv *c = e->conv;
    maxima m = {.e = e, .p = p, .results = (uint32_t)(e->tile % 2) * e->fit.acc_half};
    uint32_t first_y = UINT32_MAX, first_x = 0;
    const berth_vta_steps *w = e->fit.work;
    berth_vta_span y =
        berth_vta__clip((int64_t)p->y * c->stride_h - c->pad_h, e->fit.input_rows, c->height);
    berth_vta_span x =
        berth_vta__clip((int64_t)p->x * c->stride_w - c->pad_w, e->fit.input_columns, c->width);
    m.y = (lines){p->y, e->tiles->rows, c->stride_h, c->pad_h, y.begin, y.size};
    m.x = (lines){p->x, e->tiles->columns, c->stride_w, c->pad_w, x.begin, x.size};
    load(&m);
    reset(e, m.results, e->tiles->rows, e->tiles->columns);
    e->list.data[e->list.count - 1].pop_next = e->tile >= 2;
    reset(e, e->fit.copy, m.y.size, m.x.size);
    take_inputs(&m, e->fit.copy, NULL, NULL);
    e->list.data[e->list.count - 1].pop_prev = 1;
    if (find_first(&m, &first_y, &first_x)) {
        reached row = reach(&m.y, first_y * berth_vta__conv_dilation_h(c));
        reached column = reach(&m.x, first_x * berth_vta__conv_dilation_w(c));
        take_inputs(&m, m.results, &row, &column);
    }
    e->list.data[e->list.count - 1].push_prev = e->step + 2 < e->step_count;
    if (first_y == UINT32_MAX)
        bound(&m, BERTH_VTA_ADD, e->shape.inp_bytes == 1 ? INT8_MIN : INT16_MIN);
    for (uint32_t ky = 0; ky < c->kernel_h; ++ky)
        for (uint32_t kx = 0; kx < c->kernel_w; ++kx)
            if (ky != first_y || kx != first_x) compare(&m, ky, kx);
    for (uint32_t i = 0; i < w->count; ++i) bound(&m, w->steps[i].code, w->steps[i].number);
    e->step++;
}
