// Sums of 8-bit products on small cores, in the forms that their helper functions have
// (compiler/codegen/c_plain_products.h): what is multiplied lies in the order in which it is read.
//
//   columns   weights [o / 2][k][o % 2] (passes/layout_plain.h). What they are multiplied by is
//             unpacked to i16, for a few results at once, into a strip that all rows of weights
//             read; neighbours of a window share what they have in common:
//
//               for oh, ow_o: strip[t][...] = x(ow_o * C * s + t, ...) - zero     t < (C - 1) s + kw
//                 for o_o:
//                   for c, r: acc[c][r] = 0
//                     for kw, kh, ic: acc[c][r] += strip[c s + kw][...] * w[o_o, kw, kh, ic, r]
//                   for r, c: y = ...
//
//             Where 16 signed bytes are multiplied at once (Helium) the strip holds those, `zero` more
//             than what they stand for: zero * the sum of a row's weights comes off its sums.
//
//   rows      weights [o][k], and one run of bytes that they are multiplied by: a product of a
//             vector, which needs no copy.
//
//   windows   (plain_windows.c) every channel with weights of its own. Rows of a channel are copied,
//             with the padding around them, so that no window leaves the copy:
//
//               for channel, oh_o: strip[t][u] = x(oh_o * R * s + t, u)
//                 for oh_i:
//                   for oh, ow: acc[oh][ow] = 0
//                     for kh, kw: acc[oh][ow] += strip[oh s + kh][ow s + kw] * w[kh, kw]
//                 y = ...
//
// Floats have the strips of "columns" and "windows" alone, and the loops of any sum inside (plain_floats.c):
// whole channels, or all channels of some pixels, so that a result may be written over its operand.
//
// Private to compiler/schedule.
#ifndef BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_
#define BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_

#include "compiler/schedule/nest.h"

// Of a strip that windows are read from: bytes behind the last one that may be read, too.
#define BERTH_PLAIN_WINDOW_SPARE_BYTES 4

typedef struct berth_plain_sum {
    berth_tfn *fn;
    berth_nest nest;  // its body is the reduction
    berth_reduction reduction;
    berth_nest depth;  // loops of the sum in the order of the weights
    berth_expr x;      // i32
    berth_expr w;      // i32: a cast of a load
    int row;           // loop of the nest
    int column;        // loop of the nest; -1 = none
    bool vectors;
    bool small;        // one element after the other is copied
    int64_t row_step;  // in the weights, from one row to the next
    int64_t depth_step;
    int64_t total;  // products of a result
    // The strip. step: its elements from one result to the next; shared: neighbours overlap.
    bool shared;
    int64_t stride;  // of the window, in iterations of the outermost loop of the sum
    int64_t step;
    int64_t count;  // results
    bool bytes;     // it holds i8, `zero` more than what they stand for; else i16
    int64_t zero;
} berth_plain_sum;

// The nest in one of these forms, or 0 when it has none. vectors: the target has Helium, so that strips
// are bytes, and loops that store are marked as vector loops (codegen/c_plain_vectors.h). O(nodes of the
// body).
berth_stmt berth_plain__columns(berth_tfn *fn, const berth_nest *nest, bool vectors);
berth_stmt berth_plain__windows(berth_tfn *fn, const berth_nest *nest, bool vectors);

// Whether the nest has the form "columns"; sets *s.
bool berth_plain__has_columns(berth_plain_sum *s);
// Whether it has the form "windows" with whole channels in the strip; *high and *wide are the loops of
// the nest over rows and columns of results.
bool berth_plain__has_windows(berth_tfn *fn, const berth_nest *nest, berth_plain_sum *s, int *high,
                              int *wide);

// Whether the nest is a sum of floats that has a strip; sets *s, and *high and *wide (-1 for columns).
bool berth_plain__has_float_strip(berth_tfn *fn, const berth_nest *nest, bool small,
                                  berth_plain_sum *s, int *high, int *wide);
// The loops of a sum without a strip; 0 = as they are.
typedef berth_stmt berth_plain_schedule(berth_tfn *fn, const berth_nest *nest, bool small);
// The nest with a strip of floats around what `schedule` makes of the loops inside, or 0 when it has none.
// O(nodes of the body).
berth_stmt berth_plain__floats(berth_tfn *fn, const berth_nest *nest, bool small,
                               berth_plain_schedule *schedule);

// ---- parts --------------------------------------------------------------------------------------

// Takes the sum acc + x * w apart, w being an i8. False: it is something else.
bool berth_plain__take(berth_plain_sum *s);
// The same of floats: acc + x * w, w being a load, x a load or 0 in the padding.
bool berth_plain__take_floats(berth_plain_sum *s);
// The loads of `nest`'s operand may come before its stores: see plain_in_place.h. high, wide: -1 = columns.
bool berth_plain__may_stage(berth_plain_sum *s, int high, int wide, berth_buf *out_from,
                            berth_buf *out_to);
// The loops of the nest for a form "windows" of floats (plain_windows.c).
bool berth_plain__find_window(berth_plain_sum *s, int *high, int *wide, int64_t stride[2]);
// Where a load lies, its variables being those of `with` and of the sum.
berth_linear berth_plain__place(berth_plain_sum *s, const berth_nest *with, berth_expr load);
// Puts the loops of the sum into the order in which `at` goes on without a gap, its last step being
// *out_step. False: there is none.
bool berth_plain__order_depth(berth_plain_sum *s, const berth_linear *at, int64_t *out_step);
// Whether all that `id` reads and compares moves along loop `a` by the same multiple (*stride, 0 =
// not known yet) of what it moves along `b`.
bool berth_plain__moves_alike(berth_plain_sum *s, const berth_ranges *ranges, berth_expr id,
                              berth_var a, berth_var b, int64_t *stride);
// The loops of the nest without the row loop, the column loop in steps of s->count; sets *first to the
// first column of a step.
berth_nest berth_plain__outer_loops(berth_plain_sum *s, berth_expr *first);
// Stores of `value` in loops, the innermost some at once.
berth_stmt berth_plain__copy(const berth_plain_sum *s, const berth_nest *loops, berth_buf buf,
                             berth_expr at, berth_expr value);
// For each of `results`: sums[at] = 0, then the loops of `depth`, which add to it. c_plain_products.h prints it.
berth_stmt berth_plain__sum_from_zero(berth_tfn *fn, const berth_nest *results, berth_buf sums,
                                      berth_expr at, const berth_nest *depth);
// The kind of an innermost loop that stores.
static inline berth_loop_kind berth_plain__inner(const berth_plain_sum *s) {
    return s->vectors ? BERTH_LOOP_VECTOR : BERTH_LOOP_SERIAL;
}
// The epilogue for one result, whose sum is `sum` and whose variables `map` replaces.
berth_stmt berth_plain__finish(const berth_plain_sum *s, const berth_expr *map, uint32_t map_count,
                               berth_expr sum);

#endif  // BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_
