// Tuning: decisions of a model's kernels that run faster on this machine than the policies' own, found
// by running them.
//
//   berth_tune_options options = {.model = {.target = "cpu"}, .duration_ns = 60000000000};
//   BERTH_TRY(berth_tune("resnet50.onnx", &options, table));
#ifndef BERTH_TOOLKIT_TUNE_H_
#define BERTH_TOOLKIT_TUNE_H_

#include "compiler/tuning/table.h"
#include "toolkit/model.h"

typedef struct berth_tune_options {
    berth_model_options
        model;            // what the tuned model will be compiled with; `tuned` is not looked at
    int64_t duration_ns;  // about, of all; 0 = 60 s
    uint32_t trials;      // programs that are tried; 0 = as many as the time allows
    uint64_t seed;        // of inputs and of the search
    // (optional) What was found so far, a line.
    void (*progress)(void *user, const char *what);
    void *progress_user;
} berth_tune_options;

// Adds records of kernels that gain. Every trial is a program of the whole model in which each of the
// heavy functions (at least 1 % of the run) has other decisions at once; it runs in turns with the
// policies' program, and each function is judged by its own steps: the median over the rounds of the
// ratio of both. What is tried first are the best by the policies' own estimate, then random changes of
// the best that was found (evolutionary search as in Zheng et al. 2020, "Ansor", section 5.1, with
// measurements in place of a cost model, and a population of one). Results of a trial must be those of
// the policies' program within the bounds of `berth verify`; what gains is measured once more, all
// together, before a record is made.
// An entry point: not inside berth_arena_try.
//   errors: those of berth_model_load and of sessions; INVALID_ARGUMENT a program file; UNSUPPORTED a
//           model that needs the virtual machine
BERTH_MUST_USE berth_status berth_tune(const char *path, const berth_tune_options *options,
                                       berth_tuned_table *table);

#endif  // BERTH_TOOLKIT_TUNE_H_
