// Structural equality of modules: everything that the text and JSON forms carry. Ids, the order in
// which things were built, removed functions and operations, and unused types, strings, variables
// and expressions do not matter. Two NaNs are equal; 0.0 and -0.0 are not. Statements that compute
// an expression once or twice are equal.
#ifndef BERTH_IR_EQUAL_H_
#define BERTH_IR_EQUAL_H_

#include "ir/dialect.h"

// Compares a and b; otherwise *out_why (may be NULL) says where they first differ, in a's arena.
// O(size of both). An entry point: not inside berth_arena_try. Errors: only of memory, or of hooks
// that serialise opaque values.
BERTH_MUST_USE berth_status berth_module_equal(const berth_module *a, const berth_module *b,
                                               bool *out_equal, const char **out_why);

// ---- for the hooks of dialects

typedef struct berth_equal {
    const berth_module *a;
    const berth_module *b;
    berth_arena *scratch;
    berth_loc_id *met_locs;  // per location of a: equal one of b, found last
    const char *place;       // "@main"
    const char *why;
    berth_status status;
} berth_equal;

// Notes the first difference; returns false.
bool berth_equal_differ(berth_equal *state, const char *format, ...) BERTH_PRINTF(2, 3);
bool berth_equal_str(const berth_equal *state, berth_str_id a, berth_str_id b);
bool berth_equal_types(const berth_equal *state, berth_type_id a, berth_type_id b);
bool berth_equal_devices(const berth_equal *state, berth_device_id a, berth_device_id b);
bool berth_equal_functions(const berth_equal *state, berth_func_id a, berth_func_id b);  // by name
bool berth_equal_locs(const berth_equal *state, berth_loc_id a, berth_loc_id b);
// Says why when they differ; `what` names their owner.
bool berth_equal_attrs(berth_equal *state, const berth_attrs *a, const berth_attrs *b,
                       const char *what);

bool berth_equal__graphs(berth_equal *state, berth_func_id a, berth_func_id b);
bool berth_equal__tfns(berth_equal *state, berth_func_id a, berth_func_id b);
bool berth_equal__externals(berth_equal *state, berth_func_id a, berth_func_id b);

#endif  // BERTH_IR_EQUAL_H_
