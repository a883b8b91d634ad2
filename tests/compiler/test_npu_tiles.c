// Tiles of a described NPU: what is chosen fits and is no faster than the unit can be, counted by hand;
// what does not fit is refused with the smallest tile there is.
#include <criterion/criterion.h>

#include "compiler/npu/tiles.h"

static const berth_npu ethos_like = {.inputs = 8,
                                     .outputs = 8,
                                     .results = 4,
                                     .elements = 8,
                                     .sram_bytes = 49152,
                                     .clock_hz = 5e8,
                                     .value_bytes_per_s = 4e9,
                                     .constant_bytes_per_s = 5e8,
                                     .apart = true};

static const berth_npu_work conv3x3 = {.images = 1,
                                       .channels = 16,
                                       .rows = 32,
                                       .columns = 32,
                                       .groups = 1,
                                       .depth = 16,
                                       .kernel_rows = 3,
                                       .kernel_columns = 3,
                                       .stride_rows = 1,
                                       .stride_columns = 1,
                                       .operands = 1,
                                       .element_bytes = 1,
                                       .weight_bytes = 1};

// Bytes of a tile, from its extents alone.
static uint64_t bytes_of(const berth_npu_work *w, const berth_npu_tiles *t) {
    int64_t rows = (t->rows - 1) * w->stride_rows + w->kernel_rows;
    int64_t columns = (t->columns - 1) * w->stride_columns + w->kernel_columns;
    int64_t results = t->rows * t->columns * t->channels;
    int64_t weights = w->weight_bytes * t->channels * t->depth * w->kernel_rows * w->kernel_columns;
    int64_t input =
        w->operands * w->element_bytes * rows * columns * (w->groups == 1 ? t->depth : t->channels);
    return (uint64_t)(2 * input + 2 * weights + 2 * results * w->element_bytes +
                      (w->weight_bytes ? 4 * results : 0));
}

static berth_npu_tiles chosen(const berth_npu *npu, const berth_npu_work *work) {
    berth_npu_tiles tiles;
    cr_assert(berth_npu_choose_tiles(npu, work, &tiles));
    cr_expect_leq(tiles.bytes, npu->sram_bytes);
    cr_expect_eq(tiles.bytes, bytes_of(work, &tiles));
    return tiles;
}

// 16 x 16 x 9 x 1024 products at 256 in a cycle are 9216 cycles; tiles of 8 channels and four results
// leave no lane idle. What is not hidden is the first tile, and no more than all of it.
Test(npu_tiles, no_lane_is_idle) {
    berth_npu_tiles tiles = chosen(&ethos_like, &conv3x3);
    cr_expect_geq(tiles.cycles, 9216);
    cr_expect_leq(tiles.cycles, 9216 + (double)(2304 + 18 * 34 * 16));
}

// Three input channels use three of eight lanes: as long as eight would take.
Test(npu_tiles, lanes_that_nothing_fills) {
    berth_npu_work three = conv3x3, eight = conv3x3;
    berth_npu npu = ethos_like;
    npu.value_bytes_per_s = npu.constant_bytes_per_s = 1e18;
    three.depth = 3;
    eight.depth = 8;
    cr_expect_float_eq(chosen(&npu, &three).cycles, chosen(&npu, &eight).cycles, 1);
    cr_expect_float_eq(chosen(&npu, &eight).cycles, 4608, 1);
}

// A dense layer of 640 x 128: its weights come once, 81920 bytes at one in a cycle, however it is tiled.
Test(npu_tiles, weights_are_the_limit) {
    berth_npu_work dense = {.images = 1,
                            .channels = 128,
                            .rows = 1,
                            .columns = 1,
                            .groups = 1,
                            .depth = 640,
                            .kernel_rows = 1,
                            .kernel_columns = 1,
                            .stride_rows = 1,
                            .stride_columns = 1,
                            .operands = 1,
                            .element_bytes = 1,
                            .weight_bytes = 1};
    berth_npu_tiles tiles = chosen(&ethos_like, &dense);
    cr_expect_geq(tiles.cycles, 81920);
    cr_expect_leq(tiles.cycles, 1.2 * 81920);
}

// Less memory never makes it faster; far too little is refused, with a tile that truly does not fit.
Test(npu_tiles, memory_shrinks) {
    berth_npu npu = ethos_like;
    double before = 0;
    berth_npu_tiles tiles;
    uint64_t least = 0;
    for (npu.sram_bytes = 1 << 20; npu.sram_bytes >= 64; npu.sram_bytes /= 2) {
        if (!berth_npu_choose_tiles(&npu, &conv3x3, &tiles)) {
            cr_expect_gt(tiles.bytes, npu.sram_bytes);
            cr_expect_eq(tiles.bytes, bytes_of(&conv3x3, &tiles));
            if (least) cr_expect_eq(tiles.bytes, least);
            least = tiles.bytes;
            continue;
        }
        cr_assert_eq(least, 0, "fits %llu bytes, and not twice as many",
                     (unsigned long long)npu.sram_bytes);
        tiles = chosen(&npu, &conv3x3);
        cr_expect_geq(tiles.cycles, before);
        before = tiles.cycles;
    }
    // One result of eight channels from eight: 2 * 72 + 2 * 576 + 2 * 8 + 4 * 8 bytes.
    cr_expect_eq(least, 1344);
    npu.sram_bytes = 1344;
    cr_expect(berth_npu_choose_tiles(&npu, &conv3x3, &tiles));
    npu.sram_bytes = 1343;
    cr_expect_not(berth_npu_choose_tiles(&npu, &conv3x3, &tiles));
}

// A depthwise convolution: one channel of eight input lanes works, and a tile brings as many input
// channels as it has results'.
Test(npu_tiles, depthwise) {
    berth_npu_work depthwise = conv3x3;
    depthwise.groups = 16;
    depthwise.depth = 1;
    berth_npu npu = ethos_like;
    npu.value_bytes_per_s = npu.constant_bytes_per_s = 1e18;
    cr_expect_float_eq(chosen(&npu, &depthwise).cycles, 4608, 1);
}
