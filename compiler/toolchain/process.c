#define _GNU_SOURCE  // posix_spawn_file_actions_addfchdir_np
#include "compiler/toolchain/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

// What a process has after it was asked to end and before it is made to.
#define GRACE_NS 200000000

// ---- folder -------------------------------------------------------------------------------------

berth_status berth_work_folder__make(berth_arena *arena, const char *base,
                                     berth_work_folder *out_folder) {
    *out_folder = (berth_work_folder){.fd = -1};
    if (!base || !*base) base = "/tmp";
    char *path = berth_arena_printf(arena, "%s/berth-XXXXXX", base);
    if (!mkdtemp(path))
        return berth_status_make(BERTH_IO, "cannot make a temporary folder in \"%s\": %s", base,
                                 strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_uid != geteuid() ||
        (info.st_mode & (S_IRWXG | S_IRWXO))) {
        berth_status status =
            fd < 0 ? berth_status_make(BERTH_IO, "cannot open the temporary folder \"%s\": %s",
                                       path, strerror(errno))
                   : berth_status_make(BERTH_IO, "the temporary folder \"%s\" is not ours alone",
                                       path);
        if (fd >= 0) close(fd);
        rmdir(path);
        return status;
    }
    *out_folder = (berth_work_folder){path, fd};
    return BERTH_OK;
}

// As the kernel gives it; readdir would allocate.
typedef struct folder_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
} folder_entry;

static void remove_files(int fd) {
    _Alignas(folder_entry) char buffer[4096];
    bool any = true;
    // Until a look finds nothing to remove: entries may move while others go.
    while (any && lseek(fd, 0, SEEK_SET) == 0) {
        any = false;
        for (long got = 0; (got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0;)
            for (long at = 0; at < got;) {
                const folder_entry *entry = (const folder_entry *)(const void *)(buffer + at);
                any |= entry->type != DT_DIR && unlinkat(fd, entry->name, 0) == 0;
                at += entry->bytes;
            }
    }
}

void berth_work_folder__remove(berth_work_folder *folder) {
    if (!folder->path) return;
    remove_files(folder->fd);
    close(folder->fd);
    rmdir(folder->path);
    *folder = (berth_work_folder){.fd = -1};
}

berth_status berth_work_folder__write(const berth_work_folder *folder, const char *name,
                                      const void *data, size_t size_bytes) {
    int fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    berth_file_part part = {data, size_bytes};
    if (fd >= 0) {
        berth_status status = berth_file_write_fd(fd, name, &part, 1);
        if (close(fd) == 0 || status) return status;
    }
    return berth_status_make(BERTH_IO, "cannot write \"%s/%s\": %s", folder->path, name,
                             strerror(errno));
}

berth_status berth_work_folder__read(const berth_work_folder *folder, berth_arena *arena,
                                     const char *name, size_t limit_bytes, char **out_data,
                                     size_t *out_size_bytes) {
    int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return berth_status_make(BERTH_IO, "cannot read \"%s/%s\": %s", folder->path, name,
                                 strerror(errno));
    berth_status status =
        berth_file_read_fd(arena, fd, name, limit_bytes, out_data, out_size_bytes);
    close(fd);
    return status;
}

// ---- processes ----------------------------------------------------------------------------------

static int add_output(posix_spawn_file_actions_t *actions, int fd, const char *name) {
    if (!name) return posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_WRONLY, 0);
    return posix_spawn_file_actions_addopen(actions, fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

static int fill_actions(posix_spawn_file_actions_t *actions, const berth_work_folder *folder,
                        const char *stdout_name, const char *stderr_name) {
    int error = posix_spawn_file_actions_addfchdir_np(actions, folder->fd);
    if (!error)
        error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = add_output(actions, STDOUT_FILENO, stdout_name);
    if (!error) error = add_output(actions, STDERR_FILENO, stderr_name);
    return error;
}

// Signals that this process ignores or blocks are as usual in the new one.
static int fill_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) sigaddset(&usual, signals[i]);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &usual);
    return error;
}

berth_status berth_process__start(const berth_work_folder *folder, const berth_command_line *line,
                                  const char *stdout_name, const char *stderr_name,
                                  berth_arena *arena, pid_t *out_pid) {
    char tmpdir[] = "TMPDIR=.", locale[] = "LC_ALL=C";
    char *environment[] = {berth_arena_printf(arena, "PATH=%s", line->search_path), tmpdir, locale,
                           NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&actions) != 0) return berth_status_oom();
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return berth_status_oom();
    }
    int error = fill_actions(&actions, folder, stdout_name, stderr_name);
    if (!error) error = fill_attributes(&attributes);
    if (!error)
        error = posix_spawn(out_pid, line->program, &actions, &attributes, line->arguments,
                            environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return BERTH_OK;
    *out_pid = 0;
    if (error == ENOMEM) return berth_status_oom();
    return berth_status_make(BERTH_UNAVAILABLE, "cannot start \"%s\": %s", line->program,
                             strerror(error));
}

berth_status berth_process__poll(pid_t pid, bool *out_ended, int *out_status) {
    *out_ended = false;
    pid_t got = waitpid(pid, out_status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return BERTH_OK;
    *out_ended = true;
    if (got < 0)
        return berth_status_make(BERTH_IO, "cannot wait for the compiler: %s", strerror(errno));
    return BERTH_OK;
}

void berth_process__end(pid_t pid) {
    kill(-pid, SIGTERM);
    const int64_t until_ns = berth_clock_ns() + GRACE_NS;
    siginfo_t info = {0};
    // WNOWAIT leaves the process' number taken, and with it the group's, until all are killed.
    for (;;) {
        info.si_pid = 0;
        int error = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((error == 0 && info.si_pid == pid) || (error != 0 && errno != EINTR)) break;
        if (berth_clock_ns() > until_ns) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}
