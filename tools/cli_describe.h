// A command's options as a manual page or as a shell's completion: from the same tables as --help.
#ifndef BERTH_TOOLS_CLI_DESCRIBE_H_
#define BERTH_TOOLS_CLI_DESCRIBE_H_

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/cli.h"

enum { BERTH_CLI_MOST_OPTIONS = 64 };

typedef struct berth_cli_options {
    const struct argp_option *options[BERTH_CLI_MOST_OPTIONS];
    uint32_t count;
} berth_cli_options;

// All options of a command: its own, those of its parts, and what every command has (--help, ...).
void berth_cli_collect_options(const struct argp *argp, berth_cli_options *out_options);

// The values that an option's table lists ("text|json"); none: names[0] is NULL.
typedef struct berth_cli_option_values {
    char text[256];
    const char *names[BERTH_CLI_MOST_NAMES];  // NULL-terminated; within text
} berth_cli_option_values;
void berth_cli_values_of(const struct argp_option *option, berth_cli_option_values *out_values);

// `--describe=man:TITLE`, `--describe=bash` or `--describe=zsh` as the only argument: prints that on stdout.
// False: something else is asked for. What the two shells get is a part of what `berth completion` prints.
bool berth_cli_describe(const struct argp *argp, int argc, char **argv);

// Prints text for roff: nothing in it is a request or an escape, and every '-' is one.
void berth_cli_print_roff(const char *text);
// Prints text for zsh between quotes: ' ends these, and brackets and colons mean something to _arguments.
void berth_cli_print_zsh(const char *text);

#endif  // BERTH_TOOLS_CLI_DESCRIBE_H_
