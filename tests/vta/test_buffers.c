// What a plan says that a convolution takes of a VTA's buffers is what its stream touches: counted from
// the instructions' bits, element by element.
#include <stdlib.h>

#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/image.h"
#include "tests/vta/fields.h"
#include "tests/vta/programs.h"

enum { memories = 5 };

static void mark(uint8_t *seen, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) seen[first + i] = 1;
}

// Elements that loads fill and stores empty.
static void touched(const berth_vta_config *config, const berth_vta_shape *shape,
                    const berth_vta_kernel *kernel, uint64_t out[memories]) {
    uint8_t *seen[memories];
    for (int m = 0; m < memories; ++m) seen[m] = calloc(shape->memory[m].depth, 1);
    for (uint32_t i = 0; i < kernel->instruction_count; ++i) {
        fields f = read_fields(config, kernel->stream + 16 * (size_t)i);
        if (f.opcode > 1 || f.x_size == 0) continue;
        int64_t count = (int64_t)(f.y0 + f.y_size + f.y1) * (f.x0 + f.x_size + f.x1);
        if (f.memory < memories) mark(seen[f.memory], f.sram, count);
        if (f.opcode == 1) mark(seen[BERTH_VTA_ACC], f.sram, count);
    }
    for (int m = 0; m < memories; ++m) {
        out[m] = 0;
        for (uint32_t e = 0; e < shape->memory[m].depth; ++e) out[m] += seen[m][e];
        free(seen[m]);
    }
}

static void check(const berth_vta_conv *conv, bool whole_tiles) {
    berth_arena *arena = NULL;
    berth_vta_config config = berth_vta_config_default();
    berth_vta_shape shape;
    berth_vta_conv_tiles tiles;
    berth_vta_kernel kernel;
    berth_vta_timing timing = berth_vta_timing_default();
    berth_rules_buffer used[BERTH_RULES_MAX_BUFFERS];
    uint64_t counted[memories];
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_vta_shape_make(&config, &shape));
    assert_ok(berth_vta_conv_plan(&config, conv, &timing, &tiles));
    assert_ok(berth_vta_emit_conv(arena, &config, conv, &tiles, &kernel));
    cr_assert_eq(berth_vta_conv_buffers(&config, conv, &tiles, used), memories);
    touched(&config, &shape, &kernel, counted);
    static const char *const scopes[memories] = {"vta.uop", "vta.wgt", "vta.inp", "vta.acc",
                                                 "vta.out"};
    for (int m = 0; m < memories; ++m) {
        uint64_t bytes = counted[m] * shape.memory[m].element_bytes;
        cr_expect_str_eq(used[m].scope, scopes[m]);
        cr_expect_leq(bytes, used[m].used_bytes, "%s: %llu touched, %llu stated", scopes[m],
                      (unsigned long long)bytes, (unsigned long long)used[m].used_bytes);
        // Sums that only the ALU copies are stored and loaded nowhere; micro-ops are counted upwards.
        if (whole_tiles && m == BERTH_VTA_UOP) cr_expect_leq(used[m].used_bytes, bytes + 128);
        if (whole_tiles && m != BERTH_VTA_ACC && m != BERTH_VTA_UOP)
            cr_expect_eq(bytes, used[m].used_bytes, "%s: %llu touched, %llu stated", scopes[m],
                         (unsigned long long)bytes, (unsigned long long)used[m].used_bytes);
        cr_expect_leq(used[m].used_bytes,
                      (uint64_t)shape.memory[m].depth * shape.memory[m].element_bytes);
    }
    berth_arena_destroy(arena);
}

Test(vta_buffers, stated_is_touched) {
    berth_vta_conv conv = {.images = 1,
                           .height = 14,
                           .width = 14,
                           .in_channels = 256,
                           .out_channels = 256,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .stride_h = 1,
                           .stride_w = 1,
                           .pad_h = 1,
                           .pad_w = 1,
                           .shift = 8,
                           .low = 0,
                           .high = 127,
                           .to_even = true};
    check(&conv, true);
    conv.to_even = false;
    check(&conv, true);
    conv.no_bias = true;
    conv.kernel_h = conv.kernel_w = 1;
    conv.pad_h = conv.pad_w = 0;
    check(&conv, true);
    conv.height = conv.width = 57;  // tiles overlap at the edges
    conv.in_channels = 64;
    check(&conv, false);
    conv = (berth_vta_conv){.images = 1,
                            .height = 1,
                            .width = 1,
                            .in_channels = 512,
                            .out_channels = 1008,
                            .kernel_h = 1,
                            .kernel_w = 1,
                            .stride_h = 1,
                            .stride_w = 1,
                            .shift = 6,
                            .low = -128,
                            .high = 127};
    check(&conv, false);
    conv = (berth_vta_conv){.form = BERTH_VTA_SUMS,  // a residual addition
                            .images = 1,
                            .height = 28,
                            .width = 28,
                            .in_channels = 64,
                            .out_channels = 64,
                            .kernel_h = 1,
                            .kernel_w = 1,
                            .stride_h = 1,
                            .stride_w = 1,
                            .low = -128,
                            .high = 127,
                            .sources = 2,
                            .factors = {1, 2},
                            .divisor = 4};
    check(&conv, false);
    conv = (berth_vta_conv){.form = BERTH_VTA_MAXIMA,
                            .images = 1,
                            .height = 28,
                            .width = 28,
                            .in_channels = 32,
                            .out_channels = 32,
                            .kernel_h = 2,
                            .kernel_w = 2,
                            .stride_h = 2,
                            .stride_w = 2,
                            .low = -128,
                            .high = 127};
    check(&conv, false);
}

// The buffer that is too small is named with its bytes: 16 x 16 weights of 9 positions, twice, are
// 4608 bytes.
Test(vta_buffers, misfit_is_named) {
    berth_arena *arena = NULL;
    berth_vta_config config = berth_vta_config_default();
    berth_vta_conv conv = {.images = 1,
                           .height = 8,
                           .width = 8,
                           .in_channels = 16,
                           .out_channels = 16,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .stride_h = 1,
                           .stride_w = 1,
                           .pad_h = 1,
                           .pad_w = 1,
                           .low = 0,
                           .high = 127};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    cr_expect_null(berth_vta_conv_misfit(arena, &config, &conv));
    config.log_wgt_buff_size = 12;
    const char *why = berth_vta_conv_misfit(arena, &config, &conv);
    cr_expect(why && strstr(why, "vta.wgt") && strstr(why, "4608 bytes") && strstr(why, "4096"),
              "%s", why);
    config = berth_vta_config_default();
    config.log_acc_buff_size = 8;  // four accumulators, three results and a bias in two halves
    why = berth_vta_conv_misfit(arena, &config, &conv);
    cr_expect(why && strstr(why, "vta.acc"), "%s", why);
    berth_arena_destroy(arena);
}
