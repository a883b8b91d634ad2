// Statements that build graph functions and external functions.
#include "ir/graph/graph.h"

#include "ir/c/emitter.h"
#include "ir/c/hooks.h"
#include "ir/external.h"

typedef struct graph_emitter {
    berth_c_emitter *e;
    const berth_graph *graph;
    uint32_t *number;  // per value: in the array v, + 1; 0 = not defined so far
    uint32_t value_count;
    uint32_t *region;  // per region: in the array r
    uint32_t region_count;
} graph_emitter;

static const char *op_kind_name(berth_c_emitter *e, berth_op_kind kind) {
    static const char *const names[] = {
#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    "BERTH_OP_" #id,
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP
    };
    if (kind < BERTH_OP_COUNT) return names[kind];
    return berth_arena_printf(e->scratch, "registered(%s)",
                              berth_emit_string(e, berth_op_facts_get(kind)->name));
}

static const char *use(berth_c_emitter *e, const graph_emitter *g, berth_value_id id) {
    if (id >= g->graph->values.count || !g->number[id]) return "BERTH_NONE";
    return berth_arena_printf(e->scratch, "v[%u]", g->number[id] - 1);
}

// "(const berth_value_id[]){v[0], BERTH_NONE}".
static const char *uses(graph_emitter *g, const berth_value_id *values, uint32_t count) {
    enum { per_line = 12 };
    berth_strbuf out = berth_strbuf_make(g->e->scratch);
    if (count == 0) return "NULL";
    berth_strbuf_add(&out, "(const berth_value_id[]){");
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&out, "%s%s",
                          i == 0         ? ""
                          : i % per_line ? ", "
                                         : ",\n        ",
                          use(g->e, g, values[i]));
    berth_strbuf_add(&out, "}");
    return berth_strbuf_text(&out);
}

// v[n] = the value that `made` gives.
static void define(graph_emitter *g, berth_value_id id, const char *made) {
    const berth_value *value = &g->graph->values.data[id];
    g->number[id] = ++g->value_count;
    berth_emit_line(g->e, "v[%u] = define(m, f, %s, %s, %s, %s);", g->number[id] - 1, made,
                    berth_emit_str_id(g->e, value->name), berth_emit_type(g->e, value->type),
                    berth_emit_device(g->e, value->device));
}

static void emit_region(graph_emitter *g, berth_region_id id);

static void emit_op(graph_emitter *g, const berth_op *op) {
    berth_c_emitter *e = g->e;
    berth_emit_line(e, "op = berth_graph_add_op(m, f, r[%u], %s, %s, %u, %u, %s);",
                    g->region[op->region], op_kind_name(e, op->kind),
                    uses(g, op->inputs, op->input_count), op->input_count, op->output_count,
                    berth_emit_loc(e, op->loc));
    berth_emit_attrs(e, &op->attrs, "attrs_of(m, f, op)");
    if (op->device)
        berth_emit_line(e, "berth_graph_get(m, f)->ops.data[op].device = %s;",
                        berth_emit_device(e, op->device));
    for (uint32_t i = 0; i < op->output_count; ++i)
        define(g, op->outputs[i], berth_arena_printf(e->scratch, "output(m, f, op, %u)", i));
    // Inner operations take the variable `op`, so the regions are all made first.
    for (uint32_t i = 0; i < op->region_count; ++i) {
        g->region[op->regions[i]] = ++g->region_count;
        berth_emit_line(e, "r[%u] = berth_graph_add_region(m, f, op);", g->region_count);
    }
    for (uint32_t i = 0; i < op->region_count; ++i) emit_region(g, op->regions[i]);
}

static void emit_region(graph_emitter *g, berth_region_id id) {
    const berth_region *region = &g->graph->regions.data[id];
    uint32_t r = g->region[id];
    for (uint32_t i = 0; i < region->params.count; ++i)
        define(g, region->params.data[i],
               berth_arena_printf(g->e->scratch,
                                  "berth_graph_add_region_param(m, f, r[%u], \"\", 0)", r));
    for (uint32_t i = 0; i < region->ops.count; ++i)
        emit_op(g, &g->graph->ops.data[region->ops.data[i]]);
    berth_emit_line(g->e, "berth_graph_set_region_results(m, f, r[%u], %s, %u);", r,
                    uses(g, region->results.data, region->results.count), region->results.count);
}

void berth_c__emit_graph(berth_c_emitter *e, berth_func_id function) {
    const berth_graph *graph = berth_graph_get(e->module, function);
    graph_emitter g = {.e = e,
                       .graph = graph,
                       .number = berth_arena_new_array(e->scratch, uint32_t, graph->values.count),
                       .region = berth_arena_new_array(e->scratch, uint32_t, graph->regions.count)};
    berth_emit_line(e, "berth_module_function(m, f)->body = berth_graph_new_body(m);");
    berth_emit_line(e, "berth_value_id *v = berth_arena_new_array(m->arena, berth_value_id, %u);",
                    graph->values.count + 1);
    berth_emit_line(e, "berth_region_id *r = berth_arena_new_array(m->arena, berth_region_id, %u);",
                    graph->regions.count + 1);
    berth_emit_line(e, "berth_op_id op = 0;");
    berth_emit_line(e, "(void)op;");
    emit_region(&g, 0);
}

void berth_c__emit_external(berth_c_emitter *e, berth_func_id function) {
    const berth_external *external = berth_external_get(e->module, function);
    berth_emit_line(e, "berth_external *external = berth_arena_new(m->arena, berth_external);");
    berth_emit_line(e, "external->language = %s;", berth_emit_str_id(e, external->language));
    berth_emit_line(e, "external->symbol = %s;", berth_emit_str_id(e, external->symbol));
    berth_emit_line(e, "external->type = %s;", berth_emit_type(e, external->type));
    if (external->file)
        berth_emit_line(e, "external->file = %s;", berth_emit_str_id(e, external->file));
    if (!external->file) {
        berth_emit_line(e, "external->code = %s;",
                        berth_emit_data(e, external->code, (size_t)external->code_size_bytes));
        berth_emit_line(e, "external->code_size_bytes = %s;",
                        berth_emit_int(e, (int64_t)external->code_size_bytes));
        berth_emit_line(e, "external->is_text = %s;", external->is_text ? "true" : "false");
    }
    berth_emit_line(e, "berth_module_function(m, f)->body = external;");
}
