// Other shapes that a segment may see: what its dimensions say, with other extents of their symbols.
// A session prints its functions for some of them before it compiles kernels for several sizes, so
// that numbers that change with the sizes are found at once, not one recompilation after the other.
#ifndef BERTH_TOOLKIT_VM_PROBE_H_
#define BERTH_TOOLKIT_VM_PROBE_H_

#include "base/arena.h"
#include "base/tensor.h"
#include "compiler/vm/vm.h"
#include "toolkit/vm_symbols.h"

#define BERTH_VM_PROBES 8u  // shapes that can be asked for: 0 to BERTH_VM_PROBES - 1

// A segment's inputs where all symbols of more than 1 have other extents: types and shapes alone, without
// data. `inputs`: in the run that `symbols` are of. NULL where none can be told: no such symbol, dimensions
// that do not follow from symbols, or inputs whose values decide shapes. Inside berth_arena_try of
// `arena`.
const berth_tensor *berth_vm_probe(const berth_module *module, const berth_vm_segment *segment,
                                   const berth_tensor *inputs, const berth_vm_symbols *symbols,
                                   uint32_t which, berth_arena *arena);

#endif  // BERTH_TOOLKIT_VM_PROBE_H_
