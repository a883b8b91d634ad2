#include "compiler/decompose/decompose.h"

#include "compiler/pipeline.h"

// Between the planner and what makes kernels: calls of fused functions are not taken apart.
typedef enum way { BY_DEVICE, BY_HOST, BY_BACKEND } way;

static berth_status split(berth_module *module, const berth_pass_context *context, way by) {
    const berth_pipeline *pipeline = context->user;
    berth_func_id main = berth_module_find_function(module, "main");
    if (main == BERTH_NONE || !berth_graph_get(module, main))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    if (berth_module_has_run(module, "layout") || berth_module_has_run(module, "fuse"))
        return berth_status_make(
            BERTH_FAILED_PRECONDITION,
            "it takes a planned module apart before layout and fuse run on it");
    const berth_multi_target *target = pipeline->options->target;
    BERTH_TRY(by == BY_BACKEND ? berth_decompose_backends(module, main, target)
                               : berth_decompose_devices(module, main, target, by == BY_HOST));
    BERTH_TRY(berth_decompose_check(module, target));
    berth_module_forget_run(module, "inline-calls");
    return BERTH_OK;
}

static berth_status run_split_devices(berth_module *module, berth_pass_context *context) {
    return split(module, context, BY_DEVICE);
}

static berth_status run_split_host(berth_module *module, berth_pass_context *context) {
    return split(module, context, BY_HOST);
}

static berth_status run_split_backends(berth_module *module, berth_pass_context *context) {
    return split(module, context, BY_BACKEND);
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

static const berth_pass pass_split_backends = {
    .name = "split-backends",
    .description = "a function per region that a library or a kind's own code generator takes",
    .run = run_split_backends,
    .requires = "inline-calls"};

static berth_status run_check(berth_module *module, berth_pass_context *context) {
    const berth_pipeline *pipeline = context->user;
    return berth_decompose_check(module, pipeline->options->target);
}

static const berth_pass pass_check = {.name = "check-targets",
                                      .description = "functions for one device keep to it",
                                      .run = run_check,
                                      .again = true};

static const berth_pass *const passes[] = {&pass_split_devices, &pass_split_host,
                                           &pass_split_backends, &pass_check, NULL};

const berth_pass *const *berth_decompose_passes(void) {
    return passes;
}
