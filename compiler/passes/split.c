#include "compiler/passes/split.h"

#include <string.h>

#include "compiler/passes/rewrite.h"
#include "compiler/passes/wide.h"
#include "compiler/schedule/work_groups.h"
#include "planner/planner.h"

enum {
    part_bytes = 2 << 20,   // at least, so that a part is worth a kernel
    large_bytes = 8 << 20,  // of one row
    column_multiple = 64,   // whole vectors and tiles of every device
    budget_share = 4,       // of other products
};

typedef struct splitter {
    berth_rewriter r;
    const berth_multi_target *target;
    uint64_t *constant_bytes;  // per memory of the target
} splitter;

static berth_graph *graph_of(const splitter *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

static const berth_type *type_of(const splitter *s, berth_value_id value) {
    return berth_type_get(s->r.module, graph_of(s)->values.data[value].type);
}

static uint32_t memory_of(const splitter *s, berth_op_id id) {
    uint32_t device =
        berth_plan_device_of(s->r.module, s->target, graph_of(s)->ops.data[id].device);
    return device == BERTH_NO_INDEX ? BERTH_NO_INDEX : s->target->devices[device].constant_memory;
}

// Constants by the memory of those who read them; what several read counts for each.
static void count_constants(splitter *s) {
    const berth_region *root = &graph_of(s)->regions.data[0];
    s->constant_bytes =
        berth_arena_new_array(s->r.module->arena, uint64_t, s->target->memory_count);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph_of(s)->ops.data[root->ops.data[i]];
        uint32_t memory = memory_of(s, root->ops.data[i]);
        for (uint32_t k = 0; k < op->input_count && memory != BERTH_NO_INDEX; ++k) {
            const berth_tensor *constant =
                op->inputs[k] == BERTH_NONE
                    ? NULL
                    : berth_graph_raw_constant_of(s->r.module, graph_of(s), op->inputs[k]);
            if (constant) s->constant_bytes[memory] += berth_tensor_size_bytes(constant);
        }
    }
}

static bool is_one_row(const berth_type *result) {
    for (int d = 0; d + 1 < result->rank; ++d)
        if (result->dims[d] != 1) return false;
    return true;
}

// The constant of a product that is to be split; NULL = it stays.
static const berth_tensor *splittable(const splitter *s, berth_op_id id) {
    const berth_op *op = &graph_of(s)->ops.data[id];
    uint32_t memory = memory_of(s, id);
    if (op->kind != BERTH_OP_MATMUL || memory == BERTH_NO_INDEX) return NULL;
    uint64_t budget = s->target->memories[memory].budget_bytes;
    if (s->constant_bytes[memory] <= budget) return NULL;
    const berth_tensor *constant =
        berth_graph_raw_constant_of(s->r.module, graph_of(s), op->inputs[1]);
    const berth_type *result = type_of(s, op->outputs[0]);
    if (!constant || constant->rank != 2 || !berth_dtype_is_float(constant->dtype) ||
        result->rank < 1 || result->dims[result->rank - 1] != constant->dims[1])
        return NULL;
    uint64_t bytes = berth_tensor_size_bytes(constant);
    bool large = is_one_row(result) ? bytes >= large_bytes
                                    : bytes >= large_bytes && bytes > budget / budget_share;
    return large ? constant : NULL;
}

// Columns of each part but the last.
static int64_t columns_of(const berth_tensor *constant) {
    int64_t columns = constant->dims[1];
    uint64_t column_bytes = berth_tensor_size_bytes(constant) / (uint64_t)columns;
    int64_t wanted = (int64_t)(part_bytes / (column_bytes ? column_bytes : 1)) + 1;
    int64_t least = (columns + BERTH_WIDE_PARTS - 1) / BERTH_WIDE_PARTS;
    if (wanted < least) wanted = least;
    return (wanted + column_multiple - 1) / column_multiple * column_multiple;
}

static berth_tensor take_columns(berth_arena *arena, const berth_tensor *from, int64_t first,
                                 int64_t count) {
    int64_t dims[2] = {from->dims[0], count};
    size_t element_bytes = berth_dtype_size_bytes(from->dtype);
    berth_tensor part = berth_tensor_create(arena, from->dtype, 2, dims);
    for (int64_t row = 0; row < dims[0]; ++row)
        memcpy((uint8_t *)part.data + (size_t)(row * count) * element_bytes,
               (const uint8_t *)from->data + (size_t)(row * from->dims[1] + first) * element_bytes,
               (size_t)count * element_bytes);
    return part;
}

static void put_on(splitter *s, berth_value_id value, berth_value_id like) {
    berth_graph *graph = graph_of(s);
    graph->values.data[value].device = graph->values.data[like].device;
    if (graph->values.data[like].op != BERTH_NONE)
        graph->ops.data[graph->values.data[value].op].device =
            graph->ops.data[graph->values.data[like].op].device;
}

// Those of the whole, and how large it is.
static berth_attrs attributes_of_parts(splitter *s, const berth_op *op) {
    berth_arena *arena = s->r.module->arena;
    const berth_type *result = type_of(s, op->outputs[0]);
    int64_t results = 1;
    for (int d = 0; d < result->rank; ++d) results *= result->dims[d];
    berth_attrs attrs = op->attrs;
    attrs.items.data =
        berth_arena_copy(arena, attrs.items.data, attrs.items.count * sizeof(*attrs.items.data));
    attrs.items.capacity = attrs.items.count;
    berth_attrs_set_int(s->r.module, &attrs, BERTH_ATTR_WHOLE_RESULTS, results);
    return attrs;
}

static berth_status split_product(splitter *s, berth_op_id id, const berth_tensor *constant) {
    berth_arena *arena = s->r.module->arena;
    const berth_op op = graph_of(s)->ops.data[id];
    int64_t columns = columns_of(constant), all = constant->dims[1];
    // A last part of a few columns, which devices compute in another form, belongs to the one before.
    uint32_t count = (uint32_t)((all + columns - column_multiple) / columns);
    if (count < 2) return BERTH_OK;
    berth_attrs attrs = attributes_of_parts(s, &op);
    berth_value_id *parts = berth_arena_new_array(arena, berth_value_id, count);
    for (uint32_t i = 0; i < count; ++i) {
        int64_t first = (int64_t)i * columns, left = all - first;
        berth_tensor part = take_columns(arena, constant, first, i + 1 == count ? left : columns);
        berth_value_id inputs[2] = {op.inputs[0],
                                    berth_rewriter_insert_constant(&s->r, id, &part, op.loc)};
        put_on(s, inputs[1], op.inputs[1]);
        BERTH_TRY(berth_rewriter_insert(&s->r, id, op.kind, inputs, 2, &attrs, op.loc, &parts[i]));
        put_on(s, parts[i], op.outputs[0]);
    }
    berth_attrs axis = {0};
    berth_attrs_set_int(s->r.module, &axis, "axis", type_of(s, op.outputs[0])->rank - 1);
    berth_value_id whole = BERTH_NONE;
    BERTH_TRY(
        berth_rewriter_insert(&s->r, id, BERTH_OP_CONCAT, parts, count, &axis, op.loc, &whole));
    put_on(s, whole, op.outputs[0]);
    berth_rewriter_replace(&s->r, op.outputs[0], whole);
    return BERTH_OK;
}

berth_status berth_pass_split_constants(berth_module *module, berth_func_id function,
                                        const berth_multi_target *target) {
    bool limited = false;
    for (uint32_t i = 0; i < target->memory_count; ++i)
        limited |= target->memories[i].budget_bytes != target->memories[i].capacity_bytes;
    if (!limited || target->executor != BERTH_EXECUTOR_GRAPH) return BERTH_OK;
    splitter s = {.target = target};
    berth_rewriter_begin(&s.r, module, function);
    count_constants(&s);
    const berth_region *root = &graph_of(&s)->regions.data[0];
    uint32_t count = root->ops.count;
    berth_op_id *ids =
        berth_arena_copy(module->arena, root->ops.data, count * sizeof(*root->ops.data));
    for (uint32_t i = 0; i < count; ++i) {
        const berth_tensor *constant = splittable(&s, ids[i]);
        if (constant) BERTH_TRY(split_product(&s, ids[i], constant));
    }
    berth_rewriter_finish(&s.r);
    return BERTH_OK;
}
