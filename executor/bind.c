// Binding of a program's virtual devices to physical ones, their queues and their code.
#include <string.h>

#include "base/str.h"
#include "executor/session_private.h"

static const berth_session_binding *find_binding(const berth_session *session, const char *name) {
    for (uint32_t i = 0; i < session->options.binding_count; ++i)
        if (strcmp(session->options.bindings[i].name, name) == 0)
            return &session->options.bindings[i];
    return NULL;
}

static berth_status check_bindings(const berth_session *session) {
    const berth_program *program = session->program;
    // They were chosen for the first plan; or for several programs, where berth_turns_open has checked them.
    if (session->plan || session->options.turns) return BERTH_OK;
    for (uint32_t i = 0; i < session->options.binding_count; ++i) {
        const char *name = session->options.bindings[i].name;
        bool found = false;
        for (uint32_t d = 0; d < program->device_count && !found; ++d)
            found = strcmp(program->devices[d].name, name) == 0;
        if (found) continue;
        berth_strbuf names = berth_strbuf_make(session->arena);
        for (uint32_t d = 0; d < program->device_count; ++d)
            berth_strbuf_addf(&names, d ? ", \"%s\"" : "\"%s\"", program->devices[d].name);
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "a binding names \"%s\", which is no device of the program; it has %s", name,
            berth_strbuf_text(&names));
    }
    return BERTH_OK;
}

static berth_status absent(const berth_session *session, const berth_program_device *device,
                           uint32_t ordinal, berth_driver *driver) {
    uint32_t count = berth_driver_device_count(driver);
    berth_strbuf names = berth_strbuf_make(session->arena);
    for (uint32_t i = 0; i < count; ++i) {
        berth_device_info info;
        berth_status status = berth_driver_device_info(driver, i, &info);
        if (!status)
            berth_strbuf_addf(&names, "%s%s:%u \"%s\"", i ? ", " : ": ", device->kind, i,
                              info.name);
        berth_status_free(status);
    }
    return berth_status_make(
        BERTH_UNAVAILABLE,
        "device \"%s\" of the program is not here: it needs %s device %u, and this machine has "
        "%u%s",
        device->name, device->kind, ordinal, count, berth_strbuf_text(&names));
}

// One driver per kind serves all of the session's devices of that kind.
static berth_status open_driver(berth_session *session, const char *kind,
                                berth_driver **out_driver) {
    if (session->options.turns)
        return berth_turns__driver(session->options.turns, kind, out_driver);
    for (uint32_t i = 0; i < session->driver_count; ++i) {
        if (strcmp(berth_driver_kind(session->drivers[i]), kind) != 0) continue;
        *out_driver = session->drivers[i];
        return BERTH_OK;
    }
    BERTH_TRY(berth_driver_open(kind, session->allocator, out_driver));
    session->drivers[session->driver_count++] = *out_driver;  // close_devices closes it
    return BERTH_OK;
}

bool berth_executor__has_steps(const berth_program *program, const berth_program_device *device) {
    for (uint32_t i = 0; i < program->step_count; ++i)
        if (strcmp(program->devices[program->steps[i].device].kind, device->kind) == 0) return true;
    return false;
}

bool berth_executor__is_used(const berth_program *program, uint32_t device) {
    for (uint32_t i = 0; i < program->step_count; ++i)
        if (program->steps[i].device == device) return true;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].device == device) return true;
    return false;
}

bool berth_executor__has_peers(const berth_program *program, const char *kind) {
    for (uint32_t i = 0; i < program->step_count; ++i) {
        uint32_t peer = berth_program_copy_peer(program, &program->steps[i]);
        if (peer != BERTH_NO_INDEX && strcmp(program->devices[peer].kind, kind) == 0) return true;
    }
    return false;
}

// One that this session has opened, or one of those with which it takes turns; NULL = none.
static const berth_session_physical *find_open(const berth_session *session, const char *kind,
                                               const berth_device_choice *choice,
                                               const void *queue) {
    if (session->options.turns)
        return berth_turns__find_device(session->options.turns, kind, choice, queue);
    for (uint32_t i = 0; i < session->physical_count && !queue; ++i) {
        const berth_session_physical *other = &session->physicals[i];
        if (other->owned && !other->of_queue && strcmp(other->kind, kind) == 0 &&
            berth_device_choice_equal(&other->choice, choice))
            return other;
    }
    return NULL;
}

// The index of a physical device; one that the session does not have yet is added.
static uint32_t add_physical(berth_session *session, const berth_session_physical *physical) {
    for (uint32_t i = 0; i < session->physical_count; ++i)
        if (session->physicals[i].device == physical->device) return i;
    session->physicals[session->physical_count] = *physical;
    return session->physical_count++;
}

static berth_status open_with(berth_session *session, berth_driver *driver,
                              const berth_program_device *device, berth_device_choice choice,
                              void *queue, uint32_t *out_index) {
    struct berth_turns *turns = session->options.turns;
    // A device that only holds memory (inputs and outputs for another one) needs no threads.
    berth_turns_kind all = {.works = berth_executor__has_steps(session->program, device),
                            .has_peers = berth_executor__has_peers(session->program, device->kind)};
    if (turns && session->plan == 0) all = berth_turns__kind(turns, device->kind);
    const berth_device_options options = {.thread_count =
                                              all.works ? session->options.thread_count : 1,
                                          .threads = all.works ? session->options.threads : NULL,
                                          .queue = queue,
                                          .profile = session->options.profile,
                                          .peers = all.has_peers,
                                          .cache_folder = session->options.cache_folder,
                                          .attributes = choice.attributes};
    const berth_session_physical *opened = NULL;
    berth_session_physical own = {
        .kind = device->kind, .choice = choice, .owned = true, .of_queue = queue != NULL};
    if (turns) {
        BERTH_TRY(berth_turns__open_device(turns, driver, &choice, &options, &opened));
    } else {
        BERTH_TRY(berth_device_open(driver, choice.ordinal, &options, &own.device));
        opened = &own;
    }
    *out_index = add_physical(session, opened);
    return BERTH_OK;
}

static berth_status open_physical(berth_session *session, const berth_program_device *device,
                                  berth_device_choice choice, void *queue, uint32_t *out_index) {
    const berth_session_physical *open = find_open(session, device->kind, &choice, queue);
    if (open) {
        *out_index = add_physical(session, open);
        return BERTH_OK;
    }
    berth_driver *driver = NULL;
    berth_status status = open_driver(session, device->kind, &driver);
    if (berth_status_code(status) == BERTH_NOT_FOUND) {  // no driver, so the device is not here
        berth_status missing =
            berth_status_make(BERTH_UNAVAILABLE, "%s", berth_status_message(status));
        berth_status_free(status);
        status = missing;
    }
    if (status) return berth_status_prefix(status, "device \"%s\" of the program", device->name);
    if (choice.ordinal >= berth_driver_device_count(driver))
        return absent(session, device, choice.ordinal, driver);
    return berth_status_prefix(open_with(session, driver, device, choice, queue, out_index),
                               "device \"%s\" of the program", device->name);
}

static berth_status use_callers(berth_session *session, const berth_program_device *device,
                                berth_device *given, uint32_t *out_index) {
    if (strcmp(berth_device_kind_text(given), device->kind) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "device \"%s\" of the program is bound to a device of kind %s",
                                 device->name, berth_device_kind_text(given));
    *out_index = session->physical_count++;
    session->physicals[*out_index] =
        (berth_session_physical){.kind = device->kind, .device = given};
    return BERTH_OK;
}

// The device that a program's is, and what its driver is told.
static berth_status choose(berth_session *session, uint32_t device,
                           const berth_session_binding *binding, berth_device_choice *out_choice) {
    const char *more = binding ? binding->attributes : NULL;
    *out_choice = (berth_device_choice){.ordinal = binding ? binding->ordinal : 0};
    if (binding && !more) return BERTH_OK;
    BERTH_TRY(berth_device_choose(session->allocator, session->program, device, session->arena,
                                  out_choice));
    if (more)
        out_choice->attributes =
            out_choice->attributes
                ? berth_arena_printf(session->arena, "%s %s", out_choice->attributes, more)
                : more;
    return BERTH_OK;
}

static void use_devices_of_base(berth_session *session) {
    const berth_session *base = session->options.base;
    for (; session->physical_count < base->physical_count; ++session->physical_count) {
        session->physicals[session->physical_count] = base->physicals[session->physical_count];
        session->physicals[session->physical_count].owned = false;
    }
    for (uint32_t d = 0; d < session->program->device_count; ++d) {
        session->devices[d].physical = base->devices[d].physical;
        session->devices[d].device = base->devices[d].device;
    }
}

// Direct copies need a way between the two devices that the program's are here.
static berth_status open_peers(const berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        uint32_t peer = berth_program_copy_peer(program, step);
        if (peer == BERTH_NO_INDEX) continue;
        berth_status status = berth_device_open_peer(session->devices[step->device].device,
                                                     session->devices[peer].device);
        if (status)
            return berth_status_prefix(status,
                                       "step \"%s\" copies from \"%s\" to \"%s\" over a link that "
                                       "is not here (without it in "
                                       "the target, the host is the way)",
                                       step->name, program->devices[step->device].name,
                                       program->devices[peer].name);
    }
    return BERTH_OK;
}

berth_status berth_executor__open_devices(berth_session *session) {
    const berth_program *program = session->program;
    session->physicals =
        berth_arena_new_array(session->arena, berth_session_physical, program->device_count);
    session->devices =
        berth_arena_new_array(session->arena, berth_session_device, program->device_count);
    session->queues =
        berth_arena_new_array(session->arena, berth_session_queue, program->queue_count);
    session->drivers = berth_arena_new_array(session->arena, berth_driver *, program->device_count);
    if (session->options.base) {
        use_devices_of_base(session);
        return BERTH_OK;
    }
    BERTH_TRY(check_bindings(session));
    for (uint32_t d = 0; d < program->device_count; ++d) {
        const berth_program_device *device = &program->devices[d];
        const berth_session_binding *binding = find_binding(session, device->name);
        berth_session_device *bound = &session->devices[d];
        if (!binding && !berth_executor__is_used(program, d)) continue;
        if (binding && binding->device) {
            BERTH_TRY(use_callers(session, device, binding->device, &bound->physical));
        } else {
            berth_device_choice choice;
            BERTH_TRY(choose(session, d, binding, &choice));
            void *queue = binding ? binding->queue : NULL;
            BERTH_TRY(open_physical(session, device, choice, queue, &bound->physical));
        }
        bound->device = session->physicals[bound->physical].device;
    }
    return open_peers(session);
}

void berth_executor__close_devices(berth_session *session) {
    for (uint32_t d = 0; session->devices && d < session->program->device_count; ++d) {
        berth_session_device *device = &session->devices[d];
        bool own = device->executables && !session->options.base;
        for (uint32_t e = 0; own && e < session->program->executable_count; ++e)
            berth_executable_destroy(device->executables[e]);
    }
    for (uint32_t i = 0; i < session->physical_count; ++i)
        if (session->physicals[i].owned) berth_device_close(session->physicals[i].device);
    for (uint32_t i = 0; i < session->driver_count; ++i) berth_driver_close(session->drivers[i]);
    session->driver_count = 0;
    session->physical_count = 0;
}

// ---- queues ----

// Room for all batches of a run and the one before that is just ending.
static berth_status reserve(const berth_session *session, uint32_t queue) {
    uint32_t command_count = 0;
    uint32_t wait_count = 0;
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i) {
        const berth_schedule_batch *batch = &session->schedule.batches[i];
        if (batch->queue != queue) continue;
        if (batch->step_count > command_count) command_count = batch->step_count;
        if (batch->wait_count > wait_count) wait_count = batch->wait_count;
    }
    return berth_queue_reserve(session->queues[queue].queue, session->schedule.values[queue] + 1,
                               command_count + 2, wait_count + 2);  // shared memory: there and back
}

// The lock is held only while the pointer changes hands: cancel may look at it from another thread.
static berth_semaphore *exchange_semaphore(berth_session *session, uint32_t queue,
                                           berth_semaphore *semaphore) {
    pthread_mutex_lock(&session->lock);
    berth_semaphore *old = session->queues[queue].semaphore;
    session->queues[queue].semaphore = semaphore;
    pthread_mutex_unlock(&session->lock);
    return old;
}

berth_status berth_executor__open_queues(berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t q = 0; q < program->queue_count; ++q) {
        if (session->schedule.values[q] == 0) continue;
        berth_device *device = session->devices[program->queues[q].device].device;
        BERTH_TRY(berth_queue_open(device, program->queues[q].kind, &session->queues[q].queue));
        BERTH_TRY(reserve(session, q));
        berth_semaphore *semaphore = NULL;
        BERTH_TRY(berth_semaphore_create(session->allocator, 0, &semaphore));
        exchange_semaphore(session, q, semaphore);
    }
    session->submitted_runs = 0;
    return BERTH_OK;
}

void berth_executor__fail_timelines(berth_session *session, const char *reason) {
    for (uint32_t q = 0; q < session->program->queue_count; ++q) {
        pthread_mutex_lock(&session->lock);
        berth_semaphore *semaphore = session->queues[q].semaphore;
        if (semaphore) berth_semaphore_retain(semaphore);
        pthread_mutex_unlock(&session->lock);
        if (!semaphore) continue;
        berth_semaphore_fail(semaphore, berth_status_make(BERTH_CANCELLED, "%s", reason));
        berth_semaphore_release(semaphore);
    }
}

void berth_executor__close_queues(berth_session *session) {
    if (!session->queues) return;
    berth_executor__fail_timelines(session, "the session gave up this run");
    for (uint32_t q = 0; q < session->program->queue_count; ++q) {
        berth_queue_destroy(session->queues[q].queue);
        session->queues[q].queue = NULL;
    }
    berth_session_unbind(session);  // lists keep the session's own buffers
    for (uint32_t i = 0; session->batches && i < session->schedule.batch_count; ++i) {
        berth_command_list_destroy(session->batches[i].list);
        session->batches[i].list = NULL;
    }
    for (uint32_t q = 0; q < session->program->queue_count; ++q) {
        berth_semaphore *semaphore = exchange_semaphore(session, q, NULL);
        if (semaphore) berth_semaphore_release(semaphore);
    }
}

// ---- code ----

static berth_status load_kernel(berth_session *session, berth_session_device *device,
                                uint32_t index, bool *known) {
    const berth_program_kernel *kernel = &session->program->kernels[index];
    berth_executable **executable = &device->executables[kernel->executable];
    if (!*executable)
        BERTH_TRY(berth_executable_load(
            device->device, &session->program->executables[kernel->executable], executable));
    BERTH_TRY(berth_executable_find(*executable, kernel, &device->kernels[index]));
    *known = true;
    return BERTH_OK;
}

berth_status berth_executor__load_code(berth_session *session) {
    const berth_program *program = session->program;
    if (session->options.base) {
        for (uint32_t d = 0; d < program->device_count; ++d) {
            session->devices[d].executables = session->options.base->devices[d].executables;
            session->devices[d].kernels = session->options.base->devices[d].kernels;
        }
        return BERTH_OK;
    }
    bool *known = berth_arena_array(session->arena, program->device_count, program->kernel_count);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        session->devices[d].executables =
            berth_arena_new_array(session->arena, berth_executable *, program->executable_count);
        session->devices[d].kernels =
            berth_arena_new_array(session->arena, uint32_t, program->kernel_count);
    }
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        if (step->kind != BERTH_STEP_DISPATCH) continue;
        bool *seen = &known[(size_t)step->device * program->kernel_count + step->kernel];
        if (*seen) continue;
        berth_status status =
            load_kernel(session, &session->devices[step->device], step->kernel, seen);
        if (status)
            return berth_status_prefix(status, "code of \"%s\" for device \"%s\"", step->name,
                                       program->devices[step->device].name);
    }
    return BERTH_OK;
}
