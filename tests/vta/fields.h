// Reading instructions in tests, apart from the driver's own decoder: bit by bit, with the widths of
// the instruction set written out once more.
#ifndef BERTH_TESTS_VTA_FIELDS_H_
#define BERTH_TESTS_VTA_FIELDS_H_

#include <stdint.h>

#include "drivers/vta/config.h"

typedef struct fields {
    int opcode, pop_prev, pop_next, push_prev, push_next;
    // opcodes 0 and 1
    int memory, y_size, x_size, x_stride, y0, y1, x0, x1;
    int64_t sram, dram;
    // opcodes 2 and 4
    int reset, uop_begin, uop_end, iter_out, iter_in;
    int dst_out, dst_in, src_out, src_in, wgt_out, wgt_in;
    int alu, use_imm, imm;
} fields;

typedef struct uop_fields {
    int dst, src, wgt;
} uop_fields;

// Index widths of a configuration: micro-op, inp, wgt, acc.
typedef struct widths {
    int uop, inp, wgt, acc;
} widths;

widths widths_of(const berth_vta_config *config);
fields read_fields(const berth_vta_config *config, const uint8_t bytes[16]);
uop_fields read_uop(const berth_vta_config *config, uint32_t word);
// 0 load, 1 compute, 2 store
int unit_of(const fields *f);

#endif  // BERTH_TESTS_VTA_FIELDS_H_
