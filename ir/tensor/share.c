// Equal expressions of a tensor function as one: value numbering over a hash table (Cocke and
// Schwartz, "Programming Languages and Their Compilers", 1970), without moving anything.
#include <string.h>

#include "base/hash.h"
#include "ir/tensor/function.h"

typedef struct sharer {
    berth_tfn *fn;
    berth_expr *shared;  // per expression: the first one that is equal
    berth_expr *slots;   // open addressing; 0 = free
    uint32_t mask;
} sharer;

static bool equal(const berth_tfn *fn, const berth_expr_node *x, const berth_expr_node *y) {
    if (x->kind != y->kind || x->dtype != y->dtype || x->op != y->op ||
        x->is_index != y->is_index || x->lanes != y->lanes || x->index_count != y->index_count ||
        x->a != y->a || x->b != y->b || x->c != y->c)
        return false;
    if (x->kind == BERTH_EXPR_VAR) return x->var == y->var;
    if (x->kind != BERTH_EXPR_LOAD) return x->i == y->i;  // all bits of the union
    return x->load.buf == y->load.buf &&
           memcmp(&fn->lists.data[x->load.first_index], &fn->lists.data[y->load.first_index],
                  x->index_count * sizeof(uint32_t)) == 0;
}

static uint64_t payload(const berth_expr_node *node) {
    if (node->kind == BERTH_EXPR_VAR) return node->var;
    return node->kind == BERTH_EXPR_LOAD ? node->load.buf : (uint64_t)node->i;
}

static uint64_t hash_of(const berth_tfn *fn, const berth_expr_node *node) {
    const uint64_t facts[] = {(uint64_t)node->kind << 48 | (uint64_t)node->dtype << 40 |
                                  (uint64_t)node->op << 32 | (uint64_t)node->is_index << 31 |
                                  node->lanes,
                              (uint64_t)node->a << 32 | node->b,
                              (uint64_t)node->c << 32 | node->index_count, payload(node)};
    uint64_t hash = berth_hash64(facts, sizeof(facts), 0);
    if (node->kind != BERTH_EXPR_LOAD) return hash;
    return berth_hash64(&fn->lists.data[node->load.first_index],
                        node->index_count * sizeof(uint32_t), hash);
}

static void share_list(sharer *s, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        s->fn->lists.data[first + i] = s->shared[s->fn->lists.data[first + i]];
}

static void share_expr(sharer *s, berth_expr id) {
    berth_expr_node *node = &s->fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_LOAD) share_list(s, node->load.first_index, node->index_count);
    node->a = s->shared[node->a];
    node->b = s->shared[node->b];
    node->c = s->shared[node->c];
    uint32_t at = (uint32_t)hash_of(s->fn, node) & s->mask;
    while (s->slots[at] && !equal(s->fn, &s->fn->exprs.data[s->slots[at]], node))
        at = (at + 1) & s->mask;
    if (!s->slots[at]) s->slots[at] = id;
    s->shared[id] = s->slots[at];
}

void berth_tfn_share(berth_tfn *fn, berth_arena *scratch) {
    sharer s = {.fn = fn, .mask = 63};
    while (s.mask < fn->exprs.count * 2) s.mask = s.mask * 2 + 1;
    s.slots = berth_arena_new_array(scratch, berth_expr, (size_t)s.mask + 1);
    s.shared = berth_arena_new_array(scratch, berth_expr, (size_t)fn->exprs.count + 1);
    for (berth_expr id = 0; id < fn->exprs.count; ++id) s.shared[id] = id;
    for (berth_expr id = 1; id < fn->exprs.count; ++id) share_expr(&s, id);
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) {
        berth_stmt_node *node = &fn->stmts.data[id];
        node->value = s.shared[node->value];
        if (node->kind == BERTH_STMT_STORE) share_list(&s, node->first, node->index_count);
    }
    for (uint32_t i = 0; i < fn->regions.count; ++i)
        for (int d = 0; d < BERTH_MAX_RANK; ++d)
            fn->regions.data[i].starts[d] = s.shared[fn->regions.data[i].starts[d]];
}
