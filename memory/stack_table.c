// Exact heights of stacks, by a table of all that can be stacked already.
#include <string.h>

#include "memory/interval.h"
#include "memory/stack.h"

// Spans of equal size and alignment: which of them comes first is the same.
typedef struct stack_kind {
    uint64_t size, alignment;
    uint64_t count;
    uint64_t stride;  // of the number of a state, for one stacked span of the kind
} stack_kind;

static uint32_t find_kinds(const berth_memory_span *spans, uint32_t count, stack_kind *out) {
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t k = 0;
        while (k < kinds &&
               (out[k].size != spans[i].size || out[k].alignment != spans[i].alignment))
            ++k;
        if (k == kinds) out[kinds++] = (stack_kind){spans[i].size, spans[i].alignment, 0, 0};
        out[k].count++;
    }
    return kinds;
}

// Sets the strides; the number of states, or 0 where they are too many.
static uint64_t count_states(stack_kind *kinds, uint32_t count) {
    uint64_t states = 1;
    for (uint32_t k = 0; k < count; ++k) {
        kinds[k].stride = states;
        states *= kinds[k].count + 1;
        if (states > BERTH_MEMORY_STACK_TABLE_LIMIT) return 0;
    }
    return states;
}

// The power of two that divides all sizes and alignments; 0 where heights in it exceed 32 bits.
static uint64_t find_unit(const berth_memory_span *spans, uint32_t count) {
    uint64_t bits = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
        bits |= spans[i].size | spans[i].alignment;
        total += spans[i].size + spans[i].alignment;  // at most BERTH_MEMORY_TOTAL_LIMIT_BYTES
    }
    uint64_t unit = bits & (~bits + 1);
    return unit != 0 && total / unit < UINT32_MAX ? unit : 0;
}

uint64_t berth_memory__stack_table_work(const berth_memory_span *spans, uint32_t count) {
    stack_kind kinds[BERTH_MEMORY_STACK_LIMIT];
    if (count > BERTH_MEMORY_STACK_LIMIT || find_unit(spans, count) == 0) return 0;
    uint32_t kind_count = find_kinds(spans, count, kinds);
    return count_states(kinds, kind_count) * kind_count;
}

uint64_t berth_memory__stack_table(berth_arena *arena, const berth_memory_span *spans,
                                   uint32_t count) {
    stack_kind kinds[BERTH_MEMORY_STACK_LIMIT];
    uint64_t stacked[BERTH_MEMORY_STACK_LIMIT] = {0};
    uint32_t kind_count = find_kinds(spans, count, kinds);
    uint64_t states = count_states(kinds, kind_count);
    uint64_t unit = find_unit(spans, count);
    for (uint32_t k = 0; k < kind_count; ++k) {
        kinds[k].size /= unit;
        kinds[k].alignment /= unit;
    }
    berth_arena *scratch = berth_arena_create_child(arena);
    uint32_t *tops = berth_arena_new_array(scratch, uint32_t, states);
    memset(tops, 0xff, states * sizeof(*tops));
    tops[0] = 0;
    for (uint64_t state = 0; state + 1 < states; ++state) {
        for (uint32_t k = 0; k < kind_count; ++k) {
            if (stacked[k] == kinds[k].count) continue;
            uint64_t top = berth_memory_align_up(tops[state], kinds[k].alignment) + kinds[k].size;
            uint32_t *next = &tops[state + kinds[k].stride];
            if (top < *next) *next = (uint32_t)top;
        }
        for (uint32_t k = 0; stacked[k]++ == kinds[k].count; ++k) stacked[k] = 0;
    }
    uint64_t height = tops[states - 1] * unit;
    berth_arena_destroy(scratch);
    return height;
}
