// Modules: a model inside the compiler, pass by pass (libberth-compiler; docs/ir.md). What `berth opt` does.
//
//   berth_module_info *module;
//   const char *text;
//   const berth_pass_settings settings = {.size_bytes = sizeof(settings)};      // all passes
//   berth_status status = berth_compiler_read_module(compiler, "digits.onnx", &module);
//   if (!status) status = berth_compiler_run_passes(compiler, module, &settings);
//   if (!status) status = berth_module_info_write(module, BERTH_MODULE_AS_TEXT, NULL, &text);
//   berth_module_info_free(module);
//
// One thread at a time uses a module.
#ifndef BERTH_MODULE_H_
#define BERTH_MODULE_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_module_info berth_module_info;

// Reads a model (ONNX, or a module as text or JSON) for the compiler's target; without that option, for the one that the module
// was planned for, or "cpu". Dimensions that the compiler has no extent for stay open.
//   ownership: the caller frees it; the compiler may go before
//   errors:    those of reading models and targets
BERTH_API BERTH_MUST_USE berth_status berth_compiler_read_module(berth_compiler *compiler,
                                                                 const char *path,
                                                                 berth_module_info **out_module);
BERTH_API void berth_module_info_free(berth_module_info *module);  // NULL is fine

// Passes in the order of the pipeline, then those that run only where they are named (after the pass inline-calls): name and
// one line about each; 0 after the last. Thread-safe. *out_is_named: not 0 for the latter; may be NULL.
BERTH_API int berth_compiler_pass_at(uint32_t index, const char **out_name, const char **out_text,
                                     int *out_is_named);

// After a pass: the module as it is, and the time that the pass took.
typedef void (*berth_pass_callback)(void *user, berth_module_info *module, const char *pass,
                                    int64_t elapsed_ns);

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at the end.
typedef struct berth_pass_settings {
    size_t size_bytes;  // sizeof(berth_pass_settings)
    const char *const
        *passes;  // [pass_count] in this order; NULL = all of the pipeline that did not run before
    uint32_t pass_count;
    uint32_t instances;  // of a function that planning may make, at most 8; 0 = 1
    int keep_program;  // not 0, with all passes: compile, and keep the program in the module, which runs without a compiler then
    berth_pass_callback on_pass;
    void *user;
} berth_pass_settings;

// Runs passes on the module, with the compiler's options, and checks it after each of them; `settings` NULL = all.
//   errors: NOT_FOUND no such pass; those of compiling. The module is to be freed then.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_run_passes(
    berth_compiler *compiler, berth_module_info *module, const berth_pass_settings *settings);

// Leaves only what one machine of the target does, with send and receive in place of copies to and from others.
//   errors: NOT_FOUND no such machine (says which there are); FAILED_PRECONDITION the module is not planned, or calls are not
//           inlined, or its layouts are chosen already
BERTH_API BERTH_MUST_USE berth_status berth_module_info_leave_machine(berth_module_info *module,
                                                                      const char *machine);

// Numbers do not change.
typedef enum berth_module_as {
    BERTH_MODULE_AS_TEXT = 0,
    BERTH_MODULE_AS_JSON = 1,
    BERTH_MODULE_AS_C = 2  // that rebuilds it with builder calls (docs/ir.md)
} berth_module_as;

// The module in a form that berth_compiler_read_module reads again, or as C, whose function is called `function` (NULL = build_
// and the module's name). *out_text lives as long as the module. Errors: INVALID_ARGUMENT no such form; UNSUPPORTED C cannot say it.
BERTH_API BERTH_MUST_USE berth_status berth_module_info_write(berth_module_info *module,
                                                              berth_module_as form,
                                                              const char *function,
                                                              const char **out_text);

// ---- where planning put everything --------------------------------------------------------------

// What planned it, "default", "auto", ...; NULL = plan-devices has not run.
BERTH_API const char *berth_module_info_strategy(const berth_module_info *module);

// Later versions may add members at the end.
typedef struct berth_module_place {
    const char *function;
    const char *kind;              // "parameter", "operation", "copy" or "result"
    uint32_t index;                // among the function's parameters, operations or results
    const char *operation;         // NULL for parameters and results
    const char *value;             // name; "" = none
    const char *device;            // in full; NULL = a function, which is in several places
    const char *device_name;       // "opencl:0@s1", without its target; NULL likewise
    const char *from, *from_name;  // of a copy
    uint64_t size_bytes;           // of a copy; 0 = the memory is shared
    const char *reason;
    const char *location;  // where the operation is written; NULL = nowhere
} berth_module_place;
BERTH_API uint32_t berth_module_info_place_count(const berth_module_info *module);
// By function, in source order; NULL when there is no such index.
BERTH_API const berth_module_place *berth_module_info_place(const berth_module_info *module,
                                                            uint32_t index);

BERTH_END

#endif  // BERTH_MODULE_H_
