// Emitting a convolution. Per tile of results, in the three units:
//
//   load:    for each step (some blocks of input channels): LOAD inp, LOAD wgt, into the halves in turn
//   compute: GEMM reset; for each step GEMM over kernel positions (outer) and results (micro-ops);
//            ALU ADD bias, SHR (or what rounds to even), MIN, MAX; halves of the accumulators in turn
//   store:   STORE, a block of output channels each
//
// Tokens: load tells compute that a step is there; compute tells load that it has used it (but for
// the last two steps); compute tells store that a tile is done; store tells compute that it has
// written it. At the end compute takes what store still gives.
#include "drivers/vta/emit/conv.h"

#include <string.h>

#include "drivers/vta/emit/conv_fit.h"

enum { buffer_input, buffer_weights, buffer_bias };
enum { reduction_sets = 4 };  // micro-ops by half of accumulators and of operands

typedef struct emitter {
    berth_arena *arena;
    const berth_vta_conv *conv;
    const berth_vta_conv_tiles *tiles;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_vta_conv_fit fit;
    uint32_t out_height, out_width;
    BERTH_VEC(berth_vta_instruction) list;
    BERTH_VEC(berth_vta_relocation) relocations;
    BERTH_VEC(uint32_t) micro_ops;
    uint64_t tile_count, step_count;  // in all
    uint64_t tile, step;              // at hand
} emitter;

static void add(emitter *e, berth_vta_instruction instruction) {
    berth_vec_push(e->arena, &e->list, instruction);
}

// A LOAD or STORE of element `element` of a buffer on.
static void add_transfer(emitter *e, berth_vta_instruction i, uint32_t buffer, uint64_t element) {
    uint64_t bytes = element * e->shape.memory[i.memory_type].element_bytes;
    berth_vec_push(e->arena, &e->relocations,
                   (berth_vta_relocation){e->list.count, buffer, (uint32_t)bytes});
    add(e, i);
}

// ---- micro-ops ----

static berth_status add_micro_op(emitter *e, uint64_t dst, uint64_t src, uint64_t wgt) {
    uint32_t word = 0;
    BERTH_TRY(berth_vta_encode_micro_op(
        &e->isa, (berth_vta_micro_op){(uint32_t)dst, (uint32_t)src, (uint32_t)wgt}, &word));
    berth_vec_push(e->arena, &e->micro_ops, word);
    return BERTH_OK;
}

// The results of a tile, at the first position of the kernel and the first block of the step.
static berth_status add_reduction(emitter *e, uint32_t acc_half, uint32_t operand_half) {
    const berth_vta_conv *c = e->conv;
    const berth_vta_conv_tiles *t = e->tiles;
    uint64_t inp = (uint64_t)operand_half * e->fit.inp_half;
    uint64_t wgt = (uint64_t)operand_half * e->fit.wgt_half;
    uint64_t block_weights = (uint64_t)t->in_blocks * c->kernel_h * c->kernel_w;
    uint64_t dst = (uint64_t)acc_half * e->fit.acc_half;
    for (uint32_t o = 0; o < t->out_blocks; ++o)
        for (uint32_t y = 0; y < t->rows; ++y)
            for (uint32_t x = 0; x < t->columns; ++x)
                BERTH_TRY(add_micro_op(e, dst++,
                                       inp + (uint64_t)y * c->stride * e->fit.input_columns +
                                           (uint64_t)x * c->stride,
                                       wgt + o * block_weights));
    return BERTH_OK;
}

// A result of each block with the block's bias; pixels are loops.
static berth_status add_biases(emitter *e, uint32_t acc_half) {
    uint64_t pixels = (uint64_t)e->tiles->rows * e->tiles->columns;
    for (uint32_t o = 0; o < e->fit.out_blocks; ++o)
        BERTH_TRY(add_micro_op(
            e, (uint64_t)acc_half * e->fit.acc_half + o % e->tiles->out_blocks * pixels,
            e->fit.bias + o, 0));
    return BERTH_OK;
}

// Where the output is among the buffers.
static uint32_t buffer_output(const emitter *e) {
    return e->conv->no_bias ? buffer_bias : buffer_bias + 1;
}

static bool rounds(const emitter *e) {
    return e->conv->to_even && e->conv->shift > 0;
}

// The copy's results alone, then with those of each half: as what is read, and as what is written.
static berth_status add_copies(emitter *e) {
    uint64_t pixels = (uint64_t)e->tiles->rows * e->tiles->columns;
    for (uint32_t set = 0; set < 5 && rounds(e); ++set)
        for (uint32_t o = 0; o < e->tiles->out_blocks; ++o) {
            uint64_t copy = e->fit.copy + o * pixels;
            uint64_t own = (uint64_t)(set - 1) % 2 * e->fit.acc_half + o * pixels;
            BERTH_TRY(set == 0   ? add_micro_op(e, copy, 0, 0)
                      : set <= 2 ? add_micro_op(e, copy, own, 0)
                                 : add_micro_op(e, own, copy, 0));
        }
    return BERTH_OK;
}

static berth_status load_constants(emitter *e) {
    for (uint32_t set = 0; set < reduction_sets; ++set)
        BERTH_TRY(add_reduction(e, set / 2, set % 2));
    for (uint32_t half = 0; half < 2; ++half) BERTH_TRY(add_biases(e, half));
    BERTH_TRY(add_copies(e));
    uint32_t count = e->micro_ops.count;
    add_transfer(e, (berth_vta_instruction){.y_size = 1, .x_size = count, .x_stride = count},
                 BERTH_VTA_CONSTANTS, 0);
    if (e->conv->no_bias) return BERTH_OK;
    add_transfer(e,
                 (berth_vta_instruction){.memory_type = BERTH_VTA_ACC,
                                         .sram_base = e->fit.bias,
                                         .y_size = 1,
                                         .x_size = e->fit.out_blocks,
                                         .x_stride = e->fit.out_blocks},
                 buffer_bias, 0);
    return BERTH_OK;
}

// ---- one step ----

// Where a tile lies in the output: the last ones end where the output does, and may overlap others.
typedef struct place {
    uint32_t image;      // of BATCH images each
    uint32_t out_block;  // the first
    uint32_t y, x;
} place;

// The part of [begin, begin + size) that lies in [0, extent).
typedef struct span {
    uint32_t begin, size, before, after;
} span;

static span clip(int64_t begin, int64_t size, int64_t extent) {
    int64_t end = begin + size;
    int64_t first = begin < 0 ? 0 : begin, last = end > extent ? extent : end;
    return (span){(uint32_t)first, (uint32_t)(last - first), (uint32_t)(first - begin),
                  (uint32_t)(end - last)};
}

static void load_inputs(emitter *e, const place *p, uint32_t in_block) {
    const berth_vta_conv *c = e->conv;
    span y = clip((int64_t)p->y * c->stride - c->pad, e->fit.input_rows, c->height);
    span x = clip((int64_t)p->x * c->stride - c->pad, e->fit.input_columns, c->width);
    uint32_t image = e->fit.input_rows * e->fit.input_columns;
    for (uint32_t b = 0; b < e->tiles->in_blocks; ++b) {
        berth_vta_instruction i = {.memory_type = BERTH_VTA_INP,
                                   .pop_next = b == 0 && e->step >= 2,
                                   .sram_base =
                                       (uint32_t)(e->step % 2) * e->fit.inp_half + b * image,
                                   .y_size = y.size,
                                   .x_size = x.size,
                                   .x_stride = c->width,
                                   .y_pad_before = y.before,
                                   .y_pad_after = y.after,
                                   .x_pad_before = x.before,
                                   .x_pad_after = x.after};
        uint64_t map = (uint64_t)p->image * e->fit.in_blocks + in_block + b;
        add_transfer(e, i, buffer_input, (map * c->height + y.begin) * c->width + x.begin);
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
    add_transfer(e, i, buffer_weights,
                 ((uint64_t)p->out_block * e->fit.in_blocks + in_block) * kernel);
}

// The loops that a reduction has around its micro-ops: kernel rows and columns, or blocks of inputs.
static void reduce(emitter *e) {
    const berth_vta_conv *c = e->conv;
    bool single = c->kernel_h == 1 && c->kernel_w == 1;
    uint32_t set = (uint32_t)(e->tile % 2 * 2 + e->step % 2), tile = (uint32_t)e->fit.tile;
    berth_vta_instruction i = {.opcode = BERTH_VTA_GEMM,
                               .pop_prev = 1,
                               .push_prev = e->step + 2 < e->step_count,
                               .uop_begin = set * tile,
                               .uop_end = (set + 1) * tile,
                               .iter_out = single ? e->tiles->in_blocks : c->kernel_h,
                               .iter_in = single ? 1 : c->kernel_w};
    if (single) {
        i.src_factor_out = e->fit.input_rows * e->fit.input_columns;
        i.wgt_factor_out = 1;
    } else {
        i.src_factor_out = e->fit.input_columns;
        i.src_factor_in = 1;
        i.wgt_factor_out = c->kernel_w;
        i.wgt_factor_in = 1;
    }
    // A loop that runs once needs no factor, which may not even fit its field.
    if (i.iter_out == 1) i.src_factor_out = i.wgt_factor_out = 0;
    if (i.iter_in == 1) i.src_factor_in = i.wgt_factor_in = 0;
    add(e, i);
}

// ---- one tile ----

// An ALU operation on the results of the tile: micro-ops from `first` on, one per block; pixels are
// loops, of the source too where it is no bias.
typedef struct operation {
    uint32_t code, first;
    bool use_imm, each_pixel;
    int32_t imm;
} operation;

static void add_alu(emitter *e, operation op, bool last) {
    uint32_t out = e->tiles->rows > 1 ? e->tiles->columns : 0, in = e->tiles->columns > 1;
    add(e, (berth_vta_instruction){.opcode = BERTH_VTA_ALU,
                                   .push_next = last,
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

static void add_imm(emitter *e, uint32_t code, uint32_t first, int32_t imm, bool last) {
    add_alu(e, (operation){.code = code, .first = first, .use_imm = true, .imm = imm}, last);
}

// Results from `first` on, shifted with halves to even (conv.h).
static void round_to_even(emitter *e, uint32_t first) {
    uint32_t half = (uint32_t)(e->tile % 2), blocks = e->tiles->out_blocks;
    uint32_t copy = (uint32_t)(reduction_sets * e->fit.tile) + 2 * e->fit.out_blocks;
    int32_t step = 1 << (e->conv->shift - 1), shift = (int32_t)e->conv->shift + 1;
    add(e, (berth_vta_instruction){.opcode = BERTH_VTA_GEMM,
                                   .reset = 1,
                                   .uop_begin = copy,
                                   .uop_end = copy + blocks,
                                   .iter_out = e->tiles->rows,
                                   .iter_in = e->tiles->columns,
                                   .dst_factor_out = e->tiles->rows > 1 ? e->tiles->columns : 0,
                                   .dst_factor_in = e->tiles->columns > 1});
    operation from = {
        .code = BERTH_VTA_ADD, .first = copy + (1 + half) * blocks, .each_pixel = true};
    operation back = {
        .code = BERTH_VTA_ADD, .first = copy + (3 + half) * blocks, .each_pixel = true};
    add_alu(e, from, false);
    add_imm(e, BERTH_VTA_ADD, copy, 3 * step - 1, false);
    add_imm(e, BERTH_VTA_SHR, copy, shift, false);
    add_imm(e, BERTH_VTA_ADD, first, step, false);
    add_imm(e, BERTH_VTA_SHR, first, shift, false);
    add_alu(e, back, false);
}

// From sums to results of 8 bits.
static void narrow(emitter *e, const place *p) {
    uint32_t first = reduction_sets * (uint32_t)e->fit.tile +
                     (uint32_t)(e->tile % 2) * e->fit.out_blocks + p->out_block;
    if (!e->conv->no_bias) add_alu(e, (operation){.code = BERTH_VTA_ADD, .first = first}, false);
    if (rounds(e))
        round_to_even(e, first);
    else
        add_imm(e, BERTH_VTA_SHR, first, (int32_t)e->conv->shift, false);
    add_imm(e, BERTH_VTA_MIN, first, e->conv->high, false);
    add_imm(e, BERTH_VTA_MAX, first, e->conv->low, true);
}

static void store_tile(emitter *e, const place *p) {
    uint32_t pixels = e->tiles->rows * e->tiles->columns;
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
        uint64_t map = (uint64_t)p->image * e->fit.out_blocks + p->out_block + o;
        add_transfer(e, i, buffer_output(e), (map * e->out_height + p->y) * e->out_width + p->x);
    }
}

static void emit_tile(emitter *e, const place *p) {
    uint32_t tile = (uint32_t)e->fit.tile, set = (uint32_t)(e->tile % 2 * 2);
    add(e, (berth_vta_instruction){.opcode = BERTH_VTA_GEMM,
                                   .pop_next = e->tile >= 2,
                                   .reset = 1,
                                   .uop_begin = set * tile,
                                   .uop_end = (set + 1) * tile,
                                   .iter_out = 1,
                                   .iter_in = 1});
    for (uint32_t b = 0; b < e->fit.in_blocks; b += e->tiles->in_blocks, ++e->step) {
        load_inputs(e, p, b);
        load_weights(e, p, b);
        reduce(e);
    }
    narrow(e, p);
    store_tile(e, p);
    e->tile++;
}

static void emit_tiles(emitter *e) {
    const berth_vta_conv_tiles *t = e->tiles;
    for (uint32_t n = 0; n < e->conv->images / e->shape.batch; ++n)
        for (uint32_t o = 0; o < e->fit.out_blocks; o += t->out_blocks)
            for (uint32_t y = 0; y < e->out_height; y += t->rows)
                for (uint32_t x = 0; x < e->out_width; x += t->columns) {
                    uint32_t last_y = e->out_height - t->rows, last_x = e->out_width - t->columns;
                    place p = {n, o, y < last_y ? y : last_y, x < last_x ? x : last_x};
                    emit_tile(e, &p);
                }
    for (uint64_t k = 0; k < 2 && k < e->tile_count; ++k)
        add(e, (berth_vta_instruction){.pop_next = 1});
    add(e, (berth_vta_instruction){.opcode = BERTH_VTA_FINISH});
}

// ---- the kernel ----

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static berth_status check_size(const emitter *e) {
    const berth_vta_conv *c = e->conv;
    uint64_t per_tile =
        12 + e->tiles->out_blocks +
        (uint64_t)(e->fit.in_blocks / e->tiles->in_blocks) * (e->tiles->in_blocks + 2);
    if (e->tile_count > ((1u << 21) - 16) / per_tile)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "a convolution of %llu tiles is more than one stream holds",
                                 (unsigned long long)e->tile_count);
    uint64_t pixels = (uint64_t)c->images * c->height * c->width;
    uint64_t out_pixels = (uint64_t)c->images * e->out_height * e->out_width;
    if (pixels * c->in_channels * e->shape.inp_bytes > UINT32_MAX ||
        out_pixels * c->out_channels * e->shape.inp_bytes > UINT32_MAX ||
        (uint64_t)c->in_channels * c->out_channels * c->kernel_h * c->kernel_w *
                e->shape.wgt_bytes >
            UINT32_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "a convolution with a tensor of more than 4 GiB");
    return BERTH_OK;
}

static void bind(emitter *e, berth_vta_kernel *out) {
    const berth_vta_conv *c = e->conv;
    uint64_t kernel = (uint64_t)c->kernel_h * c->kernel_w, images = c->images;
    uint64_t sizes[] = {images * c->in_channels * c->height * c->width * e->shape.inp_bytes,
                        c->in_channels * kernel * c->out_channels * e->shape.wgt_bytes,
                        (uint64_t)c->out_channels * e->shape.batch * e->shape.acc_bytes, 0};
    uint32_t last = buffer_output(e);
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
    uint8_t *stream = berth_arena_alloc(e->arena, (size_t)e->list.count * 16);
    for (uint32_t i = 0; i < e->list.count; ++i)
        BERTH_TRY(berth_vta_encode(&e->isa, &e->list.data[i], stream + (size_t)i * 16));
    uint8_t *constants = berth_arena_alloc(e->arena, (size_t)e->micro_ops.count * 4);
    for (uint32_t i = 0; i < e->micro_ops.count * 4; ++i)
        constants[i] = (uint8_t)(e->micro_ops.data[i / 4] >> (8 * (i % 4)));
    memcpy(out->name, "conv", sizeof("conv"));
    out->stream = stream;
    out->instruction_count = e->list.count;
    out->constants = constants;
    out->constant_bytes = e->micro_ops.count * 4;
    out->relocations = e->relocations.data;
    out->relocation_count = e->relocations.count;
    return BERTH_OK;
}

berth_status berth_vta_emit_conv(berth_arena *arena, const berth_vta_config *config,
                                 const berth_vta_conv *conv, const berth_vta_conv_tiles *tiles,
                                 berth_vta_kernel *out_kernel) {
    emitter e = {.arena = arena, .conv = conv, .tiles = tiles};
    memset(out_kernel, 0, sizeof(*out_kernel));
    BERTH_TRY(berth_vta_shape_make(config, &e.shape));
    BERTH_TRY(berth_vta_isa_make(&e.shape, &e.isa));
    BERTH_TRY(berth_vta__conv_check(&e.shape, conv));
    e.out_height = berth_vta_conv_out_height(conv);
    e.out_width = berth_vta_conv_out_width(conv);
    bool single = conv->kernel_h == 1 && conv->kernel_w == 1;
    if (tiles->out_blocks == 0 || tiles->in_blocks == 0 || tiles->rows == 0 ||
        tiles->columns == 0 || tiles->rows > e.out_height || tiles->columns > e.out_width ||
        (tiles->in_blocks > 1 && !single))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "tiles that are none of this convolution");
    e.fit = berth_vta__conv_fit(&e.shape, conv, tiles);
    if (!e.fit.fits || e.fit.out_blocks % tiles->out_blocks || e.fit.in_blocks % tiles->in_blocks)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "tiles that do not fit, or do not divide the channels");
    e.tile_count = (uint64_t)(conv->images / e.shape.batch) *
                   (e.fit.out_blocks / tiles->out_blocks) * divide_up(e.out_height, tiles->rows) *
                   divide_up(e.out_width, tiles->columns);
    e.step_count = e.tile_count * (e.fit.in_blocks / tiles->in_blocks);
    BERTH_TRY(check_size(&e));
    BERTH_TRY(load_constants(&e));
    emit_tiles(&e);
    bind(&e, out_kernel);
    return encode_all(&e, out_kernel);
}
