// Choices that the innermost loop does not change are made before it, and the scheduled loops give what the
// plain ones give.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static int count_kind(const berth_tfn *fn, berth_stmt id, berth_stmt_kind kind) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return 0;
    int count = node->kind == kind;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += count_kind(fn, fn->lists.data[node->first + i], kind);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        count += count_kind(fn, node->body, kind);
    if (node->kind == BERTH_STMT_IF) count += count_kind(fn, node->other, kind);
    return count;
}

typedef struct made {
    int choices, sides;
} made;

// y[i, j] = VALUE of 40 x 96 elements, of e[1], c[40], m[40, 96], w[1], x[40, 96]. `kind`: of the loop over rows.
// over: the result may lie over the mask of rows.
static made check(const char *kind, const char *value, bool over) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%e: f32[1] in, %%c: u8[40] in, %%m: u8[40,96] in, %%w: f32[1] in, %%x: "
             "f32[40,96] in, "
             "%%y: f32[40,96] out) {\n"
             "  %s %%i in 40 { for %%j in 96 { %%y[%%i, %%j] = %s } }\n}\n",
             kind, value);
    bench_case c = support_case_parse(text);
    const berth_target *target = support_target(c.arena, "cpu");
    berth_buf y = c.fn->param_count - 1;
    made result = {0};
    if (over) c.fn->bufs.data[1].may_alias = true;
    support_fill(&c, 5);
    for (int i = 0; i < 40; ++i) ((uint8_t *)c.buffers[1])[i] &= 1;
    for (int i = 0; i < 40 * 96; ++i) ((uint8_t *)c.buffers[2])[i] &= 1;
    for (int exponent = 1; exponent <= 4; ++exponent) {
        *(float *)c.buffers[0] = (float)exponent;
        berth_status status = support_interpret(&c);
        cr_assert(!status, "%s: %s", value, berth_status_message(status));
        const float *plain = c.buffers[y];
        if (exponent == 1) status = berth_schedule_apply(c.fn, target);
        cr_assert(!status, "%s: %s", value, berth_status_message(status));
        status = support_interpret(&c);
        cr_assert(!status, "%s: %s", value, berth_status_message(status));
        cr_expect_eq(support_difference(c.buffers[y], plain, c.element_counts[y]), 0, "%s", value);
        status = support_run_compiled(&c, target, true);
        cr_assert(!status, "%s: %s", value, berth_status_message(status));
        cr_expect_lt(support_difference(c.buffers[y], plain, c.element_counts[y]), 1e-6,
                     "%s: compiled", value);
    }
    result.choices = count_kind(c.fn, c.fn->body, BERTH_STMT_IF);
    result.sides = count_kind(c.fn, c.fn->body, BERTH_STMT_LET);
    support_case_destroy(&c);
    return result;
}

#define EXPECT(choices_, sides_, kind, value, over)                                                \
    do {                                                                                           \
        made m = check(kind, value, over);                                                         \
        cr_expect_eq(m.choices, choices_, "%s: %d choices", value, m.choices);                     \
        cr_expect_eq(m.sides, sides_, "%s: %d sides", value, m.sides);                             \
    } while (0)

#define POWER                                                                                      \
    "select(%e[0] == 2.0, %x[%i, %j] * %x[%i, %j], select(%e[0] == 3.0, %x[%i, %j] * %x[%i, %j] "  \
    "* %x[%i, %j], %x[%i, %j]))"

Test(ask, choices_of_rows_and_scalars_once) {
    EXPECT(1, 0, "parallel", "select(%c[%i] != 0, %x[%i, %j], %w[0])", false);
    EXPECT(1, 0, "parallel", "select(%c[%i] != 0, %x[%i, %j], %w[0]) * %x[%i, %j]", false);
    EXPECT(2, 0, "parallel", POWER, false);
    EXPECT(2, 0, "parallel", "exp(" POWER ")", false);
}

Test(ask, what_stays_is_read_before) {
    EXPECT(0, 2, "parallel", "select(%m[%i, %j] != 0, %w[0], %e[0])", false);
    EXPECT(0, 1, "parallel", "select(%m[%i, %j] != 0, %w[0], %x[%i, %j])", false);
}

// A condition on indices is a border; a read that it guards may be outside; a result that lies over what is
// asked changes the answer.
Test(ask, not_where_it_may_be_wrong) {
    EXPECT(0, 0, "parallel", "select(%m[%i, %j] != 0, %x[%i, %j], 0.0)", false);
    EXPECT(0, 0, "parallel",
           "select(%i / 2 * 2 < 19, select(%c[%i + 20] != 0, %x[%i, %j], 1.0), 0.0)", false);
    EXPECT(0, 0, "parallel", "select(%c[%i] != 0, %x[%i, %j], %x[%i, 95 - %j])", true);
}

// Two values are the same to C compilers only where what they are made of has one name.
Test(ask, a_load_that_is_made_once_is_made_nowhere_else) {
    bench_case c = support_case_parse(
        "module \"m\"\n"
        "tensor @f(%m: u8[40,96] in, %w: i64[1] in, %x: i64[40,96] in, %y: i64[40,96] out) {\n"
        "  parallel %i in 40 { for %j in 96 {\n"
        "    %y[%i, %j] = select(%x[%i, %j] % %w[0] != 0:i64, %x[%i, %j] % %w[0] + %w[0], %w[0])\n"
        "  } }\n}\n");
    cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, "cpu")));
    berth_strbuf text = berth_strbuf_make(c.arena);
    berth_tfn_print(c.fn, &text);
    const char *first = strstr(text.data, "%w[0]");
    cr_assert_not_null(first);
    cr_expect_null(strstr(first + 1, "%w[0]"), "%s", text.data);
    support_case_destroy(&c);
}

// 20,011 elements are no whole number of chunks: the last one is shorter, so that the loop's extent is an expression.
Test(ask, chunks_of_which_the_last_is_shorter) {
    bench_case c = support_case_parse(
        "module \"m\"\n"
        "tensor @f(%e: f32[1] in, %m: u8[20011] in, %w: f32[1] in, %y: f32[20011] out) {\n"
        "  parallel %i in 20011 { %y[%i] = select(%m[%i] != 0, %w[0], %e[0]) }\n}\n");
    const berth_target *target = support_target(c.arena, "cpu");
    support_fill(&c, 5);
    for (int i = 0; i < 20011; ++i) ((uint8_t *)c.buffers[1])[i] &= 1;
    cr_assert_null(support_interpret(&c));
    const float *plain = c.buffers[3];
    cr_assert_null(berth_schedule_apply(c.fn, target));
    cr_expect_eq(count_kind(c.fn, c.fn->body, BERTH_STMT_LET), 2);
    cr_assert_null(support_run_compiled(&c, target, true));
    cr_expect_eq(support_difference(c.buffers[3], plain, c.element_counts[3]), 0);
    support_case_destroy(&c);
}
