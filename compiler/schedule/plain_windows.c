// The form "windows" of plain_columns.h.
#include <string.h>

#include "compiler/schedule/plain_columns.h"
#include "compiler/schedule/plain_index.h"
#include "compiler/schedule/policy_cpu.h"

#define STRIP_LIMIT_BYTES 1024
#define WHOLE_LIMIT_BYTES 8192  // of a whole channel,
#define WHOLE_SHARE 4           // which is less than this part of all channels
#define MOST_SUMS 32
// The functions read words: up to so many bytes behind a window.
#define SPARE_BYTES BERTH_PLAIN_WINDOW_SPARE_BYTES

typedef struct windows {
    berth_plain_sum s;
    int high, wide;  // loops of the nest: rows and columns of results
    berth_nest_loop kh, kw;
    int64_t stride[2];
    int64_t rows;         // of results in a strip
    int64_t sum_rows;     // of results whose sums are there at once,
    int64_t sum_columns;  // and columns
    int64_t pitch;        // of the strip
} windows;

static int find_loop(windows *v, berth_var k, int64_t *stride) {
    berth_plain_sum *s = &v->s;
    berth_ranges ranges = berth_ranges_collect(s->fn);
    ranges = berth_ranges_with(s->fn, &ranges, &s->nest);
    ranges = berth_ranges_with(s->fn, &ranges, &s->reduction.loops);
    for (int i = s->nest.count - 1; i >= 0; --i) {
        *stride = 0;
        if (i == s->row || !berth_tfn_uses_var(s->fn, s->x, s->nest.loops[i].var)) continue;
        if (berth_plain__moves_alike(s, &ranges, s->x, s->nest.loops[i].var, k, stride) &&
            *stride > 0)
            return i;
    }
    return -1;
}

// A load of u8, or one with 0 in the padding.
static bool is_plain(const berth_plain_sum *s) {
    const berth_expr_node *x = &s->fn->exprs.data[s->x];
    if (x->kind == BERTH_EXPR_SELECT) x = &s->fn->exprs.data[x->b];
    if (x->kind != BERTH_EXPR_CAST) return false;
    const berth_expr_node *load = &s->fn->exprs.data[x->a];
    return load->kind == BERTH_EXPR_LOAD && load->dtype == BERTH_DTYPE_U8;
}

// The window of weights that lie at `w`, and the loops of the nest that move it.
static bool read_window(windows *v, berth_expr w_load) {
    berth_plain_sum *s = &v->s;
    int64_t step = 0;
    if (!berth_tfn_uses_var(s->fn, s->x, s->nest.loops[s->row].var)) return false;
    berth_linear w = berth_plain__place(s, &s->nest, w_load);
    if (!berth_plain__order_depth(s, &w, &step) || step != 1 || s->depth.count < 2) return false;
    for (int i = 2; i < s->depth.count; ++i)
        if (s->depth.loops[i].extent != 1) return false;
    v->kh = s->depth.loops[0];
    v->kw = s->depth.loops[1];
    v->high = find_loop(v, v->kh.var, &v->stride[0]);
    v->wide = find_loop(v, v->kw.var, &v->stride[1]);
    return v->high >= 0 && v->wide >= 0 && v->high != v->wide;
}

static bool read_form(windows *v) {
    return berth_plain__take(&v->s) && is_plain(&v->s) &&
           read_window(v, v->s.fn->exprs.data[v->s.w].a);
}

bool berth_plain__find_window(berth_plain_sum *s, int *high, int *wide, int64_t stride[2]) {
    windows v = {.s = *s};
    if (!read_window(&v, s->w)) return false;
    *s = v.s;
    *high = v.high;
    *wide = v.wide;
    memcpy(stride, v.stride, sizeof(v.stride));
    return true;
}

static int64_t largest_divisor(int64_t of, int64_t most) {
    while (of % most) --most;
    return most;
}

static int64_t strip_rows(const windows *v, int64_t rows) {
    return (rows - 1) * v->stride[0] + v->kh.extent;
}

static void choose_sizes(windows *v) {
    int64_t height = v->s.nest.loops[v->high].extent, width = v->s.nest.loops[v->wide].extent;
    v->pitch = (width - 1) * v->stride[1] + v->kw.extent;
    v->rows = height;
    // A whole channel lets the result be written over the operand (plain_in_place.h).
    int64_t whole = strip_rows(v, height) * v->pitch,
            all = whole * v->s.nest.loops[v->s.row].extent;
    bool fits =
        whole <= STRIP_LIMIT_BYTES || (whole <= WHOLE_LIMIT_BYTES && whole <= all / WHOLE_SHARE);
    if (v->s.fn->keeps_rows) {
        fits = true;
        v->rows = 1;
    }
    while (!fits && v->rows > 1 &&
           (height % v->rows || strip_rows(v, v->rows) * v->pitch > STRIP_LIMIT_BYTES))
        v->rows--;
    v->sum_columns = largest_divisor(width, width < MOST_SUMS ? width : MOST_SUMS);
    v->sum_rows = 1;
    if (v->sum_columns == width)
        v->sum_rows =
            largest_divisor(v->rows, MOST_SUMS / width < v->rows ? MOST_SUMS / width : v->rows);
}

// ---- building -----------------------------------------------------------------------------------

static berth_expr *new_map(berth_tfn *fn) {
    return berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
}

// Elements [from, to) of a row of the strip.
static berth_stmt row_part(windows *v, berth_buf strip, berth_var t, berth_var u, berth_expr value,
                           int64_t from, int64_t to) {
    berth_tfn *fn = v->s.fn;
    berth_var at = berth_tfn_var(fn, "u");
    berth_expr place = add(fn, var(fn, at), berth_tfn_index(fn, from));
    berth_nest loop = {.loops = {{at, to - from, BERTH_LOOP_SERIAL}}, .count = 1};
    return berth_plain__copy(&v->s, &loop, strip, add(fn, times(fn, var(fn, t), v->pitch), place),
                             berth_replace_var(fn, value, u, place));
}

// The strip of the rows of results from `first` on, of the channel whose loop is open.
static berth_stmt fill(windows *v, berth_buf strip, berth_expr first) {
    berth_tfn *fn = v->s.fn;
    berth_var t = berth_tfn_var(fn, "t"), u = berth_tfn_var(fn, "u");
    berth_nest loops = {
        .loops = {{t, strip_rows(v, v->rows), BERTH_LOOP_SERIAL}, {u, v->pitch, BERTH_LOOP_SERIAL}},
        .count = 2};
    berth_expr *map = new_map(fn);
    map[v->s.nest.loops[v->high].var] = first;
    map[v->s.nest.loops[v->wide].var] = berth_tfn_index(fn, 0);
    map[v->kh.var] = var(fn, t);
    map[v->kw.var] = var(fn, u);
    berth_expr value = berth_tfn_substitute(fn, v->s.x, map, t);
    const berth_expr_node node = fn->exprs.data[value];
    int64_t low = 0, high = v->pitch - 1;
    if (node.kind != BERTH_EXPR_SELECT) {
        loops.count = 1;
        loops.body = row_part(v, strip, t, u, fn->exprs.data[value].a, 0, v->pitch);
        return berth_nest_emit(fn, &loops);
    }
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &v->s.nest);
    ranges = berth_ranges_with(fn, &ranges, &loops);
    berth_cpu__narrow(fn, &ranges, value, u, &low, &high);
    berth_expr zero = berth_tfn_int(fn, BERTH_DTYPE_U8, 0);
    berth_expr byte = fn->exprs.data[node.b].a;
    berth_stmt parts[3];
    uint32_t count = 0;
    if (low > 0) parts[count++] = row_part(v, strip, t, u, zero, 0, low);
    parts[count++] = row_part(v, strip, t, u, byte, low, high + 1);
    if (high + 1 < v->pitch) parts[count++] = row_part(v, strip, t, u, zero, high + 1, v->pitch);
    berth_stmt zeros = row_part(v, strip, t, u, zero, 0, v->pitch);
    berth_expr condition = berth_replace_var(fn, node.a, u, berth_tfn_index(fn, low));
    loops.count = 1;
    loops.body = berth_tfn_if(fn, condition, berth_tfn_seq(fn, parts, count), zeros);
    return berth_nest_emit(fn, &loops);
}

// Rows that follow each other in memory as one: fewer vectors are left over.
static void one_loop(windows *v, berth_nest *loops) {
    berth_ranges ranges = berth_ranges_collect(v->s.fn);
    ranges = berth_ranges_with(v->s.fn, &ranges, &v->s.nest);
    ranges = berth_ranges_with(v->s.fn, &ranges, loops);
    berth_cpu__fuse_inwards(v->s.fn, loops, &ranges);
}

// Sums of sum_rows x sum_columns results from row `row` of the strip's results and `column` on, and
// what becomes of them.
static berth_stmt block(windows *v, berth_buf strip, berth_expr first, berth_expr row,
                        berth_expr column) {
    berth_tfn *fn = v->s.fn;
    int64_t dims[] = {v->sum_rows * v->sum_columns};
    berth_buf acc = berth_tfn_buffer(fn, "sums", BERTH_DTYPE_I32, 1, dims, BERTH_SCOPE_PRIVATE);
    berth_var r[2] = {berth_tfn_var(fn, "r"), berth_tfn_var(fn, "r")};
    berth_var c[2] = {berth_tfn_var(fn, "c"), berth_tfn_var(fn, "c")};
    berth_stmt parts[2] = {0};
    for (int i = 0; i < 2; ++i) {
        berth_expr at = add(fn, times(fn, var(fn, r[i]), v->sum_columns), var(fn, c[i]));
        berth_expr sum = berth_tfn_load(fn, acc, &at, 1);
        berth_expr in_strip = add(fn, row, var(fn, r[i])), in_row = add(fn, column, var(fn, c[i]));
        berth_nest loops = {.loops = {{r[i], v->sum_rows, BERTH_LOOP_SERIAL},
                                      {c[i], v->sum_columns, BERTH_LOOP_SERIAL}},
                            .count = 2};
        if (i) {
            berth_expr *map = new_map(fn);
            map[v->s.nest.loops[v->high].var] = add(fn, first, in_strip);
            map[v->s.nest.loops[v->wide].var] = in_row;
            loops.body = berth_plain__finish(&v->s, map, fn->vars.count, sum);
            if (v->s.vectors) one_loop(v, &loops);
            loops.loops[loops.count - 1].kind = berth_plain__inner(&v->s);
            parts[i] = berth_nest_emit(fn, &loops);
        } else {
            berth_expr from = times(fn, in_strip, v->stride[0] * v->pitch);
            from = add(fn, from, times(fn, var(fn, v->kh.var), v->pitch));
            from = add(fn, from, times(fn, in_row, v->stride[1]));
            from = add(fn, from, var(fn, v->kw.var));
            berth_expr x = berth_tfn_cast(fn, BERTH_DTYPE_I32, berth_tfn_load(fn, strip, &from, 1));
            x = add(fn, sum, berth_tfn_binary(fn, BERTH_BINARY_MUL, x, v->s.w));
            berth_nest depth = {.loops = {v->kh, v->kw}, .count = 2};
            depth.body = berth_tfn_store(fn, acc, &at, 1, x);
            parts[i] = berth_plain__sum_from_zero(fn, &loops, acc, at, &depth);
        }
    }
    berth_stmt items[] = {berth_tfn_alloc(fn, acc), parts[0], parts[1]};
    return berth_tfn_seq(fn, items, 3);
}

static berth_stmt build(windows *v) {
    berth_tfn *fn = v->s.fn;
    berth_nest outer = v->s.nest;
    berth_nest_loop *high = &outer.loops[v->high];
    high->var = berth_tfn_var(fn, "strip");
    high->extent /= v->rows;
    berth_expr first = times(fn, var(fn, high->var), v->rows);
    int after = outer.count - v->wide - 1;
    int64_t width = outer.loops[v->wide].extent;
    memmove(&outer.loops[v->wide], &outer.loops[v->wide + 1],
            (size_t)after * sizeof(outer.loops[0]));
    outer.count--;
    int64_t dims[] = {strip_rows(v, v->rows) * v->pitch + SPARE_BYTES};
    berth_buf strip = berth_tfn_buffer(fn, "strip", BERTH_DTYPE_U8, 1, dims, BERTH_SCOPE_PRIVATE);
    berth_var row = berth_tfn_var(fn, "row"), column = berth_tfn_var(fn, "column");
    berth_nest inner = {.loops = {{row, v->rows / v->sum_rows, BERTH_LOOP_SERIAL},
                                  {column, width / v->sum_columns, BERTH_LOOP_SERIAL}},
                        .count = 2};
    inner.body = block(v, strip, first, times(fn, var(fn, row), v->sum_rows),
                       times(fn, var(fn, column), v->sum_columns));
    berth_stmt items[] = {berth_tfn_alloc(fn, strip), fill(v, strip, first),
                          berth_nest_emit(fn, &inner)};
    outer.body = berth_tfn_seq(fn, items, 3);
    return berth_nest_emit(fn, &outer);
}

berth_stmt berth_plain__windows(berth_tfn *fn, const berth_nest *nest, bool vectors) {
    windows v = {.s = {.fn = fn, .nest = *nest, .vectors = vectors}};
    if (!read_form(&v)) return 0;
    choose_sizes(&v);
    return build(&v);
}

bool berth_plain__has_windows(berth_tfn *fn, const berth_nest *nest, berth_plain_sum *s, int *high,
                              int *wide) {
    windows v = {.s = {.fn = fn, .nest = *nest}};
    if (!read_form(&v)) return false;
    choose_sizes(&v);
    *s = v.s;
    *high = v.high;
    *wide = v.wide;
    return v.rows == v.s.nest.loops[v.high].extent;
}
