// The data sets that a model is calibrated with, private to toolkit/quantize.
#ifndef BERTH_TOOLKIT_QUANTIZE_DATA_H_
#define BERTH_TOOLKIT_QUANTIZE_DATA_H_

#include "compiler/onnx/edit.h"

typedef struct berth_quantize__set {
    const char *name;
    const char *const *files;  // per input of the model
} berth_quantize__set;

typedef struct berth_quantize__data {
    const char *const *inputs;  // names
    uint32_t input_count;
    const berth_quantize__set *sets;
    uint32_t set_count;
} berth_quantize__data;

// Finds the sets in `path`: a file is one, and each file (for models with one input) or sub-folder of a
// folder, in the order of their names. A sub-folder holds input_0, input_1, ... or files named as the
// inputs are (other characters than letters, digits, '.', '-' may be '_'), .pb or .npy.
// Errors: NOT_FOUND, IO, INVALID_ARGUMENT no or wrong files.
BERTH_MUST_USE berth_status berth_quantize__data_find(berth_arena *arena,
                                                      const berth_onnx_edit *model,
                                                      const char *path,
                                                      berth_quantize__data *out_data);

// Reads a set's tensors, one per input, in `arena`. Errors: those of tensor files; INVALID_ARGUMENT
// values that are not finite.
BERTH_MUST_USE berth_status berth_quantize__data_read(berth_arena *arena,
                                                      const berth_quantize__data *data,
                                                      uint32_t set, berth_tensor *out_inputs);

// Integers from a .npy or .pb file, or from text with white space between them.
BERTH_MUST_USE berth_status berth_quantize__labels_read(berth_arena *arena, const char *path,
                                                        const int64_t **out_labels,
                                                        uint32_t *out_count);

#endif  // BERTH_TOOLKIT_QUANTIZE_DATA_H_
