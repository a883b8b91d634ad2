// Padding that the layout pass makes an operation of its own, and maxima that it takes along one axis
// after the other: the graph computes the same, and only the windows get them for which it pays.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "ir/tensor/function.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct window {
    const char *what;
    berth_op_kind kind;  // a maximum, or a convolution
    int64_t channels, group;
    int64_t kernel, stride, padding, dilation;
    uint32_t pads;   // operations that pad, on processor cores
    uint32_t pools;  // and that take maxima
} window;

static const window windows[] = {
    {"5 x 5 maxima", BERTH_OP_MAX_POOL, 16, 0, 5, 1, 2, 1, 1, 1},
    {"7 x 7 maxima, every other", BERTH_OP_MAX_POOL, 8, 0, 7, 2, 3, 1, 0, 1},
    {"3 x 3 maxima", BERTH_OP_MAX_POOL, 16, 0, 3, 1, 1, 1, 0, 1},
    {"5 x 5 maxima without padding", BERTH_OP_MAX_POOL, 16, 0, 5, 1, 0, 1, 0, 1},
    {"9 x 9 maxima, one axis after the other", BERTH_OP_MAX_POOL, 16, 0, 9, 1, 4, 1, 1, 2},
    {"7 x 7 maxima along rows", BERTH_OP_MAX_POOL, 3, 0, 7, 1, 3, 1, 1, 2},
    {"9 x 9 maxima along rows, dilated", BERTH_OP_MAX_POOL, 1, 0, 9, 1, 8, 2, 1, 2},
    {"11 x 11 maxima without padding", BERTH_OP_MAX_POOL, 3, 0, 11, 1, 0, 1, 0, 2},
    {"5 x 5 maxima along rows", BERTH_OP_MAX_POOL, 3, 0, 5, 1, 2, 1, 1, 1},
    {"7 x 7 maxima along rows, every other", BERTH_OP_MAX_POOL, 3, 0, 7, 2, 3, 1, 0, 1},
    {"groups of 4 channels", BERTH_OP_CONV, 12, 3, 3, 1, 1, 1, 1, 0},
    {"groups of 4 channels, every other", BERTH_OP_CONV, 12, 3, 3, 2, 1, 1, 0, 0},
    {"groups of 4 channels, 1 x 1", BERTH_OP_CONV, 12, 3, 1, 1, 0, 1, 0, 0},
    {"transposed, to 3 channels", BERTH_OP_CONV_TRANSPOSE, 3, 1, 4, 2, 1, 1, 1, 0},
    {"transposed, to 1 channel, dilated", BERTH_OP_CONV_TRANSPOSE, 1, 1, 3, 1, 2, 2, 1, 0},
    {"transposed, groups of 3 channels", BERTH_OP_CONV_TRANSPOSE, 3, 2, 5, 3, 1, 1, 1, 0},
    {"transposed, no window leaves it", BERTH_OP_CONV_TRANSPOSE, 2, 1, 2, 2, 0, 1, 0, 0},
};

enum { image_height = 20, image_width = 23 };

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
    bool pool = w->kind == BERTH_OP_MAX_POOL, transposed = w->kind == BERTH_OP_CONV_TRANSPOSE;
    int64_t dims[4] = {1, transposed ? 10 : w->channels, image_height, image_width};
    f.image = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&f.image, 3);
    if (pool) {  // a whole window of NaN, and one element of it elsewhere
        for (int64_t y = 0; y < w->kernel; ++y)
            for (int64_t x = 0; x < w->kernel; ++x)
                berth_tensor_set_f64(&f.image, y * image_width + x, NAN);
        berth_tensor_set_f64(&f.image, 7 * image_width + 18, NAN);
    }
    berth_type_id type = berth_type_tensor(f.module, BERTH_DTYPE_F32, 4, dims);
    berth_value_id inputs[2] = {berth_graph_add_param(f.module, f.main, "x", type), BERTH_NONE};
    int64_t kernel[4] = {w->channels, w->group ? w->channels / w->group : 1, w->kernel, w->kernel};
    if (transposed) {
        kernel[0] = dims[1];
        kernel[1] = w->channels;  // of each group
    }
    if (!pool) {
        berth_tensor weights = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 4, kernel);
        berth_tensor_fill_random(&weights, 5);
        inputs[1] = berth_graph_constant(f.module, f.main, 0, &weights, 0);
    }
    berth_value_id y = berth_graph_op1(f.module, f.main, w->kind, inputs, pool ? 1 : 2, 0);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    int64_t dilations[2] = {w->dilation, w->dilation};
    int64_t strides[2] = {w->stride, w->stride};
    int64_t pads[4] = {w->padding, w->padding, w->padding, w->padding};
    berth_attrs_set_ints(f.module, attrs, "strides", strides, 2);
    berth_attrs_set_ints(f.module, attrs, "pads", pads, 4);
    berth_attrs_set_ints(f.module, attrs, "dilations", dilations, 2);
    if (pool) berth_attrs_set_ints(f.module, attrs, "kernel_shape", &kernel[2], 2);
    if (!pool) berth_attrs_set_int(f.module, attrs, "group", w->group);
    berth_graph_set_results(f.module, f.main, &y, 1);
    return f;
}

static uint32_t count(const fixture *f, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        n += graph->ops.data[i].region != BERTH_NONE && graph->ops.data[i].kind == kind;
    return n;
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
        cr_expect_eq(count(&f, BERTH_OP_PAD), w->pads, "%s: %u", w->what, count(&f, BERTH_OP_PAD));
        cr_expect_eq(count(&f, BERTH_OP_MAX_POOL), w->pools, "%s: %u maxima", w->what,
                     count(&f, BERTH_OP_MAX_POOL));
        berth_tensor got;
        assert_ok(berth_eval_function(f.module, f.main, &f.image, 1, &got, 1, f.arena));
        expect_same(&got, &wanted, w->what);
        berth_arena_destroy(f.arena);
        berth_arena_destroy(plain.arena);
    }
}

// Copies into blocks and out of them that a module gets for a target; destroys the module.
static uint32_t copies_in(fixture f, const char *text) {
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f.arena, text, NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
    berth_compile_result result;
    assert_ok(berth_compile(f.module, &options, &result));
    uint32_t copies = count(&f, BERTH_OP_RELAYOUT);
    berth_arena_destroy(f.arena);
    return copies;
}

static uint32_t copies_of(const window *w, const char *text) {
    return copies_in(build(w), text);
}

// Maxima of 2 x `width` elements over 16 channels, at every other row and every `step`th column.
static uint32_t copies_of_two_rows(int64_t width, int64_t step) {
    const window w = {"maxima of two rows", BERTH_OP_MAX_POOL, 16, 0, 2, 2, 0, 1, 0, 1};
    fixture f = build(&w);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_value_id y = graph->regions.data[0].results.data[0];
    const int64_t kernel[2] = {2, width}, strides[2] = {2, step};
    berth_attrs *attrs = &graph->ops.data[graph->values.data[y].op].attrs;
    berth_attrs_set_ints(f.module, attrs, "kernel_shape", kernel, 2);
    berth_attrs_set_ints(f.module, attrs, "strides", strides, 2);
    return copies_in(f, "cpu -vector_bits=512");
}

// A maximum of elements above each other reads rows as they are; blocks of channels would only be copied.
Test(layout_padding, maxima_above_each_other_stay_in_rows) {
    cr_expect_eq(copies_of_two_rows(1, 1), 0);
    cr_expect_eq(copies_of_two_rows(2, 1), 2);
}

// A maximum over 16 channels that moves by several elements stays in rows; one that takes more terms than compilers
// take, or moves by one, goes into blocks and out of them. Channels that do not fill their last block do so where
// elements are read often and there is a border.
Test(layout_padding, windows_in_rows_and_in_blocks) {
    const struct {
        int64_t channels, kernel, stride, padding;
        uint32_t copies;
    } cases[] = {{16, 3, 2, 0, 0}, {16, 2, 2, 0, 0}, {16, 4, 4, 0, 2}, {16, 3, 1, 0, 2},
                 {16, 9, 2, 0, 2}, {16, 5, 2, 0, 0}, {15, 3, 1, 1, 2}, {27, 5, 1, 2, 2},
                 {15, 3, 1, 0, 0}, {15, 2, 1, 1, 0}, {9, 3, 1, 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        window w = {"maxima",
                    BERTH_OP_MAX_POOL,
                    cases[i].channels,
                    0,
                    cases[i].kernel,
                    cases[i].stride,
                    cases[i].padding,
                    1,
                    0,
                    1};
        cr_expect_eq(copies_of(&w, "cpu -vector_bits=256"), cases[i].copies,
                     "%ld channels, %ld by %ld", cases[i].channels, cases[i].kernel,
                     cases[i].stride);
    }
}

// Few outputs of a transposed convolution stay in rows where these fill registers better than a block is filled: 25 and
// 23 positions of each step.
Test(layout_padding, few_outputs_in_rows) {
    const struct {
        const char *target;
        int64_t outputs, kernel, padding;
        bool rows;
    } cases[] = {{"cpu -vector_bits=512", 4, 6, 0, true},  {"cpu -vector_bits=512", 6, 6, 0, true},
                 {"cpu -vector_bits=512", 6, 4, 1, false}, {"cpu -vector_bits=512", 3, 4, 1, true},
                 {"cpu -vector_bits=512", 8, 6, 0, false}, {"cpu -vector_bits=256", 4, 6, 0, true},
                 {"cpu -vector_bits=256", 6, 6, 0, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        window w = {"transposed",
                    BERTH_OP_CONV_TRANSPOSE,
                    cases[i].outputs,
                    1,
                    cases[i].kernel,
                    2,
                    cases[i].padding,
                    1,
                    0,
                    0};
        cr_expect_eq(copies_of(&w, cases[i].target) == 0, cases[i].rows,
                     "%ld outputs of %ld for %s", cases[i].outputs, cases[i].kernel,
                     cases[i].target);
    }
}

// A transposed convolution to few outputs whose steps share elements is one convolution for all outputs of a step, and a copy;
// so are those whose outputs fill blocks together, and not by themselves. Not where windows are no longer than steps, or
// would mostly be filled up with zeros, or lie apart.
Test(layout_padding, few_outputs_in_steps) {
    const struct {
        int64_t outputs, kernel, stride, padding, dilation;
        bool in_steps;
    } cases[] = {{3, 4, 2, 1, 1, true},  {1, 9, 2, 4, 1, true},   {2, 5, 2, 2, 1, true},
                 {3, 6, 3, 2, 1, true},  {2, 4, 2, 5, 1, true},   {1, 8, 3, 0, 1, true},
                 {1, 3, 2, 1, 1, false}, {2, 2, 2, 0, 1, false},  {3, 4, 2, 1, 2, false},
                 {20, 4, 2, 1, 1, true}, {16, 4, 2, 1, 1, false}, {20, 4, 2, 3, 1, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const window w = {
            "in steps",      BERTH_OP_CONV_TRANSPOSE, cases[i].outputs,  1, cases[i].kernel,
            cases[i].stride, cases[i].padding,        cases[i].dilation, 0, 0};
        fixture plain = build(&w), f = build(&w);
        berth_tensor wanted, got;
        assert_ok(berth_eval_function(plain.module, plain.main, &plain.image, 1, &wanted, 1,
                                      plain.arena));
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, "cpu -vector_bits=512", NULL, &target));
        berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        cr_expect_eq(count(&f, BERTH_OP_CONV) == 1, cases[i].in_steps, "case %d", (int)i);
        cr_expect_eq(count(&f, BERTH_OP_CONV_TRANSPOSE) == 0, cases[i].in_steps, "case %d", (int)i);
        if (cases[i].outputs < 8) {  // packed weights are not evaluated
            assert_ok(berth_eval_function(f.module, f.main, &f.image, 1, &got, 1, f.arena));
            expect_same(&got, &wanted, "in steps");
        }
        berth_arena_destroy(f.arena);
        berth_arena_destroy(plain.arena);
    }
}

// A convolution of single elements between plain values is a product of plain matrices; others have blocks.
Test(layout_padding, products_of_plain_rows) {
    const struct {
        int64_t channels, kernel, stride;
        bool plain;
    } cases[] = {{16, 1, 1, true}, {19, 1, 1, true}, {16, 1, 2, false}, {16, 3, 1, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        window w = {"single elements",
                    BERTH_OP_CONV,
                    cases[i].channels,
                    1,
                    cases[i].kernel,
                    cases[i].stride,
                    0,
                    1,
                    0,
                    0};
        fixture plain = build(&w), f = build(&w);
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(f.arena, "cpu -vector_bits=256", NULL, &target));
        berth_compile_options options = {
            .target = target, .stop_after = "layout", .no_winograd = true, .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(f.module, &options, &result));
        cr_expect_eq(count(&f, BERTH_OP_RELAYOUT) == 0, cases[i].plain,
                     "%lld channels, %lld by %lld", (long long)cases[i].channels,
                     (long long)cases[i].kernel, (long long)cases[i].stride);
        if (cases[i].plain) {
            berth_tensor wanted, got;
            assert_ok(berth_eval_function(plain.module, plain.main, &plain.image, 1, &wanted, 1,
                                          plain.arena));
            assert_ok(berth_eval_function(f.module, f.main, &f.image, 1, &got, 1, f.arena));
            expect_same(&got, &wanted, w.what);
        }
        berth_arena_destroy(f.arena);
        berth_arena_destroy(plain.arena);
    }
}

// A (transposed) convolution of `channels` rows to `outputs`, up to a pass. One output of a transposed
// one only.
static fixture of_rows(berth_op_kind kind, int64_t channels, int64_t length, int64_t outputs,
                       int64_t kernel, int64_t stride, const char *stop_after) {
    fixture f = {0};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    bool transposed = kind == BERTH_OP_CONV_TRANSPOSE;
    int64_t x_dims[3] = {1, channels, length};
    int64_t w_dims[3] = {transposed ? channels : outputs, transposed ? 1 : channels, kernel};
    f.image = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 3, x_dims);
    berth_tensor_fill_random(&f.image, 3);
    berth_tensor weights = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 3, w_dims);
    berth_tensor_fill_random(&weights, 5);
    berth_type_id type = berth_type_tensor(f.module, BERTH_DTYPE_F32, 3, x_dims);
    berth_value_id inputs[2] = {berth_graph_add_param(f.module, f.main, "x", type),
                                berth_graph_constant(f.module, f.main, 0, &weights, 0)};
    berth_value_id y = berth_graph_op1(f.module, f.main, kind, inputs, 2, 0);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_attrs_set_ints(f.module, &graph->ops.data[graph->values.data[y].op].attrs, "strides",
                         &stride, 1);
    berth_graph_set_results(f.module, f.main, &y, 1);
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f.arena, "cpu -vector_bits=256", NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = stop_after, .verify = true};
    berth_compile_result result;
    assert_ok(berth_compile(f.module, &options, &result));
    return f;
}

// Iterations of the innermost of the loops over the results of a lowered transposed convolution.
static int64_t innermost_results(int64_t length, int64_t kernel, int64_t stride) {
    fixture f = of_rows(BERTH_OP_CONV_TRANSPOSE, 4, length, 1, kernel, stride, "lower");
    int64_t extent = 0;
    for (berth_func_id id = 0; id < f.module->functions.count; ++id) {
        const berth_tfn *fn = berth_tfn_get(f.module, id);
        const char *name = berth_module_str(f.module, f.module->functions.data[id].name);
        if (!fn || !strstr(name, "conv_transpose")) continue;
        berth_stmt at = fn->body;
        while (fn->stmts.data[at].kind == BERTH_STMT_FOR ||
               (fn->stmts.data[at].kind == BERTH_STMT_SEQ && fn->stmts.data[at].count == 1)) {
            const berth_stmt_node *node = &fn->stmts.data[at];
            if (node->kind == BERTH_STMT_FOR) berth_tfn_const_value(fn, node->value, &extent);
            at = node->kind == BERTH_STMT_FOR ? node->body : fn->lists.data[node->first];
        }
    }
    berth_arena_destroy(f.arena);
    return extent;
}

// The longer way along the rows of the result is inside: over the window that a step covers, or over
// steps.
Test(layout_padding, transposed_windows_go_along_the_longer_loop) {
    cr_expect_eq(innermost_results(12, 64, 32), 32);
    cr_expect_eq(innermost_results(100, 64, 32), 101);
}

// Ten copies of a row are less than 32 rows made of blocks again; as many copies of 7 rows are not, and
// short rows are no work for vectors.
Test(layout_padding, few_taps_give_plain_rows) {
    static const struct {
        int64_t channels, length, outputs;
        uint32_t relayouts;
    } cases[] = {{1, 400, 32, 0}, {7, 400, 32, 1}, {1, 100, 32, 1}, {1, 400, 16, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        fixture f = of_rows(BERTH_OP_CONV, cases[i].channels, cases[i].length, cases[i].outputs, 10,
                            5, "layout");
        cr_expect_eq(count(&f, BERTH_OP_RELAYOUT), cases[i].relayouts, "case %zu", i);
        berth_arena_destroy(f.arena);
    }
}

// A module in text, after the layout pass.
static fixture laid_out(const char *text) {
    fixture f = {0};
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test", &f.module));
    assert_ok(berth_target_parse(f.arena, "cpu -vector_bits=256", NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
    assert_ok(berth_compile(f.module, &options, &result));
    f.main = berth_module_find_function(f.module, "main");
    return f;
}

// Regions that read their image about as often as it has elements go into blocks of channels, others do not.
Test(layout_padding, regions_in_blocks_of_channels) {
    const struct {
        int regions, channels, ratio;
        const char *mode;
        uint32_t copies;
    } cases[] = {{13, 16, 2, "avg", 2}, {13, 16, 0, "avg", 2}, {13, 24, 2, "avg", 2},
                 {13, 15, 2, "avg", 2}, {13, 9, 2, "avg", 0},  {2, 16, 2, "avg", 0},
                 {2, 16, 2, "max", 2},  {1, 16, 2, "max", 0},  {3, 16, 1, "avg", 0},
                 {3, 16, 4, "avg", 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\n"
                 "graph @main(%%x: f32[1,%d,30,20], %%rois: f32[%d,4], %%of: i64[%d]) {\n"
                 "  %%y = roi_align(%%x, %%rois, %%of) {output_height = 7, output_width = 7, "
                 "sampling_ratio = %d, mode = \"%s\"}\n"
                 "  return %%y\n}\n",
                 cases[i].channels, cases[i].regions, cases[i].regions, cases[i].ratio,
                 cases[i].mode);
        fixture f = laid_out(text);
        cr_expect_eq(count(&f, BERTH_OP_RELAYOUT), cases[i].copies, "%d regions of %d channels: %u",
                     cases[i].regions, cases[i].channels, count(&f, BERTH_OP_RELAYOUT));
        berth_arena_destroy(f.arena);
    }
}

// Weights that the run has go into blocks where a weight is used more than a few times: inputs that fill no block
// come plain, outputs that do not are padded.
Test(layout_padding, weights_of_the_run_in_blocks) {
    const struct {
        int inputs, outputs, size;
        uint32_t copies;
    } cases[] = {{16, 32, 7, 3}, {24, 16, 4, 3}, {15, 32, 7, 2},
                 {16, 30, 7, 3}, {16, 7, 7, 0},  {16, 32, 3, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\n"
                 "graph @main(%%x: f32[1,%d,%d,%d], %%w: f32[%d,%d,3,3]) {\n"
                 "  %%y = conv(%%x, %%w, _)\n  return %%y\n}\n",
                 cases[i].inputs, cases[i].size, cases[i].size, cases[i].outputs, cases[i].inputs);
        fixture f = laid_out(text);
        cr_expect_eq(count(&f, BERTH_OP_RELAYOUT), cases[i].copies, "%d to %d channels: %u",
                     cases[i].inputs, cases[i].outputs, count(&f, BERTH_OP_RELAYOUT));
        berth_arena_destroy(f.arena);
    }
}
