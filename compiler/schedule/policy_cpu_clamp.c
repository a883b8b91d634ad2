// Extremes of windows that reach over the border of their input: the elements outside do not count,
// and asking for each whether it is inside takes longer than the comparison. Places moved to the
// border instead are elements of the same window, which counts them twice: that changes no
// extreme.
//
//   max(acc, select(p >= 0 && p < n, x[p], -inf))  ->  max(acc, x[min(max(p, 0), n - 1)])
#include "compiler/schedule/policy_cpu.h"

enum { most_bounds = 8 };

// p >= low or p < end
typedef struct bound {
    berth_expr place;
    bool is_low;
    int64_t value;  // low, or end - 1
    bool found;     // as an index of a load
} bound;

typedef struct window {
    berth_tfn *fn;
    const berth_reduction *reduction;
    const berth_ranges *ranges;
    bound bounds[most_bounds];
    int count;
    bool failed;
} window;

// Whether the loop that moves `place` by one goes over the bound, wherever the window begins.
static bool stays_in_window(const window *w, const bound *b) {
    berth_linear form = berth_linear_of(w->fn, w->ranges, b->place);
    int64_t extent = 0;
    for (int i = 0; i < w->reduction->loops.count; ++i) {
        const berth_nest_loop *loop = &w->reduction->loops.loops[i];
        bool linear = false;
        int64_t step = berth_linear_stride(w->fn, &form, loop->var, &linear);
        if (!linear || (step != 0 && (step != 1 || extent))) return false;
        if (step == 0) continue;
        extent = loop->extent;
        for (int t = 0; t < form.count; ++t) {
            const berth_expr_node *atom = &w->fn->exprs.data[form.terms[t].atom];
            if (atom->kind != BERTH_EXPR_VAR || atom->var != loop->var) continue;
            form.terms[t] = form.terms[--form.count];
            break;
        }
    }
    berth_range first = berth_linear_range(w->fn, w->ranges, &form);
    if (extent == 0) return false;
    return b->is_low ? first.low + extent - 1 >= b->value : first.high <= b->value;
}

static bool take_bounds(window *w, berth_expr id) {
    const berth_expr_node node = w->fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_BINARY) return false;
    if (node.op == BERTH_BINARY_AND) return take_bounds(w, node.a) && take_bounds(w, node.b);
    bound b = {.place = node.a, .is_low = node.op == BERTH_BINARY_GE};
    if ((node.op != BERTH_BINARY_GE && node.op != BERTH_BINARY_LT) ||
        !w->fn->exprs.data[node.a].is_index || w->count == most_bounds ||
        !berth_tfn_const_value(w->fn, node.b, &b.value))
        return false;
    if (!b.is_low) b.value--;
    if (!stays_in_window(w, &b)) return false;
    w->bounds[w->count++] = b;
    return true;
}

// An index within its bounds; one that moves with the window must have them all.
static berth_expr clamp(window *w, berth_expr index) {
    berth_expr result = index;
    for (int i = 0; i < w->count; ++i) {
        bound *b = &w->bounds[i];
        if (!berth_tfn_expr_equal(w->fn, b->place, index)) continue;
        b->found = true;
        result = berth_tfn_binary(w->fn, b->is_low ? BERTH_BINARY_MAX : BERTH_BINARY_MIN, result,
                                  berth_tfn_index(w->fn, b->value));
    }
    return result;
}

// Whether an index uses a loop that a bounded place uses.
static bool moves_with_window(const window *w, berth_expr id) {
    for (int l = 0; l < w->reduction->loops.count; ++l) {
        berth_var var = w->reduction->loops.loops[l].var;
        for (int i = 0; i < w->count && berth_tfn_uses_var(w->fn, id, var); ++i)
            if (berth_tfn_uses_var(w->fn, w->bounds[i].place, var)) return true;
    }
    return false;
}

static berth_expr clamp_load(berth_tfn *fn, berth_expr load, void *user) {
    window *w = user;
    const berth_expr_node node = fn->exprs.data[load];
    berth_expr old[BERTH_MAX_RANK];
    berth_expr indices[BERTH_MAX_RANK];
    if (node.index_count == 0) return 0;
    for (int i = 0; i < node.index_count; ++i) old[i] = berth_tfn_load_indices(fn, load)[i];
    for (int i = 0; i < node.index_count; ++i) {
        indices[i] = clamp(w, old[i]);
        if (indices[i] == old[i] && moves_with_window(w, old[i])) w->failed = true;
    }
    return berth_tfn_load(fn, node.load.buf, indices, node.index_count);
}

// Whether a value takes an index for a number, or compares it: it is not that of the place alone.
static bool uses_places(const window *w, berth_expr id) {
    const berth_expr_node *node = &w->fn->exprs.data[id];
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_LOAD)
        return false;
    if (node->kind == BERTH_EXPR_VAR || node->is_index) return true;
    return uses_places(w, node->a) || uses_places(w, node->b) || uses_places(w, node->c);
}

void berth_cpu__clamp_window(berth_tfn *fn, const berth_nest *nest, berth_reduction *reduction) {
    const berth_expr_node update = fn->exprs.data[reduction->update];
    if (update.kind != BERTH_EXPR_BINARY ||
        (update.op != BERTH_BINARY_MAX && update.op != BERTH_BINARY_MIN))
        return;
    const berth_expr_node acc = fn->exprs.data[update.a];
    const berth_expr_node choice = fn->exprs.data[update.b];
    if (acc.kind != BERTH_EXPR_LOAD || acc.load.buf != reduction->acc ||
        choice.kind != BERTH_EXPR_SELECT || !berth_tfn_expr_equal(fn, choice.c, reduction->init))
        return;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    ranges = berth_ranges_with(fn, &ranges, &reduction->loops);
    window w = {.fn = fn, .reduction = reduction, .ranges = &ranges};
    if (!take_bounds(&w, choice.a) || uses_places(&w, choice.b)) return;
    berth_expr inside = berth_replace_loads(fn, choice.b, clamp_load, &w);
    for (int i = 0; i < w.count; ++i) w.failed |= !w.bounds[i].found;
    if (w.failed) return;
    reduction->update = berth_tfn_binary(fn, (berth_binary)update.op, update.a, inside);
    reduction->loops.body = berth_tfn_store(fn, reduction->acc, NULL, 0, reduction->update);
}
