// Stage copies, second half: writes the copies that copies.c found into the graph and records every
// device as an attribute.
#include <string.h>

#include "planner/copier.h"

typedef berth_copier copier;
typedef berth_copier_held held;

// A device_copy, or a clone of a constant, at the end of its region; weave() puts it in place.
static berth_op_id make(copier *c, held *h) {
    berth_module *module = c->state->module;
    berth_graph *graph = c->f->graph;
    berth_value source = graph->values.data[h->value];
    berth_loc_id loc = source.op == BERTH_NONE ? 0 : graph->ops.data[source.op].loc;
    bool clone = berth_planner__is_constant(graph, h->value);
    berth_value_id from = h->source == BERTH_NONE ? h->value : c->held.data[h->source].result;
    berth_op_id id =
        berth_graph_add_op(module, c->function, h->region,
                           clone ? BERTH_OP_CONSTANT : BERTH_OP_DEVICE_COPY, &from, !clone, 1, loc);
    berth_op *op = &graph->ops.data[id];
    h->result = op->outputs[0];
    graph->values.data[h->result].type = source.type;
    graph->values.data[h->result].name = source.name;
    graph->values.data[h->result].device = op->device = h->device;
    if (clone) {
        const berth_attrs *attrs = &graph->ops.data[source.op].attrs;
        for (uint32_t i = 0; i < attrs->items.count; ++i)
            berth_vec_push(module->arena, &op->attrs.items, attrs->items.data[i]);
        return id;
    }
    berth_attrs_set(module, &op->attrs, "source",
                    (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = h->from});
    return id;
}

// A written copy that is needed earlier: listed at the end of its new region; weave() puts it in
// place.
static berth_op_id move(copier *c, const held *h) {
    berth_op *op = &c->f->graph->ops.data[h->op];
    op->region = h->region;
    berth_vec_push(c->state->module->arena, &c->f->graph->regions.data[h->region].ops, h->op);
    return h->op;
}

static bool moved_away(const copier *c, berth_op_id id) {
    return c->owner[id] != BERTH_NONE && c->held.data[c->owner[id]].moved;
}

static void weave_region(copier *c, berth_region_id id, uint32_t old_count,
                         const uint32_t *first_before, const uint32_t *next,
                         const berth_op_id *made) {
    berth_graph *graph = c->f->graph;
    berth_region *region = &graph->regions.data[id];
    uint32_t total = region->ops.count, kept = 0;
    berth_op_id *ops =
        berth_arena_copy(c->state->arena, region->ops.data, total * sizeof(berth_op_id));
    for (uint32_t i = 0; i < old_count; ++i) {
        for (uint32_t h = first_before[ops[i]]; h != BERTH_NONE; h = next[h])
            region->ops.data[kept++] = made[h];
        if (graph->ops.data[ops[i]].region != BERTH_NONE && !moved_away(c, ops[i]))
            region->ops.data[kept++] = ops[i];
    }
    for (uint32_t i = old_count; i < total; ++i)  // copies for the region's results
        if (c->held.data[c->owner[ops[i]]].before == BERTH_NONE) region->ops.data[kept++] = ops[i];
    region->ops.count = kept;
}

static uint32_t *nowhere(berth_arena *arena, uint32_t count) {
    uint32_t *array = berth_arena_new_array(arena, uint32_t, count + 1);
    memset(array, 0xff, (count + 1) * sizeof(*array));
    return array;
}

// ---- copies that nobody reads -------------------------------------------------------------------

static uint32_t *count_uses(const copier *c) {
    const berth_graph *graph = c->f->graph;
    uint32_t *uses = berth_arena_new_array(c->state->arena, uint32_t, graph->values.count + 1);
    for (uint32_t r = 0; r < graph->regions.count; ++r) {
        const berth_region *region = &graph->regions.data[r];
        for (uint32_t i = 0; i < region->results.count; ++i)
            if (region->results.data[i] != BERTH_NONE) uses[region->results.data[i]]++;
        for (uint32_t k = 0; k < region->ops.count; ++k) {
            const berth_op *op = &graph->ops.data[region->ops.data[k]];
            for (uint32_t i = 0; i < op->input_count; ++i)
                if (op->inputs[i] != BERTH_NONE) uses[op->inputs[i]]++;
        }
    }
    return uses;
}

static void remove_dropped(const copier *c) {
    berth_graph *graph = c->f->graph;
    for (uint32_t r = 0; r < graph->regions.count; ++r) {
        berth_region *region = &graph->regions.data[r];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < region->ops.count; ++k)
            if (graph->ops.data[region->ops.data[k]].region != BERTH_NONE)
                region->ops.data[kept++] = region->ops.data[k];
        region->ops.count = kept;
    }
}

// A copy that was written out is not read where its users are elsewhere, on the device of what it
// copies, say; nor is then what it alone is copied from.
static void drop_unread(copier *c) {
    berth_graph *graph = c->f->graph;
    bool any = false;
    for (uint32_t i = 0; i < c->held.count && !any; ++i) any = c->held.data[i].op != BERTH_NONE;
    if (!any) return;
    uint32_t *uses = count_uses(c);
    any = false;
    for (uint32_t i = 0; i < c->held.count; ++i) {
        berth_value_id value = c->held.data[i].result;
        for (;;) {
            berth_op_id id = graph->values.data[value].op;
            if (id == BERTH_NONE || uses[value]) break;
            berth_op *op = &graph->ops.data[id];
            if (op->kind != BERTH_OP_DEVICE_COPY || op->region == BERTH_NONE) break;
            op->region = BERTH_NONE;
            any = c->state->changed = true;
            value = op->inputs[0];
            uses[value]--;
        }
    }
    if (any) remove_dropped(c);
}

static void weave_copies(copier *c) {
    berth_graph *graph = c->f->graph;
    berth_arena *arena = c->state->arena;
    uint32_t op_count = graph->ops.count, region_count = graph->regions.count;
    uint32_t *old_count = berth_arena_new_array(arena, uint32_t, region_count);
    for (uint32_t r = 0; r < region_count; ++r) old_count[r] = graph->regions.data[r].ops.count;
    uint32_t *first = nowhere(arena, op_count), *last = nowhere(arena, op_count);
    uint32_t *next = nowhere(arena, c->held.count), *made = nowhere(arena, c->held.count);
    c->owner = nowhere(arena, op_count + c->held.count);
    for (uint32_t i = 0; i < c->held.count; ++i) {
        held *h = &c->held.data[i];
        if (h->op != BERTH_NONE && !h->moved) continue;
        c->state->changed = true;
        made[i] = h->op == BERTH_NONE ? make(c, h) : move(c, h);
        c->owner[made[i]] = i;
        if (h->before == BERTH_NONE) continue;
        if (last[h->before] == BERTH_NONE)
            first[h->before] = i;
        else
            next[last[h->before]] = i;
        last[h->before] = i;
    }
    for (uint32_t r = 0; r < region_count; ++r) weave_region(c, r, old_count[r], first, next, made);
    for (uint32_t i = 0; i < c->patches.count; ++i) {
        const berth_copier_patch *p = &c->patches.data[i];
        berth_value_id result = c->held.data[p->held].result;
        if (p->slot_of_op)
            *p->slot_of_op = result;
        else
            graph->regions.data[p->region].results.data[p->index] = result;
    }
    drop_unread(c);
}

// ---- recording ----------------------------------------------------------------------------------

static berth_device_id recorded(const copier *c, uint32_t node) {
    uint32_t root = berth_constraints_find(c->state->constraints, node);
    const berth_constraint_node *held_node = &c->state->constraints->nodes.data[root];
    if (held_node->function != BERTH_NONE && !held_node->device) return 0;  // all over the place
    return berth_copier__node_device(c, node);
}

static void record_value(copier *c, berth_value_id id) {
    berth_graph *graph = c->f->graph;
    berth_value *value = &graph->values.data[id];
    berth_device_id before = value->device;
    if (berth_planner__is_constant(graph, id)) {
        if (!value->device) value->device = berth_copier__host(c);  // nobody uses it
        graph->ops.data[value->op].device = value->device;
    } else {
        value->device = recorded(c, c->f->value[id]);
        if (value->device) value->device = berth_copier__home(c, id);
    }
    c->state->changed |= value->device != before;
}

static void record(copier *c) {
    berth_graph *graph = c->f->graph;
    for (uint32_t v = 0; v < c->value_count; ++v) record_value(c, v);
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        berth_op *op = &graph->ops.data[c->f->order[k]];
        if (op->kind != BERTH_OP_CONSTANT) op->device = recorded(c, c->f->op[c->f->order[k]]);
        if (op->kind == BERTH_OP_FUNC_REF) op->device = graph->values.data[op->outputs[0]].device;
    }
    for (uint32_t i = 0; i < c->held.count; ++i)
        if (c->held.data[i].op != BERTH_NONE)
            berth_attrs_set(
                c->state->module, &graph->ops.data[c->held.data[i].op].attrs, "source",
                (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = c->held.data[i].from});
}

void berth_copier__weave(berth_copier *c) {
    weave_copies(c);
    record(c);
}
