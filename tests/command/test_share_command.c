// Several models as program files, run with one workspace.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/command/support.h"

static char folder[] = "/tmp/berth-share-XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[64];
    snprintf(command, sizeof(command), "rm -rf -- %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(share_command, .init = make_folder, .fini = remove_folder);

// Bytes of workspace of a program file.
static json_int_t workspace_of(const char *name) {
    char arguments[128];
    snprintf(arguments, sizeof(arguments), "inspect %s/all/%s.berth --format=json", folder, name);
    json_t *json = berth_run_json(arguments), *pool = NULL;
    json_int_t bytes = 0;
    size_t i = 0;
    json_array_foreach(
        json_object_get(json, "memory"), i,
        pool) if (strcmp(json_string_value(json_object_get(pool, "usage")), "workspace") == 0)
        bytes += json_integer_value(json_object_get(pool, "size_bytes"));
    json_decref(json);
    return bytes;
}

// What the model gives together with others is what it gives alone.
static void check_outputs(const json_t *model, const char *name) {
    char arguments[128];
    snprintf(arguments, sizeof(arguments), "run %s/all/%s.berth --format=json", folder, name);
    json_t *alone = berth_run_json(arguments);
    cr_expect(json_equal(json_object_get(alone, "outputs"), json_object_get(model, "outputs")));
    json_decref(alone);
}

Test(share_command, program_files_run_with_one_workspace) {
    char arguments[256];
    // Digits in sevens: another shape, hence other sizes.
    snprintf(arguments, sizeof(arguments),
             "%s opt examples/digits/digits.onnx --dim batch=7 --quiet >%s/seven.txt",
             BERTH_COMMAND, folder);
    cr_assert_eq(system(arguments), 0);
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx %s/seven.txt --target cpu --share-workspace -o "
             "%s/all",
             folder, folder);
    cr_assert_eq(berth_run(arguments)->exit_status, 0);
    json_int_t small = workspace_of("digits"), large = workspace_of("seven");
    cr_assert_gt(small, 0);
    cr_assert_gt(large, small);
    snprintf(arguments, sizeof(arguments),
             "run %s/all/digits.berth %s/all/seven.berth --share-workspace -n 3 --format=json",
             folder, folder);
    json_t *json = berth_run_json(arguments), *models = json_object_get(json, "models");
    cr_expect_eq(json_integer_value(json_object_get(json, "workspace_bytes")), large);
    cr_assert_eq(json_array_size(models), 2);
    check_outputs(json_array_get(models, 0), "digits");
    check_outputs(json_array_get(models, 1), "seven");
    json_decref(json);
}

Test(share_command, what_is_of_one_model_is_refused) {
    berth_run_fails("run a.berth b.berth", 2, "--share-workspace");
    berth_run_fails("run a.berth b.berth --share-workspace --input x=x.npy", 2, "--input");
    berth_run_fails("run a.berth b.berth --share-workspace --trace t", 2, "--trace");
    berth_run_fails("run a.berth b.berth --share-workspace", 1, "a.berth");
    char arguments[256];
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx examples/digits/digits.onnx -o %s/no", folder);
    berth_run_fails(arguments, 2, "--share-workspace");
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx --dim batch=1..4 --share-workspace -o %s/no",
             folder);
    berth_run_fails(arguments, 1, "fixed shapes");
}
