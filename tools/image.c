#include "tools/image.h"

#include <png.h>
#include <string.h>

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

static bool begins(const void *data, size_t size_bytes, const char *bytes, size_t length) {
    return size_bytes >= length && memcmp(data, bytes, length) == 0;
}

static bool is_png(const void *data, size_t size_bytes) {
    return begins(data, size_bytes, "\x89PNG\r\n\x1a\n", 8);
}

static bool is_jpeg(const void *data, size_t size_bytes) {
    return begins(data, size_bytes, "\xff\xd8\xff", 3);
}

static bool is_pnm(const void *data, size_t size_bytes) {
    return begins(data, size_bytes, "P5", 2) || begins(data, size_bytes, "P6", 2);
}

bool berth_image_is(const void *data, size_t size_bytes) {
    return is_png(data, size_bytes) || is_jpeg(data, size_bytes) || is_pnm(data, size_bytes);
}

berth_status berth_image__allocate(berth_arena *arena, uint64_t width, uint64_t height,
                                   uint32_t channels, uint8_t **out_pixels) {
    *out_pixels = NULL;
    if (width == 0 || height == 0)
        return BAD("the picture has %llu x %llu pixels", (unsigned long long)width,
                   (unsigned long long)height);
    if (width > BERTH_IMAGE_MOST_PIXELS || height > BERTH_IMAGE_MOST_PIXELS / width)
        return berth_status_make(
            BERTH_OUT_OF_RANGE, "the picture has %llu x %llu pixels; at most %d are read",
            (unsigned long long)width, (unsigned long long)height, BERTH_IMAGE_MOST_PIXELS);
    *out_pixels = berth_arena_alloc_unset(arena, (size_t)(width * height * channels), 1);
    return BERTH_OK;
}

// ---- PNG ----------------------------------------------------------------------------------------

static void free_png(void *user) {
    png_image_free(user);
}

// Every second or fourth byte is opacity: the others move together.
static void drop_opacity(uint8_t *pixels, size_t count, uint32_t channels) {
    for (size_t i = 0; i < count; ++i)
        for (uint32_t c = 0; c < channels; ++c)
            pixels[i * channels + c] = pixels[i * (channels + 1) + c];
}

static berth_status read_png(berth_arena *arena, berth_arena *scratch, const void *data,
                             size_t size_bytes, berth_image *out) {
    png_image *png = berth_arena_new(scratch, png_image);
    png->version = PNG_IMAGE_VERSION;
    berth_arena_defer(scratch, free_png, png);
    if (!png_image_begin_read_from_memory(png, data, size_bytes))
        return BAD("the PNG file is damaged: %s", png->message);
    uint32_t channels = png->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    png->format = channels == 3 ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
    png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as in 8 bits
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__allocate(arena, png->width, png->height, channels + 1, &pixels));
    if (!png_image_finish_read(png, NULL, pixels, 0, NULL))
        return BAD("the PNG file is damaged: %s", png->message);
    drop_opacity(pixels, (size_t)png->width * png->height, channels);
    *out = (berth_image){png->width, png->height, channels, pixels};
    return BERTH_OK;
}

// ---- PPM, PGM -----------------------------------------------------------------------------------

// A number of the header, after spaces and comments.
static bool take_number(const uint8_t **at, const uint8_t *end, uint32_t *out) {
    const uint8_t *p = *at;
    for (; p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r') || *p == '#'); ++p)
        if (*p == '#')
            while (p + 1 < end && *p != '\n') ++p;
    const uint8_t *start = p;
    *out = 0;
    for (; p < end && *p >= '0' && *p <= '9' && p - start < 9; ++p)
        *out = *out * 10 + (uint32_t)(*p - '0');
    *at = p;
    return p > start;
}

// http://netpbm.sourceforge.net/doc/ppm.html: "P6 WIDTH HEIGHT MAXVAL", one space, the bytes.
static berth_status read_pnm(berth_arena *arena, const uint8_t *data, size_t size_bytes,
                             berth_image *out) {
    const uint8_t *at = data + 2, *end = data + size_bytes;
    uint32_t width = 0, height = 0, most = 0, channels = data[1] == '6' ? 3 : 1;
    if (!take_number(&at, end, &width) || !take_number(&at, end, &height) ||
        !take_number(&at, end, &most) || at == end)
        return BAD("the PPM or PGM file has no complete header");
    at++;
    if (most != UINT8_MAX)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a PPM or PGM file with values up to %u; up to 255 is read", most);
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__allocate(arena, width, height, channels, &pixels));
    size_t wanted = (size_t)width * height * channels;
    if ((size_t)(end - at) < wanted)
        return BAD("the PPM or PGM file has %zu bytes of pixels, not %zu", (size_t)(end - at),
                   wanted);
    memcpy(pixels, at, wanted);
    *out = (berth_image){width, height, channels, pixels};
    return BERTH_OK;
}

berth_status berth_image_read(berth_arena *arena, const void *data, size_t size_bytes,
                              berth_image *out_image) {
    *out_image = (berth_image){0};
    if (is_jpeg(data, size_bytes))
        return berth_image__read_jpeg(arena, data, size_bytes, out_image);
    if (is_pnm(data, size_bytes)) return read_pnm(arena, data, size_bytes, out_image);
    if (!is_png(data, size_bytes)) return BAD("neither a PNG, JPEG, PPM nor PGM file");
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_status status = read_png(arena, scratch, data, size_bytes, out_image);
    berth_arena_destroy(scratch);
    return status;
}
