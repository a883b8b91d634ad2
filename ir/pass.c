#include "ir/pass.h"

#include <string.h>

#include "base/clock.h"

bool berth_module_has_run(const berth_module *module, const char *pass) {
    const berth_attr *ran = berth_attrs_find(module, &module->attrs, BERTH_ATTR_PASSES);
    if (!ran || ran->kind != BERTH_ATTR_STRINGS) return false;
    for (uint32_t i = 0; i < ran->count; ++i)
        if (strcmp(berth_module_str(module, ran->strings[i]), pass) == 0) return true;
    return false;
}

void berth_module_forget_run(berth_module *module, const char *pass) {
    const berth_attr *ran = berth_attrs_find(module, &module->attrs, BERTH_ATTR_PASSES);
    if (!berth_module_has_run(module, pass)) return;
    berth_str_id *names = berth_arena_new_array(module->arena, berth_str_id, ran->count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ran->count; ++i)
        if (strcmp(berth_module_str(module, ran->strings[i]), pass) != 0)
            names[kept++] = ran->strings[i];
    berth_attrs_set(module, &module->attrs, BERTH_ATTR_PASSES,
                    (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = kept, .strings = names});
}

static void record(berth_module *module, const char *pass) {
    const berth_attr *ran = berth_attrs_find(module, &module->attrs, BERTH_ATTR_PASSES);
    if (berth_module_has_run(module, pass)) return;
    uint32_t count = ran && ran->kind == BERTH_ATTR_STRINGS ? ran->count : 0;
    berth_str_id *names = berth_arena_new_array(module->arena, berth_str_id, count + 1);
    if (count) memcpy(names, ran->strings, count * sizeof(*names));
    names[count] = berth_module_intern(module, pass);
    berth_attrs_set(module, &module->attrs, BERTH_ATTR_PASSES,
                    (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = count + 1, .strings = names});
}

static berth_status run_one(berth_module *module, const berth_pass *pass,
                            berth_pass_context *context) {
    int64_t start_ns = berth_clock_ns();
    context->did_nothing = false;
    BERTH_TRY(berth_status_prefix(pass->run(module, context), "pass %s", pass->name));
    if (!context->did_nothing) record(module, pass->name);
    int64_t elapsed_ns = berth_clock_ns() - start_ns;
    if (context->verify)
        BERTH_TRY(berth_status_prefix(berth_module_verify(module), "after pass %s", pass->name));
    for (uint32_t i = 0; i < context->instrument_count; ++i) {
        const berth_pass_instrument *instrument = &context->instruments[i];
        if (instrument->after) instrument->after(instrument->user, pass, module, elapsed_ns);
    }
    return BERTH_OK;
}

berth_status berth_passes_run(berth_module *module, const berth_pass *const *passes, uint32_t count,
                              berth_pass_context *context) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_pass *pass = passes[i];
        bool before = berth_module_has_run(module, pass->name);
        if (pass->requires && !berth_module_has_run(module, pass->requires))
            return berth_status_make(BERTH_FAILED_PRECONDITION, "pass %s needs %s to run before it",
                                     pass->name, pass->requires);
        if (before && !context->resume && !pass->again)
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "pass %s has run on this module before", pass->name);
        bool left_out = before && context->resume &&
                        !(context->rerun && strcmp(context->rerun, pass->name) == 0);
        if (!left_out) BERTH_TRY(run_one(module, pass, context));
        if (context->stop_after && strcmp(context->stop_after, pass->name) == 0) break;
    }
    return BERTH_OK;
}
