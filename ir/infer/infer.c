#include "ir/infer.h"

#include <string.h>

#include "ir/dim.h"
#include "ir/extend.h"
#include "ir/infer/internal.h"

// Inferences of one operation with all in its regions: loops look at their bodies again until types
// are stable, nested ones as often as that multiplies to. So many in all, and so many for every
// operation of the function.
enum { steps_limit = 1 << 20, rounds_limit = 64 };

typedef berth_status (*shape_fn)(berth_infer *x);

static const shape_fn shape_fns[BERTH_OP_COUNT] = {
#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    berth_infer__##shape_fn,
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP
};

// ---- reporting ----

berth_status berth_infer__at(const berth_infer *x, berth_status status) {
    if (!status) return BERTH_OK;
    return berth_status_prefix(status, "%s",
                               berth_loc_describe(x->module, x->op->loc, x->module->arena));
}

berth_status berth_infer__fail(const berth_infer *x, berth_code code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status = berth_status_make_at_v(code, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    return berth_infer__at(x, status);
}

// ---- operands ----

bool berth_infer__has(const berth_infer *x, uint32_t operand) {
    return operand < x->op->input_count && x->op->inputs[operand] != BERTH_NONE;
}

berth_type berth_infer__in(const berth_infer *x, uint32_t operand) {
    berth_type unknown = {.kind = BERTH_TYPE_TENSOR, .rank = -1};
    if (!berth_infer__has(x, operand)) return unknown;
    const berth_type *type =
        berth_type_get(x->module, x->graph->values.data[x->op->inputs[operand]].type);
    return type->kind == BERTH_TYPE_UNKNOWN ? unknown : *type;
}

const berth_tensor *berth_infer__literal(const berth_infer *x, uint32_t operand) {
    if (!berth_infer__has(x, operand)) return NULL;
    return berth_graph_constant_of(x->module, x->graph, x->op->inputs[operand]);
}

berth_status berth_infer__ints(const berth_infer *x, uint32_t operand, berth_infer_ints *out_ints) {
    const berth_tensor *tensor = berth_infer__literal(x, operand);
    *out_ints = (berth_infer_ints){0};
    if (!tensor) return BERTH_OK;
    if (!berth_dtype_is_integer(tensor->dtype) || tensor->rank > 1)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "operand %u is a %s tensor of rank %d, expected integers", operand,
                                 berth_dtype_name(tensor->dtype), tensor->rank);
    int64_t count = berth_tensor_element_count(tensor);
    if (count > BERTH_INFER_MAX_INTS)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "operand %u has %lld entries, expected at most %d", operand,
                                 (long long)count, BERTH_INFER_MAX_INTS);
    out_ints->known = true;
    out_ints->count = (int)count;
    for (int64_t i = 0; i < count; ++i) out_ints->values[i] = berth_tensor_get_i64(tensor, i);
    return BERTH_OK;
}

// ---- attributes ----

int64_t berth_infer__int(const berth_infer *x, const char *name, int64_t fallback) {
    return berth_attrs_int(x->module, &x->op->attrs, name, fallback);
}

berth_status berth_infer__axis(const berth_infer *x, const char *name, int64_t fallback, int rank,
                               int *out_axis) {
    return berth_infer__at(
        x, berth_axis_resolve(berth_infer__int(x, name, fallback), rank, name, out_axis));
}

berth_status berth_infer__want_axes_operand(const berth_infer *x) {
    if (!berth_attrs_find(x->module, &x->op->attrs, "axes")) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                             "%s takes its axes as the second operand, not as an attribute: a "
                             "constant, as in %%axes = constant() {value = i64[1] (1)}",
                             berth_op_facts_get(x->op->kind)->name);
}

berth_dtype berth_infer__dtype(const berth_infer *x, const char *name, berth_dtype fallback) {
    const berth_attr *attr = berth_attrs_find(x->module, &x->op->attrs, name);
    return attr && attr->kind == BERTH_ATTR_DTYPE ? attr->dtype : fallback;
}

// ---- checks ----

berth_status berth_infer__want_rank(const berth_infer *x, uint32_t operand, int low, int high) {
    int rank = berth_infer__in(x, operand).rank;
    if (rank < 0 || (rank >= low && rank <= high)) return BERTH_OK;
    if (low == high)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u has rank %d, expected %d",
                                 operand, rank, low);
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u has rank %d, expected %d to %d",
                             operand, rank, low, high);
}

berth_status berth_infer__want_dtype(const berth_infer *x, uint32_t operand, berth_dtype dtype) {
    berth_dtype given = berth_infer__in(x, operand).dtype;
    if (given == BERTH_DTYPE_NONE || dtype == BERTH_DTYPE_NONE || given == dtype) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u is %s, expected %s", operand,
                             berth_dtype_name(given), berth_dtype_name(dtype));
}

berth_status berth_infer__want_same_dtype(const berth_infer *x, uint32_t a, uint32_t b) {
    return berth_infer__want_dtype(x, b, berth_infer__in(x, a).dtype);
}

berth_status berth_infer__merge_dim(const berth_infer *x, const char *what, int64_t a, int64_t b,
                                    int64_t *out_dim) {
    *out_dim = a;
    if (a == b) return BERTH_OK;
    if (berth_dim_is_symbol(a)) {
        if (b >= 0 || a == BERTH_DIM_UNKNOWN) *out_dim = b;
        return BERTH_OK;
    }
    if (berth_dim_is_symbol(b)) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%s: extents %lld and %lld differ", what,
                             (long long)a, (long long)b);
}

berth_status berth_infer__want_single(const berth_infer *x, uint32_t operand) {
    berth_type type = berth_infer__in(x, operand);
    for (int d = 0; d < type.rank; ++d)
        if (type.dims[d] >= 0 && type.dims[d] != 1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "operand %u has extent %lld, expected one element", operand,
                                     (long long)type.dims[d]);
    return BERTH_OK;
}

// ---- outputs ----

void berth_infer__set_type(berth_infer *x, uint32_t output, berth_type_id type) {
    if (output < x->op->output_count) x->graph->values.data[x->op->outputs[output]].type = type;
}

void berth_infer__set(berth_infer *x, uint32_t output, berth_dtype dtype, int rank,
                      const int64_t *dims) {
    berth_infer__set_type(x, output, berth_type_tensor(x->module, dtype, rank, dims));
}

void berth_infer__set_unknown(berth_infer *x, uint32_t output, berth_dtype dtype, int rank) {
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < BERTH_MAX_RANK; ++i) dims[i] = BERTH_DIM_UNKNOWN;
    berth_infer__set(x, output, dtype, rank, dims);
}

berth_status berth_infer__product(const berth_infer *x, const int64_t *dims, int count,
                                  int64_t *out_product) {
    int64_t product = 1, symbols = 1;
    bool symbol = false;
    bool zero = false;
    for (int i = 0; i < count; ++i) {
        if (dims[i] == 0) {
            zero = true;
        } else if (berth_dim_is_symbol(dims[i])) {
            symbols = berth_dim_combine(x->module, BERTH_DIM_MUL, symbols, dims[i]);
            symbol = true;
        } else if (__builtin_mul_overflow(product, dims[i], &product)) {
            return berth_infer__fail(x, BERTH_OUT_OF_RANGE,
                                     "the product of the extents overflows 64 bits");
        }
    }
    *out_product = zero     ? 0
                   : symbol ? berth_dim_combine(x->module, BERTH_DIM_MUL, symbols, product)
                            : product;
    return BERTH_OK;
}

// ---- driver ----

static berth_status check_arity(const berth_infer *x) {
    const berth_op_facts *facts = berth_op_facts_get(x->op->kind);
    int inputs = (int)x->op->input_count;
    int outputs = (int)x->op->output_count;
    if (inputs < facts->min_inputs || (facts->max_inputs >= 0 && inputs > facts->max_inputs))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%s has %d operands, expected %d to %d",
                                 facts->name, inputs, facts->min_inputs, facts->max_inputs);
    if (outputs < facts->min_outputs || (facts->max_outputs >= 0 && outputs > facts->max_outputs))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%s has %d results, expected %d to %d",
                                 facts->name, outputs, facts->min_outputs, facts->max_outputs);
    if (x->op->kind == BERTH_OP_LOOP)
        return BERTH_OK;  // trip count and condition are optional, but counted
    for (int i = 0; i < facts->min_inputs; ++i)
        if (x->op->inputs[i] == BERTH_NONE)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %d is missing", i);
    return BERTH_OK;
}

// Strings are moved and compared; for all else they have operations of their own.
static berth_status check_strings(const berth_infer *x) {
    if (berth_op_has(x->op->kind, BERTH_TRAIT_STRINGS | BERTH_TRAIT_STRUCTURE)) return BERTH_OK;
    for (uint32_t i = 0; i < x->op->input_count; ++i)
        if (berth_infer__in(x, i).dtype == BERTH_DTYPE_STRING)
            return berth_infer__fail(x, BERTH_UNSUPPORTED,
                                     "operand %u is strings, of which there is no %s", i,
                                     berth_op_facts_get(x->op->kind)->name);
    return BERTH_OK;
}

// Sizes of static results must be countable, whatever the shape function did.
static berth_status check_results(const berth_infer *x) {
    for (uint32_t i = 0; i < x->op->output_count; ++i) {
        const berth_type *type =
            berth_type_get(x->module, x->graph->values.data[x->op->outputs[i]].type);
        if (!berth_type_is_static(type)) continue;
        BERTH_TRY(berth_infer__at(
            x, berth_shape_size_bytes(type->dtype, type->rank, type->dims, NULL, NULL)));
    }
    return BERTH_OK;
}

static berth_status infer_results(berth_infer *x) {
    BERTH_TRY(check_arity(x));
    BERTH_TRY(check_strings(x));
    const berth_op_definition *definition = berth_op_definition_get(x->op->kind);
    BERTH_TRY((definition ? definition->infer : shape_fns[x->op->kind])(x));
    return check_results(x);
}

// What is over a limit is excused nowhere, not in a branch that may not be taken.
static berth_status check_limits(const berth_infer *x) {
    berth_infer_effort *effort = x->effort;
    bool deep = x->depth > BERTH_MAX_NESTING;
    effort->over =
        deep || effort->steps++ > steps_limit + (uint64_t)rounds_limit * x->graph->ops.count;
    if (!effort->over) return BERTH_OK;
    if (deep)
        return berth_infer__fail(x, BERTH_UNSUPPORTED, "regions nest more than %d levels deep",
                                 BERTH_MAX_NESTING);
    return berth_infer__fail(x, BERTH_UNSUPPORTED,
                             "types of nested loops take too many rounds to find: write those of "
                             "the values that the loops carry");
}

static berth_status infer_at_depth(berth_module *module, berth_func_id function, berth_graph *graph,
                                   berth_op_id op, int depth, berth_infer_effort *effort) {
    berth_infer x = {.module = module,
                     .function = function,
                     .graph = graph,
                     .id = op,
                     .op = &graph->ops.data[op],
                     .depth = depth,
                     .effort = effort};
    BERTH_TRY(check_limits(&x));
    berth_status status = infer_results(&x);
    if (!status || effort->over) return status;
    status = berth_graph_excuse(graph, x.op->region, status);
    for (uint32_t i = 0; !status && i < x.op->output_count; ++i)
        berth_infer__set_unknown(&x, i, BERTH_DTYPE_NONE, -1);
    return status;
}

berth_status berth_infer__region(berth_infer *x, berth_region_id region) {
    const berth_region *held = &x->graph->regions.data[region];
    for (uint32_t i = 0; i < held->ops.count; ++i)
        BERTH_TRY(infer_at_depth(x->module, x->function, x->graph, held->ops.data[i], x->depth + 1,
                                 x->effort));
    return BERTH_OK;
}

berth_status berth_infer_op(berth_module *module, berth_func_id function, berth_op_id op) {
    berth_infer_effort effort = {.steps = 0};
    return infer_at_depth(module, function, berth_graph_get(module, function), op, 0, &effort);
}

berth_status berth_infer_function(berth_module *module, berth_func_id function) {
    berth_graph *graph = berth_graph_get(module, function);
    if (!graph)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function %u is not a graph function",
                                 function);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i)
        BERTH_TRY(berth_infer_op(module, function, root->ops.data[i]));
    return BERTH_OK;
}
