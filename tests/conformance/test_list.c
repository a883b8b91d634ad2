// Command lists: prepared once, submitted again and again.
#include <stdint.h>

#include "tests/conformance/conformance.h"

enum { BYTES = 1000, COUNT = 501, ROUNDS = 5 };

static void submit_list(berth_queue *queue, const berth_command_list *list, berth_semaphore *line,
                        uint64_t wait, uint64_t signal) {
    berth_semaphore_point waits = {line, wait}, signals = {line, signal};
    check_ok(berth_queue_submit(queue, &(berth_submission){.waits = &waits,
                                                           .wait_count = 1,
                                                           .list = list,
                                                           .signals = &signals,
                                                           .signal_count = 1}));
}

static berth_status count_call(void *user) {
    ++*(int *)user;
    return BERTH_OK;
}

// Commands of all kinds, those of the host in between: each round works on what the last one left.
CONFORMANCE(list, replays) {
    berth_buffer *a = make_buffer(f->devices[0], BYTES), *b = make_buffer(f->devices[0], BYTES);
    berth_buffer *host = make_buffer(f->host_device, BYTES);
    berth_semaphore *line = make_semaphore(f, 0);
    int calls = 0;
    berth_command commands[] = {
        copy_command(host, 0, a, 0, BYTES),
        fill_command(b, 0, 0, 7, 1),
        copy_command(a, 1, b, 0, BYTES - 1),
        fill_command(b, BYTES - 1, 1, 0xee, 1),
        {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {count_call, &calls}},
        copy_command(b, 0, a, 0, BYTES),
        fill_command(a, 0, 8, 0x01020304, 4),
        copy_command(a, 0, host, 0, BYTES)};
    berth_command_list *list = NULL;
    check_ok(berth_queue_prepare(f->queues[0], commands, 8, &list));
    unsigned char *bytes = berth_buffer_host(host), expected[BYTES];
    for (int i = 0; i < BYTES; ++i) bytes[i] = expected[i] = (unsigned char)(i * 7);
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        submit_list(f->queues[0], list, line, round, round + 1);
        check_ok(berth_semaphore_wait(line, round + 1, -1));
        memmove(expected, expected + 1, BYTES - 1);
        expected[BYTES - 1] = 0xee;
        memcpy(expected, (unsigned char[]){4, 3, 2, 1, 4, 3, 2, 1}, 8);
        cr_assert_eq(memcmp(bytes, expected, BYTES), 0, "round %d", (int)round);
    }
    cr_assert_eq(calls, ROUNDS);
    berth_command_list_destroy(list);
    berth_semaphore_release(line);
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host);
}

// The list keeps what it names, and outlives its queue.
CONFORMANCE(list, keeps_buffers) {
    berth_queue *queue = NULL;
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &queue));
    berth_buffer *a = make_buffer(f->devices[0], BYTES), *b = make_buffer(f->devices[0], BYTES);
    berth_semaphore *line = make_semaphore(f, 0);
    berth_command commands[] = {fill_command(a, 0, BYTES, 0x5a, 1),
                                copy_command(a, 0, b, 0, BYTES)};
    berth_command_list *list = NULL;
    check_ok(berth_queue_prepare(queue, commands, 2, &list));
    berth_buffer_free(a);
    submit_list(queue, list, line, 0, 1);
    check_ok(berth_semaphore_wait(line, 1, -1));
    berth_queue_destroy(queue);
    unsigned char back[BYTES];
    read_buffer(b, back, BYTES);
    for (int i = 0; i < BYTES; ++i) cr_assert_eq(back[i], 0x5a);
    berth_command_list_destroy(list);
    berth_semaphore_release(line);
    berth_buffer_free(b);
}

CONFORMANCE(list, refuses) {
    berth_buffer *a = make_buffer(f->devices[0], BYTES);
    berth_command bad = fill_command(a, 8, BYTES, 1, 1), good = fill_command(a, 0, BYTES, 1, 1);
    bad.label = "step nine";
    berth_command_list *list = NULL;
    berth_status status = berth_queue_prepare(f->queues[0], &bad, 1, &list);
    cr_assert_not_null(strstr(berth_status_message(status), "step nine"));
    check_code(status, BERTH_OUT_OF_RANGE);
    cr_assert_null(list);
    check_ok(berth_queue_prepare(f->queues[0], &good, 1, &list));
    check_code(berth_queue_submit(f->queues[1], &(berth_submission){.list = list}),
               BERTH_INVALID_ARGUMENT);
    berth_command_list_destroy(list);
    berth_buffer_free(a);
}

// Once there is room, a list is submitted without an allocation.
CONFORMANCE(list, allocates_nothing) {
    berth_buffer *a = make_buffer(f->devices[0], BYTES);
    berth_semaphore *line = make_semaphore(f, 0);
    berth_command commands[] = {fill_command(a, 0, BYTES, 1, 1), fill_command(a, 0, 40, 2, 4),
                                fill_command(a, 10, 10, 3, 1)};
    berth_command_list *list = NULL;
    check_ok(berth_queue_prepare(f->queues[0], commands, 3, &list));
    check_ok(berth_queue_reserve(f->queues[0], 3, 3, 2));
    long long before = 0;
    for (uint64_t round = 0; round < 20; ++round) {
        submit_list(f->queues[0], list, line, round, round + 1);
        check_ok(berth_semaphore_wait(line, round + 1, -1));
        if (round == 0) before = atomic_load(&f->counting.allocation_count);
    }
    cr_assert_eq(atomic_load(&f->counting.allocation_count), before);
    berth_command_list_destroy(list);
    berth_semaphore_release(line);
    berth_buffer_free(a);
}

// Several submissions of one list in flight, and dispatches that find what the ones before them wrote.
CONFORMANCE(dispatch, runs_from_a_list) {
    load_kernels(f);
    uint32_t scale = find_kernel(f, "scale", 2, 2), add_one = find_kernel(f, "add_one", 1, 1);
    int32_t numbers[COUNT], back[COUNT];
    for (int i = 0; i < COUNT; ++i) numbers[i] = i - 200;
    berth_buffer *in = make_buffer(f->devices[0], sizeof(numbers));
    berth_buffer *out = make_buffer(f->devices[0], sizeof(numbers));
    berth_semaphore *line = make_semaphore(f, 0);
    write_buffer(in, numbers, sizeof(numbers));
    berth_buffer *buffers[] = {in, out};
    int64_t scale_constants[] = {3, COUNT}, add_constants[] = {COUNT};
    berth_command commands[] = {dispatch_command(f, scale, buffers, 2, scale_constants, 2, COUNT),
                                dispatch_command(f, add_one, &out, 1, add_constants, 1, COUNT),
                                dispatch_command(f, add_one, &out, 1, add_constants, 1, 0),
                                copy_command(out, 0, in, 0, sizeof(numbers))};
    berth_command_list *list = NULL;
    check_ok(berth_queue_prepare(f->queues[0], commands, 4, &list));
    for (uint64_t round = 0; round < ROUNDS; ++round)
        submit_list(f->queues[0], list, line, round, round + 1);
    check_ok(berth_semaphore_wait(line, ROUNDS, -1));
    read_buffer(in, back, sizeof(back));
    for (int32_t i = 0; i < COUNT; ++i) {
        for (int round = 0; round < ROUNDS; ++round) numbers[i] = 3 * numbers[i] + i + 1;
        cr_assert_eq(back[i], numbers[i]);
    }
    berth_command_list_destroy(list);
    berth_semaphore_release(line);
    berth_buffer_free(in);
    berth_buffer_free(out);
}

// Where kernels work in host memory, a list follows buffers that move.
CONFORMANCE(dispatch, runs_from_a_list_elsewhere) {
    load_kernels(f);
    uint32_t add_one = find_kernel(f, "add_one", 1, 1);
    if (!f->row->synchronous) return;
    static _Alignas(64) int32_t places[2][16];
    memset(places, 0, sizeof(places));
    berth_buffer *buffer = NULL;
    check_ok(berth_buffer_import(f->devices[0], places[0], sizeof(places[0]), &buffer));
    berth_semaphore *line = make_semaphore(f, 0);
    int64_t constants[] = {16};
    berth_command command = dispatch_command(f, add_one, &buffer, 1, constants, 1, 16);
    berth_command_list *list = NULL;
    check_ok(berth_queue_prepare(f->queues[0], &command, 1, &list));
    for (uint64_t round = 0; round < 6; ++round) {
        berth_buffer_move(buffer, places[round % 3 == 0]);
        berth_command_list_update(list);
        submit_list(f->queues[0], list, line, round, round + 1);
        check_ok(berth_semaphore_wait(line, round + 1, -1));
    }
    for (int i = 0; i < 16; ++i) {
        cr_assert_eq(places[0][i], 4);
        cr_assert_eq(places[1][i], 2);
    }
    berth_command_list_destroy(list);
    berth_semaphore_release(line);
    berth_buffer_free(buffer);
}
