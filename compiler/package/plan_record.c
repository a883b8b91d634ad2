// The part of a plan that a program carries, kept as attributes of the planned function: a module
// that was printed and read again goes on to the same program.
#include <string.h>

#include "compiler/pipeline.h"

#define ATTR_NODES "plan_nodes"      // names of the model's nodes, as planned
#define ATTR_OPS "plan_ops"          // their operators
#define ATTR_REASONS "plan_reasons"  // why they are where they are
#define ATTR_DEVICES "plan_devices"  // index of the device in the target
#define ATTR_HOST "plan_host"        // 1 where the operation needs the host
#define ATTR_NS "plan_ns"            // predicted time

static void set_strings(berth_module *module, berth_func_id main, const char *name,
                        const berth_str_id *strings, uint32_t count) {
    berth_attrs_set(module, &berth_module_function(module, main)->attrs, name,
                    (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = count, .strings = strings});
}

// As the model names it; of text, as we do.
static const char *operator_of(const berth_module *module, berth_func_id main,
                               const berth_plan_entry *entry) {
    const char *names = berth_loc_names(module, entry->loc, true, module->arena);
    berth_op_kind kind = berth_graph_get(module, main)->ops.data[entry->op].kind;
    return strspn(names, "+") == strlen(names) ? berth_op_facts_get(kind)->name : names;
}

void berth_pipeline__record_plan(berth_module *module, berth_func_id main, const berth_plan *plan) {
    berth_arena *arena = module->arena;
    uint32_t count = plan->entry_count;
    berth_str_id *nodes = berth_arena_new_array(arena, berth_str_id, count);
    berth_str_id *ops = berth_arena_new_array(arena, berth_str_id, count);
    berth_str_id *reasons = berth_arena_new_array(arena, berth_str_id, count);
    int64_t *devices = berth_arena_new_array(arena, int64_t, count);
    int64_t *host = berth_arena_new_array(arena, int64_t, count);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_plan_entry *entry = &plan->entries[i];
        nodes[i] = berth_module_intern(module, berth_loc_label(module, entry->loc, arena));
        ops[i] = berth_module_intern(module, operator_of(module, main, entry));
        reasons[i] = berth_module_intern(module, entry->reason);
        devices[i] = entry->device;
        host[i] = entry->host_operation;
    }
    set_strings(module, main, ATTR_NODES, nodes, count);
    set_strings(module, main, ATTR_OPS, ops, count);
    set_strings(module, main, ATTR_REASONS, reasons, count);
    berth_attrs *attrs = &berth_module_function(module, main)->attrs;
    berth_attrs_set_ints(module, attrs, ATTR_DEVICES, devices, count);
    berth_attrs_set_ints(module, attrs, ATTR_HOST, host, count);
    berth_attrs_set_float(module, attrs, ATTR_NS, plan->predicted_ns);
}

static const berth_str_id *get_strings(const berth_module *module, const berth_attrs *attrs,
                                       const char *name, uint32_t count) {
    const berth_attr *attr = berth_attrs_find(module, attrs, name);
    return attr && attr->kind == BERTH_ATTR_STRINGS && attr->count == count ? attr->strings : NULL;
}

berth_status berth_pipeline__read_plan(const berth_module *module, berth_func_id main,
                                       const berth_multi_target *target, berth_program *program) {
    const berth_attrs *attrs = &berth_module_function(module, main)->attrs;
    uint32_t count = 0, host_count = 0;
    const int64_t *devices = berth_attrs_ints(module, attrs, ATTR_DEVICES, &count);
    const int64_t *host = berth_attrs_ints(module, attrs, ATTR_HOST, &host_count);
    const berth_str_id *nodes = get_strings(module, attrs, ATTR_NODES, count);
    const berth_str_id *ops = get_strings(module, attrs, ATTR_OPS, count);
    const berth_str_id *reasons = get_strings(module, attrs, ATTR_REASONS, count);
    bool fits = host_count == count && (count == 0 || (nodes && ops && reasons));
    for (uint32_t i = 0; fits && i < count; ++i)
        fits = devices[i] >= 0 && devices[i] < target->device_count;
    if (!fits)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the attributes \"plan_...\" of @main do not fit each other or "
                                 "the target");
    berth_program_placement *placements =
        berth_arena_new_array(module->arena, berth_program_placement, count);
    for (uint32_t i = 0; i < count; ++i)
        placements[i] = (berth_program_placement){.node = berth_module_str(module, nodes[i]),
                                                  .op = berth_module_str(module, ops[i]),
                                                  .device = (uint32_t)devices[i],
                                                  .reason = berth_module_str(module, reasons[i]),
                                                  .host_operation = host[i] != 0};
    program->placements = placements;
    program->placement_count = count;
    program->predicted_ns = berth_attrs_float(module, attrs, ATTR_NS, 0);
    return BERTH_OK;
}
