// Trees that go down side by side (tree_walk.h). Nodes are numbered level by level, so that the two
// ways of one are neighbours and a step reads what is near; trees are in the order of their depths, so
// that those which have ended are left out of the steps of the others.
//
// Where every split asks "is x at most s" (or every one "less than s": other comparisons are these with
// the ways exchanged), a step is next = first[node] + (x > split[node]): no table of the other way, no
// mode, and none of what NaN does. For NaN, x has its columns twice: with NaN as a number that goes the
// first way everywhere, and as one that does so at leaves only, whose split is infinite.
#include "compiler/onnx/tree_walk.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "compiler/passes/index_checks.h"

// The nodes in their new order: level by level, all trees side by side, the first way before the other.
typedef struct levels {
    int64_t *at;     // old numbers by new ones
    int64_t *place;  // new numbers by old ones
    int64_t *tree;   // of new numbers: the tree
    int64_t *depth;  // of trees
    int64_t *order;  // trees, the deepest first
    int64_t count;
} levels;

static bool is_leaf(const onnx_trees *e, int64_t node) {
    return e->yes[node] == node && e->no[node] == node;
}

// "At least" and "more than" are "less than" and "at most" with the ways exchanged.
static bool ways_swapped(const onnx_trees *e, int64_t node) {
    return e->mode[node] == ONNX_SPLIT_GTE || e->mode[node] == ONNX_SPLIT_GT;
}

// Also finds ways that never end.
static levels number_levels(onnx_compose *c, const onnx_trees *e) {
    berth_arena *arena = c->call->im->scratch;
    levels l = {.at = berth_arena_new_array(arena, int64_t, e->nodes + 1),
                .place = berth_arena_new_array(arena, int64_t, e->nodes),
                .tree = berth_arena_new_array(arena, int64_t, e->nodes + 1),
                .depth = berth_arena_new_array(arena, int64_t, e->trees + 1),
                .order = berth_arena_new_array(arena, int64_t, e->trees + 1)};
    int64_t *level = berth_arena_new_array(arena, int64_t, e->nodes);
    for (int64_t i = 0; i < e->nodes; ++i) l.place[i] = -1;
    for (int64_t t = 0; t < e->trees; ++t) {
        if (l.place[e->roots[t]] >= 0) {
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "two trees share a root");
            return l;
        }
        l.place[e->roots[t]] = l.count;
        l.tree[l.count] = t;
        l.at[l.count++] = e->roots[t];
    }
    for (int64_t begin = 0; begin < l.count; ++begin) {
        int64_t node = l.at[begin], tree = l.tree[begin];
        bool swap = ways_swapped(e, node);
        int64_t next[2] = {swap ? e->no[node] : e->yes[node], swap ? e->yes[node] : e->no[node]};
        if (is_leaf(e, node)) continue;
        if (level[node] + 1 > l.depth[tree]) l.depth[tree] = level[node] + 1;
        for (int i = 0; i < 2; ++i) {
            if (i && next[1] == next[0]) continue;
            if (l.place[next[i]] >= 0) {
                onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "node %lld has two parents",
                                  (long long)next[i]);
                return l;
            }
            level[next[i]] = level[node] + 1;
            l.place[next[i]] = l.count;
            l.tree[l.count] = tree;
            l.at[l.count++] = next[i];
        }
    }
    return l;
}

// The deepest first, else as they were: places by counting.
static void order_trees(onnx_compose *c, const onnx_trees *e, levels *l) {
    int64_t most = 0;
    for (int64_t t = 0; t < e->trees; ++t)
        if (l->depth[t] > most) most = l->depth[t];
    int64_t *next = berth_arena_new_array(c->call->im->scratch, int64_t, most + 2);
    for (int64_t t = 0; t < e->trees; ++t) next[most - l->depth[t] + 1]++;
    for (int64_t d = 1; d <= most; ++d) next[d] += next[d - 1];
    for (int64_t t = 0; t < e->trees; ++t) l->order[next[most - l->depth[t]]++] = t;
}

berth_value_id onnx_table(onnx_compose *c, berth_dtype dtype, int rank, const int64_t *dims,
                          const double *floats, const int64_t *ints) {
    if (c->status) return BERTH_NONE;
    berth_tensor tensor = berth_tensor_create(c->call->im->arena, dtype, rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i) {
        if (floats)
            berth_tensor_set_f64(&tensor, i, floats[i]);
        else
            berth_tensor_set_i64(&tensor, i, ints[i]);
    }
    return onnx_call_literal(c->call, &tensor);
}

// ---- one step of any trees

typedef struct walk {
    berth_value_id x, feature, split, mode, yes, no, missing, set, members;
    bool used[ONNX_SPLIT_MODES];
    bool one_kind;  // next = yes[node] + (x > split), or >= split where `strict`
    bool strict;
    bool capped;  // infinity is the largest number
    bool narrow;  // x is f32
    double largest;
} walk;

static berth_value_id compared(onnx_compose *c, int64_t mode, berth_value_id x,
                               berth_value_id split) {
    static const berth_op_kind kinds[ONNX_SPLIT_MODES] = {
        BERTH_OP_LESS_OR_EQUAL, BERTH_OP_LESS,  BERTH_OP_GREATER_OR_EQUAL,
        BERTH_OP_GREATER,       BERTH_OP_EQUAL, BERTH_OP_EQUAL,
        BERTH_OP_EQUAL};
    berth_value_id result = onnx_make2(c, kinds[mode], x, split);
    return mode == ONNX_SPLIT_NEQ ? onnx_make1(c, BERTH_OP_NOT, result) : result;
}

// Whether x is one of the members of the node's set.
static berth_value_id is_member(onnx_compose *c, const walk *w, berth_value_id node,
                                berth_value_id x) {
    berth_value_id members = onnx_gathered(c, w->members, onnx_gathered(c, w->set, node, 0), 0);
    berth_value_id same = onnx_make2(c, BERTH_OP_EQUAL, onnx_unsqueezed(c, x, 2), members);
    same = onnx_cast_to(c, same, BERTH_DTYPE_I32);
    same = onnx_reduced(c, BERTH_OP_REDUCE_MAX, same, (int64_t[]){2}, 1, false);
    return onnx_cast_to(c, same, BERTH_DTYPE_BOOL);
}

static berth_value_id goes_first_way(onnx_compose *c, const walk *w, berth_value_id node,
                                     berth_value_id x, berth_value_id split) {
    berth_value_id goes = BERTH_NONE, mode = BERTH_NONE;
    for (int m = 0; m < ONNX_SPLIT_MODES; ++m) {
        if (!w->used[m]) continue;
        berth_value_id holds =
            m == ONNX_SPLIT_MEMBER ? is_member(c, w, node, x) : compared(c, m, x, split);
        if (goes == BERTH_NONE) {
            goes = holds;
            continue;
        }
        if (mode == BERTH_NONE) mode = onnx_gathered(c, w->mode, node, 0);
        berth_value_id is = onnx_make2(c, BERTH_OP_EQUAL, mode, onnx_scalar(c, BERTH_DTYPE_I32, m));
        goes = onnx_where(c, is, holds, goes);
    }
    if (w->missing == BERTH_NONE) return goes;
    berth_value_id kept = onnx_cast_to(c, onnx_gathered(c, w->missing, node, 0), BERTH_DTYPE_BOOL);
    kept = onnx_make2(c, BERTH_OP_AND, kept, onnx_make1(c, BERTH_OP_IS_NAN, x));
    return onnx_make2(c, BERTH_OP_OR, goes, kept);
}

static berth_value_id step_down(onnx_compose *c, const walk *w, berth_value_id node) {
    onnx_made picked =
        onnx_start(c, BERTH_OP_GATHER_ELEMENTS,
                   (berth_value_id[]){w->x, onnx_gathered(c, w->feature, node, 0)}, 2, 1);
    onnx_set_int(picked, "axis", 1);
    onnx_set_int(picked, BERTH_ATTR_IN_RANGE, 1);
    berth_value_id x = onnx_finish(picked), split = onnx_gathered(c, w->split, node, 0);
    berth_value_id yes = onnx_gathered(c, w->yes, node, 0);
    if (w->one_kind) {
        berth_op_kind kind = w->strict ? BERTH_OP_GREATER_OR_EQUAL : BERTH_OP_GREATER;
        return onnx_add(c, yes, onnx_cast_to(c, onnx_make2(c, kind, x, split), BERTH_DTYPE_I32));
    }
    return onnx_where(c, goes_first_way(c, w, node, x, split), yes,
                      onnx_gathered(c, w->no, node, 0));
}

// ---- tables

// Splits of one kind: "at most", or "less than" (`strict`). The others are these with the ways
// exchanged; EQ, NEQ and sets are neither. Leaves need a split beyond those of all nodes: one that all numbers
// are at most may be the largest number, where infinity counts as that.
static bool of_one_kind(const onnx_trees *e, const levels *l, walk *w) {
    bool seen[2] = {false, false}, at_largest = false, low = false;
    for (int64_t i = 0; i < l->count; ++i) {
        int64_t node = l->at[i], mode = e->mode[node];
        double split = w->narrow ? (double)(float)e->split[node] : e->split[node];
        if (is_leaf(e, node)) continue;
        if (mode == ONNX_SPLIT_EQ || mode == ONNX_SPLIT_NEQ || mode == ONNX_SPLIT_MEMBER ||
            e->yes[node] == e->no[node] || isnan(split))
            return false;
        seen[mode == ONNX_SPLIT_LT || mode == ONNX_SPLIT_GTE] = true;
        at_largest |= split == w->largest;
        low |= split == -INFINITY;
        w->capped |= split == INFINITY;
    }
    w->strict = seen[1];
    if (seen[1] ? seen[0] || w->capped || low : w->capped && at_largest) return false;
    w->capped |= w->strict;
    return true;
}

// x with NaN as a number on one side of all splits, and infinity as the largest number where it is
// capped.
static berth_value_id without_nan(onnx_compose *c, berth_value_id x, bool first_way,
                                  const walk *w) {
    double beyond = first_way ? -INFINITY : w->strict ? w->largest : INFINITY;
    berth_value_id is = onnx_make1(c, BERTH_OP_IS_NAN, x);
    if (w->capped) x = onnx_make2(c, BERTH_OP_MIN, x, onnx_like(c, x, w->largest));
    return onnx_where(c, is, onnx_like(c, x, beyond), x);
}

// Tables in the order of the levels; fails where a feature is not there.
static walk make_walk(onnx_compose *c, const onnx_trees *e, const levels *l, berth_value_id x) {
    berth_arena *arena = c->call->im->scratch;
    walk w = {.x = x, .missing = BERTH_NONE, .mode = BERTH_NONE, .no = BERTH_NONE};
    int64_t features = onnx_compose_known_extent(c, x, "the input", 1);
    w.narrow = onnx_compose_dtype(c, x) != BERTH_DTYPE_F64;
    w.largest = w.narrow ? (double)FLT_MAX : DBL_MAX;
    w.one_kind = of_one_kind(e, l, &w);
    int64_t *columns[5];  // feature, yes, no, mode, missing
    for (int i = 0; i < 5; ++i) columns[i] = berth_arena_new_array(arena, int64_t, l->count);
    double *split = berth_arena_new_array(arena, double, l->count);
    bool either[2] = {false, false};  // where NaN goes
    for (int64_t i = 0; i < l->count; ++i) {
        int64_t node = l->at[i], mode = e->mode[node];
        bool leaf = is_leaf(e, node), swap = false, first = e->missing[node];
        if (w.one_kind && !leaf) {
            swap = ways_swapped(e, node);
            first ^= swap;
            either[first] = true;
        }
        columns[0][i] = e->feature[node];
        columns[1][i] = l->place[w.one_kind && swap ? e->no[node] : e->yes[node]];
        columns[2][i] = l->place[e->no[node]];
        columns[3][i] = mode;
        columns[4][i] = first && !leaf;
        split[i] = e->split[node];
        if (w.one_kind) split[i] = leaf ? INFINITY : split[i] > w.largest ? w.largest : split[i];
        if (!leaf) w.used[mode] = true;
        if (e->feature[node] < 0 || e->feature[node] >= features)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "node %lld asks for feature %lld of %lld",
                              (long long)node, (long long)e->feature[node], (long long)features);
    }
    if (w.one_kind && either[0] && either[1])
        for (int64_t i = 0; i < l->count; ++i) columns[0][i] += columns[4][i] ? features : 0;
    w.feature = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[0]);
    w.split = onnx_table(c, onnx_compose_dtype(c, x), 1, &l->count, split, NULL);
    w.yes = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[1]);
    if (w.one_kind) {
        w.x = without_nan(c, x, !either[0], &w);
        if (either[0] && either[1])
            w.x = onnx_concatenated(c, (berth_value_id[]){w.x, without_nan(c, x, true, &w)}, 2, 1);
        return w;
    }
    w.no = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[2]);
    w.mode = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[3]);
    if (e->any_missing) w.missing = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[4]);
    if (w.used[ONNX_SPLIT_MEMBER]) {
        for (int64_t i = 0; i < l->count; ++i) columns[0][i] = e->set[l->at[i]];
        w.set = onnx_table(c, BERTH_DTYPE_I32, 1, &l->count, NULL, columns[0]);
        w.members = onnx_table(c, onnx_compose_dtype(c, x), 2, (int64_t[]){e->sets, e->widest_set},
                               e->members, NULL);
    }
    return w;
}

// ---- the way down

enum { most_parts = 16, least_left_out = 32 };

// The leaves that rows of x come to: (rows, trees), the deepest trees first. A tree takes part in the
// steps until half of those that are still walked have ended: steps of few widths share their kernels.
static berth_value_id walked(onnx_compose *c, const onnx_trees *e, const levels *l, const walk *w) {
    int64_t *roots = berth_arena_new_array(c->call->im->scratch, int64_t, e->trees + 1);
    for (int64_t t = 0; t < e->trees; ++t) roots[t] = l->place[e->roots[l->order[t]]];
    berth_value_id node = onnx_table(c, BERTH_DTYPE_I32, 2, (int64_t[]){1, e->trees}, NULL, roots);
    berth_value_id rows = onnx_unsqueezed(c, onnx_extent_of(c, w->x, 0), 0);
    berth_value_id dims[2] = {rows, onnx_int_list(c, &e->trees, 1)};
    node = onnx_make2(c, BERTH_OP_EXPAND, node, onnx_concatenated(c, dims, 2, 0));
    berth_value_id parts[most_parts];
    int first = most_parts;
    int64_t width = e->trees, left = e->trees, depth = e->trees ? l->depth[l->order[0]] : 0;
    for (int64_t d = 0; d < depth && !c->status; ++d) {
        while (left > 0 && l->depth[l->order[left - 1]] <= d) left--;
        if (left <= width / 2 && width - left >= least_left_out && first > 1) {
            parts[--first] = onnx_sliced(c, node, 1, left, width, 1);
            node = onnx_sliced(c, node, 1, 0, left, 1);
            width = left;
        }
        node = step_down(c, w, node);
    }
    if (first == most_parts) return node;
    parts[--first] = node;
    return onnx_concatenated(c, parts + first, (uint32_t)(most_parts - first), 1);
}

berth_value_id onnx_leaf_weights(onnx_compose *c, const onnx_trees *e, berth_value_id x,
                                 berth_dtype dtype) {
    levels l = number_levels(c, e);
    if (c->status) return BERTH_NONE;
    order_trees(c, e, &l);
    walk w = make_walk(c, e, &l, x);
    if (c->status) return BERTH_NONE;
    double *weights = berth_arena_new_array(c->call->im->scratch, double, l.count * e->targets + 1);
    for (int64_t i = 0; i < l.count; ++i)
        memcpy(weights + i * e->targets, e->weights + l.at[i] * e->targets,
               (size_t)e->targets * sizeof(double));
    berth_value_id table = onnx_table(c, dtype, 2, (int64_t[]){l.count, e->targets}, weights, NULL);
    return onnx_gathered(c, table, walked(c, e, &l, &w), 0);
}
