// What the steps of a quantisation share, private to toolkit/quantize. In this order:
//
//   prepare.c   constants, batch norms and biases into the layers: the model stays a float one
//   opset.c     operator versions that QuantizeLinear needs
//   equalize.c  (perhaps) channels of neighbouring layers scaled alike
//   select.c    which layers and which values can be quantised
//   observe.c   ranges and histograms of these values; scale.c: scales from them
//   weights.c   8-bit weights
//   shadow.c    the error of each layer alone; bias correction
//   emit.c      the model in QDQ form
//   evaluate.c  its results beside the float model's
#ifndef BERTH_TOOLKIT_QUANTIZE_STATE_H_
#define BERTH_TOOLKIT_QUANTIZE_STATE_H_

#include "toolkit/quantize/graph.h"
#include "toolkit/quantize/quantize.h"
#include "toolkit/quantize/run.h"
#include "toolkit/quantize/scale.h"

// An activation that may be quantised.
typedef struct berth_quantize__tensor {
    const char *name;
    berth_quantize__range range;
    berth_quantize__scale scale;
    uint32_t same_as;  // index of the one whose scale it shares; itself
} berth_quantize__tensor;

typedef struct berth_quantize__layer {
    const char *name;  // of the node
    const char *op;
    const char *output;  // of the node, before an activation function: finds it in copies; "" =
                         // of a node that is not in the main graph
    const char *input;
    const char *second;          // activation of a MatMul of two; NULL
    const berth_tensor *weight;  // f32; NULL with `second`
    const berth_tensor *bias;    // f32 [channels]; NULL = none
    uint32_t weight_operand;     // 1
    int channel_axis;            // of the weights
    int64_t channels;            // results'
    const char *kept;            // stays float, because; NULL
    // Of weights.c: integers, and a scale for all or per channel.
    const berth_tensor *quantized;  // i8
    const float *scales;
    uint32_t scale_count;
    float *correction;  // per channel, added to the bias
    // Figures (quantize.h).
    double weight_sqnr, sqnr, max_error, total_sqnr;
} berth_quantize__layer;

typedef struct berth_quantize__rank {
    const char *name;
    int rank;
} berth_quantize__rank;

typedef struct berth_quantize__state {
    berth_arena *arena;
    const berth_quantize_options *options;
    berth_onnx_edit *original;
    berth_onnx_edit *model;  // prepared
    berth_quantize__data data;
    BERTH_VEC(berth_quantize__layer) layers;
    BERTH_VEC(berth_quantize__tensor) tensors;
    BERTH_VEC(berth_quantize__rank) ranks;  // of results of MatMul and Softmax, as they were seen
    berth_onnx_names notes;
    uint32_t equalized_count;
    const int64_t *labels;  // NULL = none
    uint32_t label_count;
} berth_quantize__state;

// As it was seen in a run; -1 = it was not looked at.
int berth_quantize__rank_of(const berth_quantize__state *state, const char *name);
// A convolution or product with constant weights, and where its channels are.
typedef struct berth_quantize__affine {
    const berth_tensor *weight;
    const berth_tensor *bias;  // NULL = none
    int axis;                  // of the weights' output channels
    int64_t channels;
    int result_rank;
} berth_quantize__affine;
// *out_found: `node` is a Conv, ConvTranspose or Gemm of that form.
BERTH_MUST_USE berth_status berth_quantize__read_affine(const berth_quantize__graph *graph,
                                                        const berth_onnx_node *node,
                                                        bool *out_found,
                                                        berth_quantize__affine *out);
void berth_quantize__set_input(berth_arena *arena, berth_onnx_node *node, uint32_t index,
                               const char *name);
// A note for people in the report.
void berth_quantize__note(berth_quantize__state *state, const char *format, ...) BERTH_PRINTF(2, 3);

BERTH_MUST_USE berth_status berth_quantize__prepare(berth_quantize__state *state);
BERTH_MUST_USE berth_status berth_quantize__raise_opset(berth_quantize__state *state);
// All pairs of layers that can be; equalized_count says how many.
BERTH_MUST_USE berth_status berth_quantize__equalize(berth_quantize__state *state);
BERTH_MUST_USE berth_status berth_quantize__find_layers(berth_quantize__state *state);
BERTH_MUST_USE berth_status berth_quantize__observe(berth_quantize__state *state);
BERTH_MUST_USE berth_status berth_quantize__quantize_weights(berth_quantize__state *state);
BERTH_MUST_USE berth_status berth_quantize__measure_layers(berth_quantize__state *state);
// Runs the original model and the quantised one. `final`: with every layer's total error.
BERTH_MUST_USE berth_status berth_quantize__evaluate(berth_quantize__state *state, bool final,
                                                     berth_quantize_result *result);

// Which values get a QuantizeLinear with the layers quantised that are not kept: per value of `graph`,
// which is of the state's model or a copy; `nodes`, per node: layers, and what computes between
// quantised values.
typedef struct berth_quantize__selection {
    bool *needed;
    bool *produced;  // by a quantised node
    bool *nodes;
} berth_quantize__selection;
berth_quantize__selection berth_quantize__select(berth_arena *arena,
                                                 const berth_quantize__state *state,
                                                 const berth_quantize__graph *graph);
// Whether nodes of this operator are layers.
bool berth_quantize__is_layer_type(const char *op_type, const char *domain);
// inside.c: adds the layers in a node's graphs, which stay float.
void berth_quantize__find_inside(berth_quantize__state *state, const berth_onnx_node *node);
// Only moves values or takes the largest: works on integers, with one scale.
bool berth_quantize__passes(const berth_onnx_node *node);
// By its name; NULL.
berth_quantize__tensor *berth_quantize__tensor_of(const berth_quantize__state *state,
                                                  const char *name);
// The layer whose node this is; NULL.
berth_quantize__layer *berth_quantize__layer_of(const berth_quantize__state *state,
                                                const berth_onnx_node *node);

// The model in QDQ form, with the layers quantised that are not kept.
berth_onnx_edit *berth_quantize__emit(berth_arena *arena, const berth_quantize__state *state,
                                      uint32_t *out_tensor_count);

// Parts of emit.c, for shadow.c as well: names and nodes go to the end of the graph's model.
const char *berth_quantize__emit_pair(const berth_quantize__graph *graph, const char *from,
                                      const char *to, const berth_quantize__scale *scale);
void berth_quantize__emit_weights(const berth_quantize__graph *graph,
                                  const berth_quantize__layer *layer, float input_scale,
                                  berth_onnx_node *node);

#endif  // BERTH_TOOLKIT_QUANTIZE_STATE_H_
