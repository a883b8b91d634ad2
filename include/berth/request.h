// Requests: runs of a program that do not hold up the caller, any number at once (libberth).
//
// A runner opens a program once: its devices, threads, code and constants. Requests that run at the
// same time have memory of their own for the rest, so their steps overlap: while one computes on one
// device, the next does on another.
//
//   static void done(void *user, berth_request *request) {
//       if (berth_request_code(request) != BERTH_CODE_OK) puts(berth_request_message(request));
//   }
//   ...
//   berth_runner *runner;
//   berth_status status = berth_runner_create(program, NULL, &runner);
//   berth_request_call call = {sizeof(call), &image, 1, &scores, 1};
//   call.done = done;
//   if (!status) status = berth_runner_submit(runner, &call, NULL);
//   ...
//   berth_runner_destroy(runner);
//
// Without a callback: berth_request_wait, or berth_runner_event with poll and berth_runner_take.
//
// Threads: everything here is thread-safe, except that nothing may use a runner once it is being
// destroyed. A request that fails or is cancelled leaves the others alone.
#ifndef BERTH_REQUEST_H_
#define BERTH_REQUEST_H_

#include <berth/program.h>
#include <berth/session.h>
#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_runner berth_runner;
typedef struct berth_request berth_request;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members
// at the end.
typedef struct berth_runner_settings {
    size_t size_bytes;      // sizeof(berth_runner_settings)
    uint32_t at_once;       // requests that run at the same time, at most 256; 0 = one per device
                            // that the program computes on, and one
    uint32_t most_waiting;  // requests that wait for their turn besides; 0 = no limit
    const berth_session_settings *session;  // how the program is opened; NULL = defaults
} berth_runner_settings;

// Opens a program, and starts a thread for each request that may run at once.
//   ownership: the runner keeps a reference of the program; nothing of `settings` is kept
//   errors:    those of berth_session_create; OUT_OF_RANGE at_once is too large
BERTH_API BERTH_MUST_USE berth_status berth_runner_create(berth_program *program,
                                                          const berth_runner_settings *settings,
                                                          berth_runner **out_runner);

// Ends what waits with CANCELLED, waits for what runs and for callbacks, then frees everything, requests
// that nobody released included. NULL is fine. Not from a callback.
BERTH_API void berth_runner_destroy(berth_runner *runner);

// berth_session_plan of what the runner opened. When a device is lost, the requests that it took with it
// are done again on a fallback, as are all later ones.
BERTH_API uint32_t berth_runner_plan(berth_runner *runner, const char **out_reason);

// What a request's end calls, once, on a thread of the runner or of who cancels a waiting one. No lock is
// held: it may submit, cancel and release requests, but not wait for them. `request` is the caller's
// for the call.
typedef void (*berth_request_done)(void *user, berth_request *request);

// Zero everything, set size_bytes, then what it needs. Later versions may add members at the end.
typedef struct berth_request_call {
    size_t size_bytes;  // sizeof(berth_request_call)
    // Of the program's order, all of them, of its element types and shapes. The data is the caller's, who
    // leaves it alone until the request's end; the arrays are copied. What is used where it is, without a
    // copy, and what is not: berth_session_run_with.
    const berth_tensor *inputs;
    uint32_t input_count;
    const berth_tensor *outputs;
    uint32_t output_count;
    int64_t
        timeout_ns;  // from submit on; 0 = no limit. Looked at when its turn comes, and from then on
    berth_request_done done;  // NULL = none
    void *user;               // of `done`
    int to_take;              // not 0: berth_runner_take gives it after its end
} berth_request_call;

// Puts a request behind those that wait. It ends by itself; then its outputs are written, its callback
// has been called, and it says how it went. `out_request` NULL: nobody asks.
//   ownership: the caller releases *out_request
//   errors:    INVALID_ARGUMENT not as many tensors as the program has, or a size that is none;
//              INCOMPATIBLE element type or shape; OUT_OF_RANGE as many wait as may; OUT_OF_MEMORY;
//              FAILED_PRECONDITION from a callback, while the runner is being destroyed.
//              After an error there is no request, and no callback comes.
BERTH_API BERTH_MUST_USE berth_status berth_runner_submit(berth_runner *runner,
                                                          const berth_request_call *call,
                                                          berth_request **out_request);

// A descriptor that poll and epoll report as readable (POLLIN) while berth_runner_take has something
// to give. The runner's: do not read or close it.
BERTH_API int berth_runner_event(const berth_runner *runner);

// One request that has ended and was to be taken, the oldest; NULL: none has. The caller releases it,
// besides the one that submit gave.
BERTH_API berth_request *berth_runner_take(berth_runner *runner);

// Waits for a request's end. timeout_ns < 0 = no limit. Errors: DEADLINE_EXCEEDED it has not ended (the
// request goes on). How it went say berth_request_code and berth_request_message.
BERTH_API BERTH_MUST_USE berth_status berth_request_wait(berth_request *request,
                                                         int64_t timeout_ns);

// Ends a request with CANCELLED, where it has not ended yet: at once where it waits; when it runs, steps
// that have begun still end.
BERTH_API void berth_request_cancel(berth_request *request);

// Gives up the caller's reference; the request goes on. NULL is fine.
BERTH_API void berth_request_release(berth_request *request);

BERTH_API int berth_request_is_done(const berth_request *request);
// How it went, from its callback on: BERTH_CODE_OK, or why not, as berth_session_run says it. Before,
// BERTH_CODE_OK and "".
//   ownership: the message is the request's
BERTH_API berth_code berth_request_code(const berth_request *request);
BERTH_API const char *berth_request_message(const berth_request *request);
BERTH_API void *berth_request_user(const berth_request *request);  // that was submitted with it

BERTH_END

#endif  // BERTH_REQUEST_H_
