// Seeded random programs that keep every rule of artifact/program.h: the material of the artifact
// tests.
#ifndef BERTH_TESTS_ARTIFACT_RANDOM_PROGRAM_H_
#define BERTH_TESTS_ARTIFACT_RANDOM_PROGRAM_H_

#include "artifact/program.h"

// Everything lives in `arena`. Call inside berth_arena_try, or accept abort when memory runs out.
berth_program *random_program(berth_arena *arena, uint64_t seed);

// The first difference between two programs ("steps[2].name"), or NULL when they say the same.
const char *program_difference(const berth_program *a, const berth_program *b);

#endif  // BERTH_TESTS_ARTIFACT_RANDOM_PROGRAM_H_
