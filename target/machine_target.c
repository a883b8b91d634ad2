// Targets made of facts about a machine (machine.c, and what drivers say).
#include <string.h>

#include "target/internal.h"

static void put_text(berth_arena *arena, json *object, const char *key, const char *text) {
    if (text && *text)
        berth_target__json_set(arena, object, key, berth_target__json_string(arena, text));
}

static void put_int(berth_arena *arena, json *object, const char *key, int64_t value) {
    if (value > 0) berth_target__json_set(arena, object, key, berth_target__json_int(arena, value));
}

static void put_true(berth_arena *arena, json *object, const char *key, bool value) {
    if (value) berth_target__json_set(arena, object, key, berth_target__json_bool(arena, true));
}

// Those of the machine's cores (NULL: none), and `more`, which commas part (NULL: none).
static void put_features(berth_arena *arena, json *object, const berth_machine_facts *machine,
                         const char *more) {
    json *features = berth_target__json_array(arena);
    for (uint32_t i = 0; machine && i < machine->features.count; ++i)
        berth_target__json_push(arena, features,
                                berth_target__json_string(arena, machine->features.data[i]));
    for (size_t length = 0; more && *more; more += length + (more[length] == ',')) {
        length = strcspn(more, ",");
        berth_target__json_push(
            arena, features,
            berth_target__json_string(arena, berth_arena_strndup(arena, more, length)));
    }
    if (features->items.count) berth_target__json_set(arena, object, "features", features);
}

json *berth_target__machine_cpu(berth_arena *arena, const berth_machine_facts *machine) {
    json *object = berth_target__json_object(arena);
    put_text(arena, object, "kind", "cpu");
    put_text(arena, object, "arch", machine->arch);
    put_text(arena, object, "cpu", machine->cpu);
    put_text(arena, object, "model", machine->cpu_model);
    put_int(arena, object, "cores", machine->cores);
    put_int(arena, object, "threads", machine->threads);
    put_int(arena, object, "clock_hz", machine->clock_hz);
    put_int(arena, object, "l1_bytes", machine->l1_bytes);
    put_int(arena, object, "l2_bytes", machine->l2_bytes);
    put_int(arena, object, "l3_bytes", machine->l3_bytes);
    put_int(arena, object, "cache_line_bytes", machine->cache_line_bytes);
    put_int(arena, object, "memory_capacity_bytes", machine->memory_capacity_bytes);
    put_features(arena, object, machine, NULL);
    return object;
}

json *berth_target__machine_device(berth_arena *arena, const berth_machine_facts *machine,
                                   const berth_machine_device *device) {
    json *object = berth_target__json_object(arena);
    put_text(arena, object, "kind", berth_device_kind_name(device->kind));
    put_text(arena, object, "model", device->model);
    put_text(arena, object, "arch", device->arch);
    bool own_cores = *device->arch && strcmp(device->arch, machine->arch) == 0;
    if (own_cores) {
        put_int(arena, object, "l1_bytes", machine->l1_bytes);
        put_int(arena, object, "l2_bytes", machine->l2_bytes);
        put_int(arena, object, "cache_line_bytes", machine->cache_line_bytes);
    }
    put_features(arena, object, own_cores ? machine : NULL, device->features);
    put_int(arena, object, "compute_units", device->compute_units);
    put_int(arena, object, "clock_hz",
            own_cores && device->clock_hz <= 0 ? machine->clock_hz : device->clock_hz);
    put_int(arena, object, "subgroup_size", device->subgroup_size);
    put_int(arena, object, "max_group_size", device->max_group_size);
    put_int(arena, object, "local_memory_bytes", device->local_memory_bytes);
    put_int(arena, object, "max_bindings", device->max_bindings);
    if (!own_cores) put_int(arena, object, "l2_bytes", device->l2_bytes);
    put_int(arena, object, "memory_capacity_bytes", device->memory_capacity_bytes);
    put_int(arena, object, "memory_bandwidth_bytes_per_s", device->memory_bandwidth_bytes_per_s);
    put_int(arena, object, "memory_alignment_bytes", device->memory_alignment_bytes);
    put_true(arena, object, "lacks_f64", device->lacks_f64);
    put_true(arena, object, "lacks_i64", device->lacks_i64);
    put_true(arena, object, "lacks_8bit", device->lacks_8bit);
    put_true(arena, object, "lacks_16bit", device->lacks_16bit);
    if (device->uses_host_cores)
        berth_target__json_set(
            arena, object, "resource",
            berth_target__json_string(arena, device->core_pool ? device->core_pool : "host"));
    put_true(arena, object, "shares_host_memory", device->shares_host_memory);
    return object;
}

static void push_device(berth_arena *arena, json *devices, json *target) {
    json *device = berth_target__json_object(arena);
    berth_target__json_set(arena, device, "target", target);
    berth_target__json_push(arena, devices, device);
}

json *berth_target__machine_local(berth_arena *arena, const berth_machine_facts *machine) {
    json *devices = berth_target__json_array(arena);
    push_device(arena, devices, berth_target__machine_cpu(arena, machine));
    for (uint32_t i = 0; i < machine->device_count; ++i)
        push_device(arena, devices,
                    berth_target__machine_device(arena, machine, &machine->devices[i]));
    json *multi = berth_target__json_object(arena);
    put_text(arena, multi, "kind", "multi");
    put_text(arena, multi, "name", "local");
    berth_target__json_set(arena, multi, "devices", devices);
    return multi;
}
