// Tuned kernels: decisions of schedules (tile sizes, orders, chunks, ...) that run faster on this machine than
// the compiler's own, found by measuring (libberth-compiler; docs/tuning.md). The compiler's option "tuned"
// names a file of them.
//
//   berth_tuned *tuned;
//   berth_status status = berth_tuned_create(&tuned);
//   if (!status) status = berth_compiler_tune(compiler, "digits.onnx", NULL, tuned);
//   if (!status) status = berth_tuned_save(tuned, "tuned.jsonl");
//   berth_tuned_destroy(tuned);
//
// One thread at a time uses tuned records.
#ifndef BERTH_TUNE_H_
#define BERTH_TUNE_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_tuned berth_tuned;

BERTH_API BERTH_MUST_USE berth_status berth_tuned_create(berth_tuned **out_tuned);
BERTH_API void berth_tuned_destroy(berth_tuned *tuned);  // NULL is fine

// Adds the records of a file. Of two for the same kernel and device the one that gains more stays.
// Errors: NOT_FOUND, IO; INVALID_ARGUMENT no file of tuned records (says where).
BERTH_API BERTH_MUST_USE berth_status berth_tuned_read(berth_tuned *tuned, const char *path);
// Writes all of them, complete or not at all. Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_tuned_save(const berth_tuned *tuned, const char *path);
BERTH_API uint32_t berth_tuned_count(const berth_tuned *tuned);

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end.
typedef struct berth_tune_settings {
    size_t size_bytes;    // sizeof(berth_tune_settings)
    int64_t duration_ns;  // about, of all; 0 = 60 s
    uint64_t seed;        // of random inputs and of the search
    void (*on_progress)(void *user,
                        const char *what);  // what was found so far, a line; may be NULL
    void *user;
    uint32_t
        trials;  // programs that are tried, however long it takes; 0 = as many as there is time for
} berth_tune_settings;

// Runs programs of a model in turns, whose kernels differ in what was decided of their loops, and adds
// records of the kernels that gain. Results must stay the same within the bounds of `berth verify`. Nothing else
// should be running. Tuned records of the compiler are not looked at; `settings` NULL = defaults.
//   errors: those of compiling and of sessions; INVALID_ARGUMENT a built program; UNSUPPORTED a model that needs
//   the virtual machine
BERTH_API BERTH_MUST_USE berth_status berth_compiler_tune(berth_compiler *compiler,
                                                          const char *path,
                                                          const berth_tune_settings *settings,
                                                          berth_tuned *tuned);

BERTH_END

#endif  // BERTH_TUNE_H_
