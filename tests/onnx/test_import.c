// What the importer makes of a model: parameters, constants, names, symbols, bindings, functions.
#include <stdio.h>
#include <string.h>

#include "tests/onnx/imported.h"

#define QUESTION SYMBOL(999)  // "?"

Test(import, initializers_are_constants_and_borrow_the_file) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_input(&graph, "w", 1, four);  // as models of IR version 3 list them
    graph_output(&graph, "y", 1, four);
    graph_floats(&graph, "w", 4, 16);
    graph_node1(&graph, "Add", "", "x", "w", "y");
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    cr_assert_eq(root->params.count, 1);
    cr_expect_str_eq(berth_module_str(i.module, i.graph->values.data[root->params.data[0]].name),
                     "x");
    cr_expect_str_eq(berth_module_str(i.module, i.graph->values.data[root->results.data[0]].name),
                     "y");
    const berth_op *add = &i.graph->ops.data[root->ops.data[root->ops.count - 1]];
    cr_expect_str_eq(berth_module_str(i.module, berth_loc_get(i.module, add->loc)->node), "Add_0");
    const berth_tensor *w = berth_graph_constant_of(i.module, i.graph, add->inputs[1]);
    cr_assert(w);
    const uint8_t *data = w->data;
    bool inside = data >= model.data && data < model.data + model.size;
    bool aligned = false;  // raw data may lie anywhere: it is borrowed exactly when aligned
    for (size_t at = 0; at + 16 <= model.size; ++at)
        if (memcmp(model.data + at, data, 16) == 0)
            aligned |= (uintptr_t)(model.data + at) % 4 == 0;
    cr_expect_eq(inside, aligned);
    finish(&i);
}

// A value in place of an initializer that the model lists among its inputs makes it one.
Test(import, an_initializer_that_is_an_input_can_be_replaced) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_input(&graph, "w", 1, four);
    graph_output(&graph, "y", 1, four);
    graph_floats(&graph, "w", 4, 16);
    graph_floats(&graph, "v", 4, 16);
    graph_node1(&graph, "Add", "", "x", "w", "z");
    graph_node1(&graph, "Add", "", "z", "v", "y");
    pb model = model_of(&graph, 13);
    berth_input_binding given = {.tensor = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {4}}};
    berth_import_options options = {.inputs = &given, .input_count = 1};
    given.name = "w";
    imported i = import_with(&model, &options);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(i.graph->regions.data[0].params.count, 2);
    cr_expect_eq(count_kind(&i, BERTH_OP_CONSTANT), 1);
    finish(&i);
    given.name = "v";  // no input
    i = import_with(&model, &options);
    cr_expect_eq(berth_status_code(i.status), BERTH_INVALID_ARGUMENT);
    finish(&i);
}

// From opset 23 on: forms that changed.
Test(import, new_forms_of_quantisation) {
    pb graph = {.size = 0};
    const int64_t one[1] = {1};
    graph_value(&graph, 11, "x", 1, 1, four);
    graph_value(&graph, 11, "scale", 10, 1, one);  // f16
    graph_value(&graph, 12, "q", 2, 1, four);
    graph_value(&graph, 12, "y", 1, 1, four);
    static const char *const x[] = {"x", "scale", NULL}, *const q[] = {"q", NULL};
    static const char *const qs[] = {"q", "scale", NULL}, *const y[] = {"y", NULL};
    pb to = attr_int("output_dtype", 1), axis = attr_int("axis", 0);
    graph_node(&graph, "QuantizeLinear", "quantize", x, q, &axis, 1);
    graph_node(&graph, "DequantizeLinear", "dequantize", qs, y, &to, 1);
    pb model = model_of(&graph, 23);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_CAST), 2);  // x to the scale's type, the scale to f32
    cr_expect_eq(output_type(&i, 0)->dtype, BERTH_DTYPE_U8);
    cr_expect_eq(output_type(&i, 1)->dtype, BERTH_DTYPE_F32);
    finish(&i);
}

Test(import, opsets_that_are_not_known_are_refused) {
    static const int64_t last = 28;
    for (int64_t opset = last; opset <= last + 1; ++opset) {
        pb graph = {.size = 0};
        graph_input(&graph, "x", 1, four);
        graph_output(&graph, "y", 1, four);
        graph_node1(&graph, "Relu", "relu", "x", "", "y");
        pb model = model_of(&graph, opset);
        imported i = import_with(&model, NULL);
        if (opset == last)
            cr_expect_null(i.status, "%s", berth_status_message(i.status));
        else
            cr_expect(i.status && strstr(berth_status_message(i.status),
                                         "uses opset 29; opsets 1 to 28 are known"));
        finish(&i);
    }
}

static pb symbolic_model(void) {
    const int64_t dims[2] = {SYMBOL(0), 3};
    const int64_t same[2] = {SYMBOL(0), 1};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, dims);
    graph_input(&graph, "z", 2, same);
    graph_output(&graph, "y", 2, dims);
    graph_node1(&graph, "Add", "add", "x", "z", "y");
    return model_of(&graph, 13);
}

Test(import, symbols_survive_and_can_be_fixed) {
    pb model = symbolic_model();
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect(berth_dim_is_symbol(output_type(&i, 0)->dims[0]));
    cr_expect_str_eq(berth_module_str(i.module, berth_dim_symbol_name(output_type(&i, 0)->dims[0])),
                     "N0");
    finish(&i);
    berth_dim_binding dim = {"N0", 60};
    i = import_with(&model, &(berth_import_options){.dims = &dim, .dim_count = 1});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[0], 60);
    cr_expect(berth_type_is_static(output_type(&i, 0)));
    finish(&i);
}

// The type of input x: "f32[N0,3]".
static void expect_input(const berth_import_options *options, const char *wanted,
                         const char *message) {
    pb model = symbolic_model();
    imported i = import_with(&model, options);
    if (message) {
        cr_expect(i.status && strstr(berth_status_message(i.status), message), "%s",
                  i.status ? berth_status_message(i.status) : "no error");
    } else {
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        berth_strbuf text = berth_strbuf_make(i.module->arena);
        berth_type_print(i.module, i.graph->values.data[0].type, &text);
        cr_expect_str_eq(berth_strbuf_text(&text), wanted);
    }
    finish(&i);
}

Test(import, bounds_keep_dimensions_open_and_extents_within) {
    const berth_dim_bounds bounds = {"x.0", 2, 9};
    berth_dim_binding dim = {"N0", 9};
    berth_import_options options = {.bounds = &bounds, .bounds_count = 1, .default_batch = 1};
    expect_input(&options, "f32[N0,3]", NULL);
    options.bounds_at_most = true;
    expect_input(&options, "f32[9,3]", NULL);
    options.dims = &dim;
    options.dim_count = 1;
    expect_input(&options, "f32[9,3]", NULL);
    dim.extent = 10;
    expect_input(&options, NULL, "dimension x.0 is 10, outside its bounds 2..9");
    dim.extent = 1;
    expect_input(&options, NULL, "dimension x.0 is 1, outside its bounds 2..9");
}

Test(import, dimensions_that_follow_from_others) {
    const int64_t dims[2] = {SYMBOL(0), SYMBOL(1)};
    const berth_dim_relation relation = {"N1", "2*N0+1"};
    const berth_dim_bounds bounds = {"N1", 1, 2};
    berth_dim_binding fixed[] = {{"N0", 4}, {"N1", 9}};
    berth_import_options options = {.relations = &relation, .relation_count = 1};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, dims);
    graph_output(&graph, "y", 2, dims);
    graph_node1(&graph, "Relu", "relu", "x", "", "y");
    pb model = model_of(&graph, 13);
    static const char *const wanted[] = {"f32[N0,2*N0+1]", "f32[4,9]", "f32[4,9]"};
    for (uint32_t count = 0; count <= 2; ++count) {
        options.dims = fixed;
        options.dim_count = count;
        imported i = import_with(&model, &options);
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        berth_strbuf text = berth_strbuf_make(i.module->arena);
        berth_type_print(i.module,
                         i.graph->values.data[i.graph->regions.data[0].params.data[0]].type, &text);
        cr_expect_str_eq(berth_strbuf_text(&text), wanted[count]);
        finish(&i);
    }
    fixed[1].extent = 8;
    imported i = import_with(&model, &options);
    cr_expect(i.status && strstr(berth_status_message(i.status),
                                 "dimension N1 is 8, but N1=2*N0+1 makes it 9"));
    finish(&i);
    options = (berth_import_options){
        .relations = &relation, .relation_count = 1, .bounds = &bounds, .bounds_count = 1};
    i = import_with(&model, &options);
    cr_expect(i.status && strstr(berth_status_message(i.status), "no bounds of its own"));
    finish(&i);
}

static void expect_relation(const char *expression, const berth_dim_bounds *bounds,
                            const char *type, const char *failure) {
    const int64_t dims[2] = {SYMBOL(0), SYMBOL(1)};
    const berth_dim_relation relation = {"N1", expression};
    const berth_import_options options = {.relations = &relation,
                                          .relation_count = 1,
                                          .bounds = bounds,
                                          .bounds_count = bounds != NULL};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, dims);
    graph_output(&graph, "y", 2, dims);
    graph_node1(&graph, "Relu", "relu", "x", "", "y");
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, &options);
    if (failure) {
        cr_expect(i.status && strstr(berth_status_message(i.status), failure), "%s: %s", expression,
                  i.status ? berth_status_message(i.status) : "imported");
    } else {
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        berth_strbuf text = berth_strbuf_make(i.module->arena);
        berth_type_print(i.module,
                         i.graph->values.data[i.graph->regions.data[0].params.data[0]].type, &text);
        cr_expect_str_eq(berth_strbuf_text(&text), type);
    }
    finish(&i);
}

// "a" is no dimension of the model: one is a multiple of it.
Test(import, dimensions_follow_from_a_symbol_of_the_callers) {
    const berth_dim_bounds of_a = {"a", 1, 8}, of_b = {"b", 1, 8};
    expect_relation("32*a", &of_a, "f32[N0,32*a]", NULL);
    expect_relation("2*a+1", &of_a, "f32[N0,2*a+1]", NULL);
    expect_relation("32*a", NULL, NULL, "\"a\" is no symbol of");
    expect_relation("32*a", &of_b, NULL, "has no symbolic dimension \"b\"");
    expect_relation("a*a", &of_a, NULL, "a number times that symbol");
    expect_relation("N0*a", &of_a, NULL, "a number times that symbol");
}

// "?" and -1 are no names: such dimensions are called INPUT.AXIS, and so may be those with a name.
Test(import, unnamed_dimensions_can_be_fixed) {
    const int64_t dims[3] = {QUESTION, 3, -1};
    const int64_t named[2] = {SYMBOL(0), 3};
    pb graph = {.size = 0};
    graph_input(&graph, "a.b", 3, dims);
    graph_input(&graph, "z", 2, named);
    graph_output(&graph, "y", 3, dims);
    graph_node1(&graph, "Add", "add", "a.b", "z", "y");
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    const berth_type *type =
        berth_type_get(i.module, i.graph->values.data[root->params.data[0]].type);
    cr_expect_str_eq(berth_module_str(i.module, berth_dim_symbol_name(type->dims[0])), "a.b.0");
    cr_expect_str_eq(berth_module_str(i.module, berth_dim_symbol_name(type->dims[2])), "a.b.2");
    finish(&i);
    berth_dim_binding fixed[] = {{"a.b.0", 2}, {"a.b.2", 3}, {"z.0", 3}};
    i = import_with(&model, &(berth_import_options){.dims = fixed, .dim_count = 3});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_type *out = output_type(&i, 0);
    cr_expect(berth_type_is_static(out) && out->dims[0] == 2 && out->dims[2] == 3);
    finish(&i);
    static const char *const wrong[] = {"a.b.1", "a.b.3", "a.b.", "a.b",
                                        "z.1",   "q.0",   "z.0x", "z.-1"};
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); ++k) {
        fixed[0].name = wrong[k];
        i = import_with(&model, &(berth_import_options){.dims = fixed, .dim_count = 1});
        cr_expect(i.status && strstr(berth_status_message(i.status), "a.b.0, a.b.2, N0"), "%s: %s",
                  wrong[k], berth_status_message(i.status));
        finish(&i);
    }
    fixed[0] = (berth_dim_binding){"N0", 4};
    i = import_with(&model, &(berth_import_options){.dims = fixed, .dim_count = 3});
    cr_expect(i.status && strstr(berth_status_message(i.status), "given twice, as 4 and as 3"));
    finish(&i);
}

static berth_input_binding binding(const char *name, berth_dtype dtype, int64_t rows,
                                   int64_t columns) {
    return (berth_input_binding){.name = name,
                                 .tensor = {.dtype = dtype, .rank = 2, .dims = {rows, columns}}};
}

Test(import, bound_inputs_fix_dimensions) {
    pb model = symbolic_model();
    berth_input_binding x = binding("x", BERTH_DTYPE_F32, 7, 3);
    imported i = import_with(&model, &(berth_import_options){.inputs = &x, .input_count = 1});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    cr_expect_eq(berth_type_get(i.module, i.graph->values.data[root->params.data[1]].type)->dims[0],
                 7);
    cr_expect_eq(output_type(&i, 0)->dims[0], 7);
    finish(&i);
}

Test(import, wrong_bindings_are_refused) {
    pb model = symbolic_model();
    berth_input_binding given = binding("x", BERTH_DTYPE_F32, 7, 3);
    berth_dim_binding rows = {"N0", 8};
    berth_input_binding name = binding("q", BERTH_DTYPE_F32, 7, 3);
    berth_input_binding shape = binding("x", BERTH_DTYPE_F32, 7, 4);
    berth_input_binding rank = binding("x", BERTH_DTYPE_F32, 7, 3);
    berth_input_binding type = binding("x", BERTH_DTYPE_I64, 7, 3);
    berth_dim_binding dim = {"M", 3};
    berth_dim_binding negative = {"N0", -3};
    rank.tensor.rank = 1;
    const struct {
        berth_import_options options;
        const char *wanted;
    } cases[] = {
        {{.inputs = &given, .input_count = 1, .dims = &rows, .dim_count = 1}, "N0"},
        {{.inputs = &name, .input_count = 1}, "\"x\""},
        {{.inputs = &shape, .input_count = 1}, "4"},
        {{.inputs = &rank, .input_count = 1}, "dimensions"},
        {{.inputs = &type, .input_count = 1}, "i64"},
        {{.dims = &dim, .dim_count = 1}, "N0"},
        {{.dims = &negative, .dim_count = 1}, "-3"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
        imported i = import_with(&model, &cases[k].options);
        cr_expect_eq(berth_status_code(i.status), BERTH_INVALID_ARGUMENT, "case %zu", k);
        cr_expect(strstr(berth_status_message(i.status), cases[k].wanted), "case %zu: %s", k,
                  berth_status_message(i.status));
        finish(&i);
    }
}

static void keep_warning(void *state, berth_log_level level, const char *message) {
    if (level == BERTH_LOG_WARNING) snprintf(state, 512, "%s", message);
}

// One name for dimensions that differ is no harm where shapes are given: every input has its own.
Test(import, a_symbol_may_stand_for_two_extents) {
    pb model = symbolic_model();
    berth_input_binding two[2] = {binding("x", BERTH_DTYPE_F32, 7, 3),
                                  binding("z", BERTH_DTYPE_F32, 1, 1)};
    char warning[512] = "";
    imported i = import_with(
        &model,
        &(berth_import_options){.inputs = two, .input_count = 2, .log = {keep_warning, warning}});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[0], 7);
    cr_expect(strstr(warning, "dimension N0 is 1 in input \"z\" and 7 in \"x\""), "%s", warning);
    finish(&i);
}

static imported import_like(bool reads_shape, char *warning) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, (int64_t[]){3, 4});
    graph_input(&graph, "like", 2, (int64_t[]){3, 4});
    graph_output(&graph, "y", 2, (int64_t[]){3, 4});
    graph_node1(&graph, "CastLike", "cast", "x", "like", "y");
    if (reads_shape) graph_node1(&graph, "Reshape", "reshape", "like", "other", "s");
    pb model = model_of(&graph, 15);
    berth_input_binding two[2] = {binding("x", BERTH_DTYPE_F32, 3, 4),
                                  binding("like", BERTH_DTYPE_F32, 1, 1)};
    two[1].tensor.rank = 1;
    return import_with(
        &model,
        &(berth_import_options){.inputs = two, .input_count = 2, .log = {keep_warning, warning}});
}

// CastLike asks its second operand for the element type.
Test(import, the_shape_of_an_input_that_nothing_reads_is_of_no_account) {
    char warning[512] = "";
    imported i = import_like(false, warning);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->rank, 2);
    cr_expect(strstr(warning, "input \"like\": the tensor given has another shape"), "%s", warning);
    finish(&i);
    i = import_like(true, warning);
    cr_assert_eq(berth_status_code(i.status), BERTH_INVALID_ARGUMENT);
    cr_expect(
        strstr(berth_status_message(i.status), "\"like\" has 2 dimensions, the tensor given 1"),
        "%s", berth_status_message(i.status));
    finish(&i);
}

// -1 as an extent and "?" as a name both say that any extent will do.
Test(import, unknown_dimensions_have_several_spellings) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, (int64_t[]){-1, QUESTION});
    graph_input(&graph, "z", 2, (int64_t[]){-1, QUESTION});
    graph_output(&graph, "y", 2, (int64_t[]){-7, QUESTION});
    graph_node1(&graph, "MatMul", "product", "x", "z", "y");
    pb model = model_of(&graph, 13);
    berth_input_binding two[2] = {binding("x", BERTH_DTYPE_F32, 7, 3),
                                  binding("z", BERTH_DTYPE_F32, 3, 5)};
    char warning[512] = "";
    imported i = import_with(
        &model,
        &(berth_import_options){.inputs = two, .input_count = 2, .log = {keep_warning, warning}});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[0], 7);
    cr_expect_eq(output_type(&i, 0)->dims[1], 5);
    cr_expect_str_empty(warning);
    finish(&i);
    i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_str_eq(berth_module_str(i.module, berth_dim_symbol_name(output_type(&i, 0)->dims[0])),
                     "x.0", "the product has the rows of x, whatever they are");
    finish(&i);
}

// Declared shapes and types of values inside and of outputs go with the operations (passes/check.h).
Test(import, declarations_are_kept_for_a_check) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 2, (int64_t[]){1, SYMBOL(0)});
    graph_value(&graph, 13, "inside", 1, 1, (int64_t[]){5});
    graph_node1(&graph, "Neg", "first", "x", "", "inside");
    graph_node1(&graph, "Neg", "second", "inside", "", "y");
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    static const int64_t expected[2][4] = {{0, 1, 5}, {0, 2, 1, -1}};
    for (uint32_t k = 0; k < 2; ++k) {
        uint32_t count = 0;
        const int64_t *entry = berth_attrs_ints(
            i.module, &i.graph->ops.data[root->ops.data[k]].attrs, "declared", &count);
        cr_assert(entry && count == k + 3);
        cr_expect_arr_eq(entry, expected[k], count * sizeof(*entry));
        entry = berth_attrs_ints(i.module, &i.graph->ops.data[root->ops.data[k]].attrs,
                                 "declared_types", &count);
        cr_assert(entry && count == 2);
        cr_expect(entry[0] == 0 && entry[1] == BERTH_DTYPE_F32);
    }
    finish(&i);
}

Test(import, an_input_bound_as_constant_is_no_parameter) {
    pb model = symbolic_model();
    float values[3] = {1, 2, 3};
    berth_input_binding x = binding("x", BERTH_DTYPE_F32, 1, 3);
    x.tensor.data = values;
    x.as_constant = true;
    imported i = import_with(&model, &(berth_import_options){.inputs = &x, .input_count = 1});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(i.graph->regions.data[0].params.count, 1);
    cr_expect_eq(count_kind(&i, BERTH_OP_CONSTANT), 1);
    cr_expect_eq(output_type(&i, 0)->dims[0], 1);
    finish(&i);
}

// ---- functions of the model ----

Test(import, functions_are_inlined) {
    pb graph = {.size = 0};
    pb function = {.size = 0};
    pb body = {.size = 0};
    pb node = {.size = 0};
    pb opset = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 1, four);
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "y");
    pb_text(&node, 3, "caller");
    pb_text(&node, 4, "Double");
    pb_text(&node, 7, "own");
    pb_message(&graph, 1, &node);
    pb_text(&function, 1, "Double");
    pb_text(&function, 4, "y");  // names inside are the function's own
    pb_text(&function, 5, "x");
    graph_node1(&body, "Add", "inner", "y", "y", "x");
    pb_bytes(&function, 7, body.data + 2,
             body.size - 2);  // graph.node and function.node: the same message
    pb_text(&function, 10, "own");
    pb_text(&opset, 1, "own");
    pb_int(&opset, 2, 1);
    pb model = model_of(&graph, 13);
    pb_message(&model, 8, &opset);
    pb_message(&model, 25, &function);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    cr_assert_eq(root->ops.count, 1);
    const berth_op *add = &i.graph->ops.data[root->ops.data[0]];
    cr_expect_eq(add->kind, BERTH_OP_ADD);
    cr_expect_eq(add->inputs[0], root->params.data[0]);
    cr_expect_str_eq(berth_module_str(i.module, berth_loc_get(i.module, add->loc)->node),
                     "caller/inner");
    finish(&i);
}

static void say(void *user, berth_log_level level, const char *message) {
    (void)level;
    snprintf(user, 256, "%s", message);
}

// "=" begins expressions of modules: a model's name that begins so is none.
Test(import, names_that_look_like_expressions) {
    const int64_t dims[2] = {4, SYMBOL(998)};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, dims);
    graph_output(&graph, "y", 2, dims);
    graph_node1(&graph, "Relu", "", "x", "", "y");
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_str_eq(berth_module_str(i.module, berth_dim_symbol_name(output_type(&i, 0)->dims[1])),
                     "x.1");
    finish(&i);
}

// What looks like a batch gets the default; what does not, or is fixed, does not.
Test(import, default_batch) {
    const int64_t open[3] = {SYMBOL(0), SYMBOL(1), 4}, flat[1] = {SYMBOL(2)};
    const int64_t second[2] = {4, SYMBOL(3)}, first[2] = {SYMBOL(3), 4}, unnamed[2] = {QUESTION, 4};
    pb graph = {.size = 0};
    graph_input(&graph, "a", 3, open);
    graph_input(&graph, "b", 1, flat);
    graph_input(&graph, "c", 2, second);
    graph_input(&graph, "d", 2, first);
    graph_input(&graph, "e", 2, unnamed);
    graph_output(&graph, "y", 3, open);
    graph_node1(&graph, "Relu", "", "a", "", "y");
    pb model = model_of(&graph, 13);
    char said[256] = "";
    berth_import_options options = {.default_batch = 7, .log = {say, said}};
    imported i = import_with(&model, &options);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_region *root = &i.graph->regions.data[0];
    const berth_type *types[5];
    for (int k = 0; k < 5; ++k)
        types[k] = berth_type_get(i.module, i.graph->values.data[root->params.data[k]].type);
    cr_expect_eq(types[0]->dims[0], 7);
    cr_expect(berth_dim_is_symbol(types[0]->dims[1]), "the second dimension is none");
    cr_expect(berth_dim_is_symbol(types[1]->dims[0]), "a lone dimension is none");
    cr_expect(berth_dim_is_symbol(types[2]->dims[1]));
    cr_expect(berth_dim_is_symbol(types[3]->dims[0]), "it is the second one of another input");
    cr_expect_eq(types[4]->dims[0], 7);
    cr_expect_str_eq(said, "dimension e.0 of the inputs is taken as 7");
    finish(&i);

    berth_dim_binding dim = {"N0", 3};
    options.dims = &dim;
    options.dim_count = 1;
    i = import_with(&model, &options);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(berth_type_get(i.module, i.graph->values.data[0].type)->dims[0], 3);
    finish(&i);
}
