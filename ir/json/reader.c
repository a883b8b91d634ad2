#include "ir/json/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "ir/device_names.h"
#include "ir/dim.h"
#include "ir/string_literal.h"
#include "ir/text/metas.h"

// ---- messages -----------------------------------------------------------------------------------

size_t berth_json_enter(berth_json_reader *r, const char *key, size_t index) {
    size_t mark = r->path_length;
    size_t room = sizeof(r->path) - r->path_length;
    int length = key ? snprintf(r->path + mark, room, "%s%s", mark ? "." : "", key)
                     : snprintf(r->path + mark, room, "[%zu]", index);
    r->path_length += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
    return mark;
}

void berth_json_leave(berth_json_reader *r, size_t mark) {
    r->path_length = mark;
    r->path[mark] = 0;
}

berth_status berth_json_expected(const berth_json_reader *r, const char *key, const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: %s%s%s: expected %s", r->file_name,
                             r->path, *r->path && key ? "." : "", key ? key : "", what);
}

static berth_status at(const berth_json_reader *r, const char *key, berth_status status) {
    return berth_status_prefix(status, "%s: %s.%s", r->file_name, r->path, key);
}

berth_status berth_json_descend(berth_json_reader *r, const char *what) {
    // One more for the function's own region or statement, which the text form does not count.
    if (++r->depth <= r->most_depth + 1) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: %s: %s nest more than %d levels deep",
                             r->file_name, r->path, what, (int)r->most_depth);
}

void berth_json_ascend(berth_json_reader *r) {
    r->depth--;
}

// ---- values -------------------------------------------------------------------------------------

berth_status berth_json_get_int(berth_json_reader *r, const json_t *object, const char *key,
                                bool optional, int64_t low, int64_t high, int64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!value && optional) return BERTH_OK;
    if (!json_is_integer(value)) return berth_json_expected(r, key, "an integer");
    *out = json_integer_value(value);
    if (*out < low || *out > high) return berth_json_expected(r, key, "an integer in range");
    return BERTH_OK;
}

berth_status berth_json_get_id(berth_json_reader *r, const json_t *object, const char *key,
                               uint32_t count, uint32_t *out) {
    int64_t value = 0;
    if (count == 0) return berth_json_expected(r, key, "something that exists");
    BERTH_TRY(berth_json_get_int(r, object, key, false, 0, (int64_t)count - 1, &value));
    *out = (uint32_t)value;
    return BERTH_OK;
}

static berth_status decode(berth_json_reader *r, const json_t *value, berth_strbuf *out) {
    if (!json_is_string(value) ||
        !berth_base64_decode(json_string_value(value), json_string_length(value), out))
        return berth_json_expected(r, NULL, "a string of base64");
    return BERTH_OK;
}

berth_status berth_json_read_text(berth_json_reader *r, const json_t *value, const char **out) {
    *out = "";
    if (json_is_string(value)) {
        *out = json_string_value(value);
        return BERTH_OK;
    }
    berth_strbuf text = berth_strbuf_make(r->scratch);
    if (!json_is_object(value)) return berth_json_expected(r, NULL, "a string");
    BERTH_TRY(decode(r, json_object_get(value, "base64"), &text));
    *out = berth_strbuf_text(&text);
    return strlen(*out) == text.length ? BERTH_OK
                                       : berth_json_expected(r, NULL, "text without NUL");
}

berth_status berth_json_get_text(berth_json_reader *r, const json_t *object, const char *key,
                                 bool optional, const char **out) {
    const json_t *value = json_object_get(object, key);
    if (!value && optional) return BERTH_OK;
    size_t mark = berth_json_enter(r, key, 0);
    BERTH_TRY(berth_json_read_text(r, value, out));
    berth_json_leave(r, mark);
    return BERTH_OK;
}

berth_status berth_json_get_str(berth_json_reader *r, const json_t *object, const char *key,
                                bool optional, berth_str_id *out) {
    const char *text = NULL;
    BERTH_TRY(berth_json_get_text(r, object, key, optional, &text));
    if (text) *out = berth_module_intern(r->module, text);
    return BERTH_OK;
}

berth_status berth_json_get_array(berth_json_reader *r, const json_t *object, const char *key,
                                  bool optional, const json_t **out) {
    *out = json_object_get(object, key);
    if (json_is_array(*out) || (!*out && optional)) return BERTH_OK;
    return berth_json_expected(r, key, "an array");
}

berth_status berth_json_read_float(berth_json_reader *r, const json_t *value, double *out) {
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    *out = json_number_value(value);
    if (json_is_number(value)) return BERTH_OK;
    if (strcmp(text, "nan") == 0)
        *out = (double)NAN;
    else if (strcmp(text, "inf") == 0)
        *out = (double)INFINITY;
    else if (strcmp(text, "-inf") == 0)
        *out = -(double)INFINITY;
    else
        return berth_json_expected(r, NULL, "a number, \"nan\", \"inf\" or \"-inf\"");
    return BERTH_OK;
}

berth_status berth_json_get_float(berth_json_reader *r, const json_t *object, const char *key,
                                  double *out) {
    size_t mark = berth_json_enter(r, key, 0);
    BERTH_TRY(berth_json_read_float(r, json_object_get(object, key), out));
    berth_json_leave(r, mark);
    return BERTH_OK;
}

berth_status berth_json_get_data(berth_json_reader *r, const json_t *object, const char *key,
                                 const char **out_data, size_t *out_size_bytes) {
    berth_strbuf bytes = berth_strbuf_make(r->module->arena);
    size_t mark = berth_json_enter(r, key, 0);
    BERTH_TRY(decode(r, json_object_get(object, key), &bytes));
    berth_json_leave(r, mark);
    *out_data = berth_strbuf_text(&bytes);
    *out_size_bytes = bytes.length;
    return BERTH_OK;
}

// ---- types and devices --------------------------------------------------------------------------

static berth_status read_dim(berth_json_reader *r, const json_t *value, int64_t *out) {
    const char *name = NULL;
    *out = BERTH_DIM_UNKNOWN;
    if (json_is_null(value)) return BERTH_OK;
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return *out >= 0 ? BERTH_OK : berth_json_expected(r, NULL, "an extent");
    }
    BERTH_TRY(berth_json_read_text(r, value, &name));
    if (*name == '=') {
        berth_status status = berth_dim_parse(r->module, name + 1, strlen(name + 1), out);
        bool fine = status == BERTH_OK;
        berth_status_free(status);
        return fine ? BERTH_OK : berth_json_expected(r, NULL, "a dimension after '='");
    }
    *out = berth_dim_symbol(berth_module_intern(r->module, name));
    return BERTH_OK;
}

berth_status berth_json_get_dims(berth_json_reader *r, const json_t *object, const char *key,
                                 int *out_rank, int64_t out_dims[BERTH_MAX_RANK]) {
    const json_t *array = json_object_get(object, key);
    *out_rank = -1;
    if (json_is_null(array)) return BERTH_OK;
    if (!json_is_array(array) || json_array_size(array) > BERTH_MAX_RANK)
        return berth_json_expected(r, key, "an array of at most 8 extents, or null");
    size_t mark = berth_json_enter(r, key, 0);
    for (size_t i = 0; i < json_array_size(array); ++i)
        BERTH_TRY(read_dim(r, json_array_get(array, i), &out_dims[i]));
    berth_json_leave(r, mark);
    *out_rank = (int)json_array_size(array);
    return BERTH_OK;
}

static berth_status get_dtype(berth_json_reader *r, const json_t *object, const char *key,
                              berth_dtype *out) {
    const char *name = NULL;
    BERTH_TRY(berth_json_get_text(r, object, key, false, &name));
    *out = berth_dtype_from_name(name);
    if (*out == BERTH_DTYPE_NONE && strcmp(name, "none") != 0)
        return berth_json_expected(r, key, "an element type");
    return BERTH_OK;
}

static berth_status read_type(berth_json_reader *r, const json_t *value, berth_type_id *out);

typedef struct type_list {
    BERTH_VEC(berth_type_id) items;
} type_list;

static berth_status get_types(berth_json_reader *r, const json_t *object, const char *key,
                              type_list *out) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(r, object, key, false, &array));
    size_t mark = berth_json_enter(r, key, 0);
    for (size_t i = 0; i < json_array_size(array); ++i) {
        berth_type_id type = 0;
        BERTH_TRY(read_type(r, json_array_get(array, i), &type));
        berth_vec_push(r->scratch, &out->items, type);
    }
    berth_json_leave(r, mark);
    return BERTH_OK;
}

static berth_status read_tensor_type(berth_json_reader *r, const json_t *value,
                                     berth_type_id *out) {
    berth_dtype dtype = BERTH_DTYPE_NONE;
    int rank = 0;
    int64_t dims[BERTH_MAX_RANK] = {0};
    berth_str_id layout = 0;
    BERTH_TRY(get_dtype(r, value, "dtype", &dtype));
    BERTH_TRY(berth_json_get_dims(r, value, "shape", &rank, dims));
    BERTH_TRY(berth_json_get_str(r, value, "layout", true, &layout));
    *out = berth_type_tensor_layout(r->module, dtype, rank, dims, layout);
    return BERTH_OK;
}

static berth_status read_type(berth_json_reader *r, const json_t *value, berth_type_id *out) {
    type_list first = {{0}};
    type_list second = {{0}};
    *out = 0;
    if (json_is_null(value)) return BERTH_OK;
    if (!json_is_object(value)) return berth_json_expected(r, NULL, "a type");
    if (json_object_get(value, "dtype")) return read_tensor_type(r, value, out);
    BERTH_TRY(berth_json_descend(r, "types"));
    if (json_object_get(value, "tuple")) {
        BERTH_TRY(get_types(r, value, "tuple", &first));
        *out = berth_type_tuple(r->module, first.items.data, first.items.count);
    } else if (json_object_get(value, "params")) {
        BERTH_TRY(get_types(r, value, "params", &first));
        BERTH_TRY(get_types(r, value, "results", &second));
        *out = berth_type_function(r->module, first.items.data, first.items.count,
                                   second.items.data, second.items.count);
    } else if (json_object_get(value, "storage")) {
        *out = berth_type_storage(r->module);
    } else {
        return berth_json_expected(r, NULL, "a type");
    }
    berth_json_ascend(r);
    return BERTH_OK;
}

berth_status berth_json_get_type(berth_json_reader *r, const json_t *object, const char *key,
                                 berth_type_id *out) {
    const json_t *value = json_object_get(object, key);
    if (!value) return berth_json_expected(r, key, "a type, or null");
    size_t mark = berth_json_enter(r, key, 0);
    BERTH_TRY(read_type(r, value, out));
    berth_json_leave(r, mark);
    return BERTH_OK;
}

berth_status berth_json_get_device(berth_json_reader *r, const json_t *object, const char *key,
                                   berth_device_id *out) {
    const char *name = NULL;
    *out = 0;
    BERTH_TRY(berth_json_get_text(r, object, key, true, &name));
    if (!name) return BERTH_OK;
    return at(
        r, key,
        berth_device_name_read(r->registry ? r->registry->target : NULL, r->module, name, out));
}

berth_status berth_json_get_loc(berth_json_reader *r, const json_t *object, const char *key,
                                berth_loc_id *out) {
    int64_t number = 0;
    BERTH_TRY(berth_json_get_int(r, object, key, true, 0, r->locs.count, &number));
    *out = number ? r->locs.data[number - 1] : 0;
    return BERTH_OK;
}

// ---- attributes ---------------------------------------------------------------------------------

static berth_status read_ints(berth_json_reader *r, const json_t *array, berth_attr *out) {
    int64_t *values = berth_arena_new_array(r->module->arena, int64_t, out->count);
    for (uint32_t i = 0; i < out->count; ++i) {
        if (!json_is_integer(json_array_get(array, i)))
            return berth_json_expected(r, "value", "integers");
        values[i] = json_integer_value(json_array_get(array, i));
    }
    out->ints = values;
    return BERTH_OK;
}

static berth_status read_list(berth_json_reader *r, const json_t *object, berth_attr *out) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(r, object, "value", false, &array));
    out->count = (uint32_t)json_array_size(array);
    if (out->kind == BERTH_ATTR_INTS) return read_ints(r, array, out);
    if (out->kind == BERTH_ATTR_FLOATS) {
        double *values = berth_arena_new_array(r->module->arena, double, out->count);
        for (uint32_t i = 0; i < out->count; ++i)
            BERTH_TRY(berth_json_read_float(r, json_array_get(array, i), &values[i]));
        out->floats = values;
        return BERTH_OK;
    }
    berth_str_id *values = berth_arena_new_array(r->module->arena, berth_str_id, out->count);
    for (uint32_t i = 0; i < out->count; ++i) {
        const char *text = NULL;
        BERTH_TRY(berth_json_read_text(r, json_array_get(array, i), &text));
        values[i] = berth_module_intern(r->module, text);
    }
    out->strings = values;
    return BERTH_OK;
}

static berth_status read_tensor(berth_json_reader *r, const json_t *object, berth_attr *out) {
    berth_tensor shape = {0};
    size_t size = 0;
    berth_strbuf bytes = berth_strbuf_make(r->scratch);
    BERTH_TRY(get_dtype(r, object, "dtype", &shape.dtype));
    BERTH_TRY(berth_json_get_dims(r, object, "shape", &shape.rank, shape.dims));
    if (shape.rank < 0 || shape.dtype == BERTH_DTYPE_NONE)
        return berth_json_expected(r, "shape", "a static shape");
    BERTH_TRY(
        at(r, "shape", berth_shape_size_bytes(shape.dtype, shape.rank, shape.dims, NULL, &size)));
    BERTH_TRY(decode(r, json_object_get(object, "value"), &bytes));
    berth_tensor *tensor = berth_arena_new(r->module->arena, berth_tensor);
    if (shape.dtype == BERTH_DTYPE_STRING) {
        out->tensor = tensor;
        if (berth_string_literal_unpack(r->module->arena, bytes.data, bytes.length, shape.rank,
                                        shape.dims, tensor))
            return BERTH_OK;
        return berth_json_expected(r, "value", "the lengths and bytes of the shape's strings");
    }
    if (bytes.length != size) return berth_json_expected(r, "value", "data of the shape's size");
    *tensor = berth_tensor_create(r->module->arena, shape.dtype, shape.rank, shape.dims);
    if (size) memcpy(tensor->data, bytes.data, size);
    out->tensor = tensor;
    return BERTH_OK;
}

berth_status berth_json_get_function(berth_json_reader *r, const json_t *object, const char *key,
                                     berth_func_id *out) {
    const char *name = NULL;
    *out = BERTH_NONE;
    if (json_is_null(json_object_get(object, key))) return BERTH_OK;
    BERTH_TRY(berth_json_get_text(r, object, key, false, &name));
    *out = berth_module_find_function(r->module, name);
    return *out == BERTH_NONE ? berth_json_expected(r, key, "the name of a function of this module")
                              : BERTH_OK;
}

static berth_status read_opaque(berth_json_reader *r, const json_t *object, berth_attr *out) {
    const char *kind = NULL;
    const char *data = NULL;
    size_t length = 0;
    BERTH_TRY(berth_json_get_text(r, object, "of", false, &kind));
    BERTH_TRY(berth_json_get_data(r, object, "value", &data, &length));
    return at(r, "value", berth_text__make_opaque(r->module, r->registry, kind, data, length, out));
}

static berth_status read_value(berth_json_reader *r, const json_t *object, berth_attr *out) {
    switch (out->kind) {
    case BERTH_ATTR_INT:
        return berth_json_get_int(r, object, "value", false, INT64_MIN, INT64_MAX, &out->i);
    case BERTH_ATTR_FLOAT: return berth_json_get_float(r, object, "value", &out->f);
    case BERTH_ATTR_STRING: return berth_json_get_str(r, object, "value", false, &out->s);
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS: return read_list(r, object, out);
    case BERTH_ATTR_DTYPE: return get_dtype(r, object, "value", &out->dtype);
    case BERTH_ATTR_TENSOR: return read_tensor(r, object, out);
    case BERTH_ATTR_FUNCTION: return berth_json_get_function(r, object, "value", &out->function);
    case BERTH_ATTR_DEVICE: return berth_json_get_device(r, object, "value", &out->device);
    case BERTH_ATTR_TYPE: return berth_json_get_type(r, object, "value", &out->type);
    case BERTH_ATTR_OPAQUE: return read_opaque(r, object, out);
    }
    return BERTH_OK;
}

berth_status berth_json_get_attrs(berth_json_reader *r, const json_t *object, berth_attrs *out) {
    static const char *const kinds[] = {"int",      "float",   "string", "ints",
                                        "floats",   "strings", "dtype",  "tensor",
                                        "function", "device",  "type",   "opaque"};
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(r, object, "attributes", true, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *item = json_array_get(array, i);
        const char *name = NULL;
        const char *kind = NULL;
        berth_attr value = {0};
        size_t mark = berth_json_enter(r, "attributes", 0);
        (void)berth_json_enter(r, NULL, i);
        BERTH_TRY(berth_json_get_text(r, item, "name", false, &name));
        BERTH_TRY(berth_json_get_text(r, item, "kind", false, &kind));
        size_t k = 0;
        while (k < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[k], kind) != 0) k++;
        if (k == sizeof(kinds) / sizeof(kinds[0]))
            return berth_json_expected(r, "kind", "a kind of attribute");
        value.kind = (berth_attr_kind)k;
        if (berth_attrs_find(r->module, out, name))
            return berth_json_expected(r, "name", "a new attribute");
        BERTH_TRY(read_value(r, item, &value));
        berth_attrs_set(r->module, out, name, value);
        berth_json_leave(r, mark);
    }
    return BERTH_OK;
}
