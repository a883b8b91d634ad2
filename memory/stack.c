#include "memory/stack.h"

#include <stdbool.h>

#include "memory/interval.h"

enum { MEASURES = 6, FIRST_SLOTS = 1024 };

typedef struct stack_state {
    uint64_t stacked;  // a bit per span
    uint64_t top;
    uint64_t estimate;  // no stack that begins so is lower
    uint32_t count;     // of those stacked
} stack_state;

typedef struct stack_top {
    uint64_t stacked;  // 0: the slot is free
    uint64_t top;      // least of the set
} stack_top;

typedef struct stack_search {
    berth_arena *arena;
    const berth_memory_span *spans;
    uint32_t count;
    uint64_t *before;  // [spans] bits of identical spans, which are stacked first
    uint32_t measure_count;
    berth_memory_measure measures[MEASURES];
    BERTH_VEC(stack_state) open;  // a heap
    uint64_t enough;
    stack_top *seen;  // hash table
    uint64_t seen_mask;
    uint64_t seen_count;
} stack_search;

static bool comes_first(const stack_state *a, const stack_state *b) {
    if (a->estimate != b->estimate) return a->estimate < b->estimate;
    if (a->count != b->count) return a->count > b->count;
    return a->stacked < b->stacked;
}

static void push(stack_search *search, stack_state state) {
    berth_vec_push(search->arena, &search->open, state);
    stack_state *heap = search->open.data;
    uint32_t at = search->open.count - 1;
    for (; at > 0 && comes_first(&state, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = state;
}

static stack_state pop(stack_search *search) {
    stack_state *heap = search->open.data;
    stack_state first = heap[0];
    stack_state last = heap[--search->open.count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < search->open.count; child = 2 * at + 1) {
        if (child + 1 < search->open.count && comes_first(&heap[child + 1], &heap[child])) ++child;
        if (!comes_first(&heap[child], &last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

// Where the set is in the table, or would be.
static stack_top *slot_of(const stack_search *search, uint64_t stacked) {
    uint64_t slot = (stacked * 0x9E3779B97F4A7C15u) >> 32 & search->seen_mask;
    while (search->seen[slot].stacked != 0 && search->seen[slot].stacked != stacked)
        slot = (slot + 1) & search->seen_mask;
    return &search->seen[slot];
}

static void grow_table(stack_search *search) {
    const stack_top *old = search->seen;
    uint64_t old_slots = old ? search->seen_mask + 1 : 0;
    uint64_t slots = old ? 4 * old_slots : FIRST_SLOTS;
    search->seen = berth_arena_new_array(search->arena, stack_top, slots);
    search->seen_mask = slots - 1;
    for (uint64_t k = 0; k < old_slots; ++k)
        if (old[k].stacked != 0) *slot_of(search, old[k].stacked) = old[k];
}

static uint64_t estimate(const stack_search *search, uint64_t stacked, uint64_t top) {
    uint64_t sum = top;
    uint64_t points[MEASURES] = {0};
    for (uint32_t i = 0; i < search->count; ++i) {
        if (stacked >> i & 1) continue;
        const berth_memory_span *span = &search->spans[i];
        sum += span->size;
        for (uint32_t m = 0; m < search->measure_count; ++m)
            points[m] +=
                berth_memory__least_points(span->size, span->alignment, search->measures[m].period,
                                           search->measures[m].residue);
    }
    for (uint32_t m = 0; m < search->measure_count; ++m) {
        uint64_t period = search->measures[m].period;
        uint64_t residue = search->measures[m].residue;
        uint64_t below = top > residue ? (top - residue + period - 1) / period : 0;
        uint64_t height = points[m] ? residue + (below + points[m] - 1) * period + 1 : 0;
        if (height > sum) sum = height;
    }
    return sum;
}

static void add_state(stack_search *search, uint64_t stacked, uint64_t top, uint32_t count) {
    stack_top *seen = slot_of(search, stacked);
    if (seen->stacked == stacked && seen->top <= top) return;
    search->seen_count += seen->stacked == 0;
    *seen = (stack_top){stacked, top};
    if (2 * search->seen_count > search->seen_mask) grow_table(search);
    uint64_t height = estimate(search, stacked, top);
    if (height < search->enough) height = search->enough;
    push(search, (stack_state){stacked, top, height, count});
}

static void extend(stack_search *search, const stack_state *state) {
    for (uint32_t i = 0; i < search->count; ++i) {
        uint64_t bit = (uint64_t)1 << i;
        if ((state->stacked & bit) || (search->before[i] & ~state->stacked)) continue;
        const berth_memory_span *span = &search->spans[i];
        add_state(search, state->stacked | bit,
                  berth_memory_align_up(state->top, span->alignment) + span->size,
                  state->count + 1);
    }
}

static void find_identical(stack_search *search) {
    for (uint32_t i = 0; i < search->count; ++i)
        for (uint32_t k = 0; k < i; ++k)
            if (search->spans[i].size == search->spans[k].size &&
                search->spans[i].alignment == search->spans[k].alignment)
                search->before[i] |= (uint64_t)1 << k;
}

static void find_measures(stack_search *search) {
    berth_memory_span *own =
        berth_arena_copy(search->arena, search->spans, search->count * sizeof(*own));
    for (uint32_t i = 0; i < search->count; ++i) {
        own[i].first = 0;
        own[i].end = 1;
    }
    search->measure_count = berth_memory__find_measures(search->arena, own, search->count, 1,
                                                        search->measures, MEASURES);
}

uint64_t berth_memory__stack_bound(berth_arena *arena, const berth_memory_span *spans,
                                   uint32_t count, uint64_t enough, uint32_t *states) {
    berth_arena *scratch = berth_arena_create_child(arena);
    stack_search search = {.arena = scratch, .spans = spans, .count = count, .enough = enough};
    search.before = berth_arena_new_array(scratch, uint64_t, count);
    grow_table(&search);
    find_identical(&search);
    find_measures(&search);
    uint64_t bound = enough;
    push(&search, (stack_state){.estimate = estimate(&search, 0, 0)});
    while (search.open.count > 0) {
        stack_state state = pop(&search);
        if (state.estimate > bound) bound = state.estimate;
        if (state.count == count || *states == 0) break;
        if (state.count > 0 && slot_of(&search, state.stacked)->top < state.top)
            continue;  // a lower one was found since
        --*states;
        extend(&search, &state);
    }
    berth_arena_destroy(scratch);
    return bound;
}
