// What one machine does. The operations of main in order, with every copy in its place, are a
// schedule that all machines could follow together: each follows its own part of it, so a receive
// waits only for what comes before it there.
#include <string.h>

#include "compiler/decompose/decompose.h"
#include "compiler/passes/check.h"
#include "compiler/pipeline.h"
#include "ir/graph/graph.h"
#include "target/change.h"
#include "target/virtual_device.h"

typedef struct keeper {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    const berth_multi_target *own;  // of the machine alone
    uint32_t machine;
    bool *here;  // per value of main: the machine has it
    int64_t channels;
} keeper;

static berth_graph *main_graph(const keeper *k) {
    return berth_graph_get(k->module, k->main);
}

// BERTH_NO_INDEX where nothing says so.
static uint32_t device_of(const keeper *k, berth_device_id id) {
    return id ? berth_multi_target_resolve(k->target,
                                           berth_virtual_device_get(k->module->devices, id))
              : BERTH_NO_INDEX;
}

static berth_status machine_of(const keeper *k, berth_device_id id, berth_loc_id loc,
                               uint32_t *out_machine) {
    uint32_t device = device_of(k, id);
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: it is on no device of the target: plan-devices decides that",
                                 berth_loc_describe(k->module, loc, k->module->arena));
    *out_machine = k->target->devices[device].machine;
    return BERTH_OK;
}

static void set_machine_name(keeper *k, berth_op *op, const char *name, uint32_t machine) {
    berth_attrs_set_string(k->module, &op->attrs, name, k->target->machines[machine].name);
}

// A copy from one machine to another: both number it, whether they have a part in it or not.
static void cross(keeper *k, berth_op *op, uint32_t from, uint32_t to, bool *out_kept) {
    int64_t channel = k->channels++;
    const berth_attrs none = {0};
    berth_value_id result = op->outputs[0];
    *out_kept = from == k->machine || to == k->machine;
    op->attrs = none;
    berth_attrs_set_int(k->module, &op->attrs, "channel", channel);
    if (from == k->machine) {
        op->kind = BERTH_OP_SEND;
        op->output_count = 0;
        op->device = main_graph(k)->values.data[op->inputs[0]].device;
        set_machine_name(k, op, "to", to);
    } else if (to == k->machine) {
        op->kind = BERTH_OP_RECEIVE;
        op->input_count = 0;
        set_machine_name(k, op, "from", from);
        berth_attrs_set(
            k->module, &op->attrs, "type",
            (berth_attr){.kind = BERTH_ATTR_TYPE, .type = main_graph(k)->values.data[result].type});
    }
}

static berth_status keep_op(keeper *k, berth_op_id id, bool *out_kept) {
    berth_op *op = &main_graph(k)->ops.data[id];
    uint32_t machine = 0, from = 0;
    if (op->region_count) return berth_refuse_control_flow(k->module, op);
    if (op->kind == BERTH_OP_CONSTANT) {  // shapes and axes are with the whole's host
        k->here[op->outputs[0]] = *out_kept = true;
        return BERTH_OK;
    }
    BERTH_TRY(machine_of(k, op->device, op->loc, &machine));
    *out_kept = machine == k->machine;
    if (op->kind == BERTH_OP_DEVICE_COPY) {
        berth_device_id source = main_graph(k)->values.data[op->inputs[0]].device;
        BERTH_TRY(machine_of(k, source, op->loc, &from));
        if (from != machine) cross(k, op, from, machine, out_kept);
    }
    if (!*out_kept) return BERTH_OK;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && !k->here[op->inputs[i]])
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "%s: operand %u is on another machine than the operation",
                                     berth_loc_describe(k->module, op->loc, k->module->arena),
                                     i + 1);
    for (uint32_t i = 0; i < op->output_count; ++i) k->here[op->outputs[i]] = true;
    return BERTH_OK;
}

static berth_status keep_params(keeper *k) {
    berth_graph *graph = main_graph(k);
    berth_region *root = &graph->regions.data[0];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value *value = &graph->values.data[root->params.data[i]];
        uint32_t machine = 0;
        BERTH_TRY(
            machine_of(k, value->device, berth_module_function(k->module, k->main)->loc, &machine));
        if (machine != k->machine) continue;
        k->here[root->params.data[i]] = true;
        value->index = kept;
        root->params.data[kept++] = root->params.data[i];
    }
    root->params.count = kept;
    return BERTH_OK;
}

static berth_status keep_ops(keeper *k) {
    berth_region *root = &main_graph(k)->regions.data[0];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        bool stays = false;
        BERTH_TRY(keep_op(k, root->ops.data[i], &stays));
        if (stays)
            root->ops.data[kept++] = root->ops.data[i];
        else
            main_graph(k)->ops.data[root->ops.data[i]].region = BERTH_NONE;
    }
    root->ops.count = kept;
    return BERTH_OK;
}

static void keep_results(keeper *k) {
    berth_region *root = &main_graph(k)->regions.data[0];
    berth_attrs *attrs = &berth_module_function(k->module, k->main)->attrs;
    const berth_attr *given = berth_attrs_find(k->module, attrs, "output_names");
    berth_str_id *names =
        berth_arena_new_array(k->module->arena, berth_str_id, root->results.count + 1);
    bool named = given && given->kind == BERTH_ATTR_STRINGS && given->count == root->results.count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < root->results.count; ++i) {
        uint32_t device = device_of(k, main_graph(k)->values.data[root->results.data[i]].device);
        if (device == BERTH_NO_INDEX || k->target->devices[device].machine != k->machine) continue;
        if (named) names[kept] = given->strings[i];
        root->results.data[kept++] = root->results.data[i];
    }
    root->results.count = kept;
    if (named)
        berth_attrs_set(k->module, attrs, "output_names",
                        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = kept, .strings = names});
}

// A device of the whole target as one of the machine's own, which are counted anew.
static berth_device_id own_device(const keeper *k, berth_device_id id) {
    uint32_t device = device_of(k, id), index = 0;
    if (device == BERTH_NO_INDEX) return id;
    if (k->target->devices[device].machine != k->machine)  // a constant of the whole's host
        return berth_virtual_device_intern(k->module->devices,
                                           berth_multi_target_virtual_device(k->own, k->own->host));
    for (uint32_t d = 0; d < device; ++d) index += k->target->devices[d].machine == k->machine;
    berth_virtual_device is = berth_virtual_device_get(k->module->devices, id);
    berth_virtual_device own = berth_multi_target_virtual_device(k->own, index);
    own.memory_scope = is.memory_scope;
    own.has_target &= is.has_target;
    return berth_virtual_device_intern(k->module->devices, own);
}

static void rename_devices(const keeper *k) {
    berth_graph *graph = main_graph(k);
    for (uint32_t i = 0; i < graph->values.count; ++i)
        if (k->here[i]) graph->values.data[i].device = own_device(k, graph->values.data[i].device);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op *op = &graph->ops.data[root->ops.data[i]];
        op->device = own_device(k, op->device);
        for (uint32_t a = 0; a < op->attrs.items.count; ++a) {
            berth_attr *attr = &op->attrs.items.data[a];
            if (attr->kind == BERTH_ATTR_DEVICE) attr->device = own_device(k, attr->device);
        }
    }
}

// What the plan of the whole says of operations that are not here any more.
static void forget_plan(const keeper *k) {
    static const char *const names[] = {"plan_nodes",   "plan_ops",  "plan_reasons",
                                        "plan_devices", "plan_host", "plan_ns"};
    berth_attrs *attrs = &berth_module_function(k->module, k->main)->attrs;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        berth_attrs_remove(k->module, attrs, names[i]);
    berth_module_forget_run(k->module, "plan-devices");
    berth_attrs_set_string(k->module, &k->module->attrs, BERTH_ATTR_TARGET,
                           berth_target_print_json(k->module->arena, k->own, 0));
    const char *whole = berth_module_str(k->module, k->module->name);
    k->module->name =
        berth_module_intern(k->module, berth_arena_printf(k->module->arena, "%s_%s", whole,
                                                          k->target->machines[k->machine].name));
}

static berth_status keep_machine(void *user) {
    keeper *k = user;
    k->here = berth_arena_new_array(k->module->arena, bool, main_graph(k)->values.count + 1);
    BERTH_TRY(keep_params(k));
    BERTH_TRY(keep_ops(k));
    keep_results(k);
    berth_graph_remove_dead(k->module, k->main);
    for (uint32_t f = 0; f < k->module->functions.count;
         ++f)  // that were called, and are part of main
        if (f != k->main && berth_graph_get(k->module, f))
            k->module->functions.data[f].removed = true;
    rename_devices(k);
    forget_plan(k);
    return BERTH_OK;
}

berth_status berth_decompose_machine(berth_module *module, berth_func_id main,
                                     const berth_multi_target *target, uint32_t machine,
                                     berth_multi_target **out_target) {
    *out_target = NULL;
    if (target->machine_count < 2 || machine >= target->machine_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "machine %u of a target with %u: there is nothing to take apart",
                                 machine, target->machine_count);
    berth_target_change change = {.kind = BERTH_CHANGE_TO_MACHINE, .index = machine};
    BERTH_TRY(berth_multi_target_change(module->arena, target, &change, out_target));
    keeper k = {
        .module = module, .main = main, .target = target, .own = *out_target, .machine = machine};
    return berth_arena_try(module->arena, keep_machine, &k);
}
