// Stage copies: a device_copy for every change of device, once per (value, destination), at the nearest
// point that dominates its uses (but outside of loops, where the value comes from outside).
// Constants are not copied: each device that uses one gets its own, uploaded when the program is
// opened. Annotations and copies with equal ends vanish; copies that were written out serve every
// use at their destination, and move up where one is needed earlier. Linear in the size of the
// module times the depth of its regions.
#include <string.h>

#include "ir/tensor/function.h"
#include "planner/copier.h"
#include "target/virtual_device.h"

typedef berth_copier copier;
typedef berth_copier_held held;

static berth_virtual_device device_get(const copier *c, berth_device_id id) {
    return berth_virtual_device_get(c->state->module->devices, id);
}

static berth_device_id in_full(const copier *c, berth_device_id id) {
    berth_virtual_device device = device_get(c, id);
    uint32_t index = berth_multi_target_resolve(c->state->options->target, device);
    if (index == BERTH_NO_INDEX) return id;
    berth_virtual_device full = berth_multi_target_virtual_device(c->state->options->target, index);
    full.memory_scope = device.memory_scope;
    return berth_virtual_device_intern(c->state->module->devices, full);
}

// The device in full: kind, number and target of one of the target's devices, and the scope.
berth_device_id berth_copier__complete(const copier *c, berth_device_id id) {
    berth_copier_devices *known = c->devices;
    while (known->full.count <= id) berth_vec_push(c->state->arena, &known->full, 0);
    if (!known->full.data[id]) known->full.data[id] = in_full(c, id);
    return known->full.data[id];
}

berth_device_id berth_copier__node_device(const copier *c, uint32_t node) {
    return berth_copier__complete(c, berth_constraints_device(c->state->constraints, node));
}

bool berth_copier__on_host_border(const copier *c) {
    return c->state->options->host_bound && c->function == c->state->main;
}

berth_device_id berth_copier__host(const copier *c) {
    return berth_planner__device_id(c->state, c->state->options->target->host);
}

// A lowered function writes its result into the scope of its buffer, whatever the value's users
// want; so does a function that is a value, which may be one.
static bool made_in_scope(const copier *c, const berth_value *v, berth_device_id *out_place) {
    if (v->op == BERTH_NONE) return false;
    uint32_t scope = berth_planner__result_scope(c->state, c->function, v->op, v->index);
    if (scope == BERTH_NONE) return false;
    berth_device_id place = berth_planner__in_scope(c->state, c->f->op[v->op], scope);
    if (!device_get(c, place).memory_scope) return false;
    *out_place = berth_copier__complete(c, place);
    return true;
}

berth_device_id berth_copier__home(const copier *c, berth_value_id value) {
    const berth_value *v = &c->f->graph->values.data[value];
    berth_device_id place = 0;
    if (v->op == BERTH_NONE && v->region == 0 && berth_copier__on_host_border(c))
        return berth_copier__host(c);
    if (berth_planner__is_constant(c->f->graph, value)) return v->device;
    if (made_in_scope(c, v, &place)) return place;
    return berth_copier__node_device(c, c->f->value[value]);
}

static const char *scope_name(berth_virtual_device device) {
    return device.memory_scope ? device.memory_scope : "global";
}

static bool same_place(const copier *c, berth_device_id at, berth_device_id wanted) {
    if (at == wanted) return true;
    berth_virtual_device a = device_get(c, at), b = device_get(c, wanted);
    if (b.memory_scope && strcmp(scope_name(a), scope_name(b)) != 0) return false;
    a.memory_scope = b.memory_scope = NULL;
    return berth_virtual_device_equal(a, b);
}

// ---- positions ----------------------------------------------------------------------------------

static berth_region_id region_of(const copier *c, berth_value_id value) {
    const berth_value *v = &c->f->graph->values.data[value];
    if (c->copy[value] != BERTH_NONE) return c->held.data[c->copy[value]].region;
    return v->op == BERTH_NONE ? v->region : c->f->graph->ops.data[v->op].region;
}

static void climb(const berth_graph *graph, berth_region_id *region, berth_op_id *before) {
    *before = graph->regions.data[*region].parent;
    *region = graph->ops.data[*before].region;
}

// The place before which a value must be there for this use: out of loops.
static void leave_loops(const copier *c, berth_value_id value, berth_region_id *region,
                        berth_op_id *before) {
    const berth_graph *graph = c->f->graph;
    berth_region_id home_region = region_of(c, value);
    while (*region != home_region) {
        berth_op_id parent = graph->regions.data[*region].parent;
        if (parent == BERTH_NONE || graph->ops.data[parent].kind != BERTH_OP_LOOP) return;
        climb(graph, region, before);
    }
}

static bool earlier(const copier *c, berth_op_id a, berth_op_id b) {
    if (a == BERTH_NONE || b == BERTH_NONE) return a != BERTH_NONE;
    return c->position[a] < c->position[b];
}

// Moves a copy up until it dominates this place, too.
static void cover(copier *c, held *h, berth_region_id region, berth_op_id before) {
    const berth_graph *graph = c->f->graph;
    berth_region_id old_region = h->region;
    berth_op_id old_before = h->before;
    while (c->depth[h->region] > c->depth[region]) climb(graph, &h->region, &h->before);
    while (c->depth[region] > c->depth[h->region]) climb(graph, &region, &before);
    while (h->region != region) {
        climb(graph, &h->region, &h->before);
        climb(graph, &region, &before);
    }
    if (earlier(c, before, h->before)) h->before = before;
    if (h->region != old_region) leave_loops(c, h->value, &h->region, &h->before);
    if (h->region != old_region || h->before != old_before) h->moved = h->op != BERTH_NONE;
}

// ---- demands ------------------------------------------------------------------------------------

static uint32_t find_held(const copier *c, berth_value_id root, berth_device_id device) {
    uint32_t i = c->first[root];
    while (i != BERTH_NONE && c->held.data[i].device != device) i = c->held.data[i].next;
    return i;
}

// Everything that `found` is copied from must be there, too.
static void cover_sources(copier *c, uint32_t found, berth_region_id region, berth_op_id before) {
    for (uint32_t i = found; i != BERTH_NONE; i = c->held.data[i].source)
        cover(c, &c->held.data[i], region, before);
}

static uint32_t push_held(copier *c, held h) {
    berth_value_id root = c->root[h.value];
    h.next = c->first[root];
    berth_vec_push(c->state->arena, &c->held, h);
    return c->first[root] = c->held.count - 1;
}

static uint32_t demand_one(copier *c, berth_value_id value, berth_device_id from,
                           berth_device_id to, uint32_t source, berth_region_id region,
                           berth_op_id before) {
    uint32_t found = find_held(c, c->root[value], to);
    if (found == BERTH_NONE)
        found = push_held(c, (held){.value = value,
                                    .device = to,
                                    .from = from,
                                    .region = region,
                                    .before = before,
                                    .source = source,
                                    .op = BERTH_NONE});
    cover_sources(c, found, region, before);
    return found;
}

static uint32_t owner_of(const berth_multi_target *target, uint32_t memory) {
    if (target->devices[target->host].own_memory == memory) return target->host;
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].own_memory == memory) return d;
    return BERTH_NO_INDEX;
}

static bool nearer(const copier *c, berth_value_id a, berth_value_id b, berth_device_id to) {
    berth_target_route routes[2] = {{.time_ns = 0}, {.time_ns = 0}};
    const berth_value_id values[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
        berth_device_id from = berth_copier__home(c, values[i]);
        uint64_t size_bytes =
            berth_planner__size_bytes(c->state, c->f->graph->values.data[values[i]].type);
        if (!berth_planner__shared(c->state, from, to) &&
            !berth_planner__route(c->state, berth_planner__memory(c->state, from),
                                  berth_planner__memory(c->state, to), size_bytes, &routes[i]))
            return i == 1;
    }
    return routes[0].time_ns < routes[1].time_ns ||
           (routes[0].time_ns <= routes[1].time_ns && routes[0].hop_count < routes[1].hop_count);
}

// A copy's copy is made from where the value came from, if that is nearer.
static berth_value_id source_of(const copier *c, berth_value_id value, berth_device_id to) {
    berth_value_id root = c->root[value];
    return root != value && nearer(c, root, value, to) ? root : value;
}

// The host, where `device` works in its memory and `other`, of another kind, in one of its own: a queue copies between
// memories of its own kind and the host's, so that the host has the value in between, which moves nothing. Else BERTH_NONE.
static berth_device_id host_between(const copier *c, berth_device_id device,
                                    berth_device_id other) {
    const berth_multi_target *target = c->state->options->target;
    const berth_virtual_device_table *table = c->state->module->devices;
    uint32_t d = berth_multi_target_resolve(target, berth_virtual_device_get(table, device));
    uint32_t o = berth_multi_target_resolve(target, berth_virtual_device_get(table, other));
    berth_device_kind kinds[] = {target->devices[d].target->kind, target->devices[o].target->kind};
    uint32_t host = target->machines[target->devices[d].machine].host;
    if (kinds[0] == kinds[1] || berth_device_kind_is_host(kinds[0]) ||
        berth_device_kind_is_host(kinds[1]) ||
        berth_planner__memory(c->state, device) != target->devices[host].own_memory)
        return BERTH_NONE;
    return berth_planner__device_id(c->state, host);
}

// Brings the value to the last stop of the cheapest route before `to`. Gives the held one there
// (BERTH_NONE: the value itself) and where that is.
static uint32_t demand_stops(copier *c, berth_value_id value, berth_device_id *from,
                             berth_device_id to, berth_region_id region, berth_op_id before) {
    const berth_multi_target *target = c->state->options->target;
    berth_target_route route = {0};
    uint32_t source = c->copy[value];
    if (berth_planner__shared(c->state, *from, to)) return source;
    uint64_t size_bytes = berth_planner__size_bytes(c->state, c->f->graph->values.data[value].type);
    if (!berth_planner__route(c->state, berth_planner__memory(c->state, *from),
                              berth_planner__memory(c->state, to), size_bytes, &route))
        return source;
    // Stop i is in front of hop i.
    for (uint32_t i = 0; i <= route.hop_count; ++i) {
        berth_device_id stop = BERTH_NONE;
        if (i == 0)
            stop = host_between(c, *from, to);
        else if (i == route.hop_count)
            stop = host_between(c, to, *from);
        else if (owner_of(target, route.hops[i - 1].to) != BERTH_NO_INDEX)
            stop = berth_planner__device_id(c->state, owner_of(target, route.hops[i - 1].to));
        if (stop == BERTH_NONE || stop == *from || stop == to) continue;
        source = demand_one(c, value, *from, stop, source, region, before);
        *from = stop;
    }
    return source;
}

// The value at `to`: a clone of a constant, an alias, or the hops of the cheapest route.
static uint32_t demand(copier *c, berth_value_id value, berth_device_id from, berth_device_id to,
                       berth_region_id region, berth_op_id before) {
    if (berth_planner__is_constant(c->f->graph, value)) {
        berth_op_id op = c->f->graph->values.data[value].op;
        return demand_one(c, value, from, to, BERTH_NONE, c->f->graph->ops.data[op].region, op);
    }
    value = source_of(c, value, to);
    from = berth_copier__home(c, value);
    leave_loops(c, value, &region, &before);
    uint32_t source = demand_stops(c, value, &from, to, region, before);
    return demand_one(c, value, from, to, source, region, before);
}

// ---- annotations and copies that were written out -----------------------------------------------

static void drop(copier *c, berth_op *op, berth_value_id replacement) {
    c->alias[op->outputs[0]] = replacement;
    op->region = BERTH_NONE;
}

static void keep_copy(copier *c, berth_op_id id, berth_value_id value, berth_device_id to) {
    berth_op *op = &c->f->graph->ops.data[id];
    value = op->inputs[0] = source_of(c, value, to);
    // Not always where it says: the parameter may be bound to the host.
    berth_device_id from = berth_copier__home(c, value);
    uint32_t source = demand_stops(c, value, &from, to, op->region, id);
    if (source != c->copy[value])
        berth_vec_push(c->state->arena, &c->patches,
                       (berth_copier_patch){.slot_of_op = &op->inputs[0], .held = source});
    c->copy[op->outputs[0]] = push_held(c, (held){.value = value,
                                                  .device = to,
                                                  .from = from,
                                                  .region = op->region,
                                                  .before = id,
                                                  .result = op->outputs[0],
                                                  .source = source,
                                                  .op = id});
    c->root[op->outputs[0]] = c->root[value];
}

// The written copy takes the place of one that was to be made, a stop on another one's way.
static void become(copier *c, uint32_t found, berth_op_id id) {
    berth_op *op = &c->f->graph->ops.data[id];
    held *h = &c->held.data[found];
    h->op = id;
    h->moved = true;
    h->result = op->outputs[0];
    op->inputs[0] = h->value;
    if (h->source != BERTH_NONE)
        berth_vec_push(c->state->arena, &c->patches,
                       (berth_copier_patch){.slot_of_op = &op->inputs[0], .held = h->source});
    c->copy[h->result] = found;
    c->root[h->result] = c->root[h->value];
}

// A copy with equal ends, of a constant, back to where its value comes from, or one that there is
// already: vanishes.
static void written_copy(copier *c, berth_op_id id) {
    berth_op *op = &c->f->graph->ops.data[id];
    berth_value_id value = c->alias[op->inputs[0]], root = c->root[value];
    berth_device_id to = berth_copier__node_device(c, c->f->op[id]);
    if (berth_copier__node_device(c, c->f->extra[id]) == to ||
        berth_planner__is_constant(c->f->graph, value)) {
        drop(c, op, value);
        return;
    }
    if (same_place(c, berth_copier__home(c, root), to)) {
        drop(c, op, root);
        return;
    }
    uint32_t found = find_held(c, root, to);
    if (found == BERTH_NONE) {
        keep_copy(c, id, value, to);
        return;
    }
    cover_sources(c, found, op->region, id);
    if (c->held.data[found].op == BERTH_NONE)
        become(c, found, id);
    else
        drop(c, op, c->held.data[found].result);
}

static void settle(copier *c) {
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        berth_op *op = &c->f->graph->ops.data[c->f->order[k]];
        if (op->kind == BERTH_OP_ON_DEVICE) drop(c, op, c->alias[op->inputs[0]]);
        if (op->kind == BERTH_OP_DEVICE_COPY) written_copy(c, c->f->order[k]);
    }
}

// ---- uses ---------------------------------------------------------------------------------------

static berth_device_id wanted_by(const copier *c, berth_use u, berth_region_id region,
                                 berth_op_id before) {
    if (before == BERTH_NONE && region == 0 && berth_copier__on_host_border(c))
        return berth_copier__host(c);
    if (u.kind == BERTH_USE_LOWERED)
        return berth_copier__complete(c, berth_planner__in_scope(c->state, u.node, u.scope));
    return berth_copier__node_device(c, u.node);
}

static void visit_use(copier *c, berth_use u, berth_value_id *slot, berth_region_id region,
                      berth_op_id before, uint32_t index) {
    if (*slot == BERTH_NONE) return;
    berth_value_id value = *slot = c->alias[*slot];
    if (u.kind == BERTH_USE_FREE || berth_planner__stays(c->state, c->f->graph, value)) return;
    berth_device_id wanted = wanted_by(c, u, region, before);
    berth_device_id at = berth_copier__home(c, value);
    if (berth_planner__is_constant(c->f->graph, value) && !at) {
        c->f->graph->values.data[value].device = wanted;  // its first user
        return;
    }
    if (same_place(c, at, wanted)) return;
    berth_value_id root = c->root[value];
    if (same_place(c, berth_copier__home(c, root), wanted)) {  // no copy of a copy back
        *slot = root;
        return;
    }
    uint32_t h = demand(c, value, at, wanted, region, before);
    berth_vec_push(c->state->arena, &c->patches,
                   (berth_copier_patch){before == BERTH_NONE ? NULL : slot, region, index, h});
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
        if (op->kind == BERTH_OP_DEVICE_COPY) {  // settled
            op->inputs[0] = c->alias[op->inputs[0]];
            continue;
        }
        for (uint32_t i = 0; i < op->input_count; ++i)
            visit_use(c, berth_planner__operand(c->state, c->function, op, id, i), &op->inputs[i],
                      op->region, id, i);
        for (uint32_t r = 0; r < op->region_count; ++r) visit_results(c, op->regions[r]);
    }
    visit_results(c, 0);
}

static void make_tables(copier *c) {
    berth_arena *arena = c->state->arena;
    const berth_graph *graph = c->f->graph;
    c->value_count = graph->values.count;
    c->first = berth_arena_new_array(arena, uint32_t, c->value_count + 1);
    c->copy = berth_arena_new_array(arena, uint32_t, c->value_count + 1);
    memset(c->first, 0xff, (c->value_count + 1) * sizeof(*c->first));
    memset(c->copy, 0xff, (c->value_count + 1) * sizeof(*c->copy));
    c->alias = berth_arena_new_array(arena, berth_value_id, c->value_count + 1);
    c->root = berth_arena_new_array(arena, berth_value_id, c->value_count + 1);
    for (uint32_t v = 0; v < c->value_count; ++v) c->alias[v] = c->root[v] = v;
    c->position = berth_arena_new_array(arena, uint32_t, graph->ops.count + 1);
    c->depth = berth_arena_new_array(arena, uint32_t, graph->regions.count + 1);
    for (uint32_t k = 0; k < c->f->order_count; ++k) {
        const berth_op *op = &graph->ops.data[c->f->order[k]];
        c->position[c->f->order[k]] = k;
        for (uint32_t r = 0; r < op->region_count; ++r)
            c->depth[op->regions[r]] = c->depth[op->region] + 1;
    }
}

void berth_copier__find(berth_copier *c) {
    make_tables(c);
    berth_graph *graph = c->f->graph;
    for (uint32_t v = 0; v < c->value_count; ++v)
        if (berth_planner__is_constant(graph, v) && !graph->values.data[v].device)
            graph->values.data[v].device = graph->ops.data[graph->values.data[v].op].device;
    settle(c);
    visit(c);
}

// Buffers of lowered functions whose scope the callers decided.
static void record_scopes(berth_planner_state *state, berth_func_id function) {
    berth_tfn *fn = berth_tfn_get(state->module, function);
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        berth_device_id id =
            berth_constraints_device(state->constraints, state->functions[function].scope[i]);
        const char *scope = berth_virtual_device_get(state->module->devices, id).memory_scope;
        if (!scope || fn->bufs.data[i].memory_scope) continue;
        fn->bufs.data[i].memory_scope = berth_module_intern(state->module, scope);
        state->changed = true;
    }
}

berth_status berth_planner__copies(berth_planner_state *state) {
    berth_copier_devices devices = {{0}};
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        if (state->functions[i].scope) record_scopes(state, i);
        if (!state->functions[i].graph) continue;
        berth_copier c = {
            .state = state, .function = i, .f = &state->functions[i], .devices = &devices};
        berth_copier__find(&c);
        berth_copier__weave(&c);
    }
    return BERTH_OK;
}
