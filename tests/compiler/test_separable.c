// Interpolation along several axes becomes one along each where that computes less (passes/separable.h).
#include <math.h>

#include "compiler/passes/fold.h"
#include "compiler/passes/simplify.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct resizing {
    const char *what;
    const char *x;  // type of the input
    const char *attributes;
    const char *operands;  // scales, sizes
    uint32_t resizes;      // afterwards
} resizing;

#define SIZES(...) "%s = constant() {value = i64" __VA_ARGS__ "}\n %y = resize(%x, _, _, %s) "
#define SCALES(...) "%s = constant() {value = f32" __VA_ARGS__ "}\n %y = resize(%x, _, %s) "
#define REGION "%r = constant() {value = f32[8] (0, 0, 0.1, 0.2, 1, 1, 0.9, 1.1)}\n"

static const resizing cases[] = {
    {"antialiased", "f32[1,2,48,40]", "mode = \"linear\", antialias = 1",
     SIZES("[4] (1, 2, 16, 10)"), 2},
    {"cubic, larger", "f32[1,2,6,5]", "mode = \"cubic\"", SIZES("[4] (1, 2, 12, 15)"), 2},
    {"cubic, by scales", "f32[1,2,6,5]", "mode = \"cubic\"", SCALES("[4] (1, 1, 2.3, 1.7)"), 2},
    {"cubic, without what is outside", "f32[1,2,9,8]",
     "mode = \"cubic\", exclude_outside = 1, antialias = 1", SCALES("[4] (1, 1, 0.4, 0.6)"), 2},
    {"one larger, one smaller", "f32[1,1,6,40]", "mode = \"cubic\", antialias = 1",
     SIZES("[4] (1, 1, 18, 10)"), 2},
    {"listed axes", "f32[1,20,3,16]", "mode = \"linear\", antialias = 1, axes = [-1, 1]",
     SIZES("[2] (4, 5)"), 2},
    {"three axes", "f32[1,12,12,12]",
     "mode = \"cubic\", coordinate_transformation_mode = \"align_corners\"",
     SIZES("[4] (1, 6, 8, 9)"), 3},
    {"one axis", "f32[1,2,48,40]", "mode = \"linear\", antialias = 1", SIZES("[4] (1, 2, 16, 40)"),
     1},
    {"two taps each", "f32[1,2,8,8]", "mode = \"linear\"", SIZES("[4] (1, 2, 16, 16)"), 1},
    {"nearest", "f32[1,2,48,40]", "mode = \"nearest\"", SIZES("[4] (1, 2, 16, 10)"), 1},
    {"integers would be rounded twice", "u8[1,2,48,40]", "mode = \"linear\", antialias = 1",
     SIZES("[4] (1, 2, 16, 10)"), 1},
    {"one scale for both", "f32[1,2,48,40]",
     "mode = \"linear\", antialias = 1, axes = [2, 3], keep_aspect_ratio_policy = \"not_larger\"",
     SIZES("[2] (16, 10)"), 1},
    {"a region", "f32[1,2,48,40]",
     "mode = \"cubic\", coordinate_transformation_mode = \"tf_crop_and_resize\"",
     REGION "%s = constant() {value = i64[4] (1, 2, 16, 10)}\n %y = resize(%x, %r, _, %s) ", 1},
};

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} fixture;

static berth_status fold(void *user) {
    const fixture *f = user;
    return berth_pass_fold(f->module, f->main, NULL);
}

static berth_status simplify(void *user) {
    const fixture *f = user;
    return berth_simplify(f->module, f->main, NULL);
}

static fixture build(const resizing *r) {
    fixture f = {.arena = NULL};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    char *text = berth_arena_printf(
        f.arena, "module \"m\"\ngraph @main(%%x: %s) {\n %s {%s}\n  return %%y\n}\n", r->x,
        r->operands, r->attributes);
    assert_ok(berth_module_parse(f.arena, text, strlen(text), r->what, &f.module));
    f.main = berth_module_find_function(f.module, "main");
    assert_ok(berth_arena_try(f.arena, fold, &f));
    return f;
}

static uint32_t resizes(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t found = 0;
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i)
        found += graph->ops.data[graph->regions.data[0].ops.data[i]].kind == BERTH_OP_RESIZE;
    return found;
}

static void eval(const fixture *f, berth_tensor *out) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_type *type =
        berth_type_get(f->module, graph->values.data[graph->regions.data[0].params.data[0]].type);
    berth_tensor x = berth_tensor_create(f->arena, type->dtype, type->rank, type->dims);
    berth_tensor_fill_random(&x, 3);
    assert_ok(berth_eval_function(f->module, f->main, &x, 1, out, 1, f->arena));
}

Test(separable, computes_the_same_axis_by_axis) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        fixture f = build(&cases[i]);
        berth_tensor before, after;
        eval(&f, &before);
        assert_ok(berth_arena_try(f.arena, simplify, &f));
        cr_expect_eq(resizes(&f), cases[i].resizes, "%s: %u", cases[i].what, resizes(&f));
        eval(&f, &after);
        cr_assert(berth_tensor_same_shape(&before, &after), "%s", cases[i].what);
        for (int64_t k = 0; k < berth_tensor_element_count(&before); ++k) {
            double a = berth_tensor_get_f64(&before, k), b = berth_tensor_get_f64(&after, k);
            cr_assert(fabs(a - b) <= 2e-6 * fmax(1, fabs(a)), "%s: [%lld] is %g, not %g",
                      cases[i].what, (long long)k, b, a);
        }
        berth_arena_destroy(f.arena);
    }
}
