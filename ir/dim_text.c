// Text of dimensions: canonical forms printed, and any such expression read.
#include <string.h>

#include "ir/dim_form.h"

static const char *const op_names[] = {[BERTH_DIM_FLOORDIV] = "floordiv",
                                       [BERTH_DIM_CEILDIV] = "ceildiv",
                                       [BERTH_DIM_MOD] = "mod",
                                       [BERTH_DIM_MIN] = "min",
                                       [BERTH_DIM_MAX] = "max"};

const char *berth_dim__op_name(berth_dim_op op) {
    return op_names[op];
}

static void print_term(const berth_module *m, const berth_dim_term *term, bool first,
                       berth_strbuf *out) {
    int64_t size = term->coefficient;
    if (size < 0)
        berth_strbuf_add(out, "-");
    else if (!first)
        berth_strbuf_add(out, "+");
    uint64_t number = size < 0 ? 0 - (uint64_t)size : (uint64_t)size;
    if (number != 1 || term->factor_count == 0)
        berth_strbuf_addf(out, "%llu%s", (unsigned long long)number, term->factor_count ? "*" : "");
    for (int i = 0; i < term->factor_count; ++i)
        berth_strbuf_addf(out, "%s%s", i ? "*" : "", berth_module_str(m, term->factors[i]));
}

void berth_dim__print(const berth_module *m, const berth_dim_form *form, berth_strbuf *out) {
    if (form->bad) berth_strbuf_add(out, "?");
    if (!form->bad && form->count == 0) berth_strbuf_add(out, "0");
    for (int i = 0; i < form->count && !form->bad; ++i) print_term(m, &form->terms[i], !i, out);
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct reader {
    berth_module *module;
    const char *at;
    const char *end;
    int nesting;
} reader;

static void skip_spaces(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) r->at++;
}

static bool accept(reader *r, char wanted) {
    skip_spaces(r);
    if (r->at == r->end || *r->at != wanted) return false;
    r->at++;
    return true;
}

static bool read_sum(reader *r, berth_dim_form *out);

static bool read_number(reader *r, berth_dim_form *out) {
    int64_t value = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *r->at - '0', &value))
            return false;
    *out = berth_dim__number(value);
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// A name, or a call.
static bool read_word(reader *r, berth_dim_form *out) {
    const char *start = r->at;
    while (r->at < r->end &&
           (is_letter(*r->at) || *r->at == '.' || (*r->at >= '0' && *r->at <= '9')))
        r->at++;
    size_t length = (size_t)(r->at - start);
    if (length > BERTH_DIM_MOST_NAME) return false;
    const char *name = berth_arena_strndup(r->module->arena, start, length);
    if (!accept(r, '(')) {
        *out = berth_dim__factor(berth_module_intern(r->module, name));
        return true;
    }
    for (int op = BERTH_DIM_FLOORDIV; op <= BERTH_DIM_MAX; ++op) {
        berth_dim_form a, b;
        if (strcmp(op_names[op], name) != 0) continue;
        if (!read_sum(r, &a) || !accept(r, ',') || !read_sum(r, &b) || !accept(r, ')'))
            return false;
        *out = berth_dim__apply(r->module, (berth_dim_op)op, &a, &b);
        return true;
    }
    return false;
}

static bool read_quoted(reader *r, berth_dim_form *out) {
    const char *start = r->at - 1;
    while (r->at < r->end && *r->at != '\'') r->at++;
    if (!accept(r, '\'') || r->at - start == 2 || r->at - start > BERTH_DIM_MOST_NAME) return false;
    const char *name = berth_arena_strndup(r->module->arena, start, (size_t)(r->at - start));
    *out = berth_dim__factor(berth_module_intern(r->module, name));
    return true;
}

static bool read_factor(reader *r, berth_dim_form *out) {
    skip_spaces(r);
    if (r->at == r->end) return false;
    if (*r->at >= '0' && *r->at <= '9') return read_number(r, out);
    if (is_letter(*r->at)) return read_word(r, out);
    if (accept(r, '\'')) return read_quoted(r, out);
    return accept(r, '(') && read_sum(r, out) && accept(r, ')');
}

static bool read_product(reader *r, berth_dim_form *out) {
    if (!read_factor(r, out)) return false;
    while (accept(r, '*')) {
        berth_dim_form factor;
        if (!read_factor(r, &factor)) return false;
        *out = berth_dim__apply(r->module, BERTH_DIM_MUL, out, &factor);
    }
    return true;
}

static bool read_sum(reader *r, berth_dim_form *out) {
    if (r->nesting == BERTH_DIM_MOST_NESTING) return false;
    r->nesting++;
    *out = berth_dim__number(0);
    bool minus = accept(r, '-'), more = true;
    while (more) {
        berth_dim_form term;
        if (!read_product(r, &term)) return false;
        *out = berth_dim__apply(r->module, minus ? BERTH_DIM_SUB : BERTH_DIM_ADD, out, &term);
        minus = accept(r, '-');
        more = minus || accept(r, '+');
    }
    r->nesting--;
    return true;
}

bool berth_dim__read(berth_module *module, const char *text, size_t length, berth_dim_form *out) {
    reader r = {module, text, text + length, 0};
    if (!read_sum(&r, out)) return false;
    skip_spaces(&r);
    return r.at == r.end;
}

bool berth_dim__read_call(berth_module *module, berth_str_id factor, berth_dim_op *out_op,
                          berth_dim_form *out_a, berth_dim_form *out_b) {
    const char *text = berth_module_str(module, factor);
    const char *open = strchr(text, '(');
    if (*text == '\'' || !open) return false;
    for (int op = BERTH_DIM_FLOORDIV; op <= BERTH_DIM_MAX; ++op) {
        if (strlen(op_names[op]) != (size_t)(open - text) ||
            strncmp(op_names[op], text, (size_t)(open - text)) != 0)
            continue;
        reader r = {module, open + 1, text + strlen(text), 0};
        *out_op = (berth_dim_op)op;
        return read_sum(&r, out_a) && accept(&r, ',') && read_sum(&r, out_b) && accept(&r, ')') &&
               r.at == r.end;
    }
    return false;
}
