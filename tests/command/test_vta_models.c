// Quantised models on a VTA and a processor together, as a user runs them: results are those of the
// processor alone bit by bit (tests/vta/make_models.py: scales are powers of two, so that there is one
// right answer).
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

__attribute__((format(printf, 1, 2))) static const char *line(const char *format, ...) {
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
    same_on("slices", "vta",
            ": 5 kernels, 2 copies");  // a slice from 0 on is its tensor's beginning
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
    same_on("end_pools", "vta", ": 3 kernels, 2 copies");
    same_on("dilated", "vta", ": 4 kernels, 2 copies");
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
        same_on("end_pools", configurations[i], ": 3 kernels");
        same_on("slices", configurations[i], i == 1 ? ": 4 kernels" : ": 5 kernels");
        same_on("dilated", configurations[i], " kernels, 2 copies");
    }
    clean();
}

// What the schedule makes stands in the module: calls of the matrix unit, one for each convolution or
// dense layer. Read from text or JSON, it goes on to the same program; without the plug-in it is refused.
Test(vta_models, calls_of_the_matrix_unit, .timeout = 120) {
    static const char passes[] =
        "keep-names,fold-constants,find-integers,simplify,plan-devices,layout,"
        "fuse,find-parts,lower,plan-scopes,schedule";
    make("digits");
    static const char options[] =
        "--target 'vta -log_block=3 -log_wgt_buff_size=15 -log_inp_buff_size=14 "
        "-log_acc_buff_size=16,cpu' --plugin '" BERTH_PLUGIN_VTA "'";
    const result *r =
        berth_run(line("build %s/m.onnx %s -o %s/whole.berth", folder, options, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    static const char *const forms[] = {"", "--emit=json"};
    for (int i = 0; i < 2; ++i) {
        cr_assert_eq(
            system(line("'" BERTH_COMMAND "' opt %s/m.onnx %s --passes %s %s >%s/stage 2>%s/log",
                        folder, options, passes, forms[i], folder, folder)),
            0, "form %d", i);
        cr_expect_eq(system(line("test $(grep -c 'vta_gemm_8' %s/stage) = 4", folder)), 0,
                     "form %d", i);
        r = berth_run(line("build %s/stage --plugin '%s' -o %s/stage.berth", folder,
                           BERTH_PLUGIN_VTA, folder));
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        cr_expect_eq(system(line("cmp %s/stage.berth %s/whole.berth", folder, folder)), 0,
                     "form %d", i);
    }
    r = berth_run(line("build %s/stage -o %s/none.berth", folder, folder));
    cr_expect_eq(r->exit_status, 1);
    cr_expect(strstr(r->err, "op: expected an operator"), "%s", r->err);
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
    make("integer");  // float scales on sums: said of each operation, and the results are the same
    r = berth_run(line("plan %s/m.onnx --target vta,cpu --plugin '%s'", folder, BERTH_PLUGIN_VTA));
    cr_assert(strstr(r->out, "conv_integer is not exact there"), "%s", r->out);
    cr_assert(strstr(r->out, "quantize_linear reads floats"), "%s", r->out);
    cr_assert(strstr(r->out, "mul of f32: a VTA has integers only"), "%s", r->out);
    same_on("integer", "vta", "vta:0");
    clean();
}

// ---- three kinds of device ----------------------------------------------------------------------

// The digits example, quantised for a VTA, into the folder; its first `rows` images as test data, with
// what the processor alone makes of them.
static void make_digits(void) {
    if (strstr(folder, "XXXXXX")) cr_assert_not_null(mkdtemp(folder));
    const result *r = berth_run(line("quantize examples/digits/digits.onnx --calibrate "
                                     "examples/digits/test_images.npy --target vta,cpu -o "
                                     "%s/m.onnx",
                                     folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
}

static bool skip_without_opencl(void) {
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    const result *r = berth_run("devices");
    return !strstr(r->out, "opencl") && !(required && strstr(required, "opencl"));
}

// Images as a TensorProto: dimensions, type, raw data (protocol buffers' wire format).
static void write_images(const char *path, unsigned char rows) {
    enum { image_bytes = 64 * 4 };
    static unsigned char images[255 * image_bytes];
    unsigned char start[] = {8, rows, 8, 1, 8, 8, 8, 8, 0x10, 1, 0x4a, 0, 0, 0};
    uint32_t bytes = rows * (uint32_t)image_bytes;
    FILE *from = fopen("examples/digits/test_images.npy", "rb");
    FILE *to = fopen(path, "wb");
    cr_assert(from && to && rows < 128);
    cr_assert_eq(fseek(from, 128, SEEK_SET), 0);  // the header of the file
    cr_assert_eq(fread(images, 1, bytes, from), bytes);
    start[11] = (unsigned char)(bytes & 127) | 128;
    start[12] = (unsigned char)(bytes >> 7 & 127) | 128;
    start[13] = (unsigned char)(bytes >> 14);
    cr_assert_eq(fwrite(start, 1, sizeof(start), to), sizeof(start));
    cr_assert_eq(fwrite(images, 1, bytes, to), bytes);
    fclose(from);
    fclose(to);
}

static const char three[] = "--target vta,opencl,cpu --pin op:Conv=vta:0 --pin op:Gemm=opencl:0 "
                            "--pin op:Softmax=cpu:0 " LIBRARIES;

// Convolutions on the NPU, the dense layer on OpenCL, softmax on the processor: three memories in one
// run, whose results are the processor's bit by bit, by `run`, `verify` and a built program.
Test(vta_models, three_kinds_of_device, .timeout = 300) {
    if (skip_without_opencl()) cr_skip("skipped: this needs OpenCL");
    make_digits();
    write_images(line("%s/input_0.pb", folder), 24);
    const result *r = berth_run(line("run %s/m.onnx --target cpu --input %s/input_0.pb -o "
                                     "probabilities=%s/output_0.pb",
                                     folder, folder, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("run %s/m.onnx %s --require vta:0,opencl:0,cpu:0 --input %s/input_0.pb -o "
                       "probabilities=%s/three.pb",
                       folder, three, folder, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_eq(system(line("cmp %s/output_0.pb %s/three.pb", folder, folder)), 0);
    r = berth_run(line("verify %s/m.onnx %s --require vta:0,opencl:0,cpu:0 --data %s --rtol 0 "
                       "--atol 0",
                       folder, three, folder));
    cr_expect_eq(r->exit_status, 0, "%s%s", r->out, r->err);
    r = berth_run(line("plan %s/m.onnx --dim batch=24 %s", folder, three));
    cr_expect(strstr(r->out, "memory       vta:0, in vta:0") &&
                  strstr(r->out, "memory       opencl:0, in opencl:0") &&
                  strstr(r->out, "memory       cpu:0, in host"),
              "%s", r->out);
    r = berth_run(line("build %s/m.onnx --dim batch=24 %s -o %s/m.berth", folder, three, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("run %s/m.berth " LIBRARIES " --require vta:0,opencl:0,cpu:0 --input "
                       "%s/input_0.pb -o probabilities=%s/built.pb",
                       folder, folder, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_eq(system(line("cmp %s/output_0.pb %s/built.pb", folder, folder)), 0);
    clean();
}

// All devices in the list must run something, and nothing else anything.
Test(vta_models, require_several, .timeout = 120) {
    if (skip_without_opencl()) cr_skip("skipped: this needs OpenCL");
    make_digits();
    const result *r =
        berth_run(line("run %s/m.onnx --dim batch=1 %s --require vta:0,opencl:0", folder, three));
    cr_expect_neq(r->exit_status, 0);
    cr_expect(strstr(r->err, "runs on cpu:0, not on vta:0,opencl:0 as required"), "%s", r->err);
    r = berth_run(line("run %s/m.onnx --dim batch=1 --target vta,cpu --pin 'op:*=cpu:0' " LIBRARIES
                       " --require cpu:0,vta:0",
                       folder));
    cr_expect_neq(r->exit_status, 0);
    cr_expect(strstr(r->err, "no kernel runs on vta:0"), "%s", r->err);
    r = berth_run(line("run %s/m.onnx --dim batch=1 %s --require vta:0,opencl", folder, three));
    cr_expect_neq(r->exit_status, 0);
    cr_expect(strstr(r->err, "no device \"opencl\""), "%s", r->err);
    clean();
}

// The planner alone sends the second convolution to the NPU of a board, and says why the first, of
// one channel in blocks of 16, stays.
Test(vta_models, planner_alone, .timeout = 120) {
    make_digits();
    const result *r = berth_run(line("explain %s/m.onnx --dim batch=16 --target xilinx/pynq-z2 "
                                     "--strategy auto --no-what-if --plugin '%s'",
                                     folder, BERTH_PLUGIN_VTA));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->out, "conv2 (Conv)\n  on npu"), "%s", r->out);
    cr_expect(strstr(r->out, "relu2 (Relu)\n  on npu"), "%s", r->out);
    const char *first = strstr(r->out, "conv1 (Conv)\n  on cpu");
    cr_assert_not_null(first, "%s", r->out);
    cr_expect_not_null(strstr(first, "not npu: +"), "%s", first);
    cr_expect(strstr(r->out, "not npu: unsupported: softmax of f32: a VTA has integers only"), "%s",
              r->out);
    clean();
}

// Costs of a board that is not here: what the timing model says of the compiled streams, which plans
// then go by. Each is the cycles that `berth vta profile` counts, at 100 MHz, and a kernel's start.
Test(vta_models, calibrated_by_the_model, .timeout = 120) {
    make_digits();
    const result *r =
        berth_run(line("calibrate %s/m.onnx --dim batch=16 --target xilinx/pynq-z2 --by-model "
                       "--plugin '%s' -o %s/c.jsonl",
                       folder, BERTH_PLUGIN_VTA, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, ": 5 costs, 0 of them kept"), "%s", r->out);
    json_t *plan = berth_run_json(line("plan %s/m.onnx --dim batch=16 --target xilinx/pynq-z2 "
                                       "--strategy auto --costs %s/c.jsonl -q --format=json "
                                       "--plugin '%s'",
                                       folder, folder, BERTH_PLUGIN_VTA));
    r = berth_run(line("build %s/m.onnx --dim batch=16 --target xilinx/pynq-z2 --strategy auto "
                       "--plugin '%s' -o %s/m.berth",
                       folder, BERTH_PLUGIN_VTA, folder));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_t *profile = berth_run_json(line("vta profile %s/m.berth -f json", folder));
    const json_t *run = json_array_get(json_object_get(profile, "profiles"), 0);
    double cycles = json_number_value(json_object_get(run, "cycles")), found_us = 0;
    cr_assert_gt(cycles, 0);
    size_t i = 0;
    json_t *operation = NULL;
    json_array_foreach(json_object_get(plan, "operations"), i, operation) {
        const char *cost = json_string_value(json_object_get(operation, "cost"));
        if (strcmp(cost, "modelled") == 0)
            found_us += json_number_value(json_object_get(operation, "time_us"));
    }
    cr_expect_float_eq(found_us, cycles / 100 + 20, 0.1, "%g us, %g cycles", found_us, cycles);
    json_decref(plan);
    json_decref(profile);
    r = berth_run(line("calibrate %s/m.onnx --dim batch=16 --target cpu --by-model -o %s/x.jsonl",
                       folder, folder));
    cr_expect_eq(r->exit_status, 1);
    cr_expect_not_null(strstr(r->err, "no device of the target has a timing model"), "%s", r->err);
    clean();
}

// A ReLU runs on a VTA in its convolution's stream only: it follows the convolution, and pins that
// part the two name what is in the way.
Test(vta_models, relu_stays_with_its_convolution, .timeout = 120) {
    make("digits");
    const result *r = berth_run(line("plan %s/m.onnx --target vta,cpu --pin op:Conv=cpu:0 --plugin "
                                     "'%s'",
                                     folder, BERTH_PLUGIN_VTA));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_null(strstr(r->out, "vta:0        Relu"), "%s", r->out);
    r = berth_run(line("plan %s/m.onnx --target xilinx/pynq-z2 --strategy auto --plugin '%s'",
                       folder, BERTH_PLUGIN_VTA));
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("plan %s/m.onnx --target vta,cpu --pin op:Conv=cpu:0 --pin op:Relu=vta:0 "
                       "--plugin '%s'",
                       folder, BERTH_PLUGIN_VTA));
    cr_expect_neq(r->exit_status, 0);
    cr_expect(
        strstr(r->err, "vta:0 runs it only with what makes its operand, node \"node_conv13\""),
        "%s", r->err);
    clean();
}

// What the convolution takes of each buffer stands in the plan, of the sizes that attributes give; where
// it must run on the VTA and fits no tile, operation, buffer and bytes are in the error.
Test(vta_models, buffers_in_plans, .timeout = 120) {
    make("conv");
    json_t *plan = berth_run_json(line("plan %s/m.onnx --target 'vta -log_inp_buff_size=14,cpu' "
                                       "--format=json -q --plugin '%s'",
                                       folder, BERTH_PLUGIN_VTA));
    static const struct {
        const char *scope;
        json_int_t capacity;
    } rows[] = {{"vta.uop", 1 << 15},
                {"vta.wgt", 1 << 18},
                {"vta.inp", 1 << 14},
                {"vta.acc", 1 << 17},
                {"vta.out", 1 << 15}};
    size_t i, found = 0;
    json_t *item;
    json_array_foreach(json_object_get(plan, "operations"), i, item) {
        const json_t *buffers = json_object_get(item, "buffers");
        if (strcmp(json_string_value(json_object_get(item, "op")), "Conv") != 0) {
            cr_expect_eq(json_array_size(buffers), 0);
            continue;
        }
        cr_assert_eq(json_array_size(buffers), sizeof(rows) / sizeof(rows[0]));
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); ++k) {
            const json_t *buffer = json_array_get(buffers, k);
            json_int_t used = json_integer_value(json_object_get(buffer, "used_bytes"));
            cr_expect_str_eq(json_string_value(json_object_get(buffer, "scope")), rows[k].scope);
            cr_expect_eq(json_integer_value(json_object_get(buffer, "capacity_bytes")),
                         rows[k].capacity);
            cr_expect(used > 0 && used <= rows[k].capacity);
        }
        found++;
    }
    cr_expect_eq(found, 1);
    json_decref(plan);
    const result *r =
        berth_run(line("plan %s/m.onnx --target 'vta -log_wgt_buff_size=12,cpu' --pin "
                       "op:Conv=vta:0 --plugin '%s'",
                       folder, BERTH_PLUGIN_VTA));
    cr_expect_neq(r->exit_status, 0);
    cr_expect(strstr(r->err, "node \"node_conv13\" (Conv)") &&
                  strstr(r->err, "does not fit vta.wgt: the smallest tile, 1 x 1 results of 16 "
                                 "channels, takes 4608 bytes in both halves, and there are 4096"),
              "%s", r->err);
    clean();
}
