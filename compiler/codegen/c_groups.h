// What the printers of languages with work-groups share (opencl.c, cuda.c): signatures, the flat
// grid of nests without loops over groups, and memory of a group. Private to compiler/codegen.
#ifndef BERTH_COMPILER_CODEGEN_C_GROUPS_H_
#define BERTH_COMPILER_CODEGEN_C_GROUPS_H_

#include "compiler/codegen/c_family.h"

typedef struct berth_c_group_words {
    const char *kernel;  // before a kernel's name: "__kernel void"
    const char *global;  // of pointers to parameters: "__global " or ""
    const char *restrict_word;
    const char *local;  // before and behind an array of a group
    const char *local_end;
    const char *
        launched;  // what makes memory that the launch gives an array `berth_shared`: arrays of a group are
                   // parts of that; NULL = they are declared
    const char *array_end;     // behind a work-item's own array: its alignment
    const char *item;          // the work-item's place in a flat grid
    uint32_t flat_group_size;  // of nests without loops over groups
} berth_c_group_words;

// The kernel up to its body: signature, ids and memory of the group.
void berth_c_groups_open(berth_c_printer *p, const berth_kernel_source *kernel,
                         const berth_stmt *grid, int grid_count, const berth_c_group_words *words);
void berth_c_groups_close(berth_c_printer *p);
// Bytes of the group's memory that a kernel takes, its arrays one after another at multiples of 16.
int64_t berth_c_groups_local_bytes(const berth_tfn *fn, berth_stmt nest);
// Bytes of the arrays that each work-item has in registers, counted alike.
int64_t berth_c_groups_register_bytes(const berth_tfn *fn, berth_stmt nest);
// A line that a driver reads: "// berth_declares_ENTRY: TEXT".
void berth_c_groups_declare(berth_c_printer *p, const char *entry, const char *declaration);
// Declares a work-item's buffer; those of the group are declared by berth_c_groups_open.
void berth_c_groups_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           const berth_c_group_words *words);

#endif  // BERTH_COMPILER_CODEGEN_C_GROUPS_H_
