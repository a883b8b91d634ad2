#include "compiler/npu/tiles.h"

#include <math.h>

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static double least(double a, double b) {
    return a < b ? a : b;
}

// Input channels of a tile.
static double input_channels(const berth_npu_work *w, const berth_npu_tiles *t) {
    if (w->groups == 1) return (double)t->depth;
    return (double)divide_up(t->channels * w->groups, w->channels) * (double)w->depth;
}

static double input_bytes(const berth_npu_work *w, const berth_npu_tiles *t) {
    double rows = (double)(t->rows - 1) * (double)w->stride_rows + (double)w->kernel_rows;
    double columns =
        (double)(t->columns - 1) * (double)w->stride_columns + (double)w->kernel_columns;
    return (double)(w->operands * w->element_bytes) * rows * columns * input_channels(w, t);
}

static double weight_bytes(const berth_npu_work *w, const berth_npu_tiles *t) {
    return (double)w->weight_bytes * (double)t->channels * (double)t->depth *
           (double)w->kernel_rows * (double)w->kernel_columns;
}

static double tile_bytes(const berth_npu_work *w, const berth_npu_tiles *t) {
    double results = (double)t->rows * (double)t->columns * (double)t->channels;
    double sums = w->weight_bytes ? 4 * results : 0;
    return 2 * (input_bytes(w, t) + weight_bytes(w, t) + results * (double)w->element_bytes) + sums;
}

static double compute_cycles(const berth_npu *npu, const berth_npu_work *w,
                             const berth_npu_tiles *t) {
    double window = (double)w->kernel_rows * (double)w->kernel_columns;
    if (!w->weight_bytes)
        return ceil((double)t->rows * (double)t->columns * (double)t->channels * window /
                    (double)npu->elements);
    return window * (double)divide_up(t->rows * t->columns, npu->results) *
           (double)divide_up(t->channels, npu->outputs) * (double)divide_up(t->depth, npu->inputs);
}

static void count_cycles(const berth_npu *npu, const berth_npu_work *w, berth_npu_tiles *t) {
    double places = (double)w->images * (double)divide_up(w->rows, t->rows) *
                    (double)divide_up(w->columns, t->columns);
    double over_channels = (double)divide_up(w->channels, t->channels);
    double over_depth = (double)divide_up(w->depth, t->depth);
    double compute = places * over_channels * over_depth * compute_cycles(npu, w, t);
    // Results stay until they are whole; weights stay from place to place where all of their depth is
    // there.
    double values = places * over_channels *
                    (over_depth * input_bytes(w, t) + (double)t->rows * (double)t->columns *
                                                          (double)(t->channels * w->element_bytes));
    double constants =
        (over_depth > 1 ? places : 1) * over_channels * over_depth * weight_bytes(w, t);
    double per_byte = npu->clock_hz / npu->value_bytes_per_s;
    double per_constant = npu->clock_hz / npu->constant_bytes_per_s;
    double transfer = npu->apart ? fmax(values * per_byte, constants * per_constant)
                                 : values * per_byte + constants * per_constant;
    transfer += places * over_channels * over_depth * npu->latency_s * npu->clock_hz;
    double first = input_bytes(w, t) * per_byte + weight_bytes(w, t) * per_constant;
    t->cycles = fmax(compute, transfer) + least(first, transfer);
}

// `extent` in 2^step parts, as whole multiples of `lanes` where it has as many; 0: there are no
// smaller ones.
static int64_t part(int64_t extent, int step, int64_t lanes) {
    int64_t parts = (int64_t)1 << step;
    if (step > 0 && parts / 2 >= divide_up(extent, lanes)) return 0;
    int64_t size = divide_up(divide_up(extent, parts), lanes) * lanes;
    return size < extent ? size : extent;
}

static void consider(const berth_npu *npu, const berth_npu_work *w, berth_npu_tiles t,
                     berth_npu_tiles *best, double *smallest, berth_npu_tiles *out_smallest) {
    double bytes = tile_bytes(w, &t);
    t.bytes = bytes < 1e18 ? (uint64_t)bytes : UINT64_MAX;
    if (bytes < *smallest) {
        *smallest = bytes;
        *out_smallest = t;
    }
    if (bytes > (double)npu->sram_bytes) return;
    count_cycles(npu, w, &t);
    if (best->bytes == 0 || t.cycles < best->cycles ||
        (t.cycles == best->cycles && t.bytes < best->bytes))
        *best = t;
}

bool berth_npu_choose_tiles(const berth_npu *npu, const berth_npu_work *w,
                            berth_npu_tiles *out_tiles) {
    enum { most_steps = 40 };
    berth_npu_tiles best = {0}, t, tiny = {0};
    double smallest = INFINITY;
    for (int c = 0; c < most_steps && (t.channels = part(w->channels, c, npu->outputs)) > 0; ++c)
        for (int d = 0; d < most_steps && (t.depth = part(w->depth, d, npu->inputs)) > 0; ++d) {
            if (d > 0 && w->groups > 1) break;
            for (int r = 0; r < most_steps && (t.rows = part(w->rows, r, 1)) > 0; ++r)
                for (int x = 0; x < most_steps && (t.columns = part(w->columns, x, 1)) > 0; ++x)
                    consider(npu, w, t, &best, &smallest, &tiny);
        }
    *out_tiles = best.bytes ? best : tiny;
    return best.bytes != 0;
}
