// Attributes of every kind, and tensor literals.
#include <string.h>

#include "ir/extend.h"
#include "ir/text/literal.h"
#include "ir/text/metas.h"
#include "ir/text/parser.h"

// ---- literals -----------------------------------------------------------------------------------

typedef struct element_list {
    BERTH_VEC(const char *) items;
} element_list;

static berth_status parse_element(berth_text_parser *p, element_list *list) {
    bool negative = berth_text_accept(p, "-");
    bool fine = p->token.kind == BERTH_TOKEN_INT || p->token.kind == BERTH_TOKEN_FLOAT ||
                berth_text_is(p, "nan") || berth_text_is(p, "inf") || berth_text_is(p, "true") ||
                berth_text_is(p, "false");
    if (!fine) return berth_text_expected(p, "a number");
    const char *text = berth_arena_printf(p->scratch, "%s%.*s", negative ? "-" : "",
                                          (int)p->token.length, p->token.text);
    berth_vec_push(p->scratch, &list->items, text);
    berth_text_next(p);
    return BERTH_OK;
}

static berth_status parse_elements(berth_text_parser *p, const berth_type *type, int64_t count,
                                   const berth_tensor **out_tensor) {
    element_list list = {{0}};
    berth_token start = p->token;
    BERTH_TRY(berth_text_expect(p, "("));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        BERTH_TRY(parse_element(p, &list));
    }
    if (list.items.count != count)
        return berth_text_error(p, &start, "expected %lld elements, found %u", (long long)count,
                                list.items.count);
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    *tensor = berth_tensor_create(p->module->arena, type->dtype, type->rank, type->dims);
    for (uint32_t i = 0; i < list.items.count; ++i)
        if (!berth_text__parse_element(tensor, i, list.items.data[i]))
            return berth_text_error(p, &start, "expected elements of type %s, found %s",
                                    berth_dtype_name(type->dtype), list.items.data[i]);
    *out_tensor = tensor;
    return BERTH_OK;
}

static berth_status parse_strings(berth_text_parser *p, const berth_type *type, int64_t count,
                                  const berth_tensor **out_tensor) {
    BERTH_VEC(berth_string) list = {0};
    berth_token start = p->token;
    BERTH_TRY(berth_text_expect(p, "("));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        if (p->token.kind != BERTH_TOKEN_STRING) return berth_text_expected(p, "a string");
        berth_strbuf text = berth_strbuf_make(p->module->arena);
        if (berth_text__unescape(p->token.text, p->token.length, &text) >= 0)
            return berth_text_expected(p, "a string with known escapes");
        berth_vec_push(p->scratch, &list, ((berth_string){text.data, text.length}));
        berth_text_next(p);
    }
    if (list.count != count)
        return berth_text_error(p, &start, "expected %lld elements, found %u", (long long)count,
                                list.count);
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    *tensor = berth_tensor_create(p->module->arena, type->dtype, type->rank, type->dims);
    if (count) memcpy(tensor->data, list.data, (size_t)count * sizeof(*list.data));
    *out_tensor = tensor;
    return BERTH_OK;
}

static bool has_type(const berth_tensor *tensor, const berth_type *type) {
    if (tensor->dtype != type->dtype || tensor->rank != type->rank) return false;
    for (int i = 0; i < type->rank; ++i)
        if (tensor->dims[i] != type->dims[i]) return false;
    return true;
}

berth_status berth_text__parse_literal(berth_text_parser *p, berth_type_id id,
                                       const berth_tensor **out_tensor) {
    berth_type type = *berth_type_get(p->module, id);
    int64_t count = 0;
    if (!berth_type_is_static(&type) || type.layout)
        return berth_text_expected(p, "a static type without layout before a literal");
    berth_status status = berth_shape_size_bytes(type.dtype, type.rank, type.dims, &count, NULL);
    if (status)
        return berth_status_prefix(status, "%s:%u:%u", p->file_name, p->token.line,
                                   p->token.column);
    if (berth_text_is(p, "(") && type.dtype == BERTH_DTYPE_STRING)
        return parse_strings(p, &type, count, out_tensor);
    if (berth_text_is(p, "(")) return parse_elements(p, &type, count, out_tensor);
    const berth_text_meta_value *meta = NULL;
    berth_token start = p->token;
    BERTH_TRY(berth_text__parse_meta_ref(p, &meta));
    if (!meta->tensor || !has_type(meta->tensor, &type))
        return berth_text_error(p, &start, "expected data of the type before it");
    *out_tensor = meta->tensor;
    return BERTH_OK;
}

// ---- lists --------------------------------------------------------------------------------------

typedef struct value_list {
    berth_attr_kind kind;
    BERTH_VEC(int64_t) ints;
    BERTH_VEC(double) floats;
    BERTH_VEC(berth_str_id) strings;
} value_list;

static berth_status parse_list_item(berth_text_parser *p, value_list *list, bool first) {
    const char *text = NULL;
    if (p->token.kind == BERTH_TOKEN_STRING &&
        ((first && list->kind == BERTH_ATTR_INTS) || list->kind == BERTH_ATTR_STRINGS)) {
        list->kind = BERTH_ATTR_STRINGS;
        BERTH_TRY(berth_text_parse_string(p, &text));
        berth_vec_push(p->scratch, &list->strings, berth_module_intern(p->module, text));
        return BERTH_OK;
    }
    if (list->kind == BERTH_ATTR_STRINGS) return berth_text_expected(p, "a string");
    berth_lexer start = p->lexer;
    berth_token token = p->token;
    double number = 0;
    int64_t integer = 0;
    if (berth_text_is(p, "-")) berth_text_next(p);
    bool is_int = p->token.kind == BERTH_TOKEN_INT;
    p->lexer = start;
    p->token = token;
    if (is_int && list->kind == BERTH_ATTR_INTS) {
        BERTH_TRY(berth_text_parse_int(p, &integer));
        berth_vec_push(p->scratch, &list->ints, integer);
        number = (double)integer;
    } else {
        list->kind = BERTH_ATTR_FLOATS;
        BERTH_TRY(berth_text_parse_float(p, &number));
    }
    berth_vec_push(p->scratch, &list->floats, number);
    return BERTH_OK;
}

// Integers with a float among them are floats.
static berth_status parse_list(berth_text_parser *p, berth_attr_kind kind, berth_attr *out) {
    value_list list = {.kind = kind};
    BERTH_TRY(berth_text_expect(p, "["));
    for (bool first = true; !berth_text_accept(p, "]"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        BERTH_TRY(parse_list_item(p, &list, first));
    }
    berth_arena *arena = p->module->arena;
    out->kind = list.kind;
    if (list.kind == BERTH_ATTR_INTS) {
        out->count = list.ints.count;
        out->ints = berth_arena_copy(arena, list.ints.data, out->count * sizeof(int64_t));
    } else if (list.kind == BERTH_ATTR_FLOATS) {
        out->count = list.floats.count;
        out->floats = berth_arena_copy(arena, list.floats.data, out->count * sizeof(double));
    } else {
        out->count = list.strings.count;
        out->strings =
            berth_arena_copy(arena, list.strings.data, out->count * sizeof(berth_str_id));
    }
    return BERTH_OK;
}

// ---- opaque values ------------------------------------------------------------------------------

berth_status berth_text__make_opaque(berth_module *module, const berth_dialect_registry *registry,
                                     const char *kind, const char *data, size_t length,
                                     berth_attr *out) {
    const berth_opaque_ops *const *known = registry ? registry->opaque_ops : NULL;
    const berth_opaque_ops *ops = NULL;
    for (; known && *known && !ops; ++known)
        if (strcmp((*known)->kind, kind) == 0) ops = *known;
    if (!ops) ops = berth_opaque_registered(kind);
    if (ops) {
        out->kind = BERTH_ATTR_OPAQUE;
        out->opaque.ops = ops;
        if (!ops->parse)
            return berth_status_make(BERTH_UNSUPPORTED, "values of kind '%s' cannot be read", kind);
        return ops->parse(module->arena, data, length, &out->opaque.value);
    }
    *out = berth_attr_carried(module, kind, data, length);
    return BERTH_OK;
}

static berth_status parse_opaque(berth_text_parser *p, berth_attr *out) {
    const char *kind = NULL;
    const char *data = NULL;
    size_t length = 0;
    bool is_text = false;
    BERTH_TRY(berth_text_expect(p, "("));
    BERTH_TRY(berth_text_parse_string(p, &kind));
    BERTH_TRY(berth_text_expect(p, ","));
    berth_token start = p->token;
    BERTH_TRY(berth_text_parse_data(p, &data, &length, &is_text));
    berth_status status = berth_text__make_opaque(p->module, p->registry, kind, data, length, out);
    if (status)
        return berth_status_prefix(status, "%s:%u:%u", p->file_name, start.line, start.column);
    return berth_text_expect(p, ")");
}

// ---- values -------------------------------------------------------------------------------------

static berth_status parse_number(berth_text_parser *p, berth_attr *out) {
    value_list list = {.kind = BERTH_ATTR_INTS};
    BERTH_TRY(parse_list_item(p, &list, false));
    out->kind = list.kind == BERTH_ATTR_INTS ? BERTH_ATTR_INT : BERTH_ATTR_FLOAT;
    if (out->kind == BERTH_ATTR_INT)
        out->i = list.ints.data[0];
    else
        out->f = list.floats.data[0];
    return BERTH_OK;
}

// A type alone, or a literal of that type.
static berth_status parse_type_or_literal(berth_text_parser *p, berth_attr *out) {
    berth_type_id type = 0;
    BERTH_TRY(berth_text_parse_type(p, &type));
    out->kind = BERTH_ATTR_TYPE;
    out->type = type;
    if (!berth_text_is(p, "(") && !berth_text_is(p, "meta") && !berth_text_is(p, "elided"))
        return BERTH_OK;
    out->kind = BERTH_ATTR_TENSOR;
    return berth_text__parse_literal(p, type, &out->tensor);
}

static berth_status parse_dtype_or_type(berth_text_parser *p, berth_attr *out) {
    const char *name = NULL;
    berth_lexer lexer = p->lexer;
    berth_token token = p->token;
    BERTH_TRY(berth_text_token_text(p, &token, &name));
    berth_text_next(p);
    bool shape = berth_text_is(p, "[") && p->token.attached;
    berth_dtype dtype = berth_dtype_from_name(name);
    if (!shape && (dtype != BERTH_DTYPE_NONE || strcmp(name, "none") == 0)) {
        out->kind = BERTH_ATTR_DTYPE;
        out->dtype = dtype;
        return BERTH_OK;
    }
    p->lexer = lexer;
    p->token = token;
    if (dtype == BERTH_DTYPE_NONE && !berth_text_is(p, "fn") && !berth_text_is(p, "storage"))
        return berth_text_expected(p, "a value");
    return parse_type_or_literal(p, out);
}

// A device of the target may be called "f32".
static bool begins_type(const berth_text_parser *p) {
    char name[16] = "";
    if (p->token.length < sizeof(name)) memcpy(name, p->token.text, p->token.length);
    return berth_dtype_from_name(name) != BERTH_DTYPE_NONE || berth_text_is(p, "none") ||
           berth_text_is(p, "fn") || berth_text_is(p, "storage");
}

static berth_status parse_word(berth_text_parser *p, berth_attr *out) {
    bool is_true = berth_text_is(p, "true");
    if (is_true || berth_text_is(p, "false")) {
        *out = (berth_attr){.kind = BERTH_ATTR_INT, .i = is_true};
        berth_text_next(p);
        return BERTH_OK;
    }
    if (berth_text_is(p, "nan") || berth_text_is(p, "inf")) return parse_number(p, out);
    if (berth_text_accept(p, "floats")) return parse_list(p, BERTH_ATTR_FLOATS, out);
    if (berth_text_accept(p, "strings")) return parse_list(p, BERTH_ATTR_STRINGS, out);
    if (berth_text_accept(p, "opaque")) return parse_opaque(p, out);
    if (berth_text_is(p, "no_function")) {
        out->kind = BERTH_ATTR_FUNCTION;
        return berth_text_parse_function_ref(p, &out->function);
    }
    if (berth_text__is_device(p) && !begins_type(p)) {
        out->kind = BERTH_ATTR_DEVICE;
        return berth_text__parse_device(p, &out->device);
    }
    return parse_dtype_or_type(p, out);
}

static berth_status parse_value(berth_text_parser *p, berth_attr *out) {
    const char *text = NULL;
    switch (p->token.kind) {
    case BERTH_TOKEN_INT:
    case BERTH_TOKEN_FLOAT: return parse_number(p, out);
    case BERTH_TOKEN_WORD: return parse_word(p, out);
    case BERTH_TOKEN_STRING:
        BERTH_TRY(berth_text_parse_string(p, &text));
        out->kind = BERTH_ATTR_STRING;
        out->s = berth_module_intern(p->module, text);
        return BERTH_OK;
    case BERTH_TOKEN_GLOBAL:
        out->kind = BERTH_ATTR_FUNCTION;
        return berth_text_parse_function_ref(p, &out->function);
    default: break;
    }
    if (berth_text_is(p, "[")) return parse_list(p, BERTH_ATTR_INTS, out);
    if (berth_text_is(p, "-")) return parse_number(p, out);
    if (berth_text_is(p, "(") || berth_text_is(p, "?")) return parse_type_or_literal(p, out);
    if (berth_text_is(p, "*")) {
        out->kind = BERTH_ATTR_DEVICE;
        return berth_text__parse_device(p, &out->device);
    }
    return berth_text_expected(p, "a value");
}

// Looks after the brace: a name and '='.
static bool at_attrs(berth_text_parser *p) {
    if (!berth_text_is(p, "{")) return false;
    berth_lexer ahead = p->lexer;
    berth_token name = berth_lexer_next(&ahead);
    berth_token equals = berth_lexer_next(&ahead);
    return (name.kind == BERTH_TOKEN_WORD || name.kind == BERTH_TOKEN_STRING) &&
           equals.kind == BERTH_TOKEN_PUNCT && equals.length == 1 && *equals.text == '=';
}

berth_status berth_text_parse_attrs(berth_text_parser *p, berth_attrs *attrs) {
    if (!at_attrs(p)) return BERTH_OK;
    berth_text_next(p);
    for (bool first = true; !berth_text_accept(p, "}"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        berth_token token = p->token;
        const char *name = NULL;
        berth_attr value = {0};
        if (token.kind != BERTH_TOKEN_WORD && token.kind != BERTH_TOKEN_STRING)
            return berth_text_expected(p, "an attribute's name");
        BERTH_TRY(berth_text_token_text(p, &token, &name));
        berth_text_next(p);
        if (berth_attrs_find(p->module, attrs, name))
            return berth_text_error(p, &token, "expected a new attribute, found %s again", name);
        BERTH_TRY(berth_text_expect(p, "="));
        BERTH_TRY(parse_value(p, &value));
        berth_attrs_set(p->module, attrs, name, value);
    }
    return BERTH_OK;
}
