// Targets, simulation, calibration, verification and quantisation through the public API.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

#define MODEL "examples/digits/digits.onnx"
#define IMAGES "examples/digits/test_images.npy"

static berth_compiler *compiler;
static char folder[64];

static void setup(void) {
    strcpy(folder, "/tmp/berth-api-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    berth_compiler_destroy(compiler);
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

TestSuite(tools, .init = setup, .fini = teardown, .timeout = 240);

// ---- targets ----

Test(tools, tags_and_targets) {
    berth_tag_list *tags = NULL;
    berth_target_info *target = NULL;
    bool found = false;
    assert_ok(berth_tag_list_create(NULL, &tags));
    for (uint32_t i = 0; i < berth_tag_list_count(tags); ++i)
        found |= strcmp(berth_tag_list_at(tags, i)->name, "arm/rasp4b") == 0;
    cr_assert(found);
    berth_tag_list_free(tags);
    // A Raspberry Pi 4 has four Cortex-A72.
    assert_ok(berth_compiler_read_target(compiler, "arm/rasp4b", &target));
    const berth_target_device_facts *cpu = berth_target_info_device(target, 0);
    cr_assert_eq(berth_target_info_device_count(target), 1);
    cr_assert_str_eq(cpu->kind, "cpu");
    cr_assert_str_eq(cpu->arch, "aarch64");
    cr_assert_eq(cpu->cores, 4);
    cr_assert_not_null(berth_target_info_memory(target, cpu->memory));
    cr_assert_null(berth_target_info_device(target, 1));
    cr_assert(strstr(berth_target_info_svg(target), "<svg"));
    char hash[64];
    snprintf(hash, sizeof(hash), "%s", berth_target_info_facts(target)->hash);
    // Its JSON is the same target again.
    berth_target_info *again = NULL;
    assert_ok(berth_compiler_read_target(compiler, berth_target_info_json(target), &again));
    cr_assert_str_eq(berth_target_info_facts(again)->hash, hash);
    berth_target_info_free(again);
    berth_target_info_free(target);
    // What the compiler was told counts.
    assert_ok(berth_compiler_add_override(compiler, "cores=2"));
    assert_ok(berth_compiler_add_pin(compiler, "op:Conv=cpu:0"));
    assert_ok(berth_compiler_read_target(compiler, "arm/rasp4b", &target));
    cr_assert_eq(berth_target_info_device(target, 0)->cores, 2);
    cr_assert_eq(berth_target_info_pin_count(target), 1);
    cr_assert_str_eq(berth_target_info_pin(target, 0)->match, "op:Conv");
    berth_target_info_free(target);
}

Test(tools, wrong_targets) {
    static const char text[] = "{\"kind\": \"cpu\", \"cores\": -1, \"colour\": 3}";
    berth_target_info *target = NULL;
    assert_fails(berth_compiler_read_target(compiler, text, &target), BERTH_INVALID_ARGUMENT,
                 "colour");
    assert_fails(berth_compiler_check_target(compiler, "no/such", &target), BERTH_NOT_FOUND,
                 "no/such");
    cr_assert_null(target);
    assert_ok(berth_compiler_check_target(compiler, text, &target));
    cr_assert_eq(berth_target_info_problem_count(target), 2);
    cr_assert_null(berth_target_info_facts(target));
    cr_assert_eq(berth_target_info_device_count(target), 0);
    bool cores = false;
    for (uint32_t i = 0; i < 2; ++i)
        cores |= strstr(berth_target_info_problem(target, i)->path, "cores") != NULL;
    cr_assert(cores);
    berth_target_info_free(target);
}

Test(tools, detected_target) {
    berth_target_description *description = NULL;
    berth_target_info *target = NULL;
    const berth_detect_settings settings = {
        .size_bytes = sizeof(settings), .name = "bench", .no_measure = 1};
    assert_ok(berth_target_detect(&settings, &description));
    const char *json = berth_target_description_json(description);
    cr_assert(strstr(json, "\"sources\"") && strstr(json, "\"bench\""));
    assert_ok(berth_compiler_read_target(compiler, json, &target));
    cr_assert_gt(berth_target_info_device_count(target), 0);
    berth_target_info_free(target);
    berth_target_description_free(description);
    const berth_detect_settings other = {.size_bytes = sizeof(other), .topology = "no/such.xml"};
    assert_fails(berth_target_detect(&other, &description), BERTH_NOT_FOUND, "such.xml");
}

// ---- simulation ----

Test(tools, simulation) {
    berth_simulation_info *one = NULL, *many = NULL;
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_set(compiler, "target", "arm/rasp4b"));
    assert_ok(berth_compiler_simulate_file(compiler, MODEL, NULL, &one));
    const berth_simulation_load load = {.size_bytes = sizeof(load), .requests = 10, .streams = 1};
    assert_ok(berth_compiler_simulate_file(compiler, MODEL, &load, &many));
    // One stream, all requests there at the start: each waits for those before it.
    const double each = berth_simulation_info_end_ns(one);
    cr_assert_gt(each, 0);
    cr_assert_float_eq(berth_simulation_info_end_ns(many), 10 * each, 1e-6 * each);
    cr_assert_float_eq(berth_simulation_info_latency_ns(many, 1), 10 * each, 1e-6 * each);
    cr_assert_float_eq(berth_simulation_info_latency_ns(many, 0), each, 1e-6 * each);
    const uint32_t events = berth_simulation_info_event_count(one);
    cr_assert_eq(berth_simulation_info_event_count(many), 10 * events);
    double busy = 0, steps = 0;
    for (uint32_t i = 0; i < events; ++i) {
        berth_simulation_event event;
        assert_ok(berth_simulation_info_get_event(one, i, &event, sizeof(event)));
        cr_assert_str_eq(event.device, "cpu:0");
        steps += event.end_ns - event.start_ns;
    }
    for (uint32_t r = 0; r < berth_simulation_info_resource_count(one); ++r)
        busy += berth_simulation_info_resource(one, r)->busy_ns;
    cr_assert_float_eq(busy, steps, 1e-6 * steps);
    cr_assert_gt(berth_simulation_info_memory(one, 0)->size_bytes, 0);
    assert_ok(berth_simulation_info_write_svg(one, in_folder("s.svg")));
    cr_assert_eq(access(in_folder("s.svg"), R_OK), 0);
    assert_ok(berth_simulation_info_write_trace(many, in_folder("s.json")));
    cr_assert_eq(access(in_folder("s.json"), R_OK), 0);
    berth_simulation_event event;
    assert_fails(berth_simulation_info_get_event(one, events, &event, sizeof(event)),
                 BERTH_OUT_OF_RANGE, "event");
    berth_simulation_info_free(one);
    berth_simulation_info_free(many);
    assert_fails(berth_compiler_simulate_file(compiler, "no/such.onnx", NULL, &one),
                 BERTH_NOT_FOUND, "such.onnx");
}

// ---- verification ----

// A folder of test data: an image, and what `scores` says.
static void write_data(berth_tensor *image, berth_tensor *scores) {
    assert_ok(berth_tensor_file_write(in_folder("input_0.pb"), "image", image));
    assert_ok(berth_tensor_file_write(in_folder("output_0.pb"), "scores", scores));
}

Test(tools, verification) {
    float pixels[64] = {0}, scores[10];
    berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    berth_tensor result = {BERTH_DTYPE_F32, 2, {1, 10}, scores};
    berth_program *program = NULL;
    berth_session *session = NULL;
    berth_verifier *verifier = NULL;
    berth_verification *found = NULL;
    for (int i = 0; i < 64; ++i) pixels[i] = (float)(i % 16);
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    assert_ok(berth_session_create(program, NULL, &session));
    assert_ok(berth_session_run_with(session, &image, 1, &result, 1, -1));
    berth_session_destroy(session);
    berth_program_release(program);
    write_data(&image, &result);

    const berth_verify_settings settings = {
        .size_bytes = sizeof(settings), .has_atol = 1, .atol = 1e-3, .require = "cpu:0"};
    assert_ok(berth_verifier_create(compiler, MODEL, &settings, &verifier));
    assert_ok(berth_verifier_run(verifier, folder, &found));
    cr_assert(berth_verification_facts_of(found)->pass);
    cr_assert_gt(berth_verification_facts_of(found)->kernel_count, 0);
    berth_verification_free(found);
    // One of ten scores is expected to be 3 more.
    scores[7] += 3;
    write_data(&image, &result);
    assert_ok(berth_verifier_run(verifier, folder, &found));
    const berth_verification_output *output = berth_verification_output_at(found, 0);
    cr_assert_not(berth_verification_facts_of(found)->pass);
    cr_assert_eq(berth_verification_output_count(found), 1);
    cr_assert_eq(output->mismatch_count, 1);
    cr_assert_eq(output->element_count, 10);
    cr_assert_eq(output->worst_index, 7);
    cr_assert_float_eq(output->max_absolute_error, 3, 1e-3);
    cr_assert_float_eq(output->atol, 1e-3, 0);
    berth_verification_free(found);
    // By operation the target is compared with another one, not with the file.
    assert_ok(berth_verifier_run_per_op(verifier, folder, "cpu", &found));
    cr_assert(berth_verification_facts_of(found)->pass);
    cr_assert_gt(berth_verification_facts_of(found)->compared_count, 3);
    berth_verification_free(found);
    assert_fails(berth_verifier_run(verifier, "no/such", &found), BERTH_NOT_FOUND, "no/such");
    cr_assert_null(found);
    berth_verifier_destroy(verifier);
}

// ---- costs ----

static void count(void *user, const char *what) {
    cr_assert(strstr(what, "cpu:0"), "%s", what);
    ++*(int *)user;
}

Test(tools, costs) {
    berth_costs *costs = NULL, *read = NULL;
    int begun = 0;
    const berth_calibrate_settings settings = {
        .size_bytes = sizeof(settings), .duration_ns = 20000000, .on_begin = count, .user = &begun};
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_costs_create(&costs));
    assert_ok(berth_compiler_calibrate(compiler, MODEL, &settings, costs));
    const uint32_t measured = berth_costs_count(costs);
    cr_assert(begun > 0 && measured > 0);
    assert_ok(berth_costs_save(costs, in_folder("costs.jsonl")));
    assert_ok(berth_costs_create(&read));
    assert_ok(berth_costs_read(read, in_folder("costs.jsonl")));
    cr_assert_eq(berth_costs_count(read), measured);
    assert_ok(berth_costs_add_missing(read, costs));
    cr_assert_eq(berth_costs_count(read), measured);
    assert_fails(berth_costs_read(read, in_folder("none")), BERTH_NOT_FOUND, "none");
    // A plan takes them.
    berth_plan_info *plan = NULL;
    assert_ok(berth_compiler_set(compiler, "costs", in_folder("costs.jsonl")));
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    cr_assert_gt(berth_plan_info_predicted_ns(plan), 0);
    berth_plan_info_free(plan);
    berth_costs_destroy(costs);
    berth_costs_destroy(read);
}

// ---- tuned kernels ----

static void count_lines(void *user, const char *what) {
    cr_assert(*what);
    ++*(int *)user;
}

Test(tools, tuned) {
    berth_tuned *tuned = NULL, *read = NULL;
    int lines = 0;
    const berth_tune_settings settings = {.size_bytes = sizeof(settings),
                                          .seed = 1,
                                          .on_progress = count_lines,
                                          .user = &lines,
                                          .trials = 2};
    const berth_tune_settings wrong = {.size_bytes = 4096};
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_tuned_create(&tuned));
    assert_fails(berth_compiler_tune(compiler, MODEL, &wrong, tuned), BERTH_INVALID_ARGUMENT,
                 "size_bytes");
    assert_fails(berth_compiler_tune(compiler, "no/such", &settings, tuned), BERTH_NOT_FOUND,
                 "no/such");
    cr_assert_eq(berth_tuned_count(tuned), 0);
    assert_ok(berth_compiler_tune(compiler, MODEL, &settings, tuned));
    cr_assert_geq(lines, 3);
    assert_ok(berth_tuned_save(tuned, in_folder("tuned.jsonl")));
    assert_ok(berth_tuned_create(&read));
    assert_ok(berth_tuned_read(read, in_folder("tuned.jsonl")));
    cr_assert_eq(berth_tuned_count(read), berth_tuned_count(tuned));
    assert_fails(berth_tuned_read(read, in_folder("none")), BERTH_NOT_FOUND, "none");
    // A compilation takes them, and says so where they are not there.
    berth_plan_info *plan = NULL;
    assert_ok(berth_compiler_set(compiler, "tuned", in_folder("tuned.jsonl")));
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    berth_plan_info_free(plan);
    assert_ok(berth_compiler_set(compiler, "tuned", in_folder("none")));
    assert_fails(berth_compiler_plan_file(compiler, MODEL, &plan), BERTH_NOT_FOUND, "none");
    berth_tuned_destroy(tuned);
    berth_tuned_destroy(read);
}

// ---- quantisation ----

Test(tools, quantisation) {
    berth_quantized *result = NULL;
    const char *text = NULL;
    berth_quantize_settings settings = {.size_bytes = sizeof(settings)};
    assert_fails(berth_compiler_quantize_file(compiler, MODEL, &settings, &result),
                 BERTH_INVALID_ARGUMENT, "calibration");
    settings.calibration = IMAGES;
    settings.labels = "examples/digits/test_labels.npy";
    assert_ok(berth_compiler_quantize_file(compiler, MODEL, &settings, &result));
    const berth_quantized_facts *facts = berth_quantized_facts_of(result);
    cr_assert_eq(facts->quantized_count, facts->layer_count);
    cr_assert_lt(facts->quantized_bytes, facts->weight_bytes);
    cr_assert(facts->drop < 0.05 && facts->agreement > 0.9);
    assert_ok(berth_quantized_report(result, BERTH_REPORT_JSON, &text));
    cr_assert_eq(*text, '{');
    assert_ok(berth_quantized_report(result, BERTH_REPORT_SVG, &text));
    cr_assert(strstr(text, "<svg"));
    assert_ok(berth_quantized_save(result, in_folder("q.onnx")));
    berth_quantized_free(result);
    // The model that was written compiles.
    berth_program *program = NULL;
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, in_folder("q.onnx"), &program));
    berth_program_release(program);
}
