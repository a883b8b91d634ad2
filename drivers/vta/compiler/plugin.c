// What is loaded with --plugin: devices of kind "vta" get code, rules, intrinsics and a
// schedule.
#include "compiler/plugin.h"

#include "drivers/vta/compiler/compiler.h"

static berth_status set_up(void) {
    BERTH_TRY(berth_vta_intrinsics_register());
    BERTH_TRY(berth_rules_register(&berth_vta_rules));
    BERTH_TRY(berth_schedule_register(&berth_vta_schedule));
    return berth_codegen_register(&berth_vta_codegen);
}

BERTH_PLUGIN("vta", "0.1", set_up)
