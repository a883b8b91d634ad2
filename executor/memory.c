// Memory of a session: pools, constants and one buffer per tensor in use.
//
// A constant pool on a device whose memory is the host's is not allocated: each constant is used
// where the program has it (the mapped file, the compiler's arena), or copied to a buffer of its
// own when its alignment does not do. A store is never allocated: copies read its constants where the
// program has them.
#include <string.h>

#include "executor/session_private.h"
#include "executor/workspaces.h"

static bool host_visible(const berth_session *session, uint32_t device) {
    return berth_device_get_info(session->devices[device].device)->memories[0].host_visible;
}

static bool is_borrowed(const berth_session *session, uint32_t pool) {
    const berth_program_pool *p = &session->program->pools[pool];
    if (p->usage == BERTH_POOL_STORE) return true;
    return p->usage == BERTH_POOL_CONSTANT && host_visible(session, p->device) &&
           !berth_executor__is_shared(session, pool);
}

berth_status berth_executor__check_alignment(const berth_program_pool *pool,
                                             const berth_device *device, uint32_t memory) {
    uint32_t needed = berth_device_get_info(device)->memories[memory].alignment_bytes;
    if (needed <= pool->alignment_bytes) return BERTH_OK;
    return berth_status_make(
        BERTH_INCOMPATIBLE,
        "planned for an alignment of %u bytes, but the device needs %u: plan again with that in "
        "the target",
        pool->alignment_bytes, needed);
}

// A constant pool of the session that this one shares with. (One in which several devices work has
// buffers for each, which are each session's own.)
static bool is_base_pool(const berth_session *session, uint32_t pool) {
    return session->options.base && !berth_executor__is_shared(session, pool) &&
           session->program->pools[pool].usage == BERTH_POOL_CONSTANT;
}

static bool is_lent(const berth_session *session, uint32_t pool) {
    return session->options.workspaces && !berth_executor__is_shared(session, pool) &&
           session->program->pools[pool].usage == BERTH_POOL_WORKSPACE;
}

static void use_base_pool(berth_session *session, uint32_t index) {
    const berth_program_pool *pool = &session->program->pools[index];
    session->pools[index] = session->options.base->pools[index];
    session->borrowed_bytes[pool->device] += pool->size_bytes;
}

static berth_status allocate_pool(berth_session *session, uint32_t index) {
    const berth_program_pool *pool = &session->program->pools[index];
    berth_device *device = session->devices[pool->device].device;
    uint32_t memory = 0;
    BERTH_TRY(berth_device_find_memory(device, pool->scope, &memory));
    BERTH_TRY(berth_executor__check_alignment(pool, device, memory));
    if (is_lent(session, index)) {
        const struct berth_turns *turns = session->options.turns;
        return berth_workspaces_take(session->options.workspaces, device, memory,
                                     turns ? berth_turns__pool_bytes(turns, session->program, index)
                                           : pool->size_bytes,
                                     &session->pools[index]);
    }
    return berth_buffer_allocate(device, memory, pool->size_bytes, &session->pools[index]);
}

static berth_status allocate_pools(berth_session *session) {
    if (session->options.workspaces) berth_workspaces_begin(session->options.workspaces);
    for (uint32_t i = 0; i < session->program->pool_count; ++i) {
        const berth_program_pool *pool = &session->program->pools[i];
        if (is_base_pool(session, i)) {
            use_base_pool(session, i);
            continue;
        }
        if (is_borrowed(session, i)) continue;
        berth_status status = berth_executor__is_shared(session, i)
                                  ? berth_executor__share_pool(session, i)
                                  : allocate_pool(session, i);
        if (status)
            return berth_status_prefix(status, "%llu bytes on device \"%s\"",
                                       (unsigned long long)pool->size_bytes,
                                       session->program->devices[pool->device].name);
    }
    return BERTH_OK;
}

// ---- constants ----

static berth_status wrap_constant(berth_session *session, uint32_t index) {
    const berth_program_constant *constant = &session->program->constants[index];
    const berth_program_tensor *tensor = &session->program->tensors[constant->tensor];
    const berth_program_pool *pool = &session->program->pools[tensor->pool];
    berth_device *device = session->devices[pool->device].device;
    bool store = pool->usage == BERTH_POOL_STORE;  // copies ask for no alignment
    if (tensor->size_bytes && (store || (uintptr_t)constant->data % pool->alignment_bytes == 0)) {
        union {
            const void *constant;
            void *mutable_pointer;
        } data = {.constant = constant->data};  // kernels only read constants
        berth_status status = berth_buffer_import(device, data.mutable_pointer, tensor->size_bytes,
                                                  &session->roots[index]);
        if (!status) {
            if (!store) session->borrowed_bytes[pool->device] += tensor->size_bytes;
            return BERTH_OK;
        }
        if (store || berth_status_code(status) != BERTH_UNSUPPORTED) return status;
        berth_status_free(status);
    }
    uint32_t memory = 0;
    BERTH_TRY(berth_device_find_memory(device, pool->scope, &memory));
    BERTH_TRY(berth_buffer_allocate(device, memory, tensor->size_bytes, &session->roots[index]));
    if (tensor->size_bytes)
        memcpy(berth_buffer_host(session->roots[index]), constant->data,
               (size_t)tensor->size_bytes);
    return BERTH_OK;
}

static berth_status upload_constant(berth_session *session, uint32_t index) {
    const berth_program_constant *constant = &session->program->constants[index];
    const berth_program_tensor *tensor = &session->program->tensors[constant->tensor];
    if (tensor->size_bytes == 0) return BERTH_OK;
    berth_buffer *pool = session->pools[tensor->pool];
    void *data = NULL;
    BERTH_TRY(berth_buffer_map(pool, tensor->offset_bytes, tensor->size_bytes, true, &data));
    memcpy(data, constant->data, (size_t)tensor->size_bytes);
    return berth_buffer_unmap(pool, data);
}

static berth_status place_constants(berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        uint32_t tensor = program->constants[i].tensor;
        if (is_base_pool(session, program->tensors[tensor].pool)) {
            session->roots[i] = session->options.base->roots[i];
            continue;
        }
        berth_status status = session->pools[program->tensors[tensor].pool]
                                  ? upload_constant(session, i)
                                  : wrap_constant(session, i);
        if (status)
            return berth_status_prefix(status, "constant \"%s\"", program->tensors[tensor].name);
    }
    return BERTH_OK;
}

// ---- tensors ----

// The buffer that holds a tensor's bytes, and where they begin in it. Linear in the constants, only
// for tensors of constant pools that are used in place and are not constants themselves (views of
// constants).
static berth_status find_home(const berth_session *session, uint32_t index, berth_buffer **out_home,
                              uint64_t *out_offset_bytes) {
    const berth_program *program = session->program;
    const berth_program_tensor *tensor = &program->tensors[index];
    *out_home = session->pools[tensor->pool];
    *out_offset_bytes = tensor->offset_bytes;
    if (*out_home) return BERTH_OK;
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_tensor *constant = &program->tensors[program->constants[i].tensor];
        if (constant->pool != tensor->pool || tensor->offset_bytes < constant->offset_bytes ||
            tensor->offset_bytes + tensor->size_bytes >
                constant->offset_bytes + constant->size_bytes)
            continue;
        *out_home = session->roots[i];
        *out_offset_bytes = tensor->offset_bytes - constant->offset_bytes;
        return BERTH_OK;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "it is in a constant pool, but no constant gives its content");
}

// The tensor as `device` sees it.
static berth_status make_tensor(berth_session *session, uint32_t index, uint32_t device) {
    const berth_program_tensor *tensor = &session->program->tensors[index];
    berth_buffer **slot = &session->tensors[index];
    berth_buffer *home = NULL;
    uint64_t offset_bytes = tensor->offset_bytes;
    berth_status status = BERTH_OK;
    if (berth_executor__shares(session, tensor->pool, device)) {
        const berth_session_device *sharer =
            &session->devices[berth_executor__home(session, device)];
        slot = &sharer->tensors[index];
        home = sharer->pools[tensor->pool];
    }
    if (*slot) return BERTH_OK;
    if (!home) status = find_home(session, index, &home, &offset_bytes);
    if (!status) status = berth_buffer_view(home, offset_bytes, tensor->size_bytes, slot);
    return berth_status_prefix(status, "tensor %u \"%s\"", index,
                               session->program->tensors[index].name);
}

static berth_status make_tensors(berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        uint32_t tensor = program->constants[i].tensor;
        if (!session->roots[i]) continue;
        session->tensors[tensor] = session->roots[i];  // the same object; freed once, as a root
    }
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        uint32_t count =
            step->kind == BERTH_STEP_COPY ? 2 : program->kernels[step->kernel].binding_count;
        for (uint32_t b = 0; b < count; ++b)
            BERTH_TRY(make_tensor(session, step->bindings[b], step->device));
    }
    for (uint32_t i = 0; i < program->check_count; ++i) {
        uint32_t tensor = program->checks[i].tensor;
        BERTH_TRY(
            make_tensor(session, tensor, program->pools[program->tensors[tensor].pool].device));
    }
    return BERTH_OK;
}

static berth_status make_io(berth_session *session, const berth_program_io *list, uint32_t count,
                            berth_tensor **out_tensors) {
    berth_tensor *tensors = berth_arena_new_array(session->arena, berth_tensor, count);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &session->program->tensors[list[i].tensor];
        tensors[i] = (berth_tensor){.dtype = tensor->dtype, .rank = tensor->rank};
        memcpy(tensors[i].dims, tensor->dims, sizeof(tensors[i].dims));
        uint32_t memory = 0;
        if (berth_session_io_device(session, &list[i], &memory)) continue;  // bound.c
        uint8_t *host = berth_buffer_host(session->pools[tensor->pool]);
        if (!host && tensor->size_bytes)
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "\"%s\" is in memory the host cannot reach", list[i].name);
        if (!host) continue;
        tensors[i].data = host + tensor->offset_bytes;
    }
    *out_tensors = tensors;
    return BERTH_OK;
}

berth_status berth_executor__allocate(berth_session *session) {
    const berth_program *program = session->program;
    session->pools = berth_arena_new_array(session->arena, berth_buffer *, program->pool_count);
    session->roots = berth_arena_new_array(session->arena, berth_buffer *, program->constant_count);
    session->tensors = berth_arena_new_array(session->arena, berth_buffer *, program->tensor_count);
    session->borrowed_bytes =
        berth_arena_new_array(session->arena, uint64_t, program->device_count);
    bool any_shared = false;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        any_shared = any_shared || berth_executor__is_shared(session, i);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        session->devices[d].pools =
            berth_arena_new_array(session->arena, berth_buffer *, program->pool_count);
        if (any_shared)
            session->devices[d].tensors =
                berth_arena_new_array(session->arena, berth_buffer *, program->tensor_count);
    }
    BERTH_TRY(allocate_pools(session));
    BERTH_TRY(place_constants(session));
    BERTH_TRY(make_tensors(session));
    BERTH_TRY(make_io(session, program->inputs, program->input_count, &session->inputs));
    BERTH_TRY(make_io(session, program->outputs, program->output_count, &session->outputs));
    return berth_executor__find_movable(session);
}

static void free_shared(berth_session *session, const berth_session_device *device) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; device->tensors && i < program->tensor_count; ++i)
        berth_buffer_free(device->tensors[i]);
    for (uint32_t i = 0; device->pools && i < program->pool_count; ++i)
        berth_buffer_free(device->pools[i]);
}

void berth_executor__free_memory(berth_session *session) {
    const berth_program *program = session->program;
    berth_executor__free_segments(session);
    for (uint32_t i = 0; session->roots && i < program->constant_count; ++i) {
        if (session->roots[i] && session->tensors)
            session->tensors[program->constants[i].tensor] = NULL;
        if (!session->options.base) berth_buffer_free(session->roots[i]);
    }
    for (uint32_t i = 0; session->tensors && i < program->tensor_count; ++i)
        berth_buffer_free(session->tensors[i]);
    for (uint32_t i = 0; session->pools && i < program->pool_count; ++i)
        if (!is_base_pool(session, i) && !is_lent(session, i)) berth_buffer_free(session->pools[i]);
    for (uint32_t d = 0; session->devices && d < program->device_count; ++d)
        free_shared(session, &session->devices[d]);
    session->roots = session->tensors = session->pools = NULL;
}
