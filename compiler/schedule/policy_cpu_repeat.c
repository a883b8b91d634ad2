// Copies that take every element of a row twice (nearest neighbours of twice the size): a register of
// neighbours becomes two by putting its lanes in turn with themselves.
//
//   y[i, j] = x[i, j / 2]  ->  r = x[i, j..]; y[i, 2 j..] = zip_low(r, r), zip_high(r, r)
#include <string.h>

#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/tensorize.h"

typedef struct repetition {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    berth_buf block;  // stands for a half in stores
    bool failed;
} repetition;

static int64_t stride_of(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                         const berth_expr *indices, int count, berth_var var) {
    bool linear = false;
    berth_linear at = berth_linear_access(fn, ranges, buf, indices, count);
    int64_t stride = berth_linear_stride(fn, &at, var, &linear);
    return linear ? stride : INT64_MIN;
}

// Elements of other types: two stores of one, which C compilers put in turn in registers. Splits the last loop.
static berth_stmt pairs(berth_tfn *fn, berth_nest nest) {
    const berth_stmt_node store = fn->stmts.data[nest.body];
    int last = nest.count - 1;
    if (store.kind != BERTH_STMT_STORE || fn->bufs.data[store.buf].lanes > 1 ||
        nest.loops[last].extent % 2)
        return 0;
    berth_expr load = berth_tfn_moved(fn, fn->bufs.data[store.buf].dtype, store.value);
    if (!load) return 0;
    const berth_expr_node from = fn->exprs.data[load];
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &nest);
    berth_linear at = berth_linear_access(fn, &ranges, from.load.buf,
                                          berth_tfn_load_indices(fn, load), from.index_count);
    if (berth_linear_block(fn, &at, nest.loops[last].var) != 2) return 0;
    int64_t inside = nest.loops[last].extent;
    berth_status status = berth_schedule_split(fn, &nest, last, 2);
    if (!status) status = berth_schedule_unroll(fn, &nest, last + 1);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    nest.loops[last].kind = BERTH_LOOP_SIMD;
    berth_nest row = {.loops = {nest.loops[last]}, .count = 1, .body = nest.body};
    nest.body = berth_nest_emit(fn, &row);
    nest.count = last;
    berth_cpu__keep_chunks_serial(fn, &nest, inside);
    return berth_nest_emit(fn, &nest);
}

// Whether the body copies, and the last loop takes each of its elements for two results. The nest
// gets that loop split in two.
static bool find_repetition(berth_tfn *fn, berth_nest *nest) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    int last = nest->count - 1;
    if (store.kind != BERTH_STMT_STORE || fn->bufs.data[store.buf].dtype != BERTH_DTYPE_F32 ||
        nest->loops[last].extent % 2)
        return false;
    const berth_expr_node load = fn->exprs.data[store.value];
    if (load.kind != BERTH_EXPR_LOAD || fn->bufs.data[load.load.buf].dtype != BERTH_DTYPE_F32 ||
        fn->bufs.data[load.load.buf].lanes > 1)
        return false;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    berth_linear at = berth_linear_access(
        fn, &ranges, load.load.buf, berth_tfn_load_indices(fn, store.value), load.index_count);
    if (berth_linear_block(fn, &at, nest->loops[last].var) != 2) return false;
    berth_status status = berth_schedule_split(fn, nest, last, 2);
    if (status) {
        berth_decisions_refuse(fn, status);
        return false;
    }
    ranges = berth_ranges_with(fn, &ranges, nest);
    const berth_stmt_node split = fn->stmts.data[nest->body];
    const berth_expr_node from = fn->exprs.data[split.value];
    berth_expr to[BERTH_MAX_RANK];
    memcpy(to, berth_tfn_store_indices(fn, nest->body), split.index_count * sizeof(*to));
    const berth_expr *read = berth_tfn_load_indices(fn, split.value);
    berth_var both[2] = {nest->loops[last].var, nest->loops[last + 1].var};
    static const int64_t strides[2][2] = {{2, 1}, {1, 0}};  // of results and operands
    for (int i = 0; i < 2; ++i) {
        if (stride_of(fn, &ranges, split.buf, to, split.index_count, both[i]) != strides[0][i] ||
            stride_of(fn, &ranges, from.load.buf, read, from.index_count, both[i]) != strides[1][i])
            return false;
    }
    return true;
}

static bool serves(const berth_cpu_facts *facts, int64_t lanes) {
    berth_intrinsic low = lanes == 16 ? BERTH_INTRINSIC_ZIP_LOW_X16 : BERTH_INTRINSIC_ZIP_LOW_X8;
    return facts->target && (lanes == 8 || lanes == 16) && lanes <= facts->lanes &&
           berth_intrinsic_serves(low, facts->target);
}

// Loops [element, copy]: `lanes` elements, which are the loop's only ones.
static berth_stmt one_register(repetition *r, berth_stmt body, berth_var element, berth_var copy,
                               uint16_t lanes) {
    berth_tfn *fn = r->fn;
    const berth_stmt_node store = fn->stmts.data[body];
    berth_expr zero = berth_tfn_index(fn, 0);
    berth_expr value = berth_replace_var(fn, store.value, copy, zero);
    value = berth_vectorize_expr(fn, value, element, lanes, BERTH_NONE, 0);
    if (!value) return 0;
    berth_stmt items[5];
    berth_var row = berth_tfn_let_var(fn, "row", BERTH_DTYPE_F32, lanes, false);
    items[0] = berth_tfn_let(fn, row, value);
    berth_expr x = berth_tfn_var_ref(fn, row);
    for (int half = 0; half < 2; ++half) {
        berth_intrinsic zip =
            lanes == 16 ? (half ? BERTH_INTRINSIC_ZIP_HIGH_X16 : BERTH_INTRINSIC_ZIP_LOW_X16)
                        : (half ? BERTH_INTRINSIC_ZIP_HIGH_X8 : BERTH_INTRINSIC_ZIP_LOW_X8);
        berth_var name = berth_tfn_let_var(fn, "zip", BERTH_DTYPE_F32, lanes, false);
        items[1 + 2 * half] = berth_tfn_let(fn, name, berth_tfn_intrinsic(fn, zip, x, x, x));
        berth_expr to[BERTH_MAX_RANK];
        memcpy(to, berth_tfn_store_indices(fn, body), store.index_count * sizeof(*to));
        berth_stmt half_store = berth_tfn_store(fn, store.buf, to, store.index_count,
                                                berth_tfn_load(fn, r->block, NULL, 0));
        // results from half * lanes on, one after the other
        half_store =
            berth_replace_var_stmt(fn, half_store, element, berth_tfn_index(fn, half * lanes / 2));
        items[2 + 2 * half] = berth_vectorize_store(fn, half_store, copy, lanes, r->block,
                                                    berth_tfn_var_ref(fn, name));
        if (!items[2 + 2 * half]) return 0;
    }
    return berth_tfn_seq(fn, items, 5);
}

// Loops [element, copy] in whole registers, then in halves of them, then one by one.
static berth_stmt registers(repetition *r, berth_nest pair, int64_t lanes) {
    berth_tfn *fn = r->fn;
    while (lanes >= BERTH_CPU_LEAST_LANES &&
           (pair.loops[0].extent < lanes || !serves(r->facts, lanes)))
        lanes /= 2;
    if (lanes < BERTH_CPU_LEAST_LANES) return berth_nest_emit(fn, &pair);
    int64_t whole = pair.loops[0].extent / lanes * lanes;
    berth_nest rest = {0};
    berth_status status = BERTH_OK;
    if (whole < pair.loops[0].extent) status = berth_schedule_peel(fn, &pair, 0, whole, &rest);
    if (!status && whole > lanes) status = berth_schedule_split(fn, &pair, 0, lanes);
    berth_stmt body = 0;
    if (!status)
        body = one_register(r, pair.body, pair.loops[pair.count - 2].var,
                            pair.loops[pair.count - 1].var, (uint16_t)lanes);
    if (!body) {
        berth_decisions_refuse(fn, status);
        r->failed = true;
        return 0;
    }
    if (pair.count == 3) {
        pair.body = body;
        pair.count = 1;
        body = berth_nest_emit(fn, &pair);
    }
    if (!rest.count) return body;
    berth_stmt items[2] = {body, registers(r, rest, lanes / 2)};
    return r->failed ? 0 : berth_tfn_seq(fn, items, 2);
}

berth_stmt berth_cpu__repeat_rows(berth_tfn *fn, const berth_nest *plain,
                                  const berth_cpu_facts *facts) {
    repetition r = {.fn = fn, .facts = facts};
    berth_nest nest = *plain;
    for (int i = 0; i < nest.count; ++i)
        if (nest.loops[i].extent <= 0) return 0;
    if (nest.count < 2 || nest.loops[nest.count - 1].extent < 2 * BERTH_CPU_LEAST_LANES) return 0;
    if (!serves(facts, BERTH_CPU_LEAST_LANES) || !find_repetition(fn, &nest))
        return pairs(fn, *plain);
    r.block = berth_tfn_buffer(fn, "block", BERTH_DTYPE_F32, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_nest pair = {.count = 2, .body = nest.body};
    for (int i = 0; i < 2; ++i) {
        pair.loops[i] = nest.loops[nest.count - 2 + i];
        pair.loops[i].kind = BERTH_LOOP_SERIAL;
    }
    int64_t inside = pair.loops[0].extent * 2;
    nest.count -= 2;
    nest.body = registers(&r, pair, facts->lanes);
    if (r.failed) return 0;
    berth_cpu__keep_chunks_serial(fn, &nest, inside);
    return berth_nest_emit(fn, &nest);
}
