// berth quantize, as a user runs it. What a quantised model must give is what the float one gives, but
// for the steps of 8 bits: the float model's results are the reference. The models are those of
// make_float_models.py, and the digits example.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "support.h"
#include "toolkit/tensor_file.h"

#define DIGITS "examples/digits/digits.onnx"
#define IMAGES "examples/digits/test_images.npy"
#define LABELS "--labels examples/digits/test_labels.npy"
#define LIBRARIES "--plugin '" BERTH_PLUGIN_VTA "' --driver '" BERTH_LIBRARY_VTA "'"

static char folder[64];

static void make_folder(void) {
    strcpy(folder, "/tmp/berth_quantize_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(quantize_command, .init = make_folder, .fini = remove_folder, .timeout = 300);

// `format` with the folder in place of each '@'.
__attribute__((format(printf, 1, 2))) static const char *line(const char *format, ...) {
    static char texts[4][4096], raw[4096];
    static int next;
    char *text = texts[next++ % 4];
    size_t length = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof(raw), format, arguments);
    va_end(arguments);
    for (const char *at = raw; *at && length + 64 < sizeof(texts[0]); ++at)
        length += (size_t)snprintf(text + length, sizeof(texts[0]) - length, "%.*s",
                                   *at == '@' ? (int)strlen(folder) : 1, *at == '@' ? folder : at);
    return text;
}

static void shell(const char *text) {
    cr_assert_eq(system(line("%s", text)), 0, "%s", text);
}

static void make_stored(const char *name, const char *storage) {
    shell(line("python3 tests/command/make_float_models.py %s @ %s", name, storage));
}

static void make(const char *name) {
    make_stored(name, "");
}

static double number(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

// Signal over noise, in dB, of two tensor files.
static double decibels(const char *exact, const char *rounded) {
    berth_arena *arena = NULL;
    berth_tensor a, b;
    double signal = 0, noise = 0;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_null(berth_tensor_file_read(arena, line("@/%s", exact), &a, NULL));
    cr_assert_null(berth_tensor_file_read(arena, line("@/%s", rounded), &b, NULL));
    cr_assert(berth_tensor_same_shape(&a, &b));
    for (int64_t i = 0; i < berth_tensor_element_count(&a); ++i) {
        double x = berth_tensor_get_f64(&a, i), y = berth_tensor_get_f64(&b, i);
        signal += x * x;
        noise += (x - y) * (x - y);
    }
    berth_arena_destroy(arena);
    return 10 * log10(signal / fmax(noise, 1e-30));
}

// Nodes of a model with this operator.
static int operators(const char *model, const char *op) {
    json_t *json = berth_run_json(line("inspect %s --format=json", model)), *node = NULL;
    int count = 0;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "nodes"), i, node) count +=
        strcmp(json_string_value(json_object_get(node, "op")), op) == 0;
    json_decref(json);
    return count;
}

// ---- accuracy -----------------------------------------------------------------------------------

Test(quantize_command, digits_keep_their_accuracy) {
    static const struct {
        const char *options;
        double most;  // loss
    } rows[] = {{"", 0.005},
                {"--per-channel", 0.005},
                {"--method entropy", 0.005},
                {"--method minmax", 0.005},
                {"--method percentile --percentile 99.9%", 0.01},
                {"--scales power-of-two", 0.01},
                {"--scales power-of-two --per-channel", 0.01},
                {"--target vta,cpu", 0.01}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        json_t *report = berth_run_json(line("quantize " DIGITS " --calibrate " IMAGES " " LABELS
                                             " %s -q -o @/q.onnx --format=json",
                                             rows[i].options));
        cr_expect_gt(number(report, "float_accuracy"), 0.9);
        cr_expect_leq(number(report, "float_accuracy") - number(report, "accuracy"), rows[i].most,
                      "%s", rows[i].options);
        cr_expect_eq(number(report, "layers_quantized"), 3);
        cr_expect_eq(number(report, "rows"), 360);
        json_decref(report);
    }
}

// What the report says of outputs is what a run of both models shows.
Test(quantize_command, the_report_is_what_runs_show) {
    json_t *report = berth_run_json(line("quantize " DIGITS " --calibrate " IMAGES
                                         " -q -o @/q.onnx --report @/r.json --format=json"));
    const json_t *output = json_array_get(json_object_get(report, "outputs"), 0);
    double said = number(output, "sqnr_db");
    json_decref(report);
    report = json_load_file(line("@/r.json"), 0, NULL);
    cr_assert_not_null(report);
    cr_expect_eq(json_array_size(json_object_get(report, "layers")), 3);
    json_decref(report);
    for (int i = 0; i < 2; ++i) {
        const result *r =
            berth_run(line("run %s --input image=" IMAGES " -q --output probabilities=@/%d.npy",
                           i ? "@/q.onnx" : DIGITS, i));
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
    }
    cr_expect_float_eq(decibels("0.npy", "1.npy"), said, 0.1, "%g", said);
    cr_expect_gt(said, 35);
    cr_expect_eq(operators("@/q.onnx", "Conv"), 2);
}

Test(quantize_command, digits_run_on_a_vta) {
    const result *r = berth_run(
        line("quantize " DIGITS " --calibrate " IMAGES " --target vta,cpu -q -o @/q.onnx"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("plan @/q.onnx --dim batch=1 --target vta,cpu -q " LIBRARIES));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    for (int i = 1; i < 3; ++i) {
        const char *found = strstr(r->out, line(" conv%d ", i));
        cr_assert_not_null(found);
        while (found > r->out && found[-1] != '\n') --found;
        cr_expect_eq(strncmp(found, "vta:0 ", 6), 0, "%.40s", found);
    }
    // The same bytes as on the processor; the input is a batch of one with the model's random values.
    r = berth_run(
        line("run @/q.onnx -q --dim batch=1 --target cpu --output probabilities=@/c.npy"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run(line("run @/q.onnx -q --dim batch=1 --target vta,cpu " LIBRARIES
                       " --output probabilities=@/v.npy"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, ": 5 kernels, 2 copies"), "%s", r->out);
    shell("cmp @/c.npy @/v.npy");
}

// ---- models -------------------------------------------------------------------------------------

// Runs the model and its quantised form on the largest set, and compares.
static double quantize(const char *options, const char *output) {
    const result *r =
        berth_run(line("quantize @/m.onnx --calibrate @/data -q -o @/q.onnx %s", options));
    cr_assert_eq(r->exit_status, 0, "%s: %s", options, r->err);
    for (int i = 0; i < 2; ++i) {
        r = berth_run(line("run @/%s.onnx -q --input x=@/data/0.npy --output %s=@/%d.npy",
                           i ? "q" : "m", output, i));
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
    }
    return decibels("0.npy", "1.npy");
}

Test(quantize_command, batch_norms_and_residuals) {
    make("residual");
    cr_expect_gt(quantize("", "gemm23_0"), 33);
    cr_expect_eq(operators("@/q.onnx", "BatchNormalization"), 0);
    cr_expect_eq(operators("@/q.onnx", "Add"), 1);
    // x, the first relu, both operands and the result of the addition, the pool's, and weights: 3, bias: 3
    cr_expect_geq(operators("@/q.onnx", "DequantizeLinear"), 11);
    cr_expect_gt(quantize("--per-channel", "gemm23_0"), 35);
    cr_expect_gt(quantize("--target vta,cpu", "gemm23_0"), 28);
}

// Wherever a model has its weights, the result is the same file.
Test(quantize_command, ways_of_storing_weights) {
    static const char *const ways[] = {"", "typed", "external"};
    for (int i = 0; i < 3; ++i) {
        make_stored("residual", ways[i]);
        const result *r =
            berth_run(line("quantize @/m.onnx --calibrate @/data -q -o @/%d.onnx", i));
        cr_assert_eq(r->exit_status, 0, "%s: %s", ways[i], r->err);
    }
    shell("cmp @/0.onnx @/1.onnx && cmp @/0.onnx @/2.onnx");
}

Test(quantize_command, old_operators) {
    make("old");
    cr_expect_gt(quantize("", "softmax23_0"), 28);
    cr_expect_gt(quantize("--per-channel", "softmax23_0"), 28);
    make("upsample");
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data -q -o @/none.onnx"), 1,
                    "Upsample of node");
    make("ancient");
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data -q -o @/none.onnx"), 1,
                    "version_converter");
}

// A layer of the report; NULL.
static const json_t *layer_of(const json_t *report, const char *name) {
    size_t i = 0;
    json_t *layer = NULL;
    json_array_foreach(json_object_get(report, "layers"), i, layer) {
        if (strcmp(json_string_value(json_object_get(layer, "name")), name) == 0) return layer;
    }
    return NULL;
}

static const char *float_because(const json_t *report, const char *name) {
    const char *text = json_string_value(json_object_get(layer_of(report, name), "float_because"));
    return text ? text : "";
}

// Transposed convolutions have the channels of their results second in the weights: a batch norm
// becomes part of one, and it has scales per channel there. One in groups stays float.
Test(quantize_command, transposed_convolutions) {
    make("decoder");
    cr_expect_gt(quantize("", "convtranspose15_0"), 40);
    cr_expect_eq(operators("@/q.onnx", "BatchNormalization"), 0);
    // Two activations; weights and biases of the convolution and of the transposed one.
    cr_expect_eq(operators("@/q.onnx", "DequantizeLinear"), 6);
    cr_expect_gt(quantize("--per-channel", "convtranspose15_0"), 40);
    json_t *report =
        berth_run_json(line("quantize @/m.onnx --calibrate @/data -q -o @/q.onnx --format=json"));
    cr_expect_eq(number(report, "layers_quantized"), 2);
    cr_expect_eq(*float_because(report, "n7"), 0);
    cr_expect(strstr(float_because(report, "n15"), "it has groups"));
    json_decref(report);
    report = berth_run_json(
        line("quantize @/m.onnx --calibrate @/data -q -o @/q.onnx --target vta,cpu --format=json"));
    cr_expect(strstr(float_because(report, "n7"), "the target has no integers for it"));
    json_decref(report);
}

// Layers in branches are listed as float, with the node that they are in.
Test(quantize_command, layers_inside_of_control_flow) {
    make("branch");
    cr_expect_gt(quantize("", "chosen"), 35);
    json_t *report =
        berth_run_json(line("quantize @/m.onnx --calibrate @/data -q -o @/q.onnx --format=json"));
    cr_expect_eq(number(report, "layers_quantized"), 1);
    cr_expect_eq(json_array_size(json_object_get(report, "layers")), 3);
    cr_expect(strstr(float_because(report, "inner_then"), "inside of control flow, node \"if\""));
    cr_expect(strstr(float_because(report, "inner_else"), "inside of control flow, node \"if\""));
    json_decref(report);
}

// A scale per channel is nothing that a VTA can do: what would follow is said.
Test(quantize_command, per_channel_on_a_vta) {
    berth_run_fails(line("quantize " DIGITS " --calibrate " IMAGES
                         " --target vta,cpu --per-channel -q -o @/q.onnx"),
                    1,
                    "with a scale per channel no layer would run there, all would run elsewhere");
}

// Where channels differ much, equalisation is worth several bits.
Test(quantize_command, equalisation) {
    make("uneven");
    double off = quantize("--equalize off", "globalaveragepool12_0");
    double on = quantize("--equalize on", "globalaveragepool12_0");
    double automatic = quantize("", "globalaveragepool12_0");
    cr_expect_gt(on, off + 6, "%g dB, without %g dB", on, off);
    cr_expect_float_eq(automatic, on, 1e-9);
}

Test(quantize_command, two_inputs_in_folders) {
    make("two_inputs");
    json_t *report =
        berth_run_json(line("quantize @/m.onnx --calibrate @/data -q -o @/q.onnx --format=json"));
    cr_expect_eq(number(report, "data_sets"), 3);
    cr_expect_eq(number(report, "layers_quantized"), 2);
    cr_expect_lt(number(report, "loss"), 0.01);
    json_decref(report);
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data/set0/z.npy -q -o @/none.onnx"), 1,
                    "the model has 2 inputs");
    shell("rm @/data/set1/z.npy");
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data -q -o @/none.onnx"), 1,
                    "has no file for input \"z\"");
}

// ---- layers that stay float ---------------------------------------------------------------------

Test(quantize_command, the_worst_layers_stay_float) {
    make("residual");
    double all = quantize("--scales power-of-two", "gemm23_0");
    json_t *report =
        berth_run_json(line("quantize @/m.onnx --calibrate @/data --scales power-of-two "
                            "-q -o @/q.onnx --keep-worst 1 --format=json"));
    cr_expect_eq(number(report, "layers_quantized"), 2);
    const json_t *layers = json_object_get(report, "layers");
    double least = INFINITY;
    const char *kept = NULL;
    for (size_t i = 0; i < 3; ++i) {
        const json_t *layer = json_array_get(layers, i);
        if (json_object_get(layer, "float_because"))
            kept = json_string_value(json_object_get(layer, "op"));
        else
            least = fmin(least, number(layer, "sqnr_db"));
    }
    cr_assert_not_null(kept);
    cr_expect_str_eq(kept, "Gemm");
    cr_expect(isfinite(least));
    json_decref(report);
    cr_expect_gt(quantize("--scales power-of-two --keep-worst 1", "gemm23_0"), all);
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data -q -o @/none.onnx --keep-worst 3"),
                    1, "the model has 3 that could be quantised");
}

// As few as are needed: one fewer loses more than was asked for.
Test(quantize_command, a_loss_is_kept_to) {
    make("residual");
    json_t *report = NULL;
    double losses[3];
    for (int kept = 0; kept < 3; ++kept) {
        report = berth_run_json(line("quantize @/m.onnx --calibrate @/data --compare-values -q -o "
                                     "@/q.onnx --keep-worst %d --format=json",
                                     kept));
        losses[kept] = number(report, "loss");
        json_decref(report);
    }
    cr_assert_gt(losses[0], losses[1]);
    double limit = (losses[0] + losses[1]) / 2;
    report = berth_run_json(line("quantize @/m.onnx --calibrate @/data --compare-values -q -o "
                                 "@/q.onnx --max-drop %.9f --format=json",
                                 limit));
    cr_expect_eq(number(report, "layers_quantized"), 2);
    cr_expect_leq(number(report, "loss"), limit);
    json_decref(report);
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data --compare-values -q -o @/none.onnx "
                         "--max-drop 0"),
                    1, "no layer can be quantised with a loss of at most 0 %");
}

// ---- bad input ----------------------------------------------------------------------------------

Test(quantize_command, wrong_usage) {
    berth_run_fails("quantize " DIGITS " -o /tmp/none.onnx", 2, "--calibrate DIR is missing");
    berth_run_fails("quantize " DIGITS " --calibrate " IMAGES, 2, "-o FILE is missing");
    berth_run_fails("quantize " DIGITS " --calibrate . -o x --method best", 2, "mse");
    berth_run_fails("quantize " DIGITS " --calibrate . -o x --max-drop much", 2, "a share such as");
    berth_run_fails("quantize " DIGITS " --calibrate . -o x --report r.html", 2, ".json, .txt or");
    berth_run_fails("quantize " DIGITS " --calibrate . -o x --input image=" IMAGES, 2,
                    "leave --input and --pin out");
    berth_run_fails("quantize " DIGITS " --calibrate " IMAGES
                    " -o /tmp/none.onnx --target vta,cpu --per-channel",
                    1, "a VTA shifts results");
}

Test(quantize_command, data_that_do_not_do) {
    const char *end = "-q -o @/none.onnx";
    shell("mkdir @/empty");
    berth_run_fails(line("quantize " DIGITS " --calibrate @/empty %s", end), 1, "has no data sets");
    berth_run_fails(line("quantize " DIGITS " --calibrate @/absent %s", end), 1,
                    "No such file or directory");
    // NaN as the last of the images' values.
    shell("mkdir @/nan && cp " IMAGES
          " @/nan/x.npy && printf '\\0\\0\\300\\177' | dd of=@/nan/x.npy "
          "bs=1 seek=$(($(wc -c <@/nan/x.npy) - 4)) conv=notrunc status=none");
    berth_run_fails(line("quantize " DIGITS " --calibrate @/nan %s", end), 1, "is nan");
    shell("mkdir @/short && head -c 1000 " IMAGES " > @/short/x.npy");
    berth_run_fails(line("quantize " DIGITS " --calibrate @/short %s", end), 1, "x.npy");
    make("residual");  // data of another shape
    berth_run_fails(line("quantize " DIGITS " --calibrate @/data %s", end), 1,
                    "data set \"0.npy\"");
    shell("echo 1 2 3 > @/labels.txt");
    berth_run_fails(
        line("quantize " DIGITS " --calibrate " IMAGES " --labels @/labels.txt %s", end), 1,
        "3 labels are given for the data sets' 360 rows");
    shell("echo 1 2 three > @/labels.txt");
    berth_run_fails(
        line("quantize " DIGITS " --calibrate " IMAGES " --labels @/labels.txt %s", end), 1,
        "label 2 is no integer");
    cr_expect_neq(access(line("@/none.onnx"), F_OK), 0, "a file in spite of errors");
}

Test(quantize_command, models_that_do_not_do) {
    make("no_layers");
    berth_run_fails(line("quantize @/m.onnx --calibrate @/data -q -o @/none.onnx"), 1,
                    "no Conv, ConvTranspose, Gemm or MatMul");
    const result *r = berth_run(line("quantize " DIGITS " --calibrate " IMAGES " -q -o @/q.onnx"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    berth_run_fails(line("quantize @/q.onnx --calibrate " IMAGES " -q -o @/none.onnx"), 1,
                    "it is quantised already");
    shell("head -c 3000 " DIGITS " > @/cut.onnx");
    berth_run_fails(line("quantize @/cut.onnx --calibrate " IMAGES " -q -o @/none.onnx"), 1,
                    "is no ONNX model");
    berth_run_fails(line("quantize " DIGITS " --calibrate " IMAGES " -q -o @/absent/q.onnx"), 1,
                    "absent");
    cr_expect_neq(access(line("@/none.onnx"), F_OK), 0, "a file in spite of errors");
}
