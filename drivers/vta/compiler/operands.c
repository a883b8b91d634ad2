// Where operands lie: windows, groups and strides from the indices of loads, tensors side by side, and
// which conditions around a load only say that it is inside.
#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/compiler/reader.h"

// select(index < extent, value, 0) where the result is filled up to whole blocks: the value.
berth_expr berth_vta__without_fill(const berth_vta_reader *r, berth_expr id) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double zero = 1;
    if (e->kind != BERTH_EXPR_SELECT || !berth_vta__constant(r, e->c, &zero) || zero != 0)
        return id;
    const berth_expr_node *c = berth_vta__expr(r, e->a);
    berth_vta_affine left, right;
    int64_t extent = 0;
    const berth_buf_info *to = &r->fn->bufs.data[berth_tfn_stmt(r->fn, r->result)->buf];
    if (c->kind != BERTH_EXPR_BINARY || c->op != BERTH_BINARY_LT ||
        !berth_vta__linear(r, c->a, &left) || !berth_tfn_const_value(r->fn, c->b, &extent))
        return id;
    for (int d = 0; d < to->rank; ++d)
        if (to->dims[d] == extent && berth_vta__result_index(r, d, &right) &&
            berth_vta__same(r, &left, &right)) {
            r->out->within = e->a;
            return e->b;
        }
    return id;
}

// ---- operands -----------------------------------------------------------------------------------

// The load of an 8-bit (or, for biases, 32-bit) element: casts and zero points of 0 around it.
bool berth_vta__load_of(const berth_vta_reader *r, berth_expr id, berth_expr *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double zero = 1;
    while (e->kind == BERTH_EXPR_CAST ||
           (e->kind == BERTH_EXPR_BINARY && e->op == BERTH_BINARY_SUB &&
            berth_vta__constant(r, e->b, &zero) && zero == 0)) {
        if (e->kind == BERTH_EXPR_CAST && !berth_dtype_is_integer(e->dtype)) return false;
        id = e->a;
        e = berth_vta__expr(r, id);
    }
    *out = id;
    return e->kind == BERTH_EXPR_LOAD;
}

// Whether a condition says that indices of the load are inside its buffer, and nothing else.
static bool says_inside(const berth_vta_reader *r, berth_expr id, berth_expr load) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    berth_vta_affine at, index;
    int64_t limit = 0;
    if (e->kind != BERTH_EXPR_BINARY) return false;
    if (e->op == BERTH_BINARY_AND) return says_inside(r, e->a, load) && says_inside(r, e->b, load);
    if (!berth_vta__linear(r, e->a, &at) || !berth_tfn_const_value(r->fn, e->b, &limit))
        return false;
    const berth_buf_info *buf = &r->fn->bufs.data[berth_vta__expr(r, load)->load.buf];
    for (int d = 0; d < buf->rank; ++d) {
        if (!berth_vta__index_of(r, load, d, &index)) continue;
        // Of a block of lanes the first one's stands for all, where blocks are whole.
        if (r->own && limit % r->block == 0 && !at.by[r->lane]) index.by[r->lane] = 0;
        if (!berth_vta__same(r, &at, &index)) continue;
        if (e->op == BERTH_BINARY_GE) return limit == 0;
        return e->op == BERTH_BINARY_LT && limit == buf->dims[d];
    }
    return false;
}

// The load of an operand that is `fill` where the window is outside of the input.
bool berth_vta__padded_load(const berth_vta_reader *r, berth_expr id, double fill,
                            berth_expr *out) {
    const berth_expr_node *e = berth_vta__expr(r, id);
    double other = 0;
    if (e->kind != BERTH_EXPR_SELECT) return berth_vta__load_of(r, id, out);
    return berth_vta__constant(r, e->c, &other) && other == fill &&
           berth_vta__load_of(r, e->b, out) && says_inside(r, e->a, *out);
}

// Which result loops an index follows, times what: index = factor * result + one loop of the
// reduction times something + constant. Position in r->loops of that loop, or -1.
static bool follows(const berth_vta_reader *r, const berth_vta_affine *index,
                    const berth_vta_affine *result, int64_t *factor, int *loop) {
    *factor = 0;
    *loop = -1;
    for (int i = 0; i < r->outer; ++i)
        if (result->by[i]) {
            if (index->by[i] % result->by[i]) return false;
            *factor = index->by[i] / result->by[i];
            break;
        }
    for (int i = 0; i < r->outer; ++i)
        if (index->by[i] != *factor * result->by[i]) return false;
    for (int i = r->outer; i < r->count; ++i) {
        if (index->by[i] == 0) continue;
        if (*loop >= 0) return false;
        *loop = i;
    }
    return true;
}

// Strides, window and padding of one spatial dimension.
static bool spatial(const berth_vta_reader *r, berth_expr load, int dim, int64_t *stride,
                    int64_t *kernel, int64_t *dilation, int64_t *pad, int *loop) {
    berth_vta_affine at, result;
    if (!berth_vta__index_of(r, load, dim, &at) || !berth_vta__result_index(r, dim, &result) ||
        result.constant)
        return false;
    if (!follows(r, &at, &result, stride, loop)) return false;
    if (*stride == 0) *stride = 1;  // a result of one row: any
    *kernel = *loop >= 0 ? r->loops[*loop].extent : 1;
    *dilation = *loop >= 0 ? at.by[*loop] : 1;
    *pad = -at.constant;
    return *pad >= 0 && *stride > 0 && *dilation > 0;
}

// Channels of the input: those of the result, or the loop *channels over those of the group that the
// result lies in.
static bool read_channels(const berth_vta_reader *r, berth_expr load, int *channels) {
    berth_vta_nest *n = r->out;
    berth_vta_affine at, result;
    *channels = -1;
    if (!berth_vta__index_of(r, load, 1, &at) || !berth_vta__result_index(r, 1, &result) ||
        at.constant)
        return false;
    for (int i = r->outer; i < r->count; ++i) {
        if (at.by[i] == 0) continue;
        if (*channels >= 0 || at.by[i] != 1) return false;
        *channels = i;
    }
    n->groups = 1;
    if (*channels < 0) {
        const berth_vta_affine first = {0};
        return berth_vta__same(r, &at, &result) ||
               (n->in_channels == 1 && berth_vta__same(r, &at, &first));
    }
    int64_t in_group = r->loops[*channels].extent, out_group = 0, within = 1;
    if (r->block && in_group > n->in_channels) in_group = n->in_channels;  // filled up
    if (in_group < 1 || n->in_channels % in_group) return false;
    n->groups = n->in_channels / in_group;
    if (n->out_channels % n->groups) return false;
    out_group = n->out_channels / n->groups;
    for (int i = 0; i < r->outer; ++i) {
        // Either between groups, in whole ones, or within one.
        if (at.by[i] % in_group || (at.by[i] && at.by[i] / in_group * out_group != result.by[i]))
            return false;
        if (!at.by[i]) within += (r->loops[i].extent - 1) * result.by[i];
    }
    return n->groups == 1 || within <= out_group;
}

// n, c, h, w of input and output, and the window; its loops of channels, rows and columns, -1 = none.
berth_status berth_vta__read_window(berth_vta_reader *r, berth_expr load, int loops[3]) {
    berth_vta_nest *n = r->out;
    n->input = berth_vta__expr(r, load)->load.buf;
    const berth_buf_info *in = &r->fn->bufs.data[n->input], *out = &r->fn->bufs.data[n->output];
    berth_vta_affine at, result;
    if (in->rank != 4 || out->rank != 4 || in->dims[0] != out->dims[0])
        return berth_vta__refuse("tensors of other ranks than 4");
    if (in->dtype != BERTH_DTYPE_I8) return berth_vta__refuse("operands that are not i8");
    n->images = in->dims[0];
    n->in_channels = in->dims[1];
    n->out_channels = out->dims[1];
    n->height = in->dims[2];
    n->width = in->dims[3];
    n->out_height = out->dims[2];
    n->out_width = out->dims[3];
    if (!berth_vta__index_of(r, load, 0, &at) || !berth_vta__result_index(r, 0, &result) ||
        !berth_vta__same(r, &at, &result) || !read_channels(r, load, &loops[0]))
        return berth_vta__refuse("channels that are read in this way");
    if (!spatial(r, load, 2, &n->stride_h, &n->kernel_h, &n->dilation_h, &n->pad_h, &loops[1]) ||
        !spatial(r, load, 3, &n->stride_w, &n->kernel_w, &n->dilation_w, &n->pad_w, &loops[2]))
        return berth_vta__refuse("a window of this form");
    if ((loops[0] >= 0) + (loops[1] >= 0) + (loops[2] >= 0) != r->count - r->outer)
        return berth_vta__refuse("a reduction over more than channels and a window");
    return BERTH_OK;
}

// Each channel by itself: sums and maxima.
berth_status berth_vta__read_own_window(berth_vta_reader *r, berth_expr load) {
    int loops[3];
    BERTH_TRY(berth_vta__read_window(r, load, loops));
    if (loops[0] >= 0 || r->out->in_channels != r->out->out_channels)
        return berth_vta__refuse("sums or maxima of several channels");
    return BERTH_OK;
}

// The operands of the matrix unit: a block of inputs, a block of weights. Which of the loops goes over
// blocks of channels is seen from the weights.
berth_status berth_vta__take_product(berth_vta_reader *r, berth_expr value, berth_expr *out_x,
                                     berth_expr *out_w) {
    const berth_expr_node *e = berth_vta__expr(r, value);
    berth_expr w = 0;
    berth_vta_affine at;
    if (e->kind != BERTH_EXPR_INTRINSIC ||
        !berth_vta_intrinsic_is((berth_intrinsic)e->op, BERTH_VTA_DO_GEMM, r->block) ||
        berth_vta__expr(r, e->a)->kind != BERTH_EXPR_LOAD ||
        berth_vta__expr(r, e->a)->load.buf != r->acc)
        return berth_vta__refuse("an intrinsic that is not its matrix unit's");
    *out_x = e->b;
    *out_w = w = e->c;
    if (berth_vta__expr(r, w)->kind != BERTH_EXPR_LOAD || berth_vta__expr(r, w)->index_count != 4 ||
        !berth_vta__linear(r, berth_tfn_load_indices(r->fn, w)[1], &at))
        return berth_vta__refuse("weights that are read in this way");
    for (r->channels = r->outer; r->channels < r->count; ++r->channels)
        if (at.by[r->channels] == r->block) break;
    if (r->channels == r->count) return berth_vta__refuse("weights that are read in this way");
    r->loops[r->channels].extent *= r->block;
    return BERTH_OK;
}

// w[o, c, i, j] with the loops of the window.
bool berth_vta__weights_fit(const berth_vta_reader *r, berth_expr load, const int *loops) {
    berth_vta_affine at, result;
    if (r->fn->bufs.data[berth_vta__expr(r, load)->load.buf].rank != 4) return false;
    if (!berth_vta__index_of(r, load, 0, &at) || !berth_vta__result_index(r, 1, &result) ||
        !berth_vta__same(r, &at, &result))
        return false;
    for (int d = 1; d < 4; ++d) {
        berth_vta_affine wanted = {0};
        if (loops[d - 1] >= 0) wanted.by[loops[d - 1]] = 1;
        if (!berth_vta__index_of(r, load, d, &at) || !berth_vta__same(r, &at, &wanted))
            return false;
    }
    return true;
}

// select(c < end, x[n,c,h,w], ...): the tensor, which begins at channel `start`. False: none like it.
static bool read_part(berth_vta_reader *r, berth_expr load, int64_t start, int64_t *out_end) {
    berth_vta_nest *n = r->out;
    berth_vta_affine at, result;
    if (n->part_count == BERTH_VTA_MOST_PARTS || !berth_vta__padded_load(r, load, 0, &load))
        return false;
    const berth_buf_info *in = &r->fn->bufs.data[berth_vta__expr(r, load)->load.buf];
    const berth_buf_info *out = &r->fn->bufs.data[n->output];
    if (in->rank != 4 || out->rank != 4 || in->dtype != BERTH_DTYPE_I8) return false;
    for (int d = 0; d < 4; ++d) {
        if (!berth_vta__index_of(r, load, d, &at) || !berth_vta__result_index(r, d, &result))
            return false;
        if (d == 1) at.constant += start;
        if (!berth_vta__same(r, &at, &result) || (d != 1 && in->dims[d] != out->dims[d]))
            return false;
    }
    n->parts[n->part_count] = berth_vta__expr(r, load)->load.buf;
    n->part_channels[n->part_count++] = in->dims[1];
    *out_end = start + in->dims[1];
    return true;
}

// Results that are at the place of their input.
static void set_plain(berth_vta_nest *n, const berth_buf_info *out) {
    n->images = out->dims[0];
    n->out_channels = out->dims[1];
    n->height = n->out_height = out->dims[2];
    n->width = n->out_width = out->dims[3];
    n->groups = n->kernel_h = n->kernel_w = n->stride_h = n->stride_w = 1;
    n->dilation_h = n->dilation_w = 1;
}

berth_status berth_vta__read_parts(berth_vta_reader *r) {
    berth_vta_nest *n = r->out;
    const berth_buf_info *out = &r->fn->bufs.data[n->output];
    berth_expr value = r->terms[0];
    int64_t end = 0;
    for (;;) {
        const berth_expr_node *e = berth_vta__expr(r, value);
        bool last = e->kind != BERTH_EXPR_SELECT;
        berth_vta_affine left, result;
        int64_t limit = 0;
        if (!read_part(r, last ? value : e->b, end, &end))
            return berth_vta__refuse("tensors that are joined in this way");
        if (last) break;
        const berth_expr_node *c = berth_vta__expr(r, e->a);
        if (c->kind != BERTH_EXPR_BINARY || c->op != BERTH_BINARY_LT ||
            !berth_vta__linear(r, c->a, &left) || !berth_vta__result_index(r, 1, &result) ||
            !berth_tfn_const_value(r->fn, c->b, &limit) || limit != end)
            return berth_vta__refuse("a choice between tensors by something else than the channel");
        // All lanes of a block choose alike: the condition is that of the first one.
        if (r->own && limit % r->block == 0) result.by[r->lane] = 0;
        if (!berth_vta__same(r, &left, &result))
            return berth_vta__refuse("a choice between tensors by something else than the channel");
        value = e->c;
    }
    if (end != out->dims[1]) return berth_vta__refuse("tensors that do not fill the result");
    n->input = n->parts[0];
    n->in_channels = out->dims[1];
    set_plain(n, out);
    return BERTH_OK;
}

// x[n,c+first,h,w]. False: it is something else.
bool berth_vta__read_slice(berth_vta_reader *r, berth_expr load) {
    berth_vta_nest *n = r->out;
    const berth_buf_info *out = &r->fn->bufs.data[n->output];
    berth_vta_affine at, result;
    if (!berth_vta__load_of(r, load, &load)) return false;
    const berth_buf_info *in = &r->fn->bufs.data[berth_vta__expr(r, load)->load.buf];
    if (in->rank != 4 || out->rank != 4 || in->dtype != BERTH_DTYPE_I8) return false;
    for (int d = 0; d < 4; ++d) {
        if (!berth_vta__index_of(r, load, d, &at) || !berth_vta__result_index(r, d, &result))
            return false;
        if (d == 1) {
            n->first_channel = at.constant - result.constant;
            at.constant = result.constant;
        }
        if (!berth_vta__same(r, &at, &result) || (d != 1 && in->dims[d] != out->dims[d]))
            return false;
    }
    n->input = berth_vta__expr(r, load)->load.buf;
    n->in_channels = in->dims[1];
    set_plain(n, out);
    return n->first_channel >= 0 && n->first_channel + n->out_channels <= n->in_channels &&
           n->out_channels < n->in_channels;
}
