// BMP: palettes of 1, 2, 4 and 8 bits, their run lengths, and colours of 16, 24 and 32 bits under masks.
// Source: Microsoft's documentation of BITMAPFILEHEADER, BITMAPINFOHEADER, BITMAPV5HEADER and "Bitmap Compression".
#include <string.h>

#include "image/internal.h"

enum {
    COMPRESSION_NONE,
    COMPRESSION_RLE8,
    COMPRESSION_RLE4,
    COMPRESSION_MASKS,
    COMPRESSION_ALPHA_MASKS = 6
};

typedef struct reader {
    const uint8_t *data;
    size_t size_bytes;
    size_t header_end, pixels_at;
    uint32_t width, height, bits, compression;
    bool top_down;
    uint32_t mask[3];         // red, green, blue
    uint8_t palette[256][3];  // red, green, blue
} reader;

static uint32_t u16(const reader *r, size_t at) {
    return (uint32_t)r->data[at] | (uint32_t)r->data[at + 1] << 8;
}

static uint32_t u32(const reader *r, size_t at) {
    return u16(r, at) | u16(r, at + 2) << 16;
}

static berth_status cut(void) {
    return BERTH_IMAGE_BAD("the BMP file is cut");
}

// OS/2's header has 16-bit extents, the others 32-bit ones and what the pixels are.
static berth_status read_extents(reader *r, uint32_t header_bytes) {
    if (header_bytes == 12) {
        r->width = u16(r, 18);
        r->height = u16(r, 20);
        r->bits = u16(r, 24);
        return BERTH_OK;
    }
    int64_t width = (int32_t)u32(r, 18), height = (int32_t)u32(r, 22);
    if (width <= 0 || height == 0)
        return BERTH_IMAGE_BAD("the BMP file has %lld x %lld pixels", (long long)width,
                               (long long)height);
    r->top_down = height < 0;
    r->width = (uint32_t)width;
    r->height = (uint32_t)(height < 0 ? -height : height);
    r->bits = u16(r, 28);
    r->compression = u32(r, 30);
    return BERTH_OK;
}

static bool known_pixels(const reader *r) {
    switch (r->compression) {
    case COMPRESSION_NONE:
        return r->bits == 1 || r->bits == 2 || r->bits == 4 || r->bits == 8 || r->bits == 16 ||
               r->bits == 24 || r->bits == 32;
    case COMPRESSION_RLE8: return r->bits == 8 && !r->top_down;
    case COMPRESSION_RLE4: return r->bits == 4 && !r->top_down;
    case COMPRESSION_MASKS:
    case COMPRESSION_ALPHA_MASKS: return r->bits == 16 || r->bits == 32;
    default: return false;
    }
}

static berth_status read_masks(reader *r) {
    static const uint32_t of_16[3] = {0x7c00, 0x3e0, 0x1f}, of_32[3] = {0xff0000, 0xff00, 0xff};
    memcpy(r->mask, r->bits == 16 ? of_16 : of_32, sizeof(r->mask));
    if (r->compression != COMPRESSION_MASKS && r->compression != COMPRESSION_ALPHA_MASKS)
        return BERTH_OK;
    if (r->size_bytes < 14 + 40 + 12) return cut();
    for (size_t c = 0; c < 3; ++c) {
        r->mask[c] = u32(r, 54 + 4 * c);
        uint32_t low = r->mask[c] & (~r->mask[c] + 1);
        if (r->mask[c] & (r->mask[c] + low))
            return BERTH_IMAGE_BAD("the BMP file's mask %08x has gaps", r->mask[c]);
    }
    // Behind the shortest header they follow; longer ones have them inside.
    if (r->header_end == 54) r->header_end += r->compression == COMPRESSION_MASKS ? 12 : 16;
    return BERTH_OK;
}

static berth_status read_palette(reader *r, uint32_t header_bytes) {
    if (r->bits > 8) return BERTH_OK;
    size_t entry = header_bytes == 12 ? 3 : 4, count = (size_t)1 << r->bits;
    uint32_t used = header_bytes == 12 ? 0 : u32(r, 46);
    if (used && used < count) count = used;
    if (r->size_bytes < r->header_end || (r->size_bytes - r->header_end) / entry < count)
        return cut();
    for (size_t i = 0; i < count; ++i)
        for (size_t c = 0; c < 3; ++c)
            r->palette[i][c] = r->data[r->header_end + i * entry + 2 - c];
    return BERTH_OK;
}

static berth_status read_header(reader *r) {
    if (r->size_bytes < 26) return cut();
    uint32_t header_bytes = u32(r, 14);
    r->pixels_at = u32(r, 10);
    if (header_bytes != 12 && (header_bytes < 40 || header_bytes > 1024))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a BMP file with a header of %u bytes; 12 and from 40 on are read",
                                 header_bytes);
    r->header_end = 14 + (size_t)header_bytes;
    if (r->size_bytes < r->header_end || r->size_bytes < r->pixels_at) return cut();
    BERTH_TRY(read_extents(r, header_bytes));
    if (!known_pixels(r))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a BMP file of %u bits a pixel with compression %u is not read",
                                 r->bits, r->compression);
    BERTH_TRY(read_masks(r));
    return read_palette(r, header_bytes);
}

// ---- pixels -------------------------------------------------------------------------------------

static uint8_t *row_of(const reader *r, uint8_t *pixels, size_t y, size_t bytes_per_pixel) {
    size_t row = r->top_down ? y : r->height - 1 - y;
    return pixels + row * r->width * bytes_per_pixel;
}

// Pairs of a count and a colour; a count of 0 begins the end of a row (0), of all (1), a jump (2) or so many colours as they are.
static berth_status unpack_runs(const reader *r, uint8_t *indices) {
    size_t at = r->pixels_at, x = 0, y = 0;
    bool nibbles = r->compression == COMPRESSION_RLE4;
    while (at + 2 <= r->size_bytes && y < r->height) {
        size_t count = r->data[at], what = r->data[at + 1];
        bool plain = count == 0 && what > 2;
        at += 2;
        if (count == 0 && what == 0) {
            x = 0, y++;
            continue;
        }
        if (count == 0 && what == 1) return BERTH_OK;
        if (count == 0 && what == 2) {
            if (at + 2 > r->size_bytes) return cut();
            x += r->data[at], y += r->data[at + 1], at += 2;
            continue;
        }
        size_t bytes = plain ? (nibbles ? (what + 1) / 2 : what) : 0;
        if (plain) count = what;
        if (r->size_bytes - at < bytes) return cut();
        for (size_t i = 0; i < count && x < r->width; ++i, ++x) {
            size_t value = !plain ? what : r->data[at + (nibbles ? i / 2 : i)];
            row_of(r, indices, y, 1)[x] = (uint8_t)(!nibbles ? value
                                                    : i % 2  ? value & 15
                                                             : value >> 4);
        }
        at += (bytes + 1) & ~(size_t)1;
    }
    return y < r->height ? cut() : BERTH_OK;
}

static void unpack_indices(const reader *r, size_t row_bytes, uint8_t *indices) {
    for (size_t y = 0; y < r->height; ++y) {
        const uint8_t *from = r->data + r->pixels_at + y * row_bytes;
        uint8_t *to = row_of(r, indices, y, 1);
        for (size_t x = 0; x < r->width; ++x) {
            size_t bit = x * r->bits;
            to[x] = (uint8_t)((uint32_t)from[bit / 8] >> (8 - r->bits - bit % 8) &
                              ((1u << r->bits) - 1));
        }
    }
}

static uint8_t masked(uint32_t pixel, uint32_t mask) {
    if (!mask) return 0;
    uint32_t low = mask & (~mask + 1);
    return berth_image__to_byte((pixel & mask) / low, mask / low);
}

static void unpack_colours(const reader *r, size_t row_bytes, uint8_t *pixels) {
    for (size_t y = 0; y < r->height; ++y) {
        size_t at = r->pixels_at + y * row_bytes;
        uint8_t *to = row_of(r, pixels, y, 3);
        for (size_t x = 0; x < r->width; ++x, to += 3, at += r->bits / 8) {
            uint32_t pixel = r->bits == 16   ? u16(r, at)
                             : r->bits == 32 ? u32(r, at)
                                             : u16(r, at) | (uint32_t)r->data[at + 2] << 16;
            for (size_t c = 0; c < 3; ++c) to[c] = masked(pixel, r->mask[c]);
        }
    }
}

static berth_status read_indices(const reader *r, const berth_image__file *file, size_t row_bytes,
                                 berth_image *out) {
    size_t count = (size_t)r->width * r->height;
    uint8_t *indices = berth_arena_alloc(file->scratch, count);
    uint8_t *pixels = NULL;
    bool coloured = false;
    if (r->compression == COMPRESSION_NONE)
        unpack_indices(r, row_bytes, indices);
    else
        BERTH_TRY(unpack_runs(r, indices));
    for (int i = 0; i < 256; ++i)
        coloured |= r->palette[i][0] != r->palette[i][1] || r->palette[i][1] != r->palette[i][2];
    uint32_t channels = coloured ? 3 : 1;
    BERTH_TRY(berth_image__allocate(file, r->width, r->height, channels, &pixels));
    for (size_t i = 0; i < count; ++i)
        for (uint32_t c = 0; c < channels; ++c)
            pixels[i * channels + c] = r->palette[indices[i]][c];
    *out = (berth_image){r->width, r->height, channels, pixels};
    return BERTH_OK;
}

berth_status berth_image__read_bmp(const berth_image__file *file, berth_image *out) {
    reader *r = berth_arena_new(file->scratch, reader);
    uint8_t *pixels = NULL;
    r->data = file->data;
    r->size_bytes = file->size_bytes;
    BERTH_TRY(read_header(r));
    BERTH_TRY(berth_image__check_extents(r->width, r->height));
    size_t row_bytes = ((size_t)r->width * r->bits + 31) / 32 * 4;
    bool runs = r->compression == COMPRESSION_RLE8 || r->compression == COMPRESSION_RLE4;
    if (!runs && (r->size_bytes - r->pixels_at) / row_bytes < r->height) return cut();
    if (r->bits <= 8) return read_indices(r, file, row_bytes, out);
    BERTH_TRY(berth_image__allocate(file, r->width, r->height, 3, &pixels));
    unpack_colours(r, row_bytes, pixels);
    *out = (berth_image){r->width, r->height, 3, pixels};
    return BERTH_OK;
}
