// A program for many shapes that a session makes for itself: once inputs of three different shapes came, it is compiled,
// beside the runs, for all shapes within bounds that the session chooses (as `berth build` does with bounds), and runs of
// further shapes within them need no compiler. As automatic dynamic shapes of torch.compile (Ansel et al., "PyTorch 2",
// ASPLOS 2024): the first shapes are compiled for themselves, what is seen to change becomes a symbol.
//
// The bounds: axes of inputs that changed go in steps that divide all differences that were seen, from the power of two
// of these steps below the least extent to that above the most, and from half to twice of that while these are 32 shapes at
// most and one symbol (of several, combinations would be too many); axes that changed together (by whole numbers of steps) are one symbol; what did not change is fixed. Where a model
// has no results for some of them (a table of positions ends), only what was seen is within. A shape outside of them is
// compiled for itself, and the next program has wider bounds: one that is being made is given up for it, thrice at most. A shape that was compiled for itself before is run so later, too: its results stay the
// same to the bit while the session lives.
//
// Where there is a folder of kernels, the latest program is kept there, with the shapes that its bounds were chosen from
// (toolkit/vm_general_file.h): a later process has it from its first run on, and widens its bounds in the same way.
//
//   BERTH_TRY(berth_vm_general_open(&what, &general));
//   BERTH_TRY(berth_vm_general_find(general, inputs, &runner));   // NULL: compile for these shapes
//   berth_vm_general_close(general);
//
// Thread-compatible.
#ifndef BERTH_TOOLKIT_VM_GENERAL_H_
#define BERTH_TOOLKIT_VM_GENERAL_H_

#include "compiler/compile.h"
#include "executor/vm_runner.h"
#include "ir/module.h"

typedef struct berth_vm_general berth_vm_general;

// All of it outlives the session's program.
typedef struct berth_vm_general_what {
    const berth_module *module;     // as it was imported; read beside the runs, and never changed
    const berth_vm_program *code;   // for its inputs
    berth_compile_options compile;  // of the session; its target, too
    uint32_t thread_count;
    bool makes;              // programs; else only one that is kept is taken
    berth_vm_heap *heap;     // of the session: values of either lie in it
    atomic_uint *cancelled;  // of the session
} berth_vm_general_what;

typedef struct berth_vm_general_report {
    uint32_t program_count;  // that were made, or one that was kept
    bool was_kept;           // the latest is one that an earlier session kept
    uint32_t shape_count;    // of the latest
    uint64_t run_count;      // that it served, as the ones before
    uint64_t held_bytes;     // of the latest, with its constants
    const char *refusal;  // why there will be none; NULL = there is one, or may be. The session's.
} berth_vm_general_report;

BERTH_MUST_USE berth_status berth_vm_general_open(const berth_vm_general_what *what,
                                                  berth_vm_general **out_general);
// Ends what is compiled. NULL is fine.
void berth_vm_general_close(berth_vm_general *general);

// More bytes than these are not held: such a program is given up.
void berth_vm_general_set_limit(berth_vm_general *general, uint64_t bytes);

// What serves a run with these inputs; NULL: they are compiled for themselves. Then the shapes count as seen, and a
// program may be begun; `is_cheap`: it is not, since new shapes take little. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_general_find(berth_vm_general *general,
                                                  berth_vm_value *const *inputs, bool is_cheap,
                                                  berth_vm_runner **out_runner);
// The program has no code for what data decides after all: none is made any more.
void berth_vm_general_give_up(berth_vm_general *general, const char *why);
const berth_program *
berth_vm_general_program(const berth_vm_general *general);  // NULL: there is none
// As of a session of the virtual machine: of the program that is there, and of later ones.
void berth_vm_general_watch(berth_vm_general *general, berth_vm_watch watch);
void berth_vm_general_wait(berth_vm_general *general);  // until none is being made
void berth_vm_general_get_report(const berth_vm_general *general, berth_vm_general_report *out);

#endif  // BERTH_TOOLKIT_VM_GENERAL_H_
