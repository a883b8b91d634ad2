// The instructions of a VTA that tensor functions name (intrinsics.c has their meaning).
#ifndef BERTH_DRIVERS_VTA_COMPILER_INTRINSICS_H_
#define BERTH_DRIVERS_VTA_COMPILER_INTRINSICS_H_

#include "ir/tensor/intrinsic.h"

typedef enum berth_vta_do {
    BERTH_VTA_DO_GEMM,
    BERTH_VTA_DO_DIAGONAL,
    BERTH_VTA_DO_ADD,
    BERTH_VTA_DO_MAX,
    BERTH_VTA_DO_MIN,
    BERTH_VTA_DO_SHR,
    BERTH_VTA_DO_COUNT
} berth_vta_do;

BERTH_MUST_USE berth_status berth_vta_intrinsics_register(void);

// BERTH_INTRINSIC_COUNT: there is none for such a block.
berth_intrinsic berth_vta_intrinsic_of(berth_vta_do which, int64_t block);
bool berth_vta_intrinsic_is(berth_intrinsic id, berth_vta_do which, int64_t block);

#endif  // BERTH_DRIVERS_VTA_COMPILER_INTRINSICS_H_
