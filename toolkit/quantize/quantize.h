// Quantisation after training: a float ONNX model becomes one in QDQ form (pairs of QuantizeLinear and
// DequantizeLinear) with 8-bit weights and activations, from what the values are over a few inputs.
// Who includes it: tools/cmd_quantize.c.
//
//   berth_quantize_options options = {.calibrate = "images", .keep_worst = 0, .max_drop = -1};
//   berth_quantize_result result;
//   BERTH_TRY(berth_quantize(arena, "model.onnx", &options, &result));
//   BERTH_TRY(berth_file_write("model_int8.onnx", result.model, result.model_bytes));
//
// Sources: R. Krishnamoorthi, arXiv 1806.08342 (ranges, scales per channel); M. Nagel et al., "Data-free
// quantization through weight equalization and bias correction", arXiv 1906.04721 (equalize.c,
// shadow.c); S. Migacz, "8-bit inference with TensorRT", GTC 2017 (entropy, scale.c); M. Nagel et al.,
// arXiv 2106.08295 (the order of the steps).
#ifndef BERTH_TOOLKIT_QUANTIZE_QUANTIZE_H_
#define BERTH_TOOLKIT_QUANTIZE_QUANTIZE_H_

#include "toolkit/model.h"

typedef enum berth_quantize_method {
    BERTH_QUANTIZE_MSE,         // least mean squared error
    BERTH_QUANTIZE_MINMAX,      // all values seen
    BERTH_QUANTIZE_PERCENTILE,  // all but a share of the outermost
    BERTH_QUANTIZE_ENTROPY,     // least divergence of the distributions
} berth_quantize_method;

typedef enum berth_quantize_equalize {
    BERTH_QUANTIZE_EQUALIZE_AUTO,  // where the outputs are more exact with it
    BERTH_QUANTIZE_EQUALIZE_ON,    // all pairs
    BERTH_QUANTIZE_EQUALIZE_OFF,
} berth_quantize_equalize;

typedef struct berth_quantize_options {
    const char *calibrate;  // folder of data sets, or one file
    const char *labels;     // (optional) .npy of integers, or text: one per row of the first output
    bool power_of_two;      // scales
    bool per_channel;       // a scale per output channel of weights
    bool
        whole;  // for devices that run quantised operations as one: i8 with zero point 0 everywhere,
                // and results that leave the quantised part are rounded, too
    berth_quantize_method method;
    double percentile;  // in (0, 1]; 0 = 0.9999
    berth_quantize_equalize equalize;
    bool no_bias_correction;
    uint32_t keep_worst;  // so many layers stay float
    bool compare_values;  // results are no classes, even where they look like some
    double max_drop;  // of accuracy, 0.01 = 1 %: as many layers stay float as that needs; < 0 = no
                      // limit
    berth_model_options model;  // how models run while their values are looked at
    uint32_t thread_count;      // 0 = all cores
    void (*progress)(void *user, const char *what, uint32_t done, uint32_t total);  // (optional)
    void *progress_user;
} berth_quantize_options;

// A convolution or product of the model.
typedef struct berth_quantize_layer {
    const char *name;
    const char *op;      // "Conv", "Gemm", "MatMul"
    const char *kept;    // why it stays float; NULL = it is quantised
    double weight_sqnr;  // signal to quantisation noise in dB: weights alone (NAN = it has none),
    double sqnr;         // this layer alone, its input and weights quantised
    double max_error;    // of this layer alone
    double
        total_sqnr;  // in the quantised model, with what all layers before it lose; NAN = not seen
} berth_quantize_layer;

typedef struct berth_quantize_output {
    const char *name;
    double sqnr;
    double max_error;
    double mean_error;  // mean |difference|
} berth_quantize_output;

typedef struct berth_quantize_result {
    const void *model;  // the file's bytes, in the arena
    size_t model_bytes;
    const berth_quantize_layer *layers;  // in the model's order
    uint32_t layer_count;
    const berth_quantize_output *outputs;
    uint32_t output_count;
    uint32_t set_count;  // data sets
    uint64_t row_count;  // rows of the first output; 0 = it is no list of classes
    double agreement;    // rows whose largest element is the float model's, in [0, 1]
    bool has_labels;
    double float_accuracy;  // by the labels
    double accuracy;
    double noise;              // of all outputs over their signal: root of the powers' ratio
    double drop;               // of accuracy by labels, else 1 - agreement; without classes `noise`
    uint32_t quantized_count;  // layers
    uint32_t tensor_count;     // activations that were quantised
    uint32_t equalized_count;  // pairs of layers
    uint64_t weight_bytes;     // of the layers' weights, before
    uint64_t quantized_bytes;  // and after
    int64_t opset;             // of the file
    const char *const *notes;  // what was done to the model, for people
    uint32_t note_count;
} berth_quantize_result;

// Everything of the result lives in `arena`.
// Errors: NOT_FOUND, IO, INVALID_ARGUMENT, those of importing and running the model; INVALID_ARGUMENT no
// data, data that do not fit or are not finite; UNSUPPORTED nothing to quantise, or an operator version
// that cannot be raised; FAILED_PRECONDITION max_drop cannot be kept.
BERTH_MUST_USE berth_status berth_quantize(berth_arena *arena, const char *path,
                                           const berth_quantize_options *options,
                                           berth_quantize_result *out_result);

// The result as text for people, JSON, or a picture (SVG).
typedef enum berth_quantize_form {
    BERTH_QUANTIZE_TEXT,
    BERTH_QUANTIZE_JSON,
    BERTH_QUANTIZE_SVG
} berth_quantize_form;
// Inside berth_arena_try of the buffer's arena.
void berth_quantize_report(const berth_quantize_result *result, berth_quantize_form form,
                           berth_strbuf *out);

#endif  // BERTH_TOOLKIT_QUANTIZE_QUANTIZE_H_
