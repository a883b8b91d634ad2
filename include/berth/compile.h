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

#include <berth/dynamic.h>
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
//   executor       "graph", "vm", "aot", or "auto", as if it were not set
//   runtime        "hosted", or "bare" with the executor aot
//   memory         budgets of memories, "NAME=BYTES,...", before the target's own
//   tag_folder     users' own tags, FOLDER/VENDOR/NAME.json; default: none
//   strategy       of placement: "default", "auto", ... (berth_compiler_strategy_at)
//   objective      "latency" (default), "throughput" or "memory"
//   patches        stages that run in bands of rows or in tiles (docs/memory.md): "auto" (default: where a memory
//                  is too small otherwise), "never", "least" (those with the least memory), or
//                  "[AFTER..]NODE=N[xM]": the stages up to this node in N bands or N x M tiles
//   parallel       one model on several devices of a kind: "tensor" (each holds its part of the weights and
//                  does its part of every product), "pipeline" (each has operations of its own: the strategy
//                  "auto" where none is set), "auto" (whichever of these or neither is predicted to be
//                  fastest and fits the memories), "none" (default)
//   nodes          search nodes of the placement: the same plan every time; default: 300000
//   time_budget_ns time of the placement's search instead: plans may differ
//   costs          a file of measured costs (`berth calibrate`); default: the target's figures alone
//   tuned          a file of tuned kernels (`berth tune`); default: schedules are the policies' own
//   default_batch  extent of dimensions that look like the batch and have none; default: they stay open
//   cache_folder   of compiled kernels; default: none are kept
//   cache_limit_bytes  above which the least recently used leave it; default: 1 GiB
//   c_compiler     a C compiler's path; default: the first of cc, gcc, clang on search_path
//   search_path    folders separated by ':'; default: /usr/local/bin:/usr/bin:/bin
//   temporary_folder  default: /tmp
//   compiler_time_limit_ns  of one C compiler; default: 10 minutes
//   jobs           C compilers at once; default: as many as cores
//   fusion, layouts, winograd  "on" (default) or "off": one kernel per operation, every tensor
//                  row-major, direct convolutions only
//   required_key   file of a public key: only a program file that is signed with it (`berth key`) is taken
//   required_devices  names of devices, "opencl:0,vta:0": models with control flow do not compute on the host what these
//                  can, although it may be faster there (berth_dynamic_check_devices says what ran elsewhere)
//   limits         of what is read, "bytes=64MiB,items=10000,depth=50,time=5s" (docs/limits.md): a file's bytes,
//                  operations, levels of nesting, time of reading, and of compiling (DEADLINE_EXCEEDED); default: those of docs/limits.md
//   keep_source    "on": the program keeps its kernels' source; default "off"
//   small_code     "on": C sources of few bytes rather than few instructions; default "off"
//   several_sizes  "on": kernels serve several shapes from the first on, instead of the first shape as well as they can
//                  (<berth/dynamic.h>); default "off"
//   explain_kernels  "on": plans say what else there would be for kernels' loops (<berth/plan.h>); default "off"
// Errors: NOT_FOUND no such option; INVALID_ARGUMENT a value that is none.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set(berth_compiler *compiler,
                                                         const char *option, const char *value);

// Adds a pin, "PATTERN=DEVICE": nodes whose name matches run there; "op:PATTERN=DEVICE" looks at
// operators.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_add_pin(berth_compiler *compiler,
                                                             const char *pin);

// Overrides a field of the target: "cores=2", or "devices[0].target.cores=2" where there are several.
// Whether there is such a field shows when the target is read.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_add_override(berth_compiler *compiler,
                                                                  const char *override_text);

// Strategies of placement: name and one line about each; several rows of one name do it by other means
// for other objectives. 0 after the last. Thread-safe.
BERTH_API int berth_compiler_strategy_at(uint32_t index, const char **out_name,
                                         const char **out_text);

// For executor "vm", whose programs have code for certain values of what the inputs leave open: adds such
// values, "NAME=NUMBER,...". A name is a dimension's (or "INPUT.AXIS"), or an input's that is one integer.
// Numbers of different names hold together, and a name that comes again begins the next set: "N=1,N=8" are
// two. "N=1..512" is all values within bounds, for which there is one program as far as kernels allow that
// (docs/vm.md). Errors show when a model is compiled.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_add_specialisation(berth_compiler *compiler,
                                                                        const char *specialisation);

// For programs of executor "vm": declares state, "INPUT=OUTPUT": an input whose value is that output of the
// run before. A * in both stands for the same text: "past_key_values.*=present.*" is every layer's cache. An
// output that is its input with more rows after it (one Concat) grows where it is, without a copy: its
// dimensions need bounds then, which say how much memory is set aside. Others have their input's shape. A
// program runs with state after berth_dynamic_keep_states, and as before without. Errors (no such port,
// another shape, no bounds) show when a model is compiled.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_add_state(berth_compiler *compiler,
                                                               const char *state);

// Gives a dimension of the model an extent, by its name or as "INPUT.AXIS". Errors: OUT_OF_RANGE a
// negative extent. (That the model has no such dimension shows when it is compiled.)
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_dim(berth_compiler *compiler,
                                                             const char *name, int64_t extent);

// Says which extents a dimension may have, named as above; a dimension that is then given an extent, or an input
// with one, must lie within. The model is for all of them: compiling gives a program of executor "vm"
// with code for every value (berth_compiler_add_specialisation), berth_compiler_load_dynamic_file a model that
// compiles what comes, and both refuse inputs outside. Plans are for the most of the bounds, and say what the
// workspace needs at others (<berth/plan.h>). Errors: OUT_OF_RANGE bounds that hold no extent.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_dim_bounds(berth_compiler *compiler,
                                                                    const char *name, int64_t least,
                                                                    int64_t most);

// Says that a dimension follows from others: "total" is "past+1". Sums and products of whole numbers and of
// dimensions' names, min(a, b), max(a, b), floordiv(a, 2), ceildiv(a, 2) and mod(a, 2). The others may have extents
// or bounds, this one neither. A name that is no dimension's needs them, and what follows from it is a number times
// it, and perhaps a number: "32*a", "2*a+1", which takes inputs of such extents only. Errors show when a model is
// compiled: INVALID_ARGUMENT no expression, or of names that the model does not have and that have no bounds.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_dim_expression(berth_compiler *compiler,
                                                                        const char *name,
                                                                        const char *expression);

// Gives an input the element type and shape of `value`, and with them the dimensions that it shares
// with others. `constant` not 0: value's data, too, which is copied; the program has no such input
// then. An initializer that the model lists among its inputs (berth_model_info_overridable) becomes an input of the program this
// way, or gets another value as a constant; any other initializer can be given another value as a constant of its type and shape,
// and then its own is not read, which matters where it would be in a file of its own that is not there.
// Errors: INVALID_ARGUMENT no tensor. What does not fit the model shows when it is compiled.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_input(berth_compiler *compiler,
                                                               const char *name,
                                                               const berth_tensor *value,
                                                               int constant);

// As berth_compiler_set_input with constant 0, and says that the program will run with this very value,
// which is copied: where shapes or branches depend on it, it is compiled in, and a note says so. Only where all inputs
// that were set have one.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_set_input_value(berth_compiler *compiler,
                                                                     const char *name,
                                                                     const berth_tensor *value);

// Called from the thread that compiles, with what is done ("compiling kernels"), and how many of how
// many; and with notes and warnings for people. Neither may call the compiler, berth_compiler_cancel
// excepted.
typedef void (*berth_progress_callback)(void *user, const char *what, uint32_t done,
                                        uint32_t total);
BERTH_API void berth_compiler_on_progress(berth_compiler *compiler,
                                          berth_progress_callback callback, void *user);
BERTH_API void berth_compiler_on_message(berth_compiler *compiler, berth_message_callback callback,
                                         void *user);

// The same messages with what they are, for who tells them apart; instead of, or beside,
// berth_compiler_on_message. Numbers do not change.
typedef enum berth_message_level {
    BERTH_MESSAGE_ERROR = 0,
    BERTH_MESSAGE_WARNING = 1,
    BERTH_MESSAGE_NOTE = 2
} berth_message_level;
typedef void (*berth_level_callback)(void *user, berth_message_level level, const char *message);
BERTH_API void berth_compiler_on_level_message(berth_compiler *compiler,
                                               berth_level_callback callback, void *user);

// For programs that signals end, which would leave temporary files behind. `defer` is called with 1
// before the compiler makes the first of these and with 0 when the last is gone; in between `pending` is
// asked now and then, and with its first answer that is not 0 the compilation ends with CANCELLED. From
// the thread that compiles. Either may be NULL.
typedef void (*berth_defer_callback)(void *user, int on);
typedef int (*berth_pending_callback)(void *user);
BERTH_API void berth_compiler_on_interrupt(berth_compiler *compiler, berth_defer_callback defer,
                                           berth_pending_callback pending, void *user);

// Loads a plug-in of the compiler (operations, passes, schedules, ...; examples/vendor) from a shared
// library for the rest of the process. Loading the same file again changes nothing. It is native code
// and runs with the process's rights. While no model is compiled, and by one thread at a time.
//   ownership: *out_name and *out_version live as long as the process; either may be NULL
//   errors:    NOT_FOUND; UNAVAILABLE it does not load; INCOMPATIBLE it is none, or one for another
//              version; what it says itself
BERTH_API BERTH_MUST_USE berth_status berth_compiler_load_plugin(const char *path,
                                                                 const char **out_name,
                                                                 const char **out_version);

// Compiles a model from a file (ONNX, or a module as `berth opt` prints it; a program file is opened, and its target must be
// the option's, if that is set) or an ONNX model from memory, which is copied; `folder` is where its external data lies, NULL = it has none.
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

// After a compilation that failed: not 0 where the virtual machine can run the model (<berth/dynamic.h>), which has
// control flow or shapes that only the run knows.
BERTH_API int berth_compiler_needs_dynamic(const berth_compiler *compiler);

// Writes a program for the executor aot, which this process has compiled, as C sources (docs/bare.md) into a folder, which must
// be new, empty, or hold only files of such names. `name`: of the files and their functions. The compiler's options are those
// that it was compiled with.
//   errors: INVALID_ARGUMENT a program for another executor, or one that was opened; UNSUPPORTED too many constants;
//           ALREADY_EXISTS something else is in the folder; IO
BERTH_API BERTH_MUST_USE berth_status berth_compiler_save_sources(berth_compiler *compiler,
                                                                  const berth_program *program,
                                                                  const char *name,
                                                                  const char *folder);

// Makes the compilation under way end with CANCELLED soon; when none is, the next one. Thread-safe.
BERTH_API void berth_compiler_cancel(berth_compiler *compiler);

// Loads a model without compiling it, with the options, pins and dimensions that the compiler has now
// (of what berth_compiler_set_input gave, only constants and what takes the place of initializers). `thread_count` of the processor;
// 0 = as many as its target has cores. The compiler may go before the model. Errors: those of compiling, as far as they show
// without shapes.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_load_dynamic_file(berth_compiler *compiler,
                                                                       const char *path,
                                                                       uint32_t thread_count,
                                                                       berth_dynamic **out_dynamic);
BERTH_API BERTH_MUST_USE berth_status berth_compiler_load_dynamic_memory(
    berth_compiler *compiler, const void *data, size_t size_bytes, const char *folder,
    uint32_t thread_count, berth_dynamic **out_dynamic);

BERTH_END

#endif  // BERTH_COMPILE_H_
