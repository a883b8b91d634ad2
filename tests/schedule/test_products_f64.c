// Products of f64 in register tiles: vectors of as many lanes as a register has, operands that lie across
// them copied first, and with results that fit no vector.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/schedule/support.h"

typedef struct product {
    int m, n, k;
    bool transposed;
} product;

static bench_case build(const product *p) {
    char text[1024];
    int rows = p->transposed ? p->n : p->k, columns = p->transposed ? p->k : p->n;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f64[%d,%d] in, %%w: f64[%d,%d] in, %%b: f64[%d] in, %%y: f64[%d,%d] "
             "out) {\n"
             "  parallel %%i in %d { for %%j in %d {\n"
             "    register %%acc: f64[]\n"
             "    %%acc[] = 0.0:f64\n"
             "    for %%k in %d { %%acc[] = fma(%%x[%%i, %%k], %%w[%s], %%acc[]) }\n"
             "    %%y[%%i, %%j] = %%acc[] * 0.5:f64 + %%b[%%j]\n"
             "  } }\n}\n",
             p->m, p->k, rows, columns, p->n, p->m, p->n, p->m, p->n, p->k,
             p->transposed ? "%j, %k" : "%k, %j");
    return support_case_parse(text);
}

static void compare(const bench_case *c, const double *wanted, const char *how) {
    const double *got = c->buffers[3];
    for (int64_t i = 0; i < c->element_counts[3]; ++i)
        cr_expect(fabs(got[i] - wanted[i]) <= 1e-13, "%s, element %d: %.17g, expected %.17g", how,
                  (int)i, got[i], wanted[i]);
}

static int lanes_of_sums(const berth_tfn *fn) {
    int lanes = 0;
    for (uint32_t i = 0; i < fn->bufs.count; ++i) {
        const berth_buf_info *info = &fn->bufs.data[i];
        if (info->scope == BERTH_SCOPE_REGISTER && info->dtype == BERTH_DTYPE_F64 &&
            info->lanes > lanes)
            lanes = info->lanes;
    }
    return lanes;
}

static void check(const product *p, const char *target, int lanes) {
    bench_case c = build(p);
    for (int b = 0; b < 3; ++b)
        for (int64_t i = 0; i < c.element_counts[b]; ++i)
            ((double *)c.buffers[b])[i] = (double)((i * 7919 + b * 31) % 201 - 100) / 128;
    cr_assert_null(support_interpret(&c));
    const double *plain = c.buffers[3];
    cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, target)));
    cr_expect_eq(lanes_of_sums(c.fn), lanes, "%d x %d x %d for %s: %d lanes", p->m, p->k, p->n,
                 target, lanes_of_sums(c.fn));
    cr_assert_null(support_interpret(&c));
    compare(&c, plain, "interpreted");
    berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s", berth_status_message(status));
    compare(&c, plain, "compiled");
    support_case_destroy(&c);
}

// The operands are multiples of 1/128: every sum is exact, in any order.
Test(products_f64, in_register_tiles) {
    const product products[] = {
        {20, 32, 17, false}, {13, 41, 9, false}, {20, 24, 16, true}, {7, 30, 12, true}};
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); ++i) {
        check(&products[i], "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512", 8);
        check(&products[i], "cpu -features=avx2,fma -vector_bits=256", 4);
    }
}

// OpenCL C is printed without vectors of f64, also for processor cores, which have the forms of the others.
Test(products_f64, not_in_vectors_of_opencl) {
    const product products[] = {{20, 32, 17, false}, {20, 24, 16, true}};
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); ++i) {
        bench_case c = build(&products[i]);
        const berth_target *target =
            support_target(c.arena, "opencl -subgroup_size=1 -vector_bits=512");
        cr_assert_null(berth_schedule_apply(c.fn, target));
        cr_expect_leq(lanes_of_sums(c.fn), 1);
        support_case_destroy(&c);
    }
}
