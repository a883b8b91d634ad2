// Channels in slices (compiler/passes/slice_channels.h) only where a plan without them does not fit.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "toolkit/model.h"

enum { channels = 16, side = 12 };

static berth_value_id convolve(berth_module *module, berth_func_id main, berth_value_id x,
                               int64_t from, int64_t to, int64_t window, const char *name) {
    const int64_t groups = window > 1 ? to : 1,
                  pads[] = {window / 2, window / 2, window / 2, window / 2};
    const int64_t dims[] = {to, from / groups, window, window};
    berth_arena *arena = module->arena;
    berth_tensor weights = berth_tensor_create(arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&weights, 3);
    berth_value_id inputs[] = {x, berth_graph_constant(module, main, 0, &weights, 0)};
    berth_op_id op = berth_graph_add_op(module, main, 0, BERTH_OP_CONV, inputs, 2, 1, 0);
    berth_graph *graph = berth_graph_get(module, main);
    berth_attrs_set_ints(module, &graph->ops.data[op].attrs, "pads", pads, 4);
    berth_attrs_set_int(module, &graph->ops.data[op].attrs, "group", groups);
    berth_value_id y = graph->ops.data[op].outputs[0];
    graph->values.data[y].name = berth_module_intern(module, name);
    return y;
}

// A convolution of 1 x 1 and a depthwise one behind it, to `*user` times as many channels in between, from and to small values.
static berth_status build(void *user, berth_arena *arena, berth_module **out_module) {
    const int64_t wide = channels * *(const int *)user;
    berth_module *module = berth_module_create(arena, "separable");
    berth_func_id main = berth_graph_create(module, "main", 0);
    berth_value_id x = berth_graph_add_param(
        module, main, "x",
        berth_type_tensor(module, BERTH_DTYPE_F32, 4, (int64_t[]){1, 1, side, side}));
    x = convolve(module, main, x, 1, channels, 1, "a");
    x = convolve(module, main, x, channels, wide, 1, "b");
    x = convolve(module, main, x, wide, wide, 3, "c");
    x = convolve(module, main, x, wide, 1, 1, "y");
    berth_graph_set_results(module, main, &x, 1);
    *out_module = module;
    return BERTH_OK;
}

static berth_status load(int widening, uint64_t limit, berth_model **out_model) {
    char text[96];
    snprintf(text, sizeof(text), "cpu -arch=cortex-m4 -memory_capacity_bytes=%llu",
             (unsigned long long)limit);
    berth_model_options options = {.target = text};
    options.target_options.runtime = "bare";
    options.compile.patches = "never";
    options.compile.plan_only = true;
    return berth_model_load_built(build, &widening, "separable", &options, out_model);
}

// Of values, inputs, outputs and what kernels keep for themselves, which is what the limit holds for.
static uint64_t needs(const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > bytes) bytes = program->kernels[i].scratch_bytes;
    bytes = (bytes + 7) / 8 * 8;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage != BERTH_POOL_CONSTANT) bytes += program->pools[i].size_bytes;
    return bytes;
}

static void check(int widening) {
    berth_model *whole = NULL, *model = NULL;
    assert_ok(load(widening, 1 << 22, &whole));
    const uint64_t bytes = needs(whole);
    const uint32_t steps = berth_model_program(whole)->step_count;
    berth_model_destroy(whole);

    assert_ok(load(widening, bytes, &model));  // as much as it needs is enough, for the same plan
    cr_expect_eq(berth_model_program(model)->step_count, steps);
    berth_model_destroy(model);

    // What a refusal says is needed is enough, and no more than the plan without slices needs.
    berth_status status = load(widening, 1, &model);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    const char *said = strstr(berth_status_message(status), " needs ");
    cr_assert_not_null(said);
    const uint64_t least = strtoull(strchr(said, '(') + 1, NULL, 10);
    berth_status_free(status);
    cr_expect_leq(least, bytes);
    assert_ok(load(widening, least, &model));
    cr_expect_eq(needs(model), least);
    if (least < bytes) cr_expect_gt(berth_model_program(model)->step_count, steps);
    berth_model_destroy(model);
}

// However little there is, no kernel puts together more slices than it may bind.
Test(slices, many_channels_that_do_not_fit_are_refused_for_their_memory) {
    berth_model *model = NULL;
    assert_fails(load(64, 1, &model), BERTH_OUT_OF_MEMORY, "its limit is 1 B");
}

Test(slices, where_they_help_nothing_there_are_none) {
    check(1);  // x, a slice and y are more than two whole values
}

Test(slices, wide_values_run_in_slices) {
    check(6);
}
