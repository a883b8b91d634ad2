#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct chunk {
    struct chunk *next;
    size_t size_bytes;  // whole allocation
    size_t used_bytes;  // from the start of data
    alignas(16) unsigned char data[];
} chunk;

typedef struct deferred {
    struct deferred *next;
    void (*cleanup)(void *pointer);
    void *pointer;
} deferred;

struct berth_arena {
    berth_allocator allocator;
    berth_arena *parent;
    berth_arena *first_child;
    berth_arena *next_sibling;
    chunk *chunks;  // newest first
    deferred *cleanups;
    jmp_buf *guard;
    size_t used_bytes;
};

static const size_t first_chunk_bytes = 4096;
static const size_t largest_chunk_bytes = (size_t)1 << 20;

berth_status berth_arena_create(berth_allocator allocator, berth_arena **out_arena) {
    *out_arena = NULL;
    berth_arena *arena = berth_calloc(allocator, 1, sizeof(*arena));
    if (!arena) return berth_status_oom();
    arena->allocator = allocator;
    *out_arena = arena;
    return BERTH_OK;
}

_Noreturn void berth_arena_fail(berth_arena *arena) {
    while (arena && !arena->guard) arena = arena->parent;
    if (!arena) {
        static const char text[] =
            "berth: out of memory outside of berth_arena_try (a bug in Berth)\n";
        ssize_t told = write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)told;
        abort();
    }
    longjmp(*arena->guard, 1);
}

berth_arena *berth_arena_create_child(berth_arena *parent) {
    berth_arena *child = berth_calloc(parent->allocator, 1, sizeof(*child));
    if (!child) berth_arena_fail(parent);
    child->allocator = parent->allocator;
    child->parent = parent;
    child->next_sibling = parent->first_child;
    parent->first_child = child;
    return child;
}

static void unlink_child(berth_arena *arena) {
    if (!arena->parent) return;
    for (berth_arena **link = &arena->parent->first_child; *link; link = &(*link)->next_sibling) {
        if (*link == arena) {
            *link = arena->next_sibling;
            return;
        }
    }
}

void berth_arena_destroy(berth_arena *arena) {
    if (!arena) return;
    unlink_child(arena);
    while (arena->first_child) berth_arena_destroy(arena->first_child);
    for (deferred *d = arena->cleanups; d;) {
        deferred *next = d->next;
        d->cleanup(d->pointer);
        berth_free(arena->allocator, d, sizeof(*d));
        d = next;
    }
    for (chunk *c = arena->chunks; c;) {
        chunk *next = c->next;
        berth_free(arena->allocator, c, c->size_bytes);
        c = next;
    }
    berth_free(arena->allocator, arena, sizeof(*arena));
}

berth_status berth_arena_try(berth_arena *arena, berth_status (*body)(void *user), void *user) {
    jmp_buf here;
    jmp_buf *outer = arena->guard;
    if (setjmp(here)) {
        arena->guard = outer;
        return berth_status_oom();
    }
    arena->guard = &here;
    berth_status status = body(user);
    arena->guard = outer;
    return status;
}

static void drop(berth_arena **arena) {
    berth_arena_destroy(*arena);
    *arena = NULL;
}

berth_status berth_arena_make(berth_status (*body)(void *user), void *user,
                              berth_arena **out_arena) {
    *out_arena = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), out_arena));
    berth_status status = berth_arena_try(*out_arena, body, user);
    if (status) drop(out_arena);
    return status;
}

berth_status berth_arena_scratch(berth_status (*body)(void *user), void *user,
                                 berth_arena **out_arena) {
    BERTH_TRY(berth_arena_make(body, user, out_arena));
    drop(out_arena);
    return BERTH_OK;
}

static void *bump(chunk *c, size_t size_bytes, size_t alignment_bytes) {
    if (!c) return NULL;
    uintptr_t start = (uintptr_t)c->data + c->used_bytes;
    uintptr_t aligned = (start + alignment_bytes - 1) & ~(uintptr_t)(alignment_bytes - 1);
    size_t room = c->size_bytes - sizeof(chunk);
    size_t end = (size_t)(aligned - (uintptr_t)c->data);
    if (end > room || size_bytes > room - end) return NULL;
    c->used_bytes = end + size_bytes;
    return (void *)aligned;
}

void *berth_arena_alloc_unset(berth_arena *arena, size_t size_bytes, size_t alignment_bytes) {
    void *result = bump(arena->chunks, size_bytes, alignment_bytes);
    if (!result) {
        if (size_bytes > SIZE_MAX / 2) berth_arena_fail(arena);
        size_t wanted = size_bytes + alignment_bytes + sizeof(chunk);
        size_t grown = arena->chunks ? arena->used_bytes : first_chunk_bytes;
        if (grown > largest_chunk_bytes) grown = largest_chunk_bytes;
        if (grown < first_chunk_bytes) grown = first_chunk_bytes;
        bool own_chunk = wanted > grown;
        if (!own_chunk) wanted = grown;
        chunk *c = berth_alloc(arena->allocator, wanted);
        if (!c) berth_arena_fail(arena);
        c->size_bytes = wanted;
        c->used_bytes = 0;
        if (own_chunk && arena->chunks) {  // keep filling the current chunk afterwards
            c->next = arena->chunks->next;
            arena->chunks->next = c;
        } else {
            c->next = arena->chunks;
            arena->chunks = c;
        }
        result = bump(c, size_bytes, alignment_bytes);
    }
    arena->used_bytes += size_bytes;
    return result;
}

void *berth_arena_alloc_aligned(berth_arena *arena, size_t size_bytes, size_t alignment_bytes) {
    void *result = berth_arena_alloc_unset(arena, size_bytes, alignment_bytes);
    memset(result, 0, size_bytes);
    return result;
}

void *berth_arena_alloc(berth_arena *arena, size_t size_bytes) {
    return berth_arena_alloc_aligned(arena, size_bytes, 16);
}

void *berth_arena_array(berth_arena *arena, size_t count, size_t element_size_bytes) {
    size_t total = 0;
    if (__builtin_mul_overflow(count, element_size_bytes, &total)) berth_arena_fail(arena);
    return berth_arena_alloc(arena, total);
}

void *berth_arena_copy(berth_arena *arena, const void *data, size_t size_bytes) {
    void *copy = berth_arena_alloc_unset(arena, size_bytes, 16);
    if (size_bytes) memcpy(copy, data, size_bytes);
    return copy;
}

char *berth_arena_strndup(berth_arena *arena, const char *text, size_t length) {
    char *copy = berth_arena_alloc(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *berth_arena_strdup(berth_arena *arena, const char *text) {
    return berth_arena_strndup(arena, text, strlen(text));
}

char *berth_arena_printf(berth_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = berth_arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, arguments);
    va_end(arguments);
    return text;
}

void *berth_arena_grow(berth_arena *arena, void *pointer, size_t old_size_bytes,
                       size_t new_size_bytes) {
    unsigned char *grown = berth_arena_alloc_unset(arena, new_size_bytes, 16);
    if (old_size_bytes) memcpy(grown, pointer, old_size_bytes);
    memset(grown + old_size_bytes, 0, new_size_bytes - old_size_bytes);
    return grown;
}

void berth_arena_defer(berth_arena *arena, void (*cleanup)(void *pointer), void *pointer) {
    deferred *d = berth_alloc(arena->allocator, sizeof(*d));
    if (!d) {
        cleanup(pointer);  // ownership was passed on; losing it would leak
        berth_arena_fail(arena);
    }
    d->cleanup = cleanup;
    d->pointer = pointer;
    d->next = arena->cleanups;
    arena->cleanups = d;
}

size_t berth_arena_used_bytes(const berth_arena *arena) {
    size_t total = arena->used_bytes;
    for (const berth_arena *child = arena->first_child; child; child = child->next_sibling)
        total += berth_arena_used_bytes(child);
    return total;
}

bool berth_arena_holds(const berth_arena *arena, const void *pointer) {
    for (const chunk *c = arena->chunks; c; c = c->next)
        if ((uintptr_t)pointer >= (uintptr_t)c->data &&
            (uintptr_t)pointer < (uintptr_t)c->data + c->used_bytes)
            return true;
    for (const berth_arena *child = arena->first_child; child; child = child->next_sibling)
        if (berth_arena_holds(child, pointer)) return true;
    return false;
}
