#include "compiler/cost/cost.h"

#include <math.h>

#include "compiler/codegen/codegen.h"
#include "compiler/cost/alike.h"
#include "compiler/cost/kernel_groups.h"
#include "compiler/cost/table.h"
#include "compiler/external.h"
#include "compiler/libraries/choose.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/bindings.h"
#include "compiler/rules.h"

// Times of the operations of @main on one device, by the kernels that hold them.
typedef struct device_times {
    bool tried;  // to find the kernels
    bool found;
    double *ns;
    double *memory_ns;  // of all the bandwidth of the device's memory
    berth_cost_figure *figure;
    uint32_t count;
} device_times;

// What the model asks of: the target, and the latest answer of the lowering, which is the same for
// every device and is asked for one after the other. A graph's address is never used twice.
typedef struct cost_model {
    const berth_multi_target *target;
    const berth_compile_options *options;  // NULL = operations one by one
    berth_arena *arena;                    // answers outlive the one that a question comes with
    const berth_graph *graph;              // of `answer`; NULL = none yet
    berth_op_id op;
    const char *answer;
    berth_alike alike;
    const berth_graph *timed;  // of `times`; NULL = none yet
    device_times *times;       // per device
} cost_model;

static struct berth_cost_table *table_of(const cost_model *model) {
    return model->options ? model->options->costs : NULL;
}

static berth_dtype dtype_of(const berth_module *module, const berth_graph *graph,
                            berth_value_id value) {
    return berth_type_get(module, value == BERTH_NONE ? 0 : graph->values.data[value].type)->dtype;
}

// Bytes of the operands that are constants.
static double constant_bytes(const berth_module *module, const berth_graph *graph,
                             const berth_op *op) {
    double bytes = 0;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE &&
            berth_graph_raw_constant_of(module, graph, op->inputs[i]))
            bytes += (double)berth_type_size_bytes(module, graph->values.data[op->inputs[i]].type);
    return bytes;
}

double berth_cost_work_ns(const berth_multi_target *target, struct berth_cost_table *table,
                          uint32_t device, const berth_work *work, berth_cost_constants constants,
                          berth_cost_figure *out_figure) {
    const berth_target *on = target->devices[device].target;
    *out_figure = BERTH_COST_NONE;
    if (work->given_ns > 0) *out_figure = BERTH_COST_ANALYTIC;
    if (work->given_ns > 0) return work->given_ns;
    if (work->flops == 0 && work->bytes == 0) return 0;
    if (table) {
        double ns = berth_cost_device_ns(berth_cost_table_device(table, on), work, out_figure);
        if (ns >= 0) return ns;
    }
    *out_figure = BERTH_COST_ANALYTIC;
    return berth_cost_roofline_ns(target, device, work, constants);
}

// ---- operations ---------------------------------------------------------------------------------

static berth_rules_question question_of(const cost_model *model, const berth_module *module,
                                        berth_func_id function, berth_op_id id, uint32_t device) {
    return (berth_rules_question){.module = module,
                                  .function = function,
                                  .op = id,
                                  .target = model->target->devices[device].target,
                                  .arena = model->arena,
                                  .machine = model->target,
                                  .device = device};
}

static const berth_kind_rules *rules_of(const cost_model *model, uint32_t device) {
    return berth_rules_find(model->target->devices[device].target->kind);
}

// What a kind of device says itself of its time; below 0: nothing.
static double time_of_rules(const cost_model *model, const berth_module *module,
                            berth_func_id function, berth_op_id id, uint32_t device) {
    const berth_kind_rules *rules = rules_of(model, device);
    const berth_rules_question question = question_of(model, module, function, id, device);
    return rules && rules->time_ns ? rules->time_ns(&question) : -1;
}

// The work of an operation, once for all that are alike; else in `scratch`.
static berth_work work_of(cost_model *model, const berth_module *module, berth_func_id function,
                          berth_op_id id, berth_arena *scratch) {
    berth_alike_facts *facts =
        berth_alike_find(&model->alike, module, berth_graph_get(module, function), id);
    if (!facts) return berth_work_of_op(module, function, id, scratch);
    if (!facts->work) {
        berth_work work = berth_work_of_op(module, function, id, model->arena);
        facts->work = berth_arena_copy(model->arena, &work, sizeof(work));
    }
    return *facts->work;
}

// What the table has of the very operation, which rules only estimate; below 0: nothing.
static double known_ns_of(cost_model *model, const berth_module *module, berth_func_id function,
                          berth_op_id id, uint32_t device, berth_cost_figure *out_figure) {
    berth_arena *scratch = berth_arena_create_child(model->arena);
    const berth_target *on = model->target->devices[device].target;
    berth_work work = work_of(model, module, function, id, scratch);
    double ns =
        berth_cost_device_known_ns(berth_cost_table_device(table_of(model), on), &work, out_figure);
    berth_arena_destroy(scratch);
    return ns;
}

static double single_ns(cost_model *model, const berth_module *module, berth_func_id function,
                        berth_op_id id, uint32_t device, berth_cost_figure *out_figure) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    berth_func_id external = berth_external_called(module, op);
    double flops = 0, bytes = 0, given_ns = -1;
    *out_figure = BERTH_COST_ANALYTIC;
    if (external != BERTH_NONE) berth_external_cost(module, external, &flops, &bytes, &given_ns);
    if (given_ns < 0) given_ns = time_of_rules(model, module, function, id, device);
    if (given_ns > 0 && external == BERTH_NONE && table_of(model)) {
        double known_ns = known_ns_of(model, module, function, id, device, out_figure);
        if (known_ns >= 0) return known_ns;
    }
    if (given_ns >= 0) return given_ns;
    *out_figure = BERTH_COST_NONE;
    if (op->output_count == 0) return 0;
    berth_arena *scratch = berth_arena_create_child(model->arena);
    berth_work work = work_of(model, module, function, id, scratch);
    double ns = berth_cost_work_ns(
        model->target, table_of(model), device, &work,
        (berth_cost_constants){.bytes = constant_bytes(module, graph, op)}, out_figure);
    berth_arena_destroy(scratch);
    return ns;
}

static void find_times(const cost_model *model, const berth_module *module, berth_func_id main,
                       uint32_t device, device_times *out) {
    berth_arena *scratch = berth_arena_create_child(model->arena);
    berth_kernel_groups groups;
    berth_compile_options options = *model->options;
    options.target = model->target;
    out->tried = true;
    out->count = berth_graph_get(module, main)->ops.count;
    uint32_t *devices = berth_arena_new_array(scratch, uint32_t, out->count + 1);
    for (uint32_t i = 0; i < out->count; ++i) devices[i] = device;
    out->found = berth_kernel_groups_find(module, main, devices, &options, scratch, &groups);
    if (out->found) {
        out->ns = berth_arena_new_array(model->arena, double, out->count + 1);
        out->memory_ns = berth_arena_new_array(model->arena, double, out->count + 1);
        out->figure = berth_arena_new_array(model->arena, berth_cost_figure, out->count + 1);
    }
    berth_cost_constants constants = {0};
    for (uint32_t i = 0; out->found && i < groups.count; ++i)
        constants.run_bytes += groups.data[i].constant_bytes;
    for (uint32_t i = 0; out->found && i < groups.count; ++i) {
        const berth_kernel_group *group = &groups.data[i];
        constants.bytes = group->constant_bytes;
        berth_cost_figure figure, *held = &out->figure[group->op];
        out->ns[group->op] += berth_cost_work_ns(model->target, table_of(model), device,
                                                 &group->work, constants, &figure);
        out->memory_ns[group->op] +=
            berth_cost_memory_ns(model->target, device, &group->work, constants);
        if (figure && (!*held || figure < *held)) *held = figure;  // the least sure
    }
    if (out->found)
        berth_libraries_times(module, main, device, devices, &options, scratch, out->ns,
                              out->figure);
    berth_arena_destroy(scratch);
}

// The times of all of @main on a device; NULL: there are none, or it is another function.
static const device_times *times_of(cost_model *model, const berth_module *module,
                                    berth_func_id function, uint32_t device) {
    const berth_graph *graph = berth_graph_get(module, function);
    if (!model->options || berth_module_find_function(module, "main") != function ||
        berth_rules_find(model->target->devices[device].target->kind))
        return NULL;
    if (model->timed != graph) {
        model->timed = graph;
        model->times =
            berth_arena_new_array(model->arena, device_times, model->target->device_count);
    }
    device_times *times = &model->times[device];
    if (!times->tried) find_times(model, module, function, device, times);
    return times->found ? times : NULL;
}

static double time_ns(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id id, uint32_t device) {
    const device_times *times = times_of(user, module, function, device);
    berth_cost_figure figure;
    if (times) return id < times->count ? times->ns[id] : 0;
    return single_ns(user, module, function, id, device, &figure);
}

static double memory_ns(void *user, const berth_module *module, berth_func_id function,
                        berth_op_id id, uint32_t device) {
    cost_model *model = user;
    const device_times *times = times_of(user, module, function, device);
    if (times) return id < times->count ? times->memory_ns[id] : 0;
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    if (op->output_count == 0 || berth_external_called(module, op) != BERTH_NONE) return 0;
    berth_arena *scratch = berth_arena_create_child(model->arena);
    berth_work work = work_of(model, module, function, id, scratch);
    berth_cost_constants constants = {.bytes = constant_bytes(module, graph, op)};
    double ns = berth_cost_memory_ns(model->target, device, &work, constants);
    berth_arena_destroy(scratch);
    return ns;
}

static berth_cost_figure figure_of(void *user, const berth_module *module, berth_func_id function,
                                   berth_op_id id, uint32_t device) {
    const device_times *times = times_of(user, module, function, device);
    berth_cost_figure figure;
    if (times) return id < times->count ? times->figure[id] : BERTH_COST_NONE;
    (void)single_ns(user, module, function, id, device, &figure);
    return figure;
}

typedef BERTH_VEC(berth_plan_kernel) plan_kernels;

// A device that says itself how long its operations take, by their tiles: none of them is a group.
static bool has_times_of_rules(const cost_model *model, uint32_t device) {
    const berth_kind_rules *rules = rules_of(model, device);
    return rules && rules->time_ns;
}

static void add_operations_by_rules(cost_model *model, const berth_module *module,
                                    berth_func_id main, const uint32_t *devices, berth_arena *arena,
                                    plan_kernels *kernels) {
    const berth_region *root = &berth_graph_get(module, main)->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id op = root->ops.data[i];
        if (!has_times_of_rules(model, devices[op])) continue;
        berth_plan_kernel kernel = {.op = op, .last = op};
        kernel.time_ns = single_ns(model, module, main, op, devices[op], &kernel.figure);
        kernel.memory_ns = memory_ns(model, module, main, op, devices[op]);
        berth_vec_push(arena, kernels, kernel);
    }
}

static void add_groups(const cost_model *model, const berth_kernel_groups *groups,
                       berth_arena *arena, plan_kernels *kernels) {
    double *run_bytes = berth_arena_new_array(arena, double, model->target->device_count);
    for (uint32_t i = 0; i < groups->count; ++i)
        run_bytes[groups->data[i].device] += groups->data[i].constant_bytes;
    for (uint32_t i = 0; i < groups->count; ++i) {
        const berth_kernel_group *group = &groups->data[i];
        berth_cost_constants constants = {group->constant_bytes, run_bytes[group->device]};
        if (has_times_of_rules(model, group->device)) continue;
        berth_plan_kernel kernel = {.op = group->op, .last = group->last};
        kernel.time_ns = berth_cost_work_ns(model->target, table_of(model), group->device,
                                            &group->work, constants, &kernel.figure);
        kernel.memory_ns =
            berth_cost_memory_ns(model->target, group->device, &group->work, constants);
        berth_vec_push(arena, kernels, kernel);
    }
}

// A library's time takes the place of the kernels that it computes in place of.
static void take_libraries(const cost_model *model, const berth_module *module, berth_func_id main,
                           const uint32_t *devices, const berth_compile_options *options,
                           berth_arena *arena, plan_kernels *kernels) {
    uint32_t count = berth_graph_get(module, main)->ops.count;
    double *ns = berth_arena_new_array(arena, double, count + 1);
    berth_cost_figure *figures = berth_arena_new_array(arena, berth_cost_figure, count + 1);
    for (uint32_t i = 0; i < count; ++i) ns[i] = -1;
    for (uint32_t d = 0; d < model->target->device_count; ++d)
        berth_libraries_times(module, main, d, devices, options, arena, ns, figures);
    for (uint32_t i = 0; i < kernels->count; ++i) {
        berth_plan_kernel *kernel = &kernels->data[i];
        if (ns[kernel->op] < 0) continue;
        kernel->time_ns = ns[kernel->op];
        kernel->figure = figures[kernel->op];
        ns[kernel->op] = 0;  // the first of them takes it all
    }
}

static bool find_kernels(void *user, const berth_module *module, berth_func_id main,
                         const uint32_t *devices, berth_arena *arena,
                         const berth_plan_kernel **out_kernels, uint32_t *out_count) {
    cost_model *model = user;
    if (!model->options) return false;
    berth_kernel_groups groups;
    berth_compile_options options = *model->options;
    options.target = model->target;
    if (!berth_kernel_groups_find(module, main, devices, &options, arena, &groups)) return false;
    plan_kernels kernels = {0};
    add_operations_by_rules(model, module, main, devices, arena, &kernels);
    add_groups(model, &groups, arena, &kernels);
    take_libraries(model, module, main, devices, &options, arena, &kernels);
    *out_kernels = kernels.data;
    *out_count = kernels.count;
    return true;
}

// Until a device that works in another's memory has noticed that its turn has come: a thread or a
// driver that sleeps is woken.
static const double usual_hand_over_ns = 25000;

double berth_cost_hand_over_ns(const berth_multi_target *target, struct berth_cost_table *table,
                               uint32_t from, uint32_t to, uint64_t size_bytes) {
    const berth_target *maker = target->devices[from].target, *reader = target->devices[to].target;
    double ns = usual_hand_over_ns;
    if (table) (void)berth_cost_table_copy(table, maker, reader, 0, &ns);
    double bandwidth = target->memories[target->devices[to].own_memory].bandwidth_bytes_per_s;
    double cached = fmin((double)size_bytes, (double)maker->l2_bytes);
    if (berth_device_kind_is_host(maker->kind) && berth_device_kind_is_host(reader->kind) &&
        bandwidth > 0)
        ns += 1e9 * cached / bandwidth;
    return ns;
}

static bool is_driver_on_cores(const berth_target *target) {
    return berth_target_is_cores(target) && !berth_device_kind_is_host(target->kind);
}

double berth_cost_between_kernels_ns(const berth_multi_target *target, uint32_t from, uint32_t to) {
    const berth_target *a = target->devices[from].target, *b = target->devices[to].target;
    bool woken = (berth_device_kind_is_host(a->kind) && is_driver_on_cores(b)) ||
                 (berth_device_kind_is_host(b->kind) && is_driver_on_cores(a));
    return woken ? usual_hand_over_ns : 0;
}

static double between_kernels_ns(void *user, uint32_t from, uint32_t to) {
    return berth_cost_between_kernels_ns(((const cost_model *)user)->target, from, to);
}

static bool copy_ns(void *user, uint32_t from, uint32_t to, uint64_t size_bytes, double *out_ns) {
    const cost_model *model = user;
    const berth_target_device *devices = model->target->devices;
    if (from == to) return false;
    if (berth_multi_target_share_memory(model->target, from, to, NULL)) {
        *out_ns = berth_cost_hand_over_ns(model->target, table_of(model), from, to, size_bytes);
        return true;
    }
    return table_of(model) && berth_cost_table_copy(table_of(model), devices[from].target,
                                                    devices[to].target, (double)size_bytes, out_ns);
}

// ---- support ------------------------------------------------------------------------------------

// Of operands that kernels read, and of results, a bit each.
static uint32_t dtypes_of(const berth_module *module, const berth_graph *graph,
                          const berth_op *op) {
    uint32_t types = 0, host = berth_op_facts_get(op->kind)->host_operands;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (i >= 32 || !(host >> i & 1u)) types |= 1u << dtype_of(module, graph, op->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; ++i)
        types |= 1u << dtype_of(module, graph, op->outputs[i]);
    return types;
}

// What the operation has elements of and kernels of the device cannot use; NULL: nothing.
static const char *lacking_type(const berth_target *target, const berth_module *module,
                                const berth_graph *graph, const berth_op *op) {
    enum {
        INTEGERS_64 = 1u << BERTH_DTYPE_I64 | 1u << BERTH_DTYPE_U64,
        BYTES = 1u << BERTH_DTYPE_I8 | 1u << BERTH_DTYPE_U8 | 1u << BERTH_DTYPE_BOOL,
        HALVES = 1u << BERTH_DTYPE_I16 | 1u << BERTH_DTYPE_U16 | 1u << BERTH_DTYPE_F16 |
                 1u << BERTH_DTYPE_BF16,
    };
    const struct {
        bool lacks;
        uint32_t types;
        const char *why;
    } rows[] = {{target->lacks_f64, 1u << BERTH_DTYPE_F64, "the device has no 64-bit floats"},
                {target->lacks_i64, INTEGERS_64, "the device has no 64-bit integers"},
                {target->lacks_8bit, BYTES, "the device has no elements of 8 bits"},
                {target->lacks_16bit, HALVES, "the device has no elements of 16 bits"}};
    uint32_t types = dtypes_of(module, graph, op);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
        if (rows[i].lacks && types & rows[i].types) return rows[i].why;
    return NULL;
}

static const char *lowering_refusal(cost_model *model, const berth_module *module,
                                    berth_func_id function, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(module, function);
    berth_alike_facts *facts = berth_alike_find(&model->alike, module, graph, id);
    if (facts && facts->lowers) return NULL;
    if (model->graph != graph || model->op != id)
        model->answer = berth_lower_check(module, function, id, model->arena);
    model->graph = graph;
    model->op = id;
    if (facts) facts->lowers = !model->answer;
    return model->answer;
}

static const char *unsupported(void *user, const berth_module *module, berth_func_id function,
                               berth_op_id id, uint32_t device, berth_arena *arena) {
    cost_model *model = user;
    const berth_multi_target *target = model->target;
    if (target->devices[device].host_only) return "it only drives other devices";
    const char *kind = berth_device_kind_name(target->devices[device].target->kind);
    bool planned = model->options && model->options->plan_only &&
                   berth_rules_only_described(target->devices[device].target->kind);
    if (!berth_codegen_find(kind) && !planned)
        return berth_arena_printf(arena, "no code generator for devices of kind %s", kind);
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    berth_func_id external = berth_external_called(module, op);
    if (external != BERTH_NONE)
        return berth_external_refusal(module, external, target->devices[device].target->kind,
                                      arena);
    const berth_attr *callee =
        op->kind == BERTH_OP_CALL ? berth_attrs_find(module, &op->attrs, "callee") : NULL;
    if (callee && callee->kind == BERTH_ATTR_FUNCTION && berth_tfn_get(module, callee->function))
        return berth_external_call_refusal(module, callee->function,
                                           target->devices[device].target->kind, arena);
    if (berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE)) return NULL;
    const berth_kind_rules *rules = rules_of(model, device);
    const berth_rules_question question = question_of(model, module, function, id, device);
    if (rules && rules->unsupported) return rules->unsupported(&question);
    // Views, too: another layout on one side of it is a kernel.
    const char *lacking = lacking_type(target->devices[device].target, module, graph, op);
    if (lacking) return lacking;
    if (berth_op_has(op->kind, BERTH_TRAIT_VIEW)) return NULL;
    uint32_t most = berth_target_max_bindings(target->devices[device].target);
    if (!berth_bindings_suffice(module, graph, &id, 1, most))
        return berth_arena_printf(arena,
                                  "it binds %u buffers, and kernels of the device take %u "
                                  "(max_bindings)",
                                  berth_bindings_of(module, graph, id, arena), most);
    return lowering_refusal(model, module, function, id);
}

static bool only_after(void *user, const berth_module *module, berth_func_id function,
                       berth_op_id id, uint32_t device, berth_op_id previous) {
    const berth_kind_rules *rules = rules_of(user, device);
    const berth_rules_question question = question_of(user, module, function, id, device);
    return rules && rules->only_after && rules->only_after(&question, previous);
}

static uint32_t buffers(void *user, const berth_module *module, berth_func_id function,
                        berth_op_id id, uint32_t device, berth_arena *arena,
                        berth_plan_buffer **out_buffers) {
    const cost_model *model = user;
    const berth_kind_rules *rules = rules_of(user, device);
    const berth_rules_question question = question_of(user, module, function, id, device);
    berth_rules_buffer used[BERTH_RULES_MAX_BUFFERS];
    uint32_t count = 0, found = rules && rules->buffers ? rules->buffers(&question, used) : 0;
    *out_buffers = berth_arena_new_array(arena, berth_plan_buffer, found + 1);
    for (uint32_t i = 0; i < found; ++i) {
        uint32_t memory = berth_multi_target_memory_of(model->target, device, used[i].scope);
        if (memory != BERTH_NO_INDEX)
            (*out_buffers)[count++] = (berth_plan_buffer){memory, used[i].used_bytes};
    }
    return count;
}

berth_cost_model berth_cost_model_create(berth_arena *arena, const berth_multi_target *target,
                                         const berth_compile_options *options) {
    cost_model *model = berth_arena_new(arena, cost_model);
    model->target = target;
    model->options = options;
    model->arena = arena;
    model->alike.arena = arena;
    return (berth_cost_model){.unsupported = unsupported,
                              .time_ns = time_ns,
                              .user = model,
                              .memory_ns = memory_ns,
                              .figure = figure_of,
                              .kernels = find_kernels,
                              .copy_ns = copy_ns,
                              .between_kernels_ns = between_kernels_ns,
                              .only_after = only_after,
                              .buffers = buffers};
}
