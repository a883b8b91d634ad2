// Along which dimension an operation can be cut into parts (private to compiler/passes): what each part
// takes of the operands, and what it makes of the results.
#ifndef BERTH_COMPILER_PASSES_TENSOR_CUT_H_
#define BERTH_COMPILER_PASSES_TENSOR_CUT_H_

#include "ir/graph/graph.h"

enum {
    BERTH_CUT_WHOLE = -1,  // of an operand: each part takes all of it
    BERTH_CUT_SUM = -2,    // of results: those of the parts are to be added up
    BERTH_CUT_MOST_OPERANDS = 16,
};

typedef struct berth_tensor_cut {
    int operand
        [BERTH_CUT_MOST_OPERANDS];  // the dimension that a part takes its range of (below), or WHOLE
    int result;                     // the dimension along which results are in parts, or SUM
    bool shape;       // operand 1 is the shape of the result: each part has one of its own
    bool as_reshape;  // a view, whose parts are reshapes
    bool grouped;     // a convolution of as many groups as channels: `group` is cut, too
    bool begins;      // a product with weights to cut
} berth_tensor_cut;

// Where part d of a dimension begins; part d ends where part d + 1 does. Parts are equal where the extent divides; else
// they differ by one, or by 16 where that is little, so that all but the last are full tiles. It depends on the extent
// alone: operands and results of one extent have the same ranges.
int64_t berth_tensor_cut_begin(int64_t extent, int64_t count, int64_t part);

// `cut_of[i]`: the dimension along which operand i is in `count` parts, or WHOLE. False: the operation takes
// its operands whole. Types are static.
bool berth_tensor_cut_find(const berth_module *module, const berth_graph *graph, const berth_op *op,
                           const int *cut_of, int64_t count, berth_tensor_cut *out_cut);

#endif  // BERTH_COMPILER_PASSES_TENSOR_CUT_H_
