#include "toolkit/quantize/graph.h"

#include <string.h>

#include "base/wire.h"

static berth_quantize__value *enter(berth_arena *arena, berth_quantize__graph *graph,
                                    const char *name) {
    uint32_t id = berth_intern(graph->names, name);
    while (graph->values.count <= id)
        berth_vec_push(arena, &graph->values,
                       (berth_quantize__value){.producer = BERTH_QUANTIZE__NONE,
                                               .user = BERTH_QUANTIZE__NONE});
    graph->values.data[id].name = name;
    return &graph->values.data[id];
}

// Names that nodes of a GraphProto (1 = node: 1 = input, 5 = attribute: 6 = g) read.
static void pin_graph(berth_arena *arena, berth_quantize__graph *graph, berth_wire wire) {
    for (berth_wire_field node; berth_wire_next(&wire, &node);) {
        bool output = node.number == 12;
        if ((node.number != 1 && !output) || node.type != BERTH_WIRE_BYTES) continue;
        berth_wire inner = berth_wire_enter(&wire, &node);
        for (berth_wire_field field; berth_wire_next(&inner, &field);) {
            if (field.type != BERTH_WIRE_BYTES) continue;
            if (field.number == 1) {
                const char *name =
                    berth_arena_strndup(arena, (const char *)field.data, field.size_bytes);
                enter(arena, graph, name)->is_pinned = true;
            }
            if (field.number != 5 || output) continue;
            berth_wire attr = berth_wire_enter(&inner, &field);
            for (berth_wire_field part; berth_wire_next(&attr, &part);)
                if (part.number == 6 || part.number == 11)
                    pin_graph(arena, graph, berth_wire_enter(&attr, &part));
        }
    }
}

static void enter_node(berth_arena *arena, berth_quantize__graph *graph, uint32_t index) {
    const berth_onnx_node *node = graph->model->nodes.data[index];
    for (uint32_t i = 0; i < node->inputs.count; ++i) {
        berth_quantize__value *value = enter(arena, graph, node->inputs.data[i]);
        if (value->use_count++ == 0) value->user = index;
    }
    for (uint32_t i = 0; i < node->outputs.count; ++i)
        enter(arena, graph, node->outputs.data[i])->producer = index;
    for (uint32_t i = 0; node->has_graphs && i < node->attrs.count; ++i) {
        berth_wire attr = berth_wire_make(node->attrs.data[i].data, node->attrs.data[i].size_bytes);
        for (berth_wire_field part; berth_wire_next(&attr, &part);)
            if (part.number == 6 || part.number == 11)
                pin_graph(arena, graph, berth_wire_enter(&attr, &part));
    }
}

berth_quantize__graph berth_quantize__graph_make(berth_arena *arena, berth_onnx_edit *model) {
    berth_quantize__graph graph = {.model = model, .names = berth_interner_create(arena)};
    for (uint32_t i = 0; i < model->nodes.count; ++i) enter_node(arena, &graph, i);
    for (uint32_t i = 0; i < model->constants.count; ++i)
        enter(arena, &graph, model->constants.data[i]->name)->constant = model->constants.data[i];
    for (uint32_t i = 0; i < model->inputs.count; ++i)
        enter(arena, &graph, model->inputs.data[i].name)->is_input = true;
    for (uint32_t i = 0; i < model->outputs.count; ++i) {
        berth_quantize__value *value = enter(arena, &graph, model->outputs.data[i].name);
        value->is_output = value->is_pinned = true;
    }
    berth_quantize__value *nobody = enter(arena, &graph, "");  // left out inputs
    *nobody = (berth_quantize__value){
        .name = "", .producer = BERTH_QUANTIZE__NONE, .user = BERTH_QUANTIZE__NONE};
    return graph;
}

berth_quantize__value *berth_quantize__value_of(const berth_quantize__graph *graph,
                                                const char *name) {
    uint32_t id = 0;
    if (!berth_intern_find(graph->names, name, &id) || id >= graph->values.count) id = 0;
    return &graph->values.data[id];
}

berth_quantize__value *berth_quantize__input(const berth_quantize__graph *graph,
                                             const berth_onnx_node *node, uint32_t index) {
    return berth_quantize__value_of(graph,
                                    index < node->inputs.count ? node->inputs.data[index] : "");
}

berth_onnx_node *berth_quantize__only_user(const berth_quantize__graph *graph,
                                           const berth_onnx_node *node) {
    if (node->outputs.count == 0) return NULL;
    const berth_quantize__value *value = berth_quantize__value_of(graph, node->outputs.data[0]);
    if (value->is_pinned || value->use_count != 1) return NULL;
    return graph->model->nodes.data[value->user];
}

berth_status berth_quantize__constant(const berth_quantize__graph *graph,
                                      const berth_onnx_node *node, uint32_t index,
                                      const berth_tensor **out_tensor) {
    berth_quantize__value *value = berth_quantize__input(graph, node, index);
    *out_tensor = NULL;
    if (!value->constant) return BERTH_OK;
    BERTH_TRY(berth_onnx_edit_tensor(graph->model, value->constant, out_tensor));
    if ((*out_tensor)->dtype != BERTH_DTYPE_F32) *out_tensor = NULL;
    return BERTH_OK;
}

const char *berth_quantize__new_name(const berth_quantize__graph *graph, const char *stem,
                                     const char *suffix) {
    berth_arena *arena = graph->model->arena;
    const char *name = berth_arena_printf(arena, "%s_%s", stem, suffix);
    uint32_t id = 0;
    for (uint32_t n = 2; berth_intern_find(graph->names, name, &id); ++n)
        name = berth_arena_printf(arena, "%s_%s_%u", stem, suffix, n);
    berth_intern(graph->names, name);
    return name;
}

const char *berth_quantize__node_name(const berth_onnx_node *node) {
    if (*node->name) return node->name;
    return node->outputs.count ? node->outputs.data[0] : node->op_type;
}
