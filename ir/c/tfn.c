// Statements that build tensor functions. Nodes are added as they are: the folding of
// berth_tfn_binary and others would make another function.
#include "ir/c/emitter.h"
#include "ir/c/hooks.h"
#include "ir/tensor/copies.h"
#include "ir/tensor/intrinsic.h"

typedef struct tfn_emitter {
    berth_c_emitter *e;
    const berth_tfn *fn;
    uint32_t *number;  // per expression: in the array x, + 1; 0 = not written so far
    uint32_t expr_count, stmt_count;
} tfn_emitter;

// ---- names of enumerations ----------------------------------------------------------------------

static const char *const expr_kinds[] = {
    "NONE",   "INT",  "FLOAT",     "VAR",  "LOAD",       "UNARY",     "BINARY", "FMA",
    "SELECT", "CAST", "BROADCAST", "RAMP", "REDUCE_ADD", "INTRINSIC", "SYMBOL"};
static const char *const loop_kinds[] = {"SERIAL",  "PARALLEL", "UNROLL",  "VECTOR",
                                         "SIMD",    "GROUP_X",  "GROUP_Y", "GROUP_Z",
                                         "LOCAL_X", "LOCAL_Y",  "LOCAL_Z"};
static const char *const scopes[] = {"PARAM", "WORKSPACE", "REGISTER", "PRIVATE", "LOCAL"};
static const char *const roles[] = {"IN", "OUT", "INOUT", "NONE"};

#define ENUM_NAME_(id, text) #id,
static const char *const unary_names[] = {BERTH_TFN_UNARY(ENUM_NAME_)};
static const char *const binary_names[] = {BERTH_TFN_BINARY(ENUM_NAME_)};
#undef ENUM_NAME_
static const char *const intrinsic_names[] = {
#define BERTH_INTRINSIC(id, ...) #id,
#include "ir/tensor/intrinsics.def"
};

// ---- expressions --------------------------------------------------------------------------------

static const char *expr(tfn_emitter *t, berth_expr id);

// "(const berth_expr[]){x[0], x[1]}".
static const char *exprs(tfn_emitter *t, const berth_expr *ids, uint32_t count) {
    if (count == 0) return "NULL";
    berth_strbuf out = berth_strbuf_make(t->e->scratch);
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&out, "%s%s", i ? ", " : "", expr(t, ids[i]));
    return berth_arena_printf(t->e->scratch, "(const berth_expr[]){%s}", berth_strbuf_text(&out));
}

// The part of a node that only its kind has, after a comma.
static const char *own_part(tfn_emitter *t, const berth_expr_node *node) {
    berth_arena *arena = t->e->scratch;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
        return berth_arena_printf(arena, ", .i = %s", berth_emit_int(t->e, node->i));
    case BERTH_EXPR_FLOAT:
        return berth_arena_printf(arena, ", .f = %s", berth_emit_float(t->e, node->f));
    case BERTH_EXPR_SYMBOL:
        return berth_arena_printf(arena, ", .i = %s", berth_emit_dim(t->e, node->i));
    case BERTH_EXPR_VAR: return berth_arena_printf(arena, ", .var = %u", node->var);
    case BERTH_EXPR_UNARY:
        return berth_arena_printf(arena, ", .op = BERTH_UNARY_%s", unary_names[node->op]);
    case BERTH_EXPR_BINARY:
        return berth_arena_printf(arena, ", .op = BERTH_BINARY_%s", binary_names[node->op]);
    case BERTH_EXPR_INTRINSIC:
        if (node->op < BERTH_INTRINSIC_COUNT)
            return berth_arena_printf(arena, ", .op = BERTH_INTRINSIC_%s",
                                      intrinsic_names[node->op]);
        return berth_arena_printf(
            arena, ", .op = intrinsic(%s)",
            berth_emit_string(t->e, berth_intrinsic_get((berth_intrinsic)node->op)->name));
    default: return "";
    }
}

static const char *operand(tfn_emitter *t, const char *name, berth_expr id) {
    if (!id) return "";
    return berth_arena_printf(t->e->scratch, ", .%s = %s", name, expr(t, id));
}

static void emit_node(tfn_emitter *t, berth_expr id) {
    const berth_expr_node *node = berth_tfn_expr(t->fn, id);
    if (node->kind == BERTH_EXPR_LOAD) {
        const char *indices = exprs(t, berth_tfn_load_indices(t->fn, id), node->index_count);
        berth_emit_line(t->e, "x[%u] = berth_tfn_load(fn, %u, %s, %u);", t->expr_count,
                        node->load.buf, indices, node->index_count);
        return;
    }
    bool leaf = node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
                node->kind == BERTH_EXPR_VAR;
    const char *a = operand(t, "a", leaf ? 0 : node->a);
    const char *b = operand(t, "b", leaf ? 0 : node->b);
    const char *c = operand(t, "c", leaf ? 0 : node->c);
    berth_emit_line(
        t->e,
        "x[%u] = berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_%s, .dtype = "
        "%s%s, .lanes = %u%s%s%s%s});",
        t->expr_count, expr_kinds[node->kind], berth_emit_dtype((berth_dtype)node->dtype),
        node->is_index ? ", .is_index = true" : "", node->lanes, own_part(t, node), a, b, c);
}

// An expression that several use is built once. Depth is bounded (BERTH_TFN_MAX_DEPTH).
static const char *expr(tfn_emitter *t, berth_expr id) {
    if (!id) return "0";
    if (!t->number[id]) {
        emit_node(t, id);
        t->number[id] = ++t->expr_count;
    }
    return berth_arena_printf(t->e->scratch, "x[%u]", t->number[id] - 1);
}

// ---- statements ---------------------------------------------------------------------------------

static const char *stmt(tfn_emitter *t, berth_stmt id);

static const char *sequence(tfn_emitter *t, berth_stmt id) {
    enum { per_line = 12 };
    const berth_stmt_node node = *berth_tfn_stmt(t->fn, id);
    if (node.count == 0) return "berth_tfn_seq(fn, NULL, 0)";
    berth_strbuf out = berth_strbuf_make(t->e->scratch);
    for (uint32_t i = 0; i < node.count; ++i)
        berth_strbuf_addf(&out, "%s%s",
                          i == 0         ? ""
                          : i % per_line ? ", "
                                         : ",\n        ",
                          stmt(t, berth_tfn_seq_items(t->fn, id)[i]));
    return berth_arena_printf(t->e->scratch, "berth_tfn_seq(fn, (const berth_stmt[]){%s}, %u)",
                              berth_strbuf_text(&out), node.count);
}

// "berth_tfn_call(fn, t->functions[1], (const berth_tfn_region[]){{.buf = 0, ...}}, 1)".
static const char *function_call(tfn_emitter *t, const berth_stmt_node *node) {
    berth_strbuf out = berth_strbuf_make(t->e->scratch);
    berth_strbuf_addf(&out, "berth_tfn_call(fn, %s, ", berth_emit_function(t->e, node->callee));
    berth_strbuf_add(&out, node->count ? "(const berth_tfn_region[]){" : "NULL");
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *region = &t->fn->regions.data[node->first + i];
        int rank = t->fn->bufs.data[region->buf].rank;
        berth_strbuf_addf(&out, "%s{.buf = %u, .starts = {", i ? ",\n        " : "", region->buf);
        for (int d = 0; d < rank; ++d)
            berth_strbuf_addf(&out, "%s%s", d ? ", " : "", expr(t, region->starts[d]));
        berth_strbuf_addf(&out, "%s}, .extents = {", rank ? "" : "0");
        for (int d = 0; d < rank; ++d)
            berth_strbuf_addf(&out, "%s%s", d ? ", " : "",
                              berth_emit_int(t->e, region->extents[d]));
        berth_strbuf_addf(&out, "%s}}", rank ? "" : "0");
    }
    berth_strbuf_addf(&out, "%s, %u)", node->count ? "}" : "", node->count);
    return berth_strbuf_text(&out);
}

static const char *stmt_call(tfn_emitter *t, berth_stmt id) {
    const berth_stmt_node *node = berth_tfn_stmt(t->fn, id);
    berth_arena *arena = t->e->scratch;
    const char *value = NULL, *parts = NULL;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ: return sequence(t, id);
    case BERTH_STMT_FOR:
        value = expr(t, node->value);
        parts = stmt(t, node->body);
        return berth_arena_printf(arena, "berth_tfn_for(fn, %u, %s, BERTH_LOOP_%s, %s)", node->var,
                                  value, loop_kinds[node->loop_kind], parts);
    case BERTH_STMT_STORE:
        parts = exprs(t, berth_tfn_store_indices(t->fn, id), node->index_count);
        return berth_arena_printf(arena, "berth_tfn_store(fn, %u, %s, %u, %s)", node->buf, parts,
                                  node->index_count, expr(t, node->value));
    case BERTH_STMT_LET:
        return berth_arena_printf(arena, "berth_tfn_let(fn, %u, %s)", node->var,
                                  expr(t, node->value));
    case BERTH_STMT_IF:
        value = expr(t, node->value);
        parts = stmt(t, node->body);
        return berth_arena_printf(arena, "berth_tfn_if(fn, %s, %s, %s)", value, parts,
                                  stmt(t, node->other));
    case BERTH_STMT_ALLOC: return berth_arena_printf(arena, "berth_tfn_alloc(fn, %u)", node->buf);
    case BERTH_STMT_BARRIER:
        if (berth_tfn_pending_of(node) < 0) return "berth_tfn_barrier(fn)";
        return berth_arena_printf(arena, "berth_tfn_barrier_pending(fn, %d, %d)",
                                  berth_tfn_pending_of(node), berth_tfn_products_of(node));
    case BERTH_STMT_CALL: return function_call(t, node);
    default: return "0";
    }
}

static const char *stmt(tfn_emitter *t, berth_stmt id) {
    if (!id) return "0";
    const char *call = stmt_call(t, id);
    uint32_t number = t->stmt_count++;
    berth_emit_line(t->e, "s[%u] = %s;", number, call);
    return berth_arena_printf(t->e->scratch, "s[%u]", number);
}

// ---- functions ----------------------------------------------------------------------------------

static void emit_buf(tfn_emitter *t, const berth_buf_info *buf) {
    berth_c_emitter *e = t->e;
    berth_strbuf dims = berth_strbuf_make(e->scratch);
    for (int d = 0; d < buf->rank; ++d)
        berth_strbuf_addf(&dims, "%s%s", d ? ", " : "", berth_emit_dim(e, buf->dims[d]));
    berth_emit_line(
        e,
        "(void)berth_tfn_add_buf(fn, (berth_buf_info){.name = %s, .dtype = %s, .lanes = "
        "%u,\n        .rank = %d, .dims = {%s}, .layout = %s,\n        .scope = "
        "BERTH_SCOPE_%s, .role = BERTH_ROLE_%s, .memory_scope = %s});",
        berth_emit_str_id(e, buf->name), berth_emit_dtype(buf->dtype), buf->lanes, buf->rank,
        buf->rank ? berth_strbuf_text(&dims) : "0", berth_emit_str_id(e, buf->layout),
        scopes[buf->scope], roles[buf->role], berth_emit_str_id(e, buf->memory_scope));
}

void berth_c__emit_tfn(berth_c_emitter *e, berth_func_id function) {
    const berth_tfn *fn = berth_tfn_get(e->module, function);
    tfn_emitter t = {
        .e = e, .fn = fn, .number = berth_arena_new_array(e->scratch, uint32_t, fn->exprs.count)};
    berth_emit_line(e, "berth_tfn *fn = berth_tfn_new_body(m, %s);", berth_emit_loc(e, fn->loc));
    berth_emit_line(e, "berth_module_function(m, f)->body = fn;");
    berth_emit_line(e, "berth_expr *x = berth_arena_new_array(m->arena, berth_expr, %u);",
                    fn->exprs.count + 1);
    berth_emit_line(e, "berth_stmt *s = berth_arena_new_array(m->arena, berth_stmt, %u);",
                    fn->stmts.count + 1);
    berth_emit_line(e, "(void)x;");
    for (uint32_t i = 0; i < fn->bufs.count; ++i) emit_buf(&t, &fn->bufs.data[i]);
    berth_emit_line(e, "fn->param_count = %u;", fn->param_count);
    for (uint32_t i = 0; i < fn->vars.count; ++i) {
        const berth_var_info *var = &fn->vars.data[i];
        berth_emit_line(e, "(void)berth_tfn_let_var(fn, %s, %s, %u, %s);",
                        berth_emit_string(e, berth_module_str(e->module, var->name)),
                        berth_emit_dtype(var->dtype), var->lanes, var->is_index ? "true" : "false");
    }
    const char *body = stmt(&t, fn->body);
    berth_emit_line(e, "fn->body = %s;", body);
    berth_emit_line(e, "fn->flops = %s;", berth_emit_float(e, fn->flops));
}
