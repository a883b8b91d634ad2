#include "compiler/schedule/plain_in_place.h"

#include "compiler/schedule/plain_columns.h"
#include "compiler/schedule/policy_cpu.h"

// The access that a strip is filled from, and the one store.
typedef struct both {
    berth_plain_sum *s;
    berth_linear x, y;
    berth_buf from, to;
} both;

static bool is_plain_buffer(const berth_tfn *fn, berth_buf buf, berth_buf_role role) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    return info->scope == BERTH_SCOPE_PARAM && info->role == role && !info->layout &&
           (berth_dtype_size_bytes(info->dtype) == 1 || info->dtype == BERTH_DTYPE_F32);
}

static bool read_accesses(both *b) {
    berth_tfn *fn = b->s->fn;
    berth_expr x = b->s->x;
    if (fn->exprs.data[x].kind == BERTH_EXPR_SELECT) x = fn->exprs.data[x].b;
    if (fn->exprs.data[x].kind == BERTH_EXPR_BINARY) x = fn->exprs.data[x].a;
    if (fn->exprs.data[x].kind == BERTH_EXPR_CAST) x = fn->exprs.data[x].a;
    if (fn->exprs.data[x].kind != BERTH_EXPR_LOAD || b->s->reduction.epilogue_count != 1)
        return false;
    const berth_stmt_node store = fn->stmts.data[b->s->reduction.epilogue[0]];
    b->from = fn->exprs.data[x].load.buf;
    b->to = store.buf;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &b->s->nest);
    berth_access_list loads = {0};
    berth_cpu__collect_loads(fn, &ranges, store.value, &loads);
    for (uint32_t i = 0; i < loads.items.count; ++i)
        if (loads.items.data[i].buf == b->from) return false;
    b->x = berth_plain__place(b->s, &b->s->nest, x);
    b->y = berth_linear_access(fn, &ranges, store.buf,
                               berth_tfn_store_indices(fn, b->s->reduction.epilogue[0]),
                               store.index_count);
    return is_plain_buffer(fn, b->from, BERTH_ROLE_IN) &&
           is_plain_buffer(fn, b->to, BERTH_ROLE_OUT) &&
           // Strides are compared in elements.
           berth_dtype_size_bytes(fn->bufs.data[b->from].dtype) ==
               berth_dtype_size_bytes(fn->bufs.data[b->to].dtype) &&
           fn->bufs.data[b->from].memory_scope == fn->bufs.data[b->to].memory_scope;
}

// How both move along a loop. False: not evenly.
static bool strides(const both *b, berth_var var, int64_t *x, int64_t *y) {
    bool linear_x = false, linear_y = false;
    *x = berth_linear_stride(b->s->fn, &b->x, var, &linear_x);
    *y = berth_linear_stride(b->s->fn, &b->y, var, &linear_y);
    return linear_x && linear_y;
}

static bool columns_fit(both *b) {
    berth_plain_sum *s = b->s;
    int64_t x = 0, y = 0, channel = 0, step = 0, span = 0;
    if (b->x.constant || b->y.constant || s->fn->exprs.data[s->x].kind == BERTH_EXPR_SELECT)
        return false;
    for (int i = 0; i < s->nest.count; ++i) {
        if (!strides(b, s->nest.loops[i].var, &x, &y)) return false;
        if (i == s->row) {
            channel = y;
            continue;
        }
        if (s->nest.loops[i].extent > 1 && x != y) return false;
        span += (s->nest.loops[i].extent - 1) * x;
    }
    return berth_plain__order_depth(s, &b->x, &step) && step == channel && span < channel;
}

static bool windows_fit(both *b, int high, int wide) {
    berth_plain_sum *s = b->s;
    int64_t x = 0, y = 0, from = 0, to = 0, span = 0;
    if (b->y.constant || s->fn->bufs.data[b->from].rank < 2) return false;
    for (int i = 0; i < s->nest.count; ++i) {
        if (!strides(b, s->nest.loops[i].var, &x, &y)) return false;
        if (i == s->row) {
            from = x;
            to = y;
        } else if (i == high || i == wide) {
            span += (s->nest.loops[i].extent - 1) * y;
        } else if (s->nest.loops[i].extent > 1) {
            return false;
        }
    }
    const berth_buf_info *info = &s->fn->bufs.data[b->from];
    return from == info->dims[info->rank - 1] * info->dims[info->rank - 2] && to <= from &&
           span < to;
}

bool berth_plain__may_stage(berth_plain_sum *s, int high, int wide, berth_buf *out_from,
                            berth_buf *out_to) {
    both b = {.s = s};
    if (!read_accesses(&b)) return false;
    *out_from = b.from;
    *out_to = b.to;
    return high < 0 ? columns_fit(&b) : windows_fit(&b, high, wide);
}

bool berth_plain_in_place(berth_tfn *fn, const berth_nest *nest, bool small, berth_buf *out_from,
                          berth_buf *out_to) {
    berth_plain_sum s = {.fn = fn, .nest = *nest};
    both b = {.s = &s};
    int high = -1, wide = -1;
    if (berth_plain__has_float_strip(fn, nest, small, &s, &high, &wide))
        return berth_plain__may_stage(&s, high, wide, out_from, out_to);
    s = (berth_plain_sum){.fn = fn, .nest = *nest};
    if (small) return false;
    if (berth_plain__has_columns(&s)) {
        if (!read_accesses(&b) || !columns_fit(&b)) return false;
    } else if (berth_plain__has_windows(fn, nest, &s, &high, &wide)) {
        if (!read_accesses(&b) || !windows_fit(&b, high, wide)) return false;
    } else {
        return false;
    }
    *out_from = b.from;
    *out_to = b.to;
    return true;
}
