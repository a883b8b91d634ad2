// A program as C99 sources, for machines without an operating system or without Berth: executor
// "aot". One function runs the model on one thread; it allocates nothing, its intermediate values lie
// in one static array where the memory planner put them, its constants are const arrays, and its
// inputs and outputs are the caller's. Constants that lie in a store (a memory of that scope) are read by a function of
// the application. docs/bare.md shows all of it.
//
//   berth_bare_options options = {.name = "mnist"};
//   BERTH_TRY(berth_bare_write(program, &options, "mnist_c"));   // mnist_c/mnist.h, mnist.c, ...
#ifndef BERTH_COMPILER_BARE_BARE_H_
#define BERTH_COMPILER_BARE_BARE_H_

#include "artifact/program.h"
#include "compiler/compile.h"
#include "compiler/toolchain/toolchain.h"

typedef struct berth_bare_options {
    // Of files, and the start of every global name; NULL = the program's. What C takes for no name
    // becomes one.
    const char *name;
    // (optional) Of the same compilation: what the header proves of the order.
    const berth_memory_report *memory;
    // (optional) Adds libNAME.so with the same function, compiled with these.
    const berth_toolchain_options *toolchain;
} berth_bare_options;

typedef struct berth_bare_file {
    const char *name;  // "mnist.h"
    const char *text;  // of the library and the store: their bytes
    size_t size_bytes;
} berth_bare_file;

// The name as C and files take it: letters, digits and '_', at most 48 characters; no keyword, standard
// header or target of CMake's own. Inside berth_arena_try of the arena.
const char *berth_bare_name(berth_arena *arena, const char *name);

// The sources of a program for executor "aot": header, code, weights, an example, CMakeLists.txt and
// Makefile. In the arena; an entry point: not inside berth_arena_try.
//   errors: INVALID_ARGUMENT a program for another executor; UNSUPPORTED constants of more than
//           BERTH_BARE_MAX_CONSTANT_BYTES
BERTH_MUST_USE berth_status berth_bare_print(const berth_program *program,
                                             const berth_bare_options *options, berth_arena *arena,
                                             const berth_bare_file **out_files,
                                             uint32_t *out_count);

// Writes them to a folder, which must be new, empty, or hold only files of such names (then they are
// replaced). All files appear at once.
//   errors: those of printing; ALREADY_EXISTS something else is there; IO
BERTH_MUST_USE berth_status berth_bare_write(const berth_program *program,
                                             const berth_bare_options *options, const char *folder);

// As text, constants take about four times their bytes.
#define BERTH_BARE_MAX_CONSTANT_BYTES ((uint64_t)256 << 20)

#endif  // BERTH_COMPILER_BARE_BARE_H_
