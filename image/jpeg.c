// JPEG through libjpeg, which reports errors by a jump and damage by warnings: both are errors here.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "image/internal.h"

static struct {
    __typeof__(jpeg_std_error) *jpeg_std_error;
    __typeof__(jpeg_CreateDecompress) *jpeg_CreateDecompress;
    __typeof__(jpeg_mem_src) *jpeg_mem_src;
    __typeof__(jpeg_read_header) *jpeg_read_header;
    __typeof__(jpeg_start_decompress) *jpeg_start_decompress;
    __typeof__(jpeg_read_scanlines) *jpeg_read_scanlines;
    __typeof__(jpeg_finish_decompress) *jpeg_finish_decompress;
    __typeof__(jpeg_destroy_decompress) *jpeg_destroy_decompress;
} jpeg;

static berth_image__library library = {
    .format = "JPEG",
    .package = "libjpeg-turbo (Debian: libjpeg62-turbo)",
    // Of the interface that the headers are of: libjpeg 6b's or libjpeg 8's.
    .names = (const char *const[]){JPEG_LIB_VERSION < 70 ? "libjpeg.so.62" : "libjpeg.so.8", NULL},
    .functions = "jpeg_std_error\0jpeg_CreateDecompress\0jpeg_mem_src\0jpeg_read_header\0"
                 "jpeg_start_decompress\0jpeg_read_scanlines\0jpeg_finish_decompress\0"
                 "jpeg_destroy_decompress\0",
    .table = &jpeg,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

enum { most_scans = 500 };  // a progressive file may have scans without end

typedef struct reader {
    struct jpeg_decompress_struct state;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf stop;
    char message[JMSG_LENGTH_MAX];
} reader;

static void stop(j_common_ptr state) {
    reader *r = state->client_data;
    state->err->format_message(state, r->message);
    longjmp(r->stop, 1);
}

static void on_message(j_common_ptr state, int level) {
    if (level < 0) stop(state);
}

static void on_progress(j_common_ptr state) {
    reader *r = state->client_data;
    if (r->state.input_scan_number <= most_scans) return;
    snprintf(r->message, sizeof(r->message), "more than %d scans", most_scans);
    longjmp(r->stop, 1);
}

static void destroy(void *user) {
    jpeg.jpeg_destroy_decompress(&((reader *)user)->state);
}

static berth_status failure(const reader *r) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the JPEG file is damaged: %s", r->message);
}

static berth_status read_header(reader *r, const berth_image__file *file) {
    if (setjmp(r->stop)) return failure(r);
    jpeg.jpeg_mem_src(&r->state, file->data, file->size_bytes);
    jpeg.jpeg_read_header(&r->state, TRUE);
    int count = r->state.num_components;
    if (count != 1 && count != 3 && count != 4)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a JPEG file of %d colour components; 1, 3 and 4 are read", count);
    r->state.out_color_space = count == 4 ? JCS_CMYK : count == 3 ? JCS_RGB : JCS_GRAYSCALE;
    return BERTH_OK;
}

static berth_status read_rows(reader *r, uint8_t *pixels, size_t row_bytes) {
    if (setjmp(r->stop)) return failure(r);
    jpeg.jpeg_start_decompress(&r->state);
    while (r->state.output_scanline < r->state.output_height) {
        JSAMPROW row = pixels + r->state.output_scanline * row_bytes;
        jpeg.jpeg_read_scanlines(&r->state, &row, 1);
    }
    jpeg.jpeg_finish_decompress(&r->state);
    return BERTH_OK;
}

// Inks to light, in place. Adobe's programs write how much ink is missing.
static void mix_inks(uint8_t *pixels, size_t count, bool inverted) {
    for (size_t i = 0; i < count; ++i)
        for (int c = 0; c < 3; ++c) {
            uint32_t ink = pixels[4 * i + (size_t)c], black = pixels[4 * i + 3];
            if (!inverted) ink = 255 - ink, black = 255 - black;
            pixels[3 * i + (size_t)c] = berth_image__to_byte(ink * black, 255 * 255);
        }
}

static berth_status create(reader *r) {
    r->state.err = jpeg.jpeg_std_error(&r->errors);
    r->errors.error_exit = stop;
    r->errors.emit_message = on_message;
    r->state.client_data = r;
    if (setjmp(r->stop)) return failure(r);
    jpeg.jpeg_CreateDecompress(&r->state, JPEG_LIB_VERSION, sizeof(r->state));
    r->progress.progress_monitor = on_progress;
    r->state.progress = &r->progress;
    return BERTH_OK;
}

berth_status berth_image__read_jpeg(const berth_image__file *file, berth_image *out) {
    BERTH_TRY(berth_image__load(&library));
    reader *r = berth_arena_new(file->scratch, reader);
    BERTH_TRY(create(r));
    berth_arena_defer(file->scratch, destroy, r);
    BERTH_TRY(read_header(r, file));
    uint32_t width = r->state.image_width, height = r->state.image_height;
    uint32_t channels = (uint32_t)r->state.num_components;
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__allocate(file, width, height, channels, &pixels));
    BERTH_TRY(read_rows(r, pixels, (size_t)width * channels));
    if (channels == 4) {
        mix_inks(pixels, (size_t)width * height, r->state.saw_Adobe_marker);
        channels = 3;
    }
    *out = (berth_image){width, height, channels, pixels};
    return BERTH_OK;
}
