#include "compiler/cost/alike.h"

#include <string.h>

enum { MOST_KEY_BYTES = 1024, NUMBER_BYTES = 11 };

typedef struct key_text {
    char bytes[MOST_KEY_BYTES];
    size_t length;
    bool too_long;
} key_text;

// Six bits a byte, the last of a number marked; none is 0, as a key is text.
static void add(key_text *key, uint64_t number) {
    if (key->length + NUMBER_BYTES > sizeof(key->bytes)) {
        key->too_long = true;
        return;
    }
    for (; number >= 64; number >>= 6) key->bytes[key->length++] = (char)(64 | (number & 63));
    key->bytes[key->length++] = (char)(128 | number);
}

static void add_float(key_text *key, double number) {
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    add(key, bits);
}

// False: what the attribute says is not in itself.
static bool add_attr(key_text *key, const berth_attr *attr) {
    add(key, attr->name);
    add(key, attr->kind);
    add(key, attr->count);
    switch (attr->kind) {
    case BERTH_ATTR_INT: add(key, (uint64_t)attr->i); return true;
    case BERTH_ATTR_FLOAT: add_float(key, attr->f); return true;
    case BERTH_ATTR_STRING: add(key, attr->s); return true;
    case BERTH_ATTR_DTYPE: add(key, attr->dtype); return true;
    case BERTH_ATTR_DEVICE: add(key, attr->device); return true;
    case BERTH_ATTR_TYPE: add(key, attr->type); return true;
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS:
        for (uint32_t i = 0; i < attr->count && !key->too_long; ++i) {
            if (attr->kind == BERTH_ATTR_INTS) add(key, (uint64_t)attr->ints[i]);
            if (attr->kind == BERTH_ATTR_FLOATS) add_float(key, attr->floats[i]);
            if (attr->kind == BERTH_ATTR_STRINGS) add(key, attr->strings[i]);
        }
        return true;
    case BERTH_ATTR_TENSOR:
    case BERTH_ATTR_FUNCTION:
    case BERTH_ATTR_OPAQUE: break;
    }
    return false;
}

// Its type and place; which operands are one value matters, too. False: a constant.
static bool add_operand(key_text *key, const berth_graph *graph, const berth_op *op, uint32_t at) {
    berth_value_id value = op->inputs[at];
    uint32_t same = 0;
    if (value == BERTH_NONE) {
        add(key, BERTH_NONE);
        return true;
    }
    const berth_value *held = &graph->values.data[value];
    if (held->op != BERTH_NONE && graph->ops.data[held->op].kind == BERTH_OP_CONSTANT) return false;
    while (op->inputs[same] != value) ++same;
    add(key, held->type);
    add(key, held->device);
    add(key, same);
    return true;
}

static bool write_key(const berth_graph *graph, const berth_op *op, key_text *key) {
    enum { MOST_OPERANDS = 16 };
    if (op->region_count || op->input_count > MOST_OPERANDS) return false;
    key->length = 0;
    key->too_long = false;
    add(key, op->kind);
    add(key, op->device);
    add(key, op->input_count);
    add(key, op->attrs.items.count);
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (!add_operand(key, graph, op, i)) return false;
    for (uint32_t i = 0; i < op->output_count; ++i) {
        add(key, graph->values.data[op->outputs[i]].type);
        add(key, graph->values.data[op->outputs[i]].device);
    }
    for (uint32_t i = 0; i < op->attrs.items.count; ++i)
        if (!add_attr(key, &op->attrs.items.data[i])) return false;
    return !key->too_long;
}

berth_alike_facts *berth_alike_find(berth_alike *alike, const berth_module *module,
                                    const berth_graph *graph, berth_op_id op) {
    key_text key;
    if (!write_key(graph, &graph->ops.data[op], &key)) return NULL;
    if (alike->module != module) {
        alike->module = module;
        alike->keys = berth_interner_create(alike->arena);
        alike->facts.count = 0;
    }
    uint32_t id = berth_intern_n(alike->keys, key.bytes, key.length);
    while (alike->facts.count <= id)
        berth_vec_push(alike->arena, &alike->facts, (berth_alike_facts){0});
    return &alike->facts.data[id];
}
