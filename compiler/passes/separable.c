#include "compiler/passes/separable.h"

#include <string.h>

#include "ir/graph/op_params.h"

enum {
    stored_products = 2,  // what a value between costs to write, in products
};

typedef struct resized_axis {
    int dim;
    int64_t in, out, taps;
    uint32_t place;  // in the operand of scales or sizes
} resized_axis;

typedef struct resized {
    resized_axis axes[BERTH_MAX_RANK];
    int count;
    uint32_t operand;  // 2: scales, 3: sizes
    const berth_tensor *given;
} resized;

static const berth_tensor *filled(berth_rewriter *r, const berth_op *op, uint32_t operand) {
    if (operand >= op->input_count || op->inputs[operand] == BERTH_NONE) return NULL;
    const berth_tensor *tensor =
        berth_rewriter_constant(r, berth_rewriter_resolve(r, op->inputs[operand]));
    return tensor && berth_tensor_element_count(tensor) > 0 ? tensor : NULL;
}

// The axes that change. False where one axis depends on the others (a region of the input, sizes
// that keep the aspect ratio) or the operation is not as it should be: the lowering says why.
static bool describe(berth_rewriter *r, const berth_op *op, const berth_type *x,
                     const berth_type *y, resized *out) {
    berth_module *m = r->module;
    const char *how =
        berth_attrs_string(m, &op->attrs, "coordinate_transformation_mode", "half_pixel");
    const char *mode = berth_attrs_string(m, &op->attrs, "mode", "nearest");
    const char *policy = berth_attrs_string(m, &op->attrs, "keep_aspect_ratio_policy", "stretch");
    bool antialias = berth_attrs_int(m, &op->attrs, "antialias", 0) != 0;
    const berth_tensor *scales = filled(r, op, 2), *sizes = filled(r, op, 3);
    uint32_t listed = 0;
    const int64_t *axes = berth_attrs_ints(m, &op->attrs, "axes", &listed);
    if (strcmp(mode, "nearest") == 0 || strcmp(how, "tf_crop_and_resize") == 0 ||
        strcmp(policy, "stretch") != 0)
        return false;
    *out = (resized){.operand = sizes ? 3 : 2, .given = sizes ? sizes : scales};
    uint32_t count = axes ? listed : (uint32_t)x->rank;
    if (!out->given || berth_tensor_element_count(out->given) != (int64_t)count ||
        count > BERTH_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < count; ++i) {
        resized_axis axis = {.dim = (int)i, .place = i};
        if (axes && berth_axis_resolve(axes[i], x->rank, "axes", &axis.dim)) return false;
        axis.in = x->dims[axis.dim];
        axis.out = y->dims[axis.dim];
        double scale = sizes ? (double)axis.out / (double)axis.in
                             : berth_tensor_get_f64(out->given, (int64_t)i);
        if (axis.in <= 0 || axis.out <= 0 || !(scale > 0)) return false;
        axis.taps = berth_resize_taps(mode[0] == 'c', antialias, scale);
        if (scale != 1 || axis.in != axis.out) out->axes[out->count++] = axis;
    }
    return out->count > 1;
}

// What shrinks comes first, what grows last: exchanging two neighbours shows it.
static void order_axes(resized *it) {
    for (int i = 1; i < it->count; ++i) {
        for (int k = i; k > 0; --k) {
            resized_axis *a = &it->axes[k - 1], *b = &it->axes[k];
            double ra = (double)a->out / (double)a->in, rb = (double)b->out / (double)b->in;
            double now = ra * (double)(a->taps + stored_products) + ra * rb * (double)b->taps;
            double other = rb * (double)(b->taps + stored_products) + ra * rb * (double)a->taps;
            if (now <= other) break;
            resized_axis held = *a;
            *a = *b;
            *b = held;
        }
    }
}

// Products, for each element of the input, of all axes at a time less those of one after the other.
static double saved(const resized *it) {
    double elements = 1, one_by_one = 0, taps = 1;
    for (int i = 0; i < it->count; ++i) {
        elements *= (double)it->axes[i].out / (double)it->axes[i].in;
        taps *= (double)it->axes[i].taps;
        one_by_one +=
            elements * (double)(it->axes[i].taps + (i + 1 < it->count ? stored_products : 0));
    }
    return elements * taps - one_by_one;
}

static berth_status insert_axis(berth_rewriter *r, berth_op_id id, const berth_op *op,
                                const resized *it, const resized_axis *axis,
                                berth_value_id *value) {
    berth_module *m = r->module;
    berth_attrs attrs = {0};
    for (uint32_t i = 0; i < op->attrs.items.count; ++i)
        berth_vec_push(m->arena, &attrs.items, op->attrs.items.data[i]);
    int64_t dim = axis->dim;
    berth_attrs_set_ints(m, &attrs, "axes", &dim, 1);
    berth_tensor one = berth_rewriter_take(m->arena, it->given, 0, (int64_t)axis->place, 1);
    berth_value_id inputs[4] = {*value, BERTH_NONE, BERTH_NONE, BERTH_NONE};
    inputs[it->operand] = berth_rewriter_insert_constant(r, id, &one, op->loc);
    return berth_rewriter_insert(r, id, BERTH_OP_RESIZE, inputs, it->operand + 1, &attrs, op->loc,
                                 value);
}

berth_status berth_split_resize(berth_rewriter *r, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(r->module, r->function);
    const berth_op op = graph->ops.data[id];
    berth_value_id value = berth_rewriter_resolve(r, op.inputs[0]);
    const berth_type *x = berth_type_get(r->module, graph->values.data[value].type);
    const berth_type *y = berth_type_get(r->module, graph->values.data[op.outputs[0]].type);
    resized it;
    // Integers would be rounded between, half floats as well.
    if (!berth_type_is_static(x) || !berth_type_is_static(y) ||
        (x->dtype != BERTH_DTYPE_F32 && x->dtype != BERTH_DTYPE_F64) ||
        !describe(r, &op, x, y, &it))
        return BERTH_OK;
    order_axes(&it);
    if (saved(&it) <= 0) return BERTH_OK;
    for (int i = 0; i < it.count; ++i) BERTH_TRY(insert_axis(r, id, &op, &it, &it.axes[i], &value));
    berth_rewriter_replace(r, op.outputs[0], value);
    return BERTH_OK;
}
