// Extents that data decides, for program files: operations such as non_zero become operations of known shapes, which fill
// as much as the result can ever be and count how much of it there is, and one `slice` by that count. The walk
// (compiler/vm/walk.h) follows each count that there can be, so that what comes after is compiled for all of them.
#ifndef BERTH_COMPILER_VM_COUNTED_H_
#define BERTH_COMPILER_VM_COUNTED_H_

#include "ir/graph/graph.h"

// Attribute of what is made so. COUNTED_TAKE: a slice of a vector from 0, with step 1, whose end is between 0 and the
// vector's length, whatever the data; COUNTED_PART: another operation, which no shape depends on.
#define BERTH_ATTR_COUNTED "counted"
enum { BERTH_COUNTED_PART = 1, BERTH_COUNTED_TAKE = 2 };

// For emit.c: rewrites non_zero, compress and unique (of slices of at most 64 elements, whose number is known) in every
// graph function, where the operand's rank is known and it is no tensor of strings; others stay. `main`, whose constants
// were folded, is folded again. Inside berth_arena_try of the module's arena. O(operations). Errors: those of fold.h.
BERTH_MUST_USE berth_status vm_count_extents(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_VM_COUNTED_H_
