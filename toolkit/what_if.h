// What a plan would gain from another machine: the model is planned again for the target with one change
// at a time (target/change.h), a pin less, a device more, a faster link.
//
//   berth_what_if_options options = {.path = "m.onnx", .model = &model_options, .before = model};
//   berth_what_if_report report;
//   BERTH_TRY(berth_what_if(arena, &options, &report));
//   // report.items[0] is what pays most
#ifndef BERTH_TOOLKIT_WHAT_IF_H_
#define BERTH_TOOLKIT_WHAT_IF_H_

#include "target/change.h"
#include "toolkit/model.h"

typedef struct berth_what_if_options {
    const char *path;                  // of the model
    const berth_model_options *model;  // with which it was planned
    const berth_model *before;
    int64_t time_limit_ns;  // no further plan is begun then; 0 = none
    void (*progress)(void *user, const char *what, uint32_t done, uint32_t total);  // (optional)
    void *progress_user;
} berth_what_if_options;

typedef struct berth_what_if_item {
    const char *what;                   // "one more gpu", "without the pin op:Conv=cpu:0"
    const berth_target_change *change;  // NULL: the strategy `auto` instead of `default`
    const char *problem;                // why there is no plan then; NULL = there is one
    double value;                       // of that plan, in the unit of the plan before
    // Part of the time of a plan before that is saved: 0.12 = a plan 12 % faster; < 0: slower. Where
    // a strategy searches, what only gets better allows the plan before, too, and is at least 0.
    double gain;
} berth_what_if_item;

// Arena memory.
typedef struct berth_what_if_report {
    berth_what_if_item *items;  // largest gain first, those without a plan last
    uint32_t count;
    uint32_t left_out;  // that the time did not suffice for
    double before;      // value of the plan before
    const char *unit;   // "ns", "bytes", "of capacity"
} berth_what_if_report;

// Changes that are tried: the strategy, each pin; for each kind of what is alike, one device more, one
// less (the busiest), links twice as fast, memories twice as fast, half and twice as large.
//   errors: IO, OUT_OF_MEMORY, CANCELLED and others that are not about the machine. A change without a
//           plan is no error.
BERTH_MUST_USE berth_status berth_what_if(berth_arena *arena, const berth_what_if_options *options,
                                          berth_what_if_report *out_report);

#endif  // BERTH_TOOLKIT_WHAT_IF_H_
