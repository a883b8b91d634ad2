// Several machines: `"machines": [{"name": "a", "target": {…}}, …]` becomes one list of devices,
// memories and links, with names "a.gpu" and "a.dram". Values keep the path of where they were
// written.
#include <string.h>

#include "target/internal.h"

// The lists that machines bring with them.
static const char *const merged_lists[] = {"memories", "links", "pins"};

static json *child(berth_arena *arena, json *object, const char *key, bool list) {
    json *value = berth_target__json_get(object, key);
    if (value) return value;
    value = list ? berth_target__json_array(arena) : berth_target__json_object(arena);
    value->path = key;
    berth_target__json_set(arena, object, key, value);
    return value;
}

static json *text(berth_arena *arena, const char *string, const char *path) {
    json *value = berth_target__json_string(arena, string);
    value->path = path;
    return value;
}

// A host written as a target becomes a device that only drives.
static void host_to_device(berth_target__parse *parse, json *target, const char *machine) {
    json *host = berth_target__json_get(target, "host");
    if (!host || host->type != JSON_TYPE_OBJECT) return;
    json *entry = berth_target__json_object(parse->scratch);
    entry->path = host->path;
    berth_target__json_set(parse->scratch, entry, "name", text(parse->scratch, "host", host->path));
    berth_target__json_set(parse->scratch, entry, "target", host);
    berth_target__json_set(parse->scratch, entry, "host_only",
                           berth_target__json_bool(parse->scratch, true));
    berth_target__json_push(parse->scratch, berth_target__json_get(target, "devices"), entry);
    berth_target__json_set(parse->scratch, target, "host", text(parse->scratch, "host", machine));
}

static void merge_devices(berth_target__parse *parse, json *root, json *machine, json *target) {
    berth_arena *arena = parse->scratch;
    const char *name = berth_target__text_of(machine, "name");
    json *devices = berth_target__json_get(target, "devices");
    const char **names = berth_arena_new_array(arena, const char *, devices->items.count);
    for (uint32_t i = 0; i < devices->items.count; ++i)
        names[i] =
            berth_arena_printf(arena, "%s.%s", name, berth_target__entry_name(arena, devices, i));
    berth_target__rename(arena, target, names, berth_arena_printf(arena, "%s.", name));
    json *merged = child(arena, root, "devices", true);
    for (uint32_t i = 0; i < devices->items.count; ++i) {
        json *entry = devices->items.data[i];
        if (!berth_target__is_object(parse, entry, "a device")) continue;
        berth_target__json_set(arena, entry, "name", text(arena, names[i], entry->path));
        berth_target__json_set(arena, entry, "machine", text(arena, name, machine->path));
        berth_target__json_push(arena, merged, entry);
    }
}

static void merge_machine(berth_target__parse *parse, json *root, json *machine) {
    berth_arena *arena = parse->scratch;
    json *target = berth_target__json_get(machine, "target");
    const json *devices = berth_target__json_get(target, "devices");
    if (!devices || devices->type != JSON_TYPE_ARRAY) {
        berth_target__error(parse, berth_target__below(parse, target, "devices"),
                            "a list of devices is wanted here");
        return;
    }
    host_to_device(parse, target, machine->path);
    merge_devices(parse, root, machine, target);
    for (size_t i = 0; i < sizeof(merged_lists) / sizeof(merged_lists[0]); ++i) {
        const json *list = berth_target__json_get(target, merged_lists[i]);
        for (uint32_t k = 0; list && k < list->items.count; ++k)
            berth_target__json_push(arena, child(arena, root, merged_lists[i], true),
                                    list->items.data[k]);
    }
    const json *budgets = berth_target__json_get(target, "budgets");
    for (uint32_t i = 0; budgets && i < budgets->members.count; ++i)
        berth_target__json_set(arena, child(arena, root, "budgets", false),
                               budgets->members.data[i].key, budgets->members.data[i].value);
    json *host = berth_target__json_get(target, "host");
    if (host) berth_target__json_set(arena, machine, "host", host);
    berth_target__json_set(arena, machine, "target", NULL);
}

// Whether the machines bring their own targets; false also for wrong types, which multi.c reports.
static bool nested(const json *machines) {
    for (uint32_t i = 0; machines && i < machines->items.count; ++i)
        if (berth_target__json_get(machines->items.data[i], "target")) return true;
    return false;
}

static bool check_machine(berth_target__parse *parse, const json *machine) {
    static const char *const fields[] = {"name", "target", NULL};
    const char *name = NULL;
    if (!berth_target__is_object(parse, machine, "a machine")) return false;
    berth_target__check_fields(parse, machine, fields, "a machine");
    const json *given = berth_target__json_get(machine, "name");
    if (!given || !berth_target__json_get(machine, "target")) {
        berth_target__error(parse, berth_target__below(parse, machine, given ? "target" : "name"),
                            "is missing; a machine is {\"name\": …, \"target\": {…}}");
        return false;
    }
    return berth_target__read_name(parse, given, &name);
}

berth_status berth_target__flatten_machines(berth_target__parse *parse, json *root) {
    json *machines = berth_target__json_get(root, "machines");
    if (!nested(machines)) return BERTH_OK;
    if (berth_target__json_get(root, "devices")) {
        berth_target__error(parse, "devices",
                            "devices are given by the machines here; remove this list");
        return BERTH_OK;
    }
    for (uint32_t i = 0; i < machines->items.count; ++i) {
        json *machine = machines->items.data[i];
        if (!check_machine(parse, machine)) continue;
        BERTH_TRY(berth_target__expand_string(parse, machine, "target"));
        json *target = berth_target__json_get(machine, "target");
        if (!berth_target__is_object(parse, target, "a target")) continue;
        if (!berth_target__json_get(target, "devices"))
            target = berth_target__wrap_single(parse, target);
        berth_target__json_set(parse->scratch, machine, "target", target);
        BERTH_TRY(berth_target__expand(parse, target));
        merge_machine(parse, root, machine);
    }
    return BERTH_OK;
}
