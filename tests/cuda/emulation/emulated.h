// Put in front of generated CUDA C when a C++ compiler builds it for the processor: what the language
// adds to C++, as far as generated kernels use it. The threads of a block run one after the other on
// one thread of the system, each until it reaches a barrier (libcuda.c).
#ifndef BERTH_TESTS_CUDA_EMULATED_H_
#define BERTH_TESTS_CUDA_EMULATED_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>

extern "C" {
struct berth_emulated_place {
    unsigned x, y, z;
};
struct berth_emulated_state {
    berth_emulated_place thread, block, threads, blocks;
    void (*barrier)(berth_emulated_state *state);
};
}

// Of the thread of the system that runs a launch.
static thread_local berth_emulated_state *berth_state;
extern "C" void berth_emulated_enter(berth_emulated_state *state) {
    berth_state = state;
}

#define threadIdx (berth_state->thread)
#define blockIdx (berth_state->block)
#define blockDim (berth_state->threads)
#define gridDim (berth_state->blocks)
#define __global__
#define __device__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __syncthreads() (berth_state->barrier(berth_state))

static inline float __uint_as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline uint32_t __float_as_uint(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float __int_as_float(int32_t bits) {
    return __uint_as_float((uint32_t)bits);
}

// A kernel called with an array of pointers to its arguments, as a launch passes them.
template <typename... A, size_t... I>
static void berth_emulated_call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*(A *)arguments[I]...);
}
template <typename... A> static constexpr int berth_emulated_count(void (*)(A...)) {
    return (int)sizeof...(A);
}
template <typename... A> static void berth_emulated_run(void (*kernel)(A...), void **arguments) {
    berth_emulated_call(kernel, arguments, std::index_sequence_for<A...>());
}
// Behind the source, once per kernel.
#define BERTH_EMULATED_KERNEL(name)                                                                \
    extern "C" void berth_emulated_run_##name(void **arguments) {                                  \
        berth_emulated_run(&name, arguments);                                                      \
    }                                                                                              \
    extern "C" const int berth_emulated_count_##name;                                              \
    const int berth_emulated_count_##name = berth_emulated_count(&name);

#endif  // BERTH_TESTS_CUDA_EMULATED_H_
