// What the files of the emulated libcuda share.
#ifndef BERTH_TESTS_CUDA_EMULATION_LIBCUDA_H_
#define BERTH_TESTS_CUDA_EMULATION_LIBCUDA_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devices/cuda/cuda_types.h"
#include "tests/cuda/emulation/fault.h"
#include "tests/cuda/emulation/launch.h"

#define CUDA(name, parameters) cuda_result name parameters;
#define CUDA_NEWER(name, parameters) cuda_result name parameters;
#include "devices/cuda/cuda_symbols.def"

// What Berth's driver does not use, but the Python package does.
cuda_result cuMemcpyHtoD_v2(cuda_address destination, const void *source, size_t bytes);
cuda_result cuMemcpyDtoH_v2(void *destination, cuda_address source, size_t bytes);

// What the emulated cuBLAS and cuDNN put into streams. `data` stays, as a graph runs it again and again.
cuda_result cuLaunchHostFunc(cuda_stream stream, void (*function)(void *), void *data);

enum {
    static_shared_bytes = 48 << 10,
    most_shared_bytes = 227 << 10
};  // of a block, as sm_90 has them
enum { most_devices = 8, most_parameters = 256, most_calls = 64 };
enum { most_hanging_rounds = 20000 };  // of 50 us, until a stream is said to hang

struct CUctx_st {
    int device;
    atomic_int references;
    atomic_uint peers;  // bit i: device i, whose memory it may use
};
struct CUmod_st {
    void *library;
    int fd;
};
struct CUfunc_st {
    const char *name;
    emulated_launch launch;
    int parameters;
    int shared_bytes;  // that a launch may give a block
};
struct CUevent_st {
    pthread_mutex_t lock;
    uint64_t recorded, reached;
    int64_t time_ns;
    bool timed;
};

typedef enum job_kind { JOB_COPY, JOB_FILL, JOB_LAUNCH, JOB_EVENT, JOB_WAIT, JOB_CALL } job_kind;
typedef struct job {
    struct job *next;
    job_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    uint32_t pattern, unit;
    cuda_event event;
    uint64_t event_value;
    void (*call)(void *);  // with `to`
    emulated_launch launch;
    uint64_t values[most_parameters];
    void *arguments[most_parameters];
} job;

struct CUgraph_st {
    job *first, **last;
};
struct CUgraphExec_st {
    job *first;
};

struct CUstream_st {
    struct CUgraph_st *graph;  // into which calls go, NULL = none is captured
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first, **last;
    bool stopping;
    bool has_hung;             // what was in it is dropped
    struct CUctx_st *context;  // that it was made in
};

// libcuda.c
extern _Thread_local int emulated_stack_depth;
extern atomic_uint emulated_broken;  // what a launch failed with, from then on
extern atomic_bool emulated_started;
void emulated_wait_for_streams(void);
// What calls fail with while the current context is of the device BERTH_EMULATION_LOST.
cuda_result emulated_loss(void);
cuda_result emulated_push(cuda_stream stream, job wanted);

#define BEGIN()                                                                                    \
    do {                                                                                           \
        cuda_result fault_ = emulated_fault(__func__);                                             \
        if (fault_ != CUDA_OK) return fault_;                                                      \
        if (!atomic_load(&emulated_started)) return BERTH_CUDA_ERROR_NOT_INITIALIZED;              \
    } while (0)
#define BEGIN_IN_CONTEXT()                                                                         \
    do {                                                                                           \
        BEGIN();                                                                                   \
        if (emulated_stack_depth == 0) return BERTH_CUDA_ERROR_INVALID_CONTEXT;                    \
        if (emulated_loss() != CUDA_OK) return emulated_loss();                                    \
        if (atomic_load(&emulated_broken)) return atomic_load(&emulated_broken);                   \
    } while (0)

#endif  // BERTH_TESTS_CUDA_EMULATION_LIBCUDA_H_
