#include <math.h>
#include <string.h>

#include "planner/solve/bounds/bound_latency.h"

static bool before(const berth_solve__bounder *b, uint32_t ancestor, uint32_t node) {
    return berth_solve__is_before(b->view, b->words, ancestor, node);
}

// ------------------------------------------------------------------------------------------------
// what cannot be inside together with a node

// Marks a node's group as outside. Nodes whose ancestors or descendants are then cut off from
// `node` follow by way of the list.
static void put_outside(berth_solve__bounder *b, uint8_t *side, uint32_t other, uint32_t *count) {
    const berth_place_problem *problem = b->problem;
    uint32_t group = problem->group[other];
    if (side[group] == BERTH_SOLVE__OUTSIDE) return;
    side[group] = BERTH_SOLVE__OUTSIDE;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        b->work_list[(*count)++] = problem->group_nodes[i];
}

// Convexity: beyond a node that is outside, nothing is inside.
static void spread_outside(berth_solve__bounder *b, uint8_t *side, uint32_t node, uint32_t count) {
    const berth_solve__view *view = b->view;
    while (count > 0) {
        uint32_t other = b->work_list[--count];
        b->work += 4;
        if (before(b, other, node))
            for (uint32_t p = view->pred_start[other]; p < view->pred_start[other + 1]; ++p)
                put_outside(b, side, view->pred[p], &count);
        if (before(b, node, other))
            for (uint32_t s = view->succ_start[other]; s < view->succ_start[other + 1]; ++s)
                put_outside(b, side, view->succ[s], &count);
    }
}

// Bytes of what lies between an ancestor and a node, both included: all inside with them.
static double bytes_between(berth_solve__bounder *b, uint32_t ancestor, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    double bytes = problem->size_bytes[ancestor] + problem->size_bytes[node];
    const berth_solve__view *opposite = &b->views[!b->view->backwards];
    const uint64_t *before_node = b->view->before + node * b->words;
    const uint64_t *after_ancestor = opposite->before + ancestor * b->words;
    for (size_t w = 0; w < b->words; ++w)
        for (uint64_t bits = before_node[w] & after_ancestor[w]; bits != 0; bits &= bits - 1) {
            b->work++;
            bytes += problem->size_bytes[w * 64 + (uint32_t)__builtin_ctzll(bits)];
        }
    b->work += b->words / 4;
    return bytes;
}

// Of the nodes on one side of a node, those too far away for the memory; nearest first.
static void exclude_far(berth_solve__bounder *b, double capacity, uint32_t node, bool late) {
    const berth_place_problem *problem = b->problem;
    double near = problem->size_bytes[node];  // no less than what lies between
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t other = b->view->order[late ? i : problem->node_count - 1 - i];
        if (!(late ? before(b, node, other) : before(b, other, node))) continue;
        if (b->base[problem->group[other]] == BERTH_SOLVE__OUTSIDE) continue;
        near += problem->size_bytes[other];
        if (near <= capacity) continue;
        double bytes = late ? bytes_between(b, node, other) : bytes_between(b, other, node);
        if (bytes <= capacity * (1 + 1e-9)) continue;
        near -= problem->size_bytes[other];
        put_outside(b, b->base, other, &count);
        spread_outside(b, b->base, node, count);
        count = 0;
    }
    b->work += problem->node_count / 4;
}

static void find_base(berth_solve__bounder *b, const berth_solve__latency_cut *cut, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    double capacity = problem->kinds[cut->kind].capacity_bytes;
    uint32_t first = berth_place_kind_first(problem, cut->kind), count = 0;
    memset(b->base, BERTH_SOLVE__FREE, problem->group_count);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        bool fits = false;
        for (uint32_t d = first; d < first + problem->kinds[cut->kind].device_count; ++d)
            fits |= b->latency->fits[(size_t)g * problem->device_count + d];
        if (fits && cut->group_bytes[g] <= capacity) continue;
        put_outside(b, b->base, problem->group_nodes[problem->group_start[g]], &count);
        spread_outside(b, b->base, node, count);
        count = 0;
    }
    if (b->all_bytes <= capacity) return;
    exclude_far(b, capacity, node, true);
    exclude_far(b, capacity, node, false);
}

// The same in every pass, and in both directions.
bool berth_solve__bound_base(berth_solve__bounder *b, uint32_t kind, uint32_t node) {
    uint32_t groups = b->problem->group_count;
    size_t words = ((size_t)groups + 63) / 64;
    uint64_t *bits = b->bases[kind] + node * words;
    if (!b->base_known[kind][node]) {
        b->base_known[kind][node] = true;
        find_base(b, b->cuts[kind], node);
        for (uint32_t g = 0; g < groups; ++g)
            if (b->base[g] == BERTH_SOLVE__OUTSIDE) bits[g / 64] |= (uint64_t)1 << (g % 64);
    }
    for (uint32_t g = 0; g < groups; ++g)
        b->base[g] =
            bits[g / 64] >> (g % 64) & 1 ? BERTH_SOLVE__OUTSIDE : (uint8_t)BERTH_SOLVE__FREE;
    b->work += groups / 8;
    return b->base[b->problem->group[node]] != BERTH_SOLVE__OUTSIDE;
}

void berth_solve__bound_outside(berth_solve__bounder *b, uint32_t node, uint32_t apart) {
    uint32_t count = 0;
    memcpy(b->outside, b->base, b->problem->group_count);
    if (apart == BERTH_PLACE_NONE) return;
    put_outside(b, b->outside, apart, &count);
    spread_outside(b, b->outside, node, count);
}

// ------------------------------------------------------------------------------------------------
// what must be inside together with a node, by t

static void push(berth_solve__bounder *b, uint32_t *count, double reach, uint32_t node) {
    if (b->visited[node]) return;
    uint32_t at = (*count)++;
    for (; at > 0 && b->heap[(at - 1) / 2].reach < reach; at = (at - 1) / 2)
        b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = (berth_solve__candidate){reach, node};
}

static berth_solve__candidate pop(berth_solve__bounder *b, uint32_t *count) {
    berth_solve__candidate top = b->heap[0], moved = b->heap[--*count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < *count; child = 2 * at + 1) {
        if (child + 1 < *count && b->heap[child + 1].reach > b->heap[child].reach) ++child;
        if (b->heap[child].reach <= moved.reach) break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = moved;
    return top;
}

static void push_needs(berth_solve__bounder *b, uint32_t *count, berth_solve__candidate c,
                       uint32_t node, uint32_t q) {
    const berth_place_problem *problem = b->problem;
    const berth_solve__view *view = b->view;
    uint32_t group = problem->group[c.node], member = problem->group_start[group];
    if (b->met[group]) member = problem->group_start[group + 1];  // all were pushed before
    b->met[group] = true;
    for (; member < problem->group_start[group + 1]; ++member)
        push(b, count, c.reach, problem->group_nodes[member]);
    bool early = before(b, c.node, node), late = before(b, node, c.node);
    for (uint32_t p = view->pred_start[c.node]; p < view->pred_start[c.node + 1]; ++p) {
        uint32_t pred = view->pred[p];
        double apart =
            berth_solve__row(view->apart, b, view->pred_edge[p])[berth_solve__shorter(b, q)];
        if (late && before(b, node, pred))
            push(b, count, c.reach, pred);
        else if (before(b, pred, node) && apart > 0)
            push(b, count, fmin(c.reach, apart), pred);
    }
    for (uint32_t s = view->succ_start[c.node]; early && s < view->succ_start[c.node + 1]; ++s)
        if (before(b, view->succ[s], node)) push(b, count, c.reach, view->succ[s]);
}

// Widest paths from the node, found as Dijkstra's algorithm finds shortest ones.
void berth_solve__bound_stairs(berth_solve__bounder *b, const berth_solve__latency_cut *cut,
                               uint32_t node, uint32_t q) {
    const berth_place_problem *problem = b->problem;
    double capacity = problem->kinds[cut->kind].capacity_bytes, bytes = 0;
    uint32_t count = 0;
    memset(b->visited, 0, problem->node_count * sizeof(bool));
    memset(b->met, 0, problem->group_count * sizeof(bool));
    b->order_count = b->stair_count = 0;
    push(b, &count, INFINITY, node);
    double reach = INFINITY;
    while (count > 0) {
        berth_solve__candidate c = pop(b, &count);
        b->work += 8;
        if (b->visited[c.node]) continue;
        if (c.reach < reach) {
            b->stairs[b->stair_count++] = (berth_solve__stair){reach, c.reach, b->order_count};
            reach = c.reach;
        }
        bytes += problem->size_bytes[c.node];
        if (bytes > capacity * (1 + 1e-9) ||
            b->base[problem->group[c.node]] == BERTH_SOLVE__OUTSIDE)
            return;
        b->visited[c.node] = true;
        b->order[b->order_count++] = c;
        push_needs(b, &count, c, node, q);
    }
    b->stairs[b->stair_count++] = (berth_solve__stair){reach, 0, b->order_count};
}
