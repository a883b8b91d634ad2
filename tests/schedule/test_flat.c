// Elementwise nests whose places are cut off at borders or come from data: the scheduled loops give
// what the plain ones give, the borders in loops of their own.
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/schedule/support.h"

static int count_loops(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int count = node->kind == BERTH_STMT_FOR;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += count_loops(fn, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        count += count_loops(fn, node->body);
    return count;
}

// Compares scheduled and plain results; the loops of the scheduled function.
static int check(bench_case *c, const char *what) {
    berth_buf y = c->fn->param_count - 1;
    berth_status status = support_interpret(c);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    const float *plain = c->buffers[y];
    status = berth_schedule_apply(c->fn, support_target(c->arena, "cpu"));
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    status = support_interpret(c);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    cr_expect_eq(support_difference(c->buffers[y], plain, c->element_counts[y]), 0, "%s", what);
    status = support_run_compiled(c, support_target(c->arena, "cpu"), true);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    cr_expect_eq(support_difference(c->buffers[y], plain, c->element_counts[y]), 0, "%s: compiled",
                 what);
    return count_loops(c->fn, c->fn->body);
}

// y[i, j] = x[i, index of j], of `width` elements with `pad` more on both sides.
static int loops_of(const char *index, int width, int pad) {
    char text[1024];
    int all = width + 2 * pad;
    int n = snprintf(text, sizeof(text),
                     "module \"m\"\n"
                     "tensor @f(%%x: f32[3,%d] in, %%y: f32[3,%d] out) {\n"
                     "  parallel %%i in 3 { for %%j in %d {\n    %%y[%%i, %%j] = %%x[%%i, ",
                     width, all, all);
    for (const char *at = index; *at; ++at) {  // P: the padding, L: the last element
        size_t left = sizeof(text) - (size_t)n;
        bool number = *at == 'P' || *at == 'L';
        n += number ? snprintf(text + n, left, "%d", *at == 'P' ? pad : width - 1)
                    : snprintf(text + n, left, "%c", *at);
    }
    snprintf(text + n, sizeof(text) - (size_t)n, "]\n  } }\n}\n");
    bench_case c = support_case_parse(text);
    support_fill(&c, 5);
    int loops = check(&c, index);
    support_case_destroy(&c);
    return loops;
}

#define EDGE "max(0, min(%j - P, L))"
#define MIRRORED "max(%j - P, P - %j)"
#define REFLECT "min(" MIRRORED ", L * 2 - " MIRRORED ")"

// One loop over the rows; in it, before, between and after the borders, unless that is short.
Test(flat, borders_are_loops_of_their_own) {
    cr_expect_eq(loops_of(EDGE, 20, 3), 4);
    cr_expect_eq(loops_of(EDGE, 33, 1), 4);
    cr_expect_eq(loops_of(EDGE, 5, 2), 2);
    cr_expect_eq(loops_of(REFLECT, 20, 3), 4);
    cr_expect_eq(loops_of(REFLECT, 37, 11), 4);
    cr_expect_eq(loops_of(REFLECT, 5, 4), 2);
}

// y[rows[r], ...] = x[r, ...]: rows repeat, and the last of them counts.
Test(flat, rows_to_places_from_data) {
    for (int width = 1; width < 200; width = width * 3 + 1) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "module \"m\"\n"
                 "tensor @f(%%p: f32[40] in, %%x: f32[40,%d] in, %%y: f32[7,%d] out) {\n"
                 "  parallel %%i in 7 { for %%j in %d { %%y[%%i, %%j] = 0.5 } }\n"
                 "  parallel %%j in %d { for %%r in 40 {\n"
                 "    %%y[max(0, min(index((%%p[%%r] + 1.0) * 3.5), 6)), %%j] = %%x[%%r, %%j]\n"
                 "  } }\n}\n",
                 width, width, width, width);
        bench_case c = support_case_parse(text);
        support_fill(&c, 23);
        char what[32];
        snprintf(what, sizeof(what), "rows of %d", width);
        check(&c, what);
        support_case_destroy(&c);
    }
}
