// What is behind the public berth_dynamic: a program of byte code, or (in libberth-compiler) a model whose
// segments are compiled as they come.
#ifndef BERTH_API_RUN_DYNAMIC_H_
#define BERTH_API_RUN_DYNAMIC_H_

#include <berth/dynamic.h>

#include "executor/vm_runner.h"

typedef struct berth_api__dynamic_ops {
    berth_status (*run)(void *state, berth_vm_value *const *inputs, berth_vm_value **outputs);
    void (*cancel)(void *state);
    void (*destroy)(void *state);
    berth_vm_runner *(*runner)(void *state);  // that of a program; NULL = it is none
    void (*watch)(void *state, berth_vm_watch watch);
    berth_pool *(*pool)(void *state);  // that values lie in
} berth_api__dynamic_ops;

struct berth_dynamic {
    const berth_api__dynamic_ops *ops;
    void *state;
    const berth_vm_program *code;
    berth_vm_runner *keeper;  // of state; NULL: none is kept
};

// Takes `state`, also where it fails. `ops` and `code` outlive the result. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_api__dynamic_make(const berth_api__dynamic_ops *ops, void *state,
                                                    const berth_vm_program *code,
                                                    berth_dynamic **out_dynamic);

#endif  // BERTH_API_RUN_DYNAMIC_H_
