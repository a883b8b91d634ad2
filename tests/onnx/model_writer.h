// Writes small ONNX models for tests, field by field, so that broken ones can be written too.
#ifndef BERTH_TESTS_ONNX_MODEL_WRITER_H_
#define BERTH_TESTS_ONNX_MODEL_WRITER_H_

#include <stddef.h>
#include <stdint.h>

typedef struct pb {
    uint8_t data[16384];
    size_t size;
} pb;

void pb_varint(pb *out, uint64_t value);
void pb_int(pb *out, uint32_t field, int64_t value);
void pb_bytes(pb *out, uint32_t field, const void *data, size_t size);
void pb_text(pb *out, uint32_t field, const char *text);
void pb_message(pb *out, uint32_t field, const pb *message);

// GraphProto parts. Dims below -1 are written as they are; INT64_MIN + k is the symbol "Nk",
// for k = 999 "?", for k = 998 "=2*(".
void graph_node(pb *graph, const char *op_type, const char *name, const char *const *inputs,
                const char *const *outputs, const pb *attributes, int attribute_count);
void graph_node1(pb *graph, const char *op_type, const char *name, const char *a, const char *b,
                 const char *out);
void graph_value(pb *graph, uint32_t field, const char *name, int element, int rank,
                 const int64_t *dims);
void graph_input(pb *graph, const char *name, int rank, const int64_t *dims);   // float
void graph_output(pb *graph, const char *name, int rank, const int64_t *dims);  // float
void graph_floats(pb *graph, const char *name, int64_t count,
                  size_t bytes_present);  // initializer of ones
pb attr_int(const char *name, int64_t value);
pb attr_ints(const char *name, const int64_t *values, int count);
pb attr_floats(const char *name, const float *values, int count);
pb attr_graph(const char *name, const pb *graph);
pb model_of(const pb *graph, int64_t opset);

#endif  // BERTH_TESTS_ONNX_MODEL_WRITER_H_
