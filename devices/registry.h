// The drivers built in (drivers.def) or loaded (devices/library.h), and what they find on this
// machine.
#ifndef BERTH_DEVICES_REGISTRY_H_
#define BERTH_DEVICES_REGISTRY_H_

#include "base/arena.h"
#include "devices/driver.h"

// Row `index` of the registry: the built-in drivers, each replaced by a loaded one of its kind, then
// loaded ones of other kinds. NULL: there is no such row.
const berth_driver_ops *berth_driver_kind_at(uint32_t index);

// Opens the driver that serves a target kind. It and all it opens allocate through `allocator`.
// Errors: NOT_FOUND there is no such driver (the message lists those there are); UNAVAILABLE the
// driver lacks a library or has no device here (reason in the message).
BERTH_MUST_USE berth_status berth_driver_open(const char *kind, berth_allocator allocator,
                                              berth_driver **out_driver);
void berth_driver_close(berth_driver *driver);  // after its devices; NULL is fine
const char *berth_driver_kind(const berth_driver *driver);
uint32_t berth_driver_device_count(berth_driver *driver);
// Facts without opening the device. Errors: NOT_FOUND ordinal.
BERTH_MUST_USE berth_status berth_driver_device_info(berth_driver *driver, uint32_t ordinal,
                                                     berth_device_info *out_info);

// What is here, for `berth devices` and target detection.
typedef struct berth_driver_report {
    const char *kind;
    const char *description;
    const char *library;  // the file that it was loaded from, "" = built in
    bool available;
    const char *reason;   // why not available, "" when it is
    const char *lacking;  // berth_driver.lacking
    const berth_device_info *devices;
    uint32_t device_count;
} berth_driver_report;

// One entry per driver, in the registry's order; opens and closes each. A driver that does not open
// is an entry with a reason, not an error. Lives in the arena. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_driver_report_all(berth_arena *arena, berth_allocator allocator,
                                                    berth_driver_report **out_reports,
                                                    uint32_t *out_count);

#endif  // BERTH_DEVICES_REGISTRY_H_
