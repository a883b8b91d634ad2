// Times, transfers, groups, kinds and capacities of @main's placement problem, and what devices share.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/placement_facts.h"

static const double ns_per_ms = 1e6;

uint32_t berth_planner__placement_class(const berth_planner_state *state,
                                        const berth_placement_node *node) {
    const berth_planner_function *f = &state->functions[state->main];
    if (node->border) return BERTH_NONE;
    switch (node->sort) {
    case BERTH_PLACEMENT_OP: return f->op[node->index];
    case BERTH_PLACEMENT_VALUE: return f->value[node->index];
    case BERTH_PLACEMENT_RESULT: return f->result[node->index];
    case BERTH_PLACEMENT_HOST_READ: return state->host;
    }
    return BERTH_NONE;
}

// ---- times --------------------------------------------------------------------------------------

// What the planner itself takes no time for.
static bool takes_no_time(const berth_op *op) {
    return berth_op_has(op->kind, BERTH_TRAIT_HOST) ||
           (berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE) && op->kind != BERTH_OP_CALL &&
            op->kind != BERTH_OP_CALL_VALUE);
}

static double op_ms(const berth_planner__facts *c, berth_func_id function, berth_op_id id,
                    uint32_t device) {
    const berth_cost_model *cost = &c->state->options->cost;
    const berth_op *op = &c->state->functions[function].graph->ops.data[id];
    if (takes_no_time(op)) return 0;
    if (op->kind == BERTH_OP_CALL && c->function_ms) {
        berth_func_id callee = berth_planner__callee(c->state->module, op);
        if (callee != BERTH_NONE && c->state->functions[callee].graph)
            return c->function_ms[(size_t)callee * c->target->device_count + device];
    }
    if (!cost->time_ns) return 0;
    double ns = cost->time_ns(cost->user, c->state->module, function, id, device);
    return ns >= 0 && ns / ns_per_ms <= BERTH_PLACE_FIGURE_LIMIT ? ns / ns_per_ms : 0;
}

static bool calls_functions(const berth_planner__facts *c) {
    for (uint32_t k = 0; k < c->f->order_count; ++k)
        if (c->f->graph->ops.data[c->f->order[k]].kind == BERTH_OP_CALL) return true;
    return false;
}

// Sums over the operations of every function, to a limited depth of calls.
static void time_functions(berth_planner__facts *c) {
    enum { depth = 4 };
    uint32_t functions = c->state->module->functions.count, devices = c->target->device_count;
    if (!calls_functions(c)) return;
    c->function_ms = berth_arena_new_array(c->arena, double, (size_t)functions *devices);
    for (int round = 0; round < depth; ++round) {
        double *next = berth_arena_new_array(c->arena, double, (size_t)functions *devices);
        for (uint32_t i = 0; i < functions; ++i) {
            const berth_planner_function *f = &c->state->functions[i];
            for (uint32_t k = 0; f->graph && k < f->order_count; ++k)
                for (uint32_t d = 0; d < devices; ++d)
                    next[(size_t)i * devices + d] += op_ms(c, i, f->order[k], d);
        }
        memcpy(c->function_ms, next, (size_t)functions * devices * sizeof(double));
    }
}

static bool is_computation(const berth_planner__facts *c, const berth_placement_node *node) {
    return node->sort == BERTH_PLACEMENT_OP && !takes_no_time(&c->f->graph->ops.data[node->index]);
}

// Devices of the target that agree with what is known of a class: all of a kind, perhaps.
static berth_bits agreeing(const berth_planner__facts *c, uint32_t class) {
    return berth_constraints_agreeing(c->state->constraints,
                                      berth_constraints_device(c->state->constraints, class));
}

static double node_ms(const berth_planner__facts *c, const berth_placement_node *node,
                      uint32_t device) {
    uint32_t class = berth_planner__placement_class(c->state, node);
    berth_bits agree = class == BERTH_NONE ? c->state->constraints->all : agreeing(c, class);
    bool pinned = berth_bits_is_single(agree);
    if (!pinned && !berth_bits_has(agree, device)) return INFINITY;
    if (!is_computation(c, node)) return 0;
    uint32_t root = berth_constraints_find(c->state->constraints, class);
    if (!berth_bits_has(c->state->constraints->nodes.data[root].allowed, device)) return INFINITY;
    if (c->target->devices[device].host_only) return INFINITY;
    const uint64_t *reserve_bytes = c->state->options->reserve_bytes;
    if (reserve_bytes && reserve_bytes[device] == UINT64_MAX &&
        berth_planner__device_of(c->state, root) != device)
        return INFINITY;
    return op_ms(c, c->state->main, node->index, device);
}

static int compare_bytes(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// The sizes of all values, ascending, each once.
static uint32_t list_sizes(berth_planner__facts *c, uint32_t *size_of) {
    uint32_t nodes = c->placement->problem.node_count, count = 0;
    c->sizes = berth_arena_new_array(c->arena, double, nodes + 1);
    for (uint32_t v = 0; v < nodes; ++v) c->sizes[v] = c->placement->nodes[v].bytes;
    if (nodes) qsort(c->sizes, nodes, sizeof(double), compare_bytes);
    for (uint32_t i = 0; i < nodes; ++i)
        if (count == 0 || c->sizes[i] > c->sizes[count - 1]) c->sizes[count++] = c->sizes[i];
    for (uint32_t v = 0; v < nodes; ++v) {
        const double *found =
            bsearch(&c->placement->nodes[v].bytes, c->sizes, count, sizeof(double), compare_bytes);
        size_of[v] = (uint32_t)(found - c->sizes);
    }
    return count;
}

// Nothing is copied between devices of one memory, but the one waits for the other: what the cost model
// says of it, if anything. The host's own work begins where the other's ended.
static double hand_over_ms(const berth_planner__facts *c, double bytes, uint32_t device) {
    const berth_cost_model *cost = &c->state->options->cost;
    uint32_t host = c->target->host;
    double there_ns = 0, back_ns = 0;
    if (device == host || !cost->copy_ns) return 0;
    if (!cost->copy_ns(cost->user, host, device, (uint64_t)bytes, &there_ns) ||
        !cost->copy_ns(cost->user, device, host, (uint64_t)bytes, &back_ns))
        return 0;
    return (there_ns + back_ns) / 2 / ns_per_ms;
}

// Between the device's own memory and the host's: the mean of both directions, which the solver does
// not tell apart.
static double transfer_ms(const berth_planner__facts *c, const berth_target_routes *from_host,
                          double bytes, uint32_t device) {
    uint32_t host = c->target->host;
    double there_ns = 0, back_ns = 0;
    if (berth_multi_target_share_memory(c->target, device, host, NULL))
        return hand_over_ms(c, bytes, device);
    if (!berth_planner__transfer_ns(c->state, device, host, (uint64_t)bytes, &there_ns) ||
        !berth_planner__known_ns(c->state, host, device, (uint64_t)bytes, from_host, &back_ns))
        return BERTH_PLACE_FIGURE_LIMIT;
    return fmin((there_ns + back_ns) / 2 / ns_per_ms, BERTH_PLACE_FIGURE_LIMIT);
}

// Per node: whether it computes a value that another one that computes needs.
static const bool *find_inner(const berth_planner__facts *c) {
    const berth_place_problem *problem = &c->placement->problem;
    const berth_placement_node *nodes = c->placement->nodes;
    bool *inner = berth_arena_new_array(c->arena, bool, problem->node_count + 1);
    for (uint32_t i = 0; i < problem->edge_count; ++i) {
        uint32_t from = problem->edge_from[i];
        bool computed = nodes[problem->edge_to[i]].sort == BERTH_PLACEMENT_OP;
        inner[from] |= computed && nodes[from].sort == BERTH_PLACEMENT_OP;
    }
    return inner;
}

static double between_kernels_ms(const berth_planner__facts *c, uint32_t device) {
    const berth_cost_model *cost = &c->state->options->cost;
    uint32_t host = c->target->host;
    if (device == host || !cost->between_kernels_ns ||
        berth_multi_target_share_memory(c->target, device, host, NULL))
        return 0;
    return (cost->between_kernels_ns(cost->user, host, device) +
            cost->between_kernels_ns(cost->user, device, host)) /
           2 / ns_per_ms;
}

static void fill_transfers(berth_planner__facts *c) {
    const bool *inner = find_inner(c);
    uint32_t nodes = c->placement->problem.node_count, devices = c->target->device_count;
    uint32_t *size_of = berth_arena_new_array(c->arena, uint32_t, nodes + 1);
    uint32_t size_count = list_sizes(c, size_of);
    double *ms = berth_arena_new_array(c->arena, double, (size_t)size_count *devices + 1);
    for (uint32_t i = 0; i < size_count; ++i) {
        berth_arena *scratch = berth_arena_create_child(c->arena);
        const berth_target_routes *from_host = berth_multi_target_routes(
            c->target, scratch, c->target->devices[c->target->host].own_memory,
            (uint64_t)c->sizes[i]);
        for (uint32_t d = 0; d < devices; ++d)
            ms[(size_t)i * devices + d] = transfer_ms(c, from_host, c->sizes[i], d);
        berth_arena_destroy(scratch);
    }
    for (uint32_t d = 0; d < devices; ++d) {
        double more_ms = between_kernels_ms(c, d);
        for (uint32_t v = 0; v < nodes; ++v)
            c->transfer[d][v] = ms[(size_t)size_of[v] * devices + d] + (inner[v] ? more_ms : 0);
    }
}

// Whether another device that computes works in the same memory, with something of its own.
static bool shares_memory(const berth_planner__facts *c, uint32_t device) {
    const berth_target_device *devices = c->target->devices;
    uint32_t own = berth_multi_target_resource_of(c->target, device);
    for (uint32_t d = 0; d < c->target->device_count; ++d)
        if (devices[d].own_memory == devices[device].own_memory && !devices[d].host_only &&
            berth_multi_target_resource_of(c->target, d) != own)
            return true;
    return false;
}

// Whether something else wants bandwidth of the device's memory: a device, or, of the host's memory,
// copies from and to others.
bool berth_planner__memory_is_wanted(const berth_planner__facts *c, uint32_t device) {
    const berth_target_device *devices = c->target->devices;
    uint32_t host_memory = devices[c->target->host].own_memory;
    bool wanted = shares_memory(c, device);
    for (uint32_t d = 0; d < c->target->device_count && !wanted; ++d)
        wanted = devices[device].own_memory == host_memory && !devices[d].host_only &&
                 devices[d].own_memory != host_memory;
    return wanted;
}

// What a node takes of its memory's bandwidth; 0 where nobody else wants any.
static double node_memory_ms(const berth_planner__facts *c, uint32_t node, uint32_t device) {
    const berth_cost_model *cost = &c->state->options->cost;
    const berth_placement_node *of = &c->placement->nodes[node];
    double most_ms = c->time[device][node];
    if (!cost->memory_ns || !is_computation(c, of) || most_ms == INFINITY) return 0;
    double ns = cost->memory_ns(cost->user, c->state->module, c->state->main, of->index, device);
    return fmin(fmax(ns, 0) / ns_per_ms, most_ms);
}

static void fill_columns(berth_planner__facts *c) {
    uint32_t nodes = c->placement->problem.node_count, devices = c->target->device_count;
    c->memory_ms = berth_arena_new_array(c->arena, double *, devices);
    c->time = berth_arena_new_array(c->arena, double *, devices);
    c->transfer = berth_arena_new_array(c->arena, double *, devices);
    for (uint32_t d = 0; d < devices; ++d) {
        c->time[d] = berth_arena_new_array(c->arena, double, nodes);
        c->transfer[d] = berth_arena_new_array(c->arena, double, nodes);
        c->memory_ms[d] = berth_arena_new_array(c->arena, double, nodes);
        bool wanted = berth_planner__memory_is_wanted(c, d);
        for (uint32_t v = 0; v < nodes; ++v) {
            const berth_placement_node *node = &c->placement->nodes[v];
            c->time[d][v] = node_ms(c, node, d);
            if (wanted) c->memory_ms[d][v] = node_memory_ms(c, v, d);
        }
    }
    fill_transfers(c);
}

// ---- direct links -------------------------------------------------------------------------------

// What a copy takes that does not go through the host's memory, as a line over its bytes: the
// cheapest route for a value of usual size.
static void measure_link(const berth_planner__facts *c, const berth_target_routes *from_a,
                         uint32_t a, uint32_t b, double *out_ms, double *out_ms_per_byte,
                         const char **out_bus) {
    const berth_target_device *devices = c->target->devices;
    uint32_t host_memory = devices[c->target->host].own_memory;
    berth_target_route route = {0};
    *out_ms = INFINITY;
    *out_ms_per_byte = 0;
    *out_bus = "";
    if (a == c->target->host || b == c->target->host) return;  // the hub
    if (berth_multi_target_share_memory(c->target, a, b, NULL)) {
        *out_ms = fmin(hand_over_ms(c, 0, a), hand_over_ms(c, 0, b));
        return;
    }
    if (devices[a].own_memory == host_memory || devices[b].own_memory == host_memory) return;
    if (!berth_target_routes_get(from_a, devices[b].own_memory, &route)) return;
    double latency_ns = 0, ns_per_byte = 0;
    for (uint32_t i = 0; i < route.hop_count; ++i) {
        if (route.hops[i].to == host_memory) return;
        latency_ns += (double)route.hops[i].latency_ns;
        if (route.hops[i].bandwidth_bytes_per_s > 0)
            ns_per_byte += 1e9 / route.hops[i].bandwidth_bytes_per_s;
        if (route.hops[i].link != BERTH_NO_INDEX && !**out_bus)
            *out_bus = berth_multi_target_bus(c->target, route.hops[i].link);
    }
    *out_ms = latency_ns / ns_per_ms;
    *out_ms_per_byte = ns_per_byte / ns_per_ms;
}

static void fill_links(berth_planner__facts *c) {
    static const uint64_t usual_bytes = 1 << 20;
    uint32_t devices = c->target->device_count;
    c->link_ms = berth_arena_new_array(c->arena, double, (size_t)devices *devices);
    c->link_ms_per_byte = berth_arena_new_array(c->arena, double, (size_t)devices *devices);
    c->link_bus = berth_arena_new_array(c->arena, const char *, (size_t)devices *devices);
    for (uint32_t a = 0; a < devices; ++a) {
        berth_arena *scratch = berth_arena_create_child(c->arena);
        const berth_target_routes *from_a = berth_multi_target_routes(
            c->target, scratch, c->target->devices[a].own_memory, usual_bytes);
        for (uint32_t b = 0; b < devices; ++b)
            measure_link(c, from_a, a, b, &c->link_ms[a * devices + b],
                         &c->link_ms_per_byte[a * devices + b], &c->link_bus[a * devices + b]);
        berth_arena_destroy(scratch);
    }
}

// The bus that transfers between host memory and a device take turns on.
static void find_buses(berth_planner__facts *c) {
    static const uint64_t usual_bytes = 1 << 20;
    const berth_target_device *devices = c->target->devices;
    berth_arena *scratch = berth_arena_create_child(c->arena);
    const berth_target_routes *from_host = berth_multi_target_routes(
        c->target, scratch, devices[c->target->host].own_memory, usual_bytes);
    c->bus = berth_arena_new_array(c->arena, const char *, c->target->device_count);
    for (uint32_t d = 0; d < c->target->device_count; ++d) {
        berth_target_route route = {0};
        c->bus[d] = "";
        if (!berth_target_routes_get(from_host, devices[d].own_memory, &route)) continue;
        for (uint32_t i = 0; i < route.hop_count && !*c->bus[d]; ++i)
            if (route.hops[i].link != BERTH_NO_INDEX)
                c->bus[d] = c->target->links[route.hops[i].link].bus;
    }
    berth_arena_destroy(scratch);
}

// Whether a and b are linked to all others, and these to them, in the same way.
static bool same_links(const berth_planner__facts *c, uint32_t a, uint32_t b) {
    uint32_t devices = c->target->device_count;
    for (uint32_t e = 0; e < devices; ++e) {
        if (e == a || e == b) continue;
        uint32_t pairs[2][2] = {{a * devices + e, b * devices + e},
                                {e * devices + a, e * devices + b}};
        for (int i = 0; i < 2; ++i)
            if (c->link_ms[pairs[i][0]] != c->link_ms[pairs[i][1]] ||
                c->link_ms_per_byte[pairs[i][0]] != c->link_ms_per_byte[pairs[i][1]] ||
                strcmp(c->link_bus[pairs[i][0]], c->link_bus[pairs[i][1]]) != 0)
                return false;
    }
    return true;
}

// Links between kinds, from those between two of their devices; none where none shortens a way.
static void fill_direct(berth_planner__facts *c, const uint32_t *first, const uint32_t *second) {
    berth_place_problem *problem = &c->placement->problem;
    uint32_t kinds = problem->kind_count, devices = c->target->device_count;
    bool any = false;
    double *ms = berth_arena_new_array(c->arena, double, (size_t)kinds *kinds);
    double *per_byte = berth_arena_new_array(c->arena, double, (size_t)kinds *kinds);
    for (uint32_t k = 0; k < kinds; ++k) {
        for (uint32_t l = 0; l < kinds; ++l) {
            uint32_t to = k == l ? second[k] : first[l];
            ms[k * kinds + l] = INFINITY;
            if (to == BERTH_NO_INDEX) continue;
            ms[k * kinds + l] = c->link_ms[first[k] * devices + to];
            per_byte[k * kinds + l] = c->link_ms_per_byte[first[k] * devices + to];
            any |= ms[k * kinds + l] < INFINITY;
        }
    }
    if (!any) return;
    problem->direct_ms = ms;
    problem->direct_ms_per_byte = per_byte;
    problem->value_bytes = berth_arena_new_array(c->arena, double, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        problem->value_bytes[v] = c->placement->nodes[v].bytes;
}

// ---- kinds --------------------------------------------------------------------------------------

static bool shares_resource(const berth_planner__facts *c, uint32_t device) {
    uint32_t own = berth_multi_target_resource_of(c->target, device);
    for (uint32_t d = 0; d < c->target->device_count; ++d)
        if (d != device && berth_multi_target_resource_of(c->target, d) == own) return true;
    return false;
}

static bool same_kind(const berth_planner__facts *c, uint32_t a, uint32_t b) {
    size_t bytes = c->placement->problem.node_count * sizeof(double);
    const berth_target_device *x = &c->target->devices[a], *y = &c->target->devices[b];
    return x->host_only == y->host_only && memcmp(c->time[a], c->time[b], bytes) == 0 &&
           memcmp(c->transfer[a], c->transfer[b], bytes) == 0 &&
           memcmp(c->memory_ms[a], c->memory_ms[b], bytes) == 0 &&
           (x->own_memory == y->own_memory ||
            !(berth_planner__memory_is_wanted(c, a) || berth_planner__memory_is_wanted(c, b))) &&
           c->target->memories[x->own_memory].budget_bytes ==
               c->target->memories[y->own_memory].budget_bytes &&
           c->target->memories[x->constant_memory].budget_bytes ==
               c->target->memories[y->constant_memory].budget_bytes &&
           strcmp(c->bus[a], c->bus[b]) == 0 && same_links(c, a, b) && !shares_resource(c, a) &&
           !shares_resource(c, b);
}

static void fill_kinds(berth_planner__facts *c) {
    berth_placement *out = c->placement;
    berth_place_problem *problem = &out->problem;
    uint32_t devices = c->target->device_count, placed = 0;
    bool *done = berth_arena_new_array(c->arena, bool, devices);
    uint32_t *first = berth_arena_new_array(c->arena, uint32_t, devices);
    uint32_t *second = berth_arena_new_array(c->arena, uint32_t, devices);
    problem->kinds = berth_arena_new_array(c->arena, berth_place_kind, devices);
    out->target_device = berth_arena_new_array(c->arena, uint32_t, devices);
    out->solver_device = berth_arena_new_array(c->arena, uint32_t, devices);
    for (uint32_t a = 0; a < devices; ++a) {
        if (done[a]) continue;
        first[problem->kind_count] = a;
        second[problem->kind_count] = BERTH_NO_INDEX;
        berth_place_kind *kind = &problem->kinds[problem->kind_count++];
        kind->name = c->target->devices[a].name;
        kind->capacity_bytes = INFINITY;
        for (uint32_t b = a; b < devices; ++b) {
            if (done[b] || (b != a && !same_kind(c, a, b))) continue;
            done[b] = true;
            if (++kind->device_count == 2) second[problem->kind_count - 1] = b;
            out->target_device[placed] = b;
            out->solver_device[b] = placed++;
        }
    }
    fill_direct(c, first, second);
    size_t cells = (size_t)problem->node_count * problem->kind_count;
    problem->time = berth_arena_new_array(c->arena, double, cells);
    problem->transfer = berth_arena_new_array(c->arena, double, cells);
    uint32_t device = 0;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        const double *time = c->time[out->target_device[device]];
        const double *transfer = c->transfer[out->target_device[device]];
        for (uint32_t v = 0; v < problem->node_count; ++v) {
            problem->time[(size_t)v * problem->kind_count + k] = time[v];
            problem->transfer[(size_t)v * problem->kind_count + k] = transfer[v];
        }
        device += problem->kinds[k].device_count;
    }
}

// ---- groups and pins ----------------------------------------------------------------------------

static void fill_groups(berth_planner__facts *c) {
    berth_place_problem *problem = &c->placement->problem;
    const berth_constraints *constraints = c->state->constraints;
    uint32_t *group_of = berth_arena_new_array(c->arena, uint32_t, constraints->nodes.count + 1);
    memset(group_of, 0xff, (constraints->nodes.count + 1) * sizeof(uint32_t));
    problem->group = berth_arena_new_array(c->arena, uint32_t, problem->node_count);
    problem->pin = berth_arena_new_array(c->arena, uint32_t, problem->node_count);
    uint32_t groups = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t class = berth_planner__placement_class(c->state, &c->placement->nodes[v]);
        problem->pin[v] = BERTH_PLACE_NONE;
        if (class == BERTH_NONE) {
            problem->group[v] = groups++;
            problem->pin[v] = c->placement->solver_device[c->target->host];
            continue;
        }
        uint32_t root = berth_constraints_find(constraints, class);
        if (group_of[root] == BERTH_NONE) group_of[root] = groups++;
        problem->group[v] = group_of[root];
        berth_bits agree = agreeing(c, class);
        if (berth_bits_is_single(agree))
            problem->pin[v] = c->placement->solver_device[berth_bits_first(agree)];
    }
    problem->group_count = groups;
}

// A group that no device can hold: unsupported operations, or pins of what is unsupported.
static bool some_group_is_impossible(berth_planner__facts *c) {
    const berth_place_problem *problem = &c->placement->problem;
    uint32_t devices = c->target->device_count;
    uint32_t *left = berth_arena_new_array(c->arena, uint32_t, problem->group_count);
    bool *failed = berth_arena_new_array(c->arena, bool, (size_t)problem->group_count *devices);
    for (uint32_t g = 0; g < problem->group_count; ++g) left[g] = devices;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        for (uint32_t d = 0; d < devices; ++d) {
            bool *known = &failed[(size_t)problem->group[v] * devices + d];
            uint32_t pin = problem->pin[v];
            bool can = c->time[d][v] < INFINITY &&
                       (pin == BERTH_PLACE_NONE || pin == c->placement->solver_device[d]);
            if (can || *known) continue;
            *known = true;
            if (--left[problem->group[v]] == 0) return true;
        }
    return false;
}

void berth_planner__placement_facts(berth_placement *placement, berth_arena *arena) {
    const berth_planner_state *state = placement->state;
    berth_planner__facts c = {.placement = placement,
                              .state = state,
                              .f = &state->functions[state->main],
                              .target = state->options->target,
                              .arena = arena};
    time_functions(&c);
    fill_columns(&c);
    fill_links(&c);
    find_buses(&c);
    fill_kinds(&c);
    berth_planner__fill_shared(&c);
    fill_groups(&c);
    placement->impossible = some_group_is_impossible(&c);
}
