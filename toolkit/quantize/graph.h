// Who makes and who uses the values of an edited model, private to toolkit/quantize.
#ifndef BERTH_TOOLKIT_QUANTIZE_GRAPH_H_
#define BERTH_TOOLKIT_QUANTIZE_GRAPH_H_

#include "base/str.h"
#include "compiler/onnx/edit.h"

#define BERTH_QUANTIZE__NONE UINT32_MAX

typedef struct berth_quantize__value {
    const char *name;
    uint32_t producer;  // a node's index; NONE = an input, a constant, or nothing
    uint32_t user;      // the first node that reads it; NONE
    uint32_t use_count;
    berth_onnx_constant *constant;  // NULL = it is none
    bool is_input;
    bool is_pinned;  // an output of the model, or read inside of a node's graphs: it keeps its name
    bool is_output;
} berth_quantize__value;

// Valid until the model changes.
typedef struct berth_quantize__graph {
    berth_onnx_edit *model;
    berth_interner *names;
    BERTH_VEC(berth_quantize__value) values;
} berth_quantize__graph;

berth_quantize__graph berth_quantize__graph_make(berth_arena *arena, berth_onnx_edit *model);
// The value of a name that the model uses; else, and for "", one that nobody makes.
berth_quantize__value *berth_quantize__value_of(const berth_quantize__graph *graph,
                                                const char *name);
// Input `index` of a node; nobody's value where it has none.
berth_quantize__value *berth_quantize__input(const berth_quantize__graph *graph,
                                             const berth_onnx_node *node, uint32_t index);
// The only node that reads output 0 of `node`, if that is its only use; NULL.
berth_onnx_node *berth_quantize__only_user(const berth_quantize__graph *graph,
                                           const berth_onnx_node *node);
// The content of a constant of f32 that is an input of `node`, or NULL.
BERTH_MUST_USE berth_status berth_quantize__constant(const berth_quantize__graph *graph,
                                                     const berth_onnx_node *node, uint32_t index,
                                                     const berth_tensor **out_tensor);
// A name that the model does not use: STEM_SUFFIX, with a number where that is taken.
const char *berth_quantize__new_name(const berth_quantize__graph *graph, const char *stem,
                                     const char *suffix);
// What messages call a node.
const char *berth_quantize__node_name(const berth_onnx_node *node);

#endif  // BERTH_TOOLKIT_QUANTIZE_GRAPH_H_
