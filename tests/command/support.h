// Runs the command as a user does, through the shell, from the project's root.
#ifndef BERTH_TESTS_COMMAND_SUPPORT_H_
#define BERTH_TESTS_COMMAND_SUPPORT_H_

#include <criterion/criterion.h>
#include <jansson.h>

typedef struct result {
    int exit_status;  // -1 = ended by a signal
    char out[1 << 18];
    char err[1 << 14];
} result;

// "berth ARGUMENTS"; the result is valid until the next call.
const result *berth_run(const char *arguments);
// The JSON on stdout of a command that must succeed; the caller frees it.
json_t *berth_run_json(const char *arguments);
// The command fails with this status, says `message` on stderr and nothing on stdout.
void berth_run_fails(const char *arguments, int exit_status, const char *message);

#endif  // BERTH_TESTS_COMMAND_SUPPORT_H_
