// Families: one program for many shapes. A variant of byte code (artifact/vm.h) whose numbers (sizes and
// offsets of tensors, grids, arguments of kernels) follow from a few dimensions of its inputs by small
// expressions. The variant itself is the member that the numbers in the program are of; the others are
// made from it when a run first needs them, without a compiler:
//
//   int64_t values[BERTH_FAMILY_VARIABLES];
//   if (berth_vm_family_holds(family, inputs, values))
//       BERTH_TRY(berth_vm_family_member(body, family, values, arena, &variant));
//
// In a file a family is a list of 64-bit words, as laid out below: header, variables, quantities,
// patches, members.
#ifndef BERTH_ARTIFACT_FAMILY_H_
#define BERTH_ARTIFACT_FAMILY_H_

#include "artifact/program.h"
#include "artifact/vm.h"

enum { BERTH_FAMILY_VARIABLES = 4, BERTH_FAMILY_MOST_VALUES = 1 << 16 };

typedef struct berth_vm_family_header {
    uint32_t variable_count;  // 1 .. BERTH_FAMILY_VARIABLES
    uint32_t quantity_count;
    uint32_t patch_count;
    uint32_t has_members;  // else all values in the bounds are members
} berth_vm_family_header;

// Dimension `axis` of input `input` of the piece; from BERTH_FAMILY_ELEMENTS on an element of it, which is an
// integer that decides shapes.
enum { BERTH_FAMILY_ELEMENTS = 16 };
typedef struct berth_vm_variable {
    uint32_t input, axis;
    int64_t low, high;
} berth_vm_variable;

typedef enum berth_quantity_kind {
    BERTH_QUANTITY_VARIABLE,  // number a
    BERTH_QUANTITY_NUMBER,    // the number
    BERTH_QUANTITY_SUM,       // of quantities a and b
    BERTH_QUANTITY_PRODUCT,
    BERTH_QUANTITY_QUOTIENT,  // a, none below zero, by the number, rounded down
    BERTH_QUANTITY_KINDS,
} berth_quantity_kind;

// One operation of an expression, on earlier ones.
typedef struct berth_vm_quantity {
    uint32_t kind, a, b, reserved;
    int64_t number;
} berth_vm_quantity;

typedef enum berth_patch_kind {
    // Of the variant: dimension `index` of input or result `record`, from BERTH_FAMILY_ELEMENTS on an element.
    BERTH_PATCH_INPUT,
    BERTH_PATCH_RESULT,
    BERTH_PATCH_TENSOR_DIM,
    BERTH_PATCH_TENSOR_SIZE,
    BERTH_PATCH_TENSOR_OFFSET,
    BERTH_PATCH_KERNEL_GROUPS,  // groups[index]
    BERTH_PATCH_KERNEL_SCRATCH,
    BERTH_PATCH_KERNEL_BINDING,  // size_bytes of binding `index`
    BERTH_PATCH_STEP_CONSTANT,   // constants[index]
    BERTH_PATCH_CHECK_EXTENT,    // extents[index] of check `record`
    BERTH_PATCH_KINDS,
} berth_patch_kind;

// A number of the program that is a quantity.
typedef struct berth_vm_patch {
    uint32_t kind, record, index, quantity;
} berth_vm_patch;

typedef struct berth_vm_family {
    uint32_t variant;
    const int64_t *words;
    uint64_t word_count;
    // In the words:
    const berth_vm_family_header *header;
    const berth_vm_variable *variables;
    const berth_vm_quantity *quantities;
    const berth_vm_patch *patches;
    const uint64_t *members;  // a bit per value in the bounds, the last variable first; or NULL
} berth_vm_family;

// Finds the lists in the words. Errors: INVALID_ARGUMENT the words are too few, too many, or counts or
// bounds are out of range.
BERTH_MUST_USE berth_status berth_vm_family_read(berth_vm_family *family);

// That every part of it is there, in the body. Each member is checked as a program when it is made.
BERTH_MUST_USE berth_status berth_vm_family_verify(const berth_vm_body *body,
                                                   const berth_vm_family *family);

// Whether a member is for inputs of these dimensions, as far as the variables say; then their values.
bool berth_vm_family_holds(const berth_vm_family *family, const berth_tensor *inputs,
                           int64_t *out_values);

// The quantities for these values, as many as the header says. False: a number leaves 64 bits, or a quotient is of
// one below zero.
bool berth_vm_family_evaluate(const berth_vm_family *family, const int64_t *values, int64_t *out);

// A member: the inputs that it is for (of the variant, but with their own dimensions) and its results, or its
// program, which berth_program_verify has checked: no kernel leaves its buffers. In `arena`, inside berth_arena_try; refers to the
// variant's. Pools are as large as their tensors need. Errors: INVALID_ARGUMENT the program breaks a
// rule for these values.
BERTH_MUST_USE berth_status berth_vm_family_member(const berth_vm_body *body,
                                                   const berth_vm_family *family,
                                                   const int64_t *values, berth_arena *arena,
                                                   berth_vm_variant *out_variant);

// Whether two programs are members of one family (or one is the family's variant), and what is loaded of one does
// for the other: kernels need as much scratch, and constants lie where they do.
bool berth_vm_family_shares_code(const berth_program *a, const berth_program *b);

#endif  // BERTH_ARTIFACT_FAMILY_H_
