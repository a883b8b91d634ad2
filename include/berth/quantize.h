// Quantisation after training (libberth-compiler): a float ONNX model becomes one in QDQ form with 8-bit weights and
// activations, from what its values are over a few inputs. docs/quantize.md.
//
//   berth_quantize_settings settings = {sizeof(settings), "images"};
//   berth_quantized *result;
//   berth_status status = berth_compiler_quantize_file(compiler, "digits.onnx", &settings, &result);
//   if (!status) status = berth_quantized_save(result, "digits_int8.onnx");
//   berth_quantized_free(result);
//
// One thread at a time uses a result.
#ifndef BERTH_QUANTIZE_H_
#define BERTH_QUANTIZE_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_quantized berth_quantized;

// How ranges of values are found. Numbers of this and what follows do not change.
typedef enum berth_quantize_range {
    BERTH_RANGE_MSE = 0,         // least mean squared error
    BERTH_RANGE_MINMAX = 1,      // all values seen
    BERTH_RANGE_PERCENTILE = 2,  // all but a share of the outermost
    BERTH_RANGE_ENTROPY = 3      // least divergence of the distributions
} berth_quantize_range;

typedef enum berth_quantize_scales {
    BERTH_SCALES_OF_TARGET = 0,  // powers of two for a target with a VTA, else any
    BERTH_SCALES_FLOAT = 1,
    BERTH_SCALES_POWER_OF_TWO = 2
} berth_quantize_scales;

// Whether channels of neighbouring layers are scaled alike.
typedef enum berth_quantize_equalization {
    BERTH_EQUALIZATION_AUTO = 0,  // where the outputs are more exact with it
    BERTH_EQUALIZATION_ON = 1,
    BERTH_EQUALIZATION_OFF = 2
} berth_quantize_equalization;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end.
typedef struct berth_quantize_settings {
    size_t size_bytes;        // sizeof(berth_quantize_settings)
    const char *calibration;  // folder of data sets, or one file: inputs as those the model is for
    const char *
        labels;  // .npy of integers, or text: the right class of each row; NULL = the float model's
    berth_quantize_scales scales;
    int per_channel;  // not 0: a scale for each output channel of weights
    berth_quantize_range range;
    double percentile;  // of BERTH_RANGE_PERCENTILE, in (0, 1]; 0 = 0.9999
    berth_quantize_equalization equalization;
    int no_bias_correction;
    uint32_t keep_worst;    // so many layers stay float
    int compare_values;     // not 0: results are no classes, even where they look like some
    int has_max_drop;       // not 0: as many layers stay float as a loss of at most max_drop needs
    double max_drop;        // of accuracy, 0.01 = 1 %
    uint32_t thread_count;  // 0 = all cores
    berth_progress_callback progress;  // instead of the compiler's; NULL = nobody is told
    void *progress_user;
} berth_quantize_settings;

// The compiler's target is what the quantised model is for; while values are looked at the model runs on this machine's
// processor. Pins, inputs and the strategy of the compiler are not looked at.
//   ownership: the caller frees the result; the compiler may go before it
//   errors:    NOT_FOUND, IO; INVALID_ARGUMENT settings, or data that do not fit or are not finite; those of compiling
//              and running; UNSUPPORTED nothing to quantise; FAILED_PRECONDITION max_drop cannot be kept
BERTH_API BERTH_MUST_USE berth_status
berth_compiler_quantize_file(berth_compiler *compiler, const char *path,
                             const berth_quantize_settings *settings, berth_quantized **out_result);
BERTH_API void berth_quantized_free(berth_quantized *result);  // NULL is fine

// Writes the ONNX model, complete or not at all. Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_quantized_save(const berth_quantized *result,
                                                           const char *path);

// All that was found out, as text for people, JSON or a picture. As long as the result.
typedef enum berth_report_form {
    BERTH_REPORT_TEXT = 0,
    BERTH_REPORT_JSON = 1,
    BERTH_REPORT_SVG = 2
} berth_report_form;
BERTH_API BERTH_MUST_USE berth_status berth_quantized_report(berth_quantized *result,
                                                             berth_report_form form,
                                                             const char **out_text);

// Later versions may add members at the end.
typedef struct berth_quantized_facts {
    uint32_t layer_count, quantized_count;  // convolutions and products; those that are 8-bit now
    double
        drop;  // of accuracy by labels, else 1 - agreement; without classes the outputs' noise over signal
    double
        agreement;  // share of rows whose class is the float model's; 0 = the output is no list of classes
    uint64_t weight_bytes, quantized_bytes;  // of the layers' weights, before and after
} berth_quantized_facts;
BERTH_API const berth_quantized_facts *berth_quantized_facts_of(const berth_quantized *result);

BERTH_END

#endif  // BERTH_QUANTIZE_H_
