// Statements that set attributes.
#include "ir/c/emitter.h"
#include "ir/string_literal.h"

static const char *item_int(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_int(e, ((const int64_t *)items)[index]);
}

static const char *item_float(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_float(e, ((const double *)items)[index]);
}

static const char *item_string(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_str_id(e, ((const berth_str_id *)items)[index]);
}

static const char *list(berth_c_emitter *e, const berth_attr *attr) {
    if (attr->count == 0) return "{0}";
    if (attr->kind == BERTH_ATTR_INTS) return berth_emit_list(e, attr->count, item_int, attr->ints);
    if (attr->kind == BERTH_ATTR_FLOATS)
        return berth_emit_list(e, attr->count, item_float, attr->floats);
    return berth_emit_list(e, attr->count, item_string, attr->strings);
}

static const char *tensor(berth_c_emitter *e, const berth_tensor *value) {
    berth_strbuf dims = berth_strbuf_make(e->scratch);
    for (int d = 0; d < value->rank; ++d)
        berth_strbuf_addf(&dims, "%s%s", d ? ", " : "", berth_emit_int(e, value->dims[d]));
    size_t size = berth_tensor_size_bytes(value);
    if (value->dtype == BERTH_DTYPE_STRING) {
        berth_strbuf bytes = berth_strbuf_make(e->scratch);
        berth_string_literal_pack(value, &bytes);
        return berth_arena_printf(
            e->scratch,
            ".kind = BERTH_ATTR_TENSOR,\n        .tensor = strings(m, %d, (const int64_t[]){%s}, "
            "%s, (size_t)%zu)",
            value->rank, value->rank ? berth_strbuf_text(&dims) : "0",
            bytes.length ? berth_emit_data(e, bytes.data, bytes.length) : "NULL", bytes.length);
    }
    return berth_arena_printf(
        e->scratch,
        ".kind = BERTH_ATTR_TENSOR,\n        .tensor = tensor(m, (berth_tensor){.dtype = %s, "
        ".rank = %d, .dims = {%s}, .data = %s})",
        berth_emit_dtype(value->dtype), value->rank, value->rank ? berth_strbuf_text(&dims) : "0",
        size ? berth_emit_data(e, value->data, size) : "NULL");
}

static const char *opaque(berth_c_emitter *e, const berth_attr *attr) {
    const berth_opaque_ops *ops = attr->opaque.ops;
    if (!ops->serialise) {
        if (!e->status)
            e->status = berth_status_make(BERTH_UNSUPPORTED,
                                          "attribute %s: a value of kind '%s' cannot be serialised",
                                          berth_module_str(e->module, attr->name), ops->kind);
        return "{0}";
    }
    berth_strbuf text = berth_strbuf_make(e->scratch);
    berth_status status = ops->serialise(attr->opaque.value, &text);
    if (status && !e->status)
        e->status = status;
    else
        berth_status_free(status);
    return berth_arena_printf(
        e->scratch, "berth_attr_carried(m, %s, (const char *)%s, (size_t)%zu)",
        berth_emit_string(e, ops->kind), berth_emit_data(e, berth_strbuf_text(&text), text.length),
        text.length);
}

// What stands between the braces of a berth_attr, or all of a call that makes one.
static const char *value(berth_c_emitter *e, const berth_attr *attr, bool *out_call) {
    berth_arena *arena = e->scratch;
    *out_call = false;
    switch (attr->kind) {
    case BERTH_ATTR_FLOATS:
        return berth_arena_printf(
            arena,
            ".kind = BERTH_ATTR_FLOATS, .count = %u,\n        .floats = berth_arena_copy(m->arena, "
            "(const double[])%s, %u * sizeof(double))",
            attr->count, list(e, attr), attr->count);
    case BERTH_ATTR_STRINGS:
        return berth_arena_printf(
            arena,
            ".kind = BERTH_ATTR_STRINGS, .count = %u,\n        .strings = "
            "berth_arena_copy(m->arena, (const berth_str_id[])%s, %u * sizeof(berth_str_id))",
            attr->count, list(e, attr), attr->count);
    case BERTH_ATTR_DTYPE:
        return berth_arena_printf(arena, ".kind = BERTH_ATTR_DTYPE, .dtype = %s",
                                  berth_emit_dtype(attr->dtype));
    case BERTH_ATTR_TENSOR: return tensor(e, attr->tensor);
    case BERTH_ATTR_FUNCTION:
        return berth_arena_printf(arena, ".kind = BERTH_ATTR_FUNCTION, .function = %s",
                                  berth_emit_function(e, attr->function));
    case BERTH_ATTR_DEVICE:
        return berth_arena_printf(arena, ".kind = BERTH_ATTR_DEVICE, .device = %s",
                                  berth_emit_device(e, attr->device));
    case BERTH_ATTR_TYPE:
        return berth_arena_printf(arena, ".kind = BERTH_ATTR_TYPE, .type = %s",
                                  berth_emit_type(e, attr->type));
    default: *out_call = true; return opaque(e, attr);
    }
}

static void set(berth_c_emitter *e, const berth_attr *attr, const char *owner) {
    const char *name = berth_emit_string(e, berth_module_str(e->module, attr->name));
    bool call = false;
    switch (attr->kind) {
    case BERTH_ATTR_INT:
        berth_emit_line(e, "berth_attrs_set_int(m, %s, %s, %s);", owner, name,
                        berth_emit_int(e, attr->i));
        return;
    case BERTH_ATTR_FLOAT:
        berth_emit_line(e, "berth_attrs_set_float(m, %s, %s, %s);", owner, name,
                        berth_emit_float(e, attr->f));
        return;
    case BERTH_ATTR_STRING:
        berth_emit_line(e, "berth_attrs_set_string(m, %s, %s, %s);", owner, name,
                        berth_emit_string(e, berth_module_str(e->module, attr->s)));
        return;
    case BERTH_ATTR_INTS:
        berth_emit_line(e, "berth_attrs_set_ints(m, %s, %s, (const int64_t[])%s, %u);", owner, name,
                        list(e, attr), attr->count);
        return;
    default: break;
    }
    const char *made = value(e, attr, &call);
    berth_emit_line(e,
                    call ? "berth_attrs_set(m, %s, %s, %s);"
                         : "berth_attrs_set(m, %s, %s, (berth_attr){%s});",
                    owner, name, made);
}

void berth_emit_attrs(berth_c_emitter *e, const berth_attrs *attrs, const char *owner) {
    for (uint32_t i = 0; i < attrs->items.count; ++i) set(e, &attrs->items.data[i], owner);
}
