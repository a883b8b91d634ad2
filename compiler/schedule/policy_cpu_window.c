// Sums and extremes of a few terms whose results lie along the last loop, but whose terms do not (windows
// that move by more than one element, types without explicit vectors): the terms as one expression, so
// that what is left is an elementwise nest.
//
//   for i: acc = 0; for k in 3: acc += x[2 i + k]; y[i] = acc
//     ->  for i: y[i] = ((0 + x[2 i]) + x[2 i + 1]) + x[2 i + 2]
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

enum {
    most_terms = 64,  // the C compiler's time grows with them
    most_step =
        4,  // elements from one result's term to the next one's: compilers take these apart in registers
    least_results = 8  // beside each other
};

typedef struct window {
    berth_tfn *fn;
    berth_reduction reduction;
    berth_expr value;  // of the accumulator
    int64_t terms;
} window;

// Whether iterations of `var` go forward through all memory that a value reads, by a few elements at most.
static bool steps_along(berth_tfn *fn, const berth_ranges *ranges, berth_expr value,
                        berth_var var) {
    berth_access_list loads = {0};
    berth_cpu__collect_loads(fn, ranges, value, &loads);
    for (uint32_t i = 0; i < loads.items.count; ++i) {
        bool linear = false;
        int64_t step = berth_linear_stride(fn, &loads.items.data[i].at, var, &linear);
        if (!linear || step < 0 || step > most_step) return false;
    }
    return true;
}

static bool suits(window *w, const berth_nest *nest) {
    berth_binary combine;
    int last = nest->count - 1;
    berth_var var = nest->loops[last].var;
    if (nest->loops[last].extent < least_results ||
        !berth_reduction_parse(w->fn, nest->body, &w->reduction) ||
        !berth_cpu__find_combine(w->fn, w->reduction.update, w->reduction.acc, &combine) ||
        w->reduction.epilogue_count != 1)
        return false;
    w->terms = 1;
    for (int i = 0; i < w->reduction.loops.count; ++i) {
        int64_t extent = w->reduction.loops.loops[i].extent;
        if (extent <= 0 || extent > most_terms / w->terms) return false;
        w->terms *= extent;
    }
    berth_ranges ranges = berth_ranges_collect(w->fn);
    ranges = berth_ranges_with(w->fn, &ranges, nest);
    ranges = berth_ranges_with(w->fn, &ranges, &w->reduction.loops);
    const berth_stmt_node store = w->fn->stmts.data[w->reduction.epilogue[0]];
    berth_linear at = berth_linear_access(w->fn, &ranges, store.buf,
                                          berth_tfn_store_indices(w->fn, w->reduction.epilogue[0]),
                                          store.index_count);
    bool linear = false;
    return berth_linear_stride(w->fn, &at, var, &linear) == 1 && linear &&
           steps_along(w->fn, &ranges, w->reduction.update, var) &&
           steps_along(w->fn, &ranges, store.value, var);
}

static berth_expr value_instead(berth_tfn *fn, berth_expr load, void *user) {
    const window *w = user;
    return fn->exprs.data[load].load.buf == w->reduction.acc ? w->value : 0;
}

// The update in one iteration of the reduction's loops.
static berth_expr term(const window *w, int64_t iteration) {
    berth_expr value = w->reduction.update;
    for (int i = w->reduction.loops.count - 1; i >= 0; --i) {
        const berth_nest_loop *loop = &w->reduction.loops.loops[i];
        value = berth_replace_var(w->fn, value, loop->var,
                                  berth_tfn_index(w->fn, iteration % loop->extent));
        iteration /= loop->extent;
    }
    return value;
}

berth_stmt berth_cpu__window_terms(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts) {
    window w = {.fn = fn};
    if (nest->count == 0 || facts->any_size || !berth_nest_is_independent(fn, nest) ||
        !suits(&w, nest))
        return 0;
    berth_cpu__clamp_window(fn, nest, &w.reduction);
    w.value = w.reduction.init;
    for (int64_t i = 0; i < w.terms; ++i)
        w.value = berth_replace_loads(fn, term(&w, i), value_instead, &w);
    berth_stmt last = w.reduction.epilogue[0];
    const berth_stmt_node store = fn->stmts.data[last];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, last), store.index_count * sizeof(berth_expr));
    berth_expr result = berth_replace_loads(fn, store.value, value_instead, &w);
    berth_nest flat = *nest;
    flat.body = berth_tfn_store(fn, store.buf, indices, store.index_count, result);
    return berth_cpu__flat_loops(fn, &flat, facts);
}
