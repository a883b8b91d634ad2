// What one node does to the live bytes, and the bounds of a part.
#include <string.h>

#include "memory/order_private.h"

static bool is_touched(const order_part *part, const uint64_t *done, uint32_t buffer) {
    if (part->before[buffer]) return true;
    for (uint32_t i = part->users.first[buffer]; i < part->users.first[buffer + 1]; ++i)
        if (berth_order__has(done, part->users.items[i])) return true;
    return false;
}

static bool ends_with(const order_part *part, const uint64_t *done, uint32_t buffer,
                      uint32_t node) {
    if (part->after[buffer]) return false;
    for (uint32_t i = part->users.first[buffer]; i < part->users.first[buffer + 1]; ++i)
        if (part->users.items[i] != node && !berth_order__has(done, part->users.items[i]))
            return false;
    return true;
}

// Whether an in-place pair of the node before number `index` concerns one of its two buffers.
static bool is_taken(const order_part *part, uint32_t first, uint32_t index, const bool *applied) {
    for (uint32_t i = first; i < index; ++i)
        if (applied[i - first] &&
            (part->from.items[i] == part->from.items[index] || part->to[i] == part->to[index]))
            return true;
    return false;
}

static uint64_t saved_bytes(const order_part *part, const uint64_t *done, uint32_t node) {
    enum { most = 16 };  // more are not looked at: they only cost memory
    bool applied[most] = {false};
    uint32_t first = part->from.first[node];
    uint32_t end = part->from.first[node + 1];
    uint64_t bytes = 0;
    if (end - first > most) end = first + most;
    for (uint32_t i = first; i < end; ++i) {
        uint32_t from = part->from.items[i];
        if (is_taken(part, first, i, applied) || is_touched(part, done, part->to[i]) ||
            !ends_with(part, done, from, node))
            continue;
        applied[i - first] = true;
        bytes += part->sizes[from];
    }
    return bytes;
}

order_move berth_order__move(const order_part *part, const uint64_t *done, uint32_t node,
                             uint64_t live_bytes) {
    order_move move = {live_bytes, live_bytes};
    uint64_t freed = 0;
    for (uint32_t i = part->touches.first[node]; i < part->touches.first[node + 1]; ++i) {
        uint32_t buffer = part->touches.items[i];
        if (!is_touched(part, done, buffer)) move.during_bytes += part->sizes[buffer];
        if (ends_with(part, done, buffer, node)) freed += part->sizes[buffer];
    }
    move.after_bytes = move.during_bytes - freed;
    move.during_bytes -= saved_bytes(part, done, node);
    return move;
}

static uint32_t words_of(const order_part *part) {
    return part->node_count / 64 + 1;
}

uint64_t berth_order__source_peak(berth_arena *scratch, const order_part *part) {
    uint64_t *done = berth_arena_new_array(scratch, uint64_t, words_of(part));
    uint64_t live = part->begin_bytes;
    uint64_t peak = live;
    for (uint32_t node = 0; node < part->node_count; ++node) {
        order_move move = berth_order__move(part, done, node, live);
        if (move.during_bytes > peak) peak = move.during_bytes;
        live = move.after_bytes;
        berth_order__add(done, node);
    }
    return peak;
}

// ---- lower bound --------------------------------------------------------------------------------

enum { closure_limit = 2048 };  // nodes of a part whose ancestors are computed

// Row x: the nodes that come before x (or after it) in every order.
static uint64_t *closure(berth_arena *scratch, const order_part *part, const order_lists *next,
                         bool forwards) {
    uint32_t words = words_of(part);
    uint64_t *rows = berth_arena_new_array(scratch, uint64_t, (size_t)words * part->node_count);
    for (uint32_t k = 0; k < part->node_count; ++k) {
        uint32_t node = forwards ? k : part->node_count - 1 - k;
        uint64_t *row = rows + (size_t)node * words;
        for (uint32_t i = next->first[node]; i < next->first[node + 1]; ++i) {
            const uint64_t *other = rows + (size_t)next->items[i] * words;
            for (uint32_t w = 0; w < words; ++w) row[w] |= other[w];
            berth_order__add(row, next->items[i]);
        }
    }
    return rows;
}

static bool touches_any(const order_part *part, uint32_t buffer, const uint64_t *set) {
    for (uint32_t i = part->users.first[buffer]; set && i < part->users.first[buffer + 1]; ++i)
        if (berth_order__has(set, part->users.items[i])) return true;
    return false;
}

// Bytes live at the node in every order.
static uint64_t certain_bytes(const order_part *part, uint32_t node, const uint64_t *ancestors,
                              const uint64_t *descendants, bool *touched) {
    uint64_t bytes = part->base_bytes;
    for (uint32_t i = part->touches.first[node]; i < part->touches.first[node + 1]; ++i)
        touched[part->touches.items[i]] = true;
    for (uint32_t b = 0; b < part->buffer_count; ++b) {
        bool live = touched[b] || ((part->before[b] || touches_any(part, b, ancestors)) &&
                                   (part->after[b] || touches_any(part, b, descendants)));
        if (live) bytes += part->sizes[b];
        touched[b] = false;
    }
    for (uint32_t i = part->from.first[node]; i < part->from.first[node + 1]; ++i) {
        bool first = true;  // each result saves its size once
        for (uint32_t k = part->from.first[node]; k < i; ++k) first &= part->to[k] != part->to[i];
        if (first) bytes -= part->sizes[part->to[i]];
    }
    return bytes;
}

uint64_t berth_order__bound(berth_arena *scratch, const order_part *part) {
    uint64_t *ancestors = NULL;
    uint64_t *descendants = NULL;
    uint32_t words = words_of(part);
    if (part->node_count <= closure_limit) {
        ancestors = closure(scratch, part, &part->predecessors, true);
        descendants = closure(scratch, part, &part->successors, false);
    }
    bool *touched = berth_arena_new_array(scratch, bool, part->buffer_count);
    uint64_t bound = part->begin_bytes;
    for (uint32_t node = 0; node < part->node_count; ++node) {
        const uint64_t *before = ancestors ? ancestors + (size_t)node * words : NULL;
        const uint64_t *behind = descendants ? descendants + (size_t)node * words : NULL;
        uint64_t bytes = certain_bytes(part, node, before, behind, touched);
        if (bytes > bound) bound = bytes;
    }
    return bound;
}
