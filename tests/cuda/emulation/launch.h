// Runs a grid of an emulated kernel on the calling thread.
#ifndef BERTH_TESTS_CUDA_EMULATION_LAUNCH_H_
#define BERTH_TESTS_CUDA_EMULATION_LAUNCH_H_

#include <stdbool.h>

typedef struct emulated_place {
    unsigned x, y, z;
} emulated_place;

typedef struct emulated_state {  // as in emulated.h
    emulated_place thread, block, threads, blocks;
    void (*barrier)(struct emulated_state *state);
    unsigned char *shared;
} emulated_state;

typedef struct emulated_launch {
    void (*enter)(emulated_state *state);
    void (*run)(void **arguments);
    void **arguments;
    emulated_place blocks, threads;
    unsigned shared_bytes;  // of a block, beside what kernels declare
} emulated_launch;

// Blocks one after the other; the threads of a block in turns, from barrier to barrier. False where
// threads of a block do not all reach the same barriers.
bool emulated_run(const emulated_launch *launch);

#endif  // BERTH_TESTS_CUDA_EMULATION_LAUNCH_H_
