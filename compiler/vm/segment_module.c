// A segment as a module of its own.
#include <string.h>

#include "compiler/vm/vm.h"

typedef struct copier {
    const berth_module *from;
    const berth_graph *graph;
    berth_module *to;
    berth_func_id main;
    berth_value_id *map;  // per value of the old graph
    berth_loc_id *locs;   // per location of the old module, + 1
} copier;

static berth_str_id copy_text(const copier *c, berth_str_id text) {
    return berth_module_intern(c->to, berth_module_str(c->from, text));
}

static berth_loc_id copy_loc(copier *c, berth_loc_id id) {
    if (id == 0) return 0;
    if (c->locs[id]) return c->locs[id] - 1;
    berth_loc loc = *berth_loc_get(c->from, id);
    berth_loc_id *parts = berth_arena_new_array(c->to->arena, berth_loc_id, loc.part_count + 1);
    for (uint32_t i = 0; i < loc.part_count; ++i) parts[i] = copy_loc(c, loc.parts[i]);
    loc.file = copy_text(c, loc.file);
    loc.node = copy_text(c, loc.node);
    loc.op_type = copy_text(c, loc.op_type);
    loc.parts = parts;
    berth_loc_id made = berth_loc_add(c->to, loc);
    c->locs[id] = made + 1;
    return made;
}

static berth_attr copy_attr(const copier *c, const berth_attr *attr) {
    berth_attr copy = *attr;
    if (attr->kind == BERTH_ATTR_STRING) copy.s = copy_text(c, attr->s);
    if (attr->kind == BERTH_ATTR_STRINGS) {
        berth_str_id *strings = berth_arena_new_array(c->to->arena, berth_str_id, attr->count + 1);
        for (uint32_t i = 0; i < attr->count; ++i) strings[i] = copy_text(c, attr->strings[i]);
        copy.strings = strings;
    }
    return copy;
}

// Types, devices and functions are a module's own; operations of segments have none of them that
// the compiler does not find again.
static bool stays_behind(const berth_attr *attr) {
    return attr->kind == BERTH_ATTR_TYPE || attr->kind == BERTH_ATTR_DEVICE ||
           attr->kind == BERTH_ATTR_FUNCTION || attr->kind == BERTH_ATTR_OPAQUE;
}

static berth_value_id copy_constant(copier *c, berth_value_id value) {
    const berth_tensor *tensor = berth_graph_raw_constant_of(c->from, c->graph, value);
    if (!tensor) return BERTH_NONE;
    return berth_graph_constant(c->to, c->main, 0, tensor, 0);
}

static berth_value_id copy_operand(copier *c, berth_value_id value) {
    if (value == BERTH_NONE) return BERTH_NONE;
    if (c->map[value] == BERTH_NONE) c->map[value] = copy_constant(c, value);
    return c->map[value];
}

static void copy_op(copier *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    berth_value_id *inputs =
        berth_arena_new_array(c->to->arena, berth_value_id, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) inputs[i] = copy_operand(c, op->inputs[i]);
    berth_op_id made = berth_graph_add_op(c->to, c->main, 0, op->kind, inputs, op->input_count,
                                          op->output_count, copy_loc(c, op->loc));
    for (uint32_t i = 0; i < op->attrs.items.count; ++i) {
        const berth_attr *attr = &op->attrs.items.data[i];
        if (stays_behind(attr)) continue;
        berth_graph *graph = berth_graph_get(c->to, c->main);
        berth_attrs_set(c->to, &graph->ops.data[made].attrs, berth_module_str(c->from, attr->name),
                        copy_attr(c, attr));
    }
    berth_graph *graph = berth_graph_get(c->to, c->main);
    for (uint32_t i = 0; i < op->output_count; ++i)
        c->map[op->outputs[i]] = graph->ops.data[made].outputs[i];
}

static void add_input(copier *c, const berth_vm_segment *segment, uint32_t index,
                      const berth_tensor *tensor) {
    berth_value_id *value = &c->map[segment->inputs[index]];
    if (segment->known[index]) {
        berth_tensor copy =
            berth_tensor_create(c->to->arena, tensor->dtype, tensor->rank, tensor->dims);
        size_t size = berth_tensor_size_bytes(tensor);
        if (size) memcpy(copy.data, tensor->data, size);
        *value = berth_graph_constant(c->to, c->main, 0, &copy, 0);
        return;
    }
    *value =
        berth_graph_add_param(c->to, c->main, berth_arena_printf(c->to->arena, "input%u", index),
                              berth_type_tensor(c->to, tensor->dtype, tensor->rank, tensor->dims));
}

berth_module *berth_vm_segment_module(const berth_module *module, const berth_vm_segment *segment,
                                      const char *name, const berth_tensor *inputs,
                                      berth_arena *arena) {
    copier c = {.from = module,
                .graph = berth_graph_get(module, segment->function),
                .to = berth_module_create(arena, name)};
    c.main = berth_graph_create(c.to, "main", 0);
    c.map = berth_arena_new_array(arena, berth_value_id, c.graph->values.count + 1);
    c.locs = berth_arena_new_array(arena, berth_loc_id, module->locs.count + 1);
    for (uint32_t i = 0; i < c.graph->values.count; ++i) c.map[i] = BERTH_NONE;
    for (uint32_t i = 0; i < segment->input_count; ++i) add_input(&c, segment, i, &inputs[i]);
    for (uint32_t i = 0; i < segment->op_count; ++i) copy_op(&c, segment->ops[i]);
    berth_value_id *results =
        berth_arena_new_array(arena, berth_value_id, segment->output_count + 1);
    berth_graph *graph = berth_graph_get(c.to, c.main);
    for (uint32_t i = 0; i < segment->output_count; ++i) {
        results[i] = c.map[segment->outputs[i]];
        graph->values.data[results[i]].name =
            berth_module_intern(c.to, berth_arena_printf(arena, "output%u", i));
    }
    berth_graph_set_results(c.to, c.main, results, segment->output_count);
    return c.to;
}
