#include "compiler/toolchain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/str.h"
#include "compiler/toolchain_cache.h"

#define MAX_JOBS 64
#define MAX_MESSAGE_BYTES 4000

typedef struct running {
    pid_t pid;  // 0 = free slot
    uint32_t unit;
} running;

typedef struct session {
    const berth_toolchain_options *options;
    berth_arena *arena;
    berth_toolchain_unit *units;
    uint32_t count;
    const char *compiler;  // path
    const char *flags;
    uint32_t *same_as;  // unit: the first with an equal source
    berth_hash128 *keys;
    bool cache_is_good;
    char *folder;    // temporary
    bool deferring;  // of the options' interrupt
    running slots[MAX_JOBS];
    uint32_t slot_count;
    uint32_t done;
} session;

// ---- flags
// ----------------------------------------------------------------------------------------------------------

static const char *host_arch(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "";
#endif
}

// Features of a target that compilers take as -m<name>, by the name the target has for them.
static const char *const x86_features[][2] = {
    {"sse3", "sse3"},         {"ssse3", "ssse3"},
    {"sse4.1", "sse4.1"},     {"sse4.2", "sse4.2"},
    {"avx", "avx"},           {"avx2", "avx2"},
    {"fma", "fma"},           {"f16c", "f16c"},
    {"bmi2", "bmi2"},         {"popcnt", "popcnt"},
    {"avx512f", "avx512f"},   {"avx512bw", "avx512bw"},
    {"avx512dq", "avx512dq"}, {"avx512vl", "avx512vl"},
    {"avx512cd", "avx512cd"}, {"avx512vnni", "avx512vnni"},
};

// Those before sse4.2 are in every processor that has it; the facts of a machine do not name them.
enum { x86_first_fact = 3 };

const char *berth_toolchain_flags(const berth_target *target, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(
        &text,
        "-std=c17 -O3 -fPIC -shared -w -fno-math-errno -fno-trapping-math -ffp-contract=fast");
    if (strcmp(target->arch, "x86_64") == 0) {
        for (size_t i = 0; i < sizeof(x86_features) / sizeof(x86_features[0]); ++i)
            if (berth_target_has_feature(target, x86_features[i][0]))
                berth_strbuf_addf(&text, " -m%s", x86_features[i][1]);
        // Generic tuning on purpose: tuning for one processor folds loads into every multiply-add.
        if (berth_target_has_feature(target, "avx512f"))
            berth_strbuf_addf(&text, " -mprefer-vector-width=%d",
                              target->vector_bits >= 512 ? 512 : 256);
    } else if (strcmp(target->arch, "aarch64") == 0) {
        berth_strbuf_add(&text, " -march=armv8-a");
        if (berth_target_has_feature(target, "dotprod")) berth_strbuf_add(&text, "+dotprod");
        if (berth_target_has_feature(target, "fp16")) berth_strbuf_add(&text, "+fp16");
    }
    return berth_strbuf_text(&text);
}

const char *berth_toolchain_needs(const berth_target *target, berth_arena *arena) {
    static const char *const arm_features[] = {"dotprod", "fp16"};
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, *target->arch ? target->arch : host_arch());
    if (strcmp(target->arch, "x86_64") == 0)
        for (size_t i = 0; i < sizeof(x86_features) / sizeof(x86_features[0]); ++i)
            if (i >= x86_first_fact && berth_target_has_feature(target, x86_features[i][0]))
                berth_strbuf_addf(&text, " %s", x86_features[i][0]);
    for (size_t i = 0; i < 2 && strcmp(target->arch, "aarch64") == 0; ++i)
        if (berth_target_has_feature(target, arm_features[i]))
            berth_strbuf_addf(&text, " %s", arm_features[i]);
    return berth_strbuf_text(&text);
}

// ---- finding the compiler
// -------------------------------------------------------------------------------------------

static const char *search_path(const berth_toolchain_options *options) {
    return options->search_path ? options->search_path : "/usr/local/bin:/usr/bin:/bin";
}

static const char *find_program(const session *s, const char *name) {
    if (strchr(name, '/')) return access(name, X_OK) == 0 ? name : NULL;
    for (const char *at = search_path(s->options); *at;) {
        size_t length = strcspn(at, ":");
        const char *path = berth_arena_printf(s->arena, "%.*s/%s", (int)length, at, name);
        if (length && access(path, X_OK) == 0) return path;
        at += length + (at[length] == ':');
    }
    return NULL;
}

static berth_status find_compiler(session *s) {
    const berth_toolchain_options *options = s->options;
    const char *arch = options->target->arch;
    bool cross = *arch && strcmp(arch, host_arch()) != 0;
    if (options->c_compiler) {
        s->compiler = find_program(s, options->c_compiler);
        if (s->compiler) return BERTH_OK;
        return berth_status_make(BERTH_UNAVAILABLE, "C compiler \"%s\" was not found",
                                 options->c_compiler);
    }
    if (cross) {
        // As Debian names them; 32-bit Arm by its calling convention.
        bool arm = strncmp(arch, "armv", 4) == 0;
        const char *triplet =
            arm ? "arm-linux-gnueabihf" : berth_arena_printf(s->arena, "%s-linux-gnu", arch);
        const char *name = berth_arena_printf(s->arena, "%s-gcc", triplet);
        s->compiler = find_program(s, name);
        if (s->compiler) return BERTH_OK;
        return berth_status_make(
            BERTH_UNAVAILABLE,
            "kernels for %s need a cross compiler, and there is no %s: install the package gcc-%s "
            "(Debian, Ubuntu)",
            arch, name, triplet);
    }
    static const char *const names[] = {"cc", "gcc", "clang"};
    for (size_t i = 0; i < 3 && !s->compiler; ++i) s->compiler = find_program(s, names[i]);
    if (s->compiler) return BERTH_OK;
    return berth_status_make(
        BERTH_UNAVAILABLE,
        "no C compiler (cc, gcc, clang) in %s: install one, for example the package gcc",
        search_path(options));
}

// Hash of what the source is compiled with; the compiler is known by its real path, size and time
// of change.
static void make_keys(session *s) {
    struct stat info = {0};
    char *real = realpath(s->compiler, NULL);
    if (stat(s->compiler, &info) != 0) memset(&info, 0, sizeof(info));
    const char *identity = berth_arena_printf(
        s->arena, "1|%s|%lld|%lld.%09ld|%s|", real ? real : s->compiler, (long long)info.st_size,
        (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, s->flags);
    free(real);
    for (uint32_t i = 0; i < s->count; ++i) {
        berth_strbuf text = berth_strbuf_make(s->arena);
        berth_strbuf_add(&text, identity);
        berth_strbuf_add(&text, s->units[i].source);
        s->keys[i] = berth_hash128_of(text.data, text.length);
        s->same_as[i] = i;
        for (uint32_t k = 0; k < i; ++k) {
            if (!berth_hash128_equal(s->keys[k], s->keys[i])) continue;
            s->same_as[i] = k;
            break;
        }
    }
}

// ---- running compilers
// ----------------------------------------------------------------------------------------------

static const char *unit_path(const session *s, uint32_t unit, const char *extension) {
    return berth_arena_printf(s->arena, "%s/%u.%s", s->folder, unit, extension);
}

static berth_status write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    bool good = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0) good = false;
    if (good) return BERTH_OK;
    return berth_status_make(BERTH_IO, "cannot write \"%s\": %s", path, strerror(errno));
}

typedef BERTH_VEC(char *) arguments;

static void add_flags(session *s, arguments *list) {
    for (const char *at = s->flags; *at;) {
        size_t length = strcspn(at, " ");
        berth_vec_push(s->arena, list, berth_arena_strndup(s->arena, at, length));
        at += length + strspn(at + length, " ");
    }
}

static berth_status start(session *s, running *slot, uint32_t unit) {
    berth_arena *arena = s->arena;
    const char *source = unit_path(s, unit, "c");
    BERTH_TRY(write_text(source, s->units[unit].source));
    arguments list = {0};
    berth_vec_push(arena, &list, berth_arena_strdup(arena, s->compiler));
    add_flags(s, &list);
    const char *rest[] = {source, "-o", unit_path(s, unit, "so"), "-lm"};
    for (size_t i = 0; i < 4; ++i) berth_vec_push(arena, &list, berth_arena_strdup(arena, rest[i]));
    berth_vec_push(arena, &list, NULL);
    char *environment[] = {berth_arena_printf(arena, "PATH=%s", search_path(s->options)),
                           berth_arena_printf(arena, "TMPDIR=%s", s->folder),
                           berth_arena_strdup(arena, "LC_ALL=C"), NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t group;  // of its own: the compiler's own children end with it
    if (posix_spawn_file_actions_init(&actions) != 0) return berth_status_oom();
    if (posix_spawnattr_init(&group) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return berth_status_oom();
    }
    posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, unit_path(s, unit, "txt"),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int error = posix_spawn(&slot->pid, s->compiler, &actions, &group, list.data, environment);
    posix_spawnattr_destroy(&group);
    posix_spawn_file_actions_destroy(&actions);
    slot->unit = unit;
    if (error == 0) return BERTH_OK;
    slot->pid = 0;
    return berth_status_make(BERTH_UNAVAILABLE, "cannot start \"%s\": %s", s->compiler,
                             strerror(error));
}

static void report(session *s) {
    s->done++;
    if (s->options->progress) s->options->progress(s->options->progress_user, s->done, s->count);
}

static berth_status finish(session *s, uint32_t unit, int exit_status) {
    char *data = NULL;
    size_t size = 0;
    if (!WIFEXITED(exit_status) || WEXITSTATUS(exit_status) != 0) {
        berth_status_ignore(
            berth_file_read(s->arena, unit_path(s, unit, "txt"), 1 << 20, &data, &size));
        return berth_status_make(BERTH_INTERNAL, "%s rejected the code of %s: %.*s", s->compiler,
                                 s->units[unit].label, MAX_MESSAGE_BYTES,
                                 data && *data ? data
                                               : "(no message: is its temporary folder full?)");
    }
    BERTH_TRY(berth_file_read(s->arena, unit_path(s, unit, "so"), SIZE_MAX / 2, &data, &size));
    s->units[unit].image = data;
    s->units[unit].image_size_bytes = size;
    if (s->cache_is_good) {
        berth_status stored =
            berth_cache__store(s->options->cache_folder, s->keys[unit], data, size);
        if (stored) {
            berth_log_message(s->options->log, BERTH_LOG_WARNING, "kernel cache: %s",
                              berth_status_message(stored));
            berth_status_free(stored);
            s->cache_is_good = false;  // one warning is enough
        }
    }
    report(s);
    return BERTH_OK;
}

// Takes in whatever has ended. *out_any says whether something has.
static berth_status reap(session *s, bool *out_any) {
    *out_any = false;
    for (uint32_t i = 0; i < s->slot_count; ++i) {
        int exit_status = 0;
        if (s->slots[i].pid == 0) continue;
        pid_t got = waitpid(s->slots[i].pid, &exit_status, WNOHANG);
        if (got == 0 || (got < 0 && errno == EINTR)) continue;
        s->slots[i].pid = 0;
        *out_any = true;
        if (got < 0)
            return berth_status_make(BERTH_IO, "cannot wait for the compiler: %s", strerror(errno));
        BERTH_TRY(finish(s, s->slots[i].unit, exit_status));
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
        while (next < s->count && (s->units[next].image || s->same_as[next] != next)) next++;
        running *slot = next < s->count ? free_slot(s) : NULL;
        if (slot) {
            BERTH_TRY(start(s, slot, next++));
            continue;
        }
        if (next >= s->count && !is_busy(s)) return BERTH_OK;
        if (berth_interrupt_pending(s->options->interrupt))
            return berth_status_make(BERTH_CANCELLED, "interrupted while kernels were compiled");
        bool any = false;
        BERTH_TRY(reap(s, &any));
        if (!any) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

// ---- entry
// ----------------------------------------------------------------------------------------------------------

static void load_cached(session *s) {
    for (uint32_t i = 0; i < s->count; ++i) {
        if (s->same_as[i] != i) continue;
        if (!berth_cache__load(s->options->cache_folder, s->keys[i], s->arena, &s->units[i].image,
                               &s->units[i].image_size_bytes))
            continue;
        s->units[i].cached = true;
        report(s);
    }
}

static bool all_there(const session *s) {
    for (uint32_t i = 0; i < s->count; ++i)
        if (s->same_as[i] == i && !s->units[i].image) return false;
    return true;
}

static berth_status run(void *user) {
    session *s = user;
    const berth_toolchain_options *options = s->options;
    s->flags = berth_toolchain_flags(options->target, s->arena);
    s->keys = berth_arena_new_array(s->arena, berth_hash128, s->count + 1);
    s->same_as = berth_arena_new_array(s->arena, uint32_t, s->count + 1);
    for (uint32_t i = 0; i < s->count; ++i) s->units[i].image = NULL;
    BERTH_TRY(find_compiler(s));
    make_keys(s);
    if (options->cache_folder) {
        BERTH_TRY(berth_cache__open(options->cache_folder, options->log, &s->cache_is_good));
        if (s->cache_is_good) load_cached(s);
    }
    if (!all_there(s)) {
        s->slot_count = options->jobs ? options->jobs : berth_core_count();
        if (s->slot_count > MAX_JOBS) s->slot_count = MAX_JOBS;
        const char *base = options->temporary_folder && *options->temporary_folder
                               ? options->temporary_folder
                               : "/tmp";
        char *folder = berth_arena_printf(s->arena, "%s/berth-XXXXXX", base);
        s->deferring = true;
        berth_interrupt_defer(options->interrupt, true);
        if (!mkdtemp(folder))
            return berth_status_make(BERTH_IO, "cannot make a temporary folder in \"%s\": %s", base,
                                     strerror(errno));
        s->folder = folder;
        BERTH_TRY(compile_missing(s));
        if (s->cache_is_good) berth_cache__evict(options->cache_folder, options->cache_limit_bytes);
    }
    for (uint32_t i = 0; i < s->count; ++i) {
        if (s->same_as[i] == i) continue;
        s->units[i].image = s->units[s->same_as[i]].image;
        s->units[i].image_size_bytes = s->units[s->same_as[i]].image_size_bytes;
        s->units[i].cached = s->units[s->same_as[i]].cached;
        report(s);
    }
    return BERTH_OK;
}

// Allocates nothing: it also runs after out-of-memory.
static void clean_up(session *s) {
    for (uint32_t i = 0; i < s->slot_count; ++i) {
        if (s->slots[i].pid == 0) continue;
        kill(-s->slots[i].pid, SIGTERM);
        while (waitpid(s->slots[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (s->folder) berth_cache__remove_folder(s->folder);
    if (s->deferring) berth_interrupt_defer(s->options->interrupt, false);
}

berth_status berth_toolchain_compile(const berth_toolchain_options *options, berth_arena *arena,
                                     berth_toolchain_unit *units, uint32_t count) {
    session s = {.options = options, .arena = arena, .units = units, .count = count};
    berth_status status = berth_arena_try(arena, run, &s);
    clean_up(&s);
    return status;
}
