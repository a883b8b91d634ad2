#include "image/image.h"

#include <string.h>

#include "image/internal.h"

const char berth_image_formats[] = "BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP";

static bool begins(const uint8_t *data, size_t size_bytes, const char *bytes, size_t length) {
    return size_bytes >= length && memcmp(data, bytes, length) == 0;
}
#define BEGINS(bytes) begins(data, size_bytes, bytes, sizeof(bytes) - 1)

static bool is_bmp(const uint8_t *data, size_t size_bytes) {
    return BEGINS("BM") && size_bytes > 14;
}

static bool is_jpeg(const uint8_t *data, size_t size_bytes) {
    return BEGINS("\xff\xd8\xff");
}

static bool is_jpeg2000(const uint8_t *data, size_t size_bytes) {
    return BEGINS("\0\0\0\x0cjP  \r\n\x87\n") || BEGINS("\xff\x4f\xff\x51");
}

static bool is_png(const uint8_t *data, size_t size_bytes) {
    return BEGINS("\x89PNG\r\n\x1a\n");
}

static bool is_pnm(const uint8_t *data, size_t size_bytes) {
    return BEGINS("P") && size_bytes > 2 && data[1] >= '1' && data[1] <= '6';
}

static bool is_tiff(const uint8_t *data, size_t size_bytes) {
    return BEGINS("II*\0") || BEGINS("MM\0*") || BEGINS("II+\0\x08\0\0") || BEGINS("MM\0+\0\x08\0");
}

static bool is_webp(const uint8_t *data, size_t size_bytes) {
    return BEGINS("RIFF") && size_bytes >= 12 && memcmp(data + 8, "WEBP", 4) == 0;
}

static const struct {
    bool (*is)(const uint8_t *data, size_t size_bytes);
    berth_image__reader *read;
} formats[] = {
    {is_bmp, berth_image__read_bmp},   {is_jpeg, berth_image__read_jpeg},
    {is_png, berth_image__read_png},   {is_jpeg2000, berth_image__read_jpeg2000},
    {is_pnm, berth_image__read_pnm},   {is_tiff, berth_image__read_tiff},
    {is_webp, berth_image__read_webp},
};
enum { format_count = sizeof(formats) / sizeof(formats[0]) };

bool berth_image_is(const void *data, size_t size_bytes) {
    for (int i = 0; i < format_count; ++i)
        if (formats[i].is(data, size_bytes)) return true;
    return false;
}

berth_status berth_image__check_extents(uint64_t width, uint64_t height) {
    if (width == 0 || height == 0)
        return BERTH_IMAGE_BAD("the picture has %llu x %llu pixels", (unsigned long long)width,
                               (unsigned long long)height);
    if (width <= BERTH_IMAGE_MOST_PIXELS && height <= BERTH_IMAGE_MOST_PIXELS / width)
        return BERTH_OK;
    return berth_status_make(
        BERTH_OUT_OF_RANGE, "the picture has %llu x %llu pixels; at most %d are read",
        (unsigned long long)width, (unsigned long long)height, BERTH_IMAGE_MOST_PIXELS);
}

berth_status berth_image__allocate(const berth_image__file *file, uint64_t width, uint64_t height,
                                   uint32_t channels, uint8_t **out_pixels) {
    *out_pixels = NULL;
    BERTH_TRY(berth_image__check_extents(width, height));
    *out_pixels = berth_arena_alloc_unset(file->arena, (size_t)(width * height * channels), 1);
    return BERTH_OK;
}

berth_status berth_image_read(berth_arena *arena, const void *data, size_t size_bytes,
                              berth_image *out_image) {
    berth_status status = NULL;
    bool found = false;
    *out_image = (berth_image){0};
    berth_image__file file = {arena, berth_arena_create_child(arena), data, size_bytes};
    for (int i = 0; i < format_count && !found; ++i) {
        found = formats[i].is(data, size_bytes);
        if (found) status = formats[i].read(&file, out_image);
    }
    berth_arena_destroy(file.scratch);
    return found ? status : BERTH_IMAGE_BAD("no %s file", berth_image_formats);
}
