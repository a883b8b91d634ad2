// Which of the first stages of a model run in patches of the image (compiler/passes/patches.h), by plans of
// its memory that are compared: for toolkit/model.h.
#ifndef BERTH_TOOLKIT_FIT_PATCHES_H_
#define BERTH_TOOLKIT_FIT_PATCHES_H_

#include "toolkit/model.h"

// Loads the model with these options; of an error, *options->over_bytes says by how much a memory is
// exceeded.
typedef berth_status berth_fit_load(void *user, const berth_model_options *options,
                                    berth_model **out_model);

// Loads a model, in patches where that is wanted: compile.patches is
//   NULL, "auto"  where a memory is too small without, or constants are read again in each run to fit it
//                 and patches are predicted to take less time: the ones with the least work that fit
//   "never"
//   "least"       those of the plan that needs the least memory
//   "NODE=N"      these
// Errors: those of `load`; INVALID_ARGUMENT another text. Where nothing fits, the error of the plan that
// exceeds the memory by the least.
BERTH_MUST_USE berth_status berth_fit_patches(berth_fit_load *load, void *user,
                                              const berth_model_options *options,
                                              berth_model **out_model);
// Whether the text is one of these. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_fit_patches_check(const char *text);

#endif  // BERTH_TOOLKIT_FIT_PATCHES_H_
