// Any words as byte code: what berth_vm_verify accepts runs without leaving its registers, constants
// and instructions, gives back every value, and can be cancelled.
#include <stdlib.h>
#include <string.h>

#include "executor/vm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { most_words = 4096, registers = 8, parameters = 2, most_host_calls = 200 };

typedef struct host {
    berth_allocator allocator;
    atomic_uint cancelled;
    uint32_t calls;
} host;

static berth_status make_number(const host *h, int64_t value, berth_vm_value **out) {
    BERTH_TRY(berth_vm_value_tensor(h->allocator, BERTH_DTYPE_I64, 0, NULL, out));
    berth_tensor_set_i64(&(*out)->tensor, 0, value);
    return BERTH_OK;
}

// One operand, one result; counts, so that endless loops end.
static berth_status compute(void *user, uint32_t index, berth_vm_value *const *inputs,
                            berth_vm_value **outputs) {
    host *h = user;
    int64_t value = index;
    if (++h->calls > most_host_calls) atomic_store(&h->cancelled, 1);
    if (inputs[0] && inputs[0]->kind == BERTH_VM_VALUE_TENSOR &&
        berth_tensor_element_count(&inputs[0]->tensor) == 1)
        value += berth_tensor_get_i64(&inputs[0]->tensor, 0) & 0xff;
    return make_number(h, value, &outputs[0]);
}

// Loops without an operation on the host would run for ever: a jump back needs one.
static bool may_not_end(const uint32_t *code, uint32_t count) {
    for (uint32_t at = 0; at < count; at += berth_vm_length_of(code[at])) {
        berth_vm_opcode opcode = berth_vm_opcode_of(code[at]);
        bool jumps = opcode == BERTH_VM_JUMP || opcode == BERTH_VM_JUMP_UNLESS ||
                     opcode == BERTH_VM_JUMP_UNLESS_BELOW;
        if (jumps && code[at + berth_vm_length_of(code[at]) - 1] <= at) return true;
        if (opcode == BERTH_VM_CALL) return true;  // 64 levels of several calls each
    }
    return false;
}

static void run(const berth_vm_program *program, bool endless) {
    static berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    host h = {.allocator = berth_counting_allocator_get(&counting)};
    atomic_init(&h.cancelled, endless);
    berth_vm_machine machine = {.allocator = h.allocator,
                                .user = &h,
                                .run_segment = compute,
                                .run_host = compute,
                                .cancelled = &h.cancelled};
    berth_vm_value *inputs[parameters] = {NULL}, *outputs[1] = {NULL};
    for (int64_t i = 0; i < parameters; ++i)
        if (make_number(&h, 3 * i - 1, &inputs[i])) abort();
    berth_status status = berth_vm_run(&machine, program, inputs, outputs);
    if (status && outputs[0]) abort();
    berth_status_free(status);
    berth_vm_value_release(outputs[0]);
    for (uint32_t i = 0; i < parameters; ++i) berth_vm_value_release(inputs[i]);
    if (atomic_load(&counting.live_count) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint32_t code[most_words];
    uint32_t count = (uint32_t)(size / sizeof(*code));
    if (count > most_words) count = most_words;
    if (count) memcpy(code, data, count * sizeof(*code));
    int64_t numbers[2] = {0, 5};
    const berth_tensor constants[2] = {{.dtype = BERTH_DTYPE_I64, .data = &numbers[0]},
                                       {.dtype = BERTH_DTYPE_I64, .data = &numbers[1]}};
    const berth_vm_piece piece = {.name = "n", .op = "op", .input_count = 1, .output_count = 1};
    const berth_vm_function function = {.name = "main",
                                        .code = code,
                                        .code_count = count,
                                        .register_count = registers,
                                        .parameter_count = parameters,
                                        .result_count = 1};
    const char *const message = "no";
    static const berth_vm_port ports[parameters];
    const berth_vm_program program = {.name = "fuzz",
                                      .functions = &function,
                                      .function_count = 1,
                                      .constants = constants,
                                      .constant_count = 2,
                                      .segments = &piece,
                                      .segment_count = 1,
                                      .host_operations = &piece,
                                      .host_operation_count = 1,
                                      .messages = &message,
                                      .message_count = 1,
                                      .inputs = ports,
                                      .input_count = parameters,
                                      .outputs = ports,
                                      .output_count = 1};
    berth_status status = berth_vm_verify(&program);
    if (!status) run(&program, may_not_end(code, count));
    berth_status_free(status);
    return 0;
}
