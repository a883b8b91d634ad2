#include "ir/tensor/type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/tensor/intrinsic.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define NAME(id, text) text,
static const char *const unary_names[] = {BERTH_TFN_UNARY(NAME)};
static const char *const binary_names[] = {BERTH_TFN_BINARY(NAME)};
#undef NAME
static const char *const loop_names[] = {"for",     "parallel", "unroll",  "vector",
                                         "simd",    "group.x",  "group.y", "group.z",
                                         "local.x", "local.y",  "local.z"};
static const char *const scope_names[] = {"param", "workspace", "register", "private", "local"};
static const char *const role_names[] = {"in", "out", "inout", "none"};

static const char *name_of(const char *const *names, int count, int index) {
    return index >= 0 && index < count ? names[index] : "?";
}

static bool find_name(const char *const *names, int count, const char *name, size_t length,
                      int *out) {
    for (*out = 0; *out < count; ++*out)
        if (strlen(names[*out]) == length && memcmp(names[*out], name, length) == 0) return true;
    return false;
}

const char *berth_unary_name(berth_unary op) {
    return name_of(unary_names, COUNT(unary_names), (int)op);
}
const char *berth_binary_name(berth_binary op) {
    return name_of(binary_names, COUNT(binary_names), (int)op);
}
const char *berth_loop_name(berth_loop_kind kind) {
    return name_of(loop_names, COUNT(loop_names), (int)kind);
}
const char *berth_buf_scope_name(berth_buf_scope scope) {
    return name_of(scope_names, COUNT(scope_names), (int)scope);
}
const char *berth_buf_role_name(berth_buf_role role) {
    return name_of(role_names, COUNT(role_names), (int)role);
}

#define FROM_NAME(function, type, names)                                                           \
    bool function(const char *name, size_t length, type *out) {                                    \
        int index = 0;                                                                             \
        if (!find_name(names, COUNT(names), name, length, &index)) return false;                   \
        *out = (type)index;                                                                        \
        return true;                                                                               \
    }
FROM_NAME(berth_unary_from_name, berth_unary, unary_names)
FROM_NAME(berth_binary_from_name, berth_binary, binary_names)
FROM_NAME(berth_loop_from_name, berth_loop_kind, loop_names)
FROM_NAME(berth_buf_scope_from_name, berth_buf_scope, scope_names)
FROM_NAME(berth_buf_role_from_name, berth_buf_role, role_names)
#undef FROM_NAME

bool berth_binary_is_infix(berth_binary op) {
    return op != BERTH_BINARY_MIN && op != BERTH_BINARY_MAX && op != BERTH_BINARY_POW &&
           op != BERTH_BINARY_ATAN2;
}

int berth_binary_precedence(berth_binary op) {
    switch (op) {
    case BERTH_BINARY_OR: return 1;
    case BERTH_BINARY_XOR: return 2;
    case BERTH_BINARY_AND: return 3;
    case BERTH_BINARY_BIT_OR: return 4;
    case BERTH_BINARY_BIT_XOR: return 5;
    case BERTH_BINARY_BIT_AND: return 6;
    case BERTH_BINARY_EQ:
    case BERTH_BINARY_NE: return 7;
    case BERTH_BINARY_LT:
    case BERTH_BINARY_LE:
    case BERTH_BINARY_GT:
    case BERTH_BINARY_GE: return 8;
    case BERTH_BINARY_SHL:
    case BERTH_BINARY_SHR: return 9;
    case BERTH_BINARY_ADD:
    case BERTH_BINARY_SUB: return 10;
    default: return 11;
    }
}

// ---- types --------------------------------------------------------------------------------------

berth_tfn_type berth_tfn_type_of(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    return (berth_tfn_type){(berth_dtype)node->dtype, node->is_index, node->lanes};
}

berth_tfn_type berth_tfn_type_of_var(const berth_tfn *fn, berth_var var) {
    const berth_var_info *info = &fn->vars.data[var];
    return (berth_tfn_type){info->dtype, info->is_index, info->lanes};
}

static uint16_t widest(const berth_tfn *fn, const berth_expr *ids, int count, uint16_t least) {
    for (int i = 0; i < count; ++i)
        if (fn->exprs.data[ids[i]].lanes > least) least = fn->exprs.data[ids[i]].lanes;
    return least;
}

static berth_tfn_type derive_binary(berth_binary op, berth_tfn_type a) {
    bool boolean = op == BERTH_BINARY_AND || op == BERTH_BINARY_OR || op == BERTH_BINARY_XOR ||
                   (op >= BERTH_BINARY_EQ && op <= BERTH_BINARY_GE);
    return (berth_tfn_type){boolean ? BERTH_DTYPE_BOOL : a.dtype, a.is_index && !boolean, a.lanes};
}

berth_tfn_type berth_tfn_derive_type(const berth_tfn *fn, const berth_expr_node *node,
                                     const berth_expr *indices) {
    berth_tfn_type a = berth_tfn_type_of(fn, node->a);
    const berth_expr operands[] = {node->a, node->b, node->c};
    bool predicate = node->op == BERTH_UNARY_NOT || node->op == BERTH_UNARY_IS_NAN ||
                     node->op == BERTH_UNARY_IS_INF;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_SYMBOL: return (berth_tfn_type){BERTH_DTYPE_I64, true, 1};
    case BERTH_EXPR_FLOAT: return (berth_tfn_type){BERTH_DTYPE_F32, false, 1};
    case BERTH_EXPR_VAR:
        if (node->var >= fn->vars.count) break;
        return berth_tfn_type_of_var(fn, node->var);
    case BERTH_EXPR_LOAD: {
        if (node->load.buf >= fn->bufs.count) break;
        const berth_buf_info *buf = &fn->bufs.data[node->load.buf];
        return (berth_tfn_type){buf->dtype, false,
                                widest(fn, indices, node->index_count, buf->lanes)};
    }
    case BERTH_EXPR_UNARY:
        return (berth_tfn_type){predicate ? BERTH_DTYPE_BOOL : a.dtype, a.is_index && !predicate,
                                a.lanes};
    case BERTH_EXPR_BINARY: return derive_binary((berth_binary)node->op, a);
    case BERTH_EXPR_FMA: return (berth_tfn_type){a.dtype, false, a.lanes};
    case BERTH_EXPR_SELECT: {
        berth_tfn_type b = berth_tfn_type_of(fn, node->b);
        return (berth_tfn_type){b.dtype, b.is_index, widest(fn, operands, 3, 1)};
    }
    case BERTH_EXPR_CAST:
        return (berth_tfn_type){(berth_dtype)node->dtype, node->is_index, a.lanes};
    case BERTH_EXPR_BROADCAST: return (berth_tfn_type){a.dtype, a.is_index, node->lanes};
    case BERTH_EXPR_RAMP: return (berth_tfn_type){BERTH_DTYPE_I64, true, node->lanes};
    case BERTH_EXPR_REDUCE_ADD: return (berth_tfn_type){a.dtype, false, 1};
    case BERTH_EXPR_INTRINSIC: {
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)node->op);
        if (!facts) break;
        return (berth_tfn_type){facts->operands[0].dtype, false, facts->operands[0].lanes};
    }
    default: break;
    }
    return (berth_tfn_type){BERTH_DTYPE_NONE, false, 0};
}

void berth_tfn_type_format(berth_tfn_type type, char out[24]) {
    const char *name = type.is_index ? "index" : berth_dtype_name(type.dtype);
    if (type.lanes == 1)
        snprintf(out, 24, "%s", name);
    else
        snprintf(out, 24, "%sx%u", name, type.lanes);
}

bool berth_tfn_type_from_name(const char *name, size_t length, berth_tfn_type *out) {
    char text[24];
    if (length == 0 || length >= sizeof(text)) return false;
    memcpy(text, name, length);
    text[length] = 0;
    size_t end = length;
    while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') end--;
    unsigned long lanes = 1;
    if (end > 1 && end < length && text[end - 1] == 'x') {  // f32x8; the x of "index" has no digits
        lanes = strtoul(text + end, NULL, 10);
        text[end - 1] = 0;
    }
    bool is_index = strcmp(text, "index") == 0;
    berth_dtype dtype = is_index ? BERTH_DTYPE_I64 : berth_dtype_from_name(text);
    if (dtype == BERTH_DTYPE_NONE || lanes > UINT16_MAX) return false;
    *out = (berth_tfn_type){dtype, is_index, (uint16_t)lanes};
    return true;
}
