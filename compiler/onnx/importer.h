// State of one import and the toolbox of the operator builders (private to compiler/onnx).
#ifndef BERTH_COMPILER_ONNX_IMPORTER_H_
#define BERTH_COMPILER_ONNX_IMPORTER_H_

#include "base/narrow.h"
#include "base/tensor_proto.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/model.h"
#include "ir/graph/graph.h"

// Opsets whose operators the importer knows. Newer ones may have changed operators it would
// misread.
#define ONNX_MIN_OPSET 1
#define ONNX_MAX_OPSET 28

// Values by name; a subgraph's scope sees those around it, a function body's does not.
typedef struct onnx_scope onnx_scope;
struct onnx_scope {
    const onnx_scope *parent;
    uint32_t *slots;  // open addressing: indices into `entries` + 1
    uint32_t slot_count;
    BERTH_VEC(struct onnx_scope_entry {
        berth_str_id name;
        uint32_t value;
    })
    entries;
};
void onnx_scope_add(berth_arena *arena, onnx_scope *scope, berth_str_id name, uint32_t value);
uint32_t onnx_scope_find_here(const onnx_scope *scope,
                              berth_str_id name);                      // BERTH_NONE when absent
uint32_t onnx_scope_find(const onnx_scope *scope, berth_str_id name);  // parents included

typedef struct onnx_mapped_file {
    const char *path;
    const uint8_t *data;
    size_t size_bytes;
} onnx_mapped_file;

typedef struct onnx_call onnx_call;

typedef struct onnx_importer {
    berth_arena *arena;    // the module's
    berth_arena *scratch;  // of this import
    const berth_import_options *options;
    const char *file;    // as the user wrote it, for locations
    const char *folder;  // of external data; NULL = none allowed
    onnx_model model;
    berth_module *module;
    berth_func_id function;
    BERTH_VEC(onnx_mapped_file) mapped;  // external data files
    BERTH_VEC(berth_dim_binding) dims;   // symbols fixed by options and bound inputs
    BERTH_VEC(const char *) dim_inputs;  // per dimension that a bound input fixed, which
    uint32_t given_dims;                 // of `dims`: those from options, which come first
    berth_limit_watch built_nodes;       // after inlining functions
    // Where nodes are being built:
    berth_region_id region;
    onnx_scope *scope;
    int64_t opset;
    const onnx_node
        *frame;  // the node whose function is being inlined, attributes resolved; NULL outside
    const onnx_function *frame_function;
    onnx_scope *functions;       // of the model, by domain and name: index into model.functions
    onnx_scope replaced;         // initializers in whose place the caller has inputs or constants
    const onnx_scope *declared;  // name to index into declared_values; NULL in subgraphs, functions
    BERTH_VEC(const onnx_value *) declared_values;
    const char *prefix;  // "caller/" for node names inside functions
    int call_depth;
    const onnx_node *refused;   // the last one that onnx_call_fail called UNSUPPORTED
    uint32_t unseeded;          // random operators without a seed so far
    int32_t element_read;       // ONNX's element type of the literal that was read last
    BERTH_VEC(uint8_t) narrow;  // by value: ONNX's element type where it is a narrow one, else 0
} onnx_importer;

// How one operator type is imported (ops_*.c; the table is rows.c).
typedef struct onnx_row {
    const char *op_type;
    int first_opset;  // whose form of the operator is read
    berth_status (*build)(onnx_call *call);
    // Attributes as "name:kind ..." (kinds as in rows.c); for unsupported operators the reason.
    const char *attrs;
} onnx_row;
// NULL when unknown. Of another domain than ONNX's own: the row of a registered operation
// (ir/extend.h).
const onnx_row *onnx_row_find(const onnx_node *node);
const onnx_row *onnx_domain_row_find(const onnx_node *node);  // rows_domains.c

// One node being built. Inputs are resolved (BERTH_NONE = left out, trailing ones trimmed); build
// sets outputs.
struct onnx_call {
    onnx_importer *im;
    const onnx_node *node;
    const onnx_row *row;
    berth_loc_id loc;
    berth_value_id *inputs;
    uint32_t input_count;
    berth_value_id *outputs;  // output_count of them, BERTH_NONE at first
    uint32_t output_count;    // as listed, trailing unused ones trimmed
};

// import.c: nodes of a graph in order, into the current region and scope.
BERTH_MUST_USE berth_status onnx_build_nodes(onnx_importer *im, const onnx_graph *graph);
// Builds a subgraph into `region` with its own scope; its inputs become region parameters, its
// outputs the results.
BERTH_MUST_USE berth_status onnx_build_subgraph(onnx_importer *im, const onnx_graph *graph,
                                                berth_region_id region);
// Builds a subgraph where the node stands, with values for its inputs, and gives those of its
// outputs. Errors: INVALID_ARGUMENT when it has another number of either.
BERTH_MUST_USE berth_status onnx_inline_subgraph(onnx_call *call, const onnx_graph *graph,
                                                 const berth_value_id *inputs, uint32_t input_count,
                                                 berth_value_id *outputs, uint32_t output_count);
// sort.c: order in which every value is made before it is used. `known` tells names from outside.
// Errors: INVALID_ARGUMENT (a cycle, a value nobody makes, one made twice).
BERTH_MUST_USE berth_status onnx_sort_nodes(onnx_importer *im, const onnx_graph *graph,
                                            uint32_t **out_order);
// unsupported.c: UNSUPPORTED with all operators that cannot be imported, but for those in branches
// of an If, which may not run (they become BERTH_OP_NOT_IMPORTED).
BERTH_MUST_USE berth_status onnx_check_operators(onnx_importer *im);
// Why a node that calls no function cannot be imported, NULL when it can.
const char *onnx_missing_reason(const onnx_node *node);
// The model-local function a node calls, or NULL. Once before: onnx_index_functions.
void onnx_index_functions(onnx_importer *im);
const onnx_function *onnx_find_function(const onnx_importer *im, const onnx_node *node);
// old_forms.c: attributes of opsets 1 to 5 as those of opset 6.
void onnx_renew_attrs(onnx_importer *im, onnx_node *node);

// tensors.c: literals; data is borrowed from the file where aligned, and for a constant of the
// graph (berth_graph_raw_constant_of) also elsewhere.
BERTH_MUST_USE berth_status onnx_read_tensor(onnx_importer *im, const berth_wire *wire,
                                             berth_tensor *out_tensor, const char **out_name);
BERTH_MUST_USE berth_status onnx_read_constant(onnx_importer *im, const berth_wire *wire,
                                               berth_tensor *out_tensor, const char **out_name);
// The same in two steps: all but what lies in another file; then that, too.
BERTH_MUST_USE berth_status onnx_parse_tensor(onnx_importer *im, const berth_wire *wire,
                                              berth_tensor_proto *out_proto);
BERTH_MUST_USE berth_status onnx_read_content(onnx_importer *im, berth_tensor_proto *proto,
                                              berth_tensor *out_tensor);
BERTH_MUST_USE berth_status onnx_read_sparse_tensor(onnx_importer *im, const berth_wire *wire,
                                                    berth_tensor *out_tensor,
                                                    const char **out_name);
// narrow.c: values whose elements are kept as bytes (base/narrow.h). Which they are is known here
// only: the module has u8 and i8.
const berth_narrow_type *onnx_narrow_of(const onnx_importer *im, berth_value_id value);  // or NULL
void onnx_set_narrow(onnx_importer *im, berth_value_id value, int64_t element);
// Before a node is built: fails where it cannot take narrow inputs.
BERTH_MUST_USE berth_status onnx_check_narrow(const onnx_call *call);
// After: results that are moved inputs are as narrow as those.
void onnx_pass_narrow(const onnx_call *call);
// types.c: inputs of the graph (parameters, or constants when bound as such).
// Gives the dimensions of inputs that have no name one: "INPUT.AXIS".
void onnx_name_dims(onnx_importer *im, onnx_graph *graph);
BERTH_MUST_USE berth_status onnx_collect_dims(onnx_importer *im, const onnx_graph *graph,
                                              const onnx_scope *fixed);
// What the caller gives for an input of this name, or in place of an initializer; NULL = nothing.
const berth_input_binding *onnx_binding_of(const onnx_importer *im, const char *name);

// initializers.c: constants of a graph, in the scope.
BERTH_MUST_USE berth_status onnx_build_initializers(onnx_importer *im, const onnx_graph *graph);
// An initializer of the model's graph that is also an input and for which the caller has a value: it is
// an input like others then.
bool onnx_is_replaced(const onnx_importer *im, const char *name);
// What the options ask for (berth_import_options.overridables).
BERTH_MUST_USE berth_status onnx_collect_overridables(onnx_importer *im, const onnx_graph *graph);

BERTH_MUST_USE berth_status onnx_build_inputs(onnx_importer *im, const onnx_graph *graph);
// ONNX's name of an element type, TensorProto.DataType: "float8e4m3fn"; "unknown".
const char *onnx_element_name(int64_t element);
BERTH_MUST_USE berth_status onnx_value_type(onnx_importer *im, const onnx_value *value,
                                            const char *what, berth_type_id *out_type);

// What the main graph declares of its outputs and of values inside, for onnx_keep_declared.
void onnx_collect_declared(onnx_importer *im, const onnx_graph *graph, onnx_scope *declared);
// Leaves the declared shapes of values (BERTH_NONE: none) with the operations that make them (passes/check.h).
void onnx_keep_declared(onnx_importer *im, const berth_str_id *names, const berth_value_id *values,
                        uint32_t count);

// ---- toolbox of the builders (call.c) ----

// A failure with the node's location.
BERTH_MUST_USE berth_status onnx_call_fail(const onnx_call *call, berth_code code,
                                           const char *format, ...) BERTH_PRINTF(3, 4);
bool onnx_call_has(const onnx_call *call, uint32_t input);
berth_type onnx_call_type(const onnx_call *call,
                          berth_value_id value);  // rank -1, dtype NONE when unknown
const berth_tensor *onnx_call_constant(const onnx_call *call, berth_value_id value);

// Attributes of the node (references to function attributes are resolved).
const onnx_attr *onnx_call_attr(const onnx_call *call, const char *name);
int64_t onnx_call_int(const onnx_call *call, const char *name, int64_t fallback);
double onnx_call_float(const onnx_call *call, const char *name, double fallback);
const char *onnx_call_string(const onnx_call *call, const char *name, const char *fallback);

// Operations: make one, set attributes, then infer its types.
berth_op_id onnx_call_op(onnx_call *call, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t input_count, uint32_t output_count);
berth_attrs *onnx_call_op_attrs(const onnx_call *call, berth_op_id op);
// Copies the node's attributes that the row lists without '-'.
BERTH_MUST_USE berth_status onnx_call_copy_attrs(onnx_call *call, berth_op_id op);
BERTH_MUST_USE berth_status onnx_call_infer(onnx_call *call, berth_op_id op);
berth_value_id onnx_call_result(const onnx_call *call, berth_op_id op, uint32_t index);
// One result, attributes none, inferred.
BERTH_MUST_USE berth_status onnx_call_op1(onnx_call *call, berth_op_kind kind,
                                          const berth_value_id *inputs, uint32_t input_count,
                                          berth_value_id *out_value);
// The node as one operation: operands given, attributes copied, its results are the node's outputs.
BERTH_MUST_USE berth_status onnx_call_finish(onnx_call *call, berth_op_kind kind,
                                             const berth_value_id *inputs, uint32_t input_count);

berth_value_id onnx_call_literal(onnx_call *call, const berth_tensor *tensor);
berth_value_id onnx_call_ints(onnx_call *call, const int64_t *values,
                              uint32_t count);                                      // i64[count]
berth_value_id onnx_call_number(onnx_call *call, berth_dtype dtype, double value);  // scalar
// The ints of an attribute as a constant operand; BERTH_NONE when the node lacks it.
berth_value_id onnx_call_attr_operand(onnx_call *call, const char *name);

#endif  // BERTH_COMPILER_ONNX_IMPORTER_H_
