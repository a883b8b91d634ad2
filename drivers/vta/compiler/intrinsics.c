// What the matrix unit does in a cycle, as intrinsics of tensor functions (ir/tensor/intrinsic.h): one for
// each size of its block.
//
//   acc[o] += sum over c of inp[c] * wgt[o,c]
#include <string.h>

#include "drivers/vta/compiler/compiler.h"
#include "ir/extend.h"

// block, and its square
#define SIZES(SIZE)                                                                                \
    SIZE(2, 4)                                                                                     \
    SIZE(4, 16)                                                                                    \
    SIZE(8, 64) SIZE(16, 256) SIZE(32, 1024) SIZE(64, 4096) SIZE(128, 16384)

#define GEMM(b, square)                                                                            \
    {.name = "vta_gemm_" #b,                                                                       \
     .needs = "",                                                                                  \
     .operands = {{BERTH_DTYPE_I32, b}, {BERTH_DTYPE_I8, b}, {BERTH_DTYPE_I8, square}},            \
     .reference =                                                                                  \
         "module \"intrinsic\"\n"                                                                  \
         "tensor @vta_gemm_" #b "(%acc: i32[" #b "] inout scope \"register\", %inp: i8[" #b        \
         "] in scope \"register\", %wgt: i8[" #b "," #b "] in scope \"register\") {\n"             \
         "  parallel %o in " #b " {\n"                                                             \
         "    for %c in " #b " {\n"                                                                \
         "      %acc[%o] = %acc[%o] + i32(%inp[%c]) * i32(%wgt[%o, %c])\n"                         \
         "    }\n"                                                                                 \
         "  }\n"                                                                                   \
         "}\n"},
static const berth_intrinsic_facts gemms[] = {SIZES(GEMM)};
#undef GEMM
enum { gemm_count = sizeof(gemms) / sizeof(gemms[0]) };

berth_status berth_vta_intrinsics_register(void) {
    for (int i = 0; i < gemm_count; ++i) {
        berth_intrinsic id = BERTH_INTRINSIC_COUNT;
        BERTH_TRY(berth_intrinsic_register(&gemms[i], &id));
    }
    return BERTH_OK;
}

berth_intrinsic berth_vta_gemm_of(int64_t block) {
    berth_intrinsic id = BERTH_INTRINSIC_COUNT;
    for (int i = 0; i < gemm_count; ++i)
        if (gemms[i].operands[0].lanes == block &&
            berth_intrinsic_from_name(gemms[i].name, strlen(gemms[i].name), &id))
            return id;
    return BERTH_INTRINSIC_COUNT;
}

int64_t berth_vta_gemm_block(berth_intrinsic id) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    for (int i = 0; i < gemm_count; ++i)
        if (facts == &gemms[i]) return facts->operands[0].lanes;
    return 0;
}
