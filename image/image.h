// Pictures as tensors: files of the seven formats of ONNX's ImageDecoder, as inputs of the command and of that operator.
#ifndef BERTH_IMAGE_IMAGE_H_
#define BERTH_IMAGE_IMAGE_H_

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

// The formats, for messages: "BMP, JPEG, ...".
extern const char berth_image_formats[];

// Whether the first bytes are those of such a file.
bool berth_image_is(const void *data, size_t size_bytes);

// Reads a picture, in 8 bits and without its opacity. Inside berth_arena_try of `arena`, where the pixels
// go. All but BMP and PNM are read by libraries that are loaded when they are first needed. Errors:
// INVALID_ARGUMENT damaged, cut or no such file; OUT_OF_RANGE too large; UNSUPPORTED a form of its format
// that is not read; UNAVAILABLE the library is not here. Any thread.
BERTH_MUST_USE berth_status berth_image_read(berth_arena *arena, const void *data,
                                             size_t size_bytes, berth_image *out_image);

#endif  // BERTH_IMAGE_IMAGE_H_
