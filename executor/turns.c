#include "executor/turns.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "executor/session_private.h"
#include "executor/workspaces.h"

typedef struct turns_driver {
    struct turns_driver *next;
    berth_driver *driver;
} turns_driver;

// A device that the sessions use.
typedef struct turns_device {
    struct turns_device *next;
    berth_session_physical physical;
    const void *queue;  // of the application, of the device; NULL = none
    char attributes[];  // of the choice
} turns_device;

// The largest n-th pool of workspace that a program has in a memory of a device.
typedef struct turns_pool {
    const char *device;  // as the programs call it
    const char *scope;
    uint32_t number;
    uint64_t size_bytes;
} turns_pool;

struct berth_turns {
    berth_allocator allocator;
    berth_arena *arena;
    uint32_t session_count;  // that are open
    turns_driver *drivers;
    turns_device *devices;
    BERTH_VEC(turns_pool) pools;        // of all programs
    BERTH_VEC(berth_turns_kind) kinds;  // of devices that programs have
    berth_workspaces workspaces;

    // Of what follows; nothing is called under it.
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool lock_made;
    bool busy;                        // a session has its turn
    berth_session *last;              // that had one, and is still open
    const berth_session *recovering;  // by another one, at the beginning of its turn
};

// ---- what the programs need ---------------------------------------------------------------------

// How many pools before this one are workspace in the same memory.
static uint32_t pool_number(const berth_program *program, uint32_t index) {
    const berth_program_pool *pool = &program->pools[index];
    uint32_t number = 0;
    for (uint32_t i = 0; i < index; ++i) {
        const berth_program_pool *other = &program->pools[i];
        number += other->usage == BERTH_POOL_WORKSPACE && other->device == pool->device &&
                  strcmp(other->scope, pool->scope) == 0;
    }
    return number;
}

static turns_pool *find_pool(const berth_turns *turns, const char *device, const char *scope,
                             uint32_t number) {
    for (uint32_t i = 0; i < turns->pools.count; ++i) {
        turns_pool *p = &turns->pools.data[i];
        if (p->number == number && strcmp(p->device, device) == 0 && strcmp(p->scope, scope) == 0)
            return p;
    }
    return NULL;
}

static void add_pool(berth_turns *turns, const berth_program *program, uint32_t index) {
    const berth_program_pool *pool = &program->pools[index];
    const char *device = program->devices[pool->device].name;
    uint32_t number = pool_number(program, index);
    if (pool->usage != BERTH_POOL_WORKSPACE || !berth_bits_is_empty(pool->shared_with)) return;
    turns_pool *known = find_pool(turns, device, pool->scope, number);
    if (known) {
        if (pool->size_bytes > known->size_bytes) known->size_bytes = pool->size_bytes;
        return;
    }
    const turns_pool made = {berth_arena_strdup(turns->arena, device),
                             berth_arena_strdup(turns->arena, pool->scope), number,
                             pool->size_bytes};
    berth_vec_push(turns->arena, &turns->pools, made);
}

berth_turns_kind berth_turns__kind(const berth_turns *turns, const char *kind) {
    for (uint32_t i = 0; i < turns->kinds.count; ++i)
        if (strcmp(turns->kinds.data[i].kind, kind) == 0) return turns->kinds.data[i];
    return (berth_turns_kind){.kind = kind};
}

// A later entry of a kind does not count, so each has what all programs need.
static void add_kind(berth_turns *turns, const berth_program *const *programs, uint32_t count,
                     const berth_program_device *device) {
    berth_turns_kind kind = {.kind = berth_arena_strdup(turns->arena, device->kind)};
    for (uint32_t i = 0; i < count; ++i) {
        kind.works |= berth_executor__has_steps(programs[i], device);
        kind.has_peers |= berth_executor__has_peers(programs[i], device->kind);
    }
    berth_vec_push(turns->arena, &turns->kinds, kind);
}

// ---- devices and workspace ----------------------------------------------------------------------

berth_status berth_turns__driver(berth_turns *turns, const char *kind, berth_driver **out_driver) {
    for (turns_driver *d = turns->drivers; d; d = d->next) {
        if (strcmp(berth_driver_kind(d->driver), kind) != 0) continue;
        *out_driver = d->driver;
        return BERTH_OK;
    }
    turns_driver *made = berth_calloc(turns->allocator, 1, sizeof(*made));
    if (!made) return berth_status_oom();
    berth_status status = berth_driver_open(kind, turns->allocator, &made->driver);
    if (status) {
        berth_free(turns->allocator, made, sizeof(*made));
        return status;
    }
    made->next = turns->drivers;
    turns->drivers = made;
    *out_driver = made->driver;
    return BERTH_OK;
}

const berth_session_physical *berth_turns__find_device(const berth_turns *turns, const char *kind,
                                                       const berth_device_choice *choice,
                                                       const void *queue) {
    for (const turns_device *d = turns->devices; d; d = d->next)
        if (d->queue == queue && strcmp(d->physical.kind, kind) == 0 &&
            (queue || berth_device_choice_equal(&d->physical.choice, choice)))
            return &d->physical;
    return NULL;
}

static size_t device_bytes(const char *attributes) {
    return sizeof(turns_device) + (attributes ? strlen(attributes) + 1 : 0);
}

berth_status berth_turns__open_device(berth_turns *turns, berth_driver *driver,
                                      const berth_device_choice *choice,
                                      const berth_device_options *options,
                                      const berth_session_physical **out_physical) {
    const size_t size_bytes = device_bytes(choice->attributes);
    turns_device *made = berth_calloc(turns->allocator, 1, size_bytes);
    if (!made) return berth_status_oom();
    made->physical = (berth_session_physical){.kind = berth_driver_kind(driver),
                                              .choice.ordinal = choice->ordinal,
                                              .of_queue = options->queue != NULL};
    made->queue = options->queue;
    if (choice->attributes)
        made->physical.choice.attributes =
            memcpy(made->attributes, choice->attributes, size_bytes - sizeof(*made));
    berth_status status =
        berth_device_open(driver, choice->ordinal, options, &made->physical.device);
    if (status) {
        berth_free(turns->allocator, made, size_bytes);
        return status;
    }
    made->next = turns->devices;
    turns->devices = made;
    *out_physical = &made->physical;
    return BERTH_OK;
}

uint64_t berth_turns__pool_bytes(const berth_turns *turns, const berth_program *program,
                                 uint32_t pool) {
    const berth_program_pool *p = &program->pools[pool];
    const turns_pool *largest =
        find_pool(turns, program->devices[p->device].name, p->scope, pool_number(program, pool));
    return largest && largest->size_bytes > p->size_bytes ? largest->size_bytes : p->size_bytes;
}

// ---- turns --------------------------------------------------------------------------------------

// Waits until no session has its turn; with the lock. False: the deadline has come.
static bool wait_for_turn(berth_turns *turns, int64_t deadline_ns) {
    const struct timespec until = {(time_t)(deadline_ns / 1000000000),
                                   (long)(deadline_ns % 1000000000)};
    for (int error = 0; turns->busy;) {
        if (error == ETIMEDOUT) return false;
        error = deadline_ns == INT64_MAX
                    ? pthread_cond_wait(&turns->ended, &turns->lock)
                    : pthread_cond_timedwait(&turns->ended, &turns->lock, &until);
    }
    return true;
}

void berth_turns__end(berth_turns *turns) {
    pthread_mutex_lock(&turns->lock);
    turns->busy = false;
    pthread_cond_broadcast(&turns->ended);
    pthread_mutex_unlock(&turns->lock);
}

berth_status berth_turns__begin(berth_turns *turns, berth_session *session, int64_t timeout_ns) {
    const int64_t deadline_ns = berth_clock_deadline_ns(berth_clock_ns(), timeout_ns);
    pthread_mutex_lock(&turns->lock);
    const bool taken = wait_for_turn(turns, deadline_ns);
    berth_session *last = turns->last;
    if (taken) {
        turns->busy = true;
        turns->last = session;
        if (last && last != session && berth_executor__in_use(last)->broken)
            turns->recovering = last;
    }
    const bool recovers = taken && turns->recovering;
    pthread_mutex_unlock(&turns->lock);
    if (!taken)
        return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                                 "the run did not begin within %lld us: a session with the same "
                                 "workspace runs",
                                 (long long)(timeout_ns / 1000));
    // What a failed run has left running may still write to the workspace.
    berth_status status = BERTH_OK;
    if (recovers) {
        status = berth_session_recover(last);
        pthread_mutex_lock(&turns->lock);
        turns->recovering = NULL;
        pthread_cond_broadcast(&turns->ended);
        pthread_mutex_unlock(&turns->lock);
    }
    if (!status) return BERTH_OK;
    berth_turns__end(turns);
    return berth_status_prefix(status, "waiting for what the run before has left");
}

void berth_turns__forget(berth_turns *turns, const berth_session *session) {
    pthread_mutex_lock(&turns->lock);
    while (turns->recovering == session) pthread_cond_wait(&turns->ended, &turns->lock);
    if (turns->last == session) turns->last = NULL;
    pthread_mutex_unlock(&turns->lock);
}

// ---- opening and closing ------------------------------------------------------------------------

static void destroy(berth_turns *turns) {
    const berth_allocator allocator = turns->allocator;
    berth_workspaces_close(&turns->workspaces);
    for (turns_device *d = turns->devices, *next; d; d = next) {
        next = d->next;
        berth_device_close(d->physical.device);
        berth_free(allocator, d, device_bytes(d->physical.choice.attributes));
    }
    for (turns_driver *d = turns->drivers, *next; d; d = next) {
        next = d->next;
        berth_driver_close(d->driver);
        berth_free(allocator, d, sizeof(*d));
    }
    if (turns->lock_made) pthread_cond_destroy(&turns->ended);
    if (turns->lock_made) pthread_mutex_destroy(&turns->lock);
    berth_arena_destroy(turns->arena);
    berth_free(allocator, turns, sizeof(*turns));
}

void berth_turns__retain(berth_turns *turns) {
    pthread_mutex_lock(&turns->lock);
    turns->session_count++;
    pthread_mutex_unlock(&turns->lock);
}

void berth_turns__release(berth_turns *turns) {
    pthread_mutex_lock(&turns->lock);
    const bool last = --turns->session_count == 0;
    pthread_mutex_unlock(&turns->lock);
    if (last) destroy(turns);
}

static berth_status make_lock(berth_turns *turns) {
    pthread_condattr_t attributes;
    bool made = pthread_condattr_init(&attributes) == 0;
    if (made) {
        made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
               pthread_cond_init(&turns->ended, &attributes) == 0;
        pthread_condattr_destroy(&attributes);
    }
    if (!made) return berth_status_make(BERTH_OUT_OF_MEMORY, "the system gives no condition");
    if (pthread_mutex_init(&turns->lock, NULL) != 0) {
        pthread_cond_destroy(&turns->ended);
        return berth_status_make(BERTH_OUT_OF_MEMORY, "the system gives no mutex");
    }
    turns->lock_made = true;
    return BERTH_OK;
}

typedef struct opening {
    berth_turns *turns;
    const berth_program *const *programs;
    uint32_t count;
    const berth_session_options *options;
    berth_session **out_sessions;
} opening;

static bool has_device(const berth_program *program, const char *name) {
    for (uint32_t d = 0; d < program->device_count; ++d)
        if (strcmp(program->devices[d].name, name) == 0) return true;
    return false;
}

static berth_status check_bindings(const opening *o) {
    for (uint32_t b = 0; b < o->options->binding_count; ++b) {
        const char *name = o->options->bindings[b].name;
        bool found = false;
        for (uint32_t i = 0; i < o->count && !found; ++i) found = has_device(o->programs[i], name);
        if (!found)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "a binding names \"%s\", which is a device of no program",
                                     name);
    }
    return BERTH_OK;
}

static berth_status open_all(void *user) {
    const opening *o = user;
    BERTH_TRY(make_lock(o->turns));
    BERTH_TRY(check_bindings(o));
    for (uint32_t i = 0; i < o->count; ++i) BERTH_TRY(berth_program_verify(o->programs[i]));
    for (uint32_t i = 0; i < o->count; ++i) {
        const berth_program *program = o->programs[i];
        for (uint32_t p = 0; p < program->pool_count; ++p) add_pool(o->turns, program, p);
        for (uint32_t d = 0; d < program->device_count; ++d)
            add_kind(o->turns, o->programs, o->count, &program->devices[d]);
    }
    berth_session_options options = *o->options;
    options.turns = o->turns;
    options.workspaces = &o->turns->workspaces;
    for (uint32_t i = 0; i < o->count; ++i)
        BERTH_TRY(
            berth_session_open(o->turns->allocator, o->programs[i], &options, &o->out_sessions[i]));
    return BERTH_OK;
}

berth_status berth_turns_open(berth_allocator allocator, const berth_program *const *programs,
                              uint32_t count, const berth_session_options *options,
                              berth_session **out_sessions) {
    const berth_session_options defaults = {0};
    for (uint32_t i = 0; i < count; ++i) out_sessions[i] = NULL;
    if (count == 0) return berth_status_make(BERTH_INVALID_ARGUMENT, "no program to open");
    if (options && options->base)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "sessions that run in turns share with no other session");
    berth_turns *turns = berth_calloc(allocator, 1, sizeof(*turns));
    if (!turns) return berth_status_oom();
    turns->allocator = allocator;
    turns->session_count = 1;  // until all are open
    opening o = {turns, programs, count, options ? options : &defaults, out_sessions};
    berth_status status = berth_arena_create(allocator, &turns->arena);
    if (!status) status = berth_arena_try(turns->arena, open_all, &o);
    for (uint32_t i = 0; status && i < count; ++i) {
        berth_session_close(out_sessions[i]);
        out_sessions[i] = NULL;
    }
    if (turns->lock_made)
        berth_turns__release(turns);
    else
        destroy(turns);
    return status;
}

uint64_t berth_turns_workspace_bytes(berth_session *session) {
    berth_turns *turns = session->options.turns;
    return turns ? berth_workspaces_bytes(&turns->workspaces) : 0;
}
