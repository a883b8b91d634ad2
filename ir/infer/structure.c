// Structure: constants, calls, tuples, storage, control flow; and what the compiler makes
// (relayout, Winograd).
#include "ir/dim.h"
#include "ir/dim_binding.h"
#include "ir/external.h"
#include "ir/infer/internal.h"
#include "ir/tensor/function.h"

berth_status berth_infer__constant(berth_infer *x) {
    const berth_attr *value = berth_attrs_find(x->module, &x->op->attrs, "value");
    if (!value || value->kind != BERTH_ATTR_TENSOR)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute value (a tensor) is missing");
    berth_infer__set(x, 0, value->tensor->dtype, value->tensor->rank, value->tensor->dims);
    return BERTH_OK;
}

static void set_all_unknown(berth_infer *x) {
    for (uint32_t i = 0; i < x->op->output_count; ++i)
        berth_infer__set_unknown(x, i, BERTH_DTYPE_NONE, -1);
}

// ---- calls ----

static berth_dim_bindings bindings_of(const berth_infer *x) {
    return (berth_dim_bindings){.module = x->module, .arena = x->module->arena};
}

// Symbols of the callee mean nothing to the caller: what no argument binds is unknown.
static int64_t substitute(const berth_infer *x, berth_dim_bindings *map, int64_t dim) {
    if (dim >= 0) return dim;
    map->missed = false;
    int64_t result = berth_dim_substitute(x->module, dim, berth_dim_bound, map);
    return map->missed ? BERTH_DIM_UNKNOWN : result;
}

static berth_status bind_argument(const berth_infer *x, uint32_t operand, const berth_type *param,
                                  berth_dim_bindings *map) {
    berth_type in = berth_infer__in(x, operand);
    BERTH_TRY(berth_infer__want_dtype(x, operand, param->dtype));
    if (param->rank < 0 || in.rank < 0) return BERTH_OK;
    BERTH_TRY(berth_infer__want_rank(x, operand, param->rank, param->rank));
    for (int i = 0; i < param->rank; ++i) {
        int64_t ignored = 0;
        if (param->dims[i] >= 0)
            BERTH_TRY(berth_infer__merge_dim(x, "argument", param->dims[i], in.dims[i], &ignored));
        else
            (void)berth_dim_bind(map, param->dims[i],
                                 in.dims[i]);  // the verifier says what does not fit
    }
    return BERTH_OK;
}

// Results of the callee, with its symbols replaced by the extents of the arguments.
static berth_status call_graph(berth_infer *x, const berth_graph *callee) {
    const berth_region *root = &callee->regions.data[0];
    berth_dim_bindings map = bindings_of(x);
    if (root->params.count != x->op->input_count || root->results.count != x->op->output_count)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the callee takes %u arguments and has %u results",
                                 root->params.count, root->results.count);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_type *param =
            berth_type_get(x->module, callee->values.data[root->params.data[i]].type);
        if (param->kind == BERTH_TYPE_TENSOR) BERTH_TRY(bind_argument(x, i, param, &map));
    }
    for (uint32_t i = 0; i < root->results.count; ++i) {
        berth_type_id id = callee->values.data[root->results.data[i]].type;
        berth_type type = *berth_type_get(x->module, id);
        if (type.kind == BERTH_TYPE_TENSOR && !berth_type_is_static(&type)) {
            for (int d = 0; d < type.rank; ++d) type.dims[d] = substitute(x, &map, type.dims[d]);
            id = berth_type_tensor_layout(x->module, type.dtype, type.rank, type.dims, type.layout);
        }
        berth_infer__set_type(x, i, id);
    }
    return BERTH_OK;
}

static berth_status call_type(berth_infer *x, const berth_type *type) {
    uint32_t results = type->field_count - type->param_count;
    if (results != x->op->output_count)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "the callee has %u results", results);
    for (uint32_t i = 0; i < results; ++i)
        berth_infer__set_type(x, i, type->fields[type->param_count + i]);
    return BERTH_OK;
}

// Results whose types the call leaves out, from the external function's type. What does not fit is
// the verifier's to say.
static berth_status call_external(berth_infer *x, const berth_type *type) {
    berth_dim_bindings map = bindings_of(x);
    if (type->kind != BERTH_TYPE_FUNCTION || type->param_count != x->op->input_count ||
        type->field_count - type->param_count != x->op->output_count)
        return BERTH_OK;
    for (uint32_t i = 0; i < type->param_count; ++i) {
        const berth_type *param = berth_type_get(x->module, type->fields[i]);
        berth_type in = berth_infer__in(x, i);
        for (int d = 0; param->kind == BERTH_TYPE_TENSOR && d < param->rank && d < in.rank; ++d)
            (void)berth_dim_bind(&map, param->dims[d], in.dims[d]);
    }
    for (uint32_t i = 0; i < x->op->output_count; ++i) {
        berth_type_id id = type->fields[type->param_count + i];
        berth_type result = *berth_type_get(x->module, id);
        if (x->graph->values.data[x->op->outputs[i]].type) continue;
        for (int d = 0; result.kind == BERTH_TYPE_TENSOR && d < result.rank; ++d)
            result.dims[d] = substitute(x, &map, result.dims[d]);
        if (result.kind == BERTH_TYPE_TENSOR && result.rank >= 0)
            id = berth_type_tensor_layout(x->module, result.dtype, result.rank, result.dims,
                                          result.layout);
        berth_infer__set_type(x, i, id);
    }
    return BERTH_OK;
}

static berth_type_id type_of_buffer(const berth_infer *x, berth_dim_bindings *map,
                                    const berth_buf_info *buf) {
    int64_t dims[BERTH_MAX_RANK];
    for (int d = 0; d < buf->rank; ++d) dims[d] = substitute(x, map, buf->dims[d]);
    return berth_type_tensor_layout(x->module, buf->dtype, buf->rank, dims, buf->layout);
}

// Results are what it writes, in order, unless whoever makes the call has set them, or hands over
// memory for them. Whether arguments fit is the verifier's to say.
static void call_tensor_function(berth_infer *x, const berth_tfn *fn) {
    berth_dim_bindings map = bindings_of(x);
    uint32_t operand = 0, result = 0;
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        const berth_buf_info *buf = &fn->bufs.data[i];
        if (buf->role == BERTH_ROLE_OUT || operand == x->op->input_count) continue;
        berth_type in = berth_infer__in(x, operand++);
        for (int d = 0; in.rank == buf->rank && d < in.rank; ++d)
            (void)berth_dim_bind(&map, buf->dims[d], in.dims[d]);
    }
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        const berth_buf_info *buf = &fn->bufs.data[i];
        if (buf->role != BERTH_ROLE_OUT) continue;
        if (result == x->op->output_count) return;
        if (!x->graph->values.data[x->op->outputs[result]].type)
            berth_infer__set_type(x, result, type_of_buffer(x, &map, buf));
        result++;
    }
}

berth_status berth_infer__call(berth_infer *x) {
    if (x->op->kind == BERTH_OP_CALL_VALUE) {
        berth_type type = berth_infer__in(x, 0);
        if (type.kind == BERTH_TYPE_FUNCTION) return call_type(x, &type);
        set_all_unknown(x);
        return BERTH_OK;
    }
    const berth_attr *callee = berth_attrs_find(x->module, &x->op->attrs, "callee");
    if (!callee || callee->kind != BERTH_ATTR_FUNCTION)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute callee (a function) is missing");
    const berth_graph *graph = berth_graph_get(x->module, callee->function);
    if (graph) return call_graph(x, graph);
    const berth_external *external = berth_external_get(x->module, callee->function);
    if (external) return call_external(x, berth_type_get(x->module, external->type));
    const berth_tfn *fn = berth_tfn_get(x->module, callee->function);
    if (fn) call_tensor_function(x, fn);
    return BERTH_OK;
}

berth_status berth_infer__func_ref(berth_infer *x) {
    const berth_attr *callee = berth_attrs_find(x->module, &x->op->attrs, "callee");
    if (!callee || callee->kind != BERTH_ATTR_FUNCTION)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute callee (a function) is missing");
    const berth_graph *graph = berth_graph_get(x->module, callee->function);
    if (!graph) return BERTH_OK;
    const berth_region *root = &graph->regions.data[0];
    berth_type_id *types = berth_arena_new_array(x->module->arena, berth_type_id,
                                                 root->params.count + root->results.count);
    for (uint32_t i = 0; i < root->params.count; ++i)
        types[i] = graph->values.data[root->params.data[i]].type;
    for (uint32_t i = 0; i < root->results.count; ++i)
        types[root->params.count + i] = graph->values.data[root->results.data[i]].type;
    berth_infer__set_type(x, 0,
                          berth_type_function(x->module, types, root->params.count,
                                              types + root->params.count, root->results.count));
    return BERTH_OK;
}

// ---- tuples, storage ----

berth_status berth_infer__tuple(berth_infer *x) {
    berth_type_id *fields =
        berth_arena_new_array(x->module->arena, berth_type_id, x->op->input_count);
    for (uint32_t i = 0; i < x->op->input_count; ++i)
        if (berth_infer__has(x, i)) fields[i] = x->graph->values.data[x->op->inputs[i]].type;
    berth_infer__set_type(x, 0, berth_type_tuple(x->module, fields, x->op->input_count));
    return BERTH_OK;
}

berth_status berth_infer__tuple_get(berth_infer *x) {
    berth_type tuple = berth_infer__in(x, 0);
    int64_t index = berth_infer__int(x, "index", 0);
    if (tuple.kind != BERTH_TYPE_TUPLE) {
        set_all_unknown(x);
        return BERTH_OK;
    }
    if (index < 0 || index >= tuple.field_count)
        return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "field %lld of a tuple of %u",
                                 (long long)index, tuple.field_count);
    berth_infer__set_type(x, 0, tuple.fields[index]);
    return BERTH_OK;
}

berth_status berth_infer__storage(berth_infer *x) {
    berth_infer__set_type(x, 0, berth_type_storage(x->module));
    return BERTH_OK;
}

berth_status berth_infer__alloc_tensor(berth_infer *x) {
    const berth_attr *type = berth_attrs_find(x->module, &x->op->attrs, "type");
    berth_infer_ints shape;
    if (type && type->kind == BERTH_ATTR_TYPE) {
        berth_infer__set_type(x, 0, type->type);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__extents(x, 2, &shape));
    berth_dtype dtype = berth_infer__dtype(x, "dtype", BERTH_DTYPE_NONE);
    if (shape.known && shape.count <= BERTH_MAX_RANK)
        berth_infer__set(x, 0, dtype, shape.count, shape.values);
    else
        berth_infer__set_unknown(x, 0, dtype, -1);
    return BERTH_OK;
}

// What is sent has no results; what comes from another machine has the type that it says.
berth_status berth_infer__nothing(berth_infer *x) {
    (void)x;
    return BERTH_OK;
}

berth_status berth_infer__received(berth_infer *x) {
    const berth_attr *type = berth_attrs_find(x->module, &x->op->attrs, "type");
    if (!type || type->kind != BERTH_ATTR_TYPE)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute type (a type) is missing");
    berth_infer__set_type(x, 0, type->type);
    return BERTH_OK;
}

berth_status berth_infer__relayout(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    const char *layout = berth_attrs_string(x->module, &x->op->attrs, "layout", "");
    berth_infer__set_type(x, 0,
                          berth_type_tensor_layout(x->module, in.dtype, in.rank, in.dims,
                                                   berth_module_intern(x->module, layout)));
    return BERTH_OK;
}

// ---- control flow ----

// The most precise type that both are; unknown where they differ.
static berth_type_id join_types(berth_module *module, berth_type_id a, berth_type_id b) {
    if (a == b) return a;
    berth_type x = *berth_type_get(module, a);
    berth_type y = *berth_type_get(module, b);
    if (x.kind != BERTH_TYPE_TENSOR || y.kind != BERTH_TYPE_TENSOR) return 0;
    berth_dtype dtype = x.dtype == y.dtype ? x.dtype : BERTH_DTYPE_NONE;
    if (x.rank != y.rank) return berth_type_tensor(module, dtype, -1, NULL);
    for (int i = 0; i < x.rank; ++i)
        if (x.dims[i] != y.dims[i]) x.dims[i] = BERTH_DIM_UNKNOWN;
    return berth_type_tensor(module, dtype, x.rank, x.dims);
}

static berth_status want_regions(const berth_infer *x, uint32_t count) {
    if (x->op->region_count == count) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%u regions, expected %u",
                             x->op->region_count, count);
}

berth_status berth_infer__if(berth_infer *x) {
    BERTH_TRY(want_regions(x, 2));
    BERTH_TRY(berth_infer__want_dtype(x, 0, BERTH_DTYPE_BOOL));
    for (uint32_t r = 0; r < 2; ++r) {
        BERTH_TRY(berth_infer__region(x, x->op->regions[r]));
        if (x->graph->regions.data[x->op->regions[r]].results.count != x->op->output_count)
            return berth_infer__fail(
                x, BERTH_INVALID_ARGUMENT, "a branch has %u results, expected %u",
                x->graph->regions.data[x->op->regions[r]].results.count, x->op->output_count);
    }
    const berth_region *first = &x->graph->regions.data[x->op->regions[0]];
    const berth_region *second = &x->graph->regions.data[x->op->regions[1]];
    for (uint32_t i = 0; i < x->op->output_count; ++i) {
        berth_type_id a = x->graph->values.data[first->results.data[i]].type;
        berth_type_id b = x->graph->values.data[second->results.data[i]].type;
        berth_infer__set_type(x, i, join_types(x->module, a, b));
    }
    return BERTH_OK;
}

// One pass over the body; carried parameters whose result differs are widened. Returns true when
// nothing changed.
static berth_status widen_carried(berth_infer *x, const berth_region *body, uint32_t carried,
                                  bool give_up, bool *out_stable) {
    *out_stable = true;
    for (uint32_t i = 0; i < carried; ++i) {
        berth_value *param = &x->graph->values.data[body->params.data[2 + i]];
        berth_type_id result = x->graph->values.data[body->results.data[1 + i]].type;
        berth_type_id joined = join_types(x->module, param->type, result);
        if (joined == param->type) continue;
        param->type =
            give_up && joined  // not of a sequence or an optional value
                ? berth_type_tensor(x->module, berth_type_get(x->module, joined)->dtype, -1, NULL)
                : joined;
        *out_stable = false;
    }
    return BERTH_OK;
}

// Operands: trip count, condition, carried...; body parameters: iteration, condition, carried...;
// body results: condition, carried..., scanned...; results: carried..., scanned... with a leading
// dimension of iterations.
berth_status berth_infer__loop(berth_infer *x) {
    BERTH_TRY(want_regions(x, 1));
    uint32_t carried = x->op->input_count - 2;
    const berth_region *body = &x->graph->regions.data[x->op->regions[0]];
    if (body->params.count != carried + 2 || body->results.count != x->op->output_count + 1 ||
        x->op->output_count < carried)
        return berth_infer__fail(
            x, BERTH_INVALID_ARGUMENT,
            "%u carried values, but the body has %u parameters and %u results, the loop %u",
            carried, body->params.count, body->results.count, x->op->output_count);
    x->graph->values.data[body->params.data[0]].type =
        berth_type_tensor(x->module, BERTH_DTYPE_I64, 0, NULL);
    x->graph->values.data[body->params.data[1]].type =
        berth_type_tensor(x->module, BERTH_DTYPE_BOOL, 0, NULL);
    for (uint32_t i = 0; i < carried; ++i)
        x->graph->values.data[body->params.data[2 + i]].type =
            berth_infer__has(x, 2 + i) ? x->graph->values.data[x->op->inputs[2 + i]].type : 0;
    bool stable = false;
    for (int round = 0; !stable && round < 3;
         ++round) {  // extents, then ranks, are given up: stable after that
        BERTH_TRY(berth_infer__region(x, x->op->regions[0]));
        BERTH_TRY(widen_carried(x, body, carried, round > 0, &stable));
    }
    const berth_tensor *trips = berth_infer__literal(x, 0);
    bool counted = trips && berth_tensor_element_count(trips) == 1 && !berth_infer__has(x, 1);
    for (uint32_t i = 0; i < x->op->output_count; ++i) {
        berth_type_id id = x->graph->values.data[body->results.data[1 + i]].type;
        if (i < carried) {  // no iteration at all gives the initial value
            id = join_types(x->module, id, x->graph->values.data[body->params.data[2 + i]].type);
        } else {
            berth_type type = *berth_type_get(x->module, id);
            int64_t dims[BERTH_MAX_RANK] = {BERTH_DIM_UNKNOWN};
            if (counted && berth_tensor_get_i64(trips, 0) >= 0)
                dims[0] = berth_tensor_get_i64(trips, 0);
            if (type.rank == BERTH_MAX_RANK)
                return berth_infer__fail(x, BERTH_UNSUPPORTED, "a scanned result has %d dimensions",
                                         type.rank + 1);
            for (int d = 0; d < type.rank; ++d) dims[d + 1] = type.dims[d];
            id = berth_type_tensor(x->module, type.dtype, type.rank < 0 ? -1 : type.rank + 1, dims);
        }
        berth_infer__set_type(x, i, id);
    }
    return BERTH_OK;
}

// ---- sequences and optional values: of unknown type ----

berth_status berth_infer__sequence(berth_infer *x) {
    berth_infer__set_type(x, 0, 0);
    return BERTH_OK;
}

berth_status berth_infer__any_tensor(berth_infer *x) {
    set_all_unknown(x);
    return BERTH_OK;
}

berth_status berth_infer__sequence_length(berth_infer *x) {
    berth_infer__set(x, 0, BERTH_DTYPE_I64, 0, NULL);
    return BERTH_OK;
}

berth_status berth_infer__truth(berth_infer *x) {
    berth_infer__set(x, 0, BERTH_DTYPE_BOOL, 0, NULL);
    return BERTH_OK;
}

// What an optional value holds may be a sequence.
berth_status berth_infer__optional_get(berth_infer *x) {
    berth_infer__set_type(x, 0, x->graph->values.data[x->op->inputs[0]].type);
    return BERTH_OK;
}

// ---- Winograd convolution F(m x m, 3 x 3): tiles of t = m + 2 ----
// weights (O, C, 3, 3) → (t * t, C, O); input (N, C, H, W) → (t * t, P, C) with P = N * tiles;
// product (t * t, P, O); output (N, O, out_h, out_w), given by attribute output_shape. Attribute
// tile = m; of the input also pads, as in conv.

static berth_status winograd_tile(const berth_infer *x, int64_t *out_m) {
    *out_m = berth_infer__int(x, "tile", 0);
    if (*out_m >= 1 && *out_m <= 8) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute tile is %lld",
                             (long long)*out_m);
}

berth_status berth_infer__winograd_weights(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int64_t m = 0;
    BERTH_TRY(winograd_tile(x, &m));
    BERTH_TRY(berth_infer__want_rank(x, 0, 4, 4));
    int64_t dims[3] = {(m + 2) * (m + 2), in.dims[1], in.dims[0]};
    berth_infer__set(x, 0, in.dtype, in.rank == 4 ? 3 : -1, dims);
    return BERTH_OK;
}

berth_status berth_infer__winograd_input(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int64_t m = 0;
    uint32_t count = 0;
    const int64_t *pads = berth_attrs_ints(x->module, &x->op->attrs, "pads", &count);
    BERTH_TRY(winograd_tile(x, &m));
    if (!berth_type_is_static(&in) || in.rank != 4 || (pads && count != 4))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "a static input of rank 4 and four pads are needed");
    int64_t dims[3] = {(m + 2) * (m + 2), in.dims[0], in.dims[1]};
    for (int i = 0; i < 2; ++i) {
        int64_t out = in.dims[2 + i] - 2 + (pads ? pads[i] + pads[2 + i] : 0);
        int64_t tiles[2] = {dims[1], (out + m - 1) / m};
        BERTH_TRY(berth_infer__product(x, tiles, 2, &dims[1]));
    }
    berth_infer__set(x, 0, in.dtype, 3, dims);
    return BERTH_OK;
}

berth_status berth_infer__winograd_matmul(berth_infer *x) {
    return berth_infer__matmul(x);
}

berth_status berth_infer__winograd_output(berth_infer *x) {
    uint32_t count = 0;
    const int64_t *shape = berth_attrs_ints(x->module, &x->op->attrs, "output_shape", &count);
    if (!shape || count != 4)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute output_shape needs four extents");
    berth_infer__set(x, 0, berth_infer__in(x, 0).dtype, 4, shape);
    return BERTH_OK;
}

// An error, which a branch that may not run excuses (berth_graph_excuse).
berth_status berth_infer__not_imported(berth_infer *x) {
    const char *reason = berth_attrs_string(x->module, &x->op->attrs, "reason", "");
    return berth_status_make(BERTH_UNSUPPORTED, "%s",
                             *reason ? reason : "an operation that could not be imported");
}
