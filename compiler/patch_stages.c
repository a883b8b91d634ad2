// The pass "patches": what its option says, and what the plan says of it (passes/patches.h).
#include <string.h>

#include "compiler/passes/patches.h"
#include "compiler/pipeline.h"

static const char plan_pass_name[] = "plan-devices";

// "NODE=N"; false where the option says something else.
static bool parse_patches(berth_arena *arena, const char *text, berth_patch_choice *out) {
    const char *equals = text ? strrchr(text, '=') : NULL;
    if (!equals || equals == text || strlen(equals + 1) > 9) return false;
    *out =
        (berth_patch_choice){.node = berth_arena_printf(arena, "%.*s", (int)(equals - text), text)};
    for (const char *c = equals + 1; *c; ++c) {
        if (*c < '0' || *c > '9') return false;
        out->count = out->count * 10 + (uint32_t)(*c - '0');
    }
    return equals[1] != 0;
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
        arena,
        "patches: the stages up to \"%s\" run in %u bands of rows, %.1f %% more operations%s",
        done->choice.node, done->choice.count, 100 * done->extra_work, without);
}

// The first stages in patches, where a choice is given; or a list of choices, where that is asked for.
berth_status berth_pipeline__patches(berth_module *module, berth_func_id main,
                                     berth_pipeline *pipeline, bool *out_did_nothing) {
    const berth_compile_options *options = pipeline->options;
    berth_patch_choice choice;
    berth_patch_candidate done;
    bool plain = options->target->executor == BERTH_EXECUTOR_AOT;
    bool least = options->patches && strcmp(options->patches, "least") == 0;
    berth_patch_memory sliced = least ? BERTH_PATCH_PLAIN : BERTH_PATCH_SLICED;
    if (options->find_patches && !berth_module_has_run(module, plan_pass_name))
        berth_patch_candidates(module, main, plain ? sliced : BERTH_PATCH_ANY, module->arena,
                               &pipeline->patch_candidates, &pipeline->patch_candidate_count);
    *out_did_nothing = !parse_patches(module->arena, options->patches, &choice);
    if (*out_did_nothing) return BERTH_OK;
    if (berth_module_has_run(module, plan_pass_name))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "the module is planned already: patches are chosen before that");
    BERTH_TRY(berth_pass_patches(module, main, &choice, &done));
    pipeline->notes[4] = describe_patches(module->arena, &done, options);
    return BERTH_OK;
}
