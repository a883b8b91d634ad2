// State that the passes of pipeline.c share (private to compiler/): berth_pass_context.user.
#ifndef BERTH_COMPILER_PIPELINE_H_
#define BERTH_COMPILER_PIPELINE_H_

#include "compiler/codegen/codegen.h"
#include "compiler/compile.h"
#include "compiler/cost/work.h"
#include "compiler/external.h"
#include "compiler/kernels/generic_kernels.h"
#include "compiler/package/in_place.h"
#include "compiler/passes/known.h"
#include "compiler/passes/pack.h"
#include "compiler/tuning/kernel_choice.h"

// One distinct tensor function for one device target, compiled once however often it is called.
typedef struct berth_unit {
    berth_tfn *fn;  // scheduled; NULL = an external function, which `external` has
    berth_external_code *external;
    const char *calls;   // (optional) external code that its kernels call: what that is
    berth_hash128 call;  // of an external function: types of the calls and target of the device
    uint32_t
        device;  // a device of the target that runs it (all with an equal target share the unit)
    const char *prefix;  // entry names start with it
    uint32_t next;       // another unit of the same external function, + 1
    berth_codegen_result code;
    berth_hash128 name;              // of the nodes it comes from; only where `generic` is used
    berth_generic_kernel *generic;   // (optional) that `code` is, or will be, a use of
    const berth_in_place *in_place;  // results that may be written over operands
    uint32_t in_place_count;
    bool used;              // by a step of the program
    uint32_t executable;    // in the program
    uint32_t first_kernel;  // in the program
    uint32_t choice;        // in the pipeline's choices; BERTH_NO_INDEX: none
} berth_unit;

// What the rules of a device's kind said of an operation's time.
typedef struct berth_given_time {
    berth_op_kind kind;
    berth_loc_id loc;
    double ns;
    const char *key;  // of the operation's work (compiler/cost/work.h)
} berth_given_time;

typedef struct berth_pipeline {
    bool explain;  // the plan is what is asked for: its bound, and the devices that were not chosen
    const berth_compile_options *options;
    berth_plan *plan;
    BERTH_VEC(berth_unit) units;
    uint32_t *unit_of_op;               // per operation of main (calls): unit, BERTH_NONE otherwise
    BERTH_VEC(berth_given_time) given;  // by the rules, when the module was planned
    berth_work *const *works;           // per operation of main when it was lowered: of its calls
    uint32_t work_count;
    berth_kernel_choices choices;         // of the functions that were scheduled
    const berth_work *const *step_works;  // per step of the program
    const uint32_t *step_choices;         // the same; BERTH_NO_INDEX = none
    const berth_program *program;
    const berth_memory_report *memory;
    berth_known_inputs known;
    const char *notes[5];    // for the plan, as many as there are; NULL = nothing to say
    berth_packing *packing;  // of constants, from the pass layout on; not finished before the end
    uint32_t over_device;    // whose memory did not suffice
    uint32_t over_memory;    // which one
    uint64_t over_bytes;     // by how much; 0 = all sufficed
    const berth_patch_candidate *patch_candidates;
    uint32_t patch_candidate_count;
} berth_pipeline;

// static_shapes.c: shapes of inputs and results must be known. Control flow is left to the pass that
// refuses it by name.
berth_status berth_pipeline__check_static(const berth_module *module, berth_func_id main);
// Attributes that carry what passes decided. TARGET: of the module, its MultiTarget as canonical
// JSON; of a scheduled function, the name of a device of it, for whose target it is made. IN_PLACE:
// of a scheduled function, triples (nest, from, to) of compiler/package/in_place.h. ROWS_FORM: of a scheduled
// function, another one that computes the same row by row, where rows are to roll (passes/roll_rows.h).
#define BERTH_ATTR_TARGET "target"
#define BERTH_ATTR_IN_PLACE "in_place"
#define BERTH_ATTR_ROWS_FORM "rows_form"
// The pass after which operations have their devices.
#define BERTH_PASS_PLAN_DEVICES "plan-devices"
// The first one that compiles what was planned.
#define BERTH_PASS_LAYOUT "layout"

// no_code.c: notes on the devices that should compute and have no code generator: nothing runs there,
// or they are planned for and nothing more. NULL for none. And a status that says which kinds there
// are, where that is what stands in the way.
void berth_pipeline__note_no_code(const berth_compile_options *options, berth_arena *arena,
                                  const char **out_left_out, const char **out_planned);
berth_status berth_pipeline__explain_no_code(const berth_compile_options *options,
                                             berth_arena *arena, berth_status status);
// UNSUPPORTED where a device that computes can only be planned for.
berth_status berth_pipeline__refuse_described(const berth_multi_target *target);

// rule_times.c: keeps the times that rules gave for the planned operations, and hands them to the
// works of what these have become.
void berth_pipeline__note_times(const berth_module *module, berth_func_id main,
                                berth_pipeline *pipeline);
void berth_pipeline__give_times(const berth_module *module, berth_func_id main,
                                berth_pipeline *pipeline);

// units.c: the code generator of a device of the target; NULL: there is none. Devices that are only
// described have one for plans.
const berth_codegen *berth_pipeline__codegen(const berth_pipeline *pipeline, uint32_t device);

// patch_stages.c: the first stages in patches, where options->patches chooses some; a list of choices,
// where options->find_patches asks for it. Errors: those of passes/patches.h; FAILED_PRECONDITION the
// module is planned already.
berth_status berth_pipeline__patches(berth_module *module, berth_func_id main,
                                     berth_pipeline *pipeline, bool *out_did_nothing);
// The same file: stages row by row (passes/roll_rows.h).
berth_status berth_pipeline__roll_rows(berth_module *module, berth_func_id main,
                                       berth_pipeline *pipeline);
// pipeline.c: layouts of activations and weights, per device; the bytes of packed constants are made
// when *out_packing (NULL = there are none) is started and finished. *out_slices: as of passes/slice_channels.h.
berth_status berth_pipeline__layout(berth_module *module, berth_func_id main,
                                    const berth_compile_options *options,
                                    berth_packing **out_packing, const char **out_slices);
// schedule_calls.c: the tensor functions that main calls, scheduled for the devices of the calls.
berth_status berth_pipeline__schedule(berth_module *module, berth_func_id main,
                                      const berth_compile_options *options,
                                      berth_kernel_choices *choices);
uint32_t berth_pipeline__count_nests(const berth_tfn *fn);
// plan_record.c: what a program says of its plan, as attributes of the function that was planned;
// and back.
void berth_pipeline__record_plan(berth_module *module, berth_func_id main, const berth_plan *plan);
berth_status berth_pipeline__read_plan(const berth_module *module, berth_func_id main,
                                       const berth_multi_target *target, berth_program *program);
// units.c: prints every scheduled function that main calls.
berth_status berth_pipeline__make_units(berth_module *module, berth_func_id main,
                                        berth_pipeline *pipeline);
// images.c: compiles the used units' sources to images (executables) of the program being built.
berth_status berth_pipeline__make_images(berth_module *module, berth_pipeline *pipeline,
                                         berth_program *program);
// package.c: memory plan, steps, inputs and outputs.
berth_status berth_pipeline__package(berth_module *module, berth_func_id main,
                                     berth_pipeline *pipeline);

#endif  // BERTH_COMPILER_PIPELINE_H_
