// non_max_suppression of more boxes than are compared at once.
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "tests/check.h"

enum { distinct = 40, boxes = 2 * distinct };

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    berth_tensor corners, scores;
    double most, overlap, least_score;
} fixture;

static berth_value_id number(fixture *f, berth_dtype dtype, double value) {
    berth_tensor tensor = berth_tensor_create(f->arena, dtype, 0, NULL);
    berth_tensor_set_f64(&tensor, 0, value);
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

// Box i, and box distinct + i again, is [0, i] to [1, i + 1.5]: neighbours share a fifth of their union, others nothing.
// Scores fall from 80 to 1.
static berth_status build(void *user) {
    fixture *f = user;
    f->module = berth_module_create(f->arena, "boxes");
    f->main = berth_graph_create(f->module, "main", 0);
    f->corners = berth_tensor_create(f->arena, BERTH_DTYPE_F32, 3, (int64_t[]){1, boxes, 4});
    f->scores = berth_tensor_create(f->arena, BERTH_DTYPE_F32, 3, (int64_t[]){1, 1, boxes});
    for (int i = 0; i < boxes; ++i) {
        const double corners[4] = {0, i % distinct, 1, i % distinct + 1.5};
        for (int k = 0; k < 4; ++k) berth_tensor_set_f64(&f->corners, i * 4 + k, corners[k]);
        berth_tensor_set_f64(&f->scores, i, boxes - i);
    }
    berth_value_id inputs[5] = {berth_graph_constant(f->module, f->main, 0, &f->corners, 0),
                                berth_graph_constant(f->module, f->main, 0, &f->scores, 0),
                                number(f, BERTH_DTYPE_I64, f->most),
                                number(f, BERTH_DTYPE_F32, f->overlap),
                                number(f, BERTH_DTYPE_F32, f->least_score)};
    berth_value_id y =
        berth_graph_op1(f->module, f->main, BERTH_OP_NON_MAX_SUPPRESSION, inputs, 5, 0);
    berth_graph_set_results(f->module, f->main, &y, 1);
    return BERTH_OK;
}

// The boxes that are kept are 0, step, 2 * step, ... , `count` of them.
static void expect_kept(double most, double overlap, double least_score, int count, int step) {
    fixture f = {.most = most, .overlap = overlap, .least_score = least_score};
    berth_tensor kept;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_arena_try(f.arena, build, &f));
    assert_ok(berth_eval_function(f.module, f.main, NULL, 0, &kept, 1, f.arena));
    cr_assert_eq(kept.dims[0], count);
    for (int i = 0; i < count; ++i) cr_expect_eq(berth_tensor_get_i64(&kept, i * 3 + 2), i * step);
    berth_arena_destroy(f.arena);
}

Test(suppression, of_many_boxes) {
    expect_kept(100, 0.1, 0, 20, 2);   // every other one, and none of the copies
    expect_kept(100, 0.3, 0, 40, 1);   // neighbours may share so much
    expect_kept(17, 0.3, 0, 17, 1);    // no more than asked for
    expect_kept(100, 0.1, 60, 10, 2);  // those of a score above 60: boxes 0 to 19
    expect_kept(100, 1, 0, 80, 1);     // copies share all of it, which is not more than 1
}
