// Measured times of kernels and copies: what `berth calibrate` writes and plans read. A file holds
// one JSON object per line:
//
//   {"target": {"kind": "cpu", ...}, "class": "conv", "work": "conv{...}(...)", "flops": 231211008,
//    "bytes": 1753088, "ns": 4210000, "runs": 20}                                      a kernel
//   {"target": {"kind": "opencl", ...}, "from": {"kind": "cpu", ...}, "bytes": 65536, "ns": 21000,
//    "runs": 20}                                                          a copy to `target`
//
// A kernel's line with "by": "model" has the time that a timing model of the device says (rules.h);
// runs are 1. Such times count for equal work only, and where nothing was measured.
//
// "target" is culled (berth_target_culled): what kernels are made for and run on, and nothing that
// does not matter to them. "work" is a key of compiler/cost/work.h. "ns" is a median over the runs, from
// when the kernel could start to its end: what a launch costs is in it. Other fields are passed over.
//
//   berth_cost_table *table = berth_cost_table_create(arena);
//   BERTH_TRY(berth_cost_table_read(table, "costs.jsonl"));
//   berth_cost_device *device = berth_cost_table_device(table, target);
//   double ns = berth_cost_device_ns(device, &work, &figure);
#ifndef BERTH_COMPILER_COST_TABLE_H_
#define BERTH_COMPILER_COST_TABLE_H_

#include "compiler/cost/fit.h"
#include "compiler/cost/work.h"
#include "planner/planner.h"

typedef struct berth_cost_record {
    const char *target;  // culled
    const char *from;    // of a copy: the other end's; NULL = a kernel
    const char *kind;    // of work: its class; "" for copies
    const char *work;    // key; "" for copies
    double flops, bytes;
    double ns;  // > 0
    uint64_t runs;
    bool modelled;  // by a timing model: no measurement
} berth_cost_record;

typedef struct berth_cost_table berth_cost_table;    // arena memory; thread-compatible
typedef struct berth_cost_device berth_cost_device;  // what a table knows of one kind of device

// Empty. Inside berth_arena_try of the arena, like all functions that take a table and give no
// status.
berth_cost_table *berth_cost_table_create(berth_arena *arena);
// Adds a copy of a record. One of the same work on the same target is merged with it: the mean,
// weighted by runs; a record that is there already, to the last digit, counts once. What was measured
// takes the place of what a model said, and the latest model that of an earlier one. Between the
// first berth_cost_table_device and the end nothing may be added.
void berth_cost_table_add(berth_cost_table *table, const berth_cost_record *record);
// Adds what `other` has and `table` does not: older figures of other work.
void berth_cost_table_add_missing(berth_cost_table *table, const berth_cost_table *other);
berth_arena *berth_cost_table_arena(const berth_cost_table *table);
uint32_t berth_cost_table_count(const berth_cost_table *table);
const berth_cost_record *berth_cost_table_at(const berth_cost_table *table, uint32_t index);

// Adds what a file holds. Entry points, not inside berth_arena_try.
//   errors: NOT_FOUND, IO; INVALID_ARGUMENT ("FILE:LINE: what")
BERTH_MUST_USE berth_status berth_cost_table_read(berth_cost_table *table, const char *path);
// Writes all records, sorted, so that equal tables are equal files; complete or not at all.
BERTH_MUST_USE berth_status berth_cost_table_write(const berth_cost_table *table, const char *path);

// What the table knows of a device; never NULL.
berth_cost_device *berth_cost_table_device(berth_cost_table *table, const berth_target *target);
// Whether anything was measured.
bool berth_cost_device_is_measured(const berth_cost_device *device);
// The time of equal work. Negative where there is none.
double berth_cost_device_known_ns(berth_cost_device *device, const berth_work *work,
                                  berth_cost_figure *out_figure);
// The measured time of equal work, else one interpolated from similar work on the device: the line
// through its class (cost_fit.h; through all of the device where the class has too few points),
// corrected by how far neighbours in flops and bytes are from that line (kernel regression: Nadaraya,
// "On estimating regression", 1964). Negative where nothing is known of the device.
double berth_cost_device_ns(berth_cost_device *device, const berth_work *work,
                            berth_cost_figure *out_figure);
// A copy between the memories of two devices, in this direction. False where none was measured.
bool berth_cost_table_copy(berth_cost_table *table, const berth_target *from,
                           const berth_target *to, double bytes, double *out_ns);

#endif  // BERTH_COMPILER_COST_TABLE_H_
