// Expressions for numbers of many programs: sums of products of variables with whole factors.
#include <math.h>
#include <string.h>

#include "base/divisor.h"

#include "compiler/vm/families.h"

enum { most_terms = 24, most_rows = 96, most_power = 2, most_degree = 3, most_known = 256 };

// A product of powers of variables and of the quotient.
typedef struct term {
    uint8_t power[BERTH_FAMILY_VARIABLES];
    uint8_t quotient;
} term;

// (factor * product + add) / by
typedef struct quotient {
    term of;
    int64_t factor, add, by;
} quotient;

typedef struct expression {
    term terms[most_terms];
    uint32_t count;
    quotient quotient;
    int64_t factors[most_terms];
} expression;

// ---- values -------------------------------------------------------------------------------------

static int64_t product_of(const berth_fitter *f, const term *t, const int64_t *values) {
    int64_t product = 1;
    for (uint32_t i = 0; i < f->variable_count; ++i)
        for (uint32_t k = 0; k < t->power[i]; ++k)
            if (__builtin_mul_overflow(product, values[i], &product)) return 0;
    return product;
}

static int64_t quotient_of(const berth_fitter *f, const quotient *q, const int64_t *values) {
    return (q->factor * product_of(f, &q->of, values) + q->add) / q->by;
}

static int64_t term_at(const berth_fitter *f, const expression *form, uint32_t t, uint32_t member) {
    const int64_t *values = &f->values[(size_t)member * BERTH_FAMILY_VARIABLES];
    int64_t value = product_of(f, &form->terms[t], values);
    for (uint32_t k = 0; k < form->terms[t].quotient; ++k)
        if (__builtin_mul_overflow(value, quotient_of(f, &form->quotient, values), &value))
            return 0;
    return value;
}

// ---- solving ------------------------------------------------------------------------------------

// Rows of members that lie over all of them.
static uint32_t row_count(const berth_fitter *f) {
    return f->member_count < most_rows ? f->member_count : most_rows;
}

static uint32_t member_of_row(const berth_fitter *f, uint32_t row) {
    const uint32_t count = row_count(f);
    return (uint32_t)((uint64_t)row * (f->member_count - 1) / (count > 1 ? count - 1 : 1));
}

static const uint64_t prime = ((uint64_t)1 << 61) - 1;

static uint64_t modulo(int64_t value) {
    const int64_t rest = value % (int64_t)prime;
    return (uint64_t)(rest < 0 ? rest + (int64_t)prime : rest);
}

static uint64_t multiplied(uint64_t a, uint64_t b) {
    const __uint128_t whole = (__uint128_t)a * b;
    const uint64_t sum = (uint64_t)(whole & prime) + (uint64_t)(whole >> 61);
    return sum < prime ? sum : sum - prime;
}

static uint64_t difference(uint64_t a, uint64_t b) {
    return a >= b ? a - b : a + prime - b;
}

// By Fermat: to the power of prime - 2.
static uint64_t inverse(uint64_t value) {
    uint64_t result = 1;
    for (uint64_t bits = prime - 2; bits; bits >>= 1, value = multiplied(value, value))
        if (bits & 1) result = multiplied(result, value);
    return result;
}

// Rows of an echelon, each 1 at its column and 0 before it.
typedef struct echelon {
    uint64_t rows[most_terms][most_terms + 1];
    bool has[most_terms];
    uint32_t count;
} echelon;

// Adds a row. False: it disagrees with the others.
static bool add_row(echelon *e, uint64_t row[most_terms + 1]) {
    uint32_t at = 0;
    for (; at < e->count && (e->has[at] || row[at] == 0); ++at) {
        const uint64_t times = row[at];
        for (uint32_t c = at; times && c <= e->count; ++c)
            row[c] = difference(row[c], multiplied(times, e->rows[at][c]));
    }
    if (at == e->count) return row[at] == 0;
    const uint64_t by = inverse(row[at]);
    for (uint32_t c = 0; c <= e->count; ++c) e->rows[at][c] = multiplied(row[c], by);
    e->has[at] = true;
    return true;
}

// Whole factors solve the rows modulo a prime, too, and where that is large, nothing else that is small does: no rounding, and most
// forms, which have no factors, are refused by a few rows more than they have terms. The caller sees whether they hold.
// O(rows * terms^2) for a form that has them, O(terms^3) for one that has not
static bool solve(const berth_fitter *f, expression *form, const int64_t *numbers) {
    static const int64_t most = 1000000000000000;
    enum { step = 8 };  // rows far from each other first
    echelon found = {.count = form->count};
    uint64_t factors[most_terms];
    for (uint32_t first = 0; first < step; ++first)
        for (uint32_t r = first; r < row_count(f); r += step) {
            const uint32_t member = member_of_row(f, r);
            uint64_t row[most_terms + 1];
            for (uint32_t t = 0; t < form->count; ++t) row[t] = modulo(term_at(f, form, t, member));
            row[form->count] = modulo(numbers[member]);
            if (!add_row(&found, row)) return false;
        }
    for (uint32_t t = form->count; t-- > 0;) {
        factors[t] = found.has[t] ? found.rows[t][form->count] : 0;
        for (uint32_t c = t + 1; found.has[t] && c < form->count; ++c)
            factors[t] = difference(factors[t], multiplied(found.rows[t][c], factors[c]));
        form->factors[t] = (int64_t)factors[t];
        if (factors[t] > prime / 2) form->factors[t] -= (int64_t)prime;
        if (form->factors[t] > most || form->factors[t] < -most) return false;
    }
    return true;
}

// Whether it is so for every member, in whole numbers.
static bool holds(const berth_fitter *f, const expression *form, const int64_t *numbers) {
    for (uint32_t m = 0; m < f->member_count; ++m) {
        int64_t sum = 0, part = 0;
        for (uint32_t t = 0; t < form->count; ++t)
            if (__builtin_mul_overflow(form->factors[t], term_at(f, form, t, m), &part) ||
                __builtin_add_overflow(sum, part, &sum))
                return false;
        if (sum != numbers[m]) return false;
    }
    return true;
}

static bool try_form(const berth_fitter *f, expression *form, const int64_t *numbers) {
    return solve(f, form, numbers) && holds(f, form, numbers);
}

// ---- forms --------------------------------------------------------------------------------------

// All products up to a degree, smaller ones first.
static void add_products(const berth_fitter *f, expression *form, uint32_t most) {
    for (uint32_t degree = 0; degree <= most; ++degree)
        for (uint32_t code = 0; code < 81; ++code) {
            term t = {0};
            uint32_t sum = 0, rest = code;
            for (uint32_t i = 0; i < BERTH_FAMILY_VARIABLES; ++i, rest /= 3)
                sum += t.power[i] = (uint8_t)(rest % 3);
            bool known = true;
            for (uint32_t i = f->variable_count; i < BERTH_FAMILY_VARIABLES; ++i)
                known &= t.power[i] == 0;
            if (known && sum == degree && form->count < most_terms) form->terms[form->count++] = t;
        }
}

// Terms with the quotient come first: where it is a multiple of others for all members, these get none.
static void add_quotients(const berth_fitter *f, expression *form, uint32_t most) {
    uint32_t first = form->count;
    add_products(f, form, most);
    for (uint32_t t = first; t < form->count; ++t) form->terms[t].quotient = 1;
}

// Sums with a quotient, short ones and long ones, which may have its square, too.
typedef struct quotient_forms {
    expression few, many;
} quotient_forms;

static void make_quotient_forms(const berth_fitter *f, quotient_forms *forms) {
    *forms = (quotient_forms){.few = {.count = 0}};
    add_quotients(f, &forms->few, 0);
    add_products(f, &forms->few, 1);
    forms->many.terms[forms->many.count++] = (term){.quotient = 2};
    add_quotients(f, &forms->many, 1);
    add_products(f, &forms->many, 2);
}

static bool try_quotient(const berth_fitter *f, quotient_forms *forms, const quotient *q,
                         const int64_t *numbers, expression *form) {
    expression *const both[] = {&forms->few, &forms->many};
    for (int i = 0; i < 2; ++i) {
        both[i]->quotient = *q;
        if (!try_form(f, both[i], numbers)) continue;
        *form = *both[i];
        return true;
    }
    return false;
}

enum { all_factors = 16 };

// Quotients of one product by factor / by in lowest terms; `factor_count` of the factors.
static bool try_quotients(const berth_fitter *f, const term *of, uint32_t factor_count,
                          const int64_t *numbers, expression *out) {
    static const int64_t divisors[] = {8, 16, 4, 2, 6, 7, 14, 3, 32, 64, 5, 10, 12, 128, 256};
    static const int64_t factors[all_factors] = {1,  2,  3, 4, 8,  16, 12, 6,
                                                 32, 64, 5, 7, 49, 25, 9,  128};
    quotient_forms forms;
    make_quotient_forms(f, &forms);
    for (uint32_t k = 0; k < factor_count; ++k)
        for (uint32_t d = 0; d < sizeof(divisors) / sizeof(divisors[0]); ++d) {
            if (berth_greatest_divisor(factors[k], divisors[d]) > 1) continue;
            quotient q = {*of, factors[k], 0, divisors[d]};
            if (try_quotient(f, &forms, &q, numbers, out)) return true;
            q.add = divisors[d] - 1;
            if (try_quotient(f, &forms, &q, numbers, out)) return true;
        }
    return false;
}

// Sums of products of the variables alone.
static bool find_sum(const berth_fitter *f, const int64_t *numbers, expression *out) {
    for (uint32_t degree = 0; degree <= most_degree; ++degree) {
        *out = (expression){.count = 0};
        add_products(f, out, degree);
        if (out->count < most_terms && try_form(f, out, numbers)) return true;
    }
    return false;
}

// The same with a quotient of one of the products.
static bool find_quotient(const berth_fitter *f, const int64_t *numbers, expression *out) {
    expression products = {.count = 0};
    add_products(f, &products, 2);
    for (uint32_t p = 1; p < products.count; ++p)
        if (try_quotients(f, &products.terms[p], all_factors, numbers, out)) return true;
    return false;
}

// ---- quantities ---------------------------------------------------------------------------------

static uint32_t quantity(berth_fitter *f, berth_quantity_kind kind, uint32_t a, uint32_t b,
                         int64_t number) {
    const berth_vm_quantity wanted = {.kind = kind, .a = a, .b = b, .number = number};
    for (uint32_t i = 0; i < f->quantities.count; ++i)
        if (memcmp(&f->quantities.data[i], &wanted, sizeof(wanted)) == 0) return i;
    berth_vec_push(f->arena, &f->quantities, wanted);
    return f->quantities.count - 1;
}

static uint32_t multiply(berth_fitter *f, uint32_t a, uint32_t b) {
    return a == UINT32_MAX ? b : quantity(f, BERTH_QUANTITY_PRODUCT, a, b, 0);
}

// `bases`: what stands in the variables' places; NULL: the variables themselves.
static uint32_t emit_product(berth_fitter *f, const uint32_t *bases, const term *t) {
    uint32_t made = UINT32_MAX;
    for (uint32_t i = 0; i < BERTH_FAMILY_VARIABLES; ++i)
        for (uint32_t k = 0; k < t->power[i]; ++k)
            made =
                multiply(f, made, bases ? bases[i] : quantity(f, BERTH_QUANTITY_VARIABLE, i, 0, 0));
    return made;
}

static uint32_t emit_term(berth_fitter *f, const uint32_t *bases, const expression *form,
                          uint32_t t) {
    uint32_t made = emit_product(f, bases, &form->terms[t]);
    if (form->terms[t].quotient) {
        const quotient *q = &form->quotient;
        uint32_t of = emit_product(f, bases, &q->of);
        if (q->factor != 1)
            of = multiply(f, of, quantity(f, BERTH_QUANTITY_NUMBER, 0, 0, q->factor));
        if (q->add)
            of = quantity(f, BERTH_QUANTITY_SUM, of,
                          quantity(f, BERTH_QUANTITY_NUMBER, 0, 0, q->add), 0);
        uint32_t by = quantity(f, BERTH_QUANTITY_QUOTIENT, of, 0, q->by);
        for (uint32_t k = 0; k < form->terms[t].quotient; ++k) made = multiply(f, made, by);
    }
    if (made != UINT32_MAX && form->factors[t] == 1) return made;
    return multiply(f, made, quantity(f, BERTH_QUANTITY_NUMBER, 0, 0, form->factors[t]));
}

static uint32_t emit(berth_fitter *f, const uint32_t *bases, const expression *form) {
    uint32_t made = UINT32_MAX;
    for (uint32_t t = 0; t < form->count; ++t) {
        if (form->factors[t] == 0) continue;
        uint32_t of_term = emit_term(f, bases, form, t);
        made = made == UINT32_MAX ? of_term : quantity(f, BERTH_QUANTITY_SUM, made, of_term, 0);
    }
    return made == UINT32_MAX ? quantity(f, BERTH_QUANTITY_NUMBER, 0, 0, 0) : made;
}

// ---- lines --------------------------------------------------------------------------------------

// base + scale * ((rise * x + add) / run): a straight line, rounded down.
typedef struct line {
    int64_t base, scale, rise, add, run;
} line;

// Which `add` makes the line that of all members, if one does: each bounds it from both sides.
static bool find_add(const berth_fitter *f, const int64_t *xs, const int64_t *numbers, line *l) {
    int64_t low = INT64_MIN, high = INT64_MAX, least = INT64_MAX;
    for (uint32_t m = 0; m < f->member_count; ++m) {
        const int64_t x = xs[(size_t)m * BERTH_FAMILY_VARIABLES];
        const int64_t number = (numbers[m] - l->base) / l->scale;
        int64_t whole, risen, above;
        if (__builtin_mul_overflow(number, l->run, &whole) ||
            __builtin_mul_overflow(l->rise, x, &risen) ||
            __builtin_sub_overflow(whole, risen, &above) || above > INT64_MAX - l->run)
            return false;
        low = above > low ? above : low;
        high = above + l->run - 1 < high ? above + l->run - 1 : high;
        least = risen < least ? risen : least;
    }
    l->add = low;
    return low <= high && low >= -least;
}

static int64_t step_of(const int64_t *numbers, uint32_t count, uint32_t stride) {
    int64_t step = 0;
    for (uint32_t m = 1; m < count; ++m)
        step = berth_greatest_divisor(step, numbers[(size_t)m * stride] - numbers[0]);
    return step;
}

// The line with the least run through numbers over xs, the first variable: rounded lines have one slope for many
// steps, so its rise is that between the ends, rounded either way.
static bool find_line(const berth_fitter *f, const int64_t *xs, const int64_t *numbers, line *out) {
    enum { most_runs = 64 };
    uint32_t low = 0, high = 0;
    const int64_t scale = step_of(numbers, f->member_count, 1);
    const int64_t step = step_of(xs, f->member_count, BERTH_FAMILY_VARIABLES);
    for (uint32_t m = 0; m < f->member_count; ++m) {
        const int64_t x = xs[(size_t)m * BERTH_FAMILY_VARIABLES];
        low = x < xs[(size_t)low * BERTH_FAMILY_VARIABLES] ? m : low;
        high = x > xs[(size_t)high * BERTH_FAMILY_VARIABLES] ? m : high;
    }
    if (scale == 0 || step == 0 || step > 1 << 20) return false;
    const int64_t width =
        xs[(size_t)high * BERTH_FAMILY_VARIABLES] - xs[(size_t)low * BERTH_FAMILY_VARIABLES];
    const long double slope =
        ((long double)numbers[high] - (long double)numbers[low]) / (long double)(scale * width);
    for (int64_t runs = 1; runs <= most_runs; ++runs) {
        *out = (line){numbers[low] % scale, scale, 0, 0, runs * step};
        const long double rise = roundl(slope * (long double)out->run);
        for (int more = -1; more <= 1; ++more) {
            if (!(rise + more > 0) || rise > 1e9L) continue;
            out->rise = (int64_t)rise + more;
            if (find_add(f, xs, numbers, out)) return true;
        }
    }
    return false;
}

static uint32_t emit_number(berth_fitter *f, int64_t number) {
    return quantity(f, BERTH_QUANTITY_NUMBER, 0, 0, number);
}

static uint32_t emit_line(berth_fitter *f, uint32_t x, const line *l) {
    uint32_t made = l->rise == 1 ? x : multiply(f, x, emit_number(f, l->rise));
    if (l->add) made = quantity(f, BERTH_QUANTITY_SUM, made, emit_number(f, l->add), 0);
    made = quantity(f, BERTH_QUANTITY_QUOTIENT, made, 0, l->run);
    if (l->scale != 1) made = multiply(f, made, emit_number(f, l->scale));
    return l->base ? quantity(f, BERTH_QUANTITY_SUM, made, emit_number(f, l->base), 0) : made;
}

// A line of one variable, or of a number that was fitted before.
static uint32_t fit_line(berth_fitter *f, const int64_t *numbers) {
    line found;
    for (uint32_t i = 0; i < f->variable_count; ++i)
        if (find_line(f, &f->values[i], numbers, &found))
            return emit_line(f, quantity(f, BERTH_QUANTITY_VARIABLE, i, 0, 0), &found);
    for (uint32_t k = 0; k < f->known.count; ++k)
        if (find_line(f, f->known.data[k].values, numbers, &found))
            return emit_line(f, f->known.data[k].quantity, &found);
    return UINT32_MAX;
}

// As an expression of a number that was fitted before, and of it and the variable.
static uint32_t fit_known(berth_fitter *f, const int64_t *numbers) {
    static const term itself = {.power = {1}};
    for (uint32_t k = 0; k < f->known.count; ++k) {
        expression form = {.count = 0};
        berth_fitter of = {.variable_count = 1,
                           .member_count = f->member_count,
                           .values = f->known.data[k].values};
        const uint32_t bases[2] = {f->known.data[k].quantity,
                                   quantity(f, BERTH_QUANTITY_VARIABLE, 0, 0, 0)};
        if (try_quotients(&of, &itself, 1, numbers, &form)) return emit(f, bases, &form);
        if (f->variable_count != 1) continue;
        of.variable_count = 2;
        form = (expression){.count = 0};
        add_products(&of, &form, 2);
        if (try_form(&of, &form, numbers)) return emit(f, bases, &form);
    }
    return UINT32_MAX;
}

// ---- two numbers --------------------------------------------------------------------------------

// (factors[0] * k + factors[1] * l + add) / by, without a rest.
typedef struct plane {
    int64_t factors[2], add, by;
} plane;

typedef struct pair {
    const int64_t *values[2];  // as those of berth_fitter_known
} pair;

// Wraps; what comes of that is on no plane.
static int64_t rise(const int64_t *numbers, uint32_t stride, uint32_t member) {
    return (int64_t)((uint64_t)numbers[(size_t)member * stride] - (uint64_t)numbers[0]);
}

// Of members 0, a and b, by Cramer's rule: a * d - b * c of two rows. False: it is beyond what numbers have.
static bool cross(int64_t a, int64_t b, int64_t c, int64_t d, int64_t *out) {
    int64_t one, other;
    return !__builtin_mul_overflow(a, d, &one) && !__builtin_mul_overflow(b, c, &other) &&
           !__builtin_sub_overflow(one, other, out) && *out != INT64_MIN;
}

// Whether the plane has the number of every member.
static bool is_on(const berth_fitter *f, const pair *of, const int64_t *numbers, const plane *p) {
    for (uint32_t m = 0; m < f->member_count; ++m) {
        int64_t sum = p->add, part;
        for (int i = 0; i < 2; ++i)
            if (__builtin_mul_overflow(p->factors[i],
                                       of->values[i][(size_t)m * BERTH_FAMILY_VARIABLES], &part) ||
                __builtin_add_overflow(sum, part, &sum))
                return false;
        if (__builtin_mul_overflow(numbers[m], p->by, &part) || sum != part) return false;
    }
    return true;
}

// The plane through the first three members that give one.
static bool find_plane(const berth_fitter *f, const pair *of, const int64_t *numbers, plane *out) {
    enum { stride = BERTH_FAMILY_VARIABLES, most_by = 1 << 20 };
    const int64_t *k = of->values[0], *l = of->values[1];
    uint32_t a = 1, b;
    int64_t by = 0, of_k, of_l, parts[2];
    while (a < f->member_count && rise(k, stride, a) == 0 && rise(l, stride, a) == 0) a++;
    for (b = a + 1; b < f->member_count; ++b) {
        if (!cross(rise(k, stride, a), rise(l, stride, a), rise(k, stride, b), rise(l, stride, b),
                   &by))
            return false;
        if (by) break;
    }
    if (!by ||
        !cross(rise(numbers, 1, a), rise(l, stride, a), rise(numbers, 1, b), rise(l, stride, b),
               &of_k) ||
        !cross(rise(k, stride, a), rise(numbers, 1, a), rise(k, stride, b), rise(numbers, 1, b),
               &of_l))
        return false;
    int64_t common = berth_greatest_divisor(by, berth_greatest_divisor(of_k, of_l));
    if (by < 0) common = -common;
    *out = (plane){{of_k / common, of_l / common}, 0, by / common};
    if (out->by > most_by || __builtin_mul_overflow(numbers[0], out->by, &out->add)) return false;
    for (int i = 0; i < 2; ++i)
        if (__builtin_mul_overflow(out->factors[i], of->values[i][0], &parts[i]) ||
            __builtin_sub_overflow(out->add, parts[i], &out->add))
            return false;
    return is_on(f, of, numbers, out);
}

static uint32_t emit_plane(berth_fitter *f, const uint32_t bases[2], const plane *p) {
    const expression sum = {.terms = {{.power = {1}}, {.power = {0, 1}}, {.power = {0}}},
                            .count = 3,
                            .factors = {p->factors[0], p->factors[1], p->add}};
    const uint32_t made = emit(f, bases, &sum);
    return p->by == 1 ? made : quantity(f, BERTH_QUANTITY_QUOTIENT, made, 0, p->by);
}

// As one of two numbers that were fitted before, as tiles of one size are that others leave over.
static uint32_t fit_pair(berth_fitter *f, const int64_t *numbers) {
    for (uint32_t k = 1; k < f->known.count; ++k)
        for (uint32_t l = 0; l < k; ++l) {
            const pair of = {{f->known.data[k].values, f->known.data[l].values}};
            const uint32_t bases[2] = {f->known.data[k].quantity, f->known.data[l].quantity};
            plane found;
            if (find_plane(f, &of, numbers, &found)) return emit_plane(f, bases, &found);
        }
    return UINT32_MAX;
}

static void note_known(berth_fitter *f, uint32_t made, const int64_t *numbers) {
    if (f->known.count >= most_known) return;
    int64_t *values =
        berth_arena_new_array(f->arena, int64_t, (size_t)f->member_count * BERTH_FAMILY_VARIABLES);
    for (uint32_t m = 0; m < f->member_count; ++m)
        memcpy(&values[(size_t)m * BERTH_FAMILY_VARIABLES],
               (const int64_t[]){numbers[m], f->values[(size_t)m * BERTH_FAMILY_VARIABLES]},
               2 * sizeof(int64_t));
    const struct berth_fitter_known known = {made, values};
    berth_vec_push(f->arena, &f->known, known);
}

// ---- factors ------------------------------------------------------------------------------------

// The member that has the first one's values but for variable `variable`, of which it has that of `member`; UINT32_MAX: there
// is none.
static uint32_t find_across(const berth_fitter *f, uint32_t member, uint32_t variable) {
    int64_t wanted[BERTH_FAMILY_VARIABLES];
    memcpy(wanted, f->values, sizeof(wanted));
    wanted[variable] = f->values[(size_t)member * BERTH_FAMILY_VARIABLES + variable];
    for (uint32_t m = 0; m < f->member_count; ++m)
        if (memcmp(&f->values[(size_t)m * BERTH_FAMILY_VARIABLES], wanted,
                   f->variable_count * sizeof(*wanted)) == 0)
            return m;
    return UINT32_MAX;
}

// Found once. False: some member has none.
static bool list_across(berth_fitter *f) {
    if (f->across) return f->across[0] != UINT32_MAX;
    const uint32_t count = f->member_count * f->variable_count;
    f->across = berth_arena_new_array(f->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        f->across[i] = find_across(f, i / f->variable_count, i % f->variable_count);
        if (f->across[i] != UINT32_MAX) continue;
        f->across[0] = UINT32_MAX;
        return false;
    }
    return true;
}

// Whether every number is the product of what it is along each variable by itself, as parts of the first one.
static bool is_product(const berth_fitter *f, const int64_t *numbers) {
    for (uint32_t m = 0; m < f->member_count; ++m) {
        int64_t product = 1;
        for (uint32_t i = 0; i < f->variable_count; ++i) {
            const int64_t part = numbers[f->across[m * f->variable_count + i]];
            if (part <= 0 || __builtin_mul_overflow(product, part, &product) ||
                (i && product % numbers[0]))
                return false;
            product = i ? product / numbers[0] : product;
        }
        if (product != numbers[m]) return false;
    }
    return true;
}

// As a product of lines, one of each variable: tiles of rows times tiles of columns, each rounded by itself.
static uint32_t fit_factors(berth_fitter *f, const int64_t *numbers) {
    if (f->variable_count < 2 || !list_across(f) || !is_product(f, numbers)) return UINT32_MAX;
    int64_t *along = berth_arena_new_array(f->arena, int64_t, f->member_count);
    int64_t rest = numbers[0];
    uint32_t made = UINT32_MAX;
    for (uint32_t i = 0; i < f->variable_count; ++i) {
        int64_t common = 0;
        line found;
        for (uint32_t m = 0; m < f->member_count; ++m) {
            along[m] = numbers[f->across[m * f->variable_count + i]];
            common = berth_greatest_divisor(common, along[m]);
        }
        for (uint32_t m = 0; m < f->member_count; ++m) along[m] /= common;
        if (rest % along[0]) return UINT32_MAX;
        rest /= along[0];
        if (step_of(along, f->member_count, 1) == 0) continue;
        if (!find_line(f, &f->values[i], along, &found)) return UINT32_MAX;
        made =
            multiply(f, made, emit_line(f, quantity(f, BERTH_QUANTITY_VARIABLE, i, 0, 0), &found));
    }
    return made == UINT32_MAX || rest == 1 ? made : multiply(f, made, emit_number(f, rest));
}

uint32_t berth_fitter_fit(berth_fitter *f, const int64_t *numbers) {
    expression form;
    uint32_t made = find_sum(f, numbers, &form) ? emit(f, NULL, &form) : UINT32_MAX;
    if (made == UINT32_MAX) made = fit_factors(f, numbers);
    if (made == UINT32_MAX && find_quotient(f, numbers, &form)) made = emit(f, NULL, &form);
    if (made == UINT32_MAX) made = fit_line(f, numbers);
    if (made == UINT32_MAX) made = fit_known(f, numbers);
    if (made == UINT32_MAX) made = fit_pair(f, numbers);
    if (made != UINT32_MAX) note_known(f, made, numbers);
    return made;
}
