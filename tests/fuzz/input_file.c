// Pictures and .npz archives as inputs: any bytes give a clear error or something whose every part can
// be read.
#include <stdlib.h>

#include "image/image.h"
#include "tools/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct job {
    berth_arena *arena;
    const uint8_t *data;
    size_t size;
} job;

static volatile double touched;  // what was read: every element is

static berth_status read_image(const job *j) {
    berth_image image;
    BERTH_TRY(berth_image_read(j->arena, j->data, j->size, &image));
    size_t count = (size_t)image.width * image.height * image.channels;
    if (count == 0 || (image.channels != 1 && image.channels != 3)) abort();
    for (size_t i = 0; i < count; ++i) touched += image.pixels[i];
    return BERTH_OK;
}

static berth_status read_arrays(const job *j) {
    const berth_npz_array *arrays = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_npz_read(j->arena, j->data, j->size, &arrays, &count));
    for (uint32_t a = 0; a < count; ++a) {
        if (!arrays[a].name) abort();
        int64_t elements = berth_tensor_element_count(&arrays[a].tensor);
        for (int64_t i = 0; i < elements; ++i)
            touched += berth_tensor_get_f64(&arrays[a].tensor, i);
    }
    return BERTH_OK;
}

static berth_status read_any(void *user) {
    const job *j = user;
    return berth_npz_is(j->data, j->size) ? read_arrays(j) : read_image(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    job j = {.data = data, .size = size};
    if (berth_arena_create(berth_allocator_system(), &j.arena)) return 0;
    berth_status_free(berth_arena_try(j.arena, read_any, &j));
    berth_arena_destroy(j.arena);
    return 0;
}
