#include "tests/vta/reference.h"

#include <stdlib.h>

typedef struct machine {
    reference *r;
    uint8_t *dram;
    int64_t base, size;
} machine;

static int64_t depth_of(const reference *r, int memory) {
    widths w = widths_of(&r->config);
    const int logs[] = {w.uop, w.wgt, w.inp, w.acc, w.acc, w.acc};
    return (int64_t)1 << logs[memory];
}

static int lanes_of(const reference *r, int memory) {
    if (memory == 0) return 1;
    return memory == 1 ? r->block * r->block : r->batch * r->block;
}

// Of a lane in DRAM.
static int bits_of(const reference *r, int memory) {
    if (memory == 0) return 32;
    if (memory == 1) return 1 << r->config.log_wgt_width;
    return 1 << (memory == 3 ? r->config.log_acc_width : r->config.log_inp_width);
}

static int64_t wrap(int64_t value, int bits) {
    uint64_t low = (uint64_t)value & (((uint64_t)1 << bits) - 1);
    return low >> (bits - 1) ? (int64_t)low - ((int64_t)1 << bits) : (int64_t)low;
}

reference *reference_make(const berth_vta_config *config) {
    reference *r = calloc(1, sizeof(*r));
    r->config = *config;
    r->batch = 1 << config->log_batch;
    r->block = 1 << config->log_block;
    r->uop = calloc((size_t)depth_of(r, 0), sizeof(*r->uop));
    r->wgt = calloc((size_t)(depth_of(r, 1) * lanes_of(r, 1)), sizeof(*r->wgt));
    r->inp = calloc((size_t)(depth_of(r, 2) * lanes_of(r, 2)), sizeof(*r->inp));
    r->acc = calloc((size_t)(depth_of(r, 3) * lanes_of(r, 3)), sizeof(*r->acc));
    return r;
}

void reference_free(reference *r) {
    free(r->uop);
    free(r->wgt);
    free(r->inp);
    free(r->acc);
    free(r);
}

// Lane `lane` of DRAM element `element`; false outside of DRAM.
static bool dram_lane(const machine *m, int memory, int64_t element, int lane, uint8_t **out_at) {
    int64_t lane_bytes = bits_of(m->r, memory) / 8;
    int64_t at = element * lanes_of(m->r, memory) * lane_bytes + lane * lane_bytes - m->base;
    *out_at = m->dram + at;
    return at >= 0 && at + lane_bytes <= m->size;
}

static void set_sram(reference *r, int memory, int64_t index, int lane, int64_t value) {
    int64_t at = index * lanes_of(r, memory) + lane;
    if (memory == 0) r->uop[at] = (uint32_t)value;
    if (memory == 1) r->wgt[at] = value;
    if (memory == 2) r->inp[at] = value;
    if (memory == 3 || memory == 5) r->acc[at] = value;
}

static bool load_element(machine *m, int memory, int64_t index, int64_t element, bool padding) {
    if (index >= depth_of(m->r, memory)) return false;
    int bits = bits_of(m->r, memory);
    for (int lane = 0; lane < lanes_of(m->r, memory); ++lane) {
        int64_t value = 0;
        uint8_t *at = NULL;
        if (!padding && !dram_lane(m, memory, element, lane, &at)) return false;
        for (int b = 0; !padding && b < bits / 8; ++b) value |= (int64_t)at[b] << (8 * b);
        set_sram(m->r, memory, index, lane, wrap(value, bits));
    }
    return true;
}

static int64_t first_element(const machine *m, const fields *f) {
    int64_t bytes = lanes_of(m->r, f->memory) * bits_of(m->r, f->memory) / 8;
    return f->dram * bytes % ((int64_t)1 << 32) / bytes;
}

static bool load(machine *m, const fields *f) {
    if (f->memory == 4 || f->memory > 5) return false;
    int64_t index = f->sram, from = first_element(m, f);
    for (int y = -f->y0; y < f->y_size + f->y1; ++y)
        for (int x = -f->x0; x < f->x_size + f->x1; ++x) {
            bool padding = y < 0 || y >= f->y_size || x < 0 || x >= f->x_size;
            if (!load_element(m, f->memory, index++, from + y * f->x_stride + x, padding))
                return false;
        }
    return true;
}

static bool store(machine *m, const fields *f) {
    if (f->memory != 4 || f->y0 || f->y1 || f->x0 || f->x1) return false;
    int64_t from = first_element(m, f);
    int bits = bits_of(m->r, 4), lanes = lanes_of(m->r, 4);
    for (int y = 0; y < f->y_size; ++y)
        for (int x = 0; x < f->x_size; ++x) {
            int64_t index = f->sram + y * f->x_size + x;
            if (index >= depth_of(m->r, 3)) return false;
            for (int lane = 0; lane < lanes; ++lane) {
                uint8_t *at = NULL;
                if (!dram_lane(m, 4, from + y * f->x_stride + x, lane, &at)) return false;
                for (int b = 0; b < bits / 8; ++b)
                    at[b] = (uint8_t)(m->r->acc[index * lanes + lane] >> (8 * b));
            }
        }
    return true;
}

static bool multiply(reference *r, const fields *f, int64_t dst, int64_t src, int64_t wgt) {
    if (dst >= depth_of(r, 3)) return false;
    if (!f->reset && (src >= depth_of(r, 2) || wgt >= depth_of(r, 1))) return false;
    for (int b = 0; b < r->batch; ++b)
        for (int j = 0; j < r->block; ++j) {
            int64_t *acc = &r->acc[(dst * r->batch + b) * r->block + j];
            int64_t sum = *acc;
            for (int k = 0; !f->reset && k < r->block; ++k)
                sum += r->inp[(src * r->batch + b) * r->block + k] *
                       r->wgt[(wgt * r->block + j) * r->block + k];
            *acc = f->reset ? 0 : wrap(sum, bits_of(r, 3));
        }
    return true;
}

static int64_t operate(int alu, int64_t x, int64_t y) {
    if (alu == 0) return x < y ? x : y;
    if (alu == 1) return x > y ? x : y;
    if (alu == 2) return x + y;
    if (alu == 4) return x * y;
    int64_t power = (int64_t)1 << (y < 0 ? -y : y);
    if (y < 0) return x * power;
    return x >= 0 ? x / power : -((-x + power - 1) / power);  // toward minus infinity
}

static bool calculate(reference *r, const fields *f, int64_t dst, int64_t src) {
    if (dst >= depth_of(r, 3) || src >= depth_of(r, 3) || f->alu > 4) return false;
    int lanes = lanes_of(r, 3);
    for (int lane = 0; lane < lanes; ++lane) {
        int64_t *x = &r->acc[dst * lanes + lane];
        int64_t y = f->use_imm ? f->imm : r->acc[src * lanes + lane];
        *x = wrap(operate(f->alu, *x, y), bits_of(r, 3));
    }
    return true;
}

static bool loop(reference *r, const fields *f) {
    for (int o = 0; o < f->iter_out; ++o)
        for (int i = 0; i < f->iter_in; ++i)
            for (int u = f->uop_begin; u < f->uop_end; ++u) {
                if (u >= depth_of(r, 0)) return false;
                uop_fields m = read_uop(&r->config, r->uop[u]);
                int64_t dst = m.dst + (int64_t)o * f->dst_out + (int64_t)i * f->dst_in;
                int64_t src = m.src + (int64_t)o * f->src_out + (int64_t)i * f->src_in;
                int64_t wgt = m.wgt + (int64_t)o * f->wgt_out + (int64_t)i * f->wgt_in;
                if (!(f->opcode == 2 ? multiply(r, f, dst, src, wgt) : calculate(r, f, dst, src)))
                    return false;
            }
    return true;
}

bool reference_run(reference *r, uint8_t *dram, int64_t base, int64_t size, int64_t address,
                   int count) {
    machine m = {r, dram, base, size};
    for (int n = 0; n < count; ++n) {
        fields f = read_fields(&r->config, dram + (address - base) + 16 * n);
        bool fine = f.opcode <= 4;
        if (f.opcode <= 1 && f.x_size > 0) fine = f.opcode == 0 ? load(&m, &f) : store(&m, &f);
        if (f.opcode == 2 || f.opcode == 4) fine = loop(r, &f);
        if (!fine) return false;
    }
    return true;
}
