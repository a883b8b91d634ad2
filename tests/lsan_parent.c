// Criterion starts a process for every test; the process that starts them sometimes loses a small
// record of Criterion's own at exit. It runs no test, so leaks are looked for in the others only.
// Part of test programs built with AddressSanitizer. What tells them apart is an environment variable of
// Criterion's runner (BoxFort): tests/leaks/ fails if that ever changes.
//
// LeakSanitizer's search (GCC 12) may fault where libraries that a driver loaded have thread-local memory: it then reads
// from addresses near 0. A leak aborts the process; a search that faults does not: the process says that it could not look,
// and ends as it would have.
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/leaks.h"

// A process that finds a leak aborts: Criterion reports a crash, but nothing for an exit status.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1:detect_leaks=1";
}

static int left, looking, exit_status;

static void end_without_search(void) {
    static const char text[] = "lsan_parent: leaks could not be looked for in this process\n";
    if (!looking) return;
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)written;
    _exit(exit_status);
}

static void look_for_leaks(int status, void *unused) {
    (void)unused;
    if (left) return;
    exit_status = status;
    looking = 1;
    int found = __lsan_do_recoverable_leak_check();
    looking = 0;
    left = 1;  // not once more
    if (found) abort();
}

__attribute__((constructor)) static void begin(void) {
    if (!getenv("BXFI_MAP")) {  // set in the processes that run tests
        __lsan_disable();
        return;
    }
    __sanitizer_set_death_callback(end_without_search);
    on_exit(look_for_leaks, NULL);
}

void leave_leaks(void) {
    left = 1;
}

int __lsan_is_turned_off(void) {
    return left;
}
