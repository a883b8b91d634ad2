// What can run in patches, and which area of each value a patch needs.
#include <string.h>

#include "compiler/cost/work.h"
#include "compiler/passes/patches_private.h"

enum { rank = 4 };

static const berth_op_id *find_users(const berth_patcher *p) {
    const berth_region *root = &p->graph->regions.data[0];
    berth_op_id *users = berth_arena_new_array(p->arena, berth_op_id, p->value_count + 1);
    memset(users, 0xff, p->value_count * sizeof(*users));
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &p->graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) users[op->inputs[k]] = root->ops.data[i];
    }
    return users;
}

static const double *find_flops(const berth_patcher *p) {
    const berth_region *root = &p->graph->regions.data[0];
    double *flops = berth_arena_new_array(p->arena, double, p->graph->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i)
        flops[root->ops.data[i]] = berth_op_work_of(p->module, p->main, root->ops.data[i]).flops;
    return flops;
}

berth_patcher berth_patches__begin(const berth_module *module, berth_func_id main,
                                   berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, main);
    berth_patcher p = {.module = module,
                       .graph = graph,
                       .value_count = graph->values.count,
                       .main = main,
                       .arena = arena,
                       .uses = berth_graph_count_uses(graph, arena),
                       .inside = berth_arena_new_array(arena, bool, graph->ops.count + 1),
                       .ops = berth_arena_new_array(arena, berth_op_id, graph->ops.count + 1),
                       .areas =
                           berth_arena_new_array(arena, berth_patch_area, graph->values.count + 1)};
    p.only_user = find_users(&p);
    p.flops = find_flops(&p);
    return p;
}

bool berth_patches__is_constant(const berth_patcher *p, berth_value_id value) {
    return berth_graph_raw_constant_of(p->module, p->graph, value) != NULL;
}

bool berth_patches__has_window(berth_op_kind kind) {
    return kind == BERTH_OP_CONV || kind == BERTH_OP_CONV_INTEGER || kind == BERTH_OP_MAX_POOL ||
           kind == BERTH_OP_AVERAGE_POOL;
}

// ---- operations ---------------------------------------------------------------------------------

bool berth_patches__is_image(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    return type->kind == BERTH_TYPE_TENSOR && type->rank == rank && berth_type_is_static(type) &&
           type->dims[0] == 1 && type->layout == 0;
}

static bool window_of(const berth_patcher *p, const berth_op *op, berth_window *out_window) {
    const berth_type *x = berth_patches__type(p, op->inputs[0]);
    bool weights = op->kind == BERTH_OP_CONV || op->kind == BERTH_OP_CONV_INTEGER;
    const int64_t *kernel = weights ? berth_patches__type(p, op->inputs[1])->dims + 2 : NULL;
    berth_status status = berth_window_resolve(p->module, op, x->dims, x->rank, kernel, out_window);
    bool known = !status;
    berth_status_ignore(status);
    return known;
}

// A parameter that is the same all along the axes that are cut.
static bool is_for_all(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    if (!berth_patches__is_constant(p, value)) return false;
    for (int i = 0; i < berth_patch_axes; ++i) {
        int at = type->rank - (rank - berth_patch_first_axis - i);
        if (p->cuts_axis[i] && at >= 0 && type->dims[at] != 1) return false;
    }
    return true;
}

// Whether an operand has all that the result has, along the axes that are cut.
static bool reaches_all(const berth_patcher *p, berth_value_id x, berth_value_id y) {
    const int64_t *from = berth_patches__type(p, x)->dims, *to = berth_patches__type(p, y)->dims;
    for (int i = 0; i < berth_patch_axes; ++i)
        if (p->cuts_axis[i] && from[berth_patch_first_axis + i] != to[berth_patch_first_axis + i])
            return false;
    return true;
}

static bool has_constant_parameters(const berth_patcher *p, const berth_op *op) {
    for (uint32_t i = 1; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && !berth_patches__is_constant(p, op->inputs[i]))
            return false;
    return true;
}

// The last window of a pool that rounds up may hang over; what an average counts there is no padding.
static bool window_is_supported(const berth_patcher *p, const berth_op *op) {
    berth_window w;
    if (!berth_patches__is_image(p, op->inputs[0]) || !has_constant_parameters(p, op) ||
        !window_of(p, op, &w) || w.spatial != 2)
        return false;
    return op->kind != BERTH_OP_AVERAGE_POOL || !w.ceil_mode;
}

static bool elementwise_is_supported(const berth_patcher *p, const berth_op *op) {
    uint32_t images = 0;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE || is_for_all(p, op->inputs[i])) continue;
        if (!berth_patches__is_image(p, op->inputs[i]) ||
            berth_patches__is_constant(p, op->inputs[i]) ||
            !reaches_all(p, op->inputs[i], op->outputs[0]))
            return false;
        ++images;
    }
    return images > 0;
}

// Scales along rows or columns; those along channels are constants of one dimension, too.
static bool quantises_along_image(const berth_patcher *p, const berth_op *op) {
    if (op->kind != BERTH_OP_QUANTIZE_LINEAR && op->kind != BERTH_OP_DEQUANTIZE_LINEAR)
        return false;
    const berth_type *scale = berth_patches__type(p, op->inputs[1]);
    int64_t axis = berth_attrs_int(p->module, &op->attrs, "axis", 1);
    bool channels = axis == 1 || axis == 1 - rank;
    return (scale->rank == 1 && scale->dims[0] != 1 && !channels) || scale->rank > 1;
}

static bool concat_is_supported(const berth_patcher *p, const berth_op *op) {
    int64_t axis = berth_attrs_int(p->module, &op->attrs, "axis", 0);
    if (axis != 1 && axis != 1 - rank) return false;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (!berth_patches__is_image(p, op->inputs[i]) ||
            berth_patches__is_constant(p, op->inputs[i]))
            return false;
    return true;
}

static bool is_supported(const berth_patcher *p, berth_op_id id) {
    const berth_op *op = &p->graph->ops.data[id];
    if (op->output_count != 1 || op->region_count || !berth_patches__is_image(p, op->outputs[0]))
        return false;
    if (berth_patches__has_window(op->kind)) return window_is_supported(p, op);
    if (op->kind == BERTH_OP_CONCAT) return concat_is_supported(p, op);
    if (op->kind == BERTH_OP_LRN) return berth_patches__is_image(p, op->inputs[0]);
    if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) ||
        berth_op_has(op->kind, BERTH_TRAIT_RANDOM | BERTH_TRAIT_EFFECT | BERTH_TRAIT_STRUCTURE))
        return false;
    return elementwise_is_supported(p, op) && !quantises_along_image(p, op);
}

// ---- regions ------------------------------------------------------------------------------------

static void mark_ancestors(berth_patcher *p, berth_value_id after, berth_value_id cut) {
    BERTH_VEC(berth_value_id) open = {0};
    berth_vec_push(p->arena, &open, cut);
    while (open.count) {
        berth_value_id value = open.data[--open.count];
        berth_op_id id = value == after ? BERTH_NONE : p->graph->values.data[value].op;
        if (id == BERTH_NONE || p->inside[id] || !is_supported(p, id)) continue;
        p->inside[id] = true;
        const berth_op *op = &p->graph->ops.data[id];
        for (uint32_t i = 0; i < op->input_count; ++i)
            if (op->inputs[i] != BERTH_NONE) berth_vec_push(p->arena, &open, op->inputs[i]);
    }
}

bool berth_patches__made_inside(const berth_patcher *p, berth_value_id value) {
    berth_op_id op = value == BERTH_NONE ? BERTH_NONE : p->graph->values.data[value].op;
    return op != BERTH_NONE && p->inside[op];
}

// Nothing outside uses what is inside but for the cut.
static bool is_closed(const berth_patcher *p, berth_value_id cut) {
    uint32_t used = 0, counted = 0;
    for (uint32_t i = 0; i < p->op_count; ++i) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        if (op->outputs[0] != cut) counted += p->uses[op->outputs[0]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            used += berth_patches__made_inside(p, op->inputs[k]);
    }
    return used == counted;
}

static bool uses_value(const berth_patcher *p, berth_value_id value) {
    for (uint32_t i = 0; i < p->op_count; ++i) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] == value) return true;
    }
    return false;
}

static bool has_halo_or_stride(const berth_patcher *p) {
    for (uint32_t i = 0; i < p->op_count; ++i) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        berth_window w;
        if (!berth_patches__has_window(op->kind) || !window_of(p, op, &w)) continue;
        for (int axis = 0; axis < berth_patch_axes; ++axis)
            if (p->cuts_axis[axis] && (w.kernel[axis] > 1 || w.strides[axis] > 1)) return true;
    }
    return false;
}

bool berth_patches__find_region(berth_patcher *p, berth_value_id after, berth_value_id cut,
                                berth_patch_grid grid) {
    const berth_region *root = &p->graph->regions.data[0];
    memset(p->inside, 0, (p->graph->ops.count + 1) * sizeof(*p->inside));
    p->op_count = 0;
    for (int i = 0; i < berth_patch_axes; ++i) p->cuts_axis[i] = grid.counts[i] > 1;
    if (!berth_patches__is_image(p, cut) || after == cut ||
        (after != BERTH_NONE && !berth_patches__is_image(p, after)))
        return false;
    mark_ancestors(p, after, cut);
    for (uint32_t i = 0; i < root->ops.count; ++i)
        if (p->inside[root->ops.data[i]]) p->ops[p->op_count++] = root->ops.data[i];
    return p->op_count > 0 && berth_patches__made_inside(p, cut) && is_closed(p, cut) &&
           has_halo_or_stride(p) && (after == BERTH_NONE || uses_value(p, after));
}

// ---- areas --------------------------------------------------------------------------------------

berth_patch_area berth_patches__whole(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    bool image = type->rank == rank;
    return (berth_patch_area){{{0, image ? type->dims[berth_patch_first_axis] : 1},
                               {0, image ? type->dims[berth_patch_first_axis + 1] : 1}}};
}

bool berth_patches__same_area(berth_patch_area a, berth_patch_area b) {
    return memcmp(&a, &b, sizeof(a)) == 0;
}

// Padding along an axis that is not cut is what the last window needs: a pool then rounds up to nothing.
bool berth_patches__area_of(const berth_patcher *p, const berth_op *op, uint32_t operand,
                            berth_patch_area area, berth_patch_area *out_area,
                            int64_t out_pads[2 * berth_patch_axes]) {
    bool windows = operand == 0 && berth_patches__has_window(op->kind);
    berth_patch_area whole = berth_patches__whole(p, op->inputs[operand]);
    berth_window w;
    if (windows && !window_of(p, op, &w)) return false;
    for (int i = 0; i < berth_patch_axes; ++i) {
        out_area->axes[i] = p->cuts_axis[i] ? area.axes[i] : whole.axes[i];
        out_pads[i] = out_pads[berth_patch_axes + i] = 0;
        if (!windows) continue;
        int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
        int64_t first = area.axes[i].first * w.strides[i] - w.pads_begin[i];
        int64_t end = (area.axes[i].end - 1) * w.strides[i] - w.pads_begin[i] + span;
        if (first < 0) out_pads[i] = -first;
        if (end > w.input[i]) out_pads[berth_patch_axes + i] = end - w.input[i];
        if (!p->cuts_axis[i]) continue;
        out_area->axes[i].first = first < 0 ? 0 : first;
        out_area->axes[i].end = end > w.input[i] ? w.input[i] : end;
        if (out_area->axes[i].first >= out_area->axes[i].end) return false;
    }
    return true;
}

static void add_area(berth_patch_area *to, berth_patch_area area) {
    if (to->axes[0].end == 0) *to = area;
    for (int i = 0; i < berth_patch_axes; ++i) {
        if (area.axes[i].first < to->axes[i].first) to->axes[i].first = area.axes[i].first;
        if (area.axes[i].end > to->axes[i].end) to->axes[i].end = area.axes[i].end;
    }
}

bool berth_patches__find_areas(berth_patcher *p, berth_value_id cut, berth_patch_area area) {
    memset(p->areas, 0, p->value_count * sizeof(*p->areas));
    p->areas[cut] = area;
    for (uint32_t i = p->op_count; i-- > 0;) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_patch_area needed;
            int64_t pads[2 * berth_patch_axes];
            if (op->inputs[k] == BERTH_NONE || berth_patches__is_constant(p, op->inputs[k]))
                continue;
            if (!berth_patches__area_of(p, op, k, p->areas[op->outputs[0]], &needed, pads))
                return false;
            add_area(&p->areas[op->inputs[k]], needed);
        }
    }
    return true;
}

static int64_t extent_of_patches(int64_t extent, uint32_t count) {
    return (extent + count - 1) / count;
}

berth_patch_grid berth_patches__trim(const berth_patcher *p, berth_value_id cut,
                                     berth_patch_grid grid) {
    berth_patch_area whole = berth_patches__whole(p, cut);
    for (int i = 0; i < berth_patch_axes; ++i) {
        int64_t each = extent_of_patches(whole.axes[i].end, grid.counts[i]);
        grid.counts[i] = (uint32_t)((whole.axes[i].end + each - 1) / each);
    }
    return grid;
}

berth_patch_area berth_patches__patch(const berth_patcher *p, berth_value_id cut,
                                      berth_patch_grid grid, uint32_t index) {
    berth_patch_area area = berth_patches__whole(p, cut);
    uint32_t at[berth_patch_axes] = {index / grid.counts[1], index % grid.counts[1]};
    for (int i = 0; i < berth_patch_axes; ++i) {
        int64_t each = extent_of_patches(area.axes[i].end, grid.counts[i]), first = at[i] * each;
        if (first + each < area.axes[i].end) area.axes[i].end = first + each;
        area.axes[i].first = first;
    }
    return area;
}
