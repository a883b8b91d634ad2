// Which sources one compiler gets: equal ones once, small parts in one text.
#ifndef BERTH_COMPILER_TOOLCHAIN_JOIN_H_
#define BERTH_COMPILER_TOOLCHAIN_JOIN_H_

#include "compiler/toolchain/toolchain.h"

// A compiler spends about 20 ms before it optimises anything (GCC 12: 6 to start, 1 for what all code
// begins with, 11 for its tables of instructions, 2 to assemble) and 1 to 2 ms per KiB of kernels.
#define BERTH_JOINED_MIN_BYTES (16 << 10)  // less costs more in starting than it gains in parallel
#define BERTH_JOINED_MAX_BYTES (48 << 10)  // more leaves cores idle at the end
#define BERTH_JOINED_PARTS 4               // that a program is split into, within these limits

typedef struct berth_joined {
    berth_toolchain_unit *units;
    uint32_t *members;  // unit: how many of the given ones it has
    uint32_t count;
    uint32_t *of;  // given unit: its index in `units`
} berth_joined;

// What is joined follows from the sources alone, neither from the number of cores nor from what a
// cache holds: the same program has the same bytes. Inside berth_arena_try.
berth_joined berth_toolchain__join(const berth_toolchain_unit *units, uint32_t count,
                                   berth_arena *arena);

#endif  // BERTH_COMPILER_TOOLCHAIN_JOIN_H_
