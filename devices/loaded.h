// The drivers that berth_driver_load added, for the registry (private to devices/).
#ifndef BERTH_DEVICES_LOADED_H_
#define BERTH_DEVICES_LOADED_H_

#include "devices/driver.h"

uint32_t berth_devices__loaded_count(void);  // never falls
// The path lives as long as the process.
const berth_driver_ops *berth_devices__loaded_at(uint32_t index, const char **out_path);

#endif  // BERTH_DEVICES_LOADED_H_
