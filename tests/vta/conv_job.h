// Window operations as streams, checked: results against plain integer loops on the untiled tensors, in
// all orders, and every stream against the rules of validator.c.
#ifndef BERTH_TESTS_VTA_CONV_JOB_H_
#define BERTH_TESTS_VTA_CONV_JOB_H_

#include "drivers/vta/emit/conv.h"
#include "tests/vta/programs.h"
#include "tests/vta/validator.h"

enum { DRAM_BASE = 0x40000, DRAM_BYTES = 1 << 22 };

typedef struct job {
    berth_vta_config config;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_vta_conv conv;
    berth_arena *arena;
    berth_vta_kernel kernel;
    uint8_t *dram;
    berth_vta_addresses addresses;
    uint64_t stream;  // address
    uint64_t random;
    int32_t *inputs[2], *weights, *biases;  // [n][c][y][x], [o][c of a group][y][x], [o]
} job;

#define CONV(n, h, w, ci, co, kh, kw, s, p)                                                        \
    (berth_vta_conv) {                                                                             \
        .images = n, .height = h, .width = w, .in_channels = ci, .out_channels = co,               \
        .kernel_h = kh, .kernel_w = kw, .stride_h = s, .stride_w = s, .pad_h = p, .pad_w = p,      \
        .shift = 7, .low = -128, .high = 127                                                       \
    }

// A sum or maximum, as it is without factors, divisor and shift.
berth_vta_conv window(berth_vta_form form, uint32_t height, uint32_t width, uint32_t channels,
                      uint32_t kernel, uint32_t stride, uint32_t pad);

// `given`: tiles in place of the planned ones (optional).
void check_conv(berth_vta_config config, berth_vta_conv conv, uint64_t seed,
                const berth_vta_conv_tiles *given);

// The parts of it: a kernel in memory with its constants, and its stream against the rules.
void conv_place_kernel(job *j);
void conv_validate(const job *j);

#endif  // BERTH_TESTS_VTA_CONV_JOB_H_
