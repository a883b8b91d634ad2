#include "toolkit/model.h"

#include <string.h>

#include "artifact/file.h"
#include "compiler/cost/applies.h"
#include "compiler/cost/table.h"
#include "compiler/fit/fit.h"
#include "compiler/target_words.h"
#include "compiler/tuning/kernel_choice.h"
#include "compiler/tuning/table.h"
#include "compiler/vm/states.h"
#include "compiler/vm/vm.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "toolkit/module_file.h"
#include "toolkit/vm_build.h"

struct berth_model {
    berth_arena *arena;
    berth_module *module;  // as far as the compiler came: in `arena`, or in that of `fitted`
    berth_fitted fitted;
    const berth_multi_target *target;
    berth_compile_result compiled;
    const berth_program *program;
    berth_cost_table *costs;  // NULL = none
    berth_log log;
    const char *note;  // what was assumed about the target; NULL = nothing
};

// ---- this machine -------------------------------------------------------------------------------

typedef struct facts_job {
    berth_arena *arena;
    const char *target;  // whose kinds are asked for; NULL = all
    berth_machine_facts *facts;
    berth_machine_asked *asked;
    berth_machine_device *devices;
} facts_job;

// PoCL's devices of its driver "pthread" have one pool of threads together, which POCL_MAX_PTHREAD_COUNT makes
// smaller than the machine; "basic" ones work in the thread that enqueues.
static const char *core_pool_of(const facts_job *job, const berth_device_info *info,
                                berth_device_kind kind, uint32_t ordinal) {
    static const char pocl_pool[] = "pthread-";
    const berth_machine_facts *facts = job->facts;
    const int64_t all = facts->threads > facts->cores ? facts->threads : facts->cores;
    if (!info->is_cpu || !info->compute_units || info->compute_units >= all) return NULL;
    if (strncmp(info->name, pocl_pool, sizeof(pocl_pool) - 1) == 0) return "pocl";
    return berth_arena_printf(job->arena, "%s-%u", berth_device_kind_name(kind), ordinal);
}

static berth_status add_device(facts_job *job, berth_device_kind kind, berth_driver *driver,
                               uint32_t ordinal) {
    berth_machine_facts *facts = job->facts;
    berth_device_info info;
    BERTH_TRY(berth_driver_device_info(driver, ordinal, &info));
    // A GPU whose own memory the host sees as it is wants no turns (as OpenCL does, `unified`): nothing is gained by
    // copies there.
    bool coincides = info.memories[0].host_visible && berth_device_kind_is_gpu(kind);
    job->devices[facts->device_count++] = (berth_machine_device){
        .kind = kind,
        .model = berth_arena_strdup(job->arena, info.name),
        .arch = info.is_cpu ? facts->arch : berth_arena_strdup(job->arena, info.arch),
        .features = berth_arena_strdup(job->arena, info.kernel_features),
        .compute_units = info.compute_units,
        .lacks_f64 = info.lacks_f64,
        .lacks_i64 = info.lacks_i64,
        .lacks_8bit = info.lacks_8bit,
        .lacks_16bit = info.lacks_16bit,
        .uses_host_cores = info.is_cpu,
        .core_pool = core_pool_of(job, &info, kind, ordinal),
        .shares_host_memory = coincides,
        .in_host_memory = info.unified || coincides,
        .max_group_size = (int64_t)info.max_group_size,
        .local_memory_bytes = (int64_t)info.local_memory_bytes,
        .max_bindings = info.max_bindings < BERTH_DEVICE_MAX_BINDINGS ? info.max_bindings : 0,
        .memory_capacity_bytes = (int64_t)info.memories[0].capacity_bytes,
        .clock_hz = (int64_t)info.clock_hz,
        .l2_bytes = berth_device_kind_is_gpu(kind) ? (int64_t)info.cache_bytes[1] : 0,
        .memory_bandwidth_bytes_per_s = (int64_t)info.bandwidth_bytes_per_s,
        .memory_alignment_bytes = info.memories[0].alignment_bytes};
    return BERTH_OK;
}

static berth_status ask_driver(facts_job *job, const berth_driver_ops *ops,
                               berth_device_kind kind) {
    berth_machine_facts *facts = job->facts;
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open(ops->kind, berth_allocator_system(), &driver);
    if (status == berth_status_oom()) return status;  // ours; a driver's is a reason like any other
    berth_machine_asked *asked = &job->asked[facts->asked_count++];
    asked->kind = kind;
    if (status) {  // not here: `local` then has no such device, and `berth devices` says why
        asked->missing = berth_arena_strdup(job->arena, berth_status_message(status));
        berth_status_free(status);
        return BERTH_OK;
    }
    uint32_t count = berth_driver_device_count(driver);
    berth_machine_device *devices =
        berth_arena_new_array(job->arena, berth_machine_device, facts->device_count + count);
    for (uint32_t i = 0; i < facts->device_count; ++i) devices[i] = job->devices[i];
    facts->devices = job->devices = devices;
    for (uint32_t i = 0; i < count && !status; ++i) status = add_device(job, kind, driver, i);
    berth_driver_close(driver);
    return status;
}

static bool concerns(const facts_job *job, const berth_driver_ops *ops) {
    if (ops->is_host || ops->runs_no_kernels) return false;
    return !job->target || strstr(job->target, ops->kind);
}

static berth_status run_facts(void *user) {
    facts_job *job = user;
    const berth_driver_ops *ops = NULL;
    uint32_t count = 0;
    while (berth_driver_kind_at(count)) ++count;
    job->facts->asked = job->asked = berth_arena_new_array(job->arena, berth_machine_asked, count);
    for (uint32_t i = 0; i < count && (ops = berth_driver_kind_at(i)); ++i) {
        berth_device_kind kind = berth_device_kind_from_name(ops->kind);
        // Targets know no other kinds: such a driver serves who opens its devices.
        if (kind != BERTH_DEVICE_FREE && concerns(job, ops)) BERTH_TRY(ask_driver(job, ops, kind));
    }
    return BERTH_OK;
}

static berth_status ask_drivers(berth_arena *arena, const char *target,
                                berth_machine_facts *out_facts) {
    BERTH_TRY(berth_machine_facts_host(arena, out_facts));
    facts_job job = {.arena = arena, .target = target, .facts = out_facts};
    return berth_arena_try(arena, run_facts, &job);
}

berth_status berth_machine_facts_local(berth_arena *arena, berth_machine_facts *out_facts) {
    return ask_drivers(arena, NULL, out_facts);
}

// ---- loading ------------------------------------------------------------------------------------

// Tags and JSON take nothing from this machine; of the short forms `local` takes all its devices,
// others those that they name.
berth_status berth_machine_facts_for(berth_arena *arena, const char *target,
                                     berth_machine_facts *out_facts) {
    if (*target == '{') return berth_machine_facts_host(arena, out_facts);
    return ask_drivers(arena, strstr(target, "local") ? NULL : target, out_facts);
}

// What was assumed about the target is said at once, and by the plan.
static void note_assumption(void *state, berth_log_level level, const char *message) {
    berth_model *model = state;
    berth_log_message(model->log, level, "%s", message);
    const char *before = model->note;
    model->note = before ? berth_arena_printf(model->arena, "%s; %s", before, message)
                         : berth_arena_strdup(model->arena, message);
}

// The target that a module was planned for, where none is asked for; NULL = none.
static berth_status target_of_module(berth_model *model, const char *path,
                                     const berth_model_options *options, const char **out_target) {
    berth_module_form form = BERTH_MODULE_ONNX;
    berth_module *module = NULL;
    *out_target = options->target;
    if (options->target || options->multi_target) return BERTH_OK;
    BERTH_TRY(berth_module_form_of(path, &form));
    if (form == BERTH_MODULE_ONNX) return BERTH_OK;
    const berth_import_options as_it_is = {.limits = options->import.limits};
    BERTH_TRY(berth_module_load(model->arena, path, &as_it_is, NULL, &module));
    *out_target = berth_module_target(module);
    return BERTH_OK;
}

static berth_status parse_target(berth_model *model, const char *target,
                                 const berth_model_options *options) {
    const char *text = target ? target : "cpu";
    berth_multi_target *parsed = NULL;
    berth_machine_facts facts;
    model->log = options->compile.log;
    model->target = options->multi_target;
    if (model->target) return BERTH_OK;
    BERTH_TRY(berth_machine_facts_for(model->arena, text, &facts));
    berth_target_options target_options = options->target_options;
    target_options.machine = &facts;
    target_options.log = (berth_log){note_assumption, model};
    BERTH_TRY(berth_target_parse(model->arena, text, &target_options, &parsed));
    berth_target_words_check(parsed, target_options.log);
    model->target = parsed;
    return BERTH_OK;
}

static berth_status open_program(berth_model *model, const char *path,
                                 const berth_model_options *options) {
    if (options->required_key) {
        BERTH_TRY(berth_program_read_signed(model->arena, path, options->required_key,
                                            options->import.limits, &model->program));
    } else {
        // All of the file, constants too: a damaged weight would give results that are only wrong.
        BERTH_TRY(berth_program_file_check(berth_allocator_system(), path, options->import.limits));
        BERTH_TRY(berth_program_read(model->arena, path, options->import.limits, &model->program));
    }
    if (!options->target && !options->multi_target) return BERTH_OK;
    BERTH_TRY(parse_target(model, options->target, options));
    if (strcmp(model->target->canonical, model->program->target_json) == 0) return BERTH_OK;
    const char *difference = NULL;
    BERTH_TRY(berth_target_difference(model->arena, model->program->target_json,
                                      model->target->canonical, &difference));
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "\"%s\" was built for another target (%s); run it as built, without "
                             "naming a target, or build it again",
                             path, difference);
}

// Where a model comes from: a file, or (`data` not NULL) ONNX in memory.
typedef struct model_source {
    const char *path;  // or what messages call it
    const void *data;
    size_t size_bytes;
    const char *folder;          // of external data; NULL = none
    berth_model_builder *build;  // NULL = one of the above
    void *user;
} model_source;

static berth_status read_module(berth_model *model, const model_source *source,
                                const berth_model_options *options) {
    if (source->build) return source->build(source->user, model->arena, &model->module);
    if (source->data)
        return berth_onnx_import_memory(model->arena, source->data, source->size_bytes,
                                        source->path, source->folder, &options->import,
                                        &model->module);
    return berth_module_load(model->arena, source->path, &options->import, model->target,
                             &model->module);
}

// A program of byte code; shapes that specialisations give stay open until then.
static berth_status build_vm_program(berth_model *model, const model_source *source,
                                     const berth_model_options *options) {
    berth_model_options open = *options;
    BERTH_TRY(berth_vm_build_names(model->arena, options->specialisations,
                                   options->specialisation_count, &open.import.open_dims,
                                   &open.import.open_dim_count));
    open.compile.target = model->target;
    open.compile.note = model->note;
    BERTH_TRY(read_module(model, source, &open));
    BERTH_TRY(berth_vm_declare_states(model->module, options->states, options->state_count));
    return berth_vm_build(model->arena, model->module, &open.compile, options->specialisations,
                          options->specialisation_count, &model->compiled.program);
}

static berth_status compile_model(berth_model *model, const model_source *source,
                                  const berth_model_options *options) {
    berth_compile_options compile = options->compile;
    compile.target = model->target;
    compile.note = model->note;
    if (options->only_these_inputs) {
        compile.known_inputs = options->import.inputs;
        compile.known_input_count = options->import.input_count;
    }
    BERTH_TRY(read_module(model, source, options));
    berth_status status = berth_fit(model->module, &compile, &model->fitted);
    if (model->fitted.module) model->module = model->fitted.module;
    model->compiled = model->fitted.result;
    return status;
}

// Whether what the compiler refused has control flow, or shapes that depend on data, although the
// shapes of all inputs are known.
static bool needs_vm(const berth_model *model, berth_status status) {
    if (berth_status_code(status) != BERTH_UNSUPPORTED || !model->module) return false;
    if (model->target->executor == BERTH_EXECUTOR_AOT)
        return false;  // asked for, as by runtime bare
    berth_func_id main = berth_module_find_function(model->module, "main");
    const berth_graph *graph = main == BERTH_NONE ? NULL : berth_graph_get(model->module, main);
    if (!graph) return false;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_type_id id = graph->values.data[root->params.data[i]].type;
        const berth_type *type = berth_type_get(model->module, id);
        if (type->dtype == BERTH_DTYPE_STRING) return true;  // of whatever shape
        if (type->kind == BERTH_TYPE_TENSOR && !berth_type_is_static(type)) return false;
    }
    return berth_vm_is_needed(model->module, main);
}

berth_status berth_model__refuse_unsigned(const berth_model_options *options, const char *name) {
    if (!options->required_key) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "\"%s\" is no program file, and only these are signed: build it with "
                             "a key first",
                             name);
}

typedef struct costs_job {
    berth_model *model;
    const char *path;
    berth_cost_table *table;
} costs_job;

static berth_status read_costs(void *user) {
    costs_job *job = user;
    job->table = berth_cost_table_create(job->model->arena);
    BERTH_TRY(berth_cost_table_read(job->table, job->path));
    return berth_cost_table_say(job->table, job->path, job->model->target, job->model->log);
}

typedef struct tuned_job {
    berth_model *model;
    const char *path;
    berth_tuned_table *table;
} tuned_job;

static berth_status read_tuned(void *user) {
    tuned_job *job = user;
    job->table = berth_tuned_table_create(job->model->arena);
    return berth_tuned_table_read(job->table, job->path);
}

// How many of the model's functions are scheduled by the file.
static void say_tuned(const berth_model *model, const char *path) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < model->compiled.choice_count; ++i)
        used += model->compiled.choices[i].by == BERTH_CHOSEN_BY_TUNING;
    berth_log_message(model->log, BERTH_LOG_INFO, "tuned: %u of %u kernel functions by %s", used,
                      model->compiled.choice_count, path);
}

static berth_status load(berth_model *model, const model_source *source,
                         const berth_model_options *options) {
    const char *target = options->target;
    bool file = !source->data && !source->build;
    if (file && berth_program_is_file(source->path))
        return open_program(model, source->path, options);
    BERTH_TRY(berth_model__refuse_unsigned(options, source->path));
    if (file) BERTH_TRY(target_of_module(model, source->path, options, &target));
    BERTH_TRY(parse_target(model, target, options));
    berth_model_options with_costs = *options;
    costs_job costs = {.model = model, .path = options->costs};
    if (options->costs) {
        BERTH_TRY(berth_arena_try(model->arena, read_costs, &costs));
        with_costs.compile.costs = model->costs = costs.table;
    }
    tuned_job tuned = {.model = model, .path = options->tuned};
    if (options->tuned) {
        BERTH_TRY(berth_arena_try(model->arena, read_tuned, &tuned));
        with_costs.compile.tuned = tuned.table;
    }
    bool makes_vm = options->makes_vm_program && model->target->executor == BERTH_EXECUTOR_VM;
    berth_status status = makes_vm ? build_vm_program(model, source, &with_costs)
                                   : compile_model(model, source, &with_costs);
    if (!status && options->tuned) say_tuned(model, options->tuned);
    if (options->over_bytes && status && status != berth_status_oom())
        *options->over_bytes = model->compiled.over_bytes;
    if (status && options->needs_vm) *options->needs_vm = needs_vm(model, status);
    BERTH_TRY(status);
    model->program = model->compiled.program;
    return BERTH_OK;
}

static berth_status load_from(model_source source, const berth_model_options *options,
                              berth_model **out_model) {
    *out_model = NULL;
    if (options->needs_vm) *options->needs_vm = false;
    if (options->over_bytes) *options->over_bytes = 0;
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &arena));
    berth_model *model = berth_calloc(berth_allocator_system(), 1, sizeof(*model));
    if (!model) {
        berth_arena_destroy(arena);
        return berth_status_oom();
    }
    model->arena = arena;
    berth_status status = load(model, &source, options);
    if (status)
        berth_model_destroy(model);
    else
        *out_model = model;
    return status;
}

berth_status berth_model_load(const char *path, const berth_model_options *options,
                              berth_model **out_model) {
    return load_from((model_source){.path = path}, options, out_model);
}

berth_status berth_model_load_memory(const void *data, size_t size_bytes, const char *name,
                                     const char *folder, const berth_model_options *options,
                                     berth_model **out_model) {
    const model_source source = {
        .path = name, .data = data, .size_bytes = size_bytes, .folder = folder};
    return load_from(source, options, out_model);
}

berth_status berth_model_load_built(berth_model_builder *build, void *user, const char *name,
                                    const berth_model_options *options, berth_model **out_model) {
    const model_source source = {.path = name, .build = build, .user = user};
    return load_from(source, options, out_model);
}

void berth_model_destroy(berth_model *model) {
    if (!model) return;
    berth_fitted_release(&model->fitted);
    berth_arena_destroy(model->arena);
    berth_free(berth_allocator_system(), model, sizeof(*model));
}

const berth_program *berth_model_program(const berth_model *model) {
    return model->program;
}

const berth_plan *berth_model_plan(const berth_model *model) {
    return model->compiled.plan;
}

const berth_memory_report *berth_model_memory(const berth_model *model) {
    return model->compiled.memory;
}

const berth_module *berth_model_module(const berth_model *model) {
    return model->module;
}

const berth_multi_target *berth_model_target(const berth_model *model) {
    return model->target;
}

const struct berth_work *const *berth_model_step_works(const berth_model *model) {
    return model->compiled.step_works;
}

const struct berth_kernel_choice *berth_model_choices(const berth_model *model,
                                                      uint32_t *out_count) {
    *out_count = model->compiled.choice_count;
    return model->compiled.choices;
}

const uint32_t *berth_model_step_choices(const berth_model *model) {
    return model->compiled.step_choices;
}

struct berth_cost_table *berth_model_costs(const berth_model *model) {
    return model->costs;
}

const berth_known_use *berth_model_known_uses(const berth_model *model, uint32_t *out_count) {
    *out_count = model->compiled.known_use_count;
    return model->compiled.known_uses;
}
