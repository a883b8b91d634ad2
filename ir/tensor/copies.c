#include "ir/tensor/copies.h"

#include <assert.h>

berth_stmt berth_tfn_barrier_pending(berth_tfn *fn, int64_t pending) {
    assert(pending >= 0 && pending <= BERTH_TFN_MOST_PENDING);
    berth_stmt id = berth_tfn_barrier(fn);
    fn->stmts.data[id].count = (uint32_t)pending + 1;
    return id;
}

bool berth_tfn_has_pending(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_BARRIER: return berth_tfn_pending_of(node) >= 0;
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            if (berth_tfn_has_pending(fn, berth_tfn_seq_items(fn, id)[i])) return true;
        return false;
    case BERTH_STMT_FOR: return berth_tfn_has_pending(fn, node->body);
    case BERTH_STMT_IF:
        return berth_tfn_has_pending(fn, node->body) || berth_tfn_has_pending(fn, node->other);
    default: return false;
    }
}
