// berth build with the executor aot: a folder of C sources.
#include <dlfcn.h>
#include <math.h>
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

// 23.8 KiB of constants, which sources have in flash, and a board with 20 KiB of RAM, which says nothing of its flash.
Test(bare_command, every_strategy_plans_for_a_board_without_flash) {
    static const char *const strategies[] = {"default", "auto", "dp", "heft"};
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); ++i) {
        char arguments[256];
        snprintf(arguments, sizeof(arguments),
                 "plan examples/digits/digits.onnx --target st/bluepill-f103c8 --strategy %s",
                 strategies[i]);
        const result *r = berth_run(arguments);
        cr_expect_eq(r->exit_status, 0, "%s: %s", strategies[i], r->err);
        cr_expect(strstr(r->out, "predicted"), "%s", r->out);
    }
}

// A model that calls <math.h>: the library of it does so, too.
static void computes_waves(const char *folder) {
    char arguments[256], path[128];
    snprintf(path, sizeof(path), "%s/waves.txt", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs("module \"waves\"\n\ngraph @main(%x: f32[4]) {\n  %y = cos(%x)\n  %z = exp(%y)\n"
          "  return %z\n}\n",
          file);
    fclose(file);
    snprintf(arguments, sizeof(arguments), "build %s --target cpu --executor aot -o %s/waves", path,
             folder);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(path, sizeof(path), "%s/waves/libwaves.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    int (*run)(const float *const *, float *const *) = NULL;
    *(void **)&run = dlsym(library, "waves_run");
    cr_assert(run);
    const float x[4] = {0, 1, -2, 3};
    float z[4] = {0};
    const float *inputs[] = {x};
    float *outputs[] = {z};
    cr_expect_eq(run(inputs, outputs), 0);
    for (int i = 0; i < 4; ++i)
        cr_expect_float_eq(z[i], expf(cosf(x[i])), 1e-5, "%d: %g", i, (double)z[i]);
    dlclose(library);
}

Test(bare_command, a_library_calls_functions_of_math) {
    in_folder(computes_waves);
}

// The number of bytes in the refusal of a budget.
static long least_of(const char *budget) {
    char arguments[256];
    snprintf(arguments, sizeof(arguments), DIGITS "--runtime bare --memory %s -o /nowhere", budget);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 1, "%s", budget);
    const char *needs = strstr(r->err, " needs "), *bytes = needs ? strchr(needs, '(') : NULL;
    cr_assert(bytes && strstr(r->err, "he largest"), "%s", r->err);
    return strtol(bytes + 1, NULL, 10);
}

// The least that a refusal names is one for which there is code; a byte less is refused.
static void keeps_to_budget(const char *folder, const char *name, const char *beside,
                            const char *refusal) {
    char budget[64], arguments[256];
    snprintf(budget, sizeof(budget), "%s=1,%s", name, beside);
    long least = least_of(budget);
    for (int less = 0; less < 2; ++less) {
        snprintf(arguments, sizeof(arguments),
                 DIGITS "--runtime bare --memory %s=%ld,%s -o %s/%s%d", name, least - less, beside,
                 folder, name, less);
        if (less)
            berth_run_fails(arguments, 1, refusal);
        else
            cr_expect_eq(berth_run(arguments)->exit_status, 0, "%s", arguments);
    }
}

static void keeps_to_budgets(const char *folder) {
    keeps_to_budget(folder, "sram", "flash=1MiB", "memory \"sram\" needs");
    keeps_to_budget(folder, "flash", "sram=64KiB", "memory \"flash\", which holds");
}

// The runtime bare was asked for: the virtual machine, which would run the model, is no way out.
Test(bare_command, a_refusal_of_control_flow_names_the_node) {
    static const char model[] = "../shared/models/control_flow/loop_early_exit/model.onnx";
    if (access(model, R_OK) != 0) cr_skip_test("no %s", model);
    char arguments[256];
    snprintf(arguments, sizeof(arguments),
             "build %s --dim N=1 --target 'cpu -arch=cortex-m4' --runtime bare -o /nowhere/a",
             model);
    berth_run_fails(arguments, 1, "(Loop) in ");
}

Test(bare_command, build_keeps_to_the_boards_memories) {
    in_folder(keeps_to_budgets);
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

// Two models in one array, that of the larger one; each alone has its own, which is as large.
static void shares(const char *folder) {
    char arguments[512], command[1024];
    snprintf(command, sizeof(command), "cp examples/digits/digits.onnx %s/second.onnx", folder);
    cr_assert_eq(system(command), 0);
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx %s/second.onnx --share-workspace --target "
             "'cpu -arch=cortex-m4' --runtime bare -o %s/all",
             folder, folder);
    cr_expect_eq(berth_run(arguments)->exit_status, 0);
    snprintf(command, sizeof(command),
             "cd %s/all && make -s CFLAGS='-O1 -Wall -Wextra -Werror -pedantic' && "
             "nm libmodels.a | grep -i ' b ' >bss && grep -q berth_workspace bss && "
             "test $(wc -l <bss) = 1 && make -s -C digits libdigits.a && "
             "test $(nm -S libmodels.a | grep -i ' b ' | cut -d' ' -f2) = "
             "$(nm -S digits/libdigits.a | grep -i ' b .*_arena' | cut -d' ' -f2)",
             folder);
    cr_expect_eq(system(command), 0);
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx %s/second.onnx -o %s/no", folder, folder);
    berth_run_fails(arguments, 2, "--share-workspace");
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx examples/digits/digits.onnx --share-workspace "
             "--runtime bare -o %s/no",
             folder);
    berth_run_fails(arguments, 1, "would both be called digits");
    snprintf(command, sizeof(command), "cp %s/second.onnx %s/Digits.onnx", folder, folder);
    cr_assert_eq(system(command), 0);
    snprintf(arguments, sizeof(arguments),
             "build examples/digits/digits.onnx %s/Digits.onnx --share-workspace --target "
             "'cpu -arch=cortex-m4' --runtime bare -o %s/alike",
             folder, folder);
    berth_run_fails(arguments, 1, "would both be called Digits");
    cr_expect(!is_there(folder, "no"));
}

Test(bare_command, several_models_share_their_workspace) {
    in_folder(shares);
}

// With two memories the models share an array in each.
static void shares_two(const char *folder) {
    char arguments[1024], command[1024];
    snprintf(command, sizeof(command), "cp examples/digits/digits.onnx %s/second.onnx", folder);
    cr_assert_eq(system(command), 0);
    snprintf(
        arguments, sizeof(arguments),
        "build examples/digits/digits.onnx %s/second.onnx --share-workspace --target "
        "'{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "
        "\"cortex-m4\"}}], \"memories\": [{\"name\": \"sram\", \"capacity_bytes\": \"64KiB\", "
        "\"bandwidth_bytes_per_s\": 1e8, \"reached_by\": [\"mcu\"]}, {\"name\": \"dtcm\", "
        "\"capacity_bytes\": 2048, \"bandwidth_bytes_per_s\": 8e8, \"reached_by\": [\"mcu\"]}]}' "
        "--runtime bare -o %s/all",
        folder, folder);
    const result *r = berth_run(arguments);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_null(strstr(r->err, "nothing is kept"), "%s", r->err);
    snprintf(
        command, sizeof(command),
        "cd %s/all && make -s CFLAGS='-O1 -Wall -Wextra -Werror -pedantic "
        "-DBERTH_WORKSPACE_DTCM_ATTRIBUTE=__attribute__\\(\\(section\\(\\\".fast\\\"\\)\\)\\)' && "
        "nm libmodels.a | grep -i ' [bd] ' >bss && grep -q 'berth_workspace$' bss && "
        "grep -q 'berth_workspace_dtcm$' bss && test $(wc -l <bss) = 2 && "
        "objdump -t libmodels.a | grep -q '\\.fast.*berth_workspace_dtcm'",
        folder);
    cr_expect_eq(system(command), 0);
}

Test(bare_command, several_models_share_each_of_two_memories) {
    in_folder(shares_two);
}
