// Copies and fills in all directions, against a plain model in host arrays.
#include <stdint.h>
#include <stdlib.h>

#include "tests/conformance/conformance.h"

// xorshift64*: Marsaglia 2003, Vigna 2016.
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

enum { SIZE = 3001, BUFFERS = 4 };

typedef struct model {
    berth_buffer *buffers[BUFFERS];  // two of the device, two of the host
    unsigned char bytes[BUFFERS][SIZE];
} model;

static void open_model(conformance_fixture *f, model *m, uint64_t *random) {
    for (int b = 0; b < BUFFERS; ++b) {
        m->buffers[b] = make_buffer(b < 2 ? f->devices[0] : f->host_device, SIZE);
        for (int i = 0; i < SIZE; ++i) m->bytes[b][i] = (unsigned char)next_random(random);
        write_buffer(m->buffers[b], m->bytes[b], SIZE);
    }
}

static void close_model(model *m) {
    for (int b = 0; b < BUFFERS; ++b) {
        unsigned char back[SIZE];
        read_buffer(m->buffers[b], back, SIZE);
        cr_assert_arr_eq(back, m->bytes[b], SIZE, "buffer %d differs from the model", b);
        berth_buffer_free(m->buffers[b]);
    }
}

// A random copy with an end on the device, carried out in the model.
static berth_command random_copy(model *m, uint64_t *random) {
    int from = (int)(next_random(random) % BUFFERS);
    int to = from < 2 ? (int)(next_random(random) % BUFFERS) : (int)(next_random(random) % 2);
    uint64_t size = next_random(random) % (from == to ? SIZE / 2 : SIZE);
    uint64_t source = next_random(random) % (SIZE - size + 1);
    uint64_t destination = next_random(random) % (SIZE - size + 1);
    if (from == to) {  // apart
        source = next_random(random) % (SIZE / 2 - size + 1);
        destination = SIZE / 2 + next_random(random) % (SIZE / 2 - size + 1);
    }
    memcpy(m->bytes[to] + destination, m->bytes[from] + source, size);
    return copy_command(m->buffers[from], source, m->buffers[to], destination, size);
}

static berth_command random_fill(model *m, uint64_t *random) {
    int to = (int)(next_random(random) % 2);
    uint32_t unit = 1u << next_random(random) % 3;
    uint64_t units = next_random(random) % (SIZE / unit);
    uint64_t offset = unit * (next_random(random) % (SIZE / unit - units + 1));
    uint32_t pattern = (uint32_t)next_random(random);
    for (uint64_t i = 0; i < units * unit; ++i)
        m->bytes[to][offset + i] = (unsigned char)(pattern >> (8 * (i % unit)));
    return fill_command(m->buffers[to], offset, units * unit, pattern, unit);
}

static void run_random(conformance_fixture *f, uint64_t seed, uint32_t batch) {
    enum { COMMANDS = 96 };
    uint64_t random = seed;
    static model m;
    open_model(f, &m, &random);
    berth_command commands[COMMANDS];
    for (int i = 0; i < COMMANDS; ++i)
        commands[i] =
            next_random(&random) % 3 ? random_copy(&m, &random) : random_fill(&m, &random);
    for (uint32_t i = 0; i < COMMANDS; i += batch)
        check_ok(berth_queue_run(f->queues[0], commands + i,
                                 COMMANDS - i < batch ? COMMANDS - i : batch));
    close_model(&m);
}

CONFORMANCE(copy, random_one_by_one) {
    run_random(f, 0x9e3779b97f4a7c15u, 1);
}

CONFORMANCE(copy, random_in_one_batch) {
    for (uint64_t seed = 1; seed <= 8; ++seed) run_random(f, seed * 0x2545f4914f6cdd1du, 96);
}

CONFORMANCE(copy, large) {
    enum { LARGE = 5000011 };
    unsigned char *data = malloc(LARGE), *back = malloc(LARGE);
    for (size_t i = 0; i < LARGE; ++i) data[i] = (unsigned char)(i % 251);
    berth_buffer *a = make_buffer(f->devices[0], LARGE), *b = make_buffer(f->devices[0], LARGE);
    berth_buffer *host = make_buffer(f->host_device, LARGE);
    write_buffer(host, data, LARGE);
    berth_command commands[] = {copy_command(host, 0, a, 0, LARGE), copy_command(a, 0, b, 0, LARGE),
                                fill_command(host, 0, 0, 0, 1),
                                copy_command(b, 1, host, 0, LARGE - 1)};
    commands[2] = fill_command(a, 0, LARGE, 0, 1);
    check_ok(berth_queue_run(f->queues[0], commands, 4));
    read_buffer(host, back, LARGE);
    cr_assert_arr_eq(back, data + 1, LARGE - 1);
    cr_assert_eq(back[LARGE - 1], data[LARGE - 1]);
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host);
    free(data);
    free(back);
}

CONFORMANCE(copy, views) {
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    uint64_t size = 4 * (uint64_t)alignment;
    berth_buffer *root = make_buffer(f->devices[0], size), *left = NULL, *right = NULL;
    check_ok(berth_buffer_view(root, 0, alignment, &left));
    check_ok(berth_buffer_view(root, 2 * (uint64_t)alignment, 2 * (uint64_t)alignment, &right));
    berth_command commands[] = {fill_command(root, 0, size, 0, 1), fill_command(left, 1, 9, 7, 1),
                                copy_command(left, 1, right, 3, 9)};
    check_ok(berth_queue_run(f->queues[0], commands, 3));
    unsigned char expected[4096] = {0}, back[4096];
    cr_assert_leq(size, sizeof(back));
    memset(expected + 1, 7, 9);
    memset(expected + 2 * alignment + 3, 7, 9);
    read_buffer(root, back, size);
    cr_assert_arr_eq(back, expected, size);
    berth_command overlap = copy_command(root, 2 * (uint64_t)alignment + 4, right, 0, 9);
    check_code(berth_queue_run(f->queues[0], &overlap, 1), BERTH_INVALID_ARGUMENT);
    berth_buffer_free(left);
    berth_buffer_free(right);
    berth_buffer_free(root);
}

CONFORMANCE(copy, bad_arguments) {
    berth_queue *queue = f->queues[0];
    berth_buffer *a = make_buffer(f->devices[0], 100), *b = make_buffer(f->devices[0], 50);
    berth_buffer *host_a = make_buffer(f->host_device, 100);
    berth_buffer *host_b = make_buffer(f->host_device, 100);
    const struct {
        berth_command command;
        berth_code code;
    } cases[] = {
        {copy_command(a, 0, b, 0, 51), BERTH_OUT_OF_RANGE},
        {copy_command(b, 0, a, 0, 51), BERTH_OUT_OF_RANGE},
        {copy_command(a, UINT64_MAX, b, 0, 2), BERTH_OUT_OF_RANGE},
        {copy_command(a, 0, b, 1, UINT64_MAX), BERTH_OUT_OF_RANGE},
        {copy_command(a, 0, a, 5, 10), BERTH_INVALID_ARGUMENT},
        {copy_command(a, 9, a, 0, 10), BERTH_INVALID_ARGUMENT},
        {copy_command(NULL, 0, a, 0, 10), BERTH_INVALID_ARGUMENT},
        {copy_command(a, 0, NULL, 0, 10), BERTH_INVALID_ARGUMENT},
        {copy_command(host_a, 0, host_b, 0, 10), BERTH_INCOMPATIBLE},
        {fill_command(a, 0, 101, 0, 1), BERTH_OUT_OF_RANGE},
        {fill_command(a, 96, 8, 0, 4), BERTH_OUT_OF_RANGE},
        {fill_command(a, 0, 6, 0, 4), BERTH_INVALID_ARGUMENT},
        {fill_command(a, 2, 8, 0, 4), BERTH_INVALID_ARGUMENT},
        {fill_command(a, 0, 6, 0, 3), BERTH_INVALID_ARGUMENT},
        {fill_command(a, 0, 6, 0, 0), BERTH_INVALID_ARGUMENT},
        {fill_command(NULL, 0, 6, 0, 1), BERTH_INVALID_ARGUMENT},
        {fill_command(host_a, 0, 4, 0, 1), BERTH_INCOMPATIBLE},
        {{.kind = (berth_command_kind)77}, BERTH_INVALID_ARGUMENT},
        {{.kind = BERTH_COMMAND_HOST_CALL}, BERTH_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_status status = berth_queue_run(queue, &cases[i].command, 1);
        cr_assert_eq(berth_status_code(status), cases[i].code, "case %zu: %s", i,
                     berth_status_message(status));
        berth_status_free(status);
    }
    berth_command empty[] = {copy_command(a, 100, b, 50, 0), fill_command(a, 100, 0, 0, 4)};
    check_ok(berth_queue_run(queue, empty, 2));
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host_a);
    berth_buffer_free(host_b);
}

// Between two devices by way of the host, each hop on a queue of the device it touches.
CONFORMANCE(copy, across_devices) {
    enum { BYTES = 777, ROUNDS = 20 };
    berth_buffer *a = make_buffer(f->devices[0], BYTES), *b = make_buffer(f->devices[1], BYTES);
    berth_buffer *host = make_buffer(f->host_device, BYTES);
    berth_semaphore *order = make_semaphore(f, 0);
    unsigned char data[BYTES], back[BYTES];
    for (int i = 0; i < BYTES; ++i) data[i] = (unsigned char)(i * 3);
    write_buffer(a, data, BYTES);
    berth_command down = copy_command(a, 0, host, 0, BYTES),
                  up = copy_command(host, 0, b, 1, BYTES - 1);
    berth_command down_b = copy_command(b, 1, host, 0, BYTES - 1),
                  up_a = copy_command(host, 0, a, 0, BYTES - 1);
    berth_command clear = fill_command(a, 0, BYTES, 0xff, 1);
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        check_ok(submit(f->queues[0], &down, 1, order, value, order, value + 1));
        check_ok(submit(f->queues[1], &up, 1, order, value + 1, order, value + 2));
        check_ok(submit(f->queues[0], &clear, 1, order, value + 2, order, value + 3));
        check_ok(submit(f->queues[1], &down_b, 1, order, value + 3, order, value + 4));
        check_ok(submit(f->queues[0], &up_a, 1, order, value + 4, order, value + 5));
        value += 5;
    }
    check_ok(berth_semaphore_wait(order, value, -1));
    read_buffer(a, back, BYTES);
    cr_assert_arr_eq(back, data, BYTES - 1);
    cr_assert_eq(back[BYTES - 1], 0xff);
    if (!f->row->synchronous && !f->row->host_memory) {
        berth_command direct = copy_command(a, 0, b, 0, BYTES);
        check_code(berth_queue_run(f->queues[0], &direct, 1), BERTH_INCOMPATIBLE);
    }
    berth_semaphore_release(order);
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host);
}
