// Copies that go on by themselves. A store to a buffer of scope LOCAL whose value is an element, or a
// vector, of a buffer in device memory is a copy. Devices that have an engine for them (cp.async of
// CUDA) may start a copy and go on; a barrier says up to when it has to be done.
//
//   barrier              what was stored before it is there after it, for all work-items of the group
//   barrier pending 1    the same, but copies begun since the last barrier (`pending 2`: since the
//                        last but one) need not be there yet. `pending 0`: all are there
//
//   barrier pending 1 products 1
//                        what instructions of several warps were given to multiply since the last barrier may go on, too:
//                        their operands are still read, and their sums are not there. A barrier without `products`
//                        waits for all of them
//
// A vector of more than 16 bytes, whose lanes lie beside each other in both places, is one copy as a whole where all
// work-items of the group store the same to the same place: the device makes it once (cp.async.bulk).
//
// A nest with a `pending` barrier promises that no work-item reads what a copy of its own gives before
// a barrier has waited for it: without one (`barrier` alone) copies are done where they stand. Devices
// without such an engine, and the interpreter, take any barrier for the first form.
#ifndef BERTH_IR_TENSOR_COPIES_H_
#define BERTH_IR_TENSOR_COPIES_H_

#include "ir/tensor/function.h"

enum { BERTH_TFN_MOST_PENDING = 7, BERTH_TFN_MOST_PRODUCTS = 1 };
enum { BERTH_TFN_PRODUCTS_UNIT = 16 };  // of `count` of a barrier, beside pending + 1

// pending: 0 .. BERTH_TFN_MOST_PENDING; products: 0 .. BERTH_TFN_MOST_PRODUCTS
berth_stmt berth_tfn_barrier_pending(berth_tfn *fn, int64_t pending, int64_t products);
static inline uint32_t berth_tfn_barrier_count(int64_t pending, int64_t products) {
    return (uint32_t)(pending + 1 + BERTH_TFN_PRODUCTS_UNIT * products);
}
// -1: a barrier alone.
static inline int berth_tfn_pending_of(const berth_stmt_node *barrier) {
    return (int)(barrier->count % BERTH_TFN_PRODUCTS_UNIT) - 1;
}
static inline int berth_tfn_products_of(const berth_stmt_node *barrier) {
    return (int)(barrier->count / BERTH_TFN_PRODUCTS_UNIT);
}
// Whether a statement has such barriers.
bool berth_tfn_has_pending(const berth_tfn *fn, berth_stmt id);
// The same of barriers that leave products.
bool berth_tfn_has_products(const berth_tfn *fn, berth_stmt id);
// The most stretches of copies that one of them leaves pending; -1: there is none.
int berth_tfn_most_pending(const berth_tfn *fn, berth_stmt id);

#endif  // BERTH_IR_TENSOR_COPIES_H_
