#include "artifact/vm.h"

#include <string.h>

#include "base/alloc.h"

static const berth_vm_instruction_facts instructions[BERTH_VM_OPCODE_COUNT] = {
#define BERTH_VM_OP(id, name, operands) {name, operands},
#include "artifact/vm_isa.def"
#undef BERTH_VM_OP
};

const berth_vm_instruction_facts *berth_vm_instruction(berth_vm_opcode opcode) {
    return opcode < BERTH_VM_OPCODE_COUNT ? &instructions[opcode] : NULL;
}

// ---- verifier -----------------------------------------------------------------------------------

typedef struct checker {
    const berth_vm_program *program;
    const berth_vm_function *function;
    uint32_t at;      // the instruction that is looked at
    uint8_t *begins;  // per word: an instruction begins here
} checker;

static berth_status wrong(const checker *c, const char *what, uint32_t value, uint32_t limit) {
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "byte code of @%s, word %u: %s %u, of which there are %u",
                             c->function->name, c->at, what, value, limit);
}

static berth_status check_register(const checker *c, uint32_t value, bool optional) {
    if (optional && value == BERTH_VM_NONE) return BERTH_OK;
    if (value < c->function->register_count) return BERTH_OK;
    return wrong(c, "register", value, c->function->register_count);
}

// Registers of the list at word `at`; *out_count of them.
static berth_status check_list(const checker *c, uint32_t at, uint32_t end, bool optional,
                               uint32_t *out_count) {
    const uint32_t *code = c->function->code;
    *out_count = at < end ? code[at] : 0;
    if (at >= end || *out_count > end - at - 1) return wrong(c, "a list up to word", at, end);
    for (uint32_t i = 0; i < *out_count; ++i)
        BERTH_TRY(check_register(c, code[at + 1 + i], optional));
    return BERTH_OK;
}

static uint32_t limit_of(const checker *c, char letter) {
    switch (letter) {
    case 'k': return c->program->constant_count;
    case 'g': return c->program->segment_count;
    case 'h': return c->program->host_operation_count;
    case 'f': return c->program->function_count;
    case 'x': return c->program->message_count;
    case 't': return c->function->code_count;
    default: return UINT32_MAX;  // numbers
    }
}

static const char *noun_of(char letter) {
    switch (letter) {
    case 'k': return "constant";
    case 'g': return "segment";
    case 'h': return "host operation";
    case 'f': return "function";
    case 'x': return "message";
    default: return "a jump to word";
    }
}

// What the lists of a run, host, call or return must have.
static berth_status check_counts(const checker *c, berth_vm_opcode opcode,
                                 const uint32_t counts[2]) {
    uint32_t index = c->function->code[c->at + 1];
    uint32_t outputs = 0, inputs = 0;
    const berth_vm_program *program = c->program;
    switch (opcode) {
    case BERTH_VM_RUN:
        outputs = program->segments[index].output_count;
        inputs = program->segments[index].input_count;
        break;
    case BERTH_VM_HOST:
        outputs = program->host_operations[index].output_count;
        inputs = program->host_operations[index].input_count;
        break;
    case BERTH_VM_CALL:
        outputs = program->functions[index].result_count;
        inputs = program->functions[index].parameter_count;
        break;
    case BERTH_VM_RETURN:
        if (counts[0] == c->function->result_count) return BERTH_OK;
        return wrong(c, "results:", counts[0], c->function->result_count);
    default: return BERTH_OK;
    }
    if (counts[0] != outputs) return wrong(c, "results:", counts[0], outputs);
    if (counts[1] != inputs) return wrong(c, "operands:", counts[1], inputs);
    return BERTH_OK;
}

static berth_status check_operands(const checker *c, berth_vm_opcode opcode, uint32_t end) {
    const uint32_t *code = c->function->code;
    uint32_t at = c->at + 1, counts[2] = {0}, lists = 0;
    for (const char *letter = instructions[opcode].operands; *letter; ++letter) {
        if (at >= end) return wrong(c, "an instruction that needs word", at, end);
        if (*letter == 'D' || *letter == 'S') {
            BERTH_TRY(
                check_list(c, at, end, *letter == 'S' && opcode == BERTH_VM_HOST, &counts[lists]));
            at += 1 + counts[lists++];
            continue;
        }
        if (strchr("dsmo", *letter))
            BERTH_TRY(check_register(c, code[at], *letter == 'o'));
        else if (code[at] >= limit_of(c, *letter) && *letter != 'i')
            return wrong(c, noun_of(*letter), code[at], limit_of(c, *letter));
        at++;
    }
    if (at != end) return wrong(c, "an instruction that ends at word", at, end);
    return check_counts(c, opcode, counts);
}

static bool ends_code(berth_vm_opcode opcode) {
    return opcode == BERTH_VM_RETURN || opcode == BERTH_VM_JUMP || opcode == BERTH_VM_FAIL;
}

static berth_status check_instructions(checker *c) {
    const berth_vm_function *function = c->function;
    berth_vm_opcode last = BERTH_VM_OPCODE_COUNT;
    for (c->at = 0; c->at < function->code_count;) {
        uint32_t word = function->code[c->at];
        uint32_t length = berth_vm_length_of(word);
        last = berth_vm_opcode_of(word);
        if (last >= BERTH_VM_OPCODE_COUNT) return wrong(c, "opcode", last, BERTH_VM_OPCODE_COUNT);
        if (length == 0 || length > function->code_count - c->at)
            return wrong(c, "an instruction of words:", length, function->code_count - c->at);
        BERTH_TRY(check_operands(c, last, c->at + length));
        c->begins[c->at] = 1;
        c->at += length;
    }
    if (last == BERTH_VM_OPCODE_COUNT || !ends_code(last))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "byte code of @%s runs past its end",
                                 function->name);
    return BERTH_OK;
}

// The only operand of kind 't' is the last one.
static berth_status check_jumps(checker *c) {
    const berth_vm_function *function = c->function;
    for (c->at = 0; c->at < function->code_count;) {
        uint32_t length = berth_vm_length_of(function->code[c->at]);
        berth_vm_opcode opcode = berth_vm_opcode_of(function->code[c->at]);
        uint32_t target = function->code[c->at + length - 1];
        if (strchr(instructions[opcode].operands, 't') && !c->begins[target])
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "byte code of @%s, word %u: a jump into the middle of an "
                                     "instruction (word %u)",
                                     function->name, c->at, target);
        c->at += length;
    }
    return BERTH_OK;
}

static berth_status check_function(const berth_vm_program *program,
                                   const berth_vm_function *function) {
    checker c = {.program = program, .function = function};
    berth_allocator allocator = berth_allocator_system();
    if (function->parameter_count > function->register_count)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "byte code of @%s has %u parameters and %u registers",
            function->name, function->parameter_count, function->register_count);
    c.begins = berth_calloc(allocator, (size_t)function->code_count + 1, 1);
    if (!c.begins) return berth_status_oom();
    berth_status status = check_instructions(&c);
    if (!status) status = check_jumps(&c);
    berth_free(allocator, c.begins, (size_t)function->code_count + 1);
    return status;
}

berth_status berth_vm_verify(const berth_vm_program *program) {
    if (program->function_count == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "byte code without a function");
    const berth_vm_function *model = &program->functions[0];
    if (model->parameter_count != program->input_count ||
        model->result_count != program->output_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the model has %u inputs and %u outputs, its byte code %u and %u",
                                 program->input_count, program->output_count,
                                 model->parameter_count, model->result_count);
    for (uint32_t i = 0; i < program->function_count; ++i)
        BERTH_TRY(check_function(program, &program->functions[i]));
    return BERTH_OK;
}

// ---- printer ------------------------------------------------------------------------------------

static void print_register(berth_strbuf *out, uint32_t value) {
    if (value == BERTH_VM_NONE)
        berth_strbuf_add(out, " -");
    else
        berth_strbuf_addf(out, " r%u", value);
}

static void print_constant(const berth_vm_program *program, uint32_t index, berth_strbuf *out) {
    const berth_tensor *tensor = &program->constants[index];
    char shape[192];
    berth_tensor_format_shape(tensor, shape);
    berth_strbuf_addf(out, " k%u (%s", index, shape);
    if (berth_tensor_element_count(tensor) == 1)
        berth_strbuf_addf(out, " %g", berth_tensor_get_f64(tensor, 0));
    berth_strbuf_add(out, ")");
}

static void print_piece(const berth_vm_piece *piece, char letter, uint32_t index,
                        berth_strbuf *out) {
    berth_strbuf_addf(out, " %c%u (%s)", letter, index, piece->op);
}

static uint32_t print_operand(const berth_vm_program *program, const uint32_t *code, uint32_t at,
                              char letter, berth_strbuf *out) {
    uint32_t value = code[at];
    switch (letter) {
    case 'D':
    case 'S':
        berth_strbuf_add(out, letter == 'D' ? " ->" : " <-");
        for (uint32_t i = 0; i < value; ++i) print_register(out, code[at + 1 + i]);
        return at + 1 + value;
    case 'k': print_constant(program, value, out); break;
    case 't': berth_strbuf_addf(out, " to %u", value); break;
    case 'g': print_piece(&program->segments[value], 's', value, out); break;
    case 'h': print_piece(&program->host_operations[value], 'h', value, out); break;
    case 'f': berth_strbuf_addf(out, " @%s", program->functions[value].name); break;
    case 'x': berth_strbuf_addf(out, " \"%s\"", program->messages[value]); break;
    case 'i': berth_strbuf_addf(out, " %d", (int)value); break;
    default: print_register(out, value); break;
    }
    return at + 1;
}

void berth_vm_print(const berth_vm_program *program, berth_strbuf *out) {
    for (uint32_t f = 0; f < program->function_count; ++f) {
        const berth_vm_function *function = &program->functions[f];
        berth_strbuf_addf(out, "function @%s: %u parameters, %u results, %u registers\n",
                          function->name, function->parameter_count, function->result_count,
                          function->register_count);
        for (uint32_t at = 0; at < function->code_count;) {
            uint32_t word = function->code[at], operand = at + 1;
            const berth_vm_instruction_facts *facts = &instructions[berth_vm_opcode_of(word)];
            berth_strbuf_addf(out, "%6u  %s", at, facts->name);
            for (const char *letter = facts->operands; *letter; ++letter)
                operand = print_operand(program, function->code, operand, *letter, out);
            berth_strbuf_add(out, "\n");
            at += berth_vm_length_of(word);
        }
    }
}
