#include "compiler/cost/applies.h"

#include <string.h>

#include "base/str.h"

typedef BERTH_VEC(const char *) texts;

static bool has(const texts *list, const char *text) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (strcmp(list->data[i], text) == 0) return true;
    return false;
}

// The devices that records are of, each once. Files have the records of one device in a row.
static texts measured_devices(const berth_cost_table *table) {
    texts found = {0};
    const char *last = "";
    for (uint32_t i = 0; i < berth_cost_table_count(table); ++i) {
        const berth_cost_record *record = berth_cost_table_at(table, i);
        if (record->from || strcmp(record->target, last) == 0) continue;
        last = record->target;
        if (!has(&found, last)) berth_vec_push(berth_cost_table_arena(table), &found, last);
    }
    return found;
}

static uint32_t fields_in(const char *difference) {
    uint32_t count = 1;
    for (const char *at = difference; (at = strstr(at, "; ")); at += 2) ++count;
    return count;
}

// Adds "; none is of NAME (...)".
static berth_status add_without(berth_strbuf *out, const texts *measured,
                                const berth_target_device *device, const char *culled) {
    const char *kind = berth_device_kind_name(device->target->kind);
    const char *wanted = berth_arena_printf(out->arena, "\"kind\": \"%s\"", kind), *nearest = NULL;
    for (uint32_t i = 0; i < measured->count; ++i) {
        const char *difference = NULL;
        if (!strstr(measured->data[i], wanted)) continue;
        BERTH_TRY(berth_target_difference(out->arena, measured->data[i], culled, &difference));
        if (!nearest || fields_in(difference) < fields_in(nearest)) nearest = difference;
    }
    berth_strbuf_addf(out, "; none is of %s", device->name);
    if (nearest)
        berth_strbuf_addf(out, " (the nearest device: %s)", nearest);
    else
        berth_strbuf_addf(out, " (nor of any other %s)", kind);
    return BERTH_OK;
}

berth_status berth_cost_table_say(const berth_cost_table *table, const char *path,
                                  const berth_multi_target *target, berth_log log) {
    berth_arena *arena = berth_cost_table_arena(table);
    texts measured = measured_devices(table), seen = {0};
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_addf(&out, "costs: %u of %s", berth_cost_table_count(table), path);
    for (uint32_t i = 0; i < target->device_count; ++i) {
        const berth_target_device *device = &target->devices[i];
        const char *culled = berth_target_culled(arena, device->target);
        if (device->host_only || has(&seen, culled)) continue;
        berth_vec_push(arena, &seen, culled);
        if (!has(&measured, culled)) BERTH_TRY(add_without(&out, &measured, device, culled));
    }
    berth_log_message(log, BERTH_LOG_INFO, "%s", berth_strbuf_text(&out));
    return BERTH_OK;
}
