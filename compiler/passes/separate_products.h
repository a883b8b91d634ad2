// A product whose columns are taken apart again becomes a product for each part, so that parts can be cut
// by themselves (heads of queries, keys and values that a model computes in one product):
//
//   a, b, c = split(x W + bias)   ->   a = x W_a + bias_a, b = x W_b + bias_b, c = x W_c + bias_c
#ifndef BERTH_COMPILER_PASSES_SEPARATE_PRODUCTS_H_
#define BERTH_COMPILER_PASSES_SEPARATE_PRODUCTS_H_

#include "ir/graph/graph.h"

// Where the weights are a constant matrix, the bias (there need not be one) a constant, and nobody else reads
// what is between. Errors: those of shape inference. Inside berth_arena_try. O(operations + bytes of
// weights).
BERTH_MUST_USE berth_status berth_pass_separate_products(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_SEPARATE_PRODUCTS_H_
