// The order of least memory against all orders of small random graphs, and graphs whose least peak
// is known by hand.
#include "memory/order.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/memory/random_problem.h"

enum { most_nodes = 250, most_lists = 1200 };

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_order, .init = setup, .fini = teardown, .timeout = 300);

typedef struct order_call {
    const berth_memory_order_problem *problem;
    uint64_t budget;
    berth_memory_order *out;
} order_call;

static berth_status solve_body(void *user) {
    order_call *c = user;
    return berth_memory_order_solve(arena, c->problem, c->budget, c->out);
}

static berth_memory_order solve(const berth_memory_order_problem *problem, uint64_t budget) {
    berth_memory_order order;
    order_call call = {problem, budget, &order};
    berth_status status = berth_arena_try(arena, solve_body, &call);
    cr_assert_null(status, "%s", berth_status_message(status));
    return order;
}

// ---- the definition, written again --------------------------------------------------------------

static uint64_t peak_of(const berth_memory_order_problem *p, const uint32_t *nodes) {
    uint32_t position[most_nodes];
    for (uint32_t i = 0; i < p->node_count; ++i) position[nodes[i]] = i;
    uint64_t live[most_nodes] = {0};
    uint32_t first[most_lists];
    uint32_t last[most_lists];
    bool given[most_lists] = {false};
    bool taken[most_lists] = {false};
    for (uint32_t b = 0; b < p->buffer_count; ++b) {
        first[b] = UINT32_MAX;
        last[b] = 0;
        for (uint32_t i = 0; i < p->buffers[b].user_count; ++i) {
            uint32_t at = position[p->buffers[b].users[i]];
            if (at < first[b]) first[b] = at;
            if (at > last[b]) last[b] = at;
        }
        for (uint32_t at = first[b]; at <= last[b]; ++at) live[at] += p->buffers[b].size_bytes;
    }
    for (uint32_t i = 0; i < p->in_place_count; ++i) {
        const berth_memory_order_in_place *t = &p->in_place[i];
        uint32_t at = position[t->node];
        if (last[t->from] != at || first[t->to] != at || given[t->from] || taken[t->to]) continue;
        given[t->from] = taken[t->to] = true;
        live[at] -= p->buffers[t->from].size_bytes;
    }
    uint64_t peak = 0;
    for (uint32_t i = 0; i < p->node_count; ++i)
        if (live[i] > peak) peak = live[i];
    return peak;
}

static bool is_valid(const berth_memory_order_problem *p, const uint32_t *nodes) {
    uint32_t position[most_nodes];
    memset(position, 0xff, sizeof(position));
    for (uint32_t i = 0; i < p->node_count; ++i) {
        if (nodes[i] >= p->node_count || position[nodes[i]] != UINT32_MAX) return false;
        position[nodes[i]] = i;
    }
    for (uint32_t i = 0; i < p->edge_count; ++i)
        if (position[p->edges[i].before] > position[p->edges[i].after]) return false;
    return true;
}

typedef struct brute {
    const berth_memory_order_problem *p;
    uint32_t nodes[most_nodes];
    uint32_t count;
    uint64_t best;
} brute;

static void try_all(brute *b) {
    if (b->count == b->p->node_count) {
        uint64_t peak = peak_of(b->p, b->nodes);
        if (peak < b->best) b->best = peak;
        return;
    }
    for (uint32_t node = 0; node < b->p->node_count; ++node) {
        bool free = true;
        for (uint32_t i = 0; i < b->count; ++i) free &= b->nodes[i] != node;
        for (uint32_t e = 0; e < b->p->edge_count && free; ++e) {
            bool done = b->p->edges[e].after != node;
            for (uint32_t i = 0; i < b->count; ++i) done |= b->nodes[i] == b->p->edges[e].before;
            free = done;
        }
        if (!free) continue;
        b->nodes[b->count++] = node;
        try_all(b);
        b->count--;
    }
}

// ---- random graphs ------------------------------------------------------------------------------

typedef struct builder {
    berth_memory_order_problem p;
    berth_memory_order_edge edges[most_lists * 4];
    berth_memory_order_buffer buffers[most_lists];
    uint32_t users[most_lists][most_nodes];
    berth_memory_order_in_place in_place[most_lists];
} builder;

static void add_edge(builder *b, uint32_t before, uint32_t after) {
    b->edges[b->p.edge_count++] = (berth_memory_order_edge){before, after};
}

static uint32_t add_buffer(builder *b, uint64_t size_bytes, uint32_t node) {
    uint32_t index = b->p.buffer_count++;
    b->users[index][0] = node;
    b->buffers[index] = (berth_memory_order_buffer){size_bytes, b->users[index], 1};
    return index;
}

static void use(builder *b, uint32_t buffer, uint32_t node) {
    berth_memory_order_buffer *held = &b->buffers[buffer];
    if (b->users[buffer][held->user_count - 1] == node) return;
    b->users[buffer][held->user_count++] = node;
}

static builder *start(uint32_t nodes) {
    builder *b = berth_arena_new(arena, builder);
    b->p = (berth_memory_order_problem){
        .node_count = nodes, .edges = b->edges, .buffers = b->buffers, .in_place = b->in_place};
    return b;
}

// Every node makes a buffer (some none), reads those of up to three of the `reach` nodes before it,
// may take over one of them, may have scratch memory, and may write a part of a shared buffer.
static builder *random_graph(uint64_t seed, uint32_t nodes, uint32_t reach) {
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    builder *b = start(nodes);
    uint32_t made[most_nodes];
    uint32_t shared = UINT32_MAX;
    for (uint32_t node = 0; node < nodes; ++node) {
        uint64_t size = (uint64_t)1 << random_next(&state) % 4;
        made[node] = random_next(&state) % 8 == 0 ? UINT32_MAX : add_buffer(b, size, node);
        uint32_t readings = (uint32_t)(random_next(&state) % 4);
        for (uint32_t i = 0; i < readings && node > 0; ++i) {
            uint32_t span = node < reach ? node : reach;
            uint32_t other = node - 1 - (uint32_t)(random_next(&state) % span);
            add_edge(b, other, node);
            if (made[other] == UINT32_MAX) continue;
            use(b, made[other], node);
            if (made[node] != UINT32_MAX && b->buffers[made[other]].size_bytes == size)
                b->in_place[b->p.in_place_count++] =
                    (berth_memory_order_in_place){node, made[other], made[node]};
        }
        if (random_next(&state) % 6 == 0) add_buffer(b, 1 + random_next(&state) % 5, node);
        if (random_next(&state) % 5 == 0) {
            if (shared == UINT32_MAX)
                shared = add_buffer(b, 1 + random_next(&state) % 9, node);
            else
                use(b, shared, node);
        }
    }
    return b;
}

static int small_seeds[24];

ParameterizedTestParameters(memory_order, finds_the_least_peak_of_small_graphs) {
    for (int i = 0; i < 24; ++i) small_seeds[i] = i;
    return cr_make_param_array(int, small_seeds, 24);
}

ParameterizedTest(int *block, memory_order, finds_the_least_peak_of_small_graphs) {
    for (uint64_t i = 0; i < 25; ++i) {
        uint64_t seed = (uint64_t)*block * 25 + i;
        builder *b = random_graph(seed, 2 + (uint32_t)(seed % 6), 1 + (uint32_t)(seed % 5));
        berth_memory_order order = solve(&b->p, 0);
        brute all = {.p = &b->p, .best = UINT64_MAX};
        try_all(&all);
        cr_assert(is_valid(&b->p, order.nodes), "seed %llu", (unsigned long long)seed);
        cr_expect_eq(peak_of(&b->p, order.nodes), order.peak_bytes);
        cr_expect_eq(order.peak_bytes, all.best, "seed %llu: %llu, by trying all %llu",
                     (unsigned long long)seed, (unsigned long long)order.peak_bytes,
                     (unsigned long long)all.best);
        cr_expect(order.proven);
        cr_expect_leq(order.lower_bound_bytes, all.best);
    }
}

// Whatever the budget: an order, its true peak, not above the given one, not below the bound.
Test(memory_order, large_graphs_with_any_budget) {
    static const uint64_t budgets[] = {2000, 1, 50};
    for (uint64_t seed = 0; seed < 4; ++seed)
        for (int i = 0; i < 3; ++i) {
            builder *b = random_graph(seed + 1000, most_nodes, 3 + (uint32_t)seed * 18);
            berth_memory_order order = solve(&b->p, budgets[i]);
            uint32_t source[most_nodes];
            for (uint32_t k = 0; k < most_nodes; ++k) source[k] = k;
            cr_assert(is_valid(&b->p, order.nodes));
            cr_expect_eq(order.source_bytes, peak_of(&b->p, source));
            cr_expect_eq(order.peak_bytes, peak_of(&b->p, order.nodes));
            cr_expect_leq(order.peak_bytes, order.source_bytes);
            cr_expect_geq(order.peak_bytes, order.lower_bound_bytes);
            berth_memory_order again = solve(&b->p, budgets[i]);
            cr_expect_arr_eq(order.nodes, again.nodes, most_nodes * sizeof(uint32_t));
        }
}

// ---- by hand ------------------------------------------------------------------------------------

// x (1) -> k branches of a large value (10) that becomes a small one (1) -> join. Branch by branch:
// x, the small ones of the others and one branch's large and small value. All large values first,
// as given, is the worst.
Test(memory_order, branches_one_after_the_other) {
    enum { branches = 7 };
    builder *b = start(2 + 2 * branches);
    uint32_t x = add_buffer(b, 1, 0);
    uint32_t joined = add_buffer(b, 1, 1 + 2 * branches);
    for (uint32_t i = 0; i < branches; ++i) {
        uint32_t large = add_buffer(b, 10, 1 + i);
        uint32_t small = add_buffer(b, 1, 1 + branches + i);
        use(b, x, 1 + i);
        use(b, large, 1 + branches + i);
        use(b, small, 1 + 2 * branches);
        add_edge(b, 0, 1 + i);
        add_edge(b, 1 + i, 1 + branches + i);
        add_edge(b, 1 + branches + i, 1 + 2 * branches);
    }
    (void)joined;
    berth_memory_order order = solve(&b->p, 0);
    // Given: x and 7 large values. Best: when the last branch makes its large value, x and 6 small
    // values are there.
    cr_expect_eq(order.source_bytes, 10 * branches + 1);
    cr_expect_eq(order.peak_bytes, 1 + 6 + 10);
    cr_expect(order.proven);
}

// Weights that are computed (no predecessors) are made right before they are used, wherever the
// file has them.
Test(memory_order, sources_wait_for_their_use) {
    enum { layers = 100 };
    builder *b = start(2 * layers);
    uint32_t previous = UINT32_MAX;
    for (uint32_t i = 0; i < layers; ++i) {
        uint32_t weights = add_buffer(b, 100, i);
        use(b, weights, layers + i);
        add_edge(b, i, layers + i);
        if (previous != UINT32_MAX) {
            use(b, previous, layers + i);
            add_edge(b, layers + i - 1, layers + i);
        }
        previous = add_buffer(b, 1, layers + i);
    }
    berth_memory_order order = solve(&b->p, 0);
    cr_expect_eq(order.source_bytes, 100 * layers + 1);
    cr_expect_eq(order.peak_bytes, 102);
    cr_expect(order.proven);
}

// A chain in which every value takes the place of the one before it needs one of them.
Test(memory_order, in_place_along_a_chain) {
    builder *b = start(5);
    uint32_t previous = add_buffer(b, 64, 0);
    for (uint32_t i = 1; i < 5; ++i) {
        uint32_t next = add_buffer(b, 64, i);
        use(b, previous, i);
        add_edge(b, i - 1, i);
        b->in_place[b->p.in_place_count++] = (berth_memory_order_in_place){i, previous, next};
        previous = next;
    }
    cr_expect_eq(solve(&b->p, 0).peak_bytes, 64);
    b->p.in_place_count = 0;
    cr_expect_eq(solve(&b->p, 0).peak_bytes, 128);
}

Test(memory_order, no_nodes) {
    builder *b = start(0);
    berth_memory_order order = solve(&b->p, 0);
    cr_expect_eq(order.peak_bytes, 0);
    cr_expect(order.proven);
}

static void expect_error(const berth_memory_order_problem *problem, const char *part) {
    berth_memory_order order;
    order_call call = {problem, 0, &order};
    berth_status status = berth_arena_try(arena, solve_body, &call);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(memory_order, malformed) {
    builder *b = start(3);
    add_edge(b, 2, 1);
    expect_error(&b->p, "edge 0: it goes backwards");
    b = start(3);
    add_edge(b, 1, 3);
    expect_error(&b->p, "edge 0: its end is no node");
    b = start(3);
    add_buffer(b, 4, 1);
    b->users[0][1] = 1;
    b->buffers[0].user_count = 2;
    expect_error(&b->p, "buffer 0: its users do not ascend");
    b->buffers[0].user_count = 0;
    expect_error(&b->p, "buffer 0: no node touches it");
    b = start(3);
    add_buffer(b, 4, 0);
    add_buffer(b, 8, 1);
    b->in_place[0] = (berth_memory_order_in_place){1, 0, 1};
    b->p.in_place_count = 1;
    expect_error(&b->p, "in-place pair 0: it needs two buffers of equal size");
}
