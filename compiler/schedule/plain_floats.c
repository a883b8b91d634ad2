// Strips of floats (plain_columns.h): the operand of a 1 x 1 convolution or of a depthwise one is copied before
// results are stored where it was.
//
//   columns   for oh, ow_o: strip[ic][c] = x[ic, oh, ow_o * C + c]
//               the sum over strip, for oc and c
//
//   windows   for channel: strip[t][u] = x(t, u), 0 in the padding
//               the sum over strip, for oh and ow, without conditions
#include <string.h>

#include "compiler/schedule/plain_columns.h"
#include "compiler/schedule/plain_index.h"
#include "compiler/schedule/policy_cpu.h"

#define MOST_COLUMNS 5  // as many as a register tile takes
#define STRIP_SHARE 4   // a strip takes less than this part of its operand

typedef struct floats {
    berth_plain_sum s;
    int high, wide;  // -1: columns
    int64_t stride[2];
    int64_t pitch;  // windows: of a row of the strip
    int64_t elements;
} floats;

static int64_t extent_of(const floats *f, int loop) {
    return f->s.nest.loops[loop].extent;
}

static int64_t operand_elements(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    int64_t count = 1;
    for (int d = 0; d < info->rank; ++d) count *= info->dims[d];
    return count;
}

static bool choose_columns(floats *f) {
    berth_plain_sum *s = &f->s;
    s->column = -1;
    for (int i = 0; i < s->nest.count; ++i)
        if (i != s->row && extent_of(f, i) > 1 &&
            berth_tfn_uses_var(s->fn, s->x, s->nest.loops[i].var))
            s->column = i;
    if (s->column < 0) return false;
    s->count = s->small ? 1 : MOST_COLUMNS;
    while (extent_of(f, s->column) % s->count) --s->count;
    return true;
}

static int64_t strip_rows(const floats *f) {
    return (extent_of(f, f->high) - 1) * f->stride[0] + f->s.depth.loops[0].extent;
}

static bool read_form(floats *f) {
    berth_plain_sum *s = &f->s;
    berth_buf from, to;
    f->high = f->wide = -1;
    if (!berth_plain__take_floats(s)) return false;
    if (!berth_tfn_uses_var(s->fn, s->x, s->nest.loops[s->row].var)) {
        if (!choose_columns(f) || !berth_plain__may_stage(s, -1, -1, &from, &to)) return false;
        f->elements = s->total * s->count;
    } else {
        // Whole channels.
        if (s->fn->keeps_rows) return false;
        if (!berth_plain__find_window(s, &f->high, &f->wide, f->stride) ||
            !berth_plain__may_stage(s, f->high, f->wide, &from, &to))
            return false;
        f->pitch = (extent_of(f, f->wide) - 1) * f->stride[1] + s->depth.loops[1].extent;
        f->elements = strip_rows(f) * f->pitch;
    }
    return f->elements <= operand_elements(s->fn, from) / STRIP_SHARE;
}

bool berth_plain__has_float_strip(berth_tfn *fn, const berth_nest *nest, bool small,
                                  berth_plain_sum *s, int *high, int *wide) {
    floats f = {.s = {.fn = fn, .nest = *nest, .small = small}};
    if (!read_form(&f)) return false;
    *s = f.s;
    *high = f.high;
    *wide = f.wide;
    return true;
}

// ---- building -----------------------------------------------------------------------------------

// Where an element of the sum is in a strip of columns, by the loops `loops` and column `c`.
static berth_expr in_columns(const floats *f, const berth_nest *loops, berth_expr c) {
    berth_tfn *fn = f->s.fn;
    berth_expr at = berth_tfn_index(fn, 0);
    for (int i = 0; i < f->s.depth.count; ++i)
        at = add(fn, times(fn, at, f->s.depth.loops[i].extent), var(fn, loops->loops[i].var));
    return add(fn, times(fn, at, f->s.count), c);
}

static berth_stmt fill_columns(floats *f, berth_buf strip, berth_expr first) {
    berth_plain_sum *s = &f->s;
    berth_tfn *fn = s->fn;
    berth_nest loops = s->depth;
    berth_var c = berth_tfn_var(fn, "c");
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr,
                                            fn->vars.count + (size_t)BERTH_NEST_MAX_LOOPS);
    for (int i = 0; i < loops.count; ++i) {
        loops.loops[i].var = berth_tfn_var(fn, "k");
        loops.loops[i].kind = BERTH_LOOP_SERIAL;
        map[s->depth.loops[i].var] = var(fn, loops.loops[i].var);
    }
    berth_expr at = in_columns(f, &loops, var(fn, c));
    map[s->nest.loops[s->column].var] = add(fn, first, var(fn, c));
    loops.loops[loops.count++] = (berth_nest_loop){c, s->count, BERTH_LOOP_SERIAL};
    return berth_plain__copy(s, &loops, strip, at,
                             berth_tfn_substitute(fn, s->x, map, fn->vars.count));
}

static berth_stmt fill_windows(floats *f, berth_buf strip) {
    berth_plain_sum *s = &f->s;
    berth_tfn *fn = s->fn;
    berth_var t = berth_tfn_var(fn, "t"), u = berth_tfn_var(fn, "u");
    berth_nest loops = {
        .loops = {{t, strip_rows(f), BERTH_LOOP_SERIAL}, {u, f->pitch, BERTH_LOOP_SERIAL}},
        .count = 2};
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    map[s->nest.loops[f->high].var] = map[s->nest.loops[f->wide].var] = berth_tfn_index(fn, 0);
    map[s->depth.loops[0].var] = var(fn, t);
    map[s->depth.loops[1].var] = var(fn, u);
    berth_expr at = add(fn, times(fn, var(fn, t), f->pitch), var(fn, u));
    berth_plain_sum one_by_one = *s;
    one_by_one.small = true;
    return berth_plain__copy(&one_by_one, &loops, strip, at,
                             berth_tfn_substitute(fn, s->x, map, fn->vars.count));
}

// acc + strip * w
static berth_expr update_with(const berth_plain_sum *s, berth_expr x) {
    berth_tfn *fn = s->fn;
    berth_expr update = s->reduction.update;
    const berth_expr_node node = fn->exprs.data[update];
    if (node.kind == BERTH_EXPR_FMA)
        return berth_tfn_rebuild(fn, update, node.a == s->x ? x : node.a,
                                 node.a == s->x ? node.b : x, node.c);
    const berth_expr_node product = fn->exprs.data[node.b];
    berth_expr with = berth_tfn_rebuild(fn, node.b, product.a == s->x ? x : product.a,
                                        product.a == s->x ? product.b : x, product.c);
    return berth_tfn_rebuild(fn, update, node.a, with, node.c);
}

// Of the loops inside of a strip's.
static berth_stmt sum_over(floats *f, berth_buf strip, berth_expr at) {
    berth_tfn *fn = f->s.fn;
    berth_reduction reduction = f->s.reduction;
    reduction.update = update_with(&f->s, berth_tfn_load(fn, strip, &at, 1));
    reduction.loops.body = berth_tfn_store(fn, reduction.acc, NULL, 0, reduction.update);
    return berth_reduction_emit(fn, &reduction);
}

static berth_stmt finish(floats *f, berth_buf strip, berth_stmt fill, berth_stmt sum,
                         berth_nest *outer) {
    berth_tfn *fn = f->s.fn;
    berth_stmt items[] = {fill, sum};
    outer->body = berth_tfn_seq(fn, items, 2);
    berth_stmt all[] = {berth_tfn_alloc(fn, strip),
                        outer->count ? berth_nest_emit(fn, outer) : outer->body};
    return berth_tfn_seq(fn, all, 2);
}

static berth_stmt build_columns(floats *f, berth_buf strip, berth_plain_schedule *schedule) {
    berth_plain_sum *s = &f->s;
    berth_tfn *fn = s->fn;
    berth_expr first = 0;
    berth_nest outer = berth_plain__outer_loops(s, &first);
    berth_var column = s->nest.loops[s->column].var, c = berth_tfn_var(fn, "c");
    berth_stmt fill = fill_columns(f, strip, first);
    berth_nest inner = {.loops = {s->nest.loops[s->row], {c, s->count, BERTH_LOOP_SERIAL}},
                        .count = s->count > 1 ? 2 : 1};
    berth_expr at_c = s->count > 1 ? var(fn, c) : berth_tfn_index(fn, 0);
    inner.body = berth_replace_var_stmt(fn, sum_over(f, strip, in_columns(f, &s->depth, at_c)),
                                        column, add(fn, first, at_c));
    return finish(f, strip, fill, schedule(fn, &inner, s->small), &outer);
}

static berth_stmt build_windows(floats *f, berth_buf strip, berth_plain_schedule *schedule) {
    berth_plain_sum *s = &f->s;
    berth_tfn *fn = s->fn;
    berth_nest outer = {.count = 0}, inner = {.count = 0};
    for (int i = 0; i < s->nest.count; ++i) {
        berth_nest *of = i == f->high || i == f->wide ? &inner : &outer;
        of->loops[of->count++] = s->nest.loops[i];
    }
    berth_expr row = times(fn, var(fn, s->nest.loops[f->high].var), f->stride[0]);
    berth_expr column = times(fn, var(fn, s->nest.loops[f->wide].var), f->stride[1]);
    row = add(fn, row, var(fn, s->depth.loops[0].var));
    column = add(fn, column, var(fn, s->depth.loops[1].var));
    berth_expr at = add(fn, times(fn, row, f->pitch), column);
    berth_stmt fill = fill_windows(f, strip);
    inner.body = sum_over(f, strip, at);
    return finish(f, strip, fill, schedule(fn, &inner, s->small), &outer);
}

berth_stmt berth_plain__floats(berth_tfn *fn, const berth_nest *nest, bool small,
                               berth_plain_schedule *schedule) {
    floats f = {.s = {.fn = fn, .nest = *nest, .small = small}};
    if (!read_form(&f)) return 0;
    berth_buf strip =
        berth_tfn_buffer(fn, "strip", BERTH_DTYPE_F32, 1, &f.elements, BERTH_SCOPE_PRIVATE);
    return f.high < 0 ? build_columns(&f, strip, schedule) : build_windows(&f, strip, schedule);
}
