// Forms of BMP and PNM written out by hand, which programs that write pictures do not give; damage; a library that is missing.
// Pictures of all formats that Pillow writes: check_pictures.py.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynlib.h"
#include "image/internal.h"

typedef struct job {
    berth_arena *arena;
    const void *data;
    size_t size_bytes;
    berth_image image;
} job;

static berth_status read_job(void *user) {
    job *j = user;
    return berth_image_read(j->arena, j->data, j->size_bytes, &j->image);
}

static berth_status read_bytes(const void *data, size_t size_bytes, job *out) {
    *out = (job){.data = data, .size_bytes = size_bytes};
    cr_assert_null(berth_arena_create(berth_allocator_system(), &out->arena));
    return berth_arena_try(out->arena, read_job, out);
}

static void expect_pixels(const void *data, size_t size_bytes, uint32_t width, uint32_t height,
                          uint32_t channels, const uint8_t *pixels, const char *what) {
    job j;
    berth_status status = read_bytes(data, size_bytes, &j);
    cr_assert_null(status, "%s: %s", what, berth_status_message(status));
    cr_assert(j.image.width == width && j.image.height == height && j.image.channels == channels,
              "%s: %u x %u x %u", what, j.image.width, j.image.height, j.image.channels);
    for (size_t i = 0; i < (size_t)width * height * channels; ++i)
        cr_expect_eq(j.image.pixels[i], pixels[i], "%s: byte %zu is %u, not %u", what, i,
                     j.image.pixels[i], pixels[i]);
    berth_arena_destroy(j.arena);
}

static void expect_error(const void *data, size_t size_bytes, berth_code code, const char *text) {
    job j;
    berth_status status = read_bytes(data, size_bytes, &j);
    cr_assert_not_null(status, "%s", text);
    cr_expect_eq(berth_status_code(status), code, "%s", berth_status_message(status));
    cr_expect(strstr(berth_status_message(status), text), "%s", berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(j.arena);
}

// ---- PNM ----------------------------------------------------------------------------------------

Test(pnm, texts_and_bytes) {
    static const struct {
        const char *text;
        size_t length;
        uint32_t width, height, channels;
        uint8_t pixels[12];
    } files[] = {
        {"P1 # bits\n3 2\n1 0 1 011", 24, 3, 2, 1, {0, 255, 0, 255, 0, 0}},
        {"P2\n2 2 10\n0 1\n5 10\n", 19, 2, 2, 1, {0, 26, 128, 255}},
        {"P3 1 2 255 1 2 3 #x\n 4 5 6", 26, 1, 2, 3, {1, 2, 3, 4, 5, 6}},
        {"P4\n10 1\n\xaa\x40", 10, 10, 1, 1, {0, 255, 0, 255, 0, 255, 0, 255, 255, 0}},
        {"P5 2 1 65535\n\x80\x80\xff\xff", 17, 2, 1, 1, {128, 255}},
        {"P5 2 1 3\n\x01\x03", 11, 2, 1, 1, {85, 255}},
        {"P6 1 1 255\n\x07\x08\x09", 14, 1, 1, 3, {7, 8, 9}},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i)
        expect_pixels(files[i].text, files[i].length, files[i].width, files[i].height,
                      files[i].channels, files[i].pixels, files[i].text);
}

Test(pnm, damage) {
    expect_error("P2 2 2", 6, BERTH_INVALID_ARGUMENT, "no complete header");
    expect_error("P2 2 1 0 0 0", 12, BERTH_INVALID_ARGUMENT, "values up to 0");
    expect_error("P2 2 1 9 3 10 ", 14, BERTH_INVALID_ARGUMENT, "value 1");
    expect_error("P1 2 1 12", 9, BERTH_INVALID_ARGUMENT, "value 1");
    expect_error("P6 2 1 255 123", 14, BERTH_INVALID_ARGUMENT, "has 3 bytes of pixels, not 6");
    expect_error("P5 99999 99999 255 1", 20, BERTH_OUT_OF_RANGE, "at most");
    expect_error("P5 0 9 255 1", 12, BERTH_INVALID_ARGUMENT, "0 x 9 pixels");
    expect_error("Q5 1 1 255 1", 12, BERTH_INVALID_ARGUMENT, "no BMP, JPEG");
}

// ---- BMP ----------------------------------------------------------------------------------------

typedef struct bmp {
    uint8_t bytes[256];
    size_t size_bytes;
} bmp;

static void put(bmp *b, uint32_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) b->bytes[b->size_bytes++] = (uint8_t)value;
}

// Both headers; `extra` bytes of masks and palette come between them and the pixels.
static bmp begin(int32_t width, int32_t height, uint32_t bits, uint32_t compression,
                 uint32_t colours, uint32_t extra) {
    bmp b = {.size_bytes = 0};
    put(&b, 'B' | 'M' << 8, 2), put(&b, 0, 8), put(&b, 54 + extra, 4);
    put(&b, 40, 4), put(&b, (uint32_t)width, 4), put(&b, (uint32_t)height, 4), put(&b, 1, 2);
    put(&b, bits, 2), put(&b, compression, 4), put(&b, 0, 4), put(&b, 2835, 4), put(&b, 2835, 4);
    put(&b, colours, 4), put(&b, 0, 4);
    return b;
}

static void put_palette(bmp *b) {  // black, red, green, blue
    put(b, 0, 4), put(b, 0xff0000, 4), put(b, 0xff00, 4), put(b, 0xff, 4);
}

#define BLACK 0, 0, 0
#define RED 255, 0, 0
#define GREEN 0, 255, 0
#define BLUE 0, 0, 255

Test(bmp, runs) {
    // Bottom row: two red, then three as they are (and a byte that fills up); end of row; one to the right: blue; the end.
    bmp b = begin(5, 2, 8, 1, 4, 16);
    put_palette(&b);
    static const uint8_t of_bytes[] = {2, 1, 0, 3, 2, 0, 3, 0, 0, 0, 0, 2, 1, 0, 1, 3, 0, 1};
    memcpy(b.bytes + b.size_bytes, of_bytes, sizeof(of_bytes));
    static const uint8_t pixels[] = {BLACK, BLUE, BLACK, BLACK, BLACK,
                                     RED,   RED,  GREEN, BLACK, BLUE};
    expect_pixels(b.bytes, b.size_bytes + sizeof(of_bytes), 5, 2, 3, pixels, "runs of bytes");
    expect_error(b.bytes, b.size_bytes + sizeof(of_bytes) - 4, BERTH_INVALID_ARGUMENT, "cut");

    b = begin(5, 2, 4, 2, 4, 16);
    put_palette(&b);
    static const uint8_t of_nibbles[] = {2, 0x11, 0, 3, 0x20, 0x30, 0, 0,
                                         0, 2,    1, 0, 1,    0x30, 0, 1};
    memcpy(b.bytes + b.size_bytes, of_nibbles, sizeof(of_nibbles));
    expect_pixels(b.bytes, b.size_bytes + sizeof(of_nibbles), 5, 2, 3, pixels, "runs of nibbles");
}

// Jumps, counts and rows beyond the picture touch nothing.
Test(bmp, runs_beyond_the_picture) {
    bmp b = begin(2, 1, 8, 1, 4, 16);
    put_palette(&b);
    static const uint8_t code[] = {255, 1, 0, 2, 200, 0, 255, 2, 0, 2, 0, 250, 9, 3, 0, 1};
    memcpy(b.bytes + b.size_bytes, code, sizeof(code));
    static const uint8_t pixels[] = {RED, RED};
    expect_pixels(b.bytes, b.size_bytes + sizeof(code), 2, 1, 3, pixels, "beyond");
}

Test(bmp, few_bits_and_masks) {
    bmp b = begin(3, -2, 2, 0, 4, 16);  // from the top down
    put_palette(&b);
    put(&b, 0x1b, 4), put(&b, 0xe4, 4);  // 0 1 2 (3), 3 2 1 (0)
    static const uint8_t two_bits[] = {BLACK, RED, GREEN, BLUE, GREEN, RED};
    expect_pixels(b.bytes, b.size_bytes, 3, 2, 3, two_bits, "two bits");

    b = begin(2, 1, 16, 0, 0, 0);  // five bits each
    put(&b, 0x7c00 | 16, 2), put(&b, 0x3e0, 2);
    static const uint8_t fives[] = {255, 0, 132, 0, 255, 0};
    expect_pixels(b.bytes, b.size_bytes, 2, 1, 3, fives, "16 bits");

    b = begin(1, 1, 32, 3, 0, 12);  // ten bits each, blue highest
    put(&b, 0x3ff, 4), put(&b, 0xffc00, 4), put(&b, 0x3ff00000, 4), put(&b, 1023 | 512u << 20, 4);
    static const uint8_t tens[] = {255, 0, 128};
    expect_pixels(b.bytes, b.size_bytes, 1, 1, 3, tens, "32 bits under masks");
    b.bytes[54] = 0xfd;
    expect_error(b.bytes, b.size_bytes, BERTH_INVALID_ARGUMENT, "has gaps");
}

Test(bmp, header_of_os2) {
    bmp b = {.size_bytes = 0};
    put(&b, 'B' | 'M' << 8, 2), put(&b, 0, 8), put(&b, 26 + 6, 4);
    put(&b, 12, 4), put(&b, 1, 2), put(&b, 1, 2), put(&b, 1, 2), put(&b, 1, 2);
    put(&b, 0, 3), put(&b, 0x0000ff, 3), put(&b, 0x80, 4);
    expect_pixels(b.bytes, b.size_bytes, 1, 1, 3, (const uint8_t[]){BLUE}, "OS/2");
}

Test(bmp, damage) {
    bmp b = begin(2, 2, 24, 0, 0, 0);
    put(&b, 0, 12);
    expect_error(b.bytes, b.size_bytes, BERTH_INVALID_ARGUMENT, "cut");
    expect_error(b.bytes, 20, BERTH_INVALID_ARGUMENT, "cut");
    b = begin(2, INT32_MIN, 24, 0, 0, 0);
    expect_error(b.bytes, b.size_bytes, BERTH_OUT_OF_RANGE, "at most");
    b = begin(-2, 2, 24, 0, 0, 0);
    expect_error(b.bytes, b.size_bytes, BERTH_INVALID_ARGUMENT, "-2 x 2");
    b = begin(2, 2, 24, 4, 0, 0);  // a JPEG inside
    expect_error(b.bytes, b.size_bytes, BERTH_UNSUPPORTED, "compression 4");
    b = begin(2, 2, 8, 0, 0, 0);
    expect_error(b.bytes, b.size_bytes, BERTH_INVALID_ARGUMENT, "cut");
}

// ---- libraries ----------------------------------------------------------------------------------

Test(library, is_missing_or_too_old) {
    void *table[2] = {NULL, NULL};
    berth_image__library absent = {.format = "XYZ",
                                   .package = "libxyz 3 (Debian: libxyz3)",
                                   .names = (const char *const[]){"libno-such-thing.so.3", NULL},
                                   .functions = "xyz\0",
                                   .table = table,
                                   .lock = PTHREAD_MUTEX_INITIALIZER};
    berth_status status = berth_image__load(&absent);
    cr_assert_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(berth_status_message(status), "XYZ pictures need libxyz 3 (Debian: libxyz3)"),
              "%s", berth_status_message(status));
    berth_status_free(status);

    berth_image__library old = absent;
    old.names = (const char *const[]){"libm.so.6", NULL};
    old.functions = "cos\0no_such_function\0";
    status = berth_image__load(&old);
    cr_assert_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(berth_status_message(status), "lacks no_such_function"), "%s",
              berth_status_message(status));
    berth_status_free(status);
}
