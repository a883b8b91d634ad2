#include "drivers/vta/model.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    berth_code code;
} faults[] = {
    {"none", BERTH_CODE_OK},
#define FAULT(name, text, code, meaning) {text, BERTH_##code},
#include "drivers/vta/faults.def"
};

const char *berth_vta_fault_name(berth_vta_fault fault) {
    return faults[fault].name;
}

berth_status berth_vta_fail(berth_vta_fault *out_fault, berth_vta_fault fault, const char *format,
                            ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    *out_fault = fault;
    return berth_status_make(faults[fault].code, "%s: %s", faults[fault].name, text);
}

#define FAIL(model, kind, ...) berth_vta_fail(&(model)->fault, BERTH_VTA_FAULT_##kind, __VA_ARGS__)

// ---- making ----

static size_t lanes(const berth_vta_shape *shape) {  // of an inp, acc or out element
    return (size_t)shape->batch * shape->block;
}

static size_t sram_bytes(const berth_vta_shape *shape, berth_vta_memory memory) {
    return (size_t)shape->memory[memory].depth * shape->memory[memory].element_bytes;
}

static size_t acc_lanes(const berth_vta_shape *shape) {
    return shape->memory[BERTH_VTA_ACC].depth * lanes(shape);
}

berth_status berth_vta_model_create(berth_allocator allocator, const berth_vta_config *config,
                                    berth_vta_model **out_model) {
    *out_model = NULL;
    berth_vta_shape shape;
    berth_vta_isa isa;
    BERTH_TRY(berth_vta_shape_make(config, &shape));
    BERTH_TRY(berth_vta_isa_make(&shape, &isa));
    berth_vta_model *model = berth_calloc(allocator, 1, sizeof(*model));
    if (!model) return berth_status_oom();
    model->allocator = allocator;
    model->config = *config;
    model->shape = shape;
    model->isa = isa;
    model->uop = berth_alloc(allocator, sram_bytes(&shape, BERTH_VTA_UOP));
    model->wgt = berth_alloc(allocator, sram_bytes(&shape, BERTH_VTA_WGT));
    model->inp = berth_alloc(allocator, sram_bytes(&shape, BERTH_VTA_INP));
    model->acc = berth_alloc(allocator, acc_lanes(&shape) * sizeof(*model->acc));
    model->stale = berth_alloc(allocator, shape.memory[BERTH_VTA_ACC].depth);
    if (!model->uop || !model->wgt || !model->inp || !model->acc || !model->stale) {
        berth_vta_model_destroy(model);
        return berth_status_oom();
    }
    berth_vta_model_scramble(model, 0);
    *out_model = model;
    return BERTH_OK;
}

void berth_vta_model_destroy(berth_vta_model *model) {
    if (!model) return;
    const berth_vta_shape *shape = &model->shape;
    berth_free(model->allocator, model->uop, sram_bytes(shape, BERTH_VTA_UOP));
    berth_free(model->allocator, model->wgt, sram_bytes(shape, BERTH_VTA_WGT));
    berth_free(model->allocator, model->inp, sram_bytes(shape, BERTH_VTA_INP));
    berth_free(model->allocator, model->acc, acc_lanes(shape) * sizeof(*model->acc));
    berth_free(model->allocator, model->stale, shape->memory[BERTH_VTA_ACC].depth);
    berth_free(model->allocator, model, sizeof(*model));
}

// Xorshift: Marsaglia, "Xorshift RNGs", 2003.
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void scramble(void *data, size_t size_bytes, uint64_t *state) {
    uint8_t *bytes = data;
    for (size_t i = 0; i < size_bytes; i += sizeof(uint64_t)) {
        uint64_t random = next_random(state);
        size_t rest = size_bytes - i;
        memcpy(bytes + i, &random, rest < sizeof(random) ? rest : sizeof(random));
    }
}

// The value of an accumulator lane: what its bits hold.
static int32_t wrap(const berth_vta_model *model, uint32_t value) {
    return model->shape.acc_bytes == 4 ? (int32_t)value : (int16_t)(uint16_t)value;
}

void berth_vta_model_scramble(berth_vta_model *model, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    if (state == 0) state = 1;
    const berth_vta_shape *shape = &model->shape;
    scramble(model->uop, sram_bytes(shape, BERTH_VTA_UOP), &state);
    scramble(model->wgt, sram_bytes(shape, BERTH_VTA_WGT), &state);
    scramble(model->inp, sram_bytes(shape, BERTH_VTA_INP), &state);
    for (size_t i = 0; i < acc_lanes(shape); ++i)
        model->acc[i] = wrap(model, (uint32_t)(next_random(&state) >> 32));
    memset(model->stale, 1, shape->memory[BERTH_VTA_ACC].depth);
}

berth_vta_micro_op berth_vta_model_micro_op(const berth_vta_model *model, uint32_t index) {
    const uint8_t *at = model->uop + (size_t)index * 4;
    return berth_vta_decode_micro_op(
        &model->isa, at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}

// ---- checks ----

static bool is_loop(const berth_vta_instruction *i) {
    return i->opcode == BERTH_VTA_GEMM || i->opcode == BERTH_VTA_ALU;
}

berth_status berth_vta_model_check(berth_vta_model *model, const berth_vta_instruction *i) {
    if (i->opcode > BERTH_VTA_ALU) return FAIL(model, BAD_OPCODE, "%u is no opcode", i->opcode);
    berth_vta_unit unit = berth_vta_unit_of(i);
    if (unit == BERTH_VTA_UNIT_LOAD && (i->pop_prev || i->push_prev))
        return FAIL(model, BAD_TOKEN, "load has no unit before it to %s a token %s",
                    i->pop_prev ? "take" : "give", i->pop_prev ? "from" : "to");
    if (unit == BERTH_VTA_UNIT_STORE && (i->pop_next || i->push_next))
        return FAIL(model, BAD_TOKEN, "store has no unit after it to %s a token %s",
                    i->pop_next ? "take" : "give", i->pop_next ? "from" : "to");
    if (i->opcode == BERTH_VTA_ALU && i->alu_opcode > BERTH_VTA_MUL)
        return FAIL(model, BAD_ALU, "%u is no ALU operation", i->alu_opcode);
    if (i->x_size == 0) return BERTH_OK;  // a transfer of nothing, or no transfer
    if (i->opcode == BERTH_VTA_LOAD &&
        (i->memory_type == BERTH_VTA_OUT || i->memory_type > BERTH_VTA_ACC8))
        return FAIL(model, BAD_MEMORY, "LOAD cannot fill memory %u", i->memory_type);
    if (i->opcode == BERTH_VTA_STORE && i->memory_type != BERTH_VTA_OUT)
        return FAIL(model, BAD_MEMORY, "STORE writes from memory 4 (out), not %u", i->memory_type);
    if (i->opcode == BERTH_VTA_STORE &&
        (i->y_pad_before || i->y_pad_after || i->x_pad_before || i->x_pad_after))
        return FAIL(model, BAD_PADDING, "STORE with padding");
    return BERTH_OK;
}

typedef struct transfer {
    uint64_t dram;  // offset of the first element
    uint64_t row_bytes, stride_bytes;
    uint64_t width;  // SRAM elements of a row, padding included
    uint64_t rows;
} transfer;

static berth_status check_transfer(berth_vta_model *model, const berth_vta_dram *dram,
                                   const berth_vta_instruction *i, transfer *out) {
    const char *name = berth_vta_memory_name(i->memory_type);
    uint64_t element_bytes = model->shape.memory[i->memory_type].element_bytes;
    uint32_t depth = model->shape.memory[i->memory_type].depth;
    out->width = (uint64_t)i->x_pad_before + i->x_size + i->x_pad_after;
    out->rows = (uint64_t)i->y_pad_before + i->y_size + i->y_pad_after;
    out->row_bytes = i->x_size * element_bytes;
    out->stride_bytes = i->x_stride * element_bytes;
    out->dram = 0;
    if (i->opcode == BERTH_VTA_STORE && out->rows == 0) return BERTH_OK;  // reads nothing
    if (i->sram_base + out->width * out->rows > depth)
        return FAIL(model, SRAM_RANGE,
                    "elements %u to %llu of %s, which has %u: %llu rows of %llu with padding",
                    i->sram_base, (unsigned long long)(i->sram_base + out->width * out->rows), name,
                    depth, (unsigned long long)out->rows, (unsigned long long)out->width);
    if (i->y_size == 0) return BERTH_OK;
    uint64_t address = i->dram_base * element_bytes & 0xffffffffu;
    uint64_t size_bytes = (i->y_size - 1) * out->stride_bytes + out->row_bytes;
    if (address < dram->base || address - dram->base > dram->size_bytes ||
        size_bytes > dram->size_bytes - (address - dram->base))
        return FAIL(
            model, DRAM_RANGE, "bytes 0x%llx to 0x%llx for %s; the device has 0x%llx to 0x%llx",
            (unsigned long long)address, (unsigned long long)(address + size_bytes), name,
            (unsigned long long)dram->base, (unsigned long long)(dram->base + dram->size_bytes));
    out->dram = address - dram->base;
    return BERTH_OK;
}

// All factors are unsigned: the last iteration has the largest index of each micro-op.
static berth_status check_index(berth_vta_model *model, berth_vta_memory memory, const char *what,
                                uint32_t base, const berth_vta_instruction *i, uint32_t factor_out,
                                uint32_t factor_in) {
    uint64_t most =
        base + (uint64_t)(i->iter_out - 1) * factor_out + (uint64_t)(i->iter_in - 1) * factor_in;
    if (most < model->shape.memory[memory].depth) return BERTH_OK;
    return FAIL(model, INDEX_RANGE, "%s index up to %llu of %s, which has %u elements", what,
                (unsigned long long)most, berth_vta_memory_name(memory),
                model->shape.memory[memory].depth);
}

static berth_status check_loop(berth_vta_model *model, const berth_vta_instruction *i) {
    if (i->uop_end > model->shape.memory[BERTH_VTA_UOP].depth)
        return FAIL(model, UOP_RANGE, "micro-ops %u to %u of a buffer of %u", i->uop_begin,
                    i->uop_end, model->shape.memory[BERTH_VTA_UOP].depth);
    bool gemm = i->opcode == BERTH_VTA_GEMM;
    for (uint32_t u = i->uop_begin; u < i->uop_end; ++u) {
        berth_vta_micro_op m = berth_vta_model_micro_op(model, u);
        BERTH_TRY(check_index(model, BERTH_VTA_ACC, "result", m.dst, i, i->dst_factor_out,
                              i->dst_factor_in));
        if (gemm && i->reset) continue;  // only the result matters
        BERTH_TRY(check_index(model, gemm ? BERTH_VTA_INP : BERTH_VTA_ACC, "operand", m.src, i,
                              i->src_factor_out, i->src_factor_in));
        if (gemm)
            BERTH_TRY(check_index(model, BERTH_VTA_WGT, "weight", m.wgt, i, i->wgt_factor_out,
                                  i->wgt_factor_in));
    }
    return BERTH_OK;
}

// ---- LOAD and STORE ----

static int32_t lane_at(const uint8_t *data, size_t index, uint32_t bytes) {
    if (bytes == 1) return (int8_t)data[index];
    const uint8_t *at = data + index * bytes;
    uint32_t value = 0;
    for (uint32_t b = bytes; b-- > 0;) value = value << 8 | at[b];
    return bytes == 2 ? (int16_t)(uint16_t)value : (int32_t)value;
}

// Copies `count` elements into SRAM from `index` on; source NULL = zeros.
static void fill_sram(berth_vta_model *model, uint32_t memory, uint64_t index,
                      const uint8_t *source, uint64_t count) {
    uint64_t element_bytes = model->shape.memory[memory].element_bytes;
    if (memory == BERTH_VTA_ACC || memory == BERTH_VTA_ACC8) {
        size_t width = lanes(&model->shape);
        uint32_t bytes = memory == BERTH_VTA_ACC ? model->shape.acc_bytes : model->shape.inp_bytes;
        for (uint64_t i = 0; i < count * width; ++i)
            model->acc[index * width + i] = source ? lane_at(source, i, bytes) : 0;
        memset(model->stale + index, 1, count);
        return;
    }
    uint8_t *sram = memory == BERTH_VTA_INP   ? model->inp
                    : memory == BERTH_VTA_WGT ? model->wgt
                                              : model->uop;
    if (source)
        memcpy(sram + index * element_bytes, source, count * element_bytes);
    else
        memset(sram + index * element_bytes, 0, count * element_bytes);
}

static void load(berth_vta_model *model, const berth_vta_dram *dram, const berth_vta_instruction *i,
                 const transfer *t) {
    const uint8_t *from = dram->data + t->dram;
    uint64_t index = i->sram_base;
    fill_sram(model, i->memory_type, index, NULL, i->y_pad_before * t->width);
    index += i->y_pad_before * t->width;
    for (uint64_t y = 0; y < i->y_size; ++y, index += t->width) {
        fill_sram(model, i->memory_type, index, NULL, i->x_pad_before);
        fill_sram(model, i->memory_type, index + i->x_pad_before, from + y * t->stride_bytes,
                  i->x_size);
        fill_sram(model, i->memory_type, index + i->x_pad_before + i->x_size, NULL, i->x_pad_after);
    }
    fill_sram(model, i->memory_type, index, NULL, i->y_pad_after * t->width);
    uint32_t counted = i->memory_type == BERTH_VTA_ACC8 ? BERTH_VTA_ACC : i->memory_type;
    model->counters.load_bytes[counted] +=
        (uint64_t)i->x_size * i->y_size * model->shape.memory[counted].element_bytes;
}

static void store(berth_vta_model *model, const berth_vta_dram *dram,
                  const berth_vta_instruction *i, const transfer *t) {
    size_t width = lanes(&model->shape);
    uint32_t bytes = model->shape.inp_bytes;
    uint64_t index = i->sram_base;
    for (uint64_t y = 0; y < i->y_size; ++y, index += i->x_size) {
        uint8_t *to = dram->data + t->dram + y * t->stride_bytes;
        for (uint64_t k = 0; k < i->x_size * width; ++k)
            for (uint32_t b = 0; b < bytes; ++b)
                *to++ = (uint8_t)((uint32_t)model->acc[index * width + k] >> (8 * b));
        for (uint64_t x = 0; x < i->x_size; ++x)
            model->counters.stale_stores += model->stale[index + x];
    }
    model->counters.store_bytes += i->y_size * t->row_bytes;
}

// A transfer without its data.
static void follow_transfer(berth_vta_model *model, const berth_vta_instruction *i,
                            const transfer *t) {
    bool loads_acc = i->memory_type == BERTH_VTA_ACC || i->memory_type == BERTH_VTA_ACC8;
    if (i->opcode == BERTH_VTA_LOAD && !loads_acc) return;
    for (uint64_t k = 0; k < t->width * t->rows; ++k) {
        if (i->opcode == BERTH_VTA_STORE)
            model->counters.stale_stores += model->stale[i->sram_base + k];
        else
            model->stale[i->sram_base + k] = 1;
    }
}

static berth_status transfer_data(berth_vta_model *model, const berth_vta_dram *dram,
                                  const berth_vta_instruction *i, berth_vta_work *out_work) {
    if (i->x_size == 0) return BERTH_OK;
    transfer t;
    BERTH_TRY(check_transfer(model, dram, i, &t));
    if (model->without_data && i->memory_type != BERTH_VTA_UOP)
        follow_transfer(model, i, &t);
    else if (i->opcode == BERTH_VTA_LOAD)
        load(model, dram, i, &t);
    else
        store(model, dram, i, &t);
    out_work->dram_rows = t.stride_bytes == t.row_bytes && i->y_size ? 1 : i->y_size;
    out_work->dram_bytes = i->y_size * t.row_bytes;
    out_work->sram_elements = t.width * t.rows;
    return BERTH_OK;
}

// ---- GEMM and ALU ----

// A row of 8-bit inputs by a weight element of 8 bits. Inlined where `block` is a constant, so that the
// compiler unrolls and vectorises it.
static inline void multiply_narrow(const int8_t *inp, const int8_t *wgt, uint32_t block,
                                   uint32_t *sums) {
    int16_t wide[256];
    for (uint32_t k = 0; k < block; ++k) wide[k] = inp[k];
    for (uint32_t j = 0; j < block; ++j) {
        int32_t sum = 0;  // 256 products of 2^14 at most
        for (uint32_t k = 0; k < block; ++k) sum += (int32_t)wide[k] * (int16_t)wgt[j * block + k];
        sums[j] = (uint32_t)sum;
    }
}

static void multiply_any(const berth_vta_shape *s, const uint8_t *inp, const uint8_t *wgt,
                         uint32_t *sums) {
    for (uint32_t j = 0; j < s->block; ++j) {
        sums[j] = 0;
        for (uint32_t k = 0; k < s->block; ++k)
            sums[j] += (uint32_t)(lane_at(inp, k, s->inp_bytes) *
                                  lane_at(wgt, (size_t)j * s->block + k, s->wgt_bytes));
    }
}

static void gemm_one(berth_vta_model *model, uint32_t dst, uint32_t src, uint32_t wgt) {
    const berth_vta_shape *s = &model->shape;
    int32_t *acc = model->acc + dst * lanes(s);
    const uint8_t *inp = model->inp + (size_t)src * s->memory[BERTH_VTA_INP].element_bytes;
    const uint8_t *weight = model->wgt + (size_t)wgt * s->memory[BERTH_VTA_WGT].element_bytes;
    bool narrow = s->inp_bytes == 1 && s->wgt_bytes == 1;
    uint32_t sums[256];
    for (uint32_t b = 0; b < s->batch; ++b, acc += s->block, inp += s->block * s->inp_bytes) {
        if (narrow && s->block == 16)
            multiply_narrow((const int8_t *)inp, (const int8_t *)weight, 16, sums);
        else if (narrow)
            multiply_narrow((const int8_t *)inp, (const int8_t *)weight, s->block, sums);
        else
            multiply_any(s, inp, weight, sums);
        for (uint32_t j = 0; j < s->block; ++j) acc[j] = wrap(model, (uint32_t)acc[j] + sums[j]);
    }
}

static uint32_t shift(berth_vta_model *model, int32_t x, int32_t y) {
    if (y > 31 || y < -31) model->counters.undefined_shifts++;
    uint32_t count = (y < 0 ? 0 - (uint32_t)y : (uint32_t)y) & 31;
    // An arithmetic shift to the right, without asking the compiler for one.
    if (y >= 0) return x < 0 ? ~(~(uint32_t)x >> count) : (uint32_t)x >> count;
    return (uint32_t)x << count;
}

static uint32_t alu_lane(berth_vta_model *model, uint32_t operation, int32_t x, int32_t y) {
    switch (operation) {
    case BERTH_VTA_MIN: return (uint32_t)(x < y ? x : y);
    case BERTH_VTA_MAX: return (uint32_t)(x > y ? x : y);
    case BERTH_VTA_ADD: return (uint32_t)x + (uint32_t)y;
    case BERTH_VTA_SHR: return shift(model, x, y);
    default: return (uint32_t)x * (uint32_t)y;
    }
}

static void alu_one(berth_vta_model *model, const berth_vta_instruction *i, uint32_t dst,
                    uint32_t src) {
    size_t width = lanes(&model->shape);
    int32_t *x = model->acc + dst * width;
    const int32_t *y = model->acc + src * width;
    int32_t imm = berth_vta_imm(i);
    for (size_t k = 0; k < width; ++k)
        x[k] = wrap(model, alu_lane(model, i->alu_opcode, x[k], i->use_imm ? imm : y[k]));
}

static void micro_op(berth_vta_model *model, const berth_vta_instruction *i, berth_vta_micro_op m) {
    model->stale[m.dst] = i->opcode == BERTH_VTA_GEMM && i->reset;
    if (model->without_data) return;
    if (i->opcode == BERTH_VTA_ALU)
        alu_one(model, i, m.dst, m.src);
    else if (i->reset)
        memset(model->acc + m.dst * lanes(&model->shape), 0,
               lanes(&model->shape) * sizeof(*model->acc));
    else
        gemm_one(model, m.dst, m.src, m.wgt);
}

static berth_status run_loop(berth_vta_model *model, const berth_vta_instruction *i,
                             uint64_t most_micro_ops, berth_vta_work *out_work) {
    if (i->iter_out == 0 || i->iter_in == 0 || i->uop_end <= i->uop_begin) return BERTH_OK;
    BERTH_TRY(check_loop(model, i));
    out_work->micro_ops = (uint64_t)i->iter_out * i->iter_in * (i->uop_end - i->uop_begin);
    if (out_work->micro_ops > most_micro_ops)
        return FAIL(model, WORK_LIMIT, "%llu micro-ops, and %llu are allowed",
                    (unsigned long long)out_work->micro_ops, (unsigned long long)most_micro_ops);
    uint64_t undefined = model->counters.undefined_shifts;
    for (uint32_t o = 0; o < i->iter_out; ++o)
        for (uint32_t n = 0; n < i->iter_in; ++n)
            for (uint32_t u = i->uop_begin; u < i->uop_end; ++u) {
                berth_vta_micro_op m = berth_vta_model_micro_op(model, u);
                m.dst += o * i->dst_factor_out + n * i->dst_factor_in;
                m.src += o * i->src_factor_out + n * i->src_factor_in;
                m.wgt += o * i->wgt_factor_out + n * i->wgt_factor_in;
                micro_op(model, i, m);
            }
    if (i->opcode == BERTH_VTA_ALU)
        model->counters.alu_micro_ops += out_work->micro_ops;
    else if (!i->reset)
        model->counters.gemm_micro_ops += out_work->micro_ops;
    if (model->refuse_shifts && model->counters.undefined_shifts != undefined)
        return FAIL(model, SHIFT_RANGE, "SHR by more than 31 bits in %llu lanes",
                    (unsigned long long)(model->counters.undefined_shifts - undefined));
    return BERTH_OK;
}

berth_status berth_vta_model_execute(berth_vta_model *model, const berth_vta_dram *dram,
                                     const berth_vta_instruction *instruction,
                                     uint64_t most_micro_ops, berth_vta_work *out_work) {
    memset(out_work, 0, sizeof(*out_work));
    BERTH_TRY(berth_vta_model_check(model, instruction));
    if (is_loop(instruction)) return run_loop(model, instruction, most_micro_ops, out_work);
    if (instruction->opcode == BERTH_VTA_FINISH) return BERTH_OK;
    return transfer_data(model, dram, instruction, out_work);
}
