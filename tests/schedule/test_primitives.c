// Every transformation of a nest computes what the nest computed before, or refuses: under the
// interpreter.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/schedule/support.h"

#define TOLERANCE 1e-5

typedef berth_status (*transform)(berth_tfn *fn, berth_nest *nest);

static berth_status split(berth_tfn *fn, berth_nest *nest) {
    return berth_schedule_split(fn, nest, 1, 4);
}
static berth_status fuse(berth_tfn *fn, berth_nest *nest) {
    nest->loops[1].kind = nest->loops[0].kind;
    return berth_schedule_fuse(fn, nest, 0);
}
static berth_status reorder(berth_tfn *fn, berth_nest *nest) {
    return berth_schedule_reorder(fn, nest, 1, 0);
}
static berth_status parallel(berth_tfn *fn, berth_nest *nest) {
    return berth_schedule_parallel(fn, nest, 1);
}
static berth_status unroll(berth_tfn *fn, berth_nest *nest) {
    return berth_schedule_unroll(fn, nest, 1);
}
static berth_status tile_rows(berth_tfn *fn, berth_nest *nest) {
    BERTH_TRY(berth_schedule_split(fn, nest, 0, 3));
    BERTH_TRY(berth_schedule_split(fn, nest, 2, 8));
    BERTH_TRY(berth_schedule_reorder(fn, nest, 1, 2));
    return berth_schedule_register_tile(fn, nest, 2, 8, 0);
}
static berth_status tile_columns(berth_tfn *fn, berth_nest *nest) {
    BERTH_TRY(berth_schedule_split(fn, nest, 0, 3));
    BERTH_TRY(berth_schedule_split(fn, nest, 2, 8));
    return berth_schedule_register_tile(fn, nest, 3, 8, 0);
}
static berth_status tile_scalars(berth_tfn *fn, berth_nest *nest) {
    BERTH_TRY(berth_schedule_split(fn, nest, 0, 3));
    BERTH_TRY(berth_schedule_split(fn, nest, 2, 4));
    BERTH_TRY(berth_schedule_split(fn, nest, 3, 1));
    BERTH_TRY(berth_schedule_reorder(fn, nest, 1, 2));
    return berth_schedule_register_tile(fn, nest, 3, 1, 0);
}

static const struct {
    const char *name;
    transform apply;
} transforms[] = {{"split", split},
                  {"fuse", fuse},
                  {"reorder", reorder},
                  {"parallel", parallel},
                  {"unroll", unroll},
                  {"tile rows", tile_rows},
                  {"tile columns", tile_columns},
                  {"tile scalars", tile_scalars}};
#define TRANSFORMS ((int)(sizeof(transforms) / sizeof(transforms[0])))

static const int64_t shapes[][3] = {{6, 5, 16}, {9, 1, 24}, {3, 17, 32}};

ParameterizedTestParameters(primitives, keep_the_result) {
    static int indices[24];
    for (int i = 0; i < 3 * TRANSFORMS; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, (size_t)(3 * TRANSFORMS));
}

ParameterizedTest(int *index, primitives, keep_the_result) {
    const int64_t *s = shapes[*index % 3];
    int which = *index / 3;
    bench_case c = support_case_create();
    support_build_matmul(&c, s[0], s[1], s[2], "");
    support_fill(&c, 11);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    float *plain = c.buffers[3];
    berth_nest nest;
    cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
    cr_assert_eq(nest.count, 2);
    status = transforms[which].apply(c.fn, &nest);
    cr_assert(!status, "%s: %s", transforms[which].name, berth_status_message(status));
    berth_stmt stmt = berth_nest_emit(c.fn, &nest);
    c.fn->body = berth_tfn_seq(c.fn, &stmt, 1);
    status = support_interpret(&c);
    cr_assert(!status, "%s: %s", transforms[which].name, berth_status_message(status));
    double difference = support_difference(c.buffers[3], plain, c.element_counts[3]);
    cr_expect(difference < TOLERANCE, "%s differs by %g", transforms[which].name, difference);
    support_case_destroy(&c);
}

Test(primitives, peel_covers_all_iterations) {
    for (int64_t at = 0; at <= 6; at += 2) {
        bench_case c = support_case_create();
        support_build_matmul(&c, 6, 5, 16, "");
        support_fill(&c, 3);
        cr_assert(!support_interpret(&c));
        float *plain = c.buffers[3];
        berth_nest nest;
        berth_nest rest;
        cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
        cr_assert(!berth_schedule_peel(c.fn, &nest, 0, at, &rest));
        berth_stmt both[] = {berth_nest_emit(c.fn, &nest), berth_nest_emit(c.fn, &rest)};
        c.fn->body = berth_tfn_seq(c.fn, both, 2);
        cr_assert(!support_interpret(&c));
        cr_expect(support_difference(c.buffers[3], plain, c.element_counts[3]) == 0);
        support_case_destroy(&c);
    }
}

// y[i] = x[i] * 2 + 1 (or y[i] = y[i - 1]: iterations that depend on each other)
static void build_elementwise(bench_case *c, int64_t n, bool dependent) {
    berth_tfn *fn = c->fn;
    berth_buf x = support_param(c, "x", 1, &n, "", BERTH_ROLE_IN);
    berth_buf y = support_param(c, "y", 1, &n, "", BERTH_ROLE_OUT);
    berth_var i = berth_tfn_var(fn, "i");
    berth_expr at = berth_tfn_var_ref(fn, i);
    berth_expr value = berth_tfn_load(fn, dependent ? y : x, &at, 1);
    value = berth_tfn_fma(fn, value, berth_tfn_float(fn, BERTH_DTYPE_F32, 2),
                          berth_tfn_float(fn, BERTH_DTYPE_F32, 1));
    berth_stmt body = berth_tfn_for(fn, i, berth_tfn_index(fn, n), BERTH_LOOP_SERIAL,
                                    berth_tfn_store(fn, y, &at, 1, value));
    fn->body = berth_tfn_seq(fn, &body, 1);
}

Test(primitives, vectorize) {
    bench_case c = support_case_create();
    build_elementwise(&c, 8, false);
    support_fill(&c, 5);
    cr_assert(!support_interpret(&c));
    float *plain = c.buffers[1];
    berth_nest nest;
    cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
    berth_status status = berth_schedule_vectorize(c.fn, &nest);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_eq(nest.count, 0);
    c.fn->body = nest.body;
    cr_assert(!support_interpret(&c));
    cr_expect(support_difference(c.buffers[1], plain, 8) == 0);
    support_case_destroy(&c);
}

static void expect_refusal(berth_status status) {
    cr_expect_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION);
    berth_status_free(status);
}

Test(primitives, refuse_what_is_not_legal) {
    bench_case c = support_case_create();
    support_build_matmul(&c, 6, 5, 16, "");
    berth_nest nest;
    cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
    berth_nest rest;
    expect_refusal(berth_schedule_split(c.fn, &nest, 0, 4));  // 4 does not divide 6
    expect_refusal(berth_schedule_split(c.fn, &nest, 7, 2));  // no such loop
    expect_refusal(berth_schedule_fuse(c.fn, &nest, 1));      // nothing inside
    expect_refusal(berth_schedule_unroll(c.fn, &nest, 0));    // not innermost
    expect_refusal(berth_schedule_peel(c.fn, &nest, 0, 7, &rest));
    expect_refusal(berth_schedule_register_tile(c.fn, &nest, 2, 8, 0));  // 16 iterations, 8 lanes
    support_case_destroy(&c);

    c = support_case_create();
    build_elementwise(&c, 8, true);
    cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
    expect_refusal(berth_schedule_parallel(c.fn, &nest, 0));
    expect_refusal(berth_schedule_vectorize(c.fn, &nest));
    support_case_destroy(&c);
}

Test(primitives, interpreter_reports_accesses_outside) {
    bench_case c = support_case_create();
    build_elementwise(&c, 8, false);
    support_fill(&c, 1);
    c.fn->bufs.data[0].dims[0] = 7;
    berth_status status = support_interpret(&c);
    cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_RANGE);
    cr_expect(strstr(berth_status_message(status), "x"), "%s", berth_status_message(status));
    berth_status_free(status);
    support_case_destroy(&c);
}
