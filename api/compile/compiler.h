// What the files of the public compiler share (private to api/compile).
#ifndef BERTH_API_COMPILE_COMPILER_H_
#define BERTH_API_COMPILE_COMPILER_H_

#include <berth/compile.h>

#include "toolkit/model.h"

// Dimensions and inputs that a compiler was given (compiler_inputs.c).
typedef struct berth_api_inputs {
    BERTH_VEC(berth_dim_binding) dims;
    BERTH_VEC(berth_dim_bounds) bounds;
    BERTH_VEC(berth_dim_relation) relations;
    BERTH_VEC(berth_input_binding) inputs;
} berth_api_inputs;

berth_api_inputs *berth_api__compiler_inputs(berth_compiler *compiler);
berth_arena *berth_api__compiler_arena(berth_compiler *compiler);

// Whether there are inputs, and all have a value.
bool berth_api__knows_inputs(const berth_api_inputs *given);

// What the compiler has been told, for one model; borrows from it. Errors: OUT_OF_MEMORY; CANCELLED.
berth_status berth_api__compiler_options(berth_compiler *compiler,
                                         berth_model_options *out_options);

// The same for plans: dimensions with bounds get the most of them.
berth_status berth_api__plan_options(berth_compiler *compiler, berth_model_options *out_options);

// Where its messages go, and what ends its compilations; both borrow from it.
void berth_api__compiler_listeners(berth_compiler *compiler, berth_log *out_log,
                                   berth_interrupt *out_interrupt);

#endif  // BERTH_API_COMPILE_COMPILER_H_
