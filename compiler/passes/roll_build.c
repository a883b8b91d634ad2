// The function of a chain of stages (roll_rows.h): a loop over time with the stages' rows in it.
#include "compiler/passes/inline_tensor.h"
#include "compiler/passes/roll_rows.h"
#include "compiler/pipeline.h"

typedef struct builder {
    berth_module *module;
    berth_func_id main;
    const berth_roll_chain *chain;
    berth_tfn *to;
    berth_buf *buf_of;  // per value: + 1; 0 = none yet
    BERTH_VEC(berth_value_id) operands;
    BERTH_VEC(berth_value_id) results;
    berth_expr time;
} builder;

static const berth_op *op_of(const builder *b, uint32_t stage) {
    const berth_graph *graph = berth_graph_get(b->module, b->main);
    return &graph->ops.data[b->chain->stages[stage].op];
}

static berth_func_id callee_of(const builder *b, uint32_t stage) {
    return berth_attrs_find(b->module, &op_of(b, stage)->attrs, "callee")->function;
}

static int64_t rows_of(const berth_roll_stage *stage) {
    return berth_row_stage_rows(stage->stage);
}

// ---- buffers ------------------------------------------------------------------------------------

static void add_param(builder *b, berth_value_id value, berth_buf_role role) {
    const berth_graph *graph = berth_graph_get(b->module, b->main);
    const char *name = role == BERTH_ROLE_IN ? "x" : "y";
    b->buf_of[value] = berth_tfn_param(b->to, name, graph->values.data[value].type, role) + 1;
}

static bool is_made(const builder *b, berth_value_id value) {
    berth_op_id op = berth_graph_get(b->module, b->main)->values.data[value].op;
    for (uint32_t i = 0; i < b->chain->count; ++i)
        if (b->chain->stages[i].op == op) return true;
    return false;
}

// Operands, then results.
static void add_params(builder *b) {
    berth_arena *arena = b->module->arena;
    for (uint32_t i = 0; i < b->chain->count; ++i) {
        const berth_op *op = op_of(b, i);
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (is_made(b, op->inputs[k]) || b->buf_of[op->inputs[k]]) continue;
            add_param(b, op->inputs[k], BERTH_ROLE_IN);
            berth_vec_push(arena, &b->operands, op->inputs[k]);
        }
    }
    for (uint32_t i = 0; i < b->chain->count; ++i) {
        const berth_op *op = op_of(b, i);
        for (uint32_t k = 0; k < op->output_count; ++k) {
            if (b->chain->ring_rows[op->outputs[k]]) continue;
            add_param(b, op->outputs[k], BERTH_ROLE_OUT);
            berth_vec_push(arena, &b->results, op->outputs[k]);
        }
    }
}

static void add_rings(builder *b) {
    const berth_graph *graph = berth_graph_get(b->module, b->main);
    for (uint32_t i = 0; i < b->chain->count; ++i) {
        const berth_op *op = op_of(b, i);
        for (uint32_t k = 0; k < op->output_count; ++k) {
            berth_value_id value = op->outputs[k];
            const berth_type *type = berth_type_get(b->module, graph->values.data[value].type);
            int64_t dims[BERTH_MAX_RANK];
            if (!b->chain->ring_rows[value]) continue;
            memcpy(dims, type->dims, sizeof(dims));
            dims[BERTH_ROW_DIM] = b->chain->ring_rows[value];
            b->buf_of[value] = berth_tfn_buffer(b->to, "rows", type->dtype, type->rank, dims,
                                                BERTH_SCOPE_WORKSPACE) +
                               1;
        }
    }
}

// ---- stages -------------------------------------------------------------------------------------

static berth_expr index_of(builder *b, int64_t value) {
    return berth_tfn_index(b->to, value);
}

static berth_expr combine(builder *b, berth_binary op, berth_expr a, int64_t value) {
    return value || op > BERTH_BINARY_SUB ? berth_tfn_binary(b->to, op, a, index_of(b, value)) : a;
}

// Turns before the first one of a period that has a row; and periods before the first row.
static int64_t phase_of(const berth_roll_stage *s) {
    return (s->period - s->delay % s->period) % s->period;
}

static int64_t periods_before(const berth_roll_stage *s) {
    return (s->delay + s->period - 1) / s->period;
}

static berth_expr row_at(builder *b, const berth_roll_stage *s) {
    berth_expr at = combine(b, BERTH_BINARY_ADD, b->time, phase_of(s));
    if (s->period > 1) at = combine(b, BERTH_BINARY_DIV, at, s->period);
    return combine(b, BERTH_BINARY_SUB, at, periods_before(s));
}

// Whether there is a row in this turn; 0 = always.
static berth_expr has_row(builder *b, const berth_roll_stage *s, int64_t turns) {
    berth_expr conditions[3], all = 0;
    int count = 0;
    int64_t end = s->delay + (rows_of(s) - 1) * s->period + 1;
    if (s->delay) conditions[count++] = combine(b, BERTH_BINARY_GE, b->time, s->delay);
    if (end < turns) conditions[count++] = combine(b, BERTH_BINARY_LT, b->time, end);
    if (s->period > 1) {
        berth_expr at = combine(b, BERTH_BINARY_ADD, b->time, phase_of(s));
        at = combine(b, BERTH_BINARY_MOD, at, s->period);
        conditions[count++] = combine(b, BERTH_BINARY_EQ, at, 0);
    }
    for (int i = 0; i < count; ++i)
        all = all ? berth_tfn_binary(b->to, BERTH_BINARY_AND, all, conditions[i]) : conditions[i];
    return all;
}

// Row indices begin at `low` in the first row, and at less in the turns before.
static berth_tfn_ring ring_of(const builder *b, const berth_roll_stage *s, berth_value_id value,
                              int64_t step, int64_t low) {
    const berth_graph *graph = berth_graph_get(b->module, b->main);
    const berth_type *type = berth_type_get(b->module, graph->values.data[value].type);
    int64_t rows = b->chain->ring_rows[value], below = step * periods_before(s) - low;
    if (!rows || rows == type->dims[BERTH_ROW_DIM]) return (berth_tfn_ring){0};
    return (berth_tfn_ring){BERTH_ROW_DIM, rows, below > 0 ? (below + rows - 1) / rows * rows : 0};
}

static berth_stmt add_stage(builder *b, uint32_t index, int64_t turns) {
    const berth_roll_stage *s = &b->chain->stages[index];
    const berth_op *op = op_of(b, index);
    berth_tfn *from = berth_tfn_get(b->module, s->function);
    berth_arena *arena = b->module->arena;
    berth_tfn_region *regions = berth_arena_new_array(arena, berth_tfn_region, from->param_count);
    berth_tfn_ring *rings = berth_arena_new_array(arena, berth_tfn_ring, from->param_count);
    for (uint32_t i = 0; i < from->param_count; ++i) {
        bool result = i >= op->input_count;
        berth_value_id value = result ? op->outputs[i - op->input_count] : op->inputs[i];
        const berth_row_reads *reads = &s->stage->reads[i];
        regions[i].buf = b->buf_of[value] - 1;
        for (int d = 0; d < from->bufs.data[i].rank; ++d) regions[i].starts[d] = index_of(b, 0);
        rings[i] = ring_of(b, s, value, result ? 1 : reads->step, result ? 0 : reads->low);
    }
    berth_tfn_graft graft = {.to = b->to,
                             .from = from,
                             .regions = regions,
                             .rings = rings,
                             .var = s->stage->nest.loops[s->stage->loop].var,
                             .value = row_at(b, s)};
    berth_stmt row = berth_tfn_graft_stmt(&graft, berth_row_stage_emit(from, s->stage));
    berth_expr condition = has_row(b, s, turns);
    return condition ? berth_tfn_if(b->to, condition, row, 0) : row;
}

static int64_t count_turns(const berth_roll_chain *chain) {
    int64_t turns = 0;
    for (uint32_t i = 0; i < chain->count; ++i) {
        const berth_roll_stage *s = &chain->stages[i];
        int64_t end = s->delay + (rows_of(s) - 1) * s->period + 1;
        if (end > turns) turns = end;
    }
    return turns;
}

static void build_body(builder *b) {
    const berth_roll_chain *chain = b->chain;
    int64_t turns = count_turns(chain);
    berth_var time = berth_tfn_var(b->to, "turn");
    berth_stmt *rows = berth_arena_new_array(b->module->arena, berth_stmt, chain->count);
    b->time = berth_tfn_var_ref(b->to, time);
    for (uint32_t i = 0; i < chain->count; ++i) rows[i] = add_stage(b, i, turns);
    berth_stmt loop = berth_tfn_for(b->to, time, index_of(b, turns), BERTH_LOOP_SERIAL,
                                    berth_tfn_seq(b->to, rows, chain->count));
    b->to->body = berth_tfn_seq(b->to, &loop, 1);
    for (uint32_t i = 0; i < chain->count; ++i)
        b->to->flops += berth_tfn_get(b->module, chain->stages[i].function)->flops;
    (void)berth_tfn_compact(b->to);
}

// ---- the call -----------------------------------------------------------------------------------

static berth_loc_id fused_loc(const builder *b) {
    berth_loc_id *parts = berth_arena_new_array(b->module->arena, berth_loc_id, b->chain->count);
    for (uint32_t i = 0; i < b->chain->count; ++i) parts[i] = op_of(b, i)->loc;
    return berth_loc_fuse(b->module, parts, b->chain->count);
}

static bool is_called(const berth_module *module, const berth_graph *graph,
                      berth_func_id function) {
    const berth_region *region = &graph->regions.data[0];
    for (uint32_t i = 0; i < region->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[region->ops.data[i]];
        const berth_attr *callee =
            op->kind == BERTH_OP_CALL ? berth_attrs_find(module, &op->attrs, "callee") : NULL;
        if (callee && callee->function == function) return true;
    }
    return false;
}

// The last call gives all results, whose ids stay.
static void replace_calls(builder *b, berth_func_id function, berth_loc_id loc) {
    berth_graph *graph = berth_graph_get(b->module, b->main);
    berth_region *region = &graph->regions.data[0];
    uint32_t count = b->chain->count, kept = 0;
    berth_func_id *callees = berth_arena_new_array(b->module->arena, berth_func_id, count);
    for (uint32_t i = 0; i < count; ++i) callees[i] = callee_of(b, i);
    berth_op_id last = b->chain->stages[count - 1].op;
    berth_op *call = &graph->ops.data[last];
    for (uint32_t i = 0; i < b->results.count; ++i) {
        graph->values.data[b->results.data[i]].op = last;
        graph->values.data[b->results.data[i]].index = i;
    }
    call->inputs = b->operands.data;
    call->input_count = b->operands.count;
    call->outputs = b->results.data;
    call->output_count = b->results.count;
    call->loc = loc;
    berth_attrs_set(b->module, &call->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
    for (uint32_t i = 0; i + 1 < count; ++i)
        graph->ops.data[b->chain->stages[i].op].region = BERTH_NONE;
    for (uint32_t i = 0; i < region->ops.count; ++i)
        if (graph->ops.data[region->ops.data[i]].region != BERTH_NONE)
            region->ops.data[kept++] = region->ops.data[i];
    region->ops.count = kept;
    for (uint32_t i = 0; i < count; ++i)
        if (!is_called(b->module, graph, callees[i]))
            berth_module_function(b->module, callees[i])->removed = true;
}

void berth_roll__build(berth_module *module, berth_func_id main, const berth_roll_chain *chain) {
    builder b = {.module = module,
                 .main = main,
                 .chain = chain,
                 .buf_of = berth_arena_new_array(module->arena, berth_buf,
                                                 berth_graph_get(module, main)->values.count + 1)};
    berth_loc_id loc = fused_loc(&b);
    berth_func_id first = callee_of(&b, 0);
    berth_func_id function = berth_tfn_create(module, "rolled_rows", loc);
    b.to = berth_tfn_get(module, function);
    add_params(&b);
    add_rings(&b);
    build_body(&b);
    const berth_attrs *attrs = &berth_module_function(module, first)->attrs;
    berth_attrs_set_string(module, &berth_module_function(module, function)->attrs,
                           BERTH_ATTR_TARGET,
                           berth_attrs_string(module, attrs, BERTH_ATTR_TARGET, ""));
    replace_calls(&b, function, loc);
}
