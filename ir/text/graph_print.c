// Text of graph functions.
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/text/hooks.h"
#include "ir/text/printer.h"

typedef struct graph_printer {
    berth_text_printer *p;
    const berth_graph *graph;
    berth_text_labels labels;
    uint32_t *label;  // per value: index of its name + 1; 0 = not defined so far
} graph_printer;

static const char *value_name(const graph_printer *g, berth_value_id id) {
    return berth_module_str(g->p->module, g->graph->values.data[id].name);
}

static void print_use(graph_printer *g, berth_value_id id) {
    if (id == BERTH_NONE) {
        berth_doc_text(g->p->doc, "_");
    } else if (id >= g->graph->values.count || !g->label[id]) {
        berth_doc_textf(g->p->doc, "%%undefined~%u", id);  // the verifier refuses it
    } else {
        berth_text_print_label(g->p, value_name(g, id), g->label[id] - 1);
    }
}

static void print_definition(graph_printer *g, berth_value_id id) {
    if (!g->label[id])
        g->label[id] = berth_text_label_take(g->p, &g->labels, value_name(g, id)) + 1;
    print_use(g, id);
}

static void separate(graph_printer *g, bool again) {
    if (!again) return;
    berth_doc_text(g->p->doc, ",");
    berth_doc_fill_line(g->p->doc);
}

static void print_uses(graph_printer *g, const berth_value_id *values, uint32_t count) {
    berth_doc_open(g->p->doc, 4);
    for (uint32_t i = 0; i < count; ++i) {
        separate(g, i > 0);
        print_use(g, values[i]);
    }
    berth_doc_close(g->p->doc);
}

static void print_params(graph_printer *g, const berth_region *region) {
    berth_doc_text(g->p->doc, "(");
    berth_doc_open(g->p->doc, 4);
    for (uint32_t i = 0; i < region->params.count; ++i) {
        const berth_value *value = &g->graph->values.data[region->params.data[i]];
        separate(g, i > 0);
        print_definition(g, region->params.data[i]);
        berth_doc_text(g->p->doc, ": ");
        berth_text_print_type(g->p, value->type);
        berth_text_print_on_device(g->p, value->device);
    }
    berth_doc_close(g->p->doc);
    berth_doc_text(g->p->doc, ")");
}

static void print_result_types(graph_printer *g, const berth_op *op) {
    if (op->output_count == 0) return;
    berth_doc_text(g->p->doc, ":");
    berth_doc_fill_line(g->p->doc);
    berth_doc_open(g->p->doc, 4);
    for (uint32_t i = 0; i < op->output_count; ++i) {
        const berth_value *value = &g->graph->values.data[op->outputs[i]];
        separate(g, i > 0);
        berth_text_print_type(g->p, value->type);
        berth_text_print_on_device(g->p, value->device);
    }
    berth_doc_close(g->p->doc);
}

// "call @f(%x)" for the attribute that comes first in a call.
static uint32_t print_callee(graph_printer *g, const berth_op *op) {
    const berth_attr *first = op->attrs.items.count ? &op->attrs.items.data[0] : NULL;
    if ((op->kind != BERTH_OP_CALL && op->kind != BERTH_OP_FUNC_REF) || !first ||
        first->kind != BERTH_ATTR_FUNCTION ||
        strcmp(berth_module_str(g->p->module, first->name), "callee") != 0)
        return 0;
    const berth_function *function = berth_module_function(g->p->module, first->function);
    if (!function || function->removed) return 0;
    berth_doc_text(g->p->doc, " ");
    berth_text_print_function_ref(g->p, first->function);
    return 1;
}

static void print_region(graph_printer *g, berth_region_id id);

static void print_regions(graph_printer *g, const berth_op *op) {
    for (uint32_t i = 0; i < op->region_count; ++i) {
        const berth_region *region = &g->graph->regions.data[op->regions[i]];
        if (i == 1 && op->kind == BERTH_OP_IF) berth_doc_text(g->p->doc, " else");
        if (region->params.count) {
            berth_doc_text(g->p->doc, " ");
            print_params(g, region);
        }
        berth_doc_text(g->p->doc, " {");
        berth_doc_indent(g->p->doc, 2);
        print_region(g, op->regions[i]);
        berth_doc_indent(g->p->doc, -2);
        berth_doc_hard_line(g->p->doc);
        berth_doc_text(g->p->doc, "}");
    }
}

static void print_op(graph_printer *g, const berth_op *op) {
    berth_doc_hard_line(g->p->doc);
    berth_doc_open(g->p->doc, 4);
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_doc_text(g->p->doc, i ? ", " : "");
        print_definition(g, op->outputs[i]);
    }
    if (op->output_count) berth_doc_text(g->p->doc, " = ");
    berth_doc_text(g->p->doc, berth_op_facts_get(op->kind)->name);
    uint32_t shown = print_callee(g, op);
    berth_doc_text(g->p->doc, "(");
    print_uses(g, op->inputs, op->input_count);
    berth_doc_text(g->p->doc, ")");
    berth_text_print_attrs(g->p, &op->attrs, shown);
    berth_text_print_on_device(g->p, op->device);
    print_result_types(g, op);
    berth_text_print_loc(g->p, op->loc);
    berth_doc_close(g->p->doc);
    print_regions(g, op);
}

static void print_region(graph_printer *g, berth_region_id id) {
    const berth_region *region = &g->graph->regions.data[id];
    for (uint32_t i = 0; i < region->ops.count; ++i)
        print_op(g, &g->graph->ops.data[region->ops.data[i]]);
    berth_doc_hard_line(g->p->doc);
    berth_doc_text(g->p->doc, region->results.count ? "return " : "return");
    print_uses(g, region->results.data, region->results.count);
}

void berth_text__print_graph_signature(berth_text_printer *p, berth_func_id function) {
    graph_printer *g = berth_arena_new(p->scratch, graph_printer);
    g->p = p;
    g->graph = berth_graph_get(p->module, function);
    g->label = berth_arena_new_array(p->scratch, uint32_t, g->graph->values.count);
    p->user = g;
    print_params(g, &g->graph->regions.data[0]);
}

void berth_text__print_graph_body(berth_text_printer *p, berth_func_id function) {
    (void)function;
    print_region(p->user, 0);
}
