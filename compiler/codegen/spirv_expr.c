// Expressions of the SPIR-V generator.
#include <math.h>
#include <string.h>

#include "compiler/codegen/spirv_math.h"
#include "compiler/codegen/spirv_printer.h"
#include "compiler/codegen/spirv_subgroup.h"

static const berth_expr_node *node_of(const berth_spirv_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

static uint32_t *new_lanes(berth_spirv_printer *p, int lanes) {
    return berth_arena_new_array(p->arena, uint32_t, lanes ? lanes : 1);
}

static const uint32_t *one(berth_spirv_printer *p, uint32_t id) {
    uint32_t *lanes = new_lanes(p, 1);
    lanes[0] = id;
    return lanes;
}

static bool is_float_type(berth_spirv_type type) {
    return type == SPIRV_TYPE_F32 || type == SPIRV_TYPE_F64;
}

static const uint32_t *refused(berth_spirv_printer *p, const char *what, int op, berth_dtype dtype,
                               int lanes) {
    berth_spirv_fail(
        p, berth_status_make(BERTH_UNSUPPORTED, "%s %d of %s", what, op, berth_dtype_name(dtype)));
    return new_lanes(p, lanes);
}

static uint32_t zero_of(berth_spirv_printer *p, berth_spirv_type type) {
    if (type == SPIRV_TYPE_BOOL) return berth_spirv_bool(p->m, false);
    if (is_float_type(type)) return berth_spirv_float(p->m, type, 0);
    return berth_spirv_int(p->m, type, 0);
}

static uint32_t as_number(berth_spirv_printer *p, uint32_t condition) {
    return berth_spirv_select(p->m, SPIRV_TYPE_U32, condition,
                              berth_spirv_int(p->m, SPIRV_TYPE_U32, 1),
                              berth_spirv_int(p->m, SPIRV_TYPE_U32, 0));
}

// ---- operators ----------------------------------------------------------------------------------

static uint32_t unary_one(berth_spirv_printer *p, berth_unary op, berth_dtype from, uint32_t a) {
    berth_spirv_type type = berth_spirv_value_type(from);
    if (op == BERTH_UNARY_NOT) {
        if (type == SPIRV_TYPE_BOOL) return berth_spirv_unary(p->m, SPIRV_LogicalNot, type, a);
        return berth_spirv_binary(p->m, is_float_type(type) ? SPIRV_FOrdEqual : SPIRV_IEqual,
                                  SPIRV_TYPE_BOOL, a, zero_of(p, type));
    }
    if (type == SPIRV_TYPE_BOOL) {
        bool plain = op != BERTH_UNARY_IS_NAN && op != BERTH_UNARY_IS_INF;
        return plain ? a : berth_spirv_bool(p->m, false);
    }
    if (is_float_type(type)) {
        uint32_t y = berth_spirv_float_unary(p->m, type, op, a);
        return y;
    }
    return berth_spirv_int_unary(p->m, from, op, a);
}

static const uint32_t *unary(berth_spirv_printer *p, const berth_expr_node *node) {
    berth_dtype from = (berth_dtype)node_of(p, node->a)->dtype;
    const uint32_t *a = berth_spirv_value(p, node->a);
    uint32_t *y = new_lanes(p, node->lanes);
    for (int l = 0; l < node->lanes; ++l) {
        y[l] = unary_one(p, (berth_unary)node->op, from, a[l]);
        if (!y[l]) return refused(p, "operator", node->op, from, node->lanes);
    }
    return y;
}

static uint32_t compare(berth_spirv_printer *p, berth_binary op, berth_dtype from, uint32_t a,
                        uint32_t b) {
    static const berth_spirv_opcode floats[] = {SPIRV_FOrdEqual,       SPIRV_FUnordNotEqual,
                                                SPIRV_FOrdLessThan,    SPIRV_FOrdLessThanEqual,
                                                SPIRV_FOrdGreaterThan, SPIRV_FOrdGreaterThanEqual};
    static const berth_spirv_opcode with_sign[] = {SPIRV_IEqual,       SPIRV_INotEqual,
                                                   SPIRV_SLessThan,    SPIRV_SLessThanEqual,
                                                   SPIRV_SGreaterThan, SPIRV_SGreaterThanEqual};
    static const berth_spirv_opcode plain[] = {SPIRV_IEqual,       SPIRV_INotEqual,
                                               SPIRV_ULessThan,    SPIRV_ULessThanEqual,
                                               SPIRV_UGreaterThan, SPIRV_UGreaterThanEqual};
    berth_spirv_type type = berth_spirv_value_type(from);
    int which = (int)op - (int)BERTH_BINARY_EQ;
    if (type == SPIRV_TYPE_BOOL) {
        a = as_number(p, a);
        b = as_number(p, b);
    }
    const berth_spirv_opcode *ops = is_float_type(type)           ? floats
                                    : berth_dtype_is_signed(from) ? with_sign
                                                                  : plain;
    return berth_spirv_binary(p->m, ops[which], SPIRV_TYPE_BOOL, a, b);
}

static uint32_t boolean(berth_spirv_printer *p, berth_binary op, uint32_t a, uint32_t b) {
    berth_spirv_opcode code = SPIRV_LogicalAnd;
    switch (op) {
    case BERTH_BINARY_AND:
    case BERTH_BINARY_MIN:
    case BERTH_BINARY_MUL:
    case BERTH_BINARY_BIT_AND: break;
    case BERTH_BINARY_OR:
    case BERTH_BINARY_MAX:
    case BERTH_BINARY_ADD:
    case BERTH_BINARY_BIT_OR: code = SPIRV_LogicalOr; break;
    case BERTH_BINARY_XOR:
    case BERTH_BINARY_SUB:
    case BERTH_BINARY_BIT_XOR: code = SPIRV_LogicalNotEqual; break;
    default: return 0;
    }
    return berth_spirv_binary(p->m, code, SPIRV_TYPE_BOOL, a, b);
}

static uint32_t binary_one(berth_spirv_printer *p, const berth_expr_node *node, berth_dtype from,
                           uint32_t a, uint32_t b) {
    berth_binary op = (berth_binary)node->op;
    berth_spirv_type type = berth_spirv_value_type(from);
    if (op >= BERTH_BINARY_EQ && op <= BERTH_BINARY_GE) return compare(p, op, from, a, b);
    if (type == SPIRV_TYPE_BOOL) return boolean(p, op, a, b);
    if (is_float_type(type)) return berth_spirv_float_binary(p->m, type, op, a, b);
    return berth_spirv_int_binary(p->m, from, op, a, b);
}

static const uint32_t *binary(berth_spirv_printer *p, const berth_expr_node *node) {
    berth_dtype from = (berth_dtype)node_of(p, node->a)->dtype;
    const uint32_t *a = berth_spirv_value(p, node->a);
    const uint32_t *b = berth_spirv_value(p, node->b);
    uint32_t *y = new_lanes(p, node->lanes);
    for (int l = 0; l < node->lanes; ++l) {
        y[l] = binary_one(p, node, from, a[l], b[l]);
        if (!y[l]) return refused(p, "operator", node->op, from, node->lanes);
    }
    return y;
}

static const uint32_t *fma_value(berth_spirv_printer *p, const berth_expr_node *node) {
    berth_dtype dtype = (berth_dtype)node->dtype;
    berth_spirv_type type = berth_spirv_value_type(dtype);
    const uint32_t *a = berth_spirv_value(p, node->a);
    const uint32_t *b = berth_spirv_value(p, node->b);
    const uint32_t *c = berth_spirv_value(p, node->c);
    uint32_t *y = new_lanes(p, node->lanes);
    for (int l = 0; l < node->lanes; ++l) {
        if (is_float_type(type))
            y[l] = berth_spirv_fma(p->m, type, a[l], b[l], c[l]);
        else
            y[l] = berth_spirv_int_binary(
                p->m, dtype, BERTH_BINARY_ADD,
                berth_spirv_int_binary(p->m, dtype, BERTH_BINARY_MUL, a[l], b[l]), c[l]);
    }
    return y;
}

// ---- casts --------------------------------------------------------------------------------------

static uint32_t to_bool(berth_spirv_printer *p, berth_spirv_type type, uint32_t a) {
    if (type == SPIRV_TYPE_BOOL) return a;
    return berth_spirv_binary(p->m, is_float_type(type) ? SPIRV_FUnordNotEqual : SPIRV_INotEqual,
                              SPIRV_TYPE_BOOL, a, zero_of(p, type));
}

static uint32_t to_float(berth_spirv_printer *p, berth_spirv_type from, bool is_signed,
                         berth_dtype to, uint32_t a) {
    berth_spirv_type type = berth_spirv_value_type(to);
    if (from == SPIRV_TYPE_BOOL) {
        a = as_number(p, a);
        is_signed = false;
    }
    if (!is_float_type(from))
        a = berth_spirv_unary(p->m, is_signed ? SPIRV_ConvertSToF : SPIRV_ConvertUToF, type, a);
    else if (from != type)
        a = berth_spirv_unary(p->m, SPIRV_FConvert, type, a);
    if (to != BERTH_DTYPE_F16 && to != BERTH_DTYPE_BF16) return a;
    if (to == BERTH_DTYPE_F16 && p->float16)
        return berth_spirv_from_f16(p->m, berth_spirv_to_f16(p->m, a));
    return berth_spirv_half_to_float(p->m, to, berth_spirv_float_to_half(p->m, to, a));
}

static uint32_t to_int(berth_spirv_printer *p, berth_spirv_type from, bool is_signed,
                       berth_dtype to, uint32_t a) {
    berth_spirv_type type = berth_spirv_value_type(to);
    if (is_float_type(from)) return berth_spirv_float_to_int(p->m, from, to, a);
    if (from == SPIRV_TYPE_BOOL) {
        a = as_number(p, a);
        from = SPIRV_TYPE_U32;
        is_signed = false;
    }
    if (from != type)
        a = berth_spirv_unary(
            p->m, is_signed && type == SPIRV_TYPE_U64 ? SPIRV_SConvert : SPIRV_UConvert, type, a);
    return berth_spirv_wrap(p->m, to, a);
}

static uint32_t cast_one(berth_spirv_printer *p, berth_spirv_type from, bool is_signed,
                         berth_dtype to, uint32_t a) {
    if (to == BERTH_DTYPE_BOOL) return to_bool(p, from, a);
    if (berth_dtype_is_float(to)) return to_float(p, from, is_signed, to, a);
    return to_int(p, from, is_signed, to, a);
}

static const uint32_t *cast(berth_spirv_printer *p, const berth_expr_node *node) {
    const berth_expr_node from = *node_of(p, node->a);
    const uint32_t *a = berth_spirv_value(p, node->a);
    berth_spirv_type type =
        from.is_index ? p->index : berth_spirv_value_type((berth_dtype)from.dtype);
    bool is_signed = from.is_index || berth_dtype_is_signed((berth_dtype)from.dtype);
    uint32_t *y = new_lanes(p, node->lanes);
    for (int l = 0; l < node->lanes; ++l)
        y[l] = cast_one(p, type, is_signed, (berth_dtype)node->dtype, a[l]);
    return y;
}

// ---- choices ------------------------------------------------------------------------------------

static bool has_load(const berth_spirv_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (id < p->memo_count && p->memo[id]) return false;  // done before
    if (node->kind == BERTH_EXPR_LOAD) return true;
    return has_load(p, node->a) || has_load(p, node->b) || has_load(p, node->c);
}

// Only the chosen side is computed; what is known in one is not known after it.
static const uint32_t *branches(berth_spirv_printer *p, uint32_t condition, berth_expr a,
                                berth_expr b, berth_spirv_type type, int lanes) {
    berth_spirv *m = p->m;
    uint32_t before = p->known.count;
    uint32_t *y = new_lanes(p, lanes);
    berth_spirv_if at = berth_spirv_open_if(m, condition);
    const uint32_t *first = berth_spirv_value(p, a);
    uint32_t first_block = berth_spirv_block(m);
    berth_spirv_forget(p, before);
    berth_spirv_else(m, &at);
    const uint32_t *second = berth_spirv_value(p, b);
    uint32_t second_block = berth_spirv_block(m);
    berth_spirv_forget(p, before);
    berth_spirv_close_if(m, &at);
    for (int l = 0; l < lanes; ++l)
        y[l] = berth_spirv_phi(m, type, first[l], first_block, second[l], second_block);
    return y;
}

static const uint32_t *select_value(berth_spirv_printer *p, const berth_expr_node *node) {
    berth_spirv_type type =
        node->is_index ? p->index : berth_spirv_value_type((berth_dtype)node->dtype);
    const berth_expr_node condition_node = *node_of(p, node->a);
    const uint32_t *condition = berth_spirv_value(p, node->a);
    uint64_t known = 0;
    if (condition_node.lanes == 1) {
        if (berth_spirv_int_value(p->m, condition[0], &known))
            return berth_spirv_value(p, known ? node->b : node->c);
        if (has_load(p, node->b) || has_load(p, node->c))
            return branches(p, condition[0], node->b, node->c, type, node->lanes);
    }
    const uint32_t *b = berth_spirv_value(p, node->b);
    const uint32_t *c = berth_spirv_value(p, node->c);
    uint32_t *y = new_lanes(p, node->lanes);
    for (int l = 0; l < node->lanes; ++l)
        y[l] =
            berth_spirv_select(p->m, type, condition[condition_node.lanes > 1 ? l : 0], b[l], c[l]);
    return y;
}

// && and ||: the second side is computed only where it decides, when it reads memory.
static const uint32_t *connected(berth_spirv_printer *p, const berth_expr_node *node) {
    bool is_and = node->op == BERTH_BINARY_AND;
    uint32_t a = berth_spirv_value(p, node->a)[0];
    uint64_t known = 0;
    if (berth_spirv_int_value(p->m, a, &known))
        return (known != 0) == is_and ? berth_spirv_value(p, node->b) : one(p, a);
    if (!has_load(p, node->b)) {
        uint32_t b = berth_spirv_value(p, node->b)[0];
        if (berth_spirv_int_value(p->m, b, &known)) return one(p, (known != 0) == is_and ? a : b);
        return one(p, boolean(p, (berth_binary)node->op, a, b));
    }
    berth_spirv *m = p->m;
    uint32_t before = p->known.count, block = 0;
    uint32_t condition = is_and ? a : berth_spirv_unary(m, SPIRV_LogicalNot, SPIRV_TYPE_BOOL, a);
    berth_spirv_if at = berth_spirv_open_if(m, condition);
    uint32_t b = berth_spirv_value(p, node->b)[0];
    block = berth_spirv_block(m);
    berth_spirv_forget(p, before);
    berth_spirv_else(m, &at);
    uint32_t other = berth_spirv_block(m);
    berth_spirv_close_if(m, &at);
    return one(p,
               berth_spirv_phi(m, SPIRV_TYPE_BOOL, b, block, berth_spirv_bool(m, !is_and), other));
}

// ---- values -------------------------------------------------------------------------------------

static uint32_t constant(berth_spirv_printer *p, const berth_expr_node *node) {
    berth_spirv_type type = berth_spirv_value_type((berth_dtype)node->dtype);
    if (node->kind == BERTH_EXPR_FLOAT) return berth_spirv_float(p->m, type, node->f);
    if (type == SPIRV_TYPE_BOOL) return berth_spirv_bool(p->m, node->i != 0);
    return berth_spirv_int(p->m, type, (uint64_t)node->i);
}

static const uint32_t *reduce_add(berth_spirv_printer *p, const berth_expr_node *node) {
    int lanes = node_of(p, node->a)->lanes;
    const uint32_t *a = berth_spirv_value(p, node->a);
    uint32_t *sum = new_lanes(p, lanes);
    memcpy(sum, a, (size_t)lanes * sizeof(*sum));
    berth_expr_node add = {.op = BERTH_BINARY_ADD};
    for (; lanes > 1; lanes = (lanes + 1) / 2)
        for (int l = 0; l + (lanes + 1) / 2 < lanes; ++l)
            sum[l] =
                binary_one(p, &add, (berth_dtype)node->dtype, sum[l], sum[l + (lanes + 1) / 2]);
    return sum;
}

static const uint32_t *spread(berth_spirv_printer *p, const uint32_t *a, int lanes) {
    uint32_t *y = new_lanes(p, lanes);
    for (int l = 0; l < lanes; ++l) y[l] = a[0];
    return y;
}

static const uint32_t *index_lanes(berth_spirv_printer *p, berth_expr id, int lanes) {
    uint32_t *y = new_lanes(p, lanes);
    for (int l = 0; l < lanes; ++l) y[l] = berth_spirv_index(p, id, l);
    return y;
}

static const uint32_t *compute(berth_spirv_printer *p, berth_expr id) {
    const berth_expr_node node = *node_of(p, id);
    uint32_t together = 0;
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_SYMBOL:  // refused: berth_tfn_check_static
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT: return one(p, constant(p, &node));
    case BERTH_EXPR_VAR: return p->vars[node.var];
    case BERTH_EXPR_LOAD: return berth_spirv_load(p, id);
    case BERTH_EXPR_UNARY: return unary(p, &node);
    case BERTH_EXPR_BINARY:
        if (berth_spirv_is_index_comparison(p, &node)) {
            uint32_t *y = new_lanes(p, node.lanes);
            for (int l = 0; l < node.lanes; ++l) y[l] = berth_spirv_index_comparison(p, &node, l);
            return y;
        }
        if ((node.op == BERTH_BINARY_AND || node.op == BERTH_BINARY_OR) && node.lanes == 1)
            return connected(p, &node);
        return binary(p, &node);
    case BERTH_EXPR_FMA: return fma_value(p, &node);
    case BERTH_EXPR_SELECT: return select_value(p, &node);
    case BERTH_EXPR_CAST: return cast(p, &node);
    case BERTH_EXPR_BROADCAST: return spread(p, berth_spirv_value(p, node.a), node.lanes);
    case BERTH_EXPR_REDUCE_ADD: return reduce_add(p, &node);
    case BERTH_EXPR_INTRINSIC:
        if ((together = berth_spirv_subgroup(p, &node))) return one(p, together);
        return refused(p, "intrinsic", node.op, (berth_dtype)node.dtype, node.lanes);
    case BERTH_EXPR_RAMP:
    case BERTH_EXPR_NONE: break;
    }
    return refused(p, "expression of kind", node.kind, (berth_dtype)node.dtype, node.lanes);
}

const uint32_t *berth_spirv_value(berth_spirv_printer *p, berth_expr id) {
    if (id < p->memo_count && p->memo[id]) return p->memo[id];
    const berth_expr_node node = *node_of(p, id);
    const uint32_t *lanes = node.is_index ? index_lanes(p, id, node.lanes) : compute(p, id);
    if (id < p->memo_count && node.kind != BERTH_EXPR_VAR) {
        p->memo[id] = lanes;
        berth_vec_push(p->arena, &p->known, id);
    }
    return lanes;
}

void berth_spirv_forget(berth_spirv_printer *p, uint32_t count) {
    while (p->known.count > count) p->memo[p->known.data[--p->known.count]] = NULL;
}
