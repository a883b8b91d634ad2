// How a model would run on the machine that a target describes, which need not be here (libberth-compiler): its real
// schedule as discrete events, with the times that the cost model predicts. Nothing is compiled or run.
//
//   berth_simulation_info *simulation;
//   berth_simulation_load load = {sizeof(load), 100, 2, 30.0};      // 100 requests, 30 per second, 2 at a time
//   berth_status status = berth_compiler_simulate_file(compiler, "digits.onnx", &load, &simulation);
//   if (!status) printf("p90 %f ms\n", berth_simulation_info_latency_ns(simulation, 0.9) / 1e6);
//   berth_simulation_info_free(simulation);
//
// What was simulated does not change; any thread may look at it. Texts and facts live as long as it.
#ifndef BERTH_SIMULATE_H_
#define BERTH_SIMULATE_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_simulation_info berth_simulation_info;

// Zero everything, set size_bytes, then the rest. Later versions may add members at the end.
typedef struct berth_simulation_load {
    size_t size_bytes;  // sizeof(berth_simulation_load)
    uint32_t requests;  // 0 = 1
    uint32_t streams;   // sessions, each running one request at a time; 0 = 1
    double
        requests_per_s;  // that come, evenly, and wait where they must; 0 = all are there at the start
} berth_simulation_load;

// Plans a model with the compiler's options and simulates it; `load` NULL = one request.
//   ownership: the caller frees it; the compiler may go before it
//   errors:    those of berth_compiler_plan_file; INVALID_ARGUMENT a built program, which says nothing of its
//              kernels' work; OUT_OF_RANGE more events than can be followed
BERTH_API BERTH_MUST_USE berth_status
berth_compiler_simulate_file(berth_compiler *compiler, const char *path,
                             const berth_simulation_load *load, berth_simulation_info **out_info);
BERTH_API void berth_simulation_info_free(berth_simulation_info *info);  // NULL is fine

// Name of the model ("" = none), the requests and streams that were simulated, when the last request is done.
BERTH_API const char *berth_simulation_info_name(const berth_simulation_info *info);
BERTH_API uint32_t berth_simulation_info_request_count(const berth_simulation_info *info);
BERTH_API uint32_t berth_simulation_info_stream_count(const berth_simulation_info *info);
BERTH_API double berth_simulation_info_end_ns(const berth_simulation_info *info);
// The latency that a share of the requests, 0 to 1, does not exceed: 0.5 = the median.
BERTH_API double berth_simulation_info_latency_ns(const berth_simulation_info *info, double share);

// A step of a request. Later versions may add members at the end.
typedef struct berth_simulation_event {
    uint32_t request;
    const char *step, *op;  // nodes of the model, and their operators
    const char *device;     // of the program: "opencl:0"
    const char *resource;   // what it keeps busy
    int is_copy;
    double start_ns, end_ns;  // since the first request came
} berth_simulation_event;

// What computes or copies, one step at a time. Later versions may add members at the end.
typedef struct berth_simulation_resource {
    const char *name;  // "cpu:0, opencl:0": devices that compute with the same thing
    double busy_ns;
} berth_simulation_resource;

// A memory of the target. Later versions may add members at the end.
typedef struct berth_simulation_memory {
    const char *name;
    double size_bytes;        // of the pools of all streams
    uint64_t capacity_bytes;  // 0 = unknown
    int is_followed;          // not 0: what follows is known (one stream, not too many steps)
    double fixed_bytes;       // of constants, inputs and results, which stay
    double peak_bytes;        // the most of intermediate values at a time; 0 = there are none
    double peak_ns;           // when that is reached first
} berth_simulation_memory;

BERTH_API uint32_t berth_simulation_info_event_count(const berth_simulation_info *info);
BERTH_API uint32_t berth_simulation_info_resource_count(const berth_simulation_info *info);
BERTH_API uint32_t berth_simulation_info_memory_count(const berth_simulation_info *info);
// Fills in event `index`, the first `size_bytes` (sizeof(berth_simulation_event)) of it: in the order of requests, and of
// the program's steps in each. Errors: OUT_OF_RANGE no such event; INVALID_ARGUMENT a size that is none.
BERTH_API BERTH_MUST_USE berth_status
berth_simulation_info_get_event(const berth_simulation_info *info, uint32_t index,
                                berth_simulation_event *out_event, size_t size_bytes);
// NULL when there is no such index.
BERTH_API const berth_simulation_resource *
berth_simulation_info_resource(const berth_simulation_info *info, uint32_t index);
BERTH_API const berth_simulation_memory *
berth_simulation_info_memory(const berth_simulation_info *info, uint32_t index);

// Writes the timeline as an SVG document, or as a trace that Perfetto and Chrome open ("-" = stdout). Errors: IO.
BERTH_API BERTH_MUST_USE berth_status
berth_simulation_info_write_svg(const berth_simulation_info *info, const char *path);
BERTH_API BERTH_MUST_USE berth_status
berth_simulation_info_write_trace(const berth_simulation_info *info, const char *path);

BERTH_END

#endif  // BERTH_SIMULATE_H_
