// The C compiler as a back end: what it is called with, what it may not be, how it ends.
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dynlib.h"
#include "tests/schedule/toolchain_case.h"

// Several sources make one image, with the functions of all of them.
Test(toolchain, one_image_of_all_units) {
    toolchain_case c = toolchain_case_open();
    berth_toolchain_unit units[3];
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(&c, 3, units, &image);
    cr_assert(!status, "%s", berth_status_message(status));
    berth_dynlib *library = NULL;
    status = berth_dynlib_open_memory(image.data, image.size_bytes, "test", &library);
    cr_assert(!status, "%s", berth_status_message(status));
    for (int i = 0; i < 3; ++i) {
        int (*function)(void) = NULL;
        char name[8];
        snprintf(name, sizeof(name), "f%d", i);
        void *symbol = berth_dynlib_symbol(library, name);
        cr_assert(symbol);
        memcpy(&function, &symbol, sizeof(symbol));
        cr_expect_eq(function(), 42 + i);
    }
    berth_dynlib_close(library);
    toolchain_case_close(&c);
}

Test(toolchain, errors_say_what_is_wrong) {
    toolchain_case c = toolchain_case_open();
    berth_toolchain_unit unit = {.label = "broken", .source = "int f(void) { return nonsense; }\n"};
    berth_toolchain_image image;
    berth_status status = berth_toolchain_compile(&c.options, c.arena, &unit, 1, &image);
    cr_expect_eq(berth_status_code(status), BERTH_INTERNAL);
    cr_expect(strstr(berth_status_message(status), "nonsense") &&
              strstr(berth_status_message(status), "broken"));
    berth_status_free(status);
    c.options.c_compiler = "no-such-compiler";
    status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    berth_status_free(status);
    c.options.c_compiler = NULL;
    c.options.search_path = "/nonexistent";
    status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(berth_status_message(status), "install"));
    berth_status_free(status);
    toolchain_case_close(&c);
}

// ---- which compiler -----------------------------------------------------------------------------

// A name made from the target's architecture would find this program, in the current folder and on
// the search path.
Test(toolchain, a_target_does_not_choose_a_program) {
    toolchain_case c = toolchain_case_open();
    char *folder = toolchain_case_path(&c, "bin", true);
    char *witness = toolchain_case_path(&c, "witness", false);
    toolchain_case_script(&c, toolchain_case_path(&c, "bin/evil-linux-gnu-gcc", false),
                          berth_arena_printf(c.arena, "#!/bin/sh\ntouch %s\n", witness));
    cr_assert_eq(chdir(folder), 0);
    c.options.target = support_target(c.arena, "cpu -arch=evil");
    c.options.search_path = berth_arena_printf(c.arena, "%s:/usr/bin", folder);
    berth_toolchain_unit unit;
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(berth_status_message(status), "\"evil\"") &&
                  strstr(berth_status_message(status), "arch"),
              "%s", berth_status_message(status));
    berth_status_free(status);
    cr_expect(access(witness, F_OK) != 0, "the program ran");
    toolchain_case_close(&c);
}

// Only absolute folders of the search path are searched.
Test(toolchain, no_compiler_from_where_one_stands) {
    toolchain_case c = toolchain_case_open();
    char *folder = toolchain_case_path(&c, "bin", true);
    char *witness = toolchain_case_path(&c, "witness", false);
    toolchain_case_script(&c, toolchain_case_path(&c, "bin/cc", false),
                          berth_arena_printf(c.arena, "#!/bin/sh\ntouch %s\n", witness));
    cr_assert_eq(chdir(folder), 0);
    static const char *const paths[] = {".", "", ":", "./:../bin", ".:/usr/bin"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
        c.options.search_path = paths[i];
        berth_toolchain_unit unit;
        berth_toolchain_image image;
        berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
        cr_expect_eq(berth_status_code(status),
                     strstr(paths[i], "/usr/bin") ? BERTH_CODE_OK : BERTH_UNAVAILABLE, "%s: %s",
                     paths[i], berth_status_message(status));
        berth_status_free(status);
        cr_expect(access(witness, F_OK) != 0, "the program ran");
    }
    toolchain_case_close(&c);
}

// ---- temporary folder ---------------------------------------------------------------------------

Test(toolchain, temporary_folders_of_any_name) {
    toolchain_case c = toolchain_case_open();
    cr_assert_eq(chdir(c.folder), 0);
    static const char *const names[] = {"-o",       "--version", "a b",   "a\nb", "a\"b'c",
                                        "$(false)", "*",         "@file", "a;b",  "\xff\xfe"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        char *absolute = toolchain_case_path(&c, names[i], true);
        const char *spellings[] = {names[i], absolute};
        for (int s = 0; s < 2; ++s) {
            c.options.temporary_folder = spellings[s];
            berth_toolchain_unit units[2];
            berth_toolchain_image image;
            berth_status status = toolchain_case_compile(&c, 2, units, &image);
            cr_expect(!status, "%s: %s", spellings[s], berth_status_message(status));
            berth_status_free(status);
        }
        cr_expect_eq(rmdir(absolute), 0, "%s: something was left in it", names[i]);
    }
    c.options.temporary_folder = toolchain_case_path(&c, "missing", false);
    berth_toolchain_unit unit;
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_IO);
    cr_expect(strstr(berth_status_message(status), c.options.temporary_folder));
    berth_status_free(status);
    toolchain_case_close(&c);
}

// ---- time ---------------------------------------------------------------------------------------

static pid_t pid_in(const char *path) {
    FILE *file = fopen(path, "r");
    int pid = 0;
    cr_assert(file && fscanf(file, "%d", &pid) == 1);
    fclose(file);
    return pid;
}

// Whether the process is gone soon (a zombie that init has not collected yet counts as gone).
static bool is_gone(pid_t pid) {
    for (int i = 0; i < 200; ++i) {
        char path[64], state = 0;
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        FILE *file = fopen(path, "r");
        if (!file) return true;
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
        fclose(file);
        if (state == 'Z') return true;
        usleep(10000);
    }
    return false;
}

// A compiler that hangs, and does not listen when it is asked to end, is killed with its child;
// also when it already hangs at the question for its version.
Test(toolchain, a_compiler_that_hangs_is_killed) {
    static const char *const when[] = {"*--version*) echo 'cc 1'; exit;; *)", "*)"};
    for (int i = 0; i < 2; ++i) {
        toolchain_case c = toolchain_case_open();
        char *pid = toolchain_case_path(&c, "pid", false);
        char *script = toolchain_case_path(&c, "cc", false);
        toolchain_case_script(&c, script,
                              berth_arena_printf(c.arena,
                                                 "#!/bin/sh\ncase \"$*\" in %s\n"
                                                 "trap '' TERM; sleep 1000 & echo $! > %s\n"
                                                 "while :; do sleep 1000; done;; esac\n",
                                                 when[i], pid));
        c.options.c_compiler = script;
        c.options.time_limit_ns = 300000000;
        const int64_t start_ns = berth_clock_ns();
        berth_toolchain_unit unit;
        berth_toolchain_image image;
        berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
        cr_expect_eq(berth_status_code(status), BERTH_DEADLINE_EXCEEDED, "%s",
                     berth_status_message(status));
        cr_expect(strstr(berth_status_message(status), "0.3 s"), "%s",
                  berth_status_message(status));
        berth_status_free(status);
        cr_expect_lt(berth_clock_ns() - start_ns, INT64_C(20000000000));
        cr_expect(is_gone(pid_in(pid)), "its child still runs");
        toolchain_case_close(&c);
    }
}

Test(toolchain, what_says_no_version_is_no_compiler) {
    toolchain_case c = toolchain_case_open();
    c.options.c_compiler = "/bin/false";
    berth_toolchain_unit unit;
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    berth_status_free(status);
    toolchain_case_close(&c);
}
