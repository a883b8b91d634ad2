// Sessions of several programs that run in turns: they use the same devices and threads, and in each memory one
// workspace that is as large as the largest of theirs. Constants, inputs and outputs are each one's own.
//
//   BERTH_TRY(berth_turns_open(allocator, programs, 2, NULL, sessions));
//   BERTH_TRY(berth_session_run(sessions[0], -1));   // a run waits for that of another one
//   ...
//   berth_session_close(sessions[0]);                // in any order; the last one frees what they share
//
// Pools in which several devices of one program work (shared memory) stay each session's own.
#ifndef BERTH_EXECUTOR_TURNS_H_
#define BERTH_EXECUTOR_TURNS_H_

#include "executor/session.h"

typedef struct berth_turns berth_turns;

// Opens a session of each program. Bindings are for the programs that have a device of the name.
//   ownership: as berth_session_open; programs outlive their own session only
//   errors:    INVALID_ARGUMENT no program, one with bindings that no program has, or options with a base;
//              those of berth_session_open, after which no session is open
//   threads:   sessions may be used by several threads, one each: runs wait for each other, within their timeout
BERTH_MUST_USE berth_status berth_turns_open(berth_allocator allocator,
                                             const berth_program *const *programs, uint32_t count,
                                             const berth_session_options *options,
                                             berth_session **out_sessions);

// Bytes of workspace that they have together.
uint64_t berth_turns_workspace_bytes(berth_session *session);

#endif  // BERTH_EXECUTOR_TURNS_H_
