// Plans: where a model's operations would run and why, without compiling kernels (libberth-compiler).
//
//   berth_plan_info *plan;
//   berth_status status = berth_compiler_plan_file(compiler, "digits.onnx", &plan);
//   if (!status) fputs(berth_plan_info_svg(plan), picture);
//   for (uint32_t i = 0; i < berth_plan_info_operation_count(plan); ++i)
//       puts(berth_plan_info_operation(plan, i)->device);
//   berth_plan_info_free(plan);
//
// Immutable; any thread may look at it. Texts and records live as long as it. Records that are handed out by an index may
// have more members at the end in later versions; those in arrays inside of others do not grow. Times are in ns.
#ifndef BERTH_PLAN_H_
#define BERTH_PLAN_H_

#include <berth/compile.h>
#include <berth/program.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_plan_info berth_plan_info;

// Plans a model with the compiler's options, as berth_compiler_compile_file and _memory would.
//   errors: those of compiling up to the plan; INVALID_ARGUMENT a program, which is planned already
BERTH_API BERTH_MUST_USE berth_status berth_compiler_plan_file(berth_compiler *compiler,
                                                               const char *path,
                                                               berth_plan_info **out_plan);
BERTH_API BERTH_MUST_USE berth_status berth_compiler_plan_memory(berth_compiler *compiler,
                                                                 const void *data,
                                                                 size_t size_bytes,
                                                                 const char *folder,
                                                                 berth_plan_info **out_plan);
BERTH_API void berth_plan_info_free(berth_plan_info *plan);  // NULL is fine

// Time of one request as the cost model predicts it; 0 = unknown.
BERTH_API double berth_plan_info_predicted_ns(const berth_plan_info *plan);

BERTH_API uint32_t berth_plan_info_placement_count(const berth_plan_info *plan);
// NULL when there is no such index.
BERTH_API const berth_placement *berth_plan_info_placement_at(const berth_plan_info *plan,
                                                              uint32_t index);

// The predicted schedule of one request, a row for each device and link against time, as an SVG document.
BERTH_API const char *berth_plan_info_svg(const berth_plan_info *plan);
// Where intermediate values lie, as an SVG document: a panel for each workspace, steps to the right, bytes
// upwards, values by their names, the step at which most is live marked. The text lives as long as the plan.
//   errors:  FAILED_PRECONDITION there are no intermediate values
//   threads: it adds to the plan: no other call on this plan at the same time
BERTH_API BERTH_MUST_USE berth_status berth_plan_info_draw_memory(berth_plan_info *plan,
                                                                  const char **out_svg);
// The graph, coloured by device, for Graphviz.
BERTH_API const char *berth_plan_info_dot(const berth_plan_info *plan);

// ---- the plan in full ---------------------------------------------------------------------------

typedef struct berth_plan_facts {
    const char *model;        // its name
    const char *target;       // as JSON
    const char *target_name;  // "" = none
    const char *devices;      // in short, for logs: "opencl:0 cpu:0 host=cpu:0"
    const char *strategy;
    const char *found_by;        // what found the placement: "heft", "default", ...
    const char *default_device;  // of the target
    double predicted_ns;         // of one request; 0 = unknown
    const char *objective;       // "latency", "throughput", "memory"
    // What follows is known where is_valued is not 0; value and lower_bound in `unit`: "ns", "bytes", "of capacity".
    int is_valued;
    const char *unit;
    double value;
    double lower_bound;      // no placement is below it, in the model
    double gap;              // (value - lower_bound) / value
    int is_proven;           // not 0: optimal in the model
    const char *value_text;  // value, bound and gap in words
    int is_reproducible;     // 0: the time budget ended the search
    uint64_t search_nodes;
    const char *const *notes;  // [note_count] what was left out or assumed
    uint32_t note_count;
} berth_plan_facts;
BERTH_API const berth_plan_facts *berth_plan_info_facts(const berth_plan_info *plan);

typedef struct berth_planned_device {
    const char *name;
    int is_host_only;  // not 0: drives others, and is no place for operations
} berth_planned_device;
typedef struct berth_planned_memory {
    const char *name;
    uint64_t used_bytes;    // by what is planned
    uint64_t budget_bytes;  // 0 = no limit is known
} berth_planned_memory;

// A device that an operation is not on.
typedef struct berth_planned_rejection {
    const char *device;
    const char *reason;  // "unsupported: ...", "pinned: ...", "+0.31 ms: copies ..."
    double
        delta;  // by what the plan's value would rise, in its unit; below 0: it would be better; NAN = not known
} berth_planned_rejection;
// A library of the target that could compute an operation.
typedef struct berth_planned_library {
    const char *name;
    const char *computes;  // "matmul f32 [128,768]*[768,768], bias"
    int is_chosen;
    const char *reason;
    double time_ns,
        own_ns;       // measured of it, and of Berth's kernels for the same; below 0: nothing was
    double extra_ns;  // of passes over the result that would have been fused
} berth_planned_library;
// What an operation takes of a memory on its device's chip.
typedef struct berth_planned_buffer {
    const char *memory, *scope;
    uint64_t used_bytes, capacity_bytes;
} berth_planned_buffer;

// In the order of the model.
typedef struct berth_planned_operation {
    const char *node, *op;  // of the model
    const char *name;       // "conv1 (Conv)"; without a node, where it is written
    const char *device;
    const char *memory;  // that its results are in
    const char *reason;
    const char *const *chain;  // [chain_count] the same step by step
    double start_ns, time_ns;
    const char *cost;  // where the time comes from: "measured", "analytic", ...
    int has_time;      // 0: none of its own: nothing runs, or another operation's time holds it
    int is_on_host;    // not 0: computed by the host's interpreter (shapes)
    const berth_planned_rejection *rejections;  // [rejection_count]
    const berth_planned_library *libraries;     // [library_count]
    const berth_planned_buffer *buffers;        // [buffer_count]
    uint32_t chain_count, rejection_count, library_count, buffer_count;
} berth_planned_operation;

// A value's way from a device to another.
typedef struct berth_planned_copy {
    const char *from, *to;
    const char *value;
    const char *reason;   // "needed there by sub, ..."
    uint64_t size_bytes;  // 0 = nothing moves: the devices share the memory
    double time_ns;
    double
        bandwidth_bytes_per_s;  // of the narrowest link of its way in the target; 0 = nothing moves
    const char *bus;            // which others share; "" = none
} berth_planned_copy;

// A copy in the predicted schedule, beside computation.
typedef struct berth_planned_transfer {
    const char *value;
    const char *device;  // whose link is busy
    int is_to_host;
    double start_ns, time_ns;
} berth_planned_transfer;

// A value that is live where a pool is fullest.
typedef struct berth_planned_value {
    const char *name;
    uint64_t size_bytes;
    const char *first_step, *last_step;  // that touch its bytes
} berth_planned_value;
// An allocation of the program.
typedef struct berth_planned_pool {
    const char *device, *memory, *scope;
    const char *usage;               // "workspace", "constants", "io", "store"
    const char *const *shared_with;  // [shared_with_count] other devices that reach it
    uint32_t shared_with_count;
    uint64_t size_bytes;
    uint64_t lower_bound_bytes;  // 0 = unknown
    // Of a workspace, where is_workspace_known is not 0:
    int is_workspace_known;
    uint64_t live_bytes;  // the largest sum of values live at one step
    uint64_t
        made_bytes;  // of these, values that the model does not have (borders, relayouts, transforms)
    uint64_t padding_bytes;
    const char *peak_step;
    const char *strategy;               // that found the offsets
    const berth_planned_value *values;  // [value_count] live there, largest first
    uint32_t value_count;
} berth_planned_pool;

// Where dimensions have bounds (berth_compiler_set_dim_bounds): the workspace of a part of the model for the shapes
// that one program of it serves. Values keep the places that they have for the largest shape, so one plan holds
// for all of them.
typedef struct berth_planned_workspace {
    const char *nodes, *ops;  // the part: names of nodes, and their operators
    const char *shapes;       // "for 512 shapes in all: v0 = dimension 0 of input 0, 1..512"
    const char *device;
    uint64_t least_bytes, most_bytes;  // over all these shapes
    // In bytes, of v0, v1, ...: "4096*v0 + 128", "max(8*v0, 4*v0 + 64)"; NULL = it is no short one
    const char *expression;
} berth_planned_workspace;

// A constant that is read in each run, because a budget has no room for it.
typedef struct berth_planned_load {
    const char *name;
    uint64_t size_bytes;
    const char *from_step;  // its copy may run from here on
    const char *first_step, *last_step;
} berth_planned_load;
typedef struct berth_planned_stream {
    const char *memory, *device;
    uint64_t budget_bytes, constant_bytes, resident_bytes;
    uint32_t constant_count;  // that do not stay
    uint64_t loaded_bytes;    // per run
    uint32_t spilled_count;   // values that wait in host memory for a while
    uint64_t spilled_bytes;
    double load_ns;           // of all copies of a run
    double run_ns, whole_ns;  // of a run; with all constants there
    const berth_planned_load *loads;
    uint32_t load_count;
    uint32_t recomputed_count;  // values that are computed again instead of being kept
    uint64_t recomputed_bytes;
    uint32_t recomputed_steps;  // that run once more for that
    double recompute_ns;        // of these, predicted
} berth_planned_stream;

// How intermediate values came to share memory: the largest live sum of values by themselves, with results over operands, with
// parts inside wholes, and in the order found.
typedef struct berth_planned_sharing {
    uint64_t plain_bytes, in_place_bytes, views_bytes, ordered_bytes;
    uint32_t in_place_count;
    uint32_t removed_steps;
    uint64_t removed_bytes;
    uint64_t order_bound_bytes;  // no order has a lower peak; 0 = not looked at
    uint64_t order_states;
    uint64_t
        thread_bytes;  // scratch that the kernel which needs most wants for each thread, beside the workspace
} berth_planned_sharing;

// What a schedule could have decided.
typedef struct berth_planned_alternative {
    const char *what, *why;
    double cost;  // times as long as what was decided, estimated; 0 = not possible, or not known
} berth_planned_alternative;
typedef struct berth_planned_nest {
    const char *decisions;
    const berth_planned_alternative *alternatives;  // [alternative_count]; option explain_kernels
    uint32_t alternative_count;
} berth_planned_nest;
typedef struct berth_planned_kernel {
    const char *name;
    const char *function;             // hash of what it computes
    const char *chosen_by;            // "policy", "module", "tuned"
    const berth_planned_nest *nests;  // [nest_count]
    uint32_t nest_count;
} berth_planned_kernel;

BERTH_API uint32_t berth_plan_info_device_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_memory_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_operation_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_copy_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_transfer_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_pool_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_stream_count(const berth_plan_info *plan);
BERTH_API uint32_t berth_plan_info_kernel_count(const berth_plan_info *plan);
// NULL when there is no such index.
BERTH_API const berth_planned_device *berth_plan_info_device(const berth_plan_info *plan,
                                                             uint32_t index);
BERTH_API const berth_planned_memory *berth_plan_info_memory(const berth_plan_info *plan,
                                                             uint32_t index);
BERTH_API const berth_planned_operation *berth_plan_info_operation(const berth_plan_info *plan,
                                                                   uint32_t index);
BERTH_API const berth_planned_copy *berth_plan_info_copy(const berth_plan_info *plan,
                                                         uint32_t index);
BERTH_API const berth_planned_transfer *berth_plan_info_transfer(const berth_plan_info *plan,
                                                                 uint32_t index);
BERTH_API const berth_planned_pool *berth_plan_info_pool(const berth_plan_info *plan,
                                                         uint32_t index);
BERTH_API const berth_planned_stream *berth_plan_info_stream(const berth_plan_info *plan,
                                                             uint32_t index);
BERTH_API const berth_planned_kernel *berth_plan_info_kernel(const berth_plan_info *plan,
                                                             uint32_t index);
BERTH_API uint32_t berth_plan_info_workspace_count(const berth_plan_info *plan);
BERTH_API const berth_planned_workspace *berth_plan_info_workspace(const berth_plan_info *plan,
                                                                   uint32_t index);
BERTH_API const berth_planned_sharing *berth_plan_info_sharing(const berth_plan_info *plan);

// ---- other machines -----------------------------------------------------------------------------

typedef struct berth_what_if_info berth_what_if_info;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at the end.
typedef struct berth_what_if_settings {
    size_t size_bytes;      // sizeof(berth_what_if_settings)
    int64_t time_limit_ns;  // no further plan is begun then; 0 = none
    berth_progress_callback
        on_plan;  // before each plan: what changes, how many are done, of how many; NULL = none
    void *user;
} berth_what_if_settings;

typedef struct berth_what_if_change {
    const char *what;     // "one more gpu", "without the pin op:Conv=cpu:0"
    const char *problem;  // why there is no plan then; NULL = there is one
    double value;         // of that plan, in the unit of the plan before
    double gain;  // part of the value before that is saved: 0.12 = 12 % faster; below 0: slower
} berth_what_if_change;

// Plans the model again for the target with one change at a time: a pin less, a device more or less, links and memories
// twice as fast, memories of half and twice the size.
//   compiler: with the options that `plan` was made with
//   plan:     of a file
//   errors:   INVALID_ARGUMENT a plan of a model from memory; those that are not about the machine. A change without
//             a plan is no error.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_what_if(berth_compiler *compiler,
                                                             const berth_plan_info *plan,
                                                             const berth_what_if_settings *settings,
                                                             berth_what_if_info **out_info);
BERTH_API void berth_what_if_info_free(berth_what_if_info *info);  // NULL is fine
// The value of the plan as it is, and its unit: "ns", "bytes", "of capacity".
BERTH_API double berth_what_if_info_before(const berth_what_if_info *info, const char **out_unit);
// Changes that the time did not suffice for.
BERTH_API uint32_t berth_what_if_info_left_out(const berth_what_if_info *info);
BERTH_API uint32_t berth_what_if_info_change_count(const berth_what_if_info *info);
// Largest gain first, those without a plan last; NULL when there is no such index.
BERTH_API const berth_what_if_change *berth_what_if_info_change(const berth_what_if_info *info,
                                                                uint32_t index);

// ---- less memory --------------------------------------------------------------------------------

typedef struct berth_memory_sweep_info berth_memory_sweep_info;

typedef struct berth_sweep_point {
    uint64_t budget_bytes;
    uint64_t planned_bytes;  // in the memory
    uint64_t read_bytes;     // of constants, in each run
    double predicted_ns;     // of a run
} berth_sweep_point;

// Plans the model for about `count` (2 at least) budgets of a memory, in equal ratios, from what the plan without a budget
// needs down to the smallest that does.
//   memory: its name, or that of a device; NULL = the default device's own
//   errors: those of planning; NOT_FOUND no such memory
BERTH_API BERTH_MUST_USE berth_status
berth_compiler_sweep_memory_file(berth_compiler *compiler, const char *path, const char *memory,
                                 uint32_t count, berth_memory_sweep_info **out_info);
BERTH_API void berth_memory_sweep_info_free(berth_memory_sweep_info *info);  // NULL is fine
// Names of the model and of the memory.
BERTH_API const char *berth_memory_sweep_info_model(const berth_memory_sweep_info *info);
BERTH_API const char *berth_memory_sweep_info_memory(const berth_memory_sweep_info *info);
// The smallest budget.
BERTH_API uint64_t berth_memory_sweep_info_least_bytes(const berth_memory_sweep_info *info);
BERTH_API uint32_t berth_memory_sweep_info_point_count(const berth_memory_sweep_info *info);
// From the largest budget to the smallest; NULL when there is no such index.
BERTH_API const berth_sweep_point *
berth_memory_sweep_info_point(const berth_memory_sweep_info *info, uint32_t index);
// The predicted time against the budget, as an SVG document.
BERTH_API const char *berth_memory_sweep_info_svg(const berth_memory_sweep_info *info);

BERTH_END

#endif  // BERTH_PLAN_H_
