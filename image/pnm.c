// PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6): https://netpbm.sourceforge.net/doc/pnm.html.
#include <string.h>

#include "image/internal.h"

typedef struct reader {
    const uint8_t *at, *end;
    char form;                     // '1' to '6'
    uint32_t width, height, most;  // `most`: what stands for white
    uint32_t channels;
} reader;

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_spaces(reader *r) {
    for (; r->at < r->end && (is_space(*r->at) || *r->at == '#'); ++r->at)
        if (*r->at == '#')
            while (r->at + 1 < r->end && *r->at != '\n') ++r->at;
}

// A number, after spaces and comments.
static bool take_number(reader *r, uint32_t *out) {
    skip_spaces(r);
    const uint8_t *start = r->at;
    *out = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - start < 9; ++r->at)
        *out = *out * 10 + (uint32_t)(*r->at - '0');
    return r->at > start;
}

static berth_status read_header(reader *r) {
    r->form = (char)r->at[1];
    r->at += 2;
    r->channels = r->form == '3' || r->form == '6' ? 3 : 1;
    r->most = 1;
    bool has_most = r->form != '1' && r->form != '4';
    if (!take_number(r, &r->width) || !take_number(r, &r->height) ||
        (has_most && !take_number(r, &r->most)) || r->at == r->end)
        return BERTH_IMAGE_BAD("the PNM file has no complete header");
    if (r->most == 0 || r->most > UINT16_MAX)
        return BERTH_IMAGE_BAD("the PNM file has values up to %u; 1 to 65535 are possible",
                               r->most);
    r->at++;  // one space before the pixels
    return BERTH_OK;
}

static bool take_digit(reader *r, uint32_t *out) {
    skip_spaces(r);
    if (r->at == r->end || (*r->at != '0' && *r->at != '1')) return false;
    *out = (uint32_t)(*r->at++ - '0');
    return true;
}

static berth_status read_text(reader *r, size_t count, uint8_t *pixels) {
    for (size_t i = 0; i < count; ++i) {
        uint32_t value = 0;
        if (!(r->form == '1' ? take_digit(r, &value) : take_number(r, &value)) || value > r->most)
            return BERTH_IMAGE_BAD("value %zu of the PNM file is missing, or none of 0 to %u", i,
                                   r->most);
        pixels[i] =
            r->form == '1' ? (uint8_t)(value ? 0 : 255) : berth_image__to_byte(value, r->most);
    }
    return BERTH_OK;
}

static void unpack_bits(const reader *r, uint8_t *pixels) {
    size_t row_bytes = ((size_t)r->width + 7) / 8;
    for (size_t y = 0; y < r->height; ++y)
        for (size_t x = 0; x < r->width; ++x)
            pixels[y * r->width + x] = r->at[y * row_bytes + x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
}

static berth_status read_bytes(const reader *r, size_t count, uint8_t *pixels) {
    size_t wide = r->most > 255 ? 2 : 1;
    size_t wanted = r->form == '4' ? ((size_t)r->width + 7) / 8 * r->height : count * wide;
    if ((size_t)(r->end - r->at) < wanted)
        return BERTH_IMAGE_BAD("the PNM file has %zu bytes of pixels, not %zu",
                               (size_t)(r->end - r->at), wanted);
    if (r->form == '4') {
        unpack_bits(r, pixels);
    } else if (r->most == 255) {
        memcpy(pixels, r->at, count);
    } else {
        for (size_t i = 0; i < count; ++i) {
            uint32_t value = wide == 2 ? (uint32_t)r->at[2 * i] << 8 | r->at[2 * i + 1] : r->at[i];
            pixels[i] = berth_image__to_byte(value < r->most ? value : r->most, r->most);
        }
    }
    return BERTH_OK;
}

berth_status berth_image__read_pnm(const berth_image__file *file, berth_image *out) {
    reader r = {.at = file->data, .end = file->data + file->size_bytes};
    uint8_t *pixels = NULL;
    BERTH_TRY(read_header(&r));
    BERTH_TRY(berth_image__allocate(file, r.width, r.height, r.channels, &pixels));
    size_t count = (size_t)r.width * r.height * r.channels;
    BERTH_TRY(r.form <= '3' ? read_text(&r, count, pixels) : read_bytes(&r, count, pixels));
    *out = (berth_image){r.width, r.height, r.channels, pixels};
    return BERTH_OK;
}
