// Searches that follow a solution (memory/exact_follow.c).
#include <criterion/criterion.h>
#include <string.h>

#include "memory/exact_private.h"
#include "tests/check.h"
#include "tests/memory/random_problem.h"

enum { MOMENTS = 64, HEIGHT = 4096, MOST = 160 };

typedef struct packing {
    berth_memory_interval intervals[MOST];
    uint64_t offsets[MOST];
    uint32_t count;
} packing;

typedef struct rectangle {
    int64_t lower, upper;
    uint64_t bottom, top;
} rectangle;

static uint64_t rectangle_area(rectangle r) {
    return (uint64_t)(r.upper - r.lower) * (r.top - r.bottom);
}

// One rectangle of time and memory, cut at random until it is `MOST` buffers: there is a solution without a gap.
static void make_packing(packing *p, uint64_t *random) {
    rectangle parts[MOST] = {{0, MOMENTS, 0, HEIGHT}};
    uint32_t count = 1;
    while (count < MOST) {
        uint32_t largest = 0;
        for (uint32_t i = 1; i < count; ++i)
            if (rectangle_area(parts[i]) > rectangle_area(parts[largest])) largest = i;
        rectangle *r = &parts[largest];
        rectangle *rest = &parts[count++];
        *rest = *r;
        uint64_t width = (uint64_t)(r->upper - r->lower);
        uint64_t height = r->top - r->bottom;
        if (width > 1 && random_next(random) % 2 == 0)
            r->upper = rest->lower = r->lower + 1 + (int64_t)(random_next(random) % (width - 1));
        else
            r->top = rest->bottom = r->bottom + 1 + random_next(random) % (height - 1);
    }
    p->count = count;
    for (uint32_t i = 0; i < count; ++i) {
        p->intervals[i] = (berth_memory_interval){.lower = parts[i].lower,
                                                  .upper = parts[i].upper,
                                                  .size_bytes = parts[i].top - parts[i].bottom,
                                                  .alignment_bytes = 1};
        p->offsets[i] = parts[i].bottom;
    }
}

static bool fits(const packing *p, const uint64_t *offsets) {
    for (uint32_t i = 0; i < p->count; ++i) {
        if (offsets[i] + p->intervals[i].size_bytes > HEIGHT) return false;
        for (uint32_t j = 0; j < i; ++j)
            if (p->intervals[i].lower < p->intervals[j].upper &&
                p->intervals[j].lower < p->intervals[i].upper &&
                offsets[i] < offsets[j] + p->intervals[j].size_bytes &&
                offsets[j] < offsets[i] + p->intervals[i].size_bytes)
                return false;
    }
    return true;
}

static berth_memory_verdict fit(const packing *p, exact_guide *guide, uint64_t nodes) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    uint64_t offsets[MOST] = {0};
    berth_memory_budget budget = {.node_limit = nodes};
    berth_memory_verdict verdict = BERTH_MEMORY_UNKNOWN;
    uint32_t pair = 0;
    bool exhausted = false;
    assert_ok(berth_memory__exact_fit(arena, p->intervals, p->count, HEIGHT,
                                      guide ? guide->offsets : NULL, guide, &budget, offsets,
                                      &verdict, &pair, &exhausted));
    cr_expect_leq(budget.nodes, nodes);
    if (verdict == BERTH_MEMORY_FITS) cr_expect(fits(p, offsets));
    berth_arena_destroy(arena);
    return verdict;
}

// Solutions with a gap under every buffer show the way to the one without: the searches that know none need more nodes.
Test(memory_follow, a_loose_solution_leads_to_the_tight_one) {
    uint64_t random = 20261201;
    int followed = 0, plain = 0;
    for (int round = 0; round < 12; ++round) {
        packing p;
        make_packing(&p, &random);
        uint64_t loose[MOST];
        for (uint32_t i = 0; i < p.count; ++i) loose[i] = p.offsets[i] * 5 / 4;
        exact_guide guide = {.offsets = loose, .random = 1 + (uint64_t)round};
        const uint64_t nodes = 20 * (uint64_t)p.count;
        followed += fit(&p, &guide, nodes) == BERTH_MEMORY_FITS;
        plain += fit(&p, NULL, nodes) == BERTH_MEMORY_FITS;
    }
    cr_log_info("%d followed, %d plain", followed, plain);
    cr_expect_geq(followed, 10);
    cr_expect_leq(plain, 6);
}

// The left half of one solution and the right half of another: each is useless in its other half.
Test(memory_follow, two_solutions_are_joined) {
    uint64_t random = 4711;
    int joined = 0, alone = 0;
    for (int round = 0; round < 12; ++round) {
        packing p;
        make_packing(&p, &random);
        uint64_t left[MOST], right[MOST];
        for (uint32_t i = 0; i < p.count; ++i) {
            uint64_t good = p.offsets[i] * 5 / 4;
            bool early = p.intervals[i].lower + p.intervals[i].upper < MOMENTS;
            uint64_t bad = HEIGHT + random_next(&random) % HEIGHT;
            left[i] = early ? good : bad;
            right[i] = early ? bad : good;
        }
        const uint64_t nodes = 200 * (uint64_t)p.count;
        exact_guide both = {.offsets = left, .other = right, .random = 1 + (uint64_t)round};
        exact_guide one = {.offsets = left, .random = 1 + (uint64_t)round};
        joined += fit(&p, &both, nodes) == BERTH_MEMORY_FITS;
        alone += fit(&p, &one, nodes) == BERTH_MEMORY_FITS;
    }
    cr_log_info("%d joined, %d alone", joined, alone);
    cr_expect_gt(joined, alone);
}
