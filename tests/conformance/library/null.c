// The template driver as a shared library, for a kind of device that Berth does not know: what a
// vendor builds outside of the tree.
#include "devices/null/null.c"
#include "devices/library.h"

static const berth_driver_ops driver = {
    .kind = "example",
    .description = "the template driver, from a shared library",
    .runs_no_kernels = true,
    .open = null_open,
    .close = null_close,
    .device_count = null_device_count,
    .device_info = null_device_info,
    .device_open = null_device_open,
};
BERTH_DRIVER_LIBRARY(driver)
