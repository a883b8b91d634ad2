// The kernels of operator cases as CUDA C, in images of many cases each: those of tests/lower/cases.def,
// and those for matrix units.
#ifndef BERTH_TESTS_CUDA_KERNELS_H_
#define BERTH_TESTS_CUDA_KERNELS_H_

#include "compiler/codegen/codegen.h"
#include "target/target.h"

enum { CASES_PER_IMAGE = 80, MOST_IMAGES = 32 };

typedef struct cuda_images {
    const char *const *cases;
    int case_count;
    const char *sources[MOST_IMAGES];  // of cases [i * CASES_PER_IMAGE, ...), with a zero byte
    int count;
    int refused;  // cases whose printing is UNSUPPORTED
} cuda_images;

// The cases of tests/lower, or of matrix_cases.def, without sources. instructions: (optional) those that
// the cases of the latter shall use.
cuda_images cuda_images_of_operators(void);
cuda_images cuda_images_of_matrices(const char *const **instructions);
// Products for devices with instructions of warpgroups (sm_90a), and which (optional).
cuda_images cuda_images_of_warpgroups(const char *const **instructions);
// Products of f32 for targets that allow tf32.
cuda_images cuda_images_of_tf32(void);
// Products with at least three steps of a sum, whose tiles are staged by copies of the device.
cuda_images cuda_images_of_copies(void);
// Products whose three tiles in turns take more shared memory than a kernel may declare.
cuda_images cuda_images_of_wide(void);
// Products of floats and a convolution that tiles of 128 x 128 compute on a device of few multiprocessors.
cuda_images cuda_images_of_large(void);
// Products for sm_90a whose weights lie in panels, which are copied as a whole (compiler/codegen/cuda_bulk.h).
cuda_images cuda_images_of_panels(void);
// Products for sm_90a of four steps and more, whose products go on from one step to the next.
cuda_images cuda_images_of_long_sums(void);
// Prints the cases, scheduled for the target, in the arena.
berth_status cuda_images_print(const berth_target *target, berth_arena *arena, cuda_images *images);
// The prefix of the entries of a case.
const char *cuda_images_prefix(int index, berth_arena *arena);

#endif  // BERTH_TESTS_CUDA_KERNELS_H_
