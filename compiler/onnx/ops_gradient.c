// Gradient of ai.onnx.preview.training: derivatives of a value by others, in reverse (Griewank and Walther,
// "Evaluating Derivatives", 2008, chapter 3): the operations between them are visited against their
// order, and each gives to its operands what its result's derivative comes to. O(operations).
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

typedef struct gradients {
    onnx_compose c;
    const onnx_attr *xs;
    berth_value_id y;
    uint32_t value_count;  // before anything was added
    uint32_t op_count;     // of the region, then
    bool *depends;         // per value: on one of xs
    berth_value_id *sums;  // per value: the derivative of y by it, as far as it is gathered
} gradients;

static const berth_graph *graph_of(const gradients *g) {
    const onnx_importer *im = g->c.call->im;
    return berth_graph_get(im->module, im->function);
}

static berth_value_id named(gradients *g, const char *name) {
    onnx_importer *im = g->c.call->im;
    uint32_t value = onnx_scope_find(im->scope, berth_module_intern(im->module, name));
    if (value < graph_of(g)->values.count) return value;
    onnx_compose_fail(&g->c, BERTH_INVALID_ARGUMENT,
                      "\"%.64s\" is no tensor that is made before this node", name);
    return BERTH_NONE;
}

// ---- shapes -------------------------------------------------------------------------------------

// What a broadcast operand is given: sums along the dimensions in which it was repeated.
static berth_value_id summed_like(gradients *g, berth_value_id value, berth_value_id like) {
    onnx_compose *c = &g->c;
    const int rank = onnx_compose_rank(c, value), kept = onnx_compose_rank(c, like);
    const int leading = rank - kept;
    int64_t axes[BERTH_MAX_RANK], front[BERTH_MAX_RANK];
    uint32_t count = 0;
    if (c->status) return BERTH_NONE;
    for (int d = 0; d < kept; ++d) {
        int64_t own = onnx_compose_extent(c, like, d);
        int64_t all = onnx_compose_extent(c, value, leading + d);
        if (own == all && own != BERTH_DIM_UNKNOWN) continue;
        if (own != 1)
            onnx_compose_fail(c, BERTH_UNSUPPORTED,
                              "a derivative by a tensor whose extents are not known before the "
                              "run");
        axes[count++] = leading + d;
    }
    if (count) value = onnx_reduced(c, BERTH_OP_REDUCE_SUM, value, axes, count, true);
    for (int d = 0; d < leading; ++d) front[d] = d;
    if (leading <= 0) return value;
    return onnx_reduced(c, BERTH_OP_REDUCE_SUM, value, front, (uint32_t)leading, false);
}

static void give(gradients *g, berth_value_id operand, berth_value_id derivative) {
    if (operand >= g->value_count || !g->depends[operand] || g->c.status) return;
    berth_value_id *sum = &g->sums[operand];
    derivative = summed_like(g, derivative, operand);
    *sum = *sum == BERTH_NONE ? derivative : onnx_add(&g->c, *sum, derivative);
}

// ---- operations ---------------------------------------------------------------------------------

// d(result)/d(operand) of an operation on each element; BERTH_NONE: not of this kind.
static berth_value_id slope(gradients *g, berth_op_kind kind, berth_value_id x, berth_value_id y) {
    onnx_compose *c = &g->c;
    switch (kind) {
    case BERTH_OP_NEG: return onnx_like(c, x, -1);
    case BERTH_OP_EXP: return y;
    case BERTH_OP_LOG: return onnx_make1(c, BERTH_OP_RECIPROCAL, x);
    case BERTH_OP_SQRT: return onnx_div(c, onnx_like(c, x, 0.5), y);
    case BERTH_OP_SIN: return onnx_make1(c, BERTH_OP_COS, x);
    case BERTH_OP_COS: return onnx_make1(c, BERTH_OP_NEG, onnx_make1(c, BERTH_OP_SIN, x));
    case BERTH_OP_TANH: return onnx_sub(c, onnx_like(c, y, 1), onnx_mul(c, y, y));
    case BERTH_OP_SIGMOID: return onnx_mul(c, y, onnx_sub(c, onnx_like(c, y, 1), y));
    case BERTH_OP_SOFTPLUS: return onnx_make1(c, BERTH_OP_SIGMOID, x);
    case BERTH_OP_RECIPROCAL: return onnx_make1(c, BERTH_OP_NEG, onnx_mul(c, y, y));
    case BERTH_OP_RELU:  // 0 at 0
        return onnx_where(c, onnx_make2(c, BERTH_OP_GREATER, x, onnx_like(c, x, 0)),
                          onnx_like(c, x, 1), onnx_like(c, x, 0));
    default: return BERTH_NONE;
    }
}

// Sums and means of all elements.
static void through_reduction(gradients *g, const berth_op *op, berth_value_id given) {
    onnx_compose *c = &g->c;
    berth_value_id x = op->inputs[0];
    const int rank = onnx_compose_rank(c, x);
    const bool some = op->input_count > 1 && op->inputs[1] != BERTH_NONE;
    int64_t ones[BERTH_MAX_RANK], count = 1;
    if (some)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "the derivative of a reduction along some axes");
    for (int d = 0; d < rank && !c->status; ++d) {
        ones[d] = 1;
        count *= onnx_compose_known_extent(c, x, "a tensor that is reduced", d);
    }
    given = onnx_reshaped(c, given, ones, (uint32_t)rank);
    if (op->kind == BERTH_OP_REDUCE_MEAN && count > 0)
        given = onnx_mul(c, given, onnx_like(c, x, 1.0 / (double)count));
    give(g, x, onnx_make2(c, BERTH_OP_EXPAND, given, onnx_shape_of(c, x)));
}

static void through_product(gradients *g, const berth_op *op, berth_value_id given) {
    static const int64_t turned[] = {1, 0};
    onnx_compose *c = &g->c;
    berth_value_id a = op->inputs[0], b = op->inputs[1];
    if (onnx_compose_rank(c, a) != 2 || onnx_compose_rank(c, b) != 2)
        onnx_compose_fail(c, BERTH_UNSUPPORTED,
                          "the derivative of a product of other than two "
                          "matrices");
    give(g, a, onnx_make2(c, BERTH_OP_MATMUL, given, onnx_transposed(c, b, turned, 2)));
    give(g, b, onnx_make2(c, BERTH_OP_MATMUL, onnx_transposed(c, a, turned, 2), given));
}

static void through(gradients *g, const berth_op *op, berth_value_id given) {
    onnx_compose *c = &g->c;
    berth_value_id a = op->inputs[0], b = op->input_count > 1 ? op->inputs[1] : BERTH_NONE;
    berth_value_id y = op->outputs[0], factor = BERTH_NONE;
    switch (op->kind) {
    case BERTH_OP_IDENTITY: give(g, a, given); return;
    case BERTH_OP_SUM:
        for (uint32_t i = 0; i < op->input_count; ++i) give(g, op->inputs[i], given);
        return;
    case BERTH_OP_ADD:
    case BERTH_OP_SUB:
        give(g, a, given);
        give(g, b, op->kind == BERTH_OP_ADD ? given : onnx_make1(c, BERTH_OP_NEG, given));
        return;
    case BERTH_OP_MUL:
        give(g, a, onnx_mul(c, given, b));
        give(g, b, onnx_mul(c, given, a));
        return;
    case BERTH_OP_DIV:
        give(g, a, onnx_div(c, given, b));
        give(g, b, onnx_make1(c, BERTH_OP_NEG, onnx_div(c, onnx_mul(c, given, y), b)));
        return;
    case BERTH_OP_MATMUL: through_product(g, op, given); return;
    case BERTH_OP_REDUCE_SUM:
    case BERTH_OP_REDUCE_MEAN: through_reduction(g, op, given); return;
    default: break;
    }
    factor = slope(g, op->kind, a, y);
    if (factor == BERTH_NONE)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "the derivative of %s is not there",
                          berth_op_facts_get(op->kind)->name);
    give(g, a, onnx_mul(c, given, factor));
}

// ---- the node -----------------------------------------------------------------------------------

// The node's operands are the values of xs, then those of zs: others would be another point.
static void check_operands(gradients *g) {
    onnx_call *call = g->c.call;
    const onnx_attr *zs = onnx_call_attr(call, "zs");
    if (call->im->region != 0)
        onnx_compose_fail(&g->c, BERTH_UNSUPPORTED, "derivatives inside a branch or a loop");
    const uint32_t all = g->xs->strings.count + (zs ? zs->strings.count : 0);
    if (call->input_count != all || call->output_count > g->xs->strings.count)
        onnx_compose_fail(&g->c, BERTH_INVALID_ARGUMENT,
                          "%u operands and %u results, for %u names in xs and %u in both xs and zs",
                          call->input_count, call->output_count, g->xs->strings.count, all);
    for (uint32_t i = 0; i < all && !g->c.status; ++i) {
        const bool first = i < g->xs->strings.count;
        const char *name =
            first ? g->xs->strings.data[i] : zs->strings.data[i - g->xs->strings.count];
        if (named(g, name) != call->inputs[i] && !g->c.status)
            onnx_compose_fail(&g->c, BERTH_UNSUPPORTED,
                              "operand %u is another tensor than \"%.64s\": derivatives are taken "
                              "where the model computes",
                              i, name);
    }
}

static void find_dependent(gradients *g) {
    const berth_graph *graph = graph_of(g);
    const berth_region *region = &graph->regions.data[0];
    for (uint32_t i = 0; i < g->xs->strings.count; ++i) g->depends[g->c.call->inputs[i]] = true;
    for (uint32_t i = 0; i < region->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[region->ops.data[i]];
        bool depends = op->region_count > 0;  // whatever is used inside
        for (uint32_t k = 0; k < op->input_count; ++k)
            depends |= op->inputs[k] != BERTH_NONE && g->depends[op->inputs[k]];
        for (uint32_t k = 0; k < op->output_count; ++k) g->depends[op->outputs[k]] |= depends;
    }
}

static bool is_x(const gradients *g, berth_value_id value) {
    for (uint32_t i = 0; i < g->xs->strings.count; ++i)
        if (g->c.call->inputs[i] == value) return true;
    return false;
}

static void gather(gradients *g) {
    for (uint32_t i = g->op_count; i-- > 0 && !g->c.status;) {
        const berth_graph *graph = graph_of(g);  // it grows meanwhile
        const berth_op op = graph->ops.data[graph->regions.data[0].ops.data[i]];
        for (uint32_t k = 0; k < op.output_count; ++k)
            if (g->sums[op.outputs[k]] != BERTH_NONE && !is_x(g, op.outputs[k]))
                through(g, &op, g->sums[op.outputs[k]]);
    }
}

static void prepare(gradients *g) {
    berth_arena *scratch = g->c.call->im->scratch;
    g->y = named(g, onnx_call_string(g->c.call, "y", ""));
    for (int d = 0; d < onnx_compose_rank(&g->c, g->y); ++d)
        if (onnx_compose_extent(&g->c, g->y, d) != 1)
            onnx_compose_fail(&g->c, BERTH_UNSUPPORTED,
                              "the derivative of more than one number, \"%.64s\"",
                              onnx_call_string(g->c.call, "y", ""));
    g->value_count = graph_of(g)->values.count;
    g->op_count = graph_of(g)->regions.data[0].ops.count;
    g->depends = berth_arena_new_array(scratch, bool, g->value_count);
    g->sums = berth_arena_new_array(scratch, berth_value_id, g->value_count);
    for (uint32_t i = 0; i < g->value_count; ++i) g->sums[i] = BERTH_NONE;
}

berth_status onnx_build_gradient(onnx_call *call) {
    enum { most = 1 << 16 };
    gradients g = {.c = onnx_compose_begin(call, 1, most)};
    g.xs = onnx_call_attr(call, "xs");
    if (!g.c.status) check_operands(&g);
    if (!g.c.status) prepare(&g);
    if (g.c.status) return g.c.status;
    find_dependent(&g);
    g.sums[g.y] =
        onnx_make2(&g.c, BERTH_OP_EXPAND, onnx_like(&g.c, g.y, 1), onnx_shape_of(&g.c, g.y));
    gather(&g);
    for (uint32_t i = 0; i < call->output_count && !g.c.status; ++i) {
        berth_value_id sum = g.sums[call->inputs[i]];
        berth_value_id shape = onnx_shape_of(&g.c, call->inputs[i]);
        if (sum == BERTH_NONE) sum = onnx_like(&g.c, call->inputs[i], 0);
        onnx_compose_output(&g.c, i, onnx_make2(&g.c, BERTH_OP_EXPAND, sum, shape));
    }
    return g.c.status;
}
