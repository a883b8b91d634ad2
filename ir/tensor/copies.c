#include "ir/tensor/copies.h"

#include <assert.h>

berth_stmt berth_tfn_barrier_pending(berth_tfn *fn, int64_t pending, int64_t products) {
    assert(pending >= 0 && pending <= BERTH_TFN_MOST_PENDING);
    assert(products >= 0 && products <= BERTH_TFN_MOST_PRODUCTS);
    berth_stmt id = berth_tfn_barrier(fn);
    fn->stmts.data[id].count = berth_tfn_barrier_count(pending, products);
    return id;
}

// Whether a statement has a barrier of at least so much in flight.
static bool has_barrier(const berth_tfn *fn, berth_stmt id, int pending, int products) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_BARRIER:
        return berth_tfn_pending_of(node) >= pending && berth_tfn_products_of(node) >= products;
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            if (has_barrier(fn, berth_tfn_seq_items(fn, id)[i], pending, products)) return true;
        return false;
    case BERTH_STMT_FOR: return has_barrier(fn, node->body, pending, products);
    case BERTH_STMT_IF:
        return has_barrier(fn, node->body, pending, products) ||
               has_barrier(fn, node->other, pending, products);
    default: return false;
    }
}

bool berth_tfn_has_pending(const berth_tfn *fn, berth_stmt id) {
    return has_barrier(fn, id, 0, 0);
}

bool berth_tfn_has_products(const berth_tfn *fn, berth_stmt id) {
    return has_barrier(fn, id, 0, 1);
}

int berth_tfn_most_pending(const berth_tfn *fn, berth_stmt id) {
    int pending = BERTH_TFN_MOST_PENDING;
    while (pending >= 0 && !has_barrier(fn, id, pending, 0)) --pending;
    return pending;
}
