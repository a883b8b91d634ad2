#include "ir/external.h"

#include "ir/dialect.h"

berth_func_id berth_external_create(berth_module *module, const char *name, berth_external external,
                                    berth_loc_id loc) {
    berth_external *held = berth_arena_new(module->arena, berth_external);
    *held = external;
    return berth_module_add_function(module, name, &berth_dialect_external, held, loc);
}

berth_external *berth_external_get(const berth_module *module, berth_func_id function) {
    const berth_function *held = berth_module_function(module, function);
    return held && held->dialect == &berth_dialect_external ? held->body : NULL;
}
