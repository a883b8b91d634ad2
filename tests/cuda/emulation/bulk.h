// Bulk copies to shared memory (cp.async.bulk) and the mbarriers that they complete at, emulated. Written from the PTX ISA
// ("mbarrier": Phase of the mbarrier object, Tracking asynchronous operations by the mbarrier object; "cp.async.bulk"), apart
// from what the compiler knows of them. Part of emulated.h.
#ifndef BERTH_TESTS_CUDA_BULK_H_
#define BERTH_TESTS_CUDA_BULK_H_

// The object is opaque to programs: 8 bytes. A phase is complete when no arrival is pending and the bytes that were
// announced (tx-count, which may be negative on the way) have come; the next one begins with all arrivals pending.
struct berth_emulated_mbarrier {
    int32_t bytes;
    uint8_t arrivals, pending;
    uint8_t phase;  // its parity
    uint8_t is_valid;
};
static_assert(sizeof(berth_emulated_mbarrier) == sizeof(uint64_t), "an mbarrier has 8 bytes");
enum { berth_emulated_valid_mbarrier = 0x5a };

static inline berth_emulated_mbarrier *berth_emulated_mbarrier_at(uint64_t *at) {
    berth_emulated_mbarrier *m = (berth_emulated_mbarrier *)at;
    if ((uintptr_t)at % 8 || m->is_valid != berth_emulated_valid_mbarrier) __builtin_trap();
    return m;
}
static inline void berth_emulated_phase(berth_emulated_mbarrier *m) {
    if (m->pending || m->bytes) return;
    m->phase ^= 1;
    m->pending = m->arrivals;
}

static inline void berth_mbarrier_init(uint64_t *at, int arrivals) {
    *(berth_emulated_mbarrier *)at = {0, (uint8_t)arrivals, (uint8_t)arrivals, 0,
                                      berth_emulated_valid_mbarrier};
}
static inline void berth_mbarrier_see() {
}
static inline void berth_mbarrier_expect(uint64_t *at, int bytes) {
    berth_emulated_mbarrier *m = berth_emulated_mbarrier_at(at);
    m->bytes += bytes;
    if (m->bytes >= 1 << 20) __builtin_trap();  // more than a tx-count holds
}
static inline void berth_mbarrier_arrive(uint64_t *at) {
    berth_emulated_mbarrier *m = berth_emulated_mbarrier_at(at);
    if (!m->pending) __builtin_trap();  // more arrivals than the phase has
    m->pending--;
    berth_emulated_phase(m);
}

// Copies arrive as late as they may: when somebody waits for the phase that they belong to.
struct berth_emulated_bulk {
    void *to;
    const void *from;
    int bytes;
    uint64_t *at;
};
enum { berth_emulated_most_bulks = 256 };
static thread_local berth_emulated_bulk berth_bulks[berth_emulated_most_bulks];
static thread_local int berth_bulk_count;

static inline void berth_bulk_begin(void *to, const void *from, int bytes, uint64_t *at) {
    (void)berth_emulated_mbarrier_at(at);
    if (berth_bulk_count == berth_emulated_most_bulks || (uintptr_t)to % 16 ||
        (uintptr_t)from % 16 || bytes % 16)
        __builtin_trap();
    BERTH_COUNT(copied_bytes, bytes);
    BERTH_COUNT(bulk_bytes, bytes);
    berth_bulks[berth_bulk_count++] = {to, from, bytes, at};
}
static inline void berth_mbarrier_wait(uint64_t *at, int parity) {
    berth_emulated_mbarrier *m = berth_emulated_mbarrier_at(at);
    int kept = 0;
    if (m->phase != parity) return;
    for (int i = 0; i < berth_bulk_count; ++i) {
        const berth_emulated_bulk bulk = berth_bulks[i];
        if (bulk.at != at) {
            berth_bulks[kept++] = bulk;
            continue;
        }
        memcpy(bulk.to, bulk.from, (size_t)bulk.bytes);
        m->bytes -= bulk.bytes;
    }
    berth_bulk_count = kept;
    berth_emulated_phase(m);
    if (m->phase == parity)
        __builtin_trap();  // nobody else comes to complete it: the first thread runs first
}

#endif  // BERTH_TESTS_CUDA_BULK_H_
