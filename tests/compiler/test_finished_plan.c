// What a finished plan is predicted at: by the kernels that are made of it (planner/finished.c).
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

TestSuite(finished_plan, .init = setup, .fini = teardown);

// Two devices in one memory. A product of 1024 x 1024 matrices takes 31 ms there, all else below 1 ms.
#define CORE "cpu -cores=1 -peak_flops.f32=1e11 -memory_bandwidth_bytes_per_s=1e11"
static const double product_ns = 2.0 * 1024 * 1024 * 1024 / (0.7 * 1e11) * 1e9;

static const berth_plan *plan_on(const char *target_text, const char *body) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    const char *text =
        berth_arena_printf(arena,
                           "module \"m\"\ngraph @main(%%x: f32[1024,1024], %%y: f32[1024,1024], "
                           "%%i: i8[1,16,32,32]) { %s }",
                           body);
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    assert_ok(berth_compile(module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    return result.plan;
}

static const berth_plan *plan_of(const char *body) {
    return plan_on(CORE "," CORE, body);
}

// The sum needs what cpu:1 makes, and is computed with the product on cpu:0, which so begins only then.
Test(finished_plan, a_fused_kernel_waits_for_all_of_its_operands) {
    const berth_plan *plan = plan_of("%k = matmul(%y, %x) on cpu:1 %l = matmul(%x, %x) on cpu:0 "
                                     "%m = add(%l, %k) on cpu:0 return %m");
    cr_assert_eq(plan->entry_count, 3);
    const berth_plan_entry *k = &plan->entries[0], *l = &plan->entries[1], *m = &plan->entries[2];
    cr_expect_geq(l->start_ns, k->start_ns + k->time_ns);
    cr_expect_geq(plan->predicted_ns, 2 * product_ns);
    cr_expect_geq(l->time_ns, product_ns);
    cr_expect_eq(m->time_ns, 0);  // with the product
}

// Beside each other where nothing is fused: the sum alone waits.
Test(finished_plan, kernels_beside_each_other_do_not_wait) {
    const berth_plan *plan = plan_of("%k = matmul(%y, %x) on cpu:1 %l = matmul(%x, %x) on cpu:0 "
                                     "%m = add(%l, %k) on cpu:0 return %l, %m");
    cr_assert_eq(plan->entry_count, 3);
    cr_expect_lt(plan->predicted_ns, 1.1 * product_ns);
    cr_expect_gt(plan->entries[2].time_ns, 0);
}

// What is fused to the product on one device is a kernel of its own on another.
Test(finished_plan, nothing_is_fused_where_the_device_changes) {
    const berth_plan *apart =
        plan_of("%l = matmul(%x, %y) on cpu:0 %m = relu(%l) on cpu:1 return %m");
    cr_assert_eq(apart->entry_count, 2);
    cr_expect_gt(apart->entries[1].time_ns, 0);
    cr_expect_eq(apart->entries[1].figure, BERTH_COST_ANALYTIC);
    const berth_plan *together =
        plan_of("%l = matmul(%x, %y) on cpu:1 %m = relu(%l) on cpu:1 return %m");
    cr_expect_eq(together->entries[1].time_ns, 0);
    cr_expect_eq(together->entries[1].figure, BERTH_COST_NONE);
}

// An NPU counts its operations itself, as it does alone; beside it the others are counted by their kernels.
Test(finished_plan, beside_an_npu_kernels_are_what_they_are) {
    const berth_plan *alone = plan_on("npu,cpu", "%k = relu(%i) on npu:0 return %k");
    const berth_plan *plan =
        plan_on("npu," CORE "," CORE,
                "%k = relu(%i) on npu:0 %l = matmul(%x, %y) on cpu:0 %m = relu(%l) on cpu:1 "
                "return %k, %m");
    cr_assert_eq(plan->entry_count, 3);
    cr_expect_gt(plan->entries[0].time_ns, 0);
    cr_expect_eq(plan->entries[0].time_ns, alone->entries[0].time_ns);
    cr_expect_geq(plan->entries[1].time_ns, product_ns);
    cr_expect_gt(plan->entries[2].time_ns, 0);  // not fused with the product
}

// x comes from the caller, %l from a kernel of the processor: both are 4 MiB over the same link. 25 us until the
// processor's own thread is woken, where the driver computes on its cores; a GPU's copies are as the link says.
Test(finished_plan, a_copy_between_kernels_wakes_a_thread_more) {
    static const struct {
        const char *driver;
        double more_ns;
    } cases[] = {{"opencl -subgroup_size=1", 25000}, {"opencl -subgroup_size=32", 0}};
    for (int i = 0; i < 2; ++i) {
        const char *target = berth_arena_printf(arena, "cpu,%s", cases[i].driver);
        const berth_plan *from_caller = plan_on(target, "%m = relu(%x) on opencl:0 return %m");
        const berth_plan *from_kernel =
            plan_on(target, "%l = neg(%x) on cpu:0 %m = relu(%l) on opencl:0 return %m");
        cr_assert_eq(from_caller->transfer_count, 2);
        cr_assert_eq(from_kernel->transfer_count, 2);
        cr_expect_float_eq(from_kernel->transfers[0].time_ns - from_caller->transfers[0].time_ns,
                           cases[i].more_ns, 1, "%s", cases[i].driver);
        cr_expect_float_eq(from_kernel->transfers[1].time_ns, from_caller->transfers[1].time_ns, 1);
    }
}
