// Calibration: measured times of kernels and copies, for the cost model (compiler/cost/table.h). What
// is measured are the steps of built programs, compiled as for any run, by the executor's profile.
//
//   berth_calibrate_options options = {.model = {.target = "local"}};
//   BERTH_TRY(berth_calibrate(NULL, &options, table));           // built-in shapes
//   BERTH_TRY(berth_calibrate("model.onnx", &options, table));
#ifndef BERTH_TOOLKIT_CALIBRATE_H_
#define BERTH_TOOLKIT_CALIBRATE_H_

#include "compiler/cost/table.h"
#include "executor/session.h"
#include "toolkit/model.h"

typedef struct berth_calibrate_options {
    berth_model_options model;  // target and compiler; pins, strategy and costs are not looked at
    int64_t duration_ns;        // about, of the runs of one program on one device; 0 = 2 s
    uint64_t seed;              // of random inputs
    // Runs nothing: only devices whose kind has a timing model (compiler/rules.h), of a machine that
    // need not be here.
    bool by_model;
    const berth_session_binding *bindings;  // of devices of the target
    uint32_t binding_count;
    // (optional) What begins now: "resnet50 on cpu:0".
    void (*progress)(void *user, const char *what);
    void *progress_user;
} berth_calibrate_options;

// Runs a model on each device of the target that computes, all of it there that can be, and adds
// what its kernels and copies took: medians over at least 5 runs. `path` NULL = a built-in set of
// convolutions, products and what else models are made of, in sizes from small to large. CPU devices
// get as many threads as their target has cores. A device whose kind has a timing model is not run:
// what the model says of the compiled code is added, unless the target is one that is there.
// An entry point: not inside berth_arena_try.
//   errors: those of berth_model_load and of sessions; UNSUPPORTED a model that needs the virtual
//           machine, or by_model of a target none of whose devices has a timing model
BERTH_MUST_USE berth_status berth_calibrate(const char *path,
                                            const berth_calibrate_options *options,
                                            berth_cost_table *table);

#endif  // BERTH_TOOLKIT_CALIBRATE_H_
