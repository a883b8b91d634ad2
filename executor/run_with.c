// Runs on buffers of the caller: in place where that is possible, else through the session's own.
//
// A step binds buffers, and a buffer of host memory is an address that the driver reads when the step
// runs. So for one run an input or output is elsewhere when its buffer is moved there, together with
// those of tensors that lie in its bytes (results over operands, parts). No other tensor may reach over
// these, inputs must not be written, and the caller's memory must be aligned as the device's kernels need
// (artifact/kernel_abi.h).
#include <string.h>

#include "executor/session_private.h"

enum { most_movable = 64 };  // inputs and outputs together; with more, all are copied

// ---- which can be moved -------------------------------------------------------------------------

static uint32_t binding_count(const berth_program *program, const berth_program_step *step) {
    return step->kind == BERTH_STEP_COPY ? 2 : program->kernels[step->kernel].binding_count;
}

static bool writes(const berth_program *program, const berth_program_step *step, uint32_t binding) {
    if (step->kind == BERTH_STEP_COPY) return binding == 1;
    return program->kernels[step->kernel].bindings[binding].access & BERTH_ACCESS_WRITE;
}

// Per tensor, whether a step writes it.
static bool *find_written(berth_session *session) {
    const berth_program *program = session->program;
    bool *written = berth_arena_new_array(session->arena, bool, program->tensor_count);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        for (uint32_t b = 0; b < binding_count(program, step); ++b)
            written[step->bindings[b]] |= writes(program, step, b);
    }
    return written;
}

static bool contains(const berth_program_tensor *whole, const berth_program_tensor *part) {
    return part->pool == whole->pool && part->offset_bytes >= whole->offset_bytes &&
           part->offset_bytes + part->size_bytes <= whole->offset_bytes + whole->size_bytes;
}

// Inputs and outputs that have some of the tensor's bytes.
static uint32_t count_uses(const berth_program *program, const berth_program_tensor *tensor) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < program->input_count; ++i)
        uses += berth_program_tensors_overlap(&program->tensors[program->inputs[i].tensor], tensor);
    for (uint32_t i = 0; i < program->output_count; ++i)
        uses +=
            berth_program_tensors_overlap(&program->tensors[program->outputs[i].tensor], tensor);
    return uses;
}

// Lists what steps bind in the bytes of `tensor`. False: it cannot be moved. `written` is NULL where it
// may be written.
static bool list_tensors(berth_session *session, uint32_t tensor, const bool *written,
                         berth_session_movable *out) {
    const berth_program *program = session->program;
    const berth_program_tensor *whole = &program->tensors[tensor];
    if (count_uses(program, whole) != 1) return false;
    for (uint32_t t = 0; t < program->tensor_count; ++t) {
        const berth_program_tensor *part = &program->tensors[t];
        if (!session->tensors[t] || part->size_bytes == 0 ||
            !berth_program_tensors_overlap(whole, part))
            continue;
        if (!contains(whole, part) || (written && written[t])) return false;
        berth_vec_push(session->arena, &out->tensors, t);
    }
    return true;
}

// Buffers over the session's own memory that can be moved take the place of views of the pool.
static berth_status make_buffers(berth_session *session, berth_device *device, uint8_t *own,
                                 uint64_t own_offset_bytes, berth_session_movable *movable) {
    for (uint32_t i = 0; i < movable->tensors.count; ++i) {
        uint32_t t = movable->tensors.data[i];
        const berth_program_tensor *tensor = &session->program->tensors[t];
        berth_buffer *buffer = NULL;
        BERTH_TRY(berth_buffer_import(device, own + (tensor->offset_bytes - own_offset_bytes),
                                      tensor->size_bytes, &buffer));
        berth_buffer_free(session->tensors[t]);
        session->tensors[t] = buffer;
    }
    return BERTH_OK;
}

static berth_status make_movable(berth_session *session, uint32_t tensor, const berth_tensor *io,
                                 const bool *written, berth_session_movable *movable) {
    const berth_program_tensor *planned = &session->program->tensors[tensor];
    berth_device *device = session->devices[session->program->pools[planned->pool].device].device;
    size_t size_bytes = berth_tensor_size_bytes(io);
    bool grows = *planned->layout != 0;  // an output with room for more rows
    if (size_bytes == 0 || !io->data || (planned->size_bytes != size_bytes && !grows) ||
        berth_executor__is_shared(session, planned->pool) ||
        !berth_device_get_info(device)->memories[0].host_visible ||
        !list_tensors(session, tensor, written, movable)) {
        movable->tensors.count = 0;
        return BERTH_OK;
    }
    berth_status status = make_buffers(session, device, io->data, planned->offset_bytes, movable);
    if (berth_status_code(status) != BERTH_UNSUPPORTED) return status;
    berth_status_free(status);  // by the first already: the device imports nothing
    movable->tensors.count = 0;
    return BERTH_OK;
}

berth_status berth_executor__find_movable(berth_session *session) {
    const berth_program *program = session->program;
    session->input_movables =
        berth_arena_new_array(session->arena, berth_session_movable, program->input_count);
    session->output_movables =
        berth_arena_new_array(session->arena, berth_session_movable, program->output_count);
    if (program->input_count > most_movable ||
        program->output_count > most_movable - program->input_count)
        return BERTH_OK;
    const bool *written = find_written(session);
    for (uint32_t i = 0; i < program->input_count; ++i)
        BERTH_TRY(make_movable(session, program->inputs[i].tensor, &session->inputs[i], written,
                               &session->input_movables[i]));
    for (uint32_t i = 0; i < program->output_count; ++i)
        BERTH_TRY(make_movable(session, program->outputs[i].tensor, &session->outputs[i], NULL,
                               &session->output_movables[i]));
    return BERTH_OK;
}

// ---- a run --------------------------------------------------------------------------------------

// The caller's buffers of one run.
typedef struct caller_buffers {
    const berth_tensor *inputs;
    const berth_tensor *outputs;
} caller_buffers;

static berth_status check_count(const char *what, uint32_t expected, uint32_t given) {
    if (expected == given) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the program has %u %s%s, but %u were given",
                             expected, what, expected == 1 ? "" : "s", given);
}

static berth_status check(const berth_session *session, caller_buffers callers) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->input_count; ++i)
        BERTH_TRY(berth_executor__check_same("input", program->inputs[i].name, &session->inputs[i],
                                             &callers.inputs[i]));
    for (uint32_t i = 0; i < program->output_count; ++i)
        BERTH_TRY(berth_executor__check_same("output", program->outputs[i].name,
                                             &session->outputs[i], &callers.outputs[i]));
    return BERTH_OK;
}

static bool share_bytes(const berth_tensor *a, const berth_tensor *b) {
    uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return x < y + berth_tensor_size_bytes(b) && y < x + berth_tensor_size_bytes(a);
}

// Bytes that the caller gives for an output: with the room for more rows, where it has some.
static size_t output_bytes(const berth_session *session, uint32_t output) {
    const berth_program *program = session->program;
    return (size_t)program->tensors[program->outputs[output].tensor].size_bytes;
}

// Whether an output would be written while something else of the caller's is read or written there.
static bool is_apart(const berth_session *session, caller_buffers callers, uint32_t output) {
    const berth_tensor *tensor = &callers.outputs[output];
    for (uint32_t i = 0; i < session->program->input_count; ++i)
        if (share_bytes(&callers.inputs[i], tensor)) return false;
    for (uint32_t i = 0; i < session->program->output_count; ++i)
        if (i != output && share_bytes(&callers.outputs[i], tensor)) return false;
    return true;
}

static bool is_aligned(const berth_session *session, const berth_program_io *io,
                       const berth_tensor *tensor) {
    const berth_program_pool *pool =
        &session->program->pools[session->program->tensors[io->tensor].pool];
    const berth_device_info *info = berth_device_get_info(session->devices[pool->device].device);
    uint64_t bytes = info->memories[0].element_aligned ? berth_dtype_size_bytes(tensor->dtype)
                                                       : pool->alignment_bytes;
    return (uintptr_t)tensor->data % bytes == 0;
}

// Has steps use `data` for an input or output.
static void move(berth_session *session, const berth_program_io *io, berth_session_movable *movable,
                 void *data) {
    const berth_program_tensor *tensors = session->program->tensors;
    for (uint32_t i = 0; i < movable->tensors.count; ++i) {
        uint32_t t = movable->tensors.data[i];
        uint64_t offset_bytes = tensors[t].offset_bytes - tensors[io->tensor].offset_bytes;
        berth_buffer_move(session->tensors[t], (uint8_t *)data + offset_bytes);
    }
    session->moved = true;
}

// Moves buffers to the caller's memory, and copies the inputs that cannot be there. True: some moved.
static bool move_out(berth_session *session, caller_buffers callers) {
    const berth_program *program = session->program;
    bool any = false;
    for (uint32_t i = 0; i < program->input_count; ++i) {
        const berth_tensor *tensor = &callers.inputs[i];
        berth_session_movable *movable = &session->input_movables[i];
        if (tensor->data == session->inputs[i].data) continue;
        movable->moved =
            movable->tensors.count > 0 && is_aligned(session, &program->inputs[i], tensor);
        any |= movable->moved;
        if (movable->moved)
            move(session, &program->inputs[i], movable, tensor->data);
        else if (session->inputs[i].data && tensor->data)
            memcpy(session->inputs[i].data, tensor->data, berth_tensor_size_bytes(tensor));
    }
    for (uint32_t i = 0; i < program->output_count; ++i) {
        const berth_tensor *tensor = &callers.outputs[i];
        berth_session_movable *movable = &session->output_movables[i];
        movable->moved = movable->tensors.count > 0 && tensor->data != session->outputs[i].data &&
                         is_aligned(session, &program->outputs[i], tensor) &&
                         is_apart(session, callers, i);
        any |= movable->moved;
        if (movable->moved)
            move(session, &program->outputs[i], movable, tensor->data);
        else if (program->outputs[i].continues && tensor->data != session->outputs[i].data)
            memcpy(session->outputs[i].data, tensor->data, output_bytes(session, i));
    }
    return any;
}

// Moves buffers back, and copies the outputs that are in the session's memory.
static void move_back(berth_session *session, caller_buffers callers, bool succeeded) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->input_count; ++i) {
        berth_session_movable *movable = &session->input_movables[i];
        if (movable->moved) move(session, &program->inputs[i], movable, session->inputs[i].data);
        movable->moved = false;
    }
    for (uint32_t i = 0; i < program->output_count; ++i) {
        const berth_tensor *own = &session->outputs[i], *tensor = &callers.outputs[i];
        berth_session_movable *movable = &session->output_movables[i];
        if (movable->moved)
            move(session, &program->outputs[i], movable, own->data);
        else if (succeeded && tensor->data != own->data && own->data &&
                 tensor->data)  // none: no bytes
            memcpy(tensor->data, own->data, output_bytes(session, i));
        movable->moved = false;
    }
}

berth_status berth_session_check_buffers(const berth_session *session, const berth_tensor *inputs,
                                         uint32_t input_count, const berth_tensor *outputs,
                                         uint32_t output_count) {
    BERTH_TRY(check_count("input", session->program->input_count, input_count));
    BERTH_TRY(check_count("output", session->program->output_count, output_count));
    return check(session, (caller_buffers){inputs, outputs});
}

berth_status berth_executor__run_with_once(berth_session *session, const berth_tensor *inputs,
                                           const berth_tensor *outputs, int64_t timeout_ns) {
    const caller_buffers callers = {inputs, outputs};
    bool moved = move_out(session, callers);
    berth_status status = berth_executor__run_once(session, timeout_ns);
    // What a failed run left going must not touch the caller's memory any more.
    if (status && moved && session->broken) berth_executor__close_queues(session);
    move_back(session, callers, status == BERTH_OK);
    return status;
}
