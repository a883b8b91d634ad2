#include "toolkit/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "compiler/toolchain/toolchain.h"
#include "devices/device.h"
#include "devices/registry.h"

// Far larger than caches, in parts that threads take in turns.
#define READ_BYTES ((uint64_t)256 << 20)
#define READ_PARTS 512u
#define CHASE_BYTES ((uint64_t)128 << 20)
#define CHASE_STEPS 1000000
#define COPY_BYTES ((uint64_t)64 << 20)
#define LEAST_BYTES ((uint64_t)4 << 20)
#define FLOP_ROUNDS 400000
#define FLOP_GROUPS_PER_THREAD 8u

enum { most_repeats = 31 };

typedef struct measuring {
    berth_arena *arena;
    const berth_measure_options *options;
    berth_machine_description *description;
    const char *what;  // is measured now
} measuring;

static void announce(measuring *m, const char *what) {
    m->what = what;
    if (m->options->progress) m->options->progress(m->options->user, what);
}

// Anything but memory that runs out leaves figures unmeasured, and is said.
static berth_status forgive(const measuring *m, berth_status status) {
    if (!status || berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_log_message(m->options->log, BERTH_LOG_WARNING, "%s: not measured: %s", m->what,
                      berth_status_message(status));
    berth_status_free(status);
    return BERTH_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Median time of a batch, after one run that is not counted.
static berth_status time_batch(berth_queue *queue, const berth_command *commands, uint32_t count,
                               int repeats, double *out_ns) {
    double times[most_repeats];
    for (int i = -1; i < repeats; ++i) {
        int64_t start_ns = berth_clock_ns();
        BERTH_TRY(berth_queue_run(queue, commands, count));
        if (i >= 0) times[i] = (double)(berth_clock_ns() - start_ns);
    }
    qsort(times, (size_t)repeats, sizeof(times[0]), by_value);
    *out_ns = times[repeats / 2] > 1 ? times[repeats / 2] : 1;
    return BERTH_OK;
}

// ---- kernels for processor cores ----------------------------------------------------------------

// Vectors are the compiler's own notation (GCC, Clang), as wide as the target's registers; sixteen
// sums hide the latency of a multiply-add. The results are stored, or nothing would be computed.
// clang-format off
static const char kernel_source[] =
    "#include <stdint.h>\n"
    "#include <stddef.h>\n"
    "typedef uint64_t word;\n"
    "void berth_m_read(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *s) {\n"
    "    (void)s;\n"
    "    for (int64_t g = begin; g < end; ++g) {\n"
    "        const word *x = (const word *)b[0] + (size_t)(g * c[0]);\n"
    "        word sum = 0;\n"
    "        for (int64_t i = 0; i < c[0]; ++i) sum += x[i];\n"
    "        ((word *)b[1])[g * 8] = sum;\n"
    "    }\n"
    "}\n"
    "void berth_m_chase(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *s) {\n"
    "    (void)s; (void)begin; (void)end;\n"
    "    const word *x = b[0];\n"
    "    word at = 0;\n"
    "    for (int64_t i = 0; i < c[0]; ++i) at = x[at];\n"
    "    ((word *)b[1])[0] = at;\n"
    "}\n"
    "void berth_m_empty(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *s) {\n"
    "    (void)c; (void)s; (void)end;\n"
    "    ((word *)b[1])[begin * 8] = 1;\n"
    "}\n"
    "#define PEAK(name, type) \\\n"
    "    typedef type vector_##type __attribute__((vector_size(VECTOR_BYTES))); \\\n"
    "    void name(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *s) { \\\n"
    "        (void)s; \\\n"
    "        for (int64_t g = begin; g < end; ++g) { \\\n"
    "            const type *in = b[0]; \\\n"
    "            vector_##type x = (vector_##type){0} + in[0], y = (vector_##type){0} + in[1]; \\\n"
    "            vector_##type a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x; \\\n"
    "            vector_##type a8 = y, a9 = y, aa = y, ab = y; \\\n"
    "            for (int64_t i = 0; i < c[0]; ++i) { \\\n"
    "                a0 = a0 * x + y; a1 = a1 * x + y; a2 = a2 * x + y; a3 = a3 * x + y; \\\n"
    "                a4 = a4 * x + y; a5 = a5 * x + y; a6 = a6 * x + y; a7 = a7 * x + y; \\\n"
    "                a8 = a8 * x + y; a9 = a9 * x + y; aa = aa * x + y; ab = ab * x + y; \\\n"
    "            } \\\n"
    "            a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + aa + ab; \\\n"
    "            ((type *)b[1])[g * 8] = a0[0]; \\\n"
    "        } \\\n"
    "    }\n"
    "PEAK(berth_m_f32, float)\n"
    "PEAK(berth_m_f64, double)\n";
// clang-format on

enum { sums = 12 };

typedef struct cpu_bench {
    measuring *m;
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_executable *executable;
    berth_buffer *buffers[2];  // data; results
    uint32_t cores;
    uint64_t data_bytes;
    berth_measured_cpu *out;
} cpu_bench;

// Compiled with the flags that kernels get.
static berth_status compile(cpu_bench *b, const berth_target *target) {
    measuring *m = b->m;
    int64_t bits = target->vector_bits < 64 ? 64 : target->vector_bits;
    const char *source = berth_arena_printf(m->arena, "#define VECTOR_BYTES %lld\n%s",
                                            (long long)bits / 8, kernel_source);
    berth_toolchain_options options = {
        .target = target, .cache_folder = m->options->cache_folder, .log = m->options->log};
    berth_toolchain_unit unit = {.label = "measurements", .source = source};
    berth_toolchain_image image;
    BERTH_TRY(berth_toolchain_compile(&options, m->arena, &unit, 1, &image));
    const berth_executable_image code = {.device_kind = "cpu",
                                         .format = BERTH_FORMAT_CPU_ELF,
                                         .options = "",
                                         .data = image.data,
                                         .size_bytes = image.size_bytes};
    return berth_executable_load(b->device, &code, &b->executable);
}

static berth_status time_kernel(cpu_bench *b, const char *entry, uint32_t groups, int64_t constant,
                                int repeats, double *out_ns) {
    static const berth_kernel_binding bindings[] = {{.access = BERTH_ACCESS_READ},
                                                    {.access = BERTH_ACCESS_WRITE}};
    // Its estimates are large: every thread takes part from the first run on.
    const berth_program_kernel kernel = {.entry = entry,
                                         .binding_count = 2,
                                         .bindings = bindings,
                                         .constant_count = 1,
                                         .groups = {groups, 1, 1},
                                         .group_size = {1, 1, 1},
                                         .flops = 1e9,
                                         .bytes = 1e9};
    uint32_t index = 0;
    BERTH_TRY(berth_executable_find(b->executable, &kernel, &index));
    const berth_command command = {.kind = BERTH_COMMAND_DISPATCH,
                                   .dispatch = {.executable = b->executable,
                                                .kernel = index,
                                                .buffers = b->buffers,
                                                .buffer_count = 2,
                                                .constants = &constant,
                                                .constant_count = 1,
                                                .groups = {groups, 1, 1},
                                                .group_size = {1, 1, 1}}};
    return time_batch(b->queue, &command, 1, repeats, out_ns);
}

// One cycle through lines of 128 bytes in random order (Sattolo 1986): no prefetcher foresees it.
static void make_chain(uint64_t *data, uint64_t size_bytes) {
    const uint64_t line = 16, count = size_bytes / 128;
    for (uint64_t i = 0; i < count; ++i) data[i * line] = i;
    uint64_t random = 88172645463325252u;  // xorshift64 (Marsaglia 2003)
    for (uint64_t i = count; i-- > 1;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t k = random % i, other = data[k * line];
        data[k * line] = data[i * line];
        data[i * line] = other;
    }
    for (uint64_t i = 0; i < count; ++i) data[i * line] *= line;
}

static berth_status measure_peak(cpu_bench *b, const char *entry, int64_t lanes, double *out) {
    double ns = 0;
    float *in = berth_buffer_host(b->buffers[0]);
    memset(in, 0, 64);  // 0 * 0 + 0: neither denormal numbers nor infinities
    uint32_t groups = b->cores * FLOP_GROUPS_PER_THREAD;
    BERTH_TRY(time_kernel(b, entry, groups, FLOP_ROUNDS / FLOP_GROUPS_PER_THREAD, 5, &ns));
    *out = 2.0 * sums * (double)lanes * (FLOP_ROUNDS / FLOP_GROUPS_PER_THREAD) * groups / ns * 1e9;
    return BERTH_OK;
}

static berth_status measure_kernels(cpu_bench *b, const berth_target *target) {
    double ns = 0;
    uint64_t *data = berth_buffer_host(b->buffers[0]);
    memset(data, 0, b->data_bytes);
    int64_t words = (int64_t)(b->data_bytes / READ_PARTS / sizeof(uint64_t));
    BERTH_TRY(time_kernel(b, "berth_m_read", READ_PARTS, words, 5, &ns));
    b->out->read_bytes_per_s = (double)b->data_bytes / ns * 1e9;
    BERTH_TRY(time_kernel(b, "berth_m_read", 1, words * READ_PARTS, 5, &ns));
    b->out->core_read_bytes_per_s = (double)b->data_bytes / ns * 1e9;
    // All cores can do what one can: where others work, too, the figures differ by chance.
    if (b->out->read_bytes_per_s < b->out->core_read_bytes_per_s)
        b->out->read_bytes_per_s = b->out->core_read_bytes_per_s;
    uint64_t chain_bytes = b->data_bytes < CHASE_BYTES ? b->data_bytes : CHASE_BYTES;
    make_chain(data, chain_bytes);
    BERTH_TRY(time_kernel(b, "berth_m_chase", 1, CHASE_STEPS, 3, &ns));
    b->out->latency_ns = (int64_t)(ns / CHASE_STEPS + 0.5);
    BERTH_TRY(time_kernel(b, "berth_m_empty", b->cores, 0, most_repeats, &ns));
    b->out->dispatch_ns = (int64_t)ns;
    int64_t bits = target->vector_bits < 64 ? 64 : target->vector_bits;
    BERTH_TRY(measure_peak(b, "berth_m_f32", bits / 32, &b->out->flops[BERTH_DTYPE_F32]));
    return measure_peak(b, "berth_m_f64", bits / 64, &b->out->flops[BERTH_DTYPE_F64]);
}

// A quarter of what is there at most.
static uint64_t fitting(uint64_t wanted, uint64_t capacity_bytes) {
    while (capacity_bytes && wanted > capacity_bytes / 4 && wanted > LEAST_BYTES) wanted /= 2;
    return wanted;
}

static berth_status open_cpu(cpu_bench *b, uint32_t ordinal) {
    BERTH_TRY(berth_device_open(b->driver, ordinal, NULL, &b->device));
    const berth_device_info *info = berth_device_get_info(b->device);
    b->cores = info->compute_units;
    b->data_bytes = fitting(READ_BYTES, info->memories[0].capacity_bytes);
    BERTH_TRY(berth_queue_open(b->device, BERTH_QUEUE_COMPUTE, &b->queue));
    BERTH_TRY(berth_buffer_allocate(b->device, 0, b->data_bytes, &b->buffers[0]));
    return berth_buffer_allocate(b->device, 0, (uint64_t)64 * (READ_PARTS + 8 * b->cores),
                                 &b->buffers[1]);
}

static void close_cpu(cpu_bench *b) {
    berth_queue_destroy(b->queue);
    berth_executable_destroy(b->executable);
    for (int i = 0; i < 2; ++i) berth_buffer_free(b->buffers[i]);
    berth_device_close(b->device);
}

static berth_status measure_group(measuring *m, berth_driver *driver, uint32_t ordinal,
                                  const berth_target *target, berth_measured_cpu *out) {
    cpu_bench b = {.m = m, .driver = driver, .out = out};
    berth_status status = open_cpu(&b, ordinal);
    if (!status) status = compile(&b, target);
    if (!status) status = measure_kernels(&b, target);
    close_cpu(&b);
    return status;
}

static berth_status measure_cpus(measuring *m) {
    berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS];
    uint32_t count = berth_topology_groups(m->description->topology, groups);
    berth_measured_cpu *cpus = berth_arena_new_array(m->arena, berth_measured_cpu, count);
    berth_driver *driver = NULL;
    const berth_target_options options = {.machine = m->description->facts};
    berth_multi_target *target = NULL;
    berth_status status = berth_target_parse(m->arena, "cpu", &options, &target);
    m->description->cpus = cpus;
    announce(m, "cpu");
    if (!status) status = berth_driver_open("cpu", berth_allocator_system(), &driver);
    for (uint32_t g = 0; g < count && !status; ++g) {
        if (count > 1) announce(m, berth_arena_printf(m->arena, "cpu:%u", g));
        status =
            measure_group(m, driver, count > 1 ? 1 + g : 0, target->devices[0].target, &cpus[g]);
    }
    berth_driver_close(driver);
    return forgive(m, status);
}

// ---- copies -------------------------------------------------------------------------------------

typedef struct copy_bench {
    berth_device *device;
    berth_queue *queue;
    berth_buffer *here[2];
    berth_device *host_device;
    berth_buffer *host;
    uint64_t size_bytes;
} copy_bench;

static berth_status time_copy(const copy_bench *b, berth_buffer *from, berth_buffer *to,
                              uint64_t size_bytes, int repeats, double *out_ns) {
    const berth_command command = {
        .kind = BERTH_COMMAND_COPY,
        .copy = {.source = from, .destination = to, .size_bytes = size_bytes}};
    return time_batch(b->queue, &command, 1, repeats, out_ns);
}

static berth_status open_copies(copy_bench *b, berth_driver *driver, uint32_t ordinal) {
    BERTH_TRY(berth_device_open(driver, ordinal, NULL, &b->device));
    b->size_bytes =
        fitting(COPY_BYTES, berth_device_get_info(b->device)->memories[0].capacity_bytes);
    BERTH_TRY(berth_queue_open(b->device, BERTH_QUEUE_COMPUTE, &b->queue));
    BERTH_TRY(berth_buffer_allocate(b->host_device, 0, b->size_bytes, &b->host));
    memset(berth_buffer_host(b->host), 1, b->size_bytes);
    for (int i = 0; i < 2; ++i)
        BERTH_TRY(berth_buffer_allocate(b->device, 0, b->size_bytes, &b->here[i]));
    return BERTH_OK;
}

static berth_status time_copies(const copy_bench *b, berth_measured_device *out) {
    double to_ns = 0, from_ns = 0, inside_ns = 0, small_ns = 0;
    BERTH_TRY(time_copy(b, b->host, b->here[0], b->size_bytes, 5, &to_ns));
    BERTH_TRY(time_copy(b, b->here[0], b->host, b->size_bytes, 5, &from_ns));
    BERTH_TRY(time_copy(b, b->here[0], b->here[1], b->size_bytes, 5, &inside_ns));
    BERTH_TRY(time_copy(b, b->host, b->here[0], 64, most_repeats, &small_ns));
    double slower_ns = to_ns > from_ns ? to_ns : from_ns;
    out->link_bytes_per_s = (double)b->size_bytes / slower_ns * 1e9;
    out->link_latency_ns = (int64_t)small_ns;
    out->memory_bytes_per_s = 2 * (double)b->size_bytes / inside_ns * 1e9;
    return BERTH_OK;
}

static berth_status measure_copies(berth_device *host, berth_driver *driver, uint32_t ordinal,
                                   berth_measured_device *out) {
    copy_bench b = {.host_device = host};
    berth_status status = open_copies(&b, driver, ordinal);
    if (!status) status = time_copies(&b, out);
    berth_queue_destroy(b.queue);
    for (int i = 0; i < 2; ++i) berth_buffer_free(b.here[i]);
    berth_buffer_free(b.host);
    berth_device_close(b.device);
    return status;
}

// The ordinal of a device is its place among those of its kind.
static berth_status measure_device(measuring *m, uint32_t index, berth_device *host,
                                   berth_measured_device *out) {
    const berth_machine_device *devices = m->description->facts->devices;
    const char *kind = berth_device_kind_name(devices[index].kind);
    uint32_t ordinal = 0;
    for (uint32_t i = 0; i < index; ++i) ordinal += devices[i].kind == devices[index].kind;
    announce(m, berth_arena_printf(m->arena, "%s:%u", kind, ordinal));
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open(kind, berth_allocator_system(), &driver);
    if (!status) status = measure_copies(host, driver, ordinal, out);
    berth_driver_close(driver);
    return forgive(m, status);
}

static berth_status measure_devices(measuring *m) {
    uint32_t count = m->description->facts->device_count;
    berth_measured_device *devices = berth_arena_new_array(m->arena, berth_measured_device, count);
    berth_driver *driver = NULL;
    berth_device *host = NULL;
    m->description->devices = devices;
    berth_status status = berth_driver_open("cpu", berth_allocator_system(), &driver);
    if (!status) status = berth_device_open(driver, 0, NULL, &host);
    for (uint32_t i = 0; i < count && !status; ++i)
        status = measure_device(m, i, host, &devices[i]);
    berth_device_close(host);
    berth_driver_close(driver);
    return status;
}

berth_status berth_measure_machine(berth_arena *arena, const berth_measure_options *options,
                                   berth_machine_description *description) {
    measuring m = {.arena = arena, .options = options, .description = description, .what = ""};
    BERTH_TRY(measure_cpus(&m));
    return measure_devices(&m);
}
