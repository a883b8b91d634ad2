// Choosing the tiles of a convolution.
#include "drivers/vta/emit/conv.h"
#include "drivers/vta/emit/emitter.h"

enum { most_extent = 16383, most_pad = 15, least_apart = 3 };

uint32_t berth_vta__conv_dilation_h(const berth_vta_conv *c) {
    return c->dilation_h ? c->dilation_h : 1;
}

uint32_t berth_vta__conv_dilation_w(const berth_vta_conv *c) {
    return c->dilation_w ? c->dilation_w : 1;
}

uint32_t berth_vta__conv_window_h(const berth_vta_conv *c) {
    return (c->kernel_h - 1) * berth_vta__conv_dilation_h(c) + 1;
}

uint32_t berth_vta__conv_window_w(const berth_vta_conv *c) {
    return (c->kernel_w - 1) * berth_vta__conv_dilation_w(c) + 1;
}

uint32_t berth_vta_conv_out_height(const berth_vta_conv *c) {
    if (c->out_height) return c->out_height;
    return (c->height + 2 * c->pad_h - berth_vta__conv_window_h(c)) / c->stride_h + 1;
}

uint32_t berth_vta_conv_out_width(const berth_vta_conv *c) {
    if (c->out_width) return c->out_width;
    return (c->width + 2 * c->pad_w - berth_vta__conv_window_w(c)) / c->stride_w + 1;
}

static berth_status bad(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "no convolution for a VTA: %s", what);
}

// Groups of channels: each block is one where channels are by themselves.
static uint32_t groups_of(const berth_vta_shape *shape, const berth_vta_conv *c) {
    if (c->form != BERTH_VTA_PRODUCTS) return c->out_channels / shape->block;
    return c->groups ? c->groups : 1;
}

static berth_status check_sums(const berth_vta_shape *shape, const berth_vta_conv *c) {
    if (c->sources < 1 || c->sources > 2) return bad("sums of one input or two");
    for (uint32_t s = 0; s < c->sources; ++s)
        if (c->factors[s] < 1 || c->factors[s] > 127) return bad("a factor from 1 to 127");
    if (c->divisor < 1 || c->divisor > 32768) return bad("a divisor from 1 to 32768");
    if (shape->acc_bytes < 4 && berth_vta__conv_largest_sum(shape, c) * 4 > INT16_MAX)
        return bad("sums that do not fit the accumulators");
    uint32_t blocks = 0;
    if (c->parts > BERTH_VTA_MOST_PARTS || (c->parts && c->sources != 1))
        return bad("more than 8 tensors side by side, or two such inputs");
    for (uint32_t i = 0; i < c->parts; ++i) blocks += c->part_blocks[i];
    if (c->parts && blocks != c->in_channels / shape->block)
        return bad("tensors side by side with more or fewer channels than there are");
    if (c->map_blocks && (c->parts || c->sources != 1 || c->map_blocks > most_extent ||
                          (uint64_t)c->first_block + c->in_channels / shape->block > c->map_blocks))
        return bad("channels beyond those of the input's maps, or of several inputs");
    if (c->kernel_h > 255 || c->kernel_w > 255) return bad("a window of more than 255 rows");
    return BERTH_OK;
}

// Rows, or columns. `results` is 0 where they follow from the rest.
static berth_status check_lines(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                                uint32_t results) {
    if (kernel == 0 || stride == 0 || stride > most_extent || kernel > most_extent)
        return bad("a window or stride of 0, or above 16383");
    if (pad > most_pad) return bad("more padding than the 15 that a LOAD can make");
    if (results > most_extent) return bad("results of more than 16383 rows or columns");
    if (results == 0)
        return size + 2 * pad < kernel ? bad("a kernel larger than the padded map") : BERTH_OK;
    int64_t end = ((int64_t)results - 1) * stride + kernel - pad - size;
    return end > most_pad ? bad("more padding at the end than the 15 that a LOAD can make")
                          : BERTH_OK;
}

berth_status berth_vta__conv_check(const berth_vta_shape *shape, const berth_vta_conv *c) {
    if (c->images == 0 || c->images % shape->batch) return bad("images are no multiple of BATCH");
    if (c->in_channels == 0 || c->in_channels % shape->block || c->out_channels == 0 ||
        c->out_channels % shape->block)
        return bad("channels are no multiple of BLOCK; fill them up with zeros");
    if (c->height == 0 || c->width == 0 || c->height > most_extent || c->width > most_extent ||
        c->images > most_extent || c->in_channels > most_extent || c->out_channels > most_extent)
        return bad("an extent of 0, or above 16383");
    if (c->kernel_h == 0 || c->kernel_w == 0 || c->kernel_h > most_extent ||
        c->kernel_w > most_extent || c->dilation_h > most_extent || c->dilation_w > most_extent)
        return bad("a kernel of 0, or a kernel or dilation above 16383");
    BERTH_TRY(
        check_lines(c->height, berth_vta__conv_window_h(c), c->stride_h, c->pad_h, c->out_height));
    BERTH_TRY(
        check_lines(c->width, berth_vta__conv_window_w(c), c->stride_w, c->pad_w, c->out_width));
    if (c->shift > (c->to_even ? 14 : 15))
        return bad("a shift above 15 (14 where halves go to even), which boards do not do");
    if (c->low < INT16_MIN || c->high > INT16_MAX || c->low > c->high)
        return bad("bounds beyond 16 bits, or empty");
    uint32_t groups = groups_of(shape, c);
    if (c->in_channels % (groups * shape->block) || c->out_channels % (groups * shape->block))
        return bad("groups whose channels are no multiple of BLOCK");
    if (c->form == BERTH_VTA_PRODUCTS) return BERTH_OK;
    if (c->in_channels != c->out_channels) return bad("channels by themselves that come or go");
    return c->form == BERTH_VTA_SUMS ? check_sums(shape, c) : BERTH_OK;
}

void berth_vta_conv_stack(const berth_vta_shape *shape, berth_vta_conv *c) {
    uint32_t out_height = berth_vta_conv_out_height(c), out_width = berth_vta_conv_out_width(c);
    uint64_t maps = (uint64_t)(c->images / shape->batch) * (c->out_channels / shape->block);
    // The last window ends in its own map.
    bool apart = c->pad_h > 0 || c->parts || c->map_blocks ||
                 (uint64_t)(out_height - 1) * c->stride_h + berth_vta__conv_window_h(c) > c->height;
    if (c->form == BERTH_VTA_PRODUCTS || apart || maps * c->height > most_extent) return;
    // A result of one row is that of any stride.
    uint32_t stride = out_height == 1 ? c->height : c->stride_h;
    if (out_height * stride != c->height) return;
    c->stride_h = stride;
    c->out_height = (uint32_t)maps * out_height;
    c->out_width = out_width;
    c->height *= (uint32_t)maps;
    c->images = shape->batch;
    c->in_channels = c->out_channels = shape->block;
}

// ---- what fits ----

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

// Micro-ops of a maximum: tiles in the middle share theirs, those at either end have their own.
static uint64_t maxima_micro_ops(const berth_vta_conv *c, const berth_vta_conv_tiles *t) {
    uint64_t down = divide_up(berth_vta_conv_out_height(c), t->rows);
    uint64_t across = divide_up(berth_vta_conv_out_width(c), t->columns);
    uint64_t ends_y =
        2 * divide_up(berth_vta__conv_window_h(c), (uint64_t)t->rows * c->stride_h) + 2;
    uint64_t ends_x =
        2 * divide_up(berth_vta__conv_window_w(c), (uint64_t)t->columns * c->stride_w) + 2;
    uint64_t kinds = (down < ends_y ? down : ends_y) * (across < ends_x ? across : ends_x);
    return 2 * kinds * ((uint64_t)c->kernel_h * c->kernel_w + 1) + 6;
}

// Whether the first tile and the last have some of the input: so have those between.
static bool sees_input(uint32_t size, uint32_t results, uint32_t tile, uint32_t stride,
                       uint32_t pad, uint32_t input) {
    return input > pad && (uint64_t)(results - tile) * stride < (uint64_t)size + pad;
}

static void place_accumulators(const berth_vta_shape *shape, const berth_vta_conv *c,
                               berth_vta_conv_fit *f) {
    bool has_bias = c->form == BERTH_VTA_PRODUCTS && !c->no_bias;
    uint32_t acc = shape->memory[BERTH_VTA_ACC].depth, blocks = f->groups * f->out_blocks;
    uint64_t copy = c->form == BERTH_VTA_MAXIMA ? f->input : f->work->has_copy ? f->tile : 0;
    uint32_t biases = has_bias ? blocks : 0, added = berth_vta_steps_loaded(f->work);
    uint32_t spare = f->set > f->tile ? f->set - (uint32_t)f->tile : 0;
    uint64_t rest = biases + added + spare + copy;
    f->acc_half = acc > rest ? (uint32_t)(acc - rest) / 2 : 0;
    f->bias = 2 * f->acc_half;
    f->added = f->bias + biases;
    f->spare = f->added + added;
    f->copy = f->spare + spare;
}

berth_vta_conv_fit berth_vta__conv_fit(const berth_vta_shape *shape, const berth_vta_conv *c,
                                       const berth_vta_steps *work, const berth_vta_conv_tiles *t) {
    bool apart = c->form == BERTH_VTA_PRODUCTS && c->kernel_h == 1 && c->pad_h == 0 &&
                 (uint64_t)c->stride_h * c->width <= UINT16_MAX;
    uint32_t row_step = apart ? c->stride_h : 1;
    berth_vta_conv_fit f = {
        .tile = (uint64_t)t->out_blocks * t->rows * t->columns,
        .row_step = row_step,
        .input_rows = (t->rows - 1) * (c->stride_h / row_step) + berth_vta__conv_window_h(c),
        .input_columns = (t->columns - 1) * c->stride_w + berth_vta__conv_window_w(c),
        .groups = groups_of(shape, c),
        .work = work,
        .digits = work->digits};
    bool products = c->form == BERTH_VTA_PRODUCTS, maxima = c->form == BERTH_VTA_MAXIMA;
    f.in_blocks = c->in_channels / shape->block / f.groups;
    f.out_blocks = c->out_channels / shape->block / f.groups;
    f.steps = products ? f.in_blocks / t->in_blocks : maxima ? 1 : c->sources;
    f.input = (uint64_t)t->in_blocks * f.input_rows * f.input_columns;
    f.weights = products ? (uint64_t)t->out_blocks * t->in_blocks * c->kernel_h * c->kernel_w
                         : f.digits + 1;
    f.set = f.tile > least_apart || maxima ? (uint32_t)f.tile : least_apart;
    f.inp_half = shape->memory[BERTH_VTA_INP].depth / 2;
    f.wgt_half = shape->memory[BERTH_VTA_WGT].depth / 2;
    place_accumulators(shape, c, &f);
    // A reduction for each half of results and operands; what the ALU does, an element per block.
    bool has_bias = products && !c->no_bias;
    uint64_t each = work->has_copy ? 5 : 0;
    each += (f.digits > 1 ? 2u : 0u) + (berth_vta_steps_loaded(work) ? 3u : 0u);
    uint64_t micro_ops = 4 * (uint64_t)f.digits * f.set + each * t->out_blocks +
                         2 * (has_bias ? f.groups * f.out_blocks : t->out_blocks) + has_bias;
    if (maxima) micro_ops = maxima_micro_ops(c, t);
    f.fits = f.tile <= f.acc_half && f.input <= f.inp_half && f.weights <= f.wgt_half &&
             micro_ops <= shape->memory[BERTH_VTA_UOP].depth &&
             sees_input(c->height, berth_vta_conv_out_height(c), t->rows, c->stride_h, c->pad_h,
                        f.input_rows) &&
             sees_input(c->width, berth_vta_conv_out_width(c), t->columns, c->stride_w, c->pad_w,
                        f.input_columns);
    f.micro_ops = f.fits ? (uint32_t)micro_ops : 0;
    return f;
}

// ---- estimate ----

static double transfer_cycles(const berth_vta_timing *t, double transfers, double rows,
                              double bytes) {
    return transfers * t->dram_latency + (rows - transfers) * t->row_cycles +
           bytes / t->dram_bytes_per_cycle;
}

typedef struct estimate {
    double instructions, gemm, alu;  // of compute: micro-ops
} estimate;

static estimate sums_of_tile(const berth_vta_conv *c, const berth_vta_conv_fit *f,
                             uint32_t in_blocks) {
    const berth_vta_steps *w = f->work;
    double kernel = (double)c->kernel_h * c->kernel_w, tile = (double)f->tile;
    double alu = 7.0 * (f->digits - 1), resets = 0;
    for (uint32_t i = 0; i < w->count; ++i) resets += w->steps[i].resets;
    alu += w->count - resets;
    double gemm = 1 + resets + (double)f->steps * f->digits;
    double macs = (double)f->steps * in_blocks * f->digits * kernel * f->set;
    return (estimate){gemm + alu, macs + f->set + resets * tile, alu * tile};
}

static estimate maxima_of_tile(const berth_vta_conv *c, const berth_vta_conv_fit *f) {
    double kernel = (double)c->kernel_h * c->kernel_w, tile = (double)f->tile;
    double alu = kernel - 1 + f->work->count;
    return (estimate){4 + alu, 2 * tile + 2 * (double)f->input, alu * tile};
}

static double estimate_cycles(const berth_vta_shape *s, const berth_vta_conv *c,
                              const berth_vta_conv_tiles *t, const berth_vta_conv_fit *f,
                              const berth_vta_timing *timing) {
    double issue = timing->issue_cycles + timing->pipeline_latency, tile = (double)f->tile;
    estimate e =
        c->form == BERTH_VTA_MAXIMA ? maxima_of_tile(c, f) : sums_of_tile(c, f, t->in_blocks);
    double compute =
        e.instructions * issue + e.gemm * timing->gemm_interval + e.alu * timing->alu_interval;
    double loads = (double)f->steps * t->in_blocks;
    double inputs = transfer_cycles(timing, loads, loads * f->input_rows,
                                    (double)f->steps * (double)f->input *
                                        s->memory[BERTH_VTA_INP].element_bytes);
    double weights = 0;
    if (c->form == BERTH_VTA_PRODUCTS)
        weights = transfer_cycles(timing, f->steps, (double)f->steps * t->out_blocks,
                                  (double)f->steps * (double)f->weights *
                                      s->memory[BERTH_VTA_WGT].element_bytes);
    double outputs = transfer_cycles(timing, t->out_blocks, (double)t->out_blocks * t->rows,
                                     tile * s->memory[BERTH_VTA_OUT].element_bytes);
    double port = inputs + weights + outputs;
    double tiles = (double)(c->images / s->batch) * f->groups * (f->out_blocks / t->out_blocks) *
                   (double)divide_up(berth_vta_conv_out_height(c), t->rows) *
                   (double)divide_up(berth_vta_conv_out_width(c), t->columns);
    double once = transfer_cycles(timing, 2, 2, 4.0 * f->micro_ops) + port;  // and the first tile
    return once + tiles * (compute > port ? compute : port);
}

typedef struct search {
    const berth_vta_shape *shape;
    const berth_vta_conv *conv;
    const berth_vta_timing *timing;
    berth_vta_steps work;
    berth_vta_conv_tiles *best;  // [count], the best first
    uint32_t count, most;
} search;

static void keep(search *s, const berth_vta_conv_tiles *tiles) {
    uint32_t at = s->count;
    while (at > 0 && tiles->cycles < s->best[at - 1].cycles) --at;
    if (at == s->most) return;
    if (s->count < s->most) s->count++;
    for (uint32_t i = s->count - 1; i > at; --i) s->best[i] = s->best[i - 1];
    s->best[at] = *tiles;
}

// Tiles of so many blocks, of every size.
static void try_sizes(search *s, uint32_t out_blocks, uint32_t in_blocks) {
    for (uint32_t rows = 1; rows <= berth_vta_conv_out_height(s->conv); ++rows)
        for (uint32_t columns = 1; columns <= berth_vta_conv_out_width(s->conv); ++columns) {
            berth_vta_conv_tiles t = {out_blocks, rows, columns, in_blocks, 0};
            berth_vta_conv_fit f = berth_vta__conv_fit(s->shape, s->conv, &s->work, &t);
            if (f.tile > f.acc_half || f.input > f.inp_half) {
                if (columns == 1) return;  // nor taller ones
                break;                     // nor wider ones
            }
            if (!f.fits) continue;
            t.cycles = estimate_cycles(s->shape, s->conv, &t, &f, s->timing);
            keep(s, &t);
        }
}

berth_status berth_vta_conv_plans(const berth_vta_config *config, const berth_vta_conv *conv,
                                  const berth_vta_timing *timing, uint32_t most,
                                  berth_vta_conv_tiles *out_tiles, uint32_t *out_count) {
    berth_vta_shape shape;
    search s = {.shape = &shape, .conv = conv, .timing = timing, .best = out_tiles, .most = most};
    *out_count = 0;
    BERTH_TRY(berth_vta_shape_make(config, &shape));
    BERTH_TRY(berth_vta__conv_check(&shape, conv));
    BERTH_TRY(berth_vta_conv_find_steps(&shape, conv, &s.work));
    uint32_t groups = groups_of(&shape, conv);
    uint32_t in_blocks = conv->in_channels / shape.block / groups;
    uint32_t out_blocks = conv->out_channels / shape.block / groups;
    bool single = conv->form == BERTH_VTA_PRODUCTS && conv->kernel_h == 1 && conv->kernel_w == 1;
    for (uint32_t o = 1; o <= out_blocks; ++o)
        for (uint32_t i = 1; out_blocks % o == 0 && i <= (single ? in_blocks : 1); ++i)
            if (in_blocks % i == 0) try_sizes(&s, o, i);
    *out_count = s.count;
    if (s.count) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "no tile of this operation fits the VTA's buffers twice");
}

berth_status berth_vta_conv_plan(const berth_vta_config *config, const berth_vta_conv *conv,
                                 const berth_vta_timing *timing, berth_vta_conv_tiles *out_tiles) {
    uint32_t count = 0;
    *out_tiles = (berth_vta_conv_tiles){0};
    return berth_vta_conv_plans(config, conv, timing, 1, out_tiles, &count);
}
