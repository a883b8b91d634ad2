// Calls in tensor functions: what does not fit at the boundary is refused with what and where.
#include <stdio.h>

#include "ir/pass.h"
#include "ir/text.h"
#include "tests/check.h"

static const char rest[] =
    "tensor @half(%a: f32[4] in, %b: f32[4] out) {\n"
    "  for %i in 4 {\n    %b[%i] = %a[%i] * 0.5\n  }\n}\n"
    "tensor @in_place(%b: f32[4] inout) {\n  for %i in 4 {\n    %b[%i] = %b[%i] * 0.5\n  }\n}\n"
    "tensor @blocks(%a: f32[1,8]{aB8b} in, %b: f32[1,8]{aB8b} out) {\n}\n"
    "tensor @scoped(%a: f32[4] in scope \"vta.inp\", %b: f32[4] out) {\n}\n"
    "graph @graph(%a: f32[4]) {\n  return %a\n}\n"
    "external @code fn(f32[N], f32[N])->(f32[N]) language \"c\" symbol \"f\" file \"f.c\"\n"
    "external @tuple fn((f32[4], f32[4]))->(f32[4]) language \"c\" symbol \"f\" file \"f.c\"\n";

typedef struct row {
    const char *statement;
    const char *problem;  // NULL: it is proper
} row;

static const row rows[] = {
    {"call @half(%x[0, 0 for 4], %y[0, 0 for 4])", NULL},
    {"call @half(%x[0, 4 for 4], %y[0, 4 for 4])", NULL},
    {"for %i in 4 { call @half(%x[0, 4 for 4], %y[%i, 0 for 4]) }", NULL},
    {"for %i in 2 { call @half(%x[%i * 2 + 1, %i * 4 for 4], %y[0, 0 for 4]) }", NULL},
    {"for %i in 8 { call @half(%x[0 for 4, %i], %y[0 for 4, %i]) }", NULL},
    {"call @half(%y[0, 4 for 4], %y[1, 4 for 4])", NULL},
    {"call @code(%x[1 for 4, 0 for 1], %x[0, 0 for 4], %y[0, 0 for 4])", "it takes f32[N]"},
    {"call @code(%x[1, 2 for 4], %x[0, 0 for 4], %y[0, 0 for 4])", NULL},
    {"call @blocks(%u[0 for 1, 8 for 8], %v[0 for 1, 0 for 8])", NULL},
    // types
    {"call @half(%x[0, 0 for 5], %y[0, 0 for 4])", "argument 0 is f32[5], it takes f32[4]"},
    {"call @half(%x[0, 0 for 4], %y)", "argument 1 is f32[4,8], it takes f32[4]"},
    {"call @half(%n[0 for 4], %y[0, 0 for 4])", "argument 0 is i32[4], it takes f32[4]"},
    {"call @half(%x[0, 0 for 4])", "takes 2 arguments, not 1"},
    {"call @blocks(%x[0 for 1, 0 for 8], %v[0 for 1, 0 for 8])", "it takes f32[1,8]{aB8b}"},
    {"call @code(%x[0, 0 for 4], %x[0, 0 for 3], %y[0, 0 for 4])", "argument 1 is f32[3]"},
    {"call @scoped(%x[0, 0 for 4], %y[0, 0 for 4])", "memory scope \"vta.inp\""},
    {"call @graph(%x[0, 0 for 4])", "tensor functions call tensor functions"},
    {"call @tuple(%x[0, 0 for 4], %y[0, 0 for 4])", "tensor functions call tensor functions"},
    {"call no_function(%x)", "a function that is not there"},
    // bounds
    {"call @half(%x[0, 5 for 4], %y[0, 0 for 4])", "goes from 5 to 9 in dimension 1 of \"x\""},
    {"call @half(%x[0, -1 for 4], %y[0, 0 for 4])", "from -1 to 3 in dimension 1"},
    {"call @half(%x[4, 0 for 4], %y[0, 0 for 4])", "from 4 to 5 in dimension 0"},
    {"for %i in 5 { call @half(%x[%i, 0 for 4], %y[0, 0 for 4]) }", "from 0 to 5 in dimension 0"},
    {"for %i in 2 { call @half(%x[0, %i * 5 for 4], %y[0, 0 for 4]) }", "from 0 to 9"},
    {"call @half(%x[index(%n[0]), 0 for 4], %y[0, 0 for 4])", "cannot be told"},
    {"for %i in index(%n[0]) { call @half(%x[%i, 0 for 4], %y[0, 0 for 4]) }", "cannot be told"},
    {"call @half(%x[3037000500 * 3037000500 * 4, 0 for 4], %y[0, 0 for 4])", "cannot be told"},
    {"for %i in 9223372036854775807 { call @half(%x[%i * 4611686018427387904 - "
     "4611686018427387904, 0 for 4], %y[0, 0 for 4]) }",
     "cannot be told"},
    // layouts
    {"call @blocks(%u[0 for 1, 4 for 8], %v[0 for 1, 0 for 8])", "cuts blocks of 8"},
    {"call @code(%x[0 for 4, 0], %x[0, 0 for 4], %y[0, 0 for 4])", "argument 0 lies in parts"},
    // what is written
    {"call @half(%y[0, 0 for 4], %x[0, 0 for 4])", "it writes argument 1, the input \"x\""},
    {"call @in_place(%x[0, 0 for 4])", "it writes argument 0, the input \"x\""},
    {"call @half(%y[0, 0 for 4], %y[0, 2 for 4])", "may be the same elements of \"y\""},
    {"for %i in 4 { call @half(%y[%i, 0 for 4], %y[0, 0 for 4]) }", "may be the same elements"},
    // indices and buffers
    {"call @half(%x[0.5, 0 for 4], %y[0, 0 for 4])", "no index expression"},
    {"call @half(%x[ramp(0, 4), 0 for 4], %y[0, 0 for 4])", "begins at a vector of indices"},
    {"if 0 == 0 { private %q: f32[4] call @in_place(%q) }", NULL},
    // itself
    {"call @f(%x, %n, %y, %u, %v)", "calls itself"},
};

static berth_status check(const char *statement, const char *more) {
    char text[4096];
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    int length =
        snprintf(text, sizeof(text),
                 "module \"m\"\ntensor @f(%%x: f32[4,8] in, %%n: i32[4] in, %%y: f32[4,8] out, "
                 "%%u: f32[1,16]{aB8b} in, %%v: f32[1,16]{aB8b} out) {\n%s\n}\n%s%s",
                 statement, rest, more);
    berth_status status = berth_module_parse(arena, text, (size_t)length, "t", &module);
    cr_assert_null(status, "%s: %s", statement, berth_status_message(status));
    status = berth_module_verify(module);
    berth_arena_destroy(arena);
    return status;
}

Test(calls, boundaries) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_status status = check(rows[i].statement, "");
        if (!rows[i].problem) {
            cr_expect_null(status, "%s: %s", rows[i].statement, berth_status_message(status));
        } else {
            cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s",
                         rows[i].statement);
            cr_expect_not_null(strstr(berth_status_message(status), rows[i].problem), "%s: %s",
                               rows[i].statement, berth_status_message(status));
            cr_expect_not_null(strstr(berth_status_message(status), "function @f"), "%s",
                               berth_status_message(status));
        }
        berth_status_free(status);
    }
}

Test(calls, circles_and_depth) {
    static const char circle[] = "tensor @a(%p: f32[4] inout) {\n  call @b(%p)\n}\n"
                                 "tensor @b(%p: f32[4] inout) {\n  call @c(%p)\n}\n"
                                 "tensor @c(%p: f32[4] inout) {\n  call @a(%p)\n}\n";
    assert_fails(check("", circle), BERTH_INVALID_ARGUMENT, "calls itself");
    for (int depth = 30; depth <= 40; depth += 10) {
        char chain[4096];
        size_t n = 0;
        for (int i = 0; i < depth; ++i)
            n += (size_t)snprintf(chain + n, sizeof(chain) - n,
                                  "tensor @f%d(%%p: f32[4] inout) {\n  call @%s%d(%%p)\n}\n", i,
                                  i + 1 < depth ? "f" : "in_place", i + 1);
        char *end = strstr(chain, "in_place") + 8;
        memset(end, ' ', strspn(end, "0123456789"));
        if (depth == 30)
            assert_ok(check("", chain));
        else
            assert_fails(check("", chain), BERTH_INVALID_ARGUMENT, "more than 32 deep");
    }
}

// Where the text itself is wrong.
Test(calls, text) {
    static const struct {
        const char *statement, *problem;
    } wrong[] = {{"call @nobody(%x)", "the name of a function of this module"},
                 {"call %x", "a function (@name)"},
                 {"call @f(%nobody)", "nobody"},
                 {"call @f(%x[0])", "expected ','"},
                 {"call @f(%x[0, 0, 0])", "expected ']'"},
                 {"call @f(%x[0 for -1, 0])", "a number of elements"},
                 {"call @f(%x[0 for %x, 0])", "t:3:"},
                 {"call @f(%x", "t:"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        char text[512];
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        int length =
            snprintf(text, sizeof(text), "module \"m\"\ntensor @f(%%x: f32[4,8] in) {\n%s\n}\n",
                     wrong[i].statement);
        berth_status status = berth_module_parse(arena, text, (size_t)length, "t", &module);
        cr_expect_not_null(strstr(berth_status_message(status), wrong[i].problem), "%s: %s",
                           wrong[i].statement, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}
