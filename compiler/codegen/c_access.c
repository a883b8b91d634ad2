// Loads and stores of the C-family printer: where the lanes of an access lie.
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/c_moves.h"
#include "compiler/codegen/lanes.h"

static const berth_expr_node *node_of(const berth_c_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

// ---- where elements lie -------------------------------------------------------------------------

static berth_linear lane_access(berth_c_printer *p, berth_buf buf, const berth_expr *indices,
                                int count, int lane) {
    return berth_lane_access(p->fn, &p->ranges, buf, indices, count, lane, &p->status);
}

// The step of an access whose indices are ramps, or the same in all lanes, into a buffer in rows: that
// of the ramps' dimensions. False: there are other indices or blocks.
static bool ramp_step(const berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                      int64_t *out_step) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    int64_t stride = 1, step = 0;
    if (info->layout) return false;
    for (int d = count - 1; d >= 0; --d) {
        const berth_expr_node *node = node_of(p, indices[d]);
        if (node->lanes > 1 && node->kind != BERTH_EXPR_RAMP && node->kind != BERTH_EXPR_BROADCAST)
            return false;
        if (node->lanes > 1 && node->kind == BERTH_EXPR_RAMP) step += stride;
        stride *= info->dims[d];
    }
    *out_step = step;
    return true;
}

bool berth_c_lane_places(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                         int lanes, berth_linear *out_first, int64_t *out_places) {
    return berth_lane_places(p->fn, &p->ranges, buf, indices, count, lanes, out_first, out_places,
                             &p->status);
}

// Whether the lanes of an access follow each other in memory with a constant step.
static bool lane_step(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                      int lanes, int64_t *out_step) {
    if (ramp_step(p, buf, indices, count, out_step)) return true;
    *out_step = 0;
    berth_linear first = lane_access(p, buf, indices, count, 0);
    for (int l = 1; l < lanes; ++l) {
        berth_linear at = lane_access(p, buf, indices, count, l);
        int64_t step = 0;
        if (!berth_linear_distance(p->fn, &first, &at, &step)) return false;
        if (l == 1) *out_step = step;
        if (step != *out_step * l) return false;
    }
    return true;
}

static const char *lane_offset(berth_c_printer *p, berth_buf buf, const berth_expr *indices,
                               int count, int lane) {
    const char *text = berth_c_linear(p, lane_access(p, buf, indices, count, lane));
    return p->language->place ? p->language->place(p, buf, text) : text;
}

const char *berth_c_offset(berth_c_printer *p, berth_buf buf, const berth_expr *indices,
                           int count) {
    return lane_offset(p, buf, indices, count, 0);
}

int64_t berth_c_offset_alignment(berth_c_printer *p, berth_buf buf, const berth_expr *indices,
                                 int count) {
    berth_linear at = lane_access(p, buf, indices, count, 0);
    int64_t alignment = 64;
    while (at.constant % alignment) alignment /= 2;
    for (int i = 0; i < at.count; ++i)
        while (at.terms[i].coefficient % alignment) alignment /= 2;
    return alignment;
}

static void set_alignment(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count) {
    if (p->language->needs_alignment)
        p->access_alignment = berth_c_offset_alignment(p, buf, indices, count);
}

static bool has_ramp(const berth_c_printer *p, const berth_expr *indices, int count) {
    for (int d = 0; d < count; ++d)
        if (node_of(p, indices[d])->lanes > 1) return true;
    return false;
}

// ---- loads --------------------------------------------------------------------------------------

static const char *scalar_load(berth_c_printer *p, berth_buf buf, const char *offset) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    const char *name = berth_c_buffer_name(p, buf);
    if (info->scope == BERTH_SCOPE_REGISTER && info->rank == 0) return name;
    if (info->dtype == BERTH_DTYPE_F16)
        return berth_arena_printf(p->arena, "berth_f16_to_f32(%s[%s])", name, offset);
    if (info->dtype == BERTH_DTYPE_BF16)
        return berth_arena_printf(p->arena, "berth_bf16_to_f32(%s[%s])", name, offset);
    return berth_arena_printf(p->arena, "%s[%s]", name, offset);
}

// Elements of two bytes that are computed as f32 need loads and stores that convert.
static bool has_vector_access(const berth_c_printer *p, berth_buf buf) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    return dtype == berth_c_compute_type(dtype) || p->language->half_vectors;
}

const char *berth_c_load(berth_c_printer *p, berth_expr id) {
    const berth_expr_node node = *node_of(p, id);
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(p->fn, id), node.index_count * sizeof(berth_expr));
    berth_buf buf = node.load.buf;
    if (p->fn->bufs.data[buf].lanes > 1 || !has_ramp(p, indices, node.index_count))
        return scalar_load(p, buf, lane_offset(p, buf, indices, node.index_count, 0));
    const char *fragment = p->language->fragment ? p->language->fragment(p, id) : NULL;
    if (fragment) return fragment;
    int64_t step = 0;
    berth_c_value_type(p, (berth_dtype)node.dtype, node.lanes);
    if (lane_step(p, buf, indices, node.index_count, node.lanes, &step)) {
        const char *offset = lane_offset(p, buf, indices, node.index_count, 0);
        if (step == 1 && has_vector_access(p, buf)) {
            set_alignment(p, buf, indices, node.index_count);
            return p->language->vector_load(p, buf, offset, node.lanes);
        }
        if (step == 0)
            return berth_c_splat(
                p, (berth_dtype)node.dtype,
                berth_c_temporary(p, (berth_dtype)node.dtype, 1, scalar_load(p, buf, offset)),
                node.lanes);
        const char *steps = p->language->steps_load
                                ? p->language->steps_load(p, buf, offset, step, node.lanes)
                                : NULL;
        if (steps) return steps;
    }
    const char *texts[64];
    for (int l = 0; l < node.lanes && l < 64; ++l)
        texts[l] = scalar_load(p, buf, lane_offset(p, buf, indices, node.index_count, l));
    return p->language->vector_literal(p, (berth_dtype)node.dtype, texts, node.lanes);
}

// ---- stores -------------------------------------------------------------------------------------

static void scalar_store(berth_c_printer *p, berth_buf buf, const char *offset, const char *value) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    const char *name = berth_c_buffer_name(p, buf);
    if (info->scope == BERTH_SCOPE_REGISTER && info->rank == 0)
        berth_c_line(p, "%s = %s;", name, value);
    else if (info->dtype == BERTH_DTYPE_F16)
        berth_c_line(p, "%s[%s] = berth_f32_to_f16(%s);", name, offset, value);
    else if (info->dtype == BERTH_DTYPE_BF16)
        berth_c_line(p, "%s[%s] = berth_f32_to_bf16(%s);", name, offset, value);
    else if (berth_dtype_is_float(info->dtype) || info->lanes > 1)
        berth_c_line(p, "%s[%s] = %s;", name, offset, value);
    else
        berth_c_line(p, "%s[%s] = (%s)%s;", name, offset, berth_c_storage_type(p, info->dtype),
                     value);
}

static void vector_store(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                         berth_dtype dtype, int lanes, const char *value) {
    int64_t step = 0;
    const bool even = lane_step(p, buf, indices, count, lanes, &step);
    if (even && step == 1 && has_vector_access(p, buf)) {
        set_alignment(p, buf, indices, count);
        p->language->vector_store(p, buf, lane_offset(p, buf, indices, count, 0), lanes, value);
        return;
    }
    const char *whole = berth_c_temporary(p, dtype, lanes, value);
    if (even && p->language->steps_store &&
        p->language->steps_store(p, buf, lane_offset(p, buf, indices, count, 0), step, lanes,
                                 whole))
        return;
    for (int l = 0; l < lanes; ++l)
        scalar_store(p, buf, lane_offset(p, buf, indices, count, l),
                     p->language->vector_lane(p, whole, l));
}

// What a store to a half precision buffer rounds anyway needs no rounding to it before.
static berth_expr without_rounding(const berth_c_printer *p, berth_dtype to, berth_expr id) {
    if (to != BERTH_DTYPE_F16 && to != BERTH_DTYPE_BF16) return id;
    for (;;) {
        const berth_expr_node *node = node_of(p, id);
        const berth_expr_node *from = node_of(p, node->a);
        bool rounds = node->kind == BERTH_EXPR_CAST &&
                      (node->dtype == to || node->dtype == BERTH_DTYPE_F32) &&
                      (from->dtype == to || from->dtype == BERTH_DTYPE_F32);
        if (!rounds || from->is_index) return id;
        id = node->a;
    }
}

void berth_c_store(berth_c_printer *p, berth_stmt id) {
    if (p->copies_async && p->language->copy_async(p, id)) return;
    if (p->language->half_bits && berth_c_store_bits(p, id)) return;
    berth_stmt_node node = p->fn->stmts.data[id];
    node.value = without_rounding(p, p->fn->bufs.data[node.buf].dtype, node.value);
    berth_expr indices[BERTH_MAX_RANK + 1];
    memcpy(indices, berth_tfn_store_indices(p->fn, id), node.index_count * sizeof(berth_expr));
    indices[node.index_count] = node.value;
    berth_c_begin_statement(p, indices, node.index_count + 1);
    const char *value = berth_c_value(p, node.value);
    const berth_expr_node what = *node_of(p, node.value);
    if (what.is_index && what.kind != BERTH_EXPR_CAST) value = berth_c_index(p, node.value);
    if (p->fn->bufs.data[node.buf].lanes > 1 || !has_ramp(p, indices, node.index_count))
        scalar_store(p, node.buf, lane_offset(p, node.buf, indices, node.index_count, 0), value);
    else
        vector_store(p, node.buf, indices, node.index_count, (berth_dtype)what.dtype, what.lanes,
                     value);
    berth_c_end_statement(p);
}
