// How loops are arranged for small cores without vectors and caches, in C that any compiler takes.
//
//   sums       (convolutions, products, windows) what padding leaves out is skipped by an `if` around
//              the loops inside, not chosen by a condition for every element; results that share a
//              factor are computed side by side in registers, so that it is loaded once:
//
//                 for oc_o: for oh, ow: acc[4] = 0
//                   for kh: if (row is inside) for kw: if (column is inside)
//                     for ic: for r in 4: acc[r] += x[ic, ...] * w[4 * oc_o + r, ic, kh, kw]
//
//   strips     sums of bytes, and sums of floats that may be written over an operand (plain_columns.h)
//
//   the rest   as it was lowered, loops that go on regularly as one
//
// Tiles are divisors of the loops: code for a rest costs more flash than it saves time.
#include <string.h>

#include "compiler/passes/layout_plain.h"
#include "compiler/schedule/plain_columns.h"
#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/row_stage.h"

#define MAX_CONDITIONS 12

#define MAX_ROWS 5  // of floats, beside four columns; integers have no room for a second one

typedef struct plain_sum {
    berth_tfn *fn;
    bool small;
    berth_nest nest;
    berth_reduction reduction;
    berth_access_list loads;  // of the update, but for the accumulator
    berth_expr conditions[MAX_CONDITIONS];
    int condition_count;
} plain_sum;

// ---- rows ---------------------------------------------------------------------------------------

// Whether results go to other rows of images along a loop of the nest that stays one of its own (keeps_rows).
static bool keeps_loop(const plain_sum *s, berth_var var) {
    for (int i = 0; s->fn->keeps_rows && i < s->reduction.epilogue_count; ++i) {
        berth_stmt store = s->reduction.epilogue[i];
        const berth_stmt_node *node = &s->fn->stmts.data[store];
        if (node->kind == BERTH_STMT_STORE && node->index_count > BERTH_ROW_DIM &&
            berth_tfn_uses_var(s->fn, berth_tfn_store_indices(s->fn, store)[BERTH_ROW_DIM], var))
            return true;
    }
    return false;
}

// A clipped loop would begin in another row of the window for some rows.
static bool may_clip(const plain_sum *s, const berth_expr *conditions, int count) {
    for (int i = 0; i < s->nest.count; ++i)
        for (int k = 0; k < count && keeps_loop(s, s->nest.loops[i].var); ++k)
            if (berth_tfn_uses_var(s->fn, conditions[k], s->nest.loops[i].var)) return false;
    return !s->small;
}

// ---- padding ------------------------------------------------------------------------------------

static bool is_value(const berth_tfn *fn, berth_expr id, double value) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT) return (double)node->i == value;
    return node->kind == BERTH_EXPR_FLOAT && node->f == value;
}

static bool is_acc(const plain_sum *s, berth_expr id) {
    const berth_expr_node *node = &s->fn->exprs.data[id];
    return node->kind == BERTH_EXPR_LOAD && node->load.buf == s->reduction.acc;
}

// Comparisons of indices, joined by AND. False: there is something else, or too much.
static bool split_condition(plain_sum *s, berth_expr id) {
    const berth_expr_node node = s->fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_BINARY) return false;
    if (node.op == BERTH_BINARY_AND)
        return split_condition(s, node.a) && split_condition(s, node.b);
    bool compares = node.op >= BERTH_BINARY_EQ && node.op <= BERTH_BINARY_GE &&
                    s->fn->exprs.data[node.a].is_index;
    if (!compares || s->condition_count == MAX_CONDITIONS) return false;
    s->conditions[s->condition_count++] = id;
    return true;
}

// `id`, or what it is where its condition holds when it is `neutral` elsewhere.
static berth_expr take_choice(plain_sum *s, berth_expr id, const double *neutral) {
    const berth_expr_node node = s->fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_SELECT || !is_value(s->fn, node.c, *neutral)) return id;
    s->condition_count = 0;
    if (split_condition(s, node.a)) return node.b;
    s->condition_count = 0;
    return id;
}

// The same of a product, one of whose factors is 0 elsewhere.
static berth_expr take_product(plain_sum *s, berth_expr id) {
    static const double zero = 0;
    const berth_expr_node node = s->fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_BINARY || node.op != BERTH_BINARY_MUL)
        return take_choice(s, id, &zero);
    berth_expr a = take_choice(s, node.a, &zero);
    berth_expr b = s->condition_count ? node.b : take_choice(s, node.b, &zero);
    return s->condition_count ? berth_tfn_rebuild(s->fn, id, a, b, node.c) : id;
}

// Steps that leave the accumulator as it is outside of a window become conditions around the step.
static void take_conditions(plain_sum *s) {
    static const double zero = 0;
    berth_tfn *fn = s->fn;
    berth_expr update = s->reduction.update;
    const berth_expr_node node = fn->exprs.data[update];
    berth_expr a = node.a, b = node.b;
    if (node.kind == BERTH_EXPR_FMA && is_acc(s, node.c)) {
        a = take_choice(s, a, &zero);
        if (!s->condition_count) b = take_choice(s, b, &zero);
    } else if (node.kind == BERTH_EXPR_BINARY && node.op == BERTH_BINARY_ADD && is_acc(s, node.b)) {
        a = take_product(s, a);
    } else if (node.kind == BERTH_EXPR_BINARY && is_acc(s, node.a)) {
        const berth_expr_node init = fn->exprs.data[s->reduction.init];
        double first = init.kind == BERTH_EXPR_FLOAT ? init.f : (double)init.i;
        bool constant = init.kind == BERTH_EXPR_FLOAT || init.kind == BERTH_EXPR_INT;
        bool extreme = node.op == BERTH_BINARY_MAX || node.op == BERTH_BINARY_MIN;
        if (node.op == BERTH_BINARY_ADD) b = take_product(s, b);
        if (extreme && constant) b = take_choice(s, b, &first);
    }
    if (s->condition_count) s->reduction.update = berth_tfn_rebuild(fn, update, a, b, node.c);
}

static bool is_condition_of(const plain_sum *s, berth_var var) {
    for (int i = 0; i < s->condition_count; ++i)
        if (berth_tfn_uses_var(s->fn, s->conditions[i], var)) return true;
    return false;
}

// Loops that decide what is padding go outside: what is in them runs without conditions.
static void order_loops(plain_sum *s) {
    berth_nest *loops = &s->reduction.loops;
    berth_nest_loop ordered[BERTH_NEST_MAX_LOOPS];
    int count = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < loops->count; ++i)
            if (is_condition_of(s, loops->loops[i].var) == (pass == 0))
                ordered[count++] = loops->loops[i];
    memcpy(loops->loops, ordered, (size_t)count * sizeof(*ordered));
}

static berth_stmt find_loop(const berth_tfn *fn, berth_stmt id, berth_var var) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return 0;
    if (node->kind == BERTH_STMT_FOR) return node->var == var ? id : find_loop(fn, node->body, var);
    if (node->kind == BERTH_STMT_IF) return find_loop(fn, node->body, var);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i) {
        berth_stmt found = find_loop(fn, fn->lists.data[node->first + i], var);
        if (found) return found;
    }
    return 0;
}

// `condition` as a bound of `var`, which moves with it by one: var >= *out (lower) or var < *out.
// False: it is something else, or depends on another loop of the sum.
static bool read_bound(plain_sum *s, const berth_ranges *ranges, berth_expr condition,
                       berth_var var, berth_expr *out, bool *out_lower) {
    berth_tfn *fn = s->fn;
    const berth_expr_node node = fn->exprs.data[condition];
    if (node.op != BERTH_BINARY_GE && node.op != BERTH_BINARY_LT) return false;
    for (int i = 0; i < s->reduction.loops.count; ++i) {
        berth_var other = s->reduction.loops.loops[i].var;
        if (other != var && berth_tfn_uses_var(fn, condition, other)) return false;
    }
    berth_expr difference = berth_tfn_binary(fn, BERTH_BINARY_SUB, node.a, node.b);
    berth_linear form = berth_linear_of(fn, ranges, difference),
                 rest = {.constant = -form.constant};
    bool found = false;
    for (int i = 0; i < form.count; ++i) {
        const berth_expr_node *atom = &fn->exprs.data[form.terms[i].atom];
        bool is_var = atom->kind == BERTH_EXPR_VAR && atom->var == var;
        if (is_var && form.terms[i].coefficient != 1) return false;
        if (!is_var && berth_tfn_uses_var(fn, form.terms[i].atom, var)) return false;
        found |= is_var;
        if (is_var) continue;
        rest.terms[rest.count] = form.terms[i];
        rest.terms[rest.count++].coefficient *= -1;
    }
    *out = berth_linear_expr(fn, &rest);
    *out_lower = node.op == BERTH_BINARY_GE;
    return found;
}

// The loop runs from its lower to its upper bound. False: some condition is no bound.
static bool clip_loop(plain_sum *s, berth_stmt loop, const berth_expr *conditions, int count) {
    berth_tfn *fn = s->fn;
    berth_ranges ranges = berth_ranges_collect(fn);
    const berth_stmt_node node = fn->stmts.data[loop];
    berth_expr low = 0, high = node.value;
    ranges = berth_ranges_with(fn, &ranges, &s->nest);
    ranges = berth_ranges_with(fn, &ranges, &s->reduction.loops);
    for (int i = 0; i < count; ++i) {
        berth_expr bound = 0;
        bool lower = false;
        if (!read_bound(s, &ranges, conditions[i], node.var, &bound, &lower)) return false;
        if (lower)
            low = berth_tfn_binary(fn, BERTH_BINARY_MAX, low ? low : berth_tfn_index(fn, 0), bound);
        else
            high = berth_tfn_binary(fn, BERTH_BINARY_MIN, high, bound);
    }
    berth_stmt body = node.body;
    if (low) {
        berth_expr at =
            berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_var_ref(fn, node.var), low);
        body = berth_replace_var_stmt(fn, body, node.var, at);
        high = berth_tfn_binary(fn, BERTH_BINARY_SUB, high, low);
    }
    fn->stmts.data[loop].value = high;
    fn->stmts.data[loop].body = body;
    return true;
}

// Every condition bounds the innermost loop that it depends on, or goes around that loop's body.
static void put_conditions(plain_sum *s, berth_stmt body) {
    berth_tfn *fn = s->fn;
    const berth_nest *loops = &s->reduction.loops;
    for (int i = loops->count - 1; i >= 0; --i) {
        berth_expr own[MAX_CONDITIONS], all = 0;
        int count = 0;
        for (int k = 0; k < s->condition_count; ++k) {
            berth_expr condition = s->conditions[k];
            if (!condition || (i > 0 && !berth_tfn_uses_var(fn, condition, loops->loops[i].var)))
                continue;
            all = all ? berth_tfn_binary(fn, BERTH_BINARY_AND, all, condition) : condition;
            own[count++] = condition;
            s->conditions[k] = 0;
        }
        berth_stmt loop = all ? find_loop(fn, body, loops->loops[i].var) : 0;
        if (!loop || (may_clip(s, own, count) && clip_loop(s, loop, own, count))) continue;
        berth_stmt guarded = berth_tfn_if(fn, all, fn->stmts.data[loop].body, 0);
        fn->stmts.data[loop].body = guarded;
    }
}

// ---- tiles --------------------------------------------------------------------------------------

static bool load_uses(const plain_sum *s, uint32_t load, int loop) {
    return berth_linear_uses(s->fn, &s->loads.items.data[load].at, s->nest.loops[loop].var);
}

// A loop along which some loads stay and others move.
static bool shares_loads(const plain_sum *s, int loop) {
    bool stays = false, moves = false;
    if (keeps_loop(s, s->nest.loops[loop].var)) return false;
    for (uint32_t i = 0; i < s->loads.items.count; ++i)
        *(load_uses(s, i, loop) ? &moves : &stays) = true;
    return stays && moves && !is_condition_of(s, s->nest.loops[loop].var);
}

// Whether some load moves along one loop and stays along the other.
static bool complements(const plain_sum *s, int loop, int other) {
    for (uint32_t i = 0; i < s->loads.items.count; ++i)
        if (load_uses(s, i, loop) && !load_uses(s, i, other)) return true;
    return false;
}

// How weights are packed along a loop (passes/layout_plain.h); 0 = not in blocks.
static int64_t block_along(const plain_sum *s, int loop) {
    int64_t block = 0;
    for (uint32_t i = 0; i < s->loads.items.count && block <= 1; ++i)
        block = berth_linear_block(s->fn, &s->loads.items.data[i].at, s->nest.loops[loop].var);
    return block;
}

static void collect_loads(plain_sum *s) {
    berth_ranges ranges = berth_ranges_collect(s->fn);
    berth_access_list all = {0};
    ranges = berth_ranges_with(s->fn, &ranges, &s->nest);
    ranges = berth_ranges_with(s->fn, &ranges, &s->reduction.loops);
    memset(&s->loads, 0, sizeof(s->loads));
    berth_cpu__collect_loads(s->fn, &ranges, s->reduction.update, &all);
    for (uint32_t i = 0; i < all.items.count; ++i)
        if (all.items.data[i].buf != s->reduction.acc)
            berth_vec_push(s->fn->module->arena, &s->loads.items, all.items.data[i]);
}

// The loop along which most results share a factor: the one by which weights are packed, else the
// one with the largest tile.
static int choose_column(const plain_sum *s, berth_dtype dtype, bool rows, int64_t *out_tile) {
    int best = -1;
    *out_tile = 1;
    for (int i = 0; i < s->nest.count; ++i) {
        if (!shares_loads(s, i)) continue;
        int64_t block = block_along(s, i), extent = s->nest.loops[i].extent;
        int64_t tile =
            block > 1 && extent % block == 0 ? block : berth_plain_tile(dtype, extent, rows);
        if (tile <= *out_tile && block <= 1) continue;
        best = i;
        *out_tile = tile;
        if (block > 1) break;
    }
    return best;
}

// A loop of rows beside the columns: each of the two shares what the other moves along.
static int choose_row(const plain_sum *s, int column, int64_t *out_tile) {
    int best = -1;
    *out_tile = 1;
    for (int i = 0; i < s->nest.count; ++i) {
        bool fits = i != column && shares_loads(s, i) && complements(s, i, column) &&
                    complements(s, column, i);
        int64_t tile = MAX_ROWS;
        while (tile > 1 && s->nest.loops[i].extent % tile) --tile;
        if (!fits || tile <= *out_tile) continue;
        best = i;
        *out_tile = tile;
    }
    return best;
}

// Loop `loop` in blocks of `tile`, whose inner part goes last; loops before it keep their places.
static berth_status split_to_end(plain_sum *s, int loop, int64_t tile) {
    BERTH_TRY(berth_schedule_split(s->fn, &s->nest, loop, tile));
    return berth_schedule_reorder(s->fn, &s->nest, loop + 1, s->nest.count - 1);
}

// The loops of the tile: *out_row is -1 when there is only one, both are when there is none.
static void choose_tile(const plain_sum *s, int *out_column, int64_t *out_columns, int *out_row,
                        int64_t *out_rows) {
    enum { most_columns = 4 };  // beside rows
    berth_dtype dtype = s->fn->bufs.data[s->reduction.acc].dtype;
    *out_column = *out_row = -1;
    if (s->small) return;
    *out_column = choose_column(s, dtype, true, out_columns);
    if (*out_column >= 0 && berth_dtype_is_float(dtype) && *out_columns <= most_columns)
        *out_row = choose_row(s, *out_column, out_rows);
    if (*out_row < 0) *out_column = choose_column(s, dtype, false, out_columns);
}

static berth_status make_tile(plain_sum *s) {
    int64_t columns = 1, rows = 1;
    int column = -1, row = -1;
    collect_loads(s);
    choose_tile(s, &column, &columns, &row, &rows);
    if (column < 0) return BERTH_OK;
    int tile_loops = row < 0 ? 2 : 3;
    // The later one first, so that the other's number stays.
    int first = row > column ? row : column, second = row > column ? column : row;
    BERTH_TRY(split_to_end(s, first, first == row ? rows : columns));
    if (second >= 0) BERTH_TRY(split_to_end(s, second, second == row ? rows : columns));
    s->nest.loops[s->nest.count++] = (berth_nest_loop){
        .var = berth_tfn_var(s->fn, "one"), .extent = 1, .kind = BERTH_LOOP_SERIAL};
    return berth_schedule_register_tile(s->fn, &s->nest, tile_loops, 1, 0);
}

// Iterations of a nest, `most` where there are more.
static int64_t iterations(const berth_nest *nest, int64_t most) {
    int64_t all = 1;
    for (int i = 0; i < nest->count; ++i) {
        if (nest->loops[i].extent > most / (all ? all : 1)) return most;
        all *= nest->loops[i].extent;
    }
    return all;
}

// Small code takes two elements of a sum in a turn, four of a long one that has many products in all: a few
// bytes, and up to a third of the instructions less. Not where rows roll: each element asks anew where its row lies, which is more than a few bytes.
static void unroll_small(plain_sum *s) {
    enum { long_sum = 64, many_products = 4096 };
    berth_nest *loops = &s->reduction.loops;
    int last = loops->count - 1;
    int64_t extent = loops->loops[last].extent;
    int64_t results = iterations(&s->nest, many_products);
    bool many = results * iterations(loops, many_products) >= many_products;
    int64_t at_once = extent >= long_sum && many ? 4 : 2;
    while (extent % at_once) at_once /= 2;
    if (at_once < 2 || is_condition_of(s, loops->loops[last].var)) return;
    if (loops->count == BERTH_NEST_MAX_LOOPS) return;
    berth_nest plain = *loops;
    berth_status status = berth_schedule_split(s->fn, loops, last, at_once);
    if (!status) status = berth_schedule_unroll(s->fn, loops, last + 1);
    if (!status) return;
    berth_decisions_refuse(s->fn, status);
    *loops = plain;
}

static berth_stmt schedule_sum(berth_tfn *fn, const berth_nest *nest, bool small) {
    plain_sum s = {.fn = fn, .small = small, .nest = *nest};
    if (!berth_reduction_parse(fn, nest->body, &s.reduction) || s.reduction.loops.count == 0)
        return 0;
    if (nest->count + 4 > BERTH_NEST_MAX_LOOPS) return 0;
    take_conditions(&s);
    order_loops(&s);
    s.reduction.loops.body = berth_tfn_store(fn, s.reduction.acc, NULL, 0, s.reduction.update);
    if (small && !fn->keeps_rows) unroll_small(&s);
    s.nest.body = berth_reduction_emit(fn, &s.reduction);
    plain_sum plain = s;
    berth_status status = make_tile(&s);
    if (status) {  // a form that the tile does not take
        berth_decisions_refuse(fn, status);
        s = plain;
    }
    put_conditions(&s, s.nest.body);
    return berth_nest_emit(fn, &s.nest);
}

// ---- policy -------------------------------------------------------------------------------------

// Stores that go on regularly over several loops as one loop.
static berth_stmt fuse_loops(berth_tfn *fn, const berth_nest *nest) {
    if (fn->keeps_rows) return 0;
    berth_nest fused = *nest;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    for (int i = 0; i < fused.count; ++i) fused.loops[i].kind = BERTH_LOOP_PARALLEL;
    berth_cpu__fuse_inwards(fn, &fused, &ranges);
    return fused.count < nest->count ? berth_nest_emit(fn, &fused) : 0;
}

typedef struct plain_policy {
    bool small;
    bool vectors;  // the target has Helium
} plain_policy;

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const plain_policy *policy = user;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    if (!berth_decide_form(fn, BERTH_FORM_SOURCE)) return 0;
    berth_stmt sum = policy->small ? 0 : berth_plain__columns(fn, nest, policy->vectors);
    if (!sum && !policy->small) sum = berth_plain__windows(fn, nest, policy->vectors);
    if (!sum) sum = berth_plain__floats(fn, nest, policy->small, schedule_sum);
    if (!sum) sum = schedule_sum(fn, nest, policy->small);
    return sum ? sum : fuse_loops(fn, nest);
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    const plain_policy policy = {.vectors = berth_target_has_feature(target, "mve")};
    return berth_schedule_nests(fn, schedule_nest, &policy);
}

static berth_status apply_small(berth_tfn *fn, const berth_target *target) {
    static const plain_policy policy = {.small = true};
    (void)target;
    return berth_schedule_nests(fn, schedule_nest, &policy);
}

const berth_schedule_policy berth_schedule_policy_plain = {.kind = "cpu", .apply = apply};
const berth_schedule_policy berth_schedule_policy_plain_small = {.kind = "cpu",
                                                                 .apply = apply_small};
