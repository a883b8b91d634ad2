// What a program tells a library that makes temporary files: a signal that is to end the program
// (Ctrl-C) waits until they are gone. The library calls `defer` with true before it makes the first
// one and with false when the last is removed, and asks `pending` now and then in between. A zero
// one does nothing: signals do what they always do.
#ifndef BERTH_BASE_INTERRUPT_H_
#define BERTH_BASE_INTERRUPT_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct berth_interrupt {
    void (*defer)(void *state, bool on);  // off: a signal that came in between takes its effect
    bool (*pending)(void *state);         // whether one came: stop soon
    void *state;
} berth_interrupt;

static inline void berth_interrupt_defer(berth_interrupt interrupt, bool on) {
    if (interrupt.defer) interrupt.defer(interrupt.state, on);
}

static inline bool berth_interrupt_pending(berth_interrupt interrupt) {
    return interrupt.pending && interrupt.pending(interrupt.state);
}

#endif  // BERTH_BASE_INTERRUPT_H_
