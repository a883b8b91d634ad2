// The pass schedule: every call of @main gets a tensor function of its own kind of device. Equal
// functions (structural hash) on equal device targets share one; a function that is called on two
// kinds of devices becomes two.
#include <string.h>

#include "compiler/package/in_place.h"
#include "compiler/passes/roll_rows.h"
#include "compiler/pipeline.h"
#include "compiler/rules.h"
#include "compiler/schedule/plain_in_place.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/seen_extents.h"
#include "compiler/schedule/skip_zeros.h"
#include "compiler/schedule/work_groups.h"
#include "compiler/tuning/function_decisions.h"
#include "compiler/tuning/table.h"

typedef struct scheduled_key {
    berth_hash128 function;
    berth_hash128 target;
} scheduled_key;

typedef struct scheduler {
    berth_module *module;
    const berth_multi_target *target;
    const berth_compile_options *options;
    berth_kernel_choices *choices;
    const berth_schedule_policy *plain;  // of sources
    BERTH_VEC(scheduled_key) keys;
    BERTH_VEC(berth_func_id) functions;  // parallel to keys
    uint32_t *slots;                     // open addressing, index + 1
    uint32_t mask;
} scheduler;

static uint32_t *find_slot(scheduler *s, const scheduled_key *key) {
    for (uint32_t at = (uint32_t)key->function.low & s->mask;; at = (at + 1) & s->mask) {
        uint32_t *slot = &s->slots[at];
        if (*slot == 0 || memcmp(&s->keys.data[*slot - 1], key, sizeof(*key)) == 0) return slot;
    }
}

uint32_t berth_pipeline__count_nests(const berth_tfn *fn) {
    return berth_schedule_nest_count(fn);
}

// Pairs of buffers as triples of the attribute; pairs are numbered by nests.
static void keep_in_place(berth_module *module, berth_func_id function, const berth_in_place *pairs,
                          uint32_t count, const uint32_t *buf_map) {
    int64_t *triples = berth_arena_new_array(module->arena, int64_t, 3 * (size_t)count);
    for (uint32_t i = 0; i < count; ++i) {
        triples[3 * i] = pairs[i].nest;
        triples[3 * i + 1] = buf_map[pairs[i].from];
        triples[3 * i + 2] = buf_map[pairs[i].to];
    }
    if (count)
        berth_attrs_set_ints(module, &berth_module_function(module, function)->attrs,
                             BERTH_ATTR_IN_PLACE, triples, 3 * count);
}

// The pairs with those of the plain policy's own.
static const berth_in_place *add_plain_pairs(berth_tfn *fn, bool small, const berth_in_place *pairs,
                                             uint32_t *count) {
    uint32_t nests = berth_pipeline__count_nests(fn);
    berth_in_place *all =
        berth_arena_new_array(fn->module->arena, berth_in_place, *count + (size_t)nests);
    if (*count) memcpy(all, pairs, *count * sizeof(*pairs));
    for (uint32_t i = 0; i < nests; ++i) {
        const berth_stmt_node body = fn->stmts.data[fn->body];
        berth_stmt at = body.kind == BERTH_STMT_SEQ ? fn->lists.data[body.first + i] : fn->body;
        berth_nest nest;
        berth_in_place pair = {.nest = i};
        if (!berth_nest_parse(fn, at, &nest) || !berth_nest_is_independent(fn, &nest) ||
            !berth_plain_in_place(fn, &nest, small, &pair.from, &pair.to))
            continue;
        fn->bufs.data[pair.from].may_alias = fn->bufs.data[pair.to].may_alias = true;
        all[(*count)++] = pair;
    }
    return all;
}

// A trial that is not possible is said in the choice, and the policy decides.
static berth_status schedule_decided(scheduler *s, const berth_schedule_policy *policy,
                                     berth_func_id function, const berth_target *target,
                                     berth_kernel_choice *choice) {
    berth_tfn *fn = berth_tfn_get(s->module, function);
    const berth_tuned_table *tuned = s->options->any_size ? NULL : s->options->tuned;
    const berth_tuned_record *record =
        tuned ? berth_tuned_table_find(tuned, choice->target, choice->function) : NULL;
    BERTH_TRY(berth_decisions_for(s->module, function, tuned, s->options->explain_kernels, choice));
    bool is_trial = choice->by == BERTH_CHOSEN_BY_TUNING && record && record->trial;
    berth_stmt body = fn->body;
    fn->decisions = choice->decisions;
    berth_status status = policy->apply(fn, target);
    if (status && is_trial && berth_status_code(status) == BERTH_INVALID_ARGUMENT) {
        choice->refused = berth_arena_strdup(s->module->arena, berth_status_message(status));
        berth_status_free(status);
        BERTH_TRY(
            berth_decisions_for(s->module, function, NULL, s->options->explain_kernels, choice));
        fn->body = body;
        fn->decisions = choice->decisions;
        status = policy->apply(fn, target);
    }
    fn->decisions = NULL;
    if (!status) status = berth_decisions_check_taken(s->module->arena, choice->decisions);
    return status;
}

// Beside `function`, the same with loops over rows that stay loops of their own: the pass roll-rows takes one of both.
static berth_status make_rows_form(scheduler *s, const berth_schedule_policy *policy,
                                   berth_func_id source, const berth_target_device *held,
                                   berth_func_id function) {
    berth_module *module = s->module;
    const char *name = berth_module_str(module, berth_module_function(module, function)->name);
    berth_func_id form =
        berth_tfn_clone(module, source, berth_arena_printf(module->arena, "%s.rows", name));
    berth_tfn *fn = berth_tfn_get(module, form);
    berth_tfn_share(fn, module->arena);
    fn->keeps_rows = true;
    BERTH_TRY(berth_status_prefix(policy->apply(fn, held->target), "scheduling rows of %s", name));
    fn->keeps_rows = false;
    (void)berth_tfn_compact(fn);
    berth_attrs_set_string(module, &berth_module_function(module, form)->attrs, BERTH_ATTR_TARGET,
                           held->name);
    berth_attrs_set(module, &berth_module_function(module, function)->attrs, BERTH_ATTR_ROWS_FORM,
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = form});
    return BERTH_OK;
}

static berth_status make_scheduled(scheduler *s, berth_func_id source, berth_hash128 hash,
                                   uint32_t device, berth_func_id *out_function) {
    berth_module *module = s->module;
    const berth_target_device *held = &s->target->devices[device];
    const char *kind = berth_device_kind_name(held->target->kind);
    const char *name = berth_module_str(module, berth_module_function(module, source)->name);
    if (!berth_codegen_for(s->target, kind) && !berth_rules_only_described(held->target->kind))
        return berth_status_make(BERTH_UNSUPPORTED, "no code generator for devices of kind %s",
                                 kind);
    berth_func_id function =
        berth_tfn_clone(module, source, berth_arena_printf(module->arena, "%s.%s", name, kind));
    berth_tfn *fn = berth_tfn_get(module, function);
    berth_tfn_share(fn, module->arena);
    const berth_in_place *pairs = NULL;
    uint32_t nests = berth_pipeline__count_nests(fn);
    uint32_t pair_count = berth_in_place_find(fn, &pairs);
    const berth_schedule_policy *policy =
        s->target->executor == BERTH_EXECUTOR_AOT
            ? s->plain
            : berth_schedule_policy_for(module, function, held->target);
    if (!policy)
        return berth_status_make(BERTH_UNSUPPORTED, "no schedules for devices of kind %s", kind);
    bool small = policy == &berth_schedule_policy_plain_small;
    if (small || policy == &berth_schedule_policy_plain)
        pairs = add_plain_pairs(fn, small, pairs, &pair_count);
    berth_seen_change change = BERTH_SEEN_INNER;
    if (s->options->seen_extents)
        BERTH_TRY(berth_seen_extents_note(s->options->seen_extents, s->options->generic_scope, name,
                                          fn, &change));
    fn->any_size = s->options->any_size && change != BERTH_SEEN_NOTHING;
    fn->same_tiles = fn->any_size && change == BERTH_SEEN_OUTERMOST;
    fn->whole_results = berth_attrs_int(module, &berth_module_function(module, function)->attrs,
                                        BERTH_ATTR_WHOLE_RESULTS, 0);
    berth_kernel_choice choice = {.scheduled = function,
                                  .target = berth_target_culled(module->arena, held->target),
                                  .function = hash};
    BERTH_TRY(berth_status_prefix(schedule_decided(s, policy, function, held->target, &choice),
                                  "scheduling %s for %s", name, kind));
    if (policy->skips_zeros)
        berth_schedule_skip_zeros(fn, &berth_module_function(module, function)->attrs);
    berth_decisions_record(module, function, choice.decisions);
    choice.name = berth_module_str(module, berth_module_function(module, function)->name);
    berth_vec_push(module->arena, &s->choices->items, choice);
    const uint32_t *buf_map = berth_tfn_compact(fn);
    if (berth_pipeline__count_nests(fn) == nests)
        keep_in_place(module, function, pairs, pair_count, buf_map);
    berth_attrs_set_string(module, &berth_module_function(module, function)->attrs,
                           BERTH_ATTR_TARGET, held->name);
    *out_function = function;
    bool rolls = berth_rolls_rows(s->options->patches) && policy == s->plain;
    return rolls ? make_rows_form(s, policy, source, held, function) : BERTH_OK;
}

// Of all that a schedule depends on: functions with equal bodies may know different things of their
// operands.
static berth_hash128 hash_with_attributes(const berth_module *module, berth_func_id function,
                                          berth_hash128 body) {
    berth_hash128 hash = berth_decisions_hash(module, function, body);
    const berth_attrs *attrs = &berth_module_function(module, function)->attrs;
    uint32_t count = 0;
    const int64_t *border = berth_attrs_ints(module, attrs, BERTH_ATTR_ZERO_BORDER, &count);
    int64_t whole = berth_attrs_int(module, attrs, BERTH_ATTR_WHOLE_RESULTS, 0);
    if (!border && !whole) return hash;
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_strbuf_add_n(&text, (const char *)&hash, sizeof(hash));
    berth_strbuf_add_n(&text, (const char *)&whole, sizeof(whole));
    if (border) berth_strbuf_add_n(&text, (const char *)border, count * sizeof(*border));
    return berth_hash128_of(text.data, text.length);
}

static berth_status schedule_call(scheduler *s, berth_func_id main, berth_op_id id) {
    berth_module *module = s->module;
    berth_op *call = &berth_graph_get(module, main)->ops.data[id];
    const berth_attr *callee = berth_attrs_find(module, &call->attrs, "callee");
    const berth_tfn *fn = callee ? berth_tfn_get(module, callee->function) : NULL;
    if (berth_external_called(module, call) != BERTH_NONE) return BERTH_OK;  // as it is
    if (!fn)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: a call of what is not lowered to a tensor function",
                                 berth_loc_describe(module, call->loc, module->arena));
    uint32_t device = berth_plan_device_of(module, s->target, call->device);
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "%s: a call without a device",
                                 berth_loc_describe(module, call->loc, module->arena));
    berth_hash128 hash = berth_tfn_hash(fn);
    scheduled_key key = {.function = hash_with_attributes(module, callee->function, hash),
                         .target = s->target->devices[device].target->hash};
    uint32_t *slot = find_slot(s, &key);
    if (*slot == 0) {
        berth_func_id function = BERTH_NONE;
        BERTH_TRY(make_scheduled(s, callee->function, hash, device, &function));
        berth_vec_push(module->arena, &s->keys, key);
        berth_vec_push(module->arena, &s->functions, function);
        *slot = s->keys.count;
    }
    call = &berth_graph_get(module, main)->ops.data[id];
    berth_attrs_set(
        module, &call->attrs, "callee",
        (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = s->functions.data[*slot - 1]});
    return BERTH_OK;
}

// The plain functions of calls that now call scheduled ones.
static void remove_plain(berth_module *module, const berth_func_id *callees, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (callees[i] != BERTH_NONE) berth_module_function(module, callees[i])->removed = true;
}

berth_status berth_pipeline__schedule(berth_module *module, berth_func_id main,
                                      const berth_compile_options *options,
                                      berth_kernel_choices *choices) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    scheduler s = {.module = module,
                   .target = options->target,
                   .options = options,
                   .choices = choices,
                   .plain = options->small_code ? &berth_schedule_policy_plain_small
                                                : &berth_schedule_policy_plain,
                   .mask = 63};
    while (s.mask < root->ops.count * 2) s.mask = s.mask * 2 + 1;
    s.slots = berth_arena_new_array(module->arena, uint32_t, s.mask + 1);
    berth_func_id *callees = berth_arena_new_array(module->arena, berth_func_id, root->ops.count);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        const berth_attr *callee =
            op->kind == BERTH_OP_CALL ? berth_attrs_find(module, &op->attrs, "callee") : NULL;
        callees[i] =
            callee && berth_tfn_get(module, callee->function) ? callee->function : BERTH_NONE;
        if (op->kind == BERTH_OP_CALL) BERTH_TRY(schedule_call(&s, main, root->ops.data[i]));
    }
    remove_plain(module, callees, root->ops.count);
    return BERTH_OK;
}
