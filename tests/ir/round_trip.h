// Checks that a module survives its serial forms.
#ifndef BERTH_TESTS_IR_ROUND_TRIP_H_
#define BERTH_TESTS_IR_ROUND_TRIP_H_

#include "ir/module.h"

// Module → text → module → text: the modules equal, the texts the same bytes; likewise JSON. The
// first problem, or NULL. What was read is verified when `verify` is set.
// Everything it allocates is in `arena`.
const char *round_trip(const berth_module *module, berth_arena *arena, bool verify);

// The module's text, added to `out`, in whose arena it is made.
berth_status print_module(const berth_module *module, berth_strbuf *out);

// Bytes of literals in the module.
uint64_t literal_bytes(const berth_module *module);

#endif  // BERTH_TESTS_IR_ROUND_TRIP_H_
