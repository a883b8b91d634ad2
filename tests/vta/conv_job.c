#include "tests/vta/conv_job.h"

#include <stdlib.h>

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
                    uint32_t channel = c - first + v->first_block * j->shape.block;
                    if (v->map_blocks) count = v->map_blocks * j->shape.block;
                    put_lane(j, j->addresses.bindings[buffer],
                             lane_of(j, count, v->height, v->width, n, channel, y, x),
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

void conv_place_kernel(job *j) {
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
                int64_t iy =
                    (int64_t)y * v->stride_h + ky * (v->dilation_h ? v->dilation_h : 1) - v->pad_h;
                int64_t ix =
                    (int64_t)x * v->stride_w + kx * (v->dilation_w ? v->dilation_w : 1) - v->pad_w;
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

void conv_validate(const job *j) {
    stream s = {j->config,          j->dram,
                DRAM_BASE,          DRAM_BYTES,
                (int64_t)j->stream, (int)j->kernel.instruction_count};
    const char *problem = validate(&s);
    cr_assert_null(problem, "%s", problem);
    assert_ok(berth_vta_kernel_check(berth_allocator_system(), &j->config, &j->kernel, true));
}

void check_conv(berth_vta_config config, berth_vta_conv conv, uint64_t seed,
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
    conv_place_kernel(&j);
    fill_tensors(&j);
    conv_validate(&j);
    run_in_all_orders(&j);
    free(j.inputs[0]);
    free(j.inputs[1]);
    free(j.weights);
    free(j.biases);
    free(j.dram);
    berth_arena_destroy(j.arena);
}

berth_vta_conv window(berth_vta_form form, uint32_t height, uint32_t width, uint32_t channels,
                      uint32_t kernel, uint32_t stride, uint32_t pad) {
    berth_vta_conv conv = CONV(1, height, width, channels, channels, kernel, kernel, stride, pad);
    conv.form = form;
    conv.shift = 0;
    conv.sources = conv.divisor = conv.factors[0] = conv.factors[1] = 1;
    return conv;
}
