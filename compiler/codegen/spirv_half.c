// f16 in the SPIR-V generator, for devices that compute with it. Values of f16 are computed in f32 and rounded
// where the function says so; here is what may be computed in f16 because it gives the same bits: exact
// operations; minima and maxima, which rounding does not change the order of; and sums, differences and
// products of two numbers that f16 holds, since f32 has more than twice its digits plus one, so that rounding
// twice is rounding once (S. A. Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
// Divisions and square roots stay in f32: Vulkan promises less of them. Time is linear in the expression up to
// `most_depth`, which keeps what is shared from being walked again and again.
#include "base/dtype.h"
#include "compiler/codegen/spirv_math.h"
#include "compiler/codegen/spirv_printer.h"

enum { most_depth = 6 };

static const berth_expr_node *node_of(const berth_spirv_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

// Whether f16 holds every value that the expression may have.
static bool is_exact(const berth_spirv_printer *p, berth_expr id, int depth) {
    const berth_expr_node *node = node_of(p, id);
    if (node->is_index || depth > most_depth) return false;
    if (node->dtype == BERTH_DTYPE_F16)
        return node->kind == BERTH_EXPR_LOAD || node->kind == BERTH_EXPR_CAST;
    if (node->dtype != BERTH_DTYPE_F32) return false;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_FLOAT:
        return (double)berth_f16_to_f32(berth_f32_to_f16((float)node->f)) == node->f;
    case BERTH_EXPR_CAST: return is_exact(p, node->a, depth + 1);
    case BERTH_EXPR_BROADCAST: return is_exact(p, node->a, depth + 1);
    case BERTH_EXPR_UNARY:
        return (node->op == BERTH_UNARY_NEG || node->op == BERTH_UNARY_ABS) &&
               is_exact(p, node->a, depth + 1);
    case BERTH_EXPR_BINARY:
        return (node->op == BERTH_BINARY_MIN || node->op == BERTH_BINARY_MAX) &&
               is_exact(p, node->a, depth + 1) && is_exact(p, node->b, depth + 1);
    default: return false;
    }
}

static bool computes_in_half(const berth_spirv_printer *p, const berth_expr_node *node, int depth) {
    if (node->is_index || depth > most_depth ||
        (node->dtype != BERTH_DTYPE_F32 && node->dtype != BERTH_DTYPE_F16))
        return false;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_CAST: {
        const berth_expr_node *from = node_of(p, node->a);
        return !from->is_index &&
               (from->dtype == BERTH_DTYPE_F16 || from->dtype == BERTH_DTYPE_F32);
    }
    case BERTH_EXPR_BROADCAST: return true;
    case BERTH_EXPR_UNARY: return node->op == BERTH_UNARY_NEG || node->op == BERTH_UNARY_ABS;
    case BERTH_EXPR_BINARY:
        if (node->op == BERTH_BINARY_MIN || node->op == BERTH_BINARY_MAX) return true;
        return (node->op == BERTH_BINARY_ADD || node->op == BERTH_BINARY_SUB ||
                node->op == BERTH_BINARY_MUL) &&
               is_exact(p, node->a, depth) && is_exact(p, node->b, depth);
    default: return false;
    }
}

static const uint32_t *half_of(berth_spirv_printer *p, berth_expr id, int depth) {
    const berth_expr_node node = *node_of(p, id);
    uint32_t *y = berth_arena_new_array(p->arena, uint32_t, node.lanes ? node.lanes : 1);
    if (node.kind == BERTH_EXPR_FLOAT && node.dtype == BERTH_DTYPE_F32) {
        y[0] = berth_spirv_float(p->m, SPIRV_TYPE_F16, node.f);
        return y;
    }
    if (!computes_in_half(p, &node, depth)) {
        const uint32_t *a = berth_spirv_value(p, id);
        for (int l = 0; l < node.lanes; ++l) y[l] = berth_spirv_to_f16(p->m, a[l]);
        return y;
    }
    const uint32_t *a = half_of(p, node.a, depth + 1);
    if (node.kind == BERTH_EXPR_CAST) return a;
    const uint32_t *b = node.kind == BERTH_EXPR_BINARY ? half_of(p, node.b, depth + 1) : NULL;
    for (int l = 0; l < node.lanes; ++l) {
        if (node.kind == BERTH_EXPR_BROADCAST)
            y[l] = a[0];
        else if (b)
            y[l] =
                berth_spirv_float_binary(p->m, SPIRV_TYPE_F16, (berth_binary)node.op, a[l], b[l]);
        else
            y[l] = berth_spirv_float_unary(p->m, SPIRV_TYPE_F16, (berth_unary)node.op, a[l]);
    }
    return y;
}

const uint32_t *berth_spirv_half(berth_spirv_printer *p, berth_expr id) {
    return half_of(p, id, 0);
}
