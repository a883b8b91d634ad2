// What the activations are over the data sets: ranges first, then histograms over these. Memory is that
// of one data set's values and a histogram per value.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

enum { LEAST_DECIBELS = 40 };  // of the prepared model's results, beside the original one's

// ---- the prepared model is the original one -----------------------------------------------------

typedef struct check {
    berth_quantize__runner *runners[2];
    const berth_onnx_edit *model;
} check;

static berth_status compare_first(void *user, berth_arena *scratch, uint32_t set) {
    (void)scratch, (void)set;
    const check *c = user;
    for (uint32_t i = 0; i < c->model->outputs.count; ++i) {
        const berth_tensor *a = berth_quantize__runner_output(c->runners[0], i);
        const berth_tensor *b = berth_quantize__runner_output(c->runners[1], i);
        double signal = 0, noise = 0;
        if (!a || !b || a->dtype != BERTH_DTYPE_F32 || b->dtype != BERTH_DTYPE_F32) continue;
        int64_t count = berth_tensor_element_count(a);
        bool same = count == berth_tensor_element_count(b);
        for (int64_t k = 0; k < count && same; ++k) {
            double x = (double)((const float *)a->data)[k], y = (double)((const float *)b->data)[k];
            if (!isfinite(x)) continue;
            signal += x * x;
            noise += (x - y) * (x - y);
        }
        if (!same || !(noise <= signal * pow(10, -LEAST_DECIBELS / 10.0)))
            return berth_status_make(BERTH_INTERNAL,
                                     "output \"%s\" is another one after batch norms became parts "
                                     "of convolutions (%.1f dB)",
                                     c->model->outputs.data[i].name,
                                     berth_quantize__decibels(signal, noise));
    }
    return BERTH_OK;
}

static berth_status check_prepared(berth_quantize__state *state, berth_arena *scratch) {
    check c = {.model = state->original};
    BERTH_TRY(berth_quantize__runner_open(scratch, state->original, state->options, &c.runners[0]));
    BERTH_TRY(berth_quantize__runner_open(scratch, state->model, state->options, &c.runners[1]));
    berth_status status =
        berth_quantize__run_all(state->arena, &state->data, state->options,
                                "checking the prepared model", c.runners, 2, 1, compare_first, &c);
    for (int i = 0; i < 2; ++i) berth_quantize__runner_close(c.runners[i]);
    return status;
}

// ---- ranges -------------------------------------------------------------------------------------

typedef struct observer {
    berth_quantize__state *state;
    berth_quantize__runner *runner;
    uint32_t *outputs;  // per tensor
    bool counts;        // the second pass
} observer;

static berth_status observe_set(void *user, berth_arena *scratch, uint32_t set) {
    (void)scratch, (void)set;
    observer *o = user;
    for (uint32_t i = 0; i < o->state->tensors.count; ++i) {
        berth_quantize__tensor *tensor = &o->state->tensors.data[i];
        const berth_tensor *value = berth_quantize__runner_output(o->runner, o->outputs[i]);
        if (!value || value->dtype != BERTH_DTYPE_F32)
            return berth_status_make(BERTH_UNSUPPORTED, "value \"%s\" is no tensor of f32",
                                     tensor->name);
        if (!o->counts)
            berth_quantize__range_add(&tensor->range, value);
        else if (!tensor->range.is_infinite)
            berth_quantize__range_count(&o->state->tensors.data[tensor->same_as].range, value);
    }
    return BERTH_OK;
}

static berth_status look(berth_quantize__state *state, observer *o, const char *what) {
    return berth_quantize__run_all(state->arena, &state->data, state->options, what, &o->runner, 1,
                                   state->data.set_count, observe_set, o);
}

static void share_ranges(berth_quantize__state *state) {
    for (uint32_t i = 0; i < state->tensors.count; ++i) {
        berth_quantize__tensor *tensor = &state->tensors.data[i];
        berth_quantize__tensor *root = &state->tensors.data[tensor->same_as];
        if (root != tensor) berth_quantize__range_join(&root->range, &tensor->range);
    }
}

static berth_status keep_infinite(berth_quantize__state *state) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < state->layers.count; ++i) {
        berth_quantize__layer *layer = &state->layers.data[i];
        if (layer->kept) continue;
        const berth_quantize__tensor *input = berth_quantize__tensor_of(state, layer->input);
        if (state->tensors.data[input->same_as].range.is_infinite)
            layer->kept = "its input takes values that are not finite";
        open += !layer->kept;
    }
    if (open) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "no layer has inputs that are all finite: do the data fit the model?");
}

static void choose_scales(berth_quantize__state *state) {
    for (uint32_t i = 0; i < state->tensors.count; ++i) {
        berth_quantize__tensor *tensor = &state->tensors.data[i];
        if (tensor->same_as == i)
            tensor->scale = berth_quantize__choose(&tensor->range, state->options);
    }
    for (uint32_t i = 0; i < state->tensors.count; ++i)
        state->tensors.data[i].scale = state->tensors.data[state->tensors.data[i].same_as].scale;
}

berth_status berth_quantize__observe(berth_quantize__state *state) {
    berth_arena *scratch = berth_arena_create_child(state->arena);
    observer o = {.state = state};
    berth_status status = check_prepared(state, scratch);
    berth_onnx_edit *model = berth_onnx_edit_copy(scratch, state->model);
    o.outputs = berth_arena_new_array(scratch, uint32_t, state->tensors.count + 1);
    for (uint32_t i = 0; i < state->tensors.count; ++i)
        o.outputs[i] = berth_onnx_edit_output(model, state->tensors.data[i].name);
    if (!status) status = berth_quantize__runner_open(scratch, model, state->options, &o.runner);
    if (!status) status = look(state, &o, "ranges");
    if (!status) {
        share_ranges(state);
        status = keep_infinite(state);
    }
    if (!status && state->options->method != BERTH_QUANTIZE_MINMAX) {
        o.counts = true;
        for (uint32_t i = 0; i < state->tensors.count; ++i)
            state->tensors.data[i].range.bins =
                berth_arena_new_array(state->arena, double, BERTH_QUANTIZE__BINS);
        status = look(state, &o, "histograms");
    }
    if (!status) choose_scales(state);
    berth_arena_destroy(scratch);
    return status;
}
