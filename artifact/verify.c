// Checks of a program before anything in it is used. Linear in the records, O(n log n) for the
// overlap rules. That tensors whose lifetimes overlap have bytes of their own is the memory plan's
// own validator's matter; here every access that a kernel declares is proven to stay inside the
// tensors that a step binds.
#include <stdlib.h>
#include <string.h>

#include "artifact/verify.h"
#include "artifact/vm.h"

#define BAD BERTH_ARTIFACT__BAD

static bool power_of_two(uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

static berth_status check_devices(const berth_program *program) {
    for (uint32_t i = 0; i < program->device_count; ++i) {
        const berth_program_device *device = &program->devices[i];
        if (!device->name || !*device->name) return BAD("devices[%u].name: missing", i);
        if (!device->kind || !*device->kind) return BAD("devices[%u].kind: missing", i);
        if (!device->target_json) return BAD("devices[%u].target_json: missing", i);
        for (uint32_t j = 0; j < i; ++j) {
            const berth_program_device *other = &program->devices[j];
            if (strcmp(device->name, other->name) == 0)
                return BAD("devices[%u].name: \"%s\" is also devices[%u]", i, device->name, j);
            if (strcmp(device->kind, other->kind) == 0 && device->virtual_id == other->virtual_id)
                return BAD("devices[%u]: %s:%u is also devices[%u]", i, device->kind,
                           device->virtual_id, j);
        }
    }
    return BERTH_OK;
}

static berth_status check_queues(const berth_program *program) {
    for (uint32_t i = 0; i < program->queue_count; ++i) {
        const berth_program_queue *queue = &program->queues[i];
        if (queue->device >= program->device_count)
            return BAD("queues[%u].device: %u of %u devices", i, queue->device,
                       program->device_count);
        if ((unsigned)queue->kind > BERTH_QUEUE_TRANSFER)
            return BAD("queues[%u].kind: %u is unknown", i, (unsigned)queue->kind);
    }
    return BERTH_OK;
}

// Devices take turns with the bytes of shared pools, one batch of one queue at a time.
static berth_status check_shared(const berth_program *program, uint32_t i) {
    const berth_program_pool *pool = &program->pools[i];
    uint32_t last = program->device_count - 1;
    uint32_t beyond = berth_bits_next(pool->shared_with, last);
    if (beyond != BERTH_BITS_END)
        return BAD("pools[%u].shared_with: device %u is beyond the %u there are", i, beyond,
                   program->device_count);
    if (berth_bits_has(pool->shared_with, pool->device))
        return BAD("pools[%u].shared_with: names the pool's own device %u", i, pool->device);
    return BERTH_OK;
}

static berth_status check_pools(const berth_program *program) {
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        if (pool->device >= program->device_count)
            return BAD("pools[%u].device: %u of %u devices", i, pool->device,
                       program->device_count);
        BERTH_TRY(check_shared(program, i));
        if (!pool->scope || !*pool->scope) return BAD("pools[%u].scope: missing", i);
        if ((unsigned)pool->usage > BERTH_POOL_STORE)
            return BAD("pools[%u].usage: %u is unknown", i, (unsigned)pool->usage);
        if (!power_of_two(pool->alignment_bytes))
            return BAD("pools[%u].alignment_bytes: %u is not a power of two", i,
                       pool->alignment_bytes);
        if (pool->size_bytes > INT64_MAX / 4)
            return BAD("pools[%u].size_bytes: larger than memory can be", i);
        if (pool->usage == BERTH_POOL_STORE && !berth_artifact__is_host(program, pool->device))
            return BAD("pools[%u]: a store must be on a cpu device, not on \"%s\"", i,
                       program->devices[pool->device].name);
        if (pool->usage == BERTH_POOL_STORE && !berth_bits_is_empty(pool->shared_with))
            return BAD("pools[%u].shared_with: device %u, but a store is nobody's memory", i,
                       berth_bits_first(pool->shared_with));
    }
    return BERTH_OK;
}

static berth_status check_tensor(const berth_program *program, uint32_t i) {
    const berth_program_tensor *tensor = &program->tensors[i];
    if (!tensor->name) return BAD("tensors[%u].name: missing", i);
    if (!tensor->layout) return BAD("tensors[%u].layout: missing", i);
    if (tensor->pool >= program->pool_count)
        return BAD("tensors[%u].pool: %u of %u pools", i, tensor->pool, program->pool_count);
    if (berth_dtype_size_bytes(tensor->dtype) == 0 || tensor->dtype == BERTH_DTYPE_STRING)
        return BAD("tensors[%u].dtype: %u is unknown, or strings", i, (unsigned)tensor->dtype);
    size_t dense_bytes = 0;
    berth_status status =
        berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, NULL, &dense_bytes);
    if (status) return berth_status_prefix(status, "tensors[%u].dims", i);
    if (tensor->size_bytes < dense_bytes || (!*tensor->layout && tensor->size_bytes != dense_bytes))
        return BAD("tensors[%u].size_bytes: %llu, but the shape needs %zu", i,
                   (unsigned long long)tensor->size_bytes, dense_bytes);
    const berth_program_pool *pool = &program->pools[tensor->pool];
    if (pool->alignment_bytes < berth_dtype_size_bytes(tensor->dtype))
        return BAD("tensors[%u].dtype: elements of %zu bytes in pools[%u], which is aligned to %u",
                   i, berth_dtype_size_bytes(tensor->dtype), tensor->pool, pool->alignment_bytes);
    if (tensor->offset_bytes % pool->alignment_bytes != 0)
        return BAD("tensors[%u].offset_bytes: %llu is not a multiple of the pool's alignment %u", i,
                   (unsigned long long)tensor->offset_bytes, pool->alignment_bytes);
    if (tensor->offset_bytes > pool->size_bytes ||
        tensor->size_bytes > pool->size_bytes - tensor->offset_bytes)
        return BAD("tensors[%u]: bytes [%llu, +%llu) leave pools[%u] of %llu bytes", i,
                   (unsigned long long)tensor->offset_bytes, (unsigned long long)tensor->size_bytes,
                   tensor->pool, (unsigned long long)pool->size_bytes);
    return BERTH_OK;
}

// ---- ranges that must not overlap ----

// Outputs may be the same bytes as an input or another output (the model passes a value through);
// nothing else may share a byte.
static bool may_share(const berth_artifact__range *a, const berth_artifact__range *b) {
    return (a->is_output || b->is_output) && a->begin == b->begin && a->end == b->end;
}

static berth_status check_disjoint(const char *what, berth_artifact__range *ranges, size_t count) {
    berth_artifact__sort_ranges(ranges, count);
    const berth_artifact__range *widest = NULL;  // of the pool so far: the one that ends last
    for (size_t i = 0; i < count; ++i) {
        const berth_artifact__range *r = &ranges[i];
        if (r->begin == r->end) continue;
        if (widest && widest->pool == r->pool && r->begin < widest->end && !may_share(widest, r))
            return BAD("%s: the bytes of tensors[%u] and tensors[%u] overlap", what, widest->tensor,
                       r->tensor);
        if (!widest || widest->pool != r->pool || r->end > widest->end || !r->is_output) widest = r;
    }
    return BERTH_OK;
}

static berth_status check_constants(const berth_program *program, berth_artifact__range *ranges) {
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_constant *constant = &program->constants[i];
        if (constant->tensor >= program->tensor_count)
            return BAD("constants[%u].tensor: %u of %u tensors", i, constant->tensor,
                       program->tensor_count);
        const berth_program_tensor *tensor = &program->tensors[constant->tensor];
        if (!berth_artifact__holds_constants(&program->pools[tensor->pool]))
            return BAD("constants[%u]: tensors[%u] is not in a constant pool", i, constant->tensor);
        if (!constant->data && tensor->size_bytes) return BAD("constants[%u].data: missing", i);
        ranges[i] = berth_artifact__range_of(program, constant->tensor, i);
    }
    return check_disjoint("constants", ranges, program->constant_count);
}

static berth_status check_io_list(const berth_program *program, const char *what,
                                  const berth_program_io *list, uint32_t count,
                                  berth_artifact__range *ranges) {
    for (uint32_t i = 0; i < count; ++i) {
        if (!list[i].name) return BAD("%s[%u].name: missing", what, i);
        for (uint32_t j = 0; j < i; ++j)
            if (strcmp(list[i].name, list[j].name) == 0)
                return BAD("%s[%u].name: \"%s\" is also %s[%u]", what, i, list[i].name, what, j);
        if (list[i].tensor >= program->tensor_count)
            return BAD("%s[%u].tensor: %u of %u tensors", what, i, list[i].tensor,
                       program->tensor_count);
        const berth_program_tensor *tensor = &program->tensors[list[i].tensor];
        berth_program_room room;  // of an output that continues an input of its segment
        bool grows = list == program->outputs && list[i].continues &&
                     berth_program_tensor_room(tensor, &room);
        if (!grows && (*tensor->layout || list[i].continues))
            return BAD("%s[%u]: layout \"%s\"; inputs and outputs are row-major", what, i,
                       tensor->layout);
        if (program->pools[tensor->pool].usage != BERTH_POOL_IO)
            return BAD("%s[%u]: tensors[%u] is not in an input/output pool", what, i,
                       list[i].tensor);
        ranges[i] = berth_artifact__range_of(program, list[i].tensor, i);
    }
    return BERTH_OK;
}

static berth_status check_io(const berth_program *program, berth_artifact__range *ranges) {
    berth_artifact__range *outputs = ranges + program->input_count;
    BERTH_TRY(check_io_list(program, "inputs", program->inputs, program->input_count, ranges));
    BERTH_TRY(check_io_list(program, "outputs", program->outputs, program->output_count, outputs));
    for (uint32_t i = 0; i < program->output_count; ++i) outputs[i].is_output = true;
    return check_disjoint("inputs and outputs", ranges,
                          (size_t)program->input_count + program->output_count);
}

static berth_status check_placements(const berth_program *program) {
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *placement = &program->placements[i];
        if (!placement->node || !placement->op || !placement->reason)
            return BAD("placements[%u]: a text is missing", i);
        if (placement->device >= program->device_count)
            return BAD("placements[%u].device: %u of %u devices", i, placement->device,
                       program->device_count);
    }
    return BERTH_OK;
}

// They are only read, after the steps: what they overlap does not matter.
static berth_status check_checks(const berth_program *program) {
    for (uint32_t i = 0; i < program->check_count; ++i) {
        const berth_program_check *check = &program->checks[i];
        if (!check->node) return BAD("checks[%u].node: missing", i);
        if (check->tensor >= program->tensor_count)
            return BAD("checks[%u].tensor: %u of %u tensors", i, check->tensor,
                       program->tensor_count);
        const berth_program_tensor *tensor = &program->tensors[check->tensor];
        if (*tensor->layout || !berth_dtype_is_integer(tensor->dtype) ||
            program->pools[tensor->pool].usage != BERTH_POOL_IO ||
            !berth_artifact__is_host(program, program->pools[tensor->pool].device))
            return BAD("checks[%u]: tensors[%u] holds no row-major integers for the host", i,
                       check->tensor);
        if (check->width < 1 || check->width > BERTH_MAX_RANK)
            return BAD("checks[%u].width: %u", i, check->width);
        for (uint32_t k = 0; k < check->width; ++k)
            if (check->extents[k] < 0)
                return BAD("checks[%u].extents[%u]: %lld", i, k, (long long)check->extents[k]);
    }
    return BERTH_OK;
}

static bool is_relative_path(const char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    for (;;) {
        size_t length = strspn(name, allowed);
        if (length == 0 || strspn(name, ".") == length) return false;
        if (name[length] == '\0') return true;
        if (name[length] != '/') return false;
        name += length + 1;
    }
}

static berth_status check_attachments(const berth_program *program) {
    for (uint32_t i = 0; i < program->attachment_count; ++i) {
        const berth_program_attachment *attached = &program->attachments[i];
        if (!attached->name || !is_relative_path(attached->name))
            return BAD("attachments[%u].name: is no path within a folder", i);
        if (!attached->data && attached->size_bytes) return BAD("attachments[%u].data: missing", i);
    }
    return BERTH_OK;
}

// Names are compared pairwise; the bounds keep a hostile file from making that slow.
enum { max_devices = 4096, max_queues = 8192, max_io = 16384 };

static berth_status check_lists(const berth_program *program) {
#define LIST(list, count)                                                                          \
    if (program->count && !program->list) return BAD(#list ": missing")
    LIST(devices, device_count);
    LIST(queues, queue_count);
    LIST(pools, pool_count);
    LIST(tensors, tensor_count);
    LIST(constants, constant_count);
    LIST(inputs, input_count);
    LIST(outputs, output_count);
    LIST(checks, check_count);
    LIST(executables, executable_count);
    LIST(kernels, kernel_count);
    LIST(steps, step_count);
    LIST(placements, placement_count);
    LIST(attachments, attachment_count);
    LIST(fallbacks, fallback_count);
#undef LIST
    if (program->device_count > max_devices)
        return BAD("devices: %u; at most %d", program->device_count, max_devices);
    if (program->queue_count > max_queues)
        return BAD("queues: %u; at most %d", program->queue_count, max_queues);
    if (program->input_count > max_io || program->output_count > max_io)
        return BAD("%u inputs and %u outputs; at most %d", program->input_count,
                   program->output_count, max_io);
    if (!program->name || !program->target_json || !program->executor)
        return BAD("name, target or executor of the program is missing");
    bool vm = strcmp(program->executor, "vm") == 0;
    if (!vm && strcmp(program->executor, "graph") != 0 && strcmp(program->executor, "aot") != 0)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "executor \"%s\" is unknown; this version has \"graph\", \"vm\" "
                                 "and \"aot\"",
                                 program->executor);
    if (vm != (program->vm != NULL))
        return BAD("a program of executor \"%s\" %s byte code", program->executor,
                   vm ? "without" : "with");
    if (vm && (program->step_count || program->input_count || program->output_count ||
               program->check_count || program->fallback_count))
        return BAD(
            "executor \"vm\": it has steps, inputs, outputs, checks or fallbacks of its own");
    return BERTH_OK;
}

static berth_status check_all(const berth_program *program, berth_artifact__range *ranges) {
    BERTH_TRY(check_devices(program));
    BERTH_TRY(check_queues(program));
    BERTH_TRY(check_pools(program));
    for (uint32_t i = 0; i < program->tensor_count; ++i) BERTH_TRY(check_tensor(program, i));
    BERTH_TRY(check_constants(program, ranges));
    BERTH_TRY(check_io(program, ranges));
    BERTH_TRY(check_checks(program));
    BERTH_TRY(berth_artifact__check_code(program, ranges));
    BERTH_TRY(check_placements(program));
    return check_attachments(program);
}

// ---- fallbacks ----

static berth_status check_same_ports(const char *what, const berth_program *a,
                                     const berth_program_io *of_a, const berth_program *b,
                                     const berth_program_io *of_b, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *x = &a->tensors[of_a[i].tensor];
        const berth_program_tensor *y = &b->tensors[of_b[i].tensor];
        if (strcmp(of_a[i].name, of_b[i].name) != 0 || x->dtype != y->dtype || x->rank != y->rank ||
            memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(*x->dims)) != 0)
            return BAD("%s[%u] \"%s\" is not that of the program, \"%s\", in name, element type or "
                       "shape",
                       what, i, of_b[i].name, of_a[i].name);
    }
    return BERTH_OK;
}

static berth_status check_fallback(const berth_program *program, const berth_program *fallback) {
    if (fallback && fallback->fallback_count) return BAD("it has fallbacks of its own");
    BERTH_TRY(berth_program_verify(fallback));
    if (strcmp(fallback->executor, program->executor) != 0)
        return BAD("its executor is \"%s\", that of the program \"%s\"", fallback->executor,
                   program->executor);
    if (fallback->input_count != program->input_count ||
        fallback->output_count != program->output_count)
        return BAD("it has %u inputs and %u outputs, the program %u and %u", fallback->input_count,
                   fallback->output_count, program->input_count, program->output_count);
    BERTH_TRY(check_same_ports("inputs", program, program->inputs, fallback, fallback->inputs,
                               program->input_count));
    return check_same_ports("outputs", program, program->outputs, fallback, fallback->outputs,
                            program->output_count);
}

static berth_status check_fallbacks(const berth_program *program) {
    for (uint32_t i = 0; i < program->fallback_count; ++i) {
        berth_status status = check_fallback(program, program->fallbacks[i]);
        if (status) return berth_status_prefix(status, "fallbacks[%u]", i);
    }
    return BERTH_OK;
}

// ---- byte code ----

static berth_status check_vm(const berth_vm_body *vm) {
    for (uint32_t i = 0; vm && i < vm->variant_count; ++i) {
        const berth_program *program = vm->variants[i].program;
        if (!program) continue;
        berth_status status = program->vm ? BAD("it has byte code of its own") : BERTH_OK;
        if (!status) status = berth_program_verify(program);
        if (status) return berth_status_prefix(status, "variants[%u]", i);
    }
    return vm ? berth_vm_body_verify(vm) : BERTH_OK;
}

berth_status berth_program_verify(const berth_program *program) {
    if (!program) return BAD("the program is missing");
    BERTH_TRY(check_lists(program));
    size_t io_count = (size_t)program->input_count + program->output_count;
    size_t count = io_count > program->constant_count ? io_count : program->constant_count;
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].binding_count > count) count = program->kernels[i].binding_count;
    berth_artifact__range *ranges = calloc(count ? count : 1, sizeof(*ranges));
    if (!ranges) return berth_status_oom();
    berth_status status = check_all(program, ranges);
    free(ranges);
    if (!status) status = check_vm(program->vm);
    return status ? status : check_fallbacks(program);
}
