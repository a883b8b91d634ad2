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
    // [memory_count] How many bytes hold intermediate values at a time, from the first step that touches
    // them to the last. NULL with several streams, and where it would take too long.
    struct berth_simulated_memory *memories;
} berth_simulation;

typedef struct berth_simulated_memory {
    double fixed_bytes;  // of constants, inputs and results, which are there all the time
    double *time_ns;     // [count] rising
    double *bytes;       // [count] of intermediate values, from then on
    uint32_t count;      // 0 = there are none
    double peak_bytes;   // the most of these
    double peak_ns;      // when that is reached first
} berth_simulated_memory;

// Fills simulation->memories. O(steps and tensors of all requests times the places where tensors of a
// pool begin or end). Inside berth_arena_try.
void berth_simulation__follow_memory(berth_arena *arena, berth_simulation *simulation);
// The memory of the target that a pool of the program lies in.
uint32_t berth_simulation__memory_of(const berth_multi_target *target,
                                     const berth_program_pool *pool);

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
