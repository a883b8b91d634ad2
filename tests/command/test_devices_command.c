// What `berth devices` says of a device.
#include <string.h>

#include "support.h"

// Each extension that people ask about is used, there and not used, or lacking.
Test(devices_command, what_opencl_uses_and_lacks) {
    static const char *const names[] = {"cl_khr_fp64", "cl_khr_fp16", "cl_khr_subgroups",
                                        "cl_khr_integer_dot_product"};
    const char *text = berth_run("devices")->out;
    const char *device = strstr(text, "  opencl:0 ");
    if (!device) cr_skip("skipped: this needs OpenCL");
    const char *memory = strstr(device, "memory global");
    cr_assert(memory, "%s", text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *first = strstr(device, names[i]);
        cr_assert(first && first < memory, "%s is missing: %s", names[i], text);
        const char *again = strstr(first + 1, names[i]);
        cr_assert(!again || again > memory, "%s twice: %s", names[i], text);
    }
}
