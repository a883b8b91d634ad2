#include "compiler/cost/kernel_groups.h"

#include <stdlib.h>

#include "base/str.h"
#include "compiler/copy_ops.h"
#include "compiler/passes/concat.h"
#include "compiler/passes/fuse.h"
#include "compiler/pipeline.h"
#include "target/virtual_device.h"

// A value that was copied to another device.
typedef struct moved_value {
    berth_device_id device;
    berth_value_id value;
    struct moved_value *next;  // of the same value
} moved_value;

typedef struct trial {
    const berth_module *module;
    const berth_graph *graph;  // of @main
    const berth_compile_options *options;
    const uint32_t *devices;  // per operation
    berth_op_copier c;
    berth_device_id *ids;  // per device of the target: in the copy
    moved_value **moved;   // per value of the graph
    bool *anywhere;  // per value of the graph: no copy is made of it, host operations have made it
} trial;

// ---- the copy -----------------------------------------------------------------------------------

static bool is_alias(berth_op_kind kind) {
    return kind == BERTH_OP_ON_DEVICE || kind == BERTH_OP_DEVICE_COPY;
}

static bool is_static_tensor(const berth_type *type) {
    return type->kind == BERTH_TYPE_TENSOR && berth_type_is_static(type);
}

static bool can_copy(const trial *t, const berth_op *op) {
    if (op->kind == BERTH_OP_CONSTANT || is_alias(op->kind)) return true;
    if (op->region_count || berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE)) return false;
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (!is_static_tensor(
                berth_type_get(t->module, t->graph->values.data[op->outputs[i]].type)))
            return false;
    return true;
}

static bool can_copy_all(const trial *t) {
    const berth_region *root = &t->graph->regions.data[0];
    if (root->ops.count > BERTH_KERNEL_GROUPS_LIMIT) return false;
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (!is_static_tensor(
                berth_type_get(t->module, t->graph->values.data[root->params.data[i]].type)))
            return false;
    for (uint32_t i = 0; i < root->ops.count; ++i)
        if (!can_copy(t, &t->graph->ops.data[root->ops.data[i]])) return false;
    return true;
}

static berth_type_id copy_type(const trial *t, berth_value_id value) {
    const berth_type *type = berth_type_get(t->module, t->graph->values.data[value].type);
    berth_str_id layout =
        type->layout ? berth_module_intern(t->c.to, berth_module_str(t->module, type->layout)) : 0;
    return berth_type_tensor_layout(t->c.to, type->dtype, type->rank, type->dims, layout);
}

static berth_device_id device_of(const trial *t, berth_op_id id) {
    bool host = berth_op_has(t->graph->ops.data[id].kind, BERTH_TRAIT_HOST);
    return t->ids[host ? t->options->target->host : t->devices[id]];
}

// A value of the graph on a device of the copy: copied there if it is elsewhere.
static berth_value_id value_on(trial *t, berth_value_id value, berth_device_id device) {
    berth_value_id held = t->c.map[value];
    if (held == BERTH_NONE || t->anywhere[value]) return held;
    berth_value from = berth_graph_get(t->c.to, t->c.main)->values.data[held];
    if (!from.device || from.device == device) return held;
    for (const moved_value *m = t->moved[value]; m; m = m->next)
        if (m->device == device) return m->value;
    berth_op_id id =
        berth_graph_add_op(t->c.to, t->c.main, 0, BERTH_OP_DEVICE_COPY, &held, 1, 1, 0);
    berth_graph *graph = berth_graph_get(t->c.to, t->c.main);
    berth_op *op = &graph->ops.data[id];
    berth_value *made = &graph->values.data[op->outputs[0]];
    made->type = from.type;
    made->device = op->device = device;
    berth_attrs_set(t->c.to, &op->attrs, "source",
                    (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = from.device});
    moved_value *m = berth_arena_new(t->c.to->arena, moved_value);
    *m = (moved_value){device, op->outputs[0], t->moved[value]};
    t->moved[value] = m;
    return m->value;
}

// The operation itself, its operands on its device. Host operations read metadata, wherever that is.
static berth_op_id add_op(trial *t, berth_op_id id) {
    const berth_op *op = &t->graph->ops.data[id];
    if (berth_op_has(op->kind, BERTH_TRAIT_HOST)) return berth_op_copier_add(&t->c, id);
    berth_value_id *kept =
        berth_arena_new_array(t->c.to->arena, berth_value_id, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE) kept[i] = t->c.map[op->inputs[i]];
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && t->c.map[op->inputs[i]] == kept[i])
            t->c.map[op->inputs[i]] = value_on(t, op->inputs[i], device_of(t, id));
    berth_op_id made = berth_op_copier_add(&t->c, id);
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && kept[i] != BERTH_NONE) t->c.map[op->inputs[i]] = kept[i];
    return made;
}

// The location says which operation of the model it was.
static void copy_op(trial *t, berth_op_id id) {
    const berth_op *op = &t->graph->ops.data[id];
    berth_module *to = t->c.to;
    if (op->kind == BERTH_OP_CONSTANT) return;  // comes with its users
    if (is_alias(op->kind)) {
        t->c.map[op->outputs[0]] = t->c.map[op->inputs[0]];
        t->anywhere[op->outputs[0]] = t->anywhere[op->inputs[0]];
        return;
    }
    berth_op_id made = add_op(t, id);
    berth_graph *graph = berth_graph_get(to, t->c.main);
    berth_op *copy = &graph->ops.data[made];
    copy->loc = berth_loc_node(to, "", berth_arena_printf(to->arena, "%u", id), "");
    copy->device = device_of(t, id);
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_value *value = &graph->values.data[copy->outputs[i]];
        value->type = copy_type(t, op->outputs[i]);
        value->device = copy->device;
        t->anywhere[op->outputs[i]] = berth_op_has(op->kind, BERTH_TRAIT_HOST);
    }
}

static void find_ids(trial *t, berth_arena *arena) {
    const berth_multi_target *target = t->options->target;
    t->ids = berth_arena_new_array(arena, berth_device_id, target->device_count);
    for (uint32_t d = 0; d < target->device_count; ++d)
        t->ids[d] = berth_virtual_device_intern(t->c.to->devices,
                                                berth_multi_target_virtual_device(target, d));
}

// Parameters are where they are read first.
static void copy_params(trial *t, berth_arena *arena) {
    const berth_region *root = &t->graph->regions.data[0];
    berth_device_id *read_on =
        berth_arena_new_array(arena, berth_device_id, t->graph->values.count + 1);
    for (uint32_t k = root->ops.count; k-- > 0;) {
        const berth_op *op = &t->graph->ops.data[root->ops.data[k]];
        for (uint32_t i = 0; i < op->input_count; ++i)
            if (op->inputs[i] != BERTH_NONE)
                read_on[op->inputs[i]] =
                    is_alias(op->kind) ? read_on[op->outputs[0]] : device_of(t, root->ops.data[k]);
    }
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id value = root->params.data[i];
        const char *name = berth_arena_printf(arena, "p%u", i);
        berth_value_id param = berth_graph_add_param(t->c.to, t->c.main, name, copy_type(t, value));
        berth_graph_get(t->c.to, t->c.main)->values.data[param].device =
            read_on[value] ? read_on[value] : t->ids[t->options->target->host];
        t->c.map[value] = param;
    }
}

static void copy_graph(trial *t, berth_func_id main, berth_arena *arena) {
    const berth_region *root = &t->graph->regions.data[0];
    t->c = berth_op_copier_make(t->module, berth_graph_get(t->module, main), "kernels", arena);
    t->moved = berth_arena_new_array(arena, moved_value *, t->graph->values.count + 1);
    t->anywhere = berth_arena_new_array(arena, bool, t->graph->values.count + 1);
    find_ids(t, arena);
    copy_params(t, arena);
    for (uint32_t i = 0; i < root->ops.count; ++i) copy_op(t, root->ops.data[i]);
    berth_value_id *results = berth_arena_new_array(arena, berth_value_id, root->results.count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (t->c.map[root->results.data[i]] != BERTH_NONE)  // else a constant
            results[count++] = t->c.map[root->results.data[i]];
    berth_graph_set_results(t->c.to, t->c.main, results, count);
}

// ---- what became of it --------------------------------------------------------------------------

// The first operation of the model that a location names; BERTH_NONE: none.
static berth_op_id origin_of(const berth_module *module, berth_loc_id id) {
    enum { depth = 64 };
    for (int i = 0; i < depth && id; ++i) {
        const berth_loc *loc = berth_loc_get(module, id);
        if (loc->part_count == 0) {
            const char *text = berth_module_str(module, loc->node);
            return *text ? (berth_op_id)strtoul(text, NULL, 10) : BERTH_NONE;
        }
        id = loc->parts[0];
    }
    return BERTH_NONE;
}

static double constant_bytes(const berth_module *module, const berth_graph *graph,
                             const berth_op *call) {
    double bytes = 0;
    for (uint32_t i = 0; i < call->input_count; ++i)
        if (call->inputs[i] != BERTH_NONE &&
            berth_graph_raw_constant_of(module, graph, call->inputs[i]))
            bytes +=
                (double)berth_type_size_bytes(module, graph->values.data[call->inputs[i]].type);
    return bytes;
}

// The operation of the model that makes the result of a primitive function: its last that is one.
static berth_op_id last_of(const berth_module *module, berth_func_id callee) {
    const berth_graph *graph = berth_graph_get(module, callee);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = root->ops.count; i-- > 0;) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        berth_op_id origin =
            op->kind == BERTH_OP_CONSTANT ? BERTH_NONE : origin_of(module, op->loc);
        if (origin != BERTH_NONE) return origin;
    }
    return BERTH_NONE;
}

// Parts beside each other in memory need no kernel.
static bool is_free(const berth_module *module, const berth_op *call) {
    return berth_attrs_find(module, &call->attrs, BERTH_ATTR_PARTS_AT) ||
           berth_attrs_find(module, &call->attrs, BERTH_ATTR_SLICES_AT);
}

static void collect(const trial *t, berth_arena *arena, berth_kernel_groups *out_groups) {
    const berth_module *module = t->c.to;
    const berth_graph *graph = berth_graph_get(module, t->c.main);
    const berth_region *root = &graph->regions.data[0];
    BERTH_VEC(berth_kernel_group) groups = {0};
    berth_op_id before = BERTH_NONE;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind != BERTH_OP_CALL || is_free(module, op)) continue;
        berth_func_id callee = berth_attrs_find(module, &op->attrs, "callee")->function;
        berth_op_id anchor = berth_work_anchor_of(module, callee);
        if (anchor == BERTH_NONE) continue;
        berth_op_id origin =
            origin_of(module, berth_graph_get(module, callee)->ops.data[anchor].loc);
        if (origin == BERTH_NONE) origin = origin_of(module, op->loc);
        if (origin == BERTH_NONE) origin = before;
        if (origin == BERTH_NONE || origin >= t->graph->ops.count) continue;
        before = origin;
        berth_op_id last = last_of(module, callee);
        if (last == BERTH_NONE || last >= t->graph->ops.count) last = origin;
        berth_kernel_group group = {.op = origin,
                                    .last = last,
                                    .device = t->devices[origin],
                                    .work = berth_work_of_primitive(module, callee, arena),
                                    .constant_bytes = constant_bytes(module, graph, op)};
        berth_vec_push(arena, &groups, group);
    }
    *out_groups = (berth_kernel_groups){groups.data, groups.count};
}

static berth_status run_passes(trial *t) {
    berth_packing *packing = NULL;  // of bytes that nobody needs: never started
    const char *slices = "";
    BERTH_TRY(berth_pipeline__layout(t->c.to, t->c.main, t->options, &packing, &slices));
    BERTH_TRY(berth_fuse(t->c.to, t->c.main, t->options->target, !t->options->no_fusion,
                         t->options->small_code));
    return berth_pass_find_parts(t->c.to, t->c.main);
}

bool berth_kernel_groups_find(const berth_module *module, berth_func_id main,
                              const uint32_t *devices, const berth_compile_options *options,
                              berth_arena *arena, berth_kernel_groups *out_groups) {
    trial t = {.module = module,
               .graph = berth_graph_get(module, main),
               .options = options,
               .devices = devices};
    *out_groups = (berth_kernel_groups){0};
    if (!can_copy_all(&t)) return false;
    berth_arena *scratch = berth_arena_create_child(arena);
    copy_graph(&t, main, scratch);
    berth_status status = run_passes(&t);
    if (!status) collect(&t, arena, out_groups);
    berth_arena_destroy(scratch);
    if (!status) return true;
    berth_status_free(status);
    return false;
}
