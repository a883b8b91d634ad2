#include "executor/vm_runner.h"

#include <string.h>

#include "artifact/program.h"
#include "base/str.h"
#include "executor/open_devices.h"

// A variant that ran, or none of whose program was needed yet.
typedef struct opened {
    berth_session *session;
    berth_tensor *room;  // of a run: inputs and outputs of its program
} opened;

struct berth_vm_runner {
    berth_arena *arena;
    const berth_program *program;
    berth_open_devices devices;
    opened *variants;  // per variant
    berth_vm_runner_report report;
    atomic_uint cancelled;
};

// ---- finding a variant --------------------------------------------------------------------------

static bool input_fits(const berth_tensor *wanted, const berth_tensor *given) {
    if (wanted->dtype != given->dtype) return false;
    if (wanted->dtype == BERTH_DTYPE_NONE) return true;
    if (!berth_tensor_same_shape(wanted, given)) return false;
    size_t size_bytes = wanted->data ? berth_tensor_size_bytes(wanted) : 0;
    return size_bytes == 0 || memcmp(wanted->data, given->data, size_bytes) == 0;
}

static bool variant_fits(const berth_vm_variant *variant, uint32_t input_count,
                         const berth_tensor *inputs) {
    for (uint32_t i = 0; i < input_count; ++i)
        if (!input_fits(&variant->inputs[i], &inputs[i])) return false;
    return true;
}

// "f32[1,80] and i64[2] of one value": where the value decides shapes.
static void print_types(berth_strbuf *out, const berth_tensor *tensors, uint32_t count,
                        bool with_values) {
    char shape[192];
    for (uint32_t i = 0; i < count; ++i) {
        if (tensors[i].dtype == BERTH_DTYPE_NONE) continue;
        berth_tensor_format_shape(&tensors[i], shape);
        berth_strbuf_addf(out, "%s%s%s", i ? " and " : "", shape,
                          with_values && tensors[i].data ? " of one value" : "");
    }
}

typedef struct lack {
    const berth_vm_runner *runner;
    berth_arena *arena;
    uint32_t piece;
    const berth_tensor *inputs;
} lack;

static berth_status say_lack(void *user) {
    enum { most_listed = 4 };
    const lack *l = user;
    const berth_vm_body *vm = l->runner->program->vm;
    const berth_vm_piece *piece = berth_vm_piece_at(vm->code, l->piece);
    berth_strbuf asked = berth_strbuf_make(l->arena), has = berth_strbuf_make(l->arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        const berth_vm_variant *variant = &vm->variants[i];
        if (variant->piece != l->piece || count++ >= most_listed) continue;
        berth_strbuf_add(&has, count > 1 ? "; " : "");
        print_types(&has, variant->inputs, piece->input_count, true);
    }
    if (count > most_listed) berth_strbuf_add(&has, "; ...");
    print_types(&asked, l->inputs, piece->input_count, false);
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "the program has no code for %s; it has some for %s. Build it again with a "
        "specialisation for these, too",
        berth_strbuf_text(&asked), count ? berth_strbuf_text(&has) : "nothing");
}

static berth_status find_variant(const berth_vm_runner *r, uint32_t piece,
                                 const berth_tensor *inputs, uint32_t *out_variant) {
    const berth_vm_body *vm = r->program->vm;
    uint32_t input_count = berth_vm_piece_at(vm->code, piece)->input_count;
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        if (vm->variants[i].piece != piece) continue;
        if (!variant_fits(&vm->variants[i], input_count, inputs)) continue;
        *out_variant = i;
        return BERTH_OK;
    }
    lack l = {.runner = r, .piece = piece, .inputs = inputs};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &l.arena));
    berth_status status = berth_arena_try(l.arena, say_lack, &l);
    berth_arena_destroy(l.arena);
    return status;
}

// ---- running ------------------------------------------------------------------------------------

static berth_status make_room(void *user) {
    const lack *l = user;
    const berth_program *program = l->runner->program->vm->variants[l->piece].program;
    l->runner->variants[l->piece].room = berth_arena_new_array(
        l->runner->arena, berth_tensor, program->input_count + program->output_count + 1);
    return BERTH_OK;
}

static berth_status open_variant(berth_vm_runner *r, uint32_t variant) {
    opened *o = &r->variants[variant];
    lack job = {.runner = r, .piece = variant};
    berth_arena *scratch = NULL;
    if (o->session) return BERTH_OK;
    if (!o->room) BERTH_TRY(berth_arena_try(r->arena, make_room, &job));
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &scratch));
    berth_status status = berth_open_devices_session(
        &r->devices, r->program->vm->variants[variant].program, scratch, &o->session);
    berth_arena_destroy(scratch);
    if (!status) r->report.opened_count++;
    return status;
}

static berth_status run_tensors(berth_vm_runner *r, uint32_t piece, const berth_tensor *inputs,
                                berth_vm_value **outputs) {
    const berth_vm_body *vm = r->program->vm;
    const berth_vm_piece *held = berth_vm_piece_at(vm->code, piece);
    uint32_t index = 0;
    BERTH_TRY(find_variant(r, piece, inputs, &index));
    const berth_vm_variant *variant = &vm->variants[index];
    if (!variant->program)
        return berth_vm_piece_give(variant->results, held->output_count, outputs);
    BERTH_TRY(open_variant(r, index));
    return berth_vm_piece_run(r->variants[index].session, variant->program, inputs,
                              held->input_count, r->variants[index].room, outputs);
}

static berth_status run_piece(berth_vm_runner *r, uint32_t piece, berth_vm_value *const *inputs,
                              berth_vm_value **outputs) {
    const berth_vm_piece *held = berth_vm_piece_at(r->program->vm->code, piece);
    berth_allocator allocator = berth_allocator_system();
    size_t size_bytes = ((size_t)held->input_count + 1) * sizeof(berth_tensor);
    berth_tensor *tensors = berth_calloc(allocator, 1, size_bytes);
    if (!tensors) return berth_status_oom();
    berth_status status = berth_vm_piece_tensors(held, inputs, tensors);
    if (!status) status = run_tensors(r, piece, tensors, outputs);
    berth_free(allocator, tensors, size_bytes);
    return status;
}

static berth_status run_segment(void *user, uint32_t segment, berth_vm_value *const *inputs,
                                berth_vm_value **outputs) {
    return run_piece(user, segment, inputs, outputs);
}

static berth_status run_host(void *user, uint32_t operation, berth_vm_value *const *inputs,
                             berth_vm_value **outputs) {
    berth_vm_runner *r = user;
    const berth_vm_program *code = r->program->vm->code;
    const berth_vm_piece *piece = &code->host_operations[operation];
    berth_status status = run_piece(r, code->segment_count + operation, inputs, outputs);
    return status ? berth_status_prefix(status, "%s (%s)", piece->name, piece->op) : BERTH_OK;
}

berth_status berth_vm_runner_run(berth_vm_runner *runner, berth_vm_value *const *inputs,
                                 berth_vm_value **outputs) {
    const berth_vm_program *code = runner->program->vm->code;
    for (uint32_t i = 0; i < code->output_count; ++i) outputs[i] = NULL;
    BERTH_TRY(berth_vm_check_inputs(code, inputs));
    berth_vm_machine machine = {.allocator = berth_allocator_system(),
                                .user = runner,
                                .run_segment = run_segment,
                                .run_host = run_host,
                                .cancelled = &runner->cancelled};
    berth_status status = berth_vm_run(&machine, code, inputs, outputs);
    runner->report.instructions = machine.instructions;
    runner->report.segments = machine.segments;
    runner->report.host_operations = machine.host_operations;
    atomic_store(&runner->cancelled, 0);
    return status;
}

void berth_vm_runner_cancel(berth_vm_runner *runner) {
    atomic_store(&runner->cancelled, 1);
}

void berth_vm_runner_get_report(const berth_vm_runner *runner, berth_vm_runner_report *out_report) {
    *out_report = runner->report;
}

// ---- opening ------------------------------------------------------------------------------------

static berth_status make_variants(void *user) {
    berth_vm_runner *r = user;
    r->variants = berth_arena_new_array(r->arena, opened, r->program->vm->variant_count + 1);
    return BERTH_OK;
}

berth_status berth_vm_runner_open(const berth_program *program,
                                  const berth_vm_runner_options *options,
                                  berth_vm_runner **out_runner) {
    berth_allocator allocator = berth_allocator_system();
    *out_runner = NULL;
    BERTH_TRY(berth_program_verify(program));
    if (!program->vm)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "the program is of executor \"%s\", not \"vm\": open a session of it",
            program->executor);
    berth_vm_runner *r = berth_calloc(allocator, 1, sizeof(*r));
    if (!r) return berth_status_oom();
    atomic_init(&r->cancelled, 0);
    r->program = program;
    berth_status status = berth_arena_create(allocator, &r->arena);
    if (!status) status = berth_arena_try(r->arena, make_variants, r);
    if (status) {
        berth_vm_runner_close(r);
        return status;
    }
    r->devices.arena = r->arena;
    if (options) r->devices.thread_count = options->thread_count;
    if (options) r->devices.cache_folder = options->cache_folder;
    *out_runner = r;
    return BERTH_OK;
}

void berth_vm_runner_close(berth_vm_runner *runner) {
    if (!runner) return;
    for (uint32_t i = 0; runner->variants && i < runner->program->vm->variant_count; ++i)
        berth_session_close(runner->variants[i].session);
    berth_open_devices_close(&runner->devices);
    berth_arena_destroy(runner->arena);
    berth_free(berth_allocator_system(), runner, sizeof(*runner));
}
