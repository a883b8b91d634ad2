#include "tools/explain_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli.h"
#include "tools/plan_report.h"

// Work of a device, or copies from one to another.
typedef struct share {
    double time_ns;
    uint64_t size_bytes;
    uint32_t count;
    uint32_t aliases;  // of count: both ends reach the memory
} share;

typedef struct summary {
    const berth_plan_info *plan;
    const berth_plan_facts *facts;
    uint32_t device_count;
    share *devices;  // [device_count]
    share *traffic;  // [device_count][device_count], from and to
    const char **bus_names;
    share *buses;  // [bus_count] of copies over them, which take turns
    uint32_t bus_count;
} summary;

static const char *device_name(const summary *s, uint32_t device) {
    return berth_plan_info_device(s->plan, device)->name;
}

static uint32_t device_of(const summary *s, const char *name) {
    uint32_t device = 0;
    while (strcmp(device_name(s, device), name) != 0) ++device;
    return device;
}

static void add_share(share *sum, const berth_planned_copy *copy) {
    sum->time_ns += copy->time_ns;
    sum->size_bytes += copy->size_bytes;
    sum->aliases += copy->size_bytes == 0;
    sum->count++;
}

static void add_to_bus(summary *s, const berth_planned_copy *copy) {
    uint32_t at = 0;
    if (!*copy->bus) return;
    while (at < s->bus_count && strcmp(s->bus_names[at], copy->bus) != 0) ++at;
    if (at == s->bus_count) s->bus_names[s->bus_count++] = copy->bus;
    add_share(&s->buses[at], copy);
}

static summary make_summary(berth_arena *arena, const berth_plan_info *plan) {
    summary s = {.plan = plan,
                 .facts = berth_plan_info_facts(plan),
                 .device_count = berth_plan_info_device_count(plan)};
    size_t count = s.device_count;
    s.devices = berth_arena_new_array(arena, share, count);
    s.traffic = berth_arena_new_array(arena, share, count * count);
    s.buses = berth_arena_new_array(arena, share, berth_plan_info_copy_count(plan) + 1);
    s.bus_names = berth_arena_new_array(arena, const char *, berth_plan_info_copy_count(plan) + 1);
    for (uint32_t i = 0; i < berth_plan_info_operation_count(plan); ++i) {
        const berth_planned_operation *operation = berth_plan_info_operation(plan, i);
        share *work = &s.devices[device_of(&s, operation->device)];
        work->time_ns += operation->time_ns;
        work->count++;
    }
    for (uint32_t i = 0; i < berth_plan_info_copy_count(plan); ++i) {
        const berth_planned_copy *copy = berth_plan_info_copy(plan, i);
        add_share(&s.traffic[device_of(&s, copy->from) * count + device_of(&s, copy->to)], copy);
        add_to_bus(&s, copy);
    }
    return s;
}

// ---- text ---------------------------------------------------------------------------------------

static double percent(const summary *s, double time_ns) {
    return s->facts->predicted_ns > 0 ? 100 * time_ns / s->facts->predicted_ns : 0;
}

// Names of the devices with nothing to do, those that only drive others apart.
static void print_idle(berth_arena *arena, const summary *s, bool host_only, const char *what) {
    berth_strbuf names = berth_strbuf_make(arena);
    for (uint32_t d = 0; d < s->device_count; ++d)
        if (!s->devices[d].count &&
            (berth_plan_info_device(s->plan, d)->is_host_only != 0) == host_only)
            berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", device_name(s, d));
    if (names.length) berth_cli_print("  %-16s %s\n", what, berth_strbuf_text(&names));
}

static void print_devices(berth_arena *arena, const summary *s) {
    for (uint32_t d = 0; d < s->device_count; ++d) {
        const share *work = &s->devices[d];
        if (work->count)
            berth_cli_print("  %-16s %10.3f ms, busy %5.1f %%, %u operation%s\n", device_name(s, d),
                            work->time_ns / 1e6, percent(s, work->time_ns), work->count,
                            work->count == 1 ? "" : "s");
    }
    print_idle(arena, s, false, "nothing to do:");
    print_idle(arena, s, true, "only drive:");
}

typedef struct longest {
    double time_ns;
    uint32_t entry;
} longest;

static int by_time(const void *a, const void *b) {
    const longest *x = a;
    const longest *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void print_way(const summary *s, uint32_t index) {
    uint32_t count = s->device_count;
    const share *way = &s->traffic[index];
    const char *from = device_name(s, index / count);
    const char *to = device_name(s, index % count);
    char bytes[32];
    berth_format_bytes(way->size_bytes, bytes);
    if (way->aliases == way->count)
        berth_cli_print("  %s > %s: %u, which move nothing: the devices share the memory\n", from,
                        to, way->count);
    else
        berth_cli_print("  %s > %s: %u, %s, %.3f ms\n", from, to, way->count, bytes,
                        way->time_ns / 1e6);
}

// The ways that take longest, and the others in sum.
static void print_traffic(berth_arena *arena, const summary *s) {
    enum { most = 8 };
    uint32_t cells = s->device_count * s->device_count, ways = 0;
    longest *all = berth_arena_new_array(arena, longest, cells);
    share rest = {0};
    for (uint32_t i = 0; i < cells; ++i)
        if (s->traffic[i].count) all[ways++] = (longest){s->traffic[i].time_ns, i};
    if (ways) qsort(all, ways, sizeof(*all), by_time);
    for (uint32_t i = 0; i < ways && i < most; ++i) print_way(s, all[i].entry);
    for (uint32_t i = most; i < ways; ++i) {
        rest.count += s->traffic[all[i].entry].count;
        rest.size_bytes += s->traffic[all[i].entry].size_bytes;
        rest.time_ns += all[i].time_ns;
    }
    char bytes[32];
    berth_format_bytes(rest.size_bytes, bytes);
    if (ways > most)
        berth_cli_print("  %u other ways: %u, %s, %.3f ms\n", ways - most, rest.count, bytes,
                        rest.time_ns / 1e6);
}

static void print_buses(const summary *s) {
    if (s->bus_count) berth_cli_print("buses\n");
    for (uint32_t i = 0; i < s->bus_count; ++i) {
        char bytes[32];
        berth_format_bytes(s->buses[i].size_bytes, bytes);
        berth_cli_print("  %-16s %10.3f ms, busy %5.1f %%, %u cop%s in turn, %s\n", s->bus_names[i],
                        s->buses[i].time_ns / 1e6, percent(s, s->buses[i].time_ns),
                        s->buses[i].count, s->buses[i].count == 1 ? "y" : "ies", bytes);
    }
}

static void print_longest(berth_arena *arena, const summary *s) {
    enum { most = 5 };
    uint32_t count = berth_plan_info_operation_count(s->plan);
    longest *all = berth_arena_new_array(arena, longest, count + 1);
    for (uint32_t i = 0; i < count; ++i)
        all[i] = (longest){berth_plan_info_operation(s->plan, i)->time_ns, i};
    if (count) qsort(all, count, sizeof(*all), by_time);
    berth_cli_print("longest operations\n");
    for (uint32_t i = 0; i < count && i < most && all[i].time_ns > 0; ++i) {
        const berth_planned_operation *operation = berth_plan_info_operation(s->plan, all[i].entry);
        berth_cli_print("  %-16s %10.3f ms, %5.1f %%  %s\n", operation->device,
                        all[i].time_ns / 1e6, percent(s, all[i].time_ns), operation->name);
    }
}

// What pools put into a memory, of its limit.
static void print_memories(const berth_plan_info *plan) {
    berth_cli_print("memories\n");
    for (uint32_t m = 0; m < berth_plan_info_memory_count(plan); ++m) {
        const berth_planned_memory *memory = berth_plan_info_memory(plan, m);
        uint64_t used = memory->used_bytes, budget = memory->budget_bytes;
        char bytes[2][32];
        if (used == 0) continue;
        berth_format_bytes(used, bytes[0]);
        berth_format_bytes(budget, bytes[1]);
        if (budget)
            berth_cli_print("  %-16s %s of %s (%.1f %%)\n", memory->name, bytes[0], bytes[1],
                            100 * (double)used / (double)budget);
        else
            berth_cli_print("  %-16s %s\n", memory->name, bytes[0]);
    }
}

// What is no fault of the plan.
static void print_remarks(const summary *s) {
    if (strcmp(s->facts->strategy, "default") != 0) return;
    berth_cli_print(
        "The strategy \"default\" weighs no times: everything goes to the default device %s where "
        "it can run, with what it is connected to. --strategy auto places by predicted time.\n",
        s->facts->default_device);
}

void berth_explain_print_summary(berth_arena *arena, const berth_plan_info *plan) {
    summary s = make_summary(arena, plan);
    const char *target = *s.facts->target_name ? s.facts->target_name : s.facts->devices;
    berth_cli_print("%s on %s, strategy %s\n", s.facts->model, target, s.facts->strategy);
    berth_plan_print_value(plan);
    print_remarks(&s);
    berth_cli_print("devices\n");
    print_devices(arena, &s);
    if (berth_plan_info_copy_count(plan)) berth_cli_print("copies\n");
    print_traffic(arena, &s);
    print_buses(&s);
    print_memories(plan);
    print_longest(arena, &s);
}

void berth_explain_print_copies(const berth_plan_info *plan) {
    if (berth_plan_info_copy_count(plan)) berth_cli_print("\n");
    if (berth_plan_info_copy_count(plan)) berth_cli_print("every copy\n");
    for (uint32_t i = 0; i < berth_plan_info_copy_count(plan); ++i) {
        const berth_planned_copy *copy = berth_plan_info_copy(plan, i);
        char bytes[32];
        berth_format_bytes(copy->size_bytes, bytes);
        berth_cli_print("  %s, %s > %s: %s, %.1f us", copy->value, copy->from, copy->to,
                        copy->size_bytes ? bytes : "nothing moves", copy->time_ns / 1e3);
        berth_plan_print_copy_way(copy);
        berth_cli_print("; %s\n", copy->reason);
    }
}

// ---- JSON ---------------------------------------------------------------------------------------

json_t *berth_explain_summary_json(berth_arena *arena, const berth_plan_info *plan) {
    summary s = make_summary(arena, plan);
    uint32_t count = s.device_count;
    json_t *devices = json_array(), *traffic = json_array();
    for (uint32_t d = 0; d < count; ++d)
        json_array_append_new(devices,
                              json_pack("{s:s, s:f, s:f, s:i, s:b}", "name", device_name(&s, d),
                                        "time_ms", s.devices[d].time_ns / 1e6, "utilisation",
                                        percent(&s, s.devices[d].time_ns) / 100, "operations",
                                        (int)s.devices[d].count, "host_only",
                                        berth_plan_info_device(plan, d)->is_host_only));
    for (uint32_t i = 0; i < count * count; ++i)
        if (s.traffic[i].count)
            json_array_append_new(traffic, json_pack("{s:s, s:s, s:i, s:i, s:I, s:f}", "from",
                                                     device_name(&s, i / count), "to",
                                                     device_name(&s, i % count), "copies",
                                                     (int)s.traffic[i].count, "aliases",
                                                     (int)s.traffic[i].aliases, "bytes",
                                                     (json_int_t)s.traffic[i].size_bytes, "time_ms",
                                                     s.traffic[i].time_ns / 1e6));
    json_t *buses = json_array();
    for (uint32_t i = 0; i < s.bus_count; ++i)
        json_array_append_new(buses, json_pack("{s:o, s:i, s:I, s:f, s:f}", "name",
                                               berth_cli_json_text(s.bus_names[i]), "copies",
                                               (int)s.buses[i].count, "bytes",
                                               (json_int_t)s.buses[i].size_bytes, "time_ms",
                                               s.buses[i].time_ns / 1e6, "utilisation",
                                               percent(&s, s.buses[i].time_ns) / 100));
    json_error_t error;
    return json_pack("{s:o, s:s, s:f, s:o, s:o, s:o, s:o, s:o}", "model",
                     berth_cli_json_text(s.facts->model), "strategy", s.facts->strategy,
                     "predicted_ms", s.facts->predicted_ns / 1e6, "objective",
                     berth_plan_objective_json(plan), "devices", devices, "traffic", traffic,
                     "buses", buses, "target", json_loads(s.facts->target, 0, &error));
}
