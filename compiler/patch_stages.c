// The passes "patches" and "roll-rows": what their option says, and what the plan says of them (passes/patches.h,
// passes/roll_rows.h).
#include <string.h>

#include "compiler/passes/patches.h"
#include "compiler/passes/roll_rows.h"
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

// The work of all that the last call does now.
static void join_works(berth_pipeline *pipeline, const berth_rolled *rolled) {
    berth_op_id last = rolled->ops[rolled->stage_count - 1];
    if (!pipeline->works || last >= pipeline->work_count || !pipeline->works[last]) return;
    berth_work *all = pipeline->works[last];
    for (uint32_t i = 0; i + 1 < rolled->stage_count; ++i) {
        const berth_work *work = pipeline->works[rolled->ops[i]];
        if (!work) continue;
        all->flops += work->flops;
        all->bytes += work->bytes;
        bool given = all->given_ns > 0 && work->given_ns > 0;
        all->given_ns = given ? all->given_ns + work->given_ns : 0;
    }
}

static const char *describe_rolled(berth_arena *arena, const berth_rolled *rolled) {
    char rings[32], whole[32];
    if (!rolled->stage_count) return "rolling rows: no chain of stages has a lower peak with them";
    berth_format_bytes(rolled->ring_bytes, rings);
    berth_format_bytes(rolled->unrolled_bytes, whole);
    return berth_arena_printf(arena,
                              "rolling rows: %u stages run row by row, with %s of the values "
                              "between them, which are %s",
                              rolled->stage_count, rings, whole);
}

berth_status berth_pipeline__roll_rows(berth_module *module, berth_func_id main,
                                       berth_pipeline *pipeline) {
    berth_rolled rolled;
    if (pipeline->options->target->executor != BERTH_EXECUTOR_AOT)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "rolling rows are for the executor aot: take it, or other patches");
    berth_pass_roll_rows(module, main, &rolled);
    if (rolled.stage_count) join_works(pipeline, &rolled);
    if (!pipeline->plan) return BERTH_OK;
    berth_plan_add_note(pipeline->plan, module->arena, describe_rolled(module->arena, &rolled));
    berth_pipeline__record_plan(module, main, pipeline->plan);
    return BERTH_OK;
}
