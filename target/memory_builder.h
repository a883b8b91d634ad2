// What reads and completes the memories of a MultiTarget (private to memory.c and memory_budgets.c).
#ifndef BERTH_TARGET_MEMORY_BUILDER_H_
#define BERTH_TARGET_MEMORY_BUILDER_H_

#include "target/internal.h"

enum { BERTH_TARGET__BOARD_MEMORIES = 5 };  // that berth_target__imply_board knows

typedef struct berth_target__memory_builder {
    berth_target__parse *parse;
    berth_multi_target *multi;
    const json *root;
    uint32_t memory_room;  // entries that there is room for
} berth_target__memory_builder;

// The index of the memory with that name; BERTH_NO_INDEX: none.
uint32_t berth_target__memory_named(const berth_multi_target *multi, const char *name);

// A further memory of a device, with what its own memory has of figures; gives its index.
uint32_t berth_target__add_memory(berth_target__memory_builder *builder, uint32_t device,
                                  const char *name);

// Bare, with one device whose own memory nobody declared: a RAM named "sram", and "flash", "dtcm", "ccm" and "external"
// where the option gives them a budget.
void berth_target__imply_board(berth_target__memory_builder *builder);

// The budgets of the target's text, then those of the option ("NAME=BYTES,..."; NULL = none), which replace them.
void berth_target__read_budgets(berth_target__memory_builder *builder);
void berth_target__take_budgets(berth_target__memory_builder *builder, const char *list);

#endif
