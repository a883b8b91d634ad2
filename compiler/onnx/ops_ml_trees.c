// Tree ensembles of ai.onnx.ml: their attributes as tables of nodes, and what is made of the leaves
// that rows come to (tree_walk.h).
#include <math.h>
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"
#include "compiler/onnx/tree_walk.h"

enum { most_nodes = 1 << 23, most_weights = 1 << 26 };

// ---- attributes ----

static const onnx_attr *list_of(onnx_compose *c, const char *name, int64_t count) {
    const onnx_attr *attr = onnx_call_attr(c->call, name);
    int64_t given = !attr                             ? -1
                    : attr->type == ONNX_ATTR_INTS    ? (int64_t)attr->ints.count
                    : attr->type == ONNX_ATTR_FLOATS  ? (int64_t)attr->floats.count
                    : attr->type == ONNX_ATTR_STRINGS ? (int64_t)attr->strings.count
                                                      : -1;
    if (given == count && count > 0) return attr;
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "attribute %s has %lld entries, expected %lld",
                      name, (long long)given, (long long)count);
    return NULL;
}

static void make_tables(onnx_compose *c, onnx_trees *e, int64_t nodes, int64_t targets) {
    berth_arena *arena = c->call->im->scratch;
    if (nodes < 1 || nodes > most_nodes || targets < 1 || targets > most_weights / nodes) {
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "trees of %lld nodes and %lld targets",
                          (long long)nodes, (long long)targets);
        return;
    }
    e->nodes = nodes;
    e->targets = targets;
    e->feature = berth_arena_new_array(arena, int64_t, nodes);
    e->yes = berth_arena_new_array(arena, int64_t, nodes);
    e->no = berth_arena_new_array(arena, int64_t, nodes);
    e->mode = berth_arena_new_array(arena, int64_t, nodes);
    e->set = berth_arena_new_array(arena, int64_t, nodes);
    e->roots = berth_arena_new_array(arena, int64_t, nodes);
    e->split = berth_arena_new_array(arena, double, nodes);
    e->missing = berth_arena_new_array(arena, bool, nodes);
    e->weights = berth_arena_new_array(arena, double, nodes *targets);
    for (int64_t i = 0; i < nodes; ++i) e->yes[i] = e->no[i] = i;
    for (int64_t i = 0; i < nodes * targets; ++i) e->weights[i] = e->absent;
}

static void add_weight(onnx_trees *e, int64_t node, int64_t target, double weight) {
    double *at = &e->weights[node * e->targets + target];
    *at = *at == e->absent ? weight : *at + weight;
}

// ---- as operations ----

static berth_value_id input_matrix(onnx_compose *c) {
    berth_value_id x = onnx_compose_input(c, 0);
    if (onnx_compose_dtype(c, x) != BERTH_DTYPE_F64) x = onnx_cast_to(c, x, BERTH_DTYPE_F32);
    return onnx_compose_want_rank(c, x, "the input", 1, 2) == 1 ? onnx_unsqueezed(c, x, 0) : x;
}

static berth_value_id aggregated(onnx_compose *c, const onnx_trees *e, berth_value_id weights,
                                 const char *how) {
    berth_op_kind kind = strcmp(how, "MIN") == 0   ? BERTH_OP_REDUCE_MIN
                         : strcmp(how, "MAX") == 0 ? BERTH_OP_REDUCE_MAX
                                                   : BERTH_OP_REDUCE_SUM;
    berth_value_id y = onnx_reduced(c, kind, weights, (int64_t[]){1}, 1, false);
    if (e->absent != 0) {  // what no tree has a leaf for is 0
        berth_value_id none = onnx_make2(c, BERTH_OP_EQUAL, y, onnx_like(c, y, e->absent));
        y = onnx_where(c, none, onnx_like(c, y, 0), y);
    }
    if (strcmp(how, "AVERAGE") == 0) y = onnx_div(c, y, onnx_like(c, y, (double)e->trees));
    return y;
}

static double absent_for(onnx_compose *c, const char *how) {
    if (strcmp(how, "MIN") == 0) return INFINITY;
    if (strcmp(how, "MAX") == 0) return -INFINITY;
    if (strcmp(how, "SUM") != 0 && strcmp(how, "AVERAGE") != 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "aggregate_function is \"%.32s\"", how);
    return 0;
}

// Of the older operators, which have no sets.
static const char *const mode_names[ONNX_SPLIT_MEMBER] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                          "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

// ---- TreeEnsembleRegressor, TreeEnsembleClassifier ----

// The place of a node by its tree and number.
static int64_t find_node(const onnx_attr *trees, const onnx_attr *ids, const uint32_t *order,
                         int64_t tree, int64_t id) {
    uint32_t low = 0, high = ids->ints.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, at = order[middle];
        int64_t a = trees->ints.data[at], b = ids->ints.data[at];
        if (a == tree && b == id) return at;
        if (a < tree || (a == tree && b < id))
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// Places ordered by tree and number: heap sort, for hostile lists of any order.
static uint32_t *order_nodes(onnx_compose *c, const onnx_attr *trees, const onnx_attr *ids) {
    uint32_t count = ids->ints.count;
    uint32_t *order = berth_arena_new_array(c->call->im->scratch, uint32_t, count + 1);
    const int64_t *t = trees->ints.data, *n = ids->ints.data;
#define BEFORE(a, b) (t[a] < t[b] || (t[a] == t[b] && n[a] < n[b]))
    for (uint32_t i = 0; i < count; ++i) order[i] = i;
    for (uint32_t start = count / 2, end = count; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            end--;
            uint32_t last = order[end];
            order[end] = order[0];
            order[0] = last;
        }
        for (uint32_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && BEFORE(order[child], order[child + 1])) child++;
            if (!BEFORE(order[root], order[child])) break;
            uint32_t held = order[root];
            order[root] = order[child];
            order[child] = held;
        }
    }
#undef BEFORE
    return order;
}

static int64_t mode_of(onnx_compose *c, const char *name) {
    for (int64_t m = 0; m < ONNX_SPLIT_MEMBER; ++m)
        if (strcmp(mode_names[m], name) == 0) return m;
    if (strcmp(name, "LEAF") != 0)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "nodes_modes has \"%.32s\"", name);
    return -1;
}

// `count`: how many there must be; -1: sets *out_count.
static double *some_numbers_of(onnx_compose *c, const char *name, int64_t count,
                               int64_t *out_count) {
    const onnx_attr *attr = onnx_call_attr(c->call, name);
    berth_tensor tensor = {0};
    if (c->status) return NULL;
    if (attr) c->status = onnx_read_tensor(c->call->im, &attr->tensor, &tensor, NULL);
    if (!c->status && (!attr || (count >= 0 && berth_tensor_element_count(&tensor) != count)))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "attribute %s is missing or has another length", name);
    if (c->status) return NULL;
    count = berth_tensor_element_count(&tensor);
    double *numbers = berth_arena_new_array(c->call->im->scratch, double, count + 1);
    for (int64_t i = 0; i < count; ++i) numbers[i] = berth_tensor_get_f64(&tensor, i);
    *out_count = count;
    return numbers;
}

static double *numbers_of(onnx_compose *c, const char *name, int64_t count) {
    return some_numbers_of(c, name, count, &count);
}

static const char *as_tensor(const onnx_compose *c, const char *name) {
    return berth_arena_printf(c->call->im->scratch, "%s_as_tensor", name);
}

// Numbers that the older operators have as floats, or as a tensor of doubles.
static const double *floats_of(onnx_compose *c, const char *name, int64_t count) {
    const char *exact = as_tensor(c, name);
    if (onnx_call_attr(c->call, exact)) return numbers_of(c, exact, count);
    const onnx_attr *floats = list_of(c, name, count);
    return floats ? floats->floats.data : NULL;
}

// Nodes of both older operators, then the leaves' weights, whose attributes begin with `prefix`.
static void read_older(onnx_compose *c, onnx_trees *e, const char *prefix, int64_t targets) {
    berth_arena *scratch = c->call->im->scratch;
    const onnx_attr *ids = onnx_call_attr(c->call, "nodes_nodeids");
    make_tables(c, e, ids ? ids->ints.count : 0, targets);
    const onnx_attr *trees = list_of(c, "nodes_treeids", e->nodes);
    const onnx_attr *features = list_of(c, "nodes_featureids", e->nodes);
    const onnx_attr *modes = list_of(c, "nodes_modes", e->nodes);
    const onnx_attr *yes = list_of(c, "nodes_truenodeids", e->nodes);
    const onnx_attr *no = list_of(c, "nodes_falsenodeids", e->nodes);
    const onnx_attr *missing = onnx_call_attr(c->call, "nodes_missing_value_tracks_true");
    const double *splits = floats_of(c, "nodes_values", e->nodes);
    if (c->status) return;
    for (int64_t i = 0; i < e->nodes; ++i) e->split[i] = splits[i];
    const uint32_t *order = order_nodes(c, trees, ids);
    for (int64_t i = 0; i < e->nodes && !c->status; ++i) {
        int64_t mode = mode_of(c, modes->strings.data[i]);
        int64_t tree = trees->ints.data[i];
        if (i == 0 || tree != trees->ints.data[i - 1]) e->roots[e->trees++] = i;
        if (mode < 0) continue;
        e->mode[i] = mode;
        e->feature[i] = features->ints.data[i];
        e->yes[i] = find_node(trees, ids, order, tree, yes->ints.data[i]);
        e->no[i] = find_node(trees, ids, order, tree, no->ints.data[i]);
        e->missing[i] = missing && i < missing->ints.count && missing->ints.data[i];
        e->any_missing |= e->missing[i];
        if (e->yes[i] < 0 || e->no[i] < 0 || e->yes[i] == i || e->no[i] == i)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "node %lld leads nowhere", (long long)i);
    }
    const onnx_attr *of =
        onnx_call_attr(c->call, berth_arena_printf(scratch, "%s_nodeids", prefix));
    int64_t count = of ? of->ints.count : 0;
    const onnx_attr *of_tree = list_of(c, berth_arena_printf(scratch, "%s_treeids", prefix), count);
    const onnx_attr *target = list_of(c, berth_arena_printf(scratch, "%s_ids", prefix), count);
    const double *weight = floats_of(c, berth_arena_printf(scratch, "%s_weights", prefix), count);
    for (int64_t i = 0; i < count && !c->status; ++i) {
        int64_t node = find_node(trees, ids, order, of_tree->ints.data[i], of->ints.data[i]);
        int64_t to = target->ints.data[i];
        if (node < 0 || to < 0 || to >= targets)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "weight %lld is of no leaf or target",
                              (long long)i);
        else
            add_weight(e, node, to, weight[i]);
    }
}

// How many base_values there are; 0: none.
static int64_t base_count(onnx_compose *c) {
    const onnx_attr *floats = onnx_call_attr(c->call, "base_values");
    const onnx_attr *exact = onnx_call_attr(c->call, "base_values_as_tensor");
    berth_tensor tensor = {0};
    if (exact && !c->status)
        c->status = onnx_read_tensor(c->call->im, &exact->tensor, &tensor, NULL);
    if (c->status) return 0;
    return exact ? berth_tensor_element_count(&tensor) : floats ? floats->floats.count : 0;
}

static berth_value_id with_base(onnx_compose *c, berth_value_id y) {
    const int64_t count = base_count(c);
    const double *base = count ? floats_of(c, "base_values", count) : NULL;
    if (c->status || !base) return y;
    return onnx_add(c, y, onnx_table(c, onnx_compose_dtype(c, y), 1, &count, base, NULL));
}

// Doubles are summed as such.
static berth_dtype sum_dtype(const onnx_compose *c, const char *weights) {
    const char *exact = as_tensor(c, weights);
    return onnx_call_attr(c->call, exact) ? BERTH_DTYPE_F64 : BERTH_DTYPE_F32;
}

berth_status onnx_build_ml_tree_regressor(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    const char *how = onnx_call_string(call, "aggregate_function", "SUM");
    onnx_trees e = {.absent = absent_for(&c, how)};
    if (!c.status) read_older(&c, &e, "target", onnx_call_int(call, "n_targets", 1));
    if (c.status) return c.status;
    berth_value_id y = onnx_leaf_weights(&c, &e, input_matrix(&c), sum_dtype(&c, "target_weights"));
    y = onnx_cast_to(&c, with_base(&c, aggregated(&c, &e, y, how)), BERTH_DTYPE_F32);
    how = onnx_call_string(call, "post_transform", "NONE");
    onnx_compose_output(&c, 0, onnx_ml_regressed(&c, y, e.targets, how));
    return c.status;
}

// Two classes with weights of one of them only, as ONNX Runtime reads it. Of the first: the one score is the
// second class's; weights that are all positive are shares of 1, others distances to both sides of 0. Of the
// second: the other's score is 0.
static void two_classes(onnx_compose *c, onnx_trees *e, berth_value_id names, int64_t class_id) {
    const onnx_attr *of = onnx_call_attr(c->call, "class_ids");
    const char *how = onnx_call_string(c->call, "post_transform", "NONE");
    const double *weights = floats_of(c, "class_weights", of ? of->ints.count : 0);
    bool positive = true;
    for (uint32_t i = 0; weights && i < of->ints.count; ++i) positive &= weights[i] >= 0;
    if (base_count(c) > 1) onnx_compose_fail(c, BERTH_UNSUPPORTED, "two base_values for one score");
    if (c->status) return;
    berth_value_id y = onnx_leaf_weights(c, e, input_matrix(c), sum_dtype(c, "class_weights"));
    y = aggregated(c, e, y, "SUM");
    y = onnx_sliced(c, y, 1, class_id, class_id + 1, 1);
    if (class_id == 0) y = with_base(c, y);
    y = onnx_cast_to(c, y, BERTH_DTYPE_F32);
    berth_value_id limit = onnx_like(c, y, positive ? 0.5 : 0);
    berth_value_id label = onnx_make2(c, BERTH_OP_GREATER, y, limit);
    label = onnx_cast_to(c, onnx_squeezed(c, label, 1), BERTH_DTYPE_I64);
    onnx_compose_output(c, 0, onnx_gathered(c, names, label, 0));
    if (class_id == 0) {
        onnx_compose_output(c, 1, onnx_ml_both_scores(c, y, positive, how));
        return;
    }
    berth_value_id both[2] = {onnx_mul(c, y, onnx_like(c, y, 0)), y};
    onnx_compose_output(c, 1, onnx_ml_transformed(c, onnx_concatenated(c, both, 2, 1), how));
}

// The label of the highest score, and the scores.
berth_status onnx_build_ml_tree_classifier(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t count = 0;
    berth_value_id names =
        onnx_ml_class_names(&c, "classlabels_int64s", "classlabels_strings", &count);
    const onnx_attr *of = onnx_call_attr(call, "class_ids");
    onnx_trees e = {0};
    bool one_score = count == 2 && of && of->ints.count > 0;
    for (uint32_t i = 0; of && i < of->ints.count; ++i)
        one_score &= of->ints.data[i] == of->ints.data[0];
    if (!c.status) read_older(&c, &e, "class", count);
    if (!c.status && one_score) two_classes(&c, &e, names, of->ints.data[0]);
    if (c.status || one_score) return c.status;
    berth_value_id y = onnx_leaf_weights(&c, &e, input_matrix(&c), sum_dtype(&c, "class_weights"));
    y = onnx_cast_to(&c, with_base(&c, aggregated(&c, &e, y, "SUM")), BERTH_DTYPE_F32);
    onnx_made best = onnx_start(&c, BERTH_OP_ARG_MAX, &y, 1, 1);
    onnx_set_int(best, "axis", 1);
    onnx_set_int(best, "keepdims", 0);
    onnx_compose_output(&c, 0, onnx_gathered(&c, names, onnx_finish(best), 0));
    onnx_compose_output(
        &c, 1, onnx_ml_transformed(&c, y, onnx_call_string(call, "post_transform", "NONE")));
    return c.status;
}

// ---- TreeEnsemble ----

// Sets of the nodes that ask for membership, one after the other, with NaN between them (and perhaps after the last one).
static void read_sets(onnx_compose *c, onnx_trees *e, int64_t inner) {
    enum { most_members = 1 << 24 };
    int64_t count = 0, sets = 0, width = 0, at = 0;
    for (int64_t i = 0; i < inner; ++i)
        if (e->mode[i] == ONNX_SPLIT_MEMBER) e->set[i] = e->sets++;
    if (c->status || !e->sets) return;
    const double *values = some_numbers_of(c, "membership_values", -1, &count);
    for (int64_t i = 0; values && i <= count; ++i) {
        const bool ends = i == count || isnan(values[i]);
        width = ends ? 0 : width + 1;
        if (width > e->widest_set) e->widest_set = width;
        sets += ends && (i < count || (count && !isnan(values[count - 1])));
    }
    if (!c->status && (sets != e->sets || !e->widest_set))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "membership_values has %lld sets, for %lld nodes with mode BRANCH_MEMBER",
                          (long long)sets, (long long)e->sets);
    if (!c->status && e->widest_set > most_members / e->sets)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "%lld sets, of up to %lld members",
                          (long long)e->sets, (long long)e->widest_set);
    if (c->status) return;
    e->members = berth_arena_new_array(c->call->im->scratch, double, e->sets * e->widest_set);
    for (int64_t i = 0; i < e->sets * e->widest_set; ++i) e->members[i] = NAN;
    for (int64_t set = 0, k = 0; at < count; ++at) {
        if (!isnan(values[at])) e->members[set * e->widest_set + k++] = values[at];
        if (isnan(values[at])) k = 0, set++;
    }
}

// Inner nodes come first, leaves after them.
static void read_newer(onnx_compose *c, onnx_trees *e) {
    const onnx_attr *features = onnx_call_attr(c->call, "nodes_featureids");
    const onnx_attr *targets = onnx_call_attr(c->call, "leaf_targetids");
    const onnx_attr *roots = onnx_call_attr(c->call, "tree_roots");
    int64_t inner = features ? features->ints.count : 0, leaves = targets ? targets->ints.count : 0;
    const onnx_attr *next[2] = {list_of(c, "nodes_truenodeids", inner),
                                list_of(c, "nodes_falsenodeids", inner)};
    const onnx_attr *leaf[2] = {list_of(c, "nodes_trueleafs", inner),
                                list_of(c, "nodes_falseleafs", inner)};
    const onnx_attr *missing = onnx_call_attr(c->call, "nodes_missing_value_tracks_true");
    make_tables(c, e, inner + leaves, onnx_call_int(c->call, "n_targets", 1));
    const double *splits = numbers_of(c, "nodes_splits", inner);
    const double *modes = numbers_of(c, "nodes_modes", inner);
    const double *weights = numbers_of(c, "leaf_weights", leaves);
    for (int64_t i = 0; i < inner && !c->status; ++i) {
        e->feature[i] = features->ints.data[i];
        e->split[i] = splits[i];
        if (!(modes[i] >= 0 && modes[i] < ONNX_SPLIT_MODES)) {
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "node mode %g", modes[i]);
            return;
        }
        e->mode[i] = (int64_t)modes[i];
        e->missing[i] = missing && i < missing->ints.count && missing->ints.data[i];
        e->any_missing |= e->missing[i];
        for (int k = 0; k < 2; ++k) {
            int64_t to = next[k]->ints.data[i], limit = leaf[k]->ints.data[i] ? leaves : inner;
            if (to < 0 || to >= limit) {
                onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "node %lld leads nowhere",
                                  (long long)i);
                return;
            }
            *(k ? &e->no[i] : &e->yes[i]) = leaf[k]->ints.data[i] ? inner + to : to;
        }
    }
    read_sets(c, e, inner);
    for (int64_t i = 0; i < leaves && !c->status; ++i) {
        int64_t to = targets->ints.data[i];
        if (to < 0 || to >= e->targets)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "leaf %lld is of no target", (long long)i);
        else
            add_weight(e, inner + i, to, weights[i]);
    }
    for (uint32_t i = 0; roots && i < roots->ints.count && !c->status; ++i) {
        int64_t root = roots->ints.data[i];
        if (root < 0 || root >= inner || e->trees >= e->nodes)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "tree_roots[%u] is no node", i);
        else
            e->roots[e->trees++] = root;
    }
}

berth_status onnx_build_ml_tree_ensemble(onnx_call *call) {
    static const char *const sums[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const after[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t sum = onnx_call_int(call, "aggregate_function", 1);
    int64_t transform = onnx_call_int(call, "post_transform", 0);
    if (sum < 0 || sum > 3 || transform < 0 || transform > 4)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "aggregate_function or post_transform");
    if (c.status) return c.status;
    onnx_trees e = {.absent = absent_for(&c, sums[sum])};
    read_newer(&c, &e);
    if (!c.status && !e.trees) onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "there are no trees");
    if (c.status) return c.status;
    berth_value_id x = input_matrix(&c);
    berth_dtype dtype = onnx_compose_dtype(&c, x);
    berth_value_id y = aggregated(&c, &e, onnx_leaf_weights(&c, &e, x, dtype), sums[sum]);
    onnx_compose_output(&c, 0, onnx_ml_transformed(&c, y, after[transform]));
    return c.status;
}
