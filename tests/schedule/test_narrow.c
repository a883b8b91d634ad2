// Products of one row of narrow integers with weights that the run has: sums of products of 16 bits, exact whatever
// the signs are, and as many columns at once as pairs of lines of the cache hold.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/codegen.h"
#include "tests/schedule/support.h"

static const struct {
    const char *x, *w;
    bool narrow;
    int64_t columns;  // of 16 lanes
} forms[] = {{"u8", "i8", true, 8},   {"i8", "i8", true, 8},   {"u8", "u8", true, 8},
             {"i8", "u8", true, 8},   {"i16", "i16", true, 4}, {"i8", "i16", true, 4},
             {"i32", "i8", false, 8}, {"i8", "i32", false, 2}};

static const char *const targets[] = {
    "cpu -features=avx2,avx512f,avx512bw,avx512vl,avx512vnni,fma -vector_bits=512",
    "cpu -features=avx2,avx512f,avx512bw,avx512vl,fma -vector_bits=512",
    "cpu -features=avx2,fma -vector_bits=256", "local"};

// A number of the type's whole range, its ends among them.
static int64_t number(const char *type, uint32_t i) {
    static const int64_t ends[] = {0, -1, 1};
    bool is_signed = type[0] == 'i';
    int bits = type[1] == '8' ? 8 : 16;
    int64_t least = is_signed ? -(1 << (bits - 1)) : 0, span = 1 << bits;
    uint32_t drawn = (i * 2654435761u) >> 7;
    return drawn % 4 == 3 ? least + (drawn >> 3) % span : least + (ends[drawn % 4] + span) % span;
}

static void fill(bench_case *c, berth_buf buf, const char *type) {
    for (int64_t i = 0; i < c->element_counts[buf]; ++i) {
        int64_t value = number(type, (uint32_t)i + 77 * (uint32_t)buf);
        if (type[1] == '8')
            ((uint8_t *)c->buffers[buf])[i] = (uint8_t)value;
        else if (type[1] == '1')
            ((uint16_t *)c->buffers[buf])[i] = (uint16_t)value;
        else
            ((int32_t *)c->buffers[buf])[i] = (int32_t)value;
    }
}

static bench_case product(const char *x, const char *w) {
    char text[1024];
    snprintf(
        text, sizeof(text),
        "module \"m\"\ntensor @f(%%x: %s[1,37] in, %%w: %s[37,256] in, %%y: i32[1,256] out) {\n"
        "  parallel %%i in 1 { parallel %%j in 256 {\n"
        "    register %%acc: i32[]\n    %%acc[] = 0:i32\n"
        "    for %%k in 37 { %%acc[] = %%acc[] + i32(%%x[%%i, %%k]) * i32(%%w[%%k, %%j]) }\n"
        "    %%y[%%i, %%j] = %%acc[]\n  } }\n}\n",
        x, w);
    return support_case_parse(text);
}

Test(narrow, products_of_one_row) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i)
        for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); ++t) {
            bench_case c = product(forms[i].x, forms[i].w);
            support_fill(&c, 3);
            fill(&c, 0, forms[i].x);
            fill(&c, 1, forms[i].w);
            cr_assert_null(support_interpret(&c));
            int32_t plain[256];
            memcpy(plain, c.buffers[2], sizeof(plain));
            berth_schedule_decisions *made = berth_decisions_create(c.arena, 1);
            c.fn->decisions = made;
            cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[t])));
            c.fn->decisions = NULL;
            if (t < 2)
                cr_expect_eq(made->nests[0].values[BERTH_DECISION_COLUMNS], forms[i].columns,
                             "%s x %s: %ld", forms[i].x, forms[i].w,
                             (long)made->nests[0].values[BERTH_DECISION_COLUMNS]);
            berth_codegen_result result;
            cr_assert_null(berth_codegen_c.print(c.fn, NULL, "k", c.arena, &result));
            const char *kernel = strstr(result.source, "void k_0(");
            cr_assert_not_null(kernel);
            if (t < 3)
                cr_expect_eq(strstr(kernel, "berth_add_narrow_x") != NULL, forms[i].narrow,
                             "%s x %s", forms[i].x, forms[i].w);
            cr_assert_null(support_run_compiled(&c, support_target(c.arena, "local"), true));
            cr_expect(memcmp(plain, c.buffers[2], sizeof(plain)) == 0, "%s x %s for %s", forms[i].x,
                      forms[i].w, targets[t]);
            support_case_destroy(&c);
        }
}
