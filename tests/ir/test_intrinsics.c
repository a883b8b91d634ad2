// Intrinsics: the table agrees with its references, functions with intrinsics go through text and
// JSON, the interpreter computes what the instruction is defined to compute.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/json.h"
#include "ir/pass.h"
#include "ir/tensor/interpreter.h"
#include "ir/tensor/intrinsic.h"
#include "ir/text.h"
#include "tests/ir/round_trip.h"

static berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static berth_module *parse(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_assert(!status, "%s", berth_status_message(status));
    return module;
}

Test(intrinsics, table_agrees_with_references) {
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        berth_arena *arena = new_arena();
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        const berth_tfn *fn = NULL;
        berth_status status = berth_intrinsic_reference(arena, (berth_intrinsic)i, &fn);
        cr_assert(!status, "%s: %s", facts->name, berth_status_message(status));
        cr_expect(!berth_module_verify(fn->module));
        cr_expect_eq(berth_module_find_function(fn->module, facts->name), 0);
        cr_assert_eq((int)fn->param_count, berth_intrinsic_operand_count(facts));
        for (uint32_t b = 0; b < fn->param_count; ++b) {
            const berth_buf_info *info = &fn->bufs.data[b];
            int64_t lanes = 1;
            for (int d = 0; d < info->rank; ++d) lanes *= info->dims[d];
            cr_expect_eq(info->dtype, facts->operands[b].dtype, "%s: operand %u", facts->name, b);
            cr_expect_eq(lanes, facts->operands[b].lanes, "%s: operand %u", facts->name, b);
            cr_expect(b || lanes <= BERTH_TFN_INTERP_MAX_LANES);  // others are read in parts
            cr_expect_eq(info->role, b ? BERTH_ROLE_IN : BERTH_ROLE_INOUT);
            cr_expect_str_eq(berth_module_str(fn->module, info->memory_scope), "register");
        }
        berth_intrinsic found = BERTH_INTRINSIC_COUNT;
        cr_expect(berth_intrinsic_from_name(facts->name, strlen(facts->name), &found));
        cr_expect_eq((int)found, i);
        cr_expect(*facts->needs != 0);
        berth_arena_destroy(arena);
    }
}

#define DOT(a, b)                                                                                  \
    "module \"m\"\n"                                                                               \
    "tensor @f(%x: u8[4] in, %w: i8[8,4] in, %y: i32[8] inout) {\n"                                \
    "  for %o in 1 {\n"                                                                            \
    "    %y[ramp(%o, 8)] = dot_u8i8_x8(%y[ramp(%o, 8)], " a ", " b ")\n"                           \
    "  }\n"                                                                                        \
    "}\n"
#define X "%x[ramp(%o, 4)]"
#define W "%w[ramp(%o, 32) / broadcast(4, 32), ramp(%o, 32) % broadcast(4, 32)]"

Test(intrinsics, go_through_text_and_json) {
    berth_arena *arena = new_arena();
    berth_module *module = parse(arena, DOT(X, W));
    berth_status status = berth_module_verify(module);
    cr_assert(!status, "%s", berth_status_message(status));
    berth_strbuf text = berth_strbuf_make(arena);
    cr_assert(!berth_module_to_text(module, NULL, &text));
    cr_expect(strstr(berth_strbuf_text(&text), "dot_u8i8_x8("));
    const char *problem = round_trip(module, arena, true);
    cr_expect_null(problem, "%s", problem);
    berth_arena_destroy(arena);
}

static void expect_refused(const char *text, const char *message) {
    berth_arena *arena = new_arena();
    berth_status status = berth_module_verify(parse(arena, text));
    cr_assert(status, "no error for: %s", text);
    cr_expect(strstr(berth_status_message(status), message), "%s", berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(intrinsics, operands_must_have_their_types) {
    expect_refused(DOT("%x[%o]", W), "operand 1 of dot_u8i8_x8 is u8, it takes u8x4");
    expect_refused(DOT(X, X), "operand 2 of dot_u8i8_x8 is u8x4, it takes i8x32");
    expect_refused(DOT("f32(" X ")", W), "operand 1 of dot_u8i8_x8 is f32x4, it takes u8x4");
}

Test(intrinsics, unknown_names_are_refused) {
    berth_arena *arena = new_arena();
    berth_module *module = NULL;
    const char *text = "module \"m\"\ntensor @f(%x: i32[1] inout) { %x[0] = dot_u9(%x[0]) }\n";
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_expect(
        strstr(berth_status_message(status), "t:2:39: expected an expression, found 'dot_u9'"),
        "%s", berth_status_message(status));
    berth_status_free(status);
    text =
        "{\"format\":\"berth-module\",\"version\":1,\"name\":\"m\",\"functions\":[{\"name\":\"f\","
        "\"dialect\":\"tensor\",\"body\":{\"param_count\":0,\"buffers\":[],\"variables\":[],"
        "\"expressions\":[{\"kind\":\"intrinsic\",\"type\":\"i32\",\"op\":\"dot_u9\",\"operands\":["
        "]}],"
        "\"body\":null,\"flops\":0.0}}],\"locations\":[]}";
    status = berth_module_from_json_text(arena, text, strlen(text), "t", NULL, &module);
    cr_assert(status);
    cr_expect(strstr(berth_status_message(status), "op: expected an operator"), "%s",
              berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// Sums of products, counted apart from the reference: extremes of both types, sums that wrap.
Test(intrinsics, dot_products_are_exact_at_the_extremes) {
    static const int xs[] = {0, 1, 127, 128, 255};
    static const int ws[] = {-128, -127, -1, 0, 1, 127};
    berth_arena *arena = new_arena();
    berth_tfn *fn = berth_tfn_get(parse(arena, DOT(X, W)), 0);
    for (int round = 0; round < 64; ++round) {
        uint8_t x[4];
        int8_t w[8][4];
        int32_t y[8];
        int32_t expected[8];
        for (int k = 0; k < 4; ++k) x[k] = (uint8_t)xs[round < 5 ? round : (round * 7 + k * 3) % 5];
        for (int i = 0; i < 8; ++i) {
            y[i] = i == 7 ? INT32_MAX - 3 : i * 1000 - 3;
            uint32_t sum = (uint32_t)y[i];
            for (int k = 0; k < 4; ++k) {
                w[i][k] = (int8_t)ws[(round + i + (round < 30 ? 0 : k * 5)) % 6];
                sum += (uint32_t)((int32_t)x[k] * w[i][k]);
            }
            expected[i] = (int32_t)sum;
        }
        void *buffers[] = {x, w, y};
        berth_status status = berth_tfn_interpret(fn, buffers, arena);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect(memcmp(y, expected, sizeof(y)) == 0, "round %d", round);
    }
    berth_arena_destroy(arena);
}
