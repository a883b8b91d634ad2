// What is behind a request and the runner that it belongs to (request.c, runner.c).
#ifndef BERTH_API_RUN_REQUEST_H_
#define BERTH_API_RUN_REQUEST_H_

#include <berth/request.h>
#include <pthread.h>
#include <stdbool.h>

#include "executor/session.h"

typedef enum berth_request_state {
    BERTH_REQUEST_WAITING,
    BERTH_REQUEST_RUNNING,
    BERTH_REQUEST_ENDING,  // has its status; its callback is being called
    BERTH_REQUEST_DONE
} berth_request_state;

// Requests in order.
typedef struct berth_request_list {
    berth_request *first, *last;
    uint32_t count;
} berth_request_list;

// One request at a time, in a session of its own, on a thread of its own.
typedef struct berth_runner_worker {
    berth_runner *runner;
    berth_session *session;  // worker 0's is the base of the others
    pthread_t thread;
    bool started;
    uint32_t cancelling;  // calls of berth_session_cancel under way, for the request that it runs
} berth_runner_worker;

// All but the constant members is guarded by the runner's lock, except that who has taken a request
// from the waiting ones alone sets its status, before it is ENDING.
struct berth_request {
    berth_runner *runner;
    berth_request *previous, *next;  // in the list that it is in
    berth_request *older;            // of all requests of the runner
    uint32_t references;
    berth_request_state state;
    berth_runner_worker *worker;  // that runs it
    bool cancelled;
    berth_status status;
    berth_request_done done;
    void *user;
    bool to_take;
    int64_t submit_ns, timeout_ns;
    berth_tensor tensors[];  // inputs, then outputs
};

struct berth_runner {
    berth_allocator allocator;
    berth_program *program;  // a reference
    uint32_t most_waiting;
    size_t request_size_bytes;
    int event;  // an eventfd: its count is that of requests to take

    pthread_mutex_t lock;  // nothing is called under it
    pthread_cond_t work;   // there is some, or the end
    pthread_cond_t ended;  // a request, or a call of cancel
    berth_request_list waiting, to_take;
    berth_request *free;    // given up, for later ones; linked by `next`
    berth_request *newest;  // of all that were made
    bool stop;
    berth_runner_worker *workers;
    uint32_t worker_count;
};

void berth_api__list_push(berth_request_list *list, berth_request *request);
void berth_api__list_remove(berth_request_list *list, berth_request *request);

// Ends a request that is in no list: `status` is taken over, and the runner's reference given up.
void berth_api__request_end(berth_request *request, berth_status status);

#endif  // BERTH_API_RUN_REQUEST_H_
