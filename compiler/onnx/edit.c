// Field numbers are those of onnx.proto3.
#include "compiler/onnx/edit.h"

#include <string.h>

#include "base/file.h"
#include "base/tensor_proto.h"
#include "base/wire_writer.h"

enum { MOST_BYTES = 0x7fffffff };  // of a protocol-buffer message

// ---- reading ------------------------------------------------------------------------------------

typedef struct reader {
    berth_arena *arena;
    berth_onnx_edit *model;
    berth_wire error;  // the first failed message
} reader;

static const char *text(reader *r, berth_wire *wire, const berth_wire_field *field) {
    if (!berth_wire_is(wire, field, BERTH_WIRE_BYTES)) return "";
    return berth_arena_strndup(r->arena, (const char *)field->data, field->size_bytes);
}

static void join(berth_wire *outer, const berth_wire *inner) {
    if (!inner->error || outer->error) return;
    outer->error = inner->error;
    outer->error_offset = inner->error_offset;
}

// The field that ends at the cursor and began at `start`, its tag included.
static berth_onnx_bytes whole(const berth_wire *wire, size_t start) {
    return (berth_onnx_bytes){wire->data + start, wire->at - start};
}

static berth_onnx_bytes content(berth_wire *wire, const berth_wire_field *field) {
    berth_onnx_bytes none = {0};
    if (!berth_wire_is(wire, field, BERTH_WIRE_BYTES)) return none;
    return (berth_onnx_bytes){field->data, field->size_bytes};
}

// AttributeProto: 6 = g, 11 = graphs.
static bool holds_graph(berth_onnx_bytes attr) {
    berth_wire wire = berth_wire_make(attr.data, attr.size_bytes);
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 6 || field.number == 11) return true;
    return false;
}

static void read_node(reader *r, berth_wire *outer, const berth_wire_field *message) {
    berth_wire wire = berth_wire_enter(outer, message);
    berth_onnx_node *node = berth_arena_new(r->arena, berth_onnx_node);
    node->name = node->op_type = node->domain = "";
    size_t start = 0;
    for (berth_wire_field field; berth_wire_next(&wire, &field); start = wire.at) {
        switch (field.number) {
        case 1: berth_vec_push(r->arena, &node->inputs, text(r, &wire, &field)); break;
        case 2: berth_vec_push(r->arena, &node->outputs, text(r, &wire, &field)); break;
        case 3: node->name = text(r, &wire, &field); break;
        case 4: node->op_type = text(r, &wire, &field); break;
        case 7: node->domain = text(r, &wire, &field); break;
        case 5:
            berth_vec_push(r->arena, &node->attrs, content(&wire, &field));
            node->has_graphs |= holds_graph(node->attrs.data[node->attrs.count - 1]);
            break;
        default: berth_vec_push(r->arena, &node->rest, whole(&wire, start)); break;
        }
    }
    if (strcmp(node->domain, "ai.onnx") == 0) node->domain = "";
    berth_vec_push(r->arena, &r->model->nodes, node);
    join(outer, &wire);
}

static void read_constant(reader *r, berth_wire *outer, const berth_wire_field *message) {
    berth_wire wire = berth_wire_enter(outer, message);
    berth_onnx_constant *constant = berth_arena_new(r->arena, berth_onnx_constant);
    constant->name = "";
    constant->arena = r->arena;
    constant->source = (berth_onnx_bytes){message->data, message->size_bytes};
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 8) constant->name = text(r, &wire, &field);
    berth_vec_push(r->arena, &r->model->constants, constant);
    join(outer, &wire);
}

static berth_onnx_port read_port(reader *r, berth_wire *outer, const berth_wire_field *message) {
    berth_wire wire = berth_wire_enter(outer, message);
    berth_onnx_port port = {"", {message->data, message->size_bytes}};
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 1) port.name = text(r, &wire, &field);
    join(outer, &wire);
    return port;
}

static void read_graph(reader *r, berth_wire *outer, const berth_wire_field *message) {
    berth_wire wire = berth_wire_enter(outer, message);
    berth_onnx_edit *model = r->model;
    size_t start = 0;
    for (berth_wire_field field; berth_wire_next(&wire, &field); start = wire.at) {
        switch (field.number) {
        case 1: read_node(r, &wire, &field); break;
        case 5: read_constant(r, &wire, &field); break;
        case 11: berth_vec_push(r->arena, &model->inputs, read_port(r, &wire, &field)); break;
        case 12: berth_vec_push(r->arena, &model->outputs, read_port(r, &wire, &field)); break;
        default: berth_vec_push(r->arena, &model->graph_rest, whole(&wire, start)); break;
        }
    }
    join(outer, &wire);
}

static void read_opset(reader *r, berth_wire *outer, const berth_wire_field *message) {
    berth_wire wire = berth_wire_enter(outer, message);
    berth_onnx_opset opset = {"", 0};
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 1) opset.domain = text(r, &wire, &field);
        if (field.number == 2) opset.version = (int64_t)field.value;
    }
    if (strcmp(opset.domain, "ai.onnx") == 0) opset.domain = "";
    berth_vec_push(r->arena, &r->model->opsets, opset);
    join(outer, &wire);
}

static void unmap(void *pointer) {
    berth_file_unmap(*(const berth_mapping *)pointer);
}

static berth_status map_file(berth_arena *arena, const char *path, berth_mapping **out_mapping) {
    *out_mapping = berth_arena_new(arena, berth_mapping);
    berth_arena_defer(arena, unmap, *out_mapping);
    return berth_file_map(path, *out_mapping);
}

static const char *folder_of(berth_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    return slash == path ? "/" : berth_arena_strndup(arena, path, (size_t)(slash - path));
}

berth_status berth_onnx_edit_read_memory(berth_arena *arena, const void *data, size_t size_bytes,
                                         const char *path, const char *folder,
                                         berth_onnx_edit **out_model) {
    *out_model = NULL;
    berth_onnx_edit *model = berth_arena_new(arena, berth_onnx_edit);
    model->arena = arena;
    model->path = berth_arena_strdup(arena, path);
    model->folder = folder ? berth_arena_strdup(arena, folder) : NULL;
    reader r = {.arena = arena, .model = model};
    berth_wire wire = berth_wire_make(data, size_bytes);
    bool has_graph = false;
    size_t start = 0;
    for (berth_wire_field field; berth_wire_next(&wire, &field); start = wire.at) {
        switch (field.number) {
        case 1:
            if (berth_wire_is(&wire, &field, BERTH_WIRE_VARINT))
                model->ir_version = (int64_t)field.value;
            break;
        case 7:
            if (has_graph) berth_wire_fail(&wire, "a model has two graphs");
            has_graph = true;
            read_graph(&r, &wire, &field);
            break;
        case 8: read_opset(&r, &wire, &field); break;
        default: berth_vec_push(arena, &model->model_rest, whole(&wire, start)); break;
        }
    }
    BERTH_TRY(berth_status_prefix(berth_wire_status(&wire), "\"%s\" is no ONNX model", path));
    if (!has_graph)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" is no ONNX model: it has no graph",
                                 path);
    *out_model = model;
    return BERTH_OK;
}

berth_status berth_onnx_edit_read(berth_arena *arena, const char *path,
                                  berth_onnx_edit **out_model) {
    berth_mapping *mapping = NULL;
    *out_model = NULL;
    BERTH_TRY(map_file(arena, path, &mapping));
    return berth_onnx_edit_read_memory(arena, mapping->data, mapping->size_bytes, path,
                                       folder_of(arena, path), out_model);
}

#define COPY_VEC(arena, to, from)                                                                  \
    do {                                                                                           \
        (to)->data = (from)->count ? berth_arena_copy((arena), (from)->data,                       \
                                                      (from)->count * sizeof(*(from)->data))       \
                                   : NULL;                                                         \
        (to)->count = (to)->capacity = (from)->count;                                              \
    } while (0)

berth_onnx_edit *berth_onnx_edit_copy(berth_arena *arena, const berth_onnx_edit *model) {
    berth_onnx_edit *copy = berth_arena_copy(arena, model, sizeof(*model));
    copy->arena = arena;
    COPY_VEC(arena, &copy->opsets, &model->opsets);
    COPY_VEC(arena, &copy->nodes, &model->nodes);
    COPY_VEC(arena, &copy->constants, &model->constants);
    COPY_VEC(arena, &copy->inputs, &model->inputs);
    COPY_VEC(arena, &copy->outputs, &model->outputs);
    for (uint32_t i = 0; i < copy->nodes.count; ++i) {
        const berth_onnx_node *from = copy->nodes.data[i];
        berth_onnx_node *node = berth_arena_copy(arena, from, sizeof(*from));
        COPY_VEC(arena, &node->inputs, &from->inputs);
        COPY_VEC(arena, &node->outputs, &from->outputs);
        COPY_VEC(arena, &node->attrs, &from->attrs);
        copy->nodes.data[i] = node;
    }
    return copy;
}

// ---- writing ------------------------------------------------------------------------------------

typedef BERTH_VEC(berth_onnx_bytes) parts_list;

typedef struct writer {
    berth_arena *arena;
    parts_list parts;
    size_t size_bytes;
} writer;

static void put(writer *w, const void *data, size_t size_bytes) {
    if (!size_bytes) return;
    berth_onnx_bytes part = {data, size_bytes};
    berth_vec_push(w->arena, &w->parts, part);
    w->size_bytes += size_bytes;
}

static void put_list(writer *w, const berth_onnx_byte_list *list) {
    for (uint32_t i = 0; i < list->count; ++i) put(w, list->data[i].data, list->data[i].size_bytes);
}

static void put_header(writer *w, uint32_t number, size_t size_bytes) {
    berth_strbuf header = berth_strbuf_make(w->arena);
    berth_wire_put_tag(&header, number, BERTH_WIRE_BYTES);
    berth_wire_put_varint(&header, size_bytes);
    put(w, header.data, header.length);
}

static void put_node(writer *w, const berth_onnx_node *node) {
    berth_strbuf body = berth_strbuf_make(w->arena);
    for (uint32_t i = 0; i < node->inputs.count; ++i)
        berth_wire_put_text(&body, 1, node->inputs.data[i]);
    for (uint32_t i = 0; i < node->outputs.count; ++i)
        berth_wire_put_text(&body, 2, node->outputs.data[i]);
    if (*node->name) berth_wire_put_text(&body, 3, node->name);
    berth_wire_put_text(&body, 4, node->op_type);
    for (uint32_t i = 0; i < node->attrs.count; ++i)
        berth_wire_put_bytes(&body, 5, node->attrs.data[i].data, node->attrs.data[i].size_bytes);
    if (*node->domain) berth_wire_put_text(&body, 7, node->domain);
    for (uint32_t i = 0; i < node->rest.count; ++i)
        berth_strbuf_add_n(&body, (const char *)node->rest.data[i].data,
                           node->rest.data[i].size_bytes);
    put_header(w, 1, body.length);
    put(w, body.data, body.length);
}

// TensorProto: 13 = external_data, 14 = data_location (1 = external).
static bool is_external(berth_onnx_bytes proto) {
    berth_wire wire = berth_wire_make(proto.data, proto.size_bytes);
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 14 && field.type == BERTH_WIRE_VARINT && field.value == 1) return true;
    return false;
}

static berth_status put_constant(writer *w, berth_onnx_edit *model, berth_onnx_constant *constant) {
    if (constant->source.data && !is_external(constant->source)) {
        put_header(w, 5, constant->source.size_bytes);
        put(w, constant->source.data, constant->source.size_bytes);
        return BERTH_OK;
    }
    const berth_tensor *tensor = NULL;
    BERTH_TRY(berth_onnx_edit_tensor(model, constant, &tensor));
    size_t data_bytes = berth_tensor_size_bytes(tensor);
    berth_strbuf head = berth_strbuf_make(w->arena);
    for (int d = 0; d < tensor->rank; ++d) berth_wire_put_int(&head, 1, tensor->dims[d]);
    berth_wire_put_int(&head, 2, berth_dtype_to_onnx(tensor->dtype));
    berth_wire_put_text(&head, 8, constant->name);
    berth_wire_put_tag(&head, 9, BERTH_WIRE_BYTES);
    berth_wire_put_varint(&head, data_bytes);
    put_header(w, 5, head.length + data_bytes);
    put(w, head.data, head.length);
    put(w, tensor->data, data_bytes);
    return BERTH_OK;
}

static berth_status put_graph(writer *w, berth_onnx_edit *model) {
    for (uint32_t i = 0; i < model->nodes.count; ++i) put_node(w, model->nodes.data[i]);
    for (uint32_t i = 0; i < model->constants.count; ++i)
        BERTH_TRY(put_constant(w, model, model->constants.data[i]));
    for (int output = 0; output < 2; ++output) {
        uint32_t count = output ? model->outputs.count : model->inputs.count;
        const berth_onnx_port *ports = output ? model->outputs.data : model->inputs.data;
        for (uint32_t i = 0; i < count; ++i) {
            put_header(w, output ? 12 : 11, ports[i].source.size_bytes);
            put(w, ports[i].source.data, ports[i].source.size_bytes);
        }
    }
    put_list(w, &model->graph_rest);
    return BERTH_OK;
}

berth_status berth_onnx_edit_write(berth_arena *arena, berth_onnx_edit *model,
                                   berth_onnx_bytes *out_bytes) {
    writer graph = {.arena = arena}, all = {.arena = arena};
    *out_bytes = (berth_onnx_bytes){0};
    BERTH_TRY(put_graph(&graph, model));
    berth_strbuf head = berth_strbuf_make(arena);
    berth_wire_put_int(&head, 1, model->ir_version);
    put(&all, head.data, head.length);
    put_list(&all, &model->model_rest);
    put_header(&all, 7, graph.size_bytes);
    for (uint32_t i = 0; i < graph.parts.count; ++i)
        put(&all, graph.parts.data[i].data, graph.parts.data[i].size_bytes);
    for (uint32_t i = 0; i < model->opsets.count; ++i) {
        berth_strbuf opset = berth_strbuf_make(arena);
        berth_wire_put_text(&opset, 1, model->opsets.data[i].domain);
        berth_wire_put_int(&opset, 2, model->opsets.data[i].version);
        put_header(&all, 8, opset.length);
        put(&all, opset.data, opset.length);
    }
    if (all.size_bytes > MOST_BYTES)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "\"%s\" would have %zu bytes in one file, ONNX files have at most "
                                 "2 GiB",
                                 model->path, all.size_bytes);
    uint8_t *data = berth_arena_alloc_unset(arena, all.size_bytes + 1, 16);
    size_t at = 0;
    for (uint32_t i = 0; i < all.parts.count; ++i) {
        memcpy(data + at, all.parts.data[i].data, all.parts.data[i].size_bytes);
        at += all.parts.data[i].size_bytes;
    }
    *out_bytes = (berth_onnx_bytes){data, at};
    return BERTH_OK;
}

// ---- nodes and constants ------------------------------------------------------------------------

berth_onnx_node *berth_onnx_edit_add(berth_onnx_edit *model, const char *op_type,
                                     const char *name) {
    berth_onnx_node *node = berth_arena_new(model->arena, berth_onnx_node);
    node->op_type = op_type;
    node->name = name;
    node->domain = "";
    berth_vec_push(model->arena, &model->nodes, node);
    return node;
}

void berth_onnx_edit_add_constant(berth_onnx_edit *model, const char *name,
                                  const berth_tensor *tensor) {
    berth_onnx_constant *constant = berth_arena_new(model->arena, berth_onnx_constant);
    *constant = (berth_onnx_constant){
        .name = name, .tensor = *tensor, .is_read = true, .arena = model->arena};
    berth_vec_push(model->arena, &model->constants, constant);
}

berth_onnx_constant *berth_onnx_edit_constant(const berth_onnx_edit *model, const char *name) {
    for (uint32_t i = 0; *name && i < model->constants.count; ++i)
        if (strcmp(model->constants.data[i]->name, name) == 0) return model->constants.data[i];
    return NULL;
}

void berth_onnx_edit_remove_constant(berth_onnx_edit *model, const char *name) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->constants.count; ++i)
        if (strcmp(model->constants.data[i]->name, name) != 0)
            model->constants.data[kept++] = model->constants.data[i];
    model->constants.count = kept;
    kept = 0;
    for (uint32_t i = 0; i < model->inputs.count; ++i)
        if (strcmp(model->inputs.data[i].name, name) != 0)
            model->inputs.data[kept++] = model->inputs.data[i];
    model->inputs.count = kept;
}

// ValueInfoProto: 1 = name.
uint32_t berth_onnx_edit_output(berth_onnx_edit *model, const char *name) {
    for (uint32_t i = 0; i < model->outputs.count; ++i)
        if (strcmp(model->outputs.data[i].name, name) == 0) return i;
    berth_strbuf value = berth_strbuf_make(model->arena);
    berth_wire_put_text(&value, 1, name);
    berth_onnx_port port = {name, {(const uint8_t *)value.data, value.length}};
    berth_vec_push(model->arena, &model->outputs, port);
    return model->outputs.count - 1;
}

static berth_status read_external(const berth_onnx_edit *model, berth_arena *arena,
                                  berth_tensor_proto *proto) {
    berth_tensor *tensor = &proto->tensor;
    const char *path = NULL;
    berth_mapping *mapping = NULL;
    size_t size = 0;
    if (berth_narrow_type_of(proto->element))
        return berth_status_make(BERTH_UNSUPPORTED, "external data of a type below 8 bits");
    BERTH_TRY(berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, NULL, &size));
    if (!model->folder)
        return berth_status_make(BERTH_UNSUPPORTED, "external data of a model in memory");
    BERTH_TRY(berth_file_below(arena, model->folder, proto->location ? proto->location : "",
                               "external data", &path));
    BERTH_TRY(map_file(arena, path, &mapping));
    if (proto->offset_bytes > mapping->size_bytes ||
        size > mapping->size_bytes - proto->offset_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "external data of %zu bytes at %llu exceeds \"%s\"", size,
                                 (unsigned long long)proto->offset_bytes, path);
    if (size) tensor->data = berth_arena_copy(arena, mapping->data + proto->offset_bytes, size);
    return BERTH_OK;
}

berth_status berth_onnx_edit_tensor(berth_onnx_edit *model, berth_onnx_constant *constant,
                                    const berth_tensor **out_tensor) {
    *out_tensor = &constant->tensor;
    if (constant->is_read) return BERTH_OK;
    berth_tensor_proto proto;
    berth_wire wire = berth_wire_make(constant->source.data, constant->source.size_bytes);
    berth_status status = berth_tensor_proto_parse(constant->arena, wire, true, &proto);
    if (!status && proto.external) status = read_external(model, constant->arena, &proto);
    BERTH_TRY(berth_status_prefix(status, "tensor \"%s\" in \"%s\"", constant->name, model->path));
    constant->tensor = berth_tensor_align(constant->arena, &proto.tensor);
    constant->is_read = true;
    return BERTH_OK;
}

int64_t berth_onnx_edit_opset(const berth_onnx_edit *model) {
    for (uint32_t i = 0; i < model->opsets.count; ++i)
        if (!*model->opsets.data[i].domain) return model->opsets.data[i].version;
    return 0;
}

void berth_onnx_edit_set_opset(berth_onnx_edit *model, int64_t version) {
    bool found = false;
    for (uint32_t i = 0; i < model->opsets.count; ++i) {
        if (*model->opsets.data[i].domain) continue;
        model->opsets.data[i].version = version;
        found = true;
    }
    berth_onnx_opset opset = {"", version};
    if (!found) berth_vec_push(model->arena, &model->opsets, opset);
}
