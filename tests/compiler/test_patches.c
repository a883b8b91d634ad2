// Patches compute what the whole computes: random stages before and after, by the reference
// interpreter.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "compiler/passes/fold.h"
#include "compiler/passes/patches.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "ir/pass.h"
#include "tests/check.h"

enum { seed_count = 12, layers = 7, tried = 6 };

typedef struct stages {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t seed, state;
    bool integers;
    int64_t dims[4];       // of x
    berth_value_id x;      // the last value
    berth_value_id saved;  // one before it, of the same shape; BERTH_NONE = none
    int count;
} stages;

static int64_t draw(stages *s, int64_t low, int64_t high) {
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)(s->state >> 33) % (high - low + 1);
}

static berth_value_id constant(stages *s, berth_dtype dtype, int rank, const int64_t *dims,
                               int64_t low, int64_t high) {
    berth_tensor tensor = berth_tensor_create(s->arena, dtype, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i)
        if (berth_dtype_is_float(dtype))
            berth_tensor_set_f64(&tensor, i, (double)draw(s, low, high) / 64);
        else
            berth_tensor_set_i64(&tensor, i, draw(s, low, high));
    return berth_graph_constant(s->module, s->main, 0, &tensor, 0);
}

static berth_value_id add(stages *s, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count, const berth_attrs *attrs) {
    char name[16];
    berth_op_id op = berth_graph_add_op(s->module, s->main, 0, kind, inputs, count, 1, 0);
    berth_graph *graph = berth_graph_get(s->module, s->main);
    if (attrs) graph->ops.data[op].attrs = *attrs;
    berth_value_id y = graph->ops.data[op].outputs[0];
    snprintf(name, sizeof(name), "v%d", s->count++);
    graph->values.data[y].name = berth_module_intern(s->module, name);
    return y;
}

// A window that has at least one place; sets the extents that it leaves.
static berth_attrs window(stages *s, bool pool, int64_t kernel[2]) {
    berth_attrs attrs = {0};
    int64_t strides[2], dilations[2], pads[4];
    for (int i = 0; i < 2; ++i) {
        int64_t *extent = &s->dims[2 + i];
        kernel[i] = draw(s, 1, 3);
        dilations[i] = pool ? 1 : draw(s, 1, 2);
        int64_t span = (kernel[i] - 1) * dilations[i] + 1;
        pads[i] = span > 1 ? draw(s, 0, kernel[i] - 1) : 0;
        pads[2 + i] = span > 1 ? draw(s, 0, kernel[i] - 1) : 0;
        strides[i] = *extent > 8 ? draw(s, 1, 2) : 1;
        if (*extent + pads[i] + pads[2 + i] < span + 4) {
            kernel[i] = dilations[i] = span = 1;
            pads[i] = pads[2 + i] = 0;
        }
        *extent = (*extent + pads[i] + pads[2 + i] - span) / strides[i] + 1;
    }
    berth_attrs_set_ints(s->module, &attrs, "kernel_shape", kernel, 2);
    berth_attrs_set_ints(s->module, &attrs, "strides", strides, 2);
    berth_attrs_set_ints(s->module, &attrs, "pads", pads, 4);
    if (!pool) berth_attrs_set_ints(s->module, &attrs, "dilations", dilations, 2);
    return attrs;
}

static void add_convolution(stages *s, bool depthwise) {
    int64_t kernel[2], before = s->dims[1], after = depthwise ? before : draw(s, 2, 6);
    berth_attrs attrs = window(s, false, kernel);
    if (depthwise) berth_attrs_set_int(s->module, &attrs, "group", before);
    int64_t dims[4] = {after, depthwise ? 1 : before, kernel[0], kernel[1]};
    s->dims[1] = after;
    if (!s->integers) {
        berth_value_id inputs[] = {s->x, constant(s, BERTH_DTYPE_F32, 4, dims, -64, 64),
                                   constant(s, BERTH_DTYPE_F32, 1, &after, -64, 64)};
        s->x = add(s, BERTH_OP_CONV, inputs, 3, &attrs);
        return;
    }
    berth_value_id zero = constant(s, BERTH_DTYPE_U8, 0, NULL, 100, 156);
    berth_value_id inputs[] = {s->x, constant(s, BERTH_DTYPE_I8, 4, dims, -127, 127), zero};
    s->x = add(s, BERTH_OP_CONV_INTEGER, inputs, 3, &attrs);
    berth_attrs to = {0};
    berth_attrs_set(s->module, &to, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = BERTH_DTYPE_F32});
    s->x = add(s, BERTH_OP_CAST, &s->x, 1, &to);
    berth_value_id quantised[] = {s->x, constant(s, BERTH_DTYPE_F32, 0, NULL, 6400, 12800),
                                  constant(s, BERTH_DTYPE_U8, 0, NULL, 100, 156)};
    s->x = add(s, BERTH_OP_QUANTIZE_LINEAR, quantised, 3, NULL);
}

static void add_pool(stages *s) {
    int64_t kernel[2];
    bool average = !s->integers && draw(s, 0, 1);
    berth_attrs attrs = window(s, true, kernel);
    if (average) berth_attrs_set_int(s->module, &attrs, "count_include_pad", draw(s, 0, 1));
    s->x = add(s, average ? BERTH_OP_AVERAGE_POOL : BERTH_OP_MAX_POOL, &s->x, 1, &attrs);
}

// Beside or over the value that was kept.
static void join(stages *s, bool beside) {
    berth_value_id inputs[] = {s->x, s->saved};
    berth_attrs axis = {0};
    berth_attrs_set_int(s->module, &axis, "axis", 1);
    if (beside || s->integers) {
        s->x = add(s, BERTH_OP_CONCAT, inputs, 2, &axis);
        s->dims[1] *= 2;
    } else {
        s->x = add(s, BERTH_OP_ADD, inputs, 2, NULL);
    }
    s->saved = BERTH_NONE;
}

static berth_status build(void *user) {
    stages *s = user;
    int64_t dims[4] = {1, 3, draw(s, 12, 30), draw(s, 8, 16)}, kept[4] = {0};
    memcpy(s->dims, dims, sizeof(dims));
    s->module = berth_module_create(s->arena, "stages");
    s->main = berth_graph_create(s->module, "main", 0);
    berth_dtype dtype = s->integers ? BERTH_DTYPE_U8 : BERTH_DTYPE_F32;
    s->x = berth_graph_add_param(s->module, s->main, "image",
                                 berth_type_tensor(s->module, dtype, 4, dims));
    s->saved = BERTH_NONE;
    for (int i = 0; i < layers; ++i) {
        if (s->saved != BERTH_NONE && memcmp(kept, s->dims, sizeof(kept)) == 0 && draw(s, 0, 1))
            join(s, draw(s, 0, 1));
        if (draw(s, 0, 2) == 0 && i > 0) {
            s->saved = s->x;
            memcpy(kept, s->dims, sizeof(kept));
        }
        int64_t kind = draw(s, 0, 5);
        if (kind < 3)
            add_convolution(s, false);
        else if (kind == 3)
            add_convolution(s, true);
        else if (kind == 4)
            add_pool(s);
        else
            s->x = add(s, s->integers ? BERTH_OP_IDENTITY : BERTH_OP_RELU, &s->x, 1, NULL);
    }
    berth_graph_set_results(s->module, s->main, &s->x, 1);
    return berth_pass_fold(s->module, s->main, &(berth_fold_options){.keep_quantized = true});
}

static stages make(berth_arena *arena, uint64_t seed, bool integers) {
    stages s = {.arena = arena, .seed = seed, .state = seed * 7919 + 11, .integers = integers};
    assert_ok(berth_arena_try(arena, build, &s));
    return s;
}

static berth_tensor run(stages *s) {
    const berth_graph *graph = berth_graph_get(s->module, s->main);
    const berth_type *type =
        berth_type_get(s->module, graph->values.data[graph->regions.data[0].params.data[0]].type);
    berth_tensor x = berth_tensor_create(s->arena, type->dtype, 4, type->dims), y;
    uint64_t state = s->state;
    s->state = s->seed + 3;
    for (int64_t i = 0; i < berth_tensor_element_count(&x); ++i)
        if (s->integers)
            berth_tensor_set_i64(&x, i, draw(s, 0, 255));
        else
            berth_tensor_set_f64(&x, i, (double)draw(s, -64, 64) / 64);
    s->state = state;
    assert_ok(berth_eval_function(s->module, s->main, &x, 1, &y, 1, s->arena));
    return y;
}

typedef struct patch_job {
    stages *s;
    const berth_patch_candidate *candidates;
    uint32_t count;
    berth_patch_choice choice;
    berth_patch_candidate done;
} patch_job;

static berth_status list(void *user) {
    patch_job *j = user;
    berth_patch_candidates(j->s->module, j->s->main, BERTH_PATCH_ANY, j->s->arena, &j->candidates,
                           &j->count);
    return BERTH_OK;
}

static berth_status apply(void *user) {
    patch_job *j = user;
    return berth_pass_patches(j->s->module, j->s->main, &j->choice, &j->done);
}

static void expect_same(const berth_tensor *a, const berth_tensor *b, uint64_t seed,
                        const berth_patch_choice *choice) {
    cr_assert_eq(berth_tensor_element_count(a), berth_tensor_element_count(b));
    for (int64_t i = 0; i < berth_tensor_element_count(a); ++i) {
        double x = berth_tensor_get_f64(a, i), y = berth_tensor_get_f64(b, i);
        double room = berth_dtype_is_float(a->dtype) ? 1e-5 * (1 + (x < 0 ? -x : x)) : 0;
        cr_assert(x - y <= room && y - x <= room,
                  "seed %llu, %s..%s=%ux%u, element %lld: %g, not %g", (unsigned long long)seed,
                  choice->after ? choice->after : "", choice->node, choice->rows, choice->columns,
                  (long long)i, y, x);
    }
}

// How many choices there were, and how many of those that were tried have columns, or begin after a value.
typedef struct seen {
    uint32_t choices, tiles, middles;
} seen;

// One of the list that is not tried yet, of tiles or in the middle; count = none.
static uint32_t find_other(const patch_job *listed, bool tiles) {
    uint32_t i = 0;
    while (i < listed->count && !(tiles ? listed->candidates[i].choice.columns > 1
                                        : listed->candidates[i].choice.after != NULL))
        ++i;
    return i;
}

static void check(uint64_t seed, bool integers, seen *all) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    stages whole = make(arena, seed, integers);
    berth_tensor expected = run(&whole);
    patch_job listed = {.s = &whole};
    assert_ok(berth_arena_try(arena, list, &listed));
    all->choices += listed.count;
    for (uint32_t i = 0; i < listed.count && i < tried + 2; ++i) {
        // From both ends of the list: the least work, and the lowest peak; then one of each form.
        uint32_t at = i % 2 ? listed.count - 1 - i / 2 : i / 2;
        if (i >= tried) at = find_other(&listed, i == tried);
        if (at == listed.count) continue;
        all->tiles += listed.candidates[at].choice.columns > 1;
        all->middles += listed.candidates[at].choice.after != NULL;
        stages s = make(arena, seed, integers);
        patch_job job = {.s = &s, .choice = listed.candidates[at].choice};
        assert_ok(berth_arena_try(arena, apply, &job));
        assert_ok(berth_module_verify(s.module));
        cr_expect_eq(job.done.choice.rows, job.choice.rows);
        cr_expect_eq(job.done.choice.columns, job.choice.columns);
        // Rows that no window reads are left out.
        cr_expect_gt(job.done.extra_work, -1);
        berth_tensor got = run(&s);
        expect_same(&expected, &got, seed, &job.choice);
    }
    berth_arena_destroy(arena);
}

static int seeds[seed_count];

static struct criterion_test_params all_seeds(void) {
    for (int i = 0; i < seed_count; ++i) seeds[i] = i;
    return cr_make_param_array(int, seeds, seed_count);
}

ParameterizedTestParameters(patches, random_stages_compute_the_same) {
    return all_seeds();
}

ParameterizedTest(int *seed, patches, random_stages_compute_the_same, .timeout = 120) {
    enum { each = 8 };
    seen all = {0};
    for (int i = 0; i < each; ++i) {
        check((uint64_t)(*seed * each + i), false, &all);
        check((uint64_t)(*seed * each + i), true, &all);
    }
    cr_expect_gt(all.choices, 0);
    cr_expect_gt(all.tiles, 0);
    cr_expect_gt(all.middles, 0);
}

Test(patches, a_choice_that_is_none_is_refused_with_what_there_is) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    stages s = make(arena, 1, false);
    patch_job job = {.s = &s, .choice = {NULL, "nothing", 2, 1}};
    assert_fails(berth_arena_try(arena, apply, &job), BERTH_NOT_FOUND, "they can end at \"v");
    patch_job listed = {.s = &s};
    assert_ok(berth_arena_try(arena, list, &listed));
    cr_assert_gt(listed.count, 0);
    job.choice = (berth_patch_choice){NULL, listed.candidates[0].choice.node, 1000, 1};
    assert_fails(berth_arena_try(arena, apply, &job), BERTH_OUT_OF_RANGE, "rows and ");
    berth_arena_destroy(arena);
}

// The value in front of the peak is whole: what was computed for it is not computed again.
Test(patches, a_region_in_the_middle_leaves_what_is_before_it_as_it_was) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    uint32_t middles = 0;
    for (uint64_t seed = 0; seed < 32; ++seed) {
        stages s = make(arena, seed, false);
        patch_job listed = {.s = &s};
        assert_ok(berth_arena_try(arena, list, &listed));
        uint32_t at = find_other(&listed, false);
        if (at == listed.count) continue;
        patch_job job = {.s = &s, .choice = listed.candidates[at].choice};
        const char *after = job.choice.after;
        assert_ok(berth_arena_try(arena, apply, &job));
        const berth_graph *graph = berth_graph_get(s.module, s.main);
        const berth_region *root = &graph->regions.data[0];
        uint32_t made = 0;
        for (uint32_t i = 0; i < root->ops.count; ++i) {
            const berth_op *op = &graph->ops.data[root->ops.data[i]];
            made += op->output_count == 1 &&
                    strcmp(berth_module_str(s.module, graph->values.data[op->outputs[0]].name),
                           after) == 0;
        }
        cr_expect_eq(made, 1, "seed %llu: \"%s\" is made %u times", (unsigned long long)seed, after,
                     made);
        ++middles;
    }
    cr_expect_gt(middles, 0);
    berth_arena_destroy(arena);
}

// Estimates of one form are compared, and not across forms: a choice stays that only one of another form beats
// clearly, in peak and in work.
static bool is_beaten_by_another_form(const patch_job *listed, uint32_t at) {
    const berth_patch_candidate *c = &listed->candidates[at];
    for (uint32_t i = 0; i < at; ++i) {
        const berth_patch_candidate *less = &listed->candidates[i];  // in work: it is before it
        if (berth_patch_form(&less->choice) != berth_patch_form(&c->choice) &&
            c->peak_bytes > less->peak_bytes + less->peak_bytes / 4)
            return true;
    }
    return false;
}

Test(patches, every_form_keeps_its_choices) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    uint32_t beaten = 0;
    for (uint64_t seed = 0; seed < 32; ++seed) {
        stages s = make(arena, seed, false);
        patch_job listed = {.s = &s};
        assert_ok(berth_arena_try(arena, list, &listed));
        for (uint32_t i = 0; i < listed.count; ++i) beaten += is_beaten_by_another_form(&listed, i);
    }
    cr_expect_gt(beaten, 0u);
    berth_arena_destroy(arena);
}

Test(patches, a_choice_has_a_text_that_says_the_same) {
    static const struct {
        const char *text, *node;
        uint32_t rows, columns;
    } good[] = {{"a=2", "a", 2, 1},
                {"a..b=4x3", "a..b", 4, 3},
                {"a=b=1x2", "a=b", 1, 2},
                {"x.y..z=10", "x.y..z", 10, 1}};
    static const char *const bad[] = {"a",    "=2",    "a=",      "a=1",  "a=1x1", "a=x2",
                                      "a=2x", "a=0x4", "a=2x3x4", "a=-2", "a=2 ",  "a=1000000000"};
    berth_arena *arena = NULL;
    berth_patch_choice choice;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        cr_assert(berth_patch_choice_parse(arena, good[i].text, &choice));
        cr_expect_str_eq(choice.node, good[i].node);
        cr_expect_eq(choice.rows, good[i].rows);
        cr_expect_eq(choice.columns, good[i].columns);
        cr_expect_str_eq(berth_patch_choice_text(arena, &choice), good[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
        cr_expect_not(berth_patch_choice_parse(arena, bad[i], &choice), "%s", bad[i]);
    berth_arena_destroy(arena);
}
