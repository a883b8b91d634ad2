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

// What follows ENTRYSUFFIX and a colon, up to the newline; NULL: no line has it.
static const char *find_line(const berth_declared_lines *lines, const char *entry,
                             const char *suffix, size_t *out_bytes) {
    if (!lines->text) return NULL;
    const char *end = lines->text + lines->size_bytes;
    size_t entry_bytes = strlen(entry), suffix_bytes = strlen(suffix), bytes = 0;
    for (const char *at = next_line(lines->text, end, &bytes); at;
         at = next_line(at + bytes, end, &bytes)) {
        const char *name = at + line_start_bytes;
        size_t left = bytes - line_start_bytes, whole = entry_bytes + suffix_bytes + 2;
        if (left <= whole || memcmp(name, entry, entry_bytes) != 0 ||
            memcmp(name + entry_bytes, suffix, suffix_bytes) != 0 ||
            memcmp(name + entry_bytes + suffix_bytes, ": ", 2) != 0)
            continue;
        *out_bytes = left - whole - 1;
        return name + whole;
    }
    return NULL;
}

berth_status berth_devices__check_declared_line(berth_allocator allocator,
                                                const berth_program_kernel *kernel,
                                                const berth_declared_lines *lines) {
    size_t bytes = 0;
    const char *text = find_line(lines, kernel->entry, "", &bytes);
    return text ? berth_devices__check_declaration(allocator, kernel, text, bytes) : BERTH_OK;
}

uint64_t berth_devices__declared_number(const berth_declared_lines *lines, const char *entry,
                                        const char *suffix) {
    size_t bytes = 0;
    uint64_t number = 0;
    const char *text = find_line(lines, entry, suffix, &bytes);
    for (; text && bytes > 0 && *text >= '0' && *text <= '9' && number < (1u << 31) / 10; --bytes)
        number = 10 * number + (uint64_t)(*text++ - '0');
    if (!text) return 0;
    return bytes == 0 ? number : UINT64_MAX;
}
