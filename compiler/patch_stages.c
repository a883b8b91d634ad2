// The pass "patches": what its option says, and what the plan says of it (passes/patches.h).
#include <string.h>

#include "compiler/passes/patches.h"
#include "compiler/pipeline.h"

// "12 bands of rows", "6 bands of columns" or "3 x 4 tiles".
static const char *describe_grid(berth_arena *arena, const berth_patch_choice *choice) {
    if (choice->columns == 1) return berth_arena_printf(arena, "%u bands of rows", choice->rows);
    if (choice->rows == 1) return berth_arena_printf(arena, "%u bands of columns", choice->columns);
    return berth_arena_printf(arena, "%u x %u tiles", choice->rows, choice->columns);
}

static const char *describe_patches(berth_arena *arena, const berth_patch_candidate *done,
                                    const berth_compile_options *options) {
    char bytes[32];
    const char *without = "";
    berth_format_bytes(
        options->unpatched_bytes ? options->unpatched_bytes : options->unpatched_over_bytes, bytes);
    if (options->unpatched_bytes)
        without = berth_arena_printf(arena, "; without them the plan needs %s", bytes);
    else if (options->unpatched_over_bytes)
        without = berth_arena_printf(arena, "; without them the plan needs %s too much", bytes);
    return berth_arena_printf(
        arena, "patches: the stages up to \"%s\" run in %s, %.1f %% more operations%s",
        done->choice.node, describe_grid(arena, &done->choice), 100 * done->extra_work, without);
}

// Stages in patches, where a choice is given; or a list of choices, where that is asked for.
berth_status berth_pipeline__patches(berth_module *module, berth_func_id main,
                                     berth_pipeline *pipeline, bool *out_did_nothing) {
    const berth_compile_options *options = pipeline->options;
    berth_patch_choice choice;
    berth_patch_candidate done;
    bool plain = options->target->executor == BERTH_EXECUTOR_AOT;
    bool least = options->patches && strcmp(options->patches, "least") == 0;
    berth_patch_memory sliced = least ? BERTH_PATCH_PLAIN : BERTH_PATCH_SLICED;
    if (options->find_patches && !berth_module_has_run(module, BERTH_PASS_PLAN_DEVICES))
        berth_patch_candidates(module, main, plain ? sliced : BERTH_PATCH_ANY, module->arena,
                               &pipeline->patch_candidates, &pipeline->patch_candidate_count);
    *out_did_nothing = !berth_patch_choice_parse(module->arena, options->patches, &choice);
    if (*out_did_nothing) return BERTH_OK;
    if (berth_module_has_run(module, BERTH_PASS_PLAN_DEVICES))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "the module is planned already: patches are chosen before that");
    BERTH_TRY(berth_pass_patches(module, main, &choice, &done));
    pipeline->notes[4] = describe_patches(module->arena, &done, options);
    return BERTH_OK;
}
