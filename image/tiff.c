// TIFF through libtiff (4.5 or later, where each file has its own error handler), of which what is used is declared here:
// its headers are not needed. Any form that libtiff turns into colours of 8 bits is read, of several pictures the first.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "image/internal.h"

enum { TAG_WIDTH = 256, TAG_HEIGHT = 257, TAG_PHOTOMETRIC = 262 };
enum { BLACK_IS_ZERO = 1, TOP_LEFT = 1 };  // photometric values up to it are grey
enum { most_allocated = 1 << 30 };         // at once, by libtiff

typedef int error_handler(void *tiff, void *user, const char *module, const char *format,
                          va_list arguments);

static struct {
    void *(*TIFFOpenOptionsAlloc)(void);
    void (*TIFFOpenOptionsFree)(void *options);
    void (*TIFFOpenOptionsSetMaxSingleMemAlloc)(void *options, ptrdiff_t bytes);
    void (*TIFFOpenOptionsSetErrorHandlerExtR)(void *options, error_handler *handler, void *user);
    void (*TIFFOpenOptionsSetWarningHandlerExtR)(void *options, error_handler *handler, void *user);
    void *(*TIFFClientOpenExt)(const char *name, const char *mode, void *user,
                               ptrdiff_t (*read)(void *user, void *to, ptrdiff_t bytes),
                               ptrdiff_t (*write)(void *user, void *from, ptrdiff_t bytes),
                               uint64_t (*seek)(void *user, uint64_t offset, int from),
                               int (*close)(void *user), uint64_t (*size)(void *user),
                               int (*map)(void *user, void **base, uint64_t *size),
                               void (*unmap)(void *user, void *base, uint64_t size), void *options);
    void (*TIFFClose)(void *tiff);
    int (*TIFFGetField)(void *tiff, uint32_t tag, ...);
    int (*TIFFRGBAImageOK)(void *tiff, char message[1024]);
    int (*TIFFReadRGBAImageOriented)(void *tiff, uint32_t width, uint32_t height, uint32_t *pixels,
                                     int orientation, int stop_on_error);
} tiff;

static berth_image__library library = {
    .format = "TIFF",
    .package = "libtiff 4.5 or later (Debian: libtiff6)",
    .names = (const char *const[]){"libtiff.so.6", NULL},
    .functions = "TIFFOpenOptionsAlloc\0TIFFOpenOptionsFree\0TIFFOpenOptionsSetMaxSingleMemAlloc\0"
                 "TIFFOpenOptionsSetErrorHandlerExtR\0TIFFOpenOptionsSetWarningHandlerExtR\0"
                 "TIFFClientOpenExt\0TIFFClose\0TIFFGetField\0TIFFRGBAImageOK\0"
                 "TIFFReadRGBAImageOriented\0",
    .table = &tiff,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

// A file in memory, to libtiff a file.
typedef struct reader {
    const berth_image__file *file;
    uint64_t at;
    void *options, *opened;
    char message[160];  // of the first error
} reader;

static ptrdiff_t read_at(void *user, void *to, ptrdiff_t bytes) {
    reader *r = user;
    uint64_t left = r->at < r->file->size_bytes ? r->file->size_bytes - r->at : 0;
    size_t count = bytes < 0 ? 0 : (uint64_t)bytes < left ? (size_t)bytes : (size_t)left;
    memcpy(to, r->file->data + (count ? r->at : 0), count);
    r->at += count;
    return (ptrdiff_t)count;
}

static ptrdiff_t write_nothing(void *user, void *from, ptrdiff_t bytes) {
    (void)user, (void)from, (void)bytes;
    return 0;
}

static uint64_t seek(void *user, uint64_t offset, int from) {
    reader *r = user;
    r->at = offset + (from == SEEK_CUR ? r->at : from == SEEK_END ? r->file->size_bytes : 0);
    return r->at;
}

static int close_nothing(void *user) {
    (void)user;
    return 0;
}

static uint64_t size_of(void *user) {
    return ((reader *)user)->file->size_bytes;
}

static int map_nothing(void *user, void **base, uint64_t *size) {
    (void)user, (void)base, (void)size;
    return 0;
}

static void unmap_nothing(void *user, void *base, uint64_t size) {
    (void)user, (void)base, (void)size;
}

__attribute__((format(printf, 4, 0))) static int
keep_error(void *opened, void *user, const char *module, const char *format, va_list arguments) {
    reader *r = user;
    (void)opened, (void)module;
    if (!r->message[0]) vsnprintf(r->message, sizeof(r->message), format, arguments);
    return 1;  // nobody else need hear of it
}

__attribute__((format(printf, 4, 0))) static int
drop_warning(void *opened, void *user, const char *module, const char *format, va_list arguments) {
    (void)opened, (void)user, (void)module, (void)format, (void)arguments;
    return 1;
}

static void close_all(void *user) {
    reader *r = user;
    if (r->opened) tiff.TIFFClose(r->opened);
    if (r->options) tiff.TIFFOpenOptionsFree(r->options);
}

static berth_status open_tiff(reader *r) {
    r->options = tiff.TIFFOpenOptionsAlloc();
    if (!r->options) return berth_status_oom();
    tiff.TIFFOpenOptionsSetMaxSingleMemAlloc(r->options, most_allocated);
    tiff.TIFFOpenOptionsSetErrorHandlerExtR(r->options, keep_error, r);
    tiff.TIFFOpenOptionsSetWarningHandlerExtR(r->options, drop_warning, r);
    r->opened =
        tiff.TIFFClientOpenExt("picture", "r", r, read_at, write_nothing, seek, close_nothing,
                               size_of, map_nothing, unmap_nothing, r->options);
    return r->opened ? BERTH_OK : BERTH_IMAGE_BAD("the TIFF file is damaged: %s", r->message);
}

// Colours in the bytes of words, red lowest; grey ones have the same in each.
static void take_bytes(const uint32_t *words, size_t count, uint32_t channels, uint8_t *pixels) {
    for (size_t i = 0; i < count; ++i)
        for (uint32_t c = 0; c < channels; ++c)
            pixels[i * channels + c] = (uint8_t)(words[i] >> (8 * c));
}

berth_status berth_image__read_tiff(const berth_image__file *file, berth_image *out) {
    uint32_t width = 0, height = 0;
    uint16_t photometric = UINT16_MAX;
    char why[1024] = "";
    uint8_t *pixels = NULL;
    BERTH_TRY(berth_image__load(&library));
    reader *r = berth_arena_new(file->scratch, reader);
    r->file = file;
    berth_arena_defer(file->scratch, close_all, r);
    BERTH_TRY(open_tiff(r));
    if (!tiff.TIFFGetField(r->opened, TAG_WIDTH, &width) ||
        !tiff.TIFFGetField(r->opened, TAG_HEIGHT, &height))
        return BERTH_IMAGE_BAD("the TIFF file does not say how large its picture is");
    (void)tiff.TIFFGetField(r->opened, TAG_PHOTOMETRIC, &photometric);
    uint32_t channels = photometric <= BLACK_IS_ZERO ? 1 : 3;
    BERTH_TRY(berth_image__allocate(file, width, height, channels, &pixels));
    if (!tiff.TIFFRGBAImageOK(r->opened, why))
        return berth_status_make(BERTH_UNSUPPORTED, "this form of TIFF is not read: %s", why);
    size_t count = (size_t)width * height;
    uint32_t *words = berth_arena_alloc_unset(file->scratch, count * sizeof(*words), 8);
    if (!tiff.TIFFReadRGBAImageOriented(r->opened, width, height, words, TOP_LEFT, 1))
        return BERTH_IMAGE_BAD("the TIFF file is damaged: %s", r->message);
    take_bytes(words, count, channels, pixels);
    *out = (berth_image){width, height, channels, pixels};
    return BERTH_OK;
}
