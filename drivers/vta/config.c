#include "drivers/vta/config.h"

#include <stdio.h>
#include <string.h>

berth_vta_config berth_vta_config_default(void) {
    return (berth_vta_config){
#define LOG(name, value, trace_name) .name = (value),
#include "drivers/vta/config.def"
    };
}

berth_status berth_vta_config_set(berth_vta_config *config, const char *name, uint32_t value) {
#define LOG(member, standard, trace_name)                                                          \
    if (strcmp(name, #member) == 0) {                                                              \
        config->member = value;                                                                    \
        return BERTH_OK;                                                                           \
    }
#include "drivers/vta/config.def"
    static const char names[] =
#define LOG(member, standard, trace_name) " " #member
#include "drivers/vta/config.def"
        ;
    return berth_status_make(BERTH_NOT_FOUND, "a VTA's configuration has no %s; it has%s", name,
                             names);
}

bool berth_vta_config_equal(const berth_vta_config *a, const berth_vta_config *b) {
    bool equal = true;
#define LOG(name, value, trace_name) equal = equal && a->name == b->name;
#include "drivers/vta/config.def"
    return equal;
}

void berth_vta_config_text(const berth_vta_config *c, char out[96]) {
    snprintf(out, 96, "%llux%llu_i%lluw%llua%llu_%u_%u_%u_%u", 1ull << (c->log_batch & 31),
             1ull << (c->log_block & 31), 1ull << (c->log_inp_width & 31),
             1ull << (c->log_wgt_width & 31), 1ull << (c->log_acc_width & 31),
             c->log_uop_buff_size & 63, c->log_inp_buff_size & 63, c->log_wgt_buff_size & 63,
             c->log_acc_buff_size & 63);
}

static berth_status check_widths(const berth_vta_config *c) {
    const struct {
        const char *name;
        uint32_t value, least, most;
    } widths[] = {{"log_inp_width", c->log_inp_width, 3, 4},
                  {"log_wgt_width", c->log_wgt_width, 3, 4},
                  {"log_acc_width", c->log_acc_width, 4, 5}};
    for (int i = 0; i < 3; ++i)
        if (widths[i].value < widths[i].least || widths[i].value > widths[i].most)
            return berth_status_make(
                BERTH_UNSUPPORTED,
                "%s=%u: lanes of that width are not supported; %s can be %u or %u "
                "(%u or %u bits)",
                widths[i].name, widths[i].value, widths[i].name, widths[i].least, widths[i].most,
                1u << widths[i].least, 1u << widths[i].most);
    if (c->log_acc_width < c->log_inp_width)
        return berth_status_make(BERTH_UNSUPPORTED, "accumulators narrower than results");
    if (c->log_batch > 8 || c->log_block > 8)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "log_batch=%u, log_block=%u: neither may be above 8", c->log_batch,
                                 c->log_block);
    return BERTH_OK;
}

static berth_status set_memory(berth_vta_shape *shape, berth_vta_memory memory, const char *name,
                               uint32_t log_buffer_bytes, uint32_t log_element_bytes) {
    if (log_element_bytes > 12)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "an %s element of 2^%u bytes: at most 4096 bytes, a page, can be "
                                 "aligned",
                                 name, log_element_bytes);
    if (log_buffer_bytes < log_element_bytes)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "log_%s_buff_size=%u: no element of 2^%u bytes fits into it", name,
                                 log_buffer_bytes, log_element_bytes);
    if (log_buffer_bytes - log_element_bytes > 16)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "log_%s_buff_size=%u: more elements than the 16 bits of sram_base "
                                 "can address",
                                 name, log_buffer_bytes);
    shape->memory[memory].name = name;
    shape->memory[memory].log_depth = log_buffer_bytes - log_element_bytes;
    shape->memory[memory].depth = 1u << (log_buffer_bytes - log_element_bytes);
    shape->memory[memory].element_bytes = 1u << log_element_bytes;
    return BERTH_OK;
}

// Micro-ops have 32 bits.
static berth_status check_micro_op(const berth_vta_shape *shape) {
    uint32_t inp = shape->memory[BERTH_VTA_INP].log_depth;
    uint32_t wgt = shape->memory[BERTH_VTA_WGT].log_depth;
    uint32_t acc = shape->memory[BERTH_VTA_ACC].log_depth;
    uint32_t source = inp > acc ? inp : acc;
    if (acc + source + wgt <= 32) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "buffers too deep for a micro-op: indices of %u, %u and %u bits are "
                             "more than 32 together",
                             acc, source, wgt);
}

berth_status berth_vta_shape_make(const berth_vta_config *c, berth_vta_shape *out_shape) {
    memset(out_shape, 0, sizeof(*out_shape));
    BERTH_TRY(check_widths(c));
    out_shape->batch = 1u << c->log_batch;
    out_shape->block = 1u << c->log_block;
    out_shape->inp_bytes = 1u << (c->log_inp_width - 3);
    out_shape->wgt_bytes = 1u << (c->log_wgt_width - 3);
    out_shape->acc_bytes = 1u << (c->log_acc_width - 3);
    uint32_t vector = c->log_batch + c->log_block;
    uint32_t inp = vector + c->log_inp_width - 3, acc = vector + c->log_acc_width - 3;
    uint32_t wgt = 2 * c->log_block + c->log_wgt_width - 3;
    BERTH_TRY(set_memory(out_shape, BERTH_VTA_UOP, "uop", c->log_uop_buff_size, 2));
    BERTH_TRY(set_memory(out_shape, BERTH_VTA_WGT, "wgt", c->log_wgt_buff_size, wgt));
    BERTH_TRY(set_memory(out_shape, BERTH_VTA_INP, "inp", c->log_inp_buff_size, inp));
    BERTH_TRY(set_memory(out_shape, BERTH_VTA_ACC, "acc", c->log_acc_buff_size, acc));
    out_shape->memory[BERTH_VTA_OUT] = out_shape->memory[BERTH_VTA_ACC];
    out_shape->memory[BERTH_VTA_OUT].name = "out";
    out_shape->memory[BERTH_VTA_OUT].element_bytes = 1u << inp;
    out_shape->memory[BERTH_VTA_ACC8] = out_shape->memory[BERTH_VTA_OUT];
    out_shape->memory[BERTH_VTA_ACC8].name = "acc8";
    return check_micro_op(out_shape);
}
