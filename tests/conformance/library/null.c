// The template driver as a shared library, for a kind of device that Berth does not know: what a
// vendor builds outside of the tree.
#include "devices/null/null.c"
#include "devices/library.h"

// With a limit of its own: the suite checks that it holds.
static berth_status device_info(berth_driver *driver, uint32_t ordinal,
                                berth_device_info *out_info) {
    BERTH_TRY(null_device_info(driver, ordinal, out_info));
    out_info->max_bindings = 20;
    return BERTH_OK;
}

static const berth_driver_ops driver = {
    .kind = "example",
    .description = "the template driver, from a shared library",
    .runs_no_kernels = true,
    .open = null_open,
    .close = null_close,
    .device_count = null_device_count,
    .device_info = device_info,
    .device_open = null_device_open,
};
BERTH_DRIVER_LIBRARY(driver)
