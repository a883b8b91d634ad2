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
    same_on("digits", "vta", ": 3 kernels");
    same_on("residual_small", "vta", ": 6 kernels");
    same_on("mobile", "vta", ": 2 kernels");
    same_on("branches", "vta", ": 3 kernels");
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
    }
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
    clean();
}
