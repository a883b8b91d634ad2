// A segment as a module of its own.
#include <string.h>

#include "compiler/copy_ops.h"
#include "compiler/vm/vm.h"

static void add_input(berth_op_copier *c, const berth_vm_segment *segment, uint32_t index,
                      const berth_tensor *tensor) {
    berth_value_id *value = &c->map[segment->inputs[index]];
    if (segment->known[index]) {
        berth_tensor copy = berth_tensor_copy(c->to->arena, tensor);
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
    berth_op_copier c =
        berth_op_copier_make(module, berth_graph_get(module, segment->function), name, arena);
    for (uint32_t i = 0; i < segment->input_count; ++i)
        if (segment->inputs[i] != BERTH_NONE) add_input(&c, segment, i, &inputs[i]);
    for (uint32_t i = 0; i < segment->op_count; ++i) berth_op_copier_add(&c, segment->ops[i]);
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
