// Program: a model compiled for a target; what a session opens. It comes from a file that `berth
// build` or berth_program_save wrote, from such a file's bytes in memory, or from the compiler
// (<berth/compile.h>).
//
//   berth_program *program;
//   berth_status status = berth_program_open("digits.berth", &program);
//   ...
//   berth_program_release(program);
//
// A program is immutable and counted: who gets one by an out_ argument owns one reference, and every
// session of it keeps one of its own. Texts and ports live as long as the program. Everything here is
// thread-safe.
//
// A program holds native code: open only files that you trust, or signed ones (SECURITY.md).
#ifndef BERTH_PROGRAM_H_
#define BERTH_PROGRAM_H_

#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_program berth_program;

// An input or output. Later versions may add members at the end. Of a program of executor "vm" a dimension that
// is open is -1, and so is a rank; what is no tensor has element type NONE.
typedef struct berth_port {
    const char *name;
    berth_tensor type;  // element type and shape; `data` is NULL
    // Of open dimensions, one per dimension: the bounds they were built for, both 0 where there are none; NULL where
    // the program is of another executor.
    const int64_t *least, *most;
} berth_port;

// Opens a program file and checks all of it. The file stays mapped while the program lives, and its
// constants are used where they are: it must not be written over or cut meanwhile (putting another
// file in its place by renaming is fine).
//   errors: NOT_FOUND; IO; INVALID_ARGUMENT no program file, a damaged one, or one of another version
BERTH_API BERTH_MUST_USE berth_status berth_program_open(const char *path,
                                                         berth_program **out_program);
// The same within limits ("bytes=64MiB,items=10000,time=5s"; docs/limits.md): of the file's bytes, of records of
// its tables and of the time of reading. `key_path` as below, NULL = signed or not.
//   errors: as above; OUT_OF_RANGE a limit is met; INVALID_ARGUMENT the text is none
BERTH_API BERTH_MUST_USE berth_status berth_program_open_limited(const char *path,
                                                                 const char *key_path,
                                                                 const char *limits,
                                                                 berth_program **out_program);
// The same as berth_program_open, but only if the file is signed with the key whose public half is in the file `key_path`
// (`berth key`). Errors: as above; INVALID_ARGUMENT not signed with it.
BERTH_API BERTH_MUST_USE berth_status berth_program_open_signed(const char *path,
                                                                const char *key_path,
                                                                berth_program **out_program);
// The same from the bytes of such a file, which are copied; all of them are checked, those of constants, too.
BERTH_API BERTH_MUST_USE berth_status berth_program_open_memory(const void *data, size_t size_bytes,
                                                                berth_program **out_program);
// The same as berth_program_open_limited from bytes in memory. `key_path` and `limits` may be NULL.
BERTH_API BERTH_MUST_USE berth_status
berth_program_open_memory_limited(const void *data, size_t size_bytes, const char *key_path,
                                  const char *limits, berth_program **out_program);

// Whether a file is a program file by its first bytes; 0 also for what cannot be read.
BERTH_API int berth_program_file_is(const char *path);

// Writes a program file, complete or not at all. Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_program_save(const berth_program *program,
                                                         const char *path);

BERTH_API void berth_program_retain(berth_program *program);   // one reference more
BERTH_API void berth_program_release(berth_program *program);  // one less; NULL is fine

// ---- fallbacks: the same model for other devices, for when one of the program's is not here or lost ----

// A program that is `program` with these fallbacks instead of those that it has; the first that can run is
// taken. Sessions and runners open it like any other, use a fallback where they must, and say so
// (berth_session_settings); files keep it. All have the same inputs and outputs.
//   ownership: keeps references of all; the caller owns the new one
//   errors:    INVALID_ARGUMENT other inputs or outputs; a fallback that has some itself
BERTH_API BERTH_MUST_USE berth_status berth_program_with_fallbacks(berth_program *program,
                                                                   berth_program *const *fallbacks,
                                                                   uint32_t fallback_count,
                                                                   berth_program **out_program);
BERTH_API uint32_t berth_program_fallback_count(const berth_program *program);
// NULL when there is no such index. It lives as long as the program, and may be opened by itself;
// references of it count as the program's.
BERTH_API berth_program *berth_program_fallback(const berth_program *program, uint32_t index);

// Name of the model ("" = none), and the target as JSON that it was compiled for.
BERTH_API const char *berth_program_name(const berth_program *program);
BERTH_API const char *berth_program_target(const berth_program *program);
// Time of one run as the compiler's cost model predicts it; 0 = unknown.
BERTH_API double berth_program_predicted_ns(const berth_program *program);

BERTH_API uint32_t berth_program_input_count(const berth_program *program);
BERTH_API uint32_t berth_program_output_count(const berth_program *program);
// NULL when there is no such index.
BERTH_API const berth_port *berth_program_input(const berth_program *program, uint32_t index);
BERTH_API const berth_port *berth_program_output(const berth_program *program, uint32_t index);

// Names of the devices that it runs on: "opencl:0". NULL when there is no such index.
BERTH_API uint32_t berth_program_device_count(const berth_program *program);
BERTH_API const char *berth_program_device_name(const berth_program *program, uint32_t index);

// What the program consists of. Later versions may add members at the end.
typedef struct berth_program_facts {
    uint32_t kernel_count;  // that were compiled
    uint32_t step_count;    // of a run: kernels' dispatches and copies
    uint64_t constant_bytes;
    const char *
        executor;  // "graph"; "vm": <berth/dynamic.h> runs it; "aot": C sources (berth_compiler_save_sources), which no session opens
} berth_program_facts;
// Fills in the first `size_bytes` (sizeof(berth_program_facts)) of it. Errors: INVALID_ARGUMENT a size that is none.
BERTH_API BERTH_MUST_USE berth_status berth_program_get_facts(const berth_program *program,
                                                              berth_program_facts *out_facts,
                                                              size_t size_bytes);

// Where an operation of the model runs, and why. Later versions may add members at the end.
typedef struct berth_placement {
    const char *node;    // of the model
    const char *op;      // its operator: "Conv"
    const char *device;  // "opencl:0"
    const char *reason;  // one line
} berth_placement;

BERTH_API uint32_t berth_program_placement_count(const berth_program *program);
BERTH_API const berth_placement *berth_program_placement_at(const berth_program *program,
                                                            uint32_t index);

BERTH_END

#endif  // BERTH_PROGRAM_H_
