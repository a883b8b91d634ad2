#include "compiler/schedule/tensorize.h"

#include <string.h>

// What the reference of an intrinsic looks like: c[i] = value, for i and k.
typedef struct pattern {
    const berth_tfn *fn;
    berth_nest_loop lane;   // moves the result
    berth_nest_loop depth;  // does not
    berth_expr value;
} pattern;

typedef struct matcher {
    berth_tfn *fn;
    pattern p;
    const berth_intrinsic_facts *facts;
    berth_ranges ranges;
    berth_var lane;  // of the function
    berth_var depth;
    berth_buf acc;
    berth_expr operands[BERTH_INTRINSIC_OPERANDS_MAX];  // elements; [0]: the accumulator
    berth_expr regions[BERTH_INTRINSIC_OPERANDS_MAX];   // loads of the reference
} matcher;

static bool read_pattern(const berth_tfn *fn, pattern *out) {
    berth_nest nest;
    if (!berth_nest_parse(fn, fn->body, &nest) || nest.count != 2) return false;
    const berth_stmt_node *store = &fn->stmts.data[nest.body];
    if (store->kind != BERTH_STMT_STORE || store->index_count != 1) return false;
    *out =
        (pattern){.fn = fn, .lane = nest.loops[0], .depth = nest.loops[1], .value = store->value};
    return berth_tfn_uses_var(fn, berth_tfn_store_indices(fn, nest.body)[0], out->lane.var);
}

static berth_status get_pattern(berth_arena *arena, berth_intrinsic id, pattern *out) {
    const berth_tfn *reference = NULL;
    BERTH_TRY(berth_intrinsic_reference(arena, id, &reference));
    return read_pattern(reference, out)
               ? BERTH_OK
               : berth_status_make(BERTH_INTERNAL,
                                   "intrinsic %s: its reference is no nest of two loops around one "
                                   "store that the outer loop moves",
                                   berth_intrinsic_get(id)->name);
}

int64_t berth_intrinsic_depth(berth_intrinsic id) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    return facts->operands[2].lanes / facts->operands[0].lanes;
}

int64_t berth_intrinsic_step(berth_intrinsic id) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    return facts->operands[1].lanes / berth_intrinsic_depth(id);
}

static bool has_all(const berth_target *target, const char *from, const char *to) {
    char name[32];
    while (from < to) {
        size_t length = strcspn(from, "+|");
        if (length >= sizeof(name)) return false;
        memcpy(name, from, length);
        name[length] = 0;
        // OpenCL's devices have what their extensions say: NVIDIA's have no warps there.
        bool is_arch = !berth_target_takes_opencl_c(target) && strcmp(target->arch, name) == 0;
        if (!is_arch && !berth_target_has_feature(target, name)) return false;
        from += length + 1;
    }
    return true;
}

bool berth_intrinsic_serves(berth_intrinsic id, const berth_target *target) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    const char *at = facts->needs;
    if (berth_target_takes_opencl_c(target) && !facts->opencl) return false;
    for (;;) {
        const char *end = at + strcspn(at, "|");
        if (has_all(target, at, end)) return true;
        if (!*end) return false;
        at = end + 1;
    }
}

// ---- matching -----------------------------------------------------------------------------------

// Whether every value of `from` is one of `to`.
static bool widens(berth_dtype from, berth_dtype to) {
    if (from == to) return true;
    if (!berth_dtype_is_integer(from) || !berth_dtype_is_integer(to)) return false;
    bool smaller = berth_dtype_size_bytes(from) < berth_dtype_size_bytes(to);
    return smaller && (berth_dtype_is_signed(to) || !berth_dtype_is_signed(from));
}

static bool bind(matcher *m, berth_expr load, berth_expr value) {
    uint32_t which = m->p.fn->exprs.data[load].load.buf;
    const berth_expr_node *node = &m->fn->exprs.data[value];
    bool reads_acc = node->kind == BERTH_EXPR_LOAD && node->load.buf == m->acc;
    if (which >= BERTH_INTRINSIC_OPERANDS_MAX || node->lanes != 1 || node->is_index) return false;
    if (reads_acc != (which == 0)) return false;
    if (!widens((berth_dtype)node->dtype, m->facts->operands[which].dtype)) return false;
    m->operands[which] = value;
    m->regions[which] = load;
    return true;
}

static bool matches(matcher *m, berth_expr wanted, berth_expr value);

static bool matches_operands(matcher *m, const berth_expr_node *wanted, berth_expr a,
                             berth_expr b) {
    return matches(m, wanted->a, a) && matches(m, wanted->b, b);
}

// `wanted` is an expression of the reference, `value` one of the function.
static bool matches(matcher *m, berth_expr wanted, berth_expr value) {
    const berth_expr_node *w = &m->p.fn->exprs.data[wanted];
    const berth_expr_node v = m->fn->exprs.data[value];
    if (w->kind == BERTH_EXPR_LOAD) return bind(m, wanted, value);
    if (w->kind != v.kind || w->dtype != v.dtype || w->op != v.op) return false;
    switch ((berth_expr_kind)w->kind) {
    case BERTH_EXPR_CAST: return matches(m, w->a, v.a);
    case BERTH_EXPR_BINARY:
        if (matches_operands(m, w, v.a, v.b)) return true;
        return (w->op == BERTH_BINARY_ADD || w->op == BERTH_BINARY_MUL) &&
               matches_operands(m, w, v.b, v.a);
    default: return false;
    }
}

// ---- regions ------------------------------------------------------------------------------------

// Row-major strides of a region's two loops; 0 = the loop does not move it. False: another form.
static bool region_strides(const matcher *m, int which, int64_t *out_lane, int64_t *out_depth) {
    const berth_tfn *fn = m->p.fn;
    const berth_expr_node *load = &fn->exprs.data[m->regions[which]];
    int64_t stride = 1;
    *out_lane = *out_depth = 0;
    for (int i = load->index_count - 1; i >= 0; --i) {
        const berth_expr_node *index =
            &fn->exprs.data[berth_tfn_load_indices(fn, m->regions[which])[i]];
        if (index->kind != BERTH_EXPR_VAR) return false;
        *(index->var == m->p.lane.var ? out_lane : out_depth) = stride;
        stride *= fn->bufs.data[load->load.buf].dims[i];
    }
    return true;
}

// In which iteration of a loop every lane of a region is.
static berth_expr iterations(berth_tfn *fn, int64_t stride, int64_t extent, uint16_t lanes) {
    berth_expr at = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), lanes);
    if (stride > 1) at = berth_tfn_binary(fn, BERTH_BINARY_DIV, at, berth_tfn_index(fn, stride));
    if (stride * extent < lanes)
        at = berth_tfn_binary(fn, BERTH_BINARY_MOD, at, berth_tfn_index(fn, extent));
    return at;
}

// Whether a load lies in memory as the region does.
static bool lies_in_order(matcher *m, berth_expr load, int64_t lane_stride, int64_t depth_stride) {
    const berth_expr_node node = m->fn->exprs.data[load];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(m->fn, load), node.index_count * sizeof(berth_expr));
    berth_linear at =
        berth_linear_access(m->fn, &m->ranges, node.load.buf, indices, node.index_count);
    bool linear[2] = {false};
    int64_t by_lane = berth_linear_stride(m->fn, &at, m->lane, &linear[0]);
    int64_t by_depth = berth_linear_stride(m->fn, &at, m->depth, &linear[1]);
    return linear[0] && linear[1] && by_lane == lane_stride && by_depth == depth_stride;
}

// A number in all lanes; 0 = something else.
static berth_expr spread_number(berth_tfn *fn, berth_expr id, uint16_t lanes) {
    const berth_expr_node *node = &fn->exprs.data[id];
    bool number = node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT;
    return number && !node->is_index ? berth_tfn_broadcast(fn, id, lanes) : 0;
}

// Loads and casts of loads in all lanes of the region, and a number in their place where a condition
// says so for the region as a whole; 0 = something else.
static berth_expr spread(matcher *m, berth_expr id, const berth_expr *map, int64_t lane_stride,
                         int64_t depth_stride) {
    berth_tfn *fn = m->fn;
    const berth_expr_node node = fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_CAST && !node.is_index) {
        berth_expr inner = spread(m, node.a, map, lane_stride, depth_stride);
        return inner ? berth_tfn_cast(fn, (berth_dtype)node.dtype, inner) : 0;
    }
    if (node.kind == BERTH_EXPR_SELECT) {
        if (berth_tfn_uses_var(fn, node.a, m->lane) || berth_tfn_uses_var(fn, node.a, m->depth))
            return 0;
        berth_expr value = spread(m, node.b, map, lane_stride, depth_stride);
        berth_expr other = value ? spread_number(fn, node.c, fn->exprs.data[value].lanes) : 0;
        return other ? berth_tfn_select(fn, node.a, value, other) : 0;
    }
    if (node.kind != BERTH_EXPR_LOAD || fn->bufs.data[node.load.buf].lanes > 1) return 0;
    if (!berth_dtype_has_vectors((berth_dtype)node.dtype)) return 0;
    if (!lies_in_order(m, id, lane_stride, depth_stride)) return 0;
    return berth_tfn_substitute(fn, id, map, fn->vars.count);
}

static berth_expr region(matcher *m, int which) {
    berth_tfn *fn = m->fn;
    const berth_intrinsic_operand *operand = &m->facts->operands[which];
    int64_t lane_stride = 0;
    int64_t depth_stride = 0;
    if (!m->regions[which] || !region_strides(m, which, &lane_stride, &depth_stride)) return 0;
    if (!lane_stride && berth_tfn_uses_var(fn, m->operands[which], m->lane)) return 0;
    if (!depth_stride && berth_tfn_uses_var(fn, m->operands[which], m->depth)) return 0;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count + 1);
    if (lane_stride) map[m->lane] = iterations(fn, lane_stride, m->p.lane.extent, operand->lanes);
    if (depth_stride)
        map[m->depth] = iterations(fn, depth_stride, m->p.depth.extent, operand->lanes);
    berth_expr value = spread(m, m->operands[which], map, lane_stride, depth_stride);
    if (!value || fn->exprs.data[value].lanes != operand->lanes) return 0;
    return berth_tfn_cast(fn, operand->dtype, value);
}

// Ranges come from the function's loops; these two count to the extents of the reference.
static void know_loops(matcher *m) {
    berth_range *ranges = berth_arena_copy(m->fn->module->arena, m->ranges.of_var,
                                           (m->fn->vars.count + 1) * sizeof(*ranges));
    ranges[m->lane] = (berth_range){0, m->p.lane.extent - 1};
    ranges[m->depth] = (berth_range){0, m->p.depth.extent - 1};
    m->ranges.of_var = ranges;
}

berth_status berth_tensorize_update(berth_tfn *fn, berth_expr update, berth_var lane,
                                    berth_var depth, berth_intrinsic id, berth_buf acc,
                                    berth_expr marker, berth_expr *out) {
    matcher m = {.fn = fn,
                 .facts = berth_intrinsic_get(id),
                 .ranges = berth_ranges_collect(fn),
                 .lane = lane,
                 .depth = depth,
                 .acc = acc};
    *out = 0;
    BERTH_TRY(get_pattern(fn->module->arena, id, &m.p));
    know_loops(&m);
    if (!matches(&m, m.p.value, update)) return BERTH_OK;
    berth_expr b = region(&m, 1);
    berth_expr c = b ? region(&m, 2) : 0;
    if (c) *out = berth_tfn_intrinsic(fn, id, marker, b, c);
    return BERTH_OK;
}

berth_status berth_schedule_tensorize(berth_tfn *fn, berth_nest *nest, berth_intrinsic id) {
    return berth_schedule_intrinsic_tile(fn, nest, 1, id, 0);
}
