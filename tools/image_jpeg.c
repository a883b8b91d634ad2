// JPEG through libjpeg, which reports errors by a jump and damage by warnings: both are errors here.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "tools/image.h"

enum { most_scans = 500 };  // a progressive file may have scans without end

typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf stop;
    char message[JMSG_LENGTH_MAX];
} reader;

static void stop(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->message);
    longjmp(r->stop, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0) stop(jpeg);
}

static void on_progress(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= most_scans) return;
    snprintf(r->message, sizeof(r->message), "more than %d scans", most_scans);
    longjmp(r->stop, 1);
}

static void destroy(void *user) {
    jpeg_destroy_decompress(&((reader *)user)->jpeg);
}

static berth_status failure(const reader *r) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the JPEG file is damaged: %s", r->message);
}

static berth_status read_header(reader *r, const void *data, size_t size_bytes) {
    if (setjmp(r->stop)) return failure(r);
    jpeg_mem_src(&r->jpeg, data, size_bytes);
    jpeg_read_header(&r->jpeg, TRUE);
    if (r->jpeg.num_components != 1 && r->jpeg.num_components != 3)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a JPEG file of %d colour components; 1 and 3 are read",
                                 r->jpeg.num_components);
    r->jpeg.out_color_space = r->jpeg.num_components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    return BERTH_OK;
}

static berth_status read_rows(reader *r, uint8_t *pixels, size_t row_bytes) {
    if (setjmp(r->stop)) return failure(r);
    jpeg_start_decompress(&r->jpeg);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW row = pixels + r->jpeg.output_scanline * row_bytes;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&r->jpeg);
    return BERTH_OK;
}

static berth_status create(reader *r) {
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = stop;
    r->errors.emit_message = on_message;
    r->jpeg.client_data = r;
    if (setjmp(r->stop)) return failure(r);
    jpeg_create_decompress(&r->jpeg);
    r->progress.progress_monitor = on_progress;
    r->jpeg.progress = &r->progress;
    return BERTH_OK;
}

static berth_status read_picture(berth_arena *arena, berth_arena *scratch, const void *data,
                                 size_t size_bytes, berth_image *out) {
    reader *r = berth_arena_new(scratch, reader);
    BERTH_TRY(create(r));
    berth_arena_defer(scratch, destroy, r);
    BERTH_TRY(read_header(r, data, size_bytes));
    uint32_t channels = (uint32_t)r->jpeg.num_components;
    uint8_t *pixels = NULL;
    BERTH_TRY(
        berth_image__allocate(arena, r->jpeg.image_width, r->jpeg.image_height, channels, &pixels));
    BERTH_TRY(read_rows(r, pixels, (size_t)r->jpeg.image_width * channels));
    *out = (berth_image){r->jpeg.image_width, r->jpeg.image_height, channels, pixels};
    return BERTH_OK;
}

berth_status berth_image__read_jpeg(berth_arena *arena, const void *data, size_t size_bytes,
                                    berth_image *out_image) {
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_status status = read_picture(arena, scratch, data, size_bytes, out_image);
    berth_arena_destroy(scratch);
    return status;
}
