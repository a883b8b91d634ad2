// Verification under the virtual machine (private to toolkit/).
#ifndef BERTH_TOOLKIT_VERIFY_VM_H_
#define BERTH_TOOLKIT_VERIFY_VM_H_

#include "toolkit/verify.h"

// Whether the options ask for the virtual machine, or leave the choice open.
bool berth_verify__wants_vm(const berth_verify_options *options);
bool berth_verify__may_use_vm(const berth_verify_options *options);

// Runs the model on the data and compares. Errors: as berth_verify_folder.
berth_status berth_verify__by_vm(berth_arena *arena, const char *model_path,
                                 const berth_test_data *data, const berth_verify_options *options,
                                 berth_verify_result *result);

#endif  // BERTH_TOOLKIT_VERIFY_VM_H_
