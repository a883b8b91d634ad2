#include "compiler/decompose/decompose.h"

#include <string.h>

#include "compiler/decompose/parts.h"
#include "compiler/pipeline.h"
#include "ir/graph/graph.h"
#include "target/virtual_device.h"

typedef struct checker {
    const berth_module *module;
    const berth_multi_target *target;
    berth_func_id function;
    uint32_t device;  // that the function is for
} checker;

static const char *name_of(const berth_module *module, berth_func_id function) {
    return berth_module_str(module, berth_module_function(module, function)->name);
}

// The device that a function says it is for; NULL = none.
static const char *device_name(const berth_module *module, berth_func_id function) {
    return berth_attrs_string(module, &berth_module_function(module, function)->attrs,
                              BERTH_ATTR_TARGET, NULL);
}

static berth_status check_device(const checker *c, berth_device_id id, berth_loc_id loc) {
    berth_virtual_device device = berth_virtual_device_get(c->module->devices, id);
    if (!id || berth_multi_target_resolve(c->target, device) == c->device) return BERTH_OK;
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "%s: it is on %s, in @%s, which is for %s alone",
                             berth_loc_describe(c->module, loc, c->module->arena),
                             berth_virtual_device_name(c->module->arena, device),
                             name_of(c->module, c->function), c->target->devices[c->device].name);
}

static berth_status check_function(const checker *c, const berth_graph *graph) {
    const berth_region *root = &graph->regions.data[0];
    berth_loc_id loc = berth_module_function(c->module, c->function)->loc;
    for (uint32_t i = 0; i < root->params.count; ++i)
        BERTH_TRY(check_device(c, graph->values.data[root->params.data[i]].device, loc));
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind == BERTH_OP_CONSTANT) continue;
        BERTH_TRY(check_device(c, op->device, op->loc));
        for (uint32_t k = 0; k < op->output_count; ++k)
            BERTH_TRY(check_device(c, graph->values.data[op->outputs[k]].device, op->loc));
    }
    return BERTH_OK;
}

// Calls of functions that are for one device.
static berth_status check_calls(const berth_module *module, const berth_multi_target *target,
                                berth_func_id caller, const berth_graph *graph) {
    const char *own = device_name(module, caller);
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        const berth_attr *callee = op->region != BERTH_NONE && op->kind == BERTH_OP_CALL
                                       ? berth_attrs_find(module, &op->attrs, "callee")
                                       : NULL;
        if (!callee || callee->kind != BERTH_ATTR_FUNCTION) continue;
        const char *wanted = device_name(module, callee->function);
        if (!wanted) continue;
        uint32_t device = berth_multi_target_device(target, wanted);
        uint32_t at = op->device
                          ? berth_multi_target_resolve(
                                target, berth_virtual_device_get(module->devices, op->device))
                          : device;
        if (at == device && (!own || berth_multi_target_device(target, own) == device)) continue;
        return berth_status_make(
            BERTH_FAILED_PRECONDITION, "%s: @%s, which is for %s, is called %s%s",
            berth_loc_describe(module, op->loc, module->arena), name_of(module, callee->function),
            wanted, at == device ? "by a function for " : "on ",
            at == device                ? own
            : at < target->device_count ? target->devices[at].name
                                        : "another device");
    }
    return BERTH_OK;
}

// Everything that a backend's function computes is the backend's.
static berth_status check_backend(const checker *c, const berth_graph *graph, const char *backend) {
    const berth_region *root = &graph->regions.data[0];
    const char **names =
        berth_decompose__backends(c->module, c->function, c->target, c->module->arena);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        const char *name = names[root->ops.data[i]];
        if (op->kind == BERTH_OP_CONSTANT || (name && strcmp(name, backend) == 0)) continue;
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: %s does not take it, in @%s, which is for that alone",
                                 berth_loc_describe(c->module, op->loc, c->module->arena), backend,
                                 name_of(c->module, c->function));
    }
    return BERTH_OK;
}

berth_status berth_decompose_check(const berth_module *module, const berth_multi_target *target) {
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        const berth_graph *graph = berth_graph_get(module, f);
        if (module->functions.data[f].removed || !graph) continue;
        BERTH_TRY(check_calls(module, target, f, graph));
        const char *name = device_name(module, f);
        if (!name) continue;
        checker c = {module, target, f, berth_multi_target_device(target, name)};
        if (c.device == BERTH_NO_INDEX)
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "@%s is for %s, which the target does not have",
                                     name_of(module, f), name);
        BERTH_TRY(check_function(&c, graph));
        const char *backend = berth_attrs_string(module, &berth_module_function(module, f)->attrs,
                                                 BERTH_ATTR_BACKEND, NULL);
        if (backend) BERTH_TRY(check_backend(&c, graph, backend));
    }
    return BERTH_OK;
}
