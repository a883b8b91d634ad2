// Tests of devices that a machine may not have.
#ifndef BERTH_TESTS_DEVICE_IS_HERE_H_
#define BERTH_TESTS_DEVICE_IS_HERE_H_

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "devices/registry.h"

// Whether a driver of this kind has so many devices; without them a test is skipped, but fails where
// BERTH_REQUIRE_DRIVERS names the kind.
static inline bool device_is_here(const char *kind, uint32_t count) {
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open(kind, berth_allocator_system(), &driver);
    bool enough = !status && berth_driver_device_count(driver) >= count;
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    cr_assert(enough || !required || !strstr(required, kind), "%u %s devices are required: %s",
              count, kind, status ? berth_status_message(status) : "there are fewer");
    berth_status_free(status);
    berth_driver_close(driver);
    return enough;
}

#endif  // BERTH_TESTS_DEVICE_IS_HERE_H_
