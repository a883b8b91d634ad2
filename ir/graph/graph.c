#include "ir/graph/graph.h"

#include <string.h>

#include "ir/dialect.h"
#include "ir/extend.h"

static const berth_op_facts facts[BERTH_OP_COUNT] = {
#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    {name, onnx, min_in, max_in, min_out, max_out, traits, host_operands, #shape_fn},
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP
};

const berth_op_facts *berth_op_facts_get(berth_op_kind kind) {
    const berth_op_definition *definition = berth_op_definition_get(kind);
    return definition ? &definition->facts : &facts[kind];
}

bool berth_op_kind_from_name(const char *name, berth_op_kind *out_kind) {
    for (int i = 0; i < BERTH_OP_COUNT; ++i) {
        if (strcmp(facts[i].name, name) == 0) {
            *out_kind = (berth_op_kind)i;
            return true;
        }
    }
    const berth_op_definition *definition = NULL;
    for (uint32_t i = BERTH_OP_FIRST_REGISTERED;
         (definition = berth_op_definition_get((berth_op_kind)i)); ++i) {
        if (strcmp(definition->facts.name, name) != 0) continue;
        *out_kind = (berth_op_kind)i;
        return true;
    }
    return false;
}

berth_graph *berth_graph_new_body(berth_module *module) {
    berth_graph *graph = berth_arena_new(module->arena, berth_graph);
    graph->arena = module->arena;
    berth_vec_push(module->arena, &graph->regions, (berth_region){.parent = BERTH_NONE});
    return graph;
}

static void *own_ids(berth_arena *arena, const uint32_t *ids, uint32_t count) {
    return count ? berth_arena_copy(arena, ids, count * sizeof(*ids)) : NULL;
}

berth_graph *berth_graph_copy_body(berth_module *module, const berth_graph *body) {
    berth_arena *arena = module->arena;
    berth_graph *graph = berth_arena_copy(arena, body, sizeof(*graph));
    graph->arena = arena;
    berth_vec_own(arena, &graph->values);
    berth_vec_own(arena, &graph->ops);
    berth_vec_own(arena, &graph->regions);
    berth_vec_own(arena, &graph->insertions);
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        berth_op *op = &graph->ops.data[i];
        op->inputs = own_ids(arena, op->inputs, op->input_count);
        op->outputs = own_ids(arena, op->outputs, op->output_count);
        op->regions = own_ids(arena, op->regions, op->region_count);
        berth_vec_own(arena, &op->attrs.items);
    }
    for (uint32_t i = 0; i < graph->regions.count; ++i) {
        berth_region *region = &graph->regions.data[i];
        berth_vec_own(arena, &region->params);
        berth_vec_own(arena, &region->ops);
        berth_vec_own(arena, &region->results);
    }
    return graph;
}

berth_func_id berth_graph_create(berth_module *module, const char *name, berth_loc_id loc) {
    berth_graph *graph = berth_graph_new_body(module);
    return berth_module_add_function(module, name, &berth_dialect_graph, graph, loc);
}

berth_graph *berth_graph_get(const berth_module *module, berth_func_id function) {
    const berth_function *held = berth_module_function(module, function);
    return held && held->dialect == &berth_dialect_graph ? held->body : NULL;
}

static berth_value_id add_value(berth_module *module, berth_graph *graph, berth_value value) {
    berth_vec_push(module->arena, &graph->values, value);
    return graph->values.count - 1;
}

berth_value_id berth_graph_add_region_param(berth_module *module, berth_func_id function,
                                            berth_region_id region, const char *name,
                                            berth_type_id type) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_value value = {.type = type,
                         .name = berth_module_intern(module, name),
                         .op = BERTH_NONE,
                         .index = graph->regions.data[region].params.count,
                         .region = region};
    berth_value_id id = add_value(module, graph, value);
    berth_vec_push(module->arena, &graph->regions.data[region].params, id);
    return id;
}

berth_value_id berth_graph_add_param(berth_module *module, berth_func_id function, const char *name,
                                     berth_type_id type) {
    return berth_graph_add_region_param(module, function, 0, name, type);
}

berth_region_id berth_graph_add_region(berth_module *module, berth_func_id function,
                                       berth_op_id parent) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_region_id id = graph->regions.count;
    berth_vec_push(module->arena, &graph->regions, (berth_region){.parent = parent});
    berth_op *op = &graph->ops.data[parent];
    op->regions = berth_arena_grow(module->arena, op->regions, op->region_count * sizeof(id),
                                   (op->region_count + 1) * sizeof(id));
    op->regions[op->region_count++] = id;
    return id;
}

void berth_graph_set_region_results(berth_module *module, berth_func_id function,
                                    berth_region_id region, const berth_value_id *results,
                                    uint32_t count) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_region *held = &graph->regions.data[region];
    held->results.count = 0;
    for (uint32_t i = 0; i < count; ++i) berth_vec_push(module->arena, &held->results, results[i]);
}

berth_str_id berth_graph_result_name(const berth_module *module, berth_func_id function,
                                     uint32_t index) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_attr *names =
        berth_attrs_find(module, &berth_module_function(module, function)->attrs, "output_names");
    if (names && names->kind == BERTH_ATTR_STRINGS && index < names->count)
        return names->strings[index];
    return graph->values.data[graph->regions.data[0].results.data[index]].name;
}

void berth_graph_set_results(berth_module *module, berth_func_id function,
                             const berth_value_id *results, uint32_t count) {
    berth_graph_set_region_results(module, function, 0, results, count);
}

static berth_op_id make_op(berth_module *module, berth_graph *graph, berth_region_id region,
                           berth_op_kind kind, const berth_value_id *inputs, uint32_t input_count,
                           uint32_t output_count, berth_loc_id loc) {
    berth_op_id id = graph->ops.count;
    berth_op op = {.kind = kind,
                   .input_count = input_count,
                   .output_count = output_count,
                   .loc = loc,
                   .region = region};
    op.inputs = berth_arena_copy(module->arena, inputs, input_count * sizeof(*inputs));
    op.outputs = berth_arena_new_array(module->arena, berth_value_id, output_count);
    for (uint32_t i = 0; i < output_count; ++i)
        op.outputs[i] =
            add_value(module, graph, (berth_value){.op = id, .index = i, .region = BERTH_NONE});
    berth_vec_push(module->arena, &graph->ops, op);
    return id;
}

berth_op_id berth_graph_add_op(berth_module *module, berth_func_id function, berth_region_id region,
                               berth_op_kind kind, const berth_value_id *inputs,
                               uint32_t input_count, uint32_t output_count, berth_loc_id loc) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_op_id id = make_op(module, graph, region, kind, inputs, input_count, output_count, loc);
    berth_vec_push(module->arena, &graph->regions.data[region].ops, id);
    return id;
}

static uint32_t position_in_region(const berth_region *region, berth_op_id op) {
    uint32_t at = 0;
    while (at < region->ops.count && region->ops.data[at] != op) at++;
    return at;
}

berth_op_id berth_graph_insert_op(berth_module *module, berth_func_id function,
                                  berth_op_id position, berth_op_kind kind,
                                  const berth_value_id *inputs, uint32_t input_count,
                                  uint32_t output_count, berth_loc_id loc) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_region_id region_id = graph->ops.data[position].region;
    berth_op_id id =
        make_op(module, graph, region_id, kind, inputs, input_count, output_count, loc);
    if (graph->editing) {
        berth_vec_push(module->arena, &graph->insertions, (berth_insertion){id, position});
        return id;
    }
    berth_region *region = &graph->regions.data[region_id];
    uint32_t at = position_in_region(region, position);
    berth_vec_push(module->arena, &region->ops, id);
    memmove(&region->ops.data[at + 1], &region->ops.data[at],
            (region->ops.count - 1 - at) * sizeof(id));
    region->ops.data[at] = id;
    return id;
}

void berth_graph_begin_edit(berth_graph *graph) {
    graph->editing = true;
}

// One way through the insertions gives each operation the list of those that come before it; one
// way through every region puts them there. An operation may be inserted before one that was itself
// inserted: a stack holds what waits.
void berth_graph_end_edit(berth_graph *graph) {
    uint32_t count = graph->insertions.count;
    graph->editing = false;
    if (!count) return;
    berth_arena *scratch = berth_arena_create_child(graph->arena);
    uint32_t *first = berth_arena_new_array(scratch, uint32_t, graph->ops.count);  // + 1; 0 = none
    uint32_t *next = berth_arena_new_array(scratch, uint32_t, count);
    for (uint32_t i = count; i-- > 0;) {
        next[i] = first[graph->insertions.data[i].position];
        first[graph->insertions.data[i].position] = i + 1;
    }
    for (uint32_t r = 0; r < graph->regions.count; ++r) {
        berth_region *region = &graph->regions.data[r];
        BERTH_VEC(berth_op_id) merged = {0};
        BERTH_VEC(berth_op_id) stack = {0};
        for (uint32_t i = 0; i < region->ops.count; ++i) {
            berth_vec_push(scratch, &stack, region->ops.data[i]);
            while (stack.count) {
                berth_op_id top = stack.data[stack.count - 1];
                uint32_t waiting = first[top];
                if (waiting) {
                    first[top] = next[waiting - 1];
                    berth_vec_push(scratch, &stack, graph->insertions.data[waiting - 1].op);
                    continue;
                }
                stack.count--;
                berth_vec_push(scratch, &merged, top);
            }
        }
        if (merged.count == region->ops.count) continue;
        berth_vec_reserve(graph->arena, &region->ops, merged.count);
        memcpy(region->ops.data, merged.data, merged.count * sizeof(*merged.data));
        region->ops.count = merged.count;
    }
    graph->insertions.count = 0;
    berth_arena_destroy(scratch);
}

berth_value_id berth_graph_op1(berth_module *module, berth_func_id function, berth_op_kind kind,
                               const berth_value_id *inputs, uint32_t input_count,
                               berth_loc_id loc) {
    berth_op_id op = berth_graph_add_op(module, function, 0, kind, inputs, input_count, 1, loc);
    return berth_graph_get(module, function)->ops.data[op].outputs[0];
}

static berth_value_id finish_constant(berth_module *module, berth_func_id function, berth_op_id op,
                                      const berth_tensor *tensor) {
    berth_graph *graph = berth_graph_get(module, function);
    const berth_tensor *held = berth_arena_copy(module->arena, tensor, sizeof(*tensor));
    berth_attrs_set(module, &graph->ops.data[op].attrs, "value",
                    (berth_attr){.kind = BERTH_ATTR_TENSOR, .tensor = held});
    berth_value_id value = graph->ops.data[op].outputs[0];
    graph->values.data[value].type =
        berth_type_tensor(module, tensor->dtype, tensor->rank, tensor->dims);
    return value;
}

berth_value_id berth_graph_constant(berth_module *module, berth_func_id function,
                                    berth_region_id region, const berth_tensor *tensor,
                                    berth_loc_id loc) {
    berth_op_id op =
        berth_graph_add_op(module, function, region, BERTH_OP_CONSTANT, NULL, 0, 1, loc);
    return finish_constant(module, function, op, tensor);
}

berth_value_id berth_graph_insert_constant(berth_module *module, berth_func_id function,
                                           berth_op_id position, const berth_tensor *tensor,
                                           berth_loc_id loc) {
    berth_op_id op =
        berth_graph_insert_op(module, function, position, BERTH_OP_CONSTANT, NULL, 0, 1, loc);
    return finish_constant(module, function, op, tensor);
}

static berth_attr *literal_of(const berth_module *module, const berth_graph *graph,
                              berth_value_id value) {
    if (value >= graph->values.count) return NULL;
    berth_op_id op = graph->values.data[value].op;
    if (op == BERTH_NONE || graph->ops.data[op].kind != BERTH_OP_CONSTANT) return NULL;
    berth_attrs *attrs = &graph->ops.data[op].attrs;
    for (uint32_t i = 0; i < attrs->items.count; ++i) {
        berth_attr *attr = &attrs->items.data[i];
        if (strcmp(berth_module_str(module, attr->name), "value") == 0)
            return attr->kind == BERTH_ATTR_TENSOR ? attr : NULL;
    }
    return NULL;
}

const berth_tensor *berth_graph_raw_constant_of(const berth_module *module,
                                                const berth_graph *graph, berth_value_id value) {
    const berth_attr *literal = literal_of(module, graph, value);
    return literal ? literal->tensor : NULL;
}

const berth_tensor *berth_graph_constant_of(const berth_module *module, const berth_graph *graph,
                                            berth_value_id value) {
    berth_attr *literal = literal_of(module, graph, value);
    if (!literal) return NULL;
    const berth_tensor *raw = literal->tensor;
    if (!raw || berth_tensor_is_aligned(raw)) return raw;
    berth_tensor aligned = berth_tensor_align(graph->arena, raw);
    literal->tensor = berth_arena_copy(graph->arena, &aligned, sizeof(aligned));
    return literal->tensor;
}

void berth_graph_remove_op(berth_graph *graph, berth_op_id op) {
    berth_region_id region_id = graph->ops.data[op].region;
    if (region_id == BERTH_NONE) return;
    berth_region *region = &graph->regions.data[region_id];
    uint32_t at = position_in_region(region, op);
    if (at < region->ops.count) {
        memmove(&region->ops.data[at], &region->ops.data[at + 1],
                (region->ops.count - at - 1) * sizeof(op));
        region->ops.count--;
    }
    graph->ops.data[op].region = BERTH_NONE;
}

static berth_value_id follow(berth_value_id *map, berth_value_id value) {
    berth_value_id end = value;
    while (map[end] != end) end = map[end];
    while (map[value] != end) {  // path compression
        berth_value_id next = map[value];
        map[value] = end;
        value = next;
    }
    return end;
}

void berth_graph_replace_many(berth_graph *graph, berth_value_id *map) {
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        berth_op *op = &graph->ops.data[i];
        for (uint32_t j = 0; j < op->input_count; ++j)
            if (op->inputs[j] != BERTH_NONE) op->inputs[j] = follow(map, op->inputs[j]);
    }
    for (uint32_t i = 0; i < graph->regions.count; ++i) {
        berth_region *region = &graph->regions.data[i];
        for (uint32_t j = 0; j < region->results.count; ++j)
            if (region->results.data[j] != BERTH_NONE)
                region->results.data[j] = follow(map, region->results.data[j]);
    }
}

void berth_graph_replace_value(berth_graph *graph, berth_value_id from, berth_value_id to) {
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        berth_op *op = &graph->ops.data[i];
        for (uint32_t j = 0; j < op->input_count; ++j)
            if (op->inputs[j] == from) op->inputs[j] = to;
    }
    for (uint32_t i = 0; i < graph->regions.count; ++i) {
        berth_region *region = &graph->regions.data[i];
        for (uint32_t j = 0; j < region->results.count; ++j)
            if (region->results.data[j] == from) region->results.data[j] = to;
    }
}

uint32_t *berth_graph_count_uses(const berth_graph *graph, berth_arena *arena) {
    uint32_t *uses = berth_arena_new_array(arena, uint32_t, graph->values.count);
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE) continue;
        for (uint32_t j = 0; j < op->input_count; ++j)
            if (op->inputs[j] != BERTH_NONE) uses[op->inputs[j]]++;
    }
    for (uint32_t i = 0; i < graph->regions.count; ++i) {
        const berth_region *region = &graph->regions.data[i];
        for (uint32_t j = 0; j < region->results.count; ++j)
            if (region->results.data[j] != BERTH_NONE) uses[region->results.data[j]]++;
    }
    return uses;
}

// Unlinks op and everything in its regions; takes their uses back.
static void drop_op(berth_graph *graph, berth_op_id id, uint32_t *uses) {
    berth_op *op = &graph->ops.data[id];
    for (uint32_t j = 0; j < op->input_count; ++j)
        if (op->inputs[j] != BERTH_NONE) uses[op->inputs[j]]--;
    for (uint32_t r = 0; r < op->region_count; ++r) {
        berth_region *region = &graph->regions.data[op->regions[r]];
        for (uint32_t j = 0; j < region->results.count; ++j)
            if (region->results.data[j] != BERTH_NONE) uses[region->results.data[j]]--;
        region->results.count = 0;
        while (region->ops.count) drop_op(graph, region->ops.data[region->ops.count - 1], uses);
    }
    berth_graph_remove_op(graph, id);
}

void berth_graph_remove_dead(berth_module *module, berth_func_id function) {
    berth_graph *graph = berth_graph_get(module, function);
    uint32_t *uses = berth_graph_count_uses(graph, module->arena);
    for (uint32_t r = graph->regions.count; r-- > 0;) {
        berth_region *region = &graph->regions.data[r];
        uint32_t kept = region->ops.count;  // compacted from the back, so removal is linear
        for (uint32_t i = region->ops.count; i-- > 0;) {
            berth_op_id id = region->ops.data[i];
            berth_op *op = &graph->ops.data[id];
            bool used = berth_op_has(op->kind, BERTH_TRAIT_EFFECT);
            for (uint32_t j = 0; j < op->output_count; ++j) used |= uses[op->outputs[j]] > 0;
            if (used || op->region_count > 0) {
                bool drop = !used && op->region_count > 0;
                if (drop) {  // rare: regions have to be taken apart
                    uint32_t tail = region->ops.count - kept;
                    memmove(&region->ops.data[i + 1], &region->ops.data[kept], tail * sizeof(id));
                    region->ops.count = i + 1 + tail;
                    drop_op(graph, id, uses);
                    kept = i;
                    continue;
                }
                region->ops.data[--kept] = id;
                continue;
            }
            for (uint32_t j = 0; j < op->input_count; ++j)
                if (op->inputs[j] != BERTH_NONE) uses[op->inputs[j]]--;
            op->region = BERTH_NONE;
        }
        if (kept == 0) continue;
        memmove(region->ops.data, region->ops.data + kept,
                (region->ops.count - kept) * sizeof(*region->ops.data));
        region->ops.count -= kept;
    }
}

// ---- branches ----

bool berth_graph_is_conditional(const berth_graph *graph, berth_region_id region) {
    while (region != BERTH_NONE && graph->regions.data[region].parent != BERTH_NONE) {
        const berth_op *parent = &graph->ops.data[graph->regions.data[region].parent];
        if (parent->kind == BERTH_OP_IF) return true;
        region = parent->region;
    }
    return false;
}

berth_status berth_graph_excuse(const berth_graph *graph, berth_region_id region,
                                berth_status status) {
    berth_code code = berth_status_code(status);
    bool misfit = code == BERTH_INVALID_ARGUMENT || code == BERTH_OUT_OF_RANGE ||
                  code == BERTH_UNSUPPORTED || code == BERTH_INCOMPATIBLE;
    if (!misfit || !berth_graph_is_conditional(graph, region)) return status;
    berth_status_free(status);
    return BERTH_OK;
}
