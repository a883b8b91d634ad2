// Two-level segregated fit (Masmano, Ripoll, Crespo and Real 2004, "TLSF: a new dynamic memory allocator for
// real-time systems"): blocks of any size in regions of memory that are given to it, taken and given back in
// constant time. Free neighbours become one block at once. A free block of each size class is found by two bit
// scans; classes are 1/32 of a power of two apart, so a block is looked for that is at most 1/32 larger than asked
// for, and what is not needed of it stays free.
//
//   berth_tlsf tlsf = {0};
//   berth_tlsf_add(&tlsf, memory, size_bytes);        // berth_tlsf_region_bytes(n) are enough for a block of n
//   void *block = berth_tlsf_take(&tlsf, n);          // NULL: no free block is large enough
//   berth_tlsf_give(&tlsf, block);
//
// Thread-compatible.
#ifndef BERTH_MEMORY_TLSF_H_
#define BERTH_MEMORY_TLSF_H_

#include <stddef.h>
#include <stdint.h>

enum {
    BERTH_TLSF_CLASSES = 32,  // of a power of two
    BERTH_TLSF_POWERS = 32,   // the first for all below 2^9 bytes, the last for those from 2^39 on
};
#define BERTH_TLSF_MOST_BYTES ((size_t)1 << 39)  // of a block

typedef struct berth_tlsf_block berth_tlsf_block;
typedef struct berth_tlsf_region berth_tlsf_region;

// All zero = no memory.
typedef struct berth_tlsf {
    uint32_t powers;                      // a bit for each that has free blocks
    uint32_t classes[BERTH_TLSF_POWERS];  // the same of its classes
    berth_tlsf_block *free[BERTH_TLSF_POWERS][BERTH_TLSF_CLASSES];
    berth_tlsf_region *regions;
} berth_tlsf;

// Bytes of a region in which a block of that size is found, while it is empty; 0: none is so large.
size_t berth_tlsf_region_bytes(size_t block_bytes);
// Memory, aligned to 16 bytes, that stays the caller's; at least berth_tlsf_region_bytes(1) bytes of it.
void berth_tlsf_add(berth_tlsf *tlsf, void *memory, size_t size_bytes);
// A region that has no taken block; it is no longer used. NULL: there is none.
void *berth_tlsf_remove_empty(berth_tlsf *tlsf, size_t *out_size_bytes);

// Aligned to 16 bytes; not set.
void *berth_tlsf_take(berth_tlsf *tlsf, size_t size_bytes);
void berth_tlsf_give(berth_tlsf *tlsf, void *block);
// Bytes of a taken block that are the caller's: at least as many as were asked for.
size_t berth_tlsf_size(const void *block);

#endif  // BERTH_MEMORY_TLSF_H_
