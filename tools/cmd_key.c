// berth key: keys that programs are signed with.
#include <berth/signing.h>
#include <string.h>

#include "tools/cli.h"
#include "tools/commands.h"

typedef struct key_command {
    berth_cli_model cli;
    const char *action;
    const char *file;
} key_command;

static const struct argp_option options[] = {
    {"format", BERTH_CLI_KEY_FORMAT, "text|json", 0, "Output (default: text)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    key_command *command = state->input;
    switch (key) {
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
    case ARGP_KEY_ARG:
        if (command->file) berth_cli_wrong_usage(state, "only one file");
        if (command->action) {
            command->file = arg;
            return 0;
        }
        if (strcmp(arg, "create") != 0 && strcmp(arg, "show") != 0)
            berth_cli_wrong_usage(state, "the actions are create and show, not \"%s\"", arg);
        command->action = arg;
        return 0;
    case ARGP_KEY_END:
        if (!command->action) berth_cli_wrong_usage(state, "create or show?");
        if (!command->file) berth_cli_wrong_usage(state, "which file?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static berth_status run(void *state) {
    const key_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    char digits[BERTH_PUBLIC_KEY_DIGITS + 1] = "";
    if (strcmp(command->action, "create") == 0) BERTH_TRY(berth_signing_key_create(command->file));
    BERTH_TRY(berth_signing_key_show(command->file, digits));
    if (json)
        berth_cli_print_json(json_pack("{s:o, s:o}", "file", berth_cli_json_text(command->file),
                                       "public_key", *digits ? json_string(digits) : json_null()));
    else
        berth_cli_print("%s: %s%s\n", command->file, *digits ? "public key " : "not signed",
                        digits);
    return BERTH_OK;
}

int berth_cmd_key(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse, "create FILE\nshow FILE",
                 "Makes a pair of keys, FILE (secret, for `berth build --sign`) and FILE.pub (for "
                 "`berth run --require-signature`), or shows the public key of a key file, or with "
                 "which key a program was signed.",
                 NULL, NULL, NULL},
        .run = run};
    key_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
