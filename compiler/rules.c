#include "compiler/rules.h"

#include <string.h>

#include "ir/extend.h"
#include "planner/planner.h"

extern const berth_kind_rules berth_npu_rules;  // npu_rules.c

static const berth_kind_rules *const built_in[] = {&berth_npu_rules};
static const berth_kind_rules *registered[BERTH_EXTEND_MAX];
static uint32_t registered_count;

static const berth_kind_rules *find(const char *kind) {
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); ++i)
        if (strcmp(built_in[i]->kind, kind) == 0) return built_in[i];
    for (uint32_t i = 0; i < registered_count; ++i)
        if (strcmp(registered[i]->kind, kind) == 0) return registered[i];
    return NULL;
}

berth_status berth_rules_register(const berth_kind_rules *rules) {
    if (find(rules->kind))
        return berth_status_make(BERTH_ALREADY_EXISTS, "there are rules for %s already",
                                 rules->kind);
    if (registered_count == BERTH_EXTEND_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "rules of more than %d kinds are registered",
                                 BERTH_EXTEND_MAX);
    registered[registered_count++] = rules;
    return BERTH_OK;
}

const berth_op *berth_rules_op(const berth_rules_question *q) {
    return &berth_graph_get(q->module, q->function)->ops.data[q->op];
}

const berth_type *berth_rules_type(const berth_rules_question *q, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    return berth_type_get(q->module, graph->values.data[value].type);
}

const berth_kind_rules *berth_rules_find(berth_device_kind kind) {
    return find(berth_device_kind_name(kind));
}

bool berth_rules_only_described(berth_device_kind kind) {
    const berth_kind_rules *rules = berth_rules_find(kind);
    return rules && rules->described;
}

bool berth_rules_want_whole(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d) {
        const berth_kind_rules *rules = berth_rules_find(target->devices[d].target->kind);
        if (rules && rules->whole_quantized && !target->devices[d].host_only) return true;
    }
    return false;
}

const berth_kind_rules *berth_rules_of(const berth_module *module, berth_func_id function,
                                       berth_op_id op, const berth_multi_target *target,
                                       berth_arena *arena, berth_rules_question *out_question) {
    const berth_graph *graph = berth_graph_get(module, function);
    uint32_t device = berth_plan_device_of(module, target, graph->ops.data[op].device);
    if (device == BERTH_NO_INDEX) return NULL;
    const berth_target *on = target->devices[device].target;
    *out_question = (berth_rules_question){.module = module,
                                           .function = function,
                                           .op = op,
                                           .target = on,
                                           .arena = arena,
                                           .machine = target,
                                           .device = device};
    return berth_rules_find(on->kind);
}
