// Rules of tensor and external functions.
#include "ir/tensor/verify.h"

#include <string.h>

#include "ir/external.h"
#include "ir/tensor/call.h"
#include "ir/tensor/copies.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tensor/type.h"

typedef struct checker {
    const berth_tfn *fn;
    const char *name;
    berth_arena *arena;
    bool *var_seen;  // in scope
    bool *buf_seen;
    uint32_t *checked;          // per expression: the last statement that it was checked in
    uint32_t statement;         // number of the one at hand
    BERTH_VEC(uint32_t) scope;  // buffer << 1, variable << 1 | 1
    int depth;
    BERTH_VEC(berth_stmt) calls;
    uint32_t bound;  // bit per group and work-item index that a loop around has
} checker;

static berth_status problem(const checker *c, const char *format, ...) BERTH_PRINTF(2, 3);
static berth_status problem(const checker *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status =
        berth_status_make_at_v(BERTH_INVALID_ARGUMENT, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    return berth_status_prefix(status, "function @%s, %s", c->name,
                               berth_loc_describe(c->fn->module, c->fn->loc, c->arena));
}

static const char *buf_name(const checker *c, berth_buf buf) {
    return berth_module_str(c->fn->module, c->fn->bufs.data[buf].name);
}

static void bring_into_scope(checker *c, bool is_var, uint32_t id) {
    (is_var ? c->var_seen : c->buf_seen)[id] = true;
    berth_vec_push(c->arena, &c->scope, id << 1 | is_var);
}

static void leave_scope(checker *c, uint32_t mark) {
    while (c->scope.count > mark) {
        uint32_t entry = c->scope.data[--c->scope.count];
        (entry & 1 ? c->var_seen : c->buf_seen)[entry >> 1] = false;
    }
}

// ---- expressions --------------------------------------------------------------------------------

static berth_status check_expr(checker *c, berth_expr id);

static berth_status check_access(checker *c, berth_buf buf, const berth_expr *indices, int count) {
    if (buf >= c->fn->bufs.count) return problem(c, "buffer %u does not exist", buf);
    if (!c->buf_seen[buf])
        return problem(c, "buffer \"%s\" is used where it does not exist", buf_name(c, buf));
    if (count != c->fn->bufs.data[buf].rank)
        return problem(c, "buffer \"%s\" of %d dimensions is accessed with %d indices",
                       buf_name(c, buf), c->fn->bufs.data[buf].rank, count);
    for (int i = 0; i < count; ++i) {
        BERTH_TRY(check_expr(c, indices[i]));
        if (!c->fn->exprs.data[indices[i]].is_index)
            return problem(c, "an index of buffer \"%s\" is no index expression", buf_name(c, buf));
    }
    return BERTH_OK;
}

static berth_status check_equal_types(const checker *c, const char *what, berth_expr a,
                                      berth_expr b) {
    berth_tfn_type x = berth_tfn_type_of(c->fn, a);
    berth_tfn_type y = berth_tfn_type_of(c->fn, b);
    char x_text[24];
    char y_text[24];
    if (berth_tfn_type_equal(x, y)) return BERTH_OK;
    berth_tfn_type_format(x, x_text);
    berth_tfn_type_format(y, y_text);
    return problem(c, "operands of %s are %s and %s", what, x_text, y_text);
}

static int operand_count(const berth_expr_node *node) {
    if (node->kind == BERTH_EXPR_FMA || node->kind == BERTH_EXPR_SELECT) return 3;
    if (node->kind == BERTH_EXPR_INTRINSIC) return node->c ? 3 : 2;
    return node->kind == BERTH_EXPR_BINARY ? 2 : 1;
}

static berth_status check_intrinsic(const checker *c, const berth_expr_node *node) {
    const berth_expr operands[BERTH_INTRINSIC_OPERANDS_MAX] = {node->a, node->b, node->c};
    const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)node->op);
    if (!facts) return problem(c, "intrinsic %d does not exist", node->op);
    for (int i = 0; i < berth_intrinsic_operand_count(facts); ++i) {
        berth_tfn_type wanted = {facts->operands[i].dtype, false, facts->operands[i].lanes};
        berth_tfn_type given = berth_tfn_type_of(c->fn, operands[i]);
        char wanted_text[24];
        char given_text[24];
        if (berth_tfn_type_equal(wanted, given)) continue;
        berth_tfn_type_format(wanted, wanted_text);
        berth_tfn_type_format(given, given_text);
        return problem(c, "operand %d of %s is %s, it takes %s", i, facts->name, given_text,
                       wanted_text);
    }
    return BERTH_OK;
}

// Operand types of one node whose operands are checked.
static berth_status check_operands(const checker *c, const berth_expr_node *node) {
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_BINARY:
        return check_equal_types(c, berth_binary_name((berth_binary)node->op), node->a, node->b);
    case BERTH_EXPR_FMA:
        BERTH_TRY(check_equal_types(c, "fma", node->a, node->b));
        return check_equal_types(c, "fma", node->a, node->c);
    case BERTH_EXPR_SELECT:
        if (c->fn->exprs.data[node->a].dtype != BERTH_DTYPE_BOOL)
            return problem(c, "the condition of a select is no bool");
        return check_equal_types(c, "select", node->b, node->c);
    case BERTH_EXPR_BROADCAST:
        if (c->fn->exprs.data[node->a].lanes != 1) return problem(c, "a broadcast of a vector");
        return BERTH_OK;
    case BERTH_EXPR_RAMP:
        if (!berth_tfn_type_equal(berth_tfn_type_of(c->fn, node->a),
                                  (berth_tfn_type){BERTH_DTYPE_I64, true, 1}))
            return problem(c, "a ramp from what is no index");
        return BERTH_OK;
    case BERTH_EXPR_INTRINSIC: return check_intrinsic(c, node);
    default: return BERTH_OK;
    }
}

static berth_status check_own_type(const checker *c, berth_expr id, const berth_expr_node *node) {
    berth_tfn_type type = berth_tfn_type_of(c->fn, id);
    if (type.lanes == 0 || type.dtype == BERTH_DTYPE_NONE || type.dtype >= BERTH_DTYPE_COUNT ||
        (type.is_index && type.dtype != BERTH_DTYPE_I64))
        return problem(c, "expression %u has no proper type", id);
    if (node->kind == BERTH_EXPR_INT)
        return berth_dtype_is_float(type.dtype) ? problem(c, "an integer literal of a float type")
                                                : BERTH_OK;
    if (node->kind == BERTH_EXPR_FLOAT)
        return berth_dtype_is_float(type.dtype) ? BERTH_OK
                                                : problem(c, "a float literal of another type");
    const berth_expr *indices =
        node->kind == BERTH_EXPR_LOAD ? berth_tfn_load_indices(c->fn, id) : NULL;
    berth_tfn_type derived = berth_tfn_derive_type(c->fn, node, indices);
    char text[24];
    char derived_text[24];
    if (berth_tfn_type_equal(type, derived)) return BERTH_OK;
    berth_tfn_type_format(type, text);
    berth_tfn_type_format(derived, derived_text);
    return problem(c, "expression %u is %s, its parts make it %s", id, text, derived_text);
}

static berth_status check_expr(checker *c, berth_expr id) {
    if (id == 0 || id >= c->fn->exprs.count) return problem(c, "an expression is missing");
    if (c->checked[id] == c->statement) return BERTH_OK;  // scopes change between statements only
    const berth_expr_node *node = &c->fn->exprs.data[id];
    if (node->depth > BERTH_TFN_MAX_DEPTH)
        return problem(c, "expressions nest %u deep; at most %d", node->depth, BERTH_TFN_MAX_DEPTH);
    if (node->kind == BERTH_EXPR_VAR) {
        if (node->var >= c->fn->vars.count || !c->var_seen[node->var])
            return problem(c, "variable %u is used where it does not exist", node->var);
        return check_own_type(c, id, node);
    }
    if (node->kind == BERTH_EXPR_SYMBOL && !berth_tfn_has_symbol(c->fn, node->i, c->arena))
        return problem(c, "expression %u is a symbol that no parameter's shape has", id);
    if (node->kind == BERTH_EXPR_LOAD) {
        BERTH_TRY(
            check_access(c, node->load.buf, berth_tfn_load_indices(c->fn, id), node->index_count));
    } else if (node->kind != BERTH_EXPR_INT && node->kind != BERTH_EXPR_FLOAT &&
               node->kind != BERTH_EXPR_SYMBOL) {
        const berth_expr operands[] = {node->a, node->b, node->c};
        int count = operand_count(node);
        for (int i = 0; i < count; ++i) BERTH_TRY(check_expr(c, operands[i]));
        BERTH_TRY(check_operands(c, node));
    }
    BERTH_TRY(check_own_type(c, id, node));
    c->checked[id] = c->statement;
    return BERTH_OK;
}

// ---- statements ---------------------------------------------------------------------------------

static berth_status check_stmt(checker *c, berth_stmt id);

static berth_status check_block(checker *c, berth_stmt id) {
    uint32_t mark = c->scope.count;
    BERTH_TRY(check_stmt(c, id));
    leave_scope(c, mark);
    return BERTH_OK;
}

static berth_status check_for(checker *c, const berth_stmt_node *node) {
    uint32_t bound = c->bound;
    if (node->loop_kind > BERTH_LOOP_LOCAL_Z) return problem(c, "a loop of no kind");
    if (node->loop_kind >= BERTH_LOOP_GROUP_X) {
        uint32_t bit = 1u << node->loop_kind;
        if (bound & bit)
            return problem(c, "two nested loops over %s",
                           berth_loop_name((berth_loop_kind)node->loop_kind));
        c->bound |= bit;
    }
    BERTH_TRY(check_expr(c, node->value));
    if (!berth_tfn_type_equal(berth_tfn_type_of(c->fn, node->value),
                              (berth_tfn_type){BERTH_DTYPE_I64, true, 1}))
        return problem(c, "the extent of a loop is no index");
    if (node->var >= c->fn->vars.count || c->var_seen[node->var])
        return problem(c, "the variable of a loop is missing or taken");
    if (!berth_tfn_type_equal(berth_tfn_type_of_var(c->fn, node->var),
                              (berth_tfn_type){BERTH_DTYPE_I64, true, 1}))
        return problem(c, "the variable of a loop is no index");
    uint32_t mark = c->scope.count;
    bring_into_scope(c, true, node->var);
    BERTH_TRY(check_block(c, node->body));
    leave_scope(c, mark);
    c->bound = bound;
    return BERTH_OK;
}

static berth_status check_store(checker *c, berth_stmt id, const berth_stmt_node *node) {
    BERTH_TRY(check_access(c, node->buf, berth_tfn_store_indices(c->fn, id), node->index_count));
    BERTH_TRY(check_expr(c, node->value));
    const berth_buf_info *buf = &c->fn->bufs.data[node->buf];
    if (buf->scope == BERTH_SCOPE_PARAM && buf->role == BERTH_ROLE_IN)
        return problem(c, "a store to the input \"%s\"", buf_name(c, node->buf));
    berth_expr_node as_load = {.kind = BERTH_EXPR_LOAD, .index_count = node->index_count};
    as_load.load.buf = node->buf;
    berth_tfn_type wanted =
        berth_tfn_derive_type(c->fn, &as_load, berth_tfn_store_indices(c->fn, id));
    berth_tfn_type given = berth_tfn_type_of(c->fn, node->value);
    char wanted_text[24];
    char given_text[24];
    if (berth_tfn_type_equal(wanted, given)) return BERTH_OK;
    berth_tfn_type_format(wanted, wanted_text);
    berth_tfn_type_format(given, given_text);
    return problem(c, "a store of %s to \"%s\", which takes %s", given_text, buf_name(c, node->buf),
                   wanted_text);
}

static berth_status check_let(checker *c, const berth_stmt_node *node) {
    BERTH_TRY(check_expr(c, node->value));
    if (node->var >= c->fn->vars.count || c->var_seen[node->var])
        return problem(c, "the variable of a let is missing or taken");
    if (!berth_tfn_type_equal(berth_tfn_type_of_var(c->fn, node->var),
                              berth_tfn_type_of(c->fn, node->value)))
        return problem(c, "a let gives variable %u a value of another type", node->var);
    bring_into_scope(c, true, node->var);
    return BERTH_OK;
}

static berth_status check_alloc(checker *c, const berth_stmt_node *node) {
    if (node->buf >= c->fn->bufs.count || c->buf_seen[node->buf])
        return problem(c, "the buffer of a declaration is missing or exists already");
    berth_buf_scope scope = c->fn->bufs.data[node->buf].scope;
    if (scope == BERTH_SCOPE_PARAM || scope == BERTH_SCOPE_WORKSPACE)
        return problem(c, "buffer \"%s\" of scope %s is declared in the body",
                       buf_name(c, node->buf), berth_buf_scope_name(scope));
    bring_into_scope(c, false, node->buf);
    return BERTH_OK;
}

static berth_status check_if(checker *c, const berth_stmt_node *node) {
    BERTH_TRY(check_expr(c, node->value));
    if (c->fn->exprs.data[node->value].dtype != BERTH_DTYPE_BOOL ||
        c->fn->exprs.data[node->value].lanes != 1)
        return problem(c, "the condition of an if is no bool");
    BERTH_TRY(check_block(c, node->body));
    return check_block(c, node->other);
}

static berth_status check_call(checker *c, const berth_stmt_node *node) {
    if (node->first > c->fn->regions.count || node->count > c->fn->regions.count - node->first)
        return problem(c, "the arguments of a call are missing");
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *region = &c->fn->regions.data[node->first + i];
        int rank = region->buf < c->fn->bufs.count ? c->fn->bufs.data[region->buf].rank : 0;
        BERTH_TRY(check_access(c, region->buf, region->starts, rank));
        for (int d = 0; d < rank; ++d)
            if (c->fn->exprs.data[region->starts[d]].lanes != 1)
                return problem(c, "argument %u of a call begins at a vector of indices", i);
    }
    berth_vec_push(c->arena, &c->calls, (uint32_t)(node - c->fn->stmts.data));
    return BERTH_OK;
}

// Once all statements are proper: the boundaries of calls.
static berth_status check_boundaries(const checker *c) {
    if (!c->calls.count) return BERTH_OK;
    berth_ranges ranges = berth_ranges_collect_in(c->fn, c->arena);
    for (uint32_t i = 0; i < c->calls.count; ++i) {
        const berth_stmt_node *call = &c->fn->stmts.data[c->calls.data[i]];
        const char *what = berth_tfn_call_problem(c->fn, call, &ranges, c->arena);
        if (what) return problem(c, "%s", what);
    }
    return BERTH_OK;
}

static berth_status check_stmt(checker *c, berth_stmt id) {
    if (id == 0) return BERTH_OK;
    if (id >= c->fn->stmts.count) return problem(c, "a statement is missing");
    c->statement++;
    if (++c->depth > 2000) return problem(c, "statements nest too deep");
    const berth_stmt_node *node = &c->fn->stmts.data[id];
    uint32_t mark = c->scope.count;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            BERTH_TRY(check_stmt(c, berth_tfn_seq_items(c->fn, id)[i]));
        leave_scope(c, mark);
        break;
    case BERTH_STMT_FOR: BERTH_TRY(check_for(c, node)); break;
    case BERTH_STMT_STORE: BERTH_TRY(check_store(c, id, node)); break;
    case BERTH_STMT_LET: BERTH_TRY(check_let(c, node)); break;
    case BERTH_STMT_IF: BERTH_TRY(check_if(c, node)); break;
    case BERTH_STMT_ALLOC: BERTH_TRY(check_alloc(c, node)); break;
    case BERTH_STMT_BARRIER:
        if (berth_tfn_pending_of(node) > BERTH_TFN_MOST_PENDING)
            return problem(c, "a barrier with more than %d pending", BERTH_TFN_MOST_PENDING);
        if (berth_tfn_products_of(node) > BERTH_TFN_MOST_PRODUCTS)
            return problem(c, "a barrier with more than %d products", BERTH_TFN_MOST_PRODUCTS);
        break;
    case BERTH_STMT_CALL: BERTH_TRY(check_call(c, node)); break;
    default: return problem(c, "a statement of no kind");
    }
    c->depth--;
    return BERTH_OK;
}

static berth_status check_bufs(checker *c) {
    for (uint32_t i = 0; i < c->fn->bufs.count; ++i) {
        const berth_buf_info *buf = &c->fn->bufs.data[i];
        berth_layout layout;
        bool param = i < c->fn->param_count;
        if (param != (buf->scope == BERTH_SCOPE_PARAM) || (param && buf->role == BERTH_ROLE_NONE))
            return problem(c, "buffer \"%s\": only parameters have the scope param and a role",
                           buf_name(c, i));
        if (buf->dtype == BERTH_DTYPE_NONE || buf->dtype >= BERTH_DTYPE_COUNT || buf->lanes == 0 ||
            buf->rank < 0 || buf->rank > BERTH_MAX_RANK)
            return problem(c, "buffer \"%s\" has no proper type", buf_name(c, i));
        berth_status status =
            berth_layout_parse(berth_module_str(c->fn->module, buf->layout), buf->rank, &layout);
        if (status)
            return berth_status_prefix(status, "function @%s, buffer \"%s\"", c->name,
                                       buf_name(c, i));
        if (param || buf->scope == BERTH_SCOPE_WORKSPACE) c->buf_seen[i] = true;
    }
    return BERTH_OK;
}

berth_status berth_verify__tfn(const berth_module *module, berth_func_id function) {
    const berth_tfn *fn = berth_tfn_get(module, function);
    berth_arena *arena = berth_arena_create_child(module->arena);
    checker c = {.fn = fn,
                 .name = berth_module_str(module, berth_module_function(module, function)->name),
                 .arena = arena,
                 .var_seen = berth_arena_new_array(arena, bool, fn->vars.count),
                 .buf_seen = berth_arena_new_array(arena, bool, fn->bufs.count),
                 .checked = berth_arena_new_array(arena, uint32_t, fn->exprs.count)};
    berth_status status = check_bufs(&c);
    if (!status) status = check_stmt(&c, fn->body);
    if (!status) status = check_boundaries(&c);
    berth_arena_destroy(arena);
    return status;
}

// ---- external functions -------------------------------------------------------------------------

berth_status berth_verify__external(const berth_module *module, berth_func_id function) {
    const berth_external *external = berth_external_get(module, function);
    const char *name = berth_module_str(module, berth_module_function(module, function)->name);
    if (berth_type_get(module, external->type)->kind != BERTH_TYPE_FUNCTION)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "function @%s: its type is no function type", name);
    if (!external->language || !external->symbol)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function @%s: no language or no symbol",
                                 name);
    if (external->file && external->code_size_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "function @%s: code of its own, and a file: one of them", name);
    if (external->code_size_bytes && !external->code)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function @%s: its code is missing", name);
    return BERTH_OK;
}
