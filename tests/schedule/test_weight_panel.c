// Weights of few bits that several tiles of rows read are unpacked once, into a panel of f32, and rows of one tile unpack
// them in registers; both compute what the plain definition does.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/schedule/support.h"

static const char *const targets[] = {"cpu -vector_bits=128", "cpu -vector_bits=256",
                                      "cpu -vector_bits=512"};

// Two blocks of weights of 4 bits, lowest bits first; sums of 4 * `bytes` terms.
static bench_case bits_case(int64_t rows, int64_t columns, int64_t bytes, const char *layout) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%d,%d] in, %%b: u8[%d,%d]%s in, %%s: f32[2,%d]%s in,\n"
             "    %%y: f32[%d,%d] out) {\n"
             "  parallel %%i in %d {\n    for %%j in %d {\n"
             "      register %%acc: f32[]\n      %%acc[] = 0.0\n"
             "      for %%block in 2 {\n        for %%byte in %d {\n"
             "          %%acc[] = fma(%%x[%%i, (%%block * %d + %%byte) * 2 + 1],\n"
             "              fma(f32(i32(%%b[%%block * %d + %%byte, %%j]) >> 4:i32),\n"
             "                  %%s[%%block, %%j], neg(8.0 * %%s[%%block, %%j])),\n"
             "              fma(%%x[%%i, (%%block * %d + %%byte) * 2],\n"
             "                  fma(f32(i32(%%b[%%block * %d + %%byte, %%j]) & 15:i32),\n"
             "                      %%s[%%block, %%j], neg(8.0 * %%s[%%block, %%j])), %%acc[]))\n"
             "        }\n      }\n      %%y[%%i, %%j] = %%acc[]\n    }\n  }\n}\n",
             (int)rows, (int)bytes * 4, (int)bytes * 2, (int)columns, layout, (int)columns, layout,
             (int)rows, (int)columns, (int)rows, (int)columns, (int)bytes, (int)bytes, (int)bytes,
             (int)bytes, (int)bytes);
    return support_case_parse(text);
}

// Whether the bytes are read in front of the loops over tiles of rows alone, or else inside them alone.
static bool unpacks_first(const bench_case *c) {
    berth_strbuf text = berth_strbuf_make(c->arena);
    berth_tfn_print(c->fn, &text);
    const char *body = strstr(text.data, ") {");
    const char *first = body ? strstr(body, "%b[") : NULL;
    const char *panel = body ? strstr(body, "private %weights") : NULL;
    cr_assert_not_null(first);
    if (!panel) return false;
    const char *rows = strstr(panel, "for %rows");
    cr_assert_not_null(rows);
    cr_expect(first > panel && first < rows && !strstr(rows, "%b["), "%s", text.data);
    return true;
}

Test(weight_panel, weights_are_unpacked_once_for_all_tiles_of_rows) {
    static const struct {
        int64_t rows, columns, bytes;
        bool first;
    } cases[] = {{6, 64, 8, false}, {64, 64, 8, true}, {37, 90, 20, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); ++t)
            for (int packed = 0; packed < 2; ++packed) {
                bench_case c = bits_case(cases[i].rows, cases[i].columns, cases[i].bytes,
                                         packed ? "{Ba16b}" : "");
                support_fill(&c, 5);
                assert_ok(support_interpret(&c));
                float *plain = c.buffers[3];
                const berth_target *target = support_target(c.arena, targets[t]);
                assert_ok(berth_schedule_apply(c.fn, target));
                cr_expect_eq(unpacks_first(&c), cases[i].first, "case %zu for %s", i, targets[t]);
                for (int compiled = 0; compiled <= packed; ++compiled) {
                    assert_ok(compiled ? support_run_compiled(&c, target, true)
                                       : support_interpret(&c));
                    double difference =
                        support_difference(c.buffers[3], plain, c.element_counts[3]);
                    // Terms of up to 8: the last bit of 80 of them is 4e-5.
                    cr_expect(difference < 2e-4, "case %zu for %s: %g", i, targets[t], difference);
                }
                support_case_destroy(&c);
            }
}
