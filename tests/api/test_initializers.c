// Initializers of a model for which a caller gives other values: y = (x + w) + v, where the model lists w
// among its inputs, and all of its values are one.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/leaks.h"
#include "tests/onnx/model_writer.h"

enum { count = 4, bytes_present = count * sizeof(float) };
static const int64_t four[] = {count};

static pb make_model(void) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_input(&graph, "w", 1, four);
    graph_output(&graph, "y", 1, four);
    graph_floats(&graph, "w", count, bytes_present);
    graph_floats(&graph, "v", count, bytes_present);
    graph_node1(&graph, "Add", "first", "x", "w", "z");
    graph_node1(&graph, "Add", "second", "z", "v", "y");
    return model_of(&graph, 13);
}

static berth_compiler *make_compiler(void) {
    berth_compiler *compiler = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    return compiler;
}

static berth_tensor floats(float *data) {
    return (berth_tensor){BERTH_DTYPE_F32, 1, {count}, data};
}

// The first element of y for x = 10; *w NULL: it is no input.
static float compute(berth_compiler *compiler, float *w) {
    const pb model = make_model();
    float x[count] = {10}, y[count] = {0};
    const berth_tensor inputs[] = {floats(x), floats(w)}, output = floats(y);
    berth_program *program = NULL;
    berth_session *session = NULL;
    const uint32_t input_count = w ? 2 : 1;
    assert_ok(berth_compiler_compile_memory(compiler, model.data, model.size, NULL, &program));
    cr_assert_eq(berth_program_input_count(program), input_count);
    assert_ok(berth_session_create(program, NULL, &session));
    assert_ok(berth_session_run_with(session, inputs, input_count, &output, 1, -1));
    berth_session_destroy(session);
    berth_program_release(program);
    return y[0];
}

Test(initializers, those_that_a_caller_may_give_are_listed) {
    const pb model = make_model();
    berth_model_info *info = NULL;
    assert_ok(berth_model_info_parse(model.data, model.size, NULL, &info));
    cr_assert_eq(berth_model_info_input_count(info), 1);
    cr_assert_eq(berth_model_info_overridable_count(info), 1);
    cr_assert_str_eq(berth_model_info_overridable(info, 0)->name, "w");
    cr_assert_str_eq(berth_model_info_overridable(info, 0)->type, "f32[4]");
    cr_assert_null(berth_model_info_overridable(info, 1));
    berth_model_info_free(info);
}

Test(initializers, become_inputs_or_other_constants, .timeout = 120) {
    float w[count] = {5}, v[count] = {7};
    const berth_tensor w_tensor = floats(w), v_tensor = floats(v);
    berth_compiler *compiler = make_compiler();
    cr_assert_eq(compute(compiler, NULL), 10 + 1 + 1);
    assert_ok(berth_compiler_set_input(compiler, "v", &v_tensor, 1));
    cr_assert_eq(compute(compiler, NULL), 10 + 1 + 7);
    assert_ok(berth_compiler_set_input(compiler, "w", &w_tensor, 0));
    cr_assert_eq(compute(compiler, w), 10 + 5 + 7);
    w[0] = 6;
    cr_assert_eq(compute(compiler, w), 10 + 6 + 7);
    assert_ok(berth_compiler_set_input(compiler, "w", &w_tensor, 1));
    w[0] = 0;  // it was copied
    cr_assert_eq(compute(compiler, NULL), 10 + 6 + 7);
    berth_compiler_destroy(compiler);
}

// A model of the virtual machine has the same ones, with shapes that stay open.
Test(initializers, of_a_dynamic_model, .timeout = 120) {
    const pb model = make_model();
    float x[count] = {10}, w[count] = {5}, v[count] = {7};
    const berth_tensor inputs[] = {floats(x), floats(w)}, v_tensor = floats(v);
    berth_compiler *compiler = make_compiler();
    berth_dynamic *dynamic = NULL;
    berth_results *results = NULL;
    assert_ok(berth_compiler_set_input(compiler, "v", &v_tensor, 1));
    assert_ok(berth_compiler_set_input(compiler, "w", &inputs[1], 0));
    assert_ok(
        berth_compiler_load_dynamic_memory(compiler, model.data, model.size, NULL, 1, &dynamic));
    cr_assert_eq(berth_dynamic_input_count(dynamic), 2);
    assert_ok(berth_dynamic_run(dynamic, inputs, 2, &results));
    cr_assert_eq(((const float *)berth_results_item(results, 0, 0)->data)[0], 10 + 5 + 7);
    berth_results_free(results);
    berth_dynamic_destroy(dynamic);
    berth_compiler_destroy(compiler);
}

Test(initializers, what_does_not_fit_is_refused) {
    const pb model = make_model();
    float v[count] = {7};
    const berth_tensor fits = floats(v), shorter = {BERTH_DTYPE_F32, 1, {count - 1}, v};
    const berth_tensor other = {BERTH_DTYPE_I32, 1, {count}, v};
    static const struct {
        const char *name;
        int tensor, constant;
        const char *message;
    } cases[] = {
        {"v", 0, 0, "only as a constant"},
        {"v", 1, 1, "initializer \"v\" is f32[4], the tensor given is f32[3]"},
        {"v", 2, 1, "initializer \"v\" is f32[4], the tensor given is i32[4]"},
        {"w", 1, 1, "\"w\""},
        {"u", 0, 1, "no input \"u\""},
    };
    const berth_tensor *const tensors[] = {&fits, &shorter, &other};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_compiler *compiler = make_compiler();
        berth_program *program = NULL;
        assert_ok(berth_compiler_set_input(compiler, cases[i].name, tensors[cases[i].tensor],
                                           cases[i].constant));
        assert_fails(
            berth_compiler_compile_memory(compiler, model.data, model.size, NULL, &program),
            BERTH_INVALID_ARGUMENT, cases[i].message);
        berth_compiler_destroy(compiler);
    }
}
