// Weights that several operations read are in memory once, however they are packed: the steps of an
// unrolled recurrence, the heads of a detector. Plans only: nothing is compiled.
#include <criterion/criterion.h>

#include "compiler/compile.h"
#include "tests/compiler/planned.h"

#define TARGET "cpu -vector_bits=512 -l2_bytes=1048576 -cores=2"

static berth_value_id param(fixture *f, int rank, const int64_t *dims) {
    berth_type_id type = berth_type_tensor(f->module, BERTH_DTYPE_F32, rank, dims);
    return berth_graph_add_param(f->module, f->main, "x", type);
}

static berth_value_id weights(fixture *f, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_F32, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i)
        berth_tensor_set_f64(&tensor, i, (double)(i % 7));
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_attrs *attrs_of(fixture *f, berth_value_id value) {
    berth_graph *graph = berth_graph_get(f->module, f->main);
    return &graph->ops.data[graph->values.data[value].op].attrs;
}

static berth_value_id gemm(fixture *f, berth_value_id x, berth_value_id w, double alpha) {
    berth_value_id y =
        berth_graph_op1(f->module, f->main, BERTH_OP_GEMM, (berth_value_id[]){x, w}, 2, 0);
    berth_attrs_set_int(f->module, attrs_of(f, y), "transB", 1);
    if (alpha != 1) berth_attrs_set_float(f->module, attrs_of(f, y), "alpha", alpha);
    return berth_graph_op1(f->module, f->main, BERTH_OP_RELU, &y, 1, 0);
}

static berth_value_id conv(fixture *f, berth_value_id x, berth_value_id w, int64_t group) {
    berth_value_id y =
        berth_graph_op1(f->module, f->main, BERTH_OP_CONV, (berth_value_id[]){x, w}, 2, 0);
    berth_attrs_set_int(f->module, attrs_of(f, y), "group", group);
    berth_attrs_set_ints(f->module, attrs_of(f, y), "pads", (int64_t[]){1, 1, 1, 1}, 4);
    return berth_graph_op1(f->module, f->main, BERTH_OP_RELU, &y, 1, 0);
}

static uint64_t constant_bytes(fixture *f, berth_value_id result) {
    berth_graph_set_results(f->module, f->main, &result, 1);
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f->arena, TARGET, NULL, &target));
    berth_compile_options options = {.target = target, .plan_only = true, .verify = true};
    berth_compile_result r;
    assert_ok(berth_compile(f->module, &options, &r));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r.program->pool_count; ++i)
        if (r.program->pools[i].usage == BERTH_POOL_CONSTANT)
            bytes += r.program->pools[i].size_bytes;
    return bytes;
}

// `count` steps over the same weights; the last one's alpha.
static uint64_t bytes_of_gemms(int count, double alpha) {
    fixture f = begin();
    berth_value_id w = weights(&f, 2, (int64_t[]){64, 64});
    berth_value_id y = param(&f, 2, (int64_t[]){1, 64});
    for (int i = 0; i < count; ++i) y = gemm(&f, y, w, i == count - 1 ? alpha : 1);
    uint64_t bytes = constant_bytes(&f, y);
    berth_arena_destroy(f.arena);
    return bytes;
}

// 64 x 64 floats; another factor makes other weights of them.
Test(shared_weights, of_gemms) {
    cr_expect_eq(bytes_of_gemms(1, 1), 4 * 64 * 64);
    cr_expect_eq(bytes_of_gemms(5, 1), 4 * 64 * 64);
    cr_expect_eq(bytes_of_gemms(5, 0.5), 2 * 4 * 64 * 64);
}

// `count` convolutions of 64 channels over the same weights, of 1 or 64 groups.
static uint64_t bytes_of_convs(int count, int64_t group) {
    fixture f = begin();
    berth_value_id w = weights(&f, 4, (int64_t[]){64, 64 / group, 3, 3});
    berth_value_id y = param(&f, 4, (int64_t[]){1, 64, 48, 48});
    for (int i = 0; i < count; ++i) y = conv(&f, y, w, group);
    uint64_t bytes = constant_bytes(&f, y);
    berth_arena_destroy(f.arena);
    return bytes;
}

// Of 3 x 3 weights Winograd may make 16 or 36 points, once.
Test(shared_weights, of_convolutions) {
    uint64_t dense = bytes_of_convs(1, 1);
    cr_expect_geq(dense, 4 * 64 * 64 * 9);
    cr_expect_leq(dense, 4 * 64 * 64 * 36);
    cr_expect_eq(bytes_of_convs(4, 1), dense);
    cr_expect_eq(bytes_of_convs(1, 64), 4 * 64 * 9);
    cr_expect_eq(bytes_of_convs(4, 64), 4 * 64 * 9);
}

// Weights of other constants stay apart.
Test(shared_weights, others_are_not) {
    fixture f = begin();
    berth_value_id y = param(&f, 2, (int64_t[]){1, 64});
    for (int i = 0; i < 3; ++i) y = gemm(&f, y, weights(&f, 2, (int64_t[]){64, 64}), 1);
    cr_expect_eq(constant_bytes(&f, y), 3 * 4 * 64 * 64);
    berth_arena_destroy(f.arena);
}
