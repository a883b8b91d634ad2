// Modules of 100,000 operations (case 19) and of deep regions, planned on a small stack: nothing
// recurses over them.
#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/planner/random_planned.h"
#include "tests/planner/support.h"

enum { operations = 100000, levels = 5000, stack_bytes = 128 * 1024 };

typedef struct large {
    berth_arena *arena;
    berth_module *module;
    berth_plan_options options;
    berth_plan *plan;
    berth_status status;
    berth_status (*make)(void *user);
    uint32_t every;  // an annotation every so many operations, cpu:0 and opencl:0 in turn; 0 = none
} large;

static berth_status make_chain(void *user) {
    large *l = user;
    const int64_t dims[1] = {4};
    berth_module *m = l->module = berth_module_create(l->arena, "large");
    berth_type_id type = berth_type_tensor(m, BERTH_DTYPE_F32, 1, dims);
    berth_func_id main = berth_graph_create(m, "main", 0);
    berth_value_id values[2] = {berth_graph_add_param(m, main, "a", type),
                                berth_graph_add_param(m, main, "b", type)};
    berth_device_id devices[2];
    BERTH_TRY(berth_virtual_device_parse(m->devices, "cpu:0", &devices[0]));
    BERTH_TRY(berth_virtual_device_parse(m->devices, "opencl:0", &devices[1]));
    for (uint32_t i = 0; i < operations; ++i) {
        values[0] = berth_graph_op1(m, main, BERTH_OP_ADD, values, 2, 0);
        berth_graph_get(m, main)->values.data[values[0]].type = type;
        if (!l->every || i % l->every) continue;
        values[0] = berth_graph_op1(m, main, BERTH_OP_ON_DEVICE, values, 1, 0);
        berth_graph *graph = berth_graph_get(m, main);
        graph->values.data[values[0]].type = type;
        berth_attrs_set(
            m, &graph->ops.data[graph->values.data[values[0]].op].attrs, "device",
            (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = devices[i / l->every % 2]});
    }
    berth_graph_set_results(m, main, values, 1);
    return BERTH_OK;
}

static void *plan_large(void *user) {
    large *l = user;
    l->status = plan_with(l->module, &l->options, &l->plan);
    return NULL;
}

static void plan_in_thread(large *l) {
    pthread_attr_t attributes;
    pthread_t thread;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, plan_large, l), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    require(l->status);
}

static void plan_checked(large *l) {
    l->arena = new_arena();
    l->options.target = parse_target(l->arena, target_gch);
    require(berth_arena_try(l->arena, l->make, l));
    plan_in_thread(l);
    const char *problem = planned_problem(l->module, l->options.target, false);
    cr_assert_null(problem, "%s", problem);
}

Test(planner, chain_of_100000) {
    large l = {.make = make_chain};
    plan_checked(&l);
    cr_expect_eq(l.plan->entry_count, operations);
    cr_expect_eq(l.plan->copy_count, 0);
    for (uint32_t i = 0; i < l.plan->entry_count; ++i)
        cr_assert_eq(l.plan->entries[i].device, l.options.target->default_device);
    berth_arena_destroy(l.arena);
}

// 1,000 annotations. What follows one goes with it (%b apart: it is with the first), up to the
// next, so that a copy stands after every one of them, and %b is copied once.
Test(planner, chain_of_100000_with_annotations) {
    large l = {.make = make_chain, .every = 100};
    plan_checked(&l);
    const berth_graph *graph =
        berth_graph_get(l.module, berth_module_find_function(l.module, "main"));
    uint32_t copies = 0, of_b = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind != BERTH_OP_DEVICE_COPY) continue;
        copies++;
        of_b += graph->values.data[op->inputs[0]].op == BERTH_NONE;
    }
    cr_expect_eq(of_b, 1, "%u copies of parameters", of_b);
    cr_expect_eq(copies, l.plan->copy_count);
    cr_expect_eq(copies, 1000 + 1, "%u copies", copies);
    berth_arena_destroy(l.arena);
}

// if in if in if; what is needed in the innermost is on the processor.
static berth_status make_nest(void *user) {
    large *l = user;
    const int64_t dims[1] = {4};
    berth_module *m = l->module = berth_module_create(l->arena, "nest");
    berth_type_id type = berth_type_tensor(m, BERTH_DTYPE_F32, 1, dims);
    berth_type_id flag = berth_type_tensor(m, BERTH_DTYPE_BOOL, 0, NULL);
    berth_func_id main = berth_graph_create(m, "main", 0);
    berth_value_id inputs[2] = {berth_graph_add_param(m, main, "a", type),
                                berth_graph_add_param(m, main, "b", type)};
    berth_value_id condition = berth_graph_add_param(m, main, "p", flag);
    berth_graph *graph = berth_graph_get(m, main);
    BERTH_TRY(
        berth_virtual_device_parse(m->devices, "opencl:0", &graph->values.data[inputs[0]].device));
    BERTH_TRY(
        berth_virtual_device_parse(m->devices, "cpu:0", &graph->values.data[inputs[1]].device));
    berth_region_id region = 0;
    for (uint32_t i = 0; i <= levels; ++i) {
        bool last = i == levels;
        berth_op_id op = berth_graph_add_op(m, main, region, last ? BERTH_OP_ADD : BERTH_OP_IF,
                                            last ? inputs : &condition, last ? 2 : 1, 1, 0);
        berth_value_id result = graph->ops.data[op].outputs[0];
        graph->values.data[result].type = type;
        berth_graph_set_region_results(m, main, region, &result, 1);
        if (last) break;
        region = berth_graph_add_region(m, main, op);
        berth_region_id other = berth_graph_add_region(m, main, op);
        berth_graph_set_region_results(m, main, other, &inputs[0], 1);
    }
    return BERTH_OK;
}

Test(planner, nest_of_5000) {
    large l = {.make = make_nest};
    plan_checked(&l);
    cr_assert_eq(l.plan->copy_count, 1);
    const berth_graph *graph =
        berth_graph_get(l.module, berth_module_find_function(l.module, "main"));
    const berth_op *copy = &graph->ops.data[l.plan->copies[0].op];
    const berth_op *user = &graph->ops.data[l.plan->copies[0].before];
    cr_expect_eq(user->kind, BERTH_OP_ADD);
    cr_expect_eq(copy->region, user->region, "the copy is not in the branch that needs it");
    berth_arena_destroy(l.arena);
}
