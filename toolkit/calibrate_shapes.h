// The built-in set of calibration as a module (private to toolkit/).
#ifndef BERTH_TOOLKIT_CALIBRATE_SHAPES_H_
#define BERTH_TOOLKIT_CALIBRATE_SHAPES_H_

#include "ir/graph/graph.h"

// @main with an input, one operation and an output per row of the set; weights are random. A
// berth_model_builder (toolkit/model.h).
BERTH_MUST_USE berth_status berth_toolkit__calibrate_shapes(void *user, berth_arena *arena,
                                                            berth_module **out_module);

#endif  // BERTH_TOOLKIT_CALIBRATE_SHAPES_H_
