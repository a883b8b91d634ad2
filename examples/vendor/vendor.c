// A plug-in: the operator ScaledTanh of the domain com.example, y = alpha * tanh(beta * x), with its
// shape, meaning, loops and a schedule, and a pass that finds it in graphs that spell it out. Built
// against the installed package (CMakeLists.txt beside it), loaded with --plugin.
#include <math.h>
#include <string.h>

#include "compiler/plugin.h"
#include "compiler/schedule/nest.h"
#include "ir/infer.h"

static berth_op_kind scaled_tanh;
#define NAME "example.scaled_tanh"

// ---- the operation ------------------------------------------------------------------------------

static berth_status infer(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    if (in.dtype != BERTH_DTYPE_NONE && !berth_dtype_is_float(in.dtype))
        return berth_infer__fail(x, BERTH_UNSUPPORTED, NAME " of %s; it takes floats",
                                 berth_dtype_name(in.dtype));
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

// What constants fold to, and what kernels are compared with.
static berth_status eval(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    double alpha = berth_eval__float(ctx, "alpha", 1), beta = berth_eval__float(ctx, "beta", 1);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i)
        berth_eval__set_f64(&ctx->outputs[0], i, alpha * tanh(beta * values[i]));
    return BERTH_OK;
}

static const berth_op_definition definition = {.facts = {.name = NAME,
                                                         .onnx = "ScaledTanh",
                                                         .min_inputs = 1,
                                                         .max_inputs = 1,
                                                         .min_outputs = 1,
                                                         .max_outputs = 1,
                                                         .traits = BERTH_TRAIT_ELEMENTWISE},
                                               .onnx_domain = "com.example",
                                               .onnx_attrs = "alpha:f beta:f",
                                               .infer = infer,
                                               .eval = eval};

// One element of the result: what fuses with the operations around it.
static berth_expr element(berth_lower *c, const berth_op *op, uint32_t output,
                          const berth_expr *at) {
    (void)output;
    berth_dtype dtype = out_dtype(c, op, 0);
    berth_expr scaled = x_mul(c, in_at(c, op, 0, at), num(c, dtype, attr_float(c, op, "beta", 1)));
    return x_mul(c, x_unary(c, BERTH_UNARY_TANH, scaled),
                 num(c, dtype, attr_float(c, op, "alpha", 1)));
}

static const berth_lower_row lowering = {.element = element};

// ---- a schedule ---------------------------------------------------------------------------------

enum { chunk = 256 };

static bool takes(const berth_module *module, berth_func_id function, const berth_target *target) {
    (void)target;
    const berth_attr *operators = berth_attrs_find(
        module, &berth_module_function(module, function)->attrs, BERTH_ATTR_OPERATORS);
    for (uint32_t i = 0; operators && i < operators->count; ++i)
        if (strcmp(berth_module_str(module, operators->strings[i]), NAME) == 0) return true;
    return false;
}

static bool done(berth_status status) {
    bool fine = status == BERTH_OK;
    berth_status_free(status);
    return fine;
}

// The last loop in vectors; a single one in chunks, of which several run at once.
static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *given, const void *user) {
    (void)user;
    berth_nest nest = *given;
    bool in_chunks = nest.count == 1 && nest.loops[0].extent % chunk == 0;
    if (in_chunks && !done(berth_schedule_split(fn, &nest, 0, chunk))) return 0;
    if (!done(berth_schedule_parallel(fn, &nest, 0))) return 0;
    if (nest.count > 1) nest.loops[nest.count - 1].kind = BERTH_LOOP_SIMD;
    return berth_nest_emit(fn, &nest);
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    return berth_schedule_nests(fn, schedule_nest, target);
}

static const berth_schedule_policy schedule = {.kind = "cpu", .apply = apply, .takes = takes};

// ---- a pass -------------------------------------------------------------------------------------

// The only element of a constant, and the other operand of a product with it.
static bool scaled(const berth_module *module, const berth_graph *graph, berth_value_id value,
                   berth_value_id *out_other, double *out_factor) {
    berth_op_id id = graph->values.data[value].op;
    if (id == BERTH_NONE || graph->ops.data[id].kind != BERTH_OP_MUL) return false;
    for (int i = 0; i < 2; ++i) {
        const berth_tensor *factor =
            berth_graph_constant_of(module, graph, graph->ops.data[id].inputs[i]);
        if (!factor || factor->rank != 0 || factor->dtype != BERTH_DTYPE_F32) continue;
        float number;
        memcpy(&number, factor->data, sizeof(number));
        *out_factor = (double)number;
        *out_other = graph->ops.data[id].inputs[1 - i];
        return true;
    }
    return false;
}

// alpha * tanh(beta * x) becomes one operation.
static berth_status run_find(berth_module *module, berth_pass_context *context) {
    (void)context;
    berth_func_id main = berth_module_find_function(module, "main");
    berth_graph *graph = main == BERTH_NONE ? NULL : berth_graph_get(module, main);
    for (uint32_t i = 0; graph && i < graph->values.count; ++i) {
        berth_value_id tanh_value, mul_value, x;
        double alpha = 1, beta = 1;
        if (graph->values.data[i].op == BERTH_NONE) continue;
        const berth_op *outer = &graph->ops.data[graph->values.data[i].op];
        if (outer->region == BERTH_NONE || !scaled(module, graph, i, &tanh_value, &alpha)) continue;
        berth_op_id inner = graph->values.data[tanh_value].op;
        if (inner == BERTH_NONE || graph->ops.data[inner].kind != BERTH_OP_TANH) continue;
        mul_value = graph->ops.data[inner].inputs[0];
        if (!scaled(module, graph, mul_value, &x, &beta)) continue;
        berth_op_id made = berth_graph_insert_op(module, main, graph->values.data[i].op,
                                                 scaled_tanh, &x, 1, 1, outer->loc);
        berth_attrs_set_float(module, &graph->ops.data[made].attrs, "alpha", alpha);
        berth_attrs_set_float(module, &graph->ops.data[made].attrs, "beta", beta);
        BERTH_TRY(berth_infer_op(module, main, made));
        berth_value_id result = graph->ops.data[made].outputs[0];
        graph->values.data[result].name = graph->values.data[i].name;
        berth_graph_replace_value(graph, i, result);
    }
    if (graph) berth_graph_remove_dead(module, main);
    return BERTH_OK;
}

static const berth_pass find_pass = {.name = "find-scaled-tanh",
                                     .description = "alpha * tanh(beta * x) as one operation",
                                     .run = run_find,
                                     .requires = "fold-constants",
                                     .again = true};

// ---- the plug-in --------------------------------------------------------------------------------

static berth_status set_up(void) {
    BERTH_TRY(berth_op_register(&definition, &scaled_tanh));
    BERTH_TRY(berth_lower_register(scaled_tanh, &lowering));
    BERTH_TRY(berth_schedule_register(&schedule));
    return berth_pass_register(&find_pass, "simplify");
}

BERTH_PLUGIN("example", "0.1", set_up)
