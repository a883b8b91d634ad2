// Rows shorter than a register, one in each lane: what they hold is computed in vectors, and is what the plain loops
// compute, by interpreter and on this machine, whatever is left over of the rows.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static const char wide[] = "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512";
static const char narrow[] = "cpu -features=avx2,fma -vector_bits=256";

// The widest vector that a function stores.
static int widest(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int most = 1;
    if (!id) return most;
    if (node->kind == BERTH_STMT_STORE) return fn->exprs.data[node->value].lanes;
    if (node->kind == BERTH_STMT_FOR) return widest(fn, node->body);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i) {
        int lanes = widest(fn, fn->lists.data[node->first + i]);
        if (lanes > most) most = lanes;
    }
    return most;
}

// y[i, j, ..] of rows x[i, j, ..] of `width`: `loop` with %r around, then `last`.
static bench_case build(const char *body, int outer, int inner, int width) {
    char text[2048], shape[64];
    snprintf(shape, sizeof(shape), "f32[%d,%d,%d]", outer, inner, width);
    snprintf(text, sizeof(text),
             "module \"m\"\ntensor @f(%%x: %s in, %%y: %s out) {\n"
             "  parallel %%i in %d { parallel %%j in %d {\n",
             shape, shape, outer, inner);
    for (size_t n = strlen(text); *body && n + 16 < sizeof(text); ++body) {
        if (*body == 'W')
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%d", width);
        else
            text[n++] = *body, text[n] = 0;
    }
    strcat(text, "  } }\n}\n");
    return support_case_parse(text);
}

static const char exponentials[] =
    "    register %acc: f32[]\n    %acc[] = 0.0\n    private %row: f32[W]\n"
    "    for %r in W { %row[%r] = exp(%x[%i, %j, %r])\n%acc[] = %acc[] + %row[%r]\n }\n"
    "    %acc[] = 1.0 / %acc[]\n"
    "    for %r in W { %y[%i, %j, %r] = %row[%r] * %acc[] }\n";
static const char maxima[] = "    register %acc: f32[]\n    %acc[] = -2.0\n"
                             "    for %r in W { %acc[] = max(%acc[], %x[%i, %j, %r]) }\n"
                             "    for %r in W { %y[%i, %j, %r] = %x[%i, %j, %r] - %acc[] }\n";
static const char sums[] =
    "    register %acc: f32[]\n    %acc[] = 0.0\n"
    "    for %r in W { %acc[] = fma(%x[%i, %j, %r], %x[%i, %j, %r], %acc[]) }\n"
    "    for %r in W { %y[%i, %j, %r] = %x[%i, %j, %r] * %acc[] }\n";
// Elements that lie in a border ask where they are.
static const char bordered[] =
    "    register %acc: f32[]\n    %acc[] = 0.0\n"
    "    for %r in W { %acc[] = %acc[] + exp(select(%j >= 1, %x[%i, %j, %r], 0.0)) }\n"
    "    for %r in W { %y[%i, %j, %r] = %acc[] }\n";

static const struct {
    const char *body;
    int outer, inner, width;
    int lanes[2];  // for `wide` and `narrow`
} cases[] = {
    {exponentials, 16, 1, 5, {16, 8}},  {exponentials, 41, 2, 6, {16, 8}},
    {exponentials, 3, 50, 13, {16, 8}}, {exponentials, 40, 1, 8, {16, 8}},
    {exponentials, 40, 1, 4, {1, 1}},   {exponentials, 3, 1, 6, {1, 1}},
    {maxima, 37, 1, 7, {16, 8}},        {maxima, 40, 1, 8, {1, 8}},
    {sums, 23, 3, 9, {16, 8}},          {sums, 23, 3, 7, {16, 1}},
    {sums, 40, 1, 8, {1, 8}},           {bordered, 5, 20, 6, {1, 1}},
};

Test(short_rows, a_row_in_each_lane) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        for (int t = 0; t < 2; ++t) {
            const char *target = t ? narrow : wide;
            bench_case c = build(cases[i].body, cases[i].outer, cases[i].inner, cases[i].width);
            int64_t count = c.element_counts[1];
            support_fill(&c, 5);
            cr_assert_null(support_interpret(&c));
            float *plain = berth_arena_new_array(c.arena, float, count);
            memcpy(plain, c.buffers[1], (size_t)count * sizeof(float));
            cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, target)));
            int lanes = widest(c.fn, c.fn->body);
            cr_expect_eq(lanes, cases[i].lanes[t], "case %zu for %s: %d", i, target, lanes);
            cr_assert_null(support_interpret(&c));
            cr_expect_lt(support_difference(c.buffers[1], plain, count), 1e-6, "case %zu", i);
            cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
            cr_expect_lt(support_difference(c.buffers[1], plain, count), 1e-6, "case %zu", i);
            cr_assert_null(support_run_compiled(&c, support_target(c.arena, "local"), true));
            cr_expect_lt(support_difference(c.buffers[1], plain, count), 1e-6, "case %zu", i);
            support_case_destroy(&c);
        }
}
