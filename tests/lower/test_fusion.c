// Functions of several operations: chains before and after reductions, several reductions, several
// results.
#include <criterion/criterion.h>

#include "compiler/schedule/schedule.h"
#include "ir/infer.h"
#include "tests/lower/op_case.h"

// ---- building -----------------------------------------------------------------------------------

typedef struct builder {
    berth_module *module;
    berth_func_id function;
    uint64_t random;
    berth_status failure;
} builder;

static uint32_t draw(builder *b, uint32_t below) {  // splitmix64
    uint64_t z = (b->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static berth_value_id param(builder *b, int rank, const int64_t *dims) {
    return berth_graph_add_param(b->module, b->function, "",
                                 berth_type_tensor(b->module, BERTH_DTYPE_F32, rank, dims));
}

static const berth_type *type_of_value(const builder *b, berth_value_id value) {
    return berth_type_get(b->module,
                          berth_graph_get(b->module, b->function)->values.data[value].type);
}

static berth_op_id add_op(builder *b, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count) {
    berth_op_id op = berth_graph_add_op(b->module, b->function, 0, kind, inputs, count, 1, 0);
    return op;
}

static berth_value_id finish(builder *b, berth_op_id op) {
    berth_status status = berth_infer_op(b->module, b->function, op);
    if (status && !b->failure)
        b->failure = status;
    else
        berth_status_ignore(status);
    return berth_graph_get(b->module, b->function)->ops.data[op].outputs[0];
}

static berth_value_id apply(builder *b, berth_op_kind kind, const berth_value_id *inputs,
                            uint32_t count) {
    return finish(b, add_op(b, kind, inputs, count));
}

static berth_value_id apply_ints(builder *b, berth_op_kind kind, const berth_value_id *inputs,
                                 uint32_t count, const char *name, const int64_t *values,
                                 uint32_t value_count) {
    berth_op_id op = add_op(b, kind, inputs, count);
    berth_attrs_set_ints(b->module, &berth_graph_get(b->module, b->function)->ops.data[op].attrs,
                         name, values, value_count);
    return finish(b, op);
}

static berth_value_id shape_constant(builder *b, int count, const int64_t *values) {
    int64_t dim = count;
    berth_tensor tensor = berth_tensor_create(b->module->arena, BERTH_DTYPE_I64, 1, &dim);
    for (int i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, values[i]);
    return berth_graph_constant(b->module, b->function, 0, &tensor, 0);
}

// ---- random steps -------------------------------------------------------------------------------

static berth_value_id elementwise(builder *b, berth_value_id x) {
    static const berth_op_kind unary[] = {BERTH_OP_RELU, BERTH_OP_TANH, BERTH_OP_NEG,
                                          BERTH_OP_SIGMOID, BERTH_OP_ABS};
    static const berth_op_kind binary[] = {BERTH_OP_ADD, BERTH_OP_MUL, BERTH_OP_SUB, BERTH_OP_MAX};
    berth_type type = *type_of_value(b, x);
    if (draw(b, 2)) return apply(b, unary[draw(b, 5)], &x, 1);
    for (int d = 0; d < type.rank; ++d)
        if (draw(b, 3) == 0) type.dims[d] = 1;
    int drop = type.rank > 0 ? (int)draw(b, 2) : 0;
    berth_value_id other =
        draw(b, 4) ? param(b, type.rank - drop, type.dims + drop) : x;  // sometimes x with itself
    berth_value_id inputs[2] = {x, other};
    if (draw(b, 2)) inputs[0] = other, inputs[1] = x;
    return apply(b, binary[draw(b, 4)], inputs, 2);
}

static berth_value_id movement(builder *b, berth_value_id x) {
    berth_type type = *type_of_value(b, x);
    int64_t values[2 * BERTH_MAX_RANK] = {0};
    int rank = type.rank;
    switch (draw(b, 4)) {
    case 0:
        for (int d = 0; d < rank; ++d) values[d] = (d + 1) % rank;
        return apply_ints(b, BERTH_OP_TRANSPOSE, &x, 1, "perm", values, (uint32_t)rank);
    case 1:
        for (int d = 0; d < 2 * rank; ++d) values[d] = draw(b, 2);
        return apply(b, BERTH_OP_PAD, (berth_value_id[]){x, shape_constant(b, 2 * rank, values)},
                     2);
    case 2: {  // swaps the extents of the first two dimensions
        for (int d = 0; d < rank; ++d) values[d] = type.dims[d];
        values[0] = type.dims[1];
        values[1] = type.dims[0];
        return apply(b, BERTH_OP_RESHAPE, (berth_value_id[]){x, shape_constant(b, rank, values)},
                     2);
    }
    default: {
        berth_value_id both[2] = {x, x};
        berth_op_id op = add_op(b, BERTH_OP_CONCAT, both, 2);
        berth_attrs_set_int(b->module, &berth_graph_get(b->module, b->function)->ops.data[op].attrs,
                            "axis", draw(b, (uint32_t)rank));
        return finish(b, op);
    }
    }
}

static berth_value_id convolve(builder *b, berth_value_id x) {
    const berth_type type = *type_of_value(b, x);
    int64_t dims[4] = {1 + draw(b, 6), type.dims[1], 2, 2};
    int64_t pads[4] = {1, draw(b, 2), 0, 1};
    berth_value_id weights = param(b, 4, dims);
    if (draw(b, 2)) weights = elementwise(b, weights);
    berth_value_id bias = param(b, 1, dims);
    berth_value_id inputs[3] = {x, weights, bias};
    return apply_ints(b, BERTH_OP_CONV, inputs, 2 + draw(b, 2), "pads", pads, 4);
}

static berth_value_id anchor(builder *b, berth_value_id x) {
    const berth_type type = *type_of_value(b, x);
    int64_t kernel[2] = {2, 2};
    int64_t matrix[2] = {type.dims[3], 1 + draw(b, 5)};
    switch (draw(b, 6)) {
    case 0: return convolve(b, x);
    case 1: return apply(b, BERTH_OP_MATMUL, (berth_value_id[]){x, param(b, 2, matrix)}, 2);
    case 2: return apply(b, BERTH_OP_SOFTMAX, &x, 1);
    case 3: return apply_ints(b, BERTH_OP_MAX_POOL, &x, 1, "kernel_shape", kernel, 2);
    case 4: return apply(b, BERTH_OP_GLOBAL_AVERAGE_POOL, &x, 1);
    default: {
        int64_t axis = draw(b, 4);
        return apply(b, BERTH_OP_REDUCE_SUM, (berth_value_id[]){x, shape_constant(b, 1, &axis)}, 2);
    }
    }
}

static berth_value_id steps(builder *b, berth_value_id x, uint32_t most, bool move) {
    for (uint32_t n = draw(b, most + 1); n > 0; --n)
        x = move && draw(b, 3) == 0 ? movement(b, x) : elementwise(b, x);
    return x;
}

// Parameters and results in channel blocks, some of them.
static void random_layouts(builder *b, const berth_value_id *values, uint32_t count) {
    static const char *const tags[] = {"aBcd8b", "aBcd4b", "acdb"};
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type type = *type_of_value(b, values[i]);
        if (type.rank != 4 || draw(b, 2)) continue;
        berth_str_id tag = berth_module_intern(b->module, tags[draw(b, 3)]);
        berth_graph_get(b->module, b->function)->values.data[values[i]].type =
            berth_type_tensor_layout(b->module, type.dtype, type.rank, type.dims, tag);
    }
}

static const char *random_function(uint64_t seed, const berth_target *target, berth_arena *arena) {
    builder b = {.module = berth_module_create(arena, "fusion"), .random = seed};
    b.function = berth_graph_create(b.module, "primitive", 0);
    int64_t dims[4] = {1 + draw(&b, 2), 2 + draw(&b, 3), 3 + draw(&b, 3), 3 + draw(&b, 3)};
    berth_value_id x = steps(&b, param(&b, 4, dims), 3, true);
    uint32_t anchors = draw(&b, 3);
    berth_value_id middle = x;
    for (uint32_t i = 0; i < anchors; ++i) {
        const berth_type *type = type_of_value(&b, x);
        if (type->dims[2] < 3 || type->dims[3] < 3) break;
        middle = anchor(&b, x);
        x = steps(&b, middle, 3, i + 1 < anchors || draw(&b, 3) == 0);
    }
    berth_value_id results[2] = {x, middle};
    berth_graph_set_results(b.module, b.function, results, 1 + draw(&b, 2));
    const berth_region *root = &berth_graph_get(b.module, b.function)->regions.data[0];
    if (draw(&b, 2)) {
        random_layouts(&b, root->params.data, root->params.count);
        random_layouts(&b, root->results.data, root->results.count);
    }
    if (b.failure) return berth_arena_printf(arena, "build: %s", berth_status_message(b.failure));
    return compare_function(b.module, b.function, NULL, target, seed, 2e-5, arena);
}

typedef struct request {
    uint64_t seed;
    const berth_target *target;
    berth_arena *arena;
    const char *problem;
} request;

static berth_status run(void *user) {
    request *r = user;
    r->problem = random_function(r->seed, r->target, r->arena);
    return BERTH_OK;
}

static void run_seeds(const berth_target *target) {
    int failed = 0;
    for (uint64_t seed = 1; seed <= 600; ++seed) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        request r = {seed, target, arena, NULL};
        cr_assert_null(berth_arena_try(arena, run, &r));
        if (r.problem) cr_log_error("seed %llu: %s", (unsigned long long)seed, r.problem);
        failed += r.problem != NULL;
        berth_arena_destroy(arena);
    }
    cr_expect_eq(failed, 0, "%d random functions differ", failed);
}

Test(lower_fusion, random_functions) {
    run_seeds(NULL);
}

Test(lower_fusion, random_functions_scheduled) {
    with_target("cpu", run_seeds);
    with_target("opencl", run_seeds);
    with_target("vulkan", run_seeds);
}

// ---- by hand ------------------------------------------------------------------------------------

// Number of kernels of a function that the callback builds.
static uint32_t kernels_of(void (*make)(builder *b), berth_arena *arena, const char **out_problem) {
    builder b = {.module = berth_module_create(arena, "fusion"), .random = 1};
    b.function = berth_graph_create(b.module, "primitive", 0);
    make(&b);
    *out_problem = b.failure ? berth_status_message(b.failure)
                             : compare_function(b.module, b.function, NULL, NULL, 3, 2e-6, arena);
    berth_func_id lowered = BERTH_NONE;
    berth_status status = berth_lower_function(b.module, b.function, &lowered);
    cr_assert_null(status);
    const berth_tfn *fn = berth_tfn_get(b.module, lowered);
    return fn->stmts.data[fn->body].count;
}

static void conv_residual_relu(builder *b) {
    int64_t x[4] = {1, 3, 5, 5};
    int64_t w[4] = {4, 3, 3, 3};
    int64_t y[4] = {1, 4, 3, 3};
    berth_value_id inputs[3] = {param(b, 4, x), param(b, 4, w), param(b, 1, w)};
    berth_value_id sum[2] = {apply(b, BERTH_OP_CONV, inputs, 3), param(b, 4, y)};
    berth_value_id value = apply(b, BERTH_OP_ADD, sum, 2);
    value = apply(b, BERTH_OP_RELU, &value, 1);
    berth_graph_set_results(b->module, b->function, &value, 1);
}

static void softmax_of_product(builder *b) {
    int64_t dims[2] = {5, 5};
    berth_value_id inputs[2] = {param(b, 2, dims), param(b, 2, dims)};
    berth_value_id product = apply(b, BERTH_OP_MATMUL, inputs, 2);
    berth_value_id value = apply(b, BERTH_OP_SOFTMAX, &product, 1);
    berth_graph_set_results(b->module, b->function, &value, 1);
}

static void value_and_epilogue(builder *b) {
    int64_t dims[2] = {5, 5};
    berth_value_id inputs[2] = {param(b, 2, dims), param(b, 2, dims)};
    berth_value_id product = apply(b, BERTH_OP_MATMUL, inputs, 2);
    berth_value_id results[3] = {product, apply(b, BERTH_OP_RELU, &product, 1), product};
    berth_graph_set_results(b->module, b->function, results, 3);
}

static void parameter_as_result(builder *b) {
    int64_t dims[2] = {2, 3};
    berth_value_id results[2] = {param(b, 2, dims), BERTH_NONE};
    results[1] = apply(b, BERTH_OP_NEG, &results[0], 1);
    berth_graph_set_results(b->module, b->function, results, 2);
}

// relu(softmax(tanh(q k^T) + mask) v): queries and keys that are no whole blocks.
static void attend(builder *b, int64_t queries, int64_t keys) {
    int64_t q[4] = {2, 3, queries, 12}, k[4] = {2, 1, keys, 12}, v[4] = {2, 1, keys, 9};
    int64_t mask[4] = {2, 3, queries, keys}, perm[4] = {0, 1, 3, 2};
    berth_value_id moved = param(b, 4, k);
    berth_value_id inputs[2] = {param(b, 4, q),
                                apply_ints(b, BERTH_OP_TRANSPOSE, &moved, 1, "perm", perm, 4)};
    berth_value_id scores = apply(b, BERTH_OP_MATMUL, inputs, 2);
    inputs[1] = apply(b, BERTH_OP_TANH, &scores, 1);
    inputs[0] = param(b, 4, mask);
    inputs[0] = apply(b, BERTH_OP_ADD, inputs, 2);
    inputs[0] = apply(b, BERTH_OP_SOFTMAX, inputs, 1);
    inputs[1] = param(b, 4, v);
    inputs[0] = apply(b, BERTH_OP_MATMUL, inputs, 2);
    inputs[0] = apply(b, BERTH_OP_RELU, inputs, 1);
    berth_graph_set_results(b->module, b->function, inputs, 1);
}

static void attention_of_a_row(builder *b) {
    attend(b, 1, 600);
}

static void attention_of_rows(builder *b) {
    attend(b, 21, 150);
}

// The weights are a result, too: they are made before.
static void attention_that_shows_its_weights(builder *b) {
    int64_t dims[2] = {5, 5};
    berth_value_id inputs[2] = {param(b, 2, dims), param(b, 2, dims)};
    berth_value_id product = apply(b, BERTH_OP_MATMUL, inputs, 2);
    inputs[0] = apply(b, BERTH_OP_SOFTMAX, &product, 1);
    berth_value_id results[2] = {inputs[0], apply(b, BERTH_OP_MATMUL, inputs, 2)};
    berth_graph_set_results(b->module, b->function, results, 2);
}

// On devices with work-groups and without.
static void check_attention(const berth_target *target) {
    void (*const makes[])(builder *) = {attention_of_a_row, attention_of_rows};
    for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); ++i) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        builder b = {.module = berth_module_create(arena, "fusion"), .random = 1};
        b.function = berth_graph_create(b.module, "primitive", 0);
        makes[i](&b);
        cr_assert_null(b.failure);
        const char *problem = compare_function(b.module, b.function, NULL, target, 5, 2e-6, arena);
        cr_expect_null(problem, "%zu: %s", i, problem);
        berth_arena_destroy(arena);
    }
}

Test(lower_fusion, attention_in_one_kernel) {
    with_target("cpu", check_attention);
    with_target("opencl -subgroup_size=32", check_attention);
    with_target("vulkan -features=subgroup_arithmetic", check_attention);
    with_target("cuda -arch=sm_80", check_attention);
}

Test(lower_fusion, kernel_counts) {
    static const struct {
        const char *name;
        void (*make)(builder *b);
        uint32_t kernels;
    } rows[] = {{"conv, residual, relu", conv_residual_relu, 1},
                {"softmax of a product", softmax_of_product, 2},
                {"value and epilogue", value_and_epilogue, 1},
                {"attention of a row", attention_of_a_row, 1},
                {"attention of rows", attention_of_rows, 1},
                {"attention that shows its weights", attention_that_shows_its_weights, 3},
                {"parameter as a result", parameter_as_result, 2}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_arena *arena = NULL;
        const char *problem = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        cr_expect_eq(kernels_of(rows[i].make, arena, &problem), rows[i].kernels, "%s",
                     rows[i].name);
        cr_expect_null(problem, "%s: %s", rows[i].name, problem);
        berth_arena_destroy(arena);
    }
}

// ---- elementwise operations in front of products ------------------------------------------------

static void set_layout_of(builder *b, berth_value_id value, const char *tag) {
    const berth_type type = *type_of_value(b, value);
    berth_graph_get(b->module, b->function)->values.data[value].type = berth_type_tensor_layout(
        b->module, type.dtype, type.rank, type.dims, berth_module_intern(b->module, tag));
}

// relu(x * scale + shift), per channel
static berth_value_id normalised(builder *b, berth_value_id x) {
    int64_t dims[4] = {1, type_of_value(b, x)->dims[1], 1, 1};
    berth_value_id inputs[2] = {x, param(b, 4, dims)};
    inputs[0] = apply(b, BERTH_OP_MUL, inputs, 2);
    inputs[1] = param(b, 4, dims);
    inputs[0] = apply(b, BERTH_OP_ADD, inputs, 2);
    return apply(b, BERTH_OP_RELU, inputs, 1);
}

// In channel blocks, as on processor cores: 30 positions are tiles of rows and a rest, 40 outputs
// are two and a half tiles of columns.
static void pointwise_conv_blocked(builder *b) {
    int64_t x[4] = {2, 24, 5, 6};
    int64_t w[4] = {40, 24, 1, 1};
    berth_value_id inputs[2] = {param(b, 4, x), param(b, 4, w)};
    set_layout_of(b, inputs[0], "aBcd8b");
    set_layout_of(b, inputs[1], "ABcd8b16a");
    inputs[0] = normalised(b, inputs[0]);
    berth_value_id y = apply(b, BERTH_OP_CONV, inputs, 2);
    set_layout_of(b, y, "aBcd8b");
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void window_conv_blocked(builder *b) {
    int64_t x[4] = {1, 16, 9, 8};
    int64_t w[4] = {32, 16, 3, 3};
    berth_value_id inputs[2] = {param(b, 4, x), param(b, 4, w)};
    set_layout_of(b, inputs[0], "aBcd8b");
    set_layout_of(b, inputs[1], "ABcd8b16a");
    inputs[0] = normalised(b, inputs[0]);
    berth_value_id y = apply(b, BERTH_OP_CONV, inputs, 2);
    set_layout_of(b, y, "aBcd8b");
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void conv_row_major(builder *b) {
    int64_t x[4] = {1, 6, 9, 10};
    int64_t w[4] = {33, 6, 3, 3};
    int64_t pads[4] = {1, 0, 1, 1};
    berth_value_id inputs[2] = {param(b, 4, x), param(b, 4, w)};
    inputs[0] = normalised(b, inputs[0]);
    berth_value_id y = apply_ints(b, BERTH_OP_CONV, inputs, 2, "pads", pads, 4);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void product_of(builder *b, berth_op_kind function, int64_t columns) {
    int64_t x[2] = {37, 50};
    int64_t w[2] = {50, columns};
    berth_value_id inputs[2] = {param(b, 2, x), param(b, 2, x)};
    inputs[0] = apply(b, BERTH_OP_ADD, inputs, 2);
    inputs[0] = apply(b, function, inputs, 1);
    inputs[1] = param(b, 2, w);
    set_layout_of(b, inputs[1], "Ba16b");
    berth_value_id y = apply(b, BERTH_OP_MATMUL, inputs, 2);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void product_of_sum(builder *b) {
    product_of(b, BERTH_OP_TANH, 72);
}

// One tile of columns reads each element once, number by number: a panel pays for functions alone.
static void one_tile_of_functions(builder *b) {
    product_of(b, BERTH_OP_ERF, 16);
}

static void one_tile_of_sums(builder *b) {
    product_of(b, BERTH_OP_RELU, 16);
}

static void winograd_of_relu(builder *b) {
    int64_t x[4] = {1, 8, 7, 9};
    int64_t pads[4] = {1, 1, 1, 1};
    berth_value_id value = param(b, 4, x);
    set_layout_of(b, value, "aBcd8b");
    value = normalised(b, value);
    berth_op_id op = add_op(b, BERTH_OP_WINOGRAD_INPUT, &value, 1);
    berth_attrs *attrs = &berth_graph_get(b->module, b->function)->ops.data[op].attrs;
    berth_attrs_set_ints(b->module, attrs, "pads", pads, 4);
    berth_attrs_set_int(b->module, attrs, "tile", 4);
    berth_value_id y = finish(b, op);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static const struct {
    const char *name;
    void (*make)(builder *b);
    bool panel;  // on processor cores
} operand_rows[] = {{"1 x 1 convolution in blocks", pointwise_conv_blocked, true},
                    {"3 x 3 convolution in blocks", window_conv_blocked, true},
                    {"3 x 3 convolution, row-major", conv_row_major, false},
                    {"product of a sum", product_of_sum, true},
                    {"Winograd transform", winograd_of_relu, false}};

static bool has_panel(const builder *b, const berth_target *target) {
    berth_func_id lowered = BERTH_NONE;
    cr_assert_null(berth_lower_function(b->module, b->function, &lowered));
    berth_tfn *fn = berth_tfn_get(b->module, lowered);
    cr_assert_null(berth_schedule_apply(fn, target));
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        if (strcmp(berth_module_str(b->module, fn->bufs.data[i].name), "panel") == 0) return true;
    return false;
}

static void check_panel(const berth_target *target, const char *name, void (*make)(builder *b),
                        bool panel) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    builder b = {.module = berth_module_create(arena, "fusion"), .random = 1};
    b.function = berth_graph_create(b.module, "primitive", 0);
    make(&b);
    cr_assert_null(b.failure, "%s: %s", name, berth_status_message(b.failure));
    const char *problem = compare_function(b.module, b.function, NULL, target, 5, 2e-5, arena);
    cr_expect_null(problem, "%s: %s", name, problem);
    cr_expect_eq(has_panel(&b, target), panel, "%s: panel", name);
    berth_arena_destroy(arena);
}

static void run_operands(const berth_target *target) {
    bool cores = target->kind == BERTH_DEVICE_CPU || target->subgroup_size == 1;
    for (size_t i = 0; i < sizeof(operand_rows) / sizeof(operand_rows[0]); ++i)
        check_panel(target, operand_rows[i].name, operand_rows[i].make,
                    cores && operand_rows[i].panel);
}

static void run_one_tile(const berth_target *target) {
    check_panel(target, "functions in front of one tile", one_tile_of_functions, true);
    check_panel(target, "sums in front of one tile", one_tile_of_sums, false);
}

Test(lower_fusion, functions_of_an_operand_are_computed_in_vectors) {
    with_target("cpu -vector_bits=256", run_one_tile);
}

Test(lower_fusion, operands_of_products) {
    with_target("cpu", run_operands);
    with_target("opencl", run_operands);
    with_target("opencl -subgroup_size=32", run_operands);
    with_target("vulkan", run_operands);
}

// ---- borders ------------------------------------------------------------------------------------

// The value in a border of `amounts` (begins of all dimensions, then ends), filled with `fill`.
static berth_value_id bordered(builder *b, berth_value_id x, const int64_t *amounts, float fill) {
    berth_tensor number = berth_tensor_create(b->module->arena, BERTH_DTYPE_F32, 0, NULL);
    *(float *)number.data = fill;
    berth_str_id layout = type_of_value(b, x)->layout;
    berth_value_id inputs[3] = {x, shape_constant(b, 2 * type_of_value(b, x)->rank, amounts),
                                berth_graph_constant(b->module, b->function, 0, &number, 0)};
    berth_value_id y = apply(b, BERTH_OP_PAD, inputs, 3);
    set_layout_of(b, y, berth_module_str(b->module, layout));
    return y;
}

// 40 channels are no whole blocks of 16: the border keeps the padding of the last block zero.
static berth_value_id blocked_relu(builder *b, const char *tag) {
    int64_t x[4] = {2, 24, 9, 15};
    int64_t w[4] = {40, 24, 3, 3};
    berth_value_id inputs[3] = {param(b, 4, x), param(b, 4, w), param(b, 1, w)};
    set_layout_of(b, inputs[0], "aBcd8b");
    set_layout_of(b, inputs[1], "ABcd8b16a");
    berth_value_id y = apply(b, BERTH_OP_CONV, inputs, 3);
    set_layout_of(b, y, tag);
    y = apply(b, BERTH_OP_RELU, &y, 1);
    set_layout_of(b, y, tag);
    return y;
}

static void border_around(builder *b) {
    static const int64_t amounts[] = {0, 0, 1, 1, 0, 0, 1, 1};
    berth_value_id y = bordered(b, blocked_relu(b, "aBcd16b"), amounts, 0);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void border_uneven(builder *b) {
    static const int64_t amounts[] = {0, 0, 0, 2, 0, 0, 3, 1};
    berth_value_id y = bordered(b, blocked_relu(b, "aBcd8b"), amounts, -3);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void border_row_major(builder *b) {
    static const int64_t amounts[] = {0, 2, 1, 0, 0, 1, 1, 0};
    int64_t x[4] = {1, 6, 9, 10};
    int64_t w[4] = {33, 6, 3, 3};
    berth_value_id inputs[2] = {param(b, 4, x), param(b, 4, w)};
    berth_value_id y = bordered(b, apply(b, BERTH_OP_CONV, inputs, 2), amounts, 1);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void border_of_transposed(builder *b) {
    static const int64_t amounts[] = {0, 0, 1, 0, 0, 0, 0, 2};
    int64_t x[4] = {1, 6, 5, 4};
    int64_t w[4] = {6, 8, 3, 3};
    int64_t strides[2] = {2, 2};
    berth_value_id inputs[2] = {param(b, 4, x), param(b, 4, w)};
    berth_value_id y = apply_ints(b, BERTH_OP_CONV_TRANSPOSE, inputs, 2, "strides", strides, 2);
    y = bordered(b, y, amounts, 0);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

// All of Winograd in one function, in bands of two rows of tiles; the last row and column of tiles
// are no whole ones. 40 channels are no whole blocks of 16.
static void winograd_in_bands_of(builder *b, int64_t m, int64_t height) {
    static const int64_t amounts[] = {0, 0, 1, 1, 0, 0, 1, 1};
    int64_t x[4] = {2, 16, height, 11};
    int64_t w[3] = {(m + 2) * (m + 2), 16, 40};
    int64_t pads[4] = {1, 1, 1, 1};
    int64_t shape[4] = {2, 40, height, 11};
    berth_value_id inputs[3] = {param(b, 4, x), param(b, 3, w), param(b, 1, &w[2])};
    set_layout_of(b, inputs[0], "aBcd16b");
    set_layout_of(b, inputs[1], "aCb16c");
    inputs[0] = apply(b, BERTH_OP_RELU, inputs, 1);
    set_layout_of(b, inputs[0], "aBcd16b");
    berth_op_id op = add_op(b, BERTH_OP_WINOGRAD_CONV, inputs, 3);
    berth_attrs *attrs = &berth_graph_get(b->module, b->function)->ops.data[op].attrs;
    berth_attrs_set_ints(b->module, attrs, "pads", pads, 4);
    berth_attrs_set_ints(b->module, attrs, "output_shape", shape, 4);
    berth_attrs_set_int(b->module, attrs, "tile", m);
    berth_attrs_set_int(b->module, attrs, "band", 2);
    berth_value_id y = finish(b, op);
    set_layout_of(b, y, "aBcd16b");
    y = bordered(b, y, amounts, 0);
    berth_graph_set_results(b->module, b->function, &y, 1);
}

static void winograd_small_tiles(builder *b) {
    winograd_in_bands_of(b, 2, 11);
}

static void winograd_large_tiles(builder *b) {
    winograd_in_bands_of(b, 4, 14);
}

// What is inside the border is stored there at once: no buffer holds it without.
static const struct {
    const char *name;
    void (*make)(builder *b);
    double tolerance;  // the outputs of large tiles are sums of up to 64 times the points
} border_rows[] = {{"one around", border_around, 2e-5},
                   {"uneven, not zero", border_uneven, 2e-5},
                   {"row-major, channels too", border_row_major, 2e-5},
                   {"several nests", border_of_transposed, 2e-5},
                   {"Winograd in bands", winograd_small_tiles, 2e-5},
                   {"Winograd in bands, large tiles", winograd_large_tiles, 1e-3}};

static uint32_t workspaces_of(const builder *b) {
    berth_func_id lowered = BERTH_NONE;
    cr_assert_null(berth_lower_function(b->module, b->function, &lowered));
    const berth_tfn *fn = berth_tfn_get(b->module, lowered);
    uint32_t count = 0;
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        count += fn->bufs.data[i].scope == BERTH_SCOPE_WORKSPACE;
    return count;
}

static void run_borders(const berth_target *target) {
    for (size_t i = 0; i < sizeof(border_rows) / sizeof(border_rows[0]); ++i) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        builder b = {.module = berth_module_create(arena, "fusion"), .random = 1};
        b.function = berth_graph_create(b.module, "primitive", 0);
        border_rows[i].make(&b);
        cr_assert_null(b.failure, "%s: %s", border_rows[i].name, berth_status_message(b.failure));
        const char *problem = compare_function(b.module, b.function, NULL, target, 5,
                                               border_rows[i].tolerance, arena);
        cr_expect_null(problem, "%s: %s", border_rows[i].name, problem);
        cr_expect_eq(workspaces_of(&b), 0, "%s: a copy", border_rows[i].name);
        berth_arena_destroy(arena);
    }
}

Test(lower_fusion, borders) {
    run_borders(NULL);
    with_target("cpu", run_borders);
    with_target("opencl", run_borders);
    with_target("opencl -subgroup_size=32", run_borders);
    with_target("vulkan", run_borders);
}
