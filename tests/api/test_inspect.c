// What models and programs consist of, and modules pass by pass, through the public API.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

#define MODEL "examples/digits/digits.onnx"

static berth_compiler *compiler;

static void setup(void) {
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
}

static void teardown(void) {
    berth_compiler_destroy(compiler);
}

TestSuite(inspect, .init = setup, .fini = teardown, .timeout = 120);
TestSuite(module, .init = setup, .fini = teardown, .timeout = 120);

// examples/digits/train.py says what the model is made of.
Test(inspect, model) {
    berth_model_info *model = NULL;
    uint32_t convolutions = 0;
    assert_ok(berth_compiler_read_model(compiler, MODEL, &model));
    for (uint32_t i = 0; i < berth_model_info_node_count(model); ++i)
        convolutions += strcmp(berth_model_info_node(model, i)->op, "Conv") == 0;
    cr_assert_eq(convolutions, 2);
    cr_assert_str_eq(berth_model_info_input(model, 0)->type, "f32[batch,1,8,8]");
    cr_assert_gt(berth_model_info_facts(model)->weight_bytes, 0);
    cr_assert_eq(berth_model_info_external_count(model), 0);
    cr_assert_null(berth_model_info_node(model, berth_model_info_node_count(model)));
    berth_model_info_free(model);
    assert_ok(berth_compiler_set_dim(compiler, "batch", 3));
    assert_ok(berth_compiler_read_model(compiler, MODEL, &model));
    cr_assert_str_eq(berth_model_info_input(model, 0)->type, "f32[3,1,8,8]");
    berth_model_info_free(model);
}

// Pools are what a session allocates, devices are the program's, code is there.
Test(inspect, program) {
    berth_program *program = NULL, *both = NULL;
    berth_contents *contents = NULL, *fallback = NULL;
    bool has_code = false;
    assert_ok(berth_compiler_set(compiler, "target", "cpu,opencl"));
    assert_ok(berth_compiler_add_pin(compiler, "op:Conv=opencl:0"));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    assert_ok(berth_program_with_fallbacks(program, &program, 1, &both));
    assert_ok(berth_contents_read(both, &contents));
    assert_ok(berth_contents_read(berth_program_fallback(both, 0), &fallback));
    berth_program_release(both);
    berth_program_release(program);  // contents keep it
    cr_assert_eq(berth_contents_device_count(contents), 2);
    cr_assert_str_eq(berth_contents_input_type(contents, 0), "f32[1,1,8,8]");
    cr_assert_str_eq(berth_contents_output_type(contents, 0), "f32[1,10]");
    cr_assert_null(berth_contents_input_type(contents, 1));
    cr_assert_eq(berth_contents_variant_count(contents), 0);
    cr_assert_eq(berth_contents_external_count(contents), 0);
    for (uint32_t i = 0; i < berth_contents_file_count(contents); ++i) {
        const berth_content_file *file = berth_contents_file(contents, i);
        if (strstr(file->name, ".so"))
            has_code = file->size_bytes > 4 && memcmp(file->data, "\177ELF", 4) == 0;
    }
    cr_assert(has_code);
    cr_assert_eq(berth_contents_pool_count(contents), berth_contents_pool_count(fallback));
    for (uint32_t i = 0; i < berth_contents_pool_count(contents); ++i)
        cr_assert_eq(berth_contents_pool(contents, i)->size_bytes,
                     berth_contents_pool(fallback, i)->size_bytes);
    berth_contents_free(contents);
    berth_contents_free(fallback);
    assert_fails(berth_program_file_check_all(MODEL), BERTH_INVALID_ARGUMENT, "digits.onnx");
}

Test(inspect, program_of_byte_code) {
    berth_program *program = NULL;
    berth_contents *contents = NULL;
    bool eight = false;
    assert_ok(berth_compiler_set(compiler, "executor", "vm"));
    assert_ok(berth_compiler_add_specialisation(compiler, "batch=1,batch=8"));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    assert_ok(berth_contents_read(program, &contents));
    cr_assert_str_eq(berth_contents_input_type(contents, 0), "f32[batch,1,8,8]");
    cr_assert_eq(berth_contents_variant_count(contents), 2);
    for (uint32_t i = 0; i < 2; ++i)
        eight |= strcmp(berth_contents_variant(contents, i)->inputs[0], "f32[8,1,8,8]") == 0;
    cr_assert(eight);
    berth_contents_free(contents);
    // Loaded without a compiler: its report is not here.
    berth_dynamic *loaded = NULL;
    berth_dynamic_report report;
    assert_ok(berth_program_load_dynamic(program, 1, &loaded));
    assert_fails(berth_dynamic_get_report(loaded, &report, sizeof(report)), BERTH_INVALID_ARGUMENT,
                 "berth_compiler_load_dynamic_file");
    berth_dynamic_destroy(loaded);
    berth_program_release(program);
}

static int is_pending(void *user) {
    return *(int *)user;
}

// A run compiles for its shapes, once, on the devices that the target has; with a compiler that listens it can be ended.
Test(inspect, dynamic) {
    static float image[64];
    berth_dynamic *model = NULL;
    berth_results *results = NULL;
    berth_dynamic_report report;
    berth_dynamic_port port;
    const char *code = NULL;
    int pending = 1;
    assert_ok(berth_compiler_set(compiler, "cache_folder", NULL));  // else nothing is compiled
    assert_ok(berth_compiler_load_dynamic_file(compiler, MODEL, 1, &model));
    assert_ok(berth_dynamic_get_input(model, 0, &port, sizeof(port)));
    cr_assert_str_eq(port.type, "f32[batch,1,8,8]");
    cr_assert(port.is_tensor && port.rank == 4 && port.dims[0] == -1 && port.dims[3] == 8);
    assert_fails(berth_dynamic_get_input(model, 1, &port, sizeof(port)), BERTH_OUT_OF_RANGE,
                 "input 1 of 1");
    const berth_tensor input = {
        .dtype = BERTH_DTYPE_F32, .rank = 4, .dims = {1, 1, 8, 8}, .data = image};
    berth_compiler_on_interrupt(compiler, NULL, is_pending, &pending);
    assert_ok(berth_dynamic_follow(model, compiler));
    assert_fails(berth_dynamic_run(model, &input, 1, &results), BERTH_CANCELLED, "");
    pending = 0;
    for (int run = 0; run < 2; ++run) {
        assert_ok(berth_dynamic_run(model, &input, 1, &results));
        berth_results_free(results);
    }
    assert_ok(berth_dynamic_follow(model, NULL));
    assert_ok(berth_dynamic_get_report(model, &report, sizeof(report)));
    cr_assert_eq(report.compiled_count, 1);
    cr_assert_eq(report.segment_runs, 1);
    assert_ok(berth_dynamic_check_devices(model, "cpu:0"));
    assert_fails(berth_dynamic_check_devices(model, "opencl:0"), BERTH_UNAVAILABLE, "opencl:0");
    assert_ok(berth_dynamic_code(model, &code));
    cr_assert(strstr(code, "s0"));
    berth_dynamic_destroy(model);
}

// Functions for several sizes after the first run, of three images.
static uint32_t generic_after_one(void) {
    static float images[3 * 64];
    berth_dynamic *model = NULL;
    berth_results *results = NULL;
    berth_dynamic_report report;
    const berth_tensor input = {
        .dtype = BERTH_DTYPE_F32, .rank = 4, .dims = {3, 1, 8, 8}, .data = images};
    assert_ok(berth_compiler_load_dynamic_file(compiler, MODEL, 1, &model));
    assert_ok(berth_dynamic_run(model, &input, 1, &results));
    assert_ok(berth_dynamic_get_report(model, &report, sizeof(report)));
    berth_results_free(results);
    berth_dynamic_destroy(model);
    return report.generic_count;
}

Test(inspect, kernels_serve_several_sizes_from_the_first_on_request) {
    cr_assert_eq(generic_after_one(), 0);
    assert_ok(berth_compiler_set(compiler, "several_sizes", "on"));
    cr_assert_gt(generic_after_one(), 0);
}

// ---- modules ------------------------------------------------------------------------------------

typedef struct seen {
    uint32_t passes;
    bool types_known;
} seen;

static void see(void *user, berth_module_info *module, const char *pass, int64_t elapsed_ns) {
    seen *s = user;
    const char *text = NULL;
    cr_assert_geq(elapsed_ns, 0);
    s->passes++;
    if (strcmp(pass, "fold-constants") != 0) return;
    assert_ok(berth_module_info_write(module, BERTH_MODULE_AS_TEXT, NULL, &text));
    s->types_known = strstr(text, "f32[1,10]") != NULL;
}

// Passes run one by one; what was written after some of them goes on from there.
Test(module, passes_one_by_one) {
    static const char *const passes[] = {"fold-constants", "simplify", "plan-devices"};
    seen s = {0};
    const berth_pass_settings settings = {.size_bytes = sizeof(settings),
                                          .passes = passes,
                                          .pass_count = 3,
                                          .on_pass = see,
                                          .user = &s};
    berth_module_info *module = NULL, *again = NULL;
    const char *text = NULL, *same = NULL;
    assert_ok(berth_compiler_set(compiler, "target", "cpu,opencl"));
    assert_ok(berth_compiler_add_pin(compiler, "op:Conv=opencl:0"));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_read_module(compiler, MODEL, &module));
    cr_assert_null(berth_module_info_strategy(module));
    assert_ok(berth_compiler_run_passes(compiler, module, &settings));
    cr_assert_eq(s.passes, 3);
    cr_assert(s.types_known);
    cr_assert_str_eq(berth_module_info_strategy(module), "default");
    uint32_t convolutions = 0, count = berth_module_info_place_count(module);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_module_place *place = berth_module_info_place(module, i);
        if (!place->operation || strcmp(place->operation, "conv") != 0) continue;
        convolutions += strcmp(place->device_name, "opencl:0") == 0;
    }
    cr_assert_eq(convolutions, 2);
    cr_assert_null(berth_module_info_place(module, count));

    assert_ok(berth_module_info_write(module, BERTH_MODULE_AS_TEXT, NULL, &text));
    char path[] = "/tmp/berth-module-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    berth_compiler *plain = NULL;  // the module has its target and its extents
    assert_ok(berth_compiler_create(&plain));
    assert_ok(berth_compiler_read_module(plain, path, &again));
    assert_ok(berth_module_info_write(again, BERTH_MODULE_AS_TEXT, NULL, &same));
    cr_assert_str_eq(text, same);
    s.passes = 0;
    const berth_pass_settings rest = {.size_bytes = sizeof(rest), .on_pass = see, .user = &s};
    assert_ok(berth_compiler_run_passes(plain, again, &rest));
    berth_compiler_destroy(plain);
    uint32_t all = 0;
    int is_named = 0;
    for (const char *name = NULL; berth_compiler_pass_at(all, &name, &same, &is_named); ++all)
        if (is_named) break;
    cr_assert_eq(s.passes, all - 3, "%u of %u", s.passes, all);
    berth_module_info_free(again);
    berth_module_info_free(module);
    unlink(path);
}

Test(module, refused) {
    static const char *const no_pass[] = {"no-such-pass"};
    berth_pass_settings settings = {
        .size_bytes = sizeof(settings), .passes = no_pass, .pass_count = 1};
    berth_module_info *module = NULL;
    const char *text = NULL;
    assert_fails(berth_compiler_read_module(compiler, "no/such.onnx", &module), BERTH_NOT_FOUND,
                 "no/such.onnx");
    cr_assert_null(module);
    assert_ok(berth_compiler_read_module(compiler, MODEL, &module));
    assert_fails(berth_compiler_run_passes(compiler, module, &settings), BERTH_NOT_FOUND,
                 "no-such-pass");
    settings.instances = 9;
    assert_fails(berth_compiler_run_passes(compiler, module, &settings), BERTH_OUT_OF_RANGE,
                 "9 instances");
    settings = (berth_pass_settings){.size_bytes = 1};
    assert_fails(berth_compiler_run_passes(compiler, module, &settings), BERTH_INVALID_ARGUMENT,
                 "size_bytes is 1");
    assert_fails(berth_module_info_leave_machine(module, "b"), BERTH_NOT_FOUND, "one machine");
    assert_fails(berth_module_info_write(module, (berth_module_as)7, NULL, &text),
                 BERTH_INVALID_ARGUMENT, "7 is no form");
    berth_module_info_free(module);
}
