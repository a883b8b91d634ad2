// A libcuda for tests on machines without a GPU: two devices whose memory is the host's and which run
// what nvrtc.c beside it compiles. Strict where a real driver is: no context, no call; streams run on
// threads of their own, so that nobody gets away without waiting; a failed launch stays.
//
// BERTH_EMULATION_FAIL makes functions fail (fault.h); BERTH_EMULATION_HANG=1 makes streams stop before their first kernel, BERTH_EMULATION_LOST=N
// makes every call for device N fail, as of one that is gone. BERTH_EMULATION_DEVICES=N.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/emulation/libcuda.h"

static struct CUctx_st contexts[most_devices];
static _Thread_local cuda_context stack[16];
_Thread_local int emulated_stack_depth;
atomic_uint emulated_broken;  // what a launch failed with, from then on
atomic_bool emulated_started;
static atomic_int pending;  // jobs in streams

// As a driver does before memory or code goes away: work that uses it may still run. For a stream that hangs it would
// wait for ever: the process is ended, so that the test fails at once.
void emulated_wait_for_streams(void) {
    for (int round = 0; atomic_load(&pending) > 0; ++round) {
        if (getenv("BERTH_EMULATION_HANG") && round > most_hanging_rounds) {
            fprintf(stderr, "emulated libcuda: waits for ever for a stream that hangs\n");
            abort();
        }
        usleep(50);
    }
}

// ---- devices ----

cuda_result cuInit(unsigned int flags) {
    cuda_result result = emulated_fault(__func__);
    if (result == CUDA_OK && flags == 0) atomic_store(&emulated_started, true);
    return result;
}

cuda_result cuDriverGetVersion(int *version) {
    *version = 12040;
    return CUDA_OK;
}

cuda_result cuGetErrorName(cuda_result error, const char **text) {
    static const struct {
        cuda_result result;
        const char *name;
    } names[] = {
#define NAME(name, value, code) {value, #name},
        CUDA_RESULTS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (names[i].result == error) {
            *text = names[i].name;
            return CUDA_OK;
        }
    return BERTH_CUDA_ERROR_INVALID_VALUE;
}

static int device_count(void) {
    const char *count = getenv("BERTH_EMULATION_DEVICES");
    int value = count ? atoi(count) : 2;
    return value < most_devices ? value : most_devices;
}

cuda_result cuDeviceGetCount(int *count) {
    BEGIN();
    *count = device_count();
    return CUDA_OK;
}

cuda_result cuDeviceGet(cuda_device_id *device, int ordinal) {
    BEGIN();
    *device = ordinal;
    return ordinal < device_count() ? CUDA_OK : BERTH_CUDA_ERROR_INVALID_DEVICE;
}

cuda_result cuDeviceGetName(char *name, int length, cuda_device_id device) {
    snprintf(name, (size_t)length, "emulated GPU %d (tests, on the CPU)", device);
    return CUDA_OK;
}

cuda_result cuDeviceGetAttribute(int *value, cuda_enum attribute, cuda_device_id device) {
    (void)device;
    BEGIN();
    switch (attribute) {
    case BERTH_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = static_shared_bytes; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = most_shared_bytes;
        break;
    case BERTH_CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 2; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2000000; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 256; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 20; break;
    case BERTH_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    default: *value = 0;
    }
    return CUDA_OK;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device_id device) {
    (void)device;
    BEGIN();
    *bytes = (size_t)8 << 30;
    return CUDA_OK;
}

// ---- contexts ----

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device_id device) {
    BEGIN();
    contexts[device].device = device;
    atomic_fetch_add(&contexts[device].references, 1);
    *context = &contexts[device];
    return CUDA_OK;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device_id device) {
    BEGIN();
    emulated_wait_for_streams();
    return atomic_fetch_sub(&contexts[device].references, 1) > 0 ? CUDA_OK
                                                                 : BERTH_CUDA_ERROR_INVALID_CONTEXT;
}

cuda_result cuCtxPushCurrent_v2(cuda_context context) {
    BEGIN();
    if (!context || atomic_load(&context->references) < 1 || emulated_stack_depth == 16)
        return BERTH_CUDA_ERROR_INVALID_CONTEXT;
    stack[emulated_stack_depth++] = context;
    return CUDA_OK;
}

cuda_result cuCtxPopCurrent_v2(cuda_context *context) {
    if (emulated_stack_depth == 0) return BERTH_CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--emulated_stack_depth];
    return CUDA_OK;
}

cuda_result cuCtxGetDevice(cuda_device_id *device) {
    BEGIN_IN_CONTEXT();
    *device = stack[emulated_stack_depth - 1]->device;
    return CUDA_OK;
}

static bool is_lost(cuda_context context) {
    const char *lost = getenv("BERTH_EMULATION_LOST");
    return lost && atoi(lost) == context->device;
}

cuda_result emulated_loss(void) {
    return is_lost(stack[emulated_stack_depth - 1]) ? 999 : CUDA_OK;
}

// ---- peers ----

// BERTH_EMULATION_APART=1: no device reaches another's memory.
cuda_result cuDeviceCanAccessPeer(int *yes, cuda_device_id device, cuda_device_id peer) {
    BEGIN();
    if (device < 0 || device >= device_count() || peer < 0 || peer >= device_count())
        return BERTH_CUDA_ERROR_INVALID_DEVICE;
    *yes = device != peer && !getenv("BERTH_EMULATION_APART");
    return CUDA_OK;
}

cuda_result cuCtxEnablePeerAccess(cuda_context peer, unsigned int flags) {
    BEGIN_IN_CONTEXT();
    cuda_context current = stack[emulated_stack_depth - 1];
    if (flags || !peer || atomic_load(&peer->references) < 1 || peer == current)
        return BERTH_CUDA_ERROR_INVALID_VALUE;
    unsigned int bit = 1u << peer->device;
    return atomic_fetch_or(&current->peers, bit) & bit
               ? BERTH_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
               : CUDA_OK;
}

// ---- memory ----

cuda_result cuMemAlloc_v2(cuda_address *address, size_t bytes) {
    BEGIN_IN_CONTEXT();
    if (bytes == 0) return BERTH_CUDA_ERROR_INVALID_VALUE;
    void *data =
        bytes > ((size_t)8 << 30) ? NULL : aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    if (!data) return BERTH_CUDA_ERROR_OUT_OF_MEMORY;
    memset(data, 0xcd, bytes < 1 << 20 ? bytes : 1 << 20);
    *address = (cuda_address)(uintptr_t)data;
    return CUDA_OK;
}

// What is freed is gone, also where a failed launch or a lost device makes the call fail.
cuda_result cuMemFree_v2(cuda_address address) {
    emulated_wait_for_streams();
    free((void *)(uintptr_t)address);
    BEGIN_IN_CONTEXT();
    return CUDA_OK;
}

cuda_result cuMemHostAlloc(void **data, size_t bytes, unsigned int flags) {
    cuda_address address = 0;
    BEGIN_IN_CONTEXT();
    if (flags & ~7u) return BERTH_CUDA_ERROR_INVALID_VALUE;
    cuda_result result = cuMemAlloc_v2(&address, bytes);
    *data = (void *)(uintptr_t)address;
    return result;
}

cuda_result cuMemFreeHost(void *data) {
    return cuMemFree_v2((cuda_address)(uintptr_t)data);
}

// ---- streams ----

static int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fill(const job *j) {
    for (size_t i = 0; i < j->bytes; ++i) {
        if (j->unit == 1) ((uint8_t *)j->to)[i] = (uint8_t)j->pattern;
        if (j->unit == 2) ((uint16_t *)j->to)[i] = (uint16_t)j->pattern;
        if (j->unit == 4) ((uint32_t *)j->to)[i] = j->pattern;
    }
}

// False: the stream hangs. When that is over nothing of it runs any more, as after a reset.
static bool run_job(job *j) {
    bool lost = atomic_load(&emulated_broken) != 0;
    switch (j->kind) {
    case JOB_COPY:
        if (!lost) memmove(j->to, j->from, j->bytes);
        break;
    case JOB_FILL:
        if (!lost) fill(j);
        break;
    case JOB_LAUNCH:
        if (getenv("BERTH_EMULATION_HANG")) {
            while (getenv("BERTH_EMULATION_HANG")) usleep(1000);
            return false;
        }
        if (!lost && !emulated_run(&j->launch))
            atomic_store(&emulated_broken, BERTH_CUDA_ERROR_LAUNCH_FAILED);
        break;
    case JOB_CALL:
        if (!lost) j->call(j->to);
        break;
    case JOB_WAIT:
        for (bool reached = false; !reached; usleep(reached ? 0 : 20)) {
            pthread_mutex_lock(&j->event->lock);
            reached = j->event->reached >= j->event_value;
            pthread_mutex_unlock(&j->event->lock);
        }
        break;
    case JOB_EVENT:
        pthread_mutex_lock(&j->event->lock);
        j->event->time_ns = clock_ns();
        if (j->event_value > j->event->reached) j->event->reached = j->event_value;
        pthread_mutex_unlock(&j->event->lock);
        break;
    }
    return true;
}

static void *stream_main(void *user) {
    cuda_stream stream = user;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->first && !stream->stopping)
            pthread_cond_wait(&stream->changed, &stream->lock);
        job *j = stream->first;
        if (!j) break;
        stream->first = j->next;
        if (!stream->first) stream->last = &stream->first;
        pthread_mutex_unlock(&stream->lock);
        if (!stream->has_hung) stream->has_hung = !run_job(j);
        free(j);
        atomic_fetch_sub(&pending, 1);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

cuda_result emulated_push(cuda_stream stream, job wanted) {
    job *j = stream ? malloc(sizeof(*j)) : NULL;
    if (!j) return BERTH_CUDA_ERROR_INVALID_VALUE;
    *j = wanted;
    j->next = NULL;
    for (int i = 0; i < most_parameters; ++i) j->arguments[i] = &j->values[i];
    j->launch.arguments = j->arguments;
    if (stream->graph) {
        *stream->graph->last = j;
        stream->graph->last = &j->next;
        return CUDA_OK;
    }
    atomic_fetch_add(&pending, 1);
    pthread_mutex_lock(&stream->lock);
    *stream->last = j;
    stream->last = &j->next;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return CUDA_OK;
}

cuda_result cuStreamGetCtx(cuda_stream stream, cuda_context *context) {
    BEGIN();
    *context = stream->context;
    return CUDA_OK;
}

cuda_result cuStreamCreate(cuda_stream *stream, unsigned int flags) {
    BEGIN_IN_CONTEXT();
    if (flags & ~1u) return BERTH_CUDA_ERROR_INVALID_VALUE;
    *stream = calloc(1, sizeof(**stream));
    (*stream)->context = stack[emulated_stack_depth - 1];
    (*stream)->last = &(*stream)->first;
    pthread_mutex_init(&(*stream)->lock, NULL);
    pthread_cond_init(&(*stream)->changed, NULL);
    return pthread_create(&(*stream)->thread, NULL, stream_main, *stream) == 0
               ? CUDA_OK
               : BERTH_CUDA_ERROR_OUT_OF_MEMORY;
}

// ---- graphs ----

cuda_result cuStreamBeginCapture_v2(cuda_stream stream, cuda_enum mode) {
    BEGIN_IN_CONTEXT();
    if (!stream || stream->graph || mode > 2) return BERTH_CUDA_ERROR_INVALID_VALUE;
    stream->graph = calloc(1, sizeof(*stream->graph));
    stream->graph->last = &stream->graph->first;
    return CUDA_OK;
}

cuda_result cuStreamEndCapture(cuda_stream stream, cuda_graph *graph) {
    *graph = stream ? stream->graph : NULL;
    if (stream) stream->graph = NULL;
    BEGIN_IN_CONTEXT();
    return *graph ? CUDA_OK : BERTH_CUDA_ERROR_INVALID_VALUE;
}

static void free_jobs(job *j) {
    for (job *next; j; j = next) next = j->next, free(j);
}

cuda_result cuGraphDestroy(cuda_graph graph) {
    free_jobs(graph->first);
    free(graph);
    BEGIN();
    return CUDA_OK;
}

// The nodes change hands: our driver drops the graph next.
cuda_result cuGraphInstantiateWithFlags(cuda_graph_exec *executable, cuda_graph graph,
                                        unsigned long long flags) {
    BEGIN_IN_CONTEXT();
    if (flags) return BERTH_CUDA_ERROR_INVALID_VALUE;
    *executable = calloc(1, sizeof(**executable));
    (*executable)->first = graph->first;
    graph->first = NULL;
    return CUDA_OK;
}

cuda_result cuGraphLaunch(cuda_graph_exec graph, cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    cuda_result result = CUDA_OK;
    for (job *j = graph->first; j && result == CUDA_OK; j = j->next)
        result = emulated_push(stream, *j);
    return result;
}

cuda_result cuGraphExecDestroy(cuda_graph_exec graph) {
    free_jobs(graph->first);
    free(graph);
    BEGIN();
    return CUDA_OK;
}

// Work that is left is done before the stream goes.
cuda_result cuStreamDestroy_v2(cuda_stream stream) {
    BEGIN();
    emulated_wait_for_streams();
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
    return CUDA_OK;
}

static cuda_result put_copy(cuda_address to, cuda_address from, size_t bytes, cuda_stream stream) {
    return emulated_push(stream, (job){.kind = JOB_COPY,
                                       .to = (void *)(uintptr_t)to,
                                       .from = (const void *)(uintptr_t)from,
                                       .bytes = bytes});
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_address destination, const void *source, size_t bytes,
                                 cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_copy(destination, (cuda_address)(uintptr_t)source, bytes, stream);
}

cuda_result cuMemcpyDtoHAsync_v2(void *destination, cuda_address source, size_t bytes,
                                 cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_copy((cuda_address)(uintptr_t)destination, source, bytes, stream);
}

// On the default stream, which waits for the others and is done when the call returns.
cuda_result cuMemcpyHtoD_v2(cuda_address destination, const void *source, size_t bytes) {
    BEGIN_IN_CONTEXT();
    emulated_wait_for_streams();
    memcpy((void *)(uintptr_t)destination, source, bytes);
    return CUDA_OK;
}

cuda_result cuMemcpyDtoH_v2(void *destination, cuda_address source, size_t bytes) {
    BEGIN_IN_CONTEXT();
    emulated_wait_for_streams();
    memcpy(destination, (const void *)(uintptr_t)source, bytes);
    return CUDA_OK;
}

cuda_result cuMemcpyAsync(cuda_address destination, cuda_address source, size_t bytes,
                          cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_copy(destination, source, bytes, stream);
}

// Stricter than CUDA, which copies without access, too, by way of the host.
cuda_result cuMemcpyPeerAsync(cuda_address destination, cuda_context to, cuda_address source,
                              cuda_context from, size_t bytes, cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    cuda_context current = stack[emulated_stack_depth - 1];
    cuda_context other = to == current ? from : to;
    if (is_lost(other)) return 999;
    if ((to != current && from != current) || to == from ||
        !(atomic_load(&current->peers) >> other->device & 1))
        return BERTH_CUDA_ERROR_INVALID_CONTEXT;
    return put_copy(destination, source, bytes, stream);
}

static cuda_result put_fill(cuda_address to, uint32_t pattern, uint32_t unit, size_t count,
                            cuda_stream stream) {
    if (to % unit) return BERTH_CUDA_ERROR_INVALID_VALUE;
    return emulated_push(stream, (job){.kind = JOB_FILL,
                                       .to = (void *)(uintptr_t)to,
                                       .bytes = count,
                                       .pattern = pattern,
                                       .unit = unit});
}

cuda_result cuMemsetD8Async(cuda_address destination, unsigned char value, size_t count,
                            cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_fill(destination, value, 1, count, stream);
}

cuda_result cuMemsetD16Async(cuda_address destination, unsigned short value, size_t count,
                             cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_fill(destination, value, 2, count, stream);
}

cuda_result cuMemsetD32Async(cuda_address destination, unsigned int value, size_t count,
                             cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    return put_fill(destination, value, 4, count, stream);
}

// ---- events ----

cuda_result cuEventCreate(cuda_event *event, unsigned int flags) {
    BEGIN_IN_CONTEXT();
    *event = calloc(1, sizeof(**event));
    pthread_mutex_init(&(*event)->lock, NULL);
    (*event)->timed = !(flags & BERTH_CU_EVENT_DISABLE_TIMING);
    return CUDA_OK;
}

// One that was never reached may still be in a stream that hangs.
cuda_result cuEventDestroy_v2(cuda_event event) {
    emulated_wait_for_streams();
    pthread_mutex_lock(&event->lock);
    bool reached = event->reached == event->recorded;
    pthread_mutex_unlock(&event->lock);
    if (reached) free(event);
    BEGIN();
    return CUDA_OK;
}

cuda_result cuEventRecord(cuda_event event, cuda_stream stream) {
    BEGIN_IN_CONTEXT();
    pthread_mutex_lock(&event->lock);
    uint64_t value = ++event->recorded;
    pthread_mutex_unlock(&event->lock);
    return emulated_push(stream, (job){.kind = JOB_EVENT, .event = event, .event_value = value});
}

// The stream goes on once the event, as it was recorded until now, is reached.
cuda_result cuStreamWaitEvent(cuda_stream stream, cuda_event event, unsigned int flags) {
    BEGIN_IN_CONTEXT();
    if (flags) return BERTH_CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&event->lock);
    uint64_t value = event->recorded;
    pthread_mutex_unlock(&event->lock);
    return emulated_push(stream, (job){.kind = JOB_WAIT, .event = event, .event_value = value});
}

cuda_result cuEventQuery(cuda_event event) {
    BEGIN_IN_CONTEXT();
    pthread_mutex_lock(&event->lock);
    bool reached = event->reached == event->recorded;
    pthread_mutex_unlock(&event->lock);
    return reached ? atomic_load(&emulated_broken) : BERTH_CUDA_ERROR_NOT_READY;
}

cuda_result cuEventElapsedTime(float *milliseconds, cuda_event start, cuda_event end) {
    BEGIN_IN_CONTEXT();
    if (!start->timed || !end->timed) return BERTH_CUDA_ERROR_INVALID_VALUE;
    *milliseconds = (float)((double)(end->time_ns - start->time_ns) * 1e-6);
    return CUDA_OK;
}
