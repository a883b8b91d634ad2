// Literals of the model: TensorProto and SparseTensorProto, with content in the file or beside it.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/onnx/importer.h"

#define MIN_BORROWED_BYTES ((size_t)16 << 10)  // below, a copy costs less than anything else
#define MAX_SPARSE_BYTES ((size_t)1 << 30)  // a few indices must not ask for any amount of memory

// ---- external data ----

static void unmap(void *pointer) {
    berth_mapping *mapping = pointer;
    berth_file_unmap(*mapping);
}

static berth_status map_external(onnx_importer *im, const char *location,
                                 const onnx_mapped_file **out_file) {
    for (uint32_t i = 0; i < im->mapped.count; ++i) {
        if (strcmp(im->mapped.data[i].path, location) == 0) {
            *out_file = &im->mapped.data[i];
            return BERTH_OK;
        }
    }
    if (!im->folder)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "external data \"%s\" in a model that is not read from a file",
                                 location);
    const char *path = NULL;
    BERTH_TRY(berth_file_below(im->scratch, im->folder, location, "external data", &path));
    berth_mapping *mapping = berth_arena_new(im->arena, berth_mapping);
    berth_arena_defer(im->arena, unmap,
                      mapping);  // before mapping: deferring may run out of memory
    BERTH_TRY(berth_file_map(path, mapping));
    berth_vec_push(im->arena, &im->mapped,
                   (onnx_mapped_file){
                       .path = location, .data = mapping->data, .size_bytes = mapping->size_bytes});
    *out_file = &im->mapped.data[im->mapped.count - 1];
    return BERTH_OK;
}

static berth_status read_external(onnx_importer *im, berth_tensor_proto *proto) {
    berth_tensor *tensor = &proto->tensor;
    const onnx_mapped_file *file = NULL;
    const berth_narrow_type *narrow = berth_narrow_type_of(proto->element);
    bool packed = narrow && narrow->bits < 8;
    int64_t count = 0;
    size_t size = 0;
    BERTH_TRY(berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &count, &size));
    if (packed) {
        size_t per_byte = 8u / (unsigned)narrow->bits;
        size = size / per_byte + (size % per_byte != 0);
    }
    BERTH_TRY(map_external(im, proto->location ? proto->location : "", &file));
    if (proto->length_bytes && proto->length_bytes != size)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "external data has %llu bytes, the shape needs %zu",
                                 (unsigned long long)proto->length_bytes, size);
    if (proto->offset_bytes > file->size_bytes || size > file->size_bytes - proto->offset_bytes)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "external data of %zu bytes at %llu exceeds \"%s\" (%zu bytes)",
            size, (unsigned long long)proto->offset_bytes, proto->location, file->size_bytes);
    if (!size) return BERTH_OK;
    const uint8_t *data = file->data + proto->offset_bytes;
    if (packed) {
        tensor->data = berth_arena_alloc_unset(im->arena, (size_t)count, 64);
        berth_narrow_unpack(narrow, data, count, tensor->data);
        return BERTH_OK;
    }
    memcpy(&tensor->data, &data, sizeof(data));  // borrowed, never written
    return BERTH_OK;
}

static berth_status in_tensor(const onnx_importer *im, const berth_tensor_proto *proto,
                              berth_status status) {
    return berth_status_prefix(status, "tensor \"%s\" in %s", proto->name, im->file);
}

berth_status onnx_parse_tensor(onnx_importer *im, const berth_wire *wire,
                               berth_tensor_proto *out_proto) {
    *out_proto = (berth_tensor_proto){.name = ""};
    berth_status status = berth_tensor_proto_parse(im->arena, *wire, true, out_proto);
    if (!out_proto->name) out_proto->name = "";
    im->element_read = out_proto->element;
    return in_tensor(im, out_proto, status);
}

berth_status onnx_read_content(onnx_importer *im, berth_tensor_proto *proto,
                               berth_tensor *out_tensor) {
    if (proto->external) BERTH_TRY(in_tensor(im, proto, read_external(im, proto)));
    bool large = berth_tensor_size_bytes(&proto->tensor) >= MIN_BORROWED_BYTES;
    *out_tensor = large ? proto->tensor : berth_tensor_align(im->arena, &proto->tensor);
    return BERTH_OK;
}

berth_status onnx_read_constant(onnx_importer *im, const berth_wire *wire, berth_tensor *out_tensor,
                                const char **out_name) {
    berth_tensor_proto proto;
    *out_tensor = (berth_tensor){0};
    if (out_name) *out_name = "";
    BERTH_TRY(onnx_parse_tensor(im, wire, &proto));
    BERTH_TRY(onnx_read_content(im, &proto, out_tensor));
    if (out_name) *out_name = proto.name;
    return BERTH_OK;
}

berth_status onnx_read_tensor(onnx_importer *im, const berth_wire *wire, berth_tensor *out_tensor,
                              const char **out_name) {
    berth_tensor raw;
    *out_tensor = (berth_tensor){0};
    BERTH_TRY(onnx_read_constant(im, wire, &raw, out_name));
    *out_tensor = berth_tensor_align(im->arena, &raw);
    return BERTH_OK;
}

// ---- sparse tensors: made dense ----

// Indices are (count, rank) coordinates or (count) linear positions.
static berth_status scatter_sparse(const berth_tensor *values, const berth_tensor *indices,
                                   berth_tensor *dense) {
    int64_t count = berth_tensor_element_count(values);
    int64_t total = berth_tensor_element_count(dense);
    size_t size = berth_dtype_size_bytes(dense->dtype);
    bool linear = indices->rank == 1;
    if (indices->dtype != BERTH_DTYPE_I64 || values->rank != 1 ||
        (indices->rank != 1 && indices->rank != 2) || indices->dims[0] != count ||
        (!linear && indices->dims[1] != dense->rank))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a sparse tensor's indices do not fit its values and shape");
    for (int64_t i = 0; i < count; ++i) {
        int64_t at = 0;
        if (linear) {
            at = berth_tensor_get_i64(indices, i);
        } else {
            for (int d = 0; d < dense->rank; ++d) {
                int64_t coordinate = berth_tensor_get_i64(indices, i * dense->rank + d);
                if (coordinate < 0 || coordinate >= dense->dims[d])
                    return berth_status_make(BERTH_INVALID_ARGUMENT,
                                             "a sparse tensor's index is out of range");
                at = at * dense->dims[d] + coordinate;
            }
        }
        if (at < 0 || at >= total)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "a sparse tensor's index is out of range");
        memcpy((uint8_t *)dense->data + (size_t)at * size,
               (const uint8_t *)values->data + (size_t)i * size, size);
    }
    return BERTH_OK;
}

berth_status onnx_read_sparse_tensor(onnx_importer *im, const berth_wire *wire,
                                     berth_tensor *out_tensor, const char **out_name) {
    berth_wire cursor = *wire;
    berth_tensor values = {0};
    berth_tensor indices = {0};
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    size_t size = 0;
    *out_tensor = (berth_tensor){0};
    if (out_name) *out_name = "";
    for (berth_wire_field field; berth_wire_next(&cursor, &field);) {
        berth_wire inner = berth_wire_enter(&cursor, &field);
        if (field.number == 1) {
            BERTH_TRY(onnx_read_tensor(im, &inner, &values, out_name));
            if (berth_narrow_type_of(im->element_read))
                return berth_status_make(BERTH_UNSUPPORTED, "a sparse tensor of %s in %s",
                                         onnx_element_name(im->element_read), im->file);
        }
        if (field.number == 2) BERTH_TRY(onnx_read_tensor(im, &inner, &indices, NULL));
        if (field.number != 3) continue;
        uint64_t extent = field.value;
        if (field.type == BERTH_WIRE_VARINT) {
            if (rank == BERTH_MAX_RANK)
                berth_wire_fail(&cursor, "a tensor has more than 8 dimensions");
            else
                dims[rank++] = (int64_t)extent;
            continue;
        }
        while (berth_wire_varint(&inner, &extent)) {
            if (rank == BERTH_MAX_RANK)
                berth_wire_fail(&inner, "a tensor has more than 8 dimensions");
            else
                dims[rank++] = (int64_t)extent;
        }
        BERTH_TRY(berth_wire_status(&inner));
    }
    BERTH_TRY(berth_wire_status(&cursor));
    BERTH_TRY(berth_shape_size_bytes(values.dtype, rank, dims, NULL, &size));
    if (size > MAX_SPARSE_BYTES)
        return berth_status_make(BERTH_UNSUPPORTED, "a sparse tensor of %zu bytes when dense",
                                 size);
    *out_tensor = berth_tensor_create(im->arena, values.dtype, rank, dims);
    return berth_status_prefix(scatter_sparse(&values, &indices, out_tensor), "tensor \"%s\" in %s",
                               out_name ? *out_name : "", im->file);
}
