// Control flow, calls, tuples and sequences as instructions.
#include <string.h>

#include "compiler/vm/emitter.h"
#include "ir/external.h"
#include "ir/tensor/function.h"

// A call of what becomes a kernel.
static bool calls_code(const berth_module *module, const berth_op *op) {
    const berth_attr *callee =
        op->kind == BERTH_OP_CALL ? berth_attrs_find(module, &op->attrs, "callee") : NULL;
    return callee && callee->kind == BERTH_ATTR_FUNCTION &&
           (berth_tfn_get(module, callee->function) ||
            berth_external_get(module, callee->function));
}

bool vm_is_structure(const berth_module *module, const berth_op *op) {
    if (calls_code(module, op)) return false;
    switch (op->kind) {
    case BERTH_OP_ON_DEVICE:
    case BERTH_OP_DEVICE_COPY: return false;  // part of a segment
    default: return berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE);
    }
}

static berth_status refuse(const vm_emitter *e, const berth_op *op, const char *what) {
    return berth_status_make(BERTH_UNSUPPORTED, "%s: %s",
                             berth_loc_describe(e->module, op->loc, e->arena), what);
}

static void end_op(vm_emitter *e, berth_region_id region, const berth_op *op) {
    for (uint32_t i = 0; i < op->input_count; ++i) vm_consume(e, op->inputs[i]);
    vm_flush_drops(e, region);
}

static uint32_t constant_register(vm_emitter *e, berth_dtype dtype, int64_t number) {
    berth_tensor tensor = berth_tensor_create(e->arena, dtype, 0, NULL);
    berth_tensor_set_i64(&tensor, 0, number);
    uint32_t reg = vm_new_register(e);
    vm_begin(e, BERTH_VM_CONST);
    vm_word(e, reg);
    vm_word(e, vm_add_constant(e, &tensor));
    vm_end(e);
    return reg;
}

static void jump_to(vm_emitter *e, uint32_t target) {
    vm_begin(e, BERTH_VM_JUMP);
    vm_word(e, target);
    vm_end(e);
}

// Jumps whose target is patched later: the index of the instruction.
static uint32_t jump_unless(vm_emitter *e, uint32_t condition) {
    uint32_t at = vm_here(e);
    vm_begin(e, BERTH_VM_JUMP_UNLESS);
    vm_word(e, condition);
    vm_word(e, 0);
    vm_end(e);
    return at;
}

// ---- if -----------------------------------------------------------------------------------------

static berth_status emit_branch(vm_emitter *e, const berth_op *op, berth_region_id branch) {
    BERTH_TRY(vm_emit_region(e, branch));
    const berth_region *region = &e->graph->regions.data[branch];
    if (region->results.count != op->output_count)
        return refuse(e, op, "a branch gives another number of results");
    for (uint32_t i = 0; i < op->output_count; ++i) {
        vm_move(e, vm_register_of(e, op->outputs[i]), vm_source(e, region->results.data[i]));
        vm_consume(e, region->results.data[i]);
    }
    vm_flush_drops(e, branch);
    return BERTH_OK;
}

static berth_status emit_if(vm_emitter *e, berth_region_id region, const berth_op *op) {
    if (op->region_count != 2) return refuse(e, op, "it must have two regions");
    uint32_t to_else = jump_unless(e, vm_source(e, op->inputs[0]));
    BERTH_TRY(emit_branch(e, op, op->regions[0]));
    uint32_t to_end = vm_here(e);
    jump_to(e, 0);
    vm_patch(e, to_else, vm_here(e));
    BERTH_TRY(emit_branch(e, op, op->regions[1]));
    vm_patch(e, to_end, vm_here(e));
    end_op(e, region, op);
    return BERTH_OK;
}

// ---- loop ---------------------------------------------------------------------------------------

typedef struct loop {
    const berth_op *op;
    const berth_region *body;
    uint32_t carried_count, scan_count;
    uint32_t trip, condition, limit;   // registers
    uint32_t *scans;                   // registers of sequences
    uint32_t first_exit, second_exit;  // jumps; BERTH_NONE = none
} loop;

static void begin_loop(vm_emitter *e, loop *l) {
    const berth_op *op = l->op;
    l->limit = op->inputs[0] == BERTH_NONE ? BERTH_NONE : vm_source(e, op->inputs[0]);
    l->condition = vm_new_register(e);
    vm_move(e, l->condition,
            op->inputs[1] == BERTH_NONE ? constant_register(e, BERTH_DTYPE_BOOL, 1)
                                        : vm_source(e, op->inputs[1]));
    l->trip = vm_new_register(e);
    vm_move(e, l->trip, constant_register(e, BERTH_DTYPE_I64, 0));
    for (uint32_t k = 0; k < l->carried_count; ++k)
        vm_move(e, vm_register_of(e, l->body->params.data[2 + k]), vm_source(e, op->inputs[2 + k]));
    l->scans = berth_arena_new_array(e->arena, uint32_t, l->scan_count + 1);
    for (uint32_t k = 0; k < l->scan_count; ++k) {
        l->scans[k] = vm_new_register(e);
        vm_begin(e, BERTH_VM_SEQUENCE);
        vm_word(e, l->scans[k]);
        vm_word(e, 0);
        vm_end(e);
    }
}

static void emit_tests(vm_emitter *e, loop *l) {
    l->first_exit = jump_unless(e, l->condition);
    l->second_exit = BERTH_NONE;
    if (l->limit != BERTH_NONE) {
        l->second_exit = vm_here(e);
        vm_begin(e, BERTH_VM_JUMP_UNLESS_BELOW);
        vm_word(e, l->trip);
        vm_word(e, l->limit);
        vm_word(e, 0);
        vm_end(e);
    }
    vm_move(e, vm_register_of(e, l->body->params.data[0]), l->trip);
    vm_move(e, vm_register_of(e, l->body->params.data[1]), l->condition);
}

// A carried value may be another one's parameter: all results are held before the first parameter
// is written.
static void carry(vm_emitter *e, const loop *l) {
    const berth_value_id *results = l->body->results.data;
    uint32_t *held = berth_arena_new_array(e->arena, uint32_t, l->carried_count + 1);
    for (uint32_t k = 0; k < l->carried_count; ++k) {
        held[k] = vm_new_register(e);
        vm_move(e, held[k], vm_source(e, results[1 + k]));
    }
    vm_move(e, l->condition, vm_source(e, results[0]));
    for (uint32_t k = 0; k < l->scan_count; ++k) {
        uint32_t source = vm_source(e, results[1 + l->carried_count + k]);
        vm_begin(e, BERTH_VM_APPEND);
        vm_word(e, l->scans[k]);
        vm_word(e, source);
        vm_end(e);
    }
    for (uint32_t k = 0; k < l->carried_count; ++k)
        vm_move(e, vm_register_of(e, l->body->params.data[2 + k]), held[k]);
    if (l->carried_count) {
        vm_begin(e, BERTH_VM_DROP);
        vm_word(e, l->carried_count);
        for (uint32_t k = 0; k < l->carried_count; ++k) vm_word(e, held[k]);
        vm_end(e);
    }
    for (uint32_t i = 0; i < l->body->results.count; ++i) vm_consume(e, results[i]);
}

// What a scan output is when no iteration ran: no rows; extents that nobody knows are 0.
static berth_status empty_scan(vm_emitter *e, const loop *l, uint32_t scan, uint32_t *out_index) {
    berth_value_id value = l->body->results.data[1 + l->carried_count + scan];
    const berth_type *type = berth_type_get(e->module, e->graph->values.data[value].type);
    int64_t dims[BERTH_MAX_RANK] = {0};
    bool known = type->kind == BERTH_TYPE_TENSOR && type->dtype && type->rank >= 0;
    if (known && type->rank >= BERTH_MAX_RANK)
        return refuse(e, l->op, "a scan output has too many dimensions");
    for (int d = 0; known && d < type->rank; ++d)
        dims[d + 1] = berth_dim_is_symbol(type->dims[d]) ? 0 : type->dims[d];
    berth_tensor empty = berth_tensor_create(e->arena, known ? type->dtype : BERTH_DTYPE_F32,
                                             known ? type->rank + 1 : 1, dims);
    *out_index = vm_add_constant(e, &empty);
    return BERTH_OK;
}

static berth_status end_loop(vm_emitter *e, const loop *l) {
    const berth_op *op = l->op;
    for (uint32_t k = 0; k < l->carried_count; ++k)
        vm_move(e, vm_register_of(e, op->outputs[k]),
                vm_register_of(e, l->body->params.data[2 + k]));
    for (uint32_t k = 0; k < l->scan_count; ++k) {
        uint32_t empty = 0;
        BERTH_TRY(empty_scan(e, l, k, &empty));
        vm_begin(e, BERTH_VM_STACK);
        vm_word(e, vm_register_of(e, op->outputs[l->carried_count + k]));
        vm_word(e, l->scans[k]);
        vm_word(e, empty);
        vm_end(e);
    }
    vm_begin(e, BERTH_VM_DROP);
    vm_word(e, l->carried_count + l->scan_count);
    for (uint32_t k = 0; k < l->carried_count; ++k)
        vm_word(e, vm_register_of(e, l->body->params.data[2 + k]));
    for (uint32_t k = 0; k < l->scan_count; ++k) vm_word(e, l->scans[k]);
    vm_end(e);
    return BERTH_OK;
}

static berth_status emit_loop(vm_emitter *e, berth_region_id region, const berth_op *op) {
    loop l = {.op = op};
    if (op->region_count != 1 || op->input_count < 2)
        return refuse(e, op, "it must have one region and two operands");
    l.body = &e->graph->regions.data[op->regions[0]];
    l.carried_count = op->input_count - 2;
    if (l.body->params.count != l.carried_count + 2 || op->output_count < l.carried_count ||
        l.body->results.count != op->output_count + 1)
        return refuse(e, op, "the body does not fit the operands");
    l.scan_count = op->output_count - l.carried_count;
    begin_loop(e, &l);
    uint32_t top = vm_here(e);
    emit_tests(e, &l);
    BERTH_TRY(vm_emit_region(e, op->regions[0]));
    carry(e, &l);
    vm_flush_drops(e, op->regions[0]);
    vm_begin(e, BERTH_VM_INCREMENT);
    vm_word(e, l.trip);
    vm_end(e);
    jump_to(e, top);
    vm_patch(e, l.first_exit, vm_here(e));
    if (l.second_exit != BERTH_NONE) vm_patch(e, l.second_exit, vm_here(e));
    BERTH_TRY(end_loop(e, &l));
    end_op(e, region, op);
    return BERTH_OK;
}

// ---- calls, tuples ------------------------------------------------------------------------------

static void put_list(vm_emitter *e, const uint32_t *registers, uint32_t count) {
    vm_word(e, count);
    for (uint32_t i = 0; i < count; ++i) vm_word(e, registers[i]);
}

static berth_status emit_call(vm_emitter *e, berth_region_id region, const berth_op *op) {
    uint32_t index = 0;
    const berth_attr *callee = berth_attrs_find(e->module, &op->attrs, "callee");
    if (op->kind != BERTH_OP_CALL || !callee || callee->kind != BERTH_ATTR_FUNCTION)
        return refuse(e, op, "the virtual machine calls no functions that are values");
    BERTH_TRY(vm_function_index(e->builder, callee->function, &index));
    uint32_t *sources = berth_arena_new_array(e->arena, uint32_t, op->input_count + 1);
    uint32_t *results = berth_arena_new_array(e->arena, uint32_t, op->output_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE) return refuse(e, op, "an argument is left out");
        sources[i] = vm_source(e, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) results[i] = vm_register_of(e, op->outputs[i]);
    vm_begin(e, BERTH_VM_CALL);
    vm_word(e, index);
    put_list(e, results, op->output_count);
    put_list(e, sources, op->input_count);
    vm_end(e);
    end_op(e, region, op);
    return BERTH_OK;
}

static void emit_sequence(vm_emitter *e, berth_region_id region, const berth_op *op) {
    uint32_t *sources = berth_arena_new_array(e->arena, uint32_t, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) sources[i] = vm_source(e, op->inputs[i]);
    vm_begin(e, BERTH_VM_SEQUENCE);
    vm_word(e, vm_register_of(e, op->outputs[0]));
    put_list(e, sources, op->input_count);
    vm_end(e);
    end_op(e, region, op);
}

static void emit_tuple_get(vm_emitter *e, berth_region_id region, const berth_op *op) {
    uint32_t index =
        constant_register(e, BERTH_DTYPE_I64, berth_attrs_int(e->module, &op->attrs, "index", 0));
    uint32_t source = vm_source(e, op->inputs[0]);
    vm_begin(e, BERTH_VM_AT);
    vm_word(e, vm_register_of(e, op->outputs[0]));
    vm_word(e, source);
    vm_word(e, index);
    vm_end(e);
    end_op(e, region, op);
}

// ---- sequences and optional values --------------------------------------------------------------

// Operands in order, those left out as none; then numbers.
static void emit_simple(vm_emitter *e, berth_region_id region, const berth_op *op,
                        berth_vm_opcode opcode, uint32_t operand_count, const int64_t *numbers,
                        uint32_t number_count) {
    uint32_t sources[4] = {BERTH_VM_NONE, BERTH_VM_NONE, BERTH_VM_NONE, BERTH_VM_NONE};
    for (uint32_t i = 0; i < operand_count && i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE) sources[i] = vm_source(e, op->inputs[i]);
    vm_begin(e, opcode);
    vm_word(e, vm_register_of(e, op->outputs[0]));
    for (uint32_t i = 0; i < operand_count; ++i) vm_word(e, sources[i]);
    for (uint32_t i = 0; i < number_count; ++i) vm_word(e, (uint32_t)(int32_t)numbers[i]);
    vm_end(e);
    end_op(e, region, op);
}

static berth_status emit_zip(vm_emitter *e, berth_region_id region, const berth_op *op) {
    const berth_attr *keys = berth_attrs_find(e->module, &op->attrs, "keys");
    if (!keys || keys->kind != BERTH_ATTR_TENSOR || keys->tensor->rank != 1)
        return refuse(e, op, "attribute keys is not a vector");
    uint32_t source = vm_source(e, op->inputs[0]);
    vm_begin(e, BERTH_VM_ZIP);
    vm_word(e, vm_register_of(e, op->outputs[0]));
    vm_word(e, source);
    vm_word(e, vm_add_constant(e, keys->tensor));
    vm_end(e);
    end_op(e, region, op);
    return BERTH_OK;
}

static berth_status emit_sequence_op(vm_emitter *e, berth_region_id region, const berth_op *op) {
    int64_t axis = berth_attrs_int(e->module, &op->attrs, "axis", 0);
    if (axis < -BERTH_MAX_RANK || axis > BERTH_MAX_RANK)
        return refuse(e, op, "attribute axis is out of range");
    int64_t join[2] = {axis, berth_attrs_int(e->module, &op->attrs, "new_axis", 0) == 1};
    int64_t split[2] = {axis, berth_attrs_int(e->module, &op->attrs, "keepdims", 1) != 0};
    switch (op->kind) {
    case BERTH_OP_SEQUENCE_INSERT: emit_simple(e, region, op, BERTH_VM_INSERT, 3, NULL, 0); break;
    case BERTH_OP_SEQUENCE_ERASE: emit_simple(e, region, op, BERTH_VM_ERASE, 2, NULL, 0); break;
    case BERTH_OP_SEQUENCE_AT: emit_simple(e, region, op, BERTH_VM_AT, 2, NULL, 0); break;
    case BERTH_OP_SEQUENCE_LENGTH: emit_simple(e, region, op, BERTH_VM_LENGTH, 1, NULL, 0); break;
    case BERTH_OP_CONCAT_FROM_SEQUENCE:
        emit_simple(e, region, op, BERTH_VM_JOIN, 1, join, 2);
        break;
    case BERTH_OP_SPLIT_TO_SEQUENCE: emit_simple(e, region, op, BERTH_VM_SPLIT, 2, split, 2); break;
    case BERTH_OP_OPTIONAL_EMPTY: emit_simple(e, region, op, BERTH_VM_NOTHING, 0, NULL, 0); break;
    case BERTH_OP_OPTIONAL_HAS_ELEMENT: emit_simple(e, region, op, BERTH_VM_HAS, 1, NULL, 0); break;
    case BERTH_OP_OPTIONAL_GET_ELEMENT: emit_simple(e, region, op, BERTH_VM_GET, 1, NULL, 0); break;
    case BERTH_OP_MAP_KEYS: emit_simple(e, region, op, BERTH_VM_KEYS, 1, NULL, 0); break;
    case BERTH_OP_MAP_VALUES: emit_simple(e, region, op, BERTH_VM_VALUES, 1, NULL, 0); break;
    case BERTH_OP_ZIP_MAP: return emit_zip(e, region, op);
    default: return refuse(e, op, "the virtual machine does not run it");
    }
    return BERTH_OK;
}

static void emit_fail(vm_emitter *e, const berth_op *op) {
    const char *reason = berth_attrs_string(e->module, &op->attrs, "reason", "it is not supported");
    berth_vec_push(e->arena, &e->builder->messages, reason);
    vm_begin(e, BERTH_VM_FAIL);
    vm_word(e, e->builder->messages.count - 1);
    vm_end(e);
}

berth_status vm_emit_structure(vm_emitter *e, berth_region_id region, berth_op_id id) {
    const berth_op *op = &e->graph->ops.data[id];
    switch (op->kind) {
    case BERTH_OP_IF: return emit_if(e, region, op);
    case BERTH_OP_LOOP: return emit_loop(e, region, op);
    case BERTH_OP_CALL:
    case BERTH_OP_CALL_VALUE: return emit_call(e, region, op);
    case BERTH_OP_IDENTITY:  // of any kind of value
        vm_move(e, vm_register_of(e, op->outputs[0]), vm_source(e, op->inputs[0]));
        end_op(e, region, op);
        return BERTH_OK;
    case BERTH_OP_SEQUENCE_CONSTRUCT:
    case BERTH_OP_TUPLE: emit_sequence(e, region, op); return BERTH_OK;
    case BERTH_OP_TUPLE_GET: emit_tuple_get(e, region, op); return BERTH_OK;
    case BERTH_OP_NOT_IMPORTED: emit_fail(e, op); return BERTH_OK;
    default: return emit_sequence_op(e, region, op);
    }
}
