// Models that do not fit a budget run in patches that do, and compute the same.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/session.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/kernel_cache.h"
#include "toolkit/model.h"

enum { image = 64, channels = 16, value_bytes = 4 * channels * image * image };

static berth_value_id constant(berth_module *module, berth_func_id main, int rank,
                               const int64_t *dims, uint64_t seed) {
    berth_tensor tensor = berth_tensor_create(module->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&tensor, seed);
    return berth_graph_constant(module, main, 0, &tensor, 0);
}

static berth_value_id convolve(berth_module *module, berth_func_id main, berth_value_id x,
                               const int64_t dims[4], int64_t stride, const char *name) {
    const int64_t strides[] = {stride, stride}, pads[] = {1, 1, 1, 1};
    berth_value_id inputs[] = {x, constant(module, main, 4, dims, (uint64_t)dims[0] + 3)};
    berth_op_id op = berth_graph_add_op(module, main, 0, BERTH_OP_CONV, inputs, 2, 1, 0);
    berth_graph *graph = berth_graph_get(module, main);
    berth_attrs_set_ints(module, &graph->ops.data[op].attrs, "strides", strides, 2);
    berth_attrs_set_ints(module, &graph->ops.data[op].attrs, "pads", pads, 4);
    berth_value_id y = graph->ops.data[op].outputs[0];
    graph->values.data[y].name = berth_module_intern(module, name);
    return y;
}

// Two values of `value_bytes` between an input and an output that are small.
static berth_status build(void *user, berth_arena *arena, berth_module **out_module) {
    berth_module **kept = user;
    berth_module *module = berth_module_create(arena, "stages");
    berth_func_id main = berth_graph_create(module, "main", 0);
    berth_value_id x = berth_graph_add_param(
        module, main, "x",
        berth_type_tensor(module, BERTH_DTYPE_F32, 4, (int64_t[]){1, 1, image, image}));
    x = convolve(module, main, x, (int64_t[]){channels, 1, 3, 3}, 1, "a");
    x = convolve(module, main, x, (int64_t[]){channels, channels, 3, 3}, 1, "b");
    x = convolve(module, main, x, (int64_t[]){2, channels, 3, 3}, 2, "y");
    berth_graph_set_results(module, main, &x, 1);
    cr_assert(!kept || !*kept, "the model is read again");
    if (kept) *kept = module;
    *out_module = module;
    return BERTH_OK;
}

static berth_status load(const char *folder, const char *patches, uint64_t budget,
                         berth_model **out_model) {
    char text[64];
    snprintf(text, sizeof(text), "cpu=%llu", (unsigned long long)budget);
    berth_model_options options = {.target = "cpu"};
    options.target_options.budgets = budget ? text : NULL;
    options.compile.cache_folder = folder;
    options.compile.patches = patches;
    return berth_model_load_built(build, NULL, "stages", &options, out_model);
}

static void run(const berth_model *model, float *out, size_t count) {
    berth_session *session = NULL;
    static float values[image * image];
    const int64_t dims[] = {1, 1, image, image};
    for (int i = 0; i < image * image; ++i) values[i] = (float)(i % 97) / 97;
    berth_tensor x = {.dtype = BERTH_DTYPE_F32, .rank = 4, .data = values};
    memcpy(x.dims, dims, sizeof(dims));
    assert_ok(
        berth_session_open(berth_allocator_system(), berth_model_program(model), NULL, &session));
    assert_ok(berth_session_set_input(session, "x", &x));
    assert_ok(berth_session_run(session, -1));
    const berth_tensor *y = berth_session_output(session, 0);
    cr_assert_eq(berth_tensor_size_bytes(y), count * sizeof(*out));
    memcpy(out, y->data, count * sizeof(*out));
    berth_session_close(session);
}

static uint64_t workspace(const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == BERTH_POOL_WORKSPACE) bytes += program->pools[i].size_bytes;
    return bytes;
}

Test(fit_patches, what_does_not_fit_runs_in_patches, .timeout = 300) {
    enum { results = 2 * (image / 2) * (image / 2) };
    static float expected[results], got[results];
    // Less than the two values, with room for the constants and what kernels keep.
    const struct {
        const char *patches;
        uint64_t budget;
    } cases[] = {{NULL, value_bytes}, {"auto", value_bytes}, {"least", 0}, {"y=4", 0}};
    kernel_cache kernels;
    berth_model *whole = NULL;
    kernel_cache_open(&kernels);
    assert_ok(load(kernels.folder, NULL, 0, &whole));
    cr_assert_geq(workspace(whole), value_bytes);
    run(whole, expected, results);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_model *model = NULL;
        assert_ok(load(kernels.folder, cases[i].patches, cases[i].budget, &model));
        cr_expect_lt(workspace(model), workspace(whole), "case %zu", i);
        if (cases[i].budget) cr_expect_leq(workspace(model), cases[i].budget);
        run(model, got, results);
        for (int k = 0; k < results; ++k)
            cr_assert_float_eq(got[k], expected[k], 1e-3, "case %zu, element %d", i, k);
        berth_model_destroy(model);
    }
    berth_model_destroy(whole);
    kernel_cache_close(&kernels);
}

// What is compiled again and again is what was read, which stays as it was.
Test(fit_patches, the_model_is_read_once_and_not_changed, .timeout = 300) {
    berth_arena *arena = NULL;
    berth_module *fresh = NULL, *kept = NULL;
    berth_model *model = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf expected = berth_strbuf_make(arena), text = berth_strbuf_make(arena);
    assert_ok(build(NULL, arena, &fresh));
    assert_ok(berth_module_to_text(fresh, NULL, &expected));
    berth_model_options options = {.target = "cpu",
                                   .compile = {.patches = "least", .plan_only = true}};
    assert_ok(berth_model_load_built(build, &kept, "stages", &options, &model));
    cr_assert_not_null(strstr(berth_model_plan(model)->notes[0], "patches"));
    cr_assert_neq(berth_model_module(model), kept);
    assert_ok(berth_module_to_text(kept, NULL, &text));
    cr_assert_str_eq(berth_strbuf_text(&text), berth_strbuf_text(&expected));
    berth_model_destroy(model);
    berth_arena_destroy(arena);
}

Test(fit_patches, never_is_refused_where_it_does_not_fit) {
    berth_model *model = NULL;
    assert_fails(load(NULL, "never", value_bytes, &model), BERTH_OUT_OF_MEMORY,
                 "no smaller one would do");
    assert_fails(load(NULL, NULL, 1, &model), BERTH_OUT_OF_MEMORY, "needs");
    assert_fails(load(NULL, "some", 0, &model), BERTH_INVALID_ARGUMENT, "NODE=N");
    assert_fails(load(NULL, "a=b=", 0, &model), BERTH_INVALID_ARGUMENT, "NODE=N");
    cr_expect_null(model);
}
