// Convolutions as streams: results against plain integer loops on the untiled tensors, and every
// stream against the rules of validator.c.
#include <stdlib.h>

#include "drivers/vta/emit/conv.h"
#include "tests/vta/programs.h"
#include "tests/vta/validator.h"

enum { DRAM_BASE = 0x40000, DRAM_BYTES = 1 << 22 };

typedef struct job {
    berth_vta_config config;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_vta_conv conv;
    berth_arena *arena;
    berth_vta_kernel kernel;
    uint8_t *dram;
    berth_vta_addresses addresses;
    uint64_t stream;  // address
    uint64_t random;
    int32_t *inputs[2], *weights, *biases;  // [n][c][y][x], [o][c of a group][y][x], [o]
} job;

static uint32_t below(job *j, uint32_t limit) {
    j->random = j->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((j->random >> 33) % limit);
}

static void put_lane(job *j, uint64_t address, uint64_t lane, uint32_t bytes, int32_t value) {
    for (uint32_t b = 0; b < bytes; ++b)
        j->dram[address - DRAM_BASE + lane * bytes + b] = (uint8_t)((uint32_t)value >> (8 * b));
}

static uint32_t output_of(const job *j) {
    if (j->conv.form == BERTH_VTA_MAXIMA) return 1;
    if (j->conv.form == BERTH_VTA_SUMS) return j->conv.parts ? j->conv.parts : j->conv.sources;
    return j->conv.no_bias ? 2 : 3;
}

static uint32_t inputs_of(const job *j) {
    return j->conv.form == BERTH_VTA_SUMS ? j->conv.sources : 1;
}

// Input channels that an output of a product has.
static uint32_t depth_of(const berth_vta_conv *v) {
    return v->in_channels / (v->groups ? v->groups : 1);
}

// Where channel c of image n at (y, x) is, in lanes.
static uint64_t lane_of(const job *j, uint32_t channels, uint32_t height, uint32_t width,
                        uint32_t n, uint32_t c, uint32_t y, uint32_t x) {
    uint32_t batch = j->shape.batch, block = j->shape.block;
    uint64_t element =
        (((uint64_t)(n / batch) * (channels / block) + c / block) * height + y) * width + x;
    return (element * batch + n % batch) * block + c % block;
}

// The buffer of channel c and its first channel; *count: how many it has.
static uint32_t buffer_of(const job *j, uint32_t which, uint32_t c, uint32_t *first,
                          uint32_t *count) {
    const berth_vta_conv *v = &j->conv;
    *first = 0;
    *count = v->in_channels;
    for (uint32_t i = 0; i < v->parts; ++i, *first += *count) {
        *count = v->part_blocks[i] * j->shape.block;
        if (c < *first + *count) return i;
    }
    return which;
}

static void fill_input(job *j, uint32_t which) {
    const berth_vta_conv *v = &j->conv;
    int32_t most = j->shape.inp_bytes == 1 ? 128 : 300;
    uint64_t at = 0;
    for (uint32_t n = 0; n < v->images; ++n)
        for (uint32_t c = 0; c < v->in_channels; ++c)
            for (uint32_t y = 0; y < v->height; ++y)
                for (uint32_t x = 0; x < v->width; ++x) {
                    int32_t value = (int32_t)below(j, 2 * (uint32_t)most) - most;
                    // Both ends often, and one channel with nothing but the least.
                    if (below(j, 8) == 0) value = value < 0 ? -most : most - 1;
                    if (c == 3) value = -most;
                    j->inputs[which][at++] = value;
                    uint32_t first = 0, count = 0, buffer = buffer_of(j, which, c, &first, &count);
                    put_lane(j, j->addresses.bindings[buffer],
                             lane_of(j, count, v->height, v->width, n, c - first, y, x),
                             j->shape.inp_bytes, value);
                }
}

static void fill_weights(job *j) {
    const berth_vta_conv *v = &j->conv;
    uint32_t block = j->shape.block, kernel = v->kernel_h * v->kernel_w, depth = depth_of(v);
    uint64_t at = 0;
    for (uint32_t o = 0; o < v->out_channels; ++o)
        for (uint32_t c = 0; c < depth; ++c)
            for (uint32_t k = 0; k < kernel; ++k) {
                int32_t value = (int32_t)below(j, 256) - 128;
                j->weights[at++] = value;
                uint64_t element =
                    ((uint64_t)(o / block) * (depth / block) + c / block) * kernel + k;
                put_lane(j, j->addresses.bindings[1],
                         (element * block + o % block) * block + c % block, j->shape.wgt_bytes,
                         value);
            }
    for (uint32_t o = 0; o < v->out_channels; ++o) {
        j->biases[o] = (int32_t)below(j, 20000) - 10000;
        for (uint32_t n = 0; n < j->shape.batch && !v->no_bias; ++n)
            put_lane(j, j->addresses.bindings[2],
                     ((uint64_t)(o / block) * j->shape.batch + n) * block + o % block,
                     j->shape.acc_bytes, j->biases[o]);
    }
}

static void fill_tensors(job *j) {
    for (uint32_t i = 0; i < inputs_of(j); ++i) fill_input(j, i);
    if (j->conv.form == BERTH_VTA_PRODUCTS) fill_weights(j);
}

static void place_kernel(job *j) {
    uint64_t at = DRAM_BASE;
    j->addresses.constants = at;
    at += (j->kernel.constant_bytes + 4095u) & ~4095u;
    for (uint32_t b = 0; b < j->kernel.binding_count; ++b) {
        j->addresses.bindings[b] = at;
        at += (j->kernel.bindings[b].size_bytes + 4095u) & ~(uint64_t)4095;
    }
    j->stream = at;
    cr_assert_leq(at + 16 * (uint64_t)j->kernel.instruction_count, DRAM_BASE + DRAM_BYTES);
    memcpy(j->dram + (j->addresses.constants - DRAM_BASE), j->kernel.constants,
           j->kernel.constant_bytes);
    assert_ok(berth_vta_relocate(&j->isa, &j->kernel, &j->addresses, j->dram + (at - DRAM_BASE)));
}

// The input at a position of a window. False: outside.
static bool input_at(const job *j, uint32_t which, uint32_t n, uint32_t c, int64_t y, int64_t x,
                     int64_t *out) {
    const berth_vta_conv *v = &j->conv;
    if (y < 0 || y >= v->height || x < 0 || x >= v->width) return false;
    *out =
        j->inputs[which][(((uint64_t)n * v->in_channels + c) * v->height + (uint64_t)y) * v->width +
                         (uint64_t)x];
    return true;
}

// Of products with weights, of one channel, or its maximum.
static int64_t sum_at(const job *j, uint32_t n, uint32_t o, uint32_t y, uint32_t x) {
    const berth_vta_conv *v = &j->conv;
    bool products = v->form == BERTH_VTA_PRODUCTS, maxima = v->form == BERTH_VTA_MAXIMA;
    int64_t sum = products && !v->no_bias ? j->biases[o] : 0, input = 0;
    uint32_t depth = depth_of(v), group = o / (v->out_channels / (v->groups ? v->groups : 1));
    if (maxima) sum = INT64_MIN;
    for (uint32_t c = 0; c < (products ? depth : inputs_of(j)); ++c)
        for (uint32_t ky = 0; ky < v->kernel_h; ++ky)
            for (uint32_t kx = 0; kx < v->kernel_w; ++kx) {
                int64_t iy = (int64_t)y * v->stride_h + ky - v->pad_h;
                int64_t ix = (int64_t)x * v->stride_w + kx - v->pad_w;
                if (!input_at(j, products ? 0 : c, n, products ? group * depth + c : o, iy, ix,
                              &input))
                    continue;
                if (maxima)
                    sum = input > sum ? input : sum;
                else if (products)
                    sum += input *
                           j->weights[(((uint64_t)o * depth + c) * v->kernel_h + ky) * v->kernel_w +
                                      kx];
                else
                    sum += input * v->factors[c];
            }
    return sum;
}

// Half to even by its definition: the remainder against a half.
static int64_t nearest(int64_t sum, int64_t divisor) {
    int64_t whole = sum / divisor - (sum % divisor < 0), rest = 2 * (sum - whole * divisor);
    return whole + (rest > divisor || (rest == divisor && whole % 2 != 0));
}

static int64_t shifted(const berth_vta_conv *v, int64_t sum) {
    if (v->form == BERTH_VTA_MAXIMA) return sum;
    if (v->form == BERTH_VTA_SUMS) return nearest(sum, v->divisor);
    return v->to_even ? nearest(sum, (int64_t)1 << v->shift) : sum >> v->shift;
}

static void check_outputs(const job *j, const char *order) {
    const berth_vta_conv *v = &j->conv;
    uint32_t height = berth_vta_conv_out_height(v), width = berth_vta_conv_out_width(v);
    int acc_bits = 8 * (int)j->shape.acc_bytes;
    for (uint32_t n = 0; n < v->images; ++n)
        for (uint32_t o = 0; o < v->out_channels; ++o)
            for (uint32_t y = 0; y < height; ++y)
                for (uint32_t x = 0; x < width; ++x) {
                    int64_t sum = sum_at(j, n, o, y, x);
                    if (acc_bits == 16) sum = (int16_t)(uint16_t)(uint64_t)sum;
                    int64_t value = shifted(v, sum);
                    value = value < v->low ? v->low : value > v->high ? v->high : value;
                    const uint8_t *at =
                        j->dram + (j->addresses.bindings[output_of(j)] - DRAM_BASE) +
                        lane_of(j, v->out_channels, height, width, n, o, y, x) * j->shape.inp_bytes;
                    int64_t got = j->shape.inp_bytes == 1 ? (int8_t)at[0]
                                                          : (int16_t)(uint16_t)(at[0] | at[1] << 8);
                    cr_assert_eq(got, value, "order %s, image %u, channel %u, (%u, %u)", order, n,
                                 o, y, x);
                }
}

static void run_in_all_orders(job *j) {
    berth_vta_model *model = NULL;
    berth_vta_hazards *hazards = NULL;
    assert_ok(berth_vta_model_create(berth_allocator_system(), &j->config, &model));
    assert_ok(berth_vta_hazards_create(berth_allocator_system(), &j->shape, &hazards));
    berth_vta_dram dram = {j->dram, DRAM_BASE, DRAM_BYTES};
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order) {
        berth_vta_model_scramble(model, (uint64_t)order + 7);
        memset(j->dram + (j->addresses.bindings[output_of(j)] - DRAM_BASE), 0x5b,
               j->kernel.bindings[output_of(j)].size_bytes);
        berth_vta_run_options options = {.order = (berth_vta_order)order,
                                         .seed = (uint64_t)order,
                                         .hazards = hazards,
                                         .refuse_unordered = true};
        berth_vta_report report;
        assert_ok(
            berth_vta_run(model, &dram, j->stream, j->kernel.instruction_count, &options, &report));
        cr_assert_eq(model->counters.stale_stores, 0);
        check_outputs(j, berth_vta_order_name(options.order));
    }
    berth_vta_hazards_destroy(hazards);
    berth_vta_model_destroy(model);
}

static void validate_stream(const job *j) {
    stream s = {j->config,          j->dram,
                DRAM_BASE,          DRAM_BYTES,
                (int64_t)j->stream, (int)j->kernel.instruction_count};
    const char *problem = validate(&s);
    cr_assert_null(problem, "%s", problem);
    assert_ok(berth_vta_kernel_check(berth_allocator_system(), &j->config, &j->kernel, true));
}

static void check_conv(berth_vta_config config, berth_vta_conv conv, uint64_t seed,
                       const berth_vta_conv_tiles *given) {
    job j = {.config = config, .conv = conv, .random = seed};
    berth_vta_timing timing = berth_vta_timing_default();
    berth_vta_conv_tiles tiles;
    assert_ok(berth_arena_create(berth_allocator_system(), &j.arena));
    assert_ok(berth_vta_shape_make(&config, &j.shape));
    assert_ok(berth_vta_isa_make(&j.shape, &j.isa));
    if (given)
        tiles = *given;
    else
        assert_ok(berth_vta_conv_plan(&config, &conv, &timing, &tiles));
    assert_ok(berth_vta_emit_conv(j.arena, &config, &conv, &tiles, &j.kernel));
    j.dram = calloc(1, DRAM_BYTES);
    uint64_t kernel = (uint64_t)conv.kernel_h * conv.kernel_w;
    for (uint32_t i = 0; i < 2; ++i)
        j.inputs[i] =
            calloc((uint64_t)conv.images * conv.in_channels * conv.height * conv.width, 4);
    j.weights = calloc(depth_of(&conv) * conv.out_channels * kernel, 4);
    j.biases = calloc(conv.out_channels, 4);
    place_kernel(&j);
    fill_tensors(&j);
    validate_stream(&j);
    run_in_all_orders(&j);
    free(j.inputs[0]);
    free(j.inputs[1]);
    free(j.weights);
    free(j.biases);
    free(j.dram);
    berth_arena_destroy(j.arena);
}

#define CONV(n, h, w, ci, co, kh, kw, s, p)                                                        \
    (berth_vta_conv) {                                                                             \
        .images = n, .height = h, .width = w, .in_channels = ci, .out_channels = co,               \
        .kernel_h = kh, .kernel_w = kw, .stride_h = s, .stride_w = s, .pad_h = p, .pad_w = p,      \
        .shift = 7, .low = -128, .high = 127                                                       \
    }

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

// ---- other windows ----

static berth_vta_conv window(berth_vta_form form, uint32_t height, uint32_t width,
                             uint32_t channels, uint32_t kernel, uint32_t stride, uint32_t pad) {
    berth_vta_conv conv = CONV(1, height, width, channels, channels, kernel, kernel, stride, pad);
    conv.form = form;
    conv.shift = 0;
    conv.sources = conv.divisor = conv.factors[0] = conv.factors[1] = 1;
    return conv;
}

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
Test(vta_conv, uneven, .timeout = 120) {
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

Test(vta_conv, groups, .timeout = 120) {
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
Test(vta_conv, additions, .timeout = 120) {
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
Test(vta_conv, averages, .timeout = 120) {
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

Test(vta_conv, maxima, .timeout = 120) {
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
Test(vta_conv, moves, .timeout = 120) {
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
    }
    check_conv(configuration(0), CONV(1, 6, 6, 16, 16, 2, 2, 1, 5), 162, NULL);
    check_conv(configuration(0), window(BERTH_VTA_MAXIMA, 4, 4, 16, 3, 1, 3), 163,
               &(berth_vta_conv_tiles){1, 2, 2, 1, 0});
}

// Tiles that do not divide the output, and that see a border in part.
Test(vta_conv, tiles_of_windows, .timeout = 120) {
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
    place_kernel(&j);
    validate_stream(&j);
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
    // 63 * 63 numbers of 8 bits, times what divides by 3969, are more than 32 bits.
    conv = window(BERTH_VTA_SUMS, 63, 63, 16, 63, 1, 0);
    conv.divisor = 3969;
    refuse(conv, BERTH_UNSUPPORTED, "more than 32 bits");
}
