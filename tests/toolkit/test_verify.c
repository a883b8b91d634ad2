// Verification says what ran: a folder whose inputs decide shapes, one where nothing is left to
// run, and what --require makes of it.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/onnx/model_writer.h"
#include "toolkit/tensor_file.h"
#include "toolkit/verify.h"

typedef struct fixture {
    berth_arena *arena;
    char folder[64], model[96];
} fixture;

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    cr_assert_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void write_tensor(const fixture *f, const char *name, berth_dtype dtype, int rank,
                         const int64_t *dims, const double *values) {
    char path[128];
    berth_tensor tensor = berth_tensor_create(f->arena, dtype, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i)
        berth_tensor_set_f64(&tensor, i, values[i]);
    snprintf(path, sizeof(path), "%s/%s.pb", f->folder, name);
    assert_ok(berth_tensor_file_write(path, NULL, &tensor));
}

// y = the places of x's elements that are not 0; with `relu` also z = relu(x).
static fixture begin(bool relu) {
    fixture f = {.folder = "/tmp/berth-verify-XXXXXX"};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    cr_assert(mkdtemp(f.folder));
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, (int64_t[]){4});
    graph_value(&graph, 12, "y", 7, 2, (int64_t[]){1, INT64_MIN});
    graph_node1(&graph, "NonZero", "count", "x", "", "y");
    if (relu) {
        graph_output(&graph, "z", 1, (int64_t[]){4});
        graph_node1(&graph, "Relu", "relu", "x", "", "z");
        write_tensor(&f, "output_1", BERTH_DTYPE_F32, 1, (int64_t[]){4}, (double[]){3, 0, 0, 0});
    }
    pb model = model_of(&graph, 13);
    snprintf(f.model, sizeof(f.model), "%s/model.onnx", f.folder);
    write_file(f.model, model.data, model.size);
    write_tensor(&f, "input_0", BERTH_DTYPE_F32, 1, (int64_t[]){4}, (double[]){3, 0, -1, 0});
    write_tensor(&f, "output_0", BERTH_DTYPE_I64, 2, (int64_t[]){1, 2}, (double[]){0, 2});
    return f;
}

static void finish(fixture *f) {
    static const char *const names[] = {"model.onnx", "input_0.pb", "output_0.pb", "output_1.pb"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", f->folder, names[i]);
        unlink(path);
    }
    rmdir(f->folder);
    berth_arena_destroy(f->arena);
}

static berth_status verify(const fixture *f, const char *require, bool optional,
                           berth_verify_result *result) {
    berth_verify_options options = {.compare = BERTH_COMPARE_DEFAULTS,
                                    .thread_count = 1,
                                    .require_device = require,
                                    .kernels_optional = optional};
    return berth_verify_folder(f->arena, f->model, f->folder, &options, result);
}

Test(verify, what_shapes_need_is_compiled_in_and_said) {
    fixture f = begin(true);
    berth_verify_result result;
    assert_ok(verify(&f, "cpu:0", false, &result));
    cr_expect(result.pass);
    cr_assert_eq(result.known_input_count, 1);
    cr_expect_str_eq(result.known_inputs[0], "x");
    cr_expect_eq(result.kernel_count, 1);
    cr_expect_not(result.computed_before);
    finish(&f);
}

Test(verify, a_device_without_a_kernel_does_not_meet_a_requirement) {
    fixture f = begin(false);
    berth_verify_result result;
    assert_ok(verify(&f, NULL, false, &result));
    cr_expect(result.pass && result.computed_before && result.kernel_count == 0);
    assert_fails(verify(&f, "cpu:0", false, &result), BERTH_UNAVAILABLE, "no kernel runs on cpu:0");
    assert_ok(verify(&f, "cpu:0", true, &result));
    finish(&f);
}

// Nodes may share a name, and an operation may become several: each result has a name of its own.
Test(verify, per_op_tells_results_of_one_name_apart) {
    fixture f = begin(true);
    berth_verify_result result;
    berth_verify_options options = {.compare = BERTH_COMPARE_DEFAULTS, .thread_count = 1};
    uint32_t compared = 0;
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, (int64_t[]){4});
    graph_output(&graph, "y", 1, (int64_t[]){4});
    graph_node1(&graph, "Relu", "same", "x", "", "a");
    graph_node1(&graph, "Relu", "same", "a", "", "y");
    pb model = model_of(&graph, 13);
    write_file(f.model, model.data, model.size);
    assert_ok(berth_verify_per_op(f.arena, f.model, f.folder, "cpu", &options, &result, &compared));
    cr_expect(result.pass);
    cr_expect_eq(compared, 2);
    finish(&f);
}
