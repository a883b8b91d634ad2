// Functions of many programs that are compiled together, once all of them are printed: one image, so that a program for
// another shape loads nothing of its own, and the C compilers of all functions run beside each other. Until then
// programs have an image without code.
//
//   berth_later_code *later = berth_later_code_create(arena);   // in berth_arena_try
//   options.later_code = later;   // of berth_compile, with generic_kernels, any number of times
//   BERTH_TRY(berth_later_code_compile(later, &options));
//   program = berth_later_code_put(later, program, arena);   // with the code; in berth_arena_try
#ifndef BERTH_COMPILER_KERNELS_LATER_CODE_H_
#define BERTH_COMPILER_KERNELS_LATER_CODE_H_

#include "compiler/codegen/codegen.h"

typedef struct berth_later_code berth_later_code;

// Lives in the arena, and so do the texts that are added and the code. Inside berth_arena_try.
berth_later_code *berth_later_code_create(berth_arena *arena);

// Adds functions of one target; their entries' names are nobody else's. *out_image has no code yet; its `data` says of
// which image it is, the same for all functions of a target.
//   errors:  OUT_OF_MEMORY
//   threads: one at a time
BERTH_MUST_USE berth_status berth_later_code_add(berth_later_code *later,
                                                 const berth_codegen *codegen,
                                                 const berth_target *target,
                                                 const berth_codegen_unit *units, uint32_t count,
                                                 berth_executable_image *out_image);

// Whether the bytes are those of an image without code.
bool berth_later_code_is_mark(const berth_later_code *later, const void *data);

// Compiles what was added. Errors: those of berth_codegen.finish.
struct berth_compile_options;
BERTH_MUST_USE berth_status berth_later_code_compile(berth_later_code *later,
                                                     const struct berth_compile_options *options);

// The program with the code in place of its images without. Inside berth_arena_try.
const berth_program *berth_later_code_put(const berth_later_code *later,
                                          const berth_program *program, berth_arena *arena);

#endif  // BERTH_COMPILER_KERNELS_LATER_CODE_H_
