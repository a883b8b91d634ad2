#include "tests/artifact/random_program.h"

#include <string.h>

typedef struct maker {
    berth_arena *arena;
    uint64_t state;
    berth_program *program;
    berth_kernel_binding *declared[8];  // of the kernels
} maker;

static uint32_t pick(maker *m, uint32_t limit) {  // xorshift64*; [0, limit)
    m->state ^= m->state >> 12;
    m->state ^= m->state << 25;
    m->state ^= m->state >> 27;
    return (uint32_t)((m->state * 0x2545F4914F6CDD1Dull) >> 33) % limit;
}

static const char *name_of(maker *m, const char *stem, uint32_t index) {
    return berth_arena_printf(m->arena, "%s%u", stem, index);
}

static void *random_bytes(maker *m, size_t size_bytes) {
    uint8_t *data = berth_arena_alloc(m->arena, size_bytes);
    for (size_t i = 0; i < size_bytes; ++i) data[i] = (uint8_t)pick(m, 256);
    return data;
}

static void make_devices(maker *m) {
    uint32_t count = 1 + pick(m, 3);
    berth_program_device *devices = berth_arena_new_array(m->arena, berth_program_device, count);
    for (uint32_t i = 0; i < count; ++i) {
        devices[i].kind = i == 0 ? "cpu" : "opencl";
        devices[i].virtual_id = i == 0 ? 0 : i - 1;
        devices[i].name =
            berth_arena_printf(m->arena, "%s:%u", devices[i].kind, devices[i].virtual_id);
        devices[i].host_only = i == 0 && pick(m, 2);
        devices[i].target_json = berth_arena_printf(m->arena, "{\"kind\":\"%s\"}", devices[i].kind);
    }
    m->program->devices = devices;
    m->program->device_count = count;
    berth_program_queue *queues = berth_arena_new_array(m->arena, berth_program_queue, count + 2);
    uint32_t extra = pick(m, 3);
    for (uint32_t i = 0; i < count; ++i) queues[i] = (berth_program_queue){i, BERTH_QUEUE_COMPUTE};
    for (uint32_t i = 0; i < extra; ++i)
        queues[count + i] = (berth_program_queue){pick(m, count), BERTH_QUEUE_TRANSFER};
    m->program->queues = queues;
    m->program->queue_count = count + extra;
}

// Pools: per device a workspace and a constant pool, a store in every other program, and one of input
// and output on the cpu.
static void make_pools(maker *m) {
    uint32_t store = pick(m, 2), count = 2 * m->program->device_count + store + 1;
    berth_program_pool *pools = berth_arena_new_array(m->arena, berth_program_pool, count);
    for (uint32_t i = 0; i < count; ++i) {
        pools[i].device = i / 2 % m->program->device_count;
        pools[i].usage = i % 2 ? BERTH_POOL_CONSTANT : BERTH_POOL_WORKSPACE;
        pools[i].scope = pick(m, 2) ? "global" : "numa:0";
        pools[i].alignment_bytes = 64u << pick(m, 2);
        pools[i].lower_bound_bytes = pick(m, 100);
        uint64_t own = (uint64_t)1 << pools[i].device;
        pools[i].shared_with.word = pick(m, 1u << m->program->device_count) & ~own;
    }
    for (uint32_t i = count - 1 - store; i < count; ++i) pools[i].device = 0;
    if (store) pools[count - 2].usage = BERTH_POOL_STORE;
    if (store) pools[count - 2].shared_with = (berth_bits){0};
    pools[count - 1].usage = BERTH_POOL_IO;
    m->program->pools = pools;
    m->program->pool_count = count;
}

static void make_tensors(maker *m, berth_program_pool *pools, uint32_t count) {
    berth_program_tensor *tensors = berth_arena_new_array(m->arena, berth_program_tensor, count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_program_tensor *t = &tensors[i];
        t->name = pick(m, 3) ? name_of(m, "t", i) : "";
        t->pool = i < m->program->pool_count ? i : pick(m, m->program->pool_count);
        t->dtype = (berth_dtype)(1 + pick(m, BERTH_DTYPE_COUNT - 1));
        t->rank = (int)pick(m, BERTH_MAX_RANK + 1);
        for (int d = 0; d < t->rank; ++d) t->dims[d] = pick(m, 4) ? 1 + pick(m, 2) : pick(m, 5);
        size_t size_bytes = 0;
        berth_status_ignore(berth_shape_size_bytes(t->dtype, t->rank, t->dims, NULL, &size_bytes));
        bool blocked = pools[t->pool].usage == BERTH_POOL_WORKSPACE && pick(m, 2);
        t->layout = blocked ? "blocked" : "";
        t->size_bytes = size_bytes + (blocked ? 16 : 0);
        berth_program_pool *pool = &pools[t->pool];
        t->offset_bytes = pool->size_bytes;
        pool->size_bytes += (t->size_bytes + pool->alignment_bytes - 1) / pool->alignment_bytes *
                            pool->alignment_bytes;
    }
    m->program->tensors = tensors;
    m->program->tensor_count = count;
}

static void make_constants_and_io(maker *m) {
    berth_program *p = m->program;
    berth_program_constant *constants =
        berth_arena_new_array(m->arena, berth_program_constant, p->tensor_count);
    berth_program_io *inputs = berth_arena_new_array(m->arena, berth_program_io, p->tensor_count);
    berth_program_io *outputs = berth_arena_new_array(m->arena, berth_program_io, p->tensor_count);
    for (uint32_t i = 0; i < p->tensor_count; ++i) {
        berth_pool_usage usage = p->pools[p->tensors[i].pool].usage;
        if ((usage == BERTH_POOL_CONSTANT || usage == BERTH_POOL_STORE) && pick(m, 4))
            constants[p->constant_count++] =
                (berth_program_constant){i, random_bytes(m, (size_t)p->tensors[i].size_bytes)};
        if (usage != BERTH_POOL_IO) continue;
        if (pick(m, 2)) inputs[p->input_count++] = (berth_program_io){name_of(m, "in", i), i, 0};
        if (p->input_count == 0 || inputs[p->input_count - 1].tensor != i || pick(m, 4) == 0)
            outputs[p->output_count++] = (berth_program_io){name_of(m, "out", i), i, 0};
    }
    p->constants = constants;
    p->inputs = inputs;
    p->outputs = outputs;
}

static void make_code(maker *m) {
    berth_program *p = m->program;
    berth_executable_image *images = berth_arena_new_array(m->arena, berth_executable_image, 2);
    uint32_t kernel_count = 2 + pick(m, 6);
    berth_program_kernel *kernels =
        berth_arena_new_array(m->arena, berth_program_kernel, kernel_count);
    for (uint32_t i = 0; i < 2; ++i) {
        images[i].device_kind = i ? "opencl" : "cpu";
        images[i].format = i ? BERTH_FORMAT_OPENCL_C : BERTH_FORMAT_CPU_ELF;
        images[i].options = pick(m, 2) ? "" : "-cl-fast";
        images[i].external = pick(m, 2) ? "" : "@f, language \"c\"";
        images[i].size_bytes = 1 + pick(m, 300);
        images[i].data = random_bytes(m, (size_t)images[i].size_bytes);
    }
    for (uint32_t i = 0; i < kernel_count; ++i) {
        kernels[i] = (berth_program_kernel){.executable = i % 2,
                                            .entry = name_of(m, "kernel", i),
                                            .binding_count = pick(m, 4),
                                            .constant_count = pick(m, 3),
                                            .groups = {1 + pick(m, 9), 1, 1},
                                            .group_size = {1, 1, 1},
                                            .scratch_bytes = pick(m, 2) * 64,
                                            .flops = pick(m, 1000) / 8.0,
                                            .bytes = pick(m, 1000)};
        berth_kernel_binding *declared =
            berth_arena_new_array(m->arena, berth_kernel_binding, kernels[i].binding_count);
        for (uint32_t b = 0; b < kernels[i].binding_count; ++b)
            declared[b] = (berth_kernel_binding){
                .size_bytes = pick(m, 50),  // make_step lowers it to what is bound
                .access = BERTH_ACCESS_READ | (pick(m, 2) ? BERTH_ACCESS_ALIAS : 0u)};
        kernels[i].bindings = m->declared[i] = declared;
        if (i % 2) kernels[i].group_size[1] = kernels[i].groups[2] = 1 + pick(m, 5);
    }
    p->executables = images;
    p->executable_count = 2;
    p->kernels = kernels;
    p->kernel_count = kernel_count;
}

static uint32_t tensor_on(maker *m,
                          uint32_t device) {  // every pool has a tensor, so every device has one
    const berth_program *p = m->program;
    for (;;) {
        uint32_t tensor = pick(m, p->tensor_count);
        const berth_program_pool *pool = &p->pools[p->tensors[tensor].pool];
        if (pool->device == device && pool->usage != BERTH_POOL_STORE) return tensor;
    }
}

// A copy that keeps the rules, or false.
static bool make_copy(maker *m, berth_program_step *step, uint32_t *bindings) {
    const berth_program *p = m->program;
    for (int attempt = 0; attempt < 50; ++attempt) {
        bool any = pick(m, 2);  // also of the store
        bindings[0] = any ? pick(m, p->tensor_count) : tensor_on(m, pick(m, 2) ? step->device : 0);
        bindings[1] = tensor_on(m, step->device);
        const berth_program_tensor *from = &p->tensors[bindings[0]];
        const berth_program_tensor *to = &p->tensors[bindings[1]];
        const berth_program_pool *source = &p->pools[from->pool];
        bool store = source->usage == BERTH_POOL_STORE;
        if (any && !store) continue;
        if (store && p->pools[to->pool].usage != BERTH_POOL_WORKSPACE) continue;
        if (from != to && from->size_bytes == to->size_bytes &&
            p->pools[to->pool].usage != BERTH_POOL_CONSTANT)
            return true;
    }
    return false;
}

static void make_step(maker *m, berth_program_step *steps, uint32_t i) {
    const berth_program *p = m->program;
    berth_program_step *step = &steps[i];
    step->queue = pick(m, p->queue_count);
    step->device = p->queues[step->queue].device;
    step->name = name_of(m, "step", i);
    step->op = pick(m, 2) ? "Conv+Relu" : "Add";
    uint32_t *bindings = berth_arena_new_array(m->arena, uint32_t, 4);
    step->bindings = bindings;
    if (pick(m, 3) == 0 && make_copy(m, step, bindings)) {
        step->kind = BERTH_STEP_COPY;
        step->op = "copy";
        bool shared = !berth_bits_is_empty(p->pools[p->tensors[bindings[0]].pool].shared_with) ||
                      !berth_bits_is_empty(p->pools[p->tensors[bindings[1]].pool].shared_with);
        if (shared) step->queue = step->device;  // the first queue of the device
    } else {
        step->queue = step->device;
        step->kind = BERTH_STEP_DISPATCH;
        do step->kernel = pick(m, p->kernel_count);
        while (step->kernel % 2 != (step->device ? 1 : 0));
        for (uint32_t b = 0; b < p->kernels[step->kernel].binding_count; ++b) {
            bindings[b] = tensor_on(m, step->device);
            uint64_t *declared = &m->declared[step->kernel][b].size_bytes;
            if (*declared > p->tensors[bindings[b]].size_bytes)
                *declared = p->tensors[bindings[b]].size_bytes;
        }
        int64_t *constants = berth_arena_new_array(m->arena, int64_t, 2);
        constants[0] = -(int64_t)pick(m, 1000);
        constants[1] = INT64_MAX - pick(m, 1000);
        step->constants = constants;
    }
    uint32_t *waits = berth_arena_new_array(m->arena, uint32_t, i);
    for (uint32_t w = 0; w < i; ++w)
        if (steps[w].queue != step->queue && pick(m, 3) == 0) waits[step->wait_count++] = w;
    step->waits = waits;
}

static void make_attachments(maker *m) {
    uint32_t count = pick(m, 3);
    berth_program_attachment *attached =
        berth_arena_new_array(m->arena, berth_program_attachment, count);
    for (uint32_t i = 0; i < count; ++i) {
        attached[i].name = name_of(m, "kernels/", i);
        attached[i].size_bytes = pick(m, 300);
        attached[i].data = random_bytes(m, (size_t)attached[i].size_bytes);
    }
    m->program->attachments = attached;
    m->program->attachment_count = count;
}

static void make_checks(maker *m) {
    berth_program *p = m->program;
    berth_program_check *checks =
        berth_arena_new_array(m->arena, berth_program_check, p->tensor_count);
    for (uint32_t i = 0; i < p->tensor_count; ++i) {
        const berth_program_tensor *tensor = &p->tensors[i];
        berth_program_check *check = &checks[p->check_count];
        if (p->pools[tensor->pool].usage != BERTH_POOL_IO || *tensor->layout ||
            !berth_dtype_is_integer(tensor->dtype) || pick(m, 2))
            continue;
        *check = (berth_program_check){
            name_of(m, "pick", i), i, pick(m, 2) == 1, 1 + pick(m, BERTH_MAX_RANK), {0}};
        for (uint32_t k = 0; k < check->width; ++k) check->extents[k] = pick(m, 1000);
        p->check_count++;
    }
    p->checks = checks;
}

static void make_placements(maker *m) {
    uint32_t count = pick(m, 4);
    berth_program_placement *placements =
        berth_arena_new_array(m->arena, berth_program_placement, count);
    for (uint32_t i = 0; i < count; ++i)
        placements[i] = (berth_program_placement){name_of(m, "node", i), "Conv",
                                                  pick(m, m->program->device_count),
                                                  "default device", pick(m, 2) == 1};
    m->program->placements = placements;
    m->program->placement_count = count;
}

berth_program *random_program(berth_arena *arena, uint64_t seed) {
    maker m = {
        .arena = arena, .state = seed * 2 + 1, .program = berth_arena_new(arena, berth_program)};
    berth_program *p = m.program;
    for (int i = 0; i < 8; ++i) pick(&m, 2);
    p->name = name_of(&m, "model", (uint32_t)seed);
    p->target_json = "{\"kind\":\"multi\"}";
    p->executor = "graph";
    p->predicted_ns = pick(&m, 1000) / 16.0;
    make_devices(&m);
    make_pools(&m);
    berth_program_pool *pools = berth_arena_copy(arena, p->pools, p->pool_count * sizeof(*pools));
    p->pools = pools;
    make_tensors(&m, pools, p->pool_count + pick(&m, 12));
    make_constants_and_io(&m);
    make_code(&m);
    p->step_count = pick(&m, 10);
    berth_program_step *steps = berth_arena_new_array(arena, berth_program_step, p->step_count);
    for (uint32_t i = 0; i < p->step_count; ++i) make_step(&m, steps, i);
    p->steps = steps;
    make_checks(&m);
    make_placements(&m);
    make_attachments(&m);
    return p;
}

// ---- comparison ----

#define SAME(condition, what)                                                                      \
    if (!(condition)) return what
#define SAME_TEXT(x, y, what) SAME(strcmp((x), (y)) == 0, what)

static bool same_bytes(const void *a, const void *b, size_t size_bytes) {
    return size_bytes == 0 || memcmp(a, b, size_bytes) == 0;
}

static const char *memory_difference(const berth_program *a, const berth_program *b) {
    for (uint32_t i = 0; i < a->pool_count; ++i) {
        const berth_program_pool *x = &a->pools[i], *y = &b->pools[i];
        SAME_TEXT(x->scope, y->scope, "pool scope");
        SAME(x->device == y->device && x->usage == y->usage && x->size_bytes == y->size_bytes &&
                 x->alignment_bytes == y->alignment_bytes &&
                 x->lower_bound_bytes == y->lower_bound_bytes &&
                 berth_bits_equal(x->shared_with, y->shared_with),
             "pool");
    }
    for (uint32_t i = 0; i < a->tensor_count; ++i) {
        const berth_program_tensor *x = &a->tensors[i], *y = &b->tensors[i];
        SAME_TEXT(x->name, y->name, "tensor name");
        SAME_TEXT(x->layout, y->layout, "tensor layout");
        SAME(x->pool == y->pool && x->offset_bytes == y->offset_bytes &&
                 x->size_bytes == y->size_bytes && x->dtype == y->dtype && x->rank == y->rank &&
                 same_bytes(x->dims, y->dims, sizeof(x->dims)),
             "tensor");
    }
    for (uint32_t i = 0; i < a->constant_count; ++i) {
        const berth_program_constant *x = &a->constants[i], *y = &b->constants[i];
        SAME(x->tensor == y->tensor &&
                 same_bytes(x->data, y->data, (size_t)a->tensors[x->tensor].size_bytes),
             "constant");
    }
    return NULL;
}

static const char *io_difference(const berth_program_io *a, const berth_program_io *b,
                                 uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        SAME_TEXT(a[i].name, b[i].name, "input or output name");
        SAME(a[i].tensor == b[i].tensor, "input or output tensor");
    }
    return NULL;
}

static const char *code_difference(const berth_program *a, const berth_program *b) {
    for (uint32_t i = 0; i < a->executable_count; ++i) {
        const berth_executable_image *x = &a->executables[i], *y = &b->executables[i];
        SAME_TEXT(x->device_kind, y->device_kind, "image kind");
        SAME_TEXT(x->format, y->format, "image format");
        SAME_TEXT(x->options, y->options, "image options");
        SAME_TEXT(x->external, y->external, "image external");
        SAME(x->size_bytes == y->size_bytes && same_bytes(x->data, y->data, (size_t)x->size_bytes),
             "image");
    }
    for (uint32_t i = 0; i < a->kernel_count; ++i) {
        const berth_program_kernel *x = &a->kernels[i], *y = &b->kernels[i];
        SAME_TEXT(x->entry, y->entry, "kernel entry");
        SAME(x->binding_count == y->binding_count, "kernel bindings");
        for (uint32_t k = 0; k < x->binding_count; ++k)
            SAME(x->bindings[k].size_bytes == y->bindings[k].size_bytes &&
                     x->bindings[k].access == y->bindings[k].access,
                 "kernel binding");
        SAME(x->executable == y->executable && x->binding_count == y->binding_count &&
                 x->constant_count == y->constant_count &&
                 same_bytes(x->groups, y->groups, sizeof(x->groups)) &&
                 same_bytes(x->group_size, y->group_size, sizeof(x->group_size)) &&
                 x->scratch_bytes == y->scratch_bytes && x->flops == y->flops &&
                 x->bytes == y->bytes,
             "kernel");
    }
    return NULL;
}

static const char *check_difference(const berth_program *a, const berth_program *b) {
    for (uint32_t i = 0; i < a->check_count; ++i) {
        const berth_program_check *x = &a->checks[i], *y = &b->checks[i];
        SAME_TEXT(x->node, y->node, "check node");
        SAME(x->tensor == y->tensor && x->from_end == y->from_end && x->width == y->width &&
                 same_bytes(x->extents, y->extents, sizeof(x->extents)),
             "check");
    }
    return NULL;
}

static const char *step_difference(const berth_program *a, const berth_program *b) {
    for (uint32_t i = 0; i < a->step_count; ++i) {
        const berth_program_step *x = &a->steps[i], *y = &b->steps[i];
        SAME_TEXT(x->name, y->name, "step name");
        SAME_TEXT(x->op, y->op, "step op");
        SAME(x->kind == y->kind && x->device == y->device && x->wait_count == y->wait_count,
             "step");
        uint32_t bindings = 2, constants = 0;
        if (x->kind == BERTH_STEP_DISPATCH) {
            SAME(x->kernel == y->kernel, "step kernel");
            bindings = a->kernels[x->kernel].binding_count;
            constants = a->kernels[x->kernel].constant_count;
        }
        SAME(same_bytes(x->bindings, y->bindings, bindings * sizeof(uint32_t)), "step bindings");
        SAME(same_bytes(x->constants, y->constants, constants * sizeof(int64_t)), "step constants");
        SAME(same_bytes(x->waits, y->waits, x->wait_count * sizeof(uint32_t)), "step waits");
    }
    return NULL;
}

const char *program_difference(const berth_program *a, const berth_program *b) {
    SAME(a->device_count == b->device_count && a->pool_count == b->pool_count &&
             a->tensor_count == b->tensor_count && a->constant_count == b->constant_count &&
             a->input_count == b->input_count && a->output_count == b->output_count &&
             a->executable_count == b->executable_count && a->kernel_count == b->kernel_count &&
             a->step_count == b->step_count && a->placement_count == b->placement_count &&
             a->queue_count == b->queue_count && a->attachment_count == b->attachment_count &&
             a->check_count == b->check_count,
         "counts");
    SAME_TEXT(a->name, b->name, "name");
    SAME_TEXT(a->target_json, b->target_json, "target");
    SAME_TEXT(a->executor, b->executor, "executor");
    SAME(a->predicted_ns == b->predicted_ns, "predicted_ns");
    for (uint32_t i = 0; i < a->queue_count; ++i)
        SAME(a->queues[i].device == b->queues[i].device && a->queues[i].kind == b->queues[i].kind,
             "queue");
    for (uint32_t i = 0; i < a->attachment_count; ++i) {
        const berth_program_attachment *x = &a->attachments[i], *y = &b->attachments[i];
        SAME_TEXT(x->name, y->name, "attachment name");
        SAME(x->size_bytes == y->size_bytes && same_bytes(x->data, y->data, x->size_bytes),
             "attachment");
    }
    for (uint32_t i = 0; i < a->device_count; ++i) {
        const berth_program_device *x = &a->devices[i], *y = &b->devices[i];
        SAME_TEXT(x->name, y->name, "device name");
        SAME_TEXT(x->kind, y->kind, "device kind");
        SAME_TEXT(x->target_json, y->target_json, "device target");
        SAME(x->virtual_id == y->virtual_id && x->host_only == y->host_only, "device");
    }
    for (uint32_t i = 0; i < a->placement_count; ++i) {
        const berth_program_placement *x = &a->placements[i], *y = &b->placements[i];
        SAME_TEXT(x->node, y->node, "placement node");
        SAME_TEXT(x->op, y->op, "placement op");
        SAME_TEXT(x->reason, y->reason, "placement reason");
        SAME(x->device == y->device && x->host_operation == y->host_operation, "placement");
    }
    const char *difference = memory_difference(a, b);
    if (!difference) difference = io_difference(a->inputs, b->inputs, a->input_count);
    if (!difference) difference = check_difference(a, b);
    if (!difference) difference = io_difference(a->outputs, b->outputs, a->output_count);
    if (!difference) difference = code_difference(a, b);
    return difference ? difference : step_difference(a, b);
}
