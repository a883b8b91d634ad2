// Elementwise nests whose places are cut off at borders or come from data: the scheduled loops give
// what the plain ones give, the borders in loops of their own.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

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

static int count_kind(const berth_tfn *fn, berth_stmt id, berth_stmt_kind kind) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int count = node->kind == kind;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += count_kind(fn, fn->lists.data[node->first + i], kind);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        count += count_kind(fn, node->body, kind);
    return count;
}

// Whether a value reads what gives it its place: a load within the indices of another one.
static bool reads_places(const berth_tfn *fn, berth_expr id, bool in_index) {
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT ||
        node.kind == BERTH_EXPR_VAR)
        return false;
    if (node.kind != BERTH_EXPR_LOAD)
        return reads_places(fn, node.a, in_index) || reads_places(fn, node.b, in_index) ||
               reads_places(fn, node.c, in_index);
    for (int i = 0; i < node.index_count; ++i)
        if (reads_places(fn, berth_tfn_load_indices(fn, id)[i], true)) return true;
    return in_index;
}

static bool loops_read_places(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_STORE) {
        for (int i = 0; i < node->index_count; ++i)
            if (reads_places(fn, berth_tfn_store_indices(fn, id)[i], true)) return true;
        return reads_places(fn, node->value, false);
    }
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        if (loops_read_places(fn, fn->lists.data[node->first + i])) return true;
    return node->kind == BERTH_STMT_FOR && loops_read_places(fn, node->body);
}

#define PLACE "%%y[max(0, min(index((%%p[%%r] + 1.0) * 3.5), 6)), %%j]"

static bench_case scattered(const char *added, int width) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%p: f32[40] in, %%x: f32[40,%d] in, %%y: f32[7,%d] out) {\n"
             "  parallel %%i in 7 { for %%j in %d { %%y[%%i, %%j] = 0.5 } }\n"
             "  parallel %%j in %d { for %%r in 40 {\n    " PLACE " = %s%%x[%%r, %%j]\n  } }\n}\n",
             width, width, width, width, added);
    return support_case_parse(text);
}

// y[rows[r], ...] = x[r, ...]: rows repeat, and the last of them counts; or each is added to what is there, in
// their order. Whole rows are the innermost loop.
Test(flat, rows_to_places_from_data) {
    static const char *const added[] = {"",
                                        "%y[max(0, min(index((%p[%r] + 1.0) * 3.5), 6)), %j] + "};
    for (int sums = 0; sums < 2; ++sums)
        for (int width = 1; width < 200; width = width * 3 + 1) {
            bench_case c = scattered(added[sums], width);
            support_fill(&c, 23);
            char what[32];
            snprintf(what, sizeof(what), "%s of %d", sums ? "sums" : "rows", width);
            check(&c, what);
            if (width > 1) cr_expect_not(loops_read_places(c.fn, c.fn->body), "%s", what);
            support_case_destroy(&c);
        }
}

#define ROW(p) "max(0, min(index((" p " + 1.0) * 4.5), 8))"

static const struct {
    const char *text;  // W: the width
    int places;
} row_forms[] = {
    {"tensor @f(%x: f32[9,W] in, %p: f32[7] in, %y: f32[7,W] out) {\n"
     "  parallel %i in 7 { for %j in W { %y[%i, %j] = %x[" ROW("%p[%i]") ", %j] } }\n}\n",
     1},
    // two rows of the same table, one of them twice
    {"tensor @f(%x: f32[9,W] in, %p: f32[7,2] in, %y: f32[7,W] out) {\n"
     "  parallel %i in 7 { for %j in W {\n"
     "    %y[%i, %j] = max(%x[" ROW("%p[%i, 0]") ", %j], %x[" ROW("%p[%i, 1]") ", %j]) - %x[" ROW(
         "%p[%i, 0]") ", %j]\n  } }\n}\n",
     2},
    // a place that has a place; one row
    {"tensor @f(%x: f32[9,W] in, %p: f32[9] in, %y: f32[7,W] out) {\n"
     "  parallel %i in 7 { for %j in W {\n"
     "    %y[%i, %j] = %x[" ROW("%p[" ROW("%p[%i]") "]") ", %j] } }\n}\n",
     2},
    {"tensor @f(%x: f32[9,W] in, %p: f32[1] in, %y: f32[W] out) {\n"
     "  parallel %j in W { %y[%j] = %x[" ROW("%p[0]") ", %j] }\n}\n",
     1},
};

static bench_case rows_of(const char *form, int width) {
    char text[1024] = "module \"m\"\n";
    size_t n = strlen(text);
    for (; *form && n + 16 < sizeof(text); ++form)
        if (*form == 'W')
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%d", width);
        else
            text[n++] = *form;
    text[n] = 0;
    return support_case_parse(text);
}

// Rows at places from data: each place is read once per row, before the loop along the row.
Test(flat, places_of_rows_are_read_once) {
    for (size_t f = 0; f < sizeof(row_forms) / sizeof(row_forms[0]); ++f)
        for (int width = 3; width < 20000; width = width * 5 + 2) {
            bench_case c = rows_of(row_forms[f].text, width);
            support_fill(&c, 31);
            char what[48];
            snprintf(what, sizeof(what), "form %zu, rows of %d", f, width);
            check(&c, what);
            cr_expect_not(loops_read_places(c.fn, c.fn->body), "%s", what);
            cr_expect_eq(count_kind(c.fn, c.fn->body, BERTH_STMT_LET), row_forms[f].places, "%s",
                         what);
            support_case_destroy(&c);
        }
}

// A place that is asked for under a condition may be none elsewhere, and what lies over the result may
// change on the way.
Test(flat, places_that_stay_in_the_loop) {
    bench_case c = support_case_parse(
        "module \"m\"\n"
        "tensor @f(%x: f32[9,20] in, %p: f32[4] in, %y: f32[7,20] out) {\n"
        "  parallel %i in 7 { for %j in 20 {\n"
        "    %y[%i, %j] = select(%i < 4, %x[" ROW("%p[%i]") ", %j], 0.5)\n  } }\n}\n");
    support_fill(&c, 3);
    check(&c, "under a condition");
    cr_expect_eq(count_kind(c.fn, c.fn->body, BERTH_STMT_LET), 0);
    support_case_destroy(&c);

    c = support_case_parse("module \"m\"\n"
                           "tensor @f(%x: f32[9,20] in, %p: f32[7,20] in, %y: f32[7,20] out) {\n"
                           "  parallel %i in 7 { for %j in 20 {\n"
                           "    %y[%i, %j] = %x[" ROW("%p[%i, 19]") ", %j]\n  } }\n}\n");
    c.fn->bufs.data[1].may_alias = true;
    support_fill(&c, 3);
    check(&c, "over the result");
    cr_expect_eq(count_kind(c.fn, c.fn->body, BERTH_STMT_LET), 0);
    support_case_destroy(&c);
}

static int loops_of_rows(const char *value, int width) {
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[3,64] in, %%z: f32[3,%d] in, %%y: f32[3,%d] out) {\n"
             "  parallel %%i in 3 { for %%j in %d {\n    %%y[%%i, %%j] = %s\n  } }\n}\n",
             width, width, width, value);
    bench_case c = support_case_parse(text);
    support_fill(&c, 7);
    int loops = check(&c, value);
    support_case_destroy(&c);
    return loops;
}

// A row that is read again and again is a loop inside one over its copies: in one loop each element would be
// fetched by itself.
Test(flat, rows_read_again_from_their_beginning) {
    int plain = loops_of_rows("%z[%i, %j]", 256);
    cr_expect_eq(loops_of_rows("%x[%i, %j % 64]", 256), plain + 2);
    cr_expect_eq(loops_of_rows("%x[%i, %j % 64] + %z[%i, %j]", 256), plain + 2);
    cr_expect_eq(loops_of_rows("%x[%i, %j % 64] * 2.0", 250), plain + 1);  // not whole copies
    cr_expect_eq(loops_of_rows("%x[%i, %j % 3]", 255), plain + 2);  // shorter than a register, too
}

// A row that begins with its last elements, or goes on with its first ones, is read in order in each part.
Test(flat, rows_that_wrap_around) {
    int plain = loops_of_rows("%z[%i, %j]", 256);
    cr_expect_eq(loops_of_rows("%x[%i, (%j + 61) % 64]", 70), 4);        // a border on either side
    cr_expect_eq(loops_of_rows("%x[%i, (%j + 20) % 64] * 2.0", 64), 3);  // moved around
    cr_expect_eq(loops_of_rows("%x[(%i + 2) % 3, (%j + 20) % 64]", 64), 3);  // rows, too
    cr_expect_eq(loops_of_rows("%x[%i, (%j + %i) % 64]", 64),
                 plain + 1);  // by another number in each row
}

// Of joined tensors each is copied by a loop without conditions, however many there are.
Test(flat, joined_tensors_are_loops_of_their_own) {
    cr_expect_eq(loops_of_rows("select(%j < 40, %x[%i, %j], %z[%i, %j - 40])", 130), 3);
    cr_expect_eq(
        loops_of_rows(
            "select(%j < 40, %x[%i, %j], select(%j < 70, %z[%i, %j - 40], %x[%i, %j - 70]))", 130),
        4);
    cr_expect_eq(
        loops_of_rows(
            "select(%j < 40, %x[%i, %j], select(%j < 70, %z[%i, %j - 40], select(%j < 100, "
            "%x[%i, %j - 70], %z[%i, %j - 100])))",
            130),
        5);
}

// Elements of the longest vector that the scheduled nest of y[i] = `value` stores.
static int lanes_of(const char *x, const char *y, const char *value) {
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: %s[512] in, %%y: %s[512] out) {\n"
             "  parallel %%i in 512 { %%y[%%i] = %s }\n}\n",
             x, y, value);
    bench_case c = support_case_parse(text);
    berth_status status =
        berth_schedule_apply(c.fn, support_target(c.arena, "cpu -vector_bits=512"));
    cr_assert(!status, "%s: %s", value, berth_status_message(status));
    int lanes = 1;
    for (uint32_t i = 0; i < c.fn->stmts.count; ++i) {
        const berth_stmt_node *node = &c.fn->stmts.data[i];
        int own = node->kind == BERTH_STMT_STORE ? c.fn->exprs.data[node->value].lanes : 1;
        lanes = own > lanes ? own : lanes;
    }
    support_case_destroy(&c);
    return lanes;
}

// Compilers have no vectors of sine in f64, nor one instruction for a bound of f32 in theirs; sums they have.
Test(flat, what_compilers_have_no_vectors_of) {
    cr_expect_eq(lanes_of("f32", "f32", "%x[%i] + 1.0"), 1);
    cr_expect_eq(lanes_of("f64", "f64", "exp(%x[%i])"), 1);
    cr_expect_eq(lanes_of("f64", "f64", "sin(%x[%i])"), 8);
    cr_expect_eq(lanes_of("f64", "f64", "cos(%x[%i] * 2.0)"), 8);
    cr_expect_eq(lanes_of("f32", "i8", "i8(%x[%i])"), 16);
    cr_expect_eq(lanes_of("f32", "u8", "u8(round(%x[%i] * 3.0) + 7.0)"), 16);
}
