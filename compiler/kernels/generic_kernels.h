// Kernels that serve several sizes, kept from one compilation to the next in memory: what a session
// that sees ever new shapes compiles with (toolkit/vm_session.h). A function that comes again for other
// sizes is printed again, which takes little; where its text differs from a kept kernel's in numbers
// only (codegen/template.h), the kernel is used with these numbers as its arguments, and no compiler
// runs.
//
// The first kernel of a function is made for its exact sizes. The second sizes make one whose numbers
// that differ are arguments, further ones may turn more numbers into arguments. Only numbers that were
// seen to differ become arguments, so that inner tiles stay constants. berth_compile_options.any_size
// has schedules take forms that many sizes share.
//
//   berth_generic_kernels *kernels;
//   BERTH_TRY(berth_generic_kernels_create(berth_allocator_system(), &kernels));
//   options.generic_kernels = kernels;   // of berth_compile, any number of times
//   // programs made so refer to code that lives as long as `kernels`; they cannot be written to files
//   berth_generic_kernels_destroy(kernels);
//
// Thread-safe, but for creating, destroying and preferring: several compilations may use it at once.
#ifndef BERTH_COMPILER_KERNELS_GENERIC_KERNELS_H_
#define BERTH_COMPILER_KERNELS_GENERIC_KERNELS_H_

#include "base/alloc.h"
#include "compiler/codegen/codegen.h"

typedef struct berth_generic_kernels berth_generic_kernels;
typedef struct berth_generic_kernel berth_generic_kernel;  // of one function: all its nests

typedef struct berth_generic_report {
    uint32_t exact_count;       // functions compiled for their exact sizes
    uint32_t generic_count;     // functions compiled with sizes as arguments
    uint32_t reused_count;      // functions that needed no compiler
    uint32_t noted_form_count;  // forms that functions were noted in and that had no kernel by then
    uint64_t held_bytes;        // for kernels and their uses
} berth_generic_report;

BERTH_MUST_USE berth_status berth_generic_kernels_create(berth_allocator allocator,
                                                         berth_generic_kernels **out_kernels);
void berth_generic_kernels_destroy(berth_generic_kernels *kernels);  // NULL is fine

void berth_generic_kernels_get_report(berth_generic_kernels *kernels,
                                      berth_generic_report *out_report);

// From now on, of the kernels that were made for a function, that with most sizes as arguments is taken, and
// not the fastest: so that programs for many sizes have the same ones.
void berth_generic_kernels_prefer_general(berth_generic_kernels *kernels);

// From now on, kernels are for exact sizes only: they are shared where a function is the same, sizes and all.
void berth_generic_kernels_stay_exact(berth_generic_kernels *kernels);

// Whether functions that the generator prints are kept. NULL: none are.
bool berth_generic_kernels_serve(const berth_generic_kernels *kernels,
                                 const berth_codegen *codegen);

// ---- for the compiler ---------------------------------------------------------------------------

// What a kernel is kept for. Kernels of different functions are one where their texts are the same, with
// all numbers; numbers become arguments for what differs within a function only: constants are faster.
typedef struct berth_generic_key {
    uint32_t scope;    // chosen by the caller: parts of a model that are compiled apart
    const char *name;  // of the function: the nodes it comes from
    uint32_t ordinal;  // among the functions of this name
    const berth_target *target;
    const berth_codegen *codegen;  // with print_template
    berth_hash128 function;        // all that its text and its kernels' facts follow from
} berth_generic_key;

// Remembers a function's numbers for sizes that may come; `source` is its marked text. A kernel that is compiled later for the
// same function, in the same form, takes as arguments what differs from these, too. Inside berth_arena_try of `arena`.
berth_status berth_generic_kernels_note(berth_generic_kernels *kernels,
                                        const berth_generic_key *key, const char *source,
                                        berth_arena *arena);

// The code of a function that was found before, sizes and all: nothing is printed. False: it is to be
// printed. Inside berth_arena_try.
bool berth_generic_kernels_recall(berth_generic_kernels *kernels, const berth_generic_key *key,
                                  berth_arena *arena, berth_codegen_result *out_code,
                                  berth_generic_kernel **out_kernel);

// Turns a printed template into code to be compiled, or finds a kernel. In `code`, source (NULL where
// one was found), entry names and constants are set. *out_kernel: lives in `kernels` where it was found,
// and in `arena` else, until berth_generic_kernels_keep. Inside berth_arena_try of `arena`.
void berth_generic_kernels_find(berth_generic_kernels *kernels, const berth_generic_key *key,
                                berth_arena *arena, berth_codegen_result *code,
                                berth_generic_kernel **out_kernel);
// The image that has the kernel; NULL = it is still to be compiled.
const berth_executable_image *berth_generic_kernel_image(const berth_generic_kernel *kernel);
// The text that it was compiled from, as long as `kernels` live; NULL = it was kept without.
const char *berth_generic_kernel_source(const berth_generic_kernel *kernel);
// Keeps kernels that were compiled, and a copy of their image, which they then have (berth_generic_kernel_image of made[i] is
// the copy), and of sources[i] where that is not NULL. `own_bytes`: the image's bytes are copied, too; else they outlive
// `kernels`. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_generic_kernels_keep(berth_generic_kernels *kernels,
                                                       berth_generic_kernel **made,
                                                       const char *const *sources, uint32_t count,
                                                       const berth_executable_image *image,
                                                       bool own_bytes);

#endif  // BERTH_COMPILER_KERNELS_GENERIC_KERNELS_H_
