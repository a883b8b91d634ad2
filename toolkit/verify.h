// Verification: a model's results on a target against expected ones (ONNX test data folders:
// input_i.pb, output_i.pb).
#ifndef BERTH_TOOLKIT_VERIFY_H_
#define BERTH_TOOLKIT_VERIFY_H_

#include "toolkit/compare.h"
#include "toolkit/model.h"
#include "toolkit/value_file.h"

// The content of one folder, with the names of the model's inputs and outputs.
typedef struct berth_test_data {
    const berth_input_binding
        *inputs;  // in graph order; those that feed shape operands are marked as constants
    uint32_t input_count;
    const char *const *output_names;
    const berth_tensor *outputs;
    uint32_t output_count;
    // Where some are no tensors, per input and per output (a tensor's kind is TENSOR and its value
    // stands above); NULL: all are tensors.
    const berth_test_value *input_values;
    const berth_test_value *output_values;
} berth_test_data;

// Reads a folder for a model (ONNX or program file, which is read within `limits`; NULL = the readers' own). Everything lives
// in `arena`. `may_lack`: inputs without a file are left out.
// Errors: NOT_FOUND (no such folder or file), those of tensor files and import.
BERTH_MUST_USE berth_status berth_test_data_read(berth_arena *arena, const char *model_path,
                                                 const berth_limits *limits, const char *folder,
                                                 bool may_lack, berth_test_data *out_data);

typedef struct berth_verify_output {
    const char *name;
    berth_comparison comparison;
} berth_verify_output;

typedef struct berth_verify_result {
    const char *folder;
    berth_verify_output *outputs;  // in the arena given
    uint32_t output_count;
    bool pass;
    const char *const *known_inputs;  // whose values were compiled in (compiler/passes/known.h)
    uint32_t known_input_count;
    uint32_t kernel_count;  // that a run dispatches
    bool by_vm;             // the virtual machine ran it; kernel_count is of all compiled segments
    uint64_t host_operations;  // by the virtual machine on the host, other than on a few integers
    bool computed_before;      // a run only copies constants to the outputs
} berth_verify_result;

struct berth_vm_session;

typedef struct berth_verify_options {
    // (optional) the session of the virtual machine, opened when it is needed (the target's executor
    // is vm, or the graph executor cannot run the model) and kept from folder to folder; the caller
    // closes it. NULL: one of its own for each folder.
    struct berth_vm_session **vm_session;
    berth_model_options model;
    berth_compare_options compare;
    uint32_t thread_count;  // 0 = all cores
    // Once more, where the graph executor runs it, with inputs and outputs in memory that is aligned as
    // its elements are and no better.
    bool on_callers_memory;
    const char *require_device;  // as berth_program_require; NULL = none
    bool kernels_optional;       // require_device only forbids kernels elsewhere
} berth_verify_options;

// Loads the model with the folder's inputs bound, runs it, compares. A difference is a result (pass
// = false), not an error. Errors: whatever keeps the model from running.
BERTH_MUST_USE berth_status berth_verify_folder(berth_arena *arena, const char *model_path,
                                                const char *folder,
                                                const berth_verify_options *options,
                                                berth_verify_result *out_result);

// Runs the model on options->model.target and on `reference_target` with every operation's result
// kept, and compares them in order: out_result->outputs[0] is then the first result that differs
// (output_count 0 and pass = true when none does). `out_compared` = number of results compared.
// Inputs come from `folder`. Errors: as berth_verify_folder.
BERTH_MUST_USE berth_status berth_verify_per_op(berth_arena *arena, const char *model_path,
                                                const char *folder, const char *reference_target,
                                                const berth_verify_options *options,
                                                berth_verify_result *out_result,
                                                uint32_t *out_compared);

// `devices`: a name, or several "vta:0,cpu:0". Errors: UNAVAILABLE when an operation of the program
// runs on another device (names the first one), or when no kernel runs on one of them at all.
// Operations that only the host does (shapes) are exempt.
// `kernels_optional`: none at all is no error.
BERTH_MUST_USE berth_status berth_program_require(const berth_program *program, const char *devices,
                                                  bool kernels_optional);
// Whether the name is in such a list.
bool berth_require_has(const char *devices, const char *name);

#endif  // BERTH_TOOLKIT_VERIFY_H_
