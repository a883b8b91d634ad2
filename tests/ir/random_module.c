#include "tests/ir/random_module.h"

#include <math.h>
#include <string.h>

#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/tensor/copies.h"
#include "target/virtual_device.h"

typedef struct maker {
    berth_module *module;
    uint64_t state;
    berth_func_id callee;    // f32[2,3] → f32[2,3]
    berth_type_id type;      // f32[2,3]
    berth_func_id function;  // under construction
} maker;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t next(maker *m) {
    uint64_t z = (m->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(maker *m, uint32_t count) {
    return (uint32_t)(next(m) % count);
}

static const char *word(maker *m) {
    static const char *const words[] = {
        "a",    "x",         "conv1",  "",
        "12",   "has space", "a/b:0",  "\"q\\\n\t",
        "on",   "meta",      "return", "caf\xc3\xa9",
        "\xff", "f32",       "x",      "a.b_C",
        "?",    "nan",       "i",      "long_name_that_makes_lines_break_somewhere_in_the_text"};
    return words[below(m, sizeof(words) / sizeof(words[0]))];
}

static double number(maker *m) {
    const double values[] = {
        0.0,         -0.0,  1.0,    -1.5, 0.1, 1e300, 5e-324, (double)INFINITY, -(double)INFINITY,
        (double)NAN, 3.0e7, 1.0 / 3};
    return values[below(m, 12)];
}

static berth_loc_id location(maker *m) {
    berth_loc_id parts[3];
    switch (below(m, 4)) {
    case 0: return 0;
    case 1: return berth_loc_node(m->module, word(m), word(m), word(m));
    case 2: return berth_loc_text(m->module, word(m), 1 + below(m, 100), below(m, 9));
    default:
        for (int i = 0; i < 3; ++i) parts[i] = berth_loc_node(m->module, "m.onnx", word(m), "Op");
        return berth_loc_fuse(m->module, parts, 3);
    }
}

static berth_device_id device(maker *m) {
    static const char *const names[] = {"*",
                                        "cpu:0",
                                        "opencl",
                                        "opencl:1@local",
                                        "*@vta.inp",
                                        "cpu:0#0123456789abcdef0123456789abcdef",
                                        "cpu@2d#11111111111111111111111111111111"};
    berth_device_id id = 0;
    berth_status_ignore(berth_virtual_device_parse(m->module->devices, names[below(m, 7)], &id));
    return id;
}

static berth_type_id any_type(maker *m, int depth) {
    int64_t dims[4];
    berth_type_id fields[3];
    uint32_t kind = below(m, depth > 2 ? 4 : 7);
    if (kind == 0) return 0;
    if (kind == 1) return berth_type_storage(m->module);
    if (kind < 4) {
        int rank = (int)below(m, 6) - 1;
        for (int i = 0; i < 4; ++i)
            dims[i] = below(m, 3) ? (int64_t)below(m, 9)
                                  : berth_dim_symbol(berth_module_intern(m->module, word(m)));
        berth_str_id layout =
            rank == 4 && below(m, 2) ? berth_module_intern(m->module, "aBcd8b") : 0;
        return berth_type_tensor_layout(m->module, (berth_dtype)below(m, BERTH_DTYPE_COUNT), rank,
                                        dims, layout);
    }
    uint32_t count = below(m, 4);
    for (uint32_t i = 0; i < count; ++i) fields[i] = any_type(m, depth + 1);
    if (kind < 6) return berth_type_tuple(m->module, fields, count);
    return berth_type_function(m->module, fields, count / 2, fields + count / 2, count - count / 2);
}

static const berth_tensor *literal(maker *m) {
    int64_t dims[2] = {below(m, 7), below(m, 7)};
    berth_tensor *tensor = berth_arena_new(m->module->arena, berth_tensor);
    if (below(m, 8) == 0) {
        *tensor = berth_tensor_create(m->module->arena, BERTH_DTYPE_STRING, (int)below(m, 3), dims);
        for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i)
            ((berth_string *)tensor->data)[i] =
                below(m, 5) ? berth_string_of(word(m)) : (berth_string){"\0x\0", below(m, 4)};
        return tensor;
    }
    *tensor =
        berth_tensor_create(m->module->arena, (berth_dtype)(1 + below(m, BERTH_DTYPE_COUNT - 1)),
                            (int)below(m, 3), dims);
    bool bits = below(m, 2);
    uint8_t *bytes = tensor->data;
    for (size_t i = 0; i < berth_tensor_size_bytes(tensor); ++i)
        bytes[i] = bits ? (uint8_t)next(m) : (uint8_t)below(m, 2);
    return tensor;
}

static berth_attr attribute(maker *m) {
    berth_arena *arena = m->module->arena;
    berth_attr attr = {.kind = (berth_attr_kind)below(m, BERTH_ATTR_OPAQUE), .count = below(m, 5)};
    int64_t *ints = berth_arena_new_array(arena, int64_t, 5);
    double *floats = berth_arena_new_array(arena, double, 5);
    berth_str_id *strings = berth_arena_new_array(arena, berth_str_id, 5);
    for (uint32_t i = 0; i < 5; ++i) {
        ints[i] = i == 3 ? INT64_MIN : (int64_t)next(m);
        floats[i] = number(m);
        strings[i] = berth_module_intern(m->module, word(m));
    }
    switch (attr.kind) {
    case BERTH_ATTR_INT: attr.i = ints[below(m, 5)]; break;
    case BERTH_ATTR_FLOAT: attr.f = number(m); break;
    case BERTH_ATTR_STRING: attr.s = strings[0]; break;
    case BERTH_ATTR_INTS: attr.ints = ints; break;
    case BERTH_ATTR_FLOATS: attr.floats = floats; break;
    case BERTH_ATTR_STRINGS: attr.strings = strings; break;
    case BERTH_ATTR_DTYPE: attr.dtype = (berth_dtype)below(m, BERTH_DTYPE_COUNT); break;
    case BERTH_ATTR_TENSOR: attr.tensor = literal(m); break;
    case BERTH_ATTR_FUNCTION: attr.function = below(m, 5) ? m->callee : BERTH_NONE; break;
    case BERTH_ATTR_DEVICE: attr.device = device(m); break;
    default: attr.type = any_type(m, 0); break;
    }
    return attr;
}

static void attributes(maker *m, berth_attrs *attrs) {
    for (uint32_t i = below(m, 4); i > 0; --i) {
        const char *name = berth_arena_printf(m->module->arena, "%s%u", word(m), below(m, 3));
        berth_attrs_set(m->module, attrs, name, attribute(m));
    }
}

// ---- graph functions ----------------------------------------------------------------------------

typedef struct values {
    berth_value_id items[64];  // of type f32[2,3]
    uint32_t count;
} values;

static berth_value_id pick(maker *m, const values *known) {
    return known->items[below(m, known->count)];
}

static berth_op_id add(maker *m, berth_region_id region, berth_op_kind kind,
                       const berth_value_id *inputs, uint32_t input_count, uint32_t output_count) {
    berth_op_id op = berth_graph_add_op(m->module, m->function, region, kind, inputs, input_count,
                                        output_count, location(m));
    berth_graph *graph = berth_graph_get(m->module, m->function);
    for (uint32_t i = 0; i < output_count; ++i) {
        berth_value *value = &graph->values.data[graph->ops.data[op].outputs[i]];
        value->name = berth_module_intern(m->module, word(m));
        value->type = m->type;
        if (below(m, 3) == 0) value->device = device(m);
    }
    if (below(m, 3) == 0) graph->ops.data[op].device = device(m);
    attributes(m, &graph->ops.data[op].attrs);
    return op;
}

static void learn(maker *m, values *known, berth_op_id op, uint32_t index) {
    berth_graph *graph = berth_graph_get(m->module, m->function);
    if (known->count < 64) known->items[known->count++] = graph->ops.data[op].outputs[index];
}

static void set_type(maker *m, berth_op_id op, berth_type_id type) {
    berth_graph *graph = berth_graph_get(m->module, m->function);
    graph->values.data[graph->ops.data[op].outputs[0]].type = type;
}

static berth_value_id output(maker *m, berth_op_id op) {
    return berth_graph_get(m->module, m->function)->ops.data[op].outputs[0];
}

static void fill(maker *m, berth_region_id region, values known, int depth, uint32_t results);

static berth_value_id scalar(maker *m, berth_region_id region, berth_dtype dtype, int64_t value) {
    berth_tensor tensor = berth_tensor_create(m->module->arena, dtype, 0, NULL);
    berth_tensor_set_i64(&tensor, 0, value);
    return berth_graph_constant(m->module, m->function, region, &tensor, location(m));
}

static void add_if(maker *m, berth_region_id region, values *known, int depth) {
    berth_value_id condition = scalar(m, region, BERTH_DTYPE_BOOL, below(m, 2));
    berth_op_id op = add(m, region, BERTH_OP_IF, &condition, 1, 2);
    for (int i = 0; i < 2; ++i)
        fill(m, berth_graph_add_region(m->module, m->function, op), *known, depth + 1, 2);
    learn(m, known, op, 0);
    learn(m, known, op, 1);
}

static void add_loop(maker *m, berth_region_id region, values *known, int depth) {
    berth_value_id inputs[3] = {scalar(m, region, BERTH_DTYPE_I64, 4), BERTH_NONE, pick(m, known)};
    berth_op_id op = add(m, region, BERTH_OP_LOOP, inputs, 3, 1);
    berth_region_id body = berth_graph_add_region(m->module, m->function, op);
    berth_type_id i64 = berth_type_tensor(m->module, BERTH_DTYPE_I64, 0, NULL);
    berth_type_id boolean = berth_type_tensor(m->module, BERTH_DTYPE_BOOL, 0, NULL);
    (void)berth_graph_add_region_param(m->module, m->function, body, "i", i64);
    berth_value_id keep =
        berth_graph_add_region_param(m->module, m->function, body, "keep", boolean);
    values inner = *known;
    inner.items[0] = berth_graph_add_region_param(m->module, m->function, body, word(m), m->type);
    fill(m, body, inner, depth + 1, 1);
    const berth_region *held = &berth_graph_get(m->module, m->function)->regions.data[body];
    berth_value_id results[2] = {keep, held->results.data[0]};
    berth_graph_set_region_results(m->module, m->function, body, results, 2);
    learn(m, known, op, 0);
}

static void add_tuple(maker *m, berth_region_id region, values *known) {
    berth_value_id fields[2] = {pick(m, known), pick(m, known)};
    berth_type_id types[2] = {m->type, m->type};
    berth_op_id tuple = add(m, region, BERTH_OP_TUPLE, fields, 2, 1);
    set_type(m, tuple, berth_type_tuple(m->module, types, 2));
    berth_value_id whole = output(m, tuple);
    berth_op_id get = add(m, region, BERTH_OP_TUPLE_GET, &whole, 1, 1);
    berth_attrs_set_int(m->module, &berth_graph_get(m->module, m->function)->ops.data[get].attrs,
                        "index", below(m, 2));
    learn(m, known, get, 0);
}

static void set_callee(maker *m, berth_op_id op) {
    berth_attr callee = {.kind = BERTH_ATTR_FUNCTION, .function = m->callee};
    berth_attrs_set(m->module, &berth_graph_get(m->module, m->function)->ops.data[op].attrs,
                    "callee", callee);
}

static void add_calls(maker *m, berth_region_id region, values *known) {
    berth_value_id inputs[2] = {BERTH_NONE, pick(m, known)};
    berth_op_id call = add(m, region, BERTH_OP_CALL, inputs + 1, 1, 1);
    set_callee(m, call);
    learn(m, known, call, 0);
    berth_op_id reference = add(m, region, BERTH_OP_FUNC_REF, NULL, 0, 1);
    set_callee(m, reference);
    set_type(m, reference, berth_type_function(m->module, &m->type, 1, &m->type, 1));
    inputs[0] = output(m, reference);
    learn(m, known, add(m, region, BERTH_OP_CALL_VALUE, inputs, 2, 1), 0);
}

static void fill(maker *m, berth_region_id region, values known, int depth, uint32_t results) {
    static const berth_op_kind unary[] = {BERTH_OP_RELU, BERTH_OP_ABS, BERTH_OP_ON_DEVICE,
                                          BERTH_OP_DEVICE_COPY};
    for (uint32_t i = 1 + below(m, 5); i > 0; --i) {
        berth_value_id inputs[3] = {pick(m, &known), pick(m, &known), BERTH_NONE};
        switch (below(m, depth < 3 ? 8 : 5)) {
        case 0: learn(m, &known, add(m, region, BERTH_OP_ADD, inputs, 2, 1), 0); break;
        case 1: learn(m, &known, add(m, region, BERTH_OP_CLIP, inputs, 3, 1), 0); break;
        case 2: add_tuple(m, region, &known); break;
        case 3: add_calls(m, region, &known); break;
        case 4: learn(m, &known, add(m, region, unary[below(m, 4)], inputs, 1, 1), 0); break;
        case 5:
        case 6: add_if(m, region, &known, depth); break;
        default: add_loop(m, region, &known, depth); break;
        }
    }
    berth_value_id outs[2] = {pick(m, &known), pick(m, &known)};
    berth_graph_set_region_results(m->module, m->function, region, outs, results);
}

static void graph_function(maker *m, const char *name) {
    m->function = berth_graph_create(m->module, name, location(m));
    values known = {.count = 2};
    for (int i = 0; i < 2; ++i)
        known.items[i] = berth_graph_add_param(m->module, m->function, word(m), m->type);
    attributes(m, &berth_module_function(m->module, m->function)->attrs);
    fill(m, 0, known, 0, 1 + below(m, 2));
}

// ---- tensor functions ---------------------------------------------------------------------------

static berth_expr shared_chain(maker *m, berth_tfn *fn, berth_expr x) {
    static const berth_binary ops[] = {BERTH_BINARY_ADD, BERTH_BINARY_SUB, BERTH_BINARY_MUL,
                                       BERTH_BINARY_DIV, BERTH_BINARY_MAX, BERTH_BINARY_POW};
    for (uint32_t i = below(m, 12); i > 0; --i) {
        berth_expr other = below(m, 2) ? x : berth_tfn_float(fn, BERTH_DTYPE_F32, number(m));
        if (below(m, 4) == 0)
            other = berth_tfn_unary(
                fn, (berth_unary)(below(m, 2) ? BERTH_UNARY_EXP : BERTH_UNARY_NEG), x);
        x = below(m, 2) ? berth_tfn_binary(fn, ops[below(m, 6)], x, other)
                        : berth_tfn_binary(fn, ops[below(m, 6)], other, x);
        if (below(m, 5) == 0)
            x = berth_tfn_select(fn, berth_tfn_binary(fn, BERTH_BINARY_LT, x, other), x, other);
        if (below(m, 5) == 0) x = berth_tfn_fma(fn, x, other, x);
        if (below(m, 6) == 0)
            x = berth_tfn_cast(fn, BERTH_DTYPE_F32, berth_tfn_cast(fn, BERTH_DTYPE_I32, x));
    }
    return x;
}

// Every kind of statement and expression, in loops of random kinds.
static berth_func_id tensor_function(maker *m) {
    const int64_t dims[2] = {2, 3};
    const int64_t tile[1] = {3};
    berth_func_id id = berth_tfn_create(m->module, word(m), location(m));
    berth_tfn *fn = berth_tfn_get(m->module, id);
    berth_buf x = berth_tfn_param(fn, word(m), m->type, BERTH_ROLE_IN);
    berth_buf y =
        berth_tfn_param(fn, word(m), m->type, below(m, 2) ? BERTH_ROLE_OUT : BERTH_ROLE_INOUT);
    if (below(m, 2)) fn->bufs.data[x].memory_scope = berth_module_intern(m->module, "vta.inp");
    berth_buf work = berth_tfn_buffer(fn, word(m), BERTH_DTYPE_F32, 2, dims, BERTH_SCOPE_WORKSPACE);
    berth_buf acc = berth_tfn_buffer(fn, word(m), BERTH_DTYPE_F32, 1, tile,
                                     (berth_buf_scope)(BERTH_SCOPE_REGISTER + below(m, 3)));
    uint16_t lanes = below(m, 2) ? 4 : 1;
    fn->bufs.data[acc].lanes = lanes;
    berth_var i = berth_tfn_var(fn, word(m));
    berth_var j = berth_tfn_var(fn, word(m));
    berth_expr at[2] = {berth_tfn_var_ref(fn, i), berth_tfn_var_ref(fn, j)};
    berth_expr value = shared_chain(m, fn, berth_tfn_load(fn, x, at, 2));
    berth_var let = berth_tfn_let_var(fn, word(m), BERTH_DTYPE_F32, 1, false);
    berth_expr zero = berth_tfn_index(fn, 0);
    berth_expr vector = berth_tfn_broadcast(fn, berth_tfn_var_ref(fn, let), lanes);
    berth_expr sum = berth_tfn_load(fn, acc, &zero, 1);
    if (lanes > 1) sum = berth_tfn_reduce_add(fn, sum);
    berth_stmt barrier =
        below(m, 2) ? berth_tfn_barrier(fn)
                    : berth_tfn_barrier_pending(fn, (int64_t)below(m, 8), (int64_t)below(m, 2));
    berth_stmt inner[5] = {berth_tfn_let(fn, let, value), berth_tfn_alloc(fn, acc),
                           berth_tfn_store(fn, acc, &zero, 1, vector),
                           berth_tfn_store(fn, work, at, 2, sum), barrier};
    berth_stmt body = berth_tfn_seq(fn, inner, 4 + below(m, 2));
    berth_expr test = berth_tfn_binary(fn, BERTH_BINARY_LT, at[0], berth_tfn_index(fn, 1));
    berth_stmt only = berth_tfn_store(fn, y, at, 2, berth_tfn_load(fn, work, at, 2));
    berth_stmt choice = berth_tfn_if(fn, test, body, below(m, 2) ? only : 0);
    if (below(m, 2)) choice = berth_tfn_seq(fn, &choice, 1);
    berth_loop_kind kind = (berth_loop_kind)below(m, BERTH_LOOP_LOCAL_Z + 1);
    berth_stmt nest = berth_tfn_for(fn, j, berth_tfn_index(fn, 3), BERTH_LOOP_SERIAL, choice);
    nest = berth_tfn_for(fn, i, berth_tfn_index(fn, 2), kind, nest);
    fn->body = berth_tfn_seq(fn, &nest, 1);
    fn->flops = number(m);
    attributes(m, &berth_module_function(m->module, id)->attrs);
    return id;
}

static berth_func_id external_function(maker *m) {
    static const char code[] = "void f(float *x) {\n  x[0] = 1;\n}\n\xff\x01 \"";
    berth_external external = {.language = berth_module_intern(m->module, "c"),
                               .symbol = berth_module_intern(m->module, "f"),
                               .code = (const uint8_t *)code,
                               .code_size_bytes = below(m, sizeof(code)),
                               .is_text = below(m, 2),
                               .type = berth_type_function(m->module, &m->type, 1, &m->type, 1)};
    if (below(m, 3) == 0) {  // code elsewhere
        external.file = berth_module_intern(m->module, "f \"1\".c");
        external.code = NULL;
        external.code_size_bytes = 0;
        external.is_text = false;
    }
    berth_func_id id = berth_external_create(m->module, word(m), external, location(m));
    attributes(m, &berth_module_function(m->module, id)->attrs);
    return id;
}

// Calls of the other two on all of a buffer, and on planes of a larger one.
static void calling_function(maker *m, berth_func_id tensor, berth_func_id external) {
    const int64_t dims[3] = {4, 2, 3};
    berth_str_id scope = berth_tfn_get(m->module, tensor)->bufs.data[0].memory_scope;
    berth_func_id id = berth_tfn_create(m->module, word(m), location(m));
    berth_tfn *fn = berth_tfn_get(m->module, id);
    berth_type_id type = berth_type_tensor(m->module, BERTH_DTYPE_F32, 3, dims);
    berth_buf x = berth_tfn_param(fn, word(m), type, BERTH_ROLE_IN);
    berth_buf y = berth_tfn_param(fn, word(m), type, BERTH_ROLE_OUT);
    berth_buf plane = berth_tfn_param(fn, word(m), m->type, BERTH_ROLE_INOUT);
    fn->bufs.data[x].memory_scope = scope;
    berth_var i = berth_tfn_var(fn, word(m));
    berth_expr zero = berth_tfn_index(fn, 0), at = berth_tfn_var_ref(fn, i);
    for (uint32_t shift = below(m, 3); shift > 0; --shift)
        at = berth_tfn_binary(
            fn, BERTH_BINARY_MOD,
            berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_index(fn, below(m, 9))),
            berth_tfn_index(fn, 4));
    const berth_tfn_region from = {x, {at, zero, zero}, {BERTH_REGION_POINT, 2, 3}};
    const berth_tfn_region to = {y, {at, zero, zero}, {BERTH_REGION_POINT, 2, 3}};
    const berth_tfn_region all = {plane, {zero, zero}, {2, 3}};
    berth_stmt calls[2] = {berth_tfn_call(fn, tensor, (berth_tfn_region[]){from, to}, 2),
                           berth_tfn_call(fn, external, (berth_tfn_region[]){from, all}, 2)};
    berth_stmt body = berth_tfn_seq(fn, calls, 1 + below(m, 2));
    berth_stmt loop = berth_tfn_for(fn, i, berth_tfn_index(fn, 4), BERTH_LOOP_SERIAL, body);
    fn->body = berth_tfn_seq(fn, &loop, 1);
}

berth_module *random_module(berth_arena *arena, uint64_t seed) {
    const int64_t dims[2] = {2, 3};
    maker m = {.module = berth_module_create(arena, "random"), .state = seed};
    m.type = berth_type_tensor(m.module, BERTH_DTYPE_F32, 2, dims);
    m.callee = berth_graph_create(m.module, "callee", 0);
    berth_value_id x = berth_graph_add_param(m.module, m.callee, "x", m.type);
    berth_graph_set_results(m.module, m.callee, &x, 1);
    graph_function(&m, "main");
    berth_func_id tensor = tensor_function(&m);
    calling_function(&m, tensor, external_function(&m));
    attributes(&m, &m.module->attrs);
    return m.module;
}
