// Functions that several loops over a row need: the first loop computes and keeps them where nothing
// that they are made of changes on the way, and results are what the plain loops give.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

typedef struct form {
    const char *name;
    const char *first;    // what is summed, of element %i of row %r; W: the width
    const char *between;  // statements between the loops
    const char *last;     // the result at %i
    bool kept;
} form;

static const form forms[] = {
    {"softmax", "exp(%x[%r, %i] - %top[])", "%acc[] = 1.0 / %acc[]",
     "exp(%x[%r, %i] - %top[]) * %acc[]", true},
    {"inside other work", "max(sigmoid(%x[%r, %i]) * %x[%r, %i], 0.0)", "%acc[] = %acc[] * 0.5",
     "%x[%r, %i] * sigmoid(%x[%r, %i]) - %acc[]", true},
    {"two functions", "tanh(%x[%r, %i]) + exp(%x[%r, %i])", "%acc[] = %acc[] * 0.5",
     "tanh(%x[%r, %i]) * %acc[]", true},
    {"an operand changes", "exp(%x[%r, %i] - %top[])", "%top[] = %acc[]",
     "exp(%x[%r, %i] - %top[])", false},
    {"another function", "exp(%x[%r, %i] - %top[])", "%acc[] = 1.0 / %acc[]",
     "exp(%x[%r, %i] + %top[]) * %acc[]", false},
    {"only under a condition", "select(%i + 2 < W, exp(%x[%r, min(%i + 2, W - 1)]), 0.0)",
     "%acc[] = 1.0 / %acc[]", "exp(%x[%r, min(%i + 2, W - 1)]) * %acc[]", false},
    {"no function of the element", "exp(%top[]) + %x[%r, %i]", "%acc[] = 1.0 / %acc[]",
     "exp(%top[]) * %acc[]", false},
};

enum { form_count = sizeof(forms) / sizeof(forms[0]), rows = 3 };

static void add(char *out, size_t size, const char *text, int width) {
    size_t n = strlen(out);
    for (; *text && n + 16 < size; ++text)
        if (*text == 'W')
            n += (size_t)snprintf(out + n, size - n, "%d", width);
        else
            out[n++] = *text;
    out[n] = 0;
}

static bench_case build(const form *f, int width) {
    char text[2048] = "module \"m\"\n";
    const char *const parts[] = {
        "tensor @f(%x: f32[3,W] in, %y: f32[3,W] out) {\n  parallel %r in 3 {\n"
        "    register %top: f32[]\n    %top[] = %x[%r, 0]\n"
        "    register %acc: f32[]\n    %acc[] = 0.25\n"
        "    for %i in W { %acc[] = %acc[] + ",
        f->first,
        " }\n    ",
        f->between,
        "\n    for %i in W { %y[%r, %i] = ",
        f->last,
        " }\n  }\n}\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        add(text, sizeof(text), parts[i], width);
    return support_case_parse(text);
}

static bool has_row(const berth_tfn *fn, int width) {
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        if (info->scope == BERTH_SCOPE_PRIVATE && info->rank == 1 && info->dims[0] == width)
            return true;
    }
    return false;
}

// Functions in the stores of a statement; a loop counts once.
static int count_functions(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT ||
        node.kind == BERTH_EXPR_VAR || node.kind == BERTH_EXPR_LOAD)
        return 0;
    bool function = node.kind == BERTH_EXPR_UNARY &&
                    (node.op == BERTH_UNARY_EXP || node.op == BERTH_UNARY_TANH ||
                     node.op == BERTH_UNARY_SIGMOID);
    return function + count_functions(fn, node.a) + count_functions(fn, node.b) +
           count_functions(fn, node.c);
}

// Functions that the loops after the last sum have: those that write the result.
static int functions_of_results(const berth_tfn *fn, berth_stmt id, berth_buf result) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_STORE)
        return node->buf == result ? count_functions(fn, node->value) : 0;
    int count = 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += functions_of_results(fn, fn->lists.data[node->first + i], result);
    return node->kind == BERTH_STMT_FOR ? functions_of_results(fn, node->body, result) : count;
}

// Of the row's loops, which are the innermost; for a schedule that serves many sizes.
static void vary(berth_tfn *fn, bool row_varies) {
    fn->any_size = true;
    for (uint32_t v = 0; v < fn->vars.count; ++v) fn->vars.data[v].keeps_extent = !row_varies;
}

enum sizes { ONE_SIZE, ROW_VARIES, ROW_KEEPS };

static void check_of(const form *f, int width, const char *target, bool kept, enum sizes sizes) {
    bench_case c = build(f, width);
    if (sizes != ONE_SIZE) vary(c.fn, sizes == ROW_VARIES);
    int64_t elements = (int64_t)rows * width;
    support_fill(&c, 5);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", f->name, berth_status_message(status));
    const float *plain = c.buffers[1];
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s: %s", f->name, berth_status_message(status));
    cr_expect_eq(has_row(c.fn, width), kept, "%s of %d", f->name, width);
    cr_expect_eq(functions_of_results(c.fn, c.fn->body, 1) == 0, kept, "%s of %d", f->name, width);
    status = support_interpret(&c);
    cr_assert(!status, "%s: %s", f->name, berth_status_message(status));
    double difference = support_difference(c.buffers[1], plain, elements);
    cr_expect(difference < 1e-4, "%s of %d differs by %g", f->name, width, difference);
    status = support_run_compiled(&c, support_target(c.arena, target), true);
    cr_assert(!status, "%s: %s", f->name, berth_status_message(status));
    difference = support_difference(c.buffers[1], plain, elements);
    cr_expect(difference < 1e-4, "%s of %d differs by %g when compiled", f->name, width,
              difference);
    support_case_destroy(&c);
}

static void check(const form *f, int width, const char *target, bool kept) {
    check_of(f, width, target, kept, ONE_SIZE);
}

Test(keep, functions_of_a_row) {
    static const int widths[] = {1500, 40, 67};
    for (int f = 0; f < form_count; ++f)
        for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); ++w)
            check(&forms[f], widths[w], "cpu", forms[f].kept);
}

// A row's place in memory is as large as the row, so that of many sizes only what is the same for all is kept.
Test(keep, rows_of_many_sizes) {
    check_of(&forms[0], 40, "cpu", true, ROW_KEEPS);
    check_of(&forms[0], 67, "cpu", true, ROW_KEEPS);
    check_of(&forms[0], 67, "cpu", false, ROW_VARIES);
}

// A row that would not stay in the cache is computed again.
Test(keep, rows_larger_than_the_cache) {
    check(&forms[0], 20000, "cpu -l2_bytes=1048576", true);
    check(&forms[0], 20000, "cpu -l2_bytes=262144", false);
}
