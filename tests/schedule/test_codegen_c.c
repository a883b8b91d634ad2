// Elementary functions of generated C.
#include <criterion/criterion.h>
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

// Whether the kernel of y[i] = VALUE is one that chooses between reads (berth_kernel_source).
static bool chooses_loads(const char *value) {
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[64] in, %%z: f32[64] in, %%y: f32[64] out) {\n"
             "  for %%i in 64 { %%y[%%i] = %s }\n}\n",
             value);
    bench_case c = support_case_parse(text);
    berth_codegen_result code;
    berth_status status = berth_codegen_c.print(c.fn, "k", c.arena, &code);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_assert_eq(code.kernel_count, 1);
    bool chooses = code.kernels[0].chooses_loads;
    cr_expect_eq(chooses, strstr(code.source, "BERTH_NO_MASKS void k") != NULL);
    support_case_destroy(&c);
    return chooses;
}

// What both sides read, or the condition does, is read in any case, and the loop goes into vectors as it
// does without a condition (a LeakyRelu without them takes 30 times as long).
Test(codegen_c, choices_between_reads) {
    cr_expect(chooses_loads("select(%i < 6, %x[%i], %z[%i - 6])"));
    cr_expect(chooses_loads("select(%i < 6, %x[%i], %x[%i - 6])"));
    cr_expect(chooses_loads("select(%i < 6, %x[%i], select(%i < 9, %z[%i], %x[63 - %i]))"));
    cr_expect_not(chooses_loads("select(%x[%i] < 0, %x[%i] * 0.1, %x[%i])"));
    cr_expect_not(chooses_loads("select(%z[%i] < %x[%i], %z[%i], %x[%i])"));
    cr_expect_not(chooses_loads("select(%i < 6, %x[%i], 0)"));
}
