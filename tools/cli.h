// What the subcommands of `berth` share: options for models and targets, errors, output.
// Exit status: 0 done, 1 could not do it, 2 wrong usage. Results go to stdout, everything else to
// stderr.
#ifndef BERTH_TOOLS_CLI_H_
#define BERTH_TOOLS_CLI_H_

#include <argp.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include <berth/session.h>
#include <berth/status.h>
#include <berth/tensor.h>

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/limits.h"
#include "base/status.h"

typedef struct berth_cli_strings {
    const char **data;  // NULL-terminated
    uint32_t count;
} berth_cli_strings;

// Numbers for the channels of a picture; none, one for all, or one for each.
enum { BERTH_CLI_MOST_CHANNELS = 3 };
typedef struct berth_cli_numbers {
    double values[BERTH_CLI_MOST_CHANNELS];
    uint32_t count;
} berth_cli_numbers;

// The beginning of every command's state: what commands with a model take (berth_cli_model_argp as
// an argp child; state->child_inputs[0] must be set to the struct), and what all have.
typedef struct berth_cli_model {
    const char *model;  // the argument MODEL; the command sees arguments first
    const char *target;
    const char *host;
    const char *executor;
    const char *runtime;
    const char *memory;         // NAME=BYTES,...
    berth_cli_strings drivers;  // paths of libraries, loaded before the command runs
    berth_cli_strings plugins;  // what to say of those that are loaded
    berth_status failure;       // of loading a plug-in, reported once the arguments are read
    berth_cli_strings pins;
    berth_cli_strings overrides;
    berth_cli_strings dims;       // NAME=EXTENT
    bool takes_bounds;            // of --dim
    berth_cli_strings bounds;     // NAME=LEAST..MOST
    berth_cli_strings relations;  // NAME=EXPRESSION
    berth_cli_strings states;     // INPUT=OUTPUT, of commands with --state
    berth_cli_strings shapes;     // [NAME=]1x3x640x640
    uint32_t batch;               // first extent of inputs where it is open; 0 = not given
    berth_cli_strings inputs;     // [NAME=]FILE
    const char *layout;           // of pictures; NULL = by the input's rank
    berth_cli_numbers mean, deviation;
    const char *strategy;
    const char *objective;
    const char *patches;
    const char *parallel;
    uint64_t node_budget;
    int64_t time_budget_ns;
    const char
        *costs;  // file of measured costs; "none"; NULL = the default file, where it is there
    const char *tuned;  // of tuned kernels, the same
    const char *cache_folder;
    bool no_cache;
    bool no_fusion;
    bool no_layouts;
    bool no_winograd;
    uint32_t jobs;
    uint64_t cache_limit_bytes;      // 0 = the default
    const char *limits;              // of what is read
    int64_t compiler_time_limit_ns;  // 0 = the default
    bool lists_strategies;           // --strategy list: print them and be done, without a model
    bool quiet;
    int exit_status;  // of the command, where there is no error: see berth_cli_command

    struct sigaction saved_actions[3];  // see berth_cli_interrupt

    const char *format;  // as given, for commands with more formats
    berth_arena *arena;  // of the whole command
} berth_cli_model;

extern const struct argp berth_cli_model_argp;
// The same without --format, for commands that have other ones than text and json.
extern const struct argp berth_cli_model_argp_no_format;
extern const struct argp berth_cli_format_argp;  // --format alone
// --driver alone; part of berth_cli_model_argp.
extern const struct argp berth_cli_driver_argp;
// MODEL, --dim, --shape, --format and --quiet alone.
extern const struct argp berth_cli_file_argp;

// A command: its command line and what it does. Its state begins with a berth_cli_model.
typedef struct berth_cli_command {
    struct argp argp;
    // Inside berth_arena_try of the arena. Sets exit_status where that is not 0 without an error.
    berth_status (*run)(void *state);
    void (*end)(void *state);  // (optional) frees what `run` made, after errors too
} berth_cli_command;

// The first thing that a command's main does: standard streams that are closed stay so, results that
// do not reach stdout are an error, and so is what the functions below say. False: cannot begin.
bool berth_cli_begin(void);

// Parses the command line (exit status 2 for wrong usage), runs the command and prints its error.
// `state` is zeroed but for the command's own defaults. Returns the exit status.
int berth_cli_run(const berth_cli_command *command, void *state, int argc, char **argv);

// What argp does not: options that are no option's full name, or lack their value, are wrong usage,
// with a suggestion; -h becomes --help. argv[0] is the command's name. True: help is asked for.
bool berth_cli_check_arguments(const struct argp *argp, int argc, char **argv);

// Lets argp print its help, and ends the process. argp does so in a child, because it ends its
// process when there is no memory (argp-help.c asserts); here that is an error like any other.
_Noreturn void berth_cli_give_help(const struct argp *argp, int argc, char **argv, void *state);

// Wrong usage (exit status 2) where options for compiling are given with a built program.
void berth_cli_refuse_with_program(const berth_cli_model *cli);

// Adds an item to a list.
void berth_cli_push(berth_cli_model *cli, berth_cli_strings *list, const char *item);

// Results as text on stdout, like printf; what could steer a terminal in the arguments is shown as
// numbers. Line breaks of the format stand at its end.
void berth_cli_print(const char *format, ...) BERTH_PRINTF(1, 2);
// "berth: LEVEL: MESSAGE" on stderr, harmless for terminals, too.
void berth_cli_message(const char *level, const char *message);
// The error that ends a command, with what would help as the command's options.
void berth_cli_error(berth_status status);

// argp_error, harmless for terminals: the message, how to get help, exit status 2.
void berth_cli_wrong_usage(struct argp_state *state, const char *format, ...) BERTH_PRINTF(2, 3);

// Ends the process with an error, exit status 1, where a part of a result could not be made.
_Noreturn void berth_cli_end_without_memory(void);
// At exit: a result that did not reach stdout (a full disk, a closed pipe) is an error, exit status
// 1.
void berth_cli_close_results(void);

// --format: true for json, false for text; any other word is wrong usage (prints and exits with 2).
bool berth_cli_wants_json(const berth_cli_model *cli);

// Whether progress is shown: a terminal, without --quiet.
bool berth_cli_shows_progress(const berth_cli_model *cli);
// "berth: WHAT: DONE of TOTAL" on stderr (a berth_progress_callback).
void berth_cli_show_progress(void *user, const char *what, uint32_t done, uint32_t total);

// Ctrl-C and the like while temporary files are there: they end the program when these are gone.
berth_interrupt berth_cli_interrupt(berth_cli_model *cli);

// A mapped file that becomes shorter ends the program with a message and status 1.
void berth_cli_watch_files(void);

// A JSON string of any bytes: what is not UTF-8 (file names, names in damaged models) becomes
// U+FFFD. NULL text gives null.
json_t *berth_cli_json_text(const char *text);

// Has jansson's failed allocations end the process; jansson and those who call it would leave out
// what could not be made, silently (and json_loads of 2.14 crashes). Before any JSON is made.
void berth_cli_begin_json(void);
// Dumps JSON to stdout with a newline, and frees it.
void berth_cli_print_json(json_t *json);
// JSON as text to stdout; what could steer a terminal is written \uXXXX.
void berth_cli_put_json(const char *text);

// Whether a text is NAME=FILE.
bool berth_cli_names_file(const char *text);
// NAME=BYTES,...; else wrong usage. The names are the target's matter.
void berth_cli_check_budgets(const char *text, struct argp_state *state);
bool berth_cli_parse_u64(const char *text, uint64_t *out_value);
// Parses "500ms", "60s", "60", "2m". False when it is none of these.
enum { BERTH_CLI_MOST_NAMES = 32 };
// Appends a name that is not there yet to a NULL-terminated list.
void berth_cli_add_name(const char *names[BERTH_CLI_MOST_NAMES], const char *name);
// Strategies by name, each once, with what all of that name do (lines), in the order of the first.
typedef struct berth_cli_strategy {
    const char *name;
    const char *docs[8];
    uint32_t doc_count;
} berth_cli_strategy;
typedef struct berth_cli_strategies {
    berth_cli_strategy items[BERTH_CLI_MOST_NAMES];
    uint32_t count;
} berth_cli_strategies;
void berth_cli_add_strategy(berth_cli_strategies *list, const char *name, const char *doc);

// Index of `text` in `names` (NULL-terminated); otherwise wrong usage, with all of them
// and the closest.
int berth_cli_choose(struct argp_state *state, const char *option, const char *text,
                     const char *const *names);
// The same of the values that the command's table of options lists for the option `key`, as "text|json".
int berth_cli_choose_value(struct argp_state *state, int key, const char *text);
// --format, in every table under this key.
enum { BERTH_CLI_KEY_FORMAT = 'f' };
void berth_cli_take_format(berth_cli_model *cli, const char *arg, struct argp_state *state);
// Wrong usage unless it is a text of limits (docs/limits.md).
void berth_cli_check_limits(struct argp_state *state, const char *text);

// Words for the drivers of devices, "DEVICE=WORDS", as sessions take them; else wrong usage.
typedef BERTH_VEC(berth_device_words) berth_cli_words;
// --state INPUT=OUTPUT, which commands with the virtual machine have: what is said of it, and reading it.
#define BERTH_CLI_STATE                                                                            \
    "Declare state: an input whose value is that output of the run before; a * in both stands "    \
    "for the "                                                                                     \
    "same text, as in past_key_values.*=present.*; a cache that grows by rows (give --dim with "   \
    "bounds) is not copied then; may be repeated"
void berth_cli_take_state(struct argp_state *state, berth_cli_model *cli, const char *arg);

#define BERTH_CLI_DEVICE_OPTIONS                                                                   \
    "Words for the driver of a device, as its documentation lists them: where a board is "         \
    "reached, which a program does not say (vta:0=\"memory=/dev/udmabuf0 "                         \
    "memory_base=0x1f000000\"); may be repeated"
void berth_cli_take_device_options(struct argp_state *state, berth_cli_model *cli,
                                   berth_cli_words *list, const char *text);

// A number from `least` to `most`; else wrong usage.
uint64_t berth_cli_number(struct argp_state *state, const char *option, const char *text,
                          uint64_t least, uint64_t most);

// The file of measured costs to plan by, as --costs says; NULL = none.
const char *berth_cli_costs(berth_cli_model *cli);

// Where drivers keep compiled kernels: as --cache-dir and --no-cache say; NULL = nowhere.
const char *berth_cli_driver_cache(const berth_cli_model *cli);

// The file of measured costs that plans read unless --costs names another, and `berth calibrate`
// writes: costs.jsonl in the folder of the kernel cache; NULL = there is no such folder.
const char *berth_cli_default_costs(berth_cli_model *cli);
// The same of tuned kernels: --tuned, `berth tune`, tuned.jsonl.
const char *berth_cli_tuned(berth_cli_model *cli);
const char *berth_cli_default_tuned(berth_cli_model *cli);

// Default folder of the kernel cache: $BERTH_CACHE_DIR, else $XDG_CACHE_HOME/berth, else
// ~/.cache/berth; NULL = none.
const char *berth_cli_cache_folder(berth_arena *arena);

#endif  // BERTH_TOOLS_CLI_H_
