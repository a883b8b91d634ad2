// State of one translation to byte code (private to compiler/vm).
#ifndef BERTH_COMPILER_VM_EMITTER_H_
#define BERTH_COMPILER_VM_EMITTER_H_

#include "compiler/vm/vm.h"

// How far a value is known before the run: not; from small integer inputs of the model; from shapes;
// always.
enum { KNOWN_NOT, KNOWN_FROM_INPUTS, KNOWN_FROM_SHAPES, KNOWN_ALWAYS };

typedef struct vm_pending_drop {
    berth_region_id region;
    uint32_t reg;
} vm_pending_drop;

// Of a value, while the segment that is being gathered is closed; else 0.
typedef struct vm_mark {
    uint32_t input;   // index among the segment's inputs + 1
    uint32_t inside;  // uses in the segment
    bool needed;      // to know a shape
} vm_mark;

// Of the whole program.
typedef struct vm_builder {
    berth_module *module;
    berth_arena *arena;
    BERTH_VEC(berth_vm_function) functions;
    BERTH_VEC(berth_func_id) sources;  // of the functions
    BERTH_VEC(berth_tensor) constants;
    BERTH_VEC(berth_vm_piece) segment_pieces;
    BERTH_VEC(berth_vm_segment) segments;
    BERTH_VEC(berth_vm_piece) host_pieces;
    BERTH_VEC(berth_vm_host_operation) host_operations;
    BERTH_VEC(const char *) messages;
    uint32_t depth;           // of functions that are being translated: one calls the next
    bool compile_parameters;  // as berth_vm_emit
} vm_builder;

// Of one function.
typedef struct vm_emitter {
    vm_builder *builder;
    berth_module *module;
    berth_arena *arena;
    berth_func_id function;
    const berth_graph *graph;
    bool is_main;
    BERTH_VEC(uint32_t) code;
    uint32_t instruction;  // word of the one that is being written
    uint32_t register_count;
    uint32_t *registers;  // per value; BERTH_NONE = none yet
    uint32_t *uses;       // per value: uses that are not emitted yet
    uint8_t *known;       // per value: KNOWN_*
    BERTH_VEC(vm_pending_drop) drops;
    // The segment that is being gathered:
    BERTH_VEC(berth_op_id) open;
    bool *in_open;   // per value: an operation of it makes the value
    vm_mark *marks;  // per value
} vm_emitter;

// code.c: writing instructions.
void vm_begin(vm_emitter *e, berth_vm_opcode opcode);
void vm_word(vm_emitter *e, uint32_t word);
void vm_end(vm_emitter *e);
uint32_t vm_here(const vm_emitter *e);
void vm_patch(vm_emitter *e, uint32_t at, uint32_t target);  // last word of the instruction at `at`
uint32_t vm_new_register(vm_emitter *e);
uint32_t vm_register_of(vm_emitter *e, berth_value_id value);  // that it is written to
// That it is read from: of constants, a new one that an instruction before fills.
uint32_t vm_source(vm_emitter *e, berth_value_id value);
uint32_t vm_add_constant(vm_emitter *e, const berth_tensor *tensor);
void vm_move(vm_emitter *e, uint32_t to, uint32_t from);
// A use of the value is behind us; the last one lets vm_flush_drops empty its register.
void vm_consume(vm_emitter *e, berth_value_id value);
void vm_flush_drops(vm_emitter *e, berth_region_id region);

// What a segment has beside its operations.
typedef struct vm_gathered {
    BERTH_VEC(berth_value_id) inputs;
    BERTH_VEC(bool) known;
    BERTH_VEC(berth_value_id) outputs;
} vm_gathered;

// segment.c: the segment that is being gathered.
bool vm_is_constant(const vm_emitter *e, berth_value_id value);
bool vm_reads_open(const vm_emitter *e, const berth_op *op);
void vm_add_to_segment(vm_emitter *e, berth_op_id op);
void vm_close_segment(vm_emitter *e, berth_region_id region);
// The same without code, for the open operations (which stay open; in_open is cleared): needs module,
// arena, function, graph, open, in_open, marks and uses.
vm_gathered vm_gather(vm_emitter *e);
berth_vm_segment vm_gathered_segment(const vm_emitter *e, const vm_gathered *g);

// control.c: operations with regions, sequences, calls.
berth_status vm_emit_region(vm_emitter *e, berth_region_id region);  // emit.c
berth_status vm_emit_structure(vm_emitter *e, berth_region_id region, berth_op_id id);
bool vm_is_structure(const berth_module *module, const berth_op *op);
// emit.c: index of the byte code of a graph function, translated when it is first asked for.
berth_status vm_function_index(vm_builder *builder, berth_func_id function, uint32_t *out_index);

#endif  // BERTH_COMPILER_VM_EMITTER_H_
