// Serial loops inside a nest (sums, maxima and elementwise passes along a row: softmax,
// normalisations, reductions over the last dimension) in vectors: every lane accumulates the
// elements that fall to it, and the lanes are put together after the loop. Sums are taken in
// another order from here on, which is what a reduction allows. Products inside a nest (the steps of
// recurrent cells) become register tiles, as products that are nests.
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

enum { max_stores = 8, most_parts = 4, least_rest_lanes = 4 };

typedef struct row_loop {
    berth_tfn *fn;
    uint16_t lanes;
    berth_stmt stores[max_stores];
    int store_count;
    berth_buf acc;         // register that the loop accumulates in; BERTH_NONE = none
    berth_binary combine;  // ADD, MUL, MIN or MAX
    berth_expr instead;    // of NaN, which the loop leaves out; 0 = it passes them on
    int64_t repeated;      // lanes whose elements a vector before has had
} row_loop;

bool berth_cpu__reads(const berth_tfn *fn, berth_expr id, berth_buf buf) {
    if (!id) return false;
    const berth_expr_node *node = &fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_VAR: return false;
    case BERTH_EXPR_LOAD:
        if (node->load.buf == buf) return true;
        for (int i = 0; i < node->index_count; ++i)
            if (berth_cpu__reads(fn, berth_tfn_load_indices(fn, id)[i], buf)) return true;
        return false;
    default:
        return berth_cpu__reads(fn, node->a, buf) || berth_cpu__reads(fn, node->b, buf) ||
               berth_cpu__reads(fn, node->c, buf);
    }
}

static bool is_load_of(const berth_tfn *fn, berth_expr id, berth_buf buf) {
    const berth_expr_node *node = &fn->exprs.data[id];
    return node->kind == BERTH_EXPR_LOAD && node->load.buf == buf;
}

bool berth_cpu__find_combine(const berth_tfn *fn, berth_expr value, berth_buf acc,
                             berth_binary *out) {
    const berth_expr_node *node = &fn->exprs.data[value];
    *out = BERTH_BINARY_ADD;
    if (node->kind == BERTH_EXPR_FMA)
        return is_load_of(fn, node->c, acc) && !berth_cpu__reads(fn, node->a, acc) &&
               !berth_cpu__reads(fn, node->b, acc);
    bool associative = node->kind == BERTH_EXPR_BINARY &&
                       (node->op == BERTH_BINARY_ADD || node->op == BERTH_BINARY_MUL ||
                        node->op == BERTH_BINARY_MIN || node->op == BERTH_BINARY_MAX);
    if (!associative) return false;
    *out = (berth_binary)node->op;
    bool first = is_load_of(fn, node->a, acc);
    berth_expr other = first ? node->b : node->a;
    return (first || is_load_of(fn, node->b, acc)) && !berth_cpu__reads(fn, other, acc);
}

berth_expr berth_cpu__neutral(berth_tfn *fn, berth_binary combine, berth_dtype dtype,
                              berth_expr init) {
    if (combine == BERTH_BINARY_ADD) return berth_tfn_const(fn, dtype, 0);
    return combine == BERTH_BINARY_MUL ? berth_tfn_const(fn, dtype, 1) : init;
}

// What the loop writes to memory it reads only where it has just written it.
static bool same_element(const berth_tfn *fn, berth_expr id, berth_stmt store) {
    if (!id) return true;
    const berth_expr_node *node = &fn->exprs.data[id];
    const berth_stmt_node *written = &fn->stmts.data[store];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_VAR: return true;
    case BERTH_EXPR_LOAD:
        for (int i = 0; i < node->index_count; ++i) {
            berth_expr index = berth_tfn_load_indices(fn, id)[i];
            if (!same_element(fn, index, store)) return false;
            if (node->load.buf == written->buf &&
                !berth_tfn_expr_equal(fn, index, berth_tfn_store_indices(fn, store)[i]))
                return false;
        }
        return true;
    default:
        return same_element(fn, node->a, store) && same_element(fn, node->b, store) &&
               same_element(fn, node->c, store);
    }
}

// The constant that a value has in place of NaN; 0: it is no such choice.
static berth_expr instead_of_nan(const berth_tfn *fn, berth_expr value) {
    const berth_expr_node *node = &fn->exprs.data[value];
    if (node->kind != BERTH_EXPR_SELECT) return 0;
    const berth_expr_node *asked = &fn->exprs.data[node->a];
    bool is_nan = asked->kind == BERTH_EXPR_UNARY && asked->op == BERTH_UNARY_IS_NAN;
    return is_nan && berth_tfn_expr_equal(fn, asked->a, node->c) &&
                   fn->exprs.data[node->b].kind == BERTH_EXPR_FLOAT
               ? node->b
               : 0;
}

static bool take_store(row_loop *r, berth_stmt id) {
    const berth_stmt_node node = r->fn->stmts.data[id];
    if (node.kind != BERTH_STMT_STORE || r->store_count == max_stores) return false;
    const berth_buf_info *info = &r->fn->bufs.data[node.buf];
    r->stores[r->store_count++] = id;
    bool half = info->dtype == BERTH_DTYPE_F16 || info->dtype == BERTH_DTYPE_BF16;
    if (info->lanes > 1) return false;
    if (info->scope != BERTH_SCOPE_REGISTER) return half || info->dtype == BERTH_DTYPE_F32;
    if (info->dtype != BERTH_DTYPE_F32) return false;
    if (info->rank != 0 || r->acc != BERTH_NONE) return false;
    r->acc = node.buf;
    if (!berth_cpu__find_combine(r->fn, node.value, r->acc, &r->combine)) return false;
    if (r->combine == BERTH_BINARY_MIN || r->combine == BERTH_BINARY_MAX)
        r->instead = instead_of_nan(r->fn, r->fn->exprs.data[node.value].b);
    return true;
}

// Lanes next to each other in memory, or all at one element.
static bool is_contiguous(const row_loop *r, berth_var var) {
    berth_ranges ranges = berth_ranges_collect(r->fn);
    for (int i = 0; i < r->store_count; ++i) {
        bool into_acc = r->fn->stmts.data[r->stores[i]].buf == r->acc;
        if (!(into_acc ? berth_loads_are_contiguous(r->fn, &ranges,
                                                    r->fn->stmts.data[r->stores[i]].value, var)
                       : berth_store_is_contiguous(r->fn, &ranges, r->stores[i], var)))
            return false;
    }
    return true;
}

// The loop's body as stores that may run in lanes.
static bool parse(row_loop *r, berth_var var, berth_stmt body) {
    const berth_stmt_node node = r->fn->stmts.data[body];
    if (node.kind == BERTH_STMT_STORE) {
        if (!take_store(r, body)) return false;
    } else if (node.kind != BERTH_STMT_SEQ) {
        return false;
    }
    for (uint32_t i = 0; node.kind == BERTH_STMT_SEQ && i < node.count; ++i)
        if (!take_store(r, r->fn->lists.data[node.first + i])) return false;
    for (int s = 0; s < r->store_count; ++s)
        for (int i = 0; i < r->store_count; ++i) {
            bool into_acc = r->fn->stmts.data[r->stores[s]].buf == r->acc;
            berth_expr value = r->fn->stmts.data[r->stores[i]].value;
            if (into_acc ? i != s && berth_cpu__reads(r->fn, value, r->acc)
                         : !same_element(r->fn, value, r->stores[s]))
                return false;
        }
    return r->store_count > 0 && is_contiguous(r, var);
}

// The sum as it was in the lanes that are repeated. A maximum may have their elements again.
static berth_expr without_repeated(const row_loop *r, berth_expr value, berth_buf parts,
                                   berth_expr part) {
    berth_tfn *fn = r->fn;
    if (!r->repeated || r->combine == BERTH_BINARY_MIN || r->combine == BERTH_BINARY_MAX)
        return value;
    berth_expr lane = berth_tfn_from_index(fn, BERTH_DTYPE_I32,
                                           berth_tfn_ramp(fn, berth_tfn_index(fn, 0), r->lanes));
    berth_expr first = berth_tfn_const(fn, BERTH_DTYPE_I32, (double)r->repeated);
    berth_expr had =
        berth_tfn_binary(fn, BERTH_BINARY_LT, lane, berth_tfn_broadcast(fn, first, r->lanes));
    return berth_tfn_select(fn, had, berth_tfn_load(fn, parts, &part, 1), value);
}

// The stores with `var` in lanes; the accumulator becomes element `part` of `parts`. 0: no such
// form.
static berth_stmt widen(const row_loop *r, berth_stmt body, berth_var var, berth_buf parts,
                        int64_t part) {
    berth_tfn *fn = r->fn;
    const berth_stmt_node seq = fn->stmts.data[body];
    berth_stmt wide[max_stores];
    berth_var marker = berth_tfn_let_var(fn, "acc", BERTH_DTYPE_F32, r->lanes, false);
    berth_expr at = berth_tfn_index(fn, part);
    for (int i = 0; i < r->store_count; ++i) {
        berth_stmt id = seq.kind == BERTH_STMT_SEQ ? fn->lists.data[seq.first + (uint32_t)i] : body;
        const berth_stmt_node node = fn->stmts.data[id];
        if (node.buf != r->acc) {
            wide[i] = berth_vectorize_store(fn, id, var, r->lanes, BERTH_NONE, 0);
        } else {
            berth_expr value = berth_vectorize_expr(fn, node.value, var, r->lanes, r->acc,
                                                    berth_tfn_var_ref(fn, marker));
            if (!value) return 0;
            value = berth_replace_var(fn, value, marker, berth_tfn_load(fn, parts, &at, 1));
            wide[i] = berth_tfn_store(fn, parts, &at, 1, without_repeated(r, value, parts, at));
        }
        if (!wide[i]) return 0;
    }
    return berth_tfn_seq(fn, wide, (uint32_t)r->store_count);
}

// Two partial results as one.
static berth_expr combine(const row_loop *r, berth_expr a, berth_expr b) {
    berth_tfn *fn = r->fn;
    uint16_t lanes = fn->exprs.data[b].lanes;
    if (r->instead) {
        berth_expr instead = lanes > 1 ? berth_tfn_broadcast(fn, r->instead, lanes) : r->instead;
        b = berth_tfn_select(fn, berth_tfn_unary(fn, BERTH_UNARY_IS_NAN, b), instead, b);
    }
    return berth_tfn_binary(fn, r->combine, a, b);
}

// Both halves of the first `lanes` lanes of `spill` combined, in its lower half.
static berth_stmt halve(const row_loop *r, berth_buf spill, uint16_t lanes) {
    berth_tfn *fn = r->fn;
    berth_expr low = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), lanes / 2);
    berth_expr high = berth_tfn_ramp(fn, berth_tfn_index(fn, lanes / 2), lanes / 2);
    berth_expr both =
        combine(r, berth_tfn_load(fn, spill, &low, 1), berth_tfn_load(fn, spill, &high, 1));
    return berth_tfn_store(fn, spill, &low, 1, both);
}

// acc = acc combined with every lane of all parts: by halves down to `few` lanes, as a tree.
static berth_stmt gather_lanes(const row_loop *r, berth_buf parts, int64_t count, berth_buf spill) {
    enum { few = 4, most_halvings = 6 };
    berth_tfn *fn = r->fn;
    berth_expr zero = berth_tfn_index(fn, 0);
    berth_expr all = berth_tfn_ramp(fn, zero, r->lanes);
    berth_expr sums = berth_tfn_load(fn, parts, &zero, 1);
    for (int64_t i = 1; i < count; ++i) {
        berth_expr at = berth_tfn_index(fn, i);
        sums = combine(r, sums, berth_tfn_load(fn, parts, &at, 1));
    }
    berth_stmt items[3 + most_halvings];
    uint32_t n = 0;
    items[n++] = berth_tfn_alloc(fn, spill);
    items[n++] = berth_tfn_store(fn, spill, &all, 1, sums);
    uint16_t lanes = r->lanes;
    for (; lanes > few && lanes % 2 == 0 && n < 2 + most_halvings; lanes /= 2)
        items[n++] = halve(r, spill, lanes);
    berth_expr pair[2] = {berth_tfn_load(fn, r->acc, NULL, 0), 0};
    for (uint16_t l = 0; l < lanes; ++l) {
        berth_expr at = berth_tfn_index(fn, l);
        berth_expr lane = berth_tfn_load(fn, spill, &at, 1);
        berth_expr *side = &pair[l % 2];
        *side = *side ? combine(r, *side, lane) : lane;
    }
    berth_expr sum = pair[1] ? combine(r, pair[0], pair[1]) : pair[0];
    items[n++] = berth_tfn_store(fn, r->acc, NULL, 0, sum);
    return berth_tfn_seq(fn, items, n);
}

// A loop of `count` vectors in each iteration, each with a part of its own.
static berth_stmt widen_vectors(const row_loop *r, berth_nest nest, int64_t count,
                                berth_buf parts) {
    berth_tfn *fn = r->fn;
    berth_status status = berth_schedule_split(fn, &nest, 0, count * r->lanes);
    if (!status) status = berth_schedule_split(fn, &nest, 1, r->lanes);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_stmt vectors[most_parts];
    for (int64_t i = 0; i < count; ++i) {
        berth_stmt body =
            berth_replace_var_stmt(fn, nest.body, nest.loops[1].var, berth_tfn_index(fn, i));
        vectors[i] = widen(r, body, nest.loops[2].var, parts, i);
        if (!vectors[i]) return 0;
    }
    nest.body = berth_tfn_seq(fn, vectors, (uint32_t)count);
    nest.count = 1;
    return berth_nest_emit(fn, &nest);
}

// The neutral value in all parts.
static berth_stmt clear_parts(const row_loop *r, berth_buf parts, int64_t count) {
    berth_tfn *fn = r->fn;
    berth_stmt items[most_parts];
    berth_expr first =
        berth_cpu__neutral(fn, r->combine, BERTH_DTYPE_F32, berth_tfn_load(fn, r->acc, NULL, 0));
    for (int64_t i = 0; i < count; ++i) {
        berth_expr at = berth_tfn_index(fn, i);
        items[i] = berth_tfn_store(fn, parts, &at, 1, berth_tfn_broadcast(fn, first, r->lanes));
    }
    return berth_tfn_seq(fn, items, (uint32_t)count);
}

static berth_stmt widen_loop(berth_tfn *fn, berth_stmt id, int64_t extent, uint16_t lanes,
                             const berth_nest *around);

// What is left after whole vectors of `lanes`, in narrower ones.
static berth_stmt widen_rest(berth_tfn *fn, const berth_nest *rest, uint16_t lanes) {
    int64_t extent = rest->loops[0].extent;
    berth_stmt loop = berth_nest_emit(fn, rest);
    while (lanes > extent) lanes /= 2;
    if (berth_tfn_loop_varies(fn, rest->loops[0].var)) return loop;  // the same form for every rest
    return lanes >= least_rest_lanes ? widen_loop(fn, loop, extent, lanes, NULL) : loop;
}

// Whether elements may be computed twice: what they are computed from is not written on the way.
static bool may_repeat(const row_loop *r) {
    const berth_tfn *fn = r->fn;
    for (int s = 0; s < r->store_count; ++s) {
        const berth_stmt_node *written = &fn->stmts.data[r->stores[s]];
        if (written->buf == r->acc) continue;
        for (int i = 0; i < r->store_count; ++i) {
            berth_expr value = fn->stmts.data[r->stores[i]].value;
            if (i <= s && berth_cpu__reads(fn, value, written->buf)) return false;
            for (berth_buf b = 0; fn->bufs.data[written->buf].may_alias && b < fn->bufs.count; ++b)
                if (fn->bufs.data[b].may_alias && berth_cpu__reads(fn, value, b)) return false;
        }
    }
    return true;
}

// What is left after whole vectors as one that begins before their end; 0: it has no such form.
static berth_stmt overlapping_rest(const row_loop *r, berth_nest rest, berth_buf parts) {
    row_loop again = *r;
    again.repeated = r->lanes - rest.loops[0].extent;
    if (berth_tfn_loop_varies(r->fn, rest.loops[0].var) || !may_repeat(r)) return 0;
    berth_nest_shift(r->fn, &rest, 0, -again.repeated);
    rest.loops[0].extent = r->lanes;
    return widen_vectors(&again, rest, 1, parts);
}

// The parts of a sum, all loops that add to them, and the parts put together.
static berth_stmt around_parts(const row_loop *r, berth_buf parts, int64_t count,
                               berth_stmt loops) {
    berth_tfn *fn = r->fn;
    int64_t width = r->lanes;
    if (r->acc == BERTH_NONE) return loops;
    berth_buf spill =
        berth_tfn_buffer(fn, "lanes", BERTH_DTYPE_F32, 1, &width, BERTH_SCOPE_PRIVATE);
    berth_stmt items[] = {berth_tfn_alloc(fn, parts), clear_parts(r, parts, count), loops,
                          gather_lanes(r, parts, count, spill)};
    return berth_tfn_seq(fn, items, 4);
}

// A loop as vectors, several at once where it sums and is long (one sum waits for the one before
// it), then one by one, and a rest; the loop itself where that cannot be.
//   around: loops around it that hold nothing else, which a sum's parts outlive; NULL = none
static berth_stmt widen_loop(berth_tfn *fn, berth_stmt id, int64_t extent, uint16_t lanes,
                             const berth_nest *around) {
    const berth_stmt_node node = fn->stmts.data[id];
    row_loop r = {.fn = fn, .lanes = lanes, .acc = BERTH_NONE};
    if (extent < lanes || !parse(&r, node.var, node.body)) return id;
    if (around && r.acc == BERTH_NONE) return id;
    // What stores its values, too (exponentials on the way to their sum), does not wait for the sum; so
    // few vectors do where a function is made again for every size.
    const bool varies = berth_tfn_loop_varies(fn, node.var);
    bool waits = r.acc != BERTH_NONE && !(varies && r.store_count > 1);
    int64_t count = waits && extent >= 2 * most_parts * lanes ? most_parts : 1;
    berth_nest at_once = {
        .loops = {{node.var, extent, BERTH_LOOP_SERIAL}}, .count = 1, .body = node.body};
    berth_nest single = {0};
    berth_nest rest = {0};
    berth_status status = BERTH_OK;
    int64_t in_vectors = extent / lanes * lanes;
    int64_t together = extent / (count * lanes) * count * lanes;
    // Where other sizes are to have the same form, these loops may have no iteration.
    if (in_vectors < extent || varies)
        status = berth_schedule_peel(fn, &at_once, 0, in_vectors, &rest);
    if (!status && (together < in_vectors || (varies && count > 1)))
        status = berth_schedule_peel(fn, &at_once, 0, together, &single);
    if (status) {
        berth_decisions_refuse(fn, status);
        return id;
    }
    berth_buf parts =
        berth_tfn_buffer(fn, "parts", BERTH_DTYPE_F32, 1, &count, BERTH_SCOPE_REGISTER);
    fn->bufs.data[parts].lanes = lanes;
    berth_stmt items[4];
    uint32_t n = 0;
    items[n++] = widen_vectors(&r, at_once, count, parts);
    if (!items[n - 1]) return id;
    if (single.count) items[n++] = widen_vectors(&r, single, 1, parts);
    if (!items[n - 1]) return id;
    berth_stmt again = rest.count ? overlapping_rest(&r, rest, parts) : 0;
    berth_stmt last = rest.count && !again ? widen_rest(fn, &rest, lanes / 2) : 0;
    if (again) items[n++] = again;
    if (around) {
        berth_nest loops = *around;
        if (last) items[n++] = last;
        loops.body = berth_tfn_seq(fn, items, n);
        return around_parts(&r, parts, count, berth_nest_emit(fn, &loops));
    }
    berth_stmt both[2] = {around_parts(&r, parts, count, berth_tfn_seq(fn, items, n)), last};
    return berth_tfn_seq(fn, both, last ? 2 : 1);
}

// Loops in each other: those that go through memory without a gap as one (a row of several dimensions
// is long enough for vectors where its last one is not), and the parts of a sum around the others. The
// loop itself where there are none.
static berth_stmt widen_nested(berth_tfn *fn, berth_stmt id, uint16_t lanes) {
    berth_nest nest;
    if (!berth_nest_parse(fn, id, &nest) || nest.count < 2) return id;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &nest);
    int before = nest.count;
    berth_cpu__fuse_inwards(fn, &nest, &ranges);
    berth_nest inner = {.loops = {nest.loops[--nest.count]}, .count = 1, .body = nest.body};
    berth_stmt loop = berth_nest_emit(fn, &inner);
    int64_t extent = inner.loops[0].extent;
    berth_stmt wide = nest.count ? widen_loop(fn, loop, extent, lanes, &nest) : loop;
    if (wide != loop) return wide;
    if (nest.count + 1 == before) return id;
    wide = widen_loop(fn, loop, extent, lanes, NULL);
    if (wide == loop) return id;
    nest.body = wide;
    return nest.count ? berth_nest_emit(fn, &nest) : wide;
}

// Loops of what was parallel within the iteration of another nest.
static void make_serial(berth_tfn *fn, berth_stmt id) {
    berth_stmt_node *node = berth_tfn_stmt(fn, id);
    while (node->kind == BERTH_STMT_FOR) {
        if (node->loop_kind == BERTH_LOOP_PARALLEL) node->loop_kind = BERTH_LOOP_SERIAL;
        node = berth_tfn_stmt(fn, node->body);
    }
}

// A product inside a nest as register tiles; 0 when it is none.
static berth_stmt tile_inside(berth_tfn *fn, berth_stmt id, const berth_cpu_facts *facts) {
    berth_nest nest;
    berth_cpu_facts here = *facts;
    here.inside = true;
    if (!berth_nest_parse(fn, id, &nest) || !berth_nest_is_independent(fn, &nest)) return 0;
    berth_stmt tiles = berth_cpu__tile_reduction(fn, &nest, &here);
    if (tiles) make_serial(fn, tiles);
    return tiles;
}

static bool has_table(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_ALLOC) {
        const berth_buf_info *info = &fn->bufs.data[node->buf];
        return info->scope == BERTH_SCOPE_REGISTER && info->rank == 2;
    }
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        if (has_table(fn, fn->lists.data[node->first + i])) return true;
    return false;
}

// Transforms over small tables inside a nest, in vectors; 0 when it is none.
static berth_stmt tables_inside(berth_tfn *fn, berth_stmt id, const berth_cpu_facts *facts) {
    berth_nest nest;
    if (!berth_nest_parse(fn, id, &nest) || !has_table(fn, nest.body)) return 0;
    berth_stmt vectors = berth_cpu__vector_tables(fn, nest, facts);
    if (vectors) make_serial(fn, vectors);
    return vectors;
}

// Loops of constant extent, in the order of the body; what is around them stays.
static berth_stmt rewrite(berth_tfn *fn, berth_stmt id, const berth_cpu_facts *facts) {
    const berth_stmt_node node = fn->stmts.data[id];
    int64_t extent = 0;
    if (node.kind == BERTH_STMT_SEQ) {
        berth_stmt *items = berth_arena_new_array(fn->module->arena, berth_stmt, node.count + 1);
        bool changed = false;
        for (uint32_t i = 0; i < node.count; ++i) {
            berth_stmt old = fn->lists.data[node.first + i];
            items[i] = rewrite(fn, old, facts);
            changed |= items[i] != old;
        }
        return changed ? berth_tfn_seq(fn, items, node.count) : id;
    }
    if (node.kind != BERTH_STMT_FOR || !berth_tfn_const_value(fn, node.value, &extent)) return id;
    berth_stmt tiles = tile_inside(fn, id, facts);
    if (!tiles) tiles = tables_inside(fn, id, facts);
    if (tiles) return tiles;
    berth_stmt wide = widen_nested(fn, id, facts->lanes);
    if (wide == id) wide = widen_loop(fn, id, extent, facts->lanes, NULL);
    if (wide != id) return wide;
    berth_stmt body = rewrite(fn, node.body, facts);
    if (body == node.body) return id;
    return berth_tfn_for(fn, node.var, node.value, (berth_loop_kind)node.loop_kind, body);
}

berth_stmt berth_cpu__row_lanes(berth_tfn *fn, const berth_nest *nest,
                                const berth_cpu_facts *facts) {
    berth_nest rows = *nest;
    berth_nest_decisions *held = berth_decisions_mask(fn);  // there may be several nests inside
    berth_stmt body = berth_cpu__keep_functions(fn, nest->body, facts);
    rows.body = rewrite(fn, body, facts);
    berth_decisions_unmask(fn, held);
    return rows.body == nest->body ? 0 : berth_nest_emit(fn, &rows);
}
