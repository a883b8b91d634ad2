// Writing instructions and giving out registers.
#include "compiler/vm/emitter.h"

void vm_begin(vm_emitter *e, berth_vm_opcode opcode) {
    e->instruction = e->code.count;
    berth_vec_push(e->arena, &e->code, (uint32_t)opcode);
}

void vm_word(vm_emitter *e, uint32_t word) {
    berth_vec_push(e->arena, &e->code, word);
}

void vm_end(vm_emitter *e) {
    uint32_t *word = &e->code.data[e->instruction];
    *word = berth_vm_word((berth_vm_opcode)*word, e->code.count - e->instruction);
}

uint32_t vm_here(const vm_emitter *e) {
    return e->code.count;
}

void vm_patch(vm_emitter *e, uint32_t at, uint32_t target) {
    e->code.data[at + berth_vm_length_of(e->code.data[at]) - 1] = target;
}

uint32_t vm_new_register(vm_emitter *e) {
    return e->register_count++;
}

uint32_t vm_register_of(vm_emitter *e, berth_value_id value) {
    if (e->registers[value] == BERTH_NONE) e->registers[value] = vm_new_register(e);
    return e->registers[value];
}

uint32_t vm_add_constant(vm_emitter *e, const berth_tensor *tensor) {
    berth_vec_push(e->arena, &e->builder->constants, berth_tensor_align(e->arena, tensor));
    return e->builder->constants.count - 1;
}

// A constant has no register of its own: the code may come by here without having been there.
uint32_t vm_source(vm_emitter *e, berth_value_id value) {
    const berth_tensor *constant = berth_graph_raw_constant_of(e->module, e->graph, value);
    if (!constant) return vm_register_of(e, value);
    uint32_t reg = vm_new_register(e);
    vm_begin(e, BERTH_VM_CONST);
    vm_word(e, reg);
    vm_word(e, vm_add_constant(e, constant));
    vm_end(e);
    return reg;
}

void vm_move(vm_emitter *e, uint32_t to, uint32_t from) {
    vm_begin(e, BERTH_VM_MOVE);
    vm_word(e, to);
    vm_word(e, from);
    vm_end(e);
}

static berth_region_id region_of(const vm_emitter *e, berth_value_id value) {
    const berth_value *held = &e->graph->values.data[value];
    return held->op == BERTH_NONE ? held->region : e->graph->ops.data[held->op].region;
}

// Parameters of a loop's body keep their registers from one iteration to the next.
void vm_consume(vm_emitter *e, berth_value_id value) {
    if (value == BERTH_NONE || vm_is_constant(e, value) || --e->uses[value] > 0) return;
    const berth_value *held = &e->graph->values.data[value];
    if (held->op == BERTH_NONE && held->region != 0) return;
    berth_vec_push(e->arena, &e->drops,
                   (vm_pending_drop){region_of(e, value), vm_register_of(e, value)});
}

// A value of an outer region waits for that region: the code here may run again, or not at all.
void vm_flush_drops(vm_emitter *e, berth_region_id region) {
    uint32_t kept = 0, count = 0;
    for (uint32_t i = 0; i < e->drops.count; ++i) count += e->drops.data[i].region == region;
    if (count == 0) return;
    vm_begin(e, BERTH_VM_DROP);
    vm_word(e, count);
    for (uint32_t i = 0; i < e->drops.count; ++i) {
        if (e->drops.data[i].region == region)
            vm_word(e, e->drops.data[i].reg);
        else
            e->drops.data[kept++] = e->drops.data[i];
    }
    vm_end(e);
    e->drops.count = kept;
}
