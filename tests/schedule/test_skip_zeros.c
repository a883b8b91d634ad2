// Products with the zeros around an operand are left out, all others are not, and a loop that does
// anything else stays whole.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/schedule/skip_zeros.h"
#include "tests/check.h"
#include "tests/schedule/support.h"

typedef struct form {
    const char *name;
    const char *border;  // attribute of the function
    int dilation;
    const char *body;  // of the loop over the taps of a row
    int conditions;
} form;

#define PRODUCT "%acc[] = fma(%x[%r + %k * D], %w[%k], %acc[])"

// 24 results of 3 taps; x has 24 + 2 * D elements, D zeros at either end.
static const form forms[] = {
    {"dilated", "0, 0, 8, 32", 8, PRODUCT, 1},
    {"the other factor", "0, 0, 8, 32", 8, "%acc[] = fma(%w[%k], %x[%r + %k * D], %acc[])", 1},
    {"kept in a variable", "0, 0, 8, 32", 8,
     "let %v = %x[%r + %k * D]\n %acc[] = fma(%v, %w[%k], %acc[])", 1},
    {"a loop inside", "0, 0, 8, 32", 8,
     "for %i in 4 { %acc[] = fma(%x[%r + %k * D], %w[%k] * %w[%i], %acc[]) }", 1},
    {"another sum", "0, 0, 8, 32", 8, PRODUCT "\n %acc[] = %acc[] + %w[%k]", 0},
    {"another operation", "0, 0, 8, 32", 8, "%acc[] = fma(%x[%r + %k * D] + 1.0, %w[%k], %acc[])",
     0},
    {"the largest", "0, 0, 8, 32", 8, "%acc[] = max(%x[%r + %k * D] * %w[%k], %acc[])", 0},
    {"another operand's zeros", "1, 0, 1, 2", 8, PRODUCT, 1},
    {"no zeros", "0, 0, 0, 40", 8, PRODUCT, 0},
    {"hardly any", "0, 0, 1, 26", 1, PRODUCT, 0},
    {"indices beyond any buffer", "0, 0, 8, 32", 8,
     "%acc[] = fma(%x[(%r + %k * D) * 2000000000000], %w[%k], %acc[])", 0},
    {"no such operand", "9, 0, 8, 32", 8, PRODUCT, 0},
    {"a result", "2, 0, 8, 32", 8, PRODUCT, 0},
    {"no such dimension", "0, 1, 8, 32", 8, PRODUCT, 0},
    {"a negative one", "0, -1, 8, 32", 8, PRODUCT, 0},
    {"half a border", "0, 0, 8", 8, PRODUCT, 0},
};

static void with_dilation(char *out, size_t size, const char *text, int dilation) {
    size_t n = strlen(out);
    for (; *text && n + 16 < size; ++text)
        if (*text == 'D')
            n += (size_t)snprintf(out + n, size - n, "%d", dilation);
        else
            out[n++] = *text;
    out[n] = 0;
}

static bench_case build(const form *f) {
    char text[2048] = {0}, head[256];
    snprintf(head, sizeof(head),
             "module \"m\"\ntensor @f(%%x: f32[%d] in, %%w: f32[8] in, %%y: f32[24] out) "
             "{zero_border = [%s]} {\n",
             24 + 2 * f->dilation, f->border);
    with_dilation(text, sizeof(text), head, 0);
    with_dilation(text, sizeof(text),
                  "  parallel %r in 24 {\n    register %acc: f32[]\n    %acc[] = 0.0\n"
                  "    for %k in 3 {\n ",
                  0);
    with_dilation(text, sizeof(text), f->body, f->dilation);
    with_dilation(text, sizeof(text), "\n }\n    %y[%r] = %acc[]\n  }\n}\n", 0);
    bench_case c = support_case_parse(text);
    support_fill(&c, 5);
    return c;
}

static const berth_attrs *attrs_of(const bench_case *c) {
    return &berth_module_function(c->module, berth_module_find_function(c->module, "f"))->attrs;
}

static int conditions(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int found = node->kind == BERTH_STMT_IF;
    if (id == 0) return 0;
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        found += conditions(fn, node->body) + conditions(fn, node->other);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        found += conditions(fn, fn->lists.data[node->first + i]);
    return found;
}

Test(skip_zeros, conditions_go_around_loops_that_only_add_products) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        bench_case c = build(&forms[i]);
        berth_schedule_skip_zeros(c.fn, attrs_of(&c));
        int found = conditions(c.fn, c.fn->body);
        cr_expect_eq(found, forms[i].conditions, "%s: %d", forms[i].name, found);
        support_case_destroy(&c);
    }
}

Test(skip_zeros, results_are_the_same_where_there_are_zeros) {
    for (size_t i = 0; i < 4; ++i) {
        bench_case c = build(&forms[i]);
        float *x = c.buffers[0], plain[24];
        for (int k = 0; k < forms[i].dilation; ++k)
            x[k] = x[24 + 2 * forms[i].dilation - 1 - k] = 0;
        assert_ok(support_interpret(&c));
        memcpy(plain, c.buffers[2], sizeof(plain));
        berth_schedule_skip_zeros(c.fn, attrs_of(&c));
        assert_ok(support_interpret(&c));
        cr_expect_arr_eq(plain, c.buffers[2], sizeof(plain), "%s", forms[i].name);
        support_case_destroy(&c);
    }
}

// What is not read may be anything: NaN in the border reaches no result, since each of its elements
// is read for one tap of one result alone.
Test(skip_zeros, zeros_are_not_read) {
    bench_case c = build(&forms[0]);
    float *x = c.buffers[0];
    for (int k = 0; k < 8; ++k) x[k] = x[39 - k] = NAN;
    berth_schedule_skip_zeros(c.fn, attrs_of(&c));
    assert_ok(support_interpret(&c));
    const float *y = c.buffers[2];
    for (int r = 0; r < 24; ++r) cr_expect(!isnan(y[r]), "%d", r);
    support_case_destroy(&c);
}

// A tile of four results: the tap is left out where none of them has it inside.
Test(skip_zeros, tiles_skip_what_none_of_their_results_needs) {
    static const char text[] =
        "module \"m\"\n"
        "tensor @f(%x: f32[48] in, %w: f32[3] in, %y: f32[24] out) {zero_border = [0, 0, 12, 36]} "
        "{\n"
        "  parallel %t in 6 {\n    register %acc: f32[4]\n"
        "    for %j in 4 { %acc[%j] = 0.0 }\n"
        "    for %k in 3 { for %j in 4 {\n"
        "      %acc[%j] = fma(%x[%t * 4 + %j + %k * 12], %w[%k], %acc[%j]) } }\n"
        "    for %j in 4 { %y[%t * 4 + %j] = %acc[%j] }\n  }\n}\n";
    bench_case c = support_case_parse(text);
    support_fill(&c, 7);
    float *x = c.buffers[0], plain[24];
    for (int k = 0; k < 12; ++k) x[k] = x[47 - k] = 0;
    assert_ok(support_interpret(&c));
    memcpy(plain, c.buffers[2], sizeof(plain));
    berth_schedule_skip_zeros(c.fn, attrs_of(&c));
    cr_assert_eq(conditions(c.fn, c.fn->body), 1);
    for (int k = 0; k < 12; ++k) x[k] = x[47 - k] = NAN;
    assert_ok(support_interpret(&c));
    cr_assert_arr_eq(plain, c.buffers[2], sizeof(plain));
    support_case_destroy(&c);
}
