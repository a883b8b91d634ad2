// PNG through libpng's simplified interface.
#include <png.h>

#include "image/internal.h"

static struct {
    __typeof__(png_image_begin_read_from_memory) *png_image_begin_read_from_memory;
    __typeof__(png_image_finish_read) *png_image_finish_read;
    __typeof__(png_image_free) *png_image_free;
} png;

static berth_image__library library = {
    .format = "PNG",
    .package = "libpng 1.6 (Debian: libpng16-16)",
    .names = (const char *const[]){"libpng16.so.16", NULL},
    .functions = "png_image_begin_read_from_memory\0png_image_finish_read\0png_image_free\0",
    .table = &png,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};
_Static_assert(PNG_LIBPNG_VER_SONUM == 16, "the library's name is that of these headers");

static void free_png(void *user) {
    png.png_image_free(user);
}

// Every second or fourth byte is opacity: the others move together.
static void drop_opacity(uint8_t *pixels, size_t count, uint32_t channels) {
    for (size_t i = 0; i < count; ++i)
        for (uint32_t c = 0; c < channels; ++c)
            pixels[i * channels + c] = pixels[i * (channels + 1) + c];
}

berth_status berth_image__read_png(const berth_image__file *file, berth_image *out) {
    BERTH_TRY(berth_image__load(&library));
    png_image *image = berth_arena_new(file->scratch, png_image);
    image->version = PNG_IMAGE_VERSION;
    berth_arena_defer(file->scratch, free_png, image);
    if (!png.png_image_begin_read_from_memory(image, file->data, file->size_bytes))
        return BERTH_IMAGE_BAD("the PNG file is damaged: %s", image->message);
    uint32_t channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    image->format = channels == 3 ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
    image->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as in 8 bits
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__allocate(file, image->width, image->height, channels + 1, &pixels));
    if (!png.png_image_finish_read(image, NULL, pixels, 0, NULL))
        return BERTH_IMAGE_BAD("the PNG file is damaged: %s", image->message);
    drop_opacity(pixels, (size_t)image->width * image->height, channels);
    *out = (berth_image){image->width, image->height, channels, pixels};
    return BERTH_OK;
}
