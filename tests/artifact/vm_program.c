#include "tests/artifact/vm_program.h"

#include <string.h>

#include "artifact/vm.h"
#include "tests/artifact/random_program.h"

enum { alignment_bytes = 128 };

// A program like a segment's: its inputs are "input0", "input1", ....
static berth_program *segment_program(berth_arena *arena, uint64_t seed) {
    for (;; seed += 100) {
        berth_program *p = random_program(arena, seed);
        if (!p->input_count || !p->output_count || p->constant_count < 2 ||
            strcmp(p->executor, "graph") != 0)
            continue;
        berth_program_io *inputs =
            berth_arena_copy(arena, p->inputs, p->input_count * sizeof(*inputs));
        for (uint32_t i = 0; i < p->input_count; ++i)
            inputs[i].name = berth_arena_printf(arena, "input%u", i);
        p->inputs = inputs;
        return p;
    }
}

typedef struct store {
    berth_arena *arena;
    BERTH_VEC(berth_program_tensor) tensors;
    BERTH_VEC(berth_program_constant) constants;
    uint64_t size_bytes;
} store;

static void add(store *s, const void *data, uint64_t size_bytes) {
    if (size_bytes == 0) return;
    berth_program_tensor tensor = {.name = "",
                                   .layout = "",
                                   .offset_bytes = s->size_bytes,
                                   .size_bytes = size_bytes,
                                   .dtype = BERTH_DTYPE_U8,
                                   .rank = 1,
                                   .dims = {(int64_t)size_bytes}};
    berth_program_constant constant = {.tensor = s->tensors.count, .data = data};
    berth_vec_push(s->arena, &s->tensors, tensor);
    berth_vec_push(s->arena, &s->constants, constant);
    s->size_bytes += (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

static berth_tensor number(berth_arena *arena, int64_t value) {
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_I64, 0, NULL);
    berth_tensor_set_i64(&tensor, 0, value);
    return tensor;
}

static const berth_vm_program *make_code(berth_arena *arena, const berth_program *segment,
                                         const berth_tensor *constants) {
    BERTH_VEC(uint32_t) words = {0};
    uint32_t inputs = segment->input_count, outputs = segment->output_count;
    berth_vec_push(arena, &words, berth_vm_word(BERTH_VM_CONST, 3));
    berth_vec_push(arena, &words, inputs);
    berth_vec_push(arena, &words, 0);
    berth_vec_push(arena, &words, berth_vm_word(BERTH_VM_HOST, 7));
    const uint32_t host[] = {0, 1, inputs + 1, 2, inputs, BERTH_VM_NONE};
    for (uint32_t i = 0; i < 6; ++i) berth_vec_push(arena, &words, host[i]);
    berth_vec_push(arena, &words, berth_vm_word(BERTH_VM_RUN, 4 + inputs + outputs));
    berth_vec_push(arena, &words, 0);
    berth_vec_push(arena, &words, outputs);
    for (uint32_t i = 0; i < outputs; ++i) berth_vec_push(arena, &words, inputs + 2 + i);
    berth_vec_push(arena, &words, inputs);
    for (uint32_t i = 0; i < inputs; ++i) berth_vec_push(arena, &words, i);
    berth_vec_push(arena, &words, berth_vm_word(BERTH_VM_RETURN, 3));
    berth_vec_push(arena, &words, 1);
    berth_vec_push(arena, &words, inputs + 1);
    const berth_vm_function function = {.name = "main",
                                        .code = words.data,
                                        .code_count = words.count,
                                        .register_count = inputs + outputs + 2,
                                        .parameter_count = inputs,
                                        .result_count = 1};
    const berth_vm_piece pieces[] = {
        {.name = "n0+n1", .op = "a+b", .input_count = inputs, .output_count = outputs},
        {.name = "n2", .op = "add", .input_count = 2, .output_count = 1, .is_arithmetic = true}};
    berth_vm_port *ports = berth_arena_new_array(arena, berth_vm_port, inputs + 1);
    for (uint32_t i = 0; i <= inputs; ++i)
        ports[i] = (berth_vm_port){.name = berth_arena_printf(arena, "p%u", i),
                                   .type = "f32[N]",
                                   .dtype = BERTH_DTYPE_F32,
                                   .rank = 1,
                                   .dims = {-1},
                                   .is_tensor = true};
    static const char *const messages[] = {"node \"n3\" is not supported"};
    const berth_vm_program code = {
        .name = "vm",
        .functions = berth_arena_copy(arena, &function, sizeof(function)),
        .function_count = 1,
        .constants = constants,
        .constant_count = 1,
        .segments = berth_arena_copy(arena, pieces, sizeof(pieces)),
        .segment_count = 1,
        .host_operations =
            (const berth_vm_piece *)berth_arena_copy(arena, &pieces[1], sizeof(pieces[1])),
        .host_operation_count = 1,
        .messages = messages,
        .message_count = 1,
        .inputs = ports,
        .input_count = inputs,
        .outputs = ports + inputs,
        .output_count = 1};
    return berth_arena_copy(arena, &code, sizeof(code));
}

static const berth_tensor *types_of(berth_arena *arena, const berth_program *segment) {
    berth_tensor *types = berth_arena_new_array(arena, berth_tensor, segment->input_count + 1);
    for (uint32_t i = 0; i < segment->input_count; ++i) {
        const berth_program_tensor *held = &segment->tensors[segment->inputs[i].tensor];
        types[i] = (berth_tensor){.dtype = held->dtype, .rank = held->rank};
        memcpy(types[i].dims, held->dims, sizeof(held->dims));
    }
    return types;
}

berth_program *vm_program(berth_arena *arena, uint64_t seed) {
    const berth_program *segment = segment_program(arena, seed);
    berth_tensor *numbers = berth_arena_new_array(arena, berth_tensor, 3);
    for (int i = 0; i < 3; ++i) numbers[i] = number(arena, 1000 + i);
    berth_tensor *operands = berth_arena_new_array(arena, berth_tensor, 2);
    operands[0] = numbers[1];  // the other one is left out
    store s = {.arena = arena};
    for (uint32_t i = 0; i < segment->constant_count; ++i)
        add(&s, segment->constants[i].data,
            segment->tensors[segment->constants[i].tensor].size_bytes);
    for (int i = 0; i < 3; ++i) add(&s, numbers[i].data, sizeof(int64_t));
    const berth_vm_variant variants[] = {
        {.piece = 0, .inputs = types_of(arena, segment), .program = segment},
        {.piece = 0, .inputs = types_of(arena, segment), .program = segment},
        {.piece = 1, .inputs = operands, .results = &numbers[2]}};
    const berth_vm_body body = {.code = make_code(arena, segment, numbers),
                                .variants = berth_arena_copy(arena, variants, sizeof(variants)),
                                .variant_count = 3};
    static const berth_program_device device = {
        .name = "cpu:0", .kind = "cpu", .target_json = "{}"};
    const berth_program_pool pool = {.scope = "global",
                                     .usage = BERTH_POOL_STORE,
                                     .size_bytes = s.size_bytes,
                                     .alignment_bytes = alignment_bytes};
    const berth_program program = {.name = "vm",
                                   .target_json = "{}",
                                   .devices = &device,
                                   .device_count = 1,
                                   .pools = berth_arena_copy(arena, &pool, sizeof(pool)),
                                   .pool_count = 1,
                                   .tensors = s.tensors.data,
                                   .tensor_count = s.tensors.count,
                                   .constants = s.constants.data,
                                   .constant_count = s.constants.count,
                                   .vm = berth_arena_copy(arena, &body, sizeof(body)),
                                   .executor = "vm"};
    return berth_arena_copy(arena, &program, sizeof(program));
}
