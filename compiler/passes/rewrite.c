#include "compiler/passes/rewrite.h"

#include <string.h>

#include "ir/infer.h"
#include "planner/planner.h"

static berth_graph *graph_of(const berth_rewriter *rewriter) {
    return berth_graph_get(rewriter->module, rewriter->function);
}

// Values made since begin: fresh entries.
static void extend(berth_rewriter *rewriter) {
    uint32_t count = graph_of(rewriter)->values.count;
    while (rewriter->map.count < count) {
        berth_value_id next = rewriter->map.count;
        berth_vec_push(rewriter->module->arena, &rewriter->map, next);
    }
    if (count > rewriter->use_capacity) {
        rewriter->uses = berth_arena_grow(rewriter->module->arena, rewriter->uses,
                                          rewriter->use_capacity * sizeof(uint32_t),
                                          (count + 64) * sizeof(uint32_t));
        rewriter->use_capacity = count + 64;
    }
}

void berth_rewriter_begin(berth_rewriter *rewriter, berth_module *module, berth_func_id function) {
    *rewriter = (berth_rewriter){.module = module, .function = function};
    rewriter->uses = berth_graph_count_uses(graph_of(rewriter), module->arena);
    rewriter->use_capacity = graph_of(rewriter)->values.count;
    extend(rewriter);
    berth_graph_begin_edit(graph_of(rewriter));
}

berth_value_id berth_rewriter_resolve(berth_rewriter *rewriter, berth_value_id value) {
    if (value == BERTH_NONE) return value;
    extend(rewriter);
    while (rewriter->map.data[value] != value) value = rewriter->map.data[value];
    return value;
}

uint32_t berth_rewriter_uses(const berth_rewriter *rewriter, berth_value_id value) {
    return value < rewriter->use_capacity ? rewriter->uses[value] : 0;
}

void berth_rewriter_replace(berth_rewriter *rewriter, berth_value_id from, berth_value_id to) {
    extend(rewriter);
    to = berth_rewriter_resolve(rewriter, to);
    rewriter->map.data[from] = to;
    rewriter->uses[to] += rewriter->uses[from];
    rewriter->uses[from] = 0;
    // An outer name survives where the new value has none.
    berth_graph *graph = graph_of(rewriter);
    if (!graph->values.data[to].name) graph->values.data[to].name = graph->values.data[from].name;
    rewriter->changed = true;
}

void berth_rewriter_finish(berth_rewriter *rewriter) {
    extend(rewriter);
    berth_graph_end_edit(graph_of(rewriter));
    berth_graph_replace_many(graph_of(rewriter), rewriter->map.data);
    berth_graph_remove_dead(rewriter->module, rewriter->function);
}

const berth_op *berth_rewriter_def(berth_rewriter *rewriter, berth_value_id value) {
    value = berth_rewriter_resolve(rewriter, value);
    if (value == BERTH_NONE) return NULL;
    const berth_graph *graph = graph_of(rewriter);
    berth_op_id op = graph->values.data[value].op;
    return op == BERTH_NONE ? NULL : &graph->ops.data[op];
}

const berth_tensor *berth_rewriter_constant(berth_rewriter *rewriter, berth_value_id value) {
    return berth_graph_constant_of(rewriter->module, graph_of(rewriter),
                                   berth_rewriter_resolve(rewriter, value));
}

const berth_tensor *berth_rewriter_raw_constant(berth_rewriter *rewriter, berth_value_id value) {
    return berth_graph_raw_constant_of(rewriter->module, graph_of(rewriter),
                                       berth_rewriter_resolve(rewriter, value));
}

berth_status berth_rewriter_insert_op(berth_rewriter *rewriter, berth_op_id position,
                                      berth_op_kind kind, const berth_value_id *inputs,
                                      uint32_t input_count, uint32_t output_count,
                                      const berth_attrs *attrs, berth_loc_id loc,
                                      berth_op_id *out_op) {
    berth_op_id op = berth_graph_insert_op(rewriter->module, rewriter->function, position, kind,
                                           inputs, input_count, output_count, loc);
    berth_graph *graph = graph_of(rewriter);
    if (attrs)
        for (uint32_t i = 0; i < attrs->items.count; ++i)
            berth_attrs_set(rewriter->module, &graph->ops.data[op].attrs,
                            berth_module_str(rewriter->module, attrs->items.data[i].name),
                            attrs->items.data[i]);
    graph->ops.data[op].device = graph->ops.data[position].device;
    *out_op = op;
    extend(rewriter);
    for (uint32_t i = 0; i < input_count; ++i)
        if (inputs[i] != BERTH_NONE) rewriter->uses[berth_rewriter_resolve(rewriter, inputs[i])]++;
    return berth_infer_op(rewriter->module, rewriter->function, op);
}

berth_status berth_rewriter_insert(berth_rewriter *rewriter, berth_op_id position,
                                   berth_op_kind kind, const berth_value_id *inputs,
                                   uint32_t input_count, const berth_attrs *attrs, berth_loc_id loc,
                                   berth_value_id *out_result) {
    berth_op_id op = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert_op(rewriter, position, kind, inputs, input_count, 1, attrs, loc,
                                       &op));
    *out_result = graph_of(rewriter)->ops.data[op].outputs[0];
    return BERTH_OK;
}

berth_value_id berth_rewriter_insert_constant(berth_rewriter *rewriter, berth_op_id position,
                                              const berth_tensor *tensor, berth_loc_id loc) {
    berth_value_id value =
        berth_graph_insert_constant(rewriter->module, rewriter->function, position, tensor, loc);
    extend(rewriter);
    return value;
}

berth_tensor berth_rewriter_take(berth_arena *arena, const berth_tensor *from, int dim,
                                 int64_t first, int64_t count) {
    int64_t dims[BERTH_MAX_RANK], outer = 1;
    size_t inner = berth_dtype_size_bytes(from->dtype);
    memcpy(dims, from->dims, sizeof(dims));
    dims[dim] = count;
    for (int i = 0; i < dim; ++i) outer *= dims[i];
    for (int i = dim + 1; i < from->rank; ++i) inner *= (size_t)dims[i];
    berth_tensor part = berth_tensor_create(arena, from->dtype, from->rank, dims);
    for (int64_t o = 0; o < outer; ++o)
        memcpy((uint8_t *)part.data + (size_t)(o * count) * inner,
               (const uint8_t *)from->data + (size_t)(o * from->dims[dim] + first) * inner,
               (size_t)count * inner);
    return part;
}

bool berth_rewriter_may_join(const berth_rewriter *r, berth_loc_id a, berth_loc_id b) {
    return !berth_planner_pinned_apart(r->module, r->module->arena, r->target, a, b);
}

berth_status berth_rewriter_reshape(berth_rewriter *r, berth_op_id at, int rank,
                                    const int64_t *dims, berth_loc_id loc, berth_value_id *value) {
    int64_t count = rank;
    berth_tensor shape = berth_tensor_create(r->module->arena, BERTH_DTYPE_I64, 1, &count);
    for (int d = 0; d < rank; ++d) berth_tensor_set_i64(&shape, d, dims[d]);
    berth_value_id inputs[2] = {*value, berth_rewriter_insert_constant(r, at, &shape, loc)};
    return berth_rewriter_insert(r, at, BERTH_OP_RESHAPE, inputs, 2, NULL, loc, value);
}
