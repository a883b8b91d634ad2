// Inputs of models that the virtual machine runs, for `berth run` and `berth bench`, run after run.
//
//   BERTH_TRY(berth_vm_feed_open(cli, model, &values, seed, &feed));
//   ... berth_dynamic_run(model, feed.inputs, berth_dynamic_input_count(model), &results)
//   BERTH_TRY(berth_vm_feed_next(&feed));     // before another run
#ifndef BERTH_TOOLS_VM_INPUTS_H_
#define BERTH_TOOLS_VM_INPUTS_H_

#include <berth/dynamic.h>

#include "tools/cli_compiler.h"

// A dimension that state has and others follow: "past".
typedef struct berth_vm_feed_symbol {
    const char *name;
    size_t length;  // of the name
    int64_t value;
} berth_vm_feed_symbol;

enum { BERTH_VM_FEED_SYMBOLS = 16 };

typedef struct berth_vm_feed {
    berth_cli_model *cli;
    berth_arena *arena;  // of the inputs
    berth_dynamic *model;
    const berth_cli_values *values;
    uint64_t seed;
    bool keeps_states;     // of --state
    bool is_first;         // no run was before
    berth_tensor *inputs;  // per input; of element type NONE where it is state that is kept
    size_t *room_bytes;    // per input, of what is random
    berth_vm_feed_symbol symbols[BERTH_VM_FEED_SYMBOLS];
    uint32_t symbol_count;
} berth_vm_feed;

// A tensor per input: as given, else seeded random values of the most of the bounds, or with a batch of one where that
// is open, with a note. With --state the model keeps its states from here on, which begin as given or empty; dimensions
// of other inputs follow theirs ("past+1").
// Inside berth_arena_try of the command's arena. The caller closes it, after errors, too.
// Errors: INVALID_ARGUMENT an input is not given whose shape is open, there is none of a name, or no state; UNSUPPORTED
// it is no tensor.
BERTH_MUST_USE berth_status berth_vm_feed_open(berth_cli_model *cli, berth_dynamic *model,
                                               const berth_cli_values *values, uint64_t seed,
                                               berth_vm_feed *out_feed);
void berth_vm_feed_close(berth_vm_feed *feed);  // all zero is fine
// The inputs of the run after the last one: others than before only where states grew. States that are as long as
// their bounds allow begin anew. Streams of several threads have a feed each.
BERTH_MUST_USE berth_status berth_vm_feed_next(berth_vm_feed *feed);

#endif  // BERTH_TOOLS_VM_INPUTS_H_
