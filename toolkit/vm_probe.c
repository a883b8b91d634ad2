#include "toolkit/vm_probe.h"

#include <string.h>

#include "ir/dim.h"

// In groups that leave the same rest to every power of two up to 64, so that their kernels have one form
// however a model divides the extent up to there: three like the shape at hand, one of them far larger (large
// operands are worked through in blocks), and two groups as examples of the forms that a rest makes.
static const int64_t more[BERTH_VM_PROBES] = {64, 192, 512, 100, 164, 612, 37, 101};

// Those of more than 1 with other extents. False: there are none.
static bool move(const berth_vm_symbols *symbols, int64_t add, berth_vm_symbols *out,
                 berth_arena *arena) {
    bool any = false;
    *out = *symbols;
    out->data = berth_arena_copy(arena, symbols->data, symbols->count * sizeof(*symbols->data));
    for (uint32_t i = 0; i < out->count; ++i) {
        int64_t *extent = &out->data[i].extent;
        bool moves = *extent > 1 && *extent <= INT32_MAX;
        if (moves) *extent += add;
        any |= moves;
    }
    return any;
}

const berth_tensor *berth_vm_probe(const berth_module *module, const berth_vm_segment *segment,
                                   const berth_tensor *inputs, const berth_vm_symbols *symbols,
                                   uint32_t which, berth_arena *arena) {
    berth_vm_symbols here = *symbols, moved;
    if (symbols->count == 0 || !move(symbols, more[which], &moved, arena)) return NULL;
    const berth_graph *graph = berth_graph_get(module, segment->function);
    berth_tensor *made = berth_arena_new_array(arena, berth_tensor, segment->input_count + 1);
    for (uint32_t i = 0; i < segment->input_count; ++i) {
        made[i] = inputs[i];
        made[i].data = NULL;
        if (segment->inputs[i] == BERTH_NONE) continue;
        const berth_type *type =
            berth_type_get(module, graph->values.data[segment->inputs[i]].type);
        if (segment->known[i] || type->kind != BERTH_TYPE_TENSOR || type->rank != inputs[i].rank)
            return NULL;
        for (int d = 0; d < type->rank; ++d) {
            int64_t now = 0, dim = type->dims[d];
            if (!berth_dim_is_symbol(dim)) continue;
            if (dim == BERTH_DIM_UNKNOWN ||
                !berth_dim_evaluate(module, dim, berth_vm_symbols_find, &here, arena, &now) ||
                now != inputs[i].dims[d] ||
                !berth_dim_evaluate(module, dim, berth_vm_symbols_find, &moved, arena,
                                    &made[i].dims[d]))
                return NULL;
        }
    }
    return made;
}
