// Newer versions of ONNX's operators, where a model is older than QuantizeLinear (10; with scales per
// channel 13): only operators that mean the same in both, or of which the newer form can be written
// with certainty (onnx/docs/Changelog.md). Everything else is refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolkit/quantize/state.h"

enum { MOST_AXES = 16 };

// Sorted; the same from version 7 to 13, attributes that came since have defaults that mean the same.
static const char *const unchanged[] = {"Abs",
                                        "Acos",
                                        "Acosh",
                                        "Add",
                                        "And",
                                        "ArgMax",
                                        "ArgMin",
                                        "Asin",
                                        "Asinh",
                                        "Atan",
                                        "Atanh",
                                        "AveragePool",
                                        "Cast",
                                        "Ceil",
                                        "Compress",
                                        "Concat",
                                        "Constant",
                                        "ConstantOfShape",
                                        "Conv",
                                        "ConvInteger",
                                        "ConvTranspose",
                                        "Cos",
                                        "Cosh",
                                        "DepthToSpace",
                                        "DequantizeLinear",
                                        "Div",
                                        "Elu",
                                        "Equal",
                                        "Erf",
                                        "Exp",
                                        "Expand",
                                        "EyeLike",
                                        "Flatten",
                                        "Floor",
                                        "GRU",
                                        "Gather",
                                        "Gemm",
                                        "GlobalAveragePool",
                                        "GlobalLpPool",
                                        "GlobalMaxPool",
                                        "Greater",
                                        "HardSigmoid",
                                        "Identity",
                                        "InstanceNormalization",
                                        "IsInf",
                                        "IsNaN",
                                        "LRN",
                                        "LSTM",
                                        "LeakyRelu",
                                        "Less",
                                        "Log",
                                        "LpNormalization",
                                        "LpPool",
                                        "MatMul",
                                        "MatMulInteger",
                                        "Max",
                                        "MaxPool",
                                        "MaxRoiPool",
                                        "MaxUnpool",
                                        "Mean",
                                        "Min",
                                        "Mod",
                                        "Mul",
                                        "Neg",
                                        "NonMaxSuppression",
                                        "NonZero",
                                        "Not",
                                        "OneHot",
                                        "Or",
                                        "PRelu",
                                        "Pow",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "QuantizeLinear",
                                        "RNN",
                                        "Reciprocal",
                                        "ReduceL1",
                                        "ReduceL2",
                                        "ReduceLogSum",
                                        "ReduceLogSumExp",
                                        "ReduceMax",
                                        "ReduceMean",
                                        "ReduceMin",
                                        "ReduceProd",
                                        "ReduceSumSquare",
                                        "Relu",
                                        "Reshape",
                                        "RoiAlign",
                                        "Selu",
                                        "Shape",
                                        "Shrink",
                                        "Sigmoid",
                                        "Sign",
                                        "Sin",
                                        "Sinh",
                                        "Size",
                                        "Softplus",
                                        "Softsign",
                                        "SpaceToDepth",
                                        "Sqrt",
                                        "Sub",
                                        "Sum",
                                        "Tan",
                                        "Tanh",
                                        "ThresholdedRelu",
                                        "Tile",
                                        "Transpose",
                                        "Where",
                                        "Xor"};

typedef struct raise {
    berth_quantize__state *state;
    berth_quantize__graph graph;
    int64_t from, to;
} raise_job;

static bool crosses(const raise_job *job, int64_t version) {
    return job->from < version && version <= job->to;
}

static void add_input(raise_job *job, berth_onnx_node *node, const char *attr, berth_dtype dtype,
                      int rank, const double *values, int count) {
    berth_arena *arena = job->graph.model->arena;
    int64_t dims = count;
    berth_tensor tensor = berth_tensor_create(arena, dtype, rank, &dims);
    for (int i = 0; i < count; ++i) berth_tensor_set_f64(&tensor, i, values[i]);
    const char *name = berth_quantize__new_name(&job->graph, berth_quantize__node_name(node), attr);
    berth_onnx_edit_add_constant(job->graph.model, name, &tensor);
    berth_vec_push(arena, &node->inputs, name);
}

// A list of integers as an input in place of the attribute; nothing where it is absent.
static bool ints_to_input(raise_job *job, berth_onnx_node *node, const char *attr) {
    int64_t values[MOST_AXES];
    double wide[MOST_AXES];
    int count = berth_onnx_node_ints(node, attr, values, MOST_AXES);
    if (count > MOST_AXES) return false;
    for (int i = 0; i < count; ++i) wide[i] = (double)values[i];
    if (count >= 0) add_input(job, node, attr, BERTH_DTYPE_I64, 1, wide, count);
    berth_onnx_node_remove(node, attr);
    return true;
}

static bool raise_clip(raise_job *job, berth_onnx_node *node) {
    double low = berth_onnx_node_float(node, "min", -3.4028234663852886e38);
    double high = berth_onnx_node_float(node, "max", 3.4028234663852886e38);
    berth_onnx_node_remove(node, "min");
    berth_onnx_node_remove(node, "max");
    add_input(job, node, "min", BERTH_DTYPE_F32, 0, &low, 1);
    add_input(job, node, "max", BERTH_DTYPE_F32, 0, &high, 1);
    return true;
}

static bool raise_pad(raise_job *job, berth_onnx_node *node) {
    double value = berth_onnx_node_float(node, "value", 0);
    if (!ints_to_input(job, node, "pads")) return false;
    berth_onnx_node_remove(node, "value");
    add_input(job, node, "value", BERTH_DTYPE_F32, 0, &value, 1);
    return node->inputs.count == 3;
}

static bool raise_slice(raise_job *job, berth_onnx_node *node) {
    return ints_to_input(job, node, "starts") && ints_to_input(job, node, "ends") &&
           ints_to_input(job, node, "axes") && node->inputs.count >= 3;
}

// Before 13 a softmax was over all dimensions from the axis on, and the axis was 1 where none is said.
static bool raise_softmax(raise_job *job, berth_onnx_node *node) {
    int rank = berth_quantize__rank_of(job->state, node->outputs.data[0]);
    int64_t axis = berth_onnx_node_int(node, "axis", 1);
    if (rank < 1 || (axis != rank - 1 && axis != -1)) return false;
    berth_onnx_node_set_int(job->graph.model->arena, node, "axis", axis);
    return true;
}

static bool is_one_of(const berth_onnx_node *node, const char *const *names) {
    for (; *names; ++names)
        if (strcmp(node->op_type, *names) == 0) return true;
    return false;
}

static int compare_texts(const void *key, const void *row) {
    return strcmp(key, *(const char *const *)row);
}

// False: this cannot be done with certainty.
static bool raise_node(raise_job *job, berth_onnx_node *node) {
    static const char *const axes_inputs[] = {"Squeeze", "Unsqueeze", "ReduceSum", NULL};
    static const char *const softmaxes[] = {"Softmax", "LogSoftmax", "Hardmax", NULL};
    if (*node->domain) return true;
    if (node->has_graphs) return false;
    if (bsearch(node->op_type, unchanged, sizeof(unchanged) / sizeof(unchanged[0]),
                sizeof(unchanged[0]), compare_texts))
        return true;
    if (strcmp(node->op_type, "BatchNormalization") == 0) {
        bool spatial = berth_onnx_node_int(node, "spatial", 1) != 0;
        if (spatial) berth_onnx_node_remove(node, "spatial");
        return spatial;
    }
    if (strcmp(node->op_type, "Dropout") == 0) {  // models that infer: the rate says nothing
        if (crosses(job, 12)) berth_onnx_node_remove(node, "ratio");
        return true;
    }
    if (strcmp(node->op_type, "Clip") == 0) return !crosses(job, 11) || raise_clip(job, node);
    if (strcmp(node->op_type, "Pad") == 0) return !crosses(job, 11) || raise_pad(job, node);
    if (strcmp(node->op_type, "Slice") == 0) return !crosses(job, 10) || raise_slice(job, node);
    if (strcmp(node->op_type, "Split") == 0)
        return !crosses(job, 13) || ints_to_input(job, node, "split");
    if (strcmp(node->op_type, "Resize") == 0) return job->from >= 11;
    if (strcmp(node->op_type, "TopK") == 0) return job->from >= 10;
    if (is_one_of(node, axes_inputs)) return !crosses(job, 13) || ints_to_input(job, node, "axes");
    if (is_one_of(node, softmaxes)) return !crosses(job, 13) || raise_softmax(job, node);
    return false;
}

static berth_status refuse(const raise_job *job, const char *why) {
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "the model has operators of version %lld, quantised ones%s need %lld, and %s; convert the "
        "model first (onnx.version_converter.convert_version(model, %lld))%s",
        (long long)job->from, job->to == 13 ? " with scales per channel" : "", (long long)job->to,
        why, (long long)job->to,
        job->to == 13 && job->from >= 10 ? ", or have one scale per tensor" : "");
}

// A copy of the model with newer operators; or why not.
static berth_status raise_to(berth_quantize__state *state, int64_t to,
                             berth_onnx_edit **out_model) {
    berth_onnx_edit *model = berth_onnx_edit_copy(state->arena, state->model);
    raise_job job = {.state = state, .from = berth_onnx_edit_opset(model), .to = to};
    berth_status status = BERTH_OK;
    *out_model = model;
    if (job.from < 7) return refuse(&job, "only those from version 7 on can be raised here");
    berth_arena *scratch = berth_arena_create_child(state->arena);
    job.graph = berth_quantize__graph_make(scratch, model);
    for (uint32_t i = 0; i < model->nodes.count && !status; ++i) {
        berth_onnx_node *node = model->nodes.data[i];
        if (raise_node(&job, node)) continue;
        char why[256];
        snprintf(why, sizeof(why), "%.60s of node \"%.120s\" is not the same there", node->op_type,
                 berth_quantize__node_name(node));
        status = refuse(&job, why);
    }
    berth_arena_destroy(scratch);
    berth_onnx_edit_set_opset(model, to);
    return status;
}

// To 13 where that can be: ONNX Runtime's rewriting of 8-bit values takes operators for granted that
// older versions do not have. Otherwise to what is needed.
berth_status berth_quantize__raise_opset(berth_quantize__state *state) {
    int64_t from = berth_onnx_edit_opset(state->model),
            least = state->options->per_channel ? 13 : 10;
    berth_onnx_edit *model = NULL;
    if (from < 13) {
        berth_status status = raise_to(state, 13, &model);
        if (status && least < 13) {
            berth_status_free(status);
            status = from < least ? raise_to(state, least, &model) : BERTH_OK;
            if (from >= least) model = state->model;
        }
        BERTH_TRY(status);
        state->model = model;
    }
    int64_t to = berth_onnx_edit_opset(state->model);
    int64_t ir_version = to >= 12 ? 7 : to == 11 ? 6 : 5;
    if (state->model->ir_version < ir_version) state->model->ir_version = ir_version;
    if (to != from)
        berth_quantize__note(state, "operators of version %lld became those of version %lld",
                             (long long)from, (long long)to);
    return BERTH_OK;
}
