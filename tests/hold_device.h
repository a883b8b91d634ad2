// Keeps a device of a kind open for the rest of the process, where there is one. A driver whose code
// generator takes long to start (PoCL: 0.6 s) keeps it as long as any device is open: without this
// it starts anew for each session that a test opens.
#ifndef BERTH_TESTS_HOLD_DEVICE_H_
#define BERTH_TESTS_HOLD_DEVICE_H_

#include "devices/device.h"
#include "devices/registry.h"

static inline void hold_device(const char *kind) {
    static berth_driver *driver;
    static berth_device *device;
    if (device) return;
    berth_status_ignore(berth_driver_open(kind, berth_allocator_system(), &driver));
    if (driver) berth_status_ignore(berth_device_open(driver, 0, NULL, &device));
}

#endif  // BERTH_TESTS_HOLD_DEVICE_H_
