// Which segments and host operations of byte code runs can reach, and with which types of inputs: what a
// program file needs code for. The code is followed with shapes and the few values that are known
// instead of data: both ways where a condition is not known, and round after round of a loop until
// nothing is new.
//
//   berth_vm_reached reached = {.arena = arena};
//   BERTH_TRY(berth_vm_walk(module, &code, inputs, log, &reached));   // once per set of shapes
#ifndef BERTH_COMPILER_VM_WALK_H_
#define BERTH_COMPILER_VM_WALK_H_

#include "compiler/vm/vm.h"

// A piece (berth_vm_piece_at) and what a variant for it needs (artifact/vm.h).
typedef struct berth_vm_reach {
    uint32_t piece;
    const berth_tensor *inputs;  // with data: the value decides shapes
    const berth_tensor
        *results;  // NULL: to be compiled; else all that it gives, known from the inputs
    berth_hash128 key;
} berth_vm_reach;

typedef struct berth_vm_reached {
    berth_arena *arena;
    BERTH_VEC(berth_vm_reach) list;
    uint32_t count_total;  // of counts that were followed, one by one (compiler/vm/counted.h)
} berth_vm_reached;

// Of counts, over all walks; those of one run multiply where there are several.
#define BERTH_VM_MOST_COUNTS 65536u

// Adds what a run with inputs of these types can reach. `inputs`: per input of the model its element type
// and shape, and its data where the run is only for this value; element type NONE: not a tensor. First
// loops are followed with all that changes from round to round as unknown; where a shape depends on
// that, round by round (at most 512 of them). What follows a count of data (compiler/vm/counted.h) is followed for each
// number that there can be. A branch whose operations do not fit the shapes ends
// there, with a note. Not inside berth_arena_try.
// Errors: UNSUPPORTED a segment's shapes or a value that decides them are not known, with its nodes, or more counts
// than BERTH_VM_MOST_COUNTS;
// those of fold.h where no way through the code is left.
BERTH_MUST_USE berth_status berth_vm_walk(berth_module *module, const berth_vm_code *code,
                                          const berth_tensor *inputs, berth_log log,
                                          berth_vm_reached *reached);

// Leaves out results for certain values where there is code for all values of the same types. O(n^2) in
// what was reached.
void berth_vm_reached_simplify(berth_vm_reached *reached, const berth_vm_code *code);

// What was reached as a module of its own, for berth_compile (as berth_vm_segment_module). Inside
// berth_arena_try of the arena.
berth_module *berth_vm_reach_module(const berth_module *module, const berth_vm_code *code,
                                    const berth_vm_reach *reach, berth_arena *arena);

#endif  // BERTH_COMPILER_VM_WALK_H_
