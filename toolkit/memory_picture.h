// A picture of where the values of a planned model lie: offset against step, a panel for each pool.
#ifndef BERTH_TOOLKIT_MEMORY_PICTURE_H_
#define BERTH_TOOLKIT_MEMORY_PICTURE_H_

#include "base/str.h"
#include "toolkit/model.h"

// Appends an SVG document (memory/plot.h): workspaces with the names of values, the steps of the program as
// times, and the step at which most is live. Constants, inputs and outputs, which are there all the time, have
// no panel. Linear in the values. Inside berth_arena_try of the arena of `out`.
//   errors: FAILED_PRECONDITION the model has no intermediate values
BERTH_MUST_USE berth_status berth_memory_picture_svg(const berth_model *model, berth_strbuf *out);

#endif  // BERTH_TOOLKIT_MEMORY_PICTURE_H_
