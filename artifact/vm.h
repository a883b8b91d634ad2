// Programs of the virtual machine: byte code for models whose control flow or shapes depend on data.
// Straight-line parts are segments, which whoever runs the code compiles for the shapes that come
// (executor/vm.h); what decides shapes and branches is computed on the host.
//
// The code of a function is an array of words; vm_isa.def says what instructions there are. All of it
// is plain, immutable data, checked before it runs (berth_vm_verify), so that no code can make the
// interpreter leave its registers, constants or instructions.
#ifndef BERTH_ARTIFACT_VM_H_
#define BERTH_ARTIFACT_VM_H_

#include "base/str.h"
#include "base/tensor.h"

struct berth_program;
struct berth_vm_family;

typedef enum berth_vm_opcode {
#define BERTH_VM_OP(id, name, operands) BERTH_VM_##id,
#include "artifact/vm_isa.def"
#undef BERTH_VM_OP
    BERTH_VM_OPCODE_COUNT
} berth_vm_opcode;

#define BERTH_VM_NONE UINT32_MAX  // an operand left out

typedef struct berth_vm_instruction_facts {
    char name[20];
    char operands[8];  // letters of vm_isa.def
} berth_vm_instruction_facts;

const berth_vm_instruction_facts *berth_vm_instruction(berth_vm_opcode opcode);

static inline uint32_t berth_vm_word(berth_vm_opcode opcode, uint32_t length) {
    return (uint32_t)opcode | length << 8;
}
static inline berth_vm_opcode berth_vm_opcode_of(uint32_t word) {
    return (berth_vm_opcode)(word & 0xff);
}
static inline uint32_t berth_vm_length_of(uint32_t word) {
    return word >> 8;
}

// Registers 0 .. parameter_count - 1 hold the arguments at first, the others nothing.
typedef struct berth_vm_function {
    const char *name;
    const uint32_t *code;
    uint32_t code_count;  // words
    uint32_t register_count;
    uint32_t parameter_count;
    uint32_t result_count;
} berth_vm_function;

// A segment or a host operation, as byte code sees it.
typedef struct berth_vm_piece {
    const char *name;  // nodes it comes from
    const char *op;    // their operators
    uint32_t input_count;
    uint32_t output_count;
    bool is_arithmetic;  // a host operation on a few integers; else it computes or moves data
} berth_vm_piece;

typedef struct berth_vm_port {
    const char *name;
    const char *type;  // as the model declares it: "f32[batch,3,224,224]"
    berth_dtype dtype;
    int rank;                                             // -1 = any
    int64_t dims[BERTH_MAX_RANK];                         // -1 = any, or what lies within bounds:
    int64_t least[BERTH_MAX_RANK], most[BERTH_MAX_RANK];  // both 0: there are none
    bool is_tensor;                                       // else a sequence or an optional value
    // 0 a tensor, 1 a sequence of tensors, 2 a tensor or nothing, 3 a sequence of them or nothing: as
    // attributes "input_kinds" and "output_kinds" of an imported @main say
    uint32_t kind;
    uint32_t state;  // of an input: 0, or 1 + the output that is its value in the next run
    // Of an input's dimensions: 0, or 1 + BERTH_MAX_RANK * input + dimension of the first that the model declares alike.
    uint32_t same_as[BERTH_MAX_RANK];
} berth_vm_port;

typedef struct berth_vm_program {
    const char *name;
    const berth_vm_function *functions;  // the first one is the model
    uint32_t function_count;
    const berth_tensor *constants;
    uint32_t constant_count;
    const berth_vm_piece *segments;
    uint32_t segment_count;
    const berth_vm_piece *host_operations;
    uint32_t host_operation_count;
    const char *const *messages;
    uint32_t message_count;
    const berth_vm_port *inputs;
    uint32_t input_count;
    const berth_vm_port *outputs;
    uint32_t output_count;
} berth_vm_program;

// A segment or host operation as a program file has it: compiled for inputs of certain types, or, where
// these decide all of its results, the results themselves.
typedef struct berth_vm_variant {
    uint32_t piece;  // a segment; from segment_count on a host operation
    // Per input of the piece. Element type NONE: the operand is left out. With data: its value decides
    // shapes, and the variant is for this value alone.
    const berth_tensor *inputs;
    const struct berth_program *program;  // or, where it is NULL:
    const berth_tensor *results;          // per output of the piece
} berth_vm_variant;

// What a program of the executor "vm" has instead of steps.
typedef struct berth_vm_body {
    const berth_vm_program *code;
    const berth_vm_variant *variants;
    uint32_t variant_count;
    const struct berth_vm_family *families;  // programs for many shapes (artifact/family.h)
    uint32_t family_count;
} berth_vm_body;

static inline const berth_vm_piece *berth_vm_piece_at(const berth_vm_program *code,
                                                      uint32_t index) {
    return index < code->segment_count ? &code->segments[index]
                                       : &code->host_operations[index - code->segment_count];
}

// Which input of its piece input `index` of a variant's program is ("input3" is the fourth); its inputs
// are in that order, and those that it does not need are left out. UINT32_MAX: none.
uint32_t berth_vm_variant_input(const berth_vm_variant *variant, uint32_t index);

// That a variant is of a piece, has its inputs and outputs, and a program that takes and gives them.
BERTH_MUST_USE berth_status berth_vm_variant_verify(const berth_vm_body *body,
                                                    const berth_vm_variant *variant);

// Checks the byte code (berth_vm_verify) and families, and that each variant is of a piece, has its inputs and outputs, and
// a program that takes and gives them (verified by whoever calls this). Errors: INVALID_ARGUMENT naming
// the record.
BERTH_MUST_USE berth_status berth_vm_body_verify(const berth_vm_body *body);

// Checks that every instruction is whole and known, that registers, constants, segments, functions
// and messages exist, that counts of operands fit, that jumps lead to instructions, and that no code
// runs past its end. O(words). Allocates from the system's allocator for the time of the call.
// Errors: INVALID_ARGUMENT with function and word; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_verify(const berth_vm_program *program);

// The code as text, an instruction per line. The program must be verified. Inside berth_arena_try of
// the buffer's arena.
void berth_vm_print(const berth_vm_program *program, berth_strbuf *out);

#endif  // BERTH_ARTIFACT_VM_H_
