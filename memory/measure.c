#include "memory/measure.h"

#include <stdlib.h>

enum {
    HIGH_RESIDUES = 16,
    LOW_RESIDUES = 8,
    RESIDUES_TRIED = HIGH_RESIDUES * (LOW_RESIDUES + 1),
    KEPT_PER_PERIOD = 3,
    PERIODS = 63,
};

typedef struct measure_call {
    const berth_memory_span *spans;
    uint32_t count;
    uint32_t clique_count;
    uint64_t *change;    // [cliques + 1] scratch
    uint64_t *residues;  // [2 * (spans + 1)] scratch
} measure_call;

static int compare_words(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static int compare_measures(const void *left, const void *right) {
    const berth_memory_measure *a = left;
    const berth_memory_measure *b = right;
    if (a->height != b->height) return a->height > b->height ? -1 : 1;
    if (a->period != b->period) return a->period < b->period ? -1 : 1;
    return a->residue < b->residue ? -1 : a->residue > b->residue;
}

static uint64_t height_needed(const measure_call *call, uint64_t period, uint64_t residue) {
    for (uint32_t c = 0; c <= call->clique_count; ++c) call->change[c] = 0;
    for (uint32_t i = 0; i < call->count; ++i) {
        const berth_memory_span *span = &call->spans[i];
        uint64_t points = berth_memory__least_points(span->size, span->alignment, period, residue);
        call->change[span->first] += points;
        call->change[span->end] -= points;  // wraps, and is summed back below
    }
    uint64_t live = 0;
    uint64_t most = 0;
    for (uint32_t c = 0; c < call->clique_count; ++c) {
        live += call->change[c];
        if (live > most) most = live;
    }
    return most == 0 ? 0 : (most - 1) * period + residue + 1;
}

// Sorts and makes distinct; of more than `limit` keeps so many, the first and the last among them.
static uint32_t thin_out(uint64_t *values, uint32_t count, uint32_t limit) {
    if (count > 1) qsort(values, count, sizeof(*values), compare_words);
    uint32_t distinct = 0;
    for (uint32_t k = 0; k < count; ++k)
        if (distinct == 0 || values[k] != values[distinct - 1]) values[distinct++] = values[k];
    if (distinct <= limit) return distinct;
    for (uint32_t k = 0; k < limit; ++k)
        values[k] = values[(uint64_t)k * (distinct - 1) / (limit - 1)];
    return limit;
}

// Residues worth trying. With the residue the height grows up to where some buffer covers a point
// less: at its last byte. For buffers of smaller alignments such residues come again with every
// multiple of theirs; for each residue of the others the nearest below it are tried.
static uint32_t find_residues(const measure_call *call, uint64_t period,
                              uint64_t out[RESIDUES_TRIED]) {
    uint64_t *high = call->residues;
    uint64_t *low = call->residues + call->count + 1;
    uint32_t high_count = 0;
    uint32_t low_count = 0;
    uint64_t largest_step = 1;
    high[high_count++] = period - 1;
    for (uint32_t i = 0; i < call->count; ++i) {
        uint64_t step = call->spans[i].alignment;
        uint64_t last = call->spans[i].size - 1;
        if (step >= period) {
            high[high_count++] = last & (period - 1);
        } else {
            low[low_count++] = last & (step - 1);
            if (step > largest_step) largest_step = step;
        }
    }
    high_count = thin_out(high, high_count, HIGH_RESIDUES);
    low_count = thin_out(low, low_count, LOW_RESIDUES);
    uint32_t count = 0;
    for (uint32_t h = 0; h < high_count; ++h) {
        out[count++] = high[h];
        for (uint32_t k = 0; k < low_count; ++k) {
            uint64_t residue = (high[h] & ~(largest_step - 1)) + low[k];
            if (residue < high[h]) out[count++] = residue;
        }
    }
    return thin_out(out, count, RESIDUES_TRIED);
}

// The best measures of one period.
static uint32_t measure_period(const measure_call *call, uint64_t period,
                               berth_memory_measure *out) {
    berth_memory_measure all[RESIDUES_TRIED];
    uint64_t residues[RESIDUES_TRIED];
    uint32_t count = find_residues(call, period, residues);
    for (uint32_t k = 0; k < count; ++k)
        all[k] =
            (berth_memory_measure){period, residues[k], height_needed(call, period, residues[k])};
    qsort(all, count, sizeof(*all), compare_measures);
    if (count > KEPT_PER_PERIOD) count = KEPT_PER_PERIOD;
    for (uint32_t k = 0; k < count; ++k) out[k] = all[k];
    return count;
}

uint32_t berth_memory__find_measures(berth_arena *arena, const berth_memory_span *spans,
                                     uint32_t count, uint32_t clique_count,
                                     berth_memory_measure *out_measures, uint32_t limit) {
    uint64_t periods = 0;  // a bit per alignment
    for (uint32_t i = 0; i < count; ++i) periods |= spans[i].alignment;
    if (periods <= 1) return 0;
    berth_arena *scratch = berth_arena_create_child(arena);
    measure_call call = {spans, count, clique_count,
                         berth_arena_new_array(scratch, uint64_t, (size_t)clique_count + 1),
                         berth_arena_new_array(scratch, uint64_t, 2 * ((size_t)count + 1))};
    berth_memory_measure found[PERIODS * KEPT_PER_PERIOD];
    uint32_t total = 0;
    for (uint64_t period = 2; period != 0 && period <= periods; period *= 2)
        if (periods & period) total += measure_period(&call, period, found + total);
    qsort(found, total, sizeof(*found), compare_measures);
    if (total > limit) total = limit;
    for (uint32_t k = 0; k < total; ++k) out_measures[k] = found[k];
    berth_arena_destroy(scratch);
    return total;
}
