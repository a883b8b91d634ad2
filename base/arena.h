// Arena: memory of one compilation. Everything lives until the arena is destroyed; nothing is freed
// singly.
//
// Allocation never returns NULL: when the allocator below fails, control jumps back to the
// innermost berth_arena_try of the arena (or of its parent), which returns the static out-of-memory
// status. So code that builds in an arena has no out-of-memory branches, and entry points (import,
// parse, compile) look like this:
//
//   static berth_status parse_body(void *user) { ... berth_arena_alloc(...) ... return BERTH_OK; }
//   berth_status berth_parse(..., berth_arena *arena) { return berth_arena_try(arena, parse_body,
//   &state); }
//
// Resources that are not arena memory (files, JSON trees) register a clean-up with
// berth_arena_defer, so that the jump loses nothing. Thread-compatible: one thread at a time.
#ifndef BERTH_BASE_ARENA_H_
#define BERTH_BASE_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

typedef struct berth_arena berth_arena;

BERTH_MUST_USE berth_status berth_arena_create(berth_allocator allocator, berth_arena **out_arena);

// A scratch arena whose failures go to `parent`'s berth_arena_try and which dies with the parent at
// the latest. Must be called inside berth_arena_try of the parent.
berth_arena *berth_arena_create_child(berth_arena *parent);

// Runs the deferred clean-ups (newest first), destroys children, frees all. NULL is fine.
void berth_arena_destroy(berth_arena *arena);

// Calls body(user); allocation failures in `arena` or its children make it return out-of-memory.
// May nest.
BERTH_MUST_USE berth_status berth_arena_try(berth_arena *arena, berth_status (*body)(void *user),
                                            void *user);

// How most objects and answers of an interface are made: an arena of the system's memory in
// *out_arena, and body(user) in it, which finds it there. If it fails, the arena is gone and
// *out_arena NULL. `out_arena` lies outside the arena, such as in the record `user` points at.
BERTH_MUST_USE berth_status berth_arena_make(berth_status (*body)(void *user), void *user,
                                             berth_arena **out_arena);
// The same for work that leaves nothing: the arena is gone in either case.
BERTH_MUST_USE berth_status berth_arena_scratch(berth_status (*body)(void *user), void *user,
                                                berth_arena **out_arena);

// What an allocation does that fails: never returns. For memory that ran out elsewhere.
__attribute__((noreturn)) void berth_arena_fail(berth_arena *arena);

void *berth_arena_alloc(berth_arena *arena, size_t size_bytes);  // zeroed, aligned to 16
void *berth_arena_alloc_aligned(berth_arena *arena, size_t size_bytes,
                                size_t alignment_bytes);  // zeroed
// Not zeroed, for what is written as a whole anyway: pages of large ones are not touched here.
void *berth_arena_alloc_unset(berth_arena *arena, size_t size_bytes, size_t alignment_bytes);
void *berth_arena_array(berth_arena *arena, size_t count,
                        size_t element_size_bytes);  // zeroed, overflow-checked
void *berth_arena_copy(berth_arena *arena, const void *data, size_t size_bytes);
char *berth_arena_strdup(berth_arena *arena, const char *text);
char *berth_arena_strndup(berth_arena *arena, const char *text, size_t length);
char *berth_arena_printf(berth_arena *arena, const char *format, ...) BERTH_PRINTF(2, 3);

// Grows an arena array (the old storage is simply left behind). Zeroes the new part.
void *berth_arena_grow(berth_arena *arena, void *pointer, size_t old_size_bytes,
                       size_t new_size_bytes);

// Registers cleanup(pointer) for the arena's destruction.
void berth_arena_defer(berth_arena *arena, void (*cleanup)(void *pointer), void *pointer);

size_t berth_arena_used_bytes(const berth_arena *arena);  // including children
// Whether the byte at `pointer` was allocated in the arena or in a child of it. O(chunks).
bool berth_arena_holds(const berth_arena *arena, const void *pointer);

#define berth_arena_new(arena, type) ((type *)berth_arena_alloc((arena), sizeof(type)))
#define berth_arena_new_array(arena, type, count)                                                  \
    ((type *)berth_arena_array((arena), (size_t)(count), sizeof(type)))

// Growable array in an arena. Declare a field `BERTH_VEC(int) items;` (zero-initialised), then
// berth_vec_push(arena, &v->items, value). Fields: data, count, capacity.
#define BERTH_VEC(type)                                                                            \
    struct {                                                                                       \
        type *data;                                                                                \
        uint32_t count;                                                                            \
        uint32_t capacity;                                                                         \
    }
#define berth_vec_reserve(arena, vec, wanted)                                                      \
    do {                                                                                           \
        if ((vec)->capacity < (uint32_t)(wanted)) {                                                \
            uint32_t berth_new_ = (vec)->capacity ? (vec)->capacity : 8;                           \
            while (berth_new_ < (uint32_t)(wanted)) berth_new_ *= 2;                               \
            (vec)->data =                                                                          \
                berth_arena_grow((arena), (vec)->data, (vec)->capacity * sizeof(*(vec)->data),     \
                                 berth_new_ * sizeof(*(vec)->data));                               \
            (vec)->capacity = berth_new_;                                                          \
        }                                                                                          \
    } while (0)
#define berth_vec_push(arena, vec, ...)                                                            \
    do {                                                                                           \
        berth_vec_reserve((arena), (vec), (vec)->count + 1);                                       \
        (vec)->data[(vec)->count++] = (__VA_ARGS__);                                               \
    } while (0)
// Gives a vector that was copied as a struct elements of its own.
#define berth_vec_own(arena, vec)                                                                  \
    ((vec)->data = berth_arena_copy((arena), (vec)->data, (vec)->count * sizeof(*(vec)->data)),    \
     (vec)->capacity = (vec)->count)

#endif  // BERTH_BASE_ARENA_H_
