/* From reset to main on a Cortex-M: the FPU on, data in its place, newlib's semihosting for stdio. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern char data_start[], data_end[], data_image[], bss_start[], bss_end[], stack_top[];
void initialise_monitor_handles(void);
int main(void);
void reset(void);

static void fault(void) {
    register uintptr_t operation __asm__("r0") = 0x18; /* SYS_EXIT */
    register uintptr_t reason __asm__("r1") = 0x20023; /* a run-time error */
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(reason) : "memory");
    for (;;) {
    }
}

void _init(void) {
}
void _fini(void) {
}

void reset(void) {
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: access to the FPU */
    __asm__ volatile("dsb\n isb");
    memcpy(data_start, data_image, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    initialise_monitor_handles();
    exit(main());
}

typedef union vector {
    void (*handler)(void);
    void *stack;
} vector;

extern const vector vectors[16];
const vector vectors[16] __attribute__((section(".vectors"), used)) = {
    {.stack = stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault}};
