// Templates of source text: what a code generator prints of a scheduled function with the numbers that
// follow from sizes marked (extents, strides, offsets). The same function for other sizes prints the
// same text with other numbers, as long as its schedule has the same form. Numbers that differ become
// arguments, n0, n1, ..., which a dispatch passes as constants (artifact/kernel_abi.h); one kernel then
// serves all sizes whose other numbers agree.
//
// That the kernel is right needs no proof of its own: with its arguments' values put in, its text is
// the very text printed for these sizes.
#ifndef BERTH_COMPILER_CODEGEN_TEMPLATE_H_
#define BERTH_COMPILER_CODEGEN_TEMPLATE_H_

#include "base/arena.h"
#include "base/hash.h"
#include "compiler/codegen/codegen.h"

// Marks: none of these characters is part of any language.
#define BERTH_TEMPLATE_NUMBER_BEGIN "\x01"
#define BERTH_TEMPLATE_NUMBER_END "\x02"
// A number that must stay one: where it would be an argument, a small one is as good (how often to
// unroll a loop). Ends like the others.
#define BERTH_TEMPLATE_HINT_BEGIN "\x06"
#define BERTH_TEMPLATE_HINT "4"  // what hints that differ are
// A whole number as an f32, "5.0f".
#define BERTH_TEMPLATE_FLOAT_BEGIN "\x07"
#define BERTH_TEMPLATE_PREFIX "\x03"     // of entry names
#define BERTH_TEMPLATE_ARGUMENTS "\x04"  // where berth_codegen.number_arguments go
#define BERTH_TEMPLATE_LINES "\x05"      // where berth_codegen.number_lines go

#define BERTH_TEMPLATE_FIXED UINT32_MAX
// Of a hint that is another number for another size: it is BERTH_TEMPLATE_HINT, and any number fits.
#define BERTH_TEMPLATE_FREE (UINT32_MAX - 1)

typedef struct berth_template {
    const char *text;
    int64_t *numbers;  // those marked, hints too, in order
    uint32_t number_count;
    const bool *hints;   // per number; templates of one form have equal ones. NULL: not known
    berth_hash128 form;  // of the text without its numbers
} berth_template;

// Which argument stands for each number.
typedef struct berth_template_arguments {
    // Per number: its argument, BERTH_TEMPLATE_FIXED (it stays as it is) or BERTH_TEMPLATE_FREE.
    const uint32_t *of;
    uint32_t count;  // arguments
} berth_template_arguments;

// Finds the numbers of a marked text; the text is borrowed. Inside berth_arena_try.
void berth_template_read(const char *text, berth_arena *arena, berth_template *out_template);

// Numbers that are different in two templates of one form become arguments; `before` (NULL = none)
// are those of `a`. Numbers that always were equal to each other share one. One of the two knows its hints.
// Inside berth_arena_try.
// O(n log n).
berth_template_arguments berth_template_join(const berth_template *a,
                                             const berth_template_arguments *before,
                                             const berth_template *b, berth_arena *arena);

// Whether a kernel made of `held` with these arguments computes `wanted`: the form is the same, fixed
// numbers are equal, and so are those that share an argument. `out_values`: of the arguments.
bool berth_template_fits(const berth_template *held, const berth_template_arguments *arguments,
                         const berth_template *wanted, int64_t *out_values);

// The text, with these arguments and `prefix` for the entry names. Inside berth_arena_try.
const char *berth_template_text(const berth_template *held,
                                const berth_template_arguments *arguments,
                                const berth_codegen *codegen, const char *prefix,
                                berth_arena *arena);

#endif  // BERTH_COMPILER_CODEGEN_TEMPLATE_H_
