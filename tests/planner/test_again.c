// Planning again changes nothing: modules that call their own @main, and modules that a strategy
// has planned.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/planner/random_planned.h"
#include "tests/planner/support.h"

#define T ": f32[4]"

static double some_time_ns(void *user, const berth_module *module, berth_func_id function,
                           berth_op_id op, uint32_t device) {
    (void)user;
    (void)module;
    return 1e3 * (1 + (op * 2654435761u + function * 40503u + device * 97u) % 61);
}

static const char *planned(const char *text, berth_plan_options options, berth_arena *arena) {
    options.target = parse_target(arena, target_gch);
    berth_module *module = parse_module(arena, text);
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    const char *problem = planned_problem(module, options.target, options.host_bound);
    cr_expect_null(problem, "%s in\n%s", problem, print_module(module));
    (void)plan_again(module, &options);
    return show_module(module, options.target);
}

static void expect_shown(const char *text, const char *expected) {
    berth_arena *arena = new_arena();
    const char *shown = planned(text, (berth_plan_options){.host_bound = true}, arena);
    cr_expect_str_eq(shown, expected, "%sexpected\n%s", shown, expected);
    berth_arena_destroy(arena);
}

#define RECURSION                                                                                  \
    "graph @main(%p: bool[], %x" T ") { %r = if(%p): f32[4] { return %x } else { %y = neg(%x) "    \
    "%z = call @main(%p, %y)" T " %t = exp(%z) return %t } return %r }"

// Bound to the host, what recurs is a function of its own, on the device as without the host's
// border.
Test(again, recursive_main) {
    expect_shown(RECURSION, "@main p:H x:H x>G r:G r>H R:H\n"
                            "@main.1 p:H x:G r:G { =x} {y:G z:G t:G =t} R:G\n");
}

// Demands inside hold, though @main's own parameters and results are on the host.
Test(again, recursive_main_with_demands) {
    expect_shown("graph @main(%p: bool[], %x" T " on cpu:0) { %r = if(%p): f32[4] { %v = neg(%x) "
                 "return %v } else { %z = call @main(%p, %x)" T " return %z } "
                 "%m = on_device(%r) {device = opencl:0} return %m }",
                 "@main p:H x:H x>C m:G m>H R:H\n"
                 "@main.1 p:H x:C r:G {x>G v:G =v} {z:G =z} R:G\n");
}

Test(again, main_called_by_others) {
    expect_shown("graph @f(%p: bool[], %v" T ") { %w = relu(%v) %u = call @main(%p, %w)" T
                 " return %u } graph @main(%p: bool[], %x" T ") { %r = if(%p): f32[4] { return %x }"
                 " else { %z = call @f(%p, %x)" T " return %z } return %r }",
                 "@f p:H v:G w:G u:G R:G\n@main p:H x:H x>G r:G r>H R:H\n"
                 "@main.1 p:H x:G r:G { =x} {z:G =z} R:G\n");
}

Test(again, main_as_a_value) {
    expect_shown("graph @main(%p: bool[], %x" T ") { %r = if(%p): f32[4] { return %x } else { "
                 "%f = func_ref @main(): fn(bool[], f32[4])->(f32[4]) %z = call_value(%f, %p, %x) "
                 "return %z } return %r }",
                 "@main p:H x:H x>G r:G r>H R:H\n"
                 "@main.1 p:H x:G r:G { =x} {f:- z:G =z} R:G\n");
}

// Not bound to the host, @main is a function as others.
Test(again, recursive_main_without_border) {
    berth_arena *arena = new_arena();
    const char *shown = planned(RECURSION, (berth_plan_options){0}, arena);
    cr_expect_str_eq(shown, "@main p:H x:G r:G { =x} {y:G z:G t:G =t} R:G\n", "%s", shown);
    berth_arena_destroy(arena);
}

// What a strategy planned has a plan by that strategy again, also where it looks at placements of
// one kind only: what is decided is not looked for.
Test(again, every_strategy) {
    static const char *const objectives[] = {"latency", "throughput", "memory"};
    static const char *const texts[] = {
        "graph @main(%n: i64[], %x" T ", %w" T ") { %y = neg(%x) %r = loop(%n, _, %y) (%i: i64[], "
        "%keep: bool[], %v" T ") { %t = add(%v, %w) return %keep, %t } return %r }",
        "graph @main(%a" T ", %b" T ") { %l = add(%a, %b) %m = on_device(%l) {device = cpu:0} "
        "%r = exp(%b) %s = sub(%r, %m) %t = neg(%s) return %t, %l }",
        RECURSION};
    const char *name = NULL, *doc = NULL;
    uint32_t tried = 0;
    for (uint32_t i = 0; berth_plan_strategy_at(i, &name, &doc); ++i) {
        for (uint32_t k = 0; k < 9; ++k) {
            berth_arena *arena = new_arena();
            berth_plan_options options = {.target = parse_target(arena, target_gch),
                                          .cost = {.time_ns = some_time_ns},
                                          .strategy = name,
                                          .objective = objectives[k % 3],
                                          .node_budget = 5000,
                                          .host_bound = true};
            berth_module *module = parse_module(arena, texts[k / 3]);
            berth_plan *plan = NULL;
            berth_status status = plan_with(module, &options, &plan);
            bool applies = !status || !strstr(berth_status_message(status), "does not apply");
            berth_status_free(applies ? NULL : status);
            if (applies) {
                require(status);
                (void)plan_again(module, &options);
                tried++;
            }
            berth_arena_destroy(arena);
        }
    }
    cr_expect_geq(tried, 40, "only %u plans", tried);
}
