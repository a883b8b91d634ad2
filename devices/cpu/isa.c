// Whether this processor has the instructions of an image of kernels, looked at once per device.
#include <stdio.h>
#include <string.h>

#include "devices/cpu/cpu.h"

berth_status berth_cpu__isa_check(cpu_device *device, const char *needs) {
    if (!needs || !*needs) return BERTH_OK;
    pthread_mutex_lock(&device->run_lock);
    bool known = strcmp(device->checked_isa, needs) == 0;
    pthread_mutex_unlock(&device->run_lock);
    if (known) return BERTH_OK;
    BERTH_TRY(berth_devices__check_needs(device->base.allocator, needs));
    pthread_mutex_lock(&device->run_lock);
    snprintf(device->checked_isa, sizeof(device->checked_isa), "%s", needs);
    pthread_mutex_unlock(&device->run_lock);
    return BERTH_OK;
}
