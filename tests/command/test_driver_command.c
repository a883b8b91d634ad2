// --driver: drivers from shared libraries, as a user loads them.
#include <stdio.h>
#include <string.h>

#include "tests/command/support.h"

static const char *command_line(const char *before, const char *path, const char *after) {
    static char text[4096];
    snprintf(text, sizeof(text), "%s --driver '%s' %s", before, path, after);
    return text;
}

Test(driver_command, devices_lists_the_library) {
    json_t *report = berth_run_json(command_line("devices", BERTH_LIBRARY_NULL, "--format=json"));
    json_t *driver = NULL;
    size_t index = 0, found = 0;
    json_array_foreach(json_object_get(report, "drivers"), index, driver) {
        bool outside = strcmp(json_string_value(json_object_get(driver, "kind")), "example") == 0;
        const char *library = json_string_value(json_object_get(driver, "library"));
        cr_assert_eq(outside, strstr(library, "driver_null") != NULL);
        cr_assert(outside || *library == '\0');
        found += outside;
    }
    cr_assert_eq(found, 1);
    json_decref(report);
    berth_run_fails(command_line("devices", "no/such.so", ""), 1, "no/such.so");
    berth_run_fails(command_line("devices", "CMakeLists.txt", ""), 1, "cannot load the library");
}

#define RUN "run examples/digits/digits.onnx --dim batch=4 --target cpu --format=json"

static json_t *outputs_of(const result *r) {
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_t *all = json_loads(r->out, 0, NULL);
    json_t *outputs = json_incref(json_object_get(all, "outputs"));
    cr_assert_not_null(outputs);
    json_decref(all);
    return outputs;
}

// The same answer through a driver from a library, and the run says whose driver it was.
Test(driver_command, run_uses_the_library) {
    json_t *expected = outputs_of(berth_run(RUN));
    const result *r = berth_run(command_line(RUN, BERTH_LIBRARY_CPU, ""));
    cr_assert(strstr(r->err, "note: cpu devices: the driver of "), "%s", r->err);
    json_t *outputs = outputs_of(r);
    cr_assert(json_equal(outputs, expected));
    json_decref(outputs);
    json_decref(expected);
    r = berth_run(command_line(RUN " --quiet", BERTH_LIBRARY_CPU, ""));
    cr_assert(strstr(r->err, "the driver of") == NULL, "%s", r->err);
}
