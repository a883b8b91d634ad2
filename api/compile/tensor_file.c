// Tensors from files (<berth/tensor_file.h>).
#include "toolkit/tensor_file.h"

// Begins with what the caller sees.
typedef struct loaded_tensor {
    berth_tensor tensor;
    berth_arena *arena;  // of this struct and the data
} loaded_tensor;

typedef struct load_job {
    berth_arena *arena;
    const char *path;
    const void *data;
    size_t size_bytes;
    loaded_tensor *loaded;
} load_job;

static berth_status read(load_job *job) {
    if (job->path) return berth_tensor_file_read(job->arena, job->path, &job->loaded->tensor, NULL);
    return berth_tensor_file_parse(job->arena, job->data, job->size_bytes, &job->loaded->tensor,
                                   NULL);
}

static berth_status make(void *user) {
    load_job *job = user;
    job->loaded = berth_arena_new(job->arena, loaded_tensor);
    job->loaded->arena = job->arena;
    return read(job);
}

static berth_status load(load_job *job, berth_tensor **out_tensor) {
    *out_tensor = NULL;
    BERTH_TRY(berth_arena_make(make, job, &job->arena));
    *out_tensor = &job->loaded->tensor;
    return BERTH_OK;
}

berth_status berth_tensor_read(const char *path, berth_tensor **out_tensor) {
    load_job job = {.path = path};
    return load(&job, out_tensor);
}

berth_status berth_tensor_parse(const void *data, size_t size_bytes, berth_tensor **out_tensor) {
    load_job job = {.data = data, .size_bytes = size_bytes};
    return load(&job, out_tensor);
}

void berth_tensor_free(berth_tensor *tensor) {
    if (tensor) berth_arena_destroy(((loaded_tensor *)tensor)->arena);
}
