// The planner's second run, after lowering: scopes that kernels give to their buffers reach the
// values between them.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/graph/graph.h"
#include "ir/tensor/function.h"
#include "target/virtual_device.h"
#include "tests/check.h"

static void run(berth_module *module, const berth_multi_target *target, const char *const *passes) {
    berth_compile_options options = {.target = target, .no_fusion = true};
    berth_compile_result result;
    assert_ok(berth_compile_run_passes(module, passes, &options, &result));
}

// @main(x) = relu(relu(x)), lowered, each relu a tensor function of its own.
static berth_module *lowered(berth_arena *arena, const berth_multi_target *target) {
    static const char *const passes[] = {"keep-names", "plan-devices", "fuse", "lower", NULL};
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id main = berth_graph_create(module, "main", 0);
    berth_type_id type = berth_type_tensor(module, BERTH_DTYPE_F32, 1, (int64_t[]){4});
    berth_value_id value = berth_graph_add_param(module, main, "x", type);
    for (int i = 0; i < 2; ++i) {
        value = berth_graph_op1(module, main, BERTH_OP_RELU, &value, 1, 0);
        berth_graph_get(module, main)->values.data[value].type = type;
    }
    berth_graph_set_results(module, main, &value, 1);
    run(module, target, passes);
    return module;
}

static const char *scope_of(const berth_module *module, const berth_graph *graph,
                            berth_value_id value) {
    const char *scope =
        berth_virtual_device_get(module->devices, graph->values.data[value].device).memory_scope;
    return scope ? scope : "none";
}

static const berth_op *producer(const berth_graph *graph, berth_value_id value) {
    return &graph->ops.data[graph->values.data[value].op];
}

Test(plan_scopes, a_copy_stands_between_kernels_that_use_different_scopes) {
    static const char *const passes[] = {"plan-scopes", NULL};
    berth_arena *arena = NULL;
    berth_multi_target *target = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_target_parse(arena, "cpu", NULL, &target));
    berth_module *module = lowered(arena, target);
    uint32_t kernels = 0;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        berth_tfn *fn = module->functions.data[i].removed ? NULL : berth_tfn_get(module, i);
        if (!fn) continue;
        fn->bufs.data[0].memory_scope = berth_module_intern(module, "in");
        fn->bufs.data[1].memory_scope = berth_module_intern(module, "out");
        ++kernels;
    }
    cr_assert_eq(kernels, 2);
    run(module, target, passes);

    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    const berth_op *copy = NULL, *second = NULL;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i)
        if (graph->ops.data[root->ops.data[i]].kind == BERTH_OP_CALL)
            second = &graph->ops.data[root->ops.data[i]];
    copy = producer(graph, second->inputs[0]);
    cr_assert_eq(copy->kind, BERTH_OP_DEVICE_COPY);
    cr_assert_str_eq(scope_of(module, graph, copy->outputs[0]), "in");
    cr_assert_str_eq(scope_of(module, graph, copy->inputs[0]), "out");
    cr_assert_eq(producer(graph, copy->inputs[0])->kind, BERTH_OP_CALL);
    berth_arena_destroy(arena);
}
