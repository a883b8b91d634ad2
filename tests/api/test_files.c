// Keys, the kernel cache and tensor files through the public API.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/leaks.h"

static char folder[64];

static const char *in_folder(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void setup(void) {
    strcpy(folder, "/tmp/berth-api-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(files, .init = setup, .fini = teardown, .timeout = 120);

static berth_program *compile(const char *cache_folder) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", cache_folder));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, "examples/digits/digits.onnx", &program));
    berth_compiler_destroy(compiler);
    return program;
}

// The same from the file's bytes.
static void check_signed_bytes(const char *name) {
    enum { most_bytes = 1 << 20 };
    berth_program *opened = NULL;
    unsigned char *bytes = malloc(most_bytes);
    FILE *file = fopen(in_folder(name), "rb");
    cr_assert_not_null(file);
    size_t count = fread(bytes, 1, most_bytes, file);
    fclose(file);
    cr_assert_lt(count, most_bytes);
    assert_ok(berth_program_open_memory_limited(bytes, count, in_folder("key.pub"), NULL, &opened));
    berth_program_release(opened);
    assert_fails(
        berth_program_open_memory_limited(bytes, count, in_folder("second.pub"), NULL, &opened),
        BERTH_INVALID_ARGUMENT, "another key");
    bytes[count / 2] ^= 1;
    assert_fails(
        berth_program_open_memory_limited(bytes, count, in_folder("key.pub"), NULL, &opened),
        BERTH_INVALID_ARGUMENT, "changed after it was signed");
    free(bytes);
}

Test(files, signed_programs) {
    char digits[BERTH_PUBLIC_KEY_DIGITS + 1], other[BERTH_PUBLIC_KEY_DIGITS + 1];
    struct stat info;
    assert_ok(berth_signing_key_create(in_folder("key")));
    assert_fails(berth_signing_key_create(in_folder("key")), BERTH_ALREADY_EXISTS, "key");
    cr_assert_eq(stat(in_folder("key"), &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    assert_ok(berth_signing_key_show(in_folder("key"), digits));
    cr_assert_eq(strspn(digits, "0123456789abcdef"), BERTH_PUBLIC_KEY_DIGITS);
    assert_ok(berth_signing_key_show(in_folder("key.pub"), other));
    cr_assert_str_eq(other, digits);
    assert_ok(berth_signing_key_create(in_folder("second")));

    berth_program *program = compile(getenv("BERTH_CACHE_DIR")), *opened = NULL;
    assert_ok(berth_program_save(program, in_folder("plain.berth")));
    assert_ok(berth_signing_key_show(in_folder("plain.berth"), other));
    cr_assert_str_eq(other, "");
    cr_assert(berth_program_file_is(in_folder("plain.berth")));
    cr_assert_not(berth_program_file_is(in_folder("key")));
    assert_ok(berth_program_save_signed(program, in_folder("m.berth"), in_folder("key")));
    assert_ok(berth_signing_key_show(in_folder("m.berth"), other));
    cr_assert_str_eq(other, digits);
    assert_ok(berth_program_open_signed(in_folder("m.berth"), in_folder("key.pub"), &opened));
    berth_program_release(opened);
    check_signed_bytes("m.berth");
    assert_fails(berth_program_open_signed(in_folder("m.berth"), in_folder("second.pub"), &opened),
                 BERTH_INVALID_ARGUMENT, "key");
    assert_fails(berth_program_save_signed(program, in_folder("n.berth"), in_folder("key.pub")),
                 BERTH_INVALID_ARGUMENT, "key.pub");
    berth_program_release(program);
}

Test(files, kernel_cache) {
    berth_kernel_cache *cache = NULL;
    uint32_t count = 0;
    uint64_t size_bytes = 0;
    assert_ok(berth_kernel_cache_read(in_folder("not_there"), &cache));
    cr_assert_eq(berth_kernel_cache_count(cache), 0);
    berth_kernel_cache_free(cache);
    berth_program_release(compile(in_folder("cache")));
    assert_ok(berth_kernel_cache_read(in_folder("cache"), &cache));
    const uint32_t found = berth_kernel_cache_count(cache);
    uint64_t sum = 0;
    cr_assert_gt(found, 0);
    for (uint32_t i = 0; i < found; ++i) {
        const berth_kernel_cache_entry *entry = berth_kernel_cache_at(cache, i);
        char path[128];
        struct stat info;
        snprintf(path, sizeof(path), "cache/%s", entry->name);
        cr_assert_eq(stat(in_folder(path), &info), 0, "%s", entry->name);
        cr_assert_eq(entry->size_bytes, (uint64_t)info.st_size);
        sum += entry->size_bytes;
    }
    cr_assert_null(berth_kernel_cache_at(cache, found));
    berth_kernel_cache_free(cache);
    assert_ok(berth_kernel_cache_clear(in_folder("cache"), &count, &size_bytes));
    cr_assert_eq(count, found);
    cr_assert_eq(size_bytes, sum);
    assert_ok(berth_kernel_cache_read(in_folder("cache"), &cache));
    cr_assert_eq(berth_kernel_cache_count(cache), 0);
    berth_kernel_cache_free(cache);
    cr_assert_gt(berth_kernel_cache_default_limit_bytes(), 0);
}

Test(files, tensors) {
    float values[6] = {1, -2, 3.5f, 0, 5, 1e-30f};
    const berth_tensor tensor = {BERTH_DTYPE_F32, 2, {2, 3}, values};
    berth_tensor *read = NULL;
    static const char *const names[] = {"t.npy", "t.pb"};
    for (int i = 0; i < 2; ++i) {
        assert_ok(berth_tensor_file_write(in_folder(names[i]), "t", &tensor));
        assert_ok(berth_tensor_read(in_folder(names[i]), &read));
        cr_assert_eq(read->dtype, BERTH_DTYPE_F32);
        cr_assert(read->rank == 2 && read->dims[0] == 2 && read->dims[1] == 3);
        cr_assert_eq(memcmp(read->data, values, sizeof(values)), 0);
        cr_assert_eq((uintptr_t)read->data % 64, 0);
        berth_tensor_free(read);
    }
    assert_fails(berth_tensor_file_check_name("t.txt"), BERTH_INVALID_ARGUMENT, ".npy");
    assert_fails(berth_tensor_read(in_folder("none.npy"), &read), BERTH_NOT_FOUND, "none.npy");
    assert_fails(berth_tensor_parse("\x93NUMPY", 6, &read), BERTH_INVALID_ARGUMENT, "");
    cr_assert_null(read);
}

// All drivers are open in one process, with the thread-local variables of their libraries: GCC 12's
// LeakSanitizer ends with a fault of its own there, as in tests/conformance/test_library.c.
Test(files, facts_of_devices) {
    leave_leaks();
    berth_device_list *list = NULL;
    assert_ok(berth_device_list_create(&list));
    bool cpu = false;
    for (uint32_t i = 0; i < berth_device_list_count(list); ++i) {
        const berth_device_facts *device = berth_device_list_at(list, i);
        cr_assert_gt(device->memory_count, 0);
        cr_assert_eq(device->memories[0]->capacity_bytes, device->memory_bytes);
        if (strcmp(device->kind, "cpu") != 0) continue;
        cpu = true;
        cr_assert(device->shares_host_memory && device->memories[0]->host_visible);
        cr_assert_str_eq(device->memories[0]->scope, "global");
    }
    cr_assert(cpu);
    berth_device_list_free(list);
}

Test(files, plug_in) {
    const char *name = NULL, *version = NULL;
    assert_ok(berth_compiler_load_plugin(BERTH_PLUGIN_VENDOR, &name, &version));
    cr_assert_str_eq(name, "example");
    cr_assert_str_eq(version, "0.1");
    assert_ok(berth_compiler_load_plugin(BERTH_PLUGIN_VENDOR, NULL, NULL));
}

// Two sessions that share a device run the same; what a run and its devices did.
Test(files, sessions_that_share) {
    berth_program *program = compile(getenv("BERTH_CACHE_DIR"));
    berth_session *first = NULL, *second = NULL;
    berth_session_settings settings = {
        .size_bytes = sizeof(settings), .profile = 1, .thread_count = 1};
    assert_ok(berth_session_create(program, &settings, &first));
    settings.share = first;
    assert_ok(berth_session_create(program, &settings, &second));
    berth_session *both[] = {first, second};
    for (int i = 0; i < 2; ++i) {
        float *pixels = berth_session_input(both[i], 0)->data;
        for (int p = 0; p < 64; ++p) pixels[p] = (float)(p % 16);
        assert_ok(berth_session_run(both[i], -1));
    }
    cr_assert_eq(memcmp(berth_session_output(first, 0)->data, berth_session_output(second, 0)->data,
                        10 * sizeof(float)),
                 0);
    int64_t steps_ns = 0;
    uint32_t kernels = 0;
    for (uint32_t i = 0; i < berth_session_step_count(first); ++i) {
        berth_step_facts step;
        assert_ok(berth_session_get_step(first, i, &step, sizeof(step)));
        cr_assert_eq(step.is_copy, step.copied_bytes > 0);
        cr_assert_gt(step.bytes, 0);
        steps_ns += step.duration_ns;
        kernels += !step.is_copy;
    }
    cr_assert_geq(berth_session_run_ns(first), steps_ns);  // one thread: one step at a time
    berth_session_device_facts device;
    berth_program_facts facts;
    cr_assert_eq(berth_session_device_count(first), 1);
    assert_ok(berth_session_get_device(first, 0, &device, sizeof(device)));
    assert_ok(berth_program_get_facts(program, &facts, sizeof(facts)));
    cr_assert_str_eq(device.device, "cpu:0");
    cr_assert_eq(device.kernel_count, kernels);
    cr_assert_eq(device.busy_ns, steps_ns);
    cr_assert_eq(facts.step_count, berth_session_step_count(first));
    cr_assert_str_eq(facts.executor, "graph");
    assert_fails(berth_session_get_device(first, 1, &device, sizeof(device)), BERTH_OUT_OF_RANGE,
                 "device 1");
    assert_ok(berth_program_check_devices(program, "cpu:0"));
    assert_fails(berth_program_check_devices(program, "opencl:0"), BERTH_UNAVAILABLE, "opencl:0");
    berth_session_destroy(second);
    berth_session_destroy(first);
    berth_program_release(program);
}

Test(files, sources_keys_and_what_needs_the_virtual_machine) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "executor", "aot"));
    assert_ok(berth_compiler_set(compiler, "default_batch", "1"));
    assert_ok(berth_compiler_compile_file(compiler, "examples/digits/digits.onnx", &program));
    assert_ok(berth_compiler_save_sources(compiler, program, "digits", in_folder("sources")));
    cr_assert_eq(access(in_folder("sources/digits.c"), R_OK), 0);
    cr_assert_eq(access(in_folder("sources/Makefile"), R_OK), 0);
    berth_program_release(program);
    assert_ok(berth_compiler_set(compiler, "executor", NULL));
    // Only signed programs: a model is none, and neither is a program that nobody signed.
    assert_ok(berth_signing_key_create(in_folder("key")));
    assert_fails(berth_signing_key_check(in_folder("key.pub")), BERTH_INVALID_ARGUMENT, "key.pub");
    assert_ok(berth_signing_key_check(in_folder("key")));
    program = compile(getenv("BERTH_CACHE_DIR"));
    assert_fails(berth_compiler_save_sources(compiler, program, "digits", in_folder("more")),
                 BERTH_INVALID_ARGUMENT, "another executor");
    assert_ok(berth_program_save(program, in_folder("plain.berth")));
    assert_ok(berth_program_save_signed(program, in_folder("signed.berth"), in_folder("key")));
    berth_program_release(program);
    assert_ok(berth_compiler_set(compiler, "required_key", in_folder("key.pub")));
    assert_fails(berth_compiler_compile_file(compiler, in_folder("plain.berth"), &program),
                 BERTH_INVALID_ARGUMENT, "sign");
    assert_fails(berth_compiler_compile_file(compiler, "examples/digits/digits.onnx", &program),
                 BERTH_INVALID_ARGUMENT, "sign");
    assert_ok(berth_compiler_compile_file(compiler, in_folder("signed.berth"), &program));
    berth_program_release(program);
    assert_ok(berth_compiler_set(compiler, "required_key", NULL));
    cr_assert_not(berth_compiler_needs_dynamic(compiler));
    berth_compiler_destroy(compiler);
}

static void count_level(void *user, berth_message_level level, const char *message) {
    (void)message;
    ++((int *)user)[level];
}

Test(files, options_of_the_compiler) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    const char *name = NULL, *text = NULL;
    int levels[3] = {0};
    assert_ok(berth_compiler_create(&compiler));
    assert_fails(berth_compiler_set(compiler, "fusion", "maybe"), BERTH_INVALID_ARGUMENT, "fusion");
    assert_fails(berth_compiler_set(compiler, "nodes", "0"), BERTH_INVALID_ARGUMENT, "nodes");
    assert_fails(berth_compiler_set(compiler, "nodes", "1x"), BERTH_INVALID_ARGUMENT, "1x");
    assert_fails(berth_compiler_set(compiler, "jobs", "1025"), BERTH_INVALID_ARGUMENT, "1024");
    assert_fails(berth_compiler_set(compiler, "fussion", "on"), BERTH_NOT_FOUND, "\"fusion\"");
    cr_assert(berth_compiler_strategy_at(0, &name, &text));
    cr_assert_str_eq(name, "default");
    cr_assert_not(berth_compiler_strategy_at(10000, &name, &text));
    assert_fails(berth_compiler_load_plugin("/no/such.so", &name, &text), BERTH_NOT_FOUND, "such");
    // One kernel per operation gives more steps than fused ones; the batch is 1 by default then.
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set(compiler, "default_batch", "1"));
    assert_ok(berth_compiler_add_override(compiler, "cores=1"));
    berth_compiler_on_level_message(compiler, count_level, levels);
    uint32_t steps[2];
    static const char *const switches[] = {"on", "off"};
    for (int i = 0; i < 2; ++i) {
        berth_session *session = NULL;
        assert_ok(berth_compiler_set(compiler, "fusion", switches[i]));
        assert_ok(berth_compiler_compile_file(compiler, "examples/digits/digits.onnx", &program));
        cr_assert(strstr(berth_program_target(program), "\"cores\": 1,"), "%s",
                  berth_program_target(program));
        assert_ok(berth_session_create(program, NULL, &session));
        steps[i] = berth_session_step_count(session);
        berth_session_destroy(session);
        berth_program_release(program);
    }
    cr_assert_lt(steps[0], steps[1]);
    cr_assert_gt(levels[BERTH_MESSAGE_NOTE], 0);  // which batch was taken
    cr_assert_eq(levels[BERTH_MESSAGE_ERROR], 0);
    berth_compiler_destroy(compiler);
}
