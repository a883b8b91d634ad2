// JPEG 2000, files (.jp2) and bare code streams (.j2k), through OpenJPEG 2, of which what is used is declared here: its headers
// are not needed. Grey and RGB are read, and YCC by the equations of JFIF; components of other precisions are rounded to 8 bits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "image/internal.h"

enum { CODEC_CODE_STREAM = 0, CODEC_FILE = 2 };
enum { COLOURS_YCC = 3, COLOURS_EXTENDED_YCC = 4, COLOURS_CMYK = 5 };
enum {
    most_components = 16,
    most_bits = 31,
    parameter_bytes = 1 << 16
};  // more than any version's

typedef struct component {  // opj_image_comp_t
    uint32_t dx, dy;        // of the picture's pixels, for one of its
    uint32_t width, height, x0, y0;
    uint32_t bits, unused, is_signed, resolutions, factor;
    int32_t *data;  // [height][width]
    uint16_t alpha;
} component;

typedef struct picture {  // opj_image_t
    uint32_t x0, y0, x1, y1, component_count;
    int colours;
    component *components;
    uint8_t *profile;
    uint32_t profile_bytes;
} picture;

typedef void message_handler(const char *message, void *user);

static struct {
    void *(*opj_stream_create)(size_t buffer_bytes, int is_input);
    void (*opj_stream_destroy)(void *stream);
    void (*opj_stream_set_read_function)(void *stream,
                                         size_t (*read)(void *to, size_t bytes, void *user));
    void (*opj_stream_set_skip_function)(void *stream, int64_t (*skip)(int64_t bytes, void *user));
    void (*opj_stream_set_seek_function)(void *stream, int (*seek)(int64_t offset, void *user));
    void (*opj_stream_set_user_data)(void *stream, void *user, void (*free)(void *user));
    void (*opj_stream_set_user_data_length)(void *stream, uint64_t bytes);
    void *(*opj_create_decompress)(int codec);
    void (*opj_destroy_codec)(void *codec);
    int (*opj_set_error_handler)(void *codec, message_handler *handler, void *user);
    void (*opj_set_default_decoder_parameters)(void *parameters);
    int (*opj_setup_decoder)(void *codec, void *parameters);
    int (*opj_read_header)(void *stream, void *codec, picture **out);
    int (*opj_decode)(void *codec, void *stream, picture *image);
    void (*opj_image_destroy)(picture *image);
} opj;

static berth_image__library library = {
    .format = "JPEG 2000",
    .package = "OpenJPEG 2 (Debian: libopenjp2-7)",
    .names = (const char *const[]){"libopenjp2.so.7", NULL},
    .functions = "opj_stream_create\0opj_stream_destroy\0opj_stream_set_read_function\0"
                 "opj_stream_set_skip_function\0opj_stream_set_seek_function\0"
                 "opj_stream_set_user_data\0opj_stream_set_user_data_length\0"
                 "opj_create_decompress\0opj_destroy_codec\0opj_set_error_handler\0"
                 "opj_set_default_decoder_parameters\0opj_setup_decoder\0opj_read_header\0"
                 "opj_decode\0opj_image_destroy\0",
    .table = &opj,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

typedef struct reader {
    const berth_image__file *file;
    size_t at;
    void *stream, *codec;
    picture *image;
    char message[160];  // of the first error
} reader;

static size_t read_at(void *to, size_t bytes, void *user) {
    reader *r = user;
    size_t left = r->file->size_bytes - r->at, count = bytes < left ? bytes : left;
    memcpy(to, r->file->data + r->at, count);
    r->at += count;
    return count ? count : SIZE_MAX;  // the end
}

static int seek(int64_t offset, void *user) {
    reader *r = user;
    if (offset < 0 || (uint64_t)offset > r->file->size_bytes) return 0;
    r->at = (size_t)offset;
    return 1;
}

static int64_t skip(int64_t bytes, void *user) {
    reader *r = user;
    size_t left = r->file->size_bytes - r->at;
    if (bytes < 0 || (uint64_t)bytes > left) return -1;
    r->at += (size_t)bytes;
    return bytes;
}

static void keep_error(const char *message, void *user) {
    reader *r = user;
    if (!r->message[0])
        snprintf(r->message, sizeof(r->message), "%.*s", (int)strcspn(message, "\n"), message);
}

static void close_all(void *user) {
    reader *r = user;
    if (r->image) opj.opj_image_destroy(r->image);
    if (r->codec) opj.opj_destroy_codec(r->codec);
    if (r->stream) opj.opj_stream_destroy(r->stream);
}

static berth_status failure(const reader *r) {
    return BERTH_IMAGE_BAD("the JPEG 2000 file is damaged%s%s", r->message[0] ? ": " : "",
                           r->message);
}

static berth_status open_stream(reader *r) {
    bool bare = r->file->data[0] == 0xff;
    void *parameters = berth_arena_alloc(r->file->scratch, parameter_bytes);
    r->stream = opj.opj_stream_create(r->file->size_bytes, 1);
    r->codec = opj.opj_create_decompress(bare ? CODEC_CODE_STREAM : CODEC_FILE);
    if (!r->stream || !r->codec) return berth_status_oom();
    opj.opj_stream_set_read_function(r->stream, read_at);
    opj.opj_stream_set_skip_function(r->stream, skip);
    opj.opj_stream_set_seek_function(r->stream, seek);
    opj.opj_stream_set_user_data(r->stream, r, NULL);
    opj.opj_stream_set_user_data_length(r->stream, r->file->size_bytes);
    opj.opj_set_error_handler(r->codec, keep_error, r);
    opj.opj_set_default_decoder_parameters(parameters);
    if (!opj.opj_setup_decoder(r->codec, parameters) ||
        !opj.opj_read_header(r->stream, r->codec, &r->image) || !r->image)
        return failure(r);
    return BERTH_OK;
}

static berth_status check_form(const picture *p) {
    bool known = p->component_count >= 1 && p->component_count <= most_components &&
                 p->colours != COLOURS_CMYK && p->colours != COLOURS_EXTENDED_YCC;
    for (uint32_t c = 0; known && c < p->component_count; ++c) {
        const component *k = &p->components[c];
        known = k->bits >= 1 && k->bits <= most_bits && k->dx && k->dy;
    }
    return known ? BERTH_OK
                 : berth_status_make(BERTH_UNSUPPORTED,
                                     "this form of JPEG 2000 is not read: %u components, colour "
                                     "space %d",
                                     p->component_count, p->colours);
}

// Component `c` where the first one has pixel (x, y), as 0 to 255.
static uint8_t sample(const picture *p, uint32_t c, size_t x, size_t y) {
    const component *k = &p->components[c], *first = &p->components[0];
    size_t column = x * first->dx / k->dx, row = y * first->dy / k->dy;
    if (column >= k->width) column = k->width - 1;
    if (row >= k->height) row = k->height - 1;
    int64_t most = (INT64_C(1) << k->bits) - 1;
    int64_t value =
        k->data[row * k->width + column] + (k->is_signed ? INT64_C(1) << (k->bits - 1) : 0);
    return berth_image__to_byte((uint64_t)(value < 0      ? 0
                                           : value > most ? most
                                                          : value),
                                (uint64_t)most);
}

static uint8_t clamped(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : lrint(value));
}

static void from_ycc(uint8_t *pixel) {
    double y = pixel[0], blue = pixel[1] - 128.0, red = pixel[2] - 128.0;
    pixel[0] = clamped(y + 1.402 * red);
    pixel[1] = clamped(y - 0.344136 * blue - 0.714136 * red);
    pixel[2] = clamped(y + 1.772 * blue);
}

static void take_pixels(const picture *p, uint32_t channels, uint8_t *pixels) {
    const component *first = &p->components[0];
    // Bare code streams do not say what their components are: those of fewer samples are colour differences.
    bool ycc = channels == 3 && (p->colours == COLOURS_YCC || (p->components[1].dx > first->dx &&
                                                               p->components[2].dx > first->dx));
    for (size_t y = 0; y < first->height; ++y)
        for (size_t x = 0; x < first->width; ++x, pixels += channels) {
            for (uint32_t c = 0; c < channels; ++c) pixels[c] = sample(p, c, x, y);
            if (ycc) from_ycc(pixels);
        }
}

berth_status berth_image__read_jpeg2000(const berth_image__file *file, berth_image *out) {
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__load(&library));
    reader *r = berth_arena_new(file->scratch, reader);
    r->file = file;
    berth_arena_defer(file->scratch, close_all, r);
    BERTH_TRY(open_stream(r));
    BERTH_TRY(check_form(r->image));
    uint64_t width = (uint64_t)r->image->x1 - r->image->x0,
             height = (uint64_t)r->image->y1 - r->image->y0;
    BERTH_TRY(berth_image__check_extents(width, height));
    if (!opj.opj_decode(r->codec, r->stream, r->image)) return failure(r);
    BERTH_TRY(check_form(r->image));  // a palette's colours are components now
    uint32_t channels = r->image->component_count >= 3 ? 3 : 1;
    for (uint32_t c = 0; c < channels; ++c) {
        const component *k = &r->image->components[c];
        if (!k->data || !k->width || !k->height) return failure(r);
    }
    const component *first = &r->image->components[0];
    BERTH_TRY(berth_image__allocate(file, first->width, first->height, channels, &pixels));
    take_pixels(r->image, channels, pixels);
    *out = (berth_image){first->width, first->height, channels, pixels};
    return BERTH_OK;
}
