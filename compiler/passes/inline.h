// Calls of graph functions, replaced by the operations of what they call.
#ifndef BERTH_COMPILER_PASSES_INLINE_H_
#define BERTH_COMPILER_PASSES_INLINE_H_

#include "ir/graph/graph.h"

// So many operations @main may come to have: functions that call others twice, and these others
// twice again, grow without end.
enum { BERTH_INLINE_MAX_OPS = 1 << 20 };

// In the root region of `main`, every call of a graph function that is no primitive (fuse.h) becomes
// that function's operations, on the devices that these have: a function may compute on several.
// Calls inside of it follow. The functions stay in the module. O(operations afterwards), by level of calls.
// Errors: UNSUPPORTED functions that call themselves, calls that nest beyond BERTH_MAX_NESTING, more
// than BERTH_INLINE_MAX_OPS operations, an `if` or `loop` in a function that is called.
BERTH_MUST_USE berth_status berth_pass_inline_calls(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_INLINE_H_
