#include "compiler/package/program_copy.h"

#include <string.h>

typedef struct copier {
    const berth_arena *from;
    berth_arena *to;
} copier;

static const char *text(const copier *c, const char *held) {
    return held ? berth_arena_strdup(c->to, held) : NULL;
}

static void *list(const copier *c, const void *data, size_t count, size_t element_bytes) {
    return count ? berth_arena_copy(c->to, data, count * element_bytes) : NULL;
}

#define COPY_LIST(c, data, count) list(c, data, count, sizeof(*(data)))

static const void *bytes(const copier *c, const void *data, uint64_t size_bytes, size_t alignment) {
    if (!data || !berth_arena_holds(c->from, data)) return data;
    void *copy = berth_arena_alloc_unset(c->to, (size_t)size_bytes, alignment);
    memcpy(copy, data, (size_t)size_bytes);
    return copy;
}

static void copy_memory(const copier *c, berth_program *p) {
    berth_program_pool *pools = COPY_LIST(c, p->pools, p->pool_count);
    berth_program_tensor *tensors = COPY_LIST(c, p->tensors, p->tensor_count);
    berth_program_constant *constants = COPY_LIST(c, p->constants, p->constant_count);
    for (uint32_t i = 0; i < p->pool_count; ++i) {
        pools[i].scope = text(c, pools[i].scope);
        pools[i].shared_with = berth_bits_copy(c->to, pools[i].shared_with);
    }
    for (uint32_t i = 0; i < p->tensor_count; ++i) {
        tensors[i].name = text(c, tensors[i].name);
        tensors[i].layout = text(c, tensors[i].layout);
    }
    for (uint32_t i = 0; i < p->constant_count; ++i)
        constants[i].data = bytes(c, constants[i].data, tensors[constants[i].tensor].size_bytes,
                                  BERTH_DEFAULT_ALIGNMENT_BYTES);
    p->pools = pools;
    p->tensors = tensors;
    p->constants = constants;
}

static const berth_program_io *copy_io(const copier *c, const berth_program_io *held,
                                       uint32_t count) {
    berth_program_io *copy = COPY_LIST(c, held, count);
    for (uint32_t i = 0; i < count; ++i) copy[i].name = text(c, copy[i].name);
    return copy;
}

static void copy_code(const copier *c, berth_program *p) {
    berth_executable_image *images = COPY_LIST(c, p->executables, p->executable_count);
    berth_program_kernel *kernels = COPY_LIST(c, p->kernels, p->kernel_count);
    for (uint32_t i = 0; i < p->executable_count; ++i) {
        images[i].device_kind = text(c, images[i].device_kind);
        images[i].format = text(c, images[i].format);
        images[i].options = text(c, images[i].options);
        images[i].external = text(c, images[i].external);
        images[i].data = bytes(c, images[i].data, images[i].size_bytes, 16);
    }
    for (uint32_t i = 0; i < p->kernel_count; ++i) {
        kernels[i].entry = text(c, kernels[i].entry);
        kernels[i].bindings = COPY_LIST(c, kernels[i].bindings, kernels[i].binding_count);
    }
    p->executables = images;
    p->kernels = kernels;
}

static void copy_steps(const copier *c, berth_program *p) {
    berth_program_step *steps = COPY_LIST(c, p->steps, p->step_count);
    for (uint32_t i = 0; i < p->step_count; ++i) {
        berth_program_step *step = &steps[i];
        bool copies = step->kind == BERTH_STEP_COPY;
        const berth_program_kernel *kernel = copies ? NULL : &p->kernels[step->kernel];
        step->bindings = COPY_LIST(c, step->bindings, copies ? 2 : kernel->binding_count);
        step->constants = COPY_LIST(c, step->constants, copies ? 0 : kernel->constant_count);
        step->waits = COPY_LIST(c, step->waits, step->wait_count);
        step->name = text(c, step->name);
        step->op = text(c, step->op);
    }
    p->steps = steps;
}

static const berth_program_check *copy_checks(const copier *c, const berth_program *p) {
    berth_program_check *checks = COPY_LIST(c, p->checks, p->check_count);
    for (uint32_t i = 0; i < p->check_count; ++i) checks[i].node = text(c, checks[i].node);
    return checks;
}

static void copy_reports(const copier *c, berth_program *p) {
    berth_program_placement *placements = COPY_LIST(c, p->placements, p->placement_count);
    berth_program_attachment *attachments = COPY_LIST(c, p->attachments, p->attachment_count);
    for (uint32_t i = 0; i < p->placement_count; ++i) {
        placements[i].node = text(c, placements[i].node);
        placements[i].op = text(c, placements[i].op);
        placements[i].reason = text(c, placements[i].reason);
    }
    for (uint32_t i = 0; i < p->attachment_count; ++i) {
        attachments[i].name = text(c, attachments[i].name);
        attachments[i].data = bytes(c, attachments[i].data, attachments[i].size_bytes, 16);
    }
    p->placements = placements;
    p->attachments = attachments;
}

const berth_program *berth_program_copy(const berth_program *program, const berth_arena *from,
                                        berth_arena *to) {
    const copier c = {from, to};
    berth_program *p = berth_arena_copy(to, program, sizeof(*program));
    berth_program_device *devices = COPY_LIST(&c, p->devices, p->device_count);
    for (uint32_t i = 0; i < p->device_count; ++i) {
        devices[i].name = text(&c, devices[i].name);
        devices[i].kind = text(&c, devices[i].kind);
        devices[i].target_json = text(&c, devices[i].target_json);
    }
    p->devices = devices;
    p->name = text(&c, p->name);
    p->target_json = text(&c, p->target_json);
    p->executor = text(&c, p->executor);
    p->queues = COPY_LIST(&c, p->queues, p->queue_count);
    copy_memory(&c, p);
    p->inputs = copy_io(&c, p->inputs, p->input_count);
    p->outputs = copy_io(&c, p->outputs, p->output_count);
    p->checks = copy_checks(&c, p);
    copy_code(&c, p);
    copy_steps(&c, p);
    copy_reports(&c, p);
    return p;
}
