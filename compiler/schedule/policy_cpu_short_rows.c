// Rows that are shorter than a register (a softmax over 6 classes, a norm of 3 coordinates): as many rows at once as a
// register has lanes, one row in each. Their elements lie as far apart in memory as rows do, so that a lane is loaded
// and stored by itself, and all that is computed is computed in whole registers.
//
//   for i: acc = 0; for r in 6: acc += exp(x[i, r]); ...  ->  for io: acc = 0..; for r in 6: acc += exp(x[io * 16 + (0..15), r])
//
// The loops around the rows become one first, as far as memory goes on evenly along them.
#include "compiler/schedule/policy_cpu.h"

// C compilers make vectors of shorter rows, and of those of a power of two where they hold no functions.
enum { least_row = 5 };

typedef struct short_rows {
    berth_tfn *fn;
    berth_nest nest;
    berth_ranges ranges;
    berth_access_list accesses;
    int64_t longest;   // row
    bool conditional;  // a value asks where it is (padding)
    bool functions;    // of elements of the rows
    bool maxima;       // of rows, which C compilers do one by one for the sake of NaN
} short_rows;

static bool has_function(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_LOAD)
        return false;
    return (node->kind == BERTH_EXPR_UNARY && berth_cpu__is_function((berth_unary)node->op)) ||
           has_function(fn, node->a) || has_function(fn, node->b) || has_function(fn, node->c);
}

static bool is_maximum(const berth_tfn *fn, berth_expr value) {
    const berth_expr_node *node = &fn->exprs.data[value];
    return node->kind == BERTH_EXPR_BINARY && !node->is_index &&
           (node->op == BERTH_BINARY_MAX || node->op == BERTH_BINARY_MIN);
}

static bool collect_rows(short_rows *s, berth_stmt id, bool inside);

static bool collect_row(short_rows *s, const berth_stmt_node *loop, bool inside) {
    int64_t extent = 0;
    if (inside || !berth_tfn_const_value(s->fn, loop->value, &extent)) return false;
    if (extent > s->longest) s->longest = extent;
    return collect_rows(s, loop->body, true);
}

// The accesses of a body that is made of stores and of loops over stores; false where it is none.
static bool collect_rows(short_rows *s, berth_stmt id, bool inside) {
    const berth_stmt_node node = s->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_ALLOC: return true;
    case BERTH_STMT_FOR: return collect_row(s, &node, inside);
    case BERTH_STMT_STORE:
        s->functions |= inside && has_function(s->fn, node.value);
        s->maxima |= inside && is_maximum(s->fn, node.value);
        for (int i = 0; i < s->nest.count; ++i)
            s->conditional |=
                berth_cpu__used_in_conditions(s->fn, node.value, s->nest.loops[i].var, 0);
        return berth_cpu__collect_body(s->fn, &s->ranges, id, &s->accesses);
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!collect_rows(s, s->fn->lists.data[node.first + i], inside)) return false;
        return true;
    default: return false;
    }
}

static bool collect_all(short_rows *s) {
    berth_ranges collected = berth_ranges_collect(s->fn);
    s->ranges = berth_ranges_with(s->fn, &collected, &s->nest);
    s->accesses = (berth_access_list){0};
    s->longest = 0;
    s->conditional = s->functions = s->maxima = false;
    return collect_rows(s, s->nest.body, false) && !s->conditional;
}

static bool is_local(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    return info->scope == BERTH_SCOPE_REGISTER || info->scope == BERTH_SCOPE_PRIVATE;
}

// Whether rows follow each other closely in all memory, so that the lines of the cache that lanes touch are used up.
static bool rows_are_close(const short_rows *s, int64_t lanes) {
    berth_var var = s->nest.loops[s->nest.count - 1].var;
    bool apart = false;
    for (uint32_t i = 0; i < s->accesses.items.count; ++i) {
        const berth_access *access = &s->accesses.items.data[i];
        if (is_local(s->fn, access->buf)) continue;
        bool linear = false;
        int64_t step = berth_linear_stride(s->fn, &access->at, var, &linear);
        if (!linear || step < 0 || step > lanes ||
            s->fn->bufs.data[access->buf].dtype != BERTH_DTYPE_F32)
            return false;
        apart |= step > 1;
    }
    return apart;
}

// Lanes that are loaded one by one take longer than a plain sum of them.
static bool pays(const short_rows *s, const berth_cpu_facts *facts) {
    bool power_of_two = (s->longest & (s->longest - 1)) == 0;
    bool gathers = facts->target && berth_target_has_feature(facts->target, "avx512f");
    if (s->longest < least_row) return false;
    return s->functions || (!power_of_two && (s->maxima || gathers));
}

berth_stmt berth_cpu__short_rows(berth_tfn *fn, const berth_nest *nest,
                                 const berth_cpu_facts *facts) {
    short_rows s = {.fn = fn, .nest = *nest};
    if (nest->count == 0 || facts->any_size || !berth_nest_is_independent(fn, nest) ||
        !collect_all(&s) || s.longest >= facts->lanes || !pays(&s, facts))
        return 0;
    while (s.nest.count > 1 && berth_cpu__can_fuse(fn, &s.nest, s.nest.count - 2, &s.accesses)) {
        berth_status status = berth_schedule_fuse(fn, &s.nest, s.nest.count - 2);
        if (status) {
            berth_decisions_refuse(fn, status);
            return 0;
        }
        if (!collect_all(&s)) return 0;
    }
    if (!rows_are_close(&s, facts->lanes) || s.nest.loops[s.nest.count - 1].extent < facts->lanes)
        return 0;
    return berth_cpu__in_lanes(fn, s.nest, facts->lanes);
}
