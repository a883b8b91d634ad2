// Checks of what a program runs: its executables, kernels and steps.
#include <stdlib.h>
#include <string.h>

#include "artifact/verify.h"

#define BAD BERTH_ARTIFACT__BAD

static int compare_ranges(const void *a, const void *b) {
    const berth_artifact__range *x = a;
    const berth_artifact__range *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record);
}

// Each program that is made for a new shape is verified: what is in order already, as constants are that
// were placed one after another, and the few bindings of a kernel are not worth the library's merge sort.
void berth_artifact__sort_ranges(berth_artifact__range *ranges, size_t count) {
    enum { few = 16 };
    size_t sorted = 1;
    while (sorted < count && compare_ranges(&ranges[sorted - 1], &ranges[sorted]) <= 0) ++sorted;
    if (sorted < count && count > few) {
        qsort(ranges, count, sizeof(*ranges), compare_ranges);
        return;
    }
    for (; sorted < count; ++sorted) {
        const berth_artifact__range moved = ranges[sorted];
        size_t at = sorted;
        for (; at > 0 && compare_ranges(&ranges[at - 1], &moved) > 0; --at)
            ranges[at] = ranges[at - 1];
        ranges[at] = moved;
    }
}

static berth_status check_executables(const berth_program *program) {
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        const berth_executable_image *image = &program->executables[i];
        if (!image->device_kind || !*image->device_kind)
            return BAD("executables[%u].device_kind: missing", i);
        if (!image->format || !*image->format) return BAD("executables[%u].format: missing", i);
        if (!image->options) return BAD("executables[%u].options: missing", i);
        if (!image->data || image->size_bytes == 0) return BAD("executables[%u].data: missing", i);
    }
    return BERTH_OK;
}

static berth_status check_declaration(const berth_program_kernel *kernel, uint32_t i) {
    const uint32_t known = BERTH_ACCESS_READ | BERTH_ACCESS_WRITE | BERTH_ACCESS_ALIAS;
    if (kernel->binding_count && !kernel->bindings) return BAD("kernels[%u].bindings: missing", i);
    for (uint32_t b = 0; b < kernel->binding_count; ++b) {
        const uint32_t access = kernel->bindings[b].access;
        if ((access & ~known) || !(access & (BERTH_ACCESS_READ | BERTH_ACCESS_WRITE)))
            return BAD("kernels[%u].bindings[%u].access: %u is none", i, b, access);
    }
    return BERTH_OK;
}

static berth_status check_kernel(const berth_program *program, uint32_t i) {
    const berth_program_kernel *kernel = &program->kernels[i];
    if (kernel->executable >= program->executable_count)
        return BAD("kernels[%u].executable: %u of %u executables", i, kernel->executable,
                   program->executable_count);
    if (!kernel->entry || !*kernel->entry) return BAD("kernels[%u].entry: missing", i);
    bool flat = berth_device_kind_is_host(
        berth_device_kind_from_name(program->executables[kernel->executable].device_kind));
    int64_t total = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (kernel->groups[axis] == 0) return BAD("kernels[%u].groups[%d]: 0", i, axis);
        if (kernel->group_size[axis] == 0) return BAD("kernels[%u].group_size[%d]: 0", i, axis);
        if (flat && (kernel->group_size[axis] != 1 || (axis > 0 && kernel->groups[axis] != 1)))
            return BAD("kernels[%u]: a cpu kernel has groups [n, 1, 1] of size [1, 1, 1]", i);
        if (__builtin_mul_overflow(total, (int64_t)kernel->groups[axis], &total) ||
            __builtin_mul_overflow(total, (int64_t)kernel->group_size[axis], &total))
            return BAD("kernels[%u]: the grid has more items than 63 bits can count", i);
    }
    return check_declaration(kernel, i);
}

uint32_t berth_program_copy_peer(const berth_program *program, const berth_program_step *step) {
    if (step->kind != BERTH_STEP_COPY || berth_artifact__is_host(program, step->device))
        return BERTH_NO_INDEX;
    const char *kind = program->devices[step->device].kind;
    for (int b = 0; b < 2; ++b) {
        const berth_program_pool *pool = berth_artifact__pool_of(program, step->bindings[b]);
        if (!berth_program_pool_reached(pool, step->device) &&
            strcmp(program->devices[pool->device].kind, kind) == 0)
            return pool->device;
    }
    return BERTH_NO_INDEX;
}

// Whether the tensor is at the other end of a direct copy. The bytes of a shared pool are handed over
// by the queue of a device that has them: no other one copies there.
static bool is_at_peer(const berth_program *program, const berth_program_step *step,
                       const berth_program_pool *pool) {
    return step->kind == BERTH_STEP_COPY && !berth_artifact__is_host(program, step->device) &&
           strcmp(program->devices[pool->device].kind, program->devices[step->device].kind) == 0 &&
           berth_bits_is_empty(pool->shared_with);
}

static berth_status check_binding(const berth_program *program, uint32_t i, uint32_t b) {
    const berth_program_step *step = &program->steps[i];
    uint32_t tensor = step->bindings[b];
    if (tensor >= program->tensor_count)
        return BAD("steps[%u].bindings[%u]: %u of %u tensors", i, b, tensor, program->tensor_count);
    const berth_program_pool *pool = berth_artifact__pool_of(program, tensor);
    bool reachable =
        berth_program_pool_reached(pool, step->device) || is_at_peer(program, step, pool) ||
        (berth_artifact__is_host(program, pool->device) &&
         (step->kind == BERTH_STEP_COPY || berth_artifact__is_host(program, step->device)));
    if (!berth_bits_is_empty(pool->shared_with) &&
        !berth_artifact__is_host(program, step->device) &&
        berth_program_pool_reached(pool, step->device) &&
        !berth_artifact__is_first_queue(program, step->queue))
        return BAD("steps[%u].bindings[%u]: tensors[%u] is in a shared pool, which only the first "
                   "queue of \"%s\" uses, not queues[%u]",
                   i, b, tensor, program->devices[step->device].name, step->queue);
    if (!reachable)
        return BAD("steps[%u].bindings[%u]: tensors[%u] is on \"%s\", which \"%s\" does not reach",
                   i, b, tensor, program->devices[pool->device].name,
                   program->devices[step->device].name);
    return BERTH_OK;
}

static berth_status check_copy(const berth_program *program, uint32_t i) {
    const berth_program_step *step = &program->steps[i];
    if (!step->bindings) return BAD("steps[%u].bindings: missing", i);
    BERTH_TRY(check_binding(program, i, 0));
    BERTH_TRY(check_binding(program, i, 1));
    if (!berth_program_pool_reached(berth_artifact__pool_of(program, step->bindings[0]),
                                    step->device) &&
        !berth_program_pool_reached(berth_artifact__pool_of(program, step->bindings[1]),
                                    step->device))
        return BAD("steps[%u]: neither end of the copy is on \"%s\"", i,
                   program->devices[step->device].name);
    const berth_program_tensor *from = &program->tensors[step->bindings[0]];
    const berth_program_tensor *to = &program->tensors[step->bindings[1]];
    if (from->size_bytes != to->size_bytes)
        return BAD("steps[%u]: copies %llu bytes into a tensor of %llu", i,
                   (unsigned long long)from->size_bytes, (unsigned long long)to->size_bytes);
    if (from->pool == to->pool && from->offset_bytes < to->offset_bytes + to->size_bytes &&
        to->offset_bytes < from->offset_bytes + from->size_bytes)
        return BAD("steps[%u]: source and destination of the copy overlap", i);
    if (berth_artifact__holds_constants(&program->pools[to->pool]))
        return BAD("steps[%u]: copies into a constant pool", i);
    if (program->pools[from->pool].usage == BERTH_POOL_STORE &&
        program->pools[to->pool].usage != BERTH_POOL_WORKSPACE)
        return BAD("steps[%u]: copies from a store go into workspace", i);
    return BERTH_OK;
}

// A binding of a dispatch against what the kernel declares of it.
static berth_status check_access(const berth_program *program, uint32_t i, uint32_t b) {
    const berth_program_step *step = &program->steps[i];
    const berth_kernel_binding *declared = &program->kernels[step->kernel].bindings[b];
    const berth_program_tensor *tensor = &program->tensors[step->bindings[b]];
    if (tensor->size_bytes < declared->size_bytes)
        return BAD("steps[%u].bindings[%u]: kernels[%u] touches %llu bytes, tensors[%u] has %llu",
                   i, b, step->kernel, (unsigned long long)declared->size_bytes, step->bindings[b],
                   (unsigned long long)tensor->size_bytes);
    if (program->pools[tensor->pool].usage == BERTH_POOL_STORE)
        return BAD("steps[%u].bindings[%u]: tensors[%u] is in a store, which only copies read", i,
                   b, step->bindings[b]);
    if ((declared->access & BERTH_ACCESS_WRITE) &&
        program->pools[tensor->pool].usage == BERTH_POOL_CONSTANT)
        return BAD("steps[%u].bindings[%u]: kernels[%u] writes a constant", i, b, step->kernel);
    return BERTH_OK;
}

// No byte that a kernel writes is another binding's, but where both begin at the same byte and are
// declared for it. `ranges` has room for all bindings.
static berth_status check_overlap(const berth_program *program, uint32_t i,
                                  berth_artifact__range *ranges) {
    const berth_program_step *step = &program->steps[i];
    const berth_program_kernel *kernel = &program->kernels[step->kernel];
    uint32_t count = 0;
    for (uint32_t b = 0; b < kernel->binding_count; ++b) {
        berth_artifact__range r = berth_artifact__range_of(program, step->bindings[b], b);
        if (r.begin != r.end) ranges[count++] = r;
    }
    berth_artifact__sort_ranges(ranges, count);
    uint64_t read_end = 0, write_end = 0;  // of the ranges of this pool before `first`
    for (uint32_t first = 0, end = 0; first < count; first = end) {
        const berth_artifact__range *r = &ranges[first];
        if (first == 0 || ranges[first - 1].pool != r->pool) read_end = write_end = 0;
        bool writes = false, alias = true;
        for (end = first;
             end < count && ranges[end].pool == r->pool && ranges[end].begin == r->begin; ++end) {
            uint32_t access = kernel->bindings[ranges[end].record].access;
            writes |= (access & BERTH_ACCESS_WRITE) != 0;
            alias &= (access & BERTH_ACCESS_ALIAS) != 0;
        }
        if ((writes && end - first > 1 && !alias) || r->begin < write_end ||
            (writes && r->begin < read_end))
            return BAD("steps[%u].bindings[%u]: shares bytes with another binding, and kernels[%u] "
                       "writes them",
                       i, r->record, step->kernel);
        const berth_artifact__range *longest = &ranges[end - 1];
        if (longest->end > read_end) read_end = longest->end;
        if (writes && longest->end > write_end) write_end = longest->end;
    }
    return BERTH_OK;
}

static berth_status check_dispatch(const berth_program *program, uint32_t i,
                                   berth_artifact__range *ranges) {
    const berth_program_step *step = &program->steps[i];
    if (step->kernel >= program->kernel_count)
        return BAD("steps[%u].kernel: %u of %u kernels", i, step->kernel, program->kernel_count);
    const berth_program_kernel *kernel = &program->kernels[step->kernel];
    const char *code_kind = program->executables[kernel->executable].device_kind;
    const berth_program_device *device = &program->devices[step->device];
    if (strcmp(code_kind, device->kind) != 0)
        return BAD("steps[%u].kernel: code for %s on device \"%s\"", i, code_kind, device->name);
    if (kernel->binding_count && !step->bindings) return BAD("steps[%u].bindings: missing", i);
    if (kernel->constant_count && !step->constants) return BAD("steps[%u].constants: missing", i);
    for (uint32_t b = 0; b < kernel->binding_count; ++b) {
        BERTH_TRY(check_binding(program, i, b));
        BERTH_TRY(check_access(program, i, b));
    }
    return check_overlap(program, i, ranges);
}

static berth_status check_step(const berth_program *program, uint32_t i,
                               berth_artifact__range *ranges) {
    const berth_program_step *step = &program->steps[i];
    if (!step->name) return BAD("steps[%u].name: missing", i);
    if (!step->op) return BAD("steps[%u].op: missing", i);
    if (step->queue >= program->queue_count)
        return BAD("steps[%u].queue: %u of %u queues", i, step->queue, program->queue_count);
    if (step->device != program->queues[step->queue].device)
        return BAD("steps[%u].device: %u, but queues[%u] is of device %u", i, step->device,
                   step->queue, program->queues[step->queue].device);
    if (step->kind == BERTH_STEP_DISPATCH &&
        program->queues[step->queue].kind == BERTH_QUEUE_TRANSFER)
        return BAD("steps[%u]: a dispatch on queues[%u], which is for copies only", i, step->queue);
    if (step->wait_count && !step->waits) return BAD("steps[%u].waits: missing", i);
    for (uint32_t w = 0; w < step->wait_count; ++w) {
        if (step->waits[w] >= i)
            return BAD("steps[%u].waits[%u]: step %u is not an earlier one", i, w, step->waits[w]);
        if (program->steps[step->waits[w]].queue == step->queue)
            return BAD("steps[%u].waits[%u]: step %u is on the same queue, whose order is enough",
                       i, w, step->waits[w]);
    }
    switch (step->kind) {
    case BERTH_STEP_DISPATCH: return check_dispatch(program, i, ranges);
    case BERTH_STEP_COPY: return check_copy(program, i);
    }
    return BAD("steps[%u].kind: %u is unknown", i, (unsigned)step->kind);
}

berth_status berth_artifact__check_code(const berth_program *program,
                                        berth_artifact__range *ranges) {
    BERTH_TRY(check_executables(program));
    for (uint32_t i = 0; i < program->kernel_count; ++i) BERTH_TRY(check_kernel(program, i));
    for (uint32_t i = 0; i < program->step_count; ++i) BERTH_TRY(check_step(program, i, ranges));
    return BERTH_OK;
}
