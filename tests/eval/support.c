#include "tests/eval/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

eval_case eval_begin(void) {
    eval_case c = {0};
    berth_status status = berth_arena_create(berth_allocator_system(), &c.arena);
    cr_assert_null(status);
    c.module = berth_module_create(c.arena, "test");
    c.main = berth_graph_create(c.module, "main", 0);
    return c;
}

void eval_end(eval_case *c) {
    berth_arena_destroy(c->arena);
}

static void read_strings(eval_case *c, berth_tensor *tensor, const char *at) {
    int64_t count = berth_tensor_element_count(tensor);
    berth_string last = {NULL, 0};
    for (int64_t i = 0; i < count; ++i) {
        at += strspn(at, " ");
        if (*at == '\'') {
            const char *end = strchr(++at, '\'');
            cr_assert_not_null(end);
            char *bytes = berth_arena_alloc(c->arena, (size_t)(end - at) + 1);
            last = (berth_string){bytes, 0};
            for (; at < end; ++last.length) {
                bool byte = at[0] == '\\' && at[1] == 'x';
                bytes[last.length] = byte ? (char)strtol((char[]){at[2], at[3], 0}, NULL, 16) : *at;
                at += byte ? 4 : 1;
            }
            ++at;
        }
        ((berth_string *)tensor->data)[i] = last;
    }
    at += strspn(at, " ");
    cr_assert(*at == 0 || *at == ';', "values left over: %s", at);
}

berth_tensor eval_tensor(eval_case *c, const char *text) {
    char type[8] = {0};
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    text += strspn(text, " ");
    size_t length = strcspn(text, "[");
    cr_assert(length < sizeof(type), "bad tensor text: %s", text);
    memcpy(type, text, length);
    char *at = strdup(text + length + 1), *begin = at;
    while (*at != ']') {
        dims[rank++] = strtoll(at, &at, 10);
        if (*at == ',') ++at;
    }
    ++at;
    berth_dtype dtype = berth_dtype_from_name(type);
    cr_assert(dtype, "no type: %s", text);
    berth_tensor tensor = berth_tensor_create(c->arena, dtype, rank, dims);
    int64_t count = berth_tensor_element_count(&tensor);
    at += strspn(at, " ");
    if (*at == '?') {
        berth_tensor_fill_random(&tensor, strtoull(at + 1, NULL, 10));
        free(begin);
        return tensor;
    }
    if (dtype == BERTH_DTYPE_STRING) {
        read_strings(c, &tensor, at);
        free(begin);
        return tensor;
    }
    double value = 0;
    for (int64_t i = 0; i < count; ++i) {
        char *end = at;
        double next = strtod(at, &end);
        if (end != at) value = next;
        at = end;
        if (berth_dtype_is_float(dtype))
            berth_tensor_set_f64(&tensor, i, value);
        else
            berth_tensor_set_i64(&tensor, i, (int64_t)value);
    }
    at += strspn(at, " ");
    cr_assert(*at == 0 || *at == ';', "values left over in: %s", text);
    free(begin);
    return tensor;
}

uint32_t eval_tensors(eval_case *c, const char *text, berth_tensor out[EVAL_MAX_OPERANDS]) {
    uint32_t count = 0;
    while (*text) {
        char part[4096];
        size_t length = strcspn(text, ";");
        cr_assert(length < sizeof(part) && count < EVAL_MAX_OPERANDS);
        memcpy(part, text, length);
        part[length] = 0;
        const char *begin = part + strspn(part, " ");
        out[count++] = *begin == '-' ? (berth_tensor){0} : eval_tensor(c, begin);
        text += length + (text[length] == ';');
    }
    return count;
}

static void set_list(eval_case *c, berth_attrs *attrs, const char *name, const char *text) {
    int64_t ints[32];
    double floats[32];
    berth_str_id strings[32];
    uint32_t count = 0;
    char kind = *text++;
    while (*text && *text != ']' && *text != '}' && *text != '>') {
        size_t length = strcspn(text, ",]}>");
        char *item = berth_arena_strndup(c->arena, text, length);
        ints[count] = strtoll(item, NULL, 10);
        floats[count] = strtod(item, NULL);
        strings[count++] = berth_module_intern(c->module, item);
        text += length + (text[length] == ',');
    }
    berth_attr attr = {.count = count};
    if (kind == '[') {
        attr.kind = BERTH_ATTR_INTS;
        attr.ints = berth_arena_copy(c->arena, ints, count * sizeof(*ints));
    } else if (kind == '{') {
        attr.kind = BERTH_ATTR_FLOATS;
        attr.floats = berth_arena_copy(c->arena, floats, count * sizeof(*floats));
    } else {
        attr.kind = BERTH_ATTR_STRINGS;
        attr.strings = berth_arena_copy(c->arena, strings, count * sizeof(*strings));
    }
    berth_attrs_set(c->module, attrs, name, attr);
}

void eval_set_attrs(eval_case *c, berth_attrs *attrs, const char *text) {
    while (*(text += strspn(text, " "))) {
        size_t length = strcspn(text, " "), key = strcspn(text, "=");
        const char *name = berth_arena_strndup(c->arena, text, key);
        const char *value = berth_arena_strndup(c->arena, text + key + 1, length - key - 1);
        char *end = NULL;
        double number = strtod(value, &end);
        if (strchr("[{<", *value))
            set_list(c, attrs, name, value);
        else if (*value == '#')
            berth_attrs_set(
                c->module, attrs, name,
                (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = berth_dtype_from_name(value + 1)});
        else if (*end)
            berth_attrs_set_string(c->module, attrs, name, value);
        else if (strchr(value, '.'))
            berth_attrs_set_float(c->module, attrs, name, number);
        else
            berth_attrs_set_int(c->module, attrs, name, (int64_t)number);
        text += length;
    }
}

berth_status eval_try(eval_case *c, berth_op_kind kind, const berth_tensor *inputs,
                      uint32_t input_count, const char *attrs, berth_tensor *outputs,
                      uint32_t output_count) {
    berth_value_id ids[EVAL_MAX_OPERANDS];
    for (uint32_t i = 0; i < input_count; ++i)
        ids[i] = inputs[i].dtype ? berth_graph_add_param(c->module, c->main, "x", 0) : BERTH_NONE;
    berth_op_id op =
        berth_graph_add_op(c->module, c->main, 0, kind, ids, input_count, output_count, 0);
    eval_set_attrs(c, &berth_graph_get(c->module, c->main)->ops.data[op].attrs, attrs);
    return berth_eval_op(c->module, c->main, op, inputs, outputs, c->arena);
}

void eval_op(eval_case *c, const char *name, const char *operands, const char *attrs,
             berth_tensor *outputs, uint32_t output_count) {
    berth_tensor inputs[EVAL_MAX_OPERANDS];
    uint32_t count = eval_tensors(c, operands, inputs);
    berth_op_kind kind = BERTH_OP_CONSTANT;
    cr_assert(berth_op_kind_from_name(name, &kind), "no operation %s", name);
    berth_status status = eval_try(c, kind, inputs, count, attrs, outputs, output_count);
    cr_assert_null(status, "%s | %s | %s: %s", name, operands, attrs, berth_status_message(status));
}

berth_tensor eval_on(eval_case *c, const char *name, const berth_tensor *inputs,
                     uint32_t input_count, const char *attrs) {
    berth_op_kind kind = BERTH_OP_CONSTANT;
    berth_tensor output;
    cr_assert(berth_op_kind_from_name(name, &kind), "no operation %s", name);
    berth_status status = eval_try(c, kind, inputs, input_count, attrs, &output, 1);
    cr_assert_null(status, "%s", berth_status_message(status));
    return output;
}

const char *eval_differs(eval_case *c, const berth_tensor *got, const berth_tensor *expected,
                         double tolerance) {
    if (got->dtype != expected->dtype)
        return berth_arena_printf(c->arena, "type %s, expected %s", berth_dtype_name(got->dtype),
                                  berth_dtype_name(expected->dtype));
    if (!berth_tensor_same_shape(got, expected)) return "another shape";
    int64_t count = berth_tensor_element_count(got);
    for (int64_t i = 0; i < count && got->dtype == BERTH_DTYPE_STRING; ++i) {
        berth_string a = berth_tensor_strings(got)[i], b = berth_tensor_strings(expected)[i];
        if (!berth_string_equal(a, b))
            return berth_arena_printf(c->arena, "element %lld is '%s', expected '%s'", (long long)i,
                                      berth_string_text(c->arena, a),
                                      berth_string_text(c->arena, b));
    }
    if (got->dtype == BERTH_DTYPE_STRING) return NULL;
    for (int64_t i = 0; i < count; ++i) {
        double a = berth_tensor_get_f64(got, i), b = berth_tensor_get_f64(expected, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
            return berth_arena_printf(c->arena, "element %lld is %.9g, expected %.9g", (long long)i,
                                      a, b);
    }
    return NULL;
}

void eval_expect(eval_case *c, const berth_tensor *got, const berth_tensor *expected,
                 double tolerance, const char *what) {
    const char *difference = eval_differs(c, got, expected, tolerance);
    cr_assert_null(difference, "%s: %s", what, difference);
}
