#include "drivers/vta/compiler/reader.h"

#include <math.h>
#include <string.h>

berth_status berth_vta__refuse(const char *what) {
    return berth_status_make(BERTH_UNSUPPORTED, "no stream for a VTA is known for %s", what);
}

// ---- constants and linear functions -------------------------------------------------------------

bool berth_vta__constant(const berth_vta_reader *r, berth_expr id, double *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double a = 0, b = 0;
    switch (e->kind) {
    case BERTH_EXPR_INT: *out = (double)e->i; return true;
    case BERTH_EXPR_FLOAT: *out = e->f; return true;
    case BERTH_EXPR_CAST:  // of numbers that both types have
    case BERTH_EXPR_BROADCAST: return berth_vta__constant(r, e->a, out);
    case BERTH_EXPR_BINARY:
        if (!berth_vta__constant(r, e->a, &a) || !berth_vta__constant(r, e->b, &b)) return false;
        *out = e->op == BERTH_BINARY_ADD   ? a + b
               : e->op == BERTH_BINARY_SUB ? a - b
               : e->op == BERTH_BINARY_MUL ? a * b
               : e->op == BERTH_BINARY_DIV ? a / b
                                           : NAN;
        return !isnan(*out);
    default: return false;
    }
}

// Where lanes of an operand of the matrix unit are: inputs of a block one after the other, weights so
// for each result of a block (intrinsics.c).
static bool is_lanes(const berth_vta_reader *r, berth_expr id, berth_vta_affine *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double by = 0;
    if (!r->block) return false;
    if (e->kind == BERTH_EXPR_RAMP) {
        if (e->lanes != r->block || !berth_vta__linear(r, e->a, out)) return false;
        if (r->own)
            out->by[r->lane]++;
        else
            out->lane++;
        return true;
    }
    if (e->kind != BERTH_EXPR_BINARY || (e->op != BERTH_BINARY_DIV && e->op != BERTH_BINARY_MOD))
        return false;
    const berth_expr_node *lanes = berth_vta__expr(r, e->a);
    if (lanes->kind != BERTH_EXPR_RAMP || lanes->lanes != r->block * r->block ||
        !berth_vta__linear(r, lanes->a, out) || out->constant ||
        !berth_vta__constant(r, e->b, &by) || by != (double)r->block)
        return false;
    for (int i = 0; i < r->count; ++i)
        if (out->by[i]) return false;
    if (e->op == BERTH_BINARY_DIV)
        out->by[r->lane] = 1;
    else
        out->lane = 1;
    return true;
}

bool berth_vta__linear(const berth_vta_reader *r, berth_expr id, berth_vta_affine *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    berth_vta_affine a, b;
    memset(out, 0, sizeof(*out));
    if (e->kind == BERTH_EXPR_INT) {
        out->constant = e->i;
        return true;
    }
    if (e->kind == BERTH_EXPR_BROADCAST) return berth_vta__linear(r, e->a, out);
    if (is_lanes(r, id, out)) return true;
    if (e->kind == BERTH_EXPR_VAR) {
        for (int i = 0; i < r->count; ++i) {
            if (r->loops[i].var != e->var) continue;
            out->by[i] = 1;
            return true;
        }
        return false;
    }
    if (e->kind != BERTH_EXPR_BINARY || !berth_vta__linear(r, e->a, &a) ||
        !berth_vta__linear(r, e->b, &b))
        return false;
    double factor = 0;
    if (e->op == BERTH_BINARY_MUL && !berth_vta__constant(r, e->b, &factor)) {
        if (!berth_vta__constant(r, e->a, &factor)) return false;
        a = b;
    }
    if (e->op != BERTH_BINARY_ADD && e->op != BERTH_BINARY_SUB && e->op != BERTH_BINARY_MUL)
        return false;
    int64_t sign = e->op == BERTH_BINARY_SUB ? -1 : 1;
    bool product = e->op == BERTH_BINARY_MUL;
    for (int i = 0; i < r->count; ++i)
        out->by[i] = product ? a.by[i] * (int64_t)factor : a.by[i] + sign * b.by[i];
    out->lane = product ? a.lane * (int64_t)factor : a.lane + sign * b.lane;
    out->constant = product ? a.constant * (int64_t)factor : a.constant + sign * b.constant;
    return true;
}

bool berth_vta__same(const berth_vta_reader *r, const berth_vta_affine *a,
                     const berth_vta_affine *b) {
    return a->constant == b->constant && a->lane == b->lane &&
           memcmp(a->by, b->by, (size_t)r->count * sizeof(a->by[0])) == 0;
}

bool berth_vta__index_of(const berth_vta_reader *r, berth_expr load, int dim,
                         berth_vta_affine *out) {
    if (!berth_vta__linear(r, berth_tfn_load_indices(r->fn, load)[dim], out)) return false;
    if (!out->lane) return true;
    if (out->by[r->channels] != out->lane * r->block) return false;
    out->by[r->channels] = out->lane;
    out->lane = 0;
    return true;
}

bool berth_vta__result_index(const berth_vta_reader *r, int dim, berth_vta_affine *out) {
    return berth_vta__linear(r, berth_tfn_store_indices(r->fn, r->result)[dim], out);
}

// ---- statements ---------------------------------------------------------------------------------

berth_status berth_vta__open_loop(berth_vta_reader *r, const berth_stmt_node *loop) {
    int64_t extent = 0;
    if (r->count == BERTH_VTA_MOST_LOOPS) return berth_vta__refuse("so many loops");
    if (!berth_tfn_const_value(r->fn, loop->value, &extent))
        return berth_vta__refuse("a loop of any length");
    r->loops[r->count].var = loop->var;
    r->loops[r->count++].extent = extent;
    return BERTH_OK;
}

static bool is_product(const berth_vta_reader *r, berth_stmt store) {
    return berth_vta__expr(r, berth_tfn_stmt(r->fn, store)->value)->kind == BERTH_EXPR_INTRINSIC;
}

// The loops of a reduction, down to its store.
static berth_status read_reduction(berth_vta_reader *r, berth_stmt id) {
    const berth_stmt_node *s = berth_tfn_stmt(r->fn, id);
    for (; s->kind == BERTH_STMT_FOR; s = berth_tfn_stmt(r->fn, id)) {
        BERTH_TRY(berth_vta__open_loop(r, s));
        id = s->body;
        if (berth_tfn_stmt(r->fn, id)->kind == BERTH_STMT_SEQ &&
            berth_tfn_stmt(r->fn, id)->count == 1)
            id = berth_tfn_seq_items(r->fn, id)[0];
    }
    if (s->kind != BERTH_STMT_STORE || s->buf != r->acc || r->update ||
        (r->block && !is_product(r, id)))
        return berth_vta__refuse("a reduction of this form");
    r->update = id;
    return BERTH_OK;
}

// for a block { sums = 0 }, the matrix unit's sum, for a block { result }: the last loop is one over
// results (schedule.c).
static berth_status read_block(berth_vta_reader *r, const berth_stmt *items, uint32_t count) {
    const berth_stmt_node *first = count == 4 ? berth_tfn_stmt(r->fn, items[1]) : NULL;
    const berth_stmt_node *last = count == 4 ? berth_tfn_stmt(r->fn, items[3]) : NULL;
    if (!first || first->kind != BERTH_STMT_FOR || last->kind != BERTH_STMT_FOR)
        return berth_vta__refuse("a block of this form");
    r->block = r->fn->bufs.data[r->acc].dims[0];
    r->lane = r->count;
    BERTH_TRY(berth_vta__open_loop(r, last));
    if (r->loops[r->lane].extent != r->block) return berth_vta__refuse("a part of a block");
    r->outer = r->count;
    r->init = first->body;
    r->result = last->body;
    const berth_stmt_node *init = berth_tfn_stmt(r->fn, r->init);
    const berth_stmt_node *result = berth_tfn_stmt(r->fn, r->result);
    if (init->kind != BERTH_STMT_STORE || init->buf != r->acc || result->kind != BERTH_STMT_STORE ||
        result->buf == r->acc)
        return berth_vta__refuse("a block of this form");
    return read_reduction(r, items[2]);
}

static berth_status read_item(berth_vta_reader *r, berth_stmt id) {
    const berth_stmt_node *s = berth_tfn_stmt(r->fn, id);
    if (s->kind == BERTH_STMT_ALLOC && !r->acc) {
        r->acc = s->buf;
        return r->fn->bufs.data[s->buf].rank == 0 ? BERTH_OK
                                                  : berth_vta__refuse("a tile of registers");
    }
    if (s->kind == BERTH_STMT_FOR) return read_reduction(r, id);
    if (s->kind != BERTH_STMT_STORE) return berth_vta__refuse("a statement of this kind");
    berth_stmt *to = r->acc && s->buf == r->acc ? &r->init : &r->result;
    if (to == &r->init && *to) to = &r->update;  // a reduction over one element has no loops
    if (*to) return berth_vta__refuse("several results");
    *to = id;
    return BERTH_OK;
}

static berth_status read_sequence(berth_vta_reader *r, berth_stmt id) {
    const berth_stmt *items = berth_tfn_seq_items(r->fn, id);
    uint32_t count = berth_tfn_stmt(r->fn, id)->count;
    const berth_stmt_node *alloc = berth_tfn_stmt(r->fn, items[0]);
    if (alloc->kind == BERTH_STMT_ALLOC && r->fn->bufs.data[alloc->buf].rank == 1) {
        r->acc = alloc->buf;
        return read_block(r, items, count);
    }
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(read_item(r, items[i]));
    return BERTH_OK;
}

berth_status berth_vta__read_statements(berth_vta_reader *r, berth_stmt id) {
    const berth_stmt_node *s = berth_tfn_stmt(r->fn, id);
    for (; s->kind == BERTH_STMT_FOR; s = berth_tfn_stmt(r->fn, id)) {
        BERTH_TRY(berth_vta__open_loop(r, s));
        id = s->body;
    }
    r->outer = r->count;
    if (s->kind != BERTH_STMT_SEQ) {
        BERTH_TRY(read_item(r, id));
    } else {
        BERTH_TRY(read_sequence(r, id));
    }
    if (!r->result || (r->acc && (!r->init || !r->update)))
        return berth_vta__refuse("a nest without one result");
    return BERTH_OK;
}
