// This machine's topology, asked for once a process: libberth has this file alone, and libberth-compiler takes it from there.
#define _GNU_SOURCE  // sched_getaffinity
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "target/topology/read.h"

// The last answer, and the processors that the process might run on then: the rest of a machine
// does not change while a process runs.
static struct {
    pthread_mutex_t mutex;
    berth_topology topology;
    cpu_set_t allowed;
    bool allowed_known;
    bool devices;
} last = {.mutex = PTHREAD_MUTEX_INITIALIZER};

berth_status berth_topology_here(bool devices, berth_topology *out_topology) {
    cpu_set_t allowed;
    bool allowed_known = sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0;
    berth_status status = BERTH_OK;
    pthread_mutex_lock(&last.mutex);
    if (!last.topology.known || !allowed_known || !last.allowed_known ||
        !CPU_EQUAL(&allowed, &last.allowed) || (devices && !last.devices)) {
        status = berth_topology__ask(devices, &last.topology);
        if (status) last.topology.known = false;
        last.allowed = allowed;
        last.allowed_known = allowed_known;
        last.devices = devices;
    }
    if (!status) *out_topology = last.topology;
    pthread_mutex_unlock(&last.mutex);
    return status;
}
