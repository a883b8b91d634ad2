#include "compiler/cost/work.h"

#include <string.h>

#include "base/str.h"
#include "compiler/external.h"
#include "compiler/libraries/use.h"

// ---- figures ------------------------------------------------------------------------------------

static double element_count(const berth_type *type) {
    double count = 1;
    for (int i = 0; i < type->rank; ++i)
        count *= berth_dim_is_symbol(type->dims[i]) ? 1 : (double)type->dims[i];
    return count;
}

static double type_bytes(const berth_type *type) {
    return type->kind == BERTH_TYPE_TENSOR && type->rank >= 0
               ? element_count(type) * (double)berth_dtype_size_bytes(type->dtype)
               : 0;
}

static const berth_type *value_type(const berth_module *module, const berth_graph *graph,
                                    berth_value_id value) {
    return berth_type_get(module, value == BERTH_NONE ? 0 : graph->values.data[value].type);
}

static double dim_or_one(const berth_type *type, int i) {
    return i < type->rank && type->dims[i] > 0 ? (double)type->dims[i] : 1;
}

static double window_of(const berth_module *module, const berth_op *op) {
    uint32_t count = 0;
    const int64_t *extents = berth_attrs_ints(module, &op->attrs, "kernel_shape", &count);
    double window = 1;
    for (uint32_t i = 0; i < count; ++i) window *= extents[i] > 0 ? (double)extents[i] : 1;
    return window;
}

// Elements of an operand that an operation reads: of what it picks from, no more than it gives.
static double elements_read(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, uint32_t operand) {
    double all = element_count(value_type(module, graph, op->inputs[operand]));
    bool picks = op->kind == BERTH_OP_GATHER || op->kind == BERTH_OP_GATHER_ELEMENTS ||
                 op->kind == BERTH_OP_GATHER_ND || op->kind == BERTH_OP_SLICE;
    double given = element_count(value_type(module, graph, op->outputs[0]));
    return picks && operand == 0 && given < all ? given : all;
}

static double bytes_read(const berth_module *module, const berth_graph *graph, const berth_op *op,
                         uint32_t operand) {
    const berth_type *type = value_type(module, graph, op->inputs[operand]);
    double all = element_count(type);
    return all > 0 ? type_bytes(type) * (elements_read(module, graph, op, operand) / all) : 0;
}

// Multiply-adds of matrix products, convolutions and recurrent cells, comparisons and additions of
// windows; one operation per element read or written otherwise.
static double op_flops(const berth_module *module, const berth_graph *graph, const berth_op *op) {
    const berth_type *out = value_type(module, graph, op->outputs[0]);
    const berth_type *a =
        value_type(module, graph, op->input_count > 0 ? op->inputs[0] : BERTH_NONE);
    const berth_type *b =
        value_type(module, graph, op->input_count > 1 ? op->inputs[1] : BERTH_NONE);
    const berth_type *c =
        value_type(module, graph, op->input_count > 2 ? op->inputs[2] : BERTH_NONE);
    switch (op->kind) {
    case BERTH_OP_CONV:
    case BERTH_OP_CONV_INTEGER: return 2 * element_count(out) * element_count(b) / dim_or_one(b, 0);
    case BERTH_OP_QLINEAR_CONV: {
        const berth_type *weights = value_type(module, graph, op->inputs[3]);
        return 2 * element_count(out) * element_count(weights) / dim_or_one(weights, 0);
    }
    case BERTH_OP_CONV_TRANSPOSE: return 2 * element_count(a) * element_count(b) / dim_or_one(b, 0);
    case BERTH_OP_MATMUL:
    case BERTH_OP_MATMUL_BITS:
    case BERTH_OP_MATMUL_INTEGER:
    case BERTH_OP_WINOGRAD_MATMUL:
    case BERTH_OP_GEMM: {
        bool transposed =
            op->kind == BERTH_OP_GEMM && berth_attrs_int(module, &op->attrs, "transA", 0);
        return 2 * element_count(out) * dim_or_one(a, transposed || a->rank < 1 ? 0 : a->rank - 1);
    }
    case BERTH_OP_WINOGRAD_CONV: {  // of the products: tiles of m x m results are t x t points
        double m = (double)berth_attrs_int(module, &op->attrs, "tile", 4);
        return 2 * element_count(out) / (m * m) * dim_or_one(b, 0) * dim_or_one(b, 1);
    }
    case BERTH_OP_MAX_POOL:
    case BERTH_OP_AVERAGE_POOL:
    case BERTH_OP_QLINEAR_AVERAGE_POOL:
    case BERTH_OP_LP_POOL: return element_count(out) * window_of(module, op);
    case BERTH_OP_RNN:
    case BERTH_OP_GRU:
    case BERTH_OP_LSTM:
        return 2 * dim_or_one(a, 0) * dim_or_one(a, 1) * (element_count(b) + element_count(c));
    case BERTH_OP_LSTM_INTEGER: return 2 * dim_or_one(a, 0) * dim_or_one(a, 1) * element_count(c);
    default:
        return element_count(out) +
               (op->input_count > 0 ? elements_read(module, graph, op, 0) : element_count(a));
    }
}

berth_op_work berth_op_work_of(const berth_module *module, berth_func_id function, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    berth_op_work work = {0};
    berth_func_id external = berth_external_called(module, op);
    if (external == BERTH_NONE &&
        berth_op_has(op->kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE) &&
        op->kind != BERTH_OP_RELAYOUT)
        return work;
    if (op->output_count == 0) return work;
    for (uint32_t i = 0; i < op->input_count; ++i) work.bytes += bytes_read(module, graph, op, i);
    for (uint32_t i = 0; i < op->output_count; ++i)
        work.bytes += type_bytes(value_type(module, graph, op->outputs[i]));
    work.flops = op_flops(module, graph, op);
    double time_ns = 0;
    if (external != BERTH_NONE)
        berth_external_cost(module, external, &work.flops, &work.bytes, &time_ns);
    return work;
}

// ---- keys ---------------------------------------------------------------------------------------

typedef struct writer {
    const berth_module *module;
    const berth_graph *graph;
    berth_strbuf text;
    // Per value: of a parameter or result, + 1; 0 = not named yet. NULL: `named` holds those that are,
    // in this order, which is enough for an operation of a few operands.
    uint32_t *number;
    BERTH_VEC(berth_value_id) named;
    berth_arena *arena;
    uint32_t count;
} writer;

static void add_type(writer *w, const berth_type *type) {
    berth_strbuf_add(&w->text, berth_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; ++i)
        berth_strbuf_addf(&w->text, "%s%lld", i ? "," : "[", (long long)type->dims[i]);
    if (type->rank > 0) berth_strbuf_add(&w->text, "]");
    if (type->layout) berth_strbuf_addf(&w->text, ":%s", berth_module_str(w->module, type->layout));
}

static void add_attr(writer *w, const berth_attr *attr) {
    char number[32];
    berth_strbuf_addf(&w->text, "%s=", berth_module_str(w->module, attr->name));
    switch (attr->kind) {
    case BERTH_ATTR_INT: berth_strbuf_addf(&w->text, "%lld", (long long)attr->i); return;
    case BERTH_ATTR_INTS:
        for (uint32_t i = 0; i < attr->count; ++i)
            berth_strbuf_addf(&w->text, "%s%lld", i ? "," : "[", (long long)attr->ints[i]);
        berth_strbuf_add(&w->text, attr->count ? "]" : "[]");
        return;
    case BERTH_ATTR_FLOAT:
        berth_format_f64(attr->f, number);
        berth_strbuf_add(&w->text, number);
        return;
    case BERTH_ATTR_STRING:
        berth_strbuf_add(&w->text, berth_module_str(w->module, attr->s));
        return;
    case BERTH_ATTR_DTYPE: berth_strbuf_add(&w->text, berth_dtype_name(attr->dtype)); return;
    default: berth_strbuf_add(&w->text, "?"); return;  // no work depends on the others' values
    }
}

static int by_name(const writer *w, const berth_attr *a, const berth_attr *b) {
    return strcmp(berth_module_str(w->module, a->name), berth_module_str(w->module, b->name));
}

// Attributes by name, whatever order they were set in.
static void add_attrs(writer *w, const berth_attrs *attrs) {
    const berth_attr *last = NULL;
    for (uint32_t k = 0; k < attrs->items.count; ++k) {
        const berth_attr *next = NULL;
        for (uint32_t i = 0; i < attrs->items.count; ++i) {
            const berth_attr *attr = &attrs->items.data[i];
            if ((!last || by_name(w, last, attr) < 0) && (!next || by_name(w, attr, next) < 0))
                next = attr;
        }
        berth_strbuf_add(&w->text, k ? "," : "{");
        add_attr(w, next);
        last = next;
    }
    if (attrs->items.count) berth_strbuf_add(&w->text, "}");
}

// Shapes, axes and sizes decide what there is to do; other constants are data.
static void add_constant(writer *w, const berth_type *type, const berth_tensor *constant) {
    enum { most = 16 };
    int64_t count = berth_tensor_element_count(constant);
    bool shown =
        count <= most && (constant->dtype == BERTH_DTYPE_I64 || constant->dtype == BERTH_DTYPE_I32);
    berth_strbuf_add(&w->text, "const ");
    add_type(w, type);
    for (int64_t i = 0; shown && i < count; ++i)
        berth_strbuf_addf(&w->text, "%s%lld", i ? "," : "=",
                          (long long)berth_tensor_get_i64(constant, i));
}

static uint32_t number_of(const writer *w, berth_value_id value) {
    if (w->number) return w->number[value];
    for (uint32_t i = w->named.count; i-- > 0;)
        if (w->named.data[i] == value) return i + 1;
    return 0;
}

static void give_number(writer *w, berth_value_id value) {
    w->count++;
    if (w->number)
        w->number[value] = w->count;
    else
        berth_vec_push(w->arena, &w->named, value);
}

static void add_operand(writer *w, berth_value_id value) {
    if (value == BERTH_NONE) {
        berth_strbuf_add(&w->text, "-");
        return;
    }
    const berth_type *type = value_type(w->module, w->graph, value);
    const berth_tensor *constant = berth_graph_raw_constant_of(w->module, w->graph, value);
    uint32_t known = number_of(w, value);
    if (known) {
        berth_strbuf_addf(&w->text, "%%%u", known - 1);
        return;
    }
    if (constant) {
        add_constant(w, type, constant);
        return;
    }
    give_number(w, value);
    add_type(w, type);
}

static void add_op(writer *w, const berth_op *op) {
    if (w->text.length) berth_strbuf_add(&w->text, ";");
    berth_strbuf_add(&w->text, berth_op_facts_get(op->kind)->name);
    add_attrs(w, &op->attrs);
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_strbuf_add(&w->text, i ? "," : "(");
        add_operand(w, op->inputs[i]);
    }
    berth_strbuf_add(&w->text, op->input_count ? ")>" : "()>");
    for (uint32_t i = 0; i < op->output_count; ++i) {
        if (i) berth_strbuf_add(&w->text, ",");
        give_number(w, op->outputs[i]);
        add_type(w, value_type(w->module, w->graph, op->outputs[i]));
    }
}

// ---- classes ------------------------------------------------------------------------------------

// Elementwise functions that take many instructions for an element.
static bool is_costly(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_EXP:
    case BERTH_OP_LOG:
    case BERTH_OP_ERF:
    case BERTH_OP_TANH:
    case BERTH_OP_SIGMOID:
    case BERTH_OP_GELU:
    case BERTH_OP_MISH:
    case BERTH_OP_SOFTPLUS:
    case BERTH_OP_POW:
    case BERTH_OP_SIN:
    case BERTH_OP_COS: return true;
    default: return false;
    }
}

static const char *conv_class(const berth_module *module, const berth_graph *graph,
                              const berth_op *op) {
    const berth_type *weights = value_type(module, graph, op->inputs[1]);
    int64_t group = berth_attrs_int(module, &op->attrs, "group", 1);
    double window = 1;
    for (int i = 2; i < weights->rank; ++i) window *= dim_or_one(weights, i);
    if (group > 1) return dim_or_one(weights, 1) == 1 ? "conv.depthwise" : "conv.grouped";
    return window == 1 ? "conv.1x1" : dim_or_one(weights, 1) < 8 ? "conv.few_inputs" : "conv";
}

static const char *matmul_class(const berth_module *module, const berth_graph *graph,
                                const berth_op *op) {
    const berth_type *out = value_type(module, graph, op->outputs[0]);
    double columns = out->rank > 0 ? dim_or_one(out, out->rank - 1) : 1;
    return element_count(out) <= columns ? "matmul.vector" : "matmul";
}

static const char *class_name(const berth_module *module, const berth_graph *graph,
                              const berth_op *op) {
    switch (op->kind) {
    case BERTH_OP_CONV:
    case BERTH_OP_CONV_INTEGER: return conv_class(module, graph, op);
    case BERTH_OP_MATMUL:
    case BERTH_OP_MATMUL_BITS:
    case BERTH_OP_MATMUL_INTEGER:
    case BERTH_OP_GEMM: return matmul_class(module, graph, op);
    case BERTH_OP_MAX_POOL:
    case BERTH_OP_AVERAGE_POOL:
    case BERTH_OP_QLINEAR_AVERAGE_POOL: return "pool";
    default: break;
    }
    if (is_costly(op->kind)) return "elementwise.function";
    if (berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE)) return "elementwise";
    if (berth_op_has(op->kind, BERTH_TRAIT_INJECTIVE)) return "movement";
    return berth_op_facts_get(op->kind)->name;
}

// Of the first operand: integer products have wider sums.
static berth_dtype dtype_of(const berth_module *module, const berth_graph *graph,
                            const berth_op *op) {
    return value_type(module, graph, op->input_count ? op->inputs[0] : op->outputs[0])->dtype;
}

// ".u8" for other element types than f32, ".plain" for products whose weights are as the model has
// them.
static const char *class_of(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, berth_arena *arena) {
    berth_dtype dtype = dtype_of(module, graph, op);
    bool weighted =
        op->input_count > 1 && (op->kind == BERTH_OP_CONV || op->kind == BERTH_OP_MATMUL);
    bool plain = weighted && !value_type(module, graph, op->inputs[1])->layout;
    return berth_arena_printf(arena, "%s%s%s%s", class_name(module, graph, op),
                              plain ? ".plain" : "", dtype == BERTH_DTYPE_F32 ? "" : ".",
                              dtype == BERTH_DTYPE_F32 ? "" : berth_dtype_name(dtype));
}

// ---- works --------------------------------------------------------------------------------------

// What the chain is named after: its reductions come before what is done to single elements.
static berth_op_id find_anchor(const berth_module *module, const berth_graph *graph) {
    const berth_region *root = &graph->regions.data[0];
    berth_op_id best = BERTH_NONE;
    double most = -1;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind == BERTH_OP_CONSTANT || op->output_count == 0) continue;
        bool reduces = berth_op_has(op->kind, BERTH_TRAIT_REDUCTION);
        double flops = op_flops(module, graph, op) * (reduces ? 1e6 : is_costly(op->kind) ? 16 : 1);
        if (flops <= most) continue;
        most = flops;
        best = root->ops.data[i];
    }
    return best;
}

berth_op_id berth_work_anchor_of(const berth_module *module, berth_func_id function) {
    return find_anchor(module, berth_graph_get(module, function));
}

// Of a parameter, the most that one of its uses reads.
static double root_bytes(const berth_module *module, const berth_graph *graph, berth_arena *arena) {
    const berth_region *root = &graph->regions.data[0];
    double bytes = 0;
    double *read = berth_arena_new_array(arena, double, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count && op->output_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            double now = bytes_read(module, graph, op, k);
            if (now > read[op->inputs[k]]) read[op->inputs[k]] = now;
        }
    }
    for (uint32_t i = 0; i < root->params.count; ++i) bytes += read[root->params.data[i]];
    for (uint32_t i = 0; i < root->results.count; ++i)
        bytes += type_bytes(value_type(module, graph, root->results.data[i]));
    return bytes;
}

berth_work berth_work_of_primitive(const berth_module *module, berth_func_id function,
                                   berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_region *root = &graph->regions.data[0];
    berth_op_id anchor = find_anchor(module, graph);
    writer w = {.module = module, .graph = graph, .text = berth_strbuf_make(arena)};
    berth_work work = {.kind = "", .dtype = BERTH_DTYPE_F32};
    work.bytes = root_bytes(module, graph, arena);
    w.number = berth_arena_new_array(arena, uint32_t, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind == BERTH_OP_CONSTANT || op->output_count == 0) continue;
        add_op(&w, op);
        work.flops += op_flops(module, graph, op);
    }
    if (anchor != BERTH_NONE) {
        work.dtype = dtype_of(module, graph, &graph->ops.data[anchor]);
        work.kind = class_of(module, graph, &graph->ops.data[anchor], arena);
    }
    work.key = berth_strbuf_text(&w.text);
    return work;
}

berth_work berth_work_of_op(const berth_module *module, berth_func_id function, berth_op_id id,
                            berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    berth_op_work figures = berth_op_work_of(module, function, id);
    berth_work work = {
        .flops = figures.flops, .bytes = figures.bytes, .kind = "", .dtype = BERTH_DTYPE_F32};
    writer w = {.module = module, .graph = graph, .text = berth_strbuf_make(arena), .arena = arena};
    const uint64_t operands = graph->ops.data[id].input_count;
    if (operands * operands > graph->values.count)
        w.number = berth_arena_new_array(arena, uint32_t, graph->values.count + 1);
    if (graph->ops.data[id].output_count) {
        add_op(&w, &graph->ops.data[id]);
        work.dtype = dtype_of(module, graph, &graph->ops.data[id]);
        work.kind = class_of(module, graph, &graph->ops.data[id], arena);
    }
    work.key = berth_strbuf_text(&w.text);
    return work;
}

// Of a call of external code: what its function says of itself, and of a library's the name that its time is
// measured under.
static berth_work work_of_external(const berth_module *module, berth_func_id main, berth_op_id id,
                                   berth_func_id external, berth_arena *arena) {
    berth_op_work figures = berth_op_work_of(module, main, id);
    const berth_attrs *attrs = &berth_module_function(module, external)->attrs;
    berth_work work = {.key = "",
                       .kind = "",
                       .dtype = BERTH_DTYPE_F32,
                       .flops = figures.flops,
                       .bytes = figures.bytes};
    double flops = 0, bytes = 0;
    berth_external_cost(module, external, &flops, &bytes, &work.given_ns);
    const char *key = berth_attrs_string(module, attrs, BERTH_LIBRARY_COST_KEY, "");
    if (*key) work.key = berth_arena_strdup(arena, key);
    if (*key) work.kind = BERTH_LIBRARY_COST_KIND;
    return work;
}

berth_work *const *berth_works_of_main(const berth_module *module, berth_func_id main,
                                       berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    berth_work **works = berth_arena_new_array(arena, berth_work *, graph->ops.count);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind != BERTH_OP_CALL) continue;
        const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
        berth_func_id external = berth_external_called(module, op);
        bool primitive = callee && callee->kind == BERTH_ATTR_FUNCTION &&
                         berth_graph_get(module, callee->function);
        if (!primitive && external == BERTH_NONE) continue;
        berth_work work = primitive
                              ? berth_work_of_primitive(module, callee->function, arena)
                              : work_of_external(module, main, root->ops.data[i], external, arena);
        works[root->ops.data[i]] = berth_arena_copy(arena, &work, sizeof(work));
    }
    return works;
}
