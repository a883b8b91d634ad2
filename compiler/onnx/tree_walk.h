// Ensembles of trees as operations: all trees go down by one step at a time, side by side. The node of
// each row and tree is an index, and the tables of the nodes are gathered by it. Leaves lead to
// themselves. (ops_ml_trees.c reads the tables.)
//
//   onnx_trees trees = {.absent = 0};
//   ... nodes, roots, weights ...
//   berth_value_id weights = onnx_leaf_weights(&c, &trees, x, BERTH_DTYPE_F32);  // (rows, trees, targets)
#ifndef BERTH_COMPILER_ONNX_TREE_WALK_H_
#define BERTH_COMPILER_ONNX_TREE_WALK_H_

#include "compiler/onnx/compose.h"

// In the order of ai.onnx.ml's TreeEnsemble.
typedef enum onnx_split_mode {
    ONNX_SPLIT_LEQ,
    ONNX_SPLIT_LT,
    ONNX_SPLIT_GTE,
    ONNX_SPLIT_GT,
    ONNX_SPLIT_EQ,
    ONNX_SPLIT_NEQ,
    ONNX_SPLIT_MEMBER,
    ONNX_SPLIT_MODES
} onnx_split_mode;

typedef struct onnx_trees {
    int64_t nodes, targets, trees;
    int64_t *feature, *yes, *no, *mode, *roots;  // of nodes; roots of trees
    double *split;
    bool *missing;    // NaN goes to `yes`
    double *weights;  // (nodes, targets), `absent` where a leaf has none
    double absent;
    bool any_missing;
    // Of ONNX_SPLIT_MEMBER: the set of a node, a row of (sets, widest set), which NaN fills.
    int64_t *set;
    double *members;
    int64_t sets, widest_set;
} onnx_trees;

// A literal of floats or of integers (the other is NULL).
berth_value_id onnx_table(onnx_compose *c, berth_dtype dtype, int rank, const int64_t *dims,
                          const double *floats, const int64_t *ints);

// The weights of the leaves that rows of x (rows, features) come to: (rows, trees, targets), the trees
// in some order. Fails where nodes have two parents, ways do not end, or features are not there.
berth_value_id onnx_leaf_weights(onnx_compose *c, const onnx_trees *e, berth_value_id x,
                                 berth_dtype dtype);

#endif  // BERTH_COMPILER_ONNX_TREE_WALK_H_
