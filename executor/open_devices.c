#include "executor/open_devices.h"

#include <string.h>

#include "devices/device.h"
#include "devices/registry.h"
#include "executor/device_choice.h"
#include "executor/session_private.h"

struct berth_open_device {
    berth_open_device *next;
    const char *kind;
    berth_device_choice choice;
    berth_driver *driver;
    berth_device *device;
};

// Inside berth_arena_try of the devices' arena and of `scratch`.
static berth_status open_device(berth_open_devices *devices, const berth_program *program,
                                uint32_t index, berth_arena *scratch, berth_device **out_device) {
    const berth_program_device *wanted = &program->devices[index];
    berth_device_choice choice;
    BERTH_TRY(berth_device_choose(berth_allocator_system(), program, index, scratch, &choice));
    for (berth_open_device *d = devices->first; d; d = d->next)
        if (strcmp(d->kind, wanted->kind) == 0 && berth_device_choice_equal(&d->choice, &choice)) {
            *out_device = d->device;
            return BERTH_OK;
        }
    berth_allocator allocator = berth_allocator_system();
    BERTH_TRY(berth_device_choose(allocator, program, index, devices->arena, &choice));
    berth_open_device *made = berth_arena_new(devices->arena, berth_open_device);
    made->kind = berth_arena_strdup(devices->arena, wanted->kind);
    made->choice = choice;
    BERTH_TRY(berth_driver_open(wanted->kind, allocator, &made->driver));
    berth_device_options options = {.thread_count = devices->thread_count,
                                    .cache_folder = devices->cache_folder,
                                    .attributes = choice.attributes,
                                    .profile = devices->profile};
    berth_status status = berth_device_open(made->driver, choice.ordinal, &options, &made->device);
    if (status) {
        berth_driver_close(made->driver);
        return berth_status_prefix(status, "device \"%s\"", wanted->name);
    }
    made->next = devices->first;
    devices->first = made;
    *out_device = made->device;
    return BERTH_OK;
}

typedef struct session_job {
    berth_open_devices *devices;
    const berth_program *program;
    berth_session *base;
    berth_arena *scratch;
    berth_session **out_session;
} session_job;

static berth_status open_session(void *user) {
    const session_job *job = user;
    const berth_program *program = job->program;
    berth_session_binding *bindings =
        berth_arena_new_array(job->scratch, berth_session_binding, program->device_count + 1);
    berth_session_options options = {.bindings = bindings,
                                     .workspaces = &job->devices->workspaces,
                                     .profile = job->devices->profile,
                                     .base = job->base,
                                     .binds = job->devices->binds,
                                     .verified = job->devices->verified};
    for (uint32_t d = 0; d < program->device_count && !job->base; ++d) {
        if (!berth_executor__is_used(program, d)) continue;
        berth_session_binding *binding = &bindings[options.binding_count++];
        *binding = (berth_session_binding){.name = program->devices[d].name};
        BERTH_TRY(open_device(job->devices, program, d, job->scratch, &binding->device));
    }
    return berth_session_open(berth_allocator_system(), program, &options, job->out_session);
}

// Device choices are made in `scratch`, and kept in the devices' arena where one is opened.
static berth_status open_in_scratch(void *user) {
    session_job *job = user;
    return berth_arena_try(job->scratch, open_session, job);
}

berth_status berth_open_devices_session(berth_open_devices *devices, const berth_program *program,
                                        berth_session *base, berth_arena *scratch,
                                        berth_session **out_session) {
    session_job job = {devices, program, base, scratch, out_session};
    *out_session = NULL;
    return berth_arena_try(devices->arena, open_in_scratch, &job);
}

void berth_open_devices_close(berth_open_devices *devices) {
    berth_workspaces_close(&devices->workspaces);
    berth_workspaces_close(&devices->blocks);
    for (berth_open_device *d = devices->first; d; d = d->next) {
        berth_device_close(d->device);
        berth_driver_close(d->driver);
    }
    devices->first = NULL;
}
