#include "compiler/codegen/c_plain_helpers.h"

#include <ctype.h>
#include <string.h>

#include "compiler/codegen/c_plain_products.h"
#include "compiler/codegen/c_preamble.h"

#define MAX_PARAMETERS 8

// A macro of the preamble, always with parameters.
typedef struct macro {
    const char *name;
    const char *parameters[MAX_PARAMETERS];
    uint32_t parameter_count;
    const char *body;
} macro;

// A function, with the comment in front of it and the #if around it.
typedef struct helper {
    const char *name;
    const char *text;
    bool used;
} helper;

typedef struct reader {
    berth_arena *arena;
    BERTH_VEC(macro) macros;
    BERTH_VEC(helper) helpers;
    berth_strbuf flat;  // the preamble without macros
} reader;

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *at) {
    size_t length = 0;
    while (is_word(at[length])) ++length;
    return length;
}

static bool is_text(const char *at, size_t length, const char *text) {
    return strlen(text) == length && memcmp(at, text, length) == 0;
}

// ---- macros -------------------------------------------------------------------------------------

// Arguments between the parentheses at `at`, with blanks around them removed; returns what follows.
static const char *read_arguments(berth_arena *arena, const char *at, const char **out,
                                  uint32_t *out_count) {
    int depth = 1;
    const char *first = ++at;
    *out_count = 0;
    for (; *at && depth; ++at) {
        depth += (*at == '(') - (*at == ')');
        bool ends = depth == 0 || (depth == 1 && *at == ',');
        if (!ends || *out_count == MAX_PARAMETERS) continue;
        const char *end = at;
        while (first < end && isspace((unsigned char)*first)) ++first;
        while (first < end && isspace((unsigned char)end[-1])) --end;
        out[(*out_count)++] = berth_arena_strndup(arena, first, (size_t)(end - first));
        first = at + 1;
    }
    return at;
}

static const macro *find_macro(const reader *r, const char *word, size_t length) {
    for (uint32_t i = 0; i < r->macros.count; ++i)
        if (is_text(word, length, r->macros.data[i].name)) return &r->macros.data[i];
    return NULL;
}

// The macro's body with arguments in place of parameters; ## joins what is beside it.
static const char *substitute(reader *r, const macro *m, const char *const *arguments) {
    berth_strbuf out = berth_strbuf_make(r->arena);
    for (const char *at = m->body; *at;) {
        size_t length = word_length(at);
        if (length == 0) {
            if (at[0] == '#' && at[1] == '#')
                at += 2;
            else
                berth_strbuf_add_n(&out, at++, 1);
            continue;
        }
        uint32_t which = 0;
        while (which < m->parameter_count && !is_text(at, length, m->parameters[which])) ++which;
        if (which < m->parameter_count)
            berth_strbuf_add(&out, arguments[which]);
        else
            berth_strbuf_add_n(&out, at, length);
        at += length;
    }
    return berth_strbuf_text(&out);
}

// Macros of the preamble use only those defined before them, so this ends.
static void expand(reader *r, const char *text, berth_strbuf *out) {
    for (const char *at = text; *at;) {
        size_t length = word_length(at);
        const macro *m = length && at[length] == '(' ? find_macro(r, at, length) : NULL;
        if (!m) {
            berth_strbuf_add_n(out, at, length ? length : 1);
            at += length ? length : 1;
            continue;
        }
        const char *arguments[MAX_PARAMETERS] = {"", "", "", "", "", "", "", ""};
        uint32_t count = 0;
        at = read_arguments(r->arena, at + length, arguments, &count);
        expand(r, substitute(r, m, arguments), out);
    }
}

static void define_macro(reader *r, const char *text) {
    macro m = {0};
    size_t length = word_length(text);
    m.name = berth_arena_strndup(r->arena, text, length);
    m.body = read_arguments(r->arena, text + length, m.parameters, &m.parameter_count);
    berth_vec_push(r->arena, &r->macros, m);
}

// ---- lines --------------------------------------------------------------------------------------

// One line, or several that a backslash joins; returns the next.
static const char *read_line(berth_arena *arena, const char *at, const char **out_line) {
    berth_strbuf line = berth_strbuf_make(arena);
    for (;;) {
        const char *end = strchr(at, '\n');
        const char *next = end ? end + 1 : at + strlen(at);
        size_t length = (size_t)((end ? end : next) - at);
        bool goes_on = length && at[length - 1] == '\\';
        berth_strbuf_add_n(&line, at, length - goes_on);
        at = next;
        if (!goes_on || !*at) break;
        berth_strbuf_add(&line, "\n");
    }
    *out_line = berth_strbuf_text(&line);
    return at;
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

// The preamble as functions, kept conditions (#if) and comments. `#ifdef` and `#ifndef` are decided:
// plain C has f64, and nothing else that the preamble asks for.
static void flatten(reader *r, const char *text) {
    enum { most = 16 };
    bool on[most] = {true}, decided[most] = {true};
    int depth = 0;
    const char *line = NULL;
    while (*text) {
        text = read_line(r->arena, text, &line);
        bool ifdef = starts(line, "#ifdef "), ifndef = starts(line, "#ifndef ");
        if (starts(line, "#if")) {
            bool known = strstr(line, "BERTH_HAS_F64") != NULL;
            if (depth + 1 < most) ++depth;
            decided[depth] = ifdef || ifndef;
            on[depth] = on[depth - 1] && (decided[depth] ? known == ifdef : true);
            if (decided[depth]) continue;
        } else if (starts(line, "#else") && decided[depth]) {
            on[depth] = on[depth - 1] && !on[depth];
            continue;
        } else if (starts(line, "#endif")) {
            bool kept = !decided[depth] && on[depth];
            if (depth) --depth;
            if (!kept) continue;
        }
        if (!on[depth]) continue;
        if (starts(line, "#define ")) {
            define_macro(r, line + strlen("#define "));
        } else {
            expand(r, line, &r->flat);
            berth_strbuf_add(&r->flat, "\n");
        }
    }
}

// ---- functions ----------------------------------------------------------------------------------

// Past the function's body, whose braces are balanced.
static const char *function_end(const char *at) {
    int depth = 0;
    for (; *at; ++at) {
        depth += (*at == '{') - (*at == '}');
        if (*at == '}' && depth == 0) return at + 1;
    }
    return at;
}

static const char *function_name(berth_arena *arena, const char *function) {
    const char *end = strchr(function, '(');
    const char *first = end;
    while (first && first > function && is_word(first[-1])) --first;
    return end ? berth_arena_strndup(arena, first, (size_t)(end - first)) : "";
}

static void split_functions(reader *r) {
    static const char mark[] = "BERTH_FN ";
    const char *at = berth_strbuf_text(&r->flat), *first = NULL;
    while (*at) {
        const char *end = at + 1;
        if (isspace((unsigned char)*at)) {
            at = end;
            continue;
        }
        if (!first) first = at;
        const char *function = starts(at, mark) ? at : NULL;
        if (starts(at, "/*")) {
            end = strstr(at, "*/") + 2;
        } else if (function) {
            end = function_end(at);
        } else if (starts(at, "#if")) {
            function = strstr(at, mark);
            end = strstr(at, "#endif") + strlen("#endif");
        }
        if (function) {
            helper h = {.name = function_name(r->arena, function),
                        .text = berth_arena_strndup(r->arena, first, (size_t)(end - first))};
            berth_vec_push(r->arena, &r->helpers, h);
            first = NULL;
        }
        at = end;
    }
}

// ---- what is used -------------------------------------------------------------------------------

// Marks what `code` names, and what that names: a helper calls only helpers in front of it.
static void mark_used(reader *r, const char *code, uint32_t count) {
    static const char prefix[] = "berth_";
    for (const char *at = code; *at;) {
        size_t length = word_length(at);
        for (uint32_t i = 0; starts(at, prefix) && i < count; ++i) {
            helper *h = &r->helpers.data[i];
            if (h->used || !is_text(at, length, h->name)) continue;
            h->used = true;
            mark_used(r, h->text, i);
        }
        at += length ? length : 1;
    }
}

// Words of GNU C and of the preamble as those of C99.
static void add_plain(const char *text, berth_strbuf *out) {
    static const char *const words[][2] = {{"BERTH_FN", "static inline"},
                                           {"BERTH_INF_F32", "INFINITY"},
                                           {"BERTH_INF_F64", "((double)INFINITY)"},
                                           {"BERTH_NAN_F32", "NAN"},
                                           {"BERTH_NAN_F64", "((double)NAN)"}};
    static const char builtin[] = "__builtin_";
    for (const char *at = text; *at;) {
        size_t length = word_length(at);
        const char *word = NULL;
        for (size_t i = 0; length && i < sizeof(words) / sizeof(words[0]); ++i)
            if (is_text(at, length, words[i][0])) word = words[i][1];
        bool is_builtin = length && starts(at, builtin);
        size_t cut = is_builtin ? strlen(builtin) : 0;
        if (word)
            berth_strbuf_add(out, word);
        else
            berth_strbuf_add_n(out, at + cut, length ? length - cut : 1);
        at += length ? length : 1;
    }
}

void berth_c_plain_add(const char *code, berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    reader r = {.arena = scratch, .flat = berth_strbuf_make(scratch)};
    berth_strbuf text = berth_strbuf_make(scratch);
    berth_c_preamble_bits(&text);
    berth_c_preamble_shared(&text);
    flatten(&r, berth_strbuf_text(&text));
    split_functions(&r);
    mark_used(&r, code, r.helpers.count);
    for (uint32_t i = 0; i < r.helpers.count; ++i) {
        if (!r.helpers.data[i].used) continue;
        const char *rounding = berth_c_plain_rounding(r.helpers.data[i].name);
        if (rounding) berth_strbuf_addf(out, "#if BERTH_DSP_ROUND\n%s#else\n", rounding);
        add_plain(r.helpers.data[i].text, out);
        berth_strbuf_add(out, rounding ? "\n#endif\n\n" : "\n\n");
    }
    add_plain(code, out);
    berth_arena_destroy(scratch);
}
