// Status: how every fallible call of Berth reports what went wrong.
//
// The type, its codes and what callers do with it are public (<berth/status.h>); here is how one is
// made and passed on. Out-of-memory is a static record, so that reporting it allocates nothing.
//
//   berth_status load(const char *path) {
//       if (!path) return berth_status_make(BERTH_INVALID_ARGUMENT, "path is missing");
//       BERTH_TRY(read_header(path));  // returns the status of read_header on failure
//       return BERTH_OK;
//   }
#ifndef BERTH_BASE_STATUS_H_
#define BERTH_BASE_STATUS_H_

#include <berth/status.h>
#include <stdarg.h>
#include <stdbool.h>

#define BERTH_PRINTF(format_index, first_argument)                                                 \
    __attribute__((format(printf, format_index, first_argument)))

// Makes a status. The message is printf-formatted, one sentence without a final newline.
#ifdef BERTH_NO_SOURCE_PLACES  // a library that only runs programs: 5 KB of 300
#define BERTH_STATUS__PLACE NULL, 0
#else
#define BERTH_STATUS__PLACE __FILE__, __LINE__
#endif
#define berth_status_make(code, ...) berth_status_make_at((code), BERTH_STATUS__PLACE, __VA_ARGS__)
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

// Returns `status` with what would help besides (copied, with the names), for whoever words the
// message; takes ownership of `status`, which stays as it is where memory runs out. At most 64 count.
BERTH_MUST_USE berth_status berth_status_with_remedies(berth_status status,
                                                       const berth_remedy *remedies, size_t count);

// Returns a status equal to `status` that is owned separately (asynchronous failures have several
// receivers).
BERTH_MUST_USE berth_status berth_status_clone(berth_status status);

const char *berth_status_file(berth_status status);  // source file that made it
int berth_status_line(berth_status status);

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
