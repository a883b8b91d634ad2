// Defaults: every figure that a cost model needs has a value. Where a target says nothing these are
// deliberately ordinary numbers (a small desktop CPU, an integrated GPU), not those of any product;
// minima come from the specifications named beside them.
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

// Of processor cores, whichever driver they are reached by.
static const int64_t usual_clock_hz = 2000000000;
static const double usual_bandwidth = 2e10;

// Numbers come in as -1 where the target says nothing.
static void set(int64_t *field, int64_t value) {
    if (*field < 0) *field = value;
}

static void set_real(double *field, double value) {
    if (!(*field > 0)) *field = value;
}

const char *berth_target__arch_of(const char *word) {
    static const char others[][2][8] = {
        {"x86-64", "x86_64"}, {"amd64", "x86_64"}, {"arm64", "aarch64"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i)
        if (strcmp(word, others[i][0]) == 0) return others[i][1];
    return word;
}

static bool is_x86(const berth_target *target) {
    return strcmp(target->arch, "x86_64") == 0 || strcmp(target->arch, "i686") == 0;
}

static bool is_cpu_arch(const char *arch) {
    static const char *const names[] = {"x86_64",  "i686", "aarch64", "armv7", "armv8", "armv6",
                                        "riscv64", "rv64", "rv32",    "ppc64", "thumb"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (strncmp(arch, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static int64_t vector_bits_of(const berth_target *target) {
    if (berth_target_has_feature(target, "avx512f")) return 512;
    if (berth_target_has_feature(target, "avx")) return 256;
    if (berth_target_has_feature(target, "avx2")) return 256;
    if (is_x86(target) || strcmp(target->arch, "aarch64") == 0)
        return 128;  // SSE2, Advanced SIMD: always there
    if (berth_target_has_feature(target, "neon") || berth_target_has_feature(target, "mve") ||
        berth_target_has_feature(target, "v") || berth_target_has_feature(target, "altivec"))
        return 128;
    return 32;
}

// Vector registers by the manuals of the architectures: AVX-512 32 (Intel SDM, 15.5), other x86 16 in
// 64-bit mode and 8 else, AArch64 32 (Arm ARM, B1.2.1), Helium 8, 32-bit Neon 16, RISC-V's V 32, VSX 64.
static int64_t vector_registers_of(const berth_target *target) {
    if (is_x86(target)) {
        if (berth_target_has_feature(target, "avx512vl") || target->vector_bits >= 512) return 32;
        return strcmp(target->arch, "i686") == 0 ? 8 : 16;
    }
    if (strcmp(target->arch, "aarch64") == 0) return 32;
    if (berth_target_has_feature(target, "mve")) return 8;
    if (berth_target_has_feature(target, "v")) return 32;
    if (berth_target_has_feature(target, "vsx")) return 64;
    return 16;
}

// Caps of register tiles. Registers alone would allow more; docs/tuning.md has what was measured of each.
static void fill_tiles(berth_target *target) {
    set(&target->vector_registers, vector_registers_of(target));
    set(&target->tile_rows, 14);
    set(&target->tile_own_rows, 7);
    set(&target->tile_page_rows, 6);
    set(&target->unrolled_terms, 16);
    set(&target->tile_singles, 56);
    set(&target->sums_in_flight, 8);
}

// Tiles in local memory. GPUs: 64 x 64 outputs by 16 x 8 work items. Cores: as many sums as their registers
// allow, and few work items, since each costs a switch at every barrier.
static void fill_local_tiles(berth_target *target) {
    bool on_cores = target->subgroup_size == 1;
    set(&target->item_rows, on_cores ? 12 : 8);
    set(&target->group_columns, on_cores ? 8 : 16);
    set(&target->group_rows, on_cores ? 4 : 8);
    set(&target->tile_depth, 16);
}

// Multiply and add count as two; x86 with FMA and 64-bit ARM cores usually start two vector
// operations per cycle.
static double cpu_flops(const berth_target *target) {
    double cores = (double)(target->cores > 0 ? target->cores : target->compute_units);
    double lanes = (double)target->vector_bits / 32;
    if (lanes < 1) lanes = 1;
    bool two_units =
        berth_target_has_feature(target, "fma") || strcmp(target->arch, "aarch64") == 0;
    return cores * (double)target->clock_hz * lanes * 2 * (two_units ? 2 : 1);
}

// Dot products of four 8-bit integers per lane start as often as multiply-adds of f32 (AVX-512 VNNI,
// AVX-VNNI, Armv8.2 dot product).
static bool has_dot_products(const berth_target *target) {
    return berth_target_has_feature(target, "avx512vnni") ||
           berth_target_has_feature(target, "avxvnni") ||
           berth_target_has_feature(target, "dotprod");
}

// Microcontrollers: no caches, and memory that answers about one word per cycle.
static bool is_microcontroller(const char *arch) {
    static const char *const names[] = {"armv6-m",   "armv7-m", "armv7e-m", "armv8-m",
                                        "armv8.1-m", "rv32",    "cortex-m"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (strncmp(arch, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void fill_microcontroller(berth_target *target) {
    set(&target->cores, 1);
    set(&target->clock_hz, 100000000);
    set(&target->l1_bytes, 0);
    set(&target->l2_bytes, 0);
    set(&target->cache_line_bytes, 32);
    set(&target->memory_capacity_bytes, 256 << 10);
    set_real(&target->memory_bandwidth_bytes_per_s, 4 * (double)target->clock_hz);
}

static void fill_cpu(berth_target *target) {
    if (!*target->arch) target->arch = "x86_64";
    if (is_microcontroller(target->arch)) fill_microcontroller(target);
    set(&target->cores, target->threads > 0 ? target->threads : 4);
    set(&target->threads, target->cores);
    set(&target->clock_hz, usual_clock_hz);
    set(&target->vector_bits, vector_bits_of(target));
    fill_tiles(target);
    set(&target->l1_bytes, 32 << 10);
    set(&target->l2_bytes, 256 << 10);
    set(&target->cache_line_bytes, 64);
    // Starting a kernel is a few calls and checks, about 200 cycles.
    set(&target->dispatch_ns,
        200 * (int64_t)1000000000 / (target->clock_hz > 0 ? target->clock_hz : 1));
    set_real(&target->peak_flops[BERTH_DTYPE_F32], cpu_flops(target));
    if (has_dot_products(target))
        set_real(&target->peak_flops[BERTH_DTYPE_I8], 4 * target->peak_flops[BERTH_DTYPE_F32]);
    set(&target->memory_capacity_bytes, (int64_t)8 << 30);
    set_real(&target->memory_bandwidth_bytes_per_s, usual_bandwidth);
}

typedef struct gpu_defaults {
    int64_t compute_units, clock_hz, lanes_per_unit;
    int64_t max_group_size, local_memory_bytes, l1_bytes, l2_bytes, dispatch_ns;
    int64_t memory_capacity_bytes;
    double memory_bandwidth, link_bandwidth;
} gpu_defaults;

static void fill_gpu(berth_target *target, const gpu_defaults *d) {
    set(&target->compute_units, d->compute_units);
    bool on_cpu = is_cpu_arch(target->arch);  // OpenCL on processor cores
    set(&target->clock_hz, on_cpu ? usual_clock_hz : d->clock_hz);
    set(&target->vector_bits, on_cpu ? vector_bits_of(target) : 32);
    set(&target->subgroup_size, on_cpu ? 1 : 32);
    if (berth_target_is_cores(target)) fill_tiles(target);
    fill_local_tiles(target);
    set(&target->max_group_size, d->max_group_size);
    set(&target->local_memory_bytes, d->local_memory_bytes);
    set(&target->l1_bytes, d->l1_bytes);
    set(&target->l2_bytes, d->l2_bytes);
    set(&target->cache_line_bytes, on_cpu ? 64 : 128);
    set(&target->dispatch_ns, d->dispatch_ns);
    double f32 = on_cpu ? cpu_flops(target)
                        : (double)target->compute_units * (double)target->clock_hz *
                              (double)d->lanes_per_unit * 2;
    set_real(&target->peak_flops[BERTH_DTYPE_F32], f32);
    set(&target->memory_capacity_bytes, d->memory_capacity_bytes);
    set_real(&target->memory_bandwidth_bytes_per_s, on_cpu ? usual_bandwidth : d->memory_bandwidth);
    set_real(&target->link_bandwidth_bytes_per_s, d->link_bandwidth);
}

// What a block may ask for (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
static int64_t cuda_local_bytes(const char *arch, int64_t usual) {
    static const struct {
        char arch[7];
        uint8_t kib;
    } most[] = {{"sm_70", 96},   {"sm_72", 96},   {"sm_75", 64},  {"sm_80", 163},  {"sm_86", 99},
                {"sm_87", 163},  {"sm_89", 99},   {"sm_90", 227}, {"sm_90a", 227}, {"sm_100", 227},
                {"sm_103", 227}, {"sm_110", 227}, {"sm_120", 99}, {"sm_121", 99}};
    for (size_t i = 0; arch && i < sizeof(most) / sizeof(*most); ++i)
        if (strcmp(arch, most[i].arch) == 0) return (int64_t)most[i].kib << 10;
    return usual;
}

static void set_extra(berth_arena *arena, berth_target *target, const char *name, int64_t value) {
    if (berth_target_extra_get(target, name, INT64_MIN) != INT64_MIN) return;
    berth_target_extra *grown =
        berth_arena_new_array(arena, berth_target_extra, target->extra_count + 1);
    if (target->extra_count) memcpy(grown, target->extras, target->extra_count * sizeof(*grown));
    grown[target->extra_count++] = (berth_target_extra){name, value};
    target->extras = grown;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const berth_target_extra *)a)->name, ((const berth_target_extra *)b)->name);
}

static void sort_extras(berth_arena *arena, berth_target *target) {
    berth_target_extra *sorted =
        berth_arena_copy(arena, target->extras, target->extra_count * sizeof(*sorted));
    qsort(sorted, target->extra_count, sizeof(*sorted), by_name);
    target->extras = sorted;
}

// The configuration that all upstream VTA boards share ("1x16x16").
static void fill_vta(berth_arena *arena, berth_target *target) {
    static const berth_target_extra defaults[] = {
        {"log_inp_width", 3},      {"log_wgt_width", 3},      {"log_acc_width", 5},
        {"log_batch", 0},          {"log_block", 4},          {"log_uop_buff_size", 15},
        {"log_inp_buff_size", 15}, {"log_wgt_buff_size", 18}, {"log_acc_buff_size", 17}};
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); ++i)
        set_extra(arena, target, defaults[i].name, defaults[i].value);
    sort_extras(arena, target);
    set(&target->clock_hz, 100000000);
    set(&target->vector_bits, 128);
    set(&target->cache_line_bytes, 64);
    set(&target->dispatch_ns, 20000);
    double block = (double)((int64_t)1 << berth_target_extra_get(target, "log_block", 4));
    double batch = (double)((int64_t)1 << berth_target_extra_get(target, "log_batch", 0));
    set_real(&target->peak_flops[BERTH_DTYPE_I8],
             2 * batch * block * block * (double)target->clock_hz);
    set_real(&target->peak_flops[BERTH_DTYPE_F32], (double)target->clock_hz);  // has no f32 unit
    set(&target->memory_capacity_bytes, (int64_t)256 << 20);
    set_real(&target->memory_bandwidth_bytes_per_s, 4e9);
    set_real(&target->link_bandwidth_bytes_per_s, 1e9);
}

static berth_string_list list_of(berth_arena *arena, const char *const *names, uint32_t count) {
    return (berth_string_list){berth_arena_copy(arena, names, count * sizeof(*names)), count};
}

// A systolic array of 16 x 16 with what convolutional networks of 8-bit integers need.
static void fill_npu(berth_arena *arena, berth_target *target) {
    static const char *const operators[] = {"qlinear_conv", "qlinear_add", "qlinear_average_pool",
                                            "max_pool",     "relu",        "clip"};
    static const char *const element_types[] = {"i8", "u8"};
    static const berth_target_extra defaults[] = {{"mac_inputs", 16},
                                                  {"mac_outputs", 16},
                                                  {"mac_results", 1},
                                                  {"elements_per_cycle", 16},
                                                  {"sram_bytes", 256 << 10}};
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); ++i)
        set_extra(arena, target, defaults[i].name, defaults[i].value);
    sort_extras(arena, target);
    if (!target->operators.count)
        target->operators = list_of(arena, operators, sizeof(operators) / sizeof(operators[0]));
    if (!target->element_types.count) target->element_types = list_of(arena, element_types, 2);
    set(&target->clock_hz, 500000000);
    set(&target->vector_bits, 128);
    set(&target->cache_line_bytes, 64);
    set(&target->dispatch_ns, 5000);
    double macs = (double)berth_target_extra_get(target, "mac_inputs", 1) *
                  (double)berth_target_extra_get(target, "mac_outputs", 1) *
                  (double)berth_target_extra_get(target, "mac_results", 1);
    set_real(&target->peak_flops[BERTH_DTYPE_I8], 2 * macs * (double)target->clock_hz);
    set_real(&target->peak_flops[BERTH_DTYPE_F32], (double)target->clock_hz);  // has no f32 unit
    set(&target->memory_capacity_bytes, (int64_t)256 << 20);
    set_real(&target->memory_bandwidth_bytes_per_s, 4e9);
    set_real(&target->link_bandwidth_bytes_per_s, 1e9);
}

static void fill_null(berth_target *target) {
    set(&target->clock_hz, 1000000000);
    set(&target->vector_bits, 32);
    set(&target->cache_line_bytes, 64);
    set_real(&target->peak_flops[BERTH_DTYPE_F32], 1e9);
    set(&target->memory_capacity_bytes, (int64_t)1 << 30);
    set_real(&target->memory_bandwidth_bytes_per_s, 1e10);
    set_real(&target->link_bandwidth_bytes_per_s, 1e10);
}

void berth_target__fill_defaults(berth_arena *arena, berth_target *target) {
    // OpenCL 1.2, table 4.3: 32 KiB of local memory at least in the full profile. Vulkan 1.0,
    // "Required Limits": 16 KiB of shared memory and 128 invocations. CUDA C Programming Guide,
    // "Compute Capabilities": 48 KiB, 1024 threads.
    static const gpu_defaults opencl = {
        8,     1000000000,       64,   256,   32 << 10, 16 << 10, 512 << 10,
        10000, (int64_t)4 << 30, 5e10, 1.2e10};
    static const gpu_defaults vulkan = {
        8,     1000000000,       64,   128,   16 << 10, 16 << 10, 512 << 10,
        10000, (int64_t)4 << 30, 5e10, 1.2e10};
    static const gpu_defaults cuda = {
        32,   1400000000,       128,  1024,  48 << 10, 32 << 10, 4 << 20,
        5000, (int64_t)8 << 30, 3e11, 1.2e10};
    switch (target->kind) {
    case BERTH_DEVICE_CPU: fill_cpu(target); break;
    case BERTH_DEVICE_OPENCL: fill_gpu(target, &opencl); break;
    case BERTH_DEVICE_VULKAN: fill_gpu(target, &vulkan); break;
    case BERTH_DEVICE_CUDA:
        set(&target->local_memory_bytes, cuda_local_bytes(target->arch, cuda.local_memory_bytes));
        fill_gpu(target, &cuda);
        break;
    case BERTH_DEVICE_VTA: fill_vta(arena, target); break;
    case BERTH_DEVICE_NPU: fill_npu(arena, target); break;
    case BERTH_DEVICE_NULL: fill_null(target); break;
    case BERTH_DEVICE_FREE:
    case BERTH_DEVICE_KIND_COUNT: break;
    }
    if (target->kind != BERTH_DEVICE_CPU)
        set(&target->memory_alignment_bytes,
            berth_target__memory_defaults_of(target).alignment_bytes);
    uint32_t count = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    for (uint32_t i = 0; i < count; ++i) {
        int64_t *number = berth_target__int_member(target, &table[i]);
        if (number && *number < 0) *number = 0;  // unknown
    }
}

berth_target__memory_defaults berth_target__memory_defaults_of(const berth_target *target) {
    // Waking the threads of a driver that runs on processor cores, or what waits for them.
    uint64_t link_ns = is_cpu_arch(target->arch) ? 25000 : 10000;
    switch (target->kind) {
    case BERTH_DEVICE_CUDA: return (berth_target__memory_defaults){256, 500, 10000};
    // The largest CL_DEVICE_MEM_BASE_ADDR_ALIGN among common GPUs is NVIDIA's, 4096 bits.
    // Vulkan 1.0, "Required Limits": minStorageBufferOffsetAlignment is at most 256.
    case BERTH_DEVICE_OPENCL: return (berth_target__memory_defaults){512, 400, link_ns};
    case BERTH_DEVICE_VULKAN: return (berth_target__memory_defaults){256, 400, link_ns};
    case BERTH_DEVICE_VTA: return (berth_target__memory_defaults){4096, 300, 5000};
    case BERTH_DEVICE_CPU:
    case BERTH_DEVICE_NPU:
    case BERTH_DEVICE_NULL:
    case BERTH_DEVICE_FREE:
    case BERTH_DEVICE_KIND_COUNT: break;
    }
    return (berth_target__memory_defaults){64, 100, 1000};
}
