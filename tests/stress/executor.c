// Sessions under pressure, as a plain program so that it runs under the thread sanitizer too:
// several threads, each with sessions of one shared program, running, timing out, being cancelled
// from another thread, reopened.
//
//   stress_executor [rounds]
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "executor/session.h"
#include "tests/executor/program_builder.h"

// The loader's own lock is invisible to the sanitizer, which then sees dlclose of one thread race
// with another's.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:_dl_close_worker\n";
}

enum { thread_count = 3, count = 300, runs_per_session = 20 };

static void check(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "stress_executor: %s\n", what);
    exit(1);
}

static void must(berth_status status) {
    check(!status, berth_status_message(status));
}

typedef struct canceller {
    berth_session *session;
    atomic_bool stop;
} canceller;

static void *cancel_often(void *user) {
    canceller *c = user;
    while (!atomic_load(&c->stop)) {
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        berth_session_cancel(c->session);
    }
    return NULL;
}

static bool run_once(berth_session *session, float value, int64_t timeout_ns) {
    float *x = berth_session_input(session, 0)->data;
    for (int i = 0; i < count; ++i) x[i] = value + (float)i;
    berth_status status = berth_session_run(session, timeout_ns);
    berth_code code = berth_status_code(status);
    check(!status || code == BERTH_DEADLINE_EXCEEDED || code == BERTH_CANCELLED,
          berth_status_message(status));
    berth_status_free(status);
    if (status) return false;
    const float *y = berth_session_output(session, 0)->data;
    for (int i = 0; i < count; ++i) check(y[i] == 8 * (value + (float)i), "a result is wrong");
    return true;
}

static void *use_sessions(void *user) {
    const berth_program *program = user;
    for (int round = 0; round < 2; ++round) {
        berth_session *session = NULL;
        static const berth_session_binding bindings[] = {
            {.name = "cpu:1", .ordinal = 0}};  // two queues, one device
        const berth_session_options options = {
            .bindings = bindings, .binding_count = 1, .thread_count = 2, .profile = round == 1};
        must(berth_session_open(berth_allocator_system(), program, &options, &session));
        for (int run = 0; run < runs_per_session; ++run)
            check(run_once(session, (float)run, -1), "a run without a limit was given up");
        for (int run = 0; run < runs_per_session; ++run)
            (void)run_once(session, (float)run, run * 20000);
        canceller c = {.session = session};
        pthread_t thread;
        check(pthread_create(&thread, NULL, cancel_often, &c) == 0, "no thread");
        for (int run = 0; run < runs_per_session; ++run)
            (void)run_once(session, (float)run, run % 2 ? -1 : (int64_t)1000000000);
        atomic_store(&c.stop, true);
        pthread_join(thread, NULL);
        (void)run_once(session, 1, -1);  // a late cancel may end this one
        check(run_once(session, 2, -1), "the session did not recover");
        berth_session_close(session);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    berth_arena *arena = NULL;
    must(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "stress");
    uint32_t cpu = builder_device(b, "cpu", 0), other = builder_device(b, "cpu", 1);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t twice = builder_tensor(b, cpu, count), there = builder_tensor(b, other, count);
    uint32_t four = builder_tensor(b, other, count);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, twice}, 2, 2);
    builder_copy(b, other, twice, there);
    builder_dispatch(b, other, "scale", (uint32_t[]){there, four}, 2, 2);
    uint32_t back = builder_tensor(b, cpu, count);
    builder_copy(b, cpu, four, back);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){back, y}, 2, 2);
    berth_program *program = builder_finish(b, NULL);
    if (program->executables[0].size_bytes == 0) {
        puts("skipped: no C compiler for the kernels");
        return 0;
    }
    for (int round = 0; round < rounds; ++round) {
        pthread_t threads[thread_count];
        for (int i = 0; i < thread_count; ++i)
            check(pthread_create(&threads[i], NULL, use_sessions, program) == 0, "no thread");
        for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
    }
    berth_arena_destroy(arena);
    puts("ok");
    return 0;
}
