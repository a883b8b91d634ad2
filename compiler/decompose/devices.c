// A function per device and stage. Two operations of one device belong to the same stage where every
// way into them changes device equally often; a way that leaves the device and comes back changes it
// twice, so it ends in a later stage, and no circle can come to be.
#include <stdlib.h>
#include <string.h>

#include "compiler/decompose/decompose.h"
#include "compiler/passes/check.h"
#include "compiler/passes/outline.h"
#include "compiler/pipeline.h"
#include "ir/graph/graph.h"
#include "target/virtual_device.h"

typedef struct splitter {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    bool keep_host;
    berth_arena *scratch;
    uint32_t *device;  // per operation of main; BERTH_NONE = the driver's
    uint32_t *level;   // per operation
    bool *seen;        // per value: outside of its stage
    berth_outliner outliner;
} splitter;

static const berth_graph *main_graph(const splitter *s) {
    return berth_graph_get(s->module, s->main);
}

// The target's device that an operation computes on.
static berth_status find_device(splitter *s, berth_op_id id) {
    const berth_op *op = &main_graph(s)->ops.data[id];
    s->device[id] = BERTH_NONE;
    if (op->region_count) return berth_refuse_control_flow(s->module, op);
    if (berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST)) return BERTH_OK;
    uint32_t device = BERTH_NO_INDEX;
    if (op->device)
        device = berth_multi_target_resolve(
            s->target, berth_virtual_device_get(s->module->devices, op->device));
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: it is on no device of the target: plan-devices decides that",
                                 berth_loc_describe(s->module, op->loc, s->module->arena));
    if (!s->keep_host || device != s->target->host) s->device[id] = device;
    return BERTH_OK;
}

static bool is_constant(const splitter *s, berth_value_id value) {
    berth_op_id made = main_graph(s)->values.data[value].op;
    return made != BERTH_NONE && main_graph(s)->ops.data[made].kind == BERTH_OP_CONSTANT;
}

// Changes of device on the longest way to the operation; constants are wherever they are needed.
static void find_level(splitter *s, berth_op_id id) {
    const berth_op *op = &main_graph(s)->ops.data[id];
    uint32_t level = 0;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE || is_constant(s, op->inputs[i])) continue;
        berth_op_id from = main_graph(s)->values.data[op->inputs[i]].op;
        if (from == BERTH_NONE) continue;
        uint32_t at = s->level[from] + (s->device[from] != s->device[id]);
        if (at > level) level = at;
    }
    s->level[id] = level;
}

static bool same_stage(const splitter *s, berth_op_id a, berth_op_id b) {
    return s->device[a] == s->device[b] && s->level[a] == s->level[b];
}

// Values that are used in another stage than they are made in, or returned.
static void find_seen(splitter *s) {
    const berth_graph *graph = main_graph(s);
    const berth_region *root = &graph->regions.data[0];
    s->seen = berth_arena_new_array(s->scratch, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            berth_op_id from = graph->values.data[op->inputs[k]].op;
            s->seen[op->inputs[k]] |= from != BERTH_NONE && !same_stage(s, from, root->ops.data[i]);
        }
    }
    for (uint32_t i = 0; i < root->results.count; ++i) s->seen[root->results.data[i]] = true;
}

typedef struct placed {
    uint32_t level, device, order;
    berth_op_id op;
} placed;

static int by_stage(const void *left, const void *right) {
    const placed *a = left, *b = right;
    if (a->level != b->level) return a->level < b->level ? -1 : 1;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

// Everything that a stage needs is made in stages before it.
static const placed *sorted_ops(const splitter *s, uint32_t *out_count) {
    const berth_region *root = &main_graph(s)->regions.data[0];
    placed *ops = berth_arena_new_array(s->scratch, placed, root->ops.count + 1);
    *out_count = root->ops.count;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        ops[i] = (placed){s->level[id], s->device[id], i, id};
    }
    qsort(ops, root->ops.count, sizeof(*ops), by_stage);
    return ops;
}

static bool always(const berth_module *module, const berth_op *op, uint32_t operand,
                   const berth_value *value, const berth_tensor *constant) {
    (void)module, (void)op, (void)operand, (void)value, (void)constant;
    return true;
}

static const char *stage_name(const splitter *s, const placed *first) {
    char *name = berth_arena_printf(
        s->scratch, "%s_%s_%u",
        berth_module_str(s->module, berth_module_function(s->module, s->main)->name),
        s->target->devices[first->device].name, first->level);
    for (char *c = name; *c; ++c)
        if (!strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *c))
            *c = '_';
    return name;
}

// The function's parameters are where main's values are.
static void place_params(const splitter *s, berth_func_id function) {
    const berth_graph *outer = main_graph(s);
    berth_graph *inner = berth_graph_get(s->module, function);
    const berth_region *root = &inner->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        inner->values.data[root->params.data[i]].device =
            outer->values.data[s->outliner.operands.data[i]].device;
}

static void add_call(splitter *s, berth_func_id function, const berth_outlined *part,
                     berth_value_id *map) {
    berth_op first = main_graph(s)->ops.data[part->ops[0]];
    berth_value_id *operands =
        berth_arena_new_array(s->scratch, berth_value_id, s->outliner.operands.count + 1);
    for (uint32_t i = 0; i < s->outliner.operands.count; ++i)
        operands[i] = map[s->outliner.operands.data[i]];
    berth_op_id id = berth_graph_add_op(s->module, s->main, 0, BERTH_OP_CALL, operands,
                                        s->outliner.operands.count, part->result_count,
                                        berth_module_function(s->module, function)->loc);
    berth_graph *graph = berth_graph_get(s->module, s->main);
    graph->ops.data[id].device = first.device;
    berth_attrs_set(s->module, &graph->ops.data[id].attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
    for (uint32_t i = 0; i < part->result_count; ++i) {
        const berth_value *value = &graph->values.data[part->results[i]];
        berth_value *made = &graph->values.data[graph->ops.data[id].outputs[i]];
        made->type = value->type;
        made->name = value->name;
        made->device = value->device;
        map[part->results[i]] = graph->ops.data[id].outputs[i];
    }
}

static berth_loc_id stage_loc(const splitter *s, const berth_outlined *part) {
    berth_loc_id *locs = berth_arena_new_array(s->scratch, berth_loc_id, part->op_count);
    for (uint32_t i = 0; i < part->op_count; ++i)
        locs[i] = main_graph(s)->ops.data[part->ops[i]].loc;
    return berth_loc_fuse(s->module, locs, part->op_count);
}

// `stage`: operations of one device and level.
static void move_stage(splitter *s, const placed *stage, uint32_t count, berth_value_id *map) {
    BERTH_VEC(berth_value_id) results = {0};
    berth_op_id *ops = berth_arena_new_array(s->scratch, berth_op_id, count);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &main_graph(s)->ops.data[stage[i].op];
        ops[i] = stage[i].op;
        berth_graph_get(s->module, s->main)->ops.data[ops[i]].region = BERTH_NONE;
        for (uint32_t k = 0; k < op->output_count; ++k)
            if (s->seen[op->outputs[k]]) berth_vec_push(s->scratch, &results, op->outputs[k]);
    }
    berth_outlined part = {ops, count, results.data, results.count};
    if (!results.count) return;  // nobody reads what it makes
    berth_func_id function =
        berth_outline(&s->outliner, stage_name(s, stage), stage_loc(s, &part), &part);
    berth_attrs_set_string(s->module, &berth_module_function(s->module, function)->attrs,
                           BERTH_ATTR_TARGET, s->target->devices[stage->device].name);
    place_params(s, function);
    add_call(s, function, &part, map);
}

// Main's operations anew: those of the driver, and a call in place of each stage.
static void rebuild(splitter *s) {
    uint32_t count = 0, end = 0;
    const placed *ops = sorted_ops(s, &count);
    uint32_t value_count = main_graph(s)->values.count;
    berth_value_id *map = berth_arena_new_array(s->scratch, berth_value_id, value_count + 1);
    for (uint32_t i = 0; i < value_count; ++i) map[i] = i;
    berth_graph_get(s->module, s->main)->regions.data[0].ops.count = 0;
    for (uint32_t begin = 0; begin < count; begin = end) {
        for (end = begin; end < count && same_stage(s, ops[begin].op, ops[end].op);) ++end;
        if (ops[begin].device != BERTH_NONE) {
            move_stage(s, ops + begin, end - begin, map);
            continue;
        }
        berth_graph *graph = berth_graph_get(s->module, s->main);
        for (uint32_t i = begin; i < end; ++i) {
            berth_op *op = &graph->ops.data[ops[i].op];
            for (uint32_t k = 0; k < op->input_count; ++k)
                if (op->inputs[k] != BERTH_NONE) op->inputs[k] = map[op->inputs[k]];
            berth_vec_push(s->module->arena, &graph->regions.data[0].ops, ops[i].op);
        }
    }
    berth_region *root = &berth_graph_get(s->module, s->main)->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        root->results.data[i] = map[root->results.data[i]];
}

static berth_status take_apart(splitter *s) {
    const berth_graph *graph = main_graph(s);
    const berth_region *root = &graph->regions.data[0];
    s->device = berth_arena_new_array(s->scratch, uint32_t, graph->ops.count + 1);
    s->level = berth_arena_new_array(s->scratch, uint32_t, graph->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        BERTH_TRY(find_device(s, root->ops.data[i]));
        find_level(s, root->ops.data[i]);
    }
    find_seen(s);
    s->outliner = berth_outliner_make(s->module, s->main, s->scratch, always);
    rebuild(s);
    berth_graph_remove_dead(s->module, s->main);  // constants that functions have now
    return BERTH_OK;
}

berth_status berth_decompose_devices(berth_module *module, berth_func_id main,
                                     const berth_multi_target *target, bool keep_host) {
    splitter s = {.module = module,
                  .main = main,
                  .target = target,
                  .keep_host = keep_host,
                  .scratch = berth_arena_create_child(module->arena)};
    berth_status status = take_apart(&s);
    berth_arena_destroy(s.scratch);
    return status;
}
