// Emitting a window operation. Per tile of results, in the three units:
//
//   load:    for each step (some blocks of input channels; sums: an input): LOAD inp, LOAD wgt, into
//            the halves in turn
//   compute: GEMM reset; for each step GEMM over kernel positions (outer) and results (micro-ops);
//            what else is to be done (steps.h) by the ALU; halves of the accumulators in turn
//   store:   STORE, a block of output channels each
//
// Tokens: load tells compute that a step is there; compute tells load that it has used it (but for
// the last two steps); compute tells store that a tile is done; store tells compute that it has
// written it. At the end compute takes what store still gives.
#include "drivers/vta/emit/conv.h"

#include <string.h>

#include "drivers/vta/emit/emitter.h"

typedef berth_vta_emitter emitter;
typedef berth_vta_place place;
typedef berth_vta_span span;

enum { buffer_input, buffer_weights, buffer_bias };

// Where the output is among the buffers.
static uint32_t buffer_output(const emitter *e) {
    if (e->conv->form == BERTH_VTA_SUMS) return e->conv->parts ? e->conv->parts : e->conv->sources;
    if (e->conv->form == BERTH_VTA_MAXIMA) return 1;
    return e->conv->no_bias ? buffer_bias : buffer_bias + 1;
}

static bool has_bias(const emitter *e) {
    return e->conv->form == BERTH_VTA_PRODUCTS && !e->conv->no_bias;
}

// ---- before the first tile ----

// The results of a tile, at the first position of the kernel and the first block of the step; then
// what fills the set up.
static uint32_t reduction(emitter *e, uint32_t acc_half, uint32_t operand_half, uint32_t digit) {
    return ((acc_half * 2 + operand_half) * e->fit.digits + digit) * e->fit.set;
}

static void add_reduction(emitter *e, uint32_t acc_half, uint32_t operand_half, uint32_t digit) {
    const berth_vta_conv *c = e->conv;
    const berth_vta_conv_tiles *t = e->tiles;
    uint64_t inp = (uint64_t)operand_half * e->fit.inp_half;
    uint64_t wgt = (uint64_t)operand_half * e->fit.wgt_half, block_weights = 0;
    uint64_t dst = (uint64_t)acc_half * e->fit.acc_half;
    uint32_t row = c->stride_h / e->fit.row_step;
    if (c->form == BERTH_VTA_SUMS)
        wgt = c->sources == 2 ? operand_half : digit;
    else
        block_weights = (uint64_t)t->in_blocks * c->kernel_h * c->kernel_w;
    for (uint32_t o = 0; o < t->out_blocks; ++o)
        for (uint32_t y = 0; y < t->rows; ++y)
            for (uint32_t x = 0; x < t->columns; ++x)
                berth_vta__add_micro_op(e, dst++,
                                        inp + (uint64_t)y * row * e->fit.input_columns +
                                            (uint64_t)x * c->stride_w,
                                        wgt + o * block_weights);
    for (uint64_t k = e->fit.tile; k < e->fit.set; ++k)
        berth_vta__add_micro_op(e, e->fit.spare + k - e->fit.tile, inp, wgt);
}

// Micro-ops come first in the stream; how many they are is known at its end.
static void load_constants(emitter *e) {
    const berth_vta_steps *work = e->fit.work;
    uint32_t loaded = e->fit.added;
    berth_vta__add_transfer(e, (berth_vta_instruction){.y_size = 1}, BERTH_VTA_CONSTANTS, 0);
    if (e->conv->form == BERTH_VTA_MAXIMA) {
        berth_vta__load_diagonals(e, work->factors, work->factor_count);
        return;
    }
    for (uint32_t set = 0; set < 4; ++set)
        for (uint32_t digit = 0; digit < e->fit.digits; ++digit)
            add_reduction(e, set / 2, set % 2, digit);
    for (uint32_t i = 0; i < work->count; ++i)
        if (berth_vta_step_loads(&work->steps[i]))
            berth_vta__load_constant(e, loaded++, work->steps[i].number);
    if (e->conv->form == BERTH_VTA_SUMS)
        berth_vta__load_diagonals(e, work->factors, work->factor_count);
    if (!has_bias(e)) return;
    uint32_t blocks = e->fit.groups * e->fit.out_blocks;
    berth_vta__add_transfer(e,
                            (berth_vta_instruction){.memory_type = BERTH_VTA_ACC,
                                                    .sram_base = e->fit.bias,
                                                    .y_size = 1,
                                                    .x_size = blocks,
                                                    .x_stride = blocks},
                            buffer_bias, 0);
    int32_t added = work->added_to_bias;
    uint32_t first = added ? berth_vta__run(e, 1, e->fit.bias, 0, 0, 0) : 0;
    if (added)
        berth_vta__add(e, (berth_vta_instruction){.opcode = BERTH_VTA_ALU,
                                                  .uop_begin = first,
                                                  .uop_end = first + 1,
                                                  .iter_out = 1,
                                                  .iter_in = blocks,
                                                  .dst_factor_in = blocks > 1,
                                                  .alu_opcode = BERTH_VTA_ADD,
                                                  .use_imm = 1,
                                                  .imm = (uint32_t)added});
}

static void place_micro_ops(emitter *e) {
    while (e->data.count % 4) berth_vec_push(e->arena, &e->data, 0);
    e->list.data[0].x_size = e->list.data[0].x_stride = e->micro_ops.count;
    e->relocations.data[0].added_bytes = e->data.count;
}

// ---- one step ----

// The input that holds a block, and where its map lies there.
static uint32_t find_part(const emitter *e, const place *p, uint64_t *out_map) {
    const berth_vta_conv *c = e->conv;
    uint32_t part = 0, first = 0;
    while (part + 1 < c->parts && p->out_block >= first + c->part_blocks[part])
        first += c->part_blocks[part++];
    *out_map = (uint64_t)p->image * c->part_blocks[part] + p->out_block - first;
    return part;
}

static void load_inputs(emitter *e, const place *p, uint32_t in_block) {
    const berth_vta_conv *c = e->conv;
    bool sums = c->form == BERTH_VTA_SUMS;
    uint32_t step = e->fit.row_step;
    span y = berth_vta__clip((int64_t)p->y * (c->stride_h / step) - c->pad_h, e->fit.input_rows,
                             (c->height + step - 1) / step);
    span x =
        berth_vta__clip((int64_t)p->x * c->stride_w - c->pad_w, e->fit.input_columns, c->width);
    uint32_t image = e->fit.input_rows * e->fit.input_columns;
    uint32_t group = p->out_block / e->fit.out_blocks;
    uint64_t first = ((uint64_t)p->image * e->fit.groups + group) * e->fit.in_blocks;
    for (uint32_t b = 0; b < e->tiles->in_blocks; ++b) {
        berth_vta_instruction i = {.memory_type = BERTH_VTA_INP,
                                   .pop_next = b == 0 && e->step >= 2,
                                   .push_next = sums,
                                   .sram_base =
                                       (uint32_t)(e->step % 2) * e->fit.inp_half + b * image,
                                   .y_size = y.size,
                                   .x_size = x.size,
                                   .x_stride = step * c->width,
                                   .y_pad_before = y.before,
                                   .y_pad_after = y.after,
                                   .x_pad_before = x.before,
                                   .x_pad_after = x.after};
        uint64_t map = sums ? first : first + in_block + b;
        uint32_t buffer = sums ? in_block : buffer_input;
        if (c->parts) buffer = find_part(e, p, &map);
        if (c->map_blocks) map = (uint64_t)p->image * c->map_blocks + c->first_block + p->out_block;
        berth_vta__add_transfer(e, i, buffer,
                                (map * c->height + (uint64_t)step * y.begin) * c->width + x.begin);
    }
}

static void load_weights(emitter *e, const place *p, uint32_t in_block) {
    uint32_t kernel = e->conv->kernel_h * e->conv->kernel_w;
    berth_vta_instruction i = {.memory_type = BERTH_VTA_WGT,
                               .push_next = 1,
                               .sram_base = (uint32_t)(e->step % 2) * e->fit.wgt_half,
                               .y_size = e->tiles->out_blocks,
                               .x_size = e->tiles->in_blocks * kernel,
                               .x_stride = e->fit.in_blocks * kernel};
    berth_vta__add_transfer(e, i, buffer_weights,
                            ((uint64_t)p->out_block * e->fit.in_blocks + in_block) * kernel);
}

// The loops that a reduction has around its micro-ops: kernel rows and columns, or blocks of inputs.
static void reduce(emitter *e, uint32_t digit) {
    const berth_vta_conv *c = e->conv;
    bool products = c->form == BERTH_VTA_PRODUCTS;
    bool single = products && c->kernel_h == 1 && c->kernel_w == 1;
    uint32_t first = reduction(e, (uint32_t)(e->tile % 2), (uint32_t)(e->step % 2), digit);
    bool done = digit + 1 == e->fit.digits;
    berth_vta_instruction i = {.opcode = BERTH_VTA_GEMM,
                               .pop_prev = digit == 0,
                               .push_prev = done && e->step + 2 < e->step_count,
                               .uop_begin = first,
                               .uop_end = first + e->fit.set,
                               .iter_out = single ? e->tiles->in_blocks : c->kernel_h,
                               .iter_in = single ? 1 : c->kernel_w};
    if (single) {
        i.src_factor_out = e->fit.input_rows * e->fit.input_columns;
        i.wgt_factor_out = 1;
    } else {
        i.src_factor_out = berth_vta__conv_dilation_h(c) * e->fit.input_columns;
        i.src_factor_in = berth_vta__conv_dilation_w(c);
        i.wgt_factor_out = products ? c->kernel_w : 0;
        i.wgt_factor_in = products;
    }
    // A loop that runs once needs no factor, which may not even fit its field.
    if (i.iter_out == 1) i.src_factor_out = i.wgt_factor_out = 0;
    if (i.iter_in == 1) i.src_factor_in = i.wgt_factor_in = 0;
    berth_vta__add(e, i);
}

// ---- one tile ----

// Micro-ops of the tile, one per block: its results or their copy, alone or with what is read.
static uint32_t run(emitter *e, uint32_t dst, uint32_t src, bool each) {
    uint32_t pixels = e->tiles->rows * e->tiles->columns;
    return berth_vta__run(e, e->tiles->out_blocks, dst, src, each ? pixels : 0, 0);
}

// An ALU operation on the tile: micro-ops from `first` on, one per block; pixels are loops, of the
// source too where it has as many.
typedef struct operation {
    uint32_t code, first;
    bool use_imm, each_pixel;
    int32_t imm;
} operation;

static void add_alu(emitter *e, operation op) {
    uint32_t out = e->tiles->rows > 1 ? e->tiles->columns : 0, in = e->tiles->columns > 1;
    berth_vta__add(e, (berth_vta_instruction){.opcode = BERTH_VTA_ALU,
                                              .uop_begin = op.first,
                                              .uop_end = op.first + e->tiles->out_blocks,
                                              .iter_out = e->tiles->rows,
                                              .iter_in = e->tiles->columns,
                                              .dst_factor_out = out,
                                              .dst_factor_in = in,
                                              .src_factor_out = op.each_pixel ? out : 0,
                                              .src_factor_in = op.each_pixel ? in : 0,
                                              .alu_opcode = op.code,
                                              .use_imm = op.use_imm,
                                              .imm = (uint32_t)op.imm & 0xffffu});
}

// dst += src, each with its own pixels.
static void add_to(emitter *e, uint32_t dst, uint32_t src) {
    add_alu(
        e, (operation){.code = BERTH_VTA_ADD, .first = run(e, dst, src, true), .each_pixel = true});
}

static void reset_copy(emitter *e) {
    uint32_t copy = run(e, e->fit.copy, 0, false);
    berth_vta__add(
        e, (berth_vta_instruction){.opcode = BERTH_VTA_GEMM,
                                   .reset = 1,
                                   .uop_begin = copy,
                                   .uop_end = copy + e->tiles->out_blocks,
                                   .iter_out = e->tiles->rows,
                                   .iter_in = e->tiles->columns,
                                   .dst_factor_out = e->tiles->rows > 1 ? e->tiles->columns : 0,
                                   .dst_factor_in = e->tiles->columns > 1});
}

// One step of the ALU on a tile. `immediate`: micro-ops of the results, which immediates go with;
// `loaded`: how many numbers were loaded for earlier steps.
static void add_step(emitter *e, const place *p, const berth_vta_step *s, uint32_t immediate,
                     uint32_t loaded) {
    uint32_t results = (uint32_t)(e->tile % 2) * e->fit.acc_half;
    uint32_t dst = s->to_copy ? e->fit.copy : results;
    operation op = {.code = s->code};
    switch ((berth_vta_operand)s->by) {
    case BERTH_VTA_BY_NUMBER:
        op.use_imm = !berth_vta_step_loads(s);
        op.imm = s->number;
        op.first = s->to_copy ? run(e, dst, 0, false) : immediate;
        if (!op.use_imm) op.first = run(e, dst, e->fit.added + loaded, false);
        if (!op.use_imm) op.imm = 0;
        break;
    case BERTH_VTA_BY_BIAS:
        op.first = berth_vta__run(e, e->tiles->out_blocks, dst, e->fit.bias + p->out_block, 1, 0);
        break;
    case BERTH_VTA_BY_RESULTS:
    case BERTH_VTA_BY_COPY:
        op.each_pixel = true;
        op.first = run(e, dst, s->by == BERTH_VTA_BY_COPY ? e->fit.copy : results, true);
        break;
    }
    add_alu(e, op);
}

// From sums to results of 8 bits.
static void narrow(emitter *e, const place *p) {
    const berth_vta_steps *w = e->fit.work;
    uint32_t results = (uint32_t)(e->tile % 2) * e->fit.acc_half, loaded = 0;
    uint32_t first = has_bias(e) ? berth_vta__run(e, e->tiles->out_blocks, results,
                                                  e->fit.bias + p->out_block, 1, 0)
                                 : run(e, results, 0, false);
    for (uint32_t i = 0; i < w->count; ++i) {
        if (w->steps[i].resets)
            reset_copy(e);
        else
            add_step(e, p, &w->steps[i], first, loaded);
        loaded += berth_vta_step_loads(&w->steps[i]);
    }
}

static void emit_sums(emitter *e, const place *p) {
    uint32_t first = reduction(e, (uint32_t)(e->tile % 2), 0, 0);
    uint32_t results = (uint32_t)(e->tile % 2) * e->fit.acc_half;
    berth_vta__add(e, (berth_vta_instruction){.opcode = BERTH_VTA_GEMM,
                                              .pop_next = e->tile >= 2,
                                              .reset = 1,
                                              .uop_begin = first,
                                              .uop_end = first + e->fit.set,
                                              .iter_out = 1,
                                              .iter_in = 1});
    for (uint32_t s = 0; s < e->fit.steps; ++s, ++e->step) {
        load_inputs(e, p, s * e->tiles->in_blocks);
        if (e->conv->form == BERTH_VTA_PRODUCTS) load_weights(e, p, s * e->tiles->in_blocks);
        for (uint32_t digit = 0; digit < e->fit.digits; ++digit) {
            for (int bit = 0; digit > 0 && bit < 7; ++bit) add_to(e, results, results);
            reduce(e, digit);
        }
    }
    narrow(e, p);
}

static void emit_tiles(emitter *e) {
    const berth_vta_conv_tiles *t = e->tiles;
    uint32_t blocks = e->fit.groups * e->fit.out_blocks;
    for (uint32_t n = 0; n < e->conv->images / e->shape.batch; ++n)
        for (uint32_t o = 0; o < blocks; o += t->out_blocks)
            for (uint32_t y = 0; y < e->out_height; y += t->rows)
                for (uint32_t x = 0; x < e->out_width; x += t->columns, ++e->tile) {
                    uint32_t last_y = e->out_height - t->rows, last_x = e->out_width - t->columns;
                    place p = {n, o, y < last_y ? y : last_y, x < last_x ? x : last_x};
                    if (e->conv->form == BERTH_VTA_MAXIMA)
                        berth_vta__emit_maxima(e, &p);
                    else
                        emit_sums(e, &p);
                    e->list.data[e->list.count - 1].push_next = 1;  // results are there
                    berth_vta__store_tile(e, &p, buffer_output(e));
                }
    for (uint64_t k = 0; k < 2 && k < e->tile_count; ++k)
        berth_vta__add(e, (berth_vta_instruction){.pop_next = 1});
    berth_vta__add(e, (berth_vta_instruction){.opcode = BERTH_VTA_FINISH});
}

// ---- the kernel ----

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static berth_status check_size(const emitter *e) {
    const berth_vta_conv *c = e->conv;
    bool products = c->form == BERTH_VTA_PRODUCTS;
    uint64_t kernel = (uint64_t)c->kernel_h * c->kernel_w;
    uint64_t per_tile = 24 + 9 * e->fit.digits + e->tiles->out_blocks + (products ? 0 : kernel) +
                        (uint64_t)e->fit.steps * (e->tiles->in_blocks + 2);
    if (e->tile_count > ((1u << 21) - 16) / per_tile)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "a convolution of %llu tiles is more than one stream holds",
                                 (unsigned long long)e->tile_count);
    uint64_t pixels = (uint64_t)c->images * c->height * c->width;
    uint64_t out_pixels = (uint64_t)c->images * e->out_height * e->out_width;
    if (pixels * c->in_channels * e->shape.inp_bytes > UINT32_MAX ||
        out_pixels * c->out_channels * e->shape.inp_bytes > UINT32_MAX ||
        (products &&
         (uint64_t)c->in_channels * c->out_channels * kernel * e->shape.wgt_bytes > UINT32_MAX))
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "a convolution with a tensor of more than 4 GiB");
    return BERTH_OK;
}

static void bind(emitter *e, berth_vta_kernel *out) {
    const berth_vta_conv *c = e->conv;
    uint64_t images = c->images, kernel = (uint64_t)c->kernel_h * c->kernel_w;
    uint64_t input = images * c->in_channels * c->height * c->width * e->shape.inp_bytes;
    uint64_t sizes[BERTH_VTA_MOST_PARTS + 1] = {input, input};
    uint32_t last = buffer_output(e), blocks = e->fit.groups * e->fit.out_blocks;
    for (uint32_t i = 0; i < c->parts; ++i) sizes[i] = input / blocks * c->part_blocks[i];
    if (c->map_blocks) sizes[0] = input / blocks * c->map_blocks;
    if (c->form == BERTH_VTA_PRODUCTS) {
        sizes[buffer_weights] = (uint64_t)e->fit.in_blocks * e->fit.out_blocks * e->fit.groups *
                                kernel * e->shape.memory[BERTH_VTA_WGT].element_bytes;
        sizes[buffer_bias] = (uint64_t)c->out_channels * e->shape.batch * e->shape.acc_bytes;
    }
    sizes[last] = images * c->out_channels * e->out_height * e->out_width * e->shape.inp_bytes;
    berth_kernel_binding *bindings =
        berth_arena_new_array(e->arena, berth_kernel_binding, last + 1);
    for (uint32_t i = 0; i <= last; ++i)
        bindings[i] =
            (berth_kernel_binding){sizes[i], i == last ? BERTH_ACCESS_WRITE : BERTH_ACCESS_READ};
    out->bindings = bindings;
    out->binding_count = last + 1;
}

static berth_status encode_all(emitter *e, berth_vta_kernel *out) {
    uint32_t first = e->data.count;
    if (e->failed) return e->failed;
    if (e->micro_ops.count > e->shape.memory[BERTH_VTA_UOP].depth)
        return berth_status_make(BERTH_INTERNAL, "more micro-ops (%u) than were planned for",
                                 e->micro_ops.count);
    uint8_t *stream = berth_arena_alloc(e->arena, (size_t)e->list.count * 16);
    for (uint32_t i = 0; i < e->list.count; ++i)
        BERTH_TRY(berth_vta_encode(&e->isa, &e->list.data[i], stream + (size_t)i * 16));
    uint8_t *constants = berth_arena_alloc(e->arena, first + (size_t)e->micro_ops.count * 4);
    if (first) memcpy(constants, e->data.data, first);
    for (uint32_t i = 0; i < e->micro_ops.count * 4; ++i)
        constants[first + i] = (uint8_t)(e->micro_ops.data[i / 4] >> (8 * (i % 4)));
    memcpy(out->name, "conv", sizeof("conv"));
    out->stream = stream;
    out->instruction_count = e->list.count;
    out->constants = constants;
    out->constant_bytes = first + e->micro_ops.count * 4;
    out->relocations = e->relocations.data;
    out->relocation_count = e->relocations.count;
    return BERTH_OK;
}

static berth_status check_tiles(const emitter *e) {
    const berth_vta_conv *c = e->conv;
    const berth_vta_conv_tiles *t = e->tiles;
    bool single = c->form == BERTH_VTA_PRODUCTS && c->kernel_h == 1 && c->kernel_w == 1;
    if (t->out_blocks == 0 || t->in_blocks == 0 || t->rows == 0 || t->columns == 0 ||
        t->rows > e->out_height || t->columns > e->out_width || (t->in_blocks > 1 && !single))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "tiles that are none of this convolution");
    return BERTH_OK;
}

berth_status berth_vta_emit_conv(berth_arena *arena, const berth_vta_config *config,
                                 const berth_vta_conv *conv, const berth_vta_conv_tiles *tiles,
                                 berth_vta_kernel *out_kernel) {
    emitter e = {.arena = arena, .conv = conv, .tiles = tiles};
    berth_vta_steps work;
    memset(out_kernel, 0, sizeof(*out_kernel));
    BERTH_TRY(berth_vta_shape_make(config, &e.shape));
    BERTH_TRY(berth_vta_isa_make(&e.shape, &e.isa));
    BERTH_TRY(berth_vta__conv_check(&e.shape, conv));
    BERTH_TRY(berth_vta_conv_find_steps(&e.shape, conv, &work));
    e.out_height = berth_vta_conv_out_height(conv);
    e.out_width = berth_vta_conv_out_width(conv);
    BERTH_TRY(check_tiles(&e));
    e.fit = berth_vta__conv_fit(&e.shape, conv, &work, tiles);
    if (!e.fit.fits || e.fit.out_blocks % tiles->out_blocks || e.fit.in_blocks % tiles->in_blocks)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "tiles that do not fit, or do not divide the channels");
    e.tile_count = (uint64_t)(conv->images / e.shape.batch) * e.fit.groups *
                   (e.fit.out_blocks / tiles->out_blocks) * divide_up(e.out_height, tiles->rows) *
                   divide_up(e.out_width, tiles->columns);
    e.step_count = e.tile_count * e.fit.steps;
    BERTH_TRY(check_size(&e));
    load_constants(&e);
    emit_tiles(&e);
    place_micro_ops(&e);
    bind(&e, out_kernel);
    return encode_all(&e, out_kernel);
}
