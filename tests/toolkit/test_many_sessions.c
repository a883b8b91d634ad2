// Many sessions of one program at once: what each holds of the system's resources.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/text.h"
#include "target/target.h"
#include "tests/check.h"

enum { session_count = 200, kernel_least = 6 };

// Reductions stay apart, so every line is at least one kernel.
static const char text[] = "module \"m\"\ngraph @main(%x: f32[4,8]) {\n"
                           "  %a = softmax(%x) {axis = 1}\n"
                           "  %b = softmax(%a) {axis = 0}\n"
                           "  %c = transpose(%b) {perm = [1, 0]}\n"
                           "  %d = matmul(%b, %c)\n"
                           "  %e = softmax(%d) {axis = 0}\n"
                           "  %f = matmul(%e, %a)\n"
                           "  return %f\n}\n";

// A descriptor for each kernel of each session would be more than a process may have.
Test(many_sessions, hold_few_descriptors) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    assert_ok(berth_target_parse(arena, "cpu", NULL, &target));
    berth_compile_options options = {.target = target};
    assert_ok(berth_compile(module, &options, &result));
    cr_assert_geq(result.program->kernel_count, kernel_least);
    cr_expect_eq(result.program->executable_count, 1);
    const struct rlimit limit = {1024, 1024};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    static berth_session *sessions[session_count];
    berth_session_options one_thread = {.thread_count = 1};
    for (int i = 0; i < session_count; ++i)
        assert_ok(berth_session_open(berth_allocator_system(), result.program, &one_thread,
                                     &sessions[i]));
    for (int i = 0; i < session_count; ++i) {
        berth_tensor x = *berth_session_input(sessions[i], 0);
        berth_tensor_fill_random(&x, 1);
        assert_ok(berth_session_run(sessions[i], -1));
        cr_assert_eq(memcmp(berth_session_output(sessions[i], 0)->data,
                            berth_session_output(sessions[0], 0)->data, 4 * 8 * sizeof(float)),
                     0);
    }
    for (int i = 0; i < session_count; ++i) berth_session_close(sessions[i]);
    berth_arena_destroy(arena);
}
