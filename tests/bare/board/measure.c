/* Stands in front of the model's function (the linker's --wrap): runs it twice on painted memory and says on stderr what it
   touched: bytes of stack, the first and last byte of its static memory, instructions (QEMU's -icount shift=0: one is a
   nanosecond; the clock ticks CLOCK_HZ times a second). MODEL_RUN, MODEL_REAL: the function's names. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int MODEL_RUN(const void *inputs, void *outputs);
int MODEL_REAL(const void *inputs, void *outputs);

extern unsigned char guard_low[], model_start[], model_end[], guard_high[];

#ifndef CLOCK_HZ
#define CLOCK_HZ 25000000u
#endif

enum { painted_bytes = 65536 };

static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010;

/* Below the caller's frame; nothing of this function is there yet. */
static unsigned char *stack_here(void) {
    unsigned char *at;
    __asm__ volatile("mov %0, sp" : "=r"(at));
    return at;
}

static uint32_t stack_used(const unsigned char *top, unsigned char paint) {
    const unsigned char *at = top - painted_bytes;
    while (at < top && *at == paint) ++at;
    return (uint32_t)(top - at);
}

static int guards_hold(unsigned char paint) {
    const unsigned char *at;
    for (at = guard_low; at < model_start; ++at)
        if (*at != paint) return 0;
    for (at = model_end; at < guard_high; ++at)
        if (*at != paint) return 0;
    return 1;
}

__attribute__((noinline)) static int run_painted(const void *inputs, void *outputs,
                                                 unsigned char paint, uint32_t *stack,
                                                 uint32_t *ticks) {
    unsigned char *top = stack_here();
    volatile unsigned char *at;
    int result;
    for (at = top - painted_bytes; at < top; ++at) *at = paint;
    for (at = guard_low; at < guard_high; ++at) *at = paint;
    systick[0] = 0;
    systick[1] = 0xffffff;
    systick[2] = 0;
    systick[0] = 5;
    result = MODEL_REAL(inputs, outputs);
    *ticks = 0xffffff - systick[2];
    if (systick[0] >> 16 & 1) *ticks = 0; /* it went round: too long to say */
    *stack = stack_used(top, paint);
    return result;
}

int MODEL_RUN(const void *inputs, void *outputs) {
    static unsigned char touched[1 << 20];
    uint32_t stack[2], ticks[2], size = (uint32_t)(model_end - model_start), first, last = 0, i;
    int pass, hold = 1, result = 0;
    if (size > sizeof(touched)) return 2;
    for (pass = 0; pass < 2 && !result; ++pass) {
        unsigned char paint = pass ? 0xA5 : 0x5A;
        result = run_painted(inputs, outputs, paint, &stack[pass], &ticks[pass]);
        for (i = 0; i < size; ++i) touched[i] |= model_start[i] != paint;
        hold &= guards_hold(paint);
    }
    for (first = 0; first < size && !touched[first]; ++first) {
    }
    for (i = first; i < size; ++i)
        if (touched[i]) last = i + 1;
    fprintf(stderr, "stack %lu static %lu touched %lu %lu guards %d instructions %lu\n",
            (unsigned long)(stack[0] > stack[1] ? stack[0] : stack[1]), (unsigned long)size,
            (unsigned long)first, (unsigned long)last, hold,
            (unsigned long)((uint64_t)ticks[1] * 1000000000u / CLOCK_HZ));
    return result;
}
