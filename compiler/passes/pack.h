// Packing of constants, apart from the passes that decide on it: passes make the packed constant
// and note what its bytes will be; helpers fill them while the compiler goes on.
//
//   berth_packing *packing = berth_packing_create(module, thread_count);
//   berth_packing_add_layout(packing, "Ba16b's layout", weights, bytes);   // passes
//   berth_packing_start(packing);                                         // after the last of
//   them
//   ...                                    // whatever does not look into packed constants
//   berth_packing_finish(packing);         // now their bytes are there
//
// Bytes depend neither on the number of threads nor on their order. Until it is finished a packing
// borrows the source tensors' bytes and those of the packed ones; it must be finished before the
// module's arena goes, whatever failed in between.
#ifndef BERTH_COMPILER_PASSES_PACK_H_
#define BERTH_COMPILER_PASSES_PACK_H_

#include "compiler/passes/packed_store.h"
#include "ir/layout.h"
#include "ir/module.h"

typedef struct berth_packing berth_packing;

// In the module's arena. `thread_count` with the caller; 0 = as many as cores. `store` (NULL = none):
// what it has is taken, and what is packed stays there. Inside berth_arena_try, like the functions
// that add.
berth_packing *berth_packing_create(berth_module *module, uint32_t thread_count,
                                    berth_packed_store *store);

// A new constant: the tensor in another layout (its logical dimensions and type stay), or the
// weights of a Winograd convolution of tiles of m x m (winograd.h). Sources may lie at any address.
void *berth_packing_add_layout(berth_packing *packing, const berth_layout *layout,
                               const berth_tensor *tensor);
float *berth_packing_add_winograd(berth_packing *packing, const berth_tensor *weights, int64_t m);

// Starts with what has been added so far; once.
void berth_packing_start(berth_packing *packing);
// Waits, and works along. Sources that lie in files of the module have left memory by then. NULL,
// not started, finished before: all fine.
void berth_packing_finish(berth_packing *packing);

#endif  // BERTH_COMPILER_PASSES_PACK_H_
