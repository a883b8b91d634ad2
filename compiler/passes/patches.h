// The first stages of a network in patches of the image: patch-based execution (MCUNetV2, Lin et al. 2021,
// arXiv 2110.15352, section 3).
//
//   y = stages(x)   ->   y = concat(stages'(x[rows 0 to 11]), stages'(x[rows 7 to 19]), ...)
//
// A patch is a band of rows of y over the full width, so that a row stays in one piece. What it needs of x and
// of every value in between are some rows more (the halo): these are computed for both neighbours. The large
// values of the first stages then never exist whole. Every element is the same sum as before.
//
// A region is all that one value, the *cut*, is computed from: convolutions (also of integers), pools,
// local response normalisations, concatenations of channels and elementwise operations, of one image, with
// constant parameters. Where other operations come before, it begins after them. Nothing else may use what
// is inside.
#ifndef BERTH_COMPILER_PASSES_PATCHES_H_
#define BERTH_COMPILER_PASSES_PATCHES_H_

#include "ir/graph/graph.h"

// A region by its cut, and into how many patches.
typedef struct berth_patch_choice {
    const char *node;  // that the cut comes from: the last one of this name that ends a region
    uint32_t count;    // of patches; at most as many as the cut has rows
} berth_patch_choice;

// What a choice is expected to do; sizes are an estimate of the largest sum of values that are live at
// once, inputs and outputs of the function left out.
typedef struct berth_patch_candidate {
    berth_patch_choice choice;
    uint64_t whole_bytes;  // without patches
    uint64_t peak_bytes;
    double extra_work;  // operations that are done again, of all operations of the function
} berth_patch_candidate;

// What the estimate may count on.
typedef enum berth_patch_memory {
    BERTH_PATCH_ANY,
    BERTH_PATCH_PLAIN,   // plain C: some convolutions write over operands that end there
    BERTH_PATCH_SLICED,  // and channels run in slices (slice_channels.h)
} berth_patch_memory;

// The choices that lower the peak, those left out that another one beats clearly in peak, and in work;
// least work first. Types are inferred. Inside berth_arena_try of `arena`.
// O(regions * counts * operations).
void berth_patch_candidates(const berth_module *module, berth_func_id main,
                            berth_patch_memory memory, berth_arena *arena,
                            const berth_patch_candidate **out_candidates, uint32_t *out_count);

// Rewrites @main. *out_done (optional): what was done. Inside berth_arena_try of the module's arena. Errors:
// NOT_FOUND no region ends at the node; OUT_OF_RANGE too many patches.
BERTH_MUST_USE berth_status berth_pass_patches(berth_module *module, berth_func_id main,
                                               const berth_patch_choice *choice,
                                               berth_patch_candidate *out_done);

#endif  // BERTH_COMPILER_PASSES_PATCHES_H_
