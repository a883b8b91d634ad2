// Choosing the tiles of a convolution.
#include "drivers/vta/emit/conv.h"
#include "drivers/vta/emit/conv_fit.h"

uint32_t berth_vta_conv_out_height(const berth_vta_conv *c) {
    return (c->height + 2 * c->pad - c->kernel_h) / c->stride + 1;
}

uint32_t berth_vta_conv_out_width(const berth_vta_conv *c) {
    return (c->width + 2 * c->pad - c->kernel_w) / c->stride + 1;
}

static berth_status bad(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "no convolution for a VTA: %s", what);
}

berth_status berth_vta__conv_check(const berth_vta_shape *shape, const berth_vta_conv *c) {
    enum { most_extent = 16383 };
    if (c->images == 0 || c->images % shape->batch) return bad("images are no multiple of BATCH");
    if (c->in_channels == 0 || c->in_channels % shape->block || c->out_channels == 0 ||
        c->out_channels % shape->block)
        return bad("channels are no multiple of BLOCK; fill them up with zeros");
    if (c->height == 0 || c->width == 0 || c->height > most_extent || c->width > most_extent ||
        c->images > most_extent || c->in_channels > most_extent || c->out_channels > most_extent)
        return bad("an extent of 0, or above 16383");
    if (c->kernel_h == 0 || c->kernel_w == 0 || c->stride == 0 || c->stride > most_extent)
        return bad("a kernel or stride of 0");
    if (c->pad > 15) return bad("more padding than the 15 that a LOAD can make");
    if (c->pad >= c->kernel_h || c->pad >= c->kernel_w)
        return bad("padding as large as the kernel");
    if (c->height + 2 * c->pad < c->kernel_h || c->width + 2 * c->pad < c->kernel_w)
        return bad("a kernel larger than the padded map");
    if (c->shift > (c->to_even ? 14 : 15))
        return bad("a shift above 15 (14 where halves go to even), which boards do not do");
    if (c->low < INT16_MIN || c->high > INT16_MAX || c->low > c->high)
        return bad("bounds beyond 16 bits, or empty");
    return BERTH_OK;
}

static bool rounds(const berth_vta_conv *c) {
    return c->to_even && c->shift > 0;
}

berth_vta_conv_fit berth_vta__conv_fit(const berth_vta_shape *shape, const berth_vta_conv *c,
                                       const berth_vta_conv_tiles *t) {
    berth_vta_conv_fit f = {.tile = (uint64_t)t->out_blocks * t->rows * t->columns,
                            .input_rows = (t->rows - 1) * c->stride + c->kernel_h,
                            .input_columns = (t->columns - 1) * c->stride + c->kernel_w,
                            .in_blocks = c->in_channels / shape->block,
                            .out_blocks = c->out_channels / shape->block};
    f.input = (uint64_t)t->in_blocks * f.input_rows * f.input_columns;
    f.weights = (uint64_t)t->out_blocks * t->in_blocks * c->kernel_h * c->kernel_w;
    f.inp_half = shape->memory[BERTH_VTA_INP].depth / 2;
    f.wgt_half = shape->memory[BERTH_VTA_WGT].depth / 2;
    uint32_t acc = shape->memory[BERTH_VTA_ACC].depth;
    uint64_t rest = (c->no_bias ? 0 : f.out_blocks) + (rounds(c) ? f.tile : 0);
    f.acc_half = acc > rest ? (uint32_t)(acc - rest) / 2 : 0;
    f.bias = 2 * f.acc_half;
    f.copy = f.bias + (c->no_bias ? 0 : f.out_blocks);
    f.micro_ops = (uint32_t)(4 * f.tile) + 2 * f.out_blocks + (rounds(c) ? 5 * t->out_blocks : 0);
    // Micro-ops: a tile for each half of the results and of the operands, a block's results with its
    // bias for each half, and the copy's. Boards want three results between two uses of one.
    f.fits = f.tile >= 3 && f.tile <= f.acc_half && f.input <= f.inp_half &&
             f.weights <= f.wgt_half && f.micro_ops <= shape->memory[BERTH_VTA_UOP].depth;
    return f;
}

// ---- estimate ----

static double transfer_cycles(const berth_vta_timing *t, double transfers, double rows,
                              double bytes) {
    return transfers * t->dram_latency + (rows - transfers) * t->row_cycles +
           bytes / t->dram_bytes_per_cycle;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static double estimate(const berth_vta_shape *s, const berth_vta_conv *c,
                       const berth_vta_conv_tiles *t, const berth_vta_conv_fit *f,
                       const berth_vta_timing *timing) {
    double issue = timing->issue_cycles + timing->pipeline_latency, tile = (double)f->tile;
    double steps = f->in_blocks / t->in_blocks;
    double macs = (double)f->in_blocks * c->kernel_h * c->kernel_w * tile;
    double alu = (rounds(c) ? 8 : 3) + !c->no_bias;
    double compute = (steps + 1 + alu) * issue +
                     (macs + (rounds(c) ? 2 : 1) * tile) * timing->gemm_interval +
                     alu * tile * timing->alu_interval;
    double inputs =
        transfer_cycles(timing, f->in_blocks, (double)f->in_blocks * f->input_rows,
                        steps * (double)f->input * s->memory[BERTH_VTA_INP].element_bytes);
    double weights =
        transfer_cycles(timing, steps, steps * t->out_blocks,
                        steps * (double)f->weights * s->memory[BERTH_VTA_WGT].element_bytes);
    double outputs = transfer_cycles(timing, t->out_blocks, (double)t->out_blocks * t->rows,
                                     tile * s->memory[BERTH_VTA_OUT].element_bytes);
    double port = inputs + weights + outputs;
    double tiles = (double)(c->images / s->batch) * (f->out_blocks / t->out_blocks) *
                   (double)divide_up(berth_vta_conv_out_height(c), t->rows) *
                   (double)divide_up(berth_vta_conv_out_width(c), t->columns);
    double once = transfer_cycles(timing, 2, 2, 16 * tile) + port;  // micro-ops, the first tile
    return once + tiles * (compute > port ? compute : port);
}

berth_status berth_vta_conv_plan(const berth_vta_config *config, const berth_vta_conv *conv,
                                 const berth_vta_timing *timing, berth_vta_conv_tiles *out_tiles) {
    berth_vta_shape shape;
    BERTH_TRY(berth_vta_shape_make(config, &shape));
    BERTH_TRY(berth_vta__conv_check(&shape, conv));
    uint32_t in_blocks = conv->in_channels / shape.block;
    uint32_t out_blocks = conv->out_channels / shape.block;
    bool single = conv->kernel_h == 1 && conv->kernel_w == 1;
    *out_tiles = (berth_vta_conv_tiles){0};
    for (uint32_t o = 1; o <= out_blocks; ++o)
        for (uint32_t i = 1; out_blocks % o == 0 && i <= (single ? in_blocks : 1); ++i)
            for (uint32_t rows = 1; in_blocks % i == 0 && rows <= berth_vta_conv_out_height(conv);
                 ++rows)
                for (uint32_t columns = 1; columns <= berth_vta_conv_out_width(conv); ++columns) {
                    berth_vta_conv_tiles t = {o, rows, columns, i, 0};
                    berth_vta_conv_fit f = berth_vta__conv_fit(&shape, conv, &t);
                    if (f.tile > f.acc_half || f.input > f.inp_half) break;  // nor wider ones
                    if (!f.fits) continue;
                    t.cycles = estimate(&shape, conv, &t, &f, timing);
                    if (out_tiles->cycles == 0 || t.cycles < out_tiles->cycles) *out_tiles = t;
                }
    if (out_tiles->cycles > 0) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "no tile of this convolution fits the VTA's buffers twice (a tile has "
                             "three results at least)");
}
