// Status: how every fallible call of Berth reports what went wrong.
//
// A berth_status is a pointer: NULL is success, anything else is a record with a code and a message
// for people, which says what is wrong, where, and what to do. Whoever receives a status owns it and
// frees it with berth_status_free.
//
//   berth_status status = berth_program_open("digits.berth", &program);
//   if (status) {
//       fprintf(stderr, "%s: %s\n", berth_code_name(berth_status_code(status)),
//               berth_status_message(status));
//       berth_status_free(status);
//   }
//
// Output arguments (out_...) are NULL or untouched where a call fails. Messages may hold names from
// model files: escape them before they go to a terminal. All functions here are thread-safe.
#ifndef BERTH_STATUS_H_
#define BERTH_STATUS_H_

#include <berth/version.h>
#include <stddef.h>

BERTH_BEGIN

// Numbers do not change; later versions may add some.
typedef enum berth_code {
    BERTH_CODE_OK = 0,
    BERTH_INVALID_ARGUMENT = 1,  // the caller or the user gave something wrong (bad file content)
    BERTH_NOT_FOUND = 2,         // a file, name, tag or device that does not exist
    BERTH_ALREADY_EXISTS = 3,    // a name given twice
    BERTH_OUT_OF_RANGE = 4,      // an offset, index or size beyond its limit
    BERTH_OUT_OF_MEMORY = 5,     // an allocator, pool or device said no
    BERTH_UNSUPPORTED = 6,       // understood, but not (yet) possible here
    BERTH_UNAVAILABLE = 7,       // a device, driver or library is missing or lost
    BERTH_INCOMPATIBLE = 8,      // two things that do not fit each other (types, versions)
    BERTH_FAILED_PRECONDITION = 9,  // the call came in the wrong state
    BERTH_DEADLINE_EXCEEDED = 10,   // a wait ran out of time
    BERTH_CANCELLED = 11,           // somebody asked for it to stop
    BERTH_IO = 12,                  // the operating system failed to read or write
    BERTH_INTERNAL = 13             // a bug in Berth; the message asks for a report
} berth_code;

typedef struct berth_status_record berth_status_record;
typedef const berth_status_record *berth_status;

#define BERTH_OK ((berth_status)0)

BERTH_API berth_code berth_status_code(berth_status status);  // BERTH_CODE_OK for NULL
// "" for NULL; valid until the status is freed.
BERTH_API const char *berth_status_message(berth_status status);
BERTH_API const char *berth_code_name(berth_code code);  // "NOT_FOUND"

// What would help, as data: a message names things, never an option or a function, since it does not
// know who reads it. A command words these as its options, a binding as its arguments. Numbers do not
// change; later versions may add some, so leave out kinds that you do not know.
typedef enum berth_remedy_kind {
    BERTH_REMEDY_DIMENSION = 1,  // an extent for the dimension `name` of the inputs
    BERTH_REMEDY_INPUT = 2,      // the input `name`, or its shape
    BERTH_REMEDY_LOOK = 3  // at `name`: "tags" of targets, the model's "operations", a "plan" or a
                           // "simulation", which need no code
} berth_remedy_kind;

typedef struct berth_remedy {
    berth_remedy_kind kind;
    const char *name;  // as the model has it, UTF-8; as long as the status
} berth_remedy;

// Any of them may be needed, or all. 0 for NULL, and for most statuses.
BERTH_API size_t berth_status_remedy_count(berth_status status);
// `index` below the count; kind 0 and name "" otherwise.
BERTH_API berth_remedy berth_status_remedy(berth_status status, size_t index);

// Frees a status; NULL is fine.
BERTH_API void berth_status_free(berth_status status);

// What is worth knowing but no error: notes and warnings, one line each without its end.
typedef void (*berth_message_callback)(void *user, const char *message);

BERTH_END

#endif  // BERTH_STATUS_H_
