#include "target/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { depth_limit = 64 };

static berth_target__json *make(berth_arena *arena, berth_target__json_type type) {
    berth_target__json *value = berth_arena_new(arena, berth_target__json);
    value->type = type;
    value->path = "";
    return value;
}

berth_target__json *berth_target__json_object(berth_arena *arena) {
    return make(arena, JSON_TYPE_OBJECT);
}

berth_target__json *berth_target__json_array(berth_arena *arena) {
    return make(arena, JSON_TYPE_ARRAY);
}

berth_target__json *berth_target__json_string(berth_arena *arena, const char *text) {
    berth_target__json *value = make(arena, JSON_TYPE_STRING);
    value->string = berth_arena_strdup(arena, text);
    return value;
}

berth_target__json *berth_target__json_int(berth_arena *arena, int64_t integer) {
    berth_target__json *value = make(arena, JSON_TYPE_INT);
    value->integer = integer;
    value->real = (double)integer;
    return value;
}

berth_target__json *berth_target__json_real(berth_arena *arena, double real) {
    berth_target__json *value = make(arena, JSON_TYPE_REAL);
    value->real = real;
    return value;
}

berth_target__json *berth_target__json_bool(berth_arena *arena, bool boolean) {
    berth_target__json *value = make(arena, JSON_TYPE_BOOL);
    value->boolean = boolean;
    return value;
}

// ------------------------------------------------------------------------------------------------
// reading

// NULL when nested deeper than the limit. Takes no references: running out of memory jumps out of
// here.
static berth_target__json *convert(berth_arena *arena, json_t *source, int depth) {
    if (depth > depth_limit) return NULL;
    switch (json_typeof(source)) {
    case JSON_STRING: return berth_target__json_string(arena, json_string_value(source));
    case JSON_INTEGER: return berth_target__json_int(arena, json_integer_value(source));
    case JSON_REAL: return berth_target__json_real(arena, json_real_value(source));
    case JSON_TRUE: return berth_target__json_bool(arena, true);
    case JSON_FALSE: return berth_target__json_bool(arena, false);
    case JSON_NULL: return make(arena, JSON_TYPE_NULL);
    case JSON_ARRAY: break;
    case JSON_OBJECT: break;
    }
    if (json_is_array(source)) {
        berth_target__json *array = berth_target__json_array(arena);
        for (size_t i = 0; i < json_array_size(source); ++i) {
            berth_target__json *item = convert(arena, json_array_get(source, i), depth + 1);
            if (!item) return NULL;
            berth_vec_push(arena, &array->items, item);
        }
        return array;
    }
    berth_target__json *object = berth_target__json_object(arena);
    for (void *at = json_object_iter(source); at; at = json_object_iter_next(source, at)) {
        berth_target__json *value = convert(arena, json_object_iter_value(at), depth + 1);
        if (!value) return NULL;
        berth_target__member member = {berth_arena_strdup(arena, json_object_iter_key(at)), value};
        berth_vec_push(arena, &object->members, member);
    }
    return object;
}

static void drop_tree(void *tree) {
    json_decref(tree);
}

berth_target__json *berth_target__json_read(berth_arena *arena, berth_arena *scratch,
                                            const char *text, size_t length,
                                            const char **out_error) {
    json_error_t error = {0};
    json_t *tree = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!tree) {
        *out_error = berth_arena_printf(arena, "line %d, column %d: %s", error.line, error.column,
                                        error.text);
        return NULL;
    }
    berth_arena_defer(scratch, drop_tree, tree);  // freed even if the conversion runs out of memory
    berth_target__json *value = convert(arena, tree, 0);
    if (!value)
        *out_error = berth_arena_printf(arena, "nested deeper than %d levels", (int)depth_limit);
    return value;
}

// ------------------------------------------------------------------------------------------------
// printing

static void print_string(berth_strbuf *out, const char *text) {
    berth_strbuf_add(out, "\"");
    for (const char *at = text; *at; ++at) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            berth_strbuf_addf(out, "\\%c", c);
        else if (c == '\n')
            berth_strbuf_add(out, "\\n");
        else if (c == '\t')
            berth_strbuf_add(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            berth_strbuf_addf(out, "\\u%04x", c);
        else
            berth_strbuf_add_n(out, at, 1);
    }
    berth_strbuf_add(out, "\"");
}

static void new_line(berth_strbuf *out, int indent, int level) {
    if (indent <= 0) return;
    berth_strbuf_addf(out, "\n%*s", indent * level, "");
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const berth_target__member *)a)->key, ((const berth_target__member *)b)->key);
}

static void print_value(berth_strbuf *out, const berth_target__json *value, int indent, int level);

static void print_members(berth_strbuf *out, const berth_target__json *object, int indent,
                          int level) {
    uint32_t count = object->members.count;
    berth_target__member *sorted =
        berth_arena_copy(out->arena, object->members.data, count * sizeof(*sorted));
    if (count > 1) qsort(sorted, count, sizeof(*sorted), by_key);
    berth_strbuf_add(out, "{");
    for (uint32_t i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(out, indent > 0 ? "," : ", ");
        new_line(out, indent, level + 1);
        print_string(out, sorted[i].key);
        berth_strbuf_add(out, ": ");
        print_value(out, sorted[i].value, indent, level + 1);
    }
    if (count) new_line(out, indent, level);
    berth_strbuf_add(out, "}");
}

static void print_items(berth_strbuf *out, const berth_target__json *array, int indent, int level) {
    bool flat = true;  // lists of scalars stay on one line
    for (uint32_t i = 0; i < array->items.count; ++i)
        flat = flat && array->items.data[i]->type < JSON_TYPE_ARRAY;
    int inner = flat ? 0 : indent;
    berth_strbuf_add(out, "[");
    for (uint32_t i = 0; i < array->items.count; ++i) {
        if (i) berth_strbuf_add(out, inner > 0 ? "," : ", ");
        new_line(out, inner, level + 1);
        print_value(out, array->items.data[i], indent, level + 1);
    }
    if (array->items.count) new_line(out, inner, level);
    berth_strbuf_add(out, "]");
}

static void print_value(berth_strbuf *out, const berth_target__json *value, int indent, int level) {
    char number[32];
    switch (value->type) {
    case JSON_TYPE_NULL: berth_strbuf_add(out, "null"); break;
    case JSON_TYPE_BOOL: berth_strbuf_add(out, value->boolean ? "true" : "false"); break;
    case JSON_TYPE_INT: berth_strbuf_addf(out, "%lld", (long long)value->integer); break;
    case JSON_TYPE_REAL:
        berth_format_f64(value->real, number);
        berth_strbuf_add(out, number);
        break;
    case JSON_TYPE_STRING: print_string(out, value->string); break;
    case JSON_TYPE_ARRAY: print_items(out, value, indent, level); break;
    case JSON_TYPE_OBJECT: print_members(out, value, indent, level); break;
    }
}

const char *berth_target__json_print(berth_arena *arena, const berth_target__json *value,
                                     int indent) {
    berth_strbuf out = berth_strbuf_make(arena);
    print_value(&out, value, indent, 0);
    return berth_strbuf_text(&out);
}

// ------------------------------------------------------------------------------------------------
// editing

berth_target__json *berth_target__json_clone(berth_arena *arena, const berth_target__json *value) {
    berth_target__json *copy = berth_arena_copy(arena, value, sizeof(*value));
    copy->items.data = NULL;
    copy->items.count = copy->items.capacity = 0;
    copy->members.data = NULL;
    copy->members.count = copy->members.capacity = 0;
    for (uint32_t i = 0; i < value->items.count; ++i)
        berth_target__json_push(arena, copy, berth_target__json_clone(arena, value->items.data[i]));
    for (uint32_t i = 0; i < value->members.count; ++i)
        berth_target__json_set(arena, copy, value->members.data[i].key,
                               berth_target__json_clone(arena, value->members.data[i].value));
    return copy;
}

berth_target__json *berth_target__json_get(const berth_target__json *object, const char *key) {
    for (uint32_t i = 0; i < object->members.count; ++i)
        if (strcmp(object->members.data[i].key, key) == 0) return object->members.data[i].value;
    return NULL;
}

void berth_target__json_set(berth_arena *arena, berth_target__json *object, const char *key,
                            berth_target__json *value) {
    for (uint32_t i = 0; i < object->members.count; ++i) {
        if (strcmp(object->members.data[i].key, key) != 0) continue;
        if (value) {
            object->members.data[i].value = value;
        } else {
            uint32_t after = object->members.count - i - 1;
            memmove(&object->members.data[i], &object->members.data[i + 1],
                    after * sizeof(object->members.data[0]));
            object->members.count--;
        }
        return;
    }
    if (!value) return;
    berth_target__member member = {berth_arena_strdup(arena, key), value};
    berth_vec_push(arena, &object->members, member);
}

void berth_target__json_push(berth_arena *arena, berth_target__json *array,
                             berth_target__json *value) {
    berth_vec_push(arena, &array->items, value);
}

berth_target__json *berth_target__json_merge(berth_arena *arena, berth_target__json *value,
                                             const berth_target__json *patch) {
    if (patch->type != JSON_TYPE_OBJECT) return berth_target__json_clone(arena, patch);
    if (!value || value->type != JSON_TYPE_OBJECT) value = berth_target__json_object(arena);
    for (uint32_t i = 0; i < patch->members.count; ++i) {
        const berth_target__member *member = &patch->members.data[i];
        berth_target__json *merged = NULL;
        if (member->value->type != JSON_TYPE_NULL)
            merged = berth_target__json_merge(arena, berth_target__json_get(value, member->key),
                                              member->value);
        berth_target__json_set(arena, value, member->key, merged);
    }
    return value;
}

void berth_target__json_locate(berth_arena *arena, berth_target__json *value, const char *path) {
    value->path = path;
    for (uint32_t i = 0; i < value->items.count; ++i)
        berth_target__json_locate(arena, value->items.data[i],
                                  berth_arena_printf(arena, "%s[%u]", path, i));
    for (uint32_t i = 0; i < value->members.count; ++i) {
        const char *key = value->members.data[i].key;
        const char *below = *path ? berth_arena_printf(arena, "%s.%s", path, key) : key;
        berth_target__json_locate(arena, value->members.data[i].value, below);
    }
}

const char *berth_target__json_type_name(const berth_target__json *value) {
    static const char *const names[] = {"null",     "a boolean", "an integer", "a number",
                                        "a string", "a list",    "an object"};
    return names[value->type];
}
