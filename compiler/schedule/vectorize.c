// Loops to vectors.
#include <math.h>
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

typedef struct vectorizer {
    berth_tfn *fn;
    berth_ranges ranges;
    berth_var var;
    uint16_t lanes;
    berth_buf acc;  // loads of it become `marker`, a vector; BERTH_NONE = none
    berth_expr marker;
    const berth_buf *renamed;  // by buffer: its vector form, BERTH_NONE = keeps its elements; NULL
    uint32_t renamed_count;
    bool failed;
    bool f64;         // f64 has vectors, too
    bool asks_lanes;  // conditions on indices, too; `ranges` knows all variables then
    berth_expr *done;
    uint8_t *depends;  // 0 unknown, 1 no, 2 yes
    uint32_t done_count;
} vectorizer;

// The vector form of a local table, or BERTH_NONE.
static berth_buf vector_form(const vectorizer *v, berth_buf buf) {
    return v->renamed && buf < v->renamed_count ? v->renamed[buf] : BERTH_NONE;
}

// Whether a value differs from lane to lane.
static bool varies(vectorizer *v, berth_expr id) {
    if (!id) return false;
    if (id < v->done_count && v->depends[id]) return v->depends[id] == 2;
    const berth_expr_node node = v->fn->exprs.data[id];
    bool found = false;
    if (node.kind == BERTH_EXPR_VAR)
        found = node.var == v->var;
    else if (node.kind == BERTH_EXPR_LOAD) {
        found = node.load.buf == v->acc || vector_form(v, node.load.buf) != BERTH_NONE;
        for (int i = 0; i < node.index_count; ++i)
            found = varies(v, berth_tfn_load_indices(v->fn, id)[i]) || found;
    } else if (node.kind != BERTH_EXPR_INT && node.kind != BERTH_EXPR_FLOAT)
        found = varies(v, node.a) || varies(v, node.b) || varies(v, node.c);
    if (id < v->done_count) v->depends[id] = found ? 2 : 1;
    return found;
}

static berth_expr vectorize(vectorizer *v, berth_expr id);

static berth_expr fail(vectorizer *v) {
    v->failed = true;
    return 0;
}

// An index that grows by one from lane to lane; 0 when it does not.
static berth_expr ramp_of(vectorizer *v, berth_expr id) {
    berth_linear form = berth_linear_of(v->fn, &v->ranges, id);
    bool linear = false;
    if (berth_linear_stride(v->fn, &form, v->var, &linear) != 1 || !linear) return 0;
    berth_expr base = berth_replace_var(v->fn, berth_linear_expr(v->fn, &form), v->var,
                                        berth_tfn_index(v->fn, 0));
    return berth_tfn_ramp(v->fn, base, v->lanes);
}

static bool has_loads(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (node->kind == BERTH_EXPR_LOAD)
        return fn->bufs.data[node->load.buf].scope != BERTH_SCOPE_REGISTER;
    return has_loads(fn, node->a) || has_loads(fn, node->b) || has_loads(fn, node->c);
}

// Indices of an access: a ramp where an index grows by one, else arithmetic on a ramp of lane
// numbers (the lanes of two fused loops are still next to each other in memory).
static bool vector_indices(vectorizer *v, const berth_expr *indices, int count, berth_expr *out) {
    for (int i = 0; i < count; ++i) {
        out[i] = indices[i];
        if (!varies(v, indices[i])) continue;
        out[i] = ramp_of(v, indices[i]);
        if (out[i]) continue;
        if (has_loads(v->fn, indices[i])) return false;
        berth_expr lanes = berth_tfn_ramp(v->fn, berth_tfn_index(v->fn, 0), v->lanes);
        out[i] = berth_replace_var(v->fn, indices[i], v->var, lanes);
    }
    return true;
}

bool berth_dtype_has_vectors(berth_dtype dtype) {
    switch (dtype) {
    case BERTH_DTYPE_F32:
    case BERTH_DTYPE_I32:
    case BERTH_DTYPE_I8:
    case BERTH_DTYPE_U8:
    case BERTH_DTYPE_I16:
    case BERTH_DTYPE_U16:
    case BERTH_DTYPE_F16:
    case BERTH_DTYPE_BF16: return true;
    default: return false;
    }
}

static bool has_vectors(const vectorizer *v, berth_dtype dtype) {
    return berth_dtype_has_vectors(dtype) || (v->f64 && dtype == BERTH_DTYPE_F64);
}

// f16 and bf16 are only loaded, stored and cast: lowering computes in f32.
static bool computes_in_vectors(const vectorizer *v, berth_dtype dtype) {
    return has_vectors(v, dtype) && dtype != BERTH_DTYPE_F16 && dtype != BERTH_DTYPE_BF16;
}

static berth_expr vector_load(vectorizer *v, berth_expr id, berth_expr_node node) {
    berth_expr old[BERTH_MAX_RANK];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(old, berth_tfn_load_indices(v->fn, id), node.index_count * sizeof(berth_expr));
    berth_buf form = vector_form(v, node.load.buf);
    if (form != BERTH_NONE) {  // a table of vectors: the same element in every lane
        for (int i = 0; i < node.index_count; ++i)
            if (varies(v, old[i])) return fail(v);
        return berth_tfn_load(v->fn, form, old, node.index_count);
    }
    if (!has_vectors(v, (berth_dtype)node.dtype) || v->fn->bufs.data[node.load.buf].lanes > 1)
        return fail(v);
    if (!vector_indices(v, old, node.index_count, indices)) return fail(v);
    return berth_tfn_load(v->fn, node.load.buf, indices, node.index_count);
}

static bool unary_has_vectors(berth_unary op, berth_dtype from) {
    if (op == BERTH_UNARY_NEG || op == BERTH_UNARY_NOT) return true;
    if (from == BERTH_DTYPE_F64) return op == BERTH_UNARY_SIN || op == BERTH_UNARY_COS;
    if (from != BERTH_DTYPE_F32) return false;
    switch (op) {
    case BERTH_UNARY_ABS:
    case BERTH_UNARY_SIGN:
    case BERTH_UNARY_FLOOR:
    case BERTH_UNARY_CEIL:
    case BERTH_UNARY_ROUND:
    case BERTH_UNARY_TRUNC:
    case BERTH_UNARY_SQRT:
    case BERTH_UNARY_RSQRT:
    case BERTH_UNARY_EXP:
    case BERTH_UNARY_LOG:
    case BERTH_UNARY_TANH:
    case BERTH_UNARY_ERF:
    case BERTH_UNARY_SIN:
    case BERTH_UNARY_COS:
    case BERTH_UNARY_TAN:
    case BERTH_UNARY_ASIN:
    case BERTH_UNARY_ACOS:
    case BERTH_UNARY_ATAN:
    case BERTH_UNARY_SINH:
    case BERTH_UNARY_COSH:
    case BERTH_UNARY_ASINH:
    case BERTH_UNARY_ACOSH:
    case BERTH_UNARY_ATANH:
    case BERTH_UNARY_SIGMOID:
    case BERTH_UNARY_IS_NAN: return true;
    default: return false;
    }
}

static bool binary_has_vectors(berth_binary op, berth_dtype from) {
    if (from == BERTH_DTYPE_F64)
        return op == BERTH_BINARY_ADD || op == BERTH_BINARY_SUB || op == BERTH_BINARY_MUL;
    if (op >= BERTH_BINARY_EQ || op == BERTH_BINARY_AND || op == BERTH_BINARY_OR ||
        op == BERTH_BINARY_XOR)
        return true;
    if (op == BERTH_BINARY_ADD || op == BERTH_BINARY_SUB || op == BERTH_BINARY_MUL ||
        op == BERTH_BINARY_MIN || op == BERTH_BINARY_MAX)
        return true;
    if (op == BERTH_BINARY_DIV) return from == BERTH_DTYPE_F32;
    if (op == BERTH_BINARY_BIT_AND || op == BERTH_BINARY_SHR) return from == BERTH_DTYPE_I32;
    return op == BERTH_BINARY_POW && from == BERTH_DTYPE_F32;
}

// A count of bits within the type's: languages say nothing of shifts by more.
static bool shifts_inside(const berth_tfn *fn, berth_expr_node node) {
    const berth_expr_node *count = &fn->exprs.data[node.b];
    int64_t bits = 8 * (int64_t)berth_dtype_size_bytes((berth_dtype)node.dtype);
    return count->kind == BERTH_EXPR_INT && count->i >= 0 && count->i < bits;
}

static berth_expr numbers(vectorizer *v, berth_expr index) {
    return berth_tfn_cast(v->fn, BERTH_DTYPE_I32, index);
}

// A comparison of indices whose difference grows by one from lane to lane, in numbers of 32 bits: lane < b - a.
static berth_expr vector_question(vectorizer *v, berth_expr_node node) {
    berth_tfn *fn = v->fn;
    berth_expr rest = berth_tfn_binary(fn, BERTH_BINARY_SUB, node.a, node.b);
    berth_linear form = berth_linear_of(fn, &v->ranges, rest);
    berth_range range = berth_linear_range(fn, &v->ranges, &form);
    bool linear = false;
    int64_t stride = berth_linear_stride(fn, &form, v->var, &linear);
    bool fits = range.low > INT32_MIN / 2 && range.high < INT32_MAX / 2;
    if (!v->asks_lanes || !linear || stride != 1 || !fits) return fail(v);
    berth_expr zero = berth_tfn_index(fn, 0);
    berth_expr first = berth_replace_var(fn, berth_linear_expr(fn, &form), v->var, zero);
    berth_expr lanes = numbers(v, berth_tfn_ramp(fn, zero, v->lanes));
    berth_expr bound = numbers(v, berth_tfn_binary(fn, BERTH_BINARY_SUB, zero, first));
    return berth_tfn_binary(fn, (berth_binary)node.op, lanes, bound);
}

static berth_expr vector_binary(vectorizer *v, berth_expr_node node) {
    if (node.op >= BERTH_BINARY_EQ && node.op <= BERTH_BINARY_GE &&
        v->fn->exprs.data[node.a].is_index)
        return vector_question(v, node);
    berth_dtype from = (berth_dtype)v->fn->exprs.data[node.a].dtype;
    bool logic = from == BERTH_DTYPE_BOOL;
    if (v->fn->exprs.data[node.a].is_index || !(computes_in_vectors(v, from) || logic))
        return fail(v);
    if (!binary_has_vectors((berth_binary)node.op, from) || (logic && node.op >= BERTH_BINARY_EQ))
        return fail(v);
    if (node.op == BERTH_BINARY_SHR && !shifts_inside(v->fn, node)) return fail(v);
    berth_expr a = vectorize(v, node.a);
    berth_expr b = vectorize(v, node.b);
    return v->failed ? 0 : berth_tfn_binary(v->fn, (berth_binary)node.op, a, b);
}

// `part` is computed wherever `id` is.
static bool computes(const berth_tfn *fn, berth_expr id, berth_expr part) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id) return false;
    if (berth_tfn_expr_equal(fn, id, part)) return true;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_LOAD)
        return false;
    if (node->kind == BERTH_EXPR_SELECT) return computes(fn, node->a, part);
    return computes(fn, node->a, part) || computes(fn, node->b, part) ||
           computes(fn, node->c, part);
}

// Whether a condition may say where there is memory: it looks at indices, or at integers that may be some.
static bool may_guard(const berth_tfn *fn, berth_expr condition) {
    const berth_expr_node *node = &fn->exprs.data[condition];
    if (!condition || node->kind == BERTH_EXPR_FLOAT) return false;
    bool is_number = berth_dtype_is_float((berth_dtype)node->dtype) && !node->is_index;
    if (node->kind == BERTH_EXPR_LOAD) return !is_number;
    if (node->is_index || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_VAR) return true;
    return may_guard(fn, node->a) || may_guard(fn, node->b) || may_guard(fn, node->c);
}

// A load whose place no data says.
static bool is_direct(const berth_tfn *fn, berth_expr load) {
    const berth_expr_node *node = &fn->exprs.data[load];
    for (int i = 0; i < node->index_count; ++i)
        if (has_loads(fn, berth_tfn_load_indices(fn, load)[i])) return false;
    return true;
}

// Whether all that a load may read lies in its buffer.
static bool is_inside(vectorizer *v, berth_expr load) {
    berth_access_list all = {0};
    if (!v->asks_lanes || !is_direct(v->fn, load)) return false;
    berth_cpu__collect_loads(v->fn, &v->ranges, load, &all);
    return all.items.count == 1 &&
           berth_linear_range(v->fn, &v->ranges, &all.items.data[0].at).low >= 0 &&
           berth_cpu__reads_inside(v->fn, &v->ranges, &all.items.data[0], 0);
}

// A branch that loads nothing but what the condition has loaded already, or is there whatever it says: it may be
// computed where it is not taken.
static bool is_free_branch(vectorizer *v, berth_expr branch, berth_expr condition) {
    const berth_tfn *fn = v->fn;
    if (!has_loads(fn, branch) || computes(fn, condition, branch)) return true;
    const berth_expr_node *node = &fn->exprs.data[branch];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_LOAD:
        return (!may_guard(fn, condition) && is_direct(fn, branch)) || is_inside(v, branch);
    case BERTH_EXPR_UNARY:
    case BERTH_EXPR_BINARY:
    case BERTH_EXPR_FMA:
    case BERTH_EXPR_CAST:
    case BERTH_EXPR_SELECT: {
        const berth_expr_node parts = *node;  // looking adds nodes
        return is_free_branch(v, parts.a, condition) && is_free_branch(v, parts.b, condition) &&
               is_free_branch(v, parts.c, condition);
    }
    default: return false;
    }
}

static berth_expr vector_select(vectorizer *v, berth_expr_node node) {
    bool by_lane = varies(v, node.a);
    if (by_lane && !(is_free_branch(v, node.b, node.a) && is_free_branch(v, node.c, node.a)))
        return fail(v);
    berth_expr condition = by_lane ? vectorize(v, node.a) : node.a;
    berth_expr b = vectorize(v, node.b);
    berth_expr c = vectorize(v, node.c);
    return v->failed ? 0 : berth_tfn_select(v->fn, condition, b, c);
}

static berth_expr vector_unary(vectorizer *v, berth_expr_node node) {
    berth_unary op = (berth_unary)node.op;
    berth_dtype from = (berth_dtype)v->fn->exprs.data[node.a].dtype;
    bool is_inf = op == BERTH_UNARY_IS_INF && from == BERTH_DTYPE_F32;
    if (!is_inf && !unary_has_vectors(op, from)) return fail(v);
    berth_expr a = vectorize(v, node.a);
    if (v->failed) return 0;
    if (!is_inf) return berth_tfn_unary(v->fn, op, a);
    berth_expr size = berth_tfn_unary(v->fn, BERTH_UNARY_ABS, a);
    berth_expr most = berth_tfn_const(v->fn, from, INFINITY);
    return berth_tfn_binary(v->fn, BERTH_BINARY_EQ, size,
                            berth_tfn_broadcast(v->fn, most, v->lanes));
}

static berth_expr vector_cast(vectorizer *v, berth_expr_node node) {
    berth_dtype from = (berth_dtype)v->fn->exprs.data[node.a].dtype;
    if (v->fn->exprs.data[node.a].is_index || node.is_index) return fail(v);
    if (!berth_dtype_has_vectors(from) || !berth_dtype_has_vectors((berth_dtype)node.dtype))
        return fail(v);
    berth_expr a = vectorize(v, node.a);
    return v->failed ? 0 : berth_tfn_cast(v->fn, (berth_dtype)node.dtype, a);
}

static berth_expr vectorize_node(vectorizer *v, berth_expr id) {
    const berth_expr_node node = v->fn->exprs.data[id];
    if (!varies(v, id)) return id;
    if (node.kind == BERTH_EXPR_LOAD && node.load.buf == v->acc) return v->marker;
    if (node.is_index || node.lanes > 1) return fail(v);
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_LOAD: return vector_load(v, id, node);
    case BERTH_EXPR_BINARY: return vector_binary(v, node);
    case BERTH_EXPR_SELECT: return vector_select(v, node);
    case BERTH_EXPR_CAST: return vector_cast(v, node);
    case BERTH_EXPR_UNARY: return vector_unary(v, node);
    case BERTH_EXPR_FMA: {
        berth_expr a = vectorize(v, node.a);
        berth_expr b = vectorize(v, node.b);
        berth_expr c = vectorize(v, node.c);
        return v->failed ? 0 : berth_tfn_fma(v->fn, a, b, c);
    }
    default: return fail(v);
    }
}

static berth_expr vectorize(vectorizer *v, berth_expr id) {
    if (v->failed || !id) return 0;
    if (id < v->done_count && v->done[id]) return v->done[id];
    berth_expr result = vectorize_node(v, id);
    if (id < v->done_count) v->done[id] = result;
    return result;
}

static vectorizer start(berth_tfn *fn, berth_var var, uint16_t lanes, berth_buf acc,
                        berth_expr marker) {
    return (vectorizer){
        .fn = fn,
        .ranges = berth_ranges_collect(fn),
        .var = var,
        .lanes = lanes,
        .acc = acc,
        .marker = marker,
        .depends = berth_arena_new_array(fn->module->arena, uint8_t, fn->exprs.count),
        .done = berth_arena_new_array(fn->module->arena, berth_expr, fn->exprs.count),
        .done_count = fn->exprs.count};
}

// Ranges come from the loops of the function; a variable that is not in them yet gets [0, lanes).
static void know_var(vectorizer *v) {
    berth_nest lanes = {.loops = {{v->var, v->lanes, BERTH_LOOP_SIMD}}, .count = 1};
    v->ranges = berth_ranges_with(v->fn, &v->ranges, &lanes);
}

static berth_expr vectorize_expr(vectorizer v, berth_expr id) {
    know_var(&v);
    berth_expr result = vectorize(&v, id);
    return v.failed ? 0 : result;
}

berth_expr berth_vectorize_expr(berth_tfn *fn, berth_expr id, berth_var var, uint16_t lanes,
                                berth_buf acc, berth_expr marker) {
    return vectorize_expr(start(fn, var, lanes, acc, marker), id);
}

berth_expr berth_vectorize_tile_expr(berth_tfn *fn, berth_expr id, berth_var var, uint16_t lanes,
                                     berth_buf acc, berth_expr marker) {
    vectorizer v = start(fn, var, lanes, acc, marker);
    v.f64 = true;
    return vectorize_expr(v, id);
}

static berth_stmt vectorize_store(vectorizer v, berth_stmt store) {
    berth_tfn *fn = v.fn;
    const berth_stmt_node node = fn->stmts.data[store];
    if (node.kind != BERTH_STMT_STORE || !has_vectors(&v, fn->bufs.data[node.buf].dtype)) return 0;
    know_var(&v);
    berth_expr old[BERTH_MAX_RANK];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(old, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
    if (!vector_indices(&v, old, node.index_count, indices)) return 0;
    bool moves = false;
    for (int i = 0; i < node.index_count; ++i) moves |= indices[i] != old[i];
    if (!moves) return 0;  // every lane would write the same element
    berth_expr value = vectorize(&v, node.value);
    if (v.failed) return 0;
    return berth_tfn_store(fn, node.buf, indices, node.index_count, value);
}

berth_stmt berth_vectorize_store(berth_tfn *fn, berth_stmt store, berth_var var, uint16_t lanes,
                                 berth_buf acc, berth_expr marker) {
    return vectorize_store(start(fn, var, lanes, acc, marker), store);
}

berth_stmt berth_vectorize_tile_store(berth_tfn *fn, berth_stmt store, const berth_ranges *ranges,
                                      berth_var var, uint16_t lanes, berth_buf acc,
                                      berth_expr marker) {
    vectorizer v = start(fn, var, lanes, acc, marker);
    v.f64 = v.asks_lanes = true;
    v.ranges = *ranges;
    return vectorize_store(v, store);
}

bool berth_loads_are_contiguous(berth_tfn *fn, const berth_ranges *ranges, berth_expr value,
                                berth_var var) {
    berth_access_list all = {0};
    berth_cpu__collect_loads(fn, ranges, value, &all);
    for (uint32_t i = 0; i < all.items.count; ++i) {
        bool linear = false;
        int64_t stride = berth_linear_stride(fn, &all.items.data[i].at, var, &linear);
        if (!linear || (stride != 0 && stride != 1)) return false;
    }
    return true;
}

bool berth_store_is_contiguous(berth_tfn *fn, const berth_ranges *ranges, berth_stmt store,
                               berth_var var) {
    const berth_stmt_node node = fn->stmts.data[store];
    bool linear = false;
    berth_linear at = berth_linear_access(fn, ranges, node.buf, berth_tfn_store_indices(fn, store),
                                          node.index_count);
    if (berth_linear_stride(fn, &at, var, &linear) != 1 || !linear) return false;
    return berth_loads_are_contiguous(fn, ranges, node.value, var);
}

// ---- whole bodies
// --------------------------------------------------------------------------------

// Local tables of scalars get vector elements.
static void rename_tables(berth_tfn *fn, berth_stmt id, uint16_t lanes, berth_buf *renamed,
                          uint32_t count, bool *ok) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node.count; ++i)
            rename_tables(fn, fn->lists.data[node.first + i], lanes, renamed, count, ok);
    if (node.kind == BERTH_STMT_FOR) rename_tables(fn, node.body, lanes, renamed, count, ok);
    if (node.kind == BERTH_STMT_IF) {
        rename_tables(fn, node.body, lanes, renamed, count, ok);
        if (node.other) rename_tables(fn, node.other, lanes, renamed, count, ok);
    }
    if (node.kind != BERTH_STMT_ALLOC) return;
    berth_buf_info info = fn->bufs.data[node.buf];
    bool local = info.scope == BERTH_SCOPE_REGISTER || info.scope == BERTH_SCOPE_PRIVATE;
    if (node.buf >= count || !local || info.lanes > 1 || renamed[node.buf] != BERTH_NONE ||
        !berth_dtype_has_vectors(info.dtype)) {
        *ok = false;
        return;
    }
    info.lanes = lanes;
    berth_vec_push(fn->module->arena, &fn->bufs, info);
    renamed[node.buf] = fn->bufs.count - 1;
}

static berth_stmt vectorize_stmt(vectorizer *v, berth_stmt id);

static berth_stmt vectorize_seq(vectorizer *v, berth_stmt_node node) {
    berth_stmt *items = berth_arena_new_array(v->fn->module->arena, berth_stmt, node.count + 1);
    for (uint32_t i = 0; i < node.count && !v->failed; ++i)
        items[i] = vectorize_stmt(v, v->fn->lists.data[node.first + i]);
    return v->failed ? 0 : berth_tfn_seq(v->fn, items, node.count);
}

static berth_stmt vectorize_any_store(vectorizer *v, berth_stmt id, berth_stmt_node node) {
    berth_expr old[BERTH_MAX_RANK];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(old, berth_tfn_store_indices(v->fn, id), node.index_count * sizeof(berth_expr));
    berth_buf form = vector_form(v, node.buf);
    berth_expr value = vectorize(v, node.value);
    if (v->failed) return 0;
    bool moves = false;
    for (int i = 0; i < node.index_count; ++i) moves |= varies(v, old[i]);
    if (form != BERTH_NONE) {
        if (moves) return fail(v);
        value = berth_tfn_broadcast(v->fn, value, v->lanes);
        return berth_tfn_store(v->fn, form, old, node.index_count, value);
    }
    if (!moves || !has_vectors(v, (berth_dtype)v->fn->bufs.data[node.buf].dtype)) return fail(v);
    if (!vector_indices(v, old, node.index_count, indices)) return fail(v);
    return berth_tfn_store(v->fn, node.buf, indices, node.index_count, value);
}

static berth_stmt vectorize_stmt(vectorizer *v, berth_stmt id) {
    const berth_stmt_node node = v->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ: return vectorize_seq(v, node);
    case BERTH_STMT_ALLOC: return berth_tfn_alloc(v->fn, v->renamed[node.buf]);
    case BERTH_STMT_STORE: return vectorize_any_store(v, id, node);
    case BERTH_STMT_IF: {
        if (varies(v, node.value)) return fail(v);
        berth_stmt body = vectorize_stmt(v, node.body);
        berth_stmt other = node.other ? vectorize_stmt(v, node.other) : 0;
        return v->failed ? 0 : berth_tfn_if(v->fn, node.value, body, other);
    }
    case BERTH_STMT_FOR: {
        if (varies(v, node.value)) return fail(v);
        berth_stmt body = vectorize_stmt(v, node.body);
        return v->failed ? 0 : berth_tfn_for(v->fn, node.var, node.value, BERTH_LOOP_SERIAL, body);
    }
    default: return fail(v);
    }
}

static berth_status vectorize_last(berth_tfn *fn, berth_nest *nest, bool f64) {
    if (nest->count == 0)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "schedule: no loop to vectorise");
    berth_nest_loop last = nest->loops[nest->count - 1];
    if (last.extent < 2 || last.extent > 64)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "schedule: %lld lanes",
                                 (long long)last.extent);
    if (!berth_nest_is_independent(fn, nest))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "schedule: iterations depend on each other");
    uint32_t count = fn->bufs.count;
    uint16_t lanes = (uint16_t)last.extent;
    bool ok = true;
    berth_buf *renamed = berth_arena_new_array(fn->module->arena, berth_buf, count + 1);
    memset(renamed, 0xff, (count + 1) * sizeof(*renamed));
    rename_tables(fn, nest->body, lanes, renamed, count, &ok);
    vectorizer v = start(fn, last.var, lanes, BERTH_NONE, 0);
    v.renamed = renamed;
    v.renamed_count = count;
    v.f64 = f64;
    know_var(&v);
    berth_stmt body = ok ? vectorize_stmt(&v, nest->body) : 0;
    if (!body || v.failed)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "schedule: a statement that has no vector form");
    nest->body = body;
    nest->count--;
    return BERTH_OK;
}

berth_status berth_schedule_vectorize(berth_tfn *fn, berth_nest *nest) {
    return vectorize_last(fn, nest, false);
}

berth_status berth_schedule_vectorize_wide(berth_tfn *fn, berth_nest *nest) {
    return vectorize_last(fn, nest, true);
}
