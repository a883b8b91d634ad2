// The compiler: a module and a MultiTarget → a program. The pipeline is one visible array of passes
// (pipeline.c).
//
//   berth_compile_options options = {.target = target};
//   berth_compile_result result;
//   BERTH_TRY(berth_compile(module, &options, &result));
//   // result.program can be opened by executor/session.h or written by artifact/file.h
#ifndef BERTH_COMPILER_COMPILE_H_
#define BERTH_COMPILER_COMPILE_H_

#include "artifact/program.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "compiler/passes/known.h"
#include "compiler/passes/patches.h"
#include "ir/pass.h"
#include "planner/planner.h"

typedef struct berth_compile_options {
    const berth_multi_target *target;
    const char *target_text;  // (optional) what berth_target_print_json gives of it, on one line
    const char *strategy;     // of placement; NULL = "default"
    const char *objective;    // NULL = "latency"
    // Products cut into parts on devices of one kind (passes/tensor_parallel.h): "tensor"; NULL, "none" =
    // they are not.
    const char *parallel;
    uint64_t node_budget;           // search nodes; 0 = the planner's default
    int64_t time_budget_ns;         // 0 = none: the same plan every time
    const uint64_t *reserve_bytes;  // of berth_plan_options
    uint32_t max_instances;         // of a function, one per signature of places; 0 = 1

    // (optional) Measured costs (compiler/cost/table.h), taken before those from the target's figures.
    struct berth_cost_table *costs;

    // (optional) Decisions of kernels that were measured (compiler/tuning/table.h), taken in place of the
    // policies'.
    const struct berth_tuned_table *tuned;
    bool explain_kernels;  // alternatives of the decisions are wanted (kernel_choice.h)

    const char *cache_folder;      // compiled kernels; NULL = no cache
    uint64_t cache_limit_bytes;    // 0 = 1 GiB
    const char *c_compiler;        // NULL = the first of cc, gcc, clang on search_path
    const char *search_path;       // folders separated by ':'; NULL = /usr/local/bin:/usr/bin:/bin
    const char *temporary_folder;  // of compilers; NULL = /tmp
    uint32_t jobs;                 // compilers at once; 0 = as many as cores
    int64_t compiler_time_limit_ns;  // of one compiler; 0 = 10 minutes
    bool no_fusion;
    bool no_layouts;   // keep every tensor row-major
    bool no_winograd;  // direct convolutions only
    bool no_slices;    // of channels (passes/slice_channels.h), however small the memory is
    uint64_t slice_budget_bytes;  // slices as for a budget of at least so much
    uint64_t slice_spare_bytes;   // left free beside pieces of weights (passes/slice_weights.h)
    // (optional) Is told the slices (as in passes/slice_channels.h) before the memory is planned; an error ends the
    // compilation.
    berth_status (*when_sliced)(void *user, const char *slices);
    void *when_sliced_user;
    bool small_code;  // of plain C: fewer bytes of code rather than fewer instructions
    uint64_t
        stated_limit_bytes;  // what an error says of the memory that is too small; 0 = its budget
    // (optional) Stages in patches (passes/patches.h): "NODE=N" and such. Other texts ("auto", "never",
    // "least") are for who compares plans (fit/fit.h): nothing is done here.
    const char *patches;
    bool find_patches;  // list what there is to choose from, in the result
    // For the plan's note: what the memories need without, or how much too much that is; 0 = not known.
    uint64_t unpatched_bytes, unpatched_over_bytes;
    // Inputs and outputs of the program may be in memory of devices, not the host's (passes/resident.h): for who
    // runs it through byte code.
    bool resident;
    bool keep_source;  // of kernels that are not source themselves, as attachments of the program

    // (optional) Kernels of earlier compilations that serve other sizes, too: these are used, and what
    // is compiled is added. The program's code then lives in it (compiler/kernels/generic_kernels.h).
    struct berth_generic_kernels *generic_kernels;
    // (optional, with generic_kernels; outlives them) Functions for C compilers are compiled later, together
    // (compiler/kernels/later_code.h): the program's code is put into it then.
    struct berth_later_code *later_code;
    uint32_t generic_scope;  // of its keys
    bool any_size;           // schedules that many sizes share
    // (optional) What earlier compilations for other sizes saw: of functions of which only outermost loops change, any_size
    // leaves the tiles as they are (compiler/schedule/seen_extents.h).
    struct berth_seen_extents *seen_extents;
    // The module is one of the sizes that may come: its functions are printed for `generic_kernels` to know which
    // of their numbers change (berth_generic_kernels_note). No program is made.
    bool note_sizes;
    // The same module was compiled before for other sizes: where the target has one device, and the
    // strategy is "default", the plan asks neither whether it can compute the operations (lowering
    // refuses what it cannot) nor how long they take: predicted_ns is 0.
    bool other_sizes;
    // (optional) Memory plans of earlier compilations for larger sizes, which are kept (compiler/package/plans.h).
    struct berth_memory_plans *plans;
    // (optional) Constants that earlier compilations packed; the program refers to its memory
    // (compiler/passes/packed_store.h).
    struct berth_packed_store *packed_store;

    // Inputs on whose values alone the program will run: these decide shapes and branches where
    // that must be known before the run (passes/known.h).
    const struct berth_input_binding *known_inputs;
    uint32_t known_input_count;

    bool expose_values;  // every operation's result becomes an output too (finding where results
                         // differ)
    // Plan placement and memory; the program's code images stay empty.
    bool plan_only;
    const char *note;  // (optional) one more note for the plan: what was assumed about the target

    berth_log log;
    void (*progress)(void *user, const char *what, uint32_t done, uint32_t total);
    void *progress_user;
    berth_interrupt interrupt;  // (optional) see base/interrupt.h; compiling can be CANCELLED then

    bool resume;             // leave out passes that ran on the module before (its attribute
                             // "passes"); berth_compile always does
    bool verify;             // module verifier after every pass
    const char *stop_after;  // a pass's name: leave the module as it is then; no program is made
    const berth_pass_instrument *instruments;
    uint32_t instrument_count;
} berth_compile_options;

// A value that is live where a pool is fullest.
typedef struct berth_memory_value {
    const char *name;
    uint64_t size_bytes;
    const char *first_step;  // names of the first and the last step that touch its bytes
    const char *last_step;
} berth_memory_value;

// Where a value lies in a pool, and in which steps.
typedef struct berth_memory_place {
    const char *name;
    uint64_t offset_bytes, size_bytes;
    uint32_t first_step, last_step;  // that touch its bytes
} berth_memory_place;

typedef struct berth_memory_report_pool {
    uint32_t pool;         // of the program, a workspace
    const char *strategy;  // what found the offsets
    uint64_t live_bytes;   // the largest sum of values live at one step
    const char *peak_step;
    const berth_memory_value *values;  // live there, largest first
    uint32_t value_count;
    // Of live_bytes, what layouts and transforms are the reason for: values that the model does not
    // have (with borders, in other layouts, points of Winograd), and the padding of the last blocks
    // of channels in those that it has. A gap of 0 % says nothing about these.
    uint64_t made_bytes;
    uint64_t padding_bytes;
    const berth_memory_place *places;  // all values of the pool
    uint32_t place_count;
    const char *const *step_names;  // [step_count] of all steps of the program
    uint32_t step_count;
} berth_memory_report_pool;

// What one memory has no room for by its budget (package/fit_budget.h).
typedef struct berth_memory_streamed {
    const char *memory;       // of the target
    uint32_t device;          // that reads them
    uint32_t constant_count;  // that do not stay
    uint32_t load_count;      // copies per run
    uint64_t loaded_bytes;    // per run
    uint64_t constant_bytes;  // of all that the device reads, those that stay too
    uint64_t resident_bytes;  // of those that stay
    uint64_t budget_bytes;
    uint32_t spilled_count;  // values that wait in host memory for a while, and their bytes
    uint64_t spilled_bytes;
    uint32_t
        recomputed_count;  // values that are computed again, their bytes, and the steps of that
    uint64_t recomputed_bytes;
    uint32_t recomputed_steps;
    double recompute_ns;      // of these steps, predicted
    double load_ns;           // of all copies of a run, predicted
    double run_ns, whole_ns;  // of kernels and copies of a run, predicted; with all of them there
    const struct berth_memory_load *loads;  // in order
} berth_memory_streamed;

typedef struct berth_memory_load {
    const char *name;  // of the constant; "of STEP" where it has none
    uint64_t size_bytes;
    const char *from_step;               // its copy may run from here on
    const char *first_step, *last_step;  // that read it
} berth_memory_load;

// Of plain C with several memories for values, one of them (package/assign.c).
typedef struct berth_memory_share {
    const char *memory;  // of the target
    bool is_own;         // the device's own
    bool has_scratch;    // private arrays of kernels are there
    double moved_bytes;  // that loads and stores of a run move in it
} berth_memory_share;

// How the intermediate values came to their memory.
typedef struct berth_memory_report {
    const berth_memory_report_pool *pools;
    uint32_t pool_count;
    // The largest live sum, over all memories: every value by itself in the order of the model;
    // with results over operands; with parts inside wholes; in the order found.
    uint64_t plain_bytes, in_place_bytes, views_bytes, ordered_bytes;
    uint32_t in_place_count;     // results written over an operand
    uint32_t removed_steps;      // concatenations, splits and slices that need no step
    uint64_t removed_bytes;      // that these would have copied
    uint32_t join_trials;        // how often the peak was looked at for them
    uint64_t order_bound_bytes;  // no order has a lower peak; 0: order kept, not looked at
    uint64_t order_states;       // of the search
    const berth_memory_streamed *streamed;  // by memory
    uint32_t streamed_count;
    const berth_memory_share
        *shares;  // where there are several memories for values, the fastest first
    uint32_t share_count;
    bool shares_proven;  // no other assignment has less to wait for, in this order of the steps
    // Another order than that of the least peak is kept, as less is waited for.
    bool ordered_for_memories;
} berth_memory_report;

struct berth_work;           // compiler/cost/work.h
struct berth_kernel_choice;  // compiler/tuning/kernel_choice.h

typedef struct berth_compile_result {
    const berth_program *program;       // in the module's arena; NULL when stopped early
    const berth_plan *plan;             // NULL before plan-devices
    const berth_memory_report *memory;  // NULL before package
    const berth_known_use *known_uses;  // known inputs whose values went into the program
    uint32_t known_use_count;
    // Per step of the program: the work of the call that it is a part of (several steps of one call
    // have the same); NULL for copies and calls of external functions.
    const struct berth_work *const *step_works;
    // What was decided of the functions that were scheduled, and per step the index of its function
    // there (BERTH_NO_INDEX: copies, calls of external functions, functions that were scheduled before).
    const struct berth_kernel_choice *choices;
    uint32_t choice_count;
    const uint32_t *step_choices;
    // Of an error OUT_OF_MEMORY: the device whose memory the plan exceeds, which one, and by how much (0 =
    // not that). A search with so much more of reserve_bytes may place less there.
    uint32_t over_device, over_memory;
    uint64_t over_bytes;
    const berth_patch_candidate *patch_candidates;  // where options.find_patches asks for them
    uint32_t patch_candidate_count;
} berth_compile_result;

// Compiles @main, from where the module stands: passes that ran on it before (a module that was
// printed after them) are left out. Its types must be static (bind symbolic dimensions at import). Rewrites the
// module. Errors: UNSUPPORTED naming operations; INVALID_ARGUMENT (pins, dynamic shapes);
// FAILED_PRECONDITION the module was planned for another target;
// UNAVAILABLE (no C compiler, with what to install); IO (cache, temporary files). An entry point:
// not inside berth_arena_try.
BERTH_MUST_USE berth_status berth_compile(berth_module *module,
                                          const berth_compile_options *options,
                                          berth_compile_result *out_result);

// Runs only the named passes (NULL-terminated) on the module: `berth opt`. Errors: NOT_FOUND for an
// unknown pass.
BERTH_MUST_USE berth_status berth_compile_run_passes(berth_module *module, const char *const *names,
                                                     const berth_compile_options *options,
                                                     berth_compile_result *out_result);

// The passes of the pipeline in order, NULL-terminated.
const berth_pass *const *berth_compile_passes(void);

#endif  // BERTH_COMPILER_COMPILE_H_
