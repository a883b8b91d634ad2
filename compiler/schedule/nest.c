#include "compiler/schedule/nest.h"

#include <string.h>

static berth_status refuse(const char *what) {
    return berth_status_make(BERTH_FAILED_PRECONDITION, "schedule: %s", what);
}

static berth_stmt unwrap(const berth_tfn *fn, berth_stmt id) {
    while (id && fn->stmts.data[id].kind == BERTH_STMT_SEQ && fn->stmts.data[id].count == 1)
        id = fn->lists.data[fn->stmts.data[id].first];
    return id;
}

bool berth_nest_parse(const berth_tfn *fn, berth_stmt stmt, berth_nest *out_nest) {
    memset(out_nest, 0, sizeof(*out_nest));
    berth_stmt at = unwrap(fn, stmt);
    while (at && out_nest->count < BERTH_NEST_MAX_LOOPS - 4) {
        const berth_stmt_node *node = &fn->stmts.data[at];
        int64_t extent = 0;
        if (node->kind != BERTH_STMT_FOR || !berth_tfn_const_value(fn, node->value, &extent)) break;
        out_nest->loops[out_nest->count++] =
            (berth_nest_loop){node->var, extent, (berth_loop_kind)node->loop_kind};
        at = unwrap(fn, node->body);
    }
    out_nest->body = at;
    return out_nest->count > 0;
}

berth_stmt berth_nest_emit(berth_tfn *fn, const berth_nest *nest) {
    berth_stmt stmt = nest->body;
    for (int i = nest->count - 1; i >= 0; --i) {
        const berth_nest_loop *loop = &nest->loops[i];
        stmt = berth_tfn_for(fn, loop->var, berth_tfn_index(fn, loop->extent), loop->kind, stmt);
    }
    return stmt;
}

bool berth_reduction_parse(const berth_tfn *fn, berth_stmt body, berth_reduction *out) {
    memset(out, 0, sizeof(*out));
    const berth_stmt_node *seq = &fn->stmts.data[body];
    if (!body || seq->kind != BERTH_STMT_SEQ || seq->count < 4) return false;
    const uint32_t *items = &fn->lists.data[seq->first];
    const berth_stmt_node *alloc = &fn->stmts.data[items[0]];
    const berth_stmt_node *init = &fn->stmts.data[items[1]];
    if (alloc->kind != BERTH_STMT_ALLOC || init->kind != BERTH_STMT_STORE ||
        init->buf != alloc->buf)
        return false;
    const berth_buf_info *info = &fn->bufs.data[alloc->buf];
    if (info->rank != 0 || info->scope != BERTH_SCOPE_REGISTER || info->lanes > 1) return false;
    if (!berth_nest_parse(fn, items[2], &out->loops)) return false;
    const berth_stmt_node *update = &fn->stmts.data[out->loops.body];
    if (update->kind != BERTH_STMT_STORE || update->buf != alloc->buf) return false;
    out->acc = alloc->buf;
    out->init = init->value;
    out->update = update->value;
    for (uint32_t i = 3; i < seq->count; ++i) {
        const berth_stmt_node *store = &fn->stmts.data[items[i]];
        bool plain = store->kind == BERTH_STMT_STORE &&
                     fn->bufs.data[store->buf].scope != BERTH_SCOPE_REGISTER;
        if (!plain || out->epilogue_count == 8) return false;
        out->epilogue[out->epilogue_count++] = items[i];
    }
    return true;
}

berth_stmt berth_reduction_emit(berth_tfn *fn, const berth_reduction *r) {
    berth_stmt items[11];
    uint32_t count = 0;
    items[count++] = berth_tfn_alloc(fn, r->acc);
    items[count++] = berth_tfn_store(fn, r->acc, NULL, 0, r->init);
    items[count++] = berth_nest_emit(fn, &r->loops);
    for (int i = 0; i < r->epilogue_count; ++i) items[count++] = r->epilogue[i];
    return berth_tfn_seq(fn, items, count);
}

berth_ranges berth_ranges_with(const berth_tfn *fn, const berth_ranges *ranges,
                               const berth_nest *nest) {
    berth_range *of_var = berth_arena_new_array(fn->module->arena, berth_range, fn->vars.count + 1);
    for (uint32_t v = 0; v < fn->vars.count; ++v)
        of_var[v] = v < ranges->count ? ranges->of_var[v] : BERTH_RANGE_UNKNOWN;
    for (int i = 0; i < nest->count; ++i) {
        int64_t extent = nest->loops[i].extent;
        of_var[nest->loops[i].var] = (berth_range){0, extent > 0 ? extent - 1 : 0};
    }
    return (berth_ranges){of_var, fn->vars.count};
}

berth_expr berth_replace_var(berth_tfn *fn, berth_expr id, berth_var var, berth_expr with) {
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, var + 1);
    map[var] = with;
    return berth_tfn_substitute(fn, id, map, var + 1);
}

berth_stmt berth_replace_var_stmt(berth_tfn *fn, berth_stmt id, berth_var var, berth_expr with) {
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, var + 1);
    map[var] = with;
    return berth_tfn_substitute_stmt(fn, id, map, var + 1);
}

static berth_var derived_var(berth_tfn *fn, berth_var from, const char *suffix) {
    const berth_var_info old = fn->vars.data[from];
    const char *name = berth_module_str(fn->module, old.name);
    berth_var made = berth_tfn_var(fn, berth_arena_printf(fn->module->arena, "%s%s", name, suffix));
    fn->vars.data[made].keeps_extent = old.keeps_extent;
    return made;
}

static bool in_range(const berth_nest *nest, int loop) {
    return loop >= 0 && loop < nest->count;
}

void berth_nest_shift(berth_tfn *fn, berth_nest *nest, int loop, int64_t first) {
    berth_nest_loop *moved = &nest->loops[loop];
    berth_var var = derived_var(fn, moved->var, "_t");
    berth_expr at = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_var_ref(fn, var),
                                     berth_tfn_index(fn, first));
    nest->body = berth_replace_var_stmt(fn, nest->body, moved->var, at);
    moved->var = var;
}

berth_status berth_schedule_split(berth_tfn *fn, berth_nest *nest, int loop, int64_t factor) {
    if (!in_range(nest, loop)) return refuse("no such loop to split");
    berth_nest_loop old = nest->loops[loop];
    if (factor < 1 || old.extent % factor != 0)
        return refuse("the factor of a split must divide the extent");
    if (nest->count == BERTH_NEST_MAX_LOOPS) return refuse("too many loops");
    berth_var outer = derived_var(fn, old.var, "_o");
    berth_var inner = derived_var(fn, old.var, "_i");
    berth_expr scaled = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, outer),
                                         berth_tfn_index(fn, factor));
    berth_expr whole = berth_tfn_binary(fn, BERTH_BINARY_ADD, scaled, berth_tfn_var_ref(fn, inner));
    nest->body = berth_replace_var_stmt(fn, nest->body, old.var, whole);
    memmove(&nest->loops[loop + 1], &nest->loops[loop], (size_t)(nest->count - loop) * sizeof(old));
    nest->count++;
    nest->loops[loop] = (berth_nest_loop){outer, old.extent / factor, old.kind};
    nest->loops[loop + 1] = (berth_nest_loop){inner, factor, old.kind};
    return BERTH_OK;
}

// Iterations of both loops together, for each size. NULL: it is not known for one of them.
static const int64_t *products(const berth_tfn *fn, berth_var a, berth_var b) {
    const int64_t *of_a = fn->vars.data[a].extents, *of_b = fn->vars.data[b].extents;
    if (!of_a || !of_b) return NULL;
    int64_t *made = berth_arena_new_array(fn->module->arena, int64_t, fn->size_count);
    for (uint32_t i = 0; i < fn->size_count; ++i)
        if (__builtin_mul_overflow(of_a[i], of_b[i], &made[i])) return NULL;
    return made;
}

berth_status berth_schedule_fuse(berth_tfn *fn, berth_nest *nest, int loop) {
    if (!in_range(nest, loop) || !in_range(nest, loop + 1)) return refuse("no such loops to fuse");
    berth_nest_loop a = nest->loops[loop];
    berth_nest_loop b = nest->loops[loop + 1];
    if (a.kind != b.kind) return refuse("fused loops must be of one kind");
    if (b.extent <= 0 || a.extent > INT64_MAX / b.extent)
        return refuse("fused loops have no iterations, or too many");
    berth_var both = derived_var(fn, a.var, "_f");
    fn->vars.data[both].keeps_extent &= fn->vars.data[b.var].keeps_extent;
    fn->vars.data[both].extents = products(fn, a.var, b.var);
    berth_expr at = berth_tfn_var_ref(fn, both);
    berth_expr extent = berth_tfn_index(fn, b.extent);
    nest->body = berth_replace_var_stmt(fn, nest->body, a.var,
                                        berth_tfn_binary(fn, BERTH_BINARY_DIV, at, extent));
    nest->body = berth_replace_var_stmt(fn, nest->body, b.var,
                                        berth_tfn_binary(fn, BERTH_BINARY_MOD, at, extent));
    nest->loops[loop] = (berth_nest_loop){both, a.extent * b.extent, a.kind};
    memmove(&nest->loops[loop + 1], &nest->loops[loop + 2],
            (size_t)(nest->count - loop - 2) * sizeof(a));
    nest->count--;
    return BERTH_OK;
}

// ---- independence -------------------------------------------------------------------------------

typedef struct access_walk {
    const berth_tfn *fn;
    bool *loaded;  // by buffer
    bool *stored;
    bool *allocated;
    bool *seen;  // by expression
} access_walk;

static void walk_loads(access_walk *w, berth_expr id) {
    if (!id || w->seen[id]) return;
    w->seen[id] = true;
    const berth_expr_node *node = &w->fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return;
    if (node->kind == BERTH_EXPR_LOAD) {
        w->loaded[node->load.buf] = true;
        for (int i = 0; i < node->index_count; ++i)
            walk_loads(w, berth_tfn_load_indices(w->fn, id)[i]);
        return;
    }
    walk_loads(w, node->a);
    walk_loads(w, node->b);
    walk_loads(w, node->c);
}

static void walk_accesses(access_walk *w, berth_stmt id) {
    if (!id) return;
    const berth_stmt_node *node = &w->fn->stmts.data[id];
    if (node->kind == BERTH_STMT_SEQ) {
        for (uint32_t i = 0; i < node->count; ++i)
            walk_accesses(w, w->fn->lists.data[node->first + i]);
        return;
    }
    if (node->kind == BERTH_STMT_ALLOC) w->allocated[node->buf] = true;
    if (node->kind == BERTH_STMT_STORE) {
        w->stored[node->buf] = true;
        for (int i = 0; i < node->index_count; ++i)
            walk_loads(w, berth_tfn_store_indices(w->fn, id)[i]);
    }
    for (uint32_t i = 0; node->kind == BERTH_STMT_CALL && i < node->count; ++i) {
        const berth_tfn_region *region = &w->fn->regions.data[node->first + i];
        w->loaded[region->buf] = w->stored[region->buf] = true;
        for (int d = 0; d < w->fn->bufs.data[region->buf].rank; ++d)
            walk_loads(w, region->starts[d]);
    }
    walk_loads(w, node->value);
    walk_accesses(w, node->body);
    walk_accesses(w, node->other);
}

bool berth_nest_is_independent(const berth_tfn *fn, const berth_nest *nest) {
    berth_arena *arena = fn->module->arena;
    access_walk w = {.fn = fn,
                     .loaded = berth_arena_new_array(arena, bool, fn->bufs.count + 1),
                     .stored = berth_arena_new_array(arena, bool, fn->bufs.count + 1),
                     .allocated = berth_arena_new_array(arena, bool, fn->bufs.count + 1),
                     .seen = berth_arena_new_array(arena, bool, fn->exprs.count + 1)};
    walk_accesses(&w, nest->body);
    for (uint32_t b = 0; b < fn->bufs.count; ++b)
        if (w.stored[b] && w.loaded[b] && !w.allocated[b]) return false;
    return true;
}

berth_status berth_schedule_reorder(berth_tfn *fn, berth_nest *nest, int from, int to) {
    if (!in_range(nest, from) || !in_range(nest, to)) return refuse("no such loop to move");
    if (from == to) return BERTH_OK;
    if (nest->loops[from].kind != BERTH_LOOP_PARALLEL && !berth_nest_is_independent(fn, nest))
        return refuse("iterations that depend on each other cannot be reordered");
    berth_nest_loop moved = nest->loops[from];
    int step = from < to ? 1 : -1;
    for (int i = from; i != to; i += step) nest->loops[i] = nest->loops[i + step];
    nest->loops[to] = moved;
    return BERTH_OK;
}

berth_status berth_schedule_parallel(berth_tfn *fn, berth_nest *nest, int loop) {
    if (!in_range(nest, loop)) return refuse("no such loop to run in parallel");
    if (!berth_nest_is_independent(fn, nest)) return refuse("iterations depend on each other");
    nest->loops[loop].kind = BERTH_LOOP_PARALLEL;
    return BERTH_OK;
}

berth_status berth_schedule_peel(berth_tfn *fn, berth_nest *nest, int loop, int64_t at,
                                 berth_nest *out_rest) {
    if (!in_range(nest, loop)) return refuse("no such loop to peel");
    berth_nest_loop old = nest->loops[loop];
    if (at < 0 || at > old.extent) return refuse("a loop is peeled within its extent");
    *out_rest = *nest;
    nest->loops[loop].extent = at;
    out_rest->loops[loop].extent = old.extent - at;
    berth_nest_shift(fn, out_rest, loop, at);
    return BERTH_OK;
}

berth_status berth_schedule_unroll(berth_tfn *fn, berth_nest *nest, int loop) {
    if (loop != nest->count - 1 || loop < 0) return refuse("only the innermost loop is unrolled");
    berth_nest_loop old = nest->loops[loop];
    if (old.extent > 64) return refuse("a loop of more than 64 iterations is not unrolled");
    berth_stmt copies[64];
    for (int64_t i = 0; i < old.extent; ++i)
        copies[i] = berth_replace_var_stmt(fn, nest->body, old.var, berth_tfn_index(fn, i));
    nest->body = berth_tfn_seq(fn, copies, (uint32_t)old.extent);
    nest->count--;
    return BERTH_OK;
}

// ---- rewriting loads ----------------------------------------------------------------------------

typedef struct load_rewriter {
    berth_tfn *fn;
    berth_replace_load_fn replace;
    void *user;
    berth_expr *done;
    uint32_t done_count;
} load_rewriter;

static berth_expr rewrite(load_rewriter *r, berth_expr id);

static berth_expr rebuild(load_rewriter *r, berth_expr id) {
    berth_tfn *fn = r->fn;
    const berth_expr_node node = fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT || node.kind == BERTH_EXPR_VAR)
        return id;
    if (node.kind == BERTH_EXPR_LOAD) {
        berth_expr indices[BERTH_MAX_RANK];
        bool changed = false;
        for (int i = 0; i < node.index_count; ++i) {
            berth_expr old = berth_tfn_load_indices(fn, id)[i];
            indices[i] = rewrite(r, old);
            changed |= indices[i] != old;
        }
        berth_expr load =
            changed ? berth_tfn_load(fn, node.load.buf, indices, node.index_count) : id;
        berth_expr replaced = r->replace(fn, load, r->user);
        return replaced ? replaced : load;
    }
    berth_expr a = node.a ? rewrite(r, node.a) : 0;
    berth_expr b = node.b ? rewrite(r, node.b) : 0;
    berth_expr c = node.c ? rewrite(r, node.c) : 0;
    return berth_tfn_rebuild(fn, id, a, b, c);
}

static berth_expr rewrite(load_rewriter *r, berth_expr id) {
    if (id < r->done_count && r->done[id]) return r->done[id];
    berth_expr result = rebuild(r, id);
    if (id < r->done_count) r->done[id] = result;
    return result;
}

berth_expr berth_replace_loads(berth_tfn *fn, berth_expr id, berth_replace_load_fn replace,
                               void *user) {
    load_rewriter r = {fn, replace, user,
                       berth_arena_new_array(fn->module->arena, berth_expr, fn->exprs.count),
                       fn->exprs.count};
    return rewrite(&r, id);
}

// ---- all nests of a function --------------------------------------------------------------------

typedef struct nest_scheduler {
    berth_schedule_nest_fn schedule;
    berth_schedule_nest_fn dependent;  // NULL: such nests stay
    const void *user;
} nest_scheduler;

// `number`: of the nest, whose decisions are made.
static berth_status schedule_one(berth_tfn *fn, berth_stmt stmt, uint32_t number,
                                 const nest_scheduler *with, berth_stmt *out) {
    berth_nest nest;
    berth_stmt scheduled = 0;
    fn->decisions->current = &fn->decisions->nests[number];
    if (!berth_tfn_has_calls(fn, stmt) && berth_nest_parse(fn, stmt, &nest)) {
        bool independent = berth_nest_is_independent(fn, &nest);
        berth_schedule_nest_fn schedule = independent ? with->schedule : with->dependent;
        if (schedule) scheduled = schedule(fn, &nest, with->user);
    }
    if (!scheduled) berth_decide_plain(fn);
    *out = scheduled ? scheduled : stmt;
    berth_status status = berth_decisions_finish(fn);
    fn->decisions->current = NULL;
    return status;
}

static bool is_several(const berth_tfn *fn, berth_stmt_node node) {
    if (node.kind != BERTH_STMT_SEQ) return false;
    for (uint32_t i = 0; i < node.count; ++i) {
        const berth_stmt_node *part = &fn->stmts.data[fn->lists.data[node.first + i]];
        bool grid =
            part->loop_kind == BERTH_LOOP_PARALLEL ||
            (part->loop_kind >= BERTH_LOOP_GROUP_X && part->loop_kind <= BERTH_LOOP_GROUP_Z);
        if (part->kind != BERTH_STMT_FOR || !grid) return false;
    }
    return true;
}

// ---- one variable per loop ----------------------------------------------------------------------

typedef struct loop_owner {
    berth_tfn *fn;
    bool *seen;  // per variable that there was at first: it is a loop's
} loop_owner;

static berth_stmt own_loops(loop_owner *o, berth_stmt id);

static berth_stmt own_items(loop_owner *o, berth_stmt id, const berth_stmt_node *seq) {
    berth_stmt *items = berth_arena_new_array(o->fn->module->arena, berth_stmt, seq->count + 1);
    bool same = true;
    for (uint32_t i = 0; i < seq->count; ++i) {
        berth_stmt item = o->fn->lists.data[seq->first + i];
        items[i] = own_loops(o, item);
        same &= items[i] == item;
    }
    return same ? id : berth_tfn_seq(o->fn, items, seq->count);
}

static berth_stmt own_loop(loop_owner *o, berth_stmt id, const berth_stmt_node *loop) {
    berth_var var = loop->var;
    berth_stmt body = loop->body;
    if (o->seen[var]) {
        var = derived_var(o->fn, var, "");
        body = berth_replace_var_stmt(o->fn, body, loop->var, berth_tfn_var_ref(o->fn, var));
    } else {
        o->seen[var] = true;
    }
    body = own_loops(o, body);
    if (var == loop->var && body == loop->body) return id;
    return berth_tfn_for(o->fn, var, loop->value, (berth_loop_kind)loop->loop_kind, body);
}

// Parts of a nest that were made of one loop get a variable each, as functions have that were printed
// and read: both go on to the same code.
static berth_stmt own_loops(loop_owner *o, berth_stmt id) {
    const berth_stmt_node node = o->fn->stmts.data[id];
    if (!id) return id;
    if (node.kind == BERTH_STMT_SEQ) return own_items(o, id, &node);
    if (node.kind == BERTH_STMT_FOR) return own_loop(o, id, &node);
    if (node.kind != BERTH_STMT_IF) return id;
    berth_stmt body = own_loops(o, node.body);
    berth_stmt other = own_loops(o, node.other);
    if (body == node.body && other == node.other) return id;
    return berth_tfn_if(o->fn, node.value, body, other);
}

static berth_stmt with_own_loops(berth_tfn *fn, berth_stmt body) {
    loop_owner owner = {.fn = fn};
    owner.seen = berth_arena_new_array(fn->module->arena, bool, fn->vars.count + 1);
    return own_loops(&owner, body);
}

static berth_status schedule_all(berth_tfn *fn, const nest_scheduler *with) {
    const berth_stmt_node body = fn->stmts.data[fn->body];
    if (body.kind != BERTH_STMT_SEQ) {
        berth_stmt nest = 0;
        BERTH_TRY(schedule_one(fn, fn->body, 0, with, &nest));
        fn->body = with_own_loops(fn, nest);
        return BERTH_OK;
    }
    BERTH_VEC(berth_stmt) nests = {0};
    for (uint32_t i = 0; i < body.count; ++i) {
        berth_stmt old = fn->lists.data[body.first + i];
        berth_stmt nest = 0;
        BERTH_TRY(schedule_one(fn, old, i, with, &nest));
        const berth_stmt_node node = fn->stmts.data[nest];
        bool several = nest != old && is_several(fn, node);
        if (!several) berth_vec_push(fn->module->arena, &nests, nest);
        for (uint32_t k = 0; several && k < node.count; ++k)
            berth_vec_push(fn->module->arena, &nests, fn->lists.data[node.first + k]);
    }
    fn->body = with_own_loops(fn, berth_tfn_seq(fn, nests.data, nests.count));
    return BERTH_OK;
}

berth_status berth_schedule_nests(berth_tfn *fn, berth_schedule_nest_fn schedule,
                                  const void *user) {
    return berth_schedule_nests_with(fn, schedule, NULL, user);
}

berth_status berth_schedule_nests_with(berth_tfn *fn, berth_schedule_nest_fn schedule,
                                       berth_schedule_nest_fn dependent, const void *user) {
    const nest_scheduler with = {schedule, dependent, user};
    if (!fn->body) return BERTH_OK;
    BERTH_TRY(berth_tfn_check_static(fn));
    uint32_t nests = berth_schedule_nest_count(fn);
    berth_schedule_decisions *held = fn->decisions;
    if (!held) fn->decisions = berth_decisions_create(fn->module->arena, nests);
    berth_status status = BERTH_OK;
    if (fn->decisions->nest_count != nests)
        status = berth_status_make(BERTH_INVALID_ARGUMENT,
                                   "decisions of %u nests, and the function has %u",
                                   fn->decisions->nest_count, nests);
    if (!status) status = schedule_all(fn, &with);
    fn->decisions = held;
    return status;
}

uint32_t berth_schedule_nest_count(const berth_tfn *fn) {
    if (!fn->body) return 0;
    const berth_stmt_node *body = &fn->stmts.data[fn->body];
    return body->kind == BERTH_STMT_SEQ ? body->count : 1;
}
