// Segments of the virtual machine that were compiled for shapes, found by these, and in the order of
// their use. Belongs to a session (vm_session.h). Thread-compatible.
#ifndef BERTH_TOOLKIT_VM_KEPT_H_
#define BERTH_TOOLKIT_VM_KEPT_H_

#include "artifact/program.h"
#include "base/hash.h"
#include "executor/session.h"

typedef struct berth_vm_compiled berth_vm_compiled;
struct berth_vm_compiled {
    berth_vm_compiled *newer, *older;  // by their use
    berth_vm_compiled *next;           // of its bucket
    uint32_t segment;
    berth_hash128 key;  // shapes, and the values that decide shapes
    uint64_t size_bytes;
    berth_arena *arena;  // of the program
    const berth_program *program;
    berth_session *session;
    berth_tensor *room;  // of a run: inputs of the program, then outputs
};

enum { BERTH_VM_KEPT_BUCKETS = 256 };

// All zero = empty.
typedef struct berth_vm_kept {
    berth_vm_compiled *buckets[BERTH_VM_KEPT_BUCKETS];
    berth_vm_compiled *newest, *oldest;
    uint32_t count;
    uint64_t size_bytes;
} berth_vm_kept;

// Takes it over, as the newest.
void berth_vm_kept_add(berth_vm_kept *kept, berth_vm_compiled *made);
// The newest from here on, or NULL.
berth_vm_compiled *berth_vm_kept_find(berth_vm_kept *kept, uint32_t segment, berth_hash128 key);
// Whether a segment is there for any shapes.
bool berth_vm_kept_has(const berth_vm_kept *kept, uint32_t segment);
void berth_vm_kept_drop_oldest(berth_vm_kept *kept);  // there is one
void berth_vm_kept_clear(berth_vm_kept *kept);

void berth_vm_compiled_free(berth_vm_compiled *compiled);  // that is not kept; NULL is fine

#endif  // BERTH_TOOLKIT_VM_KEPT_H_
