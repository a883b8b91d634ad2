// What a walk knows of values.
#include <string.h>

#include "base/str.h"
#include "compiler/vm/walker.h"

// Data of more bytes is not looked at: it decides no shape.
enum { most_known_bytes = 1 << 16 };

static void add_bytes(berth_strbuf *text, const void *data, size_t size_bytes) {
    berth_strbuf_add_n(text, data, size_bytes);
}

static const walk_value *finish(berth_arena *arena, walk_value *value) {
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_strbuf text = berth_strbuf_make(scratch);
    int64_t head[] = {value->kind,
                      value->assumed,
                      value->is_open,
                      value->item_count,
                      value->tensor.dtype,
                      value->tensor.rank,
                      value->tensor.data != NULL};
    add_bytes(&text, head, sizeof(head));
    for (int d = 0; d < value->tensor.rank; ++d)
        add_bytes(&text, &value->tensor.dims[d], sizeof(value->tensor.dims[d]));
    if (value->tensor.data)
        add_bytes(&text, value->tensor.data, berth_tensor_size_bytes(&value->tensor));
    for (uint32_t i = 0; i < value->item_count; ++i)
        add_bytes(&text, &value->items[i]->hash, sizeof(value->items[i]->hash));
    value->hash = berth_hash128_of(text.data, text.length);
    berth_arena_destroy(scratch);
    return value;
}

bool walk_is_static(const walk_value *value) {
    if (!value || value->kind != WALK_TENSOR || !value->tensor.dtype || value->tensor.rank < 0)
        return false;
    for (int d = 0; d < value->tensor.rank; ++d)
        if (value->tensor.dims[d] < 0) return false;
    return true;
}

const walk_value *walk_tensor(berth_arena *arena, const berth_tensor *tensor, bool assumed) {
    walk_value *value = berth_arena_new(arena, walk_value);
    value->kind = WALK_TENSOR;
    value->tensor = *tensor;
    size_t size_bytes = walk_is_static(value) ? berth_tensor_size_bytes(tensor) : 0;
    bool known = tensor->data && size_bytes && size_bytes <= most_known_bytes;
    value->tensor.data = known ? berth_arena_copy(arena, tensor->data, size_bytes) : NULL;
    value->assumed = known && assumed;
    return finish(arena, value);
}

const walk_value *walk_nothing(berth_arena *arena) {
    return finish(arena, berth_arena_new(arena, walk_value));
}

static const walk_value *anything(berth_arena *arena) {
    walk_value *value = berth_arena_new(arena, walk_value);
    value->kind = WALK_ANYTHING;
    return finish(arena, value);
}

const walk_value *walk_sequence(berth_arena *arena, const walk_value *const *items, uint32_t count,
                                bool is_open) {
    walk_value *value = berth_arena_new(arena, walk_value);
    value->kind = WALK_SEQUENCE;
    value->items = berth_arena_array(arena, (size_t)count + 1, sizeof(*items));
    for (uint32_t i = 0; i < count; ++i) value->items[i] = items[i];
    value->item_count = count;
    value->is_open = is_open;
    return finish(arena, value);
}

// ---- joining ------------------------------------------------------------------------------------

static const walk_value *join_tensors(berth_arena *arena, const walk_value *a,
                                      const walk_value *b) {
    berth_tensor joined = a->tensor;
    joined.data = NULL;
    if (a->tensor.dtype != b->tensor.dtype) joined.dtype = BERTH_DTYPE_NONE;
    if (a->tensor.rank != b->tensor.rank) joined.rank = -1;
    for (int d = 0; d < joined.rank; ++d)
        if (a->tensor.dims[d] != b->tensor.dims[d]) joined.dims[d] = -1;
    return walk_tensor(arena, &joined, false);
}

// One that stands for all elements; NULL: there are none.
static const walk_value *any_item(berth_arena *arena, const walk_value *sequence) {
    const walk_value *item = sequence->item_count ? sequence->items[0] : NULL;
    for (uint32_t i = 1; i < sequence->item_count; ++i)
        item = walk_join(arena, item, sequence->items[i]);
    return item;
}

static const walk_value *open_sequence(berth_arena *arena, const walk_value *a,
                                       const walk_value *b) {
    const walk_value *item = a && b ? walk_join(arena, a, b) : a ? a : b;
    return walk_sequence(arena, &item, item ? 1 : 0, true);
}

const walk_value *walk_join(berth_arena *arena, const walk_value *a, const walk_value *b) {
    if (a == b || (a && b && berth_hash128_equal(a->hash, b->hash))) return a;
    if (!a || !b || a->kind != b->kind) return anything(arena);
    if (a->kind == WALK_TENSOR) return join_tensors(arena, a, b);
    if (a->kind != WALK_SEQUENCE) return a;
    if (a->is_open || b->is_open || a->item_count != b->item_count)
        return open_sequence(arena, any_item(arena, a), any_item(arena, b));
    const walk_value **items = berth_arena_array(arena, (size_t)a->item_count + 1, sizeof(*items));
    for (uint32_t i = 0; i < a->item_count; ++i)
        items[i] = walk_join(arena, a->items[i], b->items[i]);
    return walk_sequence(arena, items, a->item_count, false);
}

// ---- sequences ----------------------------------------------------------------------------------

bool walk_number(const walk_value *value, int64_t *out_number) {
    if (!walk_is_static(value) || !value->tensor.data ||
        berth_tensor_element_count(&value->tensor) != 1)
        return false;
    *out_number = berth_tensor_get_i64(&value->tensor, 0);
    return true;
}

// Of `count` places; false: it is not known. Positions outside end the way (`*out_wrong`).
static bool place_of(const walk_value *position, bool at_end, int64_t last, int64_t count,
                     int64_t *out_place, bool *out_wrong) {
    *out_wrong = false;
    *out_place = last;
    if (!at_end && !walk_number(position, out_place)) return false;
    if (!at_end && *out_place < 0) *out_place += count;
    *out_wrong = *out_place < 0 || *out_place > last;
    return true;
}

const walk_value *walk_insert(berth_arena *arena, const walk_value *sequence,
                              const walk_value *item, const walk_value *position, bool at_end) {
    int64_t place = 0, count = sequence->item_count;
    bool wrong = false;
    if (sequence->is_open || !place_of(position, at_end, count, count, &place, &wrong))
        return open_sequence(arena, any_item(arena, sequence), item);
    if (wrong) return NULL;
    const walk_value **items = berth_arena_array(arena, (size_t)count + 1, sizeof(*items));
    for (int64_t i = 0; i <= count; ++i)
        items[i] = i == place ? item : sequence->items[i < place ? i : i - 1];
    return walk_sequence(arena, items, (uint32_t)count + 1, false);
}

const walk_value *walk_erase(berth_arena *arena, const walk_value *sequence,
                             const walk_value *position, bool at_end) {
    int64_t place = 0, count = sequence->item_count;
    bool wrong = false;
    if (sequence->is_open || !place_of(position, at_end, count - 1, count, &place, &wrong))
        return open_sequence(arena, any_item(arena, sequence), NULL);
    if (wrong) return NULL;
    const walk_value **items = berth_arena_array(arena, (size_t)count + 1, sizeof(*items));
    for (int64_t i = 0; i + 1 < count; ++i) items[i] = sequence->items[i < place ? i : i + 1];
    return walk_sequence(arena, items, (uint32_t)count - 1, false);
}

const walk_value *walk_at(berth_arena *arena, const walk_value *sequence,
                          const walk_value *position) {
    int64_t place = 0, count = sequence->item_count;
    bool wrong = false;
    if (sequence->is_open || !place_of(position, false, count - 1, count, &place, &wrong))
        return any_item(arena, sequence);
    return wrong ? NULL : sequence->items[place];
}

static const walk_value *number(berth_arena *arena, bool known, int64_t value) {
    berth_tensor tensor = {.dtype = BERTH_DTYPE_I64, .data = known ? &value : NULL};
    return walk_tensor(arena, &tensor, false);
}

const walk_value *walk_length(berth_arena *arena, const walk_value *sequence) {
    return number(arena, !sequence->is_open, sequence->item_count);
}

const walk_value *walk_stack(berth_arena *arena, const walk_value *sequence, int64_t axis,
                             bool new_axis, const berth_tensor *empty) {
    const walk_value *item = any_item(arena, sequence);
    if (!item) {
        berth_tensor unknown = {.rank = -1};
        if (empty && !sequence->is_open) return walk_tensor(arena, empty, false);
        return sequence->is_open ? walk_tensor(arena, &unknown, false) : NULL;
    }
    if (item->kind != WALK_TENSOR) return NULL;
    berth_tensor joined = {.dtype = item->tensor.dtype, .rank = -1};
    int rank = item->tensor.rank + new_axis;
    if (item->tensor.rank < 0) return walk_tensor(arena, &joined, false);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || rank > BERTH_MAX_RANK) return NULL;
    joined.rank = rank;
    for (int d = 0, from = 0; d < rank; ++d)
        if (!new_axis || d != axis) joined.dims[d] = item->tensor.dims[from++];
    joined.dims[axis] = 0;
    for (uint32_t i = 0; i < sequence->item_count && joined.dims[axis] >= 0; ++i) {
        int64_t extent = new_axis ? 1 : sequence->items[i]->tensor.dims[axis];
        joined.dims[axis] = extent < 0 ? -1 : joined.dims[axis] + extent;
    }
    if (sequence->is_open) joined.dims[axis] = -1;
    return walk_tensor(arena, &joined, false);
}

// ---- splitting ----------------------------------------------------------------------------------

// Sizes of the parts in order; false: they are not known.
static bool next_size(const walk_value *sizes, uint32_t index, int64_t left, int64_t *out_size) {
    *out_size = 1;
    if (!sizes) return true;
    if (!walk_is_static(sizes) || !sizes->tensor.data) return false;
    bool one = sizes->tensor.rank == 0;
    if (!one && index >= berth_tensor_element_count(&sizes->tensor)) return false;
    *out_size = berth_tensor_get_i64(&sizes->tensor, one ? 0 : index);
    if (one && *out_size > left) *out_size = left;
    return *out_size > 0 || !one;
}

const walk_value *walk_split(berth_arena *arena, const walk_value *value, const walk_value *sizes,
                             int64_t axis, bool keep_axis) {
    enum { most_parts = 4096 };
    berth_tensor part = value->tensor;
    BERTH_VEC(const walk_value *) items = {0};
    part.data = NULL;
    if (axis < 0) axis += part.rank;
    if (part.rank < 0) return walk_sequence(arena, NULL, 0, true);
    if (axis < 0 || axis >= part.rank) return NULL;
    bool squeezes = !sizes && !keep_axis;
    int64_t left = value->tensor.dims[axis];
    bool known = left >= 0;
    while (known && left > 0 && items.count < most_parts) {
        int64_t size = 0;
        known = next_size(sizes, items.count, left, &size);
        if (!known) break;
        if (size < 0 || size > left) return NULL;
        part = value->tensor;
        part.data = NULL;
        part.dims[axis] = size;
        left -= size;
        if (squeezes) part.rank--;
        for (int d = (int)axis; squeezes && d < part.rank; ++d)
            part.dims[d] = value->tensor.dims[d + 1];
        berth_vec_push(arena, &items, walk_tensor(arena, &part, false));
    }
    if (known && left == 0) return walk_sequence(arena, items.data, items.count, false);
    part = value->tensor;
    part.data = NULL;
    part.dims[axis] = sizes ? -1 : 1;
    if (squeezes) part.rank--;
    for (int d = (int)axis; squeezes && d < part.rank; ++d)
        part.dims[d] = value->tensor.dims[d + 1];
    const walk_value *item = walk_tensor(arena, &part, false);
    return walk_sequence(arena, &item, 1, true);
}
