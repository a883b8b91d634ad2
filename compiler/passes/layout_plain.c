#include "compiler/passes/layout_plain.h"

#include "compiler/passes/layout_private.h"
#include "ir/graph/op_params.h"

#include <string.h>

// Accumulators that leave room for the factors in the registers of a Cortex-M4: 32 of floats, 13 of
// integers.
int64_t berth_plain_tile(berth_dtype dtype, int64_t count, bool rows) {
    int64_t most = !berth_dtype_is_float(dtype) ? 5 : rows ? 4 : 8;
    while (most > 1 && count % most) --most;
    return most;
}

static void set_packed(berth_layout_pass *p, berth_op_id id, const berth_tensor *weights,
                       const char *tag) {
    berth_value_id packed = berth_layout__packed_constant(p, weights, tag, id);
    if (packed != BERTH_NONE) berth_layout__set_input(p, id, 1, packed);
}

static void pack(berth_layout_pass *p, berth_op_id id, const char *outer, int64_t block) {
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), graph_of(p)->ops.data[id].inputs[1]);
    const char *tag = berth_arena_printf(p->module->arena, "%s%llda", outer, (long long)block);
    set_packed(p, id, weights, tag);
}

// ---- sums of bytes (compiler/schedule/plain_columns.h) ------------------------------------------

// Weights (o, ...) less their zero points as i8; NULL where that holds some of them not.
static const berth_tensor *signed_weights(berth_layout_pass *p, const berth_op *op,
                                          const berth_tensor *weights) {
    berth_value_id zero = op->input_count > 3 ? op->inputs[3] : BERTH_NONE;
    if (zero == BERTH_NONE) return weights->dtype == BERTH_DTYPE_I8 ? weights : NULL;
    const berth_tensor *zeros = berth_graph_constant_of(p->module, graph_of(p), zero);
    int64_t count = zeros ? berth_tensor_element_count(zeros) : 0;
    if (count != 1 && (count == 0 || count != weights->dims[0])) return NULL;
    berth_tensor *out = berth_arena_new(p->module->arena, berth_tensor);
    *out = berth_tensor_create(p->module->arena, BERTH_DTYPE_I8, weights->rank, weights->dims);
    int64_t all = berth_tensor_element_count(weights), each = all / weights->dims[0];
    for (int64_t i = 0; i < all; ++i) {
        int64_t value = berth_tensor_get_i64(weights, i) -
                        berth_tensor_get_i64(zeros, count == 1 ? 0 : i / each);
        if (value < -128 || value > 127) return NULL;
        berth_tensor_set_i64(out, i, value);
    }
    return out;
}

// Signed bytes are multiplied by the weights: unsigned ones less 128. A zero point of just that costs
// nothing, so that of `x` becomes it, and the difference times the weights' sums is a constant. What
// lies in the padding has that difference, too.
static void set_signed_zero(berth_layout_pass *p, berth_op_id id, const berth_tensor *weights) {
    const berth_op op = graph_of(p)->ops.data[id];
    berth_layout_zero zero;
    bool is_signed = type_of(p, op.inputs[0])->dtype == BERTH_DTYPE_I8;
    if (!berth_layout__zero_of(p, id, &zero) || (zero.value != BERTH_NONE && !zero.known)) return;
    int64_t more = zero.number - (is_signed ? 0 : 128), outputs = weights->dims[0];
    if (more == 0) return;
    int64_t all = berth_tensor_element_count(weights), each = all / outputs;
    int64_t *sums = berth_arena_new_array(p->scratch, int64_t, outputs);
    for (int64_t i = 0; i < all; ++i) sums[i / each] += berth_tensor_get_i64(weights, i);
    berth_value_id inputs[] = {op.inputs[0], graph_of(p)->ops.data[id].inputs[1], BERTH_NONE};
    if (!is_signed) {
        berth_tensor half = berth_tensor_create(p->module->arena, BERTH_DTYPE_U8, 0, NULL);
        berth_tensor_set_i64(&half, 0, 128);
        inputs[2] = berth_layout__constant(p, id, &half);
    }
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_value_id sum =
        berth_layout__insert(p, id, BERTH_OP_CONV_INTEGER, inputs, 3,
                             berth_type_tensor(p->module, BERTH_DTYPE_I32, out.rank, out.dims), id);
    berth_op *conv = &graph_of(p)->ops.data[graph_of(p)->values.data[sum].op];
    conv->attrs = op.attrs;
    berth_attrs_set(p->module, &conv->attrs, BERTH_CONV_PAD_VALUE,
                    (berth_attr){.kind = BERTH_ATTR_INT, .i = more});
    zero = (berth_layout_zero){.known = true, .number = more};
    berth_layout__subtract_zero(p, id, &zero, sum, sums, 1);
}

// (o, i, k...) as (o/2, reversed k..., i, o%2): what neighbours along the last dimension share lies
// together. False: it has no such form.
static bool pack_integer_convolution(berth_layout_pass *p, berth_op_id id,
                                     const berth_tensor *weights) {
    static const char *const tags[] = {[3] = "Acb2a", [4] = "Adcb2a", [5] = "Aedcb2a"};
    const berth_op *op = &graph_of(p)->ops.data[id];
    int64_t group = berth_attrs_int(p->module, &op->attrs, "group", 1);
    if (weights->rank < 3 || weights->rank > 5 || group != 1 || weights->dims[0] % 2) return false;
    const berth_tensor *held = signed_weights(p, op, weights);
    if (!held) return false;
    set_packed(p, id, held, tags[weights->rank]);
    if (graph_of(p)->ops.data[id].input_count > 3) berth_layout__set_input(p, id, 3, BERTH_NONE);
    if (p->signed_bytes) set_signed_zero(p, id, held);
    return true;
}

// One zero point of what (k, n) weights are multiplied by, taken off the sums: the bytes are then
// multiplied as they lie.
static void take_zero_off(berth_layout_pass *p, berth_op_id id, const berth_tensor *weights) {
    const berth_op op = graph_of(p)->ops.data[id];
    if (op.input_count < 3 || op.inputs[2] == BERTH_NONE) return;
    if (op.input_count > 3 && op.inputs[3] != BERTH_NONE) return;
    berth_layout_zero zero;
    if (!berth_layout__zero_of(p, id, &zero) || zero.value == BERTH_NONE) return;
    const berth_type out = *type_of(p, op.outputs[0]);
    int64_t columns = weights->dims[1], *sums = berth_arena_new_array(p->scratch, int64_t, columns);
    for (int64_t i = 0; i < weights->dims[0] * columns; ++i)
        sums[i % columns] += berth_tensor_get_i64(weights, i);
    berth_value_id inputs[] = {op.inputs[0], graph_of(p)->ops.data[id].inputs[1]};
    berth_value_id sum =
        berth_layout__insert(p, id, BERTH_OP_MATMUL_INTEGER, inputs, 2,
                             berth_type_tensor(p->module, BERTH_DTYPE_I32, out.rank, out.dims), id);
    berth_layout__subtract_zero(p, id, &zero, sum, sums, out.rank - 1);
}

// Whether one row is multiplied.
static bool is_vector(const berth_layout_pass *p, berth_value_id value) {
    const berth_type *x = type_of(p, value);
    int64_t lines = berth_type_is_static(x) ? 1 : 2;
    for (int i = 0; i + 1 < x->rank; ++i) lines *= x->dims[i];
    return lines == 1;
}

// (k, n) as (n, k) for one row, else as (n/2, k, n%2).
static void pack_integer_product(berth_layout_pass *p, berth_op_id id,
                                 const berth_tensor *weights) {
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    if (weights->rank != 2 || weights->dtype != BERTH_DTYPE_I8 ||
        !berth_type_is_static(type_of(p, x)))
        return;
    if (is_vector(p, x)) {
        set_packed(p, id, weights, "ba");
        take_zero_off(p, id, weights);
    } else if (weights->dims[1] % 2 == 0)
        set_packed(p, id, weights, "Ba2b");
}

// ---- constants that are added one after the other -----------------------------------------------

// The constant that an addition of i32 adds, and to what; NULL = it adds none.
static const berth_tensor *addend_of(const berth_layout_pass *p, const berth_op *op,
                                     berth_value_id *out_to) {
    if (op->kind != BERTH_OP_ADD) return NULL;
    for (int i = 0; i < 2; ++i) {
        const berth_tensor *addend = berth_graph_constant_of(p->module, graph_of(p), op->inputs[i]);
        *out_to = op->inputs[1 - i];
        if (addend && addend->dtype == BERTH_DTYPE_I32) return addend;
    }
    return NULL;
}

static bool same_shape(const berth_tensor *a, const berth_tensor *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims)) == 0;
}

// (x + a) + b as x + (a + b), where nothing else reads x + a: what comes off a sum goes into its bias.
static void join_addends(berth_layout_pass *p, berth_op_id id, const uint32_t *uses) {
    const berth_op op = graph_of(p)->ops.data[id];
    berth_value_id sum = BERTH_NONE, x = BERTH_NONE;
    const berth_tensor *second = addend_of(p, &op, &sum);
    if (!second || sum >= p->value_count || uses[sum] != 1) return;
    berth_op_id from = graph_of(p)->values.data[sum].op;
    if (from == BERTH_NONE) return;
    const berth_tensor *first = addend_of(p, &graph_of(p)->ops.data[from], &x);
    if (!first || !same_shape(first, second)) return;
    if (graph_of(p)->values.data[x].type != graph_of(p)->values.data[sum].type) return;
    berth_tensor both =
        berth_tensor_create(p->module->arena, BERTH_DTYPE_I32, first->rank, first->dims);
    int64_t count = berth_tensor_element_count(first);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_i64(&both, i,
                             (int32_t)((uint32_t)berth_tensor_get_i64(first, i) +
                                       (uint32_t)berth_tensor_get_i64(second, i)));
    berth_value_id addend = berth_layout__constant(p, id, &both);
    berth_layout__set_input(p, id, 0, x);
    berth_layout__set_input(p, id, 1, addend);
}

static void join_all_addends(berth_layout_pass *p) {
    const berth_graph *graph = graph_of(p);
    const berth_region *root = &graph->regions.data[0];
    uint32_t *uses = berth_arena_new_array(p->scratch, uint32_t, graph->values.count + 1);
    uint32_t count = root->ops.count;
    berth_op_id *ops = berth_arena_new_array(p->scratch, berth_op_id, count + 1);
    for (uint32_t i = 0; i < root->results.count; ++i) uses[root->results.data[i]]++;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &graph->ops.data[ops[i] = root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) uses[op->inputs[k]]++;
    }
    p->value_count = graph->values.count;
    berth_graph_begin_edit(graph_of(p));
    for (uint32_t i = 0; i < count; ++i) join_addends(p, ops[i], uses);
    berth_graph_end_edit(graph_of(p));
}

// ---- others -------------------------------------------------------------------------------------

// (o, i, k...) as (o/B, k..., i, o%B) where padding puts the loops over the window outside, else as
// (o/B, i, k..., o%B).
static void pack_convolution(berth_layout_pass *p, berth_op_id id, const berth_tensor *weights) {
    static const char *const inside[] = {[3] = "Acb", [4] = "Acdb", [5] = "Acdeb"};
    static const char *const outside[] = {[3] = "Abc", [4] = "Abcd", [5] = "Abcde"};
    const berth_op *op = &graph_of(p)->ops.data[id];
    const berth_type *x = type_of(p, op->inputs[0]);
    berth_window w;
    if (weights->rank < 3 || weights->rank > 5 || x->rank != weights->rank) return;
    berth_status status =
        berth_window_resolve(p->module, op, x->dims, x->rank, weights->dims + 2, &w);
    if (status || w.group != 1) {
        berth_status_ignore(status);
        return;
    }
    bool padded = false;
    for (int i = 0; i < w.spatial; ++i)
        padded |= w.pads_begin[i] > 0 || (w.output[i] - 1) * w.strides[i] +
                                                 (w.kernel[i] - 1) * w.dilations[i] -
                                                 w.pads_begin[i] >=
                                             w.input[i];
    int64_t block = berth_plain_tile(weights->dtype, weights->dims[0], !padded);
    if (block > 1) pack(p, id, padded ? inside[weights->rank] : outside[weights->rank], block);
}

// In small code sums go on one after the other, without tiles: those of a vector's product (k, n) walk over both
// operands in steps of one where the weights lie as (n, k).
static void pack_for_small_code(berth_layout_pass *p, berth_op_id id) {
    const berth_op *op = &graph_of(p)->ops.data[id];
    if (op->kind != BERTH_OP_MATMUL && op->kind != BERTH_OP_GEMM) return;
    if (berth_attrs_int(p->module, &op->attrs, "transA", 0) ||
        berth_attrs_int(p->module, &op->attrs, "transB", 0))
        return;
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), op->inputs[1]);
    if (!weights || weights->rank != 2 || type_of(p, op->inputs[1])->layout) return;
    if (is_vector(p, op->inputs[0])) set_packed(p, id, weights, "ba");
}

static void pack_weights(berth_layout_pass *p, berth_op_id id) {
    const berth_op *op = &graph_of(p)->ops.data[id];
    bool conv = op->kind == BERTH_OP_CONV;
    bool integer_conv = op->kind == BERTH_OP_CONV_INTEGER;
    bool integer_product = op->kind == BERTH_OP_MATMUL_INTEGER;
    if (!conv && !integer_conv && !integer_product && op->kind != BERTH_OP_GEMM) return;
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), op->inputs[1]);
    if (!weights || type_of(p, op->inputs[1])->layout) return;
    if (integer_conv && pack_integer_convolution(p, id, weights)) return;
    if (integer_product) {
        pack_integer_product(p, id, weights);
    } else if (conv || integer_conv) {
        pack_convolution(p, id, weights);
    } else if (berth_attrs_int(p->module, &op->attrs, "transB", 0) && weights->rank == 2) {
        bool rows = type_of(p, op->outputs[0])->dims[0] > 1;
        int64_t block = berth_plain_tile(weights->dtype, weights->dims[0], rows);
        if (block > 1) pack(p, id, "Ab", block);
    }
}

void berth_pass_layout_plain(berth_module *module, berth_func_id main,
                             const berth_multi_target *target, bool small, berth_packing *packing) {
    berth_graph *graph = berth_graph_get(module, main);
    uint32_t count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_new_array(module->arena, berth_op_id, count + 1);
    for (uint32_t i = 0; i < count; ++i) ops[i] = graph->regions.data[0].ops.data[i];
    const berth_target *device = target->devices[target->default_device].target;
    berth_layout_pass p = {.module = module, .main = main, .packing = packing};
    p.signed_bytes = berth_target_has_feature(device, "mve");
    p.scratch = berth_arena_create_child(module->arena);
    berth_graph_begin_edit(graph);
    for (uint32_t i = 0; i < count; ++i)
        small ? pack_for_small_code(&p, ops[i]) : pack_weights(&p, ops[i]);
    berth_graph_end_edit(graph_of(&p));
    join_all_addends(&p);
    berth_arena_destroy(p.scratch);
    berth_graph_remove_dead(module, main);
}
