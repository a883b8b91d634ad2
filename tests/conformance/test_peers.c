// Copies between two devices of one driver, without the host on the way. A driver that has none says
// so; then only that is checked.
#include <stdint.h>

#include "tests/conformance/conformance.h"

enum { SIZE = 5003, ROUNDS = 20 };

typedef struct peers {
    berth_device *devices[2];
    berth_queue *queues[2];
    bool direct;
} peers;

// Both devices of the row, opened for it. `p->direct`: the driver lets them copy to each other.
static void open_peers(conformance_fixture *f, peers *p) {
    berth_device_options options = f->row->options;
    options.peers = true;
    uint32_t second = f->row->device_count > 1;
    p->direct = berth_driver_reaches(f->driver, 0, second);
    for (uint32_t i = 0; i < 2; ++i) {
        check_ok(berth_device_open(f->driver, i * second, &options, &p->devices[i]));
        check_ok(berth_queue_open(p->devices[i], BERTH_QUEUE_COMPUTE, &p->queues[i]));
    }
}

static void close_peers(peers *p) {
    for (int i = 0; i < 2; ++i) berth_queue_destroy(p->queues[i]);
    for (int i = 0; i < 2; ++i) berth_device_close(p->devices[i]);
}

static void fill_bytes(unsigned char *bytes, unsigned seed) {
    for (int i = 0; i < SIZE; ++i) bytes[i] = (unsigned char)((unsigned)i * 31u + seed);
}

// There and back, by the queue of the one that has the bytes and by the other's, at odd offsets and from
// views.
CONFORMANCE(peers, there_and_back) {
    static unsigned char first[SIZE], back[SIZE];
    peers p;
    open_peers(f, &p);
    for (int round = 0; round < ROUNDS && p.direct; ++round) {
        check_ok(berth_device_open_peer(p.devices[0], p.devices[1]));
        check_ok(berth_device_open_peer(p.devices[1], p.devices[0]));
        uint32_t alignment = berth_device_get_info(p.devices[1])->memories[0].alignment_bytes;
        berth_buffer *a = make_buffer(p.devices[0], SIZE), *view = NULL;
        berth_buffer *b = make_buffer(p.devices[1], alignment + SIZE);
        check_ok(berth_buffer_view(b, alignment, SIZE, &view));
        fill_bytes(first, (unsigned)round);
        write_buffer(a, first, SIZE);
        berth_command there[] = {copy_command(a, 1, view, 3, SIZE - 3)};
        berth_command twice[] = {copy_command(b, alignment + 3, a, 0, SIZE - 3),
                                 copy_command(view, 3, a, 2, 1)};
        check_ok(berth_queue_run(p.queues[round % 2], there, 1));
        check_ok(berth_queue_run(p.queues[round / 2 % 2], twice, 2));
        read_buffer(a, back, SIZE);
        for (int i = 0; i < SIZE - 3; ++i)
            cr_assert_eq(back[i], first[i == 2 ? 1 : i + 1], "round %d, byte %d", round, i);
        for (int i = SIZE - 3; i < SIZE; ++i) cr_assert_eq(back[i], first[i]);
        berth_buffer_free(view);
        berth_buffer_free(a);
        berth_buffer_free(b);
    }
    close_peers(&p);
}

// Bytes go from device to device many times, by one queue after the other: each marks one of them.
CONFORMANCE(peers, take_turns) {
    unsigned char bytes[64] = {0};
    peers p;
    open_peers(f, &p);
    if (p.direct) {
        check_ok(berth_device_open_peer(p.devices[0], p.devices[1]));
        check_ok(berth_device_open_peer(p.devices[1], p.devices[0]));
        berth_buffer *buffers[2] = {make_buffer(p.devices[0], 64), make_buffer(p.devices[1], 64)};
        berth_semaphore *order = make_semaphore(f, 0);
        berth_command commands[ROUNDS][2];
        write_buffer(buffers[0], bytes, sizeof(bytes));
        for (uint32_t turn = 0; turn < ROUNDS; ++turn) {
            berth_buffer *own = buffers[turn % 2], *other = buffers[1 - turn % 2];
            commands[turn][0] = fill_command(own, turn, 1, turn + 1, 1);
            commands[turn][1] = copy_command(own, 0, other, 0, 64);
            check_ok(submit(p.queues[turn % 2], commands[turn], 2, turn ? order : NULL, turn, order,
                            turn + 1));
        }
        check_ok(berth_semaphore_wait(order, ROUNDS, -1));
        read_buffer(buffers[ROUNDS % 2], bytes, sizeof(bytes));
        for (int i = 0; i < ROUNDS; ++i)
            cr_assert_eq(bytes[i], i + 1, "turn %d left %d", i, bytes[i]);
        berth_semaphore_release(order);
        for (int i = 0; i < 2; ++i) berth_buffer_free(buffers[i]);
    }
    close_peers(&p);
}

// Copies to a device that was not opened as a peer are refused, and so is opening where there is no way.
CONFORMANCE(peers, are_opened_first) {
    peers p;
    open_peers(f, &p);
    bool same = p.devices[0]->info.ordinal == p.devices[1]->info.ordinal;
    berth_buffer *a = make_buffer(p.devices[0], 64), *b = make_buffer(p.devices[1], 64);
    berth_command copy = copy_command(a, 0, b, 0, 64);
    if (!berth_buffer_host(a))
        check_code(berth_queue_run(p.queues[0], &copy, 1), BERTH_INCOMPATIBLE);
    bool is_host = berth_device_get_info(p.devices[1])->memories[0].host_visible;
    if (!p.direct && !same && !is_host)
        check_code(berth_device_open_peer(p.devices[0], p.devices[1]), BERTH_UNSUPPORTED);
    if (!same && !is_host)  // opened for themselves
        check_code(berth_device_open_peer(f->devices[0], f->devices[1]), BERTH_UNSUPPORTED);
    check_ok(berth_device_open_peer(p.devices[0], f->host_device));  // all reach it
    check_ok(berth_device_open_peer(p.devices[0], p.devices[0]));
    cr_assert_not(berth_driver_reaches(f->driver, 0, 0));
    cr_assert_not(berth_driver_reaches(f->driver, 0, 1u << 20));
    berth_buffer_free(a);
    berth_buffer_free(b);
    close_peers(&p);
}
