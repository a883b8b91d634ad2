// Convolutions as streams, and what holds of all of them: estimates, overlap, tokens, refusals.
#include <stdlib.h>

#include "tests/vta/conv_job.h"

Test(vta_conv, shapes, .timeout = 120) {
    berth_vta_config c = configuration(0);
    check_conv(c, CONV(1, 7, 9, 16, 32, 3, 3, 1, 1), 1, NULL);
    check_conv(c, CONV(2, 8, 8, 32, 16, 1, 1, 1, 0), 2, NULL);
    check_conv(c, CONV(1, 14, 14, 64, 64, 3, 3, 1, 1), 3, NULL);
    check_conv(c, CONV(1, 15, 11, 48, 32, 3, 3, 2, 1), 4, NULL);
    check_conv(c, CONV(1, 13, 13, 16, 16, 1, 1, 2, 0), 5, NULL);
    check_conv(c, CONV(1, 21, 17, 16, 16, 7, 5, 2, 3), 6, NULL);
    check_conv(c, CONV(1, 9, 40, 16, 16, 1, 3, 1, 0), 7, NULL);
    // Dense: a map of one pixel.
    check_conv(c, CONV(3, 1, 1, 128, 48, 1, 1, 1, 0), 8, NULL);
    // One and two results in a tile: what boards want between two uses of one is filled up.
    check_conv(c, CONV(1, 1, 1, 48, 16, 1, 1, 1, 0), 16, NULL);
    check_conv(c, CONV(2, 3, 3, 16, 16, 3, 3, 1, 0), 17, NULL);
    check_conv(c, CONV(1, 1, 2, 16, 16, 1, 1, 1, 0), 18, NULL);
    // Windows of one row, rows apart: the others are not loaded.
    check_conv(c, CONV(1, 10, 11, 32, 32, 1, 3, 3, 0), 19, NULL);
    // A shift of nothing, and ReLU.
    berth_vta_conv relu = CONV(1, 6, 6, 16, 16, 3, 3, 1, 1);
    relu.low = 0;
    relu.shift = 15;
    check_conv(c, relu, 9, NULL);
}

Test(vta_conv, configurations, .timeout = 120) {
    for (int i = 0; i < CONFIGURATIONS; ++i) {
        berth_vta_shape shape;
        berth_vta_config config = configuration(i);
        assert_ok(berth_vta_shape_make(&config, &shape));
        uint32_t b = shape.block, n = shape.batch;
        check_conv(config, CONV(2 * n, 9, 8, 2 * b, 3 * b, 3, 3, 1, 1), 10, NULL);
        check_conv(config, CONV(n, 8, 7, 4 * b, 2 * b, 1, 1, 2, 0), 11, NULL);
    }
}

// Halves go to even: with shifts by which many sums are halves, of both signs, without and with bias.
Test(vta_conv, rounds_to_even, .timeout = 120) {
    for (uint32_t i = 0; i < 15; ++i) {
        berth_vta_conv conv = CONV(1, 5, 6, 16, 32, 3, 3, 1, 1);
        conv.shift = i;
        conv.to_even = true;
        conv.no_bias = i % 2;
        if (i % 4 == 3) conv.low = 0;
        check_conv(configuration(0), conv, 40 + i, NULL);
    }
    for (int i = 0; i < CONFIGURATIONS; ++i) {
        berth_vta_shape shape;
        berth_vta_config config = configuration(i);
        assert_ok(berth_vta_shape_make(&config, &shape));
        uint32_t b = shape.block, n = shape.batch;
        berth_vta_conv conv = CONV(n, 9, 8, 2 * b, 3 * b, 3, 3, 2, 1);
        conv.shift = 4;
        conv.to_even = true;
        if (shape.acc_bytes == 4) check_conv(config, conv, 60, NULL);
    }
}

// Tiles of any size, also such as do not divide the output, give the same results.
Test(vta_conv, tiles, .timeout = 120) {
    const berth_vta_conv_tiles tiles[] = {{1, 1, 3, 1, 0},   {2, 2, 2, 1, 0}, {4, 5, 7, 1, 0},
                                          {1, 11, 10, 1, 0}, {4, 1, 1, 1, 0}, {2, 11, 1, 1, 0}};
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); ++i)
        check_conv(configuration(0), CONV(1, 11, 10, 32, 64, 3, 3, 1, 1), 20 + i, &tiles[i]);
    const berth_vta_conv_tiles single[] = {{1, 2, 3, 2, 0}, {2, 3, 3, 4, 0}, {4, 5, 1, 1, 0}};
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); ++i)
        check_conv(configuration(0), CONV(1, 10, 9, 64, 64, 1, 1, 2, 0), 30 + i, &single[i]);
}

// Load, compute and store overlap: together they take not much longer than the busiest of them and of
// the memory port, which all three share.
Test(vta_conv, units_overlap) {
    const berth_vta_conv shapes[] = {CONV(1, 14, 14, 64, 64, 3, 3, 1, 1),
                                     CONV(1, 7, 7, 128, 128, 3, 3, 1, 1),
                                     CONV(1, 28, 28, 64, 128, 1, 1, 1, 0)};
    berth_vta_config config = configuration(0);
    berth_vta_run_options options = {.timing = berth_vta_timing_default()};
    for (int i = 0; i < 3; ++i) {
        berth_arena *arena = NULL;
        berth_vta_conv_tiles tiles;
        berth_vta_kernel kernel;
        berth_vta_report report;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        assert_ok(berth_vta_conv_plan(&config, &shapes[i], &options.timing, &tiles));
        assert_ok(berth_vta_emit_conv(arena, &config, &shapes[i], &tiles, &kernel));
        assert_ok(
            berth_vta_kernel_time(berth_allocator_system(), &config, &kernel, &options, &report));
        uint64_t serial = 0;
        for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) serial += report.units[u].busy;
        cr_assert_lt(report.cycles * 100, serial * 85, "shape %d: %llu of %llu", i,
                     (unsigned long long)report.cycles, (unsigned long long)serial);
        berth_arena_destroy(arena);
    }
}

// The emitter's own choice takes no longer than the tile that the estimate likes best, and less for a shape whose
// first and last tiles weigh much.
Test(vta_conv, the_timing_model_chooses) {
    const berth_vta_conv shapes[] = {CONV(1, 7, 7, 512, 512, 3, 3, 1, 1),
                                     CONV(1, 28, 28, 128, 128, 3, 3, 1, 1)};
    berth_vta_config config = configuration(0);
    berth_vta_run_options options = {.timing = berth_vta_timing_default()};
    for (int i = 0; i < 2; ++i) {
        berth_arena *arena = NULL;
        berth_vta_conv_tiles first, best;
        berth_vta_kernel kernels[2];
        berth_vta_report reports[2];
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        assert_ok(berth_vta_conv_plan(&config, &shapes[i], &options.timing, &first));
        assert_ok(berth_vta_emit_conv(arena, &config, &shapes[i], &first, &kernels[0]));
        assert_ok(berth_vta_emit_best_conv(arena, &config, &shapes[i], &options.timing, &best,
                                           &kernels[1]));
        for (int k = 0; k < 2; ++k)
            assert_ok(berth_vta_kernel_time(berth_allocator_system(), &config, &kernels[k],
                                            &options, &reports[k]));
        cr_expect_leq(reports[1].cycles, reports[0].cycles);
        if (i == 0) cr_expect_lt(reports[1].cycles * 100, reports[0].cycles * 99);
        berth_arena_destroy(arena);
    }
}

// What a plan says of cycles, which places operations, is what the stream then takes.
Test(vta_conv, estimates) {
    berth_vta_conv shapes[8] = {CONV(1, 28, 28, 64, 64, 3, 3, 1, 1),
                                window(BERTH_VTA_SUMS, 56, 56, 64, 1, 1, 0),
                                window(BERTH_VTA_SUMS, 7, 7, 512, 7, 7, 0),
                                window(BERTH_VTA_SUMS, 28, 28, 64, 2, 2, 0),
                                window(BERTH_VTA_MAXIMA, 112, 112, 64, 3, 2, 1),
                                window(BERTH_VTA_MAXIMA, 14, 14, 64, 2, 2, 0),
                                CONV(1, 28, 28, 128, 128, 3, 3, 1, 1),
                                CONV(1, 1, 1, 512, 1008, 1, 1, 1, 0)};
    berth_vta_config config = configuration(0);
    berth_vta_run_options options = {.timing = berth_vta_timing_default()};
    berth_vta_shape shape;
    assert_ok(berth_vta_shape_make(&config, &shape));
    shapes[1].sources = 2;
    shapes[1].divisor = 4;
    shapes[2].divisor = 49;
    shapes[3].divisor = 4;
    shapes[6].groups = 8;
    for (int i = 0; i < 8; ++i) {
        berth_arena *arena = NULL;
        berth_vta_conv_tiles tiles;
        berth_vta_kernel kernel;
        berth_vta_report report;
        berth_vta_conv_stack(&shape, &shapes[i]);
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        assert_ok(berth_vta_conv_plan(&config, &shapes[i], &options.timing, &tiles));
        assert_ok(berth_vta_emit_conv(arena, &config, &shapes[i], &tiles, &kernel));
        assert_ok(
            berth_vta_kernel_time(berth_allocator_system(), &config, &kernel, &options, &report));
        double ratio = tiles.cycles / (double)report.cycles;
        cr_expect(ratio > 0.85 && ratio < 1.2, "shape %d: %g of %llu", i, ratio,
                  (unsigned long long)report.cycles);
        berth_arena_destroy(arena);
    }
}

// Every token is needed: without one of them, or with one more, the stream is wrong, and both the
// validator and the driver's own check say so.
static void check_tokens(berth_vta_conv conv, uint32_t least) {
    job j = {.config = configuration(0), .conv = conv};
    const berth_vta_conv_tiles tiles = {1, 3, 6, 1, 0};
    assert_ok(berth_arena_create(berth_allocator_system(), &j.arena));
    assert_ok(berth_vta_shape_make(&j.config, &j.shape));
    assert_ok(berth_vta_isa_make(&j.shape, &j.isa));
    assert_ok(berth_vta_emit_conv(j.arena, &j.config, &j.conv, &tiles, &j.kernel));
    uint8_t *bytes =
        berth_arena_copy(j.arena, j.kernel.stream, (size_t)j.kernel.instruction_count * 16);
    j.kernel.stream = bytes;
    j.dram = calloc(1, DRAM_BYTES);
    conv_place_kernel(&j);
    conv_validate(&j);
    uint32_t tokens = 0;
    for (uint32_t n = 0; n < j.kernel.instruction_count; ++n)
        for (int bit = 3; bit < 7; ++bit) {
            tokens += bytes[16 * (size_t)n] >> bit & 1;
            bytes[16 * (size_t)n] ^= (uint8_t)(1u << bit);
            j.dram[j.stream - DRAM_BASE + 16 * (uint64_t)n] ^= (uint8_t)(1u << bit);
            stream s = {j.config,          j.dram,
                        DRAM_BASE,         DRAM_BYTES,
                        (int64_t)j.stream, (int)j.kernel.instruction_count};
            cr_assert_not_null(validate(&s), "instruction %u, bit %d: the validator", n, bit);
            berth_status status =
                berth_vta_kernel_check(berth_allocator_system(), &j.config, &j.kernel, true);
            cr_assert_not_null(status, "instruction %u, bit %d: the driver", n, bit);
            berth_status_free(status);
            bytes[16 * (size_t)n] ^= (uint8_t)(1u << bit);
            j.dram[j.stream - DRAM_BASE + 16 * (uint64_t)n] ^= (uint8_t)(1u << bit);
        }
    cr_assert_gt(tokens, least);
    free(j.dram);
    berth_arena_destroy(j.arena);
}

Test(vta_conv, every_token_is_needed, .timeout = 120) {
    check_tokens(CONV(1, 6, 6, 32, 48, 3, 3, 1, 1), 60);
    berth_vta_conv sum = window(BERTH_VTA_SUMS, 6, 6, 48, 1, 1, 0);
    sum.sources = 2;
    check_tokens(sum, 60);
    check_tokens(window(BERTH_VTA_MAXIMA, 6, 6, 48, 3, 1, 1), 30);
}

static void refuse(berth_vta_conv conv, berth_code code, const char *part) {
    berth_vta_config config = configuration(0);
    berth_vta_timing timing = berth_vta_timing_default();
    berth_vta_conv_tiles tiles;
    assert_fails(berth_vta_conv_plan(&config, &conv, &timing, &tiles), code, part);
}

Test(vta_conv, what_is_none) {
    refuse(CONV(1, 8, 8, 17, 16, 3, 3, 1, 1), BERTH_INVALID_ARGUMENT, "no multiple of BLOCK");
    refuse(CONV(1, 8, 8, 16, 0, 3, 3, 1, 1), BERTH_INVALID_ARGUMENT, "no multiple of BLOCK");
    refuse(CONV(0, 8, 8, 16, 16, 3, 3, 1, 1), BERTH_INVALID_ARGUMENT, "BATCH");
    refuse(CONV(1, 0, 8, 16, 16, 3, 3, 1, 1), BERTH_INVALID_ARGUMENT, "an extent of 0");
    refuse(CONV(1, 8, 8, 16, 16, 3, 3, 0, 1), BERTH_INVALID_ARGUMENT, "stride of 0");
    refuse(CONV(1, 8, 8, 16, 16, 31, 31, 1, 16), BERTH_INVALID_ARGUMENT, "more padding");
    refuse(CONV(1, 4, 4, 16, 16, 7, 7, 1, 1), BERTH_INVALID_ARGUMENT, "larger than the padded map");
    refuse(CONV(1, 40, 40, 16, 16, 31, 31, 1, 1), BERTH_UNSUPPORTED, "no tile");
    berth_vta_conv conv = CONV(1, 8, 8, 16, 16, 3, 3, 1, 1);
    conv.shift = 16;
    refuse(conv, BERTH_INVALID_ARGUMENT, "shift above 15");
    conv.shift = 0;
    conv.low = 200;
    refuse(conv, BERTH_INVALID_ARGUMENT, "bounds");
    conv = CONV(1, 8, 8, 48, 48, 3, 3, 1, 1);
    conv.groups = 2;
    refuse(conv, BERTH_INVALID_ARGUMENT, "groups whose channels");
    conv = window(BERTH_VTA_SUMS, 8, 8, 16, 3, 1, 1);
    conv.divisor = 0;
    refuse(conv, BERTH_INVALID_ARGUMENT, "a divisor");
    conv.divisor = 9;
    conv.sources = 2;
    refuse(conv, BERTH_UNSUPPORTED, "of two inputs");
    conv.factors[1] = 128;
    refuse(conv, BERTH_INVALID_ARGUMENT, "a factor");
    conv = window(BERTH_VTA_MAXIMA, 8, 8, 16, 3, 1, 1);
    conv.in_channels = 32;
    refuse(conv, BERTH_INVALID_ARGUMENT, "come or go");
    conv = window(BERTH_VTA_SUMS, 8, 8, 32, 1, 1, 0);
    conv.map_blocks = 3;
    conv.first_block = 2;
    refuse(conv, BERTH_INVALID_ARGUMENT, "channels beyond");
    conv = CONV(1, 8, 8, 16, 16, 3, 3, 1, 1);
    conv.dilation_h = 5;
    refuse(conv, BERTH_INVALID_ARGUMENT, "larger than the padded map");
    conv.dilation_h = 9000;
    refuse(conv, BERTH_INVALID_ARGUMENT, "above 16383");
    // 63 * 63 numbers of 8 bits, times what divides by 3969, are more than 32 bits.
    conv = window(BERTH_VTA_SUMS, 63, 63, 16, 63, 1, 0);
    conv.divisor = 3969;
    refuse(conv, BERTH_UNSUPPORTED, "more than 32 bits");
}
