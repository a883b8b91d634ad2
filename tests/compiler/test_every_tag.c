// Every tag plans a small model, and builds it or is refused for the one reason in the table. A tag
// that is not in the table plans and builds.
#include <criterion/criterion.h>
#include <string.h>

#include "base/str.h"
#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct row {
    const char *tags;  // a glob; the first row that matches counts
    berth_code code;
    const char *reason;  // a part of the message
    bool may_build;      // where this machine has what the reason misses
} row;

#define CROSS BERTH_UNAVAILABLE, "install the package gcc-aarch64-linux-gnu", true
#define CROSS_ARM BERTH_UNAVAILABLE, "install the package gcc-arm-linux-gnueabihf", true

static const row refusals[] = {
    {"amlogic/sm1", CROSS},
    {"apple/m1", CROSS},
    {"arm/corstone-300-ethos-*", BERTH_UNSUPPORTED, "no code generator for devices of kind npu",
     false},
    {"arm/rasp*", CROSS},
    {"aws/graviton*", CROSS},
    {"google/coral-dev-board", CROSS},
    {"mediatek/mt8195", CROSS},
    {"nvidia/jetson-*nano", CROSS},  // a CPU beside the GPU
    {"nxp/imx8m-plus", CROSS},
    {"qualcomm/sm8550", CROSS},
    {"rockchip/*", CROSS},
    {"ti/am625", CROSS},
    {"xilinx/pynq-*", CROSS_ARM},
    {"xilinx/*", CROSS},
};

static const row *row_of(const char *tag) {
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); ++i)
        if (berth_glob_match(refusals[i].tags, tag)) return &refusals[i];
    return NULL;
}

static berth_status compile(berth_arena *arena, const berth_multi_target *target, bool plan_only,
                            berth_compile_result *result) {
    static const char text[] =
        "module \"m\"\ngraph @main(%x: f32[1,8]) { %a = relu(%x) %b = neg(%a) "
        "%c = add(%a, %b) return %c }";
    berth_module *module = NULL;
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    berth_compile_options options = {.target = target, .plan_only = plan_only};
    return berth_compile(module, &options, result);
}

static void try_tag(const char *tag) {
    const row *refusal = row_of(tag);
    berth_arena *arena = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_target_parse(arena, tag, NULL, &target));
    berth_status status = compile(arena, target, true, &result);
    cr_expect_null(status, "%s does not plan: %s", tag, berth_status_message(status));
    berth_status_free(status);
    if (!status) {
        cr_expect_not_null(result.program);
        bool noted = false, no_code = false;
        for (uint32_t i = 0; i < result.plan->note_count; ++i)
            noted |= strstr(result.plan->notes[i], "makes no code") != NULL;
        for (uint32_t d = 0; d < target->device_count; ++d)
            no_code |= target->devices[d].target->kind != BERTH_DEVICE_CPU &&
                       !berth_device_kind_is_gpu(target->devices[d].target->kind);
        cr_expect_eq(noted, no_code, "%s", tag);
    }
    status = compile(arena, target, false, &result);
    const char *message = berth_status_message(status);
    if (!refusal || (refusal->may_build && !status)) {
        cr_expect_null(status, "%s does not build: %s", tag, message);
    } else {
        cr_expect_eq(berth_status_code(status), refusal->code, "%s: %s", tag, message);
        cr_expect_not_null(strstr(message, refusal->reason), "%s: \"%s\" is not in \"%s\"", tag,
                           refusal->reason, message);
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(every_tag, plans_and_builds_or_says_why_not, .timeout = 300) {
    berth_arena *arena = NULL;
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_target_list_tags(arena, NULL, &tags, &count));
    cr_assert_geq(count, 70);
    for (uint32_t i = 0; i < count; ++i) try_tag(tags[i].name);
    berth_arena_destroy(arena);
}

// MultiTargets of every mixture of kinds plan; what no device can run is refused with what to do.
Test(every_tag, mixtures_plan) {
    static const struct {
        const char *target;
        const char *refusal;  // NULL = it plans
    } rows[] = {
        {"cpu", NULL},
        {"cuda", NULL},
        {"vulkan", NULL},
        {"cuda,cpu", NULL},
        {"cuda,opencl", NULL},
        {"vulkan,cuda", NULL},
        {"opencl -host=cpu", NULL},
        {"opencl,opencl,cpu", NULL},
        {"opencl -shares_host_memory=true -host=cpu", NULL},
        {"opencl -shares_host_memory=true,cpu", NULL},
        {"opencl -shares_host_memory=true,opencl -shares_host_memory=true,cpu", NULL},
        {"cuda -shares_host_memory=true", NULL},
        {"vta,cpu", NULL},
        {"npu,cpu", NULL},
        {"null,cpu", NULL},
        {"vta", "add one (\"vta,cpu\")"},
        {"null", "add one (\"null,cpu\")"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_arena *arena = NULL;
        berth_multi_target *target = NULL;
        berth_compile_result result;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        assert_ok(berth_target_parse(arena, rows[i].target, NULL, &target));
        berth_status status = compile(arena, target, true, &result);
        const char *message = berth_status_message(status);
        if (rows[i].refusal)
            cr_expect(status && strstr(message, rows[i].refusal), "%s: %s", rows[i].target,
                      message);
        else
            cr_expect_null(status, "%s: %s", rows[i].target, message);
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}
