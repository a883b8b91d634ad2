#include "compiler/decompose/parts.h"

#include <string.h>

#include "compiler/passes/check.h"
#include "compiler/passes/outline.h"
#include "compiler/pipeline.h"
#include "target/virtual_device.h"

typedef struct mover {
    berth_module *module;
    berth_func_id main;
    const berth_decompose_parting *parting;
    berth_arena *scratch;
    bool *seen;           // per value: outside of its part
    berth_value_id *map;  // per value of main: what it is now
    berth_outliner outliner;
} mover;

static berth_graph *main_graph(const mover *m) {
    return berth_graph_get(m->module, m->main);
}

berth_status berth_decompose__device_of(const berth_module *module, const berth_op *op,
                                        const berth_multi_target *target, uint32_t *out_device) {
    *out_device = BERTH_NONE;
    if (op->region_count) return berth_refuse_control_flow(module, op);
    if (berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST)) return BERTH_OK;
    uint32_t device = BERTH_NO_INDEX;
    if (op->device)
        device = berth_multi_target_resolve(target,
                                            berth_virtual_device_get(module->devices, op->device));
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: it is on no device of the target: plan-devices decides that",
                                 berth_loc_describe(module, op->loc, module->arena));
    *out_device = device;
    return BERTH_OK;
}

const char *berth_decompose__name(const berth_module *module, berth_func_id main, const char *what,
                                  uint32_t number, berth_arena *arena) {
    char *name = berth_arena_printf(
        arena, "%s_%s_%u", berth_module_str(module, berth_module_function(module, main)->name),
        what, number);
    for (char *c = name; *c; ++c)
        if (!strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *c))
            *c = '_';
    return name;
}

// Values that are used in another part than they are made in, or returned.
static void find_seen(mover *m) {
    const berth_graph *graph = main_graph(m);
    const berth_region *root = &graph->regions.data[0];
    const uint32_t *part = m->parting->part;
    m->seen = berth_arena_new_array(m->scratch, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            berth_op_id from = graph->values.data[op->inputs[k]].op;
            m->seen[op->inputs[k]] |= from != BERTH_NONE && part[from] != part[root->ops.data[i]];
        }
    }
    for (uint32_t i = 0; i < root->results.count; ++i) m->seen[root->results.data[i]] = true;
}

static bool always(const berth_module *module, const berth_op *op, uint32_t operand,
                   const berth_value *value, const berth_tensor *constant) {
    (void)module, (void)op, (void)operand, (void)value, (void)constant;
    return true;
}

// The function's parameters are where main's values are.
static void place_params(const mover *m, berth_func_id function) {
    const berth_graph *outer = main_graph(m);
    berth_graph *inner = berth_graph_get(m->module, function);
    const berth_region *root = &inner->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        inner->values.data[root->params.data[i]].device =
            outer->values.data[m->outliner.operands.data[i]].device;
}

static void add_call(mover *m, berth_func_id function, const berth_outlined *part) {
    berth_op first = main_graph(m)->ops.data[part->ops[0]];
    berth_value_id *operands =
        berth_arena_new_array(m->scratch, berth_value_id, m->outliner.operands.count + 1);
    for (uint32_t i = 0; i < m->outliner.operands.count; ++i)
        operands[i] = m->map[m->outliner.operands.data[i]];
    berth_op_id id = berth_graph_add_op(m->module, m->main, 0, BERTH_OP_CALL, operands,
                                        m->outliner.operands.count, part->result_count,
                                        berth_module_function(m->module, function)->loc);
    berth_graph *graph = main_graph(m);
    graph->ops.data[id].device = first.device;
    berth_attrs_set(m->module, &graph->ops.data[id].attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
    for (uint32_t i = 0; i < part->result_count; ++i) {
        const berth_value *value = &graph->values.data[part->results[i]];
        berth_value *made = &graph->values.data[graph->ops.data[id].outputs[i]];
        made->type = value->type;
        made->name = value->name;
        made->device = value->device;
        m->map[part->results[i]] = graph->ops.data[id].outputs[i];
    }
}

static berth_loc_id loc_of(const mover *m, const berth_op_id *ops, uint32_t count) {
    berth_loc_id *locs = berth_arena_new_array(m->scratch, berth_loc_id, count);
    for (uint32_t i = 0; i < count; ++i) locs[i] = main_graph(m)->ops.data[ops[i]].loc;
    return berth_loc_fuse(m->module, locs, count);
}

static void move_part(mover *m, const berth_op_id *ops, uint32_t count) {
    const berth_decompose_part *is = &m->parting->parts[m->parting->part[ops[0]]];
    BERTH_VEC(berth_value_id) results = {0};
    for (uint32_t i = 0; i < count; ++i) {
        berth_op *op = &main_graph(m)->ops.data[ops[i]];
        op->region = BERTH_NONE;
        for (uint32_t k = 0; k < op->output_count; ++k)
            if (m->seen[op->outputs[k]]) berth_vec_push(m->scratch, &results, op->outputs[k]);
    }
    berth_outlined part = {ops, count, results.data, results.count};
    if (!results.count) return;  // nobody reads what it makes
    berth_func_id function = berth_outline(&m->outliner, is->name, loc_of(m, ops, count), &part);
    berth_attrs *attrs = &berth_module_function(m->module, function)->attrs;
    berth_attrs_set_string(m->module, attrs, BERTH_ATTR_TARGET, is->device);
    if (is->backend) berth_attrs_set_string(m->module, attrs, BERTH_ATTR_BACKEND, is->backend);
    place_params(m, function);
    add_call(m, function, &part);
}

static void keep_op(mover *m, berth_op_id id) {
    berth_graph *graph = main_graph(m);
    berth_op *op = &graph->ops.data[id];
    for (uint32_t k = 0; k < op->input_count; ++k)
        if (op->inputs[k] != BERTH_NONE) op->inputs[k] = m->map[op->inputs[k]];
    berth_vec_push(m->module->arena, &graph->regions.data[0].ops, id);
}

void berth_decompose__move_out(berth_module *module, berth_func_id main,
                               const berth_decompose_parting *parting, berth_arena *scratch) {
    mover m = {.module = module, .main = main, .parting = parting, .scratch = scratch};
    find_seen(&m);
    m.outliner = berth_outliner_make(module, main, scratch, always);
    uint32_t value_count = main_graph(&m)->values.count, end = 0;
    m.map = berth_arena_new_array(scratch, berth_value_id, value_count + 1);
    for (uint32_t i = 0; i < value_count; ++i) m.map[i] = i;
    main_graph(&m)->regions.data[0].ops.count = 0;
    for (uint32_t begin = 0; begin < parting->count; begin = end) {
        uint32_t part = parting->part[parting->order[begin]];
        for (end = begin + 1; end < parting->count && parting->part[parting->order[end]] == part;)
            ++end;
        if (part != BERTH_NONE) move_part(&m, parting->order + begin, end - begin);
        for (uint32_t i = begin; part == BERTH_NONE && i < end; ++i) keep_op(&m, parting->order[i]);
    }
    berth_region *root = &main_graph(&m)->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        root->results.data[i] = m.map[root->results.data[i]];
    berth_graph_remove_dead(module, main);  // constants that functions have now
}
