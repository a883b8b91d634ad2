// Elementwise nests whose results go along one loop in memory while something that they read goes
// along another one: blocks of as many rows as a register has lanes are loaded along the second
// loop, transposed in registers and stored along the first.
//
//   y[i, j] = x[j, i]  ->  r0 = x[j, i..], r1 = x[j + 1, i..], ...; y[i, j..] = lane 0 of all, ...
//
// A block of n rows takes n log2(n) instructions, each of which puts the lanes of two registers in
// turn (perfect shuffles; Stone, "Parallel Processing with the Perfect Shuffle", 1971).
//
// Elements that are computed go through registers of f32, whatever they come from and become. Those that are only moved
// may have any type: their blocks stay two loops, which the printer has
// a function for (codegen/c_moves.h).
#include <string.h>

#include "compiler/codegen/transpose_block.h"
#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/tensorize.h"
#include "ir/layout.h"

enum { most_lanes = 16, most_rounds = 4, line_bytes = 64, most_width_bytes = 256 };
// Lines of the cache come from further away in pairs.
enum { pair_bytes = 2 * line_bytes };
// A block costs as much as this part of its rows one by one.
enum { least_repeated = 4 };

typedef struct transposition {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    berth_nest nest;
    const berth_nest *around;
    int along;            // loop of neighbouring results
    int across;           // loop of neighbouring operands
    berth_expr load;      // what is transposed
    berth_buf block;      // stands for it in `store`
    berth_dtype dtype;    // of the result
    int64_t least_lanes;  // of a block
    int64_t
        readable;  // along `across` from its first operand on, padding included; 0 = no more than the loop
    bool
        moves;  // elements are not computed, and the printer has functions for blocks; else they are f32
    bool
        repeats;  // elements may be computed again: nothing that they are computed from lies under the results
    bool guarded;  // the value is a choice between it and something else, by a condition on indices
    bool padded;   // along `along`, too: channels that fill up a block
    bool failed;
} transposition;

// ---- analysis -----------------------------------------------------------------------------------

typedef BERTH_VEC(berth_expr) expr_list;

// Loads in a value, each once; false when one of them is addressed by data.
static bool list_loads(const berth_tfn *fn, berth_expr id, expr_list *out) {
    if (!id) return true;
    const berth_expr_node node = fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT || node.kind == BERTH_EXPR_VAR)
        return true;
    if (node.kind != BERTH_EXPR_LOAD)
        return list_loads(fn, node.a, out) && list_loads(fn, node.b, out) &&
               list_loads(fn, node.c, out);
    expr_list inside = {0};
    for (int i = 0; i < node.index_count; ++i)
        if (!list_loads(fn, berth_tfn_load_indices(fn, id)[i], &inside)) return false;
    if (inside.count) return false;
    for (uint32_t i = 0; i < out->count; ++i)
        if (berth_tfn_expr_equal(fn, out->data[i], id)) return true;
    berth_vec_push(fn->module->arena, out, id);
    return true;
}

static berth_ranges ranges_of(const transposition *t, const berth_nest *nest) {
    berth_ranges ranges = berth_ranges_collect(t->fn);
    ranges = berth_ranges_with(t->fn, &ranges, t->around);
    return berth_ranges_with(t->fn, &ranges, nest);
}

static int64_t load_stride(berth_tfn *fn, const berth_ranges *ranges, berth_expr load,
                           berth_var var, bool *out_linear) {
    const berth_expr_node node = fn->exprs.data[load];
    berth_linear at = berth_linear_access(fn, ranges, node.load.buf,
                                          berth_tfn_load_indices(fn, load), node.index_count);
    return berth_linear_stride(fn, &at, var, out_linear);
}

// Neighbouring loops become one wherever all accesses go on regularly, so that the loops of a block
// are long.
static void fuse_loops(berth_tfn *fn, berth_nest *nest, berth_ranges *ranges) {
    for (int i = 0; i < nest->count; ++i) nest->loops[i].kind = BERTH_LOOP_SERIAL;
    for (int i = nest->count - 2; i >= 0; --i) {
        const berth_stmt_node store = fn->stmts.data[nest->body];
        berth_access_list accesses = {0};
        berth_access result = {.buf = store.buf};
        result.at = berth_linear_access(fn, ranges, store.buf,
                                        berth_tfn_store_indices(fn, nest->body), store.index_count);
        berth_vec_push(fn->module->arena, &accesses.items, result);
        berth_cpu__collect_loads(fn, ranges, store.value, &accesses);
        if (berth_cpu__used_in_conditions(fn, store.value, nest->loops[i].var, 0) ||
            berth_cpu__used_in_conditions(fn, store.value, nest->loops[i + 1].var, 0) ||
            !berth_cpu__can_fuse(fn, nest, i, &accesses))
            continue;
        berth_status status = berth_schedule_fuse(fn, nest, i);
        if (status) {
            berth_decisions_refuse(fn, status);
            return;
        }
        *ranges = berth_ranges_with(fn, ranges, nest);
    }
}

// Loops over blocks of what is read become two, so that all places are linear in them.
static void split_blocks(berth_tfn *fn, berth_nest *nest, berth_ranges *ranges) {
    for (int i = nest->count - 1; i >= 0; --i) {
        berth_access_list loads = {0};
        int64_t block = 0;
        berth_cpu__collect_loads(fn, ranges, fn->stmts.data[nest->body].value, &loads);
        for (uint32_t k = 0; k < loads.items.count && !block; ++k)
            block = berth_linear_block(fn, &loads.items.data[k].at, nest->loops[i].var);
        if (block <= 1 || nest->loops[i].extent % block || nest->loops[i].extent == block) continue;
        berth_status status = berth_schedule_split(fn, nest, i, block);
        if (status) {
            berth_decisions_refuse(fn, status);
            return;
        }
        *ranges = berth_ranges_with(fn, ranges, nest);
    }
}

// The loop along which the results are next to each other; -1 = there is none.
static int results_along(berth_tfn *fn, const berth_ranges *ranges, const berth_nest *nest) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    berth_linear at = berth_linear_access(
        fn, ranges, store.buf, berth_tfn_store_indices(fn, nest->body), store.index_count);
    for (int i = 0; i < nest->count; ++i) {
        bool linear = false;
        if (berth_linear_stride(fn, &at, nest->loops[i].var, &linear) == 1 && linear &&
            nest->loops[i].extent > 1)
            return i;
    }
    return -1;
}

// Whether a value has nothing of a load but f32(load).
static bool only_as_float(const berth_tfn *fn, berth_expr id, berth_expr load) {
    const berth_expr_node *node = &fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_NONE:
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_VAR: return true;
    case BERTH_EXPR_LOAD: return !berth_tfn_expr_equal(fn, id, load);
    case BERTH_EXPR_CAST:
        if (node->dtype == BERTH_DTYPE_F32 && berth_tfn_expr_equal(fn, node->a, load)) return true;
        break;
    default: break;
    }
    return only_as_float(fn, node->a, load) && only_as_float(fn, node->b, load) &&
           only_as_float(fn, node->c, load);
}

// Whether registers of a block can hold what a load reads.
static bool fits_block(const transposition *t, berth_expr load) {
    berth_dtype dtype = (berth_dtype)t->fn->exprs.data[load].dtype;
    if (t->moves) return dtype == t->dtype;
    return dtype == BERTH_DTYPE_F32 ||
           (berth_dtype_has_vectors(dtype) &&
            only_as_float(t->fn, t->fn->stmts.data[t->nest.body].value, load));
}

// Whether one load goes along `across`, and all others along `along` or nowhere.
static bool loads_fit(transposition *t, const berth_ranges *ranges, const expr_list *loads) {
    berth_var along = t->nest.loops[t->along].var;
    berth_var across = t->nest.loops[t->across].var;
    t->load = 0;
    for (uint32_t i = 0; i < loads->count; ++i) {
        bool linear = false;
        bool linear_across = false;
        int64_t step = load_stride(t->fn, ranges, loads->data[i], along, &linear);
        int64_t step_across = load_stride(t->fn, ranges, loads->data[i], across, &linear_across);
        if (!linear || !linear_across) return false;
        if (step == 0 || step == 1) continue;
        if (step_across != 1 || t->load || !fits_block(t, loads->data[i])) return false;
        t->load = loads->data[i];
    }
    return t->load != 0;
}

// Whether conditions on indices (padding) decide over a value.
static bool is_guarded(const transposition *t, berth_expr value) {
    for (int i = 0; i < t->nest.count; ++i)
        if (berth_cpu__used_in_conditions(t->fn, value, t->nest.loops[i].var, 0)) return true;
    return false;
}

// Elements that a condition keeps inside are read under it only: blocks are where it holds, and what
// the others have in place of them is written by itself. False where conditions are deeper in the
// value.
static bool find_guard(transposition *t) {
    const berth_expr value = t->fn->stmts.data[t->nest.body].value;
    const berth_expr_node node = t->fn->exprs.data[value];
    if (!is_guarded(t, value)) return true;
    t->guarded = node.kind == BERTH_EXPR_SELECT && is_guarded(t, node.a);
    expr_list others = {0};
    return t->guarded && !is_guarded(t, node.b) && !is_guarded(t, node.c) &&
           list_loads(t->fn, node.a, &others) && list_loads(t->fn, node.c, &others) &&
           others.count == 0;
}

// Operands along `across` from its first on that lie in the same block of a layout, beyond the loop's end, too
// (channels that do not fill their last block: what follows them is memory). 0: not so.
static int64_t readable_across(transposition *t) {
    berth_tfn *fn = t->fn;
    const berth_expr_node load = fn->exprs.data[t->load];
    const berth_buf_info info = fn->bufs.data[load.load.buf];
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(fn->module, info.layout), info.rank, &layout);
    if (status || layout.block_count != 1) {
        berth_status_ignore(status);
        return 0;
    }
    int64_t block = layout.block_size[0], first = 0;
    berth_expr at = berth_tfn_load_indices(fn, t->load)[layout.block_dim[0]];
    berth_ranges ranges = ranges_of(t, &t->nest);
    berth_linear form = berth_linear_of(fn, &ranges, at);
    bool linear = false;
    if (form.count != 1 ||
        berth_linear_stride(fn, &form, t->nest.loops[t->across].var, &linear) != 1)
        return 0;
    first = form.constant % block;
    return linear && first >= 0 && first + t->nest.loops[t->across].extent <= block ? block - first
                                                                                    : 0;
}

static bool find_loops(transposition *t) {
    berth_tfn *fn = t->fn;
    berth_ranges ranges = ranges_of(t, &t->nest);
    split_blocks(fn, &t->nest, &ranges);
    fuse_loops(fn, &t->nest, &ranges);
    const berth_stmt_node store = fn->stmts.data[t->nest.body];
    expr_list loads = {0};
    t->along = results_along(fn, &ranges, &t->nest);
    if (t->along < 0 || !list_loads(fn, store.value, &loads)) return false;
    t->padded = berth_cpu__used_in_conditions(fn, store.value, t->nest.loops[t->along].var, 0);
    for (t->across = 0; t->across < t->nest.count; ++t->across)
        if (t->across != t->along && loads_fit(t, &ranges, &loads)) return find_guard(t);
    return false;
}

// Whether the value reads what may lie under the results (its own element of them, where results lie over operands).
static bool reads_results(const transposition *t) {
    const berth_stmt_node store = t->fn->stmts.data[t->nest.body];
    expr_list loads = {0};
    list_loads(t->fn, store.value, &loads);
    for (uint32_t i = 0; i < loads.count; ++i) {
        berth_buf buf = t->fn->exprs.data[loads.data[i]].load.buf;
        if (buf == store.buf ||
            (t->fn->bufs.data[buf].may_alias && t->fn->bufs.data[store.buf].may_alias))
            return true;
    }
    return false;
}

// ---- building
// -------------------------------------------------------------------------------------------------------

static bool serves(const berth_cpu_facts *facts, int64_t lanes) {
    berth_intrinsic low = lanes == 16 ? BERTH_INTRINSIC_ZIP_LOW_X16 : BERTH_INTRINSIC_ZIP_LOW_X8;
    return facts->target && (lanes == 8 || lanes == 16) && lanes <= facts->lanes &&
           berth_intrinsic_serves(low, facts->target);
}

// Whether there are blocks of `lanes` rows: registers, and a function of the printer where elements are
// moved.
static bool has_blocks(const transposition *t, int64_t lanes) {
    size_t size_bytes = berth_dtype_size_bytes(t->dtype);
    if (!t->moves) return serves(t->facts, lanes);
    return serves(t->facts, BERTH_CPU_LEAST_LANES) &&
           lanes * (int64_t)size_bytes <= t->facts->lanes * (int64_t)sizeof(float) &&
           berth_transpose_block_serves(lanes, size_bytes);
}

static berth_expr define(berth_tfn *fn, const char *name, berth_expr value, uint16_t lanes,
                         berth_stmt *out_let) {
    berth_var var = berth_tfn_let_var(fn, name, BERTH_DTYPE_F32, lanes, false);
    *out_let = berth_tfn_let(fn, var, value);
    return berth_tfn_var_ref(fn, var);
}

static berth_expr replace_block(berth_tfn *fn, berth_expr load, void *user) {
    const transposition *t = user;
    if (!berth_tfn_expr_equal(fn, load, t->load)) return 0;
    return berth_tfn_load(fn, t->block, NULL, 0);
}

// A block of `lanes` x `lanes`, of which `columns` are stored: `along` and `across` count it from 0.
static berth_stmt block_of_registers(transposition *t, berth_expr load, berth_stmt store,
                                     berth_var along, berth_var across, uint16_t lanes,
                                     int64_t columns) {
    berth_tfn *fn = t->fn;
    berth_stmt items[most_lanes * (2 + most_rounds)];
    berth_expr rows[most_lanes];
    uint32_t n = 0;
    for (int i = 0; i < lanes; ++i) {
        berth_expr row = berth_replace_var(fn, load, along, berth_tfn_index(fn, i));
        row = berth_vectorize_expr(fn, row, across, lanes, BERTH_NONE, 0);
        if (!row) return 0;
        row = berth_tfn_cast(fn, BERTH_DTYPE_F32, row);
        rows[i] = define(fn, "row", row, lanes, &items[n++]);
    }
    for (int round = 1; round < lanes; round *= 2) {
        berth_expr next[most_lanes];
        for (int i = 0; i < lanes; ++i) {
            berth_intrinsic zip =
                lanes == 16 ? (i % 2 ? BERTH_INTRINSIC_ZIP_HIGH_X16 : BERTH_INTRINSIC_ZIP_LOW_X16)
                            : (i % 2 ? BERTH_INTRINSIC_ZIP_HIGH_X8 : BERTH_INTRINSIC_ZIP_LOW_X8);
            berth_expr a = rows[i / 2];
            berth_expr value = berth_tfn_intrinsic(fn, zip, a, a, rows[i / 2 + lanes / 2]);
            next[i] = define(fn, "zip", value, lanes, &items[n++]);
        }
        memcpy(rows, next, sizeof(rows));
    }
    for (int i = 0; i < columns; ++i) {
        berth_stmt column = berth_replace_var_stmt(fn, store, across, berth_tfn_index(fn, i));
        items[n] = berth_vectorize_store(fn, column, along, lanes, t->block, rows[i]);
        if (!items[n++]) return 0;
    }
    return berth_tfn_seq(fn, items, n);
}

// Loops [along, across] over a part of the nest, plain.
static berth_stmt plain_loops(transposition *t, berth_nest part) {
    if (part.loops[0].extent <= 0 || part.loops[1].extent <= 0) return 0;
    return berth_nest_emit(t->fn, &part);
}

static berth_stmt blocks(transposition *t, berth_nest part, int64_t lanes);

// Whole blocks: [along, across] with extents that `lanes` divides, or an extent across that is less and whose
// block can be read.
static berth_stmt whole_blocks(transposition *t, berth_nest part, int64_t lanes) {
    berth_tfn *fn = t->fn;
    int64_t columns = part.loops[1].extent < lanes ? part.loops[1].extent : lanes;
    berth_status status = BERTH_OK;
    int inner = 0;
    if (part.loops[1].extent > lanes) {
        status = berth_schedule_split(fn, &part, 1, lanes);
        inner = 1;
    }
    int across = 1 + inner;
    int along = 0;
    if (!status && part.loops[0].extent > lanes) {
        status = berth_schedule_split(fn, &part, 0, lanes);
        along = 1;
        across++;
    }
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    // loops: [along outer], along, [across outer], across
    if (t->moves) {
        berth_nest_loop block[2] = {part.loops[along], part.loops[across]};
        if (along && inner) part.loops[1] = part.loops[2];
        if (!along && inner) part.loops[0] = part.loops[1];
        for (int i = 0; i < along + inner; ++i) part.loops[i].kind = BERTH_LOOP_SERIAL;
        for (int i = 0; i < 2; ++i) {
            block[i].kind = BERTH_LOOP_UNROLL;
            part.loops[along + inner + i] = block[i];
        }
        return berth_nest_emit(fn, &part);
    }
    berth_stmt store = part.body;
    berth_var moved[2] = {part.loops[along].var, part.loops[across].var};
    const berth_stmt_node node = fn->stmts.data[store];
    expr_list loads = {0};
    list_loads(fn, node.value, &loads);
    berth_nest outer = {0};
    if (along) outer.loops[outer.count++] = part.loops[0];
    if (inner) outer.loops[outer.count++] = part.loops[along + 1];
    for (int i = 0; i < outer.count; ++i) outer.loops[i].kind = BERTH_LOOP_SERIAL;
    // The load of this part is the one that moves by one along `across` only.
    berth_ranges ranges = ranges_of(t, &part);
    transposition here = *t;
    here.load = 0;
    for (uint32_t i = 0; i < loads.count; ++i) {
        bool linear = false;
        int64_t step = load_stride(fn, &ranges, loads.data[i], moved[0], &linear);
        if (!linear || (step != 0 && step != 1)) here.load = loads.data[i];
    }
    if (!here.load) return 0;
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
    berth_expr value = berth_replace_loads(fn, node.value, replace_block, &here);
    berth_stmt with_block = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    outer.body = block_of_registers(&here, here.load, with_block, moved[0], moved[1],
                                    (uint16_t)lanes, columns);
    return outer.body && outer.count ? berth_nest_emit(fn, &outer) : outer.body;
}

// What blocks of `lanes` leave of loop `loop`: blocks that begin before its end. Where elements may not be computed
// again, smaller ones; one by one where forms are to be shared, or every extent has its own.
static berth_stmt rest_of_blocks(transposition *t, berth_nest part, int loop, int64_t lanes) {
    bool whole = part.loops[0].extent % BERTH_CPU_LEAST_LANES == 0 &&
                 part.loops[1].extent % BERTH_CPU_LEAST_LANES == 0;
    if (t->repeats && part.loops[loop].extent >= lanes / least_repeated) {
        berth_nest_shift(t->fn, &part, loop, part.loops[loop].extent - lanes);
        part.loops[loop].extent = lanes;
        return blocks(t, part, lanes);
    }
    if (t->facts->any_size && !whole) return plain_loops(t, part);
    return blocks(t, part, lanes / 2);
}

// [along, across] in blocks of `lanes`, what is left in smaller ones, and at last one by one.
static berth_stmt blocks(transposition *t, berth_nest part, int64_t lanes) {
    berth_tfn *fn = t->fn;
    int64_t across = part.loops[1].extent > t->readable ? part.loops[1].extent : t->readable;
    while (lanes >= t->least_lanes &&
           (part.loops[0].extent < lanes || across < lanes || !has_blocks(t, lanes)))
        lanes /= 2;
    if (lanes < t->least_lanes) return plain_loops(t, part);
    berth_nest below = {0};
    berth_nest beside = {0};
    berth_status status = BERTH_OK;
    int64_t whole[2] = {part.loops[0].extent / lanes * lanes, part.loops[1].extent / lanes * lanes};
    if (whole[0] < part.loops[0].extent)
        status = berth_schedule_peel(fn, &part, 0, whole[0], &below);
    if (!status && whole[1] > 0 && whole[1] < part.loops[1].extent)
        status = berth_schedule_peel(fn, &part, 1, whole[1], &beside);
    berth_stmt items[3];
    uint32_t n = 0;
    if (!status) items[n++] = whole_blocks(t, part, lanes);
    bool readable = t->readable >= whole[1] + lanes;  // beside the whole blocks
    if (!status && beside.count)
        items[n++] =
            readable ? whole_blocks(t, beside, lanes) : rest_of_blocks(t, beside, 1, lanes);
    if (status || !items[0] || !items[n - 1]) {
        berth_decisions_refuse(fn, status);
        t->failed = true;
        return 0;
    }
    if (below.count) items[n++] = rest_of_blocks(t, below, 0, lanes);
    return n == 1 ? items[0] : berth_tfn_seq(fn, items, n);
}

// Neighbouring operands that are taken together: whole lines of the cache, pairs of them where operands and results
// do not stay in the second level, and several where all of the block fits into half of the first one.
static int64_t group_width(const transposition *t, const berth_nest *pair) {
    int64_t size_bytes =
        (int64_t)berth_dtype_size_bytes((berth_dtype)t->fn->exprs.data[t->load].dtype);
    int64_t width_bytes = line_bytes;
    if (t->facts->any_size) return 4 * width_bytes / size_bytes;
    if (2 * size_bytes * pair->loops[0].extent * pair->loops[1].extent > t->facts->l2_bytes)
        width_bytes = pair_bytes;
    while (width_bytes < most_width_bytes &&
           2 * width_bytes * pair->loops[0].extent <= t->facts->l1_bytes / 2)
        width_bytes *= 2;
    return width_bytes / size_bytes;
}

// Loops around the block: in parallel where nothing else is around them.
static berth_loop_kind outer_kind(const transposition *t) {
    return t->around->count ? BERTH_LOOP_SERIAL : BERTH_LOOP_PARALLEL;
}

// Groups of neighbouring operands in parallel; the last group may be a shorter one.
static berth_stmt groups(transposition *t, berth_nest pair, int64_t lanes, berth_nest *outer) {
    berth_tfn *fn = t->fn;
    int64_t width = group_width(t, &pair);
    while (lanes > t->least_lanes && (pair.loops[0].extent < lanes || !has_blocks(t, lanes)))
        lanes /= 2;
    if (t->facts->any_size && t->moves && has_blocks(t, lanes)) {
        berth_stmt made = berth_cpu__blocks_of_sizes(fn, &pair, lanes, width, outer_kind(t), outer);
        if (made) return made;
    }
    int64_t extent = pair.loops[1].extent;
    int64_t full = extent / width;
    if (t->repeats && extent % width % lanes) full--;  // the last one and the rest are one group
    if (full < 1 || extent == width) return blocks(t, pair, lanes);
    berth_nest rest = {0};
    berth_status status = BERTH_OK;
    if (full * width < extent) status = berth_schedule_peel(fn, &pair, 1, full * width, &rest);
    if (!status && full > 1) status = berth_schedule_split(fn, &pair, 1, width);
    if (status) {
        berth_decisions_refuse(fn, status);
        t->failed = true;
        return 0;
    }
    berth_var group = full > 1 ? pair.loops[1].var : berth_tfn_var(fn, "group");
    if (full > 1) {  // [along, group, across]
        pair.loops[1] = pair.loops[2];
        pair.count = 2;
    }
    berth_stmt whole = blocks(t, pair, lanes);
    if (t->failed) return 0;
    outer->loops[outer->count++] = (berth_nest_loop){group, full + (rest.count > 0), outer_kind(t)};
    if (!rest.count) return whole;
    berth_stmt last = blocks(t, rest, lanes);
    if (t->failed) return 0;
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, group),
                                           berth_tfn_index(fn, full));
    return berth_tfn_if(fn, is_whole, whole, last);
}

// A part of the nest without blocks: [across, along], results next to each other innermost.
static berth_stmt fill(transposition *t, berth_nest part) {
    berth_nest_loop along = part.loops[0];
    if (along.extent <= 0 || part.loops[1].extent <= 0) return 0;
    part.loops[0] = part.loops[1];
    part.loops[1] = along;
    part.loops[1].kind = BERTH_LOOP_SIMD;
    return berth_nest_emit(t->fn, &part);
}

static void simplify(transposition *t, berth_nest *part, const berth_ranges *outer) {
    berth_tfn *fn = t->fn;
    berth_ranges ranges = berth_ranges_with(fn, outer, part);
    const berth_stmt_node node = fn->stmts.data[part->body];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, part->body), node.index_count * sizeof(berth_expr));
    part->body = berth_tfn_store(fn, node.buf, indices, node.index_count,
                                 berth_tfn_simplify(fn, node.value, &ranges));
}

// One side of the choice that the value is.
static berth_nest side(transposition *t, berth_nest part, berth_expr value) {
    const berth_stmt_node node = t->fn->stmts.data[part.body];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(t->fn, part.body),
           node.index_count * sizeof(berth_expr));
    part.body = berth_tfn_store(t->fn, node.buf, indices, node.index_count, value);
    return part;
}

// Blocks where the condition holds whatever `across` is, under what is left of it.
static berth_stmt guarded_middle(transposition *t, berth_nest part, int64_t lanes) {
    const berth_stmt_node store = t->fn->stmts.data[part.body];
    const berth_expr_node value = t->fn->exprs.data[store.value];
    bool choice = value.kind == BERTH_EXPR_SELECT && is_guarded(t, value.a);
    if (!choice) return blocks(t, part, lanes);
    t->failed |= berth_tfn_uses_var(t->fn, value.a, part.loops[0].var) ||
                 berth_tfn_uses_var(t->fn, value.a, part.loops[1].var);
    if (t->failed) return 0;
    berth_stmt inside = blocks(t, side(t, part, value.b), lanes);
    return inside ? berth_tfn_if(t->fn, value.a, inside, fill(t, side(t, part, value.c))) : 0;
}

// A row with a border along loop `loop` of the pair, in three parts.
static berth_stmt guarded_blocks(transposition *t, berth_nest pair, int loop, int64_t lanes) {
    berth_tfn *fn = t->fn;
    berth_ranges ranges = ranges_of(t, &t->nest);
    int64_t low = 0;
    int64_t high = pair.loops[loop].extent - 1;
    berth_cpu__narrow(fn, &ranges, fn->stmts.data[pair.body].value, pair.loops[loop].var, &low,
                      &high);
    if (high - low + 1 < BERTH_CPU_LEAST_LANES) return 0;
    berth_nest middle = {0};
    berth_nest last = {0};
    berth_status status = berth_schedule_peel(fn, &pair, loop, low, &middle);
    if (!status) status = berth_schedule_peel(fn, &middle, loop, high - low + 1, &last);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_nest *const parts[] = {&pair, &middle, &last};
    berth_stmt items[3];
    uint32_t n = 0;
    for (int i = 0; i < 3; ++i) {
        if (parts[i]->loops[loop].extent <= 0) continue;
        simplify(t, parts[i], &ranges);
        if (parts[i] != &middle)
            items[n] = fill(t, *parts[i]);
        else if (loop == 0 && is_guarded(t, fn->stmts.data[middle.body].value))
            items[n] = guarded_blocks(t, middle, 1, lanes);
        else
            items[n] = guarded_middle(t, middle, lanes);
        if (!items[n++]) return 0;
    }
    return n == 1 ? items[0] : berth_tfn_seq(fn, items, n);
}

berth_stmt berth_cpu__transposed(berth_tfn *fn, const berth_nest *nest, const berth_nest *around,
                                 const berth_cpu_facts *facts) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    berth_dtype dtype = fn->bufs.data[store.buf].dtype;
    const berth_expr_node value = fn->exprs.data[store.value];
    bool choice = value.kind == BERTH_EXPR_SELECT;  // in front of what lies around, if any
    bool only_moved = berth_tfn_moved(fn, dtype, choice ? value.b : store.value) != 0;
    bool moves = dtype != BERTH_DTYPE_F32 && only_moved;
    if (!only_moved && !berth_dtype_has_vectors(dtype)) return 0;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    transposition t = {.fn = fn,
                       .facts = facts,
                       .nest = *nest,
                       .around = around,
                       .dtype = dtype,
                       .moves = moves,
                       .least_lanes = berth_dtype_size_bytes(dtype) > sizeof(float)
                                          ? BERTH_CPU_LEAST_LANES / 2
                                          : BERTH_CPU_LEAST_LANES};
    if (!find_loops(&t) || (moves && choice && !t.guarded) ||
        t.nest.loops[t.along].extent < t.least_lanes)
        return 0;
    if (!moves && !t.guarded) t.readable = readable_across(&t);
    t.moves |= only_moved && choice == t.guarded && !t.readable;
    t.repeats = !facts->any_size && !reads_results(&t);
    if (t.nest.loops[t.across].extent < (t.readable ? 2 : t.least_lanes)) return 0;
    if (!t.moves)
        t.block = berth_tfn_buffer(fn, "block", BERTH_DTYPE_F32, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_nest outer = {0};
    berth_nest pair = {.count = 2, .body = t.nest.body};
    pair.loops[0] = t.nest.loops[t.along];
    pair.loops[1] = t.nest.loops[t.across];
    pair.loops[0].kind = pair.loops[1].kind = BERTH_LOOP_SERIAL;
    for (int i = 0; i < t.nest.count; ++i) {
        if (i == t.along || i == t.across) continue;
        outer.loops[outer.count] = t.nest.loops[i];
        outer.loops[outer.count++].kind = outer_kind(&t);
    }
    int64_t lanes = t.moves ? most_lanes : facts->lanes;
    outer.body = t.guarded ? guarded_blocks(&t, pair, t.padded ? 0 : 1, lanes)
                           : groups(&t, pair, lanes, &outer);
    if (t.failed || !outer.body) return 0;
    return outer.count ? berth_nest_emit(fn, &outer) : outer.body;
}
