// What can run in patches, and which rows each patch needs.
#include <string.h>

#include "compiler/passes/patches_private.h"

enum { rank = 4, height_axis = 2 };

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
                       .rows =
                           berth_arena_new_array(arena, berth_patch_rows, graph->values.count + 1)};
    p.only_user = find_users(&p);
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

static bool is_image(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    return type->kind == BERTH_TYPE_TENSOR && type->rank == rank && berth_type_is_static(type) &&
           type->dims[0] == 1 && type->layout == 0;
}

bool berth_patches__window(const berth_patcher *p, const berth_op *op, berth_window *out_window) {
    const berth_type *x = berth_patches__type(p, op->inputs[0]);
    bool weights = op->kind == BERTH_OP_CONV || op->kind == BERTH_OP_CONV_INTEGER;
    const int64_t *kernel = weights ? berth_patches__type(p, op->inputs[1])->dims + 2 : NULL;
    berth_status status = berth_window_resolve(p->module, op, x->dims, x->rank, kernel, out_window);
    bool known = !status;
    berth_status_ignore(status);
    return known;
}

// A parameter that is the same for every row.
static bool is_for_all_rows(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    int at = type->rank - (rank - height_axis);
    return berth_patches__is_constant(p, value) && (at < 0 || type->dims[at] == 1);
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
    if (!is_image(p, op->inputs[0]) || !has_constant_parameters(p, op) ||
        !berth_patches__window(p, op, &w) || w.spatial != 2)
        return false;
    return op->kind != BERTH_OP_AVERAGE_POOL || !w.ceil_mode;
}

static bool elementwise_is_supported(const berth_patcher *p, const berth_op *op) {
    const berth_type *y = berth_patches__type(p, op->outputs[0]);
    uint32_t images = 0;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE || is_for_all_rows(p, op->inputs[i])) continue;
        if (!is_image(p, op->inputs[i]) || berth_patches__is_constant(p, op->inputs[i]) ||
            berth_patches__type(p, op->inputs[i])->dims[height_axis] != y->dims[height_axis])
            return false;
        ++images;
    }
    return images > 0;
}

// Scales along the rows; those along channels are constants of one dimension, too.
static bool quantises_by_rows(const berth_patcher *p, const berth_op *op) {
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
        if (!is_image(p, op->inputs[i]) || berth_patches__is_constant(p, op->inputs[i]))
            return false;
    return true;
}

static bool is_supported(const berth_patcher *p, berth_op_id id) {
    const berth_op *op = &p->graph->ops.data[id];
    if (op->output_count != 1 || op->region_count || !is_image(p, op->outputs[0])) return false;
    if (berth_patches__has_window(op->kind)) return window_is_supported(p, op);
    if (op->kind == BERTH_OP_CONCAT) return concat_is_supported(p, op);
    if (op->kind == BERTH_OP_LRN) return is_image(p, op->inputs[0]);
    if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) ||
        berth_op_has(op->kind, BERTH_TRAIT_RANDOM | BERTH_TRAIT_EFFECT | BERTH_TRAIT_STRUCTURE))
        return false;
    return elementwise_is_supported(p, op) && !quantises_by_rows(p, op);
}

// ---- regions ------------------------------------------------------------------------------------

static void mark_ancestors(berth_patcher *p, berth_value_id cut) {
    BERTH_VEC(berth_value_id) open = {0};
    berth_vec_push(p->arena, &open, cut);
    while (open.count) {
        berth_op_id id = p->graph->values.data[open.data[--open.count]].op;
        if (id == BERTH_NONE || p->inside[id] || !is_supported(p, id)) continue;
        p->inside[id] = true;
        const berth_op *op = &p->graph->ops.data[id];
        for (uint32_t i = 0; i < op->input_count; ++i)
            if (op->inputs[i] != BERTH_NONE) berth_vec_push(p->arena, &open, op->inputs[i]);
    }
}

static bool made_inside(const berth_patcher *p, berth_value_id value) {
    berth_op_id op = value == BERTH_NONE ? BERTH_NONE : p->graph->values.data[value].op;
    return op != BERTH_NONE && p->inside[op];
}

// Nothing outside uses what is inside but for the cut.
static bool is_closed(const berth_patcher *p, berth_value_id cut) {
    uint32_t used = 0, counted = 0;
    for (uint32_t i = 0; i < p->op_count; ++i) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        if (op->outputs[0] != cut) counted += p->uses[op->outputs[0]];
        for (uint32_t k = 0; k < op->input_count; ++k) used += made_inside(p, op->inputs[k]);
    }
    return used == counted;
}

static bool has_halo_or_stride(const berth_patcher *p) {
    for (uint32_t i = 0; i < p->op_count; ++i) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        berth_window w;
        if (berth_patches__has_window(op->kind) && berth_patches__window(p, op, &w) &&
            (w.kernel[0] > 1 || w.strides[0] > 1))
            return true;
    }
    return false;
}

bool berth_patches__find_region(berth_patcher *p, berth_value_id cut) {
    const berth_region *root = &p->graph->regions.data[0];
    memset(p->inside, 0, (p->graph->ops.count + 1) * sizeof(*p->inside));
    p->op_count = 0;
    if (!is_image(p, cut)) return false;
    mark_ancestors(p, cut);
    for (uint32_t i = 0; i < root->ops.count; ++i)
        if (p->inside[root->ops.data[i]]) p->ops[p->op_count++] = root->ops.data[i];
    return p->op_count > 0 && made_inside(p, cut) && is_closed(p, cut) && has_halo_or_stride(p);
}

// ---- rows ---------------------------------------------------------------------------------------

bool berth_patches__rows_of(const berth_patcher *p, const berth_op *op, uint32_t operand,
                            berth_patch_rows rows, berth_patch_rows *out_rows,
                            int64_t out_pads[2]) {
    berth_window w;
    *out_rows = rows;
    out_pads[0] = out_pads[1] = 0;
    if (operand > 0 || !berth_patches__has_window(op->kind)) return true;
    if (!berth_patches__window(p, op, &w)) return false;
    int64_t span = (w.kernel[0] - 1) * w.dilations[0] + 1;
    int64_t first = rows.first * w.strides[0] - w.pads_begin[0];
    int64_t end = (rows.end - 1) * w.strides[0] - w.pads_begin[0] + span;
    if (first < 0) out_pads[0] = -first;
    if (end > w.input[0]) out_pads[1] = end - w.input[0];
    out_rows->first = first < 0 ? 0 : first;
    out_rows->end = end > w.input[0] ? w.input[0] : end;
    return out_rows->first < out_rows->end;
}

static void add_rows(berth_patch_rows *to, berth_patch_rows rows) {
    if (to->end == 0) *to = rows;
    if (rows.first < to->first) to->first = rows.first;
    if (rows.end > to->end) to->end = rows.end;
}

bool berth_patches__find_rows(berth_patcher *p, berth_value_id cut, berth_patch_rows rows) {
    memset(p->rows, 0, p->value_count * sizeof(*p->rows));
    p->rows[cut] = rows;
    for (uint32_t i = p->op_count; i-- > 0;) {
        const berth_op *op = &p->graph->ops.data[p->ops[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_patch_rows needed;
            int64_t pads[2];
            if (op->inputs[k] == BERTH_NONE || berth_patches__is_constant(p, op->inputs[k]))
                continue;
            if (!berth_patches__rows_of(p, op, k, p->rows[op->outputs[0]], &needed, pads))
                return false;
            add_rows(&p->rows[op->inputs[k]], needed);
        }
    }
    return true;
}

uint32_t berth_patches__count(int64_t height, uint32_t count) {
    int64_t rows = (height + count - 1) / count;
    return (uint32_t)((height + rows - 1) / rows);
}

berth_patch_rows berth_patches__patch(int64_t height, uint32_t count, uint32_t index) {
    int64_t rows = (height + count - 1) / count, first = (int64_t)index * rows;
    return (berth_patch_rows){first, first + rows < height ? first + rows : height};
}
