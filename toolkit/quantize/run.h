// Runs an edited model on data sets, private to toolkit/quantize. The virtual machine runs it: shapes may
// differ from set to set, and any control flow is fine.
#ifndef BERTH_TOOLKIT_QUANTIZE_RUN_H_
#define BERTH_TOOLKIT_QUANTIZE_RUN_H_

#include "compiler/onnx/edit.h"
#include "toolkit/quantize/data.h"
#include "toolkit/quantize/quantize.h"

typedef struct berth_quantize__runner berth_quantize__runner;

// Writes the model and opens it. It is closed with `arena` at the latest.
BERTH_MUST_USE berth_status berth_quantize__runner_open(berth_arena *arena, berth_onnx_edit *model,
                                                        const berth_quantize_options *options,
                                                        berth_quantize__runner **out_runner);
void berth_quantize__runner_close(berth_quantize__runner *runner);  // again: nothing to do

// Runs once. `inputs`: one per name of `data`.
BERTH_MUST_USE berth_status berth_quantize__runner_run(berth_quantize__runner *runner,
                                                       const berth_quantize__data *data,
                                                       const berth_tensor *inputs);
// Of the last run, in the order of the model's outputs; NULL = no tensor.
const berth_tensor *berth_quantize__runner_output(const berth_quantize__runner *runner,
                                                  uint32_t index);

// Called for each data set after all runners have run it. `scratch` lives until the next one.
typedef berth_status berth_quantize__visit(void *user, berth_arena *scratch, uint32_t set);
// Reads and runs set by set; only one is in memory at a time.
BERTH_MUST_USE berth_status berth_quantize__run_all(
    berth_arena *arena, const berth_quantize__data *data, const berth_quantize_options *options,
    const char *what, berth_quantize__runner *const *runners, uint32_t runner_count,
    uint32_t set_count, berth_quantize__visit *visit, void *user);

#endif  // BERTH_TOOLKIT_QUANTIZE_RUN_H_
