// Pictures as the command's inputs: PNG, JPEG, PPM and PGM files.
#ifndef BERTH_TOOLS_IMAGE_H_
#define BERTH_TOOLS_IMAGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

enum { BERTH_IMAGE_MOST_PIXELS = 1 << 26 };  // of a file: what is larger is refused

typedef struct berth_image {
    uint32_t width, height;
    uint32_t channels;      // 1 = grey, 3 = red, green, blue
    const uint8_t *pixels;  // [height][width][channels]
} berth_image;

// Whether the first bytes are those of such a file.
bool berth_image_is(const void *data, size_t size_bytes);

// Reads a picture, in 8 bits and without its opacity. Inside berth_arena_try of `arena`, where the pixels
// go. Errors: INVALID_ARGUMENT damaged or cut; OUT_OF_RANGE too large; UNSUPPORTED a form of JPEG or
// PNM that is not read.
BERTH_MUST_USE berth_status berth_image_read(berth_arena *arena, const void *data,
                                             size_t size_bytes, berth_image *out_image);

// Room for such a picture, or OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_image__allocate(berth_arena *arena, uint64_t width,
                                                  uint64_t height, uint32_t channels,
                                                  uint8_t **out_pixels);
BERTH_MUST_USE berth_status berth_image__read_jpeg(berth_arena *arena, const void *data,
                                                   size_t size_bytes, berth_image *out_image);

#endif  // BERTH_TOOLS_IMAGE_H_
