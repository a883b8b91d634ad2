// Libraries beside our kernels (compiler/libraries): every operation of a model that a library of the
// target could compute, each kind once, as a small program of our kernels and as one that calls the
// library. The two run in turn, and their times go into a table of costs.
#ifndef BERTH_TOOLKIT_CALIBRATE_LIBRARIES_H_
#define BERTH_TOOLKIT_CALIBRATE_LIBRARIES_H_

#include "toolkit/calibrate.h"

// Nothing to do for targets without libs. `path` NULL = the built-in shapes.
//   errors: those of berth_calibrate; UNAVAILABLE the library is not here (the message names Debian's
//           package)
BERTH_MUST_USE berth_status berth_toolkit__calibrate_libraries(
    const char *path, const berth_calibrate_options *options, const berth_multi_target *target,
    berth_arena *arena, berth_cost_table *table);

#endif  // BERTH_TOOLKIT_CALIBRATE_LIBRARIES_H_
