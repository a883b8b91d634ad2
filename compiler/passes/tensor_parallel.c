#include "compiler/passes/tensor_parallel.h"

#include <string.h>

#include "compiler/passes/rewrite.h"
#include "compiler/passes/separate_products.h"
#include "compiler/passes/tensor_cut.h"
#include "planner/planner.h"

enum { most_devices = 64 };

typedef enum spread {
    SPREAD_ONE,     // as it was
    SPREAD_COPIES,  // every device has it
    SPREAD_PARTS,   // every device has its part of it
} spread;

// What became of a value.
typedef struct spread_value {
    spread how;
    int axis;               // of parts
    berth_value_id *parts;  // per device
    berth_value_id
        *copies;    // per device; of parts, made where they are wanted: BERTH_NONE = not yet
    bool replaced;  // whoever reads it whole reads copies[0]
} spread_value;

typedef struct splitter {
    berth_rewriter r;
    const berth_multi_target *target;
    uint32_t devices[most_devices];  // of the target
    berth_device_id ids[most_devices];
    uint32_t count;
    spread_value *values;  // by the function's values when it began
    uint32_t *products;    // how many products with constant weights read the value
    bool *is_result;       // of the function
    berth_op_id at;        // what is being cut: everything new goes before it
    berth_loc_id loc;
    uint32_t cut_count;
} splitter;

static berth_graph *graph_of(const splitter *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

static const berth_type *type_of(const splitter *s, berth_value_id value) {
    return berth_type_get(s->r.module, graph_of(s)->values.data[value].type);
}

static const berth_tensor *constant_of(const splitter *s, berth_value_id value) {
    return berth_graph_raw_constant_of(s->r.module, graph_of(s), value);
}

// ---- devices ------------------------------------------------------------------------------------

// What follows the product's name in a target's text, and how much is before it.
static const char *after_model(const char *canonical, size_t *out_before) {
    static const char member[] = "\"model\": \"";
    const char *at = strstr(canonical, member);
    *out_before = at ? (size_t)(at - canonical) : strlen(canonical);
    if (!at) return canonical + *out_before;
    for (at += sizeof(member) - 1; *at && *at != '"'; ++at) at += *at == '\\' && at[1];
    return at;
}

// Of devices of this machine the name is its driver's, which may number them: the rest is what they are.
static bool is_alike(const berth_target *a, const berth_target *b) {
    size_t before_a = 0, before_b = 0;
    if (berth_hash128_equal(a->hash, b->hash)) return true;
    const char *rest_a = after_model(a->canonical, &before_a);
    const char *rest_b = after_model(b->canonical, &before_b);
    return before_a == before_b && memcmp(a->canonical, b->canonical, before_a) == 0 &&
           strcmp(rest_a, rest_b) == 0;
}

static uint32_t list_devices(const berth_multi_target *target, uint32_t *devices) {
    const berth_target_device *first = &target->devices[target->default_device];
    uint32_t count = 0;
    for (uint32_t d = 0; d < target->device_count && count < most_devices; ++d) {
        const berth_target_device *device = &target->devices[d];
        bool apart = d == target->default_device || device->own_memory != first->own_memory;
        if (device->host_only || device->machine != first->machine || !apart ||
            device->target->kind != first->target->kind || !is_alike(device->target, first->target))
            continue;
        if (devices) devices[count] = d;
        count++;
    }
    return count;
}

uint32_t berth_tensor_parallel_devices(const berth_multi_target *target) {
    return list_devices(target, NULL);
}

// ---- new operations -----------------------------------------------------------------------------

static void place(const splitter *s, berth_value_id value, uint32_t d) {
    berth_graph *graph = graph_of(s);
    berth_op *op = &graph->ops.data[graph->values.data[value].op];
    op->device = s->ids[d];
    for (uint32_t i = 0; i < op->output_count; ++i)
        graph->values.data[op->outputs[i]].device = s->ids[d];
}

// One result, on device d.
static berth_status insert(splitter *s, berth_op_kind kind, const berth_value_id *inputs,
                           uint32_t input_count, const berth_attrs *attrs, uint32_t d,
                           berth_value_id *out) {
    BERTH_TRY(berth_rewriter_insert(&s->r, s->at, kind, inputs, input_count, attrs, s->loc, out));
    place(s, *out, d);
    return BERTH_OK;
}

static berth_value_id integers(splitter *s, const int64_t *values, int64_t count) {
    berth_tensor list = berth_tensor_create(s->r.module->arena, BERTH_DTYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(&list, i, values[i]);
    return berth_rewriter_insert_constant(&s->r, s->at, &list, s->loc);
}

static int64_t begin_of(const splitter *s, int64_t extent, uint32_t d) {
    return berth_tensor_cut_begin(extent, s->count, d);
}

static int64_t extent_of(const splitter *s, int64_t extent, uint32_t d) {
    return begin_of(s, extent, d + 1) - begin_of(s, extent, d);
}

// Range d of `value` along an axis, on device `on`.
static berth_status take_range(splitter *s, berth_value_id value, int axis, uint32_t d, uint32_t on,
                               berth_value_id *out) {
    int64_t extent = type_of(s, value)->dims[axis], one = 1, along = axis;
    int64_t begin = begin_of(s, extent, d), end = begin_of(s, extent, d + 1);
    berth_value_id inputs[5] = {value, integers(s, &begin, 1), integers(s, &end, 1),
                                integers(s, &along, 1), integers(s, &one, 1)};
    return insert(s, BERTH_OP_SLICE, inputs, 5, NULL, on, out);
}

static berth_status put_together(splitter *s, const berth_value_id *parts, int axis, uint32_t on,
                                 berth_value_id *out) {
    berth_attrs attrs = {0};
    berth_attrs_set_int(s->r.module, &attrs, "axis", axis);
    return insert(s, BERTH_OP_CONCAT, parts, s->count, &attrs, on, out);
}

// ---- operands -----------------------------------------------------------------------------------

static spread_value *spread_of(const splitter *s, berth_value_id value) {
    return &s->values[value];
}

static berth_value_id *new_list(const splitter *s) {
    berth_value_id *list = berth_arena_new_array(s->r.module->arena, berth_value_id, s->count);
    for (uint32_t d = 0; d < s->count; ++d) list[d] = BERTH_NONE;
    return list;
}

// All of a value, for device d (all-gather of parts).
static berth_status whole_on(splitter *s, berth_value_id value, uint32_t d, berth_value_id *out) {
    spread_value *held = spread_of(s, value);
    *out = value;
    if (held->how == SPREAD_ONE) return BERTH_OK;
    if (held->copies[d] == BERTH_NONE)
        BERTH_TRY(put_together(s, held->parts, held->axis, d, &held->copies[d]));
    *out = held->copies[d];
    return BERTH_OK;
}

// Part d of a value along an axis, for device d.
static berth_status part_on(splitter *s, berth_value_id value, int axis, uint32_t d,
                            berth_value_id *out) {
    const spread_value *held = spread_of(s, value);
    if (held->how == SPREAD_PARTS && held->axis == axis) {
        *out = held->parts[d];
        return BERTH_OK;
    }
    const berth_tensor *constant = constant_of(s, value);
    if (constant) {
        int64_t extent = constant->dims[axis];
        berth_tensor part = berth_rewriter_take(s->r.module->arena, constant, axis,
                                                begin_of(s, extent, d), extent_of(s, extent, d));
        *out = berth_rewriter_insert_constant(&s->r, s->at, &part, s->loc);
        return BERTH_OK;
    }
    BERTH_TRY(whole_on(s, value, d, out));
    return take_range(s, *out, axis, d, d, out);
}

// Operations that stay as they are read the first device's.
static berth_status read_one(splitter *s, berth_value_id value) {
    if (value == BERTH_NONE || spread_of(s, value)->how == SPREAD_ONE ||
        spread_of(s, value)->replaced)
        return BERTH_OK;
    berth_value_id whole = BERTH_NONE;
    BERTH_TRY(whole_on(s, value, 0, &whole));
    spread_of(s, value)->replaced = true;
    berth_rewriter_replace(&s->r, value, whole);
    return BERTH_OK;
}

// ---- sums ---------------------------------------------------------------------------------------

// Terms added up on device `on`, first to last.
static berth_status add_up(splitter *s, const berth_value_id *terms, uint32_t on,
                           berth_value_id *out) {
    *out = terms[0];
    for (uint32_t d = 1; d < s->count; ++d)
        BERTH_TRY(insert(s, BERTH_OP_ADD, (berth_value_id[]){*out, terms[d]}, 2, NULL, on, out));
    return BERTH_OK;
}

static double link_ns(const splitter *s, uint64_t size_bytes) {
    double ns = 0;
    const berth_target_device *devices = s->target->devices;
    for (uint32_t d = 1; d < s->count; ++d) {
        berth_target_route route;
        if (berth_multi_target_route(s->target, s->r.module->arena,
                                     devices[s->devices[0]].own_memory,
                                     devices[s->devices[d]].own_memory, size_bytes, &route) &&
            route.time_ns > ns)
            ns = route.time_ns;
    }
    return ns;
}

// The dimension whose parts are added up by one device each; -1: every device adds up all.
static int scatter_axis(const splitter *s, berth_value_id term) {
    const berth_type *type = type_of(s, term);
    uint64_t size_bytes = berth_dtype_size_bytes(type->dtype);
    int axis = -1;
    for (int i = type->rank - 1; i >= 0; --i) {
        size_bytes *= (uint64_t)type->dims[i];
        if (type->dims[i] >= s->count) axis = i;
    }
    if (axis < 0 || s->count < 3) return -1;
    double others = s->count - 1, kernels = 2;  // that cut the terms and join the sums
    double whole_ns = others * link_ns(s, size_bytes);
    double parts_ns = 2 * others * link_ns(s, size_bytes / s->count) +
                      kernels * (double)s->target->devices[s->devices[0]].target->dispatch_ns;
    return parts_ns < whole_ns ? axis : -1;
}

static berth_status scatter_and_gather(splitter *s, const berth_value_id *terms, int axis,
                                       berth_value_id *copies) {
    berth_value_id *sums = new_list(s), *part = new_list(s);
    for (uint32_t d = 0; d < s->count; ++d) {
        for (uint32_t k = 0; k < s->count; ++k)
            BERTH_TRY(take_range(s, terms[k], axis, d, k, &part[k]));
        BERTH_TRY(add_up(s, part, d, &sums[d]));
    }
    for (uint32_t d = 0; d < s->count; ++d) BERTH_TRY(put_together(s, sums, axis, d, &copies[d]));
    return BERTH_OK;
}

static berth_status all_reduce(splitter *s, const berth_value_id *terms, berth_value_id *copies) {
    int axis = scatter_axis(s, terms[0]);
    if (axis >= 0) return scatter_and_gather(s, terms, axis, copies);
    for (uint32_t d = 0; d < s->count; ++d) BERTH_TRY(add_up(s, terms, d, &copies[d]));
    return BERTH_OK;
}

// ---- operations ---------------------------------------------------------------------------------

static bool is_static(const splitter *s, const berth_op *op) {
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && !berth_type_is_static(type_of(s, op->inputs[i])))
            return false;
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (!berth_type_is_static(type_of(s, op->outputs[i]))) return false;
    return op->output_count > 0;
}

// Whether every device may compute the operation: it depends on its operands alone.
static bool may_spread(const splitter *s, const berth_op *op) {
    enum {
        stays = BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST | BERTH_TRAIT_RANDOM | BERTH_TRAIT_EFFECT |
                BERTH_TRAIT_DATA_DEPENDENT
    };
    return op->kind < BERTH_OP_COUNT && !berth_op_has(op->kind, stays) && op->region_count == 0 &&
           !op->device && op->input_count <= BERTH_CUT_MOST_OPERANDS && is_static(s, op);
}

// The operands of part d.
static berth_status cut_operands(splitter *s, const berth_op *op, const berth_tensor_cut *cut,
                                 uint32_t d, berth_value_id *inputs) {
    for (uint32_t i = 0; i < op->input_count; ++i) {
        inputs[i] = op->inputs[i];
        if (inputs[i] == BERTH_NONE) continue;
        if (cut->operand[i] >= 0)
            BERTH_TRY(part_on(s, op->inputs[i], cut->operand[i], d, &inputs[i]));
        else
            BERTH_TRY(whole_on(s, op->inputs[i], d, &inputs[i]));
    }
    if (!cut->shape && !cut->as_reshape) return BERTH_OK;
    const berth_type *whole = type_of(s, op->outputs[0]);
    int64_t dims[BERTH_MAX_RANK];
    memcpy(dims, whole->dims, sizeof(dims));
    dims[cut->result] = extent_of(s, dims[cut->result], d);
    inputs[1] = integers(s, dims, whole->rank);
    return BERTH_OK;
}

static berth_status cut_one(splitter *s, const berth_op *op, const berth_tensor_cut *cut,
                            uint32_t d, berth_op_id *out_op) {
    berth_value_id inputs[BERTH_CUT_MOST_OPERANDS + 1];
    berth_attrs attrs = {0}, none = {0};
    BERTH_TRY(cut_operands(s, op, cut, d, inputs));
    for (uint32_t i = 0; i < op->attrs.items.count; ++i)
        berth_attrs_set(s->r.module, &attrs,
                        berth_module_str(s->r.module, op->attrs.items.data[i].name),
                        op->attrs.items.data[i]);
    if (cut->grouped)
        berth_attrs_set_int(s->r.module, &attrs, "group",
                            extent_of(s, berth_attrs_int(s->r.module, &op->attrs, "group", 1), d));
    BERTH_TRY(berth_rewriter_insert_op(&s->r, s->at, cut->as_reshape ? BERTH_OP_RESHAPE : op->kind,
                                       inputs, cut->as_reshape ? 2 : op->input_count,
                                       op->output_count, cut->as_reshape ? &none : &attrs, s->loc,
                                       out_op));
    place(s, graph_of(s)->ops.data[*out_op].outputs[0], d);
    return BERTH_OK;
}

// Rows of a table are where a model begins: what follows them for long is there for all devices, and
// products begin with whole operands.
static berth_status give_to_all(splitter *s, spread_value *held) {
    for (uint32_t d = 0; d < s->count; ++d)
        BERTH_TRY(put_together(s, held->parts, held->axis, d, &held->copies[d]));
    held->how = SPREAD_COPIES;
    return BERTH_OK;
}

// Every device computes its part, or all of it.
static berth_status spread_op(splitter *s, berth_op op, const berth_tensor_cut *cut) {
    for (uint32_t i = 0; i < op.output_count; ++i)
        *spread_of(s, op.outputs[i]) =
            (spread_value){.how = cut->result >= 0 ? SPREAD_PARTS : SPREAD_COPIES,
                           .axis = cut->result,
                           .parts = new_list(s),
                           .copies = new_list(s)};
    for (uint32_t d = 0; d < s->count; ++d) {
        berth_op_id id = BERTH_NONE;
        BERTH_TRY(cut_one(s, &op, cut, d, &id));
        for (uint32_t i = 0; i < op.output_count; ++i) {
            spread_value *held = spread_of(s, op.outputs[i]);
            berth_value_id made = graph_of(s)->ops.data[id].outputs[i];
            if (cut->result == BERTH_CUT_WHOLE)
                held->copies[d] = made;
            else
                held->parts[d] = made;
        }
    }
    spread_value *held = spread_of(s, op.outputs[0]);
    if (cut->result == BERTH_CUT_SUM) BERTH_TRY(all_reduce(s, held->parts, held->copies));
    if (cut->begins && op.kind == BERTH_OP_GATHER) BERTH_TRY(give_to_all(s, held));
    for (uint32_t i = 0; i < op.output_count; ++i)
        if (s->is_result[op.outputs[i]]) BERTH_TRY(read_one(s, op.outputs[i]));
    return BERTH_OK;
}

static bool is_product(const splitter *s, const berth_op *op) {
    return (op->kind == BERTH_OP_MATMUL || op->kind == BERTH_OP_MATMUL_INTEGER) &&
           constant_of(s, op->inputs[1]);
}

static berth_status take_op(splitter *s, berth_op_id id) {
    const berth_op op = graph_of(s)->ops.data[id];
    int cut_of[BERTH_CUT_MOST_OPERANDS];
    berth_tensor_cut cut;
    bool any = false, spreads = may_spread(s, &op);
    s->at = id;
    s->loc = op.loc;
    for (uint32_t i = 0; i < op.input_count && spreads; ++i) {
        const spread_value *held = op.inputs[i] == BERTH_NONE ? NULL : spread_of(s, op.inputs[i]);
        any |= held && held->how != SPREAD_ONE;
        cut_of[i] = held && held->how == SPREAD_PARTS ? held->axis : BERTH_CUT_WHOLE;
    }
    // Put together once for several products, rather than a sum for each.
    if (spreads && is_product(s, &op) && s->products[op.inputs[0]] > 1) cut_of[0] = BERTH_CUT_WHOLE;
    if (spreads && berth_tensor_cut_find(s->r.module, graph_of(s), &op, cut_of, s->count, &cut)) {
        s->cut_count += cut.begins;
        return spread_op(s, op, &cut);
    }
    if (spreads && any) {
        cut = (berth_tensor_cut){.result = BERTH_CUT_WHOLE};
        for (int i = 0; i < BERTH_CUT_MOST_OPERANDS; ++i) cut.operand[i] = BERTH_CUT_WHOLE;
        return spread_op(s, op, &cut);
    }
    for (uint32_t i = 0; i < op.input_count; ++i) BERTH_TRY(read_one(s, op.inputs[i]));
    return BERTH_OK;
}

berth_status berth_pass_tensor_parallel(berth_module *module, berth_func_id main,
                                        const berth_multi_target *target, uint32_t *out_cut) {
    splitter s = {.target = target};
    *out_cut = 0;
    s.count = list_devices(target, s.devices);
    const berth_graph *graph = berth_graph_get(module, main);
    if (s.count < 2 || graph->regions.count > 1) return BERTH_OK;
    BERTH_TRY(berth_pass_separate_products(module, main));
    for (uint32_t d = 0; d < s.count; ++d)
        s.ids[d] = berth_virtual_device_intern(
            module->devices, berth_multi_target_virtual_device(target, s.devices[d]));
    berth_rewriter_begin(&s.r, module, main);
    const berth_region *root = &graph->regions.data[0];
    s.values = berth_arena_new_array(module->arena, spread_value, graph->values.count + 1);
    s.is_result = berth_arena_new_array(module->arena, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < root->results.count; ++i) s.is_result[root->results.data[i]] = true;
    s.products = berth_arena_new_array(module->arena, uint32_t, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (is_product(&s, op)) s.products[op->inputs[0]]++;
    }
    uint32_t count = root->ops.count;
    const berth_op_id *ids = berth_arena_copy(module->arena, root->ops.data, count * sizeof(*ids));
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(take_op(&s, ids[i]));
    berth_rewriter_finish(&s.r);
    *out_cut = s.cut_count;
    return BERTH_OK;
}
