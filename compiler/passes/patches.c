#include "compiler/passes/patches.h"

#include <string.h>

#include "compiler/passes/patches_private.h"
#include "compiler/passes/rewrite.h"

typedef struct patcher {
    berth_patcher p;
    berth_rewriter r;
    berth_value_id cut;
    berth_op_id position;  // of the operation that the cut comes from
    berth_value_id *made;  // per value of the function as it was: in this patch
} patcher;

static berth_graph *graph_of(const patcher *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

static berth_value_id insert_i64(patcher *s, const int64_t *values, int64_t count,
                                 berth_loc_id loc) {
    berth_tensor *tensor = berth_arena_new(s->r.module->arena, berth_tensor);
    *tensor = berth_tensor_create(s->r.module->arena, BERTH_DTYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(tensor, i, values[i]);
    return berth_rewriter_insert_constant(&s->r, s->position, tensor, loc);
}

// Like what it was made from: on the same device, where that is decided already.
static void put_on(patcher *s, berth_value_id value, berth_value_id like) {
    berth_graph *graph = graph_of(s);
    graph->values.data[value].device = graph->values.data[like].device;
    if (graph->values.data[like].op != BERTH_NONE)
        graph->ops.data[graph->values.data[value].op].device =
            graph->ops.data[graph->values.data[like].op].device;
}

// `area` of a value that has `there`.
static berth_status insert_slice(patcher *s, berth_value_id from, berth_patch_area there,
                                 berth_patch_area area, berth_loc_id loc,
                                 berth_value_id *out_value) {
    int64_t firsts[berth_patch_axes], ends[berth_patch_axes], axes[berth_patch_axes], count = 0;
    for (int i = 0; i < berth_patch_axes; ++i) {
        int64_t from_first = there.axes[i].first;
        if (memcmp(&area.axes[i], &there.axes[i], sizeof(area.axes[i])) == 0) continue;
        firsts[count] = area.axes[i].first - from_first;
        ends[count] = area.axes[i].end - from_first;
        axes[count++] = berth_patch_first_axis + i;
    }
    berth_value_id inputs[4] = {from, insert_i64(s, firsts, count, loc),
                                insert_i64(s, ends, count, loc), insert_i64(s, axes, count, loc)};
    return berth_rewriter_insert(&s->r, s->position, BERTH_OP_SLICE, inputs, 4, NULL, loc,
                                 out_value);
}

// An area of an operand: the value itself where it has this alone.
static berth_status take_area(patcher *s, berth_value_id value, berth_patch_area needed,
                              berth_loc_id loc, berth_value_id *out_value) {
    bool inside = s->made[value] != BERTH_NONE;
    berth_patch_area there = inside ? s->p.areas[value] : berth_patches__whole(&s->p, value);
    *out_value = inside ? s->made[value] : value;
    if (berth_patches__same_area(needed, there)) return BERTH_OK;
    BERTH_TRY(insert_slice(s, *out_value, there, needed, loc, out_value));
    put_on(s, *out_value, value);
    return BERTH_OK;
}

static void set_pads(patcher *s, const int64_t pads[2 * berth_patch_axes], berth_attrs *attrs) {
    berth_attrs_set_ints(s->r.module, attrs, "pads", pads, 2 * berth_patch_axes);
    berth_attrs_remove(s->r.module, attrs, "auto_pad");
    berth_attrs_remove(s->r.module, attrs, "ceil_mode");
}

static berth_status copy_op(patcher *s, berth_op_id id) {
    berth_module *module = s->r.module;
    const berth_op op = graph_of(s)->ops.data[id];
    berth_value_id *inputs = berth_arena_new_array(module->arena, berth_value_id, op.input_count);
    int64_t window_pads[2 * berth_patch_axes] = {0};
    berth_attrs attrs = {0};
    for (uint32_t i = 0; i < op.attrs.items.count; ++i)
        berth_attrs_set(module, &attrs, berth_module_str(module, op.attrs.items.data[i].name),
                        op.attrs.items.data[i]);
    for (uint32_t i = 0; i < op.input_count; ++i) {
        berth_patch_area needed;
        int64_t pads[2 * berth_patch_axes];
        inputs[i] = op.inputs[i];
        if (op.inputs[i] == BERTH_NONE || berth_patches__is_constant(&s->p, op.inputs[i])) continue;
        if (!berth_patches__area_of(&s->p, &op, i, s->p.areas[op.outputs[0]], &needed, pads))
            return berth_status_make(BERTH_INTERNAL, "a patch has no area");
        if (i == 0) memcpy(window_pads, pads, sizeof(pads));
        BERTH_TRY(take_area(s, op.inputs[i], needed, op.loc, &inputs[i]));
    }
    if (berth_patches__has_window(op.kind)) set_pads(s, window_pads, &attrs);
    berth_value_id *made = &s->made[op.outputs[0]];
    BERTH_TRY(berth_rewriter_insert(&s->r, s->position, op.kind, inputs, op.input_count, &attrs,
                                    op.loc, made));
    put_on(s, *made, op.outputs[0]);
    return BERTH_OK;
}

static berth_status too_many(const berth_patch_choice *choice) {
    return berth_status_make(
        BERTH_OUT_OF_RANGE,
        "%u by %u patches of \"%s\" are too many: one of them would be padding alone", choice->rows,
        choice->columns, choice->node);
}

static berth_status insert_concat(patcher *s, const berth_value_id *parts, uint32_t count,
                                  int64_t axis, berth_value_id *out_value) {
    berth_attrs attrs = {0};
    *out_value = parts[0];
    if (count == 1) return BERTH_OK;
    berth_attrs_set_int(s->r.module, &attrs, "axis", axis);
    BERTH_TRY(berth_rewriter_insert(&s->r, s->position, BERTH_OP_CONCAT, parts, count, &attrs,
                                    graph_of(s)->ops.data[s->position].loc, out_value));
    put_on(s, *out_value, s->cut);
    return BERTH_OK;
}

// One patch of the cut.
static berth_status insert_patch(patcher *s, const berth_patch_choice *choice,
                                 berth_patch_area area, berth_value_id *out_value) {
    memset(s->made, 0xff, s->p.value_count * sizeof(*s->made));
    if (!berth_patches__find_areas(&s->p, s->cut, area)) return too_many(choice);
    for (uint32_t k = 0; k < s->p.op_count; ++k) BERTH_TRY(copy_op(s, s->p.ops[k]));
    *out_value = s->made[s->cut];
    return BERTH_OK;
}

// Tiles of a band are joined as soon as they are there, so that no more of them wait.
static berth_status insert_patches(patcher *s, const berth_patch_choice *choice,
                                   berth_patch_grid grid) {
    berth_arena *arena = s->r.module->arena;
    uint32_t rows = grid.counts[0], columns = grid.counts[1];
    berth_value_id *bands = berth_arena_new_array(arena, berth_value_id, rows), whole = BERTH_NONE;
    berth_value_id *tiles = berth_arena_new_array(arena, berth_value_id, columns);
    s->made = berth_arena_new_array(arena, berth_value_id, s->p.value_count + 1);
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < columns; ++column)
            BERTH_TRY(insert_patch(
                s, choice, berth_patches__patch(&s->p, s->cut, grid, row * columns + column),
                &tiles[column]));
        BERTH_TRY(insert_concat(s, tiles, columns, berth_patch_first_axis + 1, &bands[row]));
    }
    BERTH_TRY(insert_concat(s, bands, rows, berth_patch_first_axis, &whole));
    berth_rewriter_replace(&s->r, s->cut, whole);
    return BERTH_OK;
}

berth_status berth_pass_patches(berth_module *module, berth_func_id main,
                                const berth_patch_choice *choice, berth_patch_candidate *out_done) {
    berth_patch_candidate done = {.choice = *choice}, whole = {0};
    patcher s = {.p = berth_patches__begin(module, main, module->arena)};
    berth_value_id after = BERTH_NONE;
    berth_patch_grid grid;
    BERTH_TRY(berth_patches__find_choice(&s.p, choice, &after, &s.cut, &grid));
    s.position = s.p.graph->values.data[s.cut].op;
    done.choice.rows = grid.counts[0];
    done.choice.columns = grid.counts[1];
    if (berth_patches__estimate(&s.p, BERTH_NONE, grid, BERTH_PATCH_ANY, &whole, NULL))
        done.whole_bytes = whole.peak_bytes;
    if (!berth_patches__find_region(&s.p, after, s.cut, grid) ||
        !berth_patches__estimate(&s.p, s.cut, grid, BERTH_PATCH_ANY, &done, NULL))
        return too_many(choice);
    berth_rewriter_begin(&s.r, module, main);
    berth_status status = insert_patches(&s, choice, grid);
    berth_rewriter_finish(&s.r);
    if (!status && out_done) *out_done = done;
    return status;
}
