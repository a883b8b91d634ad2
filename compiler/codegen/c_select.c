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

typedef struct condition_facts {
    uint32_t narrowest_bytes;  // of what it loads; 0 = nothing
    bool compares_indices;     // it may be a guard
} condition_facts;

static void look_at_condition(const berth_c_printer *p, berth_expr id, condition_facts *facts) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return;
    if (node->is_index || berth_c_is_index_comparison(p, node)) {
        facts->compares_indices = true;
        return;
    }
    if (node->kind == BERTH_EXPR_LOAD) {
        uint32_t bytes = (uint32_t)berth_dtype_size_bytes((berth_dtype)node->dtype);
        if (facts->narrowest_bytes == 0 || bytes < facts->narrowest_bytes)
            facts->narrowest_bytes = bytes;
        return;
    }
    look_at_condition(p, node->a, facts);
    look_at_condition(p, node->b, facts);
    look_at_condition(p, node->c, facts);
}

static bool has_load(const berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    return node->kind == BERTH_EXPR_LOAD || has_load(p, node->a) || has_load(p, node->b) ||
           has_load(p, node->c);
}

// Loads at places that were loaded themselves: these may be what the condition checks.
static bool loads_indirectly(const berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            if (has_load(p, berth_tfn_load_indices(p->fn, id)[i])) return true;
        return false;
    }
    return loads_indirectly(p, node->a) || loads_indirectly(p, node->b) ||
           loads_indirectly(p, node->c);
}

bool berth_c_computes_both(const berth_c_printer *p, const berth_expr_node *select) {
    condition_facts facts = {.narrowest_bytes = 0};
    if (select->lanes != 1) return false;
    look_at_condition(p, select->a, &facts);
    return facts.narrowest_bytes > 0 && !facts.compares_indices &&
           facts.narrowest_bytes < berth_dtype_size_bytes((berth_dtype)select->dtype) &&
           (has_load(p, select->b) || has_load(p, select->c)) && !loads_indirectly(p, select->b) &&
           !loads_indirectly(p, select->c);
}
