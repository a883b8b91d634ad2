// Compiles a module into a plan that its target's memories hold. What a plan needs is known only when it
// is made, so several are made and compared: this is the one place where placement and memory plan meet
// again. Each try compiles a copy of the module, which stays as it is. From the outside in:
//
//   least     of plain C: before a refusal names a least limit, a plan for that much is made (least.c)
//   patches   stages in bands of rows or tiles, where the memory is too small without (patches.c)
//   ways      options.parallel = "auto": one device each operation, products in parts, or a pipeline,
//             whichever is predicted to be the fastest of those that fit (fit.c, as the next)
//   slices    of channels, for plain C that does not fit without
//   room      a placement by search estimates what values need; where that was too little, it is searched
//             again with so much less room for constants there
//
//   berth_fitted fitted;
//   berth_status status = berth_fit(module, &options, &fitted);
//   if (!status) use(fitted.result.program);
//   berth_fitted_release(&fitted);
#ifndef BERTH_COMPILER_FIT_FIT_H_
#define BERTH_COMPILER_FIT_FIT_H_

#include "compiler/compile.h"

// What the last try left.
typedef struct berth_fitted {
    berth_arena *arena;    // of all of it; it borrows from the module that was compiled
    berth_module *module;  // as far as the compiler came; NULL = not begun
    berth_compile_result result;
    struct berth_packed_store *packed_store;  // constants of several tries; NULL = none
} berth_fitted;

// As berth_compile, which gives the errors. options->patches is
//   NULL, "auto"  in patches where a memory is too small without, or constants are read again in each run
//                 to fit it and patches are predicted to take less time: the ones with the least work
//                 that fit
//   "never"
//   "least"       those of the plan that needs the least memory
//   "NODE=N"      these, in the notation of passes/patches.h (INVALID_ARGUMENT for another text)
// and options->parallel "none", "tensor", "pipeline" or "auto". Where nothing fits, the error is that of the plan
// that exceeds the memory by the least, and result.over_bytes says by how much (0 = that is not the error). After an
// error, too, *out_fitted is to be released.
BERTH_MUST_USE berth_status berth_fit(const berth_module *module,
                                      const berth_compile_options *options,
                                      berth_fitted *out_fitted);
void berth_fitted_release(berth_fitted *fitted);

// Whether the text is one that options->patches may be. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_fit_check_patches(const char *text);

// ---- of this folder ------------------------------------------------------------------------------

// All tries of one module. From the second on, constants that were packed once are taken from `packed_store`.
typedef struct berth_fit_tries {
    const berth_module *module;
    uint32_t count;
    uint64_t least_over_bytes;  // of all plans that did not fit; 0 = none
    struct berth_packed_store *packed_store;
    struct berth_fit_known *known;  // known.c; of who begins the tries; NULL = nothing is kept
} berth_fit_tries;

// By how much a refused plan exceeds which memory, of which device.
typedef struct berth_fit_over {
    uint64_t bytes;  // 0 = that is not the error
    uint32_t device, memory;
} berth_fit_over;

berth_fit_over berth_fit__over_of(berth_status status, const berth_fitted *fitted);
// The error that is reported is of such a plan, and not of the last one that `fitted` had.
void berth_fit__set_over(berth_fitted *fitted, berth_fit_over over);

// known.c: plans that a memory did not hold, with what they need. What a plan of plain C with one memory for values needs
// depends on its patches and slices alone, not on the limit, so that the same ones are refused without being planned again.
BERTH_MUST_USE berth_status berth_fit__known_create(struct berth_fit_known **out_known);
void berth_fit__known_destroy(struct berth_fit_known *known);  // NULL: nothing
bool berth_fit__may_know(const berth_fit_tries *tries, const berth_compile_options *options);

typedef struct berth_fit_question {
    struct berth_fit_known *known;
    const berth_compile_options *options;
    char *slices;                           // asked for last
    const struct berth_fit_refusal *found;  // NULL = it has to be planned
} berth_fit_question;

// A berth_compile_options.when_sliced. Errors: some error ends the compilation where the answer was found.
BERTH_MUST_USE berth_status berth_fit__ask(void *question, const char *slices);
// The error of the plan that was found, and what it says of the memory for the limit that the question is about. This or
// the next one ends a question.
void berth_fit__answer(berth_fit_question *question, berth_status *out_status,
                       berth_compile_result *out_result);
// The patches of the plan that needs the least of a memory, in the notation of options->patches; NULL = none is known.
const char *berth_fit__patches_of_least(const struct berth_fit_known *known, uint32_t memory);
// Keeps what a try said, where it was a refusal.
void berth_fit__learn(berth_fit_question *question, berth_status status,
                      const berth_compile_result *result);

// As berth_fit, which looks at options->patches, but for the least that a refusal names.
BERTH_MUST_USE berth_status berth_fit__with_patches(berth_fit_tries *tries,
                                                    const berth_compile_options *options,
                                                    berth_fitted *fitted);

// The same but for patches, of which "NODE=N" alone counts. `fitted` has what it held released, and its result
// lives as long as tries->packed_store.
BERTH_MUST_USE berth_status berth_fit__without_patches(berth_fit_tries *tries,
                                                       const berth_compile_options *options,
                                                       berth_fitted *fitted);

#endif  // BERTH_COMPILER_FIT_FIT_H_
