#include "compiler/cost/roofline.h"

#include <math.h>

// What generated kernels usually reach of their device's peaks of operations and of bandwidth.
static const double usual_efficiency = 0.7;
// Kernels that a driver compiles for processor cores (OpenCL, Vulkan): its compiler has no register
// tiles as the C compiler's are, and copies to and from groups.
static const double efficiency_through_a_driver = 0.5;
// Plain C (executor aot) has no vectors but those that a C compiler finds: a tenth of the peak (docs/costs.md,
// "What has a time"), and no less than kernels reach without any.
static const double efficiency_of_plain_c = 0.1;

// Work below this takes one core of a processor: other threads would come too late.
static const double least_parallel_ns = 3000;
// Until a processor's other threads have begun, and all are done.
static const double fork_join_ns = 2000;

// A roofline of some of the cores.
typedef struct machine {
    const berth_target *target;
    double cores;
    double efficiency;
    bool plain_c;               // no vectors but those that a C compiler finds, on one thread
    double memory_bandwidth;    // bytes/s
    double constant_bandwidth;  // of the memory that constants are in
    bool apart;                 // constants have a memory of their own
} machine;

static double core_count(const berth_target *target) {
    int64_t count = berth_device_kind_is_host(target->kind) ? target->cores : target->compute_units;
    return count > 0 ? (double)count : 1;
}

// Bytes/s of the smallest cache that holds so many, and no less than memory's. From the second level
// a core loads nearly a register in a cycle; half of that where bytes are written, too, for then lines
// are fetched and evicted beside. From the last level, which all share, it is 8 bytes.
static double bandwidth_for(const machine *m, double bytes, bool only_read,
                            double memory_bandwidth) {
    const berth_target *on = m->target;
    if (on->core_bandwidth_bytes_per_s > 0)  // a few cores may not draw all that memory has
        memory_bandwidth = fmin(memory_bandwidth, m->cores * on->core_bandwidth_bytes_per_s);
    double register_bytes = (double)on->vector_bits / 8;
    double cycles = m->cores * (double)on->clock_hz * m->efficiency;
    if (!berth_target_is_cores(on)) return memory_bandwidth;
    if (bytes <= m->cores * (double)on->l2_bytes)
        return fmax(cycles * register_bytes / (only_read ? 1 : 2), memory_bandwidth);
    if (bytes <= (double)on->l3_bytes) return fmax(cycles * 8, memory_bandwidth);
    return memory_bandwidth;
}

// Whether a processor's caches keep so many bytes from who writes them to who reads them.
static bool is_cached(const machine *m, double bytes) {
    return berth_target_is_cores(m->target) &&
           bytes <= fmax(m->cores * (double)m->target->l2_bytes, (double)m->target->l3_bytes);
}

static double memory_ns(const machine *m, double bytes, berth_cost_constants constants) {
    double read = fmin(constants.bytes, bytes), rest = bytes - read;
    double held = fmax(constants.run_bytes, read);
    double bandwidth = bandwidth_for(m, rest, false, m->memory_bandwidth);
    double constant_bandwidth =
        m->apart ? m->constant_bandwidth : bandwidth_for(m, held, true, m->memory_bandwidth);
    return ((bandwidth > 0 ? rest / bandwidth : 0) +
            (constant_bandwidth > 0 ? read / constant_bandwidth : 0)) *
           1e9;
}

static double on_cores_ns(const machine *m, const berth_work *work,
                          berth_cost_constants constants) {
    double share = m->cores / core_count(m->target);
    bool dots = !m->plain_c || berth_dtype_size_bytes(work->dtype) > 1;  // of 8-bit integers
    double peak = berth_target_peak(m->target, dots ? work->dtype : BERTH_DTYPE_F32) * share;
    double compute_ns = work->flops / (peak * m->efficiency) * 1e9;
    return fmax(compute_ns, memory_ns(m, work->bytes, constants));
}

static double efficiency_on(const berth_target *on, bool plain_c) {
    double lanes = fmax(1, (double)on->vector_bits / 32);
    if (plain_c) return fmax(efficiency_of_plain_c, usual_efficiency / lanes);
    bool driver = berth_target_is_cores(on) && !berth_device_kind_is_host(on->kind);
    return driver ? efficiency_through_a_driver : usual_efficiency;
}

static machine machine_of(const berth_multi_target *target, uint32_t device) {
    const berth_target_device *on = &target->devices[device];
    const berth_target *facts = on->target;
    bool plain_c = target->executor == BERTH_EXECUTOR_AOT && berth_device_kind_is_host(facts->kind);
    double efficiency = efficiency_on(facts, plain_c);
    // The memory's figure is that of kernels.
    double of_memory = plain_c ? 1 : efficiency / usual_efficiency;
    const berth_target_memory *memories = target->memories;
    return (machine){.target = facts,
                     .cores = plain_c ? 1 : core_count(facts),
                     .efficiency = efficiency,
                     .plain_c = plain_c,
                     .memory_bandwidth = memories[on->own_memory].bandwidth_bytes_per_s * of_memory,
                     .constant_bandwidth =
                         memories[on->constant_memory].bandwidth_bytes_per_s * of_memory,
                     .apart = on->constant_memory != on->own_memory};
}

double berth_cost_memory_ns(const berth_multi_target *target, uint32_t device,
                            const berth_work *work, berth_cost_constants constants) {
    machine m = machine_of(target, device);
    double bandwidth = target->memories[target->devices[device].own_memory].bandwidth_bytes_per_s;
    double read = fmin(constants.bytes, work->bytes), rest = work->bytes - read;
    double bytes = is_cached(&m, rest) ? 0 : rest;
    if (!m.apart && !is_cached(&m, fmax(constants.run_bytes, read))) bytes += read;
    return bandwidth > 0 ? bytes / bandwidth * 1e9 : 0;
}

double berth_cost_roofline_ns(const berth_multi_target *target, uint32_t device,
                              const berth_work *work, berth_cost_constants constants) {
    machine m = machine_of(target, device);
    double ns = on_cores_ns(&m, work, constants);
    if (berth_device_kind_is_host(m.target->kind) && m.cores > 1) {
        m.cores = 1;
        double alone_ns = on_cores_ns(&m, work, constants);
        ns = alone_ns < least_parallel_ns ? alone_ns : fmin(alone_ns, ns + fork_join_ns);
    }
    return ns + (double)m.target->dispatch_ns;
}
