// References inside a MultiTarget's JSON: which device a name means, and changing names everywhere
// they are used.
#include <string.h>

#include "target/internal.h"

const char *berth_target__text_of(const json *object, const char *key) {
    const json *value = berth_target__json_get(object, key);
    return value && value->type == JSON_TYPE_STRING ? value->string : "";
}

static const char *kind_of(const json *entry) {
    const json *target = berth_target__json_get(entry, "target");
    return target ? berth_target__text_of(target, "kind") : "";
}

uint32_t berth_target__entry_named(const json *devices, const char *name) {
    for (uint32_t i = 0; i < devices->items.count; ++i)
        if (*name && strcmp(berth_target__text_of(devices->items.data[i], "name"), name) == 0)
            return i;
    uint32_t counts[BERTH_DEVICE_KIND_COUNT] = {0};
    for (uint32_t i = 0; i < devices->items.count; ++i) {
        const char *kind = kind_of(devices->items.data[i]);
        char own[64];
        snprintf(own, sizeof(own), "%.32s:%u", kind, counts[berth_device_kind_from_name(kind)]++);
        if (*kind && strcmp(own, name) == 0) return i;
    }
    return BERTH_NO_INDEX;
}

const char *berth_target__entry_name(berth_arena *arena, const json *devices, uint32_t index) {
    const char *given = berth_target__text_of(devices->items.data[index], "name");
    if (*given) return given;
    const char *kind = kind_of(devices->items.data[index]);
    uint32_t id = 0;
    for (uint32_t i = 0; i < index; ++i) id += strcmp(kind_of(devices->items.data[i]), kind) == 0;
    return berth_arena_printf(arena, "%s:%u", kind, id);
}

// Names that mean no device stay as they are, for the validator to complain about.
static void rename_device(berth_arena *arena, const json *devices, const char *const *names,
                          json *value) {
    if (!value || value->type != JSON_TYPE_STRING) return;
    uint32_t index = berth_target__entry_named(devices, value->string);
    if (index != BERTH_NO_INDEX && names[index])
        value->string = berth_arena_strdup(arena, names[index]);
}

static void rename_memory(berth_arena *arena, const char *prefix, json *value) {
    if (value && value->type == JSON_TYPE_STRING)
        value->string = berth_arena_printf(arena, "%s%s", prefix, value->string);
}

void berth_target__rename(berth_arena *arena, json *multi, const char *const *device_names,
                          const char *memory_prefix) {
    const json *devices = berth_target__json_get(multi, "devices");
    rename_device(arena, devices, device_names, berth_target__json_get(multi, "host"));
    rename_device(arena, devices, device_names, berth_target__json_get(multi, "default_device"));
    const json *memories = berth_target__json_get(multi, "memories");
    for (uint32_t i = 0; memories && i < memories->items.count; ++i) {
        rename_memory(arena, memory_prefix,
                      berth_target__json_get(memories->items.data[i], "name"));
        const json *reached = berth_target__json_get(memories->items.data[i], "reached_by");
        for (uint32_t k = 0; reached && k < reached->items.count; ++k)
            rename_device(arena, devices, device_names, reached->items.data[k]);
    }
    const json *links = berth_target__json_get(multi, "links");
    for (uint32_t i = 0; links && i < links->items.count; ++i) {
        rename_memory(arena, memory_prefix, berth_target__json_get(links->items.data[i], "from"));
        rename_memory(arena, memory_prefix, berth_target__json_get(links->items.data[i], "to"));
        rename_memory(arena, memory_prefix, berth_target__json_get(links->items.data[i], "bus"));
    }
    const json *pins = berth_target__json_get(multi, "pins");
    for (uint32_t i = 0; pins && i < pins->items.count; ++i)
        rename_device(arena, devices, device_names,
                      berth_target__json_get(pins->items.data[i], "device"));
    const json *machines = berth_target__json_get(multi, "machines");
    for (uint32_t i = 0; machines && i < machines->items.count; ++i)
        rename_device(arena, devices, device_names,
                      berth_target__json_get(machines->items.data[i], "host"));
    json *budgets = berth_target__json_get(multi, "budgets");
    for (uint32_t i = 0; *memory_prefix && budgets && i < budgets->members.count; ++i)
        budgets->members.data[i].key =
            berth_arena_printf(arena, "%s%s", memory_prefix, budgets->members.data[i].key);
}
