// Workspace that sessions have together which never run at the same time, as those of a virtual machine's
// segments: its content is undefined between runs, so the largest need is all that is allocated, and a session
// that is opened for new shapes finds memory that is warm.
//
//   berth_session_options.workspaces, or berth_open_devices (executor/open_devices.h), which has its own
//
// Thread-compatible.
#ifndef BERTH_EXECUTOR_WORKSPACES_H_
#define BERTH_EXECUTOR_WORKSPACES_H_

#include "devices/device.h"

typedef struct berth_workspace berth_workspace;

// All zero = nothing is allocated.
typedef struct berth_workspaces {
    berth_workspace *first;
} berth_workspaces;

// Before the pools of a session are taken: two pools of one session get different buffers.
void berth_workspaces_begin(berth_workspaces *workspaces);
// A buffer of at least `size_bytes` in a memory of the device, which stays the workspaces'. Where those there are
// too small, the new one is half as large again as the largest, so that growing needs take a few buffers. Errors:
// those of berth_buffer_allocate.
BERTH_MUST_USE berth_status berth_workspaces_take(berth_workspaces *workspaces,
                                                  berth_device *device, uint32_t memory,
                                                  uint64_t size_bytes, berth_buffer **out_buffer);
uint64_t berth_workspaces_bytes(const berth_workspaces *workspaces);
void berth_workspaces_close(
    berth_workspaces *workspaces);  // after the sessions, before the devices

#endif  // BERTH_EXECUTOR_WORKSPACES_H_
