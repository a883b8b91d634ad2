#include "compiler/passes/inline_tensor.h"

#include <string.h>

#include "ir/tensor/call.h"
#include "ir/tensor/copies.h"

typedef struct inliner {
    berth_module *module;
    bool *done;  // per function: it has no calls of tensor functions any more
} inliner;

typedef BERTH_VEC(berth_stmt) stmt_list;

// One callee on its way into a caller.
typedef struct copier {
    berth_tfn *to;
    const berth_tfn *from;
    const berth_tfn_region *regions;  // of the call, per parameter
    const berth_tfn_ring *rings;      // (optional) per parameter
    bool inside;                      // a loop of the caller
    berth_buf *bufs;                  // per buffer of the callee that is no parameter
    berth_expr *vars;                 // per variable of the callee: a reference to the caller's
    berth_expr *exprs;                // per expression of the callee; 0 = not copied so far
} copier;

static berth_expr copy_expr(copier *c, berth_expr id);
static berth_stmt copy_stmt(copier *c, berth_stmt id);

// ---- places -------------------------------------------------------------------------------------

static berth_expr moved(berth_tfn *fn, berth_expr start, berth_expr index) {
    const berth_expr_node node = fn->exprs.data[index];
    if (node.kind != BERTH_EXPR_RAMP) return berth_tfn_binary(fn, BERTH_BINARY_ADD, start, index);
    return berth_tfn_ramp(fn, moved(fn, start, node.a), node.lanes);
}

// Where an access of the callee is in the caller's buffer. Returns the number of indices.
static int place(copier *c, berth_buf buf, const berth_expr *given, int count, berth_buf *out_buf,
                 berth_expr *out) {
    if (buf >= c->from->param_count) {
        *out_buf = c->bufs[buf];
        for (int i = 0; i < count; ++i) out[i] = copy_expr(c, given[i]);
        return count;
    }
    const berth_tfn_region *region = &c->regions[buf];
    int rank = c->to->bufs.data[region->buf].rank;
    *out_buf = region->buf;
    for (int d = 0, k = 0; d < rank; ++d) {
        bool point = region->extents[d] == BERTH_REGION_POINT;
        out[d] =
            point ? region->starts[d] : moved(c->to, region->starts[d], copy_expr(c, given[k++]));
    }
    const berth_tfn_ring *ring = c->rings ? &c->rings[buf] : NULL;
    if (ring && ring->extent) {
        out[ring->dim] = moved(c->to, berth_tfn_index(c->to, ring->shift), out[ring->dim]);
        out[ring->dim] = berth_tfn_binary(c->to, BERTH_BINARY_MOD, out[ring->dim],
                                          berth_tfn_index(c->to, ring->extent));
    }
    return rank;
}

// ---- expressions --------------------------------------------------------------------------------

static berth_expr copy_node(copier *c, berth_expr_node node) {
    if (node.kind != BERTH_EXPR_INT && node.kind != BERTH_EXPR_FLOAT) {
        node.a = copy_expr(c, node.a);
        node.b = copy_expr(c, node.b);
        node.c = copy_expr(c, node.c);
    }
    return berth_tfn_add_expr(c->to, node);
}

// Depth is bounded (BERTH_TFN_MAX_DEPTH).
static berth_expr copy_expr(copier *c, berth_expr id) {
    if (!id || c->exprs[id]) return c->exprs[id];
    const berth_expr_node node = c->from->exprs.data[id];
    if (node.kind == BERTH_EXPR_VAR) return c->exprs[id] = c->vars[node.var];
    if (node.kind != BERTH_EXPR_LOAD) return c->exprs[id] = copy_node(c, node);
    berth_expr indices[BERTH_MAX_RANK];
    berth_buf buf = 0;
    int count = place(c, node.load.buf, berth_tfn_load_indices(c->from, id), node.index_count, &buf,
                      indices);
    return c->exprs[id] = berth_tfn_load(c->to, buf, indices, count);
}

// ---- statements ---------------------------------------------------------------------------------

// Two loops may have one variable, one after the other: so have their copies.
static berth_var copy_var(copier *c, berth_var var) {
    berth_var_info info = c->from->vars.data[var];
    if (c->vars[var]) return c->to->exprs.data[c->vars[var]].var;
    berth_vec_push(c->to->module->arena, &c->to->vars, info);
    berth_var copy = c->to->vars.count - 1;
    c->vars[var] = berth_tfn_var_ref(c->to, copy);
    return copy;
}

static berth_buf copy_buf(copier *c, berth_buf buf) {
    berth_buf_info info = c->from->bufs.data[buf];
    if (c->bufs[buf]) return c->bufs[buf];
    if (c->inside && info.scope == BERTH_SCOPE_WORKSPACE) info.scope = BERTH_SCOPE_PRIVATE;
    return c->bufs[buf] = berth_tfn_add_buf(c->to, info);
}

static berth_stmt copy_call(copier *c, const berth_stmt_node *node) {
    berth_arena *arena = c->to->module->arena;
    berth_tfn_region *regions = berth_arena_new_array(arena, berth_tfn_region, node->count + 1);
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *inner = &c->from->regions.data[node->first + i];
        const berth_tfn_region *outer =
            inner->buf < c->from->param_count ? &c->regions[inner->buf] : NULL;
        int rank = c->from->bufs.data[inner->buf].rank;
        (void)place(c, inner->buf, inner->starts, rank, &regions[i].buf, regions[i].starts);
        if (!outer) memcpy(regions[i].extents, inner->extents, sizeof(inner->extents));
        for (int d = 0, k = 0; outer && d < c->to->bufs.data[outer->buf].rank; ++d)
            regions[i].extents[d] =
                outer->extents[d] == BERTH_REGION_POINT ? BERTH_REGION_POINT : inner->extents[k++];
    }
    return berth_tfn_call(c->to, node->callee, regions, node->count);
}

static berth_stmt copy_store(copier *c, berth_stmt id, const berth_stmt_node *node) {
    berth_expr indices[BERTH_MAX_RANK];
    berth_buf buf = 0;
    int count =
        place(c, node->buf, berth_tfn_store_indices(c->from, id), node->index_count, &buf, indices);
    return berth_tfn_store(c->to, buf, indices, count, copy_expr(c, node->value));
}

static berth_stmt copy_seq(copier *c, berth_stmt id, uint32_t count) {
    berth_stmt *items = berth_arena_new_array(c->to->module->arena, berth_stmt, count + 1);
    for (uint32_t i = 0; i < count; ++i)
        items[i] = copy_stmt(c, berth_tfn_seq_items(c->from, id)[i]);
    return berth_tfn_seq(c->to, items, count);
}

static berth_stmt copy_stmt(copier *c, berth_stmt id) {
    const berth_stmt_node node = c->from->stmts.data[id];
    berth_expr value = 0;
    berth_stmt body = 0;
    berth_var var = 0;
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_NONE: return 0;
    case BERTH_STMT_SEQ: return copy_seq(c, id, node.count);
    case BERTH_STMT_FOR:
        value = copy_expr(c, node.value);
        var = copy_var(c, node.var);
        body = copy_stmt(c, node.body);
        return berth_tfn_for(c->to, var, value, (berth_loop_kind)node.loop_kind, body);
    case BERTH_STMT_STORE: return copy_store(c, id, &node);
    case BERTH_STMT_LET:
        value = copy_expr(c, node.value);
        return berth_tfn_let(c->to, copy_var(c, node.var), value);
    case BERTH_STMT_IF:
        value = copy_expr(c, node.value);
        body = copy_stmt(c, node.body);
        return berth_tfn_if(c->to, value, body, copy_stmt(c, node.other));
    case BERTH_STMT_ALLOC: return berth_tfn_alloc(c->to, copy_buf(c, node.buf));
    case BERTH_STMT_BARRIER:
        if (berth_tfn_pending_of(&node) < 0) return berth_tfn_barrier(c->to);
        return berth_tfn_barrier_pending(c->to, berth_tfn_pending_of(&node),
                                         berth_tfn_products_of(&node));
    case BERTH_STMT_CALL: return copy_call(c, &node);
    }
    return 0;
}

static copier make_copier(berth_tfn *to, const berth_tfn *from) {
    berth_arena *arena = to->module->arena;
    return (copier){.to = to,
                    .from = from,
                    .bufs = berth_arena_new_array(arena, berth_buf, from->bufs.count + 1),
                    .vars = berth_arena_new_array(arena, berth_expr, from->vars.count + 1),
                    .exprs = berth_arena_new_array(arena, berth_expr, from->exprs.count + 1)};
}

berth_stmt berth_tfn_graft_stmt(const berth_tfn_graft *graft, berth_stmt stmt) {
    copier c = make_copier(graft->to, graft->from);
    c.regions = graft->regions;
    c.rings = graft->rings;
    c.inside = true;
    c.vars[graft->var] = graft->value;
    return copy_stmt(&c, stmt);
}

// ---- one call -----------------------------------------------------------------------------------

// What a start is must not change while the callee runs.
static bool reads_memory(const berth_tfn *fn, berth_expr id) {
    if (!id) return false;
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_LOAD) return true;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    return reads_memory(fn, node->a) || reads_memory(fn, node->b) || reads_memory(fn, node->c);
}

static bool has_group_loops(const berth_tfn *fn) {
    for (uint32_t i = 0; i < fn->stmts.count; ++i) {
        const berth_stmt_node *node = &fn->stmts.data[i];
        if (node->kind == BERTH_STMT_BARRIER ||
            (node->kind == BERTH_STMT_FOR && node->loop_kind >= BERTH_LOOP_GROUP_X))
            return true;
    }
    return false;
}

static const char *name_of(const berth_module *module, berth_func_id function) {
    return berth_module_str(module, berth_module_function(module, function)->name);
}

// The regions, with what they read of memory in variables that are set before the call.
static const berth_tfn_region *fix_regions(berth_tfn *fn, const berth_stmt_node *call,
                                           stmt_list *items) {
    berth_arena *arena = fn->module->arena;
    berth_tfn_region *regions = berth_arena_new_array(arena, berth_tfn_region, call->count + 1);
    for (uint32_t i = 0; i < call->count; ++i) {
        regions[i] = fn->regions.data[call->first + i];
        for (int d = 0; d < fn->bufs.data[regions[i].buf].rank; ++d) {
            if (!reads_memory(fn, regions[i].starts[d])) continue;
            berth_var var = berth_tfn_var(fn, "start");
            berth_vec_push(arena, items, berth_tfn_let(fn, var, regions[i].starts[d]));
            regions[i].starts[d] = berth_tfn_var_ref(fn, var);
        }
    }
    return regions;
}

static berth_status inline_one(const inliner *in, berth_func_id caller, const berth_stmt_node *call,
                               bool inside, stmt_list *items) {
    berth_tfn *fn = berth_tfn_get(in->module, caller);
    const berth_tfn *callee = berth_tfn_get(in->module, call->callee);
    berth_arena *arena = in->module->arena;
    if (inside && has_group_loops(callee))
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "function @%s: a call of @%s inside a loop: its loops over "
            "work-groups and work-items make it a kernel, to be called outside "
            "of loops",
            name_of(in->module, caller), name_of(in->module, call->callee));
    if (fn->stmts.count + callee->stmts.count > BERTH_INLINE_MAX_STATEMENTS)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "function @%s: with what it calls it has more than %d statements",
                                 name_of(in->module, caller), BERTH_INLINE_MAX_STATEMENTS);
    copier c = make_copier(fn, callee);
    c.inside = inside;
    c.regions = fix_regions(fn, call, items);
    for (uint32_t b = callee->param_count; b < callee->bufs.count; ++b) {
        if (callee->bufs.data[b].scope != BERTH_SCOPE_WORKSPACE) continue;
        berth_buf copy = copy_buf(&c, b);
        if (inside) berth_vec_push(arena, items, berth_tfn_alloc(fn, copy));
    }
    const berth_stmt_node body = callee->stmts.data[callee->body];
    if (body.kind != BERTH_STMT_SEQ) {
        if (callee->body) berth_vec_push(arena, items, copy_stmt(&c, callee->body));
        return BERTH_OK;
    }
    for (uint32_t i = 0; i < body.count; ++i)
        berth_vec_push(arena, items, copy_stmt(&c, berth_tfn_seq_items(callee, callee->body)[i]));
    return BERTH_OK;
}

// ---- a function ---------------------------------------------------------------------------------

static bool calls_tensor_function(const berth_tfn *fn) {
    for (uint32_t i = 0; i < fn->stmts.count; ++i)
        if (fn->stmts.data[i].kind == BERTH_STMT_CALL &&
            berth_tfn_get(fn->module, fn->stmts.data[i].callee))
            return true;
    return false;
}

static berth_status expand(const inliner *in, berth_func_id function, berth_stmt id, bool inside,
                           berth_stmt *out);

// A call at the top whose places are read from memory is one kernel, which begins with reading them.
static bool is_kernel_of_its_own(const berth_tfn *fn, const berth_stmt_node *call) {
    for (uint32_t i = 0; i < call->count; ++i) {
        const berth_tfn_region *region = &fn->regions.data[call->first + i];
        for (int d = 0; d < fn->bufs.data[region->buf].rank; ++d)
            if (reads_memory(fn, region->starts[d])) return true;
    }
    return false;
}

static berth_status expand_call(const inliner *in, berth_func_id function,
                                const berth_stmt_node *call, bool inside, stmt_list *items) {
    berth_tfn *fn = berth_tfn_get(in->module, function);
    berth_arena *arena = in->module->arena;
    if (inside || !is_kernel_of_its_own(fn, call))
        return inline_one(in, function, call, inside, items);
    stmt_list parts = {0};
    BERTH_TRY(inline_one(in, function, call, true, &parts));
    berth_stmt body = berth_tfn_seq(fn, parts.data, parts.count);
    berth_vec_push(arena, items,
                   berth_tfn_for(fn, berth_tfn_var(fn, "once"), berth_tfn_index(fn, 1),
                                 BERTH_LOOP_PARALLEL, body));
    return BERTH_OK;
}

static berth_status expand_item(const inliner *in, berth_func_id function, berth_stmt id,
                                bool inside, stmt_list *items) {
    berth_tfn *fn = berth_tfn_get(in->module, function);
    const berth_stmt_node node = fn->stmts.data[id];
    berth_stmt made = id;
    if (node.kind == BERTH_STMT_CALL && berth_tfn_get(in->module, node.callee)) {
        fn->stmts.data[id] = (berth_stmt_node){.kind = BERTH_STMT_SEQ};
        return expand_call(in, function, &node, inside, items);
    }
    BERTH_TRY(expand(in, function, id, inside, &made));
    if (made) berth_vec_push(in->module->arena, items, made);
    return BERTH_OK;
}

// Statements nest as deep as the verifier lets them.
static berth_status expand(const inliner *in, berth_func_id function, berth_stmt id, bool inside,
                           berth_stmt *out) {
    berth_tfn *fn = berth_tfn_get(in->module, function);
    const berth_stmt_node node = fn->stmts.data[id];
    stmt_list items = {0};
    *out = id;
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        berth_stmt body = 0, other = 0;
        BERTH_TRY(expand(in, function, node.body, true, &body));
        BERTH_TRY(expand(in, function, node.other, true, &other));
        fn->stmts.data[id].body = body;
        fn->stmts.data[id].other = other;
        return BERTH_OK;
    }
    bool call = node.kind == BERTH_STMT_CALL && berth_tfn_get(in->module, node.callee);
    if (node.kind != BERTH_STMT_SEQ && !call) return BERTH_OK;
    for (uint32_t i = 0; node.kind == BERTH_STMT_SEQ && i < node.count; ++i)
        BERTH_TRY(expand_item(in, function, berth_tfn_seq_items(fn, id)[i], inside, &items));
    if (call) BERTH_TRY(expand_item(in, function, id, inside, &items));
    *out = berth_tfn_seq(fn, items.data, items.count);
    return BERTH_OK;
}

// Callees first; that they nest no deeper than BERTH_TFN_MAX_CALL_DEPTH the verifier has checked.
static berth_status inline_function(const inliner *in, berth_func_id function) {
    berth_tfn *fn = berth_tfn_get(in->module, function);
    if (!fn || in->done[function]) return BERTH_OK;
    in->done[function] = true;
    if (!calls_tensor_function(fn)) return BERTH_OK;
    for (uint32_t i = 0; i < fn->stmts.count; ++i)
        if (fn->stmts.data[i].kind == BERTH_STMT_CALL)
            BERTH_TRY(inline_function(in, fn->stmts.data[i].callee));
    berth_stmt body = 0;
    BERTH_TRY(expand(in, function, fn->body, false, &body));
    fn->body = body;
    (void)berth_tfn_compact(fn);
    return BERTH_OK;
}

berth_status berth_pass_inline_tensor_calls(berth_module *module) {
    inliner in = {.module = module,
                  .done = berth_arena_new_array(module->arena, bool, module->functions.count + 1)};
    BERTH_TRY(berth_tfn_check_call_nesting(module));
    for (berth_func_id f = 0; f < module->functions.count; ++f)
        if (!module->functions.data[f].removed) BERTH_TRY(inline_function(&in, f));
    return BERTH_OK;
}
