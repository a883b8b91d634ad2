// The public compiler (<berth/compile.h>).
#include <berth/compile.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "api/run/program.h"
#include "base/clock.h"
#include "base/str.h"
#include "compiler/bare/bare.h"
#include "compiler/fit/fit.h"
#include "compiler/toolchain/toolchain.h"
#include "toolkit/model.h"

typedef enum option_name {
    OPTION_TARGET,
    OPTION_HOST,
    OPTION_EXECUTOR,
    OPTION_RUNTIME,
    OPTION_MEMORY,
    OPTION_TAG_FOLDER,
    OPTION_STRATEGY,
    OPTION_OBJECTIVE,
    OPTION_PATCHES,
    OPTION_PARALLEL,
    OPTION_COSTS,
    OPTION_TUNED,
    OPTION_CACHE_FOLDER,
    OPTION_C_COMPILER,
    OPTION_SEARCH_PATH,
    OPTION_TEMPORARY_FOLDER,
    OPTION_REQUIRED_KEY,
    OPTION_REQUIRED_DEVICES,
    OPTION_LIMITS,
    OPTION_TEXT_COUNT,
    // Numbers.
    OPTION_NODES = OPTION_TEXT_COUNT,
    OPTION_TIME_BUDGET,
    OPTION_DEFAULT_BATCH,
    OPTION_CACHE_LIMIT,
    OPTION_COMPILER_TIME_LIMIT,
    OPTION_JOBS,
    // "on" or "off"; not 0: off.
    OPTION_FUSION,
    OPTION_LAYOUTS,
    OPTION_WINOGRAD,
    // "on" or "off"; not 0: on.
    OPTION_KEEP_SOURCE,
    OPTION_SMALL_CODE,
    OPTION_EXPLAIN_KERNELS,
    OPTION_SEVERAL_SIZES,
    OPTION_COUNT
} option_name;

static const char *const option_names[OPTION_COUNT + 1] = {
    [OPTION_TARGET] = "target",
    [OPTION_HOST] = "host",
    [OPTION_EXECUTOR] = "executor",
    [OPTION_RUNTIME] = "runtime",
    [OPTION_MEMORY] = "memory",
    [OPTION_TAG_FOLDER] = "tag_folder",
    [OPTION_STRATEGY] = "strategy",
    [OPTION_OBJECTIVE] = "objective",
    [OPTION_PATCHES] = "patches",
    [OPTION_PARALLEL] = "parallel",
    [OPTION_COSTS] = "costs",
    [OPTION_TUNED] = "tuned",
    [OPTION_CACHE_FOLDER] = "cache_folder",
    [OPTION_C_COMPILER] = "c_compiler",
    [OPTION_SEARCH_PATH] = "search_path",
    [OPTION_TEMPORARY_FOLDER] = "temporary_folder",
    [OPTION_REQUIRED_KEY] = "required_key",
    [OPTION_REQUIRED_DEVICES] = "required_devices",
    [OPTION_LIMITS] = "limits",
    [OPTION_NODES] = "nodes",
    [OPTION_TIME_BUDGET] = "time_budget_ns",
    [OPTION_DEFAULT_BATCH] = "default_batch",
    [OPTION_CACHE_LIMIT] = "cache_limit_bytes",
    [OPTION_COMPILER_TIME_LIMIT] = "compiler_time_limit_ns",
    [OPTION_JOBS] = "jobs",
    [OPTION_FUSION] = "fusion",
    [OPTION_LAYOUTS] = "layouts",
    [OPTION_WINOGRAD] = "winograd",
    [OPTION_KEEP_SOURCE] = "keep_source",
    [OPTION_SMALL_CODE] = "small_code",
    [OPTION_EXPLAIN_KERNELS] = "explain_kernels",
    [OPTION_SEVERAL_SIZES] = "several_sizes"};

struct berth_compiler {
    berth_arena *arena;
    const char *options[OPTION_TEXT_COUNT];
    uint64_t numbers[OPTION_COUNT - OPTION_TEXT_COUNT];  // 0 = the default
    BERTH_VEC(const char *) pins;                        // NULL-terminated while compiling
    BERTH_VEC(const char *) overrides;                   // NULL-terminated while compiling
    berth_api_inputs given;
    BERTH_VEC(const char *) specialisations;
    BERTH_VEC(const char *) states;
    berth_progress_callback progress;
    void *progress_user;
    berth_message_callback message;
    void *message_user;
    berth_level_callback level_message;
    void *level_message_user;
    berth_defer_callback defer;
    berth_pending_callback pending;
    void *interrupt_user;
    atomic_bool cancelled;
    bool needs_dynamic;    // of the last compilation
    berth_public_key key;  // of the option required_key
    berth_limits limits;   // of the option limits
    int64_t deadline_ns;   // of this compilation by its limits; 0 = none
};

berth_status berth_compiler_create(berth_compiler **out_compiler) {
    *out_compiler = NULL;
    berth_compiler *compiler = berth_calloc(berth_allocator_system(), 1, sizeof(*compiler));
    if (!compiler) return berth_status_oom();
    berth_status status = berth_arena_create(berth_allocator_system(), &compiler->arena);
    if (status)
        berth_compiler_destroy(compiler);
    else
        *out_compiler = compiler;
    return status;
}

void berth_compiler_destroy(berth_compiler *compiler) {
    if (!compiler) return;
    berth_arena_destroy(compiler->arena);
    berth_free(berth_allocator_system(), compiler, sizeof(*compiler));
}

berth_api_inputs *berth_api__compiler_inputs(berth_compiler *compiler) {
    return &compiler->given;
}

berth_arena *berth_api__compiler_arena(berth_compiler *compiler) {
    return compiler->arena;
}

// ---- options ------------------------------------------------------------------------------------

typedef struct text_job {
    berth_compiler *compiler;
    const char *name;
    const char *value;
} text_job;

static berth_status unknown_option(berth_compiler *compiler, const char *name) {
    berth_strbuf names = berth_strbuf_make(compiler->arena);
    for (int i = 0; i < OPTION_COUNT; ++i)
        berth_strbuf_addf(&names, "%s%s", i ? ", " : "", option_names[i]);
    const char *closest = berth_closest(name, option_names);
    return berth_status_make(BERTH_NOT_FOUND,
                             "the compiler has no option \"%s\"%s%s%s; its options are: %s", name,
                             closest ? "; did you mean \"" : "", closest ? closest : "",
                             closest ? "\"?" : "", berth_strbuf_text(&names));
}

static berth_status take_number(berth_compiler *compiler, option_name option, const char *value) {
    enum { most_jobs = 1024 };
    const uint64_t most = option == OPTION_JOBS ? most_jobs : INT64_MAX;
    char *end = NULL;
    errno = 0;
    unsigned long long number = value ? strtoull(value, &end, 10) : 0;
    if (value && (*value < '0' || *value > '9' || *end || errno || number == 0 || number > most))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "option %s takes a number from 1 to %llu, not \"%s\"",
                                 option_names[option], (unsigned long long)most, value);
    compiler->numbers[option - OPTION_TEXT_COUNT] = number;
    return BERTH_OK;
}

static berth_status take_switch(berth_compiler *compiler, option_name option, const char *value) {
    bool off = value && strcmp(value, "off") == 0, on = value && strcmp(value, "on") == 0;
    if (value && !off && !on)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "option %s takes on or off, not \"%s\"",
                                 option_names[option], value);
    compiler->numbers[option - OPTION_TEXT_COUNT] = option < OPTION_KEEP_SOURCE ? off : on;
    return BERTH_OK;
}

// Options of a few words.
static berth_status check_word(option_name option, const char *value) {
    static const struct {
        option_name option;
        const char *words[4];
        const char *text;
    } all[] = {
        {OPTION_OBJECTIVE, {"latency", "throughput", "memory"}, "latency, throughput or memory"},
        {OPTION_PARALLEL,
         {"none", "tensor", "pipeline", "auto"},
         "none, tensor, pipeline or auto"}};
    for (size_t i = 0; value && i < sizeof(all) / sizeof(all[0]); ++i) {
        bool known = all[i].option != option;
        for (int k = 0; k < 4 && all[i].words[k]; ++k) known |= strcmp(value, all[i].words[k]) == 0;
        if (!known)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "option %s takes %s, not \"%s\"",
                                     option_names[option], all[i].text, value);
    }
    return BERTH_OK;
}

static berth_status set_option(void *user) {
    const text_job *job = user;
    berth_compiler *compiler = job->compiler;
    int option = 0;
    while (option < OPTION_COUNT && strcmp(option_names[option], job->name) != 0) ++option;
    if (option == OPTION_COUNT) return unknown_option(compiler, job->name);
    if (option >= OPTION_FUSION) return take_switch(compiler, (option_name)option, job->value);
    if (option >= OPTION_TEXT_COUNT) return take_number(compiler, (option_name)option, job->value);
    BERTH_TRY(check_word((option_name)option, job->value));
    if (option == OPTION_LIMITS) BERTH_TRY(berth_limits_parse(job->value, &compiler->limits));
    if (option == OPTION_PATCHES) BERTH_TRY(berth_fit_check_patches(job->value));
    compiler->options[option] = job->value ? berth_arena_strdup(compiler->arena, job->value) : NULL;
    return BERTH_OK;
}

berth_status berth_compiler_set(berth_compiler *compiler, const char *option, const char *value) {
    text_job job = {.compiler = compiler, .name = option, .value = value};
    return berth_arena_try(compiler->arena, set_option, &job);
}

static berth_status add_pin(void *user) {
    const text_job *job = user;
    berth_compiler *compiler = job->compiler;
    berth_vec_push(compiler->arena, &compiler->pins,
                   berth_arena_strdup(compiler->arena, job->value));
    return BERTH_OK;
}

berth_status berth_compiler_add_pin(berth_compiler *compiler, const char *pin) {
    text_job job = {.compiler = compiler, .value = pin};
    return berth_arena_try(compiler->arena, add_pin, &job);
}

static berth_status add_override(void *user) {
    const text_job *job = user;
    berth_compiler *compiler = job->compiler;
    berth_vec_push(compiler->arena, &compiler->overrides,
                   berth_arena_strdup(compiler->arena, job->value));
    return BERTH_OK;
}

berth_status berth_compiler_add_override(berth_compiler *compiler, const char *override_text) {
    text_job job = {.compiler = compiler, .value = override_text};
    return berth_arena_try(compiler->arena, add_override, &job);
}

int berth_compiler_strategy_at(uint32_t index, const char **out_name, const char **out_text) {
    return berth_plan_strategy_at(index, out_name, out_text);
}

static berth_status add_specialisation(void *user) {
    const text_job *job = user;
    berth_compiler *compiler = job->compiler;
    berth_vec_push(compiler->arena, &compiler->specialisations,
                   berth_arena_strdup(compiler->arena, job->value));
    return BERTH_OK;
}

berth_status berth_compiler_add_specialisation(berth_compiler *compiler,
                                               const char *specialisation) {
    text_job job = {.compiler = compiler, .value = specialisation};
    return berth_arena_try(compiler->arena, add_specialisation, &job);
}

static berth_status add_state(void *user) {
    const text_job *job = user;
    berth_vec_push(job->compiler->arena, &job->compiler->states,
                   berth_arena_strdup(job->compiler->arena, job->value));
    return BERTH_OK;
}

berth_status berth_compiler_add_state(berth_compiler *compiler, const char *state) {
    text_job job = {.compiler = compiler, .value = state};
    return berth_arena_try(compiler->arena, add_state, &job);
}

void berth_compiler_on_progress(berth_compiler *compiler, berth_progress_callback callback,
                                void *user) {
    compiler->progress = callback;
    compiler->progress_user = user;
}

void berth_compiler_on_message(berth_compiler *compiler, berth_message_callback callback,
                               void *user) {
    compiler->message = callback;
    compiler->message_user = user;
}

void berth_compiler_on_level_message(berth_compiler *compiler, berth_level_callback callback,
                                     void *user) {
    compiler->level_message = callback;
    compiler->level_message_user = user;
}

void berth_compiler_on_interrupt(berth_compiler *compiler, berth_defer_callback defer,
                                 berth_pending_callback pending, void *user) {
    compiler->defer = defer;
    compiler->pending = pending;
    compiler->interrupt_user = user;
}

void berth_compiler_cancel(berth_compiler *compiler) {
    atomic_store(&compiler->cancelled, true);
}

// ---- compiling ----------------------------------------------------------------------------------

static void write_message(void *state, berth_log_level level, const char *message) {
    const berth_compiler *compiler = state;
    _Static_assert((int)BERTH_LOG_ERROR == (int)BERTH_MESSAGE_ERROR &&
                       (int)BERTH_LOG_WARNING == (int)BERTH_MESSAGE_WARNING &&
                       (int)BERTH_LOG_INFO == (int)BERTH_MESSAGE_NOTE,
                   "the same numbers");
    if (level == BERTH_LOG_DEBUG) return;
    if (compiler->message) compiler->message(compiler->message_user, message);
    if (compiler->level_message)
        compiler->level_message(compiler->level_message_user, (berth_message_level)level, message);
}

static bool is_late(const berth_compiler *compiler) {
    return compiler->deadline_ns && berth_clock_ns() >= compiler->deadline_ns;
}

static bool is_cancelled(void *state) {
    const berth_compiler *compiler = state;
    return atomic_load(&compiler->cancelled) || is_late(compiler) ||
           (compiler->pending && compiler->pending(compiler->interrupt_user));
}

static void defer_signals(void *state, bool on) {
    const berth_compiler *compiler = state;
    if (compiler->defer) compiler->defer(compiler->interrupt_user, on);
}

static berth_status end_lists(void *user) {
    berth_compiler *compiler = user;
    berth_vec_push(compiler->arena, &compiler->pins, NULL);
    compiler->pins.count--;
    berth_vec_push(compiler->arena, &compiler->overrides, NULL);
    compiler->overrides.count--;
    return BERTH_OK;
}

static uint64_t number_of(const berth_compiler *compiler, option_name option) {
    return compiler->numbers[option - OPTION_TEXT_COUNT];
}

static berth_compile_options compile_options(berth_compiler *compiler) {
    const char *const *options = compiler->options;
    return (berth_compile_options){
        .strategy = options[OPTION_STRATEGY],
        .objective = options[OPTION_OBJECTIVE],
        .patches = options[OPTION_PATCHES],
        .parallel = options[OPTION_PARALLEL],
        .node_budget = number_of(compiler, OPTION_NODES),
        .time_budget_ns = (int64_t)number_of(compiler, OPTION_TIME_BUDGET),
        .cache_folder = options[OPTION_CACHE_FOLDER],
        .cache_limit_bytes = number_of(compiler, OPTION_CACHE_LIMIT),
        .c_compiler = options[OPTION_C_COMPILER],
        .search_path = options[OPTION_SEARCH_PATH],
        .temporary_folder = options[OPTION_TEMPORARY_FOLDER],
        .compiler_time_limit_ns = (int64_t)number_of(compiler, OPTION_COMPILER_TIME_LIMIT),
        .jobs = (uint32_t)number_of(compiler, OPTION_JOBS),
        .no_fusion = number_of(compiler, OPTION_FUSION) != 0,
        .no_layouts = number_of(compiler, OPTION_LAYOUTS) != 0,
        .no_winograd = number_of(compiler, OPTION_WINOGRAD) != 0,
        .keep_source = number_of(compiler, OPTION_KEEP_SOURCE) != 0,
        .any_size = number_of(compiler, OPTION_SEVERAL_SIZES) != 0,
        .small_code = number_of(compiler, OPTION_SMALL_CODE) != 0,
        .explain_kernels = number_of(compiler, OPTION_EXPLAIN_KERNELS) != 0,
        .log = {write_message, compiler},
        .progress = compiler->progress,
        .progress_user = compiler->progress_user,
        .interrupt = {.defer = defer_signals, .pending = is_cancelled, .state = compiler}};
}

static berth_model_options model_options(berth_compiler *compiler) {
    const char *const *options = compiler->options;
    const char *executor = options[OPTION_EXECUTOR];
    if (executor && strcmp(executor, "auto") == 0) executor = NULL;
    const berth_log log = {write_message, compiler};
    return (berth_model_options){
        .target = options[OPTION_TARGET],
        .target_options = {.host = options[OPTION_HOST],
                           .executor = executor,
                           .runtime = options[OPTION_RUNTIME],
                           .budgets = options[OPTION_MEMORY],
                           .tag_folder = options[OPTION_TAG_FOLDER],
                           .pins = compiler->pins.count ? compiler->pins.data : NULL,
                           .overrides = compiler->overrides.count ? compiler->overrides.data : NULL,
                           .log = log},
        .costs = options[OPTION_COSTS],
        .tuned = options[OPTION_TUNED],
        .required_devices = options[OPTION_REQUIRED_DEVICES],
        .states = compiler->states.data,
        .state_count = compiler->states.count,
        .only_these_inputs = berth_api__knows_inputs(&compiler->given),
        .import = {.dims = compiler->given.dims.data,
                   .dim_count = compiler->given.dims.count,
                   .bounds = compiler->given.bounds.data,
                   .bounds_count = compiler->given.bounds.count,
                   .relations = compiler->given.relations.data,
                   .relation_count = compiler->given.relations.count,
                   .inputs = compiler->given.inputs.data,
                   .input_count = compiler->given.inputs.count,
                   .default_batch = (int64_t)number_of(compiler, OPTION_DEFAULT_BATCH),
                   .limits = &compiler->limits,
                   .log = log},
        .compile = compile_options(compiler)};
}

// A compiled model, and the copy of what it was read from; NULL = a file.
typedef struct source {
    berth_model *model;
    berth_arena *arena;  // of this struct and the data
    void *data;
    size_t size_bytes;
} source;

static void destroy_source(void *owner) {
    source *held = owner;
    berth_model_destroy(held->model);
    berth_arena_destroy(held->arena);
}

typedef struct copy_job {
    berth_arena *arena;
    const void *data;
    size_t size_bytes;
    source *source;
} copy_job;

static berth_status make_source(void *user) {
    enum { alignment_bytes = 128 };
    copy_job *job = user;
    job->source = berth_arena_new(job->arena, source);
    job->source->arena = job->arena;
    if (!job->data) return BERTH_OK;
    job->source->size_bytes = job->size_bytes;
    job->source->data = berth_arena_alloc_unset(job->arena, job->size_bytes + 1, alignment_bytes);
    memcpy(job->source->data, job->data, job->size_bytes);
    return BERTH_OK;
}

static berth_status take_key(berth_compiler *compiler, berth_model_options *options) {
    const char *path = compiler->options[OPTION_REQUIRED_KEY];
    if (!path) return BERTH_OK;
    options->required_key = &compiler->key;
    return berth_public_key_read(path, &compiler->key);
}

berth_status berth_api__compiler_options(berth_compiler *compiler,
                                         berth_model_options *out_options) {
    BERTH_TRY(berth_arena_try(compiler->arena, end_lists, compiler));
    if (atomic_exchange(&compiler->cancelled, false))
        return berth_status_make(BERTH_CANCELLED, "the compilation was cancelled");
    *out_options = model_options(compiler);
    return take_key(compiler, out_options);
}

berth_status berth_api__plan_options(berth_compiler *compiler, berth_model_options *out_options) {
    BERTH_TRY(berth_api__compiler_options(compiler, out_options));
    out_options->compile.plan_only = true;
    out_options->import.bounds_at_most = true;
    return BERTH_OK;
}

void berth_api__compiler_listeners(berth_compiler *compiler, berth_log *out_log,
                                   berth_interrupt *out_interrupt) {
    const berth_compile_options options = compile_options(compiler);
    *out_log = options.log;
    *out_interrupt = options.interrupt;
}

static berth_status compile_source(berth_compiler *compiler, source *from, const char *path,
                                   const char *folder) {
    berth_model_options options = model_options(compiler);
    compiler->needs_dynamic = false;
    options.needs_vm = &compiler->needs_dynamic;
    options.makes_vm_program = true;
    options.specialisations = compiler->specialisations.data;
    options.specialisation_count = compiler->specialisations.count;
    if (compiler->given.bounds.count && !options.target_options.executor)
        options.target_options.executor = berth_executor_kind_name(BERTH_EXECUTOR_VM);
    BERTH_TRY(take_key(compiler, &options));
    if (atomic_load(&compiler->cancelled))
        return berth_status_make(BERTH_CANCELLED, "the compilation was cancelled");
    if (from->data)
        return berth_model_load_memory(from->data, from->size_bytes, "the model in memory", folder,
                                       &options, &from->model);
    return berth_model_load(path, &options, &from->model);
}

// Within the time of the limits.
static berth_status compile_in_time(berth_compiler *compiler, source *from, const char *path,
                                    const char *folder) {
    const int64_t time_ns = compiler->limits.time_ns;
    compiler->deadline_ns = time_ns ? berth_clock_deadline_ns(berth_clock_ns(), time_ns) : 0;
    berth_status status = compile_source(compiler, from, path, folder);
    if (berth_status_code(status) == BERTH_CANCELLED && is_late(compiler)) {
        berth_status_free(status);
        status = berth_status_make(BERTH_DEADLINE_EXCEEDED,
                                   "compiling takes longer than the limit time=%gs; raise it for a "
                                   "model that you trust",
                                   (double)time_ns * 1e-9);
    }
    compiler->deadline_ns = 0;
    return status;
}

// `path`, or `data`.
static berth_status compile(berth_compiler *compiler, const char *path, const void *data,
                            size_t size_bytes, const char *folder, berth_program **out_program) {
    *out_program = NULL;
    copy_job job = {.data = data, .size_bytes = size_bytes};
    BERTH_TRY(berth_arena_try(compiler->arena, end_lists, compiler));
    BERTH_TRY(berth_arena_make(make_source, &job, &job.arena));
    berth_status status = compile_in_time(compiler, job.source, path, folder);
    atomic_store(&compiler->cancelled, false);
    if (!status)
        return berth_api__program_adopt(berth_model_program(job.source->model), destroy_source,
                                        job.source, out_program);
    destroy_source(job.source);
    return status;
}

berth_status berth_compiler_compile_file(berth_compiler *compiler, const char *path,
                                         berth_program **out_program) {
    return compile(compiler, path, NULL, 0, NULL, out_program);
}

berth_status berth_compiler_compile_memory(berth_compiler *compiler, const void *data,
                                           size_t size_bytes, const char *folder,
                                           berth_program **out_program) {
    static const char empty[1] = "";
    return compile(compiler, NULL, data ? data : empty, size_bytes, folder, out_program);
}

int berth_compiler_needs_dynamic(const berth_compiler *compiler) {
    return compiler->needs_dynamic;
}

berth_status berth_compiler_save_sources(berth_compiler *compiler, const berth_program *program,
                                         const char *name, const char *folder) {
    const source *from = berth_api__program_owner(program, destroy_source);
    const berth_multi_target *target = from ? berth_model_target(from->model) : NULL;
    if (!target || target->executor != BERTH_EXECUTOR_AOT)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "C sources are written of programs that this process has compiled "
                                 "for the executor \"aot\", and this one is %s",
                                 target ? "for another executor" : "not");
    const berth_compile_options options = compile_options(compiler);
    const berth_toolchain_options toolchain =
        berth_codegen_toolchain(&options, target->devices[0].target);
    berth_bare_options bare = {.name = name, .memory = berth_model_memory(from->model)};
    if (target->runtime == BERTH_RUNTIME_HOSTED) bare.toolchain = &toolchain;
    return berth_bare_write(berth_model_program(from->model), &bare, folder);
}
