// What the program runs: the scheduled functions that main calls, printed once each.
#include <string.h>

#include "compiler/pipeline.h"
#include "compiler/rules.h"

// The pairs of buffers that the schedule recorded; false when the attribute is none of ours.
static bool read_in_place(const berth_module *module, berth_func_id function, berth_tfn *fn,
                          berth_unit *unit) {
    uint32_t count = 0;
    const int64_t *triples = berth_attrs_ints(
        module, &berth_module_function(module, function)->attrs, BERTH_ATTR_IN_PLACE, &count);
    berth_in_place *pairs = berth_arena_new_array(module->arena, berth_in_place, count / 3);
    uint32_t nests = berth_pipeline__count_nests(fn);
    if (count % 3) return false;
    for (uint32_t i = 0; i < count / 3; ++i) {
        const int64_t *t = triples + 3 * (size_t)i;
        if (t[0] < 0 || t[0] >= nests || t[1] < 0 || t[1] >= fn->bufs.count || t[2] < 0 ||
            t[2] >= fn->bufs.count)
            return false;
        pairs[i] = (berth_in_place){(uint32_t)t[0], (berth_buf)t[1], (berth_buf)t[2]};
        fn->bufs.data[t[1]].may_alias = fn->bufs.data[t[2]].may_alias = true;
    }
    unit->in_place = pairs;
    unit->in_place_count = count / 3;
    return true;
}

// What the text of a scheduled function follows from.
static berth_hash128 printed_hash(const berth_tfn *fn, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_hash128 body = berth_tfn_hash(fn);
    berth_strbuf_add_n(&text, (const char *)&body, sizeof(body));
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        berth_strbuf_add(&text, fn->bufs.data[i].may_alias ? "a" : "-");
    return berth_hash128_of(text.data, text.length);
}

// Code of a function that may serve other sizes, or is there already.
static berth_status print_generic(const berth_module *module, const berth_pipeline *pipeline,
                                  const berth_codegen *codegen, const berth_op *call,
                                  berth_unit *unit) {
    const char *names = berth_loc_names(module, call->loc, false, module->arena);
    berth_generic_key key = {.scope = pipeline->options->generic_scope,
                             .name = names,
                             .target = pipeline->options->target->devices[unit->device].target,
                             .codegen = codegen};
    unit->name = berth_hash128_of(names, strlen(names));
    for (uint32_t i = 0; i < pipeline->units.count; ++i)
        key.ordinal += berth_hash128_equal(pipeline->units.data[i].name, unit->name);
    key.function = printed_hash(unit->fn, module->arena);
    if (pipeline->options->note_sizes) {
        BERTH_TRY(codegen->print_template(unit->fn, module->arena, &unit->code));
        return berth_generic_kernels_note(pipeline->options->generic_kernels, &key,
                                          unit->code.source, module->arena);
    }
    if (berth_generic_kernels_recall(pipeline->options->generic_kernels, &key, module->arena,
                                     &unit->code, &unit->generic))
        return BERTH_OK;
    BERTH_TRY(codegen->print_template(unit->fn, module->arena, &unit->code));
    berth_generic_kernels_find(pipeline->options->generic_kernels, &key, module->arena, &unit->code,
                               &unit->generic);
    return BERTH_OK;
}

static berth_status print_unit(const berth_module *module, const berth_pipeline *pipeline,
                               const berth_codegen *codegen, const berth_op *call,
                               berth_unit *unit) {
    if (berth_generic_kernels_serve(pipeline->options->generic_kernels, codegen) && !unit->calls)
        return print_generic(module, pipeline, codegen, call, unit);
    return codegen->print(unit->fn, pipeline->options->target->devices[unit->device].target,
                          unit->prefix, module->arena, &unit->code);
}

const berth_codegen *berth_pipeline__codegen(const berth_pipeline *pipeline, uint32_t device) {
    const berth_multi_target *target = pipeline->options->target;
    berth_device_kind kind = target->devices[device].target->kind;
    const berth_codegen *codegen = berth_codegen_for(target, berth_device_kind_name(kind));
    bool planned = pipeline->options->plan_only && berth_rules_only_described(kind);
    return codegen || !planned ? codegen : &berth_codegen_described;
}

static berth_status make_unit(berth_module *module, berth_pipeline *pipeline,
                              berth_func_id function, uint32_t choice, uint32_t device,
                              const berth_op *call) {
    berth_tfn *fn = berth_tfn_get(module, function);
    const char *name = berth_module_str(module, berth_module_function(module, function)->name);
    const char *kind =
        berth_device_kind_name(pipeline->options->target->devices[device].target->kind);
    const berth_codegen *codegen = berth_pipeline__codegen(pipeline, device);
    if (!codegen)
        return berth_status_make(BERTH_UNSUPPORTED, "no code generator for devices of kind %s",
                                 kind);
    berth_unit unit = {.fn = fn, .device = device, .executable = BERTH_NO_INDEX, .choice = choice};
    unit.prefix = berth_arena_printf(module->arena, "u%u", pipeline->units.count);
    unit.calls = berth_external_label_of_calls(module, fn, module->arena);
    if (!read_in_place(module, function, fn, &unit))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function @%s: its attribute \"%s\"", name,
                                 BERTH_ATTR_IN_PLACE);
    BERTH_TRY(berth_status_prefix(print_unit(module, pipeline, codegen, call, &unit),
                                  "printing %s for %s", name, kind));
    if (unit.code.kernel_count != berth_pipeline__count_nests(fn))
        unit.in_place_count = 0;  // pairs are numbered by nests
    berth_vec_push(module->arena, &pipeline->units, unit);
    return BERTH_OK;
}

// ---- external functions -------------------------------------------------------------------------

// What the code of a call depends on: types of operands and results, and the device's target.
static berth_hash128 external_key(const berth_module *module, const berth_graph *graph,
                                  const berth_op *call, const berth_target *target) {
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_strbuf_add_n(&text, (const char *)&target->hash, sizeof(target->hash));
    for (uint32_t i = 0; i < call->input_count + call->output_count; ++i) {
        berth_value_id value =
            i < call->input_count ? call->inputs[i] : call->outputs[i - call->input_count];
        berth_type_id type = value == BERTH_NONE ? 0 : graph->values.data[value].type;
        berth_strbuf_add_n(&text, (const char *)&type, sizeof(type));
    }
    return berth_hash128_of(text.data, text.length);
}

// Calls of equal types share a unit. `first_unit`: + 1, of the function; its units are few.
static berth_status external_unit(berth_module *module, const berth_graph *graph,
                                  berth_pipeline *pipeline, const berth_op *call, uint32_t device,
                                  uint32_t *first_unit, uint32_t *out_unit) {
    const berth_target *target = pipeline->options->target->devices[device].target;
    berth_hash128 key = external_key(module, graph, call, target);
    for (uint32_t at = *first_unit; at; at = pipeline->units.data[at - 1].next) {
        *out_unit = at - 1;
        if (berth_hash128_equal(pipeline->units.data[at - 1].call, key)) return BERTH_OK;
    }
    berth_unit unit = {
        .device = device, .executable = BERTH_NO_INDEX, .call = key, .choice = BERTH_NO_INDEX};
    unit.prefix = berth_arena_printf(module->arena, "u%u", pipeline->units.count);
    unit.external = berth_arena_new(module->arena, berth_external_code);
    unit.next = *first_unit;
    BERTH_TRY(berth_external_print(module, graph, call,
                                   berth_arena_printf(module->arena, "%s_0", unit.prefix),
                                   unit.external));
    unit.code = unit.external->code;
    berth_vec_push(module->arena, &pipeline->units, unit);
    *first_unit = pipeline->units.count;
    *out_unit = pipeline->units.count - 1;
    return BERTH_OK;
}

// ---- calls --------------------------------------------------------------------------------------

static berth_status check_external(const berth_module *module, const berth_multi_target *target,
                                   const berth_op *call, berth_func_id function, uint32_t device) {
    const char *why = berth_external_refusal(module, function, target->devices[device].target->kind,
                                             module->arena);
    if (!why) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED, "%s: %s",
                             berth_loc_describe(module, call->loc, module->arena), why);
}

// The function that a call names, which must be scheduled for the call's device.
static berth_status find_callee(const berth_module *module, const berth_multi_target *target,
                                const berth_op *call, uint32_t device,
                                berth_func_id *out_function) {
    const berth_attr *callee = berth_attrs_find(module, &call->attrs, "callee");
    const char *where = berth_loc_describe(module, call->loc, module->arena);
    *out_function = berth_external_called(module, call);
    if (*out_function != BERTH_NONE && device != BERTH_NO_INDEX)
        return check_external(module, target, call, *out_function, device);
    if (!callee || !berth_tfn_get(module, callee->function) || device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "%s: a call that is not lowered, or has no device", where);
    const berth_function *held = berth_module_function(module, callee->function);
    const char *wanted = berth_attrs_string(module, &held->attrs, BERTH_ATTR_TARGET, "");
    for (uint32_t d = 0; d < target->device_count; ++d) {
        if (strcmp(target->devices[d].name, wanted) != 0) continue;
        if (!berth_hash128_equal(target->devices[d].target->hash,
                                 target->devices[device].target->hash))
            break;
        *out_function = callee->function;
        return BERTH_OK;
    }
    return berth_status_make(
        BERTH_FAILED_PRECONDITION, "%s: @%s is scheduled for \"%s\", and called on \"%s\"", where,
        berth_module_str(module, held->name), wanted, target->devices[device].name);
}

berth_status berth_pipeline__make_units(berth_module *module, berth_func_id main,
                                        berth_pipeline *pipeline) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    const berth_multi_target *target = pipeline->options->target;
    uint32_t *unit_of =
        berth_arena_new_array(module->arena, uint32_t, module->functions.count);  // + 1
    uint32_t *choice_of = berth_arena_new_array(module->arena, uint32_t, module->functions.count);
    memset(choice_of, 0xff, module->functions.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < pipeline->choices.items.count; ++i)
        choice_of[pipeline->choices.items.data[i].scheduled] = i;
    pipeline->unit_of_op = berth_arena_new_array(module->arena, uint32_t, graph->ops.count);
    memset(pipeline->unit_of_op, 0xff, graph->ops.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *op = &graph->ops.data[id];
        if (op->kind != BERTH_OP_CALL) continue;
        uint32_t device = berth_plan_device_of(module, target, op->device);
        berth_func_id function = BERTH_NONE;
        BERTH_TRY(find_callee(module, target, op, device, &function));
        if (!berth_tfn_get(module, function)) {
            BERTH_TRY(external_unit(module, graph, pipeline, op, device, &unit_of[function],
                                    &pipeline->unit_of_op[id]));
            continue;
        }
        if (!unit_of[function]) {
            BERTH_TRY(make_unit(module, pipeline, function, choice_of[function], device, op));
            unit_of[function] = pipeline->units.count;
        }
        pipeline->unit_of_op[id] = unit_of[function] - 1;
    }
    return BERTH_OK;
}
