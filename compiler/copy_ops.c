#include "compiler/copy_ops.h"

#include "ir/external.h"
#include "ir/tensor/function.h"

// Functions that operations call beside graph functions, which are inlined or called by other means.
static bool has_callees(const berth_module *module) {
    for (berth_func_id i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed &&
            (berth_tfn_get(module, i) || berth_external_get(module, i)))
            return true;
    return false;
}

// The module with nothing but these functions, by the numbers that they have.
static berth_module *copy_callees(berth_arena *arena, const berth_module *from, const char *name) {
    berth_module *to = berth_module_copy(arena, from);
    to->name = berth_module_intern(to, name);
    to->attrs = (berth_attrs){0};
    for (berth_func_id i = 0; i < to->functions.count; ++i)
        if (!berth_tfn_get(to, i) && !berth_external_get(to, i))
            to->functions.data[i].removed = true;
    return to;
}

berth_op_copier berth_op_copier_make(const berth_module *from, const berth_graph *graph,
                                     const char *name, berth_arena *arena) {
    berth_op_copier c = {.from = from, .graph = graph, .has_callees = has_callees(from)};
    c.to = c.has_callees ? copy_callees(arena, from, name) : berth_module_create(arena, name);
    c.main = berth_graph_create(c.to, "main", 0);
    c.map = berth_arena_new_array(arena, berth_value_id, graph->values.count + 1);
    c.locs = berth_arena_new_array(arena, berth_loc_id, from->locs.count + 1);
    for (uint32_t i = 0; c.has_callees && i < from->locs.count; ++i) c.locs[i] = i + 1;
    for (uint32_t i = 0; i < graph->values.count; ++i) c.map[i] = BERTH_NONE;
    return c;
}

static berth_str_id copy_text(const berth_op_copier *c, berth_str_id text) {
    return berth_module_intern(c->to, berth_module_str(c->from, text));
}

static berth_loc_id copy_loc(berth_op_copier *c, berth_loc_id id) {
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

static berth_attr copy_attr(const berth_op_copier *c, const berth_attr *attr) {
    berth_attr copy = *attr;
    if (attr->kind == BERTH_ATTR_STRING) copy.s = copy_text(c, attr->s);
    if (attr->kind == BERTH_ATTR_STRINGS) {
        berth_str_id *strings = berth_arena_new_array(c->to->arena, berth_str_id, attr->count + 1);
        for (uint32_t i = 0; i < attr->count; ++i) strings[i] = copy_text(c, attr->strings[i]);
        copy.strings = strings;
    }
    return copy;
}

// Types, devices and functions are a module's own, but for functions that have come along.
static bool stays_behind(const berth_op_copier *c, const berth_attr *attr) {
    if (attr->kind == BERTH_ATTR_FUNCTION)
        return !c->has_callees || c->to->functions.data[attr->function].removed;
    return attr->kind == BERTH_ATTR_TYPE || attr->kind == BERTH_ATTR_DEVICE ||
           attr->kind == BERTH_ATTR_OPAQUE;
}

static berth_value_id copy_constant(berth_op_copier *c, berth_value_id value) {
    const berth_tensor *tensor = berth_graph_raw_constant_of(c->from, c->graph, value);
    if (!tensor) return BERTH_NONE;
    return berth_graph_constant(c->to, c->main, 0, tensor, 0);
}

static berth_value_id copy_operand(berth_op_copier *c, berth_value_id value) {
    if (value == BERTH_NONE) return BERTH_NONE;
    if (c->map[value] == BERTH_NONE) c->map[value] = copy_constant(c, value);
    return c->map[value];
}

berth_op_id berth_op_copier_add(berth_op_copier *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    berth_value_id *inputs =
        berth_arena_new_array(c->to->arena, berth_value_id, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i) inputs[i] = copy_operand(c, op->inputs[i]);
    berth_op_id made = berth_graph_add_op(c->to, c->main, 0, op->kind, inputs, op->input_count,
                                          op->output_count, copy_loc(c, op->loc));
    for (uint32_t i = 0; i < op->attrs.items.count; ++i) {
        const berth_attr *attr = &op->attrs.items.data[i];
        if (stays_behind(c, attr)) continue;
        berth_graph *graph = berth_graph_get(c->to, c->main);
        berth_attrs_set(c->to, &graph->ops.data[made].attrs, berth_module_str(c->from, attr->name),
                        copy_attr(c, attr));
    }
    berth_graph *graph = berth_graph_get(c->to, c->main);
    for (uint32_t i = 0; i < op->output_count; ++i)
        c->map[op->outputs[i]] = graph->ops.data[made].outputs[i];
    return made;
}
