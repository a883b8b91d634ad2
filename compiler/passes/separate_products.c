#include "compiler/passes/separate_products.h"

#include "compiler/passes/rewrite.h"

typedef struct joined {
    const berth_op *product;
    const berth_tensor *weights;
    const berth_op *sum;       // NULL = none
    const berth_tensor *bias;  // of the sum
    uint32_t bias_operand;
} joined;

static const berth_graph *graph_of(const berth_rewriter *r) {
    return berth_graph_get(r->module, r->function);
}

static const berth_type *type_of(const berth_rewriter *r, berth_value_id value) {
    return berth_type_get(r->module, graph_of(r)->values.data[value].type);
}

static bool find_product(berth_rewriter *r, berth_value_id value, joined *j) {
    const berth_op *op = berth_rewriter_def(r, value);
    if (!op || berth_rewriter_uses(r, value) != 1 || op->device) return false;
    if (op->kind == BERTH_OP_MATMUL) {
        j->product = op;
        j->weights = berth_rewriter_raw_constant(r, op->inputs[1]);
        return j->weights && j->weights->rank == 2;
    }
    if (op->kind != BERTH_OP_ADD || j->sum) return false;
    for (uint32_t i = 0; i < 2; ++i) {
        const berth_tensor *bias = berth_rewriter_raw_constant(r, op->inputs[i]);
        if (!bias || bias->rank != 1) continue;
        j->sum = op;
        j->bias = bias;
        j->bias_operand = i;
        return find_product(r, op->inputs[1 - i], j);
    }
    return false;
}

static bool is_of_columns(const berth_rewriter *r, const berth_op *split, const joined *j) {
    const berth_type *whole = type_of(r, split->inputs[0]);
    int64_t axis = berth_attrs_int(r->module, &split->attrs, "axis", 0);
    if (axis < 0) axis += whole->rank;
    for (uint32_t i = 0; i < split->output_count; ++i)
        if (!berth_type_is_static(type_of(r, split->outputs[i]))) return false;
    return berth_type_is_static(whole) && axis == whole->rank - 1 &&
           whole->dims[axis] == j->weights->dims[1] &&
           (!j->bias || j->bias->dims[0] == j->weights->dims[1]);
}

static berth_status separate(berth_rewriter *r, berth_op_id id, const berth_op *split,
                             const joined *j) {
    int64_t first = 0;
    const berth_op product = *j->product;
    const berth_loc_id sum_loc = j->sum ? j->sum->loc : 0;
    for (uint32_t i = 0; i < split->output_count; ++i) {
        const berth_type *part = type_of(r, split->outputs[i]);
        int64_t count = part->dims[part->rank - 1];
        berth_tensor columns = berth_rewriter_take(r->module->arena, j->weights, 1, first, count);
        berth_value_id inputs[2] = {product.inputs[0],
                                    berth_rewriter_insert_constant(r, id, &columns, product.loc)};
        berth_value_id result = BERTH_NONE;
        BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MATMUL, inputs, 2, &product.attrs,
                                        product.loc, &result));
        if (j->bias) {
            berth_tensor bias = berth_rewriter_take(r->module->arena, j->bias, 0, first, count);
            inputs[j->bias_operand] = berth_rewriter_insert_constant(r, id, &bias, sum_loc);
            inputs[1 - j->bias_operand] = result;
            BERTH_TRY(
                berth_rewriter_insert(r, id, BERTH_OP_ADD, inputs, 2, NULL, sum_loc, &result));
        }
        berth_rewriter_replace(r, split->outputs[i], result);
        first += count;
    }
    return BERTH_OK;
}

berth_status berth_pass_separate_products(berth_module *module, berth_func_id main) {
    berth_rewriter r;
    berth_rewriter_begin(&r, module, main);
    const berth_region *root = &berth_graph_get(module, main)->regions.data[0];
    uint32_t count = root->ops.count;
    const berth_op_id *ids = berth_arena_copy(module->arena, root->ops.data, count * sizeof(*ids));
    for (uint32_t i = 0; i < count; ++i) {
        joined j = {.product = NULL};
        const berth_op split = berth_graph_get(module, main)->ops.data[ids[i]];
        if (split.kind != BERTH_OP_SPLIT || split.device || split.output_count < 2) continue;
        if (find_product(&r, split.inputs[0], &j) && is_of_columns(&r, &split, &j))
            BERTH_TRY(separate(&r, ids[i], &split, &j));
    }
    berth_rewriter_finish(&r);
    return BERTH_OK;
}
