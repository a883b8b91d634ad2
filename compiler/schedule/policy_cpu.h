// Parts of the cpu policy (private to compiler/schedule).
#ifndef BERTH_COMPILER_SCHEDULE_POLICY_CPU_H_
#define BERTH_COMPILER_SCHEDULE_POLICY_CPU_H_

#include "compiler/schedule/nest.h"
#include "compiler/schedule/schedule.h"

struct berth_access_list;

// Where whole registers do not fit a loop, half of one serves, down to this many lanes.
#define BERTH_CPU_LEAST_LANES 8

// Bounds of what the policy chooses, whatever the registers allow: attributes of the target. They are
// no laws: `berth tune` searches beyond them, and what it measures takes their place (docs/tuning.md).
typedef struct berth_cpu_tile_caps {
    int64_t rows;          // tile_rows
    int64_t own_vectors;   // tile_own_rows
    int64_t colliding;     // tile_page_rows
    int64_t unroll_terms;  // unrolled_terms
    int64_t singles;       // tile_singles
    int64_t sums;          // sums_in_flight
} berth_cpu_tile_caps;

typedef struct berth_cpu_facts {
    berth_cpu_tile_caps caps;
    uint16_t lanes;     // of f32 in one register
    int64_t registers;  // vector registers
    int64_t l1_bytes;
    int64_t l2_bytes;
    const berth_target
        *target;    // whose intrinsics may be used; NULL: the language has none, nor vectors of f64
    bool inside;    // of an iteration of a parallel loop: no groups are wanted
    bool any_size;  // forms that many sizes share are wanted
    bool any_groups;  // what runs in parallel does not follow from how much there is
} berth_cpu_facts;
// What the target says of its cores. policy_cpu.c
berth_cpu_facts berth_cpu__facts_of(const berth_target *target);

// The nest as register tiles, or 0 when it is no reduction that has such a form. policy_cpu_tile.c
berth_stmt berth_cpu__tile_reduction(berth_tfn *fn, const berth_nest *nest,
                                     const berth_cpu_facts *facts);
// Extremes of windows at the border read its elements again in place of those outside; `reduction`
// is the body of the nest. policy_cpu_clamp.c
void berth_cpu__clamp_window(berth_tfn *fn, const berth_nest *nest, berth_reduction *reduction);
// A product with an operand that no vector can read, as two nests: the operand copied into order,
// and register tiles; 0 when the nest is none. policy_cpu_pack.c
berth_stmt berth_cpu__pack_operand(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts);
// A product with an operand whose rows end within a vector, as nests: the operand copied with zeros
// after each row, and register tiles; 0 when the nest is none, or that saves little.
// policy_cpu_pack.c
berth_stmt berth_cpu__pad_operand(berth_tfn *fn, const berth_nest *nest,
                                  const berth_cpu_facts *facts);
// Copies of every element of a row to two places, in registers; 0 when the nest is none.
// policy_cpu_repeat.c
berth_stmt berth_cpu__repeat_rows(berth_tfn *fn, const berth_nest *nest,
                                  const berth_cpu_facts *facts);
// The loops in parallel, but for inner ones that make at most a chunk of work together; `inside`:
// elements of one iteration of all. policy_cpu_flat.c
void berth_cpu__keep_chunks_serial(berth_tfn *fn, berth_nest *nest, int64_t inside);
// What does not depend on one of the loops (places and weights of a resampling) computed once, into
// tables; 0 when there is little of it. policy_cpu_hoist.c
berth_stmt berth_cpu__hoist_tables(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts);
// Bodies with loops whose results lie next to each other (a softmax or a window along another axis
// than the last): lanes along the last loop of the nest, its border by itself; 0 when the nest is
// none. policy_cpu_lines.c
berth_stmt berth_cpu__lines(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts);
// The last loop in vectors of `lanes` iterations, and what is left in narrower ones, all loops in parallel; 0: the body
// has no such form. policy_cpu_lines.c
berth_stmt berth_cpu__in_lanes(berth_tfn *fn, berth_nest nest, int64_t lanes);
// The nest, of vectors, with a few iterations of one of its loops at a time, where they need the same places that data gives;
// all its loops are parallel. 0: they share little. policy_cpu_beside.c
berth_stmt berth_cpu__beside(berth_tfn *fn, const berth_nest *nest);
// Bodies with loops over rows shorter than a register: a row in each lane; 0 when the nest is none.
// policy_cpu_short_rows.c
berth_stmt berth_cpu__short_rows(berth_tfn *fn, const berth_nest *nest,
                                 const berth_cpu_facts *facts);
// Reductions in types without explicit vectors: loops over neighbouring results, or over parts of a sum,
// innermost; 0 when the nest is none. policy_cpu_plain_lines.c
berth_stmt berth_cpu__plain_lines(berth_tfn *fn, const berth_nest *nest,
                                  const berth_cpu_facts *facts);
// Functions of one element of 8 bits with a result of 8 bits as a table of all results, and lookups; 0 when
// the nest is none, or takes fewer operations than a lookup. policy_cpu_bytes.c
berth_stmt berth_cpu__byte_table(berth_tfn *fn, const berth_nest *nest,
                                 const berth_cpu_facts *facts);
// Elementwise nests: loops fused where all accesses allow it, chunks in parallel, the innermost
// loop vectorised by the C compiler. 0 when the body is not made of stores only. policy_cpu_flat.c
berth_stmt berth_cpu__flat_loops(berth_tfn *fn, const berth_nest *nest,
                                 const berth_cpu_facts *facts);
// Scheduled loops over stores, with the places in memory that data gives (rows of a gather) read once
// The innermost loops of a nest, each given to `rewrite`, which returns what it becomes: itself, or statements
// that are loops once one parallel loop of one iteration is around them.
typedef struct berth_cpu__innermost {
    berth_tfn *fn;
    // `loops`: those of known extent around it, and itself; no body.
    berth_stmt (*rewrite)(void *user, berth_stmt loop, const berth_nest *loops);
    void *user;
    bool with_parallel;  // a parallel loop that is the whole nest, too
    bool any_extent;     // loops of which one has an extent that only the run knows, too
    berth_nest loops;    // of the walk
} berth_cpu__innermost;
// `nest` where nothing changes.
berth_stmt berth_cpu__each_innermost(berth_cpu__innermost *walk, berth_stmt nest);

// before the innermost loop where it does not change them. policy_cpu_places.c
berth_stmt berth_cpu__places_once(berth_tfn *fn, berth_stmt nest);
// Scheduled loops that copy elements at places that data gives, with these places computed before the copies, into a
// table. policy_cpu_place_tables.c
berth_stmt berth_cpu__tables_of_places(berth_tfn *fn, berth_stmt nest,
                                       const berth_cpu_facts *facts);
// Scheduled loops over stores, with the choices by data that the innermost loop does not change made once
// before it. policy_cpu_ask.c
berth_stmt berth_cpu__ask_once(berth_tfn *fn, berth_stmt nest);
// Results whose place is data: whole rows in the innermost loop; `accesses`: of the body, the result's first. 0: the
// nest is none. policy_cpu_places.c
berth_stmt berth_cpu__scattered_rows(berth_tfn *fn, const berth_nest *nest,
                                     const struct berth_access_list *accesses);
// The same of nests that read what they write (sums of scattered rows).
berth_stmt berth_cpu__dependent_rows(berth_tfn *fn, const berth_nest *nest);
// Elementwise nests that read along another loop than they write: blocks transposed in registers;
// 0 when the nest is none, or the target has no instructions for it. policy_cpu_last_block.c
berth_stmt berth_cpu__transpose_blocks(berth_tfn *fn, const berth_nest *nest,
                                       const berth_cpu_facts *facts);
// The same inside `around`, which may have no loops; blocks that a loop leaves in part are not taken apart.
// policy_cpu_transpose.c
berth_stmt berth_cpu__transposed(berth_tfn *fn, const berth_nest *nest, const berth_nest *around,
                                 const berth_cpu_facts *facts);
// Blocks of lanes x lanes of [along, across], in groups of `width` across, as one form for all sizes; the loop over groups,
// of `kind`, goes to the end of `outer`. 0: it is not only the extent across that varies, or blocks do not fill that along.
// policy_cpu_transpose_sizes.c
berth_stmt berth_cpu__blocks_of_sizes(berth_tfn *fn, const berth_nest *pair, int64_t lanes,
                                      int64_t width, berth_loop_kind kind, berth_nest *outer);
// Straight-line bodies over small tables (Winograd transforms): lanes along the last loop; 0 when
// the nest is none. policy_cpu.c
berth_stmt berth_cpu__vector_tables(berth_tfn *fn, berth_nest nest, const berth_cpu_facts *facts);
// The body of a nest with functions of elements that several of its loops over a row need computed by
// the first of them, where a row of them stays in the cache. policy_cpu_keep.c
berth_stmt berth_cpu__keep_functions(berth_tfn *fn, berth_stmt body, const berth_cpu_facts *facts);
// Short sums and extremes whose terms do not lie along the results (windows that move by two elements, types without
// explicit vectors) as one expression in an elementwise nest; 0 when the nest is none. policy_cpu_window.c
berth_stmt berth_cpu__window_terms(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts);
// Loops inside a nest that go along a row, in vectors; 0 when there is none. row_lanes.c
berth_stmt berth_cpu__row_lanes(berth_tfn *fn, const berth_nest *nest,
                                const berth_cpu_facts *facts);

// Loads in an expression, each once.
typedef struct berth_access {
    berth_buf buf;
    berth_linear at;  // position in the buffer's storage
} berth_access;
typedef struct berth_access_list {
    BERTH_VEC(berth_access) items;
} berth_access_list;
void berth_cpu__collect_loads(berth_tfn *fn, const berth_ranges *ranges, berth_expr id,
                              berth_access_list *out);
// Stores of a body, each before its loads; false when it has other statements.
bool berth_cpu__collect_body(berth_tfn *fn, const berth_ranges *ranges, berth_stmt id,
                             berth_access_list *out);
// Splits the loops of a sum by the blocks of what it loads; inner parts go innermost, ic -> ic_o, ..., ic_i. False:
// there are none. cpu_tile_choice.c
bool berth_cpu__split_blocks(berth_tfn *fn, const berth_access_list *loads, berth_reduction *sum);
// Whether `more` elements after those that an access reads lie in its buffer's storage, too.
// cpu_tile_choice.c
bool berth_cpu__reads_inside(berth_tfn *fn, const berth_ranges *ranges, const berth_access *access,
                             int64_t more);
// Whether comparisons of indices (padding) in a value use `var`. depth: 0.
bool berth_cpu__used_in_conditions(const berth_tfn *fn, berth_expr id, berth_var var, int depth);
// Narrows [*low, *high] to the iterations of `var` in which the conditions on indices in a value
// hold, as far as they are linear. policy_cpu_narrow.c
void berth_cpu__narrow(berth_tfn *fn, const berth_ranges *ranges, berth_expr id, berth_var var,
                       int64_t *low, int64_t *high);
// Whether an index is the smaller or larger of two of which one moves with `var` (repeated or
// mirrored borders).
bool berth_cpu__used_in_clamps(const berth_tfn *fn, berth_expr id, berth_var var);
// Narrows to iterations in which no index of a value is cut off, or begins again (a row that goes on with its first
// elements).
void berth_cpu__narrow_indices(berth_tfn *fn, const berth_ranges *ranges, berth_expr value,
                               berth_var var, int64_t *low, int64_t *high);
// Whether a value is acc + x, acc + x * y, acc * x, min(acc, x) or max(acc, x), with nothing else of `acc`.
// row_lanes.c
bool berth_cpu__find_combine(const berth_tfn *fn, berth_expr value, berth_buf acc,
                             berth_binary *out);
// What parts of such a reduction begin with: 0, 1, or, as extremes may have it more than once, `init`.
berth_expr berth_cpu__neutral(berth_tfn *fn, berth_binary combine, berth_dtype dtype,
                              berth_expr init);
// Whether a value loads from a buffer. row_lanes.c
bool berth_cpu__reads(const berth_tfn *fn, berth_expr id, berth_buf buf);
// Functions that take many instructions. policy_cpu_flat.c
bool berth_cpu__is_function(berth_unary op);
// Whether a value has functions (or conversions to f16) whose vectors are better than what the C compiler
// makes of a loop over single values. depth: 0. policy_cpu_flat.c
bool berth_cpu__has_vector_functions(const berth_tfn *fn, berth_expr id, int depth);
bool berth_linear_uses(const berth_tfn *fn, const berth_linear *form, berth_var var);
// Whether loops `loop` and loop + 1 can be one for these accesses: stepping the outer equals
// running the inner to its end.
bool berth_cpu__can_fuse(const berth_tfn *fn, const berth_nest *nest, int loop,
                         const berth_access_list *accesses);
// Loops of a body of stores become one, from the inside outwards, as far as the accesses go on
// regularly; `ranges` has the loops of the nest.
void berth_cpu__fuse_inwards(berth_tfn *fn, berth_nest *nest, berth_ranges *ranges);

#endif  // BERTH_COMPILER_SCHEDULE_POLICY_CPU_H_
