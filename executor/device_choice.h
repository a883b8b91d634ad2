// Which of a driver's devices serves a device of a program, and how it is opened. A driver's n-th
// device is virtual device n of its kind; but CPU devices are all made of one machine's cores, and
// share these out: by "cpuset" of their targets, or, where several run kernels, in order, as many as
// "cores" says (devices/cpu/topology.h, berth_cpu_part_choose). One alone has the threads that its
// target has cores, on any of them, where nothing else is asked for. Drivers of other kinds get the
// attributes that only their kind has.
#ifndef BERTH_EXECUTOR_DEVICE_CHOICE_H_
#define BERTH_EXECUTOR_DEVICE_CHOICE_H_

#include "artifact/program.h"
#include "base/status.h"

typedef struct berth_device_choice {
    uint32_t ordinal;
    const char *attributes;  // as berth_device_options has them; NULL = none
} berth_device_choice;

// Inside berth_arena_try of `arena`, where the result's text goes; works with memory of `allocator`.
// Errors: INVALID_ARGUMENT a device's target is none; OUT_OF_RANGE too many share; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_device_choose(berth_allocator allocator,
                                                const berth_program *program, uint32_t device,
                                                berth_arena *arena,
                                                berth_device_choice *out_choice);

// Whether two devices of one kind are the same.
bool berth_device_choice_equal(const berth_device_choice *a, const berth_device_choice *b);

#endif  // BERTH_EXECUTOR_DEVICE_CHOICE_H_
