#include "compiler/codegen/c_helpers.h"

#include <ctype.h>
#include <string.h>

#include "base/hash.h"

#define MAX_PARAMETERS 8
#define MAX_CONDITIONS 8  // inside each other
#define NONE UINT32_MAX

// A macro that makes functions or types, always with parameters.
typedef struct macro {
    const char *name;
    const char *parameters[MAX_PARAMETERS];
    uint32_t parameter_count;
    const char *body;
} macro;

// #if with the #elif and #else of it, as far as they were read.
typedef struct condition {
    BERTH_VEC(const char *) branches;
} condition;

// Where a helper stands: in a branch of a condition, which is in another place.
typedef struct place {
    uint32_t outer;  // NONE: at the top
    uint32_t condition, branch;
} place;

// A function, type or macro, with the comment in front of it.
typedef struct helper {
    const char *name;
    const char *text;
    uint32_t place;  // NONE: under no condition
    uint32_t next;   // in its bucket
    bool used;
} helper;

struct berth_c_helpers {
    berth_arena *arena;
    const char *const *known;
    BERTH_VEC(macro) macros;
    BERTH_VEC(condition) conditions;
    BERTH_VEC(place) places;
    BERTH_VEC(helper) helpers;
    berth_strbuf flat;  // the library without macros that make functions
    uint32_t *buckets;  // by hash of the name: first helper
    uint32_t bucket_mask;
};

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

size_t berth_c_word_length(const char *at) {
    size_t length = 0;
    while (is_word(at[length])) ++length;
    return length;
}

bool berth_c_word_is(const char *at, size_t length, const char *text) {
    return strlen(text) == length && memcmp(at, text, length) == 0;
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
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

static const macro *find_macro(const berth_c_helpers *h, const char *word, size_t length) {
    if (!starts(word, "BERTH_")) return NULL;
    for (uint32_t i = 0; i < h->macros.count; ++i)
        if (berth_c_word_is(word, length, h->macros.data[i].name)) return &h->macros.data[i];
    return NULL;
}

// The macro's body with arguments in place of parameters; ## joins what is beside it.
static const char *substitute(const berth_c_helpers *h, const macro *m,
                              const char *const *arguments) {
    berth_strbuf out = berth_strbuf_make(h->arena);
    for (const char *at = m->body; *at;) {
        size_t length = berth_c_word_length(at);
        if (length == 0) {
            if (at[0] == '#' && at[1] == '#')
                at += 2;
            else
                berth_strbuf_add_n(&out, at++, 1);
            continue;
        }
        uint32_t which = 0;
        while (which < m->parameter_count && !berth_c_word_is(at, length, m->parameters[which]))
            ++which;
        if (which < m->parameter_count)
            berth_strbuf_add(&out, arguments[which]);
        else
            berth_strbuf_add_n(&out, at, length);
        at += length;
    }
    return berth_strbuf_text(&out);
}

// Macros use only those defined before them, so this ends.
static void expand(const berth_c_helpers *h, const char *text, berth_strbuf *out) {
    for (const char *at = text; *at;) {
        size_t length = berth_c_word_length(at);
        const macro *m = length && at[length] == '(' ? find_macro(h, at, length) : NULL;
        if (!m) {
            berth_strbuf_add_n(out, at, length ? length : 1);
            at += length ? length : 1;
            continue;
        }
        const char *arguments[MAX_PARAMETERS] = {"", "", "", "", "", "", "", ""};
        uint32_t count = 0;
        at = read_arguments(h->arena, at + length, arguments, &count);
        expand(h, substitute(h, m, arguments), out);
    }
}

static bool makes_functions(const berth_c_helpers *h, const char *body) {
    for (const char *at = body; *at;) {
        size_t length = berth_c_word_length(at);
        if (length && (berth_c_word_is(at, length, "BERTH_FN") ||
                       berth_c_word_is(at, length, "typedef") || find_macro(h, at, length)))
            return true;
        at += length ? length : 1;
    }
    return false;
}

// Whether the definition is taken in; else it stays as it is.
static bool define_macro(berth_c_helpers *h, const char *text) {
    macro m = {0};
    size_t length = berth_c_word_length(text);
    if (text[length] != '(') return false;
    m.name = berth_arena_strndup(h->arena, text, length);
    m.body = read_arguments(h->arena, text + length, m.parameters, &m.parameter_count);
    if (!makes_functions(h, m.body)) return false;
    berth_vec_push(h->arena, &h->macros, m);
    return true;
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

static bool is_known(const berth_c_helpers *h, const char *name) {
    size_t length = berth_c_word_length(name);
    for (const char *const *known = h->known; *known; ++known)
        if (berth_c_word_is(name, length, *known)) return true;
    return false;
}

// #if, #else and #endif that are decided; of these nothing stays.
typedef struct decisions {
    bool on[MAX_CONDITIONS + 1], decided[MAX_CONDITIONS + 1];
    int depth;
} decisions;

// Whether the directive goes with what it decides.
static bool decide(const berth_c_helpers *h, decisions *d, const char *line) {
    static const char *const words[] = {"#ifdef BERTH_", "#ifndef BERTH_"};
    bool ifdef = starts(line, words[0]), ifndef = starts(line, words[1]);
    if (starts(line, "#if")) {
        if (d->depth < MAX_CONDITIONS) d->depth++;
        d->decided[d->depth] = ifdef || ifndef;
        bool known = d->decided[d->depth] && is_known(h, strstr(line, "BERTH_"));
        d->on[d->depth] = d->on[d->depth - 1] && (!d->decided[d->depth] || known == ifdef);
        return d->decided[d->depth];
    }
    if (starts(line, "#else") && d->decided[d->depth]) {
        d->on[d->depth] = d->on[d->depth - 1] && !d->on[d->depth];
        return true;
    }
    if (!starts(line, "#endif")) return false;
    bool gone = d->decided[d->depth];
    if (d->depth) d->depth--;
    return gone;
}

// A line that stays as it is, with its backslashes.
static void add_line(berth_c_helpers *h, const char *line) {
    for (const char *at = line; *at; ++at) {
        if (*at == '\n') berth_strbuf_add(&h->flat, "\\");
        berth_strbuf_add_n(&h->flat, at, 1);
    }
    berth_strbuf_add(&h->flat, "\n");
}

// The library as functions, types, macros that stay, conditions that stay, and comments.
static void flatten(berth_c_helpers *h, const char *text) {
    decisions d = {.on = {true}};
    const char *line = NULL;
    while (*text) {
        text = read_line(h->arena, text, &line);
        if (decide(h, &d, line) || !d.on[d.depth]) continue;
        static const char define[] = "#define ";
        if (starts(line, define) && define_macro(h, line + strlen(define))) continue;
        if (*line == '#') {
            add_line(h, line);
        } else {
            expand(h, line, &h->flat);
            berth_strbuf_add(&h->flat, "\n");
        }
    }
}

// ---- functions, types and macros ----------------------------------------------------------------

// Past the function's body, whose braces are balanced.
static const char *function_end(const char *at) {
    int depth = 0;
    for (; *at; ++at) {
        depth += (*at == '{') - (*at == '}');
        if (*at == '}' && depth == 0) return at + 1;
    }
    return at;
}

// The word in front of `end`.
static const char *word_before(berth_arena *arena, const char *text, const char *end) {
    const char *first = end;
    while (first && first > text && is_word(first[-1])) --first;
    return end ? berth_arena_strndup(arena, first, (size_t)(end - first)) : "";
}

static const char *line_end(const char *at) {
    while (*at && !(*at == '\n' && at[-1] != '\\')) ++at;
    return at;
}

static const char *typedef_name(berth_arena *arena, const char *text, const char *end) {
    const char *attribute = strstr(text, " __attribute__");
    return word_before(arena, text, attribute && attribute < end ? attribute : end - 1);
}

static void add_helper(berth_c_helpers *h, const char *name, const char *first, const char *end,
                       uint32_t at) {
    helper made = {.name = name,
                   .text = berth_arena_strndup(h->arena, first, (size_t)(end - first)),
                   .place = at};
    berth_vec_push(h->arena, &h->helpers, made);
}

// The directive at `line` opens, goes on with or ends a condition: where what follows stands.
static uint32_t next_place(berth_c_helpers *h, uint32_t at, const char *line, const char *end) {
    const char *text = berth_arena_strndup(h->arena, line, (size_t)(end - line));
    place next = {.outer = at};
    if (starts(text, "#endif")) return at == NONE ? NONE : h->places.data[at].outer;
    if (starts(text, "#if")) {
        condition opened = {{0}};
        next.condition = h->conditions.count;
        berth_vec_push(h->arena, &h->conditions, opened);
    } else {
        if (at == NONE) return at;
        next = h->places.data[at];
        next.branch++;
    }
    berth_vec_push(h->arena, &h->conditions.data[next.condition].branches, text);
    berth_vec_push(h->arena, &h->places, next);
    return h->places.count - 1;
}

static void split(berth_c_helpers *h) {
    static const char mark[] = "BERTH_FN ", define[] = "#define ", type[] = "typedef ";
    const char *at = berth_strbuf_text(&h->flat), *first = NULL;
    uint32_t where = NONE;
    while (*at) {
        const char *end = at + 1, *name = NULL;
        if (isspace((unsigned char)*at)) {
            at = end;
            continue;
        }
        if (!first) first = at;
        if (starts(at, "/*")) {
            end = strstr(at, "*/") + 2;
        } else if (starts(at, mark)) {
            end = function_end(at);
            name = word_before(h->arena, at, strchr(at, '('));
        } else if (starts(at, type)) {
            end = strchr(at, ';') + 1;
            name = typedef_name(h->arena, at, end);
        } else if (starts(at, define)) {
            end = line_end(at);
            const char *word = at + strlen(define);
            name = berth_arena_strndup(h->arena, word, berth_c_word_length(word));
        } else if (*at == '#') {
            end = line_end(at);
            where = next_place(h, where, at, end);
            first = NULL;
        }
        if (name) {
            add_helper(h, name, first, end, where);
            first = NULL;
        }
        at = end;
    }
}

// ---- what is used -------------------------------------------------------------------------------

static uint32_t *bucket_of(const berth_c_helpers *h, const char *name, size_t length) {
    return &h->buckets[berth_hash64(name, length, 0) & h->bucket_mask];
}

static void make_buckets(berth_c_helpers *h) {
    uint32_t count = 16;
    while (count < 2 * h->helpers.count) count *= 2;
    h->bucket_mask = count - 1;
    h->buckets = berth_arena_new_array(h->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) h->buckets[i] = NONE;
    for (uint32_t i = 0; i < h->helpers.count; ++i) {
        helper *made = &h->helpers.data[i];
        uint32_t *bucket = bucket_of(h, made->name, strlen(made->name));
        made->next = *bucket;
        *bucket = i;
    }
}

berth_c_helpers *berth_c_helpers_read(const char *text, const char *const *known,
                                      berth_arena *arena) {
    berth_c_helpers *h = berth_arena_new(arena, berth_c_helpers);
    *h = (berth_c_helpers){.arena = arena, .known = known, .flat = berth_strbuf_make(arena)};
    flatten(h, text);
    split(h);
    make_buckets(h);
    return h;
}

void berth_c_helpers_use(berth_c_helpers *h, const char *code) {
    BERTH_VEC(const char *) open = {0};
    berth_vec_push(h->arena, &open, code);
    while (open.count) {
        for (const char *at = open.data[--open.count]; *at;) {
            size_t length = berth_c_word_length(at);
            bool may_be = length && (starts(at, "berth_") || starts(at, "BERTH_"));
            uint32_t i = may_be ? *bucket_of(h, at, length) : NONE;
            for (; i != NONE; i = h->helpers.data[i].next) {
                helper *found = &h->helpers.data[i];
                if (found->used || !berth_c_word_is(at, length, found->name)) continue;
                found->used = true;
                berth_vec_push(h->arena, &open, found->text);
            }
            at += length ? length : 1;
        }
    }
}

// ---- text ---------------------------------------------------------------------------------------

// Places from the top down to `at`; returns how many.
static int path_of(const berth_c_helpers *h, uint32_t at, place *out) {
    int depth = 0;
    for (uint32_t i = at; i != NONE && depth < MAX_CONDITIONS; i = h->places.data[i].outer) ++depth;
    for (int i = depth; i-- > 0; at = h->places.data[at].outer) out[i] = h->places.data[at];
    return depth;
}

static void add_branches(const berth_c_helpers *h, const place *p, uint32_t first,
                         berth_strbuf *out) {
    const condition *of = &h->conditions.data[p->condition];
    for (uint32_t i = first; i <= p->branch; ++i)
        berth_strbuf_addf(out, "%s\n", of->branches.data[i]);
}

// From one place to another that comes later: ends conditions, goes on with one, opens others.
static void move(const berth_c_helpers *h, uint32_t from, uint32_t to, berth_strbuf *out) {
    place a[MAX_CONDITIONS], b[MAX_CONDITIONS];
    int a_depth = path_of(h, from, a), b_depth = path_of(h, to, b), same = 0;
    while (same < a_depth && same < b_depth && a[same].condition == b[same].condition &&
           a[same].branch == b[same].branch)
        ++same;
    bool goes_on = same < a_depth && same < b_depth && a[same].condition == b[same].condition;
    for (int i = a_depth; i > same + goes_on; --i) berth_strbuf_add(out, "#endif\n");
    for (int i = same; i < b_depth; ++i)
        add_branches(h, &b[i], i == same && goes_on ? a[same].branch + 1 : 0, out);
}

void berth_c_helpers_add(const berth_c_helpers *h, const char *behind,
                         void (*add)(const char *name, const char *text, berth_strbuf *out),
                         berth_strbuf *out) {
    uint32_t at = NONE;
    for (uint32_t i = 0; i < h->helpers.count; ++i) {
        const helper *next = &h->helpers.data[i];
        if (!next->used) continue;
        if (next->place != at) move(h, at, next->place, out);
        at = next->place;
        if (add)
            add(next->name, next->text, out);
        else
            berth_strbuf_add(out, next->text);
        berth_strbuf_add(out, behind);
    }
    move(h, at, NONE, out);
}
