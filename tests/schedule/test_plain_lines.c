// Reductions in types without explicit vectors: loops over neighbouring results or over parts of a sum give what
// the plain loops give, and are there.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

// The largest extent of an innermost loop that is left to the C compiler's vectors; 0 = none.
static int64_t widest(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int64_t extent = 0, most = 0;
    if (!id) return 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i) {
        int64_t inside = widest(fn, fn->lists.data[node->first + i]);
        most = inside > most ? inside : most;
    }
    if (node->kind != BERTH_STMT_FOR) return most;
    bool simd =
        node->loop_kind == BERTH_LOOP_SIMD && berth_tfn_const_value(fn, node->value, &extent);
    most = widest(fn, node->body);
    return simd && extent > most ? extent : most;
}

static double element(const bench_case *c, berth_buf buf, int64_t i) {
    if (c->fn->bufs.data[buf].dtype == BERTH_DTYPE_F64) return ((double *)c->buffers[buf])[i];
    return (double)((int64_t *)c->buffers[buf])[i];
}

static void fill(bench_case *c, berth_buf buf, bool with_nan) {
    for (int64_t i = 0; i < c->element_counts[buf]; ++i) {
        int64_t value = (i * 7919 + buf * 31) % 201 - 100;
        if (c->fn->bufs.data[buf].dtype == BERTH_DTYPE_F64)
            ((double *)c->buffers[buf])[i] = with_nan && i % 97 == 5 ? NAN : (double)value / 7;
        else
            ((int64_t *)c->buffers[buf])[i] = value;
    }
}

static void compare(const bench_case *c, const bench_case *plain, const char *text) {
    berth_buf y = c->fn->param_count - 1;
    for (int64_t i = 0; i < c->element_counts[y]; ++i) {
        double got = element(c, y, i), wanted = element(plain, y, i);
        bool good = isnan(wanted) ? isnan(got) : fabs(got - wanted) <= 1e-13 * (100 + fabs(wanted));
        cr_expect(good, "%s element %d: %g, expected %g", text, (int)i, got, wanted);
    }
}

// TEXT with `type` for every T; what `widest` says of it.
static int64_t check(const char *text, const char *type, bool with_nan) {
    char whole[1024] = "module \"m\"\n";
    size_t n = strlen(whole);
    for (; *text; ++text) {
        n += (size_t)snprintf(whole + n, sizeof(whole) - n, *text == 'T' ? "%s" : "%.1s",
                              *text == 'T' ? type : text);
    }
    bench_case c = support_case_parse(whole);
    for (berth_buf b = 0; b + 1 < c.fn->param_count; ++b) fill(&c, b, with_nan);
    cr_assert_null(support_interpret(&c));
    bench_case plain = c;
    const berth_target *target = support_target(c.arena, "cpu");
    cr_assert_null(berth_schedule_apply(c.fn, target));
    cr_assert_null(support_interpret(&c));
    compare(&c, &plain, whole);
    berth_status status = support_run_compiled(&c, target, true);
    cr_assert(!status, "%s%s", whole, berth_status_message(status));
    compare(&c, &plain, whole);
    int64_t lines = widest(c.fn, c.fn->body);
    support_case_destroy(&c);
    return lines;
}

#define COLUMNS(columns, value)                                                                    \
    "tensor @f(%x: T[9," columns "] in, %y: T[" columns "] out) {\n"                               \
    "  parallel %j in " columns " {\n    register %acc: T[]\n    %acc[] = %x[0, %j]\n"             \
    "    for %k in 9 { %acc[] = " value " }\n    %y[%j] = %acc[] + %acc[]\n  }\n}\n"
#define ROWS(length, value)                                                                        \
    "tensor @f(%x: T[5,2," length "] in, %y: T[5] out) {\n"                                        \
    "  parallel %i in 5 {\n    register %acc: T[]\n    %acc[] = %x[%i, 0, 0]\n"                    \
    "    for %h in 2 { for %k in " length " { %acc[] = " value                                     \
    " } }\n    %y[%i] = %acc[]\n  }\n}\n"
#define PRODUCT                                                                                    \
    "tensor @f(%a: T[6,11] in, %b: T[11,70] in, %y: T[6,70] out) {\n"                              \
    "  parallel %i in 6 { parallel %j in 70 {\n    register %acc: T[]\n    %acc[] = %a[0, 0]\n"    \
    "    for %k in 11 { %acc[] = fma(%a[%i, %k], %b[%k, %j], %acc[]) }\n    %y[%i, %j] = "         \
    "%acc[]\n  } }\n}\n"

Test(plain_lines, neighbouring_results) {
    static const char *const types[] = {"f64", "i64", "u64"};
    for (int t = 0; t < 3; ++t) {
        cr_expect_eq(check(COLUMNS("64", "%acc[] + %x[%k, %j]"), types[t], false), 32);
        cr_expect_eq(check(COLUMNS("77", "max(%acc[], %x[%k, %j])"), types[t], false), 32);
        cr_expect_eq(check(COLUMNS("19", "%acc[] * %x[%k, %j]"), types[t], false), 19);
    }
    cr_expect_eq(check(COLUMNS("40", "min(%acc[], %x[%k, %j])"), "f64", true), 32);
    cr_expect_eq(check(PRODUCT, "i64", false), 32);
    cr_expect_eq(check(PRODUCT, "f64", false), 0);  // register tiles
}

Test(plain_lines, parts_of_a_sum) {
    cr_expect_eq(check(ROWS("64", "%acc[] + %x[%i, %h, %k]"), "f64", false), 32);
    cr_expect_eq(check(ROWS("75", "%acc[] + %x[%i, %h, %k] * %x[%i, %h, %k]"), "f64", false), 32);
    cr_expect_eq(check(ROWS("64", "max(%acc[], %x[%i, %h, %k])"), "f64", false), 32);
    cr_expect_eq(check(ROWS("64", "%acc[] * (%x[%i, %h, %k] * 0.01:f64 + 1.0:f64)"), "f64", false),
                 32);
    cr_expect_eq(check(ROWS("41", "min(%acc[], %x[%i, %h, %k])"), "f64", true), 32);
}

// Elements that lie apart, sums that are short or of another kind stay as they are.
Test(plain_lines, not_of_these) {
    cr_expect_eq(check(ROWS("20", "%acc[] + %x[%i, %h, %k]"), "f64", false), 0);
    cr_expect_eq(check(ROWS("64", "%acc[] - %x[%i, %h, %k]"), "f64", false), 0);
    cr_expect_eq(check(ROWS("64", "%acc[] + %x[%i, %h, 63 - %k]"), "f64", false), 0);
}
