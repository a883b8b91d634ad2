// How many slices of channels there are (passes/slice_channels.h).
#include "compiler/compile.h"
#include "tests/compiler/planned.h"

enum { side = 24, wide = 96, narrow = 4 };

static berth_value_id convolve(fixture *f, berth_value_id x, int64_t from, int64_t to,
                               int64_t window) {
    const int64_t groups = window > 1 ? to : 1, pad = window / 2, pads[] = {pad, pad, pad, pad};
    const int64_t dims[] = {to, from / groups, window, window};
    berth_tensor weights = berth_tensor_create(f->arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&weights, 3);
    berth_value_id inputs[] = {x, berth_graph_constant(f->module, f->main, 0, &weights, 0)};
    berth_op_id op = berth_graph_add_op(f->module, f->main, 0, BERTH_OP_CONV, inputs, 2, 1, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs_set_ints(f->module, &graph->ops.data[op].attrs, "pads", pads, 4);
    berth_attrs_set_int(f->module, &graph->ops.data[op].attrs, "group", groups);
    return graph->ops.data[op].outputs[0];
}

// Two depthwise convolutions, each after one of 1 x 1: from 16 channels to 96, and from 1 to 4.
static fixture build(void) {
    fixture f = begin();
    berth_value_id x = berth_graph_add_param(
        f.module, f.main, "x",
        berth_type_tensor(f.module, BERTH_DTYPE_F32, 4, (int64_t[]){1, 1, side, side}));
    x = convolve(&f, x, 1, 16, 1);
    x = convolve(&f, x, 16, wide, 1);
    x = convolve(&f, x, wide, wide, 3);
    x = convolve(&f, x, wide, 1, 1);
    x = convolve(&f, x, 1, narrow, 1);
    x = convolve(&f, x, narrow, narrow, 3);
    x = convolve(&f, x, narrow, 1, 1);
    berth_graph_set_results(f.module, f.main, &x, 1);
    return f;
}

// Convolutions whose result has so many channels, for a budget.
static uint32_t count(int64_t channels, const char *budget, uint64_t slice_budget_bytes) {
    fixture f = build();
    berth_multi_target *target = NULL;
    berth_target_options target_options = {.runtime = "bare", .budgets = budget};
    assert_ok(berth_target_parse(f.arena, "cpu -arch=cortex-m4", &target_options, &target));
    berth_compile_options options = {.target = target,
                                     .stop_after = "layout",
                                     .verify = true,
                                     .slice_budget_bytes = slice_budget_bytes};
    berth_compile_result result;
    assert_ok(berth_compile(f.module, &options, &result));
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    const berth_region *root = &graph->regions.data[0];
    uint32_t found = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind != BERTH_OP_CONV) continue;
        const berth_type *y = berth_type_get(f.module, graph->values.data[op->outputs[0]].type);
        found += y->dims[1] == channels;
    }
    berth_arena_destroy(f.arena);
    return found;
}

Test(slice_channels, as_few_as_leave_room) {
    cr_expect_eq(count(wide, "sram=4MiB", 0), 2);
    // 96 channels that are stored, 16 and 1 before, the output: 262,656 bytes, and what is spared for kernels. In two
    // slices both convolutions are there twice.
    cr_expect_eq(count(wide / 2, "sram=400KiB", 0), 4);
    cr_expect_eq(count(narrow, "sram=400KiB", 0), 2);
}

// No plan runs in a byte. The 16 channels before the wide slices are always there; beside as much the narrow
// convolutions have room as they are.
Test(slice_channels, a_budget_that_is_impossible_makes_no_more_than_the_least_needs) {
    cr_expect_eq(count(2, "sram=1", 0), wide);  // 48 slices of two channels, two convolutions each
    cr_expect_eq(count(narrow, "sram=1", 0), 2);
}

Test(slice_channels, as_for_another_budget) {
    cr_expect_eq(count(wide / 2, "sram=1", 400 << 10), 4);
    cr_expect_eq(count(wide, "sram=1", 4 << 20), 2);
}
