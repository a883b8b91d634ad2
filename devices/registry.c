#include "devices/registry.h"

#include <stdio.h>
#include <string.h>

#include "devices/loaded.h"

#define DRIVER(name) extern const berth_driver_ops berth_devices__##name##_driver;
#include "devices/drivers.def"
#undef DRIVER

static const berth_driver_ops *const drivers[] = {
#define DRIVER(name) &berth_devices__##name##_driver,
#include "devices/drivers.def"
#undef DRIVER
};
enum { DRIVER_COUNT = sizeof(drivers) / sizeof(drivers[0]) };

// A row of the registry: a built-in driver, the loaded one in its place, or (after those) a loaded
// one for another kind. False: there is no such row.
typedef struct row {
    const berth_driver_ops *ops;
    const char *library;  // its path, "" = built in
} row;

static bool find_loaded(const char *kind, row *out) {
    for (uint32_t i = 0; i < berth_devices__loaded_count(); ++i) {
        row at;
        at.ops = berth_devices__loaded_at(i, &at.library);
        if (strcmp(at.ops->kind, kind) != 0) continue;
        *out = at;
        return true;
    }
    return false;
}

static bool is_built_in(const char *kind) {
    for (uint32_t i = 0; i < DRIVER_COUNT; ++i)
        if (strcmp(drivers[i]->kind, kind) == 0) return true;
    return false;
}

static bool row_at(uint32_t index, row *out) {
    if (index < DRIVER_COUNT) {
        *out = (row){drivers[index], ""};
        (void)find_loaded(out->ops->kind, out);
        return true;
    }
    index -= DRIVER_COUNT;
    for (uint32_t i = 0; i < berth_devices__loaded_count(); ++i) {
        row at;
        at.ops = berth_devices__loaded_at(i, &at.library);
        if (is_built_in(at.ops->kind) || index-- > 0) continue;
        *out = at;
        return true;
    }
    return false;
}

const berth_driver_ops *berth_driver_kind_at(uint32_t index) {
    row at;
    return row_at(index, &at) ? at.ops : NULL;
}

static berth_status no_driver(const char *kind) {
    char kinds[256] = "";
    size_t used = 0;
    row at;
    for (uint32_t i = 0; row_at(i, &at); ++i) {
        int put = snprintf(kinds + used, sizeof(kinds) - used, "%s%s", i ? ", " : "", at.ops->kind);
        if (put > 0 && (size_t)put < sizeof(kinds) - used) used += (size_t)put;
    }
    return berth_status_make(BERTH_NOT_FOUND,
                             "no driver for %s devices is built in or loaded; there are drivers "
                             "for: %s",
                             kind, kinds);
}

berth_status berth_driver_open(const char *kind, berth_allocator allocator,
                               berth_driver **out_driver) {
    *out_driver = NULL;
    row at;
    for (uint32_t i = 0; row_at(i, &at); ++i) {
        if (strcmp(at.ops->kind, kind) != 0) continue;
        berth_driver *driver = NULL;
        BERTH_TRY(at.ops->open(allocator, &driver));
        driver->ops = at.ops;
        driver->allocator = allocator;
        *out_driver = driver;
        return BERTH_OK;
    }
    return no_driver(kind);
}

void berth_driver_close(berth_driver *driver) {
    if (driver) driver->ops->close(driver);
}

const char *berth_driver_kind(const berth_driver *driver) {
    return driver->ops->kind;
}

uint32_t berth_driver_device_count(berth_driver *driver) {
    return driver->ops->device_count(driver);
}

berth_status berth_driver_device_info(berth_driver *driver, uint32_t ordinal,
                                      berth_device_info *out_info) {
    memset(out_info, 0, sizeof(*out_info));
    uint32_t count = driver->ops->device_count(driver);
    if (ordinal >= count)
        return berth_status_make(BERTH_NOT_FOUND, "there is no %s device %u: this machine has %u",
                                 driver->ops->kind, ordinal, count);
    return driver->ops->device_info(driver, ordinal, out_info);
}

// ---- report ----

typedef struct report_state {
    berth_arena *arena;
    berth_allocator allocator;
    berth_driver_report *reports;
    uint32_t count;
} report_state;

static void close_driver(void *driver) {
    berth_driver_close(driver);
}

// The arena closes the driver, also when it runs out of memory on the way.
static berth_status report_devices(berth_arena *scratch, berth_arena *arena, berth_driver *driver,
                                   berth_driver_report *report) {
    berth_arena_defer(scratch, close_driver, driver);
    uint32_t count = berth_driver_device_count(driver);
    berth_device_info *devices = berth_arena_new_array(arena, berth_device_info, count);
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(berth_driver_device_info(driver, i, &devices[i]));
    report->devices = devices;
    report->device_count = count;
    if (driver->lacking) report->lacking = berth_arena_strdup(arena, driver->lacking);
    return BERTH_OK;
}

static berth_status report_row(report_state *state, const row *at, berth_driver_report *report) {
    report->kind = at->ops->kind;
    report->description = at->ops->description;
    report->library = at->library;
    report->reason = report->lacking = "";
    berth_arena *scratch = berth_arena_create_child(state->arena);
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open(at->ops->kind, state->allocator, &driver);
    if (!status) status = report_devices(scratch, state->arena, driver, report);
    if (status == berth_status_oom()) return status;  // ours; a driver's is a reason like any other
    report->available = !status;
    if (status) report->reason = berth_arena_strdup(state->arena, berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

static berth_status report_body(void *user) {
    report_state *state = user;
    row at;
    while (row_at(state->count, &at)) ++state->count;
    state->reports = berth_arena_new_array(state->arena, berth_driver_report, state->count);
    for (uint32_t i = 0; i < state->count; ++i)
        if (row_at(i, &at)) BERTH_TRY(report_row(state, &at, &state->reports[i]));
    return BERTH_OK;
}

berth_status berth_driver_report_all(berth_arena *arena, berth_allocator allocator,
                                     berth_driver_report **out_reports, uint32_t *out_count) {
    *out_reports = NULL;
    *out_count = 0;
    report_state state = {.arena = arena, .allocator = allocator};
    BERTH_TRY(berth_arena_try(arena, report_body, &state));
    *out_reports = state.reports;
    *out_count = state.count;
    return BERTH_OK;
}
