// Constants that are read again in every run, for memories that cannot hold them all (private to
// compiler/).
//
// A streamed constant stays in a store (BERTH_POOL_STORE: the program's file, or host memory). A copy
// on a queue of its own brings it into workspace before the steps that read it, while earlier kernels
// run; behind them its bytes serve others. So to the memory plan a streamed constant is one more value
// with a short life, and to the queues one more copy.
#ifndef BERTH_COMPILER_PACKAGE_STREAM_H_
#define BERTH_COMPILER_PACKAGE_STREAM_H_

#include "compiler/package/package.h"

// Adds what streaming costs to the predicted time of the program and the plan.
void berth_packager__add_streaming_time(const berth_packager *packager, berth_program *program);

// A stay of a constant in workspace: for steps [first, last] of one operation, its copy placed right
// before step `start`.
typedef struct berth_stream_load {
    uint32_t weight;
    uint32_t first, last;
    uint32_t start;
} berth_stream_load;

// A constant of the memory that may be streamed.
typedef struct berth_stream_weight {
    uint32_t storage;
    uint64_t size_bytes;  // with alignment
    uint32_t load_count;
    uint32_t first;  // step that reads it
    bool resident;
    double load_ns;
} berth_stream_weight;

// What is to be decided for one memory; plain data.
typedef struct berth_stream_problem {
    berth_arena *arena;   // scratch
    uint64_t room_bytes;  // for values and these constants
    uint32_t step_count;
    const uint64_t *live;   // per step: bytes of values
    const double *step_ns;  // per step
    berth_stream_weight *weights;
    uint32_t weight_count;
    berth_stream_load *loads;  // in order of `first`
    uint32_t load_count;
    double burden;  // time that a load takes from the kernels, as a part of its own: on processor
                    // cores, a core that copies does not compute
} berth_stream_problem;

// Decides `resident` of the weights and `start` of the loads of those that are not, for the least
// predicted time found, of those nearly as fast for the fewest bytes that are read; a simulation of two queues that work in order, one for kernels and one for
// loads, tells it. False: the room does not do for any plan.
//   complexity: O(plans * (steps + weights log weights + what loads are ahead of their uses))
bool berth_stream_choose(berth_stream_problem *problem, double *out_ns);

// Per step: what is needed when nothing is resident and nothing read ahead. In the problem's arena.
uint64_t *berth_stream_needed(const berth_stream_problem *problem);

// The plan that needs the least: nothing resident, no load before its use. Returns its time.
double berth_stream_choose_least(berth_stream_problem *problem);

#endif  // BERTH_COMPILER_PACKAGE_STREAM_H_
