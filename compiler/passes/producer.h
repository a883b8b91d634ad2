// Where an elementwise producer is computed inside the convolution or matrix product that reads it:
// an estimate in bytes and operations, from what the schedules do.
//
// Fused, the value is neither written to memory nor read from it again (8 bytes per f32 element),
// and there is one dispatch less. The price is that its operations run once per time that the
// kernel reads an element, R times:
//
//   winograd_input      R = (m + 2)^2 / m^2: tiles of m + 2 overlap by 2
//   processor cores     R = window elements per input element. Rows of a register tile are computed
//                       into a panel that all columns of weights read (schedule/cpu_panel.c), so
//                       the weights must stay in the cache: each panel reads them all
//   other devices       R = window elements * outputs / 64: a work-group computes its part while it
//                       stages the tile in local memory (schedule/local_tile.c)
#ifndef BERTH_COMPILER_PASSES_PRODUCER_H_
#define BERTH_COMPILER_PASSES_PRODUCER_H_

#include "ir/graph/graph.h"
#include "target/target.h"

typedef struct berth_producer_work {
    double flops;           // per element
    double extra_operands;  // as large as the value, beyond the first one
} berth_producer_work;

// Adds what elementwise operation `op` costs per element of its result.
void berth_producer_add_work(berth_producer_work *work, const berth_module *module,
                             const berth_graph *graph, const berth_op *op);

// Whether `reader` should compute its first operand itself. False for operations other than those
// above and for shapes that their schedules do not cover. O(1).
bool berth_producer_pays(const berth_module *module, const berth_graph *graph,
                         const berth_multi_target *target, berth_op_id reader,
                         const berth_producer_work *work);

// Whether `reader`, a product of a few rows, should read its second operand from what `transposition`
// has before it, which copies it for fewer uses than make up for that: sums along the rows of that
// operand are as fast as what tiles do (schedule/row_lanes.c). O(1).
bool berth_producer_reads_across(const berth_module *module, const berth_graph *graph,
                                 const berth_multi_target *target, berth_op_id reader,
                                 berth_op_id transposition);

#endif  // BERTH_COMPILER_PASSES_PRODUCER_H_
