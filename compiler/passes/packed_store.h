// Packed constants, kept from one compilation to the next in memory: what a session that sees ever new
// shapes compiles with (toolkit/vm_session.h), as its weights are the same for all of them. Programs
// made with it refer to its memory.
//
//   berth_packed_store *store;
//   BERTH_TRY(berth_packed_store_create(berth_allocator_system(), &store));
//   BERTH_TRY(berth_packed_store_trust(store, module));
//   options.packed_store = store;   // of berth_compile, any number of times
//   berth_packed_store_destroy(store);
//
// Thread-compatible.
#ifndef BERTH_COMPILER_PASSES_PACKED_STORE_H_
#define BERTH_COMPILER_PASSES_PACKED_STORE_H_

#include "base/hash.h"
#include "ir/module.h"

typedef struct berth_packed_store berth_packed_store;

BERTH_MUST_USE berth_status berth_packed_store_create(berth_allocator allocator,
                                                      berth_packed_store **out_store);
void berth_packed_store_destroy(berth_packed_store *store);  // NULL is fine

// The constants of `module`, which lives as long as the store and does not change, are known by their
// addresses; all others by their content, which takes a pass over their bytes. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_packed_store_trust(berth_packed_store *store,
                                                     const berth_module *module);

// ---- for pack.c ---------------------------------------------------------------------------------

typedef struct berth_packed_key {
    berth_hash128 hash;
    bool by_content;  // of a constant that is not the module's own: there may be ever new ones
} berth_packed_key;

// What is packed, and how: `form` is all but the source. `arena` holds intermediate bytes; inside
// berth_arena_try of it.
berth_packed_key berth_packed_store_key(const berth_packed_store *store, const berth_tensor *source,
                                        const void *form, size_t form_bytes, berth_arena *arena);
// The packed bytes; NULL = they are not there.
void *berth_packed_store_find(const berth_packed_store *store, berth_packed_key key);
// Room for packed bytes, aligned to `alignment_bytes`; NULL where memory does not suffice, and where
// those by content are BERTH_PACKED_STORE_MOST_BYTES already (constants that follow from shapes): they
// are packed for one compilation then. They are found once berth_packed_store_commit has said that they are filled; berth_packed_store_drop forgets
// those that are not.
#define BERTH_PACKED_STORE_MOST_BYTES ((size_t)512 << 20)
void *berth_packed_store_add(berth_packed_store *store, berth_packed_key key, size_t size_bytes,
                             size_t alignment_bytes);
void berth_packed_store_commit(berth_packed_store *store);
void berth_packed_store_drop(berth_packed_store *store);

#endif  // BERTH_COMPILER_PASSES_PACKED_STORE_H_
