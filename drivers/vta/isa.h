// VTA's instructions: 128 bits, whose fields lie where the configuration puts them. Encoding,
// decoding and printing go through one table (isa.def).
//
//   berth_vta_isa isa;
//   BERTH_TRY(berth_vta_isa_make(&shape, &isa));
//   berth_vta_instruction finish = {.opcode = BERTH_VTA_FINISH};
//   BERTH_TRY(berth_vta_encode(&isa, &finish, bytes));
#ifndef BERTH_DRIVERS_VTA_ISA_H_
#define BERTH_DRIVERS_VTA_ISA_H_

#include "base/str.h"
#include "drivers/vta/config.h"

enum { BERTH_VTA_INSTRUCTION_BYTES = 16 };

typedef enum berth_vta_opcode {
    BERTH_VTA_LOAD = 0,
    BERTH_VTA_STORE = 1,
    BERTH_VTA_GEMM = 2,
    BERTH_VTA_FINISH = 3,
    BERTH_VTA_ALU = 4,  // 5 to 7 are no opcodes
} berth_vta_opcode;

typedef enum berth_vta_alu_opcode {
    BERTH_VTA_MIN = 0,
    BERTH_VTA_MAX = 1,
    BERTH_VTA_ADD = 2,
    BERTH_VTA_SHR = 3,
    BERTH_VTA_MUL = 4,  // 5 to 7 are no operations
} berth_vta_alu_opcode;

// The three units that run instructions, each its own queue in order. Between neighbours of this
// order tokens go both ways.
typedef enum berth_vta_unit {
    BERTH_VTA_UNIT_LOAD,
    BERTH_VTA_UNIT_COMPUTE,
    BERTH_VTA_UNIT_STORE,
} berth_vta_unit;
enum { BERTH_VTA_UNIT_COUNT = 3 };

// A decoded instruction. Fields that its format lacks are 0.
typedef struct berth_vta_instruction {
    uint32_t opcode;
    uint32_t pop_prev, pop_next, push_prev, push_next;  // tokens from and to the neighbours
    // LOAD, STORE
    uint32_t memory_type;
    uint32_t sram_base;  // SRAM elements
    uint32_t dram_base;  // DRAM elements of the memory type
    uint32_t y_size, x_size, x_stride;
    uint32_t y_pad_before, y_pad_after, x_pad_before, x_pad_after;
    // GEMM, ALU
    uint32_t reset;
    uint32_t uop_begin, uop_end;
    uint32_t iter_out, iter_in;
    uint32_t dst_factor_out, dst_factor_in, src_factor_out, src_factor_in;
    uint32_t wgt_factor_out, wgt_factor_in;  // GEMM only
    uint32_t alu_opcode, use_imm;
    uint32_t imm;  // 16 bits; berth_vta_imm gives the number
} berth_vta_instruction;

typedef struct berth_vta_micro_op {
    uint32_t dst, src, wgt;
} berth_vta_micro_op;

enum {
#define FIELD(format, member, bits) BERTH_VTA_FIELD_##format##_##member,
#include "drivers/vta/isa.def"
    BERTH_VTA_FIELD_COUNT
};

// Where the fields are. Immutable once made.
typedef struct berth_vta_isa {
    uint8_t offset[BERTH_VTA_FIELD_COUNT];  // bit 0 is the least significant of byte 0
    uint8_t bits[BERTH_VTA_FIELD_COUNT];
    uint8_t dst_bits, src_bits, wgt_bits;  // of micro-ops, in this order from bit 0
    uint32_t element_bytes[BERTH_VTA_MEMORY_COUNT];
} berth_vta_isa;

// Errors: OUT_OF_RANGE the fields need more than 128 bits.
BERTH_MUST_USE berth_status berth_vta_isa_make(const berth_vta_shape *shape,
                                               berth_vta_isa *out_isa);

// Errors: OUT_OF_RANGE a value that its field does not hold; INVALID_ARGUMENT no opcode.
BERTH_MUST_USE berth_status berth_vta_encode(const berth_vta_isa *isa,
                                             const berth_vta_instruction *instruction,
                                             uint8_t out[BERTH_VTA_INSTRUCTION_BYTES]);
// Any bits decode; of an unknown opcode only the common fields. Unused bits are ignored.
berth_vta_instruction berth_vta_decode(const berth_vta_isa *isa,
                                       const uint8_t bytes[BERTH_VTA_INSTRUCTION_BYTES]);

BERTH_MUST_USE berth_status berth_vta_encode_micro_op(const berth_vta_isa *isa,
                                                      berth_vta_micro_op micro_op,
                                                      uint32_t *out_word);
berth_vta_micro_op berth_vta_decode_micro_op(const berth_vta_isa *isa, uint32_t word);

// The unit whose queue an instruction goes to.
berth_vta_unit berth_vta_unit_of(const berth_vta_instruction *instruction);

static inline int32_t berth_vta_imm(const berth_vta_instruction *instruction) {
    return (int16_t)(uint16_t)instruction->imm;
}

const char *berth_vta_unit_name(berth_vta_unit unit);  // "load"
const char *berth_vta_opcode_name(uint32_t opcode);    // "GEMM", "?"
const char *berth_vta_memory_name(uint32_t memory_type);
const char *berth_vta_alu_name(uint32_t alu_opcode);

// Adds an instruction as text, without a line break: its operation, the tokens it takes and gives,
// and every other field that is not 0, "GEMM pop(prev) push(next) uop_end=3 iter_out=4 ...".
void berth_vta_print(const berth_vta_instruction *instruction, berth_strbuf *out);

#endif  // BERTH_DRIVERS_VTA_ISA_H_
