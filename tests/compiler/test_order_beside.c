// The order of steps of several devices (compiler/package/order_beside.c): what others wait for comes first.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(order_beside, .init = setup, .fini = teardown);

// Two devices in one memory. A product of 1024 x 1024 matrices takes 31 ms there, all else below 1 ms.
#define CORE "cpu -cores=1 -peak_flops.f32=1e11 -memory_bandwidth_bytes_per_s=1e11"

static const berth_program *compile(const char *body, const char *target_text) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    const char *text =
        berth_arena_printf(arena,
                           "module \"m\"\ngraph @main(%%x: f32[1024,1024], %%y: f32[1024,1024], "
                           "%%g: f32[1024,1280], %%h: f32[1024,512]) { %s }",
                           body);
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    assert_ok(berth_compile(module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    return result.program;
}

// Whether the step that cpu:1 waits for is the first of cpu:0's.
static bool needed_comes_first(const char *body, const char *target_text) {
    const berth_program *program = compile(body, target_text);
    const berth_program_step *reads = NULL;
    uint32_t first = 0;
    for (uint32_t i = program->step_count; i-- > 0;) {
        if (program->steps[i].device == 1) reads = &program->steps[i];
        if (program->steps[i].device == 0) first = i;
    }
    cr_assert(reads && reads->wait_count == 1);
    return reads->waits[0] == first;
}

// In the module's order the three products take 93 ms, one after the other; with %k first, 62: %l and %m
// are computed at the same time.
Test(order_beside, what_another_device_waits_for_comes_first) {
    static const char body[] = "%l = matmul(%x, %x) on cpu:0 %k = matmul(%y, %x) on cpu:0 "
                               "%m = matmul(%k, %x) on cpu:1 return %l, %m";
    cr_expect(needed_comes_first(body, CORE "," CORE));
}

// Of 62 ms the other order would gain what cpu:1 has to do, less than 1 ms: no 2 %.
Test(order_beside, the_modules_order_stays_where_little_is_gained) {
    static const char body[] = "%l = matmul(%x, %x) on cpu:0 %k = matmul(%y, %x) on cpu:0 "
                               "%m = neg(%k) on cpu:1 return %l, %m";
    cr_expect_not(needed_comes_first(body, CORE "," CORE));
}

// Devices that compute with the same cores are no faster beside each other: any order takes 93 ms.
Test(order_beside, the_modules_order_stays_where_devices_take_turns) {
    static const char body[] = "%l = matmul(%x, %x) on cpu:0 %k = matmul(%y, %x) on cpu:0 "
                               "%m = matmul(%k, %x) on cpu:1 return %l, %m";
    cr_expect_not(needed_comes_first(body, CORE " -resource=host," CORE " -resource=host"));
}

// %u is urgent (31 ms, and 16 for %t) and can begin after %k, at 31; %f takes 39. In the module's order, and where cpu:0 waits for
// %u since %f does not end before, all ends at 101; where cpu:0 begins with %f, which is there, at 86.
Test(order_beside, a_device_does_not_wait_for_what_is_no_better) {
    static const char body[] = "%k = matmul(%x, %x) on cpu:1 %u = matmul(%k, %x) on cpu:0 "
                               "%t = matmul(%u, %h) on cpu:1 %f = matmul(%y, %g) on cpu:0 "
                               "return %t, %f";
    const berth_program *program = compile(body, CORE "," CORE);
    const berth_program_step *first = NULL;
    for (uint32_t i = program->step_count; i-- > 0;)
        if (program->steps[i].device == 0) first = &program->steps[i];
    cr_assert(first);
    cr_expect_eq(first->wait_count, 0, "cpu:0 waits for %u steps", first->wait_count);
}
