// Scales of quantised values, and models that are edited and written again.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/onnx/edit.h"
#include "tests/onnx/model_writer.h"
#include "toolkit/quantize/scale.h"

enum { COUNT = 20000 };

static double bins[BERTH_QUANTIZE__BINS];

static berth_quantize__range range_of(const float *values, int64_t count) {
    berth_quantize__range range = {.bins = bins};
    berth_tensor tensor = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {count}};
    tensor.data = (void *)(uintptr_t)values;
    memset(bins, 0, sizeof(bins));
    berth_quantize__range_add(&range, &tensor);
    berth_quantize__range_count(&range, &tensor);
    return range;
}

static double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1u << 24);
}

// Bell-shaped, a few values far out; `positive`: negative ones become 0, as behind a relu.
static float *values_with_outliers(bool positive) {
    static float values[COUNT];
    uint64_t seed = 5;
    for (int i = 0; i < COUNT; ++i) {
        double sum = 0;
        for (int k = 0; k < 12; ++k) sum += uniform(&seed);
        double value = (sum - 6) * (i % 2000 == 0 ? 12 : 1);
        values[i] = (float)(positive && value < 0 ? 0 : value);
    }
    return values;
}

// The definition, value by value.
static double error_of(const float *values, double scale, int zero, int least, int most) {
    double sum = 0;
    for (int i = 0; i < COUNT; ++i) {
        double q = nearbyint((double)values[i] / scale) + zero;
        q = q < least ? least : q > most ? most : q;
        double error = (q - zero) * scale - (double)values[i];
        sum += error * error;
    }
    return sum;
}

Test(quantize, ranges_give_the_scales_of_the_definition) {
    static const float signed_values[] = {-1, 0, 3}, positive[] = {0, 1, 3};
    berth_quantize_options options = {.method = BERTH_QUANTIZE_MINMAX};
    berth_quantize__range range = range_of(signed_values, 3);
    berth_quantize__scale s = berth_quantize__choose(&range, &options);
    cr_expect_float_eq(s.scale, 4.0 / 255, 1e-9);
    cr_expect_eq(s.zero, 64);  // 1 / (4 / 255) = 63.75
    cr_expect(!s.is_signed && s.least == 0 && s.most == 255);
    options.power_of_two = true;  // -1 .. 3 in steps of 2^-5 around 128: up to 3.97
    s = berth_quantize__choose(&range, &options);
    cr_expect_eq(s.scale, 0x1p-5F);
    cr_expect_eq(s.zero, 128);
    range = range_of(positive, 3);  // 255 * 2^-6 = 3.98
    s = berth_quantize__choose(&range, &options);
    cr_expect_eq(s.scale, 0x1p-6F);
    cr_expect_eq(s.zero, 0);
    options.whole = true;
    s = berth_quantize__choose(&range, &options);
    cr_expect_eq(s.scale, 0x1p-5F);
    cr_expect(s.is_signed && s.zero == 0 && s.least == -128 && s.most == 127);
}

Test(quantize, all_zero_and_tiny_values_have_a_scale) {
    static const float zeros[4], tiny[] = {1e-42F, -1e-42F};
    for (int two = 0; two < 2; ++two)
        for (int method = 0; method < 4; ++method) {
            berth_quantize_options options = {.method = (berth_quantize_method)method,
                                              .power_of_two = two};
            berth_quantize__range range = range_of(zeros, 4);
            berth_quantize__scale s = berth_quantize__choose(&range, &options);
            cr_expect(isfinite(s.scale) && s.scale > 0);
            cr_expect_eq(berth_quantize__round(&s, 0), 0);
            range = range_of(tiny, 2);
            s = berth_quantize__choose(&range, &options);
            cr_expect(isfinite(s.scale) && s.scale > 0);
        }
}

// 0 must be exact, whatever the range is: padding is made of it.
Test(quantize, zero_is_exact) {
    uint64_t seed = 9;
    for (int i = 0; i < 200; ++i) {
        float ends[] = {(float)(-3 * uniform(&seed)), (float)(5 * uniform(&seed))};
        berth_quantize_options options = {.method = BERTH_QUANTIZE_MINMAX, .power_of_two = i % 2};
        berth_quantize__range range = range_of(ends, 2);
        berth_quantize__scale s = berth_quantize__choose(&range, &options);
        cr_expect_eq(berth_quantize__round(&s, 0), 0);
        for (int k = 0; k < 2; ++k)
            cr_expect_leq(fabs(berth_quantize__round(&s, (double)ends[k]) - (double)ends[k]),
                          (double)s.scale * 0.5001 + 1e-7);
    }
}

// Beside a search over all intervals, by the values themselves.
Test(quantize, least_squared_error) {
    for (int positive = 0; positive < 2; ++positive) {
        const float *values = values_with_outliers(positive);
        berth_quantize_options options = {.method = BERTH_QUANTIZE_MSE};
        berth_quantize__range range = range_of(values, COUNT);
        berth_quantize__scale s = berth_quantize__choose(&range, &options);
        double got = error_of(values, (double)s.scale, s.zero, 0, 255), best = INFINITY;
        for (int low = 1; low <= (positive ? 1 : 50); ++low)
            for (int high = 1; high <= 50; ++high) {
                double a = positive ? 0 : range.low * low / 50, b = range.high * high / 50;
                double scale = (b - a) / 255;
                best = fmin(best, error_of(values, scale, (int)nearbyint(-a / scale), 0, 255));
            }
        cr_expect_leq(got, 1.05 * best, "%g, the best is %g", got, best);
        double all = (range.high - range.low) / 255;
        cr_expect_lt(got, error_of(values, all, (int)nearbyint(-range.low / all), 0, 255));
        options.power_of_two = options.whole = true;
        s = berth_quantize__choose(&range, &options);
        got = error_of(values, (double)s.scale, 0, -128, 127);
        for (int k = -10; k < 4; ++k)
            cr_expect_leq(got, 1.01 * error_of(values, ldexp(1, k), 0, -128, 127), "2^%d", k);
    }
}

Test(quantize, percentile_and_entropy_leave_outliers_out) {
    static float values[1000];
    for (int i = 0; i < 1000; ++i) values[i] = (float)(i + 1);
    berth_quantize_options options = {.method = BERTH_QUANTIZE_PERCENTILE, .percentile = 0.99};
    berth_quantize__range range = range_of(values, 1000);
    berth_quantize__scale s = berth_quantize__choose(&range, &options);
    cr_expect_float_eq(s.scale * 255, 990, 1.5, "%g", (double)s.scale * 255);  // 10 lie above
    const float *outliers = values_with_outliers(true);
    options.method = BERTH_QUANTIZE_ENTROPY;
    range = range_of(outliers, COUNT);
    s = berth_quantize__choose(&range, &options);
    cr_expect_lt(s.scale * 255, 0.7 * range.high);
    cr_expect_gt(s.scale * 255, 2);  // two deviations
}

Test(quantize, weights) {
    static const float weights[] = {-1, 0.5F, 0.25F, 1};
    berth_quantize__slice slice = {weights, 1, 4, 4};
    berth_quantize_options options = {.method = BERTH_QUANTIZE_MINMAX};
    float scale = berth_quantize__weight_scale(&slice, &options);
    cr_expect_float_eq(scale, 1.0 / 127, 1e-9);
    cr_expect_eq(berth_quantize__weight_round(-1, scale, false), -127);
    options.power_of_two = true;  // 127 * 2^-7 is less than 1
    cr_expect_eq(berth_quantize__weight_scale(&slice, &options), 0x1p-6F);
    cr_expect_eq(berth_quantize__weight_round(-2, 0x1p-6F, true), -128);
}

// ---- edited models ------------------------------------------------------------------------------

static const int64_t four[] = {4};

// A model with fields that no reader here knows, in each message.
static pb strange_model(void) {
    pb graph = {.size = 0}, node = {.size = 0}, attr = attr_int("axis", 7);
    pb_text(&attr, 777, "in an attribute");
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "y");
    pb_text(&node, 4, "Neg");
    pb_message(&node, 5, &attr);
    pb_text(&node, 888, "in a node");
    pb_message(&graph, 1, &node);
    graph_floats(&graph, "unused", 4, 16);
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 1, four);
    pb_text(&graph, 999, "in the graph");
    pb model = model_of(&graph, 13);
    pb_text(&model, 666, "in the model");
    return model;
}

typedef struct edit_job {
    berth_arena *arena;
    const char *path;
    berth_onnx_bytes bytes;
} edit_job;

static berth_status read_and_write(void *user) {
    edit_job *job = user;
    berth_onnx_edit *model = NULL;
    BERTH_TRY(berth_onnx_edit_read(job->arena, job->path, &model));
    cr_expect_eq(berth_onnx_edit_opset(model), 13);
    cr_expect_eq(model->nodes.count, 1);
    cr_expect_eq(berth_onnx_node_int(model->nodes.data[0], "axis", 1), 7);
    berth_onnx_node_set_int(job->arena, model->nodes.data[0], "other", -3);
    cr_expect_eq(berth_onnx_node_int(model->nodes.data[0], "other", 1), -3);
    berth_onnx_edit_remove_constant(model, "unused");
    return berth_onnx_edit_write(job->arena, model, &job->bytes);
}

static berth_status only_read(void *user) {
    edit_job *job = user;
    berth_onnx_edit *model = NULL;
    return berth_onnx_edit_read(job->arena, job->path, &model);
}

static bool holds(berth_onnx_bytes bytes, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= bytes.size_bytes; ++i)
        if (memcmp(bytes.data + i, text, length) == 0) return true;
    return false;
}

Test(quantize, edited_models_keep_what_is_unknown) {
    char path[] = "/tmp/berth_edit_XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    pb model = strange_model();
    cr_assert_null(berth_file_write(path, model.data, model.size));
    edit_job job = {.path = path};
    cr_assert_null(berth_arena_create(berth_allocator_system(), &job.arena));
    berth_status status = berth_arena_try(job.arena, read_and_write, &job);
    cr_assert_null(status, "%s", berth_status_message(status));
    static const char *const texts[] = {"in an attribute", "in a node", "in the graph",
                                        "in the model", "other"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
        cr_expect(holds(job.bytes, texts[i]), "%s", texts[i]);
    cr_expect(!holds(job.bytes, "unused"));
    berth_arena_destroy(job.arena);
    unlink(path);
}

// Within the graph, which is the second field from the start.
Test(quantize, models_cut_short_are_refused) {
    char path[] = "/tmp/berth_edit_XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    pb model = strange_model();
    edit_job job = {.path = path};
    cr_assert_null(berth_arena_create(berth_allocator_system(), &job.arena));
    for (size_t size = 8; size < 120; ++size) {
        cr_assert_null(berth_file_write(path, model.data, size));
        berth_status status = berth_arena_try(job.arena, only_read, &job);
        cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%zu bytes", size);
        cr_expect(strstr(berth_status_message(status), "is no ONNX model"));
        berth_status_free(status);
    }
    berth_arena_destroy(job.arena);
    unlink(path);
}
