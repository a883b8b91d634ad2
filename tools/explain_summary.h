// What `berth explain` says first: where the time of a plan goes.
#ifndef BERTH_TOOLS_EXPLAIN_SUMMARY_H_
#define BERTH_TOOLS_EXPLAIN_SUMMARY_H_

#include <jansson.h>

#include "toolkit/model.h"

// Devices, copies between them in sum, the longest operations, memories, bound and gap.
void berth_explain_print_summary(berth_arena *arena, const berth_model *model);
// Every copy and what causes it.
void berth_explain_print_copies(const berth_model *model);
// "model", "target", "strategy", "predicted_ms", "objective", "devices", "traffic".
json_t *berth_explain_summary_json(berth_arena *arena, const berth_model *model);

#endif  // BERTH_TOOLS_EXPLAIN_SUMMARY_H_
