#include "compiler/codegen/lanes.h"

static berth_expr lane_index(berth_tfn *fn, berth_expr id, int lane, berth_status *out_status) {
    const berth_expr_node node = fn->exprs.data[id];
    if (node.lanes == 1) return id;
    berth_expr a = 0, b = 0;
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_RAMP:
        return berth_tfn_binary(fn, BERTH_BINARY_ADD, node.a, berth_tfn_index(fn, lane));
    case BERTH_EXPR_BROADCAST: return node.a;
    case BERTH_EXPR_BINARY:
        a = lane_index(fn, node.a, lane, out_status);
        b = lane_index(fn, node.b, lane, out_status);
        return berth_tfn_binary(fn, (berth_binary)node.op, a, b);
    case BERTH_EXPR_UNARY:
        return berth_tfn_unary(fn, (berth_unary)node.op, lane_index(fn, node.a, lane, out_status));
    case BERTH_EXPR_SELECT:
        a = lane_index(fn, node.a, lane, out_status);
        b = lane_index(fn, node.b, lane, out_status);
        return berth_tfn_select(fn, a, b, lane_index(fn, node.c, lane, out_status));
    default:
        if (!*out_status)
            *out_status =
                berth_status_make(BERTH_UNSUPPORTED, "vector index of kind %d", node.kind);
        return berth_tfn_index(fn, 0);
    }
}

berth_linear berth_lane_access(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                               const berth_expr *indices, int count, int lane,
                               berth_status *out_status) {
    berth_expr moved[BERTH_MAX_RANK];
    for (int d = 0; d < count; ++d) moved[d] = lane_index(fn, indices[d], lane, out_status);
    return berth_linear_access(fn, ranges, buf, moved, count);
}

bool berth_lane_places(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                       const berth_expr *indices, int count, int lanes, berth_linear *out_first,
                       int64_t *out_places, berth_status *out_status) {
    *out_first = berth_lane_access(fn, ranges, buf, indices, count, 0, out_status);
    for (int l = 0; l < lanes; ++l) {
        berth_linear at = berth_lane_access(fn, ranges, buf, indices, count, l, out_status);
        if (!berth_linear_distance(fn, out_first, &at, &out_places[l])) return false;
    }
    return true;
}
