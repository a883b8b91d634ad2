// The cores of a device: all of them, a group, or those that its attributes choose.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/kernel_abi.h"
#include "devices/cpu/topology_private.h"

#define MOST_SHARERS 64
#define ATTRIBUTES_BYTES 1024

// ---- attributes ----

typedef struct request {
    bool has_cpuset;
    berth_processor_set cpuset;
    uint32_t share;  // which of the sharers; where there are any
    uint32_t sharer_count;
    uint32_t wanted[MOST_SHARERS];  // cores
    uint32_t threads;               // 0 = of every core
} request;

static bool read_count(const char *text, uint32_t most, uint32_t *out) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || value > most) return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_value(request *r, const char *name, char *value) {
    if (strcmp(name, "share") == 0) return read_count(value, MOST_SHARERS - 1, &r->share);
    if (strcmp(name, "threads") == 0)
        return read_count(value, BERTH_TOPOLOGY_MAX_PROCESSORS, &r->threads);
    bool cpuset = strcmp(name, "cpuset") == 0;
    if (!cpuset && strcmp(name, "cores") != 0) return false;
    if (cpuset) r->has_cpuset = true;
    char *state = NULL;
    for (char *word = strtok_r(value, ",", &state); word; word = strtok_r(NULL, ",", &state)) {
        if (cpuset) {
            if (!berth_processor_set_add_word(&r->cpuset, word)) return false;
            continue;
        }
        if (r->sharer_count == MOST_SHARERS ||
            !read_count(word, BERTH_TOPOLOGY_MAX_PROCESSORS, &r->wanted[r->sharer_count]))
            return false;
        r->sharer_count++;
    }
    return true;
}

static berth_status read_request(const char *attributes, request *r) {
    char text[ATTRIBUTES_BYTES];
    int length = snprintf(text, sizeof(text), "%s", attributes ? attributes : "");
    bool good = length >= 0 && (size_t)length < sizeof(text);
    char *state = NULL;
    for (char *word = strtok_r(text, " ", &state); word && good;
         word = strtok_r(NULL, " ", &state)) {
        char *equals = strchr(word, '=');
        if (equals) *equals = 0;
        good = equals && read_value(r, word, equals + 1);
    }
    if (good && (r->sharer_count == 0 || r->share < r->sharer_count)) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "attributes of a cpu device are cpuset=0-3,8 or share=1 cores=4,2 "
                             "or threads=2, not \"%.200s\"",
                             attributes);
}

// ---- choice ----

static bool in_device(const berth_cpu_topology *topology, uint32_t ordinal, uint32_t core) {
    return ordinal == 0 ||
           berth_topology_group_has(&topology->machine, &topology->groups[ordinal - 1], core);
}

static void take(berth_cpu_part *part, uint32_t core) {
    part->cores[part->core_count++] = (uint16_t)core;
}

static berth_status take_cpuset(const berth_cpu_topology *topology, uint32_t ordinal,
                                const request *r, berth_cpu_part *part) {
    const berth_topology *machine = &topology->machine;
    uint32_t last = BERTH_CPU_NO_CORE;
    for (uint32_t i = 0; i < BERTH_TOPOLOGY_MAX_PROCESSORS; ++i) {
        if (!berth_processor_set_has(&r->cpuset, i)) continue;
        uint32_t core = machine->core_of[i];
        if (core == BERTH_TOPOLOGY_NONE || !in_device(topology, ordinal, core)) {
            part->wanted_count++;
            continue;
        }
        bool taken = core == last;  // several threads of one core
        for (uint32_t k = 0; k < part->core_count && !taken; ++k) taken = part->cores[k] == core;
        if (taken) continue;
        take(part, core);
        part->wanted_count++;
        last = core;
    }
    if (part->core_count) return BERTH_OK;
    char wanted[128], here[128];
    berth_processor_set all = {{0}};
    for (uint32_t i = 0; i < BERTH_TOPOLOGY_MAX_PROCESSORS; ++i)
        if (machine->core_of[i] != BERTH_TOPOLOGY_NONE) berth_processor_set_add(&all, i);
    berth_processor_set_print(&r->cpuset, wanted, sizeof(wanted));
    berth_processor_set_print(&all, here, sizeof(here));
    return berth_status_make(BERTH_NOT_FOUND,
                             "none of the processors %s is here; this process may use %s", wanted,
                             here);
}

// Cores [*first, +*count) in the order of groups are those of sharer `share`: as many as it wants
// where there are enough for all, else in proportion, one at least.
static void divide(const request *r, uint32_t cores, uint32_t *first, uint32_t *count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->sharer_count; ++i) sum += r->wanted[i] ? r->wanted[i] : 1;
    uint32_t begin = 0;
    for (uint32_t i = 0; i <= r->share; ++i) {
        uint64_t wanted = r->wanted[i] ? r->wanted[i] : 1;
        uint32_t left = cores - begin - (r->sharer_count - 1 - i);  // one for each that comes after
        uint64_t mine = sum <= cores ? wanted : wanted * cores / sum;
        if (mine < 1) mine = 1;
        if (mine > left) mine = left;
        *first = begin;
        *count = (uint32_t)mine;
        begin += (uint32_t)mine;
    }
}

static berth_status take_share(const berth_cpu_topology *topology, uint32_t ordinal,
                               const request *r, berth_cpu_part *part) {
    const berth_topology *machine = &topology->machine;
    if (r->sharer_count > machine->core_count)
        return berth_status_make(
            BERTH_NOT_FOUND, "%u cpu devices share this machine's cores, and there %s only %u",
            r->sharer_count, machine->core_count == 1 ? "is" : "are", machine->core_count);
    bool own_group = ordinal == 0 && r->sharer_count == topology->group_count;
    uint32_t first = 0, count = r->wanted[r->share];
    part->wanted_count = count;
    if (!own_group) divide(r, machine->core_count, &first, &count);
    uint32_t seen = 0;
    for (uint32_t g = 0; g < topology->group_count; ++g) {
        if (own_group && g != r->share) continue;
        for (uint32_t i = 0; i < machine->core_count; ++i) {
            if (!berth_topology_group_has(machine, &topology->groups[g], i)) continue;
            if (seen >= first && part->core_count < count) take(part, i);
            ++seen;
        }
    }
    if (part->core_count) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND, "no core is left for cpu device %u of %u", r->share,
                             r->sharer_count);
}

static void take_all(const berth_cpu_topology *topology, uint32_t ordinal, berth_cpu_part *part) {
    for (uint32_t i = 0; i < topology->machine.core_count; ++i)
        if (in_device(topology, ordinal, i)) take(part, i);
    part->wanted_count = part->core_count;
}

// The memory that most of the cores have as their own comes first.
static void choose_memories(const berth_topology *machine, berth_cpu_part *part) {
    uint32_t own = 0;
    if (part->pinned) {
        uint32_t cores[BERTH_TOPOLOGY_MAX_NODES] = {0};
        for (uint32_t i = 0; i < part->core_count; ++i)
            cores[machine->cores[part->cores[i]].node]++;
        for (uint32_t i = 1; i < machine->node_count; ++i)
            if (cores[i] > cores[own]) own = i;
    }
    part->memories[part->memory_count++] = (uint16_t)own;
    for (uint32_t i = 0; i < machine->node_count && part->memory_count < BERTH_DEVICE_MAX_MEMORIES;
         ++i)
        if (i != own) part->memories[part->memory_count++] = (uint16_t)i;
}

uint32_t berth_cpu_topology_part_count(const berth_cpu_topology *topology) {
    return topology->group_count > 1 ? 1 + topology->group_count : 1;
}

berth_status berth_cpu_part_choose(const berth_cpu_topology *topology, uint32_t ordinal,
                                   const char *attributes, berth_cpu_part *out_part) {
    *out_part = (berth_cpu_part){0};
    request r = {0};
    BERTH_TRY(read_request(attributes, &r));
    out_part->cores =
        berth_calloc(topology->allocator, topology->machine.core_count, sizeof(uint16_t));
    if (!out_part->cores) return berth_status_oom();
    berth_status status = BERTH_OK;
    if (r.has_cpuset)
        status = take_cpuset(topology, ordinal, &r, out_part);
    else if (r.sharer_count)
        status = take_share(topology, ordinal, &r, out_part);
    else
        take_all(topology, ordinal, out_part);
    if (status) {
        berth_cpu_part_end(topology, out_part);
        return status;
    }
    out_part->pinned = ordinal > 0 || r.has_cpuset || r.sharer_count > 0;
    out_part->thread_count = out_part->core_count;
    if (r.threads && r.threads < out_part->core_count) out_part->thread_count = r.threads;
    if (r.threads > out_part->core_count) out_part->wanted_count = r.threads;
    choose_memories(&topology->machine, out_part);
    return BERTH_OK;
}

void berth_cpu_part_end(const berth_cpu_topology *topology, berth_cpu_part *part) {
    berth_free(topology->allocator, part->cores, topology->machine.core_count * sizeof(uint16_t));
    *part = (berth_cpu_part){0};
}

// ---- facts ----

static void describe_memory(const berth_topology *machine, uint32_t node, bool own,
                            berth_memory_info *memory) {
    if (own)
        snprintf(memory->scope, sizeof(memory->scope), "global");
    else
        snprintf(memory->scope, sizeof(memory->scope), "numa:%u", node);
    memory->capacity_bytes = machine->nodes[node].capacity_bytes;
    memory->alignment_bytes = BERTH_CPU_ALIGNMENT_BYTES;
    memory->host_visible = true;
    memory->element_aligned = true;
}

static void describe_name(const berth_topology *machine, const berth_cpu_part *part, char *out,
                          size_t out_bytes) {
    const char *model = *machine->model ? machine->model : "CPU";
    const char *plural = part->core_count == 1 ? "" : "s";
    if (!part->pinned && part->thread_count < part->core_count) {
        snprintf(out, out_bytes, "%.80s (%u of %u cores)", model, part->thread_count,
                 part->core_count);
        return;
    }
    char processors[32], wanted[32] = "";
    if (part->wanted_count > part->core_count)
        snprintf(wanted, sizeof(wanted), " of %u wanted", part->wanted_count);
    if (!part->pinned) {
        snprintf(out, out_bytes, "%.80s (%u core%s%s)", model, part->core_count, plural, wanted);
        return;
    }
    berth_processor_set set = {{0}};
    for (uint32_t i = 0; i < part->core_count; ++i)
        berth_processor_set_add(&set, machine->cores[part->cores[i]].first);
    if (!berth_processor_set_print(&set, processors, sizeof(processors) - 3))
        memcpy(processors + strlen(processors), ",..", sizeof(",.."));
    snprintf(out, out_bytes, "%.48s (%u core%s%s: processor %s)", model, part->core_count, plural,
             wanted, processors);
}

void berth_cpu_part_info(const berth_cpu_topology *topology, const berth_cpu_part *part,
                         berth_device_info *out_info) {
    const berth_topology *machine = &topology->machine;
    const berth_topology_kind *kind = &machine->kinds[machine->cores[part->cores[0]].kind];
    memset(out_info, 0, sizeof(*out_info));
    describe_name(machine, part, out_info->name, sizeof(out_info->name));
    snprintf(out_info->vendor, sizeof(out_info->vendor), "%s", machine->vendor);
    snprintf(out_info->driver_version, sizeof(out_info->driver_version), "hwloc API %u.%u",
             machine->hwloc_version >> 16, (machine->hwloc_version >> 8) & 0xff);
    out_info->compute_units = part->core_count;
    out_info->max_group_size = 1;
    for (int i = 0; i < 3; ++i) out_info->cache_bytes[i] = (uint64_t)kind->cache_bytes[i];
    out_info->memory_count = part->memory_count;
    for (uint32_t i = 0; i < part->memory_count; ++i)
        describe_memory(machine, part->memories[i], i == 0, &out_info->memories[i]);
}
