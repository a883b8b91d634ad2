#include "compiler/schedule/linear.h"

#include <string.h>

#include "base/divisor.h"

berth_range berth_linear_range(const berth_tfn *fn, const berth_ranges *ranges,
                               const berth_linear *form) {
    berth_range sum = {form->constant, form->constant};
    for (int i = 0; i < form->count; ++i) {
        berth_range atom = berth_range_of(fn, ranges, form->terms[i].atom);
        sum = berth_range_add(sum, berth_range_is_known(atom) || atom.low == 0
                                       ? berth_range_scale(atom, form->terms[i].coefficient)
                                       : BERTH_RANGE_UNKNOWN);
    }
    return sum;
}

// ---- forms --------------------------------------------------------------------------------------

bool berth_tfn_expr_equal(const berth_tfn *fn, berth_expr a, berth_expr b) {
    if (a == b) return true;
    if (!a || !b) return false;
    const berth_expr_node *x = &fn->exprs.data[a];
    const berth_expr_node *y = &fn->exprs.data[b];
    if (x->kind != y->kind || x->dtype != y->dtype || x->op != y->op || x->lanes != y->lanes)
        return false;
    if (x->kind == BERTH_EXPR_INT) return x->i == y->i;
    if (x->kind == BERTH_EXPR_FLOAT) return memcmp(&x->f, &y->f, sizeof(x->f)) == 0;
    if (x->kind == BERTH_EXPR_VAR) return x->var == y->var;
    if (x->kind == BERTH_EXPR_LOAD) {
        if (x->load.buf != y->load.buf || x->index_count != y->index_count) return false;
        for (int i = 0; i < x->index_count; ++i)
            if (!berth_tfn_expr_equal(fn, berth_tfn_load_indices(fn, a)[i],
                                      berth_tfn_load_indices(fn, b)[i]))
                return false;
        return true;
    }
    return berth_tfn_expr_equal(fn, x->a, y->a) && berth_tfn_expr_equal(fn, x->b, y->b) &&
           berth_tfn_expr_equal(fn, x->c, y->c);
}

bool berth_tfn_uses_var(const berth_tfn *fn, berth_expr id, berth_var var) {
    if (!id) return false;
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_VAR) return node->var == var;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT) return false;
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            if (berth_tfn_uses_var(fn, berth_tfn_load_indices(fn, id)[i], var)) return true;
        return false;
    }
    return berth_tfn_uses_var(fn, node->a, var) || berth_tfn_uses_var(fn, node->b, var) ||
           berth_tfn_uses_var(fn, node->c, var);
}

// Adds coefficient * atom; false when the form is full.
static bool add_term(const berth_tfn *fn, berth_linear *form, berth_expr atom,
                     int64_t coefficient) {
    if (coefficient == 0) return true;
    for (int i = 0; i < form->count; ++i) {
        if (!berth_tfn_expr_equal(fn, form->terms[i].atom, atom)) continue;
        form->terms[i].coefficient += coefficient;
        if (form->terms[i].coefficient == 0) form->terms[i] = form->terms[--form->count];
        return true;
    }
    if (form->count == BERTH_LINEAR_MAX_TERMS) return false;
    form->terms[form->count++] = (berth_linear_term){atom, coefficient};
    return true;
}

static bool add_scaled(const berth_tfn *fn, berth_linear *form, const berth_linear *other,
                       int64_t k) {
    form->constant += other->constant * k;
    for (int i = 0; i < other->count; ++i)
        if (!add_term(fn, form, other->terms[i].atom, other->terms[i].coefficient * k))
            return false;
    return true;
}

static berth_linear atom_form(berth_expr atom) {
    return (berth_linear){.count = 1, .terms = {{atom, 1}}};
}

// Whether `id` is of / k; of = y / m: also y / (m * k).
static bool is_quotient(const berth_tfn *fn, berth_expr id, berth_expr of, int64_t k) {
    const berth_expr_node *div = &fn->exprs.data[id];
    const berth_expr_node *inner = &fn->exprs.data[of];
    int64_t by = 0;
    int64_t m = 0;
    if (div->kind != BERTH_EXPR_BINARY || div->op != BERTH_BINARY_DIV ||
        !berth_tfn_const_value(fn, div->b, &by))
        return false;
    if (by == k && berth_tfn_expr_equal(fn, div->a, of)) return true;
    return inner->kind == BERTH_EXPR_BINARY && inner->op == BERTH_BINARY_DIV &&
           berth_tfn_const_value(fn, inner->b, &m) && m > 0 && by % m == 0 && by / m == k &&
           berth_tfn_expr_equal(fn, div->a, inner->a);
}

// k * (x / k) + x % k = x, wherever both are in a form with matching coefficients.
static void merge_quotients(berth_tfn *fn, const berth_ranges *ranges, berth_linear *form) {
    for (int i = 0; i < form->count; ++i) {
        const berth_expr_node mod = fn->exprs.data[form->terms[i].atom];
        int64_t k = 0;
        if (mod.kind != BERTH_EXPR_BINARY || mod.op != BERTH_BINARY_MOD ||
            !berth_tfn_const_value(fn, mod.b, &k))
            continue;
        for (int j = 0; j < form->count; ++j) {
            int64_t scale = form->terms[i].coefficient;
            if (form->terms[j].coefficient != scale * k ||
                !is_quotient(fn, form->terms[j].atom, mod.a, k))
                continue;
            berth_linear whole = berth_linear_of(fn, ranges, mod.a);
            berth_linear rest = {.constant = form->constant};
            for (int t = 0; t < form->count; ++t)
                if (t != i && t != j) rest.terms[rest.count++] = form->terms[t];
            if (!add_scaled(fn, &rest, &whole, scale)) return;
            *form = rest;
            i = -1;
            break;
        }
    }
}

static berth_linear quotient(berth_tfn *fn, const berth_ranges *ranges, const berth_linear *x,
                             int64_t k, bool modulo);

// g * a + b with b in [0, g), g a divisor of k: over k it is a / (k / g), modulo k it is
// g * (a % (k / g)) + b. False when the form has no such parts.
static bool coarse_quotient(berth_tfn *fn, const berth_ranges *ranges, const berth_linear *x,
                            int64_t k, bool modulo, berth_linear *out) {
    for (int i = 0; i < x->count; ++i) {
        int64_t g = berth_greatest_divisor(k, x->terms[i].coefficient);
        if (g == 1 || g == k) continue;
        berth_linear coarse = {.constant = berth_floor_div(x->constant, g)};
        berth_linear fine = {.constant = x->constant - coarse.constant * g};
        for (int t = 0; t < x->count; ++t) {
            berth_linear_term term = x->terms[t];
            if (term.coefficient % g)
                fine.terms[fine.count++] = term;
            else
                coarse.terms[coarse.count++] = (berth_linear_term){term.atom, term.coefficient / g};
        }
        berth_range range = berth_linear_range(fn, ranges, &fine);
        if (range.low < 0 || range.high >= g) continue;
        berth_linear inner = quotient(fn, ranges, &coarse, k / g, modulo);
        if (!modulo) {
            *out = inner;
            return true;
        }
        if (add_scaled(fn, &fine, &inner, g)) {
            *out = fine;
            return true;
        }
    }
    return false;
}

// x / k or x % k: the part of x that k divides comes out when the rest lies in [0, k).
static berth_linear quotient(berth_tfn *fn, const berth_ranges *ranges, const berth_linear *x,
                             int64_t k, bool modulo) {
    berth_linear whole = {0};
    berth_linear rest = {0};
    for (int i = 0; i < x->count; ++i) {
        int64_t c = x->terms[i].coefficient;
        if (c % k == 0)
            whole.terms[whole.count++] = (berth_linear_term){x->terms[i].atom, c / k};
        else
            rest.terms[rest.count++] = x->terms[i];
    }
    whole.constant = berth_floor_div(x->constant, k);
    rest.constant = x->constant - whole.constant * k;
    berth_range range = berth_linear_range(fn, ranges, &rest);
    if (range.low >= 0 && range.high < k) return modulo ? rest : whole;
    berth_linear coarse = {0};
    if (coarse_quotient(fn, ranges, &rest, k, modulo, &coarse)) {
        if (modulo) return coarse;
        if (add_scaled(fn, &coarse, &whole, 1)) return coarse;
    }
    // 6 * i with i < 4 over 8: nothing comes out; keep one quotient of the rest.
    berth_expr inner = berth_linear_expr(fn, &rest);
    berth_expr atom = berth_tfn_binary(fn, modulo ? BERTH_BINARY_MOD : BERTH_BINARY_DIV, inner,
                                       berth_tfn_index(fn, k));
    if (modulo) return atom_form(atom);
    return add_term(fn, &whole, atom, 1) ? whole : atom_form(atom);
}

static bool linear_binary(berth_tfn *fn, const berth_ranges *ranges, berth_expr_node node,
                          berth_linear *out) {
    int64_t k = 0;
    if (node.op == BERTH_BINARY_ADD || node.op == BERTH_BINARY_SUB) {
        *out = berth_linear_of(fn, ranges, node.a);
        berth_linear b = berth_linear_of(fn, ranges, node.b);
        if (!add_scaled(fn, out, &b, node.op == BERTH_BINARY_ADD ? 1 : -1)) return false;
        merge_quotients(fn, ranges, out);
        return true;
    }
    berth_expr other = node.a;
    if (!berth_tfn_const_value(fn, node.b, &k)) {
        if (node.op != BERTH_BINARY_MUL || !berth_tfn_const_value(fn, node.a, &k)) return false;
        other = node.b;
    }
    berth_linear form = berth_linear_of(fn, ranges, other);
    if (node.op == BERTH_BINARY_MUL) {
        *out = (berth_linear){0};
        return add_scaled(fn, out, &form, k);
    }
    if ((node.op != BERTH_BINARY_DIV && node.op != BERTH_BINARY_MOD) || k <= 0) return false;
    *out = quotient(fn, ranges, &form, k, node.op == BERTH_BINARY_MOD);
    return true;
}

berth_linear berth_linear_of(berth_tfn *fn, const berth_ranges *ranges, berth_expr id) {
    berth_expr_node node = fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_INT) return (berth_linear){.constant = node.i};
    if (node.lanes == 1 && node.is_index) {
        berth_linear form = {0};
        if (node.kind == BERTH_EXPR_UNARY && node.op == BERTH_UNARY_NEG) {
            berth_linear inner = berth_linear_of(fn, ranges, node.a);
            if (add_scaled(fn, &form, &inner, -1)) return form;
        }
        if (node.kind == BERTH_EXPR_BINARY && linear_binary(fn, ranges, node, &form)) return form;
    }
    return atom_form(id);
}

berth_expr berth_linear_expr(berth_tfn *fn, const berth_linear *form) {
    berth_expr sum = 0;
    for (int i = 0; i < form->count; ++i) {
        int64_t c = form->terms[i].coefficient;
        bool subtract = sum && c < 0;
        berth_expr scale = berth_tfn_index(fn, subtract ? -c : c);
        berth_expr term = berth_tfn_binary(fn, BERTH_BINARY_MUL, form->terms[i].atom, scale);
        sum = sum ? berth_tfn_binary(fn, subtract ? BERTH_BINARY_SUB : BERTH_BINARY_ADD, sum, term)
                  : term;
    }
    berth_expr constant = berth_tfn_index(fn, form->constant);
    return sum ? berth_tfn_binary(fn, BERTH_BINARY_ADD, sum, constant) : constant;
}

// ---- accesses -----------------------------------------------------------------------------------

static berth_linear first_lane(berth_tfn *fn, const berth_ranges *ranges, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    return berth_linear_of(fn, ranges, node->kind == BERTH_EXPR_RAMP ? node->a : id);
}

// offset = offset * extent + part
static void append(berth_tfn *fn, berth_linear *offset, int64_t extent, const berth_linear *part) {
    berth_linear scaled = {0};
    if (add_scaled(fn, &scaled, offset, extent) && add_scaled(fn, &scaled, part, 1)) {
        *offset = scaled;
        return;
    }
    berth_expr whole = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_linear_expr(fn, offset),
                                        berth_tfn_index(fn, extent));
    *offset = atom_form(berth_tfn_binary(fn, BERTH_BINARY_ADD, whole, berth_linear_expr(fn, part)));
}

// In rows: without blocks. False where the form becomes too long.
static bool access_rows(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                        const berth_expr *indices, int count, berth_linear *out) {
    int64_t strides[BERTH_MAX_RANK], stride = 1;
    berth_expr ids[BERTH_MAX_RANK];
    for (int d = count - 1; d >= 0; --d) {
        strides[d] = stride;
        stride *= fn->bufs.data[buf].dims[d];
        ids[d] = indices[d];  // the list may move while nodes are added
    }
    *out = (berth_linear){0};
    for (int d = 0; d < count; ++d) {
        berth_linear at = first_lane(fn, ranges, ids[d]);
        if (!add_scaled(fn, out, &at, strides[d])) return false;
    }
    merge_quotients(fn, ranges, out);
    return true;
}

berth_linear berth_linear_access(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                                 const berth_expr *indices, int count) {
    const berth_buf_info info = fn->bufs.data[buf];
    berth_linear rows;
    berth_layout layout;
    if (!info.layout && access_rows(fn, ranges, buf, indices, count, &rows)) return rows;
    berth_status status =
        berth_layout_parse(berth_module_str(fn->module, info.layout), info.rank, &layout);
    if (status) {  // the verifier has seen the tag; row-major keeps going
        berth_status_free(status);
        status = berth_layout_parse("", info.rank, &layout);
        berth_status_free(status);
    }
    berth_expr ids[BERTH_MAX_RANK] = {0};
    for (int d = 0; d < count; ++d) ids[d] = indices[d];  // the list may move while nodes are added
    berth_linear at[BERTH_MAX_RANK];
    for (int d = 0; d < count; ++d) at[d] = first_lane(fn, ranges, ids[d]);
    berth_linear offset = {0};
    for (int i = 0; i < layout.rank; ++i) {
        int d = layout.outer[i];
        int64_t block = layout.total_block[d];
        berth_linear part = block > 1 ? quotient(fn, ranges, &at[d], block, false) : at[d];
        append(fn, &offset, (info.dims[d] + block - 1) / block, &part);
    }
    int64_t divisor[BERTH_MAX_RANK];
    memcpy(divisor, layout.total_block, sizeof(divisor));
    for (int i = 0; i < layout.block_count; ++i) {
        int d = layout.block_dim[i];
        berth_linear part = quotient(fn, ranges, &at[d], divisor[d], true);
        divisor[d] /= layout.block_size[i];
        if (divisor[d] > 1) part = quotient(fn, ranges, &part, divisor[d], false);
        append(fn, &offset, layout.block_size[i], &part);
    }
    merge_quotients(fn, ranges, &offset);
    return offset;
}

bool berth_linear_distance(const berth_tfn *fn, const berth_linear *a, const berth_linear *b,
                           int64_t *out_distance) {
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; ++i)
        if (a->terms[i].coefficient != b->terms[i].coefficient ||
            !berth_tfn_expr_equal(fn, a->terms[i].atom, b->terms[i].atom))
            return false;
    *out_distance = b->constant - a->constant;
    return true;
}

int64_t berth_linear_stride(const berth_tfn *fn, const berth_linear *form, berth_var var,
                            bool *out_linear) {
    int64_t stride = 0;
    *out_linear = true;
    for (int i = 0; i < form->count; ++i) {
        const berth_expr_node *atom = &fn->exprs.data[form->terms[i].atom];
        if (atom->kind == BERTH_EXPR_VAR)
            stride += atom->var == var ? form->terms[i].coefficient : 0;
        else if (berth_tfn_uses_var(fn, form->terms[i].atom, var))
            *out_linear = false;
    }
    return stride;
}

int64_t berth_linear_block(const berth_tfn *fn, const berth_linear *form, berth_var var) {
    int64_t largest = 0;
    for (int i = 0; i < form->count; ++i) {
        const berth_expr_node *node = &fn->exprs.data[form->terms[i].atom];
        int64_t k = 0;
        if (node->kind != BERTH_EXPR_BINARY ||
            (node->op != BERTH_BINARY_DIV && node->op != BERTH_BINARY_MOD))
            continue;
        if (berth_tfn_uses_var(fn, node->a, var) && berth_tfn_const_value(fn, node->b, &k) &&
            k > largest)
            largest = k;
    }
    return largest;
}
