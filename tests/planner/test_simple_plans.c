// When a plan that a search found is taken, and when a simple one is (planner/simple_plans.c).
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/planner/support.h"

// Processor c, and g with a memory of its own: processor cores behind a driver, or a GPU.
#define MACHINE(subgroup)                                                                          \
    "{\"kind\": \"multi\", \"host\": \"c\", \"default_device\": \"c\", \"devices\": ["             \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"                                          \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\", \"subgroup_size\": " subgroup "}}]}"
#define CORES MACHINE("1")
#define GPU MACHINE("32")

typedef struct simple_case {
    const char *what, *target;
    double copy_us;
    double us[3][2];     // per operation, on c and on g
    const char *places;  // of the operations
    double apart_us;  // longer, where what comes before is elsewhere: fused to it where it is not
    bool guessed;     // g's kernels were not measured
} simple_case;

static double time_of(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id op, uint32_t device) {
    const simple_case *k = user;
    static const berth_op_kind kinds[] = {BERTH_OP_RELU, BERTH_OP_NEG, BERTH_OP_EXP};
    for (int i = 0; i < 3; ++i)
        if (berth_graph_get(module, function)->ops.data[op].kind == kinds[i])
            return k->us[i][device] * 1e3;
    return 0;
}

// A kernel for each operation.
static bool kernels_of(void *user, const berth_module *module, berth_func_id main,
                       const uint32_t *devices, berth_arena *arena,
                       const berth_plan_kernel **out_kernels, uint32_t *out_count) {
    const berth_region *root = &berth_graph_get(module, main)->regions.data[0];
    berth_plan_kernel *kernels =
        berth_arena_new_array(arena, berth_plan_kernel, root->ops.count + 1);
    uint32_t before = BERTH_NO_INDEX;
    *out_count = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id op = root->ops.data[i];
        double ns = time_of(user, module, main, op, devices[op]);
        if (ns == 0) continue;
        if (before != BERTH_NO_INDEX && before != devices[op])
            ns += ((const simple_case *)user)->apart_us * 1e3;
        before = devices[op];
        bool guessed = ((const simple_case *)user)->guessed && devices[op] == 1;
        kernels[(*out_count)++] =
            (berth_plan_kernel){.op = op,
                                .last = op,
                                .time_ns = ns,
                                .figure = guessed ? BERTH_COST_INTERPOLATED : BERTH_COST_MEASURED};
    }
    *out_kernels = kernels;
    return true;
}

static bool copy_of(void *user, uint32_t from, uint32_t to, uint64_t size_bytes, double *out_ns) {
    (void)size_bytes;
    *out_ns = ((const simple_case *)user)->copy_us * 1e3;
    return from != to;
}

static const simple_case cases[] = {
    // 500 us on c. With the second and third on g 400 and two copies.
    {"a split that gains less than its copies",
     CORES,
     30,
     {{100, 200}, {200, 150}, {200, 150}},
     "ccc",
     0,
     false},
    {"a split that gains more", CORES, 10, {{100, 200}, {200, 150}, {200, 150}}, "cgg", 0, false},
    // 450 us, and twice a fifth of 165 that the two kernels may be longer: 47 us.
    {"a split that gains a little",
     CORES,
     10,
     {{100, 200}, {200, 165}, {200, 165}},
     "cgg",
     0,
     false},
    {"one of kernels that were not measured",
     CORES,
     10,
     {{100, 200}, {200, 165}, {200, 165}},
     "ccc",
     0,
     true},
    {"one of such that gains more",
     CORES,
     10,
     {{100, 200}, {200, 150}, {200, 150}},
     "cgg",
     0,
     true},
    {"one whose kernels take longer",
     CORES,
     10,
     {{100, 200}, {200, 150}, {200, 150}},
     "ccc",
     90,
     false},
    {"copies that no core makes", GPU, 30, {{100, 200}, {200, 150}, {200, 150}}, "cgg", 0, false},
    // 470 us on c, 320 on g, 310 with the second on c, which copies twice more.
    {"one device other than the rules'",
     CORES,
     10,
     {{200, 100}, {70, 100}, {200, 100}},
     "ggg",
     0,
     false},
    {"a split of a GPU's", GPU, 10, {{200, 100}, {70, 100}, {200, 100}}, "gcg", 0, false},
};
enum { case_count = sizeof(cases) / sizeof(cases[0]) };

ParameterizedTestParameters(simple_plans, choice) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

ParameterizedTest(int *index, simple_plans, choice) {
    simple_case k = cases[*index];
    berth_arena *arena = new_arena();
    berth_plan_options options = {
        .target = parse_target(arena, k.target),
        .cost = {.time_ns = time_of, .kernels = kernels_of, .copy_ns = copy_of, .user = &k},
        .strategy = "auto",
        .host_bound = true};
    berth_module *module = parse_module(
        arena, "graph @main(%x: f32[256]) { %a = relu(%x) %b = neg(%a) %d = exp(%b) return %d }");
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    char places[8] = "";
    for (uint32_t i = 0; i < plan->entry_count && i < 7; ++i)
        places[i] = plan->entries[i].device == 0 ? 'c' : 'g';
    cr_expect_str_eq(places, k.places, "%s: %s in %g us", k.what, places, plan->predicted_ns / 1e3);
    berth_arena_destroy(arena);
}
