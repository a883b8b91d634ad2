// WebP through libwebp, of which what is used is declared here: its headers are not needed.
#include "image/internal.h"

static struct {
    int (*WebPGetInfo)(const uint8_t *data, size_t size_bytes, int *out_width, int *out_height);
    uint8_t *(*WebPDecodeRGBInto)(const uint8_t *data, size_t size_bytes, uint8_t *pixels,
                                  size_t pixels_bytes, int row_bytes);
} webp;

static berth_image__library library = {
    .format = "WebP",
    .package = "libwebp (Debian: libwebp7)",
    .names = (const char *const[]){"libwebp.so.7", NULL},
    .functions = "WebPGetInfo\0WebPDecodeRGBInto\0",
    .table = &webp,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

berth_status berth_image__read_webp(const berth_image__file *file, berth_image *out) {
    int width = 0, height = 0;
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__load(&library));
    if (!webp.WebPGetInfo(file->data, file->size_bytes, &width, &height) || width < 0 || height < 0)
        return BERTH_IMAGE_BAD("the WebP file is damaged: it has no picture's header");
    BERTH_TRY(berth_image__allocate(file, (uint64_t)width, (uint64_t)height, 3, &pixels));
    size_t row_bytes = (size_t)width * 3;
    if (!webp.WebPDecodeRGBInto(file->data, file->size_bytes, pixels, row_bytes * (size_t)height,
                                (int)row_bytes))
        return BERTH_IMAGE_BAD("the WebP file is damaged, cut or an animation");
    *out = (berth_image){(uint32_t)width, (uint32_t)height, 3, pixels};
    return BERTH_OK;
}
