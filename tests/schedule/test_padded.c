// Products with operands whose rows end within a vector: copied with zeros after each row where
// enough rows of the product use the copy, read as they are elsewhere. Under the interpreter, which
// refuses accesses beyond a row, and compiled they give what the plain loops give.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>

#include "tests/schedule/support.h"

static const char *const targets[] = {
    "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512",
    "cpu -features=avx2,fma -vector_bits=256",
};

enum { target_count = sizeof(targets) / sizeof(targets[0]) };

typedef struct product {
    int64_t b, m, n, k;
    const char *what;
    int64_t width[target_count];  // of the rows of the copy, 0 = there is none
} product;

static const product products[] = {
    {1, 30, 7, 12, "", {8, 8}},
    {1, 30, 2, 12, "", {8, 8}},
    {1, 9, 1, 12, "", {0, 0}},     // sums along the operand are another form
    {3, 20, 13, 5, "", {16, 16}},  // of every matrix
    {1, 40, 23, 9, "", {32, 24}},
    {2, 40, 5, 9, "by columns", {8, 8}},
    {1, 40, 16, 9, "", {0, 0}},              // ends with a vector
    {1, 40, 18, 9, "", {0, 0}},              // two more columns are one piece
    {1, 2, 203, 9, "", {0, 0}},              // used twice: the copy costs more
    {1, 40, 29, 9, "transposed", {32, 32}},  // copied anyway
    {1, 200, 1023, 3, "", {1040, 1032}},     // rows that do not share the sets of a cache
    {1, 40, 24, 9, "", {0, 0}},              // half a register
};

enum { product_count = sizeof(products) / sizeof(products[0]) };

// y[b, i, j] = sum over k of x[b, i, k] * w[b, k, j], of x[b, k, i] * w[b, k, j] (by columns) or of
// x[b, i, k] * w[b, j, k] (transposed).
static bench_case build(const product *p) {
    char text[1024];
    bool by_columns = p->what[0] == 'b', transposed = p->what[0] == 't';
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%ld,%ld,%ld] in, %%w: f32[%ld,%ld,%ld] in, %%y: f32[%ld,%ld,%ld] "
             "out) {\n"
             "  parallel %%b in %ld { parallel %%i in %ld { for %%j in %ld {\n"
             "    register %%acc: f32[]\n"
             "    %%acc[] = 0.0\n"
             "    for %%k in %ld { %%acc[] = fma(%%x[%%b, %s], %%w[%%b, %s], %%acc[]) }\n"
             "    %%y[%%b, %%i, %%j] = %%acc[]\n"
             "  } } }\n}\n",
             p->b, by_columns ? p->k : p->m, by_columns ? p->m : p->k, p->b,
             transposed ? p->n : p->k, transposed ? p->k : p->n, p->b, p->m, p->n, p->b, p->m, p->n,
             p->k, by_columns ? "%k, %i" : "%i, %k", transposed ? "%j, %k" : "%k, %j");
    return support_case_parse(text);
}

static int64_t width_of_copy(const berth_tfn *fn) {
    int64_t width = 0;
    for (uint32_t i = 0; i < fn->bufs.count; ++i) {
        const berth_buf_info *info = &fn->bufs.data[i];
        if (info->scope == BERTH_SCOPE_WORKSPACE) width = info->dims[info->rank - 1];
    }
    return width;
}

ParameterizedTestParameters(padded, products) {
    static int indices[product_count];
    for (int i = 0; i < product_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, product_count);
}

ParameterizedTest(int *index, padded, products) {
    const product *p = &products[*index];
    for (int t = 0; t < target_count; ++t) {
        bench_case c = build(p);
        support_fill(&c, 3);
        berth_status status = support_interpret(&c);
        cr_assert(!status, "%s", berth_status_message(status));
        const float *plain = c.buffers[2];
        status = berth_schedule_apply(c.fn, support_target(c.arena, targets[t]));
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_eq(width_of_copy(c.fn), p->width[t], "%ld columns for %s: %ld wide", p->n,
                     targets[t], width_of_copy(c.fn));
        status = support_interpret(&c);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_leq(support_difference(c.buffers[2], plain, c.element_counts[2]), 2e-5,
                      "%ld columns, interpreted for %s", p->n, targets[t]);
        status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_leq(support_difference(c.buffers[2], plain, c.element_counts[2]), 2e-5,
                      "%ld columns, compiled for %s", p->n, targets[t]);
        support_case_destroy(&c);
    }
}
