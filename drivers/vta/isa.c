#include "drivers/vta/isa.h"

#include <stddef.h>
#include <string.h>

typedef enum format { MEMORY, GEMM, ALU, FINISH, NO_FORMAT } format;

typedef struct row {
    format format;
    const char *name;
    size_t offset;  // of the member
} row;

static const row rows[BERTH_VTA_FIELD_COUNT] = {
#define FIELD(format, member, bits) {format, #member, offsetof(berth_vta_instruction, member)},
#include "drivers/vta/isa.def"
};

enum { common_fields = 5 };  // of each format: the opcode and the tokens

static format format_of(uint32_t opcode) {
    switch (opcode) {
    case BERTH_VTA_LOAD:
    case BERTH_VTA_STORE: return MEMORY;
    case BERTH_VTA_GEMM: return GEMM;
    case BERTH_VTA_ALU: return ALU;
    case BERTH_VTA_FINISH: return FINISH;
    default: return NO_FORMAT;
    }
}

static uint32_t get(const berth_vta_instruction *instruction, int field) {
    uint32_t value = 0;
    memcpy(&value, (const char *)instruction + rows[field].offset, sizeof(value));
    return value;
}

static void set(berth_vta_instruction *instruction, int field, uint32_t value) {
    memcpy((char *)instruction + rows[field].offset, &value, sizeof(value));
}

berth_status berth_vta_isa_make(const berth_vta_shape *shape, berth_vta_isa *out_isa) {
    uint32_t uop = shape->memory[BERTH_VTA_UOP].log_depth;
    uint32_t inp = shape->memory[BERTH_VTA_INP].log_depth;
    uint32_t wgt = shape->memory[BERTH_VTA_WGT].log_depth;
    uint32_t acc = shape->memory[BERTH_VTA_ACC].log_depth;
    const uint32_t bits[BERTH_VTA_FIELD_COUNT] = {
#define FIELD(format, member, width) width,
#include "drivers/vta/isa.def"
    };
    uint32_t at = 0;
    for (int i = 0; i < BERTH_VTA_FIELD_COUNT; ++i) {
        if (i == 0 || rows[i].format != rows[i - 1].format) at = 0;
        if (at < 64 && at + bits[i] > 64) at = 64;
        if (at + bits[i] > 128)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "buffers too deep for an instruction: with indices of %u "
                                     "(micro-op), %u (inp), %u (wgt) and %u bits (acc), %s ends "
                                     "beyond bit 127",
                                     uop, inp, wgt, acc, rows[i].name);
        out_isa->offset[i] = (uint8_t)(bits[i] ? at : 0);  // an index of 0 bits is nowhere
        out_isa->bits[i] = (uint8_t)bits[i];
        at += bits[i];
    }
    for (int m = 0; m < BERTH_VTA_MEMORY_COUNT; ++m)
        out_isa->element_bytes[m] = shape->memory[m].element_bytes;
    out_isa->dst_bits = (uint8_t)acc;
    out_isa->src_bits = (uint8_t)(inp > acc ? inp : acc);
    out_isa->wgt_bits = (uint8_t)wgt;
    return BERTH_OK;
}

// ---- bits ----

static uint64_t read_word(const uint8_t *bytes) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; --i) word = word << 8 | bytes[i];
    return word;
}

static void write_word(uint8_t *bytes, uint64_t word) {
    for (int i = 0; i < 8; ++i) bytes[i] = (uint8_t)(word >> (8 * i));
}

static uint64_t mask(uint32_t bits) {
    return ((uint64_t)1 << bits) - 1;
}

berth_status berth_vta_encode(const berth_vta_isa *isa, const berth_vta_instruction *instruction,
                              uint8_t out[BERTH_VTA_INSTRUCTION_BYTES]) {
    format wanted = format_of(instruction->opcode);
    if (wanted == NO_FORMAT)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u is no opcode", instruction->opcode);
    uint64_t words[2] = {0, 0};
    for (int i = 0; i < BERTH_VTA_FIELD_COUNT; ++i) {
        if (rows[i].format != wanted) continue;
        uint32_t value = get(instruction, i);
        if (value & ~mask(isa->bits[i]))
            return berth_status_make(BERTH_OUT_OF_RANGE, "%s: %s=%u does not fit into %u bits",
                                     berth_vta_opcode_name(instruction->opcode), rows[i].name,
                                     value, isa->bits[i]);
        words[isa->offset[i] / 64] |= (uint64_t)value << isa->offset[i] % 64;
    }
    write_word(out, words[0]);
    write_word(out + 8, words[1]);
    return BERTH_OK;
}

berth_vta_instruction berth_vta_decode(const berth_vta_isa *isa,
                                       const uint8_t bytes[BERTH_VTA_INSTRUCTION_BYTES]) {
    const uint64_t words[2] = {read_word(bytes), read_word(bytes + 8)};
    berth_vta_instruction instruction = {0};
    format wanted = format_of((uint32_t)(words[0] & 7));
    if (wanted == NO_FORMAT) wanted = FINISH;  // the common fields
    for (int i = 0; i < BERTH_VTA_FIELD_COUNT; ++i)
        if (rows[i].format == wanted)
            set(&instruction, i,
                (uint32_t)(words[isa->offset[i] / 64] >> isa->offset[i] % 64 & mask(isa->bits[i])));
    return instruction;
}

berth_status berth_vta_encode_micro_op(const berth_vta_isa *isa, berth_vta_micro_op m,
                                       uint32_t *out_word) {
    if (m.dst >> isa->dst_bits || m.src >> isa->src_bits || m.wgt >> isa->wgt_bits)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "micro-op dst=%u src=%u wgt=%u does not fit into %u, %u and %u "
                                 "bits",
                                 m.dst, m.src, m.wgt, isa->dst_bits, isa->src_bits, isa->wgt_bits);
    *out_word = (uint32_t)(m.dst | (uint64_t)m.src << isa->dst_bits |
                           (uint64_t)m.wgt << (isa->dst_bits + isa->src_bits));
    return BERTH_OK;
}

berth_vta_micro_op berth_vta_decode_micro_op(const berth_vta_isa *isa, uint32_t word) {
    uint64_t rest = word;
    berth_vta_micro_op micro_op = {.dst = (uint32_t)(rest & mask(isa->dst_bits))};
    rest >>= isa->dst_bits;
    micro_op.src = (uint32_t)(rest & mask(isa->src_bits));
    rest >>= isa->src_bits;
    micro_op.wgt = (uint32_t)(rest & mask(isa->wgt_bits));
    return micro_op;
}

// ---- names and text ----

berth_vta_unit berth_vta_unit_of(const berth_vta_instruction *i) {
    if (i->opcode == BERTH_VTA_STORE) return BERTH_VTA_UNIT_STORE;
    bool feeds_gemm = i->memory_type == BERTH_VTA_INP || i->memory_type == BERTH_VTA_WGT;
    return i->opcode == BERTH_VTA_LOAD && feeds_gemm ? BERTH_VTA_UNIT_LOAD : BERTH_VTA_UNIT_COMPUTE;
}

const char *berth_vta_unit_name(berth_vta_unit unit) {
    static const char *const names[] = {"load", "compute", "store"};
    return names[unit];
}

const char *berth_vta_opcode_name(uint32_t opcode) {
    static const char *const names[] = {"LOAD", "STORE", "GEMM", "FINISH", "ALU"};
    return opcode < 5 ? names[opcode] : "?";
}

const char *berth_vta_memory_name(uint32_t memory_type) {
    static const char *const names[] = {"uop", "wgt", "inp", "acc", "out", "acc8"};
    return memory_type < BERTH_VTA_MEMORY_COUNT ? names[memory_type] : "?";
}

const char *berth_vta_alu_name(uint32_t alu_opcode) {
    static const char *const names[] = {"MIN", "MAX", "ADD", "SHR", "MUL"};
    return alu_opcode < 5 ? names[alu_opcode] : "?";
}

static void print_tokens(const char *word, bool prev, bool next, berth_strbuf *out) {
    if (!prev && !next) return;
    berth_strbuf_addf(out, " %s(%s%s%s)", word, prev ? "prev" : "", prev && next ? "," : "",
                      next ? "next" : "");
}

// Fields whose value the operation's name says.
static bool is_named(const berth_vta_instruction *i, size_t offset) {
    return (offset == offsetof(berth_vta_instruction, memory_type) &&
            i->memory_type < BERTH_VTA_MEMORY_COUNT) ||
           (offset == offsetof(berth_vta_instruction, alu_opcode) &&
            i->alu_opcode <= BERTH_VTA_MUL);
}

void berth_vta_print(const berth_vta_instruction *i, berth_strbuf *out) {
    format shown = format_of(i->opcode);
    berth_strbuf_add(out, berth_vta_opcode_name(i->opcode));
    if (shown == NO_FORMAT) berth_strbuf_addf(out, " opcode=%u", i->opcode);
    if (shown == MEMORY) berth_strbuf_addf(out, " %s", berth_vta_memory_name(i->memory_type));
    if (shown == ALU) berth_strbuf_addf(out, ".%s", berth_vta_alu_name(i->alu_opcode));
    print_tokens("pop", i->pop_prev, i->pop_next, out);
    print_tokens("push", i->push_prev, i->push_next, out);
    int common = 0;
    for (int f = 0; f < BERTH_VTA_FIELD_COUNT; ++f) {
        if (rows[f].format != shown || common++ < common_fields) continue;
        uint32_t value = get(i, f);
        if (is_named(i, rows[f].offset)) continue;
        if (rows[f].offset == offsetof(berth_vta_instruction, imm)) {
            if (i->use_imm || value) berth_strbuf_addf(out, " imm=%d", berth_vta_imm(i));
        } else if (rows[f].offset == offsetof(berth_vta_instruction, dram_base)) {
            if (value) berth_strbuf_addf(out, " dram_base=0x%x", value);
        } else if (value) {
            berth_strbuf_addf(out, " %s=%u", rows[f].name, value);
        }
    }
}
