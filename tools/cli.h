// What the subcommands of `berth` share: options for models and targets, errors, output.
// Exit status: 0 done, 1 could not do it, 2 wrong usage. Results go to stdout, everything else to
// stderr.
#ifndef BERTH_TOOLS_CLI_H_
#define BERTH_TOOLS_CLI_H_

#include <argp.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "base/interrupt.h"
#include "toolkit/model.h"

#define BERTH_VERSION "0.1.0"

typedef struct berth_cli_strings {
    const char **data;  // NULL-terminated
    uint32_t count;
} berth_cli_strings;

// What every command with a model takes (berth_cli_model_argp as an argp child;
// state->child_inputs[0] must be set to the struct).
typedef struct berth_cli_model {
    const char *model;  // the argument MODEL; the command sees arguments first
    const char *target;
    const char *host;
    const char *executor;
    const char *runtime;
    berth_cli_strings pins;
    berth_cli_strings overrides;
    berth_cli_strings dims;    // NAME=EXTENT
    berth_cli_strings inputs;  // NAME=FILE
    const char *strategy;
    const char *objective;
    uint64_t node_budget;
    int64_t time_budget_ns;
    const char *cache_folder;
    bool no_cache;
    bool no_fusion;
    bool no_layouts;
    bool no_winograd;
    uint32_t jobs;
    uint64_t cache_limit_bytes;      // 0 = the default
    int64_t compiler_time_limit_ns;  // 0 = the default
    bool lists_strategies;           // --strategy list: print them and be done, without a model
    bool quiet;

    struct sigaction saved_actions[4];  // see berth_cli_interrupt

    const char *format;  // as given, for commands with more formats
    berth_arena *arena;  // for the lists above; made by berth_cli_begin
} berth_cli_model;

extern const struct argp berth_cli_model_argp;
// MODEL, --dim, --format and --quiet alone.
extern const struct argp berth_cli_file_argp;

// Makes the arena, sets defaults. Prints and returns false when there is no memory.
bool berth_cli_begin(berth_cli_model *cli);
void berth_cli_end(berth_cli_model *cli);

// Fills model options from the command line (reads --input files when `read_inputs`).
// `inputs_as_constants`: integer inputs of at most 64 elements are bound as constants as well
// (verify).
BERTH_MUST_USE berth_status berth_cli_model_options(berth_cli_model *cli, bool read_inputs,
                                                    berth_model_options *out_options);

// Adds an item to a list.
void berth_cli_push(berth_cli_model *cli, berth_cli_strings *list, const char *item);

// Prints the status ("berth: error: ...") and frees it; returns the exit status, 1 (0 for no
// status).
int berth_cli_finish(berth_status status);

// --format: true for json, false for text; any other word is wrong usage (prints and exits with 2).
bool berth_cli_wants_json(const berth_cli_model *cli);

// stderr messages of compilation.
berth_log berth_cli_log(const berth_cli_model *cli);

// Ctrl-C and the like while temporary files are there: they end the program when these are gone.
berth_interrupt berth_cli_interrupt(berth_cli_model *cli);

// A mapped file that becomes shorter ends the program with a message and status 1.
void berth_cli_watch_files(void);

// A JSON string of any bytes: what is not UTF-8 (file names, names in damaged models) becomes
// U+FFFD. NULL text gives null.
json_t *berth_cli_json_text(const char *text);

// Dumps JSON to stdout with a newline, and frees it. Returns an exit status.
int berth_cli_print_json(json_t *json);

// Whether a text is NAME=FILE.
bool berth_cli_names_file(const char *text);
// Parses "12", "12K", "12KiB", "12M", "12GiB" into bytes. False when it is none of these.
bool berth_cli_parse_bytes(const char *text, uint64_t *out_bytes);
bool berth_cli_parse_u64(const char *text, uint64_t *out_value);
// Parses "500ms", "60s", "60", "2m". False when it is none of these.
enum { BERTH_CLI_MOST_NAMES = 32 };
// Appends a name that is not there yet to a NULL-terminated list.
void berth_cli_add_name(const char *names[BERTH_CLI_MOST_NAMES], const char *name);
// Index of `text` in `names` (NULL-terminated); otherwise argp_error, wrong usage, with all of them
// and the closest.
int berth_cli_choose(struct argp_state *state, const char *option, const char *text,
                     const char *const *names);
bool berth_cli_parse_time(const char *text, int64_t *out_ns);

// Default folder of the kernel cache: $BERTH_CACHE_DIR, else $XDG_CACHE_HOME/berth, else
// ~/.cache/berth; NULL = none.
const char *berth_cli_cache_folder(berth_arena *arena);

// argp_parse with exit status 2 for wrong usage.
void berth_cli_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif  // BERTH_TOOLS_CLI_H_
