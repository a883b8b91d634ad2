// Workspace that sessions have together which never run at the same time, as those of a virtual machine's
// segments: its content is undefined between runs, so the largest need is all that is allocated, and a session
// that is opened for new shapes finds memory that is warm.
//
//   berth_session_options.workspaces, or berth_open_devices (executor/open_devices.h), which has its own
//
// And, in lists of their own, blocks of values that come and go in such runs, in memories of devices: sizes are rounded to
// an eighth of a power of two, and what is given back is there for the next value of that size.
//
//   berth_workspaces blocks = {.of_values = true};
//   BERTH_TRY(berth_workspaces_take(&blocks, device, memory, size_bytes, &buffer));
//   berth_workspaces_give(&blocks, buffer);
//   berth_workspaces_end_run(&blocks);
//
// Thread-compatible.
#ifndef BERTH_EXECUTOR_WORKSPACES_H_
#define BERTH_EXECUTOR_WORKSPACES_H_

#include <stdatomic.h>

#include "devices/device.h"

typedef struct berth_workspace berth_workspace;

// All zero = nothing is allocated.
typedef struct berth_workspaces {
    berth_workspace *first;
    bool of_values;
    // Any thread may look at these, and set the limit: of values, in each memory; 0 = none.
    _Atomic uint64_t limit_bytes, reserved_bytes, made_count;
} berth_workspaces;

// Before the pools of a session are taken: two pools of one session get different buffers.
void berth_workspaces_begin(berth_workspaces *workspaces);
// A buffer of at least `size_bytes` in a memory of the device, which stays the workspaces'. Where those there are
// too small, the new one is half as large again as the largest, so that growing needs take a few buffers. Errors:
// OUT_OF_MEMORY the limit; those of berth_buffer_allocate.
BERTH_MUST_USE berth_status berth_workspaces_take(berth_workspaces *workspaces,
                                                  berth_device *device, uint32_t memory,
                                                  uint64_t size_bytes, berth_buffer **out_buffer);
// Of values. After a run blocks that the last ones did not take go back to their devices.
void berth_workspaces_give(berth_workspaces *workspaces, berth_buffer *buffer);  // NULL is fine
void berth_workspaces_end_run(berth_workspaces *workspaces);
uint64_t berth_workspaces_bytes(const berth_workspaces *workspaces);
void berth_workspaces_close(
    berth_workspaces *workspaces);  // after the sessions, before the devices

#endif  // BERTH_EXECUTOR_WORKSPACES_H_
