// Records of a plan: what it is worth, devices, operations, copies, kernels (<berth/plan.h>).
#include "api/compile/plan.h"
#include "compiler/tuning/kernel_choice.h"
#include "toolkit/plan_picture.h"

static void make_facts(berth_plan_info *info) {
    const berth_plan *plan = berth_model_plan(info->model);
    const berth_multi_target *target = berth_model_target(info->model);
    info->facts = (berth_plan_facts){
        .model = berth_model_program(info->model)->name,
        .target = target->canonical,
        .target_name = target->name,
        .devices = berth_target_print_short(info->arena, target),
        .strategy = plan->strategy,
        .found_by = plan->found_by,
        .default_device = target->devices[target->default_device].name,
        .predicted_ns = plan->predicted_ns,
        .objective = plan->objective,
        .is_valued = plan->valued,
        .unit = plan->unit,
        .value = plan->value,
        .lower_bound = plan->lower_bound,
        .gap = plan->gap,
        .is_proven = plan->proven,
        .value_text = plan->valued ? berth_plan_value_text(info->arena, plan) : "",
        .is_reproducible = plan->reproducible,
        .search_nodes = plan->search_nodes,
        .notes = plan->notes,
        .note_count = plan->note_count};
}

static const char *device_name(const berth_plan_info *info, uint32_t device) {
    return berth_model_target(info->model)->devices[device].name;
}

static void add_rejections(const berth_plan_info *info, const berth_plan_entry *entry,
                           berth_planned_operation *out) {
    berth_planned_rejection *list =
        berth_arena_new_array(info->arena, berth_planned_rejection, entry->rejected_count + 1);
    for (uint32_t i = 0; i < entry->rejected_count; ++i) {
        const berth_plan_rejected *r = &entry->rejected[i];
        list[i] = (berth_planned_rejection){device_name(info, r->device), r->reason, r->delta};
    }
    out->rejections = list;
    out->rejection_count = entry->rejected_count;
}

static void add_libraries(const berth_plan_info *info, const berth_plan_entry *entry,
                          berth_planned_operation *out) {
    berth_planned_library *list =
        berth_arena_new_array(info->arena, berth_planned_library, entry->library_count + 1);
    for (uint32_t i = 0; i < entry->library_count; ++i) {
        const berth_plan_library *l = &entry->libraries[i];
        list[i] = (berth_planned_library){.name = l->name,
                                          .computes = l->computes,
                                          .is_chosen = l->chosen,
                                          .reason = l->reason,
                                          .time_ns = l->time_ns,
                                          .own_ns = l->own_ns,
                                          .extra_ns = l->extra_ns};
    }
    out->libraries = list;
    out->library_count = entry->library_count;
}

static void add_buffers(const berth_plan_info *info, const berth_plan_entry *entry,
                        berth_planned_operation *out) {
    berth_planned_buffer *list =
        berth_arena_new_array(info->arena, berth_planned_buffer, entry->buffer_count + 1);
    for (uint32_t i = 0; i < entry->buffer_count; ++i) {
        const berth_target_memory *memory =
            &berth_model_target(info->model)->memories[entry->buffers[i].memory];
        list[i] = (berth_planned_buffer){memory->name, memory->scope, entry->buffers[i].used_bytes,
                                         memory->capacity_bytes};
    }
    out->buffers = list;
    out->buffer_count = entry->buffer_count;
}

static const char *operation_name(const berth_plan_info *info, const berth_program_placement *p,
                                  berth_loc_id loc) {
    const berth_module *module = berth_model_module(info->model);
    // Of text, with its file: what a pin takes says less.
    if (loc && !*berth_loc_names(module, loc, false, info->arena))
        return berth_loc_describe(module, loc, info->arena);
    return *p->node ? berth_arena_printf(info->arena, "%s (%s)", p->node, p->op) : "an operation";
}

static void make_operations(berth_plan_info *info) {
    const berth_program *program = berth_model_program(info->model);
    const berth_multi_target *target = berth_model_target(info->model);
    info->operation_count = program->placement_count;
    info->operations =
        berth_arena_new_array(info->arena, berth_planned_operation, info->operation_count + 1);
    for (uint32_t i = 0; i < info->operation_count; ++i) {
        const berth_program_placement *p = &program->placements[i];
        const berth_plan_entry *entry = &berth_model_plan(info->model)->entries[i];
        berth_planned_operation *out = &info->operations[i];
        *out = (berth_planned_operation){
            .node = p->node,
            .op = p->op,
            .name = operation_name(info, p, entry->loc),
            .device = device_name(info, entry->device),
            .memory = target->memories[target->devices[entry->device].own_memory].name,
            .reason = p->reason,
            .chain = entry->chain,
            .chain_count = entry->chain_count,
            .start_ns = entry->start_ns,
            .time_ns = entry->time_ns,
            .cost = berth_cost_figure_name(entry->figure),
            .has_time = entry->figure != BERTH_COST_NONE,
            .is_on_host = p->host_operation};
        add_rejections(info, entry, out);
        add_libraries(info, entry, out);
        add_buffers(info, entry, out);
    }
}

static void make_copies(berth_plan_info *info) {
    const berth_plan *plan = berth_model_plan(info->model);
    info->copy_count = plan->copy_count;
    info->copies = berth_arena_new_array(info->arena, berth_planned_copy, plan->copy_count + 1);
    for (uint32_t i = 0; i < plan->copy_count; ++i) {
        const berth_plan_copy *copy = &plan->copies[i];
        info->copies[i] = (berth_planned_copy){.from = device_name(info, copy->from),
                                               .to = device_name(info, copy->to),
                                               .value = copy->value,
                                               .reason = copy->reason,
                                               .size_bytes = copy->size_bytes,
                                               .time_ns = copy->time_ns,
                                               .bandwidth_bytes_per_s = copy->bandwidth_bytes_per_s,
                                               .bus = copy->bus ? copy->bus : ""};
    }
    info->transfer_count = plan->transfer_count;
    info->transfers =
        berth_arena_new_array(info->arena, berth_planned_transfer, plan->transfer_count + 1);
    for (uint32_t i = 0; i < plan->transfer_count; ++i) {
        const berth_plan_transfer *t = &plan->transfers[i];
        info->transfers[i] = (berth_planned_transfer){t->value, device_name(info, t->device),
                                                      t->to_host, t->start_ns, t->time_ns};
    }
}

void berth_api__plan_operations(berth_plan_info *info) {
    const berth_multi_target *target = berth_model_target(info->model);
    make_facts(info);
    info->device_count = target->device_count;
    info->devices =
        berth_arena_new_array(info->arena, berth_planned_device, target->device_count + 1);
    for (uint32_t d = 0; d < target->device_count; ++d)
        info->devices[d] =
            (berth_planned_device){target->devices[d].name, target->devices[d].host_only};
    make_operations(info);
    make_copies(info);
}

// ---- kernels ------------------------------------------------------------------------------------

static const char *chooser_name(berth_kernel_chooser by) {
    switch (by) {
    case BERTH_CHOSEN_BY_MODULE: return "module";
    case BERTH_CHOSEN_BY_TUNING: return "tuned";
    case BERTH_CHOSEN_BY_POLICY: break;
    }
    return "policy";
}

static berth_planned_nest nest_of(berth_arena *arena, const berth_nest_decisions *nest) {
    uint32_t count = nest->alternatives.count;
    berth_planned_alternative *list =
        berth_arena_new_array(arena, berth_planned_alternative, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_alternative *a = &nest->alternatives.data[i];
        list[i] = (berth_planned_alternative){a->what, a->why, a->cost};
    }
    return (berth_planned_nest){berth_decisions_print(arena, nest, false), list, count};
}

void berth_api__plan_kernels(berth_plan_info *info) {
    berth_arena *arena = info->arena;
    const berth_kernel_choice *choices = berth_model_choices(info->model, &info->kernel_count);
    info->kernels = berth_arena_new_array(arena, berth_planned_kernel, info->kernel_count + 1);
    for (uint32_t i = 0; i < info->kernel_count; ++i) {
        const berth_schedule_decisions *decisions = choices[i].decisions;
        char hash[33];
        berth_hash128_hex(choices[i].function, hash);
        berth_planned_nest *nests =
            berth_arena_new_array(arena, berth_planned_nest, decisions->nest_count + 1);
        for (uint32_t n = 0; n < decisions->nest_count; ++n)
            nests[n] = nest_of(arena, &decisions->nests[n]);
        info->kernels[i] = (berth_planned_kernel){.name = choices[i].name,
                                                  .function = berth_arena_strdup(arena, hash),
                                                  .chosen_by = chooser_name(choices[i].by),
                                                  .nests = nests,
                                                  .nest_count = decisions->nest_count};
    }
}
