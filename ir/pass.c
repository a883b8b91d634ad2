#include "ir/pass.h"

#include <string.h>

#include "base/clock.h"

static bool ran_before(const berth_pass *const *passes, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(passes[i]->name, name) == 0) return true;
    return false;
}

static berth_status run_one(berth_module *module, const berth_pass *pass,
                            berth_pass_context *context) {
    int64_t start_ns = berth_clock_ns();
    BERTH_TRY(berth_status_prefix(pass->run(module, context), "pass %s", pass->name));
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
        if (pass->requires && !ran_before(passes, i, pass->requires))
            return berth_status_make(BERTH_FAILED_PRECONDITION, "pass %s needs %s to run before it",
                                     pass->name, pass->requires);
        BERTH_TRY(run_one(module, pass, context));
        if (context->stop_after && strcmp(context->stop_after, pass->name) == 0) break;
    }
    return BERTH_OK;
}
