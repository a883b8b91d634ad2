// Intrinsics: instructions of devices that expressions of tensor functions name
// (BERTH_EXPR_INTRINSIC). What each computes is itself a tensor function, its reference: the
// interpreter runs it, and the schedule step that puts intrinsics in (schedule/tensorize.h) looks
// for it. The table is intrinsics.def; a plug-in registers others (extend.h).
//
// Operands are regions that lie in registers: the elements of the reference's parameter, row by
// row, in the lanes of a vector. Immutable; thread-safe.
#ifndef BERTH_IR_TENSOR_INTRINSIC_H_
#define BERTH_IR_TENSOR_INTRINSIC_H_

#include "ir/tensor/function.h"

#define BERTH_INTRINSIC_OPERANDS_MAX 3

typedef enum berth_intrinsic {
#define BERTH_INTRINSIC(id, ...) BERTH_INTRINSIC_##id,
#include "ir/tensor/intrinsics.def"
    BERTH_INTRINSIC_COUNT  // of the table; stands for none
} berth_intrinsic;

#define BERTH_INTRINSIC_FIRST_REGISTERED (BERTH_INTRINSIC_COUNT + 1)
#define BERTH_INTRINSIC_MOST_REGISTERED 64
// One more than the highest number.
#define BERTH_INTRINSIC_END (BERTH_INTRINSIC_FIRST_REGISTERED + BERTH_INTRINSIC_MOST_REGISTERED)
_Static_assert(BERTH_INTRINSIC_END <= UINT8_MAX, "nodes of expressions have 8 bits for it");

typedef struct berth_intrinsic_operand {
    berth_dtype dtype;
    uint16_t lanes;
} berth_intrinsic_operand;

typedef struct berth_intrinsic_facts {
    const char *name;
    const char *needs;  // features; see intrinsics.def
    // [0] is the result, too; the third one has 0 lanes where there are two.
    berth_intrinsic_operand operands[BERTH_INTRINSIC_OPERANDS_MAX];
    const char *reference;
    const char *c;  // text of the function berth_<name>; NULL = the language lacks it
    const char *opencl;
    const char *cuda;  // work-items of a warp compute it together; see intrinsics.def
} berth_intrinsic_facts;

// NULL: there is no such intrinsic.
const berth_intrinsic_facts *berth_intrinsic_get(berth_intrinsic id);
static inline int berth_intrinsic_operand_count(const berth_intrinsic_facts *facts) {
    return facts->operands[BERTH_INTRINSIC_OPERANDS_MAX - 1].lanes
               ? BERTH_INTRINSIC_OPERANDS_MAX
               : BERTH_INTRINSIC_OPERANDS_MAX - 1;
}
// Whether four warps of CUDA compute it together, whose operands stay in the memory of the group.
static inline bool berth_intrinsic_is_of_warpgroup(const berth_intrinsic_facts *facts) {
    return facts->cuda && facts->operands[0].lanes > 4;
}
// Whether a subgroup of Vulkan computes it, on matrices whose places among its work-items are the device's choice.
static inline bool berth_intrinsic_is_of_subgroup(const berth_intrinsic_facts *facts) {
    return !facts->c && !facts->opencl && !facts->cuda;
}
// Whether operands and sums lie in registers of a processor core's matrix unit.
static inline bool berth_intrinsic_is_of_unit(const berth_intrinsic_facts *facts) {
    return facts->c && facts->operands[0].lanes == 256;
}
bool berth_intrinsic_from_name(const char *name, size_t length, berth_intrinsic *out);

// The expression; operands must have the types of the table. c: 0 where there are two.
berth_expr berth_tfn_intrinsic(berth_tfn *fn, berth_intrinsic id, berth_expr a, berth_expr b,
                               berth_expr c);

// The reference as a function of a new module in `arena`. O(its text). Errors: out of memory.
BERTH_MUST_USE berth_status berth_intrinsic_reference(berth_arena *arena, berth_intrinsic id,
                                                      const berth_tfn **out);

#endif  // BERTH_IR_TENSOR_INTRINSIC_H_
