// --plugin: what a shared library adds to the compiler, as a user loads it (examples/vendor).
#include <stdio.h>
#include <string.h>

#include "tests/command/support.h"

#define MODEL "examples/vendor/model.txt"

static const char *command_line(const char *before, const char *path, const char *after) {
    static char text[4096];
    snprintf(text, sizeof(text), "%s --plugin '%s' %s", before, path, after);
    return text;
}

Test(plugin_command, operation_pass_and_schedule) {
    berth_run_fails("opt " MODEL, 1, "model.txt:10:8: expected an operation");
    const result *r = berth_run(command_line("opt " MODEL, BERTH_PLUGIN_VENDOR,
                                             "--passes fold-constants,find-scaled-tanh"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->err, "note: plug-in example 0.1 of "), "%s", r->err);
    cr_assert(strstr(r->out, "%y = example.scaled_tanh(%x)"), "%s", r->out);
    cr_assert(strstr(r->out, "tanh(%scaled)") == NULL, "%s", r->out);
    r = berth_run(command_line("opt " MODEL, BERTH_PLUGIN_VENDOR, "--passes all"));
    cr_assert(strstr(r->out, "simd %"), "%s", r->out);
    r = berth_run(command_line("opt", BERTH_PLUGIN_VENDOR, "--help"));
    cr_assert(strstr(r->out, "find-scaled-tanh"), "the pass is not in the help:\n%s", r->out);
}

Test(plugin_command, runs) {
    const result *r =
        berth_run(command_line("run " MODEL " --target cpu", BERTH_PLUGIN_VENDOR, "--quiet"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->err, "plug-in") == NULL, "%s", r->err);
    cr_assert(strstr(r->out, "output z f32[64,100] range -1."), "%s", r->out);
}

Test(plugin_command, what_is_no_plugin) {
    berth_run_fails(command_line("opt " MODEL, "no/such.so", "--passes nothing"), 1, "no/such.so");
    berth_run_fails(command_line("opt " MODEL, "CMakeLists.txt", ""), 1, "cannot load the library");
    berth_run_fails(command_line("opt " MODEL, BERTH_LIBRARY_NULL, ""), 1, "is no plug-in");
}
