// Attributes of nodes of a model that is edited: AttributeProto 1 = name, 2 = f, 3 = i, 5 = t,
// 7 = floats, 8 = ints, 20 = type.
#include <string.h>

#include "base/wire_writer.h"
#include "compiler/onnx/edit.h"

static bool is_named(berth_onnx_bytes attr, const char *name) {
    berth_wire wire = berth_wire_make(attr.data, attr.size_bytes);
    for (berth_wire_field field; berth_wire_next(&wire, &field);)
        if (field.number == 1 && field.type == BERTH_WIRE_BYTES)
            return field.size_bytes == strlen(name) &&
                   memcmp(field.data, name, field.size_bytes) == 0;
    return false;
}

static const berth_onnx_bytes *find(const berth_onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attrs.count; ++i)
        if (is_named(node->attrs.data[i], name)) return &node->attrs.data[i];
    return NULL;
}

// The last field of an attribute with this number and wire type.
static bool find_field(const berth_onnx_node *node, const char *name, uint32_t number,
                       berth_wire_type type, berth_wire_field *out) {
    const berth_onnx_bytes *attr = find(node, name);
    bool found = false;
    if (!attr) return false;
    berth_wire wire = berth_wire_make(attr->data, attr->size_bytes);
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number != number || field.type != type) continue;
        *out = field;
        found = true;
    }
    return found;
}

bool berth_onnx_node_has(const berth_onnx_node *node, const char *attr) {
    return find(node, attr) != NULL;
}

int64_t berth_onnx_node_int(const berth_onnx_node *node, const char *attr, int64_t absent) {
    berth_wire_field field;
    return find_field(node, attr, 3, BERTH_WIRE_VARINT, &field) ? (int64_t)field.value : absent;
}

static float float_of(uint64_t bits) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof(value));
    return value;
}

double berth_onnx_node_float(const berth_onnx_node *node, const char *attr, double absent) {
    berth_wire_field field;
    return find_field(node, attr, 2, BERTH_WIRE_FIXED32, &field) ? (double)float_of(field.value)
                                                                 : absent;
}

// Elements of a repeated field, packed or one by one.
static int read_list(const berth_onnx_node *node, const char *name, uint32_t number,
                     berth_wire_type type, uint64_t *out, int most) {
    const berth_onnx_bytes *attr = find(node, name);
    int count = 0;
    if (!attr) return -1;
    berth_wire wire = berth_wire_make(attr->data, attr->size_bytes);
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number != number) continue;
        if (field.type == type) {
            if (count < most) out[count] = field.value;
            ++count;
            continue;
        }
        berth_wire packed = berth_wire_enter(&wire, &field);
        for (;;) {
            uint64_t value = 0;
            uint32_t bits = 0;
            if (!(type == BERTH_WIRE_VARINT ? berth_wire_varint(&packed, &value)
                                            : berth_wire_fixed32(&packed, &bits)))
                break;
            if (count < most) out[count] = type == BERTH_WIRE_VARINT ? value : bits;
            ++count;
        }
    }
    return count;
}

enum { MOST_LIST = 64 };

int berth_onnx_node_ints(const berth_onnx_node *node, const char *attr, int64_t *out, int most) {
    uint64_t bits[MOST_LIST];
    int count = read_list(node, attr, 8, BERTH_WIRE_VARINT, bits, MOST_LIST);
    for (int i = 0; i < count && i < most && i < MOST_LIST; ++i) out[i] = (int64_t)bits[i];
    return count;
}

int berth_onnx_node_floats(const berth_onnx_node *node, const char *attr, float *out, int most) {
    uint64_t bits[MOST_LIST];
    int count = read_list(node, attr, 7, BERTH_WIRE_FIXED32, bits, MOST_LIST);
    for (int i = 0; i < count && i < most && i < MOST_LIST; ++i) out[i] = float_of(bits[i]);
    return count;
}

void berth_onnx_node_remove(berth_onnx_node *node, const char *attr) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->attrs.count; ++i)
        if (!is_named(node->attrs.data[i], attr)) node->attrs.data[kept++] = node->attrs.data[i];
    node->attrs.count = kept;
}

void berth_onnx_node_set_int(berth_arena *arena, berth_onnx_node *node, const char *attr,
                             int64_t value) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_onnx_node_remove(node, attr);
    berth_wire_put_text(&out, 1, attr);
    berth_wire_put_int(&out, 3, value);
    berth_wire_put_int(&out, 20, 2);
    berth_onnx_bytes bytes = {(const uint8_t *)out.data, out.length};
    berth_vec_push(arena, &node->attrs, bytes);
}

bool berth_onnx_node_tensor(const berth_onnx_node *node, const char *attr,
                            berth_onnx_bytes *out_proto) {
    berth_wire_field field;
    if (!find_field(node, attr, 5, BERTH_WIRE_BYTES, &field)) return false;
    *out_proto = (berth_onnx_bytes){field.data, field.size_bytes};
    return true;
}

bool berth_onnx_node_is(const berth_onnx_node *node, const char *op_type) {
    return !*node->domain && strcmp(node->op_type, op_type) == 0;
}
