// An ONNX model as it stands in its file, to be changed and written again: nodes and constants of the
// main graph can be added, changed and removed; everything else (functions, metadata, value types,
// fields that are unknown here) goes into the new file byte for byte. Who only reads models imports
// them (compiler/onnx/import.h).
//
//   berth_onnx_edit *model;
//   BERTH_TRY(berth_onnx_edit_read(arena, "model.onnx", &model));
//   berth_onnx_node *node = berth_onnx_edit_add(model, "Relu", "relu_1");
//   berth_vec_push(arena, &node->inputs, "x");
//   berth_vec_push(arena, &node->outputs, "y");
//   BERTH_TRY(berth_onnx_edit_write(arena, model, &bytes));
//
// Everything lives in the arena given to read; call all of it inside berth_arena_try of that arena.
#ifndef BERTH_COMPILER_ONNX_EDIT_H_
#define BERTH_COMPILER_ONNX_EDIT_H_

#include "base/arena.h"
#include "base/tensor.h"

typedef struct berth_onnx_bytes {
    const uint8_t *data;
    size_t size_bytes;
} berth_onnx_bytes;
typedef BERTH_VEC(berth_onnx_bytes) berth_onnx_byte_list;
typedef BERTH_VEC(const char *) berth_onnx_names;

typedef struct berth_onnx_node {
    const char *name;  // "" = none
    const char *op_type;
    const char *domain;  // "" = ONNX's own
    berth_onnx_names inputs;
    berth_onnx_names outputs;
    berth_onnx_byte_list attrs;  // AttributeProto each
    berth_onnx_byte_list rest;   // other fields of the NodeProto, tags included
    bool has_graphs;             // in attributes
} berth_onnx_node;

// An initializer. Its content is read when asked for (berth_onnx_edit_tensor).
typedef struct berth_onnx_constant {
    const char *name;
    berth_onnx_bytes source;  // TensorProto; empty = a new one
    berth_tensor tensor;      // of a new one, or once it was read
    bool is_read;
    berth_arena *arena;  // of the first model that has it: copies share it
} berth_onnx_constant;

// An input or output of the graph.
typedef struct berth_onnx_port {
    const char *name;
    berth_onnx_bytes source;  // ValueInfoProto
} berth_onnx_port;

typedef struct berth_onnx_opset {
    const char *domain;  // "" = ONNX's own
    int64_t version;
} berth_onnx_opset;

typedef struct berth_onnx_edit {
    berth_arena *arena;
    const char *path;    // for messages
    const char *folder;  // of external data; NULL = none is read
    int64_t ir_version;
    BERTH_VEC(berth_onnx_opset) opsets;
    BERTH_VEC(berth_onnx_node *) nodes;  // in the order of the file
    BERTH_VEC(berth_onnx_constant *) constants;
    BERTH_VEC(berth_onnx_port) inputs;
    BERTH_VEC(berth_onnx_port) outputs;
    berth_onnx_byte_list graph_rest;  // other fields of the GraphProto, tags included
    berth_onnx_byte_list model_rest;  // of the ModelProto
} berth_onnx_edit;

// Errors: NOT_FOUND, IO, INVALID_ARGUMENT (no ONNX model, broken message) with the file's name.
BERTH_MUST_USE berth_status berth_onnx_edit_read(berth_arena *arena, const char *path,
                                                 berth_onnx_edit **out_model);
// The same from memory that outlives the arena. `path` is for messages, `folder` where external data is
// (NULL = none is read).
BERTH_MUST_USE berth_status berth_onnx_edit_read_memory(berth_arena *arena, const void *data,
                                                        size_t size_bytes, const char *path,
                                                        const char *folder,
                                                        berth_onnx_edit **out_model);
// A copy whose nodes and lists can be changed apart from the model's, in `arena`, which the model must
// outlive.
berth_onnx_edit *berth_onnx_edit_copy(berth_arena *arena, const berth_onnx_edit *model);

// The whole file, in one piece of `arena`. Constants from other files are written into it.
// Errors: OUT_OF_RANGE more than the 2 GiB that a message may have; those of reading constants.
BERTH_MUST_USE berth_status berth_onnx_edit_write(berth_arena *arena, berth_onnx_edit *model,
                                                  berth_onnx_bytes *out_bytes);

// A node without inputs, outputs and attributes at the end of the graph.
berth_onnx_node *berth_onnx_edit_add(berth_onnx_edit *model, const char *op_type, const char *name);
// A new constant; the data is borrowed.
void berth_onnx_edit_add_constant(berth_onnx_edit *model, const char *name,
                                  const berth_tensor *tensor);
berth_onnx_constant *berth_onnx_edit_constant(const berth_onnx_edit *model, const char *name);
// Also from the inputs, where models of IR versions below 4 list their constants.
void berth_onnx_edit_remove_constant(berth_onnx_edit *model, const char *name);
// The index among the graph's outputs of a value, which becomes the last of them where it is none; nothing
// is said of its type then.
uint32_t berth_onnx_edit_output(berth_onnx_edit *model, const char *name);

// A constant's content, aligned for its type. Errors: those of tensor files and external data.
BERTH_MUST_USE berth_status berth_onnx_edit_tensor(berth_onnx_edit *model,
                                                   berth_onnx_constant *constant,
                                                   const berth_tensor **out_tensor);

// Version of ONNX's own operators; 0 = the model imports none.
int64_t berth_onnx_edit_opset(const berth_onnx_edit *model);
void berth_onnx_edit_set_opset(berth_onnx_edit *model, int64_t version);

// Attributes: of a broken one, or one of another type, what absent ones give.
bool berth_onnx_node_has(const berth_onnx_node *node, const char *attr);
int64_t berth_onnx_node_int(const berth_onnx_node *node, const char *attr, int64_t absent);
double berth_onnx_node_float(const berth_onnx_node *node, const char *attr, double absent);
// Count of the list's elements, of which at most `most` are stored; -1 = absent.
int berth_onnx_node_ints(const berth_onnx_node *node, const char *attr, int64_t *out, int most);
int berth_onnx_node_floats(const berth_onnx_node *node, const char *attr, float *out, int most);
void berth_onnx_node_set_int(berth_arena *arena, berth_onnx_node *node, const char *attr,
                             int64_t value);  // replaces
void berth_onnx_node_remove(berth_onnx_node *node, const char *attr);
// The tensor of attribute "value" of a Constant node. False when it has none.
bool berth_onnx_node_tensor(const berth_onnx_node *node, const char *attr,
                            berth_onnx_bytes *out_proto);
bool berth_onnx_node_is(const berth_onnx_node *node, const char *op_type);  // of ONNX's own domain

#endif  // BERTH_COMPILER_ONNX_EDIT_H_
