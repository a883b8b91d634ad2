// Reductions in types that have no explicit vectors (f64, integers of 64 bits): loops over a few neighbouring
// results, or over a few parts of one sum, innermost, which C compilers make vectors of.
//
//   for j: acc = 0; for k: acc += x[k, j]; y[j] = acc
//     ->  for jo: for l in 32: part[l] = 0
//                 for k: for l in 32: part[l] += x[k, jo * 32 + l]
//                 for l in 32: y[jo * 32 + l] = part[l]
//   for i: acc = 0; for k: acc += x[i, k]; y[i] = acc
//     ->  for i: part[..] = 0; for ko: for l in 32: part[l] += x[i, ko * 32 + l]
//                for l in rest: part[l] += x[i, rest + l]
//                for l in 16: part[l] += part[l + 16]; ...; acc = all of part; ...
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

enum { most_lines = 32, least_lines = 4 };

typedef struct plain_lines {
    berth_tfn *fn;
    berth_nest nest;  // parallel loops around the reduction
    berth_reduction reduction;
    berth_ranges ranges;
    berth_buf parts;
    int64_t count;  // of them
} plain_lines;

typedef struct part_of {
    berth_buf acc, parts;
    berth_expr at;
} part_of;

static berth_expr part_instead(berth_tfn *fn, berth_expr load, void *user) {
    const part_of *part = user;
    bool is_acc = fn->exprs.data[load].load.buf == part->acc;
    return is_acc ? berth_tfn_load(fn, part->parts, &part->at, 1) : 0;
}

// A loop over the parts around the store of a value in which element `at` of `parts` stands for the
// accumulator, and `var` is replaced by what `with` says of the loop's variable.
//   store: 0 = into the part itself
static berth_stmt over_parts(plain_lines *p, berth_expr value, berth_stmt store, berth_var var,
                             berth_expr base) {
    berth_tfn *fn = p->fn;
    berth_var lane = berth_tfn_var(fn, "l");
    berth_expr at = berth_tfn_var_ref(fn, lane);
    part_of part = {.acc = p->reduction.acc, .parts = p->parts, .at = at};
    berth_expr with = base ? berth_tfn_binary(fn, BERTH_BINARY_ADD, base, at) : at;
    value = berth_replace_loads(fn, value, part_instead, &part);
    if (var != BERTH_NONE) value = berth_replace_var(fn, value, var, with);
    berth_expr indices[BERTH_MAX_RANK] = {at};
    int rank = 1;
    berth_buf buf = p->parts;
    if (store) {
        const berth_stmt_node node = fn->stmts.data[store];
        buf = node.buf;
        rank = node.index_count;
        for (int i = 0; i < rank; ++i)
            indices[i] = berth_replace_var(fn, fn->lists.data[node.first + (uint32_t)i], var, with);
    }
    berth_stmt body = berth_tfn_store(fn, buf, indices, rank, value);
    return berth_tfn_for(fn, lane, berth_tfn_index(fn, p->count), BERTH_LOOP_SIMD, body);
}

static void make_parts(plain_lines *p, int64_t count) {
    p->count = count;
    p->parts = berth_tfn_buffer(p->fn, "part", p->fn->bufs.data[p->reduction.acc].dtype, 1, &count,
                                BERTH_SCOPE_PRIVATE);
}

static berth_stmt emit(plain_lines *p, berth_nest nest, int64_t inside) {
    berth_cpu__keep_chunks_serial(p->fn, &nest, inside);
    return berth_nest_emit(p->fn, &nest);
}

static int64_t sum_length(const plain_lines *p) {
    int64_t length = 1;
    for (int i = 0; i < p->reduction.loops.count; ++i) length *= p->reduction.loops.loops[i].extent;
    return length;
}

// ---- neighbouring results -----------------------------------------------------------------------

static bool results_lie_along(plain_lines *p, berth_var var) {
    berth_tfn *fn = p->fn;
    if (!berth_loads_are_contiguous(fn, &p->ranges, p->reduction.init, var) ||
        !berth_loads_are_contiguous(fn, &p->ranges, p->reduction.update, var))
        return false;
    for (int i = 0; i < p->reduction.epilogue_count; ++i)
        if (!berth_store_is_contiguous(fn, &p->ranges, p->reduction.epilogue[i], var)) return false;
    return p->reduction.epilogue_count > 0;
}

// The nest with its last loop in lines of `count` results.
static berth_stmt result_lines(plain_lines *p, berth_nest nest, int64_t count) {
    berth_tfn *fn = p->fn;
    int last = nest.count - 1;
    berth_status status = berth_schedule_split(fn, &nest, last, count);
    if (status || !berth_reduction_parse(fn, nest.body, &p->reduction)) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_var var = nest.loops[--nest.count].var;
    make_parts(p, count);
    berth_stmt items[11];
    uint32_t n = 0;
    items[n++] = berth_tfn_alloc(fn, p->parts);
    items[n++] = over_parts(p, p->reduction.init, 0, var, 0);
    berth_nest loops = p->reduction.loops;
    loops.body = over_parts(p, p->reduction.update, 0, var, 0);
    items[n++] = berth_nest_emit(fn, &loops);
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_stmt store = p->reduction.epilogue[i];
        items[n++] = over_parts(p, fn->stmts.data[store].value, store, var, 0);
    }
    nest.body = berth_tfn_seq(fn, items, n);
    return emit(p, nest, count * sum_length(p));
}

static berth_stmt neighbours(plain_lines *p) {
    berth_nest nest = p->nest;
    berth_nest rest = {0};
    int last = nest.count - 1;
    int64_t extent = nest.loops[last].extent;
    if (extent < least_lines || !results_lie_along(p, nest.loops[last].var)) return 0;
    int64_t count = extent < most_lines ? extent : most_lines;
    berth_status status = BERTH_OK;
    if (extent % count)
        status = berth_schedule_peel(p->fn, &nest, last, extent / count * count, &rest);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return 0;
    }
    berth_stmt items[2] = {result_lines(p, nest, count)};
    if (rest.count) items[1] = result_lines(p, rest, extent % count);
    if (!items[0] || (rest.count && !items[1])) return 0;
    return rest.count ? berth_tfn_seq(p->fn, items, 2) : items[0];
}

// ---- parts of one sum ---------------------------------------------------------------------------

// The terms after the last whole line: one for each of the first parts.
static berth_stmt rest_in_parts(plain_lines *p, berth_nest *rest) {
    berth_nest_loop last = rest->loops[--rest->count];
    p->count = last.extent;
    berth_expr value = p->fn->stmts.data[rest->body].value;
    rest->body = over_parts(p, value, 0, last.var, 0);
    p->count = most_lines;
    return berth_nest_emit(p->fn, rest);
}

// The accumulator and all parts as one, by halves of the parts: returns how many `out` are written.
static uint32_t parts_together(plain_lines *p, berth_binary combine, berth_stmt *out) {
    berth_tfn *fn = p->fn;
    uint32_t n = 0;
    int64_t width = p->count;
    for (; width > least_lines; width /= 2) {
        berth_var lane = berth_tfn_var(fn, "l");
        berth_expr at = berth_tfn_var_ref(fn, lane);
        berth_expr other =
            berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_index(fn, width / 2));
        berth_expr both = berth_tfn_binary(fn, combine, berth_tfn_load(fn, p->parts, &at, 1),
                                           berth_tfn_load(fn, p->parts, &other, 1));
        out[n++] = berth_tfn_for(fn, lane, berth_tfn_index(fn, width / 2), BERTH_LOOP_SIMD,
                                 berth_tfn_store(fn, p->parts, &at, 1, both));
    }
    berth_var lane = berth_tfn_var(fn, "l");
    berth_expr at = berth_tfn_var_ref(fn, lane);
    berth_expr all = berth_tfn_binary(fn, combine, berth_tfn_load(fn, p->reduction.acc, NULL, 0),
                                      berth_tfn_load(fn, p->parts, &at, 1));
    out[n++] = berth_tfn_for(fn, lane, berth_tfn_index(fn, width), BERTH_LOOP_SERIAL,
                             berth_tfn_store(fn, p->reduction.acc, NULL, 0, all));
    return n;
}

static berth_stmt sum_parts(plain_lines *p) {
    berth_tfn *fn = p->fn;
    berth_reduction *r = &p->reduction;
    berth_binary combine = BERTH_BINARY_ADD;
    berth_nest loops = r->loops;
    berth_nest rest = {0};
    int last = loops.count - 1;
    int64_t extent = loops.loops[last].extent;
    berth_dtype dtype = fn->bufs.data[r->acc].dtype;
    if (!berth_dtype_is_float(dtype) || extent < most_lines ||
        !berth_loads_are_contiguous(fn, &p->ranges, r->update, loops.loops[last].var) ||
        !berth_cpu__find_combine(fn, r->update, r->acc, &combine))
        return 0;
    make_parts(p, most_lines);
    berth_status status = BERTH_OK;
    if (extent % p->count)
        status = berth_schedule_peel(fn, &loops, last, extent / p->count * p->count, &rest);
    if (!status) status = berth_schedule_split(fn, &loops, last, p->count);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_var var = loops.loops[--loops.count].var;
    berth_stmt items[20];
    uint32_t n = 0;
    items[n++] = berth_tfn_alloc(fn, r->acc);
    items[n++] = berth_tfn_store(fn, r->acc, NULL, 0, r->init);
    items[n++] = berth_tfn_alloc(fn, p->parts);
    berth_expr first = berth_cpu__neutral(fn, combine, dtype, r->init);
    items[n++] = over_parts(p, first, 0, BERTH_NONE, 0);
    loops.body = over_parts(p, fn->stmts.data[loops.body].value, 0, var, 0);
    items[n++] = berth_nest_emit(fn, &loops);
    if (rest.count) items[n++] = rest_in_parts(p, &rest);
    n += parts_together(p, combine, items + n);
    for (int i = 0; i < r->epilogue_count; ++i) items[n++] = r->epilogue[i];
    berth_nest nest = p->nest;
    nest.body = berth_tfn_seq(fn, items, n);
    return emit(p, nest, sum_length(p));
}

berth_stmt berth_cpu__plain_lines(berth_tfn *fn, const berth_nest *nest,
                                  const berth_cpu_facts *facts) {
    plain_lines p = {.fn = fn, .nest = *nest};
    if (nest->count == 0 || facts->any_size || !berth_nest_is_independent(fn, nest) ||
        !berth_reduction_parse(fn, nest->body, &p.reduction) ||
        berth_dtype_has_vectors(fn->bufs.data[p.reduction.acc].dtype))
        return 0;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    berth_ranges collected = berth_ranges_collect(fn);
    p.ranges = berth_ranges_with(fn, &collected, nest);
    berth_stmt made = neighbours(&p);
    return made ? made : sum_parts(&p);
}
