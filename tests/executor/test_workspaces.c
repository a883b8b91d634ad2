// Blocks of values in memories of devices: kept for the next value of their size, counted, limited.
#include <criterion/criterion.h>

#include "devices/registry.h"
#include "executor/workspaces.h"
#include "tests/check.h"

static berth_driver *driver;
static berth_device *device;

static void setup(void) {
    assert_ok(berth_driver_open("cpu", berth_allocator_system(), &driver));
    assert_ok(berth_device_open(driver, 0, NULL, &device));
}

static void teardown(void) {
    berth_device_close(device);
    berth_driver_close(driver);
}

TestSuite(workspaces, .init = setup, .fini = teardown);

static berth_buffer *take(berth_workspaces *blocks, uint64_t size_bytes) {
    berth_buffer *buffer = NULL;
    assert_ok(berth_workspaces_take(blocks, device, 0, size_bytes, &buffer));
    cr_assert_geq(berth_buffer_size_bytes(buffer), size_bytes);
    cr_assert_leq(berth_buffer_size_bytes(buffer), size_bytes + size_bytes / 8 + 32);
    return buffer;
}

Test(workspaces, blocks_are_kept_for_values_of_their_size) {
    berth_workspaces blocks = {.of_values = true};
    berth_buffer *first = take(&blocks, 1000), *second = take(&blocks, 1000);
    cr_assert_neq(first, second);
    berth_workspaces_give(&blocks, first);
    cr_assert_neq(take(&blocks, 100), first, "a small value leaves it to others");
    cr_assert_eq(take(&blocks, 990), first);
    cr_assert_eq(blocks.made_count, 3);
    cr_assert_eq(blocks.reserved_bytes, 2 * berth_buffer_size_bytes(first) + 128);
    berth_workspaces_give(&blocks, NULL);
    berth_workspaces_close(&blocks);
}

Test(workspaces, what_runs_no_longer_take_goes_back) {
    berth_workspaces blocks = {.of_values = true};
    berth_buffer *held = take(&blocks, 5000), *other = take(&blocks, 1 << 20);
    berth_workspaces_give(&blocks, other);
    for (int run = 0; run < 3; ++run) berth_workspaces_end_run(&blocks);
    cr_assert_eq(take(&blocks, 1 << 20), other, "three runs later it is there");
    berth_workspaces_give(&blocks, other);
    for (int run = 0; run < 10; ++run) berth_workspaces_end_run(&blocks);
    cr_assert_eq(blocks.reserved_bytes, berth_buffer_size_bytes(held), "what a value has stays");
    berth_workspaces_close(&blocks);
}

Test(workspaces, values_have_a_limit) {
    berth_workspaces blocks = {.of_values = true, .limit_bytes = 4096};
    berth_buffer *refused = NULL, *held = take(&blocks, 2048);
    assert_fails(berth_workspaces_take(&blocks, device, 0, 4096, &refused), BERTH_OUT_OF_MEMORY,
                 "limit of 4096 bytes");
    cr_assert_null(refused);
    berth_workspaces_give(&blocks, held);
    held = take(&blocks, 4096);  // what nobody has makes room
    cr_assert_eq(blocks.reserved_bytes, 4096);
    blocks.limit_bytes = 0;
    (void)take(&blocks, 100000);
    berth_workspaces_close(&blocks);
}

// Sessions' workspaces grow by halves, and serve what is smaller.
Test(workspaces, those_of_sessions_serve_smaller_ones) {
    berth_workspaces own = {0};
    berth_buffer *large = NULL, *again = NULL;
    assert_ok(berth_workspaces_take(&own, device, 0, 10000, &large));
    berth_workspaces_begin(&own);
    assert_ok(berth_workspaces_take(&own, device, 0, 100, &again));
    cr_assert_eq(large, again);
    cr_assert_eq(berth_workspaces_bytes(&own), 10000);
    berth_workspaces_close(&own);
}
