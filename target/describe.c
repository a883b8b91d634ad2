// From a machine's facts to a MultiTarget's JSON, with the source of each figure.
#include "target/describe.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "target/internal.h"

static const double assumed_node_bandwidth = 2e10;  // as defaults.c has it
static const uint64_t assumed_node_capacity = (uint64_t)8 << 30;

typedef struct writer {
    berth_arena *arena;
    const berth_machine_description *in;
    const berth_topology *topology;
    berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS];
    uint32_t group_count;
    json *root, *devices, *memories, *links, *sources;
    const char *node_memory[BERTH_TOPOLOGY_MAX_NODES];  // NULL: no device reaches it
    double node_bandwidth[BERTH_TOPOLOGY_MAX_NODES];
    const char *group_device[BERTH_TOPOLOGY_MAX_GROUPS];
} writer;

// ---- figures and their sources ----

static void say(writer *w, const char *source, const char *format, ...) BERTH_PRINTF(3, 4);
static void say(writer *w, const char *source, const char *format, ...) {
    char path[160];
    va_list list;
    va_start(list, format);
    vsnprintf(path, sizeof(path), format, list);
    va_end(list);
    const char *key = berth_arena_strdup(w->arena, path);
    berth_target__json_set(w->arena, w->sources, key, berth_target__json_string(w->arena, source));
}

static void put_text(writer *w, json *object, const char *key, const char *text) {
    if (*text)
        berth_target__json_set(w->arena, object, key, berth_target__json_string(w->arena, text));
}

// Figures of 0 are unknown and left out. `at`: the path of the object.
static void put_int(writer *w, json *object, const char *at, const char *key, int64_t value,
                    const char *source) {
    if (value <= 0) return;
    berth_target__json_set(w->arena, object, key, berth_target__json_int(w->arena, value));
    say(w, source, "%s.%s", at, key);
}

// Measured figures are known to two or three digits: no more are written.
static double rounded(double value) {
    char text[32];
    snprintf(text, sizeof(text), "%.3g", value);
    double result = 0;
    return sscanf(text, "%lf", &result) == 1 ? result : value;
}

static void put_real(writer *w, json *object, const char *at, const char *key, double value,
                     const char *source) {
    if (!(value > 0)) return;
    berth_target__json_set(w->arena, object, key,
                           berth_target__json_real(w->arena, rounded(value)));
    say(w, source, "%s.%s", at, key);
}

static void put_flops(writer *w, json *object, const char *at, const double *flops,
                      const char *source) {
    json *peaks = berth_target__json_object(w->arena);
    const char *below = berth_arena_printf(w->arena, "%s.peak_flops", at);
    for (uint32_t d = 1; d < BERTH_DTYPE_COUNT; ++d)
        put_real(w, peaks, below, berth_dtype_name((berth_dtype)d), flops[d], source);
    if (peaks->members.count) berth_target__json_set(w->arena, object, "peak_flops", peaks);
}

// ---- devices ----

static const char *push_device(writer *w, const char *name, json *target) {
    json *device = berth_target__json_object(w->arena);
    put_text(w, device, "name", name);
    berth_target__json_set(w->arena, device, "target", target);
    berth_target__json_push(w->arena, w->devices, device);
    return name;
}

// What the system calls an architecture is not always what compilers do.
static const char *word_of(writer *w, const char *text) {
    char *word = berth_arena_strdup(w->arena, text);
    for (char *c = word; *c; ++c)
        if (!isalnum((unsigned char)*c) && !strchr("_.-+", *c)) return "";
    return isalnum((unsigned char)*word) ? berth_target__arch_of(word) : "";
}

static void put_cpuset(writer *w, json *target, const berth_topology_group *group) {
    char text[512];
    berth_processor_set set = berth_topology_group_processors(w->topology, group);
    if (!berth_processor_set_print(&set, text, sizeof(text)) || !*text) return;
    json *words = berth_target__json_array(w->arena);
    char *state = NULL;
    for (char *word = strtok_r(text, ",", &state); word; word = strtok_r(NULL, ",", &state))
        berth_target__json_push(w->arena, words, berth_target__json_string(w->arena, word));
    berth_target__json_set(w->arena, target, "cpuset", words);
}

static void describe_measured_cpu(writer *w, json *target, const char *at, uint32_t group) {
    if (!w->in->cpus) return;
    const berth_measured_cpu *m = &w->in->cpus[group];
    put_flops(w, target, at, m->flops,
              "measured: multiply-adds in registers, all cores at once, median of 5");
    put_int(w, target, at, "dispatch_ns", m->dispatch_ns,
            "measured: an empty kernel on all cores, median");
    put_real(w, target, at, "core_bandwidth_bytes_per_s", m->core_read_bytes_per_s,
             "measured: read by one core, median of 5");
}

// The rest of this machine's facts, where hwloc says nothing.
static void describe_cpu(writer *w, uint32_t index) {
    const berth_topology_group *group = &w->groups[index];
    const berth_topology_kind *kind = &w->topology->kinds[group->kind];
    const berth_machine_facts *facts = w->in->facts;
    const char *hwloc = "reported: hwloc", *kernel = "reported: the system";
    const char *at = berth_arena_printf(w->arena, "devices[%u].target", w->devices->items.count);
    json *target =
        facts ? berth_target__machine_cpu(w->arena, facts) : berth_target__json_object(w->arena);
    for (uint32_t i = 0; i < target->members.count; ++i)
        if (target->members.data[i].value->type == JSON_TYPE_INT)
            say(w, kernel, "%s.%s", at, target->members.data[i].key);
    berth_target__json_set(w->arena, target, "memory_capacity_bytes", NULL);
    put_text(w, target, "kind", "cpu");
    if (!facts) put_text(w, target, "arch", word_of(w, w->topology->arch));
    if (!facts) put_text(w, target, "model", w->topology->model);
    put_int(w, target, at, "cores", group->core_count, hwloc);
    put_int(w, target, at, "threads", group->thread_count, hwloc);
    put_int(w, target, at, "clock_hz", kind->clock_hz, hwloc);
    put_int(w, target, at, "l1_bytes", kind->cache_bytes[0], hwloc);
    put_int(w, target, at, "l2_bytes", kind->cache_bytes[1], hwloc);
    put_int(w, target, at, "l3_bytes", kind->cache_bytes[2] * group->l3_count, hwloc);
    put_int(w, target, at, "cache_line_bytes", kind->cache_line_bytes, hwloc);
    if (w->group_count > 1) put_cpuset(w, target, group);
    describe_measured_cpu(w, target, at, index);
    w->group_device[index] = push_device(w, berth_arena_printf(w->arena, "cpu:%u", index), target);
}

// ---- memories ----

static json *push_memory(writer *w, const char *name, const char **out_at) {
    *out_at = berth_arena_printf(w->arena, "memories[%u]", w->memories->items.count);
    json *memory = berth_target__json_object(w->arena);
    put_text(w, memory, "name", name);
    berth_target__json_set(w->arena, memory, "reached_by", berth_target__json_array(w->arena));
    berth_target__json_push(w->arena, w->memories, memory);
    return memory;
}

static void reach(writer *w, json *memory, const char *device) {
    berth_target__json_push(w->arena, berth_target__json_get(memory, "reached_by"),
                            berth_target__json_string(w->arena, device));
}

// "dram0", "mcdram4": what kind of memory, and the system's number.
static const char *memory_name(writer *w, uint32_t node) {
    const berth_topology_node *n = &w->topology->nodes[node];
    char kind[sizeof(n->kind)] = "";
    size_t length = 0;
    for (const char *c = n->kind; *c; ++c)
        if (isalnum((unsigned char)*c)) kind[length++] = (char)tolower((unsigned char)*c);
    kind[length] = 0;
    return berth_arena_printf(w->arena, "%s%u", *kind ? kind : "node", n->os_index);
}

static bool name_taken(const writer *w, const char *name) {
    for (uint32_t i = 0; i < w->memories->items.count; ++i)
        if (strcmp(berth_target__text_of(w->memories->items.data[i], "name"), name) == 0)
            return true;
    return false;
}

// The figures of a group whose own memory it is; NULL = none.
static const berth_measured_cpu *measured_at(const writer *w, uint32_t node) {
    const berth_measured_cpu *best = NULL;
    for (uint32_t g = 0; w->in->cpus && g < w->group_count; ++g) {
        const berth_measured_cpu *m = &w->in->cpus[g];
        if (w->groups[g].node == node && (!best || m->read_bytes_per_s > best->read_bytes_per_s))
            best = m;
    }
    return best;
}

static void describe_node_figures(writer *w, uint32_t node, json *memory, const char *at) {
    const berth_topology_node *n = &w->topology->nodes[node];
    const char *hwloc = "reported: hwloc";
    int64_t capacity = n->capacity_bytes < (uint64_t)1e18 ? (int64_t)n->capacity_bytes : 0;
    put_int(w, memory, at, "capacity_bytes", capacity, hwloc);
    if (capacity == 0)
        put_int(w, memory, at, "capacity_bytes", (int64_t)assumed_node_capacity,
                "assumed: hwloc says no size");
    const berth_measured_cpu *m = measured_at(w, node);
    w->node_bandwidth[node] = assumed_node_bandwidth;
    if (n->bandwidth_bytes_per_s) {
        w->node_bandwidth[node] = (double)n->bandwidth_bytes_per_s;
        put_real(w, memory, at, "bandwidth_bytes_per_s", w->node_bandwidth[node],
                 "reported: hwloc, memory attributes");
    }
    if (n->latency_ns)
        put_int(w, memory, at, "latency_ns", (int64_t)n->latency_ns,
                "reported: hwloc, memory attributes");
    if (!m) return;
    put_real(w, memory, at, "bandwidth_bytes_per_s", m->read_bytes_per_s,
             "measured: read by all cores, median of 5");
    put_int(w, memory, at, "latency_ns", m->latency_ns,
            "measured: a chain of loads over 128 MiB, median of 3");
    if (m->read_bytes_per_s > 0) w->node_bandwidth[node] = m->read_bytes_per_s;
}

// A device's own memory is the first that it reaches, so those that cores have as their own come
// first.
static void describe_nodes(writer *w, bool own) {
    for (uint32_t i = 0; i < w->topology->node_count; ++i) {
        const berth_topology_node *n = &w->topology->nodes[i];
        bool is_own = false;
        for (uint32_t g = 0; g < w->group_count; ++g) is_own = is_own || w->groups[g].node == i;
        if (is_own != own || (!own && n->capacity_bytes == 0)) continue;
        const char *at = NULL, *name = memory_name(w, i);
        if (name_taken(w, name)) name = berth_arena_printf(w->arena, "memory_%u", i);
        json *memory = push_memory(w, name, &at);
        w->node_memory[i] = name;
        describe_node_figures(w, i, memory, at);
        for (uint32_t g = 0; g < w->group_count; ++g)
            if (w->groups[g].node == n->home) reach(w, memory, w->group_device[g]);
    }
}

// ---- links ----

static json *push_link(writer *w, const char *from, const char *to, const char **out_at) {
    *out_at = berth_arena_printf(w->arena, "links[%u]", w->links->items.count);
    json *link = berth_target__json_object(w->arena);
    put_text(w, link, "from", from);
    put_text(w, link, "to", to);
    berth_target__json_push(w->arena, w->links, link);
    return link;
}

// Firmware's distances are relative: 10 is a node to itself, 21 takes 2.1 times as long.
static void link_nodes(writer *w) {
    const berth_topology *t = w->topology;
    for (uint32_t i = 0; i < t->node_count; ++i)
        for (uint32_t k = i + 1; k < t->node_count; ++k) {
            if (!w->node_memory[i] || !w->node_memory[k]) continue;
            if (t->nodes[i].home != i || t->nodes[k].home != k) continue;
            uint16_t distance = t->node_distance[i][k];
            double ratio = distance > 10 ? (double)distance / 10 : 2;
            double slower = w->node_bandwidth[i] < w->node_bandwidth[k] ? w->node_bandwidth[i]
                                                                        : w->node_bandwidth[k];
            const char *at = NULL;
            json *link = push_link(w, w->node_memory[i], w->node_memory[k], &at);
            const char *how = distance > 10 ? "assumed: in proportion to the firmware's distance"
                                            : "assumed: half of the memory's";
            put_real(w, link, at, "bandwidth_bytes_per_s", slower / ratio, how);
            put_int(w, link, at, "latency_ns", (int64_t)(100 * ratio),
                    "assumed: 100 ns, and the firmware's distance");
        }
}

static const char *near_memory(const writer *w, uint32_t node) {
    if (w->node_memory[node]) return w->node_memory[node];
    for (uint32_t i = 0; i < w->topology->node_count; ++i)
        if (w->node_memory[i]) return w->node_memory[i];
    return NULL;
}

// ---- devices of another machine ----

static void describe_device(writer *w, uint32_t index, const char **out_memory) {
    const berth_topology_device *d = &w->topology->devices[index];
    const char *hwloc = "reported: hwloc";
    const char *at = berth_arena_printf(w->arena, "devices[%u].target", w->devices->items.count);
    json *target = berth_target__json_object(w->arena);
    put_text(w, target, "kind", d->kind);
    put_text(w, target, "model", d->model);
    put_int(w, target, at, "compute_units", d->compute_units, hwloc);
    put_int(w, target, at, "local_memory_bytes", d->local_memory_bytes, hwloc);
    put_int(w, target, at, "l2_bytes", d->l2_bytes, hwloc);
    put_int(w, target, at, "clock_hz", d->clock_hz, hwloc);
    const char *name = push_device(w, berth_arena_printf(w->arena, "gpu%u", index), target);
    *out_memory = berth_arena_printf(w->arena, "%s_memory", name);
    const char *memory_at = NULL;
    json *memory = push_memory(w, *out_memory, &memory_at);
    reach(w, memory, name);
    put_int(w, memory, memory_at, "capacity_bytes", (int64_t)d->memory_bytes, hwloc);
    if (d->memory_bytes == 0)
        put_int(w, memory, memory_at, "capacity_bytes", (int64_t)assumed_node_capacity,
                "assumed: hwloc says no size");
    const char *host = near_memory(w, d->node);
    if (!host) return;
    json *link = push_link(w, host, *out_memory, &at);
    put_real(w, link, at, "bandwidth_bytes_per_s", (double)d->link_bytes_per_s,
             "reported: hwloc, speed of the slot");
    for (uint32_t i = 0; i < w->topology->device_count; ++i)
        if (i != index && *d->bus && strcmp(w->topology->devices[i].bus, d->bus) == 0)
            put_text(w, link, "bus", d->bus);
}

static void describe_devices(writer *w) {
    const berth_topology *t = w->topology;
    const char *memories[BERTH_TOPOLOGY_MAX_DEVICES] = {NULL};
    uint32_t count = t->device_count;
    uint32_t most_devices = BERTH_TARGET_MAX_DEVICES - 1, most_memories = BERTH_TARGET_MAX_MEMORIES;
    if (w->group_count + count > most_devices) count = most_devices - w->group_count;
    if (w->memories->items.count + count > most_memories)
        count = most_memories - w->memories->items.count;
    for (uint32_t i = 0; i < count; ++i) describe_device(w, i, &memories[i]);
    for (uint32_t i = 0; i < count; ++i)
        for (uint32_t k = i + 1; k < count; ++k) {
            uint64_t bandwidth = t->device_link_bytes_per_s[i][k];
            if (t->device_link_bytes_per_s[k][i] < bandwidth)
                bandwidth = t->device_link_bytes_per_s[k][i];
            const char *at = NULL;
            if (bandwidth == 0) continue;
            json *link = push_link(w, memories[i], memories[k], &at);
            put_real(w, link, at, "bandwidth_bytes_per_s", (double)bandwidth,
                     "reported: hwloc, links between devices");
        }
}

// ---- devices of this machine ----

static void describe_own_memory(writer *w, json *target, const char *at, const char *device,
                                const berth_measured_device *m) {
    const char *memory_at = NULL;
    json *memory = push_memory(w, device, &memory_at);
    reach(w, memory, device);
    const json *capacity = berth_target__json_get(target, "memory_capacity_bytes");
    put_int(w, memory, memory_at, "capacity_bytes",
            capacity ? capacity->integer : (int64_t)assumed_node_capacity,
            capacity ? "reported: its driver" : "assumed: its driver says no size");
    const char *host = near_memory(w, 0);
    const char *link_at = NULL;
    json *link = push_link(w, host, device, &link_at);
    (void)at;
    if (!m) return;
    put_real(w, memory, memory_at, "bandwidth_bytes_per_s", m->memory_bytes_per_s,
             "measured: copies inside it, bytes read and written, median of 5");
    put_real(w, link, link_at, "bandwidth_bytes_per_s", m->link_bytes_per_s,
             "measured: copies there and back, the slower of both, median of 5");
    put_int(w, link, link_at, "latency_ns", m->link_latency_ns,
            "measured: copies of 64 bytes, median");
}

static void describe_local_device(writer *w, uint32_t index, uint32_t *ids) {
    const berth_machine_device *d = &w->in->facts->devices[index];
    const berth_measured_device *m = w->in->devices ? &w->in->devices[index] : NULL;
    const char *at = berth_arena_printf(w->arena, "devices[%u].target", w->devices->items.count);
    json *target = berth_target__machine_device(w->arena, w->in->facts, d);
    for (uint32_t i = 0; i < target->members.count; ++i)
        if (target->members.data[i].value->type == JSON_TYPE_INT)
            say(w, "reported: its driver", "%s.%s", at, target->members.data[i].key);
    if (m) {
        put_flops(w, target, at, m->flops, "measured: multiply-adds in registers, median of 5");
        put_int(w, target, at, "dispatch_ns", m->dispatch_ns, "measured: an empty kernel, median");
    }
    const char *name = push_device(
        w, berth_arena_printf(w->arena, "%s:%u", berth_device_kind_name(d->kind), ids[d->kind]++),
        target);
    if (d->shares_host_memory)
        reach(w, w->memories->items.data[0], name);
    else
        describe_own_memory(w, target, at, name, m);
    // Said of the memory.
    berth_target__json_set(w->arena, target, "memory_capacity_bytes", NULL);
}

// ---- all of it ----

static const char *name_of(writer *w) {
    const char *given = w->in->name ? w->in->name : w->in->facts ? "local" : w->topology->product;
    char *name = berth_arena_strdup(w->arena, *given ? given : "machine");
    size_t length = 0;
    for (char *c = name; *c && length < 64; ++c) {
        bool fine = isalnum((unsigned char)*c) || strchr("_.-", *c);
        if (fine || (length && name[length - 1] != '-')) name[length++] = fine ? *c : '-';
    }
    while (length && name[length - 1] == '-') --length;
    name[length] = 0;
    return isalnum((unsigned char)*name) ? name : "machine";
}

static void write_all(writer *w) {
    uint32_t ids[BERTH_DEVICE_KIND_COUNT] = {0};
    w->root = berth_target__json_object(w->arena);
    w->devices = berth_target__json_array(w->arena);
    w->memories = berth_target__json_array(w->arena);
    w->links = berth_target__json_array(w->arena);
    w->sources = berth_target__json_object(w->arena);
    w->group_count = berth_topology_groups(w->topology, w->groups);
    if (w->group_count >= BERTH_TARGET_MAX_DEVICES) w->group_count = BERTH_TARGET_MAX_DEVICES - 1;
    for (uint32_t g = 0; g < w->group_count; ++g) describe_cpu(w, g);
    describe_nodes(w, true);
    describe_nodes(w, false);
    link_nodes(w);
    if (w->in->facts)
        for (uint32_t i = 0; i < w->in->facts->device_count; ++i) describe_local_device(w, i, ids);
    else
        describe_devices(w);
    put_text(w, w->root, "kind", "multi");
    put_text(w, w->root, "name", name_of(w));
    put_text(w, w->root, "host", "cpu:0");
    berth_target__json_set(w->arena, w->root, "devices", w->devices);
    berth_target__json_set(w->arena, w->root, "memories", w->memories);
    if (w->links->items.count) berth_target__json_set(w->arena, w->root, "links", w->links);
}

json *berth_target__machine(berth_arena *arena, const berth_machine_description *description,
                            json **out_sources) {
    writer *w = berth_arena_new(arena, writer);
    w->arena = arena;
    w->in = description;
    w->topology = description->topology;
    write_all(w);
    if (out_sources) *out_sources = w->sources;
    return w->root;
}

// ---- the file ----

// Figures that nothing was said of got their value by default.
static void assume(berth_arena *arena, const json *value, const char *path, json *sources) {
    if (value->type == JSON_TYPE_INT || value->type == JSON_TYPE_REAL) {
        if (!berth_target__json_get(sources, path))
            berth_target__json_set(arena, sources, path,
                                   berth_target__json_string(arena, "assumed: by default"));
        return;
    }
    for (uint32_t i = 0; i < value->members.count; ++i)
        assume(
            arena, value->members.data[i].value,
            berth_arena_printf(arena, "%s%s%s", path, *path ? "." : "", value->members.data[i].key),
            sources);
    for (uint32_t i = 0; i < value->items.count; ++i)
        assume(arena, value->items.data[i], berth_arena_printf(arena, "%s[%u]", path, i), sources);
}

typedef struct job {
    berth_arena *arena;
    const berth_machine_description *description;
    const char *draft;
    json *sources;
    const berth_multi_target *target;
    const char *text;
} job;

static berth_status make_draft(void *user) {
    job *j = user;
    json *root = berth_target__machine(j->arena, j->description, &j->sources);
    j->draft = berth_target__json_print(j->arena, root, 0);
    return BERTH_OK;
}

static berth_status make_text(void *user) {
    job *j = user;
    const char *error = NULL;
    json *root = berth_target__json_read(j->arena, j->arena, j->target->canonical,
                                         strlen(j->target->canonical), &error);
    assume(j->arena, root, "", j->sources);
    berth_target__json_set(j->arena, root, "sources", j->sources);
    j->text = berth_arena_printf(j->arena, "%s\n", berth_target__json_print(j->arena, root, 2));
    return BERTH_OK;
}

berth_status berth_machine_describe(berth_arena *arena,
                                    const berth_machine_description *description,
                                    const char **out_text) {
    *out_text = NULL;
    job j = {.arena = arena, .description = description};
    const berth_target_options options = {.no_files = true};
    berth_multi_target *target = NULL;
    BERTH_TRY(berth_arena_try(arena, make_draft, &j));
    BERTH_TRY(berth_target_parse(arena, j.draft, &options, &target));
    j.target = target;
    BERTH_TRY(berth_arena_try(arena, make_text, &j));
    *out_text = j.text;
    return BERTH_OK;
}
