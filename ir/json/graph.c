// JSON of graph functions: values in order of definition, and the root region:
//   {"values": [{"name": "x", "type": {...}, "device": "cpu:0"}],
//    "region": {"params": [0], "ops": [{"op": "relu", "inputs": [0], "outputs": [1], ...}],
//               "results": [1]}}
// and of external functions.
#include <string.h>

#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/json/hooks.h"
#include "ir/json/reader.h"
#include "ir/json/writer.h"

// ---- writing ------------------------------------------------------------------------------------

typedef struct graph_writer {
    berth_json_writer *w;
    const berth_graph *graph;
    json_t *values;
    uint32_t *number;  // per value, + 1; 0 = not defined so far
} graph_writer;

static void put_definitions(graph_writer *g, json_t *object, const char *key,
                            const berth_value_id *values, uint32_t count) {
    json_t *array = berth_json_put_array(g->w, object, key);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_value *value = &g->graph->values.data[values[i]];
        g->number[values[i]] = (uint32_t)json_array_size(g->values) + 1;
        berth_json_put_int(g->w, array, NULL, g->number[values[i]] - 1);
        json_t *item = berth_json_put_object(g->w, g->values, NULL);
        if (value->name) berth_json_put_str(g->w, item, "name", value->name);
        berth_json_put_type(g->w, item, "type", value->type);
        berth_json_put_device(g->w, item, "device", value->device);
    }
}

static void put_uses(graph_writer *g, json_t *object, const char *key, const berth_value_id *values,
                     uint32_t count) {
    json_t *array = berth_json_put_array(g->w, object, key);
    for (uint32_t i = 0; i < count; ++i) {
        bool none = values[i] >= g->graph->values.count || !g->number[values[i]];
        berth_json_put(g->w, array, NULL,
                       none ? json_null() : json_integer(g->number[values[i]] - 1));
    }
}

static void put_region(graph_writer *g, json_t *object, berth_region_id id);

static void put_op(graph_writer *g, json_t *array, const berth_op *op) {
    json_t *object = berth_json_put_object(g->w, array, NULL);
    berth_json_put(g->w, object, "op", json_string(berth_op_facts_get(op->kind)->name));
    put_uses(g, object, "inputs", op->inputs, op->input_count);
    put_definitions(g, object, "outputs", op->outputs, op->output_count);
    berth_json_put_attrs(g->w, object, &op->attrs);
    berth_json_put_device(g->w, object, "device", op->device);
    berth_json_put_loc(g->w, object, "location", op->loc);
    json_t *regions = op->region_count ? berth_json_put_array(g->w, object, "regions") : NULL;
    for (uint32_t i = 0; i < op->region_count; ++i)
        put_region(g, berth_json_put_object(g->w, regions, NULL), op->regions[i]);
}

static void put_region(graph_writer *g, json_t *object, berth_region_id id) {
    const berth_region *region = &g->graph->regions.data[id];
    put_definitions(g, object, "params", region->params.data, region->params.count);
    json_t *ops = berth_json_put_array(g->w, object, "ops");
    for (uint32_t i = 0; i < region->ops.count; ++i)
        put_op(g, ops, &g->graph->ops.data[region->ops.data[i]]);
    put_uses(g, object, "results", region->results.data, region->results.count);
}

void berth_json__write_graph(berth_json_writer *w, berth_func_id function, json_t *object) {
    graph_writer g = {.w = w, .graph = berth_graph_get(w->module, function)};
    g.number = berth_arena_new_array(w->scratch, uint32_t, g.graph->values.count);
    g.values = berth_json_put_array(w, object, "values");
    put_region(&g, berth_json_put_object(w, object, "region"), 0);
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct graph_reader {
    berth_json_reader *r;
    berth_func_id function;
    berth_graph *graph;
    const json_t *values;
    berth_value_id *ids;  // per number; BERTH_NONE = not defined so far
} graph_reader;

static berth_status define(graph_reader *g, const json_t *number, berth_value_id id) {
    size_t count = json_array_size(g->values);
    json_int_t n = json_integer_value(number);
    if (!json_is_integer(number) || n < 0 || (size_t)n >= count || g->ids[n] != BERTH_NONE)
        return berth_json_expected(g->r, NULL, "the number of a value not defined before");
    berth_value *value = &g->graph->values.data[id];
    size_t mark = berth_json_enter(g->r, NULL, (size_t)n);
    const json_t *item = json_array_get(g->values, (size_t)n);
    BERTH_TRY(berth_json_get_str(g->r, item, "name", true, &value->name));
    BERTH_TRY(berth_json_get_type(g->r, item, "type", &value->type));
    BERTH_TRY(berth_json_get_device(g->r, item, "device", &value->device));
    berth_json_leave(g->r, mark);
    g->ids[n] = id;
    return BERTH_OK;
}

static berth_status read_uses(graph_reader *g, const json_t *object, const char *key, bool optional,
                              berth_value_id **out, uint32_t *out_count) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(g->r, object, key, false, &array));
    *out_count = (uint32_t)json_array_size(array);
    *out = berth_arena_new_array(g->r->scratch, berth_value_id, *out_count);
    for (uint32_t i = 0; i < *out_count; ++i) {
        const json_t *item = json_array_get(array, i);
        json_int_t n = json_integer_value(item);
        (*out)[i] = BERTH_NONE;
        if (optional && json_is_null(item)) continue;
        if (!json_is_integer(item) || n < 0 || (size_t)n >= json_array_size(g->values) ||
            g->ids[n] == BERTH_NONE)
            return berth_json_expected(g->r, key, "numbers of values defined before");
        (*out)[i] = g->ids[n];
    }
    return BERTH_OK;
}

static berth_status read_region(graph_reader *g, const json_t *object, berth_region_id region);

static berth_status read_regions(graph_reader *g, const json_t *object, berth_op_id op) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(g->r, object, "regions", true, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
        size_t mark = berth_json_enter(g->r, "regions", 0);
        (void)berth_json_enter(g->r, NULL, i);
        berth_region_id region = berth_graph_add_region(g->r->module, g->function, op);
        BERTH_TRY(read_region(g, json_array_get(array, i), region));
        berth_json_leave(g->r, mark);
    }
    return BERTH_OK;
}

static berth_status read_op(graph_reader *g, const json_t *object, berth_region_id region) {
    berth_json_reader *r = g->r;
    const char *name = NULL;
    berth_op_kind kind = BERTH_OP_CONSTANT;
    berth_value_id *inputs = NULL;
    uint32_t input_count = 0;
    const json_t *outputs = NULL;
    berth_loc_id loc = 0;
    berth_attrs attrs = {{0}};
    BERTH_TRY(berth_limit_item(&r->watch));
    BERTH_TRY(berth_json_get_text(r, object, "op", false, &name));
    if (!berth_op_kind_from_name(name, &kind))
        return berth_json_expected(r, "op", "the name of an operation");
    BERTH_TRY(read_uses(g, object, "inputs", true, &inputs, &input_count));
    BERTH_TRY(berth_json_get_array(r, object, "outputs", false, &outputs));
    BERTH_TRY(berth_json_get_loc(r, object, "location", &loc));
    BERTH_TRY(berth_json_get_attrs(r, object, &attrs));
    uint32_t output_count = (uint32_t)json_array_size(outputs);
    berth_op_id op = berth_graph_add_op(r->module, g->function, region, kind, inputs, input_count,
                                        output_count, loc);
    g->graph->ops.data[op].attrs = attrs;
    BERTH_TRY(berth_json_get_device(r, object, "device", &g->graph->ops.data[op].device));
    for (uint32_t i = 0; i < output_count; ++i)
        BERTH_TRY(define(g, json_array_get(outputs, i), g->graph->ops.data[op].outputs[i]));
    return read_regions(g, object, op);
}

static berth_status read_region(graph_reader *g, const json_t *object, berth_region_id region) {
    berth_json_reader *r = g->r;
    const json_t *array = NULL;
    berth_value_id *results = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_json_descend(r, "regions"));
    BERTH_TRY(berth_json_get_array(r, object, "params", false, &array));
    for (size_t i = 0; i < json_array_size(array); ++i)
        BERTH_TRY(define(g, json_array_get(array, i),
                         berth_graph_add_region_param(r->module, g->function, region, "", 0)));
    BERTH_TRY(berth_json_get_array(r, object, "ops", false, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
        size_t mark = berth_json_enter(r, "ops", 0);
        (void)berth_json_enter(r, NULL, i);
        BERTH_TRY(read_op(g, json_array_get(array, i), region));
        berth_json_leave(r, mark);
    }
    BERTH_TRY(read_uses(g, object, "results", false, &results, &count));
    berth_graph_set_region_results(r->module, g->function, region, results, count);
    berth_json_ascend(r);
    return BERTH_OK;
}

berth_status berth_json__read_graph(berth_json_reader *r, const json_t *object,
                                    berth_func_id function) {
    graph_reader g = {.r = r, .function = function, .graph = berth_graph_new_body(r->module)};
    berth_module_function(r->module, function)->body = g.graph;
    BERTH_TRY(berth_json_get_array(r, object, "values", false, &g.values));
    size_t count = json_array_size(g.values);
    g.ids = berth_arena_new_array(r->scratch, berth_value_id, count);
    for (size_t i = 0; i < count; ++i) g.ids[i] = BERTH_NONE;
    return read_region(&g, json_object_get(object, "region"), 0);
}

// ---- external functions -------------------------------------------------------------------------

void berth_json__write_external(berth_json_writer *w, berth_func_id function, json_t *object) {
    const berth_external *external = berth_external_get(w->module, function);
    berth_json_put_type(w, object, "type", external->type);
    berth_json_put_str(w, object, "language", external->language);
    berth_json_put_str(w, object, "symbol", external->symbol);
    if (external->file) {
        berth_json_put_str(w, object, "file", external->file);
        return;
    }
    berth_json_put(w, object, "is_text", json_boolean(external->is_text));
    berth_json_put_base64(w, object, "code", external->code, external->code_size_bytes);
}

berth_status berth_json__read_external(berth_json_reader *r, const json_t *object,
                                       berth_func_id function) {
    berth_external *external = berth_arena_new(r->module->arena, berth_external);
    const char *code = NULL;
    size_t size = 0;
    berth_module_function(r->module, function)->body = external;
    BERTH_TRY(berth_json_get_type(r, object, "type", &external->type));
    BERTH_TRY(berth_json_get_str(r, object, "language", false, &external->language));
    BERTH_TRY(berth_json_get_str(r, object, "symbol", false, &external->symbol));
    if (json_object_get(object, "file"))
        return berth_json_get_str(r, object, "file", false, &external->file);
    BERTH_TRY(berth_json_get_data(r, object, "code", &code, &size));
    external->is_text = json_is_true(json_object_get(object, "is_text"));
    external->code = (const uint8_t *)code;
    external->code_size_bytes = size;
    return BERTH_OK;
}
