#include "tests/executor/program_builder.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

static const char cpu_source[] =
    "#include <stdint.h>\n"
    "#include <time.h>\n"
    "enum { group = 64 };\n"
    "static int64_t end_of(int64_t n, int64_t end) { return end * group < n ? end * group : n; }\n"
    "void add(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    const float *x = b[0], *y = b[1]; float *z = b[2]; (void)scratch;\n"
    "    for (int64_t i = begin * group; i < end_of(c[0], end); ++i) z[i] = x[i] + y[i];\n"
    "}\n"
    "void scale(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    const float *x = b[0]; float *y = b[1]; (void)scratch;\n"
    "    for (int64_t i = begin * group; i < end_of(c[0], end); ++i) y[i] = x[i] * (float)c[1];\n"
    "}\n"
    "void sleep(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    const float *x = b[0]; float *y = b[1]; (void)scratch;\n"
    "    struct timespec time = {c[1] / 1000, c[1] % 1000 * 1000000};\n"
    "    if (begin == 0) nanosleep(&time, 0);\n"
    "    for (int64_t i = begin * group; i < end_of(c[0], end); ++i) y[i] = x[i];\n"
    "}\n";

static const char opencl_code[] =
    "kernel void add(global const float *x, global const float *y, global float *z, long n, long "
    "factor) {\n"
    "    long i = get_global_id(0); if (i < n) z[i] = x[i] + y[i];\n"
    "}\n"
    "kernel void scale(global const float *x, global float *y, long n, long factor) {\n"
    "    long i = get_global_id(0); if (i < n) y[i] = x[i] * (float)factor;\n"
    "}\n";

enum { group_items = 64, alignment = 128, first_transfer = 1000 };

typedef struct tensor_use {
    uint32_t writer;  // BERTH_NO_INDEX = none
    BERTH_VEC(uint32_t) readers;
} tensor_use;

struct builder {
    berth_arena *arena;
    berth_program *program;
    uint32_t shared_device;
    uint64_t shared_with;
    BERTH_VEC(berth_program_device) devices;
    BERTH_VEC(uint32_t) transfers;  // queues beyond those of the devices: their devices
    BERTH_VEC(berth_program_pool) pools;
    BERTH_VEC(berth_program_tensor) tensors;
    BERTH_VEC(tensor_use) uses;  // per tensor
    BERTH_VEC(berth_program_constant) constants;
    BERTH_VEC(berth_program_io) inputs;
    BERTH_VEC(berth_program_io) outputs;
    BERTH_VEC(berth_program_kernel) kernels;
    BERTH_VEC(berth_program_step) steps;
};

builder *builder_create(berth_arena *arena, const char *name) {
    builder *b = berth_arena_new(arena, builder);
    b->arena = arena;
    b->program = berth_arena_new(arena, berth_program);
    b->program->name = berth_arena_strdup(arena, name);
    return b;
}

uint32_t builder_device(builder *b, const char *kind, uint32_t virtual_id) {
    berth_program_device device = {.name = berth_arena_printf(b->arena, "%s:%u", kind, virtual_id),
                                   .kind = kind,
                                   .virtual_id = virtual_id,
                                   .target_json = "{}"};
    berth_vec_push(b->arena, &b->devices, device);
    return b->devices.count - 1;
}

uint32_t builder_transfer_queue(builder *b, uint32_t device) {
    berth_vec_push(b->arena, &b->transfers, device);
    return b->transfers.count - 1;
}

void builder_share(builder *b, uint32_t device, uint64_t with) {
    b->shared_device = device;
    b->shared_with = with;
}

static uint32_t pool_of(builder *b, uint32_t device, berth_pool_usage usage) {
    for (uint32_t i = 0; i < b->pools.count; ++i)
        if (b->pools.data[i].device == device && b->pools.data[i].usage == usage) return i;
    berth_program_pool pool = {
        .device = device, .scope = "global", .usage = usage, .alignment_bytes = alignment};
    if (b->shared_with && device == b->shared_device) pool.shared_with.word = b->shared_with;
    berth_vec_push(b->arena, &b->pools, pool);
    return b->pools.count - 1;
}

static uint32_t add_tensor(builder *b, uint32_t device, berth_pool_usage usage, uint32_t count) {
    uint32_t pool_index = pool_of(b, device, usage);
    berth_program_pool *pool = &b->pools.data[pool_index];
    berth_program_tensor tensor = {.name = berth_arena_printf(b->arena, "t%u", b->tensors.count),
                                   .pool = pool_index,
                                   .offset_bytes = pool->size_bytes,
                                   .size_bytes = (uint64_t)count * sizeof(float),
                                   .dtype = BERTH_DTYPE_F32,
                                   .rank = 1,
                                   .dims = {count},
                                   .layout = ""};
    pool->size_bytes += (tensor.size_bytes + alignment - 1) / alignment * alignment;
    berth_vec_push(b->arena, &b->tensors, tensor);
    berth_vec_push(b->arena, &b->uses, (tensor_use){.writer = BERTH_NO_INDEX});
    return b->tensors.count - 1;
}

uint32_t builder_tensor(builder *b, uint32_t device, uint32_t count) {
    return add_tensor(b, device, BERTH_POOL_WORKSPACE, count);
}

uint32_t builder_constant(builder *b, uint32_t device, const float *values, uint32_t count) {
    uint32_t tensor = add_tensor(b, device, BERTH_POOL_CONSTANT, count);
    void *copy = berth_arena_alloc_aligned(b->arena, count * sizeof(float), alignment);
    if (count) memcpy(copy, values, count * sizeof(float));
    berth_vec_push(b->arena, &b->constants, (berth_program_constant){tensor, copy});
    return tensor;
}

uint32_t builder_input(builder *b, uint32_t cpu_device, const char *name, uint32_t count) {
    uint32_t tensor = add_tensor(b, cpu_device, BERTH_POOL_IO, count);
    berth_vec_push(b->arena, &b->inputs,
                   (berth_program_io){berth_arena_strdup(b->arena, name), tensor, 0});
    return tensor;
}

uint32_t builder_output(builder *b, uint32_t cpu_device, const char *name, uint32_t count) {
    uint32_t tensor = add_tensor(b, cpu_device, BERTH_POOL_IO, count);
    berth_vec_push(b->arena, &b->outputs,
                   (berth_program_io){berth_arena_strdup(b->arena, name), tensor, 0});
    return tensor;
}

// ---- steps ----

static void wait_for(builder *b, berth_program_step *step, uint32_t *waits, uint32_t earlier) {
    if (earlier == BERTH_NO_INDEX || b->steps.data[earlier].queue == step->queue) return;
    for (uint32_t i = 0; i < step->wait_count; ++i)
        if (waits[i] == earlier) return;
    waits[step->wait_count++] = earlier;
}

// Adds the step with a wait for every step of another queue that wrote what it reads, or touched
// what it writes.
static uint32_t add_step(builder *b, berth_program_step step, uint32_t binding_count) {
    uint32_t index = b->steps.count;
    uint32_t *waits = berth_arena_new_array(b->arena, uint32_t, index);  // at most all before it
    for (uint32_t i = 0; i < binding_count; ++i) {
        tensor_use *a = &b->uses.data[step.bindings[i]];
        wait_for(b, &step, waits, a->writer);
        if (i + 1 < binding_count && !b->shared_with) continue;
        for (uint32_t r = 0; r < a->readers.count; ++r)
            wait_for(b, &step, waits, a->readers.data[r]);
    }
    for (uint32_t i = 0; i + 1 < binding_count; ++i)
        berth_vec_push(b->arena, &b->uses.data[step.bindings[i]].readers, index);
    tensor_use *result = &b->uses.data[step.bindings[binding_count - 1]];
    result->writer = index;
    result->readers.count = 0;
    step.waits = waits;
    berth_vec_push(b->arena, &b->steps, step);
    return index;
}

uint32_t builder_dispatch(builder *b, uint32_t device, const char *entry, const uint32_t *tensors,
                          uint32_t count, int64_t factor) {
    int64_t items = b->tensors.data[tensors[count - 1]].dims[0];
    bool cpu = strcmp(b->devices.data[device].kind, "cpu") == 0;
    bool opencl = strcmp(b->devices.data[device].kind, "opencl") == 0;
    uint32_t groups = (uint32_t)((items + group_items - 1) / group_items);
    berth_kernel_binding *declared = berth_arena_new_array(b->arena, berth_kernel_binding, count);
    for (uint32_t i = 0; i < count; ++i)
        declared[i] = (berth_kernel_binding){
            .size_bytes = (uint64_t)items * sizeof(float),
            .access =
                (i + 1 < count ? BERTH_ACCESS_READ : BERTH_ACCESS_WRITE) | BERTH_ACCESS_ALIAS};
    berth_program_kernel kernel = {.executable = cpu ? 0 : 1,
                                   .bindings = declared,
                                   .entry = entry,
                                   .binding_count = count,
                                   .constant_count = 2,
                                   .groups = {groups ? groups : 1, 1, 1},
                                   .group_size = {opencl ? group_items : 1, 1, 1}};
    berth_vec_push(b->arena, &b->kernels, kernel);
    const int64_t constants[2] = {items, factor};
    berth_program_step step = {
        .kind = BERTH_STEP_DISPATCH,
        .queue = device,
        .device = device,
        .kernel = b->kernels.count - 1,
        .bindings = berth_arena_copy(b->arena, tensors, count * sizeof(*tensors)),
        .constants = berth_arena_copy(b->arena, constants, sizeof(constants)),
        .name = berth_arena_printf(b->arena, "%s%u", entry, b->steps.count),
        .op = entry};
    return add_step(b, step, count);
}

uint32_t builder_copy(builder *b, uint32_t device, uint32_t from, uint32_t to) {
    return builder_transfer(b, BERTH_NO_INDEX, device, from, to);
}

uint32_t builder_transfer(builder *b, uint32_t transfer_queue, uint32_t device, uint32_t from,
                          uint32_t to) {
    const uint32_t bindings[2] = {from, to};
    bool apart = transfer_queue != BERTH_NO_INDEX;  // its number once all devices are known
    berth_program_step step = {.kind = BERTH_STEP_COPY,
                               .queue = apart ? first_transfer + transfer_queue : device,
                               .device = device,
                               .bindings = berth_arena_copy(b->arena, bindings, sizeof(bindings)),
                               .name = berth_arena_printf(b->arena, "copy%u", b->steps.count),
                               .op = "copy"};
    return add_step(b, step, 2);
}

// ---- code ----

extern char **environ;

const void *builder_cpu_code(berth_arena *arena, size_t *out_size_bytes) {
    char folder[] = "/tmp/berth-kernels-XXXXXX";
    if (!mkdtemp(folder)) return NULL;
    char *source = berth_arena_printf(arena, "%s/kernels.c", folder);
    char *object = berth_arena_printf(arena, "%s/kernels.so", folder);
    char *data = NULL;
    berth_status status = berth_file_write(source, cpu_source, sizeof(cpu_source) - 1);
    char *arguments[] = {"cc", "-O1",  "-fno-builtin", "-shared", "-fPIC",
                         "-o", object, source,         NULL};
    pid_t child = 0;
    int exit_status = 1;
    if (!status && posix_spawnp(&child, "cc", NULL, NULL, arguments, environ) == 0 &&
        waitpid(child, &exit_status, 0) == child && exit_status == 0)
        status = berth_file_read(arena, object, (size_t)1 << 24, &data, out_size_bytes);
    berth_status_free(status);
    unlink(source);
    unlink(object);
    rmdir(folder);
    return data;
}

berth_program *builder_finish(builder *b, const char *opencl_source) {
    berth_program *p = b->program;
    if (!opencl_source) opencl_source = opencl_code;
    berth_executable_image *images = berth_arena_new_array(b->arena, berth_executable_image, 2);
    size_t code_bytes = 0;
    images[0] = (berth_executable_image){"cpu", BERTH_FORMAT_CPU_ELF, "", NULL, 0, ""};
    images[0].data = builder_cpu_code(b->arena, &code_bytes);
    images[0].size_bytes = code_bytes;
    const char *kind = "opencl";  // or whatever other kind the program has
    for (uint32_t d = 0; d < b->devices.count; ++d)
        if (strcmp(b->devices.data[d].kind, "cpu") != 0) kind = b->devices.data[d].kind;
    images[1] = (berth_executable_image){kind,          BERTH_FORMAT_OPENCL_C, "",
                                         opencl_source, strlen(opencl_source), ""};
    berth_program_queue *queues = berth_arena_new_array(
        b->arena, berth_program_queue, (size_t)b->devices.count + b->transfers.count);
    for (uint32_t d = 0; d < b->devices.count; ++d) queues[d].device = d;
    for (uint32_t t = 0; t < b->transfers.count; ++t)
        queues[b->devices.count + t] =
            (berth_program_queue){b->transfers.data[t], BERTH_QUEUE_TRANSFER};
    for (uint32_t i = 0; i < b->steps.count; ++i)
        if (b->steps.data[i].queue >= first_transfer)
            b->steps.data[i].queue += b->devices.count - first_transfer;
    *p = (berth_program){.name = p->name,
                         .target_json = "{}",
                         .executor = "graph",
                         .devices = b->devices.data,
                         .device_count = b->devices.count,
                         .queues = queues,
                         .queue_count = b->devices.count + b->transfers.count,
                         .pools = b->pools.data,
                         .pool_count = b->pools.count,
                         .tensors = b->tensors.data,
                         .tensor_count = b->tensors.count,
                         .constants = b->constants.data,
                         .constant_count = b->constants.count,
                         .inputs = b->inputs.data,
                         .input_count = b->inputs.count,
                         .outputs = b->outputs.data,
                         .output_count = b->outputs.count,
                         .executables = images,
                         .executable_count = 2,
                         .kernels = b->kernels.data,
                         .kernel_count = b->kernels.count,
                         .steps = b->steps.data,
                         .step_count = b->steps.count};
    return p;
}
