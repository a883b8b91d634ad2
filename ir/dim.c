// Polynomials over names and calls.
#include "ir/dim.h"

#include <string.h>

#include "ir/dim_form.h"

berth_dim_form berth_dim__number(int64_t value) {
    berth_dim_form form = {.count = value != 0};
    form.terms[0] = (berth_dim_term){.coefficient = value};
    return form;
}

berth_dim_form berth_dim__factor(berth_str_id factor) {
    berth_dim_form form = {.count = 1};
    form.terms[0] = (berth_dim_term){.coefficient = 1, .factor_count = 1, .factors = {factor}};
    return form;
}

static berth_dim_form bad(void) {
    return (berth_dim_form){.bad = true};
}

bool berth_dim__constant(const berth_dim_form *form, int64_t *out_value) {
    if (form->bad || form->count > 1 || (form->count == 1 && form->terms[0].factor_count))
        return false;
    *out_value = form->count ? form->terms[0].coefficient : 0;
    return true;
}

// ---- order --------------------------------------------------------------------------------------

static int compare_factors(const berth_module *m, const berth_dim_term *a,
                           const berth_dim_term *b) {
    if (a->factor_count != b->factor_count) return b->factor_count - a->factor_count;
    for (int i = 0; i < a->factor_count; ++i) {
        if (a->factors[i] == b->factors[i]) continue;
        return strcmp(berth_module_str(m, a->factors[i]), berth_module_str(m, b->factors[i]));
    }
    return 0;
}

// Adds a term in its place.
static void add_term(const berth_module *m, berth_dim_form *form, const berth_dim_term *term) {
    if (form->bad || term->coefficient == 0) return;
    int at = 0, order = 1;
    while (at < form->count && (order = compare_factors(m, &form->terms[at], term)) < 0) ++at;
    berth_dim_term *place = &form->terms[at];
    if (at < form->count && order == 0) {
        if (__builtin_add_overflow(place->coefficient, term->coefficient, &place->coefficient))
            form->bad = true;
        if (place->coefficient) return;
        memmove(place, place + 1, (size_t)(--form->count - at) * sizeof(*place));
        return;
    }
    if (form->count == BERTH_DIM_MOST_TERMS) {
        form->bad = true;
        return;
    }
    memmove(place + 1, place, (size_t)(form->count++ - at) * sizeof(*place));
    *place = *term;
}

// ---- sums and products --------------------------------------------------------------------------

static berth_dim_form add_scaled(const berth_module *m, const berth_dim_form *a,
                                 const berth_dim_form *b, int64_t factor) {
    berth_dim_form sum = *a;
    if (a->bad || b->bad) return bad();
    for (int i = 0; i < b->count; ++i) {
        berth_dim_term term = b->terms[i];
        if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient)) return bad();
        add_term(m, &sum, &term);
    }
    return sum;
}

static bool multiply_terms(const berth_module *m, const berth_dim_term *a, const berth_dim_term *b,
                           berth_dim_term *out) {
    *out = *a;
    if (a->factor_count + b->factor_count > BERTH_DIM_MOST_FACTORS ||
        __builtin_mul_overflow(a->coefficient, b->coefficient, &out->coefficient))
        return false;
    for (int i = 0; i < b->factor_count; ++i) {
        const char *name = berth_module_str(m, b->factors[i]);
        int at = out->factor_count++;
        for (; at > 0 && strcmp(berth_module_str(m, out->factors[at - 1]), name) > 0; --at)
            out->factors[at] = out->factors[at - 1];
        out->factors[at] = b->factors[i];
    }
    return true;
}

static berth_dim_form multiply(const berth_module *m, const berth_dim_form *a,
                               const berth_dim_form *b) {
    berth_dim_form product = {.bad = a->bad || b->bad};
    for (int i = 0; i < a->count && !product.bad; ++i) {
        for (int j = 0; j < b->count && !product.bad; ++j) {
            berth_dim_term term;
            if (!multiply_terms(m, &a->terms[i], &b->terms[j], &term)) return bad();
            add_term(m, &product, &term);
        }
    }
    return product;
}

// ---- division -----------------------------------------------------------------------------------

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static berth_dim_form call(berth_module *m, berth_dim_op op, const berth_dim_form *a,
                           const berth_dim_form *b) {
    berth_strbuf text = berth_strbuf_make(m->arena);
    berth_strbuf_addf(&text, "%s(", berth_dim__op_name(op));
    berth_dim__print(m, a, &text);
    berth_strbuf_add(&text, ",");
    berth_dim__print(m, b, &text);
    berth_strbuf_add(&text, ")");
    if (text.length > BERTH_DIM_MOST_TEXT) return bad();
    return berth_dim__factor(berth_module_intern(m, berth_strbuf_text(&text)));
}

// floordiv(floordiv(x, a) + c, b) = floordiv(x + a * c, a * b).
static bool join_divisions(berth_module *m, const berth_dim_form *rest, int64_t divisor,
                           berth_dim_form *out) {
    berth_dim_op op;
    berth_dim_form x, by;
    int64_t first = 0, offset = 0, shift = 0, both = 0;
    const berth_dim_term *lead = &rest->terms[0];
    if (rest->count < 1 || rest->count > 2 || lead->coefficient != 1 || lead->factor_count != 1)
        return false;
    if (rest->count == 2 && rest->terms[1].factor_count) return false;
    if (rest->count == 2) offset = rest->terms[1].coefficient;
    if (!berth_dim__read_call(m, lead->factors[0], &op, &x, &by) || op != BERTH_DIM_FLOORDIV ||
        !berth_dim__constant(&by, &first) || first <= 0 ||
        __builtin_mul_overflow(first, offset, &shift) ||
        __builtin_mul_overflow(first, divisor, &both))
        return false;
    const berth_dim_form shifted = berth_dim__number(shift), all = berth_dim__number(both);
    const berth_dim_form sum = add_scaled(m, &x, &shifted, 1);
    *out = berth_dim__apply(m, BERTH_DIM_FLOORDIV, &sum, &all);
    return !out->bad;
}

// Multiples of the divisor leave the division.
static berth_dim_form divide_by_number(berth_module *m, const berth_dim_form *a, int64_t divisor) {
    berth_dim_form whole = {.count = 0}, rest = {.count = 0};
    if (divisor <= 0) return bad();
    if (divisor == 1) return *a;
    for (int i = 0; i < a->count; ++i) {
        berth_dim_term term = a->terms[i];
        int64_t times = floor_div(term.coefficient, divisor);
        int64_t left = term.coefficient - times * divisor;
        term.coefficient = times;
        add_term(m, &whole, &term);
        term.coefficient = left;
        add_term(m, &rest, &term);
    }
    int64_t constant = 0;
    if (berth_dim__constant(&rest, &constant)) return whole;  // less than the divisor
    berth_dim_form quotient;
    if (!join_divisions(m, &rest, divisor, &quotient)) {
        const berth_dim_form by = berth_dim__number(divisor);
        quotient = call(m, BERTH_DIM_FLOORDIV, &rest, &by);
    }
    return add_scaled(m, &whole, &quotient, 1);
}

// Exact division by a product of symbols and a number.
static bool divide_by_term(const berth_module *m, const berth_dim_form *a, const berth_dim_term *by,
                           berth_dim_form *out) {
    *out = (berth_dim_form){.count = 0};
    for (int i = 0; i < a->count; ++i) {
        berth_dim_term term = {.coefficient = a->terms[i].coefficient / by->coefficient};
        if (a->terms[i].coefficient % by->coefficient) return false;
        int k = 0;
        for (int j = 0; j < a->terms[i].factor_count; ++j) {
            if (k < by->factor_count && a->terms[i].factors[j] == by->factors[k])
                ++k;
            else
                term.factors[term.factor_count++] = a->terms[i].factors[j];
        }
        if (k < by->factor_count) return false;
        add_term(m, out, &term);
    }
    return !out->bad;
}

static berth_dim_form divide(berth_module *m, const berth_dim_form *a, const berth_dim_form *b) {
    int64_t divisor = 0;
    berth_dim_form quotient;
    if (a->bad || b->bad) return bad();
    if (berth_dim__constant(b, &divisor)) return divide_by_number(m, a, divisor);
    if (b->count == 1 && divide_by_term(m, a, &b->terms[0], &quotient)) return quotient;
    return call(m, BERTH_DIM_FLOORDIV, a, b);
}

// ---- all operations -----------------------------------------------------------------------------

static berth_dim_form extreme(berth_module *m, berth_dim_op op, const berth_dim_form *a,
                              const berth_dim_form *b) {
    const berth_dim_form difference = add_scaled(m, a, b, -1);
    int64_t constant = 0;
    if (difference.bad) return bad();
    if (berth_dim__constant(&difference, &constant))
        return (constant < 0) == (op == BERTH_DIM_MIN) ? *a : *b;
    berth_strbuf x = berth_strbuf_make(m->arena), y = berth_strbuf_make(m->arena);
    berth_dim__print(m, a, &x);
    berth_dim__print(m, b, &y);
    bool in_order = strcmp(berth_strbuf_text(&x), berth_strbuf_text(&y)) < 0;
    return in_order ? call(m, op, a, b) : call(m, op, b, a);
}

berth_dim_form berth_dim__apply(berth_module *m, berth_dim_op op, const berth_dim_form *a,
                                const berth_dim_form *b) {
    if (a->bad || b->bad) return bad();
    switch (op) {
    case BERTH_DIM_ADD: return add_scaled(m, a, b, 1);
    case BERTH_DIM_SUB: return add_scaled(m, a, b, -1);
    case BERTH_DIM_MUL: return multiply(m, a, b);
    case BERTH_DIM_FLOORDIV: return divide(m, a, b);
    case BERTH_DIM_CEILDIV: {
        const berth_dim_form one = berth_dim__number(1);
        const berth_dim_form sum = add_scaled(m, a, b, 1), up = add_scaled(m, &sum, &one, -1);
        return divide(m, &up, b);
    }
    case BERTH_DIM_MOD: {
        const berth_dim_form quotient = divide(m, a, b);
        const berth_dim_form whole = multiply(m, &quotient, b);
        return add_scaled(m, a, &whole, -1);
    }
    default: return extreme(m, op, a, b);
    }
}

// ---- dimensions ---------------------------------------------------------------------------------

static const char plain_characters[] =
    "_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static bool is_plain(const char *name) {
    return *name && *name != '.' && !(*name >= '0' && *name <= '9') &&
           !name[strspn(name, plain_characters)];
}

static berth_dim_form form_of(berth_module *m, int64_t dim) {
    berth_dim_form form;
    if (!berth_dim_is_symbol(dim)) return berth_dim__number(dim);
    if (dim == BERTH_DIM_UNKNOWN) return bad();
    const char *name = berth_module_str(m, berth_dim_symbol_name(dim));
    if (*name == '=') return berth_dim__read(m, name + 1, strlen(name + 1), &form) ? form : bad();
    if (strlen(name) > BERTH_DIM_MOST_NAME) return bad();
    if (is_plain(name)) return berth_dim__factor(berth_dim_symbol_name(dim));
    if (strchr(name, '\'')) return bad();
    return berth_dim__factor(berth_module_intern(m, berth_arena_printf(m->arena, "'%s'", name)));
}

static int64_t dim_of(berth_module *m, const berth_dim_form *form) {
    int64_t value = 0;
    if (form->bad) return BERTH_DIM_UNKNOWN;
    if (berth_dim__constant(form, &value)) return value >= 0 ? value : BERTH_DIM_UNKNOWN;
    const berth_dim_term *only = &form->terms[0];
    const char *name = berth_module_str(m, only->factors[0]);
    if (form->count == 1 && only->coefficient == 1 && only->factor_count == 1) {
        if (is_plain(name)) return berth_dim_symbol(only->factors[0]);
        if (*name == '\'')
            return berth_dim_symbol(
                berth_module_intern(m, berth_arena_strndup(m->arena, name + 1, strlen(name) - 2)));
    }
    berth_strbuf text = berth_strbuf_make(m->arena);
    berth_strbuf_add(&text, "=");
    berth_dim__print(m, form, &text);
    if (text.length > BERTH_DIM_MOST_TEXT) return BERTH_DIM_UNKNOWN;
    return berth_dim_symbol(berth_module_intern(m, berth_strbuf_text(&text)));
}

int64_t berth_dim_combine(berth_module *m, berth_dim_op op, int64_t a, int64_t b) {
    const berth_dim_form x = form_of(m, a), y = form_of(m, b);
    const berth_dim_form result = berth_dim__apply(m, op, &x, &y);
    return dim_of(m, &result);
}

int64_t berth_dim_scale(berth_module *m, int64_t a, int64_t factor, int64_t summand) {
    const berth_dim_form x = form_of(m, a), f = berth_dim__number(factor),
                         s = berth_dim__number(summand);
    const berth_dim_form product = multiply(m, &x, &f);
    const berth_dim_form result = add_scaled(m, &product, &s, 1);
    return dim_of(m, &result);
}

bool berth_dim_is_expression(const berth_module *m, int64_t dim) {
    return berth_dim_is_symbol(dim) && *berth_module_str(m, berth_dim_symbol_name(dim)) == '=';
}

berth_status berth_dim_parse(berth_module *m, const char *text, size_t length, int64_t *out_dim) {
    berth_dim_form form;
    *out_dim = BERTH_DIM_UNKNOWN;
    if (!berth_dim__read(m, text, length, &form))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%.*s\" is no dimension: sums and products of integers and "
                                 "symbols, floordiv, ceildiv, mod, min and max of two",
                                 length < 80 ? (int)length : 80, text);
    *out_dim = dim_of(m, &form);
    return BERTH_OK;
}

// ---- substitution -------------------------------------------------------------------------------

typedef struct substitution {
    berth_module *module;
    berth_dim_lookup lookup;
    void *user;
    int nesting;
} substitution;

static berth_dim_form substitute(substitution *s, const berth_dim_form *form);

static berth_dim_form substitute_factor(substitution *s, berth_str_id factor) {
    berth_module *m = s->module;
    berth_dim_op op;
    berth_dim_form a, b;
    if (berth_dim__read_call(m, factor, &op, &a, &b)) {
        if (s->nesting == BERTH_DIM_MOST_NESTING) return bad();
        s->nesting++;
        a = substitute(s, &a);
        b = substitute(s, &b);
        s->nesting--;
        return berth_dim__apply(m, op, &a, &b);
    }
    const char *name = berth_module_str(m, factor);
    if (*name == '\'') name = berth_arena_strndup(m->arena, name + 1, strlen(name) - 2);
    int64_t with = s->lookup(s->user, name);
    return with == BERTH_DIM_UNKNOWN ? berth_dim__factor(factor) : form_of(m, with);
}

static berth_dim_form substitute(substitution *s, const berth_dim_form *form) {
    berth_dim_form sum = {.bad = form->bad};
    for (int i = 0; i < form->count && !sum.bad; ++i) {
        berth_dim_form product = berth_dim__number(form->terms[i].coefficient);
        for (int k = 0; k < form->terms[i].factor_count; ++k) {
            const berth_dim_form factor = substitute_factor(s, form->terms[i].factors[k]);
            product = multiply(s->module, &product, &factor);
        }
        sum = add_scaled(s->module, &sum, &product, 1);
    }
    return sum;
}

int64_t berth_dim_substitute(berth_module *module, int64_t dim, berth_dim_lookup lookup,
                             void *user) {
    substitution s = {module, lookup, user, 0};
    const berth_dim_form form = form_of(module, dim);
    const berth_dim_form result = substitute(&s, &form);
    return dim_of(module, &result);
}

bool berth_dim_evaluate(const berth_module *module, int64_t dim, berth_dim_lookup lookup,
                        void *user, berth_arena *scratch, int64_t *out_extent) {
    *out_extent = dim;
    if (!berth_dim_is_symbol(dim)) return true;
    berth_module *own = berth_module_create(scratch, "");
    const char *name = berth_module_str(module, berth_dim_symbol_name(dim));
    int64_t copy = berth_dim_symbol(berth_module_intern(own, name));
    *out_extent = berth_dim_substitute(own, copy, lookup, user);
    return !berth_dim_is_symbol(*out_extent);
}

// ---- linear ones --------------------------------------------------------------------------------

// A number, or a number times one name.
static bool read_linear_term(berth_module *m, const berth_dim_term *term, berth_dim_linear *out) {
    berth_dim_op op;
    berth_dim_form a, b;
    if (term->factor_count == 0) {
        out->summand = term->coefficient;
        return true;
    }
    if (term->factor_count > 1 || term->coefficient <= 0 || out->symbol ||
        berth_dim__read_call(m, term->factors[0], &op, &a, &b))
        return false;
    const char *name = berth_module_str(m, term->factors[0]);
    out->factor = term->coefficient;
    out->symbol = *name == '\'' ? berth_arena_strndup(m->arena, name + 1, strlen(name) - 2) : name;
    return true;
}

bool berth_dim_read_linear(const berth_module *module, int64_t dim, berth_arena *arena,
                           berth_dim_linear *out) {
    *out = (berth_dim_linear){0};
    if (!berth_dim_is_symbol(dim) || dim == BERTH_DIM_UNKNOWN) return false;
    berth_module *own = berth_module_create(arena, "");
    const char *name = berth_module_str(module, berth_dim_symbol_name(dim));
    const berth_dim_form form = form_of(own, berth_dim_symbol(berth_module_intern(own, name)));
    bool fits = !form.bad;
    for (int i = 0; fits && i < form.count; ++i) fits = read_linear_term(own, &form.terms[i], out);
    return fits && out->symbol;
}

int64_t berth_dim_linear_solve(const berth_dim_linear *linear, int64_t extent) {
    int64_t rest = 0;
    if (__builtin_sub_overflow(extent, linear->summand, &rest) || rest < 0) return -1;
    return rest % linear->factor ? -1 : rest / linear->factor;
}

void berth_dim_print(const berth_module *m, int64_t dim, berth_strbuf *out) {
    if (!berth_dim_is_symbol(dim)) {
        berth_strbuf_addf(out, "%lld", (long long)dim);
        return;
    }
    const char *name = berth_module_str(m, berth_dim_symbol_name(dim));
    berth_strbuf_add(out, *name == '=' ? name + 1 : name);
}
