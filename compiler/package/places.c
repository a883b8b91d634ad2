// Places: the memories of the target, as storages are in them (package.h).
#include <string.h>

#include "compiler/package/package.h"

// The device that stands for those that keep their values in a memory, or reach it.
static uint32_t first_of(const berth_multi_target *target, berth_bits devices) {
    if (berth_bits_has(devices, target->host)) return target->host;
    for (uint32_t d = berth_bits_first(devices); d != BERTH_BITS_END;
         d = berth_bits_next(devices, d))
        if (berth_device_kind_is_host(target->devices[d].target->kind)) return d;
    return berth_bits_first(devices);
}

void berth_packager__find_keepers(berth_packager *p) {
    const berth_multi_target *target = p->target;
    p->keepers = berth_arena_new_array(p->arena, berth_bits, target->memory_count + 1);
    for (uint32_t d = 0; d < target->device_count; ++d) {
        berth_bits *keepers = &p->keepers[target->devices[d].own_memory];
        *keepers = berth_bits_with(p->arena, *keepers, d);
    }
}

uint32_t berth_packager__place_count(const berth_packager *packager) {
    return packager->target->device_count + packager->target->memory_count;
}

uint32_t berth_packager__place(const berth_packager *packager, uint32_t device, const char *scope) {
    const berth_multi_target *target = packager->target;
    uint32_t own = target->devices[device].own_memory, memory = own;
    if (scope && strcmp(scope, "global") != 0)
        memory = berth_multi_target_memory_of(target, device, scope);
    if (memory != own && memory != BERTH_NO_INDEX) return target->device_count + memory;
    return first_of(target, packager->keepers[own]);
}

berth_bits berth_packager__workers(const berth_packager *packager, uint32_t place) {
    const berth_multi_target *target = packager->target;
    if (place >= target->device_count)
        return target->memories[place - target->device_count].reached_by;
    return packager->keepers[target->devices[place].own_memory];
}

uint32_t berth_packager__owner(const berth_packager *packager, uint32_t place) {
    if (place < packager->target->device_count) return place;
    return first_of(packager->target, berth_packager__workers(packager, place));
}

uint32_t berth_packager__memory(const berth_packager *packager, uint32_t place,
                                berth_pool_usage usage) {
    const berth_multi_target *target = packager->target;
    if (place >= target->device_count) return place - target->device_count;
    const berth_target_device *device = &target->devices[place];
    return usage == BERTH_POOL_CONSTANT ? device->constant_memory : device->own_memory;
}

void berth_packager__index_places(berth_packager *p) {
    uint32_t places = berth_packager__place_count(p), count = p->storages.count;
    p->place_first = berth_arena_new_array(p->arena, uint32_t, places + 2);
    p->place_storages = berth_arena_new_array(p->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) p->place_first[p->storages.data[i].place + 2]++;
    for (uint32_t i = 0; i < places; ++i) p->place_first[i + 2] += p->place_first[i + 1];
    for (uint32_t i = 0; i < count; ++i)
        p->place_storages[p->place_first[p->storages.data[i].place + 1]++] = i;
}
