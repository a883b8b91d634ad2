// The public C API, through the shared libraries alone: models, programs, sessions, devices. Expected
// results are labels of examples/digits.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/leaks.h"

#define MODEL "examples/digits/digits.onnx"
enum { image_bytes = 256, header_bytes = 128, drawn_digit = 2, class_count = 10 };

static void *read_file(const char *path, size_t *out_size_bytes) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    *out_size_bytes = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*out_size_bytes + 1);
    cr_assert_eq(fread(data, 1, *out_size_bytes, file), *out_size_bytes);
    fclose(file);
    return data;
}

// The first test image, whose label is 2: its pixels stand after the .npy header.
static void read_image(float pixels[64]) {
    size_t size_bytes = 0;
    char *file = read_file("examples/digits/test_images.npy", &size_bytes);
    memcpy(pixels, file + header_bytes, image_bytes);
    free(file);
}

static berth_compiler *make_compiler(void) {
    berth_compiler *compiler = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    return compiler;
}

static berth_program *compile_digits(void) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    berth_compiler_destroy(compiler);
    return program;
}

static int best_of(const float *scores) {
    int best = 0;
    for (int i = 1; i < class_count; ++i)
        if (scores[i] > scores[best]) best = i;
    return best;
}

static int recognise(berth_session *session) {
    float pixels[64], scores[class_count] = {0};
    read_image(pixels);
    const berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    const berth_tensor result = {BERTH_DTYPE_F32, 2, {1, class_count}, scores};
    assert_ok(berth_session_run_with(session, &image, 1, &result, 1, -1));
    return best_of(scores);
}

Test(api, version) {
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", BERTH_VERSION_MAJOR, BERTH_VERSION_MINOR,
             BERTH_VERSION_PATCH);
    cr_assert_str_eq(berth_version(), text);
    cr_assert_str_eq(BERTH_VERSION, text);
}

Test(api, model_info) {
    berth_model_info *info = NULL;
    size_t size_bytes = 0;
    void *data = read_file(MODEL, &size_bytes);
    for (int from_memory = 0; from_memory < 2; ++from_memory) {
        assert_ok(from_memory ? berth_model_info_parse(data, size_bytes, NULL, &info)
                              : berth_model_info_read(MODEL, &info));
        cr_assert_eq(berth_model_info_input_count(info), 1);
        const berth_value_info *image = berth_model_info_input(info, 0);
        cr_assert_str_eq(image->name, "image");
        cr_assert_eq(image->dtype, BERTH_DTYPE_F32);
        cr_assert_eq(image->rank, 4);
        cr_assert_eq(image->dims[0].extent, -1);
        cr_assert_str_eq(image->dims[0].name, "batch");
        cr_assert_eq(image->dims[3].extent, 8);
        cr_assert_null(image->dims[3].name);
        cr_assert_str_eq(berth_model_info_output(info, 0)->name, "probabilities");
        cr_assert_null(berth_model_info_output(info, 1));
        berth_model_info_free(info);
    }
    free(data);
    assert_fails(berth_model_info_parse("no model", 8, NULL, &info), BERTH_INVALID_ARGUMENT,
                 "memory");
    cr_assert_null(info);
    assert_fails(berth_model_info_read("tests/no_such.onnx", &info), BERTH_NOT_FOUND,
                 "no_such.onnx");
}

// A session keeps its program; both forms of running recognise the digit.
Test(api, compile_and_run) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    cr_assert_eq(berth_program_input_count(program), 1);
    cr_assert_str_eq(berth_program_input(program, 0)->name, "image");
    cr_assert_eq(berth_program_input(program, 0)->type.dims[0], 1);
    cr_assert_null(berth_program_input(program, 1));
    cr_assert_eq(berth_program_output(program, 0)->type.dims[1], class_count);
    cr_assert_str_eq(berth_program_device_name(program, 0), "cpu:0");
    cr_assert_str_eq(berth_program_placement_at(program, 0)->op, "Conv");
    cr_assert_str_eq(berth_program_placement_at(program, 0)->device, "cpu:0");
    assert_ok(berth_session_create(program, NULL, &session));
    berth_program_release(program);
    cr_assert_eq(recognise(session), drawn_digit);
    read_image(berth_session_input(session, 0)->data);
    memset(berth_session_output(session, 0)->data, 0, class_count * sizeof(float));
    assert_ok(berth_session_run(session, -1));
    cr_assert_eq(best_of(berth_session_output(session, 0)->data), drawn_digit);
    berth_session_destroy(session);
}

// Bytes of a model and of a program give what their files give.
Test(api, from_memory) {
    size_t size_bytes = 0;
    void *data = read_file(MODEL, &size_bytes);
    char path[] = "/tmp/berth_api_XXXXXX";
    close(mkstemp(path));
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    berth_session *session = NULL;
    assert_ok(berth_compiler_compile_memory(compiler, data, size_bytes, NULL, &program));
    memset(data, 0, size_bytes);  // it was copied
    free(data);
    berth_compiler_destroy(compiler);
    assert_ok(berth_session_create(program, NULL, &session));
    cr_assert_eq(recognise(session), drawn_digit);
    berth_session_destroy(session);
    assert_ok(berth_program_save(program, path));
    berth_program_release(program);
    data = read_file(path, &size_bytes);
    assert_ok(berth_program_open_memory(data, size_bytes, &program));
    memset(data, 0, size_bytes);
    assert_ok(berth_session_create(program, NULL, &session));
    cr_assert_eq(recognise(session), drawn_digit);
    berth_session_destroy(session);
    berth_program_release(program);
    assert_fails(berth_program_open_memory(data, size_bytes, &program), BERTH_INVALID_ARGUMENT,
                 "program");
    cr_assert_null(program);
    free(data);
    assert_ok(berth_program_open(path, &program));
    berth_program_retain(program);
    berth_program_release(program);
    cr_assert_str_eq(berth_program_output(program, 0)->name, "probabilities");
    berth_program_release(program);
    assert_ok(
        berth_program_open_limited(path, NULL, "bytes=64MiB,items=100000,time=60s", &program));
    berth_program_release(program);
    assert_fails(berth_program_open_limited(path, NULL, "bytes=100", &program), BERTH_OUT_OF_RANGE,
                 "the limit is bytes=100");
    assert_fails(berth_program_open_limited(path, NULL, "items=1", &program), BERTH_OUT_OF_RANGE,
                 "more than 1 records");
    assert_fails(berth_program_open_limited(path, NULL, "much", &program), BERTH_INVALID_ARGUMENT,
                 "\"much\"");
    cr_assert_null(program);
    assert_fails(berth_program_open_signed(path, "tests/no_such.key", &program), BERTH_NOT_FOUND,
                 "key");
    unlink(path);
    assert_fails(berth_program_open(path, &program), BERTH_NOT_FOUND, path);
}

Test(api, limits_of_a_model) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    berth_model_info *info = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_fails(berth_compiler_set(compiler, "limits", "size=1"), BERTH_INVALID_ARGUMENT, "size");
    assert_ok(berth_compiler_set(compiler, "limits", "items=1"));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_OUT_OF_RANGE,
                 "more than 1 nodes");
    assert_fails(berth_compiler_read_model(compiler, MODEL, &info), BERTH_OUT_OF_RANGE, "items=1");
    size_t size_bytes = 0;
    void *bytes = read_file(MODEL, &size_bytes);
    assert_fails(berth_compiler_parse_model(compiler, bytes, size_bytes, NULL, &info),
                 BERTH_OUT_OF_RANGE, "items=1");
    free(bytes);
    // No C compiler is as fast; nothing is kept, so that there is one to run.
    assert_ok(berth_compiler_set(compiler, "limits", "time=1ms"));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_DEADLINE_EXCEEDED,
                 "the limit time=0.001s");
    assert_ok(berth_compiler_set(compiler, "limits", NULL));
    assert_ok(berth_compiler_read_model(compiler, MODEL, &info));
    berth_model_info_free(info);
    berth_compiler_destroy(compiler);
}

// An input given as a constant is none of the program's; its value went in.
Test(api, constant_input) {
    float pixels[64];
    read_image(pixels);
    const berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    berth_session *session = NULL;
    assert_ok(berth_compiler_set_input(compiler, "image", &image, 1));
    memset(pixels, 0, sizeof(pixels));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    cr_assert_eq(berth_program_input_count(program), 0);
    assert_ok(berth_session_create(program, NULL, &session));
    assert_ok(berth_session_run_with(session, NULL, 0, berth_session_output(session, 0), 1, -1));
    cr_assert_eq(best_of(berth_session_output(session, 0)->data), drawn_digit);
    berth_session_destroy(session);
    berth_program_release(program);
    berth_compiler_destroy(compiler);
}

// The shape of an input fixes the model's dimensions.
Test(api, input_shape) {
    const berth_tensor three = {BERTH_DTYPE_F32, 4, {3, 1, 8, 8}, NULL};
    const berth_tensor other = {BERTH_DTYPE_F64, 4, {3, 1, 8, 8}, NULL};
    const berth_tensor negative = {BERTH_DTYPE_F32, 4, {-3, 1, 8, 8}, NULL};
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set_input(compiler, "image", &three, 0));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    cr_assert_eq(berth_program_output(program, 0)->type.dims[0], 3);
    berth_program_release(program);
    assert_ok(berth_compiler_set_input(compiler, "image", &other, 0));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_INVALID_ARGUMENT,
                 "image");
    assert_fails(berth_compiler_set_input(compiler, "image", &negative, 0), BERTH_OUT_OF_RANGE,
                 "image");
    assert_fails(berth_compiler_set_input(compiler, "image", &three, 1), BERTH_INVALID_ARGUMENT,
                 "image");
    berth_compiler_destroy(compiler);
}

Test(api, wrong_options) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    assert_fails(berth_compiler_set(compiler, "targte", "cpu"), BERTH_NOT_FOUND, "\"target\"");
    assert_fails(berth_compiler_set(compiler, "jobs", "many"), BERTH_INVALID_ARGUMENT, "many");
    assert_fails(berth_compiler_set(compiler, "objective", "luck"), BERTH_INVALID_ARGUMENT, "luck");
    assert_fails(berth_compiler_set(compiler, "parallel", "luck"), BERTH_INVALID_ARGUMENT,
                 "takes none, tensor, pipeline or auto");
    assert_fails(berth_compiler_set_dim(compiler, "batch", -1), BERTH_OUT_OF_RANGE, "batch");
    assert_ok(berth_compiler_set_dim(compiler, "bacth", 1));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_INVALID_ARGUMENT,
                 "bacth");
    berth_compiler_destroy(compiler);
    compiler = make_compiler();
    assert_ok(berth_compiler_set(compiler, "target", "toaster"));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_INVALID_ARGUMENT,
                 "toaster");
    cr_assert_null(program);
    assert_ok(berth_compiler_set(compiler, "target", NULL));  // the default again
    assert_ok(berth_compiler_add_pin(compiler, "op:Conv=opencl:0"));
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_INVALID_ARGUMENT,
                 "opencl");
    berth_compiler_destroy(compiler);
}

typedef struct progress {
    berth_compiler *compiler;
    int calls;
    bool cancel;
} progress;

static void count_progress(void *user, const char *what, uint32_t done, uint32_t total) {
    progress *seen = user;
    cr_assert(*what && done <= total);
    ++seen->calls;
    if (seen->cancel) berth_compiler_cancel(seen->compiler);
}

Test(api, progress_and_cancel) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    progress seen = {.compiler = compiler};
    assert_ok(berth_compiler_set(compiler, "cache_folder", NULL));  // so that kernels are compiled
    berth_compiler_on_progress(compiler, count_progress, &seen);
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    cr_assert_gt(seen.calls, 0);
    berth_program_release(program);
    seen.cancel = true;
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_CANCELLED, "");
    cr_assert_null(program);
    seen.cancel = false;
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    berth_program_release(program);
    berth_compiler_cancel(compiler);
    assert_fails(berth_compiler_compile_file(compiler, MODEL, &program), BERTH_CANCELLED, "");
    berth_compiler_destroy(compiler);
}

Test(api, wrong_buffers) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    float pixels[64] = {0}, scores[class_count];
    berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    berth_tensor result = {BERTH_DTYPE_F32, 2, {1, class_count}, scores};
    assert_ok(berth_session_create(program, NULL, &session));
    assert_fails(berth_session_run_with(session, &image, 2, &result, 1, -1), BERTH_INVALID_ARGUMENT,
                 "1 input");
    assert_fails(berth_session_run_with(session, &image, 1, &result, 0, -1), BERTH_INVALID_ARGUMENT,
                 "1 output");
    image.dims[2] = 9;
    assert_fails(berth_session_run_with(session, &image, 1, &result, 1, -1), BERTH_INCOMPATIBLE,
                 "f32[1,1,9,8]");
    image.dims[2] = 8;
    result.dtype = BERTH_DTYPE_F64;
    assert_fails(berth_session_run_with(session, &image, 1, &result, 1, -1), BERTH_INCOMPATIBLE,
                 "probabilities");
    result.dtype = BERTH_DTYPE_F32;
    image.data = NULL;
    assert_fails(berth_session_run_with(session, &image, 1, &result, 1, -1), BERTH_INVALID_ARGUMENT,
                 "image");
    cr_assert_eq(recognise(session), drawn_digit);  // and goes on
    berth_session_destroy(session);
    berth_program_release(program);
}

enum { sentinel = 0x5a };

static bool holds_sentinels(const berth_tensor *tensor) {
    const unsigned char *bytes = tensor->data;
    for (size_t i = 0; i < berth_tensor_size_bytes(tensor); ++i)
        if (bytes[i] != sentinel) return false;
    return true;
}

// Runs on the caller's memory, which is `shift` bytes from the start of a cache line; true: in place, since
// the session's own memory was left as it was.
static bool runs_in_place(berth_session *session, size_t shift) {
    enum { alignment = 128 };
    const berth_tensor *own_input = berth_session_input(session, 0);
    const berth_tensor *own_output = berth_session_output(session, 0);
    char *memory = aligned_alloc(alignment, 1024);
    float pixels[64], scores[class_count];
    berth_tensor image = *own_input, result = *own_output;
    image.data = memory + shift;
    result.data = memory + 512 + shift;
    read_image(pixels);
    memcpy(image.data, pixels, sizeof(pixels));
    memset(own_input->data, sentinel, berth_tensor_size_bytes(own_input));
    memset(own_output->data, sentinel, berth_tensor_size_bytes(own_output));
    assert_ok(berth_session_run_with(session, &image, 1, &result, 1, -1));
    memcpy(scores, result.data, sizeof(scores));
    cr_assert_eq(best_of(scores), drawn_digit);
    cr_assert_eq(memcmp(image.data, pixels, sizeof(pixels)), 0);
    free(memory);
    bool input = holds_sentinels(own_input), output = holds_sentinels(own_output);
    cr_assert_eq(input, output);
    return input;
}

// Memory that is aligned as the elements are is used where it is; other memory is copied. Afterwards the session's own serves.
static void check_in_place(const char *target, const char *pin) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    berth_session *session = NULL;
    assert_ok(berth_compiler_set(compiler, "target", target));
    if (pin) assert_ok(berth_compiler_add_pin(compiler, pin));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    assert_ok(berth_session_create(program, NULL, &session));
    cr_assert(runs_in_place(session, 0));
    cr_assert(runs_in_place(session, sizeof(float)));
    cr_assert_not(runs_in_place(session, 1));
    cr_assert(runs_in_place(session, 128));
    read_image(berth_session_input(session, 0)->data);
    assert_ok(berth_session_run(session, -1));
    cr_assert_eq(best_of(berth_session_output(session, 0)->data), drawn_digit);
    berth_session_destroy(session);
    berth_program_release(program);
    berth_compiler_destroy(compiler);
}

Test(api, callers_memory) {
    check_in_place("cpu", NULL);
}

Test(api, callers_memory_for_copies_to_a_device) {
    leave_leaks();  // as in devices
    berth_device_list *list = NULL;
    bool has_opencl = false;
    assert_ok(berth_device_list_create(&list));
    for (uint32_t i = 0; i < berth_device_list_count(list); ++i)
        has_opencl |= strcmp(berth_device_list_at(list, i)->device, "opencl:0") == 0;
    berth_device_list_free(list);
    if (has_opencl) check_in_place("cpu,opencl", "op:Conv=opencl:0");
}

// The result may be written over the input: both are then copied as before.
Test(api, result_over_the_input) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    assert_ok(berth_session_create(program, NULL, &session));
    float *memory = aligned_alloc(128, image_bytes);
    berth_tensor image = *berth_session_input(session, 0);
    berth_tensor result = *berth_session_output(session, 0);
    image.data = result.data = memory;
    read_image(memory);
    assert_ok(berth_session_run_with(session, &image, 1, &result, 1, -1));
    cr_assert_eq(best_of(memory), drawn_digit);
    free(memory);
    berth_session_destroy(session);
    berth_program_release(program);
}

// After a run that was cancelled or took too long nothing touches the caller's memory any more.
Test(api, failed_run_leaves_callers_memory) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    assert_ok(berth_session_create(program, NULL, &session));
    for (int i = 0; i < 20; ++i) {
        float *pixels = aligned_alloc(128, image_bytes), *scores = aligned_alloc(128, 128);
        berth_tensor image = *berth_session_input(session, 0);
        berth_tensor result = *berth_session_output(session, 0);
        image.data = pixels;
        result.data = scores;
        read_image(pixels);
        if (i % 2) berth_session_cancel(session);
        berth_status status =
            berth_session_run_with(session, &image, 1, &result, 1, i % 2 ? -1 : 0);
        berth_code code = berth_status_code(status);
        if (i % 2) cr_assert_eq(code, BERTH_CANCELLED);
        cr_assert(code == BERTH_CANCELLED || code == BERTH_DEADLINE_EXCEEDED || !status, "%s",
                  berth_status_message(status));
        berth_status_free(status);
        free(pixels);  // a sanitizer build sees who uses them now
        free(scores);
        cr_assert_eq(recognise(session), drawn_digit);
    }
    berth_session_destroy(session);
    berth_program_release(program);
}

Test(api, session_settings) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    berth_device_choice choice = {"gpu:9", 0};
    berth_session_settings settings = {.size_bytes = sizeof(settings) + 8};
    assert_fails(berth_session_create(program, &settings, &session), BERTH_INVALID_ARGUMENT,
                 "size_bytes");
    settings = (berth_session_settings){.size_bytes = sizeof(settings), .devices = &choice};
    settings.device_count = 1;
    assert_fails(berth_session_create(program, &settings, &session), BERTH_INVALID_ARGUMENT,
                 "gpu:9");
    choice = (berth_device_choice){"cpu:0", 7};
    assert_fails(berth_session_create(program, &settings, &session), BERTH_UNAVAILABLE, "cpu");
    cr_assert_null(session);
    choice.ordinal = 0;
    settings.profile = 1;
    settings.thread_count = 1;
    assert_ok(berth_session_create(program, &settings, &session));
    cr_assert_eq(recognise(session), drawn_digit);
    int64_t before_ns = 0;
    for (uint32_t i = 0; i < berth_session_step_count(session); ++i) {
        berth_step_facts step;
        assert_ok(berth_session_get_step(session, i, &step, sizeof(step)));
        cr_assert(*step.name && *step.op);
        cr_assert_str_eq(step.device, "cpu:0");
        cr_assert_geq(step.start_ns, before_ns, "steps of one queue follow each other");
        cr_assert_geq(step.duration_ns, 0);
        before_ns = step.start_ns + step.duration_ns;
        const berth_tensor *result = &step.result;
        if (strcmp(step.op, "Gemm") == 0)
            cr_assert(result->dtype == BERTH_DTYPE_F32 && result->rank == 2 &&
                      result->dims[0] == 1 && result->dims[1] == 10);
        if (strncmp(step.name, "pool1", 5) == 0)
            cr_assert(result->rank == 4 && result->dims[1] == 16 && result->dims[3] == 4);
        cr_assert_null(result->data);
    }
    berth_step_facts step;
    uint32_t count = berth_session_step_count(session);
    cr_assert_gt(count, 0);
    assert_fails(berth_session_get_step(session, count, &step, sizeof(step)), BERTH_OUT_OF_RANGE,
                 "step");
    assert_fails(berth_session_get_step(session, 0, &step, sizeof(step) + 1),
                 BERTH_INVALID_ARGUMENT, "");
    berth_session_destroy(session);
    berth_program_release(program);
}

typedef struct counts {
    atomic_int_fast64_t live_bytes, calls, fail_at;
} counts;

static void *counted_resize(void *state, void *pointer, size_t old_bytes, size_t new_bytes) {
    counts *counted = state;
    if (new_bytes > old_bytes && atomic_fetch_add(&counted->calls, 1) + 1 == counted->fail_at)
        return NULL;
    void *result = NULL;
    if (new_bytes)
        result = realloc(pointer, new_bytes);
    else
        free(pointer);
    if (result || !new_bytes)
        atomic_fetch_add(&counted->live_bytes, (int64_t)new_bytes - (int64_t)old_bytes);
    return result;
}

// The caller's allocator serves a session from its beginning to its end, and runs need none of it.
Test(api, callers_allocator) {
    berth_program *program = compile_digits();
    berth_session *session = NULL;
    counts counted = {0};
    const berth_allocator allocator = {counted_resize, &counted};
    berth_session_settings settings = {.size_bytes = sizeof(settings), .allocator = &allocator};
    assert_ok(berth_session_create(program, &settings, &session));
    cr_assert_geq(counted.live_bytes, berth_tensor_size_bytes(berth_session_input(session, 0)));
    cr_assert_eq(recognise(session), drawn_digit);
    int64_t calls = counted.calls;
    cr_assert_gt(calls, 0);
    cr_assert_eq(recognise(session), drawn_digit);
    cr_assert_eq(counted.calls, calls);
    berth_session_destroy(session);
    cr_assert_eq(counted.live_bytes, 0);
    for (int64_t fail_at = 1; fail_at <= calls; fail_at += 5) {
        counted.calls = 0;
        counted.fail_at = fail_at;
        berth_status status = berth_session_create(program, &settings, &session);
        if (status)
            cr_assert_null(session);
        else
            berth_session_destroy(session);
        berth_status_free(status);
        cr_assert_eq(counted.live_bytes, 0, "call %lld fails", (long long)fail_at);
    }
    // Settings of an older version, without the allocator.
    settings.size_bytes = offsetof(berth_session_settings, allocator);
    counted.calls = counted.fail_at = 0;
    assert_ok(berth_session_create(program, &settings, &session));
    cr_assert_eq(counted.calls, 0);
    berth_session_destroy(session);
    berth_program_release(program);
}

static void *recognise_many(void *user) {
    berth_session *session = NULL;
    intptr_t wrong = 0;
    assert_ok(berth_session_create(user, NULL, &session));
    berth_program_release(user);  // the thread's reference: the session has its own
    for (int i = 0; i < 100; ++i) wrong += recognise(session) != drawn_digit;
    berth_session_destroy(session);
    return (void *)wrong;
}

Test(api, sessions_on_threads) {
    enum { thread_count = 4 };
    pthread_t threads[thread_count];
    berth_program *program = compile_digits();
    for (int i = 0; i < thread_count; ++i) {
        berth_program_retain(program);
        cr_assert_eq(pthread_create(&threads[i], NULL, recognise_many, program), 0);
    }
    berth_program_release(program);
    for (int i = 0; i < thread_count; ++i) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
}

// GCC 12's LeakSanitizer misreads thread-local variables where all drivers are open in one process
// (tests/conformance/test_library.c).
Test(api, devices) {
    leave_leaks();
    berth_device_list *list = NULL;
    bool has_cpu = false;
    assert_ok(berth_device_list_create(&list));
    for (uint32_t i = 0; i < berth_device_list_count(list); ++i) {
        const berth_device_facts *facts = berth_device_list_at(list, i);
        char name[64];
        snprintf(name, sizeof(name), "%s:%u", facts->kind, facts->ordinal);
        cr_assert_str_eq(facts->device, name);
        has_cpu |= strcmp(facts->device, "cpu:0") == 0;
    }
    cr_assert(has_cpu);
    cr_assert_null(berth_device_list_at(list, berth_device_list_count(list)));
    cr_assert_gt(berth_device_list_driver_count(list), 1);
    cr_assert_str_not_empty(berth_device_list_driver_at(list, 0)->description);
    berth_device_list_free(list);
    const char *kind = NULL;
    assert_fails(berth_driver_load("tests/no_such.so", &kind), BERTH_NOT_FOUND, "no_such.so");
}

Test(api, dtypes) {
    static const struct {
        berth_dtype dtype;
        const char *name;
        size_t size_bytes;
    } rows[] = {
        {BERTH_DTYPE_F32, "f32", 4},   {BERTH_DTYPE_F64, "f64", 8}, {BERTH_DTYPE_F16, "f16", 2},
        {BERTH_DTYPE_BF16, "bf16", 2}, {BERTH_DTYPE_I8, "i8", 1},   {BERTH_DTYPE_I16, "i16", 2},
        {BERTH_DTYPE_I32, "i32", 4},   {BERTH_DTYPE_I64, "i64", 8}, {BERTH_DTYPE_U8, "u8", 1},
        {BERTH_DTYPE_U16, "u16", 2},   {BERTH_DTYPE_U32, "u32", 4}, {BERTH_DTYPE_U64, "u64", 8},
        {BERTH_DTYPE_BOOL, "bool", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        cr_assert_str_eq(berth_dtype_name(rows[i].dtype), rows[i].name);
        cr_assert_eq(berth_dtype_size_bytes(rows[i].dtype), rows[i].size_bytes);
        cr_assert_eq(berth_dtype_from_name(rows[i].name), rows[i].dtype);
    }
}
