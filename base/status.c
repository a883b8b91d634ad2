#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct berth_status_record {
    berth_code code;
    int line;
    const char *file;
    const char *message;  // after the record, in the same allocation
};

static const berth_status_record oom_record = {BERTH_OUT_OF_MEMORY, __LINE__, __FILE__,
                                               "out of memory"};

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
    if (!status || status == &oom_record) return status;
    char prefix[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    berth_status result = berth_status_make_at(status->code, status->file, status->line, "%s: %s",
                                               prefix, status->message);
    berth_status_free(status);
    return result;
}

berth_status berth_status_clone(berth_status status) {
    if (!status || status == &oom_record) return status;
    return berth_status_make_at(status->code, status->file, status->line, "%s", status->message);
}

berth_code berth_status_code(berth_status status) {
    return status ? status->code : BERTH_CODE_OK;
}

const char *berth_status_message(berth_status status) {
    return status ? status->message : "";
}

const char *berth_status_file(berth_status status) {
    return status ? status->file : "";
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
    if (!status || status == &oom_record) return;
    union {
        berth_status constant;
        void *mutable_pointer;
    } owned = {.constant = status};
    free(owned.mutable_pointer);
}
