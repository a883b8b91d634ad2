#include "compiler/lower/attention.h"

#include <float.h>
#include <math.h>

#include "compiler/lower/families.h"
#include "compiler/lower/lower.h"

#define BLOCK_ROWS 8          // of queries that share what is read of keys and values
#define BLOCK_KEYS 64         // of these rows
#define BLOCK_KEYS_ALONE 256  // of one row
#define MOST_CHAIN 8          // operations between the scores and the softmax

static const berth_type *type_in(const berth_module *module, const berth_graph *graph,
                                 berth_value_id value) {
    return berth_type_get(module, graph->values.data[value].type);
}

static bool same_dims(const berth_type *a, const berth_type *b) {
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; ++d) same = a->dims[d] == b->dims[d];
    return same;
}

// ---- what it consists of ------------------------------------------------------------------------

static bool push(berth_attention *out, berth_op_id op) {
    if (out->count == BERTH_ATTENTION_MOST_OPS) return false;
    out->ops[out->count++] = op;
    return true;
}

static bool has_plain_matrices(const berth_module *module, const berth_graph *graph,
                               const berth_op *op) {
    const berth_value_id values[] = {op->inputs[0], op->inputs[1], op->outputs[0]};
    for (int i = 0; i < 3; ++i) {
        const berth_type *type = type_in(module, graph, values[i]);
        if (!berth_type_is_static(type) || type->rank < 2 || type->layout ||
            !berth_dtype_is_float(type->dtype))
            return false;
    }
    return true;
}

// A transposition for the scores alone is read through.
static bool push_scores(const berth_module *module, const berth_graph *graph, const uint32_t *uses,
                        berth_op_id id, berth_attention *out) {
    const berth_op *op = &graph->ops.data[id];
    if (!has_plain_matrices(module, graph, op)) return false;
    berth_op_id move = graph->values.data[op->inputs[1]].op;
    if (move != BERTH_NONE && graph->ops.data[move].kind == BERTH_OP_TRANSPOSE &&
        uses[op->inputs[1]] == 1 &&
        !type_in(module, graph, graph->ops.data[move].inputs[0])->layout && !push(out, move))
        return false;
    out->scores = id;
    return push(out, id);
}

// Elementwise operations from a product on to `value`, each for the next one alone.
static bool push_chain(const berth_module *module, const berth_graph *graph, const uint32_t *uses,
                       berth_value_id value, int left, berth_attention *out) {
    berth_op_id id = graph->values.data[value].op;
    if (id == BERTH_NONE || uses[value] != 1) return false;
    const berth_op *op = &graph->ops.data[id];
    if (op->kind == BERTH_OP_MATMUL) return push_scores(module, graph, uses, id, out);
    if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) || op->output_count != 1 || left == 0)
        return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id operand = op->inputs[i];
        if (operand == BERTH_NONE ||
            !same_dims(type_in(module, graph, operand), type_in(module, graph, value)))
            continue;
        uint32_t before = out->count;
        if (push_chain(module, graph, uses, operand, left - 1, out)) return push(out, id);
        out->count = before;
    }
    return false;
}

static bool measure(const berth_module *module, const berth_graph *graph, berth_op_id product,
                    berth_attention *out) {
    const berth_op *op = &graph->ops.data[product];
    const berth_op *scores = &graph->ops.data[out->scores];
    const berth_type *weights = type_in(module, graph, op->inputs[0]);
    const berth_type *result = type_in(module, graph, op->outputs[0]);
    const berth_type *queries = type_in(module, graph, scores->inputs[0]);
    int rank = weights->rank;
    if (result->rank != rank || type_in(module, graph, scores->outputs[0])->rank != rank)
        return false;
    out->batch = 1;
    for (int d = 0; d < rank - 2; ++d) {
        if (weights->dims[d] != result->dims[d] || weights->dims[d] <= 0) return false;
        out->batch *= weights->dims[d];
    }
    out->rows = weights->dims[rank - 2];
    out->keys = weights->dims[rank - 1];
    out->columns = result->dims[rank - 1];
    out->depth = queries->dims[queries->rank - 1];
    return out->rows > 0 && out->keys > 0 && out->columns > 0 && out->depth > 0;
}

bool berth_attention_find(const berth_module *module, const berth_graph *graph,
                          const uint32_t *uses, berth_op_id product, berth_attention *out) {
    const berth_op *op = &graph->ops.data[product];
    *out = (berth_attention){.softmax = BERTH_NONE, .scores = BERTH_NONE};
    if (op->kind != BERTH_OP_MATMUL || !has_plain_matrices(module, graph, op) ||
        uses[op->inputs[0]] != 1)
        return false;
    out->softmax = graph->values.data[op->inputs[0]].op;
    if (out->softmax == BERTH_NONE) return false;
    const berth_op *softmax = &graph->ops.data[out->softmax];
    if (softmax->kind != BERTH_OP_SOFTMAX) return false;
    int rank = type_in(module, graph, op->inputs[0])->rank;
    int64_t axis = berth_attrs_int(module, &softmax->attrs, "axis", -1);
    if (axis != -1 && axis != rank - 1) return false;
    return push_chain(module, graph, uses, softmax->inputs[0], MOST_CHAIN, out) &&
           push(out, out->softmax) && push(out, product) && measure(module, graph, product, out);
}

int64_t berth_attention_block_rows(const berth_attention *attention) {
    return attention->rows < BLOCK_ROWS ? attention->rows : BLOCK_ROWS;
}

int64_t berth_attention_block_keys(const berth_attention *attention) {
    int64_t most = attention->rows == 1 ? BLOCK_KEYS_ALONE : BLOCK_KEYS;
    return attention->keys < most ? attention->keys : most;
}

// ---- its kernel ---------------------------------------------------------------------------------

// Buffers have an element, or a row, for each row of the block; without that dimension where there
// is one.
typedef struct kernel {
    berth_lower *c;
    const berth_op *op;
    const berth_op *softmax;
    berth_attention a;
    berth_dtype t;
    int rank;
    int64_t block_rows, block_keys;
    berth_expr at[BERTH_MAX_RANK];  // of the batch
    berth_expr first_row, first_key;
    berth_buf top, sum,
        factor;      // of a row: highest score so far, sum of powers, what the last block changed
    berth_buf line;  // scores of the block, then their powers
    berth_buf acc;   // of a row: sums of values
} kernel;

static berth_buf of_rows(kernel *k, const char *name, int64_t extent) {
    int64_t dims[] = {k->block_rows, extent};
    if (k->block_rows == 1 && extent == 0) return berth_lower__register(k->c, name, k->t);
    if (k->block_rows == 1) return berth_lower__private(k->c, name, k->t, 1, dims + 1);
    return berth_lower__private(k->c, name, k->t, extent ? 2 : 1, dims);
}

// Element `i` (0: there is none) of row `r`.
static int place(const kernel *k, berth_expr r, berth_expr i, berth_expr *at) {
    int count = 0;
    if (k->block_rows > 1) at[count++] = r;
    if (i) at[count++] = i;
    return count;
}

static berth_expr get(kernel *k, berth_buf buf, berth_expr r, berth_expr i) {
    berth_expr at[2];
    int count = place(k, r, i, at);
    return berth_tfn_load(k->c->fn, buf, at, count);
}

static void put(kernel *k, berth_buf buf, berth_expr r, berth_expr i, berth_expr value) {
    berth_expr at[2];
    int count = place(k, r, i, at);
    berth_lower__emit(k->c, berth_tfn_store(k->c->fn, buf, at, count, value));
}

static berth_expr each_row(kernel *k) {
    return berth_lower__loop(k->c, "r", k->block_rows, BERTH_LOOP_SERIAL);
}

static berth_expr each(kernel *k, const char *name, int64_t extent) {
    return berth_lower__loop(k->c, name, extent, BERTH_LOOP_SERIAL);
}

// The row of the result; below the number of rows with `clamped`.
static berth_expr row_of(kernel *k, berth_expr r, bool clamped) {
    berth_expr row = x_add(k->c, k->first_row, r);
    if (clamped && k->a.rows % k->block_rows) row = x_min(k->c, row, ix(k->c, k->a.rows - 1));
    return row;
}

static void begin(kernel *k) {
    berth_lower *c = k->c;
    k->top = of_rows(k, "top", 0);
    k->sum = of_rows(k, "sum", 0);
    k->factor = of_rows(k, "factor", 0);
    k->line = of_rows(k, "line", k->block_keys);
    k->acc = of_rows(k, "acc", k->a.columns);
    berth_expr r = each_row(k);
    // Finite, so that a score of -inf has the power 0.
    put(k, k->top, r, 0, num(c, k->t, k->t == BERTH_DTYPE_F64 ? -DBL_MAX : (double)-FLT_MAX));
    put(k, k->sum, r, 0, num(c, k->t, 0));
    berth_lower__end(c);
    r = each_row(k);
    put(k, k->acc, r, each(k, "e", k->a.columns), num(c, k->t, 0));
    berth_lower__end_loops(c, 2);
}

static void scores(kernel *k) {
    berth_lower *c = k->c;
    berth_expr r = each_row(k);
    berth_expr n = each(k, "n", k->block_keys);
    berth_expr key = x_add(c, k->first_key, n);
    bool ragged = k->a.keys % k->block_keys != 0;
    k->at[k->rank - 2] = row_of(k, r, true);
    k->at[k->rank - 1] = ragged ? x_min(c, key, ix(c, k->a.keys - 1)) : key;
    berth_expr score = in_at(c, k->softmax, 0, k->at);
    berth_expr exists = ragged ? x_lt(c, key, ix(c, k->a.keys)) : 0;
    put(k, k->line, r, n, x_select(c, exists, score, num(c, k->t, -INFINITY)));
    berth_lower__end_loops(c, 2);
}

// Without NaN, as in softmax: the power of one is NaN, whatever is subtracted.
static void maxima(kernel *k) {
    berth_lower *c = k->c;
    berth_expr r = each_row(k);
    berth_buf high = berth_lower__register(c, "high", k->t);
    berth_lower__set(c, high, get(k, k->top, r, 0));
    berth_expr n = each(k, "n", k->block_keys);
    berth_expr score = get(k, k->line, r, n);
    berth_expr lowest = num(c, k->t, -INFINITY);
    score = x_select(c, x_unary(c, BERTH_UNARY_IS_NAN, score), lowest, score);
    berth_lower__set(c, high, x_max(c, berth_lower__get(c, high), score));
    berth_lower__end(c);
    berth_expr change = x_sub(c, get(k, k->top, r, 0), berth_lower__get(c, high));
    put(k, k->factor, r, 0, x_unary(c, BERTH_UNARY_EXP, change));
    put(k, k->top, r, 0, berth_lower__get(c, high));
    berth_lower__end(c);
    r = each_row(k);
    n = each(k, "n", k->block_keys);
    change = x_sub(c, get(k, k->line, r, n), get(k, k->top, r, 0));
    put(k, k->line, r, n, x_unary(c, BERTH_UNARY_EXP, change));
    berth_lower__end_loops(c, 2);
}

static void sums(kernel *k) {
    berth_lower *c = k->c;
    berth_expr r = each_row(k);
    berth_buf more = berth_lower__register(c, "more", k->t);
    berth_lower__set(c, more, num(c, k->t, 0));
    berth_expr n = each(k, "n", k->block_keys);
    berth_lower__set(c, more, x_add(c, berth_lower__get(c, more), get(k, k->line, r, n)));
    berth_lower__end(c);
    put(k, k->sum, r, 0,
        x_fma(c, get(k, k->sum, r, 0), get(k, k->factor, r, 0), berth_lower__get(c, more)));
    berth_lower__end(c);
}

// Values of keys that exist: of those after the last the power is 0, and 0 * inf is no 0.
static void columns(kernel *k) {
    berth_lower *c = k->c;
    berth_expr r = each_row(k);
    berth_expr e = each(k, "e", k->a.columns);
    berth_buf part = berth_lower__register(c, "part", k->t);
    berth_lower__set(c, part, x_mul(c, get(k, k->acc, r, e), get(k, k->factor, r, 0)));
    berth_expr left = x_sub(c, ix(c, k->a.keys), k->first_key);
    berth_expr n = k->a.keys % k->block_keys
                       ? berth_lower__loop_to(c, "n", x_min(c, left, ix(c, k->block_keys)))
                       : each(k, "n", k->block_keys);
    const berth_type *values = in_type(c, k->op, 1);
    berth_expr at[BERTH_MAX_RANK];
    int own = values->rank - 2;
    for (int d = 0; d < own; ++d)
        at[d] = values->dims[d] == 1 ? ix(c, 0) : k->at[k->rank - 2 - own + d];
    at[own] = x_add(c, k->first_key, n);
    at[own + 1] = e;
    berth_expr value = in_at(c, k->op, 1, at);
    berth_lower__set(c, part, x_fma(c, get(k, k->line, r, n), value, berth_lower__get(c, part)));
    berth_lower__end(c);
    put(k, k->acc, r, e, berth_lower__get(c, part));
    berth_lower__end_loops(c, 2);
}

static void results(kernel *k) {
    berth_lower *c = k->c;
    berth_expr r = each_row(k);
    berth_expr e = each(k, "e", k->a.columns);
    berth_expr row = row_of(k, r, false);
    k->at[k->rank - 2] = row;
    k->at[k->rank - 1] = e;
    bool ragged = k->a.rows % k->block_rows != 0;
    berth_lower__if(c, ragged ? x_lt(c, row, ix(c, k->a.rows)) : 0);
    berth_lower__store(c, k->op, 0, k->at, x_div(c, get(k, k->acc, r, e), get(k, k->sum, r, 0)));
    berth_lower__end_loops(c, 3);
}

void berth_lower__attention(berth_lower *c, const berth_op *op, const berth_attention *attention) {
    kernel k = {.c = c, .op = op, .a = *attention, .rank = in_type(c, op, 0)->rank};
    k.softmax = &c->graph->ops.data[attention->softmax];
    k.t = in_dtype(c, op, 0);
    k.block_rows = berth_attention_block_rows(attention);
    k.block_keys = berth_attention_block_keys(attention);
    int64_t row_blocks = (k.a.rows + k.block_rows - 1) / k.block_rows;
    int64_t key_blocks = (k.a.keys + k.block_keys - 1) / k.block_keys;
    const int64_t *dims = out_type(c, op, 0)->dims;
    int loops = berth_lower__outer(c, k.rank, dims, 3u << (k.rank - 2), k.at);
    berth_expr block = berth_lower__loop(c, "rows", row_blocks, BERTH_LOOP_PARALLEL);
    k.first_row = x_muli(c, block, k.block_rows);
    begin(&k);
    k.first_key = x_muli(c, each(&k, "keys", key_blocks), k.block_keys);
    scores(&k);
    maxima(&k);
    sums(&k);
    columns(&k);
    berth_lower__end(c);
    results(&k);
    berth_lower__end_loops(c, loops + 1);
}
