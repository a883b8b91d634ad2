// Waits that end. OpenCL's own (clWaitForEvents, clFinish, blocking maps) have no limit: a device that hangs would
// keep whoever waits for ever. So all waits are for an event, whose callback (OpenCL 1.2, section 5.9) wakes the
// thread; the thread gives up when the device's time is over, and the device with it: nothing is handed to it any
// more, and what might wait for it inside OpenCL (releases of queues, contexts and memory) is left undone.
#include <sched.h>

#include "base/clock.h"
#include "devices/opencl/opencl.h"
#include "devices/sync.h"

enum { WAIT_OPEN, WAIT_DONE };

// What a thread and the callback share. It is of the system's memory: the callback of a device that was given up may
// come when everything else is gone, and frees it then.
struct opencl_wait {
    atomic_uint state;
    atomic_uint users;
    cl_int result;  // CL_COMPLETE, or the error that ended the event
};

static void release(opencl_wait *wait) {
    if (wait && atomic_fetch_sub(&wait->users, 1) == 1)
        berth_free(berth_allocator_system(), wait, sizeof(*wait));
}

opencl_wait *berth_opencl__wait_create(void) {
    opencl_wait *wait = berth_calloc(berth_allocator_system(), 1, sizeof(*wait));
    if (wait) atomic_init(&wait->users, 1);
    return wait;
}

void berth_opencl__wait_destroy(opencl_wait *wait) {
    release(wait);
}

static void CL_CALLBACK tell(cl_event event, cl_int result, void *user) {
    opencl_wait *wait = user;
    (void)event;
    wait->result = result;
    atomic_store(&wait->state, WAIT_DONE);
    berth_devices__futex_wake(&wait->state, 1);
    release(wait);
}

// False: the time is over.
static bool sleep_until_told(opencl_wait *wait, int64_t timeout_ns) {
    int64_t deadline_ns = berth_clock_deadline_ns(berth_clock_ns(), timeout_ns);
    while (atomic_load(&wait->state) != WAIT_DONE) {
        int64_t left_ns = deadline_ns - berth_clock_ns();
        if (left_ns <= 0) return false;
        berth_devices__futex_wait(&wait->state, WAIT_OPEN, left_ns);
    }
    return true;
}

berth_status berth_opencl__alive(const opencl_device *device, const char *what) {
    if (!atomic_load(&device->is_lost)) return BERTH_OK;
    return berth_devices__given_up(&device->base, what);
}

static berth_status give_up(opencl_device *device, const char *what) {
    atomic_store(&device->is_lost, true);
    return berth_devices__no_answer(&device->base, what, device->timeout_ns);
}

berth_status berth_opencl__wait(opencl_device *device, opencl_wait **wait, cl_event event,
                                const char *what) {
    opencl_wait *w = *wait;
    BERTH_TRY(berth_opencl__alive(device, what));
    while (atomic_load(&w->users) > 1) sched_yield();  // the last callback is about to return
    atomic_store(&w->state, WAIT_OPEN);
    atomic_fetch_add(&w->users, 1);
    cl_int error = device->api->clSetEventCallback(event, CL_COMPLETE, tell, w);
    if (error != CL_SUCCESS) {
        release(w);
        return berth_opencl__check(device, error, what);
    }
    if (sleep_until_told(w, device->timeout_ns))
        return berth_opencl__check(device, w->result, what);
    *wait = NULL;
    release(w);
    return give_up(device, what);
}

// Waits for an event that is released then, by a wait object of the device that is kept for the next.
berth_status berth_opencl__wait_and_release(opencl_device *device, cl_event event,
                                            const char *what) {
    opencl_wait *wait = atomic_exchange(&device->spare_wait, NULL);
    if (!wait) wait = berth_opencl__wait_create();
    berth_status status =
        wait ? berth_opencl__wait(device, &wait, event, what) : berth_status_oom();
    device->api->clReleaseEvent(event);
    release(atomic_exchange(&device->spare_wait, wait));
    return status;
}

berth_status berth_opencl__drain(opencl_device *device, cl_command_queue queue, const char *what) {
    cl_event end = NULL;
    BERTH_TRY(berth_opencl__alive(device, what));
    BERTH_TRY(berth_opencl__check(
        device, device->api->clEnqueueMarkerWithWaitList(queue, 0, NULL, &end), what));
    berth_status status = berth_opencl__check(device, device->api->clFlush(queue), what);
    if (!status) return berth_opencl__wait_and_release(device, end, what);
    device->api->clReleaseEvent(end);
    return status;
}
