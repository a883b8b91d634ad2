// Structural rules of graph functions: arity, defined before used, one definition, regions.
#include <string.h>

#include "ir/dialect.h"
#include "ir/graph.h"
#include "ir/pass.h"

typedef struct checker {
    const berth_module *module;
    const berth_graph *graph;
    const char *function;
    bool *defined;  // per value
    berth_arena *arena;
} checker;

static berth_status problem(const checker *c, berth_op_id op, const char *what) {
    const char *where = op == BERTH_NONE
                            ? "results"
                            : berth_loc_describe(c->module, c->graph->ops.data[op].loc, c->arena);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "function @%s, %s: %s", c->function, where,
                             what);
}

static berth_status check_arity(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    int inputs = (int)op->input_count;
    int outputs = (int)op->output_count;
    if (inputs < facts->min_inputs || (facts->max_inputs >= 0 && inputs > facts->max_inputs))
        return problem(c, id,
                       berth_arena_printf(c->arena, "%s has %d operands", facts->name, inputs));
    if (outputs < facts->min_outputs || (facts->max_outputs >= 0 && outputs > facts->max_outputs))
        return problem(c, id,
                       berth_arena_printf(c->arena, "%s has %d results", facts->name, outputs));
    return BERTH_OK;
}

static berth_status check_region(checker *c, berth_region_id region_id);

static berth_status check_op(checker *c, berth_op_id id, berth_region_id region) {
    if (id >= c->graph->ops.count) return problem(c, BERTH_NONE, "an operation id is out of range");
    const berth_op *op = &c->graph->ops.data[id];
    if (op->region != region) return problem(c, id, "it is listed in a region that is not its own");
    BERTH_TRY(check_arity(c, id));
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id value = op->inputs[i];
        if (value == BERTH_NONE) continue;
        if (value >= c->graph->values.count || !c->defined[value])
            return problem(
                c, id, berth_arena_printf(c->arena, "operand %u is used before it is defined", i));
    }
    for (uint32_t i = 0; i < op->region_count; ++i) BERTH_TRY(check_region(c, op->regions[i]));
    for (uint32_t i = 0; i < op->output_count; ++i) {
        const berth_value *value = &c->graph->values.data[op->outputs[i]];
        if (value->op != id || value->index != i)
            return problem(c, id, "a result does not name it as its definition");
        c->defined[op->outputs[i]] = true;
    }
    return BERTH_OK;
}

static berth_status check_region(checker *c, berth_region_id region_id) {
    const berth_region *region = &c->graph->regions.data[region_id];
    for (uint32_t i = 0; i < region->params.count; ++i) c->defined[region->params.data[i]] = true;
    for (uint32_t i = 0; i < region->ops.count; ++i)
        BERTH_TRY(check_op(c, region->ops.data[i], region_id));
    for (uint32_t i = 0; i < region->results.count; ++i) {
        berth_value_id value = region->results.data[i];
        if (value >= c->graph->values.count || !c->defined[value])
            return problem(
                c, region->parent,
                berth_arena_printf(c->arena, "result %u is not defined in its region", i));
    }
    return BERTH_OK;
}

berth_status berth_module_verify(const berth_module *module) {
    berth_arena *arena = berth_arena_create_child(module->arena);
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < module->functions.count && !status; ++i) {
        const berth_function *function = &module->functions.data[i];
        if (function->removed) continue;
        if (function->dialect != &berth_dialect_graph) {
            if (function->dialect->verify) status = function->dialect->verify(module, i);
            continue;
        }
        const berth_graph *graph = function->body;
        checker c = {.module = module,
                     .graph = graph,
                     .function = berth_module_str(module, function->name),
                     .defined = berth_arena_new_array(arena, bool, graph->values.count),
                     .arena = arena};
        status = check_region(&c, 0);
    }
    berth_arena_destroy(arena);
    return status;
}
