// A driver of Berth's as a shared library, with faults, which the environment asks for when the first
// device is opened; batches are counted from there on. FLAKY_DRIVER is the table that it wraps.
//
//   FLAKY_ABSENT=1        there is no device
//   FLAKY_LOSE_AFTER=N    devices that are open when N batches with kernels have been submitted are lost;
//                         those opened later work
//   FLAKY_FAIL_EVERY=N    every Nth batch with kernels fails, and nothing else
//   FLAKY_LOSE_PEERS=1    a device is lost with its first batch that has a copy to or from a peer
//   FLAKY_NO_PEERS=1      devices copy to each other by way of the host only
#include <pthread.h>
#include <stdlib.h>

#include "devices/library.h"
#include "devices/semaphore.h"

extern const berth_driver_ops FLAKY_DRIVER;

enum { most_devices = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static berth_device_ops flaky;  // the wrapped ones, but for two
static const berth_device_ops *wrapped;
static struct {
    const berth_device *device;
    bool lost;
} devices[most_devices];
static unsigned device_count, batches, lose_after, fail_every;

static unsigned number(const char *name) {
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool has_kernels(const berth_submission *submission) {
    for (uint32_t i = 0; i < submission->command_count; ++i)
        if (submission->commands[i].kind == BERTH_COMMAND_DISPATCH) return true;
    return false;
}

static bool has_peer_copy(const berth_submission *submission) {
    for (uint32_t i = 0; i < submission->command_count; ++i) {
        const berth_command *command = &submission->commands[i];
        if (command->kind == BERTH_COMMAND_COPY && !command->copy.source->host &&
            !command->copy.destination->host &&
            command->copy.source->device != command->copy.destination->device)
            return true;
    }
    return false;
}

// Counts a batch; what is wrong with it, or BERTH_CODE_OK.
static berth_code judge(const berth_device *device, const berth_submission *submission) {
    berth_code code = BERTH_CODE_OK;
    bool kernels = has_kernels(submission);
    bool lost = number("FLAKY_LOSE_PEERS") && has_peer_copy(submission);
    pthread_mutex_lock(&lock);
    if (kernels) batches++;
    for (int i = 0; i < most_devices; ++i) {
        if (lost && devices[i].device == device) devices[i].lost = true;
        if (kernels && lose_after && batches == lose_after) devices[i].lost = true;
        if (devices[i].device == device && devices[i].lost) code = BERTH_UNAVAILABLE;
    }
    if (!code && kernels && fail_every && batches % fail_every == 0) code = BERTH_IO;
    pthread_mutex_unlock(&lock);
    return code;
}

static berth_status flaky_submit(berth_queue *queue, const berth_submission *submission) {
    berth_code code = judge(queue->device, submission);
    if (!code) return wrapped->queue_submit(queue, submission);
    for (uint32_t i = 0; i < submission->signal_count; ++i)
        berth_semaphore_fail(submission->signals[i].semaphore,
                             berth_status_make(code, code == BERTH_IO
                                                         ? "a fault of the test: the kernel fails"
                                                         : "a fault of the test: device lost"));
    return BERTH_OK;
}

static void note(const berth_device *device, const berth_device *becomes) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < most_devices; ++i) {
        if (devices[i].device != device) continue;
        devices[i].device = becomes;
        devices[i].lost = false;
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void flaky_destroy(berth_device *device) {
    note(device, NULL);
    pthread_mutex_lock(&lock);
    device_count--;
    pthread_mutex_unlock(&lock);
    wrapped->destroy(device);
}

static berth_status flaky_device_open(berth_driver *driver, uint32_t ordinal,
                                      const berth_device_options *options,
                                      berth_device **out_device) {
    berth_status status = FLAKY_DRIVER.device_open(driver, ordinal, options, out_device);
    if (status) return status;
    pthread_mutex_lock(&lock);
    if (device_count++ == 0) {
        batches = 0;
        lose_after = number("FLAKY_LOSE_AFTER");
        fail_every = number("FLAKY_FAIL_EVERY");
    }
    if (!wrapped) {
        wrapped = (*out_device)->ops;
        flaky = *wrapped;
        flaky.destroy = flaky_destroy;
        flaky.queue_submit = flaky_submit;
        if (number("FLAKY_NO_PEERS")) flaky.peer_open = NULL;
    }
    pthread_mutex_unlock(&lock);
    (*out_device)->ops = &flaky;
    note(NULL, *out_device);
    return BERTH_OK;
}

static berth_status flaky_open(berth_allocator allocator, berth_driver **out_driver) {
    if (number("FLAKY_ABSENT"))
        return berth_status_make(BERTH_UNAVAILABLE, "a fault of the test: no device");
    return FLAKY_DRIVER.open(allocator, out_driver);
}

static void flaky_close(berth_driver *driver) {
    FLAKY_DRIVER.close(driver);
}

static uint32_t flaky_device_count(berth_driver *driver) {
    return FLAKY_DRIVER.device_count(driver);
}

static berth_status flaky_device_info(berth_driver *driver, uint32_t ordinal,
                                      berth_device_info *out_info) {
    return FLAKY_DRIVER.device_info(driver, ordinal, out_info);
}

static const berth_driver_ops flaky_driver = {
    .kind = FLAKY_KIND,
    .description = "a driver with faults, for tests",
    .is_host = FLAKY_IS_HOST,
    .open = flaky_open,
    .close = flaky_close,
    .device_count = flaky_device_count,
    .device_info = flaky_device_info,
    .device_open = flaky_device_open,
};
BERTH_DRIVER_LIBRARY(flaky_driver)
