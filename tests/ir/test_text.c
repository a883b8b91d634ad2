// The text form: every construct, and the positions of errors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/doc.h"
#include "ir/graph/graph.h"
#include "ir/pass.h"
#include "ir/tensor/function.h"
#include "ir/tensor/interpreter.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/ir/round_trip.h"

static berth_module *parse(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_assert(!status, "%s", berth_status_message(status));
    return module;
}

static berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static const char *print(berth_module *module) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    berth_status status = berth_module_to_text(module, NULL, &out);
    cr_assert(!status, "%s", berth_status_message(status));
    return berth_strbuf_text(&out);
}

Test(text, hand_written) {
    berth_arena *arena = new_arena();
    berth_module *module =
        parse(arena, "module \"m\" {n = 1, f = 1.5, l = [1,2]} // comment\n"
                     "graph @main(%x: f32[1,4] on cpu:0, %c: bool[]) {\n"
                     "  %y = relu(%x)\n"
                     "  %z = on_device(%y) {device = opencl:0@local, fixed = 1}\n"
                     "  %w = constant() {value = f32[2,2] (1, -0.0, nan, inf)}\n"
                     "  %r, %s = if(%c) {return %y, %z} else { return %x, %z }\n"
                     "  %u = call @other(%r)\n"
                     "  return %u, %s, %w\n"
                     "}\n"
                     "graph @other(%x: f32[N,4]) { %y = relu(%x) return %y }\n");
    const char *text = print(module);
    berth_module *again = parse(arena, text);
    cr_assert_str_eq(print(again), text);
    berth_arena_destroy(arena);
}

// Symbols of shapes are extents of loops, and parts of index arithmetic; those in quotes, too.
Test(text, symbols_in_tensor_functions) {
    const char *text =
        "module \"t\" tensor @f(%x: f32[N,\"=2*M+1\"] in, %y: f32[N,\"a b\"] out) {\n"
        "  parallel %i in N {\n"
        "    for %j in 2 * M + 1 {\n"
        "      %y[%i, min(%j, \"a b\" - 1)] = %x[N - 1 - %i, %j]\n"
        "    }\n"
        "  }\n"
        "}\n";
    berth_arena *arena = new_arena();
    berth_module *module = parse(arena, text);
    cr_assert(strstr(print(module), "parallel %i in N {"));
    cr_assert(strstr(print(module), "for %j in 2 * M + 1 {"));
    cr_assert(strstr(print(module), "min(%j, \"a b\" - 1)"));
    const char *problem = round_trip(module, arena, true);
    cr_assert_null(problem, "%s", problem);
    // One name for another makes another function.
    berth_module *other = parse(arena, "module \"t\" tensor @f(%x: f32[N,M] in, %y: f32[N,M] out) "
                                       "{ for %i in N { %y[%i, 0] = 0.0 } }");
    berth_module *wrong = parse(arena, "module \"t\" tensor @f(%x: f32[N,M] in, %y: f32[N,M] out) "
                                       "{ for %i in M { %y[%i, 0] = 0.0 } }");
    cr_assert_neq(berth_tfn_get(other, 0)->exprs.count, 0);
    cr_assert_not(berth_hash128_equal(berth_tfn_hash(berth_tfn_get(other, 0)),
                                      berth_tfn_hash(berth_tfn_get(wrong, 0))));
    berth_arena_destroy(arena);
}

static void expect_error(const char *text, const char *message) {
    berth_arena *arena = new_arena();
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_assert(status, "no error for: %s", text);
    cr_assert_null(module);
    cr_expect_str_eq(berth_status_message(status), message);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
    berth_arena_destroy(arena);
}

#define IN_MAIN(body) "module \"m\"\ngraph @main(%x: f32[2]) {\n" body "\n}\n"
#define IN_TENSOR(body) "module \"m\"\ntensor @f(%x: f32[2] in, %y: f32[2] out) {\n" body "\n}\n"

Test(text, error_positions) {
    expect_error("", "t:1:1: expected 'module', found the end of the text");
    expect_error("module x", "t:1:8: expected a string, found 'x'");
    expect_error("module \"m\"\nother @f() {}",
                 "t:2:1: expected a dialect (graph, tensor, external), found 'other'");
    expect_error("module \"m\" {a = 1",
                 "t:1:18: expected a closing bracket, found the end of the text");
    expect_error("module \"m\" {a = 1, a = 2}", "t:1:20: expected a new attribute, found a again");
    expect_error("module \"m",
                 "t:1:8: expected a token, found a string that does not end on its line");
    expect_error("module \"m\"\ntensor @f() {\n  barrier pending 8\n}",
                 "t:3:19: expected 0 to 7 stretches between barriers");
    expect_error(IN_MAIN("  return %y"), "t:3:10: expected a value defined before, found %y");
    expect_error(IN_MAIN("  %x = relu(%x) return %x"),
                 "t:3:3: expected a new name, found %x again");
    expect_error(IN_MAIN("  %y = relu(%x, %x) return %y"),
                 "t:3:3: expected 1 operands of relu, found 2");
    expect_error(IN_MAIN("  %y = rellu(%x) return %y"),
                 "t:3:8: expected an operation, found 'rellu'");
    expect_error(IN_MAIN("  %y = relu(%x): f33[2] return %y"),
                 "t:3:18: expected a type, found 'f33'");
    expect_error(IN_MAIN("  %y = call @g(%x) return %y"),
                 "t:3:13: expected the name of a function of this module, found '@g'");
    expect_error(IN_MAIN("  %w = constant() {value = f32[3] (1, 2)} return %w"),
                 "t:3:35: expected 3 elements, found 2");
    expect_error(IN_MAIN("  %w = constant() {value = i8[1] (300)} return %w"),
                 "t:3:34: expected elements of type i8, found 300");
    expect_error(IN_MAIN("  %y = relu(%x) #1 return %y"),
                 "t:3:17: expected a number of the section `locations`, found '#1'");
    expect_error(IN_MAIN("  %w = constant() {value = f32[99] meta(m)} return %w"),
                 "t:3:41: expected a name of the section `meta`, found 'm'");
    expect_error(IN_TENSOR("  %y[%i] = 0.0"), "t:3:6: expected a value defined before, found %i");
    expect_error(IN_TENSOR("  for %i on 2 {}"), "t:3:10: expected 'in', found 'on'");
    expect_error("module \"t\" tensor @f(%y: f32[N] out) {\n  for %i in M { %y[%i] = 0.0 }\n}",
                 "t:2:13: expected an expression, found 'M'");
    expect_error(IN_TENSOR("  %y[0] = 1 +"), "t:4:1: expected an expression, found '}'");
}

// What the verifier refuses although it parses.
static void expect_invalid(const char *text, const char *part) {
    berth_arena *arena = new_arena();
    berth_module *module = parse(arena, text);
    berth_status status = berth_module_verify(module);
    cr_assert(status, "verifies: %s", text);
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(text, verifier) {
    expect_invalid(IN_TENSOR("  %x[0] = 0.0"), "a store to the input \"x\"");
    expect_invalid(IN_TENSOR("  %y[0, 1] = 0.0"), "of 1 dimensions is accessed with 2 indices");
    expect_invalid(IN_TENSOR("  %y[0] = 0.0:f64"), "a store of f64 to \"y\", which takes f32");
    expect_invalid(IN_TENSOR("  %y[0] = %x[0] + 1"), "operands of + are f32 and index");
    expect_invalid(IN_TENSOR("  %y[0] = 1"), "a store of index to \"y\", which takes f32");
    expect_invalid(IN_TENSOR("  %y[0.0] = %x[0]"), "is no index expression");
    expect_invalid(IN_TENSOR("  if %x[0] { barrier }"), "the condition of an if is no bool");
    expect_invalid(IN_TENSOR("  for %i in %x[0] { barrier }"), "the extent of a loop is no index");
    expect_invalid(IN_TENSOR("  group.x %i in 2 { group.x %j in 2 { barrier } }"),
                   "two nested loops over group.x");
}

// An integer with the type of floats behind it is that float; no node may be both.
Test(text, whole_numbers_of_float_types) {
    berth_arena *arena = new_arena();
    berth_module *module = parse(arena, IN_TENSOR("  %y[0] = 3:f32 + -1:f32\n  %y[1] = 2:f32"));
    float x[2] = {0}, y[2] = {0};
    cr_assert_null(berth_module_verify(module));
    cr_assert_null(berth_tfn_interpret(berth_tfn_get(module, 0), (void *[]){x, y}, arena));
    cr_expect(y[0] == 2 && y[1] == 2, "%g %g", (double)y[0], (double)y[1]);
    cr_expect(strstr(print(module), "%y[1] = 2.0\n"), "%s", print(module));
    berth_tfn *fn = berth_tfn_get(module, 0);
    for (uint32_t i = 1; i < fn->exprs.count; ++i)
        if (fn->exprs.data[i].kind == BERTH_EXPR_FLOAT) fn->exprs.data[i].kind = BERTH_EXPR_INT;
    berth_status status = berth_module_verify(module);
    cr_assert(status && strstr(berth_status_message(status), "an integer literal of a float type"));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

#define F "graph @f(%a: f32[2]) { %b = neg(%a) return %b }\n"
#define WITH_F(body) "module \"m\"\n" F "graph @main(%x: f32[2]) {\n" body "\n}\n"

Test(text, verifier_of_calls) {
    expect_invalid(WITH_F("%f = func_ref @f() %t = call_value(%f, _) return %t"),
                   "t:4:20: argument 1 of the call is left out");
    expect_invalid(WITH_F("%t = call_value(_, %x): f32[2] return %t"),
                   "the function that is called is left out");
    expect_invalid(WITH_F("%t = call @f(_) return %t"), "argument 1 of the call of @f is left out");
    expect_invalid(WITH_F("%t = tuple(%x, _) return %x"), "field 1 of the tuple is left out");
    expect_invalid(WITH_F("%t = concat(%x, _): f32[2] return %t"),
                   "operand 2 of concat is left out");
    expect_invalid(WITH_F("%t = add(_, %x): f32[2] return %t"), "operand 1 of add is left out");
    expect_invalid(WITH_F("%n = constant() {value = i64[] (2)} %t = loop(%n, _, _): f32[2] "
                          "(%i: i64[], %k: bool[], %v: f32[2]) { return %k, %v } return %t"),
                   "operand 3 of loop is left out");
    expect_invalid(WITH_F("%t = device_copy(_): f32[2] return %t"),
                   "operand 1 of device_copy is left out");
    expect_invalid(WITH_F("%f = func_ref @f() %t = call_value(%f, %x, %x) return %t"),
                   "has 1 parameters, not 2");
    expect_invalid(WITH_F("%f = func_ref @f() %t, %u = call_value(%f, %x): f32[2], f32[2] "
                          "return %t"),
                   "has 1 results, not 2");
    expect_invalid(WITH_F("%t = call_value(%x, %x): f32[2] return %t"),
                   "what is called is not known to be a function");
}

Test(text, verifier_of_copies) {
    expect_invalid(WITH_F("%f = func_ref @f() %c = device_copy(%f) on opencl:0 return %x"),
                   "t:4:20: a function, or a tuple that holds one, cannot be copied");
    expect_invalid(WITH_F("%f = func_ref @f() %t = tuple(%x, %f) %u = tuple(%t, %t) "
                          "%c = device_copy(%u) {source = cpu:0} on opencl:0 return %x"),
                   "a function, or a tuple that holds one, cannot be copied");
    expect_invalid(WITH_F("%c = device_copy(%x) {source = 3} on opencl:0 return %c"),
                   "its attribute source is no device");
}

// A type whose tree has 2^64 leaves, none of them a function.
Test(text, verifier_of_shared_types) {
    berth_arena *arena = new_arena();
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\" graph @main(%t0: f32[2]) {\n");
    for (int i = 0; i < 64; ++i)
        berth_strbuf_addf(&text, "%%t%d = tuple(%%t%d, %%t%d)\n", i + 1, i, i);
    berth_strbuf_add(&text, "%c = device_copy(%t64) on opencl:0 return %t0 }");
    berth_module *module = parse(arena, berth_strbuf_text(&text));
    berth_status status = berth_module_verify(module);
    cr_assert(!status, "%s", berth_status_message(status));
    berth_arena_destroy(arena);
}

// Words, groups and line breaks in some order, the same for the same count.
static void write_lines(berth_doc *doc, uint32_t lines) {
    uint64_t state = 88172645463325252u;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < lines * 16; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        switch (state % 16) {
        case 0:
        case 1: berth_doc_open(doc, (int)(state >> 8 & 3)), depth++; break;
        case 2: berth_doc_line(doc); break;
        case 3: berth_doc_soft_line(doc); break;
        case 4:
        case 5: berth_doc_fill_line(doc); break;
        case 6: berth_doc_indent(doc, state >> 8 & 1 ? 2 : -2); break;
        case 7:
            for (; depth > 0; --depth) berth_doc_close(doc);
            berth_doc_hard_line(doc);
            break;
        default: berth_doc_textf(doc, "word%u,", (unsigned)(state >> 8 & 0xfff)); break;
        }
    }
}

// Lines that leave a long document as soon as they are complete are those of the whole document.
Test(text, streamed_lines_are_those_of_the_whole) {
    for (int width = 20; width <= 100; width += 40) {
        berth_arena *arena = new_arena();
        berth_doc *docs[2];
        berth_strbuf out[2];
        for (int streamed = 0; streamed < 2; ++streamed) {
            docs[streamed] = berth_doc_create(arena);
            out[streamed] = berth_strbuf_make(arena);
            if (streamed) berth_doc_stream(docs[1], width, &out[1]);
            write_lines(docs[streamed], 3000);
        }
        cr_assert_gt(out[1].length, 10000, "nothing was written on the way");
        for (int i = 0; i < 2; ++i) berth_doc_render(docs[i], width, &out[i]);
        cr_assert_str_eq(berth_strbuf_text(&out[0]), berth_strbuf_text(&out[1]));
        berth_arena_destroy(arena);
    }
}

// What printing a module needs beside its text does not grow with it, but for numbers of names: the
// text doubles as it grows and leaves as much again behind, and what names values takes a few words
// each. The tree of a whole module would be ten times its text.
typedef struct peak_bytes {
    size_t live, most;
} peak_bytes;

static void *peak_resize(void *state, void *pointer, size_t old_bytes, size_t new_bytes) {
    peak_bytes *peak = state;
    peak->live += new_bytes - (pointer ? old_bytes : 0);
    if (peak->live > peak->most) peak->most = peak->live;
    berth_allocator system = berth_allocator_system();
    return system.resize(system.state, pointer, old_bytes, new_bytes);
}

Test(text, printing_needs_little_beside_the_text) {
    enum { operations = 100000, words_each = 12 };
    peak_bytes peak = {0};
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create((berth_allocator){peak_resize, &peak}, &arena));
    berth_module *module = berth_module_create(arena, "long");
    const int64_t dims[1] = {4};
    berth_type_id type = berth_type_tensor(module, BERTH_DTYPE_F32, 1, dims);
    berth_func_id main = berth_graph_create(module, "main", 0);
    berth_value_id value = berth_graph_add_param(module, main, "a", type);
    for (int i = 0; i < operations; ++i) {
        value = berth_graph_op1(module, main, BERTH_OP_RELU, &value, 1, 0);
        berth_graph_get(module, main)->values.data[value].type = type;
    }
    berth_graph_set_results(module, main, &value, 1);
    size_t before = peak.live;
    size_t length = strlen(print(module));
    cr_expect_leq(peak.most - before, 4 * length + 8 * words_each * operations);
    berth_arena_destroy(arena);
}

// Axes as ONNX had them before opset 13: an error where they stand, not something that lowering and shapes see differently.
Test(text, axes_are_operands) {
    static const char *const ops[] = {"reduce_sum(%x)", "reduce_mean(%x, _)", "squeeze(%x)",
                                      "unsqueeze(%x, %a)"};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i)
        for (int as_attribute = 0; as_attribute < 2; ++as_attribute) {
            char text[512];
            snprintf(
                text, sizeof(text),
                "module \"m\"\ngraph @main(%%x: f32[1,2]) {\n  %%a = constant() {value = i64[1] "
                "(0)}\n  %%y = %s%s\n  return %%y\n}\n",
                ops[i], as_attribute ? " {axes = [0]}" : "");
            berth_module *module = NULL;
            berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
            if (as_attribute)
                assert_fails(status, BERTH_INVALID_ARGUMENT, "t:4:3: ");
            else
                assert_ok(status);
        }
    berth_arena_destroy(arena);
}
