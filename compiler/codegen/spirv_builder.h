// Builds one SPIR-V module: a compute shader with one entry point. Sections are kept apart and put
// in the order that the specification wants when the module is finished; types and constants exist
// once; pure instructions with equal operands are one instruction where the first dominates
// (scopes). Everything lives in an arena.
//
//   berth_spirv *m = berth_spirv_create(arena);
//   uint32_t sum = berth_spirv_op(m, SPIRV_FAdd, SPIRV_TYPE_F32, a, b);
//   berth_spirv_finish(m, &words, &count);
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_BUILDER_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_BUILDER_H_

#include "base/arena.h"
#include "base/str.h"

typedef enum berth_spirv_opcode {
#define SPIRV_OP(name, number, has_type, has_result, pure) SPIRV_##name = number,
#include "compiler/codegen/spirv_ops.def"
#undef SPIRV_OP
} berth_spirv_opcode;

// Types of values and of elements in memory. Integers have no sign: instructions do.
typedef enum berth_spirv_type {
    SPIRV_TYPE_VOID,
    SPIRV_TYPE_BOOL,
    SPIRV_TYPE_U8,  // in memory only
    SPIRV_TYPE_U16,
    SPIRV_TYPE_U32,
    SPIRV_TYPE_U64,
    SPIRV_TYPE_F16,  // of devices with the feature float16
    SPIRV_TYPE_F32,
    SPIRV_TYPE_F64,
    SPIRV_TYPE_COUNT
} berth_spirv_type;

// What the specification numbers and we use.
enum {
    SPIRV_STORAGE_INPUT = 1,
    SPIRV_STORAGE_WORKGROUP = 4,
    SPIRV_STORAGE_FUNCTION = 7,
    SPIRV_STORAGE_PUSH_CONSTANT = 9,
    SPIRV_STORAGE_BUFFER = 12,
    SPIRV_STORAGE_PHYSICAL = 5349,
    SPIRV_CAPABILITY_SHADER = 1,
    SPIRV_CAPABILITY_FLOAT16 = 9,
    SPIRV_CAPABILITY_FLOAT64 = 10,
    SPIRV_CAPABILITY_INT64 = 11,
    SPIRV_CAPABILITY_INT16 = 22,
    SPIRV_CAPABILITY_INT8 = 39,
    SPIRV_CAPABILITY_SUBGROUPS = 61,
    SPIRV_CAPABILITY_SUBGROUP_ARITHMETIC = 63,
    SPIRV_CAPABILITY_STORAGE_16 = 4433,
    SPIRV_CAPABILITY_STORAGE_8 = 4448,
    SPIRV_CAPABILITY_KEEP_DENORMALS = 4464,  // DenormPreserve
    SPIRV_CAPABILITY_KEEP_SPECIAL = 4466,    // SignedZeroInfNanPreserve
    SPIRV_CAPABILITY_ROUND_EVEN = 4467,      // RoundingModeRTE
    SPIRV_CAPABILITY_MEMORY_MODEL = 5345,    // VulkanMemoryModel
    SPIRV_CAPABILITY_PHYSICAL = 5347,
    SPIRV_CAPABILITY_COOPERATIVE_MATRIX = 6022,
    SPIRV_DECORATION_BLOCK = 2,
    SPIRV_DECORATION_ARRAY_STRIDE = 6,
    SPIRV_DECORATION_BUILT_IN = 11,
    SPIRV_DECORATION_NON_WRITABLE = 24,
    SPIRV_DECORATION_NON_READABLE = 25,
    SPIRV_DECORATION_OFFSET = 35,
    SPIRV_DECORATION_NO_CONTRACTION = 42,
    SPIRV_BUILT_IN_WORKGROUP_ID = 26,
    SPIRV_BUILT_IN_LOCAL_ID = 27,
    SPIRV_BUILT_IN_SUBGROUP_ID = 40,
    SPIRV_MODE_KEEP_DENORMALS = 4459,
    SPIRV_MODE_KEEP_SPECIAL = 4461,
    SPIRV_MODE_ROUND_EVEN = 4462,
    SPIRV_MODE_LOCAL_SIZE = 17,
    SPIRV_MEMORY_ALIGNED = 2,
    SPIRV_MEMORY_NON_PRIVATE =
        0x20,  // seen by others: in the Vulkan memory model it has to be said
    SPIRV_SCOPE_WORKGROUP = 2,
    SPIRV_SCOPE_SUBGROUP = 3,
    SPIRV_GROUP_REDUCE = 0,
    SPIRV_GROUP_EXCLUSIVE_SCAN = 2,
    SPIRV_ORDER_LOCAL = 0x108,      // AcquireRelease of workgroup memory
    SPIRV_ORDER_SHOW_ALL = 0x6000,  // MakeAvailable, MakeVisible: the Vulkan memory model
};
// Instructions of GLSL.std.450.
enum {
    SPIRV_GLSL_ROUND_EVEN = 2,
    SPIRV_GLSL_TRUNC = 3,
    SPIRV_GLSL_FABS = 4,
    SPIRV_GLSL_FLOOR = 8,
    SPIRV_GLSL_CEIL = 9,
    SPIRV_GLSL_SQRT = 31,
    SPIRV_GLSL_FMA = 50,
};

typedef BERTH_VEC(uint32_t) berth_spirv_words;

typedef struct berth_spirv berth_spirv;

berth_spirv *berth_spirv_create(berth_arena *arena);
berth_arena *berth_spirv_arena(const berth_spirv *m);

// ---- declarations, each once ----
void berth_spirv_capability(berth_spirv *m, uint32_t capability);
void berth_spirv_extension(berth_spirv *m, const char *name);
uint32_t berth_spirv_type_id(berth_spirv *m, berth_spirv_type type);
bool berth_spirv_has_type(const berth_spirv *m, berth_spirv_type type);  // was it asked for
// An execution mode of the entry point that goes for floats of `bits`, which needs `capability`.
void berth_spirv_float_mode(berth_spirv *m, uint32_t mode, uint32_t bits, uint32_t capability);
uint32_t berth_spirv_pointer(berth_spirv *m, uint32_t storage, uint32_t pointee);
uint32_t berth_spirv_array(berth_spirv *m, uint32_t element, uint32_t count);
// A type that is never shared (structures and arrays with a layout): op and operands after the id.
uint32_t berth_spirv_new_type(berth_spirv *m, berth_spirv_opcode op, const uint32_t *operands,
                              uint32_t count);
uint32_t berth_spirv_int(berth_spirv *m, berth_spirv_type type, uint64_t value);
uint32_t berth_spirv_float(berth_spirv *m, berth_spirv_type type, double value);
uint32_t berth_spirv_bool(berth_spirv *m, bool value);
// The value of an integer constant; false when the id is none.
bool berth_spirv_int_value(const berth_spirv *m, uint32_t id, uint64_t *out_value);
// A global variable (not in Function storage), listed in the entry point's interface.
uint32_t berth_spirv_global(berth_spirv *m, uint32_t pointer_type, uint32_t storage);
void berth_spirv_name(berth_spirv *m, uint32_t id, const char *name);
void berth_spirv_string(berth_spirv *m, const char *text);  // OpString: for people and drivers
void berth_spirv_decorate(berth_spirv *m, uint32_t id, uint32_t decoration);
void berth_spirv_decorate_with(berth_spirv *m, uint32_t id, uint32_t decoration, uint32_t value);
void berth_spirv_decorate_member(berth_spirv *m, uint32_t id, uint32_t member, uint32_t decoration,
                                 int64_t value);  // value < 0: it takes none

// ---- code ----
uint32_t berth_spirv_new_id(berth_spirv *m);
// An instruction with a result of `type`, of id operands.
uint32_t berth_spirv_emit(berth_spirv *m, berth_spirv_opcode op, uint32_t type_id,
                          const uint32_t *operands, uint32_t count);
uint32_t berth_spirv_unary(berth_spirv *m, berth_spirv_opcode op, berth_spirv_type type,
                           uint32_t a);
uint32_t berth_spirv_binary(berth_spirv *m, berth_spirv_opcode op, berth_spirv_type type,
                            uint32_t a, uint32_t b);
// Between f32 and f16 in registers. To f16 and back is what was there before, without code.
uint32_t berth_spirv_from_f16(berth_spirv *m, uint32_t a);
uint32_t berth_spirv_to_f16(berth_spirv *m, uint32_t a);  // as the mode of the module rounds
uint32_t berth_spirv_select(berth_spirv *m, berth_spirv_type type, uint32_t condition, uint32_t a,
                            uint32_t b);
uint32_t berth_spirv_glsl(berth_spirv *m, uint32_t instruction, berth_spirv_type type,
                          const uint32_t *operands, uint32_t count);
// An instruction without a result, operands as they are.
void berth_spirv_plain(berth_spirv *m, berth_spirv_opcode op, const uint32_t *operands,
                       uint32_t count);
// A variable of the function (declared at its start).
uint32_t berth_spirv_local(berth_spirv *m, uint32_t pointee);

// Blocks. What is computed in a scope is not used after it.
void berth_spirv_open_scope(berth_spirv *m);
void berth_spirv_close_scope(berth_spirv *m);
void berth_spirv_label(berth_spirv *m, uint32_t id);
uint32_t berth_spirv_block(const berth_spirv *m);  // label of the block being written
void berth_spirv_branch(berth_spirv *m, uint32_t label);

typedef struct berth_spirv_if {
    uint32_t merge;
    uint32_t other;
    bool has_else;
} berth_spirv_if;
berth_spirv_if berth_spirv_open_if(berth_spirv *m, uint32_t condition);
void berth_spirv_else(berth_spirv *m, berth_spirv_if *at);
void berth_spirv_close_if(berth_spirv *m, berth_spirv_if *at);
// Value after an if: `a` from block a_block, `b` from block b_block.
uint32_t berth_spirv_phi(berth_spirv *m, berth_spirv_type type, uint32_t a, uint32_t a_block,
                         uint32_t b, uint32_t b_block);

// A loop over [0, limit): the counter is at.counter, of type `type`.
typedef struct berth_spirv_loop {
    uint32_t counter, next, header, proceed, merge;
    berth_spirv_type type;
} berth_spirv_loop;
berth_spirv_loop berth_spirv_open_loop(berth_spirv *m, berth_spirv_type type, uint32_t limit);
void berth_spirv_close_loop(berth_spirv *m, const berth_spirv_loop *at);

// A helper function beside main, made once per name. open_function returns false when it exists;
// else its body is to be written, ended by close_function. *out_id is the function's id.
bool berth_spirv_open_function(berth_spirv *m, const char *name, berth_spirv_type result,
                               const berth_spirv_type *parameters, uint32_t parameter_count,
                               uint32_t *out_id, uint32_t *out_parameters);
void berth_spirv_close_function(berth_spirv *m, uint32_t result);
uint32_t berth_spirv_call(berth_spirv *m, uint32_t function, berth_spirv_type result,
                          const uint32_t *arguments, uint32_t count);

// Words of the whole module, in the Vulkan memory model where it has that capability; `entry` is the name of its one entry point.
void berth_spirv_finish(berth_spirv *m, const char *entry, const uint32_t local_size[3],
                        berth_spirv_words *out_words);

// Assembly for people, in the manner of the SPIR-V specification's examples.
void berth_spirv_print(const uint32_t *words, size_t count, berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_BUILDER_H_
