// What is loaded with --plugin: devices of kind "vta" get code, rules and a policy.
#include "compiler/plugin.h"

#include "drivers/vta/compiler/compiler.h"

// Loops stay as they were lowered: tiles and their order are those of the stream (emit/conv.h).
static berth_status as_it_is(berth_tfn *fn, const berth_target *target) {
    (void)fn;
    (void)target;
    return BERTH_OK;
}

static const berth_schedule_policy policy = {.kind = "vta", .apply = as_it_is};

static berth_status set_up(void) {
    BERTH_TRY(berth_rules_register(&berth_vta_rules));
    BERTH_TRY(berth_schedule_register(&policy));
    return berth_codegen_register(&berth_vta_codegen);
}

BERTH_PLUGIN("vta", "0.1", set_up)
