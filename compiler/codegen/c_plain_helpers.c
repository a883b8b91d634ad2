#include "compiler/codegen/c_plain_helpers.h"

#include <string.h>

#include "compiler/codegen/c_helpers.h"
#include "compiler/codegen/c_plain_products.h"
#include "compiler/codegen/c_preamble.h"

// Words of GNU C and of the preamble as those of C99.
static void add_plain(const char *text, berth_strbuf *out) {
    static const char *const words[][2] = {{"BERTH_FN", "static inline"},
                                           {"BERTH_INF_F32", "INFINITY"},
                                           {"BERTH_INF_F64", "((double)INFINITY)"},
                                           {"BERTH_NAN_F32", "NAN"},
                                           {"BERTH_NAN_F64", "((double)NAN)"}};
    static const char builtin[] = "__builtin_";
    for (const char *at = text; *at;) {
        size_t length = berth_c_word_length(at);
        const char *word = NULL;
        for (size_t i = 0; length && i < sizeof(words) / sizeof(words[0]); ++i)
            if (berth_c_word_is(at, length, words[i][0])) word = words[i][1];
        bool is_builtin = length && strncmp(at, builtin, strlen(builtin)) == 0;
        size_t cut = is_builtin ? strlen(builtin) : 0;
        if (word)
            berth_strbuf_add(out, word);
        else
            berth_strbuf_add_n(out, at + cut, length ? length - cut : 1);
        at += length ? length : 1;
    }
}

static void add_helper(const char *name, const char *text, berth_strbuf *out) {
    const char *rounding = berth_c_plain_rounding(name);
    if (rounding) berth_strbuf_addf(out, "#if BERTH_DSP_ROUND\n%s#else\n", rounding);
    add_plain(text, out);
    if (rounding) berth_strbuf_add(out, "\n#endif");
}

void berth_c_plain_add(const char *code, berth_strbuf *out) {
    static const char *const known[] = {"BERTH_HAS_F64", NULL};
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_strbuf text = berth_strbuf_make(scratch);
    berth_c_preamble_bits(&text);
    berth_c_preamble_shared(&text);
    berth_c_helpers *helpers = berth_c_helpers_read(berth_strbuf_text(&text), known, scratch);
    berth_c_helpers_use(helpers, code);
    berth_c_helpers_add(helpers, "\n\n", add_helper, out);
    add_plain(code, out);
    berth_arena_destroy(scratch);
}
