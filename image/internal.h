// Shared by the formats.
#ifndef BERTH_IMAGE_INTERNAL_H_
#define BERTH_IMAGE_INTERNAL_H_

#include <pthread.h>

#include "image/image.h"

#define BERTH_IMAGE_BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

// A file, and where its pixels go. What a reader leaves to be freed hangs on `scratch`.
typedef struct berth_image__file {
    berth_arena *arena, *scratch;
    const uint8_t *data;
    size_t size_bytes;
} berth_image__file;

// Errors: OUT_OF_RANGE too many pixels; INVALID_ARGUMENT none.
BERTH_MUST_USE berth_status berth_image__check_extents(uint64_t width, uint64_t height);
// Room for such a picture. Errors: those of berth_image__check_extents.
BERTH_MUST_USE berth_status berth_image__allocate(const berth_image__file *file, uint64_t width,
                                                  uint64_t height, uint32_t channels,
                                                  uint8_t **out_pixels);

typedef berth_status berth_image__reader(const berth_image__file *file, berth_image *out);
berth_image__reader berth_image__read_bmp, berth_image__read_jpeg, berth_image__read_jpeg2000,
    berth_image__read_png, berth_image__read_pnm, berth_image__read_tiff, berth_image__read_webp;

// `value` of at most `most` as one of at most 255, rounded.
static inline uint8_t berth_image__to_byte(uint64_t value, uint64_t most) {
    return (uint8_t)((value * 255 + most / 2) / most);
}

// ---- libraries that are loaded when they are first needed

typedef struct berth_image__library {
    const char *format;        // "TIFF"
    const char *package;       // "libtiff 4.5 or later (Debian: libtiff6)"
    const char *const *names;  // as of berth_dynlib_open
    const char *functions;     // as of berth_dynlib_find_functions
    void *table;               // where they go
    bool loaded;               // under `lock`
    pthread_mutex_t lock;
} berth_image__library;

// Errors: UNAVAILABLE, which names the package.
BERTH_MUST_USE berth_status berth_image__load(berth_image__library *library);

#endif  // BERTH_IMAGE_INTERNAL_H_
