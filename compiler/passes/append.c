#include "compiler/passes/append.h"

#include <string.h>

#include "base/str.h"
#include "ir/graph/op_params.h"
#include "ir/layout.h"
#include "planner/planner.h"

typedef struct appender {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    berth_arena *scratch;
    const uint32_t *uses;
    int64_t *continues;  // per result
    bool any;
} appender;

static berth_graph *graph_of(const appender *a) {
    return berth_graph_get(a->module, a->main);
}

static const berth_type *type_of(const appender *a, berth_value_id value) {
    return berth_type_get(a->module, graph_of(a)->values.data[value].type);
}

// In the host's memory, or on a device where the cache stays in its memory (resident.h).
static bool is_in_place(const appender *a, const berth_op *op) {
    uint32_t device = berth_plan_device_of(a->module, a->target, op->device);
    if (device == BERTH_NONE) return false;
    const berth_target_device *held = &a->target->devices[device];
    if (held->own_memory == a->target->devices[a->target->host].own_memory)
        return berth_device_kind_is_host(held->target->kind);
    const berth_value *past = &graph_of(a)->values.data[op->inputs[0]];
    return berth_plan_device_of(a->module, a->target, past->device) == device;
}

// 1 + N of "inputN"; 0 for another name.
static int64_t number_of_input(const char *name) {
    static const char prefix[] = "input";
    int64_t number = 0;
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) return 0;
    const char *digits = name + sizeof(prefix) - 1;
    if (!*digits || strlen(digits) > 6) return 0;
    for (const char *c = digits; *c; ++c) {
        if (*c < '0' || *c > '9') return 0;
        number = 10 * number + (*c - '0');
    }
    return number + 1;
}

// The result of `main` that the value is, once; BERTH_NONE: none, or several.
static uint32_t result_of(const appender *a, berth_value_id value) {
    const berth_region *root = &graph_of(a)->regions.data[0];
    uint32_t found = BERTH_NONE;
    for (uint32_t i = 0; i < root->results.count; ++i) {
        if (root->results.data[i] != value) continue;
        if (found != BERTH_NONE) return BERTH_NONE;
        found = i;
    }
    return found;
}

// Row-major, with room for `capacity` indices of the axis: from there on all dimensions are one block.
static const char *layout_of(const appender *a, const berth_type *type, int axis,
                             int64_t capacity) {
    berth_strbuf text = berth_strbuf_make(a->scratch);
    for (int d = 0; d < type->rank; ++d) berth_strbuf_addf(&text, "%c", (d < axis ? 'a' : 'A') + d);
    for (int d = axis; d < type->rank; ++d)
        berth_strbuf_addf(&text, "%lld%c", (long long)(d == axis ? capacity : type->dims[d]),
                          'a' + d);
    return berth_strbuf_text(&text);
}

// What a kernel reads element by element, in any layout.
static bool reads_any_layout(const berth_op *op) {
    return !berth_op_has(op->kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE);
}

// Who needs a plain tensor gets a copy of its own.
static void convert_users(const appender *a, berth_value_id value) {
    berth_value_id plain = BERTH_NONE;
    for (uint32_t i = 0; i < graph_of(a)->regions.data[0].ops.count; ++i) {
        berth_op_id user = graph_of(a)->regions.data[0].ops.data[i];
        for (uint32_t k = 0; k < graph_of(a)->ops.data[user].input_count; ++k) {
            const berth_op *op = &graph_of(a)->ops.data[user];
            if (op->inputs[k] != value || reads_any_layout(op)) continue;
            if (plain == BERTH_NONE) {
                berth_op_id made = berth_graph_insert_op(a->module, a->main, user,
                                                         BERTH_OP_RELAYOUT, &value, 1, 1, op->loc);
                berth_op *relayout = &graph_of(a)->ops.data[made];
                const berth_type type = *type_of(a, value);
                plain = relayout->outputs[0];
                relayout->device = graph_of(a)->ops.data[graph_of(a)->values.data[value].op].device;
                berth_attrs_set_string(a->module, &relayout->attrs, "layout", "");
                graph_of(a)->values.data[plain].type =
                    berth_type_tensor(a->module, type.dtype, type.rank, type.dims);
                graph_of(a)->values.data[plain].device = graph_of(a)->values.data[value].device;
                i++;
            }
            graph_of(a)->ops.data[user].inputs[k] = plain;
        }
    }
}

static bool convert(appender *a, berth_op_id id) {
    berth_op op = graph_of(a)->ops.data[id];
    const berth_value past = graph_of(a)->values.data[op.inputs[0]];
    const berth_type before = *type_of(a, op.inputs[0]), type = *type_of(a, op.outputs[0]);
    int64_t capacity = berth_attrs_int(a->module, &op.attrs, "capacity", 0);
    uint32_t result = result_of(a, op.outputs[0]);
    int64_t input = number_of_input(berth_module_str(a->module, past.name));
    int axis = 0;
    berth_status status = berth_axis_resolve(berth_attrs_int(a->module, &op.attrs, "axis", 0),
                                             type.rank, "axis", &axis);
    bool fits = !status && past.op == BERTH_NONE && a->uses[op.inputs[0]] == 1 && input > 0 &&
                result != BERTH_NONE && is_in_place(a, &op) && !before.layout && !type.layout &&
                berth_type_is_static(&type) && type.dims[axis] <= capacity &&
                type.rank - axis <= BERTH_LAYOUT_MAX_BLOCKS;
    for (int d = 0; d < type.rank && fits; ++d) fits = d == axis || type.dims[d] > 0;
    berth_status_ignore(status);
    if (!fits) return false;
    const char *layout = layout_of(a, &type, axis, capacity);
    graph_of(a)->values.data[op.outputs[0]].type = berth_type_tensor_layout(
        a->module, type.dtype, type.rank, type.dims, berth_module_intern(a->module, layout));
    berth_op *held = &graph_of(a)->ops.data[id];
    held->inputs[0] = held->inputs[1];
    held->input_count = 1;
    berth_attrs_set_int(a->module, &held->attrs, "at", before.dims[axis]);
    convert_users(a, op.outputs[0]);
    a->continues[result] = input;
    a->any = true;
    return true;
}

// Caches that nobody reads any more are no parameters.
static void drop_parameters(const appender *a) {
    berth_graph *graph = graph_of(a);
    berth_region *root = &graph->regions.data[0];
    const uint32_t *uses = berth_graph_count_uses(graph, a->scratch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id value = root->params.data[i];
        int64_t number =
            number_of_input(berth_module_str(a->module, graph->values.data[value].name));
        bool continued = false;
        for (uint32_t r = 0; r < root->results.count; ++r)
            continued |= number > 0 && a->continues[r] == number;
        if (continued && uses[value] == 0) continue;
        graph->values.data[value].index = kept;
        root->params.data[kept++] = value;
    }
    root->params.count = kept;
}

void berth_pass_append(berth_module *module, berth_func_id main, const berth_multi_target *target) {
    appender a = {.module = module,
                  .main = main,
                  .target = target,
                  .scratch = berth_arena_create_child(module->arena)};
    const uint32_t results = graph_of(&a)->regions.data[0].results.count;
    a.uses = berth_graph_count_uses(graph_of(&a), a.scratch);
    a.continues = berth_arena_new_array(a.scratch, int64_t, results + 1);
    for (uint32_t i = 0; i < graph_of(&a)->regions.data[0].ops.count; ++i) {
        berth_op_id id = graph_of(&a)->regions.data[0].ops.data[i];
        const berth_op *op = &graph_of(&a)->ops.data[id];
        if (op->kind != BERTH_OP_APPEND || op->input_count != 2) continue;
        if (!convert(&a, id)) graph_of(&a)->ops.data[id].kind = BERTH_OP_CONCAT;
    }
    if (a.any) {
        drop_parameters(&a);
        berth_attrs_set_ints(module, &berth_module_function(module, main)->attrs,
                             BERTH_ATTR_CONTINUES, a.continues, results);
    }
    berth_arena_destroy(a.scratch);
}
