// Sums in parts: two kernels give what one gives, under the interpreter and on OpenCL and Vulkan
// devices, where few results would leave a device idle; others stay whole, and decisions that are
// given are kept or refused.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/schedule/opencl_run.h"

static const char *const targets[] = {
    "opencl -arch=gfx900 -subgroup_size=64 -max_group_size=256 -compute_units=64",
    "vulkan -max_group_size=128 -local_memory_bytes=16384 -compute_units=64",
    "opencl -subgroup_size=1",  // processor cores: no groups
};
enum { TARGETS = 3, CORES = 2 };

typedef struct sum_case {
    const char *name;
    int kernels;
    const char *text;
} sum_case;

static const sum_case cases[] = {
    {"a row times a matrix, and what follows", 2,
     "module \"m\" tensor @f(%x: f32[2048] in, %w: f32[2048,40] in, %b: f32[40] in, %y: f32[40] "
     "out) {"
     " parallel %j in 40 { register %acc: f32[] %acc[] = 0.0"
     " for %k in 2048 { %acc[] = fma(%x[%k], %w[%k, %j], %acc[]) }"
     " %y[%j] = max(%acc[] + %b[%j], 0.0) } }"},
    {"a tile, whose sums begin at 2", 2,
     "module \"m\" tensor @f(%x: f32[9,1200] in, %w: f32[1200,50] in, %y: f32[9,50] out) {"
     " parallel %i in 9 { parallel %j in 50 { register %acc: f32[] %acc[] = 2.0"
     " for %k in 1200 { %acc[] = fma(%x[%i, %k], %w[%k, %j], %acc[]) } %y[%i, %j] = %acc[] } } }"},
    {"loops of a window: the outermost is split", 2,
     "module \"m\" tensor @f(%x: f32[512,6,6] in, %w: f32[4,512,3,3] in, %y: f32[4,4,4] out) {"
     " parallel %o in 4 { parallel %i in 4 { parallel %j in 4 { register %acc: f32[] %acc[] = 0.0"
     " for %c in 512 { for %p in 3 { for %q in 3 {"
     " %acc[] = fma(%x[%c, %i + %p, %j + %q], %w[%o, %c, %p, %q], %acc[]) } } }"
     " %y[%o, %i, %j] = %acc[] } } } }"},
    {"two results of a sum without factors", 2,
     "module \"m\" tensor @f(%x: f32[2,8192] in, %y: f32[2] out) {"
     " parallel %i in 2 { register %acc: f32[] %acc[] = 0.0"
     " for %k in 8192 { %acc[] = %acc[] + %x[%i, %k] } %y[%i] = %acc[] / 8192.0 } }"},
    {"few terms", 1,
     "module \"m\" tensor @f(%x: f32[9,300] in, %w: f32[300,50] in, %y: f32[9,50] out) {"
     " parallel %i in 9 { parallel %j in 50 { register %acc: f32[] %acc[] = 0.0"
     " for %k in 300 { %acc[] = fma(%x[%i, %k], %w[%k, %j], %acc[]) } %y[%i, %j] = %acc[] } } }"},
    {"results for every compute unit", 1,
     "module \"m\" tensor @f(%x: f32[1024] in, %w: f32[1024,2048] in, %y: f32[2048] out) {"
     " parallel %j in 2048 { register %acc: f32[] %acc[] = 0.0"
     " for %k in 1024 { %acc[] = fma(%x[%k], %w[%k, %j], %acc[]) } %y[%j] = %acc[] } }"},
    {"a maximum is no sum", 1,
     "module \"m\" tensor @f(%x: f32[2,8192] in, %y: f32[2] out) {"
     " parallel %i in 2 { register %acc: f32[] %acc[] = -inf"
     " for %k in 8192 { %acc[] = max(%acc[], %x[%i, %k]) } %y[%i] = %acc[] } }"},
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

ParameterizedTestParameters(split_sum, same_values) {
    static int numbers[CASES * TARGETS];
    for (int i = 0; i < CASES * TARGETS; ++i) numbers[i] = i;
    return cr_make_param_array(int, numbers, CASES *TARGETS);
}

static void expect_same(bench_case *c, const float *plain, const char *name, const char *where) {
    berth_buf y = c->fn->param_count - 1;
    double difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < 5e-5, "%s, %s: differs by %g", name, where, difference);
}

ParameterizedTest(int *index, split_sum, same_values, .timeout = 240) {
    const sum_case *row = &cases[*index / TARGETS];
    int which = *index % TARGETS;
    bench_case c = support_case_parse(row->text);
    const berth_target *target = support_target(c.arena, targets[which]);
    support_fill(&c, 5);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
    const float *plain = c.buffers[c.fn->param_count - 1];
    status = berth_schedule_apply(c.fn, target);
    cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
    int kernels = (int)berth_schedule_nest_count(c.fn);
    cr_expect_eq(kernels, which == CORES ? 1 : row->kernels, "%s on %d: %d kernels", row->name,
                 which, kernels);
    status = support_interpret(&c);
    cr_assert(!status, "%s: scheduled: %s", row->name, berth_status_message(status));
    expect_same(&c, plain, row->name, "interpreted");
    const berth_codegen *codegen = berth_codegen_find(berth_device_kind_name(target->kind));
    if (device_is_here(codegen->kind)) {
        status = device_run(&c, codegen);
        cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
        expect_same(&c, plain, row->name, targets[which]);
    }
    support_case_destroy(&c);
}

// Kernels of the first case with a decision that is given; -1: it is refused.
static int kernels_with(const char *decision) {
    bench_case c = support_case_parse(cases[0].text);
    c.fn->decisions = berth_decisions_create(c.arena, 1);
    cr_assert_null(berth_decisions_parse(&c.fn->decisions->nests[0], decision));
    berth_status status = berth_schedule_apply(c.fn, support_target(c.arena, targets[0]));
    int kernels = status ? -1 : (int)berth_schedule_nest_count(c.fn);
    if (status)
        cr_expect(strstr(berth_status_message(status), decision), "%s",
                  berth_status_message(status));
    berth_status_free(status);
    support_case_destroy(&c);
    return kernels;
}

Test(split_sum, parts_that_are_given) {
    cr_expect_eq(kernels_with("parts=2"), 2);
    cr_expect_eq(kernels_with("parts=1"), 1);
    cr_expect_eq(kernels_with("parts=3"), -1);   // 2048 has no such part
    cr_expect_eq(kernels_with("parts=64"), -1);  // more than there may be
}

// On matrix units few rows have tiles of their own: parts are for the work-groups that there are, so that they come to
// nearly as many as there are units (132), whatever a tile of others would have.
Test(split_sum, groups_of_matrix_units) {
    static const char text[] =
        "module \"m\" tensor @f(%x: f16[4,4096] in, %w: f16[4096,4096] in, %y: f32[4,4096] out) {"
        " parallel %i in 4 { parallel %j in 4096 { register %acc: f32[] %acc[] = 0.0"
        " for %k in 4096 { %acc[] = %acc[] + f32(%x[%i, %k]) * f32(%w[%k, %j]) }"
        " %y[%i, %j] = %acc[] } } }";
    bench_case c = support_case_parse(text);
    const berth_target *target = support_target(c.arena, "cuda -arch=sm_80 -compute_units=132");
    berth_status status = berth_schedule_apply(c.fn, target);
    cr_assert(!status, "%s", berth_status_message(status));
    berth_codegen_result code;
    status = berth_codegen_find("cuda")->print(c.fn, target, "k", c.arena, &code);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_assert_eq(code.kernel_count, 2);
    const uint32_t *groups = code.kernels[0].groups;
    uint32_t all = groups[0] * groups[1] * groups[2];
    cr_expect(all <= 132 && all > 132 * 3 / 4, "%u work-groups", all);
    support_case_destroy(&c);
}
