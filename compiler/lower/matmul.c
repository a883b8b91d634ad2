// Matrix products. Loops b..., i, j, k; the accumulator is a register.
#include "base/divisor.h"
#include "compiler/lower/families.h"
#include "ir/graph/op_params.h"

#include <string.h>

typedef struct product {
    const berth_op *op;
    uint32_t a;  // operand numbers
    uint32_t b;
    int rank;       // of the output
    bool a_vector;  // one-dimensional operands
    bool b_vector;
    int64_t k;
} product;

static product describe(berth_lower *c, const berth_op *op, uint32_t a, uint32_t b) {
    const berth_type *x = in_type(c, op, a);
    const berth_type *y = in_type(c, op, b);
    product p = {.op = op, .a = a, .b = b, .rank = out_type(c, op, 0)->rank};
    if (x->rank < 1 || y->rank < 1) {
        berth_lower__fail(c, op, "an operand is a scalar");
        return p;
    }
    p.a_vector = x->rank == 1;
    p.b_vector = y->rank == 1;
    p.k = x->dims[x->rank - 1];
    if (y->dims[p.b_vector ? 0 : y->rank - 2] != p.k)
        berth_lower__fail(c, op, "inner extents %lld and %lld differ", (long long)p.k,
                          (long long)y->dims[p.b_vector ? 0 : y->rank - 2]);
    return p;
}

// Indices of an operand: batch dimensions broadcast, then row and column.
static void operand_at(berth_lower *c, const berth_type *type, const berth_expr *batch,
                       int batch_rank, berth_expr row, berth_expr column, berth_expr *out_at) {
    if (type->rank == 1) {
        out_at[0] = row ? row : column;
        return;
    }
    int own = type->rank - 2;
    for (int d = 0; d < own; ++d)
        out_at[d] = type->dims[d] == 1 ? ix(c, 0) : batch[batch_rank - own + d];
    out_at[own] = row;
    out_at[own + 1] = column;
}

static void product_operands(berth_lower *c, const product *p, const berth_expr *at, berth_expr k,
                             berth_expr *x_at, berth_expr *y_at) {
    int batch_rank = p->rank - !p->a_vector - !p->b_vector;
    berth_expr i = p->a_vector ? 0 : at[batch_rank];
    berth_expr j = p->b_vector ? 0 : at[p->rank - 1];
    operand_at(c, in_type(c, p->op, p->a), at, batch_rank, i, k, x_at);
    operand_at(c, in_type(c, p->op, p->b), at, batch_rank, k, j, y_at);
}

static void product_names(const product *p, const char **names) {
    int batch_rank = p->rank - !p->a_vector - !p->b_vector;
    for (int d = 0; d < BERTH_MAX_RANK; ++d) names[d] = "b";
    if (!p->a_vector) names[batch_rank] = "i";
    if (!p->b_vector && p->rank > 0) names[p->rank - 1] = "j";
}

static berth_expr product_sum(berth_lower *c, const product *p, const berth_expr *at) {
    berth_dtype t = out_dtype(c, p->op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    berth_expr k = berth_lower__loop(c, "k", p->k, BERTH_LOOP_SERIAL);
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr y_at[BERTH_MAX_RANK];
    product_operands(c, p, at, k, x_at, y_at);
    berth_expr x = in_at(c, p->op, 0, x_at);
    berth_lower__set(c, acc, x_fma(c, x, in_at(c, p->op, 1, y_at), berth_lower__get(c, acc)));
    berth_lower__end(c);
    return berth_lower__get(c, acc);
}

berth_expr berth_lower__matmul_sum(berth_lower *c, const berth_op *op, uint32_t output,
                                   const berth_expr *at) {
    (void)output;
    product p = describe(c, op, 0, 1);
    return c->failure ? num(c, out_dtype(c, op, 0), 0) : product_sum(c, &p, at);
}

// A nest over all elements of a product, `sum` making one.
static void product_nest(berth_lower *c, const berth_op *op, const char *const *names,
                         berth_lower_element_fn sum) {
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    if (c->failure) return;
    berth_lower__store(c, op, 0, grid.at, sum(c, op, 0, grid.at));
    berth_lower__grid_end(c, &grid);
}

void berth_lower__matmul(berth_lower *c, const berth_op *op) {
    const berth_attention *attention = c->attentions[op - c->graph->ops.data];
    if (attention) {
        berth_lower__attention(c, op, attention);
        return;
    }
    product p = describe(c, op, 0, 1);
    if (c->failure) return;
    const char *names[BERTH_MAX_RANK];
    product_names(&p, names);
    product_nest(c, op, names, berth_lower__matmul_sum);
}

berth_expr berth_lower__gemm_sum(berth_lower *c, const berth_op *op, uint32_t output,
                                 const berth_expr *at) {
    (void)output;
    bool trans_a = attr_int(c, op, "transA", 0) != 0;
    bool trans_b = attr_int(c, op, "transB", 0) != 0;
    double alpha = attr_float(c, op, "alpha", 1);
    double beta = attr_float(c, op, "beta", 1);
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    int64_t depth = in_type(c, op, 0)->dims[trans_a ? 0 : 1];
    berth_expr k = berth_lower__loop(c, "k", depth, BERTH_LOOP_SERIAL);
    berth_expr x_at[2] = {trans_a ? k : at[0], trans_a ? at[0] : k};
    berth_expr y_at[2] = {trans_b ? at[1] : k, trans_b ? k : at[1]};
    berth_expr x = in_at(c, op, 0, x_at);
    berth_lower__set(c, acc, x_fma(c, x, in_at(c, op, 1, y_at), berth_lower__get(c, acc)));
    berth_lower__end(c);
    berth_expr value = berth_lower__get(c, acc);
    if (alpha != 1) value = x_mul(c, value, num(c, t, alpha));
    if (has_in(op, 2) && beta != 0) {
        berth_expr bias = berth_lower__in_broadcast(c, op, 2, 2, at);
        if (beta != 1) bias = x_mul(c, bias, num(c, t, beta));
        value = x_add(c, value, bias);
    }
    return value;
}

void berth_lower__gemm(berth_lower *c, const berth_op *op) {
    static const char *const names[BERTH_MAX_RANK] = {"i", "j"};
    if (in_type(c, op, 0)->rank != 2 || in_type(c, op, 1)->rank != 2) {
        berth_lower__fail(c, op, "operands must be matrices");
        return;
    }
    product_nest(c, op, names, berth_lower__gemm_sum);
}

// ---- quantised ----------------------------------------------------------------------------------

// Zero point of a row of A (scalar, [M] or [..., M, 1]) or of a column of B (scalar, [N] or [...,
// 1, N]), as i32.
static berth_expr zero_point(berth_lower *c, const berth_op *op, uint32_t i, const product *p,
                             const berth_expr *at, bool of_rows) {
    const berth_type *type = in_type(c, op, i);
    berth_expr line = 0;
    if (of_rows && !p->a_vector) line = at[p->rank - 1 - !p->b_vector];
    if (!of_rows && !p->b_vector) line = at[p->rank - 1];
    int batch_rank = p->rank - !p->a_vector - !p->b_vector;
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < type->rank; ++d) {
        int from_end = type->rank - d;
        berth_expr index = from_end > 2 ? at[batch_rank - (from_end - 2)] : line;
        mapped[d] = type->dims[d] == 1 || !index ? ix(c, 0) : index;
    }
    return x_cast(c, BERTH_DTYPE_I32, in_at(c, op, i, mapped));
}

// i32 accumulator of the product of operands `a` and `b` less their zero points (`a_zero`,
// `b_zero`; absent = 0).
static berth_buf integer_product(berth_lower *c, const product *p, uint32_t a_zero, uint32_t b_zero,
                                 const berth_expr *at) {
    const berth_op *op = p->op;
    berth_expr za = has_in(op, a_zero) ? zero_point(c, op, a_zero, p, at, true) : 0;
    berth_expr zb = has_in(op, b_zero) ? zero_point(c, op, b_zero, p, at, false) : 0;
    berth_buf acc = berth_lower__register(c, "acc", BERTH_DTYPE_I32);
    berth_lower__set(c, acc, num(c, BERTH_DTYPE_I32, 0));
    berth_expr k = berth_lower__loop(c, "k", p->k, BERTH_LOOP_SERIAL);
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr y_at[BERTH_MAX_RANK];
    product_operands(c, p, at, k, x_at, y_at);
    berth_expr x = x_cast(c, BERTH_DTYPE_I32, in_at(c, op, p->a, x_at));
    berth_expr y = x_cast(c, BERTH_DTYPE_I32, in_at(c, op, p->b, y_at));
    if (za) x = x_sub(c, x, za);
    if (zb) y = x_sub(c, y, zb);
    berth_lower__set(c, acc, x_fma(c, x, y, berth_lower__get(c, acc)));
    berth_lower__end(c);
    return acc;
}

berth_expr berth_lower__matmul_integer_sum(berth_lower *c, const berth_op *op, uint32_t output,
                                           const berth_expr *at) {
    (void)output;
    product p = describe(c, op, 0, 1);
    if (c->failure) return num(c, BERTH_DTYPE_I32, 0);
    return berth_lower__get(c, integer_product(c, &p, 2, 3, at));
}

void berth_lower__matmul_integer(berth_lower *c, const berth_op *op) {
    product p = describe(c, op, 0, 1);
    if (c->failure) return;
    const char *names[BERTH_MAX_RANK];
    product_names(&p, names);
    product_nest(c, op, names, berth_lower__matmul_integer_sum);
}

// ---- weights of few bits

// Number `place` of a byte as a weight, (number - zero) * scale as number * scale - zero * scale: what depends on the
// block alone is the same for all of its terms.
static berth_expr unpacked(berth_lower *c, const berth_bits_shape *s, berth_expr byte,
                           int64_t place, berth_expr scale, berth_expr minus_zero) {
    const berth_dtype whole = BERTH_DTYPE_I32;
    if (place)
        byte = berth_tfn_binary(c->fn, BERTH_BINARY_SHR, byte,
                                num(c, whole, (double)(place * s->bits)));
    if (place + 1 < s->per_byte)
        byte = berth_tfn_binary(c->fn, BERTH_BINARY_BIT_AND, byte,
                                num(c, whole, (double)((1 << s->bits) - 1)));
    return x_fma(c, x_cast(c, BERTH_DTYPE_F32, byte), scale, minus_zero);
}

// The numbers of a byte in turn, added to the sum; `k`: the first one's term.
static berth_expr add_byte(berth_lower *c, const berth_op *op, const berth_bits_shape *s,
                           const berth_expr *at, berth_expr row, berth_expr block, berth_expr k,
                           int64_t numbers, berth_expr sum) {
    const berth_dtype real = BERTH_DTYPE_F32;
    int last = in_type(c, op, 0)->rank - 1;
    const berth_expr of_byte[2] = {row, at[last]}, of_block[2] = {block, at[last]};
    berth_expr x_at[BERTH_MAX_RANK];
    for (int d = 0; d < last; ++d) x_at[d] = at[d];
    berth_expr byte = x_cast(c, BERTH_DTYPE_I32, in_at(c, op, 1, of_byte));
    berth_expr scale = x_cast(c, real, in_at(c, op, 2, of_block));
    berth_expr zero = has_in(op, 3) ? x_cast(c, real, in_at(c, op, 3, of_block))
                                    : num(c, real, (double)(1 << (s->bits - 1)));
    berth_expr minus_zero = x_unary(c, BERTH_UNARY_NEG, x_mul(c, zero, scale));
    for (int64_t place = 0; place < numbers; ++place) {
        x_at[last] = x_addi(c, k, place);
        sum = x_fma(c, in_at(c, op, 0, x_at), unpacked(c, s, byte, place, scale, minus_zero), sum);
    }
    return sum;
}

// Loops over blocks, or equal parts of them where they do not fill the sum, and their bytes; then the numbers of a
// last byte that are left.
berth_expr berth_lower__matmul_bits_sum(berth_lower *c, const berth_op *op, uint32_t output,
                                        const berth_expr *at) {
    (void)output;
    const berth_type *x = in_type(c, op, 0);
    int64_t depth = x->dims[x->rank - 1];
    berth_bits_shape s;
    if (!berth_lower__check(c, op, berth_bits_resolve(c->module, op, depth, &s)))
        return num(c, BERTH_DTYPE_F32, 0);
    berth_buf acc = berth_lower__register(c, "acc", BERTH_DTYPE_F32);
    berth_lower__set(c, acc, num(c, BERTH_DTYPE_F32, 0));
    int64_t numbers = depth % s.per_byte, whole = depth - numbers;
    if (whole || !depth) {
        int64_t each = berth_greatest_divisor(s.block, whole);
        berth_expr part = berth_lower__loop(c, "block", whole / each, BERTH_LOOP_SERIAL);
        berth_expr byte = berth_lower__loop(c, "byte", each / s.per_byte, BERTH_LOOP_SERIAL);
        berth_expr row = x_add(c, x_muli(c, part, each / s.per_byte), byte);
        berth_expr block = each < s.block ? x_div(c, part, ix(c, s.block / each)) : part;
        berth_lower__set(c, acc,
                         add_byte(c, op, &s, at, row, block, x_muli(c, row, s.per_byte), s.per_byte,
                                  berth_lower__get(c, acc)));
        berth_lower__end_loops(c, 2);
    }
    if (numbers) {
        berth_expr row = ix(c, whole / s.per_byte);
        berth_lower__set(c, acc,
                         add_byte(c, op, &s, at, row, ix(c, depth / s.block), ix(c, whole), numbers,
                                  berth_lower__get(c, acc)));
    }
    return berth_lower__get(c, acc);
}

void berth_lower__matmul_bits(berth_lower *c, const berth_op *op) {
    const char *names[BERTH_MAX_RANK];
    int rank = out_type(c, op, 0)->rank;
    for (int d = 0; d < BERTH_MAX_RANK; ++d) names[d] = d + 1 == rank ? "j" : "i";
    product_nest(c, op, names, berth_lower__matmul_bits_sum);
}

// Scale of a row or column as f32.
static berth_expr line_scale(berth_lower *c, const berth_op *op, uint32_t i, berth_expr line) {
    const berth_type *type = in_type(c, op, i);
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < type->rank; ++d) mapped[d] = type->dims[d] == 1 || !line ? ix(c, 0) : line;
    return x_cast(c, BERTH_DTYPE_F32, in_at(c, op, i, mapped));
}

// Operands a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
void berth_lower__qlinear_matmul(berth_lower *c, const berth_op *op) {
    product p = describe(c, op, 0, 3);
    if (c->failure) return;
    const char *names[BERTH_MAX_RANK];
    product_names(&p, names);
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    berth_buf acc = integer_product(c, &p, 2, 5, grid.at);
    berth_expr row = p.a_vector ? 0 : grid.at[p.rank - 1 - !p.b_vector];
    berth_expr column = p.b_vector ? 0 : grid.at[p.rank - 1];
    berth_expr scale = x_mul(c, line_scale(c, op, 1, row), line_scale(c, op, 4, column));
    berth_expr real = x_mul(c, x_cast(c, BERTH_DTYPE_F32, berth_lower__get(c, acc)), scale);
    berth_expr zero = x_cast(c, BERTH_DTYPE_I32, zero_point(c, op, 7, &p, grid.at, true));
    berth_expr value =
        berth_lower__saturate(c, real, line_scale(c, op, 6, row), zero, out_type(c, op, 0)->dtype);
    berth_lower__store(c, op, 0, grid.at, value);
    berth_lower__grid_end(c, &grid);
}
