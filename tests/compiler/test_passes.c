// Graph passes keep what a function computes: before and after are run by the reference
// interpreter.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/passes/check.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/quantized.h"
#include "compiler/passes/simplify.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "ir/pass.h"
#include "tests/check.h"

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t seed;
    const berth_multi_target *target;  // NULL = none
} fixture;

static fixture begin(void) {
    fixture f = {.seed = 7};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    return f;
}

static berth_value_id input(fixture *f, int rank, const int64_t *dims) {
    return berth_graph_add_param(f->module, f->main, "x",
                                 berth_type_tensor(f->module, BERTH_DTYPE_F32, rank, dims));
}

// A random constant with values in [low, high).
static berth_value_id constant(fixture *f, int rank, const int64_t *dims, double low, double high) {
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&tensor, f->seed++);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i)
        berth_tensor_set_f64(&tensor, i,
                             low + (berth_tensor_get_f64(&tensor, i) + 1) / 2 * (high - low));
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_value_id scalar(fixture *f, double value) {
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_F32, 0, NULL);
    berth_tensor_set_f64(&tensor, 0, value);
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_value_id op(fixture *f, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t count) {
    return berth_graph_op1(f->module, f->main, kind, inputs, count, 0);
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

typedef struct job {
    fixture *f;
    berth_status (*body)(fixture *f);
} job;

static berth_status run_job(void *user) {
    job *j = user;
    return j->body(j->f);
}

static void within(fixture *f, berth_status (*body)(fixture *f)) {
    job j = {f, body};
    assert_ok(berth_arena_try(f->arena, run_job, &j));
}

static berth_status simplify_body(fixture *f) {
    BERTH_TRY(berth_pass_fold(f->module, f->main, NULL));
    BERTH_TRY(berth_simplify(f->module, f->main, f->target));
    return berth_module_verify(f->module);
}

static berth_status fuse_body(fixture *f) {
    BERTH_TRY(berth_pass_fold(f->module, f->main, NULL));
    BERTH_TRY(berth_fuse(f->module, f->main, NULL, true, false));
    return berth_module_verify(f->module);
}

// Runs x through the function before and after `pass` and compares.
static void expect_same(fixture *f, int rank, const int64_t *dims,
                        berth_status (*pass)(fixture *f)) {
    berth_tensor x = berth_tensor_create(f->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&x, 99);
    berth_tensor before = run(f, &x);
    within(f, pass);
    berth_tensor after = run(f, &x);
    cr_assert(berth_tensor_same_shape(&before, &after));
    for (int64_t i = 0; i < berth_tensor_element_count(&before); ++i) {
        double expected = berth_tensor_get_f64(&before, i);
        cr_assert(fabs(expected - berth_tensor_get_f64(&after, i)) <= 1e-5 + 1e-5 * fabs(expected),
                  "element %lld: %g, %g", (long long)i, expected, berth_tensor_get_f64(&after, i));
    }
}

static const int64_t image_dims[] = {1, 3, 5, 6};

static berth_value_id conv_then_batch_norm(fixture *f) {
    berth_value_id x = input(f, 4, image_dims);
    berth_value_id w = constant(f, 4, (int64_t[]){4, 3, 3, 3}, -1, 1);
    berth_value_id y = op(f, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2);
    berth_value_id inputs[5] = {y};
    for (int i = 1; i < 5; ++i)
        inputs[i] = constant(f, 1, (int64_t[]){4}, i == 4 ? 0.5 : -1, i == 4 ? 2 : 1);
    return op(f, BERTH_OP_BATCH_NORMALIZATION, inputs, 5);
}

Test(passes, batch_norm_folds_into_convolution) {
    fixture f = begin();
    berth_value_id y = conv_then_batch_norm(&f);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 4, image_dims, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_BATCH_NORMALIZATION), 0);
    cr_assert_eq(count_kind(&f, BERTH_OP_CONV), 1);
    cr_assert_eq(count_kind(&f, BERTH_OP_ADD), 0);
    berth_arena_destroy(f.arena);
}

// Of f64, where there is no convolution to go into: a product and a sum with constants.
Test(passes, batch_norm_of_f64_is_folded) {
    fixture f = begin();
    const int64_t dims[] = {1, 4, 3, 2};
    int64_t channels = 4;
    berth_type_id type = berth_type_tensor(f.module, BERTH_DTYPE_F64, 4, dims);
    berth_value_id inputs[5] = {berth_graph_add_param(f.module, f.main, "x", type)};
    for (int i = 1; i < 5; ++i) {
        berth_tensor tensor = berth_tensor_create(f.arena, BERTH_DTYPE_F64, 1, &channels);
        for (int64_t c = 0; c < channels; ++c)
            berth_tensor_set_f64(&tensor, c, i == 4 ? 0.3 + (double)c : (double)(c * i) / 3 - 1);
        inputs[i] = berth_graph_constant(f.module, f.main, 0, &tensor, 0);
    }
    berth_value_id y = op(&f, BERTH_OP_BATCH_NORMALIZATION, inputs, 5);
    berth_graph_set_results(f.module, f.main, &y, 1);
    berth_tensor x = berth_tensor_create(f.arena, BERTH_DTYPE_F64, 4, dims);
    for (int64_t i = 0; i < 24; ++i) berth_tensor_set_f64(&x, i, (double)(i * 7 % 24) / 5 - 2);
    berth_tensor before = run(&f, &x);
    assert_ok(simplify_body(&f));
    cr_assert_eq(count_kind(&f, BERTH_OP_BATCH_NORMALIZATION), 0);
    berth_tensor after = run(&f, &x);
    for (int64_t i = 0; i < 24; ++i)
        cr_expect_float_eq(berth_tensor_get_f64(&after, i), berth_tensor_get_f64(&before, i),
                           1e-14);
    berth_arena_destroy(f.arena);
}

// Pinned to one device they become one operation, pinned to two they stay two.
Test(passes, batch_norm_pinned_elsewhere_stays_apart) {
    for (uint32_t device = 0; device < 2; ++device) {
        fixture f = begin();
        berth_value_id y = conv_then_batch_norm(&f);
        berth_graph *graph = berth_graph_get(f.module, f.main);
        berth_op *norm = &graph->ops.data[graph->values.data[y].op];
        norm->loc = berth_loc_node(f.module, "m", "bn", "BatchNormalization");
        graph->ops.data[graph->values.data[norm->inputs[0]].op].loc =
            berth_loc_node(f.module, "m", "conv", "Conv");
        berth_target_pin pins[] = {{.match = "conv", .device = 0},
                                   {.match = "bn", .device = device}};
        berth_multi_target target = {.pins = pins, .pin_count = 2};
        f.target = &target;
        berth_graph_set_results(f.module, f.main, &y, 1);
        expect_same(&f, 4, image_dims, simplify_body);
        cr_assert_eq(count_kind(&f, BERTH_OP_MUL), device, "device %u", device);
        cr_assert_eq(count_kind(&f, BERTH_OP_CONV), 1);
        berth_arena_destroy(f.arena);
    }
}

Test(passes, batch_norm_of_a_shared_convolution_stays_apart) {
    fixture f = begin();
    berth_value_id y = conv_then_batch_norm(&f);
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_value_id conv = graph->ops.data[graph->values.data[y].op].inputs[0];
    berth_value_id z = op(&f, BERTH_OP_ADD, (berth_value_id[]){y, conv}, 2);
    berth_graph_set_results(f.module, f.main, &z, 1);
    expect_same(&f, 4, image_dims, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_MUL), 1);
    berth_arena_destroy(f.arena);
}

Test(passes, channel_arithmetic_folds_into_convolution) {
    fixture f = begin();
    berth_value_id x = input(&f, 4, image_dims);
    berth_value_id w = constant(&f, 4, (int64_t[]){4, 3, 1, 1}, -1, 1);
    berth_value_id y = op(&f, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2);
    y = op(&f, BERTH_OP_MUL, (berth_value_id[]){y, constant(&f, 3, (int64_t[]){4, 1, 1}, 0.5, 2)},
           2);
    y = op(&f, BERTH_OP_ADD, (berth_value_id[]){constant(&f, 4, (int64_t[]){1, 4, 1, 1}, -1, 1), y},
           2);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 4, image_dims, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_MUL) + count_kind(&f, BERTH_OP_ADD), 0);
    berth_arena_destroy(f.arena);
}

// A constant over the width is not one per channel.
Test(passes, width_arithmetic_does_not_fold) {
    fixture f = begin();
    berth_value_id x = input(&f, 4, (int64_t[]){1, 3, 5, 4});
    berth_value_id w = constant(&f, 4, (int64_t[]){4, 3, 1, 1}, -1, 1);
    berth_value_id y = op(&f, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2);
    y = op(&f, BERTH_OP_MUL, (berth_value_id[]){y, constant(&f, 1, (int64_t[]){4}, 0.5, 2)}, 2);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 4, (int64_t[]){1, 3, 5, 4}, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_MUL), 1);
    berth_arena_destroy(f.arena);
}

Test(passes, gemm_becomes_matmul) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){3, 7});
    berth_value_id inputs[] = {x, constant(&f, 2, (int64_t[]){5, 7}, -1, 1),
                               constant(&f, 1, (int64_t[]){5}, -1, 1)};
    berth_value_id y = op(&f, BERTH_OP_GEMM, inputs, 3);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    berth_attrs_set_int(f.module, attrs, "transB", 1);
    berth_attrs_set_float(f.module, attrs, "alpha", 0.5);
    berth_attrs_set_float(f.module, attrs, "beta", 2);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 2, (int64_t[]){3, 7}, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_GEMM), 0);
    cr_assert_eq(count_kind(&f, BERTH_OP_MATMUL), 1);
    berth_arena_destroy(f.arena);
}

Test(passes, arithmetic_by_constants) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){4, 5});
    berth_value_id y = op(&f, BERTH_OP_POW, (berth_value_id[]){x, scalar(&f, 2)}, 2);
    berth_value_id cube = op(&f, BERTH_OP_POW, (berth_value_id[]){x, scalar(&f, 3)}, 2);
    y = op(&f, BERTH_OP_ADD, (berth_value_id[]){y, cube}, 2);
    y = op(&f, BERTH_OP_DIV, (berth_value_id[]){y, scalar(&f, 8)}, 2);
    y = op(&f, BERTH_OP_DIV, (berth_value_id[]){y, scalar(&f, 3)}, 2);
    y = op(&f, BERTH_OP_SUM, (berth_value_id[]){y, x, x}, 3);
    y = op(&f, BERTH_OP_IDENTITY, &y, 1);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 2, (int64_t[]){4, 5}, simplify_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_POW), 0);
    cr_assert_eq(count_kind(&f, BERTH_OP_DIV), 1, "only the division by 3 stays");
    cr_assert_eq(count_kind(&f, BERTH_OP_IDENTITY), 0);
    berth_arena_destroy(f.arena);
}

Test(passes, epilogue_fuses_with_its_producer) {
    fixture f = begin();
    berth_value_id x = input(&f, 4, image_dims);
    berth_value_id w = constant(&f, 4, (int64_t[]){4, 3, 3, 3}, -1, 1);
    berth_value_id y = op(&f, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2);
    y = op(&f, BERTH_OP_RELU, &y, 1);
    y = op(&f, BERTH_OP_ADD, (berth_value_id[]){y, scalar(&f, 3)}, 2);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 4, image_dims, fuse_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_CALL), 1);
    berth_arena_destroy(f.arena);
}

Test(passes, a_value_used_twice_is_not_fused_away) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){4, 5});
    berth_value_id y = op(&f, BERTH_OP_EXP, &x, 1);
    berth_value_id a = op(&f, BERTH_OP_NEG, &y, 1);
    berth_value_id b = op(&f, BERTH_OP_ABS, &y, 1);
    berth_value_id z = op(&f, BERTH_OP_MUL, (berth_value_id[]){a, b}, 2);
    berth_graph_set_results(f.module, f.main, &z, 1);
    expect_same(&f, 2, (int64_t[]){4, 5}, fuse_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_CALL), 2, "exp; both sides with the product");
    berth_arena_destroy(f.arena);
}

// (a, b) * c + (b, a) * d, a and b the halves of x: slices say where to read, and one kernel does it all.
Test(passes, operations_on_elements_and_what_they_read_are_one_kernel) {
    for (int transposed = 0; transposed < 2; ++transposed) {
        fixture f = begin();
        const int64_t square[] = {6, 6};
        berth_value_id x = input(&f, 2, square), parts[2];
        for (int i = 0; i < 2; ++i) {
            berth_value_id inputs[4] = {x};
            for (int k = 0; k < 3; ++k) {
                berth_tensor number =
                    berth_tensor_create(f.arena, BERTH_DTYPE_I64, 1, (int64_t[]){1});
                const int64_t values[2][3] = {{3, 6, 1}, {0, 3, 1}};  // begin, end, axis
                berth_tensor_set_i64(&number, 0, values[i][k]);
                inputs[1 + k] = berth_graph_constant(f.module, f.main, 0, &number, 0);
            }
            parts[i] = op(&f, BERTH_OP_SLICE, inputs, 4);
        }
        berth_value_id crossed = op(&f, BERTH_OP_CONCAT, parts, 2);
        berth_graph *graph = berth_graph_get(f.module, f.main);
        berth_attrs_set_int(f.module, &graph->ops.data[graph->ops.count - 1].attrs, "axis", 1);
        berth_value_id c = constant(&f, 2, square, -1, 1), d = constant(&f, 2, square, -1, 1);
        if (transposed) crossed = op(&f, BERTH_OP_TRANSPOSE, &crossed, 1);
        crossed = op(&f, BERTH_OP_MUL, (berth_value_id[]){crossed, d}, 2);
        berth_value_id y = op(&f, BERTH_OP_MUL, (berth_value_id[]){x, c}, 2);
        y = op(&f, BERTH_OP_ADD, (berth_value_id[]){y, crossed}, 2);
        berth_graph_set_results(f.module, f.main, &y, 1);
        expect_same(&f, 2, square, fuse_body);
        cr_expect_eq(count_kind(&f, BERTH_OP_CALL), transposed ? 2u : 1u,
                     "what is transposed stays by itself");
        berth_arena_destroy(f.arena);
    }
}

Test(passes, a_broadcast_result_is_not_an_epilogue) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){1, 5});
    berth_value_id y = op(&f, BERTH_OP_EXP, &x, 1);
    berth_value_id z =
        op(&f, BERTH_OP_ADD, (berth_value_id[]){y, constant(&f, 2, (int64_t[]){4, 5}, 0, 1)}, 2);
    berth_graph_set_results(f.module, f.main, &z, 1);
    expect_same(&f, 2, (int64_t[]){1, 5}, fuse_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_CALL), 2);
    berth_arena_destroy(f.arena);
}

Test(passes, an_elementwise_producer_fuses_into_a_reduction) {
    fixture f = begin();
    berth_value_id x = input(&f, 4, image_dims);
    berth_value_id y = op(&f, BERTH_OP_ABS, &x, 1);
    y = op(&f, BERTH_OP_SQRT, &y, 1);
    y = op(&f, BERTH_OP_GLOBAL_AVERAGE_POOL, &y, 1);
    y = op(&f, BERTH_OP_NEG, &y, 1);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 4, image_dims, fuse_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_CALL), 1, "two producers, the pool and an epilogue");
    berth_arena_destroy(f.arena);
}

// Softmax reads its operand more than once: what makes it is stored.
Test(passes, a_producer_of_softmax_stays_apart) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){4, 5});
    berth_value_id y = op(&f, BERTH_OP_EXP, &x, 1);
    y = op(&f, BERTH_OP_SOFTMAX, &y, 1);
    berth_graph_set_results(f.module, f.main, &y, 1);
    expect_same(&f, 2, (int64_t[]){4, 5}, fuse_body);
    cr_assert_eq(count_kind(&f, BERTH_OP_CALL), 2);
    berth_arena_destroy(f.arena);
}

// ---- operands of convolutions -------------------------------------------------------------------

typedef struct operand_row {
    const char *target;
    berth_op_kind producer;
    int64_t inputs;  // channels
    int64_t outputs;
    int64_t kernel;
    bool fused;
    const char *why;
} operand_row;

// conv -> producer -> conv; the first result is an output as well, so that the producer is not its
// epilogue.
static void build_operand(fixture *f, const operand_row *row) {
    int64_t image[] = {1, row->inputs, 12, 12};
    berth_value_id w = constant(f, 4, (int64_t[]){row->inputs, row->inputs, 1, 1}, -1, 1);
    berth_value_id y[2] = {input(f, 4, image), BERTH_NONE};
    y[0] = op(f, BERTH_OP_CONV, (berth_value_id[]){y[0], w}, 2);
    y[1] = op(f, row->producer, y, 1);
    w = constant(f, 4, (int64_t[]){row->outputs, row->inputs, row->kernel, row->kernel}, -1, 1);
    y[1] = op(f, BERTH_OP_CONV, (berth_value_id[]){y[1], w}, 2);
    berth_graph_set_results(f->module, f->main, y, 2);
}

// Whether a primitive function holds both operations.
static bool together(const fixture *f, berth_op_kind a, berth_op_kind b) {
    for (uint32_t i = 0; i < f->module->functions.count; ++i) {
        const berth_graph *graph = berth_graph_get(f->module, i);
        bool has[2] = {false, false};
        for (uint32_t k = 0; graph && i != f->main && k < graph->ops.count; ++k) {
            has[0] |= graph->ops.data[k].kind == a;
            has[1] |= graph->ops.data[k].kind == b;
        }
        if (has[0] && has[1]) return true;
    }
    return false;
}

Test(passes, operands_are_fused_where_it_pays) {
    static const operand_row rows[] = {
        {"cpu", BERTH_OP_RELU, 32, 32, 1, true, "one panel of rows for all columns"},
        {"cpu", BERTH_OP_TANH, 32, 32, 1, true, "computed once, so its cost does not count"},
        {"cpu", BERTH_OP_RELU, 32, 8, 1, false, "as much work again as the sum itself"},
        {"cpu", BERTH_OP_RELU, 256, 512, 1, false, "512 KiB of weights, read again per panel"},
        {"cpu", BERTH_OP_TANH, 32, 32, 3, false, "read by 6 to 9 windows"},
        {"opencl -subgroup_size=32 -host=cpu", BERTH_OP_RELU, 32, 64, 1, true, "one work-group"},
        {"opencl -subgroup_size=32 -host=cpu", BERTH_OP_TANH, 32, 640, 3, false,
         "computed in 10 work-groups for up to 9 windows"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, rows[i].target, NULL, &target));
        build_operand(&f, &rows[i]);
        berth_compile_options options = {
            .target = target, .stop_after = "fuse", .no_winograd = true, .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        cr_expect_eq(together(&f, rows[i].producer, BERTH_OP_CONV), rows[i].fused,
                     "row %zu: %s on %s: %s", i, rows[i].fused ? "fused" : "apart", rows[i].target,
                     rows[i].why);
        berth_arena_destroy(f.arena);
    }
}

// ---- quantised operations -----------------------------------------------------------------------

static berth_value_id whole(fixture *f, berth_dtype dtype, int rank, const int64_t *dims,
                            int64_t low, int64_t high) {
    berth_tensor tensor = berth_tensor_create(f->arena, dtype, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i) {
        f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
        berth_tensor_set_i64(&tensor, i, low + (int64_t)(f->seed >> 33) % (high - low + 1));
    }
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

// A step down a tree: the feature and the split of each node, and which way it goes. The nodes are read twice.
Test(passes, elements_are_looked_up_where_they_are_read) {
    for (int rows = 0; rows < 2; ++rows) {
        fixture f = begin();
        const int64_t square[] = {6, 6}, two[] = {2, 6};
        berth_value_id x = input(&f, 2, square);
        berth_value_id node = op(&f, BERTH_OP_GREATER, (berth_value_id[]){x, scalar(&f, 0)}, 2);
        node = op(&f, BERTH_OP_WHERE,
                  (berth_value_id[]){node, whole(&f, BERTH_DTYPE_I64, 0, NULL, 1, 1),
                                     whole(&f, BERTH_DTYPE_I64, 0, NULL, 0, 0)},
                  3);
        berth_value_id features = whole(&f, BERTH_DTYPE_I64, 1, two, 0, 5);
        berth_value_id picked = op(&f, BERTH_OP_GATHER, (berth_value_id[]){features, node}, 2);
        picked = op(&f, BERTH_OP_GATHER_ELEMENTS, (berth_value_id[]){x, picked}, 2);
        berth_value_id split = op(&f, BERTH_OP_GATHER,
                                  (berth_value_id[]){constant(&f, 1 + rows, two, -1, 1), node}, 2);
        if (rows) {  // a sum of each row
            berth_value_id axes = whole(&f, BERTH_DTYPE_I64, 1, (int64_t[]){1}, 2, 2);
            split = op(&f, BERTH_OP_REDUCE_SUM, (berth_value_id[]){split, axes}, 2);
            berth_graph *graph = berth_graph_get(f.module, f.main);
            berth_attrs_set_int(f.module, &graph->ops.data[graph->ops.count - 1].attrs, "keepdims",
                                0);
        }
        berth_value_id y = op(&f, BERTH_OP_GREATER, (berth_value_id[]){picked, split}, 2);
        y = op(&f, BERTH_OP_WHERE, (berth_value_id[]){y, scalar(&f, 1), scalar(&f, 2)}, 3);
        berth_graph_set_results(f.module, f.main, &y, 1);
        expect_same(&f, 2, square, fuse_body);
        cr_expect_eq(count_kind(&f, BERTH_OP_CALL), rows ? 4u : 2u,
                     "%u calls: nodes, and one for what is looked up; rows of a table are apart",
                     count_kind(&f, BERTH_OP_CALL));
        berth_arena_destroy(f.arena);
    }
}

static berth_status split_body(fixture *f) {
    BERTH_TRY(berth_pass_fold(f->module, f->main, NULL));
    BERTH_TRY(berth_pass_split_quantized(f->module, f->main, NULL));
    return berth_module_verify(f->module);
}

// quantize -> qlinear_conv or qlinear_matmul -> dequantize, with a scale and a zero point per
// output.
static berth_value_id quantised(fixture *f, bool conv, berth_value_id x) {
    berth_value_id zero = whole(f, BERTH_DTYPE_U8, 0, NULL, 128, 128);
    berth_value_id inputs[9] = {x, scalar(f, 0.01), zero};
    inputs[0] = op(f, BERTH_OP_QUANTIZE_LINEAR, inputs, 3);
    int64_t weights[4] = {6, 3, 3, 3};
    if (!conv) weights[0] = 6, weights[1] = 7;
    int64_t outputs[1] = {conv ? 6 : 7};
    inputs[3] = whole(f, BERTH_DTYPE_I8, conv ? 4 : 2, weights, -127, 127);
    inputs[4] = constant(f, 1, outputs, 0.002, 0.02);
    inputs[5] = whole(f, BERTH_DTYPE_I8, 1, outputs, -3, 3);
    inputs[6] = scalar(f, 0.05);
    inputs[7] = whole(f, BERTH_DTYPE_U8, 0, NULL, 120, 120);
    inputs[8] = whole(f, BERTH_DTYPE_I32, 1, outputs, -500, 500);
    berth_value_id y =
        conv ? op(f, BERTH_OP_QLINEAR_CONV, inputs, 9) : op(f, BERTH_OP_QLINEAR_MATMUL, inputs, 8);
    return op(f, BERTH_OP_DEQUANTIZE_LINEAR, (berth_value_id[]){y, inputs[6], inputs[7]}, 3);
}

Test(passes, quantised_operations_in_parts_compute_the_same) {
    for (int conv = 0; conv < 2; ++conv) {
        fixture f = begin();
        int rank = conv ? 4 : 2;
        int64_t matrix[] = {5, 6};
        berth_value_id y = quantised(&f, conv, input(&f, rank, conv ? image_dims : matrix));
        berth_graph_set_results(f.module, f.main, &y, 1);
        expect_same(&f, rank, conv ? image_dims : matrix, split_body);
        cr_expect_eq(count_kind(&f, BERTH_OP_QLINEAR_CONV), 0);
        cr_expect_eq(count_kind(&f, BERTH_OP_QLINEAR_MATMUL), 0);
        cr_expect_eq(count_kind(&f, conv ? BERTH_OP_CONV_INTEGER : BERTH_OP_MATMUL_INTEGER), 1);
        berth_arena_destroy(f.arena);
    }
}

// Sums that could exceed 2^24 are taken over parts of the input channels: 64 * 9 * 127 * 255 is
// above it, half of that below.
Test(passes, large_integer_sums_are_taken_in_parts) {
    static const struct {
        int64_t channels;
        uint32_t parts;
    } rows[] = {{56, 1}, {64, 2}, {136, 0}};  // 136 channels leave no whole blocks
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, "cpu", NULL, &target));
        int64_t image[] = {1, rows[i].channels, 6, 6};
        int64_t weights[] = {16, rows[i].channels, 3, 3};
        berth_value_id inputs[3] = {input(&f, 4, image), scalar(&f, 0.01), BERTH_NONE};
        inputs[2] = whole(&f, BERTH_DTYPE_U8, 0, NULL, 128, 128);
        inputs[0] = op(&f, BERTH_OP_QUANTIZE_LINEAR, inputs, 3);
        inputs[1] = whole(&f, BERTH_DTYPE_I8, 4, weights, 127, 127);
        berth_value_id y = op(&f, BERTH_OP_CONV_INTEGER, inputs, 3);
        berth_graph_set_results(f.module, f.main, &y, 1);
        berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        cr_expect_eq(count_kind(&f, BERTH_OP_CONV), rows[i].parts, "%lld channels",
                     (long long)rows[i].channels);
        cr_expect_eq(count_kind(&f, BERTH_OP_CONV_INTEGER), rows[i].parts == 0);
        berth_arena_destroy(f.arena);
    }
}

static berth_op_id first_of_kind(const fixture *f, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i)
        if (graph->ops.data[graph->regions.data[0].ops.data[i]].kind == kind)
            return graph->regions.data[0].ops.data[i];
    return BERTH_NONE;
}

static const char *layout_name(const fixture *f, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_type *type = berth_type_get(f->module, graph->values.data[value].type);
    return berth_module_str(f->module, type->layout);
}

// Convolutions make blocks of as many channels as a register holds floats where the channels fill
// them, else blocks of 8; weights come in blocks of what the input has. On CUDA maps of f32 stay plain, and weights of a
// window have the inputs of each place beside each other where copies of four take all of them.
Test(passes, blocks_of_channels_follow_the_registers) {
    static const struct {
        const char *target;
        int64_t inputs, outputs, window;
        const char *result, *weights;
    } rows[] = {
        {"cpu -vector_bits=256", 32, 48, 3, "aBcd8b", "ABcd8b16a"},
        {"cpu -vector_bits=512", 32, 48, 3, "aBcd16b", "ABcd16b16a"},
        {"cpu -vector_bits=512", 24, 32, 3, "aBcd16b", "ABcd8b16a"},
        {"cpu -vector_bits=512", 32, 24, 3, "aBcd8b",
         "ABcd16b16a"},  // 24 is not whole blocks of 16
        {"cpu -vector_bits=512", 32, 20, 3, "aBcd16b", "ABcd16b16a"},  // nor of 8: as good
        {"cpu -vector_bits=512", 32, 8, 3, "aBcd8b", "ABcd16b8a"},
        {"cpu -vector_bits=512", 3, 32, 3, "aBcd16b", "Abcd16a"},
        {"cuda -arch=sm_80", 32, 48, 3, "", "acdb"},
        {"cuda -arch=sm_80", 30, 48, 3, "", ""},
        {"cuda -arch=sm_80", 32, 48, 1, "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, rows[i].target, NULL, &target));
        int64_t image[] = {1, rows[i].inputs, 6, 6};
        int64_t kernel[] = {rows[i].outputs, rows[i].inputs, rows[i].window, rows[i].window};
        berth_value_id inputs[2] = {input(&f, 4, image), constant(&f, 4, kernel, -1, 1)};
        berth_value_id y = op(&f, BERTH_OP_CONV, inputs, 2);
        y = op(&f, BERTH_OP_RELU, &y, 1);
        berth_graph_set_results(f.module, f.main, &y, 1);
        berth_compile_options options = {
            .target = target, .stop_after = "layout", .no_winograd = true, .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        const berth_graph *graph = berth_graph_get(f.module, f.main);
        berth_op_id conv = first_of_kind(&f, BERTH_OP_CONV);
        cr_assert_neq(conv, BERTH_NONE);
        cr_expect_str_eq(layout_name(&f, graph->ops.data[conv].outputs[0]), rows[i].result);
        cr_expect_str_eq(layout_name(&f, graph->ops.data[conv].inputs[1]), rows[i].weights);
        berth_op_id relu = first_of_kind(&f, BERTH_OP_RELU);
        cr_expect_str_eq(layout_name(&f, graph->ops.data[relu].outputs[0]), rows[i].result);
        berth_arena_destroy(f.arena);
    }
}

// ---- what a model says about itself -------------------------------------------------------------

static berth_value_id indices(fixture *f, int rank, const int64_t *dims, const int64_t *values) {
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_I64, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i)
        berth_tensor_set_i64(&tensor, i, values[i]);
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_status fold_only(fixture *f) {
    return berth_pass_fold(f->module, f->main, NULL);
}

static void expect_fold(fixture *f, const char *problem) {
    job j = {f, fold_only};
    berth_status status = berth_arena_try(f->arena, run_job, &j);
    if (problem)
        cr_expect(status && strstr(berth_status_message(status), problem), "%s, expected %s",
                  status ? berth_status_message(status) : "no error", problem);
    else
        cr_expect_null(status, "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(passes, constant_indices_lie_in_the_data) {
    static const struct {
        berth_op_kind kind;
        int64_t axis;
        int rank;
        int64_t dims[2];
        int64_t values[4];
        const char *problem;
    } rows[] = {
        {BERTH_OP_GATHER, 0, 1, {3}, {0, 3, -4}, NULL},
        {BERTH_OP_GATHER, 0, 1, {3}, {0, 4, 1}, "index 4 is outside dimension 0"},
        {BERTH_OP_GATHER, -1, 1, {2}, {0, -6}, "index -6 is outside dimension 1"},
        {BERTH_OP_GATHER_ELEMENTS, 1, 2, {2, 2}, {0, 4, -5, 1}, NULL},
        {BERTH_OP_GATHER_ELEMENTS, 1, 2, {2, 2}, {0, 4, 5, 1}, "which has the extent 5"},
        {BERTH_OP_GATHER_ND, 0, 2, {2, 2}, {3, 4, -4, -5}, NULL},
        {BERTH_OP_GATHER_ND, 0, 2, {2, 2}, {3, 4, 4, 0}, "index 4 is outside dimension 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = begin();
        berth_value_id inputs[2] = {input(&f, 2, (int64_t[]){4, 5}), BERTH_NONE};
        inputs[1] = indices(&f, rows[i].rank, rows[i].dims, rows[i].values);
        berth_value_id y = op(&f, rows[i].kind, inputs, 2);
        berth_graph *graph = berth_graph_get(f.module, f.main);
        if (rows[i].kind != BERTH_OP_GATHER_ND)
            berth_attrs_set_int(f.module, &graph->ops.data[graph->values.data[y].op].attrs, "axis",
                                rows[i].axis);
        berth_graph_set_results(f.module, f.main, &y, 1);
        expect_fold(&f, rows[i].problem);
        berth_arena_destroy(f.arena);
    }
}

static void keep_warning(void *state, berth_log_level level, const char *message) {
    if (level == BERTH_LOG_WARNING) snprintf(state, 512, "%s", message);
}

// { relu of x, its result declared with the shape of `entry`, of type `dtype` } folded; the last warning.
static void fold_declared(const int64_t *entry, berth_dtype dtype, int relus, char warning[512]) {
    fixture f = begin();
    berth_value_id x = input(&f, 2, (int64_t[]){4, 5});
    for (int i = 0; i < relus; ++i) {
        x = op(&f, BERTH_OP_RELU, &x, 1);
        berth_graph *graph = berth_graph_get(f.module, f.main);
        berth_declare_shapes(f.module, &graph->ops.data[graph->values.data[x].op], entry,
                             2 + (uint32_t)entry[1]);
        berth_declare_types(f.module, &graph->ops.data[graph->values.data[x].op],
                            (int64_t[]){0, dtype}, 2);
    }
    berth_graph_set_results(f.module, f.main, &x, 1);
    berth_fold_options options = {.log = {keep_warning, warning}};
    *warning = 0;
    cr_assert(!berth_pass_fold(f.module, f.main, &options));
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    cr_expect_eq(graph->ops.data[graph->values.data[x].op].attrs.items.count, 0);
    berth_arena_destroy(f.arena);
}

Test(passes, wrong_declarations_are_warnings) {
    static const struct {
        int64_t entry[2 + BERTH_MAX_RANK];
        berth_dtype dtype;
        const char *warning;
    } rows[] = {
        {{0, 2, 4, 5}, BERTH_DTYPE_F32, ""},
        {{0, 2, -1, 5}, BERTH_DTYPE_F32, ""},
        {{0, 2, 4, 6},
         BERTH_DTYPE_F32,
         "is declared with the shape [4,6], but what is computed is f32[4,5]"},
        {{0, 3, 1, -1, 5}, BERTH_DTYPE_F32, "is declared with the shape [1,?,5]"},
        {{0, 0}, BERTH_DTYPE_F32, "is declared with the shape []"},
        {{0, 2, 4, 5}, BERTH_DTYPE_I64, "is declared i64, but what is computed is f32[4,5]"},
        {{0, 2, 4, 5}, BERTH_DTYPE_STRING, "is declared string, but what is computed is f32[4,5]"},
    };
    char warning[512];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fold_declared(rows[i].entry, rows[i].dtype, 1, warning);
        cr_expect(*rows[i].warning ? strstr(warning, rows[i].warning) != NULL : !*warning, "%s",
                  warning);
    }
    fold_declared(rows[2].entry, BERTH_DTYPE_F32, BERTH_DECLARED_WARNINGS + 3, warning);
    cr_expect(strstr(warning, "3 more results have another shape or type"), "%s", warning);
}
