// Programs of byte code around seeded random ones: the material of the artifact tests and of fuzzing.
#ifndef BERTH_TESTS_ARTIFACT_VM_PROGRAM_H_
#define BERTH_TESTS_ARTIFACT_VM_PROGRAM_H_

#include "artifact/program.h"

// A segment with two variants, which have a program of several constants, and a host operation with
// results for one value. Everything lives in `arena`.
berth_program *vm_program(berth_arena *arena, uint64_t seed);

#endif  // BERTH_TESTS_ARTIFACT_VM_PROGRAM_H_
