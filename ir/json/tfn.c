// JSON of tensor functions: buffers, variables and expressions by number (expressions only refer to
// ones before them, so that shared parts stay shared), and the body as nested statements.
#include <string.h>

#include "ir/json/hooks.h"
#include "ir/json/reader.h"
#include "ir/json/writer.h"
#include "ir/tensor/copies.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tensor/type.h"

static const char *const expr_kinds[] = {
    "none",   "int",  "float",     "var",  "load",       "unary",     "binary", "fma",
    "select", "cast", "broadcast", "ramp", "reduce_add", "intrinsic", "symbol"};
static const char *const stmt_kinds[] = {"none", "seq",   "for",     "store", "let",
                                         "if",   "alloc", "barrier", "call"};

// ---- writing ------------------------------------------------------------------------------------

typedef struct tfn_writer {
    berth_json_writer *w;
    const berth_tfn *fn;
    json_t *exprs;
    uint32_t *number;  // per expression, + 1; 0 = not written so far
} tfn_writer;

static void put_tfn_type(tfn_writer *t, json_t *object, berth_tfn_type type) {
    char text[24];
    berth_tfn_type_format(type, text);
    berth_json_put(t->w, object, "type", json_string(text));
}

static uint32_t put_expr(tfn_writer *t, berth_expr id);

static void put_ids(tfn_writer *t, json_t *object, const char *key, const uint32_t *ids,
                    uint32_t count) {
    json_t *array = berth_json_put_array(t->w, object, key);
    for (uint32_t i = 0; i < count; ++i) berth_json_put_int(t->w, array, NULL, ids[i]);
}

// Numbers of the expressions, which are written before.
static uint32_t *number_all(tfn_writer *t, const berth_expr *ids, uint32_t count) {
    uint32_t *numbers = berth_arena_new_array(t->w->scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) numbers[i] = put_expr(t, ids[i]);
    return numbers;
}

static uint32_t operand_count(const berth_expr_node *node) {
    return node->c ? 3 : node->b ? 2 : node->a ? 1 : 0;
}

static uint32_t put_expr(tfn_writer *t, berth_expr id) {
    if (t->number[id]) return t->number[id] - 1;
    const berth_expr_node *node = &t->fn->exprs.data[id];
    bool load = node->kind == BERTH_EXPR_LOAD;
    bool leaf = node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
                node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_SYMBOL;
    const berth_expr operands[] = {node->a, node->b, node->c};
    uint32_t count = load ? node->index_count : leaf ? 0 : operand_count(node);
    uint32_t *numbers = number_all(t, load ? berth_tfn_load_indices(t->fn, id) : operands, count);
    uint32_t number = (uint32_t)json_array_size(t->exprs);
    json_t *object = berth_json_put_object(t->w, t->exprs, NULL);
    berth_json_put(t->w, object, "kind", json_string(expr_kinds[node->kind]));
    put_tfn_type(t, object, berth_tfn_type_of(t->fn, id));
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT: berth_json_put_int(t->w, object, "value", node->i); break;
    case BERTH_EXPR_SYMBOL: berth_json_put_dims(t->w, object, "shape", 1, &node->i); break;
    case BERTH_EXPR_FLOAT: berth_json_put_float(t->w, object, "value", node->f); break;
    case BERTH_EXPR_VAR: berth_json_put_int(t->w, object, "variable", node->var); break;
    case BERTH_EXPR_LOAD: berth_json_put_int(t->w, object, "buffer", node->load.buf); break;
    case BERTH_EXPR_UNARY:
        berth_json_put(t->w, object, "op", json_string(berth_unary_name((berth_unary)node->op)));
        break;
    case BERTH_EXPR_BINARY:
        berth_json_put(t->w, object, "op", json_string(berth_binary_name((berth_binary)node->op)));
        break;
    case BERTH_EXPR_INTRINSIC:
        berth_json_put(t->w, object, "op",
                       json_string(berth_intrinsic_get((berth_intrinsic)node->op)->name));
        break;
    default: break;
    }
    if (!leaf) put_ids(t, object, load ? "indices" : "operands", numbers, count);
    t->number[id] = number + 1;
    return number;
}

static void put_expr_ref(tfn_writer *t, json_t *object, const char *key, berth_expr id) {
    berth_json_put_int(t->w, object, key, put_expr(t, id));
}

// A call's arguments: the buffer, and per dimension where the region begins and how long it is
// (-1: one index, and no dimension of the parameter).
static void put_regions(tfn_writer *t, json_t *object, const berth_stmt_node *node) {
    json_t *array = berth_json_put_array(t->w, object, "arguments");
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *region = &t->fn->regions.data[node->first + i];
        int rank = t->fn->bufs.data[region->buf].rank;
        uint32_t *starts = number_all(t, region->starts, (uint32_t)rank);
        json_t *item = berth_json_put_object(t->w, array, NULL);
        berth_json_put_int(t->w, item, "buffer", region->buf);
        put_ids(t, item, "starts", starts, (uint32_t)rank);
        json_t *extents = berth_json_put_array(t->w, item, "extents");
        for (int d = 0; d < rank; ++d) berth_json_put_int(t->w, extents, NULL, region->extents[d]);
    }
}

static void put_stmt(tfn_writer *t, json_t *parent, const char *key, berth_stmt id) {
    const berth_stmt_node *node = &t->fn->stmts.data[id];
    if (id == 0) {
        berth_json_put(t->w, parent, key, json_null());
        return;
    }
    json_t *object = berth_json_put_object(t->w, parent, key);
    berth_json_put(t->w, object, "kind", json_string(stmt_kinds[node->kind]));
    if (node->kind == BERTH_STMT_FOR)
        berth_json_put(t->w, object, "loop",
                       json_string(berth_loop_name((berth_loop_kind)node->loop_kind)));
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_LET)
        berth_json_put_int(t->w, object, "variable", node->var);
    if (node->kind == BERTH_STMT_STORE || node->kind == BERTH_STMT_ALLOC)
        berth_json_put_int(t->w, object, "buffer", node->buf);
    if (node->kind == BERTH_STMT_STORE)
        put_ids(t, object, "indices",
                number_all(t, berth_tfn_store_indices(t->fn, id), node->index_count),
                node->index_count);
    if (node->kind == BERTH_STMT_BARRIER && berth_tfn_pending_of(node) >= 0)
        berth_json_put_int(t->w, object, "pending", berth_tfn_pending_of(node));
    if (node->kind == BERTH_STMT_BARRIER && berth_tfn_products_of(node) > 0)
        berth_json_put_int(t->w, object, "products", berth_tfn_products_of(node));
    if (node->kind == BERTH_STMT_CALL) {
        berth_json_put_function(t->w, object, "callee", node->callee);
        put_regions(t, object, node);
    }
    if (node->value) put_expr_ref(t, object, "value", node->value);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        put_stmt(t, object, "body", node->body);
    if (node->kind == BERTH_STMT_IF && node->other) put_stmt(t, object, "else", node->other);
    if (node->kind != BERTH_STMT_SEQ) return;
    json_t *items = berth_json_put_array(t->w, object, "items");
    for (uint32_t i = 0; i < node->count; ++i)
        put_stmt(t, items, NULL, berth_tfn_seq_items(t->fn, id)[i]);
}

static void put_bufs(tfn_writer *t, json_t *object) {
    json_t *array = berth_json_put_array(t->w, object, "buffers");
    for (uint32_t i = 0; i < t->fn->bufs.count; ++i) {
        const berth_buf_info *buf = &t->fn->bufs.data[i];
        json_t *item = berth_json_put_object(t->w, array, NULL);
        berth_json_put_str(t->w, item, "name", buf->name);
        put_tfn_type(t, item, (berth_tfn_type){buf->dtype, false, buf->lanes});
        berth_json_put_dims(t->w, item, "shape", buf->rank, buf->dims);
        if (buf->layout) berth_json_put_str(t->w, item, "layout", buf->layout);
        berth_json_put(t->w, item, "scope", json_string(berth_buf_scope_name(buf->scope)));
        berth_json_put(t->w, item, "role", json_string(berth_buf_role_name(buf->role)));
        if (buf->memory_scope) berth_json_put_str(t->w, item, "memory_scope", buf->memory_scope);
    }
}

void berth_json__write_tfn(berth_json_writer *w, berth_func_id function, json_t *object) {
    const berth_tfn *fn = berth_tfn_get(w->module, function);
    tfn_writer t = {.w = w, .fn = fn};
    t.number = berth_arena_new_array(w->scratch, uint32_t, fn->exprs.count);
    berth_json_put_int(w, object, "param_count", fn->param_count);
    put_bufs(&t, object);
    json_t *vars = berth_json_put_array(w, object, "variables");
    for (uint32_t i = 0; i < fn->vars.count; ++i) {
        json_t *item = berth_json_put_object(w, vars, NULL);
        berth_json_put_str(w, item, "name", fn->vars.data[i].name);
        put_tfn_type(&t, item, berth_tfn_type_of_var(fn, i));
    }
    t.exprs = berth_json_put_array(w, object, "expressions");
    put_stmt(&t, object, "body", fn->body);
    berth_json_put_float(w, object, "flops", fn->flops);
    berth_json_put_loc(w, object, "location", fn->loc);
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct tfn_reader {
    berth_json_reader *r;
    berth_tfn *fn;
    uint32_t expr_count;  // numbers in the JSON; node n is n + 1
} tfn_reader;

static berth_status get_name(berth_json_reader *r, const json_t *object, const char *key,
                             const char *const *names, int count, int *out) {
    const char *text = NULL;
    BERTH_TRY(berth_json_get_text(r, object, key, false, &text));
    for (*out = 0; *out < count; ++*out)
        if (strcmp(names[*out], text) == 0) return BERTH_OK;
    return berth_json_expected(r, key, "a known name");
}

static berth_status get_tfn_type(berth_json_reader *r, const json_t *object, berth_tfn_type *out) {
    const char *text = NULL;
    BERTH_TRY(berth_json_get_text(r, object, "type", false, &text));
    return berth_tfn_type_from_name(text, strlen(text), out)
               ? BERTH_OK
               : berth_json_expected(r, "type", "a type of elements");
}

// Expressions by number, as node ids in scratch memory.
static berth_status get_exprs(tfn_reader *t, const json_t *object, const char *key, uint32_t most,
                              berth_expr **out, uint32_t *out_count) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(t->r, object, key, false, &array));
    *out_count = (uint32_t)json_array_size(array);
    if (*out_count > most) return berth_json_expected(t->r, key, "fewer expressions");
    *out = berth_arena_new_array(t->r->scratch, berth_expr, most);
    for (uint32_t i = 0; i < *out_count; ++i) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) >= t->expr_count)
            return berth_json_expected(t->r, key, "numbers of expressions before this one");
        (*out)[i] = (berth_expr)json_integer_value(item) + 1;
    }
    return BERTH_OK;
}

static berth_status get_op(berth_json_reader *r, const json_t *object, berth_expr_node *node) {
    const char *text = NULL;
    berth_unary unary = BERTH_UNARY_NEG;
    berth_binary binary = BERTH_BINARY_ADD;
    berth_intrinsic intrinsic = BERTH_INTRINSIC_COUNT;
    bool fine = false;
    BERTH_TRY(berth_json_get_text(r, object, "op", false, &text));
    if (node->kind == BERTH_EXPR_UNARY) {
        fine = berth_unary_from_name(text, strlen(text), &unary);
        node->op = (uint8_t)unary;
    } else if (node->kind == BERTH_EXPR_BINARY) {
        fine = berth_binary_from_name(text, strlen(text), &binary);
        node->op = (uint8_t)binary;
    } else {
        fine = berth_intrinsic_from_name(text, strlen(text), &intrinsic);
        node->op = (uint8_t)intrinsic;
    }
    return fine ? BERTH_OK : berth_json_expected(r, "op", "an operator");
}

static uint32_t operands_of(const berth_expr_node *node) {
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_BINARY: return 2;
    case BERTH_EXPR_FMA:
    case BERTH_EXPR_SELECT: return 3;
    case BERTH_EXPR_INTRINSIC:
        return (uint32_t)berth_intrinsic_operand_count(
            berth_intrinsic_get((berth_intrinsic)node->op));
    default: return 1;
    }
}

static berth_status read_operands(tfn_reader *t, const json_t *object, berth_expr_node *node) {
    berth_expr *ids = NULL;
    uint32_t count = 0;
    if (node->kind == BERTH_EXPR_LOAD) {
        BERTH_TRY(berth_json_get_id(t->r, object, "buffer", t->fn->bufs.count, &node->load.buf));
        BERTH_TRY(get_exprs(t, object, "indices", BERTH_MAX_RANK, &ids, &count));
        node->index_count = (uint16_t)count;
        node->load.first_index = t->fn->lists.count;
        for (uint32_t i = 0; i < count; ++i)
            berth_vec_push(t->r->module->arena, &t->fn->lists, ids[i]);
        return BERTH_OK;
    }
    BERTH_TRY(get_exprs(t, object, "operands", 3, &ids, &count));
    if (count != operands_of(node))
        return berth_json_expected(t->r, "operands", "as many as the kind has");
    node->a = ids[0];
    node->b = ids[1];
    node->c = ids[2];
    return BERTH_OK;
}

// {"shape": ["N"]}, as a shape of one dimension.
static berth_status get_symbol(tfn_reader *t, const json_t *object, int64_t *out_symbol) {
    int rank = 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_json_get_dims(t->r, object, "shape", &rank, dims));
    if (rank != 1 || !berth_dim_is_symbol(dims[0]))
        return berth_json_expected(t->r, "shape", "one symbol");
    *out_symbol = dims[0];
    return BERTH_OK;
}

static berth_status read_expr(tfn_reader *t, const json_t *object) {
    berth_expr_node node = {0};
    int kind = 0;
    berth_tfn_type type;
    BERTH_TRY(get_name(t->r, object, "kind", expr_kinds, sizeof(expr_kinds) / sizeof(expr_kinds[0]),
                       &kind));
    BERTH_TRY(get_tfn_type(t->r, object, &type));
    node.kind = (uint8_t)kind;
    node.dtype = (uint8_t)type.dtype;
    node.is_index = type.is_index;
    node.lanes = type.lanes;
    switch ((berth_expr_kind)kind) {
    case BERTH_EXPR_NONE: return berth_json_expected(t->r, "kind", "an expression");
    case BERTH_EXPR_INT:
        BERTH_TRY(berth_json_get_int(t->r, object, "value", false, INT64_MIN, INT64_MAX, &node.i));
        break;
    case BERTH_EXPR_SYMBOL: BERTH_TRY(get_symbol(t, object, &node.i)); break;
    case BERTH_EXPR_FLOAT: BERTH_TRY(berth_json_get_float(t->r, object, "value", &node.f)); break;
    case BERTH_EXPR_VAR:
        BERTH_TRY(berth_json_get_id(t->r, object, "variable", t->fn->vars.count, &node.var));
        break;
    case BERTH_EXPR_UNARY:
    case BERTH_EXPR_BINARY:
    case BERTH_EXPR_INTRINSIC:
        BERTH_TRY(get_op(t->r, object, &node));
        BERTH_TRY(read_operands(t, object, &node));
        break;
    default: BERTH_TRY(read_operands(t, object, &node)); break;
    }
    berth_expr id = berth_tfn_add_expr(t->fn, node);
    if (t->fn->exprs.data[id].depth > BERTH_TFN_MAX_DEPTH)
        return berth_json_expected(t->r, "operands", "expressions that nest at most 2000 deep");
    t->expr_count++;
    return BERTH_OK;
}

static berth_status get_expr(tfn_reader *t, const json_t *object, berth_expr *out) {
    BERTH_TRY(berth_json_get_id(t->r, object, "value", t->expr_count, out));
    (*out)++;
    return BERTH_OK;
}

static berth_status read_item(tfn_reader *t, const json_t *object, bool in_sequence,
                              berth_stmt *out);
static berth_status read_stmt(tfn_reader *t, const json_t *object, berth_stmt *out);

static berth_status read_seq(tfn_reader *t, const json_t *object, berth_stmt *out) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(t->r, object, "items", false, &array));
    uint32_t count = (uint32_t)json_array_size(array);
    berth_stmt *items = berth_arena_new_array(t->r->scratch, berth_stmt, count);
    for (uint32_t i = 0; i < count; ++i) {
        size_t mark = berth_json_enter(t->r, NULL, i);
        BERTH_TRY(read_item(t, json_array_get(array, i), true, &items[i]));
        berth_json_leave(t->r, mark);
    }
    *out = berth_tfn_seq(t->fn, items, count);
    return BERTH_OK;
}

static berth_status read_store(tfn_reader *t, const json_t *object, berth_stmt_node *node) {
    berth_expr *indices = NULL;
    uint32_t count = 0;
    BERTH_TRY(get_exprs(t, object, "indices", BERTH_MAX_RANK, &indices, &count));
    node->index_count = (uint16_t)count;
    node->first = t->fn->lists.count;
    for (uint32_t i = 0; i < count; ++i)
        berth_vec_push(t->r->module->arena, &t->fn->lists, indices[i]);
    return BERTH_OK;
}

static berth_status read_region(tfn_reader *t, const json_t *item, berth_tfn_region *region) {
    berth_expr *starts = NULL;
    uint32_t count = 0;
    const json_t *extents = NULL;
    BERTH_TRY(berth_json_get_id(t->r, item, "buffer", t->fn->bufs.count, &region->buf));
    uint32_t rank = (uint32_t)t->fn->bufs.data[region->buf].rank;
    BERTH_TRY(get_exprs(t, item, "starts", BERTH_MAX_RANK, &starts, &count));
    BERTH_TRY(berth_json_get_array(t->r, item, "extents", false, &extents));
    if (count != rank || json_array_size(extents) != rank)
        return berth_json_expected(t->r, "extents", "as many as the buffer has dimensions");
    for (uint32_t d = 0; d < rank; ++d) {
        const json_t *extent = json_array_get(extents, d);
        if (!json_is_integer(extent) || json_integer_value(extent) < BERTH_REGION_POINT)
            return berth_json_expected(t->r, "extents", "numbers of elements, or -1");
        region->starts[d] = starts[d];
        region->extents[d] = json_integer_value(extent);
    }
    return BERTH_OK;
}

static berth_status read_call(tfn_reader *t, const json_t *object, berth_stmt_node *node) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_function(t->r, object, "callee", &node->callee));
    BERTH_TRY(berth_json_get_array(t->r, object, "arguments", false, &array));
    node->first = t->fn->regions.count;
    node->count = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < node->count; ++i) {
        berth_tfn_region region = {0};
        size_t mark = berth_json_enter(t->r, "arguments", 0);
        (void)berth_json_enter(t->r, NULL, i);
        BERTH_TRY(read_region(t, json_array_get(array, i), &region));
        berth_json_leave(t->r, mark);
        berth_vec_push(t->r->module->arena, &t->fn->regions, region);
    }
    return BERTH_OK;
}

static berth_status read_barrier(tfn_reader *t, const json_t *object, berth_stmt_node *node) {
    int64_t pending = -1, products = 0;
    BERTH_TRY(
        berth_json_get_int(t->r, object, "pending", true, 0, BERTH_TFN_MOST_PENDING, &pending));
    if (pending >= 0)
        BERTH_TRY(berth_json_get_int(t->r, object, "products", true, 0, BERTH_TFN_MOST_PRODUCTS,
                                     &products));
    node->count = berth_tfn_barrier_count(pending, products);
    return BERTH_OK;
}

static berth_status read_parts(tfn_reader *t, const json_t *object, berth_stmt_node *node) {
    const char *loop = NULL;
    berth_loop_kind loop_kind = BERTH_LOOP_SERIAL;
    if (node->kind == BERTH_STMT_FOR) {
        BERTH_TRY(berth_json_get_text(t->r, object, "loop", false, &loop));
        if (!berth_loop_from_name(loop, strlen(loop), &loop_kind))
            return berth_json_expected(t->r, "loop", "a kind of loop");
        node->loop_kind = (uint8_t)loop_kind;
    }
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_LET)
        BERTH_TRY(berth_json_get_id(t->r, object, "variable", t->fn->vars.count, &node->var));
    if (node->kind == BERTH_STMT_STORE || node->kind == BERTH_STMT_ALLOC)
        BERTH_TRY(berth_json_get_id(t->r, object, "buffer", t->fn->bufs.count, &node->buf));
    if (node->kind == BERTH_STMT_STORE) BERTH_TRY(read_store(t, object, node));
    if (node->kind == BERTH_STMT_CALL) return read_call(t, object, node);
    if (node->kind == BERTH_STMT_BARRIER) return read_barrier(t, object, node);
    if (node->kind != BERTH_STMT_ALLOC) BERTH_TRY(get_expr(t, object, &node->value));
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        BERTH_TRY(read_stmt(t, json_object_get(object, "body"), &node->body));
    if (node->kind == BERTH_STMT_IF && json_object_get(object, "else"))
        BERTH_TRY(read_stmt(t, json_object_get(object, "else"), &node->other));
    return BERTH_OK;
}

// A sequence is no level of its own, as in the text form, unless it is an item of another.
static berth_status read_item(tfn_reader *t, const json_t *object, bool in_sequence,
                              berth_stmt *out) {
    int kind = 0;
    *out = 0;
    if (json_is_null(object)) return BERTH_OK;
    BERTH_TRY(berth_limit_item(&t->r->watch));
    BERTH_TRY(get_name(t->r, object, "kind", stmt_kinds, sizeof(stmt_kinds) / sizeof(stmt_kinds[0]),
                       &kind));
    berth_stmt_node node = {.kind = (uint8_t)kind};
    if (kind == BERTH_STMT_NONE) return berth_json_expected(t->r, "kind", "a statement");
    bool level = kind != BERTH_STMT_SEQ || in_sequence;
    if (level) BERTH_TRY(berth_json_descend(t->r, "statements"));
    if (kind == BERTH_STMT_SEQ) {
        BERTH_TRY(read_seq(t, object, out));
    } else {
        BERTH_TRY(read_parts(t, object, &node));
        berth_vec_push(t->r->module->arena, &t->fn->stmts, node);
        *out = t->fn->stmts.count - 1;
    }
    if (level) berth_json_ascend(t->r);
    return BERTH_OK;
}

static berth_status read_stmt(tfn_reader *t, const json_t *object, berth_stmt *out) {
    return read_item(t, object, false, out);
}

static berth_status read_buf(tfn_reader *t, const json_t *object) {
    static const char *const scopes[] = {"param", "workspace", "register", "private", "local"};
    static const char *const roles[] = {"in", "out", "inout", "none"};
    berth_buf_info info = {0};
    berth_tfn_type type;
    int scope = 0;
    int role = 0;
    BERTH_TRY(berth_json_get_str(t->r, object, "name", false, &info.name));
    BERTH_TRY(get_tfn_type(t->r, object, &type));
    BERTH_TRY(berth_json_get_dims(t->r, object, "shape", &info.rank, info.dims));
    BERTH_TRY(berth_json_get_str(t->r, object, "layout", true, &info.layout));
    BERTH_TRY(get_name(t->r, object, "scope", scopes, 5, &scope));
    BERTH_TRY(get_name(t->r, object, "role", roles, 4, &role));
    BERTH_TRY(berth_json_get_str(t->r, object, "memory_scope", true, &info.memory_scope));
    if (info.rank < 0) return berth_json_expected(t->r, "shape", "a known rank");
    if (type.is_index) return berth_json_expected(t->r, "type", "no index type");
    info.dtype = type.dtype;
    info.lanes = type.lanes;
    info.scope = (berth_buf_scope)scope;
    info.role = (berth_buf_role)role;
    (void)berth_tfn_add_buf(t->fn, info);
    return BERTH_OK;
}

static berth_status read_var(tfn_reader *t, const json_t *object) {
    const char *name = NULL;
    berth_tfn_type type;
    BERTH_TRY(berth_json_get_text(t->r, object, "name", false, &name));
    BERTH_TRY(get_tfn_type(t->r, object, &type));
    (void)berth_tfn_let_var(t->fn, name, type.dtype, type.lanes, type.is_index);
    return BERTH_OK;
}

static berth_status read_all(tfn_reader *t, const json_t *object, const char *key,
                             berth_status (*read)(tfn_reader *t, const json_t *item)) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(t->r, object, key, false, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
        size_t mark = berth_json_enter(t->r, key, 0);
        (void)berth_json_enter(t->r, NULL, i);
        BERTH_TRY(read(t, json_array_get(array, i)));
        berth_json_leave(t->r, mark);
    }
    return BERTH_OK;
}

berth_status berth_json__read_tfn(berth_json_reader *r, const json_t *object,
                                  berth_func_id function) {
    tfn_reader t = {.r = r, .fn = berth_tfn_new_body(r->module, 0)};
    int64_t params = 0;
    berth_module_function(r->module, function)->body = t.fn;
    BERTH_TRY(read_all(&t, object, "buffers", read_buf));
    BERTH_TRY(read_all(&t, object, "variables", read_var));
    BERTH_TRY(read_all(&t, object, "expressions", read_expr));
    BERTH_TRY(berth_json_get_int(r, object, "param_count", false, 0, t.fn->bufs.count, &params));
    t.fn->param_count = (uint32_t)params;
    size_t mark = berth_json_enter(r, "body", 0);
    BERTH_TRY(read_stmt(&t, json_object_get(object, "body"), &t.fn->body));
    berth_json_leave(r, mark);
    BERTH_TRY(berth_json_get_float(r, object, "flops", &t.fn->flops));
    return berth_json_get_loc(r, object, "location", &t.fn->loc);
}
