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

// Each workspace has a panel with its own peak, and all that is live there is drawn.
Test(plan, picture_of_memory) {
    berth_plan_info *plan = NULL;
    const char *svg = NULL;
    uint32_t panels = 0;
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    assert_ok(berth_plan_info_draw_memory(plan, &svg));
    for (uint32_t i = 0; i < berth_plan_info_pool_count(plan); ++i) {
        const berth_planned_pool *pool = berth_plan_info_pool(plan, i);
        char text[256];
        if (!pool->is_workspace_known) continue;
        panels++;
        snprintf(text, sizeof(text),
                 "pool \"%s, %s\": height %llu bytes, largest live sum %llu bytes", pool->device,
                 pool->scope, (unsigned long long)pool->size_bytes,
                 (unsigned long long)pool->live_bytes);
        cr_assert(strstr(svg, text), "%s", text);
        cr_assert(strstr(svg, pool->peak_step));
        for (uint32_t k = 0; k < pool->value_count; ++k) {
            snprintf(text, sizeof(text), "%llu bytes at ",
                     (unsigned long long)pool->values[k].size_bytes);
            cr_assert(strstr(svg, text), "%s", text);
        }
    }
    cr_assert_gt(panels, 0);
    const char *peak = svg;
    for (uint32_t i = 0; i < panels; ++i) {
        peak = strstr(peak + 1, ">peak: ");
        cr_assert(peak);
    }
    berth_plan_info_free(plan);
}

// The records say what the placements say, and memory adds up.
Test(plan, in_full) {
    berth_plan_info *plan = NULL;
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    uint32_t count = berth_plan_info_operation_count(plan);
    double end_ns = 0;
    cr_assert_eq(count, berth_plan_info_placement_count(plan));
    for (uint32_t i = 0; i < count; ++i) {
        const berth_planned_operation *operation = berth_plan_info_operation(plan, i);
        const berth_placement *placement = berth_plan_info_placement_at(plan, i);
        cr_assert_str_eq(operation->node, placement->node);
        cr_assert_str_eq(operation->device, placement->device);
        cr_assert(strstr(operation->name, placement->node));
        cr_assert_gt(operation->chain_count, 0);
        cr_assert_eq(operation->rejection_count, 1, "one of two devices");
        if (strcmp(operation->op, "Conv") == 0)
            cr_assert(strstr(operation->rejections[0].reason, "pinned"));
        if (operation->start_ns + operation->time_ns > end_ns)
            end_ns = operation->start_ns + operation->time_ns;
    }
    const berth_plan_facts *facts = berth_plan_info_facts(plan);
    cr_assert_eq(facts->predicted_ns, berth_plan_info_predicted_ns(plan));
    cr_assert_leq(end_ns, facts->predicted_ns * (1 + 1e-9));
    cr_assert(facts->is_valued && facts->lower_bound <= facts->value * (1 + 1e-9));
    cr_assert_eq(berth_plan_info_device_count(plan), 2);
    uint32_t from_convolutions = 0;
    for (uint32_t i = 0; i < berth_plan_info_copy_count(plan); ++i)
        from_convolutions += strcmp(berth_plan_info_copy(plan, i)->from, "opencl:0") == 0;
    cr_assert_gt(from_convolutions, 0);
    uint64_t pools_bytes = 0, memories_bytes = 0;
    for (uint32_t i = 0; i < berth_plan_info_pool_count(plan); ++i) {
        const berth_planned_pool *pool = berth_plan_info_pool(plan, i);
        uint64_t live_bytes = 0;
        for (uint32_t k = 0; k < pool->value_count; ++k) live_bytes += pool->values[k].size_bytes;
        cr_assert_eq(live_bytes, pool->live_bytes);
        cr_assert_geq(pool->size_bytes, pool->lower_bound_bytes);
        pools_bytes += pool->size_bytes;
    }
    for (uint32_t m = 0; m < berth_plan_info_memory_count(plan); ++m)
        memories_bytes += berth_plan_info_memory(plan, m)->used_bytes;
    cr_assert_eq(pools_bytes, memories_bytes);
    cr_assert_null(berth_plan_info_operation(plan, count));
    cr_assert_null(berth_plan_info_pool(plan, berth_plan_info_pool_count(plan)));
    berth_plan_info_free(plan);
}

static uint32_t alternatives_of(const berth_plan_info *plan) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < berth_plan_info_kernel_count(plan); ++i)
        for (uint32_t n = 0; n < berth_plan_info_kernel(plan, i)->nest_count; ++n)
            count += berth_plan_info_kernel(plan, i)->nests[n].alternative_count;
    return count;
}

Test(plan, kernels_are_explained_where_that_is_asked_for) {
    berth_plan_info *plan = NULL;
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    cr_assert_gt(berth_plan_info_kernel_count(plan), 0);
    cr_assert_eq(alternatives_of(plan), 0);
    berth_plan_info_free(plan);
    assert_ok(berth_compiler_set(compiler, "explain_kernels", "on"));
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    cr_assert_gt(alternatives_of(plan), 0);
    berth_plan_info_free(plan);
}

// A change counts as what planning that machine says.
Test(plan, what_if) {
    berth_plan_info *plan = NULL, *without = NULL;
    berth_what_if_info *changes = NULL;
    const berth_what_if_settings settings = {.size_bytes = sizeof(settings)};
    const berth_what_if_change *pin = NULL;
    const char *unit = NULL;
    assert_ok(berth_compiler_plan_file(compiler, MODEL, &plan));
    assert_ok(berth_compiler_what_if(compiler, plan, &settings, &changes));
    cr_assert_eq(berth_what_if_info_before(changes, &unit), berth_plan_info_facts(plan)->value);
    cr_assert_str_eq(unit, "ns");
    for (uint32_t i = 0; i < berth_what_if_info_change_count(changes); ++i)
        if (strstr(berth_what_if_info_change(changes, i)->what, "without the pin"))
            pin = berth_what_if_info_change(changes, i);
    cr_assert_not_null(pin);
    berth_compiler *free_of_pins = NULL;
    assert_ok(berth_compiler_create(&free_of_pins));
    assert_ok(berth_compiler_set(free_of_pins, "target", "cpu,opencl"));
    assert_ok(berth_compiler_set_dim(free_of_pins, "batch", 1));
    assert_ok(berth_compiler_plan_file(free_of_pins, MODEL, &without));
    cr_assert_float_eq(pin->value, berth_plan_info_facts(without)->value, 1e-6 * pin->value);
    berth_compiler_destroy(free_of_pins);
    berth_plan_info_free(without);
    berth_what_if_info_free(changes);
    const berth_what_if_settings wrong = {.size_bytes = 1};
    assert_fails(berth_compiler_what_if(compiler, plan, &wrong, &changes), BERTH_INVALID_ARGUMENT,
                 "size_bytes is 1");
    berth_plan_info_free(plan);
}

// The smallest budget is one: a byte less is refused.
Test(plan, memory_sweep) {
    berth_memory_sweep_info *sweep = NULL;
    berth_plan_info *plan = NULL;
    char budget[64];
    assert_ok(berth_compiler_sweep_memory_file(compiler, MODEL, "cpu:0", 5, &sweep));
    uint32_t count = berth_memory_sweep_info_point_count(sweep);
    cr_assert_geq(count, 2);
    for (uint32_t i = 1; i < count; ++i)
        cr_assert_lt(berth_memory_sweep_info_point(sweep, i)->budget_bytes,
                     berth_memory_sweep_info_point(sweep, i - 1)->budget_bytes);
    cr_assert_null(berth_memory_sweep_info_point(sweep, count));
    cr_assert(strstr(berth_memory_sweep_info_svg(sweep), "<svg"));
    const uint64_t least = berth_memory_sweep_info_least_bytes(sweep);
    for (uint64_t less = 0; less < 2; ++less) {
        snprintf(budget, sizeof(budget), "%s=%llu", berth_memory_sweep_info_memory(sweep),
                 (unsigned long long)(least - less));
        assert_ok(berth_compiler_set(compiler, "memory", budget));
        berth_status status = berth_compiler_plan_file(compiler, MODEL, &plan);
        cr_assert_eq(berth_status_code(status), less ? BERTH_OUT_OF_MEMORY : BERTH_CODE_OK);
        berth_status_free(status);
        berth_plan_info_free(plan);
    }
    berth_memory_sweep_info_free(sweep);
    assert_ok(berth_compiler_set(compiler, "memory", NULL));
    assert_fails(berth_compiler_sweep_memory_file(compiler, MODEL, "no:0", 5, &sweep),
                 BERTH_NOT_FOUND, "no:0");
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
