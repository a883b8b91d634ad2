// The cpu driver on machines with several NUMA nodes, which hwloc can describe without having one.
#define _GNU_SOURCE  // RTLD_NEXT, mincore
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// ---- what the system is asked for ---------------------------------------------------------------

// The last mbind, which the system of a machine with one node would refuse.
static struct {
    bool listens;
    uint32_t calls;
    unsigned long start, bytes, mode, nodes;
} bound;

// In the place of the C library's: mbind has no wrapper there.
long syscall(long number, ...) {
    static long (*real)(long, ...);
    unsigned long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, unsigned long);
    va_end(list);
    if (number == SYS_mbind && bound.listens) {
        bound.calls++;
        bound.start = a[0];
        bound.bytes = a[1];
        bound.mode = a[2];
        bound.nodes = a[3] ? *(const unsigned long *)a[3] : 0;  // NOLINT: the kernel's own form
        return 0;
    }
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static uint32_t resident_pages(void *data, size_t size_bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char present[4096];
    uint32_t count = 0;
    cr_assert_leq(size_bytes / page, sizeof(present));
    cr_assert_eq(mincore(data, size_bytes, present), 0);
    for (size_t i = 0; i < size_bytes / page; ++i) count += present[i] & 1;
    return count;
}

// Whether the mapping that has the address is one that the system may give huge pages to.
static bool asks_for_huge_pages(const void *data) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file)) {
        unsigned long begin = 0, end = 0;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            inside = begin <= (unsigned long)data && (unsigned long)data < end;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) found |= strstr(line, " hg") != NULL;
    }
    fclose(file);
    return found;
}

// A buffer in the memory of a node is bound there before anything touches it, and nothing touches it
// before its user does: its pages are made by the thread that writes first. Where the system has
// huge pages, a large one asks for them.
Test(numa, buffers_are_bound_and_left_to_the_first_touch, .timeout = 60) {
    setenv("HWLOC_SYNTHETIC", "numa:3 l3:1(size=8MiB) core:2 l1:1(size=32KiB) pu:2", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    const size_t size_bytes = (size_t)12 << 20;
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    check_ok(berth_driver_open("cpu", berth_allocator_system(), &driver));
    check_ok(berth_device_open(driver, 0, NULL, &device));
    berth_buffer *buffers[3];
    unsigned long all = 0;
    for (uint32_t i = 0; i < 3; ++i) {
        bound.listens = true;
        bound.calls = 0;
        check_ok(berth_buffer_allocate(device, i, size_bytes, &buffers[i]));
        bound.listens = false;
        void *data = berth_buffer_host(buffers[i]);
        cr_expect_eq(bound.calls, 1u);
        cr_expect_eq(bound.start, (unsigned long)data);
        cr_expect_eq(bound.bytes, size_bytes);
        cr_expect_eq(bound.mode, (unsigned long)MPOL_PREFERRED);
        cr_expect_eq(__builtin_popcountl(bound.nodes), 1, "%lx", bound.nodes);
        all |= bound.nodes;
        cr_expect_leq(resident_pages(data, size_bytes), 2u, "but for the allocator's own");
        memset(data, 1, size_bytes);
        cr_expect_eq(resident_pages(data, size_bytes),
                     (uint32_t)(size_bytes / (size_t)sysconf(_SC_PAGESIZE)));
        if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0)
            cr_expect(asks_for_huge_pages(data), "memory %u", i);
    }
    cr_expect_eq(all, 7ul, "each memory has a node of its own");
    for (uint32_t i = 0; i < 3; ++i) {
        bound.listens = true;
        bound.calls = 0;
        berth_buffer_free(buffers[i]);
        bound.listens = false;
        cr_expect_eq(bound.calls, 1u, "the pages go back without a node");
        cr_expect_eq(bound.mode, (unsigned long)MPOL_DEFAULT);
    }
    berth_device_close(device);
    berth_driver_close(driver);
}
