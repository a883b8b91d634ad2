// Graph functions: operations on tensors in SSA form. Operations and their facts are in
// graph_ops.def.
//
// A function has one root region; operations such as if and loop hold further regions, which see
// the values of the regions around them. A region is a list of parameters, a list of operations in
// order, and its results.
#ifndef BERTH_IR_GRAPH_GRAPH_H_
#define BERTH_IR_GRAPH_GRAPH_H_

#include "ir/module.h"

typedef enum berth_op_kind {
#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    BERTH_OP_##id,
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP
    BERTH_OP_COUNT
} berth_op_kind;

enum {  // traits
    BERTH_TRAIT_ELEMENTWISE =
        1 << 0,  // output element from the elements at the same (broadcast) position
    BERTH_TRAIT_INJECTIVE =
        1 << 1,  // moves data: every output element is one input element or a constant
    BERTH_TRAIT_VIEW = 1 << 2,  // same elements in the same order under another shape
    BERTH_TRAIT_REDUCTION =
        1 << 3,  // reads many elements per output element (conv, matmul, pool, softmax, ...)
    BERTH_TRAIT_HOST = 1 << 4,  // its result lives on the host (shape_of, ...)
    BERTH_TRAIT_STRUCTURE =
        1 << 5,  // no computation of its own: constant, call, if, loop, tuple, on_device, ...
    BERTH_TRAIT_COMMUTATIVE = 1 << 6,
    BERTH_TRAIT_DATA_DEPENDENT = 1 << 7,  // output shape depends on data (nonzero, unique, ...)
    BERTH_TRAIT_RANDOM = 1 << 8,  // not a function of its inputs: never folded, never merged
    BERTH_TRAIT_EFFECT =
        1 << 9,  // does something beside its results: stays though nobody uses them
    BERTH_TRAIT_STRINGS = 1 << 10,  // operands and results may be strings
    BERTH_TRAIT_INTERPRETED =
        1 << 11,  // has no kernel: the interpreter on the host computes it (strings, vocabularies)
};

typedef struct berth_op_facts {
    const char *name;  // in the text form: "max_pool"
    const char *onnx;  // operator of the ONNX main domain, or ""
    int min_inputs;
    int max_inputs;  // -1 = any number
    int min_outputs;
    int max_outputs;  // -1 = any number
    uint32_t traits;
    uint32_t host_operands;  // bit i: operand i is a shape, axis or size that the host reads
    const char *shape_fn;    // name of the shape function (ir/infer)
} berth_op_facts;

const berth_op_facts *berth_op_facts_get(berth_op_kind kind);
bool berth_op_kind_from_name(const char *name, berth_op_kind *out_kind);
static inline bool berth_op_has(berth_op_kind kind, uint32_t traits) {
    return (berth_op_facts_get(kind)->traits & traits) != 0;
}

// Operations on sequences, maps and optional values, which only the virtual machine runs.
static inline bool berth_op_is_of_sequences(berth_op_kind kind) {
    return kind >= BERTH_OP_SEQUENCE_CONSTRUCT && kind <= BERTH_OP_MAP_VALUES;
}

typedef struct berth_op {
    berth_op_kind kind;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t region_count;
    berth_value_id *inputs;  // BERTH_NONE = optional operand left out
    berth_value_id *outputs;
    berth_region_id *regions;
    berth_attrs attrs;
    berth_loc_id loc;
    berth_device_id device;  // where it runs, when decided or demanded; 0 = free
    berth_region_id region;  // that holds it; BERTH_NONE once removed
} berth_op;

typedef struct berth_value {
    berth_type_id type;
    berth_str_id name;       // tensor name in the model, or 0
    berth_op_id op;          // that defines it; BERTH_NONE for parameters
    uint32_t index;          // among the op's outputs or the region's parameters
    berth_region_id region;  // of a parameter
    berth_device_id device;  // virtual device, memory scope included; 0 = free
} berth_value;

typedef struct berth_region {
    BERTH_VEC(berth_value_id) params;
    BERTH_VEC(berth_op_id) ops;
    BERTH_VEC(berth_value_id) results;
    berth_op_id parent;  // BERTH_NONE for the root
} berth_region;

// An operation that waits to be put into its region, before `position`.
typedef struct berth_insertion {
    berth_op_id op;
    berth_op_id position;
} berth_insertion;

typedef struct berth_graph {
    BERTH_VEC(berth_value) values;
    BERTH_VEC(berth_op) ops;
    BERTH_VEC(berth_region) regions;        // regions.data[0] is the root
    BERTH_VEC(berth_insertion) insertions;  // between berth_graph_begin_edit and _end_edit
    bool editing;
    berth_arena *arena;  // that it lives in
} berth_graph;

// Creates a graph function with an empty root region.
berth_func_id berth_graph_create(berth_module *module, const char *name, berth_loc_id loc);
// Only the body, for a function that exists (readers of modules).
berth_graph *berth_graph_new_body(berth_module *module);
// A copy of the body, for `module`, whose ids mean the same.
berth_graph *berth_graph_copy_body(berth_module *module, const berth_graph *body);
berth_graph *berth_graph_get(const berth_module *module,
                             berth_func_id function);  // NULL for other dialects

berth_value_id berth_graph_add_param(berth_module *module, berth_func_id function, const char *name,
                                     berth_type_id type);
berth_region_id berth_graph_add_region(berth_module *module, berth_func_id function,
                                       berth_op_id parent);
berth_value_id berth_graph_add_region_param(berth_module *module, berth_func_id function,
                                            berth_region_id region, const char *name,
                                            berth_type_id type);
void berth_graph_set_results(berth_module *module, berth_func_id function,
                             const berth_value_id *results, uint32_t count);
// The name of result `index` of a function that runs: its attribute "output_names" keeps it where the
// value, which may have been made under another name or be several results, has another one.
berth_str_id berth_graph_result_name(const berth_module *module, berth_func_id function,
                                     uint32_t index);
void berth_graph_set_region_results(berth_module *module, berth_func_id function,
                                    berth_region_id region, const berth_value_id *results,
                                    uint32_t count);

// Makes an operation at the end of `region`, with `output_count` new values of unknown type.
// Pointers into the graph's vectors are invalidated; ids stay.
berth_op_id berth_graph_add_op(berth_module *module, berth_func_id function, berth_region_id region,
                               berth_op_kind kind, const berth_value_id *inputs,
                               uint32_t input_count, uint32_t output_count, berth_loc_id loc);
// The same before `position` in the region that holds it.
berth_op_id berth_graph_insert_op(berth_module *module, berth_func_id function,
                                  berth_op_id position, berth_op_kind kind,
                                  const berth_value_id *inputs, uint32_t input_count,
                                  uint32_t output_count, berth_loc_id loc);
// Between begin and end, inserted operations are put aside, and end puts all of them into their
// regions at once: O(operations), where each insertion alone is. Until then the regions do not show
// them; operations inserted before the same one stand in the order of insertion.
void berth_graph_begin_edit(berth_graph *graph);
void berth_graph_end_edit(berth_graph *graph);
// One output, root region, at the end; returns the value.
berth_value_id berth_graph_op1(berth_module *module, berth_func_id function, berth_op_kind kind,
                               const berth_value_id *inputs, uint32_t input_count,
                               berth_loc_id loc);
// A constant (kind BERTH_OP_CONSTANT with attribute "value"); the tensor's data is borrowed, and
// may lie at any address.
berth_value_id berth_graph_constant(berth_module *module, berth_func_id function,
                                    berth_region_id region, const berth_tensor *tensor,
                                    berth_loc_id loc);
berth_value_id berth_graph_insert_constant(berth_module *module, berth_func_id function,
                                           berth_op_id position, const berth_tensor *tensor,
                                           berth_loc_id loc);
// The literal behind a value defined by a constant, else NULL. Its data is aligned to the element:
// where the model's file has it at another address, it is copied, once.
const berth_tensor *berth_graph_constant_of(const berth_module *module, const berth_graph *graph,
                                            berth_value_id value);

// The same without a copy: data may lie at any address, to be read with memcpy. For who wants to
// know only whether there is one, or its shape, or moves all of its bytes.
const berth_tensor *berth_graph_raw_constant_of(const berth_module *module,
                                                const berth_graph *graph, berth_value_id value);

// Unlinks an operation from its region (its id stays as a tombstone).
void berth_graph_remove_op(berth_graph *graph, berth_op_id op);
// Replaces every use of `from` (operands and region results) by `to`. O(size of the function);
// batch with berth_graph_replace_many when there are several.
void berth_graph_replace_value(berth_graph *graph, berth_value_id from, berth_value_id to);
// map[v] = replacement of v, or v itself; chains are followed. map has values.count entries.
void berth_graph_replace_many(berth_graph *graph, berth_value_id *map);
// Number of uses of every value (operands and region results); array of values.count in `arena`.
uint32_t *berth_graph_count_uses(const berth_graph *graph, berth_arena *arena);
// Whether a region is, or lies in, a branch of an `if`: it need not run. O(depth).
bool berth_graph_is_conditional(const berth_graph *graph, berth_region_id region);
// An operation that does not fit its operands is an error only where it runs. Takes what the check
// of an operation of `region` said, and returns OK (and frees it) when a branch may leave it out.
BERTH_MUST_USE berth_status berth_graph_excuse(const berth_graph *graph, berth_region_id region,
                                               berth_status status);
// Removes operations without side effects whose results nobody uses.
void berth_graph_remove_dead(berth_module *module, berth_func_id function);

#endif  // BERTH_IR_GRAPH_GRAPH_H_
