// A file of records that a command measures (`berth calibrate`, `berth tune`): what it holds already
// is kept, --merge makes one of several, and without -o it is the file that compilations look for.
#ifndef BERTH_TOOLS_MEASURED_FILE_H_
#define BERTH_TOOLS_MEASURED_FILE_H_

#include "tools/cli_compiler.h"

enum { BERTH_CLI_KEY_OUTPUT = 'o', BERTH_CLI_KEY_MERGE = 0x6f0 };

// After the command's berth_cli_model, which `cli` is.
typedef struct berth_cli_measured {
    berth_cli_model *cli;
    berth_cli_strings files;  // models; with --merge: files of records
    const char *output;       // NULL: the default file
    bool merge;
} berth_cli_measured;

// The keys above and arguments. `kind`: "files of costs", what --merge takes. Whether it was one of
// these; what is wrong ends the command.
bool berth_cli_measured_take(berth_cli_measured *measured, struct argp_state *state, int key,
                             char *arg, const char *kind);

// How records of one kind are measured and kept. Each is given `user`.
typedef struct berth_cli_records {
    const char *default_path;  // NULL: there is no cache folder
    berth_status (*measure)(void *user);
    berth_status (*read)(void *user, const char *path);
    berth_status (*keep)(void *user, const char *path);  // of a file: what was not measured better
    uint32_t (*count)(const void *user);
    berth_status (*save)(const void *user, const char *path);
    void *user;
} berth_cli_records;

// What became of it.
typedef struct berth_cli_measured_result {
    const char *path;
    uint32_t count;     // records in the file
    uint32_t measured;  // before those that the file held were kept
} berth_cli_measured_result;

// Measures or merges, and writes the file.
berth_status berth_cli_measured_write(const berth_cli_measured *measured,
                                      const berth_cli_records *records,
                                      berth_cli_measured_result *out);

// {"file": ..., "records": ..., NAME: number}
void berth_cli_print_measured(const berth_cli_measured_result *result, const char *name,
                              uint32_t number);

#endif  // BERTH_TOOLS_MEASURED_FILE_H_
