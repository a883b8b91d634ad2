// Windows without the taps that read padding only (passes/conv_taps.h) compute the same.
#include "compiler/passes/fold.h"
#include "compiler/passes/simplify.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "tests/check.h"

typedef struct row {
    int64_t x[4], w[4], strides[2], dilations[2], pads[4];
    int64_t kernel[2], left_pads[4];  // afterwards
} row;

typedef struct fixture {
    const row *row;
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} fixture;

static berth_tensor random_of(berth_arena *arena, const int64_t dims[4], uint64_t seed) {
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&tensor, seed);
    return tensor;
}

static berth_status build(void *user) {
    fixture *f = user;
    f->module = berth_module_create(f->arena, "taps");
    f->main = berth_graph_create(f->module, "main", 0);
    berth_tensor weights = random_of(f->arena, f->row->w, 3);
    berth_value_id inputs[2] = {
        berth_graph_add_param(f->module, f->main, "x",
                              berth_type_tensor(f->module, BERTH_DTYPE_F32, 4, f->row->x)),
        berth_graph_constant(f->module, f->main, 0, &weights, 0)};
    berth_value_id y = berth_graph_op1(f->module, f->main, BERTH_OP_CONV, inputs, 2, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    berth_attrs_set_ints(f->module, attrs, "strides", f->row->strides, 2);
    berth_attrs_set_ints(f->module, attrs, "dilations", f->row->dilations, 2);
    berth_attrs_set_ints(f->module, attrs, "pads", f->row->pads, 4);
    berth_graph_set_results(f->module, f->main, &y, 1);
    return berth_pass_fold(f->module, f->main, NULL);
}

static berth_status simplify(void *user) {
    const fixture *f = user;
    return berth_simplify(f->module, f->main, NULL);
}

static berth_tensor run(const fixture *f) {
    berth_tensor x = random_of(f->arena, f->row->x, 5), y;
    assert_ok(berth_eval_function(f->module, f->main, &x, 1, &y, 1, f->arena));
    return y;
}

static void expect_window(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_value_id y = graph->regions.data[0].results.data[0];
    const berth_op *op = &graph->ops.data[graph->values.data[y].op];
    cr_assert_eq(op->kind, BERTH_OP_CONV);
    const berth_type *w = berth_type_get(f->module, graph->values.data[op->inputs[1]].type);
    uint32_t count = 0;
    const int64_t *pads = berth_attrs_ints(f->module, &op->attrs, "pads", &count);
    cr_assert_eq(count, 4);
    for (int i = 0; i < 2; ++i) cr_expect_eq(w->dims[2 + i], f->row->kernel[i]);
    for (int i = 0; i < 4; ++i) cr_expect_eq(pads[i], f->row->left_pads[i]);
}

Test(conv_taps, taps_of_padding_alone_go) {
    static const row rows[] = {
        // As large as the image: the middle is left. One element less reaches: all stay.
        {{1, 2, 6, 6}, {3, 2, 3, 3}, {1, 1}, {6, 6}, {6, 6, 6, 6}, {1, 1}, {0}},
        {{1, 2, 6, 6}, {3, 2, 3, 3}, {1, 1}, {5, 5}, {5, 5, 5, 5}, {3, 3}, {5, 5, 5, 5}},
        // Rows only; two of five on each side.
        {{1, 2, 4, 9}, {3, 2, 3, 3}, {1, 1}, {4, 4}, {4, 4, 4, 4}, {1, 3}, {0, 4, 0, 4}},
        {{2, 1, 3, 40}, {2, 1, 5, 1}, {1, 1}, {3, 1}, {6, 0, 6, 0}, {1, 1}, {0}},
        {{2, 1, 4, 40}, {2, 1, 5, 1}, {1, 1}, {3, 1}, {6, 0, 6, 0}, {3, 1}, {3, 0, 3, 0}},
        // Before the image only, with strides: the last output element reads 3 * 2 - 5 + tap, and 0 * 3 - 2 + tap.
        {{1, 1, 5, 5}, {1, 1, 3, 3}, {2, 2}, {1, 1}, {5, 1, 0, 1}, {3, 3}, {5, 1, 0, 1}},
        {{1, 1, 2, 5}, {1, 1, 3, 3}, {3, 2}, {1, 1}, {2, 1, 0, 1}, {1, 3}, {0, 1, 0, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fixture f = {.row = &rows[i]};
        assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
        assert_ok(berth_arena_try(f.arena, build, &f));
        berth_tensor before = run(&f);
        assert_ok(berth_arena_try(f.arena, simplify, &f));
        berth_tensor after = run(&f);
        expect_window(&f);
        for (int d = 0; d < 4; ++d) cr_assert_eq(before.dims[d], after.dims[d], "row %zu", i);
        for (int64_t k = 0; k < berth_tensor_element_count(&before); ++k)
            cr_expect_float_eq(berth_tensor_get_f64(&before, k), berth_tensor_get_f64(&after, k),
                               1e-6, "row %zu", i);
        berth_arena_destroy(f.arena);
    }
}
