// Plans for devices that share a memory or a link: together they have its bandwidth once.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/planner/support.h"

// Every operation takes 100 us anywhere, `part` of that for the memory's bandwidth.
static double hundred_us(void *user, const berth_module *module, berth_func_id function,
                         berth_op_id op, uint32_t device) {
    (void)user, (void)module, (void)function, (void)op, (void)device;
    return 100e3;
}

static double part_of_memory(void *user, const berth_module *module, berth_func_id function,
                             berth_op_id op, uint32_t device) {
    const double *part = user;
    return *part * hundred_us(NULL, module, function, op, device);
}

static bool one_us(void *user, uint32_t from, uint32_t to, uint64_t size_bytes, double *out_ns) {
    (void)user, (void)size_bytes;
    *out_ns = 1e3;
    return from != to;
}

// Three operations, two of which could run beside each other: 201 us and hand-overs on two
// devices, 300 us on one. What takes the whole memory is no faster on two.
Test(memory_bandwidth, branches_are_split_where_the_memory_serves_both) {
    static const char target_of[] =
        "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["
        "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"
        "{\"name\": \"g\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
        "{\"name\": \"ram\", \"reached_by\": [\"c\", \"g\"], \"capacity_bytes\": 1000000}]}";
    static const struct {
        double part, most_us;
        bool split;
    } cases[] = {{0, 210, true}, {0.5, 210, true}, {1, 300.001, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = new_arena();
        double part = cases[i].part;
        berth_multi_target *target = parse_target(arena, target_of);
        berth_plan_options options = {.target = target,
                                      .cost = {.time_ns = hundred_us,
                                               .memory_ns = part_of_memory,
                                               .copy_ns = one_us,
                                               .user = &part},
                                      .strategy = "auto",
                                      .host_bound = true};
        berth_module *module = parse_module(
            arena,
            "graph @main(%x: f32[256]) { %a = relu(%x) %b = neg(%x) %d = add(%a, %b) return %d }");
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        const char *places = show_module(module, target);
        cr_expect_eq(strchr(places, 'G') != NULL, cases[i].split, "part %g: %s", part, places);
        cr_expect_leq(plan->value, cases[i].most_us * 1e3, "part %g: %g", part, plan->value);
        cr_expect_geq(plan->value, 200e3, "part %g: %g", part, plan->value);
        cr_expect(plan->proven, "part %g: bound %g of %g", part, plan->lower_bound, plan->value);
        berth_arena_destroy(arena);
    }
}

// 1 KiB to each of two devices takes 10.024 us, and so do the results: beside each other over two
// links, in turn over one bus.
Test(memory_bandwidth, copies_of_one_bus_take_turns) {
    static const char target_of[] =
        "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["
        "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"h\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
        "{\"name\": \"one\", \"reached_by\": [\"g\"], \"capacity_bytes\": 1000000},"
        "{\"name\": \"two\", \"reached_by\": [\"h\"], \"capacity_bytes\": 1000000},"
        "{\"name\": \"ram\", \"reached_by\": [\"c\"], \"capacity_bytes\": 1000000}], "
        "\"links\": ["
        "{\"from\": \"ram\", \"to\": \"one\", \"bandwidth_bytes_per_s\": 1e9, "
        "\"latency_ns\": 9000, \"bus\": \"%s\"},"
        "{\"from\": \"ram\", \"to\": \"two\", \"bandwidth_bytes_per_s\": 1e9, "
        "\"latency_ns\": 9000, \"bus\": \"pcie\"}]}";
    static const struct {
        const char *bus;
        double us;
    } cases[] = {{"other", 10.024 + 100 + 10.024 + 100}, {"pcie", 2 * 10.024 + 100 + 10.024 + 100}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = new_arena();
        berth_multi_target *target =
            parse_target(arena, berth_arena_printf(arena, target_of, cases[i].bus));
        berth_plan_options options = {.target = target,
                                      .cost = {.time_ns = hundred_us},
                                      .strategy = "auto",
                                      .host_bound = true};
        berth_module *module =
            parse_module(arena, "graph @main(%x: f32[256]) { %a = relu(%x) on opencl:0 "
                                "%b = neg(%x) on opencl:1 %d = add(%a, %b) on cpu:0 return %d }");
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        cr_expect_float_eq(plan->value, cases[i].us * 1e3, 1e-3, "bus %s: %g", cases[i].bus,
                           plan->value);
        berth_arena_destroy(arena);
    }
}

// What one device of each pair makes goes straight to the other, 1 MiB in 1.048576 ms: beside each other
// over links of their own, and no faster than in turn where all these links are one bus.
Test(memory_bandwidth, direct_links_of_one_bus_take_turns) {
    enum { pairs = 5 };
    for (int one = 0; one < 2; ++one) {
        berth_arena *arena = new_arena();
        berth_strbuf devices = berth_strbuf_make(arena), memories = berth_strbuf_make(arena),
                     links = berth_strbuf_make(arena), text = berth_strbuf_make(arena);
        berth_strbuf_add(&text, "graph @main(%x: f32[262144]) {\n");
        for (int i = 0; i < 2 * pairs; ++i) {
            berth_strbuf_addf(&devices, "{\"name\": \"g%d\", \"target\": {\"kind\": \"opencl\"}}, ",
                              i);
            berth_strbuf_addf(&memories,
                              "{\"name\": \"m%d\", \"reached_by\": [\"g%d\"], "
                              "\"capacity_bytes\": 1e9}, ",
                              i, i);
            berth_strbuf_addf(&links,
                              "%s{\"from\": \"ram\", \"to\": \"m%d\", "
                              "\"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 0}",
                              i ? ", " : "", i);
        }
        for (int i = 0; i < pairs; ++i) {
            berth_strbuf_addf(&links,
                              ", {\"from\": \"m%d\", \"to\": \"m%d\", "
                              "\"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 0, \"bus\": "
                              "\"switch%d\"}",
                              2 * i, 2 * i + 1, one ? 0 : i);
            berth_strbuf_addf(&text,
                              "  %%a%d = relu(%%x) on opencl:%d\n  %%b%d = neg(%%a%d) on "
                              "opencl:%d\n",
                              i, 2 * i, i, i, 2 * i + 1);
        }
        for (int i = 1; i < pairs; ++i)
            berth_strbuf_addf(&text, "  %%s%d = add(%%%s%d, %%b%d) on cpu:0\n", i,
                              i == 1 ? "b" : "s", i - 1, i);
        berth_strbuf_addf(&text, "  return %%s%d\n}\n", pairs - 1);
        berth_multi_target *target = parse_target(
            arena, berth_arena_printf(arena,
                                      "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": [%s"
                                      "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], "
                                      "\"memories\": [%s{\"name\": \"ram\", \"reached_by\": "
                                      "[\"c\"], \"capacity_bytes\": 1e9}], \"links\": [%s]}",
                                      berth_strbuf_text(&devices), berth_strbuf_text(&memories),
                                      berth_strbuf_text(&links)));
        berth_plan_options options = {.target = target,
                                      .cost = {.time_ns = hundred_us},
                                      .strategy = "auto",
                                      .host_bound = true};
        berth_module *module = parse_module(arena, berth_strbuf_text(&text));
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        if (one)
            cr_expect_float_eq(plan->value, pairs * 1048576.0, 1, "%g", plan->value);
        else
            cr_expect_lt(plan->value, 4.2e6, "%g", plan->value);
        uint32_t straight = 0;
        for (uint32_t i = 0; i < plan->copy_count; ++i)
            straight += *plan->copies[i].bus != 0 && plan->copies[i].bandwidth_bytes_per_s == 1e9;
        cr_expect_eq(straight, one ? (uint32_t)pairs : 0, "%u of %u", straight, plan->copy_count);
        berth_arena_destroy(arena);
    }
}

// A device computes beside two operations of the host, and a third: 300 us. These read the host's
// memory all the time, or half of it; 1 KiB goes out of it and comes in, 1.024 us each.
Test(memory_bandwidth, copies_take_of_the_hosts_memory) {
    static const char target_of[] =
        "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["
        "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
        "{\"name\": \"own\", \"reached_by\": [\"g\"], \"capacity_bytes\": 1e9},"
        "{\"name\": \"ram\", \"reached_by\": [\"c\"], \"capacity_bytes\": 1e9, "
        "\"bandwidth_bytes_per_s\": 1e9}], \"links\": [{\"from\": \"ram\", \"to\": \"own\", "
        "\"bandwidth_bytes_per_s\": 2e9, \"latency_ns\": 0}]}";
    static const struct { double part, us; } cases[] = {{0.5, 300}, {1, 302.048}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = new_arena();
        double part = cases[i].part;
        berth_multi_target *target = parse_target(arena, target_of);
        berth_plan_options options = {
            .target = target,
            .cost = {.time_ns = hundred_us, .memory_ns = part_of_memory, .user = &part},
            .strategy = "auto",
            .host_bound = true};
        berth_module *module = parse_module(
            arena, "graph @main(%x: f32[256]) { %a = relu(%x) on opencl:0 %b = neg(%x) on cpu:0 "
                   "%c = abs(%b) on cpu:0 %d = add(%a, %c) on cpu:0 return %d }");
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        cr_expect_float_eq(plan->value, cases[i].us * 1e3, 1e-3, "part %g: %g", part, plan->value);
        berth_arena_destroy(arena);
    }
}
