// Modules of 100,000 operations (case 19), planned on a small stack: nothing recurses over them.
#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/planner/random_planned.h"
#include "tests/planner/support.h"

enum { operations = 100000, stack_bytes = 128 * 1024 };

typedef struct large {
    berth_arena *arena;
    berth_module *module;
    berth_plan_options options;
    berth_plan *plan;
    berth_status status;
    uint32_t every;  // an annotation every so many operations, cpu:0 and opencl:0 in turn; 0 = none
} large;

static berth_status make(void *user) {
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

static void plan_chain(large *l) {
    l->arena = new_arena();
    l->options.target = parse_target(l->arena, target_gch);
    require(berth_arena_try(l->arena, make, l));
    plan_in_thread(l);
    const char *problem = planned_problem(l->module, l->options.target, false);
    cr_assert_null(problem, "%s", problem);
}

Test(planner, chain_of_100000) {
    large l = {0};
    plan_chain(&l);
    cr_expect_eq(l.plan->entry_count, operations);
    cr_expect_eq(l.plan->copy_count, 0);
    for (uint32_t i = 0; i < l.plan->entry_count; ++i)
        cr_assert_eq(l.plan->entries[i].device, l.options.target->default_device);
    berth_arena_destroy(l.arena);
}

// 1,000 annotations. What follows one goes with it (%b apart: it is with the first), up to the
// next, so that a copy stands behind every one of them, and %b is copied once.
Test(planner, chain_of_100000_with_annotations) {
    large l = {.every = 100};
    plan_chain(&l);
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
