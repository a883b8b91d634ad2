// Files of values that are no tensors: SequenceProto and OptionalProto, as in ONNX's test data.
#ifndef BERTH_TOOLKIT_VALUE_FILE_H_
#define BERTH_TOOLKIT_VALUE_FILE_H_

#include "base/tensor.h"

// As attributes "input_kinds" and "output_kinds" of an imported @main say (compiler/onnx/model.h).
typedef enum berth_value_kind {
    BERTH_VALUE_TENSOR,
    BERTH_VALUE_SEQUENCE,           // of tensors
    BERTH_VALUE_OPTIONAL,           // a tensor or nothing
    BERTH_VALUE_OPTIONAL_SEQUENCE,  // a sequence of tensors or nothing
    BERTH_VALUE_OTHER,
    BERTH_VALUE_MAPS,  // a sequence of maps
    BERTH_VALUE_MAP,
} berth_value_kind;

typedef struct berth_test_value {
    berth_value_kind kind;
    bool present;               // of an optional value; true for others
    const berth_tensor *items;  // elements of the sequence; one for tensors
    uint32_t item_count;
} berth_test_value;

// Reads a file of the kind given. Everything lives in `arena`. Errors: NOT_FOUND, IO,
// INVALID_ARGUMENT, UNSUPPORTED (sequences of sequences, maps), all naming the path.
BERTH_MUST_USE berth_status berth_value_file_read(berth_arena *arena, const char *path,
                                                  berth_value_kind kind,
                                                  berth_test_value *out_value);

#endif  // BERTH_TOOLKIT_VALUE_FILE_H_
