// Products of 8-bit integers whose weights, or whose weights' zero points, only the run knows, as
// dot products (layout_dot.c has those of constants). With w8 = w - shift, which is i8 (128 is
// taken off u8), and z = w_zero - shift:
//
//   sum (x - x_zero) * (w - w_zero)
//     = sum x * w8  -  x_zero * columns(w8)  -  z * (rows(x) - depth * x_zero)
//
// where columns and rows are sums of columns of the weights and of rows of the activations; those of
// columns are a product with a row of ones.
// Where the depth is no whole number of dot products, or of terms of a matrix unit's tile, both operands have zeros behind it.
// Weights that are not constant are brought into panels [columns / lanes][depth / d][lanes][d] when
// the program runs: one pass over them, which pays from a few rows of activations on.
#include <stdio.h>
#include <string.h>

#include "compiler/passes/layout_private.h"

#define WIDE BERTH_LAYOUT_WIDE_BLOCK
#define MOST_DEPTH (1 << 16)  // up to which 255 * 128 products each, and so all parts, fit i32
#define LEAST_ROWS 6          // that pay for packing weights when the program runs

typedef struct fed {
    berth_layout_pass *p;
    berth_op_id id;
    berth_type x;
    berth_type w;
    berth_type out;
    berth_layout_zero x_zero;
    berth_value_id w_zero;  // BERTH_NONE = 0
    berth_layout_dot dot;
    int64_t more;               // terms of 0 behind those that there are
    const berth_tensor *known;  // the weights, where they are constant
    berth_value_id packed;
} fed;

static berth_value_id integer(const fed *f, berth_dtype dtype, int64_t number) {
    berth_tensor *held = berth_arena_new(f->p->module->arena, berth_tensor);
    *held = berth_tensor_create(f->p->module->arena, dtype, 0, NULL);
    berth_tensor_set_i64(held, 0, number);
    return berth_layout__constant(f->p, f->id, held);
}

// The result of an elementwise operation; the dimensions of its operands broadcast.
static berth_value_id elementwise(const fed *f, berth_op_kind kind, berth_value_id a,
                                  berth_value_id b) {
    berth_value_id both[2] = {a, b};
    berth_type type = *type_of(f->p, a);
    const berth_type *other = type_of(f->p, b);
    int rank = type.rank > other->rank ? type.rank : other->rank;
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 1; i <= rank; ++i) {
        int64_t own = i <= type.rank ? type.dims[type.rank - i] : 1;
        dims[rank - i] = own == 1 && i <= other->rank ? other->dims[other->rank - i] : own;
    }
    return berth_layout__insert(f->p, f->id, kind, both, 2,
                                berth_type_tensor(f->p->module, type.dtype, rank, dims), f->id);
}

// Zero points of the weights: one number, or one a column, alike for all of a batch.
static bool reads_w_zero(fed *f, const berth_op *op) {
    f->w_zero = op->input_count > 3 ? op->inputs[3] : BERTH_NONE;
    if (f->w_zero == BERTH_NONE) return true;
    const berth_type *zero = type_of(f->p, f->w_zero);
    if (!berth_type_is_static(zero) || zero->rank > f->w.rank) return false;
    for (int i = 1; i <= zero->rank; ++i) {
        int64_t dim = zero->dims[zero->rank - i];
        if (dim != 1 && (i > 1 || dim != f->w.dims[f->w.rank - 1])) return false;
    }
    return true;
}

// Rows that every matrix of weights is multiplied by.
static int64_t count_rows(const fed *f) {
    int64_t rows = 1;
    int64_t matrices = 1;
    for (int i = 0; i + 1 < f->out.rank; ++i) rows *= f->out.dims[i];
    for (int i = 0; i + 2 < f->w.rank; ++i) matrices *= f->w.dims[i];
    return matrices > 0 ? rows / matrices : 0;
}

static bool has_form(fed *f, const berth_op *op) {
    f->x = *type_of(f->p, op->inputs[0]);
    f->w = *type_of(f->p, op->inputs[1]);
    f->out = *type_of(f->p, op->outputs[0]);
    if (!berth_type_is_static(&f->x) || !berth_type_is_static(&f->w) || f->x.layout || f->w.layout)
        return false;
    if (f->x.rank < 2 || f->w.rank < 2 || !reads_w_zero(f, op)) return false;
    if (!berth_layout__zero_of(f->p, f->id, &f->x_zero)) return false;
    f->known = berth_graph_constant_of(f->p->module, graph_of(f->p), op->inputs[1]);
    int64_t count = f->w.dims[f->w.rank - 1];
    int64_t wanted = count >= 2 * WIDE || count % WIDE == 0 ? WIDE : BERTH_LAYOUT_BLOCK;
    if (count < BERTH_LAYOUT_BLOCK || (!f->known && count_rows(f) < LEAST_ROWS)) return false;
    int64_t depth = f->w.dims[f->w.rank - 2];
    if (depth <= 0 || depth > MOST_DEPTH ||
        !berth_layout__choose_dot(f->p, f->id, f->x.dtype, wanted, &f->dot))
        return false;
    f->more = berth_layout__missing_terms(f->p, f->id, &f->dot, &f->x);
    return true;
}

// "BA16b4a"; of several matrices "abDC16d4c".
static void name_panels(const fed *f, char *tag, size_t size) {
    int rank = f->w.rank;
    for (int i = 0; i + 2 < rank; ++i) tag[i] = (char)('a' + i);
    snprintf(tag + rank - 2, size - (size_t)rank, "%c%c%d%c%d%c", 'A' + rank - 1, 'A' + rank - 2,
             (int)f->dot.lanes, 'a' + rank - 1, (int)f->dot.depth, 'a' + rank - 2);
}

// What is taken off the weights so that they are i8.
static int64_t shift_of(const fed *f) {
    return f->w.dtype == BERTH_DTYPE_U8 ? 128 : 0;
}

// Constant weights in panels: nothing is left to do when the program runs.
static berth_value_id pack_constant(const fed *f, const char *tag) {
    int64_t dims[BERTH_MAX_RANK], columns = f->w.dims[f->w.rank - 1];
    memcpy(dims, f->w.dims, sizeof(dims));
    int64_t matrix = dims[f->w.rank - 2] * columns;
    dims[f->w.rank - 2] += f->more;
    berth_tensor shifted =
        berth_tensor_create(f->p->module->arena, BERTH_DTYPE_I8, f->w.rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(f->known); ++i)
        berth_tensor_set_i64(&shifted, i + i / matrix * f->more * columns,
                             berth_tensor_get_i64(f->known, i) - shift_of(f));
    return berth_layout__packed_constant(f->p, &shifted, tag, f->id);
}

// The weights as i8, in panels; BERTH_NONE: they have no such layout.
static berth_value_id pack(const fed *f, berth_value_id w) {
    char tag[BERTH_MAX_RANK + 32];
    name_panels(f, tag, sizeof(tag));
    if (f->known) return pack_constant(f, tag);
    if (shift_of(f)) {  // w - 128, whose bits are those of w but for the first
        w = elementwise(f, BERTH_OP_BITWISE_XOR, w, integer(f, BERTH_DTYPE_U8, 128));
        w = berth_layout__cast(f->p, f->id, w, BERTH_DTYPE_I8);
    }
    w = berth_layout__lengthened(f->p, f->id, w, f->w.rank - 2, f->more);
    return berth_layout__convert(f->p, w, berth_module_intern(f->p->module, tag), f->id, f->id);
}

// The product of `x` with the packed weights.
static berth_value_id product(const fed *f, berth_value_id x) {
    berth_value_id both[2] = {x, f->packed};
    const berth_type *left = type_of(f->p, x);
    berth_type out = f->out;
    if (left->rank == 2) {  // as many matrices as there are of weights
        out.rank = f->w.rank;
        memcpy(out.dims, f->w.dims, sizeof(out.dims));
        out.dims[out.rank - 2] = left->dims[0];
    }
    berth_type_id type = berth_type_tensor(f->p->module, BERTH_DTYPE_I32, out.rank, out.dims);
    return berth_layout__insert(f->p, f->id, BERTH_OP_MATMUL_INTEGER, both, 2, type, f->id);
}

// x_zero as i32.
static berth_value_id x_zero(const fed *f) {
    if (f->x_zero.known) return integer(f, BERTH_DTYPE_I32, f->x_zero.number);
    return berth_layout__cast(f->p, f->id, f->x_zero.value, BERTH_DTYPE_I32);
}

// x_zero * columns(w8)
static berth_value_id of_columns(const fed *f) {
    berth_tensor *ones = berth_arena_new(f->p->module->arena, berth_tensor);
    int64_t dims[2] = {1, f->w.dims[f->w.rank - 2] + f->more};
    *ones = berth_tensor_create(f->p->module->arena, f->x.dtype, 2, dims);
    for (int64_t i = 0; i < dims[1]; ++i) berth_tensor_set_i64(ones, i, 1);
    berth_value_id sums = product(f, berth_layout__constant(f->p, f->id, ones));
    return elementwise(f, BERTH_OP_MUL, sums, x_zero(f));
}

// z * (rows(x) - depth * x_zero)
static berth_value_id of_rows(const fed *f, berth_value_id x, berth_value_id z) {
    int64_t depth = f->x.dims[f->x.rank - 1];
    berth_value_id sums = berth_layout__sums_of_rows(f->p, f->id, x);
    if (f->x_zero.value != BERTH_NONE) {
        berth_value_id all = integer(f, BERTH_DTYPE_I32, depth);
        sums = elementwise(f, BERTH_OP_SUB, sums, elementwise(f, BERTH_OP_MUL, x_zero(f), all));
    }
    return elementwise(f, BERTH_OP_MUL, sums, z);
}

// w_zero - shift as i32; BERTH_NONE = 0
static berth_value_id shifted_zero(const fed *f) {
    int64_t shift = shift_of(f);
    if (f->w_zero == BERTH_NONE)
        return shift ? integer(f, BERTH_DTYPE_I32, -shift) : (berth_value_id)BERTH_NONE;
    berth_value_id zero = berth_layout__cast(f->p, f->id, f->w_zero, BERTH_DTYPE_I32);
    return shift ? elementwise(f, BERTH_OP_SUB, zero, integer(f, BERTH_DTYPE_I32, shift)) : zero;
}

bool berth_layout__matmul_dot_fed(berth_layout_pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    fed f = {.p = p, .id = id};
    if (!has_form(&f, &op)) return false;
    f.packed = pack(&f, op.inputs[1]);
    if (f.packed == BERTH_NONE) return false;
    berth_value_id rest[2];  // that is subtracted, the last by the operation itself
    uint32_t count = 0;
    berth_value_id z = shifted_zero(&f);
    if (f.x_zero.value != BERTH_NONE) rest[count++] = of_columns(&f);
    if (z != BERTH_NONE) rest[count++] = of_rows(&f, op.inputs[0], z);
    berth_value_id inputs[2] = {berth_layout__lengthened(p, id, op.inputs[0], f.x.rank - 1, f.more),
                                f.packed};
    if (count > 0) inputs[0] = product(&f, inputs[0]);
    if (count > 1) inputs[0] = elementwise(&f, BERTH_OP_SUB, inputs[0], rest[0]);
    berth_op *self = &graph_of(p)->ops.data[id];
    if (count > 0) {
        inputs[1] = rest[count - 1];
        self->kind = BERTH_OP_SUB;
        self->attrs = (berth_attrs){0};
    }
    memcpy(self->inputs, inputs, sizeof(inputs));
    self->input_count = 2;
    return true;
}
