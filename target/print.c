// Canonical form: one JSON text per target, keys sorted, defaults filled in. Hash and equality go
// by it.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

static json *list_json(berth_arena *arena, berth_string_list list) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < list.count; ++i)
        berth_target__json_push(arena, array, berth_target__json_string(arena, list.data[i]));
    return array;
}

static json *flops_json(berth_arena *arena, const double *flops) {
    json *object = berth_target__json_object(arena);
    for (uint32_t d = 1; d < BERTH_DTYPE_COUNT; ++d)
        if (flops[d] > 0)
            berth_target__json_set(arena, object, berth_dtype_name((berth_dtype)d),
                                   berth_target__json_real(arena, flops[d]));
    return object;
}

// Unknown values ("", empty, false, 0) are left out, except where 0 is a value: caches and fixed
// costs.
static json *member_json(berth_arena *arena, const berth_target_attribute_facts *facts,
                         const char *member) {
    switch (facts->type) {
    case BERTH_TARGET_STRING:
    case BERTH_TARGET_WORD: {
        const char *text = *(const char *const *)(const void *)member;
        return *text ? berth_target__json_string(arena, text) : NULL;
    }
    case BERTH_TARGET_LIST: {
        const berth_string_list *list = (const void *)member;
        return list->count ? list_json(arena, *list) : NULL;
    }
    case BERTH_TARGET_INT: {
        int64_t number = *(const int64_t *)(const void *)member;
        return number || facts->least <= 0 ? berth_target__json_int(arena, number) : NULL;
    }
    case BERTH_TARGET_FLOAT: {
        double number = *(const double *)(const void *)member;
        return number > 0 ? berth_target__json_real(arena, number) : NULL;
    }
    case BERTH_TARGET_BOOL:
        return *(const bool *)(const void *)member ? berth_target__json_bool(arena, true) : NULL;
    case BERTH_TARGET_FLOPS: return flops_json(arena, (const double *)(const void *)member);
    }
    return NULL;
}

json *berth_target__device_json(berth_arena *arena, const berth_target *target) {
    json *object = berth_target__json_object(arena);
    berth_target__json_set(arena, object, "kind",
                           berth_target__json_string(arena, berth_device_kind_name(target->kind)));
    uint32_t count = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    for (uint32_t i = 0; i < count; ++i) {
        if (!(table[i].kinds & (1u << target->kind))) continue;
        size_t offset = berth_target__attribute_offset(&table[i]);
        if (offset == BERTH_TARGET__NO_MEMBER) continue;
        berth_target__json_set(arena, object, table[i].name,
                               member_json(arena, &table[i], (const char *)target + offset));
    }
    for (uint32_t i = 0; i < target->extra_count; ++i)
        berth_target__json_set(arena, object, target->extras[i].name,
                               berth_target__json_int(arena, target->extras[i].value));
    return object;
}

void berth_target__canonicalise_device(berth_arena *arena, berth_target *target) {
    const char *text = berth_target__json_print(arena, berth_target__device_json(arena, target), 0);
    target->canonical = text;
    target->hash = berth_hash128_of(text, strlen(text));
}

// ------------------------------------------------------------------------------------------------
// several devices

static void put_text(berth_arena *arena, json *object, const char *key, const char *text) {
    berth_target__json_set(arena, object, key, berth_target__json_string(arena, text));
}

static void put_int(berth_arena *arena, json *object, const char *key, uint64_t value) {
    berth_target__json_set(arena, object, key, berth_target__json_int(arena, (int64_t)value));
}

static json *devices_json(berth_arena *arena, const berth_multi_target *multi) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        const berth_target_device *device = &multi->devices[i];
        json *object = berth_target__json_object(arena);
        put_text(arena, object, "name", device->name);
        berth_target__json_set(arena, object, "target",
                               berth_target__device_json(arena, device->target));
        if (device->host_only)
            berth_target__json_set(arena, object, "host_only",
                                   berth_target__json_bool(arena, true));
        if (multi->machine_count > 1)
            put_text(arena, object, "machine", multi->machines[device->machine].name);
        berth_target__json_push(arena, array, object);
    }
    return array;
}

static json *memories_json(berth_arena *arena, const berth_multi_target *multi) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < multi->memory_count; ++i) {
        const berth_target_memory *memory = &multi->memories[i];
        json *object = berth_target__json_object(arena);
        put_text(arena, object, "name", memory->name);
        put_text(arena, object, "scope", memory->scope);
        put_int(arena, object, "capacity_bytes", memory->capacity_bytes);
        put_int(arena, object, "latency_ns", memory->latency_ns);
        put_int(arena, object, "alignment_bytes", memory->alignment_bytes);
        berth_target__json_set(arena, object, "bandwidth_bytes_per_s",
                               berth_target__json_real(arena, memory->bandwidth_bytes_per_s));
        json *reached = berth_target__json_array(arena);
        for (uint32_t d = 0; d < multi->device_count; ++d)
            if (berth_bits_has(memory->reached_by, d))
                berth_target__json_push(arena, reached,
                                        berth_target__json_string(arena, multi->devices[d].name));
        berth_target__json_set(arena, object, "reached_by", reached);
        if (memory->holds_constants) put_text(arena, object, "holds", "constants");
        if (memory->implied)
            berth_target__json_set(arena, object, "implied", berth_target__json_bool(arena, true));
        berth_target__json_push(arena, array, object);
    }
    return array;
}

static json *links_json(berth_arena *arena, const berth_multi_target *multi) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < multi->link_count; ++i) {
        const berth_target_link *link = &multi->links[i];
        json *object = berth_target__json_object(arena);
        put_text(arena, object, "from", multi->memories[link->from].name);
        put_text(arena, object, "to", multi->memories[link->to].name);
        put_text(arena, object, "bus", link->bus);
        put_int(arena, object, "latency_ns", link->latency_ns);
        berth_target__json_set(arena, object, "bandwidth_bytes_per_s",
                               berth_target__json_real(arena, link->bandwidth_bytes_per_s));
        berth_target__json_set(arena, object, "duplex",
                               berth_target__json_bool(arena, link->duplex));
        berth_target__json_push(arena, array, object);
    }
    return array;
}

static json *machines_json(berth_arena *arena, const berth_multi_target *multi) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < multi->machine_count; ++i) {
        json *object = berth_target__json_object(arena);
        put_text(arena, object, "name", multi->machines[i].name);
        put_text(arena, object, "host", multi->devices[multi->machines[i].host].name);
        berth_target__json_push(arena, array, object);
    }
    return array;
}

static json *kind_json(berth_arena *arena, const char *kind) {
    json *object = berth_target__json_object(arena);
    put_text(arena, object, "kind", kind);
    return object;
}

static json *pins_json(berth_arena *arena, const berth_multi_target *multi) {
    json *array = berth_target__json_array(arena);
    for (uint32_t i = 0; i < multi->pin_count; ++i) {
        json *object = berth_target__json_object(arena);
        put_text(arena, object, "match", multi->pins[i].match);
        put_text(arena, object, "device", multi->devices[multi->pins[i].device].name);
        berth_target__json_push(arena, array, object);
    }
    return array;
}

// `kernels`: only what kernels depend on.
static json *multi_json(berth_arena *arena, const berth_multi_target *multi, bool kernels) {
    json *object = berth_target__json_object(arena);
    put_text(arena, object, "kind", "multi");
    berth_target__json_set(arena, object, "devices", devices_json(arena, multi));
    put_text(arena, object, "default_device", multi->devices[multi->default_device].name);
    put_text(arena, object, "host", multi->devices[multi->host].name);
    berth_target__json_set(arena, object, "memories", memories_json(arena, multi));
    berth_target__json_set(arena, object, "links", links_json(arena, multi));
    if (multi->machine_count > 1)
        berth_target__json_set(arena, object, "machines", machines_json(arena, multi));
    if (kernels) return object;
    if (*multi->name) put_text(arena, object, "name", multi->name);
    berth_target__json_set(arena, object, "executor",
                           kind_json(arena, berth_executor_kind_name(multi->executor)));
    berth_target__json_set(arena, object, "runtime",
                           kind_json(arena, berth_runtime_kind_name(multi->runtime)));
    if (multi->pin_count) berth_target__json_set(arena, object, "pins", pins_json(arena, multi));
    json *budgets = berth_target__json_object(arena);
    for (uint32_t i = 0; i < multi->memory_count; ++i)
        if (multi->memories[i].budget_bytes != multi->memories[i].capacity_bytes)
            put_int(arena, budgets, multi->memories[i].name, multi->memories[i].budget_bytes);
    if (budgets->members.count) berth_target__json_set(arena, object, "budgets", budgets);
    return object;
}

void berth_target__canonicalise(berth_arena *arena, berth_multi_target *multi) {
    const char *kernels = berth_target__json_print(arena, multi_json(arena, multi, true), 0);
    multi->kernel_hash = berth_hash128_of(kernels, strlen(kernels));
    multi->canonical = berth_target__json_print(arena, multi_json(arena, multi, false), 0);
    multi->hash = berth_hash128_of(multi->canonical, strlen(multi->canonical));
}

json *berth_target__multi_json(berth_arena *arena, const berth_multi_target *multi) {
    return multi_json(arena, multi, false);
}

const char *berth_target_print_json(berth_arena *arena, const berth_multi_target *target,
                                    int indent) {
    return berth_target__json_print(arena, multi_json(arena, target, false), indent);
}

bool berth_multi_target_equal(const berth_multi_target *a, const berth_multi_target *b) {
    return strcmp(a->canonical, b->canonical) == 0;
}

const char *berth_target_print_short(berth_arena *arena, const berth_multi_target *target) {
    berth_strbuf out = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < target->device_count; ++i) {
        const berth_target_device *device = &target->devices[i];
        if (device->host_only) continue;
        if (out.length) berth_strbuf_add(&out, ", ");
        berth_strbuf_add(&out, device->name);
        const char *kind = berth_device_kind_name(device->target->kind);
        if (strncmp(device->name, kind, strlen(kind)) != 0) berth_strbuf_addf(&out, " %s", kind);
        if (*device->target->arch) berth_strbuf_addf(&out, " -arch=%s", device->target->arch);
        if (*device->target->cpu) berth_strbuf_addf(&out, " -cpu=%s", device->target->cpu);
        if (device->target->cores)
            berth_strbuf_addf(&out, " -cores=%lld", (long long)device->target->cores);
    }
    berth_strbuf_addf(&out, ", host=%s", target->devices[target->host].name);
    return berth_strbuf_text(&out);
}
