// A module of its own from another one.
#include "ir/dialect.h"
#include "target/virtual_device.h"

static void copy_functions(berth_module *copy) {
    berth_vec_own(copy->arena, &copy->functions);
    for (uint32_t i = 0; i < copy->functions.count; ++i) {
        berth_function *function = &copy->functions.data[i];
        berth_vec_own(copy->arena, &function->attrs.items);
        if (function->body && function->dialect->copy)
            function->body = function->dialect->copy(copy, function->body);
    }
}

berth_module *berth_module_copy(berth_arena *arena, const berth_module *source) {
    berth_module *copy = berth_arena_copy(arena, source, sizeof(*copy));
    copy->arena = arena;
    copy->strings = berth_interner_copy(arena, source->strings);
    copy->devices = berth_virtual_device_table_copy(arena, source->devices);
    berth_vec_own(arena, &copy->types);
    berth_vec_own(arena, &copy->locs);
    berth_vec_own(arena, &copy->function_of_name);
    berth_vec_own(arena, &copy->attrs.items);
    berth_vec_own(arena, &copy->sources);
    copy->type_slots = berth_arena_copy(arena, source->type_slots,
                                        source->type_slot_count * sizeof(*source->type_slots));
    copy_functions(copy);
    return copy;
}
