// Substitution and structural hash of tensor functions.
#include <string.h>

#include "ir/external.h"
#include "ir/tensor/copies.h"

// Memo of a substitution: new id of every expression of the original function, 0 = not done yet.
typedef struct substitution {
    berth_tfn *fn;
    const berth_expr *map;
    uint32_t map_count;
    berth_expr *done;
    uint32_t done_count;
} substitution;

static berth_expr substitute(substitution *s, berth_expr id);

static berth_expr substitute_load(substitution *s, berth_expr id, berth_expr_node node) {
    berth_expr indices[BERTH_MAX_RANK];
    bool changed = false;
    for (int i = 0; i < node.index_count; ++i) {
        berth_expr old = berth_tfn_load_indices(s->fn, id)[i];
        indices[i] = substitute(s, old);
        changed |= indices[i] != old;
    }
    return changed ? berth_tfn_load(s->fn, node.load.buf, indices, node.index_count) : id;
}

static berth_expr substitute(substitution *s, berth_expr id) {
    if (id == 0) return 0;
    if (id < s->done_count && s->done[id]) return s->done[id];
    berth_expr_node node = s->fn->exprs.data[id];
    berth_expr result = id;
    if (node.kind == BERTH_EXPR_VAR) {
        if (node.var < s->map_count && s->map[node.var]) result = s->map[node.var];
    } else if (node.kind == BERTH_EXPR_LOAD) {
        result = substitute_load(s, id, node);
    } else if (node.kind != BERTH_EXPR_INT && node.kind != BERTH_EXPR_FLOAT) {
        berth_expr a = substitute(s, node.a);
        berth_expr b = substitute(s, node.b);
        berth_expr c = substitute(s, node.c);
        result = berth_tfn_rebuild(s->fn, id, a, b, c);
    }
    if (id < s->done_count) s->done[id] = result;
    return result;
}

static substitution make_substitution(berth_tfn *fn, const berth_expr *map, uint32_t map_count) {
    return (substitution){
        .fn = fn,
        .map = map,
        .map_count = map_count,
        .done = berth_arena_new_array(fn->module->arena, berth_expr, fn->exprs.count),
        .done_count = fn->exprs.count,
    };
}

berth_expr berth_tfn_substitute(berth_tfn *fn, berth_expr id, const berth_expr *map,
                                uint32_t map_count) {
    substitution s = make_substitution(fn, map, map_count);
    return substitute(&s, id);
}

static berth_stmt substitute_call(substitution *s, berth_stmt_node node) {
    berth_tfn *fn = s->fn;
    berth_tfn_region *regions =
        berth_arena_new_array(fn->module->arena, berth_tfn_region, node.count + 1);
    for (uint32_t i = 0; i < node.count; ++i) {
        regions[i] = fn->regions.data[node.first + i];
        for (int d = 0; d < BERTH_MAX_RANK; ++d)
            regions[i].starts[d] = substitute(s, regions[i].starts[d]);
    }
    return berth_tfn_call(fn, node.callee, regions, node.count);
}

static berth_stmt substitute_stmt(substitution *s, berth_stmt id) {
    if (id == 0) return 0;
    berth_tfn *fn = s->fn;
    berth_stmt_node node = fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ: {
        berth_stmt *items = berth_arena_new_array(fn->module->arena, berth_stmt, node.count);
        for (uint32_t i = 0; i < node.count; ++i)
            items[i] = substitute_stmt(s, berth_tfn_seq_items(fn, id)[i]);
        return berth_tfn_seq(fn, items, node.count);
    }
    case BERTH_STMT_FOR: {
        berth_expr extent = substitute(s, node.value);
        berth_stmt body = substitute_stmt(s, node.body);
        return berth_tfn_for(fn, node.var, extent, (berth_loop_kind)node.loop_kind, body);
    }
    case BERTH_STMT_STORE: {
        berth_expr indices[BERTH_MAX_RANK];
        for (int i = 0; i < node.index_count; ++i)
            indices[i] = substitute(s, berth_tfn_store_indices(fn, id)[i]);
        return berth_tfn_store(fn, node.buf, indices, node.index_count, substitute(s, node.value));
    }
    case BERTH_STMT_LET: return berth_tfn_let(fn, node.var, substitute(s, node.value));
    case BERTH_STMT_IF: {
        berth_expr condition = substitute(s, node.value);
        berth_stmt body = substitute_stmt(s, node.body);
        return berth_tfn_if(fn, condition, body, substitute_stmt(s, node.other));
    }
    case BERTH_STMT_CALL: return substitute_call(s, node);
    default: return id;
    }
}

berth_stmt berth_tfn_substitute_stmt(berth_tfn *fn, berth_stmt id, const berth_expr *map,
                                     uint32_t map_count) {
    substitution s = make_substitution(fn, map, map_count);
    return substitute_stmt(&s, id);
}

// ---- structural hash ----------------------------------------------------------------------------

// A canonical byte string of the reachable body: variables, buffers and shared expressions are
// numbered in order of appearance, names are left out.
typedef struct hasher {
    const berth_tfn *fn;
    berth_strbuf text;
    uint32_t *expr_number;  // 0 = not seen
    uint32_t *var_number;
    uint32_t next_expr;
    uint32_t next_var;
} hasher;

static void put(hasher *h, int64_t value) {
    berth_strbuf_add_n(&h->text, (const char *)&value, sizeof(value));
}

static void put_var(hasher *h, berth_var var) {
    if (!h->var_number[var]) h->var_number[var] = ++h->next_var;
    put(h, h->var_number[var]);
}

static void put_expr(hasher *h, berth_expr id) {
    if (id == 0 || h->expr_number[id]) {
        put(h, -1);
        put(h, id ? h->expr_number[id] : 0);
        return;
    }
    const berth_expr_node *node = &h->fn->exprs.data[id];
    put(h, node->kind | node->dtype << 8 | node->op << 16 | (int64_t)node->is_index << 24 |
               (int64_t)node->lanes << 32);
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_SYMBOL: put(h, node->i); break;
    case BERTH_EXPR_FLOAT: {
        int64_t bits;
        memcpy(&bits, &node->f, sizeof(bits));
        put(h, bits);
        break;
    }
    case BERTH_EXPR_VAR: put_var(h, node->var); break;
    case BERTH_EXPR_LOAD:
        put(h, node->load.buf);
        for (int i = 0; i < node->index_count; ++i)
            put_expr(h, berth_tfn_load_indices(h->fn, id)[i]);
        break;
    default:
        put_expr(h, node->a);
        put_expr(h, node->b);
        put_expr(h, node->c);
        break;
    }
    h->expr_number[id] = ++h->next_expr;
}

// A call counts by what it calls, not by its name: tensor functions call no one in a circle.
static void put_call(hasher *h, const berth_stmt_node *node) {
    const berth_module *module = h->fn->module;
    const berth_tfn *callee = berth_tfn_get(module, node->callee);
    const berth_external *external = berth_external_get(module, node->callee);
    if (callee) {
        berth_hash128 hash = berth_tfn_hash(callee);
        berth_strbuf_add_n(&h->text, (const char *)&hash, sizeof(hash));
    } else if (external) {
        put(h, (int64_t)external->code_size_bytes);
        berth_strbuf_addf(&h->text, "%s %s %s", berth_module_str(module, external->language),
                          berth_module_str(module, external->symbol),
                          berth_module_str(module, external->file));
        berth_strbuf_add_n(&h->text, (const char *)external->code,
                           (size_t)external->code_size_bytes);
    }
    put(h, node->count);
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *region = &h->fn->regions.data[node->first + i];
        put(h, region->buf);
        for (int d = 0; d < h->fn->bufs.data[region->buf].rank; ++d) {
            put(h, region->extents[d]);
            put_expr(h, region->starts[d]);
        }
    }
}

static void put_stmt(hasher *h, berth_stmt id) {
    const berth_stmt_node *node = &h->fn->stmts.data[id];
    put(h, id == 0 ? 0 : node->kind | node->loop_kind << 8);
    if (id == 0) return;
    if (node->kind == BERTH_STMT_SEQ) {
        put(h, node->count);
        for (uint32_t i = 0; i < node->count; ++i) put_stmt(h, berth_tfn_seq_items(h->fn, id)[i]);
        return;
    }
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_LET) put_var(h, node->var);
    if (node->kind == BERTH_STMT_STORE || node->kind == BERTH_STMT_ALLOC) put(h, node->buf);
    if (node->kind == BERTH_STMT_CALL) put_call(h, node);
    if (node->kind == BERTH_STMT_BARRIER) put(h, node->count);
    for (int i = 0; i < node->index_count; ++i) put_expr(h, berth_tfn_store_indices(h->fn, id)[i]);
    put_expr(h, node->value);
    put_stmt(h, node->body);
    put_stmt(h, node->other);
}

berth_hash128 berth_tfn_hash(const berth_tfn *fn) {
    berth_arena *arena = berth_arena_create_child(fn->module->arena);
    hasher h = {.fn = fn,
                .text = berth_strbuf_make(arena),
                .expr_number = berth_arena_new_array(arena, uint32_t, fn->exprs.count),
                .var_number = berth_arena_new_array(arena, uint32_t, fn->vars.count + 1)};
    put(&h, fn->param_count);
    for (uint32_t i = 0; i < fn->bufs.count; ++i) {
        const berth_buf_info *buf = &fn->bufs.data[i];
        put(&h, (int64_t)buf->dtype | (int64_t)buf->lanes << 8 | (int64_t)buf->scope << 24 |
                    (int64_t)buf->role << 28 | (int64_t)buf->rank << 32);
        for (int d = 0; d < buf->rank; ++d) put(&h, buf->dims[d]);
        berth_strbuf_add(&h.text, berth_module_str(fn->module, buf->layout));
        berth_strbuf_add_n(&h.text, "", 1);
    }
    put_stmt(&h, fn->body);
    berth_hash128 hash = berth_hash128_of(berth_strbuf_text(&h.text), h.text.length);
    berth_arena_destroy(arena);
    return hash;
}

// ---- compaction ---------------------------------------------------------------------------------

typedef struct compactor {
    berth_tfn *fn;
    uint32_t *buf_map;
    uint32_t *var_map;
    uint32_t buf_count;
    uint32_t var_count;
} compactor;

static void number(uint32_t *map, uint32_t *count, uint32_t id) {
    if (map[id] == BERTH_NONE) map[id] = (*count)++;
}

// Statements nest as deep as the verifier lets them.
static void number_stmt(compactor *c, berth_stmt id) {
    if (id == 0) return;
    const berth_stmt_node *node = &c->fn->stmts.data[id];
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_LET)
        number(c->var_map, &c->var_count, node->var);
    if (node->kind == BERTH_STMT_ALLOC) number(c->buf_map, &c->buf_count, node->buf);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        number_stmt(c, berth_tfn_seq_items(c->fn, id)[i]);
    number_stmt(c, node->body);
    number_stmt(c, node->other);
}

static void move_infos(compactor *c) {
    berth_tfn *fn = c->fn;
    berth_arena *arena = fn->module->arena;
    berth_buf_info *bufs = berth_arena_new_array(arena, berth_buf_info, c->buf_count);
    berth_var_info *vars = berth_arena_new_array(arena, berth_var_info, c->var_count);
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        if (c->buf_map[i] != BERTH_NONE) bufs[c->buf_map[i]] = fn->bufs.data[i];
    for (uint32_t i = 0; i < fn->vars.count; ++i)
        if (c->var_map[i] != BERTH_NONE) vars[c->var_map[i]] = fn->vars.data[i];
    fn->bufs.data = bufs;
    fn->bufs.count = fn->bufs.capacity = c->buf_count;
    fn->vars.data = vars;
    fn->vars.count = fn->vars.capacity = c->var_count;
}

// Nodes that the body no longer reaches may name what was dropped: they get the number 0.
static uint32_t mapped(const uint32_t *map, uint32_t id) {
    return map[id] == BERTH_NONE ? 0 : map[id];
}

const uint32_t *berth_tfn_compact(berth_tfn *fn) {
    berth_arena *arena = fn->module->arena;
    compactor c = {.fn = fn,
                   .buf_map = berth_arena_new_array(arena, uint32_t, fn->bufs.count + 1),
                   .var_map = berth_arena_new_array(arena, uint32_t, fn->vars.count + 1)};
    memset(c.buf_map, 0xff, (fn->bufs.count + 1) * sizeof(uint32_t));
    memset(c.var_map, 0xff, (fn->vars.count + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        if (i < fn->param_count || fn->bufs.data[i].scope == BERTH_SCOPE_WORKSPACE)
            number(c.buf_map, &c.buf_count, i);
    number_stmt(&c, fn->body);
    move_infos(&c);
    for (uint32_t i = 0; i < fn->exprs.count; ++i) {
        berth_expr_node *node = &fn->exprs.data[i];
        if (node->kind == BERTH_EXPR_VAR) node->var = mapped(c.var_map, node->var);
        if (node->kind == BERTH_EXPR_LOAD) node->load.buf = mapped(c.buf_map, node->load.buf);
    }
    for (uint32_t i = 0; i < fn->stmts.count; ++i) {
        berth_stmt_node *node = &fn->stmts.data[i];
        if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_LET)
            node->var = mapped(c.var_map, node->var);
        if (node->kind == BERTH_STMT_STORE || node->kind == BERTH_STMT_ALLOC)
            node->buf = mapped(c.buf_map, node->buf);
    }
    for (uint32_t i = 0; i < fn->regions.count; ++i)
        fn->regions.data[i].buf = mapped(c.buf_map, fn->regions.data[i].buf);
    return c.buf_map;
}
