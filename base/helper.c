#define _GNU_SOURCE  // pipe2
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

__attribute__((noreturn)) static void answer_and_end(int fd, void (*body)(const void *, void *),
                                                     const void *user, void *answer,
                                                     size_t answer_bytes) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    body(user, answer);
    const char *at = answer;
    while (answer_bytes > 0) {
        ssize_t put = write(fd, at, answer_bytes);
        if (put <= 0) _exit(1);
        at += put;
        answer_bytes -= (size_t)put;
    }
    _exit(0);
}

// Whether all of the answer came.
static bool take_answer(int fd, char *at, size_t left, int64_t deadline_ns) {
    while (left > 0) {
        int64_t wait_ns = deadline_ns - berth_clock_ns();
        if (wait_ns <= 0) return false;
        int wait_ms = wait_ns > INT64_C(60000000000) ? 60000 : (int)(wait_ns / 1000000) + 1;
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int count = poll(&ready, 1, wait_ms);
        if (count == 0 || (count < 0 && errno == EINTR)) continue;
        ssize_t got = count < 0 ? -1 : read(fd, at, left);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        left -= (size_t)got;
    }
    return true;
}

berth_status berth_helper_ask(const char *what, void (*body)(const void *user, void *answer),
                              const void *user, void *answer, size_t answer_bytes,
                              int64_t time_limit_ns) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return berth_status_make(BERTH_UNAVAILABLE, "cannot ask for %s: %s", what, strerror(errno));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of the caller's runs in the child
    pid_t pid = fork();
    if (pid == 0) answer_and_end(ends[1], body, user, answer, answer_bytes);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    bool good = pid > 0 && take_answer(ends[0], answer, answer_bytes,
                                       berth_clock_deadline_ns(berth_clock_ns(), time_limit_ns));
    close(ends[0]);
    if (pid < 0)
        return error == ENOMEM ? berth_status_oom()
                               : berth_status_make(BERTH_UNAVAILABLE, "cannot ask for %s: %s", what,
                                                   strerror(error));
    if (!good) kill(pid, SIGKILL);
    // Whoever ignores SIGCHLD, or waits for all children, has it already.
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (good) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE,
                             "%s is not known: the process that asks for it crashed or hung (is "
                             "there memory left?)",
                             what);
}
