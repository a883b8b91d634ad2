// The transport of a board. Four blocks of registers, a page each; offsets and the sequence of a run
// after upstream's design for Zynq boards (apache/tvm-vta, hardware/xilinx; the runtime's
// pynq_driver.cc).
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "drivers/vta/driver/transport.h"

enum { block_bytes = 4096, block_count = 4, spins = 1000 };
enum { fetch, load, compute, store };  // blocks, in the order of their addresses

// Offsets within a block.
enum {
    control = 0x00,
    fetch_count = 0x10,
    fetch_address = 0x18,
    load_inp_base = 0x10,
    load_wgt_base = 0x18,
    compute_done = 0x18,
    compute_uop_base = 0x20,
    compute_acc_base = 0x28,
    store_out_base = 0x10,
};
enum { start = 0x1, auto_restart = 0x81, done_flag = 1 };

typedef struct registers {
    berth_vta_transport base;
    volatile uint32_t *blocks;
    void *mapped_memory;  // its first page holds a pause, an instruction of zeros
    size_t mapped_bytes;
    uint64_t pause_address;
    uint64_t timeout_ns;
    bool lost;  // a run did not end
} registers;

static void write_register(registers *r, int block, int offset, uint32_t value) {
    r->blocks[(block * block_bytes + offset) / 4] = value;
}

static uint32_t read_register(const registers *r, int block, int offset) {
    return r->blocks[(block * block_bytes + offset) / 4];
}

// Until the flag is as wanted; false when time runs out.
static bool wait_for_done(const registers *r, bool wanted) {
    int64_t deadline_ns = berth_clock_ns() + (int64_t)r->timeout_ns;
    const struct timespec pause = {0, 50000};
    for (int i = 0; (read_register(r, compute, compute_done) == done_flag) != wanted; ++i) {
        if (berth_clock_ns() > deadline_ns)
            return (read_register(r, compute, compute_done) == done_flag) == wanted;
        if (i < spins)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
    return true;
}

static void begin(registers *r, uint64_t address, uint32_t count) {
    write_register(r, fetch, fetch_count, count);
    write_register(r, fetch, fetch_address, (uint32_t)address);
    // Addresses in instructions are absolute.
    write_register(r, load, load_inp_base, 0);
    write_register(r, load, load_wgt_base, 0);
    write_register(r, compute, compute_uop_base, 0);
    write_register(r, compute, compute_acc_base, 0);
    write_register(r, store, store_out_base, 0);
    // The stream and its data are written before the run begins.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    write_register(r, fetch, control, start);
    write_register(r, load, control, auto_restart);
    write_register(r, compute, control, auto_restart);
    write_register(r, store, control, auto_restart);
}

// The flag stays set from one run until compute takes the first instruction of the next: a run that
// begins so could be taken for done at once. A pause clears it.
static bool clear_done(registers *r) {
    if (read_register(r, compute, compute_done) != done_flag) return true;
    begin(r, r->pause_address, 1);
    return wait_for_done(r, false);
}

static berth_status run(berth_vta_transport *transport, uint64_t address, uint32_t count) {
    registers *r = (registers *)transport;
    if (r->lost)
        return berth_status_make(BERTH_UNAVAILABLE,
                                 "the VTA did not finish an earlier run: what it still writes is "
                                 "not known; program it anew and open the device again");
    r->lost = !clear_done(r);
    if (!r->lost) {
        begin(r, address, count);
        r->lost = !wait_for_done(r, true);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!r->lost) return BERTH_OK;
    return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                             "the VTA did not finish %u instructions in %llu ms (control registers "
                             "of fetch, load, compute, store: 0x%x, 0x%x, 0x%x, 0x%x)",
                             count, (unsigned long long)(r->timeout_ns / 1000000),
                             read_register(r, fetch, control), read_register(r, load, control),
                             read_register(r, compute, control), read_register(r, store, control));
}

static void close_registers(berth_vta_transport *transport) {
    registers *r = (registers *)transport;
    if (r->blocks) munmap((void *)(uintptr_t)r->blocks, block_count * block_bytes);
    if (r->mapped_memory) munmap(r->mapped_memory, r->mapped_bytes);
    berth_free(transport->allocator, r, sizeof(*r));
}

static const berth_vta_transport_ops ops = {.run = run, .close = close_registers};

// Maps [offset, +size) of a file; NULL with a status. Bytes that the file lacks would end the
// process when touched: ordinary files must be long enough (devices have no length).
static berth_status map(const char *path, uint64_t offset, uint64_t size_bytes, void **out) {
    *out = NULL;
    int fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
    if (fd < 0)
        return berth_status_make(BERTH_UNAVAILABLE, "cannot open \"%s\": %s", path,
                                 strerror(errno));
    off_t end = lseek(fd, 0, SEEK_END);
    void *data = MAP_FAILED;
    if (end > 0 && (uint64_t)end < offset + size_bytes)
        errno = EOVERFLOW;
    else
        data = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    int reason = errno;
    close(fd);
    if (data == MAP_FAILED)
        return berth_status_make(BERTH_UNAVAILABLE, "cannot map %llu bytes at 0x%llx of \"%s\": %s",
                                 (unsigned long long)size_bytes, (unsigned long long)offset, path,
                                 strerror(reason));
    *out = data;
    return BERTH_OK;
}

berth_status berth_vta_registers_open(berth_allocator allocator,
                                      const berth_vta_device_options *options,
                                      berth_vta_transport **out_transport) {
    registers *r = berth_calloc(allocator, 1, sizeof(*r));
    if (!r) return berth_status_oom();
    r->base = (berth_vta_transport){.ops = &ops, .allocator = allocator, .boards = true};
    r->timeout_ns = options->timeout_ms * 1000000;
    void *blocks = NULL;
    berth_status status =
        map(options->registers_file, options->registers_at, block_count * block_bytes, &blocks);
    r->blocks = blocks;
    if (!status)
        status =
            map(options->memory_file, options->memory_at, options->memory_bytes, &r->mapped_memory);
    if (status) {
        close_registers(&r->base);
        return status;
    }
    r->mapped_bytes = options->memory_bytes;
    r->pause_address = options->memory_base;
    memset(r->mapped_memory, 0, block_bytes);
    r->base.memory =
        (berth_vta_dram){(uint8_t *)r->mapped_memory + block_bytes,
                         options->memory_base + block_bytes, options->memory_bytes - block_bytes};
    *out_transport = &r->base;
    return BERTH_OK;
}
