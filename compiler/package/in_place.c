#include "compiler/package/in_place.h"

#include <string.h>

#include "compiler/schedule/linear.h"

enum { most_loops = 24, most_indices = BERTH_MAX_RANK };

// A load or store with the loops around it.
typedef struct site {
    berth_buf buf;
    bool is_store;
    uint32_t order;  // in the text; a store comes after the loads of its value
    berth_expr indices[most_indices];
    int index_count;
    berth_stmt loops[most_loops];  // outermost first
    int loop_count;
} site;

typedef struct walker {
    berth_tfn *fn;
    berth_arena *scratch;
    berth_ranges ranges;
    BERTH_VEC(site) sites;
    uint32_t *seen;  // by expression: statement number + 1 in which it was visited
    uint32_t statement;
    uint32_t order;
    berth_stmt loops[most_loops];
    int loop_count;
    bool too_deep;
} walker;

static bool is_shared(const berth_tfn *fn, berth_buf buf) {
    berth_buf_scope scope = fn->bufs.data[buf].scope;
    return scope == BERTH_SCOPE_PARAM || scope == BERTH_SCOPE_WORKSPACE;
}

static void add_site(walker *w, berth_buf buf, bool is_store, const berth_expr *indices,
                     int count) {
    if (!is_shared(w->fn, buf)) return;
    site s = {.buf = buf, .is_store = is_store, .order = w->order++, .index_count = count};
    if (count > most_indices) {
        w->too_deep = true;
        return;
    }
    memcpy(s.indices, indices, (size_t)count * sizeof(*indices));
    memcpy(s.loops, w->loops, sizeof(s.loops));
    s.loop_count = w->loop_count;
    berth_vec_push(w->scratch, &w->sites, s);
}

static void walk_expr(walker *w, berth_expr root) {
    BERTH_VEC(berth_expr) stack = {0};
    berth_vec_push(w->scratch, &stack, root);
    while (stack.count > 0) {
        berth_expr id = stack.data[--stack.count];
        if (!id || w->seen[id] == w->statement) continue;
        w->seen[id] = w->statement;
        const berth_expr_node *node = &w->fn->exprs.data[id];
        if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
            node->kind == BERTH_EXPR_VAR)
            continue;
        if (node->kind == BERTH_EXPR_LOAD) {
            const berth_expr *indices = berth_tfn_load_indices(w->fn, id);
            add_site(w, node->load.buf, false, indices, node->index_count);
            for (int i = 0; i < node->index_count; ++i)
                berth_vec_push(w->scratch, &stack, indices[i]);
            continue;
        }
        berth_vec_push(w->scratch, &stack, node->c);
        berth_vec_push(w->scratch, &stack, node->b);
        berth_vec_push(w->scratch, &stack, node->a);
    }
}

// Statements nest as deep as loops and conditions of one operator do.
static void walk_stmt(walker *w, berth_stmt id) {
    if (!id) return;
    const berth_stmt_node node = w->fn->stmts.data[id];
    w->statement++;
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i) walk_stmt(w, w->fn->lists.data[node.first + i]);
        return;
    case BERTH_STMT_FOR:
        walk_expr(w, node.value);
        if (w->loop_count == most_loops) {
            w->too_deep = true;
            return;
        }
        w->loops[w->loop_count++] = id;
        walk_stmt(w, node.body);
        w->loop_count--;
        return;
    case BERTH_STMT_IF:
        walk_expr(w, node.value);
        walk_stmt(w, node.body);
        walk_stmt(w, node.other);
        return;
    case BERTH_STMT_STORE:
        for (int i = 0; i < node.index_count; ++i)
            walk_expr(w, berth_tfn_store_indices(w->fn, id)[i]);
        walk_expr(w, node.value);
        add_site(w, node.buf, true, berth_tfn_store_indices(w->fn, id), node.index_count);
        return;
    case BERTH_STMT_LET: walk_expr(w, node.value); return;
    case BERTH_STMT_CALL: w->too_deep = true; return;  // which elements, and when, is not known
    case BERTH_STMT_ALLOC:
    case BERTH_STMT_BARRIER:
    case BERTH_STMT_NONE: return;
    }
}

// ---- which elements -----------------------------------------------------------------------------

// The part of an index that loop variables move, and the constant.
typedef struct digit {
    int64_t stride;
    int64_t extent;
} digit;

static int common_loops(const site *a, const site *b) {
    int count = 0;
    while (count < a->loop_count && count < b->loop_count && a->loops[count] == b->loops[count])
        count++;
    return count;
}

static int loop_of(const walker *w, const site *s, berth_var var) {
    for (int i = 0; i < s->loop_count; ++i)
        if (w->fn->stmts.data[s->loops[i]].var == var) return i;
    return -1;
}

static int64_t extent_of(const walker *w, berth_stmt loop) {
    int64_t extent = -1;
    if (!berth_tfn_const_value(w->fn, w->fn->stmts.data[loop].value, &extent)) return -1;
    return extent;
}

// Adds the loops that move one index; false when it is not a sum of loop variables, or when its
// digits overlap: values of the variables (and of a constant in [0, spread]) with equal sums.
static bool read_index(walker *w, const site *s, berth_expr index, int64_t spread, bool *used,
                       int64_t *out_constant) {
    berth_linear form = berth_linear_of(w->fn, &w->ranges, index);
    digit digits[BERTH_LINEAR_MAX_TERMS];
    int count = 0;
    *out_constant = form.constant;
    for (int i = 0; i < form.count; ++i) {
        const berth_expr_node *atom = &w->fn->exprs.data[form.terms[i].atom];
        if (atom->kind != BERTH_EXPR_VAR) return false;
        int loop = loop_of(w, s, atom->var);
        int64_t extent = loop < 0 ? -1 : extent_of(w, s->loops[loop]);
        if (extent < 0 || form.terms[i].coefficient < 1) return false;
        used[loop] = true;
        digit d = {form.terms[i].coefficient, extent};
        int at = count++;
        while (at > 0 && digits[at - 1].stride > d.stride) {
            digits[at] = digits[at - 1];
            at--;
        }
        digits[at] = d;
    }
    int64_t reach = spread;
    for (int i = 0; i < count; ++i) {
        if (digits[i].stride <= reach) return false;
        reach += (digits[i].extent - 1) * digits[i].stride;
    }
    return true;
}

static bool equal_indices(const walker *w, const site *a, const site *b, int dimension) {
    return berth_tfn_expr_equal(w->fn, a->indices[dimension], b->indices[dimension]);
}

// Whether the stores to one buffer never write an element twice: same loops around all, the same
// digits in every index, and constants that differ between them.
static bool stores_once(walker *w, const site *const *stores, uint32_t count) {
    enum { most_stores = 64 };
    int64_t constants[most_stores][most_indices] = {{0}};
    const site *first = stores[0];
    if (count > most_stores) return false;
    for (int pass = 0; pass < 2; ++pass) {  // the constants' spread is known in the second
        bool used[most_loops] = {false};
        for (uint32_t i = 0; i < count; ++i) {
            const site *s = stores[i];
            if (common_loops(first, s) != first->loop_count || s->loop_count != first->loop_count)
                return false;
            for (int d = 0; d < s->index_count; ++d) {
                int64_t low = constants[0][d];
                int64_t high = low;
                for (uint32_t k = 1; pass == 1 && k < count; ++k) {
                    if (constants[k][d] < low) low = constants[k][d];
                    if (constants[k][d] > high) high = constants[k][d];
                }
                int64_t spread = pass == 1 ? high - low : 0;
                int64_t constant = 0;
                if (!read_index(w, s, s->indices[d], spread, used, &constant)) return false;
                constants[i][d] = constant;
                // Equal digits: the difference to the first store's index is the constant.
                berth_expr difference =
                    berth_tfn_binary(w->fn, BERTH_BINARY_SUB, s->indices[d], first->indices[d]);
                if (berth_linear_of(w->fn, &w->ranges, difference).count > 0) return false;
            }
        }
        for (int i = 0; i < first->loop_count; ++i)
            if (!used[i] && extent_of(w, first->loops[i]) != 1) return false;
    }
    for (uint32_t i = 0; i < count; ++i)
        for (uint32_t k = 0; k < i; ++k)
            if (memcmp(constants[i], constants[k],
                       (size_t)first->index_count * sizeof(constants[i][0])) == 0)
                return false;
    return true;
}

// The load comes before the loops of the store, in an iteration of the loops around both that has
// its own elements: indices that are equal in both tell the iterations apart.
static bool reads_ahead(walker *w, const site *load, const site *store) {
    if (load->order > store->order) return false;
    int common = common_loops(load, store);
    bool used[most_loops] = {false};
    for (int d = 0; d < load->index_count; ++d) {
        int64_t constant = 0;
        bool inner[most_loops] = {false};
        if (!equal_indices(w, load, store, d) ||
            !read_index(w, load, load->indices[d], 0, inner, &constant))
            continue;
        bool outside = true;
        for (int i = common; i < load->loop_count; ++i) outside &= !inner[i];
        for (int i = 0; i < common && outside; ++i) used[i] |= inner[i];
    }
    for (int i = 0; i < common; ++i)
        if (!used[i] && extent_of(w, load->loops[i]) != 1) return false;
    return true;
}

static bool same_place(const walker *w, const site *load, const site *store) {
    for (int d = 0; d < load->index_count; ++d)
        if (!equal_indices(w, load, store, d)) return false;
    return load->order < store->order;
}

// ---- pairs --------------------------------------------------------------------------------------

typedef struct pair_list {
    BERTH_VEC(berth_in_place) items;
} pair_list;

static bool same_geometry(const berth_tfn *fn, berth_buf a, berth_buf b) {
    const berth_buf_info *x = &fn->bufs.data[a];
    const berth_buf_info *y = &fn->bufs.data[b];
    return x->dtype == y->dtype && x->lanes == y->lanes && x->rank == y->rank &&
           x->layout == y->layout && x->memory_scope == y->memory_scope &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(x->dims[0])) == 0;
}

static bool may_share(walker *w, berth_buf from, const site *const *stores, uint32_t count) {
    for (uint32_t i = 0; i < w->sites.count; ++i) {
        const site load = w->sites.data[i];
        if (load.buf != from) continue;
        bool same = false;
        bool ahead = true;
        for (uint32_t k = 0; k < count; ++k) {
            same |= same_place(w, &load, stores[k]);
            ahead = ahead && reads_ahead(w, &load, stores[k]);
        }
        if (load.is_store || (!same && !ahead)) return false;
    }
    return true;
}

// Results are stored and not loaded in the nest; operands the other way round.
static void find_in_nest(walker *w, uint32_t nest, const uint32_t *writers, pair_list *pairs) {
    berth_tfn *fn = w->fn;
    const site **stores = berth_arena_new_array(w->scratch, const site *, w->sites.count);
    bool *loaded = berth_arena_new_array(w->scratch, bool, fn->bufs.count);
    for (uint32_t i = 0; i < w->sites.count; ++i)
        if (!w->sites.data[i].is_store) loaded[w->sites.data[i].buf] = true;
    for (berth_buf to = 0; to < fn->bufs.count; ++to) {
        const berth_buf_info *info = &fn->bufs.data[to];
        uint32_t count = 0;
        for (uint32_t i = 0; i < w->sites.count; ++i)
            if (w->sites.data[i].is_store && w->sites.data[i].buf == to)
                stores[count++] = &w->sites.data[i];
        bool result = info->scope == BERTH_SCOPE_WORKSPACE || info->role == BERTH_ROLE_OUT;
        if (count == 0 || loaded[to] || !result || writers[to] != 1 ||
            !stores_once(w, stores, count))
            continue;
        for (berth_buf from = 0; from < fn->bufs.count; ++from)
            if (loaded[from] && from != to && same_geometry(fn, from, to) &&
                may_share(w, from, stores, count)) {
                fn->bufs.data[from].may_alias = fn->bufs.data[to].may_alias = true;
                berth_vec_push(fn->module->arena, &pairs->items, (berth_in_place){nest, from, to});
            }
    }
}

static void collect_sites(walker *w, berth_stmt nest) {
    w->sites.count = 0;
    w->order = w->statement = 0;
    w->seen = berth_arena_new_array(w->scratch, uint32_t, w->fn->exprs.count + 1);
    walk_stmt(w, nest);
}

uint32_t berth_in_place_find(berth_tfn *fn, const berth_in_place **out_pairs) {
    pair_list pairs = {0};
    const berth_stmt_node body = fn->stmts.data[fn->body];
    bool sequence = fn->body && body.kind == BERTH_STMT_SEQ;
    uint32_t nests = !fn->body ? 0 : sequence ? body.count : 1;
    walker w = {.fn = fn, .scratch = berth_arena_create_child(fn->module->arena)};
    w.ranges = berth_ranges_collect(fn);
    uint32_t *writers = berth_arena_new_array(w.scratch, uint32_t, fn->bufs.count);
    for (int pass = 0; pass < 2; ++pass)
        for (uint32_t n = 0; n < nests; ++n) {
            collect_sites(&w, sequence ? fn->lists.data[body.first + n] : fn->body);
            bool *writes = berth_arena_new_array(w.scratch, bool, fn->bufs.count);
            for (uint32_t i = 0; i < w.sites.count; ++i)
                if (w.sites.data[i].is_store) writes[w.sites.data[i].buf] = true;
            for (uint32_t b = 0; pass == 0 && b < fn->bufs.count; ++b) writers[b] += writes[b];
            if (pass == 1 && !w.too_deep) find_in_nest(&w, n, writers, &pairs);
        }
    berth_arena_destroy(w.scratch);
    *out_pairs = pairs.items.data;
    return pairs.items.count;
}
