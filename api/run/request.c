// Requests (<berth/request.h>): submit, end, wait, cancel.
#include "api/run/request.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void berth_api__list_push(berth_request_list *list, berth_request *request) {
    request->previous = list->last;
    request->next = NULL;
    if (list->last)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
    list->count++;
}

void berth_api__list_remove(berth_request_list *list, berth_request *request) {
    if (request->previous)
        request->previous->next = request->next;
    else
        list->first = request->next;
    if (request->next)
        request->next->previous = request->previous;
    else
        list->last = request->previous;
    list->count--;
}

// ---- submit -------------------------------------------------------------------------------------

static berth_status read_call(const berth_request_call *given, berth_request_call *out_call) {
    memset(out_call, 0, sizeof(*out_call));
    if (given->size_bytes < offsetof(berth_request_call, timeout_ns) ||
        given->size_bytes > sizeof(*out_call))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_request_call.size_bytes is %zu; set it to "
                                 "sizeof(berth_request_call), %zu in this version",
                                 given->size_bytes, sizeof(*out_call));
    memcpy(out_call, given, given->size_bytes);
    return BERTH_OK;
}

static berth_request *take_free(berth_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    berth_request *request = runner->free;
    if (request) runner->free = request->next;
    pthread_mutex_unlock(&runner->lock);
    return request;
}

static berth_status make_request(berth_runner *runner, berth_request **out_request) {
    *out_request = take_free(runner);
    if (*out_request) return BERTH_OK;
    berth_request *request = berth_calloc(runner->allocator, 1, runner->request_size_bytes);
    if (!request) return berth_status_oom();
    request->runner = runner;
    pthread_mutex_lock(&runner->lock);
    request->older = runner->newest;
    runner->newest = request;
    pthread_mutex_unlock(&runner->lock);
    *out_request = request;
    return BERTH_OK;
}

static void fill_in(berth_request *request, const berth_request_call *call, bool asked) {
    request->references = asked ? 2 : 1;
    request->state = BERTH_REQUEST_WAITING;
    request->worker = NULL;
    request->cancelled = false;
    request->status = BERTH_OK;
    request->done = call->done;
    request->user = call->user;
    request->to_take = call->to_take != 0;
    request->timeout_ns = call->timeout_ns;
    request->submit_ns = berth_clock_ns();
    if (call->input_count)
        memcpy(request->tensors, call->inputs, call->input_count * sizeof(berth_tensor));
    if (call->output_count)
        memcpy(request->tensors + call->input_count, call->outputs,
               call->output_count * sizeof(berth_tensor));
}

berth_status berth_runner_submit(berth_runner *runner, const berth_request_call *given,
                                 berth_request **out_request) {
    if (out_request) *out_request = NULL;
    berth_request_call call;
    BERTH_TRY(read_call(given, &call));
    BERTH_TRY(berth_session_check_buffers(runner->workers[0].session, call.inputs, call.input_count,
                                          call.outputs, call.output_count));
    berth_request *request = NULL;
    BERTH_TRY(make_request(runner, &request));
    fill_in(request, &call, out_request != NULL);
    pthread_mutex_lock(&runner->lock);
    bool stop = runner->stop;
    bool full = runner->most_waiting && runner->waiting.count >= runner->most_waiting;
    if (stop || full) {
        request->next = runner->free;
        runner->free = request;
    } else {
        berth_api__list_push(&runner->waiting, request);
    }
    pthread_mutex_unlock(&runner->lock);
    if (stop) return berth_status_make(BERTH_FAILED_PRECONDITION, "the runner is being destroyed");
    if (full)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "%u requests wait already, as many as may: submit it again when "
                                 "one has ended",
                                 runner->most_waiting);
    pthread_cond_signal(&runner->work);
    if (out_request) *out_request = request;
    return BERTH_OK;
}

// ---- end ----------------------------------------------------------------------------------------

// With the lock held: the caller frees what it returns when it holds it no more.
static berth_status drop_reference(berth_request *request) {
    if (--request->references > 0) return BERTH_OK;
    berth_status status = request->status;
    request->status = BERTH_OK;
    request->next = request->runner->free;
    request->runner->free = request;
    return status;
}

void berth_api__request_end(berth_request *request, berth_status status) {
    berth_runner *runner = request->runner;
    pthread_mutex_lock(&runner->lock);
    request->status = status;
    request->state = BERTH_REQUEST_ENDING;
    pthread_mutex_unlock(&runner->lock);
    if (request->done) request->done(request->user, request);
    pthread_mutex_lock(&runner->lock);
    request->state = BERTH_REQUEST_DONE;
    bool to_take = request->to_take;
    berth_status unused = BERTH_OK;
    if (to_take)  // with the runner's reference
        berth_api__list_push(&runner->to_take, request);
    else
        unused = drop_reference(request);
    pthread_cond_broadcast(&runner->ended);
    pthread_mutex_unlock(&runner->lock);
    berth_status_free(unused);
    const uint64_t one = 1;
    if (to_take && write(runner->event, &one, sizeof(one)) < 0)
        return;  // the count is at 2^64 - 1: it is readable
}

berth_request *berth_runner_take(berth_runner *runner) {
    uint64_t count = 0;  // one at a time: the request was listed before the event
    if (read(runner->event, &count, sizeof(count)) != (ssize_t)sizeof(count)) return NULL;
    pthread_mutex_lock(&runner->lock);
    berth_request *request = runner->to_take.first;
    if (request) berth_api__list_remove(&runner->to_take, request);
    pthread_mutex_unlock(&runner->lock);
    return request;
}

int berth_runner_event(const berth_runner *runner) {
    return runner->event;
}

berth_status berth_request_wait(berth_request *request, int64_t timeout_ns) {
    berth_runner *runner = request->runner;
    int64_t end_ns = berth_clock_deadline_ns(berth_clock_ns(), timeout_ns);
    const struct timespec end = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
    pthread_mutex_lock(&runner->lock);
    int error = 0;
    while (request->state != BERTH_REQUEST_DONE && !error)
        error = end_ns == INT64_MAX ? pthread_cond_wait(&runner->ended, &runner->lock)
                                    : pthread_cond_timedwait(&runner->ended, &runner->lock, &end);
    bool is_done = request->state == BERTH_REQUEST_DONE;
    pthread_mutex_unlock(&runner->lock);
    if (is_done) return BERTH_OK;
    return berth_status_make(BERTH_DEADLINE_EXCEEDED, "the request did not end within %lld us",
                             (long long)(timeout_ns / 1000));
}

// Ends a request that runs. Its worker waits until the call is over, so that no other run meets it.
static void cancel_run(berth_runner *runner, berth_runner_worker *worker) {
    berth_session_cancel(worker->session);
    pthread_mutex_lock(&runner->lock);
    worker->cancelling--;
    pthread_cond_broadcast(&runner->ended);
    pthread_mutex_unlock(&runner->lock);
}

void berth_request_cancel(berth_request *request) {
    berth_runner *runner = request->runner;
    berth_runner_worker *worker = NULL;
    pthread_mutex_lock(&runner->lock);
    bool waits = request->state == BERTH_REQUEST_WAITING;
    if (waits) {
        berth_api__list_remove(&runner->waiting, request);
        request->state = BERTH_REQUEST_ENDING;
    } else if (request->state == BERTH_REQUEST_RUNNING) {
        request->cancelled = true;
        worker = request->worker;
        worker->cancelling++;
    }
    pthread_mutex_unlock(&runner->lock);
    if (worker) cancel_run(runner, worker);
    if (waits)
        berth_api__request_end(
            request, berth_status_make(BERTH_CANCELLED, "the request was cancelled while waiting"));
}

void berth_request_release(berth_request *request) {
    if (!request) return;
    pthread_mutex_t *lock = &request->runner->lock;
    pthread_mutex_lock(lock);
    berth_status unused = drop_reference(request);
    pthread_mutex_unlock(lock);
    berth_status_free(unused);
}

// ---- facts --------------------------------------------------------------------------------------

static berth_request_state state_of(const berth_request *request) {
    pthread_mutex_lock(&request->runner->lock);
    berth_request_state state = request->state;
    pthread_mutex_unlock(&request->runner->lock);
    return state;
}

// Set once, before the state is ENDING.
static berth_status status_of(const berth_request *request) {
    pthread_mutex_lock(&request->runner->lock);
    berth_status status = request->status;
    pthread_mutex_unlock(&request->runner->lock);
    return status;
}

int berth_request_is_done(const berth_request *request) {
    return state_of(request) == BERTH_REQUEST_DONE;
}

berth_code berth_request_code(const berth_request *request) {
    return berth_status_code(status_of(request));
}

const char *berth_request_message(const berth_request *request) {
    return berth_status_message(status_of(request));
}

void *berth_request_user(const berth_request *request) {
    return request->user;
}
