// Models whose shapes or control flow only the run knows, run with inputs of any shapes that there is code
// for: programs of byte code (libberth), or models whose parts are compiled when they first see new shapes
// (libberth-compiler; such a run may take the time of the C compiler, and what is compiled is kept).
// docs/vm.md.
//
//   berth_dynamic *model;
//   berth_results *results;
//   berth_status status = berth_program_load_dynamic(program, 0, &model);
//   if (!status) status = berth_dynamic_run(model, &image, 1, &results);
//   ... berth_results_item(results, 0, 0)
//   berth_results_free(results);
//   berth_dynamic_destroy(model);
//
// Threads: one thread at a time uses a model, except berth_dynamic_cancel; results are the caller's.
#ifndef BERTH_DYNAMIC_H_
#define BERTH_DYNAMIC_H_

#include <berth/program.h>
#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_dynamic berth_dynamic;
typedef struct berth_results berth_results;

// Loads a program of executor "vm" (`berth build` makes one where a model needs it): runs without a
// compiler, for the shapes that the program has code for. `thread_count` of the processor;
// 0 = as many as its target has cores.
//   ownership: keeps a reference of the program
//   errors:    INVALID_ARGUMENT a program of another executor, of which berth_session_create makes a session
BERTH_API BERTH_MUST_USE berth_status berth_program_load_dynamic(berth_program *program,
                                                                 uint32_t thread_count,
                                                                 berth_dynamic **out_dynamic);
// Of a model, whose parts are compiled as they come: berth_compiler_load_dynamic_file (<berth/compile.h>).

BERTH_API void berth_dynamic_destroy(berth_dynamic *dynamic);  // NULL is fine

BERTH_API uint32_t berth_dynamic_input_count(const berth_dynamic *dynamic);
BERTH_API uint32_t berth_dynamic_output_count(const berth_dynamic *dynamic);
// NULL when there is no such index. As long as the model.
BERTH_API const char *berth_dynamic_input_name(const berth_dynamic *dynamic, uint32_t index);
BERTH_API const char *berth_dynamic_output_name(const berth_dynamic *dynamic, uint32_t index);

// Runs once. `inputs`: all of them, in the model's order; data is borrowed for the call.
//   ownership: the caller frees the results, which need the model no more
//   errors:    INVALID_ARGUMENT not as many as the model has, or one of them is no tensor; INCOMPATIBLE
//              element type or shape (names the input); UNSUPPORTED a program has no code for these shapes
//              (says which it has); those of compiling and of sessions; CANCELLED
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_run(berth_dynamic *dynamic,
                                                        const berth_tensor *inputs,
                                                        uint32_t input_count,
                                                        berth_results **out_results);
// ---- state ----
//
// A program may declare inputs whose value is an output of the run before (berth_compiler_add_state), as a
// decoder's cache is. From berth_dynamic_keep_states on it keeps them: an input that is left out (element
// type BERTH_DTYPE_NONE, no data) is what the run before gave for it, and at first zeros of its fixed
// dimensions and of the least of its bounds; one that is given takes its place. Outputs that are state have
// no item in the results. A cache that is its input with more rows after it grows in its own memory, of the
// most rows that its bounds allow, and is not copied. A run that fails leaves all state as it was.

// The output that is the value of input `index` in the next run; UINT32_MAX: the input is no state.
BERTH_API uint32_t berth_dynamic_state_output(const berth_dynamic *dynamic, uint32_t index);
// Errors: INVALID_ARGUMENT the program declares none; UNSUPPORTED it is none (models that compile as they run
// keep no state; those loaded from a compiler with states are compiled before); OUT_OF_MEMORY.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_keep_states(berth_dynamic *dynamic);
// All state is as before the first run.
BERTH_API void berth_dynamic_reset_states(berth_dynamic *dynamic);
// A copy of what is kept for input `index`: results of one output, which is the caller's to free, and empty
// where nothing is kept yet. Errors: OUT_OF_MEMORY.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_get_state(const berth_dynamic *dynamic,
                                                              uint32_t index,
                                                              berth_results **out_results);
// Bytes of state that the last run had to copy: 0 where all of it grew in place.
BERTH_API uint64_t berth_dynamic_copied_bytes(const berth_dynamic *dynamic);

// ---- memory of values ----
//
// What comes and goes in a run (what loops carry, sequences, states, what has a shape that data decides, and results
// until they are freed) lies in host memory that is kept for the next run, so that a run like the one before asks the
// system for none. What stays in memories of other devices, in programs, is kept there the same way. Workspaces and
// constants are in neither.

// Later versions may add members at the end.
typedef struct berth_dynamic_memory {
    uint64_t limit_bytes;                          // of reserved_bytes; 0 = none
    uint64_t reserved_bytes, most_reserved_bytes;  // taken from the system: now, and at most so far
    uint64_t live_bytes, most_live_bytes;          // of values: now, and at most so far
    uint64_t live_count;                           // blocks of values now, two or so for a sequence
    uint64_t allocation_count;                     // such blocks so far
    uint64_t system_count;                         // times that the system was asked for memory
    uint64_t device_reserved_bytes;                // for values in memories of other devices, now
    uint64_t device_count;                         // times that these were asked for memory
} berth_dynamic_memory;
// Fills in the first `size_bytes` (sizeof(berth_dynamic_memory)) of it. Errors: INVALID_ARGUMENT a size that is none.
// Thread-safe.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_get_memory(const berth_dynamic *dynamic,
                                                               berth_dynamic_memory *out_memory,
                                                               size_t size_bytes);
// From here on a run for whose values more than that must be taken from the system, or in a memory of another device,
// fails with OUT_OF_MEMORY; 0 = there is no limit, as at first. Thread-safe.
BERTH_API void berth_dynamic_limit_memory(berth_dynamic *dynamic, uint64_t limit_bytes);

// ---- pieces: what takes the time of a run ----

// One piece of a run: a stretch of operations on the devices, or one on the host. Pieces of loops come once
// per round. Later versions may add members at the end.
typedef struct berth_piece_facts {
    const char *name;    // nodes of the model
    const char *op;      // their operators
    const char *target;  // it was planned for, as berth_program_target has it; NULL: on the host
    struct berth_session
        *session;      // whose steps are the piece's (<berth/session.h>); NULL: on the host
    int64_t start_ns;  // of CLOCK_MONOTONIC; of a session when its run began
    int64_t duration_ns;
} berth_piece_facts;

typedef void (*berth_piece_listener)(void *user, const berth_piece_facts *piece);

// From here on every run tells `listener` each piece when it has ended; all that it is given lives until it
// returns. To be called before the first run: pieces that ran before it have no times of steps. The thread
// that runs calls it; it may read the session's steps and results, and nothing else of the model.
BERTH_API void berth_dynamic_listen(berth_dynamic *dynamic, berth_piece_listener listener,
                                    void *user);

// Makes a run under way on another thread end with CANCELLED; when none is, the next one. Thread-safe.
BERTH_API void berth_dynamic_cancel(berth_dynamic *dynamic);

BERTH_API void berth_results_free(berth_results *results);  // NULL is fine
// Tensors of output `index`: 1 where it is a tensor, as many as it has where it is a sequence, 0 for an
// empty optional value or where there is no such output.
BERTH_API uint32_t berth_results_item_count(const berth_results *results, uint32_t index);
// Not 0 when the output is a sequence.
BERTH_API int berth_results_is_sequence(const berth_results *results, uint32_t index);
// NULL when there is none. As long as the results. Of a map the values, a vector.
BERTH_API const berth_tensor *berth_results_item(const berth_results *results, uint32_t index,
                                                 uint32_t item);
// The keys of a map (i64 or strings), as many as its values; NULL when the item is no map.
BERTH_API const berth_tensor *berth_results_keys(const berth_results *results, uint32_t index,
                                                 uint32_t item);

BERTH_END

#endif  // BERTH_DYNAMIC_H_
