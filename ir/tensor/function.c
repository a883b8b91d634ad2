// Building tensor functions: buffers, expressions (with folding of index arithmetic), statements.
#include "ir/tensor/function.h"

#include <math.h>
#include <string.h>

#include "ir/dim.h"

#include "ir/dialect.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tensor/range.h"

berth_tfn *berth_tfn_new_body(berth_module *module, berth_loc_id loc) {
    berth_tfn *fn = berth_arena_new(module->arena, berth_tfn);
    fn->module = module;
    fn->loc = loc;
    berth_vec_push(module->arena, &fn->exprs, (berth_expr_node){0});
    berth_vec_push(module->arena, &fn->stmts, (berth_stmt_node){0});
    return fn;
}

berth_func_id berth_tfn_create(berth_module *module, const char *name, berth_loc_id loc) {
    berth_tfn *fn = berth_tfn_new_body(module, loc);
    return berth_module_add_function(module, name, &berth_dialect_tensor, fn, loc);
}

berth_tfn *berth_tfn_get(const berth_module *module, berth_func_id function) {
    const berth_function *held = berth_module_function(module, function);
    return held && held->dialect == &berth_dialect_tensor ? held->body : NULL;
}

berth_tfn *berth_tfn_copy_body(berth_module *module, const berth_tfn *body) {
    berth_arena *arena = module->arena;
    berth_tfn *fn = berth_arena_copy(arena, body, sizeof(*fn));
    fn->module = module;
    berth_vec_own(arena, &fn->exprs);
    berth_vec_own(arena, &fn->stmts);
    berth_vec_own(arena, &fn->lists);
    berth_vec_own(arena, &fn->regions);
    berth_vec_own(arena, &fn->bufs);
    berth_vec_own(arena, &fn->vars);
    return fn;
}

berth_func_id berth_tfn_clone(berth_module *module, berth_func_id function, const char *name) {
    const berth_function *held = berth_module_function(module, function);
    berth_attrs attrs = held->attrs;
    berth_loc_id loc = held->loc;
    berth_tfn *fn = berth_tfn_copy_body(module, berth_tfn_get(module, function));
    berth_vec_own(module->arena, &attrs.items);
    berth_func_id clone = berth_module_add_function(module, name, &berth_dialect_tensor, fn, loc);
    berth_module_function(module, clone)->attrs = attrs;
    return clone;
}

berth_buf berth_tfn_add_buf(berth_tfn *fn, berth_buf_info info) {
    berth_vec_push(fn->module->arena, &fn->bufs, info);
    return fn->bufs.count - 1;
}

berth_buf berth_tfn_param(berth_tfn *fn, const char *name, berth_type_id tensor_type,
                          berth_buf_role role) {
    const berth_type *type = berth_type_get(fn->module, tensor_type);
    berth_buf_info info = {.name = berth_module_intern(fn->module, name),
                           .dtype = type->dtype,
                           .lanes = 1,
                           .rank = type->rank,
                           .layout = type->layout,
                           .scope = BERTH_SCOPE_PARAM,
                           .role = role};
    memcpy(info.dims, type->dims, sizeof(info.dims));
    berth_buf buf = berth_tfn_add_buf(fn, info);
    fn->param_count = fn->bufs.count;
    return buf;
}

berth_buf berth_tfn_buffer(berth_tfn *fn, const char *name, berth_dtype dtype, int rank,
                           const int64_t *dims, berth_buf_scope scope) {
    berth_buf_info info = {.name = berth_module_intern(fn->module, name),
                           .dtype = dtype,
                           .lanes = 1,
                           .rank = rank,
                           .scope = scope,
                           .role = BERTH_ROLE_NONE};
    for (int i = 0; i < rank; ++i) info.dims[i] = dims[i];
    return berth_tfn_add_buf(fn, info);
}

berth_var berth_tfn_let_var(berth_tfn *fn, const char *name, berth_dtype dtype, uint16_t lanes,
                            bool is_index) {
    berth_var_info info = {.name = berth_module_intern(fn->module, name),
                           .dtype = dtype,
                           .is_index = is_index,
                           .lanes = lanes};
    berth_vec_push(fn->module->arena, &fn->vars, info);
    return fn->vars.count - 1;
}

berth_var berth_tfn_var(berth_tfn *fn, const char *name) {
    return berth_tfn_let_var(fn, name, BERTH_DTYPE_I64, 1, true);
}

bool berth_tfn_loop_varies(const berth_tfn *fn, berth_var loop) {
    return fn->any_size && !fn->vars.data[loop].keeps_extent;
}

int64_t berth_tfn_most_iterations(const berth_tfn *fn, berth_var loop, int64_t extent) {
    const int64_t *extents = fn->vars.data[loop].extents;
    for (uint32_t i = 0; extents && i < fn->size_count; ++i)
        if (extents[i] > extent) extent = extents[i];
    return extent;
}

// ---- expressions --------------------------------------------------------------------------------

static uint32_t deeper(const berth_tfn *fn, uint32_t depth, berth_expr operand) {
    uint32_t own = fn->exprs.data[operand].depth;
    return own > depth ? own : depth;
}

berth_expr berth_tfn_add_expr(berth_tfn *fn, berth_expr_node node) {
    uint32_t depth = 0;
    if (node.kind == BERTH_EXPR_LOAD)
        for (uint32_t i = 0; i < node.index_count; ++i)
            depth = deeper(fn, depth, fn->lists.data[node.load.first_index + i]);
    else
        depth = deeper(fn, deeper(fn, deeper(fn, 0, node.a), node.b), node.c);
    node.depth = depth + 1;
    berth_vec_push(fn->module->arena, &fn->exprs, node);
    return fn->exprs.count - 1;
}

berth_expr berth_tfn_index(berth_tfn *fn, int64_t value) {
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_INT,
                                                    .dtype = BERTH_DTYPE_I64,
                                                    .is_index = true,
                                                    .lanes = 1,
                                                    .i = value});
}

berth_expr berth_tfn_int(berth_tfn *fn, berth_dtype dtype, int64_t value) {
    return berth_tfn_add_expr(
        fn,
        (berth_expr_node){.kind = BERTH_EXPR_INT, .dtype = (uint8_t)dtype, .lanes = 1, .i = value});
}

berth_expr berth_tfn_float(berth_tfn *fn, berth_dtype dtype, double value) {
    return berth_tfn_add_expr(
        fn, (berth_expr_node){
                .kind = BERTH_EXPR_FLOAT, .dtype = (uint8_t)dtype, .lanes = 1, .f = value});
}

berth_expr berth_tfn_const(berth_tfn *fn, berth_dtype dtype, double value) {
    if (berth_dtype_is_float(dtype)) return berth_tfn_float(fn, dtype, value);
    return berth_tfn_int(fn, dtype, (int64_t)value);
}

berth_expr berth_tfn_var_ref(berth_tfn *fn, berth_var var) {
    const berth_var_info *info = &fn->vars.data[var];
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_VAR,
                                                    .dtype = (uint8_t)info->dtype,
                                                    .is_index = info->is_index,
                                                    .lanes = info->lanes,
                                                    .var = var});
}

static uint32_t add_list(berth_tfn *fn, const uint32_t *items, uint32_t count) {
    uint32_t first = fn->lists.count;
    berth_vec_reserve(fn->module->arena, &fn->lists, first + count);
    for (uint32_t i = 0; i < count; ++i) fn->lists.data[first + i] = items[i];
    fn->lists.count += count;
    return first;
}

// Lanes of an access: those of its buffer's elements, or of a vector index.
static uint16_t access_lanes(const berth_tfn *fn, berth_buf buf, const berth_expr *indices,
                             int count) {
    uint16_t lanes = fn->bufs.data[buf].lanes;
    for (int i = 0; i < count; ++i)
        if (fn->exprs.data[indices[i]].lanes > lanes) lanes = fn->exprs.data[indices[i]].lanes;
    return lanes;
}

berth_expr berth_tfn_load(berth_tfn *fn, berth_buf buf, const berth_expr *indices, int count) {
    berth_expr_node node = {.kind = BERTH_EXPR_LOAD,
                            .dtype = (uint8_t)fn->bufs.data[buf].dtype,
                            .lanes = access_lanes(fn, buf, indices, count),
                            .index_count = (uint16_t)count};
    node.load.buf = buf;
    node.load.first_index = add_list(fn, indices, (uint32_t)count);
    return berth_tfn_add_expr(fn, node);
}

bool berth_tfn_const_value(const berth_tfn *fn, berth_expr id, int64_t *out_value) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind != BERTH_EXPR_INT) return false;
    *out_value = node->i;
    return true;
}

berth_expr berth_tfn_unary(berth_tfn *fn, berth_unary op, berth_expr a) {
    berth_expr_node node = fn->exprs.data[a];
    if (node.kind == BERTH_EXPR_INT && node.is_index && op == BERTH_UNARY_NEG)
        return berth_tfn_index(fn, -node.i);
    bool predicate = op == BERTH_UNARY_NOT || op == BERTH_UNARY_IS_NAN || op == BERTH_UNARY_IS_INF;
    return berth_tfn_add_expr(fn,
                              (berth_expr_node){.kind = BERTH_EXPR_UNARY,
                                                .op = (uint8_t)op,
                                                .dtype = predicate ? BERTH_DTYPE_BOOL : node.dtype,
                                                .is_index = node.is_index && !predicate,
                                                .lanes = node.lanes,
                                                .a = a});
}

static bool is_comparison(berth_binary op) {
    return op >= BERTH_BINARY_EQ && op <= BERTH_BINARY_GE;
}

static bool is_logic(berth_binary op) {
    return op == BERTH_BINARY_AND || op == BERTH_BINARY_OR || op == BERTH_BINARY_XOR;
}

static berth_expr bool_const(berth_tfn *fn, bool value) {
    return berth_tfn_int(fn, BERTH_DTYPE_BOOL, value);
}

// Both operands are index constants.
static berth_expr fold_index(berth_tfn *fn, berth_binary op, int64_t x, int64_t y) {
    switch (op) {
    case BERTH_BINARY_ADD: return berth_tfn_index(fn, x + y);
    case BERTH_BINARY_SUB: return berth_tfn_index(fn, x - y);
    case BERTH_BINARY_MUL: return berth_tfn_index(fn, x * y);
    case BERTH_BINARY_DIV: return y > 0 ? berth_tfn_index(fn, berth_floor_div(x, y)) : 0;
    case BERTH_BINARY_MOD: return y > 0 ? berth_tfn_index(fn, x - berth_floor_div(x, y) * y) : 0;
    case BERTH_BINARY_MIN: return berth_tfn_index(fn, x < y ? x : y);
    case BERTH_BINARY_MAX: return berth_tfn_index(fn, x > y ? x : y);
    case BERTH_BINARY_EQ: return bool_const(fn, x == y);
    case BERTH_BINARY_NE: return bool_const(fn, x != y);
    case BERTH_BINARY_LT: return bool_const(fn, x < y);
    case BERTH_BINARY_LE: return bool_const(fn, x <= y);
    case BERTH_BINARY_GT: return bool_const(fn, x > y);
    case BERTH_BINARY_GE: return bool_const(fn, x >= y);
    default: return 0;
    }
}

// Identities with one constant operand (b); 0 when none applies.
static berth_expr fold_identity(berth_tfn *fn, berth_binary op, berth_expr a, int64_t y) {
    switch (op) {
    case BERTH_BINARY_ADD:
    case BERTH_BINARY_SUB: return y == 0 ? a : 0;
    case BERTH_BINARY_MUL: return y == 1 ? a : y == 0 ? berth_tfn_index(fn, 0) : 0;
    case BERTH_BINARY_DIV: return y == 1 ? a : 0;
    case BERTH_BINARY_MOD: return y == 1 ? berth_tfn_index(fn, 0) : 0;
    default: return 0;
    }
}

// Boolean constants decide or vanish.
static berth_expr fold_logic(berth_tfn *fn, berth_binary op, berth_expr a, berth_expr b) {
    int64_t value = 0;
    if (op == BERTH_BINARY_XOR) return 0;
    for (int side = 0; side < 2; ++side) {
        berth_expr constant = side ? b : a;
        berth_expr other = side ? a : b;
        if (fn->exprs.data[constant].dtype != BERTH_DTYPE_BOOL ||
            !berth_tfn_const_value(fn, constant, &value))
            continue;
        bool absorbing = (op == BERTH_BINARY_OR) == (value != 0);
        return absorbing ? constant : other;
    }
    return 0;
}

static berth_expr fold_binary(berth_tfn *fn, berth_binary op, berth_expr a, berth_expr b) {
    if (is_logic(op)) return fold_logic(fn, op, a, b);
    berth_expr_node x = fn->exprs.data[a];
    berth_expr_node y = fn->exprs.data[b];
    if (!x.is_index || !y.is_index || x.lanes != 1 || y.lanes != 1) return 0;
    if (x.kind == BERTH_EXPR_INT && y.kind == BERTH_EXPR_INT) return fold_index(fn, op, x.i, y.i);
    if (y.kind == BERTH_EXPR_INT) return fold_identity(fn, op, a, y.i);
    if (x.kind == BERTH_EXPR_INT && (op == BERTH_BINARY_ADD || op == BERTH_BINARY_MUL))
        return fold_identity(fn, op, b, x.i);
    return 0;
}

berth_expr berth_tfn_binary(berth_tfn *fn, berth_binary op, berth_expr a, berth_expr b) {
    berth_expr folded = fold_binary(fn, op, a, b);
    if (folded) return folded;
    uint16_t a_lanes = fn->exprs.data[a].lanes;
    uint16_t b_lanes = fn->exprs.data[b].lanes;
    if (a_lanes < b_lanes) a = berth_tfn_broadcast(fn, a, b_lanes);
    if (b_lanes < a_lanes) b = berth_tfn_broadcast(fn, b, a_lanes);
    const berth_expr_node *x = &fn->exprs.data[a];
    bool boolean = is_comparison(op) || is_logic(op);
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_BINARY,
                                                    .op = (uint8_t)op,
                                                    .dtype = boolean ? BERTH_DTYPE_BOOL : x->dtype,
                                                    .is_index = x->is_index && !boolean,
                                                    .lanes = x->lanes,
                                                    .a = a,
                                                    .b = b});
}

static uint16_t widest(const berth_tfn *fn, berth_expr a, berth_expr b, berth_expr c) {
    uint16_t lanes = fn->exprs.data[a].lanes;
    if (fn->exprs.data[b].lanes > lanes) lanes = fn->exprs.data[b].lanes;
    if (fn->exprs.data[c].lanes > lanes) lanes = fn->exprs.data[c].lanes;
    return lanes;
}

berth_expr berth_tfn_broadcast(berth_tfn *fn, berth_expr a, uint16_t lanes) {
    const berth_expr_node *x = &fn->exprs.data[a];
    if (x->lanes == lanes) return a;
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_BROADCAST,
                                                    .dtype = x->dtype,
                                                    .is_index = x->is_index,
                                                    .lanes = lanes,
                                                    .a = a});
}

berth_expr berth_tfn_fma(berth_tfn *fn, berth_expr a, berth_expr b, berth_expr c) {
    uint16_t lanes = widest(fn, a, b, c);
    a = berth_tfn_broadcast(fn, a, lanes);
    b = berth_tfn_broadcast(fn, b, lanes);
    c = berth_tfn_broadcast(fn, c, lanes);
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_FMA,
                                                    .dtype = fn->exprs.data[a].dtype,
                                                    .lanes = lanes,
                                                    .a = a,
                                                    .b = b,
                                                    .c = c});
}

berth_expr berth_tfn_select(berth_tfn *fn, berth_expr condition, berth_expr if_true,
                            berth_expr if_false) {
    int64_t known = 0;
    if (berth_tfn_const_value(fn, condition, &known)) return known ? if_true : if_false;
    uint16_t lanes = widest(fn, condition, if_true, if_false);
    if (lanes > 1) {
        if_true = berth_tfn_broadcast(fn, if_true, lanes);
        if_false = berth_tfn_broadcast(fn, if_false, lanes);
    }
    const berth_expr_node *x = &fn->exprs.data[if_true];
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_SELECT,
                                                    .dtype = x->dtype,
                                                    .is_index = x->is_index,
                                                    .lanes = lanes,
                                                    .a = condition,
                                                    .b = if_true,
                                                    .c = if_false});
}

static berth_expr add_cast(berth_tfn *fn, berth_dtype dtype, bool is_index, berth_expr a) {
    const berth_expr_node *x = &fn->exprs.data[a];
    if (x->dtype == dtype && x->is_index == is_index) return a;
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_CAST,
                                                    .dtype = (uint8_t)dtype,
                                                    .is_index = is_index,
                                                    .lanes = x->lanes,
                                                    .a = a});
}

berth_expr berth_tfn_cast(berth_tfn *fn, berth_dtype dtype, berth_expr a) {
    return add_cast(fn, dtype, false, a);
}

berth_expr berth_tfn_to_index(berth_tfn *fn, berth_expr a) {
    const berth_expr_node *x = &fn->exprs.data[a];
    if (x->kind == BERTH_EXPR_INT) return berth_tfn_index(fn, x->i);
    return add_cast(fn, BERTH_DTYPE_I64, true, a);
}

berth_expr berth_tfn_from_index(berth_tfn *fn, berth_dtype dtype, berth_expr a) {
    return add_cast(fn, dtype, false, a);
}

berth_expr berth_tfn_ramp(berth_tfn *fn, berth_expr base, uint16_t lanes) {
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_RAMP,
                                                    .dtype = BERTH_DTYPE_I64,
                                                    .is_index = true,
                                                    .lanes = lanes,
                                                    .a = base});
}

berth_expr berth_tfn_reduce_add(berth_tfn *fn, berth_expr a) {
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_REDUCE_ADD,
                                                    .dtype = fn->exprs.data[a].dtype,
                                                    .lanes = 1,
                                                    .a = a});
}

berth_expr berth_tfn_intrinsic(berth_tfn *fn, berth_intrinsic id, berth_expr a, berth_expr b,
                               berth_expr c) {
    const berth_intrinsic_operand *result = &berth_intrinsic_get(id)->operands[0];
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_INTRINSIC,
                                                    .op = (uint8_t)id,
                                                    .dtype = (uint8_t)result->dtype,
                                                    .lanes = result->lanes,
                                                    .a = a,
                                                    .b = b,
                                                    .c = c});
}

berth_expr berth_tfn_rebuild(berth_tfn *fn, berth_expr id, berth_expr a, berth_expr b,
                             berth_expr c) {
    const berth_expr_node node = fn->exprs.data[id];
    if (a == node.a && b == node.b && c == node.c) return id;
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_UNARY: return berth_tfn_unary(fn, (berth_unary)node.op, a);
    case BERTH_EXPR_BINARY: return berth_tfn_binary(fn, (berth_binary)node.op, a, b);
    case BERTH_EXPR_FMA: return berth_tfn_fma(fn, a, b, c);
    case BERTH_EXPR_SELECT: return berth_tfn_select(fn, a, b, c);
    case BERTH_EXPR_CAST:
        return node.is_index ? berth_tfn_to_index(fn, a)
                             : berth_tfn_cast(fn, (berth_dtype)node.dtype, a);
    case BERTH_EXPR_BROADCAST: return berth_tfn_broadcast(fn, a, node.lanes);
    case BERTH_EXPR_RAMP: return berth_tfn_ramp(fn, a, node.lanes);
    case BERTH_EXPR_REDUCE_ADD: return berth_tfn_reduce_add(fn, a);
    case BERTH_EXPR_INTRINSIC: return berth_tfn_intrinsic(fn, (berth_intrinsic)node.op, a, b, c);
    default: return id;
    }
}

// ---- statements ---------------------------------------------------------------------------------

static berth_stmt add_stmt(berth_tfn *fn, berth_stmt_node node) {
    berth_vec_push(fn->module->arena, &fn->stmts, node);
    return fn->stmts.count - 1;
}

berth_stmt berth_tfn_seq(berth_tfn *fn, const berth_stmt *statements, uint32_t count) {
    uint32_t first = add_list(fn, statements, count);
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_SEQ, .count = count, .first = first});
}

berth_stmt berth_tfn_for(berth_tfn *fn, berth_var var, berth_expr extent, berth_loop_kind kind,
                         berth_stmt body) {
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_FOR,
                                          .loop_kind = (uint8_t)kind,
                                          .var = var,
                                          .value = extent,
                                          .body = body});
}

berth_stmt berth_tfn_store(berth_tfn *fn, berth_buf buf, const berth_expr *indices, int count,
                           berth_expr value) {
    uint16_t lanes = access_lanes(fn, buf, indices, count);
    if (lanes > 1) value = berth_tfn_broadcast(fn, value, lanes);
    uint32_t first = add_list(fn, indices, (uint32_t)count);
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_STORE,
                                          .buf = buf,
                                          .first = first,
                                          .index_count = (uint16_t)count,
                                          .value = value});
}

berth_stmt berth_tfn_let(berth_tfn *fn, berth_var var, berth_expr value) {
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_LET, .var = var, .value = value});
}

berth_stmt berth_tfn_if(berth_tfn *fn, berth_expr condition, berth_stmt body, berth_stmt other) {
    return add_stmt(
        fn,
        (berth_stmt_node){.kind = BERTH_STMT_IF, .value = condition, .body = body, .other = other});
}

berth_stmt berth_tfn_alloc(berth_tfn *fn, berth_buf buf) {
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_ALLOC, .buf = buf});
}

berth_stmt berth_tfn_barrier(berth_tfn *fn) {
    return add_stmt(fn, (berth_stmt_node){.kind = BERTH_STMT_BARRIER});
}

berth_stmt berth_tfn_call(berth_tfn *fn, berth_func_id callee, const berth_tfn_region *regions,
                          uint32_t count) {
    uint32_t first = fn->regions.count;
    for (uint32_t i = 0; i < count; ++i)
        berth_vec_push(fn->module->arena, &fn->regions, regions[i]);
    return add_stmt(fn,
                    (berth_stmt_node){
                        .kind = BERTH_STMT_CALL, .callee = callee, .first = first, .count = count});
}

bool berth_tfn_has_calls(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    bool found = node->kind == BERTH_STMT_CALL || berth_tfn_has_calls(fn, node->body) ||
                 berth_tfn_has_calls(fn, node->other);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count && !found; ++i)
        found = berth_tfn_has_calls(fn, berth_tfn_seq_items(fn, id)[i]);
    return found;
}

const berth_expr *berth_tfn_load_indices(const berth_tfn *fn, berth_expr load) {
    return fn->lists.data + fn->exprs.data[load].load.first_index;
}

const berth_expr *berth_tfn_store_indices(const berth_tfn *fn, berth_stmt store) {
    return fn->lists.data + fn->stmts.data[store].first;
}

const berth_stmt *berth_tfn_seq_items(const berth_tfn *fn, berth_stmt seq) {
    return fn->lists.data + fn->stmts.data[seq].first;
}

// ---- symbols ------------------------------------------------------------------------------------

berth_expr berth_tfn_symbol(berth_tfn *fn, int64_t symbol) {
    return berth_tfn_add_expr(fn, (berth_expr_node){.kind = BERTH_EXPR_SYMBOL,
                                                    .dtype = BERTH_DTYPE_I64,
                                                    .is_index = true,
                                                    .lanes = 1,
                                                    .i = symbol});
}

typedef struct symbol_search {
    const char *name;
    bool found;
} symbol_search;

static int64_t look_for_symbol(void *user, const char *symbol) {
    symbol_search *search = user;
    search->found |= strcmp(symbol, search->name) == 0;
    return 1;  // any extent: the expression is read to its end
}

bool berth_tfn_has_symbol(const berth_tfn *fn, int64_t symbol, berth_arena *scratch) {
    if (!berth_dim_is_symbol(symbol) || berth_dim_is_expression(fn->module, symbol)) return false;
    symbol_search search = {berth_module_str(fn->module, berth_dim_symbol_name(symbol)), false};
    for (uint32_t b = 0; b < fn->param_count && !search.found; ++b)
        for (int d = 0; d < fn->bufs.data[b].rank; ++d) {
            int64_t extent = 0;
            int64_t dim = fn->bufs.data[b].dims[d];
            if (berth_dim_is_symbol(dim))
                (void)berth_dim_evaluate(fn->module, dim, look_for_symbol, &search, scratch,
                                         &extent);
        }
    return search.found;
}

// ---- checks -------------------------------------------------------------------------------------

berth_status berth_tfn_check_static(const berth_tfn *fn) {
    enum { shown = 16 };
    berth_remedy remedies[shown];
    size_t count = 0;
    bool open = false;
    for (uint32_t b = 0; b < fn->bufs.count; ++b)
        for (int d = 0; d < fn->bufs.data[b].rank; ++d) {
            int64_t dim = fn->bufs.data[b].dims[d];
            open |= dim < 0;
            if (!berth_dim_is_symbol(dim) || count == shown) continue;
            const char *name = berth_module_str(fn->module, berth_dim_symbol_name(dim));
            size_t i = 0;
            while (i < count && strcmp(remedies[i].name, name) != 0) ++i;
            if (i == count) remedies[count++] = (berth_remedy){BERTH_REMEDY_DIMENSION, name};
        }
    if (!open) return BERTH_OK;
    return berth_status_with_remedies(
        berth_status_make(BERTH_UNSUPPORTED,
                          "the tensor function has symbolic dimensions, and code is made for "
                          "known ones: give the dimensions of the inputs extents"),
        remedies, count);
}

berth_expr berth_tfn_unrounded(const berth_tfn *fn, berth_dtype to, berth_expr value) {
    const berth_expr_node *node = &fn->exprs.data[value];
    bool half = to == BERTH_DTYPE_F16 || to == BERTH_DTYPE_BF16;
    while (node->kind == BERTH_EXPR_CAST && node->lanes == 1 && !node->is_index &&
           (node->dtype == to || (half && node->dtype == BERTH_DTYPE_F32))) {
        value = node->a;
        node = &fn->exprs.data[value];
    }
    return value;
}

berth_expr berth_tfn_moved(const berth_tfn *fn, berth_dtype to, berth_expr value) {
    value = berth_tfn_unrounded(fn, to, value);
    const berth_expr_node *node = &fn->exprs.data[value];
    bool same = node->kind == BERTH_EXPR_LOAD && node->lanes == 1 && node->dtype == to &&
                fn->bufs.data[node->load.buf].dtype == to;
    return same ? value : 0;
}

bool berth_tfn_only_moves(const berth_tfn *fn, berth_dtype to, berth_expr value) {
    const berth_expr_node *node = &fn->exprs.data[berth_tfn_unrounded(fn, to, value)];
    if (node->kind == BERTH_EXPR_FLOAT) return node->f == 0 && !signbit(node->f);
    if (node->kind != BERTH_EXPR_SELECT) return berth_tfn_moved(fn, to, value) != 0;
    return berth_tfn_only_moves(fn, to, node->b) && berth_tfn_only_moves(fn, to, node->c);
}
