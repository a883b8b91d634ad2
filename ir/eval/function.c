// Whole functions: structure operations, regions and calls around berth_eval_op.
#include <string.h>

#include "ir/eval.h"
#include "ir/external.h"

#define MAX_CALL_DEPTH 256

typedef struct value {
    enum { VALUE_NONE, VALUE_TENSOR, VALUE_TUPLE, VALUE_FUNCTION } kind;
    union {
        berth_tensor tensor;
        struct {
            const struct value *fields;
            uint32_t count;
        } tuple;
        berth_func_id function;
    };
} value;

// One activation of a function. Regions share it: their values have ids of their own.
typedef struct frame {
    const berth_module *module;
    berth_func_id function;
    const berth_graph *graph;
    value *values;  // by value id
    berth_arena *arena;
    const berth_eval_channels *channels;  // (optional)
    int depth;
} frame;

static berth_status run_function(const frame *caller, berth_func_id function,
                                 const value *arguments, uint32_t argument_count, value *results,
                                 uint32_t result_count);
static berth_status run_region(frame *f, berth_region_id region);

static berth_status fail(const frame *f, const berth_op *op, berth_code code, const char *what) {
    return berth_status_make(code, "%s, %s: %s", berth_op_facts_get(op->kind)->name,
                             berth_loc_describe(f->module, op->loc, f->arena), what);
}

static berth_status need_tensor(const frame *f, const berth_op *op, uint32_t input,
                                const berth_tensor **out) {
    const value *v = &f->values[op->inputs[input]];
    if (v->kind != VALUE_TENSOR)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "an operand is not a tensor");
    *out = &v->tensor;
    return BERTH_OK;
}

// True or false of a one-element tensor.
static berth_status read_condition(const frame *f, const berth_op *op, const value *v, bool *out) {
    if (v->kind != VALUE_TENSOR || berth_tensor_element_count(&v->tensor) != 1)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "the condition is not a single truth value");
    *out = berth_tensor_get_f64(&v->tensor, 0) != 0;
    return BERTH_OK;
}

// ---- plain operations

static berth_status run_plain(frame *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_tensor *inputs = berth_arena_new_array(f->arena, berth_tensor, op->input_count + 1);
    berth_tensor *outputs = berth_arena_new_array(f->arena, berth_tensor, op->output_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) {
        const berth_tensor *tensor = NULL;
        if (op->inputs[i] == BERTH_NONE) continue;
        BERTH_TRY(need_tensor(f, op, i, &tensor));
        inputs[i] = *tensor;
    }
    BERTH_TRY(berth_eval_op(f->module, f->function, id, inputs, outputs, f->arena));
    for (uint32_t i = 0; i < op->output_count; ++i)
        f->values[op->outputs[i]] = (value){.kind = VALUE_TENSOR, .tensor = outputs[i]};
    return BERTH_OK;
}

// ---- calls and tuples

static berth_status run_call(frame *f, const berth_op *op) {
    uint32_t skip = op->kind == BERTH_OP_CALL_VALUE;  // operand 0 is the function
    berth_func_id callee = BERTH_NONE;
    if (skip && f->values[op->inputs[0]].kind == VALUE_FUNCTION)
        callee = f->values[op->inputs[0]].function;
    const berth_attr *attr = berth_attrs_find(f->module, &op->attrs, "callee");
    if (!skip && attr && attr->kind == BERTH_ATTR_FUNCTION) callee = attr->function;
    if (callee == BERTH_NONE)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "it names no function to call");
    uint32_t count = op->input_count - skip;
    value *arguments = berth_arena_new_array(f->arena, value, count + 1);
    value *results = berth_arena_new_array(f->arena, value, op->output_count + 1);
    for (uint32_t i = 0; i < count; ++i)
        if (op->inputs[i + skip] != BERTH_NONE) arguments[i] = f->values[op->inputs[i + skip]];
    BERTH_TRY(run_function(f, callee, arguments, count, results, op->output_count));
    for (uint32_t i = 0; i < op->output_count; ++i) f->values[op->outputs[i]] = results[i];
    return BERTH_OK;
}

static berth_status run_func_ref(frame *f, const berth_op *op) {
    const berth_attr *attr = berth_attrs_find(f->module, &op->attrs, "callee");
    if (!attr || attr->kind != BERTH_ATTR_FUNCTION)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "it names no function");
    f->values[op->outputs[0]] = (value){.kind = VALUE_FUNCTION, .function = attr->function};
    return BERTH_OK;
}

static berth_status run_tuple(frame *f, const berth_op *op) {
    value *fields = berth_arena_new_array(f->arena, value, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) fields[i] = f->values[op->inputs[i]];
    f->values[op->outputs[0]] =
        (value){.kind = VALUE_TUPLE, .tuple = {.fields = fields, .count = op->input_count}};
    return BERTH_OK;
}

static berth_status run_tuple_get(frame *f, const berth_op *op) {
    const value *tuple = &f->values[op->inputs[0]];
    int64_t index = berth_attrs_int(f->module, &op->attrs, "index", 0);
    if (tuple->kind != VALUE_TUPLE || index < 0 || index >= (int64_t)tuple->tuple.count)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "there is no such field");
    f->values[op->outputs[0]] = tuple->tuple.fields[index];
    return BERTH_OK;
}

// ---- if and loop

static berth_status run_if(frame *f, const berth_op *op) {
    bool condition = false;
    if (op->region_count != 2)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "it must have two regions");
    BERTH_TRY(read_condition(f, op, &f->values[op->inputs[0]], &condition));
    berth_region_id region = op->regions[condition ? 0 : 1];
    if (f->graph->regions.data[region].results.count != op->output_count)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "a branch gives another number of results");
    BERTH_TRY(run_region(f, region));
    for (uint32_t i = 0; i < op->output_count; ++i)
        f->values[op->outputs[i]] = f->values[f->graph->regions.data[region].results.data[i]];
    return BERTH_OK;
}

// The values of one scan output, in order of the iterations.
typedef struct scan {
    BERTH_VEC(berth_tensor) items;
} scan;

// The items with a new leading dimension. Without items the shape comes from the body's type, with
// unknown extents as 0.
static berth_status stack_scan(frame *f, const berth_op *op, const scan *s, berth_value_id result,
                               berth_tensor *out) {
    int64_t dims[BERTH_MAX_RANK] = {s->items.count};
    if (s->items.count == 0) {
        const berth_type *type = berth_type_get(f->module, f->graph->values.data[result].type);
        bool known = type->kind == BERTH_TYPE_TENSOR && type->dtype && type->rank >= 0 &&
                     type->rank < BERTH_MAX_RANK;
        if (!known)
            return fail(f, op, BERTH_UNSUPPORTED, "no iteration ran and the type is not known");
        for (int i = 0; i < type->rank; ++i) dims[i + 1] = type->dims[i] > 0 ? type->dims[i] : 0;
        *out = berth_tensor_create(f->arena, type->dtype, type->rank + 1, dims);
        return BERTH_OK;
    }
    const berth_tensor *first = &s->items.data[0];
    if (first->rank >= BERTH_MAX_RANK)
        return fail(f, op, BERTH_UNSUPPORTED, "a scan output has too many dimensions");
    for (uint32_t k = 1; k < s->items.count; ++k)
        if (!berth_tensor_same_shape(first, &s->items.data[k]) ||
            s->items.data[k].dtype != first->dtype)
            return fail(f, op, BERTH_INVALID_ARGUMENT, "a scan output changes its shape");
    memcpy(dims + 1, first->dims, (size_t)first->rank * sizeof(*dims));
    BERTH_TRY(berth_shape_size_bytes(first->dtype, first->rank + 1, dims, NULL, NULL));
    *out = berth_tensor_create(f->arena, first->dtype, first->rank + 1, dims);
    size_t size = berth_tensor_size_bytes(first);
    for (uint32_t k = 0; size && k < s->items.count; ++k)
        memcpy((char *)out->data + k * size, s->items.data[k].data, size);
    return BERTH_OK;
}

static berth_tensor scalar(frame *f, berth_dtype dtype, int64_t number) {
    berth_tensor tensor = berth_tensor_create(f->arena, dtype, 0, NULL);
    berth_tensor_set_i64(&tensor, 0, number);
    return tensor;
}

// Runs the body until the count or the condition ends it; fills `carried` and `scans`.
static berth_status iterate(frame *f, const berth_op *op, value *carried, uint32_t carried_count,
                            scan *scans, uint32_t scan_count) {
    const berth_tensor *limit = NULL;
    bool go_on = true;
    berth_region_id body = op->regions[0];
    if (op->inputs[0] != BERTH_NONE) {
        BERTH_TRY(need_tensor(f, op, 0, &limit));
        if (berth_tensor_element_count(limit) != 1)
            return fail(f, op, BERTH_INVALID_ARGUMENT, "the iteration count is not a number");
    }
    if (op->inputs[1] != BERTH_NONE)
        BERTH_TRY(read_condition(f, op, &f->values[op->inputs[1]], &go_on));
    int64_t most = limit ? berth_tensor_get_i64(limit, 0) : INT64_MAX;
    for (int64_t i = 0; i < most && go_on; ++i) {
        const berth_region *region = &f->graph->regions.data[body];
        f->values[region->params.data[0]] =
            (value){.kind = VALUE_TENSOR, .tensor = scalar(f, BERTH_DTYPE_I64, i)};
        f->values[region->params.data[1]] =
            (value){.kind = VALUE_TENSOR, .tensor = scalar(f, BERTH_DTYPE_BOOL, 1)};
        for (uint32_t k = 0; k < carried_count; ++k)
            f->values[region->params.data[2 + k]] = carried[k];
        BERTH_TRY(run_region(f, body));
        const berth_value_id *results = region->results.data;
        BERTH_TRY(read_condition(f, op, &f->values[results[0]], &go_on));
        for (uint32_t k = 0; k < carried_count; ++k) carried[k] = f->values[results[1 + k]];
        for (uint32_t k = 0; k < scan_count; ++k) {
            const value *item = &f->values[results[1 + carried_count + k]];
            if (item->kind != VALUE_TENSOR)
                return fail(f, op, BERTH_INVALID_ARGUMENT, "a scan output is not a tensor");
            berth_vec_push(f->arena, &scans[k].items, item->tensor);
        }
    }
    return BERTH_OK;
}

static berth_status run_loop(frame *f, const berth_op *op) {
    if (op->region_count != 1 || op->input_count < 2)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "it must have one region and two operands");
    const berth_region *body = &f->graph->regions.data[op->regions[0]];
    uint32_t carried_count = op->input_count - 2;
    if (body->params.count != carried_count + 2 || op->output_count < carried_count ||
        body->results.count != op->output_count + 1)
        return fail(f, op, BERTH_INVALID_ARGUMENT, "the body does not fit the operands");
    uint32_t scan_count = op->output_count - carried_count;
    value *carried = berth_arena_new_array(f->arena, value, carried_count + 1);
    scan *scans = berth_arena_new_array(f->arena, scan, scan_count + 1);
    for (uint32_t k = 0; k < carried_count; ++k)
        if (op->inputs[2 + k] != BERTH_NONE) carried[k] = f->values[op->inputs[2 + k]];
    BERTH_TRY(iterate(f, op, carried, carried_count, scans, scan_count));
    for (uint32_t k = 0; k < carried_count; ++k) f->values[op->outputs[k]] = carried[k];
    for (uint32_t k = 0; k < scan_count; ++k) {
        berth_tensor tensor;
        BERTH_TRY(stack_scan(f, op, &scans[k], body->results.data[1 + carried_count + k], &tensor));
        f->values[op->outputs[carried_count + k]] = (value){.kind = VALUE_TENSOR, .tensor = tensor};
    }
    return BERTH_OK;
}

// ---- other machines

static berth_status run_send(frame *f, const berth_op *op) {
    const berth_tensor *tensor = NULL;
    BERTH_TRY(need_tensor(f, op, 0, &tensor));
    return f->channels->send(f->channels->user,
                             berth_attrs_int(f->module, &op->attrs, "channel", 0), tensor);
}

static berth_status run_receive(frame *f, const berth_op *op) {
    berth_tensor tensor = {0};
    const berth_type *type = berth_type_get(f->module, f->graph->values.data[op->outputs[0]].type);
    BERTH_TRY(f->channels->receive(f->channels->user,
                                   berth_attrs_int(f->module, &op->attrs, "channel", 0), &tensor));
    bool fits =
        type->kind == BERTH_TYPE_TENSOR && type->dtype == tensor.dtype && type->rank == tensor.rank;
    for (int i = 0; fits && i < type->rank; ++i)
        fits = berth_dim_is_symbol(type->dims[i]) || type->dims[i] == tensor.dims[i];
    if (!fits) return fail(f, op, BERTH_INVALID_ARGUMENT, "what came is of another type");
    f->values[op->outputs[0]] = (value){.kind = VALUE_TENSOR, .tensor = tensor};
    return BERTH_OK;
}

static berth_status run_channel(frame *f, const berth_op *op) {
    if (!f->channels)
        return fail(f, op, BERTH_UNSUPPORTED,
                    "it needs another machine, and there is no channel to one");
    return op->kind == BERTH_OP_SEND ? run_send(f, op) : run_receive(f, op);
}

// ---- regions and functions

static berth_status run_op(frame *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    switch (op->kind) {
    case BERTH_OP_CALL:
    case BERTH_OP_CALL_VALUE: return run_call(f, op);
    case BERTH_OP_FUNC_REF: return run_func_ref(f, op);
    case BERTH_OP_TUPLE: return run_tuple(f, op);
    case BERTH_OP_TUPLE_GET: return run_tuple_get(f, op);
    case BERTH_OP_IF: return run_if(f, op);
    case BERTH_OP_LOOP: return run_loop(f, op);
    case BERTH_OP_SEND:
    case BERTH_OP_RECEIVE: return run_channel(f, op);
    case BERTH_OP_ON_DEVICE:
    case BERTH_OP_DEVICE_COPY:
    case BERTH_OP_IDENTITY:  // of any kind of value
        f->values[op->outputs[0]] = f->values[op->inputs[0]];
        return BERTH_OK;
    default: return run_plain(f, id);
    }
}

static berth_status run_region(frame *f, berth_region_id region) {
    const berth_region *held = &f->graph->regions.data[region];
    for (uint32_t i = 0; i < held->ops.count; ++i) BERTH_TRY(run_op(f, held->ops.data[i]));
    return BERTH_OK;
}

static berth_status run_function(const frame *caller, berth_func_id function,
                                 const value *arguments, uint32_t argument_count, value *results,
                                 uint32_t result_count) {
    frame f = *caller;
    f.function = function;
    f.graph = berth_graph_get(f.module, function);
    f.depth = caller->depth + 1;
    const char *name = berth_module_str(f.module, berth_module_function(f.module, function)->name);
    if (!f.graph)
        return berth_status_make(
            BERTH_UNSUPPORTED, "@%s: the interpreter runs graph functions only, not %s", name,
            berth_external_get(f.module, function) ? "external code"
                                                   : "functions of other dialects");
    if (f.depth > MAX_CALL_DEPTH)
        return berth_status_make(BERTH_UNSUPPORTED, "@%s: calls are nested more than %d deep", name,
                                 MAX_CALL_DEPTH);
    const berth_region *root = &f.graph->regions.data[0];
    if (root->params.count != argument_count || root->results.count != result_count)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "@%s has %u parameters and %u results; %u and %u were given",
            name, root->params.count, root->results.count, argument_count, result_count);
    f.values = berth_arena_new_array(f.arena, value, f.graph->values.count + 1);
    for (uint32_t i = 0; i < argument_count; ++i) f.values[root->params.data[i]] = arguments[i];
    BERTH_TRY(run_region(&f, 0));
    for (uint32_t i = 0; i < result_count; ++i) results[i] = f.values[root->results.data[i]];
    return BERTH_OK;
}

typedef struct entry {
    frame root;
    berth_func_id function;
    const berth_tensor *arguments;
    uint32_t argument_count;
    berth_tensor *results;
    uint32_t result_count;
} entry;

static berth_status run_entry(void *user) {
    entry *e = user;
    berth_arena *arena = e->root.arena;
    value *arguments = berth_arena_new_array(arena, value, e->argument_count + 1);
    value *results = berth_arena_new_array(arena, value, e->result_count + 1);
    for (uint32_t i = 0; i < e->argument_count; ++i)
        arguments[i] = (value){.kind = VALUE_TENSOR, .tensor = e->arguments[i]};
    BERTH_TRY(run_function(&e->root, e->function, arguments, e->argument_count, results,
                           e->result_count));
    for (uint32_t i = 0; i < e->result_count; ++i) {
        if (results[i].kind != VALUE_TENSOR)
            return berth_status_make(BERTH_UNSUPPORTED, "result %u is not a tensor", i);
        e->results[i] = results[i].tensor;
    }
    return BERTH_OK;
}

berth_status berth_eval_function_with(const berth_module *module, berth_func_id function,
                                      const berth_eval_channels *channels,
                                      const berth_tensor *arguments, uint32_t argument_count,
                                      berth_tensor *out_results, uint32_t result_count,
                                      berth_arena *arena) {
    entry e = {.root = {.module = module, .arena = arena, .channels = channels},
               .function = function,
               .arguments = arguments,
               .argument_count = argument_count,
               .results = out_results,
               .result_count = result_count};
    for (uint32_t i = 0; i < result_count; ++i) out_results[i] = (berth_tensor){0};
    return berth_arena_try(arena, run_entry, &e);
}

berth_status berth_eval_function(const berth_module *module, berth_func_id function,
                                 const berth_tensor *arguments, uint32_t argument_count,
                                 berth_tensor *out_results, uint32_t result_count,
                                 berth_arena *arena) {
    return berth_eval_function_with(module, function, NULL, arguments, argument_count, out_results,
                                    result_count, arena);
}
