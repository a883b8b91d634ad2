// Windows other than plain convolutions: groups, sums, means, maxima, and what only moves.
#include "tests/vta/conv_job.h"

// As given, and with maps below each other where that is the same.
static void check_window(berth_vta_config config, berth_vta_conv conv, uint64_t seed) {
    berth_vta_shape shape;
    berth_vta_conv stacked = conv;
    assert_ok(berth_vta_shape_make(&config, &shape));
    check_conv(config, conv, seed, NULL);
    berth_vta_conv_stack(&shape, &stacked);
    if (stacked.height != conv.height) check_conv(config, stacked, seed, NULL);
}

// Strides and padding that differ between rows and columns, and between the two ends.
Test(vta_windows, uneven, .timeout = 120) {
    for (int form = 0; form < 3; ++form) {
        berth_vta_conv conv = window((berth_vta_form)form, 9, 12, 32, 3, 2, 1);
        conv.stride_w = 1;
        conv.pad_w = 0;
        conv.shift = form == BERTH_VTA_PRODUCTS ? 6 : 0;
        check_window(configuration(0), conv, 75);
        conv.stride_w = 3;
        conv.pad_h = 0;
        conv.out_height = 5;  // padding at the end only
        conv.out_width = 4;
        check_window(configuration(0), conv, 76);
        conv.kernel_h = 2;
        conv.kernel_w = 5;
        conv.pad_w = 4;
        conv.out_height = 3;  // rows that nobody needs
        check_window(configuration(0), conv, 77);
    }
}

Test(vta_windows, groups, .timeout = 120) {
    for (int i = 0; i < CONFIGURATIONS; ++i) {
        berth_vta_shape shape;
        berth_vta_config config = configuration(i);
        assert_ok(berth_vta_shape_make(&config, &shape));
        uint32_t b = shape.block;
        berth_vta_conv conv = CONV(shape.batch, 9, 7, 3 * b, 3 * b, 3, 3, 1, 1);
        conv.groups = 3;
        check_conv(config, conv, 70, NULL);
        conv = CONV(shape.batch, 6, 5, 4 * b, 8 * b, 1, 1, 2, 0);
        conv.groups = 2;
        check_conv(config, conv, 71, NULL);
    }
}

// Two operands of scales of which one is a multiple of the other; ties; both ends of 8 bits.
Test(vta_windows, additions, .timeout = 120) {
    static const uint32_t scales[][3] = {{1, 1, 1},  {1, 1, 2},    {2, 1, 2},  {1, 4, 4},
                                         {64, 1, 8}, {1, 64, 128}, {8, 8, 32}, {1, 1, 16384}};
    for (uint32_t i = 0; i < 8; ++i) {
        berth_vta_conv conv = window(BERTH_VTA_SUMS, 5 + i, 9 - i, 32, 1, 1, 0);
        conv.sources = 2;
        memcpy(conv.factors, scales[i], sizeof(conv.factors));
        conv.divisor = scales[i][2];
        if (i % 2) conv.low = 0;
        check_window(configuration(0), conv, 80 + i);
    }
    for (int i = 0; i < CONFIGURATIONS; ++i) {
        berth_vta_shape shape;
        berth_vta_config config = configuration(i);
        assert_ok(berth_vta_shape_make(&config, &shape));
        if (shape.acc_bytes < 4) continue;
        berth_vta_conv conv = window(BERTH_VTA_SUMS, 11, 13, 3 * shape.block, 1, 1, 0);
        conv.images = shape.batch;
        conv.sources = conv.factors[0] = conv.divisor = 2;
        check_window(config, conv, 90);
    }
}

// Averages by powers of two and by others, ties among them (6 and 12 have halves, 9 and 49 none).
Test(vta_windows, averages, .timeout = 120) {
    static const struct {
        uint32_t height, width, kernel, stride, pad, divisor;
    } shapes[] = {{8, 8, 2, 2, 0, 4},  {7, 7, 7, 7, 0, 49},      {9, 9, 3, 1, 1, 9},
                  {6, 10, 3, 2, 1, 6}, {5, 6, 2, 1, 0, 12},      {13, 11, 3, 2, 1, 36},
                  {7, 7, 7, 7, 0, 98}, {14, 14, 14, 14, 0, 196}, {4, 4, 4, 1, 0, 3}};
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        berth_vta_conv conv = window(BERTH_VTA_SUMS, shapes[i].height, shapes[i].width, 48,
                                     shapes[i].kernel, shapes[i].stride, shapes[i].pad);
        conv.divisor = shapes[i].divisor;
        conv.factors[0] = i == 1 || i == 3 ? 2 : 1;
        for (int k = 0; k < CONFIGURATIONS; ++k) {
            berth_vta_shape shape;
            berth_vta_config config = configuration(k);
            assert_ok(berth_vta_shape_make(&config, &shape));
            conv.in_channels = conv.out_channels = 3 * shape.block;
            conv.images = shape.batch;
            bool large = shape.memory[BERTH_VTA_INP].depth < 2 * 14 * 14 && shapes[i].kernel == 14;
            if (shape.inp_bytes == 1 && shape.acc_bytes == 4 && !large)
                check_window(config, conv, 100 + i);
        }
    }
}

Test(vta_windows, maxima, .timeout = 120) {
    static const uint32_t shapes[][5] = {{12, 12, 2, 2, 0}, {13, 9, 3, 2, 1}, {7, 8, 3, 1, 1},
                                         {5, 5, 5, 1, 2},   {9, 7, 1, 2, 0},  {6, 6, 6, 1, 0},
                                         {1, 1, 3, 1, 1},   {30, 3, 4, 3, 3}};
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
        for (int k = 0; k < CONFIGURATIONS; ++k) {
            berth_vta_shape shape;
            berth_vta_config config = configuration(k);
            assert_ok(berth_vta_shape_make(&config, &shape));
            berth_vta_conv conv = window(BERTH_VTA_MAXIMA, shapes[i][0], shapes[i][1],
                                         3 * shape.block, shapes[i][2], shapes[i][3], shapes[i][4]);
            conv.images = shape.batch;
            if (i % 3 == 1) conv.low = 0;
            check_window(config, conv, 120 + i);
        }
}

// Tensors side by side; padding alone, of more elements than the window has.
Test(vta_windows, moves, .timeout = 120) {
    for (int i = 0; i < CONFIGURATIONS; ++i) {
        berth_vta_shape shape;
        berth_vta_config config = configuration(i);
        assert_ok(berth_vta_shape_make(&config, &shape));
        berth_vta_conv conv = window(BERTH_VTA_SUMS, 5, 6, 2 * shape.block, 1, 1, 3);
        conv.images = shape.batch;
        conv.pad_w = 0;
        conv.out_height = 12;
        conv.out_width = 10;
        check_window(config, conv, 160);
        conv = window(BERTH_VTA_SUMS, 5, 7, 6 * shape.block, 1, 1, 0);
        conv.images = 2 * shape.batch;
        conv.parts = 3;
        memcpy(conv.part_blocks, (uint32_t[]){2, 1, 3}, 3 * sizeof(uint32_t));
        check_window(config, conv, 161);
        conv = window(BERTH_VTA_SUMS, 4, 5, 2 * shape.block, 1, 1, 0);  // some of the channels
        conv.images = 3 * shape.batch;
        conv.map_blocks = 5;
        conv.first_block = 2;
        check_window(config, conv, 164);
    }
    check_conv(configuration(0), CONV(1, 6, 6, 16, 16, 2, 2, 1, 5), 162, NULL);
    check_conv(configuration(0), window(BERTH_VTA_MAXIMA, 4, 4, 16, 3, 1, 3), 163,
               &(berth_vta_conv_tiles){1, 2, 2, 1, 0});
}

// Tiles that do not divide the output, and that see a border in part.
Test(vta_windows, tiles, .timeout = 120) {
    const berth_vta_conv_tiles tiles[] = {
        {1, 1, 1, 1, 0}, {1, 2, 3, 1, 0}, {1, 7, 1, 1, 0}, {1, 1, 10, 1, 0}, {1, 5, 4, 1, 0}};
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); ++i) {
        check_conv(configuration(0), window(BERTH_VTA_MAXIMA, 11, 10, 32, 3, 1, 1), 130 + i,
                   &tiles[i]);
        check_conv(configuration(0), window(BERTH_VTA_MAXIMA, 11, 10, 16, 5, 1, 2), 140 + i,
                   &tiles[i]);
        berth_vta_conv mean = window(BERTH_VTA_SUMS, 11, 10, 32, 3, 1, 1);
        mean.divisor = 9;
        check_conv(configuration(0), mean, 150 + i, &tiles[i]);
    }
}

// Windows with holes, in every form; with holes as large as the map, and tiles that end in one.
Test(vta_windows, dilations, .timeout = 120) {
    uint32_t tried = 0;
    static const uint32_t shapes[][6] = {// height, width, kernel, stride, padding, dilation
                                         {11, 9, 3, 1, 2, 2},
                                         {12, 10, 3, 2, 3, 3},
                                         {9, 9, 2, 1, 0, 8},
                                         {6, 7, 3, 1, 6, 6}};
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
        for (int k = 0; k < CONFIGURATIONS; ++k) {
            berth_vta_shape shape;
            berth_vta_config config = configuration(k);
            assert_ok(berth_vta_shape_make(&config, &shape));
            uint32_t b = shape.block, n = shape.batch, holes = shapes[i][5];
            uint32_t reach = (shapes[i][2] - 1) * holes + 1;
            if (shape.memory[BERTH_VTA_INP].depth < 2 * reach * reach ||
                shape.memory[BERTH_VTA_ACC].depth < 2 * reach * reach)
                continue;
            tried++;
            berth_vta_conv conv = CONV(n, shapes[i][0], shapes[i][1], 2 * b, b, shapes[i][2],
                                       shapes[i][2], shapes[i][3], shapes[i][4]);
            conv.dilation_h = holes;
            conv.dilation_w = i % 2 ? 1 : holes;
            check_conv(config, conv, 170 + i, NULL);
            if (shape.memory[BERTH_VTA_UOP].depth < 1024) continue;  // borders have their own
            conv = window(BERTH_VTA_MAXIMA, shapes[i][0], shapes[i][1], b, shapes[i][2],
                          shapes[i][3], shapes[i][4]);
            conv.images = n;
            conv.dilation_h = conv.dilation_w = holes;
            check_conv(config, conv, 180 + i, NULL);
            conv.form = BERTH_VTA_SUMS;
            check_conv(config, conv, 190 + i, NULL);
        }
    cr_expect_geq(tried, 16);
    berth_vta_conv conv = CONV(1, 11, 10, 16, 16, 3, 3, 1, 2);
    conv.dilation_h = conv.dilation_w = 2;
    check_conv(configuration(0), conv, 200, &(berth_vta_conv_tiles){1, 2, 3, 1, 0});
    check_conv(configuration(0), conv, 201, &(berth_vta_conv_tiles){1, 1, 10, 1, 0});
}

// Maps lie below each other only where the last window of one ends in it: padding at the end would be
// the next map's first row.
Test(vta_windows, maps_with_padding_at_the_end_stay_apart) {
    berth_vta_config config = configuration(0);
    berth_vta_shape shape;
    assert_ok(berth_vta_shape_make(&config, &shape));
    berth_vta_conv conv = window(BERTH_VTA_MAXIMA, 8, 8, 3 * shape.block, 2, 2, 0);
    conv.out_height = conv.out_width = 4;
    berth_vta_conv stacked = conv;
    berth_vta_conv_stack(&shape, &stacked);
    cr_expect_eq(stacked.height, 24);
    conv.kernel_h = conv.kernel_w = 3;
    stacked = conv;
    berth_vta_conv_stack(&shape, &stacked);
    cr_expect_eq(stacked.height, 8);
    conv.kernel_h = conv.kernel_w = 2;
    conv.dilation_h = conv.dilation_w = 2;
    stacked = conv;
    berth_vta_conv_stack(&shape, &stacked);
    cr_expect_eq(stacked.height, 8);
}
