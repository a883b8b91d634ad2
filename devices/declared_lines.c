#include <string.h>

#include "devices/internal.h"

static const char line_start[] = "// " BERTH_DECLARATION_PREFIX;
enum { line_start_bytes = sizeof(line_start) - 1 };

// The next line that declares a kernel at or after `at`; NULL = none. *out_bytes: with its newline.
static const char *next_line(const char *at, const char *end, size_t *out_bytes) {
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);
        if (newline && bytes > line_start_bytes && memcmp(at, line_start, line_start_bytes) == 0) {
            *out_bytes = bytes;
            return at;
        }
        at += bytes;
    }
    return NULL;
}

berth_status berth_devices__keep_declarations(berth_allocator allocator, const char *source,
                                              size_t size_bytes, berth_declared_lines *out_lines) {
    const char *end = source + size_bytes;
    size_t total = 0, bytes = 0;
    *out_lines = (berth_declared_lines){0};
    for (const char *at = next_line(source, end, &bytes); at;
         at = next_line(at + bytes, end, &bytes))
        total += bytes;
    if (total == 0) return BERTH_OK;
    char *text = berth_alloc(allocator, total);
    if (!text) return berth_status_oom();
    *out_lines = (berth_declared_lines){text, total};
    for (const char *at = next_line(source, end, &bytes); at;
         at = next_line(at + bytes, end, &bytes)) {
        memcpy(text, at, bytes);
        text += bytes;
    }
    return BERTH_OK;
}

berth_status berth_devices__check_declared_line(berth_allocator allocator,
                                                const berth_program_kernel *kernel,
                                                const berth_declared_lines *lines) {
    if (!lines->text) return BERTH_OK;
    const char *end = lines->text + lines->size_bytes;
    size_t name_bytes = strlen(kernel->entry), bytes = 0;
    for (const char *at = next_line(lines->text, end, &bytes); at;
         at = next_line(at + bytes, end, &bytes)) {
        const char *name = at + line_start_bytes;
        size_t left = bytes - line_start_bytes;
        if (left < name_bytes + 3 || memcmp(name, kernel->entry, name_bytes) != 0 ||
            memcmp(name + name_bytes, ": ", 2) != 0)
            continue;
        return berth_devices__check_declaration(allocator, kernel, name + name_bytes + 2,
                                                left - name_bytes - 3);
    }
    return BERTH_OK;
}
