// Operators that move elements: the output's indices become the operand's.
#include "compiler/lower/families.h"

#include <string.h>

#include "compiler/lower/tfn_simplify.h"

berth_expr berth_lower__same(berth_lower *c, const berth_op *op, uint32_t output,
                             const berth_expr *at) {
    (void)output;
    return in_at(c, op, 0, at);
}

// reshape, flatten, squeeze, unsqueeze. Runs of dimensions with equal products are mapped by
// themselves, so that dimensions that stay need no division.
berth_expr berth_lower__reshape(berth_lower *c, const berth_op *op, uint32_t output,
                                const berth_expr *at) {
    const berth_type *from = in_type(c, op, 0);
    const berth_type *to = out_type(c, op, output);
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < from->rank; ++d) mapped[d] = ix(c, 0);
    bool empty = false;
    for (int d = 0; d < to->rank; ++d) empty |= to->dims[d] == 0;
    for (int i = 0, k = 0; !empty && (i < from->rank || k < to->rank);) {
        int i_end = i;
        int k_end = k;
        int64_t a = 1;
        int64_t b = 1;
        if (i_end < from->rank) a *= from->dims[i_end++];
        if (k_end < to->rank) b *= to->dims[k_end++];
        while (a != b) {
            if (a < b && i_end < from->rank)
                a *= from->dims[i_end++];
            else if (k_end < to->rank)
                b *= to->dims[k_end++];
            else
                break;
        }
        while (i_end < from->rank && from->dims[i_end] == 1) i_end++;
        while (k_end < to->rank && to->dims[k_end] == 1) k_end++;
        berth_expr position = berth_lower__linearise(c, k_end - k, to->dims + k, at + k);
        berth_lower__delinearise(c, i_end - i, from->dims + i, position, mapped + i);
        i = i_end;
        k = k_end;
    }
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__transpose(berth_lower *c, const berth_op *op, uint32_t output,
                                  const berth_expr *at) {
    (void)output;
    int rank = in_type(c, op, 0)->rank;
    uint32_t count = 0;
    const int64_t *perm = berth_attrs_ints(c->module, &op->attrs, "perm", &count);
    berth_expr mapped[BERTH_MAX_RANK] = {0};
    if (perm && count != (uint32_t)rank) {
        berth_lower__fail(c, op, "attribute perm has %u entries for rank %d", count, rank);
        return in_at(c, op, 0, at);
    }
    for (int d = 0; d < rank; ++d) {
        int64_t source = perm ? perm[d] : rank - 1 - d;
        if (source < 0 || source >= rank || mapped[source]) {
            berth_lower__fail(c, op, "attribute perm is not a permutation");
            return in_at(c, op, 0, at);
        }
        mapped[source] = at[d];
    }
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__expand(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    return berth_lower__in_broadcast(c, op, 0, out_type(c, op, output)->rank, at);
}

berth_expr berth_lower__tile(berth_lower *c, const berth_op *op, uint32_t output,
                             const berth_expr *at) {
    const berth_type *from = in_type(c, op, 0);
    const berth_type *to = out_type(c, op, output);
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < from->rank; ++d) {
        bool repeats = to->dims[d] > from->dims[d];
        mapped[d] = repeats && from->dims[d] > 0 ? x_mod(c, at[d], ix(c, from->dims[d])) : at[d];
    }
    return in_at(c, op, 0, mapped);
}

// A chain of selects, first operand outermost.
berth_expr berth_lower__concat(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    int rank = out_type(c, op, output)->rank;
    int axis = berth_lower__axis(c, op, 0, rank);
    int64_t start[2] = {out_type(c, op, output)->dims[axis], 0};
    berth_expr mapped[BERTH_MAX_RANK];
    memcpy(mapped, at, (size_t)rank * sizeof(*at));
    berth_expr value = 0;
    for (uint32_t i = op->input_count; i-- > 0;) {
        int64_t extent = in_type(c, op, i)->dims[axis];
        int64_t end = start[0];
        start[0] -= extent;
        if (extent == 0) continue;
        mapped[axis] = x_addi(c, at[axis], -start[0]);
        berth_expr part = in_at(c, op, i, mapped);
        value = value ? x_select(c, x_lt(c, at[axis], ix(c, end)), part, value) : part;
    }
    return value ? value : num(c, out_dtype(c, op, output), 0);
}

static void put_rows(berth_lower *c, const berth_op *op, uint32_t operand, int axis,
                     int64_t start) {
    const berth_type *rows = in_type(c, op, operand);
    berth_expr at[BERTH_MAX_RANK], to[BERTH_MAX_RANK];
    uint32_t last = 1u << (rows->rank - 1);
    int loops = berth_lower__outer(c, rows->rank, rows->dims, last, at);
    loops += berth_lower__inner(c, rows->rank, rows->dims, last, at);
    memcpy(to, at, (size_t)rows->rank * sizeof(*at));
    to[axis] = x_addi(c, at[axis], start);
    berth_lower__put(c, berth_lower__buffer(c, 0), to, in_at(c, op, operand, at));
    berth_lower__end_loops(c, loops);
}

// With one operand the new rows alone: all before them is in the result's memory already.
void berth_lower__append(berth_lower *c, const berth_op *op) {
    int axis = berth_lower__axis(c, op, 0, in_type(c, op, 0)->rank);
    int64_t start = attr_int(c, op, "at", 0);
    for (uint32_t i = 0; i < op->input_count && !c->failure; ++i) {
        put_rows(c, op, i, axis, start);
        start += in_type(c, op, i)->dims[axis];
        if (i + 1 < op->input_count) berth_lower__next_nest(c);
    }
}

berth_expr berth_lower__split(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    int rank = in_type(c, op, 0)->rank;
    int axis = berth_lower__axis(c, op, 0, rank);
    int64_t start = 0;
    for (uint32_t i = 0; i < output; ++i) start += out_type(c, op, i)->dims[axis];
    berth_expr mapped[BERTH_MAX_RANK];
    memcpy(mapped, at, (size_t)rank * sizeof(*at));
    mapped[axis] = x_addi(c, at[axis], start);
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__slice(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    (void)output;
    const berth_type *from = in_type(c, op, 0);
    berth_expr mapped[BERTH_MAX_RANK];
    memcpy(mapped, at, (size_t)from->rank * sizeof(*at));
    const berth_tensor *starts = berth_lower__constant(c, op, 1);
    const berth_tensor *ends = berth_lower__constant(c, op, 2);
    const berth_tensor *axes = has_in(op, 3) ? berth_lower__constant(c, op, 3) : NULL;
    const berth_tensor *steps = has_in(op, 4) ? berth_lower__constant(c, op, 4) : NULL;
    if (c->failure) return num(c, out_dtype(c, op, output), 0);
    for (int64_t i = 0; i < berth_tensor_element_count(starts); ++i) {
        int axis = 0;
        int64_t named = axes ? berth_tensor_get_i64(axes, i) : i;
        int64_t step = steps ? berth_tensor_get_i64(steps, i) : 1;
        if (!berth_lower__check(c, op, berth_axis_resolve(named, from->rank, "axis", &axis))) break;
        int64_t start = 0;
        int64_t count = berth_slice_axis(from->dims[axis], berth_tensor_get_i64(starts, i),
                                         berth_tensor_get_i64(ends, i), step, &start);
        // of one element no multiple is taken: a step may be more than an index can hold
        mapped[axis] = count > 1 ? x_addi(c, x_muli(c, at[axis], step), start) : ix(c, start);
    }
    return in_at(c, op, 0, mapped);
}

// ---- pad ----------------------------------------------------------------------------------------

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

// Index of dimension d in the operand; *condition gets the part that is inside (PAD_CONSTANT).
static berth_expr pad_index(berth_lower *c, pad_mode mode, berth_expr index, int64_t begin,
                            int64_t end, int64_t extent, berth_expr *condition) {
    berth_expr zero = ix(c, 0);
    if (begin == 0 && end == 0) return index;
    berth_expr moved = x_addi(c, index, -begin);
    berth_expr last = ix(c, extent - 1);
    switch (mode) {
    case PAD_CONSTANT:
        if (begin > 0) *condition = x_and(c, *condition, x_ge(c, moved, zero));
        if (end > 0) *condition = x_and(c, *condition, x_lt(c, moved, ix(c, extent)));
        return moved;
    case PAD_EDGE: return x_max(c, zero, x_min(c, moved, last));
    case PAD_WRAP: return x_mod(c, moved, ix(c, extent));
    case PAD_REFLECT: break;
    }
    if (extent == 1) return zero;
    int64_t period = 2 * (extent - 1);
    if (begin < extent && end < extent) {  // one reflection: |i|, then mirrored at the end
        berth_expr front = x_max(c, moved, x_sub(c, zero, moved));
        return x_min(c, front, x_sub(c, ix(c, period), front));
    }
    berth_expr folded = x_mod(c, moved, ix(c, period));
    return x_min(c, folded, x_sub(c, ix(c, period), folded));
}

static bool read_pad_mode(berth_lower *c, const berth_op *op, pad_mode *out_mode) {
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    const char *text = attr_str(c, op, "mode", "constant");
    for (int i = 0; i < 4; ++i) {
        if (strcmp(text, names[i]) != 0) continue;
        *out_mode = (pad_mode)i;
        return true;
    }
    berth_lower__fail(c, op, "mode \"%s\"", text);
    return false;
}

// Pads per dimension: begins, then ends.
static bool read_pads(berth_lower *c, const berth_op *op, int rank, int64_t *pads) {
    const berth_tensor *values = berth_lower__constant(c, op, 1);
    const berth_tensor *axes = has_in(op, 3) ? berth_lower__constant(c, op, 3) : NULL;
    memset(pads, 0, sizeof(*pads) * 2 * BERTH_MAX_RANK);
    if (c->failure) return false;
    int64_t count = berth_tensor_element_count(values) / 2;
    for (int64_t i = 0; i < count; ++i) {
        int axis = 0;
        int64_t named = axes ? berth_tensor_get_i64(axes, i) : i;
        if (!berth_lower__check(c, op, berth_axis_resolve(named, rank, "axis", &axis)))
            return false;
        pads[axis] = berth_tensor_get_i64(values, i);
        pads[BERTH_MAX_RANK + axis] = berth_tensor_get_i64(values, count + i);
    }
    return true;
}

bool berth_lower__constant_pads(berth_lower *c, const berth_op *op,
                                int64_t pads[2 * BERTH_MAX_RANK]) {
    const berth_type *type = out_type(c, op, 0);
    pad_mode mode = PAD_CONSTANT;
    berth_layout layout;
    if (op->kind != BERTH_OP_PAD) return false;
    if (!read_pads(c, op, type->rank, pads) || !read_pad_mode(c, op, &mode)) return false;
    berth_status status =
        berth_layout_parse(berth_module_str(c->module, type->layout), type->rank, &layout);
    if (!berth_lower__check(c, op, status)) return false;
    for (int d = 0; d < type->rank; ++d) {
        int64_t begin = pads[d], end = pads[BERTH_MAX_RANK + d];
        if (begin < 0 || end < 0 || (begin + end > 0 && layout.total_block[d] > 1)) return false;
    }
    return mode == PAD_CONSTANT;
}

berth_expr berth_lower__pad(berth_lower *c, const berth_op *op, uint32_t output,
                            const berth_expr *at) {
    const berth_type *from = in_type(c, op, 0);
    berth_dtype t = out_dtype(c, op, output);
    int64_t pads[2 * BERTH_MAX_RANK];
    pad_mode mode = PAD_CONSTANT;
    if (!read_pads(c, op, from->rank, pads) || !read_pad_mode(c, op, &mode)) return num(c, t, 0);
    berth_expr mapped[BERTH_MAX_RANK];
    berth_expr condition = 0;
    for (int d = 0; d < from->rank; ++d)
        mapped[d] =
            pad_index(c, mode, at[d], pads[d], pads[BERTH_MAX_RANK + d], from->dims[d], &condition);
    berth_expr value = in_at(c, op, 0, mapped);
    if (!condition) return value;
    berth_expr zeros[BERTH_MAX_RANK];
    for (int d = 0; d < BERTH_MAX_RANK; ++d) zeros[d] = ix(c, 0);
    berth_expr fill = has_in(op, 2) ? in_at(c, op, 2, zeros) : num(c, t, 0);
    return x_select(c, condition, value, fill);
}

// ---- blocks of space ----------------------------------------------------------------------------

berth_expr berth_lower__depth_to_space(berth_lower *c, const berth_op *op, uint32_t output,
                                       const berth_expr *at) {
    int64_t block = attr_int(c, op, "blocksize", 1);
    int64_t channels = out_type(c, op, output)->dims[1];
    bool crd = strcmp(attr_str(c, op, "mode", "DCR"), "CRD") == 0;
    berth_expr size = ix(c, block);
    berth_expr dy = x_mod(c, at[2], size);
    berth_expr dx = x_mod(c, at[3], size);
    berth_expr cell = x_add(c, x_muli(c, dy, block), dx);
    berth_expr channel = crd ? x_add(c, x_muli(c, at[1], block * block), cell)
                             : x_add(c, x_muli(c, cell, channels), at[1]);
    berth_expr mapped[4] = {at[0], channel, x_div(c, at[2], size), x_div(c, at[3], size)};
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__space_to_depth(berth_lower *c, const berth_op *op, uint32_t output,
                                       const berth_expr *at) {
    (void)output;
    int64_t block = attr_int(c, op, "blocksize", 1);
    int64_t channels = in_type(c, op, 0)->dims[1];
    bool crd = strcmp(attr_str(c, op, "mode", "DCR"), "CRD") == 0;
    berth_expr cells = ix(c, block * block);
    berth_expr cell = crd ? x_mod(c, at[1], cells) : x_div(c, at[1], ix(c, channels));
    berth_expr channel = crd ? x_div(c, at[1], cells) : x_mod(c, at[1], ix(c, channels));
    berth_expr dy = x_div(c, cell, ix(c, block));
    berth_expr dx = x_mod(c, cell, ix(c, block));
    berth_expr mapped[4] = {at[0], channel, x_add(c, x_muli(c, at[2], block), dy),
                            x_add(c, x_muli(c, at[3], block), dx)};
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__reverse_sequence(berth_lower *c, const berth_op *op, uint32_t output,
                                         const berth_expr *at) {
    int rank = out_type(c, op, output)->rank;
    int64_t time = attr_int(c, op, "time_axis", 0);
    int64_t batch = attr_int(c, op, "batch_axis", 1);
    berth_expr mapped[BERTH_MAX_RANK];
    memcpy(mapped, at, (size_t)rank * sizeof(*at));
    if (time < 0 || time >= rank || batch < 0 || batch >= rank || time == batch) {
        berth_lower__fail(c, op, "time_axis %lld, batch_axis %lld", (long long)time,
                          (long long)batch);
        return in_at(c, op, 0, at);
    }
    int64_t extent = out_type(c, op, output)->dims[time];
    berth_expr given = berth_tfn_to_index(c->fn, in_at(c, op, 1, &at[batch]));
    berth_expr length = x_max(c, ix(c, 0), x_min(c, given, ix(c, extent)));
    berth_expr mirrored = x_sub(c, x_addi(c, length, -1), at[time]);
    mapped[time] = x_select(c, x_lt(c, at[time], length), mirrored, at[time]);
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__trilu(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    int rank = out_type(c, op, output)->rank;
    int64_t k = 0;
    if (has_in(op, 1)) {
        const berth_tensor *given = berth_lower__constant(c, op, 1);
        if (!given) return num(c, out_dtype(c, op, output), 0);
        k = berth_tensor_get_i64(given, 0);
    }
    berth_expr offset = x_sub(c, at[rank - 1], at[rank - 2]);
    bool upper = attr_int(c, op, "upper", 1) != 0;
    berth_expr keep = upper ? x_ge(c, offset, ix(c, k)) : x_le(c, offset, ix(c, k));
    return x_select(c, keep, in_at(c, op, 0, at), num(c, out_dtype(c, op, output), 0));
}

berth_expr berth_lower__eye_like(berth_lower *c, const berth_op *op, uint32_t output,
                                 const berth_expr *at) {
    berth_dtype t = out_dtype(c, op, output);
    berth_expr on = x_eq(c, x_sub(c, at[1], at[0]), ix(c, attr_int(c, op, "k", 0)));
    return x_select(c, on, num(c, t, 1), num(c, t, 0));
}
