#include "toolkit/calibrate_libraries.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compiler/libraries/choose.h"
#include "executor/session.h"
#include "toolkit/calibrate_shapes.h"
#include "toolkit/step_times.h"

enum { warm_up_runs = 3, fewest_runs = 7, most_runs = 200, share = 8 };

typedef struct comparison {
    const char *path;
    const berth_calibrate_options *options;
    const berth_multi_target *target;
    berth_arena *arena;
    berth_cost_table *table;
    const berth_library_candidate *candidate;
    const berth_module *module;  // of the candidate's operation
} comparison;

// One of the two programs.
typedef struct side {
    berth_model *model;
    const berth_program *program;
    berth_session *session;
    double *step_ns;
    double *ns;    // per run: of the library's steps; of our program, of all
    double *rest;  // per run: of the other steps
    berth_arena *scratch;
} side;

// ---- the operation alone ------------------------------------------------------------------------

typedef struct builder {
    berth_module *module;
    berth_func_id main;
    uint64_t seed;
} builder;

static berth_value_id weights(builder *b, berth_dtype dtype, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(b->module->arena, dtype, rank, dims);
    berth_tensor_fill_random(&tensor, ++b->seed);
    return berth_graph_constant(b->module, b->main, 0, &tensor, 0);
}

static berth_value_id add(builder *b, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count, berth_attrs attrs) {
    berth_value_id result = berth_graph_op1(b->module, b->main, kind, inputs, count, 0);
    berth_graph *graph = berth_graph_get(b->module, b->main);
    graph->ops.data[graph->values.data[result].op].attrs = attrs;
    return result;
}

// A number per channel: before and after a convolution, so that what it reads and makes lies as within
// a model.
static berth_value_id scale_channels(builder *b, berth_value_id x, int64_t channels) {
    berth_attrs attrs = {0};
    berth_value_id inputs[] = {x, weights(b, BERTH_DTYPE_F32, 4, (int64_t[]){channels, 1, 1, 1})};
    berth_attrs_set_int(b->module, &attrs, "group", channels);
    berth_attrs_set_ints(b->module, &attrs, "kernel_shape", (int64_t[]){1, 1}, 2);
    return add(b, BERTH_OP_CONV, inputs, 2, attrs);
}

static bool in_blocks(const berth_library_use *use) {
    return use->kind == BERTH_OP_CONV && use->convolution.block > 1;
}

// The sum with an input of the result's dimensions; a convolution's in blocks.
static berth_value_id add_value(builder *b, const berth_library_use *use, berth_value_id y,
                                int rank, const int64_t *dims) {
    berth_value_id other = berth_graph_add_param(
        b->module, b->main, "sum", berth_type_tensor(b->module, use->dtype, rank, dims));
    if (in_blocks(use)) other = scale_channels(b, other, dims[1]);
    return add(b, BERTH_OP_ADD, (berth_value_id[]){y, other}, 2, (berth_attrs){0});
}

static berth_value_id build_convolution(builder *b, const berth_library_use *use) {
    const berth_library_convolution *c = &use->convolution;
    const berth_window *w = &c->window;
    berth_attrs attrs = {0};
    int64_t pads[] = {w->pads_begin[0], w->pads_begin[1], w->pads_end[0], w->pads_end[1]};
    berth_value_id x = berth_graph_add_param(
        b->module, b->main, "x",
        berth_type_tensor(b->module, BERTH_DTYPE_F32, 4,
                          (int64_t[]){c->images, c->inputs, w->input[0], w->input[1]}));
    if (!c->plain_input) x = scale_channels(b, x, c->inputs);
    berth_value_id inputs[3] = {
        x, weights(b, BERTH_DTYPE_F32, 4,
                   (int64_t[]){c->outputs, c->inputs / w->group, w->kernel[0], w->kernel[1]})};
    if (use->bias) inputs[2] = weights(b, BERTH_DTYPE_F32, 1, &c->outputs);
    berth_attrs_set_ints(b->module, &attrs, "kernel_shape", w->kernel, 2);
    berth_attrs_set_ints(b->module, &attrs, "strides", w->strides, 2);
    berth_attrs_set_ints(b->module, &attrs, "dilations", w->dilations, 2);
    berth_attrs_set_ints(b->module, &attrs, "pads", pads, 4);
    berth_attrs_set_int(b->module, &attrs, "group", w->group);
    berth_value_id y = add(b, BERTH_OP_CONV, inputs, use->bias ? 3 : 2, attrs);
    if (use->sum)
        y = add_value(b, use, y, 4, (int64_t[]){c->images, c->outputs, w->output[0], w->output[1]});
    if (use->relu) y = add(b, BERTH_OP_RELU, &y, 1, (berth_attrs){0});
    return in_blocks(use) ? scale_channels(b, y, c->outputs) : y;
}

// An operand of a product, a constant where it is one in the model.
static berth_value_id matrix(builder *b, const berth_library_use *use, bool constant,
                             const char *name, int64_t rows, int64_t columns, bool transposed) {
    int64_t dims[3] = {use->product.batch, transposed ? columns : rows,
                       transposed ? rows : columns};
    int skip = use->product.batch == 1;
    if (constant) return weights(b, use->dtype, 3 - skip, dims + skip);
    return berth_graph_add_param(b->module, b->main, name,
                                 berth_type_tensor(b->module, use->dtype, 3 - skip, dims + skip));
}

static berth_value_id build_product(builder *b, const comparison *c, const berth_library_use *use) {
    const berth_library_product *p = &use->product;
    const berth_graph *graph =
        berth_graph_get(c->module, berth_module_find_function(c->module, "main"));
    bool constant = berth_graph_raw_constant_of(c->module, graph, use->operands[1]) != NULL;
    bool gemm = p->transposed_a || p->transposed_b;
    berth_attrs attrs = {0};
    berth_value_id inputs[2] = {
        matrix(b, use, false, "a", p->rows, p->depth, p->transposed_a),
        matrix(b, use, constant, "b", p->depth, p->columns, p->transposed_b)};
    if (gemm) berth_attrs_set_int(b->module, &attrs, "transA", p->transposed_a);
    if (gemm) berth_attrs_set_int(b->module, &attrs, "transB", p->transposed_b);
    berth_value_id y = add(b, gemm ? BERTH_OP_GEMM : BERTH_OP_MATMUL, inputs, 2, attrs);
    if (use->bias)
        y = add(b, BERTH_OP_ADD, (berth_value_id[]){y, weights(b, use->dtype, 1, &p->columns)}, 2,
                (berth_attrs){0});
    int64_t dims[] = {p->batch, p->rows, p->columns};
    if (use->sum) y = add_value(b, use, y, p->batch > 1 ? 3 : 2, dims + (p->batch == 1));
    return use->relu ? add(b, BERTH_OP_RELU, &y, 1, (berth_attrs){0}) : y;
}

typedef struct build_job {
    const comparison *c;
    berth_arena *arena;
    berth_module *module;
} build_job;

static berth_status build_in_arena(void *user) {
    build_job *job = user;
    const berth_library_use *use = &job->c->candidate->use;
    builder b = {.module = berth_module_create(job->arena, "comparison")};
    b.main = berth_graph_create(b.module, "main", 0);
    berth_value_id y =
        use->kind == BERTH_OP_CONV ? build_convolution(&b, use) : build_product(&b, job->c, use);
    berth_graph_get(b.module, b.main)->values.data[y].name = berth_module_intern(b.module, "y");
    berth_graph_set_results(b.module, b.main, &y, 1);
    job->module = b.module;
    return BERTH_OK;
}

static berth_status build(void *user, berth_arena *arena, berth_module **out_module) {
    build_job job = {.c = user, .arena = arena};
    BERTH_TRY(berth_arena_try(arena, build_in_arena, &job));
    *out_module = job.module;
    return BERTH_OK;
}

// ---- two programs -------------------------------------------------------------------------------

// The target as text, its device of the candidate alone with `library` (NULL = none) and taking it
// wherever it can.
static const char *target_with(const comparison *c, const char *library) {
    json_error_t error;
    const char *name = c->target->devices[c->candidate->device].name;
    json_t *json = json_loads(c->target->canonical, 0, &error);
    if (!json) berth_arena_fail(c->arena);
    json_object_set_new(json, "default_device", json_string(name));
    json_object_del(json, "pins");
    json_t *device = json_object_get(
        json_array_get(json_object_get(json, "devices"), c->candidate->device), "target");
    json_object_del(device, "libs");
    json_object_del(device, "libs_policy");
    if (library) json_object_set_new(device, "libs", json_pack("[s]", library));
    if (library) json_object_set_new(device, "libs_policy", json_string("always"));
    char *text = json_dumps(json, JSON_SORT_KEYS);
    json_decref(json);
    if (!text) berth_arena_fail(c->arena);
    berth_arena_defer(c->arena, free, text);
    return text;
}

static berth_model_options options_for(const comparison *c, const char *target) {
    berth_model_options options = c->options->model;
    options.target = target;
    options.target_options = (berth_target_options){0};
    options.compile.strategy = NULL;
    options.costs = NULL;
    options.only_these_inputs = true;
    return options;
}

static berth_status open_side(comparison *c, const char *library, side *out) {
    berth_model_options options = options_for(c, target_with(c, library));
    const berth_target *on = c->target->devices[c->candidate->device].target;
    berth_session_options session_options = {.profile = true,
                                             .thread_count = (uint32_t)on->cores,
                                             .bindings = c->options->bindings,
                                             .binding_count = c->options->binding_count,
                                             .cache_folder = options.compile.cache_folder};
    options.import = (berth_import_options){0};
    BERTH_TRY(berth_model_load_built(build, c, "comparison", &options, &out->model));
    out->program = berth_model_program(out->model);
    BERTH_TRY(berth_session_open(berth_allocator_system(), out->program, &session_options,
                                 &out->session));
    for (uint32_t i = 0; berth_session_input(out->session, i); ++i) {
        berth_tensor tensor = *berth_session_input(out->session, i);
        berth_tensor_fill_random(&tensor, c->options->seed + i);
    }
    out->scratch = c->arena;
    out->step_ns = berth_arena_new_array(c->arena, double, out->program->step_count + 1);
    out->ns = berth_arena_new_array(c->arena, double, most_runs);
    out->rest = berth_arena_new_array(c->arena, double, most_runs);
    return BERTH_OK;
}

static void close_side(side *s) {
    berth_session_close(s->session);
    berth_model_destroy(s->model);
}

static bool is_of_library(const side *s, uint32_t step) {
    const berth_program_step *at = &s->program->steps[step];
    if (at->kind != BERTH_STEP_DISPATCH) return false;
    const berth_program_kernel *kernel = &s->program->kernels[at->kernel];
    return *s->program->executables[kernel->executable].external != '\0';
}

static berth_status run_side(side *s, int64_t run) {
    BERTH_TRY(berth_session_run(s->session, -1));
    if (run < 0) return BERTH_OK;
    berth_step_times(s->program, s->session, s->scratch, s->step_ns);
    s->ns[run] = s->rest[run] = 0;
    for (uint32_t i = 0; i < s->program->step_count; ++i)
        *(is_of_library(s, i) ? &s->ns[run] : &s->rest[run]) += s->step_ns[i];
    return BERTH_OK;
}

// ---- what they took -----------------------------------------------------------------------------

static void add_record(const comparison *c, const char *who, double ns, uint32_t runs) {
    const berth_target *on = c->target->devices[c->candidate->device].target;
    const berth_library_use *use = &c->candidate->use;
    berth_cost_record record = {.target = berth_target_culled(c->arena, on),
                                .kind = BERTH_LIBRARY_COST_KIND,
                                .work =
                                    berth_arena_printf(c->arena, "%s: %s", who, c->candidate->key),
                                .flops = use->flops,
                                .bytes = use->result_bytes,
                                .ns = ns > 1 ? ns : 1,
                                .runs = runs};
    berth_cost_table_add(c->table, &record);
}

// The least: what disturbs a run only adds to it, and who computes is decided for a machine at rest.
static double least(const double *values, uint32_t count) {
    double ns = values[0];
    for (uint32_t i = 1; i < count; ++i) ns = fmin(ns, values[i]);
    return ns;
}

// What both programs have beside the operation is taken from our program's time.
static void add_records(const comparison *c, side *own, side *theirs, uint32_t runs) {
    double rest_ns = least(theirs->rest, runs), theirs_ns = least(theirs->ns, runs);
    double own_ns = least(own->rest, runs) - rest_ns;
    add_record(c, "berth", own_ns, runs);
    add_record(c, berth_library_facts_get(c->candidate->use.library)->name, theirs_ns, runs);
}

static berth_status run_in_turn(const comparison *c, side *own, side *theirs) {
    int64_t duration_ns = c->options->duration_ns;
    if (duration_ns <= 0) duration_ns = (int64_t)2 * 1000000000;
    uint32_t runs = 0;
    for (int i = 0; i < warm_up_runs; ++i) {
        BERTH_TRY(run_side(own, -1));
        BERTH_TRY(run_side(theirs, -1));
    }
    int64_t start_ns = berth_clock_ns();
    for (; runs < most_runs; ++runs) {
        if (runs >= fewest_runs && berth_clock_ns() - start_ns >= duration_ns / share) break;
        BERTH_TRY(run_side(own, runs));
        BERTH_TRY(run_side(theirs, runs));
    }
    add_records(c, own, theirs, runs);
    return BERTH_OK;
}

typedef struct compare_job {
    const comparison *c;
    side *own, *theirs;
} compare_job;

static berth_status compare_in_arena(void *user) {
    const compare_job *job = user;
    return run_in_turn(job->c, job->own, job->theirs);
}

static berth_status compare(comparison *c) {
    side own = {0}, theirs = {0};
    const char *library = berth_library_facts_get(c->candidate->use.library)->name;
    if (c->options->progress)
        c->options->progress(
            c->options->progress_user,
            berth_arena_printf(c->arena, "%s beside our kernels: %s", library, c->candidate->key));
    berth_status status = open_side(c, NULL, &own);
    if (!status) status = open_side(c, library, &theirs);
    compare_job job = {c, &own, &theirs};
    if (!status) status = berth_arena_try(berth_cost_table_arena(c->table), compare_in_arena, &job);
    close_side(&own);
    close_side(&theirs);
    return status;
}

// ---- all of a model -----------------------------------------------------------------------------

static berth_status compare_all(comparison *c, const berth_model *model) {
    berth_library_candidate *found = NULL;
    const berth_module *module = berth_model_module(model);
    uint32_t count = berth_libraries_candidates(module, berth_module_find_function(module, "main"),
                                                berth_model_target(model), c->arena, &found);
    c->module = module;
    for (uint32_t i = 0; i < count; ++i) {
        c->candidate = &found[i];
        BERTH_TRY(compare(c));
    }
    return BERTH_OK;
}

berth_status berth_toolkit__calibrate_libraries(const char *path,
                                                const berth_calibrate_options *options,
                                                const berth_multi_target *target,
                                                berth_arena *arena, berth_cost_table *table) {
    comparison c = {
        .path = path, .options = options, .target = target, .arena = arena, .table = table};
    bool any = false;
    for (uint32_t d = 0; d < target->device_count; ++d)
        any |= berth_library_any_for(target->devices[d].target->kind) &&
               target->devices[d].target->libs.count > 0;
    if (!any) return BERTH_OK;
    berth_model *model = NULL;
    berth_model_options model_options = options_for(&c, target->canonical);
    model_options.compile.stop_after = "inline-calls";
    if (path)
        BERTH_TRY(berth_model_load(path, &model_options, &model));
    else
        BERTH_TRY(berth_model_load_built(berth_toolkit__calibrate_shapes, NULL, "calibration",
                                         &model_options, &model));
    berth_status status = compare_all(&c, model);
    berth_model_destroy(model);
    return status;
}
