// Put in front of generated CUDA C when a C++ compiler builds it for the processor: what the language
// adds to C++, as far as generated kernels use it. The threads of a block run one after the other on
// one thread of the system, each until it reaches a barrier (libcuda.c).
#ifndef BERTH_TESTS_CUDA_EMULATED_H_
#define BERTH_TESTS_CUDA_EMULATED_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

extern "C" {
struct berth_emulated_place {
    unsigned x, y, z;
};
struct berth_emulated_state {
    berth_emulated_place thread, block, threads, blocks;
    void (*barrier)(berth_emulated_state *state);
    unsigned char *shared;  // memory of the block that the launch gives
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
#define BERTH_SHARED unsigned char *const berth_shared = berth_state->shared
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

// ---- warps --------------------------------------------------------------------------------------
// What the threads of a warp do together. All threads of a block come by, or the block has diverged;
// each puts its part down, and takes from those of its warp once all have. Written from the PTX ISA
// (sections "ldmatrix", "Matrix Fragments for mma.m16n8k16" and "for mma.m16n8k32", "cp.async"), apart
// from what the compiler knows of fragments.

#define BERTH_EMULATED 1

struct berth_emulated_part {
    const void *row;
    uint32_t a[4], b[2];
    const void *operation;
};
static thread_local berth_emulated_part berth_parts[1024];

static inline int berth_emulated_thread() {
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
// The parts of the warp, once all threads have put down theirs; berth_emulated_done behind the last use.
static inline const berth_emulated_part *berth_emulated_together(berth_emulated_part own) {
    const int thread = berth_emulated_thread();
    berth_parts[thread] = own;
    __syncthreads();
    const berth_emulated_part *warp = berth_parts + thread / 32 * 32;
    for (int i = 0; i < 32; ++i)
        if (warp[i].operation != own.operation) __builtin_trap();  // the warp has diverged
    return warp;
}
static inline void berth_emulated_done() {
    __syncthreads();
}

// ---- counts -------------------------------------------------------------------------------------
// Of all launches of an image, to the file that BERTH_EMULATION_COUNTS names when it is unloaded: what
// bench/cuda_counts.py compares with the least possible.

struct berth_emulated_counts {
    long copied_bytes;  // by cp.async, and by
    long bulk_bytes;    // cp.async.bulk
    long products;      // of matrix units, each by a warp
    long rows_loaded;   // by ldmatrix, 8 in a cycle where all lie in different banks
    long cycles;        // that it takes: of 8 rows in the same four banks, 8
    ~berth_emulated_counts() {
        const char *path = getenv("BERTH_EMULATION_COUNTS");
        FILE *file = path && copied_bytes + products ? fopen(path, "a") : nullptr;
        if (!file) return;
        fprintf(
            file,
            "{\"copied_bytes\": %ld, \"bulk_bytes\": %ld, \"products\": %ld, \"rows_loaded\": %ld, "
            "\"cycles\": %ld}\n",
            copied_bytes, bulk_bytes, products, rows_loaded, cycles);
        fclose(file);
    }
};
static berth_emulated_counts berth_counts;
#define BERTH_COUNT(what, by) __atomic_fetch_add(&berth_counts.what, (long)(by), __ATOMIC_RELAXED)

// Of 8 rows of 16 bytes: the most that lie in the same four of the 32 banks of 4 bytes.
static inline int berth_emulated_bank_cycles(const berth_emulated_part *rows) {
    int in_banks[8] = {0}, most = 0;
    for (int i = 0; i < 8; ++i) {
        bool again = false;  // a row that was read already comes along
        for (int j = 0; j < i; ++j) again |= rows[j].row == rows[i].row;
        int *count = &in_banks[(uintptr_t)rows[i].row / 16 % 8];
        *count += !again;
        most = *count > most ? *count : most;
    }
    return most;
}

// ldmatrix: thread 8 m + i has the address of row i of the m-th matrix of 8 x 8 elements of 16 bits;
// thread i gets elements i % 4 * 2 and the next one of row i / 4, or, transposed, of column i / 4.
static inline void berth_emulated_ldmatrix(uint32_t *r, const void *row, int count, bool across) {
    static const char operation = 0;
    const int lane = berth_emulated_thread() % 32;
    if ((uintptr_t)row % 16) __builtin_trap();  // ldmatrix takes rows at multiples of 16 bytes
    const berth_emulated_part *warp = berth_emulated_together({row, {}, {}, &operation});
    for (int m = 0; m < count; ++m) {
        if (lane == 0) BERTH_COUNT(rows_loaded, 8);
        if (lane == 0) BERTH_COUNT(cycles, berth_emulated_bank_cycles(warp + 8 * m));
        uint16_t two[2];
        for (int e = 0; e < 2; ++e) {
            const int i = lane / 4, j = lane % 4 * 2 + e;
            const uint16_t *from = (const uint16_t *)warp[8 * m + (across ? j : i)].row;
            two[e] = from[across ? i : j];
        }
        memcpy(&r[m], two, 4);
    }
    berth_emulated_done();
}
static inline void berth_warp_load_4(uint32_t *r, const void *row) {
    berth_emulated_ldmatrix(r, row, 4, false);
}
static inline void berth_warp_load_4_across(uint32_t *r, const void *row) {
    berth_emulated_ldmatrix(r, row, 4, true);
}
static inline void berth_warp_load_2(uint32_t *r, const void *row) {
    berth_emulated_ldmatrix(r, row, 2, false);
}
static inline void berth_warp_load_2_across(uint32_t *r, const void *row) {
    berth_emulated_ldmatrix(r, row, 2, true);
}

static inline float berth_emulated_value(_Float16 x) {
    return (float)x;
}
static inline int32_t berth_emulated_value(int8_t x) {
    return x;
}
static inline int32_t berth_emulated_value(uint8_t x) {
    return x;
}
struct berth_emulated_bf16 {
    uint16_t bits;
};
static inline float berth_emulated_value(berth_emulated_bf16 x) {
    return __uint_as_float((uint32_t)x.bits << 16);
}

struct berth_emulated_tf32 {
    uint32_t bits;
};
static inline float berth_emulated_value(berth_emulated_tf32 x) {
    return __uint_as_float(x.bits & 0xffffe000u);  // the units do not look at the others
}

// mma.sync of m16n8k8 (elements of 32 bits), m16n8k16 (16 bits) and m16n8k32 (8 bits). With group = lane / 4 and
// place = lane % 4, register r of A has row group + 8 (r % 2), and from term 4 bytes * place + 16 bytes *
// (r / 2) on; register r of B column group, from term 4 bytes * place + 16 bytes * r on; element e of C
// row group + 8 (e / 2), column 2 place + e % 2.
template <typename A, typename B, typename C>
static void berth_emulated_mma(C *c, const uint32_t *a, const uint32_t *b) {
    static const char operation = 0;
    const int lane = berth_emulated_thread() % 32, depth = 32 / (int)sizeof(A);
    const berth_emulated_part *warp =
        berth_emulated_together({nullptr, {a[0], a[1], a[2], a[3]}, {b[0], b[1]}, &operation});
    if (lane == 0) BERTH_COUNT(products, 1);
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < depth; ++k) {
            const int byte = k * (int)sizeof(A), place = byte % 16 / 4, within = byte % 4;
            A x;
            B y;
            memcpy(&x, (const char *)&warp[row % 8 * 4 + place].a[row / 8 + byte / 16 * 2] + within,
                   sizeof(x));
            memcpy(&y, (const char *)&warp[column * 4 + place].b[byte / 16] + within, sizeof(y));
            c[e] += berth_emulated_value(x) * berth_emulated_value(y);
        }
    }
    berth_emulated_done();
}
#define BERTH_EMULATED_MMA(NAME, A, B, C)                                                          \
    static inline void berth_warp_mma_##NAME(C *c, const uint32_t *a, const uint32_t *b) {         \
        berth_emulated_mma<A, B>(c, a, b);                                                         \
    }
BERTH_EMULATED_MMA(f16_f16, _Float16, _Float16, float)
BERTH_EMULATED_MMA(bf16_bf16, berth_emulated_bf16, berth_emulated_bf16, float)
BERTH_EMULATED_MMA(f32_f32, berth_emulated_tf32, berth_emulated_tf32, float)
BERTH_EMULATED_MMA(i8_i8, int8_t, int8_t, int32_t)
BERTH_EMULATED_MMA(u8_u8, uint8_t, uint8_t, int32_t)
BERTH_EMULATED_MMA(u8_i8, uint8_t, int8_t, int32_t)
BERTH_EMULATED_MMA(i8_u8, int8_t, uint8_t, int32_t)

// A value of the thread whose number in the warp differs by `by`.
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T x, int by) {
    static const char operation = 0;
    berth_emulated_part own = {nullptr, {}, {}, &operation};
    if (mask != 0xffffffffu || sizeof(T) > sizeof(own.a)) __builtin_trap();
    memcpy(own.a, &x, sizeof(x));
    const berth_emulated_part *warp = berth_emulated_together(own);
    memcpy(&x, warp[(berth_emulated_thread() % 32) ^ by].a, sizeof(x));
    berth_emulated_done();
    return x;
}

template <typename T, int N> struct berth_vec;  // of the generated code
#include "bulk.h"
#include "warpgroups.h"

// cp.async: nothing is copied before the thread waits for it, as late as the language allows.
struct berth_emulated_copy {
    void *to;
    const void *from;
    int bytes, zeros, group;
};
enum { berth_emulated_most_copies = 1024 };
struct berth_emulated_copies {
    berth_emulated_copy all[berth_emulated_most_copies];
    int count, group;
};
static thread_local berth_emulated_copies berth_copies[1024];

// `zeros` behind `bytes` of the source.
static inline void berth_emulated_begin_copy(void *to, const void *from, int bytes, int zeros) {
    berth_emulated_copies *copies = &berth_copies[berth_emulated_thread()];
    uintptr_t unaligned = ((uintptr_t)to | (uintptr_t)from) % (uintptr_t)(bytes + zeros);
    if (copies->count == berth_emulated_most_copies || unaligned) __builtin_trap();
    BERTH_COUNT(copied_bytes, bytes);
    copies->all[copies->count++] = {to, from, bytes, zeros, copies->group};
}
template <int BYTES> static inline void berth_copy_async(void *to, const void *from) {
    berth_emulated_begin_copy(to, from, BYTES, 0);
}
template <int BYTES> static inline void berth_copy_where(void *to, const void *from, bool where) {
    berth_emulated_begin_copy(to, from, where ? BYTES : 0, where ? 0 : BYTES);
}
template <int LEFT> static inline void berth_copies_wait() {
    berth_emulated_copies *copies = &berth_copies[berth_emulated_thread()];
    int kept = 0;
    copies->group++;
    for (int i = 0; i < copies->count; ++i) {
        const berth_emulated_copy copy = copies->all[i];
        if (copy.group >= copies->group - LEFT)
            copies->all[kept++] = copy;
        else {
            memcpy(copy.to, copy.from, (size_t)copy.bytes);
            memset((char *)copy.to + copy.bytes, 0, (size_t)copy.zeros);
        }
    }
    if (kept < copies->count) berth_orders[berth_emulated_thread()].stored = true;
    copies->count = kept;
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
