// Runners (<berth/request.h>): sessions that share one program's devices, code and constants, a thread
// for each, and the requests that wait for them.
//
// A request is cancelled by failing the timelines of the session that runs it. So that no later run of
// that session meets the failure, the worker waits for calls of cancel to end, and makes the session
// ready again, before it takes the next request.
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "api/run/request.h"
#include "api/run/session.h"
#include "base/clock.h"

enum { most_at_once = 256 };

// ---- a worker -----------------------------------------------------------------------------------

static berth_status run_request(berth_runner_worker *worker, const berth_request *request) {
    const berth_program *program = worker->runner->program;
    int64_t left_ns = -1;
    if (request->timeout_ns > 0) {
        left_ns =
            berth_clock_deadline_ns(request->submit_ns, request->timeout_ns) - berth_clock_ns();
        if (left_ns <= 0)
            return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                                     "the request waited longer than its limit of %lld us",
                                     (long long)(request->timeout_ns / 1000));
    }
    return berth_session_run_with(worker->session, request->tensors, program->input_count,
                                  request->tensors + program->input_count, program->output_count,
                                  left_ns);
}

static void run_one(berth_runner_worker *worker, berth_request *request) {
    berth_runner *runner = worker->runner;
    berth_status status = run_request(worker, request);
    pthread_mutex_lock(&runner->lock);
    request->worker = NULL;
    request->state = BERTH_REQUEST_ENDING;  // no more calls of cancel
    while (worker->cancelling) pthread_cond_wait(&runner->ended, &runner->lock);
    bool recover = status || request->cancelled;
    pthread_mutex_unlock(&runner->lock);
    if (recover)  // where that fails, the next run tries again and says so
        berth_status_free(berth_session_recover(worker->session));
    berth_api__request_end(request, status);
}

static void *work(void *user) {
    berth_runner_worker *worker = user;
    berth_runner *runner = worker->runner;
    for (;;) {
        pthread_mutex_lock(&runner->lock);
        while (!runner->waiting.first && !runner->stop)
            pthread_cond_wait(&runner->work, &runner->lock);
        berth_request *request = runner->waiting.first;
        if (request) {
            berth_api__list_remove(&runner->waiting, request);
            request->state = BERTH_REQUEST_RUNNING;
            request->worker = worker;
        }
        pthread_mutex_unlock(&runner->lock);
        if (!request) return NULL;
        run_one(worker, request);
    }
}

// ---- opening ------------------------------------------------------------------------------------

static berth_status read_settings(const berth_runner_settings *given,
                                  berth_runner_settings *out_settings) {
    memset(out_settings, 0, sizeof(*out_settings));
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*out_settings))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_runner_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_runner_settings), %zu in this version",
                                 given->size_bytes, sizeof(*out_settings));
    memcpy(out_settings, given, given->size_bytes);
    if (out_settings->at_once <= most_at_once) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE, "%u requests at once; at most %d",
                             out_settings->at_once, most_at_once);
}

// So many keep every device busy, with one more that is between two.
static uint32_t default_at_once(const berth_program *program) {
    uint32_t count = 1;
    for (uint32_t d = 0; d < program->device_count && count < most_at_once; ++d)
        for (uint32_t i = 0; i < program->step_count; ++i)
            if (program->steps[i].device == d && program->steps[i].kind == BERTH_STEP_DISPATCH) {
                count++;
                break;
            }
    return count;
}

static berth_status make_locks(berth_runner *runner) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&runner->lock, NULL);  // none of these fails on Linux
    pthread_cond_init(&runner->work, NULL);
    pthread_cond_init(&runner->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    runner->event = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
    if (runner->event >= 0) return BERTH_OK;
    return berth_status_make(BERTH_IO, "the system gives no descriptor for the runner's event");
}

static berth_status open_workers(berth_runner *runner, const berth_runner_settings *settings,
                                 uint32_t count) {
    runner->workers = berth_calloc(runner->allocator, count, sizeof(*runner->workers));
    if (!runner->workers) return berth_status_oom();
    runner->worker_count = count;
    for (uint32_t i = 0; i < count; ++i) {
        runner->workers[i].runner = runner;
        BERTH_TRY(berth_api__session_open(runner->program, settings->session,
                                          i ? runner->workers[0].session : NULL,
                                          &runner->workers[i].session));
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (pthread_create(&runner->workers[i].thread, NULL, work, &runner->workers[i]) != 0)
            return berth_status_make(BERTH_OUT_OF_MEMORY,
                                     "the system gives no thread for %u requests at once", count);
        runner->workers[i].started = true;
    }
    return BERTH_OK;
}

berth_status berth_runner_create(berth_program *program, const berth_runner_settings *given,
                                 berth_runner **out_runner) {
    *out_runner = NULL;
    berth_runner_settings settings;
    BERTH_TRY(read_settings(given, &settings));
    berth_allocator allocator = berth_allocator_system();
    berth_runner *runner = berth_calloc(allocator, 1, sizeof(*runner));
    if (!runner) return berth_status_oom();
    runner->allocator = allocator;
    runner->most_waiting = settings.most_waiting;
    runner->request_size_bytes =
        sizeof(berth_request) +
        ((size_t)program->input_count + program->output_count) * sizeof(berth_tensor);
    runner->program = program;
    berth_program_retain(program);
    berth_status status = make_locks(runner);
    if (!status)
        status = open_workers(runner, &settings,
                              settings.at_once ? settings.at_once : default_at_once(program));
    if (status)
        berth_runner_destroy(runner);
    else
        *out_runner = runner;
    return status;
}

uint32_t berth_runner_plan(berth_runner *runner, const char **out_reason) {
    return berth_session_plan(runner->workers[0].session, out_reason);
}

// ---- closing ------------------------------------------------------------------------------------

static berth_request *take_waiting(berth_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->stop = true;
    berth_request *request = runner->waiting.first;
    if (request) {
        berth_api__list_remove(&runner->waiting, request);
        request->state = BERTH_REQUEST_ENDING;
    }
    pthread_mutex_unlock(&runner->lock);
    return request;
}

static void end_workers(berth_runner *runner) {
    for (berth_request *request; (request = take_waiting(runner));)
        berth_api__request_end(request, berth_status_make(BERTH_CANCELLED,
                                                          "the runner was destroyed before the "
                                                          "request had its turn"));
    pthread_cond_broadcast(&runner->work);
    for (uint32_t i = 0; i < runner->worker_count; ++i)
        if (runner->workers[i].started) pthread_join(runner->workers[i].thread, NULL);
    for (uint32_t i = runner->worker_count; i-- > 0;)  // the first is the others' base
        berth_session_close(runner->workers[i].session);
    berth_free(runner->allocator, runner->workers, runner->worker_count * sizeof(*runner->workers));
}

void berth_runner_destroy(berth_runner *runner) {
    if (!runner) return;
    end_workers(runner);
    for (berth_request *request = runner->newest, *older; request; request = older) {
        older = request->older;
        berth_status_free(request->status);
        berth_free(runner->allocator, request, runner->request_size_bytes);
    }
    if (runner->event >= 0) close(runner->event);
    pthread_cond_destroy(&runner->work);
    pthread_cond_destroy(&runner->ended);
    pthread_mutex_destroy(&runner->lock);
    berth_program_release(runner->program);
    berth_free(runner->allocator, runner, sizeof(*runner));
}
