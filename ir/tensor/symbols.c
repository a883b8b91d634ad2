// Symbols of a tensor function's shapes, replaced by extents.
#include "ir/dim.h"
#include "ir/tensor/function.h"

bool berth_tfn_is_polymorphic(const berth_tfn *fn) {
    for (uint32_t b = 0; b < fn->param_count; ++b)
        for (int d = 0; d < fn->bufs.data[b].rank; ++d)
            if (berth_dim_is_symbol(fn->bufs.data[b].dims[d])) return true;
    return false;
}

void berth_tfn_fix_symbols(berth_tfn *fn, berth_dim_lookup lookup, void *user) {
    berth_module *module = fn->module;
    for (uint32_t b = 0; b < fn->bufs.count; ++b)
        for (int d = 0; d < fn->bufs.data[b].rank; ++d) {
            int64_t *dim = &fn->bufs.data[b].dims[d];
            *dim = berth_dim_substitute(module, *dim, lookup, user);
        }
    for (uint32_t r = 0; r < fn->regions.count; ++r) {
        berth_tfn_region *region = &fn->regions.data[r];
        for (int d = 0; d < fn->bufs.data[region->buf].rank; ++d)
            if (berth_dim_is_symbol(region->extents[d]))
                region->extents[d] = berth_dim_substitute(module, region->extents[d], lookup, user);
    }
    for (uint32_t e = 1; e < fn->exprs.count; ++e) {
        berth_expr_node *node = &fn->exprs.data[e];
        if (node->kind != BERTH_EXPR_SYMBOL) continue;
        node->i = berth_dim_substitute(module, node->i, lookup, user);
        if (node->i >= 0) node->kind = BERTH_EXPR_INT;
    }
}
