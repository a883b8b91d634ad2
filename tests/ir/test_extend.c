// Operations, dialects and kinds of opaque values from outside the tree.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/emit_c.h"
#include "ir/extend.h"
#include "ir/infer.h"
#include "ir/pass.h"
#include "ir/tensor/interpreter.h"
#include "ir/text.h"
#include "tests/ir/round_trip.h"

static berth_status infer_twice(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

static berth_status eval_twice(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; i < berth_tensor_element_count(x); ++i)
        berth_eval__set_f64(&ctx->outputs[0], i, 2 * values[i]);
    return BERTH_OK;
}

static berth_op_definition twice(void) {
    return (berth_op_definition){.facts = {.name = "test.twice",
                                           .onnx = "Twice",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .min_outputs = 1,
                                           .max_outputs = 1,
                                           .traits = BERTH_TRAIT_ELEMENTWISE},
                                 .onnx_domain = "test",
                                 .onnx_attrs = "",
                                 .infer = infer_twice,
                                 .eval = eval_twice};
}

static void refuse_op(berth_op_definition definition, berth_code code, const char *part) {
    berth_op_kind kind;
    berth_status status = berth_op_register(&definition, &kind);
    cr_expect_eq(berth_status_code(status), code, "%s", part);
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(extend, an_operation_is_read_inferred_and_evaluated) {
    static berth_op_definition definition;
    definition = twice();
    berth_op_kind kind = BERTH_OP_CONSTANT, found = BERTH_OP_CONSTANT;
    cr_assert_null(berth_op_register(&definition, &kind));
    cr_expect_gt(kind, BERTH_OP_COUNT);
    cr_expect(berth_op_kind_from_name("test.twice", &found) && found == kind);
    cr_expect_eq(berth_op_for_onnx("test", "Twice"), kind);
    cr_expect_eq(berth_op_for_onnx("other", "Twice"), BERTH_OP_COUNT);
    cr_expect_str_eq(berth_op_facts_get(kind)->name, "test.twice");

    static const char text[] = "module \"m\"\n"
                               "graph @main() {\n"
                               "  %x = constant() {value = f32[3] (1.0, 2.5, -3.0)}\n"
                               "  %y = test.twice(%x)\n"
                               "  return %y\n"
                               "}\n";
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_null(berth_module_parse(arena, text, strlen(text), "t", &module));
    berth_func_id main = berth_module_find_function(module, "main");
    cr_assert_null(berth_infer_function(module, main));
    cr_assert_null(berth_module_verify(module));
    berth_tensor out;
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_tensor *in = berth_graph_constant_of(module, graph, graph->ops.data[1].inputs[0]);
    cr_assert_null(berth_eval_op(module, main, 1, in, &out, arena));
    const float *values = out.data;
    cr_expect(values[0] == 2.0f && values[1] == 5.0f && values[2] == -6.0f);
    berth_arena_destroy(arena);
}

Test(extend, operations_that_are_refused) {
    static berth_op_definition definition;
    definition = twice();
    berth_op_kind kind;
    cr_assert_null(berth_op_register(&definition, &kind));
    refuse_op(twice(), BERTH_ALREADY_EXISTS, "test.twice");
    berth_op_definition other = twice();
    other.facts.name = "relu";
    refuse_op(other, BERTH_ALREADY_EXISTS, "relu");
    other.facts.name = "test.other";
    refuse_op(other, BERTH_ALREADY_EXISTS, "test.Twice");
    other.facts.onnx = "Other";
    other.infer = NULL;
    refuse_op(other, BERTH_INVALID_ARGUMENT, "lacks infer");
    other.facts.name = "Bad name";
    refuse_op(other, BERTH_INVALID_ARGUMENT, "no name");
}

static berth_status parse_note(berth_arena *arena, const char *text, size_t length,
                               void **out_value) {
    *out_value = berth_arena_strndup(arena, text, length);
    return BERTH_OK;
}

Test(extend, dialects_and_opaque_values) {
    static const berth_dialect dialect = {.name = "test_dialect"};
    static const berth_dialect graph_again = {.name = "graph"};
    static const berth_opaque_ops note = {.kind = "note", .parse = parse_note};
    cr_assert_null(berth_dialect_register(&dialect));
    cr_expect_eq(berth_dialect_find(NULL, "test_dialect"), &dialect);
    berth_status status = berth_dialect_register(&graph_again);
    cr_expect_eq(berth_status_code(status), BERTH_ALREADY_EXISTS);
    berth_status_free(status);

    static const char text[] = "module \"m\" {n = opaque(\"note\", meta(m1))}\n"
                               "meta { m1 = text \"hello\" }\n";
    cr_assert_null(berth_opaque_register(&note));
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_null(berth_module_parse(arena, text, strlen(text), "t", &module));
    const berth_attr *held = berth_attrs_find(module, &module->attrs, "n");
    cr_assert(held && held->kind == BERTH_ATTR_OPAQUE);
    cr_expect_eq(held->opaque.ops, &note);
    cr_expect_str_eq(held->opaque.value, "hello");
    berth_arena_destroy(arena);
}

// ---- intrinsics ---------------------------------------------------------------------------------

// A product of a block of 12, whose weights have more lanes than the interpreter's values.
#define BLOCK(name)                                                                                \
    "module \"intrinsic\"\n"                                                                       \
    "tensor @" name "(%c: i32[12] inout scope \"register\", %a: i8[12] in scope \"register\", "    \
    "%b: i8[12,12] in scope \"register\") {\n"                                                     \
    "  parallel %i in 12 {\n"                                                                      \
    "    for %k in 12 {\n"                                                                         \
    "      %c[%i] = %c[%i] + i32(%a[%k]) * i32(%b[%i, %k])\n"                                      \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "}\n"

static berth_intrinsic_facts block(void) {
    return (berth_intrinsic_facts){
        .name = "test_block",
        .needs = "",
        .operands = {{BERTH_DTYPE_I32, 12}, {BERTH_DTYPE_I8, 12}, {BERTH_DTYPE_I8, 144}},
        .reference = BLOCK("test_block")};
}

static berth_module *read_module(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_assert_null(status, "%s", berth_status_message(status));
    return module;
}

static const char use_of_block[] =
    "module \"m\"\n"
    "tensor @f(%x: i8[2,12] in, %w: i8[12,12] in, %y: i32[12] inout) {\n"
    "  for %n in 2 {\n"
    "    %y[ramp(0, 12)] = test_block(%y[ramp(0, 12)],\n"
    "        select(%n < 1, %x[%n, ramp(0, 12)], broadcast(0:i8, 12)),\n"
    "        %w[ramp(0, 144) / broadcast(12, 144), ramp(0, 144) % broadcast(12, 144)])\n"
    "  }\n"
    "}\n";

Test(extend, an_intrinsic_is_read_printed_and_computed) {
    static berth_intrinsic_facts facts;
    facts = block();
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status =
        berth_module_parse(arena, use_of_block, strlen(use_of_block), "t", &module);
    cr_expect(strstr(berth_status_message(status), "found 'test_block'"));
    berth_status_free(status);

    berth_intrinsic id = BERTH_INTRINSIC_COUNT;
    status = berth_intrinsic_register(&facts, &id);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_expect_eq((int)id, BERTH_INTRINSIC_FIRST_REGISTERED);
    cr_expect_eq(berth_intrinsic_get(id), &facts);
    cr_expect_null(berth_intrinsic_get(BERTH_INTRINSIC_COUNT));
    cr_expect_null(berth_intrinsic_get((berth_intrinsic)(id + 1)));
    module = read_module(arena, use_of_block);
    status = berth_module_verify(module);
    cr_assert_null(status, "%s", berth_status_message(status));
    const char *problem = round_trip(module, arena, true);
    cr_expect_null(problem, "%s", problem);
    berth_strbuf c = berth_strbuf_make(arena);
    cr_assert_null(berth_module_to_c(module, NULL, &c));
    cr_expect(strstr(berth_strbuf_text(&c), ".op = intrinsic(\"test_block\")"));

    int8_t x[24], w[144];
    int32_t y[12], wanted[12];
    for (int i = 0; i < 24; ++i) x[i] = (int8_t)(i * 37 % 256 - 128);
    for (int i = 0; i < 144; ++i) w[i] = (int8_t)(i * 91 % 256 - 128);
    for (int i = 0; i < 12; ++i) {
        y[i] = wanted[i] = 1000 * i - 5000;
        for (int k = 0; k < 12; ++k) wanted[i] += x[k] * w[i * 12 + k];
    }
    status = berth_tfn_interpret(berth_tfn_get(module, 0), (void *[]){x, w, y}, arena);
    cr_assert_null(status, "%s", berth_status_message(status));
    for (int i = 0; i < 12; ++i)
        cr_expect_eq(y[i], wanted[i], "%d: %d, not %d", i, y[i], wanted[i]);
    berth_arena_destroy(arena);
}

// One of two operands: the calls have two.
Test(extend, an_intrinsic_of_two_operands) {
    static const berth_intrinsic_facts facts = {
        .name = "test_longer",
        .needs = "",
        .operands = {{BERTH_DTYPE_I32, 4}, {BERTH_DTYPE_I32, 4}},
        .reference = "module \"intrinsic\"\n"
                     "tensor @test_longer(%c: i32[4] inout, %a: i32[4] in) {\n"
                     "  for %i in 4 {\n    %c[%i] = max(%c[%i], %a[%i] * 2:i32)\n  }\n}\n"};
    static const char use[] = "module \"m\"\n"
                              "tensor @f(%x: i32[4] in, %y: i32[4] inout) {\n"
                              "  for %n in 1 {\n    %y[ramp(0, 4)] = test_longer(%y[ramp(0, 4)], "
                              "%x[ramp(0, 4)])\n  }\n}\n";
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_intrinsic id = BERTH_INTRINSIC_COUNT;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = berth_intrinsic_register(&facts, &id);
    cr_assert_null(status, "%s", berth_status_message(status));
    module = read_module(arena, use);
    status = berth_module_verify(module);
    cr_assert_null(status, "%s", berth_status_message(status));
    const char *problem = round_trip(module, arena, true);
    cr_expect_null(problem, "%s", problem);
    int32_t x[4] = {1, -2, 30, 4}, y[4] = {5, -5, 59, 8}, wanted[4] = {5, -4, 60, 8};
    status = berth_tfn_interpret(berth_tfn_get(module, 0), (void *[]){x, y}, arena);
    cr_assert_null(status, "%s", berth_status_message(status));
    for (int i = 0; i < 4; ++i) cr_expect_eq(y[i], wanted[i], "%d: %d", i, y[i]);
    char longer[300];
    snprintf(longer, sizeof(longer), "%s", use);
    memcpy(strstr(longer, "%x[ramp(0, 4)])"), "%x[0], %x[0])  ", 15);
    status = berth_module_parse(arena, longer, strlen(longer), "t", &module);
    cr_expect(strstr(berth_status_message(status), "')'"), "%s", berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

static void refuse_intrinsic(berth_intrinsic_facts facts, berth_code code, const char *part) {
    berth_intrinsic id = BERTH_INTRINSIC_COUNT;
    berth_status status = berth_intrinsic_register(&facts, &id);
    cr_expect_eq(berth_status_code(status), code, "%s", part);
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    cr_expect_eq(id, BERTH_INTRINSIC_COUNT);
    berth_status_free(status);
}

Test(extend, intrinsics_that_are_refused) {
    berth_intrinsic_facts facts = block();
    facts.name = "Test.block";
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT, "no name of a-z");
    facts.name = "dot_u8i8_x8";
    refuse_intrinsic(facts, BERTH_ALREADY_EXISTS, "know a dot_u8i8_x8 already");
    facts.name = "max";
    refuse_intrinsic(facts, BERTH_ALREADY_EXISTS, "know a max already");
    facts.name = "test_other";
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT, "a tensor function @test_other");
    facts = block();
    facts.operands[2].lanes = 12;
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT,
                     "operand 2 is i8 of 12 lanes, its reference has i8 of 144");
    facts = block();
    facts.operands[1].dtype = BERTH_DTYPE_U8;
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT, "operand 1 is u8 of 12 lanes");
    facts = block();
    facts.reference = "module \"m\"\ntensor @test_block(";
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT, "intrinsic test_block:");
    facts.reference = NULL;
    refuse_intrinsic(facts, BERTH_INVALID_ARGUMENT, "lacks its reference");
}

Test(extend, intrinsics_that_are_too_many) {
    static berth_intrinsic_facts facts[BERTH_INTRINSIC_MOST_REGISTERED + 1];
    static char names[BERTH_INTRINSIC_MOST_REGISTERED + 1][16];
    static char texts[BERTH_INTRINSIC_MOST_REGISTERED + 1][1024];
    for (int i = 0; i < BERTH_INTRINSIC_MOST_REGISTERED; ++i) {
        berth_intrinsic id = BERTH_INTRINSIC_COUNT;
        facts[i] = block();
        snprintf(names[i], sizeof(names[i]), "test_%d", i);
        static const char text[] = BLOCK("test_block");
        const char *at = strstr(text, "test_block");
        snprintf(texts[i], sizeof(texts[i]), "%.*s%s%s", (int)(at - text), text, names[i],
                 at + strlen("test_block"));
        facts[i].name = names[i];
        facts[i].reference = texts[i];
        cr_assert_null(berth_intrinsic_register(&facts[i], &id));
    }
    refuse_intrinsic(block(), BERTH_OUT_OF_RANGE, "more than 64 intrinsics");
}
