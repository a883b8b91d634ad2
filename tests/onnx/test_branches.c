// Nodes that cannot be imported in the branches of an If: an error where the branch runs, and only
// there.
#include <criterion/criterion.h>
#include <string.h>

#include "base/str.h"
#include "compiler/compile.h"
#include "compiler/onnx/import.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/onnx/model_writer.h"

static const int64_t four[1] = {4};

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_status status;
} fixture;

static pb branch_of(void (*write)(pb *graph)) {
    pb graph = {.size = 0};
    write(&graph);
    graph_output(&graph, "out", 1, four);
    return graph;
}

// y = if c then neg(x) else what `write` makes of x
static pb model_with(void (*write)(pb *graph)) {
    pb graph = {.size = 0};
    pb then_branch = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_value(&graph, 11, "c", 9, 0, NULL);
    graph_output(&graph, "y", 1, four);
    graph_node1(&then_branch, "Neg", "neg", "x", "", "out");
    graph_output(&then_branch, "out", 1, four);
    pb else_branch = branch_of(write);
    pb branches[2] = {attr_graph("then_branch", &then_branch),
                      attr_graph("else_branch", &else_branch)};
    const char *inputs[] = {"c", NULL};
    const char *outputs[] = {"y", NULL};
    graph_node(&graph, "If", "choice", inputs, outputs, branches, 2);
    return model_of(&graph, 13);
}

// The importer, then the passes up to the planner with `c` known.
static fixture compile(const pb *model, bool condition) {
    static const char *const passes[] = {"keep-names", "fold-constants", "plan-devices", NULL};
    fixture f = {.arena = NULL};
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_target_parse(f.arena, "cpu", NULL, &target));
    berth_input_binding bound = {.name = "c", .tensor = {.dtype = BERTH_DTYPE_BOOL}};
    memcpy(&bound.tensor.data, &(const void *){&condition}, sizeof(void *));
    berth_compile_options options = {
        .target = target, .known_inputs = &bound, .known_input_count = 1};
    f.status = berth_onnx_import_memory(f.arena, model->data, model->size, "m.onnx", NULL, NULL,
                                        &f.module);
    if (!f.status) f.status = berth_compile_run_passes(f.module, passes, &options, &result);
    return f;
}

static void expect_refused(fixture *f, const char *message) {
    assert_fails(f->status, BERTH_UNSUPPORTED, message);
    berth_arena_destroy(f->arena);
}

// What is left is the operation of the branch taken.
static void expect_negated(fixture *f) {
    assert_ok(f->status);
    const berth_graph *graph =
        berth_graph_get(f->module, berth_module_find_function(f->module, "main"));
    const berth_region *root = &graph->regions.data[0];
    cr_assert_eq(root->ops.count, 1);
    cr_expect_eq(graph->ops.data[root->ops.data[0]].kind, BERTH_OP_NEG);
    berth_arena_destroy(f->arena);
}

// Graphs inside may name their values as the results of the node around them, or of a node after it.
static void as_the_result(pb *graph) {
    graph_node1(graph, "Relu", "inner", "x", "", "y");
    graph_node1(graph, "Neg", "inner_too", "y", "", "out");
}

Test(branches, a_branch_may_name_a_value_as_the_node_around_it) {
    pb model = model_with(as_the_result);
    fixture f = compile(&model, true);
    expect_negated(&f);
}

static void unknown_operator(pb *graph) {
    graph_node1(graph, "Frobnicate", "frob", "x", "", "f");
    graph_node1(graph, "Add", "add", "f", "x", "out");
}

static void other_domain(pb *graph) {
    pb node = {.size = 0};
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "out");
    pb_text(&node, 3, "theirs");
    pb_text(&node, 4, "Relu");
    pb_text(&node, 7, "their.domain");
    pb_message(graph, 1, &node);
}

static void sequence(pb *graph) {
    graph_node1(graph, "SequenceConstruct", "pair", "x", "x", "s");
    graph_node1(graph, "SequenceAt", "first", "s", "zero", "out");
    graph_floats(graph, "zero", 1, 4);
}

static void sequence_of_sequences(pb *graph) {
    graph_node1(graph, "SequenceConstruct", "inner", "x", "x", "s");
    graph_node1(graph, "SequenceConstruct", "outer", "s", "s", "ss");
    graph_node1(graph, "SequenceLength", "length", "ss", "", "n");
    graph_node1(graph, "Expand", "out", "x", "n", "out");
}

static void complex_numbers(pb *graph) {  // a known operator, with what it does not take
    pb to = attr_int("to", 14);
    const char *inputs[] = {"x", NULL};
    const char *outputs[] = {"out", NULL};
    graph_node(graph, "Cast", "to_complex", inputs, outputs, &to, 1);
}

// The unknown operator in a branch of the branch.
static void nested(pb *graph) {
    pb inner = {.size = 0};
    graph_node1(&inner, "Frobnicate", "frob", "x", "", "deep");
    graph_output(&inner, "deep", 1, four);
    pb branches[2] = {attr_graph("then_branch", &inner), attr_graph("else_branch", &inner)};
    const char *inputs[] = {"c", NULL};
    const char *outputs[] = {"out", NULL};
    graph_node(graph, "If", "inner", inputs, outputs, branches, 2);
}

static void malformed(pb *graph) {
    pb attr = attr_int("zork", 8);
    const char *inputs[] = {"x", NULL};
    const char *outputs[] = {"out", NULL};
    graph_node(graph, "Relu", "relu", inputs, outputs, &attr, 1);
}

static const struct {
    void (*write)(pb *graph);
    const char *message;
} cases[] = {
    {unknown_operator, "\"frob\" (Frobnicate) in m.onnx: the operator cannot be imported (unknown"},
    {other_domain, "\"theirs\" (Relu) in m.onnx: the operator cannot be imported (not ONNX's own"},
    {sequence, "\"pair\" (SequenceConstruct) in m.onnx is of sequences or optional values"},
    {sequence_of_sequences, "\"outer\" (SequenceConstruct) in m.onnx: input 0 is a sequence, and "
                            "sequences of sequences are"},
    {complex_numbers,
     "\"to_complex\" (Cast) in m.onnx: attribute to is element type 14 of ONNX (complex64)"},
    {nested, "\"frob\" (Frobnicate) in m.onnx: the operator cannot be imported"},
};

Test(branches, what_is_not_taken_need_not_be_known) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        pb model = model_with(cases[i].write);
        fixture f = compile(&model, true);
        expect_negated(&f);
    }
}

Test(branches, what_is_taken_is_refused_by_name) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        pb model = model_with(cases[i].write);
        fixture f = compile(&model, false);
        expect_refused(&f, cases[i].message);
    }
}

// What is malformed, and not only unknown, is an error wherever it is.
Test(branches, a_model_that_is_not_onnx_is_refused_whole) {
    pb model = model_with(malformed);
    fixture f = compile(&model, true);
    assert_fails(f.status, BERTH_INVALID_ARGUMENT, "attribute \"zork\" is none of Relu's");
    berth_arena_destroy(f.arena);
}

// The graph returns a map: TypeProto.map_type (5).
Test(branches, an_output_that_is_no_tensor_is_refused) {
    pb graph = {.size = 0};
    pb element = {.size = 0};
    pb map_type = {.size = 0};
    pb type = {.size = 0};
    pb value = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_node1(&graph, "Neg", "neg", "x", "", "y");
    pb_message(&map_type, 2, &element);
    pb_message(&type, 5, &map_type);
    pb_text(&value, 1, "y");
    pb_message(&value, 2, &type);
    pb_message(&graph, 12, &value);
    pb model = model_of(&graph, 13);
    fixture f = compile(&model, true);
    expect_refused(&f, "m.onnx: output \"y\" is a map, a sparse tensor or a sequence of sequences");
}

// The module as text says it, and is read again.
Test(branches, text) {
    pb model = model_with(unknown_operator);
    fixture f = {.arena = NULL};
    berth_module *again = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(
        berth_onnx_import_memory(f.arena, model.data, model.size, "m.onnx", NULL, NULL, &f.module));
    berth_strbuf first = berth_strbuf_make(f.arena);
    berth_strbuf second = berth_strbuf_make(f.arena);
    berth_module_print(f.module, &first);
    const char *text = berth_strbuf_text(&first);
    cr_expect_not_null(strstr(text, "not_imported() {reason = "), "%s", text);
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "m.txt", &again));
    berth_module_print(again, &second);
    cr_expect_str_eq(berth_strbuf_text(&second), text);
    berth_arena_destroy(f.arena);
}
