// Nodes and edges of @main's placement problem, and the way back to the constraint system.
#include "planner/placement.h"

#include <string.h>

typedef struct builder {
    const berth_planner_state *state;
    const berth_planner_function *f;
    berth_arena *arena;
    BERTH_VEC(berth_placement_node) nodes;
    BERTH_VEC(uint32_t) from;
    BERTH_VEC(uint32_t) to;
    uint32_t *node_of_op;     // BERTH_NONE = none
    uint32_t *node_of_value;  // BERTH_NONE = look at what defines it
    bool *counted;            // per value: a constant that a node holds already
} builder;

static double value_bytes(const builder *b, berth_value_id value) {
    return (double)berth_planner__size_bytes(b->state, b->f->graph->values.data[value].type);
}

// ---- nodes --------------------------------------------------------------------------------------

static uint32_t add_node(builder *b, berth_placement_sort sort, uint32_t index, double bytes) {
    berth_placement_node node = {.sort = sort, .index = index, .bytes = bytes};
    berth_vec_push(b->arena, &b->nodes, node);
    return b->nodes.count - 1;
}

// Functions are in no place.
static void add_value(builder *b, berth_value_id value) {
    if (berth_planner__is_function(b->state, b->f->graph, value)) return;
    b->node_of_value[value] = add_node(b, BERTH_PLACEMENT_VALUE, value, value_bytes(b, value));
}

static bool vanishes(berth_op_kind kind) {
    return kind == BERTH_OP_CONSTANT || kind == BERTH_OP_FUNC_REF || kind == BERTH_OP_ON_DEVICE ||
           kind == BERTH_OP_TUPLE_GET;
}

static void add_op(builder *b, berth_op_id id) {
    const berth_op *op = &b->f->graph->ops.data[id];
    if (vanishes(op->kind)) return;
    if (op->kind == BERTH_OP_TUPLE) {
        add_value(b, op->outputs[0]);
        return;
    }
    bool single = op->output_count == 1 && op->region_count == 0;
    uint32_t node =
        add_node(b, BERTH_PLACEMENT_OP, id, single ? value_bytes(b, op->outputs[0]) : 0);
    b->node_of_op[id] = node;
    if (single) b->node_of_value[op->outputs[0]] = node;
    for (uint32_t r = 0; r < op->region_count; ++r) {
        const berth_region *region = &b->f->graph->regions.data[op->regions[r]];
        for (uint32_t i = 0; i < region->params.count; ++i) add_value(b, region->params.data[i]);
    }
    for (uint32_t i = 0; !single && i < op->output_count; ++i) add_value(b, op->outputs[i]);
}

static void add_nodes(builder *b) {
    const berth_region *root = &b->f->graph->regions.data[0];
    bool border = b->state->options->host_bound;
    for (uint32_t i = 0; i < root->params.count; ++i) {
        add_value(b, root->params.data[i]);
        if (b->nodes.count) b->nodes.data[b->nodes.count - 1].border = border;
    }
    for (uint32_t k = 0; k < b->f->order_count; ++k) add_op(b, b->f->order[k]);
}

// ---- edges --------------------------------------------------------------------------------------

static berth_value_id field_of(const builder *b, const berth_op *get) {
    const berth_graph *graph = b->f->graph;
    berth_value_id tuple = get->inputs[0];
    for (;;) {
        berth_op_id id = graph->values.data[tuple].op;
        if (id == BERTH_NONE) return tuple;
        const berth_op *op = &graph->ops.data[id];
        if (op->kind == BERTH_OP_ON_DEVICE) {
            tuple = op->inputs[0];
            continue;
        }
        int64_t index = berth_attrs_int(b->state->module, &get->attrs, "index", 0);
        bool inside = op->kind == BERTH_OP_TUPLE && index >= 0 && index < op->input_count;
        return inside ? op->inputs[index] : tuple;
    }
}

// The node whose value this is, or BERTH_NONE for constants and functions.
static uint32_t source_of(const builder *b, berth_value_id value) {
    const berth_graph *graph = b->f->graph;
    while (value != BERTH_NONE && b->node_of_value[value] == BERTH_NONE) {
        berth_op_id id = graph->values.data[value].op;
        if (id == BERTH_NONE) return BERTH_NONE;
        const berth_op *op = &graph->ops.data[id];
        if (op->kind == BERTH_OP_ON_DEVICE)
            value = op->inputs[0];
        else if (op->kind == BERTH_OP_TUPLE_GET)
            value = field_of(b, op);
        else
            return BERTH_NONE;
    }
    return value == BERTH_NONE ? BERTH_NONE : b->node_of_value[value];
}

static void add_edge(builder *b, uint32_t from, uint32_t to) {
    if (from == BERTH_NONE || to == BERTH_NONE || from == to) return;
    berth_vec_push(b->arena, &b->from, from);
    berth_vec_push(b->arena, &b->to, to);
}

static void add_constant(builder *b, berth_value_id value, uint32_t node) {
    if (b->counted[value]) return;
    b->counted[value] = true;
    b->nodes.data[node].constant_bytes += value_bytes(b, value);
}

static void add_operand(builder *b, berth_op_id id, uint32_t operand, uint32_t node) {
    const berth_op *op = &b->f->graph->ops.data[id];
    berth_value_id value = op->inputs[operand];
    berth_use use = berth_planner__operand(b->state, b->state->main, op, id, operand);
    if (value == BERTH_NONE || use.kind == BERTH_USE_FREE) return;
    bool on_host = use.kind == BERTH_USE_SOFT && use.node == b->state->host;
    if (berth_planner__is_constant(b->f->graph, value)) {
        if (!on_host) add_constant(b, value, node);
        return;
    }
    uint32_t from = source_of(b, value);
    if (on_host && op->region_count == 0 && from != BERTH_NONE) {
        uint32_t read = add_node(b, BERTH_PLACEMENT_HOST_READ, id, 0);
        add_edge(b, from, read);
        from = read;
    }
    add_edge(b, from, node);
}

// Values that go into regions and come out of them.
static void add_region_edges(builder *b, berth_op_id id, uint32_t node) {
    const berth_op *op = &b->f->graph->ops.data[id];
    uint32_t skipped = op->kind == BERTH_OP_LOOP;  // the condition is no result
    for (uint32_t r = 0; r < op->region_count; ++r) {
        const berth_region *region = &b->f->graph->regions.data[op->regions[r]];
        for (uint32_t i = 0; i < region->params.count; ++i) {
            uint32_t param = b->node_of_value[region->params.data[i]];
            add_edge(b, node, param);
            if (i >= 2 && i < op->input_count) add_edge(b, source_of(b, op->inputs[i]), param);
        }
        for (uint32_t i = skipped; i < region->results.count; ++i)
            if (i - skipped < op->output_count)
                add_edge(b, source_of(b, region->results.data[i]),
                         b->node_of_value[op->outputs[i - skipped]]);
    }
}

static void add_op_edges(builder *b, berth_op_id id) {
    const berth_op *op = &b->f->graph->ops.data[id];
    if (vanishes(op->kind)) return;
    uint32_t node =
        op->kind == BERTH_OP_TUPLE ? b->node_of_value[op->outputs[0]] : b->node_of_op[id];
    uint32_t operands = op->input_count;
    if (op->kind == BERTH_OP_LOOP && operands > 2) operands = 2;  // the others go to the body
    for (uint32_t i = 0; i < operands; ++i) add_operand(b, id, i, node);
    for (uint32_t i = 0; i < op->output_count; ++i)
        add_edge(b, node, b->node_of_value[op->outputs[i]]);
    add_region_edges(b, id, node);
}

static void add_edges(builder *b) {
    const berth_region *root = &b->f->graph->regions.data[0];
    for (uint32_t k = 0; k < b->f->order_count; ++k) add_op_edges(b, b->f->order[k]);
    for (uint32_t i = 0; i < root->results.count; ++i) {
        uint32_t from = source_of(b, root->results.data[i]);
        if (from == BERTH_NONE) continue;  // a constant: the rules keep it where it was
        uint32_t node = add_node(b, BERTH_PLACEMENT_RESULT, i, 0);
        b->nodes.data[node].border = b->state->options->host_bound;
        add_edge(b, from, node);
    }
}

// ---- the problem --------------------------------------------------------------------------------

static const char *node_name(const builder *b, const berth_placement_node *node) {
    const berth_module *module = b->state->module;
    const berth_graph *graph = b->f->graph;
    switch (node->sort) {
    case BERTH_PLACEMENT_OP:
        return berth_loc_describe(module, graph->ops.data[node->index].loc, b->arena);
    case BERTH_PLACEMENT_VALUE:
        return berth_arena_printf(b->arena, "%%%s",
                                  berth_planner__value_name(b->state, b->f, node->index));
    case BERTH_PLACEMENT_RESULT:
        return berth_arena_printf(b->arena, "result %u of @main", node->index);
    case BERTH_PLACEMENT_HOST_READ:
        return berth_arena_printf(
            b->arena, "shape read for %s",
            berth_loc_describe(module, graph->ops.data[node->index].loc, b->arena));
    }
    return "";
}

static void fill_problem(builder *b, berth_placement *out) {
    berth_place_problem *problem = &out->problem;
    problem->node_count = b->nodes.count;
    problem->edge_count = b->from.count;
    problem->edge_from = b->from.data;
    problem->edge_to = b->to.data;
    problem->node_names = berth_arena_new_array(b->arena, const char *, b->nodes.count);
    problem->size_bytes = berth_arena_new_array(b->arena, double, b->nodes.count);
    problem->backward = berth_arena_new_array(b->arena, bool, b->nodes.count);
    for (uint32_t v = 0; v < b->nodes.count; ++v) {
        problem->node_names[v] = node_name(b, &b->nodes.data[v]);
        problem->size_bytes[v] = b->nodes.data[v].constant_bytes;
    }
    out->nodes = b->nodes.data;
    out->node_of_op = b->node_of_op;
}

berth_status berth_planner__placement_build(const berth_planner_state *state, berth_arena *arena,
                                            berth_placement **out_placement) {
    builder b = {.state = state, .f = &state->functions[state->main], .arena = arena};
    uint32_t values = b.f->graph->values.count, ops = b.f->graph->ops.count;
    b.node_of_value = berth_arena_new_array(arena, uint32_t, values + 1);
    b.node_of_op = berth_arena_new_array(arena, uint32_t, ops + 1);
    b.counted = berth_arena_new_array(arena, bool, values + 1);
    memset(b.node_of_value, 0xff, (values + 1) * sizeof(uint32_t));
    memset(b.node_of_op, 0xff, (ops + 1) * sizeof(uint32_t));
    add_nodes(&b);
    add_edges(&b);
    berth_placement *out = *out_placement = berth_arena_new(arena, berth_placement);
    out->state = state;
    fill_problem(&b, out);
    berth_planner__placement_facts(out, arena);
    return berth_place_problem_finish(arena, &out->problem);
}

// ---- the way back -------------------------------------------------------------------------------

bool berth_planner__placement_read(const berth_placement *placement,
                                   const berth_planner_state *state, uint32_t *out_assignment) {
    for (uint32_t v = 0; v < placement->problem.node_count; ++v) {
        const berth_placement_node *node = &placement->nodes[v];
        uint32_t class = berth_planner__placement_class(state, node);
        uint32_t device = class == BERTH_NONE ? state->options->target->host
                                              : berth_planner__device_of(state, class);
        if (device == BERTH_NO_INDEX) return false;
        out_assignment[v] = placement->solver_device[device];
    }
    return true;
}

berth_status berth_planner__placement_fix(const berth_placement *placement,
                                          berth_planner_state *state, const uint32_t *assignment,
                                          const char *reason) {
    berth_planner_function *f = &state->functions[state->main];
    bool *done = berth_arena_new_array(state->arena, bool, placement->problem.group_count);
    for (uint32_t v = 0; v < placement->problem.node_count; ++v) {
        const berth_placement_node *node = &placement->nodes[v];
        uint32_t class = berth_planner__placement_class(state, node);
        if (class == BERTH_NONE || placement->problem.pin[v] != BERTH_PLACE_NONE) continue;
        bool is_op = node->sort == BERTH_PLACEMENT_OP;
        if (is_op && !f->reason[node->index]) f->reason[node->index] = reason;
        if (done[placement->problem.group[v]]) continue;
        done[placement->problem.group[v]] = true;
        uint32_t device = placement->target_device[assignment[v]];
        berth_loc_id loc = is_op ? f->graph->ops.data[node->index].loc : 0;
        BERTH_TRY(berth_constraints_fix(state->constraints, class,
                                        berth_planner__device_id(state, device),
                                        (berth_constraint_reason){reason, loc}));
    }
    return BERTH_OK;
}
