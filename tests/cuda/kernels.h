// The kernels of every operator case of tests/lower/cases.def as CUDA C, in images of many cases each.
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

// Prints all cases, scheduled for the target, in the arena.
berth_status cuda_images_print(const berth_target *target, berth_arena *arena,
                               cuda_images *out_images);
// The prefix of the entries of a case.
const char *cuda_images_prefix(int index, berth_arena *arena);

#endif  // BERTH_TESTS_CUDA_KERNELS_H_
