// Large angles in f32 (private to the SPIR-V generator).
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_ANGLE_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_ANGLE_H_

#include "compiler/codegen/spirv_calc.h"

// x = quarter * pi/2 + rest (modulo 2 pi) for finite |x| >= 2: the quarter is 0, 1, 2 or 3 as a
// float, the rest in [-pi/4, pi/4] is good to two units in the last place. Payne and Hanek, "Radian
// reduction for trigonometric functions", SIGNUM Newsletter 18(1), 1983.
void berth_spirv_large_angle(spirv_calc *c, uint32_t x, uint32_t *out_quarter, uint32_t *out_rest);

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_ANGLE_H_
