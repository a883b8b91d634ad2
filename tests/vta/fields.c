#include "tests/vta/fields.h"

typedef struct cursor {
    const uint8_t *bytes;
    int at;
} cursor;

static int64_t next(cursor *c, int width) {
    if (c->at < 64 && c->at + width > 64) c->at = 64;
    int64_t value = 0;
    for (int i = 0; i < width; ++i, ++c->at)
        value |= (int64_t)(c->bytes[c->at / 8] >> c->at % 8 & 1) << i;
    return value;
}

widths widths_of(const berth_vta_config *c) {
    int vector = (int)(c->log_batch + c->log_block);
    return (widths){.uop = (int)c->log_uop_buff_size - 2,
                    .inp = (int)c->log_inp_buff_size - vector - (int)c->log_inp_width + 3,
                    .wgt = (int)c->log_wgt_buff_size - 2 * (int)c->log_block -
                           (int)c->log_wgt_width + 3,
                    .acc = (int)c->log_acc_buff_size - vector - (int)c->log_acc_width + 3};
}

static void read_memory(cursor *c, fields *f) {
    f->memory = (int)next(c, 3);
    f->sram = next(c, 16);
    f->dram = next(c, 32);
    f->y_size = (int)next(c, 16);
    f->x_size = (int)next(c, 16);
    f->x_stride = (int)next(c, 16);
    f->y0 = (int)next(c, 4);
    f->y1 = (int)next(c, 4);
    f->x0 = (int)next(c, 4);
    f->x1 = (int)next(c, 4);
}

static void read_loop(cursor *c, widths w, fields *f) {
    f->reset = (int)next(c, 1);
    f->uop_begin = (int)next(c, w.uop);
    f->uop_end = (int)next(c, w.uop + 1);
    f->iter_out = (int)next(c, 14);
    f->iter_in = (int)next(c, 14);
    f->dst_out = (int)next(c, w.acc);
    f->dst_in = (int)next(c, w.acc);
    int source = f->opcode == 2 ? w.inp : w.acc;
    f->src_out = (int)next(c, source);
    f->src_in = (int)next(c, source);
    if (f->opcode == 2) {
        f->wgt_out = (int)next(c, w.wgt);
        f->wgt_in = (int)next(c, w.wgt);
        return;
    }
    f->alu = (int)next(c, 3);
    f->use_imm = (int)next(c, 1);
    f->imm = (int)next(c, 16);
    if (f->imm >= 32768) f->imm -= 65536;
}

fields read_fields(const berth_vta_config *config, const uint8_t bytes[16]) {
    cursor c = {bytes, 0};
    fields f = {0};
    f.opcode = (int)next(&c, 3);
    f.pop_prev = (int)next(&c, 1);
    f.pop_next = (int)next(&c, 1);
    f.push_prev = (int)next(&c, 1);
    f.push_next = (int)next(&c, 1);
    if (f.opcode <= 1)
        read_memory(&c, &f);
    else if (f.opcode == 2 || f.opcode == 4)
        read_loop(&c, widths_of(config), &f);
    return f;
}

uop_fields read_uop(const berth_vta_config *config, uint32_t word) {
    widths w = widths_of(config);
    int source = w.inp > w.acc ? w.inp : w.acc;
    return (uop_fields){(int)(word % (1ull << w.acc)), (int)((word >> w.acc) % (1ull << source)),
                        (int)(((uint64_t)word >> (w.acc + source)) % (1ull << w.wgt))};
}

int unit_of(const fields *f) {
    if (f->opcode == 1) return 2;
    return f->opcode == 0 && (f->memory == 1 || f->memory == 2) ? 0 : 1;
}
