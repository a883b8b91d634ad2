#include "compiler/libraries/choose.h"

#include <string.h>

#include "base/str.h"
#include "compiler/cost/table.h"
#include "compiler/passes/attention.h"

// How much faster a library has to be: below that, times differ by chance.
static const double worth_it = 0.97;

typedef struct chooser {
    const berth_module *module;
    berth_arena *arena;  // of what is made
    berth_func_id main;
    const berth_compile_options *options;
    const berth_op_id *users;
    uint32_t user_count;
    const bool *
        in_attention;  // per operation: a product that our kernels compute with the softmax between
    berth_plan *plan;
    uint32_t measured, unmeasured, taken;
} chooser;

static const berth_graph *graph_of(const chooser *c) {
    return berth_graph_get(c->module, c->main);
}

static bool is_always(const berth_target *target) {
    return strcmp(target->libs_policy, "always") == 0;
}

void berth_libraries_forget(berth_module *module, berth_func_id main) {
    berth_graph *graph = berth_graph_get(module, main);
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        berth_attrs_remove(module, &graph->ops.data[i].attrs, BERTH_ATTR_LIBRARY);
}

// Both products of each attention that is one kernel on its device. What such a product takes alone says nothing of it.
static const bool *find_attentions(const chooser *c, berth_arena *arena) {
    const berth_graph *graph = graph_of(c);
    const berth_region *root = &graph->regions.data[0];
    bool *found = berth_arena_new_array(arena, bool, graph->ops.count + 1);
    const uint32_t *uses = berth_graph_count_uses(graph, arena);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_attention attention;
        berth_op_id op = root->ops.data[i];
        if (!berth_attention_find(c->module, graph, uses, op, &attention) ||
            !berth_attention_pays(c->module, graph, c->options->target, &attention))
            continue;
        found[attention.scores] = found[op] = true;
    }
    return found;
}

// ---- the target ---------------------------------------------------------------------------------

// A word that stands for nothing is no choice of the user's: a slip of the pen.
static berth_status check_device(chooser *c, const berth_target_device *device) {
    const berth_target *target = device->target;
    const char *policy = target->libs_policy;
    if (*policy && strcmp(policy, "measured") != 0 && !is_always(target))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "libs_policy of device \"%s\" is \"%s\": it is measured or always",
                                 device->name, policy);
    for (uint32_t i = 0; i < target->libs.count; ++i) {
        const char *name = target->libs.data[i];
        berth_library_id id;
        berth_arena *arena = c->arena;
        if (berth_library_from_name(name, target->kind, &id)) continue;
        if (berth_library_any_for(target->kind))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "libs of device \"%s\" names \"%s\"; libraries for %s are: %s",
                                     device->name, name, berth_device_kind_name(target->kind),
                                     berth_library_names(target->kind, arena));
        berth_plan_add_note(c->plan, arena,
                            berth_arena_printf(arena,
                                               "library \"%s\" of device \"%s\" is none that such "
                                               "devices have: our kernels compute",
                                               name, device->name));
    }
    return BERTH_OK;
}

// ---- one operation ------------------------------------------------------------------------------

static double known_ns(const chooser *c, const berth_target *target, const char *who,
                       const char *key) {
    berth_cost_figure figure;
    if (!c->options->costs) return -1;
    berth_work work = {.key = berth_arena_printf(c->arena, "%s: %s", who, key)};
    return berth_cost_device_known_ns(berth_cost_table_device(c->options->costs, target), &work,
                                      &figure);
}

// Bytes of an operand that our kernel would compute on the way from what an operation before it reads:
// moved (a transpose) or element by element, and by nobody else wanted.
static double operand_bytes(const chooser *c, berth_value_id value) {
    const berth_graph *graph = graph_of(c);
    berth_op_id producer = graph->values.data[value].op;
    if (producer == BERTH_NONE || value >= c->user_count ||
        c->users[value] == BERTH_LIBRARY_MANY_USERS)
        return 0;
    berth_op_kind kind = graph->ops.data[producer].kind;
    bool fused = berth_op_has(kind, BERTH_TRAIT_ELEMENTWISE | BERTH_TRAIT_INJECTIVE) &&
                 !berth_op_has(kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE);
    return fused ? (double)berth_type_size_bytes(c->module, graph->values.data[value].type) : 0;
}

// What our kernel would be fused with becomes passes of its own: elementwise work on the result, and
// what makes a product's operands. Each writes its bytes, which are then read again.
static double extra_ns(const chooser *c, const berth_library_use *use, uint32_t device) {
    const berth_multi_target *target = c->options->target;
    const berth_graph *graph = graph_of(c);
    double launch_ns = (double)target->devices[device].target->dispatch_ns, ns = 0;
    double bandwidth = target->memories[target->devices[device].own_memory].bandwidth_bytes_per_s;
    double bytes[3] = {0};
    berth_value_id value = graph->ops.data[use->last].outputs[0];
    berth_op_id user = value < c->user_count ? c->users[value] : BERTH_NONE;
    bool many = user == BERTH_NONE || user == BERTH_LIBRARY_MANY_USERS;
    if (!many && berth_op_has(graph->ops.data[user].kind, BERTH_TRAIT_ELEMENTWISE))
        bytes[0] = use->result_bytes;
    for (int i = 0; i < 2 && use->kind == BERTH_OP_MATMUL; ++i)
        bytes[1 + i] = operand_bytes(c, use->operands[i]);
    for (int i = 0; i < 3; ++i)
        if (bytes[i] > 0 && bandwidth > 0) ns += 2 * bytes[i] / bandwidth * 1e9 + launch_ns;
    return ns;
}

static void describe(const chooser *c, uint32_t device, const berth_library_use *use,
                     berth_plan_library *out) {
    const berth_target *target = c->options->target->devices[device].target;
    berth_arena *arena = c->arena;
    const char *key = berth_library_key(use, arena);
    *out = (berth_plan_library){.name = berth_library_facts_get(use->library)->name,
                                .computes = key,
                                .own_ns = known_ns(c, target, "berth", key),
                                .extra_ns = extra_ns(c, use, device)};
    out->time_ns = known_ns(c, target, out->name, key);
    if (out->time_ns >= 0 && out->own_ns >= 0)
        out->reason = berth_arena_printf(
            arena,
            "measured: %.1f us, and %.1f us for passes that it does not take with it; our "
            "kernels %.1f us",
            out->time_ns / 1e3, out->extra_ns / 1e3, out->own_ns / 1e3);
    else
        out->reason = "not measured: a calibration of this model for this target does it";
}

static bool leaves(const chooser *c, const berth_target *target, berth_op_id op) {
    return c->in_attention[op] && !is_always(target);
}

// The library with the least time, if that is below ours; with the policy always, the first of libs.
static berth_plan_library *pick(const berth_target *target, berth_plan_library *all,
                                uint32_t count) {
    berth_plan_library *best = NULL;
    for (uint32_t i = 0; i < count; ++i) {
        berth_plan_library *l = &all[i];
        double ns = l->time_ns + l->extra_ns;
        if (is_always(target)) return l;
        if (l->time_ns < 0 || l->own_ns < 0 || ns >= worth_it * l->own_ns) continue;
        if (!best || ns < best->time_ns + best->extra_ns) best = l;
    }
    return best;
}

static void count(chooser *c, const berth_plan_library *all, uint32_t total) {
    bool known = true;
    for (uint32_t i = 0; i < total; ++i) known &= all[i].time_ns >= 0 && all[i].own_ns >= 0;
    if (known)
        c->measured++;
    else
        c->unmeasured++;
}

// Libraries of the device that have the operation, in `all`, which has room for each of its libs; how
// many. The one that computes is chosen.
static uint32_t compare(const chooser *c, uint32_t device, berth_op_id op,
                        berth_plan_library *all) {
    const berth_target *target = c->options->target->devices[device].target;
    uint32_t total = 0;
    for (uint32_t i = 0; i < target->libs.count; ++i) {
        berth_library_id id;
        berth_library_use use;
        if (berth_library_from_name(target->libs.data[i], target->kind, &id) &&
            berth_library_find(c->module, c->main, c->users, c->user_count, op, id, target, &use))
            describe(c, device, &use, &all[total++]);
    }
    for (uint32_t i = 0; i < total && leaves(c, target, op); ++i)
        all[i].reason = "our kernel computes the attention as a whole";
    berth_plan_library *chosen = leaves(c, target, op) ? NULL : pick(target, all, total);
    if (chosen) chosen->chosen = true;
    return total;
}

static berth_plan_library *room_for(const chooser *c, uint32_t device) {
    uint32_t most = c->options->target->devices[device].target->libs.count;
    return berth_arena_new_array(c->arena, berth_plan_library, most + 1);
}

static berth_plan_library *chosen_of(berth_plan_library *all, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (all[i].chosen) return &all[i];
    return NULL;
}

static void choose_for(chooser *c, berth_module *module, berth_plan_entry *entry) {
    berth_plan_library *all = room_for(c, entry->device);
    uint32_t total = compare(c, entry->device, entry->op, all);
    if (total == 0) return;
    entry->libraries = all;
    entry->library_count = total;
    count(c, all, total);
    berth_plan_library *chosen = chosen_of(all, total);
    if (!chosen) return;
    c->taken++;
    if (is_always(c->options->target->devices[entry->device].target))
        chosen->reason = berth_arena_printf(c->arena, "libs_policy=always; %s", chosen->reason);
    if (chosen->time_ns >= 0) entry->figure = BERTH_COST_MEASURED;
    berth_op *op = &berth_graph_get(module, c->main)->ops.data[entry->op];
    berth_attrs_set_string(module, &op->attrs, BERTH_ATTR_LIBRARY, chosen->name);
}

static const char *why_never(const berth_compile_options *options) {
    if (options->target->executor == BERTH_EXECUTOR_AOT)
        return "libraries are not called by the sources that the executor aot makes: our kernels "
               "compute";
    if (options->no_layouts) return "without layouts no library is called: our kernels compute";
    return NULL;
}

static bool any_libs(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].target->libs.count || *target->devices[d].target->libs_policy)
            return true;
    return false;
}

berth_status berth_libraries_choose(berth_module *module, berth_func_id main,
                                    const berth_compile_options *options, berth_plan *plan) {
    const berth_multi_target *target = options->target;
    berth_arena *arena = module->arena;
    chooser c = {.module = module, .arena = arena, .main = main, .options = options, .plan = plan};
    if (!any_libs(target)) return BERTH_OK;
    for (uint32_t d = 0; d < target->device_count; ++d)
        BERTH_TRY(check_device(&c, &target->devices[d]));
    const char *never = why_never(options);
    if (never) berth_plan_add_note(plan, arena, never);
    if (never) return BERTH_OK;
    c.users = berth_library_users(graph_of(&c), arena);
    c.user_count = graph_of(&c)->values.count;
    c.in_attention = find_attentions(&c, arena);
    for (uint32_t i = 0; i < plan->entry_count; ++i)
        if (berth_library_any_for(target->devices[plan->entries[i].device].target->kind))
            choose_for(&c, module, &plan->entries[i]);
    if (c.measured + c.unmeasured == 0) return BERTH_OK;
    berth_plan_add_note(
        plan, arena,
        berth_arena_printf(arena,
                           "libraries compute %u of the %u operations that they have; %u of these "
                           "were not measured%s",
                           c.taken, c.measured + c.unmeasured, c.unmeasured,
                           c.unmeasured ? " (a calibration of this model for this target does it)"
                                        : ""));
    return BERTH_OK;
}

// ---- what placement goes by ----------------------------------------------------------------------

// As berth_library_users, where each operation is on a device: who is elsewhere takes a copy, and so no
// part in a call.
static const berth_op_id *users_on(const berth_graph *graph, const uint32_t *devices,
                                   berth_arena *arena) {
    const berth_op_id *users = berth_library_users(graph, arena);
    berth_op_id *here = berth_arena_copy(arena, users, graph->values.count * sizeof(*users));
    for (uint32_t v = 0; v < graph->values.count; ++v) {
        berth_op_id maker = graph->values.data[v].op;
        bool used = users[v] != BERTH_NONE && users[v] != BERTH_LIBRARY_MANY_USERS;
        if (used && maker != BERTH_NONE && devices[maker] != devices[users[v]])
            here[v] = BERTH_LIBRARY_MANY_USERS;
    }
    return here;
}

void berth_libraries_times(const berth_module *module, berth_func_id main, uint32_t device,
                           const uint32_t *devices, const berth_compile_options *options,
                           berth_arena *scratch, double *ns, berth_cost_figure *figures) {
    const berth_target *target = options->target->devices[device].target;
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    if (!target->libs.count || !berth_library_any_for(target->kind) || why_never(options)) return;
    chooser c = {.module = module,
                 .arena = scratch,
                 .main = main,
                 .options = options,
                 .users = users_on(graph, devices, scratch),
                 .user_count = graph->values.count};
    c.in_attention = find_attentions(&c, scratch);
    berth_plan_library *all = room_for(&c, device);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id op = root->ops.data[i];
        if (devices[op] != device) continue;
        const berth_plan_library *chosen = chosen_of(all, compare(&c, device, op, all));
        if (!chosen || chosen->time_ns < 0) continue;
        ns[op] = chosen->time_ns + chosen->extra_ns;
        figures[op] = BERTH_COST_MEASURED;
    }
}

// ---- what was chosen -----------------------------------------------------------------------------

void berth_libraries_taken(const berth_module *module, berth_func_id function,
                           const berth_multi_target *target, berth_arena *arena,
                           const char **names) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_region *root = &graph->regions.data[0];
    const berth_op_id *users = NULL;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id op = root->ops.data[i];
        const char *name =
            berth_attrs_string(module, &graph->ops.data[op].attrs, BERTH_ATTR_LIBRARY, "");
        uint32_t device = berth_plan_device_of(module, target, graph->ops.data[op].device);
        berth_library_id library;
        berth_library_use use;
        if (!*name || device == BERTH_NO_INDEX ||
            !berth_library_from_name(name, target->devices[device].target->kind, &library))
            continue;
        if (!users) users = berth_library_users(graph, arena);
        if (!berth_library_find(module, function, users, graph->values.count, op, library,
                                target->devices[device].target, &use))
            continue;
        for (; op != use.last; op = users[graph->ops.data[op].outputs[0]])
            names[op] = berth_library_facts_get(library)->name;
        names[op] = berth_library_facts_get(library)->name;
    }
}

// ---- what to measure ----------------------------------------------------------------------------

uint32_t berth_libraries_candidates(const berth_module *module, berth_func_id main,
                                    const berth_multi_target *target, berth_arena *arena,
                                    berth_library_candidate **out_candidates) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    const berth_op_id *users = berth_library_users(graph, arena);
    berth_interner *seen = berth_interner_create(arena);
    BERTH_VEC(berth_library_candidate) found = {0};
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        uint32_t device = berth_plan_device_of(module, target, op->device);
        if (device == BERTH_NO_INDEX) continue;
        const berth_target *on = target->devices[device].target;
        for (uint32_t k = 0; k < on->libs.count; ++k) {
            berth_library_candidate one = {.device = device};
            berth_library_id id;
            uint32_t known = 0;
            if (!berth_library_from_name(on->libs.data[k], on->kind, &id) ||
                !berth_library_find(module, main, users, graph->values.count, root->ops.data[i], id,
                                    on, &one.use))
                continue;
            one.key = berth_library_key(&one.use, arena);
            const char *whole =
                berth_arena_printf(arena, "%u %s: %s", device, on->libs.data[k], one.key);
            if (berth_intern_find(seen, whole, &known)) continue;
            (void)berth_intern(seen, whole);
            berth_vec_push(arena, &found, one);
        }
    }
    *out_candidates = found.data;
    return found.count;
}
