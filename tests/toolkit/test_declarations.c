// The program's record of a kernel against what its code declares: a record that was changed after
// the program was built does not open.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/text.h"
#include "tests/check.h"

// A softmax (some nests, a workspace) and a sum over an operand.
static const char text[] = "module \"m\"\ngraph @main(%x: f32[64,128]) {\n"
                           "  %a = softmax(%x) {axis = 1}\n"
                           "  %b = add(%a, %x)\n"
                           "  return %b\n}\n";

static const berth_program *build(berth_arena *arena, const char *kind) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    assert_ok(berth_target_parse(arena, kind, NULL, &target));
    berth_compile_options options = {.target = target};
    assert_ok(berth_compile(module, &options, &result));
    return result.program;
}

static berth_status try_open(const berth_program *program) {
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), program, NULL, &session);
    berth_session_close(session);
    return status;
}

static void grid(berth_program_kernel *k, berth_kernel_binding *b) {
    (void)b, k->groups[0]++;
}
static void scratch(berth_program_kernel *k, berth_kernel_binding *b) {
    (void)b, k->scratch_bytes += 64;
}
static void size(berth_program_kernel *k, berth_kernel_binding *b) {
    (void)k, b[0].size_bytes -= 4;
}
static void access(berth_program_kernel *k, berth_kernel_binding *b) {
    b[k->binding_count - 1].access ^= BERTH_ACCESS_READ;  // of what it writes
}

static void check_kind(const char *kind) {
    static void (*const changes[])(berth_program_kernel *, berth_kernel_binding *) = {grid, scratch,
                                                                                      size, access};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_program *program = build(arena, kind);
    berth_status status = try_open(program);
    if (berth_status_code(status) == BERTH_UNAVAILABLE) {
        const char *required = getenv("BERTH_REQUIRE_DRIVERS");
        cr_assert(!required || !strstr(required, kind), "%s", berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_skip("no device of this kind");
    }
    assert_ok(status);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); ++i) {
        berth_program changed = *program;
        berth_program_kernel *kernels = berth_arena_copy(
            arena, program->kernels, program->kernel_count * sizeof(*program->kernels));
        berth_kernel_binding *bindings = berth_arena_copy(
            arena, kernels[0].bindings, kernels[0].binding_count * sizeof(*bindings));
        kernels[0].bindings = bindings;
        changed.kernels = kernels;
        changes[i](&kernels[0], bindings);
        status = try_open(&changed);
        cr_expect_eq(berth_status_code(status), BERTH_INCOMPATIBLE, "%s, change %zu: %s", kind, i,
                     berth_status_message(status));
        cr_expect(!status || strstr(berth_status_message(status), kernels[0].entry));
        berth_status_free(status);
    }
    berth_arena_destroy(arena);
}

Test(declarations, cpu) {
    check_kind("cpu");
}
Test(declarations, opencl) {
    check_kind("opencl");
}
Test(declarations, vulkan) {
    check_kind("vulkan");
}
