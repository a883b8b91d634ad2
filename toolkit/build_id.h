// Which build of Berth this is: what one build keeps on disk another one does not take for its own.
#ifndef BERTH_TOOLKIT_BUILD_ID_H_
#define BERTH_TOOLKIT_BUILD_ID_H_

#include "base/hash.h"

// The hash of the note NT_GNU_BUILD_ID in the file (a program or a shared library) that has this code: linkers make it
// from all that they write. False: the linker wrote none. Thread-safe.
bool berth_build_id(berth_hash128 *out_id);

#endif  // BERTH_TOOLKIT_BUILD_ID_H_
