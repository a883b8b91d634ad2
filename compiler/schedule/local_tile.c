#include "compiler/schedule/local_tile.h"

#include <string.h>

#include "compiler/schedule/policy_cpu.h"
#include "ir/tensor/copies.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// ---- expressions --------------------------------------------------------------------------------

berth_expr berth_local__ref(const berth_local_plan *p, berth_var var) {
    return berth_tfn_var_ref(p->fn, var);
}

berth_expr berth_local__add(const berth_local_plan *p, berth_expr a, berth_expr b) {
    return berth_tfn_binary(p->fn, BERTH_BINARY_ADD, a, b);
}

berth_expr berth_local__scale(const berth_local_plan *p, berth_expr a, int64_t k) {
    return berth_tfn_binary(p->fn, BERTH_BINARY_MUL, a, berth_tfn_index(p->fn, k));
}

berth_expr berth_local__row_of(const berth_local_plan *p, berth_expr slot, int64_t rows,
                               berth_expr row) {
    return p->stages > 1 ? berth_local__add(p, berth_local__scale(p, slot, rows), row) : row;
}

berth_expr berth_local__less(const berth_local_plan *p, berth_expr a, int64_t limit) {
    return berth_tfn_binary(p->fn, BERTH_BINARY_LT, a, berth_tfn_index(p->fn, limit));
}

berth_expr berth_local__clamp(const berth_local_plan *p, berth_expr a, int64_t extent) {
    return berth_tfn_binary(p->fn, BERTH_BINARY_MIN, a, berth_tfn_index(p->fn, extent - 1));
}

void berth_local__split_index(const berth_local_plan *p, const berth_flat_loops *flat,
                              berth_expr index, berth_expr *map) {
    int64_t inner = 1;
    for (int i = flat->count - 1; i >= 0; --i) {
        int64_t extent = flat->loops[i].extent;
        berth_expr value =
            berth_tfn_binary(p->fn, BERTH_BINARY_DIV, index, berth_tfn_index(p->fn, inner));
        if (i > 0)
            value =
                berth_tfn_binary(p->fn, BERTH_BINARY_MOD, value, berth_tfn_index(p->fn, extent));
        map[flat->loops[i].var] = value;
        inner *= extent;
    }
}

berth_expr *berth_local__map(const berth_local_plan *p) {
    berth_expr *map =
        berth_arena_new_array(p->fn->module->arena, berth_expr, p->fn->vars.count + 1);
    for (int i = 0; i < p->columns.count; ++i) {
        berth_var var = p->columns.loops[i].var;
        map[var] = p->values[var];
    }
    return map;
}

// ---- statements ---------------------------------------------------------------------------------

void berth_local__emit(berth_local_plan *p, berth_stmt stmt) {
    berth_vec_push(p->fn->module->arena, &p->out, stmt);
}

berth_stmt berth_local__take(berth_local_plan *p, uint32_t first) {
    berth_stmt seq = berth_tfn_seq(p->fn, p->out.data + first, p->out.count - first);
    p->out.count = first;
    return seq;
}

static berth_stmt loop(const berth_local_plan *p, berth_var var, int64_t extent,
                       berth_loop_kind kind, berth_stmt body) {
    return berth_tfn_for(p->fn, var, berth_tfn_index(p->fn, extent), kind, body);
}

// ---- analysis -----------------------------------------------------------------------------------

static bool is_acc(const berth_local_plan *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    return node->kind == BERTH_EXPR_LOAD && node->load.buf == p->reduction.acc;
}

// acc + x * y
static bool find_operands(const berth_local_plan *p, berth_expr *out_x, berth_expr *out_y) {
    const berth_expr_node *sum = &p->fn->exprs.data[p->reduction.update];
    const berth_expr_node *product = sum;
    if (sum->kind == BERTH_EXPR_BINARY && sum->op == BERTH_BINARY_ADD) {
        bool acc_first = is_acc(p, sum->a);
        if (!acc_first && !is_acc(p, sum->b)) return false;
        product = &p->fn->exprs.data[acc_first ? sum->b : sum->a];
        if (product->kind != BERTH_EXPR_BINARY || product->op != BERTH_BINARY_MUL) return false;
    } else if (sum->kind != BERTH_EXPR_FMA || !is_acc(p, sum->c)) {
        return false;
    }
    *out_x = product->a;
    *out_y = product->b;
    return true;
}

static void push(berth_flat_loops *flat, berth_nest_loop added) {
    flat->loops[flat->count++] = added;
    flat->extent *= added.extent;
}

// Which loops move which operand; columns are what the innermost of them moves.
static bool classify(berth_local_plan *p) {
    berth_expr x = 0;
    berth_expr y = 0;
    if (!find_operands(p, &x, &y)) return false;
    int column_side = 0;  // 1: x, 2: y
    p->batch = p->rows = p->columns = p->sum = (berth_flat_loops){.extent = 1};
    for (int i = p->nest.count - 1; i >= 0 && !column_side; --i) {
        bool by_x = berth_tfn_uses_var(p->fn, x, p->nest.loops[i].var);
        bool by_y = berth_tfn_uses_var(p->fn, y, p->nest.loops[i].var);
        if (by_x != by_y && p->nest.loops[i].extent > 1) column_side = by_x ? 1 : 2;
    }
    p->column_value = column_side == 1 ? x : y;
    p->row_value = column_side == 1 ? y : x;
    for (int i = 0; i < p->nest.count; ++i) {
        berth_nest_loop it = p->nest.loops[i];
        bool by_column = berth_tfn_uses_var(p->fn, p->column_value, it.var);
        bool by_row = berth_tfn_uses_var(p->fn, p->row_value, it.var);
        if (it.extent <= 0) return false;
        if (by_column == by_row || it.extent == 1)
            push(&p->batch, it);
        else
            push(by_column ? &p->columns : &p->rows, it);
    }
    for (int i = 0; i < p->reduction.loops.count; ++i) {
        if (p->reduction.loops.loops[i].extent <= 0) return false;
        push(&p->sum, p->reduction.loops.loops[i]);
    }
    return p->rows.count > 0 && p->columns.count > 0;
}

static void collect(const berth_local_plan *p, berth_access_list *out) {
    berth_ranges ranges = berth_ranges_collect(p->fn);
    ranges = berth_ranges_with(p->fn, &ranges, &p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &p->reduction.loops);
    berth_cpu__collect_loads(p->fn, &ranges, p->reduction.update, out);
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_stmt store = p->reduction.epilogue[i];
        const berth_stmt_node node = p->fn->stmts.data[store];
        berth_access access = {.buf = node.buf};
        access.at = berth_linear_access(p->fn, &ranges, node.buf,
                                        berth_tfn_store_indices(p->fn, store), node.index_count);
        berth_vec_push(p->fn->module->arena, &out->items, access);
        berth_cpu__collect_loads(p->fn, &ranges, node.value, out);
    }
}

static bool in_conditions(const berth_local_plan *p, berth_var var) {
    if (berth_cpu__used_in_conditions(p->fn, p->reduction.update, var, 0)) return true;
    for (int i = 0; i < p->reduction.epilogue_count; ++i)
        if (berth_cpu__used_in_conditions(p->fn, p->fn->stmts.data[p->reduction.epilogue[i]].value,
                                          var, 0))
            return true;
    return false;
}

// The two innermost column loops as one where all accesses go on regularly: whole vectors of it.
static bool fuse_columns(berth_local_plan *p) {
    int at = p->nest.count - 2;
    if (p->columns.count < 2 || at < 0 ||
        p->nest.loops[at + 1].var != p->columns.loops[p->columns.count - 1].var ||
        p->nest.loops[at].var != p->columns.loops[p->columns.count - 2].var)
        return false;
    berth_access_list accesses = {0};
    collect(p, &accesses);
    if (in_conditions(p, p->nest.loops[at].var) || in_conditions(p, p->nest.loops[at + 1].var) ||
        !berth_cpu__can_fuse(p->fn, &p->nest, at, &accesses))
        return false;
    p->nest.loops[at].kind = p->nest.loops[at + 1].kind;
    berth_status status = berth_schedule_fuse(p->fn, &p->nest, at);
    bool fused = status == BERTH_OK;
    berth_decisions_refuse(p->fn, status);
    return fused && berth_reduction_parse(p->fn, p->nest.body, &p->reduction) && classify(p);
}

bool berth_local__analyse(berth_local_plan *p) {
    if (!berth_reduction_parse(p->fn, p->nest.body, &p->reduction)) return false;
    berth_dtype dtype = p->fn->bufs.data[p->reduction.acc].dtype;
    const berth_expr_node *init = &p->fn->exprs.data[p->reduction.init];
    bool constant = init->kind == BERTH_EXPR_INT || init->kind == BERTH_EXPR_FLOAT;
    // Sums of 16-bit values are f32, of 8-bit ones i32: what is left has 32 or 64 bits.
    if (berth_dtype_size_bytes(dtype) < 4 || !constant) return false;
    if (p->reduction.epilogue_count == 0 || !classify(p)) return false;
    while (fuse_columns(p)) continue;
    return p->rows.extent >= 2 && p->sum.extent >= 4;
}

// ---- building -----------------------------------------------------------------------------------

static void declare(berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    berth_dtype dtype = fn->bufs.data[p->reduction.acc].dtype;
    int64_t row_dims[] = {p->stages * p->local_y * p->tile_rows, berth_local__row_stride(p)};
    int64_t column_dims[] = {p->stages * p->depth, p->vectors * p->local_x * p->lanes};
    int64_t lanes = p->lanes, accumulators = p->vectors * p->tile_rows;
    p->row_tile = berth_tfn_buffer(fn, "row_tile", dtype, 2, row_dims, BERTH_SCOPE_LOCAL);
    p->column_tile = berth_tfn_buffer(fn, "column_tile", dtype, 2, column_dims, BERTH_SCOPE_LOCAL);
    p->acc = berth_tfn_buffer(fn, "acc", dtype, 1, &accumulators, BERTH_SCOPE_REGISTER);
    p->spill = berth_tfn_buffer(fn, "spill", dtype, 1, &lanes, BERTH_SCOPE_PRIVATE);
    if (lanes > 1) fn->bufs.data[p->acc].lanes = p->lanes;
    p->group_y = berth_tfn_var(fn, "group_row");
    p->group_x = berth_tfn_var(fn, "group_column");
    p->item_y = berth_tfn_var(fn, "item_row");
    p->item_x = berth_tfn_var(fn, "item_column");
    p->lane = berth_tfn_var(fn, "lane");
    p->marker = berth_tfn_let_var(fn, "acc", dtype, p->lanes, false);
}

// Of the current vector, among those of the row.
static berth_expr vector_column(const berth_local_plan *p) {
    berth_expr group =
        berth_local__scale(p, berth_local__ref(p, p->group_x), p->vectors * p->local_x);
    return berth_local__add(p, group, berth_local__vector_of_tile(p));
}

berth_expr berth_local__vector_of_tile(const berth_local_plan *p) {
    berth_expr item = berth_local__ref(p, p->item_x);
    if (p->vector == 0) return item;
    return berth_local__add(p, berth_tfn_index(p->fn, p->vector * p->local_x), item);
}

void berth_local__use_vector(berth_local_plan *p, int64_t vector) {
    p->vector = vector;
    p->block = p->blocks[vector];
    p->values = p->values_of[vector];
}

// A multiple of `lanes` in view of whoever asks what an address is a multiple of.
berth_expr berth_local__column_block(const berth_local_plan *p) {
    return berth_local__scale(p, berth_local__ref(p, p->block), p->lanes);
}

static bool whole_columns(const berth_local_plan *p) {
    return p->columns.extent % (p->vectors * p->local_x) == 0;
}

// What the column loops are in this work-item for the current vector, once.
static void emit_vector(berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    berth_flat_loops blocks = p->columns;
    berth_nest_loop *last = &blocks.loops[blocks.count - 1];
    last->extent = p->column_blocks;
    berth_expr index = vector_column(p);
    if (!whole_columns(p)) index = berth_local__clamp(p, index, p->columns.extent);
    p->values = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count + 1);
    berth_local__split_index(p, &blocks, index, p->values);
    for (int i = 0; i < blocks.count; ++i) {
        berth_var var = blocks.loops[i].var;
        bool is_last = i == blocks.count - 1;
        const char *name =
            is_last ? "block" : berth_module_str(fn->module, fn->vars.data[var].name);
        berth_var value = berth_tfn_let_var(fn, name, BERTH_DTYPE_I64, 1, true);
        berth_local__emit(p, berth_tfn_let(fn, value, p->values[var]));
        p->values[var] = berth_local__ref(p, value);
        if (!is_last) continue;
        p->block = value;
        p->values[var] = berth_local__column_block(p);
        if (p->lanes > 1)
            p->values[var] = berth_local__add(p, p->values[var], berth_local__ref(p, p->lane));
    }
}

static void emit_columns(berth_local_plan *p) {
    for (p->vector = 0; p->vector < p->vectors; ++p->vector) {
        emit_vector(p);
        p->blocks[p->vector] = p->block;
        p->values_of[p->vector] = p->values;
    }
    berth_local__use_vector(p, 0);
}

bool berth_local__is_ragged(const berth_local_plan *p) {
    return p->columns.loops[p->columns.count - 1].extent % p->lanes != 0;
}

static berth_expr load_columns(berth_local_plan *p, berth_expr row) {
    berth_tfn *fn = p->fn;
    berth_dtype dtype = fn->bufs.data[p->acc].dtype;
    berth_expr column = berth_local__scale(p, berth_local__vector_of_tile(p), p->lanes);
    if (p->lanes > 1) column = berth_tfn_ramp(fn, column, p->lanes);
    berth_var loaded = berth_tfn_let_var(fn, "w", dtype, p->lanes, false);
    berth_expr load = berth_tfn_load(fn, p->column_tile, (berth_expr[]){row, column}, 2);
    berth_local__emit(p, berth_tfn_let(fn, loaded, load));
    return berth_local__ref(p, loaded);
}

static void emit_products(berth_local_plan *p, int64_t row, berth_expr a, const berth_expr *w) {
    berth_tfn *fn = p->fn;
    berth_dtype dtype = fn->bufs.data[p->acc].dtype;
    for (int64_t v = 0; v < p->vectors; ++v) {
        berth_expr at = berth_tfn_index(fn, v * p->tile_rows + row);
        berth_expr acc = berth_tfn_load(fn, p->acc, &at, 1);
        berth_expr x = p->lanes > 1 ? berth_tfn_broadcast(fn, a, p->lanes) : a;
        berth_expr value =
            berth_dtype_is_float(dtype)
                ? berth_tfn_fma(fn, x, w[v], acc)
                : berth_local__add(p, acc, berth_tfn_binary(fn, BERTH_BINARY_MUL, x, w[v]));
        berth_local__emit(p, berth_tfn_store(fn, p->acc, &at, 1, value));
    }
}

static void emit_update(berth_local_plan *p, berth_expr k, berth_expr slot) {
    berth_tfn *fn = p->fn;
    berth_expr w[BERTH_LOCAL_MOST_VECTORS];
    for (int64_t v = 0; v < p->vectors; ++v) {
        berth_local__use_vector(p, v);
        w[v] = load_columns(p, berth_local__row_of(p, slot, p->depth, k));
    }
    berth_expr first = berth_local__scale(p, berth_local__ref(p, p->item_y), p->tile_rows);
    first = berth_local__row_of(p, slot, p->local_y * p->tile_rows, first);
    for (int64_t r = 0; r < p->tile_rows; ++r) {
        berth_expr row = berth_local__add(p, first, berth_tfn_index(fn, r));
        berth_expr a = berth_tfn_load(fn, p->row_tile, (berth_expr[]){row, k}, 2);
        if (p->vectors > 1) {
            berth_var x = berth_tfn_let_var(fn, "x", fn->bufs.data[p->acc].dtype, 1, false);
            berth_local__emit(p, berth_tfn_let(fn, x, a));
            a = berth_local__ref(p, x);
        }
        emit_products(p, r, a, w);
    }
}

typedef struct acc_load {
    const berth_local_plan *plan;
    berth_buf buf;
    berth_expr at;
} acc_load;

static berth_expr replace_acc(berth_tfn *fn, berth_expr load, void *user) {
    const acc_load *l = user;
    return fn->exprs.data[load].load.buf == l->plan->reduction.acc
               ? berth_tfn_load(fn, l->buf, &l->at, 1)
               : 0;
}

static berth_stmt scalar_store(berth_local_plan *p, int which, acc_load *from,
                               const berth_expr *map, uint32_t map_count) {
    berth_tfn *fn = p->fn;
    berth_stmt store = p->reduction.epilogue[which];
    const berth_stmt_node node = fn->stmts.data[store];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
    berth_expr value = berth_replace_loads(fn, node.value, replace_acc, from);
    store = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    return berth_tfn_substitute_stmt(fn, store, map, map_count);
}

// Lane by lane, from memory: of a vector that is not whole, or whose epilogue has no vector form.
static berth_stmt scalar_epilogue(berth_local_plan *p, int64_t acc, berth_expr *map) {
    berth_tfn *fn = p->fn;
    uint32_t first = p->out.count;
    const berth_nest_loop *last = &p->columns.loops[p->columns.count - 1];
    berth_expr acc_at = berth_tfn_index(fn, acc);
    if (p->lanes == 1) {
        acc_load from = {p, p->acc, acc_at};
        for (int i = 0; i < p->reduction.epilogue_count; ++i)
            berth_local__emit(p, scalar_store(p, i, &from, map, p->marker));
        return berth_local__take(p, first);
    }
    berth_expr lanes = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), p->lanes);
    berth_local__emit(
        p, berth_tfn_store(fn, p->spill, &lanes, 1, berth_tfn_load(fn, p->acc, &acc_at, 1)));
    berth_var lane = berth_tfn_var(fn, "lane");
    acc_load from = {p, p->spill, berth_local__ref(p, lane)};
    uint32_t body = p->out.count;
    map[last->var] = berth_local__add(p, berth_local__column_block(p), from.at);
    for (int i = 0; i < p->reduction.epilogue_count; ++i)
        berth_local__emit(p, scalar_store(p, i, &from, map, p->marker));
    berth_expr extent = berth_tfn_index(fn, p->lanes);
    if (berth_local__is_ragged(p)) {
        berth_expr left = berth_tfn_binary(fn, BERTH_BINARY_SUB, berth_tfn_index(fn, last->extent),
                                           berth_local__column_block(p));
        extent = berth_tfn_binary(fn, BERTH_BINARY_MIN, left, extent);
    }
    berth_stmt stores = berth_local__take(p, body);
    berth_local__emit(p, berth_tfn_for(fn, lane, extent, BERTH_LOOP_SERIAL, stores));
    return berth_local__take(p, first);
}

// Stores of the epilogue in vectors over `lane`, the accumulator as marker; false when one has no
// such form.
static bool vector_epilogue(berth_local_plan *p, berth_stmt *stores) {
    berth_tfn *fn = p->fn;
    if (p->lanes == 1) return false;
    berth_expr *map = berth_local__map(p);
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_stmt store = berth_tfn_substitute_stmt(fn, p->reduction.epilogue[i], map, p->marker);
        stores[i] = berth_vectorize_store(fn, store, p->lane, p->lanes, p->reduction.acc,
                                          berth_local__ref(p, p->marker));
        if (!stores[i]) return false;
    }
    return true;
}

static berth_stmt row_epilogue(berth_local_plan *p, int64_t acc, berth_expr index,
                               const berth_stmt *vectors) {
    berth_tfn *fn = p->fn;
    berth_expr *map = berth_local__map(p);
    berth_local__split_index(p, &p->rows, index, map);
    if (!vectors) return scalar_epilogue(p, acc, map);
    uint32_t first = p->out.count;
    berth_expr at = berth_tfn_index(fn, acc);
    berth_expr *with_acc = berth_local__map(p);
    berth_local__split_index(p, &p->rows, index, with_acc);
    with_acc[p->marker] = berth_tfn_load(fn, p->acc, &at, 1);
    for (int i = 0; i < p->reduction.epilogue_count; ++i)
        berth_local__emit(p, berth_tfn_substitute_stmt(fn, vectors[i], with_acc, p->marker + 1));
    berth_stmt whole = berth_local__take(p, first);
    if (!berth_local__is_ragged(p)) return whole;
    int64_t last = p->columns.loops[p->columns.count - 1].extent - p->lanes;
    berth_expr is_whole = berth_local__less(p, berth_local__column_block(p), last + 1);
    return berth_tfn_if(fn, is_whole, whole, scalar_epilogue(p, acc, map));
}

// Of the current vector.
static void emit_epilogue(berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    berth_stmt stores[8];
    bool vectors = vector_epilogue(p, stores);
    int64_t group_rows = p->local_y * p->tile_rows;
    uint32_t first = p->out.count;
    berth_expr start =
        berth_local__add(p, berth_local__scale(p, berth_local__ref(p, p->group_y), group_rows),
                         berth_local__scale(p, berth_local__ref(p, p->item_y), p->tile_rows));
    for (int64_t r = 0; r < p->tile_rows; ++r) {
        berth_expr row = berth_local__add(p, start, berth_tfn_index(fn, r));
        int64_t acc = p->vector * p->tile_rows + r;
        berth_stmt body = row_epilogue(p, acc, row, vectors ? stores : NULL);
        if (p->rows.extent % group_rows)
            body = berth_tfn_if(fn, berth_local__less(p, row, p->rows.extent), body, 0);
        berth_local__emit(p, body);
    }
    if (whole_columns(p)) return;
    berth_stmt all = berth_local__take(p, first);
    berth_local__emit(
        p, berth_tfn_if(fn, berth_local__less(p, vector_column(p), p->columns.extent), all, 0));
}

static void stage_step(void *user, berth_expr step, berth_expr slot) {
    berth_local__stage(user, step, slot);
}

static void update_step(void *user, berth_expr slot) {
    berth_local_plan *p = user;
    berth_tfn *fn = p->fn;
    berth_var inner = berth_tfn_var(fn, "k");
    int64_t count = p->depth / p->row_terms;
    uint32_t update = p->out.count;
    berth_expr k = berth_local__scale(p, berth_local__ref(p, inner), p->row_terms);
    for (int64_t term = 0; term < p->row_terms; ++term)
        emit_update(p, term ? berth_local__add(p, k, berth_tfn_index(fn, term)) : k, slot);
    berth_stmt updates = berth_local__take(p, update);
    // PoCL runs a loop whose bounds are the same for all work-items in step over them, with the
    // accumulators in memory: a bound that looks different keeps them in registers (8 times
    // faster).
    berth_expr extent = berth_tfn_index(fn, count);
    if (p->one_by_one)
        extent = berth_tfn_binary(fn, BERTH_BINARY_MIN, extent,
                                  berth_local__add(p, berth_local__ref(p, p->item_x), extent));
    berth_loop_kind kind = p->row_terms > 1 ? BERTH_LOOP_UNROLL : BERTH_LOOP_SERIAL;
    berth_local__emit(p, berth_tfn_for(fn, inner, extent, kind, updates));
}

static berth_stmt work_item(berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    emit_columns(p);
    berth_local__emit(p, berth_tfn_alloc(fn, p->acc));
    if (p->lanes > 1) berth_local__emit(p, berth_tfn_alloc(fn, p->spill));
    for (int64_t r = 0; r < p->vectors * p->tile_rows; ++r) {
        berth_expr at = berth_tfn_index(fn, r);
        berth_expr init = p->reduction.init;
        if (p->lanes > 1) init = berth_tfn_broadcast(fn, init, p->lanes);
        berth_local__emit(p, berth_tfn_store(fn, p->acc, &at, 1, init));
    }
    berth_local__steps(p, &(berth_local_steps){.count = ceil_div(p->sum.extent, p->depth),
                                               .stages = p->stages,
                                               .copies = p->copies,
                                               .stage = stage_step,
                                               .update = update_step,
                                               .user = p});
    for (int64_t v = 0; v < p->vectors; ++v) {
        berth_local__use_vector(p, v);
        emit_epilogue(p);
    }
    return berth_local__take(p, 0);
}

berth_stmt berth_local__groups(berth_local_plan *p, berth_stmt group, int64_t rows,
                               int64_t columns) {
    berth_tfn *fn = p->fn;
    berth_nest outer = {.body = group};
    for (int i = 0; i < p->batch.count; ++i) {
        outer.loops[outer.count] = p->batch.loops[i];
        outer.loops[outer.count++].kind = BERTH_LOOP_GROUP_Z;
    }
    while (outer.count > 1) {
        berth_status status = berth_schedule_fuse(fn, &outer, 0);
        if (status) {
            berth_decisions_refuse(fn, status);
            return 0;
        }
    }
    outer.loops[outer.count++] = (berth_nest_loop){p->group_y, rows, BERTH_LOOP_GROUP_Y};
    outer.loops[outer.count++] = (berth_nest_loop){p->group_x, columns, BERTH_LOOP_GROUP_X};
    return berth_nest_emit(fn, &outer);
}

static berth_stmt build(berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    declare(p);
    berth_stmt item = work_item(p);
    item = loop(p, p->item_x, p->local_x, BERTH_LOOP_LOCAL_X, item);
    item = loop(p, p->item_y, p->local_y, BERTH_LOOP_LOCAL_Y, item);
    berth_stmt group[] = {berth_tfn_alloc(fn, p->row_tile), berth_tfn_alloc(fn, p->column_tile),
                          item};
    return berth_local__groups(p, berth_tfn_seq(fn, group, 3),
                               ceil_div(p->rows.extent, p->local_y * p->tile_rows),
                               ceil_div(p->columns.extent, p->vectors * p->local_x));
}

static void move_loop(berth_flat_loops *flat, int from, int to) {
    berth_nest_loop moved = flat->loops[from];
    for (int i = from; i < to; ++i) flat->loops[i] = flat->loops[i + 1];
    for (int i = from; i > to; --i) flat->loops[i] = flat->loops[i - 1];
    flat->loops[to] = moved;
}

// Loops of one iteration go to the front of the sum, and the last whose extent is a multiple of `wanted` terms to the end: of a
// convolution the channels, so that all terms of a step are of one place of the window.
static void order_sum(berth_local_plan *p, int64_t wanted) {
    int innermost = -1;
    for (int i = 0; i < p->sum.count; ++i)
        if (p->sum.loops[i].extent == 1) move_loop(&p->sum, i, 0);
    for (int i = 0; i < p->sum.count; ++i)
        if (p->sum.loops[i].extent > 1 && p->sum.loops[i].extent % wanted == 0) innermost = i;
    if (innermost >= 0) move_loop(&p->sum, innermost, p->sum.count - 1);
}

berth_stmt berth_local_tile(berth_tfn *fn, const berth_nest *nest,
                            const berth_local_tile_limits *limits) {
    berth_local_plan p = {.fn = fn, .nest = *nest, .one_by_one = limits->one_by_one};
    if (!berth_nest_is_independent(fn, nest) || !berth_local__analyse(&p)) return 0;
    if (limits->row_terms > 1) order_sum(&p, limits->depth);
    if (!berth_local__choose_sizes(&p, limits)) return 0;
    return build(&p);
}
