// From a module to byte code of the virtual machine (artifact/vm.h): for models with control flow, or
// with shapes that are not known before the run.
//
// Operations in a row become segments, each of which is compiled by the whole pipeline as a model of
// its own once the shapes of its inputs are known (berth_vm_segment_module, then berth_compile).
// Shape arithmetic on what a segment has disappears in that. What decides shapes and is not known
// from shapes alone, what gives results of a shape that depends on data, and arithmetic on a few
// integers that are at hand run on the host (berth_eval_op); branches, loops and sequences are the
// machine's.
#ifndef BERTH_COMPILER_VM_VM_H_
#define BERTH_COMPILER_VM_VM_H_

#include "artifact/vm.h"
#include "base/hash.h"
#include "base/log.h"
#include "ir/graph/graph.h"

typedef struct berth_vm_segment {
    berth_func_id function;
    const berth_op_id *ops;  // in order
    uint32_t op_count;
    const berth_value_id *inputs;  // BERTH_NONE: left out (of a host operation)
    const bool
        *known;  // per input: its value decides a shape, so a compiled segment is for it alone
    uint32_t input_count;
    const berth_value_id *outputs;
    uint32_t output_count;
    bool changes;  // of a part (berth_vm_segment_split): its shapes differ from one run to the next
} berth_vm_segment;

typedef struct berth_vm_host_operation {
    berth_func_id function;
    berth_op_id op;
} berth_vm_host_operation;

typedef struct berth_vm_code {
    const berth_vm_program *program;
    const berth_vm_segment *segments;                // program->segment_count
    const berth_vm_host_operation *host_operations;  // program->host_operation_count
} berth_vm_code;

// Whether @main needs the virtual machine: control flow, sequences or unknown shapes are left in it
// after types were inferred and constants folded (passes/fold.h).
bool berth_vm_is_needed(const berth_module *module, berth_func_id main);

// Byte code of @main and of the graph functions it calls; folds constants first. The result lives in
// the module's arena and refers to the module. An entry point: not inside berth_arena_try.
//   compile_parameters: operations whose parameters only the run knows are in segments, too, which are
//   compiled for the values that come. Without it they are the host's: one that a loop's counter decides
//   changes in every round.
// Errors: those of fold.h; UNSUPPORTED (functions as values, external functions) with the location.
BERTH_MUST_USE berth_status berth_vm_emit(berth_module *module, berth_log log,
                                          bool compile_parameters, berth_vm_code *out_code);

// The same for program files, which have no interpreter of operations: what data decides the extent of becomes operations of
// known shapes and a count first (compiler/vm/counted.h), where that can be. No notes.
BERTH_MUST_USE berth_status berth_vm_emit_counted(berth_module *module, berth_vm_code *out_code);

// A segment as a module of its own in `arena`, for inputs of these shapes (of known inputs, these
// values): @main with a parameter per input that is not known, in order, named "input0", ..., and
// results "output0", .... Constants borrow from `module`. Inside berth_arena_try of the arena.
berth_module *berth_vm_segment_module(const berth_module *module, const berth_vm_segment *segment,
                                      const char *name, const berth_tensor *inputs,
                                      berth_arena *arena);

// ---- split.c: parts of a segment that change with its shapes, and parts that do not --------------

// A part of a segment and what it is given and gives: slots of values, of which the segment's inputs
// have the first.
typedef struct berth_vm_split_step {
    berth_vm_segment segment;
    berth_hash128
        key;  // parts of equal keys compute the same (equal layers): one program serves both
    const uint32_t *inputs;   // slots, segment.input_count of them
    const uint32_t *outputs;  // segment.output_count
    const uint32_t *last;     // slots that nobody needs after this step
    uint32_t last_count;
} berth_vm_split_step;

typedef struct berth_vm_split {
    const berth_vm_split_step *steps;  // in order
    uint32_t step_count;  // 0: all changes, or nothing does, or the parts were too small
    uint32_t slot_count;
    const uint32_t *outputs;  // slots of the segment's outputs
} berth_vm_split;

// Divides a segment by what differs between two runs: operations whose operands and results have the
// same shapes (and the same values where these are known) for the inputs `before` and `now`, and the
// others. A decoder that appends to its cache so compiles its attention anew for the next token, and
// nothing else. Right for any shapes: a part, too, is compiled for what it is given.
// Inputs are those of berth_vm_segment_module. The result lives in `arena`; an entry point: not inside
// berth_arena_try of it. O(operations * steps). Errors: those of fold.h.
BERTH_MUST_USE berth_status berth_vm_segment_split(berth_module *module,
                                                   const berth_vm_segment *segment,
                                                   const berth_tensor *before,
                                                   const berth_tensor *now, berth_arena *arena,
                                                   berth_vm_split *out_split);

#endif  // BERTH_COMPILER_VM_VM_H_
