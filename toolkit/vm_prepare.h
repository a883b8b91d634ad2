// Kernels for shapes that a segment may see: which of their numbers change is asked before the first kernels for several
// sizes are compiled, and once shapes are seen to come that nobody foresees, kernels of the forms that others need are
// compiled while runs go on (toolkit/background.h), or, where that is asked for, at once. Belongs to a session (vm_session.h).
//
// Thread-compatible; what runs in the background reads the module: berth_vm_prepare_lock keeps it from that.
#ifndef BERTH_TOOLKIT_VM_PREPARE_H_
#define BERTH_TOOLKIT_VM_PREPARE_H_

#include "compiler/compile.h"
#include "compiler/vm/vm.h"
#include "executor/vm_value.h"

typedef struct berth_vm_prepare berth_vm_prepare;

// The segment that is compiled now, for a shape that is not its first.
typedef struct berth_vm_prepare_what {
    uint32_t index;                   // of the segment, or part of one
    const berth_vm_segment *segment;  // its lists live as long as the session
    const char *name;
    const berth_tensor *inputs;
    berth_vm_value *const *run_inputs;     // of the model, in this run
    const berth_compile_options *options;  // with generic_kernels
    bool at_once;
} berth_vm_prepare_what;

// `module` outlives it.
BERTH_MUST_USE berth_status berth_vm_prepare_open(const berth_module *module,
                                                  berth_vm_prepare **out_prepare);
// Ends what runs in the background; it runs compilers no longer than it takes to stop them. NULL is fine.
void berth_vm_prepare_close(berth_vm_prepare *prepare);

// Nothing can fail: what is not there when it is needed is compiled then.
void berth_vm_prepare_for(berth_vm_prepare *prepare, const berth_vm_prepare_what *what);

// Around what changes the module.
void berth_vm_prepare_lock(berth_vm_prepare *prepare);
void berth_vm_prepare_unlock(berth_vm_prepare *prepare);
// Until nothing runs in the background.
void berth_vm_prepare_wait(berth_vm_prepare *prepare);

#endif  // BERTH_TOOLKIT_VM_PREPARE_H_
