// Elementary functions of generated C.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

// Elementary functions of generated C against the interpreter's (libm in double), and their special
// values.
Test(codegen_c, elementary_functions) {
    static const berth_unary ops[] = {BERTH_UNARY_EXP,   BERTH_UNARY_LOG,     BERTH_UNARY_TANH,
                                      BERTH_UNARY_ERF,   BERTH_UNARY_SIGMOID, BERTH_UNARY_SQRT,
                                      BERTH_UNARY_FLOOR, BERTH_UNARY_ROUND};
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); ++k) {
        bench_case c = support_case_create();
        berth_tfn *fn = c.fn;
        int64_t n = 1000;
        berth_buf x = support_param(&c, "x", 1, &n, "", BERTH_ROLE_IN);
        berth_buf y = support_param(&c, "y", 1, &n, "", BERTH_ROLE_OUT);
        berth_var i = berth_tfn_var(fn, "i");
        berth_expr at = berth_tfn_var_ref(fn, i);
        berth_stmt body = berth_tfn_store(
            fn, y, &at, 1, berth_tfn_unary(fn, ops[k], berth_tfn_load(fn, x, &at, 1)));
        body = berth_tfn_for(fn, i, berth_tfn_index(fn, n), BERTH_LOOP_SIMD, body);
        fn->body = berth_tfn_seq(fn, &body, 1);
        float *values = c.buffers[x];
        for (int64_t e = 0; e < n; ++e) values[e] = (float)(e - 500) * 0.05F;
        const float special[] = {
            0.0F, -0.0F, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 88.0F, -100.0F};
        memcpy(values, special, sizeof(special));
        cr_assert(!support_interpret(&c));
        float *expected = c.buffers[y];
        berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
        cr_assert(!status, "%s", berth_status_message(status));
        const float *got = c.buffers[y];
        for (int64_t e = 0; e < n; ++e) {
            bool same = got[e] == expected[e] || (got[e] != got[e] && expected[e] != expected[e]);
            float difference = __builtin_fabsf(got[e] - expected[e]);
            float scale =
                __builtin_fabsf(expected[e]) > 1e-30F ? __builtin_fabsf(expected[e]) : 1e-30F;
            cr_expect(same || difference <= 3e-7F * scale, "op %zu of %g: %g, expected %g", k,
                      (double)values[e], (double)got[e], (double)expected[e]);
        }
        support_case_destroy(&c);
    }
}

// Units in the last place of the f32 next to `exact` between it and `got`.
static double ulps(double exact, float got) {
    int exponent = 0;
    float near = fabs(exact) < (double)3.4028235e38F ? (float)fabs(exact) : 3.4028235e38F;
    frexpf(near, &exponent);
    double unit = ldexp(1, exponent < -125 ? -149 : exponent - 24);
    return fabs((double)got - exact) / unit;
}

// Every 65,521st of all bit patterns, in the order in which they are checked: all exponents, signs, NaN
// and infinity. `lanes`: 1 leaves vectors to the C compiler.
static void check_accuracy(const char *name, double (*exact)(double), double most, int lanes) {
    char text[512];
    int count = 65536;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%d] in, %%y: f32[%d] out) {\n"
             "  parallel %%n in %d { for %%i in %d { %%y[%%n * %d + %%i] = %s(%%x[%%n * %d + %%i]) "
             "} }\n}\n",
             count, count, count / lanes, lanes, lanes, name, lanes);
    bench_case c = support_case_parse(text);
    if (lanes > 1) {
        berth_nest nest;
        cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
        berth_status status = berth_schedule_vectorize(c.fn, &nest);
        cr_assert(!status, "%s: %s", name, berth_status_message(status));
        berth_stmt stmt = berth_nest_emit(c.fn, &nest);
        c.fn->body = berth_tfn_seq(c.fn, &stmt, 1);
    }
    float *x = c.buffers[0];
    for (int i = 0; i < count; ++i) {
        uint32_t bits = (uint32_t)i * 65521U;
        memcpy(&x[i], &bits, sizeof(bits));
    }
    berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: %s", name, berth_status_message(status));
    const float *y = c.buffers[1];
    for (int i = 0; i < count; ++i) {
        double wanted = exact((double)x[i]);
        bool ends = isnan(wanted) || isinf((float)wanted);
        bool same = isnan(wanted) ? isnan(y[i]) : (float)wanted == y[i];
        bool good = ends ? same : ulps(wanted, y[i]) <= most;
        if (wanted == 0) good = good && signbit(y[i]) == signbit((float)wanted);
        cr_expect(good, "%s(%a) = %a, exactly %a, in vectors of %d", name, (double)x[i],
                  (double)y[i], wanted, lanes);
    }
    support_case_destroy(&c);
}

// Against libm in double, whose error is below 2^-28 of a float's last place.
Test(codegen_c, accuracy_over_all_exponents) {
    static const struct {
        const char *name;
        double (*exact)(double);
        double most;
        bool
            in_vectors;  // explicit ones have their own form of far values; atan stands for the others
    } functions[] = {
        {"tan", tan, 3, true},      {"asin", asin, 2, false},   {"acos", acos, 2, false},
        {"atan", atan, 2, true},    {"sinh", sinh, 3, false},   {"cosh", cosh, 2.5, false},
        {"asinh", asinh, 3, false}, {"acosh", acosh, 3, false}, {"atanh", atanh, 3, false},
        {"sin", sin, 2, true},      {"cos", cos, 2, true}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        check_accuracy(functions[i].name, functions[i].exact, functions[i].most, 1);
        if (functions[i].in_vectors)
            check_accuracy(functions[i].name, functions[i].exact, functions[i].most, 16);
    }
}

// What the code generator says of the kernel of a loop over i, which its source says, too.
static berth_kernel_source kernel_of(const char *body, const char *mark, bool *out_marked) {
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[64] in, %%z: f32[64] in, %%y: f32[64] out) {\n"
             "  for %%i in 32 {\n%s\n}\n}\n",
             body);
    bench_case c = support_case_parse(text);
    berth_codegen_result code;
    berth_status status = berth_codegen_c.print(c.fn, NULL, "k", c.arena, &code);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_assert_eq(code.kernel_count, 1);
    berth_kernel_source kernel = code.kernels[0];
    *out_marked = strstr(code.source, mark) != NULL;
    support_case_destroy(&c);
    return kernel;
}

static bool avoids_masks_in(const char *body) {
    bool marked = false;
    bool avoids = kernel_of(body, "BERTH_NO_MASKS void k", &marked).avoids_masks;
    cr_expect_eq(avoids, marked, "%s", body);
    return avoids;
}

// Of y[i] = VALUE.
static bool avoids_masks(const char *value) {
    char body[256];
    snprintf(body, sizeof(body), "%%y[%%i] = %s", value);
    return avoids_masks_in(body);
}

static bool gathers(const char *value) {
    bool marked = false;
    char body[256];
    snprintf(body, sizeof(body), "%%y[%%i] = %s", value);
    bool gathers = kernel_of(body, "BERTH_GATHERS void k", &marked).gathers;
    cr_expect_eq(gathers, marked, "%s", value);
    return gathers;
}

// Elements at loaded places, beside others or among them.
Test(codegen_c, elements_at_loaded_places) {
    cr_expect(gathers("%x[max(0, min(index(%z[%i]), 63))]"));
    cr_expect(gathers("%z[%i] + %x[63 - max(0, min(index(%z[%i]), 63))]"));
    cr_expect_not(gathers("%x[%i] + %z[63 - %i]"));
    cr_expect_not(gathers("select(%z[%i] > 0, %x[%i], 0)"));
}

// What both sides read, or the condition does, is read in any case, and the loop goes into vectors as it
// does without a condition (a LeakyRelu without them takes 30 times as long).
Test(codegen_c, choices_between_reads) {
    cr_expect(avoids_masks("select(%i < 6, %x[%i], %z[%i - 6])"));
    cr_expect(avoids_masks("select(%i < 6, %x[%i], %x[%i - 6])"));
    cr_expect(avoids_masks("select(%i < 6, %x[%i], select(%i < 9, %z[%i], %x[63 - %i]))"));
    cr_expect_not(avoids_masks("select(%x[%i] < 0, %x[%i] * 0.1, %x[%i])"));
    cr_expect_not(avoids_masks("select(%z[%i] < %x[%i], %z[%i], %x[%i])"));
    cr_expect_not(avoids_masks("select(%i < 6, %x[%i], 0)"));
}

// One of several reads that a turn of a loop makes under conditions, in statements or in a short loop inside.
Test(codegen_c, several_guarded_reads) {
    static const char one[] = "%y[%i * 2] = select(%i < 6, %x[%i], 0.0)";
    static const char two[] = "%y[%i * 2] = select(%i < 6, %x[%i * 2], 0.0)\n"
                              "%y[%i * 2 + 1] = select(%i < 6, %x[%i * 2 + 1], 0.0)";
    static const char same[] = "%y[%i * 2] = select(%x[%i] < 0.0, 0.0, %x[%i])\n"
                               "%y[%i * 2 + 1] = select(%z[%i] < 0.0, 0.0, %z[%i])";
    static const char loop[] = "for %j in 2 { %y[%i * 2 + %j] = select(%i < 6, %x[%i], 0.0) }";
    static const char longer[] = "for %j in 32 { %y[%j] = select(%i < 6, %x[%j], 0.0) }";
    cr_expect_not(avoids_masks_in(one));
    cr_expect(avoids_masks_in(two));
    cr_expect_not(avoids_masks_in(same));
    cr_expect(avoids_masks_in(loop));
    cr_expect_not(avoids_masks_in(longer));
}

// Sums of vectors that the compiler has in one block where a loop is unrolled whole. 0: no loop is.
static long most_unrolled_whole(const char *source) {
    static const char pragma[] = "BERTH_UNROLL(", sum[] = " = berth_fma_f32x";
    long most = 0;
    for (const char *at = strstr(source, pragma); at; at = strstr(at + 1, pragma)) {
        const char *line = strchr(at, '\n') + 1, *less = strstr(line, " < ");
        const long copies = strtol(at + strlen(pragma), NULL, 10);
        const size_t depth = strspn(line, " ");
        long sums = 0;
        if (!less || strtol(less + 3, NULL, 10) != copies) continue;
        while (*(line = strchr(line, '\n') + 1) && strspn(line, " ") > depth) {
            const char *found = strstr(line, sum);
            sums += found && found < strchr(line, '\n');
        }
        if (sums * copies > most) most = sums * copies;
    }
    return most;
}

// gcc 12 took 14 s for 450 sums of vectors in one block, 2 s for 224 (a convolution of ppocr_cls each).
Test(codegen_c, wide_tiles_are_no_block_of_hundreds_of_sums) {
    static const int64_t columns[] = {8, 16, 32, 64};
    long most = 0;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); ++i)
        for (int64_t terms = 8; terms <= 16; terms += 8) {
            bench_case c = support_case_create();
            support_build_matmul(&c, 56, terms, columns[i], columns[i] % 16 ? "Ba8b" : "Ba16b");
            const berth_target *target =
                support_target(c.arena, "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512");
            berth_codegen_result code;
            cr_assert_null(berth_schedule_apply(c.fn, target));
            cr_assert_null(berth_codegen_c.print(c.fn, NULL, "k", c.arena, &code));
            const long sums = most_unrolled_whole(code.source);
            cr_expect_leq(sums, 128, "%ld sums", sums);
            most = sums > most ? sums : most;
            support_case_destroy(&c);
        }
    cr_expect_gt(most, 0);  // some loops are unrolled whole
}
