// Sums in parts (split-k): see work_groups.h.
#include "compiler/schedule/local_tile.h"

#define LEAST_TERMS 256  // of a part, where there are enough
#define MOST_PARTS 32
#define GROUP_RESULTS 32        // of a work-group, where results lie beside each other
#define MOST_BYTES (256 << 20)  // of the parts

typedef struct sum_split {
    berth_tfn *fn;
    berth_nest nest;  // of the results
    berth_reduction reduction;
    int loop;  // of the sum, that is split
    int64_t parts;
    berth_buf work;  // [parts][results]
} sum_split;

// acc + term, or a fused one.
static bool adds_up(const berth_tfn *fn, const berth_reduction *r) {
    const berth_expr_node *update = &fn->exprs.data[r->update];
    berth_expr sides[2] = {update->a, update->b};
    if (update->kind == BERTH_EXPR_FMA)
        sides[0] = sides[1] = update->c;
    else if (update->kind != BERTH_EXPR_BINARY || update->op != BERTH_BINARY_ADD)
        return false;
    for (int i = 0; i < 2; ++i) {
        const berth_expr_node *side = &fn->exprs.data[sides[i]];
        if (side->kind == BERTH_EXPR_LOAD && side->load.buf == r->acc) return true;
    }
    return false;
}

static int64_t product_of(const berth_nest *nest) {
    int64_t product = 1;
    for (int i = 0; i < nest->count; ++i) {
        if (nest->loops[i].extent <= 0 || nest->loops[i].extent > INT32_MAX / product) return 0;
        product *= nest->loops[i].extent;
    }
    return product;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Work-groups of the forms that the whole sum would have.
static int64_t groups_of(const sum_split *s, const berth_local_tile_limits *limits) {
    berth_local_plan p = {.fn = s->fn, .nest = s->nest};
    int64_t results = product_of(&s->nest);
    int64_t on_units = berth_matrix_tile_groups(s->fn, &s->nest, limits);
    if (on_units > 0) return on_units;
    if (berth_local__analyse(&p))
        return p.batch.extent * ceil_div(p.rows.extent, limits->rows * limits->group_rows) *
               ceil_div(p.columns.extent,
                        berth_local__most_lanes(&p, limits) * limits->group_columns);
    berth_ranges ranges = berth_ranges_collect(s->fn);
    ranges = berth_ranges_with(s->fn, &ranges, &s->nest);
    ranges = berth_ranges_with(s->fn, &ranges, &s->reduction.loops);
    berth_var last = s->reduction.loops.loops[s->reduction.loops.count - 1].var;
    bool in_order = berth_loads_are_contiguous(s->fn, &ranges, s->reduction.update, last);
    return in_order ? results : ceil_div(results, GROUP_RESULTS);
}

// The outermost loop of the sum that has several iterations, and the most parts that divide it.
static bool choose_loop(sum_split *s, int64_t most) {
    const berth_nest *loops = &s->reduction.loops;
    for (s->loop = 0; s->loop < loops->count && loops->loops[s->loop].extent == 1;) ++s->loop;
    if (s->loop == loops->count) return false;
    for (s->parts = most; s->parts > 1 && loops->loops[s->loop].extent % s->parts;) --s->parts;
    return s->parts > 1;
}

static berth_expr in_parts(berth_tfn *fn, berth_expr load, void *user) {
    const berth_buf *accs = user;  // what it was, what it is
    return fn->exprs.data[load].load.buf == accs[0] ? berth_tfn_load(fn, accs[1], NULL, 0) : 0;
}

static void results_at(const sum_split *s, berth_var part, berth_expr *at) {
    at[0] = berth_tfn_var_ref(s->fn, part);
    for (int i = 0; i < s->nest.count; ++i)
        at[1 + i] = berth_tfn_var_ref(s->fn, s->nest.loops[i].var);
}

// Each part's sum, to its place.
static berth_nest parts_of(sum_split *s) {
    berth_tfn *fn = s->fn;
    berth_dtype dtype = fn->bufs.data[s->reduction.acc].dtype;
    berth_buf accs[] = {s->reduction.acc,
                        berth_tfn_buffer(fn, "acc", dtype, 0, NULL, BERTH_SCOPE_REGISTER)};
    berth_nest_loop *split = &s->reduction.loops.loops[s->loop];
    int64_t terms = split->extent / s->parts;
    berth_var part = berth_tfn_var(fn, "part"), inner = berth_tfn_var(fn, "k");
    berth_expr index = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, part),
                                        berth_tfn_index(fn, terms));
    index = berth_tfn_binary(fn, BERTH_BINARY_ADD, index, berth_tfn_var_ref(fn, inner));
    berth_expr update = berth_replace_var(fn, s->reduction.update, split->var, index);
    update = berth_replace_loads(fn, update, in_parts, accs);
    berth_expr at[BERTH_MAX_RANK];
    results_at(s, part, at);
    berth_reduction r = {.acc = accs[1], .init = berth_tfn_const(fn, dtype, 0), .update = update};
    r.loops = s->reduction.loops;
    r.loops.loops[s->loop] = (berth_nest_loop){inner, terms, split->kind};
    r.loops.body = berth_tfn_store(fn, r.acc, NULL, 0, update);
    r.epilogue[r.epilogue_count++] =
        berth_tfn_store(fn, s->work, at, 1 + s->nest.count, berth_tfn_load(fn, r.acc, NULL, 0));
    berth_nest nest = {.count = s->nest.count + 1, .body = berth_reduction_emit(fn, &r)};
    nest.loops[0] = (berth_nest_loop){part, s->parts, BERTH_LOOP_PARALLEL};
    for (int i = 0; i < s->nest.count; ++i) nest.loops[1 + i] = s->nest.loops[i];
    return nest;
}

// The parts together, and what follows the sum.
static berth_nest whole_of(sum_split *s) {
    berth_tfn *fn = s->fn;
    berth_expr at[BERTH_MAX_RANK];
    berth_var part = berth_tfn_var(fn, "part");
    results_at(s, part, at);
    berth_reduction r = s->reduction;
    r.update = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_load(fn, r.acc, NULL, 0),
                                berth_tfn_load(fn, s->work, at, 1 + s->nest.count));
    r.loops = (berth_nest){.count = 1, .body = berth_tfn_store(fn, r.acc, NULL, 0, r.update)};
    r.loops.loops[0] = (berth_nest_loop){part, s->parts, BERTH_LOOP_SERIAL};
    berth_nest nest = s->nest;
    nest.body = berth_reduction_emit(fn, &r);
    return nest;
}

static bool fits(sum_split *s, const berth_nest *nest) {
    s->nest = *nest;
    int64_t results = product_of(nest);
    if (!berth_nest_is_independent(s->fn, nest) || nest->count + 1 > BERTH_MAX_RANK ||
        results == 0 || s->fn->any_size ||
        !berth_reduction_parse(s->fn, nest->body, &s->reduction) ||
        !adds_up(s->fn, &s->reduction) || s->reduction.epilogue_count == 0)
        return false;
    berth_dtype dtype = s->fn->bufs.data[s->reduction.acc].dtype;
    return product_of(&s->reduction.loops) >= 2 &&
           (berth_dtype_is_float(dtype) || dtype == BERTH_DTYPE_I32 || dtype == BERTH_DTYPE_I64);
}

// Parts that keep the device busy; 1: the whole does, or there is too little to add up.
static int64_t wanted_parts(sum_split *s, const berth_local_tile_limits *limits) {
    int64_t results = product_of(&s->nest), terms = product_of(&s->reduction.loops);
    int64_t units = limits->compute_units > 0 ? limits->compute_units : 16;
    int64_t groups = groups_of(s, limits);
    if (results < s->fn->whole_results) groups = groups * s->fn->whole_results / results;
    int64_t wanted = groups > 0 ? units / groups : 1;
    int64_t most = MOST_BYTES / ((int64_t)sizeof(double) * results);
    if (wanted > terms / LEAST_TERMS) wanted = terms / LEAST_TERMS;
    if (wanted > MOST_PARTS) wanted = MOST_PARTS;
    if (wanted > most) wanted = most;
    return choose_loop(s, wanted) ? s->parts : 1;
}

// False: in one. What is given and does not divide the sum is not decided, which is an error in the
// end.
static bool decide(sum_split *s, const berth_local_tile_limits *limits) {
    int64_t chosen = wanted_parts(s, limits);
    int64_t parts = berth_decision_given(s->fn, BERTH_DECISION_PARTS, chosen);
    bool divides = parts <= MOST_PARTS && choose_loop(s, parts) && s->parts == parts;
    if (!divides && (chosen <= 1 || parts != 1)) return false;
    return berth_decide(s->fn, BERTH_DECISION_PARTS, chosen, 1, MOST_PARTS, "parts of a sum") > 1;
}

berth_stmt berth_split_sum(berth_tfn *fn, const berth_nest *nest,
                           const berth_local_tile_limits *limits, berth_schedule_nest_fn schedule,
                           const void *user) {
    sum_split s = {.fn = fn};
    if (!fits(&s, nest) || !decide(&s, limits)) return 0;
    int64_t dims[BERTH_MAX_RANK] = {s.parts};
    for (int i = 0; i < nest->count; ++i) dims[1 + i] = nest->loops[i].extent;
    s.work = berth_tfn_buffer(fn, "parts", fn->bufs.data[s.reduction.acc].dtype, 1 + nest->count,
                              dims, BERTH_SCOPE_WORKSPACE);
    berth_nest each = parts_of(&s), all = whole_of(&s);
    berth_stmt made[2] = {schedule(fn, &each, user), 0};
    if (!made[0]) made[0] = berth_nest_emit(fn, &each);
    berth_nest_decisions *held = berth_decisions_mask(fn);  // they are those of the parts
    made[1] = schedule(fn, &all, user);
    berth_decisions_unmask(fn, held);
    if (!made[1]) made[1] = berth_nest_emit(fn, &all);
    return berth_tfn_seq(fn, made, 2);
}
