// The plan as plain data: where everything is, why, and what it costs.
#include <string.h>

#include "planner/stages.h"

static bool listed(const berth_op *op) {
    return op->kind != BERTH_OP_CONSTANT && op->kind != BERTH_OP_DEVICE_COPY &&
           op->kind != BERTH_OP_ON_DEVICE && op->kind != BERTH_OP_FUNC_REF;
}

static const char *op_reason(const berth_planner_state *state, const berth_planner_reasons *reasons,
                             berth_func_id function, berth_op_id id) {
    const berth_planner_function *f = &state->functions[function];
    if (f->graph->ops.data[id].kind == BERTH_OP_CONSTANT) return "constant, where it is used";
    if (!f->reason[id]) f->reason[id] = berth_planner__why(reasons, f->op[id]);
    return f->reason[id];
}

// Of what is said of an operation itself (a pin), there is nothing behind it.
static void add_chain(const berth_planner_state *state, const berth_planner_reasons *reasons,
                      berth_plan_entry *entry) {
    const berth_planner_function *f = &state->functions[state->main];
    entry->chain = berth_planner__chain(reasons, f->op[entry->op], &entry->chain_count);
    if (strcmp(berth_planner__why(reasons, f->op[entry->op]), entry->reason) == 0) return;
    entry->chain = berth_arena_copy(state->arena, &entry->reason, sizeof(entry->reason));
    entry->chain_count = 1;
}

static void list_entries(const berth_planner_state *state, const berth_planner_reasons *reasons,
                         const berth_op_id *ops, uint32_t op_count, berth_plan *plan) {
    const berth_planner_function *f = &state->functions[state->main];
    const berth_cost_model *cost = &state->options->cost;
    plan->entries = berth_arena_new_array(state->arena, berth_plan_entry, op_count);
    for (uint32_t i = 0; i < op_count; ++i) {
        const berth_op *op = &f->graph->ops.data[ops[i]];
        uint32_t device = berth_planner__device_of(state, f->op[ops[i]]);
        if (!listed(op) || device == BERTH_NO_INDEX) continue;
        berth_plan_entry entry = {.op = ops[i],
                                  .loc = op->loc,
                                  .device = device,
                                  .reason = op_reason(state, reasons, state->main, ops[i]),
                                  .host_operation = berth_op_has(op->kind, BERTH_TRAIT_HOST)};
        if (state->options->explain) add_chain(state, reasons, &entry);
        if (cost->time_ns)
            entry.time_ns = cost->time_ns(cost->user, state->module, state->main, ops[i], device);
        if (cost->figure)
            entry.figure = cost->figure(cost->user, state->module, state->main, ops[i], device);
        else if (cost->time_ns)
            entry.figure = BERTH_COST_ANALYTIC;
        if (cost->buffers)
            entry.buffer_count = cost->buffers(cost->user, state->module, state->main, ops[i],
                                               device, state->arena, &entry.buffers);
        plan->entries[plan->entry_count++] = entry;
    }
}

// ---- places -------------------------------------------------------------------------------------

typedef struct reporter {
    const berth_planner_state *state;
    const berth_planner_reasons *reasons;
    berth_func_id function;
    const berth_planner_function *f;
    berth_op_id *user;  // per value: its first user; BERTH_NONE = only results
    BERTH_VEC(berth_plan_place) places;
    BERTH_VEC(berth_plan_copy) copies;
} reporter;

static void find_users(reporter *r, const berth_op_id *order, uint32_t count) {
    const berth_graph *graph = r->f->graph;
    r->user = berth_arena_new_array(r->state->arena, berth_op_id, graph->values.count + 1);
    for (uint32_t v = 0; v < graph->values.count; ++v) r->user[v] = BERTH_NONE;
    for (uint32_t k = 0; k < count; ++k) {
        const berth_op *op = &graph->ops.data[order[k]];
        for (uint32_t i = 0; i < op->input_count; ++i)
            if (op->inputs[i] != BERTH_NONE && r->user[op->inputs[i]] == BERTH_NONE)
                r->user[op->inputs[i]] = order[k];
    }
}

// "needed by sub, model.txt:4:2", "on the way to npu:0".
static const char *copy_reason(const reporter *r, const berth_op *copy) {
    const berth_module *module = r->state->module;
    berth_op_id user = r->user[copy->outputs[0]];
    if (user == BERTH_NONE) return "a result is demanded there";
    const berth_op *op = &r->f->graph->ops.data[user];
    if (op->kind != BERTH_OP_DEVICE_COPY)
        return berth_arena_printf(r->state->arena, "needed there by %s, %s",
                                  berth_op_facts_get(op->kind)->name,
                                  berth_loc_describe(module, op->loc, r->state->arena));
    berth_virtual_device device = berth_virtual_device_get(module->devices, op->device);
    device.has_target = false;
    return berth_arena_printf(r->state->arena, "on the way to %s",
                              berth_virtual_device_name(r->state->arena, device));
}

static const char *value_name(const reporter *r, berth_value_id value) {
    return berth_planner__value_name(r->state, r->f, value);
}

static void add_copy(reporter *r, berth_op_id id, berth_op_id before) {
    const berth_planner_state *state = r->state;
    const berth_multi_target *target = state->options->target;
    const berth_op *op = &r->f->graph->ops.data[id];
    const berth_attr *source = berth_attrs_find(state->module, &op->attrs, "source");
    berth_device_id from = source ? source->device : op->device;
    berth_plan_copy copy = {.op = id,
                            .before = before,
                            .from = berth_plan_device_of(state->module, target, from),
                            .to = berth_plan_device_of(state->module, target, op->device)};
    copy.size_bytes = berth_planner__copy_cost(
        state, from, op->device, r->f->graph->values.data[op->outputs[0]].type, &copy.time_ns);
    copy.bus = berth_planner__bus_of(state, from, op->device, copy.size_bytes,
                                     &copy.bandwidth_bytes_per_s);
    copy.value = value_name(r, op->outputs[0]);
    copy.reason = copy_reason(r, op);
    if (r->function == state->main) berth_vec_push(state->arena, &r->copies, copy);
    berth_vec_push(state->arena, &r->places,
                   (berth_plan_place){.function = r->function,
                                      .kind = BERTH_PLAN_COPY,
                                      .index = id,
                                      .operation = berth_op_facts_get(op->kind)->name,
                                      .value = copy.value,
                                      .loc = op->loc,
                                      .device = op->device,
                                      .from = from,
                                      .size_bytes = copy.size_bytes,
                                      .reason = copy.reason});
}

static void add_op(reporter *r, berth_op_id id) {
    const berth_op *op = &r->f->graph->ops.data[id];
    bool planned = id < r->f->op_count;  // else the clone of a constant
    berth_vec_push(
        r->state->arena, &r->places,
        (berth_plan_place){.function = r->function,
                           .kind = BERTH_PLAN_OP,
                           .index = id,
                           .operation = berth_op_facts_get(op->kind)->name,
                           .value = op->output_count ? value_name(r, op->outputs[0]) : "",
                           .loc = op->loc,
                           .device = op->device,
                           .reason = planned ? op_reason(r->state, r->reasons, r->function, id)
                                             : "constant, where it is used"});
}

static void add_border(reporter *r, berth_plan_place_kind kind, uint32_t index) {
    const berth_planner_function *f = r->f;
    const berth_region *root = &f->graph->regions.data[0];
    bool param = kind == BERTH_PLAN_PARAM;
    bool border = r->state->options->host_bound && r->function == r->state->main;
    berth_value_id value = param ? root->params.data[index] : root->results.data[index];
    uint32_t node = param ? f->value[value] : f->result[index];
    berth_vec_push(
        r->state->arena, &r->places,
        (berth_plan_place){.function = r->function,
                           .kind = kind,
                           .index = index,
                           .value = value_name(r, value),
                           .loc = berth_module_function(r->state->module, r->function)->loc,
                           .device = f->graph->values.data[value].device,
                           .reason = border ? "parameters and results of main are on the host"
                                            : berth_planner__why(r->reasons, node)});
}

static void report_function(reporter *r) {
    const berth_graph *graph = r->f->graph;
    const berth_region *root = &graph->regions.data[0];
    uint32_t count = 0;
    berth_op_id *order = berth_planner__order(r->state, graph, &count);
    find_users(r, order, count);
    for (uint32_t i = 0; i < root->params.count; ++i) add_border(r, BERTH_PLAN_PARAM, i);
    // The operation that a copy is for is the next in its region that is none.
    berth_op_id *next = berth_arena_new_array(r->state->arena, berth_op_id, graph->regions.count);
    berth_op_id *before = berth_arena_new_array(r->state->arena, berth_op_id, count + 1);
    for (uint32_t i = 0; i < graph->regions.count; ++i) next[i] = BERTH_NONE;
    for (uint32_t k = count; k-- > 0;) {
        const berth_op *op = &graph->ops.data[order[k]];
        before[k] = next[op->region];
        if (listed(op)) next[op->region] = order[k];
    }
    for (uint32_t k = 0; k < count; ++k) {
        if (graph->ops.data[order[k]].kind == BERTH_OP_DEVICE_COPY)
            add_copy(r, order[k], before[k]);
        else
            add_op(r, order[k]);
    }
    for (uint32_t i = 0; i < root->results.count; ++i) add_border(r, BERTH_PLAN_RESULT, i);
}

void berth_plan_add_note(berth_plan *plan, berth_arena *arena, const char *note) {
    plan->notes = berth_arena_grow(arena, plan->notes, plan->note_count * sizeof(*plan->notes),
                                   (plan->note_count + 1) * sizeof(*plan->notes));
    plan->notes[plan->note_count++] = note;
}

static void take_turn(const berth_planner_state *state, berth_plan *plan,
                      const berth_plan_copy *copy) {
    const berth_graph *graph = state->functions[state->main].graph;
    berth_value_id value = graph->ops.data[copy->op].outputs[0];
    bool to_host = copy->to == state->options->target->host;
    plan->transfers[plan->transfer_count++] = (berth_plan_transfer){
        .device = to_host ? copy->from : copy->to,
        .to_host = to_host,
        .value = berth_planner__value_name(state, &state->functions[state->main], value),
        .start_ns = plan->predicted_ns,
        .time_ns = copy->time_ns};
    plan->predicted_ns += copy->time_ns;
}

// One after the other: the schedule of plans that are not valued.
static void schedule_in_turn(const berth_planner_state *state, berth_plan *plan) {
    plan->transfers = berth_arena_new_array(state->arena, berth_plan_transfer, plan->copy_count);
    uint32_t next = 0;
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        berth_plan_entry *entry = &plan->entries[i];
        while (next < plan->copy_count && plan->copies[next].before == entry->op)
            take_turn(state, plan, &plan->copies[next++]);
        entry->start_ns = plan->predicted_ns;
        plan->predicted_ns += entry->time_ns;
    }
    while (next < plan->copy_count) take_turn(state, plan, &plan->copies[next++]);
}

berth_plan *berth_planner__report(berth_planner_state *state, const berth_op_id *ops,
                                  uint32_t op_count) {
    reporter r = {.state = state, .reasons = berth_planner__reasons(state)};
    berth_plan *plan = berth_arena_new(state->arena, berth_plan);
    list_entries(state, r.reasons, ops, op_count, plan);
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        r.function = i;
        r.f = &state->functions[i];
        if (r.f->graph) report_function(&r);
    }
    plan->places = r.places.data;
    plan->place_count = r.places.count;
    plan->copies = r.copies.data;
    plan->copy_count = r.copies.count;
    schedule_in_turn(state, plan);
    plan->warnings = state->warnings.data;
    plan->warning_count = state->warnings.count;
    return plan;
}
