// Rows of functions: whole registers, halves of them and single elements, next to each other in memory or every other
// one, by interpreter and compiled; nothing beyond the last element is read.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

// Lanes of all stores of a body, each once.
static int lanes_of(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int64_t extent = 1;
    int lanes = 0;
    if (!id) return 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        lanes += lanes_of(fn, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_STORE && fn->exprs.data[node->value].lanes > 1)
        lanes = fn->exprs.data[node->value].lanes;
    if (node->kind != BERTH_STMT_FOR) return lanes;
    lanes = lanes_of(fn, node->body);
    bool in_row = node->loop_kind != BERTH_LOOP_PARALLEL &&
                  fn->stmts.data[node->body].kind == BERTH_STMT_STORE;
    if (in_row && berth_tfn_const_value(fn, node->value, &extent)) return (int)extent * lanes;
    return lanes;
}

typedef struct rows {
    const char *type;
    int width, step;
    int in_vectors;  // elements of a row, with registers of 8
} rows;

// y[i, j] = exp(x[i, step * j]); x ends with the last element that is read.
static bench_case made(const rows *r) {
    char text[512];
    int read = (r->width - 1) * r->step + 1;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: %s[1,%d] in, %%y: %s[6,%d] out) {\n"
             "  parallel %%i in 6 { parallel %%j in %d { %%y[%%i, %%j] = %s(exp(f32(%%x[0, %%j * "
             "%d]))) } }\n}\n",
             r->type, read, r->type, r->width, r->width, r->type, r->step);
    bench_case c = support_case_parse(text);
    support_fill(&c, 11);
    return c;
}

static double element(const bench_case *c, int64_t i) {
    berth_dtype dtype = c->fn->bufs.data[1].dtype;
    return dtype == BERTH_DTYPE_F32 ? ((float *)c->buffers[1])[i]
                                    : (double)berth_f16_to_f32(((uint16_t *)c->buffers[1])[i]);
}

static void check(const rows *r, const char *target, bool compiled) {
    bench_case plain = made(r), c = made(r);
    cr_assert_null(support_interpret(&plain));
    const berth_target *cpu = support_target(c.arena, target);
    berth_status status = berth_schedule_apply(c.fn, cpu);
    cr_assert(!status, "%s", berth_status_message(status));
    if (!compiled)
        cr_expect_eq(lanes_of(c.fn, c.fn->body), r->in_vectors, "%s rows of %d: %d in vectors",
                     r->type, r->width, lanes_of(c.fn, c.fn->body));
    status = compiled ? support_run_compiled(&c, cpu, true) : support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    for (int64_t i = 0; i < c.element_counts[1]; ++i)
        cr_assert(fabs(element(&c, i) - element(&plain, i)) <= 2e-3 * element(&plain, i),
                  "%s rows of %d by %d: [%lld] is %g, not %g", r->type, r->width, r->step,
                  (long long)i, element(&c, i), element(&plain, i));
    support_case_destroy(&c);
    support_case_destroy(&plain);
}

Test(rows, of_any_width) {
    const rows cases[] = {{"f32", 28, 1, 28}, {"f32", 13, 1, 12}, {"f32", 7, 1, 4},
                          {"f32", 3, 1, 0},   {"f16", 28, 1, 28}, {"f16", 21, 1, 20},
                          {"f32", 28, 2, 28}, {"f32", 9, 2, 8},   {"f16", 29, 2, 28},
                          {"f16", 5, 2, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        check(&cases[i], "cpu -vector_bits=256", false);
        check(&cases[i], "local", true);
    }
}
