#include "toolkit/vm_session.h"

#include <string.h>

#include "artifact/file.h"
#include "base/clock.h"
#include "base/hash.h"
#include "compiler/package/program_copy.h"
#include "compiler/passes/packed_store.h"
#include "compiler/target_words.h"
#include "compiler/vm/vm.h"
#include "executor/open_devices.h"
#include "executor/session.h"
#include "executor/vm_heap.h"
#include "ir/eval.h"
#include "toolkit/module_file.h"
#include "toolkit/verify.h"
#include "toolkit/vm_build.h"
#include "toolkit/vm_kept.h"
#include "toolkit/vm_parts.h"
#include "toolkit/vm_prepare.h"
#include "toolkit/vm_symbols.h"

#define MOST_KEPT 256u
#define MOST_KEPT_BYTES ((uint64_t)2 << 30)

struct berth_vm_session {
    // Of a program file: the model is it, and all but the runner and the report is not needed.
    berth_model *model;
    berth_vm_runner *runner;
    berth_arena *arena;
    berth_module *module;
    berth_multi_target *target;
    berth_compile_options compile;
    berth_vm_code code;
    berth_generic_kernels *generic_kernels;
    berth_packed_store *packed_store;
    berth_vm_parts *parts;  // NULL: segments stay whole
    berth_vm_kept kept;
    uint32_t most_kept;
    uint64_t most_kept_bytes;
    berth_open_devices devices;
    berth_vm_heap heap;
    berth_vm_report report;
    const berth_vm_piece *on_host;  // the first that ran there and is no arithmetic; or NULL
    bool several_sizes;             // kernels serve several sizes from a segment's first shape on
    bool has_relations;             // of dimensions of inputs: every run checks them
    berth_vm_value *const *run_inputs;  // of the run in progress
    berth_vm_prepare *prepare;
    bool makes_general;
    berth_module *imported;     // NULL where no program for many shapes is wanted
    berth_vm_general *general;  // NULL the same
    berth_vm_watch watch;
    atomic_uint cancelled;
};

// ---- compiled segments --------------------------------------------------------------------------

static const berth_vm_segment *segment_at(const berth_vm_session *s, uint32_t index) {
    return s->parts ? berth_vm_parts_segment(s->parts, index) : &s->code.segments[index];
}

static const char *name_at(const berth_vm_session *s, uint32_t index) {
    return s->parts ? berth_vm_parts_name(s->parts, index) : s->code.program->segments[index].name;
}

static const char *op_at(const berth_vm_session *s, uint32_t index) {
    const berth_vm_program *program = s->code.program;
    return index < program->segment_count ? program->segments[index].op : "part of a segment";
}

typedef struct segment_job {
    berth_vm_session *session;
    uint32_t segment;
    const berth_tensor *inputs;
    berth_vm_compiled *made;
    berth_arena *arena;  // of the compiler
    berth_module *module;
    const berth_program *program;  // in `arena`
} segment_job;

static berth_status make_module(void *user) {
    segment_job *job = user;
    const berth_vm_session *s = job->session;
    job->module = berth_vm_segment_module(s->module, segment_at(s, job->segment),
                                          name_at(s, job->segment), job->inputs, job->arena);
    return BERTH_OK;
}

// Beside what the compiler needed the program is small: hundreds of them are kept.
static berth_status keep_program(void *user) {
    segment_job *job = user;
    berth_vm_compiled *made = job->made;
    made->program = berth_program_copy(job->program, job->arena, made->arena);
    made->room = berth_arena_new_array(
        made->arena, berth_tensor, made->program->input_count + made->program->output_count + 1);
    return BERTH_OK;
}

static uint64_t size_of(const berth_vm_compiled *c) {
    uint64_t bytes = berth_arena_used_bytes(c->arena);
    for (uint32_t i = 0; i < c->program->pool_count; ++i)
        if (c->program->pools[i].usage != BERTH_POOL_WORKSPACE)  // which all have together
            bytes += c->program->pools[i].size_bytes;
    return bytes;
}

// Where signals wait for what is compiled, nothing is compiled beside the runs.
static void prepare_for_others(const segment_job *job) {
    const berth_vm_session *s = job->session;
    const berth_vm_prepare_what what = {.index = job->segment,
                                        .segment = segment_at(s, job->segment),
                                        .name = name_at(s, job->segment),
                                        .inputs = job->inputs,
                                        .run_inputs = s->run_inputs,
                                        .options = &s->compile,
                                        .at_once = s->compile.interrupt.pending != NULL};
    berth_vm_prepare_for(s->prepare, &what);
}

static berth_status compile_in(segment_job *job) {
    berth_vm_session *s = job->session;
    berth_compile_result result;
    BERTH_TRY(berth_arena_try(job->arena, make_module, job));
    s->compile.generic_scope = job->segment;
    bool was_here = berth_vm_kept_has(&s->kept, job->segment);
    s->compile.any_size = s->several_sizes || was_here || segment_at(s, job->segment)->changes;
    s->compile.other_sizes = was_here;
    if (s->compile.any_size) prepare_for_others(job);
    BERTH_TRY(berth_compile(job->module, &s->compile, &result));
    job->program = result.program;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job->made->arena));
    BERTH_TRY(berth_arena_try(job->made->arena, keep_program, job));
    BERTH_TRY(berth_open_devices_session(&s->devices, job->made->program, NULL, job->arena,
                                         &job->made->session));
    s->report.kernel_count += job->program->kernel_count;
    return BERTH_OK;
}

static berth_status compile_segment(segment_job *job) {
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job->arena));
    berth_status status = compile_in(job);
    berth_arena_destroy(job->arena);
    return status;
}

// What a compiled segment is for: element types and shapes of its inputs, and values where they
// decide shapes.
static berth_status key_of(const berth_vm_session *s, uint32_t segment, const berth_tensor *inputs,
                           berth_hash128 *out_key) {
    const berth_vm_segment *held = segment_at(s, segment);
    size_t capacity = sizeof(uint32_t);
    for (uint32_t i = 0; i < held->input_count; ++i)
        capacity += (2 + BERTH_MAX_RANK) * sizeof(int64_t) +
                    (held->known[i] ? berth_tensor_size_bytes(&inputs[i]) : 0);
    char *bytes = berth_calloc(berth_allocator_system(), capacity, 1);
    if (!bytes) return berth_status_oom();
    size_t at = 0;
    memcpy(bytes, &segment, sizeof(segment));
    at += sizeof(segment);
    for (uint32_t i = 0; i < held->input_count; ++i) {
        int64_t head[2 + BERTH_MAX_RANK] = {inputs[i].dtype, inputs[i].rank};
        for (int d = 0; d < inputs[i].rank; ++d) head[2 + d] = inputs[i].dims[d];
        memcpy(bytes + at, head, sizeof(head));
        at += sizeof(head);
        size_t size = held->known[i] ? berth_tensor_size_bytes(&inputs[i]) : 0;
        if (size) memcpy(bytes + at, inputs[i].data, size);
        at += size;
    }
    *out_key = berth_hash128_of(bytes, at);
    berth_free(berth_allocator_system(), bytes, capacity);
    return BERTH_OK;
}

static berth_status make_compiled(berth_vm_session *s, uint32_t segment, const berth_tensor *inputs,
                                  berth_hash128 key, berth_vm_compiled **out) {
    segment_job job = {.session = s, .segment = segment, .inputs = inputs};
    job.made = berth_calloc(berth_allocator_system(), 1, sizeof(*job.made));
    if (!job.made) return berth_status_oom();
    job.made->segment = segment;
    job.made->key = key;
    int64_t start_ns = berth_clock_ns();
    berth_status status = compile_segment(&job);
    s->report.compile_ns += berth_clock_ns() - start_ns;
    if (status) {
        berth_vm_compiled_free(job.made);
        return status;
    }
    job.made->size_bytes = size_of(job.made);
    uint64_t room =
        s->most_kept_bytes > job.made->size_bytes ? s->most_kept_bytes - job.made->size_bytes : 0;
    while (s->kept.count > 0 && (s->kept.count >= s->most_kept || s->kept.size_bytes > room)) {
        berth_vm_kept_drop_oldest(&s->kept);
        s->report.dropped_count++;
    }
    berth_vm_kept_add(&s->kept, job.made);
    s->report.compiled_count++;
    *out = job.made;
    return BERTH_OK;
}

// ---- what the machine asks for ------------------------------------------------------------------

// A segment or a part of one: as it was compiled for these shapes, in parts, or compiled now.
static berth_status run_tensors(void *user, uint32_t index, const berth_tensor *inputs,
                                berth_vm_value **outputs) {
    berth_vm_session *s = user;
    berth_hash128 key;
    BERTH_TRY(key_of(s, index, inputs, &key));
    berth_vm_compiled *c = berth_vm_kept_find(&s->kept, index, key);
    if (!c && s->parts) {
        int64_t start_ns = berth_clock_ns();
        berth_vm_prepare_lock(s->prepare);
        berth_status status = berth_vm_parts_look(s->parts, index, inputs);
        berth_vm_prepare_unlock(s->prepare);
        BERTH_TRY(status);
        s->report.compile_ns += berth_clock_ns() - start_ns;
        if (berth_vm_parts_is_divided(s->parts, index))
            return berth_vm_parts_run(s->parts, index, inputs, run_tensors, s, outputs);
    }
    if (!c) BERTH_TRY(make_compiled(s, index, inputs, key, &c));
    const berth_vm_piece piece = {.name = name_at(s, index),
                                  .op = op_at(s, index),
                                  .input_count = segment_at(s, index)->input_count};
    const berth_vm_piece_call call = {.piece = &piece,
                                      .watch = &s->watch,
                                      .inputs = inputs,
                                      .allocator = berth_pool_allocator(s->heap.pool),
                                      .room = c->room};
    return berth_vm_piece_run(c->session, c->program, &call, outputs);
}

static berth_status run_segment(void *user, uint32_t index, berth_vm_value *const *inputs,
                                berth_vm_value **outputs) {
    berth_vm_session *s = user;
    uint32_t count = s->code.segments[index].input_count;
    const berth_bump_mark mark = berth_bump_at(&s->heap.lists);
    berth_tensor *tensors = berth_bump_take(&s->heap.lists, count * sizeof(*tensors));
    if (!tensors) return berth_status_oom();
    berth_status status =
        berth_vm_piece_tensors(&s->code.program->segments[index], inputs, tensors);
    if (!status) status = run_tensors(s, index, tensors, outputs);
    berth_bump_back(&s->heap.lists, mark);
    return status;
}

typedef struct host_job {
    berth_vm_session *session;
    uint32_t operation;
    berth_vm_value *const *inputs;
    berth_vm_value **outputs;
    berth_arena *arena;
} host_job;

static berth_status compute_on_host(void *user) {
    host_job *job = user;
    const berth_vm_session *s = job->session;
    const berth_vm_piece *piece = &s->code.program->host_operations[job->operation];
    const berth_vm_host_operation *held = &s->code.host_operations[job->operation];
    berth_tensor *inputs = berth_arena_new_array(job->arena, berth_tensor, piece->input_count + 1);
    berth_tensor *outputs =
        berth_arena_new_array(job->arena, berth_tensor, piece->output_count + 1);
    BERTH_TRY(berth_vm_piece_tensors(piece, job->inputs, inputs));
    BERTH_TRY(berth_eval_op(s->module, held->function, held->op, inputs, outputs, job->arena));
    return berth_vm_piece_give(berth_pool_allocator(s->heap.pool), outputs, piece->output_count,
                               job->outputs);
}

static berth_status run_host(void *user, uint32_t operation, berth_vm_value *const *inputs,
                             berth_vm_value **outputs) {
    berth_vm_session *s = user;
    const berth_vm_piece *piece = &s->code.program->host_operations[operation];
    if (!piece->is_arithmetic) {
        s->report.host_data_operations++;
        if (!s->on_host) s->on_host = piece;
    }
    host_job job = {.session = user, .operation = operation, .inputs = inputs, .outputs = outputs};
    const int64_t start_ns = berth_clock_ns();
    BERTH_TRY(berth_arena_scratch(compute_on_host, &job, &job.arena));
    const berth_piece_facts facts = {.name = piece->name,
                                     .op = piece->op,
                                     .start_ns = start_ns,
                                     .duration_ns = berth_clock_ns() - start_ns};
    if (s->watch.listener) s->watch.listener(s->watch.user, &facts);
    return BERTH_OK;
}

// ---- the session --------------------------------------------------------------------------------

typedef struct open_job {
    berth_vm_session *session;
    const char *path;  // or, when it is NULL:
    const void *data;
    size_t size_bytes;
    const char *folder;
    const berth_model_options *options;
} open_job;

// Whether all values lie in the host's memory, where parts of a segment hand theirs over.
static bool is_one_memory(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].own_memory != target->devices[target->host].own_memory) return false;
    return true;
}

static bool must_leave_host(const berth_multi_target *target, const char *required) {
    return required && !berth_require_has(required, target->devices[target->host].name);
}

static berth_status refuse_parallel(const berth_compile_options *options) {
    if (!options->parallel || strcmp(options->parallel, "none") == 0) return BERTH_OK;
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "the executor vm, which this model needs or which was asked for, plans "
        "parts of a model one by one, and not for several devices at once "
        "(parallel %s): leave that out, or give all dimensions of the inputs",
        options->parallel);
}

// Byte code changes the module that it is made from.
static berth_status keep_imported(void *user) {
    berth_vm_session *s = user;
    s->imported = berth_module_copy(s->arena, s->module);
    return BERTH_OK;
}

static void say_general(const berth_vm_session *s, const berth_vm_general_report *before) {
    berth_vm_general_report now;
    berth_vm_general_get_report(s->general, &now);
    if (now.program_count > before->program_count)
        berth_log_message(s->compile.log, BERTH_LOG_INFO,
                          "a program for %u shapes is there%s: they need no compiler",
                          now.shape_count, now.was_kept ? ", kept by an earlier session" : "");
    if (now.refusal && !before->refusal)
        berth_log_message(s->compile.log, BERTH_LOG_INFO,
                          "each shape is compiled for itself, and not many at once: %s",
                          now.refusal);
}

static berth_status open_general(berth_vm_session *s) {
    const berth_vm_general_what what = {.module = s->imported,
                                        .code = s->code.program,
                                        .compile = s->compile,
                                        .thread_count = s->devices.thread_count,
                                        .makes = s->makes_general,
                                        .heap = &s->heap,
                                        .cancelled = &s->cancelled};
    BERTH_TRY(berth_vm_general_open(&what, &s->general));
    berth_vm_general_set_limit(s->general, s->most_kept_bytes);
    const berth_vm_general_report nothing = {0};
    say_general(s, &nothing);
    return BERTH_OK;
}

static berth_status load(void *user) {
    const open_job *job = user;
    berth_vm_session *s = job->session;
    BERTH_TRY(
        berth_model__refuse_unsigned(job->options, job->path ? job->path : "the model in memory"));
    berth_target_options target_options = job->options->target_options;
    berth_machine_facts facts;
    const char *text = job->options->target ? job->options->target : "cpu";
    BERTH_TRY(berth_machine_facts_for(s->arena, text, &facts));
    target_options.machine = &facts;
    BERTH_TRY(berth_target_parse(s->arena, text, &target_options, &s->target));
    berth_target_words_check(s->target, job->options->compile.log);
    BERTH_TRY(berth_vm_refuse_budgets(s->target));
    BERTH_TRY(refuse_parallel(&job->options->compile));
    s->target->executor = BERTH_EXECUTOR_GRAPH;  // of the segments
    berth_import_options import = job->options->import;
    import.inputs_stay_open = true;
    import.default_batch = 0;
    if (job->path)
        BERTH_TRY(berth_module_load(s->arena, job->path, &import, s->target, &s->module));
    else
        BERTH_TRY(berth_onnx_import_memory(s->arena, job->data, job->size_bytes,
                                           "the model in memory", job->folder, &import,
                                           &s->module));
    s->compile = job->options->compile;
    s->several_sizes = s->compile.any_size;
    s->devices.cache_folder = s->compile.cache_folder;
    s->compile.target = s->target;
    BERTH_TRY(berth_plan_check_pins(s->module, s->target, job->options->compile.log, s->arena));
    s->compile.target_text = berth_target_print_json(s->arena, s->target, 0);
    s->compile.known_inputs = NULL;
    s->compile.known_input_count = 0;
    s->compile.progress = NULL;
    s->compile.generic_kernels = s->generic_kernels;
    s->compile.packed_store = s->packed_store;
    s->has_relations = berth_vm_has_relations(s->module);
    s->makes_general = job->options->general_program == BERTH_GENERAL_MADE;
    if (job->options->general_program && is_one_memory(s->target))
        BERTH_TRY(berth_arena_try(s->arena, keep_imported, s));
    BERTH_TRY(berth_vm_emit(s->module, job->options->compile.log,
                            must_leave_host(s->target, job->options->required_devices), &s->code));
    BERTH_TRY(berth_vm_prepare_open(s->module, &s->prepare));
    if (is_one_memory(s->target)) s->parts = berth_vm_parts_create(s->arena, s->module, &s->code);
    if (s->imported) BERTH_TRY(open_general(s));
    return berth_packed_store_trust(s->packed_store, s->module);
}

static berth_status open_session_of(open_job *job, uint32_t thread_count,
                                    berth_vm_session **out_session) {
    berth_allocator allocator = berth_allocator_system();
    *out_session = NULL;
    berth_vm_session *session = berth_calloc(allocator, 1, sizeof(*session));
    if (!session) return berth_status_oom();
    atomic_init(&session->cancelled, 0);
    berth_vm_session_set_limits(session, 0, 0);
    berth_status status = berth_arena_create(allocator, &session->arena);
    session->devices.arena = session->arena;
    session->devices.thread_count = thread_count;
    job->session = session;
    if (!status) status = berth_vm_heap_open(&session->heap);
    if (!status) status = berth_generic_kernels_create(allocator, &session->generic_kernels);
    if (!status) status = berth_packed_store_create(allocator, &session->packed_store);
    if (!status) status = load(job);
    if (status) {
        berth_vm_session_close(session);
        return status;
    }
    session->report.segment_count = session->code.program->segment_count;
    *out_session = session;
    return BERTH_OK;
}

// Of a program file, or of a model with states, which need a program.
static berth_status open_program(berth_vm_session *session, const char *path,
                                 const berth_model_options *options, uint32_t thread_count) {
    const berth_vm_runner_options runner = {.thread_count = thread_count,
                                            .cache_folder = options->compile.cache_folder};
    berth_model_options made = *options;
    made.makes_vm_program = true;
    if (!berth_program_is_file(path)) made.target_options.executor = "vm";
    BERTH_TRY(berth_model_load(path, &made, &session->model));
    const berth_program *program = berth_model_program(session->model);
    if (!program->vm)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a program of executor \"%s\", without byte code: give "
                                 "the model, or build it for the executor vm",
                                 path, program->executor);
    session->report.segment_count = program->vm->code->segment_count;
    for (uint32_t i = 0; i < program->vm->variant_count; ++i)
        if (program->vm->variants[i].program)
            session->report.kernel_count += program->vm->variants[i].program->kernel_count;
    return berth_vm_runner_open(program, &runner, &session->runner);
}

berth_status berth_vm_session_open(const char *path, const berth_model_options *options,
                                   uint32_t thread_count, berth_vm_session **out_session) {
    if (berth_program_is_file(path) || options->state_count) {
        *out_session = NULL;
        berth_vm_session *session = berth_calloc(berth_allocator_system(), 1, sizeof(*session));
        if (!session) return berth_status_oom();
        berth_status status = open_program(session, path, options, thread_count);
        if (status)
            berth_vm_session_close(session);
        else
            *out_session = session;
        return status;
    }
    open_job job = {.path = path, .options = options};
    return open_session_of(&job, thread_count, out_session);
}

berth_status berth_vm_session_open_memory(const void *data, size_t size_bytes, const char *folder,
                                          const berth_model_options *options, uint32_t thread_count,
                                          berth_vm_session **out_session) {
    open_job job = {.data = data, .size_bytes = size_bytes, .folder = folder, .options = options};
    return open_session_of(&job, thread_count, out_session);
}

void berth_vm_session_close(berth_vm_session *session) {
    if (!session) return;
    berth_vm_prepare_close(session->prepare);  // it uses all else
    berth_vm_general_close(session->general);
    berth_vm_runner_close(session->runner);
    berth_model_destroy(session->model);
    berth_vm_kept_clear(&session->kept);
    berth_vm_heap_close(&session->heap);
    berth_open_devices_close(&session->devices);
    berth_packed_store_destroy(session->packed_store);
    berth_generic_kernels_destroy(session->generic_kernels);
    berth_arena_destroy(session->arena);
    berth_free(berth_allocator_system(), session, sizeof(*session));
}

void berth_vm_session_set_limits(berth_vm_session *session, uint32_t segments, uint64_t bytes) {
    session->most_kept = segments ? segments : MOST_KEPT;
    session->most_kept_bytes = bytes ? bytes : MOST_KEPT_BYTES;
    if (session->general) berth_vm_general_set_limit(session->general, session->most_kept_bytes);
}

void berth_vm_session_follow(berth_vm_session *session, berth_log log, berth_interrupt interrupt) {
    session->compile.log = log;
    session->compile.interrupt = interrupt;
}

const berth_vm_program *berth_vm_session_program(const berth_vm_session *session) {
    return session->model ? berth_model_program(session->model)->vm->code : session->code.program;
}

const berth_vm_body *berth_vm_session_body(const berth_vm_session *session) {
    return session->model ? berth_model_program(session->model)->vm : NULL;
}

static berth_status run_program(berth_vm_session *session, berth_vm_runner *runner,
                                berth_vm_value *const *inputs, berth_vm_value **outputs) {
    berth_status status = berth_vm_runner_run(runner, inputs, outputs);
    const berth_vm_runner_report *report = berth_vm_runner_get_report(runner);
    session->report.instructions = report->instructions;
    session->report.segment_runs = report->segments;
    session->report.host_operations = report->host_operations;
    if (!status) session->report.run_count++;
    return status;
}

// Parts of segments are compiled in a millisecond or so; and where signals wait for what is compiled, nothing is
// compiled beside the runs.
static bool is_cheap(const berth_vm_session *s) {
    bool divided = s->compile.interrupt.pending != NULL;
    for (uint32_t i = 0; s->parts && i < s->code.program->segment_count; ++i)
        divided |= berth_vm_parts_is_divided(s->parts, i);
    return divided;
}

// By the program for many shapes. False: the shapes are to be compiled for themselves.
static berth_status run_general(berth_vm_session *s, berth_vm_value *const *inputs,
                                berth_vm_value **outputs, bool *out_ran) {
    berth_vm_runner *runner = NULL;
    berth_vm_general_report before;
    berth_vm_general_get_report(s->general, &before);
    *out_ran = false;
    BERTH_TRY(berth_vm_general_find(s->general, inputs, is_cheap(s), &runner));
    berth_status status = runner ? run_program(s, runner, inputs, outputs) : BERTH_OK;
    *out_ran = runner != NULL;
    // What data decides may lead where no shape of the bounds does.
    if (berth_status_code(status) == BERTH_UNSUPPORTED) {
        berth_vm_general_give_up(s->general, berth_status_message(status));
        berth_status_free(status);
        status = BERTH_OK;
        *out_ran = false;
    }
    say_general(s, &before);
    return status;
}

berth_status berth_vm_session_run(berth_vm_session *session, berth_vm_value *const *inputs,
                                  berth_vm_value **outputs) {
    if (session->runner) return run_program(session, session->runner, inputs, outputs);
    const berth_vm_program *program = session->code.program;
    for (uint32_t i = 0; i < program->output_count; ++i) outputs[i] = NULL;
    BERTH_TRY(berth_vm_check_inputs(program, inputs));
    if (session->has_relations) BERTH_TRY(berth_vm_check_relations(session->module, inputs));
    if (session->general) {
        bool ran = false;
        BERTH_TRY(run_general(session, inputs, outputs, &ran));
        if (ran) return BERTH_OK;
    }
    berth_vm_traffic traffic = {0};
    berth_vm_machine machine = {.allocator = berth_pool_allocator(session->heap.pool),
                                .lists = &session->heap.lists,
                                .traffic = &traffic,
                                .user = session,
                                .run_segment = run_segment,
                                .run_host = run_host,
                                .cancelled = &session->cancelled};
    session->report.host_data_operations = 0;
    session->run_inputs = inputs;
    berth_status status = berth_vm_run(&machine, program, inputs, outputs);
    session->report.instructions = machine.instructions;
    session->report.segment_runs = machine.segments;
    session->report.host_operations = machine.host_operations;
    if (!status) session->report.run_count++;
    atomic_store(&session->cancelled, 0);
    return berth_vm_heap_end_run(&session->heap, status);
}

berth_pool *berth_vm_session_pool(const berth_vm_session *session) {
    return session->runner ? berth_vm_runner_pool(session->runner) : session->heap.pool;
}

void berth_vm_session_wait(berth_vm_session *session) {
    if (session->prepare) berth_vm_prepare_wait(session->prepare);
    if (session->general) berth_vm_general_wait(session->general);
}

berth_vm_runner *berth_vm_session_runner(berth_vm_session *session) {
    return session->runner;
}

void berth_vm_session_watch(berth_vm_session *session, berth_vm_watch watch) {
    session->watch = watch;
    session->devices.profile = watch.listener != NULL;
    if (session->runner) berth_vm_runner_watch(session->runner, watch);
    if (session->general) berth_vm_general_watch(session->general, watch);
}

void berth_vm_session_cancel(berth_vm_session *session) {
    if (session->runner) berth_vm_runner_cancel(session->runner);
    atomic_store(&session->cancelled, 1);
}

berth_status berth_vm_session_require(const berth_vm_session *session, const char *devices) {
    if (session->runner)
        return berth_program_require(berth_model_program(session->model), devices, true);
    const berth_target_device *host = &session->target->devices[session->target->host];
    if (session->on_host && !berth_require_has(devices, host->name))
        return berth_status_make(BERTH_UNAVAILABLE,
                                 "%s at %s runs on the host (%s), not on %s as required: the "
                                 "reference interpreter computes what has strings or a shape that "
                                 "is only known in the run",
                                 session->on_host->op, session->on_host->name, host->name, devices);
    const berth_program *general =
        session->general ? berth_vm_general_program(session->general) : NULL;
    if (general) BERTH_TRY(berth_program_require(general, devices, true));
    for (const berth_vm_compiled *c = session->kept.newest; c; c = c->older)
        BERTH_TRY(berth_program_require(c->program, devices, true));
    return BERTH_OK;
}

void berth_vm_session_get_report(const berth_vm_session *session, berth_vm_report *out_report) {
    *out_report = session->report;
    if (session->runner) return;
    out_report->workspace_bytes = berth_workspaces_bytes(&session->devices.workspaces);
    berth_generic_kernels_get_report(session->generic_kernels, &out_report->kernels);
    if (session->general) berth_vm_general_get_report(session->general, &out_report->general);
    out_report->held_bytes = out_report->general.held_bytes +
                             berth_arena_used_bytes(session->arena) + session->kept.size_bytes +
                             out_report->workspace_bytes + out_report->kernels.held_bytes;
}
