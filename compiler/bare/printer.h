// What the parts of compiler/bare share (private to it).
#ifndef BERTH_COMPILER_BARE_PRINTER_H_
#define BERTH_COMPILER_BARE_PRINTER_H_

#include "compiler/bare/bare.h"

typedef struct berth_bare_memory {
    const char *name;       // of the target; "" = the device's own
    const char *plain;      // as C takes it
    const char *attribute;  // the macro, "MNIST_RAM_ATTRIBUTE", "MNIST_DTCM_ATTRIBUTE"
    const char
        *array;  // the macro of an array of the application, "MNIST_MEMORY", "MNIST_DTCM_MEMORY"
    const char *arena;     // "mnist_arena", "mnist_arena_dtcm"
    uint64_t array_bytes;  // of that array
} berth_bare_memory;

typedef struct berth_bare_printer {
    const berth_program *program;
    const berth_memory_report *memory;  // NULL = not known
    berth_arena *arena;
    const char *name;      // "mnist"
    const char *upper;     // "MNIST"
    const char **inputs;   // names of the members of NAME_inputs
    const char **outputs;  // of NAME_outputs
    const char **pools;    // by pool: the array of an arena, "mnist_arena"; NULL = no workspace
    const char **sizes;    // by pool: the macro of its size, "MNIST_ARENA_BYTES"
    // The memories with static arrays: the device's own, then others that the target has for values.
    berth_bare_memory *memories;
    uint32_t memory_count;
    uint32_t *memory_of;      // by pool, into memories
    uint32_t scratch_memory;  // into memories
    bool *used_constants;     // by constant: a step reads it from an array
    uint32_t scratch_bytes;   // largest scratch of a kernel
    uint64_t constant_bytes;
    uint64_t store_bytes;  // of the constants that the application reads; 0 = none
} berth_bare_printer;

// The files in their order.
enum {
    BERTH_BARE_HEADER,
    BERTH_BARE_CODE,
    BERTH_BARE_WEIGHTS_HEADER,
    BERTH_BARE_WEIGHTS,
    BERTH_BARE_EXAMPLE,
    BERTH_BARE_MAKEFILE,
    BERTH_BARE_CMAKE,
    BERTH_BARE_MORE,  // the store or the library, where there is one
    BERTH_BARE_MAX_FILES = BERTH_BARE_MORE + 1
};

// library.c: libNAME.so of the sources. Errors: those of berth_toolchain_compile.
BERTH_MUST_USE berth_status berth_bare__library(const berth_bare_printer *p,
                                                const berth_bare_file *sources,
                                                const berth_toolchain_options *toolchain,
                                                berth_bare_file *out_file);

// names.c
// Text for a comment: printable ASCII that neither ends nor opens one.
const char *berth_bare__comment(berth_arena *arena, const char *text);
// Names of members for inputs or outputs, each once.
const char **berth_bare__members(berth_arena *arena, const berth_program_io *list, uint32_t count);
// "f32[1,3,224,224]"
const char *berth_bare__shape(berth_arena *arena, const berth_program_tensor *tensor);
uint64_t berth_bare__elements(const berth_program_tensor *tensor);

// code.c: NAME.h and NAME.c. Errors: INTERNAL.
uint64_t berth_bare__aligned(uint64_t bytes);  // as a static array of so many takes
const char *berth_bare__header(const berth_bare_printer *p);
BERTH_MUST_USE berth_status berth_bare__code(const berth_bare_printer *p, const char **out_text);

// weights.c: NAME_weights.h and NAME_weights.c
const char *berth_bare__weights_header(const berth_bare_printer *p);
const char *berth_bare__weights(const berth_bare_printer *p);

// store.c: NAME_store.bin, and what the header says of it.
uint64_t berth_bare__store_bytes(const berth_program *program);
berth_bare_file berth_bare__store(const berth_bare_printer *p);
void berth_bare__add_store(const berth_bare_printer *p, berth_strbuf *out);

// project.c: main.c, Makefile, CMakeLists.txt
const char *berth_bare__example(const berth_bare_printer *p);
const char *berth_bare__makefile(const berth_bare_printer *p);
const char *berth_bare__cmake(const berth_bare_printer *p);

#endif  // BERTH_COMPILER_BARE_PRINTER_H_
