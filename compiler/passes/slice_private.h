// What passes/slice_channels.h and passes/slice_weights.h share: finding what runs in slices, and cutting it.
#ifndef BERTH_COMPILER_PASSES_SLICE_PRIVATE_H_
#define BERTH_COMPILER_PASSES_SLICE_PRIVATE_H_

#include "compiler/passes/rewrite.h"
#include "target/target.h"

enum { BERTH_SLICE_MOST_OPS = 24 };

typedef struct berth_slicer {
    berth_rewriter r;
    const berth_multi_target *target;
    berth_op_id *only_user;      // per value of the graph as it was; BERTH_NONE = none, or several
    bool *is_result;             // per value
    uint32_t *place, *last_use;  // per operation its place in the order; per value the last user's
    uint64_t io_bytes, input_bytes;
    uint64_t least_bytes;  // of the budget: no plan needs less, however many slices there are
} berth_slicer;

// Operations one after the other. Each makes `channels` from constants of that channel, beside the value that comes
// from the one before.
typedef struct berth_slice_chain {
    berth_op_id ops[BERTH_SLICE_MOST_OPS];
    uint32_t through[BERTH_SLICE_MOST_OPS];  // which operand comes from the one before
    uint32_t count;
    uint32_t depthwise;  // index of the convolution with a group per channel; BERTH_NONE = none
    int64_t channels;
    int axis;  // of the channels in what they make
} berth_slice_chain;

// Begins to rewrite `main`. In the module's arena; inside berth_arena_try, as all here.
void berth_slice__begin(berth_slicer *s, berth_module *module, berth_func_id main,
                        const berth_multi_target *target);

berth_graph *berth_slice__graph(const berth_slicer *s);
const berth_type *berth_slice__type(const berth_slicer *s, berth_value_id value);
const berth_tensor *berth_slice__constant(const berth_slicer *s, berth_value_id value);  // or NULL
uint64_t berth_slice__bytes(const berth_slicer *s, berth_value_id value);
bool berth_slice__is_convolution(berth_op_kind kind);
int64_t berth_slice__group(const berth_slicer *s, const berth_op *op);
// The device that the chain's first operation runs on, or BERTH_NO_INDEX.
uint32_t berth_slice__device(const berth_slicer *s, const berth_slice_chain *c);

// Whether all operands of a product or convolution but the first are constants that can be cut by the chain's channels.
bool berth_slice__has_constant_operands(const berth_slicer *s, const berth_slice_chain *c,
                                        const berth_op *op);
// The one operand of an elementwise operation that is no constant; false: there are more, or constants
// that are not per channel.
bool berth_slice__goes_through(const berth_slicer *s, const berth_slice_chain *c, berth_op_id id,
                               uint32_t *out_operand);
// Adds the elementwise operations behind the chain's last one.
void berth_slice__extend(const berth_slicer *s, berth_slice_chain *c);
// What is in memory for as long as the chain runs: the model's inputs and outputs, the chain's operand and result, and
// values that are made before it and used behind it.
uint64_t berth_slice__beside_bytes(const berth_slicer *s, const berth_slice_chain *c);

// The chain once per `at_once` channels (fewer are left for the last), and one after the other in its place.
berth_status berth_slice__run(berth_slicer *s, const berth_slice_chain *c, int64_t at_once);

#endif  // BERTH_COMPILER_PASSES_SLICE_PRIVATE_H_
