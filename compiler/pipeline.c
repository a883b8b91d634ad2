// The passes that are built in, in their order, and those that plug-ins register in between.
#include "compiler/pipeline.h"

#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/extend.h"
#include "compiler/libraries/choose.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/append.h"
#include "compiler/passes/bits.h"
#include "compiler/passes/check.h"
#include "compiler/passes/concat.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/index_checks.h"
#include "compiler/passes/inline.h"
#include "compiler/passes/inline_tensor.h"
#include "compiler/passes/instantiate.h"
#include "compiler/passes/integers.h"
#include "compiler/passes/layout.h"
#include "compiler/passes/layout_plain.h"
#include "compiler/passes/quantized.h"
#include "compiler/passes/resident.h"
#include "compiler/passes/roll_rows.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/slice_channels.h"
#include "compiler/passes/slice_weights.h"
#include "compiler/passes/split.h"
#include "compiler/passes/tensor_parallel.h"
#include "compiler/passes/zero_points.h"
#include "compiler/rules.h"

static berth_pipeline *pipeline_of(const berth_pass_context *context) {
    return context->user;
}

static berth_status find_main(const berth_module *module, berth_func_id *out_main) {
    *out_main = berth_module_find_function(module, "main");
    if (*out_main == BERTH_NONE || !berth_graph_get(module, *out_main))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    return BERTH_OK;
}

// Names of the results, before rewriting replaces their values.
static berth_status run_keep_names(berth_module *module, berth_pass_context *context) {
    (void)context;
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    berth_function *function = berth_module_function(module, main);
    if (berth_attrs_find(module, &function->attrs, "output_names")) return BERTH_OK;
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    berth_str_id *names = berth_arena_new_array(module->arena, berth_str_id, root->results.count);
    for (uint32_t i = 0; i < root->results.count; ++i)
        names[i] = graph->values.data[root->results.data[i]].name;
    berth_attrs_set(
        module, &function->attrs, "output_names",
        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = root->results.count, .strings = names});
    return BERTH_OK;
}

static berth_status run_fold(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    berth_known_inputs *known = &pipeline_of(context)->known;
    berth_fold_options options = {.log = context->log, .keep_quantized = true};
    bool again = false;
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pass_keep_bits(module, main, pipeline_of(context)->options->target));
    do {
        BERTH_TRY(berth_pass_fold(module, main, &options));
        BERTH_TRY(berth_refuse_strings(module, berth_graph_get(module, main)));
        berth_pass_use_known_inputs(module, main, known, &again);
    } while (again);
    for (uint32_t i = 0; i < known->used.count; ++i)
        berth_log_message(
            context->log, BERTH_LOG_INFO,
            "the value of input \"%s\" is compiled in: %s must know it before the run",
            known->used.data[i].input, known->used.data[i].reason);
    return BERTH_OK;
}

// What no sum of integers wants is dequantised once and for all.
static berth_status run_integers(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    bool whole = berth_rules_want_whole(pipeline_of(context)->options->target);
    BERTH_TRY(berth_pass_find_integers(module, main, whole));
    return berth_pass_fold(module, main, &(berth_fold_options){.log = context->log});
}

static berth_status run_simplify(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    return berth_simplify(module, main, pipeline_of(context)->options->target);
}

static berth_status run_patches(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    return berth_pipeline__patches(module, main, pipeline_of(context), &context->did_nothing);
}

// Several operations may come from one node (Gemm becomes a product and a sum), and nodes may share
// a name; outputs may not. `uses`: of names given out, by id.
typedef BERTH_VEC(uint32_t) name_uses;
static berth_str_id exposed_name(berth_module *module, const berth_op *op, uint32_t result,
                                 name_uses *uses) {
    const char *where = berth_loc_describe(module, op->loc, module->arena);
    const char *text = berth_arena_printf(module->arena, "%s, result %u", where, result);
    berth_str_id name = berth_module_intern(module, text);
    while (uses->count <= name) berth_vec_push(module->arena, uses, 0);
    uint32_t use = ++uses->data[name];
    if (use == 1) return name;
    return berth_module_intern(
        module, berth_arena_printf(module->arena, "%s, part %u, result %u", where, use, result));
}

// Every operation's result becomes an output, named by its node, before anything is fused.
static berth_status run_expose(berth_module *module, berth_pass_context *context) {
    context->did_nothing = !pipeline_of(context)->options->expose_values;
    if (context->did_nothing) return BERTH_OK;
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    berth_graph *graph = berth_graph_get(module, main);
    berth_region *root = &graph->regions.data[0];
    BERTH_VEC(berth_str_id) names = {0};
    name_uses uses = {0};
    root->results.count = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE)) continue;
        for (uint32_t j = 0; j < op->output_count; ++j) {
            berth_vec_push(module->arena, &root->results, op->outputs[j]);
            berth_vec_push(module->arena, &names, exposed_name(module, op, j, &uses));
        }
    }
    berth_attrs_set(
        module, &berth_module_function(module, main)->attrs, "output_names",
        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = names.count, .strings = names.data});
    return BERTH_OK;
}

// Products in parts on the devices of one kind, where asked for.
static berth_status run_parallel(berth_module *module, berth_pass_context *context) {
    const berth_compile_options *options = pipeline_of(context)->options;
    context->did_nothing = !options->parallel || strcmp(options->parallel, "tensor") != 0;
    if (context->did_nothing) return BERTH_OK;
    berth_func_id main;
    uint32_t cut = 0;
    const berth_multi_target *target = options->target;
    uint32_t devices = berth_tensor_parallel_devices(target);
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pipeline__check_static(module, main));
    if (devices < 2)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "tensor parallelism needs two devices that are alike, with memories of their own: the "
            "target has none like \"%s\"",
            target->devices[target->default_device].name);
    BERTH_TRY(berth_pass_tensor_parallel(module, main, target, &cut));
    if (cut)
        berth_log_message(options->log, BERTH_LOG_INFO,
                          "%u product%s in %u parts, one for each device", cut, cut == 1 ? "" : "s",
                          devices);
    else
        berth_log_message(
            options->log, BERTH_LOG_WARNING,
            "no product was cut for tensor parallelism: none has weights of %d bytes, "
            "and columns for %u devices",
            BERTH_PARALLEL_LEAST_BYTES, devices);
    return BERTH_OK;
}

static berth_cost_model costs_of(berth_arena *arena, const berth_compile_options *options) {
    berth_cost_model costs = berth_cost_model_create(arena, options->target, options);
    bool by_rules = !options->strategy || strcmp(options->strategy, "default") == 0;
    if (options->other_sizes && by_rules && options->target->device_count == 1) {
        costs.unsupported = NULL;
        costs.time_ns = NULL;
        costs.figure = NULL;
    }
    return costs;
}

static berth_status run_plan(berth_module *module, berth_pass_context *context) {
    berth_pipeline *pipeline = pipeline_of(context);
    const berth_compile_options *options = pipeline->options;
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pipeline__check_static(module, main));
    berth_libraries_forget(module, main);
    berth_plan_options plan_options = {.target = options->target,
                                       .cost = costs_of(module->arena, options),
                                       .strategy = options->strategy,
                                       .objective = options->objective,
                                       .node_budget = options->node_budget,
                                       .time_budget_ns = options->time_budget_ns,
                                       .reserve_bytes = options->reserve_bytes,
                                       .explain = pipeline->explain,
                                       .max_instances = options->max_instances,
                                       .host_bound = true};
    berth_status status = berth_plan_module(module, &plan_options, &pipeline->plan);
    if (status) return berth_pipeline__explain_no_code(options, module->arena, status);
    BERTH_TRY(berth_libraries_choose(module, main, options, pipeline->plan));
    berth_pipeline__note_times(module, main, pipeline);
    for (size_t i = 0; i < sizeof(pipeline->notes) / sizeof(pipeline->notes[0]); ++i)
        if (pipeline->notes[i])
            berth_plan_add_note(pipeline->plan, module->arena, pipeline->notes[i]);
    berth_pipeline__record_plan(module, main, pipeline->plan);
    for (uint32_t i = 0; i < pipeline->plan->warning_count; ++i)
        berth_log_message(options->log, BERTH_LOG_WARNING, "%s", pipeline->plan->warnings[i]);
    return BERTH_OK;
}

static berth_status run_instantiate(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    (void)context;
    BERTH_TRY(find_main(module, &main));
    berth_pass_instantiate(module, main);
    return BERTH_OK;
}

static berth_status run_inline(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    (void)context;
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pass_inline_calls(module, main));
    berth_pass_instantiate(module, main);  // what came with them
    return BERTH_OK;
}

static berth_status run_slices(berth_module *module, berth_func_id main,
                               const berth_compile_options *options, const char **out_slices) {
    const char *channels, *weights;
    BERTH_TRY(berth_pass_slice_channels(module, main, options->target, options->slice_budget_bytes,
                                        &channels));
    BERTH_TRY(berth_pass_slice_weights(module, main, options->target, options->slice_spare_bytes,
                                       &weights));
    *out_slices = berth_arena_printf(module->arena, "%s%s", channels, weights);
    return BERTH_OK;
}

static berth_status choose_layouts(berth_module *module, berth_func_id main,
                                   const berth_compile_options *options,
                                   berth_packing **out_packing, const char **out_slices) {
    BERTH_TRY(berth_pass_unpack_bits(module, main, options->target));
    if (options->no_layouts) return BERTH_OK;
    BERTH_TRY(berth_pass_split_quantized(module, main, options->target));
    bool plain = options->target->executor == BERTH_EXECUTOR_AOT;
    if (plain) berth_pass_drop_zero_points(module, main);
    if (!options->no_slices) BERTH_TRY(run_slices(module, main, options, out_slices));
    berth_packing *packing = berth_packing_create(module, options->jobs, options->packed_store);
    *out_packing = packing;
    bool memory = options->objective && strcmp(options->objective, "memory") == 0;
    bool winograd = !options->no_winograd && !memory;  // direct convolutions need no points
    if (plain)
        berth_pass_layout_plain(module, main, options->target, options->small_code, packing);
    else
        BERTH_TRY(berth_pass_layout_cpu(module, main, options->target, winograd, packing));
    return BERTH_OK;
}

berth_status berth_pipeline__layout(berth_module *module, berth_func_id main,
                                    const berth_compile_options *options,
                                    berth_packing **out_packing, const char **out_slices) {
    *out_packing = NULL;
    *out_slices = "";
    BERTH_TRY(choose_layouts(module, main, options, out_packing, out_slices));
    if (options->resident) berth_pass_resident(module, main, options->target);
    berth_pass_append(module, main, options->target);
    return BERTH_OK;
}

static berth_status run_layout(berth_module *module, berth_pass_context *context) {
    berth_pipeline *pipeline = pipeline_of(context);
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pass_split_constants(module, main, pipeline->options->target));
    const berth_compile_options *options = pipeline->options;
    const char *slices = "";
    BERTH_TRY(berth_pipeline__layout(module, main, options, &pipeline->packing, &slices));
    if (options->when_sliced) BERTH_TRY(options->when_sliced(options->when_sliced_user, slices));
    if (!pipeline->packing) return BERTH_OK;
    berth_packing_start(pipeline->packing);  // later passes do not look into packed constants
    if (context->instrument_count) berth_packing_finish(pipeline->packing);
    return BERTH_OK;
}

static berth_status run_check_indices(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    berth_pass_check_indices(module, main, pipeline_of(context)->options->target);
    return BERTH_OK;
}

static berth_status run_fuse(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    const berth_compile_options *options = pipeline_of(context)->options;
    return berth_fuse(module, main, options->target, !options->no_fusion, options->small_code);
}

static berth_status run_find_parts(berth_module *module, berth_pass_context *context) {
    (void)context;
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    return berth_pass_find_parts(module, main);
}

static berth_status run_lower(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    uint32_t count = berth_graph_get(module, main)->ops.count;
    pipeline_of(context)->works = berth_works_of_main(module, main, module->arena);
    pipeline_of(context)->work_count = count;
    berth_pipeline__give_times(module, main, pipeline_of(context));
    for (uint32_t i = 0; i < count; ++i) {
        berth_op *op = &berth_graph_get(module, main)->ops.data[i];
        if (op->region == BERTH_NONE || op->kind != BERTH_OP_CALL) continue;
        const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
        berth_func_id lowered = BERTH_NONE;
        if (!callee || berth_tfn_get(module, callee->function) ||
            berth_external_get(module, callee->function))
            continue;
        BERTH_TRY(berth_lower_function(module, callee->function, &lowered));
        berth_module_function(module, callee->function)->removed = true;
        op = &berth_graph_get(module, main)->ops.data[i];
        berth_attrs_set(module, &op->attrs, "callee",
                        (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = lowered});
    }
    return berth_pass_inline_tensor_calls(module);
}

// The planner once more: what the buffers of tensor functions demand of memory scopes goes to the
// values and the other way round. Devices are decided, so without scopes nothing changes.
// Whether a kernel's buffer has to be in another scope than where values are by themselves.
static bool demands_scopes(const berth_module *module) {
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_tfn *fn = berth_tfn_get(module, i);
        for (uint32_t b = 0; fn && b < fn->param_count; ++b)
            if (fn->bufs.data[b].memory_scope) return true;
    }
    return false;
}

// Whether every value of the function has its place.
static bool is_placed(const berth_module *module, berth_func_id function) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (!op->device || op->region_count) return false;
        for (uint32_t k = 0; k < op->output_count; ++k)
            if (!graph->values.data[op->outputs[k]].device) return false;
    }
    return true;
}

static berth_status run_plan_scopes(berth_module *module, berth_pass_context *context) {
    berth_pipeline *pipeline = pipeline_of(context);
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    if (pipeline->plan && !demands_scopes(module) && is_placed(module, main)) return BERTH_OK;
    berth_plan_options plan_options = {.target = pipeline->options->target, .host_bound = true};
    berth_plan *scopes = NULL, *plan = pipeline->plan;
    BERTH_TRY(berth_plan_module(module, &plan_options, &scopes));
    if (!plan || scopes->copy_count <= plan->copy_count) return BERTH_OK;
    plan->copies = scopes->copies;  // the copies there were, and those between scopes
    plan->copy_count = scopes->copy_count;
    return BERTH_OK;
}

static berth_status run_schedule(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    berth_pipeline *pipeline = pipeline_of(context);
    return berth_pipeline__schedule(module, main, pipeline->options, &pipeline->choices);
}

static berth_status run_roll_rows(berth_module *module, berth_pass_context *context) {
    berth_pipeline *pipeline = pipeline_of(context);
    berth_func_id main;
    BERTH_TRY(find_main(module, &main));
    context->did_nothing = !berth_rolls_rows(pipeline->options->patches);
    return context->did_nothing ? BERTH_OK : berth_pipeline__roll_rows(module, main, pipeline);
}

// What it makes is no part of the module, so that it runs again on a module that was printed after it.
static berth_status run_package(berth_module *module, berth_pass_context *context) {
    berth_func_id main;
    context->did_nothing = true;
    BERTH_TRY(find_main(module, &main));
    BERTH_TRY(berth_pipeline__make_units(module, main, pipeline_of(context)));
    if (pipeline_of(context)->options->note_sizes) return BERTH_OK;
    return berth_pipeline__package(module, main, pipeline_of(context));
}

static const berth_pass pass_names = {.name = "keep-names",
                                      .description = "remember the names of the outputs",
                                      .run = run_keep_names,
                                      .again = true};
static const berth_pass pass_fold = {.name = "fold-constants",
                                     .description = "infer types, evaluate what is constant",
                                     .run = run_fold,
                                     .again = true};
static const berth_pass pass_integers = {.name = "find-integers",
                                         .description =
                                             "quantised parts of a model as sums of integers",
                                         .run = run_integers,
                                         .requires = "fold-constants",
                                         .again = true};
static const berth_pass pass_simplify = {.name = "simplify",
                                         .description =
                                             "device-neutral rewrites (batch norm into conv, ...)",
                                         .run = run_simplify,
                                         .requires = "fold-constants",
                                         .again = true};
static const berth_pass pass_patches = {.name = "patches",
                                        .description =
                                            "the first stages in bands of rows, where asked for",
                                        .run = run_patches,
                                        .requires = "simplify"};
static const berth_pass pass_expose = {.name = "expose-values",
                                       .description =
                                           "make every result an output, where asked for",
                                       .run = run_expose,
                                       .requires = "simplify"};
static const berth_pass pass_parallel = {.name = "tensor-parallel",
                                         .description =
                                             "products in parts on devices of one kind, where "
                                             "asked for",
                                         .run = run_parallel,
                                         .requires = "simplify"};
static const berth_pass pass_instantiate = {.name = "instantiate",
                                            .description =
                                                "tensor functions over symbols, for the extents of "
                                                "their calls",
                                            .run = run_instantiate,
                                            .again = true};
static const berth_pass pass_plan = {.name = BERTH_PASS_PLAN_DEVICES,
                                     .description = "decide devices, insert copies",
                                     .run = run_plan,
                                     .again = true};
static const berth_pass pass_inline = {.name = "inline-calls",
                                       .description =
                                           "functions that are called become part of main",
                                       .run = run_inline,
                                       .requires = BERTH_PASS_PLAN_DEVICES,
                                       .again = true};
static const berth_pass pass_layout = {.name = BERTH_PASS_LAYOUT,
                                       .description =
                                           "layouts of activations and weights per device",
                                       .run = run_layout,
                                       .requires = BERTH_PASS_PLAN_DEVICES};
static const berth_pass pass_check_indices = {
    .name = "check-indices",
    .description = "find indices that the host must look at after a run",
    .run = run_check_indices,
    .requires = BERTH_PASS_PLAN_DEVICES};
static const berth_pass pass_fuse = {
    .name = "fuse", .description = "group operations into primitive functions", .run = run_fuse};
static const berth_pass pass_parts = {.name = "find-parts",
                                      .description =
                                          "concatenations, splits and slices of bytes in a row",
                                      .run = run_find_parts,
                                      .requires = "fuse"};
static const berth_pass pass_lower = {
    .name = "lower", .description = "primitive functions to tensor functions", .run = run_lower};
static const berth_pass pass_scopes = {.name = "plan-scopes",
                                       .description =
                                           "decide memory scopes, insert copies between them",
                                       .run = run_plan_scopes,
                                       .again = true};
static const berth_pass pass_schedule = {
    .name = "schedule",
    .description = "loop transformations: a function per distinct callee and kind of device",
    .run = run_schedule,
    .requires = "lower"};
static const berth_pass pass_roll = {.name = "roll-rows",
                                     .description = "a chain of stages row by row, where asked for",
                                     .run = run_roll_rows,
                                     .requires = "schedule"};
static const berth_pass pass_package = {
    .name = "package",
    .description = "print and compile kernels, plan memory, build the program",
    .run = run_package,
    .requires = "schedule",
    .again = true};

// The pipeline, NULL-terminated: what is built in, and what plug-ins register in between.
enum { built_in_passes = 19 };
static const berth_pass *pipeline_passes[built_in_passes + BERTH_EXTEND_MAX + 1] = {
    &pass_names,  &pass_fold,          &pass_integers,    &pass_simplify, &pass_patches,
    &pass_expose, &pass_parallel,      &pass_instantiate, &pass_plan,     &pass_inline,
    &pass_layout, &pass_check_indices, &pass_fuse,        &pass_parts,    &pass_lower,
    &pass_scopes, &pass_schedule,      &pass_roll,        &pass_package};
// Per pass: the built-in one that it runs after; NULL for that itself.
static const berth_pass *pipeline_after[built_in_passes + BERTH_EXTEND_MAX + 1];

const berth_pass *const *berth_compile_passes(void) {
    return pipeline_passes;
}

berth_status berth_pass_register(const berth_pass *pass, const char *after) {
    if (!pass->name || !*pass->name || !pass->description || !pass->run)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a pass to register lacks its name, description or run");
    uint32_t count = 0, place = 0;
    for (; pipeline_passes[count]; ++count) {
        if (strcmp(pipeline_passes[count]->name, pass->name) == 0)
            return berth_status_make(BERTH_ALREADY_EXISTS, "there is a pass %s already",
                                     pass->name);
        const berth_pass *anchor =
            pipeline_after[count] ? pipeline_after[count] : pipeline_passes[count];
        if (strcmp(anchor->name, after) == 0) place = count + 1;
    }
    if (!place)
        return berth_status_make(BERTH_NOT_FOUND, "there is no pass %s for %s to run after", after,
                                 pass->name);
    if (count == built_in_passes + BERTH_EXTEND_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d passes are registered",
                                 BERTH_EXTEND_MAX);
    const berth_pass *anchor =
        pipeline_after[place - 1] ? pipeline_after[place - 1] : pipeline_passes[place - 1];
    for (uint32_t i = count; i > place; --i) {
        pipeline_passes[i] = pipeline_passes[i - 1];
        pipeline_after[i] = pipeline_after[i - 1];
    }
    pipeline_passes[place] = pass;
    pipeline_after[place] = anchor;
    return BERTH_OK;
}
