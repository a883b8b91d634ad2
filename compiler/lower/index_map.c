#include "compiler/lower/context.h"
#include "compiler/lower/tfn_simplify.h"

void berth_lower__broadcast(berth_lower *c, berth_value_id value, int rank, const berth_expr *at,
                            berth_expr *out_at) {
    const berth_type *type = type_of(c, value);
    for (int d = 0; d < type->rank; ++d)
        out_at[d] = type->dims[d] == 1 ? ix(c, 0) : at[rank - type->rank + d];
}

berth_expr berth_lower__in_broadcast(berth_lower *c, const berth_op *op, uint32_t i, int rank,
                                     const berth_expr *at) {
    berth_expr mapped[BERTH_MAX_RANK];
    berth_lower__broadcast(c, op->inputs[i], rank, at, mapped);
    return in_at(c, op, i, mapped);
}

berth_expr berth_lower__linearise(berth_lower *c, int rank, const int64_t *dims,
                                  const berth_expr *at) {
    berth_expr position = 0;
    for (int d = 0; d < rank; ++d) {
        if (dims[d] == 1) continue;
        position = position ? x_add(c, x_muli(c, position, dims[d]), at[d]) : at[d];
    }
    return position ? position : ix(c, 0);
}

void berth_lower__delinearise(berth_lower *c, int rank, const int64_t *dims, berth_expr position,
                              berth_expr *out_at) {
    berth_ranges ranges = {c->ranges.data, c->ranges.count};
    int64_t below = 1;
    int first = 0;  // outermost dimension of more than one element needs no remainder
    while (first < rank && dims[first] == 1) first++;
    for (int d = rank - 1; d >= 0; --d) {
        if (dims[d] <= 1) {
            out_at[d] = ix(c, 0);
            continue;
        }
        berth_expr index = x_div(c, position, ix(c, below));
        if (d != first) index = x_mod(c, index, ix(c, dims[d]));
        out_at[d] = berth_tfn_simplify(c->fn, index, &ranges);
        below *= dims[d];
    }
}

berth_expr berth_lower__data_index(berth_lower *c, berth_expr loaded, int64_t extent) {
    berth_expr index = berth_tfn_to_index(c->fn, loaded);
    berth_expr zero = ix(c, 0);
    berth_expr wrapped = x_select(c, x_lt(c, index, zero), x_addi(c, index, extent), index);
    return x_max(c, zero, x_min(c, wrapped, ix(c, extent > 0 ? extent - 1 : 0)));
}

int berth_lower__axis(berth_lower *c, const berth_op *op, int64_t fallback, int rank) {
    int axis = 0;
    int64_t given = attr_int(c, op, "axis", fallback);
    if (!berth_lower__check(c, op, berth_axis_resolve(given, rank, "axis", &axis))) return 0;
    return axis;
}

uint32_t berth_lower__axes(berth_lower *c, const berth_op *op, uint32_t operand, const char *name,
                           int rank, bool *out_given) {
    uint32_t count = 0;
    const int64_t *listed = name ? berth_attrs_ints(c->module, &op->attrs, name, &count) : NULL;
    const berth_tensor *tensor = has_in(op, operand) ? berth_lower__constant(c, op, operand) : NULL;
    *out_given = listed != NULL || tensor != NULL;
    if (tensor) count = (uint32_t)berth_tensor_element_count(tensor);
    uint32_t mask = 0;
    for (uint32_t i = 0; i < count; ++i) {
        int axis = 0;
        int64_t given = tensor ? berth_tensor_get_i64(tensor, i) : listed[i];
        if (!berth_lower__check(c, op, berth_axis_resolve(given, rank, "axis", &axis))) return 0;
        mask |= 1u << axis;
    }
    return mask;
}
