// What is left after whole vectors is one more vector that begins before their end: of a row of functions,
// of a sum or a maximum, of the columns of a product. Not where a result lies over what it is made of.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

// Multiplications and functions that a function computes one element at a time.
static int single_in(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->is_index || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_LOAD)
        return 0;
    bool counts = node->kind == BERTH_EXPR_FMA ||
                  (node->kind == BERTH_EXPR_UNARY && node->op == BERTH_UNARY_EXP);
    return (counts && node->lanes == 1) + single_in(fn, node->a) + single_in(fn, node->b) +
           single_in(fn, node->c);
}

static int single(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int count = 0;
    if (!id) return 0;
    if (node->kind == BERTH_STMT_STORE) return single_in(fn, node->value);
    if (node->kind == BERTH_STMT_FOR) return single(fn, node->body);
    if (node->kind == BERTH_STMT_IF) return single(fn, node->body) + single(fn, node->other);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += single(fn, fn->lists.data[node->first + i]);
    return count;
}

static void keep(const bench_case *c, berth_buf y, float *out) {
    memcpy(out, c->buffers[y], (size_t)c->element_counts[y] * sizeof(float));
}

// What the case computes by itself it computes scheduled, too, and in vectors alone where `whole`. By
// interpreter, and on this machine.
static void check(const char *text, const char *target, bool over_operand, bool whole) {
    static float plain[4096], got[4096];
    char module[2048];
    snprintf(module, sizeof(module), "module \"m\"\n%s", text);
    bench_case c = support_case_parse(module);
    berth_buf y = c.fn->param_count - 1;
    support_fill(&c, 5);
    cr_assert_null(support_interpret(&c));
    keep(&c, y, plain);
    for (berth_buf b = 0; over_operand && b <= y; ++b) c.fn->bufs.data[b].may_alias = true;
    const berth_target *cpu = support_target(c.arena, target);
    berth_status status = berth_schedule_apply(c.fn, cpu);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_eq(single(c.fn, c.fn->body) == 0, whole, "%s: %s", target, text);
    bool here = strcmp(target, "local") == 0;
    status = here ? support_run_compiled(&c, cpu, true) : support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    keep(&c, y, got);
    cr_expect_lt(support_difference(got, plain, c.element_counts[y]), 1e-5, "%s", text);
    support_case_destroy(&c);
}

#define PRODUCT(rows, columns)                                                                     \
    "tensor @f(%x: f32[" rows ",40] in, %w: f32[40," columns "] in, %y: f32[" rows "," columns     \
    "] out) {\n"                                                                                   \
    "  parallel %i in " rows " { parallel %j in " columns " {\n"                                   \
    "    register %acc: f32[]\n    %acc[] = 0.0\n"                                                 \
    "    for %k in 40 { %acc[] = fma(%x[%i, %k], %w[%k, %j], %acc[]) }\n"                          \
    "    %y[%i, %j] = %acc[]\n  } }\n}\n"

// Rows of exponentials and their sum, as a softmax has them.
#define EXPONENTIALS(width)                                                                        \
    "tensor @f(%x: f32[5," width "] in, %y: f32[5," width "] out) {\n"                             \
    "  parallel %i in 5 {\n"                                                                       \
    "    register %acc: f32[]\n    %acc[] = 0.0\n    private %row: f32[" width "]\n"               \
    "    for %r in " width " { %row[%r] = exp(%x[%i, %r])\n%acc[] = %acc[] + %row[%r]\n }\n"       \
    "    %acc[] = 1.0 / %acc[]\n"                                                                  \
    "    for %r in " width " { %y[%i, %r] = %row[%r] * %acc[] }\n  }\n}\n"

// A maximum and a sum of products over rows within rows.
#define PRODUCTS_OF_ROWS(width)                                                                    \
    "tensor @f(%x: f32[5,3," width "] in, %y: f32[5] out) {\n"                                     \
    "  parallel %i in 5 {\n"                                                                       \
    "    register %acc: f32[]\n    %acc[] = 0.0\n"                                                 \
    "    for %h in 3 { for %r in " width " {\n"                                                    \
    "      %acc[] = fma(%x[%i, %h, %r], %x[%i, %h, %r], %acc[])\n    } }\n"                        \
    "    %y[%i] = %acc[]\n  }\n}\n"

static void check_all(const char *target) {
    check(PRODUCT("1", "61"), target, false, true);
    check(PRODUCT("13", "45"), target, false, true);
    check(EXPONENTIALS("35"), target, false, true);
    check(EXPONENTIALS("17"), target, false, true);
    check(PRODUCTS_OF_ROWS("45"), target, false, true);
    check(PRODUCTS_OF_ROWS("141"), target, false, true);
}

Test(overlap, rests_are_whole_vectors) {
    check_all("cpu -vector_bits=512");
    check_all("cpu -vector_bits=256");
    check_all("local");
}

Test(overlap, not_over_an_operand) {
    check(PRODUCT("1", "61"), "cpu -vector_bits=512", true, false);
}
