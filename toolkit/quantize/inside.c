// Layers inside of control flow: they stay float, and are listed so.
#include <math.h>
#include <string.h>

#include "base/wire.h"
#include "toolkit/quantize/state.h"

// What is inside of a node's graphs, whose attributes may hold graphs again: as deep as messages are
// nested (base/wire.h bounds that).
typedef struct finder {
    berth_quantize__state *state;
    const berth_onnx_node *outer;
} finder;

static const char *text_of(const finder *f, const berth_wire_field *field) {
    return berth_arena_strndup(f->state->arena, (const char *)field->data, field->size_bytes);
}

static void look_into_graph(const finder *f, berth_wire wire);

static void look_into_attribute(const finder *f, berth_wire attr) {
    for (berth_wire_field part; berth_wire_next(&attr, &part);)
        if ((part.number == 6 || part.number == 11) && part.type == BERTH_WIRE_BYTES)
            look_into_graph(f, berth_wire_enter(&attr, &part));
}

// NodeProto: 2 = output, 3 = name, 4 = op_type, 5 = attribute, 7 = domain.
static void look_into_node(const finder *f, berth_wire wire) {
    const char *name = "", *op = "", *domain = "", *output = "";
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.type != BERTH_WIRE_BYTES) continue;
        if (field.number == 2 && !*output) output = text_of(f, &field);
        if (field.number == 3) name = text_of(f, &field);
        if (field.number == 4) op = text_of(f, &field);
        if (field.number == 7) domain = text_of(f, &field);
        if (field.number == 5) look_into_attribute(f, berth_wire_enter(&wire, &field));
    }
    if (!berth_quantize__is_layer_type(op, domain)) return;
    berth_quantize__layer layer = {
        .name = *name ? name : output,
        .op = op,
        .output = "",
        .input = "",
        .weight_sqnr = NAN,
        .kept =
            berth_arena_printf(f->state->arena, "it is inside of control flow, node \"%s\" (%s)",
                               berth_quantize__node_name(f->outer), f->outer->op_type)};
    berth_vec_push(f->state->arena, &f->state->layers, layer);
}

static void look_into_graph(const finder *f, berth_wire wire) {
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 1 && field.type == BERTH_WIRE_BYTES)
            look_into_node(f, berth_wire_enter(&wire, &field));
}

void berth_quantize__find_inside(berth_quantize__state *state, const berth_onnx_node *node) {
    finder f = {state, node};
    for (uint32_t i = 0; node->has_graphs && i < node->attrs.count; ++i)
        look_into_attribute(
            &f, berth_wire_make(node->attrs.data[i].data, node->attrs.data[i].size_bytes));
}
