// Measured costs: how long kernels and copies take on this machine, for plans to predict by (libberth-compiler;
// docs/costs.md). The compiler's option "costs" names a file of them.
//
//   berth_costs *costs;
//   berth_status status = berth_costs_create(&costs);
//   if (!status) status = berth_compiler_calibrate(compiler, "digits.onnx", NULL, costs);
//   if (!status) status = berth_costs_save(costs, "costs.jsonl");
//   berth_costs_destroy(costs);
//
// One thread at a time uses costs.
#ifndef BERTH_CALIBRATE_H_
#define BERTH_CALIBRATE_H_

#include <berth/compile.h>
#include <berth/session.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_costs berth_costs;

BERTH_API BERTH_MUST_USE berth_status berth_costs_create(berth_costs **out_costs);
BERTH_API void berth_costs_destroy(berth_costs *costs);  // NULL is fine

// Adds those of a file. Where both have the same work, they become one, their mean weighted by runs.
// Errors: NOT_FOUND, IO; INVALID_ARGUMENT no file of costs (says where).
BERTH_API BERTH_MUST_USE berth_status berth_costs_read(berth_costs *costs, const char *path);
// Adds those of `others` whose work is not in `costs` yet.
BERTH_API BERTH_MUST_USE berth_status berth_costs_add_missing(berth_costs *costs,
                                                              const berth_costs *others);
// Writes all of them, complete or not at all. Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_costs_save(const berth_costs *costs, const char *path);
BERTH_API uint32_t berth_costs_count(const berth_costs *costs);

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end.
typedef struct berth_calibrate_settings {
    size_t size_bytes;    // sizeof(berth_calibrate_settings)
    int64_t duration_ns;  // about, of the runs of one program on one device; 0 = 2 s
    uint64_t seed;        // of random inputs
    void (*on_begin)(void *user,
                     const char *what);  // what is measured now: "digits on cpu:0"; may be NULL
    void *user;
    // Not 0: runs nothing. Only devices whose kind has a timing model, of a machine that need not be here.
    int by_model;
    const berth_device_words
        *device_words;  // of devices of the target, which are then run and not modelled
    uint32_t device_word_count;
} berth_calibrate_settings;

// Runs a model on each device of the compiler's target that computes, all of it there that can be, and
// adds what its kernels and copies took: medians over at least 5 runs. Nothing else should be running. `path` NULL =
// a built-in set of convolutions, products and what else models are made of. Pins, strategy and costs of the
// compiler are not looked at; `settings` NULL = defaults. A device whose kind has a timing model is not run:
// what the model says of the compiled code is added, unless the target is one that is there.
//   errors: those of compiling and of sessions; UNSUPPORTED a model that needs the virtual machine, or by_model
//   of a target none of whose devices has a timing model
BERTH_API BERTH_MUST_USE berth_status
berth_compiler_calibrate(berth_compiler *compiler, const char *path,
                         const berth_calibrate_settings *settings, berth_costs *costs);

BERTH_END

#endif  // BERTH_CALIBRATE_H_
