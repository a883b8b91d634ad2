// Attention in one kernel: a product of matrices, elementwise operations, a softmax along rows, and
// a product of those rows. Scores exist for a block of keys at a time; maximum and sum of a row
// follow as they come.
//
//   berth_attention found;
//   if (berth_attention_find(module, graph, uses, product, &found)) ...   // found.ops in one function
//
// What passes/fuse.c puts into one function so is lowered so (lower.c).
//   See M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (arXiv 1805.02867), and T. Dao et
//   al., "FlashAttention" (arXiv 2205.14135), algorithm 1.
#ifndef BERTH_COMPILER_LOWER_ATTENTION_H_
#define BERTH_COMPILER_LOWER_ATTENTION_H_

#include "ir/graph/graph.h"

#define BERTH_ATTENTION_MOST_OPS 16

typedef struct berth_attention {
    berth_op_id ops
        [BERTH_ATTENTION_MOST_OPS];  // each after those that it reads; the last is the product of the weights
    uint32_t count;
    berth_op_id scores;  // the product that makes them
    berth_op_id softmax;
    // Per matrix: rows of queries, keys, terms of a score, columns of the values; matrices in all.
    int64_t rows, keys, depth, columns, batch;
} berth_attention;

// Rows and keys that a work-group has at a time.
int64_t berth_attention_block_rows(const berth_attention *attention);
int64_t berth_attention_block_keys(const berth_attention *attention);

// Whether `product` ends an attention, whose values in between nothing else reads. `uses`: of every
// value (berth_graph_count_uses). O(operations of it).
bool berth_attention_find(const berth_module *module, const berth_graph *graph,
                          const uint32_t *uses, berth_op_id product, berth_attention *out);

#endif  // BERTH_COMPILER_LOWER_ATTENTION_H_
