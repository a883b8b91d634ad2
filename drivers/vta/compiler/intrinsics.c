// What the matrix unit and the ALU do to one register of accumulators, as intrinsics of tensor functions
// (ir/tensor/intrinsic.h): one of each for each size of the block. Scopes say in which buffer of the
// device an operand is when the instruction runs.
//
//   vta_gemm_B       acc[o] += sum over c of inp[c] * wgt[o,c]
//   vta_diagonal_B   acc[o] += inp[o] * factor: the matrix unit with weights that the emitter makes, since
//                    boards load no 8-bit lanes into accumulators
//   vta_add_B, vta_max_B, vta_min_B, vta_shr_B   acc[o] = acc[o] op src[o]: the ALU's; where all of src is
//                    one number of 16 bits it is an immediate
#include "drivers/vta/compiler/intrinsics.h"

#include <string.h>

#include "ir/extend.h"

// block, and its square
#define SIZES(SIZE)                                                                                \
    SIZE(2, 4)                                                                                     \
    SIZE(4, 16)                                                                                    \
    SIZE(8, 64) SIZE(16, 256) SIZE(32, 1024) SIZE(64, 4096) SIZE(128, 16384)

#define HEAD(name, b)                                                                              \
    "module \"intrinsic\"\n"                                                                       \
    "tensor @vta_" name "_" #b "(%acc: i32[" #b "] inout scope \"vta.acc\", "

#define GEMM(b, square)                                                                            \
    {.name = "vta_gemm_" #b,                                                                       \
     .needs = "",                                                                                  \
     .operands = {{BERTH_DTYPE_I32, b}, {BERTH_DTYPE_I8, b}, {BERTH_DTYPE_I8, square}},            \
     .reference =                                                                                  \
         HEAD("gemm", b) "%inp: i8[" #b "] in scope \"vta.inp\", %wgt: i8[" #b "," #b              \
                         "] in scope \"vta.wgt\") {\n"                                             \
                         "  parallel %o in " #b " {\n"                                             \
                         "    for %c in " #b " {\n"                                                \
                         "      %acc[%o] = %acc[%o] + i32(%inp[%c]) * i32(%wgt[%o, %c])\n"         \
                         "    }\n"                                                                 \
                         "  }\n"                                                                   \
                         "}\n"},
#define DIAGONAL(b, square)                                                                        \
    {.name = "vta_diagonal_" #b,                                                                   \
     .needs = "",                                                                                  \
     .operands = {{BERTH_DTYPE_I32, b}, {BERTH_DTYPE_I8, b}, {BERTH_DTYPE_I8, 1}},                 \
     .reference =                                                                                  \
         HEAD("diagonal", b) "%inp: i8[" #b "] in scope \"vta.inp\", %factor: i8[1]"               \
                             " in scope \"vta.wgt\") {\n"                                          \
                             "  parallel %o in " #b " {\n"                                         \
                             "    %acc[%o] = %acc[%o] + i32(%inp[%o]) * i32(%factor[0])\n"         \
                             "  }\n"                                                               \
                             "}\n"},
#define ALU(name_, b, value)                                                                       \
    {.name = "vta_" name_ "_" #b,                                                                  \
     .needs = "",                                                                                  \
     .operands = {{BERTH_DTYPE_I32, b}, {BERTH_DTYPE_I32, b}},                                     \
     .reference = HEAD(name_, b) "%src: i32[" #b "] in scope \"vta.acc\") {\n"                     \
                                 "  parallel %o in " #b " {\n"                                     \
                                 "    %acc[%o] = " value "\n"                                      \
                                 "  }\n"                                                           \
                                 "}\n"},
#define ADD(b, square) ALU("add", b, "%acc[%o] + %src[%o]")
#define MAX(b, square) ALU("max", b, "max(%acc[%o], %src[%o])")
#define MIN(b, square) ALU("min", b, "min(%acc[%o], %src[%o])")
#define SHR(b, square) ALU("shr", b, "%acc[%o] >> %src[%o]")
static const berth_intrinsic_facts table[BERTH_VTA_DO_COUNT][7] = {
    [BERTH_VTA_DO_GEMM] = {SIZES(GEMM)}, [BERTH_VTA_DO_DIAGONAL] = {SIZES(DIAGONAL)},
    [BERTH_VTA_DO_ADD] = {SIZES(ADD)},   [BERTH_VTA_DO_MAX] = {SIZES(MAX)},
    [BERTH_VTA_DO_MIN] = {SIZES(MIN)},   [BERTH_VTA_DO_SHR] = {SIZES(SHR)},
};
#undef GEMM
#undef DIAGONAL
#undef ALU
#undef ADD
#undef MAX
#undef MIN
#undef SHR
enum { size_count = sizeof(table[0]) / sizeof(table[0][0]) };

berth_status berth_vta_intrinsics_register(void) {
    for (int which = 0; which < BERTH_VTA_DO_COUNT; ++which)
        for (int i = 0; i < size_count; ++i) {
            berth_intrinsic id = BERTH_INTRINSIC_COUNT;
            BERTH_TRY(berth_intrinsic_register(&table[which][i], &id));
        }
    return BERTH_OK;
}

berth_intrinsic berth_vta_intrinsic_of(berth_vta_do which, int64_t block) {
    berth_intrinsic id = BERTH_INTRINSIC_COUNT;
    for (int i = 0; i < size_count; ++i)
        if (table[which][i].operands[0].lanes == block &&
            berth_intrinsic_from_name(table[which][i].name, strlen(table[which][i].name), &id))
            return id;
    return BERTH_INTRINSIC_COUNT;
}

bool berth_vta_intrinsic_is(berth_intrinsic id, berth_vta_do which, int64_t block) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    for (int i = 0; i < size_count; ++i)
        if (facts == &table[which][i]) return facts->operands[0].lanes == block;
    return false;
}
