// A model's results on a target against expected ones (libberth-compiler): folders as ONNX's test data has them, with
// input_0.pb, ... and output_0.pb, ....
//
//   berth_verifier *verifier;
//   berth_verification *result;
//   berth_status status = berth_verifier_create(compiler, "digits.onnx", NULL, &verifier);
//   if (!status) status = berth_verifier_run(verifier, "test_data_set_0", &result);
//   if (!status) puts(berth_verification_facts_of(result)->pass ? "PASS" : "FAIL");
//   berth_verification_free(result);
//   berth_verifier_destroy(verifier);
//
// One thread at a time uses a verifier and its compiler; a result does not change.
#ifndef BERTH_VERIFY_H_
#define BERTH_VERIFY_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_verifier berth_verifier;
typedef struct berth_verification berth_verification;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end. An element passes when |got - expected| <= atol + rtol * |expected|.
typedef struct berth_verify_settings {
    size_t size_bytes;       // sizeof(berth_verify_settings)
    int has_rtol, has_atol;  // not 0: the next two are not the defaults
    double rtol;             // default 1e-3
    double atol;             // default 1e-5 of the largest expected value
    uint32_t thread_count;   // of the processor; 0 = as many as its target has cores
    const char *
        require;  // names of devices, "vta:0,cpu:0": it is an error where an operation runs elsewhere, or
                  // nothing on one of them; NULL = any
} berth_verify_settings;

// For a model or program file and the compiler's options; `settings` NULL = defaults. Nothing is read yet.
//   ownership: the compiler, which outlives the verifier, is borrowed
BERTH_API BERTH_MUST_USE berth_status berth_verifier_create(berth_compiler *compiler,
                                                            const char *path,
                                                            const berth_verify_settings *settings,
                                                            berth_verifier **out_verifier);
BERTH_API void berth_verifier_destroy(berth_verifier *verifier);  // NULL is fine

// Compiles the model for the folder's inputs, runs it, compares. A difference is a result, not an error.
//   ownership: the caller frees the result, which needs the verifier no more
//   errors:    whatever keeps the model from running
BERTH_API BERTH_MUST_USE berth_status berth_verifier_run(berth_verifier *verifier,
                                                         const char *folder,
                                                         berth_verification **out_result);
// The same with each operation's result, in order, against those on another target: the result has one output, the first
// that differs, or none.
BERTH_API BERTH_MUST_USE berth_status berth_verifier_run_per_op(berth_verifier *verifier,
                                                                const char *folder,
                                                                const char *reference_target,
                                                                berth_verification **out_result);
BERTH_API void berth_verification_free(berth_verification *result);  // NULL is fine

// What a run was. Later versions may add members at the end.
typedef struct berth_verification_facts {
    const char *folder;
    int pass;
    int by_vm;                 // not 0: run by the virtual machine (docs/vm.md)
    int computed_before;       // not 0: a run only copies constants to the outputs
    uint32_t kernel_count;     // that a run dispatches
    uint64_t host_operations;  // by the reference interpreter, other than on a few integers
    uint32_t compared_count;   // results compared, per operation; else outputs
} berth_verification_facts;

// An output. Later versions may add members at the end.
typedef struct berth_verification_output {
    const char *name;
    int pass;
    double rtol, atol;  // as used
    double max_absolute_error, max_relative_error;
    int64_t element_count, mismatch_count;
    int64_t worst_index;  // -1 = all pass
    double worst_got, worst_expected;
} berth_verification_output;

BERTH_API const berth_verification_facts *
berth_verification_facts_of(const berth_verification *result);
BERTH_API uint32_t berth_verification_output_count(const berth_verification *result);
// Inputs whose values were compiled in, as shapes or branches depend on them.
BERTH_API uint32_t berth_verification_known_input_count(const berth_verification *result);
// NULL when there is no such index.
BERTH_API const berth_verification_output *
berth_verification_output_at(const berth_verification *result, uint32_t index);
BERTH_API const char *berth_verification_known_input(const berth_verification *result,
                                                     uint32_t index);

// Whether a program runs on these devices alone, "vta:0,cpu:0", and on each of them; what only the host can do (shapes) is
// exempt. Errors: UNAVAILABLE names the first operation that runs elsewhere, or the device without a kernel.
BERTH_API BERTH_MUST_USE berth_status berth_program_check_devices(const berth_program *program,
                                                                  const char *devices);

BERTH_END

#endif  // BERTH_VERIFY_H_
