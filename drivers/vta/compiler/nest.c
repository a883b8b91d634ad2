// What a nest means: the scale, rounding and bounds of its result, and what it adds up.
#include "drivers/vta/compiler/nest.h"

#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/compiler/reader.h"

// ---- the value that is stored -------------------------------------------------------------------

// max(value, low), min(value, high) around the value.
static berth_expr without_bounds(const berth_vta_reader *r, berth_expr id) {
    for (;;) {
        const berth_expr_node *e = berth_vta__expr(r, id);
        double bound = 0;
        if (e->kind != BERTH_EXPR_BINARY ||
            (e->op != BERTH_BINARY_MAX && e->op != BERTH_BINARY_MIN))
            return id;
        berth_expr value = e->a;
        if (!berth_vta__constant(r, e->b, &bound)) {
            if (!berth_vta__constant(r, e->a, &bound)) return id;
            value = e->b;
        }
        int32_t *limit = e->op == BERTH_BINARY_MAX ? &r->out->low : &r->out->high;
        // The outermost bound comes first and wins: inner ones only narrow what it leaves.
        bool narrower = e->op == BERTH_BINARY_MAX ? bound > (double)*limit : bound < (double)*limit;
        if (narrower) *limit = (int32_t)bound;
        id = value;
    }
}

// A real number as a sum of integers, each times a numerator over a denominator. False: it is
// something else.
static bool read_terms(berth_vta_reader *r, berth_expr id, double numerator, double denominator) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double by = 0;
    if (e->kind == BERTH_EXPR_CAST && berth_dtype_is_integer(berth_vta__expr(r, e->a)->dtype)) {
        if (r->term_count == BERTH_VTA_MOST_TERMS) return false;
        r->terms[r->term_count] = e->a;
        r->numerators[r->term_count] = numerator;
        r->denominators[r->term_count++] = denominator;
        return true;
    }
    if (e->kind == BERTH_EXPR_FMA) {
        bool first = berth_vta__constant(r, e->a, &by);
        return (first || berth_vta__constant(r, e->b, &by)) &&
               read_terms(r, first ? e->b : e->a, numerator * by, denominator) &&
               read_terms(r, e->c, numerator, denominator);
    }
    if (e->kind != BERTH_EXPR_BINARY) return false;
    if (e->op == BERTH_BINARY_ADD)
        return read_terms(r, e->a, numerator, denominator) &&
               read_terms(r, e->b, numerator, denominator);
    if (e->op == BERTH_BINARY_MUL && berth_vta__constant(r, e->a, &by))
        return read_terms(r, e->b, numerator * by, denominator);
    if (e->op == BERTH_BINARY_MUL && berth_vta__constant(r, e->b, &by))
        return read_terms(r, e->a, numerator * by, denominator);
    if (e->op == BERTH_BINARY_DIV && berth_vta__constant(r, e->b, &by))
        return read_terms(r, e->a, numerator, denominator * by);
    return false;
}

// i8(round(...) + 0): what is rounded.
static bool rounded(const berth_vta_reader *r, berth_expr id, berth_expr *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double zero = 1;
    if (e->kind != BERTH_EXPR_CAST || e->dtype != BERTH_DTYPE_I8) return false;
    e = berth_vta__expr(r, e->a);
    if (e->kind == BERTH_EXPR_BINARY && e->op == BERTH_BINARY_ADD &&
        berth_vta__constant(r, e->b, &zero) && zero == 0)
        e = berth_vta__expr(r, e->a);
    if (e->kind != BERTH_EXPR_UNARY || e->op != BERTH_UNARY_ROUND) return false;
    *out = e->a;
    return true;
}

// Scale and bounds of the stored value, and the integers that are scaled.
static berth_status read_value(berth_vta_reader *r) {
    berth_vta_nest *n = r->out;
    const berth_stmt_node *store = berth_tfn_stmt(r->fn, r->result);
    n->low = -128;
    n->high = 127;
    if (berth_vta__expr(r, store->value)->dtype != BERTH_DTYPE_I8)
        return berth_vta__refuse("results that are not i8");
    berth_expr real = 0, value = without_bounds(r, berth_vta__without_fill(r, store->value));
    if (rounded(r, value, &real)) {
        if (!read_terms(r, real, 1, 1)) return berth_vta__refuse("what is rounded to i8 here");
    } else {
        r->terms[r->term_count] = value;
        r->numerators[r->term_count] = r->denominators[r->term_count] = 1;
        r->term_count++;
    }
    if (!berth_vta_nest_scale(n, r->numerators, r->denominators, r->term_count))
        return berth_vta__refuse("a scale that is no power of two over a whole number");
    if (n->low > 0 || n->high < 0 || n->low > n->high)
        return berth_vta__refuse("bounds without 0, which fills up blocks");
    return BERTH_OK;
}

// ---- products -----------------------------------------------------------------------------------

static bool is_acc(const berth_vta_reader *r, berth_expr id) {
    return r->acc && berth_vta__expr(r, id)->kind == BERTH_EXPR_LOAD &&
           berth_vta__expr(r, id)->load.buf == r->acc;
}

// op(acc, value), in either order.
static bool updates(const berth_vta_reader *r, berth_binary op, berth_expr *out_value) {
    const berth_expr_node *e = berth_vta__expr(r, berth_tfn_stmt(r->fn, r->update)->value);
    if (e->kind != BERTH_EXPR_BINARY || e->op != op) return false;
    bool first = is_acc(r, e->a);
    *out_value = first ? e->b : e->a;
    return first || is_acc(r, e->b);
}

// acc, or acc + bias[o].
static bool sum_fits(berth_vta_reader *r, berth_expr value) {
    const berth_expr_node *e = berth_vta__expr(r, value);
    berth_expr bias = 0;
    berth_vta_affine at, result;
    if (e->kind == BERTH_EXPR_BINARY && e->op == BERTH_BINARY_ADD) {
        bool first = is_acc(r, e->a);
        if (!berth_vta__load_of(r, first ? e->b : e->a, &bias)) return false;
        r->out->bias = berth_vta__expr(r, bias)->load.buf;
        const berth_buf_info *held = &r->fn->bufs.data[r->out->bias];
        if (held->dtype != BERTH_DTYPE_I32 || held->rank != 1 ||
            !berth_vta__index_of(r, bias, 0, &at) || !berth_vta__result_index(r, 1, &result) ||
            !berth_vta__same(r, &at, &result))
            return false;
        value = first ? e->a : e->b;
    }
    return is_acc(r, value);
}

static berth_status read_products(berth_vta_reader *r, berth_expr a, berth_expr b) {
    berth_expr x = 0, w = 0;
    int loops[3];
    r->out->form = BERTH_VTA_PRODUCTS;
    if (r->term_count != 1 || !berth_vta__padded_load(r, a, 0, &x) || !berth_vta__load_of(r, b, &w))
        return berth_vta__refuse("a sum of this form");
    if (!sum_fits(r, r->terms[0])) return berth_vta__refuse("what is added to the sum");
    r->out->weights = berth_vta__expr(r, w)->load.buf;
    if (berth_vta__expr(r, w)->dtype != BERTH_DTYPE_I8)
        return berth_vta__refuse("weights that are not i8");
    BERTH_TRY(berth_vta__read_window(r, x, loops));
    return berth_vta__weights_fit(r, w, loops)
               ? BERTH_OK
               : berth_vta__refuse("weights that are read in this way");
}

// ---- sums and maxima ----------------------------------------------------------------------------

// Of windows.
static berth_status read_reduced(berth_vta_reader *r) {
    berth_expr a = 0, b = 0, x = 0;
    double first = 1;
    bool from_constant = berth_vta__constant(r, berth_tfn_stmt(r->fn, r->init)->value, &first);
    if (r->block && first == 0) {
        berth_expr update = berth_tfn_stmt(r->fn, r->update)->value;
        BERTH_TRY(berth_vta__take_product(r, update, &a, &b));
        return read_products(r, a, b);
    }
    if (!from_constant || r->term_count != 1 || !is_acc(r, r->terms[0]))
        return berth_vta__refuse("a reduction of this form");
    if (first == 0 && updates(r, BERTH_BINARY_ADD, &a) && berth_vta__padded_load(r, a, 0, &x))
        r->out->form = BERTH_VTA_SUMS;
    else if (first == -128 && updates(r, BERTH_BINARY_MAX, &a) &&
             berth_vta__padded_load(r, a, -128, &x))
        r->out->form = BERTH_VTA_MAXIMA;
    else
        return berth_vta__refuse("a reduction of this form");
    r->reduced = a;
    return berth_vta__read_own_window(r, x);
}

// Of elements, one or two.
static berth_status read_elements(berth_vta_reader *r) {
    r->out->form = BERTH_VTA_SUMS;
    berth_expr padded = 0;
    if (r->term_count == 1 && berth_vta__expr(r, r->terms[0])->kind == BERTH_EXPR_SELECT)
        return berth_vta__padded_load(r, r->terms[0], 0, &padded)
                   ? berth_vta__read_own_window(r, padded)
                   : berth_vta__read_parts(r);
    if (r->term_count == 1 && berth_vta__read_slice(r, r->terms[0])) return BERTH_OK;
    r->out->first_channel = 0;
    for (int i = r->term_count - 1; i >= 0; --i) {
        berth_expr x = 0;
        if (!berth_vta__load_of(r, r->terms[i], &x))
            return berth_vta__refuse("what is scaled here");
        BERTH_TRY(berth_vta__read_own_window(r, x));
        const berth_vta_nest *n = r->out;
        if (r->term_count > 1 && (n->height != n->out_height || n->width != n->out_width))
            return berth_vta__refuse("operands of different shapes");
        if (i > 0) r->out->second = r->out->input;
    }
    return BERTH_OK;
}

berth_status berth_vta_nest_read(const berth_tfn *fn, berth_stmt nest, berth_vta_nest *out_nest) {
    berth_vta_reader r = {.fn = fn, .out = out_nest};
    *out_nest = (berth_vta_nest){.weights = BERTH_NONE, .bias = BERTH_NONE, .second = BERTH_NONE};
    BERTH_TRY(berth_vta__read_statements(&r, nest));
    out_nest->output = berth_tfn_stmt(fn, r.result)->buf;
    BERTH_TRY(read_value(&r));
    BERTH_TRY(r.acc ? read_reduced(&r) : read_elements(&r));
    // A reduction's terms are what it goes over.
    for (int i = 0; i < r.term_count; ++i) out_nest->terms[i] = r.reduced ? r.reduced : r.terms[i];
    out_nest->term_count = out_nest->form == BERTH_VTA_PRODUCTS ? 0 : r.term_count;
    return BERTH_OK;
}
