// Devices that are opened once for the sessions of several programs: those of a model's segments.
//
//   berth_open_devices devices = {.arena = arena};
//   BERTH_TRY(berth_open_devices_session(&devices, program, scratch, &session));
//   ...
//   berth_open_devices_close(&devices);   // after the sessions
#ifndef BERTH_EXECUTOR_OPEN_DEVICES_H_
#define BERTH_EXECUTOR_OPEN_DEVICES_H_

#include "executor/session.h"
#include "executor/workspaces.h"

typedef struct berth_open_device berth_open_device;

// All zero but for what the caller sets = none is open.
typedef struct berth_open_devices {
    berth_arena *arena;        // where what is kept about them lies
    uint32_t thread_count;     // of processors; 0 = all cores
    const char *cache_folder;  // of kernels that drivers compile; NULL = they are not kept
    bool profile;              // sessions record when their steps ran
    bool binds;                // of sessions (berth_session_options)
    bool verified;             // programs have passed berth_program_verify
    berth_open_device *first;
    berth_workspaces workspaces;  // of all sessions
    berth_workspaces blocks;      // of values in memories of devices
} berth_open_devices;

// Opens a session of the program on these devices, of whose sessions one may run at a time; devices that it needs and that are not open yet are
// opened. `base`: with whom it shares code and constants, NULL = nobody (berth_session_options.base).
// `scratch` is needed for the time of the call. Not inside berth_arena_try of either arena.
// Errors: those of berth_session_open and of devices.
BERTH_MUST_USE berth_status berth_open_devices_session(berth_open_devices *devices,
                                                       const berth_program *program,
                                                       berth_session *base, berth_arena *scratch,
                                                       berth_session **out_session);
void berth_open_devices_close(berth_open_devices *devices);

#endif  // BERTH_EXECUTOR_OPEN_DEVICES_H_
