// Several vectors beside each other that need the same places: where a body with loops computes from data where it reads
// (samples of a region, which are the same for all channels), a few iterations of a loop around it that these places do not
// depend on go through its loops together, so that each place is computed once for all of them.
//
//   for c: acc = 0; for s in n[i]: acc += w(p[i, s]) * x[c, at(p[i, s])]
//     ->  for co: acc0 = 0; acc1 = 0; for s in n[i]: { acc0 += w(..) * x[co * 2, at(..)]; acc1 += w(..) * x[co * 2 + 1, at(..)] }
//
// (Unroll-and-jam; Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001, section 8.4.)
#include "compiler/schedule/policy_cpu.h"

enum { most_beside = 4, least_work = 16, most_items = 80, most_buffers = 4, most_names = 16 };

typedef struct beside {
    berth_tfn *fn;
    berth_var var;  // of the iterations that go together
    int64_t count;  // of them
    berth_buf local[most_buffers], copies[most_buffers][most_beside];
    uint32_t local_count;
    int copy;  // whose buffers `renamed` puts in
    uint8_t *seen;
    uint32_t seen_count;
    berth_ranges ranges;
    berth_expr shared
        [most_names];  // of the loop that is built: values that all iterations need, and their names
    berth_var names[most_names];
    uint32_t name_count;
} beside;

// ---- what is shared -----------------------------------------------------------------------------

static bool is_leaf(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
           node->kind == BERTH_EXPR_VAR;
}

static bool has_data(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || is_leaf(node)) return false;
    if (node->kind == BERTH_EXPR_LOAD) return true;
    return has_data(fn, node->a) || has_data(fn, node->b) || has_data(fn, node->c);
}

static bool is_shared(const beside *b, berth_expr id) {
    return b->fn->exprs.data[id].lanes == 1 && has_data(b->fn, id) &&
           !berth_tfn_uses_var(b->fn, id, b->var);
}

// Operations on single values that data gives and `var` does not change, each once.
static int64_t shared_work(beside *b, berth_expr id) {
    if (!id || id >= b->seen_count || b->seen[id]) return 0;
    b->seen[id] = 1;
    const berth_tfn *fn = b->fn;
    const berth_expr_node *node = &fn->exprs.data[id];
    int64_t work = 0;
    if (is_leaf(node)) return 0;
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            work += shared_work(b, berth_tfn_load_indices(fn, id)[i]);
        return work;
    }
    work = shared_work(b, node->a) + shared_work(b, node->b) + shared_work(b, node->c);
    return work + is_shared(b, id);
}

// The same of all that is stored in loops inside a body. Statements that cannot be taken together are -1.
static int64_t work_of(beside *b, berth_stmt id, bool in_loop) {
    const berth_tfn *fn = b->fn;
    const berth_stmt_node *node = &fn->stmts.data[id];
    int64_t work = 0;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_ALLOC:
        if (b->local_count == most_buffers) return -1;
        b->local[b->local_count++] = node->buf;
        return 0;
    case BERTH_STMT_STORE:
        for (int i = 0; in_loop && i < node->index_count; ++i)
            work += shared_work(b, berth_tfn_store_indices(fn, id)[i]);
        return in_loop ? work + shared_work(b, node->value) : 0;
    case BERTH_STMT_FOR:
        for (uint32_t i = 0; i < b->local_count; ++i)
            if (berth_cpu__reads(fn, node->value, b->local[i])) return -1;
        return berth_tfn_uses_var(fn, node->value, b->var) ? -1 : work_of(b, node->body, true);
    case BERTH_STMT_SEQ:
        if (node->count > (most_items - most_names) / most_beside) return -1;
        for (uint32_t i = 0; i < node->count; ++i) {
            const berth_stmt part = fn->lists.data[node->first + i];
            const bool nested = fn->stmts.data[part].kind == BERTH_STMT_SEQ;
            int64_t more = nested ? -1 : work_of(b, part, in_loop);
            if (more < 0) return -1;
            work += more;
        }
        return work;
    default: return -1;
    }
}

static bool shares(berth_tfn *fn, const berth_nest *nest, int loop) {
    beside b = {.fn = fn, .var = nest->loops[loop].var, .seen_count = fn->exprs.count};
    b.seen = berth_arena_new_array(fn->module->arena, uint8_t, b.seen_count);
    return nest->loops[loop].extent > 1 && nest->loops[loop].kind == BERTH_LOOP_PARALLEL &&
           work_of(&b, nest->body, false) >= least_work;
}

// ---- building -----------------------------------------------------------------------------------

// Whether a value may be computed whatever the conditions around it say: it reads what lies in its buffers.
static bool is_safe(beside *b, berth_expr id) {
    berth_access_list all = {0};
    for (uint32_t i = 0; i < b->local_count; ++i)
        if (berth_cpu__reads(b->fn, id, b->local[i])) return false;
    berth_cpu__collect_loads(b->fn, &b->ranges, id, &all);
    for (uint32_t i = 0; i < all.items.count; ++i) {
        const berth_access *access = &all.items.data[i];
        if (b->fn->bufs.data[access->buf].may_alias ||
            berth_linear_range(b->fn, &b->ranges, &access->at).low < 0 ||
            !berth_cpu__reads_inside(b->fn, &b->ranges, access, 0))
            return false;
    }
    return true;
}

static berth_expr name_of(beside *b, berth_expr id) {
    const berth_expr_node node = b->fn->exprs.data[id];
    for (uint32_t i = 0; i < b->name_count; ++i)
        if (berth_tfn_expr_equal(b->fn, b->shared[i], id))
            return berth_tfn_var_ref(b->fn, b->names[i]);
    if (b->name_count == most_names) return id;
    b->shared[b->name_count] = id;
    b->names[b->name_count] =
        berth_tfn_let_var(b->fn, "place", (berth_dtype)node.dtype, 1, node.is_index);
    return berth_tfn_var_ref(b->fn, b->names[b->name_count++]);
}

// A value with the largest parts that all iterations need as names. depth: 0.
static berth_expr with_names(beside *b, berth_expr id, int depth) {
    berth_tfn *fn = b->fn;
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || is_leaf(&node) || depth > 32) return id;
    if (is_shared(b, id) && is_safe(b, id)) return name_of(b, id);
    if (node.kind != BERTH_EXPR_LOAD) {
        berth_expr a = with_names(b, node.a, depth + 1), second = with_names(b, node.b, depth + 1);
        return berth_tfn_rebuild(fn, id, a, second, with_names(b, node.c, depth + 1));
    }
    berth_expr indices[BERTH_MAX_RANK];
    bool changed = false;
    for (int i = 0; i < node.index_count; ++i) {
        berth_expr old = berth_tfn_load_indices(fn, id)[i];
        indices[i] = with_names(b, old, depth + 1);
        changed |= indices[i] != old;
    }
    return changed ? berth_tfn_load(fn, node.load.buf, indices, node.index_count) : id;
}

static berth_buf copy_of(const beside *b, berth_buf buf) {
    for (uint32_t i = 0; i < b->local_count; ++i)
        if (b->local[i] == buf) return b->copies[i][b->copy];
    return buf;
}

static berth_expr renamed(berth_tfn *fn, berth_expr load, void *user) {
    const berth_expr_node node = fn->exprs.data[load];
    berth_buf buf = copy_of(user, node.load.buf);
    if (buf == node.load.buf) return 0;
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < node.index_count; ++i) indices[i] = berth_tfn_load_indices(fn, load)[i];
    return berth_tfn_load(fn, buf, indices, node.index_count);
}

static berth_expr of_copy(beside *b, berth_expr id) {
    berth_expr value = berth_replace_loads(b->fn, id, renamed, b);
    return berth_replace_var(b->fn, value, b->var, berth_tfn_index(b->fn, b->copy));
}

// A store of each iteration; inside a loop with names for what they share.
static uint32_t stores_of(beside *b, berth_stmt id, bool in_loop, berth_stmt *out) {
    berth_tfn *fn = b->fn;
    const berth_stmt_node node = fn->stmts.data[id];
    berth_expr value = in_loop ? with_names(b, node.value, 0) : node.value;
    for (b->copy = 0; b->copy < b->count; ++b->copy) {
        berth_expr indices[BERTH_MAX_RANK];
        for (int i = 0; i < node.index_count; ++i)
            indices[i] = of_copy(b, berth_tfn_store_indices(fn, id)[i]);
        out[b->copy] =
            berth_tfn_store(fn, copy_of(b, node.buf), indices, node.index_count, of_copy(b, value));
    }
    return (uint32_t)b->count;
}

static uint32_t together(beside *b, berth_stmt id, bool in_loop, berth_stmt *out);

// A loop that all iterations go through together. What they share is named first in it; loops inside have names of their own.
static berth_stmt loop_of_all(beside *b, const berth_stmt_node *loop) {
    berth_tfn *fn = b->fn;
    berth_stmt items[most_items], all[most_items];
    uint32_t n = 0;
    const beside outer = *b;  // whose names and buffers go on behind the loop
    b->name_count = 0;
    uint32_t count = together(b, loop->body, true, items);
    for (; n < b->name_count; ++n) all[n] = berth_tfn_let(fn, b->names[n], b->shared[n]);
    for (uint32_t i = 0; i < count; ++i) all[n++] = items[i];
    *b = outer;
    return berth_tfn_for(fn, loop->var, loop->value, (berth_loop_kind)loop->loop_kind,
                         n == 1 ? all[0] : berth_tfn_seq(fn, all, n));
}

// Writes what a statement of each iteration becomes to `out`; returns how many that are.
static uint32_t together(beside *b, berth_stmt id, bool in_loop, berth_stmt *out) {
    berth_tfn *fn = b->fn;
    const berth_stmt_node node = fn->stmts.data[id];
    uint32_t n = 0;
    if (node.kind == BERTH_STMT_STORE) return stores_of(b, id, in_loop, out);
    if (node.kind == BERTH_STMT_SEQ) {
        for (uint32_t i = 0; i < node.count; ++i)
            n += together(b, fn->lists.data[node.first + i], in_loop, out + n);
        return n;
    }
    if (node.kind == BERTH_STMT_FOR) {
        out[0] = loop_of_all(b, &node);
        return 1;
    }
    for (; n < b->count; ++n) {  // a buffer
        b->copies[b->local_count][n] = berth_tfn_add_buf(fn, fn->bufs.data[node.buf]);
        out[n] = berth_tfn_alloc(fn, b->copies[b->local_count][n]);
    }
    b->local[b->local_count++] = node.buf;
    return n;
}

static berth_stmt emit_parallel(berth_tfn *fn, berth_nest nest) {
    for (int i = 0; i < nest.count; ++i) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    return berth_nest_emit(fn, &nest);
}

// `count` iterations of a loop, which has a multiple of them, at a time. 0: they cannot be.
static berth_stmt take_together(berth_tfn *fn, berth_nest nest, int loop, int64_t count) {
    beside b = {.fn = fn, .count = count};
    berth_stmt items[most_items];
    berth_status status = berth_schedule_split(fn, &nest, loop, count);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    b.var = nest.loops[loop + 1].var;
    nest.count--;
    for (int i = loop + 1; i < nest.count; ++i) nest.loops[i] = nest.loops[i + 1];
    berth_ranges ranges = berth_ranges_collect(fn);
    b.ranges = berth_ranges_with(fn, &ranges, &nest);
    nest.body = berth_tfn_seq(fn, items, together(&b, nest.body, false, items));
    return emit_parallel(fn, nest);
}

berth_stmt berth_cpu__beside(berth_tfn *fn, const berth_nest *nest) {
    int loop = nest->count - 1;
    while (loop >= 0 && !shares(fn, nest, loop)) loop--;
    if (loop < 0) return 0;
    berth_nest whole = *nest, rest = {0};
    const int64_t extent = nest->loops[loop].extent;
    const int64_t tiles = (extent + most_beside - 1) / most_beside,
                  count = (extent + tiles - 1) / tiles;
    berth_status status = BERTH_OK;
    if (extent % count)
        status = berth_schedule_peel(fn, &whole, loop, extent / count * count, &rest);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_stmt items[2] = {take_together(fn, whole, loop, count)};
    if (!rest.count || !items[0]) return items[0];
    items[1] = take_together(fn, rest, loop, extent % count);
    return items[1] ? berth_tfn_seq(fn, items, 2) : 0;
}
