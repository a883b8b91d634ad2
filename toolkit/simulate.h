// A model's program on the machine that its target describes, which may be absent: the steps of the
// real schedule as discrete events (planner/simulate.h), with the cost model's times.
#ifndef BERTH_TOOLKIT_SIMULATE_H_
#define BERTH_TOOLKIT_SIMULATE_H_

#include "planner/simulate.h"
#include "toolkit/model.h"

// Arena memory; borrows from the model.
typedef struct berth_simulation {
    const berth_model *model;
    const berth_sim_task *tasks;  // a step of the program each
    const char **resources;       // names: what computes ("cpu:0, opencl:0"), what copies
    uint32_t resource_count;
    berth_sim_load load;
    berth_sim_result result;
    double *sorted_latency_ns;  // [load.requests]
    double *memory_bytes;       // per memory of the target: pools of all streams
} berth_simulation;

// Simulates a model that was loaded (compile.plan_only will do).
//   errors: INVALID_ARGUMENT a built program (it says nothing of its kernels' work); those of
//           berth_simulate
BERTH_MUST_USE berth_status berth_model_simulate(berth_arena *arena, const berth_model *model,
                                                 const berth_sim_load *load,
                                                 berth_simulation *out_simulation);
// Chrome trace events (base/trace.h): a track per resource. Errors: IO.
BERTH_MUST_USE berth_status berth_simulation_write_trace(berth_arena *arena,
                                                         const berth_simulation *simulation,
                                                         const char *path);
// Adds the timeline as SVG. Inside berth_arena_try of the buffer's arena.
void berth_simulation_draw(const berth_simulation *simulation, berth_strbuf *out);

#endif  // BERTH_TOOLKIT_SIMULATE_H_
