#include "toolkit/vm_probe.h"

#include <string.h>

#include "ir/dim.h"

// Extents to ask for: of a part of the extent at hand, rounded up to a multiple, and something more.
typedef struct probe_extent {
    int64_t divisor, multiple, more;
} probe_extent;

// Kernels take other forms for other rests of an extent, and of its halves and quarters, to a vector or a tile.
static const probe_extent extents[BERTH_VM_PROBES] = {
    // With the rests of the shape at hand to every power of two up to 64, one of them far larger (large operands
    // are worked through in blocks), and then with rests of whole vectors.
    {1, 1, 64},
    {1, 1, 192},
    {1, 1, 512},
    {1, 64, 136},
    {1, 64, 152},
    {1, 64, 168},
    {1, 64, 184},
    // Without a rest; the other eighths of 64; a few elements over, odd numbers too; and smaller ones, where a tile does
    // not fit any more.
    {1, 64, 128},
    {1, 64, 144},
    {1, 64, 160},
    {1, 64, 176},
    {1, 64, 132},
    {1, 64, 140},
    {1, 64, 165},
    {1, 64, 229},
    {4, 64, 0},
    {4, 64, 8},
    {4, 64, 36},
    {8, 8, 0},
    {8, 8, 21},
};

static int64_t other_extent(int64_t extent, const probe_extent *p, bool is_sibling) {
    int64_t part = (extent + p->divisor - 1) / p->divisor;
    return (part + p->multiple - 1) / p->multiple * p->multiple + p->more + (is_sibling ? 192 : 0);
}

// Symbols move each by themselves: the extents of two are not told apart where they always go together.
static bool move(const berth_vm_symbols *symbols, const berth_vm_probe_what *what,
                 berth_vm_symbols *out, berth_arena *arena) {
    bool any = false;
    *out = *symbols;
    out->data = berth_arena_copy(arena, symbols->data, symbols->count * sizeof(*symbols->data));
    for (uint32_t i = 0; i < out->count && i < BERTH_VM_PROBE_SYMBOLS; ++i) {
        int64_t *extent = &out->data[i].extent;
        bool moves = *extent > 1 && *extent <= INT32_MAX && (what->symbols >> i & 1);
        const probe_extent *to = &extents[(what->which + 5 * i) % BERTH_VM_PROBES];
        if (moves) *extent = other_extent(*extent, to, what->is_sibling);
        any |= moves;
    }
    return any;
}

const berth_tensor *berth_vm_probe(const berth_module *module, const berth_vm_segment *segment,
                                   const berth_tensor *inputs, const berth_vm_symbols *symbols,
                                   const berth_vm_probe_what *what, berth_arena *arena) {
    berth_vm_symbols here = *symbols, moved;
    if (symbols->count == 0 || !move(symbols, what, &moved, arena)) return NULL;
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
