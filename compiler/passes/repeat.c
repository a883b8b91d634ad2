#include "compiler/passes/repeat.h"

#include <string.h>

enum { most_operands = 3 };  // of an elementwise operation

static const berth_type *type_of(const berth_rewriter *r, berth_value_id value) {
    return berth_type_get(r->module,
                          berth_graph_get(r->module, r->function)->values.data[value].type);
}

static berth_op op_at(const berth_rewriter *r, berth_op_id id) {
    return berth_graph_get(r->module, r->function)->ops.data[id];
}

static int64_t product_of(const int64_t *dims, int count) {
    int64_t product = 1;
    for (int d = 0; d < count; ++d) product *= dims[d];
    return product;
}

// ---- repeated operands --------------------------------------------------------------------------

typedef struct repeated {
    berth_value_id source;         // [.., groups, rows, columns], in any shape of these elements
    int rank;                      // of what is multiplied
    int64_t dims[BERTH_MAX_RANK];  // before it is repeated and transposed
    int64_t times;
    bool transposed;  // its last two dimensions, afterwards
    berth_loc_id loc;
} repeated;

static bool transposes_matrices(const berth_rewriter *r, const berth_op *op, int rank) {
    uint32_t count = 0;
    if (!op || op->kind != BERTH_OP_TRANSPOSE) return false;
    const int64_t *perm = berth_attrs_ints(r->module, &op->attrs, "perm", &count);
    if (!perm || count != (uint32_t)rank) return false;
    for (int d = 0; d < rank; ++d) {
        int from = d == rank - 1 ? rank - 2 : d == rank - 2 ? rank - 1 : d;
        if (perm[d] != from) return false;
    }
    return true;
}

// Whether `expand` repeats along one dimension of 1, whose place in the result is *out_axis.
static bool repeats_one(const berth_type *from, const berth_type *to, int *out_axis) {
    *out_axis = -1;
    if (from->rank != to->rank) return false;
    for (int d = 0; d < to->rank; ++d) {
        if (from->dims[d] == to->dims[d]) continue;
        if (from->dims[d] != 1 || *out_axis >= 0) return false;
        *out_axis = d;
    }
    return *out_axis >= 0;
}

// A view of what `expand` makes, in which the repeated dimension is the inner part of the last one
// before the matrices: [.., groups, times, rows, columns] as [.., groups * times, rows, columns].
static bool read_repeated(berth_rewriter *r, berth_value_id value, repeated *out) {
    const berth_type *seen = type_of(r, value);
    const berth_op *view = berth_rewriter_def(r, value);
    int axis = -1;
    if (!view || view->kind != BERTH_OP_RESHAPE || out->rank < 3) return false;
    const berth_op *expand = berth_rewriter_def(r, view->inputs[0]);
    if (!expand || expand->kind != BERTH_OP_EXPAND) return false;
    berth_value_id source = berth_rewriter_resolve(r, expand->inputs[0]);
    const berth_type *from = type_of(r, source);
    const berth_type *to = type_of(r, expand->outputs[0]);
    if (!berth_type_is_static(from) || !berth_type_is_static(to) || !berth_type_is_static(seen) ||
        seen->rank != out->rank || !repeats_one(from, to, &axis) || to->dims[axis] < 1)
        return false;
    out->source = source;
    out->loc = expand->loc;
    out->times = to->dims[axis];
    memcpy(out->dims, seen->dims, sizeof(out->dims));
    int64_t inner = product_of(seen->dims + out->rank - 2, 2);
    if (inner == 0 || seen->dims[out->rank - 3] % out->times ||
        product_of(to->dims + axis + 1, to->rank - axis - 1) != inner)
        return false;
    out->dims[out->rank - 3] /= out->times;
    return true;
}

static bool find_repeated(berth_rewriter *r, berth_value_id value, repeated *out) {
    value = berth_rewriter_resolve(r, value);
    *out = (repeated){.rank = type_of(r, value)->rank};
    const berth_op *def = berth_rewriter_def(r, value);
    if (transposes_matrices(r, def, out->rank)) {
        out->transposed = true;
        value = berth_rewriter_resolve(r, def->inputs[0]);
    }
    return read_repeated(r, value, out);
}

static berth_status transpose(berth_rewriter *r, berth_op_id at, int rank, berth_loc_id loc,
                              berth_value_id *value) {
    int64_t perm[BERTH_MAX_RANK];
    for (int d = 0; d < rank; ++d) perm[d] = d;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    berth_attrs attrs = {0};
    berth_attrs_set_ints(r->module, &attrs, "perm", perm, (uint32_t)rank);
    return berth_rewriter_insert(r, at, BERTH_OP_TRANSPOSE, value, 1, &attrs, loc, value);
}

berth_status berth_join_repeated(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    repeated b;
    berth_type a = *type_of(r, op.inputs[0]), y = *type_of(r, op.outputs[0]);
    int rank = y.rank;
    if (!berth_type_is_static(&a) || !berth_type_is_static(&y) || a.rank != rank || rank < 3 ||
        !find_repeated(r, op.inputs[1], &b) || b.rank != rank)
        return BERTH_OK;
    int64_t rows = a.dims[rank - 2];
    if (a.dims[rank - 3] != b.dims[rank - 3] * b.times || rows < 1 || rows >= BERTH_REPEAT_ROWS)
        return BERTH_OK;
    if (!berth_rewriter_may_join(r, b.loc, op.loc)) return BERTH_OK;
    berth_loc_id loc = berth_loc_fuse(r->module, (berth_loc_id[]){b.loc, op.loc}, 2);
    berth_value_id inputs[2] = {op.inputs[0], b.source};
    a.dims[rank - 3] = b.dims[rank - 3];
    a.dims[rank - 2] = b.times * rows;
    BERTH_TRY(berth_rewriter_reshape(r, id, rank, a.dims, loc, &inputs[0]));
    BERTH_TRY(berth_rewriter_reshape(r, id, rank, b.dims, loc, &inputs[1]));
    if (b.transposed) BERTH_TRY(transpose(r, id, rank, loc, &inputs[1]));
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MATMUL, inputs, 2, NULL, loc, &result));
    BERTH_TRY(berth_rewriter_reshape(r, id, rank, y.dims, loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// ---- what follows a reshaped product ------------------------------------------------------------

// How many dimensions at the end two shapes have in common.
static int common_tail(const berth_type *from, const berth_type *to) {
    int tail = 0;
    while (tail < from->rank && tail < to->rank &&
           from->dims[from->rank - 1 - tail] == to->dims[to->rank - 1 - tail])
        tail++;
    return tail;
}

// Whether a value is broadcast along all but the last `tail` dimensions.
static bool is_within_tail(const berth_type *type, int tail) {
    if (!berth_type_is_static(type)) return false;
    for (int d = 0; d < type->rank - tail; ++d)
        if (type->dims[d] != 1) return false;
    return true;
}

// Whether a value is a product, or one that something was done to element by element; each is used
// once. depth: 0.
static bool follows_product(berth_rewriter *r, berth_value_id value, int depth) {
    enum { most_depth = 8 };
    const berth_op *def = berth_rewriter_def(r, value);
    if (!def || depth > most_depth || berth_rewriter_uses(r, value) != 1) return false;
    if (def->kind == BERTH_OP_MATMUL) return true;
    for (uint32_t i = 0; i < def->input_count && def->output_count == 1; ++i)
        if (berth_op_has(def->kind, BERTH_TRAIT_ELEMENTWISE) && def->inputs[i] != BERTH_NONE &&
            follows_product(r, berth_rewriter_resolve(r, def->inputs[i]), depth + 1))
            return true;
    return false;
}

// Whether operand `at` is a product in another shape that nobody else reads, with the operation's shape;
// *out_product: the product.
static bool is_reshaped_product(berth_rewriter *r, const berth_op *op, uint32_t at,
                                berth_value_id *out_product) {
    berth_value_id value = berth_rewriter_resolve(r, op->inputs[at]);
    const berth_op *view = berth_rewriter_def(r, value);
    if (!view || view->kind != BERTH_OP_RESHAPE || berth_rewriter_uses(r, value) != 1) return false;
    *out_product = berth_rewriter_resolve(r, view->inputs[0]);
    const berth_type *seen = type_of(r, value), *y = type_of(r, op->outputs[0]);
    return follows_product(r, *out_product, 0) && seen->rank == y->rank &&
           memcmp(seen->dims, y->dims, (size_t)y->rank * sizeof(*y->dims)) == 0;
}

static bool others_fit(berth_rewriter *r, const berth_op *op, uint32_t at, int tail) {
    for (uint32_t k = 0; k < op->input_count; ++k)
        if (k != at && !is_within_tail(type_of(r, berth_rewriter_resolve(r, op->inputs[k])), tail))
            return false;
    return true;
}

// The operation with operand `at` in the shape of the product, and the others as far as they matter.
static berth_status move_one(berth_rewriter *r, berth_op_id id, uint32_t at, berth_value_id product,
                             int tail) {
    berth_op op = op_at(r, id);
    const berth_type y = *type_of(r, op.outputs[0]);
    berth_value_id inputs[most_operands], result = BERTH_NONE;
    for (uint32_t k = 0; k < op.input_count; ++k) {
        inputs[k] = k == at ? product : op.inputs[k];
        const berth_type other = *type_of(r, berth_rewriter_resolve(r, inputs[k]));
        if (k != at && other.rank > tail)
            BERTH_TRY(berth_rewriter_reshape(r, id, tail, other.dims + other.rank - tail, op.loc,
                                             &inputs[k]));
    }
    BERTH_TRY(
        berth_rewriter_insert(r, id, op.kind, inputs, op.input_count, &op.attrs, op.loc, &result));
    BERTH_TRY(berth_rewriter_reshape(r, id, y.rank, y.dims, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

berth_status berth_move_before_reshape(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_type *y = type_of(r, op.outputs[0]);
    bool has_axis = op.kind == BERTH_OP_QUANTIZE_LINEAR || op.kind == BERTH_OP_DEQUANTIZE_LINEAR;
    if (!berth_type_is_static(y) || op.output_count != 1 || op.input_count > most_operands ||
        has_axis)
        return BERTH_OK;
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (op.inputs[i] == BERTH_NONE) return BERTH_OK;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        berth_value_id product = BERTH_NONE;
        if (!is_reshaped_product(r, &op, i, &product)) continue;
        int tail = common_tail(type_of(r, product), y);
        if (others_fit(r, &op, i, tail)) return move_one(r, id, i, product, tail);
    }
    return BERTH_OK;
}
