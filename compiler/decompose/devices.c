// A function per device and stage. Two operations of one device belong to the same stage where every
// way into them changes device equally often; a way that leaves the device and comes back changes it
// twice, so it ends in a later stage, and no circle can come to be.
#include <stdlib.h>

#include "compiler/decompose/decompose.h"
#include "compiler/decompose/parts.h"

typedef struct splitter {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    bool keep_host;
    berth_arena *scratch;
    uint32_t *device;  // per operation of main; BERTH_NONE = the driver's
    uint32_t *level;   // per operation
} splitter;

static const berth_graph *main_graph(const splitter *s) {
    return berth_graph_get(s->module, s->main);
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

// The driver's operations and stages in turn: everything that a stage needs is made before it.
static berth_decompose_parting sorted(const splitter *s) {
    const berth_region *root = &main_graph(s)->regions.data[0];
    uint32_t count = root->ops.count, part_count = 0;
    placed *ops = berth_arena_new_array(s->scratch, placed, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_op_id id = root->ops.data[i];
        ops[i] = (placed){s->level[id], s->device[id], i, id};
    }
    qsort(ops, count, sizeof(*ops), by_stage);
    berth_op_id *order = berth_arena_new_array(s->scratch, berth_op_id, count + 1);
    uint32_t *part = berth_arena_new_array(s->scratch, uint32_t, main_graph(s)->ops.count + 1);
    berth_decompose_part *parts =
        berth_arena_new_array(s->scratch, berth_decompose_part, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        order[i] = ops[i].op;
        part[ops[i].op] = BERTH_NONE;
        if (ops[i].device == BERTH_NONE) continue;
        if (i == 0 || !same_stage(s, ops[i - 1].op, ops[i].op)) {
            const char *name = s->target->devices[ops[i].device].name;
            parts[part_count++] = (berth_decompose_part){
                .name = berth_decompose__name(s->module, s->main, name, ops[i].level, s->scratch),
                .device = name};
        }
        part[ops[i].op] = part_count - 1;
    }
    return (berth_decompose_parting){order, count, part, parts};
}

static berth_status take_apart(splitter *s) {
    const berth_graph *graph = main_graph(s);
    const berth_region *root = &graph->regions.data[0];
    s->device = berth_arena_new_array(s->scratch, uint32_t, graph->ops.count + 1);
    s->level = berth_arena_new_array(s->scratch, uint32_t, graph->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        BERTH_TRY(
            berth_decompose__device_of(s->module, &graph->ops.data[id], s->target, &s->device[id]));
        if (s->keep_host && s->device[id] == s->target->host) s->device[id] = BERTH_NONE;
        find_level(s, id);
    }
    berth_decompose_parting parting = sorted(s);
    berth_decompose__move_out(s->module, s->main, &parting, s->scratch);
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
