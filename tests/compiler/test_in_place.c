// Which results may be written over an operand, for tensor functions as text: expected pairs by
// reading the loops.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "compiler/package/in_place.h"
#include "ir/text.h"

typedef struct in_place_case {
    const char *text;
    const char *pairs;  // "nest from>to ..."
} in_place_case;

static const in_place_case cases[] = {
    // Elementwise.
    {"tensor @f(%x: f32[4,8] in, %y: f32[4,8] out) {\n"
     "  parallel %i in 4 { for %j in 8 { %y[%i, %j] = max(%x[%i, %j], 0.0) } }\n}",
     "0 x>y "},
    // Through a variable.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  parallel %i in 8 {\n let %a = %x[%i]\n %y[%i] = %a * %a\n }\n}",
     "0 x>y "},
    // A neighbour is read after it is overwritten.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  parallel %i in 8 { %y[%i] = select(%i >= 1, %x[%i + -1], 0.0) }\n}",
     ""},
    // Transposed.
    {"tensor @f(%x: f32[4,4] in, %y: f32[4,4] out) {\n"
     "  parallel %i in 4 { for %j in 4 { %y[%i, %j] = %x[%j, %i] } }\n}",
     ""},
    // Another type, another shape, another layout of the same bytes.
    {"tensor @f(%x: i32[8] in, %z: f32[4,2] in, %y: f32[8] out) {\n"
     "  parallel %i in 8 { %y[%i] = f32(%x[%i]) + %z[%i / 2, %i % 2] }\n}",
     ""},
    {"tensor @f(%x: f32[1,8,2,2] in, %y: f32[1,8,2,2]{aBcd8b} out) {\n"
     "  parallel %c in 8 { for %h in 2 { for %w in 2 {\n"
     "    %y[0, %c, %h, %w] = %x[0, %c, %h, %w] } } }\n}",
     ""},
    // Blocks of channels: two loops make one index.
    {"tensor @f(%x: f32[1,16,2,2]{aBcd8b} in, %y: f32[1,16,2,2]{aBcd8b} out) {\n"
     "  parallel %o in 2 { for %h in 2 { for %w in 2 { for %i in 8 {\n"
     "    %y[0, %o * 8 + %i, %h, %w] = max(%x[0, %o * 8 + %i, %h, %w], 0.0) } } } }\n}",
     "0 x>y "},
    // The same element is written by several iterations.
    {"tensor @f(%x: f32[16] in, %y: f32[16] out) {\n"
     "  parallel %i in 4 { for %j in 4 { %y[%i * 3 + %j] = %x[%i * 3 + %j] } }\n}",
     ""},
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  for %j in 2 { parallel %i in 8 { %y[%i] = %x[%i] + 1.0 } }\n}",
     ""},
    // A residual after a matrix product; the other operand is read across.
    {"tensor @f(%a: f32[4,4] in, %b: f32[4,4] in, %r: f32[4,4] in, %y: f32[4,4] out) {\n"
     "  parallel %i in 4 { for %j in 4 {\n    register %s: f32[]\n    %s[] = 0.0\n"
     "    for %k in 4 { %s[] = fma(%a[%i, %k], %b[%k, %j], %s[]) }\n"
     "    %y[%i, %j] = %s[] + %r[%i, %j]\n  } }\n}",
     "0 r>y "},
    // Rows: all of a row is read before any of it is written.
    {"tensor @f(%x: f32[4,8] in, %y: f32[4,8] out) {\n"
     "  parallel %i in 4 {\n    register %m: f32[]\n    %m[] = -inf\n"
     "    for %j in 8 { %m[] = max(%m[], %x[%i, %j]) }\n"
     "    for %k in 8 { %y[%i, %k] = %x[%i, %k] - %m[] }\n  }\n}",
     "0 x>y "},
    // ... but not another row,
    {"tensor @f(%x: f32[4,8] in, %y: f32[4,8] out) {\n"
     "  parallel %i in 4 {\n    register %m: f32[]\n    %m[] = -inf\n"
     "    for %j in 8 { %m[] = max(%m[], %x[3, %j]) }\n"
     "    for %k in 8 { %y[%i, %k] = %x[%i, %k] - %m[] }\n  }\n}",
     ""},
    // ... and not after the loop that writes.
    {"tensor @f(%x: f32[4,8] in, %y: f32[4,8] out, %z: f32[4] out) {\n"
     "  parallel %i in 4 {\n    register %m: f32[]\n    %m[] = -inf\n"
     "    for %k in 8 { %y[%i, %k] = %x[%i, %k] * 2.0 }\n"
     "    for %j in 8 { %m[] = max(%m[], %x[%i, %j]) }\n"
     "    %z[%i] = %m[]\n  }\n}",
     ""},
    // Two results: only over the second is nothing read any more.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out, %z: f32[8] out) {\n"
     "  parallel %i in 8 {\n    %y[%i] = %x[%i]\n    %z[%i] = %x[%i] + 1.0\n  }\n}",
     "0 x>z "},
    // Two elements per iteration, each from its own place; crosswise it is wrong.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  parallel %i in 4 {\n    %y[%i * 2] = %x[%i * 2]\n"
     "    %y[%i * 2 + 1] = %x[%i * 2 + 1]\n  }\n}",
     "0 x>y "},
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  parallel %i in 4 {\n    %y[%i * 2] = %x[%i * 2 + 1]\n"
     "    %y[%i * 2 + 1] = %x[%i * 2]\n  }\n}",
     ""},
    // Elements of two stores that meet: 2i + 2 of one iteration is 2i of the next.
    {"tensor @f(%x: f32[16] in, %y: f32[16] out) {\n"
     "  parallel %i in 4 {\n    %y[%i * 2] = %x[%i * 2]\n"
     "    %y[%i * 2 + 2] = %x[%i * 2 + 2]\n  }\n}",
     ""},
    // Through workspace: each nest by itself.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n  workspace %w: f32[8]\n"
     "  parallel %i in 8 { %w[%i] = %x[%i] * 2.0 }\n"
     "  parallel %j in 8 { %y[%j] = %w[%j] + 1.0 }\n}",
     "0 x>w 1 w>y "},
    // A result that is read again in its nest, or written by two.
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  for %i in 8 { %y[%i] = select(%i >= 1, %y[%i + -1], 0.0) + %x[%i] }\n}",
     ""},
    {"tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
     "  parallel %i in 8 { %y[%i] = %x[%i] }\n  parallel %j in 8 { %y[%j] = %x[%j] }\n}",
     ""},
};

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

ParameterizedTestParameters(in_place, pairs) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

typedef struct find_call {
    berth_arena *arena;
    berth_tfn *fn;
    const char *found;
} find_call;

static berth_status find_body(void *user) {
    find_call *call = user;
    const berth_in_place *pairs = NULL;
    uint32_t count = berth_in_place_find(call->fn, &pairs);
    berth_strbuf text = berth_strbuf_make(call->arena);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_buf_info *from = &call->fn->bufs.data[pairs[i].from];
        const berth_buf_info *to = &call->fn->bufs.data[pairs[i].to];
        cr_expect(from->may_alias && to->may_alias);
        berth_strbuf_addf(&text, "%u %s>%s ", pairs[i].nest,
                          berth_module_str(call->fn->module, from->name),
                          berth_module_str(call->fn->module, to->name));
    }
    call->found = berth_strbuf_text(&text);
    return BERTH_OK;
}

ParameterizedTest(int *index, in_place, pairs) {
    const in_place_case *c = &cases[*index];
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    char *text = berth_arena_printf(arena, "module \"t\"\n\n%s\n", c->text);
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "case", &module);
    cr_assert_null(status, "%s\n%s", berth_status_message(status), text);
    berth_func_id function = berth_module_find_function(module, "f");
    find_call call = {arena, berth_tfn_get(module, function), NULL};
    status = berth_arena_try(arena, find_body, &call);
    cr_assert_null(status);
    cr_expect_str_eq(call.found, c->pairs, "case %d: found \"%s\", expected \"%s\"\n%s", *index,
                     call.found, c->pairs, c->text);
    berth_arena_destroy(arena);
}
