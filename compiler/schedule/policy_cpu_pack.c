// Products whose results lie next to each other along a loop along which neither operand does (a
// product with a transposed matrix that is only known when the program runs), or that ask at every
// element whether it lies in the padding (a window whose results lie in rows): the operand is
// copied first, so that it lies as register tiles read it. The copy is a transposition
// (policy_cpu_transpose.c) and costs one pass over the operand; every row of the product saves one.
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

// Of every element of the operand; a window asks at every use, so that a copy pays sooner.
enum { least_uses = 4, least_uses_of_window = 2 };
// A window's copy is as many times its input as the window has elements: where that leaves the caches
// behind and takes memory that is missed elsewhere, asking at every element stays.
enum { most_window_bytes = 64 << 20 };

typedef struct packing {
    berth_tfn *fn;
    berth_nest nest;
    berth_reduction reduction;
    berth_expr operand;  // of acc + operand * other
    berth_expr other;
    bool is_window;   // some of the operand's elements are padding, by the lane
    berth_nest copy;  // loops of the copy, which are its dimensions, too
} packing;

// The loads of an expression go along `var` as vectors can: by one, or not at all.
static bool suits_lanes(berth_tfn *fn, const berth_ranges *ranges, berth_expr id, berth_var var) {
    berth_access_list loads = {0};
    berth_cpu__collect_loads(fn, ranges, id, &loads);
    for (uint32_t i = 0; i < loads.items.count; ++i) {
        bool linear = false;
        int64_t stride = berth_linear_stride(fn, &loads.items.data[i].at, var, &linear);
        if (!linear || (stride != 0 && stride != 1)) return false;
    }
    return true;
}

// The side of the product that moves with the results, where it cannot be read in vectors.
static bool find_operand(packing *p, const berth_ranges *ranges) {
    const berth_expr_node update = p->fn->exprs.data[p->reduction.update];
    const berth_expr sides[2] = {update.a, update.b};
    berth_var lane = p->nest.loops[p->nest.count - 1].var;
    if (update.kind != BERTH_EXPR_FMA || update.dtype != BERTH_DTYPE_F32) return false;
    for (int i = 0; i < 2 && !p->operand; ++i) {
        if (!berth_tfn_uses_var(p->fn, sides[i], lane) ||
            berth_tfn_uses_var(p->fn, sides[1 - i], lane))
            continue;
        p->operand = sides[i];
        p->other = sides[1 - i];
    }
    if (!p->operand) return false;
    p->is_window = berth_cpu__used_in_conditions(p->fn, p->operand, lane, 0);
    return p->is_window || !suits_lanes(p->fn, ranges, p->operand, lane);
}

static bool has_room(const packing *p) {
    int64_t bytes = (int64_t)sizeof(float);
    for (int i = 0; i < p->copy.count; ++i) {
        int64_t extent = p->copy.loops[i].extent;
        if (extent <= 0 || bytes > most_window_bytes / extent) return false;
        bytes *= extent;
    }
    return true;
}

// The loops that the operand uses, those of the sum before the lanes; false when its elements are
// used too rarely.
static bool choose_copy(packing *p) {
    int last = p->nest.count - 1;
    int64_t uses = 1;
    for (int i = 0; i < last; ++i) {
        berth_nest_loop loop = p->nest.loops[i];
        if (berth_tfn_uses_var(p->fn, p->operand, loop.var))
            p->copy.loops[p->copy.count++] = loop;
        else
            uses *= loop.extent;
    }
    for (int i = 0; i < p->reduction.loops.count; ++i)
        if (berth_tfn_uses_var(p->fn, p->operand, p->reduction.loops.loops[i].var))
            p->copy.loops[p->copy.count++] = p->reduction.loops.loops[i];
    p->copy.loops[p->copy.count++] = p->nest.loops[last];
    int64_t least = p->is_window ? least_uses_of_window : least_uses;
    return uses >= least && p->copy.count <= BERTH_MAX_RANK && (!p->is_window || has_room(p));
}

// Fills the loops and the body of the copy, and makes the product read it.
static void build(packing *p) {
    berth_tfn *fn = p->fn;
    int64_t dims[BERTH_MAX_RANK];
    berth_expr here[BERTH_MAX_RANK];
    berth_expr there[BERTH_MAX_RANK];
    for (int i = 0; i < p->copy.count; ++i) dims[i] = p->copy.loops[i].extent;
    berth_buf buf =
        berth_tfn_buffer(fn, "packed", BERTH_DTYPE_F32, p->copy.count, dims, BERTH_SCOPE_WORKSPACE);
    p->copy.body = 0;
    berth_expr value = p->operand;
    for (int i = 0; i < p->copy.count; ++i) {
        berth_var var = berth_tfn_var(fn, "k");
        here[i] = berth_tfn_var_ref(fn, p->copy.loops[i].var);
        there[i] = berth_tfn_var_ref(fn, var);
        value = berth_replace_var(fn, value, p->copy.loops[i].var, there[i]);
        p->copy.loops[i].var = var;
        p->copy.loops[i].kind = BERTH_LOOP_PARALLEL;
    }
    p->copy.body = berth_tfn_store(fn, buf, there, p->copy.count, value);
    berth_expr packed = berth_tfn_load(fn, buf, here, p->copy.count);
    berth_expr sum = fn->exprs.data[p->reduction.update].c;
    berth_expr update = berth_tfn_fma(fn, p->other, packed, sum);
    p->reduction.loops.body = berth_tfn_store(fn, p->reduction.acc, NULL, 0, update);
    p->reduction.update = update;
    p->nest.body = berth_reduction_emit(fn, &p->reduction);
}

// A nest of its own, in a parallel loop even where it is one group.
static berth_stmt as_nest(berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_FOR && node.loop_kind == BERTH_LOOP_PARALLEL) return id;
    return berth_tfn_for(fn, berth_tfn_var(fn, "group"), berth_tfn_index(fn, 1),
                         BERTH_LOOP_PARALLEL, id);
}

berth_stmt berth_cpu__pack_operand(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts) {
    packing p = {.fn = fn, .nest = *nest};
    if (!berth_reduction_parse(fn, nest->body, &p.reduction)) return 0;
    berth_ranges ranges = berth_ranges_collect(fn);
    if (!find_operand(&p, &ranges) || !choose_copy(&p)) return 0;
    for (int i = 0; i < p.copy.count; ++i)
        if (p.copy.loops[i].extent <= 0) return 0;
    build(&p);
    berth_stmt product = berth_cpu__tile_reduction(fn, &p.nest, facts);
    if (!product) return 0;
    berth_nest_decisions *held = berth_decisions_mask(fn);  // they are the product's
    berth_stmt copy = berth_cpu__transpose_blocks(fn, &p.copy, facts);
    if (!copy) copy = berth_cpu__flat_loops(fn, &p.copy, facts);
    berth_decisions_unmask(fn, held);
    if (!copy) return 0;
    berth_stmt items[2] = {as_nest(fn, copy), as_nest(fn, product)};
    return berth_tfn_seq(fn, items, 2);
}
