// regex_full_match, by PCRE2 (optional: BERTH_HAVE_PCRE2). ONNX asks for the language of RE2; what PCRE2
// has beyond it is refused, and a match that takes too long is an error.
#include <string.h>

#include "ir/eval/strings.h"

#ifdef BERTH_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    most_steps = 1000000,   // of one match: some tenth of a second
    most_heap_kib = 32768,  // of one match
    most_pattern = 65536
};

static berth_status refuse(const char *pattern, size_t at, const char *why) {
    return berth_status_make(BERTH_UNSUPPORTED, "pattern \"%.80s\": byte %zu: %s", pattern, at,
                             why);
}

// Letters and digits that may follow a backslash in RE2 and mean the same here.
static bool known_escape(char c) {
    bool named = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    return !named || (c && strchr("AbBdDsSwWzpPQExafnrt", c));
}

// Flags, a name, or no group at all.
static bool known_group(const char *after) {
    if (after[0] == 'P') return after[1] == '<';
    if (after[0] == '<') return after[1] != '=' && after[1] != '!';
    size_t flags = strspn(after, "imsU-");
    return after[flags] == ':' || (flags && after[flags] == ')');
}

// What RE2 does not have, outside of character classes and quoted text.
static berth_status check_pattern(const char *pattern) {
    bool in_class = false, after_repeat = false;
    for (size_t i = 0; pattern[i]; ++i) {
        char c = pattern[i];
        bool repeat = false;
        if (c == '\\') {
            if (!known_escape(pattern[i + 1]))
                return refuse(pattern, i, "an escape that RE2 does not have");
            if (pattern[i + 1] == 'Q') {
                const char *end = strstr(pattern + i, "\\E");
                i = end ? (size_t)(end - pattern) : strlen(pattern) - 2;
            }
            if (pattern[i + 1]) i++;
        } else if (in_class) {
            if (c == '[' && pattern[i + 1] == ':') {
                const char *end = strstr(pattern + i, ":]");
                if (end) i = (size_t)(end - pattern) + 1;
            } else {
                in_class = c != ']';
            }
        } else if (c == '[') {
            in_class = true;
            if (pattern[i + 1] == '^') i++;
            if (pattern[i + 1] == ']') i++;
        } else if (c == '(') {
            if (pattern[i + 1] == '*' || (pattern[i + 1] == '?' && !known_group(pattern + i + 2)))
                return refuse(pattern, i, "a group that RE2 does not have");
        } else if (c == '+' && after_repeat) {
            return refuse(pattern, i, "a possessive repetition, which RE2 does not have");
        } else {
            repeat = !after_repeat && (c == '*' || c == '+' || c == '?' || c == '}');
        }
        after_repeat = repeat;
    }
    return BERTH_OK;
}

typedef struct matcher {
    pcre2_code *code;
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    pcre2_match_data *data;
} matcher;

static void free_matcher(void *held) {
    matcher *m = held;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->match);
    pcre2_compile_context_free(m->compile);
    pcre2_code_free(m->code);
}

static berth_status prepare(const char *pattern, matcher *m) {
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED |
                       PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    char why[120] = "";
    int error = 0;
    PCRE2_SIZE at = 0;
    m->compile = pcre2_compile_context_create(NULL);
    m->match = pcre2_match_context_create(NULL);
    if (!m->compile || !m->match) return berth_status_oom();
    pcre2_set_newline(m->compile, PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(m->compile, most_pattern);
    pcre2_set_match_limit(m->match, most_steps);
    pcre2_set_depth_limit(m->match, most_steps);
    pcre2_set_heap_limit(m->match, most_heap_kib);
    m->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), options, &error, &at, m->compile);
    if (!m->code) {
        pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof(why));
        return berth_status_make(BERTH_INVALID_ARGUMENT, "pattern \"%.80s\": byte %zu: %s", pattern,
                                 (size_t)at, why);
    }
    m->data = pcre2_match_data_create(1, NULL);
    return m->data ? BERTH_OK : berth_status_oom();
}

static berth_status match_all(berth_eval_context *ctx, const matcher *m) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        berth_string s = berth_tensor_strings(x)[i];
        int found = pcre2_match(m->code, (PCRE2_SPTR)(s.length ? s.data : ""), s.length, 0, 0,
                                m->data, m->match);
        if (found == PCRE2_ERROR_NOMEMORY) return berth_status_oom();
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            return berth_status_make(
                BERTH_OUT_OF_RANGE,
                "matching element %lld, a string of %zu bytes, takes more than %d steps: write the "
                "pattern without repetitions inside repetitions",
                (long long)i, s.length, most_steps);
        // Behind bytes that are no UTF-8 it begins anew, anchored or not.
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(m->data);
        bool whole = found >= 0 && place[0] == 0 && place[1] == s.length;
        berth_tensor_set_i64(&ctx->outputs[0], i, whole);
    }
    return BERTH_OK;
}

berth_status berth_eval__regex_full_match(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    const char *pattern = berth_eval__string(ctx, "pattern", "");
    BERTH_TRY(berth_eval__need_strings(ctx, 0));
    BERTH_TRY(check_pattern(pattern));
    matcher *m = berth_arena_new(ctx->scratch, matcher);
    berth_arena_defer(ctx->scratch, free_matcher, m);
    BERTH_TRY(prepare(pattern, m));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_BOOL, x->rank, x->dims));
    return match_all(ctx, m);
}

#else

berth_status berth_eval__regex_full_match(berth_eval_context *ctx) {
    (void)ctx;
    return berth_status_make(
        BERTH_UNSUPPORTED, "this build has no regular expressions: install libpcre2-dev and build "
                           "Berth again");
}

#endif
