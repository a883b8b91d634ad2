// image_decoder: bytes of a file to a picture, [height][width][channels]. What cannot be decoded gives a picture without
// pixels, as ONNX says; what this machine or Berth lacks for it is an error.
#include <string.h>

#include "image/image.h"
#include "ir/eval/internal.h"

typedef enum pixel_format { FORMAT_RGB, FORMAT_BGR, FORMAT_GREY, FORMAT_NONE } pixel_format;

static berth_status read_format(const berth_eval_context *ctx, pixel_format *out) {
    static const char *const names[] = {"RGB", "BGR", "Grayscale"};
    const char *name = berth_eval__string(ctx, "pixel_format", "RGB");
    for (*out = FORMAT_RGB; *out < FORMAT_NONE; ++*out)
        if (strcmp(name, names[*out]) == 0) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "pixel_format \"%s\" is none of RGB, BGR and Grayscale", name);
}

// Luma of ITU-R BT.601, in 16 bits, rounded.
static uint8_t grey_of(const uint8_t *rgb) {
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

static void fill(const berth_image *image, pixel_format format, uint8_t *to) {
    size_t count = (size_t)image->width * image->height;
    size_t first = format == FORMAT_BGR ? 2 : 0;
    for (size_t i = 0; i < count; ++i) {
        const uint8_t *from = image->pixels + i * image->channels;
        uint8_t rgb[3] = {from[0], from[image->channels / 3], from[image->channels / 3 * 2]};
        if (format == FORMAT_GREY) {
            *to++ = image->channels == 1 ? rgb[0] : grey_of(rgb);
            continue;
        }
        *to++ = rgb[first], *to++ = rgb[1], *to++ = rgb[2 - first];
    }
}

berth_status berth_eval__image_decoder(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    pixel_format format;
    berth_image image;
    BERTH_TRY(read_format(ctx, &format));
    berth_status status =
        berth_image_read(ctx->scratch, x->data, (size_t)berth_tensor_element_count(x), &image);
    berth_code code = berth_status_code(status);
    if (code == BERTH_INVALID_ARGUMENT || code == BERTH_UNSUPPORTED) {  // of this file, then
        berth_status_free(status);
        image = (berth_image){0};
        status = BERTH_OK;
    }
    if (status) return status;
    int64_t dims[3] = {image.height, image.width, format == FORMAT_GREY ? 1 : 3};
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_U8, 3, dims));
    if (image.pixels) fill(&image, format, ctx->outputs[0].data);
    return BERTH_OK;
}
