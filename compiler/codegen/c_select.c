// Which selections of scalars must not be written with loads under their condition.
//
// GCC 12.2 with AVX-512, at -O3, makes masked loads of `narrow[i] ? wide[i] * k : c` in short nested
// loops, and takes the wrong part of the mask where the elements of the condition are narrower than
// those that are chosen. With both sides computed before the condition is looked at it makes a blend,
// which is right. That is possible where the condition guards no access.
#include "compiler/codegen/c_family.h"

static const berth_expr_node *node_of(const berth_c_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

// Expressions share parts, and a walk meets these as often as they are used: after so many nodes the
// answer is that both sides are not computed, which only leaves things as they were.
enum { most_visits = 4096 };

typedef struct walk {
    const berth_c_printer *p;
    int visits;
    uint32_t narrowest_bytes;  // of what a condition loads; 0 = nothing
    bool compares_indices;     // it may be a guard
    bool loads;                // of a side
    bool loads_indirectly;  // at places that were loaded themselves: the condition may check these
} walk;

static bool goes_on(walk *w, berth_expr id) {
    const berth_expr_node *node = node_of(w->p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    return ++w->visits < most_visits;
}

static void look_at_condition(walk *w, berth_expr id) {
    if (!goes_on(w, id)) return;
    const berth_expr_node *node = node_of(w->p, id);
    if (node->is_index || berth_c_is_index_comparison(w->p, node)) {
        w->compares_indices = true;
        return;
    }
    if (node->kind == BERTH_EXPR_LOAD) {
        uint32_t bytes = (uint32_t)berth_dtype_size_bytes((berth_dtype)node->dtype);
        if (w->narrowest_bytes == 0 || bytes < w->narrowest_bytes) w->narrowest_bytes = bytes;
        return;
    }
    look_at_condition(w, node->a);
    look_at_condition(w, node->b);
    look_at_condition(w, node->c);
}

// `inside`: of the indices of a load.
static void look_at_side(walk *w, berth_expr id, bool inside) {
    if (!goes_on(w, id)) return;
    const berth_expr_node *node = node_of(w->p, id);
    if (node->kind == BERTH_EXPR_LOAD) {
        w->loads = true;
        w->loads_indirectly |= inside;
        for (int i = 0; i < node->index_count; ++i)
            look_at_side(w, berth_tfn_load_indices(w->p->fn, id)[i], true);
        return;
    }
    look_at_side(w, node->a, inside);
    look_at_side(w, node->b, inside);
    look_at_side(w, node->c, inside);
}

bool berth_c_computes_both(const berth_c_printer *p, const berth_expr_node *select) {
    walk w = {.p = p};
    if (select->lanes != 1) return false;
    look_at_condition(&w, select->a);
    if (w.narrowest_bytes == 0 || w.compares_indices ||
        w.narrowest_bytes >= berth_dtype_size_bytes((berth_dtype)select->dtype))
        return false;
    look_at_side(&w, select->b, false);
    look_at_side(&w, select->c, false);
    return w.loads && !w.loads_indirectly && w.visits < most_visits;
}
