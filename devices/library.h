// Drivers from shared libraries outside this tree: what such a library exports, and loading it.
//
//   // In the library, once:
//   static const berth_driver_ops driver = {.kind = "npu", .description = "...", .open = ..., ...};
//   BERTH_DRIVER_LIBRARY(driver)
//
// The library takes the functions of base/ and devices/ from the program that loads it, so that both
// agree on them: link the program with exported symbols (CMake: ENABLE_EXPORTS, as `berth` is), and
// leave them undefined in the library. A library is native code of this process (SECURITY.md).
#ifndef BERTH_DEVICES_LIBRARY_H_
#define BERTH_DEVICES_LIBRARY_H_

#include "devices/driver.h"

// Changes whenever anything in devices/driver.h does that a driver sees.
#define BERTH_DRIVER_INTERFACE 9

typedef struct berth_driver_library {
    uint32_t interface_version;  // BERTH_DRIVER_INTERFACE of the headers that it was built with
    uint32_t driver_bytes;       // and the sizes of their tables and commands, as a second look
    uint32_t device_bytes;
    uint32_t info_bytes;
    uint32_t command_bytes;
    const berth_driver_ops *driver;
} berth_driver_library;

#define BERTH_DRIVER_LIBRARY_SYMBOL "berth_driver_library_of_this"
#define BERTH_DRIVER_LIBRARY(ops)                                                                  \
    extern const berth_driver_library berth_driver_library_of_this;                                \
    const berth_driver_library berth_driver_library_of_this = {                                    \
        .interface_version = BERTH_DRIVER_INTERFACE,                                               \
        .driver_bytes = sizeof(berth_driver_ops),                                                  \
        .device_bytes = sizeof(berth_device_ops),                                                  \
        .info_bytes = sizeof(berth_device_info),                                                   \
        .command_bytes = sizeof(berth_command),                                                    \
        .driver = &(ops)};

// Loads a driver for the rest of the process: berth_driver_open finds it by its kind, in place of a
// built-in driver of that kind. Loading the same file again changes nothing. `path` names a file;
// nothing is searched for.
//   ownership: the library stays loaded, and *out_kind (the kind of device, for messages) in it
//   errors:    NOT_FOUND no such file; UNAVAILABLE it does not load (the loader's reason);
//              INCOMPATIBLE it is no driver, or one for another version of the interface;
//              ALREADY_EXISTS another library serves that kind; OUT_OF_RANGE too many
//   threads:   thread-safe
BERTH_MUST_USE berth_status berth_driver_load(const char *path, const char **out_kind);

#endif  // BERTH_DEVICES_LIBRARY_H_
