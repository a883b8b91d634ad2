// The driver: reduction-trait operations become nests in order, everything else is inlined into
// them or into a nest per remaining result. The value of a reduction goes through its pointwise
// epilogue straight to the results; where something else needs it (another reduction, a reshaped
// result), it is kept in a workspace buffer as well.
#include "compiler/lower/lower.h"

#include <string.h>

#include "compiler/lower/context.h"
#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/skip_zeros.h"
#include "compiler/schedule/work_groups.h"

typedef struct job {
    berth_lower c;
    const berth_value_id *params;
    uint32_t param_count;
    const berth_value_id *results;
    uint32_t result_count;
    const berth_op_id *ops;
    uint32_t op_count;
    berth_buf *result_bufs;
    bool *done;    // per result: stored
    int8_t *memo;  // per value, of one classification
    bool *inside;  // per operation of the graph: a sum that is computed where it is read
} job;

enum { most_ops = 2048 };  // of a function: looking for what reads what recurses over them

static const berth_op *op_of(const berth_lower *c, berth_value_id value) {
    berth_op_id id = c->graph->values.data[value].op;
    return id == BERTH_NONE ? NULL : &c->graph->ops.data[id];
}

static bool is_nest(const job *j, const berth_op *op) {
    const berth_lower_row *row = berth_lower__row(op->kind);
    return row && row->nest && !j->inside[op - j->c.graph->ops.data];
}

// ---- kernels ------------------------------------------------------------------------------------

static void begin_nest(berth_lower *c) {
    berth_vec_push(c->scratch, &c->frames, (berth_lower_frame){.kind = BERTH_LOWER_FRAME_PLAIN});
    c->memo.count = 0;
}

// One kernel is one parallel loop; statements around it get a loop of one iteration.
static void end_nest(berth_lower *c) {
    berth_lower_frame frame = c->frames.data[--c->frames.count];
    if (frame.stmts.count == 0) return;
    berth_stmt nest = frame.stmts.data[0];
    const berth_stmt_node *node = &c->fn->stmts.data[nest];
    bool is_loop = frame.stmts.count == 1 && node->kind == BERTH_STMT_FOR &&
                   node->loop_kind == BERTH_LOOP_PARALLEL;
    if (!is_loop) {
        berth_stmt body = frame.stmts.count == 1
                              ? nest
                              : berth_tfn_seq(c->fn, frame.stmts.data, frame.stmts.count);
        nest =
            berth_tfn_for(c->fn, berth_tfn_var(c->fn, "once"), ix(c, 1), BERTH_LOOP_PARALLEL, body);
    }
    berth_lower__emit(c, nest);
}

void berth_lower__next_nest(berth_lower *c) {
    end_nest(c);
    begin_nest(c);
}

// ---- where results of an anchor go --------------------------------------------------------------

enum { none = -1, not_pointwise = -2 };  // else: the output of the anchor

static bool same_dims(const berth_type *a, const berth_type *b) {
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

static int classify(job *j, const berth_op *anchor, berth_value_id value);

static int classify_inner(job *j, const berth_op *anchor, berth_value_id value) {
    berth_lower *c = &j->c;
    const berth_op *op = op_of(c, value);
    if (!op || c->bindings[value].kind == BERTH_LOWER_BUFFER) return none;
    for (uint32_t i = 0; op == anchor && i < op->output_count; ++i)
        if (op->outputs[i] == value) return (int)i;
    if (is_nest(j, op)) return not_pointwise;  // a later one
    int found = none;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (!has_in(op, i)) continue;
        int from = classify(j, anchor, op->inputs[i]);
        if (from == none) continue;
        if (from == not_pointwise || (found != none && from != found)) return not_pointwise;
        bool pointwise = berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) &&
                         same_dims(type_of(c, op->inputs[i]), type_of(c, value));
        if (!pointwise) return not_pointwise;
        found = from;
    }
    return found;
}

static int classify(job *j, const berth_op *anchor, berth_value_id value) {
    if (!j->memo[value]) j->memo[value] = (int8_t)(classify_inner(j, anchor, value) + 4);
    return j->memo[value] - 4;
}

// Whether `value` reads output values of `anchor` through inlined operations. Reuses the memo: 1
// no, 2 yes.
static bool reaches(job *j, const berth_op *anchor, berth_value_id value, berth_value_id target) {
    if (value == target) return true;
    const berth_op *op = op_of(&j->c, value);
    if (!op || j->c.bindings[value].kind == BERTH_LOWER_BUFFER) return false;
    if (is_nest(j, op)) return false;
    if (j->memo[value]) return j->memo[value] == 2;
    bool found = false;
    for (uint32_t i = 0; i < op->input_count && !found; ++i)
        found = has_in(op, i) && reaches(j, anchor, op->inputs[i], target);
    j->memo[value] = found ? 2 : 1;
    return found;
}

// Is output `target` read by a later nest or by a result that is not stored yet?
static bool needed_later(job *j, uint32_t position, berth_value_id target) {
    const berth_op *anchor = &j->c.graph->ops.data[j->ops[position]];
    memset(j->memo, 0, j->c.graph->values.count);
    for (uint32_t r = 0; r < j->result_count; ++r)
        if (!j->done[r] && reaches(j, anchor, j->results[r], target)) return true;
    for (uint32_t p = position + 1; p < j->op_count; ++p) {
        const berth_op *op = &j->c.graph->ops.data[j->ops[p]];
        if (!is_nest(j, op)) continue;
        for (uint32_t i = 0; i < op->input_count; ++i)
            if (has_in(op, i) && reaches(j, anchor, op->inputs[i], target)) return true;
    }
    return false;
}

static bool row_major(const berth_lower *c, berth_value_id value) {
    return type_of(c, value)->layout == 0;
}

static void add_sink(berth_lower *c, uint32_t output, berth_value_id value, berth_buf buf) {
    berth_vec_push(c->scratch, &c->sinks,
                   (berth_lower_sink){.output = output, .value = value, .buf = buf});
}

// A result as a sink of its own value, or, where it pads one with a constant, of that one.
static berth_lower_sink sink_of(job *j, const berth_lower_row *row, uint32_t result) {
    berth_lower_sink sink = {.value = j->results[result], .buf = j->result_bufs[result]};
    const berth_op *op = op_of(&j->c, sink.value);
    if (!row->any_layout || !op || op->kind != BERTH_OP_PAD) return sink;
    if (!berth_lower__constant_pads(&j->c, op, sink.pads)) {
        memset(sink.pads, 0, sizeof(sink.pads));
        return sink;
    }
    sink.pad = op;
    sink.value = op->inputs[0];
    return sink;
}

// Results that the anchor may store itself.
static void plan_results(job *j, const berth_op *anchor, const berth_lower_row *row) {
    berth_lower *c = &j->c;
    berth_str_id layout[2] = {0};
    memset(j->memo, 0, c->graph->values.count);
    for (uint32_t r = 0; r < j->result_count; ++r) {
        berth_lower_sink sink = sink_of(j, row, r);
        berth_value_id value = j->results[r];
        int output = j->done[r] ? none : classify(j, anchor, sink.value);
        if (output < 0) continue;
        sink.output = (uint32_t)output;
        bool plain = value == anchor->outputs[output];
        bool taken = berth_lower__wanted(c, (uint32_t)output);
        if (row->in_buffer && (!plain || taken)) continue;
        if (!row->any_layout && !row_major(c, value)) continue;
        if (output < 2 && taken && layout[output] != type_of(c, value)->layout) continue;
        if (output < 2) layout[output] = type_of(c, value)->layout;
        berth_vec_push(c->scratch, &c->sinks, sink);
        j->done[r] = true;
    }
}

static void lower_nest(job *j, uint32_t position) {
    berth_lower *c = &j->c;
    const berth_op *op = &c->graph->ops.data[j->ops[position]];
    const berth_lower_row *row = berth_lower__row(op->kind);
    c->sinks.count = 0;
    plan_results(j, op, row);
    BERTH_VEC(berth_lower_sink) kept = {0};
    for (uint32_t k = 0; k < op->output_count; ++k) {
        berth_value_id value = op->outputs[k];
        if (!needed_later(j, position, value)) continue;
        if (row->in_buffer && berth_lower__wanted(c, k)) {  // later nests read the result itself
            berth_buf buf = berth_lower__buffer(c, k);
            berth_vec_push(c->scratch, &kept,
                           (berth_lower_sink){.output = k, .value = value, .buf = buf});
            continue;
        }
        const berth_type *type = type_of(c, value);
        berth_dtype dtype = type->dtype;
        berth_buf buf =
            berth_tfn_buffer(c->fn, "t", dtype, type->rank, type->dims, BERTH_SCOPE_WORKSPACE);
        add_sink(c, k, value, buf);
        berth_vec_push(c->scratch, &kept,
                       (berth_lower_sink){.output = k, .value = value, .buf = buf});
    }
    if (c->sinks.count == 0) return;  // nobody reads it
    begin_nest(c);
    row->nest(c, op);
    for (uint32_t i = 0; i < c->sinks.count && !c->failure; ++i)
        if (c->sinks.data[i].pad) berth_lower__fill_border(c, &c->sinks.data[i]);
    end_nest(c);
    for (uint32_t i = 0; i < kept.count; ++i)
        c->bindings[kept.data[i].value] =
            (berth_lower_binding){.kind = BERTH_LOWER_BUFFER, .buf = kept.data[i].buf};
    c->sinks.count = 0;
}

// A result that no anchor stored: one element after the other.
static void lower_result(job *j, uint32_t r) {
    berth_lower *c = &j->c;
    berth_lower_grid grid;
    begin_nest(c);
    berth_lower__grid_buffer(c, j->result_bufs[r], &(berth_lower_grid_options){0}, &grid);
    if (c->failure) return;
    berth_expr value = berth_lower__element(c, j->results[r], grid.at);
    if (c->failure) return;
    if (c->valid) value = x_select(c, c->valid, value, num(c, dtype_of(c, value), 0));
    berth_lower__put(c, j->result_bufs[r], grid.at, value);
    berth_lower__grid_end(c, &grid);
    end_nest(c);
}

// ---- the whole function -------------------------------------------------------------------------

static bool check_type(berth_lower *c, const berth_op *op, berth_value_id value) {
    const berth_type *type = type_of(c, value);
    if (berth_type_is_static(type)) return true;
    berth_strbuf text = berth_strbuf_make(c->scratch);
    berth_type_print(c->module, c->graph->values.data[value].type, &text);
    const char *name = berth_module_str(c->module, c->graph->values.data[value].name);
    if (op)
        berth_lower__fail(c, op, "value \"%s\" of type %s has no static shape", name,
                          berth_strbuf_text(&text));
    else
        c->failure =
            berth_status_make(BERTH_UNSUPPORTED, "parameter \"%s\" of type %s has no static shape",
                              name, berth_strbuf_text(&text));
    return false;
}

static bool check_op(berth_lower *c, const berth_op *op) {
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (op->outputs[i] != BERTH_NONE && !check_type(c, op, op->outputs[i])) return false;
    if (op->kind == BERTH_OP_CONSTANT) return true;
    if (berth_op_has(op->kind, BERTH_TRAIT_DATA_DEPENDENT)) {
        berth_lower__fail(c, op, "its output shape is data-dependent");
        return false;
    }
    const berth_lower_row *row = berth_lower__row(op->kind);
    if (row) return true;
    berth_lower__fail(c, op, "there is no lowering for this operation");
    return false;
}

static void bind_params(job *j) {
    berth_lower *c = &j->c;
    for (uint32_t i = 0; i < j->param_count && !c->failure; ++i) {
        const berth_value *value = &c->graph->values.data[j->params[i]];
        if (!check_type(c, NULL, j->params[i])) return;
        const char *name = berth_module_str(c->module, value->name);
        if (!*name) name = berth_arena_printf(c->scratch, "x%u", i);
        berth_buf buf = berth_tfn_param(c->fn, name, value->type, BERTH_ROLE_IN);
        c->bindings[j->params[i]] = (berth_lower_binding){.kind = BERTH_LOWER_BUFFER, .buf = buf};
    }
    for (uint32_t r = 0; r < j->result_count && !c->failure; ++r) {
        const berth_value *value = &c->graph->values.data[j->results[r]];
        if (!check_type(c, op_of(c, j->results[r]), j->results[r])) return;
        const char *name = berth_module_str(c->module, value->name);
        if (!*name) name = berth_arena_printf(c->scratch, "y%u", r);
        j->result_bufs[r] = berth_tfn_param(c->fn, name, value->type, BERTH_ROLE_OUT);
    }
}

// What follows walks expressions by recursion.
static void check_depth(job *j) {
    const berth_tfn *fn = j->c.fn;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < fn->exprs.count; ++i)
        if (fn->exprs.data[i].depth > depth) depth = fn->exprs.data[i].depth;
    if (depth <= BERTH_TFN_MAX_DEPTH) return;
    const berth_op *last = &j->c.graph->ops.data[j->ops[j->op_count - 1]];
    berth_lower__fail(&j->c, last, "its expressions nest %u deep; at most %d", depth,
                      BERTH_TFN_MAX_DEPTH);
}

// What an elementwise operation computes its result of, element by element: an operand that is computed
// here and read by it alone.
static berth_value_id pointwise_operand(const job *j, const berth_op *op, const uint32_t *uses) {
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (!has_in(op, i)) continue;
        const berth_op *made = op_of(&j->c, op->inputs[i]);
        if (made && made->kind != BERTH_OP_CONSTANT && uses[op->inputs[i]] == 1 &&
            same_dims(in_type(&j->c, op, i), out_type(&j->c, op, 0)))
            return op->inputs[i];
    }
    return BERTH_NONE;
}

// Products that one operation reads, once, through elementwise operations alone.
static void find_inside(job *j) {
    const berth_graph *graph = j->c.graph;
    uint32_t *uses = berth_graph_count_uses(graph, j->c.scratch);
    for (uint32_t i = 0; i < j->op_count; ++i) {
        const berth_op *op = &graph->ops.data[j->ops[i]];
        if (!berth_lower_has_sum(op) || !berth_lower_reads_once(j->c.module, graph, op)) continue;
        berth_value_id value = uses[op->inputs[0]] == 1 ? op->inputs[0] : BERTH_NONE;
        const berth_op *made = value == BERTH_NONE ? NULL : op_of(&j->c, value);
        while (made && berth_op_has(made->kind, BERTH_TRAIT_ELEMENTWISE)) {
            value = pointwise_operand(j, made, uses);
            made = value == BERTH_NONE ? NULL : op_of(&j->c, value);
        }
        if (made && berth_lower_has_sum(made)) j->inside[made - graph->ops.data] = true;
    }
}

// Products whose left side is a softmax of a product's rows: all of it in the loops of the last.
static void find_attentions(job *j) {
    berth_lower *c = &j->c;
    uint32_t *uses = berth_graph_count_uses(c->graph, c->scratch);
    for (uint32_t i = 0; i < j->op_count; ++i) {
        berth_attention found;
        if (!berth_attention_find(c->module, c->graph, uses, j->ops[i], &found)) continue;
        c->attentions[j->ops[i]] = berth_arena_copy(c->scratch, &found, sizeof(found));
        j->inside[found.scores] = j->inside[found.softmax] = true;
    }
}

// The status returned is the context's `failure`.
static berth_status run(job *j) {
    berth_lower *c = &j->c;
    c->bindings =
        berth_arena_new_array(c->scratch, berth_lower_binding, c->graph->values.count + 1);
    j->result_bufs = berth_arena_new_array(c->scratch, berth_buf, j->result_count + 1);
    j->done = berth_arena_new_array(c->scratch, bool, j->result_count + 1);
    j->memo = berth_arena_new_array(c->scratch, int8_t, c->graph->values.count + 1);
    j->inside = berth_arena_new_array(c->scratch, bool, c->graph->ops.count + 1);
    c->attentions =
        berth_arena_new_array(c->scratch, const berth_attention *, c->graph->ops.count + 1);
    if (j->op_count > most_ops)
        return c->failure = berth_status_make(BERTH_UNSUPPORTED,
                                              "a primitive function of %u operations; at most %d",
                                              j->op_count, (int)most_ops);
    bind_params(j);
    for (uint32_t i = 0; i < j->op_count && !c->failure; ++i)
        check_op(c, &c->graph->ops.data[j->ops[i]]);
    if (c->failure) return c->failure;
    find_inside(j);
    find_attentions(j);
    berth_vec_push(c->scratch, &c->frames, (berth_lower_frame){.kind = BERTH_LOWER_FRAME_PLAIN});
    for (uint32_t i = 0; i < j->op_count && !c->failure; ++i)
        if (is_nest(j, &c->graph->ops.data[j->ops[i]])) lower_nest(j, i);
    for (uint32_t r = 0; r < j->result_count && !c->failure; ++r)
        if (!j->done[r]) lower_result(j, r);
    if (!c->failure) check_depth(j);
    if (c->failure) return c->failure;
    berth_lower_frame body = c->frames.data[0];
    c->fn->body = berth_tfn_seq(c->fn, body.stmts.data, body.stmts.count);
    berth_tfn_simplify_body(c->fn);
    c->fn->flops = berth_tfn_count_flops(c->fn);
    return BERTH_OK;
}

typedef struct call {
    berth_module *module;
    berth_func_id primitive;
    berth_func_id created;
    job j;  // outlives a jump out of it, so that a pending failure is freed
} call;

// Schedules of plug-ins know their operations by name.
static void note_registered(berth_module *module, berth_func_id lowered, const berth_graph *graph) {
    BERTH_VEC(berth_str_id) names = {0};
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
        const berth_op *op = &graph->ops.data[graph->regions.data[0].ops.data[i]];
        if (op->kind >= BERTH_OP_COUNT)
            berth_vec_push(module->arena, &names,
                           berth_module_intern(module, berth_op_facts_get(op->kind)->name));
    }
    if (names.count)
        berth_attrs_set(
            module, &berth_module_function(module, lowered)->attrs, BERTH_ATTR_OPERATORS,
            (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = names.count, .strings = names.data});
}

// Schedules know of zeros around a parameter (compiler/schedule/skip_zeros.h).
static void note_zero_borders(const job *j, berth_func_id lowered) {
    const berth_lower *c = &j->c;
    BERTH_VEC(int64_t) quads = {0};
    for (uint32_t i = 0; i < j->op_count; ++i) {
        const berth_op *op = &c->graph->ops.data[j->ops[i]];
        uint32_t count = 0;
        const int64_t *border =
            berth_attrs_ints(c->module, &op->attrs, BERTH_ATTR_ZERO_BORDER, &count);
        for (uint32_t k = 0; border && k < j->param_count; ++k) {
            const berth_type *type = type_of(c, op->inputs[0]);
            if (j->params[k] != op->inputs[0] || type->rank != 2 + (int)count / 2) continue;
            for (int64_t d = 0; d < count / 2; ++d) {
                int64_t quad[] = {k, 2 + d, border[d], type->dims[2 + d] - border[count / 2 + d]};
                for (int q = 0; q < 4; ++q) berth_vec_push(c->module->arena, &quads, quad[q]);
            }
        }
    }
    if (quads.count)
        berth_attrs_set_ints(c->module, &berth_module_function(c->module, lowered)->attrs,
                             BERTH_ATTR_ZERO_BORDER, quads.data, quads.count);
}

// And of parts of a product (compiler/schedule/work_groups.h).
static void note_whole_results(const job *j, berth_func_id lowered) {
    const berth_lower *c = &j->c;
    for (uint32_t i = 0; i < j->op_count; ++i) {
        const berth_attrs *attrs = &c->graph->ops.data[j->ops[i]].attrs;
        int64_t whole = berth_attrs_int(c->module, attrs, BERTH_ATTR_WHOLE_RESULTS, 0);
        if (whole)
            berth_attrs_set_int(c->module, &berth_module_function(c->module, lowered)->attrs,
                                BERTH_ATTR_WHOLE_RESULTS, whole);
    }
}

static berth_status lower_function(void *user) {
    call *request = user;
    berth_module *module = request->module;
    const berth_graph *graph = berth_graph_get(module, request->primitive);
    if (!graph)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function %u is not a graph",
                                 request->primitive);
    const berth_function *held = berth_module_function(module, request->primitive);
    const berth_region *root = &graph->regions.data[0];
    berth_loc_id loc = held->loc;
    berth_arena *scratch = berth_arena_create_child(module->arena);
    const char *name = berth_module_str(module, held->name);
    request->created = berth_tfn_create(module, name, loc);
    berth_tfn *fn = berth_tfn_get(module, request->created);
    request->j = (job){.c = {.module = module, .graph = graph, .fn = fn, .scratch = scratch},
                       .params = root->params.data,
                       .param_count = root->params.count,
                       .results = root->results.data,
                       .result_count = root->results.count,
                       .ops = root->ops.data,
                       .op_count = root->ops.count};
    berth_status status = run(&request->j);
    if (!status) note_registered(module, request->created, graph);
    if (!status) note_zero_borders(&request->j, request->created);
    if (!status) note_whole_results(&request->j, request->created);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_lower_function(berth_module *module, berth_func_id primitive,
                                  berth_func_id *out_tensor_fn) {
    *out_tensor_fn = BERTH_NONE;
    call request = {.module = module, .primitive = primitive, .created = BERTH_NONE};
    berth_status status = berth_arena_try(module->arena, lower_function, &request);
    berth_status pending = request.j.c.failure;
    if (pending && pending != status) berth_status_ignore(pending);  // memory ran out after it
    if (status && request.created != BERTH_NONE)
        berth_module_function(module, request.created)->removed = true;
    if (!status) *out_tensor_fn = request.created;
    return status;
}

// ---- sums inside sums ---------------------------------------------------------------------------

bool berth_lower_has_sum(const berth_op *op) {
    const berth_lower_row *row = berth_lower__row(op->kind);
    return row && row->sum;
}

// One column, which all rows share.
static bool has_one_column(const berth_module *module, const berth_graph *graph,
                           const berth_op *op) {
    const berth_type *columns = berth_type_get(module, graph->values.data[op->inputs[1]].type);
    if (op->kind == BERTH_OP_GEMM && berth_attrs_int(module, &op->attrs, "transB", 0))
        return columns->dims[0] == 1;
    return columns->rank == 1 || (columns->rank == 2 && columns->dims[1] == 1);
}

bool berth_lower_reads_once(const berth_module *module, const berth_graph *graph,
                            const berth_op *op) {
    if (berth_lower_has_sum(op)) return has_one_column(module, graph, op);
    return (op->kind >= BERTH_OP_REDUCE_SUM && op->kind <= BERTH_OP_REDUCE_SUM_SQUARE &&
            op->kind != BERTH_OP_REDUCE_LOG_SUM_EXP) ||
           op->kind == BERTH_OP_GLOBAL_AVERAGE_POOL || op->kind == BERTH_OP_GLOBAL_MAX_POOL;
}

// ---- support ------------------------------------------------------------------------------------

typedef struct question {
    const berth_module *module;
    berth_func_id function;
    berth_op_id op;
    berth_arena *arena;
    const char *answer;
    job j;
} question;

static berth_value_id add_value(berth_graph *to, const berth_graph *from, berth_value_id value,
                                berth_op_id op) {
    berth_value copy = from->values.data[value];
    copy.op = op;
    berth_vec_push(to->arena, &to->values, copy);
    return to->values.count - 1;
}

static berth_op_id add_op(berth_graph *to, const berth_op *op, berth_value_id *inputs,
                          berth_value_id *outputs) {
    berth_op copy = *op;
    copy.inputs = inputs;
    copy.outputs = outputs;
    copy.region_count = 0;
    copy.attrs.items.data = berth_arena_copy(to->arena, op->attrs.items.data,
                                             op->attrs.items.count * sizeof(berth_attr));
    copy.attrs.items.capacity = copy.attrs.items.count;
    berth_vec_push(to->arena, &to->ops, copy);
    return to->ops.count - 1;
}

// One operand in the graph of the operation alone. Constants that fusion would clone into the
// function stay constants, all others become parameters.
static berth_value_id add_operand(const question *q, const berth_graph *from, uint32_t operand,
                                  berth_graph *to, berth_value_id *params, uint32_t *param_count) {
    const berth_op *op = &from->ops.data[q->op];
    berth_value_id value = op->inputs[operand];
    if (value == BERTH_NONE) return BERTH_NONE;
    const berth_tensor *constant = berth_graph_raw_constant_of(q->module, from, value);
    bool host = operand < 32 && (berth_op_facts_get(op->kind)->host_operands >> operand & 1u);
    if (constant && (host || berth_tensor_element_count(constant) == 1)) {
        berth_value_id *output = berth_arena_new(to->arena, berth_value_id);
        berth_op_id made = add_op(to, &from->ops.data[from->values.data[value].op], NULL, output);
        return *output = add_value(to, from, value, made);
    }
    params[*param_count] = add_value(to, from, value, BERTH_NONE);
    return params[(*param_count)++];
}

// A graph of the operation alone, every operand a value of its own: what the answer costs does not
// depend on the graph around it.
static berth_graph *isolate(const question *q, berth_arena *scratch, job *j) {
    const berth_graph *from = berth_graph_get(q->module, q->function);
    const berth_op *op = &from->ops.data[q->op];
    berth_graph *to = berth_arena_new(scratch, berth_graph);
    to->arena = scratch;
    berth_value_id *params = berth_arena_new_array(scratch, berth_value_id, op->input_count + 1);
    berth_value_id *inputs = berth_arena_new_array(scratch, berth_value_id, op->input_count + 1);
    berth_value_id *outputs = berth_arena_new_array(scratch, berth_value_id, op->output_count + 1);
    berth_op_id *ops = berth_arena_new(scratch, berth_op_id);
    for (uint32_t i = 0; i < op->input_count; ++i)
        inputs[i] = add_operand(q, from, i, to, params, &j->param_count);
    *ops = add_op(to, op, inputs, outputs);
    for (uint32_t i = 0; i < op->output_count; ++i)
        outputs[i] = add_value(to, from, op->outputs[i], *ops);
    j->params = params;
    j->results = outputs;
    j->result_count = op->output_count;
    j->ops = ops;
    j->op_count = 1;
    return to;
}

// Lowers the operation alone into a copy of the module's record whose additions go to a scratch
// arena.
static berth_status answer(void *user) {
    question *q = user;
    berth_arena *scratch = berth_arena_create_child(q->arena);
    berth_module *module = berth_arena_copy(scratch, q->module, sizeof(*module));
    module->arena = scratch;
    berth_tfn *fn = berth_arena_new(scratch, berth_tfn);
    fn->module = module;
    berth_vec_push(scratch, &fn->exprs, (berth_expr_node){0});
    berth_vec_push(scratch, &fn->stmts, (berth_stmt_node){0});
    q->j = (job){.c = {.module = module, .fn = fn, .scratch = scratch}};
    q->j.c.graph = isolate(q, scratch, &q->j);
    berth_status status = run(&q->j);
    if (status) q->answer = berth_arena_strdup(q->arena, berth_status_message(status));
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const char *berth_lower_check(const berth_module *module, berth_func_id function, berth_op_id op,
                              berth_arena *arena) {
    question q = {.module = module, .function = function, .op = op, .arena = arena};
    berth_status status = berth_arena_try(arena, answer, &q);
    berth_status_free(q.j.c.failure);
    if (!status) return q.answer;
    berth_status_free(status);
    berth_arena_fail(arena);
}
