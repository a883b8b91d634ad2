// Drivers from shared libraries: what is loaded, and what is refused. The rows library_* run the
// whole suite on two of them.
#include "devices/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/conformance/conformance.h"
#include "tests/leaks.h"

static void refuse(const char *path, berth_code code, const char *part) {
    const char *kind = NULL;
    berth_status status = berth_driver_load(path, &kind);
    cr_assert_eq(berth_status_code(status), code, "%s: %s", path, berth_status_message(status));
    cr_assert_not_null(strstr(berth_status_message(status), part), "%s: %s", path,
                       berth_status_message(status));
    cr_assert_null(kind);
    berth_status_free(status);
}

Test(library, refusals) {
    const char *kind = NULL;
    refuse("/no/such/driver.so", BERTH_NOT_FOUND, "/no/such/driver.so");
    refuse("CMakeLists.txt", BERTH_UNAVAILABLE, "CMakeLists.txt");
    char here[64];
    snprintf(here, sizeof(here), "this is version %d", BERTH_DRIVER_INTERFACE);
    refuse(BERTH_LIBRARY_OLD, BERTH_INCOMPATIBLE, here);
    check_ok(berth_driver_load(BERTH_LIBRARY_NULL, &kind));
    cr_assert_str_eq(kind, "example");
    check_ok(berth_driver_load(BERTH_LIBRARY_NULL, &kind));  // again: nothing changes
    cr_assert_str_eq(kind, "example");
}

// A copy of a library is another file for the same kind of device.
Test(library, one_driver_per_kind) {
    const char *kind = NULL;
    char copy[] = "/tmp/berth-driver-XXXXXX", command[600];
    int fd = mkstemp(copy);
    cr_assert_geq(fd, 0);
    snprintf(command, sizeof(command), "cp '%s' %s", BERTH_LIBRARY_NULL, copy);
    cr_assert_eq(system(command), 0);
    check_ok(berth_driver_load(BERTH_LIBRARY_NULL, &kind));
    refuse(copy, BERTH_ALREADY_EXISTS, "example devices");
    close(fd);
    unlink(copy);
}

// Built-in rows keep their places; other kinds come after them. Each library brings thread-local
// variables, whose table GCC 12's LeakSanitizer misreads when all drivers are open in one process: it
// ends with a fault of its own. The rows library_* look for leaks of loaded drivers.
Test(library, registry) {
    leave_leaks();
    const char *kind = NULL;
    uint32_t before = 0, after = 0;
    while (berth_driver_kind_at(before)) ++before;
    const berth_driver_ops *built_in = berth_driver_kind_at(0);
    check_ok(berth_driver_load(BERTH_LIBRARY_NULL, &kind));
    check_ok(berth_driver_load(BERTH_LIBRARY_CPU, &kind));
    while (berth_driver_kind_at(after)) ++after;
    cr_assert_eq(after, before + 1);
    cr_assert_str_eq(berth_driver_kind_at(before)->kind, "example");
    cr_assert_str_eq(berth_driver_kind_at(0)->kind, "cpu");
    cr_assert_neq(berth_driver_kind_at(0), built_in, "the loaded driver takes its place");
    berth_arena *arena = NULL;
    berth_driver_report *reports = NULL;
    uint32_t count = 0;
    check_ok(berth_arena_create(berth_allocator_system(), &arena));
    check_ok(berth_driver_report_all(arena, berth_allocator_system(), &reports, &count));
    cr_assert_eq(count, after);
    cr_assert_not_null(strstr(reports[0].library, "driver_cpu"));
    cr_assert(reports[0].available);
    cr_assert_not_null(strstr(reports[before].library, "driver_null"));
    cr_assert_str_eq(reports[before].devices[0].name, "null");
    berth_arena_destroy(arena);
}
