// A picture of a machine: its memories, the devices that work in each, and the links between them.
#ifndef BERTH_TOOLKIT_MACHINE_PICTURE_H_
#define BERTH_TOOLKIT_MACHINE_PICTURE_H_

#include "base/str.h"
#include "target/target.h"

// Appends an SVG document to `out`, inside berth_arena_try of its arena. Text from the target is
// escaped and cut. O(memories * devices + memories^2 * links).
void berth_machine_picture_svg(const berth_multi_target *target, berth_strbuf *out);

#endif  // BERTH_TOOLKIT_MACHINE_PICTURE_H_
