// Times that rules gave for operations when they were planned, for the kernels that these become: the
// operations that a kernel holds are known by where they come from.
#include "compiler/pipeline.h"
#include "compiler/rules.h"
#include "planner/planner.h"

static const berth_kind_rules *rules_with_times(const berth_pipeline *pipeline, uint32_t device) {
    const berth_multi_target *target = pipeline->options->target;
    const berth_kind_rules *rules = berth_rules_find(target->devices[device].target->kind);
    return rules && rules->time_ns ? rules : NULL;
}

void berth_pipeline__note_times(const berth_module *module, berth_func_id main,
                                berth_pipeline *pipeline) {
    const berth_graph *graph = berth_graph_get(module, main);
    pipeline->given.count = 0;
    berth_arena *arena = module->arena;
    for (uint32_t i = 0; i < pipeline->plan->entry_count; ++i) {
        const berth_plan_entry *entry = &pipeline->plan->entries[i];
        if (!rules_with_times(pipeline, entry->device) || !(entry->time_ns > 0)) continue;
        berth_given_time given = {graph->ops.data[entry->op].kind, entry->loc, entry->time_ns,
                                  berth_work_of_op(module, main, entry->op, arena).key};
        berth_vec_push(arena, &pipeline->given, given);
    }
}

// What was given for its operations; *out_key is that of the only one, else NULL. 0: nothing.
static double given_for(const berth_module *module, const berth_pipeline *pipeline,
                        berth_func_id function, const char **out_key) {
    const berth_graph *graph = berth_graph_get(module, function);
    double ns = 0;
    *out_key = NULL;
    for (uint32_t i = 0; graph && i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        for (uint32_t k = 0; k < pipeline->given.count; ++k) {
            const berth_given_time *given = &pipeline->given.data[k];
            if (given->kind != op->kind || given->loc != op->loc) continue;
            *out_key = ns > 0 ? NULL : given->key;
            ns += given->ns;
            break;
        }
    }
    return ns;
}

void berth_pipeline__give_times(const berth_module *module, berth_func_id main,
                                berth_pipeline *pipeline) {
    const berth_graph *graph = berth_graph_get(module, main);
    for (uint32_t i = 0; pipeline->given.count && i < pipeline->work_count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (!pipeline->works[i]) continue;
        uint32_t device = berth_plan_device_of(module, pipeline->options->target, op->device);
        const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
        if (device == BERTH_NO_INDEX || !rules_with_times(pipeline, device) || !callee) continue;
        berth_work *work = pipeline->works[i];
        work->given_ns = given_for(module, pipeline, callee->function, &work->planned_key);
    }
}
