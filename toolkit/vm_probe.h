// Other shapes that a segment may see: what its dimensions say, with other extents of their symbols.
// A session prints its functions for some of them before it compiles kernels for several sizes, so
// that numbers that change with the sizes are found at once, not one recompilation after the other.
#ifndef BERTH_TOOLKIT_VM_PROBE_H_
#define BERTH_TOOLKIT_VM_PROBE_H_

#include "base/arena.h"
#include "base/tensor.h"
#include "compiler/vm/vm.h"
#include "toolkit/vm_symbols.h"

#define BERTH_VM_PROBES 20u
#define BERTH_VM_FIRST_PROBES 7u  // of them: those whose kernels are most like those at hand
#define BERTH_VM_PROBE_SYMBOLS 64u

typedef struct berth_vm_probe_what {
    uint32_t which;    // of the shapes that can be asked for: 0 to BERTH_VM_PROBES - 1
    bool is_sibling;   // another shape, which mostly has kernels of the same form
    uint64_t symbols;  // that move: a bit for each, in order
} berth_vm_probe_what;

// A segment's inputs where the symbols asked for, of more than 1, have other extents: types and shapes alone,
// without data. `inputs`: in the run that `symbols` are of. NULL where none can be told: no such symbol,
// dimensions that do not follow from symbols, or inputs whose values decide shapes. Inside berth_arena_try of
// `arena`.
const berth_tensor *berth_vm_probe(const berth_module *module, const berth_vm_segment *segment,
                                   const berth_tensor *inputs, const berth_vm_symbols *symbols,
                                   const berth_vm_probe_what *what, berth_arena *arena);

#endif  // BERTH_TOOLKIT_VM_PROBE_H_
