// Narrowing a platform to one of its devices: what only the others needed goes, too.
#include <string.h>

#include "target/internal.h"

typedef struct selection {
    berth_target__parse *parse;
    json *multi;
    const bool *kept;  // by device
} selection;

static bool keeps(const selection *s, const json *name) {
    if (name->type != JSON_TYPE_STRING) return true;  // wrong types are the validator's to report
    uint32_t index =
        berth_target__entry_named(berth_target__json_get(s->multi, "devices"), name->string);
    return index == BERTH_NO_INDEX || s->kept[index];
}

static bool memory_kept(const selection *s, const char *name) {
    const json *memories = berth_target__json_get(s->multi, "memories");
    for (uint32_t i = 0; memories && i < memories->items.count; ++i)
        if (strcmp(berth_target__text_of(memories->items.data[i], "name"), name) == 0) return true;
    return false;
}

// Keeps the items of a list for which `keep` is true.
static void filter(json *list, bool (*keep)(const selection *s, const json *item),
                   const selection *s) {
    if (!list || list->type != JSON_TYPE_ARRAY) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->items.count; ++i)
        if (keep(s, list->items.data[i])) list->items.data[count++] = list->items.data[i];
    list->items.count = count;
}

static bool keep_memory(const selection *s, const json *memory) {
    json *reached = berth_target__json_get(memory, "reached_by");
    filter(reached, keeps, s);
    return !reached || reached->items.count > 0;
}

static bool keep_link(const selection *s, const json *link) {
    return memory_kept(s, berth_target__text_of(link, "from")) &&
           memory_kept(s, berth_target__text_of(link, "to"));
}

static bool keep_pin(const selection *s, const json *pin) {
    const json *device = berth_target__json_get(pin, "device");
    return !device || keeps(s, device);
}

static uint32_t host_index(const json *multi, const json *devices) {
    const char *name = berth_target__text_of(multi, "host");
    if (*name) return berth_target__entry_named(devices, name);
    for (uint32_t i = 0; i < devices->items.count; ++i) {
        const json *target = berth_target__json_get(devices->items.data[i], "target");
        if (target && strcmp(berth_target__text_of(target, "kind"), "cpu") == 0) return i;
    }
    return BERTH_NO_INDEX;
}

// A given name that only counts the device among its kind is none: it counts anew.
static void drop_counted_name(berth_arena *arena, const json *devices, uint32_t index) {
    json *entry = devices->items.data[index];
    if (entry->type != JSON_TYPE_OBJECT) return;
    const char *given = berth_target__text_of(entry, "name");
    json *name = berth_target__json_get(entry, "name");
    berth_target__json_set(arena, entry, "name", NULL);
    if (*given && strcmp(berth_target__entry_name(arena, devices, index), given) != 0)
        berth_target__json_set(arena, entry, "name", name);
}

void berth_target__drop_pins(json *multi, const bool *kept) {
    const selection s = {NULL, multi, kept};
    filter(berth_target__json_get(multi, "pins"), keep_pin, &s);
}

void berth_target__keep_devices(berth_target__parse *parse, json *multi, const bool *kept) {
    berth_arena *arena = parse->scratch;
    json *devices = berth_target__json_get(multi, "devices");
    selection s = {parse, multi, kept};
    filter(berth_target__json_get(multi, "memories"), keep_memory, &s);
    filter(berth_target__json_get(multi, "links"), keep_link, &s);
    berth_target__drop_pins(multi, kept);
    json *budgets = berth_target__json_get(multi, "budgets");
    for (uint32_t i = 0; budgets && i < budgets->members.count;) {
        const char *key = budgets->members.data[i].key;
        if (memory_kept(&s, key))
            i++;
        else
            berth_target__json_set(arena, budgets, key, NULL);
    }
    for (uint32_t i = 0; i < devices->items.count; ++i) drop_counted_name(arena, devices, i);
    json *left = berth_target__json_array(arena);
    for (uint32_t i = 0; i < devices->items.count; ++i)
        if (kept[i]) berth_target__json_push(arena, left, devices->items.data[i]);
    // KIND:N counts anew among those that are left.
    const char **names = berth_arena_new_array(arena, const char *, devices->items.count);
    for (uint32_t i = 0, k = 0; i < devices->items.count; ++i)
        if (kept[i]) names[i] = berth_target__entry_name(arena, left, k++);
    berth_target__rename(arena, multi, names, "");
    berth_target__json_set(arena, multi, "devices", left);
}

// Whether a memory that a link of one of the device's memories leads to is this entry's.
static bool linked(const json *multi, const json *devices, uint32_t device, uint32_t other) {
    const json *memories = berth_target__json_get(multi, "memories");
    const json *links = berth_target__json_get(multi, "links");
    for (uint32_t i = 0; links && memories && i < links->items.count; ++i) {
        bool reached[2] = {false, false}, reaches[2] = {false, false};
        const char *ends[2] = {berth_target__text_of(links->items.data[i], "from"),
                               berth_target__text_of(links->items.data[i], "to")};
        for (uint32_t m = 0; m < memories->items.count; ++m) {
            const json *by = berth_target__json_get(memories->items.data[m], "reached_by");
            const char *name = berth_target__text_of(memories->items.data[m], "name");
            for (uint32_t k = 0; by && k < by->items.count; ++k) {
                const json *who = by->items.data[k];
                if (who->type != JSON_TYPE_STRING) continue;
                uint32_t index = berth_target__entry_named(devices, who->string);
                for (int end = 0; end < 2; ++end) {
                    if (strcmp(ends[end], name) != 0) continue;
                    reached[end] |= index == device;
                    reaches[end] |= index == other;
                }
            }
        }
        if ((reached[0] && reaches[1]) || (reached[1] && reaches[0])) return true;
    }
    return false;
}

static bool is_processor(const json *entry) {
    const json *target = berth_target__json_get(entry, "target");
    return target && strcmp(berth_target__text_of(target, "kind"), "cpu") == 0;
}

json *berth_target__keep_device(berth_target__parse *parse, json *multi, uint32_t device) {
    berth_arena *arena = parse->scratch;
    json *devices = berth_target__json_get(multi, "devices");
    bool *kept = berth_arena_new_array(arena, bool, devices->items.count);
    uint32_t host = host_index(multi, devices);
    for (uint32_t i = 0; i < devices->items.count; ++i) {
        // The processors through whose memory the device is reached stay, too.
        json *entry = devices->items.data[i];
        kept[i] =
            i == device || i == host || (is_processor(entry) && linked(multi, devices, device, i));
        if (kept[i] && i != device)
            berth_target__json_set(arena, entry, "host_only", berth_target__json_bool(arena, true));
    }
    berth_target__json_set(arena, multi, "default_device", NULL);
    berth_target__keep_devices(parse, multi, kept);
    return multi;
}
