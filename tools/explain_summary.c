#include "tools/explain_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli_model.h"
#include "tools/plan_memory.h"
#include "tools/plan_report.h"

// Work of a device, or copies from one to another.
typedef struct share {
    double time_ns;
    uint64_t size_bytes;
    uint32_t count;
    uint32_t aliases;  // of count: both ends reach the memory
} share;

typedef struct summary {
    const berth_model *model;
    const berth_plan *plan;
    const berth_program *program;
    const berth_multi_target *target;
    share *devices;  // [device_count]
    share *traffic;  // [device_count][device_count], from and to
} summary;

static summary make_summary(berth_arena *arena, const berth_model *model) {
    summary s = {.model = model,
                 .plan = berth_model_plan(model),
                 .program = berth_model_program(model),
                 .target = berth_model_target(model)};
    size_t count = s.target->device_count;
    s.devices = berth_arena_new_array(arena, share, count);
    s.traffic = berth_arena_new_array(arena, share, count * count);
    for (uint32_t i = 0; i < s.plan->entry_count; ++i) {
        s.devices[s.plan->entries[i].device].time_ns += s.plan->entries[i].time_ns;
        s.devices[s.plan->entries[i].device].count++;
    }
    for (uint32_t i = 0; i < s.plan->copy_count; ++i) {
        const berth_plan_copy *copy = &s.plan->copies[i];
        share *way = &s.traffic[copy->from * count + copy->to];
        way->time_ns += copy->time_ns;
        way->size_bytes += copy->size_bytes;
        way->aliases += copy->size_bytes == 0;
        way->count++;
    }
    return s;
}

// ---- text ---------------------------------------------------------------------------------------

static double percent(const summary *s, double time_ns) {
    return s->plan->predicted_ns > 0 ? 100 * time_ns / s->plan->predicted_ns : 0;
}

// Names of the devices with nothing to do, those that only drive others apart.
static void print_idle(berth_arena *arena, const summary *s, bool host_only, const char *what) {
    berth_strbuf names = berth_strbuf_make(arena);
    for (uint32_t d = 0; d < s->target->device_count; ++d)
        if (!s->devices[d].count && s->target->devices[d].host_only == host_only)
            berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", s->target->devices[d].name);
    if (names.length) berth_cli_print("  %-16s %s\n", what, berth_strbuf_text(&names));
}

static void print_devices(berth_arena *arena, const summary *s) {
    for (uint32_t d = 0; d < s->target->device_count; ++d) {
        const berth_target_device *device = &s->target->devices[d];
        const share *work = &s->devices[d];
        if (work->count)
            berth_cli_print("  %-16s %10.3f ms, busy %5.1f %%, %u operation%s\n", device->name,
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
    uint32_t count = s->target->device_count;
    const share *way = &s->traffic[index];
    const char *from = s->target->devices[index / count].name;
    const char *to = s->target->devices[index % count].name;
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
    uint32_t cells = s->target->device_count * s->target->device_count, ways = 0;
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

static void print_longest(berth_arena *arena, const summary *s) {
    enum { most = 5 };
    longest *all = berth_arena_new_array(arena, longest, s->plan->entry_count + 1);
    for (uint32_t i = 0; i < s->plan->entry_count; ++i)
        all[i] = (longest){s->plan->entries[i].time_ns, i};
    if (s->plan->entry_count) qsort(all, s->plan->entry_count, sizeof(*all), by_time);
    berth_cli_print("longest operations\n");
    for (uint32_t i = 0; i < s->plan->entry_count && i < most && all[i].time_ns > 0; ++i) {
        berth_cli_print("  %-16s %10.3f ms, %5.1f %%  %s\n",
                        s->target->devices[s->plan->entries[all[i].entry].device].name,
                        all[i].time_ns / 1e6, percent(s, all[i].time_ns),
                        berth_plan_operation_name(arena, s->model, all[i].entry));
    }
}

// What pools put into a memory, of its limit.
static void print_memories(berth_arena *arena, const berth_model *model) {
    const berth_multi_target *target = berth_model_target(model);
    uint64_t *used = berth_arena_new_array(arena, uint64_t, target->memory_count + 1);
    berth_plan_memory_use(model, used);
    berth_cli_print("memories\n");
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        uint64_t budget = target->memories[m].budget_bytes;
        char bytes[2][32];
        if (used[m] == 0) continue;
        berth_format_bytes(used[m], bytes[0]);
        berth_format_bytes(budget, bytes[1]);
        if (budget)
            berth_cli_print("  %-16s %s of %s (%.1f %%)\n", target->memories[m].name, bytes[0],
                            bytes[1], 100 * (double)used[m] / (double)budget);
        else
            berth_cli_print("  %-16s %s\n", target->memories[m].name, bytes[0]);
    }
}

// What is no fault of the plan.
static void print_remarks(const summary *s) {
    if (strcmp(s->plan->strategy, "default") != 0) return;
    berth_cli_print(
        "The strategy \"default\" weighs no times: everything goes to the default device %s where "
        "it can run, with what it is connected to. --strategy auto places by predicted time.\n",
        s->target->devices[s->target->default_device].name);
}

void berth_explain_print_summary(berth_arena *arena, const berth_model *model) {
    summary s = make_summary(arena, model);
    const char *target =
        *s.target->name ? s.target->name : berth_target_print_short(arena, s.target);
    berth_cli_print("%s on %s, strategy %s\n", s.program->name, target, s.plan->strategy);
    berth_plan_print_value(arena, s.plan);
    print_remarks(&s);
    berth_cli_print("devices\n");
    print_devices(arena, &s);
    if (s.plan->copy_count) berth_cli_print("copies\n");
    print_traffic(arena, &s);
    print_memories(arena, model);
    print_longest(arena, &s);
}

void berth_explain_print_copies(const berth_model *model) {
    const berth_plan *plan = berth_model_plan(model);
    const berth_target_device *devices = berth_model_target(model)->devices;
    if (plan->copy_count) berth_cli_print("\n");
    if (plan->copy_count) berth_cli_print("every copy\n");
    for (uint32_t i = 0; i < plan->copy_count; ++i) {
        const berth_plan_copy *copy = &plan->copies[i];
        char bytes[32];
        berth_format_bytes(copy->size_bytes, bytes);
        berth_cli_print("  %s, %s > %s: %s, %.1f us; %s\n", copy->value, devices[copy->from].name,
                        devices[copy->to].name, copy->size_bytes ? bytes : "nothing moves",
                        copy->time_ns / 1e3, copy->reason);
    }
}

// ---- JSON ---------------------------------------------------------------------------------------

json_t *berth_explain_summary_json(berth_arena *arena, const berth_model *model) {
    summary s = make_summary(arena, model);
    uint32_t count = s.target->device_count;
    json_t *devices = json_array(), *traffic = json_array();
    for (uint32_t d = 0; d < count; ++d)
        json_array_append_new(devices, json_pack("{s:s, s:f, s:f, s:i, s:b}", "name",
                                                 s.target->devices[d].name, "time_ms",
                                                 s.devices[d].time_ns / 1e6, "utilisation",
                                                 percent(&s, s.devices[d].time_ns) / 100,
                                                 "operations", (int)s.devices[d].count, "host_only",
                                                 (int)s.target->devices[d].host_only));
    for (uint32_t i = 0; i < count * count; ++i)
        if (s.traffic[i].count)
            json_array_append_new(traffic, json_pack("{s:s, s:s, s:i, s:i, s:I, s:f}", "from",
                                                     s.target->devices[i / count].name, "to",
                                                     s.target->devices[i % count].name, "copies",
                                                     (int)s.traffic[i].count, "aliases",
                                                     (int)s.traffic[i].aliases, "bytes",
                                                     (json_int_t)s.traffic[i].size_bytes, "time_ms",
                                                     s.traffic[i].time_ns / 1e6));
    json_error_t error;
    return json_pack("{s:o, s:s, s:f, s:o, s:o, s:o, s:o}", "model",
                     berth_cli_json_text(s.program->name), "strategy", s.plan->strategy,
                     "predicted_ms", s.plan->predicted_ns / 1e6, "objective",
                     berth_plan_objective_json(s.plan), "devices", devices, "traffic", traffic,
                     "target", json_loads(s.target->canonical, 0, &error));
}
