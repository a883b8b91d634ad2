// Pictures of a plan: the graph coloured by device (Graphviz dot), and devices against predicted
// time (SVG).
#ifndef BERTH_TOOLKIT_PLAN_PICTURE_H_
#define BERTH_TOOLKIT_PLAN_PICTURE_H_

#include "base/str.h"
#include "toolkit/model.h"

// Appends the picture of a planned model to `out`, inside berth_arena_try of its arena or where
// out-of-memory may abort.
void berth_plan_picture_dot(const berth_model *model, berth_strbuf *out);
void berth_plan_picture_svg(const berth_model *model, berth_strbuf *out);

#endif  // BERTH_TOOLKIT_PLAN_PICTURE_H_
