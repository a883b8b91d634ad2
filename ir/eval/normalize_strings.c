// string_normalizer: stop words are left out, letters become small or large. Letters are characters of
// Unicode in UTF-8, in the C library's mapping of its locale C.UTF-8; no language's own rules, so the
// attribute `locale` makes no difference.
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "ir/eval/strings.h"

typedef enum letter_case { CASE_KEPT, CASE_LOWER, CASE_UPPER } letter_case;

typedef struct normalizer {
    berth_eval_context *ctx;
    locale_t locale;
    letter_case change;   // of what is given out
    letter_case compare;  // of what is compared with stop words
    const berth_string *stop;
    uint32_t stop_count;
} normalizer;

// Bytes of the character at `at` and its number; 0 where no UTF-8 stands there.
static size_t decode(berth_string s, size_t at, uint32_t *out) {
    const unsigned char *p = (const unsigned char *)s.data + at;
    size_t left = s.length - at;
    size_t size = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (size == 0 || size > left || p[0] > 0xf4) return 0;
    uint32_t value = size == 1 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (p[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < least[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
    *out = value;
    return size;
}

static size_t encode(uint32_t value, char out[4]) {
    size_t size = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; value >>= 6) out[i] = (char)(0x80 | (value & 0x3f));
    out[0] = (char)(size == 1 ? value : (0xf00u >> size & 0xff) | value);
    return size;
}

static berth_status with_case(const normalizer *n, berth_string s, letter_case wanted,
                              berth_string *out) {
    *out = s;
    if (wanted == CASE_KEPT || s.length == 0) return BERTH_OK;
    if (s.length > SIZE_MAX / 4)
        return berth_status_make(BERTH_OUT_OF_RANGE, "a string is longer than memory can be");
    char *data = berth_arena_alloc_unset(n->ctx->arena, s.length * 2, 1);
    size_t length = 0;
    for (size_t at = 0; at < s.length;) {
        uint32_t value = 0;
        size_t size = decode(s, at, &value);
        if (size == 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "byte %zu of \"%.*s\" is not UTF-8: its letters have no case",
                                     at, berth_eval__shown(s), s.data);
        wint_t other = wanted == CASE_LOWER ? towlower_l((wint_t)value, n->locale)
                                            : towupper_l((wint_t)value, n->locale);
        length += encode((uint32_t)other, data + length);
        at += size;
    }
    *out = (berth_string){data, length};
    return BERTH_OK;
}

static bool is_stop_word(const normalizer *n, berth_string s) {
    for (uint32_t i = 0; i < n->stop_count; ++i)
        if (berth_string_equal(s, n->stop[i])) return true;
    return false;
}

static berth_status read_case(const berth_eval_context *ctx, letter_case *out) {
    const char *text = berth_eval__string(ctx, "case_change_action", "NONE");
    static const char *const names[] = {"NONE", "LOWER", "UPPER"};
    for (int i = 0; i < 3; ++i) {
        *out = (letter_case)i;
        if (strcmp(text, names[i]) == 0) return BERTH_OK;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "case_change_action is \"%.40s\"; NONE, LOWER or UPPER is expected",
                             text);
}

static berth_status read_stop_words(normalizer *n) {
    const berth_attr *attr = berth_attrs_find(n->ctx->module, &n->ctx->op->attrs, "stopwords");
    if (!attr || attr->kind != BERTH_ATTR_STRINGS) return BERTH_OK;
    berth_string *stop = berth_arena_new_array(n->ctx->scratch, berth_string, attr->count + 1);
    for (uint32_t i = 0; i < attr->count; ++i)
        BERTH_TRY(with_case(n, berth_string_of(berth_module_str(n->ctx->module, attr->strings[i])),
                            n->compare, &stop[i]));
    n->stop = stop;
    n->stop_count = attr->count;
    return BERTH_OK;
}

static berth_status normalize(normalizer *n) {
    const berth_tensor *x = &n->ctx->inputs[0];
    int64_t count = berth_tensor_element_count(x), kept = 0;
    berth_string *words = berth_arena_new_array(n->ctx->scratch, berth_string, (size_t)count + 1);
    BERTH_TRY(read_stop_words(n));
    for (int64_t i = 0; i < count; ++i) {
        berth_string word = berth_tensor_strings(x)[i], compared;
        BERTH_TRY(with_case(n, word, n->compare, &compared));
        if (is_stop_word(n, compared)) continue;
        if (n->change == n->compare)
            words[kept++] = compared;
        else
            BERTH_TRY(with_case(n, word, n->change, &words[kept++]));
    }
    if (kept == 0) words[kept++] = (berth_string){NULL, 0};  // as ONNX wants it
    int64_t dims[2] = {x->rank == 2 ? 1 : kept, kept};
    BERTH_TRY(berth_eval__output(n->ctx, 0, BERTH_DTYPE_STRING, x->rank, dims));
    memcpy(n->ctx->outputs[0].data, words, (size_t)kept * sizeof(*words));
    return BERTH_OK;
}

static void free_locale(void *locale) {
    freelocale((locale_t)locale);
}

berth_status berth_eval__string_normalizer(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    normalizer n = {.ctx = ctx};
    BERTH_TRY(berth_eval__need_strings(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 1, 2));
    if (x->rank == 2 && x->dims[0] != 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%lld rows; [C] or [1,C] is expected",
                                 (long long)x->dims[0]);
    BERTH_TRY(read_case(ctx, &n.change));
    if (berth_eval__int(ctx, "is_case_sensitive", 0) == 0)
        n.compare = n.change == CASE_UPPER ? CASE_UPPER : CASE_LOWER;
    if (n.change != CASE_KEPT || n.compare != CASE_KEPT) {
        n.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
        if (!n.locale)
            return berth_status_make(BERTH_UNAVAILABLE,
                                     "this system has no locale C.UTF-8, which says what small and "
                                     "large letters are");
        berth_arena_defer(ctx->scratch, free_locale, n.locale);
    }
    return normalize(&n);
}
