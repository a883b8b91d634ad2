// The parts of onnx.proto3 that the importer reads, as plain structs (private to compiler/onnx).
// Tensors and subgraphs stay views into the file; names are copied. Everything lives in the arena
// given to the parser.
#ifndef BERTH_COMPILER_ONNX_MODEL_H_
#define BERTH_COMPILER_ONNX_MODEL_H_

#include "base/arena.h"
#include "base/limits.h"
#include "base/wire.h"

#define ONNX_MAX_NODES (1u << 20)  // in the whole file, and again after inlining functions
#define ONNX_MAX_GRAPH_DEPTH 8     // graphs in attributes of nodes in graphs in attributes ...

typedef struct onnx_graph onnx_graph;

// AttributeProto.AttributeType
typedef enum onnx_attr_type {
    ONNX_ATTR_UNDEFINED = 0,
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT = 2,
    ONNX_ATTR_STRING = 3,
    ONNX_ATTR_TENSOR = 4,
    ONNX_ATTR_GRAPH = 5,
    ONNX_ATTR_FLOATS = 6,
    ONNX_ATTR_INTS = 7,
    ONNX_ATTR_STRINGS = 8,
    ONNX_ATTR_SPARSE_TENSOR = 11,
    ONNX_ATTR_TYPE_PROTO = 13,
} onnx_attr_type;

typedef struct onnx_attr {
    const char *name;
    onnx_attr_type type;
    const char *reference;  // "" or the attribute of the enclosing function that gives the value
    double f;
    int64_t i;
    const char *s;
    berth_wire tensor;        // TENSOR, SPARSE_TENSOR
    const onnx_graph *graph;  // GRAPH
    BERTH_VEC(double) floats;
    BERTH_VEC(int64_t) ints;
    BERTH_VEC(const char *) strings;
} onnx_attr;

typedef struct onnx_node {
    const char *name;  // never "": OpType_index when the model has none
    const char *op_type;
    const char *domain;    // "" = ONNX's own
    const char *overload;  // of a function that has several; "" = none
    BERTH_VEC(const char *) inputs;
    BERTH_VEC(const char *) outputs;
    BERTH_VEC(onnx_attr) attrs;
} onnx_node;

typedef struct onnx_dim {
    int64_t extent;  // of a known one, >= 0
    bool known;
    const char *param;  // symbol; "" = none: any extent
} onnx_dim;

// The numbers stand in attributes "input_kinds" and "output_kinds" of @main.
typedef enum onnx_value_kind {
    ONNX_VALUE_TENSOR,  // or nothing is said
    ONNX_VALUE_SEQUENCE,
    ONNX_VALUE_OPTIONAL,           // of a tensor
    ONNX_VALUE_OPTIONAL_SEQUENCE,  // of a sequence
    ONNX_VALUE_OTHER,
    ONNX_VALUE_MAPS,  // a sequence of maps
    ONNX_VALUE_MAP,
} onnx_value_kind;

typedef struct onnx_value {
    const char *name;
    onnx_value_kind kind;
    bool is_tensor;   // else a sequence, map, optional, sparse tensor or nothing
    bool has_type;    // not nothing
    int64_t element;  // TensorProto.DataType
    bool has_shape;
    BERTH_VEC(onnx_dim) dims;
} onnx_value;

struct onnx_graph {
    const char *name;
    BERTH_VEC(onnx_node) nodes;
    BERTH_VEC(berth_wire) initializers;         // TensorProto
    BERTH_VEC(berth_wire) sparse_initializers;  // SparseTensorProto
    BERTH_VEC(onnx_value) inputs;
    BERTH_VEC(onnx_value) outputs;
    BERTH_VEC(onnx_value) value_infos;  // what the model says of values inside
};

typedef struct onnx_opset {
    const char *domain;
    int64_t version;
} onnx_opset;
typedef BERTH_VEC(onnx_opset) onnx_opsets;

// FunctionProto: an operator made of others.
typedef struct onnx_function {
    const char *name;
    const char *domain;
    const char *overload;
    BERTH_VEC(const char *) inputs;
    BERTH_VEC(const char *) outputs;
    BERTH_VEC(onnx_attr) defaults;
    onnx_graph body;  // nodes only
    onnx_opsets opsets;
} onnx_function;

typedef struct onnx_model {
    int64_t ir_version;
    bool has_graph;
    onnx_graph graph;
    onnx_opsets opsets;
    BERTH_VEC(onnx_function) functions;
} onnx_model;

// `file` is for messages; `limits` NULL = those above. Errors: INVALID_ARGUMENT broken message;
// OUT_OF_RANGE more nodes or deeper graphs than the limits, or reading takes too long.
BERTH_MUST_USE berth_status onnx_model_parse(berth_arena *arena, const char *file, const void *data,
                                             size_t size_bytes, const berth_limits *limits,
                                             onnx_model *out_model);

const onnx_attr *onnx_attr_find(const onnx_node *node, const char *name);   // NULL when absent
int64_t onnx_opset_version(const onnx_opsets *opsets, const char *domain);  // 0 when not imported

#endif  // BERTH_COMPILER_ONNX_MODEL_H_
