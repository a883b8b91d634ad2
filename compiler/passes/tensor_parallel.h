// Tensor parallelism: products, and what lies between them, in equal parts on the devices of one kind,
// each of which then holds its part of the weights and does its part of the work.
//
//   y = gelu(x W) V   ->   on device d: p(d) = gelu(x W[:, d]) V[d, :]     y = p(0) + p(1) + ...
//
// The first product's weights are cut by columns, so that every device makes its columns of the result;
// what is done element by element, in heads of an attention, and so on goes on in parts; a product whose
// operand is cut along the dimension that it sums over has its weights cut by rows, and its results are
// added up (Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3). Where an operation needs all of a
// value that is in parts, they are put together (all-gather).
//
// Sums are made on every device (all-reduce), in the same order, so that all have the same bits: each gets
// the others' terms whole; or, where there are more than two devices and that is faster by the target's
// links, each device adds up one part of all terms, and gets the other parts of the sum (reduce-scatter
// and all-gather: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", 2005, section 4.5; all pairs at once in place of halving, since links join all devices of a
// switch). Both are ordinary operations, placed on devices; plan-devices makes the copies.
//
// Values that all devices have (of such a sum on) are computed by all of them, which costs less than to
// send them, until something needs one value again: then the first device's counts.
#ifndef BERTH_COMPILER_PASSES_TENSOR_PARALLEL_H_
#define BERTH_COMPILER_PASSES_TENSOR_PARALLEL_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Weights of fewer bytes stay whole: a kernel and a copy more cost more than they save.
#define BERTH_PARALLEL_LEAST_BYTES 16384

// Cuts @main for the devices of the target that are like the default one, in its machine. After simplify, before
// plan-devices. Exact for integers; floats are summed in another order. Operations that are placed already stay as
// they are. *out_cut: products that were cut. O(operations + bytes of weights).
// Errors: those of shape inference. Inside berth_arena_try.
BERTH_MUST_USE berth_status berth_pass_tensor_parallel(berth_module *module, berth_func_id main,
                                                       const berth_multi_target *target,
                                                       uint32_t *out_cut);

// How many devices that pass would use; 1 = there are no two.
uint32_t berth_tensor_parallel_devices(const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_TENSOR_PARALLEL_H_
