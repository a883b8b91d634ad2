#include "compiler/onnx/importer.h"

static uint32_t slot_of(const onnx_scope *scope, berth_str_id name) {
    uint32_t mask = scope->slot_count - 1;
    uint32_t at = (name * 2654435761u) & mask;  // Knuth's multiplicative hash
    while (scope->slots[at] && scope->entries.data[scope->slots[at] - 1].name != name)
        at = (at + 1) & mask;
    return at;
}

static void grow(berth_arena *arena, onnx_scope *scope) {
    scope->slot_count = scope->slot_count ? scope->slot_count * 2 : 64;
    scope->slots = berth_arena_new_array(arena, uint32_t, scope->slot_count);
    for (uint32_t i = 0; i < scope->entries.count; ++i)
        scope->slots[slot_of(scope, scope->entries.data[i].name)] = i + 1;
}

void onnx_scope_add(berth_arena *arena, onnx_scope *scope, berth_str_id name, uint32_t value) {
    if ((scope->entries.count + 1) * 2 > scope->slot_count) grow(arena, scope);
    uint32_t at = slot_of(scope, name);
    if (scope->slots[at]) {
        scope->entries.data[scope->slots[at] - 1].value = value;
        return;
    }
    berth_vec_push(arena, &scope->entries, (struct onnx_scope_entry){name, value});
    scope->slots[at] = scope->entries.count;
}

uint32_t onnx_scope_find_here(const onnx_scope *scope, berth_str_id name) {
    if (!scope->slot_count) return BERTH_NONE;
    uint32_t at = slot_of(scope, name);
    return scope->slots[at] ? scope->entries.data[scope->slots[at] - 1].value : BERTH_NONE;
}

uint32_t onnx_scope_find(const onnx_scope *scope, berth_str_id name) {
    for (; scope; scope = scope->parent) {
        uint32_t value = onnx_scope_find_here(scope, name);
        if (value != BERTH_NONE) return value;
    }
    return BERTH_NONE;
}
