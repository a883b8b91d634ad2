#include "compiler/decompose/decompose.h"

#include "compiler/pipeline.h"

// Between the planner and what makes kernels: calls of fused functions are not taken apart.
static berth_status split(berth_module *module, const berth_pass_context *context, bool keep_host) {
    const berth_pipeline *pipeline = context->user;
    berth_func_id main = berth_module_find_function(module, "main");
    if (main == BERTH_NONE || !berth_graph_get(module, main))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    if (berth_module_has_run(module, "layout") || berth_module_has_run(module, "fuse"))
        return berth_status_make(
            BERTH_FAILED_PRECONDITION,
            "it takes a planned module apart before layout and fuse run on it");
    BERTH_TRY(berth_decompose_devices(module, main, pipeline->options->target, keep_host));
    BERTH_TRY(berth_decompose_check(module, pipeline->options->target));
    berth_module_forget_run(module, "inline-calls");
    return BERTH_OK;
}

static berth_status run_split_devices(berth_module *module, berth_pass_context *context) {
    return split(module, context, false);
}

static berth_status run_split_host(berth_module *module, berth_pass_context *context) {
    return split(module, context, true);
}

static const berth_pass pass_split_devices = {
    .name = "split-devices",
    .description = "a function per device and stage; main calls them and copies",
    .run = run_split_devices,
    .requires = "inline-calls"};
static const berth_pass pass_split_host = {.name = "split-host",
                                           .description =
                                               "the same, but what the host computes stays in main",
                                           .run = run_split_host,
                                           .requires = "inline-calls"};

static berth_status run_check(berth_module *module, berth_pass_context *context) {
    const berth_pipeline *pipeline = context->user;
    return berth_decompose_check(module, pipeline->options->target);
}

static const berth_pass pass_check = {.name = "check-targets",
                                      .description = "functions for one device keep to it",
                                      .run = run_check,
                                      .again = true};

static const berth_pass *const passes[] = {&pass_split_devices, &pass_split_host, &pass_check,
                                           NULL};

const berth_pass *const *berth_decompose_passes(void) {
    return passes;
}
