// Stages of a network in patches of the image: patch-based execution (MCUNetV2, Lin et al. 2021,
// arXiv 2110.15352, section 3).
//
//   y = stages(x)   ->   y = concat(stages'(x[rows 0 to 11]), stages'(x[rows 7 to 19]), ...)
//
// A patch is a band of rows of y over the full width, so that a row stays in one piece, or a tile of rows and
// columns, where a band has too many. What it needs of x and of every value in between are some rows and columns
// more (the halo): these are computed for both neighbours. The large values of these stages then never exist whole.
// Every element is the same sum as before.
//
// A region is all that one value, the *cut*, is computed from, up to the function's inputs or to another value,
// which is whole: convolutions (also of integers), pools, local response normalisations, concatenations of
// channels and elementwise operations, of one image, with constant parameters. Where other operations come before,
// it begins after them. Nothing else may use what is inside.
#ifndef BERTH_COMPILER_PASSES_PATCHES_H_
#define BERTH_COMPILER_PASSES_PATCHES_H_

#include "ir/graph/graph.h"

// A region by what it lies between, and into how many patches.
typedef struct berth_patch_choice {
    const char *after;  // node whose value is whole; NULL = the region begins as early as it can
    const char *node;   // that the cut comes from: the last one of this name that ends a region
    uint32_t rows;      // of patches; at most as many as the cut has rows
    uint32_t columns;   // of patches; 1 = bands
} berth_patch_choice;

// Bands from the first stage on, bands in the middle, tiles: what an estimate is wrong by is much the same in a form, and
// not across them.
#define BERTH_PATCH_FORMS 3
static inline uint32_t berth_patch_form(const berth_patch_choice *choice) {
    return choice->columns > 1 ? 2 : choice->after != NULL;
}

// "[AFTER..]NODE=ROWS[xCOLUMNS]". Parsed, AFTER is still a part of `node`: names may have dots, and only a module says
// which ones it has. `arena`, inside its berth_arena_try, has the name; NULL = only whether it is such a text.
bool berth_patch_choice_parse(berth_arena *arena, const char *text, berth_patch_choice *out_choice);
const char *berth_patch_choice_text(berth_arena *arena, const berth_patch_choice *choice);

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

// The choices that lower the peak, those left out that another one of their form beats clearly in peak, and in work;
// least work first. A region that leaves out the operation with the peak cannot lower it and is not looked at; of
// the others the shortest are, a few thousand choices at most. Types are inferred. Inside berth_arena_try of `arena`.
// O(choices * operations).
void berth_patch_candidates(const berth_module *module, berth_func_id main,
                            berth_patch_memory memory, berth_arena *arena,
                            const berth_patch_candidate **out_candidates, uint32_t *out_count);

// Rewrites @main. *out_done (optional): what was done. Inside berth_arena_try of the module's arena. Errors:
// NOT_FOUND no region ends at the node; OUT_OF_RANGE too many patches.
BERTH_MUST_USE berth_status berth_pass_patches(berth_module *module, berth_func_id main,
                                               const berth_patch_choice *choice,
                                               berth_patch_candidate *out_done);

#endif  // BERTH_COMPILER_PASSES_PATCHES_H_
