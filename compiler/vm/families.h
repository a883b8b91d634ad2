// Programs that differ in numbers only become one: a family (artifact/family.h). Given are variants of byte
// code that were compiled for every shape within bounds; those of the same steps, kernels and code are
// put together where each of their numbers is an expression over a few dimensions of the inputs.
//
// Nothing is guessed: expressions are fitted to the numbers of some members and then compared with those of every
// one, and in the end each member that is given up is made again from the family and compared, number by
// number, with what the compiler had made. A family holds the values that were compiled, and no others.
#ifndef BERTH_COMPILER_VM_FAMILIES_H_
#define BERTH_COMPILER_VM_FAMILIES_H_

#include "artifact/family.h"

typedef struct berth_vm_families {
    const berth_vm_variant *variants;
    uint32_t variant_count;
    const berth_vm_family *families;
    uint32_t family_count;
} berth_vm_families;

// In `arena`, inside berth_arena_try. Variants that come first become those that a family is made of: the
// largest shapes should. O(variants * numbers of a program). Errors: INTERNAL a member is not what
// was compiled.
BERTH_MUST_USE berth_status berth_vm_families_find(berth_arena *arena, const berth_vm_program *code,
                                                   const berth_vm_variant *variants, uint32_t count,
                                                   berth_vm_families *out);

// The shapes that it is for; `with_numbers` also its quantities, and what of the program each is. The family must be
// verified. Inside berth_arena_try of the buffer's arena.
void berth_vm_family_print(const berth_vm_family *family, bool with_numbers, berth_strbuf *out);

// ---- for families.c -----------------------------------------------------------------------------

// Expressions of a family while it is made.
typedef struct berth_fitter {
    berth_arena *arena;
    uint32_t variable_count;
    uint32_t member_count;
    const int64_t *values;  // [member * BERTH_FAMILY_VARIABLES + variable]
    BERTH_VEC(berth_vm_quantity) quantities;
    BERTH_VEC(struct berth_fitter_known {
        uint32_t quantity;
        const int64_t *values;  // as above, of this one and the first variable
    })
    known;  // that were fitted, the first of them
    uint32_t *
        across;  // per member and variable: the first member with that variable changed; NULL: not listed yet
} berth_fitter;

// The quantity that is numbers[m] for every member m; UINT32_MAX: no expression of the forms that are tried
// is. These are sums of products of variables, with one quotient of one of them; lines of one of them, rounded down; and a number that was fitted before, with a
// quotient of it (so that what is left of a quotient's tiles is one, too); and a plane over two such numbers. Inside berth_arena_try.
uint32_t berth_fitter_fit(berth_fitter *fitter, const int64_t *numbers);

#endif  // BERTH_COMPILER_VM_FAMILIES_H_
