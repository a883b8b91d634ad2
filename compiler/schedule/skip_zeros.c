#include "compiler/schedule/skip_zeros.h"

#include <string.h>

#include "compiler/schedule/linear.h"

enum {
    LEAST_SHARE =
        32,  // 1 / of the iterations, below which the conditions are not worth their place
    MOST_POINTS = 1 << 16,
    MOST_LETS = 64,
};

typedef struct border {
    berth_buf buf;
    int dim;
    int64_t low, high;
} border;

typedef struct skipping {
    berth_tfn *fn;
    berth_ranges ranges;
    border at;
    // Of the body that is looked at:
    berth_var lets[MOST_LETS];
    berth_expr values[MOST_LETS];
    uint32_t let_count;
    BERTH_VEC(berth_var) inner;  // its loops
    bool found;                  // an index of the buffer: `least` <= index <= `most`
    berth_linear least, most;
} skipping;

// ---- what a body does ---------------------------------------------------------------------------

// Zero where the elements of the buffer are.
static bool is_zero_there(const skipping *s, berth_expr id) {
    const berth_expr_node *node = &s->fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_BROADCAST || (node->kind == BERTH_EXPR_CAST && !node->is_index))
        return is_zero_there(s, node->a);
    if (node->kind == BERTH_EXPR_LOAD) return node->load.buf == s->at.buf;
    if (node->kind != BERTH_EXPR_VAR) return false;
    for (uint32_t i = 0; i < s->let_count; ++i)
        if (s->lets[i] == node->var) return is_zero_there(s, s->values[i]);
    return false;
}

// acc = fma(a, b, acc) with one of the factors zero there
static bool adds_products(const skipping *s, const berth_stmt_node *store) {
    const berth_expr_node *sum = &s->fn->exprs.data[store->value];
    if (sum->kind != BERTH_EXPR_FMA) return false;
    const berth_expr_node *old = &s->fn->exprs.data[sum->c];
    if (old->kind != BERTH_EXPR_LOAD || old->load.buf != store->buf ||
        old->index_count != store->index_count)
        return false;
    for (uint32_t i = 0; i < old->index_count; ++i)
        if (!berth_tfn_expr_equal(s->fn, s->fn->lists.data[old->load.first_index + i],
                                  s->fn->lists.data[store->first + i]))
            return false;
    return is_zero_there(s, sum->a) || is_zero_there(s, sum->b);
}

// Whether the statement does nothing where the elements of the buffer are zero; collects loops and lets.
static bool only_adds(skipping *s, berth_stmt id) {
    const berth_stmt_node node = s->fn->stmts.data[id];
    switch (node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!only_adds(s, s->fn->lists.data[node.first + i])) return false;
        return true;
    case BERTH_STMT_FOR:
        if (node.loop_kind != BERTH_LOOP_SERIAL && node.loop_kind != BERTH_LOOP_UNROLL)
            return false;
        berth_vec_push(s->fn->module->arena, &s->inner, node.var);
        return only_adds(s, node.body);
    case BERTH_STMT_LET:
        if (s->let_count == MOST_LETS) return false;
        s->lets[s->let_count] = node.var;
        s->values[s->let_count++] = node.value;
        return true;
    case BERTH_STMT_STORE: return adds_products(s, &node);
    case BERTH_STMT_IF: return !node.other && only_adds(s, node.body);
    default: return false;
    }
}

// ---- where the buffer is read -------------------------------------------------------------------

static bool is_inner(const skipping *s, berth_expr atom) {
    const berth_expr_node *node = &s->fn->exprs.data[atom];
    for (uint32_t i = 0; node->kind == BERTH_EXPR_VAR && i < s->inner.count; ++i)
        if (s->inner.data[i] == node->var) return true;
    return false;
}

// Takes the loops of the body out of a form, at the least or the most that they add.
static bool bound_form(const skipping *s, berth_linear *form, bool most) {
    int kept = 0;
    for (int t = 0; t < form->count; ++t) {
        const berth_linear_term term = form->terms[t];
        if (is_inner(s, term.atom)) {
            berth_range range = berth_range_of(s->fn, &s->ranges, term.atom);
            if (!berth_range_is_known(range)) return false;
            form->constant +=
                term.coefficient * ((term.coefficient > 0) == most ? range.high : range.low);
        } else if (s->fn->exprs.data[term.atom].kind == BERTH_EXPR_VAR) {
            form->terms[kept++] = term;
        } else {
            return false;
        }
    }
    form->count = kept;
    return true;
}

static bool same_terms(const skipping *s, const berth_linear *a, const berth_linear *b) {
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; ++i) {
        int k = 0;
        while (k < b->count && (a->terms[i].coefficient != b->terms[k].coefficient ||
                                !berth_tfn_expr_equal(s->fn, a->terms[i].atom, b->terms[k].atom)))
            ++k;
        if (k == b->count) return false;
    }
    return true;
}

static bool note_index(skipping *s, berth_expr index) {
    const berth_expr_node node = s->fn->exprs.data[index];
    int64_t lanes = node.kind == BERTH_EXPR_RAMP ? node.lanes : 1;
    berth_linear least =
        berth_linear_of(s->fn, &s->ranges, node.kind == BERTH_EXPR_RAMP ? node.a : index);
    const int64_t far = (int64_t)1 << 40;  // beyond it sums of indices might not fit
    berth_range range = berth_linear_range(s->fn, &s->ranges, &least);
    if (range.low < -far || range.high > far) return false;
    berth_linear most = least;
    most.constant += lanes - 1;
    if (!bound_form(s, &least, false) || !bound_form(s, &most, true)) return false;
    if (s->found && (!same_terms(s, &least, &s->least) || !same_terms(s, &most, &s->most)))
        return false;
    if (!s->found || least.constant < s->least.constant) s->least = least;
    if (!s->found || most.constant > s->most.constant) s->most = most;
    s->found = true;
    return true;
}

static bool note_loads(skipping *s, berth_expr id) {
    const berth_expr_node node = s->fn->exprs.data[id];
    if (id == 0) return true;
    if (node.kind == BERTH_EXPR_LOAD)
        return node.load.buf != s->at.buf ||
               note_index(s, s->fn->lists.data[node.load.first_index + (uint32_t)s->at.dim]);
    return note_loads(s, node.a) && note_loads(s, node.b) && note_loads(s, node.c);
}

static bool note_statement(skipping *s, berth_stmt id) {
    const berth_stmt_node node = s->fn->stmts.data[id];
    switch (node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!note_statement(s, s->fn->lists.data[node.first + i])) return false;
        return true;
    case BERTH_STMT_FOR:
    case BERTH_STMT_IF: return note_statement(s, node.body);
    default: return note_loads(s, node.value);
    }
}

// ---- conditions ---------------------------------------------------------------------------------

typedef struct tally {
    int64_t all, left_out;
} tally;

// Goes through the values of the loops around, from term `at` on.
static bool count_points(const skipping *s, int at, int64_t sum, tally *out) {
    if (at == s->least.count) {
        out->all++;
        out->left_out +=
            s->most.constant + sum < s->at.low || s->least.constant + sum >= s->at.high;
        return out->all <= MOST_POINTS;
    }
    berth_range range = berth_range_of(s->fn, &s->ranges, s->least.terms[at].atom);
    if (!berth_range_is_known(range) || range.high - range.low >= MOST_POINTS) return false;
    for (int64_t v = range.low; v <= range.high; ++v)
        if (!count_points(s, at + 1, sum + v * s->least.terms[at].coefficient, out)) return false;
    return true;
}

static berth_expr condition_of(skipping *s) {
    berth_tfn *fn = s->fn;
    berth_range least = berth_linear_range(fn, &s->ranges, &s->least);
    berth_range most = berth_linear_range(fn, &s->ranges, &s->most);
    berth_expr condition = 0;
    if (most.low < s->at.low)
        condition = berth_tfn_binary(fn, BERTH_BINARY_GE, berth_linear_expr(fn, &s->most),
                                     berth_tfn_index(fn, s->at.low));
    if (least.high < s->at.high) return condition;
    berth_expr before = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_linear_expr(fn, &s->least),
                                         berth_tfn_index(fn, s->at.high));
    return condition ? berth_tfn_binary(fn, BERTH_BINARY_AND, condition, before) : before;
}

static bool moves_index(const skipping *s, berth_var var) {
    for (int t = 0; t < s->least.count; ++t)
        if (s->fn->exprs.data[s->least.terms[t].atom].var == var) return true;
    return false;
}

static bool skip_in_loop(skipping *s, berth_stmt loop) {
    const berth_stmt_node node = s->fn->stmts.data[loop];
    tally counted = {0};
    s->let_count = s->inner.count = 0;
    s->found = false;
    if (node.loop_kind != BERTH_LOOP_SERIAL || !only_adds(s, node.body) ||
        !note_statement(s, node.body) || !s->found || !moves_index(s, node.var) ||
        !count_points(s, 0, 0, &counted) || counted.left_out * LEAST_SHARE < counted.all)
        return false;
    berth_expr condition = condition_of(s);
    if (!condition) return false;
    berth_stmt guarded = berth_tfn_if(s->fn, condition, node.body, 0);
    s->fn->stmts.data[loop].body = guarded;
    return true;
}

// The outermost loops that have one condition for all that is in them.
static void walk(skipping *s, berth_stmt id) {
    const berth_stmt_node node = s->fn->stmts.data[id];
    if (id == 0) return;
    if (node.kind == BERTH_STMT_FOR && skip_in_loop(s, id)) return;
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        walk(s, node.body);
        walk(s, node.other);
    }
    for (uint32_t i = 0; node.kind == BERTH_STMT_SEQ && i < node.count; ++i)
        walk(s, s->fn->lists.data[node.first + i]);
}

static bool is_border(const berth_tfn *fn, const int64_t *q) {
    return q[0] >= 0 && q[0] < (int64_t)fn->param_count && q[1] >= 0 &&
           q[1] < fn->bufs.data[q[0]].rank && fn->bufs.data[q[0]].role == BERTH_ROLE_IN;
}

void berth_schedule_skip_zeros(berth_tfn *fn, const berth_attrs *attrs) {
    uint32_t count = 0;
    const int64_t *quads = berth_attrs_ints(fn->module, attrs, BERTH_ATTR_ZERO_BORDER, &count);
    if (!quads || fn->any_size) return;
    for (uint32_t i = 0; i + 4 <= count; i += 4) {
        if (!is_border(fn, quads + i)) continue;
        skipping s = {.fn = fn,
                      .ranges = berth_ranges_collect(fn),
                      .at = {(berth_buf)quads[i], (int)quads[i + 1], quads[i + 2], quads[i + 3]}};
        walk(&s, fn->body);
    }
}
