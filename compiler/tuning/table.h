// Decisions that were measured to be faster than the policy's, as JSON lines (`berth tune`):
//
//   {"target": {...}, "function": "0f3a...", "name": "k4_conv_relu.3", "decisions": ["rows=7"],
//    "ns": 81000, "policy_ns": 93000, "runs": 40}
//
// A record is for a device, described by the culled target (berth_target_culled), and the plain
// definition of a function, by its structural hash. Of records with both alike the one that gains most
// stays. Decisions are checked when they are used: what is not possible there is an error.
#ifndef BERTH_COMPILER_TUNING_TABLE_H_
#define BERTH_COMPILER_TUNING_TABLE_H_

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"

typedef struct berth_tuned_record {
    const char *target;
    berth_hash128 function;
    const char *name;              // of a function that it was measured for; says nothing else
    const char *const *decisions;  // an entry per nest: those that differ from the policy's
    uint32_t nest_count;
    double ns, policy_ns;  // of the function's kernels, medians of interleaved runs
    uint32_t runs;
    bool trial;  // only tried: where it is not possible the policy decides, and the choice says so
} berth_tuned_record;

typedef struct berth_tuned_table berth_tuned_table;

berth_tuned_table *berth_tuned_table_create(berth_arena *arena);
// Copies the record. One of the same key stays where it gains more (policy_ns / ns).
void berth_tuned_table_add(berth_tuned_table *table, const berth_tuned_record *record);
// NULL: there is none. O(1) on average.
const berth_tuned_record *berth_tuned_table_find(const berth_tuned_table *table, const char *target,
                                                 berth_hash128 function);
uint32_t berth_tuned_table_count(const berth_tuned_table *table);
const berth_tuned_record *berth_tuned_table_at(const berth_tuned_table *table, uint32_t index);

// Adds the records of a file.
//   errors: NOT_FOUND, IO; INVALID_ARGUMENT what is wrong, with file and line
BERTH_MUST_USE berth_status berth_tuned_table_read(berth_tuned_table *table, const char *path);
// All records, sorted by target and function, so that files compare.
BERTH_MUST_USE berth_status berth_tuned_table_write(const berth_tuned_table *table,
                                                    const char *path);

#endif  // BERTH_COMPILER_TUNING_TABLE_H_
