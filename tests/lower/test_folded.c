// What the compiler folds is what the kernel computes: random cases of every operation that is both
// evaluated (ir/eval) and lowered, made from the rows of folded.def, lowered, interpreted, and
// compared with the reference interpreter; plain and with a schedule.
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/lower/context.h"
#include "ir/eval.h"
#include "tests/check.h"
#include "tests/lower/op_case.h"

#define FOLDED(tolerance, text) {tolerance, text},
static const struct {
    double tolerance;
    const char *text;
} rows[] = {
#include "tests/lower/folded.def"
};
#undef FOLDED

enum { row_count = sizeof(rows) / sizeof(rows[0]), most_text = 1 << 18 };

typedef struct maker {
    uint64_t state;
    int64_t extents[26];  // of the letters; 0: not drawn yet
    char types[10][8];    // of the operands so far
    int operands;
    char out[most_text];
    size_t length;
} maker;

static uint64_t draw(maker *m, uint64_t below) {  // SplitMix64
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void put(maker *m, const char *text, size_t length) {
    cr_assert_lt(m->length + length + 1, most_text);
    memcpy(m->out + m->length, text, length);
    m->out[m->length += length] = 0;
}

static void put_number(maker *m, double value) {
    char text[32];
    put(m, text, (size_t)snprintf(text, sizeof(text), "%.9g", value));
}

static int64_t extent_of(maker *m, char letter) {
    static const int64_t usual[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9};
    int64_t *held = &m->extents[letter - 'A'];
    if (!*held) *held = usual[draw(m, 11)];
    if (letter == 'B' && *held == 9) *held = draw(m, 2) ? 17 : 33;  // whole vectors and a rest
    return *held;
}

// 12, 0.5, -%A, %A*2, %A+1
static double number(maker *m, const char **s) {
    double sign = **s == '-' ? -1 : 1;
    *s += **s == '-';
    if (**s != '%') {
        char *end = NULL;
        double value = strtod(*s, &end);
        *s = end;
        return sign * value;
    }
    double value = (double)extent_of(m, (*s)[1]);
    *s += 2;
    bool follows = (**s == '*' || **s == '+' || **s == '-') && isdigit((unsigned char)(*s)[1]);
    if (follows) {
        char *end = NULL;
        char sort = **s;
        double second = (double)strtoll(*s + 1, &end, 10);
        *s = end;
        value = sort == '*' ? value * second : sort == '+' ? value + second : value - second;
    }
    return sign * value;
}

// The operand that `out` ends with: how many elements, and its type.
static int64_t last_operand(maker *m, berth_dtype *out_dtype) {
    size_t at = m->length;
    while (at > 0 && m->out[at - 1] != ' ') at--;
    char type[8] = {0};
    for (size_t n = 0; isalnum((unsigned char)m->out[at]) && n < 7; ++at) type[n++] = m->out[at];
    *out_dtype = berth_dtype_from_name(type);
    int64_t count = 1;
    for (char *s = m->out + at; *s == '[' || *s == ',';) {
        if (s[1] == ']') break;
        char *end = NULL;
        count *= strtoll(s + 1, &end, 10);
        s = end;
    }
    return count;
}

// Any value of a type that case texts hold exactly.
static double any_value(maker *m, berth_dtype dtype, bool finite) {
    static const char *const hard[] = {"nan", "inf",  "-inf", "0",  "-0",
                                       "0.5", "-0.5", "1.5",  "2.5"};
    if (dtype == BERTH_DTYPE_BOOL) return (double)draw(m, 2);
    if (berth_dtype_is_float(dtype)) {
        if (!finite && draw(m, 4) == 0) return strtod(hard[draw(m, 9)], NULL);
        return ((double)draw(m, 4096) - 2048) / 512;
    }
    int bits = (int)berth_dtype_size_bytes(dtype) * 8;
    bool is_signed = berth_dtype_is_signed(dtype);
    double high = (double)((uint64_t)1 << ((bits > 32 ? 33 : bits) - is_signed)) - 1;
    double low = is_signed ? -high - 1 : 0;
    if (draw(m, 8) == 0) return draw(m, 2) ? high : low;
    return is_signed ? (double)draw(m, 41) - 20 : (double)draw(m, 41);
}

static void put_values(maker *m, const char **s) {
    berth_dtype dtype = BERTH_DTYPE_NONE;
    int64_t count = last_operand(m, &dtype);
    put(m, (*s)++, 1);
    char sort = *(*s)++;
    double low = 0;
    double high = 0;
    if (sort == '<') {
        low = number(m, s);
        *s += 1;
        high = number(m, s);
        *s += 1;
    }
    for (int64_t i = 0; i < count; ++i) {
        double value = any_value(m, dtype, sort == '%');
        if (sort == '<' && berth_dtype_is_float(dtype))
            value = low + (high - low) * (double)draw(m, 1025) / 1024;
        else if (sort == '<')
            value = low + (double)draw(m, (uint64_t)(high - low) + 1);
        if (i) put(m, ",", 1);
        put_number(m, value);
    }
}

// Notes the type of the operand that begins here.
static void note_type(maker *m, const char *s) {
    size_t n = 0;
    if (m->operands >= 10) return;
    if (*s == '$') {
        memcpy(m->types[m->operands++], m->types[s[1] - '0'], 8);
        return;
    }
    char *type = m->types[m->operands++];
    for (; isalnum((unsigned char)s[n]) && n < 7; ++n) type[n] = s[n];
    type[n] = 0;
}

static const char *closing(const char *s) {
    int depth = 0;
    for (; *s; ++s) {
        depth += (*s == '(') - (*s == ')');
        if (depth == 0) return s;
    }
    return NULL;
}

// One of the alternatives of "(a|b|c)", which may hold others.
static void choose(maker *m, const char *open, const char *close, char *out) {
    const char *starts[64] = {open + 1};
    uint64_t count = 1;
    int depth = 0;
    for (const char *s = open + 1; s < close; ++s) {
        depth += (*s == '(') - (*s == ')');
        if (*s == '|' && depth == 0) {
            cr_assert_lt(count, 63);
            starts[count++] = s + 1;
        }
    }
    starts[count] = close + 1;
    uint64_t which = draw(m, count);
    size_t length = (size_t)(starts[which + 1] - starts[which] - 1);
    memcpy(out, starts[which], length);
    out[length] = 0;
}

// Choices first, then what depends on them.
static void resolve_choices(maker *m, const char *text, char *out) {
    char *buffer[2] = {malloc(1024), malloc(1024)};
    strcpy(buffer[0], text);
    int now = 0;
    for (char *open; (open = strchr(buffer[now], '('));) {
        const char *close = closing(open);
        cr_assert_not_null(close, "%s", text);
        size_t before = (size_t)(open - buffer[now]);
        char *next = buffer[1 - now];
        memcpy(next, buffer[now], before);
        choose(m, open, close, next + before);
        strcat(next, close + 1);
        now = 1 - now;
    }
    strcpy(out, buffer[now]);
    free(buffer[0]);
    free(buffer[1]);
}

static void expand(maker *m, const char *text) {
    char chosen[1024];
    cr_assert_lt(strlen(text), sizeof(chosen));
    resolve_choices(m, text, chosen);
    int field = 0;
    for (const char *s = chosen; *s;) {
        field += *s == '|';
        bool begins = field == 1 && s > chosen && s[-1] == ' ';
        if (begins && (isalpha((unsigned char)*s) || *s == '$')) note_type(m, s);
        if (begins && *s == '-') m->operands++;
        if (*s == '$') {
            const char *type = m->types[s[1] - '0'];
            put(m, type, strlen(type));
            s += 2;
        } else if (*s == '%') {
            put_number(m, number(m, &s));
        } else if (*s == '&') {
            s++;
            double low = number(m, &s);
            s++;
            double high = number(m, &s);
            put_number(m, low + (double)draw(m, (uint64_t)(high - low) + 1));
        } else if ((*s == '~' || *s == '=') && (s[1] == '?' || s[1] == '%' || s[1] == '<')) {
            if (s[1] == '%' && isupper((unsigned char)s[2]))
                put(m, s++, 1);
            else
                put_values(m, &s);
        } else {
            put(m, s++, 1);
        }
    }
}

typedef struct outcome {
    int failed;
    int agreed[row_count];
    bool seen[BERTH_OP_COUNT];
} outcome;

static void run_one(outcome *o, int row, uint64_t seed, const berth_target *target) {
    maker *m = calloc(1, sizeof(*m));
    berth_arena *arena = NULL;
    berth_op_kind kind;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    m->state = seed * 1000003 + (uint64_t)row;
    expand(m, rows[row].text);
    char name[64] = {0};
    memcpy(name, m->out, strcspn(m->out, " "));
    cr_assert(berth_op_kind_from_name(name, &kind), "%s", m->out);
    if (getenv("BERTH_SHOW_CASES")) fprintf(stderr, "%s\n", m->out);
    const char *problem = op_case_compare(m->out, target, rows[row].tolerance, arena);
    // What no shape or value fits, and what is not folded (a division by zero), is no case.
    bool refused =
        problem && (strncmp(problem, "build:", 6) == 0 || strncmp(problem, "eval:", 5) == 0);
    if (problem && !refused) {
        cr_log_error("%s\n    %s", m->out, problem);
        o->failed++;
    }
    if (!problem) {
        o->agreed[row]++;
        o->seen[kind] = true;
    }
    berth_arena_destroy(arena);
    free(m);
}

static void run_rows(const berth_target *target, uint64_t first, uint64_t count, outcome *o) {
    for (int row = 0; row < row_count; ++row)
        for (uint64_t seed = first; seed < first + count; ++seed) run_one(o, row, seed, target);
}

// BERTH_FOLDED_CASES asks for more, in a nightly run.
static uint64_t seeds(uint64_t usual) {
    const char *given = getenv("BERTH_FOLDED_CASES");
    return given ? strtoull(given, NULL, 10) : usual;
}

Test(folded, random_cases, .timeout = 600) {
    outcome o = {0};
    run_rows(NULL, 1, seeds(32), &o);
    cr_expect_eq(o.failed, 0, "%d cases are folded to something else than runs", o.failed);
    for (int row = 0; row < row_count; ++row)
        cr_expect_geq(o.agreed[row], 8, "%d of 32 or more cases could be run: %s", o.agreed[row],
                      rows[row].text);
}

static void run_scheduled(const berth_target *target) {
    outcome o = {0};
    run_rows(target, 101, seeds(8), &o);
    cr_expect_eq(o.failed, 0, "%d cases are folded to something else than runs", o.failed);
}

Test(folded, scheduled, .timeout = 600) {
    with_target("cpu", run_scheduled);
    with_target("cpu -vector_bits=512", run_scheduled);
    with_target("opencl", run_scheduled);
}

// Every operation that has a value and a kernel has a row.
Test(folded, every_operation) {
    for (int kind = 0; kind < BERTH_OP_COUNT; ++kind) {
        // the parts of a Winograd convolution are made of constants and compared in cases.def, the
        // whole in test_fusion.c; and what only moves a value has no arithmetic
        bool inner = kind == BERTH_OP_ON_DEVICE || kind == BERTH_OP_DEVICE_COPY ||
                     kind == BERTH_OP_RELAYOUT || kind == BERTH_OP_WINOGRAD_WEIGHTS ||
                     kind == BERTH_OP_WINOGRAD_INPUT || kind == BERTH_OP_WINOGRAD_MATMUL ||
                     kind == BERTH_OP_WINOGRAD_OUTPUT || kind == BERTH_OP_WINOGRAD_CONV;
        if (!berth_eval_supports((berth_op_kind)kind) || inner) continue;
        if (!berth_lower__row((berth_op_kind)kind)) continue;
        const char *name = berth_op_facts_get((berth_op_kind)kind)->name;
        size_t length = strlen(name);
        bool found = false;
        for (int row = 0; row < row_count && !found; ++row) {
            const char *end = strchr(rows[row].text, ' ');
            for (const char *s = rows[row].text; (s = strstr(s, name)) && s < end; ++s)
                found = found ||
                        ((s == rows[row].text || strchr("(|", s[-1])) && strchr(" |)", s[length]));
        }
        cr_expect(found, "%s has no row in folded.def", name);
    }
}
