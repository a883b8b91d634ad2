// Public list of devices (<berth/device.h>).
#include <berth/device.h>

#include "base/arena.h"
#include "devices/library.h"
#include "devices/registry.h"

struct berth_device_list {
    berth_arena *arena;  // of this struct
    berth_device_facts *devices;
    uint32_t device_count;
    berth_driver_facts *drivers;
    uint32_t driver_count;
};

typedef struct list_job {
    berth_arena *arena;
    berth_device_list *list;
} list_job;

static const berth_memory_facts *const *memories_of(berth_arena *arena,
                                                    const berth_device_info *info) {
    const berth_memory_facts **list =
        berth_arena_new_array(arena, const berth_memory_facts *, info->memory_count);
    for (uint32_t i = 0; i < info->memory_count; ++i) {
        const berth_memory_info *memory = &info->memories[i];
        berth_memory_facts *facts = berth_arena_new(arena, berth_memory_facts);
        *facts = (berth_memory_facts){.scope = memory->scope,
                                      .capacity_bytes = memory->capacity_bytes,
                                      .alignment_bytes = memory->alignment_bytes,
                                      .host_visible = memory->host_visible};
        list[i] = facts;
    }
    return list;
}

static void add_devices(berth_device_list *list, const berth_driver_report *report) {
    for (uint32_t d = 0; d < report->device_count; ++d) {
        const berth_device_info *info = &report->devices[d];
        list->devices[list->device_count++] = (berth_device_facts){
            .device = berth_arena_printf(list->arena, "%s:%u", report->kind, info->ordinal),
            .kind = report->kind,
            .ordinal = info->ordinal,
            .name = info->name,
            .vendor = info->vendor,
            .driver_version = info->driver_version,
            .memory_bytes = info->memory_count ? info->memories[0].capacity_bytes : 0,
            .compute_units = info->compute_units,
            .features = info->features,
            .max_group_size = info->max_group_size,
            .local_memory_bytes = info->local_memory_bytes,
            .cache_bytes = {info->cache_bytes[0], info->cache_bytes[1], info->cache_bytes[2]},
            .shares_host_memory =
                info->unified || (info->memory_count && info->memories[0].host_visible),
            .memories = memories_of(list->arena, info),
            .memory_count = info->memory_count,
            .max_bindings = info->max_bindings ? info->max_bindings : BERTH_DEVICE_MAX_BINDINGS};
    }
}

static berth_status make_list(void *user) {
    list_job *job = user;
    berth_driver_report *reports = NULL;
    uint32_t count = 0, device_count = 0;
    BERTH_TRY(berth_driver_report_all(job->arena, berth_allocator_system(), &reports, &count));
    berth_device_list *list = job->list = berth_arena_new(job->arena, berth_device_list);
    list->arena = job->arena;
    list->driver_count = count;
    list->drivers = berth_arena_new_array(job->arena, berth_driver_facts, count);
    for (uint32_t i = 0; i < count; ++i) device_count += reports[i].device_count;
    list->devices = berth_arena_new_array(job->arena, berth_device_facts, device_count);
    for (uint32_t i = 0; i < count; ++i) {
        list->drivers[i] = (berth_driver_facts){.kind = reports[i].kind,
                                                .description = reports[i].description,
                                                .missing = reports[i].reason,
                                                .library = reports[i].library,
                                                .lacking = reports[i].lacking};
        add_devices(list, &reports[i]);
    }
    return BERTH_OK;
}

berth_status berth_device_list_create(berth_device_list **out_list) {
    *out_list = NULL;
    list_job job = {NULL, NULL};
    BERTH_TRY(berth_arena_make(make_list, &job, &job.arena));
    *out_list = job.list;
    return BERTH_OK;
}

void berth_device_list_free(berth_device_list *list) {
    if (list) berth_arena_destroy(list->arena);
}

uint32_t berth_device_list_count(const berth_device_list *list) {
    return list->device_count;
}

const berth_device_facts *berth_device_list_at(const berth_device_list *list, uint32_t index) {
    return index < list->device_count ? &list->devices[index] : NULL;
}

uint32_t berth_device_list_driver_count(const berth_device_list *list) {
    return list->driver_count;
}

const berth_driver_facts *berth_device_list_driver_at(const berth_device_list *list,
                                                      uint32_t index) {
    return index < list->driver_count ? &list->drivers[index] : NULL;
}
