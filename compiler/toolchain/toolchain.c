#include "compiler/toolchain/toolchain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/str.h"
#include "compiler/toolchain/cache.h"
#include "compiler/toolchain/find.h"
#include "compiler/toolchain/join.h"
#include "compiler/toolchain/process.h"

#define MAX_JOBS 64
#define MAX_MESSAGE_BYTES 4000
#define MAX_VERSION_BYTES 65536
#define POLL_NS 500000

typedef struct running {
    pid_t pid;  // 0 = free slot
    uint32_t unit;
    int64_t deadline_ns;
} running;

typedef struct compiled {
    const void *data;  // NULL = not yet
    uint64_t size_bytes;
} compiled;

typedef struct session {
    const berth_toolchain_options *options;
    berth_arena *arena;
    berth_toolchain_unit *given;
    uint32_t given_count;
    berth_joined joined;
    berth_toolchain_unit *units;  // of `joined`
    uint32_t count;
    berth_toolchain_image *image;
    const char *compiler;  // path
    const char *search_path;
    const char *flags;
    berth_hash128 *keys;
    compiled *objects;  // of units
    berth_cache cache;
    berth_work_folder folder;
    bool deferring;  // of the options' interrupt
    running slots[MAX_JOBS];
    uint32_t slot_count;
    uint32_t done;
} session;

static int64_t time_limit_ns(const session *s) {
    return s->options->time_limit_ns > 0 ? s->options->time_limit_ns : BERTH_COMPILER_TIME_LIMIT_NS;
}

static int64_t deadline_from_now(const session *s) {
    return berth_clock_deadline_ns(berth_clock_ns(), time_limit_ns(s));
}

// ---- processes ----------------------------------------------------------------------------------

typedef BERTH_VEC(char *) arguments;

static void add_argument(session *s, arguments *list, const char *text) {
    berth_vec_push(s->arena, list, berth_arena_strdup(s->arena, text));
}

static void add_flags(session *s, arguments *list) {
    for (const char *at = s->flags; *at;) {
        size_t length = strcspn(at, " ");
        const char *flag = berth_arena_strndup(s->arena, at, length);
        if (!s->options->foreign || strcmp(flag, "-w") != 0) add_argument(s, list, flag);
        at += length + strspn(at + length, " ");
    }
}

static berth_status start(session *s, arguments *list, const char *stdout_name,
                          const char *stderr_name, running *out_running) {
    berth_vec_push(s->arena, list, NULL);
    berth_command_line line = {s->compiler, list->data, s->search_path};
    out_running->deadline_ns = deadline_from_now(s);
    return berth_process__start(&s->folder, &line, stdout_name, stderr_name, s->arena,
                                &out_running->pid);
}

// Whether it has ended by itself. Errors: CANCELLED, DEADLINE_EXCEEDED (`what` says what it did).
static berth_status look_after(session *s, running *process, const char *what, bool *out_ended,
                               int *out_status) {
    *out_ended = false;
    if (berth_interrupt_pending(s->options->interrupt))
        return berth_status_make(BERTH_CANCELLED, "interrupted while kernels were compiled");
    berth_status status = berth_process__poll(process->pid, out_ended, out_status);
    if (*out_ended) process->pid = 0;
    if (status || *out_ended || berth_clock_ns() < process->deadline_ns) return status;
    berth_process__end(process->pid);
    process->pid = 0;
    return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                             "%s did not finish %s within %.3g s and was stopped (the time limit "
                             "of a compiler can be set)",
                             s->compiler, what, (double)time_limit_ns(s) / 1e9);
}

// Runs one process to its end, in the first slot.
static berth_status run_alone(session *s, arguments *list, const char *stdout_name,
                              const char *stderr_name, const char *what, int *out_status) {
    if (s->slot_count == 0) s->slot_count = 1;
    BERTH_TRY(start(s, list, stdout_name, stderr_name, &s->slots[0]));
    for (;;) {
        bool ended = false;
        BERTH_TRY(look_after(s, &s->slots[0], what, &ended, out_status));
        if (ended) return BERTH_OK;
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
}

static bool succeeded(int exit_status) {
    return WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0;
}

static void store(session *s, berth_hash128 key, berth_cache_form form, compiled object) {
    if (s->cache.fd < 0) return;
    berth_status status =
        berth_cache__store(&s->cache, key, form, object.data, (size_t)object.size_bytes);
    if (!status) return;
    berth_log_message(s->options->log, BERTH_LOG_WARNING, "kernel cache: %s",
                      berth_status_message(status));
    berth_status_free(status);
    berth_cache__close(&s->cache);  // one warning is enough
}

// ---- what code is compiled with -----------------------------------------------------------------

// The folder where compilers work, made when the first one is started.
static berth_status make_folder(session *s) {
    return s->folder.path
               ? BERTH_OK
               : berth_work_folder__make(s->arena, s->options->temporary_folder, &s->folder);
}

static berth_status ask_version(session *s, const char **out_version) {
    BERTH_TRY(make_folder(s));
    arguments list = {0};
    add_argument(s, &list, s->compiler);
    add_argument(s, &list, "--version");
    int exit_status = 0;
    BERTH_TRY(run_alone(s, &list, "version.txt", NULL, "saying its version", &exit_status));
    char *text = NULL;
    size_t size = 0;
    BERTH_TRY(berth_work_folder__read(&s->folder, s->arena, "version.txt", MAX_VERSION_BYTES, &text,
                                      &size));
    if (!succeeded(exit_status) || size == 0)
        return berth_status_make(BERTH_UNAVAILABLE,
                                 "\"%s --version\" does not say which compiler it is; is it one?",
                                 s->compiler);
    *out_version = text;
    return BERTH_OK;
}

// What a compiler says of itself is asked once and kept in the cache, until its file changes.
static berth_status read_version(session *s, const char **out_version) {
    berth_hash128 key;
    const void *kept = NULL;
    uint64_t size_bytes = 0;
    bool found = false;
    if (!berth_toolchain__identity(s->compiler, s->arena, &key)) return ask_version(s, out_version);
    BERTH_TRY(berth_cache__load(&s->cache, key, BERTH_CACHE_VERSION, s->arena, &kept, &size_bytes,
                                &found));
    if (found) {
        *out_version = berth_arena_strndup(s->arena, kept, (size_t)size_bytes);
        return BERTH_OK;
    }
    BERTH_TRY(ask_version(s, out_version));
    store(s, key, BERTH_CACHE_VERSION, (compiled){*out_version, strlen(*out_version)});
    return BERTH_OK;
}

// Keys of the units: what is compiled, how, and with what. The compiler is known by its version's
// text and its file.
static void make_keys(session *s, const char *version) {
    struct stat info = {0};
    if (stat(s->compiler, &info) != 0) memset(&info, 0, sizeof(info));
    const char *identity = berth_arena_printf(
        s->arena, "2|%s|%s|%lld|%lld.%09ld|%s|", version, s->compiler, (long long)info.st_size,
        (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, s->flags);
    for (uint32_t i = 0; i < s->count; ++i) {
        berth_strbuf text = berth_strbuf_make(s->arena);
        berth_strbuf_add(&text, identity);
        if (s->units[i].is_part)
            berth_strbuf_add_n(&text, (const char *)&s->options->library,
                               sizeof(s->options->library));
        berth_strbuf_add(&text, s->units[i].source);
        for (uint32_t k = 0; k < s->units[i].object_count; ++k) {
            const berth_object_code *object = &s->units[i].objects[k];
            berth_strbuf_add_n(&text, object->data, (size_t)object->size_bytes);
        }
        s->keys[i] = berth_hash128_of(text.data, text.length);
    }
}

// A single source goes to the shared object in one step: then its key is the image's.
static berth_hash128 image_key(const session *s) {
    return s->count == 1 ? s->keys[0] : berth_hash128_of(s->keys, s->count * sizeof(*s->keys));
}

// ---- compiling ----------------------------------------------------------------------------------

static const char *unit_name(const session *s, uint32_t unit, const char *extension) {
    return berth_arena_printf(s->arena, "%u.%s", unit, extension);
}

static berth_status rejected(session *s, const char *message_name, const char *what) {
    char *data = NULL;
    size_t size = 0;
    berth_status_ignore(
        berth_work_folder__read(&s->folder, s->arena, message_name, 1 << 20, &data, &size));
    return berth_status_make(BERTH_INTERNAL, "%s rejected the code of %s: %.*s", s->compiler, what,
                             MAX_MESSAGE_BYTES,
                             data && *data ? data : "(no message: is its temporary folder full?)");
}

// A unit is done, and with it what was joined in it.
static void report(session *s, uint32_t unit) {
    s->done += s->joined.members[unit];
    if (s->options->progress)
        s->options->progress(s->options->progress_user, s->done, s->given_count);
}

static berth_status read_compiled(session *s, const char *name, compiled *out) {
    char *data = NULL;
    size_t size = 0;
    BERTH_TRY(berth_work_folder__read(&s->folder, s->arena, name, SIZE_MAX / 2, &data, &size));
    *out = (compiled){data, size};
    return BERTH_OK;
}

// What goes into the shared object beside compiled sources.
static berth_status add_link_inputs(session *s, arguments *list) {
    bool complete = s->options->foreign;
    for (uint32_t i = 0; i < s->count; ++i) {
        const berth_toolchain_unit *unit = &s->units[i];
        for (uint32_t k = 0; k < unit->object_count; ++k) {
            const berth_object_code *object = &unit->objects[k];
            const char *name =
                unit_name(s, i, berth_arena_printf(s->arena, "given%u.o", (unsigned)k));
            BERTH_TRY(berth_work_folder__write(&s->folder, name, object->data,
                                               (size_t)object->size_bytes));
            add_argument(s, list, name);
            complete = true;
        }
    }
    if (complete) add_argument(s, list, "-Wl,-z,defs");
    add_argument(s, list, "-lm");
    return BERTH_OK;
}

static berth_status start_unit(session *s, running *slot, uint32_t unit) {
    const char *source = unit_name(s, unit, "c"), *text = s->units[unit].source;
    if (s->units[unit].is_part) text = s->options->complete(text, s->arena);
    BERTH_TRY(berth_work_folder__write(&s->folder, source, text, strlen(text)));
    bool whole = s->count == 1;
    arguments list = {0};
    add_argument(s, &list, s->compiler);
    add_flags(s, &list);
    add_argument(s, &list, whole ? "-shared" : "-c");
    add_argument(s, &list, source);
    add_argument(s, &list, "-o");
    add_argument(s, &list, whole ? "image.so" : unit_name(s, unit, "o"));
    if (whole) BERTH_TRY(add_link_inputs(s, &list));
    slot->unit = unit;
    return start(s, &list, NULL, unit_name(s, unit, "txt"), slot);
}

static berth_status finish_unit(session *s, uint32_t unit, int exit_status) {
    if (!succeeded(exit_status))
        return rejected(s, unit_name(s, unit, "txt"), s->units[unit].label);
    report(s, unit);
    if (s->count == 1) return BERTH_OK;
    BERTH_TRY(read_compiled(s, unit_name(s, unit, "o"), &s->objects[unit]));
    store(s, s->keys[unit], BERTH_CACHE_OBJECT, s->objects[unit]);
    return BERTH_OK;
}

// Takes in whatever has ended. *out_any says whether something has.
static berth_status reap(session *s, bool *out_any) {
    *out_any = false;
    for (uint32_t i = 0; i < s->slot_count; ++i) {
        if (s->slots[i].pid == 0) continue;
        int exit_status = 0;
        bool ended = false;
        uint32_t unit = s->slots[i].unit;
        BERTH_TRY(look_after(s, &s->slots[i], s->units[unit].label, &ended, &exit_status));
        if (!ended) continue;
        *out_any = true;
        BERTH_TRY(finish_unit(s, unit, exit_status));
    }
    return BERTH_OK;
}

static running *free_slot(session *s) {
    for (uint32_t i = 0; i < s->slot_count; ++i)
        if (s->slots[i].pid == 0) return &s->slots[i];
    return NULL;
}

static bool is_busy(const session *s) {
    for (uint32_t i = 0; i < s->slot_count; ++i)
        if (s->slots[i].pid) return true;
    return false;
}

static berth_status compile_missing(session *s) {
    uint32_t next = 0;
    for (;;) {
        while (next < s->count && s->objects[next].data) next++;
        running *slot = next < s->count ? free_slot(s) : NULL;
        if (slot) {
            BERTH_TRY(start_unit(s, slot, next++));
            continue;
        }
        if (next >= s->count && !is_busy(s)) return BERTH_OK;
        bool any = false;
        BERTH_TRY(reap(s, &any));
        if (!any) nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
}

static berth_status link_image(session *s) {
    arguments list = {0};
    add_argument(s, &list, s->compiler);
    add_argument(s, &list, "-shared");
    for (uint32_t i = 0; i < s->count; ++i) {
        const char *name = unit_name(s, i, "o");
        if (s->units[i].cached)
            BERTH_TRY(berth_work_folder__write(&s->folder, name, s->objects[i].data,
                                               (size_t)s->objects[i].size_bytes));
        add_argument(s, &list, name);
    }
    add_argument(s, &list, "-o");
    add_argument(s, &list, "image.so");
    BERTH_TRY(add_link_inputs(s, &list));
    int exit_status = 0;
    BERTH_TRY(run_alone(s, &list, NULL, "link.txt", "linking kernels", &exit_status));
    return succeeded(exit_status) ? BERTH_OK : rejected(s, "link.txt", "all kernels");
}

// ---- entry --------------------------------------------------------------------------------------

static berth_status load_object(session *s, uint32_t unit) {
    if (s->count == 1) return BERTH_OK;  // has no object of its own
    BERTH_TRY(berth_cache__load(&s->cache, s->keys[unit], BERTH_CACHE_OBJECT, s->arena,
                                &s->objects[unit].data, &s->objects[unit].size_bytes,
                                &s->units[unit].cached));
    if (s->units[unit].cached) report(s, unit);
    return BERTH_OK;
}

static berth_status make_image(session *s) {
    BERTH_TRY(make_folder(s));
    for (uint32_t i = 0; i < s->count; ++i) BERTH_TRY(load_object(s, i));
    s->slot_count = s->options->jobs ? s->options->jobs : berth_core_count();
    if (s->slot_count > MAX_JOBS) s->slot_count = MAX_JOBS;
    BERTH_TRY(compile_missing(s));
    if (s->count > 1) BERTH_TRY(link_image(s));
    compiled image = {0};
    BERTH_TRY(read_compiled(s, "image.so", &image));
    store(s, image_key(s), BERTH_CACHE_SHARED_OBJECT, image);
    s->image->data = image.data;
    s->image->size_bytes = image.size_bytes;
    berth_cache__evict(&s->cache, s->options->cache_limit_bytes);
    return BERTH_OK;
}

static void join(session *s) {
    s->joined = berth_toolchain__join(s->given, s->given_count, s->arena);
    s->units = s->joined.units;
    s->count = s->joined.count;
    s->keys = berth_arena_new_array(s->arena, berth_hash128, s->count + 1);
    s->objects = berth_arena_new_array(s->arena, compiled, s->count + 1);
    for (uint32_t i = 0; i < s->count; ++i) s->units[i].cached = false;
}

static berth_status load_or_make_image(session *s) {
    const char *version = NULL;
    BERTH_TRY(read_version(s, &version));
    make_keys(s, version);
    BERTH_TRY(berth_cache__load(&s->cache, image_key(s), BERTH_CACHE_SHARED_OBJECT, s->arena,
                                &s->image->data, &s->image->size_bytes, &s->image->cached));
    if (!s->image->cached) return make_image(s);
    for (uint32_t i = 0; i < s->count; ++i) {
        s->units[i].cached = true;
        report(s, i);
    }
    return BERTH_OK;
}

static berth_status run(void *user) {
    session *s = user;
    const berth_toolchain_options *options = s->options;
    join(s);
    s->flags = berth_toolchain_flags(options->target, s->arena);
    if (options->foreign)
        s->flags = berth_arena_printf(s->arena,
                                      "%s -Werror=incompatible-pointer-types "
                                      "-Werror=implicit-function-declaration",
                                      s->flags);
    s->search_path = berth_toolchain__search_path(options, s->arena);
    BERTH_TRY(berth_toolchain__find(options, s->arena, &s->compiler));
    s->deferring = true;
    berth_interrupt_defer(options->interrupt, true);
    if (options->cache_folder)
        BERTH_TRY(berth_cache__open(options->cache_folder, options->log, &s->cache));
    BERTH_TRY(load_or_make_image(s));
    for (uint32_t i = 0; i < s->given_count; ++i)
        s->given[i].cached = s->units[s->joined.of[i]].cached;
    return BERTH_OK;
}

// Allocates nothing from the arena: it also runs after out-of-memory.
static void clean_up(session *s) {
    for (uint32_t i = 0; i < s->slot_count; ++i)
        if (s->slots[i].pid) berth_process__end(s->slots[i].pid);
    berth_work_folder__remove(&s->folder);
    berth_cache__close(&s->cache);
    if (s->deferring) berth_interrupt_defer(s->options->interrupt, false);
}

berth_status berth_toolchain_compile(const berth_toolchain_options *options, berth_arena *arena,
                                     berth_toolchain_unit *units, uint32_t count,
                                     berth_toolchain_image *out_image) {
    *out_image = (berth_toolchain_image){0};
    session s = {.options = options,
                 .arena = arena,
                 .given = units,
                 .given_count = count,
                 .image = out_image,
                 .cache = {.fd = -1},
                 .folder = {.fd = -1}};
    berth_status status = berth_arena_try(arena, run, &s);
    clean_up(&s);
    return status;
}
