// Passes: functions module → module, run as one visible array by a runner with instruments (timing,
// dumps, verification after each pass, stop after a pass). How hard to optimise lives in the pass
// context, never in the IR.
#ifndef BERTH_IR_PASS_H_
#define BERTH_IR_PASS_H_

#include "base/log.h"
#include "ir/module.h"

typedef struct berth_pass_context berth_pass_context;

typedef struct berth_pass {
    const char *name;         // "fold-constants": for --passes, --print-after and timing
    const char *description;  // one line, for help
    berth_status (*run)(berth_module *module, berth_pass_context *context);
    const char *requires;  // (optional) pass that must have run on the module before
    bool again;            // may run on a module that it ran on before, and changes nothing then
} berth_pass;

// What ran on a module is its attribute "passes", so that a module that was printed goes on where
// it stopped.
#define BERTH_ATTR_PASSES "passes"
bool berth_module_has_run(const berth_module *module, const char *pass);
// For a pass that undoes what another did: the pipeline runs that one again.
void berth_module_forget_run(berth_module *module, const char *pass);

// What the runner calls around passes. Any function may be NULL.
typedef struct berth_pass_instrument {
    void (*after)(void *user, const berth_pass *pass, const berth_module *module,
                  int64_t elapsed_ns);
    void *user;
} berth_pass_instrument;

struct berth_pass_context {
    berth_log log;
    const berth_pass_instrument *instruments;
    uint32_t instrument_count;
    bool verify;             // berth_module_verify after every pass
    const char *stop_after;  // NULL = run all
    bool resume;             // leave out the passes that ran on the module before
    const char *rerun;       // (optional) but not this one
    bool did_nothing;        // set by a pass that was not asked for: it is not recorded
    void *user;              // of the pipeline: compiler/pipeline.h
};

// Runs passes in order and records them. Errors: those of passes and of the verifier, prefixed with
// the pass's name; FAILED_PRECONDITION a required pass did not run, or one ran that may not again.
BERTH_MUST_USE berth_status berth_passes_run(berth_module *module, const berth_pass *const *passes,
                                             uint32_t count, berth_pass_context *context);

// Checks the whole module: every dialect's own rules, types, uses after definitions, regions,
// attributes. Errors: INTERNAL/INVALID_ARGUMENT with the location of the first problem.
BERTH_MUST_USE berth_status berth_module_verify(const berth_module *module);

#endif  // BERTH_IR_PASS_H_
