// Products in parts on several devices (passes/tensor_parallel.h): the interpreter finds the same results
// before and after, each device holds its share of the weights, and what is sent is what it has to be.
#include <math.h>
#include <stdio.h>

#include "compiler/compile.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/tensor_parallel.h"
#include "ir/eval.h"
#include "ir/infer.h"
#include "tests/check.h"

typedef struct maker {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t state;
} maker;

static maker begin(void) {
    maker m = {.state = 88172645463325252u};
    assert_ok(berth_arena_create(berth_allocator_system(), &m.arena));
    m.module = berth_module_create(m.arena, "m");
    m.main = berth_graph_create(m.module, "main", 0);
    return m;
}

// xorshift64: Marsaglia 2003.
static int64_t pick(maker *m, int64_t limit) {
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return (int64_t)(m->state >> 33) % limit;
}

static void fill(maker *m, berth_tensor *tensor) {
    bool is_float = berth_dtype_is_float(tensor->dtype);
    for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i) {
        if (is_float)
            ((float *)tensor->data)[i] = (float)(pick(m, 2001) - 1000) / 8000;
        else
            berth_tensor_set_i64(tensor, i, pick(m, 8));
    }
}

static berth_value_id weights(maker *m, berth_dtype dtype, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(m->arena, dtype, rank, dims);
    fill(m, &tensor);
    return berth_graph_constant(m->module, m->main, 0, &tensor, 0);
}

static berth_value_id matrix(maker *m, int64_t rows, int64_t columns) {
    return weights(m, BERTH_DTYPE_F32, 2, (int64_t[]){rows, columns});
}

static berth_value_id list(maker *m, int64_t count, const int64_t *values) {
    berth_tensor tensor = berth_tensor_create(m->arena, BERTH_DTYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, values[i]);
    return berth_graph_constant(m->module, m->main, 0, &tensor, 0);
}

static berth_value_id param(maker *m, const char *name, berth_dtype dtype, int rank,
                            const int64_t *dims) {
    return berth_graph_add_param(m->module, m->main, name,
                                 berth_type_tensor(m->module, dtype, rank, dims));
}

static berth_value_id op(maker *m, berth_op_kind kind, uint32_t count,
                         const berth_value_id *inputs) {
    return berth_graph_op1(m->module, m->main, kind, inputs, count, 0);
}

static berth_value_id op2(maker *m, berth_op_kind kind, berth_value_id a, berth_value_id b) {
    return op(m, kind, 2, (berth_value_id[]){a, b});
}

static berth_attrs *attrs_of(maker *m, berth_value_id value) {
    berth_graph *graph = berth_graph_get(m->module, m->main);
    return &graph->ops.data[graph->values.data[value].op].attrs;
}

static berth_value_id transpose(maker *m, berth_value_id x, const int64_t *perm) {
    berth_value_id y = op(m, BERTH_OP_TRANSPOSE, 1, &x);
    berth_attrs_set_ints(m->module, attrs_of(m, y), "perm", perm, 4);
    return y;
}

// ---- models -------------------------------------------------------------------------------------

// Two products with what is between them, a residual, and a softmax over all columns.
static void make_mlp(maker *m) {
    berth_value_id x = param(m, "x", BERTH_DTYPE_F32, 2, (int64_t[]){5, 72});
    berth_value_id h = op2(m, BERTH_OP_MATMUL, x, matrix(m, 72, 144));
    h = op2(m, BERTH_OP_ADD, h, weights(m, BERTH_DTYPE_F32, 1, (int64_t[]){144}));
    h = op(m, BERTH_OP_GELU, 1, &h);
    h = op2(m, BERTH_OP_MATMUL, h, matrix(m, 144, 72));
    h = op2(m, BERTH_OP_ADD, h, x);
    h = op(m, BERTH_OP_SOFTMAX, 1, &h);
    berth_graph_set_results(m->module, m->main, &h, 1);
}

// Extents that 2, 3 and 4 do not divide: two products with what is between them; columns of 67, and of 1067, so that all parts
// but the last are whole tiles. The last product is by columns.
static void make_uneven(maker *m) {
    berth_value_id x = param(m, "x", BERTH_DTYPE_F32, 2, (int64_t[]){5, 67});
    berth_value_id h = op2(m, BERTH_OP_MATMUL, x, matrix(m, 67, 1067));
    h = op2(m, BERTH_OP_ADD, h, weights(m, BERTH_DTYPE_F32, 1, (int64_t[]){1067}));
    h = op(m, BERTH_OP_GELU, 1, &h);
    h = op2(m, BERTH_OP_MATMUL, h, matrix(m, 1067, 67));
    h = op2(m, BERTH_OP_ADD, h, x);
    h = op2(m, BERTH_OP_MATMUL, h, matrix(m, 67, 67));
    berth_graph_set_results(m->module, m->main, &h, 1);
}

// Attention of 4 heads, with a cache of keys that is a parameter and a result.
static void make_attention(maker *m) {
    enum { rows = 6, past = 3, heads = 4, width = 16, all = heads * width };
    static const int64_t forth[] = {0, 2, 1, 3}, turned[] = {0, 1, 3, 2};
    berth_value_id x = param(m, "x", BERTH_DTYPE_F32, 3, (int64_t[]){1, rows, all}), part[3];
    berth_value_id cache =
        param(m, "cache", BERTH_DTYPE_F32, 4, (int64_t[]){1, heads, past, width});
    for (int i = 0; i < 3; ++i) {
        part[i] = op2(m, BERTH_OP_MATMUL, x, matrix(m, all, all));
        part[i] = op2(m, BERTH_OP_RESHAPE, part[i], list(m, 4, (int64_t[]){1, rows, heads, width}));
        part[i] = transpose(m, part[i], forth);
        if (i == 0) continue;
        part[i] = op2(m, BERTH_OP_CONCAT, cache, part[i]);
        berth_attrs_set_int(m->module, attrs_of(m, part[i]), "axis", 2);
    }
    berth_value_id scores = op2(m, BERTH_OP_MATMUL, part[0], transpose(m, part[1], turned));
    scores = op(m, BERTH_OP_SOFTMAX, 1, &scores);
    berth_value_id y = transpose(m, op2(m, BERTH_OP_MATMUL, scores, part[2]), forth);
    y = op2(m, BERTH_OP_RESHAPE, y, list(m, 3, (int64_t[]){1, rows, all}));
    y = op2(m, BERTH_OP_MATMUL, y, matrix(m, all, all));
    berth_graph_set_results(m->module, m->main, (berth_value_id[]){y, part[1]}, 2);
}

// The same without a cache, its queries, keys and values in one product.
static void make_joined(maker *m) {
    enum { rows = 6, heads = 4, width = 32, all = heads * width };
    static const int64_t forth[] = {0, 2, 1, 3}, turned[] = {0, 1, 3, 2};
    int64_t joined = 3 * all;
    berth_value_id x = param(m, "x", BERTH_DTYPE_F32, 3, (int64_t[]){1, rows, all});
    berth_value_id y = op2(m, BERTH_OP_MATMUL, x, matrix(m, all, joined));
    y = op2(m, BERTH_OP_ADD, y, weights(m, BERTH_DTYPE_F32, 1, &joined));
    berth_op_id split =
        berth_graph_add_op(m->module, m->main, 0, BERTH_OP_SPLIT,
                           (berth_value_id[]){y, list(m, 3, (int64_t[]){all, all, all})}, 2, 3, 0);
    berth_attrs_set_int(m->module, &berth_graph_get(m->module, m->main)->ops.data[split].attrs,
                        "axis", -1);
    berth_value_id part[3];
    for (int i = 0; i < 3; ++i) {
        part[i] = berth_graph_get(m->module, m->main)->ops.data[split].outputs[i];
        part[i] = op2(m, BERTH_OP_RESHAPE, part[i], list(m, 4, (int64_t[]){1, rows, heads, width}));
        part[i] = transpose(m, part[i], forth);
    }
    berth_value_id scores = op2(m, BERTH_OP_MATMUL, part[0], transpose(m, part[1], turned));
    scores = op(m, BERTH_OP_SOFTMAX, 1, &scores);
    y = transpose(m, op2(m, BERTH_OP_MATMUL, scores, part[2]), forth);
    y = op2(m, BERTH_OP_RESHAPE, y, list(m, 3, (int64_t[]){1, rows, all}));
    y = op2(m, BERTH_OP_MATMUL, y, matrix(m, all, all));
    berth_graph_set_results(m->module, m->main, &y, 1);
}

// Rows of a table, then one value for several products.
static void make_embedding(maker *m) {
    berth_value_id ids = param(m, "ids", BERTH_DTYPE_I64, 2, (int64_t[]){1, 7});
    berth_value_id x = op2(m, BERTH_OP_GATHER, matrix(m, 60, 96), ids);
    berth_value_id a = op2(m, BERTH_OP_MATMUL, x, matrix(m, 96, 96));
    berth_value_id b = op2(m, BERTH_OP_MATMUL, x, matrix(m, 96, 96));
    b = op(m, BERTH_OP_SIGMOID, 1, &b);
    berth_value_id y = op2(m, BERTH_OP_MATMUL, op2(m, BERTH_OP_MUL, a, b), matrix(m, 96, 96));
    berth_graph_set_results(m->module, m->main, (berth_value_id[]){y, x}, 2);
}

// Products of 8-bit numbers, by columns and by rows, with zero points for each column.
static void make_integers(maker *m) {
    int64_t inner = 144;
    berth_value_id zero = weights(m, BERTH_DTYPE_U8, 0, NULL);
    berth_value_id h[4] = {param(m, "x", BERTH_DTYPE_U8, 2, (int64_t[]){5, 120}),
                           weights(m, BERTH_DTYPE_I8, 2, (int64_t[]){120, inner}), zero,
                           weights(m, BERTH_DTYPE_I8, 1, &inner)};
    berth_value_id y = op(m, BERTH_OP_MATMUL_INTEGER, 4, h);
    y = op2(m, BERTH_OP_ADD, y, weights(m, BERTH_DTYPE_I32, 1, &inner));
    y = op(m, BERTH_OP_CAST, 1, &y);
    berth_attrs_set(m->module, attrs_of(m, y), "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = BERTH_DTYPE_U8});
    berth_value_id next[3] = {y, weights(m, BERTH_DTYPE_I8, 2, (int64_t[]){inner, 120}), zero};
    y = op(m, BERTH_OP_MATMUL_INTEGER, 3, next);
    berth_graph_set_results(m->module, m->main, &y, 1);
}

// A block of a network with inverted residuals.
static void convolve(maker *m, int64_t few, int64_t many) {
    berth_value_id x = param(m, "x", BERTH_DTYPE_F32, 4, (int64_t[]){1, few, 5, 5});
    berth_value_id wide = weights(m, BERTH_DTYPE_F32, 4, (int64_t[]){many, few, 1, 1});
    berth_value_id bias = weights(m, BERTH_DTYPE_F32, 1, &many);
    berth_value_id depthwise = weights(m, BERTH_DTYPE_F32, 4, (int64_t[]){many, 1, 3, 3});
    berth_value_id narrow = weights(m, BERTH_DTYPE_F32, 4, (int64_t[]){few, many, 1, 1});
    berth_value_id y = op(m, BERTH_OP_CONV, 3, (berth_value_id[]){x, wide, bias});
    y = op(m, BERTH_OP_RELU, 1, &y);
    y = op(m, BERTH_OP_CONV, 3, (berth_value_id[]){y, depthwise, bias});
    berth_attrs_set_int(m->module, attrs_of(m, y), "group", many);
    berth_attrs_set_ints(m->module, attrs_of(m, y), "pads", (int64_t[]){1, 1, 1, 1}, 4);
    y = op2(m, BERTH_OP_CONV, y, narrow);
    y = op2(m, BERTH_OP_ADD, y, x);
    berth_graph_set_results(m->module, m->main, &y, 1);
}

static void make_convolutions(maker *m) {
    convolve(m, 48, 96);
}

static void make_uneven_convolutions(maker *m) {
    convolve(m, 53, 97);
}

// ---- checks -------------------------------------------------------------------------------------

typedef struct results {
    berth_tensor tensors[2];
    uint32_t count;
} results;

static results eval(maker *m) {
    const berth_graph *graph = berth_graph_get(m->module, m->main);
    const berth_region *root = &graph->regions.data[0];
    results r = {.count = root->results.count};
    berth_tensor inputs[2];
    uint64_t state = m->state;
    m->state = 42;  // the same inputs every time
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_type *type =
            berth_type_get(m->module, graph->values.data[root->params.data[i]].type);
        inputs[i] = berth_tensor_create(m->arena, type->dtype, type->rank, type->dims);
        fill(m, &inputs[i]);
    }
    m->state = state;
    assert_ok(berth_eval_function(m->module, m->main, inputs, root->params.count, r.tensors,
                                  r.count, m->arena));
    return r;
}

static void compare(const results *a, const results *b) {
    cr_assert_eq(a->count, b->count);
    for (uint32_t r = 0; r < a->count; ++r) {
        const berth_tensor *x = &a->tensors[r], *y = &b->tensors[r];
        cr_assert_eq(berth_tensor_size_bytes(x), berth_tensor_size_bytes(y));
        if (!berth_dtype_is_float(x->dtype)) {
            cr_assert_arr_eq(x->data, y->data, berth_tensor_size_bytes(x));
            continue;
        }
        for (int64_t i = 0; i < berth_tensor_element_count(x); ++i) {
            float p = ((const float *)x->data)[i], q = ((const float *)y->data)[i];
            cr_assert(fabsf(p - q) <= 1e-5f * (1 + fabsf(p)), "result %u, element %d: %g, %g", r,
                      (int)i, p, q);
        }
    }
}

static uint32_t count_ops(const maker *m, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(m->module, m->main);
    uint32_t found = 0;
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i)
        found += graph->ops.data[graph->regions.data[0].ops.data[i]].kind == kind;
    return found;
}

static const struct {
    const char *name;
    void (*make)(maker *m);
    uint32_t cut;         // products in parts
    uint64_t part_bytes;  // of all weights of these
    uint32_t gathers[5];  // values that are put together on a device, by the number of devices
} models[] = {
    {"mlp", make_mlp, 2, 2 * 72 * 144 * 4, {0, 0, 0, 0, 0}},
    // The result that is in parts; and with three devices, which 4 heads do not divide by, queries, keys and values on
    // each, and the result of the last product, which is then cut by columns.
    {"attention", make_attention, 4, 4 * 64 * 64 * 4, {0, 0, 1, 3 * 3 + 1, 1}},
    {"joined", make_joined, 4, 4 * 128 * 128 * 4, {0, 0, 0, 3 * 3 + 1, 0}},
    // Extents that no number of devices divides: see make_uneven.
    {"uneven", make_uneven, 3, (2 * 1067 + 67) * 67 * 4, {0, 0, 1, 1, 1}},
    {"uneven convolutions", make_uneven_convolutions, 3, 2 * 53 * 97 * 4, {0, 0, 0, 0, 0}},
    // The rows of the table, on all devices.
    {"embedding", make_embedding, 4, (60 + 3 * 96) * 96 * 4, {0, 0, 2, 3, 4}},
    {"integers", make_integers, 2, 2 * 120 * 144, {0, 0, 0, 0, 0}},
    {"convolutions", make_convolutions, 3, 2 * 48 * 96 * 4, {0, 0, 0, 0, 0}},
};
enum { model_count = sizeof(models) / sizeof(models[0]) };

static berth_multi_target *devices(maker *m, uint32_t count) {
    static const char *const texts[] = {"", "nvidia/t4", "nvidia/t4,nvidia/t4",
                                        "nvidia/t4,nvidia/t4,nvidia/t4",
                                        "nvidia/t4,nvidia/t4,nvidia/t4,nvidia/t4"};
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(m->arena, texts[count], NULL, &target));
    return target;
}

typedef struct pass_job {
    maker *m;
    void (*make)(maker *m);
    const berth_multi_target *target;
    uint32_t cut;
} pass_job;

static berth_status make_model(void *user) {
    pass_job *job = user;
    job->make(job->m);
    berth_graph *graph = berth_graph_get(job->m->module, job->m->main);
    for (uint32_t i = 0; i < graph->regions.data[0].results.count; ++i)
        graph->values.data[graph->regions.data[0].results.data[i]].name =
            berth_module_intern(job->m->module, i ? "z" : "y");
    BERTH_TRY(berth_infer_function(job->m->module, job->m->main));
    return berth_pass_fold(job->m->module, job->m->main, NULL);
}

static berth_status run_pass(void *user) {
    pass_job *job = user;
    return berth_pass_tensor_parallel(job->m->module, job->m->main, job->target, &job->cut);
}

TestSuite(tensor_parallel, .timeout = 120);

Test(tensor_parallel, gives_the_same_results) {
    for (uint32_t i = 0; i < model_count; ++i)
        for (uint32_t count = 1; count <= 4; ++count) {
            maker m = begin();
            pass_job job = {.m = &m, .make = models[i].make, .target = devices(&m, count)};
            assert_ok(berth_arena_try(m.arena, make_model, &job));
            results before = eval(&m);
            uint32_t gathers = count_ops(&m, BERTH_OP_CONCAT);
            assert_ok(berth_arena_try(m.arena, run_pass, &job));
            results after = eval(&m);
            compare(&before, &after);
            cr_assert_eq(job.cut, count > 1 ? models[i].cut : 0, "%s on %u: %u products cut",
                         models[i].name, count, job.cut);
            cr_assert_eq(count_ops(&m, BERTH_OP_CONCAT), gathers * count + models[i].gathers[count],
                         "%s on %u: %u concatenations", models[i].name, count,
                         count_ops(&m, BERTH_OP_CONCAT));
            berth_arena_destroy(m.arena);
        }
}

// Over slow links each of four devices adds up a quarter: a range of every device's term goes to each of
// them, and the four sums to all.
Test(tensor_parallel, adds_up_in_parts_where_links_are_slow) {
    enum { count = 4 };
    void (*makes[])(maker * m) = {make_mlp, make_integers};
    for (int i = 0; i < 2; ++i) {
        maker m = begin();
        berth_multi_target *target = NULL;
        const char *device = "nvidia/t4 -link_bandwidth_bytes_per_s=1e5";
        char text[512];
        snprintf(text, sizeof(text), "%s,%s,%s,%s", device, device, device, device);
        assert_ok(berth_target_parse(m.arena, text, NULL, &target));
        pass_job job = {.m = &m, .make = makes[i], .target = target};
        assert_ok(berth_arena_try(m.arena, make_model, &job));
        results before = eval(&m);
        assert_ok(berth_arena_try(m.arena, run_pass, &job));
        results after = eval(&m);
        compare(&before, &after);
        cr_assert_eq(count_ops(&m, BERTH_OP_SLICE), count * count);
        // The model's result is read on one device, where the softmax is computed or the sum is it.
        uint32_t joined = count_ops(&m, BERTH_OP_CONCAT);
        cr_assert(joined >= 1 && joined <= count, "%u sums are joined", joined);
        berth_arena_destroy(m.arena);
    }
}

// Weights of each device, and a plan that packages.
Test(tensor_parallel, each_device_holds_its_part) {
    for (uint32_t i = 0; i < model_count; ++i)
        for (uint32_t count = 2; count <= 4; count += 2) {
            maker m = begin();
            pass_job job = {.m = &m, .make = models[i].make, .target = devices(&m, count)};
            assert_ok(berth_arena_try(m.arena, make_model, &job));
            berth_compile_result result;
            const berth_compile_options options = {
                .target = job.target, .parallel = "tensor", .plan_only = true, .no_layouts = true};
            assert_ok(berth_compile(m.module, &options, &result));
            const berth_program *program = result.program;
            uint64_t held[8] = {0};
            for (uint32_t c = 0; c < program->constant_count; ++c) {
                const berth_program_tensor *t = &program->tensors[program->constants[c].tensor];
                held[program->pools[t->pool].device] += t->size_bytes;
            }
            uint64_t least = models[i].part_bytes / count;
            for (uint32_t d = 0; d < count; ++d)
                cr_assert(held[d] >= least - least / 16 && held[d] < least + least / 8 + 4096,
                          "%s on %u: device %u holds %llu bytes, a part is %llu", models[i].name,
                          count, d, (unsigned long long)held[d], (unsigned long long)least);
            berth_arena_destroy(m.arena);
        }
}

Test(tensor_parallel, needs_devices_that_are_alike) {
    static const char *const texts[] = {"cpu -arch=x86_64", "nvidia/t4",
                                        "nvidia/t4,nvidia/a100-80gb"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        maker m = begin();
        berth_multi_target *target = NULL;
        pass_job job = {.m = &m, .make = make_mlp};
        assert_ok(berth_target_parse(m.arena, texts[i], NULL, &target));
        assert_ok(berth_arena_try(m.arena, make_model, &job));
        berth_compile_result result;
        const berth_compile_options options = {
            .target = target, .parallel = "tensor", .plan_only = true};
        assert_fails(berth_compile(m.module, &options, &result), BERTH_INVALID_ARGUMENT,
                     "two devices that are alike");
        berth_arena_destroy(m.arena);
    }
}

// What a driver calls its devices does not tell them apart ("GPU 0", "GPU 1"); any figure does.
Test(tensor_parallel, names_of_products_do_not_count) {
    static const struct {
        const char *first, *second;
        uint32_t count;
    } cases[] = {{"\"model\": \"GPU 0\"", "\"model\": \"GPU 1, \\\"the other\\\"\"", 2},
                 {"\"model\": \"GPU 0\", \"l2_bytes\": 1048576",
                  "\"model\": \"GPU 0\", \"l2_bytes\": 2097152", 1},
                 {"\"model\": \"GPU 0\", \"arch\": \"sm_80\"",
                  "\"model\": \"GPU 1\", \"arch\": \"sm_90\"", 1},
                 {"\"arch\": \"sm_80\"", "\"model\": \"GPU 1\", \"arch\": \"sm_80\"", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        maker m = begin();
        berth_multi_target *target = NULL;
        const char *text = berth_arena_printf(
            m.arena,
            "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"cuda\", %s}}, "
            "{\"target\": {\"kind\": \"cuda\", %s}}]}",
            cases[i].first, cases[i].second);
        assert_ok(berth_target_parse(m.arena, text, NULL, &target));
        cr_expect_eq(berth_tensor_parallel_devices(target), cases[i].count, "%s", text);
        berth_arena_destroy(m.arena);
    }
}
