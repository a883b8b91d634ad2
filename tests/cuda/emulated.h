// Whether the cuda device is the emulated one of these tests (emulation/), whose faults and libraries are theirs.
#ifndef BERTH_TESTS_CUDA_EMULATED_H_
#define BERTH_TESTS_CUDA_EMULATED_H_

#include <string.h>

#include "devices/registry.h"

static inline bool berth_test_is_emulated(void) {
    berth_driver *driver = NULL;
    berth_device_info info = {.name = ""};
    berth_status status = berth_driver_open("cuda", berth_allocator_system(), &driver);
    if (!status) status = berth_driver_device_info(driver, 0, &info);
    berth_status_free(status);
    berth_driver_close(driver);
    return strstr(info.name, "emulated") != NULL;
}

#endif  // BERTH_TESTS_CUDA_EMULATED_H_
