// Reading tensor functions: signature and statements.
#include <string.h>

#include "ir/tensor/copies.h"
#include "ir/text/hooks.h"
#include "ir/text/tfn_parser.h"

typedef struct stmt_list {
    BERTH_VEC(berth_stmt) items;
} stmt_list;

static berth_status parse_stmt(berth_tfn_parser *t, berth_stmt *out);

static berth_status define(berth_tfn_parser *t, const berth_token *label, uint32_t id) {
    BERTH_TRY(berth_text_define(t->p, &t->symbols, label, id));
    berth_vec_push(t->p->scratch, &t->scope, *label);
    return BERTH_OK;
}

static void leave_scope(berth_tfn_parser *t, uint32_t mark) {
    while (t->scope.count > mark)
        berth_text_undefine(t->p, &t->symbols, &t->scope.data[--t->scope.count]);
}

static berth_stmt add_stmt(berth_tfn_parser *t, berth_stmt_node node) {
    berth_vec_push(t->p->module->arena, &t->fn->stmts, node);
    return t->fn->stmts.count - 1;
}

// ---- declarations -------------------------------------------------------------------------------

// "%x: f32x8[4,2] in scope "local"".
static berth_status parse_buf(berth_tfn_parser *t, berth_buf_scope scope, berth_buf *out_buf) {
    berth_text_parser *p = t->p;
    berth_token label = p->token;
    const char *text = NULL;
    berth_tfn_type type;
    berth_buf_info info = {.scope = scope,
                           .role = scope == BERTH_SCOPE_PARAM ? BERTH_ROLE_IN : BERTH_ROLE_NONE};
    if (label.kind != BERTH_TOKEN_LABEL) return berth_text_expected(p, "a buffer (%name)");
    BERTH_TRY(berth_text_label_name(p, &label, &text));
    info.name = berth_module_intern(p->module, text);
    berth_text_next(p);
    BERTH_TRY(berth_text_expect(p, ":"));
    BERTH_TRY(berth_text__parse_tfn_type(t, &type));
    if (type.is_index) return berth_text_error(p, &label, "expected a buffer of no index type");
    info.dtype = type.dtype;
    info.lanes = type.lanes;
    BERTH_TRY(berth_text_parse_shape(p, &info.rank, info.dims, &info.layout));
    if (info.rank < 0) return berth_text_error(p, &label, "expected a buffer of known rank");
    if (p->token.kind == BERTH_TOKEN_WORD &&
        berth_buf_role_from_name(p->token.text, p->token.length, &info.role))
        berth_text_next(p);
    if (berth_text_accept(p, "scope")) {
        BERTH_TRY(berth_text_parse_string(p, &text));
        info.memory_scope = berth_module_intern(p->module, text);
    }
    (void)berth_tfn_add_buf(t->fn, info);
    *out_buf = t->fn->bufs.count - 1;
    return define(t, &label, *out_buf << 1);
}

// A variable's name, and its type where it is written.
static berth_status parse_var(berth_tfn_parser *t, berth_token *out_label, berth_tfn_type *type) {
    if (t->p->token.kind != BERTH_TOKEN_LABEL)
        return berth_text_expected(t->p, "a variable (%name)");
    *out_label = t->p->token;
    berth_text_next(t->p);
    return berth_text_accept(t->p, ":") ? berth_text__parse_tfn_type(t, type) : BERTH_OK;
}

static berth_status add_var(berth_tfn_parser *t, const berth_token *label, berth_tfn_type type,
                            berth_var *out_var) {
    const char *name = NULL;
    BERTH_TRY(berth_text_label_name(t->p, label, &name));
    *out_var = berth_tfn_let_var(t->fn, name, type.dtype, type.lanes, type.is_index);
    return define(t, label, *out_var << 1 | 1);
}

// ---- statements ---------------------------------------------------------------------------------

static berth_status parse_items(berth_tfn_parser *t, stmt_list *list) {
    while (!berth_text_is(t->p, "}")) {
        berth_stmt stmt = 0;
        BERTH_TRY(parse_stmt(t, &stmt));
        if (stmt) berth_vec_push(t->p->scratch, &list->items, stmt);
    }
    return BERTH_OK;
}

// "{ ... }": a sequence, or (unless `always_seq`) the one statement in it.
static berth_status parse_block(berth_tfn_parser *t, bool always_seq, berth_stmt *out) {
    stmt_list list = {{0}};
    uint32_t mark = t->scope.count;
    BERTH_TRY(berth_text_expect(t->p, "{"));
    BERTH_TRY(berth_text_enter(t->p));
    BERTH_TRY(parse_items(t, &list));
    berth_text_leave(t->p);
    leave_scope(t, mark);
    *out = !always_seq && list.items.count == 1
               ? list.items.data[0]
               : berth_tfn_seq(t->fn, list.items.data, list.items.count);
    return berth_text_expect(t->p, "}");
}

static berth_status parse_for(berth_tfn_parser *t, berth_loop_kind kind, berth_stmt *out) {
    berth_stmt_node node = {.kind = BERTH_STMT_FOR, .loop_kind = (uint8_t)kind};
    berth_token label;
    berth_tfn_type type = {BERTH_DTYPE_I64, true, 1};
    uint32_t mark = t->scope.count;
    BERTH_TRY(parse_var(t, &label, &type));
    if (!berth_text_accept(t->p, "in")) return berth_text_expected(t->p, "'in'");
    BERTH_TRY(berth_text__parse_expr(t, &node.value));
    BERTH_TRY(add_var(t, &label, type, &node.var));
    BERTH_TRY(parse_block(t, false, &node.body));
    leave_scope(t, mark);
    *out = add_stmt(t, node);
    return BERTH_OK;
}

static berth_status parse_let(berth_tfn_parser *t, berth_stmt *out) {
    berth_stmt_node node = {.kind = BERTH_STMT_LET};
    berth_token label;
    berth_tfn_type type = {BERTH_DTYPE_NONE, false, 0};
    BERTH_TRY(parse_var(t, &label, &type));
    BERTH_TRY(berth_text_expect(t->p, "="));
    BERTH_TRY(berth_text__parse_expr(t, &node.value));
    if (type.dtype == BERTH_DTYPE_NONE) type = berth_tfn_type_of(t->fn, node.value);
    BERTH_TRY(add_var(t, &label, type, &node.var));
    *out = add_stmt(t, node);
    return BERTH_OK;
}

static berth_status parse_if(berth_tfn_parser *t, berth_stmt *out) {
    berth_stmt_node node = {.kind = BERTH_STMT_IF};
    BERTH_TRY(berth_text__parse_expr(t, &node.value));
    BERTH_TRY(parse_block(t, false, &node.body));
    if (berth_text_accept(t->p, "else")) BERTH_TRY(parse_block(t, false, &node.other));
    *out = add_stmt(t, node);
    return BERTH_OK;
}

static berth_status parse_store(berth_tfn_parser *t, berth_stmt *out) {
    berth_stmt_node node = {.kind = BERTH_STMT_STORE};
    const berth_expr *indices = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_text__parse_buf_ref(t, &node.buf));
    BERTH_TRY(berth_text__parse_indices(t, &indices, &count));
    BERTH_TRY(berth_text_expect(t->p, "="));
    BERTH_TRY(berth_text__parse_expr(t, &node.value));
    node.index_count = (uint16_t)count;
    node.first = t->fn->lists.count;
    for (uint32_t i = 0; i < count; ++i)
        berth_vec_push(t->p->module->arena, &t->fn->lists, indices[i]);
    *out = add_stmt(t, node);
    return BERTH_OK;
}

// "[%i, %j for 4]" after a buffer's name, or nothing: all of it.
static berth_status parse_region(berth_tfn_parser *t, berth_tfn_region *region) {
    berth_text_parser *p = t->p;
    BERTH_TRY(berth_text__parse_buf_ref(t, &region->buf));
    int rank = t->fn->bufs.data[region->buf].rank;
    bool whole = !berth_text_accept(p, "[");
    for (int d = 0; d < rank; ++d) {
        region->extents[d] = whole ? t->fn->bufs.data[region->buf].dims[d] : BERTH_REGION_POINT;
        if (whole) {
            region->starts[d] = berth_tfn_index(t->fn, 0);
            continue;
        }
        if (d) BERTH_TRY(berth_text_expect(p, ","));
        BERTH_TRY(berth_text__parse_expr(t, &region->starts[d]));
        if (!berth_text_accept(p, "for")) continue;
        berth_token token = p->token;
        BERTH_TRY(berth_text_parse_int(p, &region->extents[d]));
        if (region->extents[d] < 0)
            return berth_text_error(p, &token, "expected a number of elements");
    }
    return whole ? BERTH_OK : berth_text_expect(p, "]");
}

static berth_status parse_call(berth_tfn_parser *t, berth_stmt *out) {
    BERTH_VEC(berth_tfn_region) regions = {0};
    berth_func_id callee = BERTH_NONE;
    BERTH_TRY(berth_text_parse_function_ref(t->p, &callee));
    BERTH_TRY(berth_text_expect(t->p, "("));
    for (bool first = true; !berth_text_accept(t->p, ")"); first = false) {
        berth_tfn_region region = {0};
        if (!first) BERTH_TRY(berth_text_expect(t->p, ","));
        BERTH_TRY(parse_region(t, &region));
        berth_vec_push(t->p->scratch, &regions, region);
    }
    *out = berth_tfn_call(t->fn, callee, regions.data, regions.count);
    return BERTH_OK;
}

// "$0 = expression": no statement, but a name for a part of the ones that follow.
static berth_status parse_shared(berth_tfn_parser *t) {
    berth_expr expr = 0;
    if (t->p->token.number != t->shared.count)
        return berth_text_error(t->p, &t->p->token, "expected $%u, found $%u", t->shared.count,
                                t->p->token.number);
    berth_text_next(t->p);
    BERTH_TRY(berth_text_expect(t->p, "="));
    BERTH_TRY(berth_text__parse_expr(t, &expr));
    berth_vec_push(t->p->scratch, &t->shared, expr);
    return BERTH_OK;
}

static berth_status parse_stretches(berth_tfn_parser *t, int most, int64_t *out) {
    berth_token number = t->p->token;
    BERTH_TRY(berth_text_parse_int(t->p, out));
    if (*out >= 0 && *out <= most) return BERTH_OK;
    return berth_text_error(t->p, &number, "expected 0 to %d stretches between barriers", most);
}

static berth_status parse_barrier(berth_tfn_parser *t, berth_stmt *out) {
    berth_stmt_node node = {.kind = BERTH_STMT_BARRIER};
    int64_t pending = -1, products = 0;
    if (berth_text_accept(t->p, "pending")) {
        BERTH_TRY(parse_stretches(t, BERTH_TFN_MOST_PENDING, &pending));
        if (berth_text_accept(t->p, "products"))
            BERTH_TRY(parse_stretches(t, BERTH_TFN_MOST_PRODUCTS, &products));
    }
    node.count = berth_tfn_barrier_count(pending, products);
    *out = add_stmt(t, node);
    return BERTH_OK;
}

static berth_status parse_word(berth_tfn_parser *t, berth_stmt *out) {
    berth_text_parser *p = t->p;
    berth_loop_kind loop = BERTH_LOOP_SERIAL;
    berth_buf_scope scope = BERTH_SCOPE_PARAM;
    if (berth_loop_from_name(p->token.text, p->token.length, &loop)) {
        berth_text_next(p);
        return parse_for(t, loop, out);
    }
    if (berth_text_accept(p, "let")) return parse_let(t, out);
    if (berth_text_accept(p, "if")) return parse_if(t, out);
    if (berth_text_accept(p, "call")) return parse_call(t, out);
    if (berth_text_accept(p, "barrier")) return parse_barrier(t, out);
    if (!berth_buf_scope_from_name(p->token.text, p->token.length, &scope) ||
        scope == BERTH_SCOPE_PARAM)
        return berth_text_expected(p, "a statement");
    berth_buf buf = 0;
    berth_text_next(p);
    BERTH_TRY(parse_buf(t, scope, &buf));
    if (scope != BERTH_SCOPE_WORKSPACE)
        *out = add_stmt(t, (berth_stmt_node){.kind = BERTH_STMT_ALLOC, .buf = buf});
    return BERTH_OK;
}

static berth_status parse_stmt(berth_tfn_parser *t, berth_stmt *out) {
    *out = 0;
    BERTH_TRY(berth_limit_item(&t->p->watch));
    switch (t->p->token.kind) {
    case BERTH_TOKEN_WORD: return parse_word(t, out);
    case BERTH_TOKEN_LABEL: return parse_store(t, out);
    case BERTH_TOKEN_SHARED: return parse_shared(t);
    default:
        if (berth_text_is(t->p, "{")) return parse_block(t, true, out);
        return berth_text_expected(t->p, "a statement");
    }
}

// ---- hooks --------------------------------------------------------------------------------------

berth_status berth_text__parse_tfn_signature(berth_text_parser *p, berth_func_id function) {
    berth_tfn_parser *t = berth_arena_new(p->scratch, berth_tfn_parser);
    t->p = p;
    t->fn = berth_tfn_new_body(p->module, 0);
    p->user = t;
    BERTH_TRY(berth_text_expect(p, "("));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        berth_buf buf = 0;
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        BERTH_TRY(parse_buf(t, BERTH_SCOPE_PARAM, &buf));
    }
    t->fn->param_count = t->fn->bufs.count;
    if (berth_text_accept(p, "flops")) BERTH_TRY(berth_text_parse_float(p, &t->fn->flops));
    if (berth_text_accept(p, "from")) {
        t->has_loc = true;
        BERTH_TRY(berth_text_parse_loc(p, &p->token, &t->loc));
    }
    berth_module_function(p->module, function)->body = t->fn;
    return BERTH_OK;
}

berth_status berth_text__parse_tfn_body(berth_text_parser *p, berth_func_id function) {
    berth_tfn_parser *t = p->user;
    stmt_list list = {{0}};
    t->fn->loc = t->has_loc ? t->loc : berth_module_function(p->module, function)->loc;
    BERTH_TRY(parse_items(t, &list));
    t->fn->body = berth_tfn_seq(t->fn, list.items.data, list.items.count);
    return BERTH_OK;
}
