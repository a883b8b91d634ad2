#include <string.h>

#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/policy_cpu.h"

#define SHORT_ELEMENTS 128   // that are no group of their own, whatever the sizes
#define CHUNK_ELEMENTS 8192  // of work per group: some microseconds

static void collect(berth_tfn *fn, const berth_ranges *ranges, berth_expr id,
                    berth_access_list *out, bool *seen, uint32_t seen_count) {
    if (!id || (id < seen_count && seen[id])) return;
    if (id < seen_count) seen[id] = true;
    const berth_expr_node node = fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT || node.kind == BERTH_EXPR_VAR)
        return;
    if (node.kind != BERTH_EXPR_LOAD) {
        collect(fn, ranges, node.a, out, seen, seen_count);
        collect(fn, ranges, node.b, out, seen, seen_count);
        collect(fn, ranges, node.c, out, seen, seen_count);
        return;
    }
    for (int i = 0; i < node.index_count; ++i)
        collect(fn, ranges, berth_tfn_load_indices(fn, id)[i], out, seen, seen_count);
    berth_access access = {.buf = node.load.buf};
    access.at = berth_linear_access(fn, ranges, node.load.buf, berth_tfn_load_indices(fn, id),
                                    node.index_count);
    berth_vec_push(fn->module->arena, &out->items, access);
}

void berth_cpu__collect_loads(berth_tfn *fn, const berth_ranges *ranges, berth_expr id,
                              berth_access_list *out) {
    bool *seen = berth_arena_new_array(fn->module->arena, bool, fn->exprs.count + 1);
    collect(fn, ranges, id, out, seen, fn->exprs.count);
}

bool berth_linear_uses(const berth_tfn *fn, const berth_linear *form, berth_var var) {
    for (int i = 0; i < form->count; ++i)
        if (berth_tfn_uses_var(fn, form->terms[i].atom, var)) return true;
    return false;
}

bool berth_cpu__can_fuse(const berth_tfn *fn, const berth_nest *nest, int loop,
                         const berth_access_list *accesses) {
    berth_nest_loop a = nest->loops[loop];
    berth_nest_loop b = nest->loops[loop + 1];
    for (uint32_t i = 0; i < accesses->items.count; ++i) {
        bool a_linear = false;
        bool b_linear = false;
        int64_t outer = berth_linear_stride(fn, &accesses->items.data[i].at, a.var, &a_linear);
        int64_t inner = berth_linear_stride(fn, &accesses->items.data[i].at, b.var, &b_linear);
        if (!a_linear || !b_linear || outer != inner * b.extent) return false;
    }
    return true;
}

// Adds the accesses of a store; false when the statement is something else.
static bool collect_store(berth_tfn *fn, const berth_ranges *ranges, berth_stmt id,
                          berth_access_list *out) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind != BERTH_STMT_STORE) return false;
    berth_access store = {.buf = node.buf};
    store.at = berth_linear_access(fn, ranges, node.buf, berth_tfn_store_indices(fn, id),
                                   node.index_count);
    berth_vec_push(fn->module->arena, &out->items, store);
    berth_cpu__collect_loads(fn, ranges, node.value, out);
    return true;
}

bool berth_cpu__collect_body(berth_tfn *fn, const berth_ranges *ranges, berth_stmt id,
                             berth_access_list *out) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind != BERTH_STMT_SEQ) return collect_store(fn, ranges, id, out);
    for (uint32_t i = 0; i < node.count; ++i)
        if (!collect_store(fn, ranges, fn->lists.data[node.first + i], out)) return false;
    return node.count > 0;
}

// Comparisons of indices (padding) hide from the accesses: a loop they use is not fused.
bool berth_cpu__used_in_conditions(const berth_tfn *fn, berth_expr id, berth_var var, int depth) {
    if (!id || depth > 64) return depth > 64;
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (node->kind == BERTH_EXPR_LOAD) return false;
    if (node->is_index || (node->kind == BERTH_EXPR_CAST && fn->exprs.data[node->a].is_index) ||
        (node->kind == BERTH_EXPR_BINARY && fn->exprs.data[node->a].is_index))
        return berth_tfn_uses_var(fn, id, var);
    return berth_cpu__used_in_conditions(fn, node->a, var, depth + 1) ||
           berth_cpu__used_in_conditions(fn, node->b, var, depth + 1) ||
           berth_cpu__used_in_conditions(fn, node->c, var, depth + 1);
}

static bool conditions_use(const berth_tfn *fn, berth_stmt body, berth_var var) {
    const berth_stmt_node *node = &fn->stmts.data[body];
    if (node->kind == BERTH_STMT_STORE)
        return berth_cpu__used_in_conditions(fn, node->value, var, 0);
    for (uint32_t i = 0; i < node->count; ++i)
        if (conditions_use(fn, fn->lists.data[node->first + i], var)) return true;
    return false;
}

static int64_t most_of(const berth_tfn *fn, const berth_nest *nest, int loop) {
    return berth_tfn_most_iterations(fn, nest->loops[loop].var, nest->loops[loop].extent);
}

// Whether chunks of the last loop leave something over, for this size or another one: then the last chunk asks how much.
static bool some_leave_rest(const berth_tfn *fn, const berth_nest_loop *last, int64_t chunk) {
    const int64_t *extents = fn->vars.data[last->var].extents;
    bool some = last->extent % chunk > 0;
    for (uint32_t i = 0; extents && i < fn->size_count && !some; ++i) some = extents[i] % chunk > 0;
    return some;
}

// The last loop in chunks: c in parallel, and within a chunk a loop of the kind given (SIMD: for the
// compiler's vectoriser).
static void chunk_last(berth_tfn *fn, berth_nest *nest, int64_t chunk, berth_loop_kind kind) {
    berth_nest_loop last = nest->loops[nest->count - 1];
    berth_var c = berth_tfn_var(fn, "chunk");
    berth_var i = berth_tfn_var(fn, "i");
    berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, c),
                                        berth_tfn_index(fn, chunk));
    berth_expr at = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, berth_tfn_var_ref(fn, i));
    berth_stmt body = berth_replace_var_stmt(fn, nest->body, last.var, at);
    berth_expr left =
        berth_tfn_binary(fn, BERTH_BINARY_SUB, berth_tfn_index(fn, last.extent), first);
    berth_expr extent = berth_tfn_index(fn, chunk);
    if (some_leave_rest(fn, &last, chunk))
        extent = berth_tfn_binary(fn, BERTH_BINARY_MIN, extent, left);
    nest->body = berth_tfn_for(fn, i, extent, kind, body);
    nest->loops[nest->count - 1] =
        (berth_nest_loop){c, (last.extent + chunk - 1) / chunk, BERTH_LOOP_PARALLEL};
}

void berth_cpu__fuse_inwards(berth_tfn *fn, berth_nest *nest, berth_ranges *ranges) {
    berth_access_list accesses = {0};
    if (!berth_cpu__collect_body(fn, ranges, nest->body, &accesses)) return;
    while (nest->count > 1) {
        int loop = nest->count - 2;
        bool free = !conditions_use(fn, nest->body, nest->loops[loop].var) &&
                    !conditions_use(fn, nest->body, nest->loops[loop + 1].var);
        if (!free || !berth_cpu__can_fuse(fn, nest, loop, &accesses)) break;
        berth_status status = berth_schedule_fuse(fn, nest, loop);
        if (status) {
            berth_decisions_refuse(fn, status);
            break;
        }
        *ranges = berth_ranges_with(fn, ranges, nest);
        memset(&accesses, 0, sizeof(accesses));
        berth_cpu__collect_body(fn, ranges, nest->body, &accesses);
    }
}

bool berth_cpu__is_function(berth_unary op) {
    switch (op) {
    case BERTH_UNARY_EXP:
    case BERTH_UNARY_TANH:
    case BERTH_UNARY_SIGMOID:
    case BERTH_UNARY_ERF:
    case BERTH_UNARY_SIN:
    case BERTH_UNARY_COS:
    case BERTH_UNARY_TAN: return true;
    default: return false;
    }
}

// A conversion of f32 to integers of 8 or 16 bits, within whose bounds the value is put first.
static bool narrows_float(const berth_tfn *fn, const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_CAST && !berth_dtype_is_float((berth_dtype)node->dtype) &&
           node->dtype != BERTH_DTYPE_BOOL &&
           berth_dtype_size_bytes((berth_dtype)node->dtype) <= 2 &&
           fn->exprs.data[node->a].dtype == BERTH_DTYPE_F32;
}

bool berth_cpu__has_vector_functions(const berth_tfn *fn, berth_expr id, int depth) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || depth > 64 || node->is_index) return false;
    if (node->dtype == BERTH_DTYPE_F16) return true;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_LOAD)
        return false;
    if (node->kind == BERTH_EXPR_UNARY && berth_cpu__is_function((berth_unary)node->op))
        return true;
    if (narrows_float(fn, node)) return true;
    return berth_cpu__has_vector_functions(fn, node->a, depth + 1) ||
           berth_cpu__has_vector_functions(fn, node->b, depth + 1) ||
           berth_cpu__has_vector_functions(fn, node->c, depth + 1);
}

// One row in vectors, as statements: of whole registers, and what is left of it in halves of them and single elements.
// 0: there is no such form.
static uint32_t vector_row(berth_tfn *fn, berth_nest row, int64_t lanes, berth_stmt *items) {
    enum { least_lanes = 4 };
    uint32_t n = 0;
    for (; row.count && lanes >= least_lanes; lanes /= 2) {
        int64_t vectors = row.loops[0].extent / lanes;
        berth_nest rest = {0};
        berth_status status = BERTH_OK;
        if (vectors == 0) continue;
        if (row.loops[0].extent % lanes)
            status = berth_schedule_peel(fn, &row, 0, vectors * lanes, &rest);
        if (!status && vectors > 1) status = berth_schedule_split(fn, &row, 0, lanes);
        if (!status) status = berth_schedule_vectorize_wide(fn, &row);
        if (status) {
            berth_decisions_refuse(fn, status);
            return 0;
        }
        items[n++] = row.count ? berth_nest_emit(fn, &row) : row.body;
        row = rest;
    }
    if (row.count) items[n++] = berth_nest_emit(fn, &row);
    return n;
}

// The last loop of a nest in vectors, which becomes its body. False: there is no such form.
static bool vector_rows(berth_tfn *fn, berth_nest *nest, int64_t lanes) {
    enum { most_parts = 8 };
    berth_stmt items[most_parts];
    berth_nest row = {.loops = {nest->loops[nest->count - 1]}, .count = 1, .body = nest->body};
    row.loops[0].kind = BERTH_LOOP_SERIAL;
    uint32_t count = vector_row(fn, row, lanes, items);
    if (count == 0) return false;
    nest->body = count == 1 ? items[0] : berth_tfn_seq(fn, items, count);
    nest->count--;
    return true;
}

// Whether the last loop goes through all memory by one or two elements: what lies further apart is put together one by
// one.
static bool goes_along_rows(berth_tfn *fn, const berth_nest *nest) {
    enum { most_step = 2 };
    berth_access_list accesses = {0};
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    if (!berth_cpu__collect_body(fn, &ranges, nest->body, &accesses)) return false;
    for (uint32_t i = 0; i < accesses.items.count; ++i) {
        bool linear = false;
        int64_t step = berth_linear_stride(fn, &accesses.items.data[i].at,
                                           nest->loops[nest->count - 1].var, &linear);
        if (!linear || step < 0 || step > most_step) return false;
    }
    return true;
}

// Elements of what a nest stores that one register holds; 0: the language has no vectors of them.
static int64_t lanes_of(const berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    bool is_wide =
        store.kind == BERTH_STMT_STORE && fn->bufs.data[store.buf].dtype == BERTH_DTYPE_F64;
    if (!is_wide) return facts->lanes;
    return facts->target ? facts->lanes / 2 : 0;
}

// Whether vectors of what the last loop computes are better than what the C compiler makes of it.
static bool takes_vectors(berth_tfn *fn, const berth_nest *nest) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    return store.kind == BERTH_STMT_STORE && !fn->any_size &&
           nest->loops[nest->count - 1].extent <= CHUNK_ELEMENTS &&
           !berth_tfn_only_moves(fn, fn->bufs.data[store.buf].dtype, store.value) &&
           berth_cpu__has_vector_functions(fn, store.value, 0) && goes_along_rows(fn, nest);
}

enum { most_stores = 4 };  // of a body whose borders are taken apart

// The stores that a body is made of; 0: it is something else, or more.
static uint32_t stores_of(const berth_tfn *fn, berth_stmt body, berth_stmt *out) {
    const berth_stmt_node *node = &fn->stmts.data[body];
    *out = body;
    if (node->kind == BERTH_STMT_STORE) return 1;
    if (node->kind != BERTH_STMT_SEQ || node->count > most_stores) return 0;
    for (uint32_t i = 0; i < node->count; ++i) {
        out[i] = fn->lists.data[node->first + i];
        if (fn->stmts.data[out[i]].kind != BERTH_STMT_STORE) return 0;
    }
    return node->count;
}

// The body with what the ranges decide decided.
static berth_stmt simplify_stores(berth_tfn *fn, berth_stmt body, const berth_ranges *ranges) {
    berth_stmt stores[most_stores];
    uint32_t count = stores_of(fn, body, stores);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_stmt_node node = fn->stmts.data[stores[i]];
        berth_expr indices[BERTH_MAX_RANK];
        memcpy(indices, berth_tfn_store_indices(fn, stores[i]),
               node.index_count * sizeof(berth_expr));
        berth_expr value = berth_tfn_simplify(fn, node.value, ranges);
        stores[i] = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    }
    return count == 1 ? stores[0] : berth_tfn_seq(fn, stores, count);
}

// A last loop of a few iterations, some of them padding (channels up to a whole block): a store for
// each, so that the loop around it has one form in all of its iterations.
static void unroll_padded(berth_tfn *fn, berth_nest *nest, const berth_ranges *ranges) {
    berth_nest_loop last = nest->loops[nest->count - 1];
    const berth_stmt_node node = fn->stmts.data[nest->body];
    if (nest->count < 2 || last.extent > most_stores || node.kind != BERTH_STMT_STORE ||
        !berth_cpu__used_in_conditions(fn, node.value, last.var, 0))
        return;
    berth_status status = berth_schedule_unroll(fn, nest, nest->count - 1);
    if (status) {
        berth_decisions_refuse(fn, status);
        return;
    }
    nest->body = simplify_stores(fn, nest->body, ranges);
}

static bool peel_borders(berth_tfn *fn, berth_nest *nest, const berth_ranges *ranges, int64_t lanes,
                         int depth);

// One part of a loop with a border: its conditions decided where the part allows it. Where one is left (the
// third of several tensors that are joined) it is taken apart again.
static berth_stmt border_part(berth_tfn *fn, berth_nest part, berth_ranges ranges, int64_t lanes,
                              int depth) {
    enum { most_depth = 8 };
    ranges = berth_ranges_with(fn, &ranges, &part);
    part.body = simplify_stores(fn, part.body, &ranges);
    for (int i = 0; i < part.count; ++i) part.loops[i].kind = BERTH_LOOP_SERIAL;
    if (depth < most_depth && peel_borders(fn, &part, &ranges, lanes, depth + 1))
        return part.count ? berth_nest_emit(fn, &part) : part.body;
    berth_cpu__fuse_inwards(fn, &part, &ranges);
    if (lanes && takes_vectors(fn, &part) && vector_rows(fn, &part, lanes))
        return part.count ? berth_nest_emit(fn, &part) : part.body;
    part.loops[part.count - 1].kind = BERTH_LOOP_SIMD;
    return berth_nest_emit(fn, &part);
}

// Padding: the innermost loop with a condition in three parts, so that the middle one has none. The
// loops inside it go along. False when there is nothing to take apart.
static bool peel_borders(berth_tfn *fn, berth_nest *nest, const berth_ranges *ranges, int64_t lanes,
                         int depth) {
    berth_stmt stores[most_stores];
    uint32_t count = stores_of(fn, nest->body, stores);
    int at = nest->count;
    bool found = false;
    int64_t extent = 0;
    int64_t low = 0;
    int64_t high = 0;
    while (count && at > 0 && !found) {
        at--;
        berth_var var = nest->loops[at].var;
        extent = nest->loops[at].extent;
        low = 0;
        high = extent - 1;
        for (uint32_t i = 0; i < count; ++i) {
            berth_expr value = fn->stmts.data[stores[i]].value;
            found |= berth_cpu__used_in_conditions(fn, value, var, 0) ||
                     berth_cpu__used_in_clamps(fn, value, var);
            berth_cpu__narrow(fn, ranges, value, var, &low, &high);
            berth_cpu__narrow_indices(fn, ranges, value, var, &low, &high);
        }
        found |= low > 0 || high < extent - 1;
    }
    if (!found) return false;
    if ((low == 0 && high == extent - 1) || high < low) return false;
    const int64_t border = extent - 1 - (high - low);
    if (most_of(fn, nest, at) - 1 - border < 8) return false;
    berth_nest inner = {.body = nest->body};
    for (int i = at; i < nest->count; ++i) inner.loops[inner.count++] = nest->loops[i];
    berth_nest middle;
    berth_nest last;
    berth_status status = berth_schedule_peel(fn, &inner, 0, low, &middle);
    if (!status) status = berth_schedule_peel(fn, &middle, 0, high - low + 1, &last);
    if (status) {
        berth_decisions_refuse(fn, status);
        return false;
    }
    berth_stmt parts[3];
    uint32_t part_count = 0;
    if (low > 0) parts[part_count++] = border_part(fn, inner, *ranges, lanes, depth);
    parts[part_count++] = border_part(fn, middle, *ranges, lanes, depth);
    if (high < extent - 1) parts[part_count++] = border_part(fn, last, *ranges, lanes, depth);
    nest->body = berth_tfn_seq(fn, parts, part_count);
    nest->count = at;
    return true;
}

// Loops from `last` outwards are serial as long as they make at most a chunk of work together. For many
// sizes only short ones are, and one around these: which of the others would be depends on the size, and
// groups of a few elements each take longer than their work.
static void keep_chunks_serial(const berth_tfn *fn, berth_nest *nest, int last, int64_t inside,
                               int64_t chunk) {
    const int64_t most = fn->any_size && chunk > SHORT_ELEMENTS ? SHORT_ELEMENTS : chunk;
    int i = last;
    for (; i >= 0 && inside * most_of(fn, nest, i) <= most; --i) {
        inside *= most_of(fn, nest, i);
        nest->loops[i].kind = BERTH_LOOP_SERIAL;
    }
    if (fn->any_size && i >= 0 && inside * most_of(fn, nest, i) <= chunk)
        nest->loops[i].kind = BERTH_LOOP_SERIAL;
}

// Elements of work of a group. At least a register of the widest kind.
static int64_t decide_chunk(berth_tfn *fn) {
    enum { least_chunk = 16, most_chunk = 1 << 30 };
    return berth_decide(fn, BERTH_DECISION_CHUNK, CHUNK_ELEMENTS, least_chunk, most_chunk,
                        "elements of a group");
}

void berth_cpu__keep_chunks_serial(berth_tfn *fn, berth_nest *nest, int64_t inside) {
    for (int i = 0; i < nest->count; ++i) nest->loops[i].kind = BERTH_LOOP_PARALLEL;
    keep_chunks_serial(fn, nest, nest->count - 1, inside, decide_chunk(fn));
    nest->loops[0].kind = BERTH_LOOP_PARALLEL;
}

// The last loop in vectors, as many to a group as a chunk has, and a nest for what is left of it.
// 0: there is no such form, or no use for it.
static berth_stmt vector_loops(berth_tfn *fn, berth_nest nest, const berth_cpu_facts *facts) {
    const berth_stmt_node store = fn->stmts.data[nest.body];
    int last = nest.count - 1;
    int64_t lanes = lanes_of(fn, &nest, facts);
    if (store.kind != BERTH_STMT_STORE || lanes == 0 ||
        berth_tfn_only_moves(fn, fn->bufs.data[store.buf].dtype, store.value) ||
        !berth_cpu__has_vector_functions(fn, store.value, 0))
        return 0;
    if (last > 0 && takes_vectors(fn, &nest) && nest.loops[last].extent % lanes) {
        int64_t row = nest.loops[last].extent;
        if (!vector_rows(fn, &nest, lanes)) return 0;
        for (int i = 0; i < last; ++i) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
        keep_chunks_serial(fn, &nest, last - 1, row, decide_chunk(fn));
        nest.loops[0].kind = BERTH_LOOP_PARALLEL;
        return berth_nest_emit(fn, &nest);
    }
    int64_t vectors = nest.loops[last].extent / lanes;
    if (vectors == 0) return 0;
    berth_nest rest = {0};
    berth_status status = BERTH_OK;
    if (nest.loops[last].extent % lanes)
        status = berth_schedule_peel(fn, &nest, last, vectors * lanes, &rest);
    if (!status) status = berth_schedule_split(fn, &nest, last, lanes);
    if (!status) status = berth_schedule_vectorize_wide(fn, &nest);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    for (int i = 0; i < nest.count; ++i) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    int64_t elements = decide_chunk(fn);
    int64_t chunk = elements / lanes;
    if (vectors > chunk) {
        chunk_last(fn, &nest, chunk, BERTH_LOOP_SERIAL);
    } else {
        nest.loops[last].kind = last > 0 ? BERTH_LOOP_SERIAL : BERTH_LOOP_PARALLEL;
        keep_chunks_serial(fn, &nest, last - 1, vectors * lanes, elements);
    }
    if (!rest.count) return berth_nest_emit(fn, &nest);
    for (int i = 0; i < rest.count; ++i) rest.loops[i].kind = BERTH_LOOP_PARALLEL;
    keep_chunks_serial(fn, &rest, last, 1, elements);
    rest.loops[0].kind = BERTH_LOOP_PARALLEL;
    nest.loops[0].kind = BERTH_LOOP_PARALLEL;
    berth_stmt items[2] = {berth_nest_emit(fn, &nest), berth_nest_emit(fn, &rest)};
    return berth_tfn_seq(fn, items, 2);
}

static berth_stmt flat(berth_tfn *fn, const berth_nest *plain, const berth_cpu_facts *facts) {
    berth_nest nest = *plain;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &nest);
    berth_access_list accesses = {0};
    if (!berth_cpu__collect_body(fn, &ranges, nest.body, &accesses)) return 0;
    int64_t total = 1;
    for (int i = 0; i < nest.count; ++i)
        if (nest.loops[i].extent <= 0) return 0;
    berth_stmt rows = berth_cpu__scattered_rows(fn, &nest, &accesses);
    if (rows) return rows;
    for (int i = 0; i < nest.count; ++i) {
        nest.loops[i].kind = BERTH_LOOP_PARALLEL;
        total *= most_of(fn, &nest, i);
    }
    unroll_padded(fn, &nest, &ranges);
    if (peel_borders(fn, &nest, &ranges, lanes_of(fn, &nest, facts), 0)) {
        int64_t inside = total;
        for (int i = 0; i < nest.count; ++i) inside /= most_of(fn, &nest, i);
        keep_chunks_serial(fn, &nest, nest.count - 1, inside, decide_chunk(fn));
        return nest.count ? berth_nest_emit(fn, &nest) : nest.body;
    }
    berth_cpu__fuse_inwards(fn, &nest, &ranges);
    berth_stmt vectors = vector_loops(fn, nest, facts);
    if (vectors) return vectors;
    // Inner loops of at most a chunk stay whole; the loops around them are serial up to a chunk.
    int last = nest.count - 1;
    int64_t chunk = decide_chunk(fn);
    if (most_of(fn, &nest, last) > chunk) {
        chunk_last(fn, &nest, chunk, BERTH_LOOP_SIMD);
        return berth_nest_emit(fn, &nest);
    }
    nest.loops[last].kind = BERTH_LOOP_SIMD;
    keep_chunks_serial(fn, &nest, last - 1, most_of(fn, &nest, last), chunk);
    return berth_nest_emit(fn, &nest);
}

// The period of an index var % period in an expression, at least `least`; 0: there is none.
static int64_t find_period(const berth_tfn *fn, berth_expr id, berth_var var, int64_t least,
                           int depth) {
    const berth_expr_node *node = &fn->exprs.data[id];
    int64_t period = 0;
    if (!id || depth > 32 || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_SYMBOL)
        return 0;
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count && !period; ++i)
            period = find_period(fn, berth_tfn_load_indices(fn, id)[i], var, least, depth + 1);
        return period;
    }
    if (node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_MOD && node->is_index) {
        const berth_expr_node *of = &fn->exprs.data[node->a];
        if (of->kind == BERTH_EXPR_VAR && of->var == var &&
            berth_tfn_const_value(fn, node->b, &period) && period >= least)
            return period;
        period = 0;
    }
    const berth_expr operands[3] = {node->a, node->b, node->c};
    for (int i = 0; i < 3 && !period; ++i)
        period = find_period(fn, operands[i], var, least, depth + 1);
    return period;
}

// A row that is read from its beginning again and again, y[i] = x[i % 7], becomes two loops, of which the
// inner one reads in order.
static void split_periods(berth_tfn *fn, berth_nest *nest, const berth_cpu_facts *facts) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    int last = nest->count - 1;
    if (store.kind != BERTH_STMT_STORE || nest->count == BERTH_NEST_MAX_LOOPS) return;
    int64_t extent = nest->loops[last].extent;
    int64_t least =
        fn->any_size ? facts->lanes : 2;  // for many sizes, forms that most of them have
    int64_t period = find_period(fn, store.value, nest->loops[last].var, least, 0);
    if (period == 0 || extent <= period || extent % period) return;
    berth_status status = berth_schedule_split(fn, nest, last, period);
    if (status) berth_decisions_refuse(fn, status);
}

berth_stmt berth_cpu__flat_loops(berth_tfn *fn, const berth_nest *plain,
                                 const berth_cpu_facts *facts) {
    berth_nest nest = *plain;
    split_periods(fn, &nest, facts);
    berth_stmt loops = flat(fn, &nest, facts);
    if (!loops) return 0;
    loops = berth_cpu__tables_of_places(fn, berth_cpu__places_once(fn, loops), facts);
    return berth_cpu__ask_once(fn, loops);
}
