// Status: how every fallible call of Berth reports what went wrong.
//
// A berth_status is a pointer: NULL is success, anything else is a record with a code, a message
// for people, and the source position that made it. Whoever receives a status owns it: pass it on,
// or free it with berth_status_free. Out-of-memory is a static record, so that reporting it
// allocates nothing.
//
//   berth_status load(const char *path) {
//       if (!path) return berth_status_make(BERTH_INVALID_ARGUMENT, "path is missing");
//       BERTH_TRY(read_header(path));  // returns the status of read_header on failure
//       return BERTH_OK;
//   }
#ifndef BERTH_BASE_STATUS_H_
#define BERTH_BASE_STATUS_H_

#include <stdarg.h>
#include <stdbool.h>

typedef enum berth_code {
    BERTH_CODE_OK = 0,
    BERTH_INVALID_ARGUMENT,     // the caller or the user gave something wrong (bad flag, bad file
                                // content)
    BERTH_NOT_FOUND,            // a file, name, tag or device that does not exist
    BERTH_ALREADY_EXISTS,       // a name given twice
    BERTH_OUT_OF_RANGE,         // an offset, index or size beyond its limit
    BERTH_OUT_OF_MEMORY,        // an allocator, pool or device said no
    BERTH_UNSUPPORTED,          // understood, but not (yet) possible here
    BERTH_UNAVAILABLE,          // a device, driver or library is missing or lost
    BERTH_INCOMPATIBLE,         // two things that do not fit each other (types, memories, versions)
    BERTH_FAILED_PRECONDITION,  // the call came in the wrong state
    BERTH_DEADLINE_EXCEEDED,    // a wait ran out of time
    BERTH_CANCELLED,            // somebody asked for it to stop
    BERTH_IO,                   // the operating system failed to read or write
    BERTH_INTERNAL,             // a bug in Berth; the message asks for a report
} berth_code;

typedef struct berth_status_record berth_status_record;
typedef const berth_status_record *berth_status;

#define BERTH_OK ((berth_status)0)
#define BERTH_MUST_USE __attribute__((warn_unused_result))
#define BERTH_PRINTF(format_index, first_argument)                                                 \
    __attribute__((format(printf, format_index, first_argument)))

// Makes a status. The message is printf-formatted, one sentence without a final newline.
#define berth_status_make(code, ...) berth_status_make_at((code), __FILE__, __LINE__, __VA_ARGS__)
BERTH_MUST_USE berth_status berth_status_make_at(berth_code code, const char *file, int line,
                                                 const char *format, ...) BERTH_PRINTF(4, 5);
BERTH_MUST_USE berth_status berth_status_make_at_v(berth_code code, const char *file, int line,
                                                   const char *format, va_list arguments)
    BERTH_PRINTF(4, 0);

// The static out-of-memory record. Never allocates.
BERTH_MUST_USE berth_status berth_status_oom(void);

// Returns `status` with "prefix: " put before its message; takes ownership of `status`. NULL stays
// NULL.
BERTH_MUST_USE berth_status berth_status_prefix(berth_status status, const char *format, ...)
    BERTH_PRINTF(2, 3);

// Returns a status equal to `status` that is owned separately (asynchronous failures have several
// receivers).
BERTH_MUST_USE berth_status berth_status_clone(berth_status status);

berth_code berth_status_code(berth_status status);  // BERTH_CODE_OK for NULL
const char *
berth_status_message(berth_status status);           // "" for NULL; valid until the status is freed
const char *berth_status_file(berth_status status);  // source file that made it
int berth_status_line(berth_status status);
const char *berth_code_name(berth_code code);  // "NOT_FOUND"

// Frees a status; NULL and the static record are fine.
void berth_status_free(berth_status status);

// Drops a status on purpose (clean-up paths where an earlier failure matters more).
#define berth_status_ignore(expression) berth_status_free(expression)

#define BERTH_TRY(expression)                                                                      \
    do {                                                                                           \
        berth_status berth_try_status_ = (expression);                                             \
        if (berth_try_status_) return berth_try_status_;                                           \
    } while (0)

// For functions with clean-up: assigns to `status` and jumps to `done`.
#define BERTH_TRY_GOTO(status, expression)                                                         \
    do {                                                                                           \
        (status) = (expression);                                                                   \
        if (status) goto done;                                                                     \
    } while (0)

#endif  // BERTH_BASE_STATUS_H_
