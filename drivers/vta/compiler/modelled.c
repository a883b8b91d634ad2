// What compiled kernels take, by the timing model on their streams.
#include <string.h>

#include "drivers/vta/compiler/compiler.h"

static double kernel_ns(const berth_target *target, const berth_vta_image *image,
                        const char *entry) {
    berth_vta_run_options options = {.timing = berth_vta_timing_default()};
    berth_vta_report report;
    for (uint32_t k = 0; k < image->kernel_count; ++k) {
        if (strcmp(image->kernels[k].name, entry) != 0) continue;
        berth_status status = berth_vta_kernel_time(berth_allocator_system(), &image->config,
                                                    &image->kernels[k], &options, &report);
        berth_status_ignore(status);
        if (status || target->clock_hz <= 0) return -1;
        return (double)report.cycles * 1e9 / (double)target->clock_hz + (double)target->dispatch_ns;
    }
    return -1;
}

double berth_vta_modelled_ns(const berth_target *target, const berth_executable_image *image,
                             const char *entry) {
    berth_vta_image read;
    if (strcmp(target->transport, "registers") == 0) return -1;
    if (strcmp(image->format, BERTH_VTA_FORMAT) != 0) return -1;
    berth_status status = berth_vta_image_read(berth_allocator_system(), image->data,
                                               (size_t)image->size_bytes, &read);
    berth_status_ignore(status);
    if (status) return -1;
    double ns = kernel_ns(target, &read, entry);
    berth_vta_image_free(&read);
    return ns;
}
