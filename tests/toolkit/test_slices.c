// Channels in slices (compiler/passes/slice_channels.h) only where a plan without them does not fit.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "toolkit/model.h"

enum { channels = 16, side = 12 };

typedef struct network {
    int widening;   // so many times as many channels in between
    int64_t side;   // of the image
    bool integers;  // of 8 bits
} network;

typedef struct builder {
    berth_module *module;
    berth_func_id main;
    bool integers;
} builder;

static berth_value_id constant(const builder *b, berth_dtype dtype, double value) {
    berth_tensor tensor = berth_tensor_create(b->module->arena, dtype, 0, NULL);
    berth_tensor_set_f64(&tensor, 0, value);
    return berth_graph_constant(b->module, b->main, 0, &tensor, 0);
}

// To 8 bits, or back.
static berth_value_id convert(const builder *b, berth_op_kind kind, berth_value_id x) {
    berth_value_id inputs[] = {x, constant(b, BERTH_DTYPE_F32, 0.05),
                               constant(b, BERTH_DTYPE_I8, 0)};
    berth_op_id op = berth_graph_add_op(b->module, b->main, 0, kind, inputs, 3, 1, 0);
    return berth_graph_get(b->module, b->main)->ops.data[op].outputs[0];
}

static berth_value_id convolve(const builder *b, berth_value_id x, int64_t from, int64_t to,
                               int64_t window, const char *name) {
    const int64_t groups = window > 1 ? to : 1,
                  pads[] = {window / 2, window / 2, window / 2, window / 2};
    const int64_t dims[] = {to, from / groups, window, window};
    berth_tensor weights = berth_tensor_create(
        b->module->arena, b->integers ? BERTH_DTYPE_I8 : BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&weights, 3);
    berth_value_id inputs[] = {x, berth_graph_constant(b->module, b->main, 0, &weights, 0)};
    for (int i = 0; b->integers && i < 2; ++i)
        inputs[i] = convert(b, BERTH_OP_DEQUANTIZE_LINEAR, inputs[i]);
    berth_op_id op = berth_graph_add_op(b->module, b->main, 0, BERTH_OP_CONV, inputs, 2, 1, 0);
    berth_graph *graph = berth_graph_get(b->module, b->main);
    berth_attrs_set_ints(b->module, &graph->ops.data[op].attrs, "pads", pads, 4);
    berth_attrs_set_int(b->module, &graph->ops.data[op].attrs, "group", groups);
    berth_value_id y = graph->ops.data[op].outputs[0];
    if (b->integers) y = convert(b, BERTH_OP_QUANTIZE_LINEAR, y);
    berth_graph_get(b->module, b->main)->values.data[y].name = berth_module_intern(b->module, name);
    return y;
}

// A convolution of 1 x 1 and a depthwise one behind it, to many channels in between, from and to small values.
static berth_status build(void *user, berth_arena *arena, berth_module **out_module) {
    const network *n = user;
    const int64_t wide = channels * n->widening, dims[] = {1, 1, n->side, n->side};
    builder b = {.module = berth_module_create(arena, "separable"), .integers = n->integers};
    b.main = berth_graph_create(b.module, "main", 0);
    berth_dtype dtype = n->integers ? BERTH_DTYPE_I8 : BERTH_DTYPE_F32;
    berth_value_id x =
        berth_graph_add_param(b.module, b.main, "x", berth_type_tensor(b.module, dtype, 4, dims));
    x = convolve(&b, x, 1, channels, 1, "a");
    x = convolve(&b, x, channels, wide, 1, "b");
    x = convolve(&b, x, wide, wide, 3, "c");
    x = convolve(&b, x, wide, 1, 1, "y");
    berth_graph_set_results(b.module, b.main, &x, 1);
    *out_module = b.module;
    return BERTH_OK;
}

static berth_status load(const network *net, uint64_t limit, berth_model **out_model) {
    char text[96];
    network copy = *net;
    snprintf(text, sizeof(text), "cpu -arch=cortex-m4 -memory_capacity_bytes=%llu",
             (unsigned long long)limit);
    berth_model_options options = {.target = text};
    options.target_options.runtime = "bare";
    options.compile.patches = "never";
    options.compile.plan_only = true;
    return berth_model_load_built(build, &copy, "separable", &options, out_model);
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

static void check(const network *net) {
    berth_model *whole = NULL, *model = NULL;
    assert_ok(load(net, 1 << 22, &whole));
    const uint64_t bytes = needs(whole);
    const uint32_t steps = berth_model_program(whole)->step_count;
    berth_model_destroy(whole);

    assert_ok(load(net, bytes, &model));  // as much as it needs is enough, for the same plan
    cr_expect_eq(berth_model_program(model)->step_count, steps);
    berth_model_destroy(model);

    // What a refusal says is needed is enough, and no more than the plan without slices needs.
    berth_status status = load(net, 1, &model);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    const char *said = strstr(berth_status_message(status), " needs ");
    cr_assert_not_null(said);
    const uint64_t least = strtoull(strchr(said, '(') + 1, NULL, 10);
    berth_status_free(status);
    cr_expect_leq(least, bytes);
    assert_ok(load(net, least, &model));
    cr_expect_eq(needs(model), least);
    if (least < bytes) cr_expect_gt(berth_model_program(model)->step_count, steps);
    berth_model_destroy(model);

    // It is the least: a byte less is refused, and names the same.
    status = load(net, least - 1, &model);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%d times, side %d: %llu bytes",
                 net->widening, (int)net->side, (unsigned long long)least - 1);
    said = strstr(berth_status_message(status), " needs ");
    cr_expect_eq(strtoull(strchr(said, '(') + 1, NULL, 10), least);
    berth_status_free(status);
}

// However little there is, no kernel puts together more slices than it may bind.
Test(slices, many_channels_that_do_not_fit_are_refused_for_their_memory) {
    berth_model *model = NULL;
    assert_fails(load(&(network){64, side, false}, 1, &model), BERTH_OUT_OF_MEMORY,
                 "its limit is 1 B");
}

Test(slices, where_they_help_nothing_there_are_none) {
    check(&(network){1, side, false});  // x, a slice and y are more than two whole values
}

Test(slices, wide_values_run_in_slices) {
    check(&(network){6, side, false});
}

// Results over operands take less than is estimated, so that fewer slices than the least limit asks for need less.
Test(slices, the_least_that_is_named_is_found_in_turns) {
    check(&(network){2, 33, true});
    check(&(network){6, 33, true});
}
