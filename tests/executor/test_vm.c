// The virtual machine alone: control, sequences, optional values, what the verifier refuses.
#include "executor/vm.h"

#include <stdlib.h>
#include <string.h>

#include "executor/vm_sequence.h"
#include "tests/check.h"

enum { most_words = 256 };

// Code of one function, written by hand.
typedef struct code {
    uint32_t words[most_words];
    uint32_t count;
    berth_vm_function function;
    berth_tensor constants[8];
    int64_t numbers[8];
    uint32_t constant_count;
    berth_vm_piece host;
    const char *messages[1];
    berth_vm_program program;
} code;

static void op(code *c, berth_vm_opcode opcode, uint32_t count, const uint32_t *operands) {
    c->words[c->count++] = berth_vm_word(opcode, count + 1);
    for (uint32_t i = 0; i < count; ++i) c->words[c->count++] = operands[i];
}
#define OP(c, opcode, ...)                                                                         \
    op(c, opcode, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static uint32_t number(code *c, int64_t value) {
    uint32_t index = c->constant_count++;
    c->numbers[index] = value;
    c->constants[index] = (berth_tensor){.dtype = BERTH_DTYPE_I64, .data = &c->numbers[index]};
    return index;
}

static const berth_vm_program *finish(code *c, uint32_t parameters, uint32_t results) {
    c->function = (berth_vm_function){.name = "main",
                                      .code = c->words,
                                      .code_count = c->count,
                                      .register_count = 16,
                                      .parameter_count = parameters,
                                      .result_count = results};
    c->host = (berth_vm_piece){.name = "node", .op = "double", .input_count = 1, .output_count = 1};
    c->messages[0] = "the node is not supported";
    static const berth_vm_port ports[4] = {{.name = "p"}};
    c->program = (berth_vm_program){.name = "hand",
                                    .functions = &c->function,
                                    .function_count = 1,
                                    .constants = c->constants,
                                    .constant_count = c->constant_count,
                                    .host_operations = &c->host,
                                    .host_operation_count = 1,
                                    .messages = c->messages,
                                    .message_count = 1,
                                    .inputs = ports,
                                    .input_count = parameters,
                                    .outputs = ports,
                                    .output_count = results};
    return &c->program;
}

// The host operation: twice the number.
static berth_status twice(void *user, uint32_t operation, berth_vm_value *const *inputs,
                          berth_vm_value **outputs) {
    (void)operation;
    berth_allocator *allocator = user;
    BERTH_TRY(berth_vm_value_tensor(*allocator, BERTH_DTYPE_I64, 0, NULL, &outputs[0]));
    int64_t number = berth_tensor_get_i64(&inputs[0]->tensor, 0);
    berth_tensor_set_i64(&outputs[0]->tensor, 0, 2 * number);
    return BERTH_OK;
}

static berth_counting_allocator counting;  // of the last run

// Runs with numbers as arguments.
static berth_status run(code *c, const int64_t *arguments, berth_vm_value **outputs) {
    static berth_allocator allocator;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    allocator = berth_counting_allocator_get(&counting);
    berth_vm_machine machine = {.allocator = allocator, .user = &allocator, .run_host = twice};
    berth_vm_value *inputs[4] = {NULL};
    assert_ok(berth_vm_verify(&c->program));
    for (uint32_t i = 0; i < c->program.input_count; ++i) {
        assert_ok(berth_vm_value_tensor(allocator, BERTH_DTYPE_I64, 0, NULL, &inputs[i]));
        berth_tensor_set_i64(&inputs[i]->tensor, 0, arguments[i]);
    }
    berth_status status = berth_vm_run(&machine, &c->program, inputs, outputs);
    for (uint32_t i = 0; i < c->program.input_count; ++i) berth_vm_value_release(inputs[i]);
    return status;
}

static void nothing_is_left(void) {
    cr_assert_eq(atomic_load(&counting.live_count), 0, "%d allocations are left",
                 (int)atomic_load(&counting.live_count));
}

static int64_t result_of(code *c, const int64_t *arguments) {
    berth_vm_value *output = NULL;
    assert_ok(run(c, arguments, &output));
    int64_t value = berth_tensor_get_i64(&output->tensor, 0);
    berth_vm_value_release(output);
    nothing_is_left();
    return value;
}

// Of the argument 3.
static void gives_one_and_zero(code *c) {
    berth_vm_value *output = NULL;
    assert_ok(run(c, (int64_t[]){3}, &output));
    cr_assert_eq(berth_tensor_get_i64(&output->tensor, 0), 1);
    cr_assert_eq(berth_tensor_get_i64(&output->tensor, 1), 0);
    berth_vm_value_release(output);
}

static void fails(code *c, const int64_t *arguments, berth_code status, const char *part) {
    berth_vm_value *output = NULL;
    assert_fails(run(c, arguments, &output), status, part);
    cr_assert_null(output);
    nothing_is_left();
}

// Doubles 1 as often as the argument says: a loop with a counter and a host operation.
static void powers_of_two(code *c) {
    uint32_t one = number(c, 1), zero = number(c, 0);
    OP(c, BERTH_VM_CONST, 1, one);
    OP(c, BERTH_VM_CONST, 2, zero);
    uint32_t top = c->count;
    OP(c, BERTH_VM_JUMP_UNLESS_BELOW, 2, 0, 20);
    OP(c, BERTH_VM_HOST, 0, 1, 1, 1, 1);
    OP(c, BERTH_VM_INCREMENT, 2);
    OP(c, BERTH_VM_JUMP, top);
    cr_assert_eq(c->count, 20);
    OP(c, BERTH_VM_RETURN, 1, 1);
    finish(c, 1, 1);
}

Test(vm, counts_and_doubles) {
    code c = {.count = 0};
    powers_of_two(&c);
    cr_assert_eq(result_of(&c, (int64_t[]){0}), 1);
    cr_assert_eq(result_of(&c, (int64_t[]){10}), 1024);
    cr_assert_eq(result_of(&c, (int64_t[]){-3}), 1);
}

Test(vm, a_condition_chooses) {
    code c = {.count = 0};
    uint32_t seven = number(&c, 7), nine = number(&c, 9);
    OP(&c, BERTH_VM_JUMP_UNLESS, 0, 8);
    OP(&c, BERTH_VM_CONST, 1, seven);
    OP(&c, BERTH_VM_JUMP, 11);
    OP(&c, BERTH_VM_CONST, 1, nine);
    OP(&c, BERTH_VM_RETURN, 1, 1);
    finish(&c, 1, 1);
    cr_assert_eq(result_of(&c, (int64_t[]){1}), 7);
    cr_assert_eq(result_of(&c, (int64_t[]){0}), 9);
}

// insert(insert([a, b], a, 1), b) = [a, a, b, b]; erase at `where`; the element there.
static void edit(code *c) {
    uint32_t place = number(c, 1);
    OP(c, BERTH_VM_CONST, 3, place);
    OP(c, BERTH_VM_SEQUENCE, 4, 2, 0, 1);
    OP(c, BERTH_VM_INSERT, 5, 4, 0, 3);
    OP(c, BERTH_VM_APPEND, 5, 1);
    OP(c, BERTH_VM_ERASE, 6, 5, 2);
    OP(c, BERTH_VM_LENGTH, 7, 6);
    OP(c, BERTH_VM_AT, 8, 5, 2);
    OP(c, BERTH_VM_SEQUENCE, 9, 2, 7, 8);
    OP(c, BERTH_VM_JOIN, 10, 9, 0, 1);
    OP(c, BERTH_VM_RETURN, 1, 10);
    finish(c, 3, 1);
}

Test(vm, sequences_are_edited) {
    static const int64_t wanted[4] = {5, 5, 6, 6};
    code c = {.count = 0};
    edit(&c);
    for (int64_t where = -4; where < 4; ++where) {
        berth_vm_value *output = NULL;
        assert_ok(run(&c, (int64_t[]){5, 6, where}, &output));
        cr_assert_eq(output->tensor.rank, 1);
        cr_assert_eq(berth_tensor_get_i64(&output->tensor, 0), 3, "the length after erasing");
        cr_assert_eq(berth_tensor_get_i64(&output->tensor, 1), wanted[(where + 4) % 4]);
        berth_vm_value_release(output);
    }
    fails(&c, (int64_t[]){5, 6, 4}, BERTH_INVALID_ARGUMENT, "outside a sequence of 4");
    fails(&c, (int64_t[]){5, 6, -5}, BERTH_INVALID_ARGUMENT, "outside a sequence of 4");
}

// A sequence that somebody else sees is not changed by append.
Test(vm, append_leaves_other_holders_alone) {
    code c = {.count = 0};
    OP(&c, BERTH_VM_SEQUENCE, 1, 0);
    OP(&c, BERTH_VM_MOVE, 2, 1);
    OP(&c, BERTH_VM_APPEND, 1, 0);
    OP(&c, BERTH_VM_LENGTH, 3, 1);
    OP(&c, BERTH_VM_LENGTH, 4, 2);
    OP(&c, BERTH_VM_SEQUENCE, 5, 2, 3, 4);
    OP(&c, BERTH_VM_JOIN, 6, 5, 0, 1);
    OP(&c, BERTH_VM_RETURN, 1, 6);
    finish(&c, 1, 1);
    gives_one_and_zero(&c);
}

Test(vm, optional_values) {
    code c = {.count = 0};
    OP(&c, BERTH_VM_NOTHING, 1);
    OP(&c, BERTH_VM_HAS, 2, 0);
    OP(&c, BERTH_VM_HAS, 3, 1);
    OP(&c, BERTH_VM_SEQUENCE, 4, 2, 2, 3);
    OP(&c, BERTH_VM_JOIN, 5, 4, 0, 1);
    OP(&c, BERTH_VM_RETURN, 1, 5);
    finish(&c, 1, 1);
    gives_one_and_zero(&c);
}

Test(vm, what_goes_wrong_is_said) {
    code empty = {.count = 0}, get = {.count = 0}, fail = {.count = 0}, type = {.count = 0};
    OP(&empty, BERTH_VM_RETURN, 1, 5);
    finish(&empty, 1, 1);
    fails(&empty, (int64_t[]){1}, BERTH_INVALID_ARGUMENT, "register 5, which is empty");
    OP(&get, BERTH_VM_NOTHING, 1);
    OP(&get, BERTH_VM_GET, 2, 1);
    OP(&get, BERTH_VM_RETURN, 1, 2);
    finish(&get, 1, 1);
    fails(&get, (int64_t[]){1}, BERTH_INVALID_ARGUMENT, "an optional value is empty");
    OP(&fail, BERTH_VM_FAIL, 0);
    finish(&fail, 1, 1);
    fails(&fail, (int64_t[]){1}, BERTH_UNSUPPORTED, "the node is not supported");
    OP(&type, BERTH_VM_LENGTH, 1, 0);
    OP(&type, BERTH_VM_RETURN, 1, 1);
    finish(&type, 1, 1);
    fails(&type, (int64_t[]){1}, BERTH_INVALID_ARGUMENT, "not a sequence");
}

Test(vm, endless_recursion_is_an_error) {
    code c = {.count = 0};
    OP(&c, BERTH_VM_CALL, 0, 1, 1, 1, 0);
    OP(&c, BERTH_VM_RETURN, 1, 1);
    finish(&c, 1, 1);
    fails(&c, (int64_t[]){1}, BERTH_OUT_OF_RANGE, "nested more than 64 deep");
}

Test(vm, a_run_can_be_cancelled) {
    code c = {.count = 0};
    OP(&c, BERTH_VM_JUMP, 0);
    finish(&c, 0, 0);
    atomic_uint cancelled;
    atomic_init(&cancelled, 1);
    berth_vm_machine machine = {.allocator = berth_allocator_system(), .cancelled = &cancelled};
    assert_fails(berth_vm_run(&machine, &c.program, NULL, NULL), BERTH_CANCELLED, "cancelled");
}

// ---- split and join against each other ----------------------------------------------------------

// Parts of `size` (0: of one row, without the axis) along an axis, joined again, are the tensor.
static void split_and_join(int64_t axis, int64_t size) {
    code c = {.count = 0};
    OP(&c, BERTH_VM_SPLIT, 2, 0, size ? 1 : BERTH_VM_NONE, (uint32_t)(int32_t)axis, 0);
    OP(&c, BERTH_VM_JOIN, 3, 2, (uint32_t)(int32_t)axis, size == 0);
    OP(&c, BERTH_VM_RETURN, 1, 3);
    finish(&c, 2, 1);
    assert_ok(berth_vm_verify(&c.program));
    float data[2 * 5 * 3];
    for (int i = 0; i < 30; ++i) data[i] = (float)i;
    berth_tensor tensor = {.dtype = BERTH_DTYPE_F32, .rank = 3, .dims = {2, 5, 3}, .data = data};
    berth_tensor scalar = {.dtype = BERTH_DTYPE_I64, .data = &size};
    berth_vm_value *inputs[2], *output = NULL;
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &tensor, &inputs[0]));
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &scalar, &inputs[1]));
    berth_vm_machine machine = {.allocator = berth_allocator_system()};
    assert_ok(berth_vm_run(&machine, &c.program, inputs, &output));
    cr_assert(berth_tensor_same_shape(&output->tensor, &tensor));
    cr_assert_eq(memcmp(output->tensor.data, data, sizeof(data)), 0, "axis %d size %d", (int)axis,
                 (int)size);
    berth_vm_value_release(output);
    berth_vm_value_release(inputs[0]);
    berth_vm_value_release(inputs[1]);
}

Test(vm, parts_joined_again_are_the_whole) {
    for (int64_t axis = -3; axis < 3; ++axis)
        for (int64_t size = 0; size < 7; ++size) split_and_join(axis, size);
}

// ---- the verifier -------------------------------------------------------------------------------

static void refused(code *c, const char *part) {
    assert_fails(berth_vm_verify(&c->program), BERTH_INVALID_ARGUMENT, part);
}

Test(vm, bad_code_is_refused) {
    code c = {.count = 0};
    finish(&c, 1, 1);
    refused(&c, "runs past its end");
    OP(&c, BERTH_VM_MOVE, 1, 99);
    OP(&c, BERTH_VM_RETURN, 1, 1);
    finish(&c, 1, 1);
    refused(&c, "register 99");
    c.words[2] = 0;
    c.words[0] = berth_vm_word(BERTH_VM_MOVE, 2);
    refused(&c, "word");
    c.words[0] = berth_vm_word(BERTH_VM_MOVE, 3);
    c.words[4] = 2;  // results
    refused(&c, "word");
    c.words[4] = 1;
    assert_ok(berth_vm_verify(&c.program));
    c.words[0] = 0xff | 3u << 8;
    refused(&c, "opcode");
    c.count = 0;
    OP(&c, BERTH_VM_JUMP, 3);
    OP(&c, BERTH_VM_RETURN, 1, 0);
    finish(&c, 1, 1);
    refused(&c, "middle of an instruction");
    c.words[1] = 2;
    assert_ok(berth_vm_verify(&c.program));
    c.function.parameter_count = 20;
    refused(&c, "inputs");
}

// Any change of one word is refused or runs to an end without touching what is not its own (checked
// by the sanitizers).
Test(vm, changed_code_stays_inside) {
    static const uint32_t values[] = {0, 1, 2, 15, 16, 255, 0x7fffffff, UINT32_MAX, 3u << 8, 0x102};
    code original = {.count = 0};
    edit(&original);
    for (uint32_t w = 0; w < original.count; ++w)
        for (uint32_t v = 0; v < sizeof(values) / sizeof(values[0]); ++v) {
            code c = {.count = 0};
            edit(&c);
            c.words[w] = values[v];
            berth_status status = berth_vm_verify(&c.program);
            if (!status) {
                berth_vm_value *output = NULL;
                status = run(&c, (int64_t[]){5, 6, 1}, &output);
                berth_vm_value_release(output);
            }
            berth_status_free(status);
            nothing_is_left();
        }
}

// ---- strings and maps ---------------------------------------------------------------------------

static berth_tensor words(int64_t count, berth_string *strings) {
    return (berth_tensor){.dtype = BERTH_DTYPE_STRING, .rank = 1, .dims = {count}, .data = strings};
}

// The bytes of strings stay after those that they came from, also through sequences.
Test(vm, values_own_their_strings) {
    char text[] = "abcdef";
    berth_string strings[3] = {{text, 3}, {NULL, 0}, {text + 3, 3}};
    berth_tensor tensor = words(3, strings);
    berth_allocator allocator = berth_allocator_system();
    berth_vm_value *value = NULL, *parts = NULL, *joined = NULL;
    assert_ok(berth_vm_value_copy(allocator, &tensor, &value));
    memset(text, 'x', 6);
    assert_ok(berth_vm__split(allocator, value, NULL, 0, true, &parts));
    berth_vm_value_release(value);
    cr_assert_eq(parts->item_count, 3);
    assert_ok(berth_vm__join(allocator, parts, 0, false, NULL, &joined));
    berth_vm_value_release(parts);
    const berth_string *got = berth_tensor_strings(&joined->tensor);
    cr_assert(berth_string_equal(got[0], berth_string_of("abc")));
    cr_assert_eq(got[1].length, 0);
    cr_assert(berth_string_equal(got[2], berth_string_of("def")));
    berth_vm_value_release(joined);
}

Test(vm, strings_that_no_memory_holds) {
    berth_string strings[2] = {{"a", SIZE_MAX / 8}, {"b", SIZE_MAX / 8}};
    berth_tensor tensor = words(2, strings);
    berth_vm_value *value = NULL;
    assert_fails(berth_vm_value_copy(berth_allocator_system(), &tensor, &value), BERTH_OUT_OF_RANGE,
                 "larger than memory");
    cr_assert_null(value);
}

static berth_status zip_rows(berth_allocator allocator, berth_vm_value **out) {
    berth_string names[2] = {{"no", 2}, {"yes", 3}};
    float scores[4] = {1, 2, 3, 4};
    berth_tensor keys = words(2, names);
    berth_tensor rows = {BERTH_DTYPE_F32, 2, {2, 2}, scores};
    berth_vm_value *value = NULL;
    *out = NULL;
    BERTH_TRY(berth_vm_value_borrow(allocator, &rows, &value));
    berth_status status = berth_vm__zip(allocator, value, &keys, out);
    berth_vm_value_release(value);
    return status;
}

Test(vm, a_map_for_each_row) {
    berth_vm_value *maps = NULL, *part = NULL;
    assert_ok(zip_rows(berth_allocator_system(), &maps));
    cr_assert_eq(maps->item_count, 2);
    cr_assert_eq(maps->items[1]->kind, BERTH_VM_VALUE_MAP);
    assert_ok(berth_vm__map_part(maps->items[1], true, &part));
    cr_assert(berth_string_equal(berth_tensor_strings(&part->tensor)[1], berth_string_of("yes")));
    berth_vm_value_release(part);
    assert_ok(berth_vm__map_part(maps->items[1], false, &part));
    cr_assert_eq(berth_tensor_get_f64(&part->tensor, 1), 4);
    berth_vm_value_release(part);
    assert_fails(berth_vm__map_part(maps, true, &part), BERTH_INVALID_ARGUMENT, "not a map");
    assert_fails(berth_vm__join(berth_allocator_system(), maps, 0, true, NULL, &part),
                 BERTH_INVALID_ARGUMENT, "only sequences of tensors");
    berth_vm_value_release(maps);
}

Test(vm, maps_when_memory_runs_out) {
    for (int64_t n = 1;; ++n) {
        berth_counting_allocator counted;
        berth_counting_allocator_init(&counted, berth_allocator_system());
        counted.fail_at = n;
        berth_vm_value *maps = NULL;
        berth_status status = zip_rows(berth_counting_allocator_get(&counted), &maps);
        bool through = status == BERTH_OK;
        if (!through) cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
        berth_status_free(status);
        berth_vm_value_release(maps);
        cr_assert_eq(counted.live_count, 0, "leaks when allocation %d fails", (int)n);
        if (through) {
            cr_assert_gt(n, 8);  // keys, a sequence, and of each row a map and its values
            return;
        }
    }
}
