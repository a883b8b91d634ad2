// Short sums and extremes whose windows move by several elements: as one expression for each result they compute
// what the plain loops compute, by interpreter and compiled, borders and NaN included.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/schedule/support.h"

typedef struct window {
    const char *type;
    const char *first;  // of the accumulator
    bool maximum;       // else a sum
    int height, width, taps, step, padding;
} window;

static void write_window(char *text, size_t size, const window *w) {
    int rows = (w->height + 2 * w->padding - w->taps) / w->step + 1;
    int columns = (w->width + 2 * w->padding - w->taps) / w->step + 1;
    char row[40], column[40], read[100], term[300], inside[600];
    snprintf(row, sizeof(row), "%%i * %d + %%s + -%d", w->step, w->padding);
    snprintf(column, sizeof(column), "%%j * %d + %%t + -%d", w->step, w->padding);
    snprintf(read, sizeof(read), "%%x[%s, %s]", row, column);
    if (w->maximum && w->type[0] == 'f')  // NaN does not count
        snprintf(term, sizeof(term), "select(is_nan(%s), %s, %s)", read, w->first, read);
    else
        snprintf(term, sizeof(term), "%s", read);
    if (w->padding)
        snprintf(inside, sizeof(inside), "select(%s >= 0 && %s < %d && %s >= 0 && %s < %d, %s, %s)",
                 row, row, w->height, column, column, w->width, term, w->first);
    else
        snprintf(inside, sizeof(inside), "%s", term);
    snprintf(text, size,
             "module \"m\"\n"
             "tensor @f(%%x: %s[%d,%d] in, %%y: %s[%d,%d] out) {\n"
             "  parallel %%i in %d { parallel %%j in %d {\n"
             "    register %%acc: %s[]\n"
             "    %%acc[] = %s\n"
             "    for %%s in %d { for %%t in %d { %%acc[] = %s%%acc[]%s%s%s } }\n"
             "    %%y[%%i, %%j] = %%acc[]\n"
             "  } }\n}\n",
             w->type, w->height, w->width, w->type, rows, columns, rows, columns, w->type, w->first,
             w->taps, w->taps, w->maximum ? "max(" : "", w->maximum ? ", " : " + ", inside,
             w->maximum ? ")" : "");
}

static bench_case made(const window *w) {
    char text[4096];
    write_window(text, sizeof(text), w);
    bench_case c = support_case_parse(text);
    support_fill(&c, 5);
    if (strcmp(w->type, "f32") == 0 && w->maximum)
        for (int64_t i = 3; i < c.element_counts[0]; i += 7) ((float *)c.buffers[0])[i] = NAN;
    return c;
}

static double element(const bench_case *c, int64_t i) {
    switch (c->fn->bufs.data[1].dtype) {
    case BERTH_DTYPE_F32: return ((float *)c->buffers[1])[i];
    case BERTH_DTYPE_F64: return ((double *)c->buffers[1])[i];
    default: return ((uint8_t *)c->buffers[1])[i];
    }
}

static void compare(const bench_case *got, const bench_case *wanted, const window *w,
                    const char *how) {
    for (int64_t i = 0; i < wanted->element_counts[1]; ++i)
        cr_assert(fabs(element(got, i) - element(wanted, i)) < 1e-5,
                  "%s, %d by %d, %s: [%lld] is %g, not %g", w->type, w->taps, w->step, how,
                  (long long)i, element(got, i), element(wanted, i));
}

// Registers that hold the accumulator of a loop over terms.
static int accumulators(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int count = 0;
    if (!id) return 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += accumulators(fn, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        count += accumulators(fn, node->body);
    return count + (node->kind == BERTH_STMT_ALLOC);
}

static int check(const window *w) {
    bench_case plain = made(w), c = made(w);
    berth_status status = support_interpret(&plain);
    cr_assert(!status, "%s", berth_status_message(status));
    status = berth_schedule_apply(c.fn, support_target(c.arena, "cpu -vector_bits=256"));
    cr_assert(!status, "%s", berth_status_message(status));
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    compare(&c, &plain, w, "by interpreter");
    int left = accumulators(c.fn, c.fn->body);
    support_case_destroy(&c);

    c = made(w);
    const berth_target *local = support_target(c.arena, "local");
    status = berth_schedule_apply(c.fn, local);
    cr_assert(!status, "%s", berth_status_message(status));
    status = support_run_compiled(&c, local, true);
    cr_assert(!status, "%s", berth_status_message(status));
    compare(&c, &plain, w, "compiled");
    support_case_destroy(&c);
    support_case_destroy(&plain);
    return left;
}

static void expect(const window *w, bool as_terms) {
    cr_expect_eq(check(w) == 0, as_terms, "%s, %d taps by %d, width %d", w->type, w->taps, w->step,
                 w->width);
}

Test(window, moves_by_several_elements) {
    expect(&(window){"f32", "-inf:f32", true, 35, 35, 3, 2, 1}, true);
    expect(&(window){"f32", "-inf:f32", true, 9, 40, 2, 2, 0}, true);
    expect(&(window){"f32", "0:f32", false, 20, 37, 3, 2, 1}, true);
    expect(&(window){"f32", "0:f32", false, 13, 61, 5, 4, 0}, true);
    expect(&(window){"u8", "0:u8", true, 20, 64, 3, 2, 1}, true);
    expect(&(window){"f64", "0:f64", false, 20, 64, 3, 3, 1}, true);
}

Test(window, stays_where_there_is_no_gain) {
    expect(&(window){"f32", "0:f32", false, 20, 64, 9, 2, 0}, false);  // 81 terms
    expect(&(window){"f32", "0:f32", false, 20, 64, 5, 5, 0}, false);  // too far apart
    expect(&(window){"f32", "0:f32", false, 20, 15, 3, 2, 0}, false);  // 7 results
    expect(&(window){"f32", "0:f32", false, 20, 64, 3, 1, 0}, false);  // in vectors as they are
}
