// Copies of more than 16 bytes to shared memory as a whole: cp.async.bulk, the copies of the Tensor Memory Accelerator
// (TMA) that need no description of a tensor from the host, from sm_90 on. Private to compiler/codegen.
//
// A store of a vector to group memory whose lanes lie beside each other here and there, the same for all work-items, is
// one such copy, which one thread of the block begins. It completes at an mbarrier, whose phase knows the bytes that are
// to come. There is one mbarrier for each stretch of a kernel between barriers that may be under way, in turns: at a
// `pending` barrier (ir/tensor/copies.h) the thread arrives at that of the stretch that ends, and all threads wait for the
// phase of the last stretch that has to be there.
//   See PTX ISA, "Data Movement and Conversion Instructions: Bulk copy", "Parallel Synchronization and Communication
//   Instructions: mbarrier".
#ifndef BERTH_COMPILER_CODEGEN_CUDA_BULK_H_
#define BERTH_COMPILER_CODEGEN_CUDA_BULK_H_

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/codegen.h"

// Sets p->bulk_turns for the nest: its mbarriers, 0 = it has no such copies.
void berth_cuda_bulk_open(berth_c_printer *p);
// Bytes of shared memory of the mbarriers.
int64_t berth_cuda_bulk_bytes(const berth_c_printer *p);
// Where they are, at an address of shared memory or (NULL) declared, and that they may be used.
void berth_cuda_bulk_begin(berth_c_printer *p, const char *place);
// Prints a store as such a copy; false: it is none.
bool berth_cuda_bulk_copy(berth_c_printer *p, berth_stmt store);
// In front of a barrier with so many stretches pending.
void berth_cuda_bulk_wait(berth_c_printer *p, int pending);

// Helper functions, where the texts of a job use them.
void berth_cuda_bulk_preamble(berth_strbuf *out, const berth_codegen_job *job);

#endif  // BERTH_COMPILER_CODEGEN_CUDA_BULK_H_
