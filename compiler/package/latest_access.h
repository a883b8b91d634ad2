// Who touched bytes of a pool last: for each key (a queue, a device) the latest step that read, and
// the latest that wrote, any byte of a range. Steps are recorded in ascending order. A segment tree
// over the intervals between the ends of all ranges (Bentley 1977), one per key and kind of access,
// made when it is first used: recording and asking take O(log ranges).
#ifndef BERTH_COMPILER_PACKAGE_LATEST_ACCESS_H_
#define BERTH_COMPILER_PACKAGE_LATEST_ACCESS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct berth_byte_range {
    uint64_t begin_bytes, end_bytes;
} berth_byte_range;

typedef struct berth_latest_access berth_latest_access;

// For ranges that are known from the start, inside berth_arena_try; `ranges` is read here only.
berth_latest_access *berth_latest_access_create(berth_arena *arena, const berth_byte_range *ranges,
                                                uint32_t range_count, uint32_t key_count);

// `range` is one of those given. `time` is not less than any recorded before, and not 0.
void berth_latest_access_record(berth_latest_access *latest, uint32_t key, bool write,
                                berth_byte_range range, uint32_t time);

// The keys that anything was recorded for, in the order of the first time.
const uint32_t *berth_latest_access_keys(const berth_latest_access *latest, uint32_t *out_count);

// The latest time recorded for a range that overlaps this one; 0: none.
uint32_t berth_latest_access_find(const berth_latest_access *latest, uint32_t key, bool write,
                                  berth_byte_range range);

#endif  // BERTH_COMPILER_PACKAGE_LATEST_ACCESS_H_
