// Dispatch of single operations: table.def maps kinds to functions.
#include "ir/eval.h"

#include "ir/eval/internal.h"
#include "ir/extend.h"

static const berth_eval_fn functions[BERTH_OP_COUNT] = {
#define BERTH_EVAL_ROW(id, fn) [BERTH_OP_##id] = fn,
#include "ir/eval/table.def"
#undef BERTH_EVAL_ROW
};

static berth_eval_fn function_of(berth_op_kind kind) {
    const berth_op_definition *definition = berth_op_definition_get(kind);
    if (definition) return definition->eval;
    return (unsigned)kind < BERTH_OP_COUNT ? functions[kind] : NULL;
}

bool berth_eval_supports(berth_op_kind kind) {
    return function_of(kind) != NULL;
}

static berth_status check_counts(const berth_op *op, const berth_tensor *inputs) {
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    if (op->input_count < (uint32_t)facts->min_inputs ||
        (facts->max_inputs >= 0 && op->input_count > (uint32_t)facts->max_inputs))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u operands; %d to %d are expected",
                                 op->input_count, facts->min_inputs, facts->max_inputs);
    if (op->output_count < (uint32_t)facts->min_outputs ||
        (facts->max_outputs >= 0 && op->output_count > (uint32_t)facts->max_outputs))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u results; %d to %d are expected",
                                 op->output_count, facts->min_outputs, facts->max_outputs);
    for (uint32_t i = 0; i < (uint32_t)facts->min_inputs; ++i)
        if (inputs[i].dtype == BERTH_DTYPE_NONE)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "operand %u is missing", i);
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (inputs[i].rank < 0 || inputs[i].rank > BERTH_MAX_RANK)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "operand %u has rank %d", i,
                                     inputs[i].rank);
    return BERTH_OK;
}

// Most operations compute with numbers, and would read strings as such.
static berth_status check_strings(const berth_op *op, const berth_tensor *inputs) {
    if (berth_op_has(op->kind, BERTH_TRAIT_STRINGS | BERTH_TRAIT_STRUCTURE)) return BERTH_OK;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (inputs[i].dtype == BERTH_DTYPE_STRING)
            return berth_status_make(BERTH_UNSUPPORTED, "operand %u is strings", i);
    return BERTH_OK;
}

typedef struct run_state {
    berth_eval_context ctx;
    berth_status failure;  // kept apart from the arena's own failures
    const char *place;
} run_state;

static berth_status run(void *user) {
    run_state *state = user;
    berth_eval_context *ctx = &state->ctx;
    ctx->scratch = berth_arena_create_child(ctx->arena);
    state->failure = check_counts(ctx->op, ctx->inputs);
    if (!state->failure) state->failure = check_strings(ctx->op, ctx->inputs);
    if (!state->failure && !berth_eval_supports(ctx->op->kind))
        state->failure =
            berth_status_make(BERTH_UNSUPPORTED, "the interpreter cannot run this operation");
    if (!state->failure) state->failure = function_of(ctx->op->kind)(ctx);
    if (state->failure) state->place = berth_loc_describe(ctx->module, ctx->op->loc, ctx->scratch);
    return BERTH_OK;
}

berth_status berth_eval_op(const berth_module *module, berth_func_id function, berth_op_id op,
                           const berth_tensor *inputs, berth_tensor *outputs, berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    if (!graph || op >= graph->ops.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "there is no operation %u in this function", op);
    run_state state = {.ctx = {.module = module,
                               .op = &graph->ops.data[op],
                               .inputs = inputs,
                               .outputs = outputs,
                               .arena = arena}};
    const char *name = berth_op_facts_get(state.ctx.op->kind)->name;
    for (uint32_t i = 0; i < state.ctx.op->output_count; ++i) outputs[i] = (berth_tensor){0};
    berth_status status = berth_arena_try(arena, run, &state);
    if (status)
        berth_status_free(state.failure);
    else
        status = berth_status_prefix(state.failure, "%s, %s", name, state.place);
    berth_arena_destroy(state.ctx.scratch);
    return status;
}
