// Which decisions a function is scheduled with: those that the module gives, else those that were
// tuned for its device, else the policy's; and what the scheduled function says of them.
#include "compiler/tuning/function_decisions.h"

#include <string.h>

#include "compiler/schedule/nest.h"
#include "compiler/tuning/table.h"

static bool is_given(const berth_schedule_decisions *decisions) {
    for (uint32_t i = 0; i < decisions->nest_count; ++i)
        if (decisions->nests[i].given) return true;
    return false;
}

// Strings of an attribute, which somebody may have written by hand.
static berth_status read_attribute(const berth_module *module, const berth_attr *attr,
                                   berth_schedule_decisions *decisions) {
    if (attr->kind != BERTH_ATTR_STRINGS)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the attribute \"%s\" is a list of strings, one for each nest",
                                 BERTH_ATTR_DECISIONS);
    if (attr->count != decisions->nest_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the attribute \"%s\" has %u entries, and the function %u nests",
                                 BERTH_ATTR_DECISIONS, attr->count, decisions->nest_count);
    for (uint32_t i = 0; i < attr->count; ++i)
        BERTH_TRY(berth_status_prefix(
            berth_decisions_parse(&decisions->nests[i], berth_module_str(module, attr->strings[i])),
            "nest %u", i));
    return BERTH_OK;
}

static berth_status read_record(const berth_tuned_record *record,
                                berth_schedule_decisions *decisions) {
    if (record->nest_count != decisions->nest_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u entries for %u nests",
                                 record->nest_count, decisions->nest_count);
    for (uint32_t i = 0; i < record->nest_count; ++i)
        BERTH_TRY(berth_decisions_parse(&decisions->nests[i], record->decisions[i]));
    return BERTH_OK;
}

berth_status berth_decisions_for(berth_module *module, berth_func_id function,
                                 const berth_tuned_table *tuned, bool explain,
                                 berth_kernel_choice *choice) {
    const berth_function *held = berth_module_function(module, function);
    uint32_t nests = berth_schedule_nest_count(berth_tfn_get(module, function));
    const berth_attr *attr = berth_attrs_find(module, &held->attrs, BERTH_ATTR_DECISIONS);
    berth_schedule_decisions *decisions = berth_decisions_create(module->arena, nests);
    decisions->explain = explain;
    choice->decisions = decisions;
    choice->by = BERTH_CHOSEN_BY_POLICY;
    if (attr) {
        BERTH_TRY(read_attribute(module, attr, decisions));
        if (is_given(decisions)) choice->by = BERTH_CHOSEN_BY_MODULE;
    }
    const berth_tuned_record *record =
        tuned && choice->by == BERTH_CHOSEN_BY_POLICY
            ? berth_tuned_table_find(tuned, choice->target, choice->function)
            : NULL;
    if (!record) return BERTH_OK;
    BERTH_TRY(berth_status_prefix(read_record(record, decisions), "tuned decisions"));
    if (is_given(decisions)) choice->by = BERTH_CHOSEN_BY_TUNING;
    return BERTH_OK;
}

berth_status berth_decisions_check_taken(berth_arena *arena,
                                         const berth_schedule_decisions *decisions) {
    for (uint32_t i = 0; i < decisions->nest_count; ++i) {
        const berth_nest_decisions *nest = &decisions->nests[i];
        if (nest->given & ~nest->made)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "nest %u: %s is not possible: the schedule that this function "
                                     "has here takes no decisions",
                                     i, berth_decisions_print(arena, nest, true));
    }
    return BERTH_OK;
}

void berth_decisions_record(berth_module *module, berth_func_id function,
                            const berth_schedule_decisions *decisions) {
    berth_str_id *strings =
        berth_arena_new_array(module->arena, berth_str_id, decisions->nest_count + 1);
    bool any = false;
    for (uint32_t i = 0; i < decisions->nest_count; ++i) {
        any |= decisions->nests[i].made != 0;
        strings[i] = berth_module_intern(
            module, berth_decisions_print(module->arena, &decisions->nests[i], false));
    }
    if (any)
        berth_attrs_set(
            module, &berth_module_function(module, function)->attrs, BERTH_ATTR_DECISIONS,
            (berth_attr){
                .kind = BERTH_ATTR_STRINGS, .count = decisions->nest_count, .strings = strings});
}

berth_hash128 berth_decisions_hash(const berth_module *module, berth_func_id function,
                                   berth_hash128 body) {
    const berth_attr *attr = berth_attrs_find(
        module, &berth_module_function(module, function)->attrs, BERTH_ATTR_DECISIONS);
    if (!attr || attr->kind != BERTH_ATTR_STRINGS) return body;
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_strbuf_add_n(&text, (const char *)&body, sizeof(body));
    for (uint32_t i = 0; i < attr->count; ++i)
        berth_strbuf_addf(&text, "%s;", berth_module_str(module, attr->strings[i]));
    return berth_hash128_of(text.data, text.length);
}
