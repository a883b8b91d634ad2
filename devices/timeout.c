#include <stdlib.h>
#include <string.h>

#include "devices/internal.h"

berth_status berth_devices__read_timeout(const char *kind, const char *attributes,
                                         int64_t *out_timeout_ns) {
    static const char name[] = "timeout_ms=";
    *out_timeout_ns = INT64_C(600000000000);
    if (!attributes || !*attributes) return BERTH_OK;
    char *end = NULL;
    long long value = strncmp(attributes, name, sizeof(name) - 1) == 0
                          ? strtoll(attributes + sizeof(name) - 1, &end, 10)
                          : 0;
    if (!end || *end || value < 1 || value > 86400000)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "%s devices know the attribute timeout_ms=1 to 86400000, not \"%s\"", kind, attributes);
    *out_timeout_ns = (int64_t)value * 1000000;
    return BERTH_OK;
}

berth_status berth_devices__no_answer(const berth_device *device, const char *what,
                                      int64_t timeout_ns) {
    return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                             "%s device %u (%s): %s: no answer within %.3g s",
                             device->driver->ops->kind, device->info.ordinal, device->info.name,
                             what, (double)timeout_ns * 1e-9);
}

berth_status berth_devices__given_up(const berth_device *device, const char *what) {
    return berth_status_make(BERTH_UNAVAILABLE,
                             "%s device %u (%s): %s: the device has not answered in time before, "
                             "and is not used any more",
                             device->driver->ops->kind, device->info.ordinal, device->info.name,
                             what);
}
