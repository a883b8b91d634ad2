// Decisions of functions that the pass schedule takes and leaves (private to compiler/).
#ifndef BERTH_COMPILER_TUNING_FUNCTION_DECISIONS_H_
#define BERTH_COMPILER_TUNING_FUNCTION_DECISIONS_H_

#include "compiler/tuning/kernel_choice.h"

struct berth_tuned_table;

// Fills in choice->decisions with what is given for the function, and choice->by with who gives it;
// choice->target and ->function are the key of `tuned` (NULL = there is none).
//   errors: INVALID_ARGUMENT a wrong attribute or record
BERTH_MUST_USE berth_status berth_decisions_for(berth_module *module, berth_func_id function,
                                                const struct berth_tuned_table *tuned, bool explain,
                                                berth_kernel_choice *choice);
// Policies that decide nothing (of plug-ins, of devices that are only planned for) take nothing either.
//   errors: INVALID_ARGUMENT something that is given was asked for by nobody
BERTH_MUST_USE berth_status berth_decisions_check_taken(berth_arena *arena,
                                                        const berth_schedule_decisions *decisions);
// Writes down what was decided, as the attribute of the scheduled function.
void berth_decisions_record(berth_module *module, berth_func_id function,
                            const berth_schedule_decisions *decisions);
// The hash of a plain function, whose body has the hash given, with the decisions that it gives.
berth_hash128 berth_decisions_hash(const berth_module *module, berth_func_id function,
                                   berth_hash128 body);

#endif  // BERTH_COMPILER_TUNING_FUNCTION_DECISIONS_H_
