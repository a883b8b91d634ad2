// Elements that are only moved: blocks of any type go through registers where they are transposed, halves
// keep their bits, and everything is where the plain loops put it.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static const char *const targets[] = {"cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512",
                                      "cpu -features=avx2,fma -vector_bits=256"};
static const char *const types[] = {"i8",   "u8",  "bool", "i16", "u16", "f16",
                                    "bf16", "i32", "u32",  "i64", "u64", "f64"};

typedef struct form {
    const char *params;  // with T for the type, D0, D1, D2 for the extents of the result
    const char *place;   // in %x, of y[i, j, k]
    int extents[3];
    bool blocks;  // its elements go through registers in blocks
} form;

static const form forms[] = {
    {"%x: T[D2,D1] in", "%k, %j", {1, 16, 32}, true},
    {"%x: T[D2,D1] in", "%k, %j", {1, 37, 83}, true},
    {"%x: T[D0,D2,D1] in", "%i, %k, %j", {3, 70, 19}, true},
    {"%x: T[D2,D1,D0] in", "%k, %j, %i", {18, 5, 33}, true},
    {"%x: T[D1,D2,D0] in", "%j, %k, %i", {9, 7, 11}, true},
    {"%x: T[D2,D1] in", "%k, %j", {1, 40, 3}, false},
    {"%x: T[D1,D2] in", "%j, %k", {1, 20, 70}, false},
    {"%x: T[D1,D2] in", "%j, %k / 2", {1, 20, 70}, false},
    {"%x: T[D1,D2] in", "%j, %k / 2", {2, 20, 64}, false},
};

enum {
    form_count = sizeof(forms) / sizeof(forms[0]),
    type_count = sizeof(types) / sizeof(types[0]),
    target_count = sizeof(targets) / sizeof(targets[0]),
    case_count = form_count * type_count * target_count
};

static void add(char *out, size_t size, const char *text, const form *f, const char *type) {
    size_t n = strlen(out);
    for (; *text && n + 24 < size; ++text) {
        if (text[0] == 'D' && text[1] >= '0' && text[1] <= '2')
            n += (size_t)snprintf(out + n, size - n, "%d", f->extents[*++text - '0']);
        else if (text[0] == 'T')
            n += (size_t)snprintf(out + n, size - n, "%s", type);
        else
            out[n++] = *text;
    }
    out[n] = 0;
}

static bench_case build(const form *f, const char *type) {
    char text[1024] = "module \"m\"\n";
    bool half = strstr(type, "f16") != NULL;  // lowering computes with them as f32
    add(text, sizeof(text), "tensor @f(", f, type);
    add(text, sizeof(text), f->params, f, type);
    add(text, sizeof(text),
        ", %y: T[D0,D1,D2] out) {\n  parallel %i in D0 { parallel %j in D1 { parallel %k in D2 {\n"
        "    %y[%i, %j, %k] = ",
        f, type);
    add(text, sizeof(text), half ? "T(f32(%x[" : "%x[", f, type);
    add(text, sizeof(text), f->place, f, type);
    add(text, sizeof(text), half ? "]))\n  } } }\n}\n" : "]\n  } } }\n}\n", f, type);
    return support_case_parse(text);
}

static const char *kernel_text(bench_case *c, berth_codegen_result *out) {
    berth_status status = berth_codegen_c.print(c->fn, NULL, "k", c->arena, out);
    cr_assert(!status, "%s", berth_status_message(status));
    const char *kernel = strstr(out->source, "void k_0(");
    cr_assert_not_null(kernel);
    return kernel;
}

ParameterizedTestParameters(moves, elements_of_any_type) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

ParameterizedTest(int *index, moves, elements_of_any_type) {
    const form *f = &forms[*index / (type_count * target_count)];
    const char *type = types[*index / target_count % type_count];
    const char *target = targets[*index % target_count];
    bench_case c = build(f, type);
    support_fill(&c, 17);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", type, berth_status_message(status));
    size_t bytes = support_buffer_bytes(&c, 1);
    const void *plain = c.buffers[1];
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s: %s", type, berth_status_message(status));
    status = support_interpret(&c);
    cr_assert(!status, "%s: %s", type, berth_status_message(status));
    cr_expect(memcmp(plain, c.buffers[1], bytes) == 0, "%s [%s]: interpreted", type, f->place);
    berth_codegen_result result;
    const char *kernel = kernel_text(&c, &result);
    cr_expect_eq(strstr(kernel, "berth_transpose_uint") != NULL, f->blocks, "%s [%s] for %s", type,
                 f->place, target);
    cr_expect_null(strstr(kernel, "16_to_f32"), "%s [%s] is converted", type, f->place);
    cr_expect_null(strstr(kernel, "/ 2)"), "%s [%s]: each element is fetched twice", type,
                   f->place);
    status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: %s", type, berth_status_message(status));
    cr_expect(memcmp(plain, c.buffers[1], bytes) == 0, "%s [%s]: compiled for %s", type, f->place,
              target);
    support_case_destroy(&c);
}

// What is computed, or decided, or of another type, is not taken for a move.
Test(moves, other_values) {
    static const char *const values[] = {
        "f16(f32(%x[%j, %i]) + 1.0)", "f16(f32(bf16(f32(%x[%j, %i]))))",
        "f16(f32(i8(f32(%x[%j, %i]))))", "f16(select(%i < 9, f32(%x[%j, %i]), 1.0))",
        "f16(select(%i < 9, f32(%x[%j, %i]), -0.0))"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\ntensor @f(%%x: f16[24,40] in, %%y: f16[40,24] out) {\n"
                 "  parallel %%i in 40 { parallel %%j in 24 { %%y[%%i, %%j] = %s } }\n}\n",
                 values[i]);
        bench_case c = support_case_parse(text);
        support_fill(&c, 3);
        cr_assert_null(support_interpret(&c));
        const void *plain = c.buffers[1];
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[0])));
        cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
        cr_expect(memcmp(plain, c.buffers[1], support_buffer_bytes(&c, 1)) == 0, "%s", values[i]);
        berth_codegen_result result;
        cr_expect_null(strstr(kernel_text(&c, &result), "berth_transpose_uint"), "%s", values[i]);
        support_case_destroy(&c);
    }
}

// Channels that fill up the last block of a layout: what is moved goes through registers, the rest is written by itself.
Test(moves, beside_a_border) {
    static const char *const values[] = {
        "select(%i < 22, %x[%i, %j], 7:T)",
        "select(%i >= 2, %x[%i - 2, %j], 7:T)",
        "select(%i >= 1 && %i < 23 && %j >= 3, %x[%i - 1, %j - 3], 7:T)",
    };
    static const char *const of[] = {"u8", "i16", "i32", "i64"};
    static const form extents = {.extents = {22, 41, 24}};
    enum { value_count = sizeof(values) / sizeof(values[0]) };
    for (size_t i = 0; i < value_count * sizeof(of) / sizeof(of[0]) * target_count; ++i) {
        const char *type = of[i / value_count / target_count];
        const char *target = targets[i / value_count % target_count];
        const char *value = values[i % value_count];
        char text[512] = "module \"m\"\n";
        add(text, sizeof(text),
            "tensor @f(%x: T[D0,D1] in, %y: T[D1,D2] out) {\n"
            "  parallel %j in D1 { parallel %i in D2 { %y[%j, %i] = ",
            &extents, type);
        add(text, sizeof(text), value, &extents, type);
        add(text, sizeof(text), " } }\n}\n", &extents, type);
        bench_case c = support_case_parse(text);
        support_fill(&c, 5);
        cr_assert_null(support_interpret(&c));
        const void *plain = c.buffers[1];
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, target)));
        cr_assert_null(support_interpret(&c));
        cr_expect(memcmp(plain, c.buffers[1], support_buffer_bytes(&c, 1)) == 0, "%s: interpreted",
                  value);
        cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
        cr_expect(memcmp(plain, c.buffers[1], support_buffer_bytes(&c, 1)) == 0, "%s for %s", value,
                  target);
        berth_codegen_result result;
        cr_expect_not_null(strstr(kernel_text(&c, &result), "berth_transpose_uint"), "%s for %s",
                           value, target);
        support_case_destroy(&c);
    }
}

// Short rows of 1 and 2 bytes that end within half a register by far are copied with a last piece that begins before their
// end; all others are loops.
Test(moves, ends_of_rows) {
    static const struct {
        const char *type, *place;
        int extent;
        bool pieces;
    } cases[] = {
        {"u8", "%j % 79", 158, true},  {"u8", "%j + 1", 8, true},   {"i8", "%j + 1", 23, true},
        {"bool", "%j + 1", 47, true},  {"u8", "%j + 1", 31, true},  {"u8", "%j + 1", 205, true},
        {"i16", "%j + 1", 12, true},   {"u8", "%j + 1", 64, false}, {"u8", "%j + 1", 39, false},
        {"u8", "%j + 1", 1000, false}, {"f32", "%j + 1", 9, false}, {"u8", "%j * 2", 79, false},
        {"u8", "%j + %k", 79, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\ntensor @f(%%x: %s[5,1100] in, %%y: %s[5,3,%d] out) {\n"
                 "  parallel %%i in 5 { parallel %%k in 3 { parallel %%j in %d {\n"
                 "    %%y[%%i, %%k, %%j] = %%x[%%i, %s]\n  } } }\n}\n",
                 cases[i].type, cases[i].type, cases[i].extent, cases[i].extent, cases[i].place);
        bench_case c = support_case_parse(text);
        support_fill(&c, 3);
        cr_assert_null(support_interpret(&c));
        const void *plain = c.buffers[1];
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[0])));
        cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
        cr_expect(memcmp(plain, c.buffers[1], support_buffer_bytes(&c, 1)) == 0, "case %zu", i);
        berth_codegen_result result;
        bool pieces = strstr(kernel_text(&c, &result), "berth_copy_row(") != NULL;
        cr_expect_eq(pieces, cases[i].pieces, "case %zu", i);
        support_case_destroy(&c);
    }
}

// What conditions choose of elements and zeros keeps its bits.
Test(moves, chosen_halves) {
    static const char *const values[] = {
        "f16(select(%j < 20, f32(%x[%i, %j]), f32(%z[%i, %j - 20])))",
        "f16(select(%i <= %j, f32(%x[%i, %j]), 0.0))",
        "f16(select(%m[%i, %j] < 100, f32(%x[%i, %j]), f32(%z[%i, %j])))",
        "f16(select(%m[%i, %j] < 100, select(%i <= %j, f32(%x[%i, %j]), 0.0), f32(%z[%i, %j])))",
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        char text[512];
        snprintf(
            text, sizeof(text),
            "module \"m\"\ntensor @f(%%x: f16[40,64] in, %%z: f16[40,64] in, %%m: u8[40,64] in, "
            "%%y: f16[40,64] out) {\n"
            "  parallel %%i in 40 { parallel %%j in 64 { %%y[%%i, %%j] = %s } }\n}\n",
            values[i]);
        bench_case c = support_case_parse(text);
        support_fill(&c, 3);
        cr_assert_null(support_interpret(&c));
        const void *plain = c.buffers[3];
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[0])));
        cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
        cr_expect(memcmp(plain, c.buffers[3], support_buffer_bytes(&c, 3)) == 0, "%s", values[i]);
        berth_codegen_result result;
        cr_expect_null(strstr(kernel_text(&c, &result), "f16_to_f32"), "%s", values[i]);
        support_case_destroy(&c);
    }
}

// A store rounds to halves by itself, of vectors, too.
Test(moves, halves_are_rounded_once) {
    static const char *const halves[] = {"f16", "bf16"};
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); ++i) {
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\ntensor @f(%%x: f32[40,32] in, %%y: %s[40,32] out) {\n"
                 "  parallel %%i in 40 { parallel %%j in 32 {\n"
                 "    %%y[%%i, %%j] = %s(f32(%s(%%x[%%i, %%j])))\n  } }\n}\n",
                 halves[i], halves[i], halves[i]);
        bench_case c = support_case_parse(text);
        support_fill(&c, 9);
        cr_assert_null(support_interpret(&c));
        const void *plain = c.buffers[1];
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[0])));
        berth_codegen_result result;
        const char *kernel = kernel_text(&c, &result);
        if (i == 0) cr_expect_not_null(strstr(kernel, "berth_store_f16x16"));
        cr_expect_null(strstr(kernel, "berth_round_"), "%s", halves[i]);
        cr_assert_null(support_run_compiled(&c, support_target(c.arena, "cpu"), true));
        cr_expect(memcmp(plain, c.buffers[1], support_buffer_bytes(&c, 1)) == 0, "%s", halves[i]);
        support_case_destroy(&c);
    }
}

// y[i, k] = x[k - 2, i] where there is one, and else 128: the middle goes through registers, whatever lies around.
static bool has_blocks_between(const char *around, int64_t rows, int64_t columns) {
    char text[512];
    snprintf(
        text, sizeof(text),
        "module \"m\"\n"
        "tensor @f(%%x: u8[%lld,%lld] in, %%y: u8[%lld,%lld] out) {\n"
        "  parallel %%k in %lld { parallel %%i in %lld {\n"
        "    %%y[%%k, %%i] = select(%%k + -2 >= 0 && %%k + -2 < %lld, %%x[%%i, %%k + -2], %s)\n"
        "  } }\n}\n",
        (long long)rows, (long long)columns, (long long)columns + 3, (long long)rows,
        (long long)columns + 3, (long long)rows, (long long)columns, around);
    bench_case c = support_case_parse(text);
    support_fill(&c, 17);
    cr_assert_null(support_interpret(&c));
    size_t bytes = support_buffer_bytes(&c, 1);
    const void *plain = c.buffers[1];
    const berth_target *target = support_target(c.arena, targets[0]);
    cr_assert_null(berth_schedule_apply(c.fn, target));
    cr_assert_null(support_interpret(&c));
    cr_expect(memcmp(plain, c.buffers[1], bytes) == 0, "around: %s, interpreted", around);
    berth_codegen_result result;
    bool blocks = strstr(kernel_text(&c, &result), "berth_transpose_uint8") != NULL;
    berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect(memcmp(plain, c.buffers[1], bytes) == 0, "around: %s, compiled", around);
    support_case_destroy(&c);
    return blocks;
}

Test(moves, with_something_around) {
    cr_expect(has_blocks_between("128:u8", 16, 28));
    cr_expect(has_blocks_between("0:u8", 37, 41));
    cr_expect_not(has_blocks_between("128:u8", 3, 28), "too few rows for a block");
}
