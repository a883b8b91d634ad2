// The quantised model's results beside those of the model as it was given, over all data sets.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

enum { MOST_CLASSES = 1 << 20 };

typedef struct noise {
    double signal, noise, most, sum, count;
} noise;

typedef struct seen_layer {
    berth_quantize__layer *layer;
    uint32_t outputs[2];  // of the prepared model, of the quantised one
    noise noise;
} seen_layer;

typedef struct evaluation {
    berth_quantize__state *state;
    berth_quantize__runner *runners[3];  // original, quantised, prepared
    noise *outputs;
    BERTH_VEC(seen_layer) layers;
    bool classes;  // the first output is a list of them per row
    uint64_t rows, same, float_right, right;
} evaluation;

static void add(noise *n, const berth_tensor *exact, const berth_tensor *rounded) {
    int64_t count = berth_tensor_element_count(exact);
    for (int64_t i = 0; i < count; ++i) {
        double a = berth_tensor_get_f64(exact, i), b = berth_tensor_get_f64(rounded, i);
        if (!isfinite(a) || !isfinite(b)) continue;
        double error = fabs(a - b);
        n->signal += a * a;
        n->noise += error * error;
        n->sum += error;
        n->most = fmax(n->most, error);
    }
    n->count += (double)count;
}

// ---- classes ------------------------------------------------------------------------------------

// [rows, classes], perhaps with dimensions of 1 behind: 0 = it is something else.
static int64_t classes_of(const berth_tensor *tensor) {
    int64_t classes = 1;
    if (tensor->rank < 2 || !berth_dtype_is_float(tensor->dtype)) return 0;
    for (int d = 1; d < tensor->rank; ++d) {
        if (classes > 1 && tensor->dims[d] > 1) return 0;
        if (tensor->dims[d] != 1) classes = tensor->dims[d];
    }
    return classes >= 2 && classes <= MOST_CLASSES ? classes : 0;
}

static int64_t largest(const berth_tensor *tensor, int64_t row, int64_t classes) {
    int64_t best = 0;
    double most = -INFINITY;
    for (int64_t c = 0; c < classes; ++c) {
        double value = berth_tensor_get_f64(tensor, row * classes + c);
        if (!(value > most)) continue;
        most = value;
        best = c;
    }
    return best;
}

static berth_status count_classes(evaluation *e, const berth_tensor *exact,
                                  const berth_tensor *rounded) {
    int64_t classes = classes_of(exact);
    e->classes &= classes > 0;
    for (int64_t row = 0; row < exact->dims[0] && e->classes; ++row) {
        int64_t wanted = largest(exact, row, classes), got = largest(rounded, row, classes);
        e->same += wanted == got;
        if (e->state->labels && e->rows < e->state->label_count) {
            e->float_right += wanted == e->state->labels[e->rows];
            e->right += got == e->state->labels[e->rows];
        }
        e->rows++;
    }
    return BERTH_OK;
}

// ---- the run ------------------------------------------------------------------------------------

static berth_status compare_set(void *user, berth_arena *scratch, uint32_t set) {
    (void)scratch, (void)set;
    evaluation *e = user;
    for (uint32_t i = 0; i < e->state->original->outputs.count; ++i) {
        const berth_tensor *exact = berth_quantize__runner_output(e->runners[0], i);
        const berth_tensor *rounded = berth_quantize__runner_output(e->runners[1], i);
        if (!exact || !rounded) continue;
        if (exact->dtype != rounded->dtype || !berth_tensor_same_shape(exact, rounded))
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "output \"%s\" has another shape in the quantised model: it "
                                     "depends on values",
                                     e->state->original->outputs.data[i].name);
        add(&e->outputs[i], exact, rounded);
        if (i == 0) BERTH_TRY(count_classes(e, exact, rounded));
    }
    for (uint32_t i = 0; i < e->layers.count; ++i) {
        seen_layer *layer = &e->layers.data[i];
        const berth_tensor *exact = berth_quantize__runner_output(e->runners[2], layer->outputs[0]);
        const berth_tensor *rounded =
            berth_quantize__runner_output(e->runners[1], layer->outputs[1]);
        if (exact && rounded && berth_tensor_same_shape(exact, rounded))
            add(&layer->noise, exact, rounded);
    }
    return BERTH_OK;
}

// Every layer's result in both models. Nodes keep their names and order; what a layer's node makes may
// have another name in the quantised model.
static void watch_layers(evaluation *e, berth_onnx_edit *exact, berth_onnx_edit *rounded) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < exact->nodes.count; ++i) {
        const berth_onnx_node *node = exact->nodes.data[i];
        berth_quantize__layer *layer = berth_quantize__layer_of(e->state, node);
        if (!layer) continue;
        while (at < rounded->nodes.count &&
               (strcmp(rounded->nodes.data[at]->name, node->name) != 0 ||
                strcmp(rounded->nodes.data[at]->op_type, node->op_type) != 0))
            ++at;
        if (at == rounded->nodes.count) return;
        seen_layer seen = {.layer = layer};
        seen.outputs[0] = berth_onnx_edit_output(exact, node->outputs.data[0]);
        seen.outputs[1] =
            berth_onnx_edit_output(rounded, rounded->nodes.data[at++]->outputs.data[0]);
        berth_vec_push(e->state->arena, &e->layers, seen);
    }
}

static berth_status check_labels(const evaluation *e) {
    if (!e->state->labels) return BERTH_OK;
    if (!e->classes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the first output is no list of classes per row: labels say "
                                 "nothing of it");
    if (e->rows == e->state->label_count) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%u labels are given for the data sets' %llu rows",
                             e->state->label_count, (unsigned long long)e->rows);
}

static void report(const evaluation *e, berth_quantize_result *result) {
    const berth_quantize__state *state = e->state;
    result->output_count = state->original->outputs.count;
    berth_quantize_output *outputs =
        berth_arena_new_array(state->arena, berth_quantize_output, result->output_count + 1);
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const noise *n = &e->outputs[i];
        outputs[i] = (berth_quantize_output){.name = state->original->outputs.data[i].name,
                                             .sqnr = berth_quantize__decibels(n->signal, n->noise),
                                             .max_error = n->most,
                                             .mean_error = n->count > 0 ? n->sum / n->count : 0};
    }
    result->outputs = outputs;
    bool top1 = e->classes && e->rows > 0 && !state->options->compare_values;
    result->row_count = top1 ? e->rows : 0;
    result->agreement = top1 ? (double)e->same / (double)e->rows : 0;
    result->has_labels = top1 && state->labels;
    result->float_accuracy = result->has_labels ? (double)e->float_right / (double)e->rows : 0;
    result->accuracy = result->has_labels ? (double)e->right / (double)e->rows : 0;
    double signal = 0, lost = 0;
    for (uint32_t i = 0; i < result->output_count; ++i) {
        signal += e->outputs[i].signal;
        lost += e->outputs[i].noise;
    }
    result->noise = signal > 0 ? sqrt(lost / signal) : lost > 0;
    result->drop = result->has_labels ? result->float_accuracy - result->accuracy
                   : top1             ? 1 - result->agreement
                                      : result->noise;
    for (uint32_t i = 0; i < e->layers.count; ++i)
        e->layers.data[i].layer->total_sqnr =
            berth_quantize__decibels(e->layers.data[i].noise.signal, e->layers.data[i].noise.noise);
}

berth_status berth_quantize__evaluate(berth_quantize__state *state, bool final,
                                      berth_quantize_result *result) {
    berth_arena *scratch = berth_arena_create_child(state->arena);
    evaluation e = {.state = state, .classes = true};
    uint32_t runner_count = final ? 3 : 2;
    e.outputs = berth_arena_new_array(scratch, noise, state->original->outputs.count + 1);
    berth_onnx_edit *exact = berth_onnx_edit_copy(scratch, state->model);
    berth_onnx_edit *rounded = berth_quantize__emit(scratch, state, &result->tensor_count);
    if (final) watch_layers(&e, exact, rounded);
    berth_onnx_edit *models[3] = {state->original, rounded, exact};
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < runner_count && !status; ++i)
        status = berth_quantize__runner_open(scratch, models[i], state->options, &e.runners[i]);
    if (!status)
        status = berth_quantize__run_all(state->arena, &state->data, state->options,
                                         final ? "final results" : "results", e.runners,
                                         runner_count, state->data.set_count, compare_set, &e);
    if (!status) status = check_labels(&e);
    if (!status) report(&e, result);
    berth_arena_destroy(scratch);
    return status;
}
