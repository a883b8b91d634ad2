// Products whose results lie next to each other along a loop along which neither operand does (a
// product with a transposed matrix that is only known when the program runs), or that ask at every
// element whether it lies in the padding (a window whose results lie in rows): the operand is
// copied first, so that it lies as register tiles read it. The copy is a transposition
// (policy_cpu_transpose.c) and costs one pass over the operand; every row of the product saves one.
//
// An operand that vectors can read, but whose rows end within one, is copied with zeros after each of
// them: a vector that is partly used, where the columns would be computed one by one.
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

// Of every element of the operand; a window asks at every use, so that a copy pays sooner.
enum { least_uses = 4, least_uses_of_window = 2 };
// Vectors that the uses of a row save for each that it is copied in.
enum { least_saved = 8 };
// A window's copy is as many times its input as the window has elements: where that leaves the caches
// behind and takes memory that is missed elsewhere, asking at every element stays.
enum { most_window_bytes = 64 << 20 };

typedef struct packing {
    berth_tfn *fn;
    berth_nest nest;
    berth_reduction reduction;
    berth_dtype dtype;   // f32 or f64
    berth_expr operand;  // of acc + operand * other
    berth_expr other;
    bool is_window;   // some of the operand's elements are padding, by the lane
    berth_nest copy;  // loops of the copy, which are its dimensions, too
    int64_t width;    // of the last dimension: the lanes, and zeros after them
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

// The side of the product that moves with the results.
static bool find_operand(packing *p, const berth_cpu_facts *facts) {
    const berth_expr_node update = p->fn->exprs.data[p->reduction.update];
    const berth_expr sides[2] = {update.a, update.b};
    berth_var lane = p->nest.loops[p->nest.count - 1].var;
    p->dtype = (berth_dtype)update.dtype;
    if (update.kind != BERTH_EXPR_FMA ||
        (p->dtype != BERTH_DTYPE_F32 && (p->dtype != BERTH_DTYPE_F64 || !facts->target)))
        return false;
    for (int i = 0; i < 2 && !p->operand; ++i) {
        if (!berth_tfn_uses_var(p->fn, sides[i], lane) ||
            berth_tfn_uses_var(p->fn, sides[1 - i], lane))
            continue;
        p->operand = sides[i];
        p->other = sides[1 - i];
    }
    if (!p->operand) return false;
    p->is_window = berth_cpu__used_in_conditions(p->fn, p->operand, lane, 0);
    return true;
}

static bool has_room(const packing *p) {
    int64_t bytes = (int64_t)berth_dtype_size_bytes(p->dtype);
    for (int i = 0; i < p->copy.count; ++i) {
        int64_t extent = p->copy.loops[i].extent;
        if (extent <= 0 || bytes > most_window_bytes / extent) return false;
        bytes *= extent;
    }
    return true;
}

// The loops that the operand uses, those of the sum before the lanes; false when they are too many.
// *out_uses: of every element.
static bool choose_copy(packing *p, int64_t *out_uses) {
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
    p->width = p->nest.loops[last].extent;
    *out_uses = uses;
    for (int i = 0; i < p->copy.count; ++i)
        if (p->copy.loops[i].extent <= 0) return false;
    return p->copy.count <= BERTH_MAX_RANK;
}

// Fills the loops and the body of the copy, and makes the product read it.
static berth_buf build(packing *p) {
    berth_tfn *fn = p->fn;
    int64_t dims[BERTH_MAX_RANK];
    berth_expr here[BERTH_MAX_RANK];
    berth_expr there[BERTH_MAX_RANK];
    for (int i = 0; i < p->copy.count; ++i) dims[i] = p->copy.loops[i].extent;
    dims[p->copy.count - 1] = p->width;
    berth_buf buf =
        berth_tfn_buffer(fn, "packed", p->dtype, p->copy.count, dims, BERTH_SCOPE_WORKSPACE);
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
    return buf;
}

// A nest of its own, in a parallel loop even where it is one group.
static berth_stmt as_nest(berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_FOR && node.loop_kind == BERTH_LOOP_PARALLEL) return id;
    return berth_tfn_for(fn, berth_tfn_var(fn, "group"), berth_tfn_index(fn, 1),
                         BERTH_LOOP_PARALLEL, id);
}

// After which addresses share the sets of the first-level cache.
enum { same_sets_bytes = 4096 };

static int64_t lanes_of(const packing *p, const berth_cpu_facts *facts) {
    return p->dtype == BERTH_DTYPE_F64 ? facts->lanes / 2 : facts->lanes;
}

// Columns of rows that end with a vector; *out_saved: vectors that a use of such a row saves, of the
// pieces that its end is made of otherwise.
static int64_t padded_width(const packing *p, const berth_cpu_facts *facts, int64_t *out_saved) {
    int64_t extent = p->width;
    int64_t lanes = lanes_of(p, facts);
    while (lanes > BERTH_CPU_LEAST_LANES && extent <= lanes / 2) lanes /= 2;
    int64_t rest = extent % lanes;
    int64_t piece = extent < BERTH_CPU_LEAST_LANES ? 1 : lanes;
    *out_saved = 0;
    if (rest == 0 || extent == 1 || facts->any_size) return extent;
    while (rest % piece) piece /= 2;
    *out_saved = rest / piece - 1;
    int64_t width = (extent / lanes + 1) * lanes;
    int64_t row_bytes = width * (int64_t)berth_dtype_size_bytes(p->dtype);
    return row_bytes % same_sets_bytes == 0 ? width + lanes : width;
}

// Zeros behind the rows of the copy, up to the width of its buffer.
static berth_stmt zeros_after(const packing *p, berth_buf buf, const berth_cpu_facts *facts) {
    berth_tfn *fn = p->fn;
    berth_nest zeros = p->copy;
    berth_expr at[BERTH_MAX_RANK];
    int last = zeros.count - 1;
    for (int i = 0; i <= last; ++i) {
        zeros.loops[i].var = berth_tfn_var(fn, "k");
        at[i] = berth_tfn_var_ref(fn, zeros.loops[i].var);
    }
    zeros.loops[last].extent = p->width - p->copy.loops[last].extent;
    at[last] = berth_tfn_binary(fn, BERTH_BINARY_ADD, at[last],
                                berth_tfn_index(fn, p->copy.loops[last].extent));
    zeros.body = berth_tfn_store(fn, buf, at, zeros.count, berth_tfn_float(fn, p->dtype, 0));
    return berth_cpu__flat_loops(fn, &zeros, facts);
}

// The copy into rows of `width` columns, and the product that reads it; 0: it has no form as tiles.
static berth_stmt build_steps(packing *p, int64_t width, const berth_cpu_facts *facts) {
    berth_tfn *fn = p->fn;
    bool wider = width > p->width;
    p->width = width;
    berth_buf buf = build(p);
    berth_stmt product = berth_cpu__tile_reduction(fn, &p->nest, facts);
    if (!product) return 0;
    berth_nest_decisions *held = berth_decisions_mask(fn);  // they are the product's
    berth_stmt copy = berth_cpu__transpose_blocks(fn, &p->copy, facts);
    if (!copy) copy = berth_cpu__flat_loops(fn, &p->copy, facts);
    berth_stmt zeros = wider ? zeros_after(p, buf, facts) : 0;
    berth_decisions_unmask(fn, held);
    if (!copy || (wider && !zeros)) return 0;
    berth_stmt items[3] = {as_nest(fn, copy)};
    uint32_t count = 1;
    if (zeros) items[count++] = as_nest(fn, zeros);
    items[count++] = as_nest(fn, product);
    return berth_tfn_seq(fn, items, count);
}

berth_stmt berth_cpu__pack_operand(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts) {
    packing p = {.fn = fn, .nest = *nest};
    int64_t uses = 0;
    if (!berth_reduction_parse(fn, nest->body, &p.reduction)) return 0;
    berth_ranges ranges = berth_ranges_collect(fn);
    if (!find_operand(&p, facts) || !choose_copy(&p, &uses)) return 0;
    if (p.is_window) {
        if (uses < least_uses_of_window || !has_room(&p)) return 0;
    } else if (uses < least_uses ||
               suits_lanes(fn, &ranges, p.operand, nest->loops[nest->count - 1].var)) {
        return 0;
    }
    int64_t saved = 0;
    int64_t width = padded_width(&p, facts, &saved);
    return build_steps(&p, saved && p.width > BERTH_CPU_LEAST_LANES ? width : p.width, facts);
}

// ---- rows that end within a vector --------------------------------------------------------------

// Whether vectors read the operand as it is, but for what lies behind its last element; loops that
// one loop of lanes would take in are left to it.
static bool ends_within(packing *p) {
    berth_ranges ranges = berth_ranges_collect(p->fn);
    int last = p->nest.count - 1;
    ranges = berth_ranges_with(p->fn, &ranges, &p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &p->reduction.loops);
    if (last == 0 || p->is_window ||
        berth_tfn_uses_var(p->fn, p->operand, p->nest.loops[last - 1].var) ||
        !suits_lanes(p->fn, &ranges, p->operand, p->nest.loops[last].var))
        return false;
    berth_access_list loads = {0};
    berth_cpu__collect_loads(p->fn, &ranges, p->operand, &loads);
    return loads.items.count == 1 &&
           !berth_cpu__reads_inside(p->fn, &ranges, &loads.items.data[0], 1);
}

berth_stmt berth_cpu__pad_operand(berth_tfn *fn, const berth_nest *nest,
                                  const berth_cpu_facts *facts) {
    packing p = {.fn = fn, .nest = *nest};
    int64_t uses = 0;
    if (facts->any_size || !berth_reduction_parse(fn, nest->body, &p.reduction)) return 0;
    if (!find_operand(&p, facts) || !ends_within(&p) || !choose_copy(&p, &uses)) return 0;
    int64_t saved = 0;
    int64_t width = padded_width(&p, facts, &saved);
    int64_t lanes = lanes_of(&p, facts);
    int64_t vectors = (width + lanes - 1) / lanes;
    if (saved == 0 || uses * saved < least_saved * vectors) return 0;
    return build_steps(&p, width, facts);
}
