#include "base/tensor_proto.h"

#include <string.h>

// Field numbers of TensorProto.
enum {
    FIELD_DIMS = 1,
    FIELD_DATA_TYPE = 2,
    FIELD_FLOAT_DATA = 4,
    FIELD_INT32_DATA = 5,
    FIELD_STRING_DATA = 6,
    FIELD_INT64_DATA = 7,
    FIELD_NAME = 8,
    FIELD_RAW_DATA = 9,
    FIELD_DOUBLE_DATA = 10,
    FIELD_UINT64_DATA = 11,
    FIELD_EXTERNAL_DATA = 13,
    FIELD_DATA_LOCATION = 14,
    FIELD_LIMIT = 16,
};

// One row per type: ours, ONNX's number, the typed field that holds it.
static const struct {
    berth_dtype dtype;
    int32_t onnx;
    uint32_t field;
} types[] = {
    {BERTH_DTYPE_F32, 1, FIELD_FLOAT_DATA},   {BERTH_DTYPE_U8, 2, FIELD_INT32_DATA},
    {BERTH_DTYPE_I8, 3, FIELD_INT32_DATA},    {BERTH_DTYPE_U16, 4, FIELD_INT32_DATA},
    {BERTH_DTYPE_I16, 5, FIELD_INT32_DATA},   {BERTH_DTYPE_I32, 6, FIELD_INT32_DATA},
    {BERTH_DTYPE_I64, 7, FIELD_INT64_DATA},   {BERTH_DTYPE_BOOL, 9, FIELD_INT32_DATA},
    {BERTH_DTYPE_F16, 10, FIELD_INT32_DATA},  {BERTH_DTYPE_F64, 11, FIELD_DOUBLE_DATA},
    {BERTH_DTYPE_U32, 12, FIELD_UINT64_DATA}, {BERTH_DTYPE_U64, 13, FIELD_UINT64_DATA},
    {BERTH_DTYPE_BF16, 16, FIELD_INT32_DATA}, {BERTH_DTYPE_STRING, 8, FIELD_STRING_DATA},
};
enum { type_count = sizeof(types) / sizeof(types[0]) };

int32_t berth_dtype_to_onnx(berth_dtype dtype) {
    for (int i = 0; i < type_count; ++i)
        if (types[i].dtype == dtype) return types[i].onnx;
    return 0;
}

berth_dtype berth_dtype_from_onnx(int64_t onnx_type) {
    for (int i = 0; i < type_count; ++i)
        if (types[i].onnx == onnx_type) return types[i].dtype;
    return BERTH_DTYPE_NONE;
}

berth_dtype berth_storage_from_onnx(int64_t onnx_type) {
    const berth_narrow_type *narrow = berth_narrow_type_of(onnx_type);
    return narrow ? narrow->dtype : berth_dtype_from_onnx(onnx_type);
}

static uint32_t typed_field(berth_dtype dtype) {
    for (int i = 0; i < type_count; ++i)
        if (types[i].dtype == dtype) return types[i].field;
    return 0;
}

// Bytes per element of a typed field in packed form; 0 = varints.
static size_t packed_bytes(uint32_t field) {
    return field == FIELD_FLOAT_DATA ? 4 : field == FIELD_DOUBLE_DATA ? 8 : 0;
}

static bool is_typed(uint32_t field) {
    return field == FIELD_FLOAT_DATA || field == FIELD_INT32_DATA || field == FIELD_INT64_DATA ||
           field == FIELD_DOUBLE_DATA || field == FIELD_UINT64_DATA;
}

// ---- first walk: everything but the typed elements, which are counted ----

typedef struct message {
    berth_arena *arena;
    berth_tensor_proto *proto;
    int64_t onnx_type;
    const uint8_t *raw;
    size_t raw_bytes;
    bool has_raw;
    uint64_t counts[FIELD_LIMIT];  // elements per typed field
} message;

static void add_dim(message *m, berth_wire *wire, uint64_t extent) {
    berth_tensor *tensor = &m->proto->tensor;
    if (tensor->rank == BERTH_MAX_RANK)
        berth_wire_fail(wire, "a tensor has more than 8 dimensions");
    else
        tensor->dims[tensor->rank++] = (int64_t)extent;
}

static void read_dims(message *m, berth_wire *wire, const berth_wire_field *field) {
    if (field->type == BERTH_WIRE_VARINT) {
        add_dim(m, wire, field->value);
        return;
    }
    berth_wire packed = berth_wire_enter(wire, field);
    for (uint64_t extent; berth_wire_varint(&packed, &extent);) add_dim(m, &packed, extent);
    if (packed.error) berth_wire_fail(wire, packed.error);
}

static void count_elements(message *m, berth_wire *wire, const berth_wire_field *field) {
    size_t element_bytes = packed_bytes(field->number);
    if (field->type != BERTH_WIRE_BYTES) {
        m->counts[field->number]++;
    } else if (element_bytes) {
        if (field->size_bytes % element_bytes)
            berth_wire_fail(wire, "packed numbers end in the middle of one");
        m->counts[field->number] += field->size_bytes / element_bytes;
    } else {
        for (size_t i = 0; i < field->size_bytes; ++i)
            m->counts[field->number] += field->data[i] < 0x80;
    }
}

static uint64_t decimal(const berth_wire_field *text, berth_wire *wire) {
    uint64_t value = 0;
    for (size_t i = 0; i < text->size_bytes; ++i) {
        uint8_t digit = (uint8_t)(text->data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            berth_wire_fail(wire, "an external data offset or length is not a number");
            return 0;
        }
    }
    return value;
}

static bool text_is(const berth_wire_field *field, const char *text) {
    return field->size_bytes == strlen(text) && memcmp(field->data, text, field->size_bytes) == 0;
}

// One StringStringEntryProto of external_data: key = 1, value = 2.
static void read_external(message *m, berth_wire *wire, const berth_wire_field *entry) {
    berth_wire inner = berth_wire_enter(wire, entry);
    berth_wire_field key = {0};
    berth_wire_field value = {0};
    for (berth_wire_field field; berth_wire_next(&inner, &field);) {
        if (field.number == 1 && berth_wire_is(&inner, &field, BERTH_WIRE_BYTES)) key = field;
        if (field.number == 2 && berth_wire_is(&inner, &field, BERTH_WIRE_BYTES)) value = field;
    }
    if (inner.error) {
        berth_wire_fail(wire, inner.error);
    } else if (key.data && text_is(&key, "location")) {
        m->proto->location =
            berth_arena_strndup(m->arena, (const char *)value.data, value.size_bytes);
    } else if (key.data && text_is(&key, "offset")) {
        m->proto->offset_bytes = decimal(&value, wire);
    } else if (key.data && text_is(&key, "length")) {
        m->proto->length_bytes = decimal(&value, wire);
    }
}

static void read_field(message *m, berth_wire *wire, const berth_wire_field *field) {
    switch (field->number) {
    case FIELD_DIMS: read_dims(m, wire, field); break;
    case FIELD_DATA_TYPE:
        if (berth_wire_is(wire, field, BERTH_WIRE_VARINT)) m->onnx_type = (int64_t)field->value;
        break;
    case FIELD_NAME:
        if (berth_wire_is(wire, field, BERTH_WIRE_BYTES))
            m->proto->name =
                berth_arena_strndup(m->arena, (const char *)field->data, field->size_bytes);
        break;
    case FIELD_RAW_DATA:
        if (!berth_wire_is(wire, field, BERTH_WIRE_BYTES)) break;
        m->raw = field->data;
        m->raw_bytes = field->size_bytes;
        m->has_raw = true;
        break;
    case FIELD_STRING_DATA:
        if (berth_wire_is(wire, field, BERTH_WIRE_BYTES)) m->counts[FIELD_STRING_DATA]++;
        break;
    case FIELD_EXTERNAL_DATA: read_external(m, wire, field); break;
    case FIELD_DATA_LOCATION:
        if (berth_wire_is(wire, field, BERTH_WIRE_VARINT)) m->proto->external = field->value == 1;
        break;
    default:
        if (is_typed(field->number)) count_elements(m, wire, field);
    }
}

// ---- second walk: typed elements ----

// Stores the bits of element `index`; false when the value does not fit the type.
static bool store(berth_tensor *tensor, int64_t index, uint64_t bits) {
    int64_t value = (int64_t)bits;
    uint8_t *at = (uint8_t *)tensor->data + (size_t)index * berth_dtype_size_bytes(tensor->dtype);
    bool fits = true;
    switch (tensor->dtype) {
    case BERTH_DTYPE_I8: fits = value >= INT8_MIN && value <= INT8_MAX; break;
    case BERTH_DTYPE_I16: fits = value >= INT16_MIN && value <= INT16_MAX; break;
    case BERTH_DTYPE_I32: fits = value >= INT32_MIN && value <= INT32_MAX; break;
    case BERTH_DTYPE_U8: fits = bits <= UINT8_MAX; break;
    case BERTH_DTYPE_BOOL: fits = bits <= 1; break;
    case BERTH_DTYPE_U16:
    case BERTH_DTYPE_F16:
    case BERTH_DTYPE_BF16: fits = bits <= UINT16_MAX; break;
    case BERTH_DTYPE_U32:
    case BERTH_DTYPE_F32: fits = bits <= UINT32_MAX; break;
    default: break;
    }
    memcpy(at, &bits, berth_dtype_size_bytes(tensor->dtype));  // little endian
    return fits;
}

static bool next_packed(berth_wire *packed, size_t element_bytes, uint64_t *out_bits) {
    if (element_bytes == 8) return berth_wire_fixed64(packed, out_bits);
    if (element_bytes == 0) return berth_wire_varint(packed, out_bits);
    uint32_t bits = 0;
    if (!berth_wire_fixed32(packed, &bits)) return false;
    *out_bits = bits;
    return true;
}

static berth_status bad_element(int64_t index, berth_dtype dtype) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "element %lld does not fit %s",
                             (long long)index, berth_dtype_name(dtype));
}

static berth_status read_elements(berth_wire wire, berth_tensor *tensor, uint32_t number) {
    size_t element_bytes = packed_bytes(number);
    berth_wire_type single = element_bytes == 4   ? BERTH_WIRE_FIXED32
                             : element_bytes == 8 ? BERTH_WIRE_FIXED64
                                                  : BERTH_WIRE_VARINT;
    int64_t index = 0;
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        if (field.type != BERTH_WIRE_BYTES) {
            if (!berth_wire_is(&wire, &field, single)) break;
            if (!store(tensor, index, field.value)) return bad_element(index, tensor->dtype);
            index++;
            continue;
        }
        berth_wire packed = berth_wire_enter(&wire, &field);
        for (uint64_t bits; next_packed(&packed, element_bytes, &bits); ++index)
            if (!store(tensor, index, bits)) return bad_element(index, tensor->dtype);
        BERTH_TRY(berth_wire_status(&packed));
    }
    return berth_wire_status(&wire);
}

// ---- content ----

static berth_status take_raw(const message *m, size_t size_bytes, bool borrow) {
    berth_tensor *tensor = &m->proto->tensor;
    if (m->raw_bytes != size_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the raw data has %zu bytes; the shape needs %zu", m->raw_bytes,
                                 size_bytes);
    if (borrow) {
        union {
            const void *constant;
            void *mutable_pointer;
        } raw = {.constant = m->raw};
        tensor->data = raw.mutable_pointer;  // the header forbids writing
        return BERTH_OK;
    }
    tensor->data = berth_arena_alloc_unset(m->arena, size_bytes, 64);
    if (size_bytes) memcpy(tensor->data, m->raw, size_bytes);
    return BERTH_OK;
}

static berth_status take_typed(const message *m, berth_wire wire, int64_t element_count,
                               size_t size_bytes) {
    berth_tensor *tensor = &m->proto->tensor;
    uint32_t number = typed_field(tensor->dtype);
    if (m->counts[number] != (uint64_t)element_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the tensor holds %llu elements; its shape needs %lld",
                                 (unsigned long long)m->counts[number], (long long)element_count);
    tensor->data = berth_arena_alloc_aligned(m->arena, size_bytes, 64);
    return read_elements(wire, tensor, number);
}

// Strings are fields of their own, one each.
static berth_status take_strings(const message *m, berth_wire wire, int64_t element_count,
                                 bool borrow) {
    berth_tensor *tensor = &m->proto->tensor;
    if (m->proto->external || m->has_raw)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "strings cannot be %s: ONNX has them in string_data",
                                 m->proto->external ? "in another file" : "raw data");
    if (m->counts[FIELD_STRING_DATA] != (uint64_t)element_count)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "the tensor holds %llu strings; its shape needs %lld",
            (unsigned long long)m->counts[FIELD_STRING_DATA], (long long)element_count);
    *tensor = berth_tensor_create(m->arena, tensor->dtype, tensor->rank, tensor->dims);
    berth_string *next = tensor->data;
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number != FIELD_STRING_DATA) continue;
        berth_string string = {(const char *)field.data, field.size_bytes};
        *next++ = borrow ? string : berth_string_copy(m->arena, string);
    }
    return berth_wire_status(&wire);
}

// Elements of fewer than 8 bits: packed bytes, raw or one per entry of int32_data.
static berth_status take_packed(const message *m, berth_wire wire, const berth_narrow_type *narrow,
                                int64_t element_count) {
    int per_byte = 8 / narrow->bits;
    int64_t bytes = element_count / per_byte + (element_count % per_byte != 0);
    berth_tensor packed = {.dtype = BERTH_DTYPE_U8, .rank = 1, .dims = {bytes}};
    message as_bytes = *m;
    berth_tensor_proto held = {.tensor = packed};
    as_bytes.proto = &held;
    if (m->has_raw)
        BERTH_TRY(take_raw(&as_bytes, (size_t)bytes, true));
    else
        BERTH_TRY(take_typed(&as_bytes, wire, bytes, (size_t)bytes));
    berth_tensor *tensor = &m->proto->tensor;
    tensor->data = berth_arena_alloc_unset(m->arena, (size_t)element_count, 64);
    berth_narrow_unpack(narrow, held.tensor.data, element_count, tensor->data);
    return BERTH_OK;
}

berth_status berth_tensor_proto_parse(berth_arena *arena, berth_wire wire, bool borrow,
                                      berth_tensor_proto *out_proto) {
    *out_proto = (berth_tensor_proto){.name = "", .location = ""};
    message m = {.arena = arena, .proto = out_proto};
    berth_wire walk = wire;
    for (berth_wire_field field; berth_wire_next(&walk, &field);) read_field(&m, &walk, &field);
    BERTH_TRY(berth_wire_status(&walk));
    berth_tensor *tensor = &out_proto->tensor;
    const berth_narrow_type *narrow = berth_narrow_type_of(m.onnx_type);
    tensor->dtype = berth_storage_from_onnx(m.onnx_type);
    if (tensor->dtype == BERTH_DTYPE_NONE)
        return berth_status_make(BERTH_UNSUPPORTED, "tensor \"%s\" has ONNX element type %lld",
                                 out_proto->name, (long long)m.onnx_type);
    out_proto->element = (int32_t)m.onnx_type;
    int64_t element_count = 0;
    size_t size_bytes = 0;
    berth_status status = berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims,
                                                 &element_count, &size_bytes);
    if (!status && tensor->dtype == BERTH_DTYPE_STRING)
        status = take_strings(&m, wire, element_count, borrow);
    else if (!status && !out_proto->external && narrow && narrow->bits < 8)
        status = take_packed(&m, wire, narrow, element_count);
    else if (!status && !out_proto->external)
        status = m.has_raw ? take_raw(&m, size_bytes, borrow)
                           : take_typed(&m, wire, element_count, size_bytes);
    return berth_status_prefix(status, "tensor \"%s\"", out_proto->name);
}
