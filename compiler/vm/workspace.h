// What workspace the programs of a family (artifact/family.h) need. All of them keep the places that one plan gave
// their values, so the need is the largest end of a value: an expression over the family's variables.
#ifndef BERTH_COMPILER_VM_WORKSPACE_H_
#define BERTH_COMPILER_VM_WORKSPACE_H_

#include "artifact/family.h"

typedef struct berth_vm_workspace {
    const char *device;
    uint64_t least_bytes, most_bytes;  // of all members
    // In bytes, with the variables as v0, v1, ...: "4096*v0 + 128", "max(4*v0, 2*v0 + 64)"; NULL: it would be
    // longer than is worth reading.
    const char *expression;
} berth_vm_workspace;

// One for each pool of workspace of the family's program; *out_count is 0 where it has results instead. The
// family must be verified. O(members * numbers). Inside berth_arena_try of `arena`.
berth_vm_workspace *berth_vm_family_workspaces(const berth_vm_body *body,
                                               const berth_vm_family *family, berth_arena *arena,
                                               uint32_t *out_count);

// "workspace of cpu:0: 4096*v0 + 128 bytes, 4.1 KiB .. 2.0 MiB"
void berth_vm_workspace_print(const berth_vm_workspace *workspace, berth_strbuf *out);

#endif  // BERTH_COMPILER_VM_WORKSPACE_H_
