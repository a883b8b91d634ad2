// What layouts and Winograd make of the workspace of convolutions, in bytes that follow from the
// shapes. Plans only: nothing is compiled.
#include <criterion/criterion.h>

#include "compiler/compile.h"
#include "tests/compiler/planned.h"

static berth_value_id image(fixture *f, int64_t channels, int64_t size) {
    int64_t dims[4] = {1, channels, size, size};
    berth_type_id type = berth_type_tensor(f->module, BERTH_DTYPE_F32, 4, dims);
    return berth_graph_add_param(f->module, f->main, "x", type);
}

// Weights of zeros [outputs, inputs of a group, size, size].
static berth_value_id weights(fixture *f, int64_t outputs, int64_t inputs, int64_t size) {
    int64_t dims[4] = {outputs, inputs, size, size};
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_F32, 4, dims);
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_value_id conv(fixture *f, berth_value_id x, berth_value_id w, int64_t group,
                           int64_t stride, int64_t padding) {
    int64_t strides[] = {stride, stride};
    int64_t pads[] = {padding, padding, padding, padding};
    berth_value_id y =
        berth_graph_op1(f->module, f->main, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    berth_attrs_set_int(f->module, attrs, "group", group);
    berth_attrs_set_ints(f->module, attrs, "strides", strides, 2);
    berth_attrs_set_ints(f->module, attrs, "pads", pads, 4);
    return y;
}

static berth_value_id unary(fixture *f, berth_op_kind kind, berth_value_id x) {
    return berth_graph_op1(f->module, f->main, kind, &x, 1, 0);
}

static uint64_t workspace_bytes(fixture *f, berth_value_id result, const char *target_text,
                                const char *objective) {
    berth_graph_set_results(f->module, f->main, &result, 1);
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f->arena, target_text, NULL, &target));
    berth_compile_options options = {
        .target = target, .objective = objective, .plan_only = true, .verify = true};
    berth_compile_result r;
    assert_ok(berth_compile(f->module, &options, &r));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r.program->pool_count; ++i)
        if (r.program->pools[i].usage == BERTH_POOL_WORKSPACE)
            bytes += r.program->pools[i].size_bytes;
    return bytes;
}

// 64 channels of 16 x 16 are made inside the border that the depthwise window of stride 2 reads
// (one row and one column: 17 x 17), so at the fullest step that border and the 8 x 8 results are
// live, and never the 16 x 16 without it.
Test(conv_memory, border_is_made_in_place) {
    static const char *const targets[] = {"cpu -vector_bits=256", "cpu -vector_bits=512"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); ++i) {
        fixture f = begin();
        berth_value_id y = conv(&f, image(&f, 3, 16), weights(&f, 64, 3, 1), 1, 1, 0);
        y = unary(&f, BERTH_OP_RELU, y);
        y = conv(&f, y, weights(&f, 64, 1, 3), 64, 2, 1);
        y = unary(&f, BERTH_OP_GLOBAL_AVERAGE_POOL, y);
        uint64_t bytes = workspace_bytes(&f, y, targets[i], NULL);
        cr_expect_eq(bytes, 4 * 64 * (17 * 17 + 8 * 8), "%s: %llu", targets[i],
                     (unsigned long long)bytes);
        berth_arena_destroy(f.arena);
    }
}

// A 3 x 3 convolution of 64 channels to as many on 96 x 96: Winograd's points of the whole map
// would be 36 / 16 of input and output together. Only these two are in the workspace, whatever the
// points of a band take of a thread's own.
Test(conv_memory, winograd_keeps_no_points) {
    static const char *const objectives[] = {"latency", "memory"};
    for (size_t i = 0; i < sizeof(objectives) / sizeof(objectives[0]); ++i) {
        fixture f = begin();
        berth_value_id y = conv(&f, image(&f, 3, 96), weights(&f, 64, 3, 1), 1, 1, 0);
        y = conv(&f, unary(&f, BERTH_OP_RELU, y), weights(&f, 64, 64, 3), 1, 1, 1);
        y = unary(&f, BERTH_OP_GLOBAL_AVERAGE_POOL, y);
        uint64_t bytes = workspace_bytes(&f, y, "cpu -vector_bits=512 -l2_bytes=1048576 -cores=2",
                                         objectives[i]);
        uint64_t border = i == 0 ? 0 : 2;  // that the direct convolution reads
        uint64_t input = 96 + border;
        cr_expect_eq(bytes, 4 * 64 * (input * input + 96 * 96), "%s: %llu", objectives[i],
                     (unsigned long long)bytes);
        berth_arena_destroy(f.arena);
    }
}
