// The caller's allocator, for what a session allocates in host memory (berth_session_settings).
#ifndef BERTH_ALLOCATOR_H_
#define BERTH_ALLOCATOR_H_

#include <berth/version.h>
#include <stddef.h>

BERTH_BEGIN

// resize(state, NULL, 0, n) allocates, resize(state, p, old, 0) frees, anything else grows or shrinks and
// keeps the content. Alignment is that of max_align_t. Returns NULL when it cannot (never for a free's
// caller to look at). Called from any thread, several at once.
typedef struct berth_allocator {
    void *(*resize)(void *state, void *pointer, size_t old_size_bytes, size_t new_size_bytes);
    void *state;
} berth_allocator;

BERTH_END

#endif  // BERTH_ALLOCATOR_H_
