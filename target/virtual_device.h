// Virtual devices: where a value or an operation is, as far as it is known. Any part may be free.
// The planner solves constraints over them with join and default; the IR refers to them by dense
// ids of a table.
//
//   berth_virtual_device_table *table = berth_virtual_device_table_create(arena);
//   berth_device_id gpu;
//   BERTH_TRY(berth_virtual_device_parse(table, "opencl:0", &gpu));
//
// Names: `KIND:N`, then `@SCOPE` and `#TARGET` (32 hexadecimal digits of the target's hash) where
// those are set; a free kind is `*`, and a free id is left out: "opencl:0", "opencl", "*",
// "*@vta.inp".
#ifndef BERTH_TARGET_VIRTUAL_DEVICE_H_
#define BERTH_TARGET_VIRTUAL_DEVICE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"

// Kinds of device, from kinds.def. 0 = free (not known yet).
typedef enum berth_device_kind {
    BERTH_DEVICE_FREE = 0,
#define KIND(enum_name, name, traits, doc) BERTH_DEVICE_##enum_name,
#include "target/kinds.def"
    BERTH_DEVICE_KIND_COUNT
} berth_device_kind;

const char *berth_device_kind_name(berth_device_kind kind);       // "cpu"; "*" for FREE
berth_device_kind berth_device_kind_from_name(const char *name);  // FREE when unknown
const char *berth_device_kind_doc(berth_device_kind kind);        // one line, for people
// The names of all kinds, NULL-terminated (for "did you mean").
const char *const *berth_device_kind_names(void);

// What a kind is like, whichever it is (traits in kinds.def). False for FREE.
bool berth_device_kind_is_host(berth_device_kind kind);  // runs in the host's own address space
bool berth_device_kind_is_gpu(berth_device_kind kind);   // groups of work items over a grid
bool berth_device_kind_shifts(berth_device_kind kind);   // scales integer results by shifts

#define BERTH_VIRTUAL_ID_FREE (-1)

// A plain value. memory_scope is borrowed (a table interns its own copy).
typedef struct berth_virtual_device {
    berth_device_kind device_type;  // BERTH_DEVICE_FREE = free
    int32_t virtual_id;             // BERTH_VIRTUAL_ID_FREE = free
    bool has_target;                // false = free
    berth_hash128 target;      // hash of the canonical target of the device (berth_target.hash)
    const char *memory_scope;  // NULL = free
} berth_virtual_device;

#define BERTH_VIRTUAL_DEVICE_FREE ((berth_virtual_device){.virtual_id = BERTH_VIRTUAL_ID_FREE})

bool berth_virtual_device_equal(berth_virtual_device a, berth_virtual_device b);
bool berth_virtual_device_is_free(berth_virtual_device device);  // every part
bool berth_virtual_device_is_complete(
    berth_virtual_device device);  // type, id, target and scope all set

// Pointwise: a free part takes the other's value. False (and *out untouched) where two set parts
// differ.
bool berth_virtual_device_join(berth_virtual_device a, berth_virtual_device b,
                               berth_virtual_device *out);
// a's parts where set; b's type where a has none; b's id, target and scope only if b's type is the
// resulting one.
berth_virtual_device berth_virtual_device_default(berth_virtual_device a, berth_virtual_device b);
// Which part of a join clashes, for messages: "device type", "virtual id", "target", "memory
// scope"; NULL = none.
const char *berth_virtual_device_clash(berth_virtual_device a, berth_virtual_device b);

// The name as described at the top, in the arena.
const char *berth_virtual_device_name(berth_arena *arena, berth_virtual_device device);
// Reads such a name; the scope is copied to the arena. Errors: INVALID_ARGUMENT (what is wrong,
// kinds allowed).
BERTH_MUST_USE berth_status berth_virtual_device_from_name(berth_arena *arena, const char *name,
                                                           berth_virtual_device *out_device);

// Interns virtual devices: equal ones have equal ids, ids are dense, id 0 is the fully free one.
// Lives in its arena; thread-compatible. Inside berth_arena_try. All operations O(1) expected.
typedef uint32_t berth_device_id;
typedef struct berth_virtual_device_table berth_virtual_device_table;

berth_virtual_device_table *berth_virtual_device_table_create(berth_arena *arena);
// The same ids, for an arena that ends before the source's.
berth_virtual_device_table *
berth_virtual_device_table_copy(berth_arena *arena, const berth_virtual_device_table *source);
berth_device_id berth_virtual_device_intern(berth_virtual_device_table *table,
                                            berth_virtual_device device);
berth_virtual_device berth_virtual_device_get(const berth_virtual_device_table *table,
                                              berth_device_id id);
uint32_t berth_virtual_device_count(const berth_virtual_device_table *table);
// Join and default by id. Join is false (and *out untouched) on a clash.
bool berth_virtual_device_join_ids(berth_virtual_device_table *table, berth_device_id a,
                                   berth_device_id b, berth_device_id *out);
berth_device_id berth_virtual_device_default_ids(berth_virtual_device_table *table,
                                                 berth_device_id a, berth_device_id b);
BERTH_MUST_USE berth_status berth_virtual_device_parse(berth_virtual_device_table *table,
                                                       const char *name, berth_device_id *out_id);
const char *berth_virtual_device_print(berth_virtual_device_table *table, berth_device_id id);

#endif  // BERTH_TARGET_VIRTUAL_DEVICE_H_
