// Gradient beside central differences of the same model, both in f64 by the reference interpreter; and
// what has no derivative here is refused, rather than taken as constant.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "compiler/onnx/import.h"
#include "ir/eval.h"
#include "tests/check.h"
#include "tests/onnx/model_writer.h"

enum { x_count = 3, results = 4, f64_code = 11 };

static const int64_t x_dims[] = {3, 4}, w_dims[] = {4, 2}, b_dims[] = {2}, y_dims[] = {1, 1};

static pb attr_text(const char *name, const char *const *texts) {
    pb attribute = {.size = 0};
    pb_text(&attribute, 1, name);
    if (!texts[1]) pb_text(&attribute, 4, texts[0]);
    for (int i = 0; texts[1] && texts[i]; ++i) pb_text(&attribute, 9, texts[i]);
    pb_int(&attribute, 20, texts[1] ? 8 : 3);
    return attribute;
}

static void gradient_node(pb *graph, const char *y, const char *const *inputs) {
    pb node = {.size = 0}, xs, target;
    static const char *const outputs[] = {"dx", "dw", "db"};
    for (int i = 0; i < x_count; ++i) pb_text(&node, 1, inputs[i]);
    for (int i = 0; i < x_count; ++i) pb_text(&node, 2, outputs[i]);
    pb_text(&node, 3, "THE_NODE");
    pb_text(&node, 4, "Gradient");
    xs = attr_text("xs", (const char *const[]){"x", "w", "b", NULL});
    target = attr_text("y", (const char *const[]){y, NULL});
    pb_message(&node, 5, &xs);
    pb_message(&node, 5, &target);
    pb_text(&node, 7, "ai.onnx.preview.training");
    pb_message(graph, 1, &node);
}

typedef struct step {
    const char *op_type, *a, *b, *out;
} step;

// Every operation that there is a rule for, broadcasts among them.
static const step steps[] = {
    {"MatMul", "x", "w", "m"},      {"Add", "m", "b", "a"},        {"Tanh", "a", NULL, "t"},
    {"Sigmoid", "a", NULL, "s"},    {"Mul", "t", "s", "p"},        {"Exp", "p", NULL, "e"},
    {"Div", "b", "e", "q"},         {"Sqrt", "e", NULL, "r"},      {"Sub", "q", "r", "u"},
    {"Neg", "u", NULL, "n"},        {"Softplus", "n", NULL, "f"},  {"Sin", "f", NULL, "i"},
    {"Cos", "i", NULL, "c"},        {"Log", "f", NULL, "l"},       {"Reciprocal", "e", NULL, "v"},
    {"Sum", "c", "l", "z"},         {"Relu", "z", NULL, "h"},      {"Identity", "v", NULL, "d"},
    {"ReduceMean", "h", NULL, "g"}, {"ReduceSum", "d", NULL, "k"}, {"Add", "g", "k", "y"},
    {"Abs", "k", NULL, "unknown"},  {"Add", "a", "a", "many"},
};

static berth_status import(berth_arena *arena, const char *y, const char *const *inputs,
                           berth_module **module) {
    pb graph = {.size = 0};
    graph_value(&graph, 11, "x", f64_code, 2, x_dims);
    graph_value(&graph, 11, "w", f64_code, 2, w_dims);
    graph_value(&graph, 11, "b", f64_code, 1, b_dims);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i)
        graph_node1(&graph, steps[i].op_type, steps[i].out, steps[i].a, steps[i].b, steps[i].out);
    gradient_node(&graph, y, inputs);
    graph_value(&graph, 12, "y", f64_code, 2, y_dims);
    graph_value(&graph, 12, "dx", f64_code, 2, x_dims);
    graph_value(&graph, 12, "dw", f64_code, 2, w_dims);
    graph_value(&graph, 12, "db", f64_code, 1, b_dims);
    pb model = model_of(&graph, 13);
    return berth_onnx_import_memory(arena, model.data, model.size, "model.onnx", NULL, NULL,
                                    module);
}

static double value_of_y(const berth_module *module, const berth_tensor *inputs,
                         berth_arena *arena) {
    berth_tensor out[results];
    assert_ok(berth_eval_function(module, berth_module_find_function(module, "main"), inputs,
                                  x_count, out, results, arena));
    return berth_tensor_get_f64(&out[0], 0);
}

Test(gradient, is_what_differences_come_to) {
    static const double step_size = 1e-5;
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(import(arena, "y", (const char *const[]){"x", "w", "b"}, &module));
    berth_tensor inputs[x_count] = {berth_tensor_create(arena, BERTH_DTYPE_F64, 2, x_dims),
                                    berth_tensor_create(arena, BERTH_DTYPE_F64, 2, w_dims),
                                    berth_tensor_create(arena, BERTH_DTYPE_F64, 1, b_dims)};
    berth_tensor out[results];
    for (int i = 0; i < x_count; ++i) berth_tensor_fill_random(&inputs[i], (uint64_t)i + 3);
    assert_ok(berth_eval_function(module, berth_module_find_function(module, "main"), inputs,
                                  x_count, out, results, arena));
    for (int i = 0; i < x_count; ++i) {
        cr_assert(berth_tensor_same_shape(&out[i + 1], &inputs[i]));
        for (int64_t k = 0; k < berth_tensor_element_count(&inputs[i]); ++k) {
            const double held = berth_tensor_get_f64(&inputs[i], k);
            berth_tensor_set_f64(&inputs[i], k, held + step_size);
            const double above = value_of_y(module, inputs, arena);
            berth_tensor_set_f64(&inputs[i], k, held - step_size);
            const double below = value_of_y(module, inputs, arena);
            berth_tensor_set_f64(&inputs[i], k, held);
            const double wanted = (above - below) / (2 * step_size);
            cr_expect(fabs(berth_tensor_get_f64(&out[i + 1], k) - wanted) <
                          1e-6 + 1e-6 * fabs(wanted),
                      "input %d, element %d: %g, expected %g", i, (int)k,
                      berth_tensor_get_f64(&out[i + 1], k), wanted);
        }
    }
    berth_arena_destroy(arena);
}

Test(gradient, refuses_what_it_has_no_rule_for) {
    static const struct {
        const char *y;
        const char *inputs[x_count];
        const char *what;
    } rows[] = {{"unknown", {"x", "w", "b"}, "derivative of abs"},
                {"many", {"x", "w", "b"}, "more than one number, \"many\""},
                {"nowhere", {"x", "w", "b"}, "\"nowhere\" is no tensor"},
                {"y", {"x", "w", "q"}, "operand 2 is another tensor than \"b\""}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_status status = import(arena, rows[i].y, rows[i].inputs, &module);
        cr_expect(status && strstr(berth_status_message(status), rows[i].what) &&
                      strstr(berth_status_message(status), "THE_NODE"),
                  "%s: %s", rows[i].y, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}
