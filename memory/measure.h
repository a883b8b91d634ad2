// Bounds from alignments. Private to memory/.
//
// Take the points residue, residue + period, ... of a memory. Buffers that are live together cover
// each at most once; a buffer whose alignment is a multiple of the period always covers the same
// number of them, and one with a smaller alignment at least so many. Their sum over a clique says
// how many points the memory must have, and so how high it is at least. With period 1 this is the
// largest live sum; the period 64 counts the padding between buffers of alignment 64, and what
// smaller ones can make of it. (A conservative scale in the sense of Fekete and Schepers 2004, "A
// general framework for bounds for higher-dimensional orthogonal packing problems", for items that
// cannot be everywhere.)
//
//   uint32_t found = berth_memory__find_measures(arena, spans, count, clique_count, measures, 8);
#ifndef BERTH_MEMORY_MEASURE_H_
#define BERTH_MEMORY_MEASURE_H_

#include <stdint.h>

#include "base/arena.h"

// A buffer in cliques [first, end). Sizes in any unit; the alignment is a power of two of it.
typedef struct berth_memory_span {
    uint64_t size;
    uint64_t alignment;
    uint32_t first;
    uint32_t end;
} berth_memory_span;

typedef struct berth_memory_measure {
    uint64_t period;   // a power of two
    uint64_t residue;  // less than the period
    uint64_t height;   // that the cliques need at least
} berth_memory_measure;

// Points that a buffer covers at least.
static inline uint64_t berth_memory__least_points(uint64_t size, uint64_t alignment,
                                                  uint64_t period, uint64_t residue) {
    uint64_t step = alignment < period ? alignment : period;
    uint64_t low = residue & (step - 1);
    uint64_t met = size > low ? (size - low + step - 1) / step : 0;
    return met / (period / step);
}

// The measures that need most, greatest first, several for each alignment that occurs; none when
// all alignments are 1. Returns how many.
//   complexity: O(spans + cliques) for each of up to 144 residues of each alignment that occurs
//   ownership:  scratch memory from a child of `arena`; inside berth_arena_try
uint32_t berth_memory__find_measures(berth_arena *arena, const berth_memory_span *spans,
                                     uint32_t count, uint32_t clique_count,
                                     berth_memory_measure *out_measures, uint32_t limit);

#endif  // BERTH_MEMORY_MEASURE_H_
