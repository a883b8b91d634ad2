// Waiting without a lock: futex and a spin hint. Linux.
#ifndef BERTH_DEVICES_SYNC_H_
#define BERTH_DEVICES_SYNC_H_

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Sleeps while *word == expected, at most timeout_ns (< 0 = no limit). May wake for no reason.
static inline void berth_devices__futex_wait(atomic_uint *word, unsigned expected,
                                             int64_t timeout_ns) {
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                               .tv_nsec = (long)(timeout_ns % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &timeout, NULL,
            0);
}

static inline void berth_devices__futex_wake(atomic_uint *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

enum { SPINS_PER_CLOCK = 32 };  // of a thread that looks for a while

static inline void berth_devices__spin_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#endif  // BERTH_DEVICES_SYNC_H_
