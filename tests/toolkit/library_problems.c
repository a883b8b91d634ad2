#include "tests/toolkit/library_problems.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "ir/infer.h"
#include "tests/check.h"
#include "tests/kernel_cache.h"

typedef struct problem {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t random;
    bool convolution, even;
    berth_dtype dtype;
} problem;

static int64_t below(problem *p, int64_t count) {
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(p->random >> 33) % count;
}

static berth_value_id constant(problem *p, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(p->arena, p->dtype, rank, dims);
    berth_tensor_fill_random(&tensor, p->random);
    return berth_graph_constant(p->module, p->main, 0, &tensor, 0);
}

static berth_value_id param(problem *p, const char *name, int rank, const int64_t *dims) {
    return berth_graph_add_param(p->module, p->main, name,
                                 berth_type_tensor(p->module, p->dtype, rank, dims));
}

static berth_value_id add(problem *p, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count, berth_attrs attrs) {
    berth_value_id result = berth_graph_op1(p->module, p->main, kind, inputs, count, 0);
    berth_graph *graph = berth_graph_get(p->module, p->main);
    graph->ops.data[graph->values.data[result].op].attrs = attrs;
    return result;
}

static berth_value_id build_product(problem *p) {
    int64_t rows = 1 + below(p, 70), depth = 1 + below(p, 90), columns = 1 + below(p, 70);
    int64_t batch = 1 + below(p, 5), heads = 1 + below(p, 3);
    int skip = (int)below(p, 3);  // of batch and heads
    bool gemm = skip == 2 && below(p, 2), shared = below(p, 2);
    bool ta = gemm && below(p, 2), tb = gemm && below(p, 2);
    int64_t a[] = {batch, heads, ta ? depth : rows, ta ? rows : depth};
    int64_t b[] = {batch, heads, tb ? columns : depth, tb ? depth : columns};
    berth_attrs attrs = {0};
    if (gemm) berth_attrs_set_int(p->module, &attrs, "transA", ta);
    if (gemm) berth_attrs_set_int(p->module, &attrs, "transB", tb);
    berth_value_id x = param(p, "a", 4 - skip, a + skip), w;
    if (shared)
        w = constant(p, 2, b + 2);
    else
        w = param(p, "b", 4 - skip, b + skip);
    berth_value_id y =
        add(p, gemm ? BERTH_OP_GEMM : BERTH_OP_MATMUL, (berth_value_id[]){x, w}, 2, attrs);
    if (below(p, 2))
        y = add(p, BERTH_OP_ADD, (berth_value_id[]){constant(p, 1, &columns), y}, 2,
                (berth_attrs){0});
    return y;
}

static berth_value_id convolution(problem *p, berth_value_id x, int64_t inputs, int64_t *outputs) {
    int64_t window = 1 + below(p, 3), pad = below(p, 2), dilation = 1 + below(p, 2);
    bool depthwise = inputs >= 8 && below(p, 3) == 0;
    if (depthwise) *outputs = inputs;
    int64_t groups = depthwise ? inputs : p->even && inputs % 2 == 0 ? 1 + below(p, 2) : 1;
    int64_t dims[] = {*outputs, inputs / groups, window, window};
    berth_attrs attrs = {0};
    berth_attrs_set_ints(p->module, &attrs, "kernel_shape", (int64_t[]){window, window}, 2);
    berth_attrs_set_ints(p->module, &attrs, "strides", (int64_t[]){1 + below(p, 2), 1}, 2);
    berth_attrs_set_ints(p->module, &attrs, "dilations", (int64_t[]){dilation, 1}, 2);
    berth_attrs_set_ints(p->module, &attrs, "pads",
                         (int64_t[]){pad, 1, p->even ? pad : 1, p->even ? 1 : pad}, 4);
    berth_attrs_set_int(p->module, &attrs, "group", groups);
    berth_value_id operands[] = {x, constant(p, 4, dims), BERTH_NONE};
    bool bias = below(p, 2);
    if (bias) operands[2] = constant(p, 1, outputs);
    return add(p, BERTH_OP_CONV, operands, bias ? 3 : 2, attrs);
}

// Two, so that one reads what the other wrote in blocks.
static berth_value_id build_convolutions(problem *p) {
    int64_t inputs = below(p, 3) ? 8 * (1 + below(p, 4)) : 1 + below(p, 4);
    int64_t middle = 8 * (1 + below(p, 5)), outputs = 8 * (1 + below(p, 5));
    int64_t dims[] = {1 + below(p, 4), inputs, 12 + below(p, 9), 12 + below(p, 9)};
    berth_value_id x = param(p, "x", 4, dims);
    berth_value_id y = convolution(p, x, inputs, &middle);
    if (below(p, 2)) y = add(p, BERTH_OP_RELU, &y, 1, (berth_attrs){0});
    return convolution(p, y, middle, &outputs);
}

static berth_status build(void *user) {
    problem *p = user;
    p->module = berth_module_create(p->arena, "problem");
    p->main = berth_graph_create(p->module, "main", 0);
    berth_value_id y = p->convolution ? build_convolutions(p) : build_product(p);
    if (below(p, 2)) {
        BERTH_TRY(berth_infer_function(p->module, p->main));
        berth_type_id type = berth_graph_get(p->module, p->main)->values.data[y].type;
        berth_value_id both[] = {berth_graph_add_param(p->module, p->main, "sum", type), y};
        y = add(p, BERTH_OP_ADD, both, 2, (berth_attrs){0});
    }
    if (below(p, 2)) y = add(p, BERTH_OP_RELU, &y, 1, (berth_attrs){0});
    berth_graph_get(p->module, p->main)->values.data[y].name = berth_module_intern(p->module, "y");
    berth_graph_set_results(p->module, p->main, &y, 1);
    return BERTH_OK;
}

static uint32_t count_dispatches(const berth_program *program) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->step_count; ++i)
        count += program->steps[i].kind == BERTH_STEP_DISPATCH;
    return count;
}

static uint32_t count_calls(const berth_program *program, const char *library) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->step_count; ++i)
        count += program->steps[i].op && strstr(program->steps[i].op, library) != NULL;
    return count;
}

// One run by `threads`; false where the library is not here.
static bool run(const berth_program *program, uint32_t threads, const berth_tensor *inputs,
                uint32_t count, berth_arena *arena, berth_tensor *out) {
    berth_session *session = NULL;
    berth_session_options options = {.thread_count = threads};
    berth_status status = berth_session_open(berth_allocator_system(), program, &options, &session);
    if (berth_status_code(status) == BERTH_UNAVAILABLE) {
        cr_expect(strstr(berth_status_message(status), "install "), "%s",
                  berth_status_message(status));
        berth_status_free(status);
        return false;
    }
    cr_assert(!status, "%s", berth_status_message(status));
    for (uint32_t i = 0; i < count; ++i)
        memcpy(berth_session_input(session, i)->data, inputs[i].data,
               berth_tensor_size_bytes(&inputs[i]));
    for (int i = 0; i < 2; ++i) assert_ok(berth_session_run(session, -1));
    const berth_tensor *y = berth_session_output(session, 0);
    *out = berth_tensor_create(arena, y->dtype, y->rank, y->dims);
    memcpy(out->data, y->data, berth_tensor_size_bytes(y));
    berth_session_close(session);
    return true;
}

static void compare(const berth_tensor *got, const berth_tensor *expected, double tolerance,
                    uint64_t seed) {
    double worst = 0, scale = 1;
    cr_assert(berth_tensor_same_shape(got, expected));
    for (int64_t i = 0; i < berth_tensor_element_count(expected); ++i) {
        double x = berth_tensor_get_f64(expected, i), y = berth_tensor_get_f64(got, i);
        scale = fmax(scale, fabs(x));
        worst = fmax(worst, isnan(y) ? INFINITY : fabs(x - y));
    }
    cr_expect(worst <= tolerance * scale, "problem %llu: %g of %g", (unsigned long long)seed, worst,
              scale);
}

// Expected: the interpreter's values; equal to the last bit for any number of threads.
static bool try_problem(const library_family *f, uint64_t seed, const char *folder) {
    problem p = {.random = seed, .convolution = f->convolution, .even = f->even, .dtype = f->dtype};
    assert_ok(berth_arena_create(berth_allocator_system(), &p.arena));
    assert_ok(berth_arena_try(p.arena, build, &p));
    const berth_graph *graph = berth_graph_get(p.module, p.main);
    const berth_region *root = &graph->regions.data[0];
    uint32_t count = root->params.count;
    berth_tensor inputs[3], expected, got[2];
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type *type =
            berth_type_get(p.module, graph->values.data[root->params.data[i]].type);
        inputs[i] = berth_tensor_create(p.arena, type->dtype, type->rank, type->dims);
        berth_tensor_fill_random(&inputs[i], seed + i);
    }
    assert_ok(berth_eval_function(p.module, p.main, inputs, count, &expected, 1, p.arena));
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(p.arena, f->target, NULL, &target));
    berth_compile_options options = {.target = target, .cache_folder = folder, .verify = true};
    berth_compile_result compiled;
    assert_ok(berth_compile(p.module, &options, &compiled));
    cr_expect_eq(count_calls(compiled.program, f->library), f->calls, "problem %llu",
                 (unsigned long long)seed);
    // Additions are part of the call: of a product nothing else is left.
    if (!f->convolution) cr_expect_eq(count_dispatches(compiled.program), f->calls);
    bool here = true;
    for (uint32_t i = 0; i < 2 && here; ++i)
        here = run(compiled.program, 1 + 2 * i, inputs, count, p.arena, &got[i]);
    if (here) compare(&got[0], &expected, f->tolerance, seed);
    if (here) cr_expect_arr_eq(got[0].data, got[1].data, berth_tensor_size_bytes(&got[0]));
    berth_arena_destroy(p.arena);
    return here;
}

void library_family_try(const library_family *f) {
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    bool here = true;
    for (int i = 0; i < f->problems && here; ++i)
        here = try_problem(f, 100 + (uint64_t)i, kernels.folder);
    kernel_cache_close(&kernels);
    if (here) return;
    printf("BERTH-SKIPPED 1: %s is not here (docs/libraries.md says what to install)\n",
           f->library);
    cr_skip_test("%s is not here", f->library);
}
