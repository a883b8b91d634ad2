#include "compiler/passes/tensor_cut.h"

#include <string.h>

#include "compiler/passes/tensor_parallel.h"
#include "ir/graph/op_params.h"

typedef struct cutter {
    const berth_module *module;
    const berth_graph *graph;
    const berth_op *op;
    const int *cut_of;
    int64_t count;
    berth_tensor_cut *cut;
} cutter;

static const berth_type *operand(const cutter *c, uint32_t i) {
    return berth_type_get(c->module, c->graph->values.data[c->op->inputs[i]].type);
}

static const berth_type *result(const cutter *c) {
    return berth_type_get(c->module, c->graph->values.data[c->op->outputs[0]].type);
}

static bool has_operand(const cutter *c, uint32_t i) {
    return i < c->op->input_count && c->op->inputs[i] != BERTH_NONE;
}

static const berth_tensor *constant(const cutter *c, uint32_t i) {
    return has_operand(c, i) ? berth_graph_raw_constant_of(c->module, c->graph, c->op->inputs[i])
                             : NULL;
}

int64_t berth_tensor_cut_begin(int64_t extent, int64_t count, int64_t part) {
    enum { TILE = 16, MOST_UNEVEN = 16 };  // a tile more is a sixteenth of a part at most
    int64_t begin = extent / count * part + extent % count * part / count;
    if (extent % count == 0 || part == count || extent / count < TILE * MOST_UNEVEN) return begin;
    return (begin + TILE / 2) / TILE * TILE;
}

// Whether there is something for each part.
static bool suffices(const cutter *c, int64_t extent) {
    return extent >= c->count;
}

// The first operand that is in parts; BERTH_NONE: none is.
static uint32_t first_cut(const cutter *c) {
    for (uint32_t i = 0; i < c->op->input_count; ++i)
        if (c->cut_of[i] >= 0) return i;
    return BERTH_NONE;
}

// An axis that an attribute names; -1: it does not fit the rank.
static int axis_of(const cutter *c, int64_t otherwise, int rank) {
    int64_t axis = berth_attrs_int(c->module, &c->op->attrs, "axis", otherwise);
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

// Whether a short list of a constant operand names the axis. *out_known: it is a constant.
static bool names_axis(const cutter *c, uint32_t i, int rank, int axis, bool *out_known) {
    const berth_tensor *axes =
        has_operand(c, i) ? berth_graph_constant_of(c->module, c->graph, c->op->inputs[i]) : NULL;
    *out_known = axes != NULL;
    for (int64_t k = 0; axes && k < berth_tensor_element_count(axes); ++k) {
        int64_t named = berth_tensor_get_i64(axes, k);
        if (named == axis || named + rank == axis) return true;
    }
    return false;
}

// ---- products -----------------------------------------------------------------------------------

static bool is_large(const berth_tensor *weights) {
    return berth_tensor_size_bytes(weights) >= BERTH_PARALLEL_LEAST_BYTES;
}

// A product with constant weights: by rows where x is in parts along them, else by columns. Zero points:
// one for all, or one for each column.
static bool cut_weights(const cutter *c, const berth_tensor *weights) {
    int last = operand(c, 0)->rank - 1;
    bool is_integer = c->op->kind == BERTH_OP_MATMUL_INTEGER;
    const berth_type *zero = is_integer && has_operand(c, 3) ? operand(c, 3) : NULL;
    if (zero && zero->rank > 1) return false;
    if (c->cut_of[0] >= 0 && c->cut_of[0] == last) {
        c->cut->operand[0] = last;
        c->cut->operand[1] = 0;
        c->cut->result = BERTH_CUT_SUM;
        return c->cut->begins = true;
    }
    if (!is_large(weights) || !suffices(c, weights->dims[1]) || result(c)->rank < 1) return false;
    c->cut->operand[1] = 1;
    if (zero && zero->rank == 1 && zero->dims[0] == weights->dims[1] && zero->dims[0] > 1)
        c->cut->operand[3] = 0;
    c->cut->result = result(c)->rank - 1;
    return c->cut->begins = true;
}

// Matrices that are in parts along the dimensions before them; the left one by rows, or the right one by
// columns; or both along what is summed over.
static bool cut_matrices(const cutter *c) {
    int rank = result(c)->rank, ranks[2] = {operand(c, 0)->rank, operand(c, 1)->rank};
    uint32_t first = first_cut(c);
    if (first > 1 || ranks[0] < 2 || ranks[1] < 2 || c->op->kind != BERTH_OP_MATMUL) return false;
    int axis = c->cut_of[first], other = 1 - (int)first;
    if (axis == ranks[0] - 1 && first == 0) {
        c->cut->operand[0] = axis;
        c->cut->operand[1] = ranks[1] - 2;
        c->cut->result = BERTH_CUT_SUM;
        return c->cut_of[1] == ranks[1] - 2;
    }
    if (axis == ranks[1] - 2 && first == 1) return false;
    int place = rank - ranks[first] + axis;
    c->cut->operand[first] = axis;
    c->cut->result = place;
    if (axis >= ranks[first] - 2) return true;  // rows of the left, or columns of the right one
    int there = place - (rank - ranks[other]);
    if (there >= 0 && operand(c, (uint32_t)other)->dims[there] != 1) {
        if (operand(c, (uint32_t)other)->dims[there] != result(c)->dims[place]) return false;
        c->cut->operand[other] = there;
    }
    return true;
}

static bool cut_product(const cutter *c) {
    const berth_tensor *weights = constant(c, 1);
    if (weights && weights->rank == 2 && operand(c, 0)->rank >= 1) return cut_weights(c, weights);
    return first_cut(c) != BERTH_NONE && cut_matrices(c);
}

// Output channels; input channels where x has these in parts; or both where each is a group.
static bool cut_convolution(const cutter *c) {
    const berth_tensor *weights = constant(c, 1);
    int64_t group = berth_attrs_int(c->module, &c->op->attrs, "group", 1);
    bool in_parts = c->cut_of[0] == 1;
    if (!weights || !suffices(c, weights->dims[0])) return false;
    if (in_parts && group > 1 && group == weights->dims[0] && weights->dims[1] == 1) {
        c->cut->operand[0] = 1;
        c->cut->grouped = true;
    } else if (in_parts && group == 1 && !has_operand(c, 2)) {
        c->cut->operand[0] = c->cut->operand[1] = 1;
        c->cut->result = BERTH_CUT_SUM;
        return c->cut->begins = true;
    } else if (group != 1 || !is_large(weights)) {
        return false;
    }
    c->cut->operand[1] = 0;
    if (has_operand(c, 2)) c->cut->operand[2] = 0;
    c->cut->result = 1;
    return c->cut->begins = true;
}

// Rows of a table: by columns of a table that is constant, or what is taken of a value in parts.
static bool cut_gather(const cutter *c) {
    const berth_tensor *table = constant(c, 0);
    int rank = operand(c, 0)->rank, axis = axis_of(c, 0, rank), cut = c->cut_of[0];
    bool begins = table && rank == 2 && axis == 0 && is_large(table) && suffices(c, table->dims[1]);
    if (begins) cut = 1;
    if (cut < 0 || axis < 0 || cut == axis) return false;
    c->cut->operand[0] = cut;
    c->cut->result = cut < axis ? cut : cut + operand(c, 1)->rank - 1;
    c->cut->begins = begins;
    return true;
}

// ---- element by element -------------------------------------------------------------------------

// Operand `i` against dimension `place` of the result, as it is broadcast. False: it does not fit.
static bool cut_broadcast(const cutter *c, uint32_t i, int place) {
    if (!has_operand(c, i)) return true;
    int there = place - (result(c)->rank - operand(c, i)->rank);
    if (there < 0 || operand(c, i)->dims[there] == 1) return true;
    c->cut->operand[i] = there;
    return operand(c, i)->dims[there] == result(c)->dims[place];
}

// Scales and zero points: one, or one for each element of an axis.
static bool cut_scales(const cutter *c, int place) {
    int axis = axis_of(c, 1, result(c)->rank);
    for (uint32_t i = 1; i < c->op->input_count; ++i) {
        if (!has_operand(c, i)) continue;
        const berth_type *scale = operand(c, i);
        if (scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1)) continue;
        if (scale->rank != 1) return false;
        if (axis == place) c->cut->operand[i] = 0;
    }
    return true;
}

static bool cut_elements(const cutter *c) {
    uint32_t first = first_cut(c);
    if (first == BERTH_NONE) return false;
    int place = result(c)->rank - operand(c, first)->rank + c->cut_of[first];
    bool is_scaled =
        c->op->kind == BERTH_OP_QUANTIZE_LINEAR || c->op->kind == BERTH_OP_DEQUANTIZE_LINEAR;
    if (!suffices(c, result(c)->dims[place])) return false;
    c->cut->result = place;
    if (is_scaled) return first == 0 && cut_broadcast(c, 0, place) && cut_scales(c, place);
    for (uint32_t i = 0; i < c->op->input_count; ++i)
        if (!cut_broadcast(c, i, place)) return false;
    return true;
}

// ---- other shapes -------------------------------------------------------------------------------

static int64_t product_of(const int64_t *dims, int count) {
    int64_t product = 1;
    for (int i = 0; i < count; ++i) product *= dims[i];
    return product;
}

// The dimension of a view that begins where the operand's does, and has the same extent, or a multiple of the parts as
// that has: each part is then a range of it.
static bool cut_view(const cutter *c) {
    const berth_type *x = operand(c, 0), *y = result(c);
    int64_t before = product_of(x->dims, c->cut_of[0]), extent = x->dims[c->cut_of[0]];
    for (int place = 0; place < y->rank; ++place) {
        bool fits =
            y->dims[place] == extent || (y->dims[place] % c->count == 0 && extent % c->count == 0);
        if (product_of(y->dims, place) != before || !suffices(c, y->dims[place]) || !fits) continue;
        c->cut->operand[0] = c->cut_of[0];
        c->cut->result = place;
        return c->cut->as_reshape = true;
    }
    return false;
}

static bool cut_transpose(const cutter *c) {
    uint32_t count = 0;
    int rank = result(c)->rank;
    const int64_t *perm = berth_attrs_ints(c->module, &c->op->attrs, "perm", &count);
    if (perm && count != (uint32_t)rank) return false;
    for (int d = 0; d < rank; ++d) {
        if ((perm ? perm[d] : rank - 1 - d) != c->cut_of[0]) continue;
        c->cut->operand[0] = c->cut_of[0];
        c->cut->result = d;
        return true;
    }
    return false;
}

static bool cut_expand(const cutter *c) {
    int place = result(c)->rank - operand(c, 0)->rank + c->cut_of[0];
    c->cut->result = place;
    c->cut->shape = true;
    return suffices(c, result(c)->dims[place]) && cut_broadcast(c, 0, place) &&
           c->cut->operand[0] >= 0;
}

// Along another dimension than that which the operation is about.
static bool keep_cut(const cutter *c) {
    c->cut->operand[0] = c->cut->result = c->cut_of[0];
    return true;
}

static bool cut_concat(const cutter *c) {
    int place = c->cut_of[first_cut(c)];
    if (axis_of(c, 0, result(c)->rank) == place) return false;
    for (uint32_t i = 0; i < c->op->input_count; ++i) c->cut->operand[i] = place;
    c->cut->result = place;
    return suffices(c, result(c)->dims[place]);
}

static bool cut_slice(const cutter *c) {
    bool known = false;
    int rank = operand(c, 0)->rank;
    const berth_tensor *starts = constant(c, 1);
    if (!has_operand(c, 3)) return starts && c->cut_of[0] >= starts->dims[0] && keep_cut(c);
    return !names_axis(c, 3, rank, c->cut_of[0], &known) && known && keep_cut(c);
}

static bool cut_reduction(const cutter *c) {
    bool known = false;
    int rank = operand(c, 0)->rank;
    if (berth_attrs_int(c->module, &c->op->attrs, "keepdims", 1) == 0) return false;
    return !names_axis(c, 1, rank, c->cut_of[0], &known) && known && keep_cut(c);
}

// What comes of the first operand in parts, the others whole.
static bool cut_first(const cutter *c) {
    int rank = operand(c, 0)->rank;
    if (berth_op_has(c->op->kind, BERTH_TRAIT_VIEW)) return cut_view(c);
    switch (c->op->kind) {
    case BERTH_OP_TRANSPOSE: return cut_transpose(c);
    case BERTH_OP_EXPAND: return cut_expand(c);
    case BERTH_OP_SLICE: return cut_slice(c);
    case BERTH_OP_SPLIT: return axis_of(c, 0, rank) != c->cut_of[0] && keep_cut(c);
    case BERTH_OP_SOFTMAX:
    case BERTH_OP_LOG_SOFTMAX: return axis_of(c, -1, rank) != c->cut_of[0] && keep_cut(c);
    case BERTH_OP_LAYER_NORMALIZATION: return axis_of(c, -1, rank) > c->cut_of[0] && keep_cut(c);
    case BERTH_OP_REDUCE_SUM:
    case BERTH_OP_REDUCE_MEAN:
    case BERTH_OP_REDUCE_MAX:
    case BERTH_OP_REDUCE_MIN:
    case BERTH_OP_REDUCE_SUM_SQUARE: return cut_reduction(c);
    default: return false;
    }
}

bool berth_tensor_cut_find(const berth_module *module, const berth_graph *graph, const berth_op *op,
                           const int *cut_of, int64_t count, berth_tensor_cut *out_cut) {
    cutter c = {module, graph, op, cut_of, count, out_cut};
    *out_cut = (berth_tensor_cut){.result = BERTH_CUT_WHOLE};
    for (int i = 0; i < BERTH_CUT_MOST_OPERANDS; ++i) out_cut->operand[i] = BERTH_CUT_WHOLE;
    if (op->kind == BERTH_OP_MATMUL || op->kind == BERTH_OP_MATMUL_INTEGER) return cut_product(&c);
    if (op->kind == BERTH_OP_CONV) return cut_convolution(&c);
    if (op->kind == BERTH_OP_GATHER) return cut_gather(&c);
    if (first_cut(&c) == BERTH_NONE) return false;
    if (op->kind == BERTH_OP_CONCAT) return cut_concat(&c);
    bool elements = berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE);
    if (elements && !berth_op_facts_get(op->kind)->host_operands) return cut_elements(&c);
    return first_cut(&c) == 0 && cut_first(&c);
}
