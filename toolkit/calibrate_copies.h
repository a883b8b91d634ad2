// What a copy between the host and a device takes where the one has to wait for the other (private to
// toolkit/): the bytes, and waking who waits. That is most of it for small ones.
#ifndef BERTH_TOOLKIT_CALIBRATE_COPIES_H_
#define BERTH_TOOLKIT_CALIBRATE_COPIES_H_

#include "compiler/cost/table.h"
#include "executor/session.h"

// @main with one operation on `*(const int64_t *)user` floats, which come from the host and go back.
// A berth_model_builder (toolkit/model.h).
BERTH_MUST_USE berth_status berth_toolkit__calibrate_copy_module(void *user, berth_arena *arena,
                                                                 berth_module **out_module);

// Runs such a program and adds a copy of each direction: from the start of a run to that of its first
// kernel, and from the end of the last kernel to that of the run, medians over the runs. Of 0 bytes
// where the program copies nothing: only the waking. `session` profiles.
//   host, device: targets of the two
BERTH_MUST_USE berth_status berth_toolkit__calibrate_copy(const berth_program *program,
                                                          berth_session *session,
                                                          const berth_target *host,
                                                          const berth_target *device,
                                                          berth_cost_table *table);

// Whether the table has copies from the host to the device. Inside berth_arena_try of `arena`.
bool berth_toolkit__has_copies(berth_arena *arena, const berth_cost_table *table,
                               const berth_target *host, const berth_target *device);

#endif  // BERTH_TOOLKIT_CALIBRATE_COPIES_H_
