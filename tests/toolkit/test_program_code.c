// Program files for several shapes: the code of all of them is one image, which is loaded once, and it is that of each shape.
// What a first run needs of the machine is known when the file is opened.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/file.h"
#include "executor/vm_runner.h"
#include "ir/text.h"
#include "tests/check.h"
#include "toolkit/vm_build.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(program_code, .init = setup, .fini = teardown, .timeout = 600);

enum { width = 24 };

static const char product[] = "module \"m\"\n"
                              "graph @main(%x: f32[n,24], %w: f32[24,24]) {\n"
                              "  %p = matmul(%x, %w)\n"
                              "  %y = relu(%p)\n"
                              "  return %y\n}\n";

static const berth_program *build_text(const char *text, const char *const *specialisations,
                                       uint32_t count) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    const berth_program *program = NULL;
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    assert_ok(berth_target_parse(arena, "cpu", NULL, &target));
    const berth_compile_options options = {
        .target = target, .cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")};
    assert_ok(berth_vm_build(arena, module, &options, specialisations, count, &program));
    return program;
}

static const berth_program *build(const char *const *specialisations, uint32_t count) {
    return build_text(product, specialisations, count);
}

static void expect_one_image(const berth_program *program) {
    const void *image = NULL;
    cr_assert_gt(program->vm->variant_count, 1);
    for (uint32_t v = 0; v < program->vm->variant_count; ++v) {
        const berth_program *of = program->vm->variants[v].program;
        if (!of) continue;
        for (uint32_t i = 0; i < of->executable_count; ++i) {
            if (!image) image = of->executables[i].data;
            cr_expect_eq(of->executables[i].data, image, "variant %u", v);
            cr_expect_gt(of->executables[i].size_bytes, 1000);
        }
    }
}

static berth_vm_value *matrix(int64_t rows, int seed) {
    const int64_t dims[] = {rows, width};
    berth_vm_value *value = NULL;
    assert_ok(berth_vm_value_tensor(berth_allocator_system(), BERTH_DTYPE_F32, 2, dims, &value));
    for (int64_t i = 0; i < rows * width; ++i)
        ((float *)value->tensor.data)[i] = (float)((i * 5 + seed) % 7 - 3);
    return value;
}

// Small integers, so that results are exact.
static void run(berth_vm_runner *runner, int64_t rows) {
    berth_vm_value *inputs[2] = {matrix(rows, 1), matrix(width, 2)}, *output;
    const float *x = inputs[0]->tensor.data, *w = inputs[1]->tensor.data;
    assert_ok(berth_vm_runner_run(runner, inputs, &output));
    for (int64_t r = 0; r < rows; ++r)
        for (int c = 0; c < width; ++c) {
            float sum = 0;
            for (int i = 0; i < width; ++i) sum += x[r * width + i] * w[i * width + c];
            const float got = ((const float *)output->tensor.data)[r * width + c];
            cr_assert_eq(got, sum > 0 ? sum : 0, "%d rows: [%d, %d]", (int)rows, (int)r, c);
        }
    berth_vm_value_release(output);
    for (int i = 0; i < 2; ++i) berth_vm_value_release(inputs[i]);
}

static void check(const char *const *specialisations, uint32_t count, const int64_t *rows,
                  uint32_t row_count) {
    const berth_program *program = build(specialisations, count);
    berth_vm_runner *runner = NULL;
    expect_one_image(program);
    assert_ok(berth_vm_runner_open(program, NULL, &runner));
    for (uint32_t i = 0; i < row_count; ++i) run(runner, rows[i]);
    berth_vm_runner_close(runner);
}

Test(program_code, shapes_that_are_named_share_an_image) {
    // 40 and 56 differ in numbers only, and neither takes the other's kernel.
    static const char *const named[] = {"n=1,n=3,n=40,n=56"};
    static const int64_t rows[] = {56, 1, 40, 3, 56};
    check(named, 1, rows, 5);
}

Test(program_code, all_shapes_within_bounds_share_an_image) {
    static const char *const bounds[] = {"n=1..40"};
    int64_t rows[40];
    for (int64_t i = 0; i < 40; ++i) rows[i] = 40 - i;
    check(bounds, 1, rows, 40);
}

static int processes_started;

static void count_process(void) {
    processes_started++;
}

// The machine is asked by a process of its own, once. Another process builds the file, as this one would know the machine
// from then on.
Test(program_code, no_run_of_a_program_file_starts_a_process) {
    static const char *const named[] = {"n=1,n=40"};
    char path[64];
    int ended = 0;
    snprintf(path, sizeof(path), "/tmp/berth_program_code_%d", (int)getpid());
    const pid_t maker = fork();
    if (maker == 0) _exit(berth_program_write(build(named, 1), path) != NULL);
    cr_assert_eq(waitpid(maker, &ended, 0), maker);
    cr_assert_eq(ended, 0);
    const berth_program *program = NULL;
    berth_vm_runner *runner = NULL;
    assert_ok(berth_program_read(arena, path, NULL, &program));
    cr_assert_eq(pthread_atfork(count_process, NULL, NULL), 0);
    assert_ok(berth_vm_runner_open(program, NULL, &runner));
    processes_started = 0;
    run(runner, 40);
    cr_expect_eq(processes_started, 0);
    berth_vm_runner_close(runner);
    unlink(path);
}

// Some of n elements are less than a group's work (8192), and some leave a part of a group over; the borders of a row of
// 6 pixels are more of it than those of 40. What is done with either is chosen for all of them.
Test(program_code, sizes_of_one_function_have_one_form) {
    static const char *const bounds[] = {"n=8185..8200"};
    static const char *const widths[] = {"n=6..40"};
    static const char add[] = "module \"m\"\n"
                              "graph @main(%x: f32[n]) {\n  %y = add(%x, %x)\n  return %y\n}\n";
    static const char pad[] = "module \"m\"\n"
                              "graph @main(%x: f32[1,3,9,n]) {\n"
                              "  %pads = constant() {value = i64[8] (0, 0, 1, 2, 0, 0, 1, 2)}\n"
                              "  %y = pad(%x, %pads)\n  return %y\n}\n";
    cr_expect_eq(build_text(add, bounds, 1)->vm->variant_count, 1u);
    cr_expect_eq(build_text(pad, widths, 1)->vm->variant_count, 1u);
}
