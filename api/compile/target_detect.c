// This machine, or another one's topology, as a target (<berth/target.h>).
#include <berth/target.h>
#include <string.h>

#include "base/file.h"
#include "toolkit/measure.h"
#include "toolkit/model.h"

struct berth_target_description {
    berth_arena *arena;  // of this struct
    const char *json;
};

typedef struct detect_job {
    berth_arena *arena;
    berth_detect_settings settings;
    berth_target_description *description;
} detect_job;

static void write_message(void *state, berth_log_level level, const char *message) {
    const berth_detect_settings *settings = state;
    if (settings->on_message && level != BERTH_LOG_DEBUG)
        settings->on_message(settings->user, (berth_message_level)level, message);
}

static berth_status describe_other(detect_job *job, const char **out_json) {
    const size_t limit_bytes = (size_t)16 << 20;
    const char *path = job->settings.topology;
    char *data = NULL;
    size_t size_bytes = 0;
    berth_topology *topology = NULL;
    BERTH_TRY(berth_file_read(job->arena, path, limit_bytes, &data, &size_bytes));
    BERTH_TRY(berth_status_prefix(berth_topology_read(job->arena, data, size_bytes, &topology),
                                  "\"%s\"", path));
    const berth_machine_description description = {.name = job->settings.name,
                                                   .topology = topology};
    return berth_machine_describe(job->arena, &description, out_json);
}

// Devices that work in the host's memory need no memory of their own and no copies.
static void share_memory(berth_arena *arena, berth_machine_facts *facts) {
    berth_machine_device *devices =
        berth_arena_new_array(arena, berth_machine_device, facts->device_count);
    for (uint32_t i = 0; i < facts->device_count; ++i) {
        devices[i] = facts->devices[i];
        devices[i].shares_host_memory = devices[i].in_host_memory;
    }
    facts->devices = devices;
}

static berth_status describe_this(detect_job *job, const char **out_json) {
    berth_detect_settings *settings = &job->settings;
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_local(job->arena, &facts));
    share_memory(job->arena, &facts);
    berth_topology *topology = berth_arena_new(job->arena, berth_topology);
    BERTH_TRY(berth_topology_here(false, topology));
    berth_machine_description description = {
        .name = settings->name, .topology = topology, .facts = &facts};
    const berth_measure_options options = {.cache_folder = settings->cache_folder,
                                           .progress = settings->on_begin,
                                           .user = settings->user,
                                           .log = {write_message, settings}};
    if (!settings->no_measure) BERTH_TRY(berth_measure_machine(job->arena, &options, &description));
    return berth_machine_describe(job->arena, &description, out_json);
}

static berth_status detect(void *user) {
    detect_job *job = user;
    berth_target_description *description = berth_arena_new(job->arena, berth_target_description);
    description->arena = job->arena;
    BERTH_TRY(job->settings.topology ? describe_other(job, &description->json)
                                     : describe_this(job, &description->json));
    job->description = description;
    return BERTH_OK;
}

berth_status berth_target_detect(const berth_detect_settings *settings,
                                 berth_target_description **out_description) {
    *out_description = NULL;
    detect_job job = {.arena = NULL};
    if (settings &&
        (settings->size_bytes < sizeof(size_t) || settings->size_bytes > sizeof(*settings)))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_detect_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_detect_settings), %zu in this version",
                                 settings->size_bytes, sizeof(*settings));
    if (settings) memcpy(&job.settings, settings, settings->size_bytes);
    BERTH_TRY(berth_arena_make(detect, &job, &job.arena));
    *out_description = job.description;
    return BERTH_OK;
}

void berth_target_description_free(berth_target_description *description) {
    if (description) berth_arena_destroy(description->arena);
}

const char *berth_target_description_json(const berth_target_description *description) {
    return description->json;
}
