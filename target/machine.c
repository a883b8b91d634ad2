// This machine: what the operating system says about its CPU.
#define _GNU_SOURCE  // sched_getaffinity
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#endif
#include <sys/utsname.h>
#include <unistd.h>

#include "base/str.h"
#include "target/internal.h"

// ------------------------------------------------------------------------------------------------
// facts

// Feature names are those compilers use; the kernel's differ.
typedef struct feature_name {
    const char *kernel;
    const char *name;
} feature_name;

static const feature_name x86_features[] = {{"sse4_2", "sse4.2"},
                                            {"popcnt", "popcnt"},
                                            {"avx", "avx"},
                                            {"avx2", "avx2"},
                                            {"fma", "fma"},
                                            {"f16c", "f16c"},
                                            {"bmi1", "bmi"},
                                            {"bmi2", "bmi2"},
                                            {"avx512f", "avx512f"},
                                            {"avx512bw", "avx512bw"},
                                            {"avx512cd", "avx512cd"},
                                            {"avx512dq", "avx512dq"},
                                            {"avx512vl", "avx512vl"},
                                            {"avx512_vnni", "avx512vnni"},
                                            {"avx512vbmi", "avx512vbmi"},
                                            {"avx512_bf16", "avx512bf16"},
                                            {"avx512_fp16", "avx512fp16"},
                                            {"avx_vnni", "avxvnni"},
                                            {"amx_tile", "amx-tile"},
                                            {"amx_int8", "amx-int8"},
                                            {"amx_bf16", "amx-bf16"},
                                            {NULL, NULL}};
static const feature_name arm_features[] = {
    {"asimd", "neon"},   {"neon", "neon"}, {"asimddp", "dotprod"},
    {"asimdhp", "fp16"}, {"sve", "sve"},   {"sve2", "sve2"},
    {"i8mm", "i8mm"},    {"bf16", "bf16"}, {NULL, NULL}};

enum { core_limit = 4096 };

typedef struct cpuinfo {
    berth_arena *arena;
    berth_machine_facts *facts;
    int physical_id;
    uint32_t seen_count;
    int seen[core_limit][2];  // (package, core)
    double mhz;
    int error;  // errno of a file that is there and cannot be read, 0 = none
} cpuinfo;

static bool has_word(const char *line, const char *word) {
    size_t length = strlen(word);
    for (const char *at = line; (at = strstr(at, word)); at += length) {
        bool starts = at == line || at[-1] == ' ' || at[-1] == '\t' || at[-1] == ':';
        if (starts && (at[length] == ' ' || at[length] == 0 || at[length] == '\n')) return true;
    }
    return false;
}

// Linux gives a process, and all of its threads, the registers of AMX when it asks for them
// (Documentation/arch/x86/xstate.rst, "Dynamic features").
static bool gives_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
    const int request_permission = 0x1023,
              tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}

static bool is_given(const char *feature) {
    return strncmp(feature, "amx-", 4) != 0 || gives_tiles();
}

static void read_features(cpuinfo *info, const char *line, const feature_name *table) {
    uint32_t count = 0;
    while (table[count].name) count++;
    const char **found = berth_arena_new_array(info->arena, const char *, count + 1);
    berth_string_list list = {found, 0};
    for (uint32_t i = 0; i < count; ++i)
        if (has_word(line, table[i].kernel) && !berth_target__list_has(list, table[i].name) &&
            is_given(table[i].name))
            found[list.count++] = table[i].name;
    info->facts->features = list;
}

static void see_core(cpuinfo *info, int core) {
    for (uint32_t i = 0; i < info->seen_count; ++i)
        if (info->seen[i][0] == info->physical_id && info->seen[i][1] == core) return;
    if (info->seen_count == core_limit) return;
    info->seen[info->seen_count][0] = info->physical_id;
    info->seen[info->seen_count++][1] = core;
}

static void read_line(cpuinfo *info, char *line) {
    char *colon = strchr(line, ':');
    if (!colon) return;
    char *value = colon + 1;
    value += strspn(value, " \t");
    bool known = info->facts->features.count > 0;
    if (strncmp(line, "model name", 10) == 0 && !*info->facts->cpu_model)
        info->facts->cpu_model = berth_arena_strndup(info->arena, value, strnlen(value, 200));
    else if (strncmp(line, "flags", 5) == 0 && !known)
        read_features(info, value, x86_features);
    else if (strncmp(line, "Features", 8) == 0 && !known)
        read_features(info, value, arm_features);
    else if (strncmp(line, "physical id", 11) == 0)
        info->physical_id = (int)strtoll(value, NULL, 10);
    else if (strncmp(line, "core id", 7) == 0)
        see_core(info, (int)strtoll(value, NULL, 10));
    else if (strncmp(line, "cpu MHz", 7) == 0 && !(info->mhz > 0))
        info->mhz = strtod(value, NULL);
}

// Reads the whole file before looking at it: an arena that runs out jumps away, and would leave the
// file open.
// The text of a file of the system, NUL-terminated; the number of bytes. 0 where there is none, or
// containers hide it; what else fails (no descriptors, a broken system) is info->error.
static size_t read_system(cpuinfo *info, const char *path, char *text, size_t capacity) {
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool hidden = fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES);
    if (fd < 0 && !hidden && info->error == 0) info->error = errno;
    if (fd < 0) return 0;
    size_t length = 0;
    ssize_t got = 0;
    do {
        got = read(fd, text + length, capacity - 1 - length);
        if (got > 0) length += (size_t)got;
    } while ((got > 0 && length + 1 < capacity) || (got < 0 && errno == EINTR));
    if (got < 0 && info->error == 0) info->error = errno;
    close(fd);
    text[length] = 0;
    return length;
}

static void read_cpuinfo(cpuinfo *info) {
    size_t capacity = (size_t)1 << 22;
    char *text = malloc(capacity);
    if (!text) berth_arena_fail(info->arena);
    read_system(info, "/proc/cpuinfo", text, capacity);
    berth_arena *scratch = berth_arena_create_child(info->arena);
    berth_arena_defer(scratch, free, text);
    for (char *line = text; *line;) {
        char *next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        read_line(info, line);
        line = next;
    }
    berth_arena_destroy(scratch);
}

// One number from a file of the system, or 0.
static int64_t read_number(cpuinfo *info, const char *path) {
    char text[64];
    return read_system(info, path, text, sizeof(text)) ? strtoll(text, NULL, 10) : 0;
}

static int64_t positive(long value) {
    return value > 0 ? value : 0;
}

// Size of the data or unified cache of a level, as the kernel lists it for the first processor;
// what sysconf says where it lists none. (In virtual machines sysconf can be far off.)
static int64_t cache_bytes(cpuinfo *info, int level, long fallback) {
    for (int index = 0; index < 8; ++index) {
        char path[96], line[64];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        if (read_number(info, path) != level) continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        if (!read_system(info, path, line, sizeof(line)) || strncmp(line, "Instruction", 11) == 0)
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        int64_t kib = read_number(info, path);  // "48K"
        if (kib > 0 && kib < 1 << 30) return kib * 1024;
    }
    return positive(fallback);
}

static int64_t usable_threads(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
    return positive(sysconf(_SC_NPROCESSORS_ONLN));
}

static berth_status facts_body(void *user) {
    cpuinfo *info = user;
    berth_machine_facts *facts = info->facts;
    facts->cpu_model = facts->arch = facts->cpu = "";
    struct utsname system;
    if (uname(&system) == 0) facts->arch = berth_arena_strdup(info->arena, system.machine);
    read_cpuinfo(info);
    facts->threads = usable_threads();
    facts->cores = info->seen_count;
    if (facts->cores == 0 || facts->cores > facts->threads) facts->cores = facts->threads;
    int64_t khz = read_number(info, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    // "cpu MHz" is the clock of the moment: rounded, so that the target is the same every time.
    facts->clock_hz = khz > 0 ? khz * 1000 : (int64_t)(info->mhz / 100 + 0.5) * 100000000;
    facts->l1_bytes = cache_bytes(info, 1, sysconf(_SC_LEVEL1_DCACHE_SIZE));
    facts->l2_bytes = cache_bytes(info, 2, sysconf(_SC_LEVEL2_CACHE_SIZE));
    facts->l3_bytes = cache_bytes(info, 3, sysconf(_SC_LEVEL3_CACHE_SIZE));
    facts->cache_line_bytes = positive(sysconf(_SC_LEVEL1_DCACHE_LINESIZE));
    facts->memory_capacity_bytes =
        positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE));
    if (info->error == 0) return BERTH_OK;
    return berth_status_make(BERTH_IO, "cannot read what this machine is (/proc/cpuinfo, /sys): %s",
                             strerror(info->error));
}

berth_status berth_machine_facts_host(berth_arena *arena, berth_machine_facts *out_facts) {
    *out_facts = (berth_machine_facts){0};
    cpuinfo info = {.arena = arena, .facts = out_facts};
    return berth_arena_try(arena, facts_body, &info);
}
