// How many elements are chosen is a sum, and each one's place among them a running sum. So the places of
// what is chosen are written in order to a vector that has room for all (Blelloch, "Prefix Sums and
// Their Applications", 1990: packing), of which the first `count` are taken.
#include "compiler/vm/counted.h"

#include "compiler/passes/fold.h"
#include "compiler/passes/rewrite.h"
#include "ir/graph/op_params.h"

typedef struct counter {
    berth_rewriter r;
    berth_op_id at;  // operations are inserted before it
    berth_loc_id loc;
    berth_status status;  // of the first one that did not fit; nothing is inserted after that
} counter;

static const berth_type *type_of(const counter *c, berth_value_id value) {
    return berth_type_get(c->r.module,
                          berth_graph_get(c->r.module, c->r.function)->values.data[value].type);
}

// ---- operations ---------------------------------------------------------------------------------

static berth_op_id insert(counter *c, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count, uint32_t output_count, const berth_attrs *attrs) {
    berth_op_id made = BERTH_NONE;
    berth_attrs held = attrs ? *attrs : (berth_attrs){0};
    if (c->status) return BERTH_NONE;
    if (!berth_attrs_find(c->r.module, &held, BERTH_ATTR_COUNTED))
        berth_attrs_set_int(c->r.module, &held, BERTH_ATTR_COUNTED, BERTH_COUNTED_PART);
    c->status = berth_rewriter_insert_op(&c->r, c->at, kind, inputs, count, output_count, &held,
                                         c->loc, &made);
    return c->status ? BERTH_NONE : made;
}

static berth_value_id result_of(const counter *c, berth_op_id id, uint32_t index) {
    if (id == BERTH_NONE) return BERTH_NONE;
    return berth_graph_get(c->r.module, c->r.function)->ops.data[id].outputs[index];
}

static berth_value_id op_with(counter *c, berth_op_kind kind, const berth_value_id *inputs,
                              uint32_t count, const berth_attrs *attrs) {
    return result_of(c, insert(c, kind, inputs, count, 1, attrs), 0);
}

static berth_value_id op1(counter *c, berth_op_kind kind, berth_value_id a) {
    return op_with(c, kind, &a, 1, NULL);
}

static berth_value_id op2(counter *c, berth_op_kind kind, berth_value_id a, berth_value_id b) {
    return op_with(c, kind, (berth_value_id[]){a, b}, 2, NULL);
}

static berth_value_id op3(counter *c, berth_op_kind kind, berth_value_id a, berth_value_id b,
                          berth_value_id d) {
    return op_with(c, kind, (berth_value_id[]){a, b, d}, 3, NULL);
}

// A constant i64: a vector of one, or (rank 0) a scalar.
static berth_value_id number(counter *c, int rank, int64_t value) {
    int64_t one = 1;
    berth_tensor tensor = berth_tensor_create(c->r.module->arena, BERTH_DTYPE_I64, rank, &one);
    berth_tensor_set_i64(&tensor, 0, value);
    return berth_rewriter_insert_constant(&c->r, c->at, &tensor, c->loc);
}

static berth_value_id cast(counter *c, berth_value_id value, berth_dtype dtype) {
    berth_attrs attrs = {0};
    berth_attrs_set(c->r.module, &attrs, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = dtype});
    return op_with(c, BERTH_OP_CAST, &value, 1, &attrs);
}

static berth_value_id flatten(counter *c, berth_value_id value) {
    return op2(c, BERTH_OP_RESHAPE, value, number(c, 1, -1));
}

static berth_value_id along(counter *c, berth_op_kind kind, const berth_value_id *inputs,
                            uint32_t count, int64_t axis) {
    berth_attrs attrs = {0};
    berth_attrs_set_int(c->r.module, &attrs, "axis", axis);
    return op_with(c, kind, inputs, count, &attrs);
}

static berth_value_id gather(counter *c, berth_value_id data, berth_value_id places, int64_t axis) {
    return along(c, BERTH_OP_GATHER, (berth_value_id[]){data, places}, 2, axis);
}

// Elements [first, end) of a vector; ends of vectors of one.
static berth_value_id take(counter *c, berth_value_id value, berth_value_id first,
                           berth_value_id end, bool counted) {
    berth_attrs attrs = {0};
    if (counted) berth_attrs_set_int(c->r.module, &attrs, BERTH_ATTR_COUNTED, BERTH_COUNTED_TAKE);
    const berth_value_id inputs[] = {value, first, end, number(c, 1, 0)};
    return op_with(c, BERTH_OP_SLICE, inputs, 4, &attrs);
}

// 0, 1, ... of a vector's length, which is `length`, a scalar.
static berth_value_id positions(counter *c, berth_value_id length) {
    return op3(c, BERTH_OP_RANGE, number(c, 0, 0), length, number(c, 0, 1));
}

// A vector of zeros with value i at places[i]; with "add", what meets there is added.
static berth_value_id scatter(counter *c, berth_value_id zeros, berth_value_id places,
                              berth_value_id values, const char *reduction) {
    berth_attrs attrs = {0};
    berth_attrs_set_int(c->r.module, &attrs, "axis", 0);
    berth_attrs_set_string(c->r.module, &attrs, "reduction", reduction);
    return op_with(c, BERTH_OP_SCATTER_ELEMENTS, (berth_value_id[]){zeros, places, values}, 3,
                   &attrs);
}

// ---- choosing -----------------------------------------------------------------------------------

typedef struct chosen {
    berth_value_id taken;  // i64: the places of elements that are chosen, in order
    berth_value_id
        groups;  // i64 per element: how many are chosen up to it, itself included, less 1
    berth_value_id length;  // i64, a scalar: of what they are chosen from
} chosen;

// `flags`: a vector of truth values. What is not chosen adds nothing to the place of its forerunner.
static chosen choose(counter *c, berth_value_id flags) {
    chosen out = {.length = op1(c, BERTH_OP_SIZE_OF, flags)};
    const berth_value_id one = number(c, 0, 1), zero = number(c, 0, 0);
    const berth_value_id ones = cast(c, flags, BERTH_DTYPE_I64);
    out.groups = op2(c, BERTH_OP_SUB, op2(c, BERTH_OP_CUM_SUM, ones, zero), one);
    const berth_value_id places =
        op3(c, BERTH_OP_CLIP, out.groups, zero, op2(c, BERTH_OP_SUB, out.length, one));
    const berth_value_id values = op2(c, BERTH_OP_MUL, ones, positions(c, out.length));
    const berth_value_id all = scatter(c, op2(c, BERTH_OP_SUB, ones, ones), places, values, "add");
    const berth_value_id count = op2(c, BERTH_OP_REDUCE_SUM, ones, number(c, 1, 0));
    out.taken = take(c, all, number(c, 1, 0), count, true);
    return out;
}

// The product of extents [first, end) of `shape`, 1 at least: a vector of one.
static berth_value_id extent(counter *c, berth_value_id shape, int first, int end) {
    const berth_value_id some = take(c, shape, number(c, 1, first), number(c, 1, end), false);
    const berth_value_id product = op2(c, BERTH_OP_REDUCE_PROD, some, number(c, 1, 0));
    return op2(c, BERTH_OP_MAX, product, number(c, 1, 1));
}

// Coordinates of row-major places: a row per dimension.
static berth_value_id coordinates(counter *c, berth_value_id places, berth_value_id x, int rank) {
    berth_value_id rows[BERTH_MAX_RANK] = {BERTH_NONE};
    if (rank < 2) return op2(c, BERTH_OP_UNSQUEEZE, places, number(c, 1, 0));
    const berth_value_id shape = op1(c, BERTH_OP_SHAPE_OF, x);
    for (int d = 0; d < rank; ++d) {
        berth_value_id at = places;
        if (d < rank - 1) at = op2(c, BERTH_OP_DIV, at, extent(c, shape, d + 1, rank));
        if (d > 0) at = op2(c, BERTH_OP_MOD, at, extent(c, shape, d, d + 1));
        rows[d] = op2(c, BERTH_OP_UNSQUEEZE, at, number(c, 1, 0));
    }
    return along(c, BERTH_OP_CONCAT, rows, (uint32_t)rank, 0);
}

static void count_non_zero(counter *c, const berth_op *op) {
    const int rank = type_of(c, op->inputs[0])->rank;
    const berth_value_id flags = cast(c, flatten(c, op->inputs[0]), BERTH_DTYPE_BOOL);
    const chosen found = choose(c, flags);
    const berth_value_id result = coordinates(c, found.taken, op->inputs[0], rank);
    if (!c->status) berth_rewriter_replace(&c->r, op->outputs[0], result);
}

static void count_compress(counter *c, const berth_op *op) {
    const bool flat = !berth_attrs_find(c->r.module, &op->attrs, "axis");
    const int64_t axis = berth_attrs_int(c->r.module, &op->attrs, "axis", 0);
    const chosen found = choose(c, op->inputs[1]);
    const berth_value_id x = flat ? flatten(c, op->inputs[0]) : op->inputs[0];
    const berth_value_id result = gather(c, x, found.taken, axis);
    if (!c->status) berth_rewriter_replace(&c->r, op->outputs[0], result);
}

// ---- unique -------------------------------------------------------------------------------------

// All of a vector in ascending order, NaN last, and where each one was; equal ones stay in order.
static void sort(counter *c, berth_value_id x, berth_value_id length, berth_value_id out[2]) {
    berth_attrs attrs = {0};
    const berth_value_id inputs[] = {x, op2(c, BERTH_OP_RESHAPE, length, number(c, 1, 1))};
    berth_attrs_set_int(c->r.module, &attrs, "largest", 0);
    berth_attrs_set_int(c->r.module, &attrs, "axis", 0);
    const berth_op_id made = insert(c, BERTH_OP_TOP_K, inputs, 2, 2, &attrs);
    out[0] = result_of(c, made, 0);
    out[1] = result_of(c, made, 1);
}

// What unique tells apart: slices of the operand, as rows of so many elements each.
typedef struct slices {
    berth_value_id rows;    // [length, width], or a vector where the width is 1
    berth_value_id length;  // i64, a scalar
    int64_t width;
} slices;

// Where the slices are in ascending order, equal ones as before: sorted by their last elements first (Knuth, "The Art of
// Computer Programming" 3, 5.2.5).
static berth_value_id order_of(counter *c, const slices *s) {
    berth_value_id order = BERTH_NONE, sorted[2];
    for (int64_t column = s->width; column-- > 0;) {
        berth_value_id keys = s->width == 1 ? s->rows : gather(c, s->rows, number(c, 0, column), 1);
        if (order != BERTH_NONE) keys = gather(c, keys, order, 0);
        sort(c, keys, s->length, sorted);
        order = order == BERTH_NONE ? sorted[1] : gather(c, order, sorted[1], 0);
    }
    return order;
}

// Of sorted slices: which are not the one before. The first one has none before it.
static berth_value_id firsts(counter *c, const slices *s, berth_value_id order) {
    const berth_value_id places = positions(c, s->length), zero = number(c, 0, 0);
    const berth_value_id before =
        op3(c, BERTH_OP_CLIP, op2(c, BERTH_OP_SUB, places, number(c, 0, 1)), zero, BERTH_NONE);
    const berth_value_id sorted = gather(c, s->rows, order, 0);
    const berth_value_id last = gather(c, sorted, before, 0);
    berth_value_id differs = op1(c, BERTH_OP_NOT, op2(c, BERTH_OP_EQUAL, sorted, last));
    if (!c->status && berth_dtype_is_float(type_of(c, sorted)->dtype)) {
        const berth_value_id both =
            op2(c, BERTH_OP_AND, op1(c, BERTH_OP_IS_NAN, sorted), op1(c, BERTH_OP_IS_NAN, last));
        differs = op2(c, BERTH_OP_AND, differs, op1(c, BERTH_OP_NOT, both));
    }
    if (s->width > 1) {
        berth_attrs attrs = {0};
        berth_attrs_set_int(c->r.module, &attrs, "keepdims", 0);
        const berth_value_id inputs[] = {cast(c, differs, BERTH_DTYPE_I64), number(c, 1, 1)};
        differs = cast(c, op_with(c, BERTH_OP_REDUCE_MAX, inputs, 2, &attrs), BERTH_DTYPE_BOOL);
    }
    return op2(c, BERTH_OP_OR, differs, op2(c, BERTH_OP_EQUAL, places, zero));
}

// How many each group has: where the next one begins, less where it begins.
static berth_value_id sizes(counter *c, const chosen *groups) {
    const berth_value_id length = op2(c, BERTH_OP_RESHAPE, groups->length, number(c, 1, 1));
    const berth_value_id ends =
        along(c, BERTH_OP_CONCAT, (berth_value_id[]){groups->taken, length}, 2, 0);
    const berth_value_id next = take(c, ends, number(c, 1, 1), number(c, 1, INT64_MAX), false);
    return op2(c, BERTH_OP_SUB, next, groups->taken);
}

// From the order of values to that in which they come first. `held`: first places, the group of each slice, sizes.
static void by_appearance(counter *c, berth_value_id held[3]) {
    berth_value_id order[2];
    const berth_value_id count = op1(c, BERTH_OP_SIZE_OF, held[0]);
    sort(c, held[0], count, order);
    const berth_value_id ranks =
        scatter(c, op2(c, BERTH_OP_SUB, order[1], order[1]), order[1], positions(c, count), "none");
    held[0] = order[0];
    held[1] = gather(c, ranks, held[1], 0);
    held[2] = gather(c, held[2], order[1], 0);
}

// How many elements a slice has; 0: that is not known, or there are none.
static int64_t width_of(const berth_type *x, int axis) {
    int64_t width = 1;
    for (int d = 0; d < x->rank; ++d) {
        if (d == axis) continue;
        if (berth_dim_is_symbol(x->dims[d]) || x->dims[d] > INT32_MAX || width > INT32_MAX)
            return 0;
        width *= x->dims[d];
    }
    return width;
}

static berth_value_id rows_of(counter *c, berth_value_id x, int rank, int axis, int64_t width) {
    int64_t perm[BERTH_MAX_RANK] = {axis};
    berth_attrs attrs = {0};
    for (int d = 0, to = 1; d < rank; ++d)
        if (d != axis) perm[to++] = d;
    berth_attrs_set_ints(c->r.module, &attrs, "perm", perm, (uint32_t)rank);
    const berth_value_id first = op_with(c, BERTH_OP_TRANSPOSE, &x, 1, &attrs);
    if (width == 1) return flatten(c, first);
    berth_tensor shape =
        berth_tensor_create(c->r.module->arena, BERTH_DTYPE_I64, 1, (int64_t[]){2});
    berth_tensor_set_i64(&shape, 0, -1);
    berth_tensor_set_i64(&shape, 1, width);
    return op2(c, BERTH_OP_RESHAPE, first,
               berth_rewriter_insert_constant(&c->r, c->at, &shape, c->loc));
}

static void count_unique(counter *c, const berth_op *op, int axis) {
    const bool flat = axis < 0;
    const berth_type type = *type_of(c, op->inputs[0]);
    const berth_value_id x = flat ? flatten(c, op->inputs[0]) : op->inputs[0];
    slices s = {.rows = x, .width = flat ? 1 : width_of(&type, axis)};
    if (!flat) s.rows = rows_of(c, x, type.rank, axis, s.width);
    s.length =
        op1(c, BERTH_OP_SIZE_OF, s.width == 1 ? s.rows : gather(c, s.rows, number(c, 0, 0), 1));
    const berth_value_id order = order_of(c, &s);
    const chosen groups = choose(c, firsts(c, &s, order));
    berth_value_id held[3] = {
        gather(c, order, groups.taken, 0),
        scatter(c, op2(c, BERTH_OP_SUB, order, order), order, groups.groups, "none"),
        sizes(c, &groups)};
    if (berth_attrs_int(c->r.module, &op->attrs, "sorted", 1) == 0) by_appearance(c, held);
    const berth_value_id values = gather(c, x, held[0], flat ? 0 : axis);
    if (c->status) return;
    berth_rewriter_replace(&c->r, op->outputs[0], values);
    for (uint32_t i = 1; i < op->output_count; ++i)
        berth_rewriter_replace(&c->r, op->outputs[i], held[i - 1]);
}

// ---- the module ---------------------------------------------------------------------------------

// `axis` of a unique; -1: it has none. Wider slices than a few elements would be sorted once for each of these.
static bool is_counted_unique(const counter *c, const berth_op *op, const berth_type *x,
                              int *out_axis) {
    enum { most_width = 64 };
    *out_axis = -1;
    if (x->dtype == BERTH_DTYPE_BOOL) return false;
    if (!berth_attrs_find(c->r.module, &op->attrs, "axis")) return true;
    berth_status status = berth_axis_resolve(berth_attrs_int(c->r.module, &op->attrs, "axis", 0),
                                             x->rank, "axis", out_axis);
    if (status) {
        berth_status_ignore(status);
        return false;
    }
    const int64_t width = width_of(x, *out_axis);
    return width > 0 && width <= most_width;
}

static void count_op(counter *c, const berth_op *op) {
    const berth_type *x = op->input_count ? type_of(c, op->inputs[0]) : NULL;
    int axis = -1;
    if (!x || x->kind != BERTH_TYPE_TENSOR || x->rank < 0 || !x->dtype ||
        x->dtype == BERTH_DTYPE_STRING)
        return;
    if (op->kind == BERTH_OP_NON_ZERO) count_non_zero(c, op);
    if (op->kind == BERTH_OP_COMPRESS) count_compress(c, op);
    if (op->kind == BERTH_OP_UNIQUE && is_counted_unique(c, op, x, &axis))
        count_unique(c, op, axis);
}

static berth_status count_function(berth_module *module, berth_func_id function) {
    counter c = {.status = BERTH_OK};
    const uint32_t count = berth_graph_get(module, function)->ops.count;
    berth_rewriter_begin(&c.r, module, function);
    for (berth_op_id id = 0; id < count && !c.status; ++id) {
        const berth_op op = berth_graph_get(module, function)->ops.data[id];
        c.at = id;
        c.loc = op.loc;
        if (op.region != BERTH_NONE && berth_op_has(op.kind, BERTH_TRAIT_DATA_DEPENDENT))
            count_op(&c, &op);
    }
    berth_rewriter_finish(&c.r);
    return c.status;
}

berth_status vm_count_extents(berth_module *module, berth_func_id main) {
    for (berth_func_id f = 0; f < module->functions.count; ++f)
        if (berth_graph_get(module, f)) BERTH_TRY(count_function(module, f));
    return berth_pass_fold(module, main, NULL);
}
