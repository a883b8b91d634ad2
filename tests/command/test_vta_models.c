// Quantised models on a VTA and a processor together, as a user runs them: results are those of the
// processor alone bit by bit (tests/vta/make_models.py: scales are powers of two, so that there is one
// right answer).
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

static const char *line(const char *format, ...) {
    static char texts[4][4096];
    static int next;
    char *text = texts[next++ % 4];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(texts[0]), format, arguments);
    va_end(arguments);
    return text;
}

static char folder[] = "/tmp/berth_vta_models_XXXXXX";

static void make(const char *name) {
    if (strstr(folder, "XXXXXX")) cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(system(line("python3 tests/vta/make_models.py %s %s/m.onnx", name, folder)), 0);
}

#define LIBRARIES "--plugin '" BERTH_PLUGIN_VTA "' --driver '" BERTH_LIBRARY_VTA "'"

// Runs the model on the target, its only output into a file.
static const result *run_on(const char *target, const char *output, const char *file) {
    const result *r =
        berth_run(line("run %s/m.onnx %s -o %s=%s/%s", folder, target, output, folder, file));
    cr_assert_eq(r->exit_status, 0, "%s: %s", target, r->err);
    return r;
}

static void clean(void) {
    cr_expect_eq(system(line("rm -rf '%s'", folder)), 0);
}

// Kernels of the model on the VTA, whose results must be the processor's.
static void same_on(const char *name, const char *vta, const char *kernels) {
    char output[64] = "";
    make(name);
    const result *r = berth_run(line("run %s/m.onnx --target cpu", folder));
    cr_assert_eq(sscanf(r->out, "output %63s", output), 1, "%s", r->out);
    run_on("--target cpu", output, "cpu.npy");
    r = run_on(line("--target '%s,cpu' " LIBRARIES, vta), output, "vta.npy");
    cr_assert(strstr(r->out, kernels) || strstr(r->err, kernels), "%s on %s: %s%s", name, vta,
              r->out, r->err);
    cr_assert_eq(system(line("cmp %s/cpu.npy %s/vta.npy", folder, folder)), 0, "%s on %s", name,
                 vta);
}

Test(vta_models, same_results_as_the_processor, .timeout = 300) {
    same_on("conv", "vta", ": 1 kernels, 2 copies");
    same_on("conv1x1", "vta", ": 1 kernels");
    same_on("conv_stride", "vta", ": 1 kernels");
    same_on("conv_even", "vta", ": 1 kernels");
    same_on("conv_channels", "vta", ": 1 kernels");
    same_on("digits", "vta", ": 6 kernels, 2 copies");
    same_on("residual_small", "vta", ": 10 kernels, 2 copies");
    same_on("mobile", "vta", ": 3 kernels, 2 copies");
    same_on("branches", "vta", ": 4 kernels, 2 copies");
    same_on("padded", "vta", ": 3 kernels, 2 copies");
    same_on("joined", "vta", ": 5 kernels, 2 copies");
    clean();
}

Test(vta_models, additions, .timeout = 300) {
    same_on("addition", "vta", ": 3 kernels, 2 copies");
    same_on("addition_even", "vta", ": 3 kernels, 2 copies");
    same_on("addition_wide", "vta", ": 3 kernels, 2 copies");
    clean();
}

Test(vta_models, windows, .timeout = 300) {
    same_on("pools", "vta", ": 7 kernels, 2 copies");
    same_on("global_max", "vta", ": 3 kernels, 2 copies");
    same_on("grouped", "vta", ": 5 kernels, 2 copies");
    clean();
}

// A whole network: every operation of integers is the NPU's, and results are those that its generator
// computed (tests/vta/make_resnet.py).
static void whole_network(const char *options, const char *vta) {
    if (strstr(folder, "XXXXXX")) cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(system(line("python3 tests/vta/make_resnet.py %s %s", folder, options)), 0);
    char output[64] = "";
    const result *r = berth_run(line("inspect %s/resnet.onnx", folder));
    const char *named = strstr(r->out, "output ");
    cr_assert_eq(sscanf(named ? named : "", "output %63s", output), 1, "%s", r->out);
    r = berth_run(line("run %s/resnet.onnx --input x=%s/x.npy --target '%s,cpu' " LIBRARIES
                       " -o %s=%s/y.npy",
                       folder, folder, vta, output, folder));
    cr_assert_eq(r->exit_status, 0, "%s: %s", vta, r->err);
    cr_assert(strstr(r->out, ": 31 kernels, 2 copies"), "%s: %s", vta, r->out);
    cr_assert_eq(system(line("python3 tests/vta/make_resnet.py --same %s/y.npy %s/expected.npy",
                             folder, folder)),
                 0, "%s", vta);
}

Test(vta_models, resnet18, .timeout = 300) {
    whole_network("--size 32 --width 16 --classes 10 --seed 2", "vta");
    whole_network("--size 40 --width 8 --classes 21 --seed 3",
                  "vta -log_block=3 -log_wgt_buff_size=15 -log_inp_buff_size=14 "
                  "-log_acc_buff_size=16");
    whole_network("--size 33 --width 8 --classes 10 --seed 4",
                  "vta -log_block=5 -log_wgt_buff_size=19 -log_inp_buff_size=16");
    whole_network("--size 32 --width 8 --classes 10 --seed 5",
                  "vta -log_inp_buff_size=13 -log_acc_buff_size=14");
    whole_network("--size 32 --width 8 --classes 10 --seed 6", "vta -log_uop_buff_size=12");
    clean();
}

// Attributes of the target reach the code generator and the driver: blocks, and small buffers.
Test(vta_models, configurations, .timeout = 300) {
    static const char *const configurations[] = {
        "vta -log_block=3 -log_wgt_buff_size=15 -log_inp_buff_size=14 -log_acc_buff_size=16",
        "vta -log_block=5 -log_wgt_buff_size=19 -log_inp_buff_size=16",
        "vta -log_inp_buff_size=13 -log_acc_buff_size=14", "vta -log_uop_buff_size=12"};
    for (size_t i = 0; i < sizeof(configurations) / sizeof(configurations[0]); ++i) {
        same_on("conv", configurations[i], ": 1 kernels");
        same_on("conv_channels", configurations[i], ": 1 kernels");
        same_on("residual_small", configurations[i], " kernels");
        same_on("addition", configurations[i], ": 3 kernels");
        same_on("joined", configurations[i], " kernels, 2 copies");
        same_on("pools", configurations[i], ": 7 kernels");
        same_on("grouped", configurations[i], ": 5 kernels");
    }
    clean();
}

// A program of `berth build`: its steps on the VTA in their order, and their cycles together.
Test(vta_models, profile_of_a_program, .timeout = 120) {
    make("addition");
    const result *r = berth_run(line("build %s/m.onnx --target vta,cpu --plugin '%s' -o %s/m.berth",
                                     folder, BERTH_PLUGIN_VTA, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("vta profile %s/m.berth", folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    const char *first = strstr(r->out, "%  Conv\n"), *last = strstr(r->out, "%  Add+Relu\n");
    cr_assert(first && strstr(first + 1, "%  Conv\n") && last > first, "%s", r->out);
    r = berth_run(line("vta profile %s/m.berth -f json", folder));
    long long sum = 0, all = 0;
    const char *at = strstr(r->out, "\"cycles\": ");
    for (int i = 0; at; ++i, at = strstr(at + 1, "\"cycles\": ")) {
        long long cycles = strtoll(at + strlen("\"cycles\": "), NULL, 10);
        if (cycles > all) {
            sum += all;
            all = cycles;
        } else {
            sum += cycles;
        }
    }
    cr_expect(all > 0 && sum == all, "%lld of %lld in %s", sum, all, r->out);
    r = berth_run(line("build %s/m.onnx --target cpu -o %s/c.berth", folder, folder));
    r = berth_run(line("vta profile %s/c.berth", folder));
    cr_assert_eq(r->exit_status, 1);
    cr_assert(strstr(r->err, "a program without work for a VTA"), "%s", r->err);
    r = berth_run(line("vta replay %s/m.berth", folder));
    cr_assert_eq(r->exit_status, 1);
    cr_assert(strstr(r->out, "nothing recorded"), "%s", r->out);
    clean();
}

Test(vta_models, plan_says_why, .timeout = 120) {
    make("odd_scale");
    const result *r =
        berth_run(line("plan %s/m.onnx --target vta,cpu --plugin '%s'", folder, BERTH_PLUGIN_VTA));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->out, "give no power of two"), "%s", r->out);
    make("unsigned");
    r = berth_run(line("plan %s/m.onnx --target vta,cpu --plugin '%s'", folder, BERTH_PLUGIN_VTA));
    cr_assert(strstr(r->out, "the matrix unit has signed 8-bit lanes"), "%s", r->out);
    static const char *const reasons[][2] = {
        {"addition_odd", "are no powers of two"},
        {"border_mean", "its averages at a border are over fewer elements"},
        {"ceil_mean", "its averages at a border are over fewer elements"}};
    for (int i = 0; i < 3; ++i) {
        make(reasons[i][0]);
        r = berth_run(
            line("plan %s/m.onnx --target vta,cpu --plugin '%s'", folder, BERTH_PLUGIN_VTA));
        cr_assert(strstr(r->out, reasons[i][1]), "%s", r->out);
    }
    clean();
}
