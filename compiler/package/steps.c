// The values of main become tensors in storages, its operations steps, its parameters and results inputs and outputs.
#include <string.h>

#include "compiler/package/package.h"
#include "compiler/passes/append.h"
#include "compiler/passes/concat.h"
#include "compiler/passes/index_checks.h"
#include "compiler/passes/resident.h"
#include "target/virtual_device.h"

static const berth_graph *graph_of(const berth_packager *p) {
    return berth_graph_get(p->module, p->main);
}

static uint32_t *tensor_slot(const berth_packager *p, berth_value_id value, uint32_t place) {
    return &p->tensor_of[(size_t)value * berth_packager__place_count(p) + place];
}

// Where a value is that `device` makes.
static uint32_t place_of(const berth_packager *p, berth_value_id value, uint32_t device) {
    berth_device_id id = graph_of(p)->values.data[value].device;
    return berth_packager__place(p, device,
                                 berth_virtual_device_get(p->module->devices, id).memory_scope);
}

static uint32_t host_place(const berth_packager *p) {
    return berth_packager__place(p, p->target->host, NULL);
}

static uint32_t device_of(const berth_packager *p, berth_value_id value) {
    return berth_plan_device_of(p->module, p->target, graph_of(p)->values.data[value].device);
}

// Where a parameter or result of main is: in the host's memory, or where its device says (passes/resident.h).
static uint32_t border_place(const berth_packager *p, berth_value_id value) {
    const berth_attrs *attrs = &berth_module_function(p->module, p->main)->attrs;
    uint32_t device = p->target->host;
    if (berth_attrs_int(p->module, attrs, BERTH_ATTR_RESIDENT, 0) &&
        !berth_graph_raw_constant_of(p->module, graph_of(p), value))
        device = device_of(p, value);
    return place_of(p, value, device == BERTH_NO_INDEX ? p->target->host : device);
}

// ---- tensors ------------------------------------------------------------------------------------

static uint32_t add_storage(berth_packager *p, uint32_t place, berth_pool_usage usage,
                            uint64_t size_bytes) {
    berth_storage storage = {.place = place,
                             .usage = usage,
                             .size_bytes = size_bytes,
                             .into = BERTH_NO_INDEX,
                             .first_step = BERTH_NO_INDEX};
    berth_vec_push(p->arena, &p->storages, storage);
    return p->storages.count - 1;
}

static uint32_t add_tensor(berth_packager *p, const char *name, const berth_type *type,
                           uint64_t size_bytes, uint32_t storage) {
    berth_program_tensor tensor = {.name = name,
                                   .size_bytes = size_bytes,
                                   .dtype = type->dtype,
                                   .rank = type->rank,
                                   .layout = berth_module_str(p->module, type->layout)};
    memcpy(tensor.dims, type->dims, sizeof(tensor.dims));
    berth_vec_push(p->arena, &p->tensors, tensor);
    berth_vec_push(p->arena, &p->storage_of, storage);
    return p->tensors.count - 1;
}

// A tensor for a value of main in `storage`.
static uint32_t add_value_tensor(berth_packager *p, berth_value_id value, uint32_t storage) {
    const berth_value *held = &graph_of(p)->values.data[value];
    uint64_t size_bytes = berth_type_size_bytes(p->module, held->type);
    return add_tensor(p, berth_module_str(p->module, held->name),
                      berth_type_get(p->module, held->type), size_bytes, storage);
}

// Each memory in which a constant is used has its own copy of it, uploaded when the program is opened.
static uint32_t constant_tensor(berth_packager *p, berth_value_id value,
                                const berth_tensor *literal, uint32_t place) {
    berth_type_id type = graph_of(p)->values.data[value].type;
    uint32_t storage =
        add_storage(p, place, BERTH_POOL_CONSTANT, berth_type_size_bytes(p->module, type));
    uint32_t tensor = add_value_tensor(p, value, storage);
    berth_vec_push(p->arena, &p->constants,
                   (berth_program_constant){.tensor = tensor, .data = literal->data});
    return tensor;
}

// The tensor of an operand where it is read.
static berth_status operand_tensor(berth_packager *p, berth_value_id value, uint32_t place,
                                   uint32_t *out_tensor) {
    uint32_t *slot = tensor_slot(p, value, place);
    if (*slot == BERTH_NO_INDEX) {
        const berth_tensor *literal = berth_graph_raw_constant_of(p->module, graph_of(p), value);
        if (!literal)
            return berth_status_make(
                BERTH_INTERNAL, "value \"%s\" is used in memory %s, where it is not",
                berth_module_str(p->module, graph_of(p)->values.data[value].name),
                p->target->memories[berth_packager__memory(p, place, BERTH_POOL_WORKSPACE)].name);
        *slot = constant_tensor(p, value, literal, place);
    }
    *out_tensor = *slot;
    return BERTH_OK;
}

// ---- steps --------------------------------------------------------------------------------------

uint32_t berth_packager__binding_count(const berth_packager *packager, uint32_t step) {
    const berth_program_step *s = &packager->steps.data[step];
    return s->kind == BERTH_STEP_COPY ? 2 : packager->kernels.data[s->kernel].binding_count;
}

static void add_step(berth_packager *p, berth_program_step step, const bool *written, uint32_t unit,
                     const berth_work *work) {
    berth_step_facts facts = {.written = written, .unit = unit, .work = work};
    berth_vec_push(p->arena, &p->steps, step);
    berth_vec_push(p->arena, &p->facts, facts);
}

// A kernel over an empty tensor has nothing to do.
static bool is_empty(const berth_kernel_source *kernel) {
    return kernel->groups[0] == 0 || kernel->groups[1] == 0 || kernel->groups[2] == 0;
}

// Where a buffer of the function that a unit is for is.
static uint32_t buffer_place(const berth_packager *p, const berth_unit *unit, uint32_t device,
                             berth_buf buf) {
    berth_str_id scope = unit->fn ? unit->fn->bufs.data[buf].memory_scope : 0;
    return berth_packager__place(p, device, scope ? berth_module_str(p->module, scope) : NULL);
}

// The tensor of a buffer of a function that is called: a parameter has one already, workspace
// between the nests gets one.
static uint32_t buffer_tensor(berth_packager *p, const berth_unit *unit, uint32_t device,
                              berth_buf buf, uint32_t *tensors) {
    if (tensors[buf] != BERTH_NO_INDEX) return tensors[buf];
    const berth_buf_info *info = &unit->fn->bufs.data[buf];
    berth_type_id type =
        berth_type_tensor_layout(p->module, info->dtype, info->rank, info->dims, info->layout);
    uint64_t size_bytes = berth_type_size_bytes(p->module, type);
    uint32_t storage =
        add_storage(p, buffer_place(p, unit, device, buf), BERTH_POOL_WORKSPACE, size_bytes);
    tensors[buf] = add_tensor(p, "workspace", berth_type_get(p->module, type), size_bytes, storage);
    return tensors[buf];
}

static void add_in_place(berth_packager *p, const berth_unit *unit, uint32_t kernel,
                         const uint32_t *tensors) {
    for (uint32_t i = 0; i < unit->in_place_count; ++i) {
        const berth_in_place *pair = &unit->in_place[i];
        if (pair->nest != kernel) continue;
        berth_in_place_step step = {p->steps.count, tensors[pair->from], tensors[pair->to]};
        berth_vec_push(p->arena, &p->in_place, step);
    }
}

// A call that only puts its operands beside each other, or takes its operand apart.
static void add_joint(berth_packager *p, const berth_op *op, const uint32_t *tensors,
                      uint32_t first_step) {
    const berth_attr *parts = berth_attrs_find(p->module, &op->attrs, BERTH_ATTR_PARTS_AT);
    const berth_attr *slices = berth_attrs_find(p->module, &op->attrs, BERTH_ATTR_SLICES_AT);
    if ((!parts && !slices) || p->steps.count == first_step) return;
    berth_joint joint = {.first_step = first_step,
                         .step_count = p->steps.count - first_step,
                         .gathers = parts != NULL};
    uint32_t count = 0;
    joint.offsets = berth_attrs_ints(p->module, &op->attrs,
                                     parts ? BERTH_ATTR_PARTS_AT : BERTH_ATTR_SLICES_AT, &count);
    joint.part_count = count;
    joint.whole = parts ? tensors[op->input_count] : tensors[0];
    joint.parts = parts ? tensors : tensors + op->input_count;
    berth_vec_push(p->arena, &p->joints, joint);
}

// What a call does; NULL where the module was lowered before.
static const berth_work *work_of(const berth_packager *p, berth_op_id id) {
    return p->pipeline->works && id < p->pipeline->work_count ? p->pipeline->works[id] : NULL;
}

// Fusion and placement saw to it, but for buffers that lowering added.
static berth_status check_bindings(const berth_packager *p, const berth_op *op, uint32_t device,
                                   const berth_kernel_source *kernel) {
    uint32_t most = berth_target_max_bindings(p->target->devices[device].target);
    if (kernel->buffer_count <= most) return BERTH_OK;
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "%s binds %u buffers, and kernels of %s take %u (max_bindings): pin it "
        "to another device",
        berth_loc_names(p->module, op->loc, true, p->arena), kernel->buffer_count,
        p->target->devices[device].name, most);
}

// One dispatch per kernel of the unit. Buffers are parameters (operands, then results) or
// workspace.
static berth_status add_call(berth_packager *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    uint32_t device = berth_plan_device_of(p->module, p->target, op.device);
    uint32_t unit_index = p->pipeline->unit_of_op[id];
    const berth_unit *unit = &p->pipeline->units.data[unit_index];
    uint32_t first_step = p->steps.count;
    uint32_t buffer_count = unit->fn ? unit->fn->bufs.count : unit->code.kernels[0].buffer_count;
    uint32_t *tensors = berth_arena_new_array(p->arena, uint32_t, buffer_count);
    memset(tensors, 0xff, buffer_count * sizeof(*tensors));
    for (uint32_t i = 0; i < op.input_count; ++i)
        BERTH_TRY(operand_tensor(p, op.inputs[i], buffer_place(p, unit, device, i), &tensors[i]));
    for (uint32_t i = 0; i < op.output_count; ++i)
        tensors[op.input_count + i] =
            *tensor_slot(p, op.outputs[i], place_of(p, op.outputs[i], device));
    for (uint32_t k = 0; k < unit->code.kernel_count; ++k) {
        const berth_kernel_source *kernel = &unit->code.kernels[k];
        if (is_empty(kernel)) continue;
        BERTH_TRY(check_bindings(p, &op, device, kernel));
        uint32_t *bindings = berth_arena_new_array(p->arena, uint32_t, kernel->buffer_count);
        for (uint32_t i = 0; i < kernel->buffer_count; ++i)
            bindings[i] = buffer_tensor(p, unit, device, kernel->buffers[i], tensors);
        add_in_place(p, unit, k, tensors);
        const char *name = berth_loc_label(p->module, op.loc, p->arena);
        const char *kind = berth_external_operators(p->module, &op, p->arena);
        if (unit->external && !*berth_loc_names(p->module, op.loc, false, p->arena))
            name = unit->external->label;
        if (unit->external && !*kind) kind = "external";
        add_step(p,
                 (berth_program_step){.kind = BERTH_STEP_DISPATCH,
                                      .device = device,
                                      .kernel = unit->first_kernel + k,
                                      .bindings = bindings,
                                      .constants = kernel->constants,
                                      .name = name,
                                      .op = kind},
                 kernel->written, unit_index, work_of(p, id));
        p->facts.data[p->facts.count - 1].moved_bytes = kernel->moved_bytes;
        p->facts.data[p->facts.count - 1].scratch_moved_bytes = kernel->scratch_moved_bytes;
    }
    add_joint(p, &op, tensors, first_step);
    return BERTH_OK;
}

static const bool writes_second[] = {false, true};

static void add_copy(berth_packager *p, uint32_t source, uint32_t destination, uint32_t from,
                     uint32_t to, const char *value_name) {
    uint32_t *bindings = berth_arena_new_array(p->arena, uint32_t, 2);
    bindings[0] = source;
    bindings[1] = destination;
    // A device's queue copies to and from the host, and to another device of its kind; between two
    // that are the host either does.
    berth_device_kind from_kind = p->target->devices[from].target->kind;
    berth_device_kind to_kind = p->target->devices[to].target->kind;
    bool from_host = berth_device_kind_is_host(from_kind);
    const char *name =
        berth_arena_printf(p->arena, "%s %s>%s", *value_name ? value_name : "value",
                           p->target->devices[from].name, p->target->devices[to].name);
    if (!from_host && !berth_device_kind_is_host(to_kind) && from_kind != to_kind)
        p->direct_copy = name;
    add_step(p,
             (berth_program_step){.kind = BERTH_STEP_COPY,
                                  .device = from_host ? to : from,
                                  .kernel = BERTH_NO_INDEX,
                                  .bindings = bindings,
                                  .name = name,
                                  .op = "copy"},
             writes_second, BERTH_NO_INDEX, NULL);
}

// Where the operand of a change of device is; BERTH_NO_INDEX: on no device.
static uint32_t source_place(const berth_packager *p, const berth_op *op, uint32_t *out_device) {
    const berth_attr *source = berth_attrs_find(p->module, &op->attrs, "source");
    *out_device = berth_plan_device_of(p->module, p->target, source->device);
    if (*out_device == BERTH_NO_INDEX) return BERTH_NO_INDEX;
    return berth_packager__place(
        p, *out_device, berth_virtual_device_get(p->module->devices, source->device).memory_scope);
}

// Where the results of an operation live: views and aliases share their operand's bytes.
static berth_status make_results(berth_packager *p, berth_op_id id, const bool *is_output) {
    berth_op op = graph_of(p)->ops.data[id];
    uint32_t device = berth_plan_device_of(p->module, p->target, op.device);
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_INTERNAL, "an operation of main has no device");
    bool view = berth_op_has(op.kind, BERTH_TRAIT_VIEW);
    if (op.kind == BERTH_OP_DEVICE_COPY) {
        berth_value_id result = op.outputs[0];
        uint32_t from = 0, tensor = BERTH_NO_INDEX;
        uint32_t source = source_place(p, &op, &from), place = place_of(p, result, device);
        BERTH_TRY(operand_tensor(p, op.inputs[0], source, &tensor));
        if (source == place) {
            *tensor_slot(p, result, place) =
                add_value_tensor(p, result, p->storage_of.data[tensor]);
            return BERTH_OK;
        }
        uint64_t size_bytes =
            berth_type_size_bytes(p->module, graph_of(p)->values.data[result].type);
        berth_pool_usage usage = is_output[result] ? BERTH_POOL_IO : BERTH_POOL_WORKSPACE;
        uint32_t copy = add_value_tensor(p, result, add_storage(p, place, usage, size_bytes));
        *tensor_slot(p, result, place) = copy;
        add_copy(p, tensor, copy, from, device,
                 berth_module_str(p->module, graph_of(p)->values.data[result].name));
        return BERTH_OK;
    }
    for (uint32_t i = 0; i < op.output_count; ++i) {
        berth_value_id result = op.outputs[i];
        uint32_t storage = BERTH_NO_INDEX, place = place_of(p, result, device);
        if (view) {
            uint32_t tensor = BERTH_NO_INDEX;
            BERTH_TRY(operand_tensor(p, op.inputs[0], place, &tensor));
            storage = p->storage_of.data[tensor];
        } else {
            uint64_t size_bytes =
                berth_type_size_bytes(p->module, graph_of(p)->values.data[result].type);
            storage = add_storage(
                p, place, is_output[result] ? BERTH_POOL_IO : BERTH_POOL_WORKSPACE, size_bytes);
        }
        *tensor_slot(p, result, place) = add_value_tensor(p, result, storage);
    }
    return BERTH_OK;
}

// The value whose bytes a value is: through views, and changes of device within one memory.
static berth_value_id origin_of(const berth_packager *p, berth_value_id value) {
    const berth_graph *graph = graph_of(p);
    for (;;) {
        berth_op_id id = graph->values.data[value].op;
        if (id == BERTH_NONE) return value;
        const berth_op *op = &graph->ops.data[id];
        if (op->kind == BERTH_OP_DEVICE_COPY) {
            uint32_t from = 0, source = source_place(p, op, &from);
            uint32_t to = berth_plan_device_of(p->module, p->target, op->device);
            if (source == BERTH_NO_INDEX || to == BERTH_NO_INDEX ||
                source != place_of(p, value, to))
                return value;
        } else if (!berth_op_has(op->kind, BERTH_TRAIT_VIEW)) {
            return value;
        }
        value = op->inputs[0];
    }
}

// Results of main that are computed in the host's memory are written to the output's place
// directly.
static bool *direct_outputs(const berth_packager *p) {
    const berth_graph *graph = graph_of(p);
    bool *direct = berth_arena_new_array(p->arena, bool, graph->values.count);
    for (uint32_t i = 0; i < graph->regions.data[0].results.count; ++i) {
        berth_value_id result = graph->regions.data[0].results.data[i];
        berth_value_id value = origin_of(p, result);
        berth_op_id op = graph->values.data[value].op;
        if (op == BERTH_NONE) continue;
        berth_op_kind kind = graph->ops.data[op].kind;
        if (kind != BERTH_OP_CALL && kind != BERTH_OP_DEVICE_COPY) continue;
        uint32_t device = berth_plan_device_of(p->module, p->target, graph->ops.data[op].device);
        direct[value] =
            device != BERTH_NO_INDEX && place_of(p, value, device) == border_place(p, result);
    }
    return direct;
}

static berth_program_io *make_inputs(berth_packager *p) {
    const berth_region *root = &graph_of(p)->regions.data[0];
    berth_program_io *inputs =
        berth_arena_new_array(p->arena, berth_program_io, root->params.count);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id value = root->params.data[i];
        uint64_t size_bytes =
            berth_type_size_bytes(p->module, graph_of(p)->values.data[value].type);
        uint32_t tensor = add_value_tensor(
            p, value, add_storage(p, border_place(p, value), BERTH_POOL_IO, size_bytes));
        *tensor_slot(p, value, border_place(p, value)) = tensor;
        inputs[i] = (berth_program_io){.name = p->tensors.data[tensor].name, .tensor = tensor};
    }
    return inputs;
}

static berth_status make_outputs(berth_packager *p, const char *const *names,
                                 berth_program_io **out_outputs) {
    const berth_region *root = &graph_of(p)->regions.data[0];
    berth_program_io *outputs =
        berth_arena_new_array(p->arena, berth_program_io, root->results.count);
    uint32_t continued = 0;
    const int64_t *continues =
        berth_attrs_ints(p->module, &berth_module_function(p->module, p->main)->attrs,
                         BERTH_ATTR_CONTINUES, &continued);
    // Storages that are inputs or outputs already.
    bool *taken =
        berth_arena_new_array(p->arena, bool, p->storages.count + 2 * root->results.count + 1);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id param = root->params.data[i];
        uint32_t input = *tensor_slot(p, param, border_place(p, param));
        taken[p->storage_of.data[input]] = true;
    }
    for (uint32_t i = 0; i < root->results.count; ++i) {
        berth_value_id value = root->results.data[i];
        uint32_t tensor = BERTH_NO_INDEX;
        const uint32_t place = border_place(p, value);
        BERTH_TRY(operand_tensor(p, value, place, &tensor));
        uint32_t storage = p->storage_of.data[tensor];
        if (p->storages.data[storage].usage == BERTH_POOL_IO && !taken[storage]) {
            taken[storage] = true;
        } else {  // an input, a constant, or a value that is an output twice: copied to a place of
                  // its own
            uint64_t size_bytes = p->tensors.data[tensor].size_bytes;
            uint32_t copy =
                add_value_tensor(p, value, add_storage(p, place, BERTH_POOL_IO, size_bytes));
            uint32_t device = place == host_place(p) ? p->target->host : device_of(p, value);
            add_copy(p, tensor, copy, device, device, p->tensors.data[tensor].name);
            tensor = copy;
        }
        outputs[i] = (berth_program_io){.name = names[i], .tensor = tensor};
        if (continues && i < continued) outputs[i].continues = (uint32_t)continues[i];
    }
    *out_outputs = outputs;
    return BERTH_OK;
}

// Indices to look at after a run: where the host has them.
static void make_checks(berth_packager *p, const berth_index_checks *held,
                        const berth_program_io *outputs, berth_program *program) {
    const berth_region *root = &graph_of(p)->regions.data[0];
    berth_program_check *checks =
        berth_arena_copy(p->arena, held->checks, held->count * sizeof(*checks));
    for (uint32_t i = 0; i < held->count; ++i) {
        int64_t source = held->sources[i];
        checks[i].tensor = source < 0
                               ? *tensor_slot(p, root->params.data[-1 - source], host_place(p))
                               : outputs[source].tensor;
    }
    program->checks = checks;
    program->check_count = held->count;
    program->output_count = held->result_count;
}

// ---- all of main --------------------------------------------------------------------------------

static void add_kernels(berth_packager *p) {
    for (uint32_t u = 0; u < p->pipeline->units.count; ++u) {
        berth_unit *unit = &p->pipeline->units.data[u];
        unit->first_kernel = p->kernels.count;
        for (uint32_t k = 0; k < unit->code.kernel_count; ++k) {
            const berth_kernel_source *source = &unit->code.kernels[k];
            berth_program_kernel kernel = berth_kernel_source_record(source);
            for (int i = 0; i < 3 && is_empty(source); ++i) kernel.groups[i] = 1;  // never runs
            berth_vec_push(p->arena, &p->kernels, kernel);
        }
    }
}

static berth_status add_steps(berth_packager *p) {
    const berth_region *root = &graph_of(p)->regions.data[0];
    const bool *direct = direct_outputs(p);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        berth_op_kind kind = graph_of(p)->ops.data[id].kind;
        if (kind == BERTH_OP_CONSTANT) continue;
        if (kind == BERTH_OP_SEND || kind == BERTH_OP_RECEIVE)
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "@main %ss values: it is one machine's part of a model, which "
                                     "can be printed and nothing here runs yet",
                                     berth_op_facts_get(kind)->name);
        if (kind != BERTH_OP_CALL && kind != BERTH_OP_DEVICE_COPY &&
            !berth_op_has(kind, BERTH_TRAIT_VIEW))
            return berth_status_make(BERTH_INTERNAL, "operation %s is left in main",
                                     berth_op_facts_get(kind)->name);
        BERTH_TRY(make_results(p, id, direct));
        if (kind == BERTH_OP_CALL) BERTH_TRY(add_call(p, id));
    }
    return BERTH_OK;
}

static const char *const *output_names(berth_packager *p) {
    uint32_t count = graph_of(p)->regions.data[0].results.count;
    const char **names = berth_arena_new_array(p->arena, const char *, count);
    for (uint32_t i = 0; i < count; ++i)
        names[i] = berth_module_str(p->module, berth_graph_result_name(p->module, p->main, i));
    return names;
}

berth_status berth_packager__make_steps(berth_packager *p, berth_program *program) {
    size_t cells = (size_t)graph_of(p)->values.count * berth_packager__place_count(p);
    p->tensor_of = berth_arena_new_array(p->arena, uint32_t, cells);
    memset(p->tensor_of, 0xff, cells * sizeof(uint32_t));
    add_kernels(p);
    program->inputs = make_inputs(p);
    program->input_count = graph_of(p)->regions.data[0].params.count;
    BERTH_TRY(add_steps(p));
    berth_program_io *outputs = NULL;
    berth_index_checks checks;
    BERTH_TRY(berth_index_checks_of(p->module, p->main, p->arena, &checks));
    BERTH_TRY(make_outputs(p, output_names(p), &outputs));
    program->outputs = outputs;
    make_checks(p, &checks, outputs, program);
    return BERTH_OK;
}
