#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

uint64_t berth_hash64(const void *data, size_t size_bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(data, size_bytes, seed);
}

// The library's own type, under our name.
static XXH3_state_t *state_of(berth_hash64_stream *stream) {
    return (XXH3_state_t *)(void *)stream;
}

berth_hash64_stream *berth_hash64_begin(void) {
    XXH3_state_t *state = XXH3_createState();
    if (state) XXH3_64bits_reset(state);
    return (berth_hash64_stream *)(void *)state;
}

void berth_hash64_add(berth_hash64_stream *stream, const void *data, size_t size_bytes) {
    if (size_bytes) XXH3_64bits_update(state_of(stream), data, size_bytes);
}

uint64_t berth_hash64_end(berth_hash64_stream *stream) {
    uint64_t hash = XXH3_64bits_digest(state_of(stream));
    XXH3_freeState(state_of(stream));
    return hash;
}

berth_hash128 berth_hash128_of(const void *data, size_t size_bytes) {
    XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
    return (berth_hash128){hash.high64, hash.low64};
}

bool berth_hash128_equal(berth_hash128 a, berth_hash128 b) {
    return a.high == b.high && a.low == b.low;
}

void berth_hash128_hex(berth_hash128 hash, char out[33]) {
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
