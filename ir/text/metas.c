#include "ir/text/metas.h"

#include <string.h>

#include "base/base64.h"
#include "ir/string_literal.h"
#include "ir/text/literal.h"

static berth_status decode_error(berth_text_parser *p, const berth_token *token) {
    return berth_text_error(p, token, "expected base64 in groups of four characters");
}

// Strings of base64, each complete in itself.
static berth_status parse_base64(berth_text_parser *p, berth_strbuf *out) {
    if (p->token.kind != BERTH_TOKEN_STRING) return berth_text_expected(p, "a string of base64");
    for (; p->token.kind == BERTH_TOKEN_STRING; berth_text_next(p))
        if (!berth_base64_decode(p->token.text, p->token.length, out))
            return decode_error(p, &p->token);
    return BERTH_OK;
}

static berth_status parse_tensor(berth_text_parser *p, berth_text_meta_value *out) {
    berth_type_id id = 0;
    size_t size = 0;
    berth_token start = p->token;
    BERTH_TRY(berth_text_parse_type(p, &id));
    berth_type type = *berth_type_get(p->module, id);
    if (!berth_type_is_static(&type) || type.layout)
        return berth_text_error(p, &start, "expected a static type without layout");
    berth_status status = berth_shape_size_bytes(type.dtype, type.rank, type.dims, NULL, &size);
    if (status)
        return berth_status_prefix(status, "%s:%u:%u", p->file_name, start.line, start.column);
    berth_arena *own = berth_arena_create_child(p->scratch);
    berth_strbuf bytes = berth_strbuf_make(own);
    BERTH_TRY(parse_base64(p, &bytes));
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    if (type.dtype == BERTH_DTYPE_STRING) {
        if (!berth_string_literal_unpack(p->module->arena, bytes.data, bytes.length, type.rank,
                                         type.dims, tensor))
            return berth_text_error(p, &start, "expected the lengths and bytes of its strings");
        berth_arena_destroy(own);
        out->tensor = tensor;
        return BERTH_OK;
    }
    if (bytes.length != size)
        return berth_text_error(p, &start, "expected %zu bytes, found %zu", size, bytes.length);
    *tensor = berth_tensor_create(p->module->arena, type.dtype, type.rank, type.dims);
    if (size) memcpy(tensor->data, bytes.data, size);
    berth_arena_destroy(own);
    out->tensor = tensor;
    out->data = tensor->data;
    out->size_bytes = size;
    return BERTH_OK;
}

static berth_status parse_text(berth_text_parser *p, berth_text_meta_value *out) {
    berth_strbuf text = berth_strbuf_make(p->module->arena);
    if (p->token.kind != BERTH_TOKEN_STRING) return berth_text_expected(p, "a string");
    for (; p->token.kind == BERTH_TOKEN_STRING; berth_text_next(p))
        if (berth_text__unescape(p->token.text, p->token.length, &text) >= 0)
            return berth_text_error(p, &p->token,
                                    "expected no other escapes than \\\" \\\\ \\n \\t \\xHH");
    *out = (berth_text_meta_value){
        .data = berth_strbuf_text(&text), .size_bytes = text.length, .is_text = true};
    return BERTH_OK;
}

static berth_status parse_value(berth_text_parser *p, berth_text_meta_value *out) {
    if (berth_text_accept(p, "text")) return parse_text(p, out);
    if (!berth_text_accept(p, "bytes")) return parse_tensor(p, out);
    berth_strbuf bytes = berth_strbuf_make(p->module->arena);
    BERTH_TRY(parse_base64(p, &bytes));
    *out = (berth_text_meta_value){.data = berth_strbuf_text(&bytes), .size_bytes = bytes.length};
    return BERTH_OK;
}

berth_status berth_text__parse_metas(berth_text_parser *p) {
    berth_text_metas *metas = p->metas;
    BERTH_TRY(berth_text_expect(p, "{"));
    while (!berth_text_accept(p, "}")) {
        const char *name = NULL;
        berth_text_meta_value value = {0};
        if (p->token.kind != BERTH_TOKEN_WORD) return berth_text_expected(p, "a name or '}'");
        BERTH_TRY(berth_text_token_text(p, &p->token, &name));
        uint32_t id = berth_intern(metas->names, name);
        if (id <= metas->values.count) return berth_text_expected(p, "a new name");
        berth_text_next(p);
        BERTH_TRY(berth_text_expect(p, "="));
        BERTH_TRY(parse_value(p, &value));
        berth_vec_push(p->scratch, &metas->values, value);
    }
    return BERTH_OK;
}

berth_status berth_text__parse_meta_ref(berth_text_parser *p,
                                        const berth_text_meta_value **out_value) {
    *out_value = NULL;
    const char *name = NULL;
    if (berth_text_is(p, "elided"))
        return berth_text_error(p, &p->token,
                                "expected a value, found that it was left out when printed");
    if (!berth_text_accept(p, "meta")) return berth_text_expected(p, "meta(...)");
    BERTH_TRY(berth_text_expect(p, "("));
    if (p->token.kind != BERTH_TOKEN_WORD) return berth_text_expected(p, "a name");
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    uint32_t id = berth_intern(p->metas->names, name);
    if (id > p->metas->values.count) return berth_text_expected(p, "a name of the section `meta`");
    *out_value = &p->metas->values.data[id - 1];
    berth_text_next(p);
    return berth_text_expect(p, ")");
}

berth_status berth_text_parse_data(berth_text_parser *p, const char **out_data,
                                   size_t *out_size_bytes, bool *out_is_text) {
    const berth_text_meta_value *meta = NULL;
    berth_token start = p->token;
    BERTH_TRY(berth_text__parse_meta_ref(p, &meta));
    if (meta->tensor) return berth_text_error(p, &start, "expected text or bytes, found a tensor");
    *out_data = meta->data;
    *out_size_bytes = meta->size_bytes;
    *out_is_text = meta->is_text;
    return BERTH_OK;
}
