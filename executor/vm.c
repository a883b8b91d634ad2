#include "executor/vm.h"

#include <string.h>

#include "executor/vm_sequence.h"

// A call of a function that is under way.
typedef struct frame {
    berth_vm_machine *machine;
    const berth_vm_program *program;
    const berth_vm_function *function;
    berth_vm_value **registers;
    berth_vm_value **results;  // of the caller
    const uint32_t *at;        // operands of the instruction
    uint32_t next;             // word to go on at
    uint32_t depth;
    bool returned;
} frame;

static berth_status run_function(const frame *caller, const berth_vm_function *function,
                                 berth_vm_value *const *arguments, berth_vm_value **results);

// All NULL. Until the machine's lists go back to where they were.
static berth_vm_value **make_list(const berth_vm_machine *machine, size_t count) {
    berth_vm_value **list = berth_bump_take(machine->lists, count * sizeof(*list));
    for (size_t i = 0; list && i < count; ++i) list[i] = NULL;
    return list;
}

static void set(const frame *f, uint32_t index, berth_vm_value *value) {
    berth_vm_value_release(f->registers[index]);
    f->registers[index] = value;
}

static berth_vm_value *get(const frame *f, uint32_t index) {
    return index == BERTH_VM_NONE ? NULL : f->registers[index];
}

// A register that must hold something: hostile code may read one before it is written.
static berth_status need(const frame *f, uint32_t index, berth_vm_value **out) {
    *out = f->registers[index];
    if (*out) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "byte code of @%s reads register %u, which is empty",
                             f->function->name, index);
}

// ---- segments, host operations, calls -----------------------------------------------------------

typedef berth_status (*piece_runner)(void *user, uint32_t index, berth_vm_value *const *inputs,
                                     berth_vm_value **outputs);

// Operands: index, outputs, inputs. The lists are gathered, and the results set at the end: an output
// may be an input's register.
static berth_status with_lists(frame *f, const berth_vm_piece *piece, piece_runner run) {
    const berth_bump_mark mark = berth_bump_at(f->machine->lists);
    uint32_t output_count = f->at[1];
    const uint32_t *outputs = f->at + 2, *inputs = outputs + output_count + 1;
    uint32_t input_count = outputs[output_count];
    size_t count = (size_t)input_count + output_count + 1;
    berth_vm_value **values = make_list(f->machine, count);
    if (!values) return berth_status_oom();
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < input_count && !status; ++i)
        if (inputs[i] != BERTH_VM_NONE) status = need(f, inputs[i], &values[i]);
    if (!status && run)
        status = run(f->machine->user, f->at[0], values, values + input_count);
    else if (!status)
        status = run_function(f, &f->program->functions[f->at[0]], values, values + input_count);
    for (uint32_t i = 0; i < output_count && !status; ++i)
        set(f, outputs[i], values[input_count + i]);
    berth_bump_back(f->machine->lists, mark);
    if (!status || !piece) return status;
    return berth_status_prefix(status, "%s (%s)", piece->name, piece->op);
}

static berth_status run_segment(frame *f) {
    f->machine->segments++;
    return with_lists(f, &f->program->segments[f->at[0]], f->machine->run_segment);
}

static berth_status run_host(frame *f) {
    f->machine->host_operations++;
    return with_lists(f, NULL, f->machine->run_host);  // whose errors say which operation it is
}

static berth_status run_return(frame *f) {
    for (uint32_t i = 0; i < f->at[0]; ++i) {
        berth_vm_value *value = NULL;
        BERTH_TRY(need(f, f->at[1 + i], &value));
        f->results[i] = berth_vm_value_retain(value);
    }
    f->returned = true;
    return BERTH_OK;
}

// ---- control ------------------------------------------------------------------------------------

static berth_status run_jump_unless(frame *f) {
    int64_t condition = 0;
    const berth_vm_value *value = get(f, f->at[0]);
    BERTH_TRY(berth_vm__number(value, "a condition", &condition));
    if (condition == 0) f->next = f->at[1];
    return BERTH_OK;
}

static berth_status run_jump_unless_below(frame *f) {
    int64_t a = 0, b = 0;
    BERTH_TRY(berth_vm__number(get(f, f->at[0]), "a count of iterations", &a));
    BERTH_TRY(berth_vm__number(get(f, f->at[1]), "a number of iterations", &b));
    if (a >= b) f->next = f->at[2];
    return BERTH_OK;
}

static berth_status run_increment(frame *f) {
    int64_t number = 0;
    berth_vm_value *sum = NULL;
    BERTH_TRY(berth_vm__number(get(f, f->at[0]), "a count of iterations", &number));
    if (number == INT64_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "too many iterations to count");
    BERTH_TRY(berth_vm_value_tensor(f->machine->allocator, BERTH_DTYPE_I64, 0, NULL, &sum));
    berth_tensor_set_i64(&sum->tensor, 0, number + 1);
    set(f, f->at[0], sum);
    return BERTH_OK;
}

// ---- sequences ----------------------------------------------------------------------------------

// What sequences hold, and what is looked at, is in the host's memory.
static berth_status need_host(const frame *f, uint32_t index, berth_vm_value **out) {
    BERTH_TRY(need(f, index, out));
    return berth_vm_value_to_host(*out, f->machine->traffic);
}

static berth_status run_sequence(frame *f) {
    berth_vm_value *sequence = NULL, *item = NULL;
    BERTH_TRY(berth_vm_value_sequence(f->machine->allocator, &sequence));
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < f->at[1] && !status; ++i) {
        status = need_host(f, f->at[2 + i], &item);
        if (!status) status = berth_vm_value_insert(sequence, i, item);
    }
    if (status)
        berth_vm_value_release(sequence);
    else
        set(f, f->at[0], sequence);
    return status;
}

// In place where nobody else sees the sequence.
static berth_status run_append(frame *f) {
    berth_vm_value *sequence = get(f, f->at[0]), *item = NULL, *longer = NULL;
    BERTH_TRY(berth_vm__need_sequence(sequence));
    BERTH_TRY(need_host(f, f->at[1], &item));
    if (sequence->references == 1 && item != sequence)
        return berth_vm_value_insert(sequence, sequence->item_count, item);
    BERTH_TRY(berth_vm__insert(sequence, item, NULL, &longer));
    set(f, f->at[0], longer);
    return BERTH_OK;
}

// Operands: result, sequence, ...
static berth_status run_on_sequence(frame *f, berth_vm_opcode opcode) {
    berth_vm_value *value = NULL, *item = NULL, *result = NULL;
    berth_allocator allocator = f->machine->allocator;
    BERTH_TRY(need_host(f, f->at[1], &value));
    switch (opcode) {
    case BERTH_VM_INSERT:
        BERTH_TRY(need_host(f, f->at[2], &item));
        BERTH_TRY(berth_vm__insert(value, item, get(f, f->at[3]), &result));
        break;
    case BERTH_VM_ERASE: BERTH_TRY(berth_vm__erase(value, get(f, f->at[2]), &result)); break;
    case BERTH_VM_AT: BERTH_TRY(berth_vm__at(value, get(f, f->at[2]), &result)); break;
    case BERTH_VM_STACK:
        BERTH_TRY(
            berth_vm__join(allocator, value, 0, true, &f->program->constants[f->at[2]], &result));
        break;
    case BERTH_VM_JOIN:
        BERTH_TRY(
            berth_vm__join(allocator, value, (int32_t)f->at[2], f->at[3] == 1, NULL, &result));
        break;
    case BERTH_VM_SPLIT:
        BERTH_TRY(berth_vm__split(allocator, value, get(f, f->at[2]), (int32_t)f->at[3],
                                  f->at[4] == 1, &result));
        break;
    case BERTH_VM_ZIP:
        BERTH_TRY(berth_vm__zip(allocator, value, &f->program->constants[f->at[2]], &result));
        break;
    case BERTH_VM_KEYS:
    case BERTH_VM_VALUES:
        BERTH_TRY(berth_vm__map_part(value, opcode == BERTH_VM_KEYS, &result));
        break;
    default:  // LENGTH
        BERTH_TRY(berth_vm__need_sequence(value));
        BERTH_TRY(berth_vm_value_tensor(allocator, BERTH_DTYPE_I64, 0, NULL, &result));
        berth_tensor_set_i64(&result->tensor, 0, value->item_count);
        break;
    }
    set(f, f->at[0], result);
    return BERTH_OK;
}

// ---- optional values ----------------------------------------------------------------------------

static berth_status run_nothing(frame *f) {
    berth_vm_value *nothing = NULL;
    BERTH_TRY(berth_vm_value_nothing(f->machine->allocator, &nothing));
    set(f, f->at[0], nothing);
    return BERTH_OK;
}

static berth_status run_has(frame *f) {
    berth_vm_value *result = NULL;
    const berth_vm_value *value = get(f, f->at[1]);
    BERTH_TRY(berth_vm_value_tensor(f->machine->allocator, BERTH_DTYPE_BOOL, 0, NULL, &result));
    berth_tensor_set_i64(&result->tensor, 0, value && value->kind != BERTH_VM_VALUE_NOTHING);
    set(f, f->at[0], result);
    return BERTH_OK;
}

static berth_status run_get(frame *f) {
    berth_vm_value *value = NULL;
    BERTH_TRY(need(f, f->at[1], &value));
    if (value->kind == BERTH_VM_VALUE_NOTHING)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "an optional value is empty");
    set(f, f->at[0], berth_vm_value_retain(value));
    return BERTH_OK;
}

// ---- the interpreter ----------------------------------------------------------------------------

static berth_status run_constant(frame *f) {
    berth_vm_value *value = NULL;
    BERTH_TRY(
        berth_vm_value_borrow(f->machine->allocator, &f->program->constants[f->at[1]], &value));
    set(f, f->at[0], value);
    return BERTH_OK;
}

static berth_status run_move(frame *f) {
    berth_vm_value *value = NULL;
    BERTH_TRY(need(f, f->at[1], &value));
    set(f, f->at[0], berth_vm_value_retain(value));
    return BERTH_OK;
}

static berth_status run_instruction(frame *f, berth_vm_opcode opcode) {
    switch (opcode) {
    case BERTH_VM_CONST: return run_constant(f);
    case BERTH_VM_MOVE: return run_move(f);
    case BERTH_VM_DROP:
        for (uint32_t i = 0; i < f->at[0]; ++i) set(f, f->at[1 + i], NULL);
        return BERTH_OK;
    case BERTH_VM_RUN: return run_segment(f);
    case BERTH_VM_HOST: return run_host(f);
    case BERTH_VM_CALL: return with_lists(f, NULL, NULL);
    case BERTH_VM_RETURN: return run_return(f);
    case BERTH_VM_FAIL:
        return berth_status_make(BERTH_UNSUPPORTED, "%s", f->program->messages[f->at[0]]);
    case BERTH_VM_JUMP: f->next = f->at[0]; return BERTH_OK;
    case BERTH_VM_JUMP_UNLESS: return run_jump_unless(f);
    case BERTH_VM_JUMP_UNLESS_BELOW: return run_jump_unless_below(f);
    case BERTH_VM_INCREMENT: return run_increment(f);
    case BERTH_VM_SEQUENCE: return run_sequence(f);
    case BERTH_VM_APPEND: return run_append(f);
    case BERTH_VM_NOTHING: return run_nothing(f);
    case BERTH_VM_HAS: return run_has(f);
    case BERTH_VM_GET: return run_get(f);
    default: return run_on_sequence(f, opcode);
    }
}

static berth_status interpret(frame *f) {
    const uint32_t *code = f->function->code;
    while (!f->returned) {
        const uint32_t *word = code + f->next;
        if (f->machine->cancelled && atomic_load(f->machine->cancelled))
            return berth_status_make(BERTH_CANCELLED, "the run was cancelled");
        f->machine->instructions++;
        f->at = word + 1;
        f->next += berth_vm_length_of(*word);
        BERTH_TRY(run_instruction(f, berth_vm_opcode_of(*word)));
    }
    return BERTH_OK;
}

static berth_status run_function(const frame *caller, const berth_vm_function *function,
                                 berth_vm_value *const *arguments, berth_vm_value **results) {
    frame f = *caller;
    f.function = function;
    f.results = results;
    f.next = 0;
    f.returned = false;
    f.depth = caller->depth + 1;
    if (f.depth > BERTH_VM_MAX_CALL_DEPTH)
        return berth_status_make(BERTH_OUT_OF_RANGE, "calls are nested more than %d deep at @%s",
                                 BERTH_VM_MAX_CALL_DEPTH, function->name);
    const berth_bump_mark mark = berth_bump_at(f.machine->lists);
    f.registers = make_list(f.machine, function->register_count);
    if (!f.registers) return berth_status_oom();
    for (uint32_t i = 0; i < function->parameter_count; ++i)
        if (arguments[i]) f.registers[i] = berth_vm_value_retain(arguments[i]);
    berth_status status = interpret(&f);
    for (uint32_t i = 0; i < function->register_count; ++i) set(&f, i, NULL);
    berth_bump_back(f.machine->lists, mark);
    for (uint32_t i = 0; i < function->result_count && status; ++i) {
        berth_vm_value_release(results[i]);
        results[i] = NULL;
    }
    return status;
}

berth_status berth_vm_run(berth_vm_machine *machine, const berth_vm_program *program,
                          berth_vm_value *const *inputs, berth_vm_value **outputs) {
    machine->instructions = machine->segments = machine->host_operations = 0;
    for (uint32_t i = 0; i < program->output_count; ++i) outputs[i] = NULL;
    frame root = {.machine = machine, .program = program};
    berth_bump own = {.allocator = machine->allocator}, *given = machine->lists;
    if (!given) machine->lists = &own;
    berth_status status = run_function(&root, &program->functions[0], inputs, outputs);
    machine->lists = given;
    berth_bump_close(&own);
    return status;
}
