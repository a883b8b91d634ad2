// Criterion starts a process for every test; the process that starts them sometimes loses a small
// record of Criterion's own at exit. It runs no test, so leaks are looked for in the others only.
// Part of test programs built with AddressSanitizer. What tells them apart is an environment variable of
// Criterion's runner (BoxFort): tests/leaks/ fails if that ever changes.
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>

#include "tests/leaks.h"

// A process that finds a leak aborts: Criterion reports a crash, but nothing for an exit status.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1:detect_leaks=1";
}

static int left;

__attribute__((constructor)) static void ignore_the_starter(void) {
    if (!getenv("BXFI_MAP")) __lsan_disable();  // set in the processes that run tests
}

void leave_leaks(void) {
    left = 1;
}

int __lsan_is_turned_off(void) {
    return left;
}
