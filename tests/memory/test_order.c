// The order of least memory against all orders of small random graphs, and graphs whose least peak
// is known by hand.
#include "memory/order.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/memory/random_order.h"

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
    uint32_t position[ORDER_MOST_NODES];
    for (uint32_t i = 0; i < p->node_count; ++i) position[nodes[i]] = i;
    uint64_t live[ORDER_MOST_NODES] = {0};
    uint32_t first[ORDER_MOST_LISTS];
    uint32_t last[ORDER_MOST_LISTS];
    bool given[ORDER_MOST_LISTS] = {false};
    bool taken[ORDER_MOST_LISTS] = {false};
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

typedef struct least {
    const berth_memory_order_problem *p;
    uint64_t peak;
} least;

static void note_peak(const uint32_t *nodes, void *user) {
    least *l = user;
    uint64_t peak = peak_of(l->p, nodes);
    if (peak < l->peak) l->peak = peak;
}

// ---- random graphs ------------------------------------------------------------------------------

static int small_seeds[24];

ParameterizedTestParameters(memory_order, finds_the_least_peak_of_small_graphs) {
    for (int i = 0; i < 24; ++i) small_seeds[i] = i;
    return cr_make_param_array(int, small_seeds, 24);
}

ParameterizedTest(int *block, memory_order, finds_the_least_peak_of_small_graphs) {
    for (uint64_t i = 0; i < 25; ++i) {
        uint64_t seed = (uint64_t)*block * 25 + i;
        order_builder *b =
            random_order(arena, seed, 2 + (uint32_t)(seed % 6), 1 + (uint32_t)(seed % 5));
        berth_memory_order order = solve(&b->p, 0);
        least all = {&b->p, UINT64_MAX};
        order_try_all(&b->p, note_peak, &all);
        cr_assert(order_is_valid(&b->p, order.nodes), "seed %llu", (unsigned long long)seed);
        cr_expect_eq(peak_of(&b->p, order.nodes), order.peak_bytes);
        cr_expect_eq(order.peak_bytes, all.peak, "seed %llu: %llu, by trying all %llu",
                     (unsigned long long)seed, (unsigned long long)order.peak_bytes,
                     (unsigned long long)all.peak);
        cr_expect(order.proven);
        cr_expect_leq(order.lower_bound_bytes, all.peak);
    }
}

// Whatever the budget: an order, its true peak, not above the given one, not below the bound.
Test(memory_order, large_graphs_with_any_budget) {
    static const uint64_t budgets[] = {2000, 1, 50};
    for (uint64_t seed = 0; seed < 4; ++seed)
        for (int i = 0; i < 3; ++i) {
            order_builder *b =
                random_order(arena, seed + 1000, ORDER_MOST_NODES, 3 + (uint32_t)seed * 18);
            berth_memory_order order = solve(&b->p, budgets[i]);
            uint32_t source[ORDER_MOST_NODES];
            for (uint32_t k = 0; k < ORDER_MOST_NODES; ++k) source[k] = k;
            cr_assert(order_is_valid(&b->p, order.nodes));
            cr_expect_eq(order.source_bytes, peak_of(&b->p, source));
            cr_expect_eq(order.peak_bytes, peak_of(&b->p, order.nodes));
            cr_expect_leq(order.peak_bytes, order.source_bytes);
            cr_expect_geq(order.peak_bytes, order.lower_bound_bytes);
            berth_memory_order again = solve(&b->p, budgets[i]);
            cr_expect_arr_eq(order.nodes, again.nodes, ORDER_MOST_NODES * sizeof(uint32_t));
        }
}

// ---- by hand ------------------------------------------------------------------------------------

// x (1) -> k branches of a large value (10) that becomes a small one (1) -> join. Branch by branch:
// x, the small ones of the others and one branch's large and small value. All large values first,
// as given, is the worst.
Test(memory_order, branches_one_after_the_other) {
    enum { branches = 7 };
    order_builder *b = order_start(arena, 2 + 2 * branches);
    uint32_t x = order_add_buffer(b, 1, 0);
    uint32_t joined = order_add_buffer(b, 1, 1 + 2 * branches);
    for (uint32_t i = 0; i < branches; ++i) {
        uint32_t large = order_add_buffer(b, 10, 1 + i);
        uint32_t small = order_add_buffer(b, 1, 1 + branches + i);
        order_use(b, x, 1 + i);
        order_use(b, large, 1 + branches + i);
        order_use(b, small, 1 + 2 * branches);
        order_add_edge(b, 0, 1 + i);
        order_add_edge(b, 1 + i, 1 + branches + i);
        order_add_edge(b, 1 + branches + i, 1 + 2 * branches);
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
    order_builder *b = order_start(arena, 2 * layers);
    uint32_t previous = UINT32_MAX;
    for (uint32_t i = 0; i < layers; ++i) {
        uint32_t weights = order_add_buffer(b, 100, i);
        order_use(b, weights, layers + i);
        order_add_edge(b, i, layers + i);
        if (previous != UINT32_MAX) {
            order_use(b, previous, layers + i);
            order_add_edge(b, layers + i - 1, layers + i);
        }
        previous = order_add_buffer(b, 1, layers + i);
    }
    berth_memory_order order = solve(&b->p, 0);
    cr_expect_eq(order.source_bytes, 100 * layers + 1);
    cr_expect_eq(order.peak_bytes, 102);
    cr_expect(order.proven);
}

// A chain in which every value takes the place of the one before it needs one of them.
Test(memory_order, in_place_along_a_chain) {
    order_builder *b = order_start(arena, 5);
    uint32_t previous = order_add_buffer(b, 64, 0);
    for (uint32_t i = 1; i < 5; ++i) {
        uint32_t next = order_add_buffer(b, 64, i);
        order_use(b, previous, i);
        order_add_edge(b, i - 1, i);
        b->in_place[b->p.in_place_count++] = (berth_memory_order_in_place){i, previous, next};
        previous = next;
    }
    cr_expect_eq(solve(&b->p, 0).peak_bytes, 64);
    b->p.in_place_count = 0;
    cr_expect_eq(solve(&b->p, 0).peak_bytes, 128);
}

Test(memory_order, no_nodes) {
    order_builder *b = order_start(arena, 0);
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
    order_builder *b = order_start(arena, 3);
    order_add_edge(b, 2, 1);
    expect_error(&b->p, "edge 0: it goes backwards");
    b = order_start(arena, 3);
    order_add_edge(b, 1, 3);
    expect_error(&b->p, "edge 0: its end is no node");
    b = order_start(arena, 3);
    order_add_buffer(b, 4, 1);
    b->users[0][1] = 1;
    b->buffers[0].user_count = 2;
    expect_error(&b->p, "buffer 0: its users do not ascend");
    b->buffers[0].user_count = 0;
    expect_error(&b->p, "buffer 0: no node touches it");
    b = order_start(arena, 3);
    order_add_buffer(b, 4, 0);
    order_add_buffer(b, 8, 1);
    b->in_place[0] = (berth_memory_order_in_place){1, 0, 1};
    b->p.in_place_count = 1;
    expect_error(&b->p, "in-place pair 0: it needs two buffers of equal size");
}

// ---- large parts --------------------------------------------------------------------------------

// No more than so many bytes at a time.
typedef struct bounded {
    size_t bytes, most_bytes;
} bounded;

static void *bounded_resize(void *state, void *pointer, size_t old_bytes, size_t new_bytes) {
    bounded *b = state;
    const berth_allocator base = berth_allocator_system();
    if (new_bytes > old_bytes && b->bytes + new_bytes - old_bytes > b->most_bytes) return NULL;
    void *made = base.resize(base.state, pointer, old_bytes, new_bytes);
    if (made || new_bytes == 0) b->bytes += new_bytes - old_bytes;
    return made;
}

// x -> n branches of a large value that becomes a small one -> join, all large values first: what a search keeps is
// linear in their number, not a set of nodes for each of their subsets.
static void solve_branches(uint32_t n) {
    static bounded limit;  // the arena outlives this function
    berth_arena_destroy(arena);
    limit = (bounded){0, (size_t)256 << 20};
    cr_assert_null(
        berth_arena_create((berth_allocator){.resize = bounded_resize, .state = &limit}, &arena));
    uint32_t nodes = 2 * n + 2;
    berth_memory_order_edge *edges = berth_arena_new_array(arena, berth_memory_order_edge, 3 * n);
    berth_memory_order_buffer *buffers =
        berth_arena_new_array(arena, berth_memory_order_buffer, 2 * n);
    uint32_t(*users)[2] = berth_arena_alloc(arena, 2 * n * sizeof(*users));
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t large = 1 + i, small = 1 + n + i;
        edges[3 * i] = (berth_memory_order_edge){0, large};
        edges[3 * i + 1] = (berth_memory_order_edge){large, small};
        edges[3 * i + 2] = (berth_memory_order_edge){small, nodes - 1};
        users[2 * i][0] = large, users[2 * i][1] = small;
        users[2 * i + 1][0] = small, users[2 * i + 1][1] = nodes - 1;
        buffers[2 * i] = (berth_memory_order_buffer){
            .size_bytes = 10 + i % 3, .users = users[2 * i], .user_count = 2};
        buffers[2 * i + 1] = (berth_memory_order_buffer){
            .size_bytes = 1 + i % 2, .users = users[2 * i + 1], .user_count = 2};
    }
    const berth_memory_order_problem problem = {.node_count = nodes,
                                                .edges = edges,
                                                .edge_count = 3 * n,
                                                .buffers = buffers,
                                                .buffer_count = 2 * n};
    berth_memory_order order = solve(&problem, 0);
    uint32_t *turn = berth_arena_new_array(arena, uint32_t, nodes);
    for (uint32_t i = 0; i < nodes; ++i) turn[order.nodes[i]] += i + 1;
    for (uint32_t i = 0; i < 3 * n; ++i) cr_assert_lt(turn[edges[i].before], turn[edges[i].after]);
    cr_expect_leq(order.peak_bytes, order.source_bytes);
    cr_expect_geq(order.peak_bytes, order.lower_bound_bytes);
}

Test(memory_order, memory_of_the_search_is_bounded) {
    solve_branches(1000);
    solve_branches(3000);
    solve_branches(10000);
}
