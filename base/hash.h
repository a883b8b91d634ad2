// Hashes (xxHash XXH3). 64 bits for tables, 128 bits for identities (targets, kernels, cache keys).
#ifndef BERTH_BASE_HASH_H_
#define BERTH_BASE_HASH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct berth_hash128 {
    uint64_t high;
    uint64_t low;
} berth_hash128;

uint64_t berth_hash64(const void *data, size_t size_bytes, uint64_t seed);
// The hash with seed 0 of bytes that come in pieces.
typedef struct berth_hash64_stream berth_hash64_stream;
berth_hash64_stream *berth_hash64_begin(void);  // NULL: out of memory
void berth_hash64_add(berth_hash64_stream *stream, const void *data, size_t size_bytes);
uint64_t berth_hash64_end(berth_hash64_stream *stream);  // frees it
berth_hash128 berth_hash128_of(const void *data, size_t size_bytes);
bool berth_hash128_equal(berth_hash128 a, berth_hash128 b);
void berth_hash128_hex(berth_hash128 hash, char out[33]);  // 32 lower-case digits and NUL

#endif  // BERTH_BASE_HASH_H_
