// What a kind of device asks of the passes beside code: which operations it runs and how long they
// take, in which layouts it wants their operands, what it takes into one function. Kinds without
// rules run what has a lowering, on row-major tensors or those of the pass layout.
//
//   static const berth_kind_rules rules = {.kind = "npu", .unsupported = why_not, ...};
//   BERTH_TRY(berth_rules_register(&rules));   // in a plug-in's set_up (compiler/plugin.h)
//
// Functions are asked about one operation of a graph, before or after placement; what they return
// lives in `arena`.
#ifndef BERTH_COMPILER_RULES_H_
#define BERTH_COMPILER_RULES_H_

#include "artifact/program.h"
#include "ir/graph/graph.h"
#include "target/target.h"

typedef struct berth_rules_question {
    const berth_module *module;
    berth_func_id function;
    berth_op_id op;
    const berth_target *target;  // of a device of the kind
    berth_arena *arena;
    const berth_multi_target *machine;  // that the device belongs to
    uint32_t device;                    // of the machine
} berth_rules_question;

// The operation that is asked about, and the type of a value of its graph.
const berth_op *berth_rules_op(const berth_rules_question *question);
const berth_type *berth_rules_type(const berth_rules_question *question, berth_value_id value);

// A memory on a device's chip that an operation works in while it runs.
typedef struct berth_rules_buffer {
    const char *scope;    // of a memory of the machine that the device reaches
    uint64_t used_bytes;  // of it, at most
} berth_rules_buffer;
#define BERTH_RULES_MAX_BUFFERS 8

typedef struct berth_rules_layouts {
    const char **operands;  // per operand a tag (ir/layout.h), NULL = row-major
    const char *result;     // of the first result
    // Of a convolution with constant weights in operand `weights`: other groups than it has, fewer,
    // each of several of its own side by side; weights between those are 0. 0 = as it is.
    int64_t groups;
    uint32_t weights;
} berth_rules_layouts;

typedef struct berth_kind_rules {
    const char *kind;
    // There is no code generator: devices are planned for and simulated, and nothing is built.
    bool described;
    // It wants quantised operations whole (qlinear_conv, qlinear_add), with activations as signed as
    // the model has them: find-integers makes them where a target has such a device, and elsewhere
    // than on it they are taken apart again before layouts are chosen.
    bool whole_quantized;
    // (optional: what has a lowering) Why the device does not run the operation, NULL = it does.
    const char *(*unsupported)(const berth_rules_question *question);
    // (optional: by operations and bytes) Predicted nanoseconds on one device; below 0: not known.
    double (*time_ns)(const berth_rules_question *question);
    // (optional: row-major) Layouts of an operation that it runs; a value's must not depend on who
    // asks. `out` comes zeroed, with room for each operand.
    void (*layouts)(const berth_rules_question *question, berth_rules_layouts *out);
    // (optional: as on other devices) Whether the operation may follow `previous`, which makes one
    // of its operands, in one function.
    bool (*follows)(const berth_rules_question *question, berth_op_id previous);
    // (optional: never) Whether the device runs the operation only so, in one function with
    // `previous`: the planner keeps the two on one device.
    bool (*only_after)(const berth_rules_question *question, berth_op_id previous);
    // (optional: none) What an operation that it runs takes of the memories on its chip, by the tiles
    // that it would be run in; the number of them. `out` has room for BERTH_RULES_MAX_BUFFERS.
    uint32_t (*buffers)(const berth_rules_question *question, berth_rules_buffer *out);
    // (optional: it is measured) How long a kernel of compiled code takes on a device of the target, by
    // a timing model of it; below 0: the target is a device that is there to be measured, or the code
    // is none of its kind. `berth calibrate` asks.
    double (*modelled_ns)(const berth_target *target, const berth_executable_image *image,
                          const char *entry);
} berth_kind_rules;

// Errors: ALREADY_EXISTS the kind has rules; OUT_OF_RANGE. Rules must live as long as the process.
BERTH_MUST_USE berth_status berth_rules_register(const berth_kind_rules *rules);
const berth_kind_rules *berth_rules_find(berth_device_kind kind);  // NULL: none
// Whether such devices can be planned for, and nothing more.
bool berth_rules_only_described(berth_device_kind kind);

// Whether some device of the target wants quantised operations whole.
bool berth_rules_want_whole(const berth_multi_target *target);

// The rules of the device that an operation is placed on, and the question about it; NULL: none.
const berth_kind_rules *berth_rules_of(const berth_module *module, berth_func_id function,
                                       berth_op_id op, const berth_multi_target *target,
                                       berth_arena *arena, berth_rules_question *out_question);

#endif  // BERTH_COMPILER_RULES_H_
