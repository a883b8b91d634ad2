#include "compiler/schedule/plain_columns.h"
#include "compiler/schedule/plain_index.h"
#include "compiler/schedule/policy_cpu.h"

#include <string.h>

#define STRIP_LIMIT_BYTES 2048  // beyond the fewest results
#define MOST_COLUMNS 8
#define MOST_BYTE_COLUMNS 32  // of strips of bytes
#define MOST_ROWS 16          // of a product of a vector
#define UNROLL 4              // elements that a copy takes at once

// ---- what the sum is ----------------------------------------------------------------------------

static const berth_expr_node *node_of(const berth_plain_sum *s, berth_expr id) {
    return &s->fn->exprs.data[id];
}

static bool is_load_of(const berth_plain_sum *s, berth_expr id, berth_dtype dtype) {
    const berth_expr_node *node = node_of(s, id);
    return node->kind == BERTH_EXPR_LOAD && node->dtype == dtype && node->lanes == 1;
}

static bool is_byte_cast(const berth_plain_sum *s, berth_expr id) {
    const berth_expr_node *node = node_of(s, id);
    if (node->kind != BERTH_EXPR_CAST || node->dtype != BERTH_DTYPE_I32) return false;
    const berth_expr_node *from = node_of(s, node->a);
    return (from->dtype == BERTH_DTYPE_I8 || from->dtype == BERTH_DTYPE_U8) && from->lanes == 1;
}

// An i32 value that 16 bits hold: a byte, less a zero point, 0 in the padding.
static bool fits_i16(const berth_plain_sum *s, berth_expr id) {
    const berth_expr_node *node = node_of(s, id);
    bool bytes = is_byte_cast(s, id);
    if (node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_SUB)
        return is_byte_cast(s, node->a) &&
               (is_byte_cast(s, node->b) ||
                (node_of(s, node->b)->kind == BERTH_EXPR_INT && node_of(s, node->b)->i >= -128 &&
                 node_of(s, node->b)->i <= 255));
    if (node->kind == BERTH_EXPR_SELECT) {
        const berth_expr_node *other = node_of(s, node->c);
        return other->kind == BERTH_EXPR_INT && other->i >= -255 && other->i <= 255 &&
               fits_i16(s, node->b);
    }
    return bytes;
}

static bool uses(const berth_plain_sum *s, berth_expr id, int loop) {
    return berth_tfn_uses_var(s->fn, id, s->nest.loops[loop].var);
}

// The one loop of the nest along which the weights move.
static bool find_row(berth_plain_sum *s) {
    s->row = -1;
    for (int l = 0; l < s->nest.count; ++l)
        if (uses(s, s->w, l)) s->row = s->row < 0 ? l : s->nest.count;
    return s->row >= 0 && s->row < s->nest.count;
}

bool berth_plain__take(berth_plain_sum *s) {
    if (!berth_reduction_parse(s->fn, s->nest.body, &s->reduction)) return false;
    if (s->reduction.loops.count == 0 || s->reduction.loops.count + 4 > BERTH_NEST_MAX_LOOPS)
        return false;
    const berth_expr_node *update = node_of(s, s->reduction.update);
    const berth_expr_node *init = node_of(s, s->reduction.init);
    if (update->kind != BERTH_EXPR_BINARY || update->op != BERTH_BINARY_ADD ||
        update->dtype != BERTH_DTYPE_I32)
        return false;
    const berth_expr_node *sum = node_of(s, update->a), *product = node_of(s, update->b);
    if (sum->kind != BERTH_EXPR_LOAD || sum->load.buf != s->reduction.acc) return false;
    if (product->kind != BERTH_EXPR_BINARY || product->op != BERTH_BINARY_MUL) return false;
    if (init->kind != BERTH_EXPR_INT || init->i != 0) return false;
    for (int i = 0; i < 2; ++i) {
        s->w = i ? product->b : product->a;
        s->x = i ? product->a : product->b;
        const berth_expr_node *w = node_of(s, s->w);
        if (w->kind != BERTH_EXPR_CAST || !is_load_of(s, w->a, BERTH_DTYPE_I8)) continue;
        if (find_row(s) && fits_i16(s, s->x)) return true;
    }
    return false;
}

bool berth_plain__take_floats(berth_plain_sum *s) {
    if (!berth_reduction_parse(s->fn, s->nest.body, &s->reduction)) return false;
    if (s->reduction.loops.count == 0 || s->reduction.loops.count + 4 > BERTH_NEST_MAX_LOOPS)
        return false;
    const berth_expr_node *update = node_of(s, s->reduction.update), *product = update;
    bool fma = update->kind == BERTH_EXPR_FMA;
    bool sum = update->kind == BERTH_EXPR_BINARY && update->op == BERTH_BINARY_ADD;
    if ((!fma && !sum) || update->dtype != BERTH_DTYPE_F32) return false;
    const berth_expr_node *acc = node_of(s, fma ? update->c : update->a);
    if (acc->kind != BERTH_EXPR_LOAD || acc->load.buf != s->reduction.acc) return false;
    if (sum) product = node_of(s, update->b);
    if (sum && (product->kind != BERTH_EXPR_BINARY || product->op != BERTH_BINARY_MUL))
        return false;
    for (int i = 0; i < 2; ++i) {
        s->w = i ? product->b : product->a;
        s->x = i ? product->a : product->b;
        const berth_expr_node *x = node_of(s, s->x);
        bool zero = x->kind == BERTH_EXPR_SELECT && node_of(s, x->c)->kind == BERTH_EXPR_FLOAT &&
                    node_of(s, x->c)->f == 0;
        bool plain = is_load_of(s, zero ? x->b : s->x, BERTH_DTYPE_F32);
        if (plain && is_load_of(s, s->w, BERTH_DTYPE_F32) && find_row(s)) return true;
    }
    return false;
}

berth_linear berth_plain__place(berth_plain_sum *s, const berth_nest *with, berth_expr load) {
    const berth_expr_node node = *node_of(s, load);
    berth_ranges ranges = berth_ranges_collect(s->fn);
    ranges = berth_ranges_with(s->fn, &ranges, with);
    ranges = berth_ranges_with(s->fn, &ranges, &s->reduction.loops);
    return berth_linear_access(s->fn, &ranges, node.load.buf, berth_tfn_load_indices(s->fn, load),
                               node.index_count);
}

// Puts the loops of the sum into the order in which `at` goes on without a gap, its last step being
// *out_step. False: there is none.
bool berth_plain__order_depth(berth_plain_sum *s, const berth_linear *at, int64_t *out_step) {
    const berth_nest *loops = &s->reduction.loops;
    int64_t strides[BERTH_NEST_MAX_LOOPS];
    s->depth = *loops;
    s->total = 1;
    for (int i = 0; i < loops->count; ++i) {
        bool linear = false;
        berth_nest_loop loop = loops->loops[i];
        int64_t stride = berth_linear_stride(s->fn, at, loop.var, &linear);
        int k = i;
        if (!linear || loop.extent < 1) return false;
        if (loop.extent == 1) stride = 0;  // anywhere: innermost
        for (; k > 0 && strides[k - 1] < stride; --k) {
            strides[k] = strides[k - 1];
            s->depth.loops[k] = s->depth.loops[k - 1];
        }
        strides[k] = stride;
        s->depth.loops[k] = loop;
    }
    int64_t next = 0;
    for (int i = loops->count - 1; i >= 0; --i) {
        int64_t extent = s->depth.loops[i].extent;
        if (extent == 1) continue;
        if (next && strides[i] != next) return false;
        if (!next) *out_step = strides[i];
        next = strides[i] * extent;
        s->total *= extent;
    }
    return next > 0 && s->total <= INT32_MAX / 4;
}

// ---- strips -------------------------------------------------------------------------------------

// Whether all that `id` reads and compares moves along loop `a` by the same multiple (*stride, 0 =
// not known yet) of what it moves along `b`.
bool berth_plain__moves_alike(berth_plain_sum *s, const berth_ranges *ranges, berth_expr id,
                              berth_var a, berth_var b, int64_t *stride) {
    if (!id) return true;
    const berth_expr_node node = *node_of(s, id);
    if (node.is_index) {
        bool linear_a = false, linear_b = false;
        berth_linear form = berth_linear_of(s->fn, ranges, id);
        int64_t by_a = berth_linear_stride(s->fn, &form, a, &linear_a);
        int64_t by_b = berth_linear_stride(s->fn, &form, b, &linear_b);
        if (!linear_a || !linear_b) return false;
        if (by_b == 0) return by_a == 0;
        if (*stride == 0 && by_a % by_b == 0) *stride = by_a / by_b;
        return *stride > 0 && by_a == *stride * by_b;
    }
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT: return true;
    case BERTH_EXPR_LOAD:
        for (int i = 0; i < node.index_count; ++i)
            if (!berth_plain__moves_alike(s, ranges, berth_tfn_load_indices(s->fn, id)[i], a, b,
                                          stride))
                return false;
        return true;
    case BERTH_EXPR_CAST:
    case BERTH_EXPR_UNARY:
    case BERTH_EXPR_BINARY:
    case BERTH_EXPR_SELECT:
        return berth_plain__moves_alike(s, ranges, node.a, a, b, stride) &&
               berth_plain__moves_alike(s, ranges, node.b, a, b, stride) &&
               berth_plain__moves_alike(s, ranges, node.c, a, b, stride);
    default: return false;
    }
}

// A byte as i32, less a zero point that is known. False: it is something else.
static bool take_byte(const berth_plain_sum *s, berth_expr id, berth_expr *out_byte,
                      int64_t *out_zero) {
    const berth_expr_node *node = node_of(s, id);
    *out_zero = 0;
    if (node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_SUB) {
        const berth_expr_node *zero = node_of(s, node->b);
        if (zero->kind == BERTH_EXPR_CAST) zero = node_of(s, zero->a);
        if (zero->kind != BERTH_EXPR_INT) return false;
        *out_zero = zero->i;
        id = node->a;
    }
    if (!is_byte_cast(s, id)) return false;
    *out_byte = node_of(s, id)->a;
    return true;
}

// Whether the strip can hold bytes, and what is then to be taken off each (s->zero).
static bool choose_bytes(berth_plain_sum *s) {
    const berth_expr_node *x = node_of(s, s->x);
    berth_expr byte = 0;
    int64_t zero = 0;
    if (!take_byte(s, x->kind == BERTH_EXPR_SELECT ? x->b : s->x, &byte, &zero)) return false;
    s->zero = node_of(s, byte)->dtype == BERTH_DTYPE_U8 ? zero - 128 : zero;
    return s->zero >= -128 && s->zero <= 127;
}

static int64_t strip_elements(const berth_plain_sum *s, int64_t count) {
    if (!s->shared) return count * s->step;
    const berth_nest_loop *outer = &s->depth.loops[0];
    return ((count - 1) * s->stride + outer->extent) * (s->total / outer->extent);
}

// As many results at once as divide the loop: an even number where there is one, for they are
// computed in pairs.
static void choose_count(berth_plain_sum *s) {
    int64_t extent = s->column < 0 ? 1 : s->nest.loops[s->column].extent;
    s->count = 1;
    int64_t most = s->bytes ? MOST_BYTE_COLUMNS : MOST_COLUMNS;
    for (int64_t n = 2; n <= most && n <= extent; ++n) {
        int64_t bytes = strip_elements(s, n) * (s->bytes ? 1 : 2);
        bool fits = bytes <= STRIP_LIMIT_BYTES || s->count == 1;
        bool better = s->shared || s->bytes || s->count == 1 || (s->count % 2 && n % 2 == 0);
        if (extent % n == 0 && fits && better && (n % 2 == 0 || s->count % 2)) s->count = n;
    }
}

// What the strip is for the last loop of the nest that x moves along.
static void choose_strip(berth_plain_sum *s) {
    s->column = -1;
    s->bytes = s->bytes && choose_bytes(s);
    for (int i = 0; i < s->nest.count; ++i)
        if (i != s->row && s->nest.loops[i].extent > 1 && uses(s, s->x, i)) s->column = i;
    s->step = s->bytes ? s->total : (s->total + 1) / 2 * 2;  // pairs begin at a word
    s->shared = false;
    if (s->column >= 0) {
        const berth_nest_loop *outer = &s->depth.loops[0];
        berth_ranges ranges = berth_ranges_collect(s->fn);
        ranges = berth_ranges_with(s->fn, &ranges, &s->nest);
        ranges = berth_ranges_with(s->fn, &ranges, &s->reduction.loops);
        s->stride = 0;
        bool alike = berth_plain__moves_alike(s, &ranges, s->x, s->nest.loops[s->column].var,
                                              outer->var, &s->stride);
        int64_t step = s->stride * (s->total / outer->extent);
        s->shared =
            alike && s->stride > 0 && s->stride < outer->extent && (s->bytes || step % 2 == 0);
        if (s->shared) s->step = step;
    }
    choose_count(s);
}

// ---- building -----------------------------------------------------------------------------------

// Position in the loops [from, count) of the sum, `vars` in place of their own.
static berth_expr flat(const berth_plain_sum *s, int from, const berth_nest *with) {
    berth_expr at = berth_tfn_index(s->fn, 0);
    for (int i = from; i < s->depth.count; ++i)
        at = add(s->fn, times(s->fn, at, s->depth.loops[i].extent),
                 berth_tfn_var_ref(s->fn, with->loops[i].var));
    return at;
}

static berth_stmt store_at(berth_tfn *fn, berth_buf buf, berth_expr at, berth_expr value) {
    return berth_tfn_store(fn, buf, &at, 1, value);
}

berth_stmt berth_plain__copy(const berth_plain_sum *s, const berth_nest *loops, berth_buf buf,
                             berth_expr at, berth_expr value) {
    berth_tfn *fn = s->fn;
    berth_nest nest = *loops;
    berth_dtype dtype = fn->bufs.data[buf].dtype;
    if (fn->exprs.data[value].dtype != dtype) value = berth_tfn_cast(fn, dtype, value);
    nest.body = store_at(fn, buf, at, value);
    int last = nest.count - 1;
    int64_t step = s->vectors || s->small ? 1 : UNROLL;
    if (s->vectors && last >= 0) nest.loops[last].kind = BERTH_LOOP_VECTOR;
    while (last >= 0 && step > 1 && nest.loops[last].extent % step) --step;
    if (last >= 0 && step > 1) {
        berth_status status = berth_schedule_split(fn, &nest, last, step);
        if (!status) status = berth_schedule_unroll(fn, &nest, last + 1);
        berth_decisions_refuse(fn, status);
    }
    return nest.count ? berth_nest_emit(fn, &nest) : nest.body;
}

berth_stmt berth_plain__sum_from_zero(berth_tfn *fn, const berth_nest *results, berth_buf sums,
                                      berth_expr at, const berth_nest *depth) {
    berth_nest all = *results;
    berth_stmt items[] = {store_at(fn, sums, at, berth_tfn_int(fn, BERTH_DTYPE_I32, 0)),
                          berth_nest_emit(fn, depth)};
    all.body = berth_tfn_seq(fn, items, 2);
    return berth_nest_emit(fn, &all);
}

// The loops [from, count) of a nest.
static berth_nest inside(const berth_nest *loops, int from) {
    berth_nest inner = {.count = loops->count - from};
    memcpy(inner.loops, &loops->loops[from], (size_t)inner.count * sizeof(inner.loops[0]));
    return inner;
}

// Loops of the sum that the padding depends on, outermost; returns how many.
static int conditions_first(const berth_plain_sum *s, berth_nest *loops, berth_expr condition) {
    berth_nest_loop ordered[BERTH_NEST_MAX_LOOPS];
    int count = 0, outside = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < loops->count; ++i) {
            bool decides = condition && berth_tfn_uses_var(s->fn, condition, loops->loops[i].var);
            if (decides == (pass == 0)) ordered[count++] = loops->loops[i];
            outside += pass == 0 && decides;
        }
    memcpy(loops->loops, ordered, (size_t)count * sizeof(ordered[0]));
    return outside;
}

// What a strip of bytes holds in place of `value`: signed bytes, whose zero point is s->zero.
static berth_expr as_byte(const berth_plain_sum *s, berth_expr value) {
    berth_expr byte = 0;
    int64_t zero = 0;
    if (!s->bytes) return value;
    if (!take_byte(s, value, &byte, &zero))  // in the padding
        return berth_tfn_int(s->fn, BERTH_DTYPE_I8, s->zero + node_of(s, value)->i);
    if (node_of(s, byte)->dtype == BERTH_DTYPE_I8) return byte;
    berth_expr wide = berth_tfn_cast(s->fn, BERTH_DTYPE_I32, byte);
    berth_expr half = berth_tfn_int(s->fn, BERTH_DTYPE_I32, 128);
    return berth_tfn_cast(s->fn, BERTH_DTYPE_I8,
                          berth_tfn_binary(s->fn, BERTH_BINARY_SUB, wide, half));
}

// strip[t][...] for one strip, which begins at result `first` of the column loop.
static berth_stmt fill(berth_plain_sum *s, berth_buf strip, berth_expr first) {
    berth_tfn *fn = s->fn;
    berth_nest loops = s->depth;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    uint32_t map_count = fn->vars.count;
    berth_var each = berth_tfn_var(fn, "c");
    berth_expr at = 0;
    for (int i = 0; i < loops.count; ++i) {
        loops.loops[i].var = berth_tfn_var(fn, "k");
        loops.loops[i].kind = BERTH_LOOP_SERIAL;
        map[s->depth.loops[i].var] = berth_tfn_var_ref(fn, loops.loops[i].var);
    }
    if (s->shared) {
        loops.loops[0].extent += (s->count - 1) * s->stride;
        if (s->column >= 0) map[s->nest.loops[s->column].var] = first;
        at = flat(s, 0, &loops);
    } else {
        at = add(fn, flat(s, 0, &loops), times(fn, berth_tfn_var_ref(fn, each), s->step));
        if (s->column >= 0)
            map[s->nest.loops[s->column].var] = add(fn, first, berth_tfn_var_ref(fn, each));
        memmove(&loops.loops[1], &loops.loops[0], (size_t)loops.count * sizeof(loops.loops[0]));
        loops.loops[0] = (berth_nest_loop){each, s->count, BERTH_LOOP_SERIAL};
        loops.count++;
    }
    berth_expr value = berth_tfn_substitute(fn, s->x, map, map_count);
    const berth_expr_node node = *node_of(s, value);
    bool padded = node.kind == BERTH_EXPR_SELECT;
    int outside = conditions_first(s, &loops, padded ? node.a : 0);
    if (!padded) return berth_plain__copy(s, &loops, strip, at, as_byte(s, value));
    berth_nest inner = inside(&loops, outside);
    berth_stmt body = berth_plain__copy(s, &inner, strip, at, as_byte(s, node.b));
    berth_stmt zeros = berth_plain__copy(s, &inner, strip, at, as_byte(s, node.c));
    loops.count = outside;
    loops.body = berth_tfn_if(fn, node.a, body, zeros);
    return berth_nest_emit(fn, &loops);
}

typedef struct replacement {
    berth_buf acc;
    berth_expr with;
} replacement;

static berth_expr replace_acc(berth_tfn *fn, berth_expr load, void *user) {
    const replacement *r = user;
    return fn->exprs.data[load].load.buf == r->acc ? r->with : 0;
}

berth_stmt berth_plain__finish(const berth_plain_sum *s, const berth_expr *map, uint32_t map_count,
                               berth_expr sum) {
    berth_tfn *fn = s->fn;
    berth_stmt stores[8];
    replacement r = {s->reduction.acc, sum};
    for (int i = 0; i < s->reduction.epilogue_count; ++i) {
        berth_stmt store = berth_tfn_substitute_stmt(fn, s->reduction.epilogue[i], map, map_count);
        const berth_stmt_node node = fn->stmts.data[store];
        berth_expr indices[BERTH_MAX_RANK];
        memcpy(indices, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
        berth_expr value = berth_replace_loads(fn, node.value, replace_acc, &r);
        stores[i] = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    }
    return berth_tfn_seq(fn, stores, (uint32_t)s->reduction.epilogue_count);
}

// zeros: what the strip's zero point added to the sums of each row, if there is one.
static berth_nest finish_all(berth_plain_sum *s, berth_buf acc, int64_t rows, berth_buf zeros,
                             berth_expr outer, berth_expr first) {
    berth_tfn *fn = s->fn;
    berth_var c = berth_tfn_var(fn, "c"), r = berth_tfn_var(fn, "r");
    berth_expr at_c = berth_tfn_var_ref(fn, c), at_r = berth_tfn_var_ref(fn, r);
    berth_expr at = add(fn, times(fn, at_c, rows), at_r);
    berth_expr row = add(fn, times(fn, outer, rows), at_r);
    berth_expr sum = berth_tfn_load(fn, acc, &at, 1);
    if (zeros != BERTH_NONE)
        sum = berth_tfn_binary(fn, BERTH_BINARY_SUB, sum, berth_tfn_load(fn, zeros, &row, 1));
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    map[s->nest.loops[s->row].var] = row;
    if (s->column >= 0) map[s->nest.loops[s->column].var] = add(fn, first, at_c);
    berth_nest all = {.loops = {{r, rows, BERTH_LOOP_SERIAL}, {c, s->count, BERTH_LOOP_SERIAL}},
                      .count = 2,
                      .body = berth_plain__finish(s, map, fn->vars.count, sum)};
    if (s->count == 1 && rows % 4 == 0) {  // vectors along rows, whole ones
        all.loops[0] = all.loops[1];
        all.loops[1] = (berth_nest_loop){r, rows, BERTH_LOOP_SERIAL};
    }
    all.loops[1].kind = berth_plain__inner(s);
    return all;
}

// sums[c][r] = the sum of x * w for `count` columns of `rows` rows from row `first_row` on; x is the strip
// where there is one, else as it lies.
static berth_stmt products(berth_plain_sum *s, berth_buf sums, berth_expr sums_at, berth_buf strip,
                           int64_t count, int64_t rows, berth_expr first_row) {
    berth_tfn *fn = s->fn;
    berth_var c = berth_tfn_var(fn, "c"), r = berth_tfn_var(fn, "r");
    berth_expr at_c = berth_tfn_var_ref(fn, c), at_r = berth_tfn_var_ref(fn, r), x = s->x;
    berth_expr at = add(fn, sums_at, add(fn, times(fn, at_c, rows), at_r));
    if (strip != BERTH_NONE) {
        berth_expr from = add(fn, flat(s, 0, &s->depth), times(fn, at_c, s->step));
        x = berth_tfn_cast(fn, BERTH_DTYPE_I32, berth_tfn_load(fn, strip, &from, 1));
    }
    berth_expr w = berth_replace_var(fn, s->w, s->nest.loops[s->row].var, add(fn, first_row, at_r));
    berth_nest depth = s->depth;
    berth_expr product = berth_tfn_binary(fn, BERTH_BINARY_MUL, x, w);
    depth.body = store_at(fn, sums, at, add(fn, berth_tfn_load(fn, sums, &at, 1), product));
    berth_nest results = {.loops = {{c, count, BERTH_LOOP_SERIAL}, {r, rows, BERTH_LOOP_SERIAL}},
                          .count = 2};
    return berth_plain__sum_from_zero(fn, &results, sums, at, &depth);
}

// A block of `rows` rows: sums of products with the strip (BERTH_NONE: with x as it lies); what becomes
// of them.
static berth_stmt block(berth_plain_sum *s, int64_t rows, berth_buf strip, berth_buf zeros,
                        berth_expr outer, berth_expr first) {
    berth_tfn *fn = s->fn;
    int64_t dims[] = {s->count * rows};
    berth_buf acc = berth_tfn_buffer(fn, "sums", BERTH_DTYPE_I32, 1, dims, BERTH_SCOPE_PRIVATE);
    berth_expr first_row = times(fn, outer, rows), begin = berth_tfn_index(fn, 0);
    berth_nest last = finish_all(s, acc, rows, zeros, outer, first);
    berth_stmt items[] = {berth_tfn_alloc(fn, acc),
                          products(s, acc, begin, strip, s->count, rows, first_row),
                          berth_nest_emit(fn, &last)};
    return berth_tfn_seq(fn, items, 3);
}

// The sums of all rows' weights times the zero point, once for all strips: products with a strip of it.
static berth_stmt zero_sums(berth_plain_sum *s, int64_t rows, berth_buf strip, berth_buf zeros) {
    berth_tfn *fn = s->fn;
    berth_var i = berth_tfn_var(fn, "i"), var = berth_tfn_var(fn, "rows");
    berth_nest all = {.loops = {{i, s->total, BERTH_LOOP_SERIAL}}, .count = 1};
    berth_expr first_row = times(fn, berth_tfn_var_ref(fn, var), rows);
    int64_t extent = s->nest.loops[s->row].extent;
    berth_stmt items[] = {berth_plain__copy(s, &all, strip, berth_tfn_var_ref(fn, i),
                                            berth_tfn_int(fn, BERTH_DTYPE_I8, s->zero)),
                          berth_tfn_for(fn, var, berth_tfn_index(fn, extent / rows),
                                        BERTH_LOOP_SERIAL,
                                        products(s, zeros, first_row, strip, 1, rows, first_row))};
    return berth_tfn_seq(fn, items, 2);
}

berth_nest berth_plain__outer_loops(berth_plain_sum *s, berth_expr *first) {
    berth_nest outer = s->nest;
    *first = berth_tfn_index(s->fn, 0);
    if (s->column >= 0) {
        berth_nest_loop *loop = &outer.loops[s->column];
        loop->var = berth_tfn_var(s->fn, "strip");
        loop->extent /= s->count;
        *first = times(s->fn, berth_tfn_var_ref(s->fn, loop->var), s->count);
    }
    int after = outer.count - s->row - 1;
    memmove(&outer.loops[s->row], &outer.loops[s->row + 1], (size_t)after * sizeof(outer.loops[0]));
    outer.count--;
    return outer;
}

static berth_stmt in_loops(berth_plain_sum *s, int64_t rows, bool with_strip) {
    berth_tfn *fn = s->fn;
    berth_expr first = 0;
    berth_nest outer = berth_plain__outer_loops(s, &first);
    berth_var var = berth_tfn_var(fn, "rows");
    berth_buf strip = BERTH_NONE, zeros = BERTH_NONE;
    int64_t row_count = s->nest.loops[s->row].extent;
    berth_stmt all[4], items[2];
    uint32_t all_count = 0, count = 0;
    if (with_strip) {
        int64_t dims[] = {strip_elements(s, s->count)};
        berth_dtype dtype = s->bytes ? BERTH_DTYPE_I8 : BERTH_DTYPE_I16;
        strip = berth_tfn_buffer(fn, "strip", dtype, 1, dims, BERTH_SCOPE_PRIVATE);
        all[all_count++] = berth_tfn_alloc(fn, strip);
        items[count++] = fill(s, strip, first);
    }
    if (with_strip && s->bytes && s->zero) {
        zeros = berth_tfn_buffer(fn, "zeros", BERTH_DTYPE_I32, 1, &row_count, BERTH_SCOPE_PRIVATE);
        all[all_count++] = berth_tfn_alloc(fn, zeros);
        all[all_count++] = zero_sums(s, rows, strip, zeros);
    }
    berth_stmt body = block(s, rows, strip, zeros, berth_tfn_var_ref(fn, var), first);
    berth_expr blocks = berth_tfn_index(fn, row_count / rows);
    items[count++] = berth_tfn_for(fn, var, blocks, BERTH_LOOP_SERIAL, body);
    outer.body = berth_tfn_seq(fn, items, count);
    all[all_count++] = outer.count ? berth_nest_emit(fn, &outer) : outer.body;
    return berth_tfn_seq(fn, all, all_count);
}

// ---- forms --------------------------------------------------------------------------------------

// Weights in pairs of rows, one element of each in turn.
static bool has_pairs(berth_plain_sum *s) {
    berth_nest split = s->nest;
    if (s->nest.loops[s->row].extent % 2 || split.count == BERTH_NEST_MAX_LOOPS) return false;
    berth_var outer = berth_tfn_var(s->fn, "rows"), inner = berth_tfn_var(s->fn, "r");
    split.loops[s->row] =
        (berth_nest_loop){outer, s->nest.loops[s->row].extent / 2, BERTH_LOOP_SERIAL};
    split.loops[split.count++] = (berth_nest_loop){inner, 2, BERTH_LOOP_SERIAL};
    berth_expr row = add(s->fn, times(s->fn, berth_tfn_var_ref(s->fn, outer), 2),
                         berth_tfn_var_ref(s->fn, inner));
    berth_expr w = berth_replace_var(s->fn, s->w, s->nest.loops[s->row].var, row);
    berth_linear at = berth_plain__place(s, &split, node_of(s, w)->a);
    bool linear = false, linear_outer = false;
    int64_t step = berth_linear_stride(s->fn, &at, inner, &linear);
    (void)berth_linear_stride(s->fn, &at, outer, &linear_outer);
    return linear && linear_outer && step == 1 &&
           berth_plain__order_depth(s, &at, &s->depth_step) && s->depth_step == 2;
}

// Rows one behind the other, and one run of u8 that they are multiplied by.
static bool has_rows(berth_plain_sum *s) {
    berth_var row = s->nest.loops[s->row].var;
    bool linear = false;
    if (!is_byte_cast(s, s->x) || !is_load_of(s, node_of(s, s->x)->a, BERTH_DTYPE_U8)) return false;
    berth_linear w = berth_plain__place(s, &s->nest, node_of(s, s->w)->a);
    berth_linear x = berth_plain__place(s, &s->nest, node_of(s, s->x)->a);
    int64_t x_step = 0;
    if (!berth_plain__order_depth(s, &x, &x_step) || x_step != 1) return false;
    berth_nest by_x = s->depth;
    if (!berth_plain__order_depth(s, &w, &s->depth_step) || s->depth_step != 1) return false;
    if (berth_linear_stride(s->fn, &w, row, &linear) != s->total || !linear) return false;
    for (int i = 0; i < by_x.count; ++i)
        if (by_x.loops[i].var != s->depth.loops[i].var) return false;
    return true;
}

bool berth_plain__has_columns(berth_plain_sum *s) {
    if (!berth_plain__take(s) || uses(s, s->x, s->row) || !has_pairs(s)) return false;
    choose_strip(s);
    return true;
}

// The two innermost loops as one where what is read and stored goes on from row to row: windows of one element
// have more results for a strip then.
static void fuse_rows(berth_plain_sum *s) {
    berth_tfn *fn = s->fn;
    berth_access_list accesses = {0};
    berth_plain_sum sum = *s;
    int last = s->nest.count - 1;
    if (fn->keeps_rows || last < 1 || !berth_plain__take(&sum)) return;
    if (node_of(s, sum.x)->kind == BERTH_EXPR_SELECT) return;  // padding
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &s->nest);
    ranges = berth_ranges_with(fn, &ranges, &sum.reduction.loops);
    berth_cpu__collect_loads(fn, &ranges, sum.x, &accesses);
    for (int i = 0; i < sum.reduction.epilogue_count; ++i) {
        berth_stmt store = sum.reduction.epilogue[i];
        if (!berth_cpu__collect_body(fn, &ranges, store, &accesses)) return;
        for (int l = last - 1; l <= last; ++l)
            if (berth_cpu__used_in_conditions(fn, fn->stmts.data[store].value, s->nest.loops[l].var,
                                              0))
                return;
    }
    if (!berth_cpu__can_fuse(fn, &s->nest, last - 1, &accesses)) return;
    s->nest.loops[last].kind = s->nest.loops[last - 1].kind;
    berth_decisions_refuse(fn, berth_schedule_fuse(fn, &s->nest, last - 1));
}

berth_stmt berth_plain__columns(berth_tfn *fn, const berth_nest *nest, bool vectors) {
    berth_plain_sum s = {.fn = fn, .nest = *nest, .bytes = vectors, .vectors = vectors};
    if (vectors) fuse_rows(&s);
    if (berth_plain__has_columns(&s)) return in_loops(&s, 2, true);
    if (!berth_plain__take(&s) || uses(&s, s.x, s.row) || !has_rows(&s)) return 0;
    int64_t rows = MOST_ROWS;
    while (s.nest.loops[s.row].extent % rows) --rows;
    s.column = -1;
    s.count = 1;
    return in_loops(&s, rows, false);
}
