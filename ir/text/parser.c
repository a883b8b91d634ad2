// Tokens, messages, labels, and the numbers, types and devices that all dialects share.
#include "ir/text/parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/device_names.h"
#include "ir/dim.h"
#include "ir/text/literal.h"

// ---- tokens -------------------------------------------------------------------------------------

void berth_text_next(berth_text_parser *p) {
    p->token = berth_lexer_next(&p->lexer);
}

bool berth_text_is(const berth_text_parser *p, const char *text) {
    return (p->token.kind == BERTH_TOKEN_WORD || p->token.kind == BERTH_TOKEN_PUNCT) &&
           strlen(text) == p->token.length && memcmp(text, p->token.text, p->token.length) == 0;
}

bool berth_text_accept(berth_text_parser *p, const char *text) {
    if (!berth_text_is(p, text)) return false;
    berth_text_next(p);
    return true;
}

berth_status berth_text_error(const berth_text_parser *p, const berth_token *token,
                              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status =
        berth_status_make_at_v(BERTH_INVALID_ARGUMENT, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    return berth_status_prefix(status, "%s:%u:%u", p->file_name, token->line, token->column);
}

berth_status berth_text_expected(berth_text_parser *p, const char *what) {
    const berth_token *t = &p->token;
    if (t->kind == BERTH_TOKEN_BAD)
        return berth_text_error(p, t, "expected %s, found %s", what, t->problem);
    if (t->kind == BERTH_TOKEN_END)
        return berth_text_error(p, t, "expected %s, found the end of the text", what);
    enum { most = 40 };
    static const char *const signs[] = {
        [BERTH_TOKEN_LABEL] = "%",  [BERTH_TOKEN_GLOBAL] = "@", [BERTH_TOKEN_LOC] = "#",
        [BERTH_TOKEN_SHARED] = "$", [BERTH_TOKEN_STRING] = "",  [BERTH_TOKEN_PUNCT] = ""};
    const char *sign = signs[t->kind < BERTH_TOKEN_PUNCT ? t->kind : BERTH_TOKEN_PUNCT];
    bool string = t->kind == BERTH_TOKEN_STRING;
    int length = t->length < most ? (int)t->length : most;
    return berth_text_error(p, t, "expected %s, found %s'%s%.*s%s'", what,
                            string ? "the string " : "", sign ? sign : "", length, t->text,
                            t->length > most ? "..." : "");
}

berth_status berth_text_expect(berth_text_parser *p, const char *punct) {
    if (berth_text_accept(p, punct)) return BERTH_OK;
    char what[16];
    snprintf(what, sizeof(what), "'%s'", punct);
    return berth_text_expected(p, what);
}

berth_status berth_text_enter(berth_text_parser *p) {
    if (++p->depth > p->most_depth)
        return berth_text_error(p, &p->token, "nested more than %d levels deep",
                                (int)p->most_depth);
    return BERTH_OK;
}

void berth_text_leave(berth_text_parser *p) {
    p->depth--;
}

berth_status berth_text_token_text(berth_text_parser *p, const berth_token *token,
                                   const char **out_text) {
    if (token->kind != BERTH_TOKEN_STRING && !token->quoted) {
        *out_text = berth_arena_strndup(p->scratch, token->text, token->length);
        return BERTH_OK;
    }
    berth_strbuf out = berth_strbuf_make(p->scratch);
    ptrdiff_t wrong = berth_text__unescape(token->text, token->length, &out);
    *out_text = berth_strbuf_text(&out);
    if (wrong >= 0)
        return berth_text_error(
            p, token, "expected one of the escapes \\\" \\\\ \\n \\t \\xHH, found '%.*s'",
            (int)(token->length - (size_t)wrong > 4 ? 4 : token->length - (size_t)wrong),
            token->text + wrong);
    if (strlen(*out_text) != out.length)
        return berth_text_error(p, token, "expected a name or text, found a NUL character in it");
    return BERTH_OK;
}

// ---- labels -------------------------------------------------------------------------------------

static bool is_number(const berth_token *label) {
    return !label->quoted && label->length && label->text[0] >= '0' && label->text[0] <= '9';
}

berth_status berth_text_label_name(berth_text_parser *p, const berth_token *label,
                                   const char **out_name) {
    *out_name = "";
    return is_number(label) ? BERTH_OK : berth_text_token_text(p, label, out_name);
}

static berth_status find_key(berth_text_parser *p, berth_text_symbols *symbols,
                             const berth_token *label, uint32_t *out_key) {
    const char *name = label->text;
    size_t length = label->length;
    if (label->quoted) {
        BERTH_TRY(berth_text_token_text(p, label, &name));
        length = strlen(name);
    }
    if (!symbols->keys) {
        symbols->keys = berth_interner_create(p->scratch);
        symbols->key = berth_strbuf_make(p->scratch);
    }
    symbols->key.length = 0;
    berth_strbuf_addf(&symbols->key, is_number(label) ? "#" : "%%%u~", label->number);
    berth_strbuf_add_n(&symbols->key, name, length);
    *out_key = berth_intern(symbols->keys, berth_strbuf_text(&symbols->key));
    while (symbols->ids.count <= *out_key) berth_vec_push(p->scratch, &symbols->ids, BERTH_NONE);
    return BERTH_OK;
}

berth_status berth_text_define(berth_text_parser *p, berth_text_symbols *symbols,
                               const berth_token *label, uint32_t id) {
    uint32_t key = 0;
    BERTH_TRY(find_key(p, symbols, label, &key));
    if (symbols->ids.data[key] != BERTH_NONE)
        return berth_text_error(p, label, "expected a new name, found %%%.*s again",
                                (int)label->length, label->text);
    symbols->ids.data[key] = id;
    return BERTH_OK;
}

void berth_text_undefine(berth_text_parser *p, berth_text_symbols *symbols,
                         const berth_token *label) {
    uint32_t key = 0;
    berth_status status = find_key(p, symbols, label, &key);
    if (!status) symbols->ids.data[key] = BERTH_NONE;
    berth_status_free(status);
}

berth_status berth_text_lookup(berth_text_parser *p, berth_text_symbols *symbols,
                               const berth_token *label, uint32_t *out_id) {
    uint32_t key = 0;
    BERTH_TRY(find_key(p, symbols, label, &key));
    *out_id = symbols->ids.data[key];
    if (*out_id == BERTH_NONE)
        return berth_text_error(p, label, "expected a value defined before, found %%%.*s",
                                (int)label->length, label->text);
    return BERTH_OK;
}

// ---- numbers and strings ------------------------------------------------------------------------

// Digits of a number are followed by something else in the text or by its end, so they are copied.
static berth_status number_text(berth_text_parser *p, char out[64]) {
    if (p->token.length >= 62)
        return berth_text_error(p, &p->token, "expected a number of at most 60 characters");
    memcpy(out, p->token.text, p->token.length);
    out[p->token.length] = 0;
    return BERTH_OK;
}

berth_status berth_text_parse_int(berth_text_parser *p, int64_t *out_value) {
    char text[64] = "-";
    bool negative = berth_text_accept(p, "-");
    if (p->token.kind != BERTH_TOKEN_INT) return berth_text_expected(p, "an integer");
    BERTH_TRY(number_text(p, text + negative));
    errno = 0;
    *out_value = strtoll(text, NULL, 10);
    if (errno) return berth_text_error(p, &p->token, "expected an integer of 64 bits");
    berth_text_next(p);
    return BERTH_OK;
}

berth_status berth_text_parse_float(berth_text_parser *p, double *out_value) {
    char text[64] = "-";
    bool negative = berth_text_accept(p, "-");
    bool word = berth_text_is(p, "nan") || berth_text_is(p, "inf");
    if (!word && p->token.kind != BERTH_TOKEN_INT && p->token.kind != BERTH_TOKEN_FLOAT)
        return berth_text_expected(p, "a number");
    BERTH_TRY(number_text(p, text + negative));
    *out_value = strtod(text, NULL);
    berth_text_next(p);
    return BERTH_OK;
}

berth_status berth_text_parse_string(berth_text_parser *p, const char **out_text) {
    if (p->token.kind != BERTH_TOKEN_STRING) return berth_text_expected(p, "a string");
    BERTH_TRY(berth_text_token_text(p, &p->token, out_text));
    berth_text_next(p);
    return BERTH_OK;
}

// ---- types --------------------------------------------------------------------------------------

static bool goes_on(const berth_text_parser *p, int depth) {
    if (p->token.kind == BERTH_TOKEN_END || p->token.kind == BERTH_TOKEN_BAD) return false;
    return depth > 0 || (!berth_text_is(p, ",") && !berth_text_is(p, "]"));
}

// "2*N+1": from the token `start`, the first of which was read, to the next comma or bracket.
static berth_status parse_expression(berth_text_parser *p, const berth_token *start,
                                     int64_t *out_dim) {
    const char *end = start->text + start->length;
    int depth = start->kind == BERTH_TOKEN_PUNCT && *start->text == '(';
    for (; goes_on(p, depth); berth_text_next(p)) {
        depth += berth_text_is(p, "(") - berth_text_is(p, ")");
        end = p->token.text + p->token.length;
    }
    berth_status status =
        berth_dim_parse(p->module, start->text, (size_t)(end - start->text), out_dim);
    if (!status) return BERTH_OK;
    berth_status placed = berth_text_error(p, start, "%s", berth_status_message(status));
    berth_status_free(status);
    return placed;
}

static berth_status parse_dim(berth_text_parser *p, int64_t *out_dim) {
    const char *name = NULL;
    const berth_token start = p->token;
    if (berth_text_accept(p, "?")) {
        *out_dim = BERTH_DIM_UNKNOWN;
        return BERTH_OK;
    }
    if (p->token.kind == BERTH_TOKEN_INT) {
        BERTH_TRY(berth_text_parse_int(p, out_dim));
        return goes_on(p, 0) ? parse_expression(p, &start, out_dim) : BERTH_OK;
    }
    bool named = p->token.kind == BERTH_TOKEN_WORD || p->token.kind == BERTH_TOKEN_STRING;
    if (!named && !berth_text_is(p, "(") && !berth_text_is(p, "-"))
        return berth_text_expected(p, "an extent, a symbol or '?'");
    if (named) BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    berth_text_next(p);
    if (start.kind != BERTH_TOKEN_STRING && (!named || goes_on(p, 0)))
        return parse_expression(p, &start, out_dim);
    if (*name == '=')
        return berth_status_prefix(berth_dim_parse(p->module, name + 1, strlen(name + 1), out_dim),
                                   "%s:%u:%u", p->file_name, start.line, start.column);
    *out_dim = berth_dim_symbol(berth_module_intern(p->module, name));
    return BERTH_OK;
}

static berth_status parse_layout(berth_text_parser *p, berth_str_id *out_layout) {
    const char *tag = NULL;
    *out_layout = 0;
    if (!berth_text_is(p, "{") || !p->token.attached) return BERTH_OK;
    berth_text_next(p);
    if (p->token.kind != BERTH_TOKEN_WORD && p->token.kind != BERTH_TOKEN_STRING)
        return berth_text_expected(p, "a layout");
    BERTH_TRY(berth_text_token_text(p, &p->token, &tag));
    *out_layout = berth_module_intern(p->module, tag);
    berth_text_next(p);
    return berth_text_expect(p, "}");
}

berth_status berth_text_parse_shape(berth_text_parser *p, int *out_rank,
                                    int64_t out_dims[BERTH_MAX_RANK], berth_str_id *out_layout) {
    *out_rank = 0;
    BERTH_TRY(berth_text_expect(p, "["));
    if (berth_text_accept(p, "*")) {
        *out_rank = -1;
        BERTH_TRY(berth_text_expect(p, "]"));
        return parse_layout(p, out_layout);
    }
    while (!berth_text_accept(p, "]")) {
        if (*out_rank) BERTH_TRY(berth_text_expect(p, ","));
        if (*out_rank == BERTH_MAX_RANK)
            return berth_text_error(p, &p->token, "expected at most %d dimensions", BERTH_MAX_RANK);
        BERTH_TRY(parse_dim(p, &out_dims[*out_rank]));
        (*out_rank)++;
    }
    return parse_layout(p, out_layout);
}

typedef struct type_list {
    BERTH_VEC(berth_type_id) items;
} type_list;

static berth_status parse_types(berth_text_parser *p, type_list *list) {
    BERTH_TRY(berth_text_expect(p, "("));
    BERTH_TRY(berth_text_enter(p));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        berth_type_id type = 0;
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        BERTH_TRY(berth_text_parse_type(p, &type));
        berth_vec_push(p->scratch, &list->items, type);
    }
    berth_text_leave(p);
    return BERTH_OK;
}

static berth_status parse_function_type(berth_text_parser *p, berth_type_id *out_type) {
    type_list params = {{0}};
    type_list results = {{0}};
    BERTH_TRY(parse_types(p, &params));
    BERTH_TRY(berth_text_expect(p, "->"));
    BERTH_TRY(parse_types(p, &results));
    *out_type = berth_type_function(p->module, params.items.data, params.items.count,
                                    results.items.data, results.items.count);
    return BERTH_OK;
}

berth_status berth_text_parse_type(berth_text_parser *p, berth_type_id *out_type) {
    *out_type = 0;
    if (berth_text_is(p, "(")) {
        type_list fields = {{0}};
        BERTH_TRY(parse_types(p, &fields));
        *out_type = berth_type_tuple(p->module, fields.items.data, fields.items.count);
        return BERTH_OK;
    }
    if (berth_text_accept(p, "fn")) return parse_function_type(p, out_type);
    if (berth_text_accept(p, "storage")) {
        *out_type = berth_type_storage(p->module);
        return BERTH_OK;
    }
    bool unknown = berth_text_is(p, "?");
    const char *name = NULL;
    if (!unknown && p->token.kind != BERTH_TOKEN_WORD) return berth_text_expected(p, "a type");
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    berth_dtype dtype = unknown ? BERTH_DTYPE_NONE : berth_dtype_from_name(name);
    if (!unknown && dtype == BERTH_DTYPE_NONE) return berth_text_expected(p, "a type");
    berth_text_next(p);
    if (unknown && !(berth_text_is(p, "[") && p->token.attached)) return BERTH_OK;
    int rank = 0;
    int64_t dims[BERTH_MAX_RANK] = {0};
    berth_str_id layout = 0;
    BERTH_TRY(berth_text_parse_shape(p, &rank, dims, &layout));
    *out_type = berth_type_tensor_layout(p->module, dtype, rank, dims, layout);
    return BERTH_OK;
}

// ---- devices, locations, functions --------------------------------------------------------------

static const struct berth_multi_target *target_of(const berth_text_parser *p) {
    return p->registry ? p->registry->target : NULL;
}

// Devices have their own tokens: opencl:0@local#<32 hexadecimal digits>, gpu-0@local.
static size_t device_length(const berth_text_parser *p) {
    const char *text = p->token.text;
    if (p->token.kind != BERTH_TOKEN_WORD && p->token.kind != BERTH_TOKEN_INT &&
        !berth_text_is(p, "*"))
        return 0;
    return berth_device_name_length(target_of(p), text,
                                    (size_t)(p->lexer.text + p->lexer.length - text));
}

bool berth_text__is_device(const berth_text_parser *p) {
    return device_length(p) > 0;
}

berth_status berth_text__parse_device(berth_text_parser *p, berth_device_id *out_device) {
    const char *text = p->token.text;
    size_t length = device_length(p);
    if (!length && p->token.kind != BERTH_TOKEN_WORD) return berth_text_expected(p, "a device");
    if (!length) length = p->token.length;
    const char *name = berth_arena_strndup(p->scratch, text, length);
    berth_status status = berth_device_name_read(target_of(p), p->module, name, out_device);
    if (status)
        return berth_status_prefix(status, "%s:%u:%u", p->file_name, p->token.line,
                                   p->token.column);
    p->lexer.offset = (size_t)(text - p->lexer.text) + length;
    berth_text_next(p);
    return BERTH_OK;
}

berth_status berth_text_parse_on_device(berth_text_parser *p, berth_device_id *out_device) {
    *out_device = 0;
    return berth_text_accept(p, "on") ? berth_text__parse_device(p, out_device) : BERTH_OK;
}

berth_status berth_text_parse_loc(berth_text_parser *p, const berth_token *token,
                                  berth_loc_id *out_loc) {
    *out_loc = 0;
    if (p->token.kind == BERTH_TOKEN_LOC) {
        if (p->token.number > p->locs.count)
            return berth_text_expected(p, "a number of the section `locations`");
        if (p->token.number) *out_loc = p->locs.data[p->token.number - 1];
        berth_text_next(p);
    } else if (!p->has_locations) {
        *out_loc = berth_loc_text(p->module, p->file_name, token->line, token->column);
    }
    return BERTH_OK;
}

berth_status berth_text_parse_function_ref(berth_text_parser *p, berth_func_id *out_function) {
    const char *name = NULL;
    *out_function = BERTH_NONE;
    if (berth_text_accept(p, "no_function")) return BERTH_OK;
    if (p->token.kind != BERTH_TOKEN_GLOBAL) return berth_text_expected(p, "a function (@name)");
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    *out_function = berth_module_find_function(p->module, name);
    if (*out_function == BERTH_NONE)
        return berth_text_expected(p, "the name of a function of this module");
    berth_text_next(p);
    return BERTH_OK;
}
