// State of a walk through byte code (private to compiler/vm).
#ifndef BERTH_COMPILER_VM_WALKER_H_
#define BERTH_COMPILER_VM_WALKER_H_

#include "compiler/vm/walk.h"

typedef enum walk_kind { WALK_NOTHING, WALK_TENSOR, WALK_SEQUENCE, WALK_ANYTHING } walk_kind;

// What is known of a value. Never changes once it is made.
typedef struct walk_value walk_value;
struct walk_value {
    walk_kind kind;
    bool assumed;         // its data comes from an input's value that the walk is for
    berth_tensor tensor;  // dims, rank -1: not known; data NULL: not known
    // A sequence: its elements; or, where it is open, any number of elements like the one there is.
    const walk_value **items;
    uint32_t item_count;
    bool is_open;
    berth_hash128 hash;
};

typedef struct walker {
    berth_module *module;
    const berth_vm_code *code;
    berth_log log;
    berth_vm_reached *reached;
    berth_arena *arena;
    uint32_t rounds;                  // of a loop that are followed one by one
    uint64_t steps;                   // instructions so far
    uint32_t returned;                // ways that came to the end of the model
    berth_status stopped;             // why the first way ended that did not
    struct walk_known_piece *pieces;  // what pieces give for inputs they were asked about
    uint32_t *by_value;               // per piece: results that were kept for values
} walker;

// walk_value.c
const walk_value *walk_tensor(berth_arena *arena, const berth_tensor *tensor, bool assumed);
const walk_value *walk_nothing(berth_arena *arena);
const walk_value *walk_sequence(berth_arena *arena, const walk_value *const *items, uint32_t count,
                                bool is_open);
// Nothing but what both have in common; NULL is an empty register.
const walk_value *walk_join(berth_arena *arena, const walk_value *a, const walk_value *b);
bool walk_is_static(const walk_value *value);  // a tensor of known shape
// An integer or truth value of one element that is known.
bool walk_number(const walk_value *value, int64_t *out_number);
// The results of instructions on sequences; `position`, `sizes` may be NULL. NULL: it cannot be.
const walk_value *walk_insert(berth_arena *arena, const walk_value *sequence,
                              const walk_value *item, const walk_value *position, bool at_end);
const walk_value *walk_erase(berth_arena *arena, const walk_value *sequence,
                             const walk_value *position, bool at_end);
const walk_value *walk_at(berth_arena *arena, const walk_value *sequence,
                          const walk_value *position);
const walk_value *walk_length(berth_arena *arena, const walk_value *sequence);
const walk_value *walk_stack(berth_arena *arena, const walk_value *sequence, int64_t axis,
                             bool new_axis, const berth_tensor *empty);
const walk_value *walk_split(berth_arena *arena, const walk_value *value, const walk_value *sizes,
                             int64_t axis, bool keep_axis);

// walk_piece.c: what a piece gives for inputs (NULL where one is left out), noted among what was reached.
// Errors: UNSUPPORTED what is not known; INVALID_ARGUMENT the operations do not fit.
berth_status walk_piece(walker *w, uint32_t piece, const walk_value *const *inputs,
                        const walk_value **outputs);

#endif  // BERTH_COMPILER_VM_WALKER_H_
