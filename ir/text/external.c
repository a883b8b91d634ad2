// Text of external functions:
//   external @gelu fn(f32[64])->(f32[64]) language "c" symbol "gelu_f32" code meta(m1)
//   external @gelu fn(f32[64])->(f32[64]) language "c" symbol "gelu_f32" file "gelu.c"
#include "ir/external.h"

#include "ir/text/hooks.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"

void berth_text__print_external_signature(berth_text_printer *p, berth_func_id function) {
    const berth_external *external = berth_external_get(p->module, function);
    berth_doc_text(p->doc, " ");
    berth_text_print_type(p, external->type);
    berth_doc_text(p->doc, " language ");
    berth_text_print_string(p, berth_module_str(p->module, external->language));
    berth_doc_text(p->doc, " symbol ");
    berth_text_print_string(p, berth_module_str(p->module, external->symbol));
    if (external->file) {
        berth_doc_text(p->doc, " file ");
        berth_text_print_string(p, berth_module_str(p->module, external->file));
        return;
    }
    berth_doc_text(p->doc, " code ");
    berth_text_print_data(p, external->code, external->code_size_bytes, external->is_text);
}

static berth_status parse_word_and_string(berth_text_parser *p, const char *word,
                                          berth_str_id *out) {
    const char *text = NULL;
    BERTH_TRY(berth_text_expect(p, word));
    BERTH_TRY(berth_text_parse_string(p, &text));
    *out = berth_module_intern(p->module, text);
    return BERTH_OK;
}

berth_status berth_text__parse_external_signature(berth_text_parser *p, berth_func_id function) {
    berth_external *external = berth_arena_new(p->module->arena, berth_external);
    const char *code = NULL;
    size_t size = 0;
    BERTH_TRY(berth_text_parse_type(p, &external->type));
    BERTH_TRY(parse_word_and_string(p, "language", &external->language));
    BERTH_TRY(parse_word_and_string(p, "symbol", &external->symbol));
    if (berth_text_is(p, "file")) {
        BERTH_TRY(parse_word_and_string(p, "file", &external->file));
    } else {
        BERTH_TRY(berth_text_expect(p, "code"));
        BERTH_TRY(berth_text_parse_data(p, &code, &size, &external->is_text));
    }
    external->code = (const uint8_t *)code;
    external->code_size_bytes = size;
    berth_module_function(p->module, function)->body = external;
    return BERTH_OK;
}
