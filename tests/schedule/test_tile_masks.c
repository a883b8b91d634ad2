// Register tiles over the last block of channels that fill none: what is behind the last channel is a choice by index, which
// becomes a mask of the vector that is stored. Under the interpreter and compiled, they give what the plain loops give.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static const char *const targets[] = {
    "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512",
    "cpu -features=avx2,f16c,fma -vector_bits=256",
};

enum { target_count = sizeof(targets) / sizeof(targets[0]) };

typedef struct masked {
    int64_t columns;
    const char *bias_layout;                // "": it ends with the last column
    const char *from, *weights, *sum, *to;  // types
    const char *value;                      // of %acc[] and %b
    bool in_vectors;                        // all of it
} masked;

static const masked cases[] = {
    {18, "{A16a}", "f32", "f32", "f32", "f32", "max(%acc[] + %b[%o * 16 + %j], -0.5) + 1.0", true},
    {40, "{A16a}", "f32", "f32", "f32", "f32", "sigmoid(%acc[] + %b[%o * 16 + %j])", true},
    {40, "", "f32", "f32", "f32", "f32", "sigmoid(%acc[] + %b[%o * 16 + %j])", false},
    {18, "{A16a}", "f32", "f32", "f32", "f16", "f32(f16(%acc[] + %b[%o * 16 + %j])) + 1.0", true},
    {35, "{A16a}", "u8", "i8", "i32", "u8", "round(f32(%acc[] + %b[%o * 16 + %j]) * 0.001) + 120.0",
     true},
};

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

static bench_case build(const masked *m) {
    char text[2048];
    int64_t n = m->columns;
    bool bytes = m->to[0] == 'u', halves = strcmp(m->to, "f16") == 0;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: %s[30,12] in, %%w: %s[12,%ld]{aB16b} in, %%b: %s[%ld]%s in,\n"
             "    %%y: %s[30,%ld]{aB16b} out) {\n"
             "  parallel %%i in 30 { for %%o in %ld { for %%j in 16 {\n"
             "    register %%acc: %s[]\n"
             "    %%acc[] = %s\n"
             "    for %%k in 12 { %%acc[] = %s }\n"
             "    %%y[%%i, %%o * 16 + %%j] = %s(select(%%o * 16 + %%j < %ld, %s, 0.0))\n"
             "  } } }\n}\n",
             m->from, m->weights, n, m->sum, n, m->bias_layout, m->to, n, (n + 15) / 16, m->sum,
             bytes ? "0:i32" : "0.0",
             bytes ? "%acc[] + i32(%x[%i, %k]) * i32(%w[%k, %o * 16 + %j])"
                   : "fma(%x[%i, %k], %w[%k, %o * 16 + %j], %acc[])",
             bytes    ? "u8"
             : halves ? "f16"
                      : "",
             n, m->value);
    return support_case_parse(text);
}

// Whether results are stored one by one anywhere.
static bool has_single_stores(const bench_case *c) {
    berth_strbuf text = berth_strbuf_make(c->arena);
    berth_tfn_print(c->fn, &text);
    return strstr(text.data, "simd %") != NULL;
}

// Neighbours among the numbers of a type: sums may be rounded once or twice.
static bool is_near(const bench_case *c, const void *a, const void *b, const char *type) {
    const berth_buf y = 3;
    if (strcmp(type, "f32") == 0) return support_difference(a, b, c->element_counts[y]) <= 2e-6;
    if (type[0] == 'u') return memcmp(a, b, support_buffer_bytes(c, y)) == 0;
    const uint16_t *halves = a, *others = b;
    for (int64_t i = 0; i < c->element_counts[y]; ++i)
        if (halves[i] + 1 < others[i] || others[i] + 1 < halves[i]) return false;
    return true;
}

ParameterizedTestParameters(tile_masks, blocks) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

ParameterizedTest(int *index, tile_masks, blocks) {
    const masked *m = &cases[*index];
    for (int t = 0; t < target_count; ++t) {
        bench_case c = build(m);
        support_fill(&c, 3);
        berth_status status = support_interpret(&c);
        cr_assert(!status, "%s", berth_status_message(status));
        const void *plain = c.buffers[3];
        status = berth_schedule_apply(c.fn, support_target(c.arena, targets[t]));
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_eq(has_single_stores(&c), !m->in_vectors, "case %d for %s", *index, targets[t]);
        status = support_interpret(&c);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect(is_near(&c, c.buffers[3], plain, m->to), "case %d, interpreted", *index);
        status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect(is_near(&c, c.buffers[3], plain, m->to), "case %d, compiled", *index);
        support_case_destroy(&c);
    }
}
