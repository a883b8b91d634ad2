// Quantised models become sums of integers: within one step of the last quantisation of what the
// float form computes, on the weights as the model holds them, in the form of the target's dot
// products.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/integers.h"
#include "ir/eval.h"
#include "ir/pass.h"
#include "ir/tensor/function.h"
#include "tests/check.h"

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t seed;
} fixture;

static fixture begin(void) {
    fixture f = {.seed = 5};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    return f;
}

static berth_value_id input(fixture *f, int rank, const int64_t *dims) {
    return berth_graph_add_param(f->module, f->main, "x",
                                 berth_type_tensor(f->module, BERTH_DTYPE_F32, rank, dims));
}

static berth_value_id constant(fixture *f, berth_dtype dtype, int rank, const int64_t *dims,
                               double low, double high) {
    berth_tensor tensor = berth_tensor_create(f->arena, dtype, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i) {
        f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
        double value = low + (high - low) * (double)(f->seed >> 33) / 2147483648.0;
        berth_tensor_set_f64(&tensor, i, berth_dtype_is_float(dtype) ? value : nearbyint(value));
    }
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_value_id scalar(fixture *f, berth_dtype dtype, double value) {
    return constant(f, dtype, 0, NULL, value, value);
}

static berth_op *last_op(fixture *f) {
    berth_graph *graph = berth_graph_get(f->module, f->main);
    return &graph->ops.data[graph->ops.count - 1];
}

static berth_value_id op(fixture *f, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t count) {
    return berth_graph_op1(f->module, f->main, kind, inputs, count, 0);
}

static berth_value_id quantize(fixture *f, berth_value_id x, double scale, berth_dtype dtype,
                               double zero) {
    berth_value_id inputs[3] = {x, scalar(f, BERTH_DTYPE_F32, scale), scalar(f, dtype, zero)};
    return op(f, BERTH_OP_QUANTIZE_LINEAR, inputs, 3);
}

static berth_value_id dequantize(fixture *f, berth_value_id x, double scale, berth_dtype dtype,
                                 double zero) {
    berth_value_id inputs[3] = {x, scalar(f, BERTH_DTYPE_F32, scale), scalar(f, dtype, zero)};
    return op(f, BERTH_OP_DEQUANTIZE_LINEAR, inputs, 3);
}

// Through 8 bits.
static berth_value_id pair(fixture *f, berth_value_id x, double scale, berth_dtype dtype,
                           double zero) {
    return dequantize(f, quantize(f, x, scale, dtype, zero), scale, dtype, zero);
}

// Weights with a scale per output along `axis`.
static berth_value_id weights(fixture *f, int rank, const int64_t *dims, int axis) {
    berth_value_id inputs[3] = {constant(f, BERTH_DTYPE_I8, rank, dims, -127, 127)};
    inputs[1] = constant(f, BERTH_DTYPE_F32, 1, &dims[axis], 0.002, 0.01);
    inputs[2] = constant(f, BERTH_DTYPE_I8, 1, &dims[axis], 0, 0);
    berth_value_id w = op(f, BERTH_OP_DEQUANTIZE_LINEAR, inputs, 3);
    berth_attrs_set_int(f->module, &last_op(f)->attrs, "axis", axis);
    return w;
}

static berth_tensor run(fixture *f, const berth_tensor *x) {
    berth_tensor y;
    assert_ok(berth_eval_function(f->module, f->main, x, 1, &y, 1, f->arena));
    return y;
}

static uint32_t count_kind(const fixture *f, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        count += graph->ops.data[i].region != BERTH_NONE && graph->ops.data[i].kind == kind;
    return count;
}

static berth_status find_integers(void *user) {
    fixture *f = user;
    BERTH_TRY(berth_pass_fold(f->module, f->main, &(berth_fold_options){.keep_quantized = true}));
    BERTH_TRY(berth_pass_find_integers(f->module, f->main, false));
    BERTH_TRY(berth_pass_fold(f->module, f->main, NULL));
    return berth_module_verify(f->module);
}

// Before and after the pass, on random values in [-3, 3): no further apart than `step`.
static void expect_within(fixture *f, berth_value_id y, int rank, const int64_t *dims,
                          double step) {
    berth_graph_set_results(f->module, f->main, &y, 1);
    berth_tensor x = berth_tensor_create(f->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&x, 99);
    for (int64_t i = 0; i < berth_tensor_element_count(&x); ++i)
        berth_tensor_set_f64(&x, i, 3 * berth_tensor_get_f64(&x, i));
    berth_tensor before = run(f, &x);
    assert_ok(berth_arena_try(f->arena, find_integers, f));
    berth_tensor after = run(f, &x);
    cr_assert(berth_tensor_same_shape(&before, &after));
    double low = INFINITY;
    double high = -INFINITY;
    for (int64_t i = 0; i < berth_tensor_element_count(&before); ++i) {
        double expected = berth_tensor_get_f64(&before, i);
        double got = berth_tensor_get_f64(&after, i);
        low = fmin(low, expected);
        high = fmax(high, expected);
        cr_assert_leq(fabs(expected - got), step * 1.001, "element %lld: %g, expected %g",
                      (long long)i, got, expected);
    }
    cr_expect_gt(high - low, 10 * step, "the results say something");
}

static const int64_t image[] = {1, 8, 6, 7};

typedef struct form {
    berth_dtype dtype;
    double zero;  // of the result
    bool relu_goes;
} form;

static const form forms[] = {
    {BERTH_DTYPE_U8, 0, true},     // what is below zero saturates
    {BERTH_DTYPE_I8, -128, true},  // the same, raised to u8
    {BERTH_DTYPE_U8, 100, false},  // numbers below the zero point would show
    {BERTH_DTYPE_I8, 0, false},
};

Test(integers, convolutions) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        fixture f = begin();
        berth_dtype dtype = forms[i].dtype;
        double zero = dtype == BERTH_DTYPE_U8 ? 130 : 2;
        berth_value_id x = pair(&f, input(&f, 4, image), 0.025, dtype, zero);
        berth_value_id inputs[3] = {x, weights(&f, 4, (int64_t[]){16, 8, 3, 3}, 0)};
        inputs[2] = constant(&f, BERTH_DTYPE_F32, 1, (int64_t[]){16}, -2, 2);
        berth_value_id y = op(&f, BERTH_OP_CONV, inputs, 3);
        berth_attrs_set_ints(f.module, &last_op(&f)->attrs, "pads", (int64_t[]){1, 1, 1, 1}, 4);
        y = op(&f, BERTH_OP_RELU, &y, 1);
        y = pair(&f, y, 0.05, dtype, forms[i].zero);
        expect_within(&f, y, 4, image, 0.05);
        cr_expect_eq(count_kind(&f, BERTH_OP_CONV), 0);
        cr_expect_eq(count_kind(&f, BERTH_OP_CONV_INTEGER), 1);
        cr_expect_eq(count_kind(&f, BERTH_OP_RELU), !forms[i].relu_goes);
        cr_expect_eq(count_kind(&f, BERTH_OP_DEQUANTIZE_LINEAR), 1, "that of the result");
        berth_arena_destroy(f.arena);
    }
}

// Gemm with transposed weights and factors, and a product without a bias.
Test(integers, products) {
    static const int64_t rows[] = {5, 24};
    for (int gemm = 0; gemm < 2; ++gemm) {
        fixture f = begin();
        berth_value_id x = pair(&f, input(&f, 2, rows), 0.025, BERTH_DTYPE_U8, 120);
        berth_value_id inputs[3] = {x, BERTH_NONE};
        int64_t dims[2] = {gemm ? 10 : 24, gemm ? 24 : 10};
        inputs[1] = weights(&f, 2, dims, gemm ? 0 : 1);
        inputs[2] = constant(&f, BERTH_DTYPE_F32, 1, (int64_t[]){10}, -2, 2);
        berth_value_id y = op(&f, gemm ? BERTH_OP_GEMM : BERTH_OP_MATMUL, inputs, gemm ? 3 : 2);
        if (gemm) {
            berth_attrs_set_int(f.module, &last_op(&f)->attrs, "transB", 1);
            berth_attrs_set(f.module, &last_op(&f)->attrs, "alpha",
                            (berth_attr){.kind = BERTH_ATTR_FLOAT, .f = 0.5});
        }
        y = pair(&f, y, 0.04, BERTH_DTYPE_U8, 128);
        expect_within(&f, y, 2, rows, 0.04);
        cr_expect_eq(count_kind(&f, BERTH_OP_MATMUL_INTEGER), 1);
        cr_expect_eq(count_kind(&f, BERTH_OP_GEMM) + count_kind(&f, BERTH_OP_MATMUL), 0);
        berth_arena_destroy(f.arena);
    }
}

// 33030 products of 255 * 255 do not fit in i32.
Test(integers, sums_that_could_overflow_stay_floats) {
    for (int64_t depth = 33020; depth <= 33030; depth += 10) {
        fixture f = begin();
        int64_t rows[2] = {1, depth};
        berth_value_id inputs[2] = {pair(&f, input(&f, 2, rows), 0.025, BERTH_DTYPE_U8, 120)};
        inputs[1] = weights(&f, 2, (int64_t[]){depth, 2}, 1);
        berth_value_id y = op(&f, BERTH_OP_MATMUL, inputs, 2);
        berth_graph_set_results(f.module, f.main, &y, 1);
        assert_ok(berth_arena_try(f.arena, find_integers, &f));
        cr_expect_eq(count_kind(&f, BERTH_OP_MATMUL_INTEGER), depth == 33020);
        berth_arena_destroy(f.arena);
    }
}

// A maximum of integers; a sum of two that are read as they are. Bounds: 6 is 240 steps of 0.025,
// so that it stays, and 255 steps of 0.02 are less, so that it goes.
Test(integers, what_is_between_convolutions) {
    for (int wide = 0; wide < 2; ++wide) {
        fixture f = begin();
        double step = wide ? 0.025 : 0.02;
        berth_value_id x = pair(&f, input(&f, 4, image), 0.025, BERTH_DTYPE_U8, 128);
        berth_value_id pooled = op(&f, BERTH_OP_MAX_POOL, &x, 1);
        berth_attrs_set_ints(f.module, &last_op(&f)->attrs, "kernel_shape", (int64_t[]){3, 3}, 2);
        berth_attrs_set_ints(f.module, &last_op(&f)->attrs, "pads", (int64_t[]){1, 1, 1, 1}, 4);
        pooled = pair(&f, pooled, 0.025, BERTH_DTYPE_U8, 128);
        berth_value_id y = op(&f, BERTH_OP_ADD, (berth_value_id[]){x, pooled}, 2);
        berth_value_id clip[3] = {y, scalar(&f, BERTH_DTYPE_F32, 0),
                                  scalar(&f, BERTH_DTYPE_F32, 6)};
        y = op(&f, BERTH_OP_CLIP, clip, 3);
        y = pair(&f, y, step, BERTH_DTYPE_U8, 0);
        expect_within(&f, y, 4, image, step);
        cr_expect_eq(count_kind(&f, BERTH_OP_CLIP), wide ? 1u : 0u);
        cr_expect_eq(count_kind(&f, BERTH_OP_QUANTIZE_LINEAR), 2, "not around the pool");
        const berth_graph *graph = berth_graph_get(f.module, f.main);
        for (uint32_t i = 0; i < graph->ops.count; ++i) {
            const berth_op *pool = &graph->ops.data[i];
            if (pool->region == BERTH_NONE || pool->kind != BERTH_OP_MAX_POOL) continue;
            berth_type_id type = graph->values.data[pool->outputs[0]].type;
            cr_expect_eq(berth_type_get(f.module, type)->dtype, BERTH_DTYPE_U8);
        }
        berth_arena_destroy(f.arena);
    }
}

// Parts of what is joined are quantised one by one: bytes are joined, and a part with the same parameters is as it was.
Test(integers, joined_parts) {
    fixture f = begin();
    berth_value_id x = input(&f, 4, image);
    berth_value_id parts[2] = {pair(&f, x, 0.025, BERTH_DTYPE_U8, 128),
                               pair(&f, x, 0.03, BERTH_DTYPE_U8, 120)};
    berth_value_id y = op(&f, BERTH_OP_CONCAT, parts, 2);
    berth_attrs_set_int(f.module, &last_op(&f)->attrs, "axis", 1);
    y = pair(&f, y, 0.025, BERTH_DTYPE_U8, 128);
    expect_within(&f, y, 4, image, 0.025);
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    cr_expect_eq(count_kind(&f, BERTH_OP_CONCAT), 1);
    cr_expect_eq(count_kind(&f, BERTH_OP_DEQUANTIZE_LINEAR), 2,
                 "of the second part, and at the end");
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *joined = &graph->ops.data[i];
        if (joined->region == BERTH_NONE || joined->kind != BERTH_OP_CONCAT) continue;
        berth_type_id type = graph->values.data[joined->outputs[0]].type;
        cr_expect_eq(berth_type_get(f.module, type)->dtype, BERTH_DTYPE_U8);
    }
    berth_arena_destroy(f.arena);
}

static void compile_to(fixture *f, const char *target_text, const char *pass) {
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f->arena, target_text, NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = pass, .verify = true};
    berth_compile_result result;
    assert_ok(berth_compile(f->module, &options, &result));
}

typedef struct operand {
    const char *target, *layout;
} operand;

// Weights of the one operation of a kind: 8 bits each, in the layout of the target's instruction.
static void expect_weights(fixture *f, berth_value_id y, berth_op_kind kind, const operand *row) {
    berth_graph_set_results(f->module, f->main, &y, 1);
    compile_to(f, row->target, "layout");
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t found = 0;
    for (uint32_t k = 0; k < graph->regions.data[0].ops.count; ++k) {
        const berth_op *sum = &graph->ops.data[graph->regions.data[0].ops.data[k]];
        if (sum->kind != kind) continue;
        const berth_type *type = berth_type_get(f->module, graph->values.data[sum->inputs[1]].type);
        cr_expect_eq(type->dtype, BERTH_DTYPE_I8);
        cr_expect_str_eq(berth_module_str(f->module, type->layout), row->layout, "%s", row->target);
        found++;
    }
    cr_expect_eq(found, 1, "%s", row->target);
}

#define VNNI_512 "cpu -vector_bits=512 -features=avx512vnni,avx512vl,avx512bw,avx2"
#define PAIRS_512 "cpu -vector_bits=512 -features=avx512bw,avx2"
#define VNNI_256 "cpu -vector_bits=256 -features=avxvnni,avx2"
#define PAIRS_256 "cpu -vector_bits=256 -features=avx2"

Test(integers, weights_in_the_blocks_of_dot_products) {
    static const operand rows[] = {{VNNI_512, "ABcd4b16a4b"},
                                   {PAIRS_512, "ABcd8b16a2b"},
                                   {VNNI_256, "ABcd2b8a4b"},
                                   {PAIRS_256, "ABcd4b8a2b"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        static const int64_t dims[] = {1, 32, 6, 6};
        berth_value_id inputs[2] = {pair(&f, input(&f, 4, dims), 0.025, BERTH_DTYPE_U8, 130)};
        inputs[1] = weights(&f, 4, (int64_t[]){16, 32, 3, 3}, 0);
        berth_value_id y = pair(&f, op(&f, BERTH_OP_CONV, inputs, 2), 0.05, BERTH_DTYPE_U8, 9);
        expect_weights(&f, y, BERTH_OP_CONV_INTEGER, &rows[i]);
        berth_arena_destroy(f.arena);
    }
}

// Each channel by itself: neighbours of a row where an instruction adds them, else one by one.
Test(integers, weights_of_each_channel) {
    static const operand rows[] = {{VNNI_512, "AbcD16a4d"},
                                   {PAIRS_512, "Abcd16a"},
                                   {VNNI_256, "AbcD8a4d"},
                                   {PAIRS_256, "Abcd8a"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        static const int64_t dims[] = {1, 32, 6, 6};
        berth_value_id inputs[2] = {pair(&f, input(&f, 4, dims), 0.025, BERTH_DTYPE_U8, 130)};
        inputs[1] = weights(&f, 4, (int64_t[]){32, 1, 3, 3}, 0);
        berth_value_id y = op(&f, BERTH_OP_CONV, inputs, 2);
        berth_attrs_set_int(f.module, &last_op(&f)->attrs, "group", 32);
        expect_weights(&f, pair(&f, y, 0.05, BERTH_DTYPE_U8, 9), BERTH_OP_CONV_INTEGER, &rows[i]);
        berth_arena_destroy(f.arena);
    }
}

Test(integers, weights_of_products) {
    static const operand rows[] = {
        {VNNI_512, "BA16b4a"}, {PAIRS_512, "BA16b2a"}, {VNNI_256, "BA8b4a"}, {PAIRS_256, "BA8b2a"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        static const int64_t dims[] = {5, 24};
        berth_value_id inputs[2] = {pair(&f, input(&f, 2, dims), 0.025, BERTH_DTYPE_U8, 130)};
        inputs[1] = weights(&f, 2, (int64_t[]){24, 50}, 1);
        berth_value_id y = pair(&f, op(&f, BERTH_OP_MATMUL, inputs, 2), 0.05, BERTH_DTYPE_U8, 9);
        expect_weights(&f, y, BERTH_OP_MATMUL_INTEGER, &rows[i]);
        berth_arena_destroy(f.arena);
    }
}

// Activations that are quantised as they come (the zero point is a value), and u8 weights that less
// their zero point do not fit i8.
Test(integers, weights_of_sums_with_zero_points_that_the_run_finds) {
    static const operand rows[] = {{VNNI_512, "BA16b4a"}, {PAIRS_256, "BA8b2a"}};
    for (size_t i = 0; i < 2; ++i) {
        for (int spread = 0; spread < 2; ++spread) {
            fixture f = begin();
            static const int64_t dims[] = {5, 24}, w[] = {24, 50};
            berth_value_id inputs[4];
            for (int k = 0; k < 3; k += 2) {
                berth_type_id type = berth_type_tensor(f.module, BERTH_DTYPE_U8, 2 - k, dims);
                inputs[k] = berth_graph_add_param(f.module, f.main, k ? "zero" : "x", type);
            }
            inputs[1] = spread ? constant(&f, BERTH_DTYPE_U8, 2, w, 0, 255)
                               : constant(&f, BERTH_DTYPE_I8, 2, w, -100, 100);
            inputs[3] = spread ? scalar(&f, BERTH_DTYPE_U8, 100) : scalar(&f, BERTH_DTYPE_I8, 3);
            berth_value_id y = op(&f, BERTH_OP_MATMUL_INTEGER, inputs, 4);
            expect_weights(&f, y, BERTH_OP_MATMUL_INTEGER, &rows[i]);
            berth_arena_destroy(f.arena);
        }
    }
}

// Weights that the run gives are packed then, where there are rows enough to pay for it; those of a
// quantised product, too. Constant ones whose zero points the run gives are packed before.
Test(integers, weights_that_the_run_gives) {
    static const operand rows[] = {
        {VNNI_512, "BA16b4a"}, {PAIRS_512, "BA16b2a"}, {VNNI_256, "BA8b4a"}, {PAIRS_256, "BA8b2a"}};
    enum { u8_weights, i8_weights, quantised, known_weights, source_count };
    for (int i = 0; i < 4 * source_count; ++i) {
        fixture f = begin();
        static const int64_t dims[] = {6, 24}, w[] = {24, 50};
        int source = i % source_count;
        berth_dtype dtype = source == i8_weights ? BERTH_DTYPE_I8 : BERTH_DTYPE_U8;
        berth_value_id given[2] = {
            berth_graph_add_param(f.module, f.main, "x",
                                  berth_type_tensor(f.module, BERTH_DTYPE_U8, 2, dims)),
            berth_graph_add_param(f.module, f.main, "w",
                                  source == known_weights
                                      ? berth_type_tensor(f.module, dtype, 0, NULL)
                                      : berth_type_tensor(f.module, dtype, 2, w))};
        berth_value_id y = BERTH_NONE;
        if (source == quantised) {
            berth_value_id scale = scalar(&f, BERTH_DTYPE_F32, 1);
            berth_value_id zero = scalar(&f, BERTH_DTYPE_U8, 0);
            berth_value_id inputs[8] = {given[0], scale, zero, given[1], scale, zero, scale, zero};
            y = op(&f, BERTH_OP_QLINEAR_MATMUL, inputs, 8);
        } else if (source == known_weights) {
            berth_value_id inputs[4] = {given[0], constant(&f, dtype, 2, w, 0, 255), BERTH_NONE,
                                        given[1]};
            y = op(&f, BERTH_OP_MATMUL_INTEGER, inputs, 4);
        } else {
            y = op(&f, BERTH_OP_MATMUL_INTEGER, given, 2);
        }
        expect_weights(&f, y, BERTH_OP_MATMUL_INTEGER, &rows[i / source_count]);
        cr_expect_eq(count_kind(&f, BERTH_OP_RELAYOUT), source != known_weights);
        berth_arena_destroy(f.arena);
    }
}

Test(integers, weights_that_the_run_gives_for_few_rows) {
    fixture f = begin();
    static const int64_t dims[] = {2, 24}, w[] = {24, 50};
    static const operand plain = {VNNI_512, ""};
    berth_value_id given[2];
    for (int i = 0; i < 2; ++i)
        given[i] = berth_graph_add_param(
            f.module, f.main, i ? "w" : "x",
            berth_type_tensor(f.module, i ? BERTH_DTYPE_I8 : BERTH_DTYPE_U8, 2, i ? w : dims));
    expect_weights(&f, op(&f, BERTH_OP_MATMUL_INTEGER, given, 2), BERTH_OP_MATMUL_INTEGER, &plain);
    berth_arena_destroy(f.arena);
}

// The range of what is quantised is found in vectors: partial results of a loop each for the smallest
// and the largest.
Test(integers, ranges_in_vectors) {
    fixture f = begin();
    static const int64_t dims[] = {40, 100};
    berth_type_id types[] = {berth_type_tensor(f.module, BERTH_DTYPE_U8, 2, dims),
                             berth_type_tensor(f.module, BERTH_DTYPE_F32, 0, dims),
                             berth_type_tensor(f.module, BERTH_DTYPE_U8, 0, dims)};
    berth_value_id x = input(&f, 2, dims), results[3];
    berth_op_id made =
        berth_graph_add_op(f.module, f.main, 0, BERTH_OP_DYNAMIC_QUANTIZE_LINEAR, &x, 1, 3, 0);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    for (int i = 0; i < 3; ++i) {
        results[i] = graph->ops.data[made].outputs[i];
        graph->values.data[results[i]].type = types[i];
    }
    berth_graph_set_results(f.module, f.main, results, 3);
    compile_to(&f, VNNI_512, "schedule");
    uint32_t found = 0;
    for (uint32_t i = 0; i < f.module->functions.count; ++i) {
        const berth_tfn *fn =
            f.module->functions.data[i].removed ? NULL : berth_tfn_get(f.module, i);
        for (uint32_t k = 0; fn && k < fn->bufs.count; ++k)
            found += fn->bufs.data[k].scope == BERTH_SCOPE_REGISTER && fn->bufs.data[k].lanes == 16;
    }
    cr_expect_geq(found, 2);
    berth_arena_destroy(f.arena);
}

// Sums of two branches: what lies in memory between kernels has 8 bits, whichever branch is first.
Test(integers, no_floats_between_kernels) {
    for (int swapped = 0; swapped < 2; ++swapped) {
        fixture f = begin();
        static const int64_t dims[] = {1, 32, 6, 6};
        berth_value_id x = pair(&f, input(&f, 4, dims), 0.025, BERTH_DTYPE_U8, 130);
        berth_value_id branches[2];
        for (int i = 0; i < 2; ++i) {
            berth_value_id inputs[2] = {x, weights(&f, 4, (int64_t[]){32, 32, 1, 1}, 0)};
            branches[i ^ swapped] =
                pair(&f, op(&f, BERTH_OP_CONV, inputs, 2), 0.05, BERTH_DTYPE_U8, 9);
        }
        berth_value_id sum = op(&f, BERTH_OP_ADD, branches, 2);
        berth_value_id y = quantize(&f, sum, 0.05, BERTH_DTYPE_U8, 3);
        berth_graph_set_results(f.module, f.main, &y, 1);
        compile_to(&f, VNNI_512, "fuse");
        const berth_graph *graph = berth_graph_get(f.module, f.main);
        uint32_t calls = 0;
        for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
            const berth_op *call = &graph->ops.data[graph->regions.data[0].ops.data[i]];
            if (call->kind != BERTH_OP_CALL) continue;
            const berth_type *type =
                berth_type_get(f.module, graph->values.data[call->outputs[0]].type);
            cr_expect_eq(type->dtype, BERTH_DTYPE_U8, "result of call %u", calls);
            calls++;
        }
        cr_expect_geq(calls, 2);
        berth_arena_destroy(f.arena);
    }
}
