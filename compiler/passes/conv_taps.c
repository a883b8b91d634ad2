#include "compiler/passes/conv_taps.h"

#include "ir/graph/op_params.h"

// Taps [first, last] of dimension i are left; pads follow them, and none becomes negative.
static void find_taps(const berth_window *w, int i, int64_t *out_first, int64_t *out_last) {
    int64_t first = 0, last = w->kernel[i] - 1, step = w->dilations[i];
    int64_t begin = w->pads_begin[i], end = w->pads_end[i];
    int64_t furthest = (w->output[i] - 1) * w->strides[i] - begin;  // input element of tap 0
    for (; first < last && furthest + first * step < 0 && begin >= step; ++first) begin -= step;
    for (; last > first && last * step - w->pads_begin[i] >= w->input[i] && end >= step; --last)
        end -= step;
    *out_first = first;
    *out_last = last;
}

static bool drops_some(const berth_window *w, int i) {
    int64_t first = 0, last = 0;
    find_taps(w, i, &first, &last);
    return last - first + 1 < w->kernel[i];
}

// Dimension i of the weights and the window.
static void narrow(berth_arena *arena, berth_window *w, int i, berth_tensor *weights) {
    int64_t first = 0, last = 0, kernel = w->kernel[i];
    if (!drops_some(w, i)) return;
    find_taps(w, i, &first, &last);
    *weights = berth_rewriter_take(arena, weights, 2 + i, first, last - first + 1);
    w->pads_begin[i] -= first * w->dilations[i];
    w->pads_end[i] -= (kernel - 1 - last) * w->dilations[i];
    w->kernel[i] = last - first + 1;
    if (w->kernel[i] == 1) w->dilations[i] = 1;
}

static berth_attrs with_window(berth_module *module, const berth_op *op, const berth_window *w) {
    berth_attrs attrs = {0};
    for (uint32_t i = 0; i < op->attrs.items.count; ++i)
        berth_vec_push(module->arena, &attrs.items, op->attrs.items.data[i]);
    int64_t pads[2 * BERTH_MAX_SPATIAL];
    uint32_t spatial = (uint32_t)w->spatial;
    for (uint32_t i = 0; i < spatial; ++i) {
        pads[i] = w->pads_begin[i];
        pads[spatial + i] = w->pads_end[i];
    }
    berth_attrs_set_string(module, &attrs, "auto_pad", "NOTSET");
    berth_attrs_set_ints(module, &attrs, "pads", pads, 2 * spatial);
    berth_attrs_set_ints(module, &attrs, "kernel_shape", w->kernel, spatial);
    berth_attrs_set_ints(module, &attrs, "dilations", w->dilations, spatial);
    return attrs;
}

berth_status berth_drop_conv_taps(berth_rewriter *r, berth_op_id id) {
    berth_module *m = r->module;
    const berth_graph *graph = berth_graph_get(m, r->function);
    const berth_op op = graph->ops.data[id];
    const berth_type *x =
        berth_type_get(m, graph->values.data[berth_rewriter_resolve(r, op.inputs[0])].type);
    const berth_type *y = berth_type_get(m, graph->values.data[op.outputs[0]].type);
    const berth_tensor *raw = berth_rewriter_raw_constant(r, op.inputs[1]);
    berth_window window;
    if (!raw || raw->rank < 3 || !berth_type_is_static(x) || !berth_type_is_static(y))
        return BERTH_OK;
    BERTH_TRY(berth_window_resolve(m, &op, x->dims, x->rank, raw->dims + 2, &window));
    bool any = false;
    for (int i = 0; i < window.spatial; ++i) any |= drops_some(&window, i);
    if (!any) return BERTH_OK;
    berth_tensor weights = *berth_rewriter_constant(r, op.inputs[1]);
    for (int i = 0; i < window.spatial; ++i) narrow(m->arena, &window, i, &weights);
    berth_attrs attrs = with_window(m, &op, &window);
    berth_value_id inputs[3] = {op.inputs[0],
                                berth_rewriter_insert_constant(r, id, &weights, op.loc),
                                op.input_count > 2 ? op.inputs[2] : BERTH_NONE};
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_CONV, inputs, op.input_count, &attrs, op.loc,
                                    &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}
