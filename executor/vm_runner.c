#include "executor/vm_runner.h"

#include <string.h>

#include "artifact/program.h"
#include "base/str.h"
#include "executor/open_devices.h"
#include "executor/vm_grown.h"
#include "executor/vm_heap.h"
#include "executor/vm_shapes.h"
#include "executor/vm_states.h"
#include "target/topology.h"

struct berth_vm_runner {
    berth_arena *arena;
    berth_vm_shapes shapes;
    const berth_program *program;
    berth_open_devices devices;
    berth_vm_opened *variants;  // per variant
    uint32_t *piece_variants,
        *first_variant;  // variants by piece; per piece where its own begin, and the end
    uint32_t *piece_families, *first_family;  // the same of families
    berth_vm_runner_report report;
    berth_vm_heap own_heap, *heap;
    berth_vm_states states;  // its program NULL: none are kept
    berth_vm_watch watch;
    atomic_uint own_cancelled, *cancelled;
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

// UINT32_MAX: there is none.
static uint32_t find_variant(const berth_vm_runner *r, uint32_t piece, const berth_tensor *inputs) {
    const berth_vm_body *vm = r->program->vm;
    uint32_t input_count = berth_vm_piece_at(vm->code, piece)->input_count;
    for (uint32_t i = r->first_variant[piece]; i < r->first_variant[piece + 1]; ++i)
        if (variant_fits(&vm->variants[r->piece_variants[i]], input_count, inputs))
            return r->piece_variants[i];
    return UINT32_MAX;
}

static berth_status refuse(const berth_vm_runner *r, uint32_t piece, const berth_tensor *inputs) {
    lack l = {.runner = r, .piece = piece, .inputs = inputs};
    return berth_arena_scratch(say_lack, &l, &l.arena);
}

// ---- running ------------------------------------------------------------------------------------

typedef struct open_job {
    berth_vm_runner *runner;
    berth_arena *arena;
    const berth_program *program;
    berth_vm_opened *opened;
} open_job;

static berth_status make_room(void *user) {
    const open_job *job = user;
    job->opened->room = berth_arena_new_array(
        job->arena, berth_tensor, job->program->input_count + job->program->output_count + 1);
    return BERTH_OK;
}

// Of a program that was not opened before. `arena` is that of the room, `base` (or NULL) whose code it shares.
static berth_status open_program(berth_vm_runner *r, const berth_program *program,
                                 berth_session *base, berth_arena *arena, berth_vm_opened *o) {
    open_job job = {r, arena, program, o};
    berth_arena *scratch = NULL;
    if (!o->room) BERTH_TRY(berth_arena_try(arena, make_room, &job));
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &scratch));
    berth_status status =
        berth_open_devices_session(&r->devices, program, base, scratch, &o->session);
    berth_arena_destroy(scratch);
    if (!status) r->report.opened_count++;
    return status;
}

typedef struct member_job {
    const berth_vm_body *vm;
    berth_vm_shape *made;
} member_job;

static berth_status make_member(void *user) {
    const member_job *job = user;
    berth_vm_shape *made = job->made;
    return berth_vm_family_member(job->vm, &job->vm->families[made->family], made->values,
                                  made->arena, &made->variant);
}

static berth_status open_shape(berth_vm_runner *r, berth_vm_shape *made) {
    member_job job = {r->program->vm, made};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &made->arena));
    BERTH_TRY(berth_arena_try(made->arena, make_member, &job));
    const berth_program *program = made->variant.program;
    if (!program) return BERTH_OK;  // it has results
    return open_program(r, program, berth_vm_shapes_base(&r->shapes, made->family, program),
                        made->arena, &made->opened);
}

// That of the family for these values: as it was opened before, or opened now.
static berth_status take_shape(berth_vm_runner *r, uint32_t family, const int64_t *values,
                               berth_vm_shape **out_shape) {
    *out_shape = berth_vm_shapes_find(&r->shapes, family, values);
    if (*out_shape) return BERTH_OK;
    berth_vm_shape *made = berth_calloc(berth_allocator_system(), 1, sizeof(*made));
    if (!made) return berth_status_oom();
    made->family = family;
    memcpy(made->values, values, sizeof(made->values));
    berth_status status = open_shape(r, made);
    if (status) {
        berth_vm_shape_close(made);
        return status;
    }
    berth_vm_shapes_add(&r->shapes, made);
    *out_shape = made;
    return BERTH_OK;
}

// What a run goes on with.
typedef struct chosen {
    const berth_vm_variant *variant;
    berth_vm_opened *opened;
} chosen;

// Of a family. No variant: none of them has a member for the inputs.
static berth_status choose_member(berth_vm_runner *r, uint32_t piece, const berth_tensor *inputs,
                                  chosen *out) {
    const berth_vm_body *vm = r->program->vm;
    uint32_t input_count = berth_vm_piece_at(vm->code, piece)->input_count;
    for (uint32_t i = r->first_family[piece]; i < r->first_family[piece + 1]; ++i) {
        int64_t values[BERTH_FAMILY_VARIABLES] = {0};
        berth_vm_shape *taken = NULL;
        const uint32_t family = r->piece_families[i];
        if (!berth_vm_family_holds(&vm->families[family], inputs, values)) continue;
        BERTH_TRY(take_shape(r, family, values, &taken));
        *out = (chosen){&taken->variant, &taken->opened};
        if (variant_fits(out->variant, input_count, inputs)) return BERTH_OK;
    }
    out->variant = NULL;
    return BERTH_OK;
}

static berth_status choose(berth_vm_runner *r, uint32_t piece, const berth_tensor *inputs,
                           chosen *out) {
    BERTH_TRY(choose_member(r, piece, inputs, out));
    if (out->variant) return BERTH_OK;
    uint32_t index = find_variant(r, piece, inputs);
    if (index == UINT32_MAX) return refuse(r, piece, inputs);
    *out = (chosen){&r->program->vm->variants[index], &r->variants[index]};
    if (!out->variant->program || out->opened->session) return BERTH_OK;
    return open_program(r, out->variant->program, NULL, r->arena, out->opened);
}

static bool continues(const berth_program *program, uint32_t input) {
    for (uint32_t i = 0; i < program->output_count; ++i)
        if (program->outputs[i].continues == input + 1) return true;
    return false;
}

// The inputs of a piece: tensors as it sees them, and dense values in place of those that grow and that the
// piece only reads.
typedef struct given {
    berth_vm_value *const *values;
    berth_tensor *tensors;
    berth_vm_value **dense;
} given;

static berth_status make_dense(const berth_program *program, uint32_t input_count, given *g,
                               berth_vm_traffic *traffic, uint64_t *copied_bytes) {
    for (uint32_t i = 0; i < input_count; ++i) {
        if (!g->values[i] || !g->values[i]->storage || continues(program, i)) continue;
        g->dense[i] = berth_vm_value_retain(g->values[i]);
        BERTH_TRY(berth_vm_grown_to_dense(&g->dense[i], traffic));
        g->tensors[i] = g->dense[i]->tensor;
        *copied_bytes += berth_tensor_size_bytes(&g->tensors[i]);
    }
    return BERTH_OK;
}

static berth_status run_given(berth_vm_runner *r, uint32_t piece, given *g,
                              berth_vm_value **outputs) {
    const berth_vm_piece *held = berth_vm_piece_at(r->program->vm->code, piece);
    chosen c = {0};
    BERTH_TRY(berth_vm_piece_tensors(held, g->values, g->tensors));
    BERTH_TRY(choose(r, piece, g->tensors, &c));
    if (!c.variant->program)
        return berth_vm_piece_give(berth_pool_allocator(r->heap->pool), c.variant->results,
                                   held->output_count, outputs);
    BERTH_TRY(make_dense(c.variant->program, held->input_count, g, &r->report.traffic,
                         &r->report.copied_bytes));
    const berth_vm_piece_call call = {.piece = held,
                                      .watch = &r->watch,
                                      .inputs = g->tensors,
                                      .allocator = berth_pool_allocator(r->heap->pool),
                                      .values = g->values,
                                      .dense = g->dense,
                                      .traffic = &r->report.traffic,
                                      .blocks = &r->devices.blocks,
                                      .room = c.opened->room,
                                      .copied_bytes = &r->report.copied_bytes};
    return berth_vm_piece_run(c.opened->session, c.variant->program, &call, outputs);
}

static berth_status run_piece(berth_vm_runner *r, uint32_t piece, berth_vm_value *const *inputs,
                              berth_vm_value **outputs) {
    const uint32_t count = berth_vm_piece_at(r->program->vm->code, piece)->input_count;
    const berth_bump_mark mark = berth_bump_at(&r->heap->lists);
    const size_t size_bytes = count * (sizeof(berth_tensor) + sizeof(berth_vm_value *));
    berth_tensor *tensors = berth_bump_take(&r->heap->lists, size_bytes);
    if (!tensors) return berth_status_oom();
    memset(tensors, 0, size_bytes);
    given g = {inputs, tensors, (berth_vm_value **)(tensors + count)};
    berth_status status = run_given(r, piece, &g, outputs);
    for (uint32_t i = 0; i < count; ++i) berth_vm_value_release(g.dense[i]);
    berth_bump_back(&r->heap->lists, mark);
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

static berth_status run_code(berth_vm_runner *runner, berth_vm_value *const *inputs,
                             berth_vm_value **outputs) {
    const berth_vm_program *code = runner->program->vm->code;
    BERTH_TRY(berth_vm_check_inputs(code, inputs));
    berth_vm_machine machine = {.allocator = berth_pool_allocator(runner->heap->pool),
                                .lists = &runner->heap->lists,
                                .user = runner,
                                .run_segment = run_segment,
                                .run_host = run_host,
                                .traffic = &runner->report.traffic,
                                .cancelled = runner->cancelled};
    berth_status status = berth_vm_run(&machine, code, inputs, outputs);
    runner->report.instructions = machine.instructions;
    runner->report.segments = machine.segments;
    runner->report.host_operations = machine.host_operations;
    atomic_store(runner->cancelled, 0);
    return status;
}

// All of it is in the inputs, and all of what comes of it is given.
static berth_status run_stateless(berth_vm_runner *runner, berth_vm_value *const *inputs,
                                  berth_vm_value **outputs) {
    BERTH_TRY(run_code(runner, inputs, outputs));
    for (uint32_t i = 0; i < runner->program->vm->code->output_count; ++i)
        BERTH_TRY(berth_vm_grown_to_dense(&outputs[i], &runner->report.traffic));
    return BERTH_OK;
}

static berth_status run_with_states(berth_vm_runner *runner, berth_vm_value *const *inputs,
                                    berth_vm_value **outputs) {
    BERTH_TRY(berth_vm_states_feed(&runner->states, inputs));
    BERTH_TRY(run_code(runner, runner->states.fed, outputs));
    return berth_vm_states_take(&runner->states, outputs);
}

// What is given outlives the devices.
static berth_status leave_devices(berth_vm_runner *runner, berth_vm_value *value) {
    if (!value) return BERTH_OK;
    BERTH_TRY(berth_vm_value_to_host(value, &runner->report.traffic));
    berth_vm_value_leave_device(value);
    return BERTH_OK;
}

berth_status berth_vm_runner_run(berth_vm_runner *runner, berth_vm_value *const *inputs,
                                 berth_vm_value **outputs) {
    const uint32_t output_count = runner->program->vm->code->output_count;
    for (uint32_t i = 0; i < output_count; ++i) outputs[i] = NULL;
    runner->report.copied_bytes = 0;
    runner->report.traffic = (berth_vm_traffic){0};
    berth_status status = runner->states.program ? run_with_states(runner, inputs, outputs)
                                                 : run_stateless(runner, inputs, outputs);
    for (uint32_t i = 0; i < output_count && !status; ++i)
        status = leave_devices(runner, outputs[i]);
    for (uint32_t i = 0; i < runner->program->vm->code->input_count; ++i)
        berth_vm_value_leave_device(inputs[i]);
    for (uint32_t i = 0; i < output_count && status; ++i) {
        berth_vm_value_release(outputs[i]);
        outputs[i] = NULL;
    }
    berth_workspaces_end_run(&runner->devices.blocks);
    return berth_vm_heap_end_run(runner->heap, status);
}

berth_workspaces *berth_vm_runner_blocks(berth_vm_runner *runner) {
    return &runner->devices.blocks;
}

berth_pool *berth_vm_runner_pool(const berth_vm_runner *runner) {
    return runner->heap->pool;
}

berth_status berth_vm_runner_keep_states(berth_vm_runner *runner) {
    const berth_vm_program *code = runner->program->vm->code;
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->input_count; ++i) count += code->inputs[i].state != 0;
    if (count == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the program was built without states");
    if (runner->states.program) return BERTH_OK;
    return berth_vm_states_open(code, berth_pool_allocator(runner->heap->pool), &runner->states);
}

void berth_vm_runner_reset_states(berth_vm_runner *runner) {
    if (runner->states.program) berth_vm_states_reset(&runner->states);
}

berth_status berth_vm_runner_get_state(const berth_vm_runner *runner, uint32_t input,
                                       berth_vm_value **out_value) {
    *out_value = NULL;
    return runner->states.program ? berth_vm_states_get(&runner->states, input, out_value)
                                  : BERTH_OK;
}

void berth_vm_runner_watch(berth_vm_runner *runner, berth_vm_watch watch) {
    runner->watch = watch;
    runner->devices.profile = watch.listener != NULL;
}

void berth_vm_runner_cancel(berth_vm_runner *runner) {
    atomic_store(runner->cancelled, 1);
}

const berth_vm_runner_report *berth_vm_runner_get_report(const berth_vm_runner *runner) {
    return &runner->report;
}

// ---- opening ------------------------------------------------------------------------------------

// Numbers 0 .. count, of the pieces `piece_of(i)`, in the order of pieces.
static void sort_by_piece(const berth_vm_runner *r, uint32_t count,
                          uint32_t (*piece_of)(const berth_vm_body *vm, uint32_t index),
                          uint32_t **out_sorted, uint32_t **out_first) {
    const berth_vm_body *vm = r->program->vm;
    const uint32_t pieces = vm->code->segment_count + vm->code->host_operation_count;
    uint32_t *first = berth_arena_new_array(r->arena, uint32_t, pieces + 2);
    uint32_t *sorted = berth_arena_new_array(r->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) first[piece_of(vm, i) + 2]++;
    for (uint32_t p = 2; p < pieces + 2; ++p) first[p] += first[p - 1];
    for (uint32_t i = 0; i < count; ++i) sorted[first[piece_of(vm, i) + 1]++] = i;
    *out_sorted = sorted;
    *out_first = first;
}

static uint32_t piece_of_variant(const berth_vm_body *vm, uint32_t index) {
    return vm->variants[index].piece;
}

static uint32_t piece_of_family(const berth_vm_body *vm, uint32_t index) {
    return vm->variants[vm->families[index].variant].piece;
}

static berth_status make_lists(void *user) {
    berth_vm_runner *r = user;
    const berth_vm_body *vm = r->program->vm;
    r->variants = berth_arena_new_array(r->arena, berth_vm_opened, vm->variant_count + 1);
    r->shapes.firsts = berth_arena_new_array(r->arena, berth_vm_shape *, vm->family_count + 1);
    sort_by_piece(r, vm->variant_count, piece_of_variant, &r->piece_variants, &r->first_variant);
    sort_by_piece(r, vm->family_count, piece_of_family, &r->piece_families, &r->first_family);
    return BERTH_OK;
}

// What devices ask of the machine when they are opened (a process that is started for it: milliseconds) is known from then
// on, so that no run waits for it. What cannot be told, opening the device does.
static void ask_machine(void) {
    berth_topology here;
    berth_status_ignore(berth_topology_here(false, &here));
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
    atomic_init(&r->own_cancelled, 0);
    r->cancelled = options && options->cancelled ? options->cancelled : &r->own_cancelled;
    r->program = program;
    berth_status status = berth_arena_create(allocator, &r->arena);
    if (!status) status = berth_arena_try(r->arena, make_lists, r);
    r->heap = options && options->heap ? options->heap : &r->own_heap;
    if (!status && r->heap == &r->own_heap) status = berth_vm_heap_open(r->heap);
    if (status) {
        berth_vm_runner_close(r);
        return status;
    }
    ask_machine();
    r->devices.arena = r->arena;
    r->devices.binds = true;
    r->devices.blocks.of_values = true;
    r->devices.verified = true;  // with the program's, and when a member is made
    if (options) r->devices.thread_count = options->thread_count;
    if (options) r->devices.cache_folder = options->cache_folder;
    *out_runner = r;
    return BERTH_OK;
}

void berth_vm_runner_close(berth_vm_runner *runner) {
    if (!runner) return;
    berth_vm_states_close(&runner->states);
    for (uint32_t i = 0; runner->variants && i < runner->program->vm->variant_count; ++i)
        berth_session_close(runner->variants[i].session);
    berth_vm_shapes_close(&runner->shapes);
    berth_vm_heap_close(&runner->own_heap);
    berth_open_devices_close(&runner->devices);
    berth_arena_destroy(runner->arena);
    berth_free(berth_allocator_system(), runner, sizeof(*runner));
}
