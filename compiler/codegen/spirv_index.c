// Index arithmetic of the SPIR-V generator.
#include <string.h>

#include "compiler/codegen/spirv_math.h"
#include "compiler/codegen/spirv_printer.h"

static const berth_expr_node *node_of(const berth_spirv_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

uint32_t berth_spirv_index_int(berth_spirv_printer *p, int64_t value) {
    return berth_spirv_int(p->m, p->index, (uint64_t)value);
}

static int64_t extended(const berth_spirv_printer *p, uint64_t bits) {
    return p->index == SPIRV_TYPE_U64 ? (int64_t)bits : (int64_t)(int32_t)(uint32_t)bits;
}

// Constants (the counters of unrolled loops) are computed here.
static uint32_t calculate(berth_spirv_printer *p, berth_spirv_opcode op, uint32_t a, uint32_t b) {
    uint64_t x = 0, y = 0;
    bool known_x = berth_spirv_int_value(p->m, a, &x), known_y = berth_spirv_int_value(p->m, b, &y);
    if (known_x && known_y && op == SPIRV_IAdd) return berth_spirv_index_int(p, extended(p, x + y));
    if (known_x && known_y && op == SPIRV_ISub) return berth_spirv_index_int(p, extended(p, x - y));
    if (known_x && known_y && op == SPIRV_IMul) return berth_spirv_index_int(p, extended(p, x * y));
    if (known_x && known_y && op == SPIRV_SDiv && y != 0)
        return berth_spirv_index_int(p, extended(p, x) / extended(p, y));
    if (known_y && y == 0 && (op == SPIRV_IAdd || op == SPIRV_ISub)) return a;
    if (known_x && x == 0 && op == SPIRV_IAdd) return b;
    if (known_y && y == 1 && (op == SPIRV_IMul || op == SPIRV_SDiv)) return a;
    return berth_spirv_binary(p->m, op, p->index, a, b);
}

static uint32_t test(berth_spirv_printer *p, berth_spirv_opcode op, uint32_t a, uint32_t b) {
    return berth_spirv_binary(p->m, op, SPIRV_TYPE_BOOL, a, b);
}

// Floor division by a positive constant.
static uint32_t divide(berth_spirv_printer *p, const berth_expr_node *node, bool modulo, uint32_t a,
                       uint32_t b) {
    bool natural = berth_range_of(p->fn, &p->ranges, node->a).low >= 0;
    uint32_t q = calculate(p, natural ? SPIRV_UDiv : SPIRV_SDiv, a, b);
    uint64_t x = 0, y = 0;
    if (natural && berth_spirv_int_value(p->m, a, &x) && berth_spirv_int_value(p->m, b, &y) && y)
        q = berth_spirv_index_int(p, (int64_t)(x / y));
    if (natural && !modulo) return q;
    uint32_t r = calculate(p, SPIRV_ISub, a, calculate(p, SPIRV_IMul, q, b));
    if (natural) return r;
    uint32_t below = test(p, SPIRV_SLessThan, r, berth_spirv_index_int(p, 0));
    if (modulo) return berth_spirv_select(p->m, p->index, below, calculate(p, SPIRV_IAdd, r, b), r);
    return berth_spirv_select(p->m, p->index, below,
                              calculate(p, SPIRV_ISub, q, berth_spirv_index_int(p, 1)), q);
}

static uint32_t atom_binary(berth_spirv_printer *p, const berth_expr_node *node, int lane) {
    uint32_t a = berth_spirv_index(p, node->a, lane);
    uint32_t b = berth_spirv_index(p, node->b, lane);
    switch ((berth_binary)node->op) {
    case BERTH_BINARY_ADD: return calculate(p, SPIRV_IAdd, a, b);
    case BERTH_BINARY_SUB: return calculate(p, SPIRV_ISub, a, b);
    case BERTH_BINARY_MUL: return calculate(p, SPIRV_IMul, a, b);
    case BERTH_BINARY_MIN:
        return berth_spirv_select(p->m, p->index, test(p, SPIRV_SLessThan, a, b), a, b);
    case BERTH_BINARY_MAX:
        return berth_spirv_select(p->m, p->index, test(p, SPIRV_SLessThan, a, b), b, a);
    case BERTH_BINARY_DIV: return divide(p, node, false, a, b);
    case BERTH_BINARY_MOD: return divide(p, node, true, a, b);
    default:
        berth_spirv_fail(
            p, berth_status_make(BERTH_UNSUPPORTED, "operator %d of index arithmetic", node->op));
        return berth_spirv_index_int(p, 0);
    }
}

// A value of integers or floats as an index.
static uint32_t to_index(berth_spirv_printer *p, berth_dtype from, uint32_t value) {
    berth_spirv_type type = berth_spirv_value_type(from);
    if (type == SPIRV_TYPE_BOOL)
        return berth_spirv_select(p->m, p->index, value, berth_spirv_index_int(p, 1),
                                  berth_spirv_index_int(p, 0));
    if (type == SPIRV_TYPE_F32 || type == SPIRV_TYPE_F64)
        return berth_spirv_float_to_int(
            p->m, type, p->index == SPIRV_TYPE_U64 ? BERTH_DTYPE_I64 : BERTH_DTYPE_I32, value);
    if (type == p->index) return value;
    bool widen_sign = type == SPIRV_TYPE_U32 && berth_dtype_is_signed(from);
    return berth_spirv_unary(p->m, widen_sign ? SPIRV_SConvert : SPIRV_UConvert, p->index, value);
}

static uint32_t atom(berth_spirv_printer *p, berth_expr id, int lane) {
    const berth_expr_node node = *node_of(p, id);
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_INT: return berth_spirv_index_int(p, node.i);
    case BERTH_EXPR_VAR: return p->vars[node.var][node.lanes > 1 ? lane : 0];
    case BERTH_EXPR_BINARY: return atom_binary(p, &node, lane);
    case BERTH_EXPR_UNARY:
        if (node.op != BERTH_UNARY_NEG) break;
        return calculate(p, SPIRV_ISub, berth_spirv_index_int(p, 0),
                         berth_spirv_index(p, node.a, lane));
    case BERTH_EXPR_SELECT: {
        uint32_t condition = berth_spirv_value(p, node.a)[node_of(p, node.a)->lanes > 1 ? lane : 0];
        uint32_t b = berth_spirv_index(p, node.b, lane);
        return berth_spirv_select(p->m, p->index, condition, b, berth_spirv_index(p, node.c, lane));
    }
    case BERTH_EXPR_BROADCAST: return berth_spirv_index(p, node.a, 0);
    case BERTH_EXPR_RAMP:
        return calculate(p, SPIRV_IAdd, berth_spirv_index(p, node.a, 0),
                         berth_spirv_index_int(p, lane));
    case BERTH_EXPR_CAST: {
        const berth_expr_node from = *node_of(p, node.a);
        if (from.is_index) return berth_spirv_index(p, node.a, lane);
        return to_index(p, (berth_dtype)from.dtype,
                        berth_spirv_value(p, node.a)[from.lanes > 1 ? lane : 0]);
    }
    case BERTH_EXPR_LOAD:
        return to_index(p, p->fn->bufs.data[node.load.buf].dtype,
                        berth_spirv_load(p, id)[node.lanes > 1 ? lane : 0]);
    default: break;
    }
    berth_spirv_fail(
        p, berth_status_make(BERTH_UNSUPPORTED, "index expression of kind %d", node.kind));
    return berth_spirv_index_int(p, 0);
}

uint32_t berth_spirv_linear(berth_spirv_printer *p, berth_linear form) {
    uint32_t sum = berth_spirv_index_int(p, 0);
    for (int i = 0; i < form.count; ++i) {
        uint32_t term = atom(p, form.terms[i].atom, 0);
        term = calculate(p, SPIRV_IMul, term, berth_spirv_index_int(p, form.terms[i].coefficient));
        sum = i ? calculate(p, SPIRV_IAdd, sum, term) : term;
    }
    return calculate(p, SPIRV_IAdd, sum, berth_spirv_index_int(p, form.constant));
}

uint32_t berth_spirv_index(berth_spirv_printer *p, berth_expr id, int lane) {
    if (node_of(p, id)->lanes > 1) return atom(p, id, lane);
    return berth_spirv_linear(p, berth_linear_of(p->fn, &p->ranges, id));
}

bool berth_spirv_is_index_comparison(const berth_spirv_printer *p, const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY && node->op >= BERTH_BINARY_EQ &&
           node->op <= BERTH_BINARY_GE && node_of(p, node->a)->is_index;
}

uint32_t berth_spirv_index_comparison(berth_spirv_printer *p, const berth_expr_node *node,
                                      int lane) {
    static const berth_spirv_opcode ops[] = {SPIRV_IEqual,       SPIRV_INotEqual,
                                             SPIRV_SLessThan,    SPIRV_SLessThanEqual,
                                             SPIRV_SGreaterThan, SPIRV_SGreaterThanEqual};
    int which = node->op - BERTH_BINARY_EQ;
    if (node->lanes == 1) {
        berth_expr difference = berth_tfn_binary(p->fn, BERTH_BINARY_SUB, node->a, node->b);
        berth_linear form = berth_linear_of(p->fn, &p->ranges, difference);
        berth_range range = berth_linear_range(p->fn, &p->ranges, &form);
        bool all[] = {range.low == 0 && range.high == 0, range.low > 0 || range.high < 0,
                      range.high<0, range.high <= 0, range.low> 0, range.low >= 0};
        bool none[] = {all[1], all[0], all[5], all[4], all[3], all[2]};
        if (all[which] || none[which]) return berth_spirv_bool(p->m, all[which]);
    }
    uint32_t a = berth_spirv_index(p, node->a, lane), b = berth_spirv_index(p, node->b, lane);
    return test(p, ops[which], a, b);
}
