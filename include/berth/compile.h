// The compiler: a model and a target give a program (libberth-compiler). Kernels for processors are
// compiled by this machine's C compiler (cc, gcc or clang).
//
//   berth_compiler *compiler;
//   berth_program *program;
//   berth_status status = berth_compiler_create(&compiler);
//   if (!status) status = berth_compiler_set(compiler, "target", "cpu,opencl");
//   if (!status) status = berth_compiler_set_dim(compiler, "batch", 1);
//   if (!status) status = berth_compiler_compile_file(compiler, "digits.onnx", &program);
//   berth_compiler_destroy(compiler);
//
// Threads: one thread at a time uses a compiler, except berth_compiler_cancel; several compilers may
// work at once. All texts given are copied.
#ifndef BERTH_COMPILE_H_
#define BERTH_COMPILE_H_

#include <berth/program.h>
#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_compiler berth_compiler;

BERTH_API BERTH_MUST_USE berth_status berth_compiler_create(berth_compiler **out_compiler);
BERTH_API void berth_compiler_destroy(berth_compiler *compiler);  // NULL is fine

// Sets an option; NULL = its default again. Options:
//   target         a tag, a short form ("opencl -host=cpu"), JSON or "local" (docs/target.md);
//                  default: that for which a module was planned, else "cpu"
//   host           target of the host
//   strategy       of placement: "default", "auto", ... (`berth plan --strategy list`)
//   objective      "latency" (default), "throughput" or "memory"
//   cache_folder   of compiled kernels; default: none are kept
//   c_compiler     a C compiler's path; default: the first of cc, gcc, clang on search_path
//   search_path    folders separated by ':'; default: /usr/local/bin:/usr/bin:/bin
//   temporary_folder  default: /tmp
//   jobs           C compilers at once; default: as many as cores
// Errors: NOT_FOUND no such option; INVALID_ARGUMENT a value that is none.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set(berth_compiler *compiler,
                                                         const char *option, const char *value);

// Adds a pin, "PATTERN=DEVICE": nodes whose name matches run there; "op:PATTERN=DEVICE" looks at
// operators.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_add_pin(berth_compiler *compiler,
                                                             const char *pin);

// Gives a dimension of the model an extent, by its name or as "INPUT.AXIS". Errors: OUT_OF_RANGE a
// negative extent. (That the model has no such dimension shows when it is compiled.)
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_dim(berth_compiler *compiler,
                                                             const char *name, int64_t extent);

// Gives an input the element type and shape of `value`, and with them the dimensions that it shares
// with others. `constant` not 0: value's data, too, which is copied; the program has no such input
// then. Errors: INVALID_ARGUMENT no tensor.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_input(berth_compiler *compiler,
                                                               const char *name,
                                                               const berth_tensor *value,
                                                               int constant);

// Called from the thread that compiles, with what is done ("compiling kernels"), and how many of how
// many; and with notes and warnings for people. Neither may call the compiler, berth_compiler_cancel
// excepted.
typedef void (*berth_progress_callback)(void *user, const char *what, uint32_t done,
                                        uint32_t total);
BERTH_API void berth_compiler_on_progress(berth_compiler *compiler,
                                          berth_progress_callback callback, void *user);
BERTH_API void berth_compiler_on_message(berth_compiler *compiler, berth_message_callback callback,
                                         void *user);

// Compiles a model from a file (ONNX, or a module as `berth opt` prints it) or an ONNX model from
// memory, which is copied; `folder` is where its external data lies, NULL = it has none.
//   ownership: the caller releases the program, which needs the compiler no more
//   errors:    UNSUPPORTED (names operators); INVALID_ARGUMENT the model, target, a pin or dimension
//              is wrong, or a shape is not known (says which); UNAVAILABLE no C compiler; CANCELLED;
//              NOT_FOUND; IO
BERTH_API BERTH_MUST_USE berth_status berth_compiler_compile_file(berth_compiler *compiler,
                                                                  const char *path,
                                                                  berth_program **out_program);
BERTH_API BERTH_MUST_USE berth_status berth_compiler_compile_memory(berth_compiler *compiler,
                                                                    const void *data,
                                                                    size_t size_bytes,
                                                                    const char *folder,
                                                                    berth_program **out_program);

// Makes the compilation under way end with CANCELLED soon; when none is, the next one. Thread-safe.
BERTH_API void berth_compiler_cancel(berth_compiler *compiler);

BERTH_END

#endif  // BERTH_COMPILE_H_
