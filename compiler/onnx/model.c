// Field numbers are those of onnx.proto3 (github.com/onnx/onnx, release 1.16).
#include "compiler/onnx/model.h"

#include <string.h>

typedef struct parser {
    berth_arena *arena;
    berth_limit_watch nodes;
    uint64_t graph_depth, most_graph_depth;
    berth_status over;  // a limit
} parser;

static void parse_graph(parser *p, berth_wire *wire, onnx_graph *out);

static const char *text(parser *p, berth_wire *wire, const berth_wire_field *field) {
    if (!berth_wire_is(wire, field, BERTH_WIRE_BYTES)) return "";
    if (field->size_bytes && memchr(field->data, 0, field->size_bytes))
        berth_wire_fail(wire, "a name or an attribute's text has a zero byte inside");
    return berth_arena_strndup(p->arena, (const char *)field->data, field->size_bytes);
}

static int64_t integer(berth_wire *wire, const berth_wire_field *field) {
    return berth_wire_is(wire, field, BERTH_WIRE_VARINT) ? (int64_t)field->value : 0;
}

// A failure of a message inside fails the one around it, with the position of the inner one.
static void join(berth_wire *outer, const berth_wire *inner) {
    if (!inner->error || outer->error) return;
    outer->error = inner->error;
    outer->error_offset = inner->error_offset;
}

static double float_bits(uint64_t bits) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof(value));
    return (double)value;
}

// ---- attributes ----

static void parse_floats(parser *p, berth_wire *wire, const berth_wire_field *field,
                         onnx_attr *attr) {
    if (field->type == BERTH_WIRE_FIXED32) {
        berth_vec_push(p->arena, &attr->floats, float_bits(field->value));
        return;
    }
    berth_wire packed = berth_wire_enter(wire, field);
    for (uint32_t bits; berth_wire_fixed32(&packed, &bits);)
        berth_vec_push(p->arena, &attr->floats, float_bits(bits));
    join(wire, &packed);
}

static void parse_ints(parser *p, berth_wire *wire, const berth_wire_field *field,
                       onnx_attr *attr) {
    if (field->type == BERTH_WIRE_VARINT) {
        berth_vec_push(p->arena, &attr->ints, (int64_t)field->value);
        return;
    }
    berth_wire packed = berth_wire_enter(wire, field);
    for (uint64_t bits; berth_wire_varint(&packed, &bits);)
        berth_vec_push(p->arena, &attr->ints, (int64_t)bits);
    join(wire, &packed);
}

static void parse_attr_graph(parser *p, berth_wire *wire, const berth_wire_field *field,
                             onnx_attr *attr) {
    berth_wire inner = berth_wire_enter(wire, field);
    onnx_graph *graph = berth_arena_new(p->arena, onnx_graph);
    if (++p->graph_depth > p->most_graph_depth)
        berth_wire_fail(&inner, berth_arena_printf(p->arena, "graphs are nested more than %d deep",
                                                   (int)p->most_graph_depth));
    else
        parse_graph(p, &inner, graph);
    p->graph_depth--;
    attr->graph = graph;
    join(wire, &inner);
}

// Models of IR version 1 have no type field: it is what is there.
static onnx_attr_type guess_type(const onnx_attr *attr, uint32_t seen) {
    if (seen & 1u << 5) return ONNX_ATTR_TENSOR;
    if (attr->graph) return ONNX_ATTR_GRAPH;
    if (attr->floats.count) return ONNX_ATTR_FLOATS;
    if (attr->ints.count) return ONNX_ATTR_INTS;
    if (attr->strings.count) return ONNX_ATTR_STRINGS;
    if (seen & 1u << 2) return ONNX_ATTR_FLOAT;
    if (seen & 1u << 4) return ONNX_ATTR_STRING;
    return seen & 1u << 3 ? ONNX_ATTR_INT : ONNX_ATTR_UNDEFINED;
}

static void parse_attr(parser *p, berth_wire *outer, const berth_wire_field *message,
                       onnx_attr *attr) {
    berth_wire wire = berth_wire_enter(outer, message);
    uint32_t seen = 0;
    attr->name = attr->reference = attr->s = "";
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number < 32) seen |= 1u << field.number;
        switch (field.number) {
        case 1: attr->name = text(p, &wire, &field); break;
        case 2:
            attr->f =
                berth_wire_is(&wire, &field, BERTH_WIRE_FIXED32) ? float_bits(field.value) : 0;
            break;
        case 3: attr->i = integer(&wire, &field); break;
        case 4: attr->s = text(p, &wire, &field); break;
        case 5:
        case 22: attr->tensor = berth_wire_enter(&wire, &field); break;
        case 6: parse_attr_graph(p, &wire, &field, attr); break;
        case 7: parse_floats(p, &wire, &field, attr); break;
        case 8: parse_ints(p, &wire, &field, attr); break;
        case 9: berth_vec_push(p->arena, &attr->strings, text(p, &wire, &field)); break;
        case 20: attr->type = (onnx_attr_type)integer(&wire, &field); break;
        case 21: attr->reference = text(p, &wire, &field); break;
        default: break;
        }
    }
    if (attr->type == ONNX_ATTR_UNDEFINED) attr->type = guess_type(attr, seen);
    if (attr->type == ONNX_ATTR_GRAPH && !attr->graph && !*attr->reference)
        berth_wire_fail(&wire, "a graph attribute holds no graph");
    join(outer, &wire);
}

// ---- nodes ----

static void parse_node(parser *p, berth_wire *outer, const berth_wire_field *message,
                       uint32_t index, onnx_node *node) {
    berth_wire wire = berth_wire_enter(outer, message);
    node->name = node->op_type = node->domain = node->overload = "";
    if (!p->over) p->over = berth_limit_item(&p->nodes);
    if (p->over) berth_wire_fail(&wire, berth_status_message(p->over));
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        switch (field.number) {
        case 1: berth_vec_push(p->arena, &node->inputs, text(p, &wire, &field)); break;
        case 2: berth_vec_push(p->arena, &node->outputs, text(p, &wire, &field)); break;
        case 3: node->name = text(p, &wire, &field); break;
        case 4: node->op_type = text(p, &wire, &field); break;
        case 5: {
            onnx_attr attr = {0};
            parse_attr(p, &wire, &field, &attr);
            berth_vec_push(p->arena, &node->attrs, attr);
            break;
        }
        case 7: node->domain = text(p, &wire, &field); break;
        case 8: node->overload = text(p, &wire, &field); break;
        default: break;
        }
    }
    if (strcmp(node->domain, "ai.onnx") == 0) node->domain = "";
    if (!*node->name) node->name = berth_arena_printf(p->arena, "%s_%u", node->op_type, index);
    join(outer, &wire);
}

static void push_node(parser *p, berth_wire *wire, const berth_wire_field *field,
                      onnx_graph *graph) {
    onnx_node node = {0};
    parse_node(p, wire, field, graph->nodes.count, &node);
    berth_vec_push(p->arena, &graph->nodes, node);
}

// ---- values ----

static void parse_dim(parser *p, berth_wire *outer, const berth_wire_field *message,
                      onnx_value *value) {
    berth_wire wire = berth_wire_enter(outer, message);
    onnx_dim dim = {.param = ""};
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 1) {
            dim.extent = integer(&wire, &field);
            dim.known = true;
        } else if (field.number == 2) {
            dim.param = text(p, &wire, &field);
        }
    }
    if (dim.extent < 0) dim.known = false;  // exporters write -1, and the name "?", for any extent
    // "=" begins expressions of ours (ir/dim.h): such a name is none.
    if (strcmp(dim.param, "?") == 0 || *dim.param == '=') dim.param = "";
    berth_vec_push(p->arena, &value->dims, dim);
    join(outer, &wire);
}

static void parse_shape(parser *p, berth_wire *outer, const berth_wire_field *message,
                        onnx_value *value) {
    berth_wire wire = berth_wire_enter(outer, message);
    value->has_shape = true;
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 1) parse_dim(p, &wire, &field, value);
    join(outer, &wire);
}

static void parse_tensor_type(parser *p, berth_wire *outer, const berth_wire_field *message,
                              onnx_value *value) {
    berth_wire wire = berth_wire_enter(outer, message);
    value->is_tensor = true;
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 1) value->element = integer(&wire, &field);
        if (field.number == 2) parse_shape(p, &wire, &field, value);
    }
    join(outer, &wire);
}

// TypeProto: 4 a sequence, 5 a map, 9 an optional value; inside, a TypeProto again as field 1.
static onnx_value_kind kind_of_type(berth_wire *outer, const berth_wire_field *message) {
    bool tensor = false, sequence = false, map = false;
    berth_wire wire = berth_wire_enter(outer, message);
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number != 1) continue;
        berth_wire element = berth_wire_enter(&wire, &field);
        for (berth_wire_field inner; berth_wire_next(&element, &inner);) {
            tensor |= inner.number == 1;
            sequence |= inner.number == 4;
            map |= inner.number == 5;
        }
        join(&wire, &element);
    }
    join(outer, &wire);
    if (message->number == 4 && tensor) return ONNX_VALUE_SEQUENCE;
    if (message->number == 9 && tensor) return ONNX_VALUE_OPTIONAL;
    if (message->number == 9 && sequence) return ONNX_VALUE_OPTIONAL_SEQUENCE;
    if (message->number == 4 && map) return ONNX_VALUE_MAPS;
    if (message->number == 5) return ONNX_VALUE_MAP;
    return ONNX_VALUE_OTHER;
}

static void parse_value(parser *p, berth_wire *outer, const berth_wire_field *message,
                        onnx_value *value) {
    berth_wire wire = berth_wire_enter(outer, message);
    value->name = "";
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 1) value->name = text(p, &wire, &field);
        if (field.number != 2) continue;
        berth_wire type = berth_wire_enter(&wire, &field);
        for (berth_wire_field inner; berth_wire_next(&type, &inner);) {
            value->has_type = value->has_type || inner.number != 6;  // a denotation
            if (inner.number == 1) parse_tensor_type(p, &type, &inner, value);
            if (inner.number != 1 && inner.number != 6) value->kind = kind_of_type(&type, &inner);
        }
        join(&wire, &type);
    }
    join(outer, &wire);
}

// ---- graphs, functions, model ----

static void parse_graph(parser *p, berth_wire *wire, onnx_graph *graph) {
    graph->name = "";
    for (berth_wire_field field; berth_wire_next(wire, &field);) {
        onnx_value value = {0};
        switch (field.number) {
        case 1: push_node(p, wire, &field, graph); break;
        case 2: graph->name = text(p, wire, &field); break;
        case 5:
            berth_vec_push(p->arena, &graph->initializers, berth_wire_enter(wire, &field));
            break;
        case 11:
            parse_value(p, wire, &field, &value);
            berth_vec_push(p->arena, &graph->inputs, value);
            break;
        case 12:
            parse_value(p, wire, &field, &value);
            berth_vec_push(p->arena, &graph->outputs, value);
            break;
        case 13:
            parse_value(p, wire, &field, &value);
            berth_vec_push(p->arena, &graph->value_infos, value);
            break;
        case 15:
            berth_vec_push(p->arena, &graph->sparse_initializers, berth_wire_enter(wire, &field));
            break;
        default: break;
        }
    }
}

static void parse_opset(parser *p, berth_wire *outer, const berth_wire_field *message,
                        onnx_opsets *opsets) {
    berth_wire wire = berth_wire_enter(outer, message);
    onnx_opset opset = {.domain = ""};
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 1) opset.domain = text(p, &wire, &field);
        if (field.number == 2) opset.version = integer(&wire, &field);
    }
    if (strcmp(opset.domain, "ai.onnx") == 0) opset.domain = "";
    berth_vec_push(p->arena, opsets, opset);
    join(outer, &wire);
}

static void parse_function(parser *p, berth_wire *outer, const berth_wire_field *message,
                           onnx_function *function) {
    berth_wire wire = berth_wire_enter(outer, message);
    function->name = function->domain = function->overload = function->body.name = "";
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        switch (field.number) {
        case 1: function->name = text(p, &wire, &field); break;
        case 4: berth_vec_push(p->arena, &function->inputs, text(p, &wire, &field)); break;
        case 5: berth_vec_push(p->arena, &function->outputs, text(p, &wire, &field)); break;
        case 7: push_node(p, &wire, &field, &function->body); break;
        case 9: parse_opset(p, &wire, &field, &function->opsets); break;
        case 10: function->domain = text(p, &wire, &field); break;
        case 11: {
            onnx_attr attr = {0};
            parse_attr(p, &wire, &field, &attr);
            berth_vec_push(p->arena, &function->defaults, attr);
            break;
        }
        case 13: function->overload = text(p, &wire, &field); break;
        default: break;
        }
    }
    if (strcmp(function->domain, "ai.onnx") == 0) function->domain = "";
    join(outer, &wire);
}

berth_status onnx_model_parse(berth_arena *arena, const char *file, const void *data,
                              size_t size_bytes, const berth_limits *limits,
                              onnx_model *out_model) {
    parser p = {.arena = arena,
                .nodes = berth_limits_watch(limits, file, "nodes", ONNX_MAX_NODES),
                .most_graph_depth = berth_limits_depth(limits, ONNX_MAX_GRAPH_DEPTH)};
    berth_wire wire = berth_wire_make(data, size_bytes);
    *out_model = (onnx_model){0};
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        switch (field.number) {
        case 1: out_model->ir_version = integer(&wire, &field); break;
        case 7: {
            berth_wire graph = berth_wire_enter(&wire, &field);
            parse_graph(&p, &graph, &out_model->graph);
            out_model->has_graph = true;
            join(&wire, &graph);
            break;
        }
        case 8: parse_opset(&p, &wire, &field, &out_model->opsets); break;
        case 25: {
            onnx_function function = {0};
            parse_function(&p, &wire, &field, &function);
            berth_vec_push(arena, &out_model->functions, function);
            break;
        }
        default: break;
        }
    }
    return p.over ? p.over : berth_wire_status(&wire);
}

const onnx_attr *onnx_attr_find(const onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attrs.count; ++i)
        if (strcmp(node->attrs.data[i].name, name) == 0) return &node->attrs.data[i];
    return NULL;
}

int64_t onnx_opset_version(const onnx_opsets *opsets, const char *domain) {
    for (uint32_t i = 0; i < opsets->count; ++i)
        if (strcmp(opsets->data[i].domain, domain) == 0) return opsets->data[i].version;
    return 0;
}
