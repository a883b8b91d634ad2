// The problem of static memory allocation as people exchange it: buffers with lifetimes, sizes and,
// optionally, alignments and pools, in CSV.
//
//   id,lower,upper,size[,alignment][,pool][,offset]
//
// The header names the columns, in any order. A buffer is live in [lower, upper). Pools are
// separate memories; without the column there is one, named "". `offset` is a solution; the solvers
// ignore it. Fields may be put in double quotes. Immutable after parsing.
//
//   berth_memory_problem *problem;
//   BERTH_TRY(berth_memory_problem_parse(arena, "model.csv", text, length, NULL, &problem));
#ifndef BERTH_MEMORY_PROBLEM_H_
#define BERTH_MEMORY_PROBLEM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/str.h"
#include "memory/interval.h"

// Rows of one file, where no limit is given. Beyond it, parsing says so (OUT_OF_RANGE).
#define BERTH_MEMORY_BUFFER_LIMIT ((uint32_t)1 << 24)

typedef struct berth_memory_problem {
    uint32_t buffer_count;
    const char **ids;                  // [buffer_count] unique, not empty
    berth_memory_interval *intervals;  // [buffer_count]
    uint32_t *pools;                   // [buffer_count] index into pool_names
    uint64_t *offsets;                 // [buffer_count] bytes; NULL without an offset column
    uint32_t pool_count;               // at least 1
    const char **pool_names;           // [pool_count] in order of first appearance
    bool has_alignment;                // columns that the file had
    bool has_pool;
} berth_memory_problem;

// Parses CSV text. `name` starts the messages ("NAME:LINE:COLUMN: what"; lines and columns from 1,
// columns in bytes).
//   limits:    of what is read; items are rows, and there is no depth. NULL = those above
//   ownership: the problem lives in `arena` and does not refer to `text`
//   errors:    INVALID_ARGUMENT missing, unknown or repeated column; missing or extra field; not a
//   number; lower >=
//              upper; size 0; alignment not a power of two; empty or repeated id; OUT_OF_RANGE a
//              number beyond 64 bits, sizes whose sum (with alignments) is above
//              BERTH_MEMORY_TOTAL_LIMIT_BYTES, more than a limit; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_memory_problem_parse(berth_arena *arena, const char *name,
                                                       const char *text, size_t length,
                                                       const berth_limits *limits,
                                                       berth_memory_problem **out_problem);

// Reads and parses a file. Errors as above, and those of berth_file_read.
BERTH_MUST_USE berth_status berth_memory_problem_read(berth_arena *arena, const char *path,
                                                      const berth_limits *limits,
                                                      berth_memory_problem **out_problem);

// Adds the rows as CSV: the columns the problem had, and `offset` when `offsets` is not NULL. Reads
// back as an equal problem. Inside berth_arena_try of the buffer's arena.
void berth_memory_problem_write(const berth_memory_problem *problem, const uint64_t *offsets,
                                berth_strbuf *out);

// The buffers of one pool: their intervals, and their indices in the problem. Both live in `arena`;
// inside berth_arena_try.
uint32_t berth_memory_problem_pool(berth_arena *arena, const berth_memory_problem *problem,
                                   uint32_t pool, berth_memory_interval **out_intervals,
                                   uint32_t **out_indices);

#endif  // BERTH_MEMORY_PROBLEM_H_
