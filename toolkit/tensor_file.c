#include "toolkit/tensor_file.h"

#include <string.h>

#include "base/file.h"
#include "base/tensor_proto.h"
#include "base/wire_writer.h"
#include "toolkit/npy.h"

typedef struct call {
    berth_arena *arena;
    const char *path;
    const void *data;
    size_t size_bytes;
    berth_tensor *out_tensor;
    const char *name;
    const berth_tensor *tensor;
} call;

// ---- reading ----

static berth_status parse_body(void *user) {
    call *c = user;
    if (berth_toolkit__npy_is(c->data, c->size_bytes))
        return berth_toolkit__npy_parse(c->arena, c->data, c->size_bytes, c->out_tensor);
    if (c->size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the tensor file is empty");
    berth_tensor_proto proto;
    berth_status status =
        berth_tensor_proto_parse(c->arena, berth_wire_make(c->data, c->size_bytes), false, &proto);
    if (status)
        return berth_status_prefix(status, "neither a .npy nor a readable TensorProto file");
    if (proto.external)
        return berth_status_make(BERTH_UNSUPPORTED, "the tensor's data is in another file (\"%s\")",
                                 proto.location);
    *c->out_tensor = proto.tensor;
    c->name = proto.name;
    return BERTH_OK;
}

berth_status berth_tensor_file_parse(berth_arena *arena, const void *data, size_t size_bytes,
                                     berth_tensor *out_tensor, const char **out_name) {
    *out_tensor = (berth_tensor){0};
    call c = {.arena = arena,
              .data = data,
              .size_bytes = size_bytes,
              .out_tensor = out_tensor,
              .name = ""};
    berth_status status = berth_arena_try(arena, parse_body, &c);
    if (out_name) *out_name = status ? NULL : c.name;
    return status;
}

berth_status berth_tensor_file_read(berth_arena *arena, const char *path, berth_tensor *out_tensor,
                                    const char **out_name) {
    *out_tensor = (berth_tensor){0};
    if (out_name) *out_name = NULL;
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    berth_status status =
        berth_tensor_file_parse(arena, mapping.data, mapping.size_bytes, out_tensor, out_name);
    berth_file_unmap(mapping);
    return berth_status_prefix(status, "\"%s\"", path);
}

// ---- writing ----

// All of a TensorProto but the bytes of raw_data, which come last; all of one of strings.
static berth_status proto_header(berth_strbuf *out, const char *name, const berth_tensor *tensor) {
    int32_t onnx_type = berth_dtype_to_onnx(tensor->dtype);
    if (onnx_type == 0)
        return berth_status_make(BERTH_UNSUPPORTED, "ONNX has no element type for %s",
                                 berth_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; ++d) berth_wire_put_int(out, 1, tensor->dims[d]);
    berth_wire_put_int(out, 2, onnx_type);
    if (name && *name) berth_wire_put_text(out, 8, name);
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        int64_t count = berth_tensor_element_count(tensor);
        for (int64_t i = 0; i < count; ++i) {
            berth_string string = berth_tensor_strings(tensor)[i];
            berth_wire_put_tag(out, 6, BERTH_WIRE_BYTES);
            berth_wire_put_varint(out, string.length);
            if (string.length) berth_strbuf_add_n(out, string.data, string.length);
        }
        return BERTH_OK;
    }
    berth_wire_put_tag(out, 9, BERTH_WIRE_BYTES);
    berth_wire_put_varint(out, berth_tensor_size_bytes(tensor));
    return BERTH_OK;
}

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text);
    size_t ending_length = strlen(ending);
    return length > ending_length && strcmp(text + length - ending_length, ending) == 0;
}

berth_status berth_tensor_file_check_name(const char *path) {
    if (ends_with(path, ".npy") || ends_with(path, ".pb")) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "\"%s\": a tensor file ends in .pb (ONNX) or .npy (NumPy)", path);
}

static berth_status write_body(void *user) {
    call *c = user;
    berth_strbuf header = berth_strbuf_make(c->arena);
    BERTH_TRY(berth_tensor_file_check_name(c->path));
    BERTH_TRY(berth_status_prefix(ends_with(c->path, ".npy")
                                      ? berth_toolkit__npy_header(&header, c->tensor)
                                      : proto_header(&header, c->name, c->tensor),
                                  "\"%s\"", c->path));
    bool strings = c->tensor->dtype == BERTH_DTYPE_STRING;  // which are in the header already
    const berth_file_part parts[] = {
        {header.data, header.length},
        {c->tensor->data, strings ? 0 : berth_tensor_size_bytes(c->tensor)}};
    return berth_file_write_parts(c->path, parts, 2);
}

berth_status berth_tensor_file_write(const char *path, const char *name,
                                     const berth_tensor *tensor) {
    call c = {.path = path, .name = name, .tensor = tensor};
    BERTH_TRY(berth_tensor_check(tensor));
    return berth_arena_scratch(write_body, &c, &c.arena);
}
