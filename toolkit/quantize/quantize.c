#include "toolkit/quantize/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "toolkit/quantize/state.h"

typedef struct job {
    berth_quantize__state state;
    const char *path;
    berth_quantize_result *result;
} job;

// ---- which layers stay float --------------------------------------------------------------------

static int compare_layers(const void *left, const void *right) {
    const berth_quantize__layer *a = *(berth_quantize__layer *const *)left;
    const berth_quantize__layer *b = *(berth_quantize__layer *const *)right;
    return a->sqnr < b->sqnr ? -1 : a->sqnr > b->sqnr;
}

typedef BERTH_VEC(berth_quantize__layer *) layer_list;

// Quantised layers, the worst (by their own error) first.
static layer_list worst_first(const berth_quantize__state *state) {
    layer_list list = {0};
    for (uint32_t i = 0; i < state->layers.count; ++i)
        if (!state->layers.data[i].kept)
            berth_vec_push(state->arena, &list, &state->layers.data[i]);
    if (list.count) qsort(list.data, list.count, sizeof(list.data[0]), compare_layers);
    return list;
}

static void keep(const layer_list *list, uint32_t count, const char *why) {
    for (uint32_t i = 0; i < list->count; ++i) list->data[i]->kept = i < count ? why : NULL;
}

// The fewest of the worst layers with which the loss is as wanted, by bisection: loss is taken to fall
// with every layer that stays float. O(log layers) runs over the data.
static berth_status search(berth_quantize__state *state, const layer_list *list, uint32_t least,
                           berth_quantize_result *result) {
    static const char why[] = "so that results lose no more than was asked for";
    double limit = state->options->max_drop;
    uint32_t low = least, high = list->count;  // `high` layers are enough; all of them are
    keep(list, low, why);
    BERTH_TRY(berth_quantize__evaluate(state, false, result));
    if (result->drop <= limit) return BERTH_OK;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        keep(list, middle, why);
        BERTH_TRY(berth_quantize__evaluate(state, false, result));
        if (result->drop <= limit)
            high = middle;
        else
            low = middle;
    }
    keep(list, high, why);
    if (high < list->count) return BERTH_OK;
    return berth_status_make(
        BERTH_FAILED_PRECONDITION,
        "no layer can be quantised with a loss of at most %g %%; try another method, "
        "scales per channel or float scales, or allow more",
        100 * limit);
}

static berth_status choose_layers(berth_quantize__state *state, berth_quantize_result *result) {
    layer_list list = worst_first(state);
    uint32_t worst = state->options->keep_worst;
    if (worst >= list.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%u layers are to stay float, and the model has %u that could be "
                                 "quantised",
                                 worst, list.count);
    keep(&list, worst, "it is among the worst, which were to stay float");
    return state->options->max_drop < 0 ? BERTH_OK : search(state, &list, worst, result);
}

// ---- the result ---------------------------------------------------------------------------------

static void report_layers(const berth_quantize__state *state, berth_quantize_result *result) {
    berth_quantize_layer *layers =
        berth_arena_new_array(state->arena, berth_quantize_layer, state->layers.count + 1);
    for (uint32_t i = 0; i < state->layers.count; ++i) {
        const berth_quantize__layer *from = &state->layers.data[i];
        layers[i] = (berth_quantize_layer){.name = from->name,
                                           .op = from->op,
                                           .kept = from->kept,
                                           .weight_sqnr = from->weight_sqnr,
                                           .sqnr = from->sqnr,
                                           .max_error = from->max_error,
                                           .total_sqnr = from->total_sqnr};
        result->quantized_count += !from->kept;
        if (!from->weight || from->kept) continue;
        uint64_t bytes = berth_tensor_size_bytes(from->weight);
        result->weight_bytes += bytes;
        result->quantized_bytes += bytes / sizeof(float);
    }
    result->layers = layers;
    result->layer_count = state->layers.count;
    result->notes = state->notes.data;
    result->note_count = state->notes.count;
    result->equalized_count = state->equalized_count;
    result->set_count = state->data.set_count;
}

// From a float model to layers that are ready to be written.
static berth_status quantize_layers(berth_quantize__state *state) {
    BERTH_TRY(berth_quantize__find_layers(state));
    BERTH_TRY(berth_quantize__observe(state));
    BERTH_TRY(berth_quantize__quantize_weights(state));
    return berth_quantize__measure_layers(state);
}

// With channels scaled alike, or without: as the options say, or as outputs are more exact.
static berth_status quantize_either_way(berth_quantize__state *state) {
    berth_quantize__state other = *state;
    berth_quantize_result plain = {0}, equalized = {0};
    if (state->options->equalize == BERTH_QUANTIZE_EQUALIZE_OFF) return quantize_layers(state);
    other.model = berth_onnx_edit_copy(state->arena, state->model);
    BERTH_TRY(berth_quantize__equalize(&other));
    if (other.equalized_count == 0) return quantize_layers(state);
    BERTH_TRY(quantize_layers(&other));
    if (state->options->equalize == BERTH_QUANTIZE_EQUALIZE_AUTO) {
        BERTH_TRY(quantize_layers(state));
        BERTH_TRY(berth_quantize__evaluate(state, false, &plain));
        BERTH_TRY(berth_quantize__evaluate(&other, false, &equalized));
        if (!(equalized.noise < plain.noise)) return BERTH_OK;
        berth_quantize__note(&other,
                             "channels of %u pairs of layers were scaled alike: the outputs' noise "
                             "is %.3g of their signal so, else %.3g",
                             other.equalized_count, equalized.noise, plain.noise);
    } else {
        berth_quantize__note(&other, "channels of %u pairs of layers were scaled alike",
                             other.equalized_count);
    }
    *state = other;
    return BERTH_OK;
}

static berth_status quantize(void *user) {
    job *j = user;
    berth_quantize__state *state = &j->state;
    berth_onnx_bytes bytes;
    BERTH_TRY(berth_onnx_edit_read(state->arena, j->path, &state->original));
    BERTH_TRY(berth_quantize__data_find(state->arena, state->original, state->options->calibrate,
                                        &state->data));
    if (state->options->labels)
        BERTH_TRY(berth_quantize__labels_read(state->arena, state->options->labels, &state->labels,
                                              &state->label_count));
    state->model = berth_onnx_edit_copy(state->arena, state->original);
    BERTH_TRY(berth_quantize__prepare(state));
    BERTH_TRY(berth_quantize__raise_opset(state));
    BERTH_TRY(quantize_either_way(state));
    BERTH_TRY(choose_layers(state, j->result));
    BERTH_TRY(berth_quantize__evaluate(state, true, j->result));
    report_layers(state, j->result);
    berth_onnx_edit *model = berth_quantize__emit(state->arena, state, &j->result->tensor_count);
    BERTH_TRY(berth_onnx_edit_write(state->arena, model, &bytes));
    j->result->model = bytes.data;
    j->result->model_bytes = bytes.size_bytes;
    j->result->opset = berth_onnx_edit_opset(model);
    return BERTH_OK;
}

berth_status berth_quantize(berth_arena *arena, const char *path,
                            const berth_quantize_options *options,
                            berth_quantize_result *out_result) {
    job j = {.state = {.arena = arena, .options = options}, .path = path, .result = out_result};
    *out_result = (berth_quantize_result){0};
    return berth_arena_try(arena, quantize, &j);
}
