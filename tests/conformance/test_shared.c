// Memory that host and device share: one address, turns, no copies. A device that does not work in
// host memory must say so; then only that is checked.
#include <stdint.h>

#include "tests/conformance/conformance.h"

// A shared buffer of the device, or NULL where it has none and says so.
static berth_buffer *share(berth_device *device, uint64_t size_bytes) {
    const berth_device_info *info = berth_device_get_info(device);
    berth_buffer *buffer = NULL;
    berth_status status = berth_buffer_share(device, size_bytes, &buffer);
    if (info->unified || info->memories[0].host_visible) {
        check_ok(status);
        cr_assert_not_null(berth_buffer_host(buffer));
        cr_assert_eq((uintptr_t)berth_buffer_host(buffer) % info->memories[0].alignment_bytes, 0);
        return buffer;
    }
    check_code(status, BERTH_UNSUPPORTED);
    cr_assert_null(buffer);
    return NULL;
}

CONFORMANCE(shared, sizes) {
    static const uint64_t sizes[] = {0, 1, 127, 4097, 65536, (9 << 20) + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        berth_buffer *buffer = share(f->devices[0], sizes[i]);
        if (!buffer) return;
        cr_assert_eq(berth_buffer_size_bytes(buffer), sizes[i]);
        unsigned char *data = berth_buffer_host(buffer);
        if (sizes[i]) data[0] = data[sizes[i] - 1] = 3;
        berth_buffer_free(buffer);  // while the host has it
    }
    berth_buffer *buffer = NULL;
    check_code(berth_buffer_share(f->devices[0], UINT64_MAX, &buffer), BERTH_OUT_OF_MEMORY);
    cr_assert_null(buffer);
}

// The host and the device write in turns, what each finds is what the other left.
CONFORMANCE(shared, turns) {
    enum { SIZE = 5000, ROUNDS = 30 };
    berth_buffer *buffer = share(f->devices[0], SIZE);
    if (!buffer) return;
    unsigned char *data = berth_buffer_host(buffer);
    for (int round = 0; round < ROUNDS; ++round) {
        memset(data, round, SIZE);
        berth_command commands[] = {
            hand_over_command(BERTH_COMMAND_TO_DEVICE, &buffer, 1),
            fill_command(buffer, 100, 1000, 0x80u + (uint32_t)round, 1),
            copy_command(buffer, 0, buffer, 3000, 200),
            hand_over_command(BERTH_COMMAND_TO_HOST, &buffer, 1),
        };
        check_ok(berth_queue_run(f->queues[0], commands, 4));
        cr_assert_eq(berth_buffer_host(buffer), data);
        for (int i = 0; i < SIZE; ++i) {
            int from = i >= 3000 && i < 3200 ? i - 3000 : i;
            int expected = from >= 100 && from < 1100 ? 0x80 + round : round;
            cr_assert_eq(data[i], expected, "round %d, byte %d: %d", round, i, data[i]);
        }
    }
    berth_buffer_free(buffer);
}

// Views change hands one by one: the host works in one while the device has the other.
CONFORMANCE(shared, views) {
    enum { ROUNDS = 20 };
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    berth_buffer *root = share(f->devices[0], 3 * (uint64_t)alignment), *views[3];
    if (!root) return;
    for (uint64_t v = 0; v < 3; ++v) {
        check_ok(berth_buffer_view(root, v * alignment, alignment, &views[v]));
        cr_assert_eq(berth_buffer_host(views[v]),
                     (unsigned char *)berth_buffer_host(root) + v * alignment);
    }
    unsigned char *data = berth_buffer_host(root);
    berth_command begin[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &root, 1),
                             hand_over_command(BERTH_COMMAND_TO_HOST, views, 2),
                             hand_over_command(BERTH_COMMAND_TO_HOST, views, 2)};  // again: nothing
    check_ok(berth_queue_run(f->queues[0], begin, 3));
    berth_semaphore *order = make_semaphore(f, 0);
    for (uint32_t round = 1; round <= ROUNDS; ++round) {
        data[0] = (unsigned char)round;
        berth_command commands[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, views, 1),
                                    copy_command(views[0], 0, views[2], 0, alignment),
                                    fill_command(views[0], 0, alignment, 7, 1),
                                    copy_command(views[2], 0, views[0], 1, 1),
                                    hand_over_command(BERTH_COMMAND_TO_HOST, views, 1)};
        check_ok(submit(f->queues[0], commands, 5, NULL, 0, order, round));
        memset(data + alignment, (int)round, alignment);  // meanwhile, the host's
        check_ok(berth_semaphore_wait(order, round, -1));
        cr_assert(data[0] == 7 && data[1] == round && data[2] == 7);
        cr_assert(data[alignment] == round && data[2 * alignment - 1] == round);
    }
    berth_semaphore_release(order);
    berth_buffer_free(root);  // views keep it
    for (int v = 0; v < 3; ++v) berth_buffer_free(views[v]);
}

// Constants: handed over to be read on both sides.
CONFORMANCE(shared, both_read) {
    enum { SIZE = 4096 };
    berth_buffer *buffer = share(f->devices[0], SIZE);
    if (!buffer) return;
    berth_buffer *copy = make_buffer(f->devices[0], SIZE);
    unsigned char *data = berth_buffer_host(buffer), back[SIZE];
    for (int i = 0; i < SIZE; ++i) data[i] = (unsigned char)(i * 11);
    berth_command commands[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &buffer, 1),
                                hand_over_command(BERTH_COMMAND_TO_HOST, &buffer, 1),
                                copy_command(buffer, 0, copy, 0, SIZE)};
    commands[1].hand_over.read_only = true;
    check_ok(berth_queue_run(f->queues[0], commands, 3));
    read_buffer(copy, back, SIZE);
    for (int i = 0; i < SIZE; ++i) cr_assert_eq(back[i], (unsigned char)(i * 11));
    for (int i = 0; i < SIZE; ++i) cr_assert_eq(data[i], (unsigned char)(i * 11));
    berth_buffer_free(buffer);
    berth_buffer_free(copy);
}

// A second device over the memory that the first allocated: each writes what the other reads.
CONFORMANCE(shared, between_devices) {
    enum { SIZE = 4096, ROUNDS = 10 };
    berth_buffer *a = share(f->devices[0], SIZE), *b = NULL, *host = NULL;
    if (!a) return;
    unsigned char *data = berth_buffer_host(a);
    check_ok(berth_buffer_import(f->devices[1], data, SIZE, &b));
    check_ok(berth_buffer_import(f->host_device, data, SIZE, &host));
    cr_assert_eq(berth_buffer_host(b), data);
    cr_assert_eq(berth_buffer_host(host), data);
    data[0] = 1;
    for (int round = 0; round < ROUNDS; ++round) {
        berth_command first[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &a, 1),
                                 copy_command(a, 0, a, 1000, 1),
                                 hand_over_command(BERTH_COMMAND_TO_HOST, &a, 1)};
        berth_command second[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &b, 1),
                                  copy_command(b, 1000, b, 2000, 1),
                                  hand_over_command(BERTH_COMMAND_TO_HOST, &b, 1)};
        check_ok(berth_queue_run(f->queues[0], first, 3));
        check_ok(berth_queue_run(f->queues[1], second, 3));
        cr_assert_eq(data[2000], data[0]);
        data[0] = (unsigned char)(data[2000] * 3 + 1);
    }
    berth_buffer_free(host);
    berth_buffer_free(b);
    berth_buffer_free(a);
}

CONFORMANCE(shared, bad_arguments) {
    berth_buffer *plain = make_buffer(f->devices[0], 100), *none = NULL;
    berth_buffer *other = make_buffer(f->host_device, 100);
    berth_command missing = hand_over_command(BERTH_COMMAND_TO_DEVICE, &none, 1);
    check_code(berth_queue_run(f->queues[0], &missing, 1), BERTH_INVALID_ARGUMENT);
    berth_command foreign = hand_over_command(BERTH_COMMAND_TO_HOST, &other, 1);
    check_code(berth_queue_run(f->queues[0], &foreign, 1), BERTH_INCOMPATIBLE);
    berth_command empty = hand_over_command(BERTH_COMMAND_TO_HOST, NULL, 0);
    check_ok(berth_queue_run(f->queues[0], &empty, 1));
    if (!berth_buffer_host(plain)) {
        berth_command unshared = hand_over_command(BERTH_COMMAND_TO_HOST, &plain, 1);
        check_code(berth_queue_run(f->queues[0], &unshared, 1), BERTH_INCOMPATIBLE);
    }
    berth_buffer_free(plain);
    berth_buffer_free(other);
}

// A kernel and the host take turns in shared memory.
CONFORMANCE(dispatch, runs_on_shared_memory) {
    enum { COUNT = 1003, ROUNDS = 20 };
    berth_buffer *buffer = share(f->devices[0], COUNT * sizeof(int32_t));
    if (!buffer) return;
    load_kernels(f);
    uint32_t add_one = find_kernel(f, "add_one", 1, 1);
    int32_t *data = berth_buffer_host(buffer);
    int64_t constants[] = {COUNT};
    for (int i = 0; i < COUNT; ++i) data[i] = i;
    for (int round = 1; round <= ROUNDS; ++round) {
        berth_command commands[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &buffer, 1),
                                    dispatch_command(f, add_one, &buffer, 1, constants, 1, COUNT),
                                    hand_over_command(BERTH_COMMAND_TO_HOST, &buffer, 1)};
        check_ok(berth_queue_run(f->queues[0], commands, 3));
        for (int i = 0; i < COUNT; ++i) {
            cr_assert_eq(data[i], i + 2 * round - 1);
            data[i] += 1;
        }
    }
    berth_buffer_free(buffer);
}
