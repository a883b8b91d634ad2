/* Stands in front of the model's function (the linker's --wrap): runs it twice on painted memory and says on stderr what it
   touched: bytes of stack, the first and last byte of its static memory, instructions (QEMU's -icount shift=0: one is a
   nanosecond; the clock ticks CLOCK_HZ times a second). MODEL_RUN, MODEL_REAL: the function's names. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int MODEL_RUN(const void *inputs, void *outputs);
int MODEL_REAL(const void *inputs, void *outputs);

extern unsigned char guard_low[], model_start[], model_end[], guard_high[];
extern unsigned char fast_guard_low[], fast_start[], fast_end[], fast_guard_high[];

/* A section between its guards. */
typedef struct {
    unsigned char *guard_low, *start, *end, *guard_high;
} region;

static const region regions[] = {{guard_low, model_start, model_end, guard_high},
                                 {fast_guard_low, fast_start, fast_end, fast_guard_high}};

enum { region_count = sizeof(regions) / sizeof(regions[0]) };

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

static int guards_hold(const region *r, unsigned char paint) {
    const unsigned char *at;
    for (at = r->guard_low; at < r->start; ++at)
        if (*at != paint) return 0;
    for (at = r->end; at < r->guard_high; ++at)
        if (*at != paint) return 0;
    return 1;
}

__attribute__((noinline)) static int run_painted(const void *inputs, void *outputs,
                                                 unsigned char paint, uint32_t *stack,
                                                 uint32_t *ticks) {
    unsigned char *top = stack_here();
    volatile unsigned char *at;
    int result, r;
    for (at = top - painted_bytes; at < top; ++at) *at = paint;
    for (r = 0; r < region_count; ++r)
        for (at = regions[r].guard_low; at < regions[r].guard_high; ++at) *at = paint;
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

/* The first byte of a section that was written, and the one after the last. */
static void find_touched(const unsigned char *touched, uint32_t size, uint32_t *first,
                         uint32_t *last) {
    uint32_t i;
    *last = 0;
    for (*first = 0; *first < size && !touched[*first]; ++*first) {
    }
    for (i = *first; i < size; ++i)
        if (touched[i]) *last = i + 1;
}

int MODEL_RUN(const void *inputs, void *outputs) {
    static unsigned char touched_model[1 << 20], touched_fast[1 << 16];
    static unsigned char *const touched[] = {touched_model, touched_fast};
    static const uint32_t most[] = {sizeof(touched_model), sizeof(touched_fast)};
    uint32_t stack[2], ticks[2], size[region_count], first, last, i;
    int pass, r, hold[region_count], result = 0;
    for (r = 0; r < region_count; ++r) {
        size[r] = (uint32_t)(regions[r].end - regions[r].start);
        hold[r] = 1;
        if (size[r] > most[r]) return 2;
    }
    for (pass = 0; pass < 2 && !result; ++pass) {
        unsigned char paint = pass ? 0xA5 : 0x5A;
        result = run_painted(inputs, outputs, paint, &stack[pass], &ticks[pass]);
        for (r = 0; r < region_count; ++r) {
            for (i = 0; i < size[r]; ++i) touched[r][i] |= regions[r].start[i] != paint;
            hold[r] &= guards_hold(&regions[r], paint);
        }
    }
    find_touched(touched[0], size[0], &first, &last);
    fprintf(stderr, "stack %lu static %lu touched %lu %lu guards %d instructions %lu\n",
            (unsigned long)(stack[0] > stack[1] ? stack[0] : stack[1]), (unsigned long)size[0],
            (unsigned long)first, (unsigned long)last, hold[0],
            (unsigned long)((uint64_t)ticks[1] * 1000000000u / CLOCK_HZ));
    find_touched(touched[1], size[1], &first, &last);
    if (size[1])
        fprintf(stderr, "fast %lu touched %lu %lu guards %d\n", (unsigned long)size[1],
                (unsigned long)first, (unsigned long)last, hold[1]);
    return result;
}
