// Code gets the helper functions that it uses, and what those use: every one compiles alone.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/codegen/c_helpers.h"
#include "compiler/codegen/c_preamble.h"
#include "tests/schedule/toolchain_case.h"

static const char library[] = "#define MAKE_NONE(x) x\n"
                              "#define BERTH_TWO(S, T) \\\n"
                              "BERTH_FN T berth_inc_##S(T a) { return a + 1; } \\\n"
                              "BERTH_FN T berth_twice_##S(T a) { return berth_inc_##S(a) * 2; }\n"
                              "BERTH_TWO(i32, int) BERTH_TWO(i64, long)\n"
                              "#ifdef BERTH_MORE\n"
                              "BERTH_TWO(i8, char)\n"
                              "#else\n"
                              "BERTH_TWO(u8, unsigned char)\n"
                              "#endif\n"
                              "#if defined(__A__)\n"
                              "BERTH_FN int berth_which(int a) { return 1; }\n"
                              "#elif defined(__B__)\n"
                              "BERTH_FN int berth_which(int a) { return 2; }\n"
                              "#else\n"
                              "BERTH_FN int berth_other(int a) {\n"
                              "#ifdef __C__\n"
                              "    return BERTH_LATER(3);\n"
                              "#else\n"
                              "    return 4;\n"
                              "#endif\n"
                              "}\n"
                              "#endif\n"
                              "typedef int berth_pair;\n"
                              "/* a comment */\n"
                              "#define BERTH_LATER(x) \\\n"
                              "    ((x) + berth_pair_of)\n";

static const char *used(const char *code, const char *first_known, berth_arena *arena) {
    const char *known[] = {first_known, NULL};
    berth_strbuf out = berth_strbuf_make(arena);
    berth_c_helpers *helpers = berth_c_helpers_read(library, known, arena);
    berth_c_helpers_use(helpers, code);
    berth_c_helpers_add(helpers, "\n", NULL, &out);
    return berth_strbuf_text(&out);
}

Test(helpers, what_is_used_and_what_that_uses) {
    toolchain_case c = toolchain_case_open();
    cr_expect_str_eq(used("no_berth_inc_i32", NULL, c.arena), "");
    cr_expect_str_eq(used("x = berth_twice_i64(y);", NULL, c.arena),
                     "BERTH_FN long berth_inc_i64(long a) { return a + 1; }\n"
                     "BERTH_FN long berth_twice_i64(long a) { return berth_inc_i64(a) * 2; }\n");
    cr_expect_str_eq(used("berth_inc_i8 berth_inc_u8", NULL, c.arena),
                     "BERTH_FN unsigned char berth_inc_u8(unsigned char a) { return a + 1; }\n");
    cr_expect_str_eq(used("berth_inc_i8 berth_inc_u8", "BERTH_MORE", c.arena),
                     "BERTH_FN char berth_inc_i8(char a) { return a + 1; }\n");
    cr_expect_str_eq(used("berth_pair", NULL, c.arena), "typedef int berth_pair;\n");
    toolchain_case_close(&c);
}

Test(helpers, conditions_stay_around_what_they_were_around) {
    toolchain_case c = toolchain_case_open();
    cr_expect_str_eq(used("berth_which", NULL, c.arena),
                     "#if defined(__A__)\n"
                     "BERTH_FN int berth_which(int a) { return 1; }\n"
                     "#elif defined(__B__)\n"
                     "BERTH_FN int berth_which(int a) { return 2; }\n"
                     "#endif\n");
    cr_expect_str_eq(used("berth_other", NULL, c.arena), "#if defined(__A__)\n"
                                                         "#elif defined(__B__)\n"
                                                         "#else\n"
                                                         "BERTH_FN int berth_other(int a) {\n"
                                                         "#ifdef __C__\n"
                                                         "    return BERTH_LATER(3);\n"
                                                         "#else\n"
                                                         "    return 4;\n"
                                                         "#endif\n"
                                                         "}\n"
                                                         "#endif\n"
                                                         "/* a comment */\n"
                                                         "#define BERTH_LATER(x) \\\n"
                                                         "    ((x) + berth_pair_of)\n");
    toolchain_case_close(&c);
}

// ---- the library of the C printer ---------------------------------------------------------------

// Names as the printer makes them, of which the library has some.
static const char *all_names(berth_arena *arena) {
    static const char *const ops[] = {
        "min",        "max",        "min_const", "max_const", "abs",        "sign",       "floor",
        "ceil",       "round",      "trunc",     "sqrt",      "rsqrt",      "pow",        "mod",
        "div",        "floor_div",  "floor_mod", "shl",       "shr",        "atan2",      "is_nan",
        "is_inf",     "fma",        "erf",       "exp",       "log",        "tanh",       "sigmoid",
        "sin",        "cos",        "tan",       "asin",      "acos",       "atan",       "sinh",
        "cosh",       "asinh",      "acosh",     "atanh",     "cast_f32",   "cast_i32",   "cast_i8",
        "cast_u8",    "cast_i16",   "cast_u16",  "cast_i64",  "nearest_i8", "nearest_u8", "select",
        "reduce_add", "round_bf16", "round_f16", "mask",      "load",       "store",      "evens",
        "transpose"};
    static const char *const types[] = {"f32",    "f64",     "f16",   "bf16",   "i8",     "i16",
                                        "i32",    "i64",     "u8",    "u16",    "u32",    "u64",
                                        "f32_u8", "f32_i32", "uint8", "uint16", "uint32", "uint64"};
    static const char *const lanes[] = {"", "x2", "x4", "x8", "x16", "x32"};
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_add(&out, "/* berth_lookup berth_load_steps_f32x16 berth_store_steps_f32x16 "
                           "berth_add_narrow_x8 berth_add_narrow_x16");
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); ++o)
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t)
            for (size_t l = 0; l < sizeof(lanes) / sizeof(lanes[0]); ++l) {
                berth_strbuf_addf(&out, " berth_%s_%s%s", ops[o], types[t], lanes[l]);
                if (l) berth_strbuf_addf(&out, " berth_%s%s_u", types[t], lanes[l]);
            }
    berth_strbuf_add(&out, " */\n");
    return berth_strbuf_text(&out);
}

static berth_status compile(toolchain_case *c, const char *code) {
    berth_toolchain_unit unit = {.label = "helpers", .source = code, .is_part = true};
    berth_toolchain_image image;
    c->options.complete = berth_c_complete;
    return berth_toolchain_compile(&c->options, c->arena, &unit, 1, &image);
}

static void expect_compiles(toolchain_case *c, const char *what, const char *code) {
    berth_status status = compile(c, code);
    cr_expect(!status, "%s: %s", what, status ? berth_status_message(status) : "");
    berth_status_free(status);
}

#define STRICT "#pragma GCC diagnostic error \"-Wimplicit-function-declaration\"\n"

// Of the functions, every 29th: what one lacks, those beside it from the same macro lack, too.
static void check_each(toolchain_case *c, const char *target) {
    static const char mark[] = "BERTH_FN ";
    c->options.target = support_target(c->arena, target);
    const char *names = all_names(c->arena);
    const char *whole = berth_c_complete(names, c->arena);
    expect_compiles(c, "all of it", berth_arena_printf(c->arena, STRICT "%s", names));
    int count = 0;
    for (const char *at = whole; (at = strstr(at, mark)); at += strlen(mark)) {
        const char *end = strchr(at, '(');
        while (end > at && (berth_c_word_length(end - 1))) --end;
        const char *name = berth_arena_strndup(c->arena, end, berth_c_word_length(end));
        bool is_everywhere = strcmp(name, "berth_lookup_64") != 0;  // AVX-512 VBMI
        if (strncmp(name, "berth_", 6) != 0 || !is_everywhere || count++ % 29 != 0) continue;
        expect_compiles(c, name,
                        berth_arena_printf(c->arena,
                                           STRICT
                                           "void f(const void **to);\n"
                                           "void f(const void **to) { *to = (const void *)&%s; }\n",
                                           name));
    }
    cr_expect_gt(count, 700);
}

Test(helpers, each_compiles_alone, .timeout = 300) {
    toolchain_case c = toolchain_case_open();
    check_each(&c, "cpu");
    toolchain_case_close(&c);
}

Test(helpers, each_compiles_alone_with_short_vectors, .timeout = 300) {
    toolchain_case c = toolchain_case_open();
    check_each(&c, "cpu -features=sse4_2");
    toolchain_case_close(&c);
}
