// Inputs and outputs in a device's memory: steps bind the caller's buffers instead of the session's own while
// they are bound. Who reads or writes such bytes is listed when the session opens, so that binding only sets
// pointers in its commands.
#include "executor/session_private.h"
#include "target/virtual_device.h"

// A buffer of an input's or output's bytes in a command.
typedef struct bound_slot {
    berth_buffer **slot;
    uint32_t tensor;
} bound_slot;

struct berth_session_bound {
    BERTH_VEC(bound_slot) slots;
    berth_buffer **views;  // of the buffer that is bound, per slot; NULL: it is bound itself
};

static const berth_program_io *io_at(const berth_program *program, uint32_t index) {
    return index < program->input_count ? &program->inputs[index]
                                        : &program->outputs[index - program->input_count];
}

static const berth_program_pool *pool_of(const berth_session *session, uint32_t tensor) {
    return &session->program->pools[session->program->tensors[tensor].pool];
}

static bool is_host(const berth_session *session, uint32_t device) {
    return berth_device_kind_is_host(
        berth_device_kind_from_name(session->program->devices[device].kind));
}

berth_device *berth_session_io_device(const berth_session *session, const berth_program_io *io,
                                      uint32_t *out_memory) {
    const berth_program_pool *pool = pool_of(session, io->tensor);
    berth_device *device = session->devices[pool->device].device;
    *out_memory = 0;
    if (!session->options.binds || is_host(session, pool->device)) return NULL;
    berth_status status = berth_device_find_memory(device, pool->scope, out_memory);
    berth_status_ignore(status);  // it was found when the pool was allocated
    return device;
}

// The input or output whose bytes hold the tensor; NULL: none, or none that can be bound.
static struct berth_session_bound *bound_of(const berth_session *session, uint32_t tensor) {
    const berth_program *program = session->program;
    const berth_program_tensor *part = &program->tensors[tensor];
    if (!session->bounds || pool_of(session, tensor)->usage != BERTH_POOL_IO) return NULL;
    for (uint32_t i = 0; i < program->input_count + program->output_count; ++i) {
        const berth_program_io *io = io_at(program, i);
        if (session->bounds[i] &&
            berth_program_tensors_overlap(&program->tensors[io->tensor], part))
            return session->bounds[i];
    }
    return NULL;
}

void berth_executor__note_slot(berth_session *session, uint32_t tensor, berth_buffer **slot) {
    struct berth_session_bound *bound = bound_of(session, tensor);
    if (bound)
        berth_vec_push(session->arena, &bound->slots,
                       ((bound_slot){.slot = slot, .tensor = tensor}));
}

// Bytes of two of them cannot be bound apart.
static berth_status check_apart(const berth_session *session, const berth_program_io *io) {
    const berth_program *program = session->program;
    const berth_program_tensor *whole = &program->tensors[io->tensor];
    uint32_t uses = 0;
    if (whole->size_bytes == 0) return BERTH_OK;
    for (uint32_t i = 0; i < program->input_count; ++i)
        uses += berth_program_tensors_overlap(&program->tensors[program->inputs[i].tensor], whole);
    for (uint32_t i = 0; i < program->output_count; ++i)
        uses += berth_program_tensors_overlap(&program->tensors[program->outputs[i].tensor], whole);
    if (uses == 1) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "\"%s\" is in a device's memory and shares bytes with another input "
                             "or output",
                             io->name);
}

static berth_status refuse_bounds(const berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->input_count + program->output_count; ++i) {
        const berth_program_io *io = io_at(program, i);
        const uint32_t device = pool_of(session, io->tensor)->device;
        if (!is_host(session, device))
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "\"%s\" is in memory of \"%s\", which only a segment of byte "
                                     "code may have",
                                     io->name, program->devices[device].name);
    }
    return BERTH_OK;
}

berth_status berth_executor__find_bounds(berth_session *session) {
    const berth_program *program = session->program;
    const uint32_t count = program->input_count + program->output_count;
    uint32_t memory = 0;
    if (!session->options.binds) return refuse_bounds(session);
    session->bounds =
        berth_arena_new_array(session->arena, struct berth_session_bound *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_io *io = io_at(program, i);
        if (!berth_session_io_device(session, io, &memory)) continue;
        BERTH_TRY(check_apart(session, io));
        session->bounds[i] = berth_arena_new(session->arena, struct berth_session_bound);
    }
    return BERTH_OK;
}

void berth_executor__finish_bounds(berth_session *session) {
    const uint32_t count = session->program->input_count + session->program->output_count;
    for (uint32_t i = 0; session->bounds && i < count; ++i)
        if (session->bounds[i])
            session->bounds[i]->views = berth_arena_new_array(session->arena, berth_buffer *,
                                                              session->bounds[i]->slots.count + 1);
}

static berth_status bind(berth_session *session, struct berth_session_bound *bound,
                         const berth_program_io *io, berth_buffer *buffer) {
    const berth_program_tensor *tensors = session->program->tensors;
    for (uint32_t i = 0; i < bound->slots.count; ++i) {
        const bound_slot *s = &bound->slots.data[i];
        uint64_t offset_bytes = tensors[s->tensor].offset_bytes - tensors[io->tensor].offset_bytes;
        // Also where it reaches beyond, which is an error then.
        if (offset_bytes || tensors[s->tensor].size_bytes > berth_buffer_size_bytes(buffer))
            BERTH_TRY(berth_buffer_view(buffer, offset_bytes, tensors[s->tensor].size_bytes,
                                        &bound->views[i]));
        *s->slot = bound->views[i] ? bound->views[i] : buffer;
    }
    session->rebound = true;
    return BERTH_OK;
}

static berth_status bind_at(berth_session *session, uint32_t index, const berth_program_io *io,
                            berth_buffer *buffer) {
    struct berth_session_bound *bound = session->bounds ? session->bounds[index] : NULL;
    const uint64_t size_bytes = session->program->tensors[io->tensor].size_bytes;
    if (!bound || berth_buffer_size_bytes(buffer) < size_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" needs %llu bytes in %s, which is not what was given",
                                 io->name, (unsigned long long)size_bytes,
                                 bound ? "a device's memory" : "the host's memory");
    return bind(session, bound, io, buffer);
}

berth_status berth_session_bind_input(berth_session *session, uint32_t index,
                                      berth_buffer *buffer) {
    return bind_at(session, index, &session->program->inputs[index], buffer);
}

berth_status berth_session_bind_output(berth_session *session, uint32_t index,
                                       berth_buffer *buffer) {
    return bind_at(session, session->program->input_count + index,
                   &session->program->outputs[index], buffer);
}

void berth_session_unbind(berth_session *session) {
    const uint32_t count = session->program->input_count + session->program->output_count;
    for (uint32_t i = 0; session->bounds && i < count; ++i) {
        struct berth_session_bound *bound = session->bounds[i];
        for (uint32_t k = 0; bound && bound->views && k < bound->slots.count; ++k) {
            *bound->slots.data[k].slot = session->tensors[bound->slots.data[k].tensor];
            berth_buffer_free(bound->views[k]);
            bound->views[k] = NULL;
        }
        if (bound && bound->slots.count) session->rebound = true;
    }
}
