// berth build with the executor aot: a folder of C sources.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "build examples/digits/digits.onnx --target 'cpu -arch=cortex-m4' "

static void in_folder(void (*body)(const char *folder)) {
    char folder[] = "/tmp/berth-build-XXXXXX", command[64];
    cr_assert(mkdtemp(folder));
    body(folder);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

static bool is_there(const char *folder, const char *name) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void builds(const char *folder) {
    char arguments[256];
    snprintf(arguments, sizeof(arguments), DIGITS "--runtime bare -o %s/a", folder);
    cr_expect_eq(berth_run(arguments)->exit_status, 0);
    cr_expect(is_there(folder, "a/digits.h") && is_there(folder, "a/digits_weights.c"));
    cr_expect(!is_there(folder, "a/libdigits.so"));
    snprintf(arguments, sizeof(arguments),
             DIGITS "--executor aot --runtime bare --name net --optimise size -o %s/b", folder);
    cr_expect_eq(berth_run(arguments)->exit_status, 0);
    cr_expect(is_there(folder, "b/net.h"));
    // With an operating system a library, too.
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx --target cpu --executor aot -o %s/c", folder);
    cr_expect_eq(berth_run(arguments)->exit_status, 0);
    cr_expect(is_there(folder, "c/libdigits.so"));
}

Test(bare_command, build_writes_sources) {
    in_folder(builds);
}

static void refuses(const char *folder) {
    char arguments[256];
    snprintf(arguments, sizeof(arguments), DIGITS "--runtime bare --optimise fun -o %s/a", folder);
    berth_run_fails(arguments, 2, "size or speed");
    snprintf(arguments, sizeof(arguments), DIGITS "--runtime bare --keep-source -o %s/a", folder);
    berth_run_fails(arguments, 1, "--keep-source");
    snprintf(arguments, sizeof(arguments), DIGITS "--executor graph --runtime bare -o %s/a",
             folder);
    berth_run_fails(arguments, 1, "bare");
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx --target cpu,opencl --executor aot -o %s/a",
             folder);
    berth_run_fails(arguments, 1, "single processor");
    cr_expect(!is_there(folder, "a"));
    berth_run_fails("run examples/digits/digits.onnx --target cpu --executor aot", 1,
                    "executor \"aot\"");
}

Test(bare_command, what_does_not_fit_is_refused_and_nothing_is_written) {
    in_folder(refuses);
}
