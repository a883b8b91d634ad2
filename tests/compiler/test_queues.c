// Queues of a program: copies that can go on beside kernels of their device have a queue of their own.
#include <criterion/criterion.h>
#include <stdio.h>
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

TestSuite(queues, .init = setup, .fini = teardown);

static const berth_program *plan(const char *text, const char *target_text) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    char whole[8192];
    snprintf(whole, sizeof(whole), "module \"m\"\ngraph @main(%s }", text);
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, whole, strlen(whole), "text", &module));
    assert_ok(berth_compile(module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    return result.program;
}

// A GPU with a memory of its own, 10 GB/s away.
#define GPU_FACTS                                                                                  \
    "-subgroup_size=32 -memory_bandwidth_bytes_per_s=1e11 -link_bandwidth_bytes_per_s=1e10 "       \
    "-peak_flops.f32=1e12"
#define GPU "opencl " GPU_FACTS ",cpu"

static uint32_t transfers(const berth_program *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->step_count; ++i)
        count += p->queues[p->steps[i].queue].kind == BERTH_QUEUE_TRANSFER;
    return count;
}

// %a is 4 MiB, 0.4 ms at 10 GB/s; the product takes 2 ms at 1 Tflop/s.
Test(queues, a_result_leaves_while_the_device_goes_on) {
    const berth_program *p =
        plan("%x: f32[1024,1024]) { %a = relu(%x) on opencl:0 %h = neg(%a) on cpu:0 "
             "%b = matmul(%x, %x) on opencl:0 %c = exp(%b) on opencl:0 return %h, %c",
             GPU);
    cr_assert_eq(transfers(p), 1);
    for (uint32_t i = 0; i < p->step_count; ++i) {
        const berth_program_step *step = &p->steps[i];
        if (p->queues[step->queue].kind != BERTH_QUEUE_TRANSFER) continue;
        cr_expect_eq(step->kind, BERTH_STEP_COPY);
        cr_expect_eq(step->wait_count, 1, "relu, which writes what is copied");
        const berth_program_step *relu = &p->steps[step->waits[0]];
        cr_expect_eq(relu->bindings[1], step->bindings[0]);
    }
}

// Nothing to do meanwhile; too little; by cores, which would do both.
Test(queues, copies_stay_where_nothing_goes_on) {
    cr_expect_eq(transfers(plan("%x: f32[1024,1024]) { %a = relu(%x) on opencl:0 "
                                "%h = neg(%a) on cpu:0 return %h",
                                GPU)),
                 0);
    static const char small[] = "%x: f32[8,8]) { %a = relu(%x) on opencl:0 %h = neg(%a) on cpu:0 "
                                "%b = matmul(%x, %x) on opencl:0 return %h, %b";
    cr_expect_eq(transfers(plan(small, GPU)), 0);
    static const char large[] =
        "%x: f32[1024,1024]) { %a = relu(%x) on opencl:0 %h = neg(%a) on cpu:0 "
        "%b = matmul(%x, %x) on opencl:0 %c = exp(%b) on opencl:0 return %h, %c";
    cr_expect_eq(transfers(plan(large, "opencl -subgroup_size=1,cpu")), 0);
    cr_expect_eq(transfers(plan(large, "opencl -subgroup_size=32 -shares_host_memory=true,cpu")),
                 0);
}

// %a may leave beside the product only where it has bytes of its own meanwhile: %x, %a and the product
// are 12 MiB. In 9 MiB the product takes the place of %a, and the copy comes first.
Test(queues, copies_stay_where_memory_is_short) {
    static const char text[] =
        "%x: f32[1024,1024]) { %a = relu(%x) on opencl:0 %h = neg(%a) on cpu:0 "
        "%b = matmul(%x, %x) on opencl:0 return %h, %b";
    cr_expect_eq(transfers(plan(text, GPU)), 1);
    static const char small[] = "opencl -memory_capacity_bytes=9437184 " GPU_FACTS ",cpu";
    cr_expect_eq(transfers(plan(text, small)), 0);
}

// Two devices of one memory. cpu:1 reads %a while cpu:0 makes %c, which is not to wait for bytes: %a is
// 4 MiB, and in the 16 MiB that are least, inputs and outputs among them, %c takes its place.
Test(queues, devices_of_one_memory_do_not_wait_for_bytes) {
    static const char text[] =
        "%x: f32[1024,1024]) { %a = matmul(%x, %x) on cpu:0 %b = matmul(%a, %x) on cpu:1 "
        "%c = matmul(%x, %x) on cpu:0 %d = matmul(%c, %x) on cpu:0 return %b, %d";
    static const struct {
        const char *target;
        uint32_t waits;  // of %c
    } cases[] = {
        {"cpu -cores=1 -peak_flops.f32=1e11,cpu -cores=1 -peak_flops.f32=1e11", 0},
        {"cpu -cores=1 -peak_flops.f32=1e11 -memory_capacity_bytes=16777216,"
         "cpu -cores=1 -peak_flops.f32=1e11 -memory_capacity_bytes=16777216",
         1},
    };
    for (int i = 0; i < 2; ++i) {
        const berth_program *p = plan(text, cases[i].target);
        const berth_program_step *c = NULL;
        cr_assert_eq(p->step_count, 4);
        for (uint32_t k = 1; k < 4 && !c; ++k)  // the second of cpu:0
            if (p->steps[k].device == 0) c = &p->steps[k];
        cr_expect_eq(c->wait_count, cases[i].waits, "target %d", i);
    }
}

// A chain on two devices: a step waits for the one before it only.
Test(queues, many_steps, .timeout = 60) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: f32[16]) {\n");
    enum { steps = 4000 };
    for (int i = 0; i < steps; ++i)
        berth_strbuf_addf(&text, "%%v%d = neg(%%v%d) on %s\n", i + 1, i,
                          i % 4 < 2 ? "opencl:0" : "cpu:0");
    berth_strbuf_addf(&text, "return %%v%d }", steps);
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_target_parse(arena, "opencl,cpu", NULL, &target));
    assert_ok(berth_module_parse(arena, berth_strbuf_text(&text), text.length, "text", &module));
    assert_ok(berth_compile(module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    const berth_program *p = result.program;
    cr_assert_gt(p->step_count, steps / 2);
    for (uint32_t i = 0; i < p->step_count; ++i) cr_assert_leq(p->steps[i].wait_count, 1);
}
