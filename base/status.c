#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct berth_status_record {
    berth_code code;
    int line;
    const char *file;
    const char *message;     // after the record, in the same allocation
    berth_remedy *remedies;  // an allocation of their own, with the names after them; NULL = none
    size_t remedy_count;
    // Not to be freed. A mark, since each library that has this file has an oom_record of its own.
    bool is_static;
};

enum { most_remedies = 64 };

static const berth_status_record oom_record = {.code = BERTH_OUT_OF_MEMORY,
                                               .line = __LINE__,
                                               .file = __FILE__,
                                               .message = "out of memory",
                                               .is_static = true};

// Whoever owns a status may change it.
static berth_status_record *writable(berth_status status) {
    union {
        berth_status constant;
        berth_status_record *record;
    } owned = {.constant = status};
    return owned.record;
}

berth_status berth_status_oom(void) {
    return &oom_record;
}

berth_status berth_status_make_at_v(berth_code code, const char *file, int line, const char *format,
                                    va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    if (length < 0) length = 0;
    size_t size = (size_t)length + 1;
    berth_status_record *record = malloc(sizeof(*record) + size);
    if (!record) return berth_status_oom();
    record->code = code;
    record->file = file;
    record->line = line;
    record->remedies = NULL;
    record->remedy_count = 0;
    record->is_static = false;
    char *message = (char *)(record + 1);
    vsnprintf(message, size, format, arguments);
    record->message = message;
    return record;
}

berth_status berth_status_make_at(berth_code code, const char *file, int line, const char *format,
                                  ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status = berth_status_make_at_v(code, file, line, format, arguments);
    va_end(arguments);
    return status;
}

berth_status berth_status_prefix(berth_status status, const char *format, ...) {
    if (!status || status->is_static) return status;
    char prefix[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    berth_status result = berth_status_make_at(status->code, status->file, status->line, "%s: %s",
                                               prefix, status->message);
    result = berth_status_with_remedies(result, status->remedies, status->remedy_count);
    berth_status_free(status);
    return result;
}

// ---- remedies -----------------------------------------------------------------------------------

static berth_remedy *copy_remedies(const berth_remedy *remedies, size_t count) {
    size_t size = count * sizeof(*remedies);
    for (size_t i = 0; i < count; ++i) size += strlen(remedies[i].name) + 1;
    berth_remedy *copy = malloc(size);
    if (!copy) return NULL;
    char *names = (char *)(copy + count);
    for (size_t i = 0; i < count; ++i) {
        size_t length = strlen(remedies[i].name) + 1;
        memcpy(names, remedies[i].name, length);
        copy[i] = (berth_remedy){remedies[i].kind, names};
        names += length;
    }
    return copy;
}

berth_status berth_status_with_remedies(berth_status status, const berth_remedy *remedies,
                                        size_t count) {
    if (!status || status->is_static || count == 0) return status;
    if (count > most_remedies) count = most_remedies;
    berth_remedy *copy = copy_remedies(remedies, count);
    if (!copy) return status;
    berth_status_record *record = writable(status);
    free(record->remedies);
    record->remedies = copy;
    record->remedy_count = count;
    return record;
}

size_t berth_status_remedy_count(berth_status status) {
    return status ? status->remedy_count : 0;
}

berth_remedy berth_status_remedy(berth_status status, size_t index) {
    if (index < berth_status_remedy_count(status)) return status->remedies[index];
    return (berth_remedy){0, ""};
}

// ---- the rest -----------------------------------------------------------------------------------

berth_status berth_status_clone(berth_status status) {
    if (!status || status->is_static) return status;
    berth_status copy =
        berth_status_make_at(status->code, status->file, status->line, "%s", status->message);
    return berth_status_with_remedies(copy, status->remedies, status->remedy_count);
}

berth_code berth_status_code(berth_status status) {
    return status ? status->code : BERTH_CODE_OK;
}

const char *berth_status_message(berth_status status) {
    return status ? status->message : "";
}

const char *berth_status_file(berth_status status) {
    return status && status->file ? status->file : "";
}

int berth_status_line(berth_status status) {
    return status ? status->line : 0;
}

const char *berth_code_name(berth_code code) {
    static const char *const names[] = {
        "OK",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "OUT_OF_RANGE",
        "OUT_OF_MEMORY",
        "UNSUPPORTED",
        "UNAVAILABLE",
        "INCOMPATIBLE",
        "FAILED_PRECONDITION",
        "DEADLINE_EXCEEDED",
        "CANCELLED",
        "IO",
        "INTERNAL",
    };
    return (unsigned)code < sizeof(names) / sizeof(names[0]) ? names[code] : "UNKNOWN";
}

void berth_status_free(berth_status status) {
    if (!status || status->is_static) return;
    berth_status_record *record = writable(status);
    free(record->remedies);
    free(record);
}
