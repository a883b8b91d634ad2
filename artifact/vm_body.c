// Checks of what a program file says about its byte code and its compiled segments.
#include <string.h>

#include "artifact/family.h"
#include "artifact/file_form.h"
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
    if (!tensor->data && berth_tensor_size_bytes(tensor)) return BAD("no data");
    return BERTH_OK;
}

static berth_status check_ports(const char *what, const berth_vm_port *ports, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (ports[i].kind > 3 || ports[i].rank < -1 || ports[i].rank > BERTH_MAX_RANK)
            return BAD("%s[%u]: kind %u, rank %d", what, i, ports[i].kind, ports[i].rank);
    return BERTH_OK;
}

static berth_status check_code(const berth_vm_program *code) {
    for (uint32_t i = 0; i < code->constant_count; ++i)
        BERTH_TRY(berth_status_prefix(check_value(&code->constants[i]), "constants[%u]", i));
    for (uint32_t i = 0; i < code->function_count; ++i)
        if (code->functions[i].register_count > most_registers)
            return BAD("functions[%u]: %u registers", i, code->functions[i].register_count);
    BERTH_TRY(check_ports("inputs", code->inputs, code->input_count));
    BERTH_TRY(check_ports("outputs", code->outputs, code->output_count));
    for (uint32_t i = 0; i < code->input_count; ++i)
        if (code->inputs[i].state > code->output_count)
            return BAD("inputs[%u].state: %u", i, code->inputs[i].state);
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
    if (strcmp(program->executor, "graph") != 0) return BAD("executor \"%s\"", program->executor);
    for (uint32_t i = 0; i < program->input_count; ++i) {
        uint32_t index = berth_vm_variant_input(variant, i);
        const berth_program_tensor *held = &program->tensors[program->inputs[i].tensor];
        if (index < next || index >= piece->input_count)
            return BAD("input \"%s\" of its program is none of it", program->inputs[i].name);
        const berth_tensor *input = &variant->inputs[index];
        next = index + 1;
        if (held->dtype != input->dtype || held->rank != input->rank ||
            memcmp(held->dims, input->dims, (size_t)held->rank * sizeof(*held->dims)) != 0)
            return BAD("input \"%s\" is of another type", program->inputs[i].name);
    }
    if (program->output_count != piece->output_count)
        return BAD("%u outputs, not %u", program->output_count, piece->output_count);
    return BERTH_OK;
}

berth_status berth_vm_variant_verify(const berth_vm_body *body, const berth_vm_variant *variant) {
    const berth_vm_program *code = body->code;
    uint32_t count = code->segment_count + code->host_operation_count;
    if (variant->piece >= count) return BAD("piece %u of %u", variant->piece, count);
    const berth_vm_piece *piece = berth_vm_piece_at(code, variant->piece);
    for (uint32_t i = 0; i < piece->input_count; ++i) {
        const berth_tensor *input = &variant->inputs[i];
        if (input->dtype != BERTH_DTYPE_NONE || input->data)
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
        BERTH_TRY(berth_status_prefix(berth_vm_variant_verify(body, &body->variants[i]),
                                      "variants[%u]", i));
    for (uint32_t i = 0; i < body->family_count; ++i)
        BERTH_TRY(berth_status_prefix(berth_vm_family_verify(body, &body->families[i]),
                                      "families[%u]", i));
    return BERTH_OK;
}

berth_status berth_artifact__read_tensor(const berth_program *program,
                                         const berth_file_vm_tensor *in, berth_tensor *out) {
    *out = (berth_tensor){.dtype = (berth_dtype)in->dtype, .rank = in->rank};
    if (in->rank < 0 || in->rank > BERTH_MAX_RANK) return BAD("rank %d", in->rank);
    memcpy(out->dims, in->dims, sizeof(out->dims));
    if (in->constant == 0) return BERTH_OK;
    if (in->constant > program->constant_count)
        return BAD("constant %u of %u", in->constant - 1, program->constant_count);
    const berth_program_constant *constant = &program->constants[in->constant - 1];
    size_t size_bytes = 0;
    BERTH_TRY(berth_shape_size_bytes(out->dtype, out->rank, out->dims, NULL, &size_bytes));
    if (program->tensors[constant->tensor].size_bytes != size_bytes)
        return BAD("constant %u has another size", in->constant - 1);
    union {
        const void *constant;
        void *data;
    } bytes = {.constant = constant->data};  // nobody writes to it: byte code borrows it
    out->data = bytes.data;
    return BERTH_OK;
}
