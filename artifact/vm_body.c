// Checks of what a program file says about its byte code and its compiled segments.
#include <string.h>

#include "artifact/program.h"
#include "artifact/vm.h"

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

// A register is a pointer in memory for each call that is under way.
enum { most_registers = 1 << 20 };

static berth_status check_tensor(const berth_tensor *tensor) {
    size_t size_bytes = 0;
    if (berth_dtype_size_bytes(tensor->dtype) == 0)
        return BAD("element type %u is unknown", (unsigned)tensor->dtype);
    BERTH_TRY(berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, NULL, &size_bytes));
    return BERTH_OK;
}

// One whose data is needed.
static berth_status check_value(const berth_tensor *tensor) {
    BERTH_TRY(check_tensor(tensor));
    if (!tensor->data && berth_tensor_size_bytes(tensor)) return BAD("its data is missing");
    return BERTH_OK;
}

static berth_status check_code(const berth_vm_program *code) {
    for (uint32_t i = 0; i < code->constant_count; ++i)
        BERTH_TRY(berth_status_prefix(check_value(&code->constants[i]), "constants[%u]", i));
    for (uint32_t i = 0; i < code->function_count; ++i)
        if (code->functions[i].register_count > most_registers)
            return BAD("functions[%u]: %u registers; at most %d", i,
                       code->functions[i].register_count, most_registers);
    for (uint32_t i = 0; i < code->input_count + code->output_count; ++i) {
        bool is_input = i < code->input_count;
        const berth_vm_port *port =
            is_input ? &code->inputs[i] : &code->outputs[i - code->input_count];
        if (port->kind > 3)
            return BAD("%s \"%s\" is a value of kind %u", is_input ? "input" : "output", port->name,
                       port->kind);
        if (port->rank < -1 || port->rank > BERTH_MAX_RANK)
            return BAD("%s \"%s\" has rank %d", is_input ? "input" : "output", port->name,
                       port->rank);
    }
    return berth_vm_verify(code);
}

uint32_t berth_vm_variant_input(const berth_vm_variant *variant, uint32_t index) {
    static const char prefix[] = "input";
    const char *name = variant->program->inputs[index].name;
    uint32_t number = 0;
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) return UINT32_MAX;
    const char *digits = name + sizeof(prefix) - 1;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 6 || digits[length]) return UINT32_MAX;
    for (const char *c = digits; *c; ++c) number = 10 * number + (uint32_t)(*c - '0');
    return number;
}

static berth_status check_program(const berth_vm_variant *variant, const berth_vm_piece *piece) {
    const berth_program *program = variant->program;
    uint32_t next = 0;
    if (program->vm || strcmp(program->executor, "graph") != 0)
        return BAD("its executor is \"%s\", not \"graph\"", program->executor);
    for (uint32_t i = 0; i < program->input_count; ++i) {
        uint32_t index = berth_vm_variant_input(variant, i);
        const berth_program_tensor *held = &program->tensors[program->inputs[i].tensor];
        if (index < next || index >= piece->input_count)
            return BAD("input \"%s\" of its program is none of the %u there are, or out of order",
                       program->inputs[i].name, piece->input_count);
        const berth_tensor *input = &variant->inputs[index];
        next = index + 1;
        if (held->dtype != input->dtype || held->rank != input->rank ||
            memcmp(held->dims, input->dims, (size_t)held->rank * sizeof(*held->dims)) != 0)
            return BAD("input \"%s\" of its program is of another type", program->inputs[i].name);
    }
    if (program->output_count != piece->output_count)
        return BAD("its program has %u outputs, not %u", program->output_count,
                   piece->output_count);
    return BERTH_OK;
}

static berth_status check_variant(const berth_vm_body *body, const berth_vm_variant *variant) {
    const berth_vm_program *code = body->code;
    uint32_t count = code->segment_count + code->host_operation_count;
    if (variant->piece >= count) return BAD("piece %u of %u", variant->piece, count);
    const berth_vm_piece *piece = berth_vm_piece_at(code, variant->piece);
    for (uint32_t i = 0; i < piece->input_count; ++i) {
        const berth_tensor *input = &variant->inputs[i];
        if (input->dtype == BERTH_DTYPE_NONE && input->data) return BAD("inputs[%u]: no type", i);
        if (input->dtype != BERTH_DTYPE_NONE)
            BERTH_TRY(berth_status_prefix(check_tensor(input), "inputs[%u]", i));
    }
    if (variant->program) return check_program(variant, piece);
    if (!variant->results && piece->output_count) return BAD("it has no program, and no results");
    for (uint32_t i = 0; i < piece->output_count; ++i)
        BERTH_TRY(berth_status_prefix(check_value(&variant->results[i]), "results[%u]", i));
    return BERTH_OK;
}

berth_status berth_vm_body_verify(const berth_vm_body *body) {
    if (!body->code) return BAD("byte code is missing");
    BERTH_TRY(check_code(body->code));
    for (uint32_t i = 0; i < body->variant_count; ++i)
        BERTH_TRY(berth_status_prefix(check_variant(body, &body->variants[i]), "variants[%u]", i));
    return BERTH_OK;
}
