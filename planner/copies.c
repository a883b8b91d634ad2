// Stage 4: a device_copy for every change of device, once per (value, destination), at the nearest
// point that dominates its uses (but outside of loops, where the value comes from outside).
// Constants are not copied: each device that uses one gets its own, uploaded when the program is
// opened. Annotations and copies with equal ends vanish. Linear in the size of the module.
#include <string.h>

#include "planner/stages.h"
#include "target/virtual_device.h"

// A value at one more place.
typedef struct held {
    berth_value_id value;    // that is copied or cloned
    berth_device_id device;  // where to
    berth_device_id from;
    uint32_t next;           // of the same value
    berth_region_id region;  // of the copy
    berth_op_id before;      // BERTH_NONE = end of the region
    berth_value_id result;
    uint32_t source;  // held copied from, BERTH_NONE = the value itself
} held;

typedef struct patch {
    berth_value_id *slot_of_op;  // NULL: a region's result
    berth_region_id region;
    uint32_t index;
    uint32_t held;
} patch;

typedef struct copier {
    berth_planner_state *state;
    berth_func_id function;
    berth_planner_function *f;
    uint32_t *first;        // per value: its held ones
    berth_value_id *alias;  // per value: what stands for it once annotations are gone
    uint32_t *owner;        // per operation made here: its held
    BERTH_VEC(held) held;
    BERTH_VEC(patch) patches;
} copier;

static berth_virtual_device device_get(const copier *c, berth_device_id id) {
    return berth_virtual_device_get(c->state->module->devices, id);
}

// The device in full: kind, number and target of one of the target's devices, and the scope.
static berth_device_id complete(const copier *c, berth_device_id id) {
    berth_virtual_device device = device_get(c, id);
    uint32_t index = berth_multi_target_resolve(c->state->options->target, device);
    if (index == BERTH_NO_INDEX) return id;
    berth_virtual_device full = berth_multi_target_virtual_device(c->state->options->target, index);
    full.memory_scope = device.memory_scope;
    return berth_virtual_device_intern(c->state->module->devices, full);
}

static berth_device_id node_device(const copier *c, uint32_t node) {
    return complete(c, berth_constraints_device(c->state->constraints, node));
}

static bool on_host_border(const copier *c) {
    return c->state->options->host_bound && c->function == c->state->main;
}

static berth_device_id host(const copier *c) {
    return berth_planner__device_id(c->state, c->state->options->target->host);
}

static berth_device_id home(const copier *c, berth_value_id value) {
    const berth_value *v = &c->f->graph->values.data[value];
    if (v->op == BERTH_NONE && v->region == 0 && on_host_border(c)) return host(c);
    if (berth_planner__is_constant(c->f->graph, value)) return v->device;
    return node_device(c, c->f->value[value]);
}

static bool same_place(const copier *c, berth_device_id at, berth_device_id wanted) {
    if (at == wanted) return true;
    berth_virtual_device a = device_get(c, at), b = device_get(c, wanted);
    if (!b.memory_scope) a.memory_scope = NULL;
    return berth_virtual_device_equal(a, b);
}

// ---- annotations --------------------------------------------------------------------------------

static void drop_annotations(copier *c) {
    berth_graph *graph = c->f->graph;
    for (uint32_t v = 0; v < graph->values.count; ++v) c->alias[v] = v;
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        berth_op *op = &graph->ops.data[c->f->order[k]];
        bool gone = op->kind == BERTH_OP_ON_DEVICE;
        if (op->kind == BERTH_OP_DEVICE_COPY)
            gone = node_device(c, c->f->extra[c->f->order[k]]) ==
                   node_device(c, c->f->op[c->f->order[k]]);
        if (!gone) continue;
        c->alias[op->outputs[0]] = c->alias[op->inputs[0]];
        op->region = BERTH_NONE;
    }
}

// ---- demands ------------------------------------------------------------------------------------

static berth_region_id region_of(const berth_graph *graph, berth_value_id value) {
    const berth_value *v = &graph->values.data[value];
    return v->op == BERTH_NONE ? v->region : graph->ops.data[v->op].region;
}

static uint32_t depth_of(const berth_graph *graph, berth_region_id region) {
    uint32_t depth = 0;
    for (; graph->regions.data[region].parent != BERTH_NONE; ++depth)
        region = graph->ops.data[graph->regions.data[region].parent].region;
    return depth;
}

static void climb(const berth_graph *graph, berth_region_id *region, berth_op_id *before) {
    *before = graph->regions.data[*region].parent;
    *region = graph->ops.data[*before].region;
}

// The place before which a value must be there for this use: out of loops.
static void leave_loops(const berth_graph *graph, berth_value_id value, berth_region_id *region,
                        berth_op_id *before) {
    berth_region_id home_region = region_of(graph, value);
    while (*region != home_region) {
        berth_op_id parent = graph->regions.data[*region].parent;
        if (parent == BERTH_NONE || graph->ops.data[parent].kind != BERTH_OP_LOOP) return;
        climb(graph, region, before);
    }
}

static void cover(const berth_graph *graph, held *h, berth_region_id region, berth_op_id before) {
    uint32_t a = depth_of(graph, h->region), b = depth_of(graph, region);
    for (; a > b; --a) climb(graph, &h->region, &h->before);
    for (; b > a; --b) climb(graph, &region, &before);
    while (h->region != region) {
        climb(graph, &h->region, &h->before);
        climb(graph, &region, &before);
    }
}

static uint32_t find_held(const copier *c, berth_value_id value, berth_device_id device) {
    uint32_t i = c->first[value];
    while (i != BERTH_NONE && c->held.data[i].device != device) i = c->held.data[i].next;
    return i;
}

static uint32_t demand_one(copier *c, berth_value_id value, berth_device_id from,
                           berth_device_id to, uint32_t source, berth_region_id region,
                           berth_op_id before) {
    uint32_t found = find_held(c, value, to);
    if (found != BERTH_NONE) {
        // Everything it is copied from must be there, too.
        for (uint32_t i = found; i != BERTH_NONE; i = c->held.data[i].source)
            cover(c->f->graph, &c->held.data[i], region, before);
        return found;
    }
    held h = {.value = value,
              .device = to,
              .from = from,
              .next = c->first[value],
              .region = region,
              .before = before,
              .source = source};
    berth_vec_push(c->state->arena, &c->held, h);
    c->first[value] = c->held.count - 1;
    return c->first[value];
}

static uint32_t memory_of(const copier *c, berth_device_id id) {
    const berth_multi_target *target = c->state->options->target;
    berth_virtual_device device = device_get(c, id);
    uint32_t index = berth_multi_target_resolve(target, device);
    uint32_t memory = BERTH_NO_INDEX;
    if (device.memory_scope)
        memory = berth_multi_target_memory_of(target, index, device.memory_scope);
    return memory == BERTH_NO_INDEX ? target->devices[index].own_memory : memory;
}

static uint32_t owner_of(const berth_multi_target *target, uint32_t memory) {
    if (target->devices[target->host].own_memory == memory) return target->host;
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].own_memory == memory) return d;
    return BERTH_NO_INDEX;
}

static bool is_alias(const copier *c, berth_device_id a, berth_device_id b) {
    if (device_get(c, a).memory_scope || device_get(c, b).memory_scope)
        return memory_of(c, a) == memory_of(c, b) && device_get(c, a).memory_scope &&
               device_get(c, b).memory_scope &&
               strcmp(device_get(c, a).memory_scope, device_get(c, b).memory_scope) == 0;
    const berth_multi_target *target = c->state->options->target;
    return berth_multi_target_share_memory(
        target, berth_multi_target_resolve(target, device_get(c, a)),
        berth_multi_target_resolve(target, device_get(c, b)), NULL);
}

static uint64_t size_of(const copier *c, berth_value_id value) {
    berth_type_id type = c->f->graph->values.data[value].type;
    const berth_type *held_type = berth_type_get(c->state->module, type);
    return berth_type_is_static(held_type) ? berth_type_size_bytes(c->state->module, type) : 0;
}

// The value at `to`: a clone of a constant, an alias, or the hops of the cheapest route.
static uint32_t demand(copier *c, berth_value_id value, berth_device_id from, berth_device_id to,
                       berth_region_id region, berth_op_id before) {
    const berth_multi_target *target = c->state->options->target;
    berth_target_route route = {0};
    uint32_t source = BERTH_NONE;
    if (berth_planner__is_constant(c->f->graph, value)) {
        berth_op_id op = c->f->graph->values.data[value].op;
        return demand_one(c, value, from, to, source, c->f->graph->ops.data[op].region, op);
    }
    leave_loops(c->f->graph, value, &region, &before);
    if (!is_alias(c, from, to) &&
        berth_multi_target_route(target, memory_of(c, from), memory_of(c, to), size_of(c, value),
                                 &route)) {
        for (uint32_t i = 0; i + 1 < route.hop_count; ++i) {
            uint32_t device = owner_of(target, route.hops[i].to);
            if (device == BERTH_NO_INDEX) continue;
            berth_device_id stop = berth_planner__device_id(c->state, device);
            if (stop == from || stop == to) continue;
            source = demand_one(c, value, from, stop, source, region, before);
            from = stop;
        }
    }
    return demand_one(c, value, from, to, source, region, before);
}

static void visit_use(copier *c, berth_use u, berth_value_id *slot, berth_region_id region,
                      berth_op_id before, uint32_t index) {
    if (*slot == BERTH_NONE) return;
    berth_value_id value = *slot = c->alias[*slot];
    if (u.kind == BERTH_USE_FREE || berth_planner__is_function(c->state, c->f->graph, value))
        return;
    berth_device_id wanted = node_device(c, u.node);
    if (u.kind == BERTH_USE_LOWERED) {
        berth_virtual_device device = device_get(c, wanted);
        device.memory_scope = u.scope;
        wanted = berth_virtual_device_intern(c->state->module->devices, device);
    }
    if (before == BERTH_NONE && region == 0 && on_host_border(c)) wanted = host(c);
    berth_device_id at = home(c, value);
    if (berth_planner__is_constant(c->f->graph, value) && !at) {
        c->f->graph->values.data[value].device = wanted;  // its first user
        return;
    }
    if (same_place(c, at, wanted)) return;
    uint32_t h = demand(c, value, at, wanted, region, before);
    berth_vec_push(c->state->arena, &c->patches,
                   (patch){before == BERTH_NONE ? NULL : slot, region, index, h});
}

static void visit_results(copier *c, berth_region_id id) {
    berth_region *region = &c->f->graph->regions.data[id];
    for (uint32_t i = 0; i < region->results.count; ++i)
        visit_use(c, berth_planner__result(c->state, c->function, id, i), &region->results.data[i],
                  id, BERTH_NONE, i);
}

static void visit(copier *c) {
    berth_graph *graph = c->f->graph;
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        berth_op_id id = c->f->order[k];
        berth_op *op = &graph->ops.data[id];
        if (op->region == BERTH_NONE) continue;
        for (uint32_t i = 0; i < op->input_count; ++i)
            visit_use(c, berth_planner__operand(c->state, c->function, op, id, i), &op->inputs[i],
                      op->region, id, i);
        for (uint32_t r = 0; r < op->region_count; ++r) visit_results(c, op->regions[r]);
    }
    visit_results(c, 0);
}

// ---- rewriting ----------------------------------------------------------------------------------

static void report_copy(copier *c, const held *h, berth_op_id op) {
    const berth_multi_target *target = c->state->options->target;
    bool alias = is_alias(c, h->from, h->device);
    uint64_t size_bytes = alias ? 0 : size_of(c, h->value);
    berth_target_route route = {0};
    if (!alias)
        (void)berth_multi_target_route(target, memory_of(c, h->from), memory_of(c, h->device),
                                       size_bytes, &route);
    berth_plan_copy copy = {.op = op,
                            .before = h->before,
                            .from = berth_multi_target_resolve(target, device_get(c, h->from)),
                            .to = berth_multi_target_resolve(target, device_get(c, h->device)),
                            .size_bytes = size_bytes,
                            .time_ns = route.time_ns};
    if (c->function == c->state->main) berth_vec_push(c->state->arena, &c->state->copies, copy);
}

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
    report_copy(c, h, id);
    return id;
}

static void weave(copier *c, berth_region_id id, uint32_t old_count, const uint32_t *first_before,
                  const uint32_t *next, const berth_op_id *made) {
    berth_graph *graph = c->f->graph;
    berth_region *region = &graph->regions.data[id];
    uint32_t total = region->ops.count, kept = 0;
    berth_op_id *ops =
        berth_arena_copy(c->state->arena, region->ops.data, total * sizeof(berth_op_id));
    for (uint32_t i = 0; i < old_count; ++i) {
        for (uint32_t h = first_before[ops[i]]; h != BERTH_NONE; h = next[h])
            region->ops.data[kept++] = made[h];
        if (graph->ops.data[ops[i]].region != BERTH_NONE) region->ops.data[kept++] = ops[i];
    }
    for (uint32_t i = old_count; i < total; ++i)  // copies for the region's results
        if (c->held.data[c->owner[ops[i]]].before == BERTH_NONE) region->ops.data[kept++] = ops[i];
    region->ops.count = kept;
}

static void rewrite(copier *c) {
    berth_graph *graph = c->f->graph;
    berth_arena *arena = c->state->arena;
    uint32_t op_count = graph->ops.count, region_count = graph->regions.count;
    uint32_t *old_count = berth_arena_new_array(arena, uint32_t, region_count);
    for (uint32_t r = 0; r < region_count; ++r) old_count[r] = graph->regions.data[r].ops.count;
    uint32_t *first = berth_arena_new_array(arena, uint32_t, op_count + 1);
    uint32_t *last = berth_arena_new_array(arena, uint32_t, op_count + 1);
    memset(first, 0xff, (op_count + 1) * sizeof(*first));
    memset(last, 0xff, (op_count + 1) * sizeof(*last));
    uint32_t *next = berth_arena_new_array(arena, uint32_t, c->held.count + 1);
    berth_op_id *made = berth_arena_new_array(arena, berth_op_id, c->held.count + 1);
    c->owner = berth_arena_new_array(arena, uint32_t, op_count + c->held.count + 1);
    for (uint32_t h = 0; h < c->held.count; ++h) {
        made[h] = make(c, &c->held.data[h]);
        c->owner[made[h]] = h;
        berth_op_id before = c->held.data[h].before;
        next[h] = BERTH_NONE;
        if (before == BERTH_NONE) continue;
        if (last[before] == BERTH_NONE)
            first[before] = h;
        else
            next[last[before]] = h;
        last[before] = h;
    }
    for (uint32_t r = 0; r < region_count; ++r) weave(c, r, old_count[r], first, next, made);
    for (uint32_t i = 0; i < c->patches.count; ++i) {
        const patch *p = &c->patches.data[i];
        berth_value_id result = c->held.data[p->held].result;
        if (p->slot_of_op)
            *p->slot_of_op = result;
        else
            graph->regions.data[p->region].results.data[p->index] = result;
    }
}

// ---- recording ----------------------------------------------------------------------------------

static berth_device_id recorded(const copier *c, uint32_t node) {
    uint32_t root = berth_constraints_find(c->state->constraints, node);
    const berth_constraint_node *held_node = &c->state->constraints->nodes.data[root];
    if (held_node->function != BERTH_NONE && !held_node->device) return 0;  // all over the place
    return node_device(c, node);
}

static void record(copier *c, uint32_t value_count) {
    berth_graph *graph = c->f->graph;
    for (uint32_t v = 0; v < value_count; ++v) {
        if (berth_planner__is_constant(graph, v)) {
            berth_value *value = &graph->values.data[v];
            if (!value->device) value->device = host(c);  // nobody uses it
            graph->ops.data[value->op].device = value->device;
        } else {
            bool border = graph->values.data[v].op == BERTH_NONE &&
                          graph->values.data[v].region == 0 && on_host_border(c);
            graph->values.data[v].device = border ? host(c) : recorded(c, c->f->value[v]);
        }
    }
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        berth_op *op = &graph->ops.data[c->f->order[k]];
        if (op->kind != BERTH_OP_CONSTANT) op->device = recorded(c, c->f->op[c->f->order[k]]);
        if (op->kind == BERTH_OP_FUNC_REF) op->device = graph->values.data[op->outputs[0]].device;
        if (op->kind == BERTH_OP_DEVICE_COPY)
            berth_attrs_set(c->state->module, &op->attrs, "source",
                            (berth_attr){.kind = BERTH_ATTR_DEVICE,
                                         .device = node_device(c, c->f->extra[c->f->order[k]])});
    }
}

static void copy_function(berth_planner_state *state, berth_func_id function) {
    copier c = {.state = state, .function = function, .f = &state->functions[function]};
    uint32_t value_count = c.f->graph->values.count;
    c.first = berth_arena_new_array(state->arena, uint32_t, value_count + 1);
    memset(c.first, 0xff, (value_count + 1) * sizeof(*c.first));
    c.alias = berth_arena_new_array(state->arena, berth_value_id, value_count + 1);
    for (uint32_t v = 0; v < value_count; ++v)
        if (berth_planner__is_constant(c.f->graph, v) && !c.f->graph->values.data[v].device)
            c.f->graph->values.data[v].device =
                c.f->graph->ops.data[c.f->graph->values.data[v].op].device;
    drop_annotations(&c);
    visit(&c);
    rewrite(&c);
    record(&c, value_count);
}

berth_status berth_planner__copies(berth_planner_state *state) {
    for (uint32_t i = 0; i < state->module->functions.count; ++i)
        if (state->functions[i].graph) copy_function(state, i);
    return BERTH_OK;
}
