#include "ir/json/writer.h"

#include <math.h>
#include <string.h>

#include "base/base64.h"
#include "ir/string_literal.h"
#include "target/virtual_device.h"

void berth_json_put(berth_json_writer *w, json_t *parent, const char *key, json_t *value) {
    int failed = json_is_object(parent) ? json_object_set_new(parent, key, value)
                                        : json_array_append_new(parent, value);
    if (failed) w->failed = true;
}

json_t *berth_json_put_object(berth_json_writer *w, json_t *parent, const char *key) {
    json_t *value = json_object();
    berth_json_put(w, parent, key, value);
    return w->failed ? NULL : value;
}

json_t *berth_json_put_array(berth_json_writer *w, json_t *parent, const char *key) {
    json_t *value = json_array();
    berth_json_put(w, parent, key, value);
    return w->failed ? NULL : value;
}

void berth_json_put_int(berth_json_writer *w, json_t *parent, const char *key, int64_t value) {
    berth_json_put(w, parent, key, json_integer(value));
}

void berth_json_put_float(berth_json_writer *w, json_t *parent, const char *key, double value) {
    if (isnan(value) || isinf(value))
        berth_json_put(w, parent, key,
                       json_string(isnan(value) ? "nan"
                                   : value > 0  ? "inf"
                                                : "-inf"));
    else
        berth_json_put(w, parent, key, json_real(value));
}

void berth_json_put_base64(berth_json_writer *w, json_t *parent, const char *key, const void *data,
                           size_t size_bytes) {
    berth_arena *own = berth_arena_create_child(w->scratch);
    berth_strbuf text = berth_strbuf_make(own);
    berth_base64_encode(data, size_bytes, &text);
    berth_json_put(w, parent, key, json_stringn(berth_strbuf_text(&text), text.length));
    berth_arena_destroy(own);
}

static bool is_utf8(const char *text) {
    while (*text) {
        size_t length = berth_utf8_length(text);
        if (length == 0) return false;
        text += length;
    }
    return true;
}

void berth_json_put_text(berth_json_writer *w, json_t *parent, const char *key, const char *text) {
    if (is_utf8(text))
        berth_json_put(w, parent, key, json_string(text));
    else
        berth_json_put_base64(w, berth_json_put_object(w, parent, key), "base64", text,
                              strlen(text));
}

void berth_json_put_str(berth_json_writer *w, json_t *parent, const char *key, berth_str_id text) {
    berth_json_put_text(w, parent, key, berth_module_str(w->module, text));
}

// ---- types and devices --------------------------------------------------------------------------

void berth_json_put_dims(berth_json_writer *w, json_t *parent, const char *key, int rank,
                         const int64_t *dims) {
    if (rank < 0) {
        berth_json_put(w, parent, key, json_null());
        return;
    }
    json_t *array = berth_json_put_array(w, parent, key);
    for (int i = 0; i < rank; ++i) {
        if (dims[i] == BERTH_DIM_UNKNOWN)
            berth_json_put(w, array, NULL, json_null());
        else if (berth_dim_is_symbol(dims[i]))
            berth_json_put_str(w, array, NULL, berth_dim_symbol_name(dims[i]));
        else
            berth_json_put_int(w, array, NULL, dims[i]);
    }
}

static void put_types(berth_json_writer *w, json_t *object, const char *key,
                      const berth_type_id *types, uint32_t count) {
    json_t *array = berth_json_put_array(w, object, key);
    for (uint32_t i = 0; i < count; ++i) berth_json_put_type(w, array, NULL, types[i]);
}

void berth_json_put_type(berth_json_writer *w, json_t *parent, const char *key, berth_type_id id) {
    const berth_type *type = berth_type_get(w->module, id);
    if (type->kind == BERTH_TYPE_UNKNOWN) {
        berth_json_put(w, parent, key, json_null());
        return;
    }
    json_t *object = berth_json_put_object(w, parent, key);
    if (type->kind == BERTH_TYPE_TENSOR) {
        berth_json_put(w, object, "dtype", json_string(berth_dtype_name(type->dtype)));
        berth_json_put_dims(w, object, "shape", type->rank, type->dims);
        if (type->layout) berth_json_put_str(w, object, "layout", type->layout);
    } else if (type->kind == BERTH_TYPE_TUPLE) {
        put_types(w, object, "tuple", type->fields, type->field_count);
    } else if (type->kind == BERTH_TYPE_FUNCTION) {
        put_types(w, object, "params", type->fields, type->param_count);
        put_types(w, object, "results", type->fields + type->param_count,
                  type->field_count - type->param_count);
    } else {
        berth_json_put(w, object, "storage", json_true());
    }
}

static void put_device(berth_json_writer *w, json_t *parent, const char *key, berth_device_id id) {
    berth_virtual_device device = berth_virtual_device_get(w->module->devices, id);
    berth_json_put_text(w, parent, key, berth_virtual_device_name(w->scratch, device));
}

void berth_json_put_device(berth_json_writer *w, json_t *object, const char *key,
                           berth_device_id device) {
    if (device) put_device(w, object, key, device);
}

// ---- locations ----------------------------------------------------------------------------------

// Locations of equal content share a number: the key is the content.
static uint32_t loc_number(berth_json_writer *w, berth_loc_id id) {
    if (id == 0 || id >= w->module->locs.count) return 0;
    if (w->loc_numbers[id]) return w->loc_numbers[id];
    const berth_loc *loc = berth_loc_get(w->module, id);
    berth_strbuf key = berth_strbuf_make(w->scratch);
    berth_strbuf_addf(&key, "%u %u %u %u %u", loc->file, loc->node, loc->op_type, loc->line,
                      loc->column);
    uint32_t *parts = berth_arena_new_array(w->scratch, uint32_t, loc->part_count);
    for (uint32_t i = 0; i < loc->part_count; ++i) {
        parts[i] = loc->parts[i] < id ? loc_number(w, loc->parts[i]) : 0;
        berth_strbuf_addf(&key, " %u", parts[i]);
    }
    uint32_t number = berth_intern(w->locs, berth_strbuf_text(&key));
    w->loc_numbers[id] = number;
    if (number <= json_array_size(w->locations)) return number;
    json_t *object = berth_json_put_object(w, w->locations, NULL);
    if (loc->file) berth_json_put_str(w, object, "file", loc->file);
    if (loc->node) berth_json_put_str(w, object, "node", loc->node);
    if (loc->op_type) berth_json_put_str(w, object, "op", loc->op_type);
    if (loc->line) berth_json_put_int(w, object, "line", loc->line);
    if (loc->column) berth_json_put_int(w, object, "column", loc->column);
    json_t *array = loc->part_count ? berth_json_put_array(w, object, "fused") : NULL;
    for (uint32_t i = 0; i < loc->part_count; ++i) berth_json_put_int(w, array, NULL, parts[i]);
    return number;
}

void berth_json_put_loc(berth_json_writer *w, json_t *object, const char *key, berth_loc_id loc) {
    uint32_t number = loc_number(w, loc);
    if (number) berth_json_put_int(w, object, key, number);
}

// ---- attributes ---------------------------------------------------------------------------------

static const char *const kind_names[] = {"int",      "float",   "string", "ints",
                                         "floats",   "strings", "dtype",  "tensor",
                                         "function", "device",  "type",   "opaque"};

static void put_list(berth_json_writer *w, json_t *object, const berth_attr *attr) {
    json_t *array = berth_json_put_array(w, object, "value");
    for (uint32_t i = 0; i < attr->count; ++i) {
        if (attr->kind == BERTH_ATTR_INTS)
            berth_json_put_int(w, array, NULL, attr->ints[i]);
        else if (attr->kind == BERTH_ATTR_FLOATS)
            berth_json_put_float(w, array, NULL, attr->floats[i]);
        else
            berth_json_put_str(w, array, NULL, attr->strings[i]);
    }
}

static void put_tensor(berth_json_writer *w, json_t *object, const berth_tensor *tensor) {
    berth_json_put(w, object, "dtype", json_string(berth_dtype_name(tensor->dtype)));
    berth_json_put_dims(w, object, "shape", tensor->rank, tensor->dims);
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        berth_strbuf bytes = berth_strbuf_make(w->scratch);
        berth_string_literal_pack(tensor, &bytes);
        berth_json_put_base64(w, object, "value", bytes.data, bytes.length);
        return;
    }
    berth_json_put_base64(w, object, "value", tensor->data, berth_tensor_size_bytes(tensor));
}

static void put_opaque(berth_json_writer *w, json_t *object, const berth_attr *attr) {
    const berth_opaque_ops *ops = attr->opaque.ops;
    berth_json_put_text(w, object, "of", ops->kind);
    berth_status status = BERTH_OK;
    if (ops->serialise) {
        berth_strbuf out = berth_strbuf_make(w->scratch);
        status = ops->serialise(attr->opaque.value, &out);
        berth_json_put_base64(w, object, "value", berth_strbuf_text(&out), out.length);
    } else {
        status = berth_status_make(BERTH_UNSUPPORTED,
                                   "attribute %s: a value of kind '%s' cannot be serialised",
                                   berth_module_str(w->module, attr->name), ops->kind);
    }
    if (w->status)
        berth_status_free(status);
    else
        w->status = status;
}

void berth_json_put_function(berth_json_writer *w, json_t *object, const char *key,
                             berth_func_id id) {
    const berth_function *function = berth_module_function(w->module, id);
    if (function && !function->removed)
        berth_json_put_str(w, object, key, function->name);
    else
        berth_json_put(w, object, key, json_null());
}

static void put_attr(berth_json_writer *w, json_t *array, const berth_attr *attr) {
    json_t *object = berth_json_put_object(w, array, NULL);
    berth_json_put_str(w, object, "name", attr->name);
    berth_json_put(w, object, "kind", json_string(kind_names[attr->kind]));
    switch (attr->kind) {
    case BERTH_ATTR_INT: berth_json_put_int(w, object, "value", attr->i); break;
    case BERTH_ATTR_FLOAT: berth_json_put_float(w, object, "value", attr->f); break;
    case BERTH_ATTR_STRING: berth_json_put_str(w, object, "value", attr->s); break;
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS: put_list(w, object, attr); break;
    case BERTH_ATTR_DTYPE:
        berth_json_put(w, object, "value", json_string(berth_dtype_name(attr->dtype)));
        break;
    case BERTH_ATTR_TENSOR: put_tensor(w, object, attr->tensor); break;
    case BERTH_ATTR_FUNCTION: berth_json_put_function(w, object, "value", attr->function); break;
    case BERTH_ATTR_DEVICE: put_device(w, object, "value", attr->device); break;
    case BERTH_ATTR_TYPE: berth_json_put_type(w, object, "value", attr->type); break;
    case BERTH_ATTR_OPAQUE: put_opaque(w, object, attr); break;
    }
}

void berth_json_put_attrs(berth_json_writer *w, json_t *object, const berth_attrs *attrs) {
    if (attrs->items.count == 0) return;
    json_t *array = berth_json_put_array(w, object, "attributes");
    for (uint32_t i = 0; i < attrs->items.count; ++i) put_attr(w, array, &attrs->items.data[i]);
}
