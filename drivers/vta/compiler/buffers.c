// What convolutions take of a VTA's buffers, and which buffer is too small.
#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/emit/emitter.h"

enum { buffer_count = 5 };

// Both halves of what is loaded and computed in turn, and what is there once: beside accumulators of
// tiles biases, constants, fillers and a copy; of other work than products a diagonal of weights.
static berth_status used_bytes(const berth_vta_shape *shape, const berth_vta_conv *conv,
                               const berth_vta_conv_tiles *tiles, berth_rules_buffer *out) {
    berth_vta_steps work;
    BERTH_TRY(berth_vta_conv_find_steps(shape, conv, &work));
    berth_vta_conv_fit fit = berth_vta__conv_fit(shape, conv, &work, tiles);
    uint64_t copy = conv->form == BERTH_VTA_MAXIMA ? fit.input : work.has_copy ? fit.tile : 0;
    uint64_t sums = 2 * fit.tile + (fit.copy - fit.bias) + copy;
    uint64_t weights = conv->form == BERTH_VTA_PRODUCTS ? 2 * fit.weights : fit.weights;
    const uint64_t elements[buffer_count] = {[BERTH_VTA_UOP] = fit.micro_ops,
                                             [BERTH_VTA_WGT] = weights,
                                             [BERTH_VTA_INP] = 2 * fit.input,
                                             [BERTH_VTA_ACC] = sums,
                                             [BERTH_VTA_OUT] = 2 * fit.tile};
    static const char *const scopes[buffer_count] = {[BERTH_VTA_UOP] = "vta.uop",
                                                     [BERTH_VTA_WGT] = "vta.wgt",
                                                     [BERTH_VTA_INP] = "vta.inp",
                                                     [BERTH_VTA_ACC] = "vta.acc",
                                                     [BERTH_VTA_OUT] = "vta.out"};
    for (int i = 0; i < buffer_count; ++i)
        out[i] = (berth_rules_buffer){scopes[i], elements[i] * shape->memory[i].element_bytes};
    return BERTH_OK;
}

uint32_t berth_vta_conv_buffers(const berth_vta_config *config, const berth_vta_conv *conv,
                                const berth_vta_conv_tiles *tiles, berth_rules_buffer *out) {
    berth_vta_shape shape;
    berth_status status = berth_vta_shape_make(config, &shape);
    if (!status) status = used_bytes(&shape, conv, tiles, out);
    berth_status_ignore(status);
    return status ? 0 : buffer_count;
}

const char *berth_vta_conv_misfit(berth_arena *arena, const berth_vta_config *config,
                                  const berth_vta_conv *conv) {
    berth_vta_shape shape;
    berth_rules_buffer used[buffer_count];
    const berth_vta_conv_tiles tiles = {.out_blocks = 1, .rows = 1, .columns = 1, .in_blocks = 1};
    berth_status status = berth_vta_shape_make(config, &shape);
    if (!status) status = used_bytes(&shape, conv, &tiles, used);
    berth_status_ignore(status);
    if (status) return NULL;
    for (int i = 0; i < buffer_count; ++i) {
        uint64_t bytes = (uint64_t)shape.memory[i].depth * shape.memory[i].element_bytes;
        if (used[i].used_bytes > bytes)
            return berth_arena_printf(
                arena,
                "does not fit %s: the smallest tile, %u x %u results of %u channels, takes %llu "
                "bytes in both halves, and there are %llu",
                used[i].scope, tiles.rows, tiles.columns, tiles.out_blocks * shape.block,
                (unsigned long long)used[i].used_bytes, (unsigned long long)bytes);
    }
    return NULL;
}
