// The cpu driver on machines with several NUMA nodes, which hwloc can describe without having one.
#include <stdlib.h>

#include "tests/conformance/conformance.h"

Test(numa, one_memory_per_node, .timeout = 60) {
    setenv("HWLOC_SYNTHETIC", "numa:3 l3:1(size=8MiB) core:2 l1:1(size=32KiB) pu:2", 1);
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    check_ok(berth_driver_open("cpu", berth_counting_allocator_get(&counting), &driver));
    check_ok(berth_device_open(driver, 0, NULL, &device));
    const berth_device_info *info = berth_device_get_info(device);
    cr_assert_eq(info->compute_units, 6, "cores, not hardware threads");
    static const char *const scopes[] = {"global", "numa:1", "numa:2"};
    cr_assert_eq(info->memory_count, 3);
    cr_assert_eq(info->cache_bytes[0], 32 << 10);
    cr_assert_eq(info->cache_bytes[1], 0);
    cr_assert_eq(info->cache_bytes[2], 8 << 20);
    for (uint32_t i = 0; i < 3; ++i) {
        uint32_t memory = UINT32_MAX;
        cr_assert_str_eq(info->memories[i].scope, scopes[i]);
        check_ok(berth_device_find_memory(device, scopes[i], &memory));
        cr_assert_eq(memory, i);
        // Binding cannot work on a machine that is not there; the memory must.
        berth_buffer *buffer = NULL;
        check_ok(berth_buffer_allocate(device, i, 1 << 20, &buffer));
        memset(berth_buffer_host(buffer), 1, 1 << 20);
        berth_buffer_free(buffer);
    }
    berth_device_close(device);
    berth_driver_close(driver);
    cr_assert_eq(atomic_load(&counting.live_count), 0);
}
