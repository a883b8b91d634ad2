// Padding that the layout pass makes an operation of its own: the graph computes the same, and only
// the windows get it for which it pays.
#include <criterion/criterion.h>
#include <math.h>

#include "compiler/compile.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "tests/check.h"

typedef struct window {
    const char *what;
    bool pool;  // a maximum, else a convolution
    int64_t channels, group;
    int64_t kernel, stride, padding;
    uint32_t pads;  // operations that pad, on processor cores
} window;

static const window windows[] = {
    {"5 x 5 maxima", true, 16, 0, 5, 1, 2, 1},
    {"7 x 7 maxima, every other", true, 8, 0, 7, 2, 3, 0},
    {"3 x 3 maxima", true, 16, 0, 3, 1, 1, 0},
    {"5 x 5 maxima without padding", true, 16, 0, 5, 1, 0, 0},
    {"groups of 4 channels", false, 12, 3, 3, 1, 1, 1},
    {"groups of 4 channels, every other", false, 12, 3, 3, 2, 1, 0},
    {"groups of 4 channels, 1 x 1", false, 12, 3, 1, 1, 0, 0},
};

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    berth_tensor image;
} fixture;

static fixture build(const window *w) {
    fixture f = {0};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    int64_t dims[4] = {1, w->channels, 9, 11};
    f.image = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&f.image, 3);
    if (w->pool) {  // a whole window of NaN, and one element of it elsewhere
        for (int64_t y = 0; y < 5; ++y)
            for (int64_t x = 0; x < 5; ++x) berth_tensor_set_f64(&f.image, y * 11 + x, NAN);
        berth_tensor_set_f64(&f.image, 95, NAN);
    }
    berth_type_id type = berth_type_tensor(f.module, BERTH_DTYPE_F32, 4, dims);
    berth_value_id inputs[2] = {berth_graph_add_param(f.module, f.main, "x", type), BERTH_NONE};
    int64_t kernel[4] = {w->channels, w->group ? w->channels / w->group : 1, w->kernel, w->kernel};
    if (!w->pool) {
        berth_tensor weights = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 4, kernel);
        berth_tensor_fill_random(&weights, 5);
        inputs[1] = berth_graph_constant(f.module, f.main, 0, &weights, 0);
    }
    berth_value_id y = berth_graph_op1(
        f.module, f.main, w->pool ? BERTH_OP_MAX_POOL : BERTH_OP_CONV, inputs, w->pool ? 1 : 2, 0);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    int64_t strides[2] = {w->stride, w->stride};
    int64_t pads[4] = {w->padding, w->padding, w->padding, w->padding};
    berth_attrs_set_ints(f.module, attrs, "strides", strides, 2);
    berth_attrs_set_ints(f.module, attrs, "pads", pads, 4);
    if (w->pool) berth_attrs_set_ints(f.module, attrs, "kernel_shape", &kernel[2], 2);
    if (!w->pool) berth_attrs_set_int(f.module, attrs, "group", w->group);
    berth_graph_set_results(f.module, f.main, &y, 1);
    return f;
}

static uint32_t count_pads(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        count += graph->ops.data[i].region != BERTH_NONE && graph->ops.data[i].kind == BERTH_OP_PAD;
    return count;
}

static void expect_same(const berth_tensor *got, const berth_tensor *wanted, const char *what) {
    cr_assert_eq(berth_tensor_element_count(got), berth_tensor_element_count(wanted), "%s", what);
    for (int64_t i = 0; i < berth_tensor_element_count(wanted); ++i) {
        double a = berth_tensor_get_f64(got, i);
        double b = berth_tensor_get_f64(wanted, i);
        cr_assert(a == b || (isnan(a) && isnan(b)) || fabs(a - b) < 1e-5,
                  "%s: [%lld] is %g, not %g", what, (long long)i, a, b);
    }
}

Test(layout_padding, computes_the_same) {
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); ++i) {
        const window *w = &windows[i];
        fixture plain = build(w);
        berth_tensor wanted;
        assert_ok(berth_eval_function(plain.module, plain.main, &plain.image, 1, &wanted, 1,
                                      plain.arena));
        fixture f = build(w);
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, "cpu -vector_bits=256", NULL, &target));
        berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        cr_expect_eq(count_pads(&f), w->pads, "%s: %u", w->what, count_pads(&f));
        berth_tensor got;
        assert_ok(berth_eval_function(f.module, f.main, &f.image, 1, &got, 1, f.arena));
        expect_same(&got, &wanted, w->what);
        berth_arena_destroy(f.arena);
        berth_arena_destroy(plain.arena);
    }
}
