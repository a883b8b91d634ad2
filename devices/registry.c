#include "devices/registry.h"

#include <stdio.h>
#include <string.h>

#define DRIVER(name) extern const berth_driver_ops berth_devices__##name##_driver;
#include "devices/drivers.def"
#undef DRIVER

static const berth_driver_ops *const drivers[] = {
#define DRIVER(name) &berth_devices__##name##_driver,
#include "devices/drivers.def"
#undef DRIVER
};
enum { DRIVER_COUNT = sizeof(drivers) / sizeof(drivers[0]) };

uint32_t berth_driver_kind_count(void) {
    return DRIVER_COUNT;
}

const berth_driver_ops *berth_driver_kind_at(uint32_t index) {
    return index < DRIVER_COUNT ? drivers[index] : NULL;
}

berth_status berth_driver_open(const char *kind, berth_allocator allocator,
                               berth_driver **out_driver) {
    *out_driver = NULL;
    char kinds[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < DRIVER_COUNT; ++i) {
        if (strcmp(drivers[i]->kind, kind) == 0) {
            berth_driver *driver = NULL;
            BERTH_TRY(drivers[i]->open(allocator, &driver));
            driver->ops = drivers[i];
            driver->allocator = allocator;
            *out_driver = driver;
            return BERTH_OK;
        }
        int put =
            snprintf(kinds + used, sizeof(kinds) - used, "%s%s", i ? ", " : "", drivers[i]->kind);
        if (put > 0 && (size_t)put < sizeof(kinds) - used) used += (size_t)put;
    }
    return berth_status_make(BERTH_NOT_FOUND,
                             "no driver for %s devices is built in; there are drivers for: %s",
                             kind, kinds);
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
    return BERTH_OK;
}

static berth_status report_body(void *user) {
    report_state *state = user;
    state->reports = berth_arena_new_array(state->arena, berth_driver_report, DRIVER_COUNT);
    for (uint32_t i = 0; i < DRIVER_COUNT; ++i) {
        berth_driver_report *report = &state->reports[i];
        report->kind = drivers[i]->kind;
        report->description = drivers[i]->description;
        report->reason = "";
        berth_arena *scratch = berth_arena_create_child(state->arena);
        berth_driver *driver = NULL;
        berth_status status = berth_driver_open(drivers[i]->kind, state->allocator, &driver);
        if (!status) status = report_devices(scratch, state->arena, driver, report);
        if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
        report->available = !status;
        if (status) report->reason = berth_arena_strdup(state->arena, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(scratch);
    }
    return BERTH_OK;
}

berth_status berth_driver_report_all(berth_arena *arena, berth_allocator allocator,
                                     berth_driver_report **out_reports, uint32_t *out_count) {
    *out_reports = NULL;
    *out_count = 0;
    report_state state = {.arena = arena, .allocator = allocator};
    BERTH_TRY(berth_arena_try(arena, report_body, &state));
    *out_reports = state.reports;
    *out_count = DRIVER_COUNT;
    return BERTH_OK;
}
