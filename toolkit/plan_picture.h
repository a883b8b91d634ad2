// Pictures of a plan: the graph coloured by device (Graphviz dot), and the schedule that was
// predicted for one request, a row for each device and its link against time (SVG).
#ifndef BERTH_TOOLKIT_PLAN_PICTURE_H_
#define BERTH_TOOLKIT_PLAN_PICTURE_H_

#include "base/str.h"
#include "toolkit/model.h"

// Appends the picture of a planned model to `out`, inside berth_arena_try of its arena or where
// out-of-memory may abort.
void berth_plan_picture_dot(const berth_model *model, berth_strbuf *out);
void berth_plan_picture_svg(const berth_model *model, berth_strbuf *out);

// "latency of one request: 4.1 ms, lower bound 3.9, gap 4.9 %" of a valued plan; times in ms.
const char *berth_plan_value_text(berth_arena *arena, const berth_plan *plan);

#endif  // BERTH_TOOLKIT_PLAN_PICTURE_H_
