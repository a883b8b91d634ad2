// Plans through the public API, beside what compiled programs say of themselves.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

#define MODEL "examples/digits/digits.onnx"

static berth_compiler *compiler;
static berth_program *program;

static void setup(void) {
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set(compiler, "target", "cpu,opencl"));
    assert_ok(berth_compiler_add_pin(compiler, "op:Conv=opencl:0"));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
}

static void teardown(void) {
    berth_program_release(program);
    berth_compiler_destroy(compiler);
}

TestSuite(plan, .init = setup, .fini = teardown, .timeout = 120);

static void check_plan(berth_plan_info *plan) {
    uint32_t count = berth_plan_info_placement_count(plan), pinned = 0;
    cr_assert_eq(count, berth_program_placement_count(program));
    cr_assert_null(berth_plan_info_placement_at(plan, count));
    for (uint32_t i = 0; i < count; ++i) {
        const berth_placement *planned = berth_plan_info_placement_at(plan, i);
        const berth_placement *compiled = berth_program_placement_at(program, i);
        cr_assert_str_eq(planned->node, compiled->node);
        cr_assert_str_eq(planned->op, compiled->op);
        cr_assert_str_eq(planned->device, compiled->device);
        cr_assert_str_eq(planned->reason, compiled->reason);
        pinned += strcmp(planned->op, "Conv") == 0 && strcmp(planned->device, "opencl:0") == 0;
    }
    cr_assert_eq(pinned, 2);
    cr_assert_float_eq(berth_plan_info_predicted_ns(plan), berth_program_predicted_ns(program),
                       1e-6 * berth_program_predicted_ns(program));
    cr_assert(strstr(berth_plan_info_svg(plan), "<svg"));
    cr_assert(strstr(berth_plan_info_svg(plan), "opencl:0"));
    cr_assert(strstr(berth_plan_info_dot(plan), "digraph"));
    berth_plan_info_free(plan);
}

Test(plan, of_a_file_and_of_memory) {
    berth_plan_info *plan = NULL;
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    check_plan(plan);
    static char data[1 << 17];
    FILE *file = fopen(MODEL, "rb");
    cr_assert_not_null(file);
    size_t size_bytes = fread(data, 1, sizeof(data), file);
    cr_assert_lt(size_bytes, sizeof(data));
    fclose(file);
    assert_ok(berth_compiler_plan_memory(compiler, data, size_bytes, NULL, &plan));
    check_plan(plan);
}

Test(plan, refused) {
    berth_plan_info *plan = NULL;
    char path[] = "/tmp/berth-planned-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_program_save(program, path));
    assert_fails(berth_compiler_plan_file(compiler, path, &plan), BERTH_INVALID_ARGUMENT,
                 "planned already");
    unlink(path);
    cr_assert_null(plan);
    assert_fails(berth_compiler_plan_file(compiler, "tests/no_such.onnx", &plan), BERTH_NOT_FOUND,
                 "no_such.onnx");
    assert_fails(berth_compiler_plan_memory(compiler, "no model", 8, NULL, &plan),
                 BERTH_INVALID_ARGUMENT, "memory");
    cr_assert_null(plan);
}
