// Programs for many shapes (vm_general.h) in the folder of compiled kernels, so that later processes have them from their
// first run on: one per model, target, options of the compiler and build of Berth, with the shapes that its bounds were
// chosen from. Entries are checked as kernels are (compiler/toolchain/toolchain.h), and the program as program files are.
//
//   BERTH_TRY(berth_vm_general_key(module, &options, &key, &has_key));
//   if (has_key) BERTH_TRY(berth_vm_general_read(&options, key, axis_count, arena, &file));
//   if (file.program) ...
//
// Thread-safe. What cannot be read or written is not there: the files save time and nothing else.
#ifndef BERTH_TOOLKIT_VM_GENERAL_FILE_H_
#define BERTH_TOOLKIT_VM_GENERAL_FILE_H_

#include "compiler/compile.h"
#include "ir/module.h"

typedef struct berth_vm_general_file {
    const berth_program *program;  // NULL: there is none
    const int64_t *const *rows;    // shapes, as in toolkit/vm_bounds.h
    uint32_t row_count, axis_count;
    uint32_t level;  // of the bounds
    uint64_t size_bytes;
} berth_vm_general_file;

// Of a module as it was imported. `*out_has_key` false: nothing is kept, for there is no folder, the linker wrote no build
// id, the module has more than its text and its constants say (code, values of others), or measured costs or decisions count.
// O(module and its constants). Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_general_key(const berth_module *module,
                                                 const berth_compile_options *options,
                                                 berth_hash128 *out_key, bool *out_has_key);
// In `arena`; inside berth_arena_try of it or not. Shapes have `axis_count` extents. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_general_read(const berth_compile_options *options,
                                                  berth_hash128 key, uint32_t axis_count,
                                                  berth_arena *arena,
                                                  berth_vm_general_file *out_file);
// In the place of what was there. What is larger than entries of the folder may be is not kept.
void berth_vm_general_write(const berth_compile_options *options, berth_hash128 key,
                            const berth_vm_general_file *file);

#endif  // BERTH_TOOLKIT_VM_GENERAL_FILE_H_
