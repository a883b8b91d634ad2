// Functions of one element of 8 bits as tables: by interpreter and compiled, for this machine and for one without
// lookups in registers, every element is what the plain loop gives, and tables are made only where they pay.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

#define SIGMOID(z) "TO(round(sigmoid(f32(i32(%x[AT]) - i32(" z ":FROM)) * 0.05) / 0.004) + 3.0)"
#define LEAKY "TO(round(select(f32(%x[AT]) < 0.0, f32(%x[AT]) * 0.1, f32(%x[AT])) / 1.5) + 3.0)"

typedef struct function {
    const char *from, *to;
    const char *value;  // FROM and TO for the types, AT for the place
    const char *place;  // of the operand
    int64_t rows, columns, width;
} function;

// `text` with the names of the function in it.
static void fill_in(const function *f, const char *text, char *out, size_t size) {
    const struct {
        const char *name, *text;
    } names[] = {{"FROM", f->from}, {"TO", f->to}, {"AT", f->place}};
    size_t n = 0;
    while (*text && n + 1 < size) {
        const char *with = NULL;
        for (size_t i = 0; i < 3 && !with; ++i) {
            if (strncmp(text, names[i].name, strlen(names[i].name)) != 0) continue;
            with = names[i].text;
            text += strlen(names[i].name);
        }
        char one[2] = {*text, 0};
        if (!with) ++text;
        n += (size_t)snprintf(out + n, size - n, "%s", with ? with : one);
    }
}

static bench_case made(const function *f) {
    char value[1024], text[2048];
    fill_in(f, f->value, value, sizeof(value));
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: %s[%lld,%lld] in, %%y: %s[%lld,%lld] out) {\n"
             "  parallel %%i in %lld { parallel %%j in %lld { %%y[%%i, %%j] = %s } }\n"
             "}\n",
             f->from, (long long)f->rows, (long long)f->width, f->to, (long long)f->rows,
             (long long)f->columns, (long long)f->rows, (long long)f->columns, value);
    bench_case c = support_case_parse(text);
    support_fill(&c, 7);
    return c;
}

static bool has_table(const bench_case *c) {
    for (uint32_t b = 0; b < c->fn->bufs.count; ++b)
        if (c->fn->bufs.data[b].scope == BERTH_SCOPE_PRIVATE && c->fn->bufs.data[b].dims[0] == 256)
            return true;
    return false;
}

static void compare(const bench_case *got, const bench_case *wanted, const char *how) {
    const uint8_t *a = got->buffers[1], *b = wanted->buffers[1];
    for (int64_t i = 0; i < wanted->element_counts[1]; ++i)
        cr_assert_eq(a[i], b[i], "%s: [%lld] is %d, not %d", how, (long long)i, a[i], b[i]);
}

static void check(const function *f, const char *target, bool with_table) {
    bench_case plain = made(f), c = made(f);
    berth_status status = support_interpret(&plain);
    cr_assert(!status, "%s", berth_status_message(status));
    const berth_target *cpu = support_target(c.arena, target);
    status = berth_schedule_apply(c.fn, cpu);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_eq(has_table(&c), with_table, "%s to %s, %lld by %lld, %s", f->from, f->to,
                 (long long)f->rows, (long long)f->columns, target);
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    compare(&c, &plain, "by interpreter");
    status = support_run_compiled(&c, cpu, true);
    cr_assert(!status, "%s", berth_status_message(status));
    compare(&c, &plain, "compiled");
    support_case_destroy(&c);
    support_case_destroy(&plain);
}

static const char *const in_order = "%i, %j";
static const char *const avx2 =
    "cpu -features=avx,avx2,bmi,bmi2,f16c,fma,popcnt,sse4.2 -vector_bits=256";

Test(bytes, every_element_is_looked_up) {
    const function functions[] = {{"u8", "u8", SIGMOID("128"), in_order, 4, 500, 500},
                                  {"i8", "i8", SIGMOID("0"), in_order, 9, 77, 77},
                                  {"u8", "i8", SIGMOID("7"), in_order, 1, 512, 512},
                                  {"i8", "u8", SIGMOID("-3"), in_order, 3, 30001, 30001},
                                  {"u8", "u8", SIGMOID("128"), "%i, %j + 3", 8, 75, 90}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        check(&functions[i], "local", true);
        check(&functions[i], avx2, true);
    }
}

// A few operations take less time than a lookup without registers for it.
Test(bytes, tables_that_pay) {
    const char *vbmi = "cpu "
                       "-features=avx,avx2,avx512bw,avx512dq,avx512f,avx512vbmi,avx512vl,bmi,bmi2,"
                       "f16c,fma,popcnt,sse4.2";
    function leaky = {"i8", "i8", LEAKY, in_order, 8, 300, 300};
    bench_case c = made(&leaky);
    cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, vbmi)));
    cr_expect(has_table(&c), "lookups in registers");
    support_case_destroy(&c);
    check(&leaky, avx2, false);
    check(&(function){"u8", "u8", "max(%x[AT], 9:u8)", in_order, 8, 300, 300}, "local", false);
    check(&(function){"u8", "u8", SIGMOID("1"), in_order, 1, 511, 511}, "local", false);
}
